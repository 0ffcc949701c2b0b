"""One log, one standing: what was done to a log is judged alike by every action that reads it, and nothing builds on a lie."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from program import Program
from rows import all_rows

from harness.models.scripted import Reply, call, replies, say

pytestmark = pytest.mark.forges_logs

POLICY = 'version = 1\n[tools]\nread_file = "auto"\nedit_file = "auto"\n'


def lines_of(log: Path) -> list[bytes]:
    return log.read_bytes().splitlines(keepends=True)


def add_a_forged_session(log: Path) -> None:
    """Append the log's own records as those of another session, chained as the harness would."""
    lines = lines_of(log)
    previous = hashlib.sha256(lines[-1][:-1]).hexdigest()
    for seq, line in enumerate(list(lines), start=len(lines)):
        record = {**json.loads(line), "session": "f" * 12, "seq": seq, "prev": previous}
        made = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
        previous = hashlib.sha256(made).hexdigest()
        lines.append(made + b"\n")
    log.write_bytes(b"".join(lines))


def empty(log: Path, elsewhere: Path) -> Path:
    log.write_bytes(b"")
    return log


def cut(log: Path, elsewhere: Path) -> Path:
    log.write_bytes(b"".join(lines_of(log)[:4]))
    return log


def copy_cut(log: Path, elsewhere: Path) -> Path:
    elsewhere.write_bytes(b"".join(lines_of(log)[:4]))
    return elsewhere


def copy_whole(log: Path, elsewhere: Path) -> Path:
    shutil.copyfile(log, elsewhere)
    return elsewhere


def edit(log: Path, elsewhere: Path) -> Path:
    log.write_bytes(log.read_bytes().replace(b"harmless", b"harmful!", 1))
    return log


def append(log: Path, elsewhere: Path) -> Path:
    add_a_forged_session(log)
    return log


def tear(log: Path, elsewhere: Path) -> Path:
    log.write_bytes(log.read_bytes() + b'{"torn')
    return log


def append_and_tear(log: Path, elsewhere: Path) -> Path:
    append(log, elsewhere)
    return tear(log, elsewhere)


def remove(log: Path, elsewhere: Path) -> Path:
    log.unlink()
    return log


def nothing(log: Path, elsewhere: Path) -> Path:
    return log


class Tampering(NamedTuple):
    """What is done to a log, and what each kind of action says of it then."""

    do: Callable[[Path, Path], Path]
    verify: int
    question: int
    """Exit code of a question."""
    words: str
    """What `verify` says, and the others where they complain."""
    fit: bool = False
    """Whether a session may go on with it, and a signature may be made of it."""


TAMPERINGS = {
    "untouched": Tampering(nothing, 0, 0, "", fit=True),
    "emptied": Tampering(empty, 1, 1, "it was longer once"),
    "cut": Tampering(cut, 1, 1, "it was longer once"),
    "a copy, cut": Tampering(copy_cut, 1, 1, "it was longer once"),
    "a copy, whole": Tampering(copy_whole, 0, 0, "", fit=True),
    "edited": Tampering(edit, 1, 1, "BROKEN at line"),
    "added to": Tampering(append, 4, 0, "stand after the head that was noted when the log was closed"),
    "torn": Tampering(tear, 3, 0, "the last line is torn"),
    "added to, torn": Tampering(append_and_tear, 3, 0, "stand after the head that was noted when the log was closed"),
    "removed": Tampering(remove, 1, 1, "gone"),
}
QUESTIONS = ("approvals", "denied", "files", "reads", "outside", "stats", "show", "export", "report")


