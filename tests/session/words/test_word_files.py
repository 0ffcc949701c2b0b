"""The files of commands and skills: what counts, what is left out, and what is told of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rows import all_rows
from word_scene import SKILL, put

from harness.app.commands.own_commands import slash_of
from harness.session.extensions.project_trust import project_file
from harness.session.state import State
from harness.session.words.own_words import words_here
from harness.session.words.word_files import MOST_BYTES, OwnWords, read_word_folder, words_in


def anything(path: str) -> None:
    """Let every place be read."""


def read(folder: Path) -> OwnWords:
    return words_in(read_word_folder(str(folder), anything), str(folder))


@all_rows(
    ("text", "said", "note"),
    [
        pytest.param("# Look\n\nGo.", ("Look", "", "", False), "", id="nothing but words"),
        pytest.param(
            '---\ndescription: "d" # c\nargument-hint: [file] [more]\nmodel: m\nplan: True\n---\nx',
            ("d", "[file] [more]", "m", True),
            "",
            id="all of it",
        ),
        pytest.param(
            "---\nallowed-tools: Bash(git:*)\ndisable-model-invocation: true\nargument-hint:\n- a\n- b\nhooks:\n  x: y\n---\nx",
            ("x", "a, b", "", False),
            "",
            id="another agent's",
        ),
        pytest.param(
            "---\nmodle: m\n---\nx", ("x", "", "", False), "modle means nothing here; did you mean model?", id="slip"
        ),
        pytest.param("---\nmodel: m\n???\n---\nx", ("x", "", "m", False), "line 3: it must be", id="an odd line"),
        pytest.param("---\nDo it.", ("Do it.", "", "", False), "no second --- ends it", id="no end"),
    ],
)
def test_command_front_matter_is_parsed(tmp_path: Path, text: str, said: tuple[object, ...], note: str) -> None:
    words = read(put(tmp_path / "commands", a=text))
    one = words.commands["a"]
    assert (one.description, one.arguments, one.model, one.plans) == said
    assert [note in told for told in words.notes] == ([True] if note else [])


@all_rows(
    ("name", "text", "problem"),
    [
        pytest.param("commands/a b.md", "x", "letters, digits", id="a blank in a name"),
        pytest.param("commands/a.md", "---\nplan: maybe\n---\nx", "true or false", id="plan"),
        pytest.param("commands/a.md", "---\nplan: true\n---\n\n", "the file is empty", id="nothing"),
        pytest.param("skills/a/SKILL.md", "x", "missing description", id="a skill that says nothing"),
        pytest.param("skills/a/SKILL.md", "---\nname: a\n", "no second ---", id="a skill without an end"),
        pytest.param("skills/a\nb/SKILL.md", SKILL, "one line", id="a folder of two lines"),
        pytest.param(
            "skills/a/SKILL.md",
            "---\ndescription: x\ndisable-model-invocation: true\n---\n",
            "keeps models from",
            id="not for models",
        ),
    ],
)
def test_a_file_that_is_not_understood_is_left_out(tmp_path: Path, name: str, text: str, problem: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    words = read(tmp_path / name.partition("/")[0])
    assert (words.commands, words.skills, len(words.notes)) == ({}, {}, 1)
    assert problem in words.notes[0]
    assert set(words.left_out.values()) == set(words.notes)


def test_a_skill_as_people_publish_it(tmp_path: Path) -> None:
    """The keys of agentskills.io/specification, and what its page for clients says of names and long texts."""
    keys = "license: MIT\ncompatibility: needs git\nallowed-tools: Bash(git:*) Read\nmetadata:\n  author: x\n  version: '1'\n"
    put(
        tmp_path / "skills",
        release__SKILL=f"---\nname: release\ndescription: >-\n  how it\n  is made\n{keys}---\n{'x' * 100_000}",
        other__SKILL="---\nname: Another Name\ndescription: Use when: asked\n---\n",
        long__SKILL=f"---\nname: long\ndescription: {'x' * 2_000}\n---\n",
    )
    (tmp_path / "skills" / "README.md").write_text("no skill")
    words = read(tmp_path / "skills")
    told = {name: skill.description for name, skill in words.skills.items()}
    assert told == {"release": "how it is made", "other": "Use when: asked", "long": f"{'x' * 1_024} ..."}
    (note,) = words.notes
    assert note.endswith("its name must be that of its folder, which counts: other")


@all_rows("what", ["a link that leads nowhere", "a folder", "too large", "no UTF-8", "no text"])
def test_single_odd_file_is_left_out(tmp_path: Path, what: str) -> None:
    odd = put(tmp_path / "commands", good="Good.") / "x.md"
    match what:
        case "a link that leads nowhere":
            odd.symlink_to(tmp_path / "none.md")
        case "a folder":
            odd.mkdir()
        case "too large":
            odd.write_text("x" * (MOST_BYTES + 1))
        case "no UTF-8":
            odd.write_bytes(b"\xff")
        case _:
            odd.write_bytes(b"a\0b")
    words = read(tmp_path / "commands")
    assert (list(words.commands), len(words.notes), list(words.left_out)) == (["good"], 1, ["x"])
    assert f"{odd} is left out: " in words.notes[0]


def test_commands_in_folders_have_a_long_name_and_where_it_is_free_a_short_one(tmp_path: Path) -> None:
    put(tmp_path / "commands", look="x", ui__look="x", ui__Add="x", ui__help="x", db__add="x", db__deep__one="x")
    (tmp_path / "commands" / "loop").symlink_to(tmp_path / "commands")
    commands, notes = slash_of(read(tmp_path / "commands").commands)
    assert {one.name: one.aliases for one in commands} == {
        "/look": (),
        "/ui:look": (),
        "/ui:add": (),
        "/ui:help": (),
        "/db:add": ("/add",),
        "/db:deep:one": ("/one",),
    }
    assert notes == ()


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(state=str(tmp_path / "state"), config=str(tmp_path / "config"))


def here(state: State, workspace: Path) -> OwnWords:
    workspace.mkdir(parents=True, exist_ok=True)
    return words_here(state, str(workspace), str(workspace.parent / "home"))


def trust(state: State, folder: Path, name: str) -> None:
    file = project_file(str(folder), name)
    assert file is not None
    state.trust_content(file.trust, file.path)


def test_the_users_own_files_may_be_links_but_not_into_the_workspace(tmp_path: Path, state: State) -> None:
    dotfiles, own, work = tmp_path / "dotfiles", Path(state.config), tmp_path / "work"
    put(dotfiles, one="One.", team__two="Two.", skills__release__SKILL=SKILL)
    put(own, commands__plain="Plain.")
    (own / "commands" / "one.md").symlink_to(dotfiles / "one.md")
    (own / "commands" / "team").symlink_to(dotfiles / "team")
    (own / "skills").symlink_to(dotfiles / "skills")
    put(dotfiles, there__SKILL=SKILL, skills__filed__note="x")
    (dotfiles / "skills" / "linked").symlink_to(dotfiles / "there")
    (dotfiles / "skills" / "filed" / "SKILL.md").symlink_to(dotfiles / "there" / "SKILL.md")
    (own / "commands" / "bad.md").symlink_to(put(work, bad="Bad.") / "bad.md")
    words = here(state, work)
    assert sorted(words.commands) == ["one", "plain", "team:two"]
    there = f"{dotfiles}/there"
    assert {name: one.path for name, one in words.skills.items()} == {
        "filed": f"{there}/SKILL.md", "linked": f"{there}/SKILL.md", "release": f"{dotfiles}/skills/release/SKILL.md",
    }  # fmt: skip
    assert set(words.skill_places) == {
        f"{dotfiles}/skills/filed", f"{there}/SKILL.md", there, f"{dotfiles}/skills/release",
    }  # fmt: skip
    (note,) = [note for note in words.notes if "left out" in note]
    assert "bad.md is left out: the file is inside the workspace" in note
    assert here(state, dotfiles).skill_places == ()


def test_skill_opens_its_own_folder_only(tmp_path: Path, state: State) -> None:
    skills = put(Path(state.config) / "skills", release__SKILL=SKILL)
    (skills / "state").symlink_to(state.state)
    (skills / "config").symlink_to(state.config)
    (skills / "home").symlink_to(tmp_path / "home")
    (skills / "file").mkdir()
    (skills / "file" / "SKILL.md").symlink_to(tmp_path / "notes.md")
    for folder in (state.state, state.config, str(tmp_path / "home")):
        os.makedirs(folder, exist_ok=True)
        Path(folder, "SKILL.md").write_text(SKILL)
    (tmp_path / "notes.md").write_text(SKILL)
    words = here(state, tmp_path / "work")
    assert sorted(words.skills) == ["file", "release"]
    assert sorted(words.skill_places) == [f"{skills}/file", f"{skills}/release", f"{tmp_path}/notes.md"]
    assert sum("is not opened to the model" in note for note in words.notes) == 3


def test_links_of_a_repository_stay_in_it_and_a_folder_counts_once(tmp_path: Path, state: State) -> None:
    work = tmp_path / "work"
    (work / ".git").mkdir(parents=True)
    (tmp_path / "secret.md").write_text("secret")
    put(work, **{".agents/skills/release/SKILL": SKILL, ".claude/commands/a": "A.", "docs/b": "B."})
    (work / ".claude" / "skills").symlink_to("../.agents/skills")
    (work / ".claude" / "commands" / "b.md").symlink_to("../../docs/b.md")
    (work / ".claude" / "commands" / "c.md").symlink_to(tmp_path / "secret.md")
    (work / ".harness").symlink_to(tmp_path)
    put(tmp_path, commands__d="D.")
    trust(state, work, ".claude/commands")
    trust(state, work, ".claude/skills")
    words = here(state, work)
    assert (sorted(words.commands), sorted(words.skills), words.skill_places) == (["a", "b"], ["release"], ())
    assert ["leads out of the repository" in note for note in words.notes] == [True, True]


def test_session_in_a_subfolder_includes_words_of_the_repository(tmp_path: Path, state: State) -> None:
    top = tmp_path / "top"
    (top / ".git").mkdir(parents=True)
    put(tmp_path, **{".harness/commands/stranger": "No."})
    put(
        top,
        **{".harness/commands/a": "A of the top.", ".harness/commands/b": "B.", ".agents/skills/release/SKILL": SKILL},
    )
    put(top / "in", **{".claude/commands/a": "A."})
    words = here(state, top / "in")
    assert (words.commands, words.skills) == ({}, {})
    assert words.notes[1].startswith(
        "../.harness/commands is left out: you have not trusted it; `harness policy trust ../.h"
    )
    assert words.left_out["b"] == words.notes[1]
    for folder, name in ((top, ".harness/commands"), (top, ".agents/skills"), (top / "in", ".claude/commands")):
        trust(state, folder, name)
    words = here(state, top / "in")
    assert {name: one.body for name, one in words.commands.items()} == {"a": "A.", "b": "B."}
    assert words.skill_places == (f"{top}/.agents/skills/release",)
