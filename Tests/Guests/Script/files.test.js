// Transfers of files, in both directions, against a small other side that knows section 4.6 on its own.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import { World, hex, join, number, repeat, text, toHex } from "./support.js";

const sha256 = (bytes) => new Uint8Array(createHash("sha256").update(bytes).digest());
const pattern = (length, seed) => Uint8Array.from({ length },
  (_, index) => (index * 31 + (index >> 8) * 7 + (index >> 16) + seed) & 255);
const readNumber = (bytes, at, length) => bytes.subarray(at, at + length).reduce((sum, byte) => sum * 256 + byte, 0);
const record = (kind, ...parts) => join(kind, number(join(...parts).length, 4), ...parts);
const fault = (reason, words) => join(reason, number(words.length, 2), text(words));

/** Like the browser's File, read at once. */
const file = (name, bytes, more = {}) => ({
  name, size: bytes.length, type: "", lastModified: 1_000,
  slice: (from, to) => ({ arrayBuffer: async () => bytes.slice(from, to).buffer }), ...more,
});

/** Cuts a stream's bytes into records. */
function recordReader(stream, receive) {
  let rest = new Uint8Array(0);
  stream.onbytes = (bytes) => {
    rest = join(rest, bytes);
    while (rest.length >= 5 && rest.length >= 5 + readNumber(rest, 1, 4)) {
      const length = readNumber(rest, 1, 4), payload = rest.slice(5, 5 + length), kind = rest[0];
      rest = rest.slice(5 + length);
      receive(kind, payload);
    }
  };
}

/** Receives files as section 4.6 says. `there`: what is there of each file, by its path. */
class Receiver {
  items = [];
  kept = [];
  missing = [];
  records = [];
  dataBytes = 0;
  wholes = new Map();
  there = new Map();
  damages = 0;
  stop = null;
  accepts = true;

  constructor(host) {
    host.onstream = (stream) => {
      this.stream = stream;
      recordReader(stream, (kind, payload) => this.#receive(kind, payload));
      stream.onend = () => stream.finish();
    };
  }

  say(kind, ...parts) { this.stream.write(record(kind, ...parts)); }

  #report(index) {
    const { path, size } = this.items[index], bytes = this.there.get(path) ?? new Uint8Array(0);
    this.items[index].bytes = Buffer.alloc(size);
    if (this.wholes.has(path)) return this.say(19, number(index, 4), this.wholes.get(path));
    if (this.compares && !this.items[index].isCompared) {
      this.items[index].isCompared = true;
      return this.say(23, number(index, 4));
    }
    this.items[index].bytes.set(bytes.subarray(0, size));
    for (let at = 0; at < bytes.length; at += 1 << 20) {
      const piece = bytes.subarray(at, at + (1 << 20));
      this.say(17, number(index, 4), number(piece.length, 4), sha256(piece));
    }
    this.say(18, number(index, 4));
  }

  #receive(kind, payload) {
    if (kind !== 4) this.records.push(kind);
    const index = readNumber(payload, 0, 4);
    switch (kind) {
    case 1:
      this.version = payload[0];
      this.count = readNumber(payload, 1, 4);
      break;
    case 2: {
      const pathLength = readNumber(payload, 17, 2);
      this.items.push({ kind: payload[0], size: readNumber(payload, 1, 8), modified: toHex(payload.subarray(9, 17)),
        path: Buffer.from(payload.subarray(19, 19 + pathLength)).toString() });
      if (this.items.length < this.count || !this.accepts) return;
      this.say(16);
      this.items.forEach((_, index) => this.#report(index));
      break;
    }
    case 3:
      this.at = { index, offset: readNumber(payload, 4, 8) };
      break;
    case 4:
      this.dataBytes += payload.length;
      assert.ok(payload.length <= 131_072);
      this.items[this.at.index].bytes.set(payload, this.at.offset);
      this.at.offset += payload.length;
      this.ondata?.();
      break;
    case 5: {
      const item = this.items[index];
      assert.equal(readNumber(payload, 4, 8), item.size);
      if (this.damages > 0) {
        this.damages -= 1;
        return this.#report(index);
      }
      assert.equal(toHex(sha256(item.bytes)), toHex(payload.subarray(12)));
      this.#keep(index);
      break;
    }
    case 6: this.#keep(index); break;
    case 7: this.missing.push([index, payload[4], Buffer.from(payload.subarray(7)).toString()]); break;
    case 8:
      if (toHex(payload.subarray(12)) === toHex(this.compares)) this.#keep(index);
      else this.#report(index);
      break;
    case 32: this.stop = [payload[0], Buffer.from(payload.subarray(3)).toString()]; break;
    }
  }

