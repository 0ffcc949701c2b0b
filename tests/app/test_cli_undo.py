"""`harness undo` on sessions that real runs have made: what comes back, what is told, what the exit code says."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from log_scene import append_filled
from playing import Playing
from rows import all_rows
from run_scene import wait_until
from sizes import proof_size

from harness import ActionLog, Agent, Workspace, builtin_tools
from harness.actions import JsonValue
from harness.files.before_images import BeforeImages
from harness.gate.approval import Approval
from harness.log.vocabulary import Answer
from harness.messages import StopReason, ToolCall
from harness.models.scripted import Reply, call, replies
from harness.policy.loader import parse_policy
from harness.session.environment_secrets import secrets_of
from harness.session.session_log import close_log
from harness.session.state import State

if TYPE_CHECKING:
    from program import Done, Program

POLICY = 'version = 1\n[tools]\ndefault = "auto"\n[limits]\nturns = 1000\n'


def work(program: Program, *calls: ToolCall, cwd: Path | None = None, log: str = "") -> str:
    """Make a session of these calls with the real tools through the real gate, where the program keeps things, and return
    its name. It is in this process: the program takes half a second for what one test needs ten times."""
    state = State.of(program.environment)
    workspace = Workspace(str(cwd or program.workspace), program.environment["HOME"])
    record = ActionLog.open(log or state.new_log_path(workspace.root), secrets=secrets_of(program.environment))
    images = BeforeImages(state.before_images)
    agent = Agent(
        model=Playing(calls),
        tools=builtin_tools(workspace, environment=program.environment, images=images),
        policy=parse_policy(POLICY.encode(), "test.toml"),
        approver=lambda action, verdict: Approval(answer=Answer.YES, by="person"),
        log=record,
        facts={"mode": "run", "workspace": workspace.root},
    )
    assert agent.run("go").stop is StopReason.COMPLETED
    close_log(state, record)
    return record.session


def put(program: Program, name: str, content: str, mode: int = 0o644) -> Path:
    path = program.workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(mode)
    return path


def write(name: str, content: str) -> ToolCall:
    return call("write_file", path=name, content=content)


def edit(name: str, old: str, new: str) -> ToolCall:
    return call("edit_file", path=name, old_string=old, new_string=new)


def read(name: str) -> ToolCall:
    return call("read_file", path=name)


def bash(command: str) -> ToolCall:
    return call("bash", command=command)


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def told(done: Done) -> list[str]:
    """Return what was said of each step: without the heading and the log's name, blanks made one."""
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    return [line for line in lines[1:] if not line.startswith("log: ")]


CHANGES = [
    pytest.param((edit("a", "one", "two"),), ["restored a [call 1 edit_file]"], id="an edit"),
    pytest.param((read("a"), write("a", "other\n")), ["restored a [call 2 write_file]"], id="an overwriting"),
    pytest.param((write("b/c/d", "new\n"),), ["removed b/c/d [call 1 write_file]"], id="a new file"),
    pytest.param(
        (edit("a", "one", "two"), edit("a", "two", "three"), edit("a", "three", "four")),
        ["restored a [call 3 edit_file]", "restored a [call 2 edit_file]", "restored a [call 1 edit_file]"],
        id="a chain of three edits",
    ),
    pytest.param(
        (write("b", "x\n"), edit("b", "x", "y")),
        ["restored b [call 2 edit_file]", "removed b [call 1 write_file]"],
        id="a new file that is edited",
    ),
    pytest.param((edit("run.sh", "echo", "printf"),), ["restored run.sh [call 1 edit_file]"], id="an executable"),
    pytest.param((edit("secret", "k", "l"),), ["restored secret [call 1 edit_file]"], id="a private file"),
    pytest.param(
        (edit("a", "one", "two"), edit("secret", "k", "l")),
        ["restored secret [call 2 edit_file]", "restored a [call 1 edit_file]"],
        id="two files",
    ),
    pytest.param((edit("link", "one", "two"),), ["restored a [call 1 edit_file]"], id="a file by way of a link"),
    pytest.param(
        (edit("latin", "cafe", "coffee"),), ["restored latin [call 1 edit_file]"], id="a file that is no UTF-8"
    ),
    pytest.param((edit("a", "never there", "x"),), ["there is nothing to undo"], id="an edit that does not apply"),
    pytest.param((read("a"), write("a", "one\n")), ["there is nothing to undo"], id="a writing that changes nothing"),
    pytest.param((read("a"),), ["there is nothing to undo"], id="a reading"),
]


