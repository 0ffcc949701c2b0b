"""Say why a text was not found in a file, so that the next try can succeed: the nearest explanation, not a match; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import nlargest

from harness.visible import visible

MIN_APPLIED_CHARACTERS = 4
"""A shorter new text is somewhere in most files: that it is there says nothing."""
MAX_SEARCHED_LINES = 50_000
MAX_COMPARED_WORDS = 200
MAX_COMPARED_CHARACTERS = 2_000
"""Of one line."""
MAX_COMPARED_LINES = 1_000
"""A longer old text is not searched for with other blanks."""
CANDIDATES = 20
LEAST_LIKENESS = 0.5
"""Of a text that is worth showing, by difflib's ratio."""
MAX_SHOWN_LINES = 10
MAX_SHOWN_CHARACTERS = 300

_PREFIX = re.compile(r"^ *\d+\t", re.MULTILINE)
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\U([0-9a-f]{8})")
_WORD = re.compile(r"\w+|[^\w\s]")


def explain_miss(data: bytes, old: str, new: str) -> str:
    """Return one or two sentences (or the nearest lines) on why `old` is not in `data`."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if len(new.strip()) >= MIN_APPLIED_CHARACTERS and new in text:
        return f"new_string is already there (line {_line_of(text, new)})."
    bare = _PREFIX.sub("", old)
    if bare != old and bare in text:
        return "old_string carries line-number prefixes from read_file; leave them out."
    meant = _ESCAPE.sub(_unescape, old)
    if meant != old and meant in text:
        return "old_string has an escape (\\xNN, \\uNNNN) that read_file shows for a character; write the character itself."
    lines, wanted = text.split("\n"), old.strip("\n").split("\n")
    lines = lines[:MAX_SEARCHED_LINES]
    return _whitespace(lines, wanted) or _nearest(lines, wanted)


def _line_of(text: str, part: str) -> int:
    return text.count("\n", 0, text.index(part)) + 1


def _unescape(match: re.Match[str]) -> str:
    code = int(match.group(1) or match.group(2) or match.group(3), 16)
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else match.group()


def _whitespace(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """Return how the text differs if it does so in blanks only, else nothing."""
    squeezed = [_squeeze(line) for line in wanted]
    if not any(squeezed) or len(wanted) > MAX_COMPARED_LINES:
        return ""
    present = [_squeeze(line) for line in lines]
    for start in range(len(lines) - len(wanted) + 1):
        if _same_words(present, start, squeezed):
            for index, line in enumerate(wanted):
                found = lines[start + index]
                if found != line:
                    difference = _blank_difference(found, line)
                    if difference:
                        return f"It differs only in whitespace at line {start + index + 1}: {difference}."
            return f"It differs only in whitespace, from line {start + 1} on."
    return ""


def _same_words(present: Sequence[str], start: int, wanted: Sequence[str]) -> bool:
    """Say whether lines without blanks hold the wanted ones from `start` on, which may begin and end inside a line."""
    last = len(wanted) - 1
    if last == 0:
        return wanted[0] in present[start]
    return (
        present[start].endswith(wanted[0])
        and present[start + last].startswith(wanted[last])
        and all(present[start + index] == wanted[index] for index in range(1, last))
    )


def _squeeze(line: str) -> str:
    return "".join(line.split())


def _blank_difference(found: str, wanted: str) -> str:
    """Return what differs between two lines that hold the same words."""
    theirs, ours = _indent(found), _indent(wanted)
    if theirs != ours and found.strip() == wanted.strip():
        return f"the file has {_blanks(theirs)} where old_string has {_blanks(ours)}"
    if found.rstrip() == wanted.rstrip():
        whose = "the file has" if len(found) > len(wanted) else "old_string has"
        return f"{whose} blanks at the end of the line"
    return "" if wanted in found else "there are other blanks inside the line"


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _blanks(indent: str) -> str:
    if not indent:
        return "no indentation"
    for blank, name in (("\t", "tab"), (" ", "space")):
        if indent == blank * len(indent):
            return f"1 {name}" if len(indent) == 1 else f"{len(indent)} {name}s"
    return "tabs and spaces mixed"


def _nearest(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """Return the lines that are most like the wanted ones, found by the words of the longest of these."""
    from difflib import SequenceMatcher

    anchor = max(range(len(wanted)), key=lambda index: len(wanted[index].strip()))
    words = set(_words(wanted[anchor : anchor + 1]))
    votes = ((len(words.intersection(_words([line]))), index) for index, line in enumerate(lines))
    best = nlargest(CANDIDATES, (vote for vote in votes if vote[0]))
    matcher = SequenceMatcher(None, b=_words(wanted), autojunk=False)
    likeness, place = 0.0, 0
    for _, index in best:
        start = max(index - anchor, 0)
        matcher.set_seq1(_words(lines[start : start + len(wanted)]))
        ratio = matcher.ratio()
        if ratio > likeness:
            likeness, place = ratio, start
    if likeness < LEAST_LIKENESS:
        return "Nothing in the file is much like it; read the file again."
    shown = lines[place : place + min(len(wanted), MAX_SHOWN_LINES)]
    text = "\n".join(visible(line[:MAX_SHOWN_CHARACTERS]) for line in shown)
    return f"Nearest text (lines {place + 1}-{place + len(shown)}):\n{text}"


def _words(lines: Sequence[str]) -> list[str]:
    found: list[str] = []
    for line in lines:
        found += _WORD.findall(line[:MAX_COMPARED_CHARACTERS])
        if len(found) >= MAX_COMPARED_WORDS:
            break
    return found[:MAX_COMPARED_WORDS]
