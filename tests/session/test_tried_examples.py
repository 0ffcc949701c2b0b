"""The note of policies whose examples an earlier run has tried: it spares time, and changes no decision."""

from __future__ import annotations

from pathlib import Path

import pytest
from rows import all_rows

from harness import __version__
from harness.errors import PolicyError
from harness.policy.loader import load_policy
from harness.policy.policy import Policy
from harness.session.policies import assemble
from harness.session.state import State

GOOD = """version = 1
[[rule]]
id = "make"
decision = "auto"
argv = ["make", "test"]
match = ["make test"]
"""
WRONG = GOOD.replace('match = ["make test"]', 'match = ["make all"]')


def policy_of(folder: Path, text: str) -> str:
    file = folder / "own.toml"
    file.write_text(text)
    return str(file)


def state_in(folder: Path) -> State:
    (folder / "state").mkdir(exist_ok=True)
    return State(state=str(folder / "state"), config=str(folder / "config"))


def assembled(folder: Path, file: str) -> Policy:
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    return assemble(state_in(folder), str(workspace), names=file, fallback="default")


def test_examples_that_hold_are_noted_in_a_private_file(tmp_path: Path) -> None:
    policy = assembled(tmp_path, policy_of(tmp_path, GOOD))
    note = tmp_path / "state" / "tried_policies"
    assert note.read_text() == f"{__version__} {policy.sha256}\n"
    assert note.stat().st_mode & 0o777 == 0o600
    assert assembled(tmp_path, policy_of(tmp_path, GOOD)) == policy
    assert note.read_text().count("\n") == 1


def test_a_note_spares_the_examples_and_nothing_else(tmp_path: Path) -> None:
    file = policy_of(tmp_path, WRONG)
    with pytest.raises(PolicyError, match="does not match its example"):
        assembled(tmp_path, file)
    untried = load_policy(file, examples=False)
    state_in(tmp_path).note_tried(untried.sha256)
    assert assembled(tmp_path, file).rules == untried.rules
    with pytest.raises(PolicyError, match="unknown key"):
        assembled(tmp_path, policy_of(tmp_path, WRONG.replace("argv", "arg")))
    with pytest.raises(PolicyError, match="does not match its example"):
        assembled(tmp_path, policy_of(tmp_path, f"{WRONG}\n"))


@all_rows(
    "note",
    {
        "of another version": b"0.0.1 SHA256\n",
        "a digest alone": b"SHA256\n",
        "more words": f"{__version__} SHA256 x\n".encode(),
        "bytes": b"\xff\x00\n",
    },
)
def test_examples_are_tried_if_the_note_says_something_else(note: bytes, tmp_path: Path) -> None:
    file = policy_of(tmp_path, WRONG)
    sha256 = load_policy(file, examples=False).sha256
    Path(state_in(tmp_path).tried).write_bytes(note.replace(b"SHA256", sha256.encode()))
    with pytest.raises(PolicyError, match="does not match its example"):
        assembled(tmp_path, file)


def test_a_note_that_cannot_be_read_or_written_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "state" / "tried_policies").mkdir(parents=True)
    assert assembled(tmp_path, policy_of(tmp_path, GOOD)).rules[0].id == "make"


def test_nothing_is_noted_without_a_state_folder_or_rules_of_ones_own(tmp_path: Path) -> None:
    state = State(state=str(tmp_path / "absent"), config=str(tmp_path / "config"))
    assemble(state, str(tmp_path), names=policy_of(tmp_path, GOOD), fallback="default")
    assemble(state_in(tmp_path), str(tmp_path), names="ci", fallback="default")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own.toml", "state"]
    assert list((tmp_path / "state").iterdir()) == []


def test_a_long_note_begins_anew(tmp_path: Path) -> None:
    state = state_in(tmp_path)
    Path(state.tried).write_text(f"{__version__} {'0' * 64}\n" * 1_000)
    state.note_tried("1" * 64)
    assert Path(state.tried).read_text() == f"{__version__} {'1' * 64}\n"
