"""`harness policy`: check, explain, test, replay, trust; the real program, and logs that real runs have written."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from forged_logs import sha256
from log_scene import filled
from places import ROOT
from program import Done, Program
from rows import all_rows

from harness.actions import JsonValue
from harness.app.policy.cases import CASE, FAILED, read_cases
from harness.app.policy.explain import BY_WORD, EXIT_CODES
from harness.app.policy.judged_call import CallReader
from harness.app.policy.policy_command import WARNED
from harness.app.policy.replay import CHANGED
from harness.digest import digest_of
from harness.errors import UsageError
from harness.files.workspace import Workspace
from harness.gate.registry import ToolRegistry
from harness.log.action_log import ActionLog
from harness.messages import ToolCall
from harness.models.scripted import Reply, call, replies
from harness.plugins.mcp.pins import PinFile, pins_folder
from harness.plugins.mcp.tool_description import ToolDescription, described
from harness.policy.loader import load_policy, parse_policy, shipped_policy_path
from harness.policy.policy import Policy
from harness.session.state import State
from harness.tool_kinds import SHIPPED_TOOLS
from harness.tools import builtin_tools
from policies import AUTO

Write = Callable[[str, str], Path]

RULES = """\
version = 1

[tools]
TOOLS

[[rule]]
id       = "secrets"
decision = "deny"
path     = [".env", "*.pem"]
reason   = "Secrets stay out."
hint     = "Ask for the name."
match    = [".env"]

[[rule]]
id       = "force-push"
decision = "deny"
argv     = ["git", "push"]
flags    = ["-f", "--force"]
reason   = "People do that."
match    = ["git push -f"]

[[rule]]
id       = "look"
decision = "auto"
argv     = [["ls", "cat"], "..."]
flags    = ["-l"]
reason   = "Looks."
""".replace("TOOLS", "\n".join(f'{tool} = "{"auto" if tool == "read_file" else "confirm"}"' for tool in SHIPPED_TOOLS))


def by_default(policy: Policy, tool: str) -> str:
    """Return what a verdict by the default for `tool` says that it is by: `default for bash (rules.toml:7)`."""
    (found,) = (default for default in policy.defaults if default.tool == tool)
    return f"default for {found.subject} ({os.path.basename(found.origin.file)}:{found.origin.line})"


LOADED = parse_policy(RULES.encode(), "rules.toml")
RULE_AT = {rule.id: str(rule.origin) for rule in LOADED.rules}
"""Where each rule of RULES begins: `rules.toml:9`."""
OF_BASH = by_default(LOADED, "bash")


@pytest.fixture
def rules(in_workspace: Write) -> str:
    """A policy in the workspace, by the name that a command line gives it."""
    return in_workspace("rules.toml", RULES).name


# --- explain ---

EXPLAINED = [
    pytest.param("bash", "ls -l src", "auto", "rule look (rules.toml:", id="a command that a rule covers"),
    pytest.param("bash", "git -C sub push --force", "deny", "rule force-push (rules.toml:", id="past global options"),
    pytest.param("bash", "rm -rf /", "block", "built-in delete-tree", id="a recursive delete of the root"),
    pytest.param("bash", "frobnicate", "confirm", OF_BASH, id="a default"),
    pytest.param("bash", "cat .env", "deny", "rule secrets (rules.toml:", id="a secret by a command"),
    pytest.param("bash", 'eval "$x"', "confirm", "built-in opaque", id="what cannot be understood"),
    pytest.param("bash", "cat " + "x/" * 2500, "confirm", "built-in outside", id="a path that cannot be followed"),
    pytest.param(
        "bash", "cat /proc/self/cwd/x", "confirm", "built-in outside", id="a link that depends on who follows"
    ),
    pytest.param("read_file", ".env", "deny", "rule secrets (rules.toml:", id="a secret"),
    pytest.param("read_file", "src/a.py", "auto", by_default(LOADED, "read_file"), id="a plain file"),
    pytest.param("write_file", ".github/workflows/x.yml", "confirm", "built-in protected", id="a protected file"),
    pytest.param("write_file", "rules.toml", "block", "built-in own-files", id="the policy itself"),
    pytest.param("edit_file", "a.pem", "deny", "rule secrets (rules.toml:", id="an edit"),
    pytest.param("read_file", "/etc/passwd", "confirm", "built-in outside", id="outside the workspace"),
]


@all_rows(("tool", "what", "decision", "by"), EXPLAINED)
def test_explain_names_the_deciding_rule_and_exits_with_the_decision(
    program: Program, rules: str, tool: str, what: str, decision: str, by: str
) -> None:
    """The decision, the rule with file and line, and the reason."""
    done = program.run("policy", "explain", "--policy", rules, "--tool", tool, what)
    lines = dict(line.split(": ", 1) for line in done.out.partition("\n\n")[0].splitlines())
    assert (done.code, lines["decision"], done.err) == (EXITS[decision], decision, "")
    assert lines["decided by"].startswith(by)
    if by.endswith(":"):
        assert lines["decided by"].rstrip(")").rpartition(":")[2].isdigit()


TWO = {
    "strict.toml": """version = 1
[tools]
bash = "deny"
default = "deny"
[[rule]]
id = "a"
decision = "auto"
argv = ["make"]
[[rule]]
id = "b"
decision = "confirm"
argv = ["go"]
[sandbox]
network = false
""",
    "lax.toml": """version = 1
