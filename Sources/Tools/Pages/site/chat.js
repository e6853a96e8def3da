// Chat with the host, and the list of lines that the game uses too.
// A message is the byte 1 and a line in UTF-8 (docs/reference/nigh/files.md, Chat).

const lineMark = 1;
const longestLine = 4096;

/** Returns the beginning of `text` that has at most `limit` bytes of UTF-8. */
export function cut(text, limit) {
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(limit)).read);
}

/** Returns `text` with control characters as spaces. */
export function plain(text) {
  return text.replace(/\p{Cc}/gu, " ");
}

/** Lines that people said, and an input for more. */
export class Lines {
  /** `onSay(text)` sends what was typed, and returns false if that is not possible now. */
  constructor(place, onSay) {
    place.append(document.getElementById("lines").content.cloneNode(true));
    this.list = place.querySelector(".lines");
    this.form = place.querySelector(".say");
    const input = this.form.querySelector("input");
    input.id = "message";
    this.form.querySelector("label").htmlFor = input.id;
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (input.value.trim() && onSay(input.value) !== false) input.value = "";
      input.focus();
    });
  }

  /** Adds what `name` said. A line without a name is the person's own. Returns its element. */
  add(text, name = null) {
    const line = document.createElement("p");
    const words = document.createElement("span");
    line.className = name === null ? "own" : "other";
    if (name !== null) {
      const speaker = document.createElement("b");
      speaker.dir = "auto";
      speaker.textContent = name;
      line.append(speaker);
    }
    words.dir = "auto";
    words.textContent = plain(text);
    line.append(words);
    return this.append(line);
  }

  /** Adds a remark about what happened. */
  remark(text) {
    const line = document.createElement("p");
    line.className = "remark";
    line.textContent = text;
    this.append(line);
  }

  append(line) {
    const page = document.scrollingElement;
    const { list } = this;
    const isAtEnd = page.scrollHeight - page.scrollTop - page.clientHeight < 80;
    const isListAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 80;
    list.append(line);
    if (list.children.length > 1000) list.firstElementChild.remove();
    if (isListAtEnd) list.scrollTop = list.scrollHeight;
    if (list.clientHeight === list.scrollHeight && isAtEnd) page.scrollTop = page.scrollHeight;
    return line;
  }

  set isOpen(value) {
    for (const element of this.form.elements) element.disabled = !value;
  }
}

/** Chats with the host. */
export function openChat(conversation, place, page) {
  const lines = new Lines(place, (text) => {
    const line = lines.add(text);
    line.dataset.state = "sending";
    try {
      for (let rest = text; rest; ) {
        const part = cut(rest, longestLine);
        conversation.send(Uint8Array.of(lineMark, ...new TextEncoder().encode(part)));
        rest = rest.slice(part.length);
      }
    } catch {
      line.remove();
      lines.remark("Too much waits to be sent. Try again in a moment.");
      return false;
    }
    conversation.flush().then(
      () => delete line.dataset.state,
      () => (line.dataset.state = "lost"),
    );
  });
  lines.remark(`You chat with ${page.host}.`);
  conversation.onmessage = (bytes) => {
    // Messages that begin with another byte are for later versions.
    if (bytes[0] === lineMark) lines.add(new TextDecoder().decode(bytes.subarray(1)), page.host);
  };

  return {
    stateChanged(state, words) {
      if (state === "ended") {
        lines.isOpen = false;
        lines.remark(words);
      }
    },
  };
}
