"""Explain why a text was not found in a file, so that the next attempt can succeed.

It never finds a match. Pure functions.

The input of every step is bounded, so that the worst file takes less than half a second; a test counts the steps. The
time of a step is at most linear in its bounded input, except for the comparison of a few words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache

from harness.regex import regex
from harness.text.look_alikes import drawn_letters
from harness.text.visible import visible

MIN_APPLIED_CHARACTERS = 4
"""Minimum length of a new text for the check that it already exists.

Most files contain a shorter text. It counts only as a separate word, and after other explanations.
"""
MAX_SEARCHED_CHARACTERS = 1_500_000
"""Maximum length of the file and of the old text, except for the check that the new text already exists."""
MAX_NORMALIZED_CHARACTERS = 1_000_000
MAX_MARKS = 30
"""Maximum number of combining characters in a row, as in the stream-safe text format of UAX #15.

Normalizing takes time quadratic in that number. Ordinary text never has as many.
"""
MAX_COMPARED_WORDS = 80
MAX_COMPARED_CHARACTERS = 2_000
"""Maximum number of characters compared per line."""
MAX_LINES_LOOKED_FOR = 200
"""Maximum number of lines of the old text that are searched for, and of positions counted for each."""
MAX_LINES_COMPARED = 50_000
"""Maximum number of lines compared in a file that contains no line of the old text."""
CANDIDATES = 12
LEAST_LIKENESS = 0.5
"""Minimum likeness of a text to show, as difflib's ratio."""
MAX_SHOWN_LINES = 10
MAX_SHOWN_CHARACTERS = 200

