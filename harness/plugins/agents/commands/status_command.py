"""`harness hook status`: a line for each agent, and each problem that keeps its calls from our hook."""

from __future__ import annotations

import os
import socket
from argparse import Namespace
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from harness.errors import UsageError
from harness.plugins.agents.commands.agent_program import DOES_NOT_START, agent_program, is_in_path, version_of
from harness.plugins.agents.commands.agent_starts import tried_version
from harness.plugins.agents.commands.codex_trust import BY_HAND, AppServer, own_hooks
from harness.plugins.agents.commands.folder_notices import off_notices, tell_other_hooks, two_hooks
from harness.plugins.agents.guarded_agent import AGENTS, GuardedAgent, agent_named
from harness.plugins.agents.resident_client import (
    GREETING,
    GREETING_SECONDS,
    peer_credentials,
    peer_surroundings,
    socket_path,
    surroundings,
)
from harness.plugins.agents.settings_file import Installed, installed, settings_path
from harness.record import Record
from harness.session.exits import Exit
from harness.session.state import current_folder
from harness.terminal.console import FinishedOutput
from harness.terminal.styles import Tone
from harness.terminal.tables import Column, Table, TableRow

FAILED = 1
"""Exit code if a hook is installed and the agent would not ask it, or if settings cannot be read."""


NOT_FOUND = "not found"


class _AgentState(Record):
    """One agent on this machine."""

    agent: GuardedAgent
    version: str
    hook: str
    """Settings that have our hook: `user`, `project` or both. Empty for neither."""
    policy: str
    state: str
    """`on`, or a word for the first problem. Empty without a hook."""
    problems: tuple[str, ...]

    @property
    def tone(self) -> Tone:
        """Red for a problem, green for a working hook."""
        return Tone.BAD if self.problems else Tone.GOOD if self.hook else Tone.QUIET


def status(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Print the table and all problems. Return 0, or 1 if there is a problem."""
    agents = [agent_named(name) for name in ([arguments.agent] if arguments.agent else AGENTS)]
    with ThreadPoolExecutor(len(agents)) as pool:  # an agent takes a second to print its version
        states = list(pool.map(lambda agent: _state_of(agent, environment), agents))
    columns = (
        Column(name="agent", toned=True),
        Column(name="version"),
        Column(name="hook"),
        Column(name="policy", folds=True),
        Column(name="state", toned=True),
    )
    rows = [
        TableRow(
            cells=(row.agent.name, row.version, row.hook or "-", row.policy or "-", row.state or "-"), tone=row.tone
        )
        for row in states
    ]
    console = FinishedOutput(environment)
    console.table(Table(columns=columns, rows=tuple(rows)))
    for row in states:
        for problem in row.problems:
            console.line(f"{row.agent.name}: {problem}", Tone.BAD)
        tried = tried_version(row.agent.name)
        if row.hook and tried and row.version not in (tried, NOT_FOUND, DOES_NOT_START):
            console.line(f"{row.agent.name}: its tools are known as of {tried}: others ask", Tone.WARNING)
        if row.hook:
            words, differ = two_hooks(row.agent, environment)
            if words and not differ:
                console.line(f"{row.agent.name}: {words}", Tone.QUIET)
            tell_other_hooks(row.agent, environment, console)
    if any(row.hook for row in states):
        console.line(*_resident_line(environment))
    console.line("Files are no proof: `harness hook check AGENT` plays calls through the agent.", Tone.QUIET)
    return FAILED if any(row.problems for row in states) else Exit.DONE


def _resident_line(environment: Mapping[str, str]) -> tuple[str, Tone]:
    """Return a line on the resident process that answers events from here, and its tone."""
    ours = surroundings("self")
    variables = {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}
    path = "" if ours is None else socket_path(variables, ours)
    if not path:
        return "resident: none can run here, so each event takes longer", Tone.WARNING
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(GREETING_SECONDS)
        try:
            link.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return "resident: not running; the next event starts it", Tone.QUIET
        except OSError as error:
            return f"resident: {path}: {error.strerror or error}; each event takes longer", Tone.WARNING
        process, _ = peer_credentials(link)
        if peer_surroundings(link) != ours:
            return f"resident: process {process} is stopped or not ours, so each event takes longer", Tone.WARNING
        try:
            greeting = link.recv(1)
        except OSError:
            return f"resident: process {process} does not answer, so each event takes longer", Tone.WARNING
    if greeting != GREETING:
        return f"resident: process {process} ends, since the program changed; the next event starts another", Tone.QUIET
    return f"resident: process {process} answers", Tone.QUIET


def _state_of(agent: GuardedAgent, environment: Mapping[str, str]) -> _AgentState:
    program = agent_program(agent, environment)
    hooks: dict[str, Installed] = {}
    problems: list[tuple[str, str]] = []
    paths: list[str] = []
    for name, project in (("user", None), ("project", current_folder())):
        if project is not None and not agent.settings.project:
            continue
        try:
            path = settings_path(agent, environment, project)
            if os.path.realpath(path) in paths:  # in the home folder
                continue
            paths.append(os.path.realpath(path))
            hook = installed(agent, path)
        except UsageError as error:
            problems.append(("unknown", str(error)))
            continue
        if hook is not None:
            hooks[name] = hook
    if hooks:
        problems += _problems(agent, program, hooks, environment)
    policies = dict.fromkeys(hook.policy or "as for the prompt" for hook in hooks.values())
    return _AgentState(
        agent=agent,
        version=_version(agent, program, environment),
        hook=", ".join(hooks),
        policy=", ".join(policies),
        state=problems[0][0] if problems else "on" if hooks else "",
        problems=tuple(problem for _, problem in problems),
    )


def _version(agent: GuardedAgent, program: str | None, environment: Mapping[str, str]) -> str:
    if program is not None:
        return version_of(program, environment)
    return DOES_NOT_START if is_in_path(agent, environment) else NOT_FOUND


def _problems(
    agent: GuardedAgent, program: str | None, hooks: Mapping[str, Installed], environment: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the problems of an installed hook, each with a word for the table."""
    is_off = False
    try:
        for words in off_notices(agent, environment):
            is_off = True
            yield "OFF", words
    except UsageError as error:
        yield "unknown", str(error)
    words, differ = two_hooks(agent, environment)
    if differ:
        yield "refuses", words
    for name, hook in hooks.items():
        if not os.access(hook.program, os.X_OK):
            yield "broken", f"the program of the hook is gone: {hook.program}"
        elif not hook.complete:
            yield "in part", f"the hook is not complete in the settings ({name}): install it again"
    if (
        agent.name == "codex"
        and program is not None
        and not is_off
        and not _is_trusted(agent, program, hooks, environment)
    ):
        yield "untrusted", f"Codex does not trust the hook, or does not answer: {BY_HAND}"


def _is_trusted(
    agent: GuardedAgent, program: str, hooks: Mapping[str, Installed], environment: Mapping[str, str]
) -> bool:
    try:
        with AppServer(program, environment, current_folder()) as server:
            codex_hooks = server.hooks()
    except UsageError:
        return False
    for name, hook in hooks.items():
        path = settings_path(agent, environment, current_folder() if name == "project" else None)
        ours = own_hooks(codex_hooks, path, hook.command)
        if not ours or any(not codex_hook.is_trusted for codex_hook in ours):
            return False
    return True
