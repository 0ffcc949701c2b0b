"""The changes of a workspace's files by commands: a look before and after each one that may write."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from threading import Thread
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
    def _looks(self) -> CommandLooks:
        from harness.tools.command_looks import CommandLooks

        return CommandLooks(*self._place)

    @property
    def undo(self) -> Undo:
        """The changes that undo can take back."""
        return self._looks.undo

    def look_ahead(self, policy: Policy) -> None:
        """Look at the files on another thread, so that the first command does not wait. `policy` is the one in force."""
        looks, denied = self._looks, policy.unreadable_files
        Thread(target=lambda: looks.look_ahead(denied), daemon=True).start()

    def expect(self, effects: Effects, policy: Policy) -> None:
        """Keep the looks fresh during a question about a command, so that it does not wait for one."""
        if effects.may_write:
            self._looks.expect(policy.unreadable_files)

    def note(self, effects: Effects, policy: Policy) -> CompareFiles | None:
        """Note the files right before a command. `None` for one that can write nothing."""
        return self._looks.note(policy.unreadable_files) if effects.may_write else None
