"""Rows of a terminal: text made safe to show and wrapped to a width, so that no row can pass for another.

INVARIANT: every row begins with its gutter, which is ours. Text of a call follows it, also in wrapped rows: no text
can begin a row of its own.
"""

from __future__ import annotations

import unicodedata  # UAX #11; not wcwidth, whose tables take 30 ms to load
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

from harness.record import Record
from harness.regex import regex
from harness.terminal.styles import UNICODE, Fill, Ink, Palette, Tone
from harness.text.visible import one_line, visible

_EMOJI_STYLE = "\ufe0f"
_JOINER = "\u200d"
_EMOJI_SIGNS = frozenset((_EMOJI_STYLE, _JOINER, *map(chr, range(0x1F3FB, 0x1F400))))
"""Characters that belong to the emoji before them: its style, the joiner, skin tones."""
_BECAME_WIDE = (
    (0x2630, 0x2637), (0x268A, 0x268F), (0x4DC0, 0x4DFF), (0x1D300, 0x1D356), (0x1D360, 0x1D376), (0x1F1E6, 0x1F1FF),
)  # fmt: skip
"""Ranges (first, last) of characters that terminals draw in two cells, but that are narrow in older Unicode data.

Sources: EastAsianWidth.txt of Unicode 16, and the regional indicators (flags), which are drawn like emoji. They always
count as wide: too many cells only leave blanks, but too few would let a row reach column 1 of the next.
"""


class _Widths(dict[str, int]):
    """Number of cells by character, computed at the first lookup."""

    def __missing__(self, character: str) -> int:
        if character == _EMOJI_STYLE:
            cells = 1  # on some terminals it widens the character before it, and too few cells must never be counted
        elif unicodedata.category(character) in ("Mn", "Me"):
            cells = 0
        else:
            wide = unicodedata.east_asian_width(character) in "WF"
            cells = 2 if wide or any(first <= ord(character) <= last for first, last in _BECAME_WIDE) else 1
        self[character] = cells
        return cells


_widths = _Widths((chr(code), 1) for code in range(0x20, 0x7F))


def cells(text: str) -> int:
    """Return the number of cells of a line without control characters.

    Wide characters have two cells, and combining ones none.
    """
    if text.isascii():
        return len(text)
    return sum(map(_widths.__getitem__, text))


_BEGIN_NO_LINE = frozenset("\u3005\u30fc\u30c3\u30e3\u30e5\u30e7\u3063\u3083\u3085\u3087")
"""Japanese characters that must not begin a line, besides closing signs (JIS X 4051): repetition, length, small
letters.
"""


def _filled(text: str, at: int, room: int) -> int:
    """Return the end index of a line of `room` cells that begins at `at`; it has at least one character."""
    first = text[at : at + max(room, 1) + 1]  # with one character more, which may be a mark on the last one
    if first.isascii() and first.isprintable():
        return min(len(text), at + max(room, 1))
    used = 0
    for place in range(at, len(text)):
        used += _widths[text[place]]
        if used > room and place > at:
            starts = (start for start in range(place, at, -1) if not _is_within_emoji(text, start, at))
            return next(starts, place)
    return len(text)


def _is_within_emoji(text: str, place: int, first: int) -> bool:
    """Return whether a position is within one emoji of several characters. `first` is the start of its line."""
    before, after = text[place - 1], text[place]
    if _is_flag_letter(after):
        letters = takewhile(_is_flag_letter, (text[index] for index in range(place - 1, first - 1, -1)))
        return sum(1 for _ in letters) % 2 == 1
    return after in _EMOJI_SIGNS or before == _JOINER


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def cut(text: str, room: int) -> tuple[str, str]:
    """Return the beginning of `text` that fits into `room` cells (at least one character), and the rest."""
    at = _filled(text, 0, room)
    return text[:at], text[at:]


