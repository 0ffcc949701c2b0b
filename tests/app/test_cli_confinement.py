"""The program on machines with and without walls: what it says, what it refuses to begin, what a command then can do."""

from __future__ import annotations

import errno
import json
import os
import shlex
import struct
import subprocess
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest
from program import made_program
from rows import all_rows

from harness.models.scripted import ModelScript, Reply, ScriptedAnswer, Turn, call
from harness.sandbox import describe, enforces, probe, why_no_namespaces
from harness.session.exits import Exit

if TYPE_CHECKING:
    from pathlib import Path

    from program import Program

needs_walls = pytest.mark.skipif(not enforces(probe()), reason="this machine cannot confine commands")

POLICY = """\
version = 1
name = "table"
[tools]
bash = "deny"
read_file = "auto"
default = "deny"
readers = true
[sandbox]
required = {required}
network = false
write = ["."]
[[rule]]
id = "make"
decision = "auto"
argv = ["make", "all"]
write = ["build/"]
[[rule]]
id = "tests"
decision = "auto"
argv = ["python3", "-m", "unittest", "..."]
flags = ["-q"]
write = ["."]
"""

# A filter as the seccomp profile of a container installs it: Landlock's calls, mounts and new namespaces are forbidden.
LOAD, IF_EQUAL, RETURN, ALLOW, REFUSE = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000 | errno.EPERM
FORBIDDEN = {"x86_64": (444, 445, 446, 165, 272), "aarch64": (444, 445, 446, 40, 97)}


