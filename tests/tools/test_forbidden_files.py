"""The files of a workspace that rules forbid: which they are, in which places they are held, and what need not be looked at."""

from __future__ import annotations

from pathlib import Path

from rows import all_rows

from harness.actions import Access
from harness.policy.loader import load_policy, parse_policy
from harness.policy.policy import Policy
from harness.tools.forbidden_files import excepted_folders, forbidden_files, rules_about_files, with_any_name

SHIPPED = Path("policies/default.toml").read_bytes()


def forbids(path: str, but: str = "", more: str = "") -> bytes:
    more += f"except = {but}\n" if but else ""
    rule = f'[[rule]]\nid = "own"\ndecision = "deny"\naccess = ["write"]\npath = {path}\nreason = "No."\n{more}'
    return f"version = 1\n{rule}".encode()


def parsed(text: bytes) -> Policy:
    return parse_policy(text, "p.toml")


@all_rows(
    ("policy", "files", "meant", "places"),
    [
        (SHIPPED, "a.py .env sub/.env sub/.env.example", ".env sub/.env", ".env sub/.env"),
        (SHIPPED, "node_modules/x/.env keys/server.pem", "keys/server.pem", "keys/server.pem"),
        (SHIPPED, "a.py", "", ""),
        (SHIPPED, ".git/x.key .ssh/config .ssh/a/b", ".git/x.key .ssh/a/b .ssh/config", ".git/x.key .ssh"),
        (forbids('["/m/**"]'), "m/a m/b/c n/m/a", "m/a m/b/c", "m"),
        (forbids('["m/"]'), "m/a n/m/a", "m/a n/m/a", "m n/m"),
        (forbids('["/m/*.sql"]'), "m/a.sql m/b", "m/a.sql", "m/a.sql"),
        (forbids('["/m/"]', '["*.md"]'), "m/a m/b/c m/README.md", "m/a m/b/c", "m/a m/b"),
        (forbids('["/m/"]', '["node_modules/"]'), "m/a m/node_modules/x", "m/a", "m/a"),
        (forbids('["**"]', '["/src/"]'), "a b/c b/d/e src/f", "a b/c b/d/e", "a b"),
        (forbids('["*"]'), "a b/c", "a b/c", "a b"),
        (forbids('["*.lock"]', more='tool = ["write_file"]'), "a.lock", "", ""),
    ],
)
def test_rules_about_files_list_the_forbidden_ones(policy: bytes, files: str, meant: str, places: str) -> None:
    rules = rules_about_files(parsed(policy), "bash")
    names = files.split()
    folders = {"/".join(name.split("/")[:end]) for name in names for end in range(name.count("/") + 1)}
    every = with_any_name(names, sorted(folders))
    found = forbidden_files(rules, Access.WRITE, every)
    assert sorted(found.files) == meant.split()
    assert list(found.places) == places.split()


@all_rows(
    ("policy", "left_out"),
    [
        (SHIPPED, {"node_modules", "site-packages"}),
        (forbids('["*.lock"]'), set()),
        (
            SHIPPED
            + b'[[rule]]\nid = "own"\ndecision = "deny"\naccess = ["read"]\npath = [".npmrc"]\nreason = "No."\n',
            set(),
        ),
        (forbids('["*.lock"]', '["node_modules/", "/a/", "b/c/", "d*/", "e"]'), {"node_modules"}),
        (b"version = 1", set()),
    ],
)
def test_excepted_folders_are_listed(policy: bytes, left_out: set[str]) -> None:
    assert excepted_folders(rules_about_files(parsed(policy), "bash")) == left_out


def test_settings_of_git_are_not_hidden_since_git_reads_them() -> None:
    names = [
        ".env",
        ".git/config",
        ".git/config.worktree",
        ".git/modules/a/config",
        "sub/.git/config",
        "config.worktree",
    ]
    rules = rules_about_files(load_policy("workspace"), "bash")
    every = with_any_name(names, ["", ".git", ".git/modules", ".git/modules/a", "sub", "sub/.git"])
    assert forbidden_files(rules, Access.READ, every).places == (".env", "config.worktree")
    assert ".git/config" in forbidden_files(rules, Access.WRITE, every).files
