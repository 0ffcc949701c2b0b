"""The names of files while one types: what is listed, what fits, how a name is written; and that nothing else is run."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from input_scene import PlayedLine
from process_scene import sleep_token, wait_until
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from rows import all_rows
from screen_scene import BACKSPACE, CTRL_C, ENTER, TAB

from harness.terminal.completion import LineCompleter, Offered, mention, shell_word
from harness.terminal.file_names import (
    MOST_MATCHES,
    TRACKED,
    UNTRACKED,
    FileIndex,
    NameIndex,
    git_names,
    walked_names,
)
from harness.text.visible import visible_line

token = pytest.fixture(sleep_token)
ENDLESS = 1000.0


class PatientIndex(FileIndex):
    """Waits for the first names however busy the machine is."""

    first_seconds = ENDLESS


ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}


def _git(folder: Path, *words: str) -> None:
    settings = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(
        ["git", *settings, *words],
        cwd=folder,
        check=True,
        capture_output=True,
        env={**ENVIRONMENT, "HOME": str(folder)},
    )


def _files(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    _files(root, "src/parse.py", "README.md", "build/out.o", "new.txt", "a.log", "deep/keep.log", "deep/in/x.log")
    (root / ".gitignore").write_text("build/\n*.log\n!keep.log\n")
    _git(root, "init", "-q")
    _git(root, "add", "src", "README.md", ".gitignore")
    _git(root, "commit", "-qm", "x")
    return root


# What is listed


def _listed(root: Path) -> set[str]:
    names = git_names(str(root), TRACKED, ENVIRONMENT)
    others = git_names(str(root), UNTRACKED, ENVIRONMENT)
    assert names is not None
    assert others is not None
    return {*names, *others}


def test_git_lists_tracked_and_unignored_files(repository: Path) -> None:
    assert git_names(str(repository), TRACKED, ENVIRONMENT) == [".gitignore", "README.md", "src/parse.py"]
    assert _listed(repository) == {".gitignore", "README.md", "src/parse.py", "new.txt", "deep/keep.log"}
    assert git_names(str(repository / "src"), TRACKED, ENVIRONMENT) == ["parse.py"]


def test_untracked_build_files_are_not_offered(repository: Path) -> None:
    _files(repository, "src/__pycache__/parse.pyc", "node_modules/x/parse.js", "src/parse_new.py")
    assert PatientIndex(str(repository), ENVIRONMENT).matches("parse") == ("src/parse.py", "src/parse_new.py")
    _git(repository, "add", "-f", "node_modules/x/parse.js")
    assert "node_modules/x/parse.js" in PatientIndex(str(repository), ENVIRONMENT).matches("parse")


def test_all_files_outside_tool_folders_are_listed_without_git(repository: Path) -> None:
    shutil.rmtree(repository / ".git")
    _files(repository, "node_modules/x/y.js", "deep/build/z")
    (repository / "link").symlink_to("/")
    assert git_names(str(repository), TRACKED, ENVIRONMENT) is None
    assert set(walked_names(str(repository))) == {
        ".gitignore", "README.md", "src/parse.py", "build/out.o", "new.txt", "a.log", "deep/keep.log", "deep/in/x.log",
        "deep/build/z", "link",
    }  # fmt: skip


CONFIGURED = """
[core]
    fsmonitor = {touch}
    fsmonitorHookVersion = 2
    hooksPath = {hooks}
    pager = {touch}
    sshCommand = {touch}
    attributesFile = {hooks}/attributes
    untrackedCache = true
    splitIndex = true
[pager]
    ls-files = {touch}
[alias]
    ls-files = !{touch}
[filter "x"]
    clean = {touch}
    smudge = {touch}
    process = {touch}
    required = true
[remote "origin"]
    url = ext::{touch}
    promisor = true
    partialclonefilter = blob:none
[extensions]
    partialClone = origin
[trace2]
    normalTarget = {marker}
