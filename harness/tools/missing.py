"""What to say of a file that is not there: names that are like it, in its folder and elsewhere; none of them is opened.

Only names are looked at, with the ignore files that say which of them do not matter.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator

from harness.actions import PathAccess
from harness.errors import ErrorCode, ToolError
from harness.matchers import PathPatterns, check_pattern
from harness.small_files import read_small
from harness.tools.files import shown
from harness.tools.opening import names_in
from harness.visible import visible_line
from harness.workspace import Workspace

MAX_SEARCHED_NAMES = 5_000
"""Of one folder, and of the whole workspace."""
MAX_NAMED = 3

_NEVER_ENTERED = frozenset(("node_modules", "__pycache__"))
"""Besides hidden folders."""
_IGNORE_FILE = ".gitignore"
_MAX_IGNORE_BYTES = 100_000


def not_found(path: PathAccess, workspace: Workspace) -> ToolError:
    """Return the error for a missing file, with names that are like it."""
    from difflib import get_close_matches

    folder, name = os.path.split(path.real)
    names = names_in(folder, MAX_SEARCHED_NAMES)
    missing = "" if names is not None else " Its folder does not exist."
    before = path.written.rpartition("/")[0]
    likely = [f"{before}/{other}" if before else other for other in get_close_matches(name, names or (), MAX_NAMED)]
    if len(likely) < MAX_NAMED:
        present = [
            os.path.join(os.path.relpath(folder, workspace.root), other) for other in names or () if other == name
        ]
        likely += [other for other in _of_this_name(name, workspace.root) if other not in present]
    likely = list(dict.fromkeys(likely))[:MAX_NAMED]
    question = f" Did you mean: {visible_line(', '.join(likely), 1000)}?" if likely else ""
    return ToolError(f"File not found: {shown(path)}.{missing}{question}", code=ErrorCode.NOT_FOUND)


class _Ignored:
    """The patterns of an ignore file, for names relative to its folder. Lines with `!` are left out: this is a hint."""

    def __init__(self, folder: str, patterns: PathPatterns) -> None:
        self._start = f"{folder}/" if folder else ""
        self._patterns = patterns

    def hits(self, name: str, *, is_folder: bool) -> bool:
        """Say whether a name (relative to the workspace) is to be left out."""
        own = name.removeprefix(self._start)
        return self._patterns.hits((f"{own}/" if is_folder else own,))


def _of_this_name(name: str, root: str) -> Iterator[str]:
    """Yield files of the workspace with this very name, those near its root first; none in a hidden folder, which may
    be one that must not be read."""
    left = MAX_SEARCHED_NAMES
    waiting: deque[tuple[str, tuple[_Ignored, ...]]] = deque([("", ())])
    while waiting and left > 0:
        folder, ignored = waiting.popleft()
        absolute = os.path.join(root, folder)
        own = _patterns_in(absolute)
        if own is not None:
            ignored = (*ignored, _Ignored(folder, own))
        for entry in _entries(absolute):
            left -= 1
            if left < 0:
                return
            relative = f"{folder}/{entry.name}" if folder else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and entry.name != name:
                continue
            if is_folder and (entry.name.startswith(".") or entry.name in _NEVER_ENTERED):
                continue
            if any(each.hits(relative, is_folder=is_folder) for each in ignored):
                continue
            if is_folder:
                waiting.append((relative, ignored))
            elif entry.is_file(follow_symlinks=False):
                yield relative


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            listed = [entry for entry, _ in zip(entries, range(MAX_SEARCHED_NAMES), strict=False)]
    except OSError:
        return []
    return sorted(listed, key=lambda entry: entry.name)


def _patterns_in(folder: str) -> PathPatterns | None:
    data = read_small(os.path.join(folder, _IGNORE_FILE), _MAX_IGNORE_BYTES)
    lines = (data or b"").decode("utf-8", "replace").splitlines()
    patterns = tuple(line.rstrip() for line in lines if line.strip() and check_pattern(line.rstrip()) is None)
    return PathPatterns(patterns=patterns) if patterns else None
