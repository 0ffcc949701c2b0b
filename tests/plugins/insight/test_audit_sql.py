"""`harness audit stats --sql`: DuckDB answers a SELECT over these logs, and reads nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from audit_runs import CALLS, own_policy, session
from rows import all_rows

from harness.actions import JsonValue
from harness.errors import UsageError
from harness.plugins.insight.commands.sql import answer_query
from harness.plugins.insight.stats import statistics_of
from harness.terminal.console import Console, Look

if TYPE_CHECKING:
    from program import Program

pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'permission-harness[sql]'")


@pytest.fixture
def log(program: Program) -> Path:
    path = program.home / "log.jsonl"
    session(path, program.workspace, own_policy(program.home), CALLS)
    session(path, program.workspace, own_policy(program.home), CALLS[:3])
    return path


def lines(program: Program, *words: str) -> list[str]:
    done = program.run("audit", "stats", *words)
    assert (done.code, "Traceback" in done.err) == (0, False), done.err
    return done.out.splitlines()


def test_statistics_without_a_query_are_the_usual_ones(program: Program, log: Path) -> None:
    assert lines(program, str(log), "--json", "--sql") == lines(program, str(log), "--json")


def test_a_select_over_the_records(program: Program, log: Path) -> None:
    query = "SELECT tool, count(*) AS calls FROM records WHERE kind = 'outcome' AND status = 'failed' GROUP BY ALL ORDER BY ALL"
    assert lines(program, str(log), "--sql", query) == ["tool       calls", "bash           8", "read_file      1"]
    rows = [json.loads(line) for line in lines(program, str(log), "--json", "--sql", query)]
    assert rows == [{"tool": "bash", "calls": 8}, {"tool": "read_file", "calls": 1}]


def test_the_view_has_the_whole_record_and_the_name_of_its_log(program: Program, log: Path) -> None:
    query = "SELECT log, seq, json FROM records ORDER BY seq"
    rows = [json.loads(line) for line in lines(program, str(log), "--json", "--sql", query)]
    assert {row["log"] for row in rows} == {str(log)}
    assert [json.loads(row["json"]) for row in rows] == [json.loads(line) for line in log.read_text().splitlines()]


def test_one_session_is_all_that_the_query_sees(program: Program, log: Path) -> None:
    name = json.loads(log.read_text().splitlines()[-1])["session"]
    words = (str(log), "--session", name, "--sql", "SELECT DISTINCT session AS it FROM records")
    assert lines(program, *words) == ["it", name]


def test_exactly_the_whole_records_are_counted(program: Program, log: Path) -> None:
    """The last line cut at any place, even where it is JSON and only lacks its end."""
    whole = log.read_bytes()
    count = whole.count(b"\n") - 1
    last = len(whole) - whole[:-1].rindex(b"\n") - 1
    for cut in (1, 2, last // 2, last - 1):
        log.write_bytes(whole[:-cut])
        done = program.run("audit", "stats", str(log), "--json", "--sql", "SELECT count(*) AS n FROM records")
        assert json.loads(done.out) == {"n": count}


def test_log_names_are_neither_patterns_nor_sql(program: Program, log: Path) -> None:
    """Quotes, patterns and line ends in a name; and beside it a log that a pattern would match."""
    odd = program.home / "it's [a]*\n?.jsonl"
    odd.write_bytes(log.read_bytes())
    (program.home / "it's a.jsonl").write_bytes(log.read_bytes())
    words = (str(odd), "--json", "--sql", "SELECT log, count(*) AS n FROM records GROUP BY ALL")
    (row,) = [json.loads(line) for line in lines(program, *words)]
    assert row == {"log": str(odd), "n": log.read_bytes().count(b"\n")}


@all_rows(
    "query",
    [
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM read_blob('/proc/self/environ')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM read_csv('http://127.0.0.1:9/x.csv')",
        "SELECT * FROM records, read_text('{secret}')",
        "SELECT * FROM query('SELECT * FROM read_text(''{secret}'')')",
        "SELECT getenv('HOME')",
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "COPY records TO '{folder}/out.csv'",
        "ATTACH '{folder}/x.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "RESET allowed_paths",
        "CREATE TABLE x AS SELECT 1",
        "DROP VIEW records",
        "EXPORT DATABASE '{folder}/x'",
        "SELECT 1; COPY (SELECT 1) TO '{folder}/out.csv'",
        "SELECT 1; SELECT 2",
        "SELEKT 1",
        "SELECT nothing FROM records",
        ";",
    ],
)
def test_query_reads_only_the_logs_and_never_writes(
    program: Program, log: Path, query: str, capfd: pytest.CaptureFixture[str]
) -> None:
    secret = program.home / "secret.txt"
    secret.write_text("TOP-SECRET")
    before = {path: path.read_bytes() for path in program.home.parent.rglob("*") if path.is_file()}
    with pytest.raises(UsageError) as refused:
        answer_query([str(log)], "", query.format(secret=secret, folder=program.home), Console(sys.stdout, Look()))
    assert ("TOP-SECRET" in str(refused.value), len(str(refused.value).splitlines())) == (False, 1)
    assert capfd.readouterr() == ("", "")
    assert {path: path.read_bytes() for path in program.home.parent.rglob("*") if path.is_file()} == before


def test_a_query_that_fails_is_a_usage_error(program: Program, log: Path) -> None:
    done = program.run("audit", "stats", str(log), "--sql", "SELECT * FROM '/etc/passwd'")
    assert (done.code, done.out, "Traceback" in done.err, len(done.err.splitlines())) == (2, "", False, 1)


def test_query_leaves_no_temporary_files(program: Program, log: Path) -> None:
    folder = program.home / "tmp"
    folder.mkdir()
    environment = {**program.environment, "TMPDIR": str(folder)}
    for words in (("--sql", "SELECT 1 FROM records"), ("--sql", "nonsense")):
        program.run("audit", "stats", str(log), *words, env=environment)
        assert list(folder.iterdir()) == []


def test_hostile_cells_are_shown_harmlessly(program: Program, log: Path) -> None:
    query = "SELECT chr(27) || '[2J' AS \"a\x1bb\", chr(10) || repeat('x', 300) AS long, NULL AS n, [1, 2] AS list, 1.5 AS f"
    out = lines(program, str(log), "--sql", query)
    assert len(out) == 2
    assert ("\x1b" in "".join(out), out[0].split()) == (False, ["a\\x1bb", "long", "n", "list", "f"])
    row = json.loads(lines(program, str(log), "--json", "--sql", query)[0])
    assert (row["n"], row["list"], row["long"]) == (None, [1, 2], "\n" + 300 * "x")


WITHOUT_DUCKDB = "import sys; sys.modules['duckdb'] = None; from harness.app.main import program; program()"


def test_missing_duckdb_names_the_extra_to_install(program: Program, log: Path) -> None:
    """Nothing else needs it."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", WITHOUT_DUCKDB, "audit", "stats", str(log), *words]
        return subprocess.run(command, env=program.environment, capture_output=True, text=True, check=False)

    done = run("--sql", "SELECT 1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'permission-harness[sql]'" in done.stderr
    assert run().returncode == 0


def test_log_in_place_of_the_query_is_an_error(program: Program, log: Path) -> None:
    done = program.run("audit", "stats", "--sql", str(log))
    assert (done.code, "name the logs before --sql" in done.err) == (2, True)


BAD = (b"no json\n", b"\n", b"  \t\n", b"[1]\n", b'"x"\n', b'{"kind":"b"\n', b"\xff\n", b"{} trailing\n")


@all_rows("place", [0, 5], fresh=True)
def test_invalid_lines_are_skipped_and_counted(program: Program, log: Path, place: int) -> None:
    good = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*good[:place], *BAD, *good[place:]]))
    counted = program.run("audit", "stats", str(log), "--json")
    assert (counted.code, json.loads(counted.out.splitlines()[-1])["left_out"]) == (1, len(BAD))
    done = program.run("audit", "stats", str(log), "--json", "--sql", "SELECT count(*) AS n FROM records")
    assert (done.code, json.loads(done.out)) == (1, {"n": len(good)})
    assert f"LEFT OUT: {len(BAD)} lines that are no records" in done.err


