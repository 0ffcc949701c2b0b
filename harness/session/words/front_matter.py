"""Front matter: the lines `key: value` between two lines `---` that a Markdown file may begin with."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.record import Record
from harness.regex import regex

_FENCE = "---"
_LINE = regex(r"""(?:"([^"]+)"|'([^']+)'|(\w[\w.-]*))[ \t]*:(?:[ \t]+(.*))?""")
_BLOCK = regex(r"([|>])[-+1-9]{0,2}(?:[ \t]+#.*)?")
_QUOTED = regex(r"""(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)')(?:[ \t]*|[ \t]+#.*)""", re.DOTALL)
_ESCAPE = regex(r"\\(?:u(?!0000)([0-9a-fA-F]{4})|(.))")
_CLOSES = regex(r"[\]}],?[ \t]*(?:#.*)?")
_NAMED = {"n": "\n", "t": "\t", "r": "\r"}
_NOTHING = ("~", "null")


class FrontMatter(Record):
    """The fields at the top of a file, and the text below them."""

    fields: dict[str, str]
    """Values by key. The lines of a value are joined by blanks, or by line ends after `|`; list items by commas."""
    body: str
    problem: str = ""
    """Message about the first invalid line, with its number. Empty if all lines are valid."""


def front_matter(text: str) -> FrontMatter:
    """Parse the front matter of `text`. A text that does not begin with `---` has no fields.

    Supports the part of YAML 1.2 that such files use: plain and quoted texts, blocks of indented lines, and lists.
    Nested tables and lists in brackets are kept as raw text. A value may contain colons, as in other readers.
    """
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        return FrontMatter(fields={}, body=text)
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), 0)
    if not end:
        problem = "line 1: --- begins what the file says of itself, and no second --- ends it"
        return FrontMatter(fields={}, body=text, problem=problem)
    fields: dict[str, list[str]] = {}
    problems = []
    values: list[str] = []
    for number, line in enumerate(map(str.rstrip, lines[1:end]), 2):
        if values and (line[:1] in ("", " ", "\t") or line == "-" or line.startswith("- ") or _CLOSES.fullmatch(line)):
            values.append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            continue
        elif (match := _LINE.fullmatch(line)) is None:
            problems.append(f"line {number}: it must be `key: value`")
        else:
            key = match[1] or match[2] or match[3]
            values = [(match[4] or "").strip()]
            if key in fields:
                problems.append(f"line {number}: {key} stands here twice")
            fields.setdefault(key, values)
    return FrontMatter(
        fields={key: _value(first, more) for key, (first, *more) in fields.items()},
        body="\n".join(lines[end + 1 :]),
        problem=next(iter(problems), ""),
    )


def _value(first: str, more: Sequence[str]) -> str:
    if block := _BLOCK.fullmatch(first):
        import textwrap

        text = textwrap.dedent("\n".join(more)).strip("\n")
        return text if block[1] == "|" else re.sub(r"\n(\n*)", lambda ends: ends[1] or " ", text)
    lines = [line.strip() for line in more if line.strip() and not line.lstrip().startswith("#")]
    if not first and lines and all(line == "-" or line.startswith("- ") for line in lines):
        return ", ".join(_value(line[1:].strip(), ()) for line in lines)
    joined = " ".join((first, *lines)).strip()
    if quoted := _QUOTED.fullmatch(joined):
        return _unescaped(quoted[1]) if quoted[2] is None else quoted[2].replace("''", "'")
    plain = re.split(r"(?:^|[ \t])#", joined, maxsplit=1)[0].rstrip()
    return "" if plain in _NOTHING else plain


def _unescaped(text: str) -> str:
    def character_of(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else _NAMED.get(match[2], match[2])

    # Two escapes may form a surrogate pair. A lone surrogate is replaced.
    return _ESCAPE.sub(character_of, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
