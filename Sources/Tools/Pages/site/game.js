// Four in a Row: the table as a guest or a watcher sees it, and the board on the page.
// docs/reference/fourinarow-protocol.md describes the messages and the rules. This page comes from the host's program,
// so it does not check what the host reports, as the program of another player does.

import { Lines, cut, plain } from "./chat.js";

const columnCount = 7, rowCount = 6;
/** The host plays red, its guest yellow. */
const red = 0, yellow = 1;
const colours = ["red", "yellow"];
const numbers = ["no", "one", "two", "three", "four", "five", "six"];

const kinds = { welcome: 1, happened: 2, request: 16 };
const moved = 1, resigned = 2, rematch = 3, said = 4, sat = 5, left = 6, brokenOff = 7, watched = 8, resumed = 9;

/** What a program did that the rules forbid, by the number in a message. */
const breaches = [
  "", "moved out of turn", "played a column that is full", "claimed a wrong result",
  "sent something that cannot be read", "did something that cannot be done now",
  "reported something that has not happened",
];

// The table

/** One game, from the first move to the ending. */
class Game {
  /** The discs of each column, from the bottom up. */
  columns = Array.from({ length: columnCount }, () => []);
  moves = [];
  /** The cell of the last disc, as [column, row]. */
  last = null;
  /** How the game ended, as { how, disc, cells, breach }; null while it goes on. */
  ending = null;

  constructor(number, starter, moves = []) {
    this.number = number;
    this.starter = starter;
    for (const column of moves) this.play(column);
  }

  get turn() {
    return this.ending ? null : (this.starter + this.moves.length) % 2;
  }

  hasRoom(column) {
    return this.columns[column].length < rowCount;
  }

  play(column) {
    const disc = this.turn;
    this.last = [column, this.columns[column].push(disc) - 1];
    this.moves.push(column);
    const cells = this.linesThrough(...this.last, disc);
    if (cells.length > 0) this.ending = { how: "line", disc, cells };
    else if (this.moves.length === columnCount * rowCount) this.ending = { how: "draw" };
  }

  /** Returns the cells of all lines of four or more through a cell. */
  linesThrough(column, row, disc) {
    const cells = [];
    for (const [across, up] of [[1, 0], [0, 1], [1, 1], [1, -1]]) {
      const line = [[column, row]];
      for (const way of [1, -1]) {
        let [x, y] = [column + way * across, row + way * up];
        for (; this.columns[x]?.[y] === disc; x += way * across, y += way * up) line.push([x, y]);
      }
      if (line.length >= 4) cells.push(...line);
    }
    return cells;
  }

  /** Returns what a player has to claim about a move: 0 the game goes on, 1 a line, 2 a draw. */
  claim(column) {
    const next = new Game(this.number, this.starter, [...this.moves, column]);
    return { line: 1, draw: 2 }[next.ending?.how] ?? 0;
  }
}

/** The table, after a number of events. */
class Table {
  eventCount = 0;
  watchers = 0;
  /** The name of the guest; null while the seat is free. */
  guest = null;
  /** The name of the last guest that left. */
  formerGuest = "the guest";
  game = null;

  get isPlaying() {
    return this.game !== null && this.game.ending === null;
  }

  /** The colour that moves next; null if nobody can move now. */
  get turn() {
    return this.guest === null ? null : this.game.turn;
  }

  get canRematch() {
    return this.guest !== null && !this.isPlaying;
  }

  apply({ what, disc, column, name, breach, count }) {
    this.eventCount += 1;
    if (what === moved) this.game.play(column);
    if (what === resigned) this.game.ending = { how: "resigned", disc };
    if (what === brokenOff) this.game.ending = { how: "brokenOff", disc, breach };
    if (what === left && this.isPlaying) this.game.ending = { how: "left" };
    if (what === left) [this.formerGuest, this.guest] = [this.guest, null];
    if (what === sat || what === resumed) this.guest = name;
    if (what === sat || what === rematch) this.game = new Game((this.game?.number ?? 0) + 1, disc ?? red);
    if (what === watched) this.watchers = count;
  }
}

// Messages

