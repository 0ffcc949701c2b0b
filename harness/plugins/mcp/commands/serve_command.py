"""`harness mcp serve`: offers the harness's tools to an MCP client, and returns the exit code."""

from __future__ import annotations

import os
import platform
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import cached_property

from harness import __version__
from harness.actions import Action, JsonValue
from harness.errors import LogError, UsageError
from harness.files.repository import checked_out
from harness.files.workspace import Workspace
from harness.gate.approval import Approval, Approver
from harness.gate.gate import Gate
from harness.gate.options import GateOptions
from harness.gate.records import policy_fields
from harness.gate.registry import ToolRegistry
from harness.gate.tool import LimitedTool
from harness.interrupt import Interrupt
from harness.limits import strictest
from harness.plugins.mcp.served_call import ServedClient
from harness.plugins.mcp.tool_server import PermissionPrompt, Questions, ServerEnd, ServerStop, ToolServer
from harness.policy.destruction import destroys
from harness.policy.grant_offers import Offer
from harness.policy.verdict import Verdict
from harness.process.environment import child_environment
from harness.session.approver.configured_approver import ConfiguredApprover
from harness.session.asked_call import AskedCall
from harness.session.config.settings import settings_from
from harness.session.environment_secrets import redactor_for, secrets_of
from harness.session.exits import Exit
from harness.session.kept_grants import KeptGrants
from harness.session.own_folders import fix_modes, keep_own_folders, named_log, refuse_own_folders
from harness.session.policies import assemble
from harness.session.session_log import close_log, lost_log, opened_log, who_and_where
from harness.session.session_place import SessionPlace, extensions_of
from harness.session.session_rules import advise, checks_of, outside_of
from harness.session.session_tools import check_confinement, tools_in
from harness.session.shipped_plugins import permission_prompt
from harness.session.signals import take_endings
from harness.session.state import State, current_folder
from harness.session.waiting import WaitingList
from harness.terminal.asked_outside import AskedAlone
from harness.terminal.console import complain, own_streams
from harness.terminal.question import Question, question_rows, usual_here
from harness.terminal.question_dialog import WORD
from harness.text.visible import visible_line

MODE = "mcp serve"
NEEDS = "harness mcp serve needs the MCP SDK: pip install 'permission-harness[mcp]'"
WIDTH = 10_000
"""Maximum width of the rows of a question. It is large, since the client wraps the rows."""
SETTLE_SECONDS = 2.0
"""Seconds to wait at the end until the output to the client is written."""
INSTRUCTIONS = (
    "Work in the folder {folder} with these tools. Each call is decided by a policy before it runs: a result that begins "
    "with Denied or Blocked did not run, and says why."
)