  #keep(index) {
    this.kept.push(index);
    this.say(21, number(index, 4));
  }
}

for (const seed of [1, 2, 3, 4]) {
  test(`Files are sent whole over links that break (seed ${seed})`, async () => {
    const world = new World({ seed, latency: 5, splits: true }), { host } = world, receiver = new Receiver(host);
    const conversation = await world.join();
    world.cutsLeft = 8;
    world.cut();
    const contents = [pattern(1_500_000, seed), text("small"), new Uint8Array(0), pattern(131_072, 9)];
    const transfer = conversation.sendFiles(contents.map((bytes, index) => file(`${index}.bin`, bytes)));
    const files = await world.wait(transfer.done);
    assert.deepEqual(files.map(({ name, state }) => [name, state]),
      contents.map((_, index) => [`${index}.bin`, "kept"]));
    for (const [index, bytes] of contents.entries()) assert.ok(receiver.items[index].bytes.equals(Buffer.from(bytes)));
    assert.equal(receiver.version, 2);
    assert.equal(receiver.items[0].modified, toHex(number(1_000_000_000, 8)));
    assert.equal(transfer.bytes, transfer.size);
    await world.wait(conversation.leave());
    assert.equal(host.streams.size, 0);
    assert.deepEqual(host.faults, []);
  });
}

test("Only what the receiver lacks or has otherwise is sent", async () => {
  const world = new World(), { host } = world, receiver = new Receiver(host), conversation = await world.join();
  const bytes = pattern(3_500_000, 1), there = bytes.slice(0, 2_500_000);
  there[1_200_000] ^= 1;
  receiver.there.set("a", there);
  receiver.there.set("b", bytes);
  receiver.wholes.set("c", sha256(bytes));
  receiver.wholes.set("d", sha256(text("other")));
  await world.wait(conversation.sendFiles(["a", "b", "c",
    "d"].map((name) => file(name, name === "d" ? text("this") : bytes))).done);
  assert.deepEqual(receiver.kept, [0, 1, 2, 3]);
  assert.equal(receiver.dataBytes, (1 << 20) + 1_000_000 + 4);
  assert.ok(receiver.items[0].bytes.equals(Buffer.from(bytes)));
  assert.deepEqual(receiver.records, [1, 2, 2, 2, 2, 3, 3, 5, 5, 6, 3, 5]);
});

test("A receiver that compares gets the hash, and the file only if it is another", async () => {
  const world = new World(), { host } = world, receiver = new Receiver(host), conversation = await world.join();
  receiver.compares = sha256(text("same"));
  await world.wait(conversation.sendFiles([file("a", text("same")), file("b", text("else"))]).done);
  assert.deepEqual(receiver.records, [1, 2, 2, 8, 8, 3, 5]);
  assert.deepEqual(receiver.kept, [0, 1]);
});

test("A damaged file is sent again, at most four times", async () => {
  for (const [damages, state] of [[3, "kept"], [9, "failed"]]) {
    const world = new World(), { host } = world, receiver = new Receiver(host), conversation = await world.join();
    receiver.damages = damages;
    const [result] = await world.wait(conversation.sendFiles([file("a", text("bytes"))]).done);
    assert.equal(result.state, state);
    assert.equal(receiver.missing.length, state === "failed" ? 1 : 0);
  }
});

