"""Redact a text that comes in pieces, although a secret may be cut in two by them.

What could still become part of a secret is held back until the next piece shows whether it does: what is given out is, in
the end, what redacting the whole text gives. INVARIANT: the work is linear in the text: what is held back is not gone
through again for each piece, but when a word ends, or when a part of it has been added.
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
"""Characters of a beginning by which its form is looked up; no form is shorter."""
_HALF_A_LINE_END = regex(r"(?:\r|\\r\\|\\r|\\)\Z")


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
        """Return the first place in `text`, from `first` on, at which the beginning of a form reaches to the end;
        else the end.
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
        """Return the same of a form that goes over the ends of lines, half a line's end at the end of `text` included."""
        tail = text[first:]
        if "\n" not in tail and "\\n" not in tail and not _HALF_A_LINE_END.search(tail[-3:]):
            return len(text)
        if not tail or tail.isspace():
            return len(text)
        return min(first + self._wrapped_in(tail, line_end) for line_end in LINE_ENDS)

    def _wrapped_in(self, tail: str, line_end: str) -> int:
        # A beginning that reaches to the end lies in the last characters; of a long text these alone are made flat.
        cut = max(0, len(tail) - 4 * self._longest - 64)
        flat, places = _flat(tail[cut:], line_end)
        if cut and len(flat) < self._longest + 8:  # little but line ends
            cut, (flat, places) = 0, _flat(tail, line_end)
        partial_end = _HALF_A_LINE_END.search(flat)
        starts = [self.first_in(flat), self.first_in(flat[: partial_end.start()]) if partial_end else len(flat)]
        if partial_end and starts[1] >= partial_end.start():
            starts[1] = len(flat)
        start = min(starts)
        return cut + places[start] if start < len(flat) else len(tail)


def _flat(text: str, line_end: str) -> tuple[str, list[int]]:
    """Return a text without its line ends, read as `line_end` says, and the original place of each character."""
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
"""Characters in a secret at most that is found whole within a run without a blank; twice as many are held back at most."""
_MOST_IN_A_SECRET = 65_536
"""Characters held back at most within a key whose end has not come: then the mark is given out without it. An RSA key with
16,384 bits takes 13,000."""
_PACE = 32
"""Characters that are given out together at least after words like `key`, where all of CONTEXT must be gone through."""
CONTEXT = 512
"""Characters given out last, which say what the next ones are: `password = ` and kin."""

# Tokens are written in the visible characters of ASCII: other scripts, which may have no blanks, are held back only where a
# password could stand.
_VISIBLE = "".join(map(chr, range(0x21, 0x7F)))
_RUN_CHARACTERS = regex(r"[!-~]*")
_PASSWORD_BEFORE = regex(r"""(?i:[=:>]\s{0,8}\\{0,4}["']|:\\?/|password\s{1,8}\Z|password\s{1,8}\S)""")
_LONGEST_WORD = 24
"""Characters of the longest word that a shape is known by, and some."""


class RedactedStream:
    """Takes a text piece by piece and gives it out redacted, word by word."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        # What is no single run is held back by comparing its beginning with the end of the text.
        self._blank_forms = Beginnings(form for form in redactor.forms if not _RUN_CHARACTERS.fullmatch(form))
        self._long_forms = Beginnings(form for form in redactor.forms if len(form) >= MIN_WRAPPED_CHARACTERS)
        self._begin()

    def _begin(self) -> None:
        self._text = ""
        self._new: list[str] = []
        """Pieces that are not yet part of `_text`."""
        self._length = 0
        self._position = 0
        """Number of characters of `_text` that were returned; the rest is held back."""
        self._run = 0
        """Start of the last word that may go on."""
        self._tried = 0
        """The end of what was looked at last: before a word ends after it, nothing is new."""
        self._wait = 0
        """Within a key, how long the text must be to be looked at again."""
        self._alert = 0
        """Up to where something that was given out may say what comes next."""

    def feed(self, piece: str) -> str:
        """Take the next piece and return what can be given out."""
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
        """Return the text held back at the end of a stream. The next piece begins another text."""
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
        if forgotten > CONTEXT:  # not for every word
            self._text = self._text[forgotten:]
            self._length -= forgotten
            self._position -= forgotten
            self._run -= forgotten
            self._tried -= forgotten
            self._wait -= forgotten
            self._alert -= forgotten
        return output

    def _settled(self) -> int:
        """Return up to where no word goes on in the next piece, as far as the words alone tell."""
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
        """Return the text before `settled` with marks. A secret is never returned in part, unless it never seems to
        end.
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
        # Beside a mark, a second secret may show that the first one hid.
        return self._redactor.redact("".join(pieces)) if marked else "".join(pieces)

    def _may_hold_a_secret(self) -> bool:
        """Say whether there can be a secret in what is held back, by itself or by what was given out before it."""
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
        """Return the start of a key that may go on, or `settled`. It is checked again after a good part more."""
        begin = open_block(self._text, self._run)
        if begin is None or begin >= settled or len(self._text) - begin >= _MOST_IN_A_SECRET:
            return settled
        self._wait = self._length + max(CONTEXT // 4, (self._length - begin) // 4)
        return max(self._position, begin)

    def _may_go_on(self, span: Span, settled: int) -> bool:
        """Say whether the next piece may be part of this secret: it reaches the end, or is a key that lacks its last line."""
        goes_on = span.end >= settled or (span.rule == KEY_BLOCK and not self._text[span.end : settled].strip())
        return goes_on and len(self._text) - span.start < _MOST_IN_A_SECRET


def _word_before(text: str, place: int) -> int:
    """Return the start of the word that ends at `place`, since parts of words are not searched."""
    return len(text[:place].rstrip(_VISIBLE))
