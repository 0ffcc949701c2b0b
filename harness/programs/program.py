"""Program: what a well-known program reads, writes, runs and reaches, option by option; and Use: what one command does.

A model vouches: what it does not name (an option, a further operand, an abbreviation) is not covered, and asked about.
Nothing here parses a command line (options.py does) or knows a program (their own files do).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Self, TypeAlias

from harness.actions import Access, Act
from harness.programs.git_pathspecs import ShownFiles
from harness.record import Record, replace


class OperandRole(Enum):
    """What an operand, or the value of an option, is to a program. The words that option tables are written in."""

    TEXT = "TEXT"
    """Data: never a path, never code. A pattern, a number, a format, a name."""
    READ = "READ"
    """A file that is read, or a folder whose names are listed."""
    TREE = "TREE"
    """A folder that is read with everything below it."""
    WRITE = "WRITE"
    """A file that is made, replaced or removed."""
    WRITE_TREE = "WRITE_TREE"
    """The same, with everything below it."""
    EITHER = "EITHER"
    """A file that is read and written, moved or replaced, or of which that is not known."""
    EITHER_TREE = "EITHER_TREE"
    FOLDER = "FOLDER"
    """A folder that other paths of the command are relative to, wherever they stand: `git -C`, `make -C`."""
    HOST = "HOST"
    """A host or an address: the network is reached."""
    SCRIPT = "SCRIPT"
    """A file whose code is run: read, and the act is RUNS."""
    CODE = "CODE"
    """Code, the name of a program, or a file that says what to run: never covered."""
    SHELL = "SHELL"
    """Text that a shell runs on this machine: read as a command line of its own."""
    COMMAND = "COMMAND"
    """With all that follows, the words of a command that is run; the command is judged by itself."""
    REMOTE = "REMOTE"
    """With all that follows, the words of a command that another machine or a container runs: asked about as a whole."""
    VARIABLE = "VARIABLE"
    """NAME=VALUE, set for the command that is run."""


class Style(Enum):
    """How a program reads its words."""

    GNU = "gnu"
    """Clusters of letters, `--long`, `--long=value`; options may stand behind operands (getopt_long(3))."""
    POSIX = "posix"
    """The same, but the first operand ends the options (POSIX.1-2024, XBD 12.2)."""
    SINGLE = "single"
    """Long options with one dash or two, no clusters: go, java, terraform. Options may stand behind operands."""
    TEXT = "text"
    """No options at all that matter: every word is text, as for echo."""


class Unknown(str):
    """A word whose value is not known, shown as it is written (`$X`); `str` so that it can be shown and compared.

    `prefix` is what is known of its beginning, `single` whether it is one word for sure (it was quoted), `integer` whether
    it is an integer.
    """

    __slots__ = ("integer", "prefix", "single")
    prefix: str
    single: bool
    integer: bool

    def __new__(cls, written: str, *, prefix: str = "", single: bool = True, integer: bool = False) -> Self:
        """Return the word as it is written, with what is known of it."""
        word = super().__new__(cls, written)
        word.prefix = prefix
        word.single = single
        word.integer = integer
        return word


class Incoming(Unknown):
    """A word, or any number of them, that xargs puts there for what it reads."""

    __slots__ = ()


class Listed(Incoming):
    """Any number of words, the names of files: what a shell makes of `$(git ls-files)` where it is not quoted."""

    __slots__ = ("names",)
    names: FileNames


class FileNames(Record):
    """Files that a program found: what their names are known to be."""

    starts: tuple[str, ...]
    """The files themselves, and the folders below which they lie."""
    only: tuple[str, ...] = ()
    """FileNames, with `*`, one of which each of the files has; none where any file may be meant."""
    skips: tuple[str, ...] = ()
    """FileNames of folders in which none of them lies; with `./` in front, of folders that lie in a start."""
    excluded: tuple[str, ...] = ()
    """Names, with `*`, that none of the files has; with `./` in front, none that lies in a start."""
    hidden: bool = True
    """Whether hidden files may be among them."""
    bare: bool = False
    """Whether they are named without the start, which is `.`, in front: `a.py`."""
    folders: bool = True
    """Whether folders may be among them."""
    listed: bool = False
    """Whether of a start that is a folder the names in it would be told, without that folder."""
    tracked: ShownFiles | None = None
    """Which of the files that git tracks they are, if they are such: what else lies below the start is none of them."""
    nul: bool = False
    """Whether each ends with a NUL, and not with the line."""


class Found(str):
    """A word that stands for files that another program found: the `{}` of `find -exec`, what xargs is given.

    INVARIANT: it begins with one of its starts, or with `./`, or is bare and begins with a letter, a digit, `_` or `.`; hence
    it is never taken for an option.
    """

    __slots__ = ("names",)
    names: FileNames

    def __new__(cls, written: str, *, starts: Sequence[str] = (), names: FileNames | None = None) -> Self:
        """Return the word as it is written, with what is known of the files; where that is no more, with their starts."""
        word = super().__new__(cls, written)
        word.names = names or FileNames(starts=tuple(starts))
        return word

    @property
    def starts(self) -> tuple[str, ...]:
        """The trees that the files lie in."""
        return self.names.starts


TEMPORARY_FOLDER = "/\0"
"""The private folder of `$TMPDIR`, as the paths of a `Use` begin with it. INVARIANT: no word of a command holds a NUL."""


class Temporary(str):
    """A path below TEMPORARY_FOLDER that a variable names, shown as it is written (`$f`).

    `certain` is false where mktemp may have failed: then the variable may be empty.
    """

    __slots__ = ("certain", "written")
    certain: bool
    written: str

    def __new__(cls, path: str, *, certain: bool, written: str) -> Self:
        """Return the path with the word that names it."""
        word = super().__new__(cls, path)
        word.certain = certain
        word.written = written
        return word


class PathUse(Record):
    """A path that a command uses, as it stands in the command (behind the folder of a `-C`)."""

    word: str
    access: Access
    tree: bool = False
    entry: bool = False
    """Of what is written: whether the name itself is moved, removed or replaced, not only what the file holds. So it may
    be with all that is EITHER."""
    at_top: bool = False
    """Whether it may begin at the top of the git repository instead of the folder at hand: `HEAD:src/a.py`."""
    follows: bool = False
    """Of a tree: whether links that lie below are followed."""
    only: tuple[str, ...] = ()
    """Of a tree: only files whose name matches one of these (`*.py`), if there are any."""
    skips: tuple[str, ...] = ()
    """Of a tree: no folders whose name matches one of these (`.git`)."""
    excluded: tuple[str, ...] = ()
    """Of a tree: no files whose name matches one of these (`.env`)."""
    ignore_files: tuple[str, ...] = ()
    """Of the context of a container build: the files that leave files out of it, its `.dockerignore` first."""
    compared: bool = False
    """Of an operand of `git diff`: a tree where all of this kind exist, and with nothing skipped where all are folders."""
    upwards: bool = False
    """Whether files of that name in the folders above, up to the workspace, are read too."""
    exclusion: bool = False
    """Whether it leaves paths out (`:!x`), unless it is the name of a file where git takes no pathspec."""
    tracked: ShownFiles | None = None
    """Of the folder that git runs in: what it shows of the files that it tracks. They stand for all that lies below."""
    handed: FileNames | None = None
    """Of the files that another program found and hands over: what is known of their names. None for all others.

    INVARIANT: what a command's options leave out of a tree does not hold for these: they are named to it one by one.
    """
    hidden: bool = True
    """Of a tree: whether hidden files are read; rg leaves them out, unless an ignore file brings them back with `!`."""


def joined(folder: str, word: str) -> str:
    """Return `word` as it is written, seen from `folder`; nothing stands for the current one."""
    return word if not folder or word.startswith("/") else f"{folder}/{word}" if word else folder


def handed_over(word: Found, access: Access, *, tree: bool = False, folder: str = "") -> list[PathUse]:
    """Return what a word stands for that another program finds; `tree`: what lies below a folder of that name too."""
    kind = access if access is Access.READ else Access.EITHER
    # A folder of that name holds files of any name.
    names = (
        replace(word.names, only=(), skips=(), excluded=(), hidden=True) if tree and word.names.folders else word.names
    )
    return [
        PathUse(word=joined(folder, start), access=kind, tree=True, follows=True, only=names.only, handed=names)
        for start in word.starts
    ]


class Inner(Record):
    """A command that a command runs."""

    argv: tuple[str, ...]
    variables: tuple[str, ...] = ()
    folder: str = ""
    """The folder it is run in, if that is another."""
    elsewhere: bool = False
    """Whether it is run in folders that are not known; its paths are told as seen from here."""
    takes: str = ""
    """Of the command of xargs: what the words that it reads end with: a NUL, a line end, or ` ` for blanks and line ends.

    `*` where a shell makes the words: like the last, and patterns are matched.
    """
    empty: bool = False
    """Of the command of xargs: whether it is run without such words where nothing is read."""
    together: bool = False
    """Of the command of xargs: whether several run at once, so that what they print may be mixed."""


class Use(Record):
    """What one command does, as far as its model says."""

    act: Act
    paths: tuple[PathUse, ...] = ()
    commands: tuple[Inner, ...] = ()
    scripts: tuple[str, ...] = ()
    """Texts that a shell runs on this machine."""
    remote: str = ""
    """A command that another machine or a container runs."""
    network: bool = False
    gap: str = ""
    """Why the command is not wholly understood, in a few words for a person; empty where it is."""
    imports: bool = False
    """Whether it is Python that looks for the modules of its library in the folder that it runs in first."""
    login: bool = False
    """Whether it is a shell that reads the start-up files of the home folder first."""
    obeys: tuple[str, ...] = ()
    """Files by which a project makes it run other code, where one lies in the folder that it runs in or above: `.mvn`."""
    needs: str = ""
    """The socket without which it fails, as a person is told of it; one of the network if `network` is set, else a Unix socket.
    Empty for a command that needs none."""
    git_folder: str | None = None
    """For commands that obey a repository's configuration: the folder from which git looks for it (`.` or that of -C)."""


