"""RedactedStream: a text that comes in pieces, redacted although a secret may be cut in two by them; shows nothing itself.

What could still become part of a secret is held back until the next piece shows whether it does.
"""

from __future__ import annotations

import re

from harness.redaction import Redactor
from harness.redaction.shapes import KEY_BLOCK, Span

MOST_HELD = 8_192
"""Characters held back at most in a run without a blank; of a longer one, the beginning is given out."""
MOST_IN_A_SECRET = 20_000
"""Characters held back at most within a secret whose end has not come: then the mark is given out without it. An RSA key with
16,384 bits takes 13,000."""
CONTEXT = 512
"""Characters given out last, which say what the next ones are: `password = ` and kin."""

# Tokens are written in the visible characters of ASCII: other scripts, which may have no blanks, are never held back.
_RUN = re.compile(r"[!-~]*\Z")
_RUN_CHARACTERS = re.compile(r"[!-~]*")


class RedactedStream:
    """Takes a text piece by piece and gives it out redacted, word by word."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        # What is no single run is held back by comparing its beginning with the end of the text.
        self._blank_forms = tuple(form for form in redactor.forms if not _RUN_CHARACTERS.fullmatch(form))
        self._text = ""
        self._given = 0
        """How much of `_text` was given out; the rest is held back."""

    def feed(self, piece: str) -> str:
        """Take the next piece and return what can be given out."""
        self._text += piece
        settled = self._settled()
        return self._give(settled, last=False) if settled > self._given else ""

    def finish(self) -> str:
        """Return what was held back: no more comes. The next piece begins another text."""
        given = self._give(len(self._text), last=True) if len(self._text) > self._given else ""
        self._text, self._given = "", 0
        return given

    def _settled(self) -> int:
        """Return up to where no word goes on in the next piece, as far as the words alone tell."""
        text = self._text
        run = _RUN.search(text, max(self._given, len(text) - 2 * MOST_HELD))
        settled = run.start() if run else len(text)
        for form in self._blank_forms:
            settled = min(settled, _beginning_of(form, text, self._given))
        if len(text) - settled > MOST_HELD:
            settled = len(text) - CONTEXT
        return settled

    def _give(self, settled: int, *, last: bool) -> str:
        """Return what comes before `settled`, with marks; no secret is given out in part, unless it never seems to end."""
        text = self._text
        pieces: list[str] = []
        for span in self._redactor.spans(text):
            if span.end <= self._given:
                continue
            if span.start >= settled:
                break
            if not last and self._may_go_on(span, settled):
                settled = max(self._given, span.start)
                break
            pieces += [text[self._given : span.start], self._redactor.mark(span)]
            self._given = span.end
        if settled > self._given:
            pieces.append(text[self._given : settled])
            self._given = settled
        forgotten = max(0, self._given - CONTEXT)
        self._text, self._given = text[forgotten:], self._given - forgotten
        # Beside a mark, a second secret may show that the first one hid.
        return self._redactor.redact("".join(pieces)) if pieces else ""

    def _may_go_on(self, span: Span, settled: int) -> bool:
        """Say whether the next piece may be part of this secret: it reaches the end, or is a key that lacks its last line."""
        goes_on = span.end >= settled or (span.rule == KEY_BLOCK and not self._text[span.end : settled].strip())
        return goes_on and len(self._text) - span.start < MOST_IN_A_SECRET


def _beginning_of(form: str, text: str, first: int) -> int:
    """Return where in `text` a beginning of `form` stands that reaches to the end, from `first` on; else the end."""
    place = text.find(form[0], max(first, len(text) - len(form) + 1))
    while place >= 0:
        if form.startswith(text[place:]):
            return place
        place = text.find(form[0], place + 1)
    return len(text)
