"""`harness approve`: a user at a terminal answers waiting questions of hooks and of harness, one after the other.

INVARIANT: the displayed question is the complete content of its file, and the answer names the digest of that file. The
asking process accepts no other answer. The dialog protects against accidental answers, as at harness's own prompt.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from harness.actions import JsonValue
from harness.errors import UsageError
from harness.gate.approval import Approval, nobody
from harness.interrupt import Interrupt
from harness.log.vocabulary import Answer
from harness.session.exits import Exit
from harness.session.front import terminal_is_there
from harness.session.signals import Signals
from harness.session.state import State
from harness.session.waiting import LOOK_SECONDS, Waiting, WaitingList
from harness.terminal.choices import permanent_line
from harness.terminal.console import look_from
from harness.terminal.screen import Notices, Screen
from harness.terminal.styles import Tone
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from harness.session.config.settings import TerminalSettings
    from harness.session.question_file import WaitingQuestion
    from harness.terminal.keys import Keyboard

IDLE = "waiting for questions of agents and other sessions; Ctrl-C ends"
NOTICE_SECONDS = 10.0
"""Idle seconds after which the next question sends a notification to the user."""


class WithdrawnError(Exception):
    """Raised when the displayed question no longer needs an answer."""


def approve_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Let the user answer questions until Ctrl-C, or list them; return the exit code.

    Raises UsageError if there is no terminal and questions must be asked.
    """
    waiting = WaitingList(State.of(environment).waiting)
    if arguments.list:
        for line in _json_lines(waiting.all()):
            sys.stdout.write(f"{line}\n")
        return Exit.DONE
    if not terminal_is_there():
        raise UsageError("harness approve asks at a terminal, and here is none; --list prints what waits")
    from harness.session.config.settings import settings_from

    terminal = settings_from(arguments, environment, None).terminal
    screen = Screen(sys.stdout, look_from(terminal, environment), notices=Notices(terminal.notify.value))
    interrupt = Interrupt()
    signals = Signals(interrupt)
    signals.install()
    listener = Listener(waiting, screen, interrupt, environment=environment, terminal=terminal)
    with waiting.listening():
        listener.listen()
    screen.settle()
    if screen.broken:
        return Exit.BROKEN_PIPE
    return Exit.TERMINATED if signals.terminated or listener.hung_up else Exit.INTERRUPTED


