"""Action: a tool call, validated and resolved. The same object is judged, shown, logged and run.

An action is made of facets, the parts that a policy decides on: commands, paths, and text that could not be parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum, IntEnum
from typing import TypeAlias, assert_never

from harness.messages import ToolCall
from harness.paths import NO_NAMES, TreeNames
from harness.record import Record
from harness.tool_kinds import ToolKind, tool_kind

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"


SUMMARY_CHARACTERS = 4_000


class Decision(IntEnum):
    """The decision on a call. Decisions are ordered: the highest of all rules, layers and facets applies."""

    AUTO = 0
    CONFIRM = 1
    DENY = 2
    BLOCK = 3

    @property
    def word(self) -> str:
        """The word that policies and logs use."""
        return self.name.lower()


class Access(Enum):
    """The kind of access to a path."""

    READ = "read"
    WRITE = "write"
    EITHER = "either"
    """An operand of an unknown program. Strict rules for reading and strict rules for writing both apply."""


class Act(Enum):
    """The effect of a command, according to the model of its program. Ordered from least to most."""

    LOOKS = "looks"
    """The command reads its operands and prints. It changes nothing."""
    WRAPS = "wraps"
    """The command only runs the command in its operands, which is judged separately."""
    WRITES = "writes"
    """The command writes only the paths that it names."""
    CHANGES = "changes"
    """The command changes more than its operands: an index, a package, a process, another machine."""
    RUNS = "runs"
    """The command runs code from files or operands that no policy sees: tests, builds, scripts."""
    UNKNOWN = "unknown"
    """The command has no model: the program, one of its options, or a value is unknown."""


class Place(Enum):
    """Place of a resolved path. Access to OUTSIDE and ABOVE, and writing to OUTPUT or ADDED, needs at least a question.

    The few exceptions, /dev/null and public facts about the machine, are in policy/built_in.py.
    """

    INSIDE = "inside"
    ROOT = "root"
    """The workspace folder itself."""
    ABOVE = "above"
    """A folder that contains the workspace or the home folder, or is the home folder: `/`, `/home`, `/home/ann`."""
    OUTPUT = "output"
    """The folder with the full output of this session's commands, which may be read like the workspace."""
    ADDED = "added"
    """A folder that the user added to the workspace, or the folder of one of the user's skills, with all its contents.

    It may be read like the workspace.
    """
    TEMPORARY = "temporary"
    """The session's own folder for temporary files: `$TMPDIR`, and where commands have namespaces also `/tmp`."""
    OUTSIDE = "outside"


class PathAccess(Record):
    """One path that a call reads or writes, resolved once."""

    written: str
    """The path as the model wrote it."""
    real: str
    """Absolute path with links followed and `..` resolved physically.

    A path in the private temporary folder is `$TMPDIR/` and a name, or the path by which commands reach the file.
    """
    names: tuple[str, ...]
    """Names that patterns are matched against.

    A name is relative to the workspace if the path is inside, else absolute. There are two if the written path
    (normalised) and the resolved path differ.
    """
    access: Access
    place: Place
    closed: bool = False
    """Whether the target is unknown because a folder on the way cannot be searched."""
    entry: bool = False
    """Whether the directory entry itself may be moved, removed or replaced, not only the content of the file."""
    tree: bool = False
    """Whether the access covers everything below the path, as in `grep -r`, `cp -r` and `rm -r`."""
    below: TreeNames = NO_NAMES
    """Names of the files below a tree in the workspace or in an added folder."""
    tracked: bool = False
    """Whether the path means tracked files that a git command shows or adds."""
    untracked: bool = False
    """Whether the path means untracked files that a git command shows or adds."""
    is_whole: bool = True
    """Whether `below` has all files. A tree that is too large to examine leads to a question."""
    shared: bool = False
    """Whether the file has more hard links, so that a write also changes files with other names."""
    new: bool = False
    """Whether the call reads and writes this path and the file does not exist yet. Such a read reveals nothing."""

    @property
    def text(self) -> str:
        """The text of the facet for display. Like the text of every facet, it is untrusted."""
        return self.written


REACHES_NETWORK = "it reaches the network"
"""Description of `network` in questions, offers, explanations and suggestions."""


