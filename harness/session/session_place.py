"""The first step of a session, its place: workspace, own folders, environment, settings, secrets, path of the log."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence

from harness.files.workspace import Workspace
from harness.interrupt import Interrupt
from harness.paths import is_within
from harness.record import Record
from harness.redaction.redactor import Redactor
from harness.session.config.provider import not_for, withhold
from harness.session.config.settings import Settings, settings_from
from harness.session.environment_secrets import redactor_for, secrets_of
from harness.session.extensions.extensions import Extensions
from harness.session.extensions.extensions_here import extensions_here
from harness.session.own_folders import keep_own_folders, named_log, refuse_own_folders
from harness.session.policies import policy_above
from harness.session.shipped_plugins import part_of
from harness.session.state import PROJECT_CONFIG, State, current_folder, word_folders, workspace_folder
from harness.session.words.own_words import words_here
from harness.session.words.word_files import OwnWords
from harness.shipped import PROJECT_FILES
from harness.text.visible import visible_line


class SessionPlace(Record):
    """The place of a session, from which SessionRules are made."""

    environment: Mapping[str, str]
    state: State
    workspace: Workspace
    log: str | None
    """The path that `--log` names. `None` for a new log of the workspace."""
    interrupt: Interrupt
    settings: Settings
    """The settings when the session begins."""
    extensions: Extensions
    redactor: Redactor
    words: OwnWords = OwnWords()
    notes: Sequence[str] = ()
    """Lines for the user about files and tables that were left out."""


def place_of(arguments: Namespace, environment: Mapping[str, str], tell: Callable[[str], None]) -> SessionPlace:
    """Return the place that the flags and the environment name. Raises UsageError."""
    state = State.of(environment)
    words = words_of(state, workspace_folder(arguments.cwd), environment)
    workspace = Workspace(
        arguments.cwd or current_folder(),
        environment.get("HOME"),
        outputs=state.new_outputs(),
        added=arguments.add_dir,
        # Git in a task's commands must read the mirror that the worktree belongs to. The folders around it stay hidden.
        skills=(*words.skill_places, *mirrors_of(arguments.copied_from, state)),
    )
    refuse_own_folders(workspace, state)
    log = named_log(arguments, workspace, state)
    keep_own_folders(workspace, state)
    settings = settings_from(arguments, environment, workspace.root)
    extensions, notes = extensions_of(settings, state, workspace.root, environment)
    withhold(not_for(settings))
    home = environment.get("HOME", "")
    unless = (workspace.root, home)
    if top_policy := policy_above(workspace.root, home):
        top_policy = visible_line(top_policy, 1_000)
        notes = (*notes, f"of {top_policy}, at the top of the repository, only what tightens holds here")
    return SessionPlace(
        environment=environment,
        state=state,
        workspace=workspace,
        log=log,
        interrupt=Interrupt(),
        settings=settings,
        extensions=extensions,
        redactor=redactor_for(
            state, environment, _secrets_of(settings, extensions, environment), unless=unless, tell=tell
        ),
        words=words,
        notes=(*notes, *words.notes),
    )


def _secrets_of(settings: Settings, extensions: Extensions, environment: Mapping[str, str]) -> Sequence[str]:
    """Return the secrets to mask: those of the environment, of each profile that `/model` may choose, and of extensions."""
    secrets = secrets_of(environment, settings.key_variable.value, settings.base_url.value)
    for profile in settings.file.profiles.values():
        secrets += secrets_of(environment, profile.value_of("key_variable"), profile.value_of("base_url"))
    for key, entries in extensions.sections.items():
        secrets += tuple(part_of(key).secrets(tuple(entries.values()), environment))
    return secrets


def extensions_of(
    settings: Settings, state: State, workspace: str, environment: Mapping[str, str]
) -> tuple[Extensions, Sequence[str]]:
    """Return a session's extensions, and notes for the user about those left out. Raises UsageError.

    See session/extensions/.
    """
    files = (os.path.join(workspace, name) for name in (PROJECT_CONFIG, *PROJECT_FILES))
    if not settings.file.extensions and not any(map(os.path.lexists, files)):
        return Extensions(), ()

    extensions = extensions_here(settings.file.extensions, state, workspace, environment)
    return extensions.extensions, extensions.notes


def words_of(state: State, workspace: str, environment: Mapping[str, str]) -> OwnWords:
    """Return the user's commands and skills, and those of the workspace that are trusted. Raises UsageError."""
    user_folders = (os.path.join(state.config, name) for name in ("commands", "skills"))
    if not any(map(os.path.lexists, user_folders)) and not any(word_folders(workspace)):
        return OwnWords()

    return words_here(state, workspace, os.path.realpath(environment.get("HOME") or os.path.expanduser("~")))


def mirrors_of(copied_from: str | None, state: State) -> tuple[str, ...]:
    """Return the mirror (session/work_folders/mirror.py) behind a worktree; empty for any other workspace.

    `copied_from` is the folder (absolute, links followed) that a task's workspace is a copy of. `None` without a copy.
    """
    if copied_from is None:
        return ()
    mirrors = os.path.join(os.path.realpath(state.state), "mirrors")
    return (copied_from,) if is_within(copied_from, mirrors) else ()