def serve_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Serve until the client ends or a signal arrives, and return the exit code.

    Raises HarnessError for errors before the start.
    """
    if os.isatty(0):
        raise UsageError("harness mcp serve speaks with an MCP client on stdin and stdout: have the client start it")
    try:
        import harness.plugins.mcp.client_link  # noqa: F401 - fails before any file is opened
    except ModuleNotFoundError as error:
        raise UsageError(f"{NEEDS} ({error})") from None
    return _Serving(arguments, environment).run()


class _Serving:
    """One server, with its parts."""

    def __init__(self, arguments: Namespace, environment: Mapping[str, str]) -> None:
        """Prepare all parts except the link to the client. The log is opened last. Raises HarnessError."""
        self._forms = not arguments.no_forms
        state = State.of(environment)
        fix_modes(state, complain)
        workspace = Workspace(arguments.cwd or current_folder(), environment.get("HOME"), outputs=state.new_outputs())
        refuse_own_folders(workspace, state)
        log = named_log(arguments, workspace, state)
        policy = assemble(state, workspace.root, names=arguments.policy, fallback="default")
        settings = settings_from(arguments, environment, workspace.root)
        extensions, _ = extensions_of(settings, state, workspace.root, environment)
        keep_own_folders(workspace, state)
        self._interrupt = Interrupt()
        tools = tools_in(workspace, state, environment, self._interrupt, log=log)
        self._level = check_confinement(policy, tools)
        limits = strictest((policy.limits,)).filled()
        self._tools = ToolRegistry([tool.under(limits) if isinstance(tool, LimitedTool) else tool for tool in tools])
        self._place = place = SessionPlace(
            environment=environment,
            state=state,
            workspace=workspace,
            log=log,
            interrupt=self._interrupt,
            settings=settings,
            extensions=extensions,
            redactor=redactor_for(
                state,
                environment,
                secrets_of(environment),
                unless=(workspace.root, environment.get("HOME", "")),
                tell=complain,
            ),
        )
        self._checks = checks_of(place, complain)
        self._outside = outside_of(place, policy)
        self._policy = policy.guarding(*(self._outside.paths if self._outside is not None else ()))
        self._prompt: PermissionPrompt | None = None
        if arguments.permission_prompt:
            self._prompt = permission_prompt(workspace.root, state, environment, arguments.policy)
        lost = lost_log(state, log)
        if lost is not None:
            complain(f"the log that was noted as {lost.file} is gone: {lost.words}; a new one begins there")
        self._log = opened_log(state, place.redactor, path=log, workspace=workspace.root, tell=complain)

    def run(self) -> int:
        """Serve to the end, record the end, and return the exit code."""
        try:
            return self._run()
        finally:
            close_log(self._place.state, self._log)

    def _run(self) -> int:
        streams = own_streams()
        from harness.plugins.mcp.client_link import ClientLink, OfferedTool

        server = ToolServer(
            gate_for=self._gate_for,
            log=self._log,
            fields=self._header_fields(),
            interrupt=self._interrupt,
            checks=self._checks,
            questions=Questions(text=self._text, word=_word, elsewhere=self._elsewhere),
            prompt=self._prompt,
        )
        signal.signal(signal.SIGUSR1, server.on_wake)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a parent may have left it ignored; then no end could be learned
        take_endings(lambda number, frame: server.stop())  # noqa: ARG005
        offered = [OfferedTool.of(spec) for spec in self._tools.specs]
        if self._prompt is not None:
            offered.append(OfferedTool(spec=self._prompt.spec))
        link = ClientLink(
            offered,
            INSTRUCTIONS.format(folder=visible_line(self._place.workspace.root, 1_000)),
            forms=self._forms,
            take=server.take,
            wake=server.wake,
            streams=streams,
        )
        link.start()
        server_end = server.run()
        code = _code_of(server_end)
        if server_end.fault is not None:
            complain(str(server_end.fault))
        if not isinstance(server_end.fault, LogError):
            server.end(server_end, code)
        link.close(SETTLE_SECONDS)
        if self._prompt is not None:
            self._prompt.end()
        return code

    def _gate_for(self, ask: Approver) -> Gate:
        user_grants = KeptGrants(
            self._place.state.grants, self._place.state.name_of(self._place.workspace.root), self._place.workspace.root
        )
        self._gate = Gate(
            policy=self._policy,
            approver=ask,
            log=self._log,
            tools=self._tools,
            interrupt=self._interrupt,
            checks=self._checks.calls,
            options=GateOptions(grants=user_grants.read().grants, kept=user_grants, advise=advise),
        )
        return self._gate

    def _header_fields(self) -> dict[str, JsonValue]:
        return {
            "mode": MODE,
            "argv": list(sys.argv),
            **who_and_where(),
            "workspace": self._place.workspace.root,
            "git_head": checked_out(self._place.workspace.root),
            "environment": [*sorted(child_environment(self._place.environment))],
            "harness": __version__,
            "python": platform.python_version(),
            "tools": [*self._tools.names],
            **policy_fields(self._policy),
            "confinement": self._level,
        }

    # -- asking

    def _text(self, action: Action, verdict: Verdict) -> str:
        """Return the text of a question as at the prompt, with secrets masked, since the client may store it."""
        question = Question(
            action=action,
            verdict=verdict,
            confinement=self._tools.confinement(action.tool, verdict.effects),
            usual=usual_here(self._place.workspace.root, self._level, self._policy),
            destroys=destroys(action),
        )
        title = [visible_line(question.head, WIDTH)] if question.head and question.has_room(WIDTH) else []
        rows = [row.text.rstrip() for row in question_rows(question, WIDTH)]
        return self._place.redactor.redact("\n".join((*title, *rows)))

    def _elsewhere(
        self, client: ServedClient, action: Action, verdict: Verdict, pause: Callable[[float], None]
    ) -> Approval:
        """Ask the configured approver, or else `harness approve`, if it is running."""
        if self._approver is not None:
            return self._approver(action, verdict)
        return WaitingList(self._place.state.waiting, sleep=pause).ask(
            AskedCall(
                agent=f"{client.display_name} (MCP)",
                session=self._log.session,
                workspace=self._place.workspace.root,
                confinement=self._tools.confinement(action.tool, verdict.effects),
                level=self._level,
                writes=self._policy.sandbox.write,
                action=action,
                verdict=verdict,
                offer=lambda: self._offer(action, verdict),
            )
        )

    @cached_property
    def _approver(self) -> Approver | None:
        """The external approver from the configuration. `None` without one."""
        if self._outside is None:
            return None

        outside = ConfiguredApprover(
            self._outside,
            session=self._session,
            redact=self._place.redactor.redact,
            confinement=self._tools.confinement,
            offer=self._offer,
        )
        return AskedAlone(outside, self._interrupt)

    def _session(self) -> str:
        return self._log.session

    def _offer(self, action: Action, verdict: Verdict) -> Offer | str:
        return self._gate.grants.offer(action, verdict)


def _word(action: Action) -> str:
    return WORD if destroys(action) else ""


def _code_of(server_end: ServerEnd) -> int:
    """Return the exit code. It is 0 after a signal or the end of stdin, since clients end a server in these ways."""
    if server_end.stop is ServerStop.FAULT:
        return Exit.LOG if isinstance(server_end.fault, LogError) else Exit.INTERNAL
    return Exit.DONE
