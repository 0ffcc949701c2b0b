"""The environment of a command: a short list of names, so that no key is handed on by being forgotten; reads nothing itself."""

from __future__ import annotations

import os
from collections.abc import Mapping

PASSED_VARIABLES = frozenset(
    "HOME USER LOGNAME SHELL TZ TMPDIR LANG LC_ALL LC_ADDRESS LC_COLLATE LC_CTYPE LC_IDENTIFICATION LC_MEASUREMENT "
    "LC_MESSAGES LC_MONETARY LC_NAME LC_NUMERIC LC_PAPER LC_TELEPHONE LC_TIME".split()
)
"""What a command gets from the harness's own environment, besides PATH: never a key, by being a list of names."""

# Nothing may ask a question, page, colour or start what a repository's configuration names.
_SET_VARIABLES = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "EDITOR": "true",
    "GIT_OPTIONAL_LOCKS": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    # Python takes stale bytecode for good when a file was edited within the same second to the same length.
    "PYTHONDONTWRITEBYTECODE": "1",
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "safe.bareRepository",
    "GIT_CONFIG_VALUE_1": "explicit",
}


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a command: a few variables by name, and what keeps programs from asking and paging.

    Relative entries of PATH are dropped: with them, the folder at hand would say what `ls` is.
    """
    passed = {name: value for name, value in environment.items() if name in PASSED_VARIABLES}
    folders = [folder for folder in environment.get("PATH", os.defpath).split(":") if folder.startswith("/")]
    return {**passed, "PATH": ":".join(folders) or os.defpath, **_SET_VARIABLES}
