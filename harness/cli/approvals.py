"""The question at the terminal: shows the judged action and takes a typed y or n; whatever else happens is a no."""

from __future__ import annotations

import os
import select
import sys
import termios
from collections.abc import Callable

from harness.actions import Action, Effects, Enforcement, describe_facet
from harness.approval import Answer, Approval
from harness.cli.effects import effects_lines
from harness.cli.rich_console import RichConsole
from harness.cli.trace import Tone
from harness.interrupt import Interrupt
from harness.policy import Verdict
from harness.rules import Decision
from harness.visible import visible_line

DEAD_SECONDS = 0.4
"""Keys pressed before and shortly after the question appears are thrown away: they were meant for something else."""

MAX_NOISY_ROUNDS = 20
"""How often keys may break the silence; a keyboard that never rests gets a no."""
TOO_LARGE = "the change is too large to be shown whole at the terminal; make it in smaller steps"

_QUESTION = "allow? y = yes, n = no, n WORDS = no, because ...: "


class TerminalApprover:
    """Asks the person at the terminal; Enter alone answers nothing, end of input is a no, Ctrl-C is a no and a stop."""

    def __init__(
        self,
        console: RichConsole,
        *,
        confinement: Callable[[str, Effects], str],
        read_line: Callable[[str], str],
        drop_keys: Callable[[], None],
        keys_within: Callable[[float], bool],
    ) -> None:
        """Take what will hold a call of a tool to its effects, in words; how to read a line (raises EOFError and
        KeyboardInterrupt), how to forget keys that were pressed, and how to wait for some seconds, or until a key comes."""
        self._console = console
        self._confinement = confinement
        self._read_line = read_line
        self._drop_keys = drop_keys
        self._keys_within = keys_within

    def __call__(self, action: Action, verdict: Verdict) -> Approval:
        """Show `action` and why it is asked about, and return the answer."""
        show_question(self._console, action, verdict, self._confinement(action.tool, verdict.effects))
        if not action.shown_whole:
            self._console.line("this cannot be shown whole, so it cannot be approved here", Tone.BAD)
            return Approval(answer=Answer.NO, by="person", words=TOO_LARGE)
        if not self._wait_for_quiet():
            return Approval(answer=Answer.NO, by="person", words="keys kept coming while the question was put")
        while True:
            try:
                line = self._read_line(_QUESTION).strip()
            except EOFError:
                return Approval(answer=Answer.NO, by="person", words="end of input")
            approval = parse_answer(line)
            if approval is not None:
                return approval
            self._console.line("type y or n; Enter alone answers nothing", Tone.QUIET)

    def _wait_for_quiet(self) -> bool:
        """Drop keys until none comes for DEAD_SECONDS: what was begun before the question is no answer to it."""
        for _ in range(MAX_NOISY_ROUNDS):
            self._drop_keys()
            if not self._keys_within(DEAD_SECONDS):
                self._drop_keys()
                return True
        return False


def show_question(console: RichConsole, action: Action, verdict: Verdict, confinement: str) -> None:
    """Write what is asked: the whole action, each part with its own verdict, what it may do to the world and what holds
    it to that, and why it is asked. Made from what was judged alone."""
    console.rule(f"{action.tool} asks")
    console.diff(action.preview)
    parts = verdict.shown
    for part in parts if len(parts) > 1 else ():
        tone = Tone.QUIET if part.decision is Decision.AUTO else Tone.WARNING
        # On one line each: a line end inside a quoted word must not draw a part, a reason or a question of its own.
        text = visible_line(f"{describe_facet(part.facet)}  [{part.by}]", 1_000)
        console.line(f"  {part.decision.word:8} {text}", tone)
    if action.tool == "bash":
        tone = Tone.BAD if verdict.effects.enforcement is Enforcement.OFF else Tone.QUIET
        for line in (*effects_lines(verdict), f"confinement: {confinement}"):
            console.line(f"  {visible_line(line, 1_000)}", tone)
    console.line(visible_line(f"why: {verdict.deciding.reason}  [{verdict.deciding.by}]", 2_000), Tone.WARNING)
    for note in verdict.notes:
        console.line("changed without your having seen it:", Tone.WARNING)
        console.diff(note)


def terminal_approver(
    console: RichConsole, interrupt: Interrupt, confinement: Callable[[str, Effects], str]
) -> TerminalApprover:
    """Return an approver that reads with prompt_toolkit, and that a signal can end."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import DummyHistory
    from prompt_toolkit.input.typeahead import clear_typeahead

    questions: PromptSession[str] = PromptSession(history=DummyHistory())

    def read_line(question: str) -> str:
        with interrupt:
            return questions.prompt(question)

    def drop_keys() -> None:
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        # What an earlier prompt had read beyond its own line would be replayed in the next one.
        clear_typeahead(questions.app.input)

    def keys_within(seconds: float) -> bool:
        with interrupt:
            return bool(select.select([sys.stdin.fileno()], [], [], seconds)[0])

    return TerminalApprover(
        console, confinement=confinement, read_line=read_line, drop_keys=drop_keys, keys_within=keys_within
    )


def parse_answer(line: str) -> Approval | None:
    """Return what a typed line means, or None where it is neither a plain yes nor begins with a no."""
    if line.lower() in ("y", "yes"):
        return Approval(answer=Answer.YES, by="person")
    word, _, words = line.partition(" ")
    if word.rstrip(":,.").lower() in ("n", "no"):
        return Approval(answer=Answer.NO, by="person", words=words.strip())
    return None


def terminal_is_there() -> bool:
    """Say whether a person can be asked: stdin and stdout are terminals, whatever any library thinks of colours."""
    return all(stream is not None and os.isatty(stream.fileno()) for stream in (sys.stdin, sys.stdout))
