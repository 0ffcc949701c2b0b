"""`harness mcp serve`: our tools for any MCP client, from its first line to the exit code."""

from __future__ import annotations

import os
import platform
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from harness import __version__
from harness.actions import Action, JsonValue
from harness.errors import LogError, UsageError
from harness.files.repository import checked_out
from harness.files.workspace import Workspace
from harness.gate.approval import Approval, Approver
from harness.gate.gate import Gate
from harness.gate.records import policy_fields
from harness.gate.registry import ToolRegistry
from harness.gate.tool import LimitedTool
from harness.interrupt import Interrupt
from harness.limits import strictest
from harness.plugins.mcp.served_call import ServedClient
from harness.plugins.mcp.tool_server import Questions, ServerEnd, ServerStop, ToolServer
from harness.policy.destruction import destroys
from harness.policy.grant_offers import Offer
from harness.policy.verdict import Verdict
from harness.process.environment import child_environment
from harness.session.asked_call import AskedCall, HookParts
from harness.session.config.settings import settings_from
from harness.session.environment_secrets import redactor_for, secrets_of
from harness.session.exits import Exit
from harness.session.kept_grants import KeptGrants
from harness.session.own_folders import fix_modes, keep_own_folders, named_log, refuse_own_folders
from harness.session.parts import advise, check_confinement, checks_of, extensions_of, tools_in
from harness.session.policies import assemble
from harness.session.session_log import close_log, lost_log, opened_log, who_and_where
from harness.session.signals import take_endings
from harness.session.state import State, current_folder
from harness.session.waiting import WaitingList
from harness.terminal.console import complain, own_streams
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from harness.plugins.agents.permission_prompt import ClaudePrompt

MODE = "mcp serve"
NEEDS = "harness mcp serve needs the MCP SDK: pip install 'permission-harness[mcp]'"
WIDTH = 10_000
"""Of a question's rows: the client wraps them."""
SETTLE_SECONDS = 2.0
"""How long is waited at the end for what is written to the client."""
INSTRUCTIONS = (
    "Work in the folder {folder} with these tools. Each call is decided by a policy before it runs: a result that begins "
    "with Denied or Blocked did not run, and says why."
)


