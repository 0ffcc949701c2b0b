"""Parts common to several models: paths from words, programs that run commands or code, options of build tools.

A refinement gets the use of a command from the tables, without a gap, and returns that or a stricter one, never a
laxer one.
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

# --- Models that read whole command lines by themselves: the paths gathered, and the ways out


class NotCoveredError(Exception):
    """Raised with the reason why words are not covered, in a few words for the user; only for functions under
    `or_gap`.
    """


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
        """Add what `word` names, seen from `folder`. Raises NotCoveredError for a word whose value is not known."""
        if isinstance(word, Unknown):
            raise NotCoveredError(f"the path {word} is not known")
        if isinstance(word, Found):
            self.paths += handed_over(word, access, tree=tree, folder=folder)
        else:
            self.paths.append(PathUse(word=joined(folder, word), access=access, tree=tree, entry=entry))

    def add_with(self, suffixes: Sequence[str], word: str, access: Access) -> None:
        """Add `word`, and the names that the program tries or makes by putting a suffix behind it."""
        self.add(word, access)
        for suffix in () if isinstance(word, Found) else suffixes:
            self.add(word + suffix, access)

    def use(self) -> Use:
        """Return the use of a command that looks at what was added, or writes what was added as written."""
        written = any(path.access is not Access.READ for path in self.paths)
        return Use(act=Act.WRITES if written else Act.LOOKS, paths=tuple(self.paths))


# --- Programs that run commands, and text for sh

_OTHERWISE = (
    # Sequences that dash, ash and others read otherwise than bash, or not at all: each of them in the strict subset.
    r"\$'|\[\[|\(\(|[<>]\(|\|&|&>|<<<|>&[^0-9-]|[0-9]{2}[<>]|[}][<>]|\[\^|[<>][|&]?[ \t]*[^\s;&|()<>]*[*?\[]"
    r"|\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}"
    # Keywords that they do not have; and builtins that make commands of text in which the above may come up again.
    r"|\b(?:time|function|select|coproc|eval|alias|trap|pushd|popd)\b"
    # Older ones split the words of export: `export A=$(echo b PATH=.)`.
    r"|\bexport\b[^;\n]*[$`]"
)
_NO_QUOTES = str.maketrans("", "", "'\"\\\n")


def read_alike(text: str) -> bool:
    """Return whether dash and its kin read `text` as bash does, if bash reads it at all (POSIX.1-2024, XCU 2;
    dash(1)).

    Used for `sh`, which is dash, ash, ksh or bash, depending on the system, and for programs that pass text to `sh
    -c`. A sequence counts also if it only appears once quotes or line continuations are removed.
    """
    bare = text.translate(_NO_QUOTES)
    return text.isascii() and re.search(_OTHERWISE, text) is None and re.search(_OTHERWISE, bare) is None


def with_text_for_sh(parsed: Parsed, use: Use) -> Use:
    """Refine: the texts that a program hands to `sh -c` must be read by that as bash reads them, and there must be one."""
    if not use.scripts:
        return gap(f"{parsed.program} without a command")
    return use if all(read_alike(text) for text in use.scripts) else gap("text that sh may read otherwise than bash")


def with_command(parsed: Parsed, use: Use) -> Use:
    """Refine: a wrapper without a command is a gap; many start a shell then."""
    return use if use.commands else gap(f"{parsed.program} without a command")


def wraps(
    options: str = "", operands: str = "COMMAND...", *, refine: Refine = with_command, act: Act = Act.WRAPS
) -> Program:
    """Return the model of a program whose options precede the command that it runs."""
    return Program(act=act, style=Style.POSIX, options=options, operands=operands, refine=refine)


# --- Files whose code is run, and the words that it is given


def argument_paths(words: Sequence[str]) -> tuple[PathUse, ...] | str:
    """Return the words given to code that may be files, with which it may do anything; or why that is not known.

    A word of the shape `name=value` or `--name=value` may be one by its value too; other options are none.
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
    """Refine for `SCRIPT TEXT...`: what follows the script may be files; without a script, the input is run: a gap."""
    if not parsed.operands or parsed.operands[0] == "-":
        return gap("it runs what its input says")
    paths = argument_paths(parsed.operands[1:])
    return gap(paths) if isinstance(paths, str) else replace(use, paths=(*use.paths, *paths))


# --- Options of build tools: spellings, and refinements

_NAME = r"[A-Za-z0-9_./%+,:@\[\]-]+"
_SWITCH = r"(?i:on|off|true|false|yes|no|[01]|enabled|disabled|auto)"


