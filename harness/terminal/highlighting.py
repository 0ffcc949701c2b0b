"""Source code in colours: lines of text, with a tint for each part. Uses the lexers with which rich draws code.

INVARIANTS: a lexer gets text that is already safe to show, and only determines where colours begin and end; text from a
lexer is never shown. Its work is bounded by characters, not by a clock: time grows at worst with their square, and a
line is lexed with at most LONGEST characters before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from harness.terminal.row_text import Row, Tint, line_rows, safe_line
from harness.terminal.styles import Fill, Ink

LONGEST = 400
"""Maximum number of characters in a coloured line. A longer one is shown without colours."""
MOST_WORK = 12_000_000
"""Maximum work for one text: the sum of the squares of lexed characters. Enough for about 2,000 lines of usual code."""
LANGUAGES = frozenset(
    "bash c c++ cpp css diff dockerfile go html ini java javascript js json jsx kotlin lua make makefile markdown md perl "
    "php python py rb ruby rs rust scss sh shell sql swift toml ts tsx typescript xml yaml yml zsh".split()
)
"""Names of coloured languages: widely used ones whose lexers from pygments are covered by a test."""
_ENDINGS = {
    "bashrc": "bash", "cc": "cpp", "cfg": "ini", "cjs": "js", "cxx": "cpp", "h": "c", "hpp": "cpp", "htm": "html",
    "kt": "kotlin", "mjs": "js", "mk": "make", "mts": "ts", "patch": "diff", "pl": "perl", "pm": "perl", "pyi": "python",
    "svg": "xml", "zshrc": "zsh",
}  # fmt: skip
"""Languages by file name suffix, for suffixes that are not names in LANGUAGES. A name without a dot is its own suffix."""
_INKS = {
    ("Comment",): Ink.COMMENT,
    ("Comment", "Preproc"): Ink.KEYWORD,
    ("Generic", "Deleted"): Ink.REMOVED,
    ("Generic", "Inserted"): Ink.ADDED,
    ("Keyword",): Ink.KEYWORD,
    ("Keyword", "Type"): Ink.TYPE,
    ("Literal", "Number"): Ink.NUMBER,
    ("Literal", "String"): Ink.STRING,
    ("Name", "Attribute"): Ink.TYPE,
    ("Name", "Builtin"): Ink.TYPE,
    ("Name", "Class"): Ink.NAME,
    ("Name", "Decorator"): Ink.KEYWORD,
    ("Name", "Exception"): Ink.TYPE,
    ("Name", "Function"): Ink.NAME,
    ("Name", "Tag"): Ink.NAME,
    ("Name", "Variable"): Ink.TYPE,
    ("Operator", "Word"): Ink.KEYWORD,
}
"""Inks of a lexer's tokens, by the first parts of the token type. Other tokens are plain."""
_GOES_ON = frozenset((Ink.COMMENT, Ink.STRING))
_PROBE = "\nx*/-->"
"""A letter on a separate line, and ends of comments, because many lexers do not recognize an unclosed comment."""


def language_of(path: str) -> str:
    """Return the language of a file by its name. Empty if it is not coloured."""
    ending = path.rpartition("/")[2].rpartition(".")[2].lower()
    return ending if ending in LANGUAGES else _ENDINGS.get(ending, "")


class Highlighter:
    """Colours one text line by line. A string or comment may continue over several lines."""

    def __init__(self, language: str) -> None:
        """`language` is a name as written after a fence. An unknown language gets no colours."""
        self._language = language if language in LANGUAGES else ""
        self._open = ""
        """The lines since the start of an open string or comment; only the last one if they are too long."""
        self._work = 0

    def line(self, line: str) -> tuple[Tint, ...]:
        """Return the tints of the next line, which must come from `safe_line`."""
        if not (self._language and line):
            return ()
        work = (len(self._open) + len(line)) ** 2
        if len(line) > LONGEST or self._work + work > MOST_WORK:
            self._language = "" if len(line) <= LONGEST else self._language
            return ()
        self._work += work
        before = f"{self._open}\n" if self._open else ""
        begin = len(before)
        tints, opened = _lexed(self._language, before + line)
        if opened < begin:
            self._open = self._open if opened >= 0 else ""
        elif len(before) + len(line) <= LONGEST:
            self._open = before + line
        else:
            self._open = line
        return tuple(
            Tint(max(tint.start - begin, 0), min(tint.end - begin, len(line)), tint.ink)
            for tint in tints
            if tint.end > begin and tint.start < begin + len(line)
        )


def code_rows(
    lines: Iterable[str],
    highlighter: Highlighter,
    width: int,
    *,
    gutter: str,
    next_gutter: str = "",
    strong: bool = False,
) -> Iterator[Row]:
    """Yield the rows of code (hostile text) like `row_text.rows_of`, with the background and colours of code.

    With `strong`, the text is emphasized.
    """
    for line in lines:
        safe = safe_line(line)
        tints = (*((Tint(0, len(safe), Ink.STRONG),) if strong else ()), *highlighter.line(safe))
        yield from line_rows(safe, width, gutter=gutter, tints=tints, fill=Fill.CODE)
        gutter = next_gutter or gutter


def _lexed(language: str, text: str) -> tuple[list[Tint], int]:
    """Return the coloured parts of a text, and the start of a string or comment that is open at its end (or -1).

    To detect an open one, a probe with a letter is lexed after the text. If the lexer fails, nothing is coloured.
    """
    lexer = _lexer(language)
    tints: list[Tint] = []
    try:
        for start, kind, value in lexer.get_tokens_unprocessed(text + _PROBE) if lexer else ():
            ink = _ink(tuple(kind))
            if ink is not None and tints and tints[-1].ink is ink and tints[-1].end == start:
                tints[-1] = tints[-1]._replace(end=start + len(value))
            elif ink is not None:
                tints.append(Tint(start, start + len(value), ink))
    except Exception:  # noqa: BLE001 - no text may end the program by how it is drawn
        return [], -1
    end = len(text) + 1
    opened = (tint.start for tint in tints if tint.start < end < tint.end and tint.ink in _GOES_ON)
    return tints, next(opened, -1)


@cache
def _ink(kind: tuple[str, ...]) -> Ink | None:
    return next((ink for end in range(len(kind), 0, -1) if (ink := _INKS.get(kind[:end])) is not None), None)


@cache
def _lexer(language: str) -> Any:
    """Return the lexer of a language, from a cache. `Any`, because pygments has no types."""
    from rich.syntax import Syntax  # 60 ms, with pygments

    return Syntax("", language).lexer
