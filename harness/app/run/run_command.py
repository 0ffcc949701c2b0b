"""`harness run`: one prompt, without a user at the terminal. The exit code depends on the result."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from harness.actions import Action, JsonValue
from harness.app.repl.attached_files import AttachedFiles, attached
from harness.app.run.answer_schema import AnswerSchema
from harness.app.run.facts import RunFacts
from harness.app.run.run_end import EndReports, RunEnd, runner_files
from harness.app.run.run_model import RunModel
from harness.app.run.run_output import RunOutput
from harness.app.run.run_prompt import given_prompt
from harness.errors import LogError, SessionRefusedError, UsageError
from harness.gate.approval import Approval, Approver, deny_all
from harness.loop.run import Session
from harness.messages import Attachment, RunResult, StopReason
from harness.plugin import later
from harness.policy.verdict import Verdict
from harness.record import replace
from harness.session.exits import Exit, exit_code, is_soft
from harness.session.front import NoFront
from harness.session.own_folders import fix_modes
from harness.session.policies import describe
from harness.session.provider_models import ProviderModels
from harness.session.running_session import begin_session, collect
from harness.session.session_log import close_and_sign
from harness.session.session_place import SessionPlace, place_of
from harness.session.session_rules import Unattended, rules_of
from harness.session.session_tools import tools_of
from harness.session.signals import Signals
from harness.session.state import State
from harness.shipped import RUN_OTHERWISE
from harness.terminal.console import Console, complain, look_here
from harness.terminal.styles import Tone
from harness.text.visible import visible_line
from harness.tools.command_walls import confinement_words

if TYPE_CHECKING:
    from harness.app.resume import Carried


def run_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Run one prompt and return the exit code. A plugin runs the prompt if one of its flags is given.

    Raises HarnessError for a failure before the run begins.
    """
    fix_modes(State.of(environment), complain)
    for flag, run_otherwise in RUN_OTHERWISE.items():
        if getattr(arguments, flag) is not None:
            code: int = later(*run_otherwise)(arguments, environment, run_once)
            return code
    return run_once(arguments, environment).code


def nothing_to_settle() -> str:
    """Return an empty string, because there is nothing to settle."""
    return ""


def run_once(
    arguments: Namespace, environment: Mapping[str, str], settle: Callable[[], str] = nothing_to_settle
) -> RunEnd:
    """Run one prompt to its end, with all reports. Raises HarnessError for a failure before the run begins.

    `settle` is called after the model's work and before the end is logged. It returns a problem, which prevents
    success, or an empty string. It is not called if the log cannot be written.
    """
    return _Run(arguments, environment, settle).run()


class _RunFront(NoFront):
    """The front of a run. It shows events, and answers no questions."""

    def __init__(self, console: Console) -> None:
        super().__init__(complain)
        self._console = console

    def draw(self, printed: str, /) -> None:
        """Show the last line of a running command from time to time."""
        self._console.live(printed)

    def countdown(self, seconds: float, /) -> None:
        """Count down the seconds until a request is sent again."""
        self._console.countdown(seconds)