_PREFIX = regex(r"^ *\d+\t", re.MULTILINE)
_ESCAPE = regex(r"\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\U([0-9a-f]{8})")
_HIDDEN = (
    "\0-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
"""Invisible characters: controls, format characters, fillers, variation selectors."""
_IN_CODE = (
    r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[ntr0abfv\"'`/\\])"
    "|&(?:lt|gt|amp|quot|apos|nbsp|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});"
)
"""Pattern of an escape in a string literal, or of an HTML entity."""
_CODED = regex(_IN_CODE)
_UNSEEN = regex(f"[{_HIDDEN}]")
_UNIT = regex(f"{_IN_CODE}|[{_HIDDEN}]")
_LONGEST_UNIT = 10
_UNIT_STARTS = frozenset("\\&")
"""First characters of units with more than one character."""
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_WORD = regex(r"\w+|[^\w\s]")
_BLANKS = b" \t\r\x0b\x0c"
# Characters that editors and models write instead of a plain character.
_LIKE = {
    "'": "\u2018\u2019\u201a\u201b\u2032",
    '"': "\u201c\u201d\u201e\u201f\u2033",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    " ": "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
}


def explain_miss(data: bytes, old: str, new: str) -> str:
    """Return the reason why `old` is not in `data`, in one or two sentences, or the nearest lines."""
    old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    applied = _applied(data, new)
    is_short = len(new.strip()) < MIN_APPLIED_CHARACTERS
    if applied and not is_short:
        return applied
    if len(old) > MAX_SEARCHED_CHARACTERS:
        return "It is longer than what is searched for something like it; read the file again."
    start = data[: 4 * MAX_SEARCHED_CHARACTERS + 4]  # a character has at most four bytes
    decoded = start.decode("utf-8", "replace").replace("\r\n", "\n")
    text = decoded[:MAX_SEARCHED_CHARACTERS]
    bare = _PREFIX.sub("", old)
    if bare != old and bare in text:
        return "old_string carries line-number prefixes from read_file; leave them out."
    unescaped = _ESCAPE.sub(_unescape, old)
    if unescaped != old and unescaped in text:
        return "old_string has an escape (\\xNN, \\uNNNN) that read_file shows for a character; write the character itself."
    if old in text:
        return "old_string has U+FFFD where the file has bytes that are no UTF-8: they cannot be named in an edit."
    if explanation := _whitespace(text, old) or _otherwise_written(text, old) or _unicode(text, old):
        return explanation
    if explanation := " ".join(filter(None, (applied, _nearest(text, old)))):
        return explanation
    searched = f"the first {len(text):,} characters of the file" if len(text) < len(decoded) else "the file"
    if text.count("\n") >= MAX_LINES_COMPARED:
        searched = f"the first {MAX_LINES_COMPARED:,} lines of the file"
    return f"Nothing in {searched} is much like it; read the file again."


def _applied(data: bytes, new: str) -> str:
    """Return a sentence with the line of the new text in the file.

    Empty if it is missing, or short and part of a word.
    """
    if not new.strip():
        return ""
    with_lf = data.replace(b"\r\n", b"\n") if b"\r\n" in data else data
    position = with_lf.find(new.encode())
    if len(new.strip()) < MIN_APPLIED_CHARACTERS:
        alone = re.search(rb"(?<![\w\x80-\xff])" + re.escape(new.encode()) + rb"(?![\w\x80-\xff])", with_lf)
        position = alone.start() if alone else -1
    line = with_lf.count(b"\n", 0, position) + 1
    return f"new_string is already there (line {line})." if position >= 0 else ""


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _unescape(match: re.Match[str]) -> str:
    code = int(match.group(1) or match.group(2) or match.group(3), 16)
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else match.group()


def _whitespace(text: str, old: str) -> str:
    """Return a sentence on the difference if the texts differ only in whitespace, else an empty string."""
    target = old.strip("\n")
    squeezed = target.encode().translate(None, _BLANKS)
    present = text.encode().translate(None, _BLANKS)
    position = present.find(squeezed) if squeezed.strip(b"\n") else -1
    if position < 0:
        return ""
    first = present.count(b"\n", 0, position)
    ours = target.split("\n")
    theirs = text.split("\n", first + len(ours))[first : first + len(ours)]
    for number, (file_line, line) in enumerate(zip(theirs, ours, strict=True), first + 1):
        difference = _blank_difference(file_line, line)
        if difference:
            return f"It differs only in whitespace at line {number}: {difference}."
    return f"It differs only in whitespace, from line {first + 1} on."


def _blank_difference(file_line: str, old_line: str) -> str:
    """Return the difference in whitespace between two lines with the same words, or an empty string."""
    if file_line == old_line:
        return ""
    theirs, ours = _indent(file_line), _indent(old_line)
    if theirs != ours and file_line.strip() == old_line.strip():
        return f"the file has {_blanks(theirs)} where old_string has {_blanks(ours)}"
    if file_line.rstrip() == old_line.rstrip():
        whose = "the file has" if len(file_line) > len(old_line) else "old_string has"
        return f"{whose} trailing blanks"
    return "" if old_line in file_line else "there are other blanks inside the line"


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _blanks(indent: str) -> str:
    if not indent:
        return "no indentation"
    for blank, name in (("\t", "tab"), (" ", "space")):
        if indent == blank * len(indent):
            return f"1 {name}" if len(indent) == 1 else f"{len(indent)} {name}s"
    return "tabs and spaces mixed"


def _otherwise_written(text: str, old: str) -> str:
    """Return a sentence on the difference if the texts differ only in look-alikes, hidden characters or escapes.

    Empty otherwise.
    """
    text, old = text[:MAX_NORMALIZED_CHARACTERS], old[:MAX_NORMALIZED_CHARACTERS]
    for units, meaning in ((_UNSEEN, _without_hidden), (_UNIT, _meaning)):
        if text.isascii() and old.isascii() and not units.search(text) and not units.search(old):
            continue
        old_meaning = meaning(old)
        position = meaning(text).find(old_meaning) if old_meaning.strip() else -1
        if position >= 0:
            return _difference(text, _place(text, position, units, meaning), old, units, meaning)
    return ""


def _without_hidden(text: str) -> str:
    """Return the text without hidden characters, and with look-alikes replaced by plain characters."""
    return _plain(_UNSEEN.sub("", text))


def _meaning(text: str) -> str:
    """Return the text with escapes and HTML entities decoded."""
    return _without_hidden(_CODED.sub(lambda match: _decoded(match.group()), text))


@lru_cache(maxsize=4_096)
def _decoded(code: str) -> str:
    """Return the character of an escape or an entity."""
    from html import unescape

    if code[0] == "&":
        return unescape(code)
    if len(code) == len("\\n"):
        return _LETTERS.get(code[1], code[1])
    number = int(code.lstrip("\\xuU"), 16)
    return chr(number) if number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF else code


def _place(text: str, position: int, units: re.Pattern[str], meaning: Callable[[str], str]) -> int:
    """Return the index in `text` of the character whose meaning is at `position`."""
    passed = end = 0
    for match in units.finditer(text):
        plain = passed + match.start() - end
        size = len(meaning(match.group()))
        if plain + (size == 0) > position or plain + size > position:
            return match.start() - max(plain - position, 0)
        passed, end = plain + size, match.end()
    return end + position - passed


def _difference(text: str, start: int, old: str, units: re.Pattern[str], meaning: Callable[[str], str]) -> str:
    """Return a sentence on the first difference of two texts with the same meaning."""
    i, j = start, 0
    while j < len(old) or i < len(text):
        ahead = text[i : i + 256]
        if len(ahead) == 256 and ahead == old[j : j + 256] and _UNIT_STARTS.isdisjoint(ahead[-_LONGEST_UNIT:]):
            i, j = i + 256, j + 256
            continue
        theirs, ours = _unit_at(text, i, units), _unit_at(old, j, units)
        if theirs == ours:
            i, j = i + len(theirs), j + len(ours)
            continue
        line = _line_at(text, i)
        if ours and not meaning(ours):
            difference = f"old_string has {_unit_name(ours)} where the file has none"
            return f"It differs in hidden characters at line {line}: {difference}."
        if not meaning(theirs):
            difference = f"the file has {_unit_name(theirs)} where old_string has none"
            return f"It differs in hidden characters at line {line}: {difference}."
        coded = max(len(theirs), len(ours)) > 1
        kind = "escapes" if coded else "letters that look alike" if theirs.isalnum() else "quotes, dashes or blanks"
        difference = f"the file has {_unit_name(theirs)} where old_string has {_unit_name(ours)}"
        return f"It differs in {kind} at line {line}: {difference}."
    return ""


def _unit_at(text: str, place: int, units: re.Pattern[str]) -> str:
    match = units.match(text, place)
    return match.group() if match else text[place : place + 1]


def _unicode(text: str, old: str) -> str:
    """Return a sentence on the difference if only the Unicode form differs. Empty otherwise."""
    if text.isascii() and old.isascii():
        return ""

    plain, target = _without_hidden(text[:MAX_NORMALIZED_CHARACTERS]), _without_hidden(old)
    if len(target) > MAX_NORMALIZED_CHARACTERS or not (_is_stream_safe(plain) and _is_stream_safe(target)):
        return ""
    plain, target = unicodedata.normalize("NFC", plain), unicodedata.normalize("NFC", target)
    position = plain.find(target)
    if position < 0:
        return ""
    return f"It differs in Unicode form (NFC/NFD) at line {_line_at(plain, position)}."


def _is_stream_safe(text: str) -> bool:
    """Return whether a text has at most `MAX_MARKS` combining characters in a row."""
    return text.isascii() or b"\1" * (MAX_MARKS + 1) not in bytes(map(bool, map(unicodedata.combining, text)))


def _plain(text: str) -> str:
    return text if text.isascii() else text.translate(_plain_characters())


@cache
def _plain_characters() -> dict[int, str]:
    """Return the plain characters by the code points of their look-alikes."""
    signs = {ord(other): plain for plain, variants in _LIKE.items() for other in variants}
    return {ord(other): plain for other, plain in drawn_letters().items()} | signs


def _unit_name(unit: str) -> str:
    """Return the name of a character. An escape is returned unchanged."""
    if len(unit) > 1:
        return unit
    return "a line break" if unit == "\n" else f"U+{ord(unit):04X} ({unicodedata.name(unit, 'no name')})"


def _nearest(text: str, old: str) -> str:
    """Return the lines that are most similar to the old text. Empty if none is similar enough."""
    from difflib import SequenceMatcher

    lines, old_lines = text.split("\n"), old.strip("\n").split("\n")
    matcher = SequenceMatcher(None, b=_words(old_lines), autojunk=False)
    likeness, place = 0.0, 0
    starts = Counter(_starts(lines, old_lines)) or _alike(lines, old_lines)
    for start, _ in starts.most_common(CANDIDATES):
        matcher.set_seq1(_words(lines[start : start + len(old_lines)]))
        if matcher.ratio() > likeness:
            likeness, place = matcher.ratio(), start
    if likeness < LEAST_LIKENESS:
        return ""
    visible_lines = lines[place : place + min(len(old_lines), MAX_SHOWN_LINES)]
    nearest = "\n".join(visible(line[:MAX_SHOWN_CHARACTERS])[:MAX_SHOWN_CHARACTERS] for line in visible_lines)
    return f"Nearest text (lines {place + 1}-{place + len(visible_lines)}):\n{nearest}"


def _starts(lines: Sequence[str], old_lines: Sequence[str]) -> Iterator[int]:
    """Yield a possible first line of the old text for each line that equals one of its lines, ignoring outer blanks."""
    places: dict[str, list[int]] = {}
    for index, line in enumerate(old_lines[:MAX_LINES_LOOKED_FOR]):
        if stripped := line.strip():
            places.setdefault(stripped, []).append(index)
    counts: Counter[str] = Counter()
    for index, line in enumerate(lines):
        stripped = line.strip()
        offsets = places.get(stripped)
        if offsets is not None and counts[stripped] < MAX_LINES_LOOKED_FOR:
            counts[stripped] += 1
            yield from (max(index - offset, 0) for offset in offsets)


def _alike(lines: Sequence[str], old_lines: Sequence[str]) -> Counter[int]:
    """Return the number of words that each line shares with the longest line of the old text.

    The keys are the indexes at which the old text would start.
    """
    longest = max(range(len(old_lines)), key=lambda index: len(old_lines[index]))
    words = frozenset(_words(old_lines[longest : longest + 1]))
    shared: Counter[int] = Counter()
    for index, line in enumerate(lines[:MAX_LINES_COMPARED]):
        if number := len(words.intersection(_words((line,)))):
            shared[max(index - longest, 0)] += number
    return shared


def _words(lines: Sequence[str]) -> list[str]:
    words: list[str] = []
    for line in lines:
        words += _WORD.findall(line[:MAX_COMPARED_CHARACTERS])
        if len(words) >= MAX_COMPARED_WORDS:
            break
    return words[:MAX_COMPARED_WORDS]
