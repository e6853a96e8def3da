// Searches all sections of the site, which search-data.js holds in `everything`: [page, heading, address, text, group].
"use strict";
const query = (new URLSearchParams(location.search).get("q") || "").trim();
const words = query.toLowerCase().split(/\s+/).filter(Boolean);
const field = document.getElementById("site-search");
const list = document.getElementById("site-found");
field.value = query;

// A word in a heading counts more than one in the text; whole words count more than beginnings.
function score([page, heading, , text, group]) {
  let sum = 0;
  for (const word of words) {
    const [inHeading, inPage, inText] = [heading, page, text].map((where) => where.toLowerCase().indexOf(word));
    if (inHeading < 0 && inPage < 0 && inText < 0) return 0;
    if (inHeading >= 0) sum += heading.length === word.length ? 40 : isWhole(heading, word) ? 20 : 8;
    if (inPage >= 0) sum += 4;
    if (inText >= 0) sum += 1 + Math.min(3, text.toLowerCase().split(word).length - 1);
  }
  return sum + (group === "Guides" ? 12 : group === "Commands" ? 6 : group === "Reference" ? 4 : 0);
}

function isWhole(heading, word) {
  return heading.toLowerCase().split(/[^a-z0-9]+/).includes(word);
}

function excerpt(text) {
  const first = Math.max(0, text.toLowerCase().indexOf(words[0]) - 60);
  const place = first > 0 ? text.indexOf(" ", first) + 1 : 0;
  const end = text.length > place + 180 ? text.lastIndexOf(" ", place + 180) : text.length;
  return (place > 0 ? "… " : "") + text.slice(place, end) + (end < text.length ? " …" : "");
}

// Text with the words of the query marked; nothing of it is read as HTML.
function marked(text, parent) {
  const pattern = new RegExp("(" + words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|") + ")", "i");
  for (const part of text.split(new RegExp(pattern.source, "gi"))) {
    if (pattern.test(part)) parent.appendChild(document.createElement("mark")).textContent = part;
    else parent.append(part);
  }
}

const found = words.length === 0 ? [] : everything
  .map((entry) => [score(entry), entry]).filter(([sum]) => sum > 0).sort(([a], [b]) => b - a).slice(0, 60);
document.getElementById("site-count").textContent =
  words.length === 0 ? "Type what you look for, then press Enter."
    : found.length === 0 ? `Nothing found for “${query}”.`
      : `${found.length === 60 ? "The best 60 places" : found.length === 1 ? "1 place" : found.length + " places"} for “${query}”`;
for (const [, [page, heading, address, text, group]] of found) {
  const item = list.appendChild(document.createElement("li"));
  const link = item.appendChild(document.createElement("a"));
  link.href = address;
  link.textContent = heading === page || !heading ? page : `${page}: ${heading}`;
  item.appendChild(document.createElement("small")).textContent = ` ${group}`;
  marked(excerpt(text), item.appendChild(document.createElement("p")));
}
