"""A program without Nigh, on a Bluetooth stack that is not BlueZ. It knows only docs/reference/PROTOCOL.md and docs/reference/transports/bluetooth.md.

usage: "$(foreign/setup)" foreign/stranger.py call AIR-SOCKET SERVICE
       "$(foreign/setup)" foreign/stranger.py lie AIR-SOCKET SERVICE

call: finds the first device that answers an inquiry, and its sessions of SERVICE by the service's UUID, connects to the first,
reads its preface, and breaks the protocol in several ways. Prints what it finds, a line each; a failure is an exception.

lie: says that it has the service, and answers each query for it with a different malformed answer, and at last with a
correct one. Prints "asked" and what it answered. Ends by a signal.
"""

import asyncio
import sys
import uuid

from bumble import rfcomm, sdp
from bumble.core import UUID, AdvertisingData, PhysicalTransport
from bumble.device import Device, DeviceConfiguration
from bumble.hci import HCI_Write_Extended_Inquiry_Response_Command
from bumble.pairing import PairingConfig
from bumble.transport import open_transport

NAMESPACE = uuid.UUID("1a0f6d2c-53b7-4e0e-9c41-6e6967680001")
NAME, TEXT, ADAPTER = 0x0100, 0x0300, 0x0301
L2CAP, RFCOMM = UUID.from_16_bits(0x0100), UUID.from_16_bits(0x0003)
# "NIGH", layout 1, TLS and nothing else.
PREFACE = b"NIGH\x01\x02\x00\x00"
PATIENCE = 60


def uuid_of(service):
    return UUID(str(uuid.uuid5(NAMESPACE, service)))


def pairs(text):
    """The strings of a text record, each of which follows a byte with its length."""
    while text:
        yield text[1 : 1 + text[0]].decode()
        text = text[1 + text[0] :]


async def find(device):
    found = asyncio.get_running_loop().create_future()
    device.on("inquiry_result", lambda who, *_: found.done() or found.set_result(who))
    await device.start_discovery()
    who = await asyncio.wait_for(found, PATIENCE)
    await device.stop_discovery()
    return who


def channel_of(protocols):
    return next(layer.value[1].value for layer in protocols.value if layer.value[0].value == RFCOMM)


async def records(link, service):
    client = sdp.Client(link)
    await client.connect()
    found = await client.search_attributes([uuid_of(service)], [sdp.SDP_ALL_ATTRIBUTES_RANGE])
    await client.disconnect()
    return [{attribute.id: attribute.value for attribute in record} for record in found]


class Line:
    """A connection to a session's channel: what arrived, and whether the connection has ended."""

    @classmethod
    async def open(cls, link, channel):
        line = cls()
        line.client = rfcomm.Client(link)
        channels = await asyncio.wait_for(line.client.start(), PATIENCE)
        # When the last channel has ended, BlueZ also ends what carried it.
        line.client.l2cap_channel.on("close", line.end)
        line.stream = await asyncio.wait_for(channels.open_dlc(channel), PATIENCE)
        line.stream.sink = line.take
        return line

    def __init__(self):
        self.came = b""
        self.is_over = False
        self.news = asyncio.Event()

    def take(self, content):
        self.came += content
        self.news.set()

    def end(self):
        self.is_over = True
        self.news.set()

    async def wait_until(self, condition):
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self.news.clear()
                await self.news.wait()


async def say(link, channel, words, content):
    """Sends what no session should send, and checks that the preface comes and then the connection ends."""
    line = await Line.open(link, channel)
    line.stream.write(content)
    await line.wait_until(lambda: line.is_over)
    assert line.came.startswith(PREFACE), line.came
    print("ended after", words, flush=True)


async def call(device, service):
    who = await find(device)
    print("found", who.to_string(with_type_qualifier=False), flush=True)
    link = await asyncio.wait_for(device.connect(who, transport=PhysicalTransport.BR_EDR), PATIENCE)
    record, *_ = await records(link, service)
    channel = channel_of(record[sdp.SDP_PROTOCOL_DESCRIPTOR_LIST_ATTRIBUTE_ID])
    print("name", record[NAME].value.decode())
    print("channel", channel)
    print("adapter", record[ADAPTER].value.decode())
    for pair in pairs(record[TEXT].value):
        print("text", pair)
    # BlueZ lets nobody further without encryption. Nobody is asked about that, because no keys are to be kept.
    await asyncio.wait_for(link.authenticate(), PATIENCE)
    await asyncio.wait_for(link.encrypt(), PATIENCE)
    line = await Line.open(link, channel)
    await line.wait_until(lambda: len(line.came) >= len(PREFACE))
    print("preface", line.came.hex(), flush=True)
    await line.stream.disconnect()
    await line.client.multiplexer.disconnect()
    await line.wait_until(lambda: line.is_over)
    await say(link, channel, "another protocol's words", b"GET / HTTP/1.1\r\n\r\n")
    await say(link, channel, "another layout", b"NIGH\x02\x02\x00\x00")
    await say(link, channel, "plain text where TLS is asked for", PREFACE + bytes(range(256)) * 4)
    # And after all of that it still serves a peer that behaves.
    line = await Line.open(link, channel)
    await line.wait_until(lambda: line.came == PREFACE)
    print("still there", flush=True)


