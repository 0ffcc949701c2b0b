"""Parsing of a command's words by the tables of its model. The result is never laxer than the table.

`read_command` is the entry point. Anything that is not in a table (an option, an abbreviation, an extra operand, a word
of unknown value where it matters) is a gap, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from harness.actions import Access, Act
from harness.programs.program import (
    Found,
    Given,
    Inner,
    OperandRole,
    Parsed,
    PathUse,
    Program,
    Style,
    Unknown,
    Use,
    gap,
    handed_over,
    joined,
)
from harness.record import Record, replace

_ORDER = tuple(Act)
_ACTS = {act.value: act for act in Act}
_MARKS = frozenset((*_ACTS, "tree", "inplace", "network", "gap", "instead", "info"))
NUMBER = "-NUM"


def stricter(first: Act, second: Act) -> Act:
    """Return the stricter of two acts."""
    return max(first, second, key=_ORDER.index)


def read_command(program: Program, argv: Sequence[str]) -> Use:
    """Return the use of the command `argv`, by the model of its program. `argv[0]` is the program as written.

    Words may be `Unknown` or `Found`. Raises no error for any words.
    """
    if program.read is not None:
        return program.read(argv)
    if program.subcommands:
        return _with_subcommand(program, argv)
    return _plain(program, argv, folder="")


def _plain(program: Program, argv: Sequence[str], folder: str) -> Use:
    table = option_table(program.options)
    if _asks_about_itself(argv, table):
        return Use(act=Act.LOOKS, obeys=tuple(program.obeys.split()))
    parsed = parse_words(program, argv)
    if isinstance(parsed, str):
        return gap(parsed)
    use = _Reading(program, table, parsed, folder).use()
    if not use.gap and program.refine is not None:
        use = program.refine(parsed, use)
    return gap(use.gap) if use.gap else use


def _asks_about_itself(argv: Sequence[str], table: Mapping[str, Entry]) -> bool:
    """Return whether an `info` option is the only word. With further words, some programs also run the rest."""
    entry = table.get(argv[1]) if len(argv) == 2 else None
    return entry is not None and "info" in entry.marks


def _with_subcommand(program: Program, argv: Sequence[str]) -> Use:
    """Read the options before the subcommand by the table of `program`, and the rest by that of the subcommand."""
    outer = replace(program, style=Style.POSIX if program.style is Style.GNU else program.style, operands="TEXT...")
    table = option_table(program.options)
    if _asks_about_itself(argv, table):
        return Use(act=Act.LOOKS, obeys=tuple(program.obeys.split()))
    parsed = parse_words(outer, argv, stop=True)
    if isinstance(parsed, str):
        return gap(parsed)
    before = _Reading(outer, table, Parsed(program=parsed.program, options=parsed.options, operands=()), "").use()
    if before.gap:
        return gap(before.gap)
    folder = _folder(parsed, table)
    name, rest = _subcommand(program.subcommands, parsed.operands)
    inner = program.subcommands.get(name)
    if inner is None:
        subcommand = parsed.operands[0] if parsed.operands else ""
        return gap(
            f"{argv[0]} {subcommand} has no model" if subcommand else f"{argv[0]} without a subcommand has no model"
        )
    words = (f"{argv[0]} {name}".strip(), *rest)
    use = inner.read(words) if inner.read is not None else _plain(inner, words, folder)
    if use.gap:
        return use
    if inner.read is not None and folder:
        return gap("a folder in front of a subcommand that reads its own words")
    return replace(
        use,
        act=stricter(before.act, use.act),
        network=before.network or use.network,
        paths=(*before.paths, *use.paths),
        git_folder=(folder or ".") if program.git else None,
    )


def _subcommand(subcommands: Mapping[str, Program], operands: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the longest known subcommand at the start of the operands, and the words after it."""
    for count in (3, 2, 1):
        words = operands[:count]
        if len(words) == count and not any(isinstance(word, Unknown | Found) for word in words):
            name = " ".join(words)
            if name in subcommands and " " not in "".join(words):
                return name, operands[count:]
    return ("", ()) if not operands else ("\0", ())


