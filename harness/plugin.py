"""The contract between the core and a plugin: the records that describe a plugin's additions.

A plugin is a module with the constant PLUGIN. The plugins that ship are listed in harness/shipped.py, and each is a
folder of harness/plugins. Loading a plugin must be cheap: its module imports only this one and the shared flags, and
refers to the functions that do the work by `later`.

Everything that a plugin adds goes through the gate: its tools are judged, confined, logged and shown like the tools
that ship. A plugin can add features and tighten decisions. It cannot replace or relax anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from harness.errors import UsageError
from harness.record import Record

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from harness.actions import Action, JsonValue
    from harness.files.workspace import Workspace
    from harness.gate.tool import Tool
    from harness.loop.offered_tools import OutsideTools
    from harness.tool_kinds import ToolKind
    from harness.tools.file_reader import AttachmentKeeper, FileReader

Environment: TypeAlias = Mapping[str, str]
"""The environment variables of the process, by name."""


class Later(Record):
    """A function that is imported when it is called."""

    module: str
    name: str

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Import the function, call it and return its result."""
        return self.function()(*arguments, **keywords)

    def function(self) -> Callable[..., Any]:
        """Import the function and return it. Raises UsageError if the module has no such function."""
        function: Callable[..., Any] | None = getattr(import_module(self.module), self.name, None)
        if function is None:
            raise UsageError(f"a plugin is broken: {self.module} has no {self.name}")
        return function


def later(module: str, name: str) -> Later:
    """Return the function `name` of `module` without importing it yet."""
    return Later(module=module, name=name)


def no_flags(parser: ArgumentParser) -> None:
    """Add no flags: the command takes none."""


class CliCommand(Record):
    """One command of the command line."""

    name: str
    """All words of the command: `undo`, or `audit show`."""
    help: str
    """What the command does, in one sentence. It is the description in `--help` and the line in lists of commands."""
    add_flags: Callable[[ArgumentParser], None] = no_flags
    """Adds the flags; may set `usage` and `epilog` of the parser."""
    run: Callable[[Namespace, Environment], int]
    """Runs the command and returns the exit code. Raises HarnessError for an expected failure."""
    is_light: bool = False
    """Whether the command takes milliseconds and leaves nothing to close.

    Such a process exits without the usual shutdown.
    """
    holds_session: bool = False
    """Whether the command begins a session. The session then controls garbage collection (running_session.collect)."""


SlashRun: TypeAlias = "Callable[[Any, str], None]"
"""Runs a slash command of a harness.app.commands.conversation.Conversation.

The text is the input after the name, stripped. Raises HarnessError for invalid text.
"""
SlashOffers: TypeAlias = "Callable[[Any], Sequence[Any]]"
"""Returns the possible next words (harness.terminal.completion.Offered) for the menu.

May be slow, and may be called in any thread. Raises nothing.
"""


class HelpGroup(Enum):
    """The heading under which /help lists a command."""

    TALK = "the conversation"
    WORK = "what was done"
    RULES = "what holds"
    PROGRAM = "the program"
    OWN = "your own and your team's"


class Effect(Enum):
    """The possible effect of a command."""

    SHOWS = "shows"
    """The command only shows something. It writes no record and no file, so that Ctrl-C may stop it anywhere."""
    CHANGES = "changes"


class SlashCommand(Record):
    """One slash command: its form, its text in /help, and its function."""

    name: str
    """The name, with the slash."""
    arguments: str = ""
    """Form of the arguments in /help. Empty if there are none."""
    summary: str
    group: HelpGroup = HelpGroup.OWN
    run: SlashRun
    effect: Effect = Effect.CHANGES
    max_arguments: int | None = 1
    """Maximum number of arguments. `None` for any number."""
    aliases: tuple[str, ...] = ()
    offers: SlashOffers | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the command: `name` and the aliases."""
        return (self.name, *self.aliases)

    @property
    def usage(self) -> str:
        """Form of the command."""
        return f"{self.name} {self.arguments}".rstrip()


class ToolPlace(Record):
    """The values that a session passes to a plugin's `make` of a tool."""

    workspace: Workspace
    """The folder that the session works in."""
    environment: Environment
    """The environment variables of the session."""
    stops: Callable[[], int]
    """Returns the number of stop requests by the user since the call began."""


