"""Rows: models of programs as lines of text, for programs that need no code (`Rows`).

A row has up to four columns, separated by ` : `. A line that begins with a blank continues the previous row:

    pipenv install, update, sync : runs net also=Pipfile,Pipfile.lock : TEXT... : common --dev --pre

1. The program, or several separated by `/`. Then its subcommands, separated by `, `; `(alone)` is the program without a
   subcommand. A row without subcommands describes the program itself, or the options before its subcommands.
2. Its effects: an act (looks, writes, changes, runs), `net`, a style (`posix`, `single`, `words`), `obeys=FILE`,
   `needs=NAME`, and refinements of shared.py: `names`, `first`, `go`, `arguments=N`, `also=FILE,FILE` (files that it writes
   without naming them). Or `gap` if no model covers it; the third column is then the reason.
3. The roles of its operands, as in `Program.operands`; `-` for none.
4. Its options, as in `Program.options`. A word without a dash is the name of a list, which a line `NAME = ...` defines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness.actions import Act
from harness.programs.program import Program, Refine, Style, gap
from harness.programs.shared import all_of, also_writes, arguments_from, name_first, names_only, plain_values
from harness.record import replace

_ACTS = {act.value: act for act in Act}
_STYLES = {"posix": Style.POSIX, "single": Style.SINGLE, "words": Style.TEXT}
_REFINEMENTS: Mapping[str, Callable[[str], Refine]] = {
    "names": lambda _value: names_only,
    "first": lambda _value: name_first,
    "go": lambda _value: plain_values,
    "arguments": lambda value: arguments_from(int(value)),
    "also": lambda value: also_writes(*value.split(",")),
}
_ALONE = "(alone)"
_NONE = "-"


class Rows(Mapping[str, Program]):
    """The models in a table, by program. Each model is created at the first request for it.

    `refinements` are functions that the table may name in addition to those of shared.py. Raises ValueError if the
    table lists a program in two different groups. The lookup of a program raises ValueError or KeyError if one of its
    rows is invalid.
    """

    def __init__(self, table: str, refinements: Mapping[str, Refine] = {}) -> None:
        self._refinements = refinements
        self._lists: dict[str, str] = {}
        self._rows: dict[str, list[str]] = {}
        """Rows by the first word of each row: the names of the programs that share a model."""
        for row in _joined(table):
            name, equals, value = row.partition(" = ")
            if equals and " " not in name:
                self._lists[name] = self._expanded(value)
            else:
                self._rows.setdefault(name.partition(" ")[0], []).append(row)
        self._names = {program: names for names in self._rows for program in names.split("/")}
        if len(self._names) < sum(len(names.split("/")) for names in self._rows):
            raise ValueError("a program is named with different others in the rows of a table")
        self._models: dict[str, Program] = {}

    def __getitem__(self, program: str) -> Program:
        """Return the model of a program."""
        names = self._names[program]
        if names not in self._models:
            self._models[names] = self._model(names)
        return self._models[names]

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the programs."""
        return iter(self._names)

    def __len__(self) -> int:
        """Return the number of programs."""
        return len(self._names)

    def _model(self, names: str) -> Program:
        model = Program()
        subcommands: dict[str, Program] = {}
        for row in self._rows[names]:
            name, *columns = (column.strip() for column in row.split(" : "))
            verbs = name.removeprefix(names).strip()
            if verbs:
                subcommands |= dict.fromkeys(verbs.replace(_ALONE, "").split(", "), self._of_row(columns))
            else:
                model = self._of_row(columns)
        return replace(model, subcommands=subcommands) if subcommands else model

    def _of_row(self, columns: list[str]) -> Program:
        does, operands, options = (*columns, *(_NONE, "")[len(columns) - 1 :])
        if does == "gap":
            return Program(read=lambda _argv: gap(operands))
        fields: dict[str, Any] = {"operands": "" if operands == _NONE else operands, "options": self._expanded(options)}
        refines: list[Refine] = []
        for word in does.split():
            name, _, value = word.partition("=")
            if name in _ACTS:
                fields["act"] = _ACTS[name]
            elif name in _STYLES:
                fields["style"] = _STYLES[name]
            elif name == "net":
                fields["network"] = True
            elif name in ("needs", "obeys"):
                fields[name] = self._lists.get(value, value)
            elif name in self._refinements:
                refines.append(self._refinements[name])
            else:
                refines.append(_REFINEMENTS[name](value))
        if refines:
            fields["refine"] = refines[0] if len(refines) == 1 else all_of(*refines)
        return Program(**fields)

    def _expanded(self, options: str) -> str:
        """Return options with the names of lists replaced by the lists."""
        return " ".join(word if word[0] in "-+" else self._lists.get(word, word) for word in options.split())


def _joined(table: str) -> Iterator[str]:
    """Yield the rows of a table, each as one line. Comments (`#`) are left out."""
    row = ""
    for line in table.splitlines():
        if line[:1] == " ":
            row = f"{row} {line.strip()}"
        elif line[:1] != "#":
            if row:
                yield row
            row = line.strip()
    if row:
        yield row
