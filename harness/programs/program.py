"""Types of the models: `Program`, the effects of a well-known program by option, and `Use`, those of one command.

Effects are the files and hosts that it reads, writes, runs and reaches. A model vouches only for words that it names.
For another option, an extra operand or an abbreviation, harness asks the user. This module neither parses commands
(options.py does) nor contains models of programs (their own files do).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Self, TypeAlias

from harness.actions import Access, Act
from harness.programs.git_pathspecs import ShownFiles
from harness.record import Record, replace


class OperandRole(Enum):
    """The meaning of an operand or of an option's value. Option tables use these names."""

    TEXT = "TEXT"
    """Data: never a path, never code. A pattern, a number, a format, a name."""
    READ = "READ"
    """A file that is read, or a folder whose names are listed."""
    TREE = "TREE"
    """A folder that is read with everything below it."""
    WRITE = "WRITE"
    """A file that is created, replaced or removed."""
    WRITE_TREE = "WRITE_TREE"
    """A file or folder that is created, replaced or removed, with everything below it."""
    EITHER = "EITHER"
    """A file that is read and written, moved or replaced, or whose access is unknown."""
    EITHER_TREE = "EITHER_TREE"
    FOLDER = "FOLDER"
    """A folder that all other paths of the command are relative to, also earlier ones: `git -C`, `make -C`."""
    HOST = "HOST"
    """A host or an address. The command uses the network."""
    SCRIPT = "SCRIPT"
    """A file whose code the program runs. Its access is read, and the act is RUNS."""
    CODE = "CODE"
    """Code, the name of a program, or a file that names code to run. Never covered."""
    SHELL = "SHELL"
    """Text that a shell runs on this machine. It is parsed as a separate command line."""
    COMMAND = "COMMAND"
    """The first word of a command that the program runs. All later words belong to it. It is judged separately."""
    REMOTE = "REMOTE"
    """The first word of a command that another machine or a container runs. All later words belong to it.

    Harness asks the user about it as a whole.
    """
    VARIABLE = "VARIABLE"
    """`NAME=VALUE`, an environment variable set for the inner command."""


class Style(Enum):
    """The rules by which a program parses its words."""

    GNU = "gnu"
    """Clusters of letters, `--long`, `--long=value`; options may follow operands (getopt_long(3))."""
    POSIX = "posix"
    """Like GNU, but the first operand ends the options (POSIX.1-2024, XBD 12.2)."""
    SINGLE = "single"
    """Long options with one dash or two, no clusters: go, java, terraform. Options may follow operands."""
    TEXT = "text"
    """No relevant options: every word is text, as for echo."""


class Unknown(str):
    """A word of unknown value. As a `str`, it is the word as written (`$X`), for display and comparison.

    `prefix` is its known beginning. `single` is true if it is certainly one word (it was quoted), `integer` if it is an
    integer.
    """

    __slots__ = ("integer", "prefix", "single")
    prefix: str
    single: bool
    integer: bool

    def __new__(cls, written: str, *, prefix: str = "", single: bool = True, integer: bool = False) -> Self:
        """Return the word as written, with the known facts about it."""
        word = super().__new__(cls, written)
        word.prefix = prefix
        word.single = single
        word.integer = integer
        return word


class Incoming(Unknown):
    """One or any number of words that xargs inserts from its input."""

    __slots__ = ()


class Listed(Incoming):
    """Any number of words that are names of files, such as the unquoted expansion of `$(git ls-files)`."""

    __slots__ = ("names",)
    names: FileNames


class FileNames(Record):
    """Known facts about the names of files that a program found."""

    starts: tuple[str, ...]
    """The files themselves, or folders that contain them at any depth."""
    only: tuple[str, ...] = ()
    """Patterns with `*`. The name of each file matches one of them. Empty if files may have any name."""
    skips: tuple[str, ...] = ()
    """Names of folders that contain none of the files. With the prefix `./`, only folders directly in a start."""
    excluded: tuple[str, ...] = ()
    """Patterns with `*` that no file's name matches. With the prefix `./`, only for files directly in a start."""
    hidden: bool = True
    """Whether hidden files may be included."""
    bare: bool = False
    """Whether the names lack the prefix of the start, which is `.`: `a.py` instead of `./a.py`."""
    folders: bool = True
    """Whether folders may be included."""
    lists_names: bool = False
    """Whether the listing shows the names in a start that is a folder, without the folder as a prefix."""
    tracked: ShownFiles | None = None
    """The selection of tracked files, if the files are from git. `None` for other files. Excludes untracked files."""
    nul: bool = False
    """Whether each name ends with a NUL instead of a newline."""


