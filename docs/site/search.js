// Searches all sections of the site, which search-data.js holds in `everything`: [page, heading, address, text, group].
"use strict";

// What says nothing about the subject. A query of nothing else is searched as it is.
const STOP_WORDS = new Set(("a about am an and any are as at be been by can cannot could did do does for from get has have how i if in " +
  "into is it its make me my need of on or our should so some than that the their them then there these they this those to too use using " +
  "want was we what when where which who why will with would you your").split(" "));

// What people call things elsewhere, and the words of these pages. A word is found if one of its own or of these words is.
const SYNONYMS = {
  airdrop: ["nigh send"], android: ["systems"], app: ["program"], authenticate: ["trust", "proves"], autodiscovery: ["discovery"],
  avahi: ["mdns"], backpressure: ["back-pressure"], bandwidth: ["throughput"], battery: ["interval"], beacon: ["advertise"],
  benchmark: ["bench", "benchmarks"], bonjour: ["mdns"], broadcast: ["broadcast"], bt: ["bluetooth"], channel: ["channels"],
  chunk: ["block"], ciphers: ["tls"], client: ["guest"], crash: ["killed"], croc: ["croc"], delay: ["latency", "round"],
  dependency: ["dependencies"], deb: ["package", "packages"], debian: ["package"], delete: ["remove"], directory: ["folder"],
  disconnect: ["disconnected", "cut"], "dns-sd": ["mdns"], download: ["receive"], drop: ["cut", "lost"], dropped: ["cut", "lost"],
  encrypt: ["encrypted", "tls"], encryption: ["encrypted", "tls"], error: ["problem"], ethernet: ["tcp"], failover: ["wire", "move"],
  flaky: ["cut"], gamekit: ["gksession"], grpc: ["calls"], handoff: ["move", "wire"], headless: ["screen"], hotspot: ["multicast"],
  install: ["package", "packages"], ios: ["systems"], iphone: ["systems"], isolation: ["isolation"], kill: ["killed"], lag: ["latency", "round"],
  lan: ["network"], latency: ["round"], log: ["logs"], logging: ["logs"], macos: ["systems"], memory: ["memory"], mesh: ["meshes"],
  mobile: ["systems"], mpc: ["multipeerconnectivity"], multipeer: ["multipeerconnectivity"], nat: ["relay"], nearby: ["near"],
  nsnetservice: ["nsnetservice"], offline: ["internet"], p2p: ["peer"], password: ["code", "pair"], pin: ["digits"], plugin: ["plugins"],
  private: ["secret"], reconnect: ["wire changes"], remote: ["distributed"], resume: ["continue", "continues"],
  room: ["group"], rooms: ["groups"], rpc: ["questions", "distributed actors"], scp: ["send"], secure: ["security"], server: ["host"],
  share: ["send"], simulate: ["simulated"], slow: ["slow"], socket: ["sockets"], speed: ["throughput"], ssl: ["tls"],
  systemd: ["service"], test: ["testing"], transfer: ["send", "file"], trust: ["paired"], tunnel: ["forward"], udp: ["datagram", "unreliable"],
  uninstall: ["remove"], unpair: ["unpair"], upload: ["send"], vpn: ["vpn"], wifi: ["wi-fi"], windows: ["systems"], wlan: ["wi-fi"],
  zeroconf: ["mdns"],
};