def pieces(text: str, room: int) -> Iterator[str]:
    """Yield `text` in pieces of at most `room` cells. Joined, they are the text. An empty text yields one empty piece.

    A piece ends after a blank in its second half, else at a word's end in its last third, else at the full width.
    """
    at = 0
    while (end := _filled(text, at, room)) < len(text):
        blank = text.rfind(" ", at + (end - at) // 2, end) if text[end] != " " else -1
        if blank >= 0:
            end = blank + 1
        else:
            ends = (place for place in range(end, end - (end - at) // 3, -1) if not _is_within_word(text, place))
            end = next(ends, end)
        yield text[at:end]
        at = end
    yield text[at:]


def _is_within_word(text: str, place: int) -> bool:
    """Return whether a position is within a word: between letters, digits or underscores, or before a combining mark."""
    beside = text[place - 1 : place + 1]
    return not _widths[text[place]] or all(char.isalnum() or char == "_" or not _widths[char] for char in beside)


def fitted(text: str, room: int, more: str = "...") -> str:
    """Return one line of at most `room` cells: `text`, or its beginning followed by `more`."""
    if cells(text) <= room:
        return text
    return cut(text, room - len(more))[0] + more if room > len(more) else cut(text, room)[0][: max(room, 0)]


def ending(text: str, room: int) -> str:
    """Return one line of at most `room` cells: `text`, or dots followed by its end."""
    more = "..."
    text = text if len(text) <= 2 * room + 8 else f"{more}{text[-2 * room - 8 :]}"
    if cells(text) <= room:
        return text
    room -= len(more)
    if room <= 0:
        return ""
    used = 0
    for place in range(len(text) - 1, -1, -1):
        used += _widths[text[place]]
        if used > room:
            return more + text[place + 1 :]
    return text


def wrapped(text: str, room: int, later: int | None = None) -> list[str]:
    """Wrap one line between words into lines of at most `room` cells, and at most `later` cells after the first.

    A word that is too long for a line is broken at the full width.
    """
    return [text[at:end] for at, end in breaks(text, room, room if later is None else later)]


def breaks(text: str, room: int, later: int) -> list[tuple[int, int]]:
    """Return the start and end index of each line of a wrapped text. Blanks between two lines belong to neither.

    INVARIANT: the end of a line depends only on the text before it, and on the first word or wide character after it.
    """
    spans, at = [], 0
    while (full := _filled(text, at, room)) < len(text):
        end = _place_to_break(text, at, full)
        row = text[at:end].rstrip(" ")
        spans.append((at, at + len(row) if row else end))
        at = end
        while row and at < len(text) and text[at] == " ":
            at += 1
        room = later
    if at < len(text) or not spans:
        spans.append((at, len(text)))
    return spans


def _place_to_break(text: str, first: int, full: int) -> int:
    """Return the last index up to `full` at which a line from `first` may end; `full` if there is none."""
    if text.isascii():
        blank = text.rfind(" ", first, full + 1)
        return blank if blank > first and not text[first:blank].isspace() else full
    places = (
        place
        for place in range(full, first, -1)
        if _may_break(text[place - 1], text[place]) and not _is_within_emoji(text, place, first)
    )
    return next((place for place in places if not text[first:place].isspace()), full)


def _may_break(before: str, after: str) -> bool:
    """Return whether a line may end between two characters.

    It may end at a blank, and next to a wide character, but not between that and a sign or mark that belongs to it.
    """
    if after == " ":
        return True
    if before == " " or 2 not in (_widths[before], _widths[after]) or after in _BEGIN_NO_LINE:
        return False

    return unicodedata.category(after) not in ("Pe", "Pf", "Po", "Mn", "Me", "Mc") and (
        unicodedata.category(before) not in ("Ps", "Pi")
    )


WRAPPED = UNICODE.broken
"""Sign before the rest of a long line: the last two characters of its gutter."""
TAB = 8
LEAST = 4
"""Minimum columns for the text, even on a very narrow terminal."""


class Tint(NamedTuple):
    """A part of a row's text that has a colour of its own."""

    start: int
    end: int
    ink: Ink | Tone


class Row(Record):
    """One row, not wider than the terminal for which it was made."""

    text: str
    tone: Tone = Tone.PLAIN
    tints: tuple[Tint, ...] = ()
    """Coloured parts, in order. If two overlap, both colours apply."""
    fill: Fill | None = None


def rows_of(
    text: str, width: int, *, gutter: str = "  ", tone: Tone = Tone.PLAIN, next_gutter: str = ""
) -> Iterator[Row]:
    """Yield the rows of `text` (hostile, with any number of lines) for a terminal of `width` columns (at least 10).

    The first line begins with `gutter`, further ones with `next_gutter` (default: `gutter`), and wrapped parts with
    WRAPPED. The text is never cut. Only LF ends a line, as in the shell and in files; other line ends are shown as
    escapes.
    """
    for number, line in enumerate(text.split("\n")):
        yield from line_rows(safe_line(line), width, gutter=next_gutter or gutter if number else gutter, tone=tone)


def safe_line(line: str) -> str:
    """Return a line (hostile) in a form that is safe to show. Lexing, comparing and wrapping use this form only."""
    return visible(line).expandtabs(TAB)


def line_rows(
    line: str,
    width: int,
    *,
    gutter: str,
    tone: Tone = Tone.PLAIN,
    later: str = "",
    tints: Sequence[Tint] = (),
    fill: Fill | None = None,
) -> Iterator[Row]:
    """Yield the rows of one line from `safe_line`. `tints` are positions in it.

    The first row begins with `gutter`, and the others with `later`, which has the same width (default: with WRAPPED).
    """
    later = later or hanging(gutter)
    at = 0
    for index, piece in enumerate(pieces(line, max(width - len(later), LEAST))):
        start = later if index else gutter
        yield Row(text=start + piece, tone=tone, tints=_within(tints, at, at + len(piece), len(start) - at), fill=fill)
        at += len(piece)


def _within(tints: Sequence[Tint], first: int, last: int, moved: int) -> tuple[Tint, ...]:
    """Return the tints within `first` to `last`, with positions shifted by `moved`."""
    return tuple(
        Tint(max(start, first) + moved, min(end, last) + moved, ink)
        for start, end, ink in tints
        if start < last and end > first
    )


def hanging(gutter: str) -> str:
    """Return the gutter for the rest of a line that began with `gutter`. Its first two columns are always blank."""
    return " " * max(len(gutter) - len(WRAPPED), 2) + WRAPPED


def prose(text: str, width: int, *, tone: Tone = Tone.PLAIN, gutter: str = "  ") -> Iterator[Row]:
    """Yield the rows of a sentence, wrapped between words."""
    room = max(width - len(hanging(gutter)), LEAST)
    for index, line in enumerate(wrapped(one_line(text), room)):
        yield Row(text=(" " * len(hanging(gutter)) if index else gutter) + line, tone=tone)


def joined(groups: Iterable[Iterable[Row]]) -> tuple[Row, ...]:
    """Return the rows of all groups, in order."""
    return tuple(row for group in groups for row in group)


HANGING = "    "
"""Indentation of the rest of a long line, so that long text from elsewhere cannot reach column 1."""

_ENDS_SGR = "\x1b[0m"
_TO_THE_END = "\x1b[K"
"""Sequence that colours the rest of a row without blanks, so that copied text has none (EL, ECMA-48 8.3.41)."""
_SGRS = regex(r"\x1b\[[0-9;]*+[mK]")
_NARROW = "   "
"""Indentation on a very narrow terminal."""


def toned(text: str, tone: Tone, palette: Palette | None) -> str:
    """Return text in the colour of its tone; unchanged without a palette."""
    code = palette.tones[tone] if palette and text else ""
    return f"\x1b[{code}m{text}{_ENDS_SGR}" if code else text


def drawn(row: Row, palette: Palette | None, *, margin: int = 2, to_the_end: bool = True) -> str:
    """Return a row in its colours. Its text is shown unchanged, whatever its tints.

    Its fill begins after `margin` columns and, with `to_the_end`, extends to the end of the terminal's line.
    """
    if palette is None:
        return row.text.rstrip()
    base = palette.tones[row.tone] if row.fill is None else palette.fills[row.fill]
    tints = row.tints
    if not palette.fills_background and row.fill in (Fill.ADDED, Fill.REMOVED):
        tints = tuple(tint for tint in tints if tint.ink in (Ink.ADDED, Ink.REMOVED))
    text = row.text
    begin = 0 if row.fill is None else min(margin, len(text))
    places = sorted(
        {begin, len(text), *(at for start, end, _ in tints for at in (start, end) if begin < at < len(text))}
    )
    parts = [text[:begin]]
    for start, end in pairwise(places):
        inks = (tint.ink for tint in tints if tint.start <= start < tint.end)
        codes = ";".join(
            filter(None, (base, *(palette.tones[i] if isinstance(i, Tone) else palette.inks[i] for i in inks)))
        )
        parts.append(f"\x1b[{codes}m{text[start:end]}{_ENDS_SGR}" if codes else text[start:end])
    if row.fill is not None and palette.fills_background and to_the_end:
        parts.append(f"\x1b[{base}m{_TO_THE_END}{_ENDS_SGR}")
    return "".join(parts)


def toned_rows(line: str, tone: Tone, width: int, palette: Palette | None = None) -> list[str]:
    """Wrap one line (safe to show, without line ends) into rows of at most `width` cells.

    If the last row would be very short, such as the `s` of `0.1 s`, it gets a word from the row before.
    """
    rows = wrapped(line.expandtabs(TAB), width, width - len(HANGING))
    if len(rows) > 1 and len(rows[-1]) < len(HANGING):
        before, blank, word = rows[-2].rpartition(" ")
        if before.strip() and blank and cells(word) + 1 + cells(rows[-1]) <= width - len(HANGING):
            rows[-2:] = [before, f"{word} {rows[-1]}"]
    first, *rest = (toned(row, tone, palette) for row in rows)
    return [first, *(f"{HANGING}{row}" for row in rest)]


def without_colours(row: str) -> str:
    """Return a drawn row as plain text."""
    return _SGRS.sub("", row)


def narrowed(rows: Iterable[str], width: int) -> Iterator[str]:
    """Yield rows of at most `width` cells. A row that is too wide is wrapped, and loses its colours.

    No wrapped part begins like the output of a command.
    """
    for row in rows:
        text = without_colours(row)
        if cells(text) <= width:
            yield row
            continue
        first, *rest = wrapped(text, width, width - len(_NARROW))
        yield first
        yield from (f"{_NARROW}{part}" for part in rest)
