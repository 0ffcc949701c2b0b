"""Every exit code of `harness run`, by the real program: the process, its JSON object and its log say the same."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fault_server import Answer, End, FaultServer, until_close
from forked import Forked
from places import ROOT
from program import made_program
from rows import all_rows
from run_scene import DONE, TOUCH, bash, flags_of, left_in, small_disk, wait_until, written

from harness.messages import StopReason
from harness.models.scripted import Failure, Raw, Reply, Turn, call, replies, say
from harness.models.scripted import ScriptedAnswer as Scripted
from harness.session.exits import Exit
from policies import AUTO, CONFIRM

if TYPE_CHECKING:
    from program import Done, Program

DENY_BASH = 'version = 1\n[tools]\nbash = "deny"\ndefault = "auto"\n'
UNATTENDED_BLOCK = CONFIRM + '[unattended]\nconfirm = "block"\n'
NEVER_TOUCH = '[[rule]]\nid = "never"\ndecision = "block"\nargv = ["touch"]\nreason = "Touching is not done."\n'
SCHEMA = '{"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}}'
PRICES = '[prices."scripted"]\ninput = 1000000\noutput = 1000000\n'
CUT_STREAM = Raw(body=b'data: {"choices":[{"index":0,"delta":{"content":"ab"}}]}\n\n')
NO_JSON = Raw(body=b"<html>hello</html>", content_type="text/html")
HARNESS = Path(ROOT)


def agree(program: Program, done: Done, code: Exit, end: StopReason) -> dict[str, Any]:
    """Hold the process's code, the JSON object and the log's last record against each other; return the object."""
    summary: dict[str, Any] = json.loads(done.out)
    last = program.records()[-1]
    assert (done.code, summary["exit_code"], last.get("exit_code")) == (code, code, code), done.err
    assert (summary["end"], last["kind"], last["stop"]) == (end.value, "session_ended", end.value), done.err
    assert "Traceback" not in done.err
    verified = program.run("audit", "verify", str(program.logs()[0]))
    assert (verified.code, "every run was permitted beforehand" in verified.out) == (0, True), verified.out
    return summary


# --- what the model, the policy and the limits make of a run -------------------------------------------------------

ENDINGS = [
    pytest.param(AUTO, (TOUCH, DONE), (), Exit.DONE, "completed", id="0 done"),
    pytest.param(AUTO, (DONE,), (), Exit.DONE, "completed", id="0 done without a call"),
    pytest.param(AUTO, (bash("false"), DONE), (), Exit.DONE, "completed", id="0 a command that failed is no refusal"),
    pytest.param(AUTO, (TOUCH, DONE), ("--dry-run",), Exit.DONE, "completed", id="0 a dry run refuses nothing"),
    pytest.param(
        AUTO, (say("no"), say('{"ok": true}')), ("--output-schema", "SCHEMA"), Exit.DONE, "completed",
        id="0 an answer that fits after one repair",
    ),
    pytest.param(AUTO + NEVER_TOUCH, (TOUCH, DONE), (), Exit.BLOCKED, "blocked", id="3 a hard block"),
    pytest.param(
        AUTO + NEVER_TOUCH, (TOUCH, DONE), ("--dry-run",), Exit.BLOCKED, "blocked", id="3 a hard block in a dry run"
    ),
    pytest.param(
        AUTO + NEVER_TOUCH, (TOUCH, DONE), ("--allow-refusals",), Exit.BLOCKED, "blocked",
        id="3 a hard block is no refusal that could be allowed",
    ),
    pytest.param(UNATTENDED_BLOCK, (TOUCH, DONE), (), Exit.BLOCKED, "blocked", id="3 confirm counts as block"),
    pytest.param(AUTO, (TOUCH, TOUCH, DONE), ("--max-turns", "2"), Exit.LIMIT, "limit", id="4 turns"),
    pytest.param(AUTO, (bash("sleep 1000"), DONE), ("--max-seconds", "1.5"), Exit.LIMIT, "limit", id="4 seconds"),
    pytest.param(AUTO, (TOUCH, TOUCH, DONE), ("--max-tokens", "300"), Exit.LIMIT, "limit", id="4 tokens"),
    pytest.param(AUTO, (TOUCH, TOUCH, DONE), ("--max-cost", "300"), Exit.LIMIT, "limit", id="4 cost"),
    pytest.param(
        AUTO + "[limits]\nturns = 1\n", (TOUCH, DONE), (), Exit.LIMIT, "limit", id="4 turns, of the policy"
    ),
    pytest.param(DENY_BASH, (TOUCH, TOUCH, TOUCH, DONE), (), Exit.LIMIT, "limit", id="4 the same refusal again"),
    pytest.param(AUTO, (Reply(text="abc", finish_reason="length"),), (), Exit.NO_ANSWER, "length", id="5 length"),
    pytest.param(
        AUTO, (Reply(text="", finish_reason="content_filter"),), (), Exit.NO_ANSWER, "content_filter", id="5 filter"
    ),
    pytest.param(
        AUTO, (TOUCH, say(""), say(" ")), (), Exit.NO_ANSWER, "no_answer", id="5 a reply that says nothing, twice"
    ),
    pytest.param(AUTO, (say(""), TOUCH, DONE), (), Exit.DONE, "completed", id="0 a reply that says nothing, once"),
    pytest.param(
        AUTO, (Reply(calls=TOUCH.calls, finish_reason="length"),) * 2, (), Exit.NO_ANSWER, "length",
        id="5 calls cut at the length limit, twice",
    ),
    pytest.param(
        AUTO, (TOUCH, Reply(calls=TOUCH.calls, finish_reason="length"), DONE), (), Exit.DONE, "completed",
        id="0 calls cut at the length limit, once",
    ),
    pytest.param(AUTO, (CUT_STREAM,), (), Exit.NO_ANSWER, "cut", id="5 a cut stream"),
    pytest.param(
        AUTO, (say("no"), say('{"ok": 1}')), ("--output-schema", "SCHEMA"), Exit.NO_ANSWER, "unfit",
        id="5 an answer that never fits",
    ),
    pytest.param(
        DENY_BASH, (TOUCH, say("no"), say("no")), ("--output-schema", "SCHEMA"), Exit.NO_ANSWER, "unfit",
        id="5 an answer that never fits comes before refusals",
    ),
    pytest.param(
        AUTO, (Failure(status=401, body='{"error":{"message":"no"}}'),), (), Exit.MODEL, "model_error", id="6 a bad key"
    ),
    pytest.param(AUTO, (NO_JSON,), (), Exit.MODEL, "model_error", id="6 no JSON"),
    pytest.param(
        AUTO, (TOUCH, Failure(status=400, body='{"error":{"message":"no"}}')), (), Exit.MODEL, "model_error",
        id="6 in the second turn",
    ),
    pytest.param(DENY_BASH, (TOUCH, DONE), (), Exit.REFUSED, "completed", id="7 a denied call"),
    pytest.param(CONFIRM, (TOUCH, DONE), (), Exit.REFUSED, "completed", id="7 nobody to ask"),
    pytest.param(CONFIRM, (TOUCH, DONE), ("--dry-run",), Exit.REFUSED, "completed", id="7 in a dry run"),
    pytest.param(
        AUTO, (bash("echo hi > made"), DONE), ("--plan",), Exit.REFUSED, "completed", id="7 a change under --plan"
    ),
    pytest.param(
        DENY_BASH, (TOUCH, say('{"ok": true}')), ("--output-schema", "SCHEMA"), Exit.REFUSED, "completed",
        id="7 with an answer that fits",
    ),
    pytest.param(DENY_BASH, (TOUCH, DONE), ("--allow-refusals",), Exit.DONE, "completed", id="0 refusals are allowed"),
]  # fmt: skip


@all_rows(("rules", "script", "flags", "code", "end"), ENDINGS, anew={"program": made_program})
def test_every_end_has_its_exit_code(
    program: Program, rules: str, script: tuple[Reply, ...], flags: tuple[str, ...], code: Exit, end: str
) -> None:
    """What was refused has not run, whatever the run ended with."""
    schema = written(program.home / "schema.json", SCHEMA)
    written(program.state.parent / "config" / "harness" / "config.toml", PRICES)
    given = tuple(schema if word == "SCHEMA" else word for word in flags)
    url = program.serve(replies(*script))
    done = program.run("run", "go", *flags_of(program, url, rules), *given)
    summary = agree(program, done, code, StopReason(end))
    ran = rules.startswith(AUTO) and "never" not in rules and not {"--dry-run", "--plan"} & set(flags)
    assert (program.workspace / "made").exists() == (ran and TOUCH in script)
    assert bool(summary["refusals"]) == any(
        record["kind"] == "outcome" and record["status"] in ("denied", "blocked") for record in program.records()
    )


def test_every_stop_reason_and_every_exit_code_has_a_row() -> None:
    """Who adds one of either adds a row: what a signal, a broken installation and a full disk do is below."""
    rows = [parameter.values for parameter in ENDINGS]
    elsewhere = {
        StopReason.INTERRUPTED, StopReason.LOG_ERROR, StopReason.GATE_ERROR, StopReason.INTERNAL_ERROR,
        StopReason.WORKSPACE_LOST, StopReason.TERMINAL_CLOSED,
    }  # fmt: skip
    assert {StopReason(str(row[4])) for row in rows} == set(StopReason) - elsewhere
    below = {Exit.INTERNAL, Exit.USAGE, Exit.LOG, Exit.INTERRUPTED, Exit.TERMINATED, Exit.BROKEN_PIPE}
    assert {row[3] for row in rows} == set(Exit) - below


def test_a_server_that_is_not_there(program: Program) -> None:
    """Nothing listens: exit 6 when the tries are used up, and the run's own time limit is what ends them."""
    done = program.run("run", "go", *flags_of(program, "http://127.0.0.1:9/v1"), "--max-seconds", "2")
    assert done.code in (Exit.MODEL, Exit.LIMIT)
    agree(program, done, Exit(done.code), StopReason.MODEL_ERROR if done.code == Exit.MODEL else StopReason.LIMIT)


