"""`harness demo`: a scripted model over loopback HTTP, with the real client, gate and tools."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Mapping

from harness.actions import Action
from harness.app.demo.scenarios import SCENARIOS, Scenario
from harness.app.edit_diffs import edit_diffs
from harness.errors import UsageError, nearest
from harness.files.workspace import Workspace
from harness.gate.approval import Approval, Approver, ScriptedAnswers, deny_all
from harness.gate.registry import ToolRegistry
from harness.interrupt import Interrupt
from harness.log.action_log import ActionLog
from harness.loop.agent import Agent
from harness.messages import RunResult, StopReason
from harness.models.endpoint import Endpoint
from harness.models.loopback import ScriptServer
from harness.models.openai_chat import OpenAIChat
from harness.models.scripted import Player
from harness.policy.loader import load_policy, shipped_policy_path
from harness.policy.rules import Layer
from harness.policy.verdict import Verdict
from harness.session.config.settings import TerminalSettings, settings_from
from harness.session.environment_secrets import redactor_for, secrets_of
from harness.session.exits import Exit, exit_code
from harness.session.front import terminal_is_there
from harness.session.session_log import close_log, opened_log, who_and_where
from harness.session.session_tools import tools_in
from harness.session.signals import Signals
from harness.session.state import State
from harness.terminal.approver import TerminalApprover, show_question
from harness.terminal.change_rows import Diffs
from harness.terminal.console import FinishedOutput, complain, look_from
from harness.terminal.question import Usual, usual_here
from harness.terminal.screen import Notices, Screen
from harness.terminal.styles import Tone
from harness.terminal.tables import labelled
from harness.text.visible import visible_line


def demo_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Play a bundled scenario and return the exit code: 0 if it was played to its end. Raises HarnessError."""
    if arguments.list:
        FinishedOutput(environment).table(labelled((item.name, item.title, Tone.PLAIN) for item in SCENARIOS.values()))
        return Exit.DONE
    scenario = SCENARIOS.get(arguments.name)
    if scenario is None:
        raise UsageError(f"unknown demo {arguments.name!r}{nearest(arguments.name, SCENARIOS)}")
    answers = _answers(arguments.answers)
    folder = tempfile.mkdtemp(prefix="harness-demo-")
    try:
        for name, content in scenario.files.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(content)
        return _play(scenario, folder, answers, environment, arguments)
    finally:
        if not arguments.keep:
            shutil.rmtree(folder, ignore_errors=True)


def _answers(text: str | None) -> ScriptedAnswers | None:
    if text is None:
        return None
    try:
        return ScriptedAnswers(text.split(",") if text else ())
    except ValueError as error:
        raise UsageError(f"--answers: {error}") from None


