"""How a command line becomes facets: what runs, where, with which files and variables; and what stays opaque."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest
from rows import all_rows
from text_rows import text_rows

from harness.actions import Access, Command, Facet, Opaque, PathAccess
from harness.files.workspace import Workspace
from harness.policy.plain_commands import EXAMPLE_DISK
from harness.shell.facets import MAX_ROUNDS, read_call, read_commands
from harness.shell.loose_words import MAX_CLUSTER_LETTERS, likely_paths, loose_commands

Argv = tuple[str, ...]


def shown(facet: Facet) -> str:
    """Return a facet in one line: `{variables} words [act: r/w:path ...]`, `> w:path` or `? reason`."""
    match facet:
        case Command():
            variables = f"{{{','.join(facet.variables)}}} " if facet.variables else ""
            paths = "".join(f" {_path(path)}" for path in facet.paths)
            return f"{variables}{' '.join(facet.argv)} [{facet.act.value}{':' if paths else ''}{paths}]"
        case PathAccess():
            return f"> {_path(facet)}"
        case Opaque():
            return f"? {facet.reason}"
        case _:
            raise AssertionError(facet)


def _path(path: PathAccess) -> str:
    letter = {Access.READ: "r", Access.WRITE: "w", Access.EITHER: "e"}[path.access]
    return f"{letter.upper() if path.tree else letter}:{path.real.removeprefix('/workspace/')}"


def read(line: str) -> list[str]:
    """Return the facets of a line, on a disk on which nothing lies."""
    return [shown(facet) for facet in read_commands(line, EXAMPLE_DISK)]


FACETS = text_rows(Path(__file__).with_name("facets.txt"))


@all_rows(("line", "facets"), [(row.text, row.answers) for row in FACETS], ids=[row.place for row in FACETS])
def test_line_has_the_expected_facets(line: str, facets: list[str]) -> None:
    assert read(line) == facets


def on_disk(workspace: Workspace, line: str) -> list[str]:
    facets = read_commands(line, workspace)
    return [shown(facet).replace(f"{workspace.root}/", "").replace(workspace.root, ".") for facet in facets]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Some files, one that is named like an option, and links."""
    root = tmp_path.resolve() / "repo"
    for folder in ("s/deep", "empty"):
        (root / folder).mkdir(parents=True)
    for name in ("a.txt", "b.txt", ".hidden", "s/c.txt", "s/deep/d.txt", "-n"):
        (root / name).write_text("")
    (root / "l").symlink_to("s/deep")
    return Workspace(str(root), str(tmp_path))


