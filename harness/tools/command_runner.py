"""Runs commands behind their walls and describes the results, for every tool that starts commands.

A command runs to its end (`run`), or goes on in the background as a job of the session (`begin`).
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, assert_never

from harness.actions import Effects, Enforcement, JsonValue
from harness.errors import ToolError
from harness.files.workspace import Workspace
from harness.gate.tool import CompareFiles, Neighbour, ToolOutput
from harness.limits import DEFAULT_COMMAND_SECONDS, Limits, strictest
from harness.messages import ResultStatus
from harness.policy.policy import Policy
from harness.policy.walls_here import Undo
from harness.process.capture import Capture, Live, OutputFolder, ReadableOutput, Spill, result_characters
from harness.process.ended import CommandEnding, Ended
from harness.process.environment import (
    at_a_terminal,
    cache_variables,
    child_environment,
    unasked_variables,
    walled_variables,
)
from harness.process.job import END_SECONDS, BackgroundJob, Jobs, Stopper
from harness.process.start import Launch, NotConfinedError, find_bash
from harness.process.temporary import TemporaryFolder
from harness.record import Record, replace
from harness.text.visible import visible_names
from harness.tools.command_walls import CommandWalls, HeldTo, left_out_note, wall_notes

if TYPE_CHECKING:
    from harness.files.before_images import BeforeImages
    from harness.files.own_temporary import OwnTemporary
    from harness.files.protected_places import ProtectedPlaces
    from harness.process.command import Pace, TakesOutput
    from harness.process.lent_terminal import LentTerminal
    from harness.sandbox.confinement import Confinement
    from harness.tools.command_changes import CommandChanges
    from harness.tools.command_network import CommandNetwork

NOT_KEPT = "[it had the person's terminal: what it showed there was not kept]"
MAX_NAMES = 10
"""Maximum number of processes named in a note."""
FIRST_SECONDS = 1.0
"""Seconds of a background command that its call waits for: most mistakes of a server show in this time."""
IN_BACKGROUND = "[to keep a program running, run it as a command of its own with background: true, without &]"


class CommandStart(Record):
    """A program to start."""

    noun: str
    """Name of the command in errors."""
    argv: tuple[str, ...]
    """The argv for bash. See process.start.becoming for another program."""
    cwd: str
    seconds: float
    """Time limit, in seconds."""
    cut_by: str = ""
    """Reason for a shorter limit than requested. Empty without one."""
    variables: Mapping[str, str] = MappingProxyType({})
    """Additional variables."""
    descriptors: tuple[int, ...] = ()
    """File descriptors that it inherits in addition to its standard streams."""


def environment_or_own(environment: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return `environment`, or that of this process if it is `None`."""
    return os.environ if environment is None else environment


