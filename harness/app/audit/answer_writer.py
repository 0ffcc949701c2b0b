"""Form of an answer about logs: lines that are safe to show, or one JSON object a line."""

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
"""Maximum number of rows of one table: of more entries the first are shown before the last are found."""


class AnswerWriter:
    """Stdout, as text or as JSON; of two forms of the same thing, the one that was asked for is written.

    Used as a context: at its end the last table is written.
    """

    def __init__(self, environment: Mapping[str, str], *, as_json: bool) -> None:
        self.as_json = as_json
        self._console = FinishedOutput(environment)
        self.width = 0 if as_json else self._console.width
        """Columns of the terminal where text is written to one, else 0."""
        self.at_terminal = self.width > 0
        self._columns: tuple[Column, ...] = ()
        self._rows: list[TableRow] = []
        """Rows of the table that is not written yet."""

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
        """Write one line of at most `width` characters, where text was asked for.

        Raises OSError where it cannot be written.
        """
        if self.as_json:
            return
        self._write_table()
        self._console.line(visible_line(text, width), tone)

    def entry(self, columns: tuple[Column, ...], cells: Sequence[str], tone: Tone = Tone.PLAIN) -> None:
        """Write one of the things that were found: a row of a table for a terminal, else a line of its cells."""
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
        """Return the time of a record: by the local clock at a terminal, else `2026-01-31 10:00:00Z`."""
        stamp = word(record.get(key))
        time_text = local_time(stamp, seconds=True) if self.at_terminal else f"{stamp[:19].replace('T', ' '):19}Z"
        return visible_line(time_text, 20)

    def _write_table(self) -> None:
        if self._rows:
            self._console.table(Table(columns=self._columns, rows=tuple(self._rows)))
            self._rows.clear()


def to_stdout(pieces: Iterable[str]) -> None:
    """Write a text to stdout in UTF-8, lone surrogates as escapes. Raises OSError if it cannot be written."""
    # Through the stream, not to the bytes below it: in a CI job a guard stands before them.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.stdout.writelines(pieces)
    sys.stdout.flush()


def json_text(value: Mapping[str, JsonValue]) -> str:
    """Return an object as one line of JSON in ASCII, keys sorted. Of one that is too deep to be written, it says so."""
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False)
    except RecursionError:
        plain = {name: item for name, item in value.items() if item is None or isinstance(item, str | int | float)}
        return json.dumps({**plain, "left_out": "values that are nested too deep"}, sort_keys=True, allow_nan=False)


def short_digest(digest: str | None) -> str:
    """Return the beginning of a digest, or `none`: the JSON form has the whole."""
    return visible_line(digest[:12], 12) if digest else "none"


def name(call: LoggedCall) -> str:
    """Return `session#call`, of a batch with the task in front."""
    task = f"{visible_line(call.task, 64)} " if call.task else ""
    return f"{task}{visible_line(call.session, 40)}#{visible_line(call.number, 20)}"


def tool_and_summary(call: LoggedCall) -> tuple[str, str]:
    """Return the tool and what it was to do."""
    return visible_line(call.tool, 60), visible_line(call.summary, 100)


def deciding_part(call: LoggedCall) -> str:
    """Return the deciding part of a call, with its place."""
    return visible_line(short_place(call.by), 300) or "the log does not say"


def answer_source(call: LoggedCall) -> str:
    """Return the source of the answer before a call, a person with the account of the operating system."""
    by = answerer(call.answered)
    is_here = call.answered_by is Who.PERSON and not call.answered.get("who")
    account = f" ({call.user})" if call.user and is_here else ""
    return visible_line(f"{by or 'who is not said'}{account}", 100)


def seconds(call: LoggedCall) -> str:
    """Return the duration of the answer."""
    value = call.answered.get("seconds")
    return f"{visible_line(word(value), 20)} s" if value is not None else "in a time that is not said"


def quoted(words: str) -> str:
    """Return a person's words in quotation marks; empty without any."""
    return f'"{visible_line(words, 300)}"' if words else ""
