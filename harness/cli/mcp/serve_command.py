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
from harness.cli.config.settings import settings_from
from harness.cli.console import complain
from harness.cli.environment_secrets import redactor_for, secrets_of
from harness.cli.exits import Exit
from harness.cli.kept_grants import KeptGrants
from harness.cli.own_folders import fix_modes, keep_own_folders, named_log, refuse_own_folders
from harness.cli.parts import check_confinement, extensions_of, tools_in
from harness.cli.policy.policies import assemble
from harness.cli.session_log import close_log, lost_log, opened_log, who_and_where
from harness.cli.signals import take_endings
from harness.cli.state import State, current_folder
from harness.errors import LogError, UsageError
from harness.files.repository import checked_out
from harness.files.workspace import Workspace
from harness.gate.approval import Approval, Approver
from harness.gate.call_checks import NO_SESSION_CHECKS, SessionChecks
from harness.gate.gate import Gate
from harness.gate.records import Advice, policy_fields
from harness.gate.registry import ToolRegistry
from harness.gate.tool import LimitedTool
from harness.hook.hook_parts import AskedCall, HookParts
from harness.hook.waiting import WaitingList
from harness.interrupt import Interrupt
from harness.limits import strictest
from harness.mcp.served_call import ServedClient
from harness.mcp.tool_server import Questions, ServerEnd, ServerStop, ToolServer
from harness.policy.destruction import destroys
from harness.policy.grant_offers import Offer
from harness.policy.policy import Policy
from harness.policy.verdict import Verdict
from harness.process.environment import child_environment
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from harness.hook.permission_prompt import ClaudePrompt

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
        import harness.mcp.client_link  # noqa: F401 - before anything is opened
    except ModuleNotFoundError as error:
        raise UsageError(f"{NEEDS} ({error})") from None
    return _Serving(arguments, environment).run()