class ToolOffer(Record):
    """A tool for the model.

    A tool that ships is offered only if the policy or the configuration names it. A tool of an external plugin has a
    name that begins with `plugin__`, and is offered if the configuration names the plugin.
    """

    kind: ToolKind
    """Name and description of the tool."""
    make: Callable[[ToolPlace], Tool]
    """Makes the tool of one session."""


class ReportForm(Record):
    """A format of reports on unattended runs: `--report FORM:FILE`."""

    name: str
    """The value of FORM."""
    write: Callable[..., Iterator[str]]
    """Yields the text of the report.

    Called with the runs (harness.app.run.reported.ReportedRun) and `with_answer`, which tells whether to include the
    model's answers. Raises LogError.
    """


class EntryFile(Record):
    """A project file in its own format, whose entries correspond to those of a settings section."""

    name: str
    """Path of the file within the project."""
    entries: Callable[[bytes], Mapping[str, Mapping[str, Any]]]
    """Returns the fields of each entry of the file, by name. Raises ValueError."""
    line_of: Callable[[str, bytes], int]
    """Returns the line on which an entry begins."""
    read: Callable[[str, Mapping[str, Any], Environment], Any]
    """Makes the same record as `SettingsSection.read`. Raises ValueError with a description of the problem."""
    words: Callable[[str, Mapping[str, Any]], str]
    """Returns one line for the question about trust: the programs and hosts that an entry would start or reach."""


class DeclaredCall(Protocol):
    """Function that predicts how a tool call would be judged, without starting any program."""

    def __call__(
        self,
        tool: str,
        arguments: Mapping[str, JsonValue],
        workspace: Workspace,
        environment: Environment,
        entries: Callable[[], Mapping[str, Any]],
    ) -> tuple[Action | None, str] | None:
        """Return the action of the call, and a note on unknown properties of the tool.

        The result is `None` for a tool of another plugin. The action is `None` if only rules can decide. `entries`
        returns the entries of the section. Raises ToolError for a call that a session would refuse, and UsageError.
        """
        ...


class SettingsSection(Record):
    """A table of the configuration file that belongs to a plugin."""

    key: str
    """The header of the table without the entry's name: `group.kind` for `[group.kind.NAME]`."""
    noun: str
    """The word for an entry in messages: `server`."""
    read: Callable[[str, Mapping[str, object]], Any]
    """Makes a record from the name and the fields of one entry. Raises ValueError with a description of the problem."""
    words: Callable[[str, Mapping[str, Any]], str]
    """Returns one line for the question about trust: the programs and hosts that an entry would start or reach."""
    project_file: EntryFile | None = None
    judged_call: DeclaredCall | None = None
    """Predicts the decision on calls of the entries' tools, for `policy explain`."""


class ActivePart(Protocol):
    """A plugin's part of a running session."""

    def begin(self) -> None:
        """Start the part in the background unless it is running. Returns at once."""
        ...

    def news(self) -> OutsideTools | None:
        """Return the part's tools if they changed since the last call, else `None`."""
        ...

    def close(self) -> None:
        """Stop everything that the part started."""
        ...


class SessionPart(Record):
    """A part that a plugin adds to a session, such as servers that run next to it."""

    section: str
    """Key of the settings section whose entries the part runs.

    A session without such entries does not load the part.
    """
    secrets: Callable[[Sequence[Any], Environment], Sequence[str]]
    """Returns the secrets in the entries, which are masked in everything that the session writes."""
    make: Callable[..., ActivePart]
    """Makes the part of one session from the session's SessionTools, log and approver. Starts no program."""


class Plugin(Record):
    """Everything that one plugin adds."""

    name: str
    commands: tuple[CliCommand, ...] = ()
    tools: tuple[ToolOffer, ...] = ()
    reports: tuple[ReportForm, ...] = ()
    slash_commands: tuple[SlashCommand, ...] = ()
    readers: Callable[[AttachmentKeeper | None], Sequence[FileReader]] | None = None
    """Makes the readers of non-text files. Called with the keeper of the session's attachments, or `None`."""
    shown_endings: tuple[str, ...] = ()
    """File name extensions that the model can be shown: `png`. A prompt that mentions such a file attaches it."""
