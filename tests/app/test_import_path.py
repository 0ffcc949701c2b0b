"""The program imports nothing from PYTHONPATH or the current folder, where a model or a repository may have written."""

from __future__ import annotations

import os
import site
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from places import ROOT
from rows import all_rows
from run_scene import flags_of, written

from harness.__main__ import own_entries
from harness.models.scripted import Reply, call, replies, say
from policies import AUTO

if TYPE_CHECKING:
    from program import Program

LIBRARY = os.path.dirname(os.__file__)
SCRIPT = "import sys\nfrom harness.__main__ import program\nsys.exit(program())\n"
STARTS = {"script": ("{script}",), "module": ("-m", "harness"), "safe path": ("-P", "-m", "harness")}
PLANTED = ("difflib", "html", "json", "openai", "rich", "termios")


def plant(folder: Path, ran: Path) -> None:
    """Write modules that note their name and where they lie when they are imported."""
    for name in PLANTED:
        written(folder / f"{name}.py", f"open({str(ran)!r}, 'a').write({name!r} + ' in ' + __file__)\n")


@all_rows("start", STARTS, fresh=True)
def test_workspace_modules_are_never_imported(program: Program, tmp_path: Path, start: tuple[str, ...]) -> None:
    """Neither those that were there before the start, nor those that the model wrote."""
    ran, script = tmp_path / "ran", tmp_path / "bin" / "harness"
    plant(program.workspace, ran)
    plant(program.workspace / "early", ran)
    plant(script.parent, ran)
    written(script, SCRIPT)
    written(program.workspace / "a.txt", "one\n")
    calls = (
        call("write_file", path="src/difflib.py", content=f"open({str(ran)!r}, 'a').write('late')\n"),
        call("edit_file", path="a.txt", edits=[{"old_string": "one", "new_string": "two"}]),
        call("edit_file", path="a.txt", edits=[{"old_string": "three", "new_string": "four"}]),
    )
    url = program.serve(replies(Reply(calls=calls), say("Done.")))
    words = [word.format(script=script) for word in start]
    places = ("early", "src", "", ROOT)
    done = subprocess.run(
        [sys.executable, *words, "run", "go", *flags_of(program, url, AUTO)],
        cwd=program.workspace, capture_output=True, text=True, check=False, timeout=300,
        env={**program.environment, "PYTHONPATH": os.pathsep.join(places)},
    )  # fmt: skip
    assert (done.returncode, ran.exists()) == (0, False), (ran.exists() and ran.read_text(), done.stderr)
    assert (program.workspace / "a.txt").read_text() == "two\n"
    assert (program.workspace / "src" / "difflib.py").exists()


def test_a_checkout_runs_as_a_module_from_its_folder(program: Program) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness", "policy", "check", "ci"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300, env=program.environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


ENTRIES = {
    # name: (sys.path, PYTHONPATH, what stays), with {here} for the current folder and {lib} for that of the library
    "the current folder": ("{here} {lib} /site", "", "{lib} /site"),
    "the current folder, before it is named": (" {lib} /site", "", "{lib} /site"),
    "nothing of the surroundings": ("{lib} /site", "", "{lib} /site"),
    "relative": ("{here} {here}/src {lib} /site", "src", "{lib} /site"),
    "the current folder twice": ("{here} {here} {lib}", ".", "{lib}"),
    "an empty part": ("{here} {here} /a {lib}", "/a:", "{lib}"),
    "editable": ("{lib} /site /checkout", "", "{lib} /site /checkout"),
    "the library itself": ("{lib} /site", "{lib}:/other", "{lib} /site"),
    "Python's own packages": ("{site} {lib}", "{site}", "{site} {lib}"),
    "installed packages": ("/a/site-packages /b {lib}", "/a/site-packages:/b", "{lib} /a/site-packages"),
    "a checkout of ours": ("{root} {lib} /site", "{root}", "{lib} /site"),
}


@all_rows(("entries", "variable", "stays"), list(ENTRIES.values()), ids=list(ENTRIES))
def test_entries_of_the_surroundings_are_dropped(entries: str, variable: str, stays: str) -> None:
    places = {"here": os.getcwd(), "lib": LIBRARY, "site": site.getsitepackages()[0], "root": ROOT}
    given, expected = ([entry.format(**places) for entry in text.split(" ")] for text in (entries, stays))
    assert own_entries(given, variable.format(**places)) == expected


@pytest.mark.parametrize("is_installed", [True, False])
def test_an_installation_in_pythonpath_is_the_last_entry(
    program: Program, tmp_path: Path, *, is_installed: bool
) -> None:
    """What `pip install --target` made, with its dependencies beside it; a plain copy brings nothing else along."""
    folder = tmp_path / "target"
    folder.mkdir()
    (folder / "harness").symlink_to(Path(ROOT) / "harness")
    if is_installed:
        (folder / "permission_harness-1.dist-info").mkdir()
    show = (
        "import sys; from harness import __main__ as m; print(m.own_entries(sys.path, sys.argv[1])[-1] == sys.argv[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", show, str(folder)], cwd=program.workspace, capture_output=True, text=True, check=False,
        env={**program.environment, "PYTHONPATH": str(folder)},
    )  # fmt: skip
    assert done.stdout.strip() == str(is_installed), done.stderr
