"""The looks at the files of a workspace around commands that may write them. Loaded with the first look."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from harness.actions import Access, Decision, JsonValue, PathAccess, Place
from harness.files.recorded_changes import recorded
from harness.files.repository import local_history
from harness.files.tree_watch import TreeWatch
from harness.gate.tool import CompareFiles
from harness.paths import TreeNames
from harness.policy.policy import Policy
from harness.policy.rules import Rule
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

    def look_ahead(self, policy: Policy) -> None:
        """Look at the files early. `policy` tells which of them are denied."""
        self._denied.judge_by(policy)
        self._watch.look_ahead()

    def note(self, policy: Policy) -> CompareFiles:
        """Note the files right before a command."""
        self._denied.judge_by(policy)
        root = self._watch.root
        history, noted = local_history(root), self._watch.note(fresh_seconds=0)

        def compare() -> Mapping[str, JsonValue]:
            changes = noted.compared()
            return recorded(changes, history_changed=local_history(root) != history)

        return compare


class DeniedFiles:
    """Tells whether a rule denies to read a file. Judges the files of a folder together, which is ten times as fast."""

    def __init__(self, root: str) -> None:
        """Use the workspace `root` (absolute, links followed)."""
        self._root = root
        self._rules: Sequence[Rule] = ()
        self._folders: dict[str, dict[str, bool]] = {}

    def judge_by(self, policy: Policy) -> None:
        """Use the rules of `policy` from now on."""
        rules = [
            rule
            for rule in policy.rules
            if rule.decision >= Decision.DENY and rule.files is not None and Access.READ in rule.files.access
        ]
        if rules != self._rules:
            self._rules, self._folders = rules, {}

    def __call__(self, path: str) -> bool:
        """Return whether a rule denies to read `path`, which is relative to the workspace."""
        if not self._rules:
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
        denied = {name for rule in self._rules if rule.files is not None for name in rule.files.meant_below(place)}
        return {name: name in denied for name in paths}
