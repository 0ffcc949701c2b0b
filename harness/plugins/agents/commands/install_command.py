"""`harness hook install` and `uninstall`: add our hook to the settings of other agents, and remove it."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from harness.errors import UsageError
from harness.files.diffs import compare
from harness.interrupt import Interrupt
from harness.plugins.agents.commands.agent_program import agent_program, isolated_command
from harness.plugins.agents.commands.codex_trust import BY_HAND, AppServer, own_hooks
from harness.plugins.agents.commands.folder_notices import off_notices, tell_other_hooks, two_hooks
from harness.plugins.agents.guarded_agent import AGENTS, GuardedAgent, agent_named
from harness.plugins.agents.hook_line import hook_command
from harness.plugins.agents.settings_file import (
    SettingsChange,
    installation,
    installed,
    removal,
    settings_path,
    write,
)
from harness.session.config.settings import settings_from
from harness.session.exits import Exit
from harness.session.front import terminal_is_there
from harness.session.policies import load_named
from harness.session.state import current_folder
from harness.session.trust import is_wanted
from harness.terminal.console import Console, FinishedOutput, complain, look_from
from harness.terminal.styles import Tone
from harness.text.visible import visible_line

_TOOL = "settings"
"""Tool name for the approval prompt. It is not a tool of the model."""


def install(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Install the hook in the agent that `arguments` name, or in all agents in PATH. Raises HarnessError."""
    agents = [agent for agent in _chosen(arguments) if not arguments.all or agent_program(agent, environment)]
    if not agents:
        raise UsageError("no agent was found in PATH")
    return _each(agents, lambda agent: _install(agent, arguments, environment))


def _chosen(arguments: Namespace) -> list[GuardedAgent]:
    """Return the agent that `arguments` name, or for --all those that have such settings. Raises UsageError."""
    if (arguments.agent is not None) == arguments.all:
        raise UsageError(f"name one agent ({', '.join(AGENTS)}), or use --all")
    if not arguments.all:
        return [agent_named(arguments.agent)]
    return [agent for agent in map(agent_named, AGENTS) if agent.settings.project or not arguments.project]


def _each(agents: Sequence[GuardedAgent], change: Callable[[GuardedAgent], int]) -> int:
    """Change the settings of each agent, and return the highest exit code. A fault of one does not stop the others.

    Raises UsageError if there is one agent only, and its settings are faulty.
    """
    codes = []
    for agent in agents:
        try:
            codes.append(change(agent))
        except UsageError as error:
            if len(agents) == 1:
                raise
            complain(f"{agent.title}: {error}")
            codes.append(Exit.USAGE)
    return max(codes)


def _install(agent: GuardedAgent, arguments: Namespace, environment: Mapping[str, str]) -> int:
    project = _project(arguments)
    path = settings_path(agent, environment, project)
    console = FinishedOutput(environment)
    change = installation(agent, path, hook_command(isolated_command(), agent.name, _policies(arguments.policy)))
    if not change.changes:
        console.line(f"{agent.title}: the hook is installed already: {visible_line(change.path, 1_000)}")
    elif not _is_confirmed(
        agent, change, f"let {agent.title} ask harness before each tool call", arguments, environment, console
    ):
        return Exit.USAGE
    else:
        write(change, private=project is None)
        console.line(f"{agent.title}: the hook is installed: {visible_line(change.path, 1_000)}", Tone.GOOD)
    trusted = agent.name != "codex" or _trust(agent, path, environment, console)
    if agent_program(agent, environment) is None:
        console.line(f"`{agent.program}` is not in PATH: nothing was tried", Tone.WARNING)
    words, differ = two_hooks(agent, environment)
    if words:
        console.line(f"{agent.name}: {words}", Tone.BAD if differ else Tone.QUIET)
    for words in off_notices(agent, environment):
        console.line(f"{agent.name}: {words}", Tone.BAD)
    tell_other_hooks(agent, environment, console)
    for limitation in agent.unseen:
        console.line(f"not seen: {limitation}", Tone.QUIET)
    return Exit.DONE if trusted else Exit.USAGE


