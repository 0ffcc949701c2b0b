"""`harness hook install`, `uninstall` and `status`: manage our hook in the settings of another agent."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence

from harness.errors import UsageError
from harness.files.diffs import compare
from harness.interrupt import Interrupt
from harness.plugins.agents.commands.codex_trust import BY_HAND, AppServer, own_hooks
from harness.plugins.agents.commands.each_call import own_command
from harness.plugins.agents.guarded_agent import AGENTS, GuardedAgent, agent_named
from harness.plugins.agents.settings_file import (
    Installed,
    SettingsChange,
    hook_command,
    installation,
    installed,
    removal,
    settings_path,
    write,
)
from harness.record import Record
from harness.session.asked_call import quoted
from harness.session.exits import Exit
from harness.session.front import terminal_is_there
from harness.session.state import current_folder
from harness.terminal.console import Console, FinishedOutput, complain, look_from
from harness.terminal.styles import Tone
from harness.terminal.tables import Column, Table, TableRow
from harness.text.visible import visible_line

VERSION_SECONDS = 20.0
"""Maximum seconds that an agent may take to print its version."""
_TOOL = "settings"
"""Tool name for the approval prompt. It is not a tool of the model."""
_VERSION = re.compile(r"\d+(?:\.\d+)+(?:-[\w.]+)?")


def hook_command_line(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Run the subcommand that `arguments` name, and return the exit code. Raises HarnessError."""
    match arguments.action:
        case "install":
            return _install(arguments, environment)
        case "uninstall":
            return _uninstall(arguments, environment)
        case _:
            return _status(arguments, environment)


def _install(arguments: Namespace, environment: Mapping[str, str]) -> int:
    agent = agent_named(arguments.agent)
    project = _project(arguments)
    path = settings_path(agent, environment, project)
    console = FinishedOutput(environment)
    change = installation(agent, path, hook_command(isolated_command(), agent.name, _policies(arguments.policy)))
    if not change.changes:
        console.line(f"{agent.title}: the hook is installed already: {visible_line(change.path, 1_000)}")
    elif not _is_confirmed(
        change, f"let {agent.title} ask harness before each tool call", arguments, environment, console
    ):
        return Exit.USAGE
    else:
        write(change, private=project is None)
        console.line(f"{agent.title}: the hook is installed: {visible_line(change.path, 1_000)}", Tone.GOOD)
    trusted = agent.name != "codex" or _trust(agent, path, environment, console)
    if agent_program(agent, environment) is None:
        console.line(f"`{agent.program}` is not in PATH: nothing was tried", Tone.WARNING)
    for limitation in agent.unseen:
        console.line(f"not seen: {limitation}", Tone.QUIET)
    return Exit.DONE if trusted else Exit.USAGE


def _uninstall(arguments: Namespace, environment: Mapping[str, str]) -> int:
    agent = agent_named(arguments.agent)
    change = removal(agent, settings_path(agent, environment, _project(arguments)))
    console = FinishedOutput(environment)
    if not change.changes:
        console.line(f"{agent.title}: there is no hook of harness in {visible_line(change.path, 1_000)}")
        return Exit.DONE
    if not _is_confirmed(change, f"let {agent.title} call its tools without harness", arguments, environment, console):
        return Exit.USAGE
    write(change, private=True)
    console.line(f"{agent.title}: the hook is gone: {visible_line(change.path, 1_000)}", Tone.GOOD)
    return Exit.DONE


def _project(arguments: Namespace) -> str | None:
    return current_folder() if arguments.project else None


def _policies(policies: Sequence[str] | None) -> list[str]:
    """Return the values of `--policy` with absolute paths. Raises PolicyError for an invalid policy."""
    if policies is None:
        return []
    from harness.session.policies import load_named

    load_named(policies)
    return [os.path.abspath(name) if os.path.exists(name) else name for name in policies]


