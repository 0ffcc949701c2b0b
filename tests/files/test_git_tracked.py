"""A secret that git tracks: what git really prints of it, held against what runs unasked; and what the index says."""

from __future__ import annotations

import functools
import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from git_scene import run_git
from rows import all_rows
from sizes import proof_size, spread

from harness.actions import Access, Decision
from harness.app.policy.judged_call import action_for
from harness.files.repository import read_index, tracked_from
from harness.files.untracked import untracked_files
from harness.files.workspace import Workspace
from harness.grant_pattern import GrantPattern
from harness.messages import ToolCall
from harness.policy.loader import load_policy
from harness.policy.session_grants import session_grant, with_grants
from harness.policy.verdict import evaluate
from harness.programs.git import LOOKING
from harness.programs.git_pathspecs import ShownFiles, is_exclusion, shown_names
from harness.programs.options import option_table
from harness.tools.bash import BashTool

policy_named = functools.cache(load_policy)


class Repository(NamedTuple):
    """A repository whose `.env` is tracked, or only lies there, and whose every file has three versions."""

    root: Path
    ids: dict[str, str]

    def judged(self, line: str, policy: str = "readonly") -> str:
        for name, value in self.ids.items():
            line = line.replace(name, value)
        action = action_for("bash", line, Workspace(str(self.root), str(self.root.parent)))
        return evaluate(policy_named(policy), action).decision.word

    def printed(self, line: str) -> str:
        for name, value in self.ids.items():
            line = line.replace(name, value)
        done = subprocess.run(["bash", "-c", line], cwd=self.root, capture_output=True, check=False, timeout=120)
        return os.fsdecode(done.stdout + done.stderr)


def made(folder: Path, *, tracked: bool) -> Repository:
    root = folder.resolve() / "repository"
    (root / "cfg").mkdir(parents=True)
    run_git(root, "init", "-q", "-b", "main")
    secrets = (".env", "cfg/.env")
    (root / ".git" / "info" / "exclude").write_text("" if tracked else ".env\n")
    for number in range(3):
        for name in (*secrets, "a.py", "cfg/b.py"):
            (root / name).write_text(f"{'SECRET' if name in secrets else 'plain'}{number} \n")
        run_git(root, "add", "-A")
        if number < 2:
            run_git(root, "commit", "-qm", f"commit {number}")
            run_git(root, "branch", f"b{number}")
    run_git(root, "stash", "-q")
    for name in (*secrets, "a.py", "cfg/b.py"):
        (root / name).write_text(f"{'SECRET' if name in secrets else 'plain'}3 \n")
    run_git(root, "add", "a.py", *(secrets[:1] if tracked else ()))
    for name in ("a.py", ".env"):
        (root / name).write_text(f"{'SECRET' if name in secrets else 'plain'}4 \n")
    ids = {
        name: run_git(root, "rev-parse", revision).stdout.strip()
        for name, revision in (
            ("OLD", "HEAD~1:.env"),
            ("NOW", "HEAD:cfg/.env"),
            ("PLAIN", "HEAD:a.py"),
            ("TIP", "HEAD"),
        )
    }
    return Repository(root, {**ids, "SHORT": ids["NOW"][:7]} if tracked else {"TIP": ids["TIP"], "PLAIN": ids["PLAIN"]})