class Reader {
  constructor(bytes) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.position = 0;
  }

  byte() {
    return this.view.getUint8(this.position++);
  }

  short() {
    return this.byte() * 256 + this.byte();
  }

  number() {
    return this.short() * 65536 + this.short();
  }

  /** Reads a text; an empty one is null. */
  text() {
    const bytes = Array.from({ length: this.byte() }, () => this.byte());
    return bytes.length === 0 ? null : plain(new TextDecoder().decode(Uint8Array.from(bytes)));
  }

  /** Reads what follows in a welcome. */
  table() {
    const table = new Table();
    table.eventCount = this.number();
    table.isSeated = this.byte() === 1;
    table.watchers = this.short();
    table.guest = this.text();
    if (this.byte() === 1) table.game = this.game();
    return table;
  }

  game() {
    const [number, starter] = [this.number(), this.byte()];
    const how = [null, "resigned", "left", "brokenOff"][this.byte()];
    const ending = how && { how, disc: this.byte(), breach: how === "brokenOff" ? this.byte() : 0 };
    const game = new Game(number, starter, Array.from({ length: this.byte() }, () => this.byte()));
    game.ending ??= ending;
    return game;
  }

  event() {
    const what = this.byte();
    const event = { what };
    if ([moved, resigned, rematch, said, brokenOff].includes(what)) event.disc = this.byte();
    if (what === moved) [event.column, event.claim] = [this.byte(), this.byte()];
    if (what === said) event.text = this.text();
    if (what === sat || what === resumed) event.name = this.text();
    if (what === brokenOff) event.breach = this.byte();
    if (what === watched) event.count = this.short();
    return event;
  }
}

/** Encodes what the guest asks for. The action is done when the host reports it. */
function request(table, { what, column, text }) {
  const number = (value) => [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255];
  let more = [];
  if (what === moved) more = [column, table.game.claim(column)];
  if (what === said) {
    const words = new TextEncoder().encode(text);
    more = [words.length, ...words];
  }
  return Uint8Array.of(1, kinds.request, ...number(table.eventCount), ...number(table.game.number), what, ...more);
}

// The page

/** Plays or watches at the table of the host. */
export function openGame(conversation, place, page) {
  return new GameView(conversation, place, page);
}

class GameView {
  /** The table; null before the host has sent it. */
  table = null;
  /** The action that was requested and has not happened yet. */
  pending = null;
  /** The column that has the keyboard. */
  column = 3;
  hasEnded = false;
  asksToResign = false;

  constructor(conversation, place, page) {
    this.conversation = conversation;
    this.page = page;
    this.isSeated = !page.isWatching;
    this.find = (selector) => place.querySelector(selector);
    this.lines = new Lines(this.find(".talk"), (text) => this.say(text));
    this.makeBoard();
    this.find(".again").onclick = () => this.act({ what: rematch });
    this.find(".seat").onclick = () => page.change("play");
    this.find(".resign").onclick = () => this.ask(true);
    this.find(".no").onclick = () => this.ask(false);
    this.find(".yes").onclick = () => this.act({ what: resigned });
    this.render();
    this.find(".talk").hidden = !this.isSeated;
    conversation.onmessage = (bytes) => this.received(bytes);
    setTimeout(() => {
      if (this.table === null && !this.hasEnded) page.leave(`${page.host} accepted but sent no table.`);
    }, 10_000);
  }

  makeBoard() {
    this.columns = Array.from({ length: columnCount }, (_, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...Array.from({ length: rowCount }, () => document.createElement("span")));
      button.onclick = () => this.drop(column);
      button.onfocus = () => this.choose(column);
      return button;
    });
    this.find(".board").append(...this.columns);
    this.choose(this.column);
    // Arrow keys choose a column, and Enter drops. A digit chooses, and drops when it is pressed again.
    document.onkeydown = (event) => {
      if (event.target.matches("input") || event.ctrlKey || event.altKey || event.metaKey) return;
      const isOnBoard = this.columns.includes(event.target) || event.target === document.body;
      const step = isOnBoard && { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const column = step ? this.column + step : Number(event.key) - 1;
      const button = this.columns[column];
      if (event.key === "ArrowDown" && isOnBoard) this.drop(this.column);
      else if (button === document.activeElement) this.drop(column);
      else button?.focus();
    };
  }

