"""Answers of hooks, the user's own programs, about calls and sessions. Hooks may tighten a verdict, never loosen it.

harness/checks starts the hooks. The gate and the loop use them through `CallChecks` and `SessionChecks`.
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
    """The hook's decision. AUTO means no objection; it does not allow a call that the policy refuses."""
    reason: str = ""
    note: str = ""
    """Text for the model, added to the result of the call."""
    has_failed: bool = False
    """Whether the hook failed to answer. The other fields are then the effect of the failure."""
    ignored: str = ""
    """A word in the answer that has no effect, such as `allow`."""
    origin: Origin | None = None
    layer: Layer = Layer.USER
    program_sha256: str | None = None
    """Digest of the program's file. `None` if it cannot be read."""
    duration_ms: int = 0

    @property
    def word(self) -> str:
        """The decision in the log's words. An answer without an objection is `nothing`, not `auto`."""
        return "nothing" if self.decision is Decision.AUTO else self.decision.word

    @property
    def by(self) -> str:
        """The hook's ID and its place in the configuration, for refusals and logs."""
        return f"hook {self.hook}" + ("" if self.origin is None else f" ({self.origin})")


class CallChecks(Protocol):
    """Asks the hooks that check calls."""

    @property
    def programs(self) -> Sequence[str]:
        """Absolute paths of the hooks' programs, which no call may write."""
        ...

    def asks_about(self, action: Action) -> bool:
        """Return whether any hook checks a call, before it or after."""
        ...

    def before(self, session: str, action: Action, verdict: Verdict, seconds: float | None) -> Sequence[CheckAnswer]:
        """Return the hooks' answers about a call before it runs. The verdict is AUTO or CONFIRM.

        Each hook gets at most `seconds` (`None`: no limit). Raises Interrupted if the user stopped a hook.
        """
        ...

    def after(self, session: str, action: Action, verdict: Verdict, result: ToolResult) -> Sequence[CheckAnswer]:
        """Return the answers about a call that ran."""
        ...


class SessionChecks(Protocol):
    """Asks the hooks that check sessions; `calls` asks those that check calls."""

    @property
    def calls(self) -> CallChecks:
        """The checks of calls."""
        ...

    def session_starts(self, session: str, fields: Mapping[str, JsonValue]) -> Sequence[CheckAnswer]:
        """Return the answers about a session that begins."""
        ...

    def session_ends(self, session: str, stop: str) -> Sequence[CheckAnswer]:
        """Return the answers about a session that ends. They cannot prevent the end."""
        ...

    def answer(self, session: str, text: str, seconds: float | None, *, again: bool) -> Sequence[CheckAnswer]:
        """Return the hooks' answers about the model's final answer. Raises Interrupted.

        `again` is set if it is not the model's first answer.
        """
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
    """Return the first of the strictest answers with an objection. `None` if no answer has one."""
    against = [answer for answer in answers if answer.decision is not Decision.AUTO]
    return max(against, key=lambda answer: answer.decision, default=None)


def with_notes(content: str, answers: Sequence[CheckAnswer]) -> str:
    """Return the text of a result for the model, followed by the hooks' notes in brackets.

    A call that ran cannot be undone, so objections after the call are shown to the model too.
    """
    notes = []
    for answer in answers:
        late = answer.event is CheckEvent.AFTER_CALL and answer.decision is not Decision.AUTO
        if words := "\n".join(filter(None, (answer.reason if late else "", answer.note))):
            notes.append(f"[The hook {answer.hook} says of this call: {words}]")
    return "\n\n".join((content, *notes))


def tightened(verdict: Verdict, tool: str, answers: Sequence[CheckAnswer]) -> Verdict:
    """Return `verdict` on a call of `tool` with the hooks' objections added after the policy's parts. Pure.

    INVARIANT: the decision is the strictest of all, so that no hook loosens the verdict.
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