class Command(Record):
    """One simple command without quotes: the exact words that bash would run."""

    text: str
    """Text of the command in the command line, for display."""
    argv: tuple[str, ...]
    variables: tuple[str, ...] = ()
    """Names of environment variables that are set in front of the command."""
    paths: tuple[PathAccess, ...] = ()
    """Paths that the command reads and writes. Without a model, every operand counts as a path that may be written."""
    act: Act = Act.UNKNOWN
    network: bool = False
    """Whether the command may reach the network. Set only with a known `act`."""
    needs: str = ""
    """Description of the Unix socket that the command requires, for the user. Empty if it requires none."""
    model: str = ""
    """Name of the model that covers the command (`git log`). Empty if none does."""
    gap: str = ""
    """Reason why no model covers the command, in a few words."""
    folder: str = ""
    """Working directory of the command, with links followed as the shell does. Empty if unknown."""
    run_by: tuple[tuple[str, ...], ...] = ()
    """The commands that run this one, as words: `uv run pytest` runs `pytest`."""
    opens: tuple[str, ...] = ()
    """Absolute folders outside the workspace that a git command writes because the repository is linked from there."""
    remotes: tuple[str, ...] = ()
    """Addresses of all remotes of the repository, for a git command that uses the network. Empty if one may be missing."""
    fed: bool = False
    """Whether the command reads input besides its words: a here-document, a file, or the output of a pipe."""


class Opaque(Record):
    """Text that could not be fully parsed. It leads at least to a question, even if a rule says auto."""

    text: str
    reason: str
    column: int
    """Column at which the parser stopped; 1 is the first character."""
    commands: tuple[tuple[str, ...], ...] = ()
    """The text split loosely into commands; always possible. Strict rules are tried at every position of them."""
    paths: tuple[PathAccess, ...] = ()
    is_whole: bool = True
    """Whether `paths` has every word that may be a path. A text with too many such words is refused."""
    given_to: Command | None = None
    """The known interpreter that runs the text. `None` for a shell or an unknown interpreter."""
    hint: str = ""
    """Advice for the model on another form of the call. Empty if there is none for this text."""


class Unconfined(Record):
    """The model's request to run a command without confinement. It needs at least a question."""

    justification: str
    """The model's reason. It is untrusted text, shown and logged."""

    @property
    def text(self) -> str:
        """See PathAccess."""
        return self.justification


class ToolArgument(Record):
    """One text argument of an unknown tool, for the `where` of a rule."""

    name: str
    """Name of the argument, preceded by the names of the objects around it: `edits.path`."""
    text: str
    names: tuple[str, ...] = ()
    """Names for path patterns, as in PathAccess, if the text is read as a path. Empty if it cannot be a path."""
    place: Place = Place.OUTSIDE
    """Place of the text, read as a path."""
    host: str = ""
    """Host name, if the text is an address. Empty if it is not."""


class ToolBounds(Record):
    """Declared limits of an external tool's effects."""

    write: tuple[str, ...] = ()
    """Folders and files that the tool may write, named as in `Effects.granted`."""
    network: bool = False
    is_held: bool = True
    """Whether the kernel confines the tool to these limits. If not, the tool may do anything and no rule is relaxed."""


class ToolUse(Record):
    """The use of a tool that has no finer facets, such as commands or paths."""

    tool: str
    unseen: str = ""
    """Reason why the user must inspect the tool before its use, regardless of rules.

    Empty once the user has done so.
    """
    hint: str = ""
    """Advice for an unattended run: how a user can inspect the tool."""
    arguments: tuple[ToolArgument, ...] = ()
    says_reads: bool = False
    """Whether the tool's server claims that the tool only reads. The claim counts only for a rule that refers to it."""
    says_destroys: bool = False
    """Whether the tool's server says that the tool may destroy data."""
    bounds: ToolBounds | None = None
    """Declared limits of the effects. `None` if unknown."""
    host: str = ""
    """The host that the tool connects to, in the form of policy/hosts.py. Empty if unknown or none."""
    port: int = 0
    stays_here: bool = False
    """Whether this is a tool of the harness itself that uses no file, no network and no program outside of the session."""

    @property
    def writes_nothing(self) -> bool:
        """Whether the tool is unable to write here, regardless of its server's claims."""
        return self.bounds is not None and self.bounds.is_held and not self.bounds.write

    @property
    def only_reads(self) -> bool:
        """Whether the tool is unable to do more than read, regardless of its server's claims."""
        return self.writes_nothing and self.bounds is not None and not self.bounds.network

    @property
    def text(self) -> str:
        """See PathAccess."""
        return self.tool


Facet: TypeAlias = Command | PathAccess | Opaque | Unconfined | ToolUse


class FileChange(Record):
    """The change of one file by a call, as digests.

    The same change is shown, approved, logged and checked again.
    """

    path: str
    """Absolute, links followed."""
    before_sha256: str | None
    """SHA-256 before the change. `None` if the file does not exist."""
    after_sha256: str
    before_mode: int | None
    """The file's permission bits before the change. `None` if the file does not exist."""


