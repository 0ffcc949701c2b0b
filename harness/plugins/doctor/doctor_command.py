"""`harness doctor`: test the walls of this machine. Needs no model, key or network."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping

from harness import __version__
from harness.actions import JsonValue
from harness.errors import UsageError
from harness.files.segments import StoreLimits, stored_bytes
from harness.paths import is_within
from harness.plugins.doctor.attempts import ATTEMPTS, ENVIRON, REQUIRED, Behind, WallAttempt
from harness.plugins.doctor.trials import NO_WALLS, REFUSED, Scene, Trial, TrialOutcome, make
from harness.process.hardening import undumpable
from harness.process.own_code import own_code
from harness.process.start import find_bash
from harness.record import Record
from harness.safe_files import read_small
from harness.sandbox import Machine, Walls, describe, enforces, hides_where_it_may_write, missing, tried
from harness.sandbox.seatbelt_trial import machine_here
from harness.session.exits import Exit
from harness.session.state import State, current_folder
from harness.terminal.console import FinishedOutput
from harness.terminal.styles import Line, Tone
from harness.terminal.tables import labelled
from harness.text.amounts import size_of_bytes
from harness.tools.command_walls import CONTAINER_HINT

_TONES = {
    TrialOutcome.STOPPED: Tone.GOOD,
    TrialOutcome.WORKS: Tone.GOOD,
    TrialOutcome.ALLOWED: Tone.WARNING,
    TrialOutcome.CLOSED: Tone.QUIET,
    TrialOutcome.SKIPPED: Tone.QUIET,
    TrialOutcome.NOT_STOPPED: Tone.BAD,
    TrialOutcome.FAILS: Tone.BAD,
    TrialOutcome.UNCLEAR: Tone.BAD,
}

WallsOf = Callable[[Scene], Mapping[Behind, Walls]]


class MachineFindings(Record):
    """Facts about the machine and the user, before any trial."""

    system: str
    machine: Machine
    bash: str
    """Path of bash. Empty if it is missing."""
    state: str
    state_writable: bool
    contents: int = 0
    """Total size in bytes of the contents kept around commands, for undo."""
    root: bool
    no_own_network: str = ""
    """Reason why commands cannot have a separate network, which is needed to permit single hosts. Empty if they can."""
    code: tuple[str, ...] = ()
    """The folders of the program, its dependencies, and Python."""
    code_inside: tuple[str, ...] = ()
    """The folders of `code` inside the current folder. If that is the workspace, commands could write them."""


class Report(Record):
    """All findings."""

    findings: MachineFindings
    trials: tuple[Trial, ...]
    environment_closed: bool
    """Whether even a command without walls cannot read the environment with which the harness was started."""

    @property
    def holds(self) -> bool:
        """Whether this machine enforces everything that a policy with `required = true` relies on."""
        return enforces(self.findings.machine) and not self.failures

    @property
    def failures(self) -> int:
        """Number of attempts that show a failure."""
        return sum(trial.outcome.bad and self.relies_on(trial.attempt) for trial in self.trials)

    def relies_on(self, attempt: WallAttempt) -> bool:
        """Return whether a policy with `required = true` relies on the result of this attempt."""
        return attempt.ground in REQUIRED and (
            attempt.walls is not Behind.MASKED or hides_where_it_may_write(self.findings.machine)
        )


def doctor_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Examine this machine (with --model, the model), and print the findings.

    Return the exit code: 2 if commands cannot be confined. Raises UsageError if temporary files, processes or threads
    cannot be created.
    """
    if arguments.model is not None:
        from harness.plugins.doctor.doctor_model import doctor_model

        return doctor_model(arguments, environment)
    for flag in ("provider", "base_url", "api", "cwd"):
        if getattr(arguments, flag):
            raise UsageError(f"--{flag.replace('_', '-')} is about the model: say `harness doctor --model` too")

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a parent may have ignored it; then exit codes would be lost
    try:
        report = examine(machine_here(State.of(environment).state), environment)
    except (OSError, RuntimeError) as error:  # Python raises RuntimeError if a thread cannot be started
        raise UsageError(f"nothing could be tried: {error}") from None
    return tell(report, as_json=arguments.json, environment=environment)


