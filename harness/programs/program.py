"""Program: the files and hosts a well-known program reads, writes, runs and reaches, by option; and Use: those of one
command.

A model vouches: words that it does not name (an option, a further operand, an abbreviation) are not covered, and
harness asks the user. This module neither parses a command line (options.py does) nor knows a program (their own
files do).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Self, TypeAlias

from harness.actions import Access, Act
from harness.programs.git_pathspecs import ShownFiles
from harness.record import Record, replace


class OperandRole(Enum):
    """The meaning of an operand, or of an option's value, to a program. Option tables are written in these words."""

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
    """A folder that other paths of the command are relative to, at any place in it: `git -C`, `make -C`."""
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
    """The rules by which a program parses its words."""

    GNU = "gnu"
    """Clusters of letters, `--long`, `--long=value`; options may follow operands (getopt_long(3))."""
    POSIX = "posix"
    """The same, but the first operand ends the options (POSIX.1-2024, XBD 12.2)."""
    SINGLE = "single"
    """Long options with one dash or two, no clusters: go, java, terraform. Options may follow operands."""
    TEXT = "text"
    """No options at all that matter: every word is text, as for echo."""


class Unknown(str):
    """A word of unknown value, shown as it is written (`$X`); `str` so that it can be shown and compared.

    `prefix` is the known beginning, `single` whether it is certainly one word (it was quoted), `integer` whether it
    is an integer.
    """

    __slots__ = ("integer", "prefix", "single")
    prefix: str
    single: bool
    integer: bool

    def __new__(cls, written: str, *, prefix: str = "", single: bool = True, integer: bool = False) -> Self:
        """Return the word as it is written, with the known facts about it."""
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
    """Patterns, with `*`: each of the files has a name that matches one of them. Empty if any file may be included."""
    skips: tuple[str, ...] = ()
    """Names of folders that contain none of the files; with `./` in front, of folders directly in a start."""
    excluded: tuple[str, ...] = ()
    """Names, with `*`, that none of the files has; with `./` in front, none directly in a start."""
    hidden: bool = True
    """Whether hidden files may be among them."""
    bare: bool = False
    """Whether they are named without the start, which is `.`, in front: `a.py`."""
    folders: bool = True
    """Whether folders may be among them."""
    lists_names: bool = False
    """Whether a start that is a folder would be replaced by the names in it, without that folder."""
    tracked: ShownFiles | None = None
    """The files tracked by git that they are. `None` for other files. Untracked files below the start are not among
    them.
    """
    nul: bool = False
    """Whether each ends with a NUL, and not with the line."""


class Found(str):
    """A word that represents files that another program found: the `{}` of `find -exec`, the input of xargs.

    INVARIANT: it begins with one of its starts, or with `./`, or is bare and begins with a letter, a digit, `_` or
    `.`; hence it is never taken for an option.
    """

    __slots__ = ("names",)
    names: FileNames

    def __new__(cls, written: str, *, starts: Sequence[str] = (), names: FileNames | None = None) -> Self:
        """Return the word as it is written, with the facts about the files; without `names`, with their starts only."""
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
    """A path that a command uses, as it is written in the command (after the folder of a `-C`)."""

    word: str
    access: Access
    tree: bool = False
    entry: bool = False
    """For written paths: whether the name itself is moved, removed or replaced, not only the contents of the file.
    With EITHER, this is always possible.
    """
    at_top: bool = False
    """Whether it may begin at the top of the git repository instead of the folder at hand: `HEAD:src/a.py`."""
    follows: bool = False
    """For a tree: whether links below it are followed."""
    only: tuple[str, ...] = ()
    """For a tree: only files whose name matches one of these (`*.py`). Empty if all files count."""
    skips: tuple[str, ...] = ()
    """For a tree: no folders whose name matches one of these (`.git`)."""
    excluded: tuple[str, ...] = ()
    """For a tree: no files whose name matches one of these (`.env`)."""
    ignore_files: tuple[str, ...] = ()
    """For the context of a container build: the files that leave files out of it, its `.dockerignore` first."""
    compared: bool = False
    """For an operand of `git diff`: a tree if all of this kind exist, and with no folder skipped if all are folders."""
    upwards: bool = False
    """Whether files of that name in the folders above, up to the workspace, are read too."""
    exclusion: bool = False
    """Whether it leaves paths out (`:!x`), unless it is the name of a file where git takes no pathspec."""
    tracked: ShownFiles | None = None
    """For the folder of git: those tracked files that git shows. They represent all files below it."""
    handed: FileNames | None = None
    """For files that another program found and passes on: the facts about their names. `None` for all others.

    INVARIANT: a command's options that exclude files of a tree do not apply to these: they are named to it one by
    one.
    """
    hidden: bool = True
    """For a tree: whether hidden files are read; rg leaves them out, unless an ignore file brings them back with `!`.
    """


def joined(folder: str, word: str) -> str:
    """Return `word` as it is written, relative to `folder`; an empty folder is the current one."""
    return word if not folder or word.startswith("/") else f"{folder}/{word}" if word else folder