class Action(Record):
    """A call that can be judged and, with a permit, run.

    INVARIANT: an action that runs was made by `Tool.prepare` and never changed. The tool runs `request` of this same
    object.
    """

    call: ToolCall
    tool: str
    arguments: Mapping[str, JsonValue]
    """The parsed arguments."""
    facets: tuple[Facet, ...]
    summary: str
    """One line of at most SUMMARY_CHARACTERS, for the trace. Mask secrets before cutting it further."""
    preview: str
    """Text that the user must see before approval: the whole command, or a diff."""
    shown_whole: bool = True
    """Whether `preview` is complete. An incomplete preview cannot be approved at a terminal."""
    request: object
    """The tool's own frozen arguments: resolved paths, time limits, digests."""
    default_of: str = ""
    """The tool whose default decision applies to the whole action where no rule matches.

    Empty for the action's own tool. Used for a call that would change nothing and therefore only reads. Strict rules
    about either tool apply.
    """
    reads_as: str = ""
    """The tool whose default decision applies to the reads of the action. Empty for its own tool.

    An edit reads its file too.
    """
    text: str = ""
    """The raw command line, for rules with `text`. Empty for tools without one."""
    change: FileChange | None = None
    """The change, for a call that changes one file."""
    cwd: str = ""
    """Working directory of a program that the call starts, with links followed."""
    own_tmp: bool = False
    """Whether the facets rest on the session's own `/tmp`."""
    beside_servers: bool = False
    """Whether background commands of the session may serve the addresses of this machine in the walls."""
    seconds: float | None = None
    """Time limit in seconds, if there is one."""
    background: str = ""
    """Name under which a program runs on in the background after the call. Empty for one that ends with its call."""
    asked_by: str = ""
    """The helper that made the call, safe to display. Empty for the main conversation."""
    confinement: str = ""
    """The helper's confinement, safe to display. Set together with `asked_by`.

    Empty if it is that of the process that asks the user.
    """
    described: ToolKind | None = None
    """The tool's own description. Optional for a shipped tool."""

    @property
    def kind(self) -> ToolKind:
        """The kind of the tool."""
        return self.described or tool_kind(self.tool)

    def all_facets(self) -> Iterator[Facet]:
        """Yield every facet, with the operands of commands. Yields at least one, so that every action is judged."""
        if not self.facets:
            yield ToolUse(tool=self.tool)
        for facet in self.facets:
            yield facet
            if isinstance(facet, Command | Opaque):
                yield from facet.paths


def written_paths(action: Action) -> tuple[str, ...]:
    """Return the paths that a call writes or may write, as far as its facets show, with the operands of commands.

    Leaves out paths in the private temporary folder.
    """
    paths = (facet for facet in action.all_facets() if isinstance(facet, PathAccess))
    paths = (path for path in paths if path.place is not Place.TEMPORARY)
    return tuple(path.real for path in paths if path.access is not Access.READ)


class Enforcement(Enum):
    """Whether the kernel must confine a command to its effects."""

    POSSIBLE = "where possible"
    """The command is confined as far as this machine can do it. The level is shown and logged."""
    REQUIRED = "required"
    """A command that cannot be confined is not run."""
    OFF = "off"
    """The user allowed this exact command to run without confinement."""


class WallsLevel(Enum):
    """The level of the walls around a command. It depends on the command's effects, and not on who allowed them."""

    READER = "reader"
    """It writes nothing and has no network."""
    WORKSPACE = "workspace"
    """It writes the workspace and a private folder for temporary files, without what is hidden or protected."""
    OPENED = "opened"
    """The workspace level, and the openings that the verdict names."""
    UNCONFINED = "unconfined"


class Opening(Enum):
    """A part of the world beyond the workspace walls that the user opens for one call, at its approval prompt."""

    NETWORK = "network"
    SOCKETS = "sockets"
    PLACES = "places"


