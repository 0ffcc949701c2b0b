"""Checks of sessions and answers: hooks at the beginning and end of a session and at each answer, and `check_answer`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.actions import Decision, JsonValue
from harness.gate.call_checks import SessionChecks, strictest_answer
from harness.gate.gate import Gate
from harness.interrupt import Interrupt, Interrupted
from harness.loop.run import Run, Session
from harness.messages import StopReason

STOPPED = "interrupted while the answer was checked"


class CheckedSessions:
    """Runs the hooks for an agent's sessions and answers, and checks whether each answer fits the request."""

    def __init__(
        self,
        checks: SessionChecks,
        check_answer: Callable[[str, float | None], str] | None,
        gate: Gate,
        interrupt: Interrupt,
    ) -> None:
        """Take the hooks, the check of an answer (see Agent), and the gate, which records the hooks' answers."""
        self._checks = checks
        self._check_answer = check_answer
        self._gate = gate
        self._interrupt = interrupt

    def begin(self, session: Session, fields: Mapping[str, JsonValue]) -> str:
        """Return the reason of a hook that refused the session or failed, or an empty string.
        Raises LogError.
        """
        answers = self._checks.session_starts(session.identity, fields)
        self._gate.checks.note(answers)
        refusing = strictest_answer(answers)
        if refusing is not None:
            return f"{refusing.by} does not let the session begin: {refusing.reason}"
        session.notes = [f"[The hook {answer.hook} says: {answer.note}]" for answer in answers if answer.note]
        return ""

    def end(self, session: Session, stop: StopReason) -> None:
        """Run the hooks for the end of a session, which they cannot stop. Raises LogError."""
        self._gate.checks.note(self._checks.session_ends(session.identity, stop.value))

    def lets_pass(self, run: Run) -> bool:
        """Return whether the run's answer passes. If not, tell the model, or end the run. Raises LogError."""
        return self._is_fit(run) and self._passes_hooks(run)

    def _is_fit(self, run: Run) -> bool:
        """Return whether `check_answer` accepts the answer. If not, tell the model, or end the run."""
        if self._check_answer is None:
            return True
        seconds = run.seconds_left
        if seconds is not None and seconds <= 0:
            run.stop_at_limit(run.time_limit)
            return False
        try:
            with self._interrupt:
                problem = self._check_answer(run.text, seconds)
        except KeyboardInterrupt:
            run.stop(StopReason.INTERRUPTED, STOPPED)
            return False
        run.log.append("answer_checked", {"fits": not problem, "problem": problem})
        if not problem:
            return True
        if run.time_is_over:
            run.stop_at_limit(run.time_limit)
        elif run.told_unfit:
            run.stop(StopReason.UNFIT, f"the answer is still not what was asked for: {problem}")
        else:
            run.told_unfit = True
            request = "Answer again, with nothing but the corrected answer."
            run.tell_model(f"Your answer is not what was asked for: {problem}\n{request}")
        return False

    def _passes_hooks(self, run: Run) -> bool:
        """Return whether all hooks accept the answer. If not, tell the model, or end the run."""
        try:
            answers = self._checks.answer(run.session.identity, run.text, run.seconds_left, again=run.told_by_hook)
        except Interrupted:
            run.stop(StopReason.INTERRUPTED, STOPPED)
            return False
        self._gate.checks.note(answers)
        against = strictest_answer(answers)
        if against is None:
            return True
        if against.decision is Decision.BLOCK:
            run.stop(StopReason.BLOCKED, f"{against.by}: {against.reason}")
        elif run.time_is_over:
            run.stop_at_limit(run.time_limit)
        elif run.told_by_hook or against.has_failed:  # a failed hook is nothing that the model can fix
            run.stop(StopReason.UNFIT, f"{against.by} does not let the answer pass: {against.reason}")
        else:
            run.told_by_hook = True
            run.tell_model(
                f"The hook {against.hook} has this against your answer: {against.reason}\nGo on, and answer then."
            )
        return False