class CommandRunner:
    """Starts the commands of one workspace."""

    def __init__(  # noqa: PLR0913 - what a command is given, each named where it is passed
        self,
        workspace: Workspace,
        *,
        limits: Limits = Limits(),  # noqa: B008 - a Limits never changes
        environment: Mapping[str, str] | None = None,
        walls: CommandWalls | None = None,
        temporary: TemporaryFolder | None = None,
        images: BeforeImages | None = None,
        outputs: OutputFolder | None = None,
        on_output: Callable[[str], None] | None = None,
        stops: Callable[[], int] | None = None,
        pace: Pace | None = None,
        changes: CommandChanges | None = None,
        jobs: Jobs | None = None,
    ) -> None:
        """Prepare to run commands in `workspace`.

        `environment` is the source of the few variables that a command gets (default: that of this process). `walls`
        builds the walls around commands (default: those of this machine). `temporary` is the TMPDIR of commands that
        may write (default: a separate folder, removed with this object). `images` stores the content of protected
        places; if it is `None`, no content is stored. `outputs` stores the full text of shortened output. `on_output`
        receives output, ten times per second. `stops` returns the number of interrupts by the user since the call
        began; the second one kills at once. `pace` limits the steps of ending a command. `changes` finds the files that
        commands change; if it is `None`, they are not looked for. `jobs` are the background commands of the session; if
        it is `None`, there can be none.
        """
        self.workspace = workspace
        self.limits = limits
        self.seconds = limits.filled().command_seconds or DEFAULT_COMMAND_SECONDS
        """Maximum run time of a command, in seconds."""
        self.base_environment = environment_or_own(environment)
        """Environment from which commands get their variables."""
        self.environment = child_environment(self.base_environment)
        """Variables of every command."""
        self.walls = walls or CommandWalls(workspace)
        self._temporary = temporary or TemporaryFolder()
        self._images = images
        self._outputs = outputs
        self._on_output = on_output
        self._stops = stops
        self._pace = pace
        self._changes = changes
        self.jobs = jobs
        """The background commands of the session. `None` if there can be none."""

    @cached_property
    def places(self) -> ProtectedPlaces:
        """The protected places of the workspace. Created at the first use; most sessions do not need them."""
        from harness.files.protected_places import ProtectedPlaces

        return ProtectedPlaces(self.workspace.root, self._images)

    def under(self, limits: Limits) -> CommandRunner:
        """Return a copy of this runner that also respects `limits`."""
        return CommandRunner(
            self.workspace,
            limits=strictest((self.limits, limits)),
            environment=self.base_environment,
            walls=self.walls,
            temporary=self._temporary,
            images=self._images,
            outputs=self._outputs,
            on_output=self._on_output,
            stops=self._stops,
            pace=self._pace,
            changes=self._changes,
            jobs=self.jobs,
        )

    @property
    def undo(self) -> Undo:
        """The changes by commands that undo can take back."""
        return Undo(missing="changes by commands are not kept") if self._changes is None else self._changes.undo

    def own_temporary(self) -> OwnTemporary | None:
        """Return the `/tmp` of the commands. `None` if they have that of the machine."""
        return self.walls.own_temporary(self._temporary.path, self.environment["PATH"].split(":"))

    def expect_files(self, effects: Effects, policy: Policy) -> None:
        """Prepare for `note_files` during a question (see gate.tool.ChangingTool)."""
        if self._changes is not None:
            self._changes.expect(effects, policy)

    def note_files(self, effects: Effects, policy: Policy) -> CompareFiles | None:
        """Note the files of the workspace right before a command (see gate.tool.ChangingTool).

        INVARIANT: what a background command changes between two calls never counts as a change by the later call.
        """
        if self._changes is None:
            return None
        writing = frozenset(self.jobs.writing) if self.jobs is not None else frozenset[str]()
        if writing:
            self._changes.outdate()
        compare = self._changes.note(effects, policy)
        return None if compare is None else partial(self._compared, compare, writing)

    def _compared(self, compare: CompareFiles, writing: frozenset[str]) -> Mapping[str, JsonValue]:
        """Return the changes, with the names of the background commands that could write at the same time."""
        changes = compare()
        names = writing.union(self.jobs.writing) if self.jobs is not None else writing
        return {**changes, "beside": list[JsonValue](sorted(names))} if names else changes

    def outdate_files(self) -> None:
        """Make the next `note_files` look again (see gate.tool.ChangingTool)."""
        if self._changes is not None:
            self._changes.outdate()

    def run(
        self,
        start: CommandStart,
        effects: Effects,
        *,
        seconds_left: float | None = None,
        lending: AbstractContextManager[LentTerminal] | None = None,
        neighbour: Neighbour | None = None,
    ) -> ToolOutput:
        """Run a command to its end within `effects`, and return its output and exit status.

        It takes at most `seconds_left`, the remaining time of the run. `lending` lends it the user's terminal. With
        `neighbour`, it runs in parallel with others, on any thread. Raises ToolError if it cannot start or be confined.
        """
        if seconds_left is not None and seconds_left < start.seconds:
            start = replace(start, seconds=round(seconds_left, 1), cut_by=", when the time of the run was over")
        spill = self._outputs.spill() if self._outputs is not None and lending is None else None
        capture = self._capture(spill)
        try:
            with lending or nullcontext() as lent:
                result, walls, network = self._run(
                    start,
                    effects,
                    capture,
                    lent=lent,
                    live=lent or self._live(neighbour),
                    stops=self._stops if neighbour is None else neighbour.stops,
                )
            output = _output(start, capture, result, walls, effects, lent=lent is not None, stays=self.jobs is not None)
            return _with_network(output, effects, network)
        except OSError as error:
            raise _not_started(start, error) from None
        finally:
            if spill is not None:
                spill.close()

    def begin(
        self, start: CommandStart, effects: Effects, name: str, command: str, *, neighbour: Neighbour | None = None
    ) -> ToolOutput:
        """Start a command in the background within `effects`. Return its output after FIRST_SECONDS, or its end.

        `name` is its name among the jobs of the session, and `command` its text in one line. Raises ToolError if it cannot
        start or be confined.
        """
        if self.jobs is None:
            raise ToolError("Nothing can run in the background here.")
        ends: list[tuple[Ended, HeldTo | None, CommandNetwork | None]] = []

        def work(job: BackgroundJob) -> Ended:
            end = self._run(start, effects, job.output, stops=job.stops, on_start=job.note_start)
            ends.append(end)
            if end[2] is not None:
                job.facts = end[2].fields
            return end[0]

        call = None if neighbour is None else neighbour.call
        serves = self.walls.has_namespaces and not (effects.network or effects.hosts)
        job = self.jobs.start(name, command, work, writes=effects.may_write, serves=serves, call=call)
        try:
            job.wait(FIRST_SECONDS)
        except BaseException:
            job.stop(Stopper.PERSON)
            job.wait(END_SECONDS)
            raise
        goes_on = job.is_running  # looked up before the output is read, so that the last output is not lost
        capture = self._capture()
        capture.add(job.read().encode())
        if goes_on:
            notes = [
                f"[{name} runs in the background until the session ends; read its new output and stop it with job]"
            ]
            if not (effects.network or serves):
                reason = "it has a network of its own" if effects.hosts else "no network can be shared on this machine"
                notes.append(f"[other calls cannot reach its ports: {reason}]")
            return _still_running(capture, name, notes)
        self.jobs.forget(job)
        if isinstance(job.error, OSError):
            raise _not_started(start, job.error) from None
        if job.error is not None:
            raise job.error
        result, walls, network = ends[0]
        return _with_network(_output(start, capture, result, walls, effects, lent=False), effects, network)

    def _capture(self, spill: Spill | None = None) -> Capture:
        """Return a collector of output within the limits. `spill` gets all of an output that is too long."""
        return Capture(result_characters(self.limits), spill)

    def _run(
        self,
        start: CommandStart,
        effects: Effects,
        output: TakesOutput,
        *,
        lent: LentTerminal | None = None,
        live: Live | LentTerminal | None = None,
        stops: Callable[[], int] | None,
        on_start: Callable[[], None] | None = None,
    ) -> tuple[Ended, HeldTo | None, CommandNetwork | None]:
        """Run a command to its end, within walls unless it runs unconfined. Raises ToolError and OSError.

        Return its end, the enforced confinement, and its separate network; the last two may be `None`. A command on a
        lent terminal has no time limit, as it waits for the user. `live`, `stops` and `on_start` are those of `run_group`.
        """
        from harness.process.command import STANDARD_PACE, run_group

        programs = self.environment["PATH"].split(":")
        bash = find_bash(programs)
        if not bash:
            raise ToolError(f"Cannot start {start.noun}: bash was not found.")
        confinement = self.walls.confinement(
            effects,
            self._temporary.path,
            self._protected(effects),
            terminal="" if lent is None else os.ttyname(lent.far),
            by_host=True,
            programs=programs,
        )
        network = None
        try:
            network = _network_of(effects, confinement)
            launch = Launch(
                argv=start.argv,
                executable=bash,
                cwd=start.cwd,
                environment={
                    **self._variables(effects, lent),
                    **({} if network is None else network.variables),
                    **start.variables,
                },
                network=network,
                confine=None if confinement is None else confinement.enter,
                starter=None if confinement is None else confinement.starter,
                prefix=() if confinement is None else confinement.prefix,
                descriptors=(*start.descriptors, *(() if confinement is None else confinement.descriptors)),
                terminal=lent,
            )
            result = run_group(
                launch,
                seconds=start.seconds if lent is None else math.inf,
                output=output,
                live=live,
                stops=stops,
                pace=self._pace or STANDARD_PACE,
                on_start=on_start,
            )
            if network is not None:
                network.close()
            if confinement is None:
                return result, None, network
            held_to = HeldTo(
                walls=confinement.walls,
                gaps=confinement.gaps,
                has_own_tmp=confinement.has_own_tmp,
                by_rule=effects.hold,
            )
            return result, held_to, network
        finally:
            if network is not None:
                network.close()
            if confinement is not None:
                confinement.close()

    def _protected(self, effects: Effects) -> Sequence[str]:
        """Return the protected places to keep unchanged. The gate looked at them before the command."""
        is_open = effects.looks_only or effects.opens_places or effects.enforcement is Enforcement.OFF
        return () if is_open else self.places.holdable_paths

    def _live(self, neighbour: Neighbour | None) -> Live | None:
        """Return the receiver of a command's output.

        With `neighbour`, output is passed on in the order of the calls.
        """
        if self._on_output is None:
            return None
        return Live(self._on_output if neighbour is None else partial(neighbour.in_turn, self._on_output))

    def _variables(self, effects: Effects, lent: LentTerminal | None) -> Mapping[str, str]:
        """Return the environment of a command. Only a command that may write gets a folder for temporary files."""
        variables: Mapping[str, str] = self.environment
        if lent is not None:
            variables = at_a_terminal(variables, lent.environment)
        if not effects.looks_only:
            variables = {**variables, "TMPDIR": self._temporary.path()}
        if effects.write is None and effects.enforcement is not Enforcement.OFF and self.walls.confines:
            variables = {**variables, **cache_variables(effects, self._temporary.path())}
        if not (effects.looks_only or effects.sockets or effects.reaches):
            variables = {**variables, **walled_variables()}
        if not effects.unasked:
            return variables
        return {**variables, **unasked_variables(effects, self.environment["PATH"], self.workspace.root)}


