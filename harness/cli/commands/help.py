"""/help: what can be typed at the prompt, and which keys do what."""

from __future__ import annotations

from harness.cli.commands.conversation import Conversation
from harness.cli.commands.slash_command import Effect, HelpGroup, SlashCommand, slash_commands
from harness.cli.terminal.row_text import two_columns
from harness.cli.terminal.styles import Tone

KEYS = (
    ("Enter", "send"),
    ("Alt-Enter", "a new line; also Ctrl-J, or a \\ at the end"),
    ("Up, Down", "what you typed before"),
    ("Ctrl-R", "search what you typed before"),
    ("Ctrl-X Ctrl-E", "write in your editor"),
    ("Ctrl-C, Esc", "stop the turn; Ctrl-C twice at the prompt leaves"),
    ("Ctrl-D", "leave"),
    ("Ctrl-L", "clear the screen"),
    ("Ctrl-Z", "suspend the program; fg goes on"),
    ("@name Tab", "complete a file name; the model reads files itself"),
    ("!command", "run it as yourself, without a terminal; the model hears of it with your next message"),
    ("!!command", "the same, and the model hears nothing"),
)
QUESTION_KEYS = (
    ("y", "yes, once"),
    ("n, Esc", "no"),
    ("r", "no, because ...: your words reach the model"),
    ("s, p", "yes, and for this session, or always in this project"),
    ("e", "edit the call; it is judged again"),
    ("space", "the next page of what does not fit; the last must be seen for a yes"),
    ("v, ?", "view all of it; why it is asked"),
    ("h", "halt: no, and the run ends; the prompt stays"),
    ("Ctrl-C", "no, and the turn ends"),
    ("Ctrl-Z", "suspend the program; fg shows the question again"),
    ("Enter", "nothing"),
)


def show_help(conversation: Conversation, rest: str) -> None:  # noqa: ARG001 - the signature of a command
    """Show it."""
    width = conversation.width
    for group in HelpGroup:
        conversation.say(group.value, Tone.QUIET)
        rows = [(one.usage, one.summary) for one in slash_commands() if one.group is group]
        conversation.say("\n".join(two_columns(rows, width)))
    for title, rows in (("keys", list(KEYS)), ("at a question", list(QUESTION_KEYS))):
        conversation.say(title, Tone.QUIET)
        conversation.say("\n".join(two_columns(rows, width)))
    conversation.say(
        "What you type while a turn runs is kept and run after it; it never answers a question.", Tone.QUIET
    )


COMMANDS = (
    SlashCommand(
        name="/help",
        summary="this text",
        group=HelpGroup.PROGRAM,
        does=show_help,
        effect=Effect.SHOWS,
    ),
)