@all_rows(("calls", "expected"), CHANGES, fresh=True)
def test_all_changes_of_a_session_are_undone(
    program: Program, calls: tuple[ToolCall, ...], expected: list[str]
) -> None:
    """Bytes and modes, back to the first call; and there is nothing to undo afterwards."""
    put(program, "a", "one\n")
    put(program, "run.sh", "#!/bin/sh\necho hello\n", 0o755)
    put(program, "secret", "k\n", 0o600)
    (program.workspace / "latin").write_bytes(b"cafe \xe9\r\nx\n")
    (program.workspace / "link").symlink_to("a")
    before = tree(program.workspace)
    work(program, *calls)
    rehearsed = program.run("undo", "--to", "1", "--dry-run")
    done = program.run("undo", "--to", "1")
    assert (done.code, told(done)) == (0, expected), done.err
    assert tree(program.workspace) == before
    assert (program.workspace / "link").is_symlink()
    foreseen = [line.replace("restored", "would restore").replace("removed", "would remove") for line in expected]
    assert (rehearsed.code, told(rehearsed)) == (0, foreseen)
    again = program.run("undo", "--to", "1")
    assert (again.code, told(again)) == (0, ["there is nothing to undo"])
    assert tree(program.workspace) == before


def test_undo_reverts_one_change_after_another(program: Program) -> None:
    """The newest that is not undone yet; the record of an undoing tells which that is, even where contents repeat."""
    put(program, "a", "A")
    work(program, edit("a", "A", "B"), edit("a", "B", "A"), edit("a", "A", "B"), write("b", "x"))
    steps = []
    for _ in range(6):
        done = program.run("undo")
        assert done.code == 0
        steps.append((told(done)[-1], (program.workspace / "a").read_text()))
    assert steps == [
        ("removed b [call 4 write_file]", "B"),
        ("restored a [call 3 edit_file]", "A"),
        ("restored a [call 2 edit_file]", "B"),
        ("restored a [call 1 edit_file]", "A"),
        ("there is nothing to undo", "A"),
        ("there is nothing to undo", "A"),
    ]


def test_to_a_call_is_back_to_and_including_it(program: Program) -> None:
    put(program, "a", "1")
    work(program, edit("a", "1", "2"), edit("a", "2", "3"), read("a"), edit("a", "3", "4"))
    assert told(program.run("undo", "--to", "3")) == ["restored a [call 4 edit_file]"]
    assert (program.workspace / "a").read_text() == "3"
    assert told(program.run("undo", "--to", "2")) == ["restored a [call 2 edit_file]"]
    assert (program.workspace / "a").read_text() == "2"


def test_changes_by_commands_are_reported_and_not_undone(program: Program) -> None:
    """Commands that could only read are not spoken of."""
    put(program, "a", "1")
    work(
        program, edit("a", "1", "2"), bash("cat a"), bash("printf x > made\nprintf y"), write("b", "x"), bash("touch b")
    )
    done = program.run("undo", "--to", "1")
    why = "the changes by a command are not recorded"
    assert (done.code, told(done)) == (
        0,
        [
            f"not undone touch b [call 5 bash]: {why}",
            "removed b [call 4 write_file]",
            f"not undone printf x > made ... [call 3 bash]: {why}",
            "restored a [call 1 edit_file]",
        ],
    )
    assert {name: content for name, (_, content) in tree(program.workspace).items()} == {"a": b"1", "made": b"x"}


def swap_for_link(path: Path) -> None:
    path.rename(path.with_name("target"))
    path.symlink_to("target")


def swap_for_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


REFUSALS = [
    pytest.param(lambda path: path.write_text("mine"), "the file was changed since; not touched", id="changed since"),
    pytest.param(lambda path: path.unlink(), "the file is gone; not restored", id="gone"),
    pytest.param(swap_for_link, "a link is in the way now", id="a link now"),
    pytest.param(swap_for_folder, "Path is a directory", id="a folder now"),
    pytest.param(lambda path: path.chmod(0o444), "the file is read-only now", id="read-only now"),
]


