"""`harness hook run`: start an agent so that the settings of a project cannot turn its hooks off."""

from __future__ import annotations

import json
import os
import signal
from argparse import Namespace
from collections.abc import Mapping
from typing import NoReturn

from harness.errors import UsageError
from harness.files.repository import work_top
from harness.plugins.agents.agent_files import read_settings
from harness.plugins.agents.commands.agent_program import agent_program
from harness.plugins.agents.guarded_agent import GuardedAgent, HeldStart, agent_named
from harness.plugins.agents.hook_line import is_written_by_us
from harness.plugins.agents.off_switch import off_switches
from harness.plugins.agents.settings_file import Installed, installed, settings_path
from harness.safe_files import make_private, replace_file
from harness.session.state import State, current_folder


def run(arguments: Namespace, environment: Mapping[str, str]) -> NoReturn:
    """Replace this process by the agent that `arguments` name. Raises UsageError if its hooks would not be on."""
    agent = agent_named(arguments.agent)
    program = agent_program(agent, environment)
    if program is None:
        raise UsageError(f"`{agent.program}` is not in PATH")
    hook = _hook(agent, environment)
    if agent.held_start is None:
        start = HeldStart()
        for switch in off_switches(agent, environment, current_folder()):
            raise UsageError(f"{agent.title} was not started, since its hooks are off: {switch.words}")
    else:
        start = agent.held_start(agent.settings_content(hook.command))
    for word in arguments.words:
        flag = word.partition("=")[0]
        if flag in (*agent.off_words, *agent.off_values) or (flag.startswith("--") and flag in start.words):
            raise UsageError(f"{agent.title} was not started, since {flag} turns its hooks off, or may: leave it out")
    variables = dict(environment)
    if start.settings_variable:
        variables[start.settings_variable] = _strongest_settings(agent, start, environment)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and execve(2) keeps that
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execve(program, (program, *start.words, *arguments.words), variables)  # noqa: S606 - it becomes the agent
    except OSError as error:
        raise UsageError(f"{agent.title} cannot be started: {error.strerror}") from None


def _hook(agent: GuardedAgent, environment: Mapping[str, str]) -> Installed:
    """Return our hook in the user's or the project's settings. Raises UsageError if it is missing or incomplete."""
    for project in (None, current_folder()) if agent.settings.project else (None,):
        hook = installed(agent, settings_path(agent, environment, project))
        if hook is None or not hook.complete:
            continue
        if project is None or is_written_by_us(
            hook.command, agent.name, work_top(project, environment.get("HOME", ""))
        ):
            return hook
    raise UsageError(f"{agent.title} does not ask harness yet: `harness hook install {agent.name}` installs the hook")


def _strongest_settings(agent: GuardedAgent, start: HeldStart, environment: Mapping[str, str]) -> str:
    """Write the file of the strongest settings, with those of an administrator, and return its path."""
    present = environment.get(start.settings_variable) or start.settings_file
    settings = {**read_settings(present, has_comments=agent.settings.has_comments), **start.settings}
    state = State.of(environment).state
    make_private(state)
    path = os.path.join(state, f"{agent.name}_settings.json")
    if os.path.realpath(present) != os.path.realpath(path):
        replace_file(path, [json.dumps(settings).encode()])
    return path
