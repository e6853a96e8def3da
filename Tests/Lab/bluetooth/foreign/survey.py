"""Joins an air with a Bluetooth stack that is not BlueZ, and prints which device is there and what it offers.

usage: "$(foreign/setup)" foreign/survey.py AIR-SOCKET

Inquires for up to twenty seconds until a device is found, and prints "found ADDRESS NAME" for it, then "record HANDLE NAME"
for each of its service records; NAME is left out if the record has none. Exit status 1 if no device is found.
"""

import asyncio
import sys

from bumble.core import AdvertisingData, PhysicalTransport
from bumble.device import Device, DeviceConfiguration
from bumble.sdp import (
    SDP_ALL_ATTRIBUTES_RANGE,
    SDP_PUBLIC_BROWSE_ROOT,
    SDP_SERVICE_RECORD_HANDLE_ATTRIBUTE_ID,
    Client,
)
from bumble.transport import open_transport

NAME_OF_SERVICE = 0x0100


async def survey(air):
    async with await open_transport(f"unix:{air}") as controller:
        settings = DeviceConfiguration(name="foreigner", classic_enabled=True, le_enabled=False)
        device = Device.from_config_with_hci(settings, controller.source, controller.sink)
        await device.power_on()
        found = asyncio.get_running_loop().create_future()
        device.on("inquiry_result", lambda who, kind, data, strength: found.done() or found.set_result((who, data)))
        await device.start_discovery()
        try:
            who, data = await asyncio.wait_for(found, 20)
        except TimeoutError:
            return 1
        await device.stop_discovery()
        print("found", who.to_string(with_type_qualifier=False), data.get(AdvertisingData.COMPLETE_LOCAL_NAME), flush=True)
        link = await asyncio.wait_for(device.connect(who, transport=PhysicalTransport.BR_EDR), 10)
        client = Client(link)
        await client.connect()
        records = await client.search_attributes([SDP_PUBLIC_BROWSE_ROOT], [SDP_ALL_ATTRIBUTES_RANGE])
        for record in records:
            attributes = {attribute.id: attribute.value.value for attribute in record}
            name = attributes.get(NAME_OF_SERVICE, b"").decode(errors="replace")
            print("record", hex(attributes[SDP_SERVICE_RECORD_HANDLE_ATTRIBUTE_ID]), name, flush=True)
        await client.disconnect()
        await link.disconnect()
        return 0


if len(sys.argv) != 2:
    sys.exit(__doc__)
sys.exit(asyncio.run(asyncio.wait_for(survey(sys.argv[1]), 60)))
