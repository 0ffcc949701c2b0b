"""Action: a tool call, validated and resolved; the one object that is judged, shown, logged and run.

An action is made of facets, the parts that a policy has an opinion on: commands, paths, and what could not be read.
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
    """The decision on a call. Ordered: the maximum over rules, layers and facets is the answer."""

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
    """An operand of a program that is not known: strict rules for reading and for writing both apply."""


class Act(Enum):
    """The kind of a command's act, according to the model of its program. Ordered from least to most."""

    LOOKS = "looks"
    """It reads what its operands name, prints, and changes nothing."""
    WRAPS = "wraps"
    """It runs the command among its operands, which is judged by itself, and does nothing else."""
    WRITES = "writes"
    """It writes the paths that it names, and nothing else."""
    CHANGES = "changes"
    """It changes more than its operands name: an index, a package, a process, another machine."""
    RUNS = "runs"
    """It runs code out of files or operands that no policy sees: tests, builds, scripts."""
    UNKNOWN = "unknown"
    """No model covers this command: the program, one of its options, or a value is unknown."""


class Place(Enum):
    """Place of a resolved path. OUTSIDE and ABOVE, and writing OUTPUT or ADDED, lead at least to a question.

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
    """A folder that the person added to the workspace or that of a skill of theirs, and everything in it; it may be
    read like the workspace.
    """
    TEMPORARY = "temporary"
    """The private folder that `$TMPDIR` names for the call."""
    OUTSIDE = "outside"


class PathAccess(Record):
    """One path that a call reads or writes, resolved once."""

    written: str
    """The path as the model wrote it."""
    real: str
    """Absolute, links followed, `..` taken physically. In the private temporary folder: `$TMPDIR/` and a name."""
    names: tuple[str, ...]
    """Names for patterns: relative to the workspace if the path is inside, else absolute; the path as written
    (normalised) and as resolved, if these differ.
    """
    access: Access
    place: Place
    closed: bool = False
    """Whether a folder on the way may not be searched, so that its target is unknown."""
    entry: bool = False
    """Whether the name itself may be moved, removed or replaced, not only what the file holds."""
    tree: bool = False
    """Whether everything below the path counts too, as in `grep -r`, `cp -r` and `rm -r`."""
    below: TreeNames = NO_NAMES
    """Names of the files below a tree in the workspace or in an added folder."""
    tracked: bool = False
    """Whether these are the files that git shows or adds out of those that it tracks."""
    untracked: bool = False
    """Whether these are files that git shows or adds although it does not track them."""
    is_whole: bool = True
    """Whether `below` names every file below; a tree that is too large to examine leads to a question."""
    shared: bool = False
    """Whether the file has further names (hard links), so that writing it changes files that are not named."""
    new: bool = False
    """Whether the file of a read beside a write does not exist yet, so that it reveals nothing."""

    @property
    def text(self) -> str:
        """The text of the facet for display, which is from elsewhere as in every facet."""
        return self.written


REACHES_NETWORK = "it reaches the network"
"""What questions, offers, explanations and suggestions say of a command with `network`."""


class Command(Record):
    """One simple command, dequoted: what bash would run, word for word."""

    text: str
    """Text of the command in the command line, for display."""
    argv: tuple[str, ...]
    variables: tuple[str, ...] = ()
    """Names of variables that are set in front of it."""
    paths: tuple[PathAccess, ...] = ()
    """Paths that it reads and writes. Without a model, every operand counts as a path that may be written."""
    act: Act = Act.UNKNOWN
    network: bool = False
    """Whether it may reach the network. Set only with a known `act`."""
    needs: str = ""
    """The socket that it requires, in words for a person. Empty for a command that needs none."""
    model: str = ""
    """The model that covers it (`git log`). Empty without one."""
    gap: str = ""
    """Reason why no model covers it, in a few words."""
    folder: str = ""
    """The folder that it runs in, links followed as the shell does. Empty if unknown."""
    run_by: tuple[tuple[str, ...], ...] = ()
    """The commands that run it, by their words: `uv run pytest` runs `pytest`."""
    opens: tuple[str, ...] = ()
    """Folders outside the workspace that a git command writes, where its repository is linked from there (absolute)."""
    fed: bool = False
    """Whether it reads what is not in its words: text of a redirection, a file, or what the command before it prints."""


class Opaque(Record):
    """Text that was not plainly understood. It leads at least to a question, whatever rules say auto."""

    text: str
    reason: str
    column: int
    """Column at which reading stopped; 1 is the first character."""
    commands: tuple[tuple[str, ...], ...] = ()
    """A loose tokenisation, which always exists: strict rules are tried on it at every position."""
    paths: tuple[PathAccess, ...] = ()
    is_whole: bool = True
    """Whether `paths` holds every word that may be a path; a text with too many of them is refused."""
    given_to: Command | None = None
    """The known interpreter that runs the text. `None` for a shell."""


class Unconfined(Record):
    """The wish that the kernel shall not hold a command to its effects. It is at least asked about."""

    justification: str
    """The model's words: data, shown and logged, never trusted."""

    @property
    def text(self) -> str:
        """See PathAccess."""
        return self.justification


