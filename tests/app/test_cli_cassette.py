"""`--record`, `--replay` and `--output-schema` of `harness run`, through the real program and a server on this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from program import made_program
from rows import all_rows

from harness.models.scripted import Failure, Reply, call, replies, say
from policies import AUTO, CONFIRM

if TYPE_CHECKING:
    from program import Program

KEY = "sk-test-0123456789abcdefghijklmn"


@pytest.fixture
def elsewhere(program: Program, tmp_path: Path) -> Iterator[Program]:
    """Another place for the program: other folders, no key and no address."""
    (tmp_path / "a much longer folder").mkdir()
    made = type(program)(tmp_path / "a much longer folder")
    yield made
    made.close()


def policy(program: Program, text: str = AUTO) -> str:
    (program.home / "policy.toml").write_text(text)
    return str(program.home / "policy.toml")


def recorded(program: Program, cassette: Path) -> str:
    """Record a run with a look around, a file by its absolute path, and a long output; return what it printed."""
    path = str(program.workspace / "made.txt")
    script = replies(
        Reply(calls=(call("bash", command="pwd; date; sleep 0.1"), call("write_file", path=path, content="a\n"))),
        Failure(status=500, body="overloaded"),
        Reply(text="Looking.", calls=(call("bash", command="seq 1 40000"), call("read_file", path="made.txt"))),
        say(f"I wrote {path}."),
    )
    program.environment["OPENAI_API_KEY"] = KEY
    words = ("run", "go", "--base-url", program.serve(script), "--policy", policy(program), "--record", str(cassette))
    done = program.run(*words)
    assert done.code == 0, done.err
    return done.out


def test_a_run_is_replayed_in_another_folder_without_key_or_network(
    program: Program, elsewhere: Program, tmp_path: Path
) -> None:
    out = recorded(program, tmp_path / "c")
    done = elsewhere.run("run", "go", "--policy", policy(elsewhere), "--replay", str(tmp_path / "c"))
    moved = out.replace(str(program.workspace), str(elsewhere.workspace))
    assert (done.code, done.out) == (0, moved), done.err
    assert (elsewhere.workspace / "made.txt").read_text() == "a\n"
    records = elsewhere.records()
    assert [record for record in records if record["kind"] == "diverged"] == []
    assert [record["message"] for record in records if record["kind"] == "error"] != []  # the retry is told again
    replay = records[0]["replay"]
    assert isinstance(replay, dict)
    assert replay["path"] == str(tmp_path / "c")


def test_cassette_contains_neither_key_nor_address_nor_header(program: Program, tmp_path: Path) -> None:
    recorded(program, tmp_path / "c")
    text = (tmp_path / "c").read_text()
    assert [word for word in (KEY, "127.0.0.1", "http", "Bearer", "authorization") if word in text] == []
    assert os.stat(tmp_path / "c").st_mode & 0o777 == 0o600


def test_cassette_is_replayed_with_another_policy_and_the_difference_logged(
    program: Program, elsewhere: Program, tmp_path: Path
) -> None:
    recorded(program, tmp_path / "c")
    done = elsewhere.run("run", "go", "--policy", policy(elsewhere, CONFIRM), "--replay", str(tmp_path / "c"))
    assert (done.code, (elsewhere.workspace / "made.txt").exists()) == (7, False), done.err
    (one,) = (record for record in elsewhere.records() if record["kind"] == "diverged")
    assert (one["request"], one["message"], one["role"], one["tool"]) == (2, 3, "tool", "bash")
    assert str(one["recorded"]).startswith("<workspace>\n")
    assert "~ the replay diverges at request 2, message 3 (tool): '<workspace>" in done.err


def test_another_prompt_is_where_it_differs_first(program: Program, elsewhere: Program, tmp_path: Path) -> None:
    recorded(program, tmp_path / "c")
    elsewhere.run("run", "stop", "--policy", policy(elsewhere), "--replay", str(tmp_path / "c"))
    (one,) = (record for record in elsewhere.records() if record["kind"] == "diverged")
    assert (one["request"], one["message"], one["recorded"], one["now"]) == (1, 1, "go", "stop")


def test_a_cassette_that_is_used_up_ends_the_run_as_a_failed_provider_does(program: Program, tmp_path: Path) -> None:
    recorded(program, tmp_path / "c")
    lines = (tmp_path / "c").read_text().splitlines(keepends=True)
    (tmp_path / "c").write_text("".join(lines[:3]))
    done = program.run("run", "go", "--policy", policy(program), "--replay", str(tmp_path / "c"))
    assert (done.code, "is used up: it holds 2 replies" in done.err) == (6, True), done.err


REFUSED = {
    "what is there": (("--record", "there"), "there: there is such a file already, and it is not overwritten"),
    "no cassette": (("--replay", "there"), "there:1: invalid JSON: column 1"),
    "nothing there": (
        ("--replay", "nowhere"),
        "nowhere: no such file",
    ),
    "no schema": (("--output-schema", "there"), "there: invalid JSON: line 1, column 1: Expecting value"),
}


@all_rows(("words", "why"), REFUSED.values(), ids=REFUSED, anew={"program": made_program})
def test_unusable_cassette_is_reported_before_any_request(program: Program, words: tuple[str, ...], why: str) -> None:
    (program.workspace / "there").write_text("mine")
    done = program.run("run", "go", "--base-url", program.serve(replies(say("hi"))), *words)
    assert (done.code, done.out, why in done.err) == (2, "", True), done.err
    assert ((program.workspace / "there").read_text(), program.players[0].requests) == ("mine", [])


def test_a_run_that_does_not_start_leaves_no_cassette(program: Program, tmp_path: Path) -> None:
    done = program.run(
        "run", "go", "--base-url", "http://127.0.0.1:1/v1", "--record", str(tmp_path / "c"), "--log", "/dev/null/log"
    )
    assert (done.code, (tmp_path / "c").exists()) == (8, False), done.err


SCHEMA = json.dumps({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}})
ANSWERS = {
    "that fits": (['{"n": 1}'], 0, '{"n": 1}\n'),
    "in a fence": (['```json\n{"n": 1}\n```'], 0, '{"n": 1}\n'),
    "mended": (["It is one.", '{"n": 1}'], 0, '{"n": 1}\n'),
    "mended too late": (["one", '{"n": "one"}', '{"n": 1}'], 5, None),
}


@all_rows(("answers", "code", "out"), ANSWERS.values(), ids=ANSWERS, anew={"program": made_program})
def test_an_answer_is_held_against_a_schema(program: Program, answers: list[str], code: int, out: str | None) -> None:
    (program.workspace / "s.json").write_text(SCHEMA)
    words = ("--base-url", program.serve(replies(*map(say, answers))), "--output-schema", "s.json")
    done = program.run("run", "How many?", *words)
    assert done.code == code, done.err
    assert out is None or done.out == out
    messages = program.players[0].requests[0]["messages"]
    assert isinstance(messages, list)
    assert isinstance(messages[1], dict)
    assert json.loads(str(messages[1]["content"]).rsplit("\n", 1)[1]) == json.loads(SCHEMA)
    assert len(program.players[0].requests) == min(len(answers), 2)
