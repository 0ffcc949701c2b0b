"""`harness run`: one prompt, nobody to ask, never a read of the terminal; the exit code tells how it went."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from harness.actions import JsonValue
from harness.audit.run_reports.facts import Facts
from harness.cli.console import Console, wants_colour
from harness.cli.exits import Exit, exit_code, is_soft
from harness.cli.own_folders import place_of, set_right, worked_in
from harness.cli.parts import Parts, Unattended, about_of, agent_of, close_log
from harness.cli.policy.policies import describe
from harness.cli.prompting import given_prompt
from harness.cli.run.run_end import Ending, runner_files
from harness.cli.run.run_model import RunModel
from harness.cli.run.run_output import Output
from harness.cli.state import State
from harness.cli.trace import Tone
from harness.errors import LogError, UsageError
from harness.gate.approval import deny_all
from harness.loop.agent import Agent
from harness.loop.run import Session
from harness.messages import RunResult, StopReason
from harness.record import Record, replace

if TYPE_CHECKING:
    from harness.cli.resume import Carried
    from harness.cli.run.answer_schema import AnswerSchema


class RunEnd(Record):
    """How a run ended."""

    code: Exit
    summary: Mapping[str, JsonValue]
    """The object that `--output json` writes."""


def run_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Run one prompt, or one task of a batch, and return the exit code. Raises HarnessError for what fails before it begins."""
    set_right(State.of(environment))
    if arguments.task is None and arguments.out is None:
        return run_once(arguments, environment).code
    from harness.cli.batch.task_run import run_task

    return run_task(arguments, environment, run_once)


def nothing_to_settle() -> str:
    """Return that nothing went wrong."""
    return ""


def run_once(
    arguments: Namespace, environment: Mapping[str, str], settle: Callable[[], str] = nothing_to_settle
) -> RunEnd:
    """Run one prompt to its end, with all that is written then. Raises HarnessError for what fails before it begins.

    `settle` is called when the model's work is over and before the end is recorded: it returns what went wrong, which is no
    success, or nothing. Not where the log cannot be written.
    """
    return _Run(arguments, environment, settle).done()


