"""The pages of the site: what each holds, and how it is written as HTML."""
import dataclasses
import html
import json
import os
import re
import urllib.parse


# The two tracks of guides, as docs/README.md and the navigation have them.
TRACKS = ("Use the commands", "Write programs")


@dataclasses.dataclass
class Heading:
    level: int
    id: str
    text: str


@dataclasses.dataclass
class Section:
    """A part of a page that search finds: what follows one heading."""
    id: str
    heading: str
    text: str


@dataclasses.dataclass
class Page:
    # Where the page is, below the site's folder.
    url: str
    title: str
    body: str = ""
    headings: list = dataclasses.field(default_factory=list)
    sections: list = dataclasses.field(default_factory=list)
    group: str = ""
    # What search says besides, to tell pages of one title apart.
    place: str = ""
    # The file of the repository that it is made of.
    source: str = ""
    # Whether the page before and the page after it are shown, and whether search and the list of all pages have it.
    is_in_order: bool = True
    is_listed: bool = True


def quoted(text):
    return html.escape(text, quote=True)


def relative(page_url, target):
    """How `page_url` links to `target`, another page of the site, perhaps with an anchor."""
    path, mark, anchor = target.partition("#")
    if path == page_url and mark:
        return "#" + urllib.parse.quote(anchor, safe="()_.,:!*-+=~")
    link = os.path.relpath(path, os.path.dirname(page_url) or ".")
    link = urllib.parse.quote(link, safe="/()_.,!*-+=~")
    return link + (mark + urllib.parse.quote(anchor, safe="()_.,:!*-+=~") if mark else "")


def slug(text, taken):
    """The anchor of a heading, by the rule of repository browsers, so that a link works there as well."""
    base = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
    name, number = base, 0
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name)
    return name


class Site:
    """All pages, and what they have in common."""

    def __init__(self, version):
        self.version = version
        self.pages = {}
        # The groups of the navigation: name, the page about the group, and the pages in it.
        self.groups = []

    def add(self, page):
        if page.url in self.pages:
            raise SystemExit(f"docs: two pages are {page.url}")
        self.pages[page.url] = page
        return page

    def group(self, name, about, pages):
        self.groups.append((name, about, pages))
        for page in pages:
            page.group = page.group or name

    def order(self):
        """The pages in the order of reading."""
        return [page for _, _, pages in self.groups for page in pages if page.is_in_order]

    # Writing.

    def write(self, folder):
        order = self.order()
        places = {page.url: number for number, page in enumerate(order)}
        for page in self.pages.values():
            place = places.get(page.url)
            before = order[place - 1] if place else None
            after = order[place + 1] if place is not None and place + 1 < len(order) else None
            path = folder / page.url
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.written(page, before, after))

    def navigation(self, page):
        lines = []
        for name, about, pages in self.groups:
            is_own = page.group == name
            current = ' aria-current="page"' if about is page else ""
            lines.append(f'<li><a href="{relative(page.url, about.url)}"{current}>{quoted(name)}</a>')
            if is_own:
                # The page about a group that holds all others is its heading already.
                shown = [other for other in pages if other is not about or other.is_in_order and other.url != "index.html"]
                lines.append("<ul>")
                for other in shown:
                    current = ' aria-current="page"' if other is page else ""
                    lines.append(f'<li><a href="{relative(page.url, other.url)}"{current}>{quoted(other.title)}</a></li>')
                lines.append("</ul>")
            lines.append("</li>")
        return "\n".join(lines)

    @staticmethod
    def in_parts(body):
        """The home page: what follows each heading of the second level is a part, which the style places."""
        first, *parts = re.split(r"(?=<h2 )", body)
        return f'<div class="opening">{first}</div>' + "".join(f'<section>{part}</section>' for part in parts)

    @staticmethod
    def with_contents(body, aside):
        """The text with its table of contents below the heading and the first sentences, which say what the page is for."""
        place = re.search(r"<h1.*?</h1>\s*(?:<p>.*?</p>)?", body, re.DOTALL)
        return body[:place.end()] + aside + body[place.end():] if place else aside + body

    def written(self, page, before, after):
        def link(target):
            return relative(page.url, target)

        contents = [heading for heading in page.headings if heading.level == 2]
        details = [heading for heading in page.headings if heading.level == 3]
        if len(contents) + len(details) <= 24:
            contents = [heading for heading in page.headings if heading.level in (2, 3)]
        is_home = page.url == "index.html"
        aside = ""
        if len(contents) > 1 and not is_home:
            entries = "\n".join(
                f'<li class="l{heading.level}"><a href="{relative(page.url, page.url + "#" + heading.id)}">'
                f'{quoted(heading.text)}</a></li>' for heading in contents)
            aside = f'<nav class="contents" aria-labelledby="site-contents">' \
                    f'<h2 id="site-contents">On this page</h2><ul>\n{entries}\n</ul></nav>'
        steps = ""
        if (before or after) and not is_home:
            steps = '<nav class="steps" aria-label="Previous and next page">'
            steps += f'<a rel="prev" href="{link(before.url)}"><small>Previous</small> {quoted(before.title)}</a>' if before else "<span></span>"
            steps += f'<a rel="next" href="{link(after.url)}"><small>Next</small> {quoted(after.title)}</a>' if after else "<span></span>"
            steps += "</nav>"
        made_of = f"This page is made of <code>{quoted(page.source)}</code>. " if page.source else ""
        title = page.title if is_home else f"{page.title} · Nigh"
        return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{quoted(title)}</title>
