// The checks of sessions, run by a peer in a browser. The host answers each message on its lane, writes back what comes
// on a stream, and does what a message that begins with "do " says.

import { Guest, Refused, randomBytes } from "/nigh.js";

const text = (bytes) => new TextDecoder().decode(bytes);
const same = (a, b) => a.length === b.length && a.every((byte, index) => byte === b[index]);
const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

function expect(isTrue, words) {
  if (!isTrue) throw new Error(words);
}

/** Bytes that tell a message from every other one. */
function pattern(length, seed) {
  const bytes = new Uint8Array(length);
  let state = seed * 2654435761 + length;
  for (let index = 0; index < length; index += 1) {
    state = (Math.imul(state, 1103515245) + 12345) | 0;
    bytes[index] = state >>> 16;
  }
  return bytes;
}

let guest, conversation;
const key = () => {
  const kept = localStorage.getItem("key");
  const bytes = kept ? Uint8Array.from(kept.split(",")) : randomBytes(32);
  localStorage.setItem("key", bytes.join());
  return bytes;
};

const address = `ws://${location.host}/nigh`;

/** Enters with the token of an invitation in base 32, or with the key alone. */
async function enter(token) {
  const letters = "abcdefghijklmnopqrstuvwxyz234567";
  let bits = [...(token ?? "")].map((letter) => letters.indexOf(letter).toString(2).padStart(5, "0")).join("");
  const bytes = Uint8Array.from(bits.slice(0, 128).match(/.{8}/g) ?? [], (byte) => parseInt(byte, 2));
  guest = await Guest.enter(address, { key: key(), token: token ? bytes : null });
  return guest.peer;
}

async function join(context = "yes") {
  conversation = await guest.join({ name: "Page", context });
  return conversation.hostName;
}

/** Sends messages of these lengths on both lanes, and waits until each has come back once and in order. */
async function echo(lengths, reload = () => {}) {
  const wanted = { main: [], bulk: [] };
  const waiting = new Promise((done, fail) => {
    conversation.onmessage = (bytes, { lane }) => {
      if (lane === "unreliable") return;
      const next = wanted[lane].shift();
      if (!next || !same(next, bytes)) return fail(new Error(`another message of ${bytes.length} bytes on ${lane}`));
      if (wanted.main.length + wanted.bulk.length === 0) done();
    };
    conversation.onstate = (state, reason) => {
      if (state === "ended") fail(new Error(`ended: ${reason}`));
    };
  });
  waiting.catch(() => {});
  for (const [index, length] of lengths.entries()) {
    for (const lane of ["main", "bulk"]) {
      const bytes = pattern(length, index + (lane === "bulk" ? 100_000 : 0));
      wanted[lane].push(bytes);
      while (conversation.waiting(lane) > 1 << 20) await sleep(5);
      conversation.send(bytes, { lane });
    }
  }
  await waiting;
}

