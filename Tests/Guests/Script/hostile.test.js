// Bytes from a host that breaks the rules: each breach ends the link and the conversation, and memory stays bounded.

import assert from "node:assert/strict";
import test from "node:test";
import { World, frame, hex, join, number, repeat, seededRandom, text, toHex } from "./support.js";

const PROTOCOL_VIOLATION = 1;

const standing = (main, bulk, mainGrant = 1 << 20, bulkGrant = 1 << 20) =>
  join(number(main, 8), number(bulk, 8), number(mainGrant, 8), number(bulkGrant, 8));
const open = (id, name = "") => frame(0x19, number(id, 4), 0, name.length, text(name));
const control = (id, ...rest) => frame(0x19, number(id, 4), ...rest);
const data = (id, bytes = "x") => frame(0x18, number(id, 4), typeof bytes === "string" ? text(bytes) : bytes);

// The host has the greater PeerID, so its streams are 1, 3, 5 …
const breaches = {
  "an unknown type": frame(0x7f),
  "a second hello": frame(0x01, repeat(0, 60)),
  "an invitation from the accepting side": frame(0x06, repeat(0, 54)),
  "a second acceptance": frame(0x07, repeat(0, 48)),
  "a pairing": frame(0x0a, repeat(0, 33)),
  "an offer of datagrams": frame(0x1a, repeat(0, 40)),
  "a frame that is too long": join(number(16_385, 3), 0x10),
  "the longest header": hex("ff ff ff 10"),
  "a close that is cut short": frame(0x02, 0),
  "a close that is too long": frame(0x02, number(0, 2), 0, 0),
  "a ping that is too short": frame(0x03, repeat(0, 7)),
  "a ping that is too long": frame(0x03, repeat(0, 1_033)),
  "a pong that is too short": frame(0x04, repeat(0, 7)),
  "an acknowledgement that is cut short": frame(0x05, repeat(0, 31)),
  "an acknowledgement that is too long": frame(0x05, standing(0, 0), number(1, 8), 0),
  "a count of messages that were not sent": frame(0x05, standing(1, 0)),
  "a huge count": frame(0x05, repeat(255, 32)),
  "a count of stream frames that is 0": frame(0x05, standing(0, 0), number(0, 8)),
  "a count of stream frames that were not sent": frame(0x05, standing(0, 0), number(1, 8)),
  "a grant that shrinks": frame(0x05, standing(0, 0, 0, 1 << 20)),
  "a message of kind 0": frame(0x16, 0, text("x")),
  "a message without its kind": frame(0x16),
  "a size of 0": frame(0x12, number(0, 4)),
  "a size beyond the limit": frame(0x12, number((16 << 20) + 1, 4)),
  "a size beyond the limit with the kind": frame(0x12, number(16 << 20, 4), 9),
  "a size that is cut short": frame(0x12, number(0, 3)),
  "a size with two kinds": frame(0x12, number(9, 4), 1, 1),
  "a piece of nothing": frame(0x14, text("x")),
  "an empty piece": join(frame(0x12, number(9, 4)), frame(0x14)),
  "a piece that is too long": join(frame(0x12, number(1, 4)), frame(0x14, text("xx"))),
  "a message within another one": join(frame(0x12, number(9, 4)), frame(0x10, text("x"))),
  "a begin within another one": join(frame(0x12, number(9, 4)), frame(0x12, number(9, 4))),
  "bytes of a stream that is not open": data(1),
  "an end of a stream that is not open": control(1, 2),
  "a stop of a stream that was never open": control(1, 4, 0),
  "a stop of an own stream that was never open": control(2, 4, 0),
  "a stream with the wrong number": open(3),
  "a stream with the guest's number": open(2),
  "a stream with number 0": open(0),
  "a stream twice": join(open(1), open(1)),
  "a stream with a control character": open(1, "a\nb"),
  "a stream with a name that is not UTF-8": frame(0x19, number(1, 4), 0, 1, 255),
  "a stream whose name is cut short": frame(0x19, number(1, 4), 0, 9, text("x")),
  "a stream for relays": frame(0x19, number(1, 4), 6, 2, 0),
  "a stream for an unknown purpose": frame(0x19, number(1, 4), 6, 99, 0),
  "an unknown kind of control": join(open(1), control(1, 7)),
  "a control without a kind": join(open(1), control(1)),
  "a stream frame without a number": frame(0x18, 0),
  "no bytes of a stream": join(open(1), data(1, "")),
  "bytes behind the end": join(open(1), control(1, 2), data(1)),
  "two ends": join(open(1), control(1, 2), control(1, 2)),
  "a cancel behind a finish": join(open(1), control(1, 2), control(1, 3, 0)),
  "a cancel that is cut short": join(open(1), control(1, 3, 5)),
  "a finish that is too long": join(open(1), control(1, 2, 0)),
  "a release by the side that opened the stream": join(open(1), control(1, 2), control(1, 5)),
  "a credit that shrinks": join(open(1), control(1, 1, number(9, 8))),
};

