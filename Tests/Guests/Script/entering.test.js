// Entering: the messages on the WebSocket before the pipe begins, and how the guest gets there again.

import assert from "node:assert/strict";
import test from "node:test";
import { Guest, Refused, randomBytes } from "../../../Sources/Transports/Web/Script/nigh.js";
import { Clock, TestHost, hex, join, number, repeat, text, toHex } from "./support.js";

/** A WebSocket whose other end is a function that gets the first message and returns the answer. */
class FakeWebSocket {
  readyState = 0;
  bufferedAmount = 0;
  sent = [];

  constructor(clock, host, answer) {
    this.clock = clock;
    this.pipe = { onbytes: () => {}, onclose: () => {}, bufferedAmount: 0, close: () => this.drop(),
      send: (bytes) => { const copy = bytes.slice(); clock.set(() => this.deliver(copy), 1); } };
    clock.set(() => {
      this.readyState = 1;
      this.onopen?.();
    }, 1);
    this.host = host;
    this.answer = answer;
  }

  send(bytes) {
    assert.equal(this.readyState, 1);
    assert.ok(bytes.length <= 65_536);
    const copy = bytes.slice();
    this.sent.push(copy);
    this.clock.set(() => {
      if (this.sent.length === 1 && copy === this.sent[0]) {
        const answer = this.answer(copy);
        if (answer) this.deliver(answer);
      } else if (this.readyState === 1) {
        if (copy === this.sent[1]) this.host.accept(this.pipe);
        this.pipe.onbytes(copy);
      }
    }, 1);
  }

  deliver(bytes) {
    if (this.readyState === 1) this.onmessage?.({ data: bytes instanceof Uint8Array ? bytes.slice().buffer : bytes });
  }

  drop() {
    this.readyState = 3;
    this.onclose?.();
  }

  close() {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.clock.set(() => this.onclose?.(), 1);
    this.pipe.onclose();
  }
}

const ID = "a2".repeat(32);
const PEER_TEXT = "ukrkfivcukrkfivcukrkfivcukrkfivcukrkfivcukrkfivcukra";
const string = (value) => join(value.length, text(value));
const advertisement = (...pairs) => join(string("chat"), string("Lynx"), ...pairs.map(string));
const entered = (advertised = advertisement("v=1", `id=${PEER_TEXT}`, "nigh=chat send", "flag")) =>
  join(1, repeat(0xa1, 32), number(advertised.length, 2), advertised);

function world(answer) {
  const clock = new Clock(), environment = clock.environment(), host = new TestHost(clock), sockets = [];
  environment.openWebSocket = (url) => {
    const socket = new FakeWebSocket(clock, host, answer);
    sockets.push({ url, socket });
    return socket;
  };
  const enter = async (options) => {
    const guest = Guest.enter("ws://host/nigh", { environment, ...options });
    guest.catch(() => {});
    await clock.run(6_000, () => false);
    return guest;
  };
  return { clock, environment, host, sockets, enter };
}

test("A guest enters with its key and token, and learns who it and the host are", async () => {
  const { sockets, enter } = world(() => entered()), key = randomBytes(32), token = randomBytes(16);
  const guest = await enter({ key, token });
  assert.equal(toHex(sockets[0].socket.sent[0]), toHex(join(1, key, token)));
  assert.equal(sockets[0].socket.binaryType, "arraybuffer");
  assert.equal(guest.host.service, "chat");
  assert.equal(guest.host.name, "Lynx");
  assert.equal(guest.host.peer, PEER_TEXT);
  assert.equal(toHex(guest.host.peerBytes), ID);
  assert.deepEqual([...guest.host.info], [["nigh", "chat send"]]);
  assert.equal(guest.peer, "ugq2dinbugq2dinbugq2dinbugq2dinbugq2dinbugq2dinbugqq");
});

test("A host that refuses says why", async () => {
  const { enter } = world(() => join(hex("02 03 00 00 00 3c"), string("wait a minute")));
  const error = await enter({ key: repeat(1, 32) }).catch((caught) => caught);
  assert.ok(error instanceof Refused);
  assert.deepEqual([error.stage, error.code, error.reason, error.seconds, error.words, error.message],
    ["enter", 3, "tooManyAttempts", 60, "wait a minute", "wait a minute"]);
});

test("What is no answer of a host fails", async () => {
  const answers = [null, "text", join(3), join(), join(1, repeat(0, 31)), entered(advertisement("v=1")),
    entered(advertisement("id=aaaa")),
    entered(advertisement(`id=${PEER_TEXT.replace("u", "1")}`)), join(1, repeat(0, 32), number(99, 2)),
      join(1, repeat(0, 70_000))];
  for (const answer of answers) {
    const { enter } = world(() => answer);
    await assert.rejects(enter({ key: repeat(1, 32), token: null }), (error) => !(error instanceof Refused));
  }
});

test("A conversation goes over the WebSocket, and over another one with the key alone when it breaks", async () => {
  const { clock, sockets, host, enter } = world(() => entered()), key = repeat(7, 32);
  const guest = await enter({ key, token: repeat(8, 16) });
  let conversation = null;
  guest.join({ name: "Puma", context: "x" }).then((value) => { conversation = value; });
  await clock.run(100);
  assert.equal(sockets.length, 1);
  conversation.send("one");
  await clock.run(3_000);
  sockets[0].socket.drop();
  conversation.send("two");
  await clock.run(1_000);
  assert.equal(conversation.state, "connected");
  assert.equal(toHex(sockets[1].socket.sent[0]), toHex(join(1, key)));
  assert.deepEqual(host.received[0].map(({ bytes }) => Buffer.from(bytes).toString()), ["one", "two"]);
  assert.deepEqual(host.faults, []);
});

test("A WebSocket that the host closed before anybody joined is opened again", async () => {
  const { clock, sockets, enter } = world(() => entered());
  const guest = await enter({ key: repeat(7, 32) });
  sockets[0].socket.drop();
  let conversation = null;
  guest.join({ name: "Puma", context: "x" }).then((value) => { conversation = value; });
  await clock.run(100);
  assert.equal(conversation.state, "connected");
  assert.equal(sockets.length, 2);
});

test("A key that the host has revoked ends the conversation with its words; a full host is asked again", async () => {
  let answer = entered();
  const { clock, sockets, enter } = world(() => answer), guest = await enter({ key: repeat(7, 32) });
  let conversation = null, reason = "";
  guest.join({ name: "Puma", context: "x" }).then((value) => { conversation = value; });
  await clock.run(3_000);
  conversation.onstate = (_, words) => { reason = words; };
  answer = join(hex("02 02 00 00 00 01"), string("full"));
  sockets[0].socket.drop();
  await clock.run(3_000);
  assert.equal(conversation.state, "reconnecting");
  answer = join(hex("02 04 00 00 00 00"), string("goodbye"));
  await clock.run(5_000);
  assert.deepEqual([conversation.state, reason], ["ended", "goodbye"]);
  await assert.rejects(guest.join({ name: "Puma", context: "x", timeout: 1_000 }).finally(clock.run(5_000)), Refused);
});

test("Names and contexts are checked before anything is sent", async () => {
  const { enter } = world(() => entered()), guest = await enter({ key: repeat(7, 32) });
  for (const name of ["", "a\nb", "é".repeat(32)]) {
    assert.equal(Guest.nameFits(name), false);
    await assert.rejects(guest.join({ name, context: "" }), RangeError);
  }
  assert.ok(Guest.nameFits("é".repeat(31)));
  await assert.rejects(guest.join({ name: "a", context: repeat(0, 4_097) }), RangeError);
});
