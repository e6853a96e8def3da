// Sending files to the host, and getting files that it offers.

import { plain } from "./chat.js";

/** Returns a number of bytes in words, as the program at the host does. */
function sizeText(count) {
  if (count < 0) return "size unknown";
  if (count < 1024) return count === 1 ? "1 byte" : `${count} bytes`;
  let [value, unit] = [count / 1024, 0];
  for (; value >= 1023.95 && unit < 3; unit += 1) value /= 1024;
  return `${value < 99.95 ? value.toFixed(1) : Math.round(value)} ${["KiB", "MiB", "GiB", "TiB"][unit]}`;
}

function timeText(seconds) {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const countText = (files) => (files.length === 1 ? "1 file" : `${files.length} files`);
const sum = (files) => (files.some(({ size }) => size < 0) ? -1 : files.reduce((total, { size }) => total + size, 0));

/** The bytes of the last five seconds. */
class Rate {
  samples = [];

  add(bytes) {
    const now = performance.now();
    this.begin ??= now;
    this.samples.push({ now, bytes });
    while (this.samples.length > 2 && now - this.samples[0].now > 5000) this.samples.shift();
  }

  /** Bytes a second; null while too little is known. */
  get value() {
    const [first, last] = [this.samples[0], this.samples.at(-1)];
    const time = last?.now - first?.now;
    return time >= 1000 ? ((last.bytes - first.bytes) * 1000) / time : null;
  }

  /** Whether the rate is known for long enough to tell the time that is left. */
  get isSteady() {
    return performance.now() - this.begin > 5000;
  }
}

/** Files that are sent or received together, as an item of a list. */
class TransferView {
  /** `files` have a name and a size. */
  constructor(list, files, page) {
    list.append(document.getElementById("transfer").content.cloneNode(true));
    this.item = list.lastElementChild;
    this.find = (selector) => this.item.querySelector(selector);
    this.page = page;
    this.files = files;
    this.find(".label").textContent =
      files.length === 1 ? plain(files[0].name) : `${countText(files)}, ${sizeText(sum(files))}`;
    this.rows = files.map((file) => {
      const [row, name, state] = ["li", "span", "small"].map((tag) => document.createElement(tag));
      name.textContent = plain(file.name);
      state.textContent = sizeText(file.size);
      row.append(name, state);
      return { row, state };
    });
    this.find(".files").append(...this.rows.map(({ row }) => row));
    this.find(".files").classList.toggle("single", files.length === 1);
  }

  set state(text) {
    this.find(".state").textContent = text;
  }

  /** Shows a transfer until it ends. `waiting` says what it waits for until bytes move. */
  async show(transfer, waiting, onKept = () => {}) {
    const rate = new Rate();
    const shown = new Set();
    const bar = this.find("progress");
    this.find(".accept").hidden = true;
    let isCancelled = false;
    this.find(".cancel").onclick = () => {
      isCancelled = true;
      transfer.cancel("cancelled");
    };
    const render = () => {
      const { bytes, size, paused, files } = transfer;
      const hasBegun = files.some(({ state }) => state !== "waiting");
      bar.value = size > 0 ? bytes / size : 0;
      if (hasBegun) rate.add(bytes);
      const speed = rate.value;
      const words = [`${sizeText(bytes)} of ${sizeText(size)}`];
      if (this.page.isConnected()) {
        if (speed) words.push(`${sizeText(Math.round(speed))}/s`);
        if (speed && rate.isSteady) words.push(`about ${timeText((size - bytes) / speed)} left`);
      } else {
        words.push("waiting for the connection");
      }
      this.state = paused !== null ? `Paused: ${plain(paused)}` : hasBegun ? words.join(" · ") : waiting;
      files.forEach((file, index) => {
        const text = { waiting: sizeText(file.size), kept: "Done", failed: plain(file.words || "failed") }[file.state];
        const share = file.size > 0 ? Math.floor((100 * file.bytes) / file.size) : 0;
        const { row, state } = this.rows[index];
        state.textContent = text ?? `${share} %`;
        row.dataset.state = file.state;
        if (file.state === "kept" && !shown.has(file)) onKept(file, row, shown.add(file));
      });
    };
    this.page.busy.add(transfer);
    transfer.onprogress = render;
    const timer = setInterval(render, 500);
    try {
      await transfer.done;
      render();
      const kept = transfer.files.filter(({ state }) => state === "kept");
      const isWhole = kept.length === transfer.files.length;
      bar.value = 1;
      bar.hidden = !isWhole;
      const failure =
        transfer.files.length === 1
          ? plain(transfer.files[0].words)
          : `${kept.length} of ${countText(transfer.files)} arrived`;
      this.end(isWhole, isWhole ? `Done · ${sizeText(transfer.size)}` : failure);
    } catch (error) {
      render();
      this.end(false, isCancelled ? "Cancelled" : plain(error.message));
    } finally {
      clearInterval(timer);
      this.page.busy.delete(transfer);
    }
  }

  end(isGood, words) {
    this.state = words;
    this.item.dataset.state = isGood ? "done" : "failed";
    this.find("progress").hidden ||= !isGood;
    this.find(".actions").hidden = true;
    this.page.announce(`${this.find(".label").textContent}: ${words}`);
  }
}

/** Sends the files that the person chooses. The host is asked about one selection after the other. */
export function openSending(conversation, place, page) {
  const [list, input, remark] = [".transfers", "input", ".remark"].map((selector) => place.querySelector(selector));

  // The browser gives a page that was loaded again no access to the files that were chosen before.
  let unfinished = page.recall("nigh.unfinished").split("\n").filter(Boolean);
  const queue = [];
  let isSending = false;

  function remember() {
    page.remember("nigh.unfinished", unfinished.join("\n"));
    remark.hidden = unfinished.length === 0 || queue.length > 0 || isSending;
    remark.textContent =
      `Not everything had arrived of ${unfinished.join(", ")}. Choose it again: it goes on where it stopped.`;
  }

  function add(chosen) {
    const files = Array.from(chosen);
    if (files.length === 0 || input.disabled) return;
    const view = new TransferView(list, files, page);
    view.state = "Waits for its turn";
    view.find(".cancel").onclick = () => {
      queue.splice(queue.indexOf(view), 1);
      view.item.remove();
      forget(files);
    };
    queue.push(view);
    unfinished = [...new Set([...unfinished, ...files.map(({ name }) => name)])];
    sendNext();
  }

  function forget(files) {
    unfinished = unfinished.filter((name) => !files.some((file) => file.name === name));
    remember();
  }

  async function sendNext() {
    if (isSending || queue.length === 0) return remember();
    isSending = true;
    remember();
    const view = queue.shift();
    try {
      await view.show(conversation.sendFiles(view.files), `Waiting for ${page.host} to accept…`);
    } catch (error) {
      view.end(false, plain(error.message));
    }
    isSending = false;
    if (conversation.state !== "ended") forget(view.files);
    sendNext();
  }

  input.onchange = () => {
    add(input.files);
    input.value = "";
  };
  const area = place.querySelector(".drop");
  document.ondragover = (event) => {
    event.preventDefault();
    area.classList.add("over");
  };
  document.ondragleave = () => area.classList.remove("over");
  document.ondrop = (event) => {
    event.preventDefault();
    area.classList.remove("over");
    add(event.dataTransfer.files);
  };
  remember();
  return {
    stateChanged(state) {
      input.disabled = state === "ended";
    },
  };
}

/** Shows what the host offers, and gets it if the person wants it. */
export function openFetching(conversation, place, page) {
  const [list, remark] = [".transfers", ".remark"].map((selector) => place.querySelector(selector));
  remark.textContent = `Waiting for ${page.host} to offer files…`;

  conversation.onoffer = (offer) => {
    const view = new TransferView(list, offer.files, page);
    const [accept, decline] = [view.find(".accept"), view.find(".cancel")];
    let isOpen = true;
    remark.hidden = true;
    view.find("progress").hidden = true;
    view.state = offer.files.length === 1 ? sizeText(offer.files[0].size) : "";
    accept.hidden = false;
    accept.textContent = offer.files.length === 1 ? "Get this file" : `Get ${countText(offer.files)}`;
    decline.textContent = "No, thanks";
    page.announce(`${page.host} offers ${countText(offer.files)}.`);
    accept.onclick = () => {
      isOpen = false;
      view.find("progress").hidden = false;
      decline.textContent = "Cancel";
      view.show(offer.accept(), "Waiting for the first bytes…", keep);
    };
    decline.onclick = () => {
      isOpen = false;
      offer.decline("not wanted");
      view.end(false, "You did not take this.");
    };
    offer.ended.then(() => isOpen && view.end(false, `${page.host} does not offer this any more.`));
  };

  /** Offers a file that has arrived for saving. The page is asked about before it closes until that is done. */
  function keep({ name, blob }, row) {
    const image = /\.(png|jpe?g|gif|webp|avif)$/i.exec(name)?.[1].toLowerCase().replace("jpg", "jpeg");
    // Whatever the host calls its type, the browser must not open it as a page.
    const type = image ? `image/${image}` : "application/octet-stream";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob.slice(0, blob.size, type));
    link.download = name;
    link.textContent = "Save";
    link.className = "button primary";
    link.setAttribute("aria-label", `Save ${plain(name)}`);
    page.busy.add(link);
    link.onclick = () => page.busy.delete(link);
    row.append(link);
    if (!image) return;
    const preview = document.createElement("img");
    preview.alt = "";
    preview.src = link.href;
    row.prepend(preview);
  }

  return {};
}
