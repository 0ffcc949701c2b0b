"""Tables of a configuration that add to a session: tools, servers, hooks, an approver. Read, and not yet understood."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.errors import UsageError, nearest
from harness.record import Record, replace
from harness.text.toml_places import key_lines, read_toml

TOOL, SERVERS, HOOK, APPROVER = "tool", "mcp.servers", "hook", "approver"
EXTENSION_TABLES = (TOOL, "mcp", HOOK, APPROVER)
"""By their names at the top of the file."""
_OF_PROJECTS = (TOOL, "mcp", HOOK)
"""Those that a project's file may have. Who answers questions is the user's to say alone."""


class ExtensionTable(Record):
    """One of these tables."""

    kind: str
    """TOOL, SERVERS, HOOK or APPROVER."""
    name: str
    """Of a server: the last name of its header; else empty."""
    fields: Mapping[str, object]
    file: str
    line: int
    """Where it begins."""
    lines: Mapping[str, int]
    """Where its keys stand."""
    of_project: bool = False
    """Whether a file of the workspace says it, which a person trusts."""

    def problem(self, said: str) -> UsageError:
        """Return the error that says what is wrong with the table, and where: the line of the key that `said` begins with."""
        begins = ((key, (f"{key}: ", f"has the unknown field {key!r}")) for key in self.lines)
        line = next((self.lines[key] for key, ways in begins if said.startswith(ways)), self.line)
        return UsageError(f"{self.file}:{line}: {self.header} {said}")

    @property
    def header(self) -> str:
        """How it is written."""
        return {SERVERS: f"[{SERVERS}.{self.name}]", APPROVER: f"[{APPROVER}]"}.get(self.kind, f"[[{self.kind}]]")

    @property
    def title(self) -> str:
        """The same with what it calls itself, as far as it does."""
        said = self.fields.get("name") or self.fields.get("id")
        return f"{self.header} {said}" if isinstance(said, str) else self.header

    @property
    def origin(self) -> str:
        """FILE:LINE."""
        return f"{self.file}:{self.line}"


def extension_tables(text: str, table: Mapping[str, object], file: str) -> tuple[ExtensionTable, ...]:
    """Return those that `table`, read from `text`, has. Raises UsageError for one that is no table."""
    return tuple(_tables(_Lines(text), table, file))


def project_tables(data: bytes, file: str) -> tuple[ExtensionTable, ...]:
    """Return what a project's own file adds. Raises UsageError for a file that is not understood, or says anything else."""
    try:
        text, table = read_toml(data)
    except ValueError as error:
        raise UsageError(f"{file}: {error}") from None
    for key in table:
        if key not in _OF_PROJECTS:
            line = _Lines(text).at("", 0, key)
            what = f"unknown table{nearest(key, _OF_PROJECTS)}"
            raise UsageError(f"{file}:{line}: {key}: {what}; a project may add tools, servers and hooks, and no more")
    return tuple(replace(one, of_project=True) for one in extension_tables(text, table, file))


class _Lines:
    """Where keys stand in a text."""

    def __init__(self, text: str) -> None:
        self._lines = key_lines(text)

    def at(self, table: str, index: int, key: str) -> int:
        return self._lines.get((table, index, key)) or self._lines.get((table, index, ""), 1)

    def of(self, table: str, index: int, keys: Sequence[str]) -> dict[str, int]:
        return {key: self.at(table, index, key) for key in keys}


def _tables(lines: _Lines, table: Mapping[str, object], file: str) -> Iterator[ExtensionTable]:
    for kind in (TOOL, HOOK):
        listed = table.get(kind, [])
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            raise UsageError(f"{file}:{lines.at('', 0, kind)}: {kind}: must be tables: [[{kind}]]")
        for index, fields in enumerate(listed):
            at = lines.at(kind, index, "")
            yield ExtensionTable(
                kind=kind, name="", fields=fields, file=file, line=at, lines=lines.of(kind, index, tuple(fields))
            )
    yield from _servers(lines, table.get("mcp", {}), file)
    if APPROVER in table:
        yield _plain(lines, APPROVER, APPROVER, "", table[APPROVER], file)


def _servers(lines: _Lines, table: object, file: str) -> Iterator[ExtensionTable]:
    if not isinstance(table, dict) or not isinstance(held := table.get("servers", {}), dict):
        raise UsageError(f"{file}:{lines.at('', 0, 'mcp')}: mcp: must be tables: [{SERVERS}.NAME]")
    for key in table:
        if key != "servers":
            raise UsageError(f"{file}:{lines.at('mcp', 0, key)}: [mcp] {key}: unknown key{nearest(key, ['servers'])}")
    for name, fields in held.items():
        yield _plain(lines, SERVERS, f"{SERVERS}.{name}", name, fields, file)


def _plain(lines: _Lines, kind: str, header: str, name: str, fields: object, file: str) -> ExtensionTable:
    """Return a table that is none of several of its name."""
    parent, _, key = header.rpartition(".")
    at = lines.at(parent, 0, key)
    if not isinstance(fields, dict):
        raise UsageError(f"{file}:{at}: {header}: must be a table: [{header}]")
    keys = lines.of(header, 0, tuple(fields))
    return ExtensionTable(kind=kind, name=name, fields=fields, file=file, line=at, lines=keys)
