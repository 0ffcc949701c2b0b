"""Helpers through the whole program: what they are given, what comes back, what they count, and what a hostile one gets."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

from configured_scene import ConfiguredScene
from git_scene import run_git
from places import SUPPORT
from program import Program
from rows import all_rows
from run_scene import flags_of, wait_until

from harness.log.verify import verify
from harness.models.scripted import Reply, call, replies, say
from policies import AUTO

HELPERS = AUTO.replace("[tools]\n", '[tools]\ndelegate = "auto"\n')


def delegate(task: str = "Look at a.txt", **more: Any) -> Reply:
    return Reply(calls=(call("delegate", task=task, **more),))


def bash(command: str) -> Reply:
    return Reply(calls=(call("bash", command=command),))


def read(path: str) -> Reply:
    return Reply(calls=(call("read_file", path=path),))


def asked(program: Program) -> list[Any]:
    """Return the requests that the model got."""
    return [request for player in program.players for request in player.requests]


def statuses(program: Program) -> list[tuple[object, object]]:
    return [(one["tool"], one["status"]) for one in program.records() if one["kind"] == "outcome"]


def run(program: Program, *script: Reply, rules: str = HELPERS, flags: tuple[str, ...] = ()) -> Any:
    url = program.serve(replies(*script))
    ended = program.run("run", "go", *flags_of(program, url, rules), *flags)
    (log,) = program.logs()
    assert verify(str(log)).problem == ""
    return ended


def test_helper_starts_with_an_empty_history_and_returns_its_answer(program: Program) -> None:
    (program.workspace / "a.txt").write_text("the word is plum\n")
    ended = run(program, delegate(), read("a.txt"), say("It is plum."), say("Plum, says the helper."))
    assert ended.code == 0, ended.err
    parent, first, _, last = asked(program)
    assert [one["role"] for one in first["messages"]] == ["system", "user"]
    assert first["messages"][1]["content"] == "Look at a.txt"
    assert "You are a helper" in first["messages"][0]["content"]
    offered = {tool["function"]["name"] for tool in first["tools"]}
    assert "delegate" in {tool["function"]["name"] for tool in parent["tools"]}
    assert "delegate" not in offered
    assert "read_file" in offered
    told = last["messages"][-1]["content"]
    assert told.startswith("[helper 1: completed; turns: 2")
    assert told.endswith("It is plum.")
    assert statuses(program) == [("read_file", "ok"), ("delegate", "ok")]
    starts = [one for one in program.records() if one["kind"] == "session_started"]
    assert [one.get("parent") for one in starts] == [None, starts[0]["session"]]
    assert (starts[1]["parent_call"], starts[1]["helper"], starts[1]["mode"]) == (1, 1, "helper")
    ends = [one for one in program.records() if one["kind"] == "session_ended"]
    assert [one["session"] for one in ends] == [starts[1]["session"], starts[0]["session"]]


HOSTILE = {
    "it writes": (Reply(calls=(call("write_file", path="new", content="x"),)), "denied"),
    "it writes by a command": (bash("echo x > new"), "denied"),
    "it runs what may do anything": (bash('python3 -c \'open("new", "w")\''), "denied"),
    "it fills the disk": (bash("head -c 100000000 /dev/zero > new"), "denied"),
    "it asks for helpers": (delegate("and you another"), "invalid"),
    "it reads what nobody may": (read("/etc/shadow"), "denied"),
}


@all_rows("wanted, status", HOSTILE, fresh=True)
def test_a_helper_that_reads_gets_no_more_than_that(program: Program, wanted: Reply, status: str) -> None:
    before = sorted(path.name for path in program.workspace.iterdir())
    ended = run(program, delegate(), wanted, say("I could not."), say("Well."))
    assert statuses(program)[0] == (wanted.calls[0].name, status), ended.err
    assert statuses(program)[1] == ("delegate", "ok")
    assert sorted(path.name for path in program.workspace.iterdir()) == before


def repository(program: Program) -> None:
    """Make the workspace a repository with one commit."""
    (program.workspace / "a.txt").write_text("old\n")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
        assert run_git(program.workspace, *words).returncode == 0


def test_writing_helper_returns_its_changes_as_a_patch(program: Program, tmp_path: Path) -> None:
    repository(program)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    program.environment["TMPDIR"] = str(temporary)
    change = Reply(calls=(call("write_file", path="b.txt", content="new\n"),))
    ended = run(
        program,
        delegate("change it", policy="same"),
        change,
        bash("echo more >> a.txt; pwd"),
        say("Done."),
        say("Good."),
    )
    assert ended.code == 0, ended.err
    assert (program.workspace / "a.txt").read_text() == "old\n"
    assert not (program.workspace / "b.txt").exists()
    told = asked(program)[-1]["messages"][-1]["content"]
    assert "+more" in told
    assert "+new" in told
    (helper,) = json.loads(ended.out)["helpers"]
    assert f"the patch is kept in {helper['patch']}" in told
    assert "; nothing is applied, the next line does it" in ended.err
    assert f"\n  git apply {helper['patch']}\n" in ended.err
    assert run_git(program.workspace, "apply", "--check", helper["patch"]).stderr == ""
    assert not any(temporary.iterdir()), "the copy is gone"
    assert run_git(program.workspace, "worktree", "list").stdout.count("\n") == 1


OUT_OF_THE_COPY = {
    "by a tool": lambda root: Reply(calls=(call("write_file", path=f"{root}/a.txt", content="x"),)),
    "by a command": lambda root: bash(f"echo x > {shlex.quote(str(root))}/a.txt"),
    "by a program": lambda root: bash(f'python3 -c \'open("{root}/a.txt", "w").write("x")\''),
    "the log of whoever asks": lambda root: bash(
        f"echo x >> {shlex.quote(str(root))}/../state/harness/sessions/*/*.jsonl"
    ),
    "the branch": lambda root: bash(f"git -C {shlex.quote(str(root))} branch mine"),
}


@all_rows("wanted", OUT_OF_THE_COPY, fresh=True)
def test_writing_helper_changes_only_its_copy(program: Program, wanted: Any) -> None:
    repository(program)
    run(program, delegate("t", policy="same"), wanted(program.workspace), say("Hm."), say("Well."))
    assert (program.workspace / "a.txt").read_text() == "old\n"
    assert run_git(program.workspace, "branch", "--list", "mine").stdout == ""


SECRETS = """
[sandbox]
hide = ["secrets"]
[[rule]]
id = "secrets"
decision = "deny"
path = ["/secrets/**"]
reason = "Secrets."
"""
OF_WHAT_IS_COPIED = {
    "by a tool": (lambda root: read(f"{root}/secrets/key"), "denied"),
    "by a command": (lambda root: bash(f"cat {shlex.quote(str(root))}/secrets/key"), "denied"),
    "by a program": (lambda root: bash(f"python3 -c 'print(open(\"{root}/secrets/key\").read())'"), "failed"),
    "by a tool of a server": (lambda root: Reply(calls=(call("mcp__srv__act"),)), "invalid"),
}


@all_rows("wanted, status", OF_WHAT_IS_COPIED, fresh=True)
def test_rules_of_the_original_apply_in_the_copy_of_a_helper(program: Program, wanted: Any, status: str) -> None:
    repository(program)
    (program.workspace / "secrets").mkdir()
    (program.workspace / "secrets" / "key").write_text("TOP" + "SECRET")
    ConfiguredScene(program, [sys.executable, os.path.join(SUPPORT, "hostile_mcp_server.py"), "plain"])
    run(
        program,
        delegate("t", policy="same"),
        wanted(program.workspace),
        say("Hm."),
        say("Well."),
        rules=HELPERS + SECRETS,
    )
    assert statuses(program)[0][1] == status
    assert "TOPSECRET" not in json.dumps(asked(program))


def test_writing_helper_needs_a_repository(program: Program) -> None:
    run(program, delegate("t", policy="same"), say("Then I do it."))
    told = asked(program)[-1]["messages"][-1]["content"]
    assert told.startswith("Error: A helper that writes cannot be started here, one that only reads can: ")


ASKED = HELPERS.replace('delegate = "auto"\n', "")
JUDGED = {
    "reading needs no line": (ASKED, {}, "ok"),
    "writing needs one": (ASKED.replace('default = "auto"', 'default = "confirm"'), {"policy": "same"}, "denied"),
    "a line refuses both": (ASKED.replace("[tools]\n", '[tools]\ndelegate = "deny"\n'), {}, "denied"),
}


@all_rows("rules, more, status", JUDGED, fresh=True)
def test_the_call_itself_is_judged(program: Program, rules: str, more: dict[str, str], status: str) -> None:
    run(program, delegate("t", **more), say("Yes."), say("Good."), rules=rules, flags=("--tools", "delegate,read_file"))
    assert ("delegate", status) in statuses(program)


def test_a_block_in_a_helper_halts_all(program: Program) -> None:
    blocks = HELPERS + '[[rule]]\nid = "no"\ndecision = "block"\nargv = ["rm"]\nreason = "No rm."\n'
    first = Reply(calls=(*delegate("t").calls, call("bash", command="touch never")))
    ended = run(program, first, bash("rm -rf x"), rules=blocks)
    assert ended.code == 3, ended.err
    assert not (program.workspace / "never").exists()
    stops = [(one["stop"], one["detail"]) for one in program.records() if one["kind"] == "session_ended"]
    assert [stop for stop, _ in stops] == ["blocked", "blocked"]
    assert str(stops[1][1]).startswith("in helper 1: ")
    assert statuses(program) == [("bash", "blocked"), ("delegate", "failed"), ("bash", "not_run")]


def test_helper_gets_half_of_the_remaining_limits(program: Program) -> None:
    loop = [read(f"{number}.txt") for number in range(20)]
    ended = run(program, delegate("t"), *loop[:4], say("My end."), flags=("--max-turns", "10"))
    assert ended.code == 0, ended.err
    told = asked(program)[-1]["messages"][-1]["content"]
    assert "[helper 1: limit; turns: 4" in told
    assert "4 requests were made (turns = 4)" in told
    result = json.loads(ended.out)
    assert result["turns"] == 6
    sums = [one for one in program.records() if one["kind"] == "model_response"]
    assert result["usage"]["output_tokens"] == sum(int(str(one["output_tokens"])) for one in sums)


def test_the_log_and_its_report_show_the_tree(program: Program) -> None:
    ended = run(program, delegate(), read("a.txt"), say("It is not there."), say("Well."))
    assert "helper 1  > Look at a.txt" in ended.err
    assert "helper 1  completed, 2 requests, " in ended.err
    (helper,) = json.loads(ended.out)["helpers"]
    assert (helper["task"], helper["end"], helper["turns"]) == ("Look at a.txt", "completed", 2)
    (log,) = program.logs()
    shown = program.said("audit", "show", str(log))
    parent, child = (str(one["session"]) for one in program.records() if one["kind"] == "session_started")
    assert f"  helper 1 | of session {parent}, call 1: session {child}" in shown
    assert "  helper 1 | it took 2 requests" in shown
    assert child not in program.said("sessions", "list")
    page = program.said("audit", "report", str(log), "--out", "-")
    assert f"helper 1 of <code>{parent}</code>" in page


def stubborn(program: Program) -> Reply:
    """Return a call that runs what ignores every signal that can be, and has a child that does."""
    (program.workspace / "stay.py").write_text(
        "import os, signal, time\n"
        "for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(one, signal.SIG_IGN)\n"
        "os.fork(); os.setsid() if os.getpid() != os.getpgrp() else None\n"
        "open('started', 'w'); time.sleep(1000)\n"
    )
    for words in (("add", "-A"), ("commit", "-qm", "stubborn")):
        assert run_git(program.workspace, *words).returncode == 0
    return bash("python3 stay.py")


def test_a_helper_that_ignores_the_end_ends_with_the_run(program: Program, tmp_path: Path) -> None:
    repository(program)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    program.environment["TMPDIR"] = str(temporary)
    stays = stubborn(program)
    url = program.serve(replies(delegate("t", policy="same"), stays, say("No.")))
    process = program.start("run", "go", *flags_of(program, url, HELPERS))
    wait_until(lambda: any(temporary.glob("*/copy/worktree/started")), process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert [one["stop"] for one in program.records() if one["kind"] == "session_ended"] == ["interrupted"] * 2
    assert statuses(program) == [("bash", "interrupted"), ("delegate", "interrupted")]
    (patch,) = [one["patch_file"] for one in program.records() if "patch_file" in one]
    assert "b/started" in Path(str(patch)).read_text()
    assert not any(temporary.iterdir())
    assert len(asked(program)) == 2


def test_helper_out_of_time_ends_and_its_caller_goes_on(program: Program) -> None:
    repository(program)
    stays = stubborn(program)
    ended = run(
        program, delegate("t", policy="same"), stays, say("I go on."), flags=("--max-seconds", "12"), rules=HELPERS
    )
    assert ended.code == 0, ended.err
    assert "[helper 1: limit; turns: 1" in asked(program)[-1]["messages"][-1]["content"]
    (first, _) = [one for one in program.records() if one["kind"] == "outcome"]
    assert (first["tool"], first["status"]) == ("bash", "timeout")


def test_big_files_are_removed_with_the_copy(program: Program, tmp_path: Path) -> None:
    repository(program)
    program.environment["TMPDIR"] = str(tmp_path / "temporary")
    (tmp_path / "temporary").mkdir()
    fills = bash("python3 -c \"open('big', 'wb').truncate(300000000)\"")
    ended = run(program, delegate("t", policy="same"), fills, say("Full."), say("Well."))
    assert ended.code == 0, ended.err
    told = asked(program)[-1]["messages"][-1]["content"]
    assert "lost, since no patch holds it" in told
    assert not any((tmp_path / "temporary").iterdir())


MORE = {
    "a tool that there is not": ({"tools": ["read_file", "root"]}, "A helper cannot have 'root'"),
    "one that whoever asks does not have": ({"tools": ["write_file"]}, "A helper cannot have 'write_file'"),
    "helpers of its own": ({"tools": ["delegate"]}, "A helper cannot have 'delegate'"),
}


@all_rows("more, told", MORE, fresh=True)
def test_helper_cannot_get_more_rights_than_its_caller(program: Program, more: dict[str, Any], told: str) -> None:
    run(program, delegate("t", **more), say("Then not."), flags=("--tools", "delegate,read_file,bash"))
    assert told in asked(program)[-1]["messages"][-1]["content"]
