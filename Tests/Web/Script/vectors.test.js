// Plays the examples of docs/reference/PROTOCOL.md.

import assert from "node:assert/strict";
import test from "node:test";
import { Guest, SHA256 } from "../../../Sources/Transports/Web/Script/nigh.js";
import { Clock, frame, hex, join, number, pipePair, repeat, text, toHex } from "./support.js";

/** A guest whose random bytes are those of the example in section 9, and the raw pipe at its other end. */
async function example(context = "hi there") {
  const clock = new Clock(), environment = clock.environment(), pipes = pipePair(clock, { latency: 0 });
  const drawn = [repeat(0xb1, 8), repeat(0xc1, 8)];
  environment.randomBytes = () => drawn.shift();
  const host = { service: "chat", peerBytes: repeat(0xa2, 32) };
  const guest = new Guest({ dial: async () => pipes.guest, peer: repeat(0xa1, 32), host, environment });
  let received = new Uint8Array(0);
  pipes.host.onbytes = (bytes) => { received = join(received, bytes); };
  const joined = guest.join({ name: "Puma's den", context, timeout: 30_000 });
  joined.catch(() => {});
  return {
    clock, joined,
    send: async (...parts) => {
      pipes.host.send(join(...parts));
      await clock.run(0);
    },
    take: async (milliseconds = 0) => {
      await clock.run(milliseconds);
      const bytes = received;
      received = new Uint8Array(0);
      return toHex(bytes);
    },
  };
}

const HELLO = "00 00 49 01 01 01 00 00 00 01" + "a2".repeat(32) + "b2".repeat(8)
  + "00 00 40 00 01 00 00 00 04 63 68 61 74 04 4c 79 6e 78 02 00 06 01 00 00 04 00 00";
const ACCEPT = "00 00 30 07" + "c1".repeat(8) + "00".repeat(8) + "00".repeat(16)
  + "00 00 00 00 00 10 00 00 00 00 00 00 00 10 00 00";

/** The same, joined, with other abilities in the host's hello. */
async function joinedExample(abilities = "00 00 08 07") {
  const peer = await example();
  await peer.send(hex("4e49474801010000"), hex(HELLO.replace("00 00 00 01", abilities)), hex(ACCEPT));
  await peer.take();
  return { ...peer, conversation: await peer.joined };
}

test("A conversation of section 9 has the bytes of the page", async () => {
  const { clock, joined, send, take } = await example();
  assert.equal(await take(), "4e49474801010000");
  await send(hex("4e49474801010000"));
  assert.equal(await take(), toHex(join(hex("00 00 4f 01 01 01 00 00 08 07"), repeat(0xa1, 32), repeat(0xb1, 8),
    hex("00 00 40 00 01 00 00 00 04"), text("chat"), 10, text("Puma's den"), hex("02 00 06 00 20 00 04 00 00"))));
  await send(hex(HELLO), hex("00 00 08 03 80 00 00 00 00 00 00 00"));
  assert.equal(await take(), toHex(join(hex("00 00 3e 06"), repeat(0xc1, 8), number(1, 8), repeat(0, 16),
    hex("00 00 00 00 00 10 00 00 00 00 00 00 00 10 00 00 00 00 75 30 00 08"), text("hi there"),
    hex("00 00 08 04 80 00 00 00 00 00 00 00"))));
  await send(hex(ACCEPT));
  const conversation = await joined;
  assert.equal(conversation.hostName, "Lynx");
  conversation.send("hello");
  assert.equal(await take(), toHex(join(hex("00 00 05 10"), text("hello"))));
  await send(hex("00 00 20 05 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 00"),
    hex("00 00 00 00 00 10 00 09 00 00 00 00 00 10 00 00"));
  assert.equal(conversation.waiting(), 0);
  await conversation.leave();
  assert.equal(await take(), "00000302000000");
  assert.equal(clock.now, 0);
});

test("A message is acknowledged within 100 ms, with its bytes granted again", async () => {
  const { send, take, conversation } = await joinedExample();
  const messages = [];
  conversation.onmessage = (bytes, { lane }) => messages.push([Buffer.from(bytes).toString(), lane]);
  await send(hex("00 00 05 10"), text("hello"));
  assert.deepEqual(messages, [["hello", "main"]]);
  assert.equal(await take(80), "");
  assert.equal(await take(20), toHex(join(hex("00 00 20 05"), number(1, 8), number(0, 8), number(0x100009, 8), number(0x100000, 8))));
});

test("Messages of unknown kinds, whole and in pieces (4.1), count and go no further", async () => {
  const { send, take, conversation } = await joinedExample();
  const messages = [];
  conversation.onmessage = (bytes) => messages.push(bytes);
  await send(hex("00 00 03 16 01"), text("hi"), hex("00 00 05 13 00 04 00 00 ff"));
  for (let sent = 0; sent < 262_144; sent += 16_384) await send(frame(0x15, repeat(7, 16_384)));
  assert.equal((await take(100)).slice(-80), toHex(join(hex("00 00 20 05"), number(1, 8), number(1, 8),
    number(0x100000 + 7, 8), number(0x100000 + 9 + 16 * 16_388, 8))).slice(-80));
  assert.deepEqual(messages, []);
});