[tools]
bash = "confirm"
default = "auto"
readers = true
[[rule]]
id = "a"
decision = "auto"
argv = ["make"]
network = true
[[rule]]
id = "b"
decision = "auto"
argv = [["pytest", "go"]]
[[rule]]
id = "c"
decision = "confirm"
argv = ["cargo"]
""",
}


@all_rows(
    ("what", "decision"),
    [
        ("make", "auto"),  # both say so
        ("go", "confirm"),  # the stricter of two rules
        ("pytest", "deny"),  # one's rule does not lift the other's default
        ("cargo", "deny"),
        ("ls", "deny"),  # only one lets readers run
        ("touch x", "deny"),
    ],
)
@all_rows("order", [("strict.toml", "lax.toml"), ("lax.toml", "strict.toml"), ("lax.toml", "strict.toml", "lax.toml")])
def test_strictest_of_several_policies_decides(
    program: Program, in_workspace: Write, order: tuple[str, ...], what: str, decision: str
) -> None:
    for name, text in TWO.items():
        in_workspace(name, text)
    named = [word for name in order for word in ("--policy", name)]
    done = program.run("policy", "explain", *named, "--json", what)
    told = json.loads(done.out)
    assert (told["decision"], done.code) == (decision, EXITS[decision])
    assert told["effects"]["network"] is False


def test_run_reports_and_records_each_policy(program: Program, in_workspace: Write) -> None:
    for name, text in TWO.items():
        in_workspace(name, text)
    base = program.serve(replies(Reply(text="done")))
    log = program.home / "log.jsonl"
    done = program.run(
        "run", "--base-url", base, "--model", "m", "--policy", "strict.toml", "--policy", "lax.toml",
        "--log", str(log), "go",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "strict.toml" in done.err
    assert "lax.toml" in done.err
    started = json.loads(log.read_text().splitlines()[0])
    assert [Path(str(one["path"])).name for one in started["policy_files"]] == ["strict.toml", "lax.toml"]
    pinned = program.run("run", "--policy", "ci", "--policy", "readonly", "--policy-sha256", "0" * 64, "go")
    assert (pinned.code, "readonly.toml: its SHA-256 is" in pinned.err) == (2, True)
    both = started["policy_sha256"]
    words = (
        "run",
        "--policy",
        "lax.toml",
        "--policy",
        "strict.toml",
        "--policy-sha256",
        both,
        "--base-url",
        base,
        "go",
    )
    assert "SHA-256" not in program.run(*words).err


EXITS = {"auto": 0, "confirm": 10, "deny": 20, "block": 30}


def test_each_decision_has_its_exit_code() -> None:
    assert {decision.word: code for decision, code in EXIT_CODES.items()} == EXITS


@all_rows(
    "words",
    [
        ("--tool", "red_file", "x"),
        ("--tool", "read_file", ""),
        ("--policy", "none.toml", "ls"),
        ("--cwd", "no", "ls"),
        ("echo 'x",),  # bash itself refuses it
        (" ",),
        (),
    ],
)
def test_unexplainable_arguments_are_a_usage_error(program: Program, rules: str, words: tuple[str, ...]) -> None:
    done = program.run("policy", "explain", *words)
    assert (done.code, done.out, "Traceback" in done.err) == (2, "", False)


def table_of(text: str) -> list[list[str]]:
    """Return the cells of the table of an explanation, by where its headings begin."""
    head, *rows = text.partition("\n\n")[2].splitlines()
    starts = [head.index(word) for word in ("part", "verdict", "decided by", "at ", "why")]
    ends = [*starts[1:], 10_000]
    return [[row[a:b].strip() for a, b in zip(starts, ends, strict=True)] for row in rows]


def test_the_table_has_a_line_for_each_part(program: Program, rules: str) -> None:
    """Facet, verdict, what decided, file and line, reason; operands with nothing against them are left out."""
    done = program.run("policy", "explain", "--policy", rules, "ls src && cat .env; frobnicate")
    rows = table_of(done.out)
    assert [row[:4] for row in rows] == [
        ["ls src", "auto", "rule look", RULE_AT["look"]],
        ["cat .env", "auto", "rule look", RULE_AT["look"]],
        [rows[2][0], "deny", "rule secrets", RULE_AT["secrets"]],
        ["frobnicate", "confirm", "default for bash", OF_BASH.rpartition("(")[2].rstrip(")")],
    ]
    assert rows[2][0].endswith(" .env")
    assert (rows[0][4], rows[2][4]) == ("Looks.", "Secrets stay out.")
    assert rows[3][4] == "there is no model of frobnicate"


@all_rows(
    ("tool", "words", "code", "part"),
    [
        ("write_file", '{"path": ".github/workflows/x.yml", "content": "x"}', 10, "write .github/workflows/x.yml"),
        ("write_file", ' {"path": "src/a.py"}', 10, "write src/a.py"),
        ("read_file", '{"path": "src/a.py", "limit": 5}', 0, "read src/a.py"),
        ("bash", '{"command": "ls src"}', 0, "ls src"),
        ("bash", "{ ls src; }", 0, "ls src"),
        ("read_file", '{"path": "a"', 2, "not valid JSON"),
        ("read_file", '{"file": "a"}', 2, "file"),
        ("read_file", "{}", 2, "path"),
        ("read_file", "./{a}", 0, "read ./{a}"),
        ("Bash", '{"command": "ls src", "description": "d"}', 0, "ls src"),
        ("Bash", '{"command": "ls src", "dangerouslyDisableSandbox": true}', 10, "unconfined"),
        ("Read", '{"file_path": "config/.env"}', 20, "config/.env"),
        ("view", '{"path": "config/.env"}', 20, "config/.env"),
        (
            "apply_patch",
            '{"command": "*** Begin Patch\\n*** Add File: .git/hooks/x\\n+x\\n*** End Patch"}',
            10,
            ".git/hooks/x",
        ),
        ("WebFetch", '{"url": "http://10.0.0.1/", "prompt": "p"}', 20, "private-address"),
        ("TodoWrite", '{"todos": []}', 0, "read"),
        ("Read", '{"unheard_of": 1}', 10, "Read"),
        ("Read", "src/a.py", 2, "as a JSON object"),
    ],
)
def test_explain_takes_arguments_as_json(
    program: Program, rules: str, tool: str, words: str, code: int, part: str
) -> None:
    done = program.run("policy", "explain", "--policy", rules, "--tool", tool, words)
    assert (done.code, part in (done.err if code == 2 else done.out)) == (code, True), done


def test_explain_in_a_subfolder_is_by_the_policy_of_the_repository(program: Program) -> None:
    sub, top = program.workspace / "sub", program.workspace
    for folder in (top / ".git", top / ".harness", sub):
        folder.mkdir()
    rule = '[[rule]]\nid = "d"\ndecision = "deny"\npath = ["/sub/d/"]\nreason = "not that"\n'
    (top / ".harness" / "policy.toml").write_text(f"version = 1\n{rule}")
    for words, code in (
        (("cat d/x",), 20),
        (("--tool", "read_file", "d/x"), 20),
        (("--tool", "Read", '{"file_path": "d/x"}'), 20),
        (("--cwd", ".", "cat d/x"), 20),  # in this folder as workspace the strict rules at the top hold
    ):
        done = program.run("policy", "explain", *words, cwd=sub)
        assert (done.code, "judged in the repository" in done.err) == (code, "--cwd" not in words), done


NEAREST = """
version = 1
[tools]
bash = "deny"
write_file = "confirm"
default = "confirm"
[[rule]]
id = "tests"
decision = "auto"
argv = ["pytest", "..."]
flags = ["-q"]
[[rule]]
id = "web"
decision = "auto"
argv = ["pnpm", ["test", "lint"]]
[[rule]]
id = "web-fix"
decision = "auto"
argv = ["pnpm", "lint", "--fix"]
[[rule]]
id = "docs"
decision = "auto"
tool = ["write_file"]
access = ["write"]
path = ["/docs/"]
except = ["/docs/index.md"]
[[rule]]
id = "issues"
decision = "auto"
tool = ["mcp__github__get_issue"]
where = {owner = ["me"], repo = ["mine"]}
"""


@all_rows(
    ("tool", "what", "words"),
    [
        ("bash", "python -m pytest", "rule tests (near.toml:6): the program is 'python', not 'pytest'"),
        ("bash", "uv run pytest", "rule tests (near.toml:6): the program is 'uv', not 'pytest'"),
        ("bash", "./venv/bin/pytest -q", "rule tests (near.toml:6): the program is './venv/bin/pytest', not 'pytest'"),
        ("bash", "pytest -x", "rule tests (near.toml:6): the option '-x' is not in `flags`"),
        ("bash", "pnpm lint --fast", "rule web (near.toml:11): the option '--fast' is not in `flags`"),
        ("bash", "pnpm install", "rule web (near.toml:11): word 2 is 'install', not 'test' or 'lint'"),
        ("bash", "frobnicate", None),
        ("write_file", "docs/index.md", "rule docs (near.toml:19): `except` covers 'docs/index.md'"),
        ("write_file", "src/a.py", None),
        ("mcp__github__get_issue", '{"owner": "me", "repo": "x"}',
         "rule issues (near.toml:26): `where` does not cover 'x' in the argument 'repo'"),
        ("mcp__github__delete_issue", "{}", None),
    ],
)  # fmt: skip
def test_explain_names_the_nearest_rule_of_a_default(
    program: Program, in_workspace: Write, tool: str, what: str, words: str | None
) -> None:
    in_workspace("near.toml", NEAREST.lstrip())
    given = ("policy", "explain", "--policy", "near.toml", "--tool", tool)
    (first, *_) = json.loads(program.run(*given, "--json", what).out)["facets"]
    out = program.run(*given, what).out
    assert (first["nearest"] or "").startswith(words or "")
    assert (first["nearest"] is None, f"nearest is {words}" in out, "nearest" in out) == (
        not words,
        bool(words),
        bool(words),
    )


def test_the_effects_name_the_sockets_that_a_command_needs(program: Program) -> None:
    explained = program.run("policy", "explain", "--policy", "default", "docker ps").out
    assert "effects: reads nothing; writes nothing\nwalls: opened (a Unix socket: docker" in explained
    assert "Unix" not in program.run("policy", "explain", "--policy", "default", "ls").out


def test_the_json_has_every_facet_and_where_it_was_decided(program: Program, rules: str) -> None:
    told = json.loads(program.run("policy", "explain", "--policy", rules, "--json", "ls -l src && git push -f").out)
    assert list(told) == ["tool", "text", "decision", "by", "reason", "hint", "facets", "effects", "hooks"]
    assert list(told["effects"]) == [
        "read",
        "write",
        "named",
        "granted",
        "network",
        "hosts",
        "sockets",
        "walls",
        "opened",
        "hide",
        "left_out",
        "enforcement",
        "unasked",
    ]
    assert {tuple(facet) for facet in told["facets"]} == {tuple(told["facets"][0])}
    by_name = {facet["facet"]: facet for facet in told["facets"]}
    assert (told["decision"], told["by"], told["hint"]) == ("deny", f"rule force-push ({RULE_AT['force-push']})", "")
    look, push = by_name["ls -l src"], by_name["git push -f"]
    assert (look["kind"], look["rule"], f"{look['file']}:{look['line']}") == ("Command", "look", RULE_AT["look"])
    assert (push["decision"], push["source"], push["argv"]) == ("deny", "rule", ["git", "push", "-f"])
    operand = next(
        facet for facet in told["facets"] if facet["kind"] == "PathAccess" and facet["facet"].endswith("src")
    )
    assert (operand["source"], operand["place"], operand["rule"], operand["argv"]) == ("covered", "inside", None, None)


def test_decisions_of_a_model_name_the_line_that_allows_it(program: Program, in_workspace: Write) -> None:
    """A reader by its model and the line `readers`; a wrapper by its model alone; what is no reader says why."""
    in_workspace("readers.toml", 'version = 1\n[tools]\nbash = "confirm"\nreaders = true\n')
    command = "timeout 5 ls src; touch a"
    rows = table_of(program.run("policy", "explain", "--policy", "readers.toml", command).out)
    assert [row[:4] for row in rows] == [
        ["timeout 5 ls src", "auto", "model of timeout", ""],
        ["ls src", "auto", "model of ls, readers", "readers.toml:4"],
        ["touch a", "confirm", "default for bash", "readers.toml:3"],
    ]
    assert rows[2][4] == "it writes files"
    told = json.loads(program.run("policy", "explain", "--policy", "readers.toml", "--json", command).out)
    by_name = {facet["facet"]: facet for facet in told["facets"]}
    look = by_name["ls src"]
    assert (look["source"], look["rule"], look["file"], look["line"]) == ("reader", None, "readers.toml", 4)
    assert (look["act"], look["model"], look["gap"], look["network"]) == ("looks", "ls", "", False)
    assert (by_name["timeout 5 ls src"]["source"], by_name["touch a"]["act"]) == ("model", "writes")


def test_several_words_are_quoted_into_one_command(program: Program, rules: str) -> None:
    out = program.run("policy", "explain", "--policy", rules, "cat", "a b; rm x").out
    assert out.splitlines()[:2] == ["bash: cat 'a b; rm x'", "decision: auto"]


def test_hostile_words_are_shown_harmlessly(program: Program, rules: str) -> None:
    for words in (("cat \x1b[2J\u202ex",), ("--json", "cat \x1b[2J\u202ex")):
        done = program.run("policy", "explain", "--policy", rules, *words)
        assert ("\x1b" in done.out, "\u202e" in done.out) == (False, False)


def test_effects_of_a_permitted_call_are_listed(program: Program, rules: str) -> None:
    def effects(*words: str) -> list[str]:
        lines = program.run("policy", "explain", "--policy", rules, *words).out.splitlines()
        return [line for line in lines if line.startswith(("effects: ", "walls: "))]

    assert effects("--tool", "write_file", "src/new.py") == ["effects: reads src/new.py; writes src/new.py"]
    assert effects("--tool", "edit_file", "a.py") == ["effects: reads a.py; writes a.py"]
    assert effects("frobnicate") == ["walls: workspace"]
    assert effects("curl example.org") == [
        "effects: reads nothing; writes nothing",
        "walls: opened (network: any host)",
    ]
    assert effects("git push -f") == []


@all_rows("columns", [40, 80, 120, 200])
def test_explanation_is_complete_at_any_width(program: Program, rules: str, columns: int) -> None:
    """Cells go on in the next row, and where there is no room for columns each part is a record."""
    command = "cat " + "a-long-name/" * 9 + "x && frobnicate " + "--with-a-long-option " * 5
    _, shown = program.at_terminal("policy", "explain", "--policy", rules, command, columns=columns, NO_COLOR="1")
    table = shown.partition("\n\n")[2]
    assert max(map(len, shown.splitlines())) <= columns
    assert ("\n  why: " in table, "\x1b" in shown) == (columns == 40, False)
    assert "..." not in table


def test_destructive_call_is_announced_with_its_confirmation_word(program: Program, rules: str) -> None:
    out = program.run("policy", "explain", "--policy", rules, "rm -rf build && git push").out
    assert "destroys: rm -r deletes build with all that is in it\n" + BY_WORD in out
    assert "destroys" not in program.run("policy", "explain", "--policy", rules, "touch a").out
    assert BY_WORD not in program.run("policy", "explain", "--policy", rules, "rm -rf /").out


def test_explained_action_equals_the_prepared_one(tmp_path: Path) -> None:
    """The folder that a command starts in included: operands are taken from there, and it is read itself."""
    (tmp_path / "src").mkdir()
    workspace = Workspace(str(tmp_path))
    registry = ToolRegistry(builtin_tools(workspace, environment={}))
    reader = CallReader({})
    for tool, arguments in (
        ("bash", {"command": "cat ../.env x", "cwd": "src"}),
        ("bash", {"command": "ls && cat a > b", "cwd": "src", "timeout_s": 3}),
        ("bash", {"command": "ls; cat x", "cwd": "."}),
        ("read_file", {"path": "src/../x", "offset": 3}),
        ("write_file", {"path": "src/x", "content": "y"}),
    ):
        raw = json.dumps(arguments)
        real = registry.prepare(ToolCall(id="1", name=tool, arguments=raw))
        made = reader.action(tool, raw, workspace)
        assert (made.facets, made.text, made.default_of) == (real.facets, real.text, real.default_of)


def test_a_call_under_other_limits_is_a_call(tmp_path: Path) -> None:
    made = CallReader({}).action("bash", '{"command": "ls", "timeout_s": 7200}', Workspace(str(tmp_path)))
    assert made.text == "ls"


# --- check ---


def test_check_reports_every_file(program: Program) -> None:
    """Good files are named with their digest, bad ones with file, line and key; exit 2 if any is bad."""
    good, bad = program.home / "good.toml", program.home / "bad.toml"
    good.write_text("version = 1\n")
    bad.write_text("version = 1\n[limits]\nturn = 3\n")
    done = program.run("policy", "check", str(good), str(bad), "ci")
    assert done.code == 2
    assert f"{good}: good: 0 rules" in done.out
    assert "ci: good: " in done.out
    assert f"{bad}:3: [limits] turn: unknown key; did you mean turns?" in done.err


WIDE = 'version = 1\n[[rule]]\nid = "all\\u001b"\ndecision = "auto"\nargv = ["git", "..."]\n'


@all_rows(
    ("texts", "flags", "code"),
    [
        pytest.param([RULES], [], 0, id="nothing to say"),
        pytest.param([RULES], ["--strict"], 0, id="nothing to say, strictly"),
        pytest.param([WIDE], [], 0, id="a warning"),
        pytest.param([RULES, WIDE], ["--strict"], 1, id="a warning, strictly"),
        pytest.param([WIDE, "version = 2"], ["--strict"], 2, id="an error is worse"),
    ],
)
def test_check_warns_and_fails_only_when_strict(
    program: Program, in_workspace: Write, texts: list[str], flags: list[str], code: int
) -> None:
    names = [in_workspace(f"p{number}.toml", text).name for number, text in enumerate(texts)]
    done = program.run("policy", "check", *flags, *names)
    found = [line for line in done.out.splitlines() if "warning" in line]
    wanted = [
        f"{name}:2: warning: [[rule]] all\\x1b: git" for name, text in zip(names, texts, strict=True) if text == WIDE
    ]
    assert (done.code, [line[: len(start)] for line, start in zip(found, wanted, strict=True)]) == (code, wanted)


# --- layers and trust ---


def test_a_file_in_the_folder_never_takes_a_shipped_name(program: Program, in_workspace: Write) -> None:
    """`--policy readonly` is the shipped one whatever lies in the workspace."""
    in_workspace("readonly", 'version = 1\n[tools]\ndefault = "auto"\nwrite_file = "auto"\n')
    done = program.run("policy", "explain", "--policy", "readonly", "--tool", "write_file", "x")
    assert "decision: deny" in done.out


PROJECT = """\
version = 1
[tools]
bash = "auto"
[[rule]]
id = "no-make"
decision = "deny"
argv = ["make"]
reason = "Use the script."
[[rule]]
id = "tests"
decision = "auto"
argv = ["pytest"]
"""


def test_project_policy_tightens_immediately_and_loosens_when_trusted(program: Program, in_workspace: Write) -> None:
    """Its deny counts; its auto counts only for exactly the content that was trusted."""

    def decision(command: str) -> str:
        out = program.run("policy", "explain", command).out
        return next(line for line in out.splitlines() if line.startswith("decision: ")).removeprefix("decision: ")

    path = in_workspace(".harness/policy.toml", PROJECT)
    assert (decision("make"), decision("pytest"), decision("touch x")) == ("deny", "confirm", "confirm")
    assert program.run("policy", "trust", str(path)).code == 0
    assert (decision("make"), decision("pytest"), decision("touch x")) == ("deny", "auto", "confirm")
    path.write_text(PROJECT + "# changed\n")
    assert (decision("make"), decision("pytest")) == ("deny", "confirm")


def test_a_broken_project_policy_stops_the_run(program: Program, in_workspace: Write) -> None:
    """A layer is never left out because it is broken."""
    in_workspace(".harness/policy.toml", "version = 1\nnope = 2\n")
    url = program.serve(replies(Reply(text="hi")))
    done = program.run("run", "go", "--base-url", url)
    assert (done.code, program.players[0].requests) == (2, [])


def test_extended_files_are_recorded_judged_again_and_never_written(program: Program, in_workspace: Write) -> None:
    in_workspace("team/base.toml", 'version = 1\n[lists]\nfree = ["touch"]\n[tools]\ndefault = "auto"\nbash = "deny"\n')
    rule = '[[rule]]\nid = "t"\ndecision = "auto"\nargv = ["@free", "x"]\nwrite = ["."]\n'
    own = in_workspace("own.toml", f'version = 1\nextends = ["team/base.toml", "readonly"]\n{rule}')
    words = ("--policy", "own.toml", "--log", str(program.home / "x.jsonl"))
    tries = call("bash", command="touch x"), call("bash", command="touch y"), call("read_file", path="own.toml")
    url = program.serve(replies(Reply(calls=tries), Reply(text="done")))
    assert program.run("run", "go", "--base-url", url, *words).code == 7
    records = [json.loads(line) for line in (program.home / "x.jsonl").read_text().splitlines()]
    base, shipped = str(program.workspace / "team" / "base.toml"), shipped_policy_path("readonly")
    assert [
        (file["path"], file.get("extends"), file.get("root"), file["sha256"]) for file in records[0]["policy_files"]
    ] == [
        ("own.toml", [base, shipped], None, digest_of(own.read_bytes())),
        (shipped, None, "own.toml", digest_of(Path(shipped).read_bytes())),
        (base, None, "own.toml", digest_of(Path(base).read_bytes())),
    ]
    assert [one["decision"] for one in records if one["kind"] == "decision"] == ["auto", "deny", "auto"]
    assert program.run("policy", "check", "own.toml").out.splitlines()[1].startswith("  extends  shipped readonly: ")
    own.write_text("version = 1\n")
    again = program.run("audit", "verify", str(program.home / "x.jsonl"), "--redecide")
    assert (again.code, "3 calls come out the same" in again.out) == (0, True), again.out
    own.write_text(f'version = 1\nextends = ["team/base.toml"]\n{rule}')
    attempt = call("write_file", path="team/base.toml", content="")
    url = program.serve(replies(Reply(calls=(attempt,)), Reply(text="done")))
    assert program.run("run", "go", "--base-url", url, *words[:2]).code == 3


def test_trust_ends_when_an_extended_file_changes(program: Program, in_workspace: Write) -> None:
    in_workspace(".harness/policy.toml", 'version = 1\nextends = ["team.toml"]\n')
    team = in_workspace(
        ".harness/team.toml", 'version = 1\n[[rule]]\nid = "t"\ndecision = "auto"\nargv = ["touch", "x"]\n'
    )
    explain = ("policy", "explain", "touch x")
    assert program.run(*explain).code == EXITS["confirm"]
    assert program.run("policy", "trust").code == 0
    assert program.run(*explain).code == EXITS["auto"]
    team.write_text(team.read_text() + "# changed\n")
    assert program.run(*explain).code == EXITS["confirm"]


def test_call_cannot_write_the_policies_or_the_log(program: Program, in_workspace: Write) -> None:
    """Writing the policy in use, by any tool, halts the run."""
    path = in_workspace("rules.toml", AUTO)
    for attempt in (
        call("write_file", path="rules.toml", content=""),
        call("bash", command="cp x rules.toml"),
        call("bash", command="echo > rules.toml"),
    ):
        url = program.serve(replies(Reply(calls=(attempt,)), Reply(text="done")))
        done = program.run(
            "run", "go", "--base-url", url, "--policy", "rules.toml", "--log", str(program.home / "x.jsonl")
        )
        assert done.code == 3, done.err
        assert path.read_text() != ""


@all_rows("words", [("--version",), ("policy", "explain", "ls"), ("demo", "--list"), ("audit", "list")])
def test_reader_that_goes_away_sets_the_exit_code(program: Program, words: tuple[str, ...]) -> None:
    """141 without a word, as `| head` expects it; closed from the start it is 2."""
    if not program.logs():
        program.run("demo", "--answers", "n,n")
    reader, writer = os.pipe()
    os.close(reader)
    process = program.start(*words, stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (141, b"")
    closed = program.run(*words, stdout=None, preexec_fn=lambda: os.close(1))
    assert (closed.code, "stdout is closed" in closed.err) == (2, True)


def test_user_policy_replaces_the_shipped_default(program: Program) -> None:
    """At the prompt and in explain; a broken one is never skipped; `run` without --policy stays readonly."""
    folder = Path(program.environment["XDG_CONFIG_HOME"]) / "harness"
    folder.mkdir(parents=True)
    (folder / "policy.toml").write_text('version = 1\n[tools]\nbash = "deny"\n')
    done = program.run("policy", "explain", "ls")
    assert f"decided by: default for bash ({folder / 'policy.toml'}:3)" in done.out
    (folder / "policy.toml").write_text("version = 2\n")
    assert program.run("policy", "explain", "ls").code == 2
    assert "readonly" in program.run("run", "go", "--base-url", program.serve(replies(Reply(text="hi")))).err


def test_call_cannot_write_the_user_folders(program: Program) -> None:
    """Policies, trust, logs: outside the workspace, and a hard block all the same."""
    for path in (
        f"{program.state}/harness/trusted_policies",
        f"{program.environment['XDG_CONFIG_HOME']}/harness/policy.toml",
    ):
        done = program.run("policy", "explain", "--tool", "write_file", path)
        assert "decision: block" in done.out
        assert "built-in own-files" in done.out


# --- test ---


def case(name: str, tool: str = "bash", args: object = None, **more: object) -> str:
    return json.dumps({"id": name, "tool": tool, "args": {"command": "ls"} if args is None else args, **more})


@pytest.fixture
def held(program: Program, in_workspace: Write, rules: str) -> Callable[..., Done]:
    """Hold cases, one a line, against the rules."""

    def run(*lines: str, flags: tuple[str, ...] = ()) -> Done:
        in_workspace("cases.jsonl", "\n".join(lines) + "\n")
        return program.run("policy", "test", "cases.jsonl", "--policy", rules, *flags)

    return run


def test_expected_cases_pass(held: Callable[..., Done]) -> None:
    """One line each, in columns, and a summary; blank lines are nothing; exit 0."""
    done = held(
        case("look", expect="auto"),
        "",
        case("push", args={"command": "git push -f"}, at_least="confirm", expect="deny"),
        case("write", "write_file", {"path": "a.py"}, at_least="confirm"),
        case("edit", "edit_file", {"path": "a.py", "old_string": "x", "new_string": "y"}, at_least="auto"),
        case("free", "read_file", {"path": "a.py", "limit": 3}),
    )
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines] == ["look", "push", "write", "edit", "free", "5"]
    assert [line.split()[-1] for line in lines[:5]] == ["ok", "ok", "ok", "ok", "-"]
    assert lines[0].split()[1:] == ["auto", "rule", "look", f"({RULE_AT['look']})", "ok"]
    assert len({line.rindex("  ") for line in lines[:5]}) == 1
    assert lines[5] == "5 cases: 4 ok, 0 failed, 1 without an expectation"


FAILING = (
    (case("another decision", expect="deny"), "expected deny"),
    (case("a laxer one", at_least="confirm"), "expected at least confirm"),
    (case("one of two", expect="auto", at_least="deny"), "expected auto and at least deny"),
    (case("a hostile id \x1b[2J", expect="deny"), "expected deny"),
    (case("an unknown tool", "bsh"), "unknown tool 'bsh'; did you mean bash?"),
    (
        case("a hostile tool", "\x1b[2J"),
        f"unknown tool '\\x1b[2J'; known: {', '.join(SHIPPED_TOOLS)}",
    ),
    (case("no object", args=[]), "args must be an object"),
    (case("nothing", args={}), "Invalid arguments for bash: command is missing."),
    (
        case("another field", args={"command": "ls", "pth": 1}),
        "Invalid arguments for bash: unknown field 'pth'; the fields are command, cwd, timeout_s, unconfined, justification.",
    ),
    (case("another type", args={"command": 3}), "Invalid arguments for bash: command: must be a string, not a number."),
    (case("outside", args={"command": "ls", "cwd": ".."}), "cwd is outside the workspace: .."),
    (case("no path", "read_file", {"path": "a\0"}), "Invalid arguments for read_file: path: contains a NUL character."),
    (case("no folder", cwd="a\0b"), "the workspace cannot be a folder: WORKSPACE/a\\x00b: embedded null byte"),
)


def test_failed_case_names_reason_and_place(held: Callable[..., Done], program: Program) -> None:
    """And does not keep the others from being judged."""
    done = held(case("first", expect="auto"), *(line for line, _ in FAILING), case("last", at_least="auto"))
    shown = done.out.replace(os.path.realpath(program.workspace), "WORKSPACE").splitlines()
    told = [line.partition("FAILED ")[2] for line in shown[1:-2]]
    assert told == [f"line {number}: {problem}" for number, (_, problem) in enumerate(FAILING, start=2)]
    assert (done.code, shown[-1], "\x1b" in done.out) == (
        1,
        f"{len(FAILING) + 2} cases: 2 ok, {len(FAILING)} failed",
        False,
    )


CASE_JSON = ["id", "line", "tool", "decision", "by", "reason", "expect", "at_least", "ok", "error"]


def test_the_json_of_cases(held: Callable[..., Done]) -> None:
    done = held(case("a", expect="auto"), case("b", at_least="deny"), case("c"), case("d", "x"), flags=("--json",))
    *told, summary = [json.loads(line) for line in done.out.splitlines()]
    assert [list(each) for each in told] == [CASE_JSON] * 4
    assert [(each["id"], each["line"], each["decision"], each["ok"]) for each in told] == [
        ("a", 1, "auto", True), ("b", 2, "auto", False), ("c", 3, "auto", None), ("d", 4, None, False),
    ]  # fmt: skip
    assert told[0]["by"] == f"rule look ({RULE_AT['look']})"
    assert (told[3]["error"].startswith("unknown tool"), told[0]["error"]) == (True, None)
    assert (summary, done.code) == ({"summary": {"cases": 4, "ok": 1, "failed": 2, "unchecked": 1}}, 1)


@all_rows(
    ("line", "problem"),
    [
        pytest.param("{", "is not JSON: ", id="no JSON"),
        pytest.param("[1]", "is not an object, such as ", id="no object"),
        pytest.param("# a comment", "is not JSON", id="a comment"),
        pytest.param("[" * 100_000, "is not JSON: nested too deeply", id="a deep one"),
        pytest.param('{"id": "x", "id": "y"}', 'is not JSON: duplicate key "id"', id="a key twice"),
        pytest.param('{"id": "x", "tool": "bash", "args": NaN}', "is not JSON: NaN is not a JSON number", id="NaN"),
        pytest.param(case("x", expects="auto"), "unknown field 'expects'; did you mean expect?", id="an unknown key"),
        pytest.param('{"tool": "bash", "args": {}}', "lacks the field id", id="no id"),
        pytest.param('{"id": "x", "args": {}}', "lacks the field tool", id="no tool"),
        pytest.param('{"id": "x", "tool": "bash"}', "lacks the field args", id="no args"),
        pytest.param(
            '{"id": 3, "tool": "bash", "args": {}}', "id: must be a string, not a number", id="a number for an id"
        ),
        pytest.param(case(" "), "id: must not be empty", id="an empty id"),
        pytest.param(case("x", cwd=3), "cwd: must be a string, not a number", id="a number for a folder"),
        pytest.param(case("x", expect="allow"), "expect: unknown 'allow'; known: auto, confirm", id="no decision"),
        pytest.param(case("x", at_least="denny"), "at_least: unknown 'denny'; did you mean deny?", id="a slip"),
        pytest.param(case("good"), "the id 'good' is taken by line 1", id="an id twice"),
    ],
)
def test_a_line_that_is_not_understood_is_named(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(f"{case('good')}\n\n{line}\n")
    with pytest.raises(UsageError) as caught:
        read_cases(str(path))
    assert str(caught.value).startswith(f"{path}:3: ")
    assert problem in str(caught.value)


def test_case_file_with_an_invalid_line_is_rejected(held: Callable[..., Done]) -> None:
    done = held(case("good", expect="deny"), "[1]")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("harness: cases.jsonl:2: is not an object")


@all_rows(
    ("content", "problem"),
    [(b"", "holds no case"), (b"\n \n", "holds no case"), (b'{"id": "\xff"}\n', "is not JSON: byte 8 is not UTF-8")],
)
def test_case_file_without_cases_is_an_error(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=problem):
        read_cases(str(path))
    for unreadable in (tmp_path / "none", tmp_path):
        with pytest.raises(UsageError, match="cannot be read"):
            read_cases(str(unreadable))


def test_a_case_may_name_its_workspace(held: Callable[..., Done], program: Program, in_workspace: Write) -> None:
    """As --cwd does: paths and the project's policy are taken from there; a folder that is not there is taken as empty."""
    in_workspace("sub/.harness/policy.toml", PROJECT)
    cat = {"command": "cat ../x"}
    lines = [
        case("here", args=cat, expect="confirm"),
        case("below", args={**cat, "cwd": "sub"}, expect="auto"),
        case("a workspace", args=cat, cwd="sub", expect="confirm"),
        case("its project", args={"command": "make"}, cwd="sub", expect="deny"),
        case("not there", "write_file", {"path": "a"}, cwd="/no/such/folder", expect="confirm"),
        case("not there, outside", "read_file", {"path": "/etc/passwd"}, cwd="/no/such/folder", expect="confirm"),
        case("not there, inside", "read_file", {"path": "/no/such/folder/x"}, cwd="/no/such/folder", expect="auto"),
    ]
    done = held(*lines)
    assert done.code == 0, done.out
    elsewhere = held(
        case("a", args=cat, expect="confirm"),
        case("b", args={"command": "cat x"}, cwd="..", expect="auto"),
        flags=("--cwd", "sub"),
    )
    assert elsewhere.code == 0, elsewhere.out
    assert held(lines[0], flags=("--cwd", "none")).code == 2