def examine(
    machine: Machine, environment: Mapping[str, str], walls: WallsOf = Scene.walls, *, kernel: str | None = None
) -> Report:
    """Test the `walls` on `machine` (from `probe`), and return the findings. Takes less than a second.

    `kernel` is the text of `/proc/version` (default: that of this machine).

    Permanently closes /proc/PID/environ of this process, as a session does. Raises OSError if temporary files cannot be
    created.
    """
    machine = tried(machine)
    findings = _findings(machine, environment, _kernel() if kernel is None else kernel)
    with Scene(findings.bash, environment) as scene:
        # Other systems have no walls, and half of the attempts do not exist there.
        attempts = ATTEMPTS if findings.system.startswith("Linux ") else ()
        trials = make(attempts, scene, machine, walls(scene))
        undumpable()  # after the trials, since an attempt that fails without walls proves nothing about them
        closed = scene.say(ENVIRON, None).startswith(REFUSED)
    return Report(findings=findings, trials=trials, environment_closed=closed)


def tell(report: Report, *, as_json: bool, environment: Mapping[str, str]) -> int:
    """Write the report to stdout and return the exit code."""
    if as_json:
        sys.stdout.write(json.dumps(_fields(report), indent=2) + "\n")
        return Exit.DONE if report.holds else Exit.USAGE
    console = FinishedOutput(environment)
    console.table(labelled(_machine_lines(report)))
    for ground, trials in itertools.groupby(report.trials, key=lambda trial: trial.attempt.ground):
        console.line(f"\n{ground.value}")
        console.table(labelled(_tried(trials, has_walls=enforces(report.findings.machine))))
    for line in _verdict_lines(report):
        console.line(line.text, line.tone)
    return Exit.DONE if report.holds else Exit.USAGE


def _leave(number: int, frame: object) -> None:  # noqa: ARG001 - what signal.signal calls
    """Exit in order, so that the temporary folder is removed."""
    sys.exit(128 + number)


def _kernel() -> str:
    """Return the kernel's own words about itself. Empty without any."""
    return (read_small("/proc/version", 4096) or b"").decode("utf-8", "replace")


def variant_of(kernel: str) -> str:
    """Return the name of a system around the kernel, from the kernel's own words. Empty for an ordinary machine."""
    words = kernel.casefold()
    if "microsoft" not in words:
        return ""
    return " (WSL2)" if "wsl2" in words else " (WSL1: it has no Linux kernel, so no walls; use WSL2)"


def _findings(machine: Machine, environment: Mapping[str, str], kernel: str) -> MachineFindings:
    system = os.uname()
    state = State.of(environment)
    code, folder = own_code().folders, os.path.realpath(current_folder())
    return MachineFindings(
        system=f"{system.sysname} {system.release} {system.machine}{variant_of(kernel)}",
        machine=machine,
        bash=find_bash(os.get_exec_path(environment)),
        state=state.state,
        state_writable=_writable(state.state),
        contents=sum(stored_bytes(state.trees).values()),
        root=os.geteuid() == 0,
        code=code,
        code_inside=tuple(path for path in code if is_within(path, folder)),
        no_own_network=machine.no_namespaces or "",
    )


def _writable(folder: str) -> bool:
    """Return whether files can be created in a folder, or the folder itself if missing. Creates neither."""
    folder = os.path.abspath(folder)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def _machine_lines(report: Report) -> Iterator[tuple[str, str, Tone]]:
    """Yield the facts about the machine: a label, a text, and its tone."""
    findings = report.findings
    python = ".".join(str(part) for part in sys.version_info[:3])
    yield "harness", f"{__version__}, Python {python}, {findings.system}", Tone.PLAIN
    yield "walls", describe(findings.machine), Tone.PLAIN if enforces(findings.machine) else Tone.BAD
    for text in missing(findings.machine):
        yield "missing", text, Tone.WARNING
    if findings.machine.bubblewrap:
        yield "bubblewrap", findings.machine.bubblewrap, Tone.PLAIN
    if findings.no_own_network:
        yield (
            "missing",
            f"network by host: {findings.no_own_network}; such commands get no network",
            Tone.WARNING,
        )
    else:
        yield "network", "a policy can limit commands to single hosts (network = [...])", Tone.PLAIN
    yield (
        "bash",
        findings.bash or "none: commands cannot run",
        Tone.PLAIN if findings.bash else Tone.BAD,
    )
    yield "program", ", ".join(findings.code), Tone.PLAIN
    if findings.code_inside:
        yield "program", f"{', '.join(findings.code_inside)} {_own_code_told(findings)}", Tone.WARNING
    can = "writable" if findings.state_writable else "NOT WRITABLE: without a log no session starts"
    yield (
        "state folder",
        f"{findings.state} ({can})",
        Tone.PLAIN if findings.state_writable else Tone.BAD,
    )
    limits = StoreLimits()
    size = f"{size_of_bytes(findings.contents)} of files from before and after commands"
    bounds = f"at most {size_of_bytes(limits.store)} a workspace, {size_of_bytes(limits.all_stores)} in all"
    yield "undo", f"{size} ({bounds}; `harness audit prune` removes those older than {limits.days} days)", Tone.PLAIN
    if findings.root:
        text = "root: limits and file modes do not apply, and a gap in the walls opens the machine; "
        text += "run harness as an ordinary user"
        yield "user", text, Tone.WARNING
    if report.environment_closed:
        yield "environment", "commands cannot read the environment of harness, with its keys", Tone.PLAIN
    else:
        reason = "root can read every process" if findings.root else "the kernel permits it"
        text = f"commands without walls can read the environment of harness, with its keys: {reason}"
        yield "environment", text, Tone.WARNING


