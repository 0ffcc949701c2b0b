"""`harness audit prune` and `recover`: whole logs go with a tombstone, torn ones are made whole; killed at every step."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from forged_logs import a_session, decided, done, ended, head_of, intended, lines_of, one_call, proposed, started, write
from rows import all_rows

from harness.actions import JsonValue
from harness.app.audit.prune import command as prune_command
from harness.app.audit.prune import remove_unnamed
from harness.app.audit.recover import command as recover_command
from harness.app.audit.verify import command as verify_command
from harness.app.command_line import parser_for
from harness.errors import LogError, UsageError
from harness.files.before_images import BeforeImages
from harness.files.tree_watch import store_of
from harness.log.action_log import ActionLog
from harness.log.heads_file import append_note, notes_in
from harness.log.reader import read_log
from harness.log.verify import verify
from harness.session.state import State

pytestmark = pytest.mark.forges_logs
LINES = lines_of(a_session(3))
OPEN_LINES = lines_of((started(), *one_call(1)[:3]))
TORN = b'{"arguments_sha256":"dd'
DAY = 86_400
COMMANDS = {"verify": verify_command, "prune": prune_command, "recover": recover_command}


class Audit:
    """A state folder, and what `audit` does to logs in it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.environment = {"XDG_STATE_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "HOME": str(folder)}
        self.state = State.of(self.environment)
        self.sessions = Path(self.state.sessions)
        self.images = BeforeImages(self.state.before_images)
        self._capsys = capsys

    def log(
        self, name: str, lines: Sequence[bytes] = LINES, *, days: float = 0, tail: bytes = b"", known: bool = True
    ) -> Path:
        """Write a log that was written last so many days ago."""
        path = write(self.sessions / name, lines, tail)
        if known:
            note: dict[str, JsonValue] = {"file": str(path), "session": "0123456789ab", "records": len(lines)}
            append_note(self.state.heads, {**note, "head": head_of(lines), "closed": True, "time": "t"})
        age(path, days)
        return path

    def image(self, data: bytes, *, days: float = 9) -> str:
        """Keep what a file held, so many days ago."""
        digest = self.images.keep(data)
        age(Path(self.images.path_of(digest)), days)
        return digest

    def run(self, action: str, *words: object) -> tuple[int, str]:
        arguments = parser_for(f"audit {action}").parse_args([str(word) for word in words])
        code = COMMANDS[action](arguments, self.environment)
        return code, self._capsys.readouterr().out

    def names(self) -> list[str]:
        """Return what is below the folder of logs."""
        return sorted(str(path.relative_to(self.sessions)) for path in self.sessions.rglob("*"))

    def tombstones(self) -> list[dict[str, JsonValue]]:
        lines = [line for line in Path(self.state.heads).read_text().splitlines() if line.endswith("}")]
        return [entry for entry in map(json.loads, lines) if entry.get("tombstone")]


def age(path: Path, days: float) -> None:
    then = time.time() - days * DAY
    os.utime(path, (then, then))


@pytest.fixture
def audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Audit:
    made = Audit(tmp_path / "state", capsys)
    os.makedirs(made.state.sessions)
    return made


def test_prune_needs_a_limit(audit: Audit) -> None:
    audit.log("shop/a.jsonl", days=10_000)
    for words in ((), ("--dry-run",), ("--open", "--broken")):
        with pytest.raises(UsageError, match=r"--older-than DAYS.*--keep-bytes N"):
            audit.run("prune", *words)
    for words in (("--older-than", "x"), ("--older-than", "-1"), ("--keep-bytes", "nan"), ("--older-than", "inf")):
        with pytest.raises(UsageError, match="is not a number of at least 0"):
            audit.run("prune", *words)
    assert audit.names() == ["shop", "shop/a.jsonl"]


def test_prune_removes_older_logs_and_writes_a_tombstone(audit: Audit) -> None:
    old, new = audit.log("shop/a.jsonl", days=31), audit.log("yard/b.jsonl", days=29)
    for end in (".head", ".head.sig", ".torn", ".torn.2"):
        Path(f"{old}{end}").write_text("x")
    size = old.stat().st_size
    code, told = audit.run("prune", "--older-than", 30)
    assert code == 0
    assert told == (
        f"removed: {old}: older than 30 days\n"
        f"1 logs ({size} bytes) removed, 0 kept although past; 0 before-images (0 bytes) that no log names were removed\n"
    )
    assert audit.names() == ["yard", "yard/b.jsonl"]
    (stone,) = audit.tombstones()
    assert str(stone.pop("time")).endswith("Z")
    assert stone.pop("by")
    assert stone == {
        "tombstone": True, "file": str(old), "session": "0123456789ab", "sessions": ["0123456789ab"], "records": 15,
        "head": head_of(LINES), "bytes": size, "reason": "older than 30 days",
    }  # fmt: skip
    assert audit.run("verify", "--all")[0] == 0
    assert new.exists()


def test_oldest_logs_are_removed_until_the_rest_is_small_enough(audit: Audit) -> None:
    """What has to stay counts, and is not removed for it: another one goes instead."""
    logs = [audit.log(f"shop/{name}.jsonl", days=days) for name, days in (("a", 1), ("b", 4), ("c", 3), ("d", 2))]
    size = logs[0].stat().st_size
    with logs[2].open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        code, told = audit.run("prune", "--keep-bytes", 2 * size)
    assert (code, audit.names()) == (0, ["shop", "shop/a.jsonl", "shop/c.jsonl"])
    assert f"kept: {logs[2]}: it is in use" in told
    assert audit.run("prune", "--keep-bytes", size)[0] == 0
    assert audit.names() == ["shop", "shop/a.jsonl"]
    assert audit.run("prune", "--keep-bytes", size)[1].startswith("0 logs (0 bytes) removed")


def test_dry_run_lists_the_candidates_and_removes_none(audit: Audit) -> None:
    path = audit.log("shop/a.jsonl", days=31)
    audit.image(b"old")
    before = Path(audit.state.heads).read_bytes()
    code, told = audit.run("prune", "--older-than", 30, "--dry-run")
    assert (code, f"would be removed: {path}: older than 30 days" in told) == (0, True)
    assert (audit.names(), Path(audit.state.heads).read_bytes()) == (["shop", "shop/a.jsonl"], before)
    assert len(os.listdir(audit.state.before_images)) == 1


@all_rows(
    ("lines", "tail", "flag", "code", "words"),
    [
        (OPEN_LINES, b"", "--open", 0, "is not known; it may have run"),
        (LINES, TORN, "--open", 0, "the last line is torn"),
        ([], b"", "--open", 0, "no whole record"),
        (LINES[1:], b"", "--broken", 1, "BROKEN at line 1"),
        (lines_of(a_session(2)), b"", "--broken", 1, "its first"),
    ],
    fresh=True,
)
def test_open_or_broken_logs_are_removed_only_by_flag(
    lines: list[bytes], tail: bytes, flag: str, code: int, words: str, audit: Audit
) -> None:
    path = audit.log("shop/a.jsonl", lines, days=31, tail=tail, known=False)
    if words == "its first":
        other: dict[str, JsonValue] = {
            "file": str(path),
            "session": "x",
            "records": 1,
            "head": "0" * 64,
            "closed": False,
        }
        append_note(audit.state.heads, other)
    other_flag = "--broken" if flag == "--open" else "--open"
    found, told = audit.run("prune", "--older-than", 30, other_flag)
    assert (found, words in told, f"prune {flag}` removes it)" in told, path.exists()) == (code, True, True, True), told
    found, told = audit.run("prune", "--older-than", 30, flag)
    assert (found, told.startswith("removed: "), path.exists()) == (0, True, False), told
    (stone,) = audit.tombstones()
    assert ("broken" in stone) == (flag == "--broken")


def test_failed_tombstone_prevents_removal(audit: Audit) -> None:
    path = audit.log("shop/a.jsonl", days=31)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (os.path.getsize(audit.state.heads) + 10, hard)
    )  # as on a disk that is full
    try:
        with pytest.raises(LogError, match="heads file cannot be written"):
            audit.run("prune", "--older-than", 30)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.exists()
    assert audit.run("prune", "--older-than", 30)[0] == 0  # the line that was torn then is in nobody's way
    assert (path.exists(), len(audit.tombstones())) == (False, 1)


