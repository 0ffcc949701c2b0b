"""`harness audit stats --sql QUERY`: DuckDB answers it (the extra `sql`). It may read these logs and nothing else."""

from __future__ import annotations

import json
import mmap
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING

from harness.actions import JsonValue
from harness.cli.text_lines import aligned, column_widths
from harness.errors import LogError, UsageError
from harness.log.reader import is_in_use, is_whole
from harness.text.visible import visible_line

if TYPE_CHECKING:
    import duckdb

LONGEST_RECORD = 16_777_216
"""Bytes. A record that is longer cannot be read in this way; without `--sql` it can."""
BATCH = 1_000
"""Rows of an answer that are looked at together, for the width of its columns."""
MAX_CELL = 60
_MISSING = "--sql needs DuckDB: pip install 'permission-harness[sql]'"

_TEXTS = (
    "time", "session", "kind", "tool", "decision", "by", "source", "rule", "file", "layer", "reason", "summary", "answer",
    "words", "status", "error_code", "content", "arguments", "arguments_sha256", "policy_sha256", "changed_path",
    "before_sha256", "after_sha256", "text", "finish_reason", "model", "mode", "workspace", "stop", "message", "prev",
)  # fmt: skip
_NUMBERS = (
    "seq", "mono_ns", "call", "turn", "step", "line", "exit_code", "duration_ms", "output_bytes", "input_tokens",
    "output_tokens", "ms", "retries",
)  # fmt: skip


def answer_query(paths: Sequence[str], session: str, query: str, *, as_json: bool) -> int:
    """Write the rows that a SELECT over the view `records` yields: aligned, or an object a line.

    Returns how many lines of the logs are no JSON objects: the view leaves them out.

    Raises UsageError for anything but one SELECT, for one that fails, and where DuckDB is not installed.
    """
    with connected(paths) as (connection, logs), told_errors(logs):
        _make_view(connection, logs, session)
        lock(connection)
        found = _executed(connection, query)
        names = _apart(str(column[0]) for column in found.description or ())
        write = _write_objects if as_json else _write_table
        write(names, iter(lambda: found.fetchmany(BATCH), []))
        whole = f"SELECT count(*) FROM {_objects(logs)} WHERE json IS NULL OR json_type(json) != 'OBJECT'"  # noqa: S608
        (left_out,) = connection.execute(whole).fetchone() or (0,)
        return int(left_out) + logs.blank


class LinkedLogs:
    """The logs under names that need no quoting and hold no pattern, in a private folder."""

    def __init__(self, folder: str, paths: Sequence[str]) -> None:
        self.torn = 0
        self.blank = 0
        """Lines of blanks, which DuckDB passes over in silence."""
        self.names: list[tuple[str, str]] = []
        """What DuckDB is given, and what the person calls it."""
        for number, path in enumerate(paths):
            name = os.path.join(folder, f"{number}.jsonl")
            torn = not is_whole(path)
            self.torn += torn
            if torn or is_in_use(path):
                _copy_whole_lines(path, name)
            else:
                os.symlink(os.path.abspath(path), name)
            self.blank += _blank_lines(name)
            self.names.append((name, path))

    @property
    def listed(self) -> str:
        """The names as a list in SQL."""
        return "[" + ", ".join(quoted(name) for name, _ in self.names) + "]"

    def named(self, text: str) -> str:
        """Return what DuckDB said with the logs called as the person calls them."""
        for name, path in reversed(self.names):
            text = text.replace(name, path)
        return text


@contextmanager
def connected(paths: Sequence[str]) -> Iterator[tuple[duckdb.DuckDBPyConnection, LinkedLogs]]:
    """Yield a connection that may read these logs and nothing else, and has no network and no extensions."""
    try:
        import duckdb
    except ImportError:
        raise UsageError(_MISSING) from None
    with tempfile.TemporaryDirectory(prefix="harness-sql-") as folder:
        logs = LinkedLogs(folder, paths)
        settings: dict[str, str | bool | int | float | list[str]] = {
            "temp_directory": os.path.join(folder, "spilt"),
            "extension_directory": os.path.join(folder, "extensions"),
            "secret_directory": os.path.join(folder, "secrets"),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "allow_unsigned_extensions": False,
            "allow_persistent_secrets": False,
            "python_enable_replacements": False,
        }
        with duckdb.connect(":memory:", config=settings) as connection:
            connection.execute(f"SET allowed_paths = {logs.listed}")
            connection.execute("SET enable_external_access = false")
            yield connection, logs


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """Keep a query from changing any setting."""
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET lock_configuration = true")