def _is_confirmed(
    change: SettingsChange, reason: str, arguments: Namespace, environment: Mapping[str, str], console: Console
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
    from harness.session.config.settings import settings_from
    from harness.terminal.approver import TerminalApprover
    from harness.terminal.screen import Screen

    settings = settings_from(Namespace(), environment, os.getcwd()).terminal
    screen = Screen(sys.stdout, look_from(settings, environment))
    screen.line(head)
    screen.diff(diff, change.path)
    if arguments.yes:
        return True
    from harness.session.trust import is_wanted

    seconds = settings.dead_seconds.value
    ask = TerminalApprover(screen, Interrupt(), lambda *_: "", environment=environment, dead_seconds=seconds)
    summary = f"write {visible_line(change.path, 1_000)}" if change.after is not None else f"remove {change.path}"
    by = f"harness hook {arguments.action} {arguments.agent}"
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


def isolated_command() -> str:
    """Return the command line of this program for settings: isolated Python if that can import harness."""
    words = [sys.executable, "-I", "-m", "harness"]
    try:
        process = subprocess.run([*words, "--version"], capture_output=True, timeout=VERSION_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return own_command()
    return f"{quoted(words[0])} -I -m harness" if process.returncode == 0 else own_command()


def agent_program(agent: GuardedAgent, environment: Mapping[str, str]) -> str | None:
    """Return the path of the agent's program; `None` if it is not in PATH."""
    return shutil.which(agent.program, path=environment.get("PATH", os.defpath))


class _Found(Record):
    """One agent on this machine."""

    agent: GuardedAgent
    version: str
    user: str
    project: str
    trusted: str
    policy: str
    tone: Tone


def _status(arguments: Namespace, environment: Mapping[str, str]) -> int:
    from concurrent.futures import ThreadPoolExecutor

    agents = [agent_named(name) for name in ([arguments.agent] if arguments.agent else AGENTS)]
    with ThreadPoolExecutor(len(agents)) as pool:  # an agent takes a second to print its version
        agents_found = list(pool.map(lambda agent: _look(agent, environment), agents))
    columns = (
        Column(name="agent", toned=True),
        Column(name="version"),
        Column(name="user"),
        Column(name="project"),
        Column(name="trusted"),
        Column(name="policy", folds=True),
        Column(name="not seen", folds=True, spare=1),
    )
    rows = [
        TableRow(
            cells=(
                row.agent.name,
                row.version,
                row.user,
                row.project,
                row.trusted,
                row.policy,
                "; ".join(row.agent.unseen) if row.policy != "-" else "",
            ),
            tone=row.tone,
        )
        for row in agents_found
    ]
    console = FinishedOutput(environment)
    console.table(Table(columns=columns, rows=tuple(rows)))
    console.line("What files say is no proof: `harness hook check AGENT` plays calls through the agent.", Tone.QUIET)
    return Exit.DONE


def _look(agent: GuardedAgent, environment: Mapping[str, str]) -> _Found:
    program = agent_program(agent, environment)
    version = "not found" if program is None else version_of(program, environment)
    places: dict[str, Installed | None] = {}
    words: dict[str, str] = {}
    for name, project in (("user", None), ("project", current_folder())):
        try:
            path = settings_path(agent, environment, project)
            places[name] = hook = installed(agent, path)
            words[name] = _in_a_word(hook)
        except UsageError as error:
            complain(str(error))
            words[name] = "?"
    ours = [installed_hook for installed_hook in places.values() if installed_hook is not None]
    trusted = "-"
    if agent.name == "codex" and ours:
        trusted = "?" if program is None else _trusted(agent, program, places, environment)
    sure = {"yes"} <= set(words.values()) <= {"yes", "no"} and trusted in ("-", "yes")
    return _Found(
        agent=agent,
        version=version,
        user=words["user"],
        project=words["project"],
        trusted=trusted,
        policy=", ".join(dict.fromkeys(installed_hook.policy or "as for the prompt" for installed_hook in ours)) or "-",
        tone=Tone.GOOD if sure else Tone.WARNING if ours else Tone.QUIET,
    )


def _in_a_word(hook: Installed | None) -> str:
    if hook is None:
        return "no"
    if not os.access(hook.program, os.X_OK):
        return "its program is gone"
    return "yes" if hook.complete else "in part: install again"


def _trusted(
    agent: GuardedAgent, program: str, places: Mapping[str, Installed | None], environment: Mapping[str, str]
) -> str:
    try:
        with AppServer(program, environment, current_folder()) as server:
            hooks = server.hooks()
    except UsageError:
        return "?"
    for name, hook in places.items():
        if hook is not None:
            path = settings_path(agent, environment, current_folder() if name == "project" else None)
            ours = own_hooks(hooks, path, hook.command)
            if not ours or any(not installed_hook.is_trusted for installed_hook in ours):
                return f"no: {BY_HAND.partition(':')[0]}"
    return "yes"


def version_of(program: str, environment: Mapping[str, str]) -> str:
    """Return the version that a program prints for `--version`; `?` if it prints none."""
    try:
        process = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=dict(environment),
            timeout=VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "?"
    match = _VERSION.search(process.stdout.decode(errors="replace"))
    return match[0] if match else "?"