# --- 2: what is wrong before anything begins ------------------------------------------------------------------------

WRONG = [
    pytest.param(("--max-turns", "0"), "not a whole number", id="a limit of nothing"),
    pytest.param(("--no-such-flag",), "unrecognized arguments", id="an unknown flag"),
    pytest.param(("--output", "xml"), "invalid choice", id="an unknown form"),
    pytest.param(("--policy", "{home}/nowhere.toml"), "cannot be read", id="no policy"),
    pytest.param(("--policy", "{bad}"), "unknown decision", id="a wrong policy"),
    pytest.param(("--policy-sha256", "0" * 64), "sha256", id="another policy than the pinned one"),
    pytest.param(("--policy-sha256", "abc"), "sha256", id="a digest that is none"),
    pytest.param(("--cwd", "{home}/nowhere"), "not an existing folder", id="no workspace"),
    pytest.param(("--add-dir", "{home}/nowhere"), "nowhere", id="no further folder"),
    pytest.param(("--base-url", "localhost:1"), "must begin with http", id="an address that is none"),
    pytest.param(("--provider", "nobody"), "nobody", id="an unknown provider"),
    pytest.param(("--max-cost", "1", "--model", "other"), "prices", id="a limit of cost without prices"),
    pytest.param(("--system", "{home}/nowhere"), "cannot be read", id="no system prompt"),
    pytest.param(("--prompt-file", "{home}/nowhere"), "two prompts", id="two prompts"),
    pytest.param(("--resume", "nobody"), "nobody", id="no session to go on with"),
    pytest.param(("--output-schema", "{home}/nowhere"), "nowhere", id="no schema"),
    pytest.param(("--output-schema", "{bad}"), "policy", id="a schema that is no JSON"),
    pytest.param(("--replay", "{home}/nowhere"), "nowhere", id="no cassette"),
    pytest.param(("--replay", "{bad}"), "invalid JSON", id="a cassette that is none"),
    pytest.param(("--record", "{home}/nowhere/c"), "nowhere", id="no place for a cassette"),
    pytest.param(("--report", "md:{home}/nowhere/r.md"), "nowhere", id="no place for a report"),
    pytest.param(("--report", "pdf:{home}/r.pdf"), "pdf", id="a report of no known form"),
    pytest.param(("--report", "r.md"), "r.md", id="a report without a form"),
    pytest.param(("--report", "md:{home}/r", "--report", "html:{home}/r"), "r", id="two reports in one file"),
    pytest.param(("--task", "{bad}"), "--out", id="a task without a place"),
]


