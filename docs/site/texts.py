"""Turns Markdown into pages of the site. The Markdown stays as it is for readers of the repository: links between files become
links between pages, and files and folders that are no pages become pages with their content."""
import html
import os
import pathlib
import posixpath
import re

from markdown_it import MarkdownIt

import highlight
from pages import TRACKS, Heading, Page, Section, quoted, relative, slug

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = re.compile(r"^N\d\d\b")
CALL = re.compile(r"^[A-Z]\w+(?:\.[a-z]\w*)?$")


class Texts:
    """The pages that are made of Markdown, by the path of their file."""

    def __init__(self, site):
        self.site = site
        # The page that a path of the repository leads to, as an address within the site.
        self.addresses = {}
        self.faults = []
        # Addresses of symbols by their names, and which guides name a symbol.
        self.symbols = {}
        self.mentions = {}
        self.markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
        self.pending = []
        # Pictures by their address.
        self.pictures = {}

    def add(self, path, url, **facts):
        """Notes that `path` becomes a page. Its text is written by `write_all`, when all addresses are known."""
        text = (ROOT / path).read_text()
        page = self.site.add(Page(url, self.title(text, path), source=path, **facts))
        self.addresses[path] = url
        self.pending.append((page, text, path))
        return page

    def add_text(self, text, url, base, **facts):
        """Like `add`, for Markdown that is in no file. Its links are relative to the folder of `base`."""
        page = self.site.add(Page(url, self.title(text, url), **facts))
        self.pending.append((page, text, base))
        return page

    @staticmethod
    def title(text, path):
        found = re.search(r"^# (.*)$", text, re.MULTILINE)
        return re.sub(r"[`*]", "", found[1]) if found else path

    def write_all(self):
        while self.pending:
            page, text, path = self.pending.pop()
            page.body, page.headings, page.sections = self.render(text, page, path)

    # A page.

    def render(self, text, page, path):
        tokens = self.markdown.parse(text)
        out, headings, sections, taken = [], [], [Section("", page.title, "")], set()
        place = 0
        while place < len(tokens):
            token = tokens[place]
            if token.type == "heading_open":
                inline = tokens[place + 1]
                words = self.plain(inline)
                anchor, level = slug(words, taken), int(token.tag[1])
                if level == 1:
                    sections[0].id = ""
                    out.append(f'<h1 id="{quoted(anchor)}">{self.inline(inline, page, path)}</h1>\n')
                else:
                    headings.append(Heading(level, anchor, words))
                    sections.append(Section(anchor, words, ""))
                    code = CODE.match(words)
                    extra = f'<span id="{code[0].lower()}"></span>' if code else ""
                    out.append(f'<{token.tag} id="{quoted(anchor)}">{extra}{self.inline(inline, page, path)} '
                               f'<a class="anchor" href="#{quoted(anchor)}" aria-label="Link to this section">#</a></{token.tag}>\n')
                place += 3
                continue
            if token.type == "fence" or token.type == "code_block":
                out.append(self.fence(token.info, token.content))
                sections[-1].text += " " + token.content
            elif token.type == "inline":
                out.append(self.inline(token, page, path))
                sections[-1].text += " " + self.plain(token)
            elif token.type == "table_open":
                out.append('<div class="wide" role="region" aria-label="Table" tabindex="0"><table>\n')
            elif token.type == "table_close":
                out.append("</table></div>\n")
            elif token.type == "th_open":
                out.append('<th scope="col">')
            elif token.type == "hr":
                out.append("<hr>\n")
            elif token.type in ("paragraph_open", "paragraph_close") and token.hidden:
                pass
            elif token.nesting >= 0 and token.tag:
                start = token.attrGet("start")
                out.append(f"<{token.tag}" + (f' start="{start}"' if start else "") + ">")
            elif token.tag:
                out.append(f"</{token.tag}>\n")
            place += 1
        # A cell without words is no heading of a column.
        body = "".join(out).replace('<th scope="col"></th>', "<td></td>")
        return body, headings, sections

    @staticmethod
    def fence(info, code):
        words = info.split()
        named = f"<figcaption>{quoted(words[-1])}</figcaption>" if len(words) > 1 and "." in words[-1] else ""
        block = f'<pre{highlight.attributes(info, code)}><code>{highlight.marked(info, code)}</code></pre>'
        return f"<figure>{named}{block}</figure>\n" if named else block + "\n"

    @staticmethod
    def plain(inline):
        return "".join(
            child.content if child.type in ("text", "code_inline", "image") else " " if "break" in child.type else ""
            for child in inline.children or [])

    def inline(self, token, page, path):
        out, is_link = [], False
        for child in token.children or []:
            if child.type == "text":
                out.append(html.escape(child.content))
            elif child.type == "code_inline":
                out.append(self.code(child.content, page, is_link))
            elif child.type == "softbreak":
                out.append("\n")
            elif child.type == "hardbreak":
                out.append("<br>")
            elif child.type == "image":
                out.append(self.picture(child, page, path))
            elif child.type == "link_open":
                is_link = True
                out.append(f'<a href="{quoted(self.link(child.attrGet("href"), page, path))}">')
            elif child.type == "link_close":
                is_link = False
                out.append("</a>")
            elif child.nesting > 0:
                out.append(f"<{child.tag}>")
            elif child.nesting < 0:
                out.append(f"</{child.tag}>")
        return "".join(out)

    def code(self, words, page, is_link):
        """Code within a sentence; the name of a public symbol leads to its description."""
        address = None if is_link or not CALL.match(words) else self.symbols.get(words)
        if not address:
            return f"<code>{html.escape(words)}</code>"
        if page.group in TRACKS:
            self.mentions.setdefault(address.partition("#")[0], {})[page.url] = page
        return f'<a href="{relative(page.url, address)}"><code>{html.escape(words)}</code></a>'

    def picture(self, token, page, path):
        source, words = token.attrGet("src"), self.plain(token)
        file = posixpath.normpath(posixpath.join(posixpath.dirname(path), source))
        if not (ROOT / file).is_file():
            self.faults.append(f"{path}: there is no picture {source}")
            return ""
        if not words:
            self.faults.append(f"{path}: the picture {source} has no text for those who cannot see it")
        url = "pictures/" + posixpath.basename(file)
        self.pictures[url] = ROOT / file
        size = re.search(r'<svg[^>]* width="(\d+)" height="(\d+)"', (ROOT / file).read_text()[:1000]) if file.endswith(".svg") else None
        size = f' width="{size[1]}" height="{size[2]}"' if size else ""
        return f'<img src="{relative(page.url, url)}" alt="{quoted(words)}"{size}>'

    # Links.

    def link(self, href, page, path):
        """How the page links to what `href` means in the file `path`."""
        if re.match(r"[a-z]+:", href):
            return href
        target, mark, anchor = href.partition("#")
        if not target:
            return mark + anchor
        place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        url = self.address(place)
        if not url:
            self.faults.append(f"{path}: the link {href} leads nowhere")
            return "#"
        return relative(page.url, url + mark + anchor)

    def address(self, place):
        if place in self.addresses:
            return self.addresses[place]
        if f"{place}/README.md" in self.addresses:
            return self.addresses[f"{place}/README.md"]
        full = ROOT / place
        if place.startswith("..") or not full.exists():
            return None
        return self.add_folder(place) if full.is_dir() else self.add_file(place)

    def add_file(self, place):
        """A page that shows a file of the repository."""
        text = (ROOT / place).read_text()
        url = self.addresses[place] = f"files/{place.strip('.')}.html".replace("/.", "/")
        info = {".swift": "swift", ".sh": "sh"}.get(pathlib.Path(place).suffix, "text")
        body = f"<h1>{quoted(posixpath.basename(place))}</h1>\n" + self.fence(info, text)
        self.site.add(Page(url, posixpath.basename(place), body, sections=[Section("", place, text)], source=place, is_in_order=False,
                           is_listed=not place.startswith("docs/")))
        return url

    def add_folder(self, place):
        """A page with all files of a folder: what it holds of pages as links, the rest as it is."""
        url = self.addresses[place] = f"files/{place.strip('.')}/index.html"
        files = [file for file in tracked() if file.startswith(place + "/")]
        page = self.site.add(Page(url, place, source=place + "/", is_in_order=False))
        lines, taken = [f"<h1>{quoted(place)}</h1>"], set()
        links = [file for file in files if file in self.addresses]
        if links:
            lines.append("<ul>" + "".join(
                f'<li><a href="{relative(url, self.addresses[file])}">{quoted(self.site.pages[self.addresses[file]].title)}</a></li>'
                for file in links) + "</ul>")
        for file in files:
            if file in links or (ROOT / file).stat().st_size > 60_000:
                continue
            name = posixpath.relpath(file, place)
            anchor, text = slug(name, taken), (ROOT / file).read_text()
            page.headings.append(Heading(2, anchor, name))
            page.sections.append(Section(anchor, name, text))
            info = {".swift": "swift", ".sh": "sh"}.get(pathlib.Path(file).suffix, "text")
            lines += [f'<h2 id="{anchor}">{quoted(name)}</h2>', self.fence(info, text)]
        page.body = "\n".join(lines)
        return url


_tracked = None


def tracked():
    """The files of the repository, without what is built."""
    global _tracked
    if _tracked is None:
        _tracked = []
        for folder, names, files in os.walk(ROOT):
            names[:] = sorted(name for name in names if name not in (".build", ".git"))
            _tracked += [os.path.relpath(os.path.join(folder, file), ROOT) for file in sorted(files)]
    return _tracked