class ToolArgument(Record):
    """One text among the arguments of an unknown tool, for the `where` of a rule."""

    name: str
    """Name of the argument, with those around it: `edits.path`."""
    text: str
    names: tuple[str, ...] = ()
    """Names for path patterns, as in PathAccess, if the text were a path. Empty if it cannot be one."""
    place: Place = Place.OUTSIDE
    """Place of the text, read as a path."""
    host: str = ""
    """The host that it names, were it the address of something; empty where it is none."""


class ToolBounds(Record):
    """Greatest effects of a tool from outside, as declared."""

    write: tuple[str, ...] = ()
    """Folders and files that it may write, named as in `Effects.granted`."""
    network: bool = False
    is_held: bool = True
    """Whether the kernel holds it to that here: else it may do anything, and nothing is loosened."""


class ToolUse(Record):
    """The use of a tool that has nothing finer to judge."""

    tool: str
    unseen: str = ""
    """Reason why a person must look at the tool before its use, whatever rules say. Empty once one has."""
    hint: str = ""
    """Advice for an unattended run, on how a person does that."""
    arguments: tuple[ToolArgument, ...] = ()
    says_reads: bool = False
    """Whether the tool's server claims that it only reads: that loosens nothing but by a rule that says so."""
    says_destroys: bool = False
    """Whether its server says that it may destroy."""
    bounds: ToolBounds | None = None
    """Greatest effects. `None` if unknown."""
    host: str = ""
    """The host that it connects to, in the form of policy/hosts.py. Empty if unknown or none."""
    port: int = 0
    stays_here: bool = False
    """Whether it is one of our own tools that touches nothing outside of the conversation: no file, no program, no network."""

    @property
    def writes_nothing(self) -> bool:
        """Whether it can write nothing here, regardless of claims."""
        return self.bounds is not None and self.bounds.is_held and not self.bounds.write

    @property
    def only_reads(self) -> bool:
        """Whether it can only read, regardless of claims."""
        return self.writes_nothing and self.bounds is not None and not self.bounds.network

    @property
    def text(self) -> str:
        """See PathAccess."""
        return self.tool


Facet: TypeAlias = Command | PathAccess | Opaque | Unconfined | ToolUse


class FileChange(Record):
    """A call's change of one file, by digest. This same change is shown, approved, logged and checked again."""

    path: str
    """Absolute, links followed."""
    before_sha256: str | None
    """SHA-256 before the change. `None` if the file does not exist."""
    after_sha256: str
    before_mode: int | None
    """The file's permission bits. `None` if it does not exist."""