class _Run:
    """One run, from its flags to its exit code. Errors in the flags are found before the log is opened."""

    def __init__(self, arguments: Namespace, environment: Mapping[str, str], settle: Callable[[], str]) -> None:
        self._arguments = arguments
        self._settle = settle
        if arguments.ask and arguments.dry_run:
            raise UsageError("--ask and --dry-run: calls that do not run need no answer; give one of them")
        self._check = _check_of(arguments)
        self._prompt = given_prompt(arguments)
        self._by_command = False
        """Whether the prompt is the text of a user's or a team's command."""
        state = State.of(environment)
        self._carried = _carried(state, arguments)
        self._model = RunModel(arguments)
        self._reports = EndReports(arguments, environment)
        place = place_of(arguments, environment, complain)
        self._signals = Signals(place.interrupt)
        self._console = Console(sys.stderr, look_here(sys.stderr, environment), redactor=place.redactor)
        # no call may write these, even inside the workspace
        recorded = () if self._model.record is None else (self._model.record,)
        rules = rules_of(
            place,
            arguments,
            complain,
            unattended=Unattended(dry_run=arguments.dry_run, plan=arguments.plan),
            guard=(*recorded, *runner_files(environment)),
            asks_outside=arguments.ask,
        )
        models = ProviderModels(tools_of(rules, NoFront(complain) if arguments.quiet else _RunFront(self._console)))
        model = self._model.of(models)
        self._notes = [*place.notes]
        self._take_words(place)
        self._prompt = self._prompt.masked(place.redactor.redact)
        self._session = begin_session(
            models,
            model,
            mode="run",
            approver=self._ask if arguments.ask else deny_all,
            header={
                **({"plan": True} if arguments.plan else {}),
                **self._prompt.header_fields,
                **self._model.header_fields,
            },
            done_marker=arguments.done_marker,
            check_answer=self._check.problem if self._check else None,
        )
        self._agent, self._place = self._session.agent, place
        self._model.begin(self._session.log)
        self._output = RunOutput(
            arguments.output,
            place.interrupt.request_later,
            fence=self._reports.fence,
            asked_to_stop=lambda: place.interrupt.requested,
        )
        self._facts = RunFacts()
        self._debug = bool(environment.get("HARNESS_DEBUG"))
        self._bug: Exception | None = None
        self._code = Exit.LOG
        """The exit code so far. If a step at the end fails, success becomes a failure permanently."""

    def run(self) -> RunEnd:
        """Run from the first request to the exit code: the work, the log, then messages, reports and the answer."""
        self._begin()
        result = self._close_log(self._work())
        if self._check is not None and result.stop is StopReason.COMPLETED:
            result = replace(result, text=self._check.bare(result.text))
        self._model.tell_end(self._console)
        summary = self._reports.summary(self._session, self._facts, result, self._code)
        self._reports.tell(self._console, self._session.log, self._facts, result, self._code)
        self._fail(self._model.problem, self._reports.report(self._facts, summary, self._code))
        # INVARIANT: a JSON object on stdout has the exit code of the process, except for problems found while it is
        # written. So it is written last. A text is written first, since annotations for GitHub follow it.
        is_object = self._arguments.output == "json"
        if not is_object:
            self._answer(summary, result)
        result_fields = {**summary, "exit_code": int(self._code)}
        self._fail(self._reports.tell_actions(result_fields, self._facts, self._output, self._code))
        summary["exit_code"] = int(self._code)
        if is_object:
            self._answer(summary, result)
        if self._bug is not None and self._debug:
            raise self._bug
        return RunEnd(code=self._code, summary=summary)

    def _begin(self) -> None:
        """Show the settings, start to show events, and load the modules of the first request."""
        self._tell_what_holds()
        self._session.log.observers += [self._facts.record, self._output.record]
        self._signals.install()
        self._session.models.warm_up()
        self._session.look_ahead()
        collect()

    def _work(self) -> RunResult:
        """Work on the prompt, call `settle`, and log the end with the exit code so far."""
        agent, carried, header = self._agent, self._carried, self._session.header
        if carried is not None:
            self._session.tools.attachments.take_over(carried.rebuilt.messages, carried.session.path)
        try:
            session = agent.start(
                carried=carried.messages(header) if carried else (), origin=carried.origin if carried else None
            )
        except LogError as error:
            return RunResult(stop=StopReason.LOG_ERROR, text="", detail=str(error))
        except SessionRefusedError as error:
            refused = RunResult(stop=StopReason.BLOCKED, text="", detail=self._place.redactor.redact(str(error)))
            self._code = self._code_of(refused)
            return refused
        result = self._result_of(session)
        if result.stop is StopReason.LOG_ERROR:
            return result
        try:
            agent.end_background(
                session
            )  # before the changes are taken, which a background command could go on to make
        except LogError as error:
            return replace(result, stop=StopReason.LOG_ERROR, detail=str(error))
        problem = self._settled()
        self._code = self._code_of(result)
        self._fail(problem)
        if problem:
            result = replace(result, detail="; ".join(part for part in (result.detail, problem) if part))
        try:
            agent.end(session, result, exit_code=self._code)
        except LogError as error:
            return replace(result, stop=StopReason.LOG_ERROR, detail=str(error))
        return result

    @cached_property
    def _outside(self) -> Approver:
        """The external approver, for calls that need confirmation. Imported at the first question."""
        from harness.session.approver.session_approver import approver_outside
        from harness.terminal.asked_outside import AskedAlone

        outside = approver_outside(self._session, self._agent.gate.grants.offer, is_alone=True)
        return AskedAlone(outside, self._place.interrupt, self._tell_wait)

    def _ask(self, action: Action, verdict: Verdict) -> Approval:
        return self._outside(action, verdict)

    def _tell_wait(self, message: str) -> None:
        if not self._arguments.quiet:
            self._console.line(visible_line(self._place.redactor.redact(message)), Tone.QUIET)

    def _result_of(self, session: Session) -> RunResult:
        try:
            words, attachments = self._prompt.text, tuple[Attachment, ...]()
            if "@" in self._prompt.words and not self._arguments.dry_run:
                attached = self._attached(session)
                words, attachments = attached.with_texts(words), attached.attachments
            prompt = self._session.templates.task(words)
            prompt = f"{prompt}\n\n{self._check.instructions}" if self._check else prompt
            return self._agent.run(prompt, session, attachments=attachments)
        except Exception as error:  # noqa: BLE001 - a bug ends the run regularly, with an entry in the log and the reports
            return RunResult(stop=StopReason.INTERNAL_ERROR, text="", detail=self._noted(error))

    def _take_words(self, place: SessionPlace) -> None:
        """Replace a prompt that calls a command of the team or the user by the command's text. Raises UsageError.

        Only a prompt argument can call a command, not a file or stdin.
        """
        if self._arguments.prompt in (None, "-") or not self._prompt.words.startswith("/"):
            return
        from harness.app.commands.own_commands import said_in_run

        command_prompt = said_in_run(self._prompt.words, place.words, place.settings, plans=self._arguments.plan)
        if command_prompt is not None:
            self._by_command = True
            self._prompt = replace(self._prompt, words=command_prompt.words)
            self._notes += command_prompt.notes

    def _attached(self, session: Session) -> AttachedFiles:
        """Return the attachments of the prompt that need no approval.

        These are the pictures that the user mentions. For a command's text, they are all files that it mentions.
        """
        return attached(
            self._agent,
            session,
            self._prompt.words,
            tell=self._tell_problem,
            home=self._place.environment.get("HOME", ""),
            root=self._place.workspace.root if self._by_command else "",
            approver=deny_all,
        )

    def _settled(self) -> str:
        try:
            return self._settle()
        except Exception as error:  # noqa: BLE001 - the result of `settle` is lost, but the end of the log must be written
            return self._noted(error)

    def _noted(self, error: Exception) -> str:
        """Store a bug for debugging. Return its text with secrets masked."""
        self._bug = error
        message = f"internal error: {type(error).__name__}: {error} (HARNESS_DEBUG=1 shows where)"
        return self._place.redactor.redact(message)

    def _code_of(self, result: RunResult) -> Exit:
        # A signal takes precedence over a lost reader, which causes no interrupt.
        if self._output.is_broken() and not self._place.interrupt.count:
            return Exit.BROKEN_PIPE
        return exit_code(
            result.stop,
            refusals=result.refusals,
            allow_refusals=self._arguments.allow_refusals,
            terminated=self._signals.terminated,
        )

    def _close_log(self, result: RunResult) -> RunResult:
        """Close the log and note its head. If either fails, this becomes the end of the run."""
        self._session.close()
        try:
            close_and_sign(self._place.state, self._session.log, self._place.settings.sign_key.value, complain)
        except LogError as error:
            result = replace(result, stop=StopReason.LOG_ERROR, detail=str(error))
        if result.stop is StopReason.LOG_ERROR:
            self._code = Exit.LOG
        return result

    def _answer(self, summary: Mapping[str, JsonValue], result: RunResult) -> None:
        """Write the answer. A lost reader or an unwritable stdout changes the exit code."""
        self._output.finish(summary, result.text)
        if not self._output.is_broken():
            return
        if not self._place.interrupt.count:
            self._tell_problem(self._output.error_text)
            self._code = Exit.BROKEN_PIPE
        elif is_soft(self._code):  # a signal ended the wait for a reader
            self._code = Exit.TERMINATED if self._signals.terminated else Exit.INTERRUPTED

    def _fail(self, *problems: str) -> None:
        """Report problems. If there are any, the run is not a success."""
        for problem in filter(None, problems):
            self._tell_problem(problem)
            if is_soft(self._code):
                self._code = Exit.INTERNAL

    def _tell_problem(self, problem: str) -> None:
        if problem:
            self._console.line(f"harness: {problem}", Tone.BAD)

    def _tell_what_holds(self) -> None:
        arguments, console, session = self._arguments, self._console, self._session
        if arguments.policy is None:
            console.line(
                "harness: no --policy was given; the shipped readonly policy holds (reading only)", Tone.WARNING
            )
        for note in self._model.notes:
            console.line(f"harness: {note}", Tone.WARNING)
        _tell_carried(self._carried, session.header, console, quiet=arguments.quiet)
        if arguments.quiet:
            return
        console.line(f"policy: {describe(session.policy, self._place.state)}", Tone.QUIET)
        console.line(confinement_words(session.tools.level), Tone.QUIET)
        if missing_wall := session.tools.missing_wall:
            console.line(missing_wall, Tone.WARNING)
        if arguments.dry_run:
            console.line("dry run: every call is judged and recorded, and none is run", Tone.WARNING)
        for line in (*session.system.notes, *self._notes):
            console.line(line, Tone.QUIET)
        session.log.observers.append(console.record)


def _check_of(arguments: Namespace) -> AnswerSchema | None:
    if arguments.output_schema is None:
        return None

    return AnswerSchema(arguments.output_schema)


def _carried(state: State, arguments: Namespace) -> Carried | None:
    """Return the conversation that the run continues, or `None`. Raises UsageError, LogError."""
    if arguments.resume is None:
        return None
    from harness.app.resume import RESUMED, carried_from, refuse_its_log, session_by_name

    if arguments.replay is not None:
        raise UsageError("--resume and --replay are two conversations to go on with; give one of them")
    carried = carried_from(state, session_by_name(state, arguments.resume), RESUMED)
    refuse_its_log(carried, arguments.log)
    return carried


def _tell_carried(carried: Carried | None, header: Mapping[str, JsonValue], console: Console, *, quiet: bool) -> None:
    if carried is None:
        return
    from harness.app.resume import carried_lines

    for line in carried_lines(carried, header):
        if line.tone is Tone.WARNING or not quiet:
            console.line(line.text, line.tone)
