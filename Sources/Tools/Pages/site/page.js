// The page around everything: enters at the host, asks for a name, joins, and shows the state of the connection.

import { Guest, Refused, randomBytes } from "./nigh.js";
import { openGame } from "./game.js";
import { openSending, openFetching } from "./files.js";
import { openChat, cut, plain } from "./chat.js";

/** What a guest can do with a host: by the host's words for it, and in the game. */
const purposes = {
  play: {
    title: (host) => `Play Four in a Row with ${host}`,
    button: "Play", room: "game", open: openGame, context: Uint8Array.of(1, 1),
  },
  watch: {
    title: (host) => `Watch Four in a Row at the table of ${host}`,
    button: "Watch", room: "game", open: openGame, context: Uint8Array.of(1, 2),
  },
  send: {
    title: (host) => `Send files to ${host}`,
    button: "Send files", room: "send", open: openSending, context: "nigh/1 send",
  },
  fetch: {
    title: (host) => `Get files from ${host}`,
    button: "Get files", room: "fetch", open: openFetching, context: "nigh/1 fetch",
  },
  chat: {
    title: (host) => `Chat with ${host}`,
    button: "Chat", room: "chat", open: openChat, context: "nigh/1 chat",
  },
};

/** Why a host lets nobody in, what the person can do, and whether trying again can help. */
const refusals = {
  scanAgain: ["Scan the code again", "This code was used, or is too old. Scan the one that the other device shows."],
  full: ["No room", "No more people can connect. Try again when somebody has left.", true],
  tooManyAttempts: ["Wait a moment", "There were too many attempts.", true],
  revoked: ["Not allowed any more", "The other device has taken your access back. Ask there for another code."],
};

const advice = "Is the program still running there, and is this device on the same Wi\u2011Fi?";

const at = (id) => document.getElementById(id);
const room = at("room");

let guest = null;
let conversation = null;
let ownName = "Guest";
/** The view in the room, from one of the functions `open…`. */
let view = null;
/** Transfers and unsaved files, which would be lost with the page. The browser asks before it leaves. */
const busy = new Set();

// Stored in the browser

// A browser may refuse to store anything. Then the page remembers nothing, and works until it is closed.

function recall(storage, name) {
  try {
    return window[storage].getItem(name) ?? "";
  } catch {
    return "";
  }
}

function remember(storage, name, text) {
  try {
    window[storage].setItem(name, text);
  } catch {}
}

/** Returns the key by which the host recognises this browser. */
function guestKey() {
  const known = recall("localStorage", "nigh.key");
  if (/^[0-9a-f]{64}$/.test(known)) return Uint8Array.from(known.match(/../g), (pair) => parseInt(pair, 16));
  const key = randomBytes(32);
  remember("localStorage", "nigh.key", Array.from(key, (byte) => byte.toString(16).padStart(2, "0")).join(""));
  return key;
}

/** Returns the token in the address, 26 characters of base 32, or null; and takes it out of the address bar. */
function takeToken() {
  // A reload before the host has seen the token still finds it in the history.
  const text = location.hash.slice(1).toLowerCase() || history.state?.token || "";
  history.replaceState({ token: text }, "", location.pathname);
  if (!/^[a-z2-7]{26}$/.test(text)) return null;
  const digits = "abcdefghijklmnopqrstuvwxyz234567";
  const bits = Array.from(text, (digit) => digits.indexOf(digit).toString(2).padStart(5, "0"));
  return Uint8Array.from(bits.join("").match(/.{8}/g), (byte) => parseInt(byte, 2));
}

// Entering

const address = `${location.protocol.replace("http", "ws")}//${location.host}/nigh`;
const key = guestKey();
let token = takeToken();

async function enter() {
  tell("One moment…", "Connecting to the device that shows the code.");
  showState("Connecting");
  try {
    guest = await Guest.enter(address, { key, token });
  } catch (error) {
    return explain(error);
  }
  token = null;
  history.replaceState(null, "");
  const joined = recall("sessionStorage", "nigh.joined");
  if (offered().includes(joined)) join(joined);
  else invite();
}

/** Says why the host cannot be entered, and what helps. */
function explain(error) {
  showState("Not connected");
  const [heading, text, mayTryAgain] = error instanceof Refused
    ? refusals[error.reason] ?? ["Not let in", error.message, true]
    : ["Not reached", `${sentence(error.message)} ${advice}`, true];
  tell(heading, sentence(error.words) || text, mayTryAgain ? "Try again" : "", enter, error.seconds);
}

/** Returns the names of the purposes that the host offers, the preferred one first. */
function offered() {
  const { service, info } = guest.host;
  if (service === "fourinarow") return info.get("table") === "taken" ? ["watch", "play"] : ["play", "watch"];
  const words = (info.get("nigh") ?? "").split(" ");
  return ["send", "fetch", "chat"].filter((word) => words.includes(word));
}

// Joining

/** Shows what the person can do here, and says why an attempt has failed. */
function invite(failure = "", names = offered()) {
  const host = guest.host.name;
  showState("Not joined yet");
  if (names.length === 0) return tell(`You have reached ${host}`, "Its program offers nothing that this page can do.");
  const isOne = names.length === 1 || names.includes("play");
  tell(isOne ? purposes[names[0]].title(host) : `You have reached ${host}`, failure);
  const buttons = names.map((name, index) => {
    const button = document.createElement("button");
    // Enter in the name's input presses the first one.
    button.type = index === 0 ? "submit" : "button";
    button.className = index === 0 ? "primary" : "";
    button.textContent = purposes[name].button;
    button.onclick = (event) => {
      event.preventDefault();
      join(name);
    };
    return button;
  });
  at("choices").replaceChildren(...buttons);
  at("form").hidden = false;
}