for (const [name, bytes] of Object.entries(breaches)) {
  test(`The guest ends the conversation after ${name}`, async () => {
    const world = new World(), { host, clock } = world, conversation = await world.join();
    conversation.onmessage = () => {};
    host.link.pipe.send(bytes);
    await clock.run(50);
    assert.equal(host.closes.at(-1), PROTOCOL_VIOLATION);
    assert.equal(conversation.state, "ended");
    await clock.run(10_000);
    assert.equal(world.dials, 1);
  });
}

test("The guest ends the conversation after more bytes than it has granted", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join();
  for (let sent = 0; sent < (1 << 20) + 40_000; sent += 16_004) host.link.pipe.send(frame(0x10, repeat(0, 16_000)));
  await clock.run(50);
  assert.equal(host.closes.at(-1), PROTOCOL_VIOLATION);
  assert.equal(conversation.state, "ended");
});

test("The guest ends the conversation after more bytes of a stream than it granted, read or not", async () => {
  for (const isStopped of [false, true]) {
    const world = new World(), { host, clock } = world, conversation = await world.join();
    conversation.onstream = (stream) => { if (isStopped) stream.stop(); };
    host.link.pipe.send(open(1));
    for (let sent = 0; sent < (256 << 10) + 40_000; sent += 16_000) host.link.pipe.send(data(1, repeat(0, 16_000)));
    await clock.run(50);
    assert.equal(host.closes.at(-1), PROTOCOL_VIOLATION);
  }
});

test("The guest ends the conversation after more streams than it accepts", async () => {
  const world = new World(), { host, clock } = world;
  await world.join();
  for (let index = 0; index < 32; index++) host.link.pipe.send(open(2 * index + 1));
  await clock.run(10);
  assert.equal(host.closes.length, 0);
  host.link.pipe.send(open(65));
  await clock.run(10);
  assert.equal(host.closes.at(-1), PROTOCOL_VIOLATION);
});

test("A release of the guest's stream before both ends is a breach", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join();
  conversation.openStream("x").finish();
  await clock.run(10);
  host.link.pipe.send(control(2, 5));
  await clock.run(10);
  assert.equal(host.closes.at(-1), PROTOCOL_VIOLATION);
});

test("Optional frames, and a credit or stop for a stream that was just forgotten, break no rule", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join();
  conversation.onstream = (stream) => stream.finish();
  host.link.pipe.send(join(frame(0x80, text("crossed")), frame(0x81, text("introduced")), frame(0xff), open(1),
    control(1, 2)));
  await clock.run(50);
  host.link.pipe.send(join(control(1, 4, 0), control(1, 1, number(1, 8))));
  await clock.run(50);
  assert.equal(conversation.state, "connected");
  assert.equal(host.closes.length, 0);
});

test("A guest that has written nothing yet refuses another magic, layout or security without a close frame",
  async () => {
  for (const bytes of ["48545450 01010000", "4e494748 02010000", "4e494748 01020000"]) {
    const world = new World(), { host, clock } = world;
    let received = 0;
    host.accept = (pipe) => {
      pipe.onbytes = (part) => { received += part.length; };
      pipe.send(hex(bytes));
    };
    await assert.rejects(world.join());
    await clock.run(10_000);
    assert.equal(received, 8);
  }
});

test("A guest refuses a hello that breaks a rule, or is another's", async () => {
  const hello = (change = () => {}, extra = join()) => {
    const world = new World();
    const original = world.host.hello;
    world.host.hello = () => {
      const bytes = original.call(world.host).slice(4);
      return frame(1, change(bytes) ?? bytes, extra);
    };
    return world;
  };
  const expected = [
    [1, hello((bytes) => bytes.subarray(0, 40))], [1, hello((bytes) => { bytes[0] = 0; })],
      [1, hello((bytes) => { bytes[48] = 16; })],
    [1, hello((bytes) => { bytes.set([0, 0, 31, 255], 46); })], [1, hello((bytes) => { bytes[60] = 10; })],
    [1, hello(() => {}, join(0x80, number(0, 2)))], [1, hello(() => {}, join(0x03, number(5, 2), repeat(0, 5)))],
    [1, hello(() => {}, join(0x02, number(6, 2), repeat(0, 6)))],
      [1, hello(() => {}, join(0x40, number(9, 2), repeat(0, 5)))],
    [1, hello((bytes) => bytes.subarray(0, bytes.length - 9))],
    [7, hello((bytes) => { bytes.set([2, 3]); })], [10, hello((bytes) => { bytes[6] ^= 1; })],
      [9, hello((bytes) => { bytes[56] ^= 1; })],
  ];
  for (const [index, [code, world]] of expected.entries()) {
    await assert.rejects(world.join(), `number ${index}`);
    await world.clock.run(10);
    assert.equal(world.host.closes.at(-1), code, `number ${index}`);
  }
  const world = hello(() => {}, join(0x40, number(5, 2), repeat(0, 5)));
  assert.equal((await world.join()).state, "connected");
});

