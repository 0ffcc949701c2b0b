"""The calls that were refused: who refused, why, and what was advised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from harness.actions import JsonValue
from harness.audit.calls import Fate, LoggedCall, Who, about_call, about_decision, edited_to, text
from harness.record import Record

_DETOURS = (" Do not retry this call, and do not seek the same effect another way.", " The run stops here.")


class Refuser(Enum):
    """Who refused."""

    POLICY = "policy"
    """A rule, a default, or what is built in: `decided_by` says which."""
    PERSON = "person"
    SCRIPT = "script"
    """Answers that were prepared."""
    NOBODY = "nobody"
    """A person's yes was needed, and nobody was there."""
    EDIT = "edit"
    """A person changed the call, and the changed one was judged in its place."""
    TOOL = "tool"
    """Nobody: the call was invalid."""
    UNSAID = "unsaid"
    """The log does not say."""


_REFUSERS = {
    Who.PERSON: Refuser.PERSON,
    Who.SCRIPT: Refuser.SCRIPT,
    Who.NOBODY: Refuser.NOBODY,
    Who.UNSAID: Refuser.UNSAID,
}


class LoggedRefusal(Record):
    """A call that was refused, or that was invalid."""

    call: LoggedCall

    @property
    def refuser(self) -> Refuser:
        """Who refused."""
        call = self.call
        if call.fate is Fate.INVALID:
            return Refuser.TOOL
        match call.answer:
            case "edit":
                return Refuser.EDIT
            case "nobody":
                return Refuser.NOBODY
            case "no" | "stop" | "halt":
                return _REFUSERS[call.answered_by]
            case _:
                return Refuser.POLICY if call.decided in ("deny", "block") else Refuser.UNSAID

    @property
    def words(self) -> str:
        """What the person said to it."""
        return text(self.call.answered, "words")

    @property
    def reason(self) -> str:
        """Why: the policy's reason, or what is wrong with an invalid call."""
        if self.call.fate is Fate.INVALID:
            return text(self.call.outcome, "content")
        return text(self.call.decision, "reason")

    @property
    def hint(self) -> str:
        """What the policy advised. Read out of what the model was told, of which all but this is known."""
        if self.refuser not in (Refuser.POLICY, Refuser.NOBODY):
            return ""
        rest = _after_part(text(self.call.outcome, "content"), self.call)
        return rest.removeprefix(" Hint: ") if rest.startswith(" Hint: ") else ""

    def fields(self) -> dict[str, JsonValue]:
        """Return what is written of it as JSON."""
        answered = self.call.answered
        return {
            "row": "refusal",
            **about_call(self.call),
            **about_decision(self.call),
            "status": text(self.call.outcome, "status"),
            "refused_by": self.refuser.value,
            "reason": self.reason,
            "hint": self.hint or None,
            "answered_by": text(answered, "by") or None,
            "words": self.words,
            "edited_to": edited_to(self.call),
            "told": text(self.call.outcome, "content"),
            "ended_at": text(self.call.outcome, "time"),
        }


class Ends:
    """Calls that did not run, counted by why."""

    def __init__(self) -> None:
        self.refused: dict[Refuser, int] = {}
        self.invalid = 0
        self.never_came = 0
        """Their turn never came: something else ended the run."""

    def fields(self) -> dict[str, JsonValue]:
        """Return what is written of them as JSON: the refused by who refused, and the others."""
        by: dict[str, JsonValue] = {one.value: self.refused.get(one, 0) for one in Refuser if one is not Refuser.TOOL}
        return {"refused": sum(self.refused.values()), "by": by, "invalid": self.invalid, "not_run": self.never_came}


def refusals(calls: Iterable[LoggedCall], ends: Ends, *, invalid: bool) -> Iterator[LoggedRefusal]:
    """Yield the refused calls among these, with `invalid` also those that could not be prepared; count in `ends`."""
    for call in calls:
        refusal = LoggedRefusal(call=call)
        match call.fate:
            case Fate.REFUSED:
                ends.refused[refusal.refuser] = ends.refused.get(refusal.refuser, 0) + 1
                yield refusal
            case Fate.INVALID:
                ends.invalid += 1
                if invalid:
                    yield refusal
            case Fate.NOT_RUN:
                ends.never_came += 1
            case _:
                pass


def _after_part(told: str, call: LoggedCall) -> str:
    """Return what follows `Part: ...` in the text of a refusal (see ruling.refusal_text), without its last sentence.

    The parts are those that the decision names. So a command that spells `Hint:` itself is not taken for the policy.
    """
    for end in _DETOURS:
        told = told.removesuffix(end)
    reason = f"{text(call.decision, 'reason').rstrip('.')}."
    place = told.find(reason)
    if place < 0:
        return ""
    rest = told[place + len(reason) :]
    facets = call.decision.get("facets")
    parts = [text(facet, "facet") for facet in facets if isinstance(facet, dict)] if isinstance(facets, list) else []
    for part in sorted(set(parts), key=len, reverse=True):
        if part and rest.startswith(f" Part: {part}."):
            return rest.removeprefix(f" Part: {part}.")
    return rest
