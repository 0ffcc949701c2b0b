"""Beginnings: where the end of a text could become a known value if more came, also over the ends of lines; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.redaction.forms import LINE_ENDS

_SURE = 8
"""Characters of a beginning by which its form is looked up; no form is shorter."""
_HALF_A_LINE_END = re.compile(r"(?:\r|\\r\\|\\r|\\)\Z")


class Beginnings:
    """The beginnings of some texts."""

    def __init__(self, forms: Iterable[str]) -> None:
        self._longest = 0
        self._short: set[str] = set()
        self._forms: dict[str, list[str]] = {}
        for form in forms:
            self._longest = max(self._longest, len(form))
            self._short.update(form[:length] for length in range(1, _SURE))
            self._forms.setdefault(form[:_SURE], []).append(form)

    def first_in(self, text: str, first: int = 0) -> int:
        """Return where in `text` a beginning of a form stands that reaches to the end, from `first` on; else the end."""
        if not self._forms:
            return len(text)
        sure = len(text) - _SURE + 1
        for place in range(max(first, len(text) - self._longest + 1), len(text)):
            if place >= sure:
                if text[place:] in self._short:
                    return place
            elif any(form.startswith(text[place:]) for form in self._forms.get(text[place : place + _SURE], ())):
                return place
        return len(text)

    def first_wrapped_in(self, text: str, first: int) -> int:
        """Return the same of a form that goes over the ends of lines, half a line's end at the end of `text` included."""
        held = text[first:]
        if "\n" not in held and "\\n" not in held and not _HALF_A_LINE_END.search(held[-3:]):
            return len(text)
        if not held or held.isspace():
            return len(text)
        return min(first + self._wrapped_in(held, line_end) for line_end in LINE_ENDS)

    def _wrapped_in(self, held: str, line_end: str) -> int:
        # A beginning that reaches to the end lies in the last characters; of a long text these alone are made flat.
        cut = max(0, len(held) - 4 * self._longest - 64)
        flat, places = _flat(held[cut:], line_end)
        if cut and len(flat) < self._longest + 8:  # little but line ends
            cut, (flat, places) = 0, _flat(held, line_end)
        half = _HALF_A_LINE_END.search(flat)
        starts = [self.first_in(flat), self.first_in(flat[: half.start()]) if half else len(flat)]
        if half and starts[1] >= half.start():
            starts[1] = len(flat)
        start = min(starts)
        return cut + places[start] if start < len(flat) else len(held)


def _flat(text: str, line_end: str) -> tuple[str, list[int]]:
    """Return a text without its line ends, read as `line_end` says, and where each of its characters stands."""
    places: list[int] = []
    pieces: list[str] = []
    end = 0
    for found in re.finditer(line_end, text):
        pieces.append(text[end : found.start()])
        places += range(end, found.start())
        end = found.end()
    pieces.append(text[end:])
    places += range(end, len(text))
    return "".join(pieces), places
