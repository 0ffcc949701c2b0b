"""The front of a session: the prompt, a run, the client of an editor, or none."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from harness.process.lent_terminal import LentTerminal
    from harness.tools.ask_user import UserAnswer, UserQuestion


def terminal_is_there() -> bool:
    """Return whether stdin and stdout are terminals, so that the program can ask the user."""
    return all(stream is not None and os.isatty(stream.fileno()) for stream in (sys.stdin, sys.stdout))


class Front(Protocol):
    """Everything that a session shows to its user or asks them. Approval of calls is separate: it has no default."""

    def tell(self, line: str, /) -> None:
        """Show the user one line of untrusted text. May be called in any thread."""
        ...

    def ask(self, question: UserQuestion, /) -> UserAnswer | None:
        """Put a question of the model to the user. Return None if no user is there."""
        ...

    def draw(self, printed: str, /) -> None:
        """Show output of a running command."""
        ...

    def countdown(self, seconds: float, /) -> None:
        """Wait before a request is sent again."""
        ...

    def lend(self) -> AbstractContextManager[LentTerminal] | None:
        """Lend the terminal to a command that the user typed. Return None for any other command."""
        ...


class NoFront:
    """A front without a user: lines go to `tell`, nothing is drawn, and no question has an answer."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def tell(self, line: str, /) -> None:
        """Pass a line on."""
        self._tell(line)

    def ask(self, _question: UserQuestion, /) -> UserAnswer | None:
        """Return no answer."""
        return None

    def draw(self, printed: str, /) -> None:
        """Draw nothing."""

    def countdown(self, seconds: float, /) -> None:
        """Wait without a display."""
        time.sleep(seconds)

    def lend(self) -> AbstractContextManager[LentTerminal] | None:
        """Return `None`, since there is no terminal to lend."""
        return None
