"""/undo: take back the last turn: its messages, its changes of files, or both."""

from __future__ import annotations

from harness.app.commands.conversation import Conversation
from harness.app.commands.taken_back import TakenBack
from harness.loop.compaction import split_summary, without_turn
from harness.plugin import HelpGroup, SlashCommand
from harness.session.person_message import typed_words
from harness.terminal.styles import Tone


def undo(conversation: Conversation, rest: str) -> None:  # noqa: ARG001 - the signature of a command
    """Take back the last turn, as far as the user chooses. Raises UsageError and LogError."""
    agent, session = conversation.agent, conversation.session
    start, stop = session.history.last_turn
    words = split_summary(session.messages[start + 1].content)[1] if start < stop else ""
    if not words:
        summarized = "; what was before is summarized, and /clear forgets that" if start < stop else ""
        conversation.say(f"there is no turn to undo{summarized}{_hint(conversation)}", Tone.WARNING)
        return
    files = TakenBack(conversation, conversation.turns.calls_since(1))
    choice = files.ask()
    if choice.takes_conversation:
        agent.change_history(session, "undone", start, stop, without_turn(session.messages[start + 1]))
        conversation.turns.drop_last()
        lines = filter(None, conversation.masked(typed_words(words)).splitlines())
        conversation.say(f"forgotten: {'; '.join(lines)[:200]}", Tone.QUIET)
    if choice.takes_files:
        files.take_back()


def _hint(conversation: Conversation) -> str:
    """Return the command that takes back what the user's `!command` changed. Empty if that changed nothing."""
    calls = conversation.turns.calls_of_user()
    if not (calls and TakenBack(conversation, calls).has_effects):
        return ""
    return f"; `harness undo --session {conversation.session.identity}` takes back what your own command changed"


COMMANDS = (
    SlashCommand(
        name="/undo",
        summary="take back the messages or files of the last turn",
        group=HelpGroup.TALK,
        run=undo,
    ),
)