@all_rows(("meddle", "why"), REFUSALS, fresh=True)
def test_files_changed_since_are_skipped_and_others_restored(program: Program, meddle: object, why: str) -> None:
    """Neither the newest change of that file nor an earlier one; exit 7."""
    path = put(program, "a", "one")
    other = put(program, "b", "1")
    work(program, edit("a", "one", "two"), edit("b", "1", "2"), edit("a", "two", "three"))
    assert callable(meddle)
    meddle(path)
    left = tree(program.workspace)
    done = program.run("undo", "--to", "1")
    lines = told(done)
    assert done.code == 7
    assert lines[0].startswith(f"refused a [call 3 edit_file]: {why}")
    assert lines[1:] == [
        "restored b [call 2 edit_file]",
        "refused a [call 1 edit_file]: not touched, since call 3 could not be undone",
    ]
    assert other.read_text() == "1"
    assert tree(program.workspace) == {**left, "b": (0o100644, b"1")}


def test_without_to_a_change_that_cannot_be_undone_is_where_it_ends(program: Program) -> None:
    path = put(program, "a", "one")
    put(program, "b", "1")
    work(program, edit("b", "1", "2"), edit("a", "one", "two"))
    path.write_text("mine")
    done = program.run("undo")
    assert (done.code, told(done)) == (7, ["refused a [call 2 edit_file]: the file was changed since; not touched"])
    assert (program.workspace / "b").read_text() == "2"
    assert [one.name for one in program.logs() if "undo" in one.read_text()] == [], (
        "nothing was done: nothing to record"
    )


def test_files_restored_by_hand_are_skipped(program: Program) -> None:
    path = put(program, "a", "one")
    put(program, "b", "1")
    work(program, edit("b", "1", "2"), edit("a", "one", "two"))
    path.write_text("one")
    done = program.run("undo")
    assert told(done) == ["already undone a [call 2 edit_file]", "restored b [call 1 edit_file]"]


def test_refused_undo_succeeds_once_the_file_matches_again(program: Program) -> None:
    path = put(program, "a", "one")
    work(program, edit("a", "one", "two"), write("b", "x"))
    path.write_text("mine")
    assert program.run("undo", "--to", "1").code == 7
    path.write_text("two")
    assert told(program.run("undo", "--to", "1")) == ["restored a [call 1 edit_file]"]


def test_missing_image_is_reported(program: Program) -> None:
    path = put(program, "a", "one")
    work(program, edit("a", "one", "two"))
    for image in (program.state / "harness" / "before_images").rglob("*"):
        if image.is_file():
            image.unlink()
    done = program.run("undo")
    assert (done.code, told(done)) == (
        7,
        ["refused a [call 1 edit_file]: the earlier content is no longer saved; not touched"],
    )
    assert path.read_text() == "two"


def test_rehearsal_changes_no_file(program: Program) -> None:
    put(program, "a", "one")
    work(program, edit("a", "one", "two"), write("b", "x"))
    before = tree(program.workspace), tree(program.state)
    assert program.run("undo", "--to", "1", "--dry-run").code == 0
    assert program.run("undo", "--dry-run", "--json").code == 0
    assert (tree(program.workspace), tree(program.state)) == before


def test_json_is_one_object_a_step_and_a_summary(program: Program) -> None:
    put(program, "a", "one")
    session = work(program, edit("a", "one", "two"), bash("touch x"), write("b", "x"))
    (program.workspace / "b").write_text("mine")
    done = program.run("undo", "--to", "1", "--json")
    *steps, summary = [json.loads(line) for line in done.out.splitlines()]
    assert [(one["call"], one["tool"], one["result"], one["dry_run"]) for one in steps] == [
        (3, "write_file", "refused", False),
        (2, "bash", "not undone", False),
        (1, "edit_file", "restored", False),
    ]
    assert (steps[0]["path"], steps[1]["command"]) == (str(program.workspace / "b"), "touch x")
    assert (summary["session"], summary["restored"], summary["refused"], summary["not undone"]) == (session, 1, 1, 1)
    assert (done.code, summary["exit_code"], Path(summary["undo_log"]).exists()) == (7, 7, True)


