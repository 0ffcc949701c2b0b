"""The pages of docs/agents/ and the two tables of what was played: each is of the agents and ways that there are."""

from __future__ import annotations

import re
from pathlib import Path

from agent_pages import FAILS, FOLDER, MOST_WORDS, PLAIN, page, words
from broken_hook import BROKEN, TABLE, rows_of
from places import ROOT
from rows import all_rows

from harness.plugins.agents.commands.agent_starts import AGENT_STARTS
from harness.plugins.agents.guarded_agent import AGENTS, agent_named


@all_rows("name", tuple(AGENTS), ids=tuple(AGENTS))
def test_generated_page_is_current(name: str) -> None:
    assert (FOLDER / f"{name}.md").read_text() == page(name), "run tests/plugins/agents/real/write_pages.py"
    assert words(page(name)) <= MOST_WORDS


def test_there_is_a_page_for_each_agent_and_no_other() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(AGENTS)


def test_documented_tables_cover_these_agents_and_failures() -> None:
    plain, ours = rows_of(PLAIN), rows_of(TABLE)
    # A plugin is no hook that could fail by an exit code.
    hooked = {name for name in AGENT_STARTS if not agent_named(name).settings.is_plugin}
    assert set(plain) == {*hooked, "claude with onFailure"}
    assert set().union(*plain.values()) <= {"silent", *FAILS}
    assert set(ours) == set(AGENT_STARTS)
    assert set().union(*ours.values()) <= set(BROKEN) <= set(FAILS)


@all_rows(
    "told, ways",
    [
        ("exits with 1, is killed", ["exit 1", "killed"]),
        ("exits with 3", ["exit 3"]),
        ("is gone", ["no program"]),
        ("refuses without a word", ["refuses without a word"]),
        ("answers half", ["no JSON"]),
        ("is late", ["too slow"]),
    ],
)
def test_security_page_names_agents_that_ignore_a_failed_hook(told: str, ways: list[str]) -> None:
    plain = rows_of(PLAIN)
    rows = re.findall(r"^\| (.*?) \| (.*?) \|", Path(ROOT, "SECURITY.md").read_text(), re.MULTILINE)
    (named,) = (agents for failure, agents in rows if failure == told)
    for way in ways:
        assert {name for name in AGENTS if way in plain.get(name, ())} == set(named.lower().split(", "))


def test_each_agent_was_tried_or_names_its_documents() -> None:
    assert {name for name in AGENTS if not agent_named(name).documents} == set(AGENT_STARTS)
