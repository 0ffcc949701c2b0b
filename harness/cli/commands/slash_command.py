"""A slash command: how it is written, what /help says of it, and the function that does it."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from harness.record import Record

if TYPE_CHECKING:
    from harness.cli.commands.conversation import Conversation

Does: TypeAlias = "Callable[[Conversation, str], None]"
"""Does a command; the text is what follows its name, without blanks around it. Raises HarnessError for what is wrong."""


class HelpGroup(Enum):
    """Under which heading /help names a command."""

    TALK = "the conversation"
    WORK = "what was done"
    RULES = "what holds"
    PROGRAM = "the program"


class Effect(Enum):
    """What a command may do."""

    SHOWS = "shows"
    """Nothing but showing: it writes no record and no file, so that Ctrl-C may stop it anywhere."""
    CHANGES = "changes"


class SlashCommand(Record):
    """One slash command. Each module of this package has a tuple `COMMANDS` of those that it does."""

    name: str
    """With the slash."""
    arguments: str = ""
    """As /help writes them; empty: none may follow."""
    summary: str
    group: HelpGroup
    does: Does
    effect: Effect = Effect.CHANGES
    most: int | None = 1
    """How many words may follow, where any may; None: as many as there are."""
    aliases: tuple[str, ...] = ()

    @property
    def usage(self) -> str:
        """How the command is written."""
        return f"{self.name} {self.arguments}".rstrip()
