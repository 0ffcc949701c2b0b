"""Call ids: one for each call of a reply, and each in the form that a server takes; pure.

INVARIANT: within one conversation different ids stay different, and one id is always sent alike, in the call and in
its result.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from enum import Enum

from harness.messages import ToolCall
from harness.record import replace

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


class IdForm(Enum):
    """Which ids are taken back; the values are patterns of them."""

    CHAT = r"(?s).{1,40}"
    """OpenAI's chat completions (their error `string_above_max_length` for `tool_calls[].id` names the number)."""
    RESPONSES = r"[a-zA-Z0-9_-]{1,64}"
    """The Responses API."""
    NINE = r"[a-zA-Z0-9]{9}"
    """Mistral."""


class WireIds:
    """The ids of one conversation, as they are sent."""

    def __init__(self, form: IdForm) -> None:
        """Say which ids the server takes. A conversation may have begun with another one, whose ids have other rules."""
        self._form = form
        self._sent: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, call_id: str) -> str:
        """Return what is sent for a call's id: the id itself where that will do."""
        if call_id not in self._sent:
            number = 0
            while (sent := self._candidate(call_id, number)) in self._taken:
                number += 1
            self._sent[call_id] = sent
            self._taken.add(sent)
        return self._sent[call_id]

    def _candidate(self, call_id: str, number: int) -> str:
        if not number and re.fullmatch(self._form.value, call_id):
            return call_id
        digest = hashlib.sha256(f"{number} {call_id}".encode(errors="surrogatepass")).hexdigest()
        if self._form is not IdForm.NINE:
            return f"call_{digest[:32]}"
        value, letters = int(digest, 16), []
        for _ in range(9):
            value, letter = divmod(value, len(_LETTERS))
            letters.append(_LETTERS[letter])
        return "".join(letters)


def told_apart(calls: Sequence[ToolCall], taken: AbstractSet[str]) -> tuple[ToolCall, ...]:
    """Return the calls of a reply, each with an id that is neither in `taken` nor another call's."""
    used, told, number = set(taken), [], 0
    for call in calls:
        call_id = call.id
        while not call_id or call_id in used:
            number += 1
            call_id = f"call_{number}"
        used.add(call_id)
        told.append(call if call_id == call.id else replace(call, id=call_id))
    return tuple(told)
