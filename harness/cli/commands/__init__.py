"""The commands of the prompt: their table, and which of them a line means; a command is imported when it is first used.

A line is a command only where its first word is one, or looks like one: `/etc/hosts says ...` is text for the model.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from harness.exhaustive import assert_never
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


class Command(Record):
    """One command of the prompt."""

    name: str
    """With the solidus."""
    arguments: str
    summary: str
    group: Group
    most: int | None = 1
    """How many words may follow; None: as many as there are."""


def _command(name: str, arguments: str, summary: str, group: Group, most: int | None = 1) -> Command:
    return Command(name=name, arguments=arguments, summary=summary, group=group, most=most if arguments else 0)


COMMANDS = (
    _command("/undo", "", "forget the last turn; asks whether its files are put back", Group.TALK),
    _command("/compact", "", "let the model summarize the conversation, to make room", Group.TALK),
    _command("/clear", "", "forget the conversation (the log keeps it)", Group.TALK),
    _command("/plan", "[off]", "only read, until a plan is approved; again to leave", Group.TALK),
    _command("/resume", "[ID]", "go on with another session; without ID, list them", Group.TALK),
    _command("/fork", "[TURN]", "a new session with what this one held after a turn", Group.TALK),
    _command("/export", "[FILE]", "write the conversation to a new Markdown file", Group.TALK, None),
    _command("/diff", "[--stat]", "what this session changed in files", Group.WORK),
    _command("/log", "[LINES]", "the action log: where, how long, its last lines", Group.WORK),
    _command("/why", "", "the last decision: by which rule, what would allow it", Group.WORK),
    _command("/cost", "", "tokens and cost, turn by turn", Group.WORK),
    _command("/context", "", "how long the conversation is, and what fills it", Group.WORK),
    _command("/policy", "[show|explain WHAT|reload|trust]", "the policy in force", Group.RULES, None),
    _command("/grants", "[revoke ID|all]", "what you granted beyond the policy", Group.RULES, 2),
    _command("/tools", "", "the tools that the model has", Group.RULES),
    _command("/model", "[NAME]", "the model; or another one of the same provider", Group.PROGRAM),
    _command("/help", "", "this text", Group.PROGRAM),
    _command("/quit", "", "leave (also /exit, Ctrl-D, or Ctrl-C twice)", Group.PROGRAM),
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
    a path does: then it is text for the model.
    """
    if line.startswith("!"):
        told = not line.startswith("!!")
        text = line.removeprefix("!!" if not told else "!").strip()
        return Run(text=text, told=told) if text else Wrong(problem="! and a command runs it as you, !! tells nobody")
    if not line.startswith("/"):
        return Ask(text=line)
    word = line.split(maxsplit=1)[0]

    rest = line[len(word) :].strip()
    name = ALIASES.get(word.lower(), word.lower())
    found = next((command for command in COMMANDS if command.name == name), None)
    if found is None:
        if "/" in word[1:] or word == "/":
            return Ask(text=line)
        from harness.policy_file import nearest

        return Wrong(problem=f"there is no command {word}{nearest(word.lower(), [one.name for one in COMMANDS])}")
    if found.most is not None and len(rest.split()) > found.most:
        return Wrong(problem=f"usage: {usage_of(found)}")
    return Do(command=found, rest=rest)


def usage_of(command: Command) -> str:
    """Return how a command is written."""
    return f"{command.name} {command.arguments}".rstrip()


def function_of(command: Command) -> Function:
    """Import what does a command, and nothing else. Raises KeyError for a name that is in no table."""
    match command.group:
        case Group.TALK:
            return _talk(command.name)
        case Group.WORK:
            return _work(command.name)
        case Group.RULES:
            return _rules(command.name)
        case Group.PROGRAM:
            return _program(command.name)
        case _:
            assert_never(command.group)


def _talk(name: str) -> Function:
    match name:
        case "/plan":
            from harness.cli.commands.plan import plan

            return plan
        case "/resume" | "/fork":
            from harness.cli.commands.sessions import fork, resume

            return {"/resume": resume, "/fork": fork}[name]
        case "/export":
            from harness.cli.commands.export import export

            return export
        case _:
            from harness.cli.commands.past import clear, compact, undo

            return {"/undo": undo, "/compact": compact, "/clear": clear}[name]


def _work(name: str) -> Function:
    match name:
        case "/diff":
            from harness.cli.commands.diff import diff

            return diff
        case "/log":
            from harness.cli.commands.log import log

            return log
        case "/why":
            from harness.cli.commands.why import why

            return why
        case _:
            from harness.cli.commands.cost import context, cost

            return {"/cost": cost, "/context": context}[name]


def _rules(name: str) -> Function:
    match name:
        case "/grants":
            from harness.cli.commands.grants import grants

            return grants
        case _:
            from harness.cli.commands.policy import policy, tools

            return {"/policy": policy, "/tools": tools}[name]


def _program(name: str) -> Function:
    match name:
        case "/model":
            from harness.cli.commands.model import model

            return model
        case "/help":
            from harness.cli.commands.help import show_help

            return show_help
        case _:
            return {"/quit": _quit}[name]


def _quit(conversation: Conversation, rest: str) -> None:  # noqa: ARG001 - the signature of a command
    conversation.leaving = True
