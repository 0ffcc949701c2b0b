"""Questions that go to a program and to a socket: real ones, and everything that they do wrong."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from process_scene import wait_until
from question_scene import command
from rows import all_rows

from harness.errors import UsageError
from harness.gate.approval import Approval
from harness.interrupt import Interrupt
from harness.log.vocabulary import Answer
from harness.session.approver.approver_declaration import ApproverDeclaration
from harness.session.approver.configured_approver import ConfiguredApprover, found_approver
from harness.session.approver.standing_question import StandingQuestion, wait_for
from harness.terminal.asked_outside import AskedAlone

ANSWERS = """
import json, os, subprocess, sys, time
question = json.loads(sys.stdin.readline())
answer = {"id": question["id"], "sha256": question["sha256"], "answer": "yes", "by": "ann"}
"""
SAYS = "print(json.dumps(answer))\n"
YES = Approval(answer=Answer.YES, by="approver", who="ann")


def approver(declaration: ApproverDeclaration, root: str, **environment: str) -> ConfiguredApprover:
    about = command(root, "touch made")
    return ConfiguredApprover(
        found_approver(declaration, {"PATH": os.defpath, **environment}, (root,)),
        session=lambda: "0123456789ab",
        redact=str,
        confinement=lambda *_: "kernel",
        offer=about.offer,
    )


def program(tmp_path: Path, script: str, *, seconds: float = 300.0, env: tuple[str, ...] = ()) -> ApproverDeclaration:
    path = tmp_path / "approver.py"
    path.write_text(script)
    return ApproverDeclaration(command=(sys.executable, "-I", "-S", str(path)), seconds=seconds, env=env)


def workspace(tmp_path: Path) -> str:
    root = tmp_path / "w"
    root.mkdir(exist_ok=True)
    return str(root)


def asked(declaration: ApproverDeclaration, tmp_path: Path, **environment: str) -> Approval:
    root = workspace(tmp_path)
    about = command(root, "touch made")
    return AskedAlone(approver(declaration, root, **environment), Interrupt())(about.action, about.verdict)


def standing(declaration: ApproverDeclaration, tmp_path: Path) -> StandingQuestion:
    root = workspace(tmp_path)
    about = command(root, "touch made")
    question = approver(declaration, root)(about.action, about.verdict)
    assert not isinstance(question, str)
    return question


@all_rows(
    ("script", "expected"),
    {
        "a yes": (ANSWERS + SAYS, ""),
        "a yes, and a child that stays": (ANSWERS + 'subprocess.Popen(["sleep", "600"])\n' + SAYS, ""),
        "a yes, and noise on stderr": (ANSWERS + 'sys.stderr.write("y\\n" * 100_000)\n' + SAYS, ""),
        "a yes, and a crash": (ANSWERS + SAYS + "raise SystemExit(1)\n", "exit code 1"),
        "a yes, and a signal": (ANSWERS + SAYS + "sys.stdout.flush(); os.kill(os.getpid(), 9)\n", "exit code 137"),
        "a yes twice": (ANSWERS + SAYS * 2, "more than one line"),
        "noise before it": (ANSWERS + 'print("asking ann")\n' + SAYS, "more than one line"),
        "no line end": (ANSWERS + 'sys.stdout.write(json.dumps(answer))\n', "does not end with a line end"),
        "nothing": (ANSWERS, "the answer is empty"),
        "nothing read": ("", "the answer is empty"),
        "a bare y": ('print("y")', "not valid JSON"),
        "a flood": ('import sys\nwhile True: sys.stdout.write("y" * 65536)\n', "more than an answer"),
        "no program": ("this is no Python", "exit code 1"),
        "another id": (ANSWERS + 'answer["id"] = "0"\n' + SAYS, "belongs to another question"),
        "no name": (ANSWERS + 'del answer["by"]\n' + SAYS, "lacks the field by"),
    },
)  # fmt: skip
def test_a_program_answers_by_one_line_and_a_good_end(script: str, expected: str, tmp_path: Path) -> None:
    approval = asked(program(tmp_path, script), tmp_path)
    if not expected:
        assert approval == YES
    else:
        assert (approval.answer, approval.by, expected in approval.words) == (Answer.NOBODY, "nobody", True), approval


def test_a_program_that_answers_too_late_is_ended_with_its_children(tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = f"{ANSWERS}child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
    script += (
        f"with open({str(told)!r}, 'w') as file: file.write(f'{{os.getpid()}} {{child.pid}}\\n')\ntime.sleep(600)\n"
    )
    question = standing(program(tmp_path, script), tmp_path)
    while not (told.exists() and told.read_text().endswith("\n")):
        assert question.look() is None
        wait_for(question, seconds=0.05)
    question.withdraw()
    for number in map(int, told.read_text().split()):
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)
    question.withdraw()


@all_rows(
    "script", ["import time; time.sleep(600)", "import time\nwhile True: time.sleep(600)", ANSWERS + "time.sleep(600)"]
)
def test_missed_deadline_denies_the_call(script: str, tmp_path: Path) -> None:
    approval = asked(program(tmp_path, script, seconds=0.001), tmp_path)
    assert (approval.answer, approval.words) == (Answer.NOBODY, "whoever was asked did not answer in time")


def test_a_program_gets_the_usual_variables_and_those_that_are_named(tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = f"{ANSWERS}open({str(told)!r}, 'w').write(json.dumps([dict(os.environ), os.getcwd()]))\n{SAYS}"
    given = {"OPENAI_API_KEY": "secret", "BOT_TOKEN": "t", "HOME": str(tmp_path)}
    assert asked(program(tmp_path, script, env=("BOT_TOKEN", "NOT_SET")), tmp_path, **given) == YES
    import json

    environment, folder = json.loads(told.read_text())
    assert folder == "/"
    assert (environment.get("BOT_TOKEN"), "OPENAI_API_KEY" in environment, "NOT_SET" in environment) == (
        "t",
        False,
        False,
    )


@all_rows(
    ("name", "expected"),
    [
        ("no-such-program", "program not found"),
        ("/no/such/program", "program not found"),
        ("{root}/approver", "program not found outside of the workspace"),
        ("link-into-workspace", "program not found outside of the workspace"),
    ],
)
def test_a_program_of_the_workspace_is_none(name: str, expected: str, tmp_path: Path) -> None:
    root = workspace(tmp_path)
    made = Path(root, "approver")
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "link-into-workspace").symlink_to(made)
    with pytest.raises(UsageError, match=expected):
        approver(ApproverDeclaration(command=(name.format(root=root),)), root, PATH=f"{tmp_path}/bin:{os.defpath}")


def test_a_script_of_the_workspace_is_none(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    Path(root, "approver.sh").write_text("")
    with pytest.raises(UsageError, match="is in a folder that calls may write"):
        approver(ApproverDeclaration(command=("sh", f"{root}/approver.sh")), root)


def test_program_that_ends_early_is_reported_as_such(tmp_path: Path) -> None:
    (made := tmp_path / "notify").write_text("#!/bin/sh\n")
    made.chmod(0o755)
    root = workspace(tmp_path)
    about, found = command(root, "touch made"), approver(ApproverDeclaration(command=(str(made),)), root)
    made.unlink()
    why = f"the approver's program cannot be started: {made}: "
    assert str(found(about.action, about.verdict)).startswith(why)


# A socket


@contextmanager
def listening(path: Path, play: Callable[[socket.socket, dict[str, object]], None]) -> Iterator[list[str]]:
    """Listen once at `path`, and play with the connection and the question; what came behind it is told."""
    import json

    told: list[str] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, connection.makefile("r", encoding="utf-8") as lines:
                play(connection, json.loads(lines.readline()))
                try:
                    told.extend(lines)
                except OSError:
                    pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield told
        thread.join(60)
        assert not thread.is_alive()


def says(**fields: object) -> Callable[[socket.socket, dict[str, object]], None]:
    import json

    def play(connection: socket.socket, question: dict[str, object]) -> None:
        held = {"id": question["id"], "sha256": question["sha256"], "answer": "yes", "by": "ann", **fields}
        connection.sendall(json.dumps(held).encode() + b"\n")

    return play


def sends(data: bytes) -> Callable[[socket.socket, dict[str, object]], None]:
    def play(connection: socket.socket, _: dict[str, object]) -> None:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)

    return play


@all_rows(
    ("play", "expected"),
    {
        "a yes": (says(), ""),
        "another id": (says(id="0"), "belongs to another question"),
        "no name": (says(by=""), "by: must not be empty"),
        "nothing": (sends(b""), "the answer is empty"),
        "half a line": (sends(b'{"id": '), "does not end with a line end"),
        "noise": (sends(b"y\n"), "not valid JSON"),
        "two lines": (sends(b"{}\n{}\n"), "more than one line"),
        "a flood": (sends(b"y" * 30_000), "longer than"),
    },
)
def test_a_socket_answers_by_one_line(
    play: Callable[[socket.socket, dict[str, object]], None], expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "s"
    with listening(path, play) as told:
        approval = asked(ApproverDeclaration(socket=str(path)), tmp_path)
    assert told == []
    if not expected:
        assert approval == YES
    else:
        assert (approval.answer, expected in approval.words) == (Answer.NOBODY, True), approval


def test_withdrawn_question_is_reported_to_the_socket(tmp_path: Path) -> None:
    path, heard = tmp_path / "s", threading.Event()
    with listening(path, lambda *_: heard.set()) as told:
        question = standing(ApproverDeclaration(socket=str(path)), tmp_path)
        while not heard.is_set():
            assert question.look() is None
            wait_for(question, seconds=0.05)
        question.withdraw()
        wait_until(lambda: bool(told))
    assert '"withdrawn": true' in told[0]


@all_rows(
    ("make", "expected"),
    {
        "nothing there": ("pass", "No such file"),
        "a file": ("open(path, 'w').close()", "is not a Unix socket"),
        "a link": ("os.symlink('elsewhere', path)", "is not a Unix socket"),
        "nobody listens": ("bound(path)", "Connection refused"),
        "others may write it": ("bound(path); os.chmod(path, 0o777)", "others may write it"),
        "others may replace it": ("bound(path); os.chmod(path, 0o700); os.chmod(folder, 0o777)", "others may write it"),
        "another user's": ("bound(path); os.chown(path, 65534, 65534)", "belongs to another user"),
    },
)
def test_socket_of_another_user_is_not_asked(make: str, expected: str, tmp_path: Path) -> None:
    if "chown" in make and os.getuid():
        pytest.skip("only root can give a file away")
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    path = str(folder / "s")

    def bound(path: str) -> None:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path)
        os.chmod(path, 0o700)

    exec(make, {"path": path, "folder": str(folder), "os": os, "bound": bound})
    approval = asked(ApproverDeclaration(socket=path), tmp_path)
    assert (approval.answer, expected in approval.words) == (Answer.NOBODY, True), approval


def test_a_socket_of_the_workspace_is_none(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    with pytest.raises(UsageError, match="is in a folder that calls may write"):
        approver(ApproverDeclaration(socket=f"{root}/s"), root)