def test_json(audit: Audit) -> None:
    gone, kept = audit.log("shop/a.jsonl", days=40), audit.log("shop/b.jsonl", OPEN_LINES, days=31)
    size = gone.stat().st_size
    told = [json.loads(line) for line in audit.run("prune", "--older-than", 30, "--json")[1].splitlines()]
    assert [(one["file"], one["fate"], one["records"]) for one in told[:2]] == [
        (str(gone), "removed", 15),
        (str(kept), "kept", 4),
    ]
    summary = told[2]["summary"]
    assert (summary["logs"], summary["bytes"], summary["kept"], summary["dry_run"]) == (1, size, 1, False)


def test_a_log_that_is_a_link_is_left_alone(audit: Audit, tmp_path: Path) -> None:
    target = write(tmp_path / "elsewhere.jsonl", LINES)
    link = audit.sessions / "a.jsonl"
    link.symlink_to(target)
    os.utime(link, (0, 0), follow_symlinks=False)
    code, told = audit.run("prune", "--older-than", 30)
    assert (code, "it cannot be opened" in told, target.exists(), link.is_symlink()) == (0, True, True, True)


def changing(call: int, before: str) -> tuple[tuple[str, dict[str, JsonValue]], ...]:
    """Return the records of a call that changed a file, which held what has this digest."""
    change: JsonValue = {"path": "/srv/shop/a", "before_sha256": before, "after_sha256": "a" * 64, "before_mode": 420}
    kind, fields = intended(call, "write_file", change=change)
    return (
        proposed(call, "write_file"),
        decided(call, tool="write_file"),
        (kind, dict(fields)),
        done(call, tool="write_file"),
    )  # type: ignore[return-value]


