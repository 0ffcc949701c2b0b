"""/undo, /compact and /clear: the past of the conversation made shorter; the log keeps all of it."""

from __future__ import annotations

from harness.cli.commands.conversation import Conversation
from harness.cli.repl.turns import take_back
from harness.cli.trace import Tone
from harness.loop.compaction import characters


def undo(conversation: Conversation, rest: str) -> None:  # noqa: ARG001 - the signature of a command
    """Forget the last turn, and ask whether the files that it changed are put back. Raises LogError."""
    here = conversation
    take_back(here.turns, here.agent, here.session, here.parts, here.approver, here.screen)


def compact(conversation: Conversation, rest: str) -> None:  # noqa: ARG001 - the signature of a command
    """Let the model summarize the conversation. Raises LogError."""
    session = conversation.session
    before = characters(session.messages[1:])
    conversation.say("asking the model for a summary", Tone.QUIET)
    problem = conversation.agent.compact(session)
    if problem:
        conversation.say_line(f"nothing was summarized: {problem}", Tone.WARNING, most=1_000)
        return
    after = characters(session.messages[1:])
    conversation.say(f"summarized: {before} characters before, {after} now; the log keeps all of it", Tone.QUIET)


def clear(conversation: Conversation, rest: str) -> None:  # noqa: ARG001 - the signature of a command
    """Forget the conversation. Raises LogError."""
    session = conversation.session
    conversation.agent.change_history(session, "cleared", 0, len(session.messages) - 1)
    conversation.turns.forget()
    conversation.forget_told()
    conversation.say("the conversation is forgotten; the log keeps it", Tone.QUIET)