class Action(Record):
    """A call that can be judged and, with a permit, run.

    INVARIANT: an action that runs was made by `Tool.prepare` and never changed; what the tool runs is `request`, out of
    this very object.
    """

    call: ToolCall
    tool: str
    arguments: Mapping[str, JsonValue]
    """The parsed arguments."""
    facets: tuple[Facet, ...]
    summary: str
    """One line of at most SUMMARY_CHARACTERS, for the trace. Mask secrets before cutting it further."""
    preview: str
    """Text that a person must see before a yes: the whole command, or a diff."""
    shown_whole: bool = True
    """Whether `preview` holds everything; what it does not hold cannot be approved at a terminal."""
    request: object
    """The tool's own frozen arguments: resolved paths, time limits, digests."""
    default_of: str = ""
    """The tool whose default holds for all of it where no rule matches, if that is not the action's own: a call that would
    change nothing only reads. Strict rules about either tool hold."""
    reads_as: str = ""
    """The tool whose default holds for what the action reads, if that is not its own: an edit reads its file too."""
    text: str = ""
    """The raw command, for rules with `text`; empty for tools that have none."""
    change: FileChange | None = None
    """The change, for a call that changes one file."""
    cwd: str = ""
    """Working folder of a program that the call starts, links followed."""
    seconds: float | None = None
    """Time limit in seconds, if there is one."""
    asked_by: str = ""
    """The helper that wants the call, in words that are safe to show. Empty for the conversation itself."""
    confinement: str = ""
    """The helper's confinement, in words that are safe to show. Empty for that of the asked side. Set with
    `asked_by`.
    """
    described: ToolKind | None = None
    """The tool's own description; a shipped tool need not repeat it."""

    @property
    def kind(self) -> ToolKind:
        """The kind of the tool."""
        return self.described or tool_kind(self.tool)

    def all_facets(self) -> Iterator[Facet]:
        """Yield every facet, operands of commands included; at least one, so that nothing is judged by its absence."""
        if not self.facets:
            yield ToolUse(tool=self.tool)
        for facet in self.facets:
            yield facet
            if isinstance(facet, Command | Opaque):
                yield from facet.paths


def written_paths(action: Action) -> tuple[str, ...]:
    """Return the paths that a call writes or may write, as far as its parts tell, operands of commands included.

    Leaves out those in its private temporary folder.
    """
    paths = (facet for facet in action.all_facets() if isinstance(facet, PathAccess))
    paths = (path for path in paths if path.place is not Place.TEMPORARY)
    return tuple(path.real for path in paths if path.access is not Access.READ)


class Enforcement(Enum):
    """Whether the kernel holds a command to its effects."""

    POSSIBLE = "where possible"
    """Confined as far as this machine can; the level is shown and logged."""
    REQUIRED = "required"
    """A command that cannot be confined does not run."""
    OFF = "off"
    """A person allowed this very command to run without."""


class Effects(Record):
    """The permitted effects of a run. The kernel confines a command to `named_paths`, `granted`, `network` and `hide`."""

    read: tuple[str, ...] | None
    """Paths that its parts read, resolved; None where that is not known. Not enforced."""
    write: tuple[str, ...] | None
    """Paths that its parts write, resolved; None where that is not known wholly."""
    named_paths: tuple[str, ...] = ()
    """Resolved paths that its parts surely write, and which it may write in any case."""
    entries: tuple[str, ...] = ()
    """Paths of `named_paths` that it may move, remove or replace: their folders are opened."""
    granted: tuple[str, ...] = ()
    """Further writable folders and files, with everything below, in a policy's form: `.` and relative ones are of the
    workspace, `~/` is the home folder.
    """
    network: bool
    """Whether it may reach the network."""
    named_hosts: tuple[str, ...] = ()
    """For a tool that connects to a host: the rules' patterns of hosts, and non-public addresses."""
    hosts: tuple[str, ...] = ()
    """Hosts that it may reach through the harness's proxy even without the network, in a policy's form."""
    hide: tuple[str, ...] = ()
    """Folders and files that it cannot read, named like `granted`."""
    left_out: tuple[str, ...] = ()
    """Files of the workspace that a rule denies to read and that it would meet, by their names there. Hidden too: without
    walls it does not run."""
    keep: tuple[str, ...] = ()
    """Absolute paths that no call may write, whatever is granted: policies, trust, logs."""
    hold: tuple[str, ...] = ()
    """Absolute paths in what is granted that stay as they are: what rules forbid a granted program to write."""
    enforcement: Enforcement = Enforcement.POSSIBLE
    sockets: bool = True
    """Whether it may connect to Unix sockets of other programs, where it may write at all."""
    needed_socket: bool = False
    """Whether it may do so where it writes nothing: it needs a Unix socket, which the question named."""
    unasked: bool
    """Whether it ran without a question: then programs of a repository's configuration are kept from running."""

    @property
    def reaches(self) -> bool:
        """Whether there is any way to the network."""
        return self.network or bool(self.hosts)


def _as_it_is(text: str) -> str:
    return text


def describe_facet(facet: Facet, mask: Callable[[str], str] = _as_it_is) -> str:
    """Return a facet in a few words, for refusals, the log and explanations; `mask` masks secrets before it is cut."""
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
