"""The programs that an agent starts for each call: `harness hook AGENT`, and `harness exec` for an allowed command.

INVARIANT: every error becomes a refusal in the form that the agent obeys. Both programs must start quickly, so they
import neither argparse nor colours.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import harness
from harness.errors import HarnessError, UsageError
from harness.safe_files import make_private
from harness.session.asked_call import AskedCall, HookParts, quoted
from harness.session.state import State

if TYPE_CHECKING:
    from harness.actions import Action, JsonValue
    from harness.files.workspace import Workspace
    from harness.gate.approval import Approval
    from harness.gate.call_checks import CallChecks
    from harness.gate.grants_in_force import GrantStore
    from harness.gate.records import Advice
    from harness.log.action_log import ActionLog
    from harness.plugins.agents.guarded_agent import GuardedAgent, HookAnswer
    from harness.policy.policy import Policy
    from harness.policy.session_grants import Grant
    from harness.policy.verdict import Verdict

OWN_SECONDS = 20.0
"""Maximum seconds of our own work for a decision; then the call is refused. Every agent waits 30 s or more."""
MOST_SECONDS = 570.0
"""Maximum seconds in total, including waits. Agents wait 600 s, and most of them run the call after that."""
WAIT_SECONDS = 330.0
"""Maximum seconds to wait for another call of the same session, somewhat longer than a question waits (WAITS_SECONDS)."""
REFUSES = "harness refuses this call, since it cannot be judged"
LEAST_SECONDS = 5.0
"""Minimum seconds that a hook gets for the rest of its work after a question."""
HOOK_USAGE = "harness hook AGENT [--policy FILE ...]"
EXEC_USAGE = "harness exec --ticket NAME -- COMMAND"


def _ignore_wait(is_waiting: bool) -> None:
    """Do nothing."""


class HookTime:
    """The time limit of a hook. The timer of the process (setitimer(2)) sends SIGALRM when the time is over."""

    def __init__(
        self,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        on_wait: Callable[[bool], None] = _ignore_wait,
    ) -> None:
        """Start the timer; `monotonic` is a clock in seconds. `on_wait` is called when a wait begins and ends."""
        self._on_wait = on_wait
        self._monotonic = monotonic
        self._end = monotonic() + MOST_SECONDS
        self._set(OWN_SECONDS)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the clock of our own work during a wait. The total limit still applies."""
        remaining, _ = signal.getitimer(signal.ITIMER_REAL)
        self._set(MOST_SECONDS)
        self._on_wait(True)
        try:
            yield
        finally:
            self._on_wait(False)
            self._set(max(remaining, LEAST_SECONDS))

    def _set(self, seconds: float) -> None:
        remaining = max(self._end - self._monotonic(), 0.001)  # 0 would turn the timer off
        signal.setitimer(signal.ITIMER_REAL, min(seconds, remaining))


