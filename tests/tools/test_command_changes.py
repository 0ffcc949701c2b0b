"""The outcome record of a command says exactly which files it changed, with digests before and after."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event, Thread

import pytest
from playing import Playing
from rows import all_rows

from harness import ActionLog, Agent, Workspace, builtin_tools
from harness.actions import Access, Action, Effects, Enforcement, JsonValue
from harness.files.recorded_changes import changes_from, recorded
from harness.files.segments import SegmentStore
from harness.files.tree_watch import store_of
from harness.gate.approval import Approval
from harness.gate.tool import ChangingTool
from harness.log.attachments import attachments_beside
from harness.log.changed_files import MOST_LISTED, changes_in
from harness.log.reader import read_log
from harness.log.schema import problem
from harness.log.vocabulary import Answer
from harness.messages import StopReason, ToolCall
from harness.models.scripted import call
from harness.policy.loader import parse_policy
from harness.policy.verdict import Verdict
from harness.tools.command_changes import CommandChanges
from harness.tools.command_looks import AwaitedCommand, CommandLooks, DeniedFiles

POLICY = """
version = 1
[tools]
default = "auto"
[[rule]]
id = "secrets"
decision = "deny"
access = ["read"]
path = [".env", "keys/"]
reason = "Secrets stay out."
"""


def yes(action: Action, verdict: Verdict) -> Approval:
    return Approval(answer=Answer.YES, by="script")


class Place:
    """A workspace whose commands run through a real gate, and the outcomes that its log then has."""

    def __init__(self, folder: Path) -> None:
        self.workspace = Workspace(str(folder / "a workspace"), str(folder))
        self.log = str(folder / "log.jsonl")
        self.stores = str(folder / "state" / "trees")

    @property
    def store(self) -> SegmentStore:
        return store_of(self.stores, self.workspace.root)

    def run(
        self, *calls: ToolCall | str, policy: str = POLICY, hides: Sequence[str] = ()
    ) -> list[Mapping[str, JsonValue]]:
        """Run calls, or commands, one after the other, and return the outcome of each."""
        environment = {**os.environ, "HOME": self.workspace.home}
        log = ActionLog.open(self.log, secrets=hides)
        agent = Agent(
            model=Playing([each if isinstance(each, ToolCall) else call("bash", command=each) for each in calls]),
            tools=builtin_tools(
                self.workspace,
                environment=environment,
                changes=CommandChanges(self.workspace.root, self.stores, environment),
            ),
            policy=parse_policy(policy.encode(), "test.toml"),
            approver=yes,
            log=log,
            facts={"mode": "run", "workspace": self.workspace.root},
        )
        assert agent.run("go").stop is StopReason.COMPLETED
        log.close()
        records = list(read_log(self.log))
        assert [text for record in records if (text := problem(record))] == []
        return [record for record in records if record["kind"] == "outcome"][-len(calls) :]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "a workspace").mkdir()
    for name, content in (("a", "one\n"), ("gone", "old\n"), (".env", "KEY=1\n")):
        (tmp_path / "a workspace" / name).write_text(content)
    return Place(tmp_path)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def paths_in(outcome: Mapping[str, JsonValue], log: str) -> dict[str, tuple[str | None, str | None]]:
    """Return the digests before and after of each path that an outcome names."""
    changes = changes_in(outcome, log)
    assert changes is not None
    return {each.path: (each.before.sha256, each.after.sha256) for each in changes_from(changes).changes}


def test_outcome_has_the_digests_before_and_after_of_each_changed_file(place: Place) -> None:
    (outcome,) = place.run("echo two >> a; mkdir new; echo n > new/file; rm gone; chmod 600 a")
    assert paths_in(outcome, place.log) == {
        "a": (sha256("one\n"), sha256("one\ntwo\n")),
        "gone": (sha256("old\n"), None),
        "new": (None, None),
        "new/file": (None, sha256("n\n")),
    }
    changes = outcome["changes"]
    assert isinstance(changes, dict)
    assert [changes[name] for name in ("added", "changed", "removed")] == [1, 1, 1]
    assert [place.store.get(sha256(text)) for text in ("one\n", "one\ntwo\n", "old\n", "n\n")].count(None) == 0


def test_each_command_has_its_own_changes_only(place: Place) -> None:
    edit = call("write_file", path="edited", content="by an edit\n")
    first, _, second, third = place.run("echo 1 > first", edit, "echo 2 > second", "rm first")
    assert [list(paths_in(outcome, place.log)) for outcome in (first, second, third)] == [
        ["first"],
        ["second"],
        ["first"],
    ]


def test_failed_and_interrupted_commands_have_their_changes(place: Place) -> None:
    failed, ended = place.run("echo 1 > half; false", call("bash", command="echo 1 > more; sleep 60", timeout_s=0.5))
    assert (failed["status"], list(paths_in(failed, place.log))) == ("failed", ["half"])
    assert (ended["status"], list(paths_in(ended, place.log))) == ("timeout", ["more"])


def test_commands_that_only_read_are_not_looked_at(place: Place) -> None:
    outcomes = place.run("cat a", "ls -la", call("read_file", path="a"))
    assert [outcome.get("changes") for outcome in outcomes] == [None] * 3
    assert not os.path.lexists(place.stores)


def test_denied_files_leave_no_content_and_no_plain_digest(place: Place) -> None:
    (outcome,) = place.run("echo KEY=2 > .env; mkdir keys; echo secret > keys/new")
    states = [change.after for change in changes_from(changes_in(outcome, place.log) or {}).changes]
    files = [state for state in states if state.size]
    assert [(state.sha256, state.unkept) for state in files] == [(None, "a rule denies to read it")] * 2
    assert all(len(state.keyed_digest or "") == 64 for state in files)
    for text in ("KEY=1\n", "KEY=2\n", "secret\n"):
        assert not place.store.has(sha256(text))
        assert sha256(text) not in Path(place.log).read_text()


def test_commands_that_change_the_history_of_the_repository_say_so(place: Place) -> None:
    subprocess.run(["git", "init", "-q", place.workspace.root], check=True)
    as_user = "git -c user.name=u -c user.email=u@example.com"
    words = ("git add a", f"{as_user} commit -qm one", "git checkout -qb other", "echo x > a", f"{as_user} stash -q")
    outcomes = place.run(*words, "git status --short; touch b")
    flags = [changes.get("history_changed", False) for each in outcomes if isinstance(changes := each["changes"], dict)]
    assert flags == [False, True, True, False, True, False]


def test_a_script_that_commits_in_any_repository_of_the_workspace_says_so(place: Place) -> None:
    root = place.workspace.root
    commit = "git -c user.name=u -c user.email=u@example.com commit -qm x --allow-empty"
    subprocess.run(
        f"git init -q repos/main; cd repos/main; {commit}; git worktree add -q ../linked; git init -q ../linked/sub",
        shell=True,
        check=True,
        cwd=root,
    )
    Path(root, "release.sh").write_text(f"cd $1\n{commit}\n")
    folders = ("repos/main", "repos/linked", "repos/linked/sub")
    # Beside a command of git, the data of git is writable.
    words = (*(f"git -C repos/main add . && sh release.sh {folder}" for folder in folders), "echo x > a")
    outcomes = place.run(*words, "rm -rf repos/linked/sub")
    flags = [changes.get("history_changed", False) for each in outcomes if isinstance(changes := each["changes"], dict)]
    assert flags == [True, True, True, False, True]


def test_long_lists_are_stored_beside_the_log(place: Place) -> None:
    count = MOST_LISTED + 1
    (outcome,) = place.run(f"for n in $(seq {count}); do echo $n > file$n; done")
    changes = outcome["changes"]
    assert isinstance(changes, dict)
    assert (changes["added"], "paths" in changes) == (count, False)
    assert paths_in(outcome, place.log)["file7"] == (None, sha256("7\n"))
    listing = Path(attachments_beside(place.log)) / str(changes["list_sha256"])
    assert listing.stat().st_mode & 0o077 == 0
    listing.write_bytes(listing.read_bytes().replace(b"file7", b"file8"))
    with pytest.raises(ValueError, match="missing"):
        changes_from(changes_in(outcome, place.log) or {})


def test_secrets_in_names_are_masked_in_records_and_lists(place: Place) -> None:
    secret = "hunter2-is-a-long-secret"
    for count in (1, MOST_LISTED + 1):
        (outcome,) = place.run(
            f"mkdir d{count}; for n in $(seq {count}); do > d{count}/{secret}$n; done", hides=[secret]
        )
        names = list(paths_in(outcome, place.log))
        assert len(names) == count + 1
        assert not any(secret in name for name in names)


def test_workspace_around_the_store_is_not_looked_at_and_the_record_says_why(place: Place) -> None:
    place.stores = os.path.join(place.workspace.root, "state", "trees")
    (outcome,) = place.run("echo x > new")
    changes = outcome["changes"]
    assert isinstance(changes, dict)
    assert changes["problem"] == "the workspace holds the folder of earlier contents"
    assert "paths" not in changes
    assert not os.path.lexists(place.stores)


EFFECTS = Effects(read=None, write=(), network=False, unasked=False)


@all_rows(
    ("effects", "is_noted"),
    [
        pytest.param(EFFECTS, False, id="reads"),
        pytest.param(Effects(read=None, write=(), network=True, unasked=False), False, id="reads, with network"),
        pytest.param(Effects(read=None, write=None, network=False, unasked=False), True, id="may write anything"),
        pytest.param(Effects(read=None, write=("/x",), network=False, unasked=False), True, id="writes a path"),
        pytest.param(Effects(read=None, write=(), granted=(".",), network=False, unasked=False), True, id="granted"),
        pytest.param(
            Effects(read=None, write=(), network=False, unasked=False, enforcement=Enforcement.OFF),
            True,
            id="unconfined",
        ),
    ],
)
def test_calls_that_may_write_are_noted(place: Place, effects: Effects, is_noted: bool) -> None:
    changes = CommandChanges(place.workspace.root, place.stores, os.environ)
    bash = builtin_tools(place.workspace, changes=changes)[0]
    assert isinstance(bash, ChangingTool)
    assert (bash.note_files(effects, parse_policy(POLICY.encode(), "test.toml")) is not None) is is_noted


def test_denied_files_are_found_by_the_present_rules(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    for name in (".env", "plain", "keys/a"):
        (tmp_path / name).write_text("")
    denied = DeniedFiles(str(tmp_path))
    names = (".env", "plain", "keys/a", "keys/gone", "sub/.ENV")
    assert [denied(name) for name in names] == [False] * 5
    denied.match(parse_policy(POLICY.encode(), "test.toml").unreadable_files)
    assert [denied(name) for name in names] == [True, False, True, True, True]
    only_written = POLICY.replace('"read"', '"write"')
    denied.match(parse_policy(only_written.encode(), "test.toml").unreadable_files)
    assert [denied(name) for name in names] == [False] * 5
    assert Access.READ.value in POLICY


def test_record_and_changes_are_the_same_in_both_directions(place: Place) -> None:
    (outcome,) = place.run("echo two >> a; ln -s a link; rm gone")
    field = outcome["changes"]
    assert isinstance(field, dict)
    assert recorded(changes_from(field)) == field


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def watched(place: Place) -> tuple[CommandLooks, Clock, Path]:
    """Return looks with such a clock, and a file whose change tells whether a command looked again after it."""
    clock = Clock()
    looks = CommandLooks(place.workspace.root, place.stores, os.environ, monotonic=clock)
    return looks, clock, Path(place.workspace.root) / "saved"


def changed_after(looks: CommandLooks, command: str, root: str) -> list[str]:
    """Return the paths that count as changed by a command."""
    compare = looks.note([])
    subprocess.run(["bash", "-c", command], cwd=root, check=True)
    return [change.path for change in changes_from(compare()).changes]


@pytest.mark.parametrize(
    ("seconds", "is_outdated", "paths"),
    [
        pytest.param(0.9, False, ["made", "saved"], id="a recent look is used again"),
        pytest.param(1.0, False, ["made"], id="an old look is not"),
        pytest.param(0.0, True, ["made"], id="nor one from before a call of the session"),
    ],
)
def test_command_uses_a_recent_look_from_after_the_last_call(
    place: Place, seconds: float, is_outdated: bool, paths: list[str]
) -> None:
    looks, clock, saved = watched(place)
    looks.look_ahead([])
    looks.ahead.join()
    saved.write_text("after the look\n")
    clock.seconds = seconds
    if is_outdated:
        looks.outdate()
    assert changed_after(looks, "echo 1 > made", place.workspace.root) == paths


def test_look_is_repeated_only_when_it_is_old_or_outdated(place: Place) -> None:
    looks, clock, _ = watched(place)
    threads = []
    for seconds, is_outdated in ((0.0, False), (0.6, False), (0.7, False), (0.7, True)):
        clock.seconds = seconds
        if is_outdated:
            looks.outdate()
        looks.look_ahead([])
        looks.ahead.join()
        threads.append(looks.ahead)
    first, second, third, fourth = threads
    assert first is second
    assert len({second, third, fourth}) == 3


def test_looks_during_a_question_serve_the_command_that_follows(place: Place) -> None:
    looks, _, saved = watched(place)
    looks.expect([])
    awaited = looks.awaited
    assert awaited is not None
    looks.stop_looking()
    compare = looks.note([])
    saved.write_text("by the command\n")
    assert [change.path for change in changes_from(compare()).changes] == ["saved"]
    assert looks.awaited is None


@pytest.mark.parametrize("tool", ["write_file", "edit_file", "bash"])
def test_calls_before_a_command_are_not_booked_to_it(place: Place, tool: str) -> None:
    """The look after the first command is recent, and yet not used for the last one."""
    calls = {
        "write_file": call("write_file", path="a", content="by an edit\n"),
        "edit_file": call("edit_file", path="a", old_string="one", new_string="two"),
        "bash": call("bash", command="echo two > a"),
    }
    outcomes = place.run("echo 1 > first", call("read_file", path="a"), calls[tool], "echo 2 > last")
    assert outcomes[2]["status"] == "ok"
    assert list(paths_in(outcomes[3], place.log)) == ["last"]


def test_looks_end_with_the_question(place: Place) -> None:
    looked = Event()
    awaited = AwaitedCommand()
    thread = Thread(target=lambda: awaited.look(looked.set), daemon=True)
    thread.start()
    assert looked.wait(60.0)
    awaited.end()
    thread.join(60.0)
    assert not thread.is_alive()