class _Run:
    """One run, from its flags to its exit code. What can be wrong with the flags is found before the log is opened."""

    def __init__(self, arguments: Namespace, environment: Mapping[str, str], settle: Callable[[], str]) -> None:
        self._arguments = arguments
        self._settle = settle
        self._check = _check_of(arguments)
        prompt = given_prompt(arguments)
        state = State.of(environment)
        self._carried = _carried(state, arguments)
        record = arguments.record
        if record is not None:
            record = place_of(record, worked_in(arguments), told=f"--record {record}")
        self._model = RunModel(record=record, replay=arguments.replay)
        self._ending = Ending(arguments, environment)
        self._parts = parts = Parts(arguments, environment, self._unattended(arguments))
        # No call writes these, where they lie in the workspace.
        recorded = [] if record is None else [record]
        parts.policy = parts.policy.guarding(*recorded, *runner_files(environment))
        self._prompt = prompt.masked(parts.redactor.redact)
        self._about = self._told_about(arguments)
        self._console = Console(sys.stderr, colour=wants_colour(sys.stderr, environment), redactor=parts.redactor)
        self._output = Output(
            arguments.output,
            parts.interrupt.request_later,
            fence=self._ending.fence,
            asked_to_stop=lambda: parts.interrupt.requested,
        )
        self._facts = Facts()
        self._environment = environment
        self._code = Exit.LOG
        """What the last record of the log says."""
        self._bug: Exception | None = None

    def _unattended(self, arguments: Namespace) -> Unattended:
        return Unattended(
            dry_run=arguments.dry_run,
            plan=arguments.plan,
            check_answer=self._check.problem if self._check else None,
            model_for=self._model.of,
        )

    def _told_about(self, arguments: Namespace) -> dict[str, JsonValue]:
        about = about_of(self._parts, "run")
        if arguments.plan:
            about["plan"] = True
        return {**about, **self._prompt.about, **self._model.about}

    def done(self) -> RunEnd:
        """Run, and return how it ended."""
        self._tell_begin()
        parts = self._parts
        parts.log.observers += [self._facts.record, self._output.record]
        parts.signals.install()
        parts.load()
        agent = agent_of(
            parts,
            approver=deny_all,
            about=self._about,
            done_marker=self._arguments.done_marker,
        )
        self._model.on_divergence = self._record_divergence
        result = self._run(agent)
        code, result = self._closed(result)
        if self._check is not None and result.stop is StopReason.COMPLETED:
            result = replace(result, text=self._check.bare(result.text))
        end = self._written(code, result)
        if self._bug is not None and self._environment.get("HARNESS_DEBUG"):
            raise self._bug
        return end

    def _run(self, agent: Agent) -> RunResult:
        """Work on the prompt, and record the end with the exit code that is known by then."""
        carried = self._carried
        try:
            session = agent.start(
                carried=carried.messages(self._about) if carried else (), origin=carried.origin if carried else None
            )
        except LogError as error:
            return RunResult(stop=StopReason.LOG_ERROR, text="", detail=str(error))
        result = self._worked(agent, session)
        if result.stop is StopReason.LOG_ERROR:
            return result
        problem = self._settled()
        self._code = self._unless(self._code_of(result), problem)
        if problem:
            result = replace(result, detail="; ".join(part for part in (result.detail, problem) if part))
        try:
            agent.end(session, result, exit_code=self._code)
        except LogError as error:
            return replace(result, stop=StopReason.LOG_ERROR, detail=str(error))
        return result

    def _settled(self) -> str:
        try:
            return self._settle()
        except Exception as error:  # noqa: BLE001 - what it was for is lost, and the end of the log must not be
            return self._noted(error)

    def _worked(self, agent: Agent, session: Session) -> RunResult:
        prompt = f"{self._prompt.text}\n\n{self._check.instructions}" if self._check else self._prompt.text
        try:
            return agent.run(prompt, session)
        except Exception as error:  # noqa: BLE001 - a bug ends the run as everything does: in the log, and in what is written
            return RunResult(stop=StopReason.INTERNAL_ERROR, text="", detail=self._noted(error))

    def _noted(self, error: Exception) -> str:
        """Keep a bug for whoever debugs it, and return what is told of it, with secrets masked."""
        self._bug = error
        told = f"internal error: {type(error).__name__}: {error} (HARNESS_DEBUG=1 shows where)"
        return self._parts.redactor.redact(told)

    def _code_of(self, result: RunResult) -> Exit:
        code = exit_code(
            result.stop,
            refusals=result.refusals,
            allow_refusals=self._arguments.allow_refusals,
            terminated=self._parts.signals.terminated,
        )
        # A signal counts above a reader that left: that one asks for no interrupt.
        return Exit.BROKEN_PIPE if self._output.is_broken() and not self._parts.interrupt.count else code

    def _closed(self, result: RunResult) -> tuple[Exit, RunResult]:
        """Close the log, and return the exit code: the one in its last record, unless it could not be written, or kept."""
        code = Exit.LOG if result.stop is StopReason.LOG_ERROR else self._code
        try:
            close_log(self._parts.state, self._parts.log, sign_key=self._parts.settings.sign_key.value)
        except LogError as error:
            return Exit.LOG, replace(result, stop=StopReason.LOG_ERROR, detail=str(error))
        return code, result

    def _written(self, code: Exit, result: RunResult) -> RunEnd:
        """Write the answer and the reports, and return how it ended at last: what could not be written is no success.

        INVARIANT: the object on stdout has the exit code of the process, but for what is found while it is written itself.
        """
        ending, parts, is_object = self._ending, self._parts, self._arguments.output == "json"
        self._model.tell_end(self._console)
        summary = ending.summary(parts, self._facts, result, code)
        ending.tell(self._console, parts, self._facts, result, code)
        code = self._unless(code, self._model.problem, ending.report(self._facts, summary, code))
        if not is_object:  # annotations stand behind the answer
            self._output.finish(summary, result.text)
            code = self._delivered(code)
        code = self._unless(
            code, ending.tell_actions({**summary, "exit_code": int(code)}, self._facts, self._output, code)
        )
        summary["exit_code"] = int(code)
        if is_object:
            self._output.finish(summary, result.text)
            code = self._delivered(code)
        return RunEnd(code=code, summary=summary)

    def _delivered(self, code: Exit) -> Exit:
        """Return the exit code when all is written: another, where nobody reads any more, or stdout cannot be written."""
        if not self._output.is_broken():
            return code
        if self._parts.interrupt.count:  # the wait for a reader was ended by a signal
            return (
                code if not is_soft(code) else Exit.TERMINATED if self._parts.signals.terminated else Exit.INTERRUPTED
            )
        self._unless(code, self._output.why)
        return Exit.BROKEN_PIPE

    def _unless(self, code: Exit, *problems: str) -> Exit:
        """Say what went wrong, and return 1 in the place of a code that says that nothing did."""
        told = [problem for problem in problems if problem]
        for problem in told:
            self._console.line(f"harness: {problem}", Tone.BAD)
        return Exit.INTERNAL if told and is_soft(code) else code

    def _record_divergence(self, fields: Mapping[str, JsonValue]) -> None:
        with self._parts.interrupt.hold():
            self._parts.log.append("diverged", fields)

    def _tell_begin(self) -> None:
        """Say what holds, and from here on what happens."""
        arguments, console, parts = self._arguments, self._console, self._parts
        if arguments.policy is None:
            console.line(
                "harness: no --policy was given; the shipped readonly policy holds (reading only)", Tone.WARNING
            )
        for note in self._model.notes:
            console.line(f"harness: {note}", Tone.WARNING)
        _tell_carried(self._carried, self._about, console, quiet=arguments.quiet)
        if arguments.quiet:
            return
        console.line(f"policy: {describe(parts.policy)}; confinement: {parts.level}", Tone.QUIET)
        if arguments.dry_run:
            console.line("dry run: every call is judged and recorded, and none is run", Tone.WARNING)
        for line in parts.system.notes:
            console.line(line, Tone.QUIET)
        parts.log.observers.append(console.record)
        parts.on_output = console.live
        parts.on_wait = console.countdown


def _check_of(arguments: Namespace) -> AnswerSchema | None:
    if arguments.output_schema is None:
        return None
    from harness.cli.run.answer_schema import AnswerSchema

    return AnswerSchema(arguments.output_schema)


def _carried(state: State, arguments: Namespace) -> Carried | None:
    """Return what the run goes on with, where it does. Raises UsageError, LogError."""
    if arguments.resume is None:
        return None
    from harness.cli.resume import RESUMED, carried_from, named, refuse_its_log

    if arguments.replay is not None:
        raise UsageError("--resume and --replay are two conversations to go on with; give one of them")
    carried = carried_from(state, named(state, arguments.resume), RESUMED)
    refuse_its_log(carried, arguments.log)
    return carried


def _tell_carried(carried: Carried | None, about: Mapping[str, JsonValue], console: Console, *, quiet: bool) -> None:
    if carried is None:
        return
    from harness.cli.resume import told

    for line in told(carried, about):
        if line.tone is Tone.WARNING or not quiet:
            console.line(line.text, line.tone)