def test_images_that_no_log_names_are_removed(audit: Audit, tmp_path: Path) -> None:
    """Those of a log that stays do not, wherever it lies; nor does what was kept within the last day."""
    digests = {name: audit.image(name.encode()) for name in ("pruned", "kept", "elsewhere", "orphan")}
    digests["young"] = audit.image(b"young", days=0.5)
    unfinished = Path(f"{audit.images.path_of(digests['orphan'])}.0123456789ab.tmp")
    unfinished.write_bytes(b"x")
    age(unfinished, 3)
    (Path(audit.state.before_images) / "README").write_text("not one of them")
    with_image = {name: lines_of((started(), *changing(1, digest), ended())) for name, digest in digests.items()}
    audit.log("shop/a.jsonl", with_image["pruned"], days=31)
    audit.log("shop/b.jsonl", with_image["kept"], days=2)
    elsewhere = write(tmp_path / "elsewhere.jsonl", with_image["elsewhere"])
    note: dict[str, JsonValue] = {"file": str(elsewhere), "session": "x", "records": 7}
    append_note(audit.state.heads, {**note, "head": head_of(with_image["elsewhere"]), "closed": True})
    code, told = audit.run("prune", "--older-than", 30)
    assert (code, "3 before-images (13 bytes) that no log names were removed" in told) == (0, True), told
    left = {name for name, digest in digests.items() if audit.images.get(digest) is not None}
    assert left == {"kept", "elsewhere", "young"}
    assert not unfinished.exists()
    assert (Path(audit.state.before_images) / "README").exists()


def test_before_images_stay_where_a_log_may_name_them(audit: Audit, tmp_path: Path) -> None:
    """One that is being written, and one that was noted and is not there."""
    digest = audit.image(b"orphan")
    path = audit.log("shop/b.jsonl")
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert f"before-images stay: the log {path} is in use" in audit.run("prune", "--older-than", 30)[1]
    gone: dict[str, JsonValue] = {"file": str(tmp_path / "gone.jsonl"), "session": "x", "records": 1, "head": "h"}
    append_note(audit.state.heads, gone)
    told = audit.run("prune", "--older-than", 30)[1]
    assert f"before-images stay: the log {tmp_path}/gone.jsonl may name some, and is not there" in told
    assert audit.images.get(digest) == b"orphan"


def test_a_torn_and_a_broken_log_still_name_their_images(audit: Audit) -> None:
    torn, broken = audit.image(b"torn"), audit.image(b"broken")
    audit.log("shop/a.jsonl", tail=b'{"before_sha256":"' + torn.encode())
    audit.log("shop/b.jsonl", [b"x" * 5_000_000 + b'"' + broken.encode() + b'"'], known=False)
    audit.run("prune", "--older-than", 30)
    assert (audit.images.get(torn), audit.images.get(broken)) == (b"torn", b"broken")


STRACED = """
import sys, os
from harness.app.audit.prune import command as prune_command
from harness.app.command_line import parser_for
left = int(sys.argv[1])
def audit(event, args):
    global left
    if event in ("os.remove", "os.rmdir", "os.unlink") or (event == "open" and str(args[0]).endswith("heads.jsonl")):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)
sys.addaudithook(audit)
arguments = parser_for("audit prune").parse_args(["--older-than", "30"])
sys.exit(prune_command(arguments, {"XDG_STATE_HOME": sys.argv[2], "XDG_CONFIG_HOME": sys.argv[2], "HOME": sys.argv[2]}))
"""


