"""`harness undo` takes back commands as it takes back edits: newest first, only what still is as the calls left it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playing import Playing

from harness import ActionLog, Agent, Workspace, builtin_tools
from harness.actions import Action
from harness.app.kept_contents import kept_contents
from harness.files.before_images import BeforeImages
from harness.files.tree_undo import CallChanges, plan_undo
from harness.files.undo import CommandStep, changes_to_undo
from harness.files.undo_run import apply_undo
from harness.gate.approval import Approval
from harness.log.reader import read_log
from harness.log.vocabulary import Answer
from harness.messages import StopReason, ToolCall
from harness.models.scripted import Reply, call, replies
from harness.policy.loader import parse_policy
from harness.policy.verdict import Verdict
from harness.session.environment_secrets import secrets_of
from harness.session.session_log import close_log
from harness.session.state import State
from harness.tools.command_changes import CommandChanges

if TYPE_CHECKING:
    from program import Done, Program

POLICY = """
version = 1
[tools]
default = "auto"
[[rule]]
id = "secrets"
decision = "deny"
access = ["read"]
path = [".env"]
reason = "Secrets stay out."
"""


def yes(action: Action, verdict: Verdict) -> Approval:
    return Approval(answer=Answer.YES, by="script")


def work(program: Program, *calls: ToolCall | str) -> str:
    """Make a session of these calls, or commands, through the real gate, and return its name."""
    state, environment = State.of(program.environment), program.environment
    workspace = Workspace(str(program.workspace), environment["HOME"])
    log = ActionLog.open(state.new_log_path(workspace.root), secrets=secrets_of(environment))
    agent = Agent(
        model=Playing([each if isinstance(each, ToolCall) else call("bash", command=each) for each in calls]),
        tools=builtin_tools(
            workspace,
            environment=environment,
            images=BeforeImages(state.before_images),
            changes=CommandChanges(workspace.root, state.trees, environment),
        ),
        policy=parse_policy(POLICY.encode(), "test.toml"),
        approver=yes,
        log=log,
        facts={"mode": "run", "workspace": workspace.root},
    )
    assert agent.run("go").stop is StopReason.COMPLETED
    close_log(state, log)
    return log.session


def write(name: str, content: str) -> ToolCall:
    return call("write_file", path=name, content=content)


def edit(name: str, old: str, new: str) -> ToolCall:
    return call("edit_file", path=name, old_string=old, new_string=new)


def tree(folder: Path) -> dict[str, object]:
    """Return kind, permission bits and content of every path below a folder, except in `.git`."""
    states: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.split("/", 1)[0] == ".git":
            continue
        status = path.lstat()
        content: object = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        states[name] = (stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode), content)
    return states


def told(done: Done) -> list[str]:
    """Return the lines about the steps: without the heading and the name of the log, blanks made one."""
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    return [line for line in lines[1:] if not line.startswith("log: ")]


@pytest.fixture
def place(program: Program) -> Path:
    for name, content in (("a", "one\n"), ("keep/b", "b\n"), ("run.sh", "#!/bin/sh\n"), (".env", "KEY=1\n")):
        path = program.workspace / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    (program.workspace / "run.sh").chmod(0o755)
    (program.workspace / "link").symlink_to("a")
    return program.workspace


MIXED = (
    edit("a", "one", "two"),
    "sed -i s/two/three/ a; mkdir -p new/deep; echo x > new/deep/file; rm keep/b; chmod 600 run.sh; ln -sfn keep link",
    edit("a", "three", "four"),
    write("made", "by an edit\n"),
    "mv made new/moved; rmdir keep; mkdir keep; echo five >> a",
)


def read_all(calls: tuple[ToolCall | str, ...]) -> tuple[ToolCall | str, ...]:
    """Return the calls with a reading before each edit, which the tools want."""
    full: list[ToolCall | str] = []
    for each in calls:
        if isinstance(each, ToolCall) and each.name == "edit_file":
            full.append(call("read_file", path=str(json.loads(each.arguments)["path"])))
        full.append(each)
    return tuple(full)


def test_edits_and_commands_are_taken_back_in_one_order(program: Program, place: Path) -> None:
    before = tree(place)
    work(program, *read_all(MIXED))
    after = tree(place)
    assert after != before
    rehearsed = program.run("undo", "--to", "1", "--dry-run")
    assert tree(place) == after
    done = program.run("undo", "--to", "1")
    assert tree(place) == before, done.out
    assert done.code == 0
    assert [
        line.replace("would restore", "restored").replace("would remove", "removed") for line in told(rehearsed)
    ] == (told(done))
    again = program.run("undo", "--to", "1")
    assert told(again)[-1] == "there is nothing to undo"
    assert tree(place) == before
    assert program.run("audit", "verify").code == 0


def test_undo_alone_takes_back_the_newest_call(program: Program, place: Path) -> None:
    work(program, "echo two > a; echo n > new", "cat a", "echo three > a")
    assert told(program.run("undo")) == ["restored a [call 3 bash]"]
    assert (place / "a").read_text() == "two\n"
    assert sorted(told(program.run("undo"))) == ["removed new [call 1 bash]", "restored a [call 1 bash]"]
    assert ((place / "a").read_text(), (place / "new").exists()) == ("one\n", False)
    assert told(program.run("undo")) == ["there is nothing to undo"]


def test_later_changes_of_others_stay(program: Program, place: Path) -> None:
    """A file that the person changed since, or put in a folder of the command, is listed and left."""
    work(program, "echo two > a; mkdir new; echo n > new/n; rm keep/b")
    (place / "a").write_text("mine\n")
    (place / "new/mine").write_text("mine\n")
    done = program.run("undo")
    assert done.code == 7
    assert [line for line in told(done) if line.startswith("refused")] == [
        "refused a [call 1 bash]: changed after call 1",
        "refused new [call 1 bash]: holds mine",
    ]
    assert {name: (place / name).read_text() for name in ("a", "new/mine", "keep/b")} == {
        "a": "mine\n",
        "new/mine": "mine\n",
        "keep/b": "b\n",
    }
    assert not (place / "new/n").exists()


def test_undone_command_that_ran_again_is_taken_back_alone(program: Program, place: Path) -> None:
    """What an undo took back is in the record: the command of before does not stand in the way of the next."""
    work(program, "echo two > a")
    assert program.run("undo").code == 0
    session = work(program, "echo two > a", "echo three > a")
    assert told(program.run("undo", "--session", session, "--to", "1")) == [
        "restored a [call 2 bash]",
        "restored a [call 1 bash]",
    ]
    assert (place / "a").read_text() == "one\n"


@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_permissions_of_the_workspace_itself_are_taken_back(program: Program, place: Path, mode: int) -> None:
    place.chmod(mode)
    work(program, "chmod 711 .", "echo two > a; chmod 500 .")
    assert sorted(told(program.run("undo", "--to", "1"))) == [
        "restored . [call 1 bash]",
        "restored . [call 2 bash]",
        "restored a [call 2 bash]",
    ]
    assert (stat.S_IMODE(place.stat().st_mode), (place / "a").read_text()) == (mode, "one\n")
    assert told(program.run("undo"))[-1] == "there is nothing to undo"


def test_git_history_and_left_out_files_are_told_and_never_touched(program: Program, place: Path) -> None:
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    as_user = "git -c user.name=u -c user.email=u@example.com"
    work(program, f"git add a; {as_user} commit -qm one; echo two > a; mkdir node_modules; echo m > node_modules/m")
    head = subprocess.run(["git", "-C", str(place), "rev-parse", "HEAD"], capture_output=True, check=True).stdout
    done = program.run("undo")
    lines = told(done)
    assert "restored a [call 1 bash]" in lines
    assert any(line.endswith("[call 1 bash]: git history cannot be undone") for line in lines)
    assert any(line.startswith("not undone node_modules [call 1 bash]: left out: ") for line in lines)
    assert (place / "node_modules/m").exists()
    assert (
        subprocess.run(["git", "-C", str(place), "rev-parse", "HEAD"], capture_output=True, check=True).stdout == head
    )


def test_denied_files_cannot_be_undone_and_say_so(program: Program, place: Path) -> None:
    work(program, "echo KEY=2 > .env; echo two > a")
    assert sorted(told(program.run("undo"))) == [
        "not undone .env [call 1 bash]: a rule denies to read it",
        "restored a [call 1 bash]",
    ]
    assert (place / ".env").read_text() == "KEY=2\n"


def test_json_names_each_file_with_its_digests(program: Program, place: Path) -> None:
    work(program, "echo two > a; echo n > new")
    done = program.run("undo", "--json")
    *rows, summary = map(json.loads, done.out.splitlines())
    assert [(row["path"], row["result"]) for row in rows] == [
        (str(place / "a"), "restored"),
        (str(place / "new"), "removed"),
    ]
    assert all(row["after_sha256"] for row in rows)
    assert (summary["restored"], summary["removed"], summary["exit_code"]) == (1, 1, 0)


def test_many_files_of_a_command_are_counted(program: Program, place: Path) -> None:
    work(program, "for n in $(seq 700); do echo $n > many$n; done")
    done = program.run("undo")
    assert told(done)[-1] == "... 700 files of call 1 in all"
    assert len(told(done)) == 21
    assert [path.name for path in place.iterdir() if path.name.startswith("many")] == []


def test_forged_log_outside_reaches_no_file_elsewhere(program: Program, place: Path, tmp_path: Path) -> None:
    session = work(program, "echo two > a")
    (log,) = [path for path in program.logs() if session in path.read_text()]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    copied = tmp_path / "copied.jsonl"
    copied.write_bytes(log.read_bytes())
    done = program.run("undo", "--log", str(copied), "--session", session, "--cwd", str(elsewhere))
    assert told(done)[0].endswith(
        "it lies elsewhere, and no head of this log was kept: anyone may have written it (if you trust it: --cwd FOLDER)"
    )
    assert (place / "a").read_text() == "two\n"


def test_audit_names_exactly_what_each_command_changed(program: Program, place: Path) -> None:
    """A look leaves no "may have"; what was undone, or changed since, is told of each file."""
    session = work(program, "echo two > a; rm keep/b; ln -sfn keep link", "cat a", "chmod 600 run.sh", "echo x > new")
    shown = program.run("audit", "show", "--session", session)
    lines = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert any("exit 0, ~2 -1," in line for line in lines)
    assert "changed a 2c8b08da5ce6 -> 27dd8ed44a83" in lines
    assert any(line.startswith("removed keep/b ") for line in lines)
    assert "changed link link to a -> link to keep" in lines
    assert any(line.startswith("changed the mode of run.sh ") for line in lines)
    assert any(line.startswith("made new none -> ") for line in lines)
    assert "made new" not in program.run("audit", "show", "--session", session, "--path", "keep/b").out
    assert program.run("undo").code == 0
    (place / "a").write_text("mine\n")
    asked = program.run("audit", "files", "--session", session, "--json")
    rows = [json.loads(line) for line in asked.out.splitlines()]
    on_disk = {row["path"].removeprefix(f"{place}/"): row["on_disk"] for row in rows if row.get("row") == "file"}
    assert on_disk == {
        "a": "changed_since",
        "keep/b": "as_left",
        "link": "not_looked_at",
        "new": "as_before",
        "run.sh": "as_left",
    }
    changes = {row["path"].removeprefix(f"{place}/"): row for row in rows if row.get("row") == "change"}
    assert {name: (row["created"], row["removed"], row["undone"]) for name, row in changes.items()} == {
        "a": (False, False, False),
        "keep/b": (None, True, False),
        "link": (None, False, False),
        "new": (True, False, True),
        "run.sh": (False, False, False),
    }
    assert all(row["sure"] and row["undoable"] for row in changes.values())
    assert [row for row in rows if row.get("row") == "command"] == []
    assert "could write" not in program.run("audit", "files", "--session", session).out


@pytest.mark.parametrize("steps", [2, 6, 9])
def test_killed_undo_is_finished_by_the_next(program: Program, place: Path, steps: int) -> None:
    before = tree(place)
    session = work(program, "sed -i s/one/two/ a; mkdir new; echo x > new/file; rm keep/b; ln -sfn keep link")
    (log,) = [path for path in program.logs() if session in path.read_text()]
    (step,) = changes_to_undo(list(read_log(str(log))), session, log=str(log))
    stores = kept_contents(State.of(program.environment), str(place))
    child = os.fork()
    if child == 0:
        left = iter(range(steps))

        def pause(action: str) -> None:
            if next(left, None) is None:
                os._exit(9)

        assert isinstance(step, CommandStep)
        plan = plan_undo(str(place), [CallChanges(call=1, changes=step.changes)], {1}, stores.has)
        apply_undo(str(place), plan, stores.store, stores.new_journal(), content_of=stores.get, pause=pause)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert tree(place) != before
    done = program.run("undo")
    assert "1 undo that had been stopped midway was finished first" in done.err
    assert tree(place) == before
    assert os.listdir(stores.journals) == []


def test_policy_under_which_commands_only_read_keeps_no_contents(program: Program, place: Path) -> None:
    script = replies(Reply(calls=(call("bash", command="cat a; ls -la"),)), Reply(text="Done."))
    done = program.run(
        "run", "look", "--base-url", program.serve(script), "--model", "scripted", "--policy", "readonly"
    )
    assert done.code == 0, done.err
    assert not os.path.lexists(State.of(program.environment).trees)