@all_rows(("flags", "told"), WRONG, anew={"program": made_program})
def test_invalid_flags_are_reported_before_the_start(program: Program, flags: tuple[str, ...], told: str) -> None:
    """Exit 2: nothing on stdout, nothing asked of a model, nothing left in a log, and some lines that say it."""
    bad = written(program.home / "bad_policy.toml", 'version = 1\n[tools]\nbash = "allow"\n')
    url = program.serve(replies(TOUCH, DONE))
    given = [word.format(home=program.home, bad=bad) for word in flags]
    done = program.run("run", "go", *flags_of(program, url), *given)
    assert (done.code, done.out, program.players[0].requests) == (Exit.USAGE, "", []), done.err
    assert told in done.err
    assert ("Traceback" in done.err, (program.workspace / "made").exists()) == (False, False)
    assert [path.read_text() for path in program.logs() if path.stat().st_size] == []


def test_a_configuration_that_is_wrong(program: Program) -> None:
    """Exit 2, with the file and the line."""
    written(program.state.parent / "config" / "harness" / "config.toml", "\nmodle = 1\n")
    done = program.run("run", "go", *flags_of(program, "http://127.0.0.1:9/v1"))
    assert (done.code, done.out, program.logs()) == (Exit.USAGE, "", [])
    assert "config.toml:2" in done.err


