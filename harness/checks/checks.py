"""Checks: the hooks to ask at each event. Their answers never allow anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from harness.actions import Action, Decision, JsonValue
from harness.checks.hook_declaration import HookDeclaration
from harness.checks.hook_form import HookCase
from harness.checks.hook_program import HookProgram
from harness.checks.hook_run import HookRun
from harness.gate.call_checks import CallChecks, CheckAnswer
from harness.gate.judged_json import judged_fields
from harness.interrupt import Interrupt, Interrupted
from harness.log.vocabulary import CheckEvent
from harness.messages import ToolResult
from harness.policy.verdict import Verdict
from harness.process.environment import child_environment
from harness.record import replace


class Checks:
    """The hooks of one session. The gate uses it as `CallChecks`, the loop as `SessionChecks`."""

    def __init__(
        self,
        hooks: Sequence[HookDeclaration],
        *,
        workspace: str,
        environment: Mapping[str, str],
        redact: Callable[[str], str],
        interrupt: Interrupt | None = None,
        tell: Callable[[str], None] = lambda message: None,  # noqa: ARG005 - nobody listens
        clock_stopped: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Prepare the hooks, in the order of their declarations.

        `environment` is that of harness. Hooks get only the variables that commands get. `redact` masks secrets.
        `tell` shows the user two facts that no call record has: that a hook answered "allow", which has no effect
        (shown once), and failures at the end of a session. `clock_stopped` pauses the time limit on harness's own
        work. Raises UsageError for a hook that calls could change.
        """
        passed = child_environment(environment)
        self._workspace = workspace
        self._hooks = [(hook, HookProgram(hook, workspace, passed)) for hook in hooks]
        self._redact = redact
        self._tell = tell
        self._clock_stopped = clock_stopped
        self._told_ignored = False
        self._run = HookRun(
            workspace=workspace,
            environment=passed,
            redact=redact,
            interrupts=None if interrupt is None else lambda: interrupt.count,
        )

    @property
    def calls(self) -> CallChecks:
        """This object, as the checks of calls."""
        return self

    @property
    def programs(self) -> Sequence[str]:
        """The files of all hooks. No call may write them."""
        return tuple(dict.fromkeys(file for _, program in self._hooks for file in program.files))

    def asks_about(self, action: Action) -> bool:
        """Return whether any hook checks a call, before it or after."""
        events = (CheckEvent.BEFORE_CALL, CheckEvent.AFTER_CALL)
        return any(hook.event in events and hook.is_about(action) for hook, _ in self._hooks)

    def before(self, session: str, action: Action, verdict: Verdict, seconds: float | None) -> Sequence[CheckAnswer]:
        """Return the answers about a call whose `verdict` is auto or confirm. No hook runs after one that blocks."""
        answers: list[CheckAnswer] = []
        if hooks := list(self._hooks_about(CheckEvent.BEFORE_CALL, action)):
            case = self._case_of(CheckEvent.BEFORE_CALL, session, action, verdict)
            for hook, program in hooks:
                answers.append(self._ask(hook, program, case, seconds))
                if answers[-1].decision is Decision.BLOCK:
                    break
        return answers

    def after(self, session: str, action: Action, verdict: Verdict, result: ToolResult) -> Sequence[CheckAnswer]:
        """Return the answers about a call that ran."""
        hooks = list(self._hooks_about(CheckEvent.AFTER_CALL, action))
        if not hooks:
            return ()
        case = replace(self._case_of(CheckEvent.AFTER_CALL, session, action, verdict), result=result)
        return [self._to_an_end(hook, program, case) for hook, program in hooks]

    def session_starts(self, session: str, fields: Mapping[str, JsonValue]) -> Sequence[CheckAnswer]:
        """Return the answers about a session that begins."""
        return self._all(replace(self._case(CheckEvent.SESSION_START, session), session_fields=fields))

    def session_ends(self, session: str, stop: str) -> Sequence[CheckAnswer]:
        """Return the answers about a session that ends.

        No answer prevents the end; objections are shown to the user.
        """
        answers = self._all(replace(self._case(CheckEvent.SESSION_END, session), text=stop))
        for answer in answers:
            if answer.decision is not Decision.AUTO:
                self._tell(f"{answer.by}: {answer.reason}")
        return answers

    def answer(self, session: str, text: str, seconds: float | None, *, again: bool) -> Sequence[CheckAnswer]:
        """Return the hooks' answers about a final answer of the model. Raises Interrupted."""
        case = replace(self._case(CheckEvent.BEFORE_ANSWER, session), text=self._redact(text), again=again)
        return [self._ask(hook, program, case, seconds) for hook, program in self._of_event(case.event)]

    def _case(self, event: CheckEvent, session: str) -> HookCase:
        return HookCase(event=event, session=session, workspace=self._workspace)

    def _of_event(self, event: CheckEvent) -> Iterator[tuple[HookDeclaration, HookProgram]]:
        return (hook for hook in self._hooks if hook[0].event is event)

    def _hooks_about(self, event: CheckEvent, action: Action) -> Iterator[tuple[HookDeclaration, HookProgram]]:
        return (hook for hook in self._of_event(event) if hook[0].is_about(action))

    def _case_of(self, event: CheckEvent, session: str, action: Action, verdict: Verdict) -> HookCase:
        facts = judged_fields(action, verdict, self._redact)
        return replace(self._case(event, session), action=action, judged_fields=facts)

    def _all(self, case: HookCase) -> Sequence[CheckAnswer]:
        return [self._to_an_end(hook, program, case) for hook, program in self._of_event(case.event)]

    def _to_an_end(self, hook: HookDeclaration, program: HookProgram, case: HookCase) -> CheckAnswer:
        """Return the answer of a hook. If an interrupt stops the hook, return a failed answer, not Interrupted."""
        try:
            return self._ask(hook, program, case, None)
        except Interrupted:
            reason = "the hook gave no answer: the user interrupted it"
            return CheckAnswer(
                event=hook.event,
                hook=hook.id,
                decision=Decision.DENY,
                reason=reason,
                has_failed=True,
                origin=hook.origin,
                layer=hook.layer,
            )

    def _ask(self, hook: HookDeclaration, program: HookProgram, case: HookCase, seconds: float | None) -> CheckAnswer:
        with self._clock_stopped():
            answer = self._run.answer(hook, program, case, seconds)
        if answer.ignored and not self._told_ignored:
            self._told_ignored = True
            self._tell(f"{answer.by} says {answer.ignored}, which means nothing here: a hook can only tighten")
        return answer