ON_DISK: dict[str, list[str] | None] = {
    "cat *.txt": ["cat a.txt b.txt [looks: r:a.txt r:b.txt]"],
    "cat s/*": ["cat s/c.txt s/deep [looks: r:s/c.txt r:s/deep]"],
    "cat */c.txt": ["cat s/c.txt [looks: r:s/c.txt]"],
    "cat [ab].txt ?.txt": ["cat a.txt b.txt a.txt b.txt [looks: r:a.txt r:b.txt]"],
    "cat [!a].txt": ["cat b.txt [looks: r:b.txt]"],
    "cat .h*": ["cat .hidden [looks: r:.hidden]"],
    "cat nothing*": ["cat nothing* [looks: r:nothing*]"],
    "cat \"*.txt\" '*'": ["cat *.txt * [looks: r:*.txt r:*]"],
    "cat -?": ["cat -n [looks]"],
    "cat .*": ["? .* may be any number of words"],
    "> x; cat *.txt": ["> w:x", "? *.txt may be an option"],
    "cat *.txt > new.txt": ["> w:new.txt", "cat a.txt b.txt [looks: r:a.txt r:b.txt]"],
    "cat *.txt $(> new.txt)": ["> w:new.txt", "? *.txt may be an option"],
    "for f in *.txt $(> new.txt); do cat $f; done": ["> w:new.txt", "? $f may be an option"],
    "cd s && cat *.txt": ["cd s [wraps: r:s]", "cat c.txt [looks: r:s/c.txt]"],
    "rm -r s/*": ["rm -r s/c.txt s/deep [writes: w:s W:s/c.txt W:s/deep]"],
    "for f in *.txt; do cat $f; done": ["cat a.txt [looks: r:a.txt]", "cat b.txt [looks: r:b.txt]"],
    # a folder that is there can be gone to; one that is a link is left as it was written
    "cd s; cat c.txt": ["cd s [wraps: r:s]", "cat c.txt [looks: r:s/c.txt]"],
    "cd l && cat d.txt": ["cd l [wraps: r:s/deep]", "cat d.txt [looks: r:s/deep/d.txt]"],
    "cd l && cd .. && cat x": ["cd l [wraps: r:s/deep]", "cd .. [wraps: r:s r:.]", "cat x [looks: r:s/x r:x]"],
    "pushd s; cat c.txt; popd; cat a.txt": [
        "pushd s [wraps: r:s]",
        "cat c.txt [looks: r:s/c.txt]",
        "popd [wraps: r:.]",
        "cat a.txt [looks: r:a.txt]",
    ],
    "cd s; cat c.txt; cd - >/dev/null; cat a.txt": [
        "cd s [wraps: r:s]",
        "cat c.txt [looks: r:s/c.txt]",
        "cd - [wraps: r:.]",
        "cat a.txt [looks: r:a.txt]",
    ],
    "for d in s empty; do pushd $d; cat x; popd; done; cat y": [
        "pushd s [wraps: r:s]",
        "cat x [looks: r:s/x]",
        "popd [wraps: r:.]",
        "pushd empty [wraps: r:empty]",
        "cat x [looks: r:empty/x]",
        "cat y [looks: r:y]",
    ],
    "while cat a.txt; do pushd s; cat x; popd; done; cat y": [
        "cat a.txt [looks: r:a.txt]",
        "pushd s [wraps: r:s]",
        "cat x [looks: r:s/x]",
        "popd [wraps: r:.]",
        "cat y [looks: r:y]",
    ],
    # lines that are names: only where nothing but `read` reads the pipe
    'find s -type f | while read -r f; do echo $f; cat "$f" | wc -l; done': [
        "find s -type f [looks: r:s]",
        "read -r f [looks]",
        "echo $f [looks]",
        "cat $f [looks: R:s]",
        "wc -l [looks]",
    ],
    **{
        f"find s -type f | {loop}": None
        for loop in (
            'while read -r f; do cat; cat "$f"; done',
            'while read -r f; do head -c 3; cat "$f"; done',
            'while read -r f; do cat "$f" -; done',
            'while read -r f; do grep -f- "$f"; done',
            'while read -r f; do cat "$f" /dev/stdin; done',
            'while read -r f; do cmp "$f"; done',
            "while read -r f; do cat $f; done",
            'while read -r f; do cat "x$f"; done',
            'while read -r f; do rm "$f"; done',
            'while read -r f; do echo $(head -c3); cat "$f"; done',
            'while read -r f; do cat <(head -c3); cat "$f"; done',
            'while read -r f; do cat "$f" >x; done',
            'while read -r f g; do cat "$f"; done',
            'while read -rn3 f; do cat "$f"; done',
            'while IFS=/ read -r f; do cat "$f"; done',
            'while read -r f && true; do cat "$f"; done',
            'until read -r f; do cat "$f"; done',
            'while read -r f; do cat "$f"; done < b.txt',
            'while read -r f; do cat "$f"; done; cat "$f"',
            'sed s/x// | while read -r f; do cat "$f"; done',
        )
    },
    "cd l/.. && cat x": ["cd l/.. [wraps: r:s r:.]", "cat x [looks: r:s/x r:x]"],
    "cat l/../c.txt": ["cat l/../c.txt [looks: r:s/c.txt]"],
}


@all_rows(("line", "expected"), ON_DISK.items())
def test_patterns_and_folders_are_looked_up(workspace: Workspace, line: str, expected: list[str] | None) -> None:
    facets = on_disk(workspace, line)
    if expected is None:
        assert any(facet.startswith("? ") for facet in facets), facets
    else:
        assert facets == expected


@all_rows(
    ("name", "act"),
    [
        ("a.json", "looks"),
        ("src/json.py", "looks"),
        ("conftest.py", "looks"),
        ("json.py", "runs"),
        ("json/tool.py", "looks"),  # behind a folder without __init__ comes the library
        ("json/__init__.py", "runs"),
        ("types.cpython-311-x86_64-linux-gnu.so", "runs"),
        ("_colorize.py", "runs"),
    ],
)
def test_json_tool_only_looks_where_no_file_takes_the_place_of_a_module(tmp_path: Path, name: str, act: str) -> None:
    file = tmp_path.resolve() / name
    file.parent.mkdir(exist_ok=True)
    file.touch()
    (command,) = read_commands("python3 -m json.tool a.json", Workspace(str(tmp_path.resolve()), "/nowhere"))
    assert isinstance(command, Command)
    assert command.act.value == act


