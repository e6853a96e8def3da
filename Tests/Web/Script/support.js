// What the tests of nigh.js share: virtual time, pipes in memory that can break, and a small accepting side.
// The accepting side shares no code with nigh.js, so that both would have to make the same mistake.

import { Guest } from "../../../Sources/Transports/Web/Script/nigh.js";

/** A generator of numbers from 0 up to 1, the same for the same seed (mulberry32). */
export function seededRandom(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export const hex = (text) => Uint8Array.from(text.replace(/\s+/g, "").match(/../g) ?? [], (pair) => parseInt(pair, 16));
export const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
export const text = (string) => new TextEncoder().encode(string);
export const repeat = (byte, count) => new Uint8Array(count).fill(byte);

export function join(...parts) {
  return Uint8Array.from(Buffer.concat(parts.map((part) => (typeof part === "number" ? Uint8Array.of(part) : part))));
}

/** A number in so many bytes. */
export function number(value, length) {
  const bytes = new Uint8Array(length);
  for (let at = length - 1; at >= 0; at--, value = Math.floor(value / 256)) bytes[at] = value % 256;
  return bytes;
}

export const frame = (type, ...parts) => join(number(join(...parts).length, 3), type, ...parts);

const readNumber = (bytes, at, length) => bytes.subarray(at, at + length).reduce((sum, byte) => sum * 256 + byte, 0);

/** Time that passes only when a test says so. */
export class Clock {
  now = 0;
  #timers = new Map();
  #count = 0;

  set(callback, milliseconds) {
    this.#timers.set(++this.#count, { callback, at: this.now + Math.max(0, milliseconds) });
    return this.#count;
  }

  clear(timer) {
    this.#timers.delete(timer);
  }

  /** Lets everything run that waits for no time. */
  settle() {
    return new Promise((resolve) => setImmediate(resolve));
  }

  /** Lets time pass. Stops early if a condition holds. */
  async run(milliseconds, isDone = () => false) {
    const end = this.now + milliseconds;
    await this.settle();
    while (!isDone()) {
      let next = null;
      for (const [id, timer] of this.#timers) if (!next || timer.at < next.at) next = { id, ...timer };
      if (!next || next.at > end) {
        this.now = end;
        break;
      }
      this.now = Math.max(this.now, next.at);
      this.#timers.delete(next.id);
      next.callback();
      await this.settle();
    }
  }

  /** Time passes for everything but timers, as on a device that sleeps. They are late then. */
  sleep(milliseconds) {
    this.now += milliseconds;
  }

  environment(random = seededRandom(1)) {
    const wakers = new Set();
    return {
      now: () => this.now,
      setTimeout: (callback, milliseconds) => this.set(callback, milliseconds),
      clearTimeout: (timer) => this.clear(timer),
      randomBytes: (count) => Uint8Array.from({ length: count }, () => Math.floor(random() * 256)),
      onWake: (callback) => {
        wakers.add(callback);
        return () => wakers.delete(callback);
      },
      wake: () => { for (const callback of [...wakers]) callback(); },
      wakers,
    };
  }
}

/** Two pipes that lead to each other. Bytes arrive after a while, in other pieces than they were sent. */
export function pipePair(clock, { latency = 1, random = null } = {}) {
  const make = () => ({ onbytes: () => {}, onclose: () => {}, bufferedAmount: 0, isOpen: true, isMute: false, sent: 0 });
  const ends = [make(), make()];
  for (const [index, end] of ends.entries()) {
    const other = ends[1 - index];
    let lastArrival = 0;
    const arrive = (action) => {
      lastArrival = Math.max(lastArrival, clock.now + latency * (random ? 0.5 + random() : 1));
      clock.set(action, lastArrival - clock.now);
    };
    end.send = (bytes) => {
      if (!end.isOpen) return;
      const copy = bytes.slice();
      end.sent += copy.length;
      end.bufferedAmount += copy.length;
      arrive(() => {
        end.bufferedAmount -= copy.length;
        if (end.isMute) return;
        for (let at = 0; at < copy.length && other.isOpen;) {
          const length = random && random() < 0.5 ? 1 + Math.floor(random() * (copy.length - at)) : copy.length - at;
          other.onbytes(copy.slice(at, at + length));
          at += length;
        }
      });
    };
    end.close = () => {
      if (!end.isOpen) return;
      end.isOpen = false;
      arrive(() => {
        if (!other.isOpen) return;
        other.isOpen = false;
        other.onclose();
      });
    };
  }
  /** Breaks the pipe; what is under way is lost. */
  const cut = () => {
    for (const end of ends) {
      if (!end.isOpen) continue;
      end.isOpen = false;
      clock.set(() => end.onclose(), random ? random() * 20 : 0);
    }
  };
  return { guest: ends[0], host: ends[1], cut };
}

/** The accepting side of a conversation. It notes as `faults` what the guest does against the protocol. */
export class TestHost {
  peer = repeat(0xa2, 32);
  incarnation = repeat(0xb2, 8);
  service = "chat";
  hostName = "Lynx";
  abilities = 0x807;
  longestFrame = 16_384;
  longestMessage = 16 << 20;
  window = 1 << 20;
  streamWindow = 256 << 10;
  streamLimit = 256;
  faults = [];
  closes = [];
  contexts = [];
  decline = null;
  answers = true;
  acknowledges = true;
  link = null;
  conversation = null;
  attempts = [];
  unreliable = [];
  guestIsGreater = false;
  onstream = () => {};
  onmessage = () => {};
  /** Frames that came, as [type, payload], if a test wants them. */
  log = null;

  constructor(clock) {
    this.clock = clock;
    this.#begin();
  }

  /** What belongs to one conversation. */
  #begin() {
    const lane = () => ({ queue: [], acknowledged: 0, count: 0, partial: null, bytesIn: 0, granted: 0, bytesOut: 0, grant: 0, next: 0 });
    Object.assign(this, { lanes: [lane(), lane()], received: [[], []], streams: new Map(), streamFrames: [],
      streamFramesAcknowledged: 0, streamFramesNext: 0, streamFramesReceived: 0, nextStream: 1 });
  }

  fault(words) {
    this.faults.push(words);
  }

  accept(pipe) {
    const link = { pipe, bytes: new Uint8Array(0), stage: "preface" };
    pipe.onbytes = (bytes) => this.#bytes(link, bytes);
    pipe.onclose = () => { if (this.link === link) this.link = null; };
    pipe.send(hex("4e49474801010000"));
  }

  write(link, ...bytes) {
    link.pipe.send(join(...bytes));
  }

  #bytes(link, bytes) {
    link.bytes = join(link.bytes, bytes);
    let at = 0;
    const left = () => link.bytes.length - at;
    if (link.stage === "preface") {
      if (left() < 8) return;
      if (toHex(link.bytes.subarray(0, 6)) !== "4e4947480101") this.fault("preface");
      at = 8;
      link.stage = "hello";
      this.write(link, this.hello());
    }
    while (left() >= 4) {
      const length = readNumber(link.bytes, at, 3);
      if (length > this.longestFrame) this.fault("a frame is too long");
      if (left() < 4 + length) break;
      this.#frame(link, link.bytes[at + 3], link.bytes.slice(at + 4, at + 4 + length));
      at += 4 + length;
    }
    link.bytes = link.bytes.slice(at);
    this.pump();
  }

  hello() {
    const streams = this.abilities & 1 ? join(2, number(6, 2), number(this.streamLimit, 2), number(this.streamWindow, 4)) : join();
    return frame(1, 1, 1, number(this.abilities, 4), this.peer, this.incarnation, number(this.longestFrame, 4),
      number(this.longestMessage, 4), this.service.length, text(this.service), this.hostName.length, text(this.hostName), streams);
  }

  #standing() {
    for (const lane of this.lanes) lane.granted = Math.max(lane.granted, lane.bytesIn + this.window);
    return join(...this.lanes.map((lane) => number(lane.count, 8)), ...this.lanes.map((lane) => number(lane.granted, 8)));
  }

  #streamCount() {
    return this.streamFramesReceived > 0 ? number(this.streamFramesReceived, 8) : join();
  }

  #readStanding(bytes) {
    this.lanes.forEach((lane, index) => {
      const count = readNumber(bytes, 8 * index, 8);
      if (count > lane.acknowledged + lane.queue.length) this.fault("too much is acknowledged");
      if (count > lane.acknowledged) {
        lane.queue.splice(0, count - lane.acknowledged);
        lane.next -= count - lane.acknowledged;
        lane.acknowledged = count;
      }
      const grant = readNumber(bytes, 16 + 8 * index, 8);
      if (grant < lane.grant) this.fault("a grant shrinks");
      lane.grant = grant;
    });
    const count = bytes.length > 32 ? readNumber(bytes, 32, 8) : 0;
    if (bytes.length > 32 && count === 0) this.fault("a count of 0");
    if (count > this.streamFramesAcknowledged + this.streamFrames.length) this.fault("too many stream frames are acknowledged");
    if (count > this.streamFramesAcknowledged) {
      this.streamFrames.splice(0, count - this.streamFramesAcknowledged);
      this.streamFramesNext -= count - this.streamFramesAcknowledged;
      this.streamFramesAcknowledged = count;
    }
  }

  #frame(link, type, payload) {
    this.log?.push([type, payload]);
    if (link.stage === "hello") {
      if (type === 2) return this.closes.push(readNumber(payload, 0, 2));
      if (type !== 1) this.fault("no hello");
      this.guestPeer = payload.slice(6, 38);
      this.guestIsGreater = toHex(this.guestPeer) > toHex(this.peer);
      link.stage = "request";
      return;
    }
    if (type === 2) {
      this.closes.push(readNumber(payload, 0, 2));
      if (this.link === link) this.link = null;
      return link.pipe.close();
    }
    if (type === 3) {
      this.acknowledge(link);
      return this.write(link, frame(4, payload));
    }
    if (type === 4) return;
    if (type === 6 || type === 9) return this.#request(link, type, payload);
    if (link !== this.link) return this.fault(`frame ${type} out of turn`);
    if (type === 5) return this.#readStanding(payload);
    if (type === 0x20) return this.unreliable.push(payload);
    if (type === 0x18 || type === 0x19) return this.#streamFrame(type, payload);
    this.#laneFrame(type, payload);
  }

  #request(link, type, payload) {
    const id = toHex(payload.subarray(0, 8)), attempt = readNumber(payload, 8, 8), contextLength = readNumber(payload, 52, 2);
    if (this.attempts.some((earlier) => earlier >= attempt)) this.fault("an attempt does not grow");
    this.attempts.push(attempt);
    if (!this.answers) return;
    const decline = this.decline ?? (type === 9 && id !== this.conversation ? { code: 3, seconds: 0, words: "" } : null);
    if (decline) {
      return this.write(link, frame(8, payload.subarray(0, 8), decline.code, number(decline.seconds, 4), decline.words.length, text(decline.words)));
    }
    this.link?.pipe.close();
    this.link = link;
    this.conversation = id;
    if (type === 6 && this.contexts.length > 0 && id !== this.lastId) this.#begin();
    this.lastId = id;
    if (type === 6) this.contexts.push(payload.slice(54, 54 + contextLength));
    for (const lane of this.lanes) Object.assign(lane, { partial: null, bytesIn: 0, granted: 0, bytesOut: 0, grant: 0 });
    this.#readStanding(join(payload.subarray(16, 48), payload.subarray(54 + contextLength)));
    for (const lane of this.lanes) lane.next = 0;
    this.streamFramesNext = 0;
    this.write(link, frame(7, payload.subarray(0, 8), number(0, 8), this.#standing(), this.#streamCount()));
  }

  acknowledge(link = this.link) {
    if (this.acknowledges && link && link === this.link) this.write(link, frame(5, this.#standing(), this.#streamCount()));
  }

  #acknowledgeSoon() {
    if (this.isAcknowledging) return;
    this.isAcknowledging = true;
    this.clock.set(() => {
      this.isAcknowledging = false;
      this.acknowledge();
    }, 20);
  }

  // Lanes

  #laneFrame(type, payload) {
    const index = type & 1, lane = this.lanes[index];
    if (lane.bytesIn >= lane.granted) this.fault("more came than was granted");
    lane.bytesIn += payload.length + 4;
    this.#acknowledgeSoon();
    if (lane.bytesIn + this.window - lane.granted >= this.window / 4) this.acknowledge();
    const whole = (kind, bytes) => {
      lane.count += 1;
      this.received[index].push({ kind, bytes });
      this.onmessage(index, kind, bytes);
    };
    if (lane.partial && (type & 0xfe) !== 0x14) this.fault("a message within another one");
    switch (type & 0xfe) {
    case 0x10: return whole(0, payload);
    case 0x16: return whole(payload[0], payload.slice(1));
    case 0x12:
      lane.partial = { kind: payload[4] ?? 0, size: readNumber(payload, 0, 4), parts: [], length: 0 };
      return;
    case 0x14:
      lane.partial.parts.push(payload);
      lane.partial.length += payload.length;
      if (lane.partial.length > lane.partial.size) this.fault("a piece does not fit");
      if (lane.partial.length === lane.partial.size) {
        const { kind, parts } = lane.partial;
        lane.partial = null;
        whole(kind, join(...parts));
      }
      return;
    default: this.fault(`an unknown frame ${type}`);
    }
  }

  send(bytes, index = 0, kind = 0) {
    this.lanes[index].queue.push({ bytes, kind });
    this.pump();
  }

  pump() {
    if (!this.link) return;
    for (const [index, lane] of this.lanes.entries()) {
      while (lane.next < lane.queue.length && lane.bytesOut < lane.grant) {
        const { bytes, kind } = lane.queue[lane.next];
        const put = (...parts) => {
          const whole = frame(...parts);
          lane.bytesOut += whole.length;
          this.write(this.link, whole);
        };
        if (lane.offset === undefined || lane.offsetLink !== this.link) lane.offset = -1;
        lane.offsetLink = this.link;
        if (lane.offset < 0 && bytes.length <= 16_000) {
          if (kind > 0) put(0x16 | index, kind, bytes);
          else put(0x10 | index, bytes);
          lane.next += 1;
        } else if (lane.offset < 0) {
          put(0x12 | index, number(bytes.length, 4), ...(kind > 0 ? [kind] : []));
          lane.offset = 0;
        } else {
          put(0x14 | index, bytes.subarray(lane.offset, lane.offset + 16_384));
          lane.offset += 16_384;
          if (lane.offset >= bytes.length) {
            lane.offset = -1;
            lane.next += 1;
          }
        }
      }
    }
    for (const stream of this.streams.values()) stream.pump();
    while (this.streamFramesNext < this.streamFrames.length) this.write(this.link, this.streamFrames[this.streamFramesNext++]);
  }

  // Streams

  putStreamFrame(bytes) {
    this.streamFrames.push(bytes);
    this.pump();
  }

  openStream(name = "", purpose = 0) {
    const id = this.nextStream + (this.guestIsGreater ? 1 : 0);
    this.nextStream += 2;
    const stream = this.#makeStream(id, name, purpose, true);
    this.putStreamFrame(purpose > 0 ? frame(0x19, number(id, 4), 6, purpose, name.length, text(name))
      : frame(0x19, number(id, 4), 0, name.length, text(name)));
    return stream;
  }

  #makeStream(id, name, purpose, isOwn) {
    const host = this;
    const stream = {
      id, name, purpose, isOwn, length: 0, parts: [], granted: this.streamWindow, credit: 256 << 10, sent: 0, unsent: [], end: null,
      ownEnd: null, isReleased: false, reads: true, onbytes: () => {}, onend: () => {},
      write(bytes) {
        this.unsent.push(bytes);
        host.pump();
      },
      finish() { this.wantsEnd = true; host.pump(); },
      pump() {
        if (this.ownEnd !== null) return;
        while (this.unsent.length > 0 && this.sent < this.credit) {
          const bytes = this.unsent.shift(), part = bytes.subarray(0, 16_000);
          if (bytes.length > part.length) this.unsent.unshift(bytes.subarray(part.length));
          if (part.length === 0) continue;
          this.sent += part.length;
          host.streamFrames.push(frame(0x18, number(id, 4), part));
        }
        if (this.wantsEnd && this.unsent.length === 0) {
          this.ownEnd = "finish";
          host.streamFrames.push(frame(0x19, number(id, 4), 2));
          this.releaseIfOver();
        }
      },
      cancel(words = "") {
        this.ownEnd = "cancel";
        this.unsent = [];
        host.putStreamFrame(frame(0x19, number(id, 4), 3, words.length, text(words)));
        this.releaseIfOver();
      },
      stop(words = "") { host.putStreamFrame(frame(0x19, number(id, 4), 4, words.length, text(words))); },
      releaseIfOver() {
        if (this.isOwn || this.isReleased || this.end === null || this.ownEnd === null) return;
        this.isReleased = true;
        host.streams.delete(id);
        host.putStreamFrame(frame(0x19, number(id, 4), 5));
      },
    };
    this.streams.set(id, stream);
    return stream;
  }

  #streamFrame(type, payload) {
    this.streamFramesReceived += 1;
    this.#acknowledgeSoon();
    if (this.streamFramesReceived % 16 === 0) this.acknowledge();
    const id = readNumber(payload, 0, 4), stream = this.streams.get(id), kind = payload[4];
    if (type === 0x18) {
      if (!stream || stream.end !== null || payload.length < 5) return this.fault("bytes of a stream that is not open");
      if (stream.length >= stream.granted) this.fault("more of a stream came than was granted");
      stream.length += payload.length - 4;
      stream.parts.push(payload.slice(4));
      stream.onbytes(payload.slice(4));
      if (stream.reads && stream.length + this.streamWindow - stream.granted >= this.streamWindow / 4) {
        stream.granted = stream.length + this.streamWindow;
        this.putStreamFrame(frame(0x19, number(id, 4), 1, number(stream.granted, 8)));
      }
      return;
    }
    if (kind === 0 || kind === 6) {
      if (this.streams.has(id) || id % 2 !== (this.guestIsGreater ? 1 : 0)) this.fault("a wrong number of a stream");
      const at = kind === 0 ? 5 : 6;
      return this.onstream(this.#makeStream(id, Buffer.from(payload.slice(at + 1)).toString(), kind === 0 ? 0 : payload[5], false));
    }
    if (!stream) {
      if (kind !== 1 && kind !== 4) this.fault(`kind ${kind} for a stream that is not open`);
      return;
    }
    switch (kind) {
    case 1: {
      const credit = readNumber(payload, 5, 8);
      if (credit < stream.credit) this.fault("a credit shrinks");
      stream.credit = credit;
      break;
    }
    case 2:
    case 3:
      if (stream.end !== null) this.fault("a stream ended twice");
      stream.end = kind === 2 ? "finish" : Buffer.from(payload.slice(6)).toString();
      stream.onend(stream.end);
      stream.releaseIfOver();
      break;
    case 4:
      stream.stopped = Buffer.from(payload.slice(6)).toString();
      if (stream.ownEnd === null) stream.cancel(stream.stopped);
      break;
    case 5:
      if (!stream.isOwn || stream.end === null || stream.ownEnd === null) this.fault("a stream was released too early");
      stream.isReleased = true;
      this.streams.delete(id);
      break;
    default: this.fault(`an unknown kind ${kind}`);
    }
  }
}

