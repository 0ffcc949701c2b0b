"""Redact a text that arrives in pieces, even if a secret is split between pieces.

Text that may be part of an unfinished secret is held back until later pieces decide. The complete output equals the
redaction of the whole text. INVARIANT: the work is linear in the length of the text. The text held back is not searched
again for each piece, but only when a word ends or when enough text was added.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.redaction.encoded import may_hold_encoded
from harness.redaction.known_values import LINE_ENDS, MIN_SECRET_CHARACTERS, MIN_WRAPPED_CHARACTERS
from harness.redaction.marks import Span
from harness.redaction.redactor import Redactor
from harness.redaction.shapes import END, KEY_BLOCK, open_block, shapes_for
from harness.regex import regex

_SURE = 8
"""Number of leading characters by which a form is looked up. No form is shorter."""
_HALF_A_LINE_END = regex(r"(?:\r|\\r\\|\\r|\\)\Z")


class Beginnings:
    """The prefixes of a set of texts (forms)."""

    def __init__(self, forms: Iterable[str]) -> None:
        self._longest = 0
        self._short: set[str] = set()
        self._forms: dict[str, list[str]] = {}
        for form in forms:
            self._longest = max(self._longest, len(form))
            self._short.update(form[:length] for length in range(1, _SURE))
            self._forms.setdefault(form[:_SURE], []).append(form)

    def first_in(self, text: str, first: int = 0) -> int:
        """Return the first position from `first` on where a prefix of a form extends to the end of `text`.

        Without one, return the length of `text`.
        """
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
        """Return the same as `first_in`, for forms that continue over line ends.

        The end of `text` may be an incomplete line end.
        """
        tail = text[first:]
        if "\n" not in tail and "\\n" not in tail and not _HALF_A_LINE_END.search(tail[-3:]):
            return len(text)
        if not tail or tail.isspace():
            return len(text)
        return min(first + self._wrapped_in(tail, line_end) for line_end in LINE_ENDS)

    def _wrapped_in(self, tail: str, line_end: str) -> int:
        # A prefix that extends to the end is within the last characters. Flatten only those of a long text.
        cut = max(0, len(tail) - 4 * self._longest - 64)
        flat, places = _flat(tail[cut:], line_end)
        if cut and len(flat) < self._longest + 8:  # the end of the text is mostly line ends
            cut, (flat, places) = 0, _flat(tail, line_end)
        partial_end = _HALF_A_LINE_END.search(flat)
        starts = [self.first_in(flat), self.first_in(flat[: partial_end.start()]) if partial_end else len(flat)]
        if partial_end and starts[1] >= partial_end.start():
            starts[1] = len(flat)
        start = min(starts)
        return cut + places[start] if start < len(flat) else len(tail)


def _flat(text: str, line_end: str) -> tuple[str, list[int]]:
    """Return a text without the matches of `line_end`, and the original position of each character."""
    places: list[int] = []
    pieces: list[str] = []
    end = 0
    for line_break in re.finditer(line_end, text):
        pieces.append(text[end : line_break.start()])
        places += range(end, line_break.start())
        end = line_break.end()
    pieces.append(text[end:])
    places += range(end, len(text))
    return "".join(pieces), places


_MOST_HELD = 8_192
"""Maximum length of a secret without blanks that is certainly found, in characters.

At most twice as many characters of a word are held back.
"""
_MOST_IN_A_SECRET = 65_536
"""Maximum number of characters held back in a key whose end has not arrived. Then its mark is returned without the end.

