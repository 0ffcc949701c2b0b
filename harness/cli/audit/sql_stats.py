"""The statistics of logs, counted by DuckDB: the answer of harness/audit/stats.py, sooner; writes to no log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.audit.stats import Statistics, add_answers, seconds_of_dates
from harness.cli.audit.sql import BATCH, LONGEST_RECORD, Logs, connected, lock, quoted, told_errors
from harness.log.order import ANSWERS, DECISIONS, MOST_FACETS, STATUSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import duckdb

_FIELDS = (
    *((name, "VARCHAR") for name in ("kind", "session", "tool", "decision", "by", "answer", "status", "purpose")),
    *((name, "VARCHAR") for name in ("source", "rule", "file", "layer")),
    *((name, "VARCHAR") for name in ("mono_ns", "call", "duration_ms", "output_bytes", "input_tokens")),
    *((name, "VARCHAR") for name in ("output_tokens", "retry_seconds", "facet_count")),
    *((name, "JSON") for name in ("line", "masked", "facets", "seconds", "cost")),
)
"""What the statistics need; numbers as texts, so that a value of another type is no error."""
_WHOLE = ("mono_ns", "duration_ms", "output_bytes", "input_tokens", "output_tokens", "facet_count")
_ORIGIN = ("source", "rule", "file", "line", "layer")
_SUMS = {
    "records": "count(*)",
    "sessions": "count(*) FILTER (kind = 'session_started')",
    "prompts": "count(*) FILTER (kind = 'user_message')",
    "turns": "count(*) FILTER (kind = 'model_response' AND purpose IS NULL)",
    "requests": "count(*) FILTER (kind = 'model_request')",
    "retries": "count(*) FILTER (kind = 'error' AND retry_seconds IS NOT NULL)",
    "errors": "count(*) FILTER (kind = 'error' AND retry_seconds IS NULL)",
    "input_tokens": "sum(input_tokens) FILTER (kind IN ('model_response', 'error') AND input_tokens >= 0)",
    "output_tokens": "sum(output_tokens) FILTER (kind IN ('model_response', 'error') AND output_tokens >= 0)",
    "calls": "count(*) FILTER (kind = 'call_proposed')",
    "undecided": f"count(*) FILTER (kind = 'decision' AND decision NOT IN {DECISIONS})",
    "masked": "sum(list_sum(map_values(TRY_CAST(masked AS MAP(VARCHAR, UBIGINT)))))",
    "cut_facets": f"count(*) FILTER (kind = 'decision' AND json_array_length(facets) BETWEEN {MOST_FACETS} "
    "AND facet_count - 1)",
}
_DECIDED = f"kind = 'decision' AND decision IN {DECISIONS}"


def sql_statistics(paths: Sequence[str], session: str) -> Statistics:
    """Return the statistics of these logs, or of one session in them.

    Raises UsageError where a record is too long for it, and where DuckDB is not installed.
    """
    with connected(paths) as (connection, logs), told_errors(logs):
        lock(connection)
        source = _source(logs)
        whole = ", ".join(f"TRY_CAST({name} AS BIGINT) AS {name}" for name in _WHOLE)
        where = f"session = {quoted(session)}" if session else "true"
        # The logs are read once: what is asked below is asked of this table, which has no long texts.
        connection.execute(
            f"CREATE TEMP TABLE log AS SELECT * EXCLUDE (filename, time) REPLACE ({whole}, "  # noqa: S608
            f" TRY_CAST(retry_seconds AS DOUBLE) AS retry_seconds), {_numbered(logs)} AS place FROM {source}"
            f" WHERE {where} OR kind IS NULL OR session IS NULL"
        )
        found = Statistics()
        found.totals |= {"logs": len(paths), "torn": logs.torn}
        _enter_rules(connection, found)
        _enter_answers(connection, found)
        _enter_tools(connection, found)
        _enter_totals(connection, found)
        found.totals["left_out"] += logs.blank
        _enter_spans(connection, found, source, where)
        return found


def _source(logs: Logs) -> str:
    fields = ", ".join(f"\"{name}\": '{kind}'" for name, kind in (*_FIELDS, ("time", "VARCHAR")))
    return (
        f"read_json({logs.listed}, format = 'newline_delimited', columns = {{{fields}}}, filename = true, "
        f"maximum_object_size = {LONGEST_RECORD}, ignore_errors = true)"
    )


def _numbered(logs: Logs) -> str:
    """Return the place of a record's log among all: a session's name and a call's number are its own in one log only."""
    if len(logs.names) == 1:
        return "0"
    return f"list_position({logs.listed}, filename)"


def _enter_rules(connection: duckdb.DuckDBPyConnection, found: Statistics) -> None:
    decisions = ", ".join(f"count(*) FILTER (decision = '{word}')" for word in DECISIONS)
    origin = ", ".join(f"min({_scalar(name)})" for name in _ORIGIN)
    query = f"SELECT coalesce(\"by\", ''), count(*), {decisions}, {origin} FROM log WHERE {_DECIDED} GROUP BY 1"  # noqa: S608
    for by, calls, *rest in _rows(connection, query):
        rule = found.rule(str(by))
        rule.calls = _whole(calls)
        rule.decisions = {word: _whole(count) for word, count in zip(DECISIONS, rest, strict=False)}
        texts = {name: value if isinstance(value, str) else None for name, value in zip(_ORIGIN, rest[4:], strict=True)}
        line = texts["line"]
        rule.origin = {**texts, "line": int(line) if line is not None and line.isdecimal() else None}
    query = f"""
        SELECT part."by", count(*) FROM (
            SELECT unnest(TRY_CAST(facets AS STRUCT("by" VARCHAR)[])) AS part FROM log WHERE {_DECIDED}
        ) WHERE part."by" != '' GROUP BY 1
    """  # noqa: S608
    for by, facets in _rows(connection, query):
        found.rule(str(by)).facets = _whole(facets)


