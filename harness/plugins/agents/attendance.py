"""Whether a person seems to sit at an agent."""

from __future__ import annotations

from collections.abc import Mapping

from harness.process.procfs import process

_MOST_ANCESTORS = 50


def is_attended(environment: Mapping[str, str], pid: int) -> bool:
    """Return whether a process has a terminal, or one of its ancestors has, and is not part of a CI job (`CI`).

    An agent may start its hooks without a terminal, so the agent's own counts too.
    """
    if environment.get("CI", "").lower() not in ("", "0", "false"):
        return False
    for _ in range(_MOST_ANCESTORS):
        facts = process(pid)
        if facts is None:
            return False
        if facts.terminal:
            return True
        pid = facts.parent
    return False
