"""The walls of a workspace: which of their parts this machine can build (`WallsHere`), and what undo can take back."""

from __future__ import annotations

from harness.record import Record
from harness.text.visible import visible_line


class Undo(Record):
    """The abilities of undo in a workspace."""

    missing: str = ""
    """Reason why changes of commands cannot be undone. Empty if they can."""
    left_out: tuple[str, ...] = ()
    """Absolute paths of folders in the workspace whose content undo does not keep, such as `node_modules`."""


class WallsHere(Record):
    """The workspace walls that the kernel can build here, and the abilities of undo."""

    root: str
    """The workspace, links followed."""
    confines: bool
    hides: bool = False
    """Whether files can be hidden from a command without write access."""
    missing: str = ""
    """Reason for missing walls, in words. Empty if there are walls."""
    hidden: tuple[str, ...] = ()
    """Absolute paths in the workspace that a rule denies to read and that the walls hide."""
    held_places: tuple[str, ...] = ()
    """Absolute paths in the workspace that a rule forbids to write, or asks about, and that the walls write-protect."""
    exposed: tuple[str, ...] = ()
    """Names in the workspace of such files that these walls can neither hide nor write-protect."""
    forbidden: tuple[str, ...] | None = ()
    """Names in the workspace of all files that a rule forbids to write, or asks about. `None` if they are unknown."""
    holds: bool = True
    """Whether protected places in the workspace can be kept read-only."""
    by_host: bool = True
    """Whether a command can be limited to some hosts."""
    undo: Undo = Undo()
    reason: str = ""
    """Reason why `exposed` is not protected, in a few words. Empty if it is unknown."""

    @property
    def gap(self) -> str:
        """The missing part of the workspace walls, in a short clause. Empty if they are complete."""
        if not self.confines:
            return self.missing or "no walls"
        more = f" and {len(self.exposed) - 1} more" if len(self.exposed) > 1 else ""
        reason = f" ({self.reason})" if self.reason else ""
        return f"{visible_line(self.exposed[0], 200)}{more} cannot be protected here{reason}" if self.exposed else ""


COMPLETE = WallsHere(root="", confines=True)
"""Walls without a gap, for judging a call on an unknown machine."""
