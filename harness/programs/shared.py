"""Parts common to several models: paths from words, programs that run commands or code, options of build tools.

A refinement gets the use of a command from the tables, without a gap. It returns the same use or a stricter one, never
a laxer one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from harness.actions import Access, Act
from harness.programs.options import parse_words, read_command, stricter
from harness.programs.program import (
    Found,
    Parsed,
    PathUse,
    Program,
    Read,
    Refine,
    Style,
    Unknown,
    Use,
    gap,
    handed_over,
    joined,
)
from harness.record import replace

# --- For models that read whole commands: collected paths, and gaps


class NotCoveredError(Exception):
    """Raised with the reason why words are not covered, in a few words for the user. `or_gap` turns it into a gap."""


def or_gap(read: Read) -> Read:
    """Turn a NotCoveredError that `read` raises into a gap."""

    def safe(argv: Sequence[str]) -> Use:
        try:
            return read(argv)
        except NotCoveredError as problem:
            return gap(str(problem))

    return safe


class CommandPaths:
    """The paths of one command."""

    def __init__(self) -> None:
        self.paths: list[PathUse] = []

    def add(self, word: str, access: Access, *, tree: bool = False, entry: bool = False, folder: str = "") -> None:
        """Add the path `word`, relative to `folder`. Raises NotCoveredError for a word of unknown value."""
        if isinstance(word, Unknown):
            raise NotCoveredError(f"the path {word} is not known")
        if isinstance(word, Found):
            self.paths += handed_over(word, access, tree=tree, folder=folder)
        else:
            self.paths.append(PathUse(word=joined(folder, word), access=access, tree=tree, entry=entry))

    def add_with(self, suffixes: Sequence[str], word: str, access: Access) -> None:
        """Add `word`, and the names that the program tries or creates by appending a suffix to it."""
        self.add(word, access)
        for suffix in () if isinstance(word, Found) else suffixes:
            self.add(word + suffix, access)

    def use(self) -> Use:
        """Return the use with the added paths. Its act is WRITES if any of them is written, else LOOKS."""
        written = any(path.access is not Access.READ for path in self.paths)
        return Use(act=Act.WRITES if written else Act.LOOKS, paths=tuple(self.paths))


# --- Programs that run commands, and text for sh

_OTHERWISE = (
    # Sequences of the strict subset that dash, ash and other shells read differently from bash, or reject.
    r"\$'|\[\[|\(\(|[<>]\(|\|&|&>|<<<|>&[^0-9-]|[0-9]{2}[<>]|[}][<>]|\[\^|[<>][|&]?[ \t]*[^\s;&|()<>]*[*?\[]"
    r"|\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}"
    # Keywords that they lack, and builtins that run text as commands, in which the sequences above may occur.
    r"|\b(?:time|function|select|coproc|eval|alias|trap|pushd|popd)\b"
    # Older shells split the value in an export: `export A=$(echo b PATH=.)`.
    r"|\bexport\b[^;\n]*[$`]"
)
_NO_QUOTES = str.maketrans("", "", "'\"\\\n")


def read_alike(text: str) -> bool:
    """Return whether dash and similar shells read `text` as bash does, if bash accepts it.

    Sources: POSIX.1-2024, XCU 2; dash(1).

    Used for `sh`, which is dash, ash, ksh or bash, depending on the system, and for programs that pass text to `sh -c`.
    A sequence also counts if it appears only after quotes and line continuations are removed.
    """
    bare = text.translate(_NO_QUOTES)
    return text.isascii() and re.search(_OTHERWISE, text) is None and re.search(_OTHERWISE, bare) is None


def with_text_for_sh(parsed: Parsed, use: Use) -> Use:
    """Return a gap if the program passes no text to `sh -c`, or text that sh and bash may read differently."""
    if not use.scripts:
        return gap(f"{parsed.program} without a command")
    return use if all(read_alike(text) for text in use.scripts) else gap("text that sh may read otherwise than bash")


def with_command(parsed: Parsed, use: Use) -> Use:
    """Return a gap for a wrapper without a command. Many wrappers then start a shell."""
    return use if use.commands else gap(f"{parsed.program} without a command")


def wraps(
    options: str = "", operands: str = "COMMAND...", *, refine: Refine = with_command, act: Act = Act.WRAPS
) -> Program:
    """Return the model of a program whose options precede the command that it runs."""
    return Program(act=act, style=Style.POSIX, options=options, operands=operands, refine=refine)


# --- Scripts and their arguments


def argument_paths(words: Sequence[str]) -> tuple[PathUse, ...] | str:
    """Return the arguments of code that may be files, as paths that it may read or write; or the reason for a gap.

    The value of `name=value` or `--name=value` may also be a file. Other options are not files.
    """
    paths: list[PathUse] = []
    for word in words:
        if isinstance(word, Unknown):
            return f"the value of {word} is not known"
        if isinstance(word, Found):
            paths += [PathUse(word=start, access=Access.EITHER, tree=True) for start in word.starts]
            continue
        names = [] if word.startswith("-") else [word]
        if "=" in word:
            names.append(word.partition("=")[2])
        paths += [PathUse(word=name, access=Access.EITHER) for name in names if name]
    return tuple(paths)


def with_arguments(parsed: Parsed, use: Use) -> Use:
    """Refine `SCRIPT TEXT...`. Arguments of the script may be files. A gap without a script, as it runs the input."""
    if not parsed.operands or parsed.operands[0] == "-":
        return gap("it runs what its input says")
    paths = argument_paths(parsed.operands[1:])
    return gap(paths) if isinstance(paths, str) else replace(use, paths=(*use.paths, *paths))


# --- Options of build tools: spellings, and refinements

_NAME = r"[A-Za-z0-9_./%+,:@\[\]-]+"
_SWITCH = r"(?i:on|off|true|false|yes|no|[01]|enabled|disabled|auto)"


def either_dash(table: str) -> str:
    """Return an option table with one and two dashes for each bare name in `table` (go, shfmt, clang-format)."""
    return " ".join(f"-{names}|--{names}{rest}" for names, rest in map(_split_entry, table.split()))


def _split_entry(entry: str) -> tuple[str, str]:
    end = next((place for place, char in enumerate(entry) if char in "=[:"), len(entry))
    return entry[:end], entry[end:]


def runs(
    options: str = "",
    operands: str = "READ...",
    *,
    style: Style = Style.GNU,
    subcommands: Mapping[str, Program] = {},
    refine: Refine | None = None,
) -> Program:
    """Return the model of a program that runs code of the project with any words, and may reach the network."""
    return Program(
        act=Act.RUNS,
        network=True,
        style=style,
        options=options,
        operands=operands,
        subcommands=subcommands,
        refine=refine,
    )


def all_of(*refines: Refine) -> Refine:
    """Return a refinement that applies the given ones in order, and stops at the first gap."""

    def refine(parsed: Parsed, use: Use) -> Use:
        for each in refines:
            use = each(parsed, use)
            if use.gap:
                break
        return use

    return refine


def _may_begin_with(char: str, word: str) -> bool:
    if isinstance(word, Unknown):
        return word.prefix[:1] in ("", char)
    return word.startswith(char) or (isinstance(word, Found) and any(start.startswith(char) for start in word.starts))


def no_files_of_words(program: Program) -> Program:
    """Return the model of a program that reads further words, such as options, from the file in any word `@FILE`.

    In the returned model such a word is a gap. ruff, pytest, mypy, rustc and the tools of GCC and LLVM read such
    files, even if the word is the value of an option.
    """

    def read(argv: Sequence[str]) -> Use:
        for word in argv[1:]:
            if _may_begin_with("@", word):
                return gap(f"{word} may be a file of further words")
        return read_command(program, argv)

    return replace(program, read=read)


def options_first(program: Program) -> Program:
    """Return the model of a program whose options end at the first operand (Go's package flag).

    A later word that looks like an option is a gap. Read as an option, it would hide a file: `gofmt a.go -r .env` reads
    .env.
    """

    def read(argv: Sequence[str]) -> Use:
        parsed = parse_words(program, argv, stop=True)
        later_words = parsed.operands[1:] if isinstance(parsed, Parsed) else ()
        for word in later_words:
            if _may_begin_with("-", word):
                return gap(f"{word} stands behind an operand")
        return read_command(program, argv)

    return replace(program, read=read)


def names_only(parsed: Parsed, use: Use) -> Use:
    """Return a gap for an operand that is not a plain name.

    It may set a variable (`SHELL=x`), or be text for a shell.
    """
    for operand in parsed.operands:
        if isinstance(operand, Unknown | Found) or not re.fullmatch(_NAME, operand):
            return replace(use, gap=f"{operand} is not a plain name")
    return use


ANYTHING_ELSE = runs(operands="")
"""Model of a build tool without a subcommand. It prints help or its version, but may run code of the project."""


def name_first(parsed: Parsed, use: Use) -> Use:
    """Return a gap if the first operand is not a plain name. The program reads it as text for a shell."""
    return names_only(replace(parsed, operands=parsed.operands[:1]), use)


def one_of(option: str, values: str) -> Refine:
    """Return a refinement with a gap if `option` has another value than these. It could name a module to load.

    The value may be a list, separated by commas.
    """
    allowed_values = frozenset(values.split())

    def refine(parsed: Parsed, use: Use) -> Use:
        for value in parsed.values(option):
            if isinstance(value, Unknown | Found) or not allowed_values.issuperset(value.split(",")):
                return replace(use, gap=f"the value {value} of {option} is not in its model")
        return use

    return refine


def definitions(option: str, names: str) -> Refine:
    """Return a refinement with a gap for definitions `NAME=VALUE`, except switches (`X=ON`) and those of `names`.

    Other values may name compilers.
    """
    allowed_names = frozenset(names.split())

    def refine(parsed: Parsed, use: Use) -> Use:
        for text in parsed.values(option):
            name, _, value = text.partition("=")
            plain = not isinstance(text, Unknown | Found) and re.fullmatch(_NAME, text.replace("=", ""))
            if not plain or not (name.partition(":")[0] in allowed_names or re.fullmatch(_SWITCH, value)):
                return replace(use, gap=f"the definition {text} is not in its model")
        return use

    return refine


def arguments_from(place: int) -> Refine:
    """Return a refinement that treats the operands from index `place` on as arguments of code, which may be files."""

    def refine(parsed: Parsed, use: Use) -> Use:
        paths = argument_paths(parsed.operands[place:])
        return replace(use, gap=paths) if isinstance(paths, str) else replace(use, paths=(*use.paths, *paths))

    return refine


def also_writes(*paths: str) -> Refine:
    """Return a refinement that adds files that a command writes without naming them, such as a lock file."""
    written = tuple(PathUse(word=path, access=Access.WRITE) for path in paths)
    return lambda _parsed, use: replace(use, paths=(*use.paths, *written))


def plain_values(parsed: Parsed, use: Use) -> Use:
    """Return a gap for values with `=`, as Go's pflag drops the `=` of `-o=x`, and for `-`, which may be the input."""
    if any(option.value is not None and option.value[:1] == "=" for option in parsed.options):
        return gap("an option of one letter with = behind it")
    if "-" in parsed.operands or any(option.value == "-" for option in parsed.options):
        return gap("a file that is the input")
    return use


def here_by_default(parsed: Parsed, use: Use) -> tuple[Parsed, Use]:
    """Return both arguments, with the current folder as the operand if there is none."""
    if parsed.operands:
        return parsed, use
    folder = PathUse(word=".", access=Access.READ)
    return replace(parsed, operands=(".",)), replace(use, paths=(*use.paths, folder))


def _operands(parsed: Parsed) -> frozenset[str]:
    """Return the words of the paths that the operands have in a use."""
    words = (word.starts if isinstance(word, Found) else (str(word),) for word in parsed.operands)
    return frozenset(word for each in words for word in each)


def as_trees(parsed: Parsed, use: Use, only: tuple[str, ...] = ()) -> Use:
    """Return `use` with its operands as trees of files that match `only`, with links followed.

    Only for programs without an option for the folder that other paths are relative to.
    """
    operands = _operands(parsed)
    paths = (
        replace(path, tree=True, follows=True, only=only)
        if path.word in operands and path.access is not Access.WRITE
        else path
        for path in use.paths
    )
    return replace(use, paths=tuple(paths))


def operands_written(parsed: Parsed, use: Use, act: Act = Act.WRITES) -> Use:
    """Return `use` with its operands both read and written."""
    operands = _operands(parsed)
    paths = (replace(path, access=Access.EITHER) if path.word in operands else path for path in use.paths)
    return replace(use, paths=tuple(paths), act=stricter(use.act, act))


def written_by(*options: str, only: tuple[str, ...] = ()) -> Refine:
    """Return a refinement for programs that write their operands if one of `options` occurs.

    It then adds the files below them that match `only`.
    """

    def refine(parsed: Parsed, use: Use) -> Use:
        return as_trees(parsed, operands_written(parsed, use), only) if parsed.has(*options) else use

    return refine