def serve_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Serve until the client ends or a signal comes; return the exit code. Raises HarnessError for what fails before."""
    if os.isatty(0):
        raise UsageError("harness mcp serve speaks with an MCP client on stdin and stdout: have the client start it")
    try:
        import harness.plugins.mcp.client_link  # noqa: F401 - before anything is opened
    except ModuleNotFoundError as error:
        raise UsageError(f"{NEEDS} ({error})") from None
    return _Serving(arguments, environment).run()


class _Serving:
    """The parts of one server, put together in the order in which they can fail."""

    def __init__(self, arguments: Namespace, environment: Mapping[str, str]) -> None:
        """Open everything but the client's side. Raises HarnessError."""
        self.environment = environment
        self._named = arguments.policy
        self._forms = not arguments.no_forms
        self.state = State.of(environment)
        fix_modes(self.state)
        self.workspace = Workspace(
            arguments.cwd or current_folder(), environment.get("HOME"), outputs=self.state.new_outputs()
        )
        refuse_own_folders(self.workspace, self.state)
        log = named_log(arguments, self.workspace, self.state)
        self.policy = assemble(self.state, self.workspace.root, named=arguments.policy, fallback="default")
        settings = settings_from(arguments, environment, self.workspace.root)
        self.extensions, _ = extensions_of(settings, self.state, self.workspace.root, environment)
        keep_own_folders(self.workspace, self.state)
        self.interrupt = Interrupt()
        tools = tools_in(self.workspace, self.state, environment, self.interrupt, log=log)
        self.level = check_confinement(self.policy, tools)
        limits = strictest((self.policy.limits,)).filled()
        self._tools = ToolRegistry([one.under(limits) if isinstance(one, LimitedTool) else one for one in tools])
        self.redactor = redactor_for(
            self.state,
            environment,
            secrets_of(environment),
            unless=(self.workspace.root, environment.get("HOME", "")),
            tell=complain,
        )
        self.tell: Callable[[str], None] = complain
        self._checks = checks_of(self)
        self._approver = self._configured_approver()
        self._prompt = self._permission_prompt() if arguments.permission_prompt else None
        lost = lost_log(self.state, log)
        if lost is not None:
            complain(f"the log that was noted as {lost.file} is gone: {lost.words}; a new one begins there")
        self.log = opened_log(self.state, self.redactor, path=log, workspace=self.workspace.root)

    def run(self) -> int:
        """Serve to the end, which is recorded; return the exit code."""
        try:
            return self._run()
        finally:
            close_log(self.state, self.log)

    def _run(self) -> int:
        streams = own_streams()
        from harness.plugins.mcp.client_link import ClientLink, OfferedTool

        server = ToolServer(
            gate_for=self._gate_for,
            log=self.log,
            about=self._about(),
            interrupt=self.interrupt,
            checks=self._checks,
            questions=Questions(text=self._text, word=_word, elsewhere=self._elsewhere),
            prompt=self._prompt,
        )
        signal.signal(signal.SIGUSR1, server.on_wake)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a parent may have left it ignored; then no end could be learned
        take_endings(lambda number, frame: server.stop())  # noqa: ARG005
        offered = [OfferedTool.of(spec) for spec in self._tools.specs]
        if self._prompt is not None:
            from harness.plugins.agents.permission_prompt import TOOL

            offered.append(OfferedTool(spec=TOOL))
        link = ClientLink(
            offered,
            INSTRUCTIONS.format(folder=visible_line(self.workspace.root, 1_000)),
            forms=self._forms,
            take=server.take,
            wake=server.wake,
            streams=streams,
        )
        link.start()
        ended = server.run()
        code = _code_of(ended)
        if ended.fault is not None:
            complain(str(ended.fault))
        if not isinstance(ended.fault, LogError):
            server.end(ended, code)
        link.close(SETTLE_SECONDS)
        if self._prompt is not None:
            self._prompt.end()
        return code

    def _gate_for(self, ask: Approver) -> Gate:
        kept = KeptGrants(self.state.grants, self.state.name_of(self.workspace.root), self.workspace.root)
        self._gate = Gate(
            policy=self.policy,
            approver=ask,
            log=self.log,
            tools=self._tools,
            interrupt=self.interrupt,
            grants=kept.read().grants,
            kept=kept,
            advise=advise,
            checks=self._checks.calls,
        )
        return self._gate

    def _about(self) -> dict[str, JsonValue]:
        return {
            "mode": MODE,
            "argv": list(sys.argv),
            **who_and_where(),
            "workspace": self.workspace.root,
            "git_head": checked_out(self.workspace.root),
            "environment": [*sorted(child_environment(self.environment))],
            "harness": __version__,
            "python": platform.python_version(),
            "tools": [*self._tools.names],
            **policy_fields(self.policy),
            "confinement": self.level,
        }

    # -- asking

    def _text(self, action: Action, verdict: Verdict) -> str:
        """Return a question as at the prompt, secrets masked: a client keeps what it shows."""
        from harness.terminal.question import Question, question_rows, usual_here

        question = Question(
            action=action,
            verdict=verdict,
            confinement=self._tools.confinement(action.tool, verdict.effects),
            usual=usual_here(self.workspace.root, self.level, self.policy),
            destroys=destroys(action),
        )
        title = [visible_line(question.head, WIDTH)] if question.head and question.has_room(WIDTH) else []
        rows = [row.text.rstrip() for row in question_rows(question, WIDTH)]
        return self.redactor.redact("\n".join((*title, *rows)))

    def _elsewhere(
        self, client: ServedClient, action: Action, verdict: Verdict, pause: Callable[[float], None]
    ) -> Approval:
        """Ask the approver that is configured, else at `harness approve`, if it runs."""
        if self._approver is not None:
            return self._approver(action, verdict)
        return WaitingList(self.state.waiting, sleep=pause).ask(
            AskedCall(
                agent=f"{client.shown} (MCP)",
                session=self.log.session,
                workspace=self.workspace.root,
                confinement=self._tools.confinement(action.tool, verdict.effects),
                level=self.level,
                writes=self.policy.sandbox.write,
                action=action,
                verdict=verdict,
                offer=lambda: self._offer(action, verdict),
            )
        )

    def _configured_approver(self) -> Approver | None:
        """Return who is asked outside by the configuration. Raises UsageError where they cannot be."""
        if self.extensions.approver is None:
            return None
        from harness.session.approver.session_approver import configured_approver
        from harness.terminal.asked_outside import AskedAlone

        return AskedAlone(
            configured_approver(self, self.extensions.approver, lambda: self._gate, self._offer), self.interrupt
        )

    def _offer(self, action: Action, verdict: Verdict) -> Offer | str:
        return self._gate.offer(action, verdict)

    # -- Claude Code's questions

    def _permission_prompt(self) -> ClaudePrompt:
        from harness.plugins.agents.permission_prompt import ClaudePrompt, prompt_session

        os.makedirs(self.state.agents, mode=0o700, exist_ok=True)
        # The workspace is ours, whatever repository it lies in.
        environment = {**self.environment, "CLAUDE_PROJECT_DIR": self.workspace.root}

        def parts_for(pause: Callable[[float], None]) -> HookParts:
            from harness.plugins.agents.commands.each_call import hook_parts

            return hook_parts(environment, self._named, pause=pause)

        return ClaudePrompt(self.workspace.root, prompt_session(), parts_for)


def _word(action: Action) -> str:
    from harness.terminal.question_dialog import WORD

    return WORD if destroys(action) else ""


def _code_of(ended: ServerEnd) -> int:
    """Return the exit code: clients end a server by closing its stdin, or by a signal, and both is in order."""
    if ended.stop is ServerStop.FAULT:
        return Exit.LOG if isinstance(ended.fault, LogError) else Exit.INTERNAL
    return Exit.DONE
