/**
 * A peer of the Nigh protocol for browsers. It is a *guest*: it enters a host's session over a WebSocket, and always
 * dials. docs/reference/PROTOCOL.md describes the protocol; numbers in comments such as (4.2) are its sections.
 *
 * ```js
 * const guest = await Guest.enter("ws://host:4000/nigh", { key, token });
 * const conversation = await guest.join({ name: "Anna", context: "nigh/1 chat" });
 * conversation.onmessage = (bytes, { lane }) => {};
 * conversation.send("hello");
 * await conversation.leave();
 * ```
 *
 * Exported: {@link Guest}, {@link Conversation} and what it hands out ({@link Stream}, {@link Transfer},
 * {@link Offer}, {@link Groups}), the errors {@link Refused}, {@link BufferFull} and {@link TransferError},
 * {@link SHA256}, and {@link randomBytes}.
 *
 * Messages, streams and offers that come before their handler is set wait for it.
 *
 * @module nigh
 *
 * @typedef {Object} Pipe An ordered stream of bytes in both directions.
 * @property {(bytes: Uint8Array) => void} send Copies the bytes before it returns.
 * @property {() => void} close
 * @property {number} bufferedAmount The bytes that wait in the pipe.
 * @property {(bytes: Uint8Array) => void} onbytes Set by the reader.
 * @property {() => void} onclose Set by the reader.
 *
 * @typedef {Object} Environment The clock, timers and events that a guest uses. Tests replace it.
 * @property {() => number} now Milliseconds.
 * @property {(callback: () => void, milliseconds: number) => any} setTimeout
 * @property {(timer: any) => void} clearTimeout
 * @property {(count: number) => Uint8Array} randomBytes
 * @property {(url: string) => WebSocket} openWebSocket
 * @property {(callback: () => void) => (() => void)} onWake Calls back when the device may have slept or changed its
 *   network. Returns a function that ends this.
 */

// ---- Limits

/** The longest binary message on the WebSocket. */
const LONGEST_WEBSOCKET_MESSAGE = 65_536;
/** The longest payload of a frame, in both directions. */
const LONGEST_FRAME = 16_384;
/** The longest message, in both directions. */
const LONGEST_MESSAGE = 16 << 20;
const LONGEST_UNRELIABLE = 8_192;
/** The bytes of a lane that the host may send before the page has read them. */
const RECEIVE_WINDOW = 1 << 20;
/** The bytes that may wait in a lane, or in a stream whose writer does not wait. */
const SEND_BUFFER = 4 << 20;
/** How much longer than its bytes a message or frame counts in the buffers, so that many short ones are bounded too. */
const ENTRY_OVERHEAD = 64;
const STREAM_WINDOW = 256 << 10;
const FILE_STREAM_WINDOW = 1 << 20;
/** The streams that the host may have open. */
const MOST_STREAMS = 32;
/** The bytes that are handed to the pipe before it has sent the earlier ones. */
const PIPE_BUFFER = 256 << 10;
/** The control frames that may wait in a link. */
const CONTROL_BUFFER = 256 << 10;
const MOST_PINGS = 64;

const ACKNOWLEDGE_AFTER = 90;
const DIAL_TIMEOUT = 5_000;
const HANDSHAKE_TIMEOUT = 10_000;
/** How long a resume waits for its answer, from the opening of the pipe. */
const RESUME_TIMEOUT = 5_000;
const LEAVE_TIMEOUT = 5_000;
/** How long a conversation looks for its host after it has lost its link. */
const GRACE = 300_000;
const LONGEST_PAUSE = 2_000;
/** A link that carried the conversation for less than this counts as a failed attempt. */
const SHORT_LINK = 2_000;
/** The seconds without a byte after which a link pings, and after which it is given up. */
const PING_AFTER = 5, GIVE_UP_AFTER = 15;
/** The seconds that a link gets to prove that it still works, when the device may have slept. */
const WAKE_LIMIT = 3;

// ---- Errors

const ENTER_REFUSALS = { 1: "scanAgain", 2: "full", 3: "tooManyAttempts", 4: "revoked" };
const JOIN_REFUSALS = { 0: "declined", 1: "full", 2: "busy" };
const UNKNOWN_CONVERSATION = 3;

/** The host refuses to let a guest enter or join. */
export class Refused extends Error {
  /**
   * @param {"enter" | "join"} stage
   * @param {number} code
   * @param {number} seconds
   * @param {string} words
   */
  constructor(stage, code, seconds, words) {
    super(words || (stage === "enter" ? "The host did not let this device in." : "The host declined."));
    this.name = "Refused";
    this.stage = stage;
    /** The code on the wire. */
    this.code = code;
    /**
     * The code's name: `"scanAgain"`, `"full"`, `"tooManyAttempts"`, `"revoked"` when entering; `"declined"`,
     * `"full"`, `"busy"` when joining; otherwise `"other"`.
     */
    this.reason = (stage === "enter" ? ENTER_REFUSALS : JOIN_REFUSALS)[code] ?? "other";
    /** The time to wait before the next attempt, in seconds; 0 if the host named none. */
    this.seconds = seconds;
    /** The host's words for the person; may be empty. */
    this.words = words;
  }
}

/** More waits to be sent than is allowed. */
export class BufferFull extends Error {
  constructor(what) {
    super(`Too much waits to be sent in ${what}.`);
    this.name = "BufferFull";
  }
}

const TRANSFER_REASONS = [
  "other", "cancelled", "declined", "tooLarge", "noSpace", "changed", "damaged", "inaccessible", "version", "violation",
];

/** The reason why a transfer has ended, or why one of its files did not arrive. */
export class TransferError extends Error {
  /**
   * @param {string} reason
   * @param {string} [words]
   */
  constructor(reason, words = "") {
    super(words || `The transfer has ended (${reason}).`);
    this.name = "TransferError";
    /** `"other"`, `"cancelled"`, `"declined"`, `"tooLarge"`, `"noSpace"`, `"changed"`, `"damaged"`, … */
    this.reason = reason;
    this.words = words;
  }
}

/** The other side has broken a rule of the protocol. */
class Violation extends Error {}

/** @param {boolean} holds @param {string} rule */
function check(holds, rule) {
  if (!holds) throw new Violation(rule);
}

// ---- Bytes

const NO_BYTES = new Uint8Array(0);
const encoder = new TextEncoder();
const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const lenientDecoder = new TextDecoder("utf-8", { ignoreBOM: true });
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f-\u009f]/;
const CONTROL_CHARACTERS = /[\u0000-\u001f\u007f-\u009f]/g;

/** @param {Uint8Array | string} content @returns {Uint8Array} */
const toBytes = (content) => (typeof content === "string" ? encoder.encode(content) : content);

/** Random bytes for keys. @param {number} count */
export const randomBytes = (count) => crypto.getRandomValues(new Uint8Array(count));

const u8 = (number) => Uint8Array.of(number);
const u16 = (number) => Uint8Array.of(number >> 8, number);
const u32 = (number) => Uint8Array.of(number >>> 24, number >> 16, number >> 8, number);
const u64 = (number) => concat(u32(Math.floor(number / 0x1_0000_0000)), u32(number % 0x1_0000_0000));

