"""KnownValues: where values that are known to be secret stand in a text, in all their forms, however many; pure.

One look at a text is enough for all of them: its bytes are taken four by four, as numbers, and each form has one number for
each of the four places at which it may begin between them. Only the forms whose number came up are then looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.record import Record
from harness.redaction.forms import (
    MIN_SECRET_CHARACTERS,
    MIN_WRAPPED_CHARACTERS,
    forms_of,
    forms_of_lines,
    is_ordinary,
    unwrapped,
    wrapped_places,
)

_MARKS = frozenset("+-<>0123456789")
_WORD = 4
"""Bytes that are compared as one number."""
_RARE = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ!#$%&*+?@^{}~")


class Known(Record):
    """A form of a known value."""

    form: str
    plain: str
    data: bytes
    """The form in UTF-8."""


class Place(Record):
    """Where a form of a known value stands in a text."""

    start: int
    end: int
    plain: str


class Wrapped(Record):
    """Known values that go over the ends of lines, where a text is read in one of the ways of LINE_ENDS."""

    line_end: str
    known: tuple[Known, ...]


class Candidates(Record):
    """The known values that stand in a text."""

    known: tuple[Known, ...]
    wrapped: tuple[Wrapped, ...]


NOTHING = Candidates(known=(), wrapped=())


class KnownValues:
    """Every form of some secret values.

    INVARIANT: a form has at least 2 * _WORD - 1 bytes, so that, wherever it stands, one of its words lies on the grid.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        """Take the values; what is under MIN_SECRET_CHARACTERS or ordinary is left out."""
        plains = [
            plain for plain in map(str.strip, secrets) if len(plain) >= MIN_SECRET_CHARACTERS and not is_ordinary(plain)
        ]
        forms: dict[str, str] = {}
        for forms_in in (
            forms_of,
            forms_of_lines,
        ):  # what is a value itself has its own mark, also as a line of another
            for plain in plains:
                for form in forms_in(plain):
                    forms.setdefault(form, plain)
        longest_first = sorted(forms.items(), key=lambda item: (-len(item[0]), item[0]))
        self._known = tuple(
            Known(form=form, plain=plain, data=form.encode("utf-8", "surrogatepass")) for form, plain in longest_first
        )
        self._by_word: dict[int, list[int]] = {}
        for index, known in enumerate(self._known):
            for word in set(_words(known.data)):
                self._by_word.setdefault(word, []).append(index)
        self._words = frozenset(self._by_word)

    @property
    def forms(self) -> tuple[str, ...]:
        """Every text that stands for a value, the longest first. They are secret."""
        return tuple(known.form for known in self._known)

    def candidates(self, text: str) -> Candidates:
        """Return which forms stand in `text`."""
        if not self._known:
            return NOTHING
        data = text.encode("utf-8", "surrogatepass")  # faster to search than a text with one wide character
        known = self._in(data)
        wrapped = tuple(
            Wrapped(line_end=line_end, known=over_lines)
            for line_end, flat in unwrapped(data)
            if (over_lines := self._over_lines(flat, data))
        )
        return Candidates(known=known, wrapped=wrapped) if known or wrapped else NOTHING

    def _over_lines(self, flat: bytes, data: bytes) -> tuple[Known, ...]:
        """Return the forms that stand in `flat` and, over the ends of lines, in `data`.

        Where one does oftener in `flat`. Of one that begins like the mark of a line that cannot be told: a whole one behind a
        line end has lost its beginning there.
        """
        return tuple(
            one
            for one in self._in(flat)
            if len(one.form) >= MIN_WRAPPED_CHARACTERS
            and (one.form[0] in _MARKS or flat.count(one.data) > data.count(one.data))
        )

    def _in(self, data: bytes) -> tuple[Known, ...]:
        """Return the forms in `data`, the longest first."""
        met = self._words.intersection(memoryview(data)[: len(data) // _WORD * _WORD].cast("I"))
        if not met:
            return ()
        indexes = sorted({index for word in met for index in self._by_word[word]})
        return tuple(self._known[index] for index in indexes if self._known[index].data in data)


def places(text: str, candidates: Candidates) -> Iterator[Place]:
    """Yield each place in `text` of what `candidates` said of it, or of a text that it is a part of; they may overlap."""
    for known in candidates.known:
        start = text.find(known.form)
        while start >= 0:
            end = start + len(known.form)
            yield Place(start=start, end=end, plain=known.plain)
            start = text.find(known.form, end)
    for wrapped in candidates.wrapped:
        for known in wrapped.known:
            for start, end in wrapped_places(text, known.form, wrapped.line_end):
                yield Place(start=start, end=end, plain=known.plain)


def _words(data: bytes) -> Iterator[int]:
    """Yield a word of `data` for each of the four ways in which it may lie on the grid: the one that is rarest in text."""
    for first in range(_WORD):
        whole = memoryview(data[first : first + (len(data) - first) // _WORD * _WORD])
        starts = range(0, len(whole), _WORD)
        rarest = max(starts, key=lambda start: sum(byte in _RARE for byte in whole[start : start + _WORD]))
        yield whole[rarest : rarest + _WORD].cast("I")[0]
