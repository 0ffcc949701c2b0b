"""Claude Code's own files: those of one session, and the skills that it may load. Read in 2.1.332."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from harness.files.repository import folders_up
from harness.plugins.agents.event import HookEvent
from harness.regex import regex
from harness.safe_files import read_small

_NAME = regex(r"^[0-9A-Za-z_:-]+\Z")
"""Matches the name of a skill or a session."""
_PLACES = ("skills", "commands")
_RUNS = regex(rb"!`|```!|hooks|\\[xuU]")
"""Matches what may be a command that Claude Code runs while it loads a skill, or a hook that the skill adds."""
_MOST_FILES = 1_000
"""Maximum number of files and folders of skills. With more, a skill counts as one that runs commands."""
_MOST_BYTES = 1_000_000


def own_places(event: HookEvent, environment: Mapping[str, str]) -> Sequence[str]:
    """Return the places of an event's session: outputs, large results, memory of the project, plans and skills.

    Empty if the event names no transcript as Claude Code does.
    """
    folder = _folder_of(event)
    if not folder:
        return ()
    project = os.path.dirname(event.transcript)
    temporary = environment.get("CLAUDE_CODE_TMPDIR") or "/tmp"  # noqa: S108 - there Claude Code writes outputs
    return (
        os.path.join(temporary, f"claude-{os.geteuid()}", os.path.basename(project), event.session),
        os.path.join(project, event.session),
        os.path.join(project, "memory"),
        os.path.join(folder, "plans"),
        os.path.join(folder, "skills"),
    )


def may_run_commands(event: HookEvent) -> bool:
    """Return whether a call of `Skill` may run commands that no hook sees.

    Claude Code runs the commands in a skill (`!`) while it loads it. A skill of the project must be in a known place, and
    none there may hold commands. Skills of the person are theirs, like plugins (`PLUGIN:SKILL`).
    """
    name = event.arguments.get("skill")
    if not isinstance(name, str) or not _NAME.search(name) or not os.path.isabs(event.cwd):
        return True
    plugin, mark, _ = name.partition(":")
    folders = folders_up(os.path.realpath(event.cwd))
    if mark and any(os.path.isdir(os.path.join(folder, plugin)) for folder in folders):
        return True
    tops = [os.path.join(folder, ".claude", place) for folder in folders for place in _PLACES]
    for path in (path for top in tops for path in _texts(top)):
        content = None if path is None else read_small(path, _MOST_BYTES)
        if content is None or _RUNS.search(content):
            return True
    tops += [os.path.join(folder, place) for folder in filter(None, [_folder_of(event)]) for place in _PLACES]
    return not mark and not any(os.path.exists(os.path.join(top, name + end)) for top in tops for end in ("", ".md"))


def _folder_of(event: HookEvent) -> str:
    """Return Claude Code's folder, by the transcript `projects/PROJECT/SESSION.jsonl` in it. Empty for another path."""
    project, name = os.path.split(event.transcript)
    folder, last = os.path.split(os.path.dirname(project))
    is_plain = last == "projects" and name == f"{event.session}.jsonl" and _NAME.search(event.session)
    return folder if is_plain and ":" not in event.session else ""


def _texts(folder: str) -> Iterator[str | None]:
    """Yield the Markdown files below a folder, links followed; `None` at the end if there are too many."""
    count = 0
    for path, folders, files in os.walk(folder, followlinks=True):
        count += 1 + len(files)
        if count > _MOST_FILES:
            folders.clear()
            yield None
        yield from (os.path.join(path, name) for name in files if name.lower().endswith(".md"))