class Entry(Record):
    """One row of an option table."""

    name: str
    """First spelling of the option."""
    role: OperandRole | None
    """Role of the value. `None` for an option without a value."""
    joined_only: bool
    """Whether the value is optional, and can only be joined to the option: `--color[=WHEN]`."""
    marks: frozenset[str]

    @property
    def takes_next(self) -> bool:
        """Return whether the option takes the next word as its value."""
        return self.role is not None and not self.joined_only


@cache
def option_table(options: str) -> Mapping[str, Entry]:
    """Return the entries of a table by each of their spellings. Raises ValueError or KeyError for an invalid table."""
    table: dict[str, Entry] = {}
    for text in options.split():
        entry, spellings = _entry(text)
        for spelling in spellings:
            if spelling in table:
                raise ValueError(f"duplicate option in a table: {spelling}")
            table[spelling] = entry
    return table


def _entry(text: str) -> tuple[Entry, list[str]]:
    head, _, marks = text.partition(":")
    joined_only = head.endswith("]")
    names, value = head, ""
    if joined_only:
        names, _, value = head[:-1].partition("[=")
    elif "=" in head:
        names, _, value = head.partition("=")
    spellings = names.split("|")
    mark_set = frozenset(marks.split(",")) - {""}
    if not mark_set <= _MARKS or not all(name[:1] in "-+" and len(name) > 1 for name in spellings):
        raise ValueError(f"{text!r} is not an entry of an option table")
    role = OperandRole[value] if value else None
    return Entry(name=spellings[0], role=role, joined_only=joined_only, marks=mark_set), spellings


def parse_words(program: Program, argv: Sequence[str], *, stop: bool = False) -> Parsed | str:
    """Return the options and operands of `argv`, by the program's style and table, or the reason for a gap.

    With `stop`, everything from the first operand on is an operand, in any style.
    """
    return _Words(program, argv, stop=stop).parsed()


class _Words:
    """A parser of the words of one command."""

    def __init__(self, program: Program, argv: Sequence[str], *, stop: bool) -> None:
        self.style = program.style
        self.table = option_table(program.options)
        self.argv = argv
        self.stop = stop or program.style is Style.POSIX
        self.position = 1
        self.options: list[Given] = []
        self.operands: list[str] = []
        self.before: int | None = None

    def parsed(self) -> Parsed | str:
        argv = self.argv
        if self.style is Style.TEXT:
            self.operands.extend(argv[1:])
            self.position = len(argv)
        while self.position < len(argv):
            word = argv[self.position]
            self.position += 1
            if word == "--" and not isinstance(word, Unknown):
                self.before = len(self.operands)
                self._rest()
                break
            problem = self._word(word)
            if problem:
                return problem
            if self.operands and self.stop:
                self._rest()
                break
        if self.style is not Style.TEXT:
            many = next((w for w in self.operands if isinstance(w, Unknown) and not w.single), None)
            if many is not None:
                return f"{many} may be any number of words"
        return Parsed(
            program=str(argv[0]), options=tuple(self.options), operands=tuple(self.operands), before=self.before
        )

    def _rest(self) -> None:
        self.operands.extend(self.argv[self.position :])
        self.position = len(self.argv)

    def _word(self, word: str) -> str:
        if isinstance(word, Unknown):
            return self._unknown(word)
        if isinstance(word, Found) or len(word) < 2 or word[0] not in "-+" or (word[0] == "+" and not self._plus(word)):
            self.operands.append(word)
            return ""
        if word not in self.table and NUMBER in self.table and word[1:].isascii() and word[1:].isdigit():
            return ""
        if word in self.table or self.style is Style.SINGLE or word.startswith("--"):
            return self._long(word)
        return self._cluster(word)

    def _plus(self, word: str) -> bool:
        return any(name[0] == "+" for name in self.table) and word[:2] in self.table

    def _unknown(self, word: Unknown) -> str:
        name, equals, _ = word.prefix.partition("=")
        entry = self.table.get(name)
        if equals and word.prefix.startswith("--") and entry is not None and entry.role is not None and word.single:
            self.options.append(Given(name=entry.name, value=word))
            return ""
        no_option = word.integer and not any(name[1:2].isdigit() or name == NUMBER for name in self.table)
        if no_option or word.prefix[:1] not in ("", "-", "+"):
            self.operands.append(word)
            return ""
        return f"{word} may be an option"

    def _long(self, word: str) -> str:
        name, equals, value = word.partition("=")
        entry = self.table.get(word) or self.table.get(name)
        if entry is None:
            return f"the option {name} is not in its model"
        if "info" in entry.marks:
            return f"{name} among other words is not in its model"
        if word in self.table:
            equals, value = "", ""
        if entry.role is None:
            if equals:
                return f"{name} takes no value"
            self.options.append(Given(name=entry.name, value=None))
            return ""
        if equals or entry.joined_only:
            self.options.append(Given(name=entry.name, value=value if equals else None))
            return ""
        return self._next_as_value(entry)

    def _cluster(self, word: str) -> str:
        """Read a cluster such as `-abc`. The value of its last option is the rest of the word, or the next word.

        Return the problem, or an empty string.
        """
        for place in range(1, len(word)):
            entry = self.table.get(word[0] + word[place])
            if entry is None or "info" in entry.marks:
                return f"the option {word[0]}{word[place]} is not in its model"
            rest = word[place + 1 :]
            if entry.role is None:
                self.options.append(Given(name=entry.name, value=None))
            elif rest or entry.joined_only:
                self.options.append(Given(name=entry.name, value=rest or None))
                return ""
            else:
                return self._next_as_value(entry)
        return ""

    def _next_as_value(self, entry: Entry) -> str:
        if self.position >= len(self.argv):
            return f"{entry.name} has no value"
        value = self.argv[self.position]
        self.position += 1
        if isinstance(value, Unknown) and not value.single:
            return f"{value} may be any number of words"
        self.options.append(Given(name=entry.name, value=value))
        return ""


