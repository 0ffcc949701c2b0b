"""Makes hostile text safe to show: characters that move the cursor, reorder, hide or pile up text become escapes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from harness.declared_types import check_value

MOST_MARKS = 5
"""Maximum number of nonspacing marks on one base. Vietnamese needs two, Hebrew with accents three, Burmese five."""
_MOST_SPACING_MARKS = 8
"""Maximum number of marks of any kind on one base. Some marks in Burmese and Tibetan take their own column."""

# Characters that Python calls printable but a terminal draws as nothing or as a blank: Unicode's Default_Ignorable_Code_Point
# (DerivedCoreProperties.txt), the Hangul fillers, the empty braille cell, the null notehead, blank hieroglyphs, a filler
# of Khitan, and the object replacement character.
_BLANK_OR_NOTHING = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc"
    "\U00013441\U00013442\U00016fe4\U0001d159\U000e0100-\U000e01ef"
)
_HIDDEN = f"[{_BLANK_OR_NOTHING}]"
# Possible marks: neither letters, digits nor underscore, nor the first 768 characters, which contain no marks. In addition,
# the medial and final jamo: letters that a terminal draws into the cell before them (wcwidth 0).
_JAMO = "[\u1160-\u11ff\ud7b0-\ud7fb]"
_MAYBE_MARK = "[^\\w\\x00-\u02ff]"
_MARK_OR_JAMO = f"(?:{_MAYBE_MARK}|{_JAMO})"
_AT_A_START = "(?:\\A|(?<=[\\n\\t]))"

# Blocks of characters that a presentation selector may follow (Unicode's emoji-variation-sequences.txt).
_PICTURES = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_SELECTORS = (
    f"(?<=[{_PICTURES}])[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?=\u20e3)|(?<=[{_PICTURES}\ufe0f])\u200d(?=[{_PICTURES}])"
)


class _Mark(Enum):
    """The drawing of a combining mark."""

    NONE = 0
    """Not a combining mark."""
    ON_ITS_BASE = 1
    BESIDE_IT = 2


def visible(text: str) -> str:
    """Return `text` with an escape for every character that could move the cursor, reorder, hide or pile up text.

    Newline and tab stay. These become escapes: C0, DEL, C1, format characters (among them all of Unicode's
    Bidi_Control, zero-width ones, tags), variation selectors, all blanks but U+0020, line and paragraph separators,
    surrogates; private use, which a console's font may draw as any letter (Linux maps U+F000 to its font,
    Documentation/admin-guide/unicode.rst); characters unknown to this Python's Unicode; and combining marks without a
    base, or more than MOST_MARKS on one. Wide characters and letters of all scripts stay, right-to-left ones too.

    Applying it twice changes nothing. Join the pieces of a text first: a mark at the start of a piece has no base
    there.
    """
    if type(text) is not str:
        check_value("text", text, str)
    if text.isascii():
        return text if text.isprintable() else re.sub("[\\x00-\\x08\\x0b-\\x1f\\x7f]", _escaped, text)
    if not text.replace("\n", "").replace("\t", "").isprintable():
        text = "".join([char if char.isprintable() or char in "\n\t" else _escape(char) for char in text])
    text = re.sub(_HIDDEN, _escaped, text)
    if text.isascii():
        return text
    mark = _MARK_OR_JAMO if re.search(_JAMO, text) else _MAYBE_MARK
    # A mark at the start would be drawn onto the text before it on the screen, which is not part of `text`.
    text = re.sub(f"{_AT_A_START}{mark}", _stray, text)
    return re.sub(f"{mark}{{{MOST_MARKS + 1},}}", _pile, text)


def visible_prose(text: str) -> str:
    """Return `visible(text)` without presentation selectors and joiners of emoji. For text that is only read.

    Without a selector after a picture and a joiner between two, pictures are drawn one by one, in the width that every
    terminal assumes. Commands, names, diffs and output must use `visible`, since different texts must look different there.
    """
    if text.isascii() or not ("\u200d" in text or "\ufe0f" in text or "\ufe0e" in text):
        return visible(text)
    return visible(re.sub(_SELECTORS, "", text))


def one_line(text: str) -> str:
    """Return `visible(text)` on one line of any length, with newlines and tabs as escapes."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def visible_line(text: str, width: int = 200) -> str:
    """Return `visible(text)` on one line, with newlines and tabs as escapes, cut to `width` characters.

    After a cut, `...` and the number of missing characters are appended. A rest of at most that length stays.
    """
    line = one_line(text)
    if len(line) <= width:
        return line
    more = f"...(+{len(line) - width} characters)"
    return line if len(line) <= width + len(more) else line[:width] + more


def visible_names(names: Sequence[str], limit: int) -> str:
    """Return names, each by `visible_line`, between commas: at most `limit`, and the number of the others."""
    listing = ", ".join(visible_line(name) for name in names[:limit])
    return listing if len(names) <= limit else f"{listing} and {len(names) - limit} more"


def suspicious(text: str) -> tuple[str, ...]:
    """Return warnings about deceptive characters in a command, one sentence each. Usually empty.

    They cover letters of several scripts in one word; words of letters that only look Latin; characters that are
    equivalent to ASCII or look like a slash, dot or bar; options with another dash; unusual blanks; invisible, reordering
    and control characters. Each warning names the word and its characters, and is safe to show. Unicode's UTS #39 is
    followed only in part, so a command without warnings may still deceive.
    """
    if text.isascii() and (text.isprintable() or not re.search("[\\x00-\\x08\\x0b-\\x1f\\x7f]", text)):
        return ()
    from harness.text.look_alikes import findings  # and with it Unicode's data

    return tuple(visible_line(finding, 400) for finding in findings(text, _HIDDEN))


def _escape(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _escaped(match: re.Match[str]) -> str:
    return _escape(match.group())


def _stray(match: re.Match[str]) -> str:
    return match.group() if _mark(match.group()) is _Mark.NONE else _escape(match.group())


def _pile(match: re.Match[str]) -> str:
    """Return the characters with surplus marks escaped. A character that is not a mark is a new base."""
    kinds = {char: _mark(char) for char in set(match.group())}
    if all(kind is _Mark.NONE for kind in kinds.values()):
        return match.group()
    pieces = []
    marks = nonspacing = 0
    for char in match.group():
        kind = kinds[char]
        if kind is _Mark.NONE:
            marks = nonspacing = 0
        else:
            marks += 1
            nonspacing += kind is _Mark.ON_ITS_BASE
        too_many = marks > _MOST_SPACING_MARKS or (nonspacing > MOST_MARKS and kind is _Mark.ON_ITS_BASE)
        pieces.append(_escape(char) if too_many else char)
    return "".join(pieces)


def _mark(char: str) -> _Mark:
    from unicodedata import category

    if "\u1160" <= char <= "\u11ff" or "\ud7b0" <= char <= "\ud7fb":
        return _Mark.ON_ITS_BASE
    kind = category(char)
    return _Mark.NONE if kind[0] != "M" else _Mark.BESIDE_IT if kind == "Mc" else _Mark.ON_ITS_BASE


def without_middle(text: str, max_characters: int) -> str:
    """Return `text`, or, if it is longer than `max_characters`, its beginning and end with a note of the number left out."""
    if len(text) <= max_characters:
        return text
    side = max_characters // 2
    return f"{text[:side]}\n[... {len(text) - 2 * side} characters left out ...]\n{text[-side:]}"