def _network_of(effects: Effects, confinement: Confinement | None) -> CommandNetwork | None:
    """Return the network of a command that may reach only some hosts. `None` for other commands, or if unavailable."""
    if confinement is None or not confinement.walls.own_network:
        return None
    from harness.tools.command_network import CommandNetwork

    return CommandNetwork(effects.hosts)


def _with_network(output: ToolOutput, effects: Effects, network: CommandNetwork | None) -> ToolOutput:
    """Return `output` with notes on the connections, if the command may reach only some hosts."""
    if not effects.hosts or effects.network or effects.enforcement is Enforcement.OFF:
        return output
    from harness.tools.command_network import why_no_hosts

    if network is not None:
        notes = network.notes(failed=output.status is not ResultStatus.OK)
    else:
        notes = [
            f"[no network: it may be reached by host only, and {why_no_hosts() or 'nothing confines commands here'}]"
        ]
    body, newline, last_line = output.content.rpartition("\n")
    return replace(
        output,
        content=f"{body}{newline}" + "\n".join((*notes, last_line)),
        extra=output.extra if network is None else {**output.extra, **network.fields},
    )


def _output(
    start: CommandStart,
    capture: Capture,
    result: Ended,
    held_to: HeldTo | None,
    effects: Effects,
    *,
    lent: bool,
    stays: bool = False,
) -> ToolOutput:
    """Return the result of a command.

    `held_to` is the confinement that the kernel enforced. With `lent`, the command had the user's terminal. Its output
    there is only for the user, and left out of the result. `stays` tells whether commands can run in the background.
    """
    printed = ReadableOutput(text=NOT_KEPT, truncated=True) if lent else capture.readable()
    body = printed.text or "(no output)"
    status, exit_code, last_line = _end_of(start, result)
    notes, jobs = _notes(result), _jobs_ended(result)
    if jobs and stays:
        notes.append(IN_BACKGROUND)
    if effects.left_out:
        notes.append(left_out_note(effects))
    elif held_to is not None:
        notes += wall_notes(printed.text, held_to, failed=status is not ResultStatus.OK)
    return ToolOutput(
        content="\n".join((body.removesuffix("\n"), *notes, last_line)),
        status=status,
        exit_code=exit_code,
        output_bytes=capture.total,
        truncated=printed.truncated,
        printed=printed.text,
        terminal=lent,
        extra={"jobs_ended": jobs} if jobs else {},
    )


