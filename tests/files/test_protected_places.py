"""Protected places on real files: what a command changed of them is told, and comes back; nothing is followed on the way."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

from places import shell_word
from rows import all_rows

from harness.files.before_images import BeforeImages
from harness.files.place_walk import MOST_FOLDERS, MOST_PLACES
from harness.files.places_put_back import put_back
from harness.files.protected_places import ProtectedPlaces
from harness.paths import is_within
from harness.place_changes import PlacesFound
from harness.policy.built_in import PROTECTED_NAMES

TABLE = Path(__file__).with_suffix("").with_name("protected_places.txt")
FILES = {
    "src/app.py": b"print(1)\n",
    "Makefile": b"all:\n",
    "guide.md": b"Be kind.\n",
    ".npmrc": b"a=1\n",
    ".git/HEAD": b"ref: refs/heads/main\n",
    ".git/index": b"DIRC",
    ".git/config": b"[core]\n\tbare = false\n",
    ".git/hooks/sample": b"#!/bin/sh\n",
    ".git/modules/lib/vendored/HEAD": b"ref: refs/heads/main\n",
    ".git/modules/lib/vendored/config": b"[core]\n",
    ".github/workflows/ci.yml": b"on: push\n",
    ".vscode/tasks.json": b"{}\n",
    ".vscode/settings.json": b"{}\n",
    ".VSCode/Settings.json": b"{}\n",
    "sub/deep/.envrc": b"export A=1\n",
    "large/.tool-versions": b"x" * 1_200_000,
    "node_modules/pkg/.npmrc": b"a=1\n",
    ".venv/bin/python": b"#!\n",
    ".venv/lib/python3.11/site-packages/a.pth": b"",
    ".venv/lib/python3.11/site-packages/pkg/mod.py": b"",
}


def workspace(folder: Path) -> Path:
    root = Path(os.path.realpath(folder)) / "w"
    for name, content in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    (root / "AGENTS.md").symlink_to("guide.md")
    return root


def look_back(root: Path, name: str = "") -> dict[str, object]:
    """Return what lies in a folder: of each name its kind, its permissions, and what it holds."""
    found: dict[str, object] = {}
    for folder, folders, files in os.walk(root / name):
        for one in (*folders, *files):
            path = os.path.join(folder, one)
            status = os.lstat(path)
            held: object = os.readlink(path) if stat.S_ISLNK(status.st_mode) else None
            if stat.S_ISREG(status.st_mode):
                held = Path(path).read_bytes()
            found[os.path.relpath(path, root)] = (status.st_mode, held)
    return found


def told(found: PlacesFound) -> str:
    return "; ".join(f"{one.description} {one.path}" for one in found.changes)


def run(command: str, root: Path) -> None:
    subprocess.run(["bash", "-c", command], cwd=root, check=True, env={"PATH": os.environ["PATH"]})


def rows() -> list[tuple[str, str]]:
    lines = [line for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    return [(command, expected.strip()) for command, _, expected in (line.partition(" =>") for line in lines)]


@all_rows("command, expected", rows(), ids=[command for command, _ in rows()])
def test_changes_by_a_command_are_reported_and_restored(tmp_path: Path, command: str, expected: str) -> None:
    root, images = workspace(tmp_path), BeforeImages(str(tmp_path / "images"))
    before = look_back(root)
    noted = ProtectedPlaces(str(root), images).note()
    run(command, root)
    found = noted.compared()
    parts = expected.split("; ") if expected else []
    left = {name: why for name, _, why in (one[6:].partition(" ") for one in parts if one.startswith("left: "))}
    beside = [one.removeprefix("beside: ") for one in parts if one.startswith("beside: ")]
    changes = [one for one in parts if not one.startswith(("left: ", "beside: "))]
    assert told(found) == "; ".join(changes)
    assert found.gaps == ()

    after = look_back(root)
    returns = put_back(str(root), found.changes, images)
    assert {one.change.path: one.problem for one in returns if one.problem} == left
    now = look_back(root)
    for name in {*before, *now}:
        protected = not PROTECTED_NAMES.isdisjoint(name.lower().split("/")) or name == "guide.md"
        in_the_way = any(name == one or name.startswith(f"{one}/") for one in beside)
        is_told = any(is_within(name, one.path) or is_within(one.path, name) for one in found.changes)
        wanted = before if is_told and name not in left else after
        assert now.get(name) == wanted.get(name) or (in_the_way and not protected), name


def test_places_changed_again_are_not_restored(tmp_path: Path) -> None:
    """Nor is what a link leads to now, nor anything behind a link on the way."""
    root, images = workspace(tmp_path), BeforeImages(str(tmp_path / "images"))
    noted = ProtectedPlaces(str(root), images).note()
    run("echo x >> .npmrc; echo x >> .git/config; rm .vscode/tasks.json; echo x > .git/hooks/post-commit", root)
    found = noted.compared()
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("config", "victim"):
        (outside / name).write_text("mine")
    (outside / "hooks").mkdir()
    link = f"ln -s {shell_word(outside)}"
    run(f"echo y >> .npmrc; mv .git g; {link} .git; rm -r .vscode; {link} .vscode", root)
    problems = {one.change.path: one.problem for one in put_back(str(root), found.changes, images)}
    assert problems == {
        ".git/config": "the file was changed since; not touched",
        ".git/hooks/post-commit": "",  # it is gone
        ".npmrc": "the file was changed since; not touched",
        ".vscode/tasks.json": "Too many levels of symbolic links",
    }
    assert sorted(os.listdir(outside)) == ["config", "hooks", "victim"]
    assert (outside / "config").read_text() == "mine"


def test_nothing_is_restored_if_the_workspace_itself_is_gone(tmp_path: Path) -> None:
    root, images = workspace(tmp_path), BeforeImages(str(tmp_path / "images"))
    noted = ProtectedPlaces(str(root), images).note()
    root.rename(tmp_path / "elsewhere")
    found = noted.compared()
    returns = put_back(str(root), found.changes, images)
    assert found.changes
    assert {one.problem for one in returns} == {"the workspace is gone"}
    assert not root.exists()


def test_contents_replaced_by_put_back_are_kept(tmp_path: Path) -> None:
    root, images = workspace(tmp_path), BeforeImages(str(tmp_path / "images"))
    noted = ProtectedPlaces(str(root), images).note()
    run("printf new > .envrc; printf other > .npmrc", root)
    found = noted.compared()
    assert not any(one.problem for one in put_back(str(root), found.changes, images))
    kept = [images.get(one.after.sha256 or "") for one in found.changes if one.after]
    assert kept == [b"other", b"new"]


def test_missing_store_prevents_restoring_but_not_reporting(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    noted = ProtectedPlaces(str(root), None).note()
    run("echo x > .npmrc; echo x > .envrc", root)
    found = noted.compared()
    assert [(one.path, one.is_kept) for one in found.changes] == [(".npmrc", False), (".envrc", True)]
    returns = put_back(str(root), found.changes, BeforeImages(str(tmp_path / "images")))
    assert [one.problem for one in returns] == ["no copy of the earlier content exists", ""]


def test_differences_are_shown_in_lines_and_binary_ones_in_sizes(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    noted = ProtectedPlaces(str(root), None).note()
    run(r"printf 'a=2\n\033[2J' > .npmrc; printf '\0\1' > .git/config; ln -s x .envrc", root)
    config, npmrc, link = noted.compared().changes
    assert npmrc.diff == ("@@ -1 +1,2 @@", "-a=1", "+a=2", r"+\x1b[2J", "\\ No newline at end of file")
    assert (config.diff, config.sizes) == ((), "21 bytes before, 2 bytes now")
    assert link.diff[1] == "+link to x"


def test_unwritable_files_in_the_workspace_are_protected_places(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    noted = ProtectedPlaces(str(root), None).note([str(root / "Makefile"), "/etc/hosts", str(tmp_path / "w2" / "x")])
    run("echo x >> Makefile", root)
    assert told(noted.compared()) == "changed Makefile"


def test_second_look_reads_changed_files_only(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    old = 1_600_000_000
    for path in (*root.rglob("*"), root):
        os.utime(path, (old, old), follow_symlinks=False)
    places = ProtectedPlaces(str(root), None)
    for name in (".npmrc", "src/.envrc", "sub/new/.npmrc", ".vscode/more/x"):
        noted = places.note()
        run(
            f"mkdir -p $(dirname {name}); t=$(mktemp -p ..); touch -r . $t; echo x > {name}; touch -r $t {name}",
            root,
        )
        assert told(noted.compared()).split()[-1] == name
        assert noted.compared().changes  # it stays told until it is noted again
    assert not places.note().compared().changes


def test_search_past_its_limits_reports_the_gap_and_no_false_new_files(tmp_path: Path) -> None:
    root, last = tmp_path / "w", f"d{MOST_FOLDERS + 49:05}"
    for number in range(MOST_FOLDERS + 50):
        (root / f"d{number:05}").mkdir(parents=True)
    (root / ".npmrc").write_text("a")
    (root / last / ".envrc").write_text("mine")
    noted = ProtectedPlaces(str(root), None).note()
    assert (
        noted.words
        == "1 protected place compared when it ends (not looked at: 51 folders and what lies below them: too many)"
    )
    run(
        f"echo x > .npmrc; mkdir -p a/b/.vscode; echo x > a/b/.vscode/x; echo x > d00000/.npmrc; echo x > {last}/.npmrc",
        root,
    )
    found = noted.compared()
    assert told(found) == "changed .npmrc; created a/b/.vscode/x; created d00000/.npmrc"
    assert found.gaps == ("51 folders and what lies below them: too many",)


def test_places_beyond_the_limit_are_not_taken_for_new(tmp_path: Path) -> None:
    root = tmp_path / "w"
    (root / ".vscode").mkdir(parents=True)
    for number in range(MOST_PLACES + 5):
        (root / ".vscode" / f"{number:05}").write_text("mine")
    noted = ProtectedPlaces(str(root), None).note()
    run("echo x > .vscode/00007; echo x > .vscode/new", root)
    found = noted.compared()
    assert told(found) == "changed .vscode/00007; created .vscode/new"
    assert found.gaps == ("6 files more than can be compared",)


@all_rows(
    "command, expected",
    {
        "many new folders": (
            "mkdir a{1..9000}; echo x > sub/deep/new.txt; echo x > sub/deep/.npmrc",
            "created sub/deep/.npmrc",
        ),
        "a folder that is closed": ("echo x > sub/deep/.npmrc; chmod 0 sub/deep", ""),
    },
)
def test_new_files_never_hide_changes_to_the_old(tmp_path: Path, command: str, expected: str) -> None:
    root = workspace(tmp_path)
    noted = ProtectedPlaces(str(root), None).note()
    run(command, root)
    found = noted.compared()
    assert expected in told(found)
    assert bool(found.changes)


def test_walls_protect_existing_places_except_links_and_stores(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    places = ProtectedPlaces(str(root), None)
    places.note()
    below = {os.path.relpath(path, root) for path in places.holdable_paths}
    assert {".git/config", ".git/hooks", ".github", ".vscode", ".npmrc", "guide.md", "sub/deep/.envrc"} <= below
    assert below.isdisjoint((".git", ".venv", "AGENTS.md", ".github/workflows", "src/app.py", ".git/index"))
