"""The pages of the commands, from the tables that their help is made from: `nigh manual --markdown` prints those as Markdown."""
import re
import subprocess


class Command:
    """A command as its program describes it: its path, such as `nigh peers forget`, its Markdown, and its options."""

    def __init__(self, text):
        self.text = text
        self.title = re.match(r"# (.*)", text)[1]
        # Option names with whether they take a value; short ones lead to the same.
        self.options = {}
        for row in re.findall(r"^\| ((?:[^|\\]|\\.)*) \|", text, re.MULTILINE):
            if "`--" not in row or row.startswith("--"):
                continue
            short = re.search(r"`-(\w)`", row)
            negatable, name, value = re.search(r"`--(\[no-\])?([a-z0-9-]+)( [^`]+)?`", row).groups()
            self.options[f"--{name}"] = bool(value)
            if negatable:
                self.options[f"--no-{name}"] = False
            if short:
                self.options[f"-{short[1]}"] = bool(value)

    @property
    def url(self):
        return "commands/" + self.title.replace(" ", "-") + ".html"


def commands(built, program):
    """All visible commands of a program, by their path."""
    text = subprocess.run([built / program, "manual", "--markdown"], check=True, capture_output=True, text=True).stdout
    found = [Command(part) for part in re.split(r"(?m)^(?=# )", text) if part.strip()]
    return {command.title: command for command in found}


def help_of(built, command):
    """The help of a command, as a user sees it."""
    program, *path = command.title.split()
    return subprocess.run([built / program, *path, "--help"], check=True, capture_output=True, text=True).stdout


def add_pages(site, texts, built):
    """Adds a page for each command; returns all commands by their path, and the pages in order."""
    found, pages = {}, []
    for program in ("nigh", "fourinarow"):
        for command in commands(built, program).values():
            found[command.title] = command
            name = command.title.split()[1] if command.title.startswith("nigh ") else ""
            text = command.text
            more = [f"[{title}](../docs/{place})" for title, place in _more(texts, name)]
            if more:
                text += "\n## See also\n\n" + "\n".join(f"- {line}" for line in more) + "\n"
            # Commands that stand in a table of another command lead to their own pages.
            text = re.sub(r"^\| `(nigh [a-z -]+|fourinarow [a-z -]+)` \|",
                          lambda match: f"| [`{match[1]}`](../{'commands/' + match[1].replace(' ', '-')}) |", text, flags=re.MULTILINE)
            texts.addresses["commands/" + command.title.replace(" ", "-")] = command.url
            pages.append(texts.add_text(text, command.url, "commands/page"))
    return found, pages


# The written pages that tell more about a command.
PAGES = {"doctor": "doctor", "discover": "people", "identity": "people", "pair": "people", "peers": "people", "chat": "people",
         "send": "files", "receive": "files", "transfers": "files", "ping": "measuring", "bench": "measuring",
         "host": "measuring", "inject": "inject", "trace": "trace"}


def _more(texts, name):
    if name in PAGES:
        yield "More about it, with what its output means", f"reference/nigh/{PAGES[name]}.md"
    if f"docs/reference/schemas/nigh-{name}.json" in texts.addresses:
        yield f"The JSON of `nigh {name} --json`", f"reference/schemas/nigh-{name}.json"
