"""The commands of the prompt: their table, and which of them a line means; a command is imported when it is first used.

A line is a command only where its first word is one, or looks like one: `/etc/hosts says ...` is text for the model.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from harness.record import Record

if TYPE_CHECKING:
    from harness.cli.commands.conversation import Conversation

Function: TypeAlias = "Callable[[Conversation, str], None]"
"""Does a command; the text is what follows its name, without blanks around it. Raises HarnessError for what is wrong."""


class Group(Enum):
    """Under which heading /help names a command."""

    TALK = "the conversation"
    WORK = "what was done"
    RULES = "what holds"
    PROGRAM = "the program"


class Effect(Enum):
    """What a command may do."""

    SHOWS = "shows"
    """Nothing but showing: it writes no record and no file, so that Ctrl-C may stop it anywhere."""
    CHANGES = "changes"


class Command(Record):
    """One command of the prompt."""

    name: str
    """With the solidus."""
    arguments: str
    summary: str
    group: Group
    place: str
    """The module of this package and the function in it that do it: `past:undo`."""
    effect: Effect
    most: int | None = 1
    """How many words may follow; None: as many as there are."""


def _command(
    name: str,
    arguments: str,
    summary: str,
    group: Group,
    place: str,
    *,
    most: int | None = 1,
    effect: Effect = Effect.CHANGES,
) -> Command:
    most = most if arguments else 0
    return Command(name=name, arguments=arguments, summary=summary, group=group, place=place, most=most, effect=effect)


SHOWS = Effect.SHOWS
COMMANDS = (
    _command("/undo", "", "forget the last turn; asks whether its files are put back", Group.TALK, "past:undo"),
    _command("/compact", "", "let the model summarize the conversation, to make room", Group.TALK, "past:compact"),
    _command("/clear", "", "forget the conversation (the log keeps it)", Group.TALK, "past:clear"),
    _command("/plan", "[off]", "only read, until a plan is approved; again to leave", Group.TALK, "plan:plan"),
    _command("/resume", "[ID]", "go on with another session; without ID, list them", Group.TALK, "sessions:resume"),
    _command("/fork", "[TURN]", "a new session with what this one held after a turn", Group.TALK, "sessions:fork"),
    _command(
        "/export", "[FILE]", "write the conversation to a new Markdown file", Group.TALK, "export:export", most=None
    ),
    _command("/diff", "[--stat]", "what this session changed in files", Group.WORK, "diff:diff", effect=SHOWS),
    _command(
        "/output",
        "[N]",
        "all that the last command printed; 2: the one before",
        Group.WORK,
        "output:output",
        effect=SHOWS,
    ),
    _command("/log", "[LINES]", "the action log: where, how long, its last lines", Group.WORK, "log:log", effect=SHOWS),
    _command("/why", "", "the last decision: by which rule, what would allow it", Group.WORK, "why:why", effect=SHOWS),
    _command("/cost", "", "tokens and cost, turn by turn", Group.WORK, "cost:cost", effect=SHOWS),
    _command("/context", "", "how long the conversation is, what fills it", Group.WORK, "cost:context", effect=SHOWS),
    _command(
        "/policy", "[show|explain WHAT|reload|trust]", "the policy in force", Group.RULES, "policy:policy", most=None
    ),
    _command("/grants", "[revoke ID|all]", "what you granted beyond the policy", Group.RULES, "grants:grants", most=2),
    _command(
        "/tools",
        "",
        "the tools that the model has, and what the policy says of each",
        Group.RULES,
        "policy:tools",
        effect=SHOWS,
    ),
    _command("/model", "[NAME]", "the model; or another one of the same provider", Group.PROGRAM, "model:model"),
    _command("/help", "", "this text", Group.PROGRAM, "help:show_help", effect=SHOWS),
    _command("/quit", "", "leave (also /exit, Ctrl-D, or Ctrl-C twice)", Group.PROGRAM, "quit:leave"),
)
ALIASES = {"/exit": "/quit"}


class Ask(Record):
    """A line for the model."""

    text: str


class Do(Record):
    """A line that is a command."""

    command: Command
    rest: str
    """What follows the name."""


class Run(Record):
    """A line that runs a command of the shell as the person: `!command`, or `!!command` of which the model hears nothing."""

    text: str
    told: bool
    """Whether the model is told with the person's next message."""


class Wrong(Record):
    """A line that means none of these, and goes nowhere."""

    problem: str


Meaning: TypeAlias = Ask | Do | Run | Wrong


def meaning_of(line: str) -> Meaning:
    """Return what a line (not empty, no blanks around it) means. Pure.

    `/` and a known word is a command. An unknown word is an error with the nearest name, unless it holds a further `/`, as
    a path does: then it is text for the model. Nothing but `/` is a slip of the finger.
    """
    if line.startswith("!"):
        told = not line.startswith("!!")
        text = line.removeprefix("!!" if not told else "!").strip()
        return Run(text=text, told=told) if text else Wrong(problem="! and a command runs it as you, !! tells nobody")
    if not line.startswith("/"):
        return Ask(text=line)
    if not line.strip("/"):
        return Wrong(problem="there is no command of that name; /help shows all")
    word = line.split(maxsplit=1)[0]
    rest = line[len(word) :].strip()
    name = ALIASES.get(word.lower(), word.lower())
    found = next((command for command in COMMANDS if command.name == name), None)
    if found is None:
        if "/" in word[1:]:
            return Ask(text=line)
        from harness.policy.loader import nearest

        return Wrong(problem=f"there is no command {word}{nearest(word.lower(), [one.name for one in COMMANDS])}")
    if found.most is not None and len(rest.split()) > found.most:
        return Wrong(problem=f"usage: {usage_of(found)}")
    return Do(command=found, rest=rest)


def usage_of(command: Command) -> str:
    """Return how a command is written."""
    return f"{command.name} {command.arguments}".rstrip()


def function_of(command: Command) -> Function:
    """Import what does a command, and nothing else."""
    module, _, name = command.place.partition(":")
    function: Function = getattr(import_module(f"{__name__}.{module}"), name)
    return function