# --- 1: what must not happen ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package, which a test may break as a bad installation is broken."""
    folder = tmp_path_factory.mktemp("installed")
    for name in ("harness", "policies"):
        shutil.copytree(HARNESS / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@contextmanager
def without(folder: Path, module: str) -> Iterator[None]:
    """Take a module out of a copy of the package."""
    path, aside = folder / "harness" / f"{module}.py", folder / "aside"
    path.rename(aside)
    try:
        yield
    finally:
        aside.rename(path)


@pytest.mark.parametrize("module", ["models/openai_client", "app/run/result", "log/heads_file"])
def test_a_part_that_is_missing(program: Program, installed: Path, module: str) -> None:
    """An installation that lacks a file: exit 1 and a line that names it, before the log is begun."""
    program.environment["PYTHONPATH"] = str(installed)
    url = program.serve(replies(TOUCH, DONE))
    with without(installed, module):
        done = program.run("run", "go", *flags_of(program, url))
    assert (done.code, "Traceback" in done.err) == (Exit.INTERNAL, False), done.err
    assert f"No module named 'harness.{module.replace('/', '.')}'" in done.err
    assert ((program.workspace / "made").exists(), program.logs()) == (False, [])


def records_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_report_with_a_deleted_folder_fails_at_the_end(program: Program) -> None:
    """The exit code and the object say that a report is missing; the log, whole by then, how the run went."""
    folder = program.workspace / "reports"
    folder.mkdir()
    url = program.serve(replies(bash("rm -r reports"), DONE))
    done = program.run("run", "go", *flags_of(program, url), "--report", f"md:{folder}/run.md")
    assert (done.code, json.loads(done.out)["exit_code"]) == (Exit.INTERNAL, Exit.INTERNAL)
    assert "run.md" in done.err
    last = program.records()[-1]
    assert (last["kind"], last["stop"], last["exit_code"]) == ("session_ended", "completed", Exit.DONE)


LOST = [
    pytest.param((Reply(calls=(call("write_file", path="made", content="x"),)), DONE), id="a file to write"),
    pytest.param((Reply(calls=(call("write_file", path="d/made", content="x"),)), DONE), id="one in a folder"),
    pytest.param(
        (Reply(calls=(call("edit_file", path="a", old_string="x", new_string="y"),)), DONE), id="a file to edit"
    ),
    pytest.param((Reply(calls=(call("read_file", path="a"),)), DONE), id="a file to read"),
    pytest.param((TOUCH, DONE), id="a command"),
    pytest.param((bash("true"), DONE), id="a command that needs no file"),
    pytest.param((DONE,), id="an answer"),
]


@all_rows("script", LOST, anew={"program": made_program})
def test_a_workspace_that_disappears_stops_the_run(program: Program, script: tuple[Reply, ...]) -> None:
    """Exit 1, and it is not made anew."""

    def play() -> Generator[Scripted, Turn, None]:
        yield TOUCH
        shutil.rmtree(program.workspace)
        yield from script

    done = program.run("run", "go", *flags_of(program, program.serve(play)))
    assert not program.workspace.exists()
    program.workspace.mkdir()  # the program is started in it again
    summary = agree(program, done, Exit.INTERNAL, StopReason.WORKSPACE_LOST)
    assert summary["detail"] == f"the workspace is gone: {program.workspace}"
    assert f"the workspace is gone: {program.workspace}" in done.err
    ran = [record for record in program.records() if record["kind"] == "intent"]
    assert len(ran) == 1


# --- 8: a log that cannot be written --------------------------------------------------------------------------------


def test_a_log_that_cannot_be_begun(program: Program) -> None:
    """Exit 8 before any request: a file stands where the state folder should be."""
    url = program.serve(replies(TOUCH, DONE))
    (program.state / "harness").write_text("in the way")
    done = program.run("run", "go", *flags_of(program, url))
    assert (done.code, done.out, program.players[0].requests) == (Exit.LOG, "", [])
    assert "the log folder cannot be made" in done.err


@all_rows("kilobytes", [0, 4, 8, 16], anew={"program": made_program})
def test_a_log_that_outgrows_its_limit(program: Program, kilobytes: int) -> None:
    """RLIMIT_FSIZE: the call whose intent does not fit is not run. The log cannot say how it ended; the rest agrees."""
    url = program.serve(replies(*(bash(f"touch made{n}") for n in range(60)), DONE))
    process = Forked(
        program.command("run", "go", *flags_of(program, url), "--max-turns", "70")[2:],
        cwd=program.workspace, env=program.environment, file_size=kilobytes * 1024,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = process.communicate(timeout=300)
    assert process.returncode == Exit.LOG, err
    check_a_log_that_stopped(program, out, least_calls=0 if kilobytes < 8 else 1)


def check_a_log_that_stopped(program: Program, out: bytes, *, least_calls: int) -> None:
    """Hold what ran against what the log has; the object says why the run ended."""
    ran = {path.name for path in program.workspace.glob("made*")}
    lines = [line for path in program.logs() for line in path.read_bytes().split(b"\n")[:-1]]
    records = [json.loads(line) for line in lines]
    intents = [record for record in records if record["kind"] == "intent"]
    assert len(ran) <= len(intents)
    assert len(ran) >= least_calls
    assert [record for record in records if record["kind"] == "session_ended"] == []
    if out:
        summary = json.loads(out)
        assert (summary["exit_code"], summary["end"]) == (Exit.LOG, StopReason.LOG_ERROR.value)
    if records:
        verified = program.run("audit", "verify", str(program.logs()[0]))
        assert verified.out.strip()
        assert "Traceback" not in verified.err


@all_rows("free_kilobytes", [0, 12, 24], anew={"program": made_program})
def test_a_full_disk(program: Program, tmp_path: Path, free_kilobytes: int) -> None:
    """A real one, full before the run or in the middle of it: exit 8, and nothing ran that the log does not have."""
    url = program.serve(replies(*(bash(f"touch made{n}") for n in range(60)), DONE))
    with small_disk(tmp_path / "small") as disk:
        (disk / "ballast").write_bytes(b"x" * (64 - free_kilobytes) * 1024)
        program.environment["XDG_STATE_HOME"] = str(disk)
        program.state = disk
        done = program.run("run", "go", *flags_of(program, url), "--max-turns", "70")
        assert done.code == Exit.LOG, done.err
        assert done.err.strip()
        check_a_log_that_stopped(program, done.out.encode(), least_calls=0)


# --- 130 and 143: signals -------------------------------------------------------------------------------------------


def silent(program: Program) -> Iterator[tuple[str, Callable[[], bool]]]:
    """A server that takes the request and says nothing."""
    stalled: Answer = until_close(End.STALL)
    with FaultServer([stalled], afterwards=stalled) as server:
        yield server.url, lambda: bool(server.requests)


def busy(program: Program) -> Iterator[tuple[str, Callable[[], bool]]]:
    """A command that has children of its own, in the middle of its work."""
    url = program.serve(replies(bash("touch begun; sleep 1000 | sleep 1001; touch made"), DONE))
    yield url, (program.workspace / "begun").exists


def loading(program: Program) -> Iterator[tuple[str, Callable[[], bool]]]:
    """The first request is on its way, which the SDK is loaded for."""
    url = program.serve(replies(bash("sleep 1000"), DONE))
    yield url, lambda: has_record(program, "session_started")


def waiting(program: Program) -> Iterator[tuple[str, Callable[[], bool]]]:
    """A server that is overloaded, and says to come back in a while."""
    failure = Failure(status=503, body='{"error":{"message":"busy"}}', headers=(("retry-after", "60"),))
    url = program.serve(replies(*[failure] * 9))
    yield url, lambda: has_record(program, "error")


def has_record(program: Program, kind: str) -> bool:
    return any(f'"kind":"{kind}"' in path.read_text() for path in program.logs())


@pytest.mark.parametrize("scene", [silent, busy, loading, waiting])
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.TERMINATED), (signal.SIGHUP, Exit.TERMINATED)],
    ids=["SIGINT", "SIGTERM", "SIGHUP"],
)
def test_a_signal(
    program: Program,
    scene: Callable[[Program], Iterator[tuple[str, Callable[[], bool]]]],
    number: signal.Signals,
    code: Exit,
) -> None:
    """Wherever it comes, the run ends, with a whole log and the code of the signal."""
    with contextmanager(scene)(program) as (url, is_there):
        process = program.start("run", "go", *flags_of(program, url))
        wait_until(is_there, process)
        process.send_signal(number)
        out, err = process.communicate(timeout=300)
    from program import Done

    agree(program, Done(process.returncode, out.decode(), err.decode()), code, StopReason.INTERRUPTED)
    assert not (program.workspace / "made").exists()
    assert left_in(program.workspace) == []