def reads(use: Use, path: str) -> Use:
    """Return `use` with a file or folder that the program reads although no word of the command names it."""
    return replace(use, paths=(*use.paths, PathUse(word=path, access=Access.READ)))


class Given(Record):
    """An option that occurs in a command, by the first spelling of its table entry, and its value."""

    name: str
    value: str | None


class Parsed(Record):
    """The words of a command after its program, sorted by the model."""

    program: str
    options: tuple[Given, ...]
    operands: tuple[str, ...]
    before: int | None = None
    """How many operands stand in front of a `--`; None where there is none."""

    def has(self, *names: str) -> bool:
        """Say whether one of these options occurs, each named by the first spelling of its entry."""
        return any(given.name in names for given in self.options)

    def values(self, *names: str) -> tuple[str, ...]:
        """Return the values of these options, in the order of the command."""
        return tuple(given.value for given in self.options if given.name in names and given.value is not None)


class LooseWords(Record):
    """The words of a command behind its program, read for the worst that they may say (losses.py)."""

    words: tuple[str, ...]
    options: tuple[str, ...]
    """By the first spelling of its table entry; as it is written where the table does not name it."""
    operands: tuple[str, ...]
    behind: tuple[str, ...] = ()
    """Those of the operands that stand behind `--`."""

    def has(self, *names: str) -> bool:
        """Return whether one of these options occurs, or an abbreviation that may stand for one."""
        return any(
            option in names or (option.startswith("--") and any(name.startswith(option) for name in names))
            for option in self.options
        )


