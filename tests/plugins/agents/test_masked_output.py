"""The output of `harness exec` beside what the agent may not read: keys of other processes, files that a rule denies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hook_process import Hooked
from program import Program
from rows import all_rows

from harness.sandbox import enforces, probe

pytestmark = pytest.mark.skipif(not enforces(probe()), reason="this machine cannot confine commands")
KEY = "Gh4xT0keN9vQ2mLp7RsZ"
READS_ENVIRONMENTS = """
import glob
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        with open(path, "rb") as file:
            print(path, file.read()[::-1])
    except OSError:
        pass
print("read")
"""
"""A program that prints all environments backwards, so that no mask hides a key in them."""


@pytest.fixture
def hooked(program: Program) -> Hooked:
    return Hooked(program)


@all_rows("command", ["ls", "touch made; ls"], ids=["reader", "writer"])
def test_command_cannot_read_the_environment_of_the_agent(command: str, hooked: Hooked, tmp_path: Path) -> None:
    hooked.environment["GITHUB_TOKEN"] = KEY
    program = tmp_path / "bin" / "ls"  # another program in its place
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!{sys.executable}\n{READS_ENVIRONMENTS}")
    program.chmod(0o755)
    hooked.environment["PATH"] = f"{program.parent}:{hooked.environment['PATH']}"
    done = hooked.run(command, command)
    assert (done.code, "read" in done.out.splitlines()) == (0, True), done
    assert KEY[::-1] not in done.out


def test_failed_command_is_told_which_variable_it_was_not_given(hooked: Hooked) -> None:
    hooked.environment.update(GITHUB_TOKEN=KEY, EMPTY="")
    done = hooked.run('test -n "$GITHUB_TOKEN$EMPTY$HOME$UNSET" && printenv GITHUB_TOKEN')
    assert (done.code, done.out, done.err) == (1, "", "harness: [commands are not given $GITHUB_TOKEN, $EMPTY]\n")


def test_search_of_a_folder_leaves_out_denied_files_and_says_so(hooked: Hooked) -> None:
    (hooked.workspace / ".env").write_text("alpha secret\n")
    done = hooked.run("grep -rn alpha .")
    assert done.out == "./f.txt:1:alpha\n"
    assert "harness: [left out, since a rule denies reading: .env;" in done.err


def test_bytes_that_are_no_text_pass_unchanged(hooked: Hooked) -> None:
    data = bytes(range(255, -1, -1)) * 300 + "\u00e4\u20ac".encode()[:-1]
    (hooked.workspace / "data").write_bytes(data)
    with hooked.program.start(*hooked.words("cat data")) as process:
        assert process.stdout is not None
        assert process.stdout.read() == data