def either_dash(table: str) -> str:
    """Return the option table of a program that takes one dash or two (go, shfmt, clang-format) out of bare names."""
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
    """Return the model of a program that runs code of the project for every request, and may reach the network."""
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
    """Return a refinement that applies each in turn, and stops at the first gap."""

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
    """Return the model of a program that reads any `@FILE` as a file of further words, options among them.

    ruff, pytest, mypy, rustc, javac and the tools of GCC and LLVM do so, also for the value of an option.
    """

    def read(argv: Sequence[str]) -> Use:
        for word in argv[1:]:
            if _may_begin_with("@", word):
                return gap(f"{word} may be a file of further words")
        return read_command(program, argv)

    return replace(program, read=read)


def options_first(program: Program) -> Program:
    """Return the model of a program that takes every word from its first operand on for an operand (Go's package flag).

    There an option with a value behind an operand would hide a file: `gofmt a.go -r .env` reads .env.
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
    """Refuse an operand that is not a plain name: a variable that is set (`SHELL=x`), or text that a shell might
    expand.
    """
    for operand in parsed.operands:
        if isinstance(operand, Unknown | Found) or not re.fullmatch(_NAME, operand):
            return replace(use, gap=f"{operand} is not a plain name")
    return use


ANYTHING_ELSE = runs(operands="")
"""The use of such a program without a subcommand: it prints help or its version, through code that the project
chooses.
"""


def name_first(parsed: Parsed, use: Use) -> Use:
    """Refuse a first operand that is not a plain name: the program reads text for a shell there."""
    return names_only(replace(parsed, operands=parsed.operands[:1]), use)


def one_of(option: str, values: str) -> Refine:
    """Refuse values of `option` (or a list with commas) other than these: they could name a module that is loaded."""
    allowed_values = frozenset(values.split())

    def refine(parsed: Parsed, use: Use) -> Use:
        for value in parsed.values(option):
            if isinstance(value, Unknown | Found) or not allowed_values.issuperset(value.split(",")):
                return replace(use, gap=f"the value {value} of {option} is not in its model")
        return use

    return refine


def definitions(option: str, names: str) -> Refine:
    """Refuse definitions `NAME=VALUE` other than switches (`X=ON`) and those of `names`: values may name compilers."""
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
    """Take the operands from `place` on for words given to code that may do anything with them."""

    def refine(parsed: Parsed, use: Use) -> Use:
        paths = argument_paths(parsed.operands[place:])
        return replace(use, gap=paths) if isinstance(paths, str) else replace(use, paths=(*use.paths, *paths))

    return refine


def also_writes(*paths: str) -> Refine:
    """Add files that a command writes without naming them, such as a lock file, for rules about paths."""
    written = tuple(PathUse(word=path, access=Access.WRITE) for path in paths)
    return lambda _parsed, use: replace(use, paths=(*use.paths, *written))


def plain_values(parsed: Parsed, use: Use) -> Use:
    """Refine for programs written with Go's pflag: it drops the `=` of `-o=x`, and no file is the input."""
    if any(option.value is not None and option.value[:1] == "=" for option in parsed.options):
        return gap("an option of one letter with = behind it")
    if "-" in parsed.operands or any(option.value == "-" for option in parsed.options):
        return gap("a file that is the input")
    return use


def here_by_default(parsed: Parsed, use: Use) -> tuple[Parsed, Use]:
    """Return both as if the folder of the command had been named, where no operand is."""
    if parsed.operands:
        return parsed, use
    folder = PathUse(word=".", access=Access.READ)
    return replace(parsed, operands=(".",)), replace(use, paths=(*use.paths, folder))


def _operands(parsed: Parsed) -> frozenset[str]:
    """Return the words that represent the operands in the paths of a use."""
    words = (word.starts if isinstance(word, Found) else (str(word),) for word in parsed.operands)
    return frozenset(word for each in words for word in each)


def as_trees(parsed: Parsed, use: Use, only: tuple[str, ...] = ()) -> Use:
    """Return `use` with its operands as trees (of files named like `only`), links followed.

    For programs without an option that names a folder for the others.
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
    """Return `use` with its operands written as well as read."""
    operands = _operands(parsed)
    paths = (replace(path, access=Access.EITHER) if path.word in operands else path for path in use.paths)
    return replace(use, paths=tuple(paths), act=stricter(use.act, act))


def written_by(*options: str, only: tuple[str, ...] = ()) -> Refine:
    """Take operands for written, with the files below them that are named like `only`, where one of `options` occurs."""

    def refine(parsed: Parsed, use: Use) -> Use:
        return as_trees(parsed, operands_written(parsed, use), only) if parsed.has(*options) else use

    return refine