test("A file that cannot be read any more fails, and the others arrive", async () => {
  const world = new World(), { host } = world, receiver = new Receiver(host), conversation = await world.join();
  const slice = () => ({ arrayBuffer: () => Promise.reject(new Error("changed")) });
  const broken = file("a", text("bytes"), { slice });
  const files = await world.wait(conversation.sendFiles([broken, file("b", text("x"))]).done);
  assert.deepEqual(files.map(({ state }) => state), ["failed", "kept"]);
  assert.equal(receiver.missing[0][1], 5);
});

test("A sender that cancels, and a receiver that declines, give their words", async () => {
  const world = new World(), { host, clock } = world, receiver = new Receiver(host), conversation = await world.join();
  receiver.accepts = false;
  const transfer = conversation.sendFiles([file("a", text("bytes"))]);
  await clock.run(100);
  transfer.cancel("changed my mind");
  await assert.rejects(transfer.done, { reason: "cancelled" });
  await clock.run(100);
  assert.deepEqual(receiver.stop, [1, "changed my mind"]);

  const second = conversation.sendFiles([file("a", text("bytes"))]);
  await clock.run(100);
  receiver.say(32, fault(2, "no thanks"));
  await assert.rejects(world.wait(second.done), { reason: "declined", words: "no thanks" });
  await clock.run(100);
  assert.equal(host.streams.size, 0);

  receiver.items = [];
  receiver.accepts = true;
  const third = conversation.sendFiles([file("a", pattern(3_000_000, 1))]);
  receiver.ondata = () => third.cancel("in the middle");
  await assert.rejects(world.wait(third.done), { reason: "cancelled" });
  await clock.run(100);
  assert.equal(receiver.stream.end, "in the middle");
  assert.equal(host.streams.size, 0);
  assert.deepEqual(host.faults, []);
});

test("A receiver that pauses, fails a file or breaks a rule is heard", async () => {
  const world = new World(), { host, clock } = world, receiver = new Receiver(host), conversation = await world.join();
  receiver.accepts = false;
  const transfer = conversation.sendFiles([file("a", text("bytes")), file("b", text("x"))]);
  await clock.run(100);
  receiver.say(33, number(4, 2), text("full"));
  await clock.run(10);
  assert.equal(transfer.paused, "full");
  receiver.say(34);
  receiver.say(16);
  receiver.say(22, number(0, 4), fault(4, "no space"));
  await clock.run(10);
  assert.equal(transfer.paused, null);
  assert.deepEqual([transfer.files[0].state, transfer.files[0].words], ["failed", "no space"]);
  receiver.say(21, number(1, 4));
  await assert.rejects(world.wait(transfer.done), { reason: "violation" });
  await clock.run(10);
  assert.equal(receiver.stop[0], 9);
  assert.equal(conversation.state, "connected");
});

test("Reports that break a rule stop the transfer", async () => {
  const have = (index, length) => record(17, number(index, 4), number(length, 4), repeat(0, 32));
  const ready = (index) => record(18, number(index, 4));
  const reports = [have(0, 6), have(0, 0), join(have(0, 2), have(0, 2)), join(have(0, 2), ready(1)), ready(2),
    have(0, 1 << 21),
    join(have(0, 5), record(19, number(0, 4), repeat(0, 32))), record(16), record(21, number(0, 4)), record(3),
    record(255),
    record(18, number(0, 3)), record(17, number(0, 4), number(5, 4), repeat(0, 31))];
  for (const report of reports) {
    const world = new World(), { host, clock } = world, receiver = new Receiver(host);
    const conversation = await world.join();
    receiver.accepts = false;
    const transfer = conversation.sendFiles([file("a", text("bytes")), file("b", text("x"))]);
    await clock.run(10);
    receiver.stream.write(join(record(16), report));
    await assert.rejects(world.wait(transfer.done), { reason: "violation" }, toHex(report));
    await clock.run(10);
    assert.equal(receiver.stop[0], 9);
    assert.equal(conversation.state, "connected");
  }
});

// Receiving

const UNKNOWN = hex("80 00 00 00 00 00 00 00");
const item = (kind, size, path, type = "") => record(2, kind, number(size, 8), UNKNOWN, number(text(path).length, 2),
  text(path),
  type.length, text(type), number(0, 2));

