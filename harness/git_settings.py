"""What keeps git from running what a repository names: the keys and variables that all who start git share; starts none."""

from __future__ import annotations

from collections.abc import Iterable

QUIET = (
    ("core.fsmonitor", "false"),
    ("safe.bareRepository", "explicit"),
)
"""Keys (git-config(1)) for every git: it starts no watcher, and takes no folder for a repository that only looks like one."""
UNASKED = (
    *QUIET,
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.attributesFile", "/dev/null"),
)
"""For a git that nobody was asked about: no hook, no pager, no driver of a file's kind from outside the repository."""
OFFLINE = ("protocol.allow", "never")
"""No transport, so that nothing is fetched to answer a question."""
OFFLINE_VARIABLES = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
"""The same (git(1)); and an object that is not there stays so."""


def as_variables(settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the variables that set these keys for every git command (git-config(1), GIT_CONFIG_COUNT)."""
    variables: dict[str, str] = {}
    number = 0
    for number, (key, value) in enumerate(settings, 1):
        variables |= {f"GIT_CONFIG_KEY_{number - 1}": key, f"GIT_CONFIG_VALUE_{number - 1}": value}
    return {"GIT_CONFIG_COUNT": str(number), **variables}