Refine: TypeAlias = Callable[[Parsed, Use], Use]
Read: TypeAlias = Callable[[Sequence[str]], Use]
Loses: TypeAlias = Callable[[LooseWords], Iterable[str]]


READER = "files only-reads few-variables"
READER_OF_INPUT = f"{READER} input-without-files"
"""The facts of cat and its like: what stands there is read, and nothing else happens."""


class Program(Record):
    """The model of one program, or of one subcommand.

    `options` is a table of entries with blanks between them, each `-x|--long`, with a value `-x|--long=ROLE` (joined or the
    next word), with a value that may only be joined `--color[=ROLE]`, and with marks behind a colon, `-i[=TEXT]:inplace`.
    `-NUM` stands for a dash and digits. The marks:

    - `looks`, `writes`, `changes`, `runs`: with this option the command does at least that.
    - `tree`: operands that are READ are read with everything below; `inplace`: they are written too.
    - `network`: the network is reached. `gap`: known, and not vouched for.
    - `instead`: takes the place of the first operand (the pattern of grep, the script of sed).
    - `info`: as the only word, the command prints something about itself (`--version`); elsewhere a gap.

    An option that is not in the table makes the command not covered, and so does an abbreviation.
    """

    act: Act = Act.LOOKS
    style: Style = Style.GNU
    options: str = ""
    operands: str = "READ..."
    """Roles by position, `...` for any number, `(ROLE)` for one that an `instead` option takes the place of; further
    roles after `...` are the last operands: `READ... WRITE`. `COMMAND...` is a command and its words. Empty: no operand
    is taken."""
    network: bool = False
    obeys: str = ""
    """As `Use.obeys`, with blanks between."""
    needs: str = ""
    """As `Use.needs`, but for `info` options."""
    subcommands: Mapping[str, Program] = {}
    """By the first operand; several words (`remote show`) for a subcommand of a subcommand. `options` then are those
    before the subcommand. The key "" is the command without a subcommand; without it that is not covered."""
    git: bool = False
    """Whether it obeys the configuration of a git repository."""
    refine: Refine | None = None
    """Called with what the tables said; returns that, or something stricter, or with more paths."""
    read: Read | None = None
    """Takes the place of the tables: called with the whole argv."""
    loses: Loses | None = None
    """Names, a sentence each, what a command deletes or overwrites for good. Also asked of words that have a gap."""
    facts: str = ""
    """What else is known of the program, in words:

    - `files`: it takes each operand for the name of a file, whatever it is called, and reads what lies in a folder only where
      its model says so (TREE).
    - `only-reads`: no option writes a file that is named in it, however loosely the words were split.
    - `few-variables`: it obeys few variables of the environment, all of them known (variables.py).
    - `no-input`: it does not read its input. `input-without-files`: only where no operand names a file, or one is `-`.
    """


def gap(reason: str) -> Use:
    """Return the use of a command that no model covers, and why."""
    return Use(act=Act.UNKNOWN, gap=reason)