@all_rows("words", [("cases.jsonl",), ("none.jsonl", "--policy", "ci"), ("cases.jsonl", "--policy", "none.toml")])
def test_a_test_needs_cases_and_a_policy(program: Program, in_workspace: Write, words: tuple[str, ...]) -> None:
    in_workspace("cases.jsonl", case("a"))
    done = program.run("policy", "test", *words)
    assert (done.code, done.out) == (2, "")


def test_test_and_explain_agree(held: Callable[..., Done], program: Program, rules: str) -> None:
    """On the decision and on what decided, for every call of the table above."""
    rows = [(str(p.values[0]), str(p.values[1]), str(p.values[2])) for p in EXPLAINED]
    lines = [
        case(str(number), tool, {"command" if tool == "bash" else "path": what}, expect=decision)
        for number, (tool, what, decision) in enumerate(rows)
    ]
    done = held(*lines, flags=("--json",))
    assert (done.code, json.loads(done.out.splitlines()[-1])["summary"]["ok"]) == (0, len(rows)), done.out


# --- replay ---


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state folder behind a demo."""
    made = Program(tmp_path_factory.mktemp("demo"))
    assert made.run("demo", "--answers", "y,y,n").code == 0
    return made.state


@pytest.fixture
def demo(program: Program, demonstrated: Path) -> str:
    """The log of a demo, whose folder is gone."""
    shutil.copytree(demonstrated, program.state, dirs_exist_ok=True)
    return str(program.logs()[0])


def test_replay_under_the_same_policy_finds_no_changes(program: Program, demo: str) -> None:
    done = program.run("policy", "replay", demo, "--policy", "demo", "--fail-on", "any")
    assert (done.code, done.out) == (0, "9 calls, 0 changes: 0 laxer, 0 stricter\n")
    assert "is gone; judged as if it were there, and empty" in done.err


REPLAY_JSON = ["log", "session", "call", "tool", "summary", "change", "old", "old_by", "new", "new_by", "error"]


def test_replay_lists_changed_decisions(program: Program, demo: str) -> None:
    """Call number, tool, summary, what decided then and now; in JSON the same."""
    done = program.run("policy", "replay", demo, "--policy", "ci")
    session = program.records()[0]["session"]
    *lines, summary = done.out.splitlines()
    assert lines[0] == (
        f"{session} #4 edit_file  slugs.py: confirm by {by_default(load_policy('demo'), 'edit_file')} -> "
        f"auto by {by_default(load_policy('ci'), 'edit_file')}: laxer"
    )
    assert [line.rpartition(": ")[2] for line in lines] == ["laxer", "laxer", "stricter"]
    assert (done.code, summary) == (0, "9 calls, 3 changes: 2 laxer, 1 stricter")
    *told, counted = [
        json.loads(line) for line in program.run("policy", "replay", demo, "--policy", "ci", "--json").out.splitlines()
    ]
    assert list(told[0]) == REPLAY_JSON
    assert [(each["call"], each["old"], each["new"], each["change"]) for each in told] == [
        (4, "confirm", "auto", "laxer"), (7, "confirm", "auto", "laxer"), (8, "confirm", "deny", "stricter"),
    ]  # fmt: skip
    assert counted == {"summary": {"calls": 9, "changes": 3, "laxer": 2, "stricter": 1, "unknown": 0, "undecided": 0}}


@all_rows(
    ("policy", "fail_on", "code"),
    [("ci", "laxer", 1), ("ci", "any", 1), ("readonly", "laxer", 0), ("readonly", "any", 1), ("demo", "laxer", 0)],
)
def test_replay_fails_on_the_chosen_changes(program: Program, demo: str, policy: str, fail_on: str, code: int) -> None:
    assert program.run("policy", "replay", demo, "--policy", policy, "--fail-on", fail_on).code == code


FREE = """\
version = 1
[tools]
read_file = "auto"
write_file = "auto"
edit_file = "auto"
bash = "deny"
[[rule]]
id = "build"
decision = "auto"
argv = ["make"]
"""


def run_under(program: Program, policy: str, *calls: Reply, env: Mapping[str, str] | None = None) -> str:
    """Run calls, one a reply, under `policy`; return the log."""
    url = program.serve(replies(*calls, Reply(text="done")))
    environment = {**program.environment, **(env or {})}
    done = program.run("run", "go", "--base-url", url, "--policy", policy, "--allow-refusals", env=environment)
    assert done.code == 0, done.err
    return str(program.logs()[0])


def test_a_changed_entry_point_counts_as_it_did_then(program: Program, in_workspace: Write) -> None:
    """Under the same policy nothing changes: the build that asked, because nobody had seen the Makefile, asks again."""
    policy = in_workspace("free.toml", FREE).name
    make = Reply(calls=(call("bash", command="make -f none"), call("bash", command="make")))
    log = run_under(
        program, policy, make, Reply(calls=(call("write_file", path="Makefile", content="all:\n\ttrue\n"),)), make
    )
    decided = [record["decision"] for record in program.records() if record["kind"] == "decision"]
    assert decided == ["deny", "auto", "auto", "deny", "confirm"]
    done = program.run("policy", "replay", log, "--policy", policy, "--fail-on", "any")
    assert (done.code, done.out, done.err) == (0, "5 calls, 0 changes: 0 laxer, 0 stricter\n", "")


def test_an_edit_that_did_not_apply_was_a_read_and_is_one_again(program: Program, in_workspace: Write) -> None:
    policy = in_workspace("free.toml", FREE.replace('edit_file = "auto"', 'edit_file = "deny"')).name
    in_workspace("a.py", "x = 1\n")
    miss = call("edit_file", path="a.py", old_string="nowhere", new_string="y")
    hit = call("edit_file", path="a.py", old_string="x = 1", new_string="x = 2")
    log = run_under(program, policy, Reply(calls=(miss, hit)))
    assert [r["decision"] for r in program.records() if r["kind"] == "decision"] == ["auto", "deny"]
    done = program.run("policy", "replay", log, "--policy", policy)
    assert done.out == "2 calls, 0 changes: 0 laxer, 0 stricter\n"


def test_replay_skips_incomplete_calls(program: Program, in_workspace: Write) -> None:
    """Arguments that were cut or masked are told of, and so are calls that never had a decision."""
    policy = in_workspace("free.toml", FREE).name
    secret = "sk-0123456789abcdef"
    calls = (
        call("write_file", path="big.txt", content="x" * 70_000),
        call("bash", command=f"cat {secret}"),
        call("no_such_tool", path="x"),
        call("read_file", path="big.txt"),
    )
    log = run_under(program, policy, Reply(calls=calls), env={"OPENAI_API_KEY": secret})
    done = program.run("policy", "replay", log, "--policy", policy, "--fail-on", "any")
    *lines, summary = done.out.splitlines()
    assert [re.sub(r"\[redacted:known:[0-9a-f]{8}\]", "MARK", line.partition(" #")[2]) for line in lines] == [
        "1 write_file  big.txt: cannot be judged: the log holds its arguments only in part",
        "2 bash  cat MARK: cannot be judged: a secret was masked in its arguments",
    ]
    assert (done.code, summary) == (
        0,
        "3 calls, 0 changes: 0 laxer, 0 stricter; 2 cannot be judged; 1 never decided",
    )


def test_replay_neither_runs_nor_writes_anything(program: Program, demo: str) -> None:
    before = {path: path.read_bytes() for path in program.state.rglob("*") if path.is_file()}
    program.run("policy", "replay", demo, "--policy", "ci")
    assert {path: path.read_bytes() for path in program.state.rglob("*") if path.is_file()} == before
    assert list(program.workspace.iterdir()) == []


@all_rows("how", ["broken", "torn"])
def test_a_broken_log_is_replayed_up_to_the_break(program: Program, demo: str, how: str) -> None:
    lines = Path(demo).read_bytes().splitlines(keepends=True)
    decisions = [number for number, line in enumerate(lines) if b'"kind":"decision"' in line]
    cut = decisions[2]
    if how == "broken":
        lines[cut - 1] = lines[cut - 1].replace(b"bash", b"BASH")
    else:
        lines = [*lines[:cut], lines[cut][:40]]
    Path(demo).write_bytes(b"".join(lines))
    done = program.run("policy", "replay", demo, "--policy", "readonly")
    assert (done.code, done.out) == (0, "2 calls, 0 changes: 0 laxer, 0 stricter\n")
    told = f"broken at line {cut + 1}: it does not hold the hash" if how == "broken" else "the last line is torn"
    assert told in done.err


def test_several_logs_are_counted_together(program: Program, demo: str) -> None:
    program.run("demo", "--answers", "n,n,n")
    logs = [str(path) for path in program.logs()]
    done = program.run("policy", "replay", *logs, "--policy", "demo")
    assert (len(logs), done.code) == (2, 0)
    assert int(done.out.split()[0]) > 9


@all_rows(
    "words", [("none.jsonl", "--policy", "ci"), ("LOG",), ("LOG", "--policy", "none.toml"), (".", "--policy", "ci")]
)
def test_a_replay_needs_a_log_and_a_policy(program: Program, demo: str, words: tuple[str, ...]) -> None:
    done = program.run("policy", "replay", *(demo if word == "LOG" else word for word in words))
    assert (done.code, done.out, "Traceback" in done.err) == (2, "", False)


def test_logs_of_other_programs_are_judged_as_far_as_possible(program: Program) -> None:
    """A library may log no workspace, and tools of its own; a hostile summary is shown harmlessly."""
    path = program.home / "library.jsonl"
    log = ActionLog.open(str(path))
    log.append("session_started", filled("session_started", {"tools": ["fetch", "bash"]}))

    def decided(number: int, tool: str, kind: str, arguments: str, decision: str = "auto") -> None:
        facets: list[JsonValue] = [{"facet": "x", "kind": kind, "decision": decision, "by": "rule x (old.toml:1)"}]
        told: dict[str, JsonValue] = {"call": number, "tool": tool, "summary": "s\x1b[2J", "by": "rule x (old.toml:1)"}
        steps: dict[str, dict[str, JsonValue]] = {
            "call_proposed": {"call": number, "tool": tool, "arguments": arguments},
            "decision": {**told, "decision": decision, "facets": facets},
            "outcome": {"call": number, "tool": tool, "status": "not_run"},
        }
        for name, fields in steps.items():
            digest = {} if name == "outcome" else {"arguments_sha256": sha256(arguments)}
            log.append(name, filled(name, {**fields, **digest}))

    decided(1, "fetch", "ToolUse", '{"url": "x"}')
    decided(2, "fetch", "PathAccess", '{"path": "x"}')
    decided(3, "bash", "Command", '{"cmd": "ls"}')
    decided(4, "bash", "Command", '{"command": "frobnicate"}', "block")
    log.append("session_ended", filled("session_ended", {}))
    log.close()
    done = program.run("policy", "replay", str(path), "--policy", "default")
    assert (done.code, "\x1b" in done.out) == (0, False)
    *lines, summary = [line.partition(" #")[2] or line for line in done.out.splitlines()]
    assert [line.replace("s\\x1b[2J", "s") for line in lines] == [
        f"1 fetch  s: auto by rule x (old.toml:1) -> confirm by {by_default(load_policy('default'), 'default')}: stricter",
        "2 fetch  s: cannot be judged: fetch is a tool of another program",
        (
            "3 bash  s: cannot be judged: Invalid arguments for bash: unknown field 'cmd'; "
            "the fields are command, cwd, timeout_s, unconfined, justification."
        ),
        lines[3].replace("s\\x1b[2J", "s"),
    ]
    assert (lines[3].startswith("4 bash"), lines[3].endswith(": laxer")) == (True, True)
    assert summary == "4 calls, 2 changes: 1 laxer, 1 stricter; 2 cannot be judged"
    assert "names no workspace; its paths are taken from" in done.err


# --- the reference ---


def reference(title: str) -> str:
    """Return a section of docs/policies.md."""
    text = (Path(ROOT) / "docs/policies.md").read_text()
    return text.partition(f"\n### {title}\n")[2].partition("\n#")[0]


def first_words(text: str) -> list[str]:
    """Return the words in backquotes, and the numbers, before the colon of each entry."""
    cells = re.findall(r"^- (.+?):", text, re.MULTILINE)
    return [word for cell in cells for word in re.findall(r"`(\w+)`|(?<!\w)(\d+)", cell) for word in word if word]


def test_replay_prints_each_change_and_the_totals(program: Program, demo: str) -> None:
    session = program.records()[0]["session"]
    first, *_, last = program.run("policy", "replay", demo, "--policy", "ci").out.splitlines()
    assert first.startswith(f"{session} #4 edit_file  slugs.py: confirm by default for edit_file (demo.toml:")
    assert first.endswith("): laxer")
    assert last == "9 calls, 3 changes: 2 laxer, 1 stricter"


def test_the_reference_names_every_key_and_every_exit_code(program: Program, rules: str) -> None:
    told = json.loads(program.run("policy", "explain", "--policy", rules, "--json", "ls").out)
    assert first_words(reference("explain")) == [*told["facets"][0]]
    assert first_words(reference("test")) == [name.removesuffix("?") for name in CASE]
    codes = {
        "check": (0, WARNED, 2),
        "explain": (*EXIT_CODES.values(), 2),
        "test": (0, FAILED, 2),
        "replay": (0, CHANGED, 2),
    }
    for title, known in codes.items():
        told_codes = re.findall(r"(?<![\w-])(\d+)\b", reference(title).partition("Exit code:")[2].partition("\n")[0])
        assert [int(code) for code in told_codes] == [*known], title
    assert [key for key in (*told, *told["effects"]) if f"`{key}`" not in reference("explain")] == []


def test_explain_loads_only_the_modules_it_needs(program: Program) -> None:
    """No difflib, no textwrap, none of the tools, none of the other actions."""
    code = "import sys; from harness.app.main import main; main(sys.argv[1:]); print('loaded:', *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, "policy", "explain", "ls -la"],
        env=program.environment,
        cwd=Path(ROOT),
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.partition("loaded:")[2].split())
    needless = {
        "difflib",
        "textwrap",
        "harness.policy.lint",
        "harness.gate.registry",
        "harness.app.policy.cases",
        "harness.app.policy.replay",
    }
    assert ("harness.app.policy.explain" in loaded, loaded & needless) == (True, set())


# --- explain: tools of MCP servers ---

SERVER_RULES = """
version = 1
[tools]
default = "deny"
[[rule]]
id = "files"
decision = "auto"
tool = ["mcp__files__*"]
where = {path = ["docs/"]}
[[rule]]
id = "looks"
decision = "auto"
tool = ["mcp__files__*"]
read_only = true
"""
SERVER = ("mcp-server-files", ".")
IN_DOCS, IN_SRC = '{"path": "docs/a"}', '{"path": "src/a"}'
CONFIGURED = '[mcp.servers.files]\ncommand = ["mcp-server-files", "."]\nwrite = ["."]\nPINNED'
DIGEST = f'pinned = "{"0" * 64}"\n'


def server_tool_pin(words: Sequence[str], description: str = "Does it.", **annotations: bool) -> ToolDescription:
    definition: JsonValue = {
        "name": "change", "description": description, "inputSchema": {"type": "object"}, "annotations": {**annotations},
    }  # fmt: skip
    found = described(definition, words, " ".join(words))
    assert isinstance(found, ToolDescription)
    return found


@all_rows(
    ("configured", "seen", "listed", "call", "code", "out", "err"),
    [
        # neither configured nor listed: rules alone, and it is said
        (None, None, None, IN_DOCS, 0, "rule files", "the server files is not configured here"),
        (None, None, None, IN_SRC, 20, "`where` does not cover 'src/a' in the argument 'path'", "only rules decide"),
        # configured, never listed: a run would show it at its first use
        ("", None, None, IN_DOCS, 10, "built-in unseen-tool", "no run has listed mcp__files__change yet"),
        (DIGEST, None, None, IN_DOCS, 0, "rule files", "no run has listed mcp__files__change yet"),
        # listed, and nobody has seen it
        ("", None, server_tool_pin(SERVER), IN_DOCS, 10, "built-in unseen-tool", ""),
        # seen
        ("", server_tool_pin(SERVER), None, IN_DOCS, 0, "rule files", ""),
        (None, server_tool_pin(SERVER), None, IN_DOCS, 0, "rule files", ""),
        ("", server_tool_pin(SERVER), None, IN_SRC, 20, "nearest is rule", ""),
        ("", server_tool_pin(SERVER, readOnlyHint=True), None, IN_SRC, 0, "rule looks", ""),
        ("", server_tool_pin(SERVER, destructiveHint=True), None, IN_DOCS, 20, "a star does not cover that", ""),
        # seen at a server with another command line
        ("", server_tool_pin(("other",)), None, IN_DOCS, 10, "built-in unseen-tool", ""),
        # seen, and changed since: a run does not use it
        ("", server_tool_pin(SERVER), server_tool_pin(SERVER, "Else."), IN_DOCS, 2, "", "changed this tool"),
        (None, server_tool_pin(SERVER), server_tool_pin(SERVER, "Else."), IN_DOCS, 2, "", "changed this tool"),
        ("", server_tool_pin(SERVER), server_tool_pin(("other",), "Else."), IN_DOCS, 0, "rule files", ""),
        ("", server_tool_pin(SERVER), None, "docs/a", 2, "", "takes its arguments as a JSON object"),
    ],
    fresh=True,
)
def test_explain_uses_the_pins_of_a_server_tool(
    program: Program,
    in_workspace: Write,
    configured: str | None,
    seen: ToolDescription | None,
    listed: ToolDescription | None,
    call: str,
    code: int,
    out: str,
    err: str,
) -> None:
    """Without a start of the server, whose program is not even there."""
    in_workspace("servers.toml", SERVER_RULES.lstrip())
    state = State.of(program.environment)
    if configured is not None:
        os.makedirs(os.path.dirname(state.config_file), exist_ok=True)
        Path(state.config_file).write_text(CONFIGURED.replace("PINNED", configured))
    pins = PinFile(pins_folder(state), "files")
    if seen is not None:
        pins.pin(seen)
    if listed is not None:
        pins.note_listed({listed.name: listed})
    before = pins.read()
    done = program.run("policy", "explain", "--policy", "servers.toml", "--tool", "mcp__files__change", call)
    assert (done.code, out in done.out, err in done.err, bool(done.err)) == (code, True, True, bool(err)), done
    assert PinFile(pins_folder(state), "files").read() == before