def in_a_container(program: Program, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program where system calls for walls are forbidden."""
    steps = [(LOAD, 0, 0, 0)]
    for number in FORBIDDEN[_machine()]:
        steps += [(IF_EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE)]
    steps.append((RETURN, 0, 0, ALLOW))
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    enter = (
        "import os, sys; from harness.sandbox import kernel; kernel.load(); kernel.forbid_new_privileges(); "
        f"kernel.filter_calls(bytes.fromhex('{code.hex()}')); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    command = [sys.executable, "-c", enter, *program.command(*arguments)[1:]]
    return subprocess.run(
        command, cwd=program.workspace, env=program.environment, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=300, check=False, text=True,
    )  # fmt: skip


def _machine() -> str:
    return probe().seccomp or "x86_64"


def policy(program: Program, *, required: bool) -> str:
    path = program.home / "table.toml"
    path.write_text(POLICY.format(required=str(required).lower()))
    return str(path)


def playing(*commands: str) -> ModelScript:
    def script() -> Generator[ScriptedAnswer, Turn, None]:
        yield Reply(calls=tuple(call("bash", command=command) for command in commands))
        yield Reply(text="done")

    return script


def outcomes(program: Program) -> list[tuple[object, str]]:
    return [(r["status"], str(r["content"])) for r in program.records() if r["kind"] == "outcome"]


def intents(program: Program) -> list[object]:
    return [r["confinement"] for r in program.records() if r["kind"] == "intent"]


@needs_walls
def test_each_command_gets_the_effects_of_its_rule(program: Program) -> None:
    """A reader writes nothing, `make` its build folder alone, the tests the workspace; none of them the home folder."""
    (program.workspace / "Makefile").write_text(
        "all:\n\techo x > build/made\n\t-echo x > stray\n\t-echo x > $(HOME)/stray\n"
    )
    (program.workspace / "test_it.py").write_text(
        "import os, pathlib, socket, unittest\n"
        "class T(unittest.TestCase):\n"
        "    def test_it(self):\n"
        "        pathlib.Path('written').write_text('x')\n"
        "        connect = lambda: socket.create_connection(('127.0.0.1', 9))\n"
        "        for attempt in (lambda: pathlib.Path(os.environ['HOME'], 'stray').write_text('x'), connect):\n"
        "            with self.assertRaises(OSError):\n"
        "                attempt()\n"
    )
    url = program.serve(playing("make all", "python3 -m unittest -q", "cat Makefile | wc -l"))
    done = program.run("run", "go", "--base-url", url, "--policy", policy(program, required=True))
    told = outcomes(program)
    assert done.code == Exit.DONE, (done, told)
    assert [status for status, _ in told] == ["ok", "ok", "ok"], told
    made = sorted(str(path.relative_to(program.workspace)) for path in program.workspace.rglob("*") if path.is_file())
    assert made == ["Makefile", "build/made", "test_it.py", "written"]
    assert list(program.home.glob("stray")) == []
    assert "[confined: it may write " in told[0][1]
    watched = "; 0 protected places compared when it ends"
    assert intents(program) == [probe_line() + watched, probe_line() + watched, probe_line()]


@needs_walls
def test_unasked_commands_can_move_link_and_edit(program: Program) -> None:
    for name in ("a", "b", "c"):
        (program.workspace / name).write_text(name)
    (program.workspace / "d").mkdir()
    path = program.home / "open.toml"
    path.write_text('version = 1\n[tools]\nbash = "auto"\n')
    url = program.serve(playing("mv a d/", "ln b d/", "sed -i s/c/z/ c", "gzip -n d/a"))
    done = program.run("run", "go", "--base-url", url, "--policy", str(path))
    assert (done.code, [status for status, _ in outcomes(program)]) == (Exit.DONE, ["ok"] * 4), outcomes(program)
    made = sorted(str(path.relative_to(program.workspace)) for path in program.workspace.rglob("*"))
    assert made == ["b", "c", "d", "d/a.gz", "d/b"]


@needs_walls
def test_refused_pseudo_terminal_is_reported_as_confined(program: Program) -> None:
    path = program.home / "open.toml"
    path.write_text('version = 1\n[tools]\nbash = "auto"\n')
    url = program.serve(playing("python3 -c 'import pty; pty.openpty()'"))
    in_use = os.openpty()
    program.run("run", "go", "--base-url", url, "--policy", str(path))
    for descriptor in in_use:
        os.close(descriptor)
    ((status, told),) = outcomes(program)
    if why_no_namespaces(probe()):
        assert (status, "[confined: it opens no pseudo-terminal" in told) == ("failed", True), told
    else:
        assert status == "ok", told


def probe_line() -> str:
    why_no_namespaces(probe())  # as a session tries it, before it says its level
    return describe(probe())


def test_a_policy_that_requires_walls_does_not_begin_without(program: Program) -> None:
    url = program.serve(playing("ls"))
    done = in_a_container(program, "run", "go", "--base-url", url, "--policy", policy(program, required=True))
    assert done.returncode == Exit.USAGE
    assert (
        "commands must be confined, but this machine cannot confine them: none: something forbids Landlock's system calls"
        in done.stderr
    )
    assert "seccomp profile" in done.stderr
    assert program.players[0].requests == []


def test_missing_walls_are_reported_by_every_session(program: Program) -> None:
    (program.workspace / "a.txt").write_text("hello")
    url = program.serve(playing("cat a.txt"))
    done = in_a_container(program, "run", "go", "--base-url", url, "--policy", policy(program, required=False))
    assert done.returncode == Exit.DONE, done
    assert "a command can do all that you can (something forbids Landlock's system calls" in done.stderr
    first = program.records()[0]
    assert str(first["confinement"]).startswith("none: something forbids Landlock's system calls")
    assert [str(words).startswith("none: ") for words in intents(program)] == [True]


@needs_walls
@all_rows(("required", "status", "code"), [(True, "denied", 7), (False, "denied", 7)], anew={"program": made_program})
def test_unconfined_command_is_refused_in_ci(program: Program, required: bool, status: str, code: int) -> None:
    def script() -> Generator[ScriptedAnswer, Turn, None]:
        yield Reply(calls=(call("bash", command="ls", unconfined=True, justification="it is me"),))
        yield Reply(text="done")

    url = program.serve(script)
    done = program.run("run", "go", "--base-url", url, "--policy", policy(program, required=required))
    ((found, told),) = outcomes(program)
    assert (done.code, found) == (code, status)
    assert ("[sandbox] required" if required else "default for bash") in told
    assert "Part: `run without confinement: it is me`" in told


@needs_walls
def test_the_harness_own_logs_cannot_be_read_by_a_command(program: Program) -> None:
    (program.workspace / "test_it.py").write_text(
        "import unittest\n"
        "class T(unittest.TestCase):\n"
        "    def test_it(self):\n"
        f"        print(open({str(program.state / 'harness' / 'heads.jsonl')!r}).read())\n"
    )
    first = program.serve(playing("ls"))
    program.run("run", "go", "--base-url", first, "--policy", policy(program, required=True))  # so that there is a head
    program.logs()[0].rename(program.home / "first.jsonl")
    url = program.serve(playing("python3 -m unittest -q"))
    program.run("run", "go", "--base-url", url, "--policy", policy(program, required=True))
    ((status, told),) = outcomes(program)
    assert (status, "PermissionError" in told or "FileNotFoundError" in told) == ("failed", True), told


@needs_walls
def test_long_output_can_be_read_on_unasked(program: Program) -> None:
    seen: list[str] = []

    def script() -> Generator[ScriptedAnswer, Turn, None]:
        turn = yield Reply(calls=(call("bash", command="seq 1 30000"),))
        path = turn.results[0].content.partition("full output: ")[2].partition(";")[0]
        seen.append(path)
        turn = yield Reply(
            calls=(
                call("read_file", path=path, offset=15_000, limit=2),
                call("bash", command=f"tail -1 {shlex.quote(path)}"),
            )
        )
        seen.extend(result.content for result in turn.results)
        yield Reply(text="done")

    url = program.serve(script)
    done = program.run(
        "run", "go", "--base-url", url, "--policy", policy(program, required=True).replace("table", "table")
    )
    assert done.code in (Exit.DONE, Exit.REFUSED), done
    assert seen[0].startswith(str(program.state / "harness" / "outputs")), seen
    assert "30000" in seen[2], json.dumps(seen)


@needs_walls
@all_rows("place", ["{home}/log.jsonl", "{top}/logs/log.jsonl"], anew={"program": made_program})
def test_command_cannot_read_the_log_of_its_run(program: Program, place: str) -> None:
    log = place.format(home=program.home, top=program.home.parent)
    (program.home.parent / "logs").mkdir()
    quoted = shlex.quote(log)
    (program.workspace / "Makefile").write_text(f"all:\n\t! cat {quoted}\n")
    url = program.serve(playing("make all"))
    done = program.run("run", "go", "--base-url", url, "--policy", policy(program, required=True), "--log", log)
    assert done.code == Exit.DONE, done
    with open(log, encoding="utf-8") as file:
        (outcome,) = [record for record in map(json.loads, file) if record["kind"] == "outcome"]
    is_refused = any(words in str(outcome["content"]) for words in ("Permission denied", "No such file"))
    assert (outcome["status"], is_refused) == ("ok", True), outcome


@all_rows(
    "given", ["log.jsonl", "{workspace}/logs/log.jsonl", "{home}/linked/log.jsonl", "."], anew={"program": made_program}
)
def test_a_log_that_a_command_could_write_is_refused_before_the_first_request(program: Program, given: str) -> None:
    (program.workspace / "logs").mkdir()
    (program.home / "linked").symlink_to(program.workspace)
    log = given.format(workspace=program.workspace, home=program.home)
    url = program.serve(playing("true"))
    done = program.run("run", "go", "--base-url", url, "--policy", "readonly", "--log", log)
    told = ("a command of the run could write it", f"leave --log out to keep the log below {program.state}")
    assert (done.code, [text for text in told if text not in done.err]) == (Exit.USAGE, []), done
    assert (program.players[0].requests, list(program.workspace.rglob("*.jsonl"))) == ([], [])


SPOILS = {
    "all of it open": "chmod -R a+rwX {state} {config}",
    "all of it closed": "find {state} {config} -depth -exec chmod a-rwx {{}} +",
    "old": "find {state} {config} -exec touch -d 1990-01-01 {{}} +",
    "given away": "chown -R 12345 {state}/* {config}/*",
}


@needs_walls
@all_rows("spoil", SPOILS.values(), ids=SPOILS, anew={"program": made_program})
def test_spoiled_state_files_are_repaired_at_the_next_start(program: Program, spoil: str) -> None:
    """A program of the user can change modes, owners and times of the harness's own files, and a command that only Landlock
    confines: the next start sets them right, and says so."""
    if "chown" in spoil and os.geteuid() != 0:
        pytest.skip("only root can give files away")
    state, config = program.state / "harness", program.home.parent / "config" / "harness"
    config.mkdir(parents=True)
    (config / "config.toml").write_text("[terminal]\nascii = true\n")
    project = program.workspace / ".harness" / "policy.toml"
    project.parent.mkdir()
    project.write_text('version = 1\n[tools]\nbash = "deny"\n')
    assert program.run("policy", "trust").code == 0
    spoils = spoil.format(state=shlex.quote(str(state)), config=shlex.quote(str(config)))
    (program.workspace / "Makefile").write_text("all:\n\ttrue\n")
    rules = program.home / "rules.toml"
    rules.write_text('version = 1\n[[rule]]\nid = "make"\ndecision = "auto"\nargv = ["make", "all"]\nwrite = ["."]\n')
    words = ("run", "go", "--model", "m", "--policy", str(rules))
    project.unlink()
    first = program.run(*words, "--base-url", program.serve(playing("make all")))
    assert first.code == Exit.DONE, first
    subprocess.run(["bash", "-c", spoils], check=True)
    project.write_text('version = 1\n[tools]\nbash = "deny"\n')
    second = program.run(*words, "--base-url", program.serve(playing("true")))
    assert (second.code, ": set right" in second.err) == (Exit.REFUSED, "touch" not in spoil), second
    for file in ("trusted_policies", "heads.jsonl", "redaction_key"):
        status = (state / file).stat()
        assert (status.st_uid, status.st_mode & 0o622) == (os.geteuid(), 0o600), file
    third = program.run(*words, "--base-url", program.serve(playing("true")))
    assert (third.code, "set right" in third.err) == (Exit.REFUSED, False), third
    subprocess.run(["chmod", "-R", "u+rwX", str(state)], check=True)  # old logs stay closed: the census reads them


def test_start_leaves_other_files_of_the_user_alone(program: Program) -> None:
    """What every start would refuse is set right; a session does that, and no command that only reads."""
    config, state = program.home.parent / "config" / "harness", program.state / "harness"
    config.mkdir(parents=True)
    state.mkdir(parents=True, mode=0o700)
    modes = {config: 0o775, config / "notes": 0o664, config / "config.toml": 0o664, state / "history": 0o640}
    for path, mode in modes.items():
        if path != config:
            path.touch()
        path.chmod(mode)

    def left() -> dict[Path, int]:
        return {path: path.stat().st_mode & 0o777 for path in modes}

    program.run("audit", "list")
    program.run("policy", "check", "readonly")
    assert left() == modes
    done = program.run("run", "go", "--policy", "readonly", "--base-url", program.serve(playing("true")))
    assert done.err.count(": set right") == 2, done
    assert left() == {**modes, config / "config.toml": 0o644, state / "history": 0o600}
    config.chmod(0o777)
    done = program.run("run", "go", "--policy", "readonly", "--base-url", program.serve(playing("true")))
    assert (done.err.count(": set right"), left()[config]) == (1, 0o775), done
