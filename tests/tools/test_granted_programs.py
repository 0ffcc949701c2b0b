"""Granted programs as real processes: what their walls keep from them, and that builds and tests work behind them."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
from grant_scene import Scene, bash, granting
from rows import all_rows
from sandbox_scene import needs_walls

from harness.grant_pattern import GrantScope
from harness.log.vocabulary import PlacesAnswer
from harness.record import replace
from harness.sandbox import Machine, hides_where_it_may_write, probe

pytestmark = needs_walls

PROGRAM = "this program, any words, inside walls"
ANY = "any command, inside walls"
POLICY = b'version = 1\n[tools]\ndefault = "confirm"\nreaders = true\n'
ATTEMPTS = """
import os, socket, subprocess

folder, harness, tcp, log = open("where").read().split("\\n")
harness, tcp = int(harness), int(tcp)
outside = f"{folder}/outside"


def attempt(name):
    def run(what):
        try:
            done = what()
        except OSError:
            return
        if done is not False:
            print(f"DONE {name}")

    return run


def written(path, mode="w"):
    with open(path, mode) as file:
        file.write("x")


def linked():
    os.symlink(outside, "way-out")
    written("way-out/linked")


def seen(path):
    return bool(open(path).read())


def unix(address):
    socket.socket(socket.AF_UNIX).connect(address)


def sent():
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", tcp))


attempt("write outside")(lambda: written(f"{outside}/new"))
attempt("change a file outside")(lambda: written(f"{outside}/file", "a"))
attempt("make a folder outside")(lambda: os.mkdir(f"{outside}/folder"))
attempt("take a file out")(lambda: os.rename("a.py", f"{outside}/a.py"))
attempt("link a file in")(lambda: os.link(f"{outside}/file", "hard"))
attempt("write through a link")(linked)
attempt("write by another program")(lambda: subprocess.run(["sh", "-c", '> "$0"', f"{outside}/sh"], stderr=-3).returncode == 0)
attempt("change the log")(lambda: written(log, "a"))
attempt("remove the log")(lambda: os.remove(log))
attempt("read a key")(lambda: seen(f"{folder}/.ssh/id_ed25519"))
attempt("read a key by another program")(
    lambda: subprocess.run(["cat", f"{folder}/.ssh/id_ed25519"], stdout=-3, stderr=-3).returncode == 0
)
attempt("reach TCP")(lambda: socket.create_connection(("127.0.0.1", tcp), 2))
attempt("listen on TCP")(lambda: socket.create_server(("127.0.0.1", 0)))
attempt("send UDP")(sent)
attempt("reach a Unix socket")(lambda: unix(f"{folder}/socket"))
attempt("reach an abstract socket")(lambda: unix("\\0harness-" + str(harness)))
attempt("signal the harness")(lambda: os.kill(harness, 0))
attempt("read the variables of the harness")(lambda: seen(f"/proc/{harness}/environ"))
attempt("bring a file in")(lambda: os.rename(f"{outside}/file", "file"))
attempt("remove a file outside")(lambda: os.remove(f"{outside}/gone"))
attempt("write the workspace")(lambda: written("made.txt"))
attempt("write a temporary file")(lambda: written(os.environ["TMPDIR"] + "/made"))
"""


def machine(*, bubblewrap: bool) -> Machine:
    found = probe()
    if bubblewrap and not hides_where_it_may_write(found):
        pytest.skip("bubblewrap does not work here")
    return found if bubblewrap else replace(found, bubblewrap="", no_namespaces="off")


def outcomes(scene: Scene) -> list[str]:
    return [str(record["content"]) for record in scene.records("outcome")]


SECRETS = (
    POLICY
    + b"""