const plain = (word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

// "connecting" also finds "connect": the forms of a word share their beginning.
function stem(word) {
  const short = word.replace(/(?:ing|ed|ies|es|s|e)$/, "");
  return short.length >= 4 && short !== word ? short : null;
}

// The words of a query, each with what stands for it and how well: itself, its stem, its synonyms.
function wordsOf(query) {
  const typed = query.toLowerCase().split(/\s+/).map((word) => word.replace(/^["'(`]+|["'?!.,;:)`]+$/g, "")).filter(Boolean);
  const telling = typed.filter((word) => !STOP_WORDS.has(word));
  return [...new Set(telling.length > 0 ? telling : typed)].map((word) => {
    const forms = [[word, 1], ...(SYNONYMS[word] || SYNONYMS[stem(word)] || []).map((other) => [other, 0.8])];
    if (stem(word)) forms.push([stem(word), 0.7]);
    return forms.map(([form, weight]) => ({
      form, weight, start: new RegExp(`(?<![a-z0-9])${plain(form)}`, "gi"),
      whole: new RegExp(`(?<![a-z0-9])${plain(form)}(?![a-z0-9])`, "i"),
    }));
  });
}

// How well a text has a word: 1 for the whole word, less for a beginning, 0 if it has neither.
function fit(text, forms) {
  let best = 0;
  for (const { weight, start, whole } of forms) {
    if (weight <= best) continue;
    start.lastIndex = 0;
    if (start.test(text)) best = Math.max(best, weight * (whole.test(text) ? 1 : 0.6));
  }
  return best;
}

function count(text, forms) {
  return Math.max(...forms.map(({ start, weight }) => weight * (text.match(start) || []).length));
}

// The sections that have all words of the query and, if these are few, those that have some of them; the best first.
function find(query, sections) {
  const words = wordsOf(query);
  const seen = sections.map((section) => words.map((forms) => {
    const [page, heading, address, text, group] = section;
    const [inHeading, inPage, inText] = [fit(heading, forms), fit(page, forms), fit(text, forms)];
    if (inHeading + inPage + inText === 0) return 0;
    // A heading that is nothing but the word is about it, and a page whose title begins with it. A symbol may just be called so.
    const title = heading.toLowerCase();
    const isNamed = weightOf(group) > 1 && forms.some(({ form }) => title === form);
    const isBegun = weightOf(group) > 1 && !address.includes("#") && forms.some(({ form }) => title.startsWith(form));
    const share = isNamed ? 2.5 : isBegun ? 2 : 1;
    return 16 * inHeading * share + 8 * inPage + (inText > 0 ? inText * (1 + Math.min(3, count(text, forms) - 1)) : 0);
  }));
  // A word that few sections have says more than one that most have.
  const rarity = words.map((_, number) =>
    Math.log(1 + sections.length / (1 + seen.filter((scores) => scores[number] > 0).length)));
  const whole = seen.filter((scores) => scores.length > 0 && scores.every((score) => score > 0)).length;
  const found = [];
  seen.forEach((scores, place) => {
    const hits = scores.filter((score) => score > 0).length;
    if (hits === 0 || whole >= 5 && hits < words.length) return;
    const [, , address, , group] = sections[place];
    // The beginning of a page stands for the page.
    const weight = weightOf(group) * (address.includes("#") ? 1 : 1.4) * (hits / words.length) ** 2;
    found.push([weight * scores.reduce((total, score, number) => total + score * rarity[number], 0), sections[place]]);
  });
  return { words, isWhole: whole > 0, found: found.sort(([a], [b]) => b - a).map(([, section]) => section) };
}

function weightOf(group) {
  return { "Use the commands": 1.5, "Write programs": 1.5, Commands: 1.3, Nigh: 1.2, Reference: 1.1, Internals: 0.8 }[group] || 0.7;
}

// The page.

function excerpt(text, forms) {
  const places = forms.map(({ start }) => text.search(start)).filter((place) => place >= 0);
  const first = Math.max(0, Math.min(...places, text.length) - 60);
  const place = places.length > 0 && first > 0 ? text.indexOf(" ", first) + 1 : 0;
  const end = text.length > place + 180 ? text.lastIndexOf(" ", place + 180) : text.length;
  return (place > 0 ? "… " : "") + text.slice(place, end) + (end < text.length ? " …" : "");
}

// Text with the words of the query marked; nothing of it is read as HTML.
function marked(text, forms, parent) {
  const pattern = new RegExp(`((?<![a-z0-9])(?:${forms.map(({ form }) => plain(form)).join("|")}))`, "i");
  for (const part of text.split(new RegExp(pattern.source, "gi"))) {
    if (pattern.test(part)) parent.appendChild(document.createElement("mark")).textContent = part;
    else parent.append(part);
  }
}

function show(query) {
  const list = document.getElementById("site-found");
  document.getElementById("site-search").value = query;
  const { words, isWhole, found } = find(query, everything);
  const places = found.length > 60 ? "The best 60 places" : found.length === 1 ? "1 place" : `${found.length} places`;
  document.getElementById("site-count").textContent =
    words.length === 0 ? "Type what you look for, then press Enter."
      : found.length === 0 ? `Nothing found for “${query}”.`
        : isWhole ? `${places} for “${query}”` : `No place has all words of “${query}”. ${places} with some of them:`;
  const forms = words.flat();
  for (const [page, heading, address, text, group] of found.slice(0, 60)) {
    const item = list.appendChild(document.createElement("li"));
    const link = item.appendChild(document.createElement("a"));
    link.href = address;
    link.textContent = heading === page || !heading ? page : `${page}: ${heading}`;
    item.appendChild(document.createElement("small")).textContent = ` ${group}`;
    marked(excerpt(text, forms), forms, item.appendChild(document.createElement("p")));
  }
}

if (document.getElementById("site-found")) show((new URLSearchParams(location.search).get("q") || "").trim());