def _play(
    scenario: Scenario,
    folder: str,
    answers: ScriptedAnswers | None,
    environment: Mapping[str, str],
    arguments: Namespace,
) -> int:
    state = State.of(environment)
    redactor = redactor_for(state, environment, secrets_of(environment), unless=(folder, environment.get("HOME", "")))
    terminal = settings_from(arguments, environment, folder).terminal
    screen = Screen(
        sys.stdout,
        look_from(terminal, environment),
        redactor=redactor,
        notices=Notices(terminal.notify.value),
        # The whole questions of prepared answers stay on the screen, with their diffs.
        diffs=Diffs.NONE if answers is not None else Diffs(terminal.diffs.value),
        diff_of=edit_diffs(state, folder, redactor),
    )
    interrupt = Interrupt()
    signals = Signals(interrupt)
    workspace = Workspace(folder, environment.get("HOME"), outputs=state.new_outputs())
    tools = tools_in(workspace, state, environment, interrupt, screen.live)
    policy = load_policy(shipped_policy_path("demo"), layer=Layer.SHIPPED).guarding(*state.guarded)
    usual = usual_here(workspace.root, ToolRegistry(tools).level, policy)
    log = opened_log(state, redactor, path=None, workspace=workspace.root, tell=complain)
    log.observers.append(screen.record)
    player = Player(scenario.script)
    screen.line(f"harness demo {scenario.name}: {scenario.title}")
    screen.line(
        "SCRIPTED: no model is asked. The replies are canned; the gate, the tools and the log are real.", Tone.WARNING
    )
    screen.unbroken(f"workspace: {folder}", Tone.QUIET)
    screen.line(f"\n> {scenario.prompt}")
    signals.install()
    with ScriptServer(player) as server:
        agent = Agent(
            model=OpenAIChat("scripted", Endpoint(base_url=server.base_url, api_key="no-key-needed")),
            tools=tools,
            policy=policy,
            approver=_approver(screen, answers, interrupt, ToolRegistry(tools), environment, terminal, usual),
            log=log,
            facts={
                "mode": "demo",
                "scenario": scenario.name,
                "argv": list(sys.argv),
                **who_and_where(),
                "workspace": folder,
            },
            on_text=screen.text,
            interrupt=interrupt,
        )
        result = agent.run(scenario.prompt)
    close_log(state, log)
    screen.end_text()
    played = player.finished and result.stop is StopReason.COMPLETED
    _tell_end(screen, result, log, folder if arguments.keep else None, environment)
    if screen.broken:
        return Exit.BROKEN_PIPE
    if result.stop is StopReason.COMPLETED and not played:
        return Exit.NO_ANSWER
    return exit_code(result.stop, refusals=0, allow_refusals=True, terminated=signals.terminated)


def _approver(
    screen: Screen,
    answers: ScriptedAnswers | None,
    interrupt: Interrupt,
    tools: ToolRegistry,
    environment: Mapping[str, str],
    terminal: TerminalSettings,
    usual: Usual,
) -> Approver:
    if answers is not None:
        return _showing_approver(screen, answers, tools, usual)
    if not terminal_is_there():
        screen.line("no terminal: every question is answered no (--answers y,y,n prepares answers)", Tone.WARNING)
        return deny_all
    return TerminalApprover(
        screen,
        interrupt,
        tools.confinement,
        environment=environment,
        dead_seconds=terminal.dead_seconds.value,
        usual=lambda: usual,
    )


def _showing_approver(screen: Screen, answers: ScriptedAnswers, tools: ToolRegistry, usual: Usual) -> Approver:
    """Return an approver that gives `answers`, and shows each question as the terminal approver does."""

    def approver(action: Action, verdict: Verdict) -> Approval:
        show_question(screen, action, verdict, tools.confinement(action.tool, verdict.effects), usual)
        approval = answers(action, verdict)
        screen.line(f"allow? {approval.answer.value} {approval.words}  (prepared by --answers)", Tone.QUIET)
        return approval

    return approver


def started_as(program: str, executable: str, path: str) -> str:
    """Return the words that a user types to start this program again. `program` is `sys.argv[0]`, `path` is PATH.

    The name alone is enough if PATH leads to the same file.
    """
    if os.path.basename(program) == "__main__.py":
        return f"{_on_path(executable, path)} -m harness"
    return _on_path(program, path)


def _on_path(program: str, path: str) -> str:
    name = os.path.basename(program)
    program_path = shutil.which(name, path=path)
    return shlex.quote(
        name if program_path is not None and os.path.abspath(program_path) == os.path.abspath(program) else program
    )


def _tell_end(
    screen: Screen, result: RunResult, log: ActionLog, kept_folder: str | None, environment: Mapping[str, str]
) -> None:
    if result.stop is not StopReason.COMPLETED:
        screen.line(visible_line(f"{result.stop.value.replace('_', ' ').upper()}: {result.detail}", 2_000), Tone.BAD)
    program = started_as(sys.argv[0], sys.executable, environment.get("PATH", os.defpath))
    screen.line("")
    screen.line(f"Everything is in the action log of session {log.session}:", Tone.QUIET)
    screen.unbroken(f"  {program} audit show --session {log.session}", Tone.QUIET)
    screen.unbroken(f"  {program} audit verify --all", Tone.QUIET)
    if kept_folder is not None:
        screen.unbroken(f"The project was kept: {kept_folder}", Tone.QUIET)