def _own_code_told(findings: MachineFindings) -> str:
    if hides_where_it_may_write(findings.machine) and all(
        os.path.exists(f"{path}/pyvenv.cfg") for path in findings.code_inside
    ):
        return "no command in this folder can write it: namespaces or bubblewrap protect it"
    return "commands in this folder can write it, and a session ends before it loads changed code: install it elsewhere"


def _tried(trials: Iterable[Trial], *, has_walls: bool) -> Iterator[tuple[str, str, Tone]]:
    """Yield the result of each attempt, its description, and the tone."""
    for trial in trials:
        detail = _detail(trial, has_walls=has_walls)
        text = f"{trial.attempt.action}: {detail}" if detail else trial.attempt.action
        yield f"  {trial.outcome.value}", text, _TONES[trial.outcome]


def _detail(trial: Trial, *, has_walls: bool) -> str:
    """Return a note on the result, or an empty string. The reason for missing walls is shown elsewhere, once."""
    if trial.within.startswith(NO_WALLS):
        return trial.within if has_walls else ""
    match trial.outcome:
        case TrialOutcome.STOPPED | TrialOutcome.WORKS:
            return ""
        case TrialOutcome.ALLOWED | TrialOutcome.NOT_STOPPED:
            return trial.attempt.reason
        case TrialOutcome.CLOSED:
            return f"{trial.without} without walls too"
        case TrialOutcome.SKIPPED:
            return trial.without
        case TrialOutcome.FAILS | TrialOutcome.UNCLEAR:
            return trial.within


def _verdict_lines(report: Report) -> Iterator[Line]:
    yield Line(tone=Tone.PLAIN, text="")
    if report.holds:
        yield Line(tone=Tone.GOOD, text="This machine can confine commands, so policies with required = true (ci) run.")
    elif enforces(report.findings.machine):
        text = (
            f"The walls do not hold here: {report.failures} of the attempts above failed. Do not rely on policies with "
        )
        yield Line(tone=Tone.BAD, text=f"{text}required = true (ci), and please report this.")
    else:
        text = "This machine cannot confine commands, so policies with required = true (ci) do not run."
        yield Line(tone=Tone.BAD, text=text)
        yield Line(tone=Tone.PLAIN, text=f"What to do: {_remedy(report.findings)}.")


def _remedy(findings: MachineFindings) -> str:
    if not findings.system.startswith("Linux "):
        return "run harness on Linux, in a container or a virtual machine"
    return CONTAINER_HINT


def _fields(report: Report) -> dict[str, JsonValue]:
    """Return the report as one object."""
    findings = report.findings
    return {
        "harness": __version__,
        "python": sys.version.split()[0],
        "system": findings.system,
        "level": describe(findings.machine),
        "landlock": findings.machine.landlock,
        "seccomp": findings.machine.seccomp or None,
        "bubblewrap": findings.machine.bubblewrap or None,
        "missing": list(missing(findings.machine)),
        "network_by_host": not findings.no_own_network,
        "bash": findings.bash or None,
        "own_code": list(findings.code),
        "own_code_in_folder": list(findings.code_inside),
        "state_folder": findings.state,
        "state_writable": findings.state_writable,
        "content_bytes": findings.contents,
        "root": findings.root,
        "environment_closed": report.environment_closed,
        "attempts": [_trial_fields(trial) for trial in report.trials],
        "confines": report.holds,
        "exit_code": int(Exit.DONE if report.holds else Exit.USAGE),
    }


def _trial_fields(trial: Trial) -> dict[str, JsonValue]:
    attempt = trial.attempt
    return {
        "about": attempt.ground.value,
        "what": attempt.action,
        "walls": attempt.walls.value,
        "expected": attempt.expected.value,
        "outcome": trial.outcome.value,
        "without_walls": trial.without,
        "behind_walls": trial.within,
    }
