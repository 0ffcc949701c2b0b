"""The session's own `/tmp`: where the files are that commands see there, if their walls give them a private one."""

from __future__ import annotations

from collections.abc import Callable

from harness.paths import is_within, is_within_any
from harness.record import Record

_NAME = "/tmp"  # noqa: S108 - a name, and no file in it


class OwnTemporary(Record):
    """The folders for temporary files, as the commands of a session see them. All paths are absolute and resolved."""

    places: tuple[str, ...]
    """The folders that the session's own folder covers: `/tmp` and `/var/tmp`, where they exist."""
    folder: str
    """The session's own folder on the disk. A missing one counts as empty."""
    visible_paths: tuple[str, ...] = ()
    """Paths below `places` that commands see as they are on the machine, such as the workspace."""

    def holds(self, path: str) -> bool:
        """Return whether a path, as commands name it, is in the session's own folder."""
        return self._place_of(path) != ""

    def on_disk(self, path: str) -> str:
        """Return the path on the disk of what commands find at `path`."""
        place = self._place_of(path)
        return self.folder + path.removeprefix(place) if place and not is_within(path, self.folder) else path

    def _place_of(self, path: str) -> str:
        """Return the one of `places` that holds a path. Empty if none does, or if the machine's files are shown there."""
        place = next((place for place in self.places if is_within(path, place)), "")
        return "" if is_within_any(path, self.visible_paths) else place


def named_in(command: str, temporary: Callable[[], OwnTemporary | None]) -> OwnTemporary | None:
    """Return the session's own folders, from `temporary`, if a command line names one.

    Otherwise what leads there counts as outside, so that no other command waits for a private `/tmp`.
    """
    return temporary() if _NAME in command else None