def test_below_a_tree_every_file_is_named(workspace: Workspace) -> None:
    (command,) = read_commands("grep -r x .", workspace)
    assert isinstance(command, Command)
    (path,) = command.paths
    assert (path.tree, path.is_whole, sorted(path.below)) == (
        True,
        True,
        ["-n", ".hidden", "a.txt", "b.txt", "l", "s/c.txt", "s/deep/d.txt"],
    )


NARROWED = [
    ("grep -r --include='*.txt' x .", ["a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("grep -r --exclude-dir=s x .", ["-n", ".hidden", "a.txt", "b.txt", "l"]),
    (
        "grep -r --include='*.txt' --exclude='b*' x .",
        ["a.txt", "s/c.txt", "s/deep/d.txt"],
    ),
    ("grep -r --include='[a]*' x .", ["-n", ".hidden", "a.txt", "b.txt", "l", "s/c.txt", "s/deep/d.txt"]),
    ("rg x", ["-n", "a.txt", "b.txt", "l", "s/c.txt", "s/deep/d.txt"]),
    ("rg --hidden x s", ["s/c.txt", "s/deep/d.txt"]),
    ("rg -g '*.txt' x", ["a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
]


HANDED = [
    ("find . -type f", ["-n", ".hidden", "a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("find . -name '*.txt'", ["a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("find . -type f -not -path '*/s/*'", ["-n", ".hidden", "a.txt", "b.txt"]),
    ("find . -type f ! -path './s/*'", ["-n", ".hidden", "a.txt", "b.txt"]),
    ("find . -type f ! -path './deep/*'", ["-n", ".hidden", "a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("find . -type f -not -path '*/.*'", ["-n", "a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("find . -type f -print -not -path '*/.*'", ["-n", ".hidden", "a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("find . ! ! -path '*/.*' -type f", ["-n", ".hidden", "a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("find . -user ! -path '*/.*' -type f", ["-n", ".hidden", "a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("find . -type f -o -not -path '*/.*'", ["-n", ".hidden", "a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("grep -rl x s", ["s/c.txt", "s/deep/d.txt"]),
    ("grep -rl x --exclude-dir=deep s", ["s/c.txt"]),
    ("rg -l x .", ["-n", "a.txt", "b.txt", "s/c.txt", "s/deep/d.txt"]),
    ("rg --files -g '*.txt' s", ["s/c.txt", "s/deep/d.txt"]),
    ("fd -e txt . s", ["s/c.txt", "s/deep/d.txt"]),
    ("ls a.txt b.txt", []),
]


@all_rows(("line", "names"), HANDED)
def test_the_names_that_xargs_is_handed_are_those_of_a_tree(workspace: Workspace, line: str, names: list[str]) -> None:
    Path(workspace.root, "l").unlink(missing_ok=True)  # it leads to a folder, of which nobody knows what is in it
    *_, command = read_commands(f"{line} | sort | head -3 | xargs cat", workspace)
    assert isinstance(command, Command)
    assert sorted({name for path in command.paths for name in path.below}) == names


@all_rows(("line", "names"), NARROWED)
def test_a_tree_is_narrowed_as_the_command_narrows_it(workspace: Workspace, line: str, names: list[str]) -> None:
    (command,) = read_commands(line, workspace)
    assert isinstance(command, Command)
    assert sorted(command.paths[-1].below) == names


def test_an_ignore_file_that_brings_names_back_brings_hidden_files_back(workspace: Workspace) -> None:
    Path(workspace.root, "s", ".ignore").write_text("!.hidden\n")
    (command,) = read_commands("rg x", workspace)
    assert isinstance(command, Command)
    assert ".hidden" in command.paths[-1].below


def test_a_loop_over_many_words_is_read_with_a_value_that_is_not_known() -> None:
    words = " ".join(f"w{number}" for number in range(MAX_ROUNDS + 1))
    assert read(f"for f in {words}; do cat $f; done") == ["? $f may be an option"]


def test_a_part_that_occurs_twice_is_one_facet() -> None:
    assert read("cat a; cat a") == ["cat a [looks: r:a]"]


OPERANDS = [
    ("a", {"a"}),
    ("-n a", {"a"}),
    ("-20 a", {"a", "0"}),
    ("-nf.env x", {"f.env", ".env", "x"}),
    ("--file=.env x", {".env", "x"}),
    ("if=.env of=x=y", {"if=.env", ".env", "of=x=y", "x=y", "y"}),
    ("-d @.env", {"@.env", ".env"}),
    ("HEAD:.env", {"HEAD:.env", ".env"}),
    ("-- -x", {"-x"}),
    ("~/x", {"./~/x", "~/x"}),
    ("https://x/y", {"https://x/y"}),
]


@all_rows(("words", "found"), OPERANDS)
def test_every_possible_path_is_taken_as_one(words: str, found: set[str]) -> None:
    assert set(likely_paths(words.split())) == found


def test_option_with_too_many_letters_is_opaque() -> None:
    assert read("tool -" + "a" * (MAX_CLUSTER_LETTERS + 1)) == ["? there is no model of tool"]


LOOSE = [
    ("git push > f", ("git", "push")),
    ("git >/dev/null push -f", ("git", "push", "-f")),
    ("git 2>&1 push", ("git", "push")),
    (">x git push", ("git", "push")),
    ("git -c 'a=b c' push > f", ("git", "-c", "a=b c", "push")),
    ("git -c a='(x;y)' push > f", ("git", "-c", "a=(x;y)", "push")),
    ('git "push" > f', ("git", "push")),
    ("g\\it pu''sh > f", ("git", "push")),
    ("$'git' push", ("git", "push")),
    ("git\\\n push > f", ("git", "push")),
    ("git${IFS}push", ("git", "push")),
    ("git$IFS'push'", ("git", "push")),
    ("{git,push}", ("git", "push")),
    ("${x:-git} push", ("x", "git", "push")),
    ("echo $(git push)", ("git", "push")),
    ("echo `git push`", ("git", "push")),
    ('echo "$(git push)"', ("git", "push")),
    ("bash -c 'git push'", ("bash", "-c", "git", "push")),
    ("bash -c 'ls; git push'", ("git", "push")),
    ("if true; then git push; fi", ("then", "git", "push")),
    ("(git push)", ("git", "push")),
    ("ls & git push", ("git", "push")),
    ("ls |& git push", ("git", "push")),
    ("cat <<EOF\ngit push\nEOF", ("git", "push")),
    ("cat < 'my file'", ("my file",)),
    ("rm ${x}/y", ("rm", "x/y")),
    ("rm $HOME/y", ("rm", "~/y")),
    ("ls ${PWD}/y > f", ("ls", "./y")),
    ("git push\\", ("git", "push")),
    ("git 'push", ("git", "push")),
]


@all_rows(("line", "found"), [pytest.param(*row, id=ascii(row[0])) for row in LOOSE])
def test_loose_reading_finds_the_command(line: str, found: Argv) -> None:
    assert found in loose_commands(line)


@all_rows(
    ("line", "lost"),
    [
        pytest.param("rm -rf ${x}/*", ("rm", "-rf", "/*"), id="what stands behind a parameter is no path of its own"),
        pytest.param("rm -rf ${x:?}/", ("rm", "-rf", "/"), id="likewise with an operator"),
    ],
)
def test_loose_reading_invents_no_root_folder(line: str, lost: Argv) -> None:
    words = {word for command in loose_commands(line) for word in command}
    assert lost[-1] not in words


def test_a_read_line_holds_no_names_of_files_until_a_garbage_collection(tmp_path: Path) -> None:
    """Many searches of a large tree would else take up to 80 MB."""
    (tmp_path / "a.txt").write_text("a")
    disk = Workspace(str(tmp_path))
    start = disk.resolve(".", Access.READ)
    held = weakref.ref(disk)
    gc.disable()
    try:
        for line in ("grep -r foo .", "ls | xargs cat", "for x in a b; do cat $x; done", "cat $(ls)"):
            assert read_call(line, disk, start)[1].still_holds()
        del disk
        assert held() is None
    finally:
        gc.enable()