class Scene:
    """A closed log of one real run; `again` puts everything back to how that run left it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "now"
        self.kept = folder / "kept"
        self.folder.mkdir()
        self.program = program = Program(self.folder)
        (program.workspace / "a.txt").write_text("harmless\n")
        self.policy = program.home / "policy.toml"
        self.policy.write_text(POLICY)
        calls = (call("read_file", path="a.txt"), call("edit_file", path="a.txt", old="harmless", new="changed"))
        self.url = program.serve(replies(*(Reply(calls=(one,)) for one in calls), say("done"), *[say("more")] * 100))
        done = self.run_on()
        assert done == 0
        (self.log,) = program.logs()
        self.elsewhere = program.home / "copy.jsonl"
        shutil.copytree(self.folder, self.kept)

    def again(self) -> None:
        """Put back every file as the run left it."""
        for kept in self.kept.iterdir():
            shutil.rmtree(self.folder / kept.name)
            shutil.copytree(kept, self.folder / kept.name)

    def run_on(self, *words: str) -> int:
        done = self.program.run(
            "run", "--base-url", self.url, "--model", "m", "--policy", str(self.policy), *words, "go"
        )
        self.err = done.err
        return done.code


@pytest.fixture(scope="module")
def only_scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    made = Scene(tmp_path_factory.mktemp("standing").resolve())
    yield made
    made.program.close()


@pytest.fixture
def scene(only_scene: Scene) -> Scene:
    only_scene.again()
    return only_scene


def asked(program: Program, action: str, log: Path) -> tuple[int, str]:
    """Put a question to a log; return the exit code and all that was said."""
    more = {"report": ("-o", "-"), "export": ("--to", "jsonl")}
    done = program.run("audit", action, str(log), *more.get(action, ()))
    return done.code, done.err


@all_rows("tampering", TAMPERINGS)
def test_every_command_agrees_with_verify(scene: Scene, tampering: Tampering) -> None:
    scene.again()
    program = scene.program
    log = tampering.do(scene.log, scene.elsewhere)
    verified = program.run("audit", "verify", str(log))
    assert (verified.code, tampering.words in verified.out) == (tampering.verify, True), verified
    for action in QUESTIONS:
        code, told = asked(program, action, log)
        assert code == tampering.question, (action, code, told)
        assert tampering.words.lower() in told.lower(), (action, told)
    replayed = program.run("policy", "replay", str(log), "--policy", "readonly", "--fail-on", "laxer")
    assert (replayed.code, tampering.words.lower() in replayed.err.lower()) == (tampering.question, True), replayed


@all_rows("tampering", {name: one for name, one in TAMPERINGS.items() if name not in ("torn", "removed")})
def test_broken_log_is_never_built_on(scene: Scene, tampering: Tampering) -> None:
    """Neither signed, nor gone on with, recovered, resumed or undone; and afterwards it verifies as before."""
    scene.again()
    program = scene.program
    log = tampering.do(scene.log, scene.elsewhere)
    before = log.read_bytes()
    key = program.home / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True, capture_output=True)
    signed = program.run("audit", "sign", "--key", str(key), str(log))
    assert (signed.code, "NOT signed" in signed.out) == ((0, False) if tampering.fit else (tampering.verify, True)), (
        signed
    )
    undone = program.run("undo", "--dry-run", "--log", str(log))
    assert undone.code == (0 if tampering.fit else 2), undone
    recovered = program.run("audit", "recover", str(log))
    assert recovered.code == (0 if tampering.fit else tampering.verify), recovered
    assert log.read_bytes() == before
    code = scene.run_on("--log", str(log))
    is_said = tampering.words in scene.err or "does not end in a whole record" in scene.err
    assert (code, is_said) == (0 if tampering.fit else 8, True), scene.err
    assert program.run("audit", "verify", str(log)).code == tampering.verify
    assert (log.read_bytes() == before) is not tampering.fit


def test_log_replacing_a_missing_one_is_reported(scene: Scene) -> None:
    """On stderr, in its first record, and by `verify --all`, which knows of logs outside the state folder too."""
    log, archive, program = scene.program.home / "mine.jsonl", scene.program.home / "archive.jsonl", scene.program
    assert scene.run_on("--log", str(log)) == 0
    lines = lines_of(log)
    head = hashlib.sha256(lines[-1][:-1]).hexdigest()
    log.rename(archive)
    alone = program.run("audit", "verify", "--all")
    was = f"{len(lines)} records, head {head}"
    assert (alone.code, f"BROKEN: a log that was noted is gone: {was}" in alone.out, str(log) in alone.out) == (
        1,
        True,
        True,
    )
    assert scene.run_on("--log", str(log)) == 0
    assert f"the log that was noted as {log} is gone: {was}" in scene.err
    first = json.loads(lines_of(log)[0])
    assert (first["seq"], first["lost_log"]["records"], first["lost_log"]["head"]) == (0, len(lines), head)
    assert scene.run_on("--log", str(log)) == 0
    assert "is gone" not in scene.err
    assert [program.run("audit", "verify", str(path)).code for path in (log, archive)] == [0, 0]
    everything = program.run("audit", "verify", "--all")
    assert (everything.code, everything.out.count("BROKEN"), was in everything.out) == (1, 1, True), everything


def test_emptied_log_is_not_continued(scene: Scene) -> None:
    empty(scene.log, scene.elsewhere)
    assert scene.run_on("--log", str(scene.log)) == 8
    assert "was emptied" in scene.err


def test_missing_log_is_reported_by_audit_commands(scene: Scene) -> None:
    """Also where others are left: the answer is not about all that there was."""
    assert scene.run_on() == 0
    scene.log.unlink()
    for action in ("approvals", "denied", "stats", "report"):
        done = scene.program.run("audit", action, *(("-o", "-") if action == "report" else ()))
        assert (done.code, f"{scene.log} is BROKEN: it is gone" in done.err) == (1, True), (action, done)


ALL_IN_ONE = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (500_000_000, 500_000_000))
from harness.app.main import main
for words in json.loads(sys.argv[1]):
    print(words, main(words), file=sys.stderr)
"""


