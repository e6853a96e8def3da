// Messages: exactly once over links that break, in their order, within the limits. Time is virtual.

import assert from "node:assert/strict";
import test from "node:test";
import { BufferFull, Refused } from "../../../Sources/Transports/Web/Script/nigh.js";
import { World, frame, hex, join, number, repeat, text, toHex } from "./support.js";

const numbered = (index, length = 4) => join(number(index, 4), repeat(index % 251, length - 4));
const numbers = (messages) => messages.map(({ bytes }) => bytes[0] * 0x1000000 + bytes[1] * 0x10000 + bytes[2] * 256 + bytes[3]);
const upTo = (count) => Array.from({ length: count }, (_, index) => index);

for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
  test(`Messages arrive exactly once and in order over links that break (seed ${seed})`, async () => {
    const world = new World({ seed, latency: 3, splits: true }), { host, clock } = world;
    const conversation = await world.join(), received = { main: [], bulk: [] };
    conversation.onmessage = (bytes, { lane }) => received[lane].push({ bytes });
    world.cutsLeft = 25;
    world.cut();
    let count = 0;
    for (let index = 0; index < 300 || world.cutsLeft > 0; index++, count++) {
      const length = world.random() < 0.1 ? 20_000 + Math.floor(world.random() * 60_000) : 4 + Math.floor(world.random() * 500);
      conversation.send(numbered(index, length));
      conversation.send(numbered(index, 4), { lane: "bulk" });
      host.send(numbered(index, length));
      host.send(numbered(index, 40), 1);
      if (world.random() < 0.4) await clock.run(world.random() * 200);
    }
    await world.wait(conversation.flush());
    await clock.run(60_000, () => received.main.length >= count && received.bulk.length >= count);
    assert.deepEqual(numbers(host.received[0]), upTo(count));
    assert.deepEqual(numbers(host.received[1]), upTo(count));
    assert.deepEqual(numbers(received.main), upTo(count));
    assert.deepEqual(numbers(received.bulk), upTo(count));
    assert.deepEqual(host.faults, []);
    await clock.run(3_000, () => conversation.state === "connected");
    assert.ok(world.dials > 10, `only ${world.dials} links`);
    await world.wait(conversation.leave());
    await clock.run(100);
    assert.equal(host.closes.at(-1), 0);
  });
}

test("Large messages travel in pieces, both ways, and the lanes take turns", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join();
  const large = Uint8Array.from({ length: 3_000_000 }, (_, index) => (index * 7 + (index >> 8)) & 255), received = [];
  conversation.onmessage = (bytes) => received.push(bytes);
  conversation.send(large);
  conversation.send("small", { lane: "bulk" });
  host.send(large);
  const order = [];
  host.onmessage = (lane) => order.push(lane);
  await world.wait(conversation.flush());
  await clock.run(10_000, () => received.length > 0);
  assert.deepEqual(order, [1, 0]);
  assert.ok(Buffer.from(large).equals(Buffer.from(host.received[0][0].bytes)));
  assert.ok(Buffer.from(large).equals(Buffer.from(received[0])));
  assert.deepEqual(host.faults, []);
});

test("A sender waits for grants, and throws BufferFull when too much waits", async () => {
  const world = new World(), { host } = world;
  host.window = 65_536;
  host.acknowledges = false;
  const conversation = await world.join();
  assert.throws(() => { for (;;) conversation.send(repeat(1, 50_000)); }, BufferFull);
  await world.clock.run(1_000);
  assert.ok(host.lanes[0].bytesIn <= 65_536 + 16_388);
  assert.ok(conversation.waiting() >= 4 << 20 && conversation.waiting() < (4 << 20) + 51_000);
  assert.throws(() => { for (;;) conversation.send("", { lane: "bulk" }); }, BufferFull);
  host.acknowledges = true;
  host.acknowledge();
  await world.wait(conversation.flush());
  assert.equal(conversation.waiting("bulk"), 0);
  assert.deepEqual(host.faults, []);
});

test("Messages that nobody takes are not granted anew, and wait for the handler", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join();
  for (let index = 0; index < 3_000; index++) host.send(numbered(index, 1_000));
  await clock.run(2_000);
  const before = host.lanes[0].bytesOut;
  assert.ok(before < (1 << 20) + 2_000);
  const received = [];
  conversation.onmessage = (bytes) => received.push({ bytes });
  await clock.run(2_000);
  assert.deepEqual(numbers(received), upTo(3_000));
  assert.deepEqual(host.faults, []);
});

test("A message is longer than the host takes, or than a lane knows: sending throws", async () => {
  const world = new World();
  world.host.longestMessage = 65_536;
  const conversation = await world.join();
  conversation.send(repeat(1, 65_536));
  assert.throws(() => conversation.send(repeat(1, 65_537)), RangeError);
  assert.throws(() => conversation.groups.join("x".repeat(64)), RangeError);
  await world.wait(conversation.flush());
  assert.equal(world.host.received[0].length, 1);
});

