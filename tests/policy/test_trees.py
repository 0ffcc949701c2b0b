"""What lies below a folder, what a pattern of bash stands for, and when ignore files bring hidden files back."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from git_scene import run_git
from places import ROOT, shell_word
from rows import all_rows

from harness.actions import Decision, Enforcement
from harness.app.policy.judged_call import action_for
from harness.files.trees import (
    MAX_BELOW,
    MAX_MATCHES,
    Narrowing,
    bring_back_from_above,
    expand,
    names_below,
    plain_below,
)
from harness.files.workspace import Workspace
from harness.paths import XARGS_SPLITS
from harness.policy.loader import load_policy
from harness.policy.verdict import Verdict, evaluate


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository in a home folder."""
    return repository(tmp_path)


def repository(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "home" / "repo"
    for name in ("a.py", "b.txt", ".env", "sub/c.py", "sub/.hidden/d.py", "node_modules/e.py"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return folder


def below(
    root: Path, narrowing: Narrowing | None = None, *, follows: bool = False, folder: str = ""
) -> tuple[list[str], bool]:
    start = str(root / folder) if folder else str(root)
    names, whole = names_below(start, str(root), narrowing or Narrowing(), home=str(root.parent), follows=follows)
    return sorted(names), whole


ALL = [".env", "a.py", "b.txt", "node_modules/e.py", "sub/.hidden/d.py", "sub/c.py"]


@all_rows(
    ("narrowing", "names"),
    [
        pytest.param(Narrowing(), ALL, id="everything"),
        pytest.param(Narrowing(only=("*.txt",)), ["b.txt"], id="one ending"),
        pytest.param(Narrowing(only=("*.txt", "c.py")), ["b.txt", "sub/c.py"], id="two names"),
        pytest.param(Narrowing(only=("*[t]",)), ALL, id="a pattern that is not plain narrows nothing"),
        pytest.param(Narrowing(only=("*.txt", "*/x")), ALL, id="nor does one among others"),
        pytest.param(Narrowing(skips=("node_modules",)), [n for n in ALL if "node" not in n], id="a folder left out"),
        pytest.param(Narrowing(skips=("b.txt",)), ALL, id="a file is no folder"),
        pytest.param(Narrowing(skips=("./sub",)), [n for n in ALL if "sub" not in n], id="a first folder left out"),
        pytest.param(Narrowing(skips=("./.hidden",)), ALL, id="a deeper one is none of the first"),
        pytest.param(
            Narrowing(hidden=False), ["a.py", "b.txt", "node_modules/e.py", "sub/c.py"], id="hidden files left out"
        ),
    ],
)
def test_the_files_below_are_named_as_they_are_narrowed(root: Path, narrowing: Narrowing, names: list[str]) -> None:
    assert below(root, narrowing) == (names, True)


def test_links_are_named_and_followed_only_where_the_command_does(root: Path) -> None:
    (root / "in").symlink_to("sub/c.py")
    (root / "out").symlink_to("/etc/passwd")
    (root / "dir").symlink_to("sub")
    assert below(root) == (sorted([*ALL, "in", "out", "dir"]), True)
    names, whole = below(root, follows=True)
    assert (names.count("sub/c.py"), whole) == (2, False)


def test_file_and_missing_folder_are_empty_trees_and_a_failure_is_known(root: Path) -> None:
    assert (below(root, folder="a.py"), below(root, folder="nothing")) == (([], True), ([], True))
    # What is no folder for another reason may be one to others: a name that no disk holds stands for it.
    assert below(root, folder="x" * 300) == ([], False)


@all_rows(("most", "whole"), [(len(ALL) - 1, False), (len(ALL), True)])
def test_too_many_files_are_not_whole(root: Path, most: int, *, whole: bool) -> None:
    found = names_below(str(root), str(root), Narrowing(), home=str(root.parent), follows=False, max_names=most)
    assert (len(found[0]), found[1]) == (most, whole)


def test_a_search_of_a_whole_workspace_runs_unasked(root: Path) -> None:
    """A large one too: its names are looked at up to a bound above what repositories have."""
    assert MAX_BELOW >= 500_000
    (root / ".env").unlink()
    policy = load_policy(str(Path(ROOT) / "policies" / "ci.toml"))
    command = "grep -r foo . && rg -uu foo && find . -type f -exec grep foo {} +"
    assert evaluate(policy, action_for("bash", command, Workspace(str(root)))).decision is Decision.AUTO
    (root / "sub" / ".ENV").touch()
    assert evaluate(policy, action_for("bash", command, Workspace(str(root)))).decision is Decision.DENY


@all_rows(
    ("name", "plain", "split", "bare"),
    [
        ("sub/a.py", True, True, True),
        ("sub/\u00e9.py", True, True, True),
        ("sub/a b", True, False, False),
        ("sub/a'b", True, False, False),
        ('sub/a"b', True, False, False),
        ("sub/a\\b", True, False, False),
        ("a b/c.py", True, False, False),
        ("sub/a\nb", False, False, False),
        ("sub/a\tb", False, False, False),
        ("sub/a\udcff", False, False, False),
        ("sub/a\u00a0b", False, False, False),
        ("sub/-n", True, True, True),
        ("-n", True, True, False),
        ("+1", True, True, False),
        ("@x/a", True, True, False),
        ("a=b", True, True, False),
        ("(", True, True, False),
    ],
)
def test_names_that_are_words_in_a_list(tmp_path: Path, name: str, *, plain: bool, split: bool, bare: bool) -> None:
    path = tmp_path / os.fsencode(name).decode("utf-8", "surrogateescape")
    path.parent.mkdir(exist_ok=True)
    path.write_text("")

    def said(*, split: str, bare: bool) -> bool:
        return plain_below(str(tmp_path), Narrowing(), split=split, bare=bare)

    assert (said(split="", bare=False), said(split=XARGS_SPLITS, bare=False), said(split=XARGS_SPLITS, bare=True)) == (
        plain,
        split,
        bare,
    )


def test_names_that_are_not_listed_may_be_odd(root: Path) -> None:
    (root / "sub" / "a b.txt").write_text("")
    (root / "left out").mkdir()
    for narrowing, plain in (
        (Narrowing(only=("*.py",)), False),
        (Narrowing(only=("*.py",), skips=("left out",)), False),
    ):
        assert plain_below(str(root), narrowing, split=XARGS_SPLITS, bare=False) is plain
    (root / "left out").rmdir()
    assert plain_below(str(root), Narrowing(only=("*.py",)), split=XARGS_SPLITS, bare=False)
    assert not plain_below(str(root), Narrowing(), split="", bare=False, max_names=5)


BRINGS_BACK = [
    ("repo/.gitignore", "!.env\n"),
    ("repo/.ignore", "  !x\n"),
    ("repo/.rgignore", "a\n!.env"),
    ("repo/sub/.ignore", "!.hidden\n"),
    ("repo/.git/info/exclude", "!.env\n"),
    ("repo/sub/.git/info/exclude", "!.env\n"),
    ("repo/.gitignore", "\ufeff!.env\n"),
    ("repo/.gitignore", "x" * 1_100_000),
    (".gitignore", "!.env\n"),
    (".git/info/exclude", "!.env\n"),
    (".config/git/ignore", "!.env\n"),
    (".gitconfig", "[core]\n\texcludesFile = x\n"),
    (".config/git/config", "[include]\n\tpath = x\n"),
]


@all_rows(("file", "text"), BRINGS_BACK)
def test_an_ignore_file_may_bring_hidden_files_back(tmp_path: Path, file: str, text: str) -> None:
    root = repository(tmp_path)
    path = root.parent / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert ".env" in below(root, Narrowing(hidden=False))[0]


def test_ignore_files_that_only_ignore_restore_no_files(root: Path) -> None:
    (root / ".gitignore").write_text("*.pyc\n# !.env\n\\!x\n")
    (root.parent / ".gitconfig").write_text("[user]\n\tname = x\n")
    assert not bring_back_from_above(str(root), str(root.parent))
    assert ".env" not in below(root, Narrowing(hidden=False))[0]


def test_a_pipe_for_an_ignore_file_does_not_hang(root: Path) -> None:
    os.mkfifo(root / ".gitignore")
    assert ".env" in below(root, Narrowing(hidden=False))[0]


PATTERNS = [
    "*", "*.py", "?.py", "[ab].*", "[!a]*", "[^a]*", "[a-c].py", "*/*", "sub/*", "*/", "./*", "su*/c.py", ".e*", ".??*",
    "s*/.h*/*", "nothing*", "a.py*", "*a*", "*.*", "[a-]*", "*/c.py", "../repo/a*", "**", "[.]env", "\\*", "a\\.*",
]  # fmt: skip


@all_rows("pattern", PATTERNS)
def test_pattern_expands_as_in_bash(root: Path, pattern: str) -> None:
    done = subprocess.run(
        ["bash", "--norc", "-c", f"shopt -s nullglob; printf '%s\\n' {pattern}"],
        cwd=root,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    told = done.stdout.split("\n")[:-1]
    found = expand(pattern, str(root))
    assert found is not None
    told = [word for word in told if word]
    assert list(found) == ([] if told == [pattern.replace("\\", "")] and not found else told)


@all_rows("pattern", [".*", ".?", "[z-a]", "[a--b]*", "*a*b*c*d*e*", "s*/.*", "sub//c*", "*//c.py"])
def test_a_pattern_that_may_be_read_otherwise_is_not_known(root: Path, pattern: str) -> None:
    assert expand(pattern, str(root)) is None


def test_pattern_over_non_ascii_names_is_undecided(root: Path) -> None:
    (root / "é").write_text("")
    assert (expand("?", str(root)), expand("[a]*", str(root)), expand("*.py", str(root))) == (None, None, ("a.py",))


def test_too_many_matches_are_not_known(root: Path) -> None:
    for number in range(MAX_MATCHES + 1):
        os.mknod(root / f"f{number}")
    assert expand("f*", str(root)) is None


def planted(tmp_path: Path) -> Path:
    """A repository with ignored secrets. Every file holds the word that is looked for."""
    root = tmp_path.resolve() / "home" / "repo"
    for name in (".env", "cfg/.env", "cfg/a.py", "a.py", "key.pem", "deep/.env/inner", "x"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"TODO {'SECRET' if 'env' in name or 'pem' in name else 'plain'}\n")
    (root / ".gitignore").write_text(".env\n*.pem\nlink\n")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "x")):
        run_git(root, *words)
    return root


LEFT_OUT = """
grep -rn --exclude=.env --exclude=*.pem --exclude-dir=.env TODO .
grep -rn --exclude='.env*' --exclude='key.*' --exclude-dir=.env TODO
grep -rn --include='*' --exclude='.env' --exclude=key.pem --exclude-dir=.env TODO .
grep -rl --exclude=.env --exclude=key.pem --exclude-dir=.env TODO . | xargs head
git grep TODO
git grep -n TODO -- .
git grep TODO -- ':!.env'
git grep TODO -- cfg ':(exclude)*.env'
git grep TODO cfg
git grep --untracked TODO
git grep --cached TODO
cd cfg && git grep TODO
git -C cfg grep TODO
rg --hidden --no-ignore -g '!.env' -g '!key.pem' TODO .
rg -uu -g '*' -g '!**/.env' -g '!*.pem' TODO .
rg -g '!*.pem' TODO .
ag --ignore '*.pem' TODO .
ag --hidden -U --ignore .env --ignore key.pem TODO .
find . -not -name .env -not -name key.pem -not -path './deep/*' -type f | xargs grep TODO
find . ! -name .env ! -path ./key.pem ! -path '*/.env/*' -type f -exec grep TODO {} +
find . -name .env -prune -o -name '*.pem' -prune -o -type f -exec grep -H TODO {} +
find . \\( -name .env -o -path ./key.pem -o -name .git \\) -prune -o -type f -print0 | xargs -0 grep TODO
"""


@all_rows("line", LEFT_OUT.strip().replace("\\\\", "\\").splitlines())
def test_search_that_leaves_the_secrets_out_runs(line: str, tmp_path: Path) -> None:
    assert shows_and_decides(line, planted(tmp_path)) == (False, "auto")


SHOWN_BY = """
grep -rn TODO .
grep -rn --exclude=.env TODO . --exclude-dir=.env
grep -rn --exclude=.env --exclude=key.pem --include='*' TODO .
grep -Rn --exclude=.env --exclude=key.pem --exclude-dir=.env TODO .
grep -rn --exclude=./.env --exclude=key.pem TODO .
grep -n --exclude=.env TODO link
git grep --no-index TODO
git grep --untracked --no-exclude-standard TODO
rg --hidden --no-ignore TODO .
rg --hidden --no-ignore -g '!.env' -g '*' -g '!key.pem' TODO .
rg --hidden --no-ignore -g '!.env' -g '!key.pem' --iglob '*' TODO .
rg --hidden --no-ignore -g '!/cfg/.env' -g '!key.pem' TODO .
ag --hidden -U TODO .
ag -u --ignore .env --ignore key.pem TODO .
find . -not -name .env -type f | xargs grep TODO
find . -type f -exec grep TODO {} + -not -name .env -not -name key.pem
find . -name .env -o -type f -exec grep TODO {} +
find . -not -not -name .env -type f -exec grep TODO {} +
find . -depth -path ./deep -prune -o -path ./key.pem -prune -o -type f -exec grep TODO {} +
"""


@all_rows("line", SHOWN_BY.strip().splitlines())
def test_search_that_shows_a_secret_does_not_run(line: str, tmp_path: Path) -> None:
    root = planted(tmp_path)
    (root / "link").symlink_to(".env")
    assert shows_and_decides(line, root) == (True, "deny")


def test_pruned_names_are_printed_without_an_action(tmp_path: Path) -> None:
    root = planted(tmp_path)
    line = "find . -name .env -prune -o -name '*.pem' -prune -o -type f | xargs grep TODO"
    assert shows_and_decides(line, root) == (True, "confirm")


@all_rows(
    ("line", "form"),
    [
        ("grep -rn TODO .", "--exclude=.env --exclude=key.pem"),
        ("grep -rn TODO cfg > out", "--exclude=.env"),
        ("rg --hidden --no-ignore TODO", "-g '!.env' -g '!key.pem'"),
        ("ag --hidden -U TODO", "--ignore=.env --ignore=key.pem"),
        ("git add -f cfg", "-- ':!cfg/.env'"),
        ("git stash -a", "-- ':!.env' ':!cfg/.env' ':!key.pem' ':!deep/.env/inner'"),
    ],
)
def test_refusal_names_a_form_that_is_allowed(line: str, form: str, tmp_path: Path) -> None:
    root = planted(tmp_path)
    shutil.rmtree(root / "deep")
    form = form.replace(" ':!deep/.env/inner'", "")
    policy = load_policy(str(Path(ROOT) / "policies" / "default.toml"))
    before, behind = (f"git stash push -a {form}", "") if "stash" in line else (line, form)
    allowed = before.replace(" > out", f" {behind} > out") if ">" in line else f"{before} {behind}"
    refused, taken = (
        evaluate(policy, action_for("bash", text, Workspace(str(root), str(tmp_path)))) for text in (line, allowed)
    )
    named = re.search(r"; (.*) leaves? (?:it|them) out", refused.deciding.reason)
    assert (refused.decision, named and sorted(named[1].split())) == (Decision.DENY, sorted(form.split()))
    assert (allowed, taken.decision < Decision.DENY) == (allowed, True)


def test_refusal_names_no_form_that_the_command_has(tmp_path: Path) -> None:
    root = planted(tmp_path)
    shutil.rmtree(root / "deep")
    (root / "link").symlink_to(".env")
    policy = load_policy(str(Path(ROOT) / "policies" / "default.toml"))
    line = "grep -Rn --exclude=.env --exclude=key.pem TODO ."
    refused = evaluate(policy, action_for("bash", line, Workspace(str(root), str(tmp_path))))
    assert refused.decision is Decision.DENY
    assert "leave" not in refused.deciding.reason


HIDDEN = """
grep -rn TODO .
grep -Rn TODO . 2>/dev/null
cd cfg && grep -rn TODO .. | sort
rg --hidden TODO
find . -type f -exec cat {} +
find . -type f | xargs head
cat $(find . -type f)
bash -c 'grep -r TODO cfg'
for f in $(find cfg -type f); do wc -l $f; done
black --check .
"""


@all_rows("line", HIDDEN.strip().splitlines())
def test_reader_runs_without_files_hidden_by_walls(line: str, tmp_path: Path) -> None:
    root = planted(tmp_path)
    policy = load_policy(str(Path(ROOT) / "policies" / "default.toml"))
    action = action_for("bash", line, Workspace(str(root), str(tmp_path)))
    verdict = evaluate(policy, action, hides=True)
    assert (evaluate(policy, action).decision, verdict.decision) == (Decision.DENY, Decision.AUTO)
    assert (verdict.effects.enforcement, "cfg/.env" in verdict.effects.left_out) == (Enforcement.REQUIRED, True)


NOT_HIDDEN = """
cat .env
grep TODO .env .
grep -rn TODO . > out
grep -rn TODO . | tee out
git grep --no-index TODO
git grep TODO HEAD
git stash -a
git add -f .
tar cf x.tar .
grep -rn TODO . && python3 -c 1
docker build .
grep -rn TODO . && git grep --no-index TODO
"""


@all_rows("line", NOT_HIDDEN.strip().splitlines())
def test_line_that_reads_or_writes_hidden_files_otherwise_is_denied(line: str, tmp_path: Path) -> None:
    root = planted(tmp_path)
    policy = load_policy(str(Path(ROOT) / "policies" / "default.toml"))
    action = action_for("bash", line, Workspace(str(root), str(tmp_path)))
    verdict = evaluate(policy, action, hides=True)
    assert (verdict.decision, verdict.effects.left_out) == (Decision.DENY, ())


def test_search_in_an_added_folder_is_refused_though_walls_hide(tmp_path: Path) -> None:
    root = planted(tmp_path)
    (tmp_path / "added").mkdir()
    (tmp_path / "added" / ".env").write_text("SECRET")
    policy = load_policy(str(Path(ROOT) / "policies" / "default.toml"))
    workspace = Workspace(str(root), str(tmp_path), added=[str(tmp_path / "added")])
    action = action_for("bash", f"grep -r TODO {shell_word(tmp_path)}/added", workspace)
    assert evaluate(policy, action, hides=True).decision is Decision.DENY


BUILT = r"""
docker build .                             .env\n**/*.pem\ncfg/.env\ndeep      confirm
podman build -t x .                        **/.env\n*.pem                       confirm
docker buildx build -f Dockerfile .        **/.env\nkey.pem                     confirm
cd cfg && docker build ..                  *\n!a.py                             confirm
make && docker image build .               **/.env\nkey.pem                     confirm
docker build cfg                           **/.env                              deny
docker build .                             .env\nkey.pem                        deny
docker build .                             *\n!cfg                              deny
docker build .                             **/.env\nkey.pem\n!?                 deny
docker build -f D .                        **/.env\nkey.pem                     deny
echo .env > .dockerignore && docker build .  **/.env\nkey.pem                   deny
rm .dockerignore; docker build .           **/.env\nkey.pem                     deny
git checkout main && docker build .        **/.env\nkey.pem                     deny
(cd cfg || cd x); docker build .           **/.env\nkey.pem                     confirm
cd cfg || cd deep; docker build .          **/.env\nkey.pem                     deny
tar cf x.tar .                             **/.env\nkey.pem                     deny
"""


@all_rows("row", BUILT.strip().splitlines())
def test_build_reads_files_not_excluded_by_its_ignore_files(row: str, tmp_path: Path) -> None:
    line, text, decision = re.split(r"  +", row)
    root = planted(tmp_path)
    (root / ".dockerignore").write_text(text.replace("\\n", "\n"))
    (root / "D.dockerignore").write_text("**/.env\n")
    assert built(line, root).decision.word == decision


def test_link_in_place_of_an_ignore_file_excludes_no_files(tmp_path: Path) -> None:
    root = planted(tmp_path)
    (root / "x").write_text("**/.env\n*.pem")
    (root / ".dockerignore").symlink_to("x")
    assert built("docker build .", root).decision is Decision.DENY


def test_refused_build_names_the_lines_that_leave_the_files_out(tmp_path: Path) -> None:
    root = planted(tmp_path)
    shutil.rmtree(root / "deep")
    ignore_file = root / ".dockerignore"
    ignore_file.write_text("x\n!cfg\n")
    named = re.search(
        r"; (.*) added beforehand at the end of .dockerignore", built("docker build .", root).deciding.reason
    )
    assert named is not None
    assert named[1].split(" and ") == ["**/.env", "**/key.pem"]
    with ignore_file.open("a") as file:
        file.write("\n".join(named[1].split(" and ")))
    assert built("docker build .", root).decision is Decision.CONFIRM


def built(line: str, root: Path) -> Verdict:
    policy = load_policy(str(Path(ROOT) / "policies" / "default.toml"))
    return evaluate(policy, action_for("bash", line, Workspace(str(root), str(root.parent))))


def shows_and_decides(line: str, root: Path) -> tuple[bool, str]:
    """Return whether a line really prints a secret (as if it did what was decided, where its program is not installed)."""
    policy = load_policy(str(Path(ROOT) / "policies" / "default.toml"))
    decision = evaluate(policy, action_for("bash", line, Workspace(str(root), str(root.parent)))).decision
    if shutil.which(line.partition(" ")[0]) is None:
        return decision is Decision.DENY, decision.word
    done = subprocess.run(["bash", "-c", line], cwd=root, capture_output=True, check=False, timeout=120)
    return b"SECRET" in done.stdout, decision.word
