"""Front matter: the lines `key: value` between two lines `---` that a Markdown file may begin with."""

from __future__ import annotations

import re

from harness.record import Record

_FENCE = "---"
_LINE = re.compile(r"([A-Za-z_][\w-]*):(?:[ \t]+(.*))?")
_BLOCKS = (">", "|", ">-", "|-")


class FrontMatter(Record):
    """What a file says of itself, and the rest of it."""

    fields: dict[str, str]
    """By key, as texts. A value that spans lines is joined by blanks, after `|` by line ends."""
    body: str


def front_matter(text: str) -> FrontMatter:
    """Return what `text` begins with, and the rest; a text that does not begin with `---` has no fields.

    This is the part of YAML that such files use: plain and quoted texts, and texts of indented lines. Lists and nested
    tables are kept as the lines that they are.

    Raises ValueError, with the number of the line, for front matter that does not end, or a line that is none of it.
    """
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        return FrontMatter(fields={}, body=text)
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), 0)
    if not end:
        raise ValueError("line 1: --- begins what the file says of itself, and no second --- ends it")
    fields: dict[str, list[str]] = {}
    key = ""
    for number, line in enumerate(lines[1:end], 2):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if key and (line[0] in " \t" or line.startswith("- ")):
            fields[key].append(line.strip())
            continue
        found = _LINE.fullmatch(line.rstrip())
        if found is None:
            raise ValueError(f"line {number}: it must be `key: value`")
        key = found[1]
        if key in fields:
            raise ValueError(f"line {number}: {key} stands here twice")
        fields[key] = [(found[2] or "").strip()]
    return FrontMatter(
        fields={key: _value(first, more) for key, (first, *more) in fields.items()}, body="\n".join(lines[end + 1 :])
    )


def _value(first: str, more: list[str]) -> str:
    if first in _BLOCKS:
        return ("\n" if first[0] == "|" else " ").join(more)
    joined = " ".join((first, *more)).strip()
    if len(joined) > 1 and joined[0] == joined[-1] == '"':
        return re.sub(r"\\([\"\\])", r"\1", joined[1:-1])
    if len(joined) > 1 and joined[0] == joined[-1] == "'":
        return joined[1:-1].replace("''", "'")
    return re.split(r"[ \t]#", joined, maxsplit=1)[0].rstrip()
