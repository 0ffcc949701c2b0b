"""The terminal of the prompt: the screen, the input line, type-ahead, and lending the terminal to a command."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from harness.app.commands.help import KEYS
from harness.app.edit_diffs import edit_diffs
from harness.app.repl.clipboard_picture import clipboard_picture
from harness.plugin import SlashCommand
from harness.process.lent_terminal import LentTerminal
from harness.redaction.redactor import Redactor
from harness.session.config.declared import QUEUES
from harness.session.session_place import SessionPlace
from harness.terminal.change_rows import Diffs
from harness.terminal.completion import Menus
from harness.terminal.console import look_from
from harness.terminal.file_names import FileIndex
from harness.terminal.line_history import KeptHistory
from harness.terminal.prompt_line import PromptLine
from harness.terminal.screen import Notices, Screen
from harness.terminal.styles import Tone
from harness.terminal.type_ahead import TypeAhead
from harness.terminal.typing_times import TypingTimes

TWICE_SECONDS = 2.0
"""Maximum time in seconds between two Ctrl-C at an empty prompt that exit the program."""


class Terminal:
    """The user's terminal: output and keys."""

    def __init__(self, place: SessionPlace, is_message: Callable[[str], bool], times: TypingTimes) -> None:
        """`is_message` returns whether a typed line is a message to the model. `times` are those of earlier questions."""
        settings = place.settings.terminal
        look = look_from(settings, place.environment)
        self._settings = settings
        self._environment = place.environment
        self._history: KeptHistory | None = None
        self.screen = Screen(
            sys.stdout,
            look,
            redactor=place.redactor,
            notices=Notices(settings.notify.value),
            way_to_output="/output",
            way_to_stop="Esc stops",
            diffs=Diffs(settings.diffs.value),
            diff_of=edit_diffs(place.state, place.workspace.root, place.redactor),
        )
        self.times = times
        self.ahead = TypeAhead(
            sys.stdin.fileno(),
            tell=self.screen.queued,
            stop=_stop_turn,
            escapes=look.repaints,
            is_message=is_message,
            tab_steers=settings.enter.value == QUEUES,
            times=self.times,
        )
        self._draws: Callable[[str], None] = self.screen.live
        """Function that shows the output of a running command."""
        self._lends = False
        """Whether the running command gets the terminal."""

    def draw(self, printed: str) -> None:
        """Show output of a running command."""
        self._draws(printed)

    def lend(self) -> AbstractContextManager[LentTerminal] | None:
        """Lend the terminal to the running command, if it gets the terminal. Else return `None`."""
        return self.lent() if self._lends else None

    @contextmanager
    def showing(self, draws: Callable[[str], None], lends: bool) -> Iterator[None]:
        """Show the output of a user's command by `draws` during the block.

        `lends` tells whether it gets the terminal.
        """
        before = self._draws, self._lends
        self._draws, self._lends = draws, lends
        try:
            yield
        finally:
            self._draws, self._lends = before

    def prompt_line(
        self,
        history: str,
        root: str,
        pictures: str,
        redactor: Redactor,
        toolbar: Callable[[str, str], Sequence[tuple[str, Tone]]],
        commands: Callable[[], Sequence[SlashCommand]],
        offers: Callable[[], Menus],
        next_mode: Callable[[], None],
    ) -> PromptLine:
        """Return the input line.

        `history` is the path of the history file, `root` is the folder for file names, and `pictures` that for pictures
        of the clipboard. `offers` returns the menus of commands. `next_mode` is the action of Shift-Tab.
        """
        self._history = KeptHistory(history, redactor)
        return PromptLine(
            history=self._history,
            commands=lambda: [(name, command.summary) for command in commands() for name in command.names],
            files=FileIndex(root, self._environment).matches,
            offers=offers,
            keys=KEYS,
            vi=self._settings.vi.value,
            look=self.screen.look,
            toolbar=toolbar,
            next_mode=next_mode,
            environment=self._environment,
            tell=self.screen.line,
            times=self.times,
            picture=lambda: clipboard_picture(self._environment, root, pictures),
            root=root,
        )

    @contextmanager
    def lent(self) -> Iterator[LentTerminal]:
        """Lend the terminal to a command. During the block, this program neither reads nor writes it.

        Raises OSError if the terminal is gone.
        """
        with self.ahead.paused():
            self.screen.settle()
            keyboard, screen = sys.stdin.fileno(), sys.stdout.fileno()
            with LentTerminal(keyboard, screen, self._environment, escapes=self.screen.look.repaints) as terminal:
                yield terminal

    @property
    def history_problem(self) -> str:
        """Reason why lines are not stored in the history. Empty if they are, or if the history is not loaded yet."""
        return self._history.problem if self._history is not None else ""

    def remember(self, line: str) -> None:
        """Store a typed-ahead line in the history, unless it has a secret."""
        if self._history is not None:
            self._history.append_string(line)


class DoublePress:
    """Detector of two Ctrl-C in quick succession."""

    def __init__(self) -> None:
        self._last = -TWICE_SECONDS

    def again(self, now: float) -> bool:
        """Record a Ctrl-C at `now` (seconds of a monotonic clock).

        Return whether the previous one is less than TWICE_SECONDS ago.
        """
        last, self._last = self._last, now
        return now - last < TWICE_SECONDS


def _stop_turn() -> None:
    """Interrupt the turn like Ctrl-C, from another thread. The main thread reacts when that is safe."""
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, signal.SIGINT)