def test_readers_limit_the_length_of_a_line(scene: Scene) -> None:
    """A line of 600 MB, in a process that may have 500 MB of memory."""
    with scene.elsewhere.open("wb") as file:
        os.truncate(file.fileno(), 600_000_000)
    log = str(scene.elsewhere)
    actions = [
        *(["audit", action, log] for action in ("verify", "approvals", "show", "stats", "list")),
        ["audit", "export", "--to", "jsonl", log],
        ["undo", "--log", log],
        ["run", "--base-url", scene.url, "--model", "m", "--log", log, "go"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", ALL_IN_ONE, json.dumps(actions)],
        env=scene.program.environment, cwd=scene.program.workspace, capture_output=True, text=True, check=False,
        timeout=300,
    )  # fmt: skip
    assert "MemoryError" not in done.stderr
    assert "internal error" not in done.stderr
    assert done.stderr.count("['") == len(actions), done.stderr


@all_rows("given", ["abc", "f" * 63, "f" * 65, "g" * 64, "f" * 16])
def test_a_head_that_is_none_is_a_usage_error(scene: Scene, given: str) -> None:
    done = scene.program.run("audit", "verify", "--head", given, str(scene.log))
    assert (done.code, "64 hexadecimal digits" in done.err) == (2, True)


def test_a_head_in_capitals_is_that_head(scene: Scene) -> None:
    head = hashlib.sha256(lines_of(scene.log)[-1][:-1]).hexdigest()
    assert scene.program.run("audit", "verify", "--head", head.upper(), str(scene.log)).code == 0


def test_head_does_not_replace_a_missing_signature(scene: Scene) -> None:
    """Both were asked for, so that both must hold."""
    key, signers = scene.program.home / "key", scene.program.home / "signers"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True, capture_output=True)
    signers.write_text("me " + key.with_suffix(".pub").read_text())
    head = hashlib.sha256(lines_of(scene.log)[-1][:-1]).hexdigest()
    words = ("audit", "verify", "--head", head, "--signers", str(signers), str(scene.log))
    missing = scene.program.run(*words)
    assert (missing.code, "No signed head to compare with" in missing.out) == (4, True)
    assert scene.program.run("audit", "sign", "--key", str(key), str(scene.log)).code == 0
    both = scene.program.run(*words)
    assert (both.code, "the one that you gave, and the one that me signed" in both.out) == (0, True)
    other = scene.program.run(*words[:3], "0" * 64, *words[4:])
    assert (other.code, "not the log that was kept in mind" in other.out) == (1, True)


def test_recover_ignores_a_torn_file_beside_a_complete_log(scene: Scene) -> None:
    Path(f"{scene.log}.torn").write_bytes(b"somebody's bytes")
    before = scene.log.read_bytes()
    done = scene.program.run("audit", "recover", str(scene.log))
    assert (done.code, "nothing to recover" in done.out) == (0, True)
    assert scene.log.read_bytes() == before


@all_rows("kind", ["a pipe", "another name of a file"])
def test_recover_never_writes_through_an_existing_file(scene: Scene, kind: str) -> None:
    scene.again()
    victim, made = scene.program.home / "precious", Path(f"{scene.log}.torn.tmp")
    victim.write_text("precious")
    if kind == "a pipe":
        os.mkfifo(made)
    else:
        os.link(victim, made)
    tear(scene.log, scene.elsewhere)
    done = scene.program.run("audit", "recover", str(scene.log))
    assert (done.code, victim.read_text()) == (0, "precious"), done
    assert Path(f"{scene.log}.torn").read_bytes() == b'{"torn'
    assert scene.program.run("audit", "verify", str(scene.log)).code == 0


def test_file_that_cannot_be_removed_does_not_keep_its_log(scene: Scene) -> None:
    os.mkdir(f"{scene.log}.head")
    done = scene.program.run("audit", "prune", "--keep-bytes", "0")
    assert (done.code, scene.log.exists()) == (0, False)
    assert done.out.startswith(f"removed: {scene.log}")
