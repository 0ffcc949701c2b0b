"""/help: the possible input at the prompt, and the keys."""

from __future__ import annotations

from collections.abc import Sequence

from harness.app.commands.conversation import Conversation
from harness.app.commands.slash_command import slash_commands
from harness.errors import UsageError
from harness.plugin import Effect, HelpGroup, SlashCommand
from harness.terminal.key_panel import KeyWords
from harness.terminal.styles import Tone
from harness.terminal.tables import Table, labelled

KEYS = (
    KeyWords(key="/", does="commands", more="a command; the menu says what each does"),
    KeyWords(
        key="@, Ctrl-V",
        does="a file; a picture",
        more="a file, which the model reads itself; the clipboard's picture",
    ),
    KeyWords(key="!", does="run a command as you", more="run a command as you; with !! the model does not hear of it"),
    KeyWords(
        key="Shift-Tab",
        does="the next mode",
        more="the next mode: ask, edits, walls, plan",
    ),
    KeyWords(key="Esc Esc", does="back to a message", more="go back to before one of your messages, and change it"),
    KeyWords(key="Ctrl-C, Esc", does="stop; twice: leave", more="stop the turn; Ctrl-C twice at the prompt leaves"),
    KeyWords(key="Alt-Enter", does="a new line", more="a new line; also Shift-Enter (if sent), Ctrl-J, \\ at the end"),
    KeyWords(key="Up, Ctrl-R", does="earlier lines; search", more="earlier lines, or choose in a menu; search them"),
    KeyWords(key="Ctrl-X Ctrl-E", does="write in your editor"),
    KeyWords(key="Ctrl-L, Ctrl-Z", does="clear; suspend", more="clear the screen; suspend the program, and fg goes on"),
    KeyWords(key="/help", does="all commands and keys"),
)
QUESTION_KEYS = (
    ("y", "yes, once"),
    ("n, Esc", "no"),
    ("r", "no, with a reason that the model reads"),
    ("Tab", "add words for the model to your answer, a yes too"),
    ("s, p", "yes, for this session or project; what it covers is shown first"),
    ("e", "edit the call; harness decides it again"),
    ("space", "the next page; a yes needs the last one"),
    ("v, ?", "the whole call; the reason for the question"),
    ("h", "halt: no, and the turn ends; nothing else of it runs"),
    ("Ctrl-C", "no, and the turn ends"),
    ("Ctrl-Z", "suspend the program; fg shows the question again"),
    ("Enter", "alone it never answers; y and Enter do"),
)


def command_table(rows: Sequence[tuple[str, str]]) -> Table:
    """Return a table of possible inputs with their effects."""
    return labelled((f"  {name}", text, Tone.PLAIN) for name, text in rows)


def show_help(conversation: Conversation, rest: str) -> None:
    """Show the whole help, or with `keys` only the keys. Raises UsageError."""
    keys = [(key.key, key.more or key.does) for key in KEYS]
    if rest == "keys":
        conversation.screen.table(command_table(keys))
        return
    if rest:
        raise UsageError("usage: /help, or /help keys")
    for group in HelpGroup:
        rows = [
            (command.usage, command.summary)
            for command in (*slash_commands(), *conversation.own_commands)
            if command.group is group
        ]
        if rows:
            conversation.say(group.value, Tone.QUIET)
            conversation.screen.table(command_table(rows))
    for title, rows in (("keys", keys), ("at a question", list(QUESTION_KEYS))):
        conversation.say(title, Tone.QUIET)
        conversation.screen.table(command_table(rows))
    conversation.say("Text that you type during a turn never answers a question.", Tone.QUIET)


COMMANDS = (
    SlashCommand(
        name="/help",
        arguments="[keys]",
        summary="this text",
        group=HelpGroup.PROGRAM,
        run=show_help,
        effect=Effect.SHOWS,
    ),
)
