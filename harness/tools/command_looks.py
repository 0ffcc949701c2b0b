"""The looks at the files of a workspace around commands that may write them. Loaded with the first look."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from harness.actions import Access, JsonValue, PathAccess, Place
from harness.files.recorded_changes import recorded
from harness.files.repository import local_history
from harness.files.tree_watch import TreeWatch
from harness.gate.tool import CompareFiles
from harness.paths import TreeNames
from harness.policy.matchers import FileMatcher
from harness.policy.patterns import path_patterns
from harness.policy.walls_here import Undo


class CommandLooks:
    """Looks at the files of one workspace. May be used by several threads."""

    def __init__(self, root: str, stores: str, environment: Mapping[str, str]) -> None:
        """Watch the absolute, resolved folder `root`, and keep contents of its files in the folder `stores`.

        `environment` is that of the user.
        """
        self._denied = DeniedFiles(root)
        self._watch = TreeWatch(root, stores, denied=self._denied, environment=environment)

    @property
    def undo(self) -> Undo:
        """The changes that undo can take back, as of the last look."""
        left_out = (f"{self._watch.root}/{place.path}" for place in self._watch.left_out)
        return Undo(missing=self._watch.seen_problem, left_out=tuple(left_out))

    def look_ahead(self, denied: Sequence[FileMatcher]) -> None:
        """Look at the files early. `denied` match the files whose content is never stored."""
        self._denied.match(denied)
        self._watch.look_ahead()

    def note(self, denied: Sequence[FileMatcher]) -> CompareFiles:
        """Note the files right before a command. `denied` match the files whose content is never stored."""
        self._denied.match(denied)
        root = self._watch.root
        history, noted = local_history(root), self._watch.note(fresh_seconds=0)

        def compare() -> Mapping[str, JsonValue]:
            changes = noted.compared()
            return recorded(changes, history_changed=local_history(root) != history)

        return compare


def matchers_of(rules: Sequence[Sequence[Sequence[str]]]) -> list[FileMatcher]:
    """Return the matchers of rules about reading. Each rule is its patterns, and its exceptions."""
    return [
        FileMatcher(
            patterns=path_patterns(tuple(patterns)),
            access=(Access.READ,),
            exceptions=path_patterns(tuple(exceptions)) if exceptions else None,
        )
        for patterns, exceptions in rules
    ]


class DeniedFiles:
    """Tells whether a rule denies to read a file. Judges the files of a folder together, which is ten times as fast."""

    def __init__(self, root: str) -> None:
        """Use the workspace `root` (absolute, links followed)."""
        self._root = root
        self._matchers: Sequence[FileMatcher] = ()
        self._folders: dict[str, dict[str, bool]] = {}

    def match(self, matchers: Sequence[FileMatcher]) -> None:
        """Use these matchers from now on."""
        if list(matchers) != list(self._matchers):
            self._matchers, self._folders = matchers, {}

    def __call__(self, path: str) -> bool:
        """Return whether a rule denies to read `path`, which is relative to the workspace."""
        if not self._matchers:
            return False
        folder = path.rpartition("/")[0]
        answers = self._folders.get(folder, {})
        if path not in answers:
            answers = self._folders[folder] = self._judge(folder, path)
        return answers[path]

    def _judge(self, folder: str, path: str) -> dict[str, bool]:
        """Return the answers for the files of a folder, and for `path` even if it is gone."""
        try:
            names = [os.path.join(folder, name) for name in os.listdir(os.path.join(self._root, folder))]
        except OSError:
            names = []
        paths = TreeNames([*names, path])
        place = PathAccess(
            written=".", real="", names=(".",), access=Access.READ, place=Place.ROOT, tree=True, below=paths
        )
        denied = {name for matcher in self._matchers for name in matcher.meant_below(place)}
        return {name: name in denied for name in paths}