@contextmanager
def told_errors(logs: LinkedLogs) -> Iterator[None]:
    """Make one line of what DuckDB says."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        said = logs.named(str(error).partition("Traceback")[0])
        raise UsageError(f"DuckDB: {visible_line(' '.join(said.split()), 1_000)}") from None


def _only_select(connection: duckdb.DuckDBPyConnection, query: str) -> duckdb.Statement:
    import duckdb

    statements = connection.extract_statements(query)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise UsageError("--sql takes one SELECT; the view is called records")
    return statements[0]


def _executed(connection: duckdb.DuckDBPyConnection, query: str) -> duckdb.DuckDBPyConnection:
    """Execute a query, its moments with a time zone as text: as what they are, they need a library of their own (pytz)."""
    statement = _only_select(connection, query)
    found = connection.execute(statement)
    kinds = [str(column[1]) for column in found.description or ()]
    if not any("TIME ZONE" in kind for kind in kinds):
        return found
    told = ", ".join(
        f"c{n}{'::VARCHAR' if 'TIME ZONE' in kind else ''} AS {_column(str(column[0]).replace(chr(34), 2 * chr(34)))}"
        for n, (kind, column) in enumerate(zip(kinds, found.description or (), strict=True))
    )
    inner = ", ".join(f"c{n}" for n in range(len(kinds)))
    return connection.execute(f"SELECT {told} FROM ({statement.query.rstrip().rstrip(';')}\n) AS found({inner})")  # noqa: S608


def _apart(names: Iterable[str]) -> list[str]:
    """Return the names of columns, numbered where two are alike: in an object, one would take the place of the other."""
    taken: list[str] = []
    for name in names:
        number, one = 1, name
        while one in taken:
            number += 1
            one = f"{name}_{number}"
        taken.append(one)
    return taken


def _blank_lines(name: str) -> int:
    """Return how many lines hold nothing but blanks. They are looked for one by one only where one begins with a blank."""
    with open(name, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return 0
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if not content[:1].isspace() and not re.search(rb"\n\s", content):
                return 0
        return sum(line.isspace() for line in file)


def _copy_whole_lines(path: str, name: str) -> None:
    """Copy a log up to its last line end: what is behind it is no record yet."""
    try:
        with open(path, "rb") as source, open(name, "wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        with open(name, "r+b") as target:
            target.truncate(_end_of_lines(name))
    except OSError as error:
        raise LogError(f"the action log cannot be read: {path}: {error.strerror}") from None


def _end_of_lines(name: str) -> int:
    """Return the size up to the last line end."""
    with open(name, "rb") as file:
        position = file.seek(0, os.SEEK_END)
        while position > 0:
            step = min(1 << 16, position)
            position -= step
            file.seek(position)
            place = file.read(step).rfind(b"\n")
            if place >= 0:
                return position + place + 1
    return 0


def quoted(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


# --- the person's query ---


def _make_view(connection: duckdb.DuckDBPyConnection, logs: LinkedLogs, session: str) -> None:
    """Make `records`: a column a field, null where a record has none, `log`, and the whole record as `json`.

    A field is looked for only where a query names it; one that is of another type than it should be is null, or its JSON.
    """
    columns = [f"json ->> '$.{name}' AS {_column(name)}" for name in _TEXTS]
    columns += [f"TRY_CAST(json ->> '$.{name}' AS BIGINT) AS {_column(name)}" for name in _NUMBERS]
    columns += ["TRY_CAST(json ->> '$.seconds' AS DOUBLE) AS seconds", "json -> '$.facets' AS facets"]
    columns += ["json -> '$.effects' AS effects", "json -> '$.masked' AS masked", "json"]
    path = "CASE filename " + " ".join(f"WHEN {quoted(name)} THEN {quoted(path)}" for name, path in logs.names)
    where = f"AND json ->> '$.session' = {quoted(session)}" if session else ""
    connection.execute(
        f"CREATE VIEW records AS SELECT {path} END AS log, {', '.join(columns)} "  # noqa: S608 - quoted, and the person's own
        f"FROM {_objects(logs)} WHERE json_type(json) = 'OBJECT' {where}"
    )


def _objects(logs: LinkedLogs) -> str:
    """Return the table of the lines: a column `json`, null where a line is none."""
    return f"read_ndjson_objects({logs.listed}, filename = true, maximum_object_size = {LONGEST_RECORD}, ignore_errors = true)"


def _column(name: str) -> str:
    return f'"{name}"'


def _write_objects(names: Sequence[str], batches: Iterator[list[tuple[object, ...]]]) -> None:
    for rows in batches:
        for row in rows:
            sys.stdout.write(json.dumps(dict(zip(names, map(_plain, row), strict=True))) + "\n")


def _write_table(names: Sequence[str], batches: Iterator[list[tuple[object, ...]]]) -> None:
    """Write rows under headings; the first of them say how wide the columns are, and longer cells are cut in the middle."""
    first = next(batches, [])
    left = [n for n in range(len(names)) if not any(isinstance(row[n], int | float) for row in first)]
    cells = ([_cell(value) for value in row] for row in chain(first, chain.from_iterable(batches)))
    beginning = [names, *islice(cells, len(first))]
    widths = column_widths(beginning, 0, [(n, MAX_CELL) for n in range(len(names))])
    for row in chain(beginning, cells):
        sys.stdout.write(f"{aligned(row, widths, left)}\n")


def _cell(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else str(_plain(value))


def _plain(value: object) -> JsonValue:
    """Return a value of a row as JSON knows it: what it does not know becomes text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if value - value == 0 else str(value)  # not finite
        case list() | tuple():
            return [_plain(item) for item in value]
        case dict():
            return {str(name): _plain(item) for name, item in value.items()}
        case _:
            return str(value)
