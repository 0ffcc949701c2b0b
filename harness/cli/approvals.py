"""The question at the terminal: shows the judged action and takes a typed y or n; whatever else happens is a no."""

from __future__ import annotations

import os
import sys
import termios
import time
from collections.abc import Callable

from harness.actions import Action, describe_facet
from harness.approval import Answer, Approval
from harness.cli.rich_console import RichConsole
from harness.cli.trace import Tone
from harness.interrupt import Interrupt
from harness.policy import Decision, Source, Verdict

DEAD_SECONDS = 0.4
"""Keys pressed before and shortly after the question appears are thrown away: they were meant for something else."""

_QUESTION = "allow? y = yes, n = no, n WORDS = no, because ...: "


class TerminalApprover:
    """Asks the person at the terminal; Enter alone answers nothing, end of input is a no, Ctrl-C is a no and a stop."""

    def __init__(
        self,
        console: RichConsole,
        *,
        read_line: Callable[[str], str],
        drop_keys: Callable[[], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take how to read a line (raises EOFError and KeyboardInterrupt) and how to forget keys that were pressed."""
        self._console = console
        self._read_line = read_line
        self._drop_keys = drop_keys
        self._sleep = sleep

    def __call__(self, action: Action, verdict: Verdict) -> Approval:
        """Show `action` and why it is asked about, and return the answer."""
        show_question(self._console, action, verdict)
        self._drop_keys()
        self._sleep(DEAD_SECONDS)
        self._drop_keys()
        while True:
            try:
                line = self._read_line(_QUESTION).strip()
            except EOFError:
                return Approval(answer=Answer.NO, by="person", words="end of input")
            approval = parse_answer(line)
            if approval is not None:
                return approval
            self._console.line("type y or n; Enter alone answers nothing", Tone.QUIET)


def show_question(console: RichConsole, action: Action, verdict: Verdict) -> None:
    """Write what is asked: the whole action, each part with its own verdict, and why. Made from what was judged alone."""
    console.rule(f"{action.tool} asks")
    console.diff(action.preview)
    parts = [facet for facet in verdict.facets if facet.source is not Source.COVERED]
    for part in parts if len(parts) > 1 else ():
        tone = Tone.QUIET if part.decision is Decision.AUTO else Tone.WARNING
        console.line(f"  {part.decision.word:8} {describe_facet(part.facet)}  [{part.by}]", tone)
    console.line(f"why: {verdict.deciding.reason}  [{verdict.deciding.by}]", Tone.WARNING)
    for note in verdict.notes:
        console.line("changed without your having seen it:", Tone.WARNING)
        console.diff(note)


def terminal_approver(console: RichConsole, interrupt: Interrupt) -> TerminalApprover:
    """Return an approver that reads with prompt_toolkit, and that a signal can end."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import InMemoryHistory
    from prompt_toolkit.input.typeahead import clear_typeahead

    questions: PromptSession[str] = PromptSession(history=InMemoryHistory())

    def read_line(question: str) -> str:
        with interrupt:
            return questions.prompt(question)

    def drop_keys() -> None:
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        # What an earlier prompt had read beyond its own line would be replayed in the next one.
        clear_typeahead(questions.app.input)

    return TerminalApprover(console, read_line=read_line, drop_keys=drop_keys)


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