/** Offers files to the guest as section 4.6 says. */
function offer(host, contents, { version = 1 } = {}) {
  const stream = host.openStream("files", version === 1 ? 1 : 8), said = { records: [], stop: null, stream };
  stream.write(record(1, version, number(contents.length, 4), number(0, 2)));
  for (const { kind = 0, path, bytes, type } of contents) stream.write(item(kind, bytes.length, path, type));
  const left = new Set(contents.keys());
  recordReader(stream, (kind, payload) => {
    const index = readNumber(payload, 0, 4);
    said.records.push([kind, index]);
    if (kind === 18) {
      const { bytes, hash } = contents[index];
      stream.write(record(3, number(index, 4), number(0, 8)));
      for (let at = 0; at < bytes.length; at += 131_072) stream.write(record(4, bytes.subarray(at, at + 131_072)));
      stream.write(record(5, number(index, 4), number(bytes.length, 8), hash ?? sha256(bytes)));
    }
    if (kind === 21 || kind === 22) left.delete(index);
    if (kind === 22) said.failure = [payload[4], Buffer.from(payload.subarray(7)).toString()];
    if (kind === 32) said.stop = [payload[0], Buffer.from(payload.subarray(3)).toString()];
    if (left.size === 0) stream.finish();
  });
  stream.onend = () => { if (stream.ownEnd === null) stream.finish(); };
  return said;
}

for (const seed of [1, 2, 3, 4]) {
  test(`Files are received whole over links that break (seed ${seed})`, async () => {
    const world = new World({ seed, latency: 5, splits: true }), { host } = world, conversation = await world.join();
    world.cutsLeft = 8;
    world.cut();
    const contents = [{ path: "large", bytes: pattern(2_500_000, seed), type: "image/png" },
      { path: "empty", bytes: new Uint8Array(0) },
      { kind: 1, path: "folder", bytes: new Uint8Array(0) },
        { path: "folder/.../\u202e..evil.html", bytes: text("<script>"), type: "text/html" }];
    const said = offer(host, contents, { version: seed % 2 + 1 });
    let transfer = null;
    conversation.onoffer = (offered) => {
      assert.deepEqual(offered.files.map(({ name, size }) => [name, size]),
        [["large", 2_500_000], ["empty", 0], ["folder", 0], ["_..evil.html", 8]]);
      transfer = offered.accept();
    };
    await world.clock.run(60_000, () => transfer !== null);
    const files = await world.wait(transfer.done);
    assert.ok(Buffer.from(await files[0].blob.arrayBuffer()).equals(Buffer.from(contents[0].bytes)));
    assert.deepEqual(files.map(({ state, blob }) => [state, blob?.type]),
      [["kept", "image/png"], ["kept", "application/octet-stream"], ["kept", undefined],
      ["kept", "application/octet-stream"]]);
    assert.equal(said.records.filter(([kind]) => kind === 21).length, 4);
    await world.clock.run(3_000);
    assert.equal(host.streams.size, 0);
    assert.deepEqual(host.faults, []);
  });
}

test("A file with another hash is asked for again, twice at most", async () => {
  const world = new World(), { host } = world, conversation = await world.join();
  const said = offer(host, [{ path: "a", bytes: text("x"), hash: repeat(0, 32) }]);
  const offered = await new Promise((resolve) => { conversation.onoffer = resolve; world.clock.run(100); });
  const [result] = await world.wait(offered.accept().done);
  assert.equal(result.state, "failed");
  assert.equal(result.blob, undefined);
  assert.deepEqual(said.records.map(([kind]) => kind), [16, 18, 18, 18, 22]);
  assert.equal(said.failure[0], 6);
});

test("An offer can be declined, taken back, or cancelled while it comes", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join(), offers = [];
  conversation.onoffer = (offered) => offers.push(offered);
  const contents = [{ path: "a", bytes: pattern(5_000_000, 1) }];
  const first = offer(host, contents);
  await clock.run(100);
  offers[0].decline("not now");
  await clock.run(100);
  assert.deepEqual(first.stop, [2, "not now"]);

  const second = offer(host, contents);
  await clock.run(100);
  second.stream.write(record(32, fault(1, "taken back")));
  second.stream.finish();
  await world.wait(offers[1].ended);
  await assert.rejects(offers[1].accept().done, { reason: "cancelled", words: "taken back" });

  const third = offer(host, contents);
  await clock.run(100);
  const transfer = offers[2].accept();
  transfer.onprogress = () => { if (transfer.bytes > 100_000) transfer.cancel(); };
  await assert.rejects(world.wait(transfer.done), { reason: "cancelled" });
  await clock.run(1_000);
  assert.equal(third.stop[0], 1);
  assert.equal(host.streams.size, 0);
  assert.deepEqual(host.faults, []);
});

