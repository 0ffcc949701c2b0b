"""Unchecked configuration tables that extend a session: tools, hooks, an approver, and the sections of plugins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.errors import UsageError, nearest
from harness.record import Record, replace
from harness.session.shipped_plugins import section_of
from harness.shipped import SECTIONS
from harness.text.toml_places import key_lines, read_toml

TOOL, HOOK, APPROVER = "tool", "hook", "approver"
_OF_PROJECTS = (TOOL, *(key.partition(".")[0] for key in SECTIONS), HOOK)
"""Top-level keys of a project's file. Only the user's own file may name an approver."""
EXTENSION_TABLES = (*_OF_PROJECTS, APPROVER)
"""Top-level keys of the user's file for these tables."""


class ExtensionTable(Record):
    """One of these tables."""

    kind: str
    """TOOL, HOOK, APPROVER, or the key of a plugin's section."""
    name: str
    """The last name in the header of a plugin's table. Empty for other kinds."""
    fields: Mapping[str, object]
    file: str
    line: int
    """Line of the header."""
    lines: Mapping[str, int]
    """Lines of its keys."""
    of_project: bool = False
    """Whether the table is from a file of the workspace, which needs the user's trust."""

    def problem(self, message: str) -> UsageError:
        """Return an error about the table with its place: the line of the key at the start of `message`, or of the table."""
        begins = ((key, (f"{key}: ", f"has the unknown field {key!r}")) for key in self.lines)
        line = next((self.lines[key] for key, ways in begins if message.startswith(ways)), self.line)
        return UsageError(f"{self.file}:{line}: {self.header} {message}")

    @property
    def header(self) -> str:
        """The header as it is written in the file."""
        if self.kind in (TOOL, HOOK):
            return f"[[{self.kind}]]"
        return f"[{APPROVER}]" if self.kind == APPROVER else f"[{self.kind}.{self.name}]"

    @property
    def title(self) -> str:
        """The header, with the table's own `name` or `id` if it has one."""
        name = self.fields.get("name") or self.fields.get("id")
        return f"{self.header} {name}" if isinstance(name, str) else self.header

    @property
    def origin(self) -> str:
        """FILE:LINE."""
        return f"{self.file}:{self.line}"


def extension_tables(text: str, table: Mapping[str, object], file: str) -> tuple[ExtensionTable, ...]:
    """Return the extension tables in `table`, parsed from `text`. Raises UsageError if one of them is not a table."""
    return tuple(_tables(_Lines(text), table, file))


def project_tables(data: bytes, file: str) -> tuple[ExtensionTable, ...]:
    """Return the tables of a project's own file. Raises UsageError for an invalid file, and for other keys."""
    try:
        text, table = read_toml(data)
    except ValueError as error:
        raise UsageError(f"{file}: {error}") from None
    for key in table:
        if key not in _OF_PROJECTS:
            line = _Lines(text).at("", 0, key)
            problem = f"unknown table{nearest(key, _OF_PROJECTS)}"
            may = ", ".join(("tools", *(f"{section_of(section).noun}s" for section in SECTIONS)))
            raise UsageError(f"{file}:{line}: {key}: {problem}; a project may add {may} and hooks, and no more")
    return tuple(replace(project_table, of_project=True) for project_table in extension_tables(text, table, file))


class _Lines:
    """Lines of the keys in a text."""

    def __init__(self, text: str) -> None:
        self._lines = key_lines(text)

    def at(self, table: str, index: int, key: str) -> int:
        return self._lines.get((table, index, key)) or self._lines.get((table, index, ""), 1)

    def of(self, table: str, index: int, keys: Sequence[str]) -> dict[str, int]:
        return {key: self.at(table, index, key) for key in keys}


def _tables(lines: _Lines, table: Mapping[str, object], file: str) -> Iterator[ExtensionTable]:
    for kind in (TOOL, HOOK):
        rows = table.get(kind, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise UsageError(f"{file}:{lines.at('', 0, kind)}: {kind}: must be tables: [[{kind}]]")
        for index, fields in enumerate(rows):
            at = lines.at(kind, index, "")
            yield ExtensionTable(
                kind=kind, name="", fields=fields, file=file, line=at, lines=lines.of(kind, index, tuple(fields))
            )
    for section in SECTIONS:
        for name, fields in _named_in(lines, section, table, file).items():
            yield _plain(lines, section, f"{section}.{name}", name, fields, file)
    if APPROVER in table:
        yield _plain(lines, APPROVER, APPROVER, "", table[APPROVER], file)


def _named_in(lines: _Lines, key: str, table: object, file: str) -> Mapping[str, object]:
    """Return the tables below `key`, a dotted name. Raises UsageError for other keys at that level."""
    outer: list[str] = []
    value = table
    for part in key.split("."):
        at = ".".join(outer)
        if (
            outer
            and isinstance(value, dict)
            and (other := next((other_key for other_key in value if other_key != part), None)) is not None
        ):
            raise UsageError(f"{file}:{lines.at(at, 0, other)}: [{at}] {other}: unknown key{nearest(other, [part])}")
        value = value.get(part, {}) if isinstance(value, dict) else None
        if not isinstance(value, dict):
            top = key.partition(".")[0]
            raise UsageError(f"{file}:{lines.at('', 0, top)}: {top}: must be tables: [{key}.NAME]")
        outer.append(part)
    return value if isinstance(value, dict) else {}


def _plain(lines: _Lines, kind: str, header: str, name: str, fields: object, file: str) -> ExtensionTable:
    """Return a table that occurs only once, in contrast to the items of an array of tables."""
    parent, _, key = header.rpartition(".")
    at = lines.at(parent, 0, key)
    if not isinstance(fields, dict):
        raise UsageError(f"{file}:{at}: {header}: must be a table: [{header}]")
    keys = lines.of(header, 0, tuple(fields))
    return ExtensionTable(kind=kind, name=name, fields=fields, file=file, line=at, lines=keys)
