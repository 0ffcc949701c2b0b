"""One run of a hook's program: its input, and its answer or the effect of a missing one.

INVARIANT: any failure (missing, crashed, killed, late, noisy) is a deny with that reason, never ignored.

The program belongs to the user and is outside of the workspace, so it runs without walls. It gets the environment of
a command, and all its processes end with it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping

from harness.actions import Decision
from harness.checks.hook_declaration import HookDeclaration
from harness.checks.hook_form import HookCase, HookForm, NoAnswerError, SaidByHook
from harness.checks.hook_program import HookProgram
from harness.errors import HarnessError
from harness.gate.call_checks import CheckAnswer
from harness.interrupt import Interrupted
from harness.log.vocabulary import CheckEvent
from harness.process.asked_program import ProgramAnswer, ask_program
from harness.process.ended import CommandEnding
from harness.text.fields import kind_of
from harness.text.strict_json import NotJsonError, read_one
from harness.text.visible import visible, visible_line

MOST_OUTPUT_BYTES = 1 << 18
"""Maximum size of an answer; a longer one is invalid."""
MOST_REASON_CHARACTERS = 2_000
MOST_NOTE_CHARACTERS = 10_000
EXIT_DENY = 2
"""The exit code that denies. The reason is on stderr; stdout is not read."""


class HookFailedError(HarnessError):
    """Raised when a hook gives no answer. The text is the reason."""


class HookRun:
    """Runs hooks for one session."""

    def __init__(
        self,
        *,
        workspace: str,
        environment: Mapping[str, str],
        redact: Callable[[str], str],
        interrupts: Callable[[], int] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Store the workspace and the environment of commands, which the programs get.

        `redact` masks secrets in input and output. `interrupts` returns the number of interrupts so far.
        """
        self._workspace = workspace
        self._environment = environment
        self._redact = redact
        self._interrupts = interrupts
        self._monotonic = monotonic

    def _since_now(self) -> Callable[[], int] | None:
        """Return a function that counts the interrupts from now on, or `None` if they cannot be counted."""
        count = self._interrupts
        before = 0 if count is None else count()
        return None if count is None else lambda: count() - before

    def answer(
        self, hook: HookDeclaration, program: HookProgram, case: HookCase, seconds: float | None = None
    ) -> CheckAnswer:
        """Return a hook's answer. The timeout is the hook's own, or `seconds` if shorter. Raises Interrupted."""
        began = self._monotonic()
        digest = program.digest()
        has_failed = False
        try:
            hook_answer = self._ask(
                hook, program, case, hook.seconds if seconds is None else min(seconds, hook.seconds)
            )
        except HookFailedError as error:
            has_failed = True
            hook_answer = SaidByHook(decision=Decision.DENY, reason=f"the hook gave no answer: {error}")
        reason = self._presentable(hook_answer.reason, MOST_REASON_CHARACTERS)
        if hook_answer.decision is not Decision.AUTO and not reason:
            reason = "the hook gave no reason"
        return CheckAnswer(
            event=hook.event,
            hook=hook.id,
            decision=hook_answer.decision,
            reason=reason,
            note=self._presentable(hook_answer.note, MOST_NOTE_CHARACTERS),
            has_failed=has_failed,
            ignored=hook_answer.ignored,
            origin=hook.origin,
            layer=hook.layer,
            program_sha256=digest,
            duration_ms=round((self._monotonic() - began) * 1000),
        )

    def _presentable(self, text: str, max_characters: int) -> str:
        """Return a hook's text, masked, with visible characters only, and cut. Cutting first could hide half a secret
        from the mask.
        """
        line = visible(self._redact(text)).strip()
        return (
            line
            if len(line) <= max_characters
            else f"{line[:max_characters]} [cut: {len(line) - max_characters} characters more]"
        )

    def _ask(self, hook: HookDeclaration, program: HookProgram, case: HookCase, seconds: float) -> SaidByHook:
        """Run a hook and parse its answer. Raises HookFailedError, and Interrupted."""
        problem = program.problem()
        if problem:
            raise HookFailedError(problem)
        question = json.dumps(hook.form.question_of(case), ensure_ascii=False)
        environment = {**self._environment, "HARNESS_HOOK": hook.id}
        if variable := hook.form.workspace_variable:
            # The hook starts in the workspace. Keep Python from importing modules from there.
            environment |= {variable: self._workspace, "PYTHONSAFEPATH": "1"}
        try:
            answer = ask_program(
                program.argv,
                question.encode("utf-8", "replace"),
                environment=environment,
                folder=program.folder,
                seconds=seconds,
                most_bytes=MOST_OUTPUT_BYTES,
                stops=self._since_now(),
            )
        except (OSError, ValueError) as error:
            raise HookFailedError(f"cannot be started: {error}") from None
        _check_end(answer, seconds)
        if answer.end.status == EXIT_DENY:
            return SaidByHook(decision=Decision.DENY, reason=answer.errors.decode("utf-8", "replace"))
        return _printed(answer, hook.form, case.event)


def _check_end(answer: ProgramAnswer, seconds: float) -> None:
    """Raise HookFailedError unless the hook exited with 0 or `EXIT_DENY`, and Interrupted if the user stopped it."""
    run_end, status = answer.end, answer.end.status
    match run_end.ending:
        case CommandEnding.INTERRUPTED:
            raise Interrupted
        case CommandEnding.TIMED_OUT:
            raise HookFailedError(f"timed out after {seconds:g} seconds")
        case CommandEnding.SIGNALLED:
            raise HookFailedError(f"killed by signal {status}{_last_words(answer)}")
        case CommandEnding.EXITED if status in (0, EXIT_DENY):
            return
        case CommandEnding.EXITED:
            raise HookFailedError(f"exit code {status}{_last_words(answer)}")
        case _:
            raise HookFailedError("unknown exit code")


def _last_words(answer: ProgramAnswer) -> str:
    """Return `: ` and the last line of the hook's stderr, to append to a message; empty if stderr is empty."""
    lines = answer.errors.decode("utf-8", "replace").strip().splitlines()
    return f": {visible_line(lines[-1])}" if lines else ""


def _printed(answer: ProgramAnswer, form: HookForm, event: CheckEvent) -> SaidByHook:
    """Parse the output of a hook that exited with 0. Empty output is an empty answer. Raises HookFailedError."""
    if answer.is_cut:
        raise HookFailedError(f"output of more than {MOST_OUTPUT_BYTES} bytes")
    try:
        text = answer.output.decode().strip()
    except UnicodeDecodeError as error:
        raise HookFailedError(f"output is not UTF-8 (byte {error.start})") from None
    if not text:
        return SaidByHook()
    if event in form.notes_of and text[0] != "{":
        return SaidByHook(note=text)
    try:
        value = read_one(text)
        if not isinstance(value, dict):
            raise NoAnswerError(f"must be an object, not {kind_of(value)}")  # noqa: TRY301 - reported as the others are
        return form.answer_in(value)
    except (NotJsonError, NoAnswerError) as error:
        raise HookFailedError(f"invalid output ({error}): {visible_line(text, 80)}") from None