  choose(column) {
    this.column = column;
    this.columns.forEach((button, index) => (button.tabIndex = index === column ? 0 : -1));
  }

  name(disc) {
    if (disc === red) return this.page.host;
    return this.isSeated ? this.page.name : this.table.guest ?? this.table.formerGuest;
  }

  isOwn(disc) {
    return this.isSeated && disc === yellow;
  }

  get canMove() {
    return !this.hasEnded && this.pending === null && this.isOwn(this.table?.turn);
  }

  // Acting

  drop(column) {
    if (!this.canMove) return;
    if (this.table.game.hasRoom(column)) this.act({ what: moved, column });
    else this.page.announce("That column is full.");
  }

  act(action) {
    this.asksToResign = false;
    if (!this.hasEnded && this.pending === null) {
      this.conversation.send(request(this.table, action));
      this.pending = { ...action, since: performance.now() };
      setTimeout(() => this.conversation.state !== "ended" && this.render(), 600);
    }
    this.render();
  }

  ask(isAsking) {
    this.asksToResign = isAsking;
    this.render();
    this.find(isAsking ? ".no" : ".resign").focus();
  }

  say(typed) {
    // The host reads no characters that control the order of reading. Two others are parts of letters and emoji.
    const text = cut(typed.replace(/(?![\u200C\u200D])[\p{C}\p{Zl}\p{Zp}]/gu, "").trim(), 200);
    if (!text || !this.table?.guest) return false;
    this.conversation.send(request(this.table, { what: said, text }));
  }

  /** Returns whether the host may still do what was requested. */
  isPossible({ what, column }) {
    const { table } = this;
    if (what === rematch) return table.canRematch;
    return table.isPlaying && (what === resigned || (table.turn === yellow && table.game.hasRoom(column)));
  }

  // Events

  received(bytes) {
    if (this.hasEnded || bytes[0] !== 1) return;
    const reader = new Reader(bytes.subarray(2));
    if (bytes[1] === kinds.welcome) {
      this.table = reader.table();
      this.isSeated = this.table.isSeated;
      this.render();
      return this.page.announce(this.headline());
    }
    if (bytes[1] !== kinds.happened || this.table === null) return;
    reader.number();
    const event = reader.event();
    const game = this.table.game;
    this.table.apply(event);
    const isDone = event.what === this.pending?.what && this.isOwn(event.disc);
    if (this.pending && (isDone || this.table.game !== game || !this.isPossible(this.pending))) this.pending = null;
    this.render();
    this.report(event);
    this.find(".talk").hidden = !this.isSeated && !this.find(".lines p");
  }

  report({ what, disc, name, text }) {
    const { lines, page, table } = this;
    const who = this.isOwn(disc) ? "You" : this.name(disc);
    if (what === moved) {
      this.fall(...table.game.last);
      page.announce(`${who}: column ${table.game.last[0] + 1}. ${this.headline()}.`);
    }
    if (what === said) lines.add(text, this.isOwn(disc) ? null : who);
    if (what === sat) lines.remark(`${name} sits down.`);
    if (what === resumed) lines.remark(`${name} takes the seat: the game goes on.`);
    if (what === left) lines.remark(`${table.formerGuest} has left the table.`);
    if (what === resigned || what === brokenOff || what === rematch) page.announce(this.headline());
  }