def test_kill_at_any_step_never_removes_a_log_without_a_tombstone(audit: Audit, tmp_path: Path) -> None:
    """And pruning again finishes it, with one tombstone a log."""
    names = [f"shop/{name}.jsonl" for name in "abc"]
    kills, code = 0, -1
    for step in range(60):
        Path(audit.state.heads).unlink(missing_ok=True)
        for name in names:
            path = audit.log(name, days=31)
            Path(f"{path}.head").write_text("x")
        process = subprocess.run(
            [sys.executable, "-c", STRACED, str(step), str(tmp_path / "state")], capture_output=True, check=False
        )
        code = process.returncode
        kills += code == -signal.SIGKILL
        buried = {str(stone["file"]) for stone in audit.tombstones()}
        missing = {str(audit.sessions / name) for name in names if not (audit.sessions / name).exists()}
        assert missing <= buried, step
        assert len(missing) == 3 or audit.run("verify", audit.state.state)[0] == 0
        if code == 0:
            break
        audit.run("prune", "--older-than", 30)
        assert len(audit.tombstones()) == 3, step
        assert not any((audit.sessions / name).exists() for name in names)
    assert (code, kills >= 6) == (0, True)


# --- recover ----------------------------------------------------------------------------------------------------------


def recovered(path: Path) -> list[dict[str, JsonValue]]:
    return [dict(record) for record in read_log(str(path)) if record["kind"] == "recovered"]


def test_recover_cuts_a_torn_log_with_a_notice(audit: Audit) -> None:
    path = audit.log("shop/a.jsonl", OPEN_LINES, tail=TORN, known=False)
    code, told = audit.run("recover", path)
    assert code == 0
    assert told.startswith(f"{path}: recovered; {len(TORN)} torn bytes are kept in {path}.torn\n")
    assert "OPEN: call 1 was begun and its end is not known" in told
    kept = Path(f"{path}.torn")
    assert (kept.read_bytes(), kept.stat().st_mode & 0o777) == (TORN, 0o600)
    assert path.read_bytes().startswith(b"".join(line + b"\n" for line in OPEN_LINES))
    (record,) = recovered(path)
    assert (record["torn_bytes"], record["kept_in"], record["open"]) == (len(TORN), f"{path}.torn", ["0123456789ab:1"])
    assert record["torn_sha256"] == hashlib.sha256(TORN).hexdigest()
    first = next(r for r in read_log(str(path)) if r["session"] == record["session"])
    assert (first["kind"], first["mode"]) == ("session_started", "recover")
    found = verify(str(path))
    assert (found.problem, found.torn, found.open_sessions) == ("", False, ("0123456789ab",))
    assert audit.run("verify", path)[0] == 3  # what was open stays open
    *before, last = [note.closed for note in notes_in(audit.state.heads)]
    assert (last, any(before)) == (True, False)
    ActionLog.open(str(path)).close()  # and it can be continued


def test_complete_log_needs_no_recovery(audit: Audit) -> None:
    whole, still_open = audit.log("shop/a.jsonl"), audit.log("shop/b.jsonl", OPEN_LINES)
    before = whole.read_bytes(), still_open.read_bytes()
    assert audit.run("recover", whole) == (0, f"{whole}: nothing to recover: its last line is whole\n")
    code, told = audit.run("recover", still_open)
    assert (code, "nothing to recover" in told, "OPEN: call 1 was begun" in told) == (0, True, True)
    assert (whole.read_bytes(), still_open.read_bytes()) == before


@all_rows(
    ("lines", "tail", "words"),
    [
        (LINES[1:], TORN, "BROKEN at line 1"),
        (LINES[:-1], TORN, "it was longer once"),
        (LINES[1:], b"", "BROKEN at line 1"),
    ],
)
def test_a_broken_log_is_refused_and_not_touched(lines: list[bytes], tail: bytes, words: str, audit: Audit) -> None:
    path = audit.log("shop/a.jsonl", LINES)
    write(path, lines, tail)
    before = path.read_bytes()
    code, told = audit.run("recover", path)
    assert (code, words in told, "NOT recovered" in told) == (1, True, True)
    assert (path.read_bytes(), audit.names()) == (before, ["shop", "shop/a.jsonl"])


