"""What a command opens beyond the workspace walls when a person says yes to it, by its words: one table."""

from __future__ import annotations

from pathlib import Path

import pytest
from rows import all_rows

from harness.actions import Decision, WallsLevel
from harness.app.policy.judged_call import action_for
from harness.files.workspace import Workspace
from harness.policy.loader import load_policy, parse_policy
from harness.policy.openings import runs_repository_code
from harness.policy.verdict import evaluate
from policies import AUTO

PYPI = "network pypi.org, files.pythonhosted.org"
NPM = "network *.npmjs.org, *.yarnpkg.com"
CRATES = "network index.crates.io, static.crates.io, crates.io"
ANY = "network: any host"
CONFIG = "changes .git/config"
CACHE = "writes ~/.cache/pip"
GITHUB = (
    "github.com, codeload.github.com, objects.githubusercontent.com, release-assets.githubusercontent.com, "
    "raw.githubusercontent.com"
)

OPENED: list[tuple[str, tuple[str, ...]]] = [
    # nothing of the words needs more than the workspace
    ("python3 x.py", ()),
    ("pytest -q", ()),
    ("make", ()),
    ("./build.sh", ()),
    ("frobnicate --all", ()),
    ("npm test", ()),
    ("npm run build", ()),
    ("cargo build", ("writes ~/.cargo/registry", "writes ~/.cargo/git")),
    ("uv run pytest", ()),
    ("git commit -m x", ()),
    ("git stash", ()),
    ("docker --version", ()),
    # package managers, by the hosts of their index
    ("pip install x", (PYPI, "writes ~/.cache/pip", "changes .venv")),
    ("python3 -m pip install x", (PYPI, "changes .venv")),
    (".venv/bin/pip install x", (PYPI, "changes .venv")),
    ("pip install -i https://mirror.example.org/simple x", (f"{PYPI}, mirror.example.org", CACHE, "changes .venv")),
    ("pip install git+https://git.example.org/x", (f"{PYPI}, git.example.org", "writes ~/.cache/pip", "changes .venv")),
    ("pip install git+ssh://git@example.org/x", (ANY, "writes ~/.cache/pip", "changes .venv")),
    ("uv pip install x", (PYPI, "changes .venv")),
    ("uv sync", (PYPI, "writes ~/.cache/uv", "changes .venv")),
    ("npm ci", (NPM, "writes ~/.npm")),
    ("npx --yes x", (NPM, "writes ~/.npm")),
    ("cargo fetch", (CRATES, "writes ~/.cargo/registry", "writes ~/.cargo/git")),
    ("go mod download", ("network proxy.golang.org, sum.golang.org", "writes ~/go/pkg", "writes ~/.cache/go-build")),
    ("timeout 60 pip install x", (PYPI, "writes ~/.cache/pip", "changes .venv")),
    ("bash -c 'pip install x'", (PYPI, "writes ~/.cache/pip", "changes .venv")),
    ("source .venv/bin/activate && pip install x", (PYPI, "changes .venv")),
    ("mvn -q test", (ANY, "writes ~/.m2/repository")),
    ("mvn -o test", ("writes ~/.m2/repository",)),
    # addresses among the words
    ("curl https://example.org/x", ("network example.org",)),
    ("curl -sL https://github.com/a/b/releases/x",
     (f"network {GITHUB}",)),
    ("curl http://localhost:8000/", ("network localhost:8000",)),
    ("curl example.org", (ANY,)),
    ("curl ftp://example.org/x", (ANY,)),
    ("ssh example.org ls", (ANY,)),
    # git, by the remotes of the repository
    ("git push origin main", ("network git.example.org",)),
    ("git push -u origin x", ("network git.example.org", CONFIG)),
    ("git fetch", ("network git.example.org",)),
    ("git push https://elsewhere.example.org/x main", ("network elsewhere.example.org",)),
    ("git push git@example.org:a/b main", (ANY,)),
    ("git push ./bare.git main", ()),
    ("git clone https://git.example.org/a/b", ("network git.example.org", "changes .git")),
    ("git branch -d x", (CONFIG,)),
    ("git switch -c x", (CONFIG,)),
    ("git remote add o https://git.example.org/x", (CONFIG,)),
    # sockets, places outside, protected places
    ("docker ps", ("a Unix socket: docker's daemon",)),
    ("docker run x", ("a Unix socket: docker",)),
    ("sed -i s/a/b/ .github/workflows/ci.yml", ("changes .github/workflows/ci.yml",)),
    ("rm -rf .git", ("changes .git",)),
    ("git config core.pager x", (CONFIG,)),
    ("git -C . config set alias.x '!sh'", (CONFIG,)),
    ("git config --unset core.pager", (CONFIG,)),
    ("git config --global core.pager x", ()),
    ("git config core.pager", ()),
    ("git config --list", ()),
    ("pre-commit install", ("changes .git/hooks", CONFIG, "changes .husky")),
    ("python3 x.py > /dev/null", ()),
]  # fmt: skip


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    git = tmp_path / "w" / ".git"
    for folder in (git / "objects", git / "refs", tmp_path / "w/.github/workflows"):
        folder.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text('[remote "origin"]\n\turl = https://git.example.org/a/b.git\n')
    (tmp_path / "w/.github/workflows/ci.yml").write_text("a\n")
    return Workspace(str(tmp_path / "w"), str(tmp_path))


