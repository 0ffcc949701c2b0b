"""The contract between the core and a plugin: the records by which a feature tells what it adds.

A plugin is a module with the constant PLUGIN. The plugins that ship are named in harness/shipped.py, and each of them is a
folder of harness/plugins. Reading a plugin must be cheap: its module imports this one and the shared flags, and names the
functions that do the work with `later`.

Everything that a plugin adds goes through the gate: its tools are judged, confined, logged and shown like the tools that
ship. A plugin can add, and it can tighten. It can replace nothing and loosen nothing.
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
    """All its words: `undo`, or `audit show`."""
    help: str
    """What the command does, in one sentence. It is the description in `--help` and the line in lists of commands."""
    add_flags: Callable[[ArgumentParser], None] = no_flags
    """Adds the flags; may set `usage` and `epilog` of the parser."""
    run: Callable[[Namespace, Environment], int]
    """Runs the command and returns the exit code. Raises HarnessError for an expected failure."""
    is_light: bool = False
    """Whether the command takes milliseconds and leaves nothing to close. Such a process skips the orderly end."""
    holds_session: bool = False
    """Whether the command begins a session, which decides itself when garbage is collected (running_session.collect)."""


SlashRun: TypeAlias = "Callable[[Any, str], None]"
"""Runs a slash command of a harness.app.commands.conversation.Conversation. The text is what follows the name, stripped. Raises
HarnessError for invalid text."""
SlashOffers: TypeAlias = "Callable[[Any], Sequence[Any]]"
"""Returns the possible next words (harness.terminal.completion.Offered) for the menu. Called in any thread; may be slow; raises
nothing."""


class HelpGroup(Enum):
    """Under which heading /help names a command."""

    TALK = "the conversation"
    WORK = "what was done"
    RULES = "what holds"
    PROGRAM = "the program"
    OWN = "your own and your team's"


class Effect(Enum):
    """The possible effect of a command."""

    SHOWS = "shows"
    """Nothing but showing: it writes no record and no file, so that Ctrl-C may stop it anywhere."""
    CHANGES = "changes"


class SlashCommand(Record):
    """One slash command: how it is written, what /help says of it, and the function that does it."""

    name: str
    """With the slash."""
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
        """Every name that it goes by."""
        return (self.name, *self.aliases)

    @property
    def usage(self) -> str:
        """Form of the command."""
        return f"{self.name} {self.arguments}".rstrip()


class ToolPlace(Record):
    """What a session gives to the plugin that makes a tool."""

    workspace: Workspace
    """The folder that the session works in."""
    environment: Environment
    """The environment variables of the session."""
    stops: Callable[[], int]
    """Returns how often the user asked to stop since the call began."""


class ToolOffer(Record):
    """A tool for the model. One that ships is offered where the policy or the configuration names it; one of another's plugin,
    whose name begins with `plugin__`, wherever the configuration names the plugin."""

    kind: ToolKind
    """The tool's name, and what its calls do."""
    make: Callable[[ToolPlace], Tool]
    """Makes the tool of one session."""


class ReportForm(Record):
    """A form of report on unattended runs: `--report FORM:FILE`."""

    name: str
    """The FORM."""
    write: Callable[..., Iterator[str]]
    """Yields the text of the report. Called with the runs (harness.app.run.reported.ReportedRun) and `with_answer`, which
    says whether the model's answers belong into it. Raises LogError."""


class EntryFile(Record):
    """A file of a project, in a format of its own, whose entries are like those of a settings section."""

    name: str
    """Path of the file within the project."""
    entries: Callable[[bytes], Mapping[str, Mapping[str, Any]]]
    """Returns the fields of each entry of the file, by name. Raises ValueError."""
    line_of: Callable[[str, bytes], int]
    """Returns the line on which an entry begins."""
    read: Callable[[str, Mapping[str, Any], Environment], Any]
    """Makes the same record as `SettingsSection.read`. Raises ValueError with the problem."""
    words: Callable[[str, Mapping[str, Any]], str]
    """Returns what an entry would start and reach, as one line of the question about trust."""


class DeclaredCall(Protocol):
    """Tells how a call of a tool would be judged, without starting anything."""

    def __call__(
        self,
        tool: str,
        arguments: Mapping[str, JsonValue],
        workspace: Workspace,
        environment: Environment,
        entries: Callable[[], Mapping[str, Any]],
    ) -> tuple[Action | None, str] | None:
        """Return the action of the call and a note on what is unknown of the tool. None for a tool of somebody else.

        The action is None where only rules can decide. `entries` reads the entries of the section. Raises ToolError for a
        call that a session would refuse, and UsageError.
        """
        ...


class SettingsSection(Record):
    """A table of the configuration file that belongs to a plugin."""

    key: str
    """The header of the table without the name of the entry: `group.kind` for `[group.kind.NAME]`."""
    noun: str
    """The word for an entry in messages: `server`."""
    read: Callable[[str, Mapping[str, object]], Any]
    """Makes a record from the name and the fields of one entry. Raises ValueError with the problem."""
    words: Callable[[str, Mapping[str, Any]], str]
    """Returns what an entry would start and reach, as one line of the question about trust."""
    project_file: EntryFile | None = None
    judged_call: DeclaredCall | None = None
    """For `policy explain` of the tools that the entries bring."""


class ActivePart(Protocol):
    """A part of one session while the session lasts."""

    def begin(self) -> None:
        """Start in the background, unless it has started. Returns at once."""
        ...

    def news(self) -> OutsideTools | None:
        """Return the tools of the part, where they changed since the last call; else None."""
        ...

    def close(self) -> None:
        """End everything that the part started."""
        ...


class SessionPart(Record):
    """A part of a session that a plugin adds, such as servers that run beside it."""

    section: str
    """Key of the settings section whose entries the part runs. A session without such an entry does not load the part."""
    secrets: Callable[[Sequence[Any], Environment], Sequence[str]]
    """Returns the secrets in the entries, which are masked in everything that the session writes."""
    make: Callable[..., ActivePart]
    """Makes the part of one session from its SessionTools, its log and its approver. Starts nothing."""


class Plugin(Record):
    """Everything that one plugin adds."""

    name: str
    commands: tuple[CliCommand, ...] = ()
    tools: tuple[ToolOffer, ...] = ()
    reports: tuple[ReportForm, ...] = ()
    slash_commands: tuple[SlashCommand, ...] = ()
    settings: tuple[SettingsSection, ...] = ()
    parts: tuple[SessionPart, ...] = ()
    readers: Callable[[AttachmentKeeper | None], Sequence[FileReader]] | None = None
    """Makes the readers of files that are not text. Called with the keeper of the session's attachments, if it has one."""
    shown_endings: tuple[str, ...] = ()
    """Endings of the names of files that the model can be shown: `png`. A prompt that mentions such a file attaches it."""
