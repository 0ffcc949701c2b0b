"""Call ids in the form that a server takes; pure.

INVARIANT: within one conversation different ids stay different, and one id is always sent alike, in the call and in
its result.
"""

from __future__ import annotations

import hashlib
import re

MAX_ID_CHARACTERS = 40
"""What OpenAI takes (its error `string_above_max_length` for `tool_calls[].id` names the number)."""

_NINE = re.compile(r"[a-zA-Z0-9]{9}")
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


class WireIds:
    """The ids of one conversation, as they are sent."""

    def __init__(self, *, nine_characters: bool) -> None:
        """Say whether ids must be nine letters and digits, as Mistral wants them."""
        self._nine = nine_characters
        self._sent: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, call_id: str) -> str:
        """Return what is sent for a call's id: the id itself where that will do."""
        if call_id not in self._sent:
            number = 0
            while (sent := self._form(call_id, number)) in self._taken:
                number += 1
            self._sent[call_id] = sent
            self._taken.add(sent)
        return self._sent[call_id]

    def _form(self, call_id: str, number: int) -> str:
        fits = _NINE.fullmatch(call_id) if self._nine else len(call_id) <= MAX_ID_CHARACTERS
        if fits and not number:
            return call_id
        digest = hashlib.sha256(f"{number} {call_id}".encode(errors="surrogatepass")).hexdigest()
        if not self._nine:
            return f"call_{digest[:32]}"
        value, letters = int(digest, 16), []
        for _ in range(9):
            value, letter = divmod(value, len(_LETTERS))
            letters.append(_LETTERS[letter])
        return "".join(letters)