test("An answer that is about something else, or that takes back what was acknowledged, is a breach", async () => {
  for (const answer of [frame(0x07, repeat(0, 48)), frame(0x10, text("x")), frame(0x08, repeat(0, 5)),
    frame(0x05, standing(0, 0))]) {
    const world = new World(), { host, clock } = world;
    host.answers = false;
    const joined = world.guest.join({ name: "P", context: "" });
    joined.catch(() => {});
    await clock.run(50);
    world.pipe.host.send(answer);
    await clock.run(50);
    await assert.rejects(joined);
    assert.equal(host.closes.at(-1), PROTOCOL_VIOLATION);
  }
  const world = new World(), { host, clock } = world, conversation = await world.join();
  conversation.send("x");
  await world.wait(conversation.flush());
  host.lanes[0].count = 0;
  world.cut();
  await clock.run(100);
  assert.equal(host.closes.at(-1), PROTOCOL_VIOLATION);
  assert.equal(conversation.state, "ended");
});

test("Pings that come faster than the pongs can leave end the link, and memory stays bounded", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join();
  let sent = 0;
  Object.defineProperty(world.pipe.guest, "bufferedAmount", { get: () => 1 << 20, set: () => {} });
  for (; sent < 1_000; sent++) host.link?.pipe.send(frame(3, repeat(0, 1_032)));
  await clock.run(10);
  assert.notEqual(conversation.state, "ended");
  assert.equal(host.closes.at(-1), 15);
});

test("A rule of groups that is broken ends the conversation as left", async () => {
  const kind1 = (...parts) => frame(0x16, 1, ...parts);
  const join1 = kind1(1, number(1, 4), 3, text("red"), number(0, 2));
  for (const bytes of [kind1(), kind1(1), kind1(1, number(1, 4), 0, number(0, 2)), join(join1, join1),
    kind1(2, number(1, 4)),
    kind1(3, number(1, 4), 0), kind1(4, number(1, 4)), kind1(1, number(1, 4), 3, text("red"), number(1_025, 2),
      repeat(0, 1_025)),
    join(...Array.from({ length: 65 }, (_, index) => kind1(1, number(index + 1, 4), 2, number(0x4141 + index, 2),
      number(0, 2))))]) {
    const world = new World(), { host, clock } = world, conversation = await world.join();
    host.link.pipe.send(bytes);
    await clock.run(50);
    assert.equal(conversation.state, "ended", toHex(bytes.subarray(0, 30)));
    assert.equal(host.closes.at(-1), 0);
  }
  const world = new World(), { host, clock } = world, conversation = await world.join();
  host.link.pipe.send(join(kind1(99), join1, kind1(4, number(1, 4), text("to nobody"))));
  await clock.run(50);
  assert.equal(conversation.state, "connected");
});

test("Random bytes and changed bytes never throw out of the guest, and never hang it", async () => {
  for (let seed = 1; seed <= 60; seed++) {
    const world = new World({ seed, latency: 0 }), { host, clock } = world, random = seededRandom(seed + 1_000);
    const draw = (limit) => Math.floor(random() * limit);
    const conversation = await world.join();
    conversation.onstream = (stream) => stream.read().catch(() => {});
    conversation.onoffer = (offer) => offer.accept().done.catch(() => {});
    const good = [open(1, "x"), data(1, "hello"), control(1, 2), frame(0x10, text("m")), frame(0x13, number(3, 4)),
      frame(0x15, text("abc")),
      frame(0x19, number(3, 4), 6, 1, 0), data(3, hex("01 00 00 00 07 01 00 00 00 01 00 00")),
        frame(5, standing(0, 0)), frame(3, repeat(0, 8)),
      frame(0x16, 1, 1, number(1, 4), 1, text("g"), number(0, 2))];
    const bytes = join(...good, ...good.slice(3, 6));
    for (let change = 0; change < seed % 4; change++) bytes[draw(bytes.length)] = draw(256);
    for (let at = 0; at < bytes.length && host.link;) {
      const length = 1 + Math.floor(random() * 40);
      host.link.pipe.send(bytes.subarray(at, at + length));
      at += length;
      await clock.run(0);
    }
    await clock.run(20);
    if (seed % 4 === 0) assert.equal(conversation.state, "connected");
    conversation.end();
  }
});