test("The stream of 4.5 has the bytes of the page", async () => {
  // The page shows the side with the greater PeerID, and the guest of section 9 has the smaller one: number 2.
  const { send, take, conversation } = await joinedExample();
  const stream = conversation.openStream("hello");
  await stream.write(text("Hi"));
  stream.finish();
  assert.equal(await take(), toHex(join(hex("00 00 0b 19 00 00 00 02 00 05"), text("hello"), hex("00 00 06 18 00 00 00 02"),
    text("Hi"), hex("00 00 05 19 00 00 00 02 02"))));
  await send(hex("00 00 07 18 00 00 00 02"), text("Bye"), hex("00 00 05 19 00 00 00 02 02"), hex("00 00 05 19 00 00 00 02 05"));
  assert.equal(Buffer.from(await stream.read()).toString(), "Bye");
  assert.equal(await stream.read(), null);
  assert.equal(await take(100), toHex(join(hex("00 00 28 05"), number(0, 16), number(0x100000, 8), number(0x100000, 8), number(3, 8))));
  // A stop for a stream that was just forgotten breaks no rule.
  await send(frame(0x19, number(2, 4), 4, 0));
  assert.equal(conversation.state, "connected");
});

test("The files of 4.6 have the bytes of the page", async () => {
  const { send, take, conversation } = await joinedExample("00 00 00 03");
  const hello = text("hello");
  const file = { name: "a.txt", size: 5, slice: (from, to) => ({ arrayBuffer: async () => hello.slice(from, to).buffer }) };
  const transfer = conversation.sendFiles([file]);
  /** The bytes of the stream, out of its frames. */
  const streamBytes = (frames) => {
    let bytes = "";
    for (let at = 0; at < frames.length;) {
      const length = parseInt(frames.slice(at, at + 6), 16) * 2, type = frames.slice(at + 6, at + 8);
      if (type === "18") bytes += frames.slice(at + 16, at + 8 + length);
      at += 8 + length;
    }
    return bytes;
  };
  const opened = await take();
  assert.ok(opened.startsWith(toHex(frame(0x19, number(2, 4), 6, 1, 5, text("files")))));
  assert.equal(streamBytes(opened), toHex(hex("01 00 00 00 07 01 00 00 00 01 00 00 02 00 00 00 1b 00 00 00 00 00 00 00 00 05"
    + "80 00 00 00 00 00 00 00 00 05 61 2e 74 78 74 00 00 00")));
  const reply = (bytes) => send(frame(0x18, number(2, 4), hex(bytes)));
  await reply("10 00 00 00 00");
  await reply("12 00 00 00 04 00 00 00 00");
  assert.equal(streamBytes(await take()), toHex(hex("03 00 00 00 0c 00 00 00 00 00 00 00 00 00 00 00 00 04 00 00 00 05"
    + "68 65 6c 6c 6f 05 00 00 00 2c 00 00 00 00 00 00 00 00 00 00 00 05 2c f2 4d ba 5f b0 a3 0e 26 e8 3b 2a c5 b9 e2 9e"
    + "1b 16 1e 5c 1f a7 42 5e 73 04 33 62 93 8b 98 24")));
  await reply("15 00 00 00 04 00 00 00 00");
  assert.ok((await take()).endsWith("00000519000000020" + "2"));
  await send(frame(0x19, number(2, 4), 2), frame(0x19, number(2, 4), 5));
  assert.deepEqual((await transfer.done).map(({ name, state }) => [name, state]), [["a.txt", "kept"]]);
});

test("The groups of 4.8 have the bytes of the page", async () => {
  const { send, take, conversation } = await joinedExample();
  const { groups } = conversation, changes = [];
  groups.onchange = (name, { isMember, context, reason }) => changes.push([name, isMember, toHex(context), reason]);
  const kind1 = (bytes) => toHex(frame(0x16, 1, hex(bytes)));
  groups.join("red");
  assert.equal(await take(), kind1("01 00 00 00 01 03 72 65 64 00 00"));
  await send(frame(0x16, 1, hex("01 00 00 00 05 03 72 65 64 00 02 ab cd")));
  assert.ok(groups.isMember("red"));
  groups.send("red", "hi");
  assert.equal(await take(), kind1("04 00 00 00 01 68 69"));
  groups.leave("red");
  groups.join("red");
  assert.equal(await take(), kind1("02 00 00 00 01") + kind1("01 00 00 00 02 03 72 65 64 00 00"));
  await send(frame(0x16, 1, hex("03 00 00 00 02 04 66 75 6c 6c")));
  assert.deepEqual(changes, [["red", true, "abcd", ""], ["red", false, "abcd", ""], ["red", true, "abcd", ""], ["red", false, "abcd", "full"]]);
  assert.throws(() => groups.send("red", "hi"));
});

test("SHA-256 gives the hashes of FIPS 180-4, in any pieces", () => {
  const hash = (...parts) => toHex(parts.reduce((sum, part) => sum.update(text(part)), new SHA256()).digest());
  assert.equal(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  assert.equal(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  assert.equal(hash("a", "b", "", "c"), hash("abc"));
  const long = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  assert.equal(hash(long), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  const million = "a".repeat(1_000_000);
  assert.equal(hash(million), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  assert.equal(hash(million.slice(0, 777), million.slice(777, 70_001), million.slice(70_001)), hash(million));
});