@all_rows(("line", "opened"), OPENED)
def test_yes_opens_what_the_words_need(workspace: Workspace, line: str, opened: tuple[str, ...]) -> None:
    effects = evaluate(load_policy("default"), action_for("bash", line, workspace)).effects
    assert effects.opened == opened
    assert (effects.level is WallsLevel.OPENED) == bool(opened)


UNASKED: list[tuple[str, tuple[str, ...], bool]] = [
    ("git checkout -b x origin/far", (".git/config",), True),
    ("git checkout -- src; cat a", (".git/config",), True),
    ("git checkout -- src && python3 x.py", (), True),
    ("uv venv", (".venv",), False),
    ("uv venv; python3 y.py", (), False),
    ("git status && python3 x.py", (), False),
    ("git add -A", (), True),
    ("python3 x.py", (), False),
    ("pre-commit run", (), True),
    ("npm version patch", (), True),
    ("npm test", (), False),
]
"""Commands that a rule allows, each with the protected places that are open to it, and whether git's data is."""


@all_rows(("line", "changes", "writes_git"), UNASKED)
def test_code_opens_no_place_unasked(
    workspace: Workspace, line: str, changes: tuple[str, ...], writes_git: bool
) -> None:
    verdict = evaluate(parse_policy(AUTO.encode(), "policy.toml"), action_for("bash", line, workspace))
    assert verdict.decision is Decision.AUTO
    assert (verdict.effects.changes, verdict.effects.writes_git) == (changes, writes_git)


@all_rows(
    "config",
    ['[url "git@x:"]\n\tinsteadOf = https://x/\n', "[include]\n\tpath = ../x\n", '[remote "b"]\n\turl = "a b"\n'],
)
def test_remotes_that_are_not_plain_need_the_whole_network(workspace: Workspace, config: str) -> None:
    with open(f"{workspace.root}/.git/config", "a", encoding="utf-8") as file:
        file.write(config)
    effects = evaluate(load_policy("default"), action_for("bash", "git push", workspace)).effects
    assert effects.opened == (ANY,)


@all_rows(
    ("line", "runs"),
    [
        ("git push --receive-pack=./run.sh ./bare.git HEAD", True),
        ("git push --rec=./run.sh origin", True),
        ("git fetch --upload-pack ./run.sh origin", True),
        ("git ls-remote -u ./run.sh origin", True),
        ("git push ./bare.git", True),
        ("git push origin main", False),
        ("git push -u origin main", False),
        ("pip install .", True),
        ("pip install -e .[dev]", True),
        ("pip install ./pkg", True),
        ("pip install x", False),
        ("npm install ../pkg", True),
        ("npm ci", False),
    ],
)  # fmt: skip
def test_grant_with_the_network_covers_no_program_of_the_repository(
    workspace: Workspace, line: str, runs: bool
) -> None:
    (command, *_) = action_for("bash", line, workspace).facets
    assert runs_repository_code(command) is runs  # type: ignore[arg-type]
