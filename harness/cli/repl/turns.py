"""The turns of a conversation at the prompt: which calls each of them made, and how the last is taken back; asks first
before a file is touched."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from harness.cli.console import Console
from harness.cli.parts import SessionParts
from harness.cli.policy.trusting import is_wanted
from harness.cli.repl.told import is_unanswered, own_words
from harness.cli.sessions import undone_calls
from harness.cli.trace import Tone
from harness.cli.undo import EFFECTS, Ended, put_back, undo_line, unless_forged
from harness.files.before_images import BeforeImages
from harness.files.undo import Rehearsal, Step, StepOutcome, plan, restore, unwind
from harness.gate.approval import Approver
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.loop.agent import Agent
from harness.loop.compaction import split_summary, without_turn
from harness.loop.run import Session

UNDO_TOOL = "undo"
"""What asks, in the question whether files are put back; no tool of the model."""


class Turns:
    """The turns of one session, the newest last, by the numbers of their calls."""

    def __init__(self, origin: str = "") -> None:
        """`origin` is the session that this one goes on from, if there is one."""
        self.origin = origin
        self._calls: list[list[int]] = []

    def begin_session(self, origin: str) -> None:
        """Forget every turn: a session begins that goes on from the one named `origin`."""
        self.origin = origin
        self._calls.clear()

    def begin(self, session: Session) -> None:
        """Note that the person is about to say something; it is part of the turn before where that got no answer."""
        if not (is_unanswered(session.messages) and self._calls):
            self._calls.append([])

    def record(self, record: LogRecord) -> None:
        """Note a call of the turn that goes on, not one of the person's own; an observer of the log."""
        number, whose = record.get("call"), record.get("by")
        if record["kind"] == "call_proposed" and isinstance(number, int) and self._calls and whose is None:
            self._calls[-1].append(number)

    def forget(self) -> None:
        """Forget every turn."""
        self._calls.clear()

    def pop(self) -> list[int] | None:
        """Forget the last turn, and return its calls; None for one of the session that this one goes on from."""
        return self._calls.pop() if self._calls else None


def take_back(
    turns: Turns, agent: Agent, session: Session, parts: SessionParts, approver: Approver, console: Console
) -> None:
    """Forget the last turn, and put back the files that it changed if the person says yes. Raises LogError."""
    start, stop = session.history.last_turn
    words = split_summary(session.messages[start + 1].content)[1] if start < stop else ""
    if not words:
        summarized = "; what was before is summarized, and /clear forgets that" if start < stop else ""
        console.line(f"there is no turn to undo{summarized}", Tone.WARNING)
        return
    agent.change_history(session, "undone", start, stop, without_turn(session.messages[start + 1]))
    calls = turns.pop()
    first = next(iter(parts.redactor.redact(own_words(words)).splitlines()), "")
    console.line(f"forgotten: {first[:200]}", Tone.QUIET)
    if calls is None:
        console.line(
            f"it is of an earlier session: `harness undo --session {turns.origin}` puts files back", Tone.WARNING
        )
        return
    _Files(agent, session, parts, console).offer(calls, approver)


class _Files:
    """The files that the calls of a turn changed."""

    def __init__(self, agent: Agent, session: Session, parts: SessionParts, console: Console) -> None:
        self._log = agent.log
        self._identity = session.identity
        self._parts = parts
        self._console = console
        self._images = BeforeImages(parts.state.before_images)

    def offer(self, calls: list[int], approver: Approver) -> None:
        """Say what can be put back, ask, and do it. Raises LogError."""
        steps = self._steps(calls)
        rehearsal = Rehearsal(self._parts.workspace, self._images)
        foreseen = list(unwind(steps, rehearsal, all_of_them=True))
        if not any(isinstance(one, StepOutcome) and one.result in EFFECTS for one in foreseen):
            self._tell(foreseen, dry_run=True)
            return
        if not self._is_wanted(foreseen, approver):
            self._console.line("the files stay as they are", Tone.QUIET)
            return
        self._parts.interrupt.clear()
        undo_one = partial(restore, workspace=self._parts.workspace, images=self._images)
        doing = unwind(steps, undo_one, all_of_them=True)
        self._tell(put_back(self._log, self._identity, doing, self._parts.interrupt), dry_run=False)

    def _steps(self, calls: list[int]) -> tuple[Step, ...]:
        """Return what is to be undone, the newest first."""
        records = tuple(one for one in read_log(self._log.path) if one["session"] == self._identity)
        undone = undone_calls([self._log.path], self._identity)
        guarded = self._parts.state.guarded
        found = plan(records, self._identity, undone)
        return tuple(unless_forged(step, guarded, None) for step in found if step.call in calls)

    def _is_wanted(self, foreseen: list[Ended], approver: Approver) -> bool:
        """Ask as about a call: shown first, keys that were pressed before thrown away, y or n."""
        return is_wanted(
            approver,
            tool=UNDO_TOOL,
            summary="put files back",
            preview="\n".join(self._lines(foreseen)),
            why="the turn is forgotten; its changes of files can be put back as well",
            by="/undo",
        )

    def _lines(self, foreseen: list[Ended]) -> Iterator[str]:
        return (undo_line(one, self._parts.workspace.root, dry_run=True).text for one in foreseen)

    def _tell(self, ended: list[Ended], *, dry_run: bool) -> None:
        for one in ended:
            line = undo_line(one, self._parts.workspace.root, dry_run=dry_run)
            self._console.line(line.text, line.tone)