def test_columns_of_the_same_name_are_numbered(program: Program, log: Path) -> None:
    query = (
        "SELECT a.kind, b.kind, 1 AS kind_2 FROM records a JOIN records b ON a.seq + 1 = b.seq ORDER BY a.seq LIMIT 1"
    )
    (row,) = [json.loads(line) for line in lines(program, str(log), "--json", "--sql", query)]
    assert row == {"kind": "session_started", "kind_2": "user_message", "kind_2_2": 1}


def test_a_moment_with_a_time_zone_is_a_text(program: Program, log: Path) -> None:
    """And the rows stay in their order, whatever else is asked for."""
    first = json.loads(log.read_text().splitlines()[0])["time"]
    query = 'SELECT min("time"::TIMESTAMPTZ) AS "it""s", [min("time"::TIMESTAMPTZ)] AS l, 1 AS n FROM records; -- it'
    (row,) = [json.loads(line) for line in lines(program, str(log), "--json", "--sql", query.partition(";")[0])]
    assert (row['it"s'][:10], row["n"], first[:10] in row["l"]) == (first[:10], 1, True)
    query = 'SELECT seq, "time"::TIMESTAMPTZ AS t FROM records ORDER BY seq DESC -- the last first'
    found = [json.loads(line)["seq"] for line in lines(program, str(log), "--json", "--sql", query)]
    assert found == sorted(found, reverse=True)


def test_numbers_of_other_types_are_null_and_no_error(program: Program) -> None:
    path = program.home / "odd.jsonl"
    values: list[JsonValue] = [None, True, -1, 1.5, 10**30, "x", [], {"a": 1}]
    common = {"kind": "outcome", "session": "s", "time": "2026", "tool": "bash"}
    rows = [
        {**common, **dict.fromkeys(("call", "duration_ms", "mono_ns", "facets", "masked"), value)} for value in values
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = program.run("audit", "stats", str(path), "--json")
    assert "Traceback" not in done.err
    assert json.loads(done.out.splitlines()[-1])["records"] == len(values)
    assert statistics_of([str(path)]).totals["records"] == len(values)
    query = "SELECT count(duration_ms) AS n FROM records"
    assert json.loads(program.run("audit", "stats", str(path), "--json", "--sql", query).out)["n"] <= len(values)
    assert os.path.exists(path)


def test_calls_of_the_same_number_in_two_sessions_and_two_logs_are_two(program: Program, log: Path) -> None:
    copy = program.home / "copy.jsonl"
    copy.write_bytes(log.read_bytes())
    counted = lines(program, str(log), str(copy), "--json")
    default = next(json.loads(line) for line in counted if "default for bash" in line)
    assert default["asked"] == 2 * (5 + 2)


def test_a_session_that_runs_is_read_up_to_its_last_whole_record(program: Program) -> None:
    """The log is locked by its writer: what is counted is a copy of the lines that were there."""
    from harness.log.action_log import ActionLog

    path = program.home / "open.jsonl"
    log = ActionLog.open(str(path))
    log.append("session_started", {"harness": "test"})
    rows = lines(program, str(path), "--json", "--sql", "SELECT kind FROM records")
    log.close()
    assert rows == ['{"kind": "session_started"}']