"""


def test_programs_of_a_repository_do_not_run(repository: Path, tmp_path: Path) -> None:
    marker, hooks = tmp_path / "marker", tmp_path / "hooks"
    hooks.mkdir()
    touch = f"touch {shlex.quote(str(marker))}"
    for name in ("post-index-change", "fsmonitor-watchman", "pre-commit", "query-watchman"):
        (hooks / name).write_text(f"#!/bin/sh\n{touch}\n")
        (hooks / name).chmod(0o755)
    (repository / ".gitattributes").write_text("* filter=x\n")
    (repository / "git").write_text(f"#!/bin/sh\n{touch}\n")
    (repository / "git").chmod(0o755)
    config = repository / ".git" / "config"
    config.write_text(config.read_text() + CONFIGURED.format(touch=touch, marker=marker, hooks=hooks))
    path = f"{repository}:.:{os.environ['PATH']}"
    hostile = {
        **ENVIRONMENT,
        "PATH": path,
        "GIT_DIR": "/nowhere",
        "GIT_TRACE": str(marker),
        "GIT_EXTERNAL_DIFF": "touch",
    }
    names = git_names(str(repository), TRACKED, hostile)
    others = git_names(str(repository), UNTRACKED, hostile)
    assert names == [".gitignore", "README.md", "src/parse.py"]
    assert others is not None
    assert "new.txt" in others
    assert not marker.exists()
    # The same without what is switched off would have run one: the test can fail.
    subprocess.run(["git", "ls-files", "-o"], cwd=repository, check=False, capture_output=True, env=ENVIRONMENT)
    subprocess.run(["git", "status"], cwd=repository, check=False, capture_output=True, env=ENVIRONMENT)
    assert marker.exists()


@all_rows(
    "spoil",
    [
        pytest.param(lambda git: (git / "index").write_bytes(b"DIRC????"), id="a broken index"),
        pytest.param(lambda git: (git / "config").write_text("[core"), id="a broken configuration"),
        pytest.param(lambda git: (git / "HEAD").unlink(), id="no repository at all"),
    ],
)
def test_folder_is_walked_if_git_fails(repository: Path, spoil: object) -> None:
    assert callable(spoil)
    spoil(repository / ".git")
    found = PatientIndex(str(repository), ENVIRONMENT).matches("parse")
    assert found == ("src/parse.py",)


def test_odd_names_are_listed_and_undecodable_ones_left_out(tmp_path: Path) -> None:
    odd = ["a b.txt", "new\nline", "q'u\"o", "ü/\u4e2d\u6587.md", "esc\x1b[2J", "bidi\u202egnp", "-dash", "tab\there"]
    _files(tmp_path, *odd)
    (tmp_path / os.fsdecode(b"no\xff")).write_text("")
    _git(tmp_path, "init", "-q")
    assert set(PatientIndex(str(tmp_path), ENVIRONMENT).matches("")) == set(odd)


def test_new_files_are_found_without_being_waited_for(repository: Path) -> None:
    index = PatientIndex(str(repository), ENVIRONMENT)
    index.fresh_seconds = ENDLESS
    assert index.matches("later") == ()
    _files(repository, "later.py")
    assert index.matches("later") == (), "names are fresh for some seconds"
    index.fresh_seconds = index.rest_share = 0.0
    assert wait_until(lambda: index.matches("later") == ("later.py",), seconds=60)


def test_missing_folder_has_no_files(tmp_path: Path) -> None:
    assert PatientIndex(str(tmp_path / "gone"), ENVIRONMENT).matches("x") == ()


def test_index_is_empty_until_the_first_question(tmp_path: Path) -> None:
    index = PatientIndex(str(tmp_path), ENVIRONMENT)
    _files(tmp_path, "made_after.txt")
    assert index.matches("made") == ("made_after.txt",)


# What fits

SOME = (
    "src/parse.py", "src/sparse.py", "tests/test_parse.py", "parse/a.py", "docs/PARSER.md", "p/a/r/s/e", "lib/parser/x.c",
    "zebra.txt", "src/harness/pa_rse.py",
)  # fmt: skip


@all_rows(
    ("question", "names"),
    [
        pytest.param("parse", (
            "src/parse.py", "docs/PARSER.md", "parse/a.py", "src/sparse.py", "lib/parser/x.c", "tests/test_parse.py",
            "p/a/r/s/e", "src/harness/pa_rse.py",
        ), id="beginnings, then insides, then scattered"),
        pytest.param("PARSE.P", (
            "src/parse.py", "src/sparse.py", "tests/test_parse.py", "parse/a.py", "src/harness/pa_rse.py",
        ), id="any case"),
        pytest.param("parse/", ("parse/a.py", "lib/parser/x.c"), id="a folder"),
        pytest.param("src/p", ("src/parse.py", "src/sparse.py", "src/harness/pa_rse.py"), id="a path and a beginning"),
        pytest.param("r/x", ("lib/parser/x.c",), id="across folders"),
        pytest.param("zzz", (), id="nothing"),
        pytest.param("[.*", (), id="no pattern"),
        pytest.param("", tuple(sorted(SOME, key=lambda name: (len(name), name))), id="everything"),
    ],
)  # fmt: skip
def test_matches_are_ordered(question: str, names: Sequence[str]) -> None:
    assert NameIndex(SOME).matches(question) == names


NAME = st.text("aAbB/._-\n é\u4e2d", min_size=1, max_size=12)


@given(names=st.lists(NAME, max_size=30), question=st.text("aAbB/.\n é", max_size=4))
def test_matches_equal_those_of_a_plain_search(names: list[str], question: str) -> None:
    wanted = question.lower()

    def kind(name: str) -> int | None:
        low = name.lower()
        if "/" in wanted:
            starts = low.startswith(wanted), f"/{wanted}" in low
        else:
            starts = low.rpartition("/")[2].startswith(wanted), False
        rest = iter(low)
        kinds = (*starts, wanted in low, all(char in rest for char in wanted))
        return kinds.index(True) if any(kinds) else None

    expected = sorted(
        ((found, len(name), name) for name in set(names) if (found := kind(name)) is not None),
    )
    assert list(NameIndex(names).matches(question)) == [name for _, _, name in expected][:MOST_MATCHES]


def test_a_hostile_name_or_question_is_answered() -> None:
    """bench/growth.py times it: a search that went back would come to no end."""
    long = ["a" * 4_000 + str(number) for number in range(200)]
    names = NameIndex([*long, "ab" * 2_000])
    assert names.matches("a" * 150 + "b") == ("ab" * 2_000,)
    assert names.matches("a" * 100_000) == tuple(long[:MOST_MATCHES])


# How a name is written


@all_rows(
    ("name", "written", "word"),
    [
        ("src/x.py", "src/x.py", "src/x.py"),
        (".env", ".env", ".env"),
        ("a b.txt", '"a b.txt"', "'a b.txt'"),
        ("it's", '"it\'s"', "'it'\\''s'"),
        ('q"u', '"q\\"u"', "'q\"u'"),
        ("ends.", '"ends."', "ends."),
        ("back\\slash", '"back\\\\slash"', "'back\\slash'"),
        ("new\nline", '"new\\nline"', "$'new\\x0aline'"),
        ("esc\x1b'", '"esc\\u001b\'"', "$'esc\\x1b\\''"),
        ("bidi\u202egnp", '"bidi\\u202egnp"', "$'bidi\\xe2\\x80\\xaegnp'"),
        ("ü/\u4e2d\u6587.md", "ü/\u4e2d\u6587.md", "'ü/\u4e2d\u6587.md'"),
        ("-rf", "-rf", "./-rf"),
        ("~root", "~root", "'./~root'"),
        ("$(x)", '"$(x)"', "'$(x)'"),
        ("a@b", "a@b", "a@b"),
        ("@b", '"@b"', "'@b'"),
    ],
)
def test_a_name_can_be_read_in_one_way_only(name: str, written: str, word: str) -> None:
    assert (mention(name), shell_word(name)) == (written, word)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30))
def test_inserted_name_reads_back_as_the_file(name: str) -> None:
    written = mention(name)
    assert (json.loads(written) if written[0] == '"' else written) == name
    assert visible_line(written, 10_000) == written
    assert written[0] == '"' or not any(char.isspace() for char in written)


def test_bash_reads_the_words_as_the_names(tmp_path: Path) -> None:
    names = ["a b", "it's", "-x", "$HOME", "esc\x1b", "new\nline", "ü", "bidi\u202e", "~", "#x", "a;b", "*", "=a"]
    command = "printf '%s\\0' " + " ".join(map(shell_word, names))
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True, env=ENVIRONMENT)
    assert done.stdout.decode().split("\0")[:-1] == [f"./{name}" if name[0] in "-~" else name for name in names]
    assert shlex.split(shell_word("a b")) == ["a b"]


# What is completed

FILES = ("src/x.py", "a b.txt")
COMMANDS = (("/help", "what there is"), ("/history", "lines"), ("/model", "show or switch"))


MODELS = (
    Offered(text="small-1", label="small-1", description="configured"),
    Offered(text="large-1", label="Large", description="the one now"),
    Offered(text="x\x1b[2J", label="x\x1b[2J\n", description="\u202e"),
)


COMPLETER = LineCompleter(
    lambda: COMMANDS, lambda typed: [name for name in FILES if typed in name], lambda: {"/model": lambda: MODELS}
)


def _completions(text: str) -> list[tuple[str, int]]:
    found = COMPLETER.get_completions(Document(text), CompleteEvent())
    return [(completion.text, completion.start_position) for completion in found]


@all_rows(
    ("text", "inserted"),
    [
        pytest.param("/h", [("/help", -2), ("/history", -2)], id="commands"),
        pytest.param("/HE", [("/help", -3)], id="in any case"),
        pytest.param("/help ", [], id="no command twice"),
        pytest.param("say /h", [], id="commands stand at the start"),
        pytest.param("/x", [], id="none"),
        pytest.param("/swit", [("/model", -5)], id="by what it does"),
        pytest.param("/sw", [], id="not by two letters of that"),
        pytest.param("/model ", [("small-1", 0), ("large-1", 0), ("x\x1b[2J", 0)], id="what follows a command"),
        pytest.param("/Model  la", [("large-1", -2)], id="by its beginning"),
        pytest.param("/model now 1", [("large-1", -5)], id="by words of its row"),
        pytest.param("/model zz", [], id="nothing that follows it"),
        pytest.param("/help s", [], id="a command without a list"),
        pytest.param("@sr", [("@src/x.py", -3)], id="a file"),
        pytest.param("see @", [("@src/x.py", -1), ('@"a b.txt"', -1)], id="all files"),
        pytest.param("see (@sr", [("@src/x.py", -3)], id="behind a bracket"),
        pytest.param("one\n@sr", [("@src/x.py", -3)], id="in a further line"),
        pytest.param('@"a b', [('@"a b.txt"', -5)], id="in quotes"),
        pytest.param("me@sr", [], id="an address"),
        pytest.param("@sr ", [], id="behind a file"),
        pytest.param("src", [], id="plain words"),
    ],
)
def test_completions_at_the_cursor_are_offered(text: str, inserted: list[tuple[str, int]]) -> None:
    assert _completions(text) == inserted


@all_rows(
    ("text", "inserted"),
    [
        ("!cat sr", [("src/x.py", -2)]),
        ("!cat 'a b", [("'a b.txt'", -4)]),
        ('!cat "a', [("'a b.txt'", -2)]),
        ("!cat<sr", [("src/x.py", -2)]),
        ("!cat ", []),
        ("!/h", []),
        ("!cat @sr", []),
    ],
)
def test_only_files_are_offered_after_an_exclamation_mark(text: str, inserted: list[tuple[str, int]]) -> None:
    assert _completions(text) == inserted


@all_rows(
    ("text", "awaited"),
    [
        ("", False),
        ("/", True),
        ("/h", True),
        ("/h x", False),
        ("/model ", True),
        ("/MODEL some words", True),
        ("a", False),
        ("a @", True),
        ("a@b", False),
        ("!x @y", False),
    ],
)
def test_only_commands_and_files_are_shown_while_one_types(text: str, awaited: bool) -> None:
    assert COMPLETER.is_awaited(text) is awaited


@pytest.mark.terminal
def test_names_are_completed_while_one_types(repository: Path) -> None:
    with PlayedLine(repository) as line:
        line.send("look at @pars")
        line.wait_for("src/parse.py")
        line.stands(TAB, "> look at @src/parse.py")
        line.send(ENTER)
        line.wait_until(lambda: "model-1" in line.display()[line.cursor[0] + 1], "the room for the menu is still there")
        line.reads(" please" + ENTER, "look at @src/parse.py please")
        line.stands("/mo", "> /mo")
        line.wait_for("show or switch")
        line.stands(TAB, "> /model")
        line.reads(ENTER, "/model")
        line.stands("!cat READ", "> !cat READ")
        line.stands(TAB, "> !cat README.md")
        line.reads(" x" + ENTER, "!cat README.md x")
        line.send("@nothing_like_it")
        line.wait_for("@nothing_like_it")
        line.reads(ENTER, "@nothing_like_it")
        line.send("@pars" + CTRL_C)
        line.wait_gone("@pars")


def test_command_arguments_are_requested_once_a_line_and_shown_safely() -> None:
    asked: list[int] = []

    def models() -> Sequence[Offered]:
        asked.append(1)
        return MODELS

    completer = LineCompleter(lambda: COMMANDS, lambda _: (), lambda: {"/model": models})
    for text in ("/model ", "/model l"):
        assert list(completer.get_completions(Document(text), CompleteEvent()))
    found = list(completer.get_completions(Document("/model x"), CompleteEvent()))
    assert len(asked) == 1
    assert (found[0].display_text, found[0].display_meta_text) == ("x\\x1b[2J\\n", "\\u202e")
    completer.begin_line()
    assert len(list(completer.get_completions(Document("/model "), CompleteEvent()))) == 3
    assert len(asked) == 2


def test_request_of_another_line_is_not_waited_for() -> None:
    """Nor is it known when it comes."""
    seen: list[tuple[bool, bool]] = []

    def models() -> Sequence[Offered]:
        during = completer.is_asking
        completer.begin_line()  # the line is sent before there is an answer
        seen.append((during, completer.is_asking))
        return MODELS

    completer = LineCompleter(lambda: COMMANDS, lambda _: (), lambda: {"/model": models})
    for _ in range(2):
        assert list(completer.get_completions(Document("/model "), CompleteEvent()))
    assert seen == [(True, False)] * 2
    assert not completer.is_asking


@pytest.mark.terminal
def test_hostile_name_in_the_menu_cannot_control_the_screen(tmp_path: Path) -> None:
    _files(tmp_path, "evil\x1b[2J\x1b]0;t\x07\u202e.txt")
    with PlayedLine(tmp_path) as line:
        line.reads("before" + ENTER, "before")
        line.send("@evil")
        line.wait_for("evil\\x1b[2J\\x1b]0;t\\x07\\u202e.txt")
        line.send(TAB)
        line.wait_for('> @"evil\\u001b[2J\\u001b]0;t\\u0007\\u202e.txt"')
        assert (line.screen.title, line.display()[0]) == ("", "> before")
        assert b"\x1b[2J" not in line.raw
        line.stands(BACKSPACE, '> @"evil\\u001b[2J\\u001b]0;t\\u0007\\u202e.txt')
        line.reads(ENTER, '@"evil\\u001b[2J\\u001b]0;t\\u0007\\u202e.txt')


def test_first_names_come_before_git_has_listed_untracked_files(tmp_path: Path, token: str) -> None:
    """Without a tracked file, they are those of a short walk."""
    slow = tmp_path / "bin"
    slow.mkdir()
    (slow / "git").write_text(f'#!/bin/sh\ncase "$*" in *others*) exec sleep {token};; esac\n')
    (slow / "git").chmod(0o755)
    _files(tmp_path / "work", "new.py")
    files = FileIndex(str(tmp_path / "work"), {**os.environ, "PATH": f"{slow}:{os.environ['PATH']}"})
    files.first_seconds = ENDLESS
    assert files.matches("") == ("new.py",)


@pytest.mark.terminal
@all_rows("leaves", [False, True])
def test_a_line_is_sent_while_files_are_looked_for_without_end(tmp_path: Path, token: str, leaves: bool) -> None:
    """Neither the line nor, beyond the moment that a question waits, who leaves has to wait for a git that does not end."""
    slow = tmp_path / "bin"
    slow.mkdir()
    (slow / "git").write_text(f"#!/bin/sh\nexec sleep {token}\n")
    (slow / "git").chmod(0o755)
    (tmp_path / "work").mkdir()
    variables = {"PATH": f"{slow}:{os.environ['PATH']}"}
    first_seconds = FileIndex.first_seconds if leaves else ENDLESS
    with PlayedLine(tmp_path / "work", variables=variables, first_seconds=first_seconds) as line:
        line.stands("@something", "> @something")
        line.reads(ENTER, "@something")
        line.reads("\x04", {"raised": "EOFError"})
        if leaves:
            assert line.exit_code(seconds=60) == 0