def handed_over(word: Found, access: Access, *, tree: bool = False, folder: str = "") -> list[PathUse]:
    """Return the paths of a word that represents found files; with `tree`, also the files below a folder of that
    name.
    """
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
    """For the command of xargs: the end of each word that it reads: a NUL, a line end, or ` ` for blanks and line
    ends.

    `*` if a shell makes the words: like the last, and patterns are matched.
    """
    empty: bool = False
    """For the command of xargs: whether it runs without such words if the input is empty."""
    together: bool = False
    """For the command of xargs: whether several run at once, so that their output may be mixed."""


class Use(Record):
    """The effects of one command, as far as its model describes them."""

    act: Act
    paths: tuple[PathUse, ...] = ()
    commands: tuple[Inner, ...] = ()
    scripts: tuple[str, ...] = ()
    """Texts that a shell runs on this machine."""
    remote: str = ""
    """A command that another machine or a container runs."""
    network: bool = False
    gap: str = ""
    """The reason why the command is not wholly understood, in a few words for the user; empty if it is understood."""
    imports: bool = False
    """Whether it is Python that looks for the modules of its library in the folder that it runs in first."""
    login: bool = False
    """Whether it is a shell that reads the start-up files of the home folder first."""
    obeys: tuple[str, ...] = ()
    """Files by which a project makes it run other code, if one is in the folder that it runs in or above: `.mvn`."""
    needs: str = ""
    """The socket without which it fails, in words for the user; one of the network if `network` is set, otherwise a
    Unix socket. Empty for a command that needs none.
    """
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
    """Number of operands before a `--`. `None` without a `--`."""

    def has(self, *names: str) -> bool:
        """Say whether one of these options occurs, each named by the first spelling of its entry."""
        return any(option.name in names for option in self.options)

    def values(self, *names: str) -> tuple[str, ...]:
        """Return the values of these options, in the order of the command."""
        return tuple(option.value for option in self.options if option.name in names and option.value is not None)


class LooseWords(Record):
    """The words of a command behind its program, read for the worst that they may say (losses.py)."""

    words: tuple[str, ...]
    options: tuple[str, ...]
    """Options, each by the first spelling of its table entry, or as it is written if the table does not name it."""
    operands: tuple[str, ...]
    last_words: tuple[str, ...] = ()
    """Operands after `--`."""

    def has(self, *names: str) -> bool:
        """Return whether one of these options occurs, or an abbreviation that may mean one."""
        return any(
            option in names or (option.startswith("--") and any(name.startswith(option) for name in names))
            for option in self.options
        )


Refine: TypeAlias = Callable[[Parsed, Use], Use]
Read: TypeAlias = Callable[[Sequence[str]], Use]
Loses: TypeAlias = Callable[[LooseWords], Iterable[str]]


READER = "files only-reads few-variables"
READER_OF_INPUT = f"{READER} input-without-files"
"""The facts about cat and similar programs: they read their operands or input, and have no other effect."""


class Program(Record):
    """The model of one program, or of one subcommand.

    `options` is a table of entries with blanks between them, each `-x|--long`, with a value `-x|--long=ROLE` (joined
    or the next word), with a value that may only be joined `--color[=ROLE]`, and with marks after a colon,
    `-i[=TEXT]:inplace`. `-NUM` means a dash and digits. The marks:

    - `looks`, `writes`, `changes`, `runs`: with this option the command does at least that.
    - `tree`: operands that are READ are read with everything below; `inplace`: they are written too.
    - `network`: the network is reached. `gap`: in the table, and not vouched for.
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
    """Same as `Use.obeys`, with blanks between."""
    needs: str = ""
    """Same as `Use.needs`, but not for `info` options."""
    subcommands: Mapping[str, Program] = {}
    """Models by the first operand; several words (`remote show`) for a subcommand of a subcommand. `options` then are
    those before the subcommand. The key "" is the command without a subcommand; without that key it is not covered.
    """
    git: bool = False
    """Whether it obeys the configuration of a git repository."""
    refine: Refine | None = None
    """Called with what the tables said; returns that, or something stricter, or with more paths."""
    read: Read | None = None
    """Takes the place of the tables: called with the whole argv."""
    loses: Loses | None = None
    """Names, a sentence each, what a command deletes or overwrites for good. Also asked of words that have a gap."""
    facts: str = ""
    """Other facts about the program, in words:

    - `files`: it takes each operand for the name of a file, with any name, and reads files in a folder only if its model
      says so (TREE).
    - `only-reads`: no option writes a file that is named in it, however loosely the words were split.
    - `few-variables`: it obeys few variables of the environment, all of them in a list (variables.py).
    - `no-input`: it does not read its input. `input-without-files`: only if no operand names a file, or one is `-`.
    """


def gap(reason: str) -> Use:
    """Return the use of a command that no model covers, and why."""
    return Use(act=Act.UNKNOWN, gap=reason)