  /** Lets the disc in a cell fall to its place. */
  fall(column, row) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const cell = this.columns[column].children[row];
    const height = (rowCount - row) * cell.offsetHeight;
    cell.firstChild.animate(
      [
        { transform: `translateY(${-height}px)`, easing: "cubic-bezier(0.5, 0, 1, 0.7)" },
        { transform: "none", offset: 0.75, easing: "ease-out" },
        { transform: `translateY(${-0.06 * height}px)`, offset: 0.87, easing: "ease-in" },
        { transform: "none" },
      ],
      520 * Math.sqrt((rowCount - row) / rowCount));
  }

  stateChanged(state) {
    this.hasEnded = state === "ended";
    this.lines.isOpen = !this.hasEnded;
    this.render();
  }

  // Drawing

  /** Whose turn it is, or how the game has ended. */
  headline() {
    const { table, pending } = this;
    if (table === null) return "Waiting for the table…";
    if (pending && performance.now() - pending.since > 500) {
      return ["", "Your disc is on its way…", "Giving up…", "Asking for another game…"][pending.what];
    }
    const ending = table.game?.ending;
    if (ending && ending.how !== "left") return this.ending(ending);
    if (this.hasEnded) return "The game has ended";
    if (table.guest === null) return `Nobody plays with ${this.page.host} now`;
    return this.isOwn(table.turn) ? "Your turn" : `${this.name(table.turn)}’s turn`;
  }

  ending({ how, disc, breach }) {
    if (how === "draw") return "It’s a draw";
    const who = this.name(disc);
    const other = this.name(1 - disc);
    if (how === "line") return this.isOwn(disc) ? "You win!" : `${who} wins`;
    if (how === "resigned" && this.isOwn(disc)) return `You gave up: ${other} wins`;
    if (how === "resigned") return `${who} gave up: ${this.isSeated ? "you win" : `${other} wins`}`;
    return `${this.isOwn(disc) ? "This page" : who} ${breaches[breach]}: the game is broken off`;
  }

  render() {
    const { table, isSeated, find } = this;
    const headline = this.headline();
    find(".headline").textContent = headline;
    document.title = this.hasEnded ? "Four in a Row" : `${headline} – Four in a Row`;
    this.renderPlayers();
    this.renderBoard();
    const show = (selector, isShown) => (find(selector).hidden = !isShown || table === null || this.hasEnded);
    show(".again", isSeated && table?.canRematch && !this.pending);
    show(".seat", !isSeated && table?.guest === null && !table.isPlaying);
    show(".resign", isSeated && table?.isPlaying && !this.asksToResign);
    show(".question", isSeated && table?.isPlaying && this.asksToResign);
    find(".watchers").textContent = this.watchers();
    find(".say").hidden = !isSeated;
  }

  watchers() {
    const count = this.table?.watchers ?? 0;
    if (count === 0) return "";
    if (this.isSeated) return count === 1 ? "One watches" : `${count} watch`;
    return count === 1 ? "You watch" : `${count} watch, including you`;
  }

  renderPlayers() {
    this.find(".players").querySelectorAll("li").forEach((player, disc) => {
      const isTaken = disc === red || this.isSeated || this.table?.guest;
      player.querySelector("b").textContent = isTaken ? this.name(disc) : "Free seat";
      player.querySelector("small").textContent = this.isOwn(disc) ? "you" : "";
      player.classList.toggle("turn", this.table?.turn === disc && !this.hasEnded);
    });
  }

  renderBoard() {
    const { table, pending, canMove } = this;
    const game = table?.game;
    const isIn = (cells, column, row) => cells.some(([x, y]) => x === column && y === row);
    this.find(".board").classList.toggle("open", canMove);
    this.columns.forEach((button, column) => {
      const discs = game?.columns[column] ?? [];
      const free = rowCount - discs.length;
      const room = free === 0 ? "full" : `${numbers[free]} free cell${free === 1 ? "" : "s"}`;
      const content = discs.length > 0 ? `. From the bottom: ${discs.map((disc) => colours[disc]).join(", ")}` : "";
      button.setAttribute("aria-label", `Column ${column + 1}, ${room}${content}`);
      button.setAttribute("aria-disabled", !canMove || free === 0);
      Array.from(button.children).forEach((cell, row) => {
        const isNext = row === discs.length;
        const isPending = isNext && pending?.what === moved && pending.column === column;
        cell.className = "";
        cell.classList.toggle("next", isNext);
        cell.classList.toggle("last", game?.last ? isIn([game.last], column, row) : false);
        cell.classList.toggle("winning", isIn(game?.ending?.cells ?? [], column, row));
        const disc = isPending ? yellow : discs[row];
        if (disc === undefined) return cell.replaceChildren();
        if (!cell.firstChild) cell.append(document.createElement("i"));
        cell.firstChild.className = `disc ${colours[disc]}${isPending ? " pending" : ""}`;
      });
    });
  }
}