<link rel="stylesheet" href="{link("style.css")}">
<link rel="icon" href="{link("icon.svg")}" type="image/svg+xml">
</head>
<body>
<a class="skip" href="#site-text">Skip to the text</a>
<header>
<a class="home" href="{link("index.html")}">Nigh</a>
<a class="menu" href="#site-menu">Menu</a>
<form role="search" action="{link("search.html")}">
<label for="site-search">Search</label>
<input id="site-search" name="q" type="search" autocomplete="off">
<button>Search</button>
</form>
</header>
<div class="columns">
<main id="site-text">
<article{' class="front"' if is_home else ""}>
{self.in_parts(page.body) if is_home else self.with_contents(page.body, aside)}
</article>
{steps}
</main>
<nav id="site-menu" class="site" aria-label="All pages">
<a class="close" href="#">Close the menu</a>
<ul>
{self.navigation(page)}
<li><a href="{link("contents.html")}">Index of everything</a></li>
</ul>
</nav>
</div>
<footer><p>Nigh {quoted(self.version)}. {made_of}Apache License 2.0.</p></footer>
</body>
</html>
"""

    # Search, and the list that stands in for it without scripts.

    def search_data(self):
        """A script with every section: page title, heading, address, text."""
        entries = []
        for page in self.pages.values():
            if not page.is_listed:
                continue
            for section in page.sections:
                address = page.url + (f"#{section.id}" if section.id else "")
                entries.append([page.title, section.heading, relative("search.html", address),
                                " ".join(section.text.split()), page.place or page.group])
        return "const everything = " + json.dumps(entries, ensure_ascii=False, separators=(",", ":")) + ";\n"

    def add_search(self):
        self.add(Page("search.html", "Search", is_in_order=False, is_listed=False, body="""
<h1>Search</h1>
<noscript><p>Search needs scripts, and this browser runs none. The <a href="contents.html">index of everything</a>
lists all pages, sections and symbols instead; your browser can search in it.</p></noscript>
<p id="site-count" role="status"></p>
<ol id="site-found"></ol>
<script src="search-data.js"></script>
<script src="search.js"></script>"""))

    def add_contents(self):
        lines = ["<h1>Index of everything</h1>",
                 "<p>Every page with its sections, and every symbol of the public modules. Your browser can search in it.</p>"]
        headings = []
        for name, _, pages in self.groups:
            anchor = slug(name, set())
            headings.append(Heading(2, anchor, name))
            lines.append(f'<h2 id="{anchor}">{quoted(name)}</h2><ul class="all">')
            for page in pages:
                inner = "".join(
                    f'<li><a href="{relative("contents.html", page.url + "#" + section.id)}">{quoted(section.heading)}</a></li>'
                    for section in page.sections if section.id and section.heading != page.title)
                lines.append(f'<li><a href="{relative("contents.html", page.url)}">{quoted(page.title)}</a>'
                             + (f"<ul>{inner}</ul>" if inner else "") + "</li>")
            lines.append("</ul>")
        self.add(Page("contents.html", "Index of everything", "\n".join(lines), headings, is_in_order=False, is_listed=False))