def test_undo_has_its_own_log(program: Program) -> None:
    """Whole, with its head kept; on disk before a file is touched is which calls are to be undone."""
    put(program, "a", "one")
    session = work(program, edit("a", "one", "two"), write("b", "x"))
    done = program.run("undo", "--to", "1")
    log = Path(done.out.splitlines()[-1].removeprefix("log: "))
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert [one["kind"] for one in records] == ["session_started", "restored", "restored", "session_ended"]
    assert (records[0]["mode"], records[0]["of_session"], records[0]["calls"]) == ("undo", session, [2, 1])
    assert [(one["call"], one["result"], one["path"]) for one in records[1:3]] == [
        (2, "removed", str(program.workspace / "b")),
        (1, "restored", str(program.workspace / "a")),
    ]
    assert records[3]["stop"] == "completed"
    assert program.run("audit", "verify", str(log)).code == 0
    assert program.run("audit", "show", str(log)).code == 0
    assert log.stat().st_mode & 0o777 == 0o600


def test_an_undoing_can_be_undone_by_hand(program: Program) -> None:
    """What an undoing replaced or removed is kept by its digest."""
    work(program, write("b", "only the model wrote this"))
    assert program.run("undo").code == 0
    images = (program.state / "harness" / "before_images").rglob("*")
    assert b"only the model wrote this" in [one.read_bytes() for one in images if one.is_file()]


def test_a_session_of_the_program_itself(program: Program) -> None:
    """`harness run`, from its log to the image that it kept."""
    put(program, "a", "one")
    policy = program.home / "policy.toml"
    policy.write_text(POLICY)
    script = replies(Reply(calls=(edit("a", "one", "two"),)), Reply(text="Done."))
    ran = program.run("run", "go", "--base-url", program.serve(script), "--policy", str(policy))
    assert (ran.code, (program.workspace / "a").read_text()) == (0, "two"), ran.err
    assert told(program.run("undo")) == ["restored a [call 1 edit_file]"]
    assert (program.workspace / "a").read_text() == "one"


# Which session.


def test_the_newest_session_of_this_workspace_or_the_one_named(program: Program, tmp_path: Path) -> None:
    put(program, "a", "1")
    first = work(program, edit("a", "1", "2"))
    second = work(program, edit("a", "2", "3"))
    other = tmp_path / "other"
    other.mkdir()
    work(program, write("c", "x"), cwd=other)
    done = program.run("undo")
    assert (done.out.startswith(f"session {second} in "), told(done)) == (True, ["restored a [call 1 edit_file]"])
    assert program.run("undo").out.startswith(f"session {second} in "), "an undoing is no session to undo"
    done = program.run("undo", "--session", first[:8])
    assert (done.out.startswith(f"session {first} in "), told(done)) == (True, ["restored a [call 1 edit_file]"])
    assert (program.workspace / "a").read_text() == "1"
    assert told(program.run("undo", "--cwd", str(other))) == ["removed c [call 1 write_file]"]


def test_sessions_without_changes_are_skipped(program: Program) -> None:
    """Who opens the prompt and leaves it, or only looks, still undoes the change before; a command is told of."""
    put(program, "a", "1")
    work(program, edit("a", "1", "2"))
    work(program)
    work(program, read("a"))
    assert told(program.run("undo")) == ["restored a [call 1 edit_file]"]
    ran = work(program, bash("touch b"))
    done = program.run("undo")
    assert (done.out.startswith(f"session {ran} in "), "touch b" in done.out) == (True, True), done.out


def test_two_sessions_in_one_log_are_kept_apart(program: Program) -> None:
    log = program.home / "log.jsonl"
    put(program, "a", "1")
    first = work(program, read("a"), edit("a", "1", "2"), log=str(log))
    work(program, edit("a", "2", "3"), log=str(log))
    assert program.run("undo", "--log", str(log), "--to", "2").code == 2, "a call of the other session"
    assert told(program.run("undo", "--log", str(log), "--to", "1")) == ["restored a [call 1 edit_file]"]
    assert (program.workspace / "a").read_text() == "2"
    assert program.run("undo", "--log", str(log), "--session", first).code == 0
    assert (program.workspace / "a").read_text() == "1"


