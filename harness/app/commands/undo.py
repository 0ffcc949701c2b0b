"""/undo: remove the last turn from the conversation, and restore its files if the user agrees."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from harness.app.commands.conversation import Conversation
from harness.app.undo import EFFECTS, Ended, put_back, undo_line, undone_calls, unless_forged
from harness.files.before_images import BeforeImages
from harness.files.undo import Rehearsal, Step, StepOutcome, changes_to_undo, restore, unwind
from harness.log.reader import read_log
from harness.loop.compaction import split_summary, without_turn
from harness.plugin import HelpGroup, SlashCommand
from harness.session.person_message import own_words
from harness.session.trust import is_wanted
from harness.terminal.styles import Tone

UNDO_TOOL = "undo"
"""Tool name of the question whether to restore files. The model has no such tool."""


def undo(conversation: Conversation, rest: str) -> None:  # noqa: ARG001 - the signature of a command
    """Remove the last turn from the conversation, and restore its changed files if the user agrees. Raises LogError."""
    agent, session = conversation.agent, conversation.session
    start, stop = session.history.last_turn
    words = split_summary(session.messages[start + 1].content)[1] if start < stop else ""
    if not words:
        summarized = "; what was before is summarized, and /clear forgets that" if start < stop else ""
        conversation.say(f"there is no turn to undo{summarized}", Tone.WARNING)
        return
    agent.change_history(session, "undone", start, stop, without_turn(session.messages[start + 1]))
    calls = conversation.turns.pop()
    first = next(iter(conversation.masked(own_words(words)).splitlines()), "")
    conversation.say(f"forgotten: {first[:200]}", Tone.QUIET)
    if calls is None:
        conversation.say(
            f"it is of an earlier session: `harness undo --session {conversation.turns.origin}` puts files back",
            Tone.WARNING,
        )
        return
    _Files(conversation).offer(calls)


class _Files:
    """The files that the calls of a turn changed."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._log = conversation.agent.log
        self._identity = conversation.session.identity
        self._place = conversation.place
        self._images = BeforeImages(conversation.place.state.before_images)

    def offer(self, calls: list[int]) -> None:
        """List the restorable files, ask, and restore them. Raises LogError."""
        steps = self._steps(calls)
        rehearsal = Rehearsal(self._place.workspace, self._images)
        foreseen = list(unwind(steps, rehearsal, all_of_them=True))
        if not any(isinstance(step, StepOutcome) and step.result in EFFECTS for step in foreseen):
            self._tell(foreseen, dry_run=True)
            return
        if not self._is_wanted(foreseen):
            self._conversation.say("the files stay as they are", Tone.QUIET)
            return
        self._place.interrupt.clear()
        undo_one = partial(restore, workspace=self._place.workspace, images=self._images)
        doing = unwind(steps, undo_one, all_of_them=True)
        self._tell(put_back(self._log, self._identity, doing, self._place.interrupt), dry_run=False)

    def _steps(self, calls: list[int]) -> tuple[Step, ...]:
        """Return the changes to undo, newest first."""
        records = tuple(record for record in read_log(self._log.path) if record["session"] == self._identity)
        undone = undone_calls([self._log.path], self._identity)
        guarded = self._place.state.guarded
        changes = changes_to_undo(records, self._identity, undone)
        return tuple(unless_forged(step, guarded, None) for step in changes if step.call in calls)

    def _is_wanted(self, foreseen: list[Ended]) -> bool:
        """Ask the user y or n, with the steps as preview. Keys that were pressed before the question are discarded."""
        return is_wanted(
            self._conversation.approver,
            tool=UNDO_TOOL,
            summary="put files back",
            preview="\n".join(self._lines(foreseen)),
            reason="the turn is forgotten; its changes of files can be put back as well",
            by="/undo",
        )

    def _lines(self, foreseen: list[Ended]) -> Iterator[str]:
        return (undo_line(step, self._place.workspace.root, dry_run=True).text for step in foreseen)

    def _tell(self, outcomes: list[Ended], *, dry_run: bool) -> None:
        for outcome in outcomes:
            line = undo_line(outcome, self._place.workspace.root, dry_run=dry_run)
            self._conversation.say(line.text, line.tone)


COMMANDS = (
    SlashCommand(
        name="/undo",
        summary="forget the last turn; asks whether its files are put back",
        group=HelpGroup.TALK,
        run=undo,
    ),
)
