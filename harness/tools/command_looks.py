"""The looks at the files of a workspace around commands that may write them. Loaded with the first look."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from threading import Event, Thread

from harness.actions import Access, JsonValue, PathAccess, Place
from harness.files.recorded_changes import recorded
from harness.files.repository import local_history
from harness.files.tree_watch import TreeWatch
from harness.gate.tool import CompareFiles
from harness.paths import TreeNames
from harness.policy.matchers import FileMatcher
from harness.policy.patterns import path_patterns
from harness.policy.walls_here import Undo

FRESH_SECONDS = 1.0
"""Age of a look up to which a command needs no new one. What the user saves meanwhile counts as the command's.

INVARIANT: changes by the session itself never count so; see `CommandLooks.outdate`.
"""
LOOK_AGAIN_SECONDS = 0.7
MOST_LOOKS = 60
"""Maximum number of looks during one question. A later answer waits for a new look."""


class AwaitedCommand:
    """The looks during a question about one command."""

    def __init__(self) -> None:
        self._end_event = Event()

    def look(self, look: Callable[[], None]) -> None:
        """Look again and again until `end`."""
        for _ in range(MOST_LOOKS):
            look()
            if self._end_event.wait(LOOK_AGAIN_SECONDS):
                return

    def end(self) -> None:
        """End the looks."""
        self._end_event.set()


class CommandLooks:
    """Looks at the files of one workspace. May be used by several threads."""

    def __init__(
        self,
        root: str,
        stores: str,
        environment: Mapping[str, str],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Watch the absolute, resolved folder `root`, and keep contents of its files in the folder `stores`.

        `environment` is that of the user, and `monotonic` a clock in seconds.
        """
        self._denied = DeniedFiles(root)
        self._watch = TreeWatch(root, stores, denied=self._denied, environment=environment, monotonic=monotonic)
        self.ahead = Thread()
        """The thread of the last look ahead."""
        self.awaited: AwaitedCommand | None = None
        """The command of the present approval prompt."""

    @property
    def undo(self) -> Undo:
        """The changes that undo can take back, as of the last look."""
        left_out = (f"{self._watch.root}/{place.path}" for place in self._watch.left_out)
        return Undo(missing=self._watch.seen_problem, left_out=tuple(left_out))

    def look_ahead(self, denied: Sequence[FileMatcher]) -> None:
        """Look at the files on another thread, unless one looks already, or a look is recent.

        `denied` match the files whose content is never stored.
        """
        if not self.ahead.is_alive() and not self._watch.is_fresh(LOOK_AGAIN_SECONDS):
            self._denied.match(denied)
            self.ahead = Thread(target=self._watch.look_ahead, daemon=True)
            self.ahead.start()

    def outdate(self) -> None:
        """Make the next `note` look again, also if a look is under way: the session may have changed files."""
        self._watch.outdate()

    def expect(self, denied: Sequence[FileMatcher]) -> None:
        """Look again and again on another thread until the next `note`, which then need not look.

        For the time of a question about a command. It ends by itself after MOST_LOOKS.
        """
        self._denied.match(denied)
        self.stop_looking()
        self.awaited = awaited = AwaitedCommand()
        Thread(target=lambda: awaited.look(self._watch.look_ahead), daemon=True).start()

    def stop_looking(self) -> None:
        """End the looks of `expect`."""
        awaited, self.awaited = self.awaited, None
        if awaited is not None:
            awaited.end()

    def note(self, denied: Sequence[FileMatcher]) -> CompareFiles:
        """Note the files right before a command. `denied` match the files whose content is never stored."""
        self._denied.match(denied)
        self.stop_looking()
        noted = self._watch.note(fresh_seconds=FRESH_SECONDS)
        histories = {folder: local_history(folder) for folder in (self._watch.root, *self._watch.repositories)}

        def compare() -> Mapping[str, JsonValue]:
            changes = noted.compared()
            history_changed = any(local_history(folder) != before for folder, before in histories.items())
            return recorded(changes, history_changed=history_changed)

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