def element(kind, content):
    """A value with two bytes of length: a text (4) or a sequence (6)."""
    return bytes([kind << 3 | 6]) + len(content).to_bytes(2, "big") + content


def record(service, own, peer, channel, adapter=None):
    """A list with one record in it, as a session publishes it."""
    text = b"".join(bytes([len(pair)]) + pair for pair in [b"v=1", b"id=" + peer])
    number = sdp.DataElement.unsigned_integer_8(channel)
    sequence, name = sdp.DataElement.sequence, sdp.DataElement.uuid
    protocols = sequence([sequence([name(L2CAP)]), sequence([name(RFCOMM), number])])
    attributes = [
        (sdp.SDP_PROTOCOL_DESCRIPTOR_LIST_ATTRIBUTE_ID, bytes(protocols)),
        (NAME, element(4, b"Liar")),
        (TEXT, element(4, text)),
        (ADAPTER, element(4, (adapter or own).encode())),
    ]
    content = b"".join(b"\x09" + number.to_bytes(2, "big") + value for number, value in attributes)
    return element(6, element(6, content))


class Liar:
    def __init__(self, service, own):
        peer = b"a" * 52
        true = record(service, own, peer, 7)
        self.answers = [
            ("too little", lambda number, goes_on: b"\x07"),
            ("a length that is none", lambda number, goes_on: b"\x07" + number + b"\xff\xff" + true),
            ("a PeerID that is none", self.whole(record(service, own, b"nobody", 7))),
            ("more than there is", lambda number, goes_on: b"\x07" + number + b"\x00\x05\xff\xff\x35\x00\x00"),
            ("an answer to something else", self.whole(true, number=b"\xff\xff")),
            ("a channel that is none", self.whole(record(service, own, peer, 31))),
            ("nothing for ever", lambda number, goes_on: self.part(number, b"", b"\x02on")),
            ("something for ever", lambda number, goes_on: self.part(number, bytes(600), b"\x02on")),
            ("another's adapter", self.whole(record(service, own, peer, 7, "00:00:00:00:00:01"))),
            ("a value in a value in a value", self.whole(b"\x35\xfe" * 200)),
            ("a list longer than it is", self.whole(b"\x37\xff\xff\xff\xff" + true)),
            ("the truth", self.whole(true)),
        ]
        # UUIDs are sent with the highest byte first; bumble has it last.
        self.asked = bytes(uuid_of(service))[::-1]
        self.next = -1

    @staticmethod
    def part(number, content, continuation):
        body = len(content).to_bytes(2, "big") + content + continuation
        return b"\x07" + number + len(body).to_bytes(2, "big") + body

    def whole(self, content, number=None):
        return lambda own, goes_on: self.part(number or own, content, b"\x00")

    def answer(self, question):
        # bluetoothd asks as well, for other services.
        if self.asked not in question:
            return self.whole(b"\x35\x00")(question[1:3], False)
        goes_on = question.endswith(b"\x02on")
        if not goes_on:
            self.next = min(self.next + 1, len(self.answers) - 1)
            print("asked,", self.answers[self.next][0], flush=True)
        return self.answers[self.next][1](question[1:3], goes_on)


async def lie(device, service):
    liar = Liar(service, device.public_address.to_string(with_type_qualifier=False))
    server = device.sdp_server
    server.on_pdu = lambda question: server.channel.write(liar.answer(question))
    inquiry_response = AdvertisingData([(AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS, bytes(uuid_of(service)))])
    await device.set_discoverable(True)
    await device.set_connectable(True)
    await device.host.send_command(
        HCI_Write_Extended_Inquiry_Response_Command(
            fec_required=0, extended_inquiry_response=bytes(inquiry_response).ljust(240, b"\0")
        )
    )
    print("ready", flush=True)
    await asyncio.get_running_loop().create_future()


async def main(work, air, service):
    async with await open_transport(f"unix:{air}") as controller:
        settings = DeviceConfiguration(name="stranger", classic_enabled=True, le_enabled=False)
        device = Device.from_config_with_hci(settings, controller.source, controller.sink)
        device.pairing_config_factory = lambda _: PairingConfig(mitm=False, bonding=False)
        await device.power_on()
        await work(device, service)


match sys.argv[1:]:
    case ["call", air, service]:
        asyncio.run(main(call, air, service))
    case ["lie", air, service]:
        asyncio.run(main(lie, air, service))
    case _:
        sys.exit(__doc__)