def start_for_agent(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run the command of an agent, given as arguments without the program, and exit. Return for any other command."""
    closed = _fill_closed_streams()
    if words[0] == "exec":
        _execute(words[1:], environment)
    code = answer_event(words, environment, has_stdout=1 not in closed)
    if code is not None:
        os._exit(code)


def answer_event(
    words: Sequence[str],
    environment: Mapping[str, str],
    *,
    process: int = 0,
    has_stdout: bool = True,
    on_wait: Callable[[bool], None] = _ignore_wait,
) -> int | None:
    """Answer the event on stdin, and return the exit code. `None` if `words`, after the program, name no agent.

    `process` is the process that the agent started, if another one answers for it. An event that takes too long ends
    this process. `on_wait` is called when a wait for a person begins and ends.
    """
    from harness.plugins.agents.guarded_agent import AGENTS, agent_named, refusal

    fail: Callable[[str], HookAnswer] = refusal
    try:
        if words[1:2] == [] or words[1] not in AGENTS:
            return None
        agent = agent_named(words[1])
        fail = agent.fail

        def leave_too_late(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - the signature of a signal handler
            os._exit(_write(fail(f"{REFUSES}: it took longer than it may")))

        signal.signal(signal.SIGALRM, leave_too_late)
        hook_time = HookTime(on_wait=on_wait)
        if not has_stdout:
            raise UsageError("stdout is closed")  # noqa: TRY301 - every error is reported below
        reply = _answer(agent, words[2:], environment, hook_time, process)
    except BaseException as error:  # noqa: BLE001 - every error refuses the call
        error_text = str(error) if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
        reply = fail(f"{REFUSES}: {error_text}")
    signal.setitimer(signal.ITIMER_REAL, 0)
    return _write(reply)


def _fill_closed_streams() -> frozenset[int]:
    """Open /dev/null for each closed standard stream, and return the numbers of these streams.

    So no file that is opened later gets such a number. The replacements are closed at execve(2): a command finds the
    streams closed, as in the agent's own shell.
    """
    closed = set()
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            closed.add(descriptor)
            null = os.open(os.devnull, os.O_RDWR)
            if null != descriptor:
                os.dup2(null, descriptor, inheritable=False)
                os.close(null)
    return frozenset(closed)


def _answer(
    agent: GuardedAgent, words: Sequence[str], environment: Mapping[str, str], hook_time: HookTime, process: int
) -> HookAnswer:
    from harness.plugins.agents.answering import answer

    if len(words) % 2 or any(flag != "--policy" for flag in words[::2]):
        raise UsageError(f"usage: {HOOK_USAGE}")
    policy = words[1::2] or None
    data = b"".join(iter(lambda: os.read(0, 1 << 20), b""))
    return answer(agent, data, hook_parts(environment, policy, clock_stopped=hook_time.stopped, process=process))


def hook_parts(
    environment: Mapping[str, str],
    policies: Sequence[str] | None,
    *,
    clock_stopped: Callable[[], AbstractContextManager[object]] = nullcontext,
    pause: Callable[[float], None] = time.sleep,
    process: int = 0,
) -> HookParts:
    """Return the parts of harness that a hook needs. `policies` names the policies that decide (`None`: the default).

    `pause` waits for a user's answer; `clock_stopped` stops the clock of our own work during that wait. `process` is the
    process that the agent started (0: this one).
    """
    from harness.files.before_images import BeforeImages
    from harness.session.environment_secrets import redactor_for, secrets_of

    state = State.of(environment)
    make_private(state.agents)
    home = environment.get("HOME")

    def note_head(log: ActionLog, closed: bool) -> None:
        if closed or log.count < 8:
            state.record_head(log, closed=closed)

    def host_fields() -> Mapping[str, JsonValue]:
        from harness.session.session_log import who_and_where

        return who_and_where()

    def grants_at(workspace: str) -> tuple[Sequence[Grant], GrantStore]:
        from harness.session.kept_grants import KeptGrants

        grant_store = KeptGrants(state.grants, state.name_of(workspace), workspace)
        return grant_store.read().grants, grant_store

    def ask(call: AskedCall, policy: Policy) -> Approval:
        from harness.session.approver.approver_here import ask_here

        return ask_here(
            call, policy, state, environment, redact=redactor.redact, clock_stopped=clock_stopped, sleep=pause
        )

    def stops_unjudged(workspace: str) -> bool:
        from harness.session.config.config_file import load_config  # only after such a call

        try:
            setting = load_config(state.config_file, workspace).values.get("agents.unjudged")
        except UsageError:  # the call must be recorded all the same
            return True
        return setting is None or setting.value != "warn"

    def checks(workspace: Workspace) -> CallChecks:
        from harness.session.extensions.hooks_here import hooks_here

        return hooks_here(state, workspace.root, environment, redactor.redact, clock_stopped=clock_stopped)

    unmasked = (environment.get("PWD", ""), home or "")
    redactor = redactor_for(state, environment, secrets_of(environment), unless=unmasked)
    return HookParts(
        folder=state.agents,
        home=home,
        environment=environment,
        redactor=redactor,
        images=BeforeImages(state.before_images),
        hidden=state.guarded,
        policy_at=partial(_policy_at, state, policies, environment),
        new_log=state.new_log_path,
        note_head=note_head,
        grants_at=grants_at,
        ask=ask,
        checks=checks,
        advise=_advise,
        runner=f"{own_command(quoted)} exec",
        host_fields=host_fields,
        stops_unjudged=stops_unjudged,
        wait_seconds=WAIT_SECONDS,
        clock_stopped=clock_stopped,
        process=process,
        **({"policy_name": " and ".join(policies)} if policies else {}),
    )


def _policy_at(
    state: State, policies: Sequence[str] | None, environment: Mapping[str, str], workspace: Workspace, sha256: str
) -> Policy:
    """Return the policy in force; see `HookParts.policy_at`. Under it, no call may write the user's approver."""
    from harness.session.extensions.hooks_here import may_declare
    from harness.session.policies import assemble

    policy = assemble(state, workspace.root, names=policies, fallback="default", examples=False)
    if policy.sha256 != sha256:
        policy = assemble(state, workspace.root, names=policies, fallback="default")
    if not may_declare(state.config_file, b"approver"):
        return policy
    from harness.session.approver.approver_here import guarding_approver

    return guarding_approver(policy, state, workspace.root, environment)


def _advise(policy: Policy, action: Action, verdict: Verdict) -> Advice:
    from harness.session.advice import advice_on  # only needed for a refusal

    return advice_on(policy, action, verdict)


def own_command(quoted: Callable[[str], str]) -> str:
    """Return the command line with which an agent's shell can start this program from any folder.

    `quoted` quotes a word for the shell.

    Like this process, the started program is isolated or not. An isolated Python loads no code from the current folder or
    through variables such as PYTHONPATH, which may lead into the workspace. See `harness hook install`.
    """
    if sys.flags.isolated:
        return f"{quoted(sys.executable)} -I -S {quoted(main_module())}"
    path = os.path.abspath(sys.argv[0])
    if path.endswith(".py") or not os.access(path, os.X_OK):
        return f"{quoted(sys.executable)} -P -m harness"
    return quoted(path)


def main_module() -> str:
    """Return the path of the module that starts this program.

    `python -I -S` with this path is the quickest start: isolated, and without packages until they are needed.
    """
    return os.path.join(os.path.dirname(os.path.abspath(harness.__file__)), "__main__.py")


def _write(reply: HookAnswer) -> int:
    """Write an answer in one piece, and return its exit code. If it cannot be written, the code refuses the call."""
    code = reply.code
    for descriptor, text in ((1, reply.stdout), (2, reply.stderr)):
        data = text.encode("utf-8", "replace")
        try:
            if data and os.write(descriptor, data) != len(data):
                code = code or 2
        except OSError:
            code = code or 2
    return code


def _execute(words: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Run the command of a ticket behind its walls, record its outcome, and exit with its exit code."""
    from harness.plugins.agents.confined_run import NOT_STARTED, run_confined, start_keeper

    try:
        from harness.plugins.agents.seen_outcome import note_files, record_begin, record_outcome
        from harness.plugins.agents.tickets import TicketFolder, split_name
        from harness.session.environment_secrets import redactor_for, secrets_of

        if len(words) != 4 or words[0] != "--ticket" or words[2] != "--":
            raise UsageError(f"usage: {EXEC_USAGE}")  # noqa: TRY301 - every error is reported below
        state = State.of(environment)
        session, name = split_name(words[1])
        folder = os.path.join(state.agents, session)
        ticket, call = TicketFolder(folder).take(name)
        if words[3] != ticket.command or _folder() != ticket.cwd:
            raise UsageError("the ticket is for another command, or another folder")  # noqa: TRY301
        start_keeper(ticket)
        unmasked = (ticket.cwd, environment.get("HOME", ""))
        redactor = redactor_for(state, environment, secrets_of(environment), unless=unmasked)
        record_begin(folder, redactor, call, wait_seconds=WAIT_SECONDS)
        compare = note_files(ticket, state.trees, environment)
        end = run_confined(ticket, environment, state.before_images, redactor)
        for note in (*end.notes, *(() if end.restored is None else (end.restored.words,))):
            _tell(f"harness: {note}\n")
        try:
            changes = None if compare is None else compare()
            record_outcome(folder, redactor, call, end, changes, wait_seconds=WAIT_SECONDS)
        except (HarnessError, OSError) as error:  # the command ran, so the agent must get its exit code
            _tell(f"harness: the command ran, and what it came to could not be recorded: {error}\n")
    except BaseException as error:  # noqa: BLE001 - after any error, the command does not run
        error_text = str(error) if isinstance(error, (HarnessError, OSError)) else f"{type(error).__name__}: {error}"
        _tell(f"harness: the command was not run: {error_text}\n")
        os._exit(NOT_STARTED)
    os._exit(end.code)


def _folder() -> str:
    """Return the resolved path of the current folder. Raises UsageError if it was removed."""
    try:
        return os.path.realpath(os.getcwd())
    except FileNotFoundError:
        raise UsageError("the current folder was removed: go to another one with `cd`") from None


def _tell(line: str) -> None:
    with suppress(OSError):
        os.write(2, line.encode("utf-8", "replace"))