test("Files that are too large are refused one by one", async () => {
  const world = new World(), { host, clock } = world, conversation = await world.join();
  const stream = host.openStream("files", 1), kinds = [];
  recordReader(stream, (kind, payload) => kinds.push([kind, readNumber(payload, 0, 4)]));
  stream.write(join(record(1, 1, number(2, 4), number(0, 2)), item(0, (512 << 20) + 1, "huge"), item(0, 1, "a")));
  let transfer = null;
  conversation.onoffer = (offered) => { transfer = offered.accept(); };
  await clock.run(100);
  assert.equal(transfer.files[0].state, "failed");
  assert.deepEqual(kinds, [[16, 0], [22, 0], [18, 1]]);
});

test("An offer that does not come whole is stopped after 30 s", async () => {
  const world = new World(), { host, clock } = world;
  await world.join();
  const stream = host.openStream("files", 1);
  let stop = null;
  recordReader(stream, (kind, payload) => { if (kind === 32) stop = payload[0]; });
  stream.write(record(1, 1, number(2, 4), number(0, 2)));
  await clock.run(31_000);
  assert.equal(stop, 1);
});

test("What breaks a rule of files stops the transfer, and not the conversation", async () => {
  const offerOf = (count, version = 1) => record(1, version, number(count, 4), number(0, 2));
  const before = [
    item(0, 1, "a"), offerOf(0), offerOf(100_001), offerOf(1, 2), record(16), record(9), record(1),
    join(1, number(16_385, 4)),
    join(4, number(131_073, 4)), join(offerOf(1), offerOf(1)), join(offerOf(1), item(2, 1, "a")),
    join(offerOf(1), item(1, 1, "a")),
    join(offerOf(1), item(0, 2 ** 46, "a")), join(offerOf(1), item(0, 1, "")),
    join(offerOf(1), item(0, 1, "a").subarray(0, 20), repeat(0, 99)),
    join(offerOf(1), item(0, 1, "a"), record(3, number(0, 4), number(0, 8))),
    join(offerOf(2), item(0, 1, "a"), record(255)),
  ];
  const begin = (index, offset) => record(3, number(index, 4), number(offset, 8));
  const after = [
    record(4, text("x")), begin(5, 0), begin(0, 1), join(begin(0, 0), record(4)),
    join(begin(0, 0), record(4, text("more than one"))),
    record(5, number(0, 4), number(9, 8), repeat(0, 32)), record(6, number(0, 4)),
    record(8, number(0, 4), number(1, 8), repeat(0, 32)),
    record(18, number(0, 4)), record(7, number(9, 4), fault(0, "")), record(7, number(0, 4), 0, number(99, 2)),
    record(34, 1), record(2),
  ];
  const breaches = [...before.map((bytes) => [bytes, false]), ...after.map((bytes) => [bytes, true])];
  for (const [bytes, isAccepted] of breaches) {
    const world = new World(), { host, clock } = world, conversation = await world.join(),
      stream = host.openStream("files", 1);
    let stop = null;
    recordReader(stream, (kind, payload) => { if (kind === 32) stop = payload[0]; });
    conversation.onoffer = (offered) => { if (isAccepted) offered.accept().done.catch(() => {}); };
    if (isAccepted) stream.write(join(offerOf(1), item(0, 1, "a")));
    await clock.run(10);
    stream.write(bytes);
    await clock.run(10);
    assert.equal(stop, 9, toHex(bytes.subarray(0, 60)));
    assert.equal(conversation.state, "connected");
    assert.deepEqual(host.faults, []);
  }
});
