"""What comes before the prompt is there: the conversation to go on with, trust in the folder's policy, the first run."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping

from harness.cli.config.settings import TerminalSettings, settings_from
from harness.cli.console import look_from
from harness.cli.parts import SessionParts
from harness.cli.policy.trusting import trusted_or_not
from harness.cli.resume import FORKED, RESUMED, Carried, carried_from, named, newest, refuse_its_log
from harness.cli.state import State, here
from harness.cli.terminal.screen import Notices, Screen
from harness.errors import UsageError
from harness.gate.registry import IN_PROCESS

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from harness.actions import Action, Effects
    from harness.gate.approval import Approval
    from harness.policy.verdict import Verdict


def carried_over(arguments: Namespace, environment: Mapping[str, str]) -> Carried | None:
    """Return the conversation to go on with, if the person named one. Raises UsageError or LogError."""
    state, action = State.of(environment), arguments.action
    if not action and not arguments.resume:
        return None
    how = FORKED if action == "fork" else RESUMED
    name = arguments.session if action else None
    found = newest(state, here(arguments.cwd)) if name is None else named(state, name)
    carried = carried_from(state, found, how, turn=arguments.turn if action == "fork" else None)
    refuse_its_log(carried, arguments.log)
    return carried


def parts_of(arguments: Namespace, environment: Mapping[str, str]) -> SessionParts | int:
    """Return the parts of the session, or the exit code where there is no model and the person was told the ways to one.

    Before that they are asked, once for each content, whether they trust the policy that came with the folder: drawn, and
    with keys, as the configuration says. Raises HarnessError.
    """
    folder = here(arguments.cwd)
    terminal = settings_from(arguments, environment, folder).terminal
    look = look_from(terminal, environment)
    screen = Screen(sys.stdout, look, notices=Notices(terminal.notify.value))
    told = trusted_or_not(
        State.of(environment),
        folder,
        lambda action, verdict: _asked(screen, terminal, environment, action, verdict),
    )
    if told:
        screen.line(told)
    try:
        return SessionParts(arguments, environment)
    except UsageError as error:
        from harness.cli.demo.first_run import first_run

        code = first_run(error, environment, screen, dead_seconds=terminal.dead_seconds.value)
        if code is None:
            raise
        return code


def _asked(
    screen: Screen, terminal: TerminalSettings, environment: Mapping[str, str], action: Action, verdict: Verdict
) -> Approval:
    """Ask before there is a session."""
    from harness.cli.terminal.approver import terminal_approver
    from harness.interrupt import Interrupt

    ask = terminal_approver(
        screen, Interrupt(), _in_process, environment=environment, dead_seconds=terminal.dead_seconds.value
    )
    return ask(action, verdict)


def _in_process(tool: str, effects: Effects) -> str:  # noqa: ARG001 - what holds a call to its effects, here no call
    return IN_PROCESS
