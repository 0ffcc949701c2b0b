"""Steps before the prompt: load the conversation to continue, and ask whether to trust the folder's files."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from harness.actions import Action
from harness.gate.approval import Approval, Approver
from harness.gate.registry import ToolRegistry
from harness.interrupt import Interrupt
from harness.policy.verdict import Verdict
from harness.record import replace
from harness.session.config.settings import TerminalSettings
from harness.session.extensions.project_trust import ask_trust_of_files
from harness.session.state import PROJECT_CONFIG, State, word_folders, workspace_folder
from harness.session.trust import trusted_or_not
from harness.shipped import PROJECT_FILES
from harness.terminal.screen import Screen
from harness.terminal.typing_times import TypingTimes

if TYPE_CHECKING:
    from harness.app.resume import Carried


def carried_over(arguments: Namespace, environment: Mapping[str, str]) -> Carried | None:
    """Return the conversation to continue, if the user asked for one. Raises UsageError or LogError."""
    state, action = State.of(environment), arguments.action
    if not action and not arguments.resume:
        return None
    from harness.app.resume import FORKED, RESUMED, carried_from, newest, refuse_its_log, session_by_name

    method = FORKED if action == "fork" else RESUMED
    name = arguments.session if action else None
    session, note = (
        newest(state, workspace_folder(arguments.cwd)) if name is None else (session_by_name(state, name), "")
    )
    carried = carried_from(state, session, method, turn=arguments.turn if action == "fork" else None)
    refuse_its_log(carried, arguments.log)
    return replace(carried, note=note)


def ask_trust(
    screen: Screen, terminal: TerminalSettings, environment: Mapping[str, str], folder: str, times: TypingTimes
) -> None:
    """Ask whether to trust the folder's policy and other files, once for each content. Raises HarnessError."""

    def ask(action: Action, verdict: Verdict) -> Approval:
        return _ask(screen, terminal, environment, times, action, verdict)

    state = State.of(environment)
    for note in (trusted_or_not(state, folder, ask), *_trusted_files(state, folder, ask)):
        if note:
            screen.line(note)


def _trusted_files(state: State, folder: str, ask: Approver) -> Sequence[str]:
    """Ask whether to trust the files of a folder that add tools, servers, hooks, commands and skills.

    Return notes for the user.
    """
    files = (os.path.join(folder, name) for name in (PROJECT_CONFIG, *PROJECT_FILES))
    if not any(map(os.path.lexists, files)) and not any(word_folders(folder)):
        return ()

    return ask_trust_of_files(state, folder, ask)


def _ask(
    screen: Screen,
    terminal: TerminalSettings,
    environment: Mapping[str, str],
    times: TypingTimes,
    action: Action,
    verdict: Verdict,
) -> Approval:
    """Ask a question before there is a session."""
    from harness.terminal.approver import TerminalApprover

    ask = TerminalApprover(
        screen,
        Interrupt(),
        ToolRegistry(()).confinement,
        environment=environment,
        dead_seconds=terminal.dead_seconds.value,
        times=times,
    )
    return ask(action, verdict)
