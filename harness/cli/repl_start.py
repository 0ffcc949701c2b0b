"""What comes before the prompt is there: the conversation to go on with, trust in the folder's policy, the first run."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping

from harness.cli.look import Look, look_of
from harness.cli.resuming import FORKED, RESUMED, Carried, carried_from, named, newest, refuse_its_log
from harness.cli.setup import Parts
from harness.cli.state import State, here
from harness.cli.trusting import trusted_or_not
from harness.errors import UsageError
from harness.tool import IN_PROCESS

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from harness.actions import Action, Effects
    from harness.approval import Approval
    from harness.policy import Verdict


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


def parts_of(arguments: Namespace, environment: Mapping[str, str]) -> Parts | int:
    """Return the parts of the session, or the exit code where there is no model and the person was told the ways to one.

    Before that they are asked, once for each content, whether they trust the policy that came with the folder. Raises
    HarnessError.
    """
    look = look_of(sys.stdout, environment, ascii_only=arguments.ascii, screen_reader=arguments.screen_reader)
    told = trusted_or_not(
        State.of(environment), here(arguments.cwd), lambda action, verdict: _asked(look, environment, action, verdict)
    )
    if told:
        sys.stdout.write(f"{told}\n")
        sys.stdout.flush()
    try:
        return Parts(arguments, environment, fallback="default")
    except UsageError as error:
        from harness.cli.first_run import first_run

        code = first_run(error, environment, look)
        if code is None:
            raise
        return code


def _asked(look: Look, environment: Mapping[str, str], action: Action, verdict: Verdict) -> Approval:
    """Ask before there is a session: with the settings' standard values."""
    from harness.cli.terminal.approver import terminal_approver
    from harness.cli.terminal.screen import Screen
    from harness.interrupt import Interrupt

    screen = Screen(sys.stdout, look)
    ask = terminal_approver(screen, Interrupt(), _in_process, environment=environment)
    return ask(action, verdict)


def _in_process(tool: str, effects: Effects) -> str:  # noqa: ARG001 - what holds a call to its effects, here no call
    return IN_PROCESS