class Listener:
    """Shows waiting questions to one user, and passes the answers on."""

    def __init__(
        self,
        waiting: WaitingList,
        screen: Screen,
        interrupt: Interrupt,
        *,
        environment: Mapping[str, str],
        terminal: TerminalSettings,
    ) -> None:
        """`waiting` has the questions, `screen` displays them, `interrupt` ends the wait."""
        self._waiting = waiting
        self._screen = screen
        self._interrupt = interrupt
        self._environment = environment
        self._dead_seconds = terminal.dead_seconds.value
        self._idle_since = time.monotonic()
        self.hung_up = False

    def listen(self) -> None:
        """Ask each waiting question, until the user ends the program or the terminal is gone."""
        try:
            if not self._screen.look.repaints:
                self._screen.line(IDLE)
            while not self.hung_up and not self._screen.broken:
                self._put(self._next())
        except KeyboardInterrupt:
            pass

    def _next(self) -> Waiting:
        """Wait for the next question. Raises KeyboardInterrupt."""
        while True:
            waiting = self._waiting.all()
            if waiting:
                self._screen.settle()
                return waiting[0]
            self._screen.transient(IDLE)
            with self._interrupt:
                time.sleep(LOOK_SECONDS)

    def _put(self, waiting: Waiting) -> None:
        """Ask one question, and pass the answer on. Raises KeyboardInterrupt if a signal arrived."""
        question = waiting.question
        if question is None:
            self._screen.line(f"a question cannot be shown, and is refused: {visible_line(waiting.problem)}", Tone.BAD)
            self._is_first(waiting, nobody(f"`harness approve` cannot show the question: {waiting.problem}"))
            return
        if time.monotonic() - self._idle_since >= NOTICE_SECONDS:
            self._screen.notify(f"{question.agent} asks: {question.action.summary}")
        began = time.monotonic()
        try:
            approval = self._ask(waiting.id, question)
        except WithdrawnError:
            self._screen.take_back()
            self._tell(f"x {self._why_gone(waiting)}", question, Tone.QUIET)
            return
        finally:
            self._idle_since = time.monotonic()
        if self._interrupt.requested:  # a signal ended the question, not an answer of the user
            raise KeyboardInterrupt
        if approval.answer is Answer.NOBODY:
            self.hung_up = True
            return
        if not self._is_first(waiting, approval):
            self._tell(f"x {self._why_gone(waiting)}", question, Tone.WARNING)
            return
        tone = Tone.QUIET if approval.answer is Answer.YES else Tone.WARNING
        granted = f"granted for this {approval.scope.value}; " if approval.scope else ""
        self._screen.line(permanent_line(approval, f"{granted}{_summary(question)}", self._idle_since - began), tone)

    def _ask(self, identity: str, question: WaitingQuestion) -> Approval:
        from harness.terminal.approver import TerminalApprover
        from harness.terminal.keys import Keyboard
        from harness.terminal.question import Asker, Usual
        from harness.tools.command_walls import is_unbound

        def keyboard(source: int, brackets: Callable[[str], None], on_return: Callable[[], None]) -> Keyboard:
            return Keyboard(
                source,
                brackets=brackets,
                on_return=on_return,
                readable=readable_while(lambda: self._waiting.waits(identity)),
            )

        ask = TerminalApprover(
            self._screen,
            self._interrupt,
            lambda tool, effects: question.confinement,  # noqa: ARG005 - the asking process determined it
            environment=self._environment,
            dead_seconds=self._dead_seconds,
            offer=lambda action, verdict: question.offer,  # noqa: ARG005 - the asking process determined it
            usual=lambda: Usual(
                folder=question.workspace,
                confinement="" if is_unbound(question.level) else question.level,
                write=question.writes,
            ),
            asker=Asker(
                agent=question.agent,
                session=question.session,
                folder=question.workspace,
                until=time.strftime("%H:%M:%S", time.localtime(question.until)),
            ),
            keyboard_of=keyboard,
        )
        return ask(question.action, question.verdict)

    def _is_first(self, waiting: Waiting, approval: Approval) -> bool:
        """Pass an answer on. Return whether it was the first one, and in time."""
        try:
            return self._waiting.answer(waiting, approval)
        except OSError as error:
            self._screen.line(f"the answer cannot be written: {error.strerror}", Tone.BAD)
            return False

    def _why_gone(self, waiting: Waiting) -> str:
        if waiting.question is not None and time.time() >= waiting.question.until:
            return "too late, it was refused"
        if self._waiting.is_answered(waiting.id):
            return "answered at another terminal"
        return "withdrawn, nobody asks any more"

    def _tell(self, verb: str, question: WaitingQuestion, tone: Tone) -> None:
        self._screen.settle()
        self._screen.line(f"{verb}  {visible_line(_summary(question))}", tone)


def readable_while(
    stands: Callable[[], bool], *, monotonic: Callable[[], float] = time.monotonic
) -> Callable[[Sequence[int], float | None], Sequence[int]]:
    """Return a function that waits for keys while `stands` returns True; after that it raises WithdrawnError."""
    from harness.terminal.keys import readable

    def wait(descriptors: Sequence[int], seconds: float | None) -> Sequence[int]:
        if len(descriptors) == 1:  # only checks for more input after a key
            return readable(descriptors, seconds)
        end = None if seconds is None else monotonic() + seconds
        while True:
            if not stands():
                raise WithdrawnError
            remaining = LOOK_SECONDS if end is None else min(LOOK_SECONDS, max(0.0, end - monotonic()))
            ready = readable(descriptors, remaining)
            if ready or (end is not None and monotonic() >= end):
                return ready

    return wait


def _summary(question: WaitingQuestion) -> str:
    return f"{question.agent}: {question.action.tool}: {question.action.summary}"


def _json_lines(questions: Sequence[Waiting]) -> Iterator[str]:
    """Yield a JSON object for each question, in one line."""
    for entry in questions:
        fields: dict[str, JsonValue] = {"id": entry.id}
        if entry.question is None:
            fields["problem"] = entry.problem
        else:
            question = entry.question
            fields |= {
                "agent": question.agent,
                "session": question.session,
                "workspace": question.workspace,
                "tool": question.action.tool,
                "summary": question.action.summary,
                "reason": question.verdict.deciding.reason,
                "asked": _stamp(question.asked),
                "until": _stamp(question.until),
            }
        yield json.dumps(fields)


def _stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
