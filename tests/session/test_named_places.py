"""Files that a person names for writing: no link that the workspace brought is followed, others are."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from program import made_program
from repl_scene import WIDE, Start, prompts
from rows import all_rows
from run_scene import flags_of, written

from harness.errors import UsageError
from harness.models.scripted import Reply, replies, say
from harness.session.own_folders import output_path
from policies import CONFIRM

if TYPE_CHECKING:
    from program import Program

RUN = ("run", "go")


@pytest.fixture
def start(program: Program) -> Iterator[Start]:
    with prompts(program) as starting:
        yield starting


def linked(program: Program) -> Path:
    """Bring a file and a folder of the person's into reach of the repository, by links; return where they lie."""
    outside = program.home / "mine"
    (outside / "task").mkdir(parents=True)
    (outside / "kept").write_text("mine\n")
    (program.workspace / "file").symlink_to(outside / "kept")
    (program.workspace / "new").symlink_to(outside / "made")
    (program.workspace / "folder").symlink_to(outside)
    (program.workspace / "half").mkdir()
    (program.workspace / "half" / "attempts").symlink_to(outside)
    (program.workspace / "batch").mkdir()
    (program.workspace / "batch" / "one").symlink_to(outside)
    return outside


def found(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() if path.is_file() else "" for path in folder.rglob("*")}


TASK = ("--task", "{home}/task.json")
BATCH = ("batch", "{home}/task.json")


@all_rows(
    "words",
    [
        pytest.param((*RUN, "--report", "md:file"), id="a report over a file"),
        pytest.param((*RUN, "--report", "md:new"), id="a report over a link to nothing"),
        pytest.param((*RUN, "--report", "html:folder/r.html"), id="a report below a folder"),
        pytest.param((*RUN, "--report", "md:half/../folder/r.md"), id="a report by a way around"),
        pytest.param((*RUN, "--record", "new"), id="a cassette"),
        pytest.param((*RUN, "--record", "folder/c"), id="a cassette below a folder"),
        pytest.param((*RUN, "--log", "new"), id="a log"),
        pytest.param((*RUN, "--log", "folder/l.jsonl"), id="a log below a folder"),
        pytest.param(("run", *TASK, "--out", "folder"), id="the folder of a task"),
        pytest.param(("run", *TASK, "--out", "folder/task"), id="the folder of a task below a folder"),
        pytest.param(("run", *TASK, "--out", "half"), id="the attempts of a task"),
        pytest.param(("run", *TASK, "--out", "{home}/out", "--report", "md:file"), id="the report of a task"),
        pytest.param((*BATCH, "--out", "folder"), id="the folder of a batch"),
        pytest.param((*BATCH, "--out", "batch"), id="the folder of a task of a batch"),
        pytest.param((*BATCH, "--out", "{home}/out", "--report", "md:file"), id="the report of a batch"),
        pytest.param(("audit", "report", "-o", "file"), id="the page of logs"),
        pytest.param(("audit", "report", "-o", "folder/r.html"), id="the page of logs below a folder"),
        pytest.param(("audit", "export", "--to", "csv", "-o", "file"), id="an export"),
    ],
    anew={"program": made_program},
)
def test_links_of_the_workspace_are_not_followed(program: Program, words: tuple[str, ...]) -> None:
    outside = linked(program)
    written(program.home / "task.json", json.dumps({"id": "one", "prompt": "go"}) + "\n")
    url = program.serve(replies(say("done"), say("done")))
    if words[0] == "audit":
        assert program.run("run", "go", *flags_of(program, url)).code == 0
    asked, before = len(program.players[0].requests), found(outside)
    further = () if words[0] == "audit" else flags_of(program, url)[: -2 if words[0] == "batch" else None]
    done = program.run(*(word.format(home=program.home) for word in words), *further)
    assert (done.code, "is a link in the workspace" in done.err) == (2, True), done
    assert (found(outside), len(program.players[0].requests)) == (before, asked)


def test_a_conversation_is_exported_over_no_link_of_the_workspace(program: Program, start: Start) -> None:
    outside = linked(program)
    before = found(outside)
    prompt = start(replies(Reply(text="Done.")), columns=WIDE)
    prompt.ask("go", "Done.")
    prompt.say("/export new", "is a link in")
    prompt.say("/export folder/notes.md", "is a link in")
    assert prompt.leave() == 0
    assert found(outside) == before


def test_links_outside_the_workspace_are_followed(program: Program) -> None:
    """As `/tmp` is one on some systems, and the way to the workspace may hold some."""
    real = program.home / "real"
    real.mkdir()
    (program.home / "link").symlink_to(real)
    (program.home / "linked").symlink_to(program.workspace)
    url = program.serve(replies(say("done")))
    words: tuple[str, ...] = (
        "--report",
        f"md:{program.home}/link/r.md",
        "--report",
        f"junit:{program.home}/linked/r.xml",
    )
    words += ("--record", f"{program.home}/link/c", "--log", f"{program.home}/link/l.jsonl")
    done = program.run("run", "go", *flags_of(program, url, CONFIRM), *words)
    assert (done.code, sorted(os.listdir(real))) == (0, ["c", "l.jsonl", "r.md"]), done
    assert (program.workspace / "r.xml").is_file()


@all_rows(
    ("given", "place"),
    [
        ("a", "{ws}/a"),
        ("./b/../a", "{ws}/a"),
        ("none/../a", "{ws}/a"),
        ("{top}/out/x", "{top}/other/x"),
        ("{top}/way/a", "{ws}/a"),
        ("{top}/way/in", None),
        ("in/x", None),
        ("in", None),
        ("../out/../other/x", "{top}/other/x"),
        ("{top}/to_in/x", None),
        ("{top}/round", None),
    ],
)
def test_output_path_is_resolved_or_refused(given: str, place: str | None, tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (tmp_path / "other").mkdir()
    for link, target in {"out": "other", "way": "ws", "to_in": "ws/in", "round": "round"}.items():
        (tmp_path / link).symlink_to(target)
    (workspace / "in").symlink_to(workspace / "b")
    (workspace / "b").mkdir()
    names = {"ws": str(workspace), "top": str(tmp_path)}
    path = os.path.join(workspace, given.format(**names))
    if place is None:
        with pytest.raises(UsageError):
            output_path(path, [str(workspace)])
    else:
        assert output_path(path, [str(workspace)]) == place.format(**names)
