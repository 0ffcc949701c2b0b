"""What a worker must be to take a task, as text: other policies and settings make another text, models and limits do not."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest
from batch_scene import POLICY

from harness.app.command_line import parser_for
from harness.errors import PolicyError, UsageError
from harness.plugins.fleet.queue.version import version_of


def flags(command: str, *words: str) -> Namespace:
    return parser_for(command).parse_args(
        [*(("t", "--out", "o") if command == "batch" else ()), "--queue", "q", *words]
    )


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    return str(path)


def test_batch_and_worker_with_the_same_flags_are_of_one_version(policy: str) -> None:
    for words in ([], ["--tools", "bash", "--effort", "low", "--plan"]):
        batch, worker = (flags(command, "--policy", policy, *words) for command in ("batch", "worker"))
        assert version_of(batch) == version_of(worker)


def test_the_policy_counts_by_its_content_and_not_by_its_place(policy: str, tmp_path: Path) -> None:
    copy, other = tmp_path / "copy.toml", tmp_path / "other.toml"
    copy.write_text(POLICY)
    other.write_text(POLICY + "\n")
    here, there, changed = (version_of(flags("worker", "--policy", str(path))) for path in (policy, copy, other))
    assert here == there != changed
    assert version_of(flags("worker")) == version_of(flags("worker", "--policy", "readonly"))


@pytest.mark.parametrize(
    "words", [["--tools", "bash"], ["--set", "temperature=0"], ["--allow-refusals"], ["--add-dir", "/x"]]
)
def test_a_setting_makes_another_version(policy: str, words: list[str]) -> None:
    assert version_of(flags("worker", "--policy", policy)) != version_of(flags("worker", "--policy", policy, *words))


@pytest.mark.parametrize("words", [["--model", "m"], ["--max-turns", "3"], ["--max-cost", "1"]])
def test_models_and_limits_travel_with_the_task(policy: str, words: list[str]) -> None:
    assert version_of(flags("worker", "--policy", policy)) == version_of(flags("worker", "--policy", policy, *words))


def test_the_content_of_a_system_prompt_counts(policy: str, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for path, text in ((one, "a"), (two, "b")):
        path.write_text(text)
    assert len({version_of(flags("worker", "--policy", policy, "--system", str(path))) for path in (one, two)}) == 2
    with pytest.raises(UsageError, match="--system: /nowhere cannot be read"):
        version_of(flags("worker", "--system", "/nowhere"))


def test_another_digest_than_the_pinned_one_is_refused(policy: str) -> None:
    with pytest.raises(PolicyError, match="and --policy-sha256 says 00"):
        version_of(flags("worker", "--policy", policy, "--policy-sha256", "00" * 32))