/** @param {...Uint8Array} parts */
function concat(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Words with their length in front, cut to what fits. */
function words8(text) {
  let bytes = encoder.encode(text);
  if (bytes.length > 255) {
    let end = 255;
    while ((bytes[end] & 0xc0) === 0x80) end--;
    bytes = bytes.subarray(0, end);
  }
  return concat(u8(bytes.length), bytes);
}

/** Bytes with their length in front. */
const bytes16 = (content) => concat(u16(content.length), content);

const equal = (a, b) => a.length === b.length && a.every((byte, index) => byte === b[index]);

/** Whether the first of two PeerIDs is the greater one. */
function isGreater(a, b) {
  const at = a.findIndex((byte, index) => byte !== b[index]);
  return at >= 0 && a[at] > b[at];
}

const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";

/** @param {Uint8Array} bytes */
function base32(bytes) {
  let text = "", bits = 0, count = 0;
  for (const byte of bytes) {
    bits = ((bits << 8) | byte) & 0xffff;
    for (count += 8; count >= 5; count -= 5) text += BASE32[(bits >> (count - 5)) & 31];
  }
  return count > 0 ? text + BASE32[(bits << (5 - count)) & 31] : text;
}

/** Reads the fields of a frame or record. A field that does not fit is a violation. */
class FieldReader {
  #bytes;
  #at = 0;

  constructor(bytes) {
    this.#bytes = bytes;
  }

  get left() {
    return this.#bytes.length - this.#at;
  }

  take(count) {
    check(count <= this.left, "a field is cut short");
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  u8() { return this.take(1)[0]; }
  u16() { return this.u8() * 256 + this.u8(); }
  u32() { return this.u16() * 65_536 + this.u16(); }

  /** A number that is only exact up to 2⁵³. Nothing that is counted here gets that far. */
  u64() { return this.u32() * 0x1_0000_0000 + this.u32(); }

  i64() {
    const bytes = this.take(8);
    return Number(new DataView(bytes.buffer, bytes.byteOffset).getBigInt64(0));
  }

  rest() { return this.take(this.left); }

  /** Text that must be valid and without control characters. */
  text(length) {
    const text = this.anyText(length);
    check(!CONTROL_CHARACTER.test(text), "a name has a control character");
    return text;
  }

  anyText(length) {
    const bytes = this.take(length);
    try {
      return strictDecoder.decode(bytes);
    } catch {
      throw new Violation("a text is not UTF-8");
    }
  }

  /** Words for a person: control characters become spaces. */
  words(length = this.u8()) {
    return lenientDecoder.decode(this.take(length)).replace(CONTROL_CHARACTERS, " ");
  }

  end() {
    check(this.left === 0, "a frame or record is too long");
  }
}

/** Bytes in order, kept in few buffers however short the pieces are. */
class ByteQueue {
  #chunks = [];
  length = 0;

  /** Appends a copy. */
  append(bytes) {
    this.length += bytes.length;
    const last = this.#chunks[this.#chunks.length - 1];
    if (last) {
      const count = Math.min(last.buffer.length - last.end, bytes.length);
      last.buffer.set(bytes.subarray(0, count), last.end);
      last.end += count;
      bytes = bytes.subarray(count);
    }
    if (bytes.length > 0) {
      const buffer = new Uint8Array(Math.max(bytes.length, 4_096));
      buffer.set(bytes);
      this.#chunks.push({ buffer, start: 0, end: bytes.length });
    }
  }

  /** Removes and returns bytes that lie together: at least one, if there is any. */
  takeChunk() {
    const { buffer, start, end } = this.#chunks.shift();
    this.length -= end - start;
    return buffer.subarray(start, end);
  }

  /** Removes the next bytes and writes them into the target. */
  takeInto(target) {
    this.length -= target.length;
    for (let at = 0; at < target.length;) {
      const chunk = this.#chunks[0];
      const count = Math.min(chunk.end - chunk.start, target.length - at);
      target.set(chunk.buffer.subarray(chunk.start, chunk.start + count), at);
      chunk.start += count;
      at += count;
      if (chunk.start === chunk.end) this.#chunks.shift();
    }
    return target;
  }

  clear() {
    this.#chunks = [];
    this.length = 0;
  }
}

/** Calls a handler of the page. What it throws is the page's mistake, and must not disturb the protocol. */
function notify(handler, ...values) {
  try {
    handler?.(...values);
  } catch (error) {
    queueMicrotask(() => { throw error; });
  }
}

/** Hands things to a handler, and keeps them until there is one. */
class Inbox {
  #waiting = [];
  #next = 0;
  #handler = null;

  get handler() {
    return this.#handler;
  }

  set handler(handler) {
    this.#handler = handler;
    while (this.#handler && this.#next < this.#waiting.length) {
      const entry = this.#waiting[this.#next];
      this.#waiting[this.#next++] = null;
      this.#hand(entry);
    }
    if (this.#next === this.#waiting.length) {
      this.#waiting = [];
      this.#next = 0;
    }
  }

  /** @param {any[]} values @param {() => void} [onTaken] */
  deliver(values, onTaken) {
    const entry = { values, onTaken };
    if (this.#handler && this.#waiting.length === 0) this.#hand(entry);
    else this.#waiting.push(entry);
  }

  #hand({ values, onTaken }) {
    onTaken?.();
    notify(this.#handler, ...values);
  }
}

/** A promise that something else resolves. Nobody has to wait for it. */
function deferred() {
  const result = {};
  result.promise = new Promise((resolve, reject) => Object.assign(result, { resolve, reject }));
  result.promise.catch(() => {});
  return result;
}

// ---- SHA-256

const SHA256_ROUNDS = new Int32Array(64);
const SHA256_START = new Int32Array(8);
{
  // The first 32 bits of the fractions of the roots of the first 64 primes (FIPS 180-4, 4.2.2 and 5.3.3).
  const bits = (root) => ((root - Math.floor(root)) * 0x1_0000_0000) | 0;
  for (let number = 2, count = 0; count < 64; number++) {
    let isPrime = true;
    for (let divisor = 2; divisor * divisor <= number; divisor++) isPrime &&= number % divisor !== 0;
    if (!isPrime) continue;
    if (count < 8) SHA256_START[count] = bits(Math.sqrt(number));
    SHA256_ROUNDS[count++] = bits(Math.cbrt(number));
  }
}

/** SHA-256, piece by piece. A page that came over plain HTTP has no `crypto.subtle`, and that takes no pieces. */
export class SHA256 {
  #state = SHA256_START.slice();
  #words = new Int32Array(64);
  #block = new Uint8Array(64);
  #length = 0;

  /** @param {Uint8Array} bytes */
  update(bytes) {
    const used = this.#length % 64;
    let at = 0;
    this.#length += bytes.length;
    if (used > 0) {
      at = Math.min(64 - used, bytes.length);
      this.#block.set(bytes.subarray(0, at), used);
      if (used + at < 64) return this;
      this.#compress(this.#block, 0, 64);
    }
    const end = at + (bytes.length - at) - ((bytes.length - at) % 64);
    this.#compress(bytes, at, end);
    this.#block.set(bytes.subarray(end));
    return this;
  }

  /** Ends the hash. @returns {Uint8Array} 32 bytes. */
  digest() {
    const length = this.#length;
    const padding = new Uint8Array(((119 - (length % 64)) % 64) + 9);
    padding[0] = 0x80;
    padding.set(u64(length * 8), padding.length - 8);
    this.update(padding);
    return concat(...Array.from(this.#state, u32));
  }

  #compress(bytes, from, to) {
    const w = this.#words, k = SHA256_ROUNDS, state = this.#state;
    let a0 = state[0], b0 = state[1], c0 = state[2], d0 = state[3];
    let e0 = state[4], f0 = state[5], g0 = state[6], h0 = state[7];
    for (let at = from; at < to; at += 64) {
      for (let i = 0, p = at; i < 16; i++, p += 4) {
        w[i] = (bytes[p] << 24) | (bytes[p + 1] << 16) | (bytes[p + 2] << 8) | bytes[p + 3];
      }
      for (let i = 16; i < 64; i++) {
        const x = w[i - 15], y = w[i - 2];
        w[i] = (w[i - 16] + w[i - 7]
          + (((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3))
          + (((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10))) | 0;
      }
      let a = a0, b = b0, c = c0, d = d0, e = e0, f = f0, g = g0, h = h0;
      for (let i = 0; i < 64; i++) {
        const t = (h + (((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7)))
          + (g ^ (e & (f ^ g))) + k[i] + w[i]) | 0;
        const u = ((((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10)))
          + ((a & b) ^ (c & (a ^ b)))) | 0;
        h = g; g = f; f = e; e = (d + t) | 0; d = c; c = b; b = a; a = (t + u) | 0;
      }
      a0 = (a0 + a) | 0; b0 = (b0 + b) | 0; c0 = (c0 + c) | 0; d0 = (d0 + d) | 0;
      e0 = (e0 + e) | 0; f0 = (f0 + f) | 0; g0 = (g0 + g) | 0; h0 = (h0 + h) | 0;
    }
    state.set([a0, b0, c0, d0, e0, f0, g0, h0]);
  }
}

// ---- Links

const FRAME = {
  hello: 0x01, close: 0x02, ping: 0x03, pong: 0x04, acknowledge: 0x05, invite: 0x06, accept: 0x07, decline: 0x08,
  resume: 0x09, message: 0x10, begin: 0x12, piece: 0x14, kindMessage: 0x16, streamData: 0x18, streamControl: 0x19,
  unreliable: 0x20,
};

const CLOSE = { left: 0, protocolViolation: 1, superseded: 2, cancelled: 5, silent: 6, noCommonVersion: 7,
  noCommonSecurity: 8, wrongService: 9, wrongPeer: 10, restarted: 11, tooSlow: 13, other: 15 };

/** The scope that a close code ends: `"link"`, `"request"` or `"conversation"` (6). */
function scopeOf(code) {
  if ([0, 1, 11, 16].includes(code) || code >> 8 === 3) return "conversation";
  return [5, 7, 8, 9, 14].includes(code) || code >> 8 === 2 ? "request" : "link";
}

const OTHER_VERSION = "This page and the host are of different versions. Reload the page.";
const CLOSE_WORDS = { 0: "The other side has left.", 6: "The host did not answer.", 7: OTHER_VERSION, 9: OTHER_VERSION,
  11: "This browser has joined again, perhaps in another tab.", 13: "The host answered too slowly.",
  14: "The host's session is closing." };

const PREFACE = Uint8Array.of(0x4e, 0x49, 0x47, 0x48, 1, 1, 0, 0);

/** Gathers frames that go into the pipe together. */
class Output {
  #buffer = new Uint8Array(LONGEST_WEBSOCKET_MESSAGE);
  length = 0;

  /** Whether any frame fits. */
  get hasRoom() {
    return this.#buffer.length - this.length >= LONGEST_FRAME + 4;
  }

  get bytes() {
    return this.#buffer.subarray(0, this.length);
  }

  append(bytes) {
    this.#buffer.set(bytes, this.length);
    this.length += bytes.length;
    return bytes.length;
  }

  /** Returns the frame's length. */
  frame(type, ...parts) {
    const start = this.length;
    this.length += 4;
    for (const part of parts) this.append(part);
    const length = this.length - start - 4;
    this.#buffer.set([length >> 16, length >> 8, length, type], start);
    return length + 4;
  }
}

function frame(type, ...parts) {
  const payload = concat(...parts);
  return concat(u8(payload.length >> 16), u16(payload.length & 0xffff), u8(type), payload);
}

/**
 * One pipe: preface, hello, frames, keep-alive, close (2, 5, 6).
 *
 * Its owner has the methods `helloArrived(link, fields)`, `frameArrived(link, type, fields)`, `fill(output)`,
 * `takeAcknowledgement(isOccasion)` and `linkClosed(link, { code, words, isByHost })`.
 */
class Link {
  #pipe;
  #environment;
  #owner;
  #hello;
  /** `"preface"`, `"hello"`, `"open"`, `"closed"`. */
  #stage = "preface";
  #rest = NO_BYTES;
  #output = new Output();
  #control = [];
  #controlBytes = 0;
  #isScheduled = false;
  #pollTimer = null;
  #tickTimer = null;
  /** Seconds since the last byte. They are counted in ticks: a process that slept has not waited. */
  #silence = 0;
  #lastTick;
  #pings = new Map();
  #pingCount = 0;
  /** Whether the conversation's frames may be written. */
  isCarrying = false;

  constructor(pipe, environment, owner, hello) {
    this.#pipe = pipe;
    this.#environment = environment;
    this.#owner = owner;
    this.#hello = hello;
    this.#lastTick = environment.now();
    pipe.onbytes = (bytes) => this.#receive(bytes);
    pipe.onclose = () => this.#close({ code: null, words: "The connection broke.", isByHost: true });
    pipe.send(PREFACE);
    this.#tickTimer = environment.setTimeout(() => this.#tick(), 1_000);
  }

  // Writing

  /** Writes what waits, once the current turn of the page's code is over. */
  wake() {
    if (this.#isScheduled || this.#stage === "closed") return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#write();
    });
  }

  sendControl(type, ...parts) {
    const bytes = frame(type, ...parts);
    this.#controlBytes += bytes.length;
    if (this.#controlBytes > CONTROL_BUFFER) return this.end(CLOSE.other, "too many control frames wait");
    this.#control.push(bytes);
    this.wake();
  }

  #write() {
    if (this.#stage === "closed" || this.#pollTimer !== null) return;
    while (this.#pipe.bufferedAmount < PIPE_BUFFER) {
      this.#fill();
      if (this.#output.length === 0) return;
      this.#pipe.send(this.#output.bytes);
    }
    this.#pollTimer = this.#environment.setTimeout(() => {
      this.#pollTimer = null;
      this.#write();
    }, 5);
  }

  #fill() {
    const output = this.#output;
    output.length = 0;
    const acknowledgement = this.isCarrying ? this.#owner.takeAcknowledgement(this.#control.length > 0) : null;
    if (acknowledgement) output.frame(FRAME.acknowledge, acknowledgement);
    let count = 0;
    while (count < this.#control.length && output.hasRoom) this.#controlBytes -= output.append(this.#control[count++]);
    this.#control.splice(0, count);
    if (this.isCarrying && this.#control.length === 0) this.#owner.fill(output);
  }

  // Reading

  #receive(bytes) {
    this.#silence = 0;
    try {
      bytes = this.#rest.length > 0 ? concat(this.#rest, bytes) : bytes;
      let at = 0;
      while (this.#stage !== "closed") {
        const count = this.#receiveNext(bytes, at);
        if (count === 0) break;
        at += count;
      }
      this.#rest = bytes.slice(at);
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      this.end(CLOSE.protocolViolation, error.message);
    }
    if (this.#pollTimer !== null) {
      this.#environment.clearTimeout(this.#pollTimer);
      this.#pollTimer = null;
    }
    this.wake();
  }

  /** Takes the preface or a frame at an offset, and returns its length; 0 if it is incomplete. */
  #receiveNext(bytes, at) {
    const available = bytes.length - at;
    if (this.#stage === "preface") {
      if (available < 8) return 0;
      if (!equal(bytes.subarray(at, at + 5), PREFACE.subarray(0, 5)) || (bytes[at + 5] & 1) === 0) {
        // The other side could not read a close frame.
        this.#close({ code: CLOSE.noCommonSecurity, words: "The host does not talk to browsers.", isByHost: false });
      } else {
        this.#stage = "hello";
        this.sendControl(FRAME.hello, this.#hello);
      }
      return 8;
    }
    if (available < 4) return 0;
    const length = (bytes[at] << 16) | (bytes[at + 1] << 8) | bytes[at + 2];
    check(length <= (this.#stage === "hello" ? 4_096 : LONGEST_FRAME), "a frame is too long");
    if (available < 4 + length) return 0;
    this.#receiveFrame(bytes[at + 3], bytes.subarray(at + 4, at + 4 + length));
    return 4 + length;
  }

  #receiveFrame(type, payload) {
    const fields = new FieldReader(payload);
    if (type === FRAME.close) {
      const close = { code: fields.u16(), words: fields.words(), isByHost: true };
      fields.end();
      return this.#close(close);
    }
    if (this.#stage === "hello") {
      check(type === FRAME.hello, "a frame came before the hello");
      this.#stage = "open";
      return this.#owner.helloArrived(this, fields);
    }
    if (type >= 0x80) return;
    if (type === FRAME.ping) {
      check(payload.length >= 8 && payload.length <= 1_032, "a ping has a wrong length");
      this.sendControl(FRAME.pong, payload);
    } else if (type === FRAME.pong) {
      check(payload.length >= 8 && payload.length <= 1_032, "a pong has a wrong length");
      const token = fields.u64(), ping = this.#pings.get(token);
      this.#pings.delete(token);
      ping?.answer.resolve(this.#environment.now() - ping.sent);
    } else {
      this.#owner.frameArrived(this, type, fields);
    }
  }

  // Keep-alive

  /** Resolves to the milliseconds of a round trip. */
  ping() {
    const answer = deferred();
    if (this.#stage !== "open" || this.#pings.size >= MOST_PINGS) {
      answer.reject(new Error("No ping can be sent now."));
    } else {
      this.#pings.set(++this.#pingCount, { answer, sent: this.#environment.now() });
      this.sendControl(FRAME.ping, u64(this.#pingCount));
    }
    return answer.promise;
  }

  /** Finds out soon whether the pipe still works. */
  probe() {
    this.#silence = Math.max(this.#silence, GIVE_UP_AFTER - WAKE_LIMIT);
    this.ping();
  }

  #tick() {
    const now = this.#environment.now(), hasSlept = now - this.#lastTick > 5_000;
    this.#lastTick = now;
    this.#silence += 1;
    if (this.#silence >= GIVE_UP_AFTER) return this.end(CLOSE.silent);
    if (hasSlept) this.probe();
    else if (this.#silence === PING_AFTER) this.ping();
    this.#tickTimer = this.#environment.setTimeout(() => this.#tick(), 1_000);
  }

  // The end

  /** Sends a close frame, if frames can be sent, and closes the pipe. */
  end(code, words = "") {
    if (this.#stage === "closed") return;
    if (this.#stage !== "preface") {
      for (const bytes of this.#control) this.#pipe.send(bytes);
      this.#pipe.send(frame(FRAME.close, u16(code), words8(words)));
    }
    this.#close({ code, words, isByHost: false });
  }

  #close(close) {
    if (this.#stage === "closed") return;
    this.#stage = "closed";
    this.isCarrying = false;
    this.#control = [];
    this.#pipe.onbytes = this.#pipe.onclose = () => {};
    this.#pipe.close();
    this.#environment.clearTimeout(this.#pollTimer);
    this.#environment.clearTimeout(this.#tickTimer);
    for (const { answer } of this.#pings.values()) answer.reject(new Error("The link broke."));
    this.#owner.linkClosed(this, close);
  }
}

// ---- Hello

/** Bits 0 streams, 1 files, 2 kinds, 11 compared files (2.4). */
const ABILITIES = 0x807;
const PURPOSE = { program: 0, files: 1, comparedFiles: 8 };

function writeHello(peer, incarnation, service, name) {
  const fields = concat(u8(2), u16(6), u16(MOST_STREAMS), u32(STREAM_WINDOW));
  return concat(Uint8Array.of(1, 1), u32(ABILITIES), peer, incarnation, u32(LONGEST_FRAME), u32(LONGEST_MESSAGE),
    words8(service), words8(name), fields);
}

/** Throws a violation, or returns the hello; only `versions` if none is common. */
function readHello(fields) {
  const lowest = fields.u8(), highest = fields.u8();
  if (lowest > 1 || highest < 1) return { isVersionCommon: false };
  const hello = { isVersionCommon: true, abilities: fields.u32(), peer: fields.take(32).slice(),
    incarnation: fields.take(8).slice(), longestFrame: fields.u32(), longestMessage: fields.u32(),
    service: fields.text(fields.u8()), name: "", streams: 0, streamWindow: 0 };
  const nameLength = fields.u8();
  hello.name = fields.text(nameLength);
  check(lowest >= 1 && lowest <= highest && hello.longestFrame >= 8_192 && nameLength >= 1 && nameLength <= 63,
    "a field of the hello breaks its rule");
  let hasStreams = false;
  while (fields.left > 0) {
    const tag = fields.u8(), content = new FieldReader(fields.take(fields.u16()));
    check(tag < 0x80, "the hello has an unknown field that must be understood");
    if (tag === 1) check(content.left === 16, "the prefaces in the hello have a wrong length");
    if (tag === 3) check(content.left === 96, "the delegation has a wrong length");
    if (tag !== 2 || (hello.abilities & 1) === 0) continue;
    hello.streams = content.u16();
    hello.streamWindow = content.u32();
    content.end();
    check(hello.streams > 0 && hello.streamWindow > 0, "the hello accepts no streams");
    hasStreams = true;
  }
  check(hasStreams || (hello.abilities & 1) === 0, "the hello does not say which streams it accepts");
  return hello;
}

// ---- Lanes

const LANES = ["main", "bulk"];

/** The messages of one lane to the host (4.1 to 4.3). */
class SendLane {
  #index;
  /** Messages that are not acknowledged. */
  #queue = [];
  /** How many messages are acknowledged, and how many were ever sent whole. */
  #acknowledged = 0;
  #mostSent = 0;
  /** The entry of the queue that is sent next on this link, and how much of it was sent in pieces; -1 if nothing. */
  #next = 0;
  #offset = -1;
  #sentBytes = 0;
  #granted = 0;
  /** Bytes that are not acknowledged, with the overhead of each message. */
  waiting = 0;

  constructor(index) {
    this.#index = index;
  }

  get acknowledged() { return this.#acknowledged; }
  get total() { return this.#acknowledged + this.#queue.length; }

  append(bytes, kind) {
    this.#queue.push({ bytes, kind });
    this.waiting += bytes.length + ENTRY_OVERHEAD;
  }

  acknowledge(count) {
    check(count <= this.#acknowledged + this.#next, "more messages are acknowledged than were sent");
    const news = count - this.#acknowledged;
    if (news <= 0) return;
    for (const { bytes } of this.#queue.splice(0, news)) this.waiting -= bytes.length + ENTRY_OVERHEAD;
    this.#acknowledged = count;
    this.#next -= news;
  }

  grant(bytes) {
    check(bytes >= this.#granted, "a grant shrinks");
    this.#granted = bytes;
  }

  /** Begins anew on another link. */
  restart(count, granted) {
    check(count >= this.#acknowledged, "fewer messages are acknowledged than before");
    this.#next = this.#mostSent - this.#acknowledged;
    this.acknowledge(count);
    this.#next = this.#sentBytes = 0;
    this.#offset = -1;
    this.#granted = granted;
  }

  /** Writes one frame, and returns its length; 0 if there is nothing to write now. */
  writeFrame(output, longestFrame) {
    if (this.#next >= this.#queue.length || this.#sentBytes >= this.#granted) return 0;
    const { bytes, kind } = this.#queue[this.#next];
    const kindField = kind > 0 ? u8(kind) : NO_BYTES;
    let length;
    if (this.#offset >= 0) {
      const end = Math.min(this.#offset + longestFrame, bytes.length);
      length = output.frame(FRAME.piece | this.#index, bytes.subarray(this.#offset, end));
      this.#offset = end;
    } else if (bytes.length + kindField.length <= longestFrame) {
      length = output.frame((kind > 0 ? FRAME.kindMessage : FRAME.message) | this.#index, kindField, bytes);
      this.#offset = bytes.length;
    } else {
      length = output.frame(FRAME.begin | this.#index, u32(bytes.length), kindField);
      this.#offset = 0;
    }
    this.#sentBytes += length;
    if (this.#offset === bytes.length) {
      this.#offset = -1;
      this.#next += 1;
      this.#mostSent = Math.max(this.#mostSent, this.#acknowledged + this.#next);
    }
    return length;
  }
}

/** The messages of one lane from the host. */
class ReceiveLane {
  count = 0;
  /** Bytes that the page has not taken yet. */
  unread = 0;
  #receivedBytes = 0;
  #granted = 0;
  #partial = null;

  restart() {
    this.#receivedBytes = this.#granted = 0;
    this.#partial = null;
  }

  /** How much more could be granted now. */
  get grantable() {
    return this.#receivedBytes + RECEIVE_WINDOW - this.unread - this.#granted;
  }

  takeGrant() {
    this.#granted += Math.max(0, this.grantable);
    return this.#granted;
  }

  /** Takes a frame. Returns a message that is whole now, otherwise null. */
  receive(type, fields) {
    check(this.#receivedBytes < this.#granted, "more came than was granted");
    this.#receivedBytes += 4 + fields.left;
    check(type === FRAME.piece || !this.#partial, "a message came within another one");
    if (type === FRAME.message || type === FRAME.kindMessage) {
      const kind = type === FRAME.kindMessage ? readKind(fields) : 0;
      return this.#whole(kind, fields.rest().slice());
    }
    if (type === FRAME.begin) {
      const size = fields.u32(), kind = fields.left > 0 ? readKind(fields) : 0;
      fields.end();
      check(size > 0 && size + (kind > 0 ? 1 : 0) <= LONGEST_MESSAGE, "a message is too long");
      this.#partial = { kind, size, bytes: new ByteQueue() };
      return null;
    }
    const partial = this.#partial;
    check(partial && fields.left > 0 && partial.bytes.length + fields.left <= partial.size, "a piece does not fit");
    partial.bytes.append(fields.rest());
    if (partial.bytes.length < partial.size) return null;
    this.#partial = null;
    return this.#whole(partial.kind, partial.bytes.takeInto(new Uint8Array(partial.size)));
  }

  #whole(kind, bytes) {
    this.count += 1;
    return { kind, bytes };
  }
}

function readKind(fields) {
  const kind = fields.u8();
  check(kind > 0, "a message has kind 0");
  return kind;
}

// ---- Streams

const STREAM = { open: 0, credit: 1, finish: 2, cancel: 3, stop: 4, release: 5, openFor: 6 };

/** The streams of a conversation, and the count of their frames (4.5). */
class StreamTable {
  #streams = new Map();
  /** The numbers of the next streams of this side and of the host. */
  #nextOwn;
  #nextOfHost;
  #ownCount = 0;
  #hostCount = 0;
  /** Frames that are not acknowledged; those before `next` were sent on this link. */
  #frames = [];
  #next = 0;
  #mostSent = 0;
  #acknowledged = 0;
  #waiting = 0;
  /** Streams that may have a frame to send, in the order of their turns. */
  #busy = new Set();
  #hello;
  #frameRoom;
  #onBusy;
  #onOpened;
  /** Frames that have come. */
  received = 0;

  constructor(ownPeer, hello, onBusy, onOpened) {
    this.#nextOwn = isGreater(ownPeer, hello.peer) ? 1 : 2;
    this.#nextOfHost = 3 - this.#nextOwn;
    this.#hello = hello;
    this.#frameRoom = Math.min(hello.longestFrame, LONGEST_FRAME) - 4;
    this.#onBusy = onBusy;
    this.#onOpened = onOpened;
  }

  get exist() { return (this.#hello.abilities & 1) !== 0; }
  get isIdle() { return this.#frames.length === 0 && this.#busy.size === 0; }
  accepts(purpose) { return this.exist && (this.#hello.abilities & (purpose === PURPOSE.files ? 2 : 0x800)) !== 0; }

  open(name, purpose) {
    if (!this.exist) throw new Error("The host has no streams.");
    if (this.#ownCount >= this.#hello.streams) {
      throw new Error(`The host takes only ${this.#ownCount} streams at once.`);
    }
    if (encoder.encode(name).length > 255 || CONTROL_CHARACTER.test(name)) throw new RangeError("Not a stream's name.");
    this.#ownCount += 1;
    const stream = new Stream(this, this.#nextOwn, name, purpose, true, this.#hello.streamWindow);
    this.#nextOwn += 2;
    this.#streams.set(stream.number, stream);
    this.markBusy(stream);
    return stream;
  }

  markBusy(stream) {
    this.#busy.add(stream);
    this.#onBusy();
  }

  forget(stream) {
    if (!this.#streams.delete(stream.number)) return;
    if (stream.isOwn) this.#ownCount -= 1;
    else this.#hostCount -= 1;
  }

  // Frames to the host

  acknowledge(count) {
    check(count <= this.#acknowledged + this.#next, "more stream frames are acknowledged than were sent");
    const news = count - this.#acknowledged;
    if (news <= 0) return;
    for (const bytes of this.#frames.splice(0, news)) this.#waiting -= bytes.length + ENTRY_OVERHEAD;
    this.#acknowledged = count;
    this.#next -= news;
  }

  restart(count) {
    check(count >= this.#acknowledged, "fewer stream frames are acknowledged than before");
    this.#next = this.#mostSent - this.#acknowledged;
    this.acknowledge(count);
    this.#next = 0;
  }

  writeFrame(output) {
    while (this.#next === this.#frames.length) {
      const [stream] = this.#busy;
      if (!stream || this.#waiting >= SEND_BUFFER) return 0;
      this.#busy.delete(stream);
      const bytes = stream.nextFrame(this.#frameRoom);
      if (!bytes) continue;
      this.#frames.push(bytes);
      this.#waiting += bytes.length + ENTRY_OVERHEAD;
      this.#busy.add(stream);
    }
    this.#next += 1;
    this.#mostSent = Math.max(this.#mostSent, this.#acknowledged + this.#next);
    return output.append(this.#frames[this.#next - 1]);
  }

  // Frames from the host

  receive(type, fields) {
    check(this.exist, "a frame of a stream came without streams");
    this.received += 1;
    const number = fields.u32();
    const kind = type === FRAME.streamData ? null : fields.u8();
    if (kind === STREAM.open || kind === STREAM.openFor) return this.#receiveOpen(number, kind, fields);
    const stream = this.#streams.get(number);
    if (stream) {
      if (kind === null) stream.receiveBytes(fields.rest());
      else stream.receiveControl(kind, fields);
      return;
    }
    // Only what is about a stream that was just forgotten breaks no rule.
    const isForgotten = number > 0 && number < (number % 2 === this.#nextOwn % 2 ? this.#nextOwn : this.#nextOfHost);
    check(isForgotten && (kind === STREAM.credit || kind === STREAM.stop),
      "a frame came for a stream that is not open");
  }

  #receiveOpen(number, kind, fields) {
    const purpose = kind === STREAM.open ? PURPOSE.program : fields.u8();
    check(number === this.#nextOfHost, "a stream has a wrong number");
    check(this.#hostCount < MOST_STREAMS, "too many streams are open");
    check(kind === STREAM.open || purpose === PURPOSE.files || purpose === PURPOSE.comparedFiles,
      "a stream was opened for a purpose that is not accepted");
    const stream = new Stream(this, number, fields.text(fields.u8()), purpose, false, this.#hello.streamWindow);
    fields.end();
    this.#nextOfHost += 2;
    this.#hostCount += 1;
    this.#streams.set(number, stream);
    this.#onOpened(stream);
  }

  endAll(error) {
    for (const stream of this.#streams.values()) stream.fail(error);
    this.#streams.clear();
    this.#busy.clear();
    this.#frames = [];
  }
}

/** Bytes in order, in both directions, beside the messages of a conversation. */
export class Stream {
  #table;
  #outgoing = new ByteQueue();
  #credit;
  #sentBytes = 0;
  #isOpenSent;
  /** How this side ends its direction: null, or the fields of the control frame. */
  #ending = null;
  #isEndSent = false;
  #isReleased = false;
  /** Why nothing can be written; null if it can. */
  #writeError = null;
  #incoming = new ByteQueue();
  #receivedBytes = 0;
  #readBytes = 0;
  #granted = STREAM_WINDOW;
  #window = STREAM_WINDOW;
  /** How the host has ended its direction: undefined, null in good order, or an error. */
  #incomingEnd = undefined;
  /** Why this side reads no more, if it does not. */
  #readError = null;
  #stopFrame = null;
  #waiters = [];

  /** Streams come from {@link Conversation#openStream} and {@link Conversation#onstream}. */
  constructor(table, number, name, purpose, isOwn, credit) {
    this.#table = table;
    this.number = number;
    /** @type {string} */
    this.name = name;
    this.purpose = purpose;
    this.isOwn = isOwn;
    this.#isOpenSent = !isOwn;
    this.#credit = credit;
  }

  /** Grants more at a time: for files. */
  widen() {
    this.#window = FILE_STREAM_WINDOW;
    this.#table.markBusy(this);
  }

  // The page's side

  /**
   * The next bytes; null behind the last. Throws if the host has cancelled the stream, or the conversation has ended.
   * @returns {Promise<Uint8Array | null>}
   */
  async read() {
    if (!(await this.#waitForBytes(1))) return null;
    return this.#taken(this.#incoming.takeChunk());
  }

  /** Reads exactly `count` bytes, at most a little over 128 KiB. Returns null if the stream ends before. */
  async readExactly(count) {
    if (!(await this.#waitForBytes(count))) return null;
    return this.#taken(this.#incoming.takeInto(new Uint8Array(count)));
  }

  async #waitForBytes(count) {
    while (this.#incoming.length < count) {
      if (this.#readError) throw this.#readError;
      if (this.#incomingEnd) throw this.#incomingEnd;
      if (this.#incomingEnd === null) return false;
      await this.#change();
    }
    return true;
  }

  #taken(bytes) {
    this.#readBytes += bytes.length;
    this.#table.markBusy(this);
    return bytes;
  }

  /**
   * Sends a copy of the bytes. Resolves when the next write need not wait; a writer that does not wait for that gets
   * {@link BufferFull} in the end.
   * @param {Uint8Array | string} bytes
   */
  async write(bytes) {
    if (this.#writeError) throw this.#writeError;
    if (this.#outgoing.length >= SEND_BUFFER) throw new BufferFull(`the stream "${this.name}"`);
    this.#outgoing.append(toBytes(bytes));
    this.#table.markBusy(this);
    while (this.#outgoing.length >= STREAM_WINDOW) {
      await this.#change();
      if (this.#writeError) throw this.#writeError;
    }
  }

  /** Whether bytes wait that were not sent yet. */
  get hasUnsent() { return this.#outgoing.length > 0; }

  /** Ends this side's direction, behind what was written. */
  finish() {
    this.#endWriting(u8(STREAM.finish), new Error("The stream is finished."));
  }

  /** Ends this side's direction. What was not sent yet is dropped. @param {string} [words] */
  cancel(words = "") {
    if (this.#isEndSent) return;
    this.#ending = null;
    this.#outgoing.clear();
    this.#endWriting(concat(u8(STREAM.cancel), words8(words)), new Error("The stream is cancelled."));
  }

  #endWriting(ending, error) {
    if (this.#ending) return;
    this.#ending = ending;
    this.#writeError = error;
    this.#table.markBusy(this);
    this.#wake();
  }

  /** Reads no more. What has come and is not read is dropped. @param {string} [words] */
  stop(words = "") {
    if (this.#readError) return;
    this.#readError = new Error("This side has stopped reading.");
    this.#incoming.clear();
    if (this.#incomingEnd === undefined) this.#stopFrame = concat(u8(STREAM.stop), words8(words));
    this.#table.markBusy(this);
    this.#wake();
  }

  #change() {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  #wake() {
    for (const resolve of this.#waiters.splice(0)) resolve();
  }

  // The table's side

  /** The conversation has ended. */
  fail(error) {
    this.#writeError = error;
    this.#ending ??= NO_BYTES;
    if (this.#incomingEnd === undefined) this.#incomingEnd = error;
    this.#wake();
  }

  /** The next frame to send, or null. */
  nextFrame(room) {
    const control = (...parts) => frame(FRAME.streamControl, u32(this.number), ...parts);
    if (!this.#isOpenSent) {
      this.#isOpenSent = true;
      return this.purpose === PURPOSE.program ? control(u8(STREAM.open), words8(this.name))
        : control(u8(STREAM.openFor), u8(this.purpose), words8(this.name));
    }
    if (this.#stopFrame) {
      const bytes = control(this.#stopFrame);
      this.#stopFrame = null;
      return bytes;
    }
    const isOver = this.#incomingEnd !== undefined;
    if (!isOver && !this.#readError && this.#readBytes + this.#window - this.#granted >= this.#window / 4) {
      this.#granted = this.#readBytes + this.#window;
      return control(u8(STREAM.credit), u64(this.#granted));
    }
    if (this.#outgoing.length > 0) {
      if (this.#sentBytes >= this.#credit) return null;
      const bytes = this.#outgoing.takeInto(new Uint8Array(Math.min(room, this.#outgoing.length)));
      this.#sentBytes += bytes.length;
      if (this.#outgoing.length < STREAM_WINDOW) this.#wake();
      return frame(FRAME.streamData, u32(this.number), bytes);
    }
    if (this.#ending && !this.#isEndSent) {
      this.#isEndSent = true;
      return control(this.#ending);
    }
    if (!this.isOwn && !this.#isReleased && this.#isEndSent && isOver && this.#incoming.length === 0) {
      this.#table.forget(this);
      this.#isReleased = true;
      return control(u8(STREAM.release));
    }
    return null;
  }

  receiveBytes(bytes) {
    check(bytes.length > 0, "a frame of a stream has no bytes");
    check(this.#incomingEnd === undefined, "bytes came behind the end of a stream");
    check(this.#receivedBytes < this.#granted, "more came in a stream than was granted");
    this.#receivedBytes += bytes.length;
    if (this.#readError) return;
    this.#incoming.append(bytes);
    this.#wake();
  }

  receiveControl(kind, fields) {
    switch (kind) {
    case STREAM.credit: {
      const credit = fields.u64();
      check(credit >= this.#credit, "the credit of a stream shrinks");
      this.#credit = credit;
      break;
    }
    case STREAM.finish:
    case STREAM.cancel:
      check(this.#incomingEnd === undefined, "a stream ended twice");
      this.#incomingEnd = kind === STREAM.finish ? null : new Error(fields.words() || "The host cancelled the stream.");
      break;
    case STREAM.stop: {
      const words = fields.words() || "The host reads no more.";
      if (!this.#isEndSent) {
        this.cancel(words);
        this.#writeError = new Error(words);
      }
      break;
    }
    case STREAM.release:
      check(this.isOwn && this.#isEndSent && this.#incomingEnd !== undefined, "a stream was released too early");
      this.#table.forget(this);
      break;
    default:
      throw new Violation("a frame of a stream has an unknown kind");
    }
    fields.end();
    this.#table.markBusy(this);
    this.#wake();
  }
}

// ---- Conversations

/** The bytes that each source of frames may send in its turn: main, streams, bulk. */
const TURNS = [64 << 10, 16 << 10, 16 << 10];

const KIND_GROUPS = 1;

/** The connection of a guest to its host, as a program sees it. It outlives its links. */
export class Conversation {
  #guest;
  #environment;
  #request;
  #id;
  #joined = deferred();
  #hello = null;
  #link = null;
  #isAccepted = false;
  #linkedAt = 0;
  #lostAt = 0;
  #failures = 0;
  #pause = 0;
  #isDialing = false;
  #retryTimer = null;
  #deadline = null;
  #stopWaking;
  #sendLanes = [new SendLane(0), new SendLane(1)];
  #receiveLanes = [new ReceiveLane(), new ReceiveLane()];
  #streams = null;
  #longestFrame = 0;
  #unreliable = [];
  #turn = 0;
  #turnLeft = TURNS[0];
  /** Whether something has come that is not acknowledged, whether it must be now, and the timer for it. */
  #hasNews = false;
  #isAcknowledgementDue = false;
  #acknowledgeTimer = null;
  #streamBytes = 0;
  #waiters = [];
  #endError = null;
  #messages = new Inbox();
  #openedStreams = new Inbox();
  #offers = new Inbox();

  /** `"connected"`, `"reconnecting"` or `"ended"`. */
  state = "reconnecting";
  /**
   * Called with each new state, and words for the person when it is reconnecting or has ended.
   * @type {((state: string, reason: string) => void) | null}
   */
  onstate = null;
  /** The host's display name; the beginning of its PeerID if that is blank. */
  hostName = "";
  /** @type {Groups} */
  groups;

  /** Conversations come from {@link Guest#join}. */
  constructor(guest, environment, request) {
    this.#guest = guest;
    this.#environment = environment;
    this.#request = request;
    this.#id = environment.randomBytes(8);
    this.groups = new Groups((bytes) => this.#append(bytes, "main", KIND_GROUPS), guest.groupNumbers);
    this.#stopWaking = environment.onWake(() => this.#wakeUp());
    this.#lostAt = environment.now();
    request.signal?.addEventListener("abort", () => {
      if (!this.#isAccepted) this.#end(CLOSE.cancelled, new Error("The invitation was taken back."));
    });
    this.#dial();
  }

  /** Resolves when the host has accepted. */
  get joined() { return this.#joined.promise; }

  // Messages

  /** @type {((bytes: Uint8Array, about: { lane: "main" | "bulk" | "unreliable" }) => void) | null} */
  get onmessage() { return this.#messages.handler; }
  set onmessage(handler) { this.#messages.handler = handler; }

  /**
   * Sends a message, exactly once and in the order of its lane. Throws {@link BufferFull} if too much waits.
   * @param {Uint8Array | string} bytes
   * @param {{ lane?: "main" | "bulk" }} [options]
   */
  send(bytes, { lane = "main" } = {}) {
    this.#append(toBytes(bytes), lane, 0);
  }

  #append(bytes, laneName, kind) {
    if (this.state === "ended") throw this.#endError;
    if (kind > 0 && (this.#hello.abilities & 4) === 0) throw new Error("The host has no groups.");
    const lane = this.#sendLanes[LANES.indexOf(laneName)];
    if (bytes.length + (kind > 0 ? 1 : 0) > Math.min(this.#hello.longestMessage, LONGEST_MESSAGE)) {
      throw new RangeError("The message is longer than the host takes.");
    }
    if (lane.waiting >= SEND_BUFFER) throw new BufferFull(`the lane "${laneName}"`);
    lane.append(bytes.slice(), kind);
    this.#link?.wake();
  }

  /** The bytes that are not acknowledged yet; each message counts 64 more. @param {"main" | "bulk"} [lane] */
  waiting(lane = "main") { return this.#sendLanes[LANES.indexOf(lane)].waiting; }

  /**
   * Sends a message of at most 8,192 bytes if the link can take it now. Returns whether it could.
   * @param {Uint8Array | string} bytes
   */
  sendUnreliable(bytes) {
    bytes = toBytes(bytes);
    if (bytes.length > LONGEST_UNRELIABLE) throw new RangeError("An unreliable message has at most 8,192 bytes.");
    if (!this.#link?.isCarrying || this.#unreliable.length >= 16) return false;
    this.#unreliable.push(bytes.slice());
    this.#link.wake();
    return true;
  }

  /** Resolves when everything that was sent so far is acknowledged. */
  async flush() {
    const totals = this.#sendLanes.map((lane) => lane.total);
    await this.#until(() => this.#sendLanes.every((lane, index) => lane.acknowledged >= totals[index]));
  }

  /** Resolves to the milliseconds of a round trip. */
  async ping() {
    if (!this.#link?.isCarrying) throw new Error("There is no link now.");
    return this.#link.ping();
  }

  #until(holds) {
    if (holds()) return Promise.resolve();
    if (this.state === "ended") return Promise.reject(this.#endError);
    // The answer brings an acknowledgement with it (4.2).
    if (this.#link?.isCarrying) this.#link.ping();
    const waiter = deferred();
    this.#waiters.push({ holds, waiter });
    return waiter.promise;
  }

  #checkWaiters() {
    this.#waiters = this.#waiters.filter(({ holds, waiter }) => {
      if (!holds()) return true;
      waiter.resolve();
      return false;
    });
  }

  // Streams and files

  /** @param {string} name @returns {Stream} */
  openStream(name) { return this.#openStream(name, PURPOSE.program); }

  #openStream(name, purpose) {
    if (this.state === "ended") throw this.#endError;
    return this.#streams.open(name, purpose);
  }

  /** @type {((stream: Stream) => void) | null} */
  get onstream() { return this.#openedStreams.handler; }
  set onstream(handler) { this.#openedStreams.handler = handler; }

  /** Whether the host takes files. */
  get canSendFiles() { return this.#streams.accepts(PURPOSE.files); }

  /**
   * Offers files to the host.
   * @param {Iterable<File | { file: File, path: string }>} files
   * @returns {Transfer}
   */
  sendFiles(files) {
    if (!this.canSendFiles) throw new Error("The host takes no files.");
    const entries = Array.from(files, (entry) => {
      const file = entry.file ?? entry, path = entry.path ?? (file.webkitRelativePath || file.name);
      return { file, path, pathBytes: encoder.encode(path) };
    });
    const hasPaths = entries.every(({ pathBytes }) => pathBytes.length >= 1 && pathBytes.length <= 4_096);
    if (entries.length < 1 || entries.length > 100_000 || !hasPaths) {
      throw new RangeError("An offer has 1 to 100,000 files, with paths of 1 to 4,096 bytes.");
    }
    const purpose = this.#streams.accepts(PURPOSE.comparedFiles) ? PURPOSE.comparedFiles : PURPOSE.files;
    return new OutgoingTransfer(this.#openStream("files", purpose), entries, this.#environment);
  }

  /** @type {((offer: Offer) => void) | null} */
  get onoffer() { return this.#offers.handler; }
  set onoffer(handler) { this.#offers.handler = handler; }

  #streamOpened(stream) {
    if (stream.purpose === PURPOSE.program) return this.#openedStreams.deliver([stream]);
    new IncomingTransfer(stream, this.#environment, (offer) => this.#offers.deliver([offer]));
  }

  // Leaving

  /** Sends what waits, for at most 5 s, and leaves. */
  async leave() {
    const timer = this.#environment.setTimeout(() => this.end(), LEAVE_TIMEOUT);
    try {
      await this.#until(() => this.#sendLanes.every((lane) => lane.waiting === 0) && this.#streams.isIdle);
    } catch {
      // The conversation has ended before.
    }
    this.#environment.clearTimeout(timer);
    this.end();
  }

  /** Leaves at once. The host may not get what is not acknowledged. @param {string} [words] For the host's person. */
  end(words = "") {
    this.#end(CLOSE.left, new Error("You have left."), words);
  }

  #end(code, error, words = "") {
    if (this.state === "ended") return;
    this.state = "ended";
    this.#endError = error;
    const link = this.#link;
    this.#link = null;
    link?.end(code, words);
    for (const timer of [this.#retryTimer, this.#deadline, this.#acknowledgeTimer]) {
      this.#environment.clearTimeout(timer);
    }
    this.#stopWaking();
    this.#streams?.endAll(error);
    for (const { waiter } of this.#waiters.splice(0)) waiter.reject(error);
    this.#joined.reject(error);
    this.#guest.conversationEnded(this);
    notify(this.onstate, "ended", error.message);
  }

  // Links

  #dial() {
    if (this.#isDialing || this.state === "ended") return;
    this.#environment.clearTimeout(this.#retryTimer);
    this.#isDialing = true;
    this.#guest.dial().then((pipe) => {
      this.#isDialing = false;
      if (this.state === "ended") return pipe.close();
      const { peer, incarnation, host } = this.#guest.identity;
      const hello = writeHello(peer, incarnation, host.service, this.#request.name);
      this.#link = new Link(pipe, this.#environment, this, hello);
      this.#endLinkAfter(this.#isAccepted ? RESUME_TIMEOUT : HANDSHAKE_TIMEOUT);
    }, (error) => {
      this.#isDialing = false;
      const isFinal = !this.#isAccepted || error.reason === "scanAgain" || error.reason === "revoked";
      if (error instanceof Refused && isFinal) {
        this.#end(CLOSE.other, error);
      } else {
        this.#retry(error, (error.seconds ?? 0) * 1_000);
      }
    });
  }

  #endLinkAfter(milliseconds) {
    this.#environment.clearTimeout(this.#deadline);
    this.#deadline = this.#environment.setTimeout(() => this.#link?.end(CLOSE.tooSlow), milliseconds);
  }

  /** Dials again after a pause that doubles with each failure. */
  #retry(error, shortest = 0) {
    if (this.state === "ended") return;
    this.#failures += 1;
    const isLate = this.#environment.now() - this.#lostAt > (this.#isAccepted ? GRACE : this.#request.timeout);
    if (isLate || (!this.#isAccepted && this.#failures >= 3)) return this.#end(CLOSE.other, error);
    this.#lengthenPause();
    this.#retryTimer = this.#environment.setTimeout(() => this.#dial(), Math.max(this.#pause, shortest));
  }

  #lengthenPause() {
    this.#pause = Math.min(Math.max(this.#pause * 2, 250), LONGEST_PAUSE);
  }

  #wakeUp() {
    if (this.#link?.isCarrying) this.#link.probe();
    else if (!this.#link) this.#dial();
  }

  /** @ignore */
  helloArrived(link, fields) {
    const hello = readHello(fields), { peer, incarnation, host } = this.#guest.identity;
    if (!hello.isVersionCommon) return link.end(CLOSE.noCommonVersion);
    if (!equal(hello.peer, host.peerBytes)) return link.end(CLOSE.wrongPeer);
    if (hello.service !== host.service) return link.end(CLOSE.wrongService);
    if (this.#isAccepted && !equal(hello.incarnation, this.#hello.incarnation)) {
      return this.#end(CLOSE.restarted, new Error("The host has started anew."));
    }
    if (!this.#isAccepted) {
      this.#hello = hello;
      this.hostName = hello.name.trim() || host.peer.slice(0, 8);
      this.#longestFrame = Math.min(hello.longestFrame, LONGEST_FRAME);
      this.#streams = new StreamTable(peer, hello, () => this.#link?.wake(), (stream) => this.#streamOpened(stream));
      this.#endLinkAfter(this.#request.timeout + 2_000);
    }
    for (const lane of this.#receiveLanes) lane.restart();
    const isResume = this.#isAccepted;
    const context = isResume ? NO_BYTES : this.#request.context;
    link.sendControl(isResume ? FRAME.resume : FRAME.invite, this.#id, u64(this.#guest.nextAttempt()), this.#standing(),
      u32(isResume ? 0 : this.#request.timeout), bytes16(context), this.#streamCount());
  }

  #standing() {
    const counts = this.#receiveLanes.map((lane) => u64(lane.count));
    return concat(...counts, ...this.#receiveLanes.map((lane) => u64(lane.takeGrant())));
  }

  #streamCount() {
    return this.#streams.received > 0 ? u64(this.#streams.received) : NO_BYTES;
  }

  /** @ignore */
  frameArrived(link, type, fields) {
    if (!link.isCarrying) return this.#receiveAnswer(link, type, fields);
    const base = type & 0xfe;
    if (base >= FRAME.message && base <= FRAME.kindMessage) {
      const lane = this.#receiveLanes[type & 1];
      const message = lane.receive(base, fields);
      if (message) this.#receiveMessage(message, type & 1);
      this.#noteNews(lane.grantable >= RECEIVE_WINDOW / 4);
    } else if (type === FRAME.streamData || type === FRAME.streamControl) {
      this.#streamBytes += fields.left;
      this.#streams.receive(type, fields);
      this.#noteNews(this.#streamBytes >= RECEIVE_WINDOW / 4);
    } else if (type === FRAME.acknowledge) {
      const { counts, grants, streams } = this.#readStanding(fields);
      this.#sendLanes.forEach((lane, index) => {
        lane.acknowledge(counts[index]);
        lane.grant(grants[index]);
      });
      this.#streams.acknowledge(streams);
      this.#checkWaiters();
    } else {
      check(type === FRAME.unreliable, "a frame came out of turn");
      if (this.onmessage) this.#messages.deliver([fields.rest().slice(), { lane: "unreliable" }]);
    }
  }

  #receiveMessage({ kind, bytes }, index) {
    if (kind > KIND_GROUPS) return;
    const lane = this.#receiveLanes[index], length = bytes.length + 4;
    lane.unread += length;
    const onTaken = () => {
      lane.unread -= length;
      if (lane.grantable >= RECEIVE_WINDOW / 4) this.#noteNews(true);
    };
    if (kind === 0) return this.#messages.deliver([bytes, { lane: LANES[index] }], onTaken);
    try {
      this.groups.receive(new FieldReader(bytes), onTaken);
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      this.#end(CLOSE.left, new Error(`The host broke a rule of groups: ${error.message}`));
    }
  }

  #readStanding(fields) {
    const counts = [fields.u64(), fields.u64()], grants = [fields.u64(), fields.u64()];
    let streams = 0;
    if (fields.left > 0) {
      streams = fields.u64();
      check(streams > 0 && this.#streams.exist, "a count of stream frames is not allowed here");
    }
    fields.end();
    return { counts, grants, streams };
  }

  #receiveAnswer(link, type, fields) {
    check(type === FRAME.accept || type === FRAME.decline, "a frame came before the answer to the request");
    check(equal(fields.take(8), this.#id), "the answer is about another conversation");
    if (type === FRAME.accept) {
      fields.u64();
      return this.#accepted(link, this.#readStanding(fields));
    }
    const code = fields.u8(), seconds = fields.u32(), refused = new Refused("join", code, seconds, fields.words());
    fields.end();
    if (!this.#isAccepted) return this.#end(CLOSE.cancelled, refused);
    if (code === UNKNOWN_CONVERSATION) {
      return this.#end(CLOSE.cancelled, new Error("The host has ended this conversation."));
    }
    this.#link = null;
    link.end(CLOSE.superseded);
    this.#retry(refused, seconds * 1_000);
  }

  #accepted(link, { counts, grants, streams }) {
    this.#sendLanes.forEach((lane, index) => lane.restart(counts[index], grants[index]));
    this.#streams.restart(streams);
    this.#environment.clearTimeout(this.#deadline);
    this.#isAccepted = link.isCarrying = true;
    this.#linkedAt = this.#environment.now();
    this.#failures = 0;
    this.state = "connected";
    this.#checkWaiters();
    if (this.#waiters.length > 0) link.ping();
    link.wake();
    this.#joined.resolve(this);
    notify(this.onstate, "connected", "");
  }

  /** @ignore */
  linkClosed(link, { code, words, isByHost }) {
    if (link !== this.#link) return;
    const wasCarrying = this.#linkedAt > 0;
    this.#link = null;
    this.#unreliable = [];
    this.#environment.clearTimeout(this.#deadline);
    this.#environment.clearTimeout(this.#acknowledgeTimer);
    this.#acknowledgeTimer = null;
    this.#hasNews = this.#isAcknowledgementDue = false;
    const error = new Error(code === CLOSE.protocolViolation
      ? `${isByHost ? "This guest" : "The host"} broke a rule of the protocol: ${words}`
      : words || CLOSE_WORDS[code] || `The link has ended (code ${code}).`);
    const scope = code === null ? "link" : scopeOf(code);
    if (scope === "conversation" || (scope === "request" && (wasCarrying || !this.#isAccepted))) {
      return this.#end(CLOSE.other, error);
    }
    if (!wasCarrying) return this.#retry(error);
    const now = this.#environment.now();
    const isShort = now - this.#linkedAt < SHORT_LINK, isSuperseded = code === CLOSE.superseded && isByHost;
    if (!isShort) this.#pause = 0;
    this.#linkedAt = 0;
    this.#lostAt = now;
    this.state = "reconnecting";
    this.#retryTimer = this.#environment.setTimeout(() => this.#dial(), Math.max(this.#pause, isSuperseded ? 500 : 0));
    if (isShort) this.#lengthenPause();
    notify(this.onstate, "reconnecting", error.message);
  }

  // Writing

  #noteNews(isUrgent) {
    if (!this.#link?.isCarrying) return;
    this.#hasNews = true;
    if (isUrgent) {
      this.#isAcknowledgementDue = true;
      this.#link.wake();
    } else {
      this.#acknowledgeTimer ??= this.#environment.setTimeout(() => this.#noteNews(true), ACKNOWLEDGE_AFTER);
    }
  }

  /** @ignore */
  takeAcknowledgement(isOccasion) {
    if (!this.#isAcknowledgementDue && !(this.#hasNews && isOccasion)) return null;
    this.#environment.clearTimeout(this.#acknowledgeTimer);
    this.#acknowledgeTimer = null;
    this.#hasNews = this.#isAcknowledgementDue = false;
    this.#streamBytes = 0;
    return concat(this.#standing(), this.#streamCount());
  }

  /** @ignore */
  fill(output) {
    while (this.#unreliable.length > 0 && output.hasRoom) output.frame(FRAME.unreliable, this.#unreliable.shift());
    for (let idleTurns = 0; output.hasRoom && idleTurns <= TURNS.length;) {
      const source = this.#turn === 1 ? this.#streams : this.#sendLanes[this.#turn / 2];
      const length = this.#turnLeft > 0 ? source.writeFrame(output, this.#longestFrame) : 0;
      this.#turnLeft -= length;
      idleTurns = length > 0 ? 0 : idleTurns + 1;
      if (length > 0) continue;
      this.#turn = (this.#turn + 1) % TURNS.length;
      this.#turnLeft = TURNS[this.#turn];
    }
  }
}

// ---- Groups

const GROUP = { join: 1, leave: 2, refuse: 3, message: 4 };
const MOST_GROUPS = 64;

/** The groups that this guest is in, and whether the host is in them too (4.8). */
export class Groups {
  #send;
  #numbers;
  /** name → { number, isRefused }, of this side; `isRefused`: this side does not want the host there. */
  #own = new Map();
  /** name → { number, context, refusal }, of the host; `refusal`: its words, if it does not want this guest there. */
  #ofHost = new Map();
  #highestOfHost = 0;
  /** Names of groups in which the host has refused this guest → its words. */
  #refusals = new Map();
  #messages = new Inbox();
  #usedNumbers = new Map();

  /**
   * Called when the host becomes a member for this guest or ceases to be one, or refuses it.
   * @type {((name: string, change: { isMember: boolean, context: Uint8Array, reason: string }) => void) | null}
   */
  onchange = null;

  /** Every conversation has one: {@link Conversation#groups}. */
  constructor(send, numbers) {
    this.#send = send;
    this.#numbers = numbers;
  }

  /** @type {((name: string, bytes: Uint8Array) => void) | null} */
  get onmessage() { return this.#messages.handler; }
  set onmessage(handler) { this.#messages.handler = handler; }

  /** @param {string} name @param {Uint8Array | string} [context] Up to 1,024 bytes for the host's program. */
  join(name, context = NO_BYTES) {
    const nameBytes = encoder.encode(name), contextBytes = toBytes(context);
    if (nameBytes.length < 1 || nameBytes.length > 63 || CONTROL_CHARACTER.test(name) || contextBytes.length > 1_024) {
      throw new RangeError("Not a group's name or context.");
    }
    if (this.#own.has(name)) return;
    if (this.#own.size >= MOST_GROUPS) throw new Error(`A guest is in at most ${MOST_GROUPS} groups.`);
    const number = this.#numbers.last + 1;
    this.#send(concat(u8(GROUP.join), u32(number), words8(name), bytes16(contextBytes)));
    this.#numbers.last = number;
    this.#own.set(name, { number, isRefused: false });
    this.#usedNumbers.set(number, name);
    if (this.#ofHost.has(name)) this.#report(name);
  }

  leave(name) {
    const own = this.#own.get(name);
    if (!own) return;
    this.#send(concat(u8(GROUP.leave), u32(own.number)));
    this.#change(name, () => {
      this.#own.delete(name);
      this.#refusals.delete(name);
    });
  }

  /** Refuses the host in a group in which both are. @param {string} name @param {string} [words] */
  refuse(name, words = "") {
    const own = this.#own.get(name), host = this.#ofHost.get(name);
    if (!own || !host || own.isRefused) return;
    this.#send(concat(u8(GROUP.refuse), u32(host.number), words8(words)));
    this.#change(name, () => { own.isRefused = true; });
  }

  /** Whether the host is a member of the group for this guest. */
  isMember(name) {
    const own = this.#own.get(name);
    return !!own && this.#ofHost.has(name) && !own.isRefused && !this.#refusals.has(name);
  }

  /** @param {string} name @param {Uint8Array | string} bytes */
  send(name, bytes) {
    if (!this.isMember(name)) throw new Error(`The host is not in the group "${name}".`);
    this.#send(concat(u8(GROUP.message), u32(this.#own.get(name).number), toBytes(bytes)));
  }

  #change(name, change) {
    const wasMember = this.isMember(name);
    change();
    if (this.isMember(name) !== wasMember) this.#report(name);
  }

  #report(name, reason = "") {
    const context = this.#ofHost.get(name)?.context ?? NO_BYTES;
    notify(this.onchange, name, { isMember: this.isMember(name), context, reason });
  }

  /** @ignore */
  receive(fields, onTaken) {
    const kind = fields.u8();
    if (kind !== GROUP.message) onTaken();
    if (kind < GROUP.join || kind > GROUP.message) return;
    const number = fields.u32();
    if (kind === GROUP.join) {
      const length = fields.u8(), name = fields.text(length), contextLength = fields.u16();
      const context = fields.take(contextLength).slice();
      fields.end();
      check(length >= 1 && length <= 63 && contextLength <= 1_024, "a group's name or context is too long");
      check(number > this.#highestOfHost && !this.#ofHost.has(name) && this.#ofHost.size < MOST_GROUPS,
        "a group was joined out of turn");
      this.#highestOfHost = number;
      this.#change(name, () => this.#ofHost.set(name, { number, context }));
    } else if (kind === GROUP.leave) {
      const entry = this.#entryOfHost(number);
      fields.end();
      check(entry, "a group was left that was not joined");
      this.#change(entry, () => {
        this.#ofHost.delete(entry);
        // The host decides anew if it joins anew; so does this side.
        this.#refusals.delete(entry);
        if (this.#own.has(entry)) this.#own.get(entry).isRefused = false;
      });
    } else if (kind === GROUP.refuse) {
      const words = fields.words(), name = this.#usedNumbers.get(number);
      fields.end();
      check(name !== undefined, "a group was refused that this side was never in");
      if (this.#own.get(name)?.number !== number) return;
      this.#refusals.set(name, words);
      this.#report(name, words);
    } else {
      check(number <= this.#highestOfHost, "a message came for a group that was never joined");
      const name = this.#entryOfHost(number);
      if (name === undefined || !this.isMember(name)) return onTaken();
      this.#messages.deliver([name, fields.rest().slice()], onTaken);
    }
  }

  #entryOfHost(number) {
    for (const [name, entry] of this.#ofHost) if (entry.number === number) return name;
    return undefined;
  }
}

// ---- Files

const RECORD = {
  offer: 1, item: 2, begin: 3, data: 4, end: 5, same: 6, missing: 7, claim: 8, accept: 16, have: 17, ready: 18,
  whole: 19, stored: 20, kept: 21, failed: 22, compare: 23, stop: 32, paused: 33, resumed: 34,
};

const LONGEST_RECORD = 16_384;
const LONGEST_DATA = 131_072;
const PIECE = 1 << 20;
const LARGEST_RECEIVED_FILE = 512 << 20;
const MOST_RECEIVED_ITEMS = 10_000;
const MOST_RECEIVED_LIST_BYTES = 2 << 20;
/** The files whose reports wait for their bytes: of this side as the receiver, and at most of the host. */
const REPORTS_AHEAD = 16, MOST_REPORTS = 128;
const MOST_REPORTS_OF_ONE_FILE = 4;
const MOST_MISMATCHES = 3;
const OFFER_TIMEOUT = 30_000;
const FINISH_TIMEOUT = 15_000;
const PROGRESS_INTERVAL = 100;

function writeFault({ reason, words }) {
  return concat(u8(Math.max(0, TRANSFER_REASONS.indexOf(reason))), u8(0), words8(words));
}

function readFault(fields) {
  const reason = TRANSFER_REASONS[fields.u8()] ?? "other";
  return new TransferError(reason, fields.words(fields.u16()));
}

/** The types that the blobs of received files may have. A page that opened others could run what is in them. */
const HARMLESS_TYPE = /^(audio\/|video\/|image\/(?!svg)|text\/plain$|application\/pdf$)[\w.+-]*$/;

/** Control characters, the backslash, and what is invisible or changes the direction of text. */
const UNSAFE_IN_NAMES = /[\u0000-\u001f\u007f-\u009f\\\u200b-\u200f\u2028-\u202e\u2066-\u2069]/g;

/** A name that is safe to show and to save under, from a path that may contain anything. */
function safeName(path) {
  const name = path.split("/").pop().replace(UNSAFE_IN_NAMES, "_");
  return name.replace(/^[. ]+/, "").trim() || "file";
}

/** Files on their way (4.6). {@link Conversation#sendFiles} and {@link Offer#accept} return one. */
export class Transfer {
  _stream;
  _environment;
  _unfinished = 0;
  /** Whether every file is kept or has failed; and whether the transfer has ended, in this way or another. */
  _isDecided = false;
  _isOver = false;
  _done = deferred();
  #lastReport = -Infinity;
  #finishTimer = null;

  /**
   * The files. `bytes`: how many the receiver has; `state`: `"waiting"`, `"moving"`, `"kept"` or `"failed"`; `words`:
   * why it failed; `blob`: a received file that is kept.
   * @type {{ name: string, path: string, size: number, bytes: number, state: string, words: string, blob?: Blob }[]}
   */
  files = [];
  /** The other side's words if it has paused, otherwise null. */
  paused = null;
  /** @type {((transfer: Transfer) => void) | null} */
  onprogress = null;

  constructor(stream, environment) {
    this._stream = stream;
    this._environment = environment;
  }

  get bytes() { return this.files.reduce((sum, file) => sum + file.bytes, 0); }
  get size() { return this.files.reduce((sum, file) => sum + Math.max(file.size, 0), 0); }

  /** Resolves to the files when each is kept or has failed. Rejects with a {@link TransferError} if it was stopped. */
  get done() { return this._done.promise; }

  /** Ends the transfer from this side. @param {string} [words] */
  cancel(words = "cancelled") {
    this._stop(new TransferError("cancelled", words));
  }

  /** Waits for the end of the stream, and then says how the transfer went. */
  async _run(course) {
    try {
      await course;
    } catch (error) {
      // Once all is decided, it does not matter how the stream ends.
      if (error instanceof Violation) this._stop(new TransferError("violation", error.message));
      else if (error instanceof TransferError) this._stop(error, error.isByOther);
      else this._stop(new TransferError("other", error.message), true);
    }
    this._environment.clearTimeout(this.#finishTimer);
    if (this._isOver) return;
    this._isOver = true;
    this._done.resolve(this.files);
  }

  _stop(fault, isByOther = false) {
    if (this._isOver || this._isDecided) return;
    this._isOver = true;
    // Behind bytes that wait for room, the record would come too late.
    if (!isByOther && this._stream.hasUnsent) this._stream.cancel(fault.message);
    else if (!isByOther) this._write(RECORD.stop, writeFault(fault)).catch(() => {});
    this._stream.finish();
    this._stream.stop(fault.words);
    this._done.reject(fault);
    this._ended();
  }

  _ended() {}

  _write(kind, ...parts) {
    const content = concat(...parts);
    return this._stream.write(concat(u8(kind), u32(content.length), content));
  }

  /** The next record that is not about the transfer as a whole; null at the end. */
  async _next() {
    for (;;) {
      const header = await this._stream.readExactly(5);
      if (!header && this._isDecided) return null;
      if (!header) throw new Error("The other side has left the transfer.");
      const fields = new FieldReader(header), kind = fields.u8(), length = fields.u32();
      check(length <= (kind === RECORD.data ? LONGEST_DATA : LONGEST_RECORD), "a record is too long");
      const content = new FieldReader(length > 0 ? await this._stream.readExactly(length) ?? NO_BYTES : NO_BYTES);
      if (kind === RECORD.stop) throw Object.assign(readFault(content), { isByOther: true });
      if (kind !== RECORD.paused && kind !== RECORD.resumed) return { kind, fields: content };
      this.paused = kind === RECORD.paused ? content.words(content.u16()) : null;
      content.end();
      this._report(true);
    }
  }

  _index(fields) {
    const index = fields.u32();
    check(index < this.files.length, "a record is about an item that does not exist");
    return index;
  }

  _settle(file, state, words = "") {
    file.state = state;
    file.words = words;
    if (state === "kept") file.bytes = Math.max(file.size, file.bytes);
    this._unfinished -= 1;
    this._report(true);
    if (this._unfinished > 0) return;
    this._isDecided = true;
    this._stream.finish();
    this.#finishTimer = this._environment.setTimeout(() => this._stream.stop(), FINISH_TIMEOUT);
  }

  _report(isUrgent) {
    const now = this._environment.now();
    if (!isUrgent && now - this.#lastReport < PROGRESS_INTERVAL) return;
    this.#lastReport = now;
    notify(this.onprogress, this);
  }
}

const isSettled = (file) => file.state === "kept" || file.state === "failed";

class OutgoingTransfer extends Transfer {
  #entries;
  /** Complete reports of the receiver, in their order; and the incomplete one. */
  #reports = [];
  #openReport = null;
  #reportCounts = [];
  #mayBeKept = new Set();
  #isAccepted = false;
  #isVersion2;
  #wakeSender = () => {};

  constructor(stream, entries, environment) {
    super(stream, environment);
    this.#isVersion2 = stream.purpose === PURPOSE.comparedFiles;
    this.#entries = entries;
    this.files = entries.map(({ file: { size }, path }) => (
      { name: path.split("/").pop(), path, size, bytes: 0, state: "waiting", words: "" }));
    this._unfinished = this.files.length;
    this._run(Promise.all([this.#offer().then(() => this.#sendAll()), this.#receiveAll()]));
  }

  async #offer() {
    await this._write(RECORD.offer, u8(this.#isVersion2 ? 2 : 1), u32(this.files.length), u16(0));
    for (const { file: { size, lastModified, type }, pathBytes } of this.#entries) {
      const modified = new DataView(new ArrayBuffer(8));
      const isKnown = lastModified !== undefined;
      modified.setBigInt64(0, isKnown ? BigInt(Math.round(lastModified)) * 1_000_000n : -(2n ** 63n));
      await this._write(RECORD.item, u8(0), u64(size), new Uint8Array(modified.buffer), bytes16(pathBytes),
        words8(type ?? ""), u16(0));
    }
  }

  // Records of the receiver

  async #receiveAll() {
    for (let record; (record = await this._next());) {
      if (this._isDecided) continue;
      this.#receive(record.kind, record.fields);
      record.fields.end();
      this.#wakeSender();
    }
  }

  #receive(kind, fields) {
    if (kind === RECORD.accept) {
      check(!this.#isAccepted, "the offer was accepted twice");
      this.#isAccepted = true;
      return;
    }
    check(this.#isAccepted && kind >= RECORD.have && kind <= RECORD.compare, "a record came out of turn");
    const index = this._index(fields), file = this.files[index];
    switch (kind) {
    case RECORD.stored:
      file.bytes = Math.min(Math.max(file.bytes, fields.u64()), file.size);
      return this._report(false);
    case RECORD.failed: {
      const fault = readFault(fields);
      if (!isSettled(file)) this._settle(file, "failed", fault.message);
      return;
    }
    case RECORD.kept:
      if (isSettled(file)) return;
      check(this.#mayBeKept.has(index), "a file was kept before it was sent");
      return this._settle(file, "kept");
    }
    // Reports on files.
    const hash = kind === RECORD.have ? { length: fields.u32(), hash: fields.take(32).slice() }
      : kind === RECORD.whole ? fields.take(32).slice() : null;
    if (isSettled(file)) {
      if (this.#openReport?.index === index) this.#openReport = null;
      return;
    }
    const report = this.#openReport ?? this.#newReport(index);
    check(report.index === index, "the report on a file is not whole");
    this.#openReport = report;
    if (kind === RECORD.have) {
      check(!report.isLast && hash.length >= 1 && hash.length <= PIECE, "a piece has a wrong length");
      report.isLast = hash.length < PIECE;
      report.length += hash.length;
      check(report.length <= file.size, "the receiver has more than the file");
      report.pieces.push(hash);
      return;
    }
    check(kind === RECORD.ready || report.pieces.length === 0, "the report on a file breaks a rule");
    check(kind !== RECORD.compare || this.#isVersion2, "a comparison came in version 1");
    report.question = kind === RECORD.compare;
    report.wholeHash = hash;
    this.#openReport = null;
    this.#reports.push(report);
  }

  #newReport(index) {
    check(this.#reports.length < MOST_REPORTS, "the receiver reports on too many files");
    this.#reportCounts[index] = (this.#reportCounts[index] ?? 0) + 1;
    return { index, pieces: [], length: 0, isLast: false, question: false, wholeHash: null };
  }

  // Sending

  async #sendAll() {
    while (this._unfinished > 0 && !this._isOver) {
      const report = this.#reports.shift();
      if (!report) {
        await new Promise((resolve) => { this.#wakeSender = resolve; });
      } else if (!isSettled(this.files[report.index])) {
        await this.#answer(report);
      }
    }
  }

  async #answer(report) {
    const { index } = report, file = this.files[index];
    file.state = "moving";
    try {
      if (this.#reportCounts[index] > MOST_REPORTS_OF_ONE_FILE) {
        throw new TransferError("damaged", "The receiver asks for the file again and again.");
      }
      const hash = report.wholeHash || report.question ? await this.#hashWhole(index) : null;
      if (isSettled(file)) return;
      this.#mayBeKept.add(index);
      if (report.question) await this._write(RECORD.claim, u32(index), u64(file.size), hash);
      else if (report.wholeHash && equal(hash, report.wholeHash)) await this._write(RECORD.same, u32(index));
      else await this.#send(report);
    } catch (fault) {
      if (!(fault instanceof TransferError) || this._isOver) throw fault;
      if (isSettled(file)) return;
      await this._write(RECORD.missing, u32(index), writeFault(fault));
      this._settle(file, "failed", fault.message);
    }
  }

  async #read(index, start, end) {
    try {
      const bytes = new Uint8Array(await this.#entries[index].file.slice(start, end).arrayBuffer());
      if (bytes.length === end - start) return bytes;
    } catch {
      // Browsers refuse to read a file that has changed.
    }
    throw new TransferError("changed", "The file has changed or cannot be read.");
  }

  async #hashWhole(index) {
    const hash = new SHA256(), { size } = this.files[index];
    for (let at = 0; at < size; at += PIECE) hash.update(await this.#read(index, at, Math.min(at + PIECE, size)));
    return hash.digest();
  }

  /** Sends what differs from the receiver's pieces, and all behind them. */
  async #send({ index, pieces }) {
    const file = this.files[index], hash = new SHA256();
    let announced = -1;
    for (let at = 0, number = 0; at < file.size || announced < 0; number++) {
      const piece = pieces[number], end = Math.min(at + (piece?.length ?? PIECE), file.size);
      const bytes = await this.#read(index, at, end);
      hash.update(bytes);
      if (isSettled(file)) return;
      if (!piece || !equal(new SHA256().update(bytes).digest(), piece.hash)) {
        if (announced !== at) await this._write(RECORD.begin, u32(index), u64(at));
        for (let from = 0; from < bytes.length && !isSettled(file); from += LONGEST_DATA) {
          await this._write(RECORD.data, bytes.subarray(from, from + LONGEST_DATA));
        }
        announced = end;
      } else {
        file.bytes = Math.max(file.bytes, end);
        if (end === file.size) break;
      }
      at = end;
    }
    if (!isSettled(file)) await this._write(RECORD.end, u32(index), u64(file.size), hash.digest());
  }

  _ended() {
    this.#wakeSender();
  }
}

/** Files that the host offers. */
export class Offer {
  #transfer;
  /** @type {{ name: string, path: string, size: number, type: string, modified: Date | null }[]} */
  files;

  /** Offers come from {@link Conversation#onoffer}. */
  constructor(transfer) {
    this.#transfer = transfer;
    this.files = transfer.files;
  }

  /** @returns {Transfer} */
  accept() {
    this.#transfer._accept();
    return this.#transfer;
  }

  /** @param {string} [words] */
  decline(words = "not wanted") {
    this.#transfer._stop(new TransferError("declined", words));
  }

  /** Resolves when the offer has ended: taken back, declined, or all of it moved. */
  get ended() { return this.#transfer.done.then(() => {}, () => {}); }
}

class IncomingTransfer extends Transfer {
  /** Of each file: `{ hash, parts, buffer, mismatches }`, while it is received. */
  #arriving = new Map();
  #isAccepted = false;
  #nextReport = 0;
  #current = -1;

  constructor(stream, environment, onOffer) {
    super(stream, environment);
    this._run(this.#receiveAll(onOffer));
  }

  async #receiveAll(onOffer) {
    const timer = this._environment.setTimeout(
      () => this._stop(new TransferError("cancelled", "The offer did not come in time.")), OFFER_TIMEOUT);
    try {
      await this.#receiveList();
    } finally {
      this._environment.clearTimeout(timer);
    }
    onOffer(new Offer(this));
    for (let record; (record = await this._next());) {
      if (this._isDecided) continue;
      check(this.#isAccepted, "a record came before the answer to the offer");
      this.#receive(record.kind, record.fields);
      record.fields.end();
      this.#reportNext();
    }
  }

  async #receiveList() {
    const { kind, fields } = await this._next();
    const version = this._stream.purpose === PURPOSE.comparedFiles ? 2 : 1;
    check(kind === RECORD.offer && fields.u8() === version, "the offer has another version");
    const count = fields.u32();
    check(fields.take(fields.u16()).length <= 4_096 && count >= 1 && count <= 100_000, "the offer breaks a rule");
    fields.end();
    for (let bytes = 0; this.files.length < count;) {
      const { kind, fields } = await this._next();
      bytes += fields.left;
      check(kind === RECORD.item, "an item is missing");
      this.#receiveItem(fields, version);
      if (count > MOST_RECEIVED_ITEMS || bytes > MOST_RECEIVED_LIST_BYTES) {
        throw new TransferError("declined", "There are more files than a browser takes at once.");
      }
    }
  }

  #receiveItem(fields, version) {
    const kind = fields.u8(), size = fields.i64(), changed = fields.i64();
    const length = fields.u16(), path = fields.anyText(length);
    const type = fields.words(), addition = fields.take(fields.u16());
    fields.end();
    check(kind <= version && size >= -1 && size <= 2 ** 45 && (kind !== 1 || size === 0), "an item breaks a rule");
    check(length >= 1 && length <= 4_096 && addition.length <= 1_024, "an item breaks a rule");
    const modified = changed > -(2 ** 62) && Math.abs(changed) < 8e21 ? new Date(changed / 1e6) : null;
    const about = { name: safeName(path), path, size, type, modified, isFolder: kind === 1 };
    this.files.push({ ...about, bytes: 0, state: "waiting", words: "" });
    this._unfinished += 1;
  }

  _accept() {
    if (this.#isAccepted || this._isOver) return;
    this.#isAccepted = true;
    this._stream.widen();
    this.#say(RECORD.accept);
    for (const [index, file] of this.files.entries()) {
      if (file.isFolder) this.#keep(index);
      else if (file.size > LARGEST_RECEIVED_FILE) this.#refuse(index);
    }
    this.#reportNext();
  }

  /** The window has room for all that is said here: reports on few files, and what follows their bytes. */
  #say(kind, ...parts) {
    this._write(kind, ...parts).catch(() => {});
  }

  #refuse(index, fault = new TransferError("tooLarge", "The file is larger than a browser takes (512 MiB).")) {
    this.#arriving.delete(index);
    this.#say(RECORD.failed, u32(index), writeFault(fault));
    this._settle(this.files[index], "failed", fault.message);
  }

  #keep(index) {
    this.#arriving.delete(index);
    this.#say(RECORD.kept, u32(index));
    this._settle(this.files[index], "kept");
  }

  /** Asks for further files. Nothing is there of any. */
  #reportNext() {
    while (this.#arriving.size < REPORTS_AHEAD && this.#nextReport < this.files.length) {
      const index = this.#nextReport++;
      if (!isSettled(this.files[index])) this.#ask(index, 0);
    }
  }

  #ask(index, mismatches) {
    this.files[index].bytes = 0;
    this.#arriving.set(index, { hash: new SHA256(), parts: [], buffer: [], buffered: 0, reported: 0, mismatches });
    this.#say(RECORD.ready, u32(index));
  }

  #receive(kind, fields) {
    if (kind === RECORD.data) return this.#receiveData(fields.rest());
    check(kind === RECORD.begin || kind === RECORD.end || kind === RECORD.missing, "a record came out of turn");
    const index = this._index(fields), file = this.files[index], arriving = this.#arriving.get(index);
    if (kind === RECORD.missing) {
      const fault = readFault(fields);
      this.#arriving.delete(index);
      if (!isSettled(file)) this._settle(file, "failed", fault.message);
      return;
    }
    check(arriving || isSettled(file), "bytes came of a file that was not asked for");
    if (kind === RECORD.begin) {
      const offset = fields.u64();
      check(!arriving || offset === file.bytes, "bytes of a file do not begin where the earlier ones end");
      this.#current = index;
      if (arriving) file.state = "moving";
      return;
    }
    const size = fields.u64(), hash = fields.take(32);
    this.#current = -1;
    if (!arriving) return;
    check(file.size < 0 || size === file.size, "a file has another size than was offered");
    if (size === file.bytes && equal(arriving.hash.digest(), hash)) {
      this.#spill(arriving);
      const type = HARMLESS_TYPE.test(file.type) ? file.type : "application/octet-stream";
      file.blob = new Blob(arriving.parts, { type });
      this.#keep(index);
    } else if (arriving.mismatches + 1 < MOST_MISMATCHES && file.size >= 0) {
      this.#ask(index, arriving.mismatches + 1);
    } else {
      this.#refuse(index, new TransferError("damaged", "What arrived is not what was sent."));
    }
  }

  #receiveData(bytes) {
    const file = this.files[this.#current], arriving = this.#arriving.get(this.#current);
    check(file && bytes.length > 0, "bytes came of no file");
    if (!arriving) return;
    const end = file.bytes + bytes.length;
    check(file.size < 0 || end <= file.size, "more bytes of a file came than it has");
    if (end > LARGEST_RECEIVED_FILE) return this.#refuse(this.#current);
    arriving.hash.update(bytes);
    arriving.buffer.push(bytes);
    arriving.buffered += bytes.length;
    file.bytes = end;
    // Short pieces go together too, so that their number stays small.
    if (arriving.buffered >= PIECE || arriving.buffer.length >= 1_024) this.#spill(arriving);
    if (end - arriving.reported >= PIECE / 4) {
      arriving.reported = end;
      this.#say(RECORD.stored, u32(this.#current), u64(end));
    }
    this._report(false);
  }

  /** Hands what is in memory to the browser, which may put it on its disk. */
  #spill(arriving) {
    if (arriving.buffer.length > 0) arriving.parts.push(new Blob(arriving.buffer));
    arriving.buffer = [];
    arriving.buffered = 0;
    if (arriving.parts.length >= 1_024) arriving.parts = [new Blob(arriving.parts)];
  }
}

// ---- Guests

/** @type {Environment} */
const BROWSER = {
  now: () => Date.now(),
  setTimeout: (callback, milliseconds) => setTimeout(callback, milliseconds),
  clearTimeout: (timer) => clearTimeout(timer),
  randomBytes,
  openWebSocket: (url) => new WebSocket(url, "nigh.1"),
  onWake(callback) {
    const listener = () => { if (document.visibilityState === "visible") callback(); };
    addEventListener("online", callback);
    addEventListener("pageshow", callback);
    document.addEventListener("visibilitychange", listener);
    return () => {
      removeEventListener("online", callback);
      removeEventListener("pageshow", callback);
      document.removeEventListener("visibilitychange", listener);
    };
  },
};

/**
 * Opens a WebSocket and enters.
 * @returns {Promise<{ pipe: Pipe, peer: Uint8Array, host: Object }>} The pipe behind the messages of entering.
 */
function openPipe(url, key, token, environment) {
  return new Promise((resolve, reject) => {
    const socket = environment.openWebSocket(url);
    socket.binaryType = "arraybuffer";
    const pipe = {
      send: (bytes) => { if (socket.readyState === 1) socket.send(bytes); },
      close: () => socket.close(),
      get bufferedAmount() { return socket.bufferedAmount; },
      onbytes: () => {},
      onclose: () => {},
    };
    let isEntered = false;
    const fail = (error) => {
      environment.clearTimeout(timer);
      socket.onclose = socket.onmessage = socket.onerror = null;
      socket.close();
      if (isEntered) pipe.onclose();
      else reject(error);
    };
    const timer = environment.setTimeout(() => fail(new Error("The host does not answer.")), DIAL_TIMEOUT);
    socket.onopen = () => socket.send(concat(u8(1), key, token ?? NO_BYTES));
    socket.onclose = socket.onerror = () => fail(new Error("There is no connection to the host."));
    socket.onmessage = ({ data }) => {
      if (!(data instanceof ArrayBuffer) || data.byteLength > LONGEST_WEBSOCKET_MESSAGE) {
        return fail(new Error("The host sent something else than binary messages of up to 64 KiB."));
      }
      if (isEntered) return pipe.onbytes(new Uint8Array(data));
      try {
        const entered = readEntered(new FieldReader(new Uint8Array(data)));
        environment.clearTimeout(timer);
        isEntered = true;
        resolve({ pipe, ...entered });
      } catch (error) {
        fail(error instanceof Refused ? error : new Error(`The host's answer makes no sense: ${error.message}`));
      }
    };
  });
}

function readEntered(fields) {
  const kind = fields.u8();
  if (kind === 2) {
    const code = fields.u8(), seconds = fields.u32();
    throw new Refused("enter", code, seconds, fields.words());
  }
  check(kind === 1, "the first message is neither an entrance nor a refusal");
  const peer = fields.take(32).slice(), advertisement = new FieldReader(fields.take(fields.u16()));
  const service = advertisement.text(advertisement.u8()), name = advertisement.words(), info = new Map();
  while (advertisement.left > 0) {
    const pair = lenientDecoder.decode(advertisement.take(advertisement.u8())), at = pair.indexOf("=");
    if (at > 0) info.set(pair.slice(0, at), pair.slice(at + 1));
  }
  const host = { service, name, peer: info.get("id") ?? "", info };
  info.delete("id");
  info.delete("v");
  host.peerBytes = parseBase32(host.peer);
  check(host.peerBytes.length === 32, "the host's PeerID is missing");
  return { peer, host };
}

/** @param {string} text */
function parseBase32(text) {
  const bytes = [];
  let bits = 0, count = 0;
  for (const character of text) {
    const value = BASE32.indexOf(character);
    check(value >= 0, "a PeerID has a wrong character");
    bits = ((bits << 5) | value) & 0xfff;
    count += 5;
    if (count < 8) continue;
    count -= 8;
    bytes.push((bits >> count) & 0xff);
  }
  return Uint8Array.from(bytes);
}

/** This browser as a guest of a host: who it is, and how it gets there. */
export class Guest {
  #dial;
  #environment;
  #spare;
  #conversation = null;
  #attempts = 0;
  /** @ignore */
  groupNumbers = { last: 0 };
  /** @ignore */
  identity;

  /**
   * Enters a host.
   * @param {string} url Of the host's WebSocket.
   * @param {{ key: Uint8Array, token?: Uint8Array | null, environment?: Environment }} options `key`: 32 random bytes
   *   that this browser keeps; `token`: 16 bytes, until the host knows the key.
   * @returns {Promise<Guest>} Throws {@link Refused} if the host refuses.
   */
  static async enter(url, { key, token = null, environment = BROWSER }) {
    const { pipe, peer, host } = await openPipe(url, key, token, environment);
    const dial = async () => (await openPipe(url, key, null, environment)).pipe;
    return new Guest({ dial, pipe, peer, host, environment });
  }

  /** Whether a text can be a display name: 1 to 63 bytes without control characters. @param {string} text */
  static nameFits(text) {
    const length = encoder.encode(text).length;
    return length >= 1 && length <= 63 && !CONTROL_CHARACTER.test(text);
  }

  /**
   * A guest over other pipes, for tests.
   * @param {{ dial: () => Promise<Pipe>, pipe?: Pipe, peer: Uint8Array, host: Object, environment: Environment }} parts
   */
  constructor({ dial, pipe = null, peer, host, environment }) {
    this.#dial = dial;
    this.#environment = environment;
    this.identity = { peer, host, incarnation: environment.randomBytes(8) };
    /** This guest's PeerID, as text. */
    this.peer = base32(peer);
    /** The host: its service, name, PeerID as text, and the pairs of its program. */
    this.host = host;
    this.#spare = pipe;
    if (pipe) pipe.onclose = () => { this.#spare = null; };
  }

  /**
   * Invites the host to a conversation. Throws {@link Refused} if it declines.
   * @param {{ name: string, context: Uint8Array | string, timeout?: number, signal?: AbortSignal }} options
   * @returns {Promise<Conversation>}
   */
  async join({ name, context, timeout = 90_000, signal }) {
    const bytes = toBytes(context);
    if (!Guest.nameFits(name)) throw new RangeError("A name has 1 to 63 bytes and no control characters.");
    if (bytes.length > 4_096) throw new RangeError("A context has at most 4,096 bytes.");
    if (this.#conversation) throw new Error("There is a conversation already.");
    if (signal?.aborted) throw new Error("The invitation was taken back.");
    const request = { name, context: bytes, timeout: Math.min(Math.max(timeout, 1), 0x7000_0000), signal };
    this.#conversation = new Conversation(this, this.#environment, request);
    return this.#conversation.joined;
  }

  /** @ignore */
  async dial() {
    const pipe = this.#spare ?? (await this.#dial());
    this.#spare = null;
    return pipe;
  }

  /** @ignore */
  nextAttempt() {
    return ++this.#attempts;
  }

  /** @ignore */
  conversationEnded(conversation) {
    if (conversation === this.#conversation) this.#conversation = null;
  }
}