[[rule]]
id = "secrets"
decision = "deny"
access = ["read"]
path = [".env"]
reason = "Secrets."
"""
)


@all_rows("landlock", [True, False])
@all_rows("line", ["grep -rn KEY .", "find . -type f | xargs cat", "cat $(find . -type f)", "grep -Rns KEY sub ."])
def test_search_hides_the_secret_and_reports_it(tmp_path: Path, line: str, *, landlock: bool) -> None:
    here = machine(bubblewrap=not landlock)
    if not landlock and not here.bubblewrap:
        pytest.skip("NOT TESTED: bubblewrap does not work here")
    (tmp_path / "w" / "sub").mkdir(parents=True)
    for name, text in ((".env", "KEY=planted"), ("a.py", "KEY other"), ("sub/.env", "KEY=planted"), ("sub/b", "KEY 2")):
        (tmp_path / "w" / name).write_text(f"{text}\n")
    here = here if landlock else replace(here, landlock=0)
    scene = Scene(tmp_path, bash(line), approver=granting(GrantScope.SESSION, PROGRAM), policy=SECRETS, machine=here)
    scene.agent.run("go")
    (content,) = outcomes(scene)
    assert [record["decision"] for record in scene.records("decision")] == ["auto"]
    assert ("planted" in content, "KEY other" in content, "KEY 2" in content) == (False, True, True)
    assert "[left out, since a rule denies reading: " in content
    assert "may end with an error, and `&&` behind it stops]" in content
    assert content.count(".env") > 1
    scene.close()


@all_rows("choice", [PROGRAM, ANY])
@all_rows("bubblewrap", [False, True])
def test_a_granted_program_gets_past_no_wall(tmp_path: Path, choice: str, *, bubblewrap: bool) -> None:
    for name in ("w", "outside", ".ssh"):
        (tmp_path / name).mkdir()
    for name in ("w/a.py", "outside/file", "outside/gone", ".ssh/id_ed25519"):
        (tmp_path / name).write_text("KEY\n")
    (tmp_path / "w" / "attempts.py").write_text(ATTEMPTS)
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        unix.bind(str(tmp_path / "socket"))
        abstract.bind(f"\0harness-{os.getpid()}")
        unix.listen()
        abstract.listen()
        where = (tmp_path, os.getpid(), tcp.getsockname()[1], tmp_path / "log.jsonl")
        (tmp_path / "w" / "where").write_text("\n".join(map(str, where)))  # what a command names is judged, and refused
        scene = Scene(
            tmp_path,
            bash("python3 attempts.py"),  # the call at whose question it is granted, too
            bash("python3 attempts.py"),
            approver=granting(GrantScope.SESSION, choice),
            policy=POLICY,
            machine=replace(machine(bubblewrap=bubblewrap), no_namespaces="off"),  # there, /tmp is its own
        )
        scene.agent.run("go")
    assert [record["decision"] for record in scene.records("decision")] == ["confirm", "auto"]
    for content in outcomes(scene):
        done = [line for line in content.splitlines() if line.startswith("DONE") or "Error" in line]
        assert done == ["DONE write the workspace", "DONE write a temporary file"]
    assert (tmp_path / "outside" / "file").read_text() == "KEY\n"
    scene.close()


GO = {
    "go.mod": "module x\n\ngo 1.18\n",
    "a.go": "package x\n\nfunc A() int { return 1 }\n",
    "a_test.go": 'package x\n\nimport "testing"\n\nfunc TestA(t *testing.T) {\n\tif A() != 1 {\n\t\tt.Fatal()\n\t}\n}\n',
}
CARGO = {
    "Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": "#[test]\nfn t() {}\n",
}
NPM = {
    "package.json": '{"name": "x", "version": "1.0.0", "scripts": {"test": "node a.test.js"}}',
    "a.test.js": "require('fs').writeFileSync('ran', require('os').tmpdir())",
}
MAKE = {"Makefile": "all:\n\tcc -o a a.c && ./a\n", "a.c": "int main(void) { return 0; }\n"}
WORK: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "go": ("go", "go build ./... && go vet ./... && go test ./...", GO),
    "cargo": ("cargo", "cargo test -q", CARGO),
    "npm": ("npm", "npm test", NPM),
    "make": ("make", "make", MAKE),
    "python": ("python3", "python3 -m unittest -q", {"test_a.py": "import unittest\nunittest.main\n"}),
    "queues": ("python3", "python3 -c 'import multiprocessing; print(multiprocessing.Pool(2).map(abs, [-1]))'", {}),
}


@all_rows(("program", "command", "files"), WORK.values(), ids=WORK)
def test_builds_and_tests_succeed_behind_the_walls_of_a_grant(
    tmp_path: Path, program: str, command: str, files: Mapping[str, str]
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    for name, text in files.items():
        place = tmp_path / "w" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    scene = Scene(
        tmp_path,
        bash("make --version; mkdir -p made"),
        bash(command),
        approver=granting(GrantScope.SESSION, ANY),
        policy=POLICY,
        machine=machine(bubblewrap=False),
    )
    scene.agent.run("go")
    decided = [(record["decision"], record.get("source")) for record in scene.records("decision")]
    assert decided[1][0] == "auto", decided
    assert scene.records("outcome")[1]["status"] == "ok", outcomes(scene)[1]
    scene.close()


def test_repository_hooks_run_behind_the_walls_of_a_grant(tmp_path: Path) -> None:
    """A commit that a person granted does not leave out what the repository checks; a hook never reaches the network."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    names = " ".join(f"GIT_{who}_{what}=x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL"))
    scene = Scene(
        tmp_path,
        bash("git init -q ."),
        bash(
            "printf '#!/bin/sh\\ntouch hooked ../out; exit 1\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"
        ),
        bash(f"{names} git commit --dry-run --allow-empty -qm x"),
        bash(f"{names} git commit -qm x --allow-empty"),
        approver=granting(GrantScope.SESSION, PROGRAM),
        policy=POLICY,
        machine=machine(bubblewrap=False),
        ask_places=lambda _: PlacesAnswer.KEEP,
    )
    scene.agent.run("go")
    assert [record["decision"] for record in scene.records("decision")][-1] == "auto"
    assert [record["status"] for record in scene.records("outcome")][-1] == "failed"
    assert [(tmp_path / name).exists() for name in ("w/hooked", "out")] == [True, False]
    scene.close()
