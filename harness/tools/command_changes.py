"""The changes of a workspace's files by commands: a look before and after each one that may write."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from harness.actions import Effects
from harness.gate.tool import CompareFiles
from harness.policy.policy import Policy
from harness.policy.walls_here import Undo

if TYPE_CHECKING:
    from harness.tools.command_looks import CommandLooks


class CommandChanges:
    """Finds the changes of the commands in one workspace."""

    def __init__(self, root: str, stores: str, environment: Mapping[str, str]) -> None:
        """Watch the absolute, resolved folder `root`, and keep contents of its files in the folder `stores`.

        `environment` is that of the user.
        """
        self._place = root, stores, environment

    @cached_property
    def looks(self) -> CommandLooks:
        """The looks at the files. Made and loaded at the first use."""
        from harness.tools.command_looks import CommandLooks

        return CommandLooks(*self._place)

    @property
    def undo(self) -> Undo:
        """The changes that undo can take back."""
        return self.looks.undo

    def look_ahead(self, policy: Policy) -> None:
        """Look at the files on another thread, so that the next command does not wait, unless a look is recent.

        `policy` is the one in force.
        """
        self.looks.look_ahead(policy.unreadable_files)

    def expect(self, effects: Effects, policy: Policy) -> None:
        """Keep the looks fresh during a question about a command, so that it does not wait for one."""
        if effects.may_write:
            self.looks.expect(policy.unreadable_files)

    def outdate(self) -> None:
        """Make the next command look again, since the session may have changed files."""
        if "looks" in vars(self):
            self.looks.outdate()

    def note(self, effects: Effects, policy: Policy) -> CompareFiles | None:
        """Note the files right before a command. `None` for one that can write nothing."""
        return self.looks.note(policy.unreadable_files) if effects.may_write else None