/** A guest and a host in one virtual world. */
export class World {
  clock = new Clock();
  pipes = [];
  dials = 0;
  isReachable = true;
  /** How many links break by themselves, after up to 400 ms. */
  cutsLeft = 0;

  constructor({ seed = 1, latency = 1, peer = repeat(0xa1, 32), splits = false } = {}) {
    this.random = seededRandom(seed);
    this.host = new TestHost(this.clock);
    this.environment = this.clock.environment(this.random);
    const dial = async () => {
      this.dials += 1;
      if (!this.isReachable) throw new Error("There is no connection to the host.");
      const pipes = pipePair(this.clock, { latency, random: splits ? this.random : null });
      this.pipes.push(pipes);
      this.host.accept(pipes.host);
      if (this.cutsLeft-- > 0) this.clock.set(pipes.cut, this.random() * 400);
      return pipes.guest;
    };
    const host = { service: "chat", name: "Lynx", peer: "", info: new Map(), peerBytes: this.host.peer };
    this.guest = new Guest({ dial, peer, host, environment: this.environment });
  }

  get pipe() {
    return this.pipes[this.pipes.length - 1];
  }

  cut() {
    this.pipe.cut();
  }

  async join(options = {}) {
    const joined = this.guest.join({ name: "Puma", context: "hi there", timeout: 30_000, ...options });
    joined.catch(() => {});
    let conversation = null;
    joined.then((value) => { conversation = value; }, () => { conversation = false; });
    await this.clock.run(60_000, () => conversation !== null);
    return joined;
  }

  /** Lets time pass until a promise is settled, and returns its result. */
  async wait(promise, milliseconds = 600_000) {
    let isDone = false;
    const finished = () => { isDone = true; };
    promise.then(finished, finished);
    await this.clock.run(milliseconds, () => isDone);
    if (!isDone) throw new Error("It took too long.");
    return promise;
  }
}