async function join(name) {
  const purpose = purposes[name];
  const host = guest.host.name;
  const invitation = new AbortController();
  const typed = Array.from(at("name").value.replace(/\p{C}/gu, "").trim()).slice(0, 32).join("");
  ownName = cut(typed, 63).trim() || "Guest";
  remember("localStorage", "nigh.name", ownName);
  showState("Waiting");
  tell(purpose.title(host), `Waiting for ${host} to accept…`, "Cancel", () => invitation.abort());
  try {
    conversation = await guest.join({ name: ownName, context: purpose.context, signal: invitation.signal });
  } catch (error) {
    if (error.seconds > 0 && error.stage === "join" && !invitation.signal.aborted) return joinLater(name, error);
    remember("sessionStorage", "nigh.joined", "");
    if (invitation.signal.aborted) return invite();
    // The person at the host may have taken the access back while this page waited.
    if (error instanceof Refused && error.stage === "enter") return explain(error);
    if (!(error instanceof Refused)) return invite(withName(error.message, host));
    if (error.reason !== "declined") return invite(`There is no room at ${host} now. Try again in a moment.`);
    // Whoever comes to a table that is taken may watch.
    return invite(`${host} said no. ${sentence(error.words)}`, name === "play" ? ["watch", "play"] : offered());
  }
  remember("sessionStorage", "nigh.joined", name);
  openRoom(name);
}

/** Joins again when the host said to ask again: it is full, or busy. */
function joinLater(name, { seconds, words }) {
  const host = guest.host.name;
  const timer = setTimeout(() => join(name), seconds * 1000);
  const text = `${sentence(words) || `There is no room at ${host} now.`} Asking again in ${seconds} s…`;
  tell(purposes[name].title(host), text, "Cancel", () => {
    clearTimeout(timer);
    invite();
  });
}

/** Shows what the person has joined. */
function openRoom(name) {
  const purpose = purposes[name];
  const joined = conversation;
  const host = joined.hostName;
  at("card").hidden = at("notice").hidden = true;
  at("leave").hidden = room.hidden = false;
  at("title").textContent = document.title = purpose.room === "game" ? "Four in a Row" : purpose.title(host);
  room.className = purpose.room;
  room.replaceChildren(at(purpose.room).content.cloneNode(true));
  busy.clear();
  joined.onstate = (state, words) => {
    if (state === "ended") return ended(withName(words, host));
    showState(state === "connected" ? "Connected" : "Reconnecting");
    notify("");
    // Most breaks are too short to say more about them.
    setTimeout(() => {
      if (joined.state !== "reconnecting") return;
      notify(`The connection to ${host} broke. It is being restored, and nothing is lost.`);
    }, 1500);
    view?.stateChanged?.(state);
  };
  showState("Connected");
  view = null;
  view = purpose.open(joined, room, {
    host,
    name: ownName,
    isWatching: name === "watch",
    announce,
    busy,
    isConnected: () => joined.state === "connected",
    recall: (name) => recall("sessionStorage", name),
    remember: (name, text) => remember("sessionStorage", name, text),
    /** Leaves, and joins for something else. */
    async change(other) {
      joined.onstate = null;
      await joined.leave();
      join(other);
    },
    leave,
  });
}

/** Leaves, and says why. */
function leave(words) {
  conversation.onstate = null;
  conversation.leave();
  ended(words);
}

/** Shows that the conversation is over. What is in the room stays. */
function ended(words) {
  showState("Not connected");
  at("leave").hidden = true;
  view?.stateChanged?.("ended", words);
  // Joining again clears the room, where files may wait to be saved.
  const hasFiles = room.querySelector("a[download]") !== null;
  notify(words, hasFiles ? "" : "Join again", enter);
}

// Showing

let buttonTimer = null;

/** Shows a heading and a sentence in place of everything else, and a button after `seconds`. */
function tell(heading, text, label = "", action = null, seconds = 0) {
  room.hidden = at("notice").hidden = at("leave").hidden = at("form").hidden = true;
  at("card").hidden = false;
  at("heading").textContent = document.title = heading;
  at("text").textContent = text;
  at("text").className = "";
  announce(`${heading}. ${text}`);
  showButton(at("action"), seconds > 0 ? "" : label, action);
  clearTimeout(buttonTimer);
  if (seconds > 0) buttonTimer = setTimeout(() => showButton(at("action"), label, action), seconds * 1000);
}

/** Shows a sentence above the room. */
function notify(text, label = "", action = null) {
  at("notice").hidden = text === "";
  at("notice-text").textContent = text;
  showButton(at("notice-action"), label, action);
}

function showButton(button, label, action) {
  button.hidden = label === "";
  button.textContent = label;
  button.className = label === "Cancel" ? "" : "primary";
  button.onclick = action;
}

function showState(text) {
  at("state").textContent = at("state").dataset.state = text;
}

/** Lets a screen reader say a sentence. */
function announce(text) {
  at("announcer").textContent = text;
}

/** Returns words of the host as a sentence. */
function sentence(words = "") {
  const text = plain(words).trim();
  return text && text[0].toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".");
}

/** Returns a sentence about the host with its name. */
function withName(words, host) {
  return sentence(words).replace(/^The (host|other side)\b/, host);
}

at("leave").onclick = () => {
  remember("sessionStorage", "nigh.joined", "");
  leave("You have left.");
};

addEventListener("beforeunload", (event) => busy.size > 0 && event.preventDefault());
// Another code was opened in this tab.
addEventListener("hashchange", () => location.reload());

at("name").value = recall("localStorage", "nigh.name");
at("name").placeholder = ownName;
enter();
