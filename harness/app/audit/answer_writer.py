"""Writer of an answer about logs: lines that are safe to display, or one JSON object per line."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from harness.actions import JsonValue
from harness.audit.calls import LoggedCall, Who, answerer, word
from harness.log.order import LogRecord
from harness.paths import short_place
from harness.terminal.console import FinishedOutput
from harness.terminal.local_time import local_time
from harness.terminal.styles import Tone
from harness.terminal.tables import GAP, Column, Table, TableRow
from harness.text.visible import visible_line

MOST_ROWS = 500
"""Maximum number of rows of one table. Longer answers are split into tables, so that the first rows appear early."""


class AnswerWriter:
    """Writes an answer to stdout, as text or as JSON. Calls for the other form are ignored.

    Use it in a `with` statement. The last table is written at the end of the block.
    """

    def __init__(self, environment: Mapping[str, str], *, as_json: bool) -> None:
        self.as_json = as_json
        self._console = FinishedOutput(environment)
        self.width = 0 if as_json else self._console.width
        """Width of the terminal in columns. 0 if the output is JSON or not a terminal."""
        self.at_terminal = self.width > 0
        self._columns: tuple[Column, ...] = ()
        self._rows: list[TableRow] = []
        """Rows of the table that has not been written yet."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._write_table()

    def row(self, fields: Mapping[str, JsonValue]) -> None:
        """Write one object, if JSON was requested. Raises BrokenPipeError if the reader is gone."""
        if self.as_json:
            sys.stdout.write(json_text(fields) + "\n")

    def line(self, text: str, tone: Tone = Tone.PLAIN, *, width: int = 2_000) -> None:
        """Write one line of at most `width` characters, unless JSON was requested.

        Raises OSError if it cannot be written.
        """
        if self.as_json:
            return
        self._write_table()
        self._console.line(visible_line(text, width), tone)

    def entry(self, columns: tuple[Column, ...], cells: Sequence[str], tone: Tone = Tone.PLAIN) -> None:
        """Write one entry: a row of a table at a terminal, else a line of its cells. Ignored for JSON."""
        if self.as_json:
            return
        if not self.at_terminal:
            parts = (column.in_line.format(cell) for column, cell in zip(columns, cells, strict=True) if cell)
            self.line(GAP.join(parts), tone, width=8_000)
            return
        if columns is not self._columns or len(self._rows) == MOST_ROWS:
            self._write_table()
        self._columns = columns
        self._rows.append(TableRow(cells=tuple(cells), tone=tone))

    def moment(self, record: LogRecord, key: str = "time") -> str:
        """Return the time of a record: local time at a terminal, else `2026-01-31 10:00:00Z`."""
        stamp = word(record.get(key))
        time_text = local_time(stamp, seconds=True) if self.at_terminal else f"{stamp[:19].replace('T', ' '):19}Z"
        return visible_line(time_text, 20)

    def _write_table(self) -> None:
        if self._rows:
            self._console.table(Table(columns=self._columns, rows=tuple(self._rows)))
            self._rows.clear()


def to_stdout(pieces: Iterable[str]) -> None:
    """Write a text to stdout in UTF-8, with lone surrogates escaped. Raises OSError if it cannot be written."""
    # Writes to the stream, not to its buffer, because a CI job replaces the stream by a guard.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.stdout.writelines(pieces)
    sys.stdout.flush()


def json_text(value: Mapping[str, JsonValue]) -> str:
    """Return an object as one line of ASCII JSON with sorted keys.

    Values that are nested too deep are left out, and a field `left_out` says so.
    """
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False)
    except RecursionError:
        plain = {name: item for name, item in value.items() if item is None or isinstance(item, str | int | float)}
        return json.dumps({**plain, "left_out": "values that are nested too deep"}, sort_keys=True, allow_nan=False)


def short_digest(digest: str | None) -> str:
    """Return the first 12 digits of a digest, or `none`. The JSON form has the whole digest."""
    return visible_line(digest[:12], 12) if digest else "none"


def name(call: LoggedCall) -> str:
    """Return `session#call`. For a call of a batch, the task comes first."""
    task = f"{visible_line(call.task, 64)} " if call.task else ""
    return f"{task}{visible_line(call.session, 40)}#{visible_line(call.number, 20)}"


def tool_and_summary(call: LoggedCall) -> tuple[str, str]:
    """Return the tool of a call and its summary."""
    return visible_line(call.tool, 60), visible_line(call.summary, 100)


def deciding_part(call: LoggedCall) -> str:
    """Return the rule or part that decided a call, with its place."""
    return visible_line(short_place(call.by), 300) or "the log does not say"


def answer_source(call: LoggedCall) -> str:
    """Return who or what answered the question of a call. For a user here, the account is added."""
    by = answerer(call.answered)
    is_here = call.answered_by is Who.PERSON and not call.answered.get("who")
    account = f" ({call.user})" if call.user and is_here else ""
    return visible_line(f"{by or 'who is not said'}{account}", 100)


def seconds(call: LoggedCall) -> str:
    """Return the time until the answer, in seconds."""
    value = call.answered.get("seconds")
    return f"{visible_line(word(value), 20)} s" if value is not None else "in a time that is not said"


def quoted(words: str) -> str:
    """Return the user's words in quotation marks. Empty if there are none."""
    return f'"{visible_line(words, 300)}"' if words else ""
