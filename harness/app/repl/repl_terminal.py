"""The parts of the terminal that the prompt uses, put together: screen, questions, the line, what is typed ahead."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from harness.actions import Action, Effects
from harness.app.commands.help import KEYS
from harness.gate.approval import Approval
from harness.gate.place_watch import PlacesQuestion
from harness.interrupt import Interrupt
from harness.log.vocabulary import PlacesAnswer
from harness.policy.grant_offers import Offer
from harness.policy.verdict import Verdict
from harness.session.config.settings import TerminalSettings
from harness.terminal.console import look_from
from harness.terminal.screen import Notices, Screen
from harness.terminal.styles import Tone
from harness.terminal.type_ahead import TypeAhead

if TYPE_CHECKING:
    from harness.app.commands.slash_command import SlashCommand
    from harness.process.lent_terminal import LentTerminal
    from harness.redaction.redactor import Redactor
    from harness.session.approver.standing_question import AskOutside
    from harness.terminal.approver import TerminalApprover
    from harness.terminal.asked_outside import AskedBesides
    from harness.terminal.completion import Menus
    from harness.terminal.line_history import KeptHistory
    from harness.terminal.prompt_line import PromptLine
    from harness.terminal.question import Usual
    from harness.tools.ask_user import UserAnswer, UserQuestion

TWICE_SECONDS = 2.0
"""Two Ctrl-C at an empty prompt within this time leave."""


class Terminal:
    """What a person sees and types at."""

    def __init__(
        self,
        settings: TerminalSettings,
        environment: Mapping[str, str],
        *,
        interrupt: Interrupt,
        redactor: Redactor,
        confinement: Callable[[str, Effects], str],
        usual: Callable[[], Usual],
        offer: Callable[[Action, Verdict], Offer | str],
        advise: Callable[[Action, Verdict], str],
        outside: AskOutside,
    ) -> None:
        """Take how it is to be, what stops a question, what masks secrets, what confines calls, what commands
        usually have, what can be granted, what rule does it where nothing can, and who is asked outside as well."""
        look = look_from(settings, environment)
        self._settings = settings
        self._environment = environment
        self._interrupt = interrupt
        self._confinement = confinement
        self._usual = usual
        self._offer = offer
        self._advise = advise
        self._outside = outside
        self._history: KeptHistory | None = None
        self.screen = Screen(
            sys.stdout,
            look,
            redactor=redactor,
            notices=Notices(settings.notify.value),
            way_to_output="/output shows all",
            way_to_stop="Esc stops",
        )
        self.ahead = TypeAhead(sys.stdin.fileno(), tell=self.screen.queued, stop=_stop_turn, escapes=look.repaints)

    @cached_property
    def approver(self) -> TerminalApprover:
        """What puts questions; imported with the first turn, since the prompt comes sooner without it."""
        from harness.terminal.approver import TerminalApprover

        return TerminalApprover(
            self.screen,
            self._interrupt,
            self._confinement,
            environment=self._environment,
            offer=self._offer,
            advise=self._advise,
            paused=self.ahead.paused,
            usual=self._usual,
            dead_seconds=self._settings.dead_seconds.value,
            keyboard_of=self._besides.keyboard,
        )

    @cached_property
    def _besides(self) -> AskedBesides:
        from harness.terminal.asked_outside import AskedBesides

        return AskedBesides(self._outside, self.screen)

    def ask(self, action: Action, verdict: Verdict) -> Approval:
        """Ask about a call, as an Approver does: here, and outside where somebody is."""
        return self._besides.ask(self.approver, action, verdict)

    def ask_places(self, question: PlacesQuestion) -> PlacesAnswer:
        """Ask about protected places that a granted program changed."""
        return self.approver.ask_places(question)

    def ask_user(self, question: UserQuestion) -> UserAnswer:
        """Put a question of the model."""
        return self.approver.ask_user(question)

    def prompt_line(
        self,
        history: str,
        root: str,
        redactor: Redactor,
        toolbar: Callable[[str], Sequence[tuple[str, Tone]]],
        commands: Callable[[], Sequence[SlashCommand]],
        offers: Callable[[], Menus],
        next_mode: Callable[[], None],
    ) -> PromptLine:
        """Return the line at which the person types; `history` is the path of earlier ones, `root` where files are named,
        `offers` returns the menus of commands, `next_mode` is what Shift-Tab does."""
        from harness.terminal.file_names import FileIndex
        from harness.terminal.line_history import KeptHistory
        from harness.terminal.prompt_line import PromptLine

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
        )

    @contextmanager
    def lent(self) -> Iterator[LentTerminal]:
        """Lend the terminal to a command: nobody else reads or writes there meanwhile. Raises OSError where it is gone."""
        from harness.process.lent_terminal import LentTerminal

        with self.ahead.paused():
            self.screen.settle()
            keyboard, screen = sys.stdin.fileno(), sys.stdout.fileno()
            with LentTerminal(keyboard, screen, self._environment, escapes=self.screen.look.repaints) as terminal:
                yield terminal

    @property
    def history_problem(self) -> str:
        """Why lines are not kept beyond this program; empty where they are, or where it is not known yet."""
        return self._history.problem if self._history is not None else ""

    def remember(self, line: str) -> None:
        """Keep a line that was typed ahead with the others that the person typed, unless it holds a secret."""
        if self._history is not None:
            self._history.append_string(line)


class DoublePress:
    """Whether a second Ctrl-C follows another soon enough to mean that the person leaves."""

    def __init__(self) -> None:
        self._last = -TWICE_SECONDS

    def again(self, now: float) -> bool:
        """Note one at `now` (seconds of a clock that never goes back); return whether the last is TWICE_SECONDS near."""
        last, self._last = self._last, now
        return now - last < TWICE_SECONDS


def _stop_turn() -> None:
    """Do what Ctrl-C does, from another thread: the main one takes it when it is safe."""
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, signal.SIGINT)