USAGE = [
    pytest.param((), "is in the state folder's logs; --log FILE names another", id="no session"),
    pytest.param(("--session", "zz"), "--session: no session's name begins with 'zz'", id="no such session"),
    pytest.param(("--session", ""), "argument --session: the value is empty", id="an empty name"),
    pytest.param(("--to", "0"), "is not a whole number above 0", id="no call"),
    pytest.param(("--log", "missing.jsonl"), "missing.jsonl", id="no such log"),
    pytest.param(("a",), "unrecognized arguments", id="an operand"),
]


@all_rows(("words", "said"), USAGE)
def test_invalid_undo_arguments_are_refused(program: Program, words: tuple[str, ...], said: str) -> None:
    done = program.run("undo", *words)
    assert (done.code, said in done.err) == (8 if "--log" in words else 2, True), done.err


def test_a_call_that_the_session_does_not_have(program: Program) -> None:
    put(program, "a", "1")
    work(program, edit("a", "1", "2"))
    done = program.run("undo", "--to", "2")
    assert (done.code, "has no call 2; `harness audit show --session" in done.err) == (2, True), done.err
    assert program.run("undo", "--session", "").code == 2


def test_a_name_that_fits_two_sessions(program: Program) -> None:
    log = program.home / "log.jsonl"
    for _ in range(2):
        work(program, read("a"), log=str(log))
    text = log.read_text()
    for number, name in enumerate(sorted({str(json.loads(line)["session"]) for line in text.splitlines()})):
        text = text.replace(name, f"aaaa{number}")
    copy = program.home / "copy.jsonl"
    copy.write_text(text)
    done = program.run("undo", "--log", str(copy), "--session", "aaaa")
    assert (done.code, "--session: 2 sessions' names begin with 'aaaa'" in done.err) == (2, True), done.err


# A log that cannot be relied on.


def test_a_broken_log_is_refused(program: Program) -> None:
    put(program, "a", "one")
    work(program, edit("a", "one", "two"))
    log = program.logs()[0]
    log.write_text(log.read_text().replace('"before_mode":420', '"before_mode":511'))
    done = program.run("undo")
    assert (done.code, "cannot be relied on" in done.err, "BROKEN at line" in done.err) == (2, True, True), done.err
    assert (program.workspace / "a").read_text() == "two"


def test_log_with_a_cut_end_is_refused(program: Program) -> None:
    put(program, "a", "one")
    work(program, edit("a", "one", "two"), bash("true"))
    log = program.logs()[0]
    log.write_text("".join(line + "\n" for line in log.read_text().splitlines()[:-1]))
    done = program.run("undo")
    assert (done.code, "a tail is missing" in done.err) == (2, True), done.err


@all_rows("was_done", [True, False], ids=["it was done", "it was not done"], fresh=True)
def test_a_call_that_a_kill_cut_short(program: Program, was_done: bool) -> None:
    """The log ends at an intent, and in half a line: the file's content tells whether the call was done."""
    path = put(program, "a", "one")
    work(program, edit("a", "one", "two"))
    lines = program.logs()[0].read_text().splitlines(keepends=True)
    intent = next(number for number, line in enumerate(lines) if '"kind":"intent"' in line)
    log = program.home / "cut.jsonl"
    log.write_text("".join(lines[: intent + 1]) + '{"torn')
    (program.state / "harness" / "heads.jsonl").unlink()  # which knows that the session went on
    if not was_done:
        path.write_text("one")
    done = program.run("undo", "--log", str(log))
    expected = ["restored a [call 1 edit_file]"]
    assert (done.code, told(done)) == (
        0, expected if was_done else ["already undone a [call 1 edit_file]", "there is nothing to undo"],
    )  # fmt: skip
    assert path.read_text() == "one"