def test_log_in_use_or_missing_is_not_recovered(audit: Audit, tmp_path: Path) -> None:
    path = audit.log("shop/a.jsonl", tail=TORN)
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(LogError, match="in use by another process"):
            audit.run("recover", path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(path)
    for name in ("pipe", "link", "none", "."):
        with pytest.raises(LogError):
            audit.run("recover", tmp_path / name)
    assert path.read_bytes().endswith(TORN)


def test_torn_again_and_again_keeps_every_end(audit: Audit) -> None:
    path = audit.log("shop/a.jsonl", known=False)
    tails = [b"one", b"two", b"one"]
    for tail in tails:
        with path.open("ab") as file:
            file.write(tail)
        assert audit.run("recover", path)[0] == 0
    kept = [Path(str(record["kept_in"])).read_bytes() for record in recovered(path)]
    assert kept == tails
    assert audit.run("verify", path)[0] == 0


def test_a_file_that_is_in_the_way_is_not_written_over(audit: Audit) -> None:
    path = audit.log("shop/a.jsonl", tail=TORN, known=False)
    Path(f"{path}.torn").write_bytes(b"somebody's")
    audit.run("recover", path)
    assert Path(f"{path}.torn").read_bytes() == b"somebody's"
    assert Path(f"{path}.torn.2").read_bytes() == TORN


@all_rows("size", [1, 4_095, 4_096, 3_000_000], fresh=True)
def test_torn_ends_of_any_size(size: int, audit: Audit) -> None:
    path = audit.log("shop/a.jsonl", tail=b"\0" * size, known=False)
    assert audit.run("recover", path)[0] == 0
    assert os.path.getsize(f"{path}.torn") == size
    assert audit.run("verify", path)[0] == 0


KILLED = """
import sys, os
from harness.app.audit.recover import command as recover_command
from harness.app.command_line import parser_for
left = int(sys.argv[1])
def step(*_):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), 9)
def before(name):
    real = getattr(os, name)
    def call(*args, **more):
        step()
        return real(*args, **more)
    return call
for name in ("ftruncate", "fsync", "fdatasync", "link", "unlink", "write"):  # a step begins at each of them
    setattr(os, name, before(name))
arguments = parser_for("audit recover").parse_args([sys.argv[3]])
sys.exit(recover_command(arguments, {"XDG_STATE_HOME": sys.argv[2], "XDG_CONFIG_HOME": sys.argv[2], "HOME": sys.argv[2]}))
"""


def test_a_kill_at_any_step_loses_no_torn_byte_and_recovering_again_ends_it(audit: Audit, tmp_path: Path) -> None:
    kills, code = 0, -1
    for step in range(60):
        path = audit.log(f"shop/{step}.jsonl", OPEN_LINES, tail=TORN, known=False)
        process = subprocess.run(
            [sys.executable, "-c", KILLED, str(step), str(tmp_path / "state"), str(path)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        code = process.returncode
        kills += code == -signal.SIGKILL
        kept = Path(f"{path}.torn")
        assert path.read_bytes().endswith(TORN) or kept.read_bytes() == TORN, step
        assert audit.run("verify", path)[0] == 3, step
        if code != 0:
            assert audit.run("recover", path)[0] == 0, (step, process.stderr)
        found = verify(str(path))
        assert (found.problem, found.torn, kept.read_bytes()) == ("", False, TORN), step
        assert {record["torn_sha256"] for record in recovered(path)} == {hashlib.sha256(TORN).hexdigest()}
        assert not os.path.exists(f"{path}.torn.2")
        if code == 0:
            break
    assert (code, kills >= 10) == (0, True)


class Meanwhile:
    """A state folder in which a run begins while its logs are listed: it keeps what an old image holds, and names it later."""

    def __init__(self, state: State, content: bytes) -> None:
        self.before_images, self.heads = state.before_images, state.heads
        self._state, self._content = state, content

    def log_paths(self) -> list[str]:
        BeforeImages(self.before_images).keep(self._content)
        return self._state.log_paths()


def test_image_needed_again_during_removal_stays(audit: Audit) -> None:
    needed, orphan = audit.image(b"needed again"), audit.image(b"orphan")
    removed, why = remove_unnamed(cast("State", Meanwhile(audit.state, b"needed again")), time.time())
    assert (removed, why) == ((1, 6), "")
    assert (audit.images.get(needed), audit.images.get(orphan)) == (b"needed again", None)


def test_contents_around_commands_are_pruned_by_age(audit: Audit) -> None:
    """Whole segments go that are past their limit; a younger one of the same workspace stays."""
    store = Path(store_of(audit.state.trees, "/w").folder)
    store.mkdir(parents=True)
    for name, age in (("seg-000000000001", 40), ("seg-000000000002", 1)):
        (store / name).write_bytes(b"x" * 1_000)
        os.utime(store / name, (time.time() - age * 86_400,) * 2)
    told = audit.run("prune", "--older-than", 1_000, "--dry-run", "--json")[1]
    assert json.loads(told.splitlines()[-1])["summary"]["content_bytes"] == 1_000
    assert len(list(store.iterdir())) == 2
    told = audit.run("prune", "--older-than", 1_000)[1]
    assert "; 1000 bytes of contents around commands removed" in told
    assert not (store / "seg-000000000001").exists()
    assert (store / "seg-000000000002").exists()
