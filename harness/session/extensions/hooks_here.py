"""Hooks for the calls of other programs: a guarded agent or a served client. Fast to load if there are none."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from harness.gate.call_checks import NO_CHECKS, CallChecks
from harness.log.vocabulary import CheckEvent
from harness.safe_files import read_small
from harness.session.state import PROJECT_CONFIG, State

if TYPE_CHECKING:
    from harness.checks.hook_declaration import HookDeclaration

_MOST_BYTES = 1_000_000


def hooks_here(
    state: State,
    workspace: str,
    environment: Mapping[str, str],
    redact: Callable[[str], str],
    *,
    clock_stopped: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> CallChecks:
    """Return the hooks of `declared_hooks`, ready to check calls.

    `clock_stopped` pauses the time limit on our own work while a hook runs. Raises UsageError for an invalid file, and
    for a hook that calls could change.
    """
    hooks = declared_hooks(state, workspace, environment)
    if not hooks:
        return NO_CHECKS
    from harness.checks.checks import Checks

    return Checks(
        hooks,
        workspace=workspace,
        environment=environment,
        redact=redact,
        clock_stopped=clock_stopped,
    ).calls


def declared_hooks(state: State, workspace: str, environment: Mapping[str, str]) -> tuple[HookDeclaration, ...]:
    """Return the before-call hooks in the user's file, and in the workspace's own file if the user trusts it.

    Raises UsageError for an invalid file.
    """
    files = (state.config_file, os.path.join(workspace, PROJECT_CONFIG))
    if not any(may_declare(file, b"hook") for file in files):
        return ()
    from harness.session.config.config_file import load_config
    from harness.session.extensions.extensions_here import extensions_here

    user_tables = load_config(state.config_file, workspace).extensions
    declared = extensions_here(user_tables, state, workspace, environment).extensions.hooks.values()
    return tuple(hook for hook in declared if hook.event is CheckEvent.BEFORE_CALL)


def may_declare(file: str, word: bytes) -> bool:
    """Return whether a file must be parsed: it exists and contains `word`, or an escape that could spell its letters."""
    if not os.path.lexists(file):
        return False
    data = read_small(file, _MOST_BYTES)
    return data is None or word in data or b"\\u" in data.lower()
