"""Lines of Markdown: by what each kind of block begins, and what belongs to none of our own lines; pure.

Every pattern is linear: what repeats is possessive, or ends at a character that it does not hold.
"""

from __future__ import annotations

import re

BARS = tuple(
    "|\u00a6\u01c0\u2016\u2223\u23ae\u23d0\u2502\u2503\u2551\u258c\u258d\u258e\u258f\u2758\u2759\u275a\ufe31\uff5c\uffe8"
)
"""What a line of text does not begin with where the output of a command has its bar, and what could be taken for it."""

_COLOURS = re.compile(r"\A(?:\x1b\[[0-9;]*+m)++")
FENCE = re.compile(r"(?P<indent> *+)(?P<fence>`{3,}+|~{3,}+)(?P<info>[^`]*+)")
HEADING = re.compile(r"(#{1,6})(?:\s++(.*))?", re.DOTALL)
RULE = re.compile(r"(?:\*\s*+){3,}+|(?:-\s*+){3,}+|(?:_\s*+){3,}+")
ITEM = re.compile(r"([-*+]|[0-9]{1,9}[.)])(?:\s++(.*))?", re.DOTALL)
UNDERLINE = re.compile(r"={2,}+|-{2,}+")


class Fence:
    """A code block that is open."""

    def __init__(self, fence: str, indent: int, quotes: int, lead: str) -> None:
        self.fence = fence
        self.indent = indent
        self.quotes = quotes
        self.lead = lead
        self._is_plain = not (indent or quotes)

    def holds_as_it_is(self, line: str, columns: int) -> bool:
        """Say whether a line is code that is shown as it stands; a no says nothing."""
        return (
            self._is_plain
            and 0 < len(line) <= columns - len(self.lead)
            and line.isascii()
            and line.isprintable()
            and self.fence not in line
        )

    def is_closed_by(self, line: str) -> bool:
        """Say whether a line is the end of the block."""
        line = line.strip()
        return len(line) >= len(self.fence) and not line.strip(self.fence[0])


def begins_with_bar(line: str) -> bool:
    """Say whether a line that is ready to be shown begins, behind its colours, with a bar or what looks like one."""
    return line.startswith(BARS) or (line.startswith("\x1b") and _COLOURS.sub("", line).startswith(BARS))


def unquoted(line: str, most: int) -> tuple[int, str]:
    """Return how deep a line is quoted, at most so deep, and what is quoted."""
    quotes = 0
    while quotes < most and (body := line.lstrip(" ")).startswith(">"):
        quotes += 1
        line = body[1:].removeprefix(" ")
    return quotes, line


def title_of(text: str) -> str:
    """Return a heading without the signs that may close it."""
    title = text.rstrip(" #")
    return text.rstrip(" ") if title and text[len(title) : len(title) + 1] == "#" else title


def paragraph_of(lines: list[str]) -> str:
    """Return a paragraph in one line, but for the line ends that its writer asked for."""
    parts = []
    for line in lines[:-1]:
        if line.endswith("\\"):
            parts.append(f"{line[:-1]}\n")
        else:
            parts.append(f"{line.rstrip(' ')}\n" if line.endswith("  ") else f"{line} ")
    parts.append(lines[-1].rstrip(" "))
    return "".join(parts)
