"""`harness audit stats --sql QUERY`: DuckDB (the extra `sql`) answers the query. It can read only these records."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING

from harness.actions import JsonValue
from harness.errors import LogError, UsageError
from harness.log.reader import WholeRecords
from harness.terminal.console import Console
from harness.terminal.tables import Column, Table, TableRow
from harness.text.visible import visible_line

if TYPE_CHECKING:
    import duckdb

BATCH = 1_000
"""Maximum number of result rows in one table."""
MOST_CHARACTERS = 500
"""Maximum number of characters in a table cell. JSON objects have the full text."""
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


def answer_query(paths: Sequence[str], session: str, query: str, console: Console | None) -> int:
    """Write the rows of a SELECT over the view `records`: as tables to `console`, or as one JSON object per line.

    Returns the number of invalid log lines, which the view leaves out.

    Raises UsageError if the query is not one SELECT, if it fails, or if DuckDB is missing; LogError if a log cannot be
    read.
    """
    try:
        import duckdb
    except ImportError:
        raise UsageError(_MISSING) from None
    with tempfile.TemporaryDirectory(prefix="harness-sql-") as folder:
        file = os.path.join(folder, "records.jsonl")
        left_out = _copy_records(paths, session, file)
        try:
            with duckdb.connect(":memory:", config=_settings(folder)) as connection:
                unread = _make_view(connection, file)
                names, result = _executed(connection, query)
                batches = iter(lambda: result.fetchmany(BATCH), [])
                if console is None:
                    _write_objects(names, batches)
                else:
                    _write_table(names, batches, console)
        except duckdb.Error as error:
            error_text = str(error).partition("Traceback")[0].replace(file, "the records")
            raise UsageError(f"DuckDB: {visible_line(' '.join(error_text.split()), 1_000)}") from None
    return left_out + unread


def _copy_records(paths: Sequence[str], session: str, target: str) -> int:
    """Write the records of the logs, or of one session in them, each with its log's name.

    Returns the number of invalid lines. A torn last line is not counted, since a session may be writing it. Raises
    LogError.
    """
    left_out = 0
    try:
        with open(target, "wb") as file:
            for path in paths:
                log = json.dumps(os.fsencode(path).decode(errors="replace")).encode()
                records = WholeRecords(path)
                for line, record in records:
                    if not session or record["session"] == session:
                        file.write(b'{"log":%b,"json":%b}\n' % (log, line))
                left_out += records.left_out
    except OSError as error:
        raise LogError(f"the records cannot be copied for DuckDB: {error.strerror}") from None
    return left_out


def _settings(folder: str) -> dict[str, str | bool | int | float | list[str]]:
    """Return DuckDB's settings: no network, no extensions, and no files outside of `folder`."""
    return {
        "temp_directory": os.path.join(folder, "spilt"),
        "extension_directory": os.path.join(folder, "extensions"),
        "secret_directory": os.path.join(folder, "secrets"),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "allow_unsigned_extensions": False,
        "allow_persistent_secrets": False,
        "python_enable_replacements": False,
        "preserve_insertion_order": False,
    }


def _make_view(connection: duckdb.DuckDBPyConnection, file: str) -> int:
    """Create the view `records` and lock the connection: a query can read only `file` and change no setting.

    The view has `log`, one column per field and the whole record as `json`. A missing field is null. A field of the wrong
    type is null, or its JSON in a text column. DuckDB parses only the fields that a query names.

    Returns the number of records that DuckDB cannot read.
    """
    name = "'" + file.replace("'", "''") + "'"
    connection.execute(f"SET allowed_paths = [{name}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    columns = [f"json ->> '$.{name}' AS \"{name}\"" for name in _TEXTS]
    columns += [f"TRY_CAST(json ->> '$.{name}' AS BIGINT) AS \"{name}\"" for name in _NUMBERS]
    columns += ["TRY_CAST(json ->> '$.seconds' AS DOUBLE) AS seconds", "json -> '$.facets' AS facets"]
    columns += ["json -> '$.effects' AS effects", "json -> '$.masked' AS masked", "json"]
    lines = f"read_ndjson({name}, columns = {{log: 'VARCHAR', json: 'JSON'}}, ignore_errors = true)"
    connection.execute(f"CREATE VIEW records AS SELECT log, {', '.join(columns)} FROM {lines} WHERE json IS NOT NULL")  # noqa: S608
    (unread,) = connection.execute(f"SELECT count(*) FROM {lines} WHERE json IS NULL").fetchone() or (0,)  # noqa: S608
    return int(unread)


def _executed(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[list[str], duckdb.DuckDBPyConnection]:
    """Execute a query. Return the names of its columns, and the connection to fetch its rows from.

    A timestamp with a time zone is returned as text, since its own type needs another library (pytz). Columns with the
    same name are numbered from the second on, so that all of them fit in one JSON object.
    """
    import duckdb

    statements = connection.extract_statements(query)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise UsageError("--sql takes one SELECT; the view is called records")
    result = connection.execute(statements[0])
    names: list[str] = []
    for name, *_ in result.description or ():
        same = (f"{name}_{number}" for number in count(2))
        names.append(next(candidate for candidate in chain([name], same) if candidate not in names))
    kinds = [str(column[1]) for column in result.description or ()]
    if any("TIME ZONE" in kind for kind in kinds):
        columns = (f"#{n}::VARCHAR" if "TIME ZONE" in kind else f"#{n}" for n, kind in enumerate(kinds, start=1))
        inner = statements[0].query.rstrip().rstrip(";")
        result = connection.execute(f"SELECT {', '.join(columns)} FROM ({inner}\n)")  # noqa: S608 - the user's query
    return names, result


def _write_objects(names: Sequence[str], batches: Iterator[list[tuple[object, ...]]]) -> None:
    for rows in batches:
        for row in rows:
            sys.stdout.write(json.dumps(dict(zip(names, map(_plain, row), strict=True))) + "\n")


def _write_table(names: Sequence[str], batches: Iterator[list[tuple[object, ...]]], console: Console) -> None:
    """Write rows under headings, a table for each batch."""
    headed = True
    for rows in chain([next(batches, [])], batches):
        numeric = [any(isinstance(row[n], int | float) for row in rows) for n in range(len(names))]
        columns = (
            Column(name=visible_line(name, MOST_CHARACTERS), right=right, folds=not right)
            for name, right in zip(names, numeric, strict=True)
        )
        cells = (tuple(visible_line(_cell(value), MOST_CHARACTERS) for value in row) for row in rows)
        table_rows = tuple(TableRow(cells=row) for row in cells)
        console.table(Table(columns=tuple(columns), rows=table_rows, headed=headed or bool(console.width)))
        headed = False


def _cell(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else str(_plain(value))


def _plain(value: object) -> JsonValue:
    """Return a value of a row as a JSON value. A type that JSON lacks becomes text."""
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