const checks = {
  async everySize() {
    await echo([
      0, 1, 2, 15, 16, 17, 63, 64, 65, 1_000, 4_095, 4_096, 8_191, 8_192, 16_368, 16_383, 16_384, 16_385, 32_768, 65_535,
      65_536, 65_537, 262_143, 262_144, 262_145, 300_000, 1 << 20, 0, 0, 1,
    ]);
  },

  manySmall: () => echo(Array.from({ length: 5_000 }, (_, index) => index % 97)),

  /** While this runs, the test cuts the wire. */
  cut: () => echo(Array.from({ length: 400 }, (_, index) => (index * 977) % 40_000)),

  async unreliable() {
    const seen = new Set();
    conversation.onmessage = (bytes, { lane }) => {
      if (lane !== "unreliable") return;
      expect(!seen.has(text(bytes)), `${text(bytes)} came twice`);
      seen.add(text(bytes));
    };
    // Each may be lost, but not all of them for ever.
    for (let index = 0; seen.size < 10; index += 1) {
      conversation.sendUnreliable(new TextEncoder().encode(`u${index}`));
      await conversation.ping();
    }
    for (const words of seen) expect(/^u[0-9]+$/.test(words), `${words} was not sent`);
  },

  async stream() {
    const stream = conversation.openStream("echo");
    const bytes = pattern(3 << 20, 7);
    const writing = (async () => {
      for (let at = 0; at < bytes.length; at += 100_000) await stream.write(bytes.subarray(at, at + 100_000));
      stream.finish();
    })();
    let at = 0;
    for (let part; (part = await stream.read()); at += part.length) {
      expect(same(part, bytes.subarray(at, at + part.length)), `other bytes at ${at}`);
    }
    expect(at === bytes.length, `${at} bytes came back`);
    await writing;
  },

  async streamOfHost() {
    const opened = new Promise((done) => (conversation.onstream = done));
    conversation.send("do open");
    const stream = await opened;
    expect(stream.name === "from the host", stream.name);
    // The host has written more than the window by now, and waits.
    await sleep(300);
    let count = 0;
    for (let part; (part = await stream.read()); ) {
      for (const byte of part) expect(byte === count++ % 251, `another byte at ${count}`);
    }
    expect(count === 2_000_000, `${count} bytes came`);
    stream.finish();
  },

  async streamCancelled() {
    const opened = new Promise((done) => (conversation.onstream = done));
    conversation.send("do cancel");
    const stream = await opened;
    const words = await stream.read().then(
      (bytes) => `read ${bytes?.length}`,
      (error) => error.message,
    );
    expect(words.includes("no more today"), words);
    stream.finish();
    const own = conversation.openStream("echo");
    await own.write(pattern(10, 1));
    own.cancel("changed my mind");
    own.stop();
  },

  async groups() {
    const news = [];
    const changed = () => new Promise((done) => (news.wake = done));
    conversation.groups.onchange = (name, { isMember }) => {
      news.push(`${name} ${isMember}`);
      news.wake?.();
    };
    const heard = new Promise((done) => (conversation.groups.onmessage = (name, bytes) => done(`${name} ${text(bytes)}`)));
    conversation.groups.join("red", "let me in");
    while (!news.includes("red true")) await changed();
    conversation.groups.send("red", new TextEncoder().encode("hello"));
    expect((await heard) === "red hello, too", await heard);
    conversation.groups.leave("red");
    expect(!conversation.groups.isMember("red"), "still a member");
  },

  async declined() {
    const refusal = await guest.join({ name: "Page", context: "no" }).then(
      () => null,
      (error) => error,
    );
    expect(refusal instanceof Refused, `${refusal}`);
    expect(refusal.reason === "declined" && refusal.words === "not now" && refusal.seconds === 7, refusal.words);
  },

  async hostLeaves() {
    const ended = new Promise((done) => {
      conversation.onstate = (state, reason) => state === "ended" && done(reason);
    });
    const last = new Promise((done) => (conversation.onmessage = (bytes) => text(bytes) === "goodbye" && done()));
    conversation.send("do leave");
    await last;
    expect((await ended).length > 0, "no reason");
    expect(conversation.state === "ended", conversation.state);
  },

  async leave() {
    for (let index = 0; index < 1_000; index += 1) conversation.send(`last ${index}`);
    await conversation.leave();
    expect(conversation.state === "ended", conversation.state);
  },
};

/** Rates of this page, in messages or bytes a second. */
async function figures() {
  conversation.onmessage = () => {};
  const rate = async (count, length) => {
    // The host does not send these back.
    const bytes = Uint8Array.from({ ...[..."last "].map((letter) => letter.charCodeAt(0)), length });
    const begin = performance.now();
    for (let index = 0; index < count; index += 1) {
      while (conversation.waiting("main") > 2 << 20) await sleep(1);
      conversation.send(bytes);
    }
    await conversation.flush();
    return Math.round((count * 1000) / (performance.now() - begin));
  };
  const echoed = async (count, length) => {
    let left = count;
    const done = new Promise((resolve) => (conversation.onmessage = () => --left === 0 && resolve()));
    const begin = performance.now();
    conversation.send(`do send ${count} ${length}`);
    await done;
    return Math.round((count * 1000) / (performance.now() - begin));
  };
  const trips = [];
  for (let index = 0; index < 200; index += 1) trips.push(await conversation.ping());
  return {
    sent100: await rate(50_000, 100),
    received100: await echoed(100_000, 100),
    sentBytes: 50_000 * (await rate(400, 50_000)),
    receivedBytes: 50_000 * (await echoed(2_000, 50_000)),
    ping: trips.sort((a, b) => a - b)[100],
  };
}

Object.assign(window, { enter, join, checks, figures, isReady: true });
