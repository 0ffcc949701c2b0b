"""`harness audit verify` and `sign`: what is said of logs, with and without a head, a note, a signature; and exit codes."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from forged_logs import a_session, encoded, ended, head_of, lines_of, one_call, rechained, started, write
from rows import all_rows

from harness.actions import JsonValue
from harness.app.audit.sign import command as sign_command
from harness.app.audit.verify import command as verify_command
from harness.app.command_line import parser_for
from harness.audit.signed_heads import sign_head
from harness.errors import LogError, UsageError
from harness.log.action_log import ActionLog
from harness.log.heads_file import HeadNote, append_note, parse_note
from harness.models.scripted import Reply, call, replies
from harness.session.session_log import close_and_sign
from harness.session.state import State
from harness.terminal.console import complain

if TYPE_CHECKING:
    from program import Program

pytestmark = pytest.mark.forges_logs
needs_ssh_keygen = pytest.mark.skipif(
    shutil.which("ssh-keygen") is None, reason="NO SIGNATURE WAS TRIED: ssh-keygen (OpenSSH) is not installed here"
)
LINES = lines_of(a_session(3))
OTHER = lines_of(a_session(2), session="ba9876543210")


class Audit:
    """A state folder, and what `audit` says of logs in it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.environment = {"XDG_STATE_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "HOME": str(folder)}
        self.state = State.of(self.environment)
        self._capsys = capsys

    def write(self, name: str, lines: Sequence[bytes], tail: bytes = b"") -> Path:
        return write(Path(self.state.sessions) / "shop-01234567" / name, lines, tail)

    def note(self, path: Path, lines: Sequence[bytes], *, closed: bool = True, session: str = "0123456789ab") -> None:
        """Note the head that a log has with these lines."""
        os.makedirs(self.state.state, exist_ok=True)
        note: dict[str, JsonValue] = {"file": str(path), "session": session, "records": len(lines)}
        append_note(
            self.state.heads, {**note, "head": head_of(lines), "closed": closed, "time": "2024-05-01T10:00:00Z"}
        )

    def run(self, *words: object, action: str = "verify") -> tuple[int, str]:
        """Return the exit code and what was written."""
        arguments = parser_for(f"audit {action}").parse_args([str(word) for word in words])
        command = verify_command if action == "verify" else sign_command
        code = command(arguments, self.environment)
        return code, self._capsys.readouterr().out


@pytest.fixture
def audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Audit:
    return Audit(tmp_path / "state", capsys)


def spoiled(place: int, **changes: object) -> list[bytes]:
    """Return the lines with one rewritten, and the chain made right from there on."""
    return rechained([*LINES[:place], encoded({**json.loads(LINES[place]), **changes}), *LINES[place + 1 :]], place)


def test_verify_of_a_complete_log_lists_proved_and_unproved_facts(audit: Audit) -> None:
    path = audit.write("a.jsonl", LINES)
    audit.note(path, LINES)
    code, told = audit.run(path)
    proved, unproved, last = told.splitlines()
    assert code == 0
    assert proved.startswith(
        "Proved: of 15 records, each record is as the harness writes it and follows from the one before"
    )
    assert proved.endswith(
        "The head is the one that was noted when the log was closed: nothing was cut off or rewritten."
    )
    assert unproved.startswith("Not proved: that the harness was honest and unmodified; what commands did")
    assert last == f"{path}: 15 records, head {head_of(LINES)}"


def test_missing_head_is_reported_with_the_blind_spots(audit: Audit) -> None:
    code, told = audit.run(audit.write("a.jsonl", LINES))
    assert code == 4
    assert (
        "No head to compare with: a tail that was cut off, a rewritten end, a wholly rewritten log, or another log in this "
        "one's place could not be seen" in told
    )


def test_clock_jump_is_reported_by_verify_show_and_report(program: Program) -> None:
    """And changes no exit code: whoever has the machine may set its clock."""
    early = [
        encoded({**json.loads(line), "time": f"2024-05-01T08:00:{at:02d}.000000Z"}) for at, line in enumerate(LINES)
    ]
    log = write(program.home / "a.jsonl", rechained([*LINES[:7], *early[7:]]))
    words = "the wall clock jumped back by 7,199 s: it was set"
    verified, shown = program.run("audit", "verify", str(log)), program.run("audit", "show", str(log))
    reported = program.run("audit", "report", str(log), "-o", str(program.home / "page.html"))
    assert (verified.code, shown.code, reported.code) == (4, 0, 0)
    assert verified.out.startswith(f"CLOCK: before line 8 {words} (session 0123456789ab)\n")
    assert f"~ {words}\n" in shown.out
    assert words in (program.home / "page.html").read_text(encoding="utf-8")


BLIND: Mapping[str, tuple[list[bytes], str]] = {
    "a cut tail": (
        LINES[:-1],
        "it was longer once: 15 records are noted in the heads file, and it has 14; a tail is missing",
    ),
    "cut to nothing": ([], "it was longer once: 15 records"),
    "a rewritten end": (spoiled(14, detail="x"), "its first 15 records are not those that are noted in the heads file"),
    "rewritten from the middle": (spoiled(7, reason="x"), "its first 8 records are not those that are noted"),
    "rewritten wholly": (spoiled(0, workspace="/x"), "its first 1 records are not those that are noted"),
    "another log in its place": (OTHER, "its first 1 records are not those that are noted"),
}


@all_rows("name", list(BLIND), fresh=True)
def test_heads_file_reveals_changes_that_the_chain_does_not(name: str, audit: Audit) -> None:
    """And each of these is consistent in itself: without the notes it is 4, or 3 where it has no end."""
    lines, words = BLIND[name]
    path = audit.write("a.jsonl", lines)
    assert audit.run(path)[0] == (4 if lines and b"session_ended" in lines[-1] else 3)
    for count in (1, 8, 15):
        audit.note(path, LINES[:count], closed=count == 15)
    code, told = audit.run(path)
    assert (code, words in told) == (1, True), told
    assert "Not proved: That this is what the harness wrote;" in told


def test_a_broken_line_is_named_by_number_and_byte(audit: Audit) -> None:
    path = audit.write("a.jsonl", [*LINES[:5], LINES[6], *LINES[6:]])
    offset = sum(len(line) + 1 for line in LINES[:5])
    code, told = audit.run(path)
    assert code == 1
    assert told.startswith(f"BROKEN at line 6 (byte {offset}): it has sequence number 6, not 5\n")
    assert "Proved: of the 5 records before that line" in told
    assert "Not proved: Anything of what stands from that line on" in told


@all_rows(
    ("lines", "tail", "closed", "code", "words"),
    [
        (LINES, b'{"torn', True, 3, "OPEN: the last line is torn (6 bytes without an end)"),
        (lines_of((started(), *one_call(1)[:3])), b"", False, 3, "OPEN: call 1 was begun and its end is not known; it may"),
        (lines_of((started(), *one_call(1))), b"", False, 3, "OPEN: session 0123456789ab never said that it ended"),
        ([], b"", None, 3, "OPEN: there is no whole record in this file: nothing was proved"),
        ([], b'{"v', None, 3, "OPEN: the last line is torn (3 bytes"),
        (LINES, b"", False, 0, ""),
    ], fresh=True)  # fmt: skip
def test_log_without_an_end_is_open(
    lines: list[bytes], tail: bytes, closed: bool | None, code: int, words: str, audit: Audit
) -> None:
    path = audit.write("a.jsonl", lines, tail)
    if closed is not None:
        audit.note(path, lines, closed=closed)
        audit.note(path, lines, closed=True) if code == 0 else None
    found, told = audit.run(path)
    assert (found, words in told) == (code, True), told


def test_many_open_calls_are_counted_and_some_named(audit: Audit) -> None:
    lines = lines_of((started(), *(step for n in range(1, 31) for step in one_call(n)[:3])))
    code, told = audit.run(audit.write("a.jsonl", lines))
    assert (code, told.count("was begun"), "OPEN: and 10 more like it" in told) == (3, 20, True)


def test_log_longer_than_its_last_note_is_reported(audit: Audit) -> None:
    path = audit.write("a.jsonl", LINES)
    audit.note(path, LINES[:9], closed=False)
    code, told = audit.run(path)
    assert (code, "The log went on after the head that was kept" in told) == (4, True)
    assert "Up to record 9 nothing was cut off or rewritten" in told


@all_rows(
    ("head", "code", "words"),
    [
        (head_of(LINES), 0, "The head is the one that you gave: nothing was cut off or rewritten"),
        (head_of(LINES[:4]), 4, "Up to the head that you gave nothing was cut off or rewritten"),
        (head_of(OTHER), 1, f"this is not the log that was kept in mind: no record of it has the head {head_of(OTHER)}"),
        ("0" * 64, 1, "no record of it has the head"),
    ],
)  # fmt: skip
def test_log_is_verified_against_a_given_head(head: str, code: int, words: str, audit: Audit) -> None:
    found, told = audit.run(audit.write("a.jsonl", LINES), "--head", head)
    assert (found, words in told) == (code, True), told


def test_given_head_does_not_hide_the_noted_one(audit: Audit) -> None:
    """The forger's own head is passed; the notes are not."""
    lines = spoiled(7, reason="x")
    path = audit.write("a.jsonl", lines)
    audit.note(path, LINES[:8], closed=False)
    assert audit.run(path, "--head", head_of(lines))[0] == 1


def test_an_emptied_log_against_a_head(audit: Audit) -> None:
    assert audit.run(audit.write("a.jsonl", []), "--head", head_of(LINES))[0] == 1


def test_a_copy_elsewhere_is_found_by_its_first_session(audit: Audit, tmp_path: Path) -> None:
    path = audit.write("a.jsonl", LINES)
    audit.note(path, LINES[:1], closed=False)
    audit.note(path, LINES)
    code, told = audit.run(write(tmp_path / "copy.jsonl", LINES))
    assert (code, f"The head is the one that was noted as {path} when the log was closed" in told) == (0, True)
    code, told = audit.run(write(tmp_path / "cut.jsonl", LINES[:-1]))
    assert (code, f"are noted in the heads file for {path}, and it has 14" in told) == (1, True)


def test_another_heads_file(audit: Audit, tmp_path: Path) -> None:
    path = audit.write("a.jsonl", LINES)
    audit.note(path, LINES)
    kept = tmp_path / "kept.jsonl"
    shutil.move(audit.state.heads, kept)
    assert (audit.run(path)[0], audit.run(path, "--heads", kept)[0]) == (4, 0)
    with pytest.raises(UsageError, match="--heads: no such file"):
        audit.run(path, "--heads", tmp_path / "none")


def test_verify_of_a_folder_reports_missing_logs(audit: Audit) -> None:
    """A tombstone explains what is missing; nothing else does."""
    a, b, c = (audit.write(f"{name}.jsonl", LINES) for name in "abc")
    for path in (a, b, c):
        audit.note(path, LINES)
    assert audit.run("--all")[0] == 0
    assert audit.run(audit.state.state)[1].count("15 records, head") == 3  # the heads file is none of them
    b.unlink()
    for words in (["--all"], [a.parent], [audit.state.state], [b], [a, b]):
        code, told = audit.run(*words)
        assert (code, f"BROKEN: a log that was noted is gone: 15 records, head {head_of(LINES)}" in told) == (1, True)
    assert audit.run(a)[0] == 0
    stone: dict[str, JsonValue] = {
        "file": str(b),
        "session": "x",
        "records": 15,
        "head": head_of(LINES),
        "tombstone": True,
        "reason": "old",
    }
    append_note(audit.state.heads, {**stone, "time": "2024-06-01T00:00:00Z"})
    assert audit.run("--all")[0] == 0
    with pytest.raises(UsageError, match=r"was removed on 2024-06-01T00:00:00Z, with 15 records and the head .*: old"):
        audit.run(b)


def test_moved_log_is_not_missing(audit: Audit) -> None:
    path = audit.write("a.jsonl", LINES)
    audit.note(path, LINES)
    path.rename(path.parent / "b.jsonl")
    code, told = audit.run("--all")
    assert (code, f"was noted as {path}" in told, "gone" in told) == (0, True, False)


def test_the_worst_of_several_logs_decides(audit: Audit) -> None:
    whole = audit.write("a.jsonl", LINES)
    audit.note(whole, LINES)
    no_head = audit.write("b.jsonl", OTHER)
    still_open = audit.write("c.jsonl", lines_of((started(),), session="c00000000000"))
    broken = audit.write("d.jsonl", LINES[1:])
    assert audit.run(whole, no_head)[0] == 4
    assert audit.run(still_open, whole, no_head)[0] == 3
    assert audit.run(still_open, broken, whole, no_head)[0] == 1
    assert audit.run(whole.parent)[0] == 1
    code, told = audit.run(whole, whole.parent / "missing.jsonl")
    assert (code, "UNREADABLE: the action log cannot be read" in told) == (8, True)


def test_usage(audit: Audit, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no action log of"):
        audit.run()
    folder = os.path.relpath(audit.state.log_folder(os.getcwd()), os.path.join(audit.state.sessions, "shop-01234567"))
    audit.write("0.jsonl", LINES)
    with pytest.raises(UsageError, match="; name one as FILE"):
        audit.run()  # another folder's log is no answer for this one
    path = audit.write(f"{folder}/a.jsonl", LINES)
    assert audit.run()[1].endswith(f"{os.path.realpath(path)}: 15 records, head {head_of(LINES)}\n")  # the latest
    with pytest.raises(UsageError, match="--signer needs --signers"):
        audit.run(path, "--signer", "me")
    with pytest.raises(UsageError, match="no such file"):
        audit.run(path, "--signers", tmp_path / "none")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UsageError, match=r"no action log .* in"):
        audit.run(empty)
    with pytest.raises(LogError, match="cannot be read"):
        audit.run(tmp_path / "none.jsonl")


def test_json_is_one_object_a_log(audit: Audit) -> None:
    whole = audit.write("a.jsonl", LINES)
    audit.write("b.jsonl", [*OTHER[:3], OTHER[4]])
    gone = audit.write("c.jsonl", [])
    audit.note(whole, LINES)
    audit.note(gone, OTHER[:1])
    gone.unlink()
    code, told = audit.run("--all", "--json")
    first, second, third = (json.loads(line) for line in told.splitlines())
    assert code == 1
    assert (first["file"], first["verdict"], first["exit_code"], first["records"]) == (str(whole), "whole", 0, 15)
    assert (first["compared_with"], first["head"], first["broken"]) == ("heads file", head_of(LINES), None)
    assert (second["verdict"], second["exit_code"], second["broken"]["line"]) == ("broken", 1, 4)
    assert second["broken"]["offset"] == sum(len(line) + 1 for line in OTHER[:3])
    assert (third["file"], third["verdict"], third["exit_code"]) == (str(gone), "gone", 1)


def test_hostile_names_and_records_reach_no_terminal(audit: Audit) -> None:
    line = encoded({**json.loads(LINES[0]), "kind": "\x1b[2J\u202e", "session": "\ud800\x9b"})
    code, told = audit.run(audit.write("\x1b[2J\n\u202e.jsonl", [line, *LINES[1:]]))
    assert code == 1
    assert not any(char in told for char in "\x1b\x9b\u202e\ud800")
    assert len(told.splitlines()) == 4


# --- signatures -------------------------------------------------------------------------------------------------------


def keygen(path: Path, passphrase: str = "") -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "", "-f", path], check=True)
    return path