def uninstall(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Remove the hook from the agent that `arguments` name, or from all agents. Raises HarnessError."""
    return _each(_chosen(arguments), lambda agent: _uninstall(agent, arguments, environment))


def _uninstall(agent: GuardedAgent, arguments: Namespace, environment: Mapping[str, str]) -> int:
    path = settings_path(agent, environment, _project(arguments))
    change = removal(agent, path)
    console = FinishedOutput(environment)
    if not change.changes:
        console.line(f"{agent.title}: there is no hook of harness in {visible_line(change.path, 1_000)}")
        return Exit.DONE
    reason = f"let {agent.title} call its tools without harness"
    if not _is_confirmed(agent, change, reason, arguments, environment, console):
        return Exit.USAGE
    write(change, private=True)
    if change.after is None and not os.path.islink(folder := os.path.dirname(path)):
        with suppress(OSError):  # the folder holds something else
            os.rmdir(folder)
    console.line(f"{agent.title}: the hook is gone: {visible_line(change.path, 1_000)}", Tone.GOOD)
    return Exit.DONE


def _project(arguments: Namespace) -> str | None:
    return current_folder() if arguments.project else None


def _policies(policies: Sequence[str] | None) -> list[str]:
    """Return the values of `--policy` with absolute paths. Raises PolicyError for an invalid policy."""
    if policies is None:
        return []
    load_named(policies)
    return [os.path.abspath(name) if os.path.exists(name) else name for name in policies]


def _is_confirmed(
    agent: GuardedAgent,
    change: SettingsChange,
    reason: str,
    arguments: Namespace,
    environment: Mapping[str, str],
    console: Console,
) -> bool:
    """Show a change, and return whether to make it: because of --yes, or because the user approved it."""
    diff = compare(change.before or b"", change.after or b"").text()
    change_kind = "gone" if change.after is None else "new" if change.before is None else "changed"
    head = f"{visible_line(change.path, 1_000)} ({change_kind})"
    if not terminal_is_there():
        console.line(f"{head}\n{diff}")
        if not arguments.yes:
            complain("the settings were not changed, since there is no terminal to ask at; use --yes")
        return bool(arguments.yes)
    from harness.terminal.approver import TerminalApprover
    from harness.terminal.screen import Screen

    settings = settings_from(Namespace(), environment, None).terminal
    screen = Screen(sys.stdout, look_from(settings, environment))
    screen.line(head)
    screen.diff(diff, change.path)
    if arguments.yes:
        return True
    seconds = settings.dead_seconds.value
    ask = TerminalApprover(screen, Interrupt(), lambda *_: "", environment=environment, dead_seconds=seconds)
    summary = f"write {visible_line(change.path, 1_000)}" if change.after is not None else f"remove {change.path}"
    by = f"harness hook {arguments.action} {agent.name}"
    return is_wanted(ask, tool=_TOOL, summary=summary, preview="the change that is shown above", reason=reason, by=by)


def _trust(agent: GuardedAgent, path: str, environment: Mapping[str, str], console: Console) -> bool:
    """Make Codex trust our hooks, since it silently skips untrusted ones. Return whether it trusts them."""
    program, hook = agent_program(agent, environment), installed(agent, path)
    if program is None or hook is None:
        complain(f"Codex trusts no hook by itself: {BY_HAND}")
        return False
    try:
        with AppServer(program, environment, current_folder()) as server:
            ours = own_hooks(server.hooks(), path, hook.command)
            if any(not installed_hook.is_trusted for installed_hook in ours):
                server.trust(ours)
                ours = own_hooks(server.hooks(), path, hook.command)
    except UsageError as error:
        complain(f"{error}. Codex does not trust the hook yet: {BY_HAND}")
        return False
    if not ours or any(not installed_hook.is_trusted for installed_hook in ours):
        complain(f"Codex does not trust the hook, or does not see it (a project must be trusted first): {BY_HAND}")
        return False
    console.line("Codex trusts it")
    return True
