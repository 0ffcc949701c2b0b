"""A team's own words at the prompt: commands, skills, and the question whether a folder's are trusted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from repl_scene import Prompt, Start, prompts
from rows import all_rows

from harness.cli.words.own_commands import expanded
from harness.cli.words.word_files import MOST_BYTES, folder_data, words_in
from harness.errors import UsageError
from harness.models.scripted import Reply, replies

if TYPE_CHECKING:
    from program import Program

DONE = Reply(text="Done.")
REVIEW = "---\ndescription: look\x1b[2J closely\nargument-hint: FILE\n---\nReview $1 for $2. All of it: $ARGUMENTS\n"
SKILL = "---\nname: release\ndescription: how a release is made\n---\nRun make.\n"


@all_rows(
    ("body", "rest", "said"),
    [
        pytest.param("a $1 b $2 c", "x 'y z'", "a x b y z c", id="words"),
        pytest.param("a $2.", "x", "a .", id="one that is missing"),
        pytest.param("$ARGUMENTS!", "x  'y", "x  'y!", id="all of them, as typed"),
        pytest.param("$1", "'$2' $ARGUMENTS", "$2", id="values are not read again"),
        pytest.param("cost: $10, $HOME, $0", "", "cost: $10, $HOME, $0", id="other dollars stay"),
        pytest.param("Go.", "now", "Go.\n\nnow", id="placed nowhere"),
        pytest.param("Go.", "", "Go.", id="nothing said"),
    ],
)
def test_what_a_command_says(body: str, rest: str, said: str) -> None:
    assert expanded(body, rest) == said


def test_a_quote_that_does_not_end() -> None:
    with pytest.raises(UsageError, match="a quote does not end"):
        expanded("$1", "'x")


@all_rows(
    ("name", "text", "problem"),
    [
        pytest.param("commands/Big.md", "x", "small letters", id="a large letter"),
        pytest.param("commands/a.md", "---\nmodle: x\n---\nx", "no key 'modle'", id="an unknown key"),
        pytest.param("commands/a.md", "---\nplan: maybe\n---\nx", "true or false", id="plan"),
        pytest.param("commands/a.md", "---\nplan: true\n---\n\n", "says nothing", id="nothing"),
        pytest.param("skills/a/SKILL.md", "x", "its name must be given", id="a skill without a name"),
        pytest.param("skills/a/SKILL.md", "---\nname: b\n---\n", "another name", id="a skill of another name"),
        pytest.param("skills/a/SKILL.md", "---\nname: a\n---\n", "no description", id="a skill without description"),
    ],
)
def test_a_file_that_is_not_understood_is_left_out(tmp_path: Path, name: str, text: str, problem: str) -> None:
    path = tmp_path.resolve() / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    folder = str(tmp_path.resolve() / name.partition("/")[0])
    words = words_in(folder_data(folder), folder)
    assert (words.commands, words.skills, problem in " ".join(words.notes)) == ({}, {}, True), words.notes


@all_rows("what", ["a link", "a folder", "too large", "no text", "the folder is a link"])
def test_a_folder_with_what_is_no_plain_text_does_not_count(tmp_path: Path, what: str) -> None:
    folder = tmp_path.resolve() / "commands"
    folder.mkdir()
    (tmp_path / "outside.md").write_text("secret")
    (folder / "good.md").write_text("Good.")
    match what:
        case "a link":
            (folder / "x.md").symlink_to(tmp_path / "outside.md")
        case "a folder":
            (folder / "x.md").mkdir()
        case "too large":
            (folder / "x.md").write_text("x" * (MOST_BYTES + 1))
        case "no text":
            (folder / "x.md").write_bytes(b"\xff")
        case _:
            folder = tmp_path.resolve() / "other"
            folder.symlink_to(tmp_path / "commands")
    with pytest.raises(ValueError, match=r"link|cannot be read|more than|no text"):
        folder_data(str(folder))


@pytest.fixture
def start(program: Program) -> Iterator[Start]:
    with prompts(program) as starting:
        yield starting


def put(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path = path.with_suffix(".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def answered(prompt: Prompt, key: str) -> None:
    prompt.wait_for("trust what .harness/commands")
    prompt.wait_keys()
    prompt.send(key)


@pytest.mark.terminal
def test_a_folders_commands_count_once_they_are_trusted(program: Program, start: Start) -> None:
    put(program.workspace / ".harness", commands__review=REVIEW, commands__help="Never.")
    assert program.run("policy", "trust", ".harness/commands").code == 0
    prompt = start(replies(DONE, DONE))
    prompt.type("/review a.txt 'all its faults'")
    prompt.wait_count("tokens in, ", 1)
    prompt.type("/help")
    prompt.wait_for("/review FILE")
    assert prompt.leave() == 0
    (said,) = [one["text"] for one in program.records() if one["kind"] == "user_message"]
    assert said == "Review a.txt for all its faults. All of it: a.txt 'all its faults'"
    assert "\x1b[2J closely" not in prompt.raw.decode()
    assert "/help is a command of the program" in " ".join(prompt.unwrapped().split())


def test_a_run_says_a_command_by_its_name_once_it_is_trusted(program: Program) -> None:
    put(
        program.workspace / ".harness",
        commands__review="Review $1 closely.",
        commands__think="---\nplan: true\n---\nThink.",
        commands__other="---\nmodel: big\n---\nGo.",
        commands__help="Never.",
    )
    url = program.serve(replies(*[DONE] * 6))

    def asked(*words: str) -> tuple[int, str, str]:
        before = len(program.players[0].requests)
        done = program.run("run", *words, "--base-url", url, "--model", "m")
        made = program.players[0].requests[before:]
        messages = made[0]["messages"] if made else [{"content": ""}]
        assert isinstance(messages, list)
        last = messages[-1]
        assert isinstance(last, dict)
        return done.code, str(last["content"]), done.err

    assert asked("/review a.txt")[:2] == (0, "/review a.txt"), "nobody trusted it"
    assert program.run("policy", "trust", ".harness/commands").code == 0
    assert asked("/review 'a b.txt'")[:2] == (0, "Review a b.txt closely.")
    assert asked("/help")[:2] == (0, "/help")
    assert asked("/tmp/x is broken")[:2] == (0, "/tmp/x is broken")
    assert "/think is for plan mode: give --plan" in asked("/think")[2]
    assert asked("/think", "--plan")[:2] == (0, "Think.")
    code, _, err = asked("/other")
    assert (code, "/other is for another model: give --model big" in err) == (2, True)


def test_what_nobody_trusted_is_left_out_and_its_name_told(program: Program) -> None:
    put(program.workspace / ".harness", skills__release__SKILL=SKILL)
    url = program.serve(replies(DONE, DONE))
    before = program.run("run", "go", "--base-url", url, "--model", "m")
    assert ".harness/skills is left out: nobody trusted it" in before.err
    shown = program.run("policy", "trust", ".harness/skills")
    assert "the skill release: how a release is made" in shown.out
    after = program.run("run", "go", "--base-url", url, "--model", "m")
    assert "left out" not in after.err
    put(program.workspace / ".harness", skills__release__SKILL=SKILL + "More.")
    changed = program.run("run", "go", "--base-url", url, "--model", "m")
    assert ".harness/skills is left out: it changed since you trusted it" in changed.err
