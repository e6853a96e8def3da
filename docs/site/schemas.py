"""A page for each JSON schema: its members as tables, then the schema itself."""
import json

import texts as markdown


def add_pages(site, texts):
    folder = markdown.ROOT / "docs/reference/schemas"
    pages = []
    for path in sorted(folder.glob("*.json")):
        place, url = f"docs/reference/schemas/{path.name}", f"reference/schemas/{path.stem}.html"
        texts.addresses[place] = url
        schema = json.loads(path.read_text())
        lines = [f"# {path.stem}", "", _words(schema.get("title", "")) + ".", ""]
        lines += _members("The object", schema)
        for name, part in schema.get("$defs", {}).items():
            lines += _members(name, part)
        lines += ["## The schema", "", "```json", path.read_text().rstrip("\n"), "```", ""]
        page = texts.add_text("\n".join(lines), url, place, is_in_order=False)
        page.source = place
        pages.append(page)
    texts.addresses["docs/reference/schemas"] = "reference/schemas/index.html"
    links = "\n".join(f"- [{page.title}]({page.url.rpartition('/')[2].replace('.html', '.json')})" for page in pages)
    index = texts.add_text(
        "# JSON schemas\n\nAfter reading this page you can write a program that reads what `nigh` prints with `--json`. Each\n"
        "schema describes the one object of `--json`; its `$defs/line` describes each line of `--json-lines`.\n\n" + links,
        "reference/schemas/index.html", "docs/reference/schemas/index.md")
    return index, pages


def _words(text):
    return text.replace("<", "\\<").replace("|", "\\|").replace("$", "\\$")


def _kind(part):
    if "$ref" in part:
        return f"`{part['$ref'].rpartition('/')[2]}`"
    if "const" in part:
        return f"`{json.dumps(part['const'])}`"
    if "enum" in part:
        return ", ".join(f"`{json.dumps(value)}`" for value in part["enum"])
    kind = part.get("type")
    if kind == "array" and isinstance(part.get("items"), dict):
        return f"array of {_kind(part['items'])}"
    if kind:
        return " or ".join(kind) if isinstance(kind, list) else kind
    for word in ("oneOf", "anyOf", "allOf"):
        if word in part:
            return (" or " if word != "allOf" else ", ").join(dict.fromkeys(_kind(choice) for choice in part[word]))
    return "any value"


def _members(name, part):
    lines = []
    for choice in [part, *part.get("oneOf", []), *part.get("allOf", [])]:
        properties = choice.get("properties")
        if not properties:
            continue
        required = set(choice.get("required", []))
        if not lines:
            lines += [f"## {name}", "", _words(part["description"]) + "." if "description" in part else "", ""]
        lines += ["| member | value | always there | meaning |", "| --- | --- | --- | --- |"]
        lines += [f"| `{member}` | {_kind(value)} | {'yes' if member in required else 'no'} | {_words(value.get('description', ''))} |"
                  for member, value in properties.items()]
        lines.append("")
    return lines
