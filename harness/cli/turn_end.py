"""The lines below a turn that has ended: how, what stays of it, and what it took; they change nothing."""

from __future__ import annotations

from harness.cli.commands.conversation import Conversation
from harness.cli.told import is_unanswered
from harness.cli.trace import Tone
from harness.cli.words import counted
from harness.messages import RunResult, StopReason


def tell_end(conversation: Conversation, result: RunResult) -> None:
    """Say how the turn of `result` ended."""
    from harness.cli.commands.cost import told
    from harness.cli.commands.standing import status_of
    from harness.cli.terminal.status import status_text

    screen = conversation.screen
    if ended := how_it_ended(result, conversation.error):
        conversation.say_line(ended, Tone.WARNING)
    if is_unanswered(conversation.session.messages):
        screen.line("what you said has no answer: it is sent again with what you say next; /undo drops it", Tone.QUIET)
    taken = told(result.usage, conversation.cost_of(result.usage), unknown="")
    screen.line(f"({counted(result.turns, 'request')}, {taken})", Tone.QUIET)
    if not screen.look.repaints:
        screen.line(status_text(status_of(conversation), screen.width), Tone.QUIET)


def how_it_ended(result: RunResult, error: str) -> str:
    """Return what is to be said of the end of a turn: nothing where it is done.

    `error` is what was recorded, and shown, of an error that may have ended it: that is not said again.
    """
    if result.stop is StopReason.COMPLETED:
        return ""
    word, detail = result.stop.value.replace("_", " "), result.detail
    if error and detail.startswith(error):
        detail = detail.removeprefix(error).strip()
        return f"{word}: {detail}" if detail else ""
    return detail if detail.startswith(word) else f"{word}: {detail}"