class _Serving:
    """The parts of one server, put together in the order in which they can fail."""

    def __init__(self, arguments: Namespace, environment: Mapping[str, str]) -> None:
        """Open everything but the client's side. Raises HarnessError."""
        self._environment = environment
        self._named = arguments.policy
        self._forms = not arguments.no_forms
        self._state = State.of(environment)
        fix_modes(self._state)
        self._workspace = Workspace(
            arguments.cwd or current_folder(), environment.get("HOME"), outputs=self._state.new_outputs()
        )
        refuse_own_folders(self._workspace, self._state)
        log = named_log(arguments, self._workspace, self._state)
        self._policy = assemble(self._state, self._workspace.root, named=arguments.policy, fallback="default")
        settings = settings_from(arguments, environment, self._workspace.root)
        self._declared, _ = extensions_of(settings, self._state, self._workspace.root, environment)
        keep_own_folders(self._workspace, self._state)
        self._interrupt = Interrupt()
        tools = tools_in(self._workspace, self._state, environment, self._interrupt, log=log)
        self._level = check_confinement(self._policy, tools)
        limits = strictest((self._policy.limits,)).filled()
        self._tools = ToolRegistry([one.under(limits) if isinstance(one, LimitedTool) else one for one in tools])
        self._redactor = redactor_for(
            self._state,
            environment,
            secrets_of(environment),
            unless=(self._workspace.root, environment.get("HOME", "")),
            tell=complain,
        )
        self._checks = self._declared_checks()
        self._approver = self._configured_approver()
        self._prompt = self._permission_prompt() if arguments.permission_prompt else None
        lost = lost_log(self._state, log)
        if lost is not None:
            complain(f"the log that was noted as {lost.file} is gone: {lost.words}; a new one begins there")
        self._offer: Callable[[Action, Verdict], Offer | str] = lambda action, verdict: ""  # noqa: ARG005 - set with the gate
        self._log = opened_log(self._state, self._redactor, path=log, workspace=self._workspace.root)

    def run(self) -> int:
        """Serve to the end, which is recorded; return the exit code."""
        try:
            return self._run()
        finally:
            close_log(self._state, self._log)

    def _run(self) -> int:
        streams = _own_streams()
        from harness.mcp.client_link import ClientLink, OfferedTool

        server = ToolServer(
            gate_for=self._gate,
            log=self._log,
            about=self._about(),
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
            from harness.hook.permission_prompt import TOOL

            offered.append(OfferedTool(spec=TOOL))
        link = ClientLink(
            offered,
            INSTRUCTIONS.format(folder=visible_line(self._workspace.root, 1_000)),
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

    def _gate(self, ask: Approver) -> Gate:
        kept = KeptGrants(self._state.grants, self._state.name_of(self._workspace.root), self._workspace.root)
        gate = Gate(
            policy=self._policy,
            approver=ask,
            log=self._log,
            tools=self._tools,
            interrupt=self._interrupt,
            grants=kept.read().grants,
            kept=kept,
            advise=_advise,
            checks=self._checks.calls,
        )
        self._offer = gate.offer
        return gate

    def _about(self) -> dict[str, JsonValue]:
        return {
            "mode": MODE,
            "argv": list(sys.argv),
            **who_and_where(),
            "workspace": self._workspace.root,
            "git_head": checked_out(self._workspace.root),
            "environment": [*sorted(child_environment(self._environment))],
            "harness": __version__,
            "python": platform.python_version(),
            "tools": [*self._tools.names],
            **policy_fields(self._policy),
            "confinement": self._level,
        }

    def _declared_checks(self) -> SessionChecks:
        """Return the hooks of the configuration. Raises UsageError for one that calls could change."""
        if not self._declared.hooks:
            return NO_SESSION_CHECKS
        from harness.checks.checks import Checks

        return Checks(
            tuple(self._declared.hooks.values()),
            workspace=self._workspace.root,
            environment=self._environment,
            redact=self._redactor.redact,
            interrupt=self._interrupt,
            tell=complain,
        )

    # -- asking

    def _text(self, action: Action, verdict: Verdict) -> str:
        """Return a question as at the prompt, secrets masked: a client keeps what it shows."""
        from harness.cli.terminal.question import Question, question_rows, usual_here

        question = Question(
            action=action,
            verdict=verdict,
            confinement=self._tools.confinement(action.tool, verdict.effects),
            usual=usual_here(self._workspace.root, self._level, self._policy),
            destroys=destroys(action),
        )
        title = [visible_line(question.head, WIDTH)] if question.head and question.has_room(WIDTH) else []
        rows = [row.text.rstrip() for row in question_rows(question, WIDTH)]
        return self._redactor.redact("\n".join((*title, *rows)))

    def _elsewhere(
        self, client: ServedClient, action: Action, verdict: Verdict, pause: Callable[[float], None]
    ) -> Approval:
        """Ask the approver that is configured, else at `harness approve`, if it runs."""
        if self._approver is not None:
            return self._approver(action, verdict)
        return WaitingList(self._state.waiting, sleep=pause).ask(
            AskedCall(
                agent=f"{client.shown} (MCP)",
                session=self._log.session,
                workspace=self._workspace.root,
                confinement=self._tools.confinement(action.tool, verdict.effects),
                level=self._level,
                writes=self._policy.sandbox.write,
                action=action,
                verdict=verdict,
                offer=lambda: self._offer(action, verdict),
            )
        )

    def _configured_approver(self) -> Approver | None:
        """Return who is asked outside by the configuration; no call may write what they are reached by. Raises UsageError."""
        declaration = self._declared.approver
        if declaration is None:
            return None
        from harness.cli.approver.asked_outside import AskedAlone
        from harness.cli.approver.configured_approver import ConfiguredApprover, writable_roots

        found = ConfiguredApprover(
            declaration,
            self._environment,
            writable_roots(self._workspace, self._policy, self._environment),
            session=lambda: self._log.session,
            redact=self._redactor.redact,
            confinement=self._tools.confinement,
            offer=lambda action, verdict: self._offer(action, verdict),  # noqa: PLW0108 - it is made later
        )
        self._policy = self._policy.guarding(*found.paths)
        return AskedAlone(found, self._interrupt)

    # -- Claude Code's questions

    def _permission_prompt(self) -> ClaudePrompt:
        from harness.hook.permission_prompt import ClaudePrompt, prompt_session

        os.makedirs(self._state.agents, mode=0o700, exist_ok=True)
        # The workspace is ours, whatever repository it lies in.
        environment = {**self._environment, "CLAUDE_PROJECT_DIR": self._workspace.root}

        def parts_for(pause: Callable[[float], None]) -> HookParts:
            from harness.cli.hook.each_call import hook_parts

            return hook_parts(environment, self._named, pause=pause)

        return ClaudePrompt(self._workspace.root, prompt_session(), parts_for)


def _word(action: Action) -> str:
    from harness.cli.terminal.question_dialog import WORD

    return WORD if destroys(action) else ""


def _advise(policy: Policy, action: Action, verdict: Verdict) -> Advice:
    from harness.audit.suggestions.advice import advice_on  # with a refusal alone

    return advice_on(policy, action, verdict)


def _own_streams() -> tuple[int, int]:
    """Take the client's side for the protocol alone: what else is printed goes to stderr, and what else reads finds nothing."""
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return source, sink


def _code_of(ended: ServerEnd) -> int:
    """Return the exit code: clients end a server by closing its stdin, or by a signal, and both is in order."""
    if ended.stop is ServerStop.FAULT:
        return Exit.LOG if isinstance(ended.fault, LogError) else Exit.INTERNAL
    return Exit.DONE