def _still_running(capture: Capture, name: str, notes: Sequence[str]) -> ToolOutput:
    """Return the result of a call whose command goes on in the background."""
    printed = capture.readable()
    body = (printed.text or "(no output yet)").removesuffix("\n")
    return ToolOutput(
        content="\n".join((body, *notes)),
        output_bytes=capture.total,
        truncated=printed.truncated,
        printed=printed.text,
        extra={"background": name},
    )


def _not_started(start: CommandStart, error: OSError) -> ToolError:
    """Return the error of a command that could not be confined or started."""
    if isinstance(error, NotConfinedError):
        return ToolError(f"Cannot confine {start.noun}, which was not run: {error.strerror}.")
    return ToolError(f"Cannot start {start.noun}: {error.strerror or error}.")


def _jobs_ended(result: Ended) -> int:
    """Return the number of processes that were left running by a command that had ended, and were ended with its call."""
    by_itself = (CommandEnding.EXITED, CommandEnding.SIGNALLED, CommandEnding.UNKNOWN)
    return len(result.terminated) if result.ending in by_itself else 0


def _notes(result: Ended) -> list[str]:
    """Return notes about processes that the command left running."""
    notes = []
    if jobs := _jobs_ended(result):
        subject = "1 background process was" if jobs == 1 else f"{jobs} background processes were"
        have = "has" if jobs == 1 else "have"
        notes.append(
            f"[{subject} still running and {have} been terminated: {visible_names(result.terminated, MAX_NAMES)}]"
        )
    if result.surviving:
        is_single = len(result.surviving) == 1
        subject = "1 process" if is_single else f"{len(result.surviving)} processes"
        notes.append(
            f"[{subject} could not be killed, and may still be running: {visible_names(result.surviving, MAX_NAMES)}]"
        )
    return notes


