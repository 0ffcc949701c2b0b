"""Plugins of others: that of examples/plugin, built as a wheel, installed in a scratch environment, and used there."""

from __future__ import annotations

import json
import re
import site
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from places import ROOT
from repl_scene import prompts
from rows import all_rows

from harness.errors import UsageError
from harness.models.scripted import Reply, call, replies, say
from harness.session.config.extension_tables import project_tables
from harness.session.exits import Exit

if TYPE_CHECKING:
    from program import Program

MOST_LINES = 40
"""Of each file of the example."""
BAD = """
from harness.plugin import CliCommand, Plugin, ReportForm, SlashCommand, ToolOffer, later
from harness.tool_kinds import ToolKind

NOTHING = later("nowhere", "nothing")


def with_command(name):
    return Plugin(name="bad", commands=(CliCommand(name=name, help="Do it.", run=NOTHING),))


REPLACES, TWICE, ODD = map(with_command, ("audit mine", "words", "Big word"))
TOOL = Plugin(name="bad", tools=(ToolOffer(kind=ToolKind(name="bash"), make=NOTHING),))
REPORT = Plugin(name="bad", reports=(ReportForm(name="junit", write=NOTHING),))
SLASH = Plugin(name="bad", slash_commands=(SlashCommand(name="/undo", summary="Do.", run=NOTHING),))
LONG = Plugin(name="bad", slash_commands=(SlashCommand(name="/to do", summary="Do.", run=NOTHING),))
NONE = "no plugin"
"""
MORE_ENTRIES = "\n".join(
    f'{name.lower()} = "harness_words.bad:{name}"'
    for name in ("REPLACES", "TWICE", "ODD", "TOOL", "REPORT", "SLASH", "LONG", "NONE", "GONE")
)
POLICY = """
version = 1
[tools]
plugin__count_words = "auto"
[[rule]]
id = "secret"
decision = "deny"
reason = "it holds keys"
path = [".env"]
access = ["read"]
"""