test("Unreliable messages go now or not at all", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join(), received = [];
  conversation.onmessage = (bytes, { lane }) => received.push([Buffer.from(bytes).toString(), lane]);
  assert.equal(conversation.sendUnreliable("one"), true);
  host.write(host.link, frame(0x20, text("two")));
  await clock.run(10);
  assert.deepEqual(host.unreliable.map((bytes) => Buffer.from(bytes).toString()), ["one"]);
  assert.deepEqual(received, [["two", "unreliable"]]);
  world.isReachable = false;
  world.cut();
  await clock.run(100);
  assert.equal(conversation.sendUnreliable("lost"), false);
  assert.throws(() => conversation.sendUnreliable(repeat(0, 8_193)), RangeError);
});

test("A lost link is dialled at once, then after pauses that double up to 2 s, and given up after the grace time", async () => {
  const world = new World(), { clock } = world, conversation = await world.join(), states = [];
  conversation.onstate = (state) => states.push(state);
  await clock.run(5_000);
  world.isReachable = false;
  world.dials = 0;
  world.cut();
  await clock.run(1);
  assert.equal(world.dials, 1);
  await clock.run(250);
  assert.equal(world.dials, 2);
  await clock.run(500);
  assert.equal(world.dials, 3);
  await clock.run(10_000);
  assert.equal(world.dials, 8);
  world.environment.wake();
  await clock.run(1);
  assert.equal(world.dials, 9);
  world.isReachable = true;
  await clock.run(3_000);
  assert.deepEqual(states, ["reconnecting", "connected"]);
  world.isReachable = false;
  world.cut();
  conversation.send("too late");
  await clock.run(299_000);
  assert.equal(conversation.state, "reconnecting");
  await clock.run(5_000);
  assert.deepEqual(states, ["reconnecting", "connected", "reconnecting", "ended"]);
  assert.equal(world.environment.wakers.size, 0);
  assert.throws(() => conversation.send("late"));
  await assert.rejects(conversation.flush());
});

test("A silent link is pinged after 5 s and given up after 15 s", async () => {
  const world = new World(), { clock } = world, conversation = await world.join();
  await clock.run(60_000);
  assert.equal(world.dials, 1);
  world.pipe.host.isMute = true;
  await clock.run(14_000);
  assert.equal(world.dials, 1);
  await clock.run(2_000);
  assert.equal(world.dials, 2);
  assert.equal(conversation.state, "connected");
});

test("A device that slept finds out within 4 s that its link is dead, whether or not the browser says that it woke", async () => {
  for (const isToldOfIt of [true, false]) {
    const world = new World(), { clock } = world, conversation = await world.join();
    await clock.run(3_000);
    world.pipe.host.isMute = world.pipe.guest.isMute = true;
    clock.sleep(600_000);
    if (isToldOfIt) world.environment.wake();
    await clock.run(4_500, () => world.dials === 2);
    assert.equal(world.dials, 2);
    await clock.run(100);
    assert.equal(conversation.state, "connected");
    conversation.send("awake");
    await world.wait(conversation.flush());
  }
});

test("A link that works outlives a wake", async () => {
  const world = new World(), { clock } = world;
  await world.join();
  world.environment.wake();
  await clock.run(30_000);
  assert.equal(world.dials, 1);
});

test("A host that declines gives its words and the time to wait", async () => {
  const world = new World();
  world.host.decline = { code: 2, seconds: 2, words: "not\u0007 now" };
  const error = await world.join().catch((caught) => caught);
  assert.ok(error instanceof Refused);
  assert.deepEqual([error.stage, error.reason, error.seconds, error.words], ["join", "busy", 2, "not  now"]);
  world.host.decline = null;
  assert.equal((await world.join()).state, "connected");
  assert.deepEqual(world.host.attempts, [1, 2]);
});

test("An invitation is repeated on another link, for the same conversation", async () => {
  const world = new World(), { host, clock } = world;
  host.answers = false;
  let conversation = null;
  world.guest.join({ name: "Puma", context: "x" }).then((value) => { conversation = value; });
  await clock.run(1_000);
  host.answers = true;
  world.cut();
  await clock.run(2_000);
  assert.equal(conversation.state, "connected");
  assert.deepEqual(host.attempts, [1, 2]);
});