_FILES = {
    OperandRole.READ: (Access.READ, False),
    OperandRole.TREE: (Access.READ, True),
    OperandRole.WRITE: (Access.WRITE, False),
    OperandRole.WRITE_TREE: (Access.WRITE, True),
    OperandRole.EITHER: (Access.EITHER, False),
    OperandRole.EITHER_TREE: (Access.EITHER, True),
}
"""Access to a path, and whether it includes all files below, by role."""


class _Reading:
    """Builder of the use of one command. It applies the roles in the tables to the words."""

    def __init__(self, program: Program, table: Mapping[str, Entry], parsed: Parsed, folder: str) -> None:
        self.program = program
        self.table = table
        self.parsed = parsed
        self.folder = joined(folder, _folder(parsed, table))
        self.act = program.act
        self.network = program.network
        self.marks: set[str] = set()
        self.paths: list[PathUse] = []
        self.scripts: list[str] = []
        self.commands: list[Inner] = []
        self.variables: list[str] = []
        self.remote = ""
        self.gap = ""

    def use(self) -> Use:
        for option in self.parsed.options:
            entry = self.table[option.name]
            self.marks |= entry.marks
            if entry.role is not None and option.value is not None:
                self.apply(entry.role, option.value, f"{option.name} ", operand=False)
        if "gap" in self.marks:
            name = next((g.name for g in self.parsed.options if "gap" in self.table[g.name].marks), "an option")
            self.gap = self.gap or f"its model does not vouch for {name}"
        for mark in self.marks:
            if mark in _ACTS:
                self.act = stricter(self.act, _ACTS[mark])
        self.network = self.network or "network" in self.marks
        self._operands()
        if any(path.access is not Access.READ for path in self.paths):
            self.act = stricter(self.act, Act.WRITES)
        return Use(
            act=self.act,
            paths=tuple(self.paths),
            commands=tuple(self.commands),
            scripts=tuple(self.scripts),
            remote=self.remote,
            network=self.network,
            obeys=tuple(joined(self.folder, name) for name in self.program.obeys.split()),
            needs=self.program.needs,
            gap=self.gap,
        )

    def _operands(self) -> None:
        head, many, tail = operand_roles(self.program.operands, instead="instead" in self.marks)
        operands = self.parsed.operands
        middle = operands[len(head) : len(operands) - len(tail)] if len(operands) > len(head) + len(tail) else ()
        if middle and many is None:
            self.gap = self.gap or "more operands than its model knows"
            return
        last = operands[len(head) + len(middle) :]
        roles = [*head[: len(operands)], *([many] * len(middle) if many else []), *tail[len(tail) - len(last) :]]
        for place, (role, word) in enumerate(zip(roles, operands, strict=False)):
            if role is OperandRole.COMMAND:
                self._command(operands[place:])
                return
            if role is OperandRole.REMOTE:
                self.remote = " ".join(operands[place:])
                return
            self.apply(role, word, "", operand=True)

    def _command(self, argv: tuple[str, ...]) -> None:
        if isinstance(argv[0], Unknown | Found):
            self.gap = self.gap or f"the command {argv[0]} is not known"
            return
        self.commands.append(Inner(argv=argv, variables=tuple(self.variables), folder=self.folder))

    def apply(self, role: OperandRole, word: str, name: str, *, operand: bool) -> None:
        unknown = isinstance(word, Unknown) or (isinstance(word, Found) and role is OperandRole.FOLDER)
        if unknown and role not in (OperandRole.TEXT, OperandRole.HOST):
            self.gap = self.gap or f"the value of {name}{word} is not known"
            return
        match role:
            case OperandRole.TEXT:
                pass
            case OperandRole.HOST:
                self.network = True
            case OperandRole.FOLDER:
                self.paths.append(PathUse(word=word, access=Access.READ))
            case OperandRole.CODE:
                self.gap = self.gap or f"{name}{word} says what is run"
            case OperandRole.SHELL:
                self._script(word, name)
            case OperandRole.VARIABLE:
                self.variables.append(word.partition("=")[0])
            case OperandRole.SCRIPT:
                self.act = stricter(self.act, Act.RUNS)
                self._path(word, Access.READ, tree=False)
            case OperandRole.COMMAND | OperandRole.REMOTE:
                self.gap = self.gap or f"{name}{word} begins a command"
            case _:
                self._file(role, word, operand=operand)

    def _script(self, word: str, name: str) -> None:
        if isinstance(word, Found):
            self.gap = self.gap or f"the value of {name}{word} is not known"
        else:
            self.scripts.append(word)

    def _file(self, role: OperandRole, word: str, *, operand: bool) -> None:
        access, tree = _FILES[role]
        if operand and access is Access.READ:
            access = Access.EITHER if "inplace" in self.marks else access
            tree = tree or "tree" in self.marks
        self._path(word, access, tree=tree)

    def _path(self, word: str, access: Access, *, tree: bool) -> None:
        if isinstance(word, Found):
            self.paths += handed_over(word, access, tree=tree, folder=self.folder)
        elif word:  # `-` means the input for most programs, but a file of that name for some
            self.paths.append(PathUse(word=joined(self.folder, word), access=access, tree=tree))


def _folder(parsed: Parsed, table: Mapping[str, Entry]) -> str:
    """Return the folder that the paths of a command are relative to, as written. Empty for its working directory."""
    folder = ""
    for option in parsed.options:
        if table[option.name].role is OperandRole.FOLDER and option.value and not isinstance(option.value, Unknown):
            folder = joined(folder, option.value)
    return folder


@cache
def operand_roles(operands: str, *, instead: bool) -> tuple[list[OperandRole], OperandRole | None, list[OperandRole]]:
    """Return the roles of the first operands, the role of any number in between or `None`, and those of the last.

    Raises ValueError or KeyError for invalid text.
    """
    head: list[OperandRole] = []
    tail: list[OperandRole] = []
    many: OperandRole | None = None
    for text in operands.split():
        if text.startswith("("):
            if not instead:
                head.append(OperandRole[text.strip("()")])
        elif text.endswith("..."):
            if many is not None:
                raise ValueError(f"two roles with ... in {operands!r}")
            many = OperandRole[text.removesuffix("...")]
        else:
            (head if many is None else tail).append(OperandRole[text])
    return head, many, tail