def _end_of(start: CommandStart, result: Ended) -> tuple[ResultStatus, int | None, str]:
    """Return the status, the exit code, and the last line of the result, from the end of a command.

    The exit code of a killed shell is 128 plus the number of the signal, as shells report it for their children.
    """
    seconds = f"{result.seconds:.1f} s"
    match result.ending:
        case CommandEnding.EXITED:
            status = ResultStatus.OK if result.status == 0 else ResultStatus.FAILED
            return status, result.status, f"[exit code {result.status}, {seconds}]"
        case CommandEnding.SIGNALLED:
            code = None if result.status is None else 128 + result.status
            return (
                ResultStatus.FAILED,
                code,
                f"[killed by signal {result.status}{_signal_name(result.status)}, {seconds}]",
            )
        case CommandEnding.TIMED_OUT:
            note = f"[timed out after {start.seconds:g} s{start.cut_by}; process tree killed]"
            return ResultStatus.TIMEOUT, None, note
        case CommandEnding.INTERRUPTED:
            return ResultStatus.INTERRUPTED, None, f"[interrupted by user after {result.seconds:.0f} s]"
        case CommandEnding.UNKNOWN:
            return ResultStatus.FAILED, None, f"[ended with an unknown status, {seconds}]"
        case _:
            assert_never(result.ending)


def _signal_name(number: int | None) -> str:
    try:
        return f" ({signal.Signals(number or 0).name})"
    except ValueError:
        return ""  # a real-time signal
