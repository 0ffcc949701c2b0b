"""What the person's own programs (hooks) say of calls and sessions: they may tighten, and never allow.

Who starts them is in harness/checks; the gate and the loop ask by `CallChecks` and `SessionChecks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from harness.actions import Action, ToolUse
from harness.decisions import Decision
from harness.log.vocabulary import CheckEvent
from harness.messages import ToolResult
from harness.policy.rules import Layer, Origin
from harness.policy.verdict import FacetVerdict, Source, Verdict
from harness.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.actions import JsonValue


class CheckAnswer(Record):
    """What one hook answered, or what a hook that failed stands for."""

    event: CheckEvent
    hook: str
    """Its id."""
    decision: Decision = Decision.AUTO
    """AUTO: it has nothing against it. That allows nothing."""
    reason: str = ""
    note: str = ""
    """For the model, with the result of the call."""
    has_failed: bool = False
    """Whether this is no answer of the hook's, but what follows from its having none."""
    ignored: str = ""
    """What it said besides that means nothing here: `allow`."""
    origin: Origin | None = None
    layer: Layer = Layer.USER
    program_sha256: str | None = None
    """Of the program's file; None where there is none to read."""
    duration_ms: int = 0

    @property
    def word(self) -> str:
        """The word for it in the log; that it has nothing against it is no `auto`."""
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
        """Say whether any of them is asked about a call, before it or after."""
        ...

    def before(self, session: str, action: Action, verdict: Verdict, seconds: float | None) -> Sequence[CheckAnswer]:
        """Return what they say of a call that `verdict` lets run, or asks about; they have `seconds` left (None: no limit).

        Raises Interrupted where the person stopped it.
        """
        ...

    def after(self, session: str, action: Action, verdict: Verdict, result: ToolResult) -> Sequence[CheckAnswer]:
        """Return what they say of a call that ran."""
        ...


class SessionChecks(Protocol):
    """Asks the hooks that check sessions, and knows those that check calls."""

    @property
    def calls(self) -> CallChecks:
        """Those that check calls."""
        ...

    def session_starts(self, session: str, about: Mapping[str, JsonValue]) -> Sequence[CheckAnswer]:
        """Return what they say of a session that begins."""
        ...

    def session_ends(self, session: str, stop: str) -> Sequence[CheckAnswer]:
        """Return what they say of a session that ends; nothing of it stops the end."""
        ...

    def answer(self, session: str, text: str, seconds: float | None, *, again: bool) -> Sequence[CheckAnswer]:
        """Return what they say of an answer of the model's, which is not its first where `again` is set. Raises Interrupted."""
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

    def session_starts(self, session: str, about: Mapping[str, JsonValue]) -> Sequence[CheckAnswer]:  # noqa: ARG002
        return ()

    def session_ends(self, session: str, stop: str) -> Sequence[CheckAnswer]:  # noqa: ARG002
        return ()

    def answer(self, session: str, text: str, seconds: float | None, *, again: bool) -> Sequence[CheckAnswer]:  # noqa: ARG002
        return ()


NO_CHECKS: CallChecks = _NoCallChecks()
"""There are no hooks for calls."""
NO_SESSION_CHECKS: SessionChecks = _NoSessionChecks()
"""There are no hooks."""


def strictest_answer(answers: Sequence[CheckAnswer]) -> CheckAnswer | None:
    """Return the first of the strictest answers that say anything against it; None where none does."""
    against = [one for one in answers if one.decision is not Decision.AUTO]
    return max(against, key=lambda one: one.decision, default=None)


def with_notes(content: str, answers: Sequence[CheckAnswer]) -> str:
    """Return what the model reads of a call, with what hooks say to it behind, marked as theirs.

    After a call nothing can be taken back: what they have against it is said to the model.
    """
    said = []
    for one in answers:
        late = one.event is CheckEvent.AFTER_CALL and one.decision is not Decision.AUTO
        if words := "\n".join(filter(None, (one.reason if late else "", one.note))):
            said.append(f"[The hook {one.hook} says of this call: {words}]")
    return "\n\n".join((content, *said))


def tightened(verdict: Verdict, tool: str, answers: Sequence[CheckAnswer]) -> Verdict:
    """Return `verdict` on a call of `tool` with what hooks say against it, behind what the policy says. Pure.

    INVARIANT: the decision is the strictest of all, so that none of them loosens anything.
    """
    said = tuple(
        FacetVerdict(
            facet=ToolUse(tool=tool),
            decision=one.decision,
            source=Source.HOOK,
            reason=one.reason,
            by=one.by,
            layer=one.layer,
            origin=one.origin,
        )
        for one in answers
        if one.decision is not Decision.AUTO
    )
    if not said:
        return verdict
    decision = max(verdict.decision, *(one.decision for one in said))
    return replace(verdict, decision=decision, facets=(*verdict.facets, *said))
