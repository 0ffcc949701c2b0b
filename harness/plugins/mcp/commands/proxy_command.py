"""`harness mcp proxy`: runs one MCP server behind the gate, and returns the exit code."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from argparse import Namespace
from collections.abc import Mapping

from harness.actions import Action, JsonValue
from harness.errors import LogError, UsageError
from harness.files.workspace import Workspace
from harness.gate.approval import Approval, Approver
from harness.log.action_log import ActionLog
from harness.messages import StopReason
from harness.paths import is_within
from harness.plugins.mcp.judging import fault_words
from harness.plugins.mcp.pins import PinFile, pins_folder
from harness.plugins.mcp.proxy import McpProxy, ProxyEnd, ProxyStop, as_its_client_would, begin_session, end_session
from harness.plugins.mcp.tool_catalog import ToolCatalog
from harness.policy.verdict import Verdict
from harness.process.piped_process import PipedProcess
from harness.session.asked_call import AskedCall
from harness.session.environment_secrets import redactor_for, secrets_of
from harness.session.exits import Exit
from harness.session.extensions.hooks_here import hooks_here
from harness.session.own_folders import fix_modes, named_log
from harness.session.policies import assemble
from harness.session.session_log import close_log, lost_log, opened_log, who_and_where
from harness.session.signals import take_endings
from harness.session.state import State, current_folder
from harness.session.waiting import WaitingList
from harness.terminal.console import complain
from harness.text.visible import visible_line

MODE = "mcp proxy"


NO_GRANTS = "calls of a server's tools cannot be granted"


def proxy_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Run the proxy until one side ends, and return the exit code. Raises HarnessError for errors before the start.

    Approval prompts are shown by `harness approve`, if it is running.
    """
    state = State.of(environment)
    fix_modes(state, complain)
    workspace = Workspace(current_folder(), environment.get("HOME"))
    log_path = named_log(arguments, workspace, state)
    policy = assemble(state, workspace.root, names=arguments.policy, fallback="default")
    redactor = redactor_for(
        state,
        environment,
        secrets_of(environment),
        unless=(workspace.root, environment.get("HOME", "")),
        tell=complain,
    )
    checks = hooks_here(state, workspace.root, environment, redactor.redact)
    words = tuple(arguments.server)
    command = visible_line(redactor.redact(shlex.join(words)), 10_000)
    pins = PinFile(pins_folder(state), arguments.name)
    pins.read()  # reports an invalid file before the server is started
    lost = lost_log(state, log_path)
    if lost is not None:
        complain(f"the log that was noted as {lost.file} is gone: {lost.words}; a new one begins there")
    log = opened_log(state, redactor, path=log_path, workspace=_log_of(workspace.root, state), tell=complain)
    fields: dict[str, JsonValue] = {
        "mode": MODE,
        "argv": list(sys.argv),
        **who_and_where(),
        "workspace": workspace.root,
        "server": arguments.name,
        "server_command": command,
    }
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a parent may have left it ignored; then no end could be learned
        begin_session(log, policy, fields)
        catalog = ToolCatalog(words, command, pins)
        try:
            process = PipedProcess(as_its_client_would(words, environment), "the server")
        except UsageError as error:
            end_session(log, StopReason.INTERNAL_ERROR, str(error), Exit.USAGE)
            raise
        approver = _approver(state, arguments.name, workspace.root, log)
        return _run(
            McpProxy(process, catalog, policy=policy, approver=approver, log=log, workspace=workspace, checks=checks)
        )
    finally:
        close_log(state, log)


def _approver(state: State, server: str, workspace: str, log: ActionLog) -> Approver:
    """Return a thread-safe approver that asks `harness approve`."""
    waiting = WaitingList(state.waiting)

    def ask(action: Action, verdict: Verdict) -> Approval:
        return waiting.ask(
            AskedCall(
                agent=f"a client of the MCP server {server}",
                session=log.session,
                workspace=workspace,
                confinement="none: the server does what it likes",
                level="",
                writes=(),
                action=action,
                verdict=verdict,
                offer=lambda: NO_GRANTS,
            )
        )

    return ask


def _run(proxy: McpProxy) -> int:
    """Run the proxy to its end, record the end, and return the exit code."""
    numbers: list[int] = []

    def on_signal(number: int, _frame: object) -> None:
        numbers.append(number)
        proxy.stop()

    take_endings(on_signal)
    proxy_end = proxy.run()
    code = _code_of(proxy_end, numbers)
    if proxy_end.fault is not None:
        complain(fault_words(proxy_end.fault))
    if not isinstance(proxy_end.fault, LogError):
        proxy.end(proxy_end, code)
    return code


def _log_of(folder: str, state: State) -> str:
    """Return the workspace under which the log is stored: `folder`, or the home folder if `folder` contains the state.

    Graphical clients start servers in `/`, which contains every folder.
    """
    return os.path.expanduser("~") if is_within(os.path.realpath(state.state), folder) else folder


def _code_of(proxy_end: ProxyEnd, signals: list[int]) -> int:
    match proxy_end.stop:
        case ProxyStop.FAULT:
            return Exit.LOG if isinstance(proxy_end.fault, LogError) else Exit.INTERNAL
        case ProxyStop.SIGNAL:
            return Exit.INTERRUPTED if signals[:1] == [signal.SIGINT] else Exit.TERMINATED
        case _:
            return proxy_end.server_code or Exit.DONE
