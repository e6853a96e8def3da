"""Marks the parts of code, so that a style sheet can colour them: Swift, and lines that are typed into a shell."""
import html
import re

SWIFT_WORDS = set("""
    actor any as associatedtype async await borrowing break case catch class consuming continue convenience default defer deinit do
    else enum extension fallthrough false fileprivate final for func get guard if import in indirect init inout internal is isolated
    lazy let mutating nil nonisolated nonmutating open operator override package private protocol public repeat rethrows return self
    Self sending set some static struct subscript super switch throw throws true try typealias unowned var weak where while
    """.split())
SWIFT = re.compile(r'''
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<string>\#*"""(?:\\.|.)*?"""\#*|\#"(?:[^"\n])*"\#|"(?:\\.|[^"\\\n])*")
  | (?P<number>\b\d[\d_]*(?:\.\d+)?(?:x[\dA-Fa-f_]+)?\b)
  | (?P<attribute>[@\#]\w+)
  | (?P<word>`?[A-Za-z_]\w*`?)
''', re.VERBOSE | re.DOTALL)
SHELL = re.compile(r'''
    (?P<comment>(?:(?<=\s)|^)\#[^\n]*)
  | (?P<string>"(?:\\.|[^"\\])*"|'[^']*')
  | (?P<option>(?<=\s)--?[A-Za-z][\w-]*)
  | (?P<command>^(?:nigh|fourinarow|make|swift|sudo|cd|mkdir|printf|export|ip|man|apt-get)\b)
''', re.VERBOSE | re.MULTILINE)
# The first words of blocks that are typed into a shell.
TYPED = re.compile(r"\s*(?:\$ |sudo |nigh |fourinarow |make\b|swift |mkdir |cd |printf |ip |Tests/Lab)")


def _mark(pattern, code, name_of):
    out, end = [], 0
    for found in pattern.finditer(code):
        name = name_of(found)
        if name:
            out += [html.escape(code[end:found.start()]), f'<span class="{name}">{html.escape(found[0])}</span>']
            end = found.end()
    return "".join(out + [html.escape(code[end:])])


def _swift_name(found):
    if found.lastgroup != "word":
        return {"comment": "c", "string": "s", "number": "n", "attribute": "k"}[found.lastgroup]
    if found[0] in SWIFT_WORDS:
        return "k"
    return "t" if found[0][0].isupper() else None


def _shell_name(found):
    return {"comment": "c", "string": "s", "option": "n", "command": "k"}[found.lastgroup]


def language(info, code):
    """The language of a fenced block: `swift`, `sh` or an empty string."""
    first = info.split()[0] if info.split() else ""
    return "sh" if not first and TYPED.match(code) else first if first in ("swift", "sh") else ""


def attributes(info, code):
    """The attributes of the block. Long lines of code continue in the next row; those of a drawing are scrolled to."""
    return ' class="wraps"' if language(info, code) else ' tabindex="0"'


def marked(info, code):
    """The code as HTML."""
    kind = language(info, code)
    if kind == "swift":
        return _mark(SWIFT, code, _swift_name)
    if kind == "sh":
        return _mark(SHELL, code, _shell_name)
    return html.escape(code)