@pytest.fixture(scope="module")
def leaky(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return made(tmp_path_factory.mktemp("leaky"), tracked=True)


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return made(tmp_path_factory.mktemp("ordinary"), tracked=False)


SHOW_IT = """
git diff
git diff HEAD
git diff HEAD~1 HEAD
git diff HEAD~1..HEAD
git diff --cached
git diff -U0
git diff --stat -p
git diff --check
git diff --word-diff
git diff -- .
git diff -- ':!a.py'
git diff ':!a.py'
git diff -- . ':!.env'
git diff -- . ':(exclude).env'
git diff -- cfg
git diff cfg
git diff -- . ':(exclude)*.py'
git diff -- . ':!/*.py'
git diff HEAD -- . ':(top,exclude)./.env' ':!cfg'
git diff -- . ':(exclude,icase)nothing'
git diff b0 b1
git show
git show HEAD
git show main
git show TIP
git show SHORT
git show --stat NOW
git show HEAD:a.py --all
git show HEAD:a.py..HEAD
git show HEAD:a.py HEAD
git show NOW -- a.py
git show --name-only SHORT
git diff PLAIN NOW
git log -p
git log -p -1
git log -p --all
git log -p -- .
git log -p --full-diff -- a.py
git log -c -p
git log -U1 -1
git log --patch-with-stat -1
git log -L1,1:a.py -L1,1:.env
git reflog -p
git format-patch --stdout -1
git format-patch --stdout --stat -1
git diff-tree -p HEAD
git diff-index -p HEAD~1
git diff-files -p
git cat-file -p NOW
git cat-file blob OLD
git cat-file -p SHORT
git stash show -p
git stash list -p
git status -v
git status -v -- a.py
git status -vv
git archive HEAD
git -C cfg diff
cd cfg && git diff
cd cfg && git diff -- .
cd cfg && git diff -- . ':!b.py'
git diff | cat
bash -c 'git show'
git ls-files | xargs cat
git ls-files -z | xargs -0 cat
git ls-files cfg | xargs -n1 grep .
git ls-files | grep -v a.py | xargs -I{} head -3 {}
git ls-files '*.py' .env | xargs sed -n 1p
cat $(git ls-files)
cat $(git ls-files cfg | sort)
grep -n . `git ls-files`
cd cfg && head -3 $(git ls-files)
cat $(find . -name .env)
for f in $(git ls-files); do cat "$f"; done
cd cfg && git ls-files | xargs cat
"""


@all_rows("line", SHOW_IT.strip().splitlines())
def test_line_that_shows_a_tracked_secret_is_denied(line: str, leaky: Repository) -> None:
    assert ("SECRET" in leaky.printed(line), leaky.judged(line)) == (True, "deny")


LEAVE_IT_OUT = """
git diff -- . ':!.env' ':!cfg/.env'
git diff -- . ':!*.env'
git diff -- ':(exclude)*.env'
git diff HEAD ':!*.env'
git diff HEAD -- . ':^.env' ':(top,exclude)cfg'
git diff -- . ':!:.env' ':!cfg/'
git diff -- '*.py'
git diff '*.py'
git diff -- a.py
git diff a.py
git diff a.py cfg/b.py
git diff HEAD a.py
git diff HEAD~1 HEAD -- a.py cfg/b.py
git diff --stat
git diff --name-only
git diff --name-status HEAD~1
git diff --shortstat HEAD~1 HEAD
git diff --numstat
git diff --cached --summary
git diff --quiet
git show --stat
git show --stat TIP
git show --name-only HEAD
git show -s
git show TIP -- a.py
git show HEAD -- . ':!*.env'
git show HEAD:a.py
git show HEAD~1:cfg/b.py main:a.py
git show HEAD@{0}:a.py
git show HEAD:cfg
git show --stat PLAIN
git log
git log --oneline --all
git log --stat
git log --name-only
git log -S SECRET --oneline
git log -p -- a.py
git log -p -1 -- . ':!*.env'
git reflog
git format-patch --stdout -1 -- a.py
git diff-tree -r HEAD
git diff-tree -p HEAD -- a.py
git diff-index HEAD
git diff-files
git cat-file -p HEAD
git cat-file -p HEAD:a.py
git cat-file -t NOW
git cat-file -e NOW
git stash list
git status
git status -s
git rev-list --all
git rev-list --objects HEAD
git shortlog -sne -c HEAD
git ls-files -s
git blame a.py
git branch -v
git ls-files '*.py' | xargs cat
git ls-files -- . ':!*.env' | sort -u | xargs cat
git ls-files -z -- cfg/b.py | xargs -0 -n1 cat
cd cfg && git ls-files b.py | xargs cat
cat $(git ls-files '*.py')
grep -n . $(git ls-files -- . ':!*.env')
cd cfg && cat `git ls-files b.py`
sh -c 'cat $(find . -name b.py)'
for f in $(git ls-files '*.py'); do head -1 $f; cat "$f" | wc -l; done
git -C cfg diff b.py
cd cfg && git diff -- . ':!.env'
cd cfg && git diff -- b.py
"""


@all_rows("line", LEAVE_IT_OUT.strip().splitlines())
def test_line_without_the_tracked_secret_is_allowed(line: str, leaky: Repository) -> None:
    assert ("SECRET" in leaky.printed(line), leaky.judged(line)) == (False, "auto")


PLAIN = """
git diff
git diff HEAD~1
git diff HEAD~1 HEAD
git diff --cached
git diff a.py
git diff -- . ':!package-lock.json'
git show
git show TIP
git show PLAIN
git show b0
git log -p
git log -p --all -3
git log -p -- cfg
git format-patch --stdout -1
git diff-tree -p HEAD
git cat-file -p PLAIN
git cat-file -p 'HEAD^{tree}'
git stash show -p
git status -v
git ls-files | xargs cat
git ls-files -z | sort -z | xargs -0 grep -n .
cd cfg && git ls-files | head -5 | xargs wc -l
git -C cfg log -p
"""


@all_rows(
    "name",
    ["-n", "a b", "'", '"', "x\\y", "x/y z", "a=b", "+1", "x\ny", "\u00e9"],
)
def test_deleted_tracked_name_that_xargs_would_misread_is_asked_about(name: str, tmp_path: Path) -> None:
    repository = made(tmp_path, tracked=False)
    path = repository.root / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("x")
    run_git(repository.root, "add", "--", ":(literal)" + name)
    path.unlink()
    for line in ("git ls-files | xargs cat", "cat $(git ls-files)", "for f in $(git ls-files); do cat $f; done"):
        assert (line, repository.judged(line, "default")) == (line, "confirm")


@all_rows("name", ["a*", "x[a]", "x?"])
def test_a_tracked_name_that_a_shell_matches_against_files_asks(name: str, tmp_path: Path) -> None:
    repository = made(tmp_path, tracked=False)
    (repository.root / name).write_text("x")
    run_git(repository.root, "add", "--", ":(literal)" + name)
    lines = ("cat $(git ls-files)", "for f in $(git ls-files); do cat $f; done", "git ls-files | xargs cat")
    assert [repository.judged(line, "default") for line in lines] == ["confirm", "confirm", "auto"]


@all_rows("name", ['a"b', "x\\y", "\u00e9"])
def test_a_tracked_name_that_git_writes_in_quotes_asks(name: str, tmp_path: Path) -> None:
    repository = made(tmp_path, tracked=False)
    (repository.root / name).write_text("x")
    run_git(repository.root, "add", "--", ":(literal)" + name)
    printed = next(line for line in repository.printed("git ls-files").splitlines() if line.startswith('"'))
    (repository.root / printed).symlink_to(".env")
    for line in ("git ls-files | xargs -d '\\n' cat", "git ls-files | xargs -d '\\n' grep -lZ . | xargs -0 cat"):
        assert ("SECRET" in repository.printed(line), repository.judged(line, "default")) == (True, "confirm")
    line = "git ls-files -z | xargs -0 cat"  # here it writes every name as it is
    assert ("SECRET" in repository.printed(line), repository.judged(line, "default")) == (False, "auto")


@all_rows(("target", "word"), [(".env", "deny"), ("../out", "confirm"), ("cfg", "confirm"), ("a.py", "auto")])
def test_tracked_link_is_judged_by_its_target(target: str, word: str, tmp_path: Path) -> None:
    repository = made(tmp_path, tracked=False)
    (tmp_path / "out").write_text("x")
    (repository.root / "link").symlink_to(target)
    run_git(repository.root, "add", "link")
    assert repository.judged("git ls-files | xargs cat", "default") == word


def test_link_replacing_a_tracked_folder_is_noticed(tmp_path: Path) -> None:
    repository = made(tmp_path, tracked=False)
    (repository.root / "cfg").rename(repository.root / "old")
    (repository.root / "cfg").symlink_to("..")
    (tmp_path / "b.py").write_text("x")
    assert repository.judged("git ls-files | xargs cat", "default") == "confirm"


@all_rows(
    ("line", "shows", "word"),
    [
        ("git log -p -- pub.cfg", False, "auto"),
        ("git log --follow --stat -- pub.cfg", False, "auto"),
        ("git log -p --follow -- pub.cfg", True, "deny"),
        ("git log -p --follow pub.cfg", True, "deny"),
        ("git reflog -p --follow -- pub.cfg", True, "deny"),
        ("git show --follow HEAD~1 -- pub.cfg", True, "deny"),
        ("git log -L1,3:pub.cfg", True, "deny"),
        ("git -c log.follow=true log -p -- pub.cfg", True, "deny"),
    ],
)
def test_a_file_is_followed_to_the_secret_that_it_was(line: str, shows: bool, word: str, tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-q")
    (tmp_path / ".env").write_text("one\nSECRET\nthree\nfour\nfive\n")
    run_git(tmp_path, "add", ".env")
    run_git(tmp_path, "commit", "-qm", "secret")
    run_git(tmp_path, "mv", ".env", "pub.cfg")
    (tmp_path / "pub.cfg").write_text("one\ntwo\nthree\nfour\nfive\n")
    run_git(tmp_path, "commit", "-qam", "renamed")
    (tmp_path / ".env").write_text("another\n")
    run_git(tmp_path, "add", ".env")
    run_git(tmp_path, "commit", "-qm", "another")
    repository = Repository(tmp_path.resolve(), {})
    assert ("SECRET" in repository.printed(line), repository.judged(line)) == (shows, word)
    run_git(tmp_path, "config", "log.follow", "true")  # then git follows unasked
    assert repository.judged(line) != "auto"


@all_rows("policy", ["readonly", "ci", "default"])
@all_rows("line", PLAIN.strip().splitlines())
def test_a_secret_that_git_does_not_track_is_in_nobodys_way(line: str, policy: str, ordinary: Repository) -> None:
    assert ("SECRET" in ordinary.printed(line), ordinary.judged(line, policy)) == (False, "auto")


@all_rows(
    ("name", "words"),
    [
        ("log", ["-1"]),
        ("show", []),
        ("diff", []),
        ("diff-tree", ["HEAD"]),
        ("diff-index", ["HEAD~1"]),
        ("diff-files", []),
        ("stash show", []),
        ("stash list", []),
        ("reflog", ["-1"]),
        ("rev-list", ["HEAD"]),
        ("shortlog", ["HEAD"]),
        ("status", []),
        ("format-patch", ["--stdout", "-1"]),
    ],
)
def test_every_option_that_makes_git_show_a_secret_is_known_to(name: str, words: list[str], leaky: Repository) -> None:
    wrong = []
    for spelling, entry in spread("GIT_OPTIONS", list(option_table(LOOKING[name].options).items()), 40):
        option = [spelling] if entry.role is None or entry.joined_only else [spelling, "1"]
        if spelling == "-NUM" or "WRITE" in str(entry.role):
            continue
        line = " ".join(["git", *name.split(), *option, *words])
        if leaky.judged(line) == "auto" and "SECRET" in run_git(leaky.root, *line.split()[1:]).stdout:
            wrong.append(spelling)
    assert wrong == []


# The words of a command, and the index, as git reads them.

PATHSPECS = proof_size("PATHSPECS", 80, full=10_000)
"""How many pathspecs are held against git in each folder; there are fewer than the full number."""
SEED = 17
FILES = [
    *".env a.py src/.env src/a.py src/deep/b.py x.env/k s*r/q s*r/.env [a]/f !x src/!x é.py top.lock src.py/a".split(),
    "b\nc/.env",
]
WORDS = (
    ". .. src src/ src/deep *.env * ** src/* *.py ../a.py ../.env ./.env s*r s*r/ x.env x.env/ *.lock s?c [s]rc src//a.py !x "
    "?.py src/../.env *e*v \\.env HEAD src/** */.env"
).split()
MAGIC = (
    "",
    ":!",
    ":^",
    ":!/",
    ":!:",
    ":^/:",
    ":(exclude)",
    ":(top,exclude)",
    ":(exclude,icase)",
    ":(exclude,glob)",
    ":(,exclude)",
)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with odd names, all of them changed."""
    root = tmp_path_factory.mktemp("odd").resolve()
    run_git(root, "init", "-q")
    for text in ("one", "another"):
        for name in FILES:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(f"{text}\n")
        if text == "one":
            run_git(root, "add", "-A")
            run_git(root, "commit", "-qm", "one")
    return root


def _told(words: tuple[str, ...], *, dashes: bool, folder: str, root: Path) -> set[str]:
    found = tracked_from(str(root / folder))
    assert found is not None
    what = ShownFiles(words=words, behind_dashes=dashes)
    return set(shown_names(found[1], what, folder, lambda word: os.path.lexists(root / folder / word)))


@all_rows("folder", ["", "src/", "s*r/"])
def test_the_words_leave_no_name_out_that_git_shows(folder: str, odd: Path) -> None:
    singles = [magic + word for magic in MAGIC for word in WORDS]
    pairs = [(word, exclusion) for word in ("src", "..", "*.py") for exclusion in singles if is_exclusion(exclusion)]
    every = [*((word,) for word in singles), *pairs]
    tried = min(PATHSPECS, len(every))
    for words in random.Random(f"{folder}{SEED}").sample(every, tried):
        for dashes in (True, False):
            done = run_git(
                odd / folder, "diff", "--name-only", "-z", "--no-relative", *(["--"] if dashes else []), *words
            )
            names = set(done.stdout.split("\0")) - {""}
            assert names <= _told(words, dashes=dashes, folder=folder, root=odd), (words, dashes)


@all_rows(
    ("words", "left_out"),
    [
        ((":!.env",), {".env"}),
        ((".", ":(exclude)*.env"), {".env", "src/.env", "s*r/.env", "b\nc/.env"}),
        ((":!src",), {"src/.env", "src/a.py", "src/deep/b.py", "src/!x"}),
        (("src", ":!src/deep/"), {*FILES} - {"src/.env", "src/a.py", "src/!x"}),
        (("*.py",), {*FILES} - {"a.py", "src/a.py", "src/deep/b.py", "é.py"}),
        (("src/*",), {*FILES} - {"src/.env", "src/a.py", "src/deep/b.py", "src/!x"}),
    ],
)
def test_narrowing_words_exclude_the_expected_files(words: tuple[str, ...], left_out: set[str], odd: Path) -> None:
    assert set(FILES) - _told(words, dashes=True, folder="", root=odd) == left_out


@all_rows("version", [2, 3, 4])
@all_rows("form", ["sha1", "sha256"])
def test_the_index_is_read_as_git_reads_it(form: str, version: int, tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-q", f"--object-format={form}")
    for name in ("a", "b" * 200, "c/" * 30 + "d", "é", "é\nf", "z"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    run_git(tmp_path, "add", "-A")
    (tmp_path / "new").write_text("x")
    run_git(tmp_path, *(("add", "-N", "new") if version == 3 else ("update-index", "--index-version", str(version))))
    data = (tmp_path / ".git" / "index").read_bytes()
    listed = [line.partition("\t") for line in run_git(tmp_path, "ls-files", "-s", "-z").stdout.split("\0")[:-1]]
    found = read_index(data)
    assert data[7] == version
    assert found is not None
    assert [(name, found_id.hex()) for name, found_id, _ in found] == [
        (name, said.split()[1]) for said, _, name in listed
    ]
    assert [read_index(data[:length]) for length in range(len(data))] == [None] * len(data)


def test_a_sparse_index_is_not_understood(odd: Path, tmp_path: Path) -> None:
    run_git(tmp_path, "clone", "-q", str(odd), "copy")
    run_git(tmp_path / "copy", "sparse-checkout", "set", "--sparse-index", "src/deep")
    assert tracked_from(str(tmp_path / "copy")) is None


def test_a_git_folder_that_is_none_hides_no_names(odd: Path, tmp_path: Path) -> None:
    """git passes over it, and takes the next one on the way up."""
    run_git(tmp_path, "clone", "-q", str(odd), "copy")
    inner = tmp_path / "copy" / "src" / ".git"
    inner.mkdir()
    found = tracked_from(str(inner.parent))
    assert (found and found[0], run_git(inner.parent, "ls-files", ".env").stdout) == (str(tmp_path / "copy"), ".env\n")
    shutil.copy(tmp_path / "copy" / ".git" / "index", inner / "index")
    assert tracked_from(str(inner.parent)) is None
    (inner / "index").unlink()
    run_git(inner.parent, "init", "-q")
    assert tracked_from(str(inner.parent)) == (str(inner.parent), ())


def test_a_linked_worktree_has_its_own_index(odd: Path, tmp_path: Path) -> None:
    run_git(odd, "worktree", "add", "-q", str(tmp_path / "linked"))
    run_git(tmp_path / "linked", "rm", "-q", "--cached", ".env")
    found = tracked_from(str(tmp_path / "linked" / "src"))
    assert found is not None
    assert (found[0], {name for name, *_ in found[1]}) == (str(tmp_path / "linked"), {*FILES} - {".env"})


def test_outside_a_repository_no_files_are_tracked(tmp_path: Path) -> None:
    assert tracked_from(str(tmp_path)) == ("", ())


def planted(folder: Path) -> Repository:
    """A repository with a new `.env`, an ignored `keep/.env`, a changed `cfg/.env` and an unchanged `old/.env`."""
    root = folder.resolve() / "repository"
    for name in ("a.py", "cfg/.env", "old/.env", "sub/b.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("old\n")
    run_git(root, "init", "-q", "-b", "main")
    (root / ".gitignore").write_text("keep/\n*.log\n!important.log\n")
    run_git(root, "add", "-A")
    run_git(root, "commit", "-qm", "first")
    (root / "keep").mkdir()
    (root / "keep" / ".env").write_text("SECRET\n")
    for name in (".env", "cfg/.env", "sub/.env"):
        (root / name).write_text("SECRET\n")
    for name in ("a.py", "sub/b.py", "sub/new.py", "x.log"):
        (root / name).write_text("new\n")
    return Repository(root, {})


TAKES_IT = """
git add -A
git add .
git add :/
git add ':(top)'
git add --all
git add -u
git add -v .env
git add '*'
git add cfg
git add -f keep
git add -f .
git add -A -- . ':!.env'
git add -- ':!.env' ':!cfg/.env'
cd sub && git add -A
cd sub && git add .
cd sub && git add ..
git -C sub add .
git -C sub add --all
git commit -qam x
git commit -qa -m x
git commit -qm x cfg
git commit -qm x .
git commit -qm x -- '*.env'
git stash
git stash -q
git stash -u
git stash -a
git stash push -u
git stash push -- cfg
git stash save -u x
git stash create
mv .gitignore y && git add keep
echo > .gitignore && git add keep
git add a.py && git commit -qam x
true && git add -A && git commit -qm x
"""


@all_rows("line", TAKES_IT.strip().splitlines())
def test_line_that_puts_a_secret_into_git_is_denied(line: str, tmp_path: Path) -> None:
    repository = planted(tmp_path)
    word = repository.judged(line, "default")
    repository.printed(f"{IDENTITY}; {line}")
    assert ("SECRET" in repository.printed(OBJECTS), word) == (True, "deny")


TAKES_OTHERS = """
git add -A -- . ':!*.env'
git add . ':(exclude)*.env'
git add a.py sub/b.py
git add sub/new.py
git add '*.py'
git add -A '*.py' old
git add -A old
git add keep
git add -u -- sub
git add -n .
cd sub && git add b.py new.py
cd sub && git add -A -- . ':!.env'
git commit -qm x a.py
git commit -qm x -- . ':!cfg/.env'
git commit -qm x --allow-empty
git add a.py && git commit -qm x
git stash push -q -- a.py sub
git stash push -q -u -- . ':!*.env'
git stash push -q -u -- sub/new.py
git update-index --refresh
"""


@all_rows("line", TAKES_OTHERS.strip().splitlines())
def test_line_that_leaves_the_secrets_out_asks(line: str, tmp_path: Path) -> None:
    repository = planted(tmp_path)
    word = repository.judged(line, "default")
    repository.printed(f"{IDENTITY}; {line}")
    assert ("SECRET" in repository.printed(OBJECTS), word) == (False, "confirm")


IDENTITY = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b"
OBJECTS = "git cat-file --batch-all-objects --batch"


def test_ignored_and_unchanged_secrets_do_not_stop_an_add(tmp_path: Path) -> None:
    repository = planted(tmp_path)
    for name in (".env", "cfg/.env", "sub/.env"):
        (repository.root / name).unlink()
    os.utime(repository.root / "old" / ".env")
    lines = (
        "git add -A",
        "git commit -am x",
        "git stash -u",
        "git init && git add -A",
        "black . && git add .",
        "git stash -a",
    )
    assert [repository.judged(line, "default") for line in lines] == ["confirm"] * 3 + ["deny", "confirm", "deny"]


def test_new_repository_may_take_all_that_is_not_ignored(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("SECRET")
    for text, word in ((".env\n", "confirm"), ("", "deny")):
        (tmp_path / ".gitignore").write_text(text)
        assert Repository(tmp_path, {}).judged("git init && git add . && git commit -m x", "default") == word


def test_grants_never_lift_the_refusal_of_an_add(tmp_path: Path) -> None:
    repository = planted(tmp_path)
    grants = [
        session_grant(
            "all",
            GrantPattern(
                tools=("bash",),
                path="/**",
                access=(Access.READ, Access.WRITE),
                write=(".",),
                folder=str(repository.root),
                program=True,
            ),
        )
    ]
    policy = with_grants(policy_named("default"), grants)
    for line, word in (("git add -A", Decision.DENY), ("git add a.py", Decision.AUTO)):
        action = action_for("bash", line, Workspace(str(repository.root), str(tmp_path)))
        assert evaluate(policy, action).decision is word


def test_question_names_files_new_to_git(tmp_path: Path) -> None:
    repository = planted(tmp_path)
    (repository.root / "sub" / ".env").unlink()
    assert "\nnew to git: sub/new.py\n" in asked_about("git add sub a.py", repository)
    assert "new to git" not in asked_about("git commit -am x; git status", repository)
    for number in range(20):
        (repository.root / f"n{number}").write_text("")
    assert " and 14 more\n" in asked_about("git add -A", repository)


def asked_about(line: str, repository: Repository) -> str:
    tool = BashTool(Workspace(str(repository.root), str(repository.root.parent)))
    return tool.prepare(ToolCall(id="1", name="bash", arguments=""), {"command": line}).preview


IGNORE_LINES = (
    "/a", "b/", "*.log", "!keep.log", "/sub/*", "!/sub/x", "sub/deep/", "**/z", "sub/**", "a/**/c", "**", "*", "?x", "[ab]",
    " a", "a ", "\\#a", "#a", "!", "/", "//", "!*.txt", "*.txt", "x*y", "**/deep/x", "deep/x", "!deep/", "a\r", "!sub/",
)  # fmt: skip
IGNORED_NAMES = (
    "a", "b/a", "b/c.log", "keep.log", "c.log", "sub/x", "sub/y", "sub/deep/x", "sub/deep/z", "a.txt", "x1y", "deep/x", "z/q",
    "sub/a/c", " a", "#a",
)  # fmt: skip


@all_rows("seed", range(40))
def test_new_files_are_never_taken_for_ignored(seed: int, tmp_path: Path) -> None:
    """Patterns that can be read in several ways may count for less than they do to git, never for more."""
    chance = random.Random(f"{seed}{SEED}")
    run_git(tmp_path, "init", "-q")
    for name in chance.sample(IGNORED_NAMES, 10):
        if not (tmp_path / name).parent.is_file() and not (tmp_path / name).is_dir():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("")
    for folder in ("", "sub/"):
        if (tmp_path / folder).is_dir():
            (tmp_path / folder / ".gitignore").write_text("\n".join(chance.sample(IGNORE_LINES, 4)))
    (tmp_path / ".git" / "info" / "exclude").write_text("\n".join(chance.sample(IGNORE_LINES, 2)))
    new = set(run_git(tmp_path, "ls-files", "-o", "-z", "--exclude-standard").stdout.split("\0")) - {""}
    every = set(run_git(tmp_path, "ls-files", "-o", "-z").stdout.split("\0")) - {""}
    exclude = str(tmp_path / ".git" / "info" / "exclude")
    found, whole = untracked_files(str(tmp_path), (), exclude, ignored=False)
    others, _ = untracked_files(str(tmp_path), (), exclude, ignored=True)
    assert whole
    assert new <= set(found)
    assert {*found, *others} == every