def signers_of(path: Path, **keys: Path) -> Path:
    """Write a file of allowed signers."""
    lines = [f"{name}@example.org {Path(f'{key}.pub').read_text().strip()}\n" for name, key in keys.items()]
    path.write_text("".join(lines))
    return path


@needs_ssh_keygen
class TestSigned:
    """Signed heads, with the real ssh-keygen."""

    @pytest.fixture
    def log(self, audit: Audit) -> Path:
        return audit.write("a.jsonl", LINES)

    @pytest.fixture
    def key(self, tmp_path: Path) -> Path:
        return keygen(tmp_path / "key")

    @pytest.fixture
    def signers(self, tmp_path: Path, key: Path) -> Path:
        return signers_of(tmp_path / "signers", other=keygen(tmp_path / "other"), ann=key)

    def test_a_good_signature_is_a_head_to_compare_with(
        self, audit: Audit, log: Path, key: Path, signers: Path
    ) -> None:
        code, told = audit.run(log, "--key", key, action="sign")
        assert (code, "signed, 15 records, head " in told, "no head was noted" in told) == (0, True, True)
        note = Path(f"{log}.head").read_text().splitlines()
        size = str(log.stat().st_size)
        assert note[:5] == ["harness action log", "15", head_of(LINES), size, "0123456789ab"]
        assert {path.name for path in log.parent.iterdir()} == {"a.jsonl", "a.jsonl.head", "a.jsonl.head.sig"}
        assert os.stat(f"{log}.head").st_mode & 0o777 == 0o600
        for words in ([], ["--signer", "ann@example.org"]):
            code, told = audit.run(log, "--signers", signers, *words)
            assert (code, "The head is the one that ann@example.org signed: nothing was cut off" in told) == (0, True)
        told = audit.run(log, "--signers", signers, "--json")[1]
        assert (json.loads(told)["signer"], json.loads(told)["compared_with"]) == ("ann@example.org", "signature")

    @all_rows("lines", [LINES[:-1], spoiled(14, detail="x"), spoiled(0, workspace="/x"), OTHER, []])
    def test_signed_head_reveals_changed_lines(
        self, lines: list[bytes], audit: Audit, log: Path, key: Path, signers: Path
    ) -> None:
        audit.run(log, "--key", key, action="sign")
        write(log, lines)
        code, told = audit.run(log, "--signers", signers)
        assert (code, "in its signed head" in told) == (1, True), told

    def test_log_longer_than_its_signed_head_is_verified_up_to_it(
        self, audit: Audit, log: Path, key: Path, signers: Path
    ) -> None:
        audit.run(log, "--key", key, action="sign")
        write(log, LINES + lines_of(a_session(1), session="ba9876543210", after=LINES))
        code, told = audit.run(log, "--signers", signers)
        assert (code, "Up to record 15 nothing was cut off" in told, "went on after" in told) == (4, True, True)
        assert audit.run(log, "--key", key, action="sign")[0] == 0  # signed anew: the former note is replaced
        assert audit.run(log, "--signers", signers)[0] == 0

    @all_rows("missing", ["head", "head.sig"])
    def test_missing_signature_means_no_signed_head(
        self, missing: str, audit: Audit, log: Path, key: Path, signers: Path
    ) -> None:
        """Also where the heads file has one: it is not what was asked for."""
        audit.note(log, LINES)
        audit.run(log, "--key", key, action="sign")
        os.unlink(f"{log}.{missing}")
        code, told = audit.run(log, "--signers", signers)
        assert (code, "No signed head to compare with" in told) == (4, True)
        assert audit.run(log)[0] == 0

    def test_a_key_that_is_not_allowed(self, audit: Audit, log: Path, tmp_path: Path, signers: Path) -> None:
        audit.run(log, "--key", keygen(tmp_path / "stranger"), action="sign")
        code, told = audit.run(log, "--signers", signers)
        assert (code, "no allowed signer has the key that it was signed with" in told) == (1, True)

    def test_another_signer_than_is_wanted(self, audit: Audit, log: Path, key: Path, signers: Path) -> None:
        audit.run(log, "--key", key, action="sign")
        for name in ("other@example.org", "nobody", "-I"):
            code, told = audit.run(log, "--signers", signers, f"--signer={name}")
            assert (code, f"it is not {name} who signed this note" in told) == (1, True)

    def test_a_signature_of_another_namespace(self, audit: Audit, log: Path, key: Path, signers: Path) -> None:
        """The same key and the same bytes, signed as a file or a commit: that says nothing of logs."""
        audit.run(log, "--key", key, action="sign")
        os.unlink(f"{log}.head.sig")
        subprocess.run(["ssh-keygen", "-Y", "sign", "-q", "-f", key, "-n", "file", f"{log}.head"], check=True)
        code, told = audit.run(log, "--signers", signers)
        assert (code, "the signed head beside it does not count" in told) == (1, True)

    @all_rows(
        ("old", "new"),
        [
            (b"\n15\n", b"\n14\n"),
            (head_of(LINES).encode(), head_of(OTHER).encode()),
            (b"\n15\n", b"\n15\n\n"),
            (b"\n15\n", b"\n+15\n"),
            (b"harness action log", b"harness-action log"),
            (b"Z\n", b"Z\nmore\n"),
            (b"Z\n", b"Z"),
            (b"\n", b"\r\n"),
        ],
    )
    def test_a_note_that_was_tampered_with(
        self, old: bytes, new: bytes, audit: Audit, log: Path, key: Path, signers: Path
    ) -> None:
        audit.run(log, "--key", key, action="sign")
        note = Path(f"{log}.head")
        note.write_bytes(note.read_bytes().replace(old, new))
        code, told = audit.run(log, "--signers", signers)
        assert (code, "the signed head beside it does not count" in told) == (1, True)

    @all_rows("signature", [b"", b"-----BEGIN SSH SIGNATURE-----\n", b"\0" * 100_000])
    def test_a_signature_that_is_none(
        self, signature: bytes, audit: Audit, log: Path, key: Path, signers: Path
    ) -> None:
        audit.run(log, "--key", key, action="sign")
        Path(f"{log}.head.sig").write_bytes(signature)
        assert audit.run(log, "--signers", signers)[0] == 1

    def test_broken_or_open_log_is_not_signed(self, audit: Audit, key: Path) -> None:
        broken, still_open = audit.write("b.jsonl", LINES[1:]), audit.write("c.jsonl", LINES[:-1])
        for path, code in ((broken, 1), (still_open, 3)):
            found, told = audit.run(path, "--key", key, action="sign")
            assert (found, "NOT signed" in told, os.path.exists(f"{path}.head")) == (code, True, False)

    def test_passphrase_of_a_key_is_never_requested(self, audit: Audit, log: Path, tmp_path: Path) -> None:
        locked = keygen(tmp_path / "locked", "a passphrase")
        with pytest.raises(UsageError, match="ssh-keygen does not sign with"):
            audit.run(log, "--key", locked, action="sign")
        assert [path.name for path in log.parent.iterdir()] == ["a.jsonl"]

    def test_an_agent_signs_for_a_key_with_a_passphrase(self, audit: Audit, log: Path, tmp_path: Path) -> None:
        if shutil.which("ssh-agent") is None or shutil.which("ssh-add") is None:
            pytest.skip("NO AGENT WAS TRIED: ssh-agent or ssh-add is not installed here")
        locked, socket = keygen(tmp_path / "locked", "a passphrase"), tmp_path / "agent"
        ask = tmp_path / "ask"
        ask.write_text("#!/bin/sh\necho 'a passphrase'\n")
        ask.chmod(0o700)
        agent = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL)
        try:
            while not socket.exists():
                assert agent.poll() is None
            environment = {"PATH": os.environ["PATH"], "SSH_AUTH_SOCK": str(socket)}
            asked = {"SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force"}
            subprocess.run(["ssh-add", "-q", locked], env=environment | asked, check=True, stdin=subprocess.DEVNULL)
            audit.environment["SSH_AUTH_SOCK"] = str(socket)
            assert audit.run(log, "--key", locked, action="sign")[0] == 0
            locked.unlink()  # the agent has it, and the public half names it
            assert audit.run(log, "--key", f"{locked}.pub", action="sign")[0] == 0
        finally:
            agent.terminate()
            agent.wait()
        assert audit.run(log, "--signers", signers_of(tmp_path / "signers", me=locked))[0] == 0

    def test_a_missing_key(self, audit: Audit, log: Path, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="ssh-keygen does not sign with"):
            audit.run(log, "--key", tmp_path / "none", action="sign")

    def test_kill_during_signing_leaves_no_mismatched_signature(
        self, audit: Audit, log: Path, key: Path, signers: Path
    ) -> None:
        """What is left at worst is a note without a signature: 4, never a false alarm."""
        audit.run(log, "--key", key, action="sign")
        os.unlink(f"{log}.head.sig")
        note = HeadNote(records=14, head="0" * 64, size=1, session="x", time="t")
        Path(f"{log}.head").write_text(note.text())
        assert audit.run(log, "--signers", signers)[0] == 4

    def test_closing_a_log_signs_its_head(self, audit: Audit, key: Path, signers: Path) -> None:
        log = ActionLog.open(audit.state.new_log_path("/srv/shop"))
        for kind, fields in (started(), ended()):
            log.append(kind, fields)
        close_and_sign(audit.state, log, str(key), complain)
        assert audit.run(log.path, "--signers", signers)[0] == 0

    def test_a_signature_that_cannot_be_made_costs_no_run(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        state = State(state=str(tmp_path / "s"), config=str(tmp_path / "c"))
        log = ActionLog.open(state.new_log_path("/srv/shop"))
        log.append(*started())
        close_and_sign(state, log, str(tmp_path / "none"), complain)
        assert "harness: the head of the log is NOT signed: ssh-keygen does not sign with" in capsys.readouterr().err
        assert state.known_head(log.path) is not None


def test_a_note_is_read_to_the_letter() -> None:
    note = HeadNote(records=3, head="h" * 64, size=7, session="s", time="t")
    assert parse_note(note.text().encode()) == note
    for data in (b"", b"\n" * 6, note.text().encode() * 2, note.text().encode()[1:], b"\xff" * 9):
        assert parse_note(data) is None


def test_a_program_in_the_path_is_not_taken_for_ssh_keygen(audit: Audit, tmp_path: Path) -> None:
    """A folder of PATH may be one that commands can write."""
    fake = tmp_path / "bin" / "ssh-keygen"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\ntouch {shlex.quote(str(tmp_path))}/ran\n")
    fake.chmod(0o755)
    log = audit.write("a.jsonl", LINES)
    note = HeadNote(records=15, head=head_of(LINES), size=1, session="s", time="t")
    with pytest.raises(UsageError):
        sign_head(str(log), note, str(tmp_path / "none"), {"PATH": str(fake.parent)})
    assert not (tmp_path / "ran").exists()


# --- the real program -------------------------------------------------------------------------------------------------


def test_verify_compares_past_decisions_with_the_logged_policies(audit: Audit) -> None:
    """Another outcome is told, and is no breach; what the log does not hold is said to be missing."""
    text = 'version = 1\nname = "p"\n[tools]\nbash = "confirm"\n'
    digest = hashlib.sha256(text.encode()).hexdigest()
    file: dict[str, JsonValue] = {"layer": "file", "path": "/p.toml", "sha256": digest, "trusted": True, "text": text}
    steps = [started(policy_files=[file], policy_sha256=digest, workspace=str(audit.folder)), *one_call(1), ended()]
    steps = [
        (kind, {**fields, **({"policy_sha256": digest} if "policy_sha256" in fields else {})}) for kind, fields in steps
    ]
    path = audit.write("a.jsonl", lines_of(steps))
    code, told = audit.run(path, "--redecide")
    assert (code, "0 calls come out the same, 1 otherwise" in told) == (4, True), told
    assert "OTHERWISE: call 1 of session 0123456789ab was auto, and would be confirm: ls -l" in told
    counts = json.loads(audit.run(path, "--redecide", "--json")[1].splitlines()[1])["redecided"]
    assert counts == {"same": 0, "otherwise": 1, "unjudged": 0}
    told = audit.run(audit.write("b.jsonl", LINES), "--redecide")[1]
    assert "NOT JUDGED: the log holds no policy that could be used: no policy was given" in told
    assert "0 otherwise, 3 cannot be judged" in told


def test_a_real_run_verifies_and_its_copies_do(program: Program) -> None:
    script = replies(Reply(calls=(call("bash", command="ls"), call("bash", command="touch x"))), Reply(text="done"))
    assert program.run("run", "go", "--base-url", program.serve(script)).code == 7
    (log,) = program.logs()
    assert program.run("audit", "verify", "--all").code == 0
    notes = [json.loads(line) for line in (program.state / "harness" / "heads.jsonl").read_text().splitlines()]
    assert [note["closed"] for note in notes] == [False, True]
    assert notes[-1]["size"] == log.stat().st_size
    judged = program.run("audit", "verify", "--redecide")
    assert (judged.code, "2 calls come out the same, 0 otherwise, 0 cannot be judged" in judged.out) == (0, True)
    lines = log.read_bytes().splitlines()
    intent = next(n for n, line in enumerate(lines) if b'"kind":"intent"' in line)
    copy = write(program.home / "crashed.jsonl", lines[: intent + 1], b'{"torn')
    cut = program.run("audit", "verify", str(copy))
    assert (cut.code, "it was longer once" in cut.out) == (1, True)
    (program.state / "harness" / "heads.jsonl").unlink()
    crashed = program.run("audit", "verify", str(copy))
    assert (crashed.code, "OPEN: call 1 was begun" in crashed.out, "torn" in crashed.out) == (3, True, True)
    assert program.run("audit", "verify", str(program.home / "missing.jsonl")).code == 8
