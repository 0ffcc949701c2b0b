"""Answers of the person's own programs (hooks) about calls and sessions: they may tighten, and never allow.

harness/checks starts them; the gate and the loop ask through `CallChecks` and `SessionChecks`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from harness.actions import Action, Decision, JsonValue, ToolUse
from harness.log.vocabulary import CheckEvent
from harness.messages import ToolResult
from harness.policy.rules import Layer, Origin
from harness.policy.verdict import FacetVerdict, Source, Verdict
from harness.record import Record, replace


class CheckAnswer(Record):
    """The answer of one hook, or the effect of its failure."""

    event: CheckEvent
    hook: str
    """The hook's id."""
    decision: Decision = Decision.AUTO
    """AUTO: it has nothing against it. That allows nothing."""
    reason: str = ""
    note: str = ""
    """For the model, with the result of the call."""
    has_failed: bool = False
    """Whether the hook gave no answer, so that this is the effect of its failure."""
    ignored: str = ""
    """An additional word without effect: `allow`."""
    origin: Origin | None = None
    layer: Layer = Layer.USER
    program_sha256: str | None = None
    """Digest of the program's file. `None` if it cannot be read."""
    duration_ms: int = 0

    @property
    def word(self) -> str:
        """The word in the log. An answer without an objection is not `auto`."""
        return "nothing" if self.decision is Decision.AUTO else self.decision.word

    @property
    def by(self) -> str:
        """The hook and its place, as refusals and logs show it."""
        return f"hook {self.hook}" + ("" if self.origin is None else f" ({self.origin})")


class CallChecks(Protocol):
    """Asks the hooks that check calls."""

    @property
    def programs(self) -> Sequence[str]:
        """Absolute paths of their programs, which no call may write."""
        ...

    def asks_about(self, action: Action) -> bool:
        """Return whether any hook checks a call, before it or after."""
        ...

    def before(self, session: str, action: Action, verdict: Verdict, seconds: float | None) -> Sequence[CheckAnswer]:
        """Return the answers about a call that `verdict` lets run, or asks about, within `seconds` (`None`: no
        limit).

        Raises Interrupted if the person stopped it.
        """
        ...

    def after(self, session: str, action: Action, verdict: Verdict, result: ToolResult) -> Sequence[CheckAnswer]:
        """Return the answers about a call that ran."""
        ...


class SessionChecks(Protocol):
    """Asks the hooks that check sessions, and knows those that check calls."""

    @property
    def calls(self) -> CallChecks:
        """Those that check calls."""
        ...

    def session_starts(self, session: str, fields: Mapping[str, JsonValue]) -> Sequence[CheckAnswer]:
        """Return the answers about a session that begins."""
        ...

    def session_ends(self, session: str, stop: str) -> Sequence[CheckAnswer]:
        """Return the answers about a session that ends, none of which stops the end."""
        ...

    def answer(self, session: str, text: str, seconds: float | None, *, again: bool) -> Sequence[CheckAnswer]:
        """Return the answers about an answer of the model; `again` is set if it is not its first. Raises Interrupted."""
        ...


class _NoCallChecks:
    programs: Sequence[str] = ()

    def asks_about(self, action: Action) -> bool:  # noqa: ARG002
        return False

    def before(self, session: str, action: Action, verdict: Verdict, seconds: float | None) -> Sequence[CheckAnswer]:  # noqa: ARG002
        return ()

    def after(self, session: str, action: Action, verdict: Verdict, result: ToolResult) -> Sequence[CheckAnswer]:  # noqa: ARG002
        return ()


class _NoSessionChecks:
    calls: CallChecks = _NoCallChecks()

    def session_starts(self, session: str, fields: Mapping[str, JsonValue]) -> Sequence[CheckAnswer]:  # noqa: ARG002
        return ()

    def session_ends(self, session: str, stop: str) -> Sequence[CheckAnswer]:  # noqa: ARG002
        return ()

    def answer(self, session: str, text: str, seconds: float | None, *, again: bool) -> Sequence[CheckAnswer]:  # noqa: ARG002
        return ()


NO_CHECKS: CallChecks = _NoCallChecks()
"""Checks without hooks for calls."""
NO_SESSION_CHECKS: SessionChecks = _NoSessionChecks()
"""Checks without hooks."""


def strictest_answer(answers: Sequence[CheckAnswer]) -> CheckAnswer | None:
    """Return the first of the strictest answers that say anything against it; None where none does."""
    against = [answer for answer in answers if answer.decision is not Decision.AUTO]
    return max(against, key=lambda answer: answer.decision, default=None)


def with_notes(content: str, answers: Sequence[CheckAnswer]) -> str:
    """Return the model's text of a call, followed by the marked words of hooks.

    A call that ran cannot be taken back: the hooks' objections are shown to the model.
    """
    notes = []
    for answer in answers:
        late = answer.event is CheckEvent.AFTER_CALL and answer.decision is not Decision.AUTO
        if words := "\n".join(filter(None, (answer.reason if late else "", answer.note))):
            notes.append(f"[The hook {answer.hook} says of this call: {words}]")
    return "\n\n".join((content, *notes))


def tightened(verdict: Verdict, tool: str, answers: Sequence[CheckAnswer]) -> Verdict:
    """Return `verdict` on a call of `tool` with what hooks say against it, behind what the policy says. Pure.

    INVARIANT: the decision is the strictest of all, so that none of them loosens anything.
    """
    hook_verdicts = tuple(
        FacetVerdict(
            facet=ToolUse(tool=tool),
            decision=answer.decision,
            source=Source.HOOK,
            reason=answer.reason,
            by=answer.by,
            layer=answer.layer,
            origin=answer.origin,
        )
        for answer in answers
        if answer.decision is not Decision.AUTO
    )
    if not hook_verdicts:
        return verdict
    decision = max(verdict.decision, *(answer.decision for answer in hook_verdicts))
    return replace(verdict, decision=decision, facets=(*verdict.facets, *hook_verdicts))