An RSA key of 16,384 bits takes 13,000.
"""
_PACE = 32
"""Minimum number of characters between two searches after words like `key`. Each such search reads all of CONTEXT."""
CONTEXT = 512
"""Number of characters already returned that are kept. They may show that the next ones are a secret: `password = `."""

# Tokens consist of visible ASCII characters. Text in other scripts, which may lack blanks, is held back only where it
# could be a password.
_VISIBLE = "".join(map(chr, range(0x21, 0x7F)))
_RUN_CHARACTERS = regex(r"[!-~]*")
_PASSWORD_BEFORE = regex(r"""(?i:[=:>]\s{0,8}\\{0,4}["']|:\\?/|password\s{1,8}\Z|password\s{1,8}\S)""")
_LONGEST_WORD = 24
"""Upper bound of the length of the words of shapes, in characters."""


class RedactedStream:
    """Redactor for a text that arrives in pieces. It returns the redacted text word by word."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        # Forms with blanks are held back if a prefix of one is at the end of the text.
        self._blank_forms = Beginnings(form for form in redactor.forms if not _RUN_CHARACTERS.fullmatch(form))
        self._long_forms = Beginnings(form for form in redactor.forms if len(form) >= MIN_WRAPPED_CHARACTERS)
        self._begin()

    def _begin(self) -> None:
        self._text = ""
        self._new: list[str] = []
        """Pieces that are not yet part of `_text`."""
        self._length = 0
        self._position = 0
        """Number of characters of `_text` that were returned. The rest is held back."""
        self._run = 0
        """Start of the last word, which may continue."""
        self._tried = 0
        """End of the text that was searched last. The next search waits until a word ends after it."""
        self._wait = 0
        """Length of the text at which a key in it is checked again."""
        self._alert = 0
        """Position up to which returned text may show that the next text is a secret."""

    def feed(self, piece: str) -> str:
        """Add the next piece. Return the redacted text that need not be held back any more."""
        self._new.append(piece)
        self._length += len(piece)
        visible_end = len(piece.rstrip(_VISIBLE))
        if visible_end:
            self._run = self._length - len(piece) + visible_end
        if self._length - self._run > 2 * _MOST_HELD:
            self._run = self._length - _MOST_HELD
        if self._run <= self._tried or (self._length < self._wait and not self._may_end_a_key()):
            return ""
        if self._tried < self._alert and self._run - self._tried < _PACE:
            return ""
        return self._look(last=False)

    def finish(self) -> str:
        """End the text, and return the rest of it, redacted. The next piece begins a new text."""
        output = self._look(last=True) if self._length > self._position else ""
        self._begin()
        return output

    def _may_end_a_key(self) -> bool:
        return "-" in self._new[-1] and END in "".join(self._new[-2 * len(END) :])

    def _look(self, *, last: bool) -> str:
        self._text = "".join((self._text, *self._new))
        self._new.clear()
        self._tried = self._run
        settled = self._length if last else self._settled()
        output = self._give(settled, last=last) if settled > self._position else ""
        forgotten = max(0, self._position - CONTEXT)
        if forgotten > CONTEXT:  # avoids a copy for every word
            self._text = self._text[forgotten:]
            self._length -= forgotten
            self._position -= forgotten
            self._run -= forgotten
            self._tried -= forgotten
            self._wait -= forgotten
            self._alert -= forgotten
        return output

    def _settled(self) -> int:
        """Return the position before which no word or form can continue in the next piece."""
        text, run = self._text, self._run
        settled = run
        begins = min(
            self._blank_forms.first_in(text, self._position), self._long_forms.first_wrapped_in(text, self._position)
        )
        if begins < settled:
            settled = max(self._position, _word_before(text, begins))
        if settled > self._position and not text[settled - 1].isspace() and not text[settled - 1].isascii():
            settled = max(self._position, self._password_place(settled))
        return settled if len(text) - settled <= 2 * _MOST_HELD else max(settled, run)

    def _password_place(self, settled: int) -> int:
        """Return the start of a possible password with characters outside ASCII, or `settled`."""
        word = settled - len(self._text[:settled].rsplit(None, 1)[-1])
        before = self._text[max(0, word - 24) : settled]
        if not ("'" in before or '"' in before or ":" in before or "ord" in before.lower()):
            return settled
        return word if _PASSWORD_BEFORE.search(self._text, max(0, word - 24), settled) else settled

    def _give(self, settled: int, *, last: bool) -> str:
        """Return the text before `settled` with marks. A secret is never returned in part, unless it is longer than the
        limits above.
        """
        text = self._text
        self._wait = 0
        if not self._may_hold_a_secret():
            output = text[self._position : settled]
            self._position = settled
            return output
        if not last:
            settled = self._before_a_key(settled)
        pieces: list[str] = []
        marked = False
        for span in self._redactor.spans(text):
            if span.end <= self._position:
                continue
            if span.start >= settled:
                break
            if not last and self._may_go_on(span, settled):
                settled = max(self._position, _word_before(text, span.start))
                break
            pieces += [text[self._position : span.start], self._redactor.mark(span)]
            self._position, marked = span.end, True
        if settled > self._position:
            pieces.append(text[self._position : settled])
            self._position = settled
        # A mark may reveal a second secret next to it, which the first one hid.
        return self._redactor.redact("".join(pieces)) if marked else "".join(pieces)

    def _may_hold_a_secret(self) -> bool:
        """Return whether the text held back may contain a secret, by itself or in the context of the returned text."""
        tail = self._text[max(0, self._position - _LONGEST_WORD) :]
        words = shapes_for(tail)
        if words:
            longest = max(map(len, tail.split()), default=0)
            if any(shape.shortest <= longest for shape in words):
                self._alert = self._length + CONTEXT
        if self._position < self._alert or may_hold_encoded(tail):
            return True
        return self._length - self._position >= MIN_SECRET_CHARACTERS and self._redactor.knows(
            self._text[self._position :]
        )

    def _before_a_key(self, settled: int) -> int:
        """Return the start of a key that may continue, or `settled`.

        The key is checked again after a quarter more text.
        """
        begin = open_block(self._text, self._run)
        if begin is None or begin >= settled or len(self._text) - begin >= _MOST_IN_A_SECRET:
            return settled
        self._wait = self._length + max(CONTEXT // 4, (self._length - begin) // 4)
        return max(self._position, begin)

    def _may_go_on(self, span: Span, settled: int) -> bool:
        """Return whether the secret may continue in the next piece: it extends to the end, or is a key without a last
        line.
        """
        goes_on = span.end >= settled or (span.rule == KEY_BLOCK and not self._text[span.end : settled].strip())
        return goes_on and len(self._text) - span.start < _MOST_IN_A_SECRET


def _word_before(text: str, place: int) -> int:
    """Return the start of the word that ends at `place`. Parts of words are not searched."""
    return len(text[:place].rstrip(_VISIBLE))
