"""The files that calls of the conversation changed, and the question whether to take these changes back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harness.app.commands.conversation import Conversation
from harness.app.commands.diff import content_now
from harness.app.commands.turns import CallPlace, PastSession
from harness.app.edit_diffs import MOST_LINES
from harness.app.kept_contents import kept_contents
from harness.app.sessions import logged_sessions, session_named, verified_session
from harness.app.undo import (
    finished_words,
    put_back,
    undo_lines,
    undo_summary,
    undone_paths,
    unless_forged,
)
from harness.errors import ToolError
from harness.files.diffs import compare
from harness.files.session_undo import Ended, LoggedStep, PathOutcome, SessionUndo, finish_killed_undos, has_effect
from harness.files.undo import CommandStep, StepOutcome, changes_to_undo, without_changes
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.terminal.styles import Tone
from harness.terminal.undo_question import UndoChoice, UndoQuestion


class TakenBack:
    """The changes of files by some calls, newest first. Those that still are as the calls left them can be undone."""

    def __init__(self, conversation: Conversation, calls: Iterable[CallPlace]) -> None:
        """Look for the changes of `calls`. Changes no file, unless an earlier undo was killed: it is finished first.

        Raises UsageError and LogError for an unusable log.
        """
        self._conversation = conversation
        self._place = conversation.place
        self._stores = kept_contents(self._place.state, self._place.workspace.root)
        if finished := finish_killed_undos(self._stores):
            conversation.say(finished_words(len(finished)), Tone.WARNING)
        chosen = {(call.part.session, call.call) for call in calls}
        steps = [each for part in reversed(conversation.turns.parts) for each in self._steps_of(part)] if chosen else []
        self._undo = SessionUndo(steps, chosen, self._place.workspace, self._stores, all_of_them=True)
        self._foreseen = [outcome for _, outcome in self._undo.foreseen()]

    @property
    def has_effects(self) -> bool:
        """Whether taking back would restore or remove a file."""
        return any(map(has_effect, self._foreseen))

    def ask(self) -> UndoChoice:
        """Ask how far to go back. Without a file to restore or remove, say why, and return the conversation alone."""
        if not self.has_effects:
            self._tell(self._foreseen, dry_run=True)
            return UndoChoice.CONVERSATION
        lines = tuple(undo_lines(self._foreseen, self._place.workspace.root, dry_run=True))
        return self._conversation.ask_undo(
            UndoQuestion(summary=undo_summary(self._foreseen), lines=lines, diffs=self._diffs)
        )

    def take_back(self) -> None:
        """Restore the files, record that, and tell the results. Raises LogError."""
        self._place.interrupt.clear()
        log, interrupt = self._conversation.agent.log, self._place.interrupt
        self._tell(put_back(log, self._undo.carry_out(), interrupt), dry_run=False)
        self._conversation.agent.registry.outdate_files()

    def _steps_of(self, part: PastSession) -> Iterator[LoggedStep]:
        """Yield the changes of a session, newest first."""
        own_log, guarded = self._conversation.agent.log.path, self._place.state.guarded
        records = self._records(part)
        root = next((str(record.get("workspace")) for record in records if record["kind"] == "session_started"), "")
        logs = dict.fromkeys((own_log, *(each.log for each in self._conversation.turns.parts)))
        undone = undone_paths(logs, part.session, root)
        for change in changes_to_undo(records, part.session, undone, log=part.log):
            step = unless_forged(change, guarded, None, root)
            if isinstance(step, CommandStep) and root != self._place.workspace.root:
                reason = f"it ran in another folder: `harness undo --session {part.session}`"
                yield LoggedStep(session=part.session, step=without_changes(step, reason))
            else:
                yield LoggedStep(session=part.session, step=step)

    def _records(self, part: PastSession) -> Sequence[LogRecord]:
        """Return the records of a session. A log other than the open one is verified first."""
        if part.log == self._conversation.agent.log.path:
            return [record for record in read_log(part.log) if record["session"] == part.session]
        return verified_session(session_named(logged_sessions([part.log]), part.session), self._place.state).records

    def _diffs(self) -> Sequence[tuple[str, str]]:
        """Return the name and the diff of each file with text that would be restored or removed."""
        restored: dict[str, str | None] = {}
        for outcome in filter(has_effect, self._foreseen):  # of each file, the oldest step is the last
            if isinstance(outcome, StepOutcome):
                restored[outcome.step.path] = outcome.step.before_sha256
            elif isinstance(outcome, PathOutcome):
                restored[outcome.path] = outcome.before_sha256
        diffs = []
        for path, digest in restored.items():
            then = b"" if digest is None else self._stores.get(digest)
            try:
                now = content_now(self._conversation, path) or b""
            except (OSError, ToolError):
                continue
            if then is not None and b"\0" not in now + then:
                diff = self._conversation.masked(compare(now, then).text(MOST_LINES))
                diffs.append((path.removeprefix(self._place.workspace.root.rstrip("/") + "/"), diff))
        return diffs

    def _tell(self, outcomes: Sequence[Ended], *, dry_run: bool) -> None:
        for line in undo_lines(outcomes, self._place.workspace.root, dry_run=dry_run):
            self._conversation.say(line.text, line.tone)
