"""`harness policy new`: every stack, with and without a person and a network, makes a file that `check` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rows import all_rows

from harness.app.policy.new_policy import policy_text
from harness.policy.lint import warnings
from harness.policy.loader import PACKS, load_policy

if TYPE_CHECKING:
    from pathlib import Path

    from program import Program


@all_rows("network", ["none", "any", "pypi.org *.example.org, localhost:8080"])
def test_every_answer_makes_a_policy_without_warnings(network: str, tmp_path: Path) -> None:
    file = tmp_path / "my policy.toml"
    stacks: tuple[tuple[str, ...], ...] = ((), PACKS)
    for packs in stacks:
        for attended in (True, False):
            file.write_text(policy_text(str(file), packs, attended=attended, network=network))
            assert warnings(load_policy(str(file))) == ()


def test_flags_make_a_file_without_a_terminal(program: Program) -> None:
    file = program.home / "p.toml"
    flags = ("--stack", "python,node", "--person", "no", "--network", "none")
    made = program.run("policy", "new", str(file), *flags)
    assert (made.code, 'extends = ["ci", "python", "node"]' in file.read_text()) == (0, True), made.err
    assert program.run("policy", "check", "--strict", str(file)).code == 0
    again = program.run("policy", "new", str(file), *flags)
    assert (again.code, "exists already" in again.err) == (2, True)


@all_rows(
    ("flags", "problem"),
    [
        ((), "without a terminal, give --stack, --person and --network"),
        (("--stack", "pyhton", "--person", "no", "--network", "none"), "unknown stack 'pyhton'; did you mean python?"),
        (("--stack", "none", "--person", "yes", "--network", "http://x"), "network: "),
    ],
)
def test_invalid_answer_makes_no_file(flags: tuple[str, ...], problem: str, program: Program) -> None:
    file = program.home / "none.toml"
    done = program.run("policy", "new", str(file), *flags)
    assert (done.code, problem in done.err, file.exists()) == (2, True, False), done.err
