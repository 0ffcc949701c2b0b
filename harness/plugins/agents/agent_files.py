"""Settings files of an agent, besides the one with our hook: where they are, and their content."""

from __future__ import annotations

import glob
import json
import os
import tomllib
from collections.abc import Iterator, Mapping

from harness.actions import JsonValue
from harness.errors import UsageError
from harness.files.repository import folders_up
from harness.plugins.agents.guarded_agent import AgentFile, GuardedAgent
from harness.plugins.agents.json_text import without_comments
from harness.plugins.agents.settings_file import MOST_BYTES, user_path
from harness.safe_files import read_small
from harness.text.visible import visible_line


def paths_of(agent: GuardedAgent, file: AgentFile, environment: Mapping[str, str], folder: str) -> Iterator[str]:
    """Yield the paths of `file` if the agent starts in `folder`, the nearest last.

    Raises UsageError if HOME is not an absolute path.
    """
    if file.is_user:
        patterns = [user_path(agent, environment, file.path)]
    else:
        folders = folders_up(os.path.realpath(folder)) if file.is_read_above else [folder]
        patterns = [os.path.join(glob.escape(parent), file.path) for parent in reversed(folders)]
    for pattern in patterns:
        if glob.has_magic(pattern):
            yield from sorted(glob.glob(pattern))
        else:
            yield pattern


def read_settings(path: str, *, has_comments: bool) -> Mapping[str, JsonValue]:
    """Return the settings in a file of JSON or TOML; no settings if it is missing. Raises UsageError if it is unreadable."""
    content = read_small(path, MOST_BYTES)
    if content is None:
        if os.path.lexists(path):
            raise UsageError(f"{visible_line(path, 1_000)} cannot be read, and may turn hooks off")
        return {}
    try:
        text = content.decode("utf-8-sig")
        if path.endswith(".toml"):
            return tomllib.loads(text)
        value = json.loads((without_comments(text) if has_comments else text) or "{}")
    except (ValueError, RecursionError) as error:
        problem = visible_line(str(error), 200)
        raise UsageError(f"{visible_line(path, 1_000)} cannot be read, and may turn hooks off: {problem}") from None
    return value if isinstance(value, dict) else {}
