"""The reference of the public modules. The toolchain's docc resolves every link and orders the symbols; its data become pages of
this site, which need no script: a page for each type with its members, and one for each module."""
import concurrent.futures
import fcntl
import html
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys

import highlight
from pages import Heading, Page, Section, quoted, relative
from texts import ROOT

sys.dont_write_bytecode = True
TYPES = {"class", "struct", "enum", "protocol", "actor", "extension"}
# Programs begin with the first, authors of transports with the second; the others in the order of their names.
FIRST = ["Nigh", "NighTransport"]


def load(name):
    """A script of .ci as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / ".ci" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def toolchain(api, built, cache):
    """The toolchain with the modules in `built`, and a cache of its own: two spellings of one cache's path do not agree."""
    found = api.Toolchain(ROOT, api.modules_in(built))
    found.options[found.options.index("-module-cache-path") + 1] = str(cache / "ModuleCache")
    return found


class Reference:
    def __init__(self, site, texts, built, cache):
        self.site, self.texts, self.cache = site, texts, cache
        self.documented = load("documented")
        self.toolchain = toolchain(self.documented.api, built, cache)
        self.built = self.documented.api.modules_in(built)
        self.addresses = {}
        self.faults = []
        self.modules = FIRST + [module for module in self.documented.api.MODULES if module not in FIRST]

    def convert(self):
        """Lets docc read the modules, each beside others. Returns the folders with their data."""
        self.cache.mkdir(parents=True, exist_ok=True)
        with open(self.cache / "lock", "w") as lock, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            fcntl.flock(lock, fcntl.LOCK_EX)
            converted = list(pool.map(self.converted, self.modules))
        self.faults += [fault for _, faults in converted for fault in faults]
        return {module: folder for module, (folder, _) in zip(self.modules, converted)}

    def converted(self, module):
        """The folder with what docc has made of a module, the last time if nothing has changed since; and its faults."""
        folder = self.cache / module
        names = [module, *(source for _, source, _ in self.documented.api.exports(ROOT, module))]
        # Comments are in the second kind of file.
        inputs = [self.built / f"{name}.{kind}" for name in names for kind in ("swiftmodule", "swiftdoc")]
        catalog = self.documented.CATALOGS.get(module)
        inputs += sorted((ROOT / catalog).iterdir()) if catalog else []
        state = json.dumps([[str(path), path.stat().st_mtime_ns] for path in inputs if path.exists()])
        stamp, output = folder / "stamp", folder / "output"
        if not (stamp.exists() and stamp.read_text() == state):
            shutil.rmtree(folder, ignore_errors=True)
            symbols = folder / "symbols"
            symbols.mkdir(parents=True)
            self.documented.extract(self.toolchain, module, symbols)
            result = subprocess.run(
                [self.toolchain.tools / "docc", "convert", *([ROOT / catalog] if catalog else []), "--additional-symbol-graph-dir",
                 symbols, "--enable-inherited-docs", "--output-path", output, "--fallback-display-name", module,
                 "--fallback-bundle-identifier", module, "--diagnostics-file", folder / "diagnostics.json"],
                capture_output=True, text=True)
            if result.returncode != 0:
                raise SystemExit(f"docs: docc failed: {result.stderr[:1000]}")
            stamp.write_text(state)
        return output / "data" / "documentation", self.diagnostics(folder / "diagnostics.json")

    @staticmethod
    def diagnostics(path):
        """The links to symbols that docc cannot resolve."""
        if not path.exists():
            return []
        return [f"{re.sub('^file://' + re.escape(str(ROOT)) + '/', '', entry.get('source') or 'docc')}: {entry['summary']}"
                for entry in json.loads(path.read_text())["diagnostics"] if "doesn't exist" in entry["summary"] or "ambiguous" in entry["summary"]]

    # Addresses.

    def read(self):
        """Reads all data, and decides on the address of every symbol. Returns the pages by module."""
        found = {}
        for module, folder in self.convert().items():
            symbols = {}
            for path in sorted(folder.rglob("*.json")):
                data = json.loads(path.read_text())
                symbols[data["identifier"]["url"]] = data
            found[module] = symbols
            for identifier, data in symbols.items():
                self.addresses[identifier] = self.address(module, identifier, data, symbols)
        for module in self.modules:
            for identifier, data in found[module].items():
                name = identifier.partition(f"/documentation/{module}/")[2].replace("/", ".")
                if name and data["metadata"].get("symbolKind"):
                    self.texts.symbols.setdefault(re.sub(r"\(.*", "", name), self.addresses[identifier])
        return found

    def address(self, module, identifier, data, symbols):
        parts = identifier.partition(f"/documentation/{module}")[2].strip("/").split("/")
        folder = f"api/{module.lower()}"
        if parts == [""]:
            return f"{folder}/index.html"
        if data["metadata"].get("symbolKind") in TYPES:
            return f"{folder}/{'.'.join(parts).lower()}.html"
        # The default implementation of a requirement stands where the requirement does.
        base = re.sub("-[0-9a-z]{4,5}$", "", identifier)
        if base != identifier and base in symbols:
            return self.address(module, base, symbols[base], symbols)
        # A member is a section of the page of its type.
        owner = identifier.rpartition("/")[0]
        kind = symbols.get(owner, {}).get("metadata", {}).get("symbolKind")
        page = f"{folder}/{'.'.join(parts[:-1]).lower()}.html" if kind in TYPES else f"{folder}/index.html"
        return f"{page}#{parts[-1]}"

    # Pages.

    def add_pages(self):
        found, pages, indexes = self.read(), [], []
        for module in self.modules:
            symbols = found[module]
            for identifier, data in symbols.items():
                address = self.addresses[identifier]
                if "#" in address:
                    continue
                page = self.page(module, address, data, symbols)
                (indexes if address.endswith("/index.html") else pages).append((module, page))
        about = self.site.add(Page("api/index.html", "Modules", self.overview(indexes, found), is_in_order=False))
        ordered = [about]
        for module, page in indexes:
            ordered.append(page)
        for _, page in sorted(pages, key=lambda entry: (self.modules.index(entry[0]), entry[1].title)):
            page.group = "Modules"
        return about, ordered, [page for _, page in pages]

    def overview(self, indexes, found):
        lines = ["<h1>Modules</h1>", "<p>After reading this page you know which module your program imports. Programs import "
                 "<code>Nigh</code>, authors of transports <code>NighTransport</code>; the others are for those who want a part alone."
                 "</p>", "<ul>"]
        for module, page in indexes:
            (root,) = [data for identifier, data in found[module].items() if identifier.endswith(f"/documentation/{module}")]
            words = self.inline(root.get("abstract", []), root, "api/index.html")
            count = sum(1 for data in found[module].values() if data["metadata"].get("symbolKind")) - 1
            lines.append(f'<li><a href="{relative("api/index.html", page.url)}"><code>{module}</code></a>, {count} symbols'
                         + (f": {words}" if words and words != "No overview available." else "") + "</li>")
        return "\n".join(lines + ["</ul>"])

    def page(self, module, address, data, symbols):
        title = data["metadata"]["title"]
        # A nested type has its full name; docc gives its own.
        page = self.site.add(Page(address, title, place=f"in {module}", is_in_order=False))
        out = [f'<p class="above"><a href="{relative(address, f"api/{module.lower()}/index.html")}">{module}</a> · '
               f'{quoted(data["metadata"].get("roleHeading", ""))}</p>' if "/index.html" not in address else
               '<p class="above">Module</p>', f"<h1>{quoted(title)}</h1>"]
        page.sections = [Section("", title, "")]
        out.append(self.description(data, page, 2))
        for name, group in self.topics(data):
            members = [symbols[identifier] for identifier in group if identifier in symbols]
            inner = [member for member in members if self.addresses[member["identifier"]["url"]].partition("#")[0] == address]
            outer = [member for member in members if member not in inner]
            if not members:
                continue
            anchor = "in-" + re.sub(r"\W+", "-", name.lower())
            page.headings.append(Heading(2, anchor, name))
            out.append(f'<h2 id="{anchor}">{quoted(name)}</h2>')
            if outer:
                out.append("<dl>" + "".join(self.entry(member, address) for member in outer) + "</dl>")
            for member in inner:
                out.append(self.member(member, page))
        for section in data.get("relationshipsSections", []):
            names = [self.reference(identifier, data, address) for identifier in section["identifiers"]]
            out.append(f"<p>{quoted(section['title'])}: {', '.join(names)}.</p>")
        page.body = "\n".join(out)
        return page

    @staticmethod
    def topics(data):
        seen = set()
        for section in data.get("topicSections", []):
            names = [name for name in section["identifiers"] if name not in seen]
            seen.update(names)
            yield section.get("title") or "Symbols", names

    def entry(self, member, address):
        identifier = member["identifier"]["url"]
        words = self.inline(member.get("abstract", []), member, address)
        return f'<dt>{self.reference(identifier, member, address)}</dt><dd>{words}</dd>'

    def member(self, member, page):
        identifier = member["identifier"]["url"]
        anchor = self.addresses[identifier].partition("#")[2]
        title = member["metadata"]["title"]
        page.sections.append(Section(anchor, f"{page.title}.{title}" if "/index.html" not in page.url else title, ""))
        page.headings.append(Heading(3, anchor, title))
        return f'<section class="member"><h3 id="{quoted(anchor)}"><code>{quoted(title)}</code></h3>' \
               + self.description(member, page, 4) + "</section>"

    def description(self, data, page, level):
        """What a symbol is: its first sentence, its declaration, and what else is said of it."""
        out, words = [], self.inline(data.get("abstract", []), data, page.url)
        if words and words != "No overview available.":
            out.append(f"<p>{words}</p>")
            page.sections[-1].text += re.sub("<[^>]+>", "", html.unescape(words)) + " "
        for section in data.get("primaryContentSections", []):
            kind = section["kind"]
            if kind == "declarations":
                for declaration in section["declarations"]:
                    code = "".join(token["text"] for token in declaration["tokens"])
                    out.append(f'<pre class="declaration"><code>{self.declaration(declaration["tokens"], page.url)}</code></pre>')
                    page.sections[-1].text += code + " "
            elif kind == "parameters":
                out.append("<p>Parameters:</p><dl>" + "".join(
                    f"<dt><code>{quoted(parameter['name'])}</code></dt><dd>{self.blocks(parameter['content'], data, page, level)}</dd>"
                    for parameter in section["parameters"]) + "</dl>")
            elif kind == "content":
                out.append(self.blocks(section["content"], data, page, level))
        return "\n".join(out)

    def declaration(self, tokens, url):
        out = []
        for token in tokens:
            text = html.escape(token["text"])
            address = self.addresses.get(token.get("identifier", ""))
            if address:
                out.append(f'<a href="{relative(url, address)}">{text}</a>')
            elif token["kind"] in ("keyword", "attribute"):
                out.append(f'<span class="k">{text}</span>')
            elif token["kind"] == "typeIdentifier":
                out.append(f'<span class="t">{text}</span>')
            else:
                out.append(text)
        return "".join(out)

    def blocks(self, content, data, page, level):
        out = []
        for block in content:
            kind = block["type"]
            if kind == "paragraph":
                words = self.inline(block["inlineContent"], data, page.url)
                page.sections[-1].text += re.sub("<[^>]+>", "", html.unescape(words)) + " "
                out.append(f"<p>{words}</p>")
            elif kind == "heading":
                # "Overview", "Discussion" and the like say nothing.
                if block["text"] not in ("Overview", "Discussion", "Return Value", "Mentioned In"):
                    out.append(f"<p><strong>{quoted(block['text'])}</strong></p>")
                elif block["text"] == "Return Value":
                    out.append("<p>Returns:</p>")
            elif kind == "codeListing":
                code = "\n".join(block["code"]) + "\n"
                syntax = block.get("syntax") or "swift"
                out.append(f'<pre{highlight.attributes(syntax, code)}><code>{highlight.marked(syntax, code)}</code></pre>')
            elif kind in ("unorderedList", "orderedList"):
                tag = "ul" if kind == "unorderedList" else "ol"
                out.append(f"<{tag}>" + "".join(
                    f"<li>{self.blocks(item['content'], data, page, level)}</li>" for item in block["items"]) + f"</{tag}>")
            elif kind == "termList":
                out.append("<dl>" + "".join(
                    f"<dt>{self.inline(item['term']['inlineContent'], data, page.url)}</dt>"
                    f"<dd>{self.blocks(item['definition']['content'], data, page, level)}</dd>" for item in block["items"]) + "</dl>")
            elif kind == "table":
                rows = block["rows"]
                out.append('<div class="wide" role="region" aria-label="Table" tabindex="0"><table>')
                for number, row in enumerate(rows):
                    tag = 'th scope="col"' if number == 0 else "td"
                    out.append("<tr>" + "".join(f"<{tag}>{self.blocks(cell, data, page, level)}</{tag[:2]}>" for cell in row) + "</tr>")
                out.append("</table></div>")
            elif kind == "aside":
                out.append(f"<p><strong>{quoted(block.get('name') or block['style'])}</strong></p>"
                           + self.blocks(block["content"], data, page, level))
        return "\n".join(out)

    def inline(self, content, data, url):
        out = []
        for part in content:
            kind = part["type"]
            if kind == "text":
                out.append(html.escape(part["text"]))
            elif kind == "codeVoice":
                out.append(f"<code>{html.escape(part['code'])}</code>")
            elif kind == "reference":
                out.append(self.reference(part["identifier"], data, url))
            elif kind in ("emphasis", "strong"):
                tag = "em" if kind == "emphasis" else "strong"
                out.append(f"<{tag}>{self.inline(part['inlineContent'], data, url)}</{tag}>")
        return "".join(out)

    def reference(self, identifier, data, url):
        reference = data.get("references", {}).get(identifier, {})
        address = self.addresses.get(identifier)
        if reference.get("type") == "link":
            return f'<a href="{quoted(self.target(reference["url"], url))}">{quoted(reference["title"])}</a>'
        title = reference.get("title") or data["metadata"]["title"] if address else reference.get("title") or identifier
        words = f"<code>{quoted(title)}</code>"
        return f'<a href="{relative(url, address)}">{words}</a>' if address else words

    def target(self, href, url):
        """A link from a comment into the documentation, which is written as a path of the repository."""
        if re.match(r"[a-z]+:", href):
            return href
        path, mark, anchor = href.partition("#")
        address = self.texts.address(path)
        if not address:
            self.faults.append(f"{url}: the link {href} leads nowhere")
            return "#"
        return relative(url, address + mark + anchor)

    def add_guides(self, pages):
        """Adds to each page of a type which guides name it. All guides must be written before."""
        for page in pages:
            guides = self.texts.mentions.get(page.url)
            if guides:
                links = ", ".join(f'<a href="{relative(page.url, url)}">{quoted(guide.title)}</a>' for url, guide in sorted(guides.items()))
                page.body += f'\n<p>Guides: {links}.</p>'