def _scalar(name: str) -> str:
    return f"CASE WHEN json_type({name}) = 'UBIGINT' THEN {name}::VARCHAR END" if name == "line" else name


def _enter_answers(connection: duckdb.DuckDBPyConnection, found: Statistics) -> None:
    query = f"""
        SELECT coalesce(d."by", ''), a.answer, a."by",
            CASE WHEN json_type(a.seconds) IN ('DOUBLE', 'BIGINT', 'UBIGINT') THEN TRY_CAST(a.seconds AS DOUBLE) END, count(*)
        FROM (SELECT * FROM log WHERE kind = 'approval_answered' AND answer IN {ANSWERS}) AS a
        JOIN (SELECT * FROM log WHERE {_DECIDED}) AS d USING (place, session, call)
        GROUP BY 1, 2, 3, 4
    """  # noqa: S608
    for by, answer, who, seconds, times in _rows(connection, query):
        known = float(seconds) if isinstance(seconds, int | float) else None
        add_answers(found.rule(str(by)), str(answer), who if isinstance(who, str) else "", known, _whole(times))


def _enter_tools(connection: duckdb.DuckDBPyConnection, found: Statistics) -> None:
    statuses = ", ".join(f"count(*) FILTER (status = '{word}')" for word in STATUSES)
    sums = ", ".join(f"sum({name}) FILTER ({name} >= 0)" for name in ("duration_ms", "output_bytes"))
    query = f"SELECT coalesce(tool, ''), {sums}, {statuses} FROM log WHERE kind = 'outcome' GROUP BY 1"  # noqa: S608
    for name, duration, size, *counts in _rows(connection, query):
        tool = found.tool(str(name))
        tool.duration_ms, tool.output_bytes = _whole(duration), _whole(size)
        tool.statuses = dict(zip(STATUSES, map(_whole, counts), strict=True))
    for name, calls in _rows(
        connection, "SELECT coalesce(tool, ''), count(*) FROM log WHERE kind = 'call_proposed' GROUP BY 1"
    ):
        found.tool(str(name)).calls = _whole(calls)
    query = """
        SELECT coalesce(tool, ''), count(*) FROM (SELECT * FROM log WHERE kind = 'intent') AS begun
        ANTI JOIN (SELECT * FROM log WHERE kind = 'outcome') AS ended USING (place, session, call) GROUP BY 1
    """
    for name, unknown in _rows(connection, query):
        found.tool(str(name)).unknown = _whole(unknown)
        found.totals["unknown"] += _whole(unknown)


def _enter_totals(connection: duckdb.DuckDBPyConnection, found: Statistics) -> None:
    query = f"SELECT {', '.join(_SUMS.values())} FROM log WHERE kind IS NOT NULL AND session IS NOT NULL"  # noqa: S608
    for sums in _rows(connection, query):
        found.totals |= dict(zip(_SUMS, map(_whole, sums), strict=True))
    cost = "CASE WHEN json_type(cost) IN ('DOUBLE', 'BIGINT', 'UBIGINT') THEN TRY_CAST(cost AS DOUBLE) END"
    used = "kind = 'model_response' OR kind = 'error' AND input_tokens IS NOT NULL"
    query = f"SELECT coalesce({cost} >= 0, false), sum({cost}), count(*) FROM log WHERE {used} GROUP BY 1"  # noqa: S608
    for is_known, dollars, replies in _rows(connection, query):
        if is_known:
            found.cost.add(float(dollars) if isinstance(dollars, int | float) else 0.0, _whole(replies))
        else:
            found.cost.unknown += _whole(replies)
    for (left_out,) in _rows(connection, "SELECT count(*) FROM log WHERE kind IS NULL OR session IS NULL"):
        found.totals["left_out"] = _whole(left_out)


def _enter_spans(connection: duckdb.DuckDBPyConnection, found: Statistics, source: str, where: str) -> None:
    """Add up how long sessions took; those of older logs, without a monotonic clock, need the dates, hence another look."""
    groups = "FROM log WHERE kind IS NOT NULL AND session IS NOT NULL GROUP BY place, session"
    spans = f"SELECT max(mono_ns)::HUGEINT - min(mono_ns) AS span {groups}"
    query = f"SELECT sum(span), count(*) FILTER (span IS NULL) FROM ({spans})"  # noqa: S608
    undated = 0
    for span, without in _rows(connection, query):
        found.wall_seconds, undated = _whole(span) / 1e9, _whole(without)
    query = f"""
        SELECT min(time), max(time) FROM {source} WHERE kind IS NOT NULL AND ({where})
        GROUP BY filename, session HAVING count(TRY_CAST(mono_ns AS BIGINT)) = 0
    """  # noqa: S608
    for first, last in _rows(connection, query) if undated else ():
        found.wall_seconds += seconds_of_dates(str(first), str(last))


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[tuple[object, ...]]:
    found = connection.execute(query)
    while batch := found.fetchmany(BATCH):
        yield from batch


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0