def files_of_the_example() -> dict[str, str]:
    """Return the files of the example, by their names."""
    folder = Path(ROOT, "examples", "plugin")
    found = (path for path in folder.rglob("*") if path.suffix in (".py", ".toml"))
    return {str(path.relative_to(folder)): path.read_text() for path in found}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of an environment in which the wheel is installed."""
    folder = tmp_path_factory.mktemp("plugins")
    source, there = folder / "source", folder / "there"
    for name, text in {**files_of_the_example(), "harness_words/bad.py": BAD}.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("\n\n[tool.hatch", f"\n{MORE_ENTRIES}\n\n[tool.hatch"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    _done([*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(folder), str(source)])
    _done([sys.executable, "-m", "venv", "--without-pip", str(there)])
    python = str(there / "bin" / "python")
    (wheel,) = folder.glob("*.whl")
    _done([*pip, "--python", python, "install", "--no-deps", "--no-index", str(wheel)])
    (packages,) = there.glob("lib/python*/site-packages")
    (packages / "rest.pth").write_text("\n".join([ROOT, *site.getsitepackages(), *_more_packages()]))
    return python


def _more_packages() -> list[str]:
    return [entry for entry in sys.path if entry.endswith("site-packages")]


def _done(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


class Used:
    """The program in that environment, with plugins that its configuration names."""

    def __init__(self, python: str, program: Program) -> None:
        self.python, self.program = python, program

    def name(self, *names: str) -> None:
        config = Path(self.program.environment["XDG_CONFIG_HOME"], "harness", "config.toml")
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(f"plugins = {[*names]}\n")
        config.chmod(0o600)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python, "-m", "harness", *words],
            cwd=self.program.workspace,
            env=self.program.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )


@pytest.fixture
def used(python: str, program: Program) -> Used:
    (program.workspace / "a.txt").write_text("one two three\n")
    return Used(python, program)


def test_each_file_of_the_example_is_short_and_on_the_page() -> None:
    files, page = files_of_the_example(), Path(ROOT, "docs", "plugins.md").read_text()
    assert [name for name in files if f"`{Path(name).name}`" not in page] == ["harness_words/__init__.py"]
    assert max(text.count("\n") for text in files.values()) < MOST_LINES


def test_a_command_of_a_plugin_is_listed_helps_and_runs(used: Used) -> None:
    used.name("words")
    assert re.search(r"^  plugins +words +Count the words of a file\.$", used.run("help").stdout, re.MULTILINE)
    assert "FILE        the file to count" in used.run("help", "words").stdout
    assert (used.run("words", "a.txt").stdout, used.run("words", "--help").returncode) == ("3\n", 0)
    wrong = used.run("words", "none.txt")
    assert (wrong.returncode, wrong.stderr[:19], wrong.stderr.count("\n")) == (Exit.USAGE, "harness: none.txt: ", 1)


@pytest.mark.terminal
def test_a_slash_command_of_a_plugin_is_listed_and_runs(used: Used) -> None:
    program = used.program
    program.python = used.python
    with prompts(program, 'plugins = ["words"]\n') as start:
        prompt = start(replies(say("One two three.")))
        prompt.say("go", "One two three.")
        prompt.say("/words", "3 words")
        prompt.say("/help", "count the words of the last answer")
        assert prompt.leave() == Exit.DONE
    with prompts(program, 'plugins = ["slash"]\n') as start:
        start(replies(say("Done.")), waits_for="slash command /undo: it ships already")


def test_a_report_of_a_plugin_is_written_at_the_end_of_a_run(used: Used) -> None:
    used.name("words")
    url = used.program.serve(replies(Reply(calls=(call("read_file", path="a.txt"),)), say("Done.")))
    done = used.run("run", "go", "--base-url", url, "--model", "m", "--report", "words:out.txt")
    assert done.returncode == Exit.DONE, done.stderr
    assert (used.program.workspace / "out.txt").read_text() == "run: completed, 1 calls\n"
    unknown = used.run("run", "go", "--base-url", url, "--model", "m", "--report", "wrods:out.txt")
    assert (unknown.returncode, "FORM one of md, junit, sarif, html, words" in unknown.stderr) == (Exit.USAGE, True)


def test_a_plugin_that_the_configuration_does_not_name_is_not_loaded(used: Used) -> None:
    for config in (None, ()):
        if config is not None:
            used.name(*config)
        done = used.run("words")
        assert (done.returncode, "the prompt needs a terminal" in done.stderr) == (Exit.USAGE, True), done.stderr
        assert "plugins" not in used.run("help").stdout


def test_a_project_names_no_plugin() -> None:
    with pytest.raises(UsageError, match=r"plugins: unknown table; .* a project may add tools, servers and hooks"):
        project_tables(b'plugins = ["words"]\n', ".harness/config.toml")


@all_rows(
    ("names", "told"),
    [
        (("wrods",), "the plugin 'wrods' is not installed; did you mean words?"),
        (("replaces",), "the plugin 'replaces' cannot be used: command 'audit mine': audit is a command that ships"),
        (("words", "twice"), "the plugin 'twice' cannot be used: command 'words': the plugin 'words' has it already"),
        (("odd",), "command 'Big word': a command is one word or two, of a-z, 0-9 and -"),
        (("tool",), "tool 'bash': the name must begin with plugin__"),
        (("report",), "report 'junit': it ships already"),
        (("long",), "slash command '/to do': a slash command is / and one word, of a-z, 0-9 and -"),
        (("none",), "the plugin 'none' is not a harness.plugin.Plugin: harness_words.bad:NONE"),
        (("gone",), "the plugin 'gone' cannot be loaded: AttributeError: "),
    ],
)
def test_a_plugin_that_would_replace_something_or_is_none_is_refused(
    names: tuple[str, ...], told: str, used: Used
) -> None:
    used.name(*names)
    done = used.run("mine")
    assert (done.returncode, told in done.stderr, done.stderr.count("\n")) == (Exit.USAGE, True, 1), done.stderr
    assert "config.toml:1: " in done.stderr
    assert (used.run("help").returncode, used.run("undo", "--help").returncode) == (0, 0)


def test_the_calls_of_a_tool_of_a_plugin_are_judged_logged_and_answered(used: Used) -> None:
    used.name("words")
    program = used.program
    (program.workspace / ".env").write_text("KEY=1\n")
    policy = program.home / "words.toml"
    policy.write_text(POLICY)
    asked = (call("plugin__count_words", path="a.txt"), call("plugin__count_words", path=".env"))
    url = program.serve(replies(Reply(calls=asked), say("Done.")))
    done = used.run("run", "go", "--base-url", url, "--model", "m", "--policy", str(policy))
    assert done.returncode == Exit.REFUSED, done.stderr
    assert [record["decision"] for record in program.records() if record["kind"] == "decision"] == ["auto", "deny"]
    assert "3 words" in used.run("audit", "show", "--full").stdout


def test_the_calls_of_a_tool_of_a_plugin_are_explained_and_replayed_as_they_are_judged(used: Used) -> None:
    used.name("words")
    program = used.program
    (program.workspace / ".env").write_text("KEY=1\n")
    policy = program.home / "words.toml"
    policy.write_text(POLICY)
    explain = ("policy", "explain", "--policy", str(policy), "--tool", "plugin__count_words")
    assert used.run(*explain, '{"path": "a.txt"}').returncode == Exit.DONE
    denied = used.run(*explain, '{"path": ".env"}')
    assert (denied.returncode, "secret" in denied.stdout) == (20, True), denied.stdout
    wrong = used.run(*explain, '{"file": "a.txt"}')
    assert (wrong.returncode, "path" in wrong.stdout + wrong.stderr) == (Exit.USAGE, True), wrong.stdout
    unknown = used.run("policy", "explain", "--policy", str(policy), "--tool", "plugin__other", "{}")
    assert "no plugin that the configuration names offers plugin__other" in unknown.stderr
    url = program.serve(replies(Reply(calls=(call("plugin__count_words", path="a.txt"),)), say("Done.")))
    assert used.run("run", "go", "--base-url", url, "--model", "m", "--policy", str(policy)).returncode == Exit.DONE
    replayed = used.run("policy", "replay", "--policy", str(policy))
    assert (replayed.returncode, "another program" in replayed.stdout) == (Exit.DONE, False), replayed.stdout


@all_rows(
    ("flags", "offered"),
    [((), True), (("--tools", "bash"), False), (("--tools", "plugin__count_words"), True)],
)
def test_a_tool_of_a_plugin_is_offered_unless_other_tools_are_chosen(
    flags: tuple[str, ...], *, offered: bool, used: Used
) -> None:
    used.name("words")
    url, log = used.program.serve(replies(say("Done."))), used.program.home / f"{len(flags)}{flags[-1:]}.jsonl"
    done = used.run("run", "go", "--base-url", url, "--model", "m", "--log", str(log), *flags)
    started = json.loads(log.read_text().partition("\n")[0])
    assert (done.returncode, "plugin__count_words" in str(started["tools"])) == (Exit.DONE, offered), done.stderr


def test_a_tool_that_no_plugin_offers_cannot_be_chosen(used: Used) -> None:
    used.name("words")
    done = used.run("run", "go", "--model", "m", "--tools", "plugin__other")
    assert (done.returncode, "unknown tool 'plugin__other'" in done.stderr) == (Exit.USAGE, True), done.stderr
