"""The table of what ships: each row leads to a record, and each record to the function that it imports later."""

from __future__ import annotations

from argparse import ArgumentParser
from importlib import import_module

import pytest
from rows import all_rows

from harness.app.command_line import actions, command, first_words, named_command
from harness.errors import UsageError
from harness.plugin import Later, Plugin, later
from harness.session.shipped_plugins import plugin_in
from harness.shipped import COMMANDS, DEFAULT_ACTIONS, HELP, REPORTS, STARTED_BY_AGENTS


def test_each_row_has_its_record_and_each_record_its_row() -> None:
    found = {one.name: module for module in set(COMMANDS.values()) for one in plugin_in(module).commands}
    assert found == COMMANDS


@all_rows("name", [*COMMANDS])
def test_each_record_leads_to_a_function_and_ends_its_help_as_a_sentence(name: str) -> None:
    found = command(name)
    assert isinstance(found.run, Later)
    assert callable(found.run.function())
    assert (found.help[:1].isupper(), found.help.endswith(".")) == (True, True)


def test_help_has_each_first_word_once() -> None:
    shown = [word for commands in HELP.values() for word in commands]
    assert (sorted(shown), len(shown)) == (sorted(first_words()), len(set(shown)))
    assert all(default in actions(word) for word, default in DEFAULT_ACTIONS.items())


def test_each_form_of_report_and_each_start_of_an_agent_has_a_module() -> None:
    assert all(callable(import_module(module).report) for module in REPORTS.values())
    assert all(callable(import_module(module).start_for_agent) for module in STARTED_BY_AGENTS.values())


def test_a_function_that_is_named_is_imported_when_it_is_called() -> None:
    made = later("harness.record", "field_names")
    assert (made(Plugin)[0], made) == ("name", later("harness.record", "field_names"))
    with pytest.raises(ModuleNotFoundError):
        later("harness.nowhere", "nothing")()


@all_rows(
    ("words", "name", "rest"),
    [
        (["audit", "show", "--full"], "audit show", ["--full"]),
        (["models", "--json"], "models list", ["--json"]),
        (["models", "update", "f"], "models update", ["f"]),
        (["undo"], "undo", []),
        (["fix it"], "", ["fix it"]),
        (["-c", "run"], "", ["-c", "run"]),
        ([], "", []),
    ],
)
def test_the_words_name_a_command(words: list[str], name: str, rest: list[str]) -> None:
    found, left = named_command(words)
    assert (found.name, left) == (name, rest)


@all_rows("words", [["audit"], ["audit", "shwo"], ["policy", "--help-me"], ["queue", "list"]])
def test_a_command_without_its_action_is_refused(words: list[str]) -> None:
    with pytest.raises(UsageError, match=f"^harness {words[0]} needs an action: "):
        named_command(words)


def test_a_command_without_flags_takes_none() -> None:
    parser = ArgumentParser()
    command("schema log").add_flags(parser)
    assert [action.dest for action in parser._actions] == ["help"]