def test_a_signal_while_an_answer_is_checked(program: Program) -> None:
    """A pattern of the schema that tries for ever on what the model wrote does not keep the run from ending."""
    schema = written(program.home / "schema.json", '{"type": "string", "pattern": "^(a+)+$"}')
    url = program.serve(replies(say(json.dumps("a" * 40 + "b")), say('"a"')))
    process = program.start("run", "go", *flags_of(program, url), "--output-schema", schema)
    wait_until(lambda: has_record(program, "model_response"), process)
    time.sleep(
        0.5
    )  # nothing tells from outside that it is checked by now; where it is not, the signal ends the run as well
    process.send_signal(signal.SIGTERM)
    try:
        out, err = process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError("the check of the answer did not end") from None
    from program import Done

    done = Done(process.returncode, out.decode(), err.decode())
    agree(program, done, Exit.TERMINATED, StopReason.INTERRUPTED)


# --- 141: nobody reads ----------------------------------------------------------------------------------------------


@all_rows("form", ["text", "json", "jsonl"], anew={"program": made_program})
def test_closed_reader_sets_the_exit_code(program: Program, form: str) -> None:
    """The log says 141 as well: whether somebody reads is known before it ends."""
    url = program.serve(replies(bash("touch a"), bash("touch b"), DONE))
    reader, writer = os.pipe()
    os.close(reader)
    process = program.start("run", "go", *flags_of(program, url), "--output", form, stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=300)
    assert (process.returncode, b"Traceback" in err) == (Exit.BROKEN_PIPE, False), err
    assert (program.records()[-1]["kind"], program.records()[-1]["exit_code"]) == ("session_ended", Exit.BROKEN_PIPE)
    assert program.run("audit", "verify").code == 0


def test_signal_after_a_closed_reader_sets_the_exit_code(program: Program) -> None:
    """Who ends the run is what the code says: the signal."""
    url = program.serve(replies(bash("touch begun; sleep 1000"), DONE))
    process = program.start("run", "go", *flags_of(program, url))
    wait_until((program.workspace / "begun").exists, process)
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=300)
    assert (process.returncode, program.records()[-1]["exit_code"]) == (Exit.TERMINATED, Exit.TERMINATED), err


def test_a_stdout_that_is_full(program: Program) -> None:
    """The object does not fit on the disk: known only when it is written, behind the end of the log."""
    url = program.serve(replies(DONE))
    with open("/dev/full", "wb") as full:
        process = program.start("run", "go", *flags_of(program, url), stdout=full)
        _, err = process.communicate(timeout=300)
    assert (process.returncode, b"Traceback" in err) == (Exit.BROKEN_PIPE, False), err
    assert err.strip()
    assert program.records()[-1]["stop"] == "completed"