def test_after_a_real_kill(program: Program) -> None:
    """The harness is killed in the middle of a command; what it wrote before comes back."""
    put(program, "a", "one")
    policy = program.home / "policy.toml"
    policy.write_text(POLICY)
    script = replies(Reply(calls=(edit("a", "one", "two"),)), Reply(calls=(bash("touch started; sleep 1000"),)))
    process = program.start("run", "go", "--base-url", program.serve(script), "--policy", str(policy))
    wait_until((program.workspace / "started").exists, process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=120)
    done = program.run("undo", "--to", "1")
    assert (done.code, told(done)[-1]) == (0, "restored a [call 1 edit_file]"), done.err
    assert told(done)[0].startswith("not undone touch started; sleep 1000 [call 2 bash]")
    assert (program.workspace / "a").read_text() == "one"


KILLED = """
import signal, sys
from harness.app import undo
from harness.app.main import main

# After time of its own, which other processes take none of: the kernel ends it then, in the middle of anything.
signal.setitimer(signal.ITIMER_PROF, float(sys.argv[1]))
sys.exit(main(sys.argv[2:]))
"""


def started(program: Program, code: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start the program by way of `code`."""
    pipe, command = subprocess.PIPE, [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, cwd=program.workspace, env=program.environment, stdout=pipe, stderr=pipe)


def test_undo_killed_repeatedly_still_completes(program: Program) -> None:
    """At any moment a file is what it was between two calls; what was begun is in a log that can be verified."""
    files, rounds = 6, 8
    for number in range(files):
        put(program, f"f{number}", f"{number}:0\n" * 2000)
    calls = [
        edit(f"f{number}", f"{number}:{turn}\n", f"{number}:{turn + 1}\n").arguments
        for turn in range(rounds)
        for number in range(files)
    ]
    every = [ToolCall(id="", name="edit_file", arguments=one[:-1] + ', "replace_all": true}') for one in calls]
    work(program, *(read(f"f{number}") for number in range(files)), *every)
    known = {f"f{n}": {f"{n}:{turn}\n" * 2000 for turn in range(rounds + 1)} for n in range(files)}
    kills, chance = 0, random.Random(4)
    for _ in range(proof_size("UNDO_KILLS", 6, full=40)):
        process = started(program, KILLED, str(chance.uniform(0.001, 0.1)), "undo", "--to", "1")
        process.communicate(timeout=120)
        assert [name for name in known if (program.workspace / name).read_text() not in known[name]] == []
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGPROF
        kills += 1
    assert kills > 0, "the machine was too fast: nothing was killed"
    assert program.run("undo", "--to", "1").code == 0
    assert {name: (program.workspace / name).read_text() for name in known} == {
        name: f"{name[1:]}:0\n" * 2000 for name in known
    }
    undoings = [log for log in program.logs() if '"mode":"undo"' in log.read_text()]
    # 4: killed after the last record, before its head was noted.
    assert {program.run("audit", "verify", str(log)).code for log in undoings} <= {0, 3, 4}


def test_undo_that_cannot_be_recorded_is_refused(program: Program) -> None:
    log = program.home / "log.jsonl"
    work(program, write("b", "x"), log=str(log))
    state = program.home / "state" / "harness"
    state.mkdir(parents=True)
    (state / "sessions").write_text("not a folder")
    environment = {**program.environment, "XDG_STATE_HOME": str(state.parent)}
    done = program.run("undo", "--log", str(log), env=environment)
    assert (done.code, (program.workspace / "b").read_text()) == (8, "x"), done.err


def test_the_harness_s_own_files_are_never_restored(program: Program) -> None:
    """Whatever a log says that follows its own chain: a forged one can name the trust file."""
    trust = program.state / "harness" / "trusted_policies"
    trust.parent.mkdir(parents=True)
    trust.write_text("x")
    digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    log = ActionLog.open(str(program.home / "forged.jsonl"))
    change = {"path": str(trust), "before_sha256": None, "after_sha256": digest, "before_mode": None}
    append_filled(log, [("session_started", {"workspace": str(program.workspace)})])
    append_filled(log, [("call_proposed", {"call": 1, "tool": "write_file"})])
    append_filled(log, [("decision", {"call": 1, "tool": "write_file", "decision": "auto"})])
    append_filled(log, [("intent", {"call": 1, "tool": "write_file", "change": dict(change)})])
    log.close()
    done = program.run("undo", "--log", log.path)
    assert (done.code, told(done)[0].endswith("the harness's own files are never restored")) == (7, True), done.out
    assert trust.read_text() == "x"


def forged(program: Program, path: Path) -> str:
    """Return a log, its chain whole, that says that a call made the file at `path` with what it holds."""
    log = ActionLog.open(str(program.home / "forged.jsonl"))
    append_filled(log, [("session_started", {"workspace": str(program.workspace)})])
    append_filled(log, [("call_proposed", {"call": 1, "tool": "write_file"})])
    append_filled(log, [("decision", {"call": 1, "tool": "write_file", "decision": "auto"})])
    after = hashlib.sha256(path.read_bytes()).hexdigest()
    change: dict[str, JsonValue] = {
        "path": str(path),
        "before_sha256": None,
        "after_sha256": after,
        "before_mode": None,
    }
    append_filled(log, [("intent", {"call": 1, "tool": "write_file", "change": dict(change)})])
    told = {"changed_path": str(path), "before_sha256": None, "after_sha256": after}
    log.append("outcome", {"call": 1, "tool": "write_file", "status": "ok", "content": "", **told})
    log.close()
    return log.path


@all_rows(("inside", "code"), [(True, 0), (False, 7)])
def test_a_log_that_anyone_may_have_made_reaches_no_file_elsewhere(program: Program, inside: bool, code: int) -> None:
    path = (program.workspace if inside else program.home) / "victim"
    path.write_text("x")
    done = program.run("undo", "--log", forged(program, path))
    assert (done.code, path.exists()) == (code, not inside), done.out
    assert inside or "no head of this log was kept" in done.out


SIGNALLED = """
import os, sys
from harness.app.main import main

def hook(event, arguments):
    if event == "os.rename" and os.fsdecode(arguments[1]).endswith(sys.argv[2]):
        os.kill(os.getpid(), int(sys.argv[1]))

sys.addaudithook(hook)
sys.exit(main(sys.argv[3:]))
"""


@all_rows(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], fresh=True)
def test_signal_stops_undo_between_files_with_a_report(program: Program, number: signal.Signals, code: int) -> None:
    names = [f"f{number}" for number in range(60)]
    for name in names:
        put(program, name, "1")
    work(program, *(edit(name, "1", "2") for name in names))
    process = started(program, SIGNALLED, str(int(number)), names[-9], "undo", "--to", "1")
    out, err = process.communicate(timeout=120)
    back = sum((program.workspace / name).read_text() == "1" for name in names)
    assert (process.returncode, b"was stopped" in err, out.count(b"restored ")) == (code, True, back), err
    assert 9 <= back < len(names), "it was over before the signal came"
    (log,) = (path for path in program.logs() if '"mode":"undo"' in path.read_text())
    assert program.run("audit", "verify", str(log)).code == 0
    assert program.run("undo", "--to", "1").code == 0
    assert {(program.workspace / name).read_text() for name in names} == {"1"}


# What is shown.


@all_rows("name", ["new\nline", "\x1b[2Jclear", "\u202etxt.exe", "~", "-rf", "caf\u00e9", "a b"])
def test_names_are_shown_so_that_a_terminal_obeys_none(program: Program, name: str) -> None:
    work(program, write(f"./{name}", "x"))
    done = program.run("undo")
    assert (done.code, len(told(done))) == (0, 1), done.out
    assert told(done)[0].startswith("removed ")
    assert not {"\x1b", "\u202e"} & set(done.out)
    assert list(program.workspace.iterdir()) == []


def test_path_with_a_masked_secret_is_refused(program: Program) -> None:
    program.environment["SOME_TOKEN"] = "hunter2hunter2"
    work(program, write("hunter2hunter2", "x"))
    done = program.run("undo")
    assert (done.code, "a secret in its path was masked" in done.out) == (7, True), done.out
    assert (program.workspace / "hunter2hunter2").read_text() == "x"


def test_reader_that_disconnects_does_not_stop_undo(program: Program) -> None:
    put(program, "a", "one")
    work(program, edit("a", "one", "two"), write("b", "x"))
    reader, writer = os.pipe()
    os.close(reader)
    process = program.start("undo", "--to", "1", stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, b"Traceback" in err) == (141, False), err
    assert tree(program.workspace) == {"a": (0o100644, b"one")}