test("An invitation that nobody answers ends, and so does one that is taken back", async () => {
  const world = new World(), { host, clock } = world;
  host.answers = false;
  await assert.rejects(world.join({ timeout: 5_000 }));
  assert.ok(clock.now < 10_000);
  const controller = new AbortController(), joined = world.guest.join({ name: "P", context: "", signal: controller.signal });
  joined.catch(() => {});
  await clock.run(1_000);
  controller.abort();
  await assert.rejects(joined);
  await clock.run(10);
  assert.equal(host.closes.at(-1), 5);
});

test("A conversation that the host does not know any more is over", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join();
  host.conversation = null;
  world.cut();
  await clock.run(100);
  assert.equal(conversation.state, "ended");
});

test("A resume that is refused for another reason is tried again", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join();
  conversation.send("kept");
  host.decline = { code: 4, seconds: 1, words: "" };
  world.cut();
  await clock.run(900);
  assert.equal(world.dials, 2);
  host.decline = null;
  await world.wait(conversation.flush());
  assert.equal(host.received[0].length, 1);
  assert.equal(world.dials, 3);
});

test("A host of another incarnation has no conversation to resume", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join();
  host.incarnation = repeat(0xb3, 8);
  world.cut();
  await clock.run(100);
  assert.equal(conversation.state, "ended");
  assert.equal(host.closes.at(-1), 11);
});

test("Close codes end what the table of section 6 says", async () => {
  const ended = [0, 1, 5, 7, 8, 9, 11, 14, 16, 0x200, 0x300], kept = [2, 3, 4, 6, 10, 12, 13, 15, 17, 18, 99, 0x100, 0x400];
  for (const code of [...ended, ...kept]) {
    const world = new World(), { host, clock } = world, conversation = await world.join();
    const states = [];
    let reason = null;
    conversation.onstate = (state, words) => {
      states.push(state);
      reason ??= words;
    };
    host.write(host.link, frame(2, number(code, 2), 3, text("why")));
    await clock.run(10);
    assert.equal(states[0], ended.includes(code) ? "ended" : "reconnecting", `code ${code}`);
    assert.ok(reason.endsWith("why"));
    await clock.run(5_000);
    assert.equal(conversation.state, ended.includes(code) ? "ended" : "connected", `code ${code}`);
  }
});

test("On a resume, codes that end a request leave the conversation", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join();
  host.answers = false;
  world.cut();
  await clock.run(50);
  world.pipe.host.send(frame(2, number(14, 2), 0));
  await clock.run(10);
  assert.equal(conversation.state, "reconnecting");
  host.answers = true;
  await clock.run(3_000);
  assert.equal(conversation.state, "connected");
  host.answers = false;
  world.cut();
  await clock.run(50);
  world.pipe.host.send(frame(2, number(0, 2), 0));
  await clock.run(10);
  assert.equal(conversation.state, "ended");
});

test("A resume without an answer is given up after 5 s, and tried again", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join();
  host.answers = false;
  world.cut();
  await clock.run(5_100);
  assert.equal(host.closes.at(-1), 13);
  host.answers = true;
  await clock.run(3_000);
  assert.equal(conversation.state, "connected");
});

test("Leaving sends what waits, over another link if need be, and gives up after 5 s", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join();
  conversation.send(repeat(1, 2_000_000));
  world.cut();
  await world.wait(conversation.leave());
  assert.equal(host.received[0].length, 1);
  assert.equal(conversation.state, "ended");
  await clock.run(10);
  assert.equal(host.closes.at(-1), 0);

  const second = await world.join();
  world.isReachable = false;
  second.send("never");
  world.cut();
  const before = clock.now;
  await world.wait(second.leave());
  assert.equal(clock.now - before, 5_000);
});

test("A ping measures the round trip", async () => {
  const world = new World({ latency: 20 }), conversation = await world.join();
  assert.equal(await world.wait(conversation.ping()), 40);
});

test("A handler that throws disturbs nothing, and its error comes out", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join(), caught = [];
  const listeners = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.once("uncaughtException", (error) => caught.push(error.message));
  conversation.onmessage = () => { throw new Error("mine"); };
  host.send(text("x"));
  await clock.run(200);
  for (const listener of listeners) process.on("uncaughtException", listener);
  assert.deepEqual(caught, ["mine"]);
  assert.equal(host.lanes[0].acknowledged, 1);
  assert.equal(conversation.state, "connected");
});

test("A host without streams, kinds and files gets none", async () => {
  const world = new World(), { host, clock } = world;
  host.abilities = 0;
  const conversation = await world.join();
  assert.equal(conversation.canSendFiles, false);
  assert.throws(() => conversation.openStream("x"));
  assert.throws(() => conversation.groups.join("x"));
  conversation.send("x");
  await world.wait(conversation.flush());
  await world.wait(conversation.leave());
  assert.deepEqual(host.faults, []);
  assert.equal(toHex(host.received[0][0].bytes), toHex(hex("78")));
  await clock.run(1);
});
