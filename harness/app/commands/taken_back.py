"""The files that calls of the conversation changed, and the question whether to take these changes back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from harness.app.commands.conversation import Conversation
from harness.app.commands.diff import MOST_LINES, content_now
from harness.app.commands.turns import CallPlace, PastSession
from harness.app.sessions import logged_sessions, session_named, verified_session
from harness.app.undo import EFFECTS, Ended, put_back, undo_line, undo_summary, undone_calls, unless_forged
from harness.errors import ToolError
from harness.files.before_images import BeforeImages
from harness.files.diffs import compare
from harness.files.undo import Rehearsal, Step, StepOutcome, changes_to_undo, restore, unwind
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.terminal.undo_question import UndoChoice, UndoQuestion


class TakenBack:
    """The changes of files by some calls, newest first. Those that still are as the calls left them can be undone."""

    def __init__(self, conversation: Conversation, calls: Iterable[CallPlace]) -> None:
        """Look for the changes of `calls`. Changes no file. Raises UsageError and LogError for an unusable log."""
        self._conversation = conversation
        self._place = conversation.place
        self._images = BeforeImages(conversation.place.state.before_images)
        numbers: dict[PastSession, set[int]] = {}
        for call in calls:
            numbers.setdefault(call.part, set()).add(call.call)
        self._steps = {part: self._steps_of(part, numbers[part]) for part in reversed(numbers)}
        rehearsal = Rehearsal(self._place.workspace, self._images)
        self._foreseen = [
            outcome for steps in self._steps.values() for outcome in unwind(steps, rehearsal, all_of_them=True)
        ]

    @property
    def has_effects(self) -> bool:
        """Whether taking back would restore or remove a file."""
        return any(isinstance(step, StepOutcome) and step.result in EFFECTS for step in self._foreseen)

    def ask(self) -> UndoChoice:
        """Ask how far to go back. Without a file to restore or remove, say why, and return the conversation alone."""
        if not self.has_effects:
            self._tell(self._foreseen, dry_run=True)
            return UndoChoice.CONVERSATION
        root = self._place.workspace.root
        lines = tuple(undo_line(step, root, dry_run=True) for step in self._foreseen)
        return self._conversation.ask_undo(
            UndoQuestion(summary=undo_summary(self._foreseen), lines=lines, diffs=self._diffs)
        )

    def take_back(self) -> None:
        """Restore the files, record that, and tell the results. Raises LogError."""
        self._place.interrupt.clear()
        log, interrupt = self._conversation.agent.log, self._place.interrupt
        undo_one = partial(restore, workspace=self._place.workspace, images=self._images)
        for part, steps in self._steps.items():
            doing = unwind(steps, undo_one, all_of_them=True)
            self._tell(put_back(log, part.session, doing, interrupt), dry_run=False)

    def _steps_of(self, part: PastSession, calls: set[int]) -> tuple[Step, ...]:
        own_log = self._conversation.agent.log.path
        undone = undone_calls(dict.fromkeys((part.log, own_log)), part.session)
        changes = changes_to_undo(self._records(part), part.session, undone)
        return tuple(unless_forged(step, self._place.state.guarded, None) for step in changes if step.call in calls)

    def _records(self, part: PastSession) -> Sequence[LogRecord]:
        """Return the records of a session. A log other than the open one is verified first."""
        if part.log == self._conversation.agent.log.path:
            return [record for record in read_log(part.log) if record["session"] == part.session]
        return verified_session(session_named(logged_sessions([part.log]), part.session), self._place.state).records

    def _diffs(self) -> Sequence[tuple[str, str]]:
        """Return the name and the diff of each file with text that would be restored or removed."""
        effects = [step for step in self._foreseen if isinstance(step, StepOutcome) and step.result in EFFECTS]
        restored = {outcome.step.path: outcome.step.before_sha256 for outcome in effects}  # the oldest step is the last
        diffs = []
        for path, digest in restored.items():
            then = b"" if digest is None else self._images.get(digest)
            try:
                now = content_now(self._conversation, path) or b""
            except (OSError, ToolError):
                continue
            if then is not None and b"\0" not in now + then:
                diff = self._conversation.masked(compare(now, then).text(MOST_LINES))
                diffs.append((path.removeprefix(self._place.workspace.root.rstrip("/") + "/"), diff))
        return diffs

    def _tell(self, outcomes: Iterable[Ended], *, dry_run: bool) -> None:
        for outcome in outcomes:
            line = undo_line(outcome, self._place.workspace.root, dry_run=dry_run)
            self._conversation.say(line.text, line.tone)
