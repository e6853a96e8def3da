// Streams: every byte once and in order over links that break, credit, and how they end.

import assert from "node:assert/strict";
import test from "node:test";
import { BufferFull } from "../../../Sources/Transports/Web/Script/nigh.js";
import { World, join, repeat, text } from "./support.js";

const pattern = (length, seed) => Uint8Array.from({ length }, (_, index) => (index * 31 + (index >> 8) * 7 + seed) & 255);

async function readAll(stream) {
  const parts = [];
  for (let bytes; (bytes = await stream.read()) !== null;) parts.push(bytes);
  return Buffer.concat(parts);
}

for (const seed of [1, 2, 3, 4, 5, 6]) {
  test(`Streams arrive whole over links that break (seed ${seed})`, async () => {
    const peer = seed % 2 === 0 ? repeat(0xa1, 32) : repeat(0xff, 32);
    const world = new World({ seed, latency: 3, splits: true, peer }), { host, clock } = world, conversation = await world.join();
    world.cutsLeft = 15;
    world.cut();
    const contents = Array.from({ length: 5 }, (_, index) => pattern(400_000 + 1_000 * index, index)), echoes = [];
    host.onstream = (stream) => {
      stream.onbytes = (bytes) => stream.write(bytes);
      stream.onend = () => stream.finish();
    };
    for (const [index, content] of contents.entries()) {
      const stream = conversation.openStream(`stream ${index}`);
      echoes.push(readAll(stream));
      (async () => {
        for (let at = 0; at < content.length;) {
          const length = 1 + Math.floor(world.random() * 30_000);
          await stream.write(content.subarray(at, at + length));
          at += length;
          if (world.random() < 0.3) await new Promise((resolve) => clock.set(resolve, world.random() * 400));
        }
        stream.finish();
      })();
    }
    const results = await world.wait(Promise.all(echoes));
    for (const [index, content] of contents.entries()) assert.ok(results[index].equals(Buffer.from(content)));
    await world.wait(conversation.leave());
    assert.deepEqual(host.faults, []);
    assert.equal(host.streams.size, 0);
    assert.ok(world.dials > 5, `only ${world.dials} links`);
  });
}

test("The host opens streams, which wait for a handler and are released once they are read", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join();
  const theirs = host.openStream("from the host");
  theirs.write(pattern(100_000, 1));
  theirs.finish();
  await clock.run(100);
  let stream = null;
  conversation.onstream = (opened) => { stream = opened; };
  assert.equal(stream.name, "from the host");
  stream.finish();
  await clock.run(100);
  assert.equal(theirs.isReleased, false);
  assert.equal((await readAll(stream)).length, 100_000);
  await clock.run(100);
  assert.equal(theirs.isReleased, true);
  assert.deepEqual(host.faults, []);
});

test("A sender keeps to the credit, and a reader that does not read slows the host", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join();
  let theirs = null;
  host.onstream = (stream) => {
    stream.reads = false;
    theirs = stream;
  };
  const stream = conversation.openStream("slow");
  let isWritten = false;
  stream.write(repeat(1, 600_000)).then(() => { isWritten = true; });
  await clock.run(1_000);
  assert.ok(theirs.length >= 256 << 10 && theirs.length < (256 << 10) + 16_384);
  assert.equal(isWritten, false);
  for (let index = 0; index < 1_000; index++) theirs.write(repeat(2, 1_000));
  await clock.run(1_000);
  assert.ok(theirs.sent >= 256 << 10 && theirs.sent < (256 << 10) + 16_384);
  let length = 0;
  const reading = (async () => { while (length < 1_000_000) length += (await stream.read()).length; })();
  await world.wait(reading);
  assert.equal(length, 1_000_000);
  const writes = Array.from({ length: 100 }, () => stream.write(repeat(1, 100_000)).catch((error) => error));
  await assert.rejects(stream.write(repeat(1, 1)), BufferFull);
  conversation.end();
  for (const result of await Promise.all(writes)) assert.ok(result instanceof Error);
  assert.deepEqual(host.faults, []);
});

test("Frames that are not acknowledged are bounded, and streams wait", async () => {
  const world = new World(), { host, clock } = world;
  host.streamWindow = 64 << 20;
  host.acknowledges = false;
  const conversation = await world.join();
  let theirs = null;
  host.onstream = (stream) => { theirs = stream; };
  const stream = conversation.openStream("x");
  (async () => { for (let index = 0; index < 200; index++) await stream.write(repeat(1, 100_000)); })();
  await clock.run(5_000);
  assert.ok(theirs.length <= 4 << 20);
  host.acknowledges = true;
  host.acknowledge();
  await clock.run(5_000);
  assert.equal(theirs.length, 20_000_000);
});

test("Cancel and stop carry their words, in both directions", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join();
  const theirs = [];
  host.onstream = (stream) => theirs.push(stream);
  const [a, b, c] = ["a", "b", "c"].map((name) => conversation.openStream(name));
  await clock.run(10);
  a.cancel("no more");
  b.stop("not wanted");
  theirs[2].stop("enough");
  await clock.run(100);
  assert.equal(theirs[0].end, "no more");
  assert.equal(theirs[1].stopped, "not wanted");
  await assert.rejects(a.write(text("x")), /cancelled/);
  await assert.rejects(b.read(), /stopped reading/);
  await assert.rejects(c.write(text("x")), /enough/);
  theirs[2].cancel("the end");
  theirs[0].write(text("still readable"));
  theirs[0].cancel("then cancelled");
  await clock.run(100);
  await assert.rejects(c.read(), /the end/);
  assert.equal(Buffer.from(await a.read()).toString(), "still readable");
  await assert.rejects(a.read(), /then cancelled/);
  b.finish();
  await clock.run(100);
  assert.equal(host.streams.size, 0);
  assert.deepEqual(host.faults, []);
});

test("At most as many streams are open as the host accepts", async () => {
  const world = new World(), { host, clock } = world;
  host.streamLimit = 2;
  host.onstream = (stream) => { stream.onend = () => stream.finish(); };
  const conversation = await world.join(), first = conversation.openStream("1");
  conversation.openStream("2");
  assert.throws(() => conversation.openStream("3"), /only 2/);
  first.finish();
  await clock.run(100);
  conversation.openStream("3");
  await clock.run(100);
  assert.deepEqual(host.faults, []);
});

test("When the conversation ends, readers and writers learn it", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join(), stream = conversation.openStream("x");
  const reading = stream.read().catch((error) => error), writing = stream.write(repeat(0, 1_000_000)).catch((error) => error);
  await clock.run(10);
  conversation.end("enough");
  assert.match((await reading).message, /left/);
  assert.match((await writing).message, /left/);
  await assert.rejects(stream.write(join(1)));
  stream.finish();
  stream.cancel();
  stream.stop();
  assert.throws(() => conversation.openStream("y"));
  await clock.run(10);
  assert.deepEqual(host.faults, []);
});