class Effects(Record):
    """The permitted effects of a run. The kernel confines a command to `named_paths`, `granted`, `network` and `hide`."""

    read: tuple[str, ...] | None
    """Resolved paths that the facets read. `None` if unknown. Not enforced."""
    write: tuple[str, ...] | None
    """Resolved paths that the facets write. `None` if not fully known."""
    named_paths: tuple[str, ...] = ()
    """Resolved paths that the facets certainly write. The run may always write them."""
    entries: tuple[str, ...] = ()
    """The paths of `named_paths` that the run may move, remove or replace. Their folders are made writable."""
    outside: tuple[str, ...] = ()
    """The paths of `named_paths` outside the workspace."""
    granted: tuple[str, ...] = ()
    """Further writable folders and files, with everything below them, in the form of a policy.

    `.` and relative paths are in the workspace; `~/` is the home folder.
    """
    network: bool
    """Whether the run may reach the network."""
    named_hosts: tuple[str, ...] = ()
    """For a tool that connects to a host: host patterns of the rules, which may include non-public addresses."""
    hosts: tuple[str, ...] = ()
    """Hosts that the run may reach through the harness's proxy even without the network, in the form of a policy."""
    hide: tuple[str, ...] = ()
    """Folders and files that the run cannot read, named like `granted`."""
    shows_tracked: bool = False
    """Whether hidden files that git tracks stay visible if they are unchanged: a git command compares every tracked file.

    Their content is in the repository anyway.
    """
    left_out: tuple[str, ...] = ()
    """Workspace files below the run's paths that a rule denies to read, by their names in the workspace.

    They are hidden too. Without walls, the command is not run.
    """
    keep: tuple[str, ...] = ()
    """Absolute paths that no call may write, regardless of grants: policies, trust, logs."""
    hold: tuple[str, ...] = ()
    """Absolute paths inside `granted` that stay read-only, because a rule forbids to write them or asks about it."""
    unheld: str = ""
    """Part of the walls' level that this machine cannot enforce in this workspace, in a short clause. Empty if none."""
    own_tmp: bool = False
    """Whether the run was judged by files in the session's own `/tmp`, and so must not have that of the machine.

    In `read` and `write`, their paths begin with `$TMPDIR`.
    """
    meets_servers: bool = False
    """Whether the run needs the background commands of the session, which serve 127.0.0.1 in the network of the walls."""
    changes: tuple[str, ...] = ()
    """Protected places that the run may change, by their names in the workspace. A name holds at any depth."""
    writes_git: bool = True
    """Whether the run may write the data of git in the workspace: commits, branches, the index."""
    opens_places: bool = False
    """Whether the run may change every protected place, because the user opened them at the approval prompt."""
    enforcement: Enforcement = Enforcement.POSSIBLE
    sockets: bool = False
    """Whether the run may connect to Unix sockets of other programs."""
    socket: str = ""
    """Description of the Unix socket that the run needs, for the user. Set only with `sockets`."""
    unasked: bool
    """Whether the command ran without a question.

    If so, programs from a repository's configuration are prevented from running.
    """

    @property
    def reaches(self) -> bool:
        """Whether there is any way to the network."""
        return self.network or bool(self.hosts)

    @property
    def looks_only(self) -> bool:
        """Whether the run can neither write nor reach the network."""
        return self.write == () and not self.granted and not self.reaches

    @property
    def may_write(self) -> bool:
        """Whether the run can write any file."""
        return self.write != () or bool(self.granted) or self.enforcement is Enforcement.OFF

    @property
    def level(self) -> WallsLevel:
        """The level of the walls."""
        if self.enforcement is Enforcement.OFF:
            return WallsLevel.UNCONFINED
        if self.opened:
            return WallsLevel.OPENED
        return WallsLevel.READER if self.looks_only else WallsLevel.WORKSPACE

    @property
    def opened(self) -> tuple[str, ...]:
        """The openings of the walls beyond the workspace, in words. They are untrusted text."""
        network = ["network: any host"] if self.network else []
        if self.hosts and not self.network:
            network = [f"network {', '.join(self.hosts)}"]
        outside = [path for path in (*self.granted, *self.outside) if path.startswith(("/", "~"))]
        writes = [f"writes {path}" for path in dict.fromkeys(outside)]
        changes = ["changes any protected place"] if self.opens_places else [f"changes {name}" for name in self.changes]
        sockets = [f"a Unix socket: {self.socket}" if self.socket else "Unix sockets"] if self.sockets else []
        return (*network, *writes, *changes, *sockets)


def _as_it_is(text: str) -> str:
    return text


def describe_facet(facet: Facet, mask: Callable[[str], str] = _as_it_is) -> str:
    """Return a facet in a few words, for refusals, the log and explanations.

    `mask` masks secrets before the text is cut.
    """
    return f"{_lead(facet)}{_clip(mask(facet.text))}"


def _lead(facet: Facet) -> str:
    match facet:
        case Command() | Opaque():
            return ""
        case PathAccess():
            return f"{facet.access.value} "
        case Unconfined():
            return "run without confinement: "
        case ToolUse():
            return "the tool "
        case _:
            assert_never(facet)


def _clip(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}... ({len(text)} characters)"
