"""`harness serve --stdio`. Only messages from and to the client use stdin and stdout."""

from __future__ import annotations

import signal
from argparse import Namespace
from collections.abc import Mapping
from importlib.util import find_spec

from harness.errors import UsageError
from harness.session.exits import Exit
from harness.session.own_folders import fix_modes
from harness.session.signals import take_endings
from harness.session.state import State
from harness.system import quiet_pipe
from harness.terminal.console import complain, own_streams

MISSING = "harness serve needs a package that is not installed: pip install 'permission-harness[acp]'"
NO_STDIO = (
    "harness serve speaks over stdin and stdout alone: type `harness serve --stdio`, or let your editor start that"
)


def serve_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Serve one client until it ends; return the exit code. Raises UsageError for errors before the start."""
    if not arguments.stdio:
        raise UsageError(NO_STDIO)
    if find_spec("acp") is None:
        raise UsageError(MISSING)
    from harness.plugins.acp.acp_agent import AcpAgent  # imports the package

    fix_modes(State.of(environment), complain)
    source, target = own_streams()
    waking, wake = quiet_pipe()
    agent = AcpAgent(arguments, environment, source, target, (waking, wake))
    numbers: list[int] = []

    def on_signal(number: int, _frame: object) -> None:
        numbers.append(number)
        agent.stop()

    # Another thread may receive the signal. Then the pipe wakes the main thread.
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    take_endings(on_signal)
    signal.signal(
        signal.SIGCHLD, signal.SIG_DFL
    )  # if the parent ignored it, the end of child processes could not be noticed
    problem = agent.run()
    if problem:
        return Exit.LOG
    if numbers:
        return Exit.INTERRUPTED if numbers[0] == signal.SIGINT else Exit.TERMINATED
    return Exit.DONE
