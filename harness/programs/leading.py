"""Options between a program and its subcommand or target, as in `git -C docs log` and `make -j4 test`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.programs.catalog import model_of
from harness.programs.options import Entry, option_table
from harness.programs.program import OperandRole, Program, Style
from harness.programs.runners import INTERPRETERS, is_one_of, name_of
from harness.record import Record, replace

_PLAIN_ROLES = frozenset((None, OperandRole.TEXT, OperandRole.READ, OperandRole.FOLDER, OperandRole.HOST))
"""Roles of values that neither run code nor name a file to write. `None` is an option without a value."""


class LeadingOption(Record):
    """One option before the subcommand, with its value."""

    name: str
    """The option as written, without its value."""
    value: str | None
    width: int
    """Number of words."""
    is_shared: bool = False
    """Whether the program's table knows it, and it means the same after the subcommand or means nothing there."""
    role: OperandRole | None = None
    """Role of the value, if the table knows the option."""

    @property
    def names_no_path(self) -> bool:
        """Whether it is shared, and has no value or one that is plain text."""
        return self.is_shared and (self.value is None or self.role is OperandRole.TEXT)


def leading_options(argv: Sequence[str], rule_options: Mapping[str, bool]) -> tuple[LeadingOption, ...] | None:
    """Return the options before the subcommand of `argv`. `None` if their meaning is not certain.

    The table of the program's model says which options take a value, and `rule_options` for others, by name. An option
    that they differ about is not certain, and neither is a next word that begins with a dash.
    """
    program = model_of(name_of(argv[0]))
    table = option_table(program.options) if program is not None and _takes_names(program) else {}
    clusters = program is not None and program.style is not Style.SINGLE
    options: list[LeadingOption] = []
    place = 1
    while place < len(argv) and len(argv[place]) > 1 and argv[place][0] == "-":
        option = _read(argv, place, table, rule_options, clusters=clusters)
        if option is None:
            return None
        options.append(option)
        place += option.width
    inner = _table_of_subcommand(program, argv[place:])
    return tuple(_shared(option, table, inner) for option in options)


def text_values(argv: Sequence[str]) -> frozenset[int]:
    """Return the indexes of words that are certainly values of options, and plain text: `x` in `kubectl get -n x pods`.

    Only options that the table of the program's model knows, and that mean the same everywhere in the command, count.
    """
    program = model_of(name_of(argv[0])) if argv else None
    if program is None or not program.subcommands:
        return frozenset()
    table, end = option_table(program.options), argv.index("--") if "--" in argv else len(argv)
    tables = [option_table(model.options) for model in program.subcommands.values()]

    def is_text(word: str) -> bool:
        entry = table.get(word)
        if entry is None or not entry.takes_next or entry.role is not OperandRole.TEXT or not _is_plain(entry):
            return False
        return all(inner.get(word, entry) == entry for inner in tables)

    places: set[int] = set()
    for place in range(1, end - 1):
        if place not in places and is_text(argv[place]) and argv[place + 1][:1] != "-":
            places.add(place + 1)
    return frozenset(places)


def runs_code(program: str, option: str) -> bool:
    """Return whether an option before the subcommand may make the program run something else, as in `git -c`."""
    model = model_of(name_of(program))
    entry = None if model is None else option_table(model.options).get(option)
    return is_one_of(program, INTERPRETERS) or (entry is not None and not _is_plain(entry))


def value_problem(program: str, option: str) -> str:
    """Return the reason why a rule's option before the subcommand is wrong about its value. Empty if it is right."""
    model, (name, equals, _) = model_of(name_of(program)), option.partition("=")
    entry = option_table(model.options).get(name) if model is not None and model.subcommands else None
    if entry is None or entry.joined_only or bool(equals) == (entry.role is not None):
        return ""
    return (
        f"{program} takes no value with {name}" if equals else f'{program} takes a value with {name}: write "{name}=*"'
    )


def _takes_names(program: Program) -> bool:
    """Return whether a subcommand or, as for make, a target may follow the options."""
    return bool(program.subcommands) or program.operands.startswith("TEXT")


def _is_plain(entry: Entry) -> bool:
    return not entry.marks and entry.role in _PLAIN_ROLES


def _read(
    argv: Sequence[str], place: int, table: Mapping[str, Entry], rule_options: Mapping[str, bool], *, clusters: bool
) -> LeadingOption | None:
    word = argv[place]
    name, equals, joined = word.partition("=")
    entry = table.get(name)
    if entry is not None:
        takes_value, takes_next = entry.role is not None, entry.takes_next
        if not entry.joined_only and rule_options.get(name, takes_value) != takes_value:
            return None
    elif name in rule_options:
        takes_next = takes_value = rule_options[name]
    elif clusters and len(word) > 2 and word[1] != "-" and (short := table.get(word[:2])) and short.role:
        return LeadingOption(name=word[:2], value=word[2:].removeprefix("="), width=1)
    else:
        return None
    if equals:
        return LeadingOption(name=name, value=joined, width=1) if takes_value else None
    if not takes_next:
        return LeadingOption(name=name, value=None, width=1)
    value = argv[place + 1] if place + 1 < len(argv) else "-"
    return (
        None if value[:1] == "-" else LeadingOption(name=name, value=value, width=2)
    )  # some programs take `-x -y` as two


def _shared(option: LeadingOption, table: Mapping[str, Entry], inner: Mapping[str, Entry]) -> LeadingOption:
    entry = table.get(option.name)
    if entry is None or not _is_plain(entry):
        return option
    is_shared = inner.get(option.name, entry) == entry
    return replace(option, is_shared=is_shared, role=entry.role)


def _table_of_subcommand(program: Program | None, words: Sequence[str]) -> Mapping[str, Entry]:
    subcommands = {} if program is None else program.subcommands
    models = (subcommands.get(" ".join(words[:count])) for count in (3, 2, 1))
    model = next((each for each in models if each is not None), None)
    return {} if model is None else option_table(model.options)