class Found(str):
    """A word that represents files that another program found: the `{}` of `find -exec`, the input of xargs.

    INVARIANT: the name of each file begins with one of the starts or with `./`, or is bare and begins with a letter, a
    digit, `_` or `.`. So no program reads it as an option.
    """

    __slots__ = ("names",)
    names: FileNames

    def __new__(cls, written: str, *, starts: Sequence[str] = (), names: FileNames | None = None) -> Self:
        """Return the word as written, with the facts `names` about the files. Without `names`, with `starts` only."""
        word = super().__new__(cls, written)
        word.names = names or FileNames(starts=tuple(starts))
        return word

    @property
    def starts(self) -> tuple[str, ...]:
        """The files themselves, or folders that contain them."""
        return self.names.starts


TEMPORARY_FOLDER = "/\0"
"""Prefix of paths in the private folder `$TMPDIR`, in a `Use`. INVARIANT: no word of a command contains a NUL."""


class Temporary(str):
    """A path below TEMPORARY_FOLDER that a variable names. `written` is the word for display (`$f`).

    `certain` is false if mktemp may have failed. The variable may then be empty.
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
    """For written paths: whether the directory entry is moved, removed or replaced, not only the file's content.

    With EITHER, this is always possible.
    """
    at_top: bool = False
    """Whether the path may be relative to the top of the git repository, not the working directory: `HEAD:src/a.py`."""
    follows: bool = False
    """For a tree: whether links below it are followed."""
    only: tuple[str, ...] = ()
    """For a tree: patterns of the names of the files (`*.py`). Empty if all files count."""
    skips: tuple[str, ...] = ()
    """For a tree: patterns of the names of folders that are not entered (`.git`)."""
    excluded: tuple[str, ...] = ()
    """For a tree: patterns of the names of files that are not included (`.env`)."""
    ignore_files: tuple[str, ...] = ()
    """For the context of a container build: the ignore files that exclude files from it, its `.dockerignore` first."""
    compared: bool = False
    """Whether this is an operand that `git diff` may compare outside of git.

    It is a tree if all such operands exist. If all of them are folders, no folder is skipped.
    """
    upwards: bool = False
    """Whether files of the same name in the parent folders, up to the workspace, are also read."""
    exclusion: bool = False
    """Whether the word excludes paths (`:!x`). Where git expects no pathspec, it may be the name of a file."""
    tracked: ShownFiles | None = None
    """For the folder in which git runs: the selection of files that git shows, instead of all files below it."""
    handed: FileNames | None = None
    """For files that another program found and passes on: the facts about their names. `None` for other paths.

    INVARIANT: options that exclude files of a tree do not apply to these files, because the command gets each of them
    by name.
    """
    hidden: bool = True
    """For a tree: whether hidden files are read. rg skips them, unless an ignore file re-includes them with `!`."""


def joined(folder: str, word: str) -> str:
    """Return `word` with `folder` as a prefix, unless it is absolute. An empty folder means the current one."""
    return word if not folder or word.startswith("/") else f"{folder}/{word}" if word else folder


def handed_over(word: Found, access: Access, *, tree: bool = False, folder: str = "") -> list[PathUse]:
    """Return the paths of a word that represents found files. With `tree`, include the files below found folders."""
    kind = access if access is Access.READ else Access.EITHER
    # A found folder may contain files of any name.
    names = (
        replace(word.names, only=(), skips=(), excluded=(), hidden=True) if tree and word.names.folders else word.names
    )
    return [
        PathUse(word=joined(folder, start), access=kind, tree=True, follows=True, only=names.only, handed=names)
        for start in word.starts
    ]


class Inner(Record):
    """A command that another command runs."""

    argv: tuple[str, ...]
    variables: tuple[str, ...] = ()
    folder: str = ""
    """The folder in which it runs. Empty if it is that of the outer command."""
    elsewhere: bool = False
    """Whether it runs in unknown folders. Its paths are relative to the working directory of the outer command."""
    takes: str = ""
    """For the command of xargs: the separator of the words on its input: a NUL, a newline, or ` ` for blanks and
    newlines.

    `*` if a shell splits the words: as with ` `, and it also expands patterns.
    """
    empty: bool = False
    """For the command of xargs: whether it also runs if the input is empty."""
    together: bool = False
    """For the command of xargs: whether several run in parallel, so that their output may be mixed."""


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
    """The reason why the command is not fully understood, in a few words for the user. Empty if it is."""
    imports: bool = False
    """Whether the command is a Python that searches its working directory for modules before its library."""
    login: bool = False
    """Whether the command is a shell that first reads the start-up files in the home folder."""
    obeys: tuple[str, ...] = ()
    """Names of files that make the command run code of the project, such as `.mvn`. They count in its working directory
    and in all parent folders.
    """
    needs: str = ""
    """The socket that the command needs, in words for the user. Empty if it needs none.

    It is a network socket if `network` is set, otherwise a Unix socket.
    """
    git_folder: str | None = None
    """For commands that obey a repository's configuration: the folder where git starts to search for the repository
    (`.` or that of -C).
    """


def reads(use: Use, path: str) -> Use:
    """Return `use` with an additional path that the program reads although no word of the command names it."""
    return replace(use, paths=(*use.paths, PathUse(word=path, access=Access.READ)))


class Given(Record):
    """An option that occurs in a command, with its value. `name` is the first spelling in the table."""

    name: str
    value: str | None


class Parsed(Record):
    """The words of a command after its program, parsed into options and operands."""

    program: str
    options: tuple[Given, ...]
    operands: tuple[str, ...]
    before: int | None = None
    """Number of operands before a `--`. `None` without a `--`."""

    def has(self, *names: str) -> bool:
        """Return whether one of these options occurs. Each is named by the first spelling of its entry."""
        return any(option.name in names for option in self.options)

    def values(self, *names: str) -> tuple[str, ...]:
        """Return the values of these options, in the order of the command."""
        return tuple(option.value for option in self.options if option.name in names and option.value is not None)


class LooseWords(Record):
    """The words of a command after its program, read with their worst possible meaning (losses.py)."""

    words: tuple[str, ...]
    options: tuple[str, ...]
    """Options, each by the first spelling of its table entry, or as written if it is not in the table."""
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

    `options` is a table of entries, separated by blanks. An entry is `-x|--long` for an option without a value,
    `-x|--long=ROLE` for one with a value (joined or the next word), and `--color[=ROLE]` for one with an optional value
    that can only be joined. Marks follow after a colon: `-i[=TEXT]:inplace`. `-NUM` means a dash and digits. The marks:

    - `looks`, `writes`, `changes`, `runs`: with this option the command has at least this act.
    - `tree`: READ operands include everything below. `inplace`: READ operands are also written.
    - `network`: the command uses the network. `gap`: the option makes the command not covered.
    - `instead`: the option replaces the first operand (the pattern of grep, the script of sed).
    - `info`: as the only word, it makes the command print facts about itself (`--version`). With other words, a gap.

    An option that is not in the table makes the command not covered, and so does an abbreviation.
    """

    act: Act = Act.LOOKS
    style: Style = Style.GNU
    options: str = ""
    operands: str = "READ..."
    """Roles of the operands, in order. Empty if the program takes no operands.

    `ROLE...` is any number of operands; roles after it are those of the last operands: `READ... WRITE`. `(ROLE)` is an
    operand that an `instead` option replaces. `COMMAND...` is a command and its words.
    """
    network: bool = False
    obeys: str = ""
    """Names as in `Use.obeys`, separated by blanks."""
    needs: str = ""
    """Socket as in `Use.needs`. Does not apply to `info` options."""
    subcommands: Mapping[str, Program] = {}
    """Models of subcommands, by name. The name of a nested subcommand has several words (`remote show`).

    If there are any, `options` are those before the subcommand. The key "" is the command without a subcommand. If that
    key is missing, such a command is not covered.
    """
    git: bool = False
    """Whether the program obeys the configuration of a git repository."""
    refine: Refine | None = None
    """Function that adjusts the use from the tables.

    It returns the same use, a stricter one, or one with more paths.
    """
    read: Read | None = None
    """Function that replaces the tables. It gets the whole argv."""
    loses: Loses | None = None
    """Function that returns the losses of a command, one sentence each. Also called for commands with a gap."""
    facts: str = ""
    """Other facts about the program, separated by blanks:

    - `files`: it reads each operand as the name of a file, whatever the name. It reads the files in a folder only if
      its model has the role TREE.
    - `only-reads`: no option writes a file that the command names, even if its words were split loosely.
    - `few-variables`: it obeys few environment variables, all of which are in a list (variables.py).
    - `no-input`: it never reads its input. `input-without-files`: it does only if no operand is a file, or one is `-`.
    """


def gap(reason: str) -> Use:
    """Return the use of a command that no model covers, with the reason."""
    return Use(act=Act.UNKNOWN, gap=reason)
