"""Policy files: every key is accepted as documented, and everything else refuses to load, with file, line and key."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import all_rows
from sizes import examples

from harness.actions import Access, Decision
from harness.errors import PolicyError
from harness.limits import Limits
from harness.policy.argv_pattern import ArgvPattern
from harness.policy.command_matchers import CommandMatcher, WalledMatcher
from harness.policy.effects import SandboxTable
from harness.policy.hosts import HostPattern
from harness.policy.loader import (
    DECISION_WORDS,
    LIMIT_KEYS,
    MAX_POLICY_BYTES,
    RULE_KEYS,
    SANDBOX_KEYS,
    TOP_KEYS,
    load_policy,
    parse_policy,
    shipped_policy_path,
)
from harness.policy.matchers import FileMatcher, TextMatcher
from harness.policy.patterns import PathPatterns
from harness.policy.policy import Policy, PolicySource, combine, tightening_only
from harness.policy.rules import Layer, Opens, Origin, Rule
from harness.policy.tool_defaults import ToolDefault
from harness.policy.tool_matchers import ArgumentMatcher, ArgumentPatterns, HostMatcher, ToolMatcher
from harness.programs.runners import INTERPRETERS
from harness.programs.variables import STEERING
from harness.text.toml_places import key_lines
from harness.tool_kinds import OPTIONAL_NAMES, SHIPPED_TOOLS


def parse(text: str, *, layer: Layer = Layer.FILE) -> Policy:
    return parse_policy(text.encode(), "p.toml", layer=layer)


def problem(text: str) -> str:
    """Return the message with which `text` is refused."""
    with pytest.raises(PolicyError) as caught:
        parse(text)
    return str(caught.value)


# By name, what FULL says of each tool: four decisions, and any that ships besides.
FULL_TOOLS = {
    **dict.fromkeys(SHIPPED_TOOLS, Decision.CONFIRM),
    "read_file": Decision.AUTO,
    "write_file": Decision.DENY,
    "edit_file": Decision.BLOCK,
    "default": Decision.DENY,
}

FULL = """\
# every key there is
version = 1
name = "full"

[tools]
TOOLS

[unattended]
confirm = "block"

[limits]
turns = 5
seconds = 60
tokens = 1000
cost = 2.5
refusals = 3
bad_calls = 4
command_seconds = 1.5
result_characters = 2000

[sandbox]
required = true
network = false
write = [".", "~/.cache/x"]
hide = [".env"]
show = ["~/.docker"]

[lists]
secrets = [".env", "*.pem"]

[[rule]]
id = "tests"
decision = "auto"
tool = ["bash"]
argv = [
  ["pytest", "py.test"],   # a choice
  "...",
]
flags = ["-q", "-NUM", "--maxfail"]
env = ["CI"]
write = ["build"]
network = true
reason = "Runs the tests."
hint = "None."
match = ["pytest -q"]
not_match = [
  "pytest -p x",
  "pytest; ls",
]

[[rule]]
id = "secrets"
decision = "deny"
access = ["read"]
path = ["@secrets"]
except = ["test.pem"]
reason = \"\"\"
Secrets stay
out.\"\"\"

[[rule]]
id = "raw"
decision = "block"
text = "| sh"
reason = "No."

[[rule]]
id = "server"
decision = "auto"
tool = ["mcp__srv__*"]
where = {path = ["src/"], url = {host = ["*.example.org"]}, mode = ["fast"]}
read_only = true

[[rule]]
id = "scripts"
decision = "auto"
argv = ["bash", "scripts/*.sh", "..."]
options = ["--login", "-O=*"]
walls = "workspace"
write = ["~/.cache/x"]
match = ["X=1 bash scripts/a.sh --all"]
not_match = ["bash a.sh", "bash scripts/../a.sh", "bash -c scripts/a.sh"]

[[rule]]
id = "docs"
decision = "auto"
host = ["*.example.org", "localhost:8000"]
""".replace("TOOLS", "\n".join(f'{tool} = "{said.word}"   # a comment' for tool, said in FULL_TOOLS.items()))


def line_of(line: str) -> int:
    """Return the number of this line of FULL."""
    return FULL.splitlines().index(line) + 1


def test_every_key_is_accepted_and_has_its_effect() -> None:
    loaded = parse(FULL, layer=Layer.USER)
    assert loaded == Policy(
        name="full",
        rules=(
            Rule(
                id="tests",
                decision=Decision.AUTO,
                origin=Origin(file="p.toml", line=line_of('id = "tests"') - 1),
                layer=Layer.USER,
                matchers=(
                    CommandMatcher(
                        argv=ArgvPattern(
                            tokens=(("pytest", "py.test"),), rest=True, flags=("-q", "-NUM", "--maxfail"), options=()
                        ),
                        env=("CI",),
                    ),
                    ToolMatcher(names=("bash",)),
                ),
                opens=Opens(write=("build",), network=True),
                reason="Runs the tests.",
                hint="None.",
            ),
            Rule(
                id="secrets",
                decision=Decision.DENY,
                origin=Origin(file="p.toml", line=line_of('id = "secrets"') - 1),
                layer=Layer.USER,
                matchers=(
                    FileMatcher(
                        patterns=PathPatterns(patterns=(".env", "*.pem")),
                        access=(Access.READ,),
                        exceptions=PathPatterns(patterns=("test.pem",)),
                    ),
                ),
                reason="Secrets stay\nout.",
            ),
            Rule(
                id="raw",
                decision=Decision.BLOCK,
                origin=Origin(file="p.toml", line=line_of('id = "raw"') - 1),
                layer=Layer.USER,
                matchers=(TextMatcher(text="| sh"),),
                reason="No.",
            ),
            Rule(
                id="server",
                decision=Decision.AUTO,
                origin=Origin(file="p.toml", line=line_of('id = "server"') - 1),
                layer=Layer.USER,
                matchers=(
                    ToolMatcher(names=("mcp__srv__*",), only_reads=True),
                    ArgumentMatcher(argument=ArgumentPatterns(name="path", paths=PathPatterns(patterns=("src/",)))),
                    ArgumentMatcher(argument=ArgumentPatterns(name="url", hosts=("*.example.org",))),
                    ArgumentMatcher(argument=ArgumentPatterns(name="mode", words=("fast",))),
                ),
            ),
            Rule(
                id="scripts",
                decision=Decision.AUTO,
                origin=Origin(file="p.toml", line=line_of('id = "scripts"') - 1),
                layer=Layer.USER,
                matchers=(
                    WalledMatcher(
                        argv=ArgvPattern(
                            tokens=(("bash",), ("scripts/*.sh",)),
                            rest=True,
                            options=("--login", "-O=*"),
                            any_options=True,
                        )
                    ),
                ),
                opens=Opens(write=(".", "~/.cache/x")),
            ),
            Rule(
                id="docs",
                decision=Decision.AUTO,
                origin=Origin(file="p.toml", line=line_of('id = "docs"') - 1),
                layer=Layer.USER,
                matchers=(
                    HostMatcher(
                        patterns=(
                            HostPattern(host="example.org", below=True),
                            HostPattern(host="localhost", port=8000),
                        )
                    ),
                ),
            ),
        ),
        defaults=tuple(
            ToolDefault(tool=tool, decision=decision, origin=Origin(file="p.toml", line=line), layer=Layer.USER)
            for line, (tool, decision) in enumerate(FULL_TOOLS.items(), start=6)
        ),
        limits=Limits(
            max_turns=5,
            max_seconds=60.0,
            max_tokens=1000,
            max_cost=2.5,
            max_refusals=3,
            max_bad_calls=4,
            command_seconds=1.5,
            result_characters=2000,
        ),
        unattended=Decision.BLOCK,
        sources=(
            PolicySource(
                layer=Layer.USER,
                path="p.toml",
                content=FULL.encode(),
                without_match=frozenset(("secrets", "raw", "server", "docs")),
            ),
        ),
        sandbox_tables=(
            SandboxTable(
                origin=Origin(file="p.toml", line=line_of("required = true")),
                layer=Layer.USER,
                required=True,
                network=False,
                write=(".", "~/.cache/x"),
                hide=(".env",),
                show=("~/.docker",),
            ),
        ),
    )


def test_the_full_file_really_has_every_key() -> None:
    table = tomllib.loads(FULL)
    rule_keys = {key for rule in table["rule"] for key in rule}
    assert set(table["sandbox"]) == set(SANDBOX_KEYS)
    top_keys = {*table, "extends"}  # which a text without a folder cannot have: test_extended.py
    assert (top_keys, rule_keys, set(table["limits"])) == (set(TOP_KEYS), set(RULE_KEYS), set(LIMIT_KEYS))
    assert set(table["tools"]) == {*SHIPPED_TOOLS, "default"}


def test_the_least_file_has_a_version_and_takes_its_name_from_the_file() -> None:
    assert parse_policy(b"version = 1", "/etc/x/team.toml") == Policy(
        name="team",
        rules=(),
        defaults=(),
        limits=Limits(),
        unattended=Decision.DENY,
        sources=(PolicySource(layer=Layer.FILE, path="/etc/x/team.toml", content=b"version = 1"),),
    )


def rule(body: str, decision: str = "confirm") -> str:
    """Return a file with one rule at line 2; the first line of `body` is line 5."""
    return f'version = 1\n[[rule]]\nid = "a"\ndecision = "{decision}"\n{body}\n'


NO_MATCH = "the rule does not match its example"
TOP_KNOWN = "known: version, name, extends, lists, tools, unattended, limits, sandbox, rule"
LIST = 'must be a list of strings, such as ["a", "b"]'
WHOLE = "must be a whole number of at least"
WHERE = 'must be a table, such as {path = ["src/"], host = ["*.example.org"]}'
HOST = "is not a host in small letters, such as example.org, *.example.org or localhost:8080"
FORMS = "must be {path = [...]} or {host = [...]}"
OUTSIDE = "is about tools from outside"
NUMBER = "must be a number above 0, at most"
ARGV = 'must be a list of words, such as ["git", ["status", "diff"], "..."]'
UNDERSTOOD = "is never understood well enough for an auto rule"
BY_ITSELF = "have the command behind it called by itself, and write a rule for that"
RUNS_ANOTHER = f'{UNDERSTOOD}: write `walls = "workspace"`, or {BY_ITSELF}'
STEERS = "makes a program run something else; no auto rule may list it"

MATCHES_NOTHING = "matches nothing: give argv, path, text, tool, where or host"
TOO_MUCH = "would mean everything that a person has: name folders below it"
GRANTED = "is what an auto rule grants to the commands of its argv"

BAD = [
    # the file itself
    ("", "1: version: is missing: write `version = 1`"),
    ("# nothing\n", "1: version: is missing: write `version = 1`"),
    ("version = 2", "1: version: must be 1"),
    ("version = '1'", "1: version: must be 1"),
    ("version = 1.0", "1: version: must be 1"),
    ("version = true", "1: version: must be 1"),
    ("name = 'x'\nversion = 0", "2: version: must be 1"),
    ("version = 1\nname = 1", "2: name: must be a string, not a number"),
    ("version = 1\nname = ''", "2: name: must not be empty"),
    ("version = 1\nname = ' '", "2: name: must not be empty"),
    # unknown keys, at every level
    ("version = 1\nnmae = 'x'", "2: nmae: unknown key; did you mean name?"),
    ("version = 1\nzzzz = 'x'", f"2: zzzz: unknown key; {TOP_KNOWN}"),
    ("version = 1\n\n[tool]\nbash = 'auto'", "3: tool: unknown key; did you mean tools?"),
    ("version = 1\nsandboxes = 'x'", "2: sandboxes: unknown key; did you mean sandbox?"),
    ("version = 1\n[sandbox]\nrequire = true", "3: [sandbox] require: unknown key; did you mean required?"),
    ("version = 1\n[[rules]]\nid = 'x'", "2: rules: unknown key; did you mean rule?"),
    ("version = 1\n[tools]\nbahs = 'auto'", "3: [tools] bahs: unknown key; did you mean bash?"),
    ("version = 1\n[tools]\n[tools.bash2]", "3: [tools] bash2: unknown key; did you mean bash?"),
    ("version = 1\ntools.bahs = 'auto'", "2: [tools] bahs: unknown key; did you mean bash?"),
    ("version = 1\n[unattended]\nconfrim = 'deny'", "3: [unattended] confrim: unknown key; did you mean confirm?"),
    ("version = 1\n[limits]\nturn = 1", "3: [limits] turn: unknown key; did you mean turns?"),
    (rule("desision = 'deny'"), "5: [[rule]] desision: unknown key; did you mean decision?"),
    (rule("argv = ['x']\npaths = ['x']"), "6: [[rule]] paths: unknown key; did you mean path?"),
    (rule("argv = ['x']\nzzzzzz = ['x']"), f"6: [[rule]] zzzzzz: unknown key; known: {', '.join(RULE_KEYS)}"),
    (rule("argv = ['x']\n[rule.env2]\nx = 1"), "6: [[rule]] env2: unknown key; did you mean env?"),
    # wrong types of tables
    ("version = 1\ntools = 'auto'", "2: tools: must be a table: [tools]"),
    ("version = 1\nlimits = 3", "2: limits: must be a table: [limits]"),
    ("version = 1\n[[limits]]", "2: limits: must be a table: [limits]"),
    ("version = 1\nunattended = []", "2: unattended: must be a table: [unattended]"),
    ("version = 1\nrule = 'x'", "2: rule: rules are written as [[rule]], with two brackets"),
    ("version = 1\nrule = ['x']", "2: rule: rules are written as [[rule]], with two brackets"),
    ("version = 1\n\n[rule]\nid = 'a'", "3: rule: rules are written as [[rule]], with two brackets"),
    # decisions
    (
        "version = 1\n[tools]\nbash = 'allow'",
        "3: [tools] bash: unknown decision 'allow'; did you mean walls?",
    ),
    ("version = 1\n[tools]\nbash = 'Auto'", "3: [tools] bash: unknown decision 'Auto'; did you mean auto?"),
    (
        "version = 1\n[tools]\nbash = true",
        "3: [tools] bash: must be one of auto, confirm, deny, block, walls, not true or false",
    ),
    (
        "version = 1\n[tools]\nbash = ''",
        "3: [tools] bash: unknown decision ''; known: auto, confirm, deny, block, walls",
    ),
    (rule("argv = ['x']", "ask"), "4: [[rule]] decision: unknown decision 'ask'; known: auto, confirm, deny, block"),
    (rule("argv = ['x']", "denied"), "4: [[rule]] decision: unknown decision 'denied'; did you mean deny?"),
    (
        "version = 1\n[unattended]\nconfirm = 'auto'",
        "3: [unattended] confirm: unknown decision 'auto'; known: deny, block",
    ),
    (
        "version = 1\n[unattended]\nconfirm = 'confirm'",
        "3: [unattended] confirm: unknown decision 'confirm'; known: deny, block",
    ),
    # limits
    ("version = 1\n[limits]\nturns = 0", f"3: [limits] turns: {WHOLE} 1"),
    ("version = 1\n[limits]\nturns = 1.5", f"3: [limits] turns: {WHOLE} 1, not a decimal number"),
    ("version = 1\n[limits]\nturns = true", f"3: [limits] turns: {WHOLE} 1, not true or false"),
    ("version = 1\n[limits]\nturns = '5'", f"3: [limits] turns: {WHOLE} 1, not a string"),
    ("version = 1\n[limits]\ntokens = -1", f"3: [limits] tokens: {WHOLE} 1"),
    ("version = 1\n[limits]\nrefusals = 0", f"3: [limits] refusals: {WHOLE} 1"),
    ("version = 1\n[limits]\nresult_characters = 999", f"3: [limits] result_characters: {WHOLE} 1000"),
    ("version = 1\n[limits]\nseconds = 0", f"3: [limits] seconds: {NUMBER} 1e12"),
    ("version = 1\n[limits]\nseconds = nan", f"3: [limits] seconds: {NUMBER} 1e12"),
    ("version = 1\n[limits]\nseconds = inf", f"3: [limits] seconds: {NUMBER} 1e12"),
    ("version = 1\n[limits]\nseconds = false", f"3: [limits] seconds: {NUMBER} 1e12, not true or false"),
    ("version = 1\n[limits]\ncommand_seconds = 1000001", f"3: [limits] command_seconds: {NUMBER} 1000000"),
    ("version = 1\n[limits]\ncommand_seconds = 1e10", f"3: [limits] command_seconds: {NUMBER} 1000000"),
    ("version = 1\n[limits]\ncommand_seconds = '1'", f"3: [limits] command_seconds: {NUMBER} 1000000, not a string"),
    (
        "version = 1\n[tools]\nuncovered = 'auto'",
        "3: [tools] uncovered: unknown decision 'auto'; known: confirm, deny, block",
    ),
    # what is granted and hidden
    ("version = 1\nsandbox = true", "2: sandbox: must be a table: [sandbox]"),
    ("version = 1\n[sandbox]\nrequired = 1", "3: [sandbox] required: must be true or false, not a number"),
    ("version = 1\n[sandbox]\nnetwork = 'off'", "3: [sandbox] network: must be true or false, not a string"),
    ("version = 1\n[sandbox]\nwrite = '.'", '3: [sandbox] write: must be a list of strings, such as ["a", "b"]'),
    ("version = 1\n[sandbox]\nwrite = ['/']", f"3: [sandbox] write: '/' {TOO_MUCH}"),
    ("version = 1\n[sandbox]\nwrite = ['~/']", f"3: [sandbox] write: '~/' {TOO_MUCH}"),
    ("version = 1\n[sandbox]\nwrite = ['~']", f"3: [sandbox] write: '~' {TOO_MUCH}"),
    ("version = 1\n[sandbox]\nwrite = ['//']", f"3: [sandbox] write: '//' {TOO_MUCH}"),
    ("version = 1\n[sandbox]\nwrite = ['a/../..']", "3: [sandbox] write: 'a/../..' must not hold .."),
    ("version = 1\n[sandbox]\nwrite = ['~/.']", "3: [sandbox] write: '~/.' is not in its shortest form"),
    ("version = 1\n[sandbox]\nwrite = ['./~']", "3: [sandbox] write: './~' is not in its shortest form"),
    ("version = 1\n[sandbox]\nwrite = ['a//b']", "3: [sandbox] write: 'a//b' is not in its shortest form"),
    ("version = 1\n[sandbox]\nwrite = ['/srv/./x']", "3: [sandbox] write: '/srv/./x' is not in its shortest form"),
    ("version = 1\n[sandbox]\nwrite = ['/dev']", "3: [sandbox] write: '/dev' is no folder of the disk"),
    (
        "version = 1\n[sandbox]\nwrite = ['/proc/self/root/etc']",
        "3: [sandbox] write: '/proc/self/root/etc' is no folder of the disk",
    ),
    ('version = 1\n[sandbox]\nwrite = ["a\\nb"]', "3: [sandbox] write: 'a\\nb' is no path"),
    ("version = 1\n[sandbox]\nwrite = ['']", "3: [sandbox] write: '' is no path"),
    ("version = 1\n[sandbox]\nwrite = [' x']", "3: [sandbox] write: ' x' is no path"),
    (
        "version = 1\n[sandbox]\nhide = ['*.pem']",
        "3: [sandbox] hide: '*.pem' is a pattern; patterns are not understood here; name a folder",
    ),
    (
        "version = 1\n[sandbox]\nhide = ['~ann/x']",
        "3: [sandbox] hide: '~ann/x' is another person's home; only ~/ is known",
    ),
    (
        "version = 1\n[sandbox]\nshow = ['~/.shs']",
        "3: [sandbox] show: '~/.shs' is not hidden by default; did you mean ~/.ssh?",
    ),
    (rule("argv = ['x']\nwrite = ['.']"), f"6: [[rule]] write: {GRANTED}"),
    (rule("argv = ['x']\nnetwork = true"), f"6: [[rule]] network: {GRANTED}"),
    (rule("path = ['x']\nwrite = ['.']", "auto"), f"6: [[rule]] write: {GRANTED}"),
    (rule("argv = ['x']\nwrite = ['/']", "auto"), f"6: [[rule]] write: '/' {TOO_MUCH}"),
    (rule("argv = ['x']\nwrite = []", "auto"), "6: [[rule]] write: must not be empty"),
    (rule("argv = ['x']\nnetwork = 'on'", "auto"), "6: [[rule]] network: must be true or false, not a string"),
    # what a rule needs
    ("version = 1\n[[rule]]\ndecision = 'deny'", "2: [[rule]]: has no id"),
    ("version = 1\n[[rule]]\nid = 'a'", "2: [[rule]]: has no decision"),
    ("version = 1\n[[rule]]\nid = ''\ndecision = 'confirm'", "3: [[rule]] id: must not be empty"),
    ("version = 1\n[[rule]]\nid = 3\ndecision = 'confirm'", "3: [[rule]] id: must be a string, not a number"),
    (rule("argv = ['x']", "deny"), "4: [[rule]] decision: a rule that says deny needs a reason"),
    (rule("argv = ['x']", "block"), "4: [[rule]] decision: a rule that says block needs a reason"),
    (rule("argv = ['x']\nreason = ''", "deny"), "6: [[rule]] reason: must not be empty"),
    (rule("argv = ['x']\nreason = 1979-05-27", "deny"), "6: [[rule]] reason: must be a string, not a date or time"),
    (rule("argv = ['x']\nhint = ['y']"), "6: [[rule]] hint: must be a string, not a list"),
    (
        rule(
            "argv = ['x']\n[[rule]]\nid = 'b'\ndecision = 'auto'\nargv = ['y']\n"
            "[[rule]]\nid = 'a'\ndecision = 'confirm'\nargv = ['z']"
        ),
        "11: [[rule]] id: 'a' is taken by the rule at line 2",
    ),
    (rule(""), f"2: [[rule]]: {MATCHES_NOTHING}"),
    (rule("reason = 'x'", "auto"), f"2: [[rule]]: {MATCHES_NOTHING}"),
    # argv
    (rule("argv = 'git push'"), f"5: [[rule]] argv: {ARGV}"),
    (rule("argv = []"), f"5: [[rule]] argv: {ARGV}"),
    (rule("argv = [1]"), f"5: [[rule]] argv: {ARGV}"),
    (rule("argv = ['']"), f"5: [[rule]] argv: {ARGV}"),
    (rule("argv = ['x', []]"), f"5: [[rule]] argv: {ARGV}"),
    (rule("argv = ['x', ['y', 1]]"), f"5: [[rule]] argv: {ARGV}"),
    (rule("argv = ['x', [['y']]]"), f"5: [[rule]] argv: {ARGV}"),
    (rule("argv = {x = 1}"), f"5: [[rule]] argv: {ARGV}"),
    (rule("argv = ['...']"), "5: [[rule]] argv: names no program"),
    (rule("argv = ['x', '...', 'y']"), '5: [[rule]] argv: "..." must be the last word'),
    (rule("argv = ['x', ['y', '...']]"), '5: [[rule]] argv: "..." must be the last word'),
    (rule("argv = ['git push']"), "5: [[rule]] argv: 'git push' is one word; write each word of the command by itself"),
    (rule("argv = [['x', 'y z']]"), "5: [[rule]] argv: 'y z' is one word; write each word of the command by itself"),
    # walls
    (
        rule("argv = ['x']\nwalls = 'workspace'"),
        "6: [[rule]] walls: is for auto rules: a stricter rule decides in all walls",
    ),
    (rule("argv = ['x']\nwalls = 'reader'", "auto"), "6: [[rule]] walls: unknown walls 'reader'; known: workspace"),
    (rule("path = ['x']\nwalls = 'workspace'", "auto"), "6: [[rule]] walls: needs argv"),
    (
        rule("argv = ['x']\nwalls = true", "auto"),
        "6: [[rule]] walls: must be a string, not true or false",
    ),
    (
        rule("argv = ['docker', '...']\nwalls = 'workspace'\nmatch = ['docker ps']", "auto"),
        f"7: [[rule]] match: {NO_MATCH} 'docker ps': it leaves the walls: it needs the socket of docker's daemon",
    ),
    (
        rule("argv = ['git', '...']\nwalls = 'workspace'\nmatch = ['git push']", "auto"),
        f"7: [[rule]] match: {NO_MATCH} 'git push': it leaves the walls: it reaches the network",
    ),
    # flags
    (rule("path = ['x']\nflags = ['-f']"), "6: [[rule]] flags: needs argv"),
    (rule("argv = ['x']\nflags = '-f'"), f"6: [[rule]] flags: {LIST}"),
    (rule("argv = ['x']\nflags = ['f']"), "6: [[rule]] flags: 'f' is not an option such as -x or --long"),
    (rule("argv = ['x']\nflags = ['-']"), "6: [[rule]] flags: '-' is not an option such as -x or --long"),
    (rule("argv = ['x']\nflags = ['-=b']"), "6: [[rule]] flags: '-=b' is not an option such as -x or --long"),
    (
        rule("argv = ['x', 'y']\noptions = ['-c']"),
        "6: [[rule]] options: is for auto rules: a stricter rule skips all options before the subcommand",
    ),
    (rule("options = ['-c']\npath = ['x']", "auto"), "5: [[rule]] options: needs argv"),
    (
        rule("argv = ['x', 'y']\noptions = ['c=*']", "auto"),
        "6: [[rule]] options: 'c=*' is not an option such as --debug, --context=dev or --context=*",
    ),
    (
        rule("argv = ['x', '...']\noptions = ['-c=*']", "auto"),
        "6: [[rule]] options: is about options before the second word of `argv`: name that word, or write them in `flags`",
    ),
    (
        rule("argv = ['git', 'log']\noptions = ['-c=*']", "auto"),
        "6: [[rule]] options: -c=* may make the program run something else; no auto rule without walls may list it",
    ),
    (
        rule("argv = ['python', 'x.py']\noptions = ['-c=*']", "auto"),
        "6: [[rule]] options: -c=* may make the program run something else; no auto rule without walls may list it",
    ),
    (
        rule("argv = ['x']\nflags = []"),
        "6: [[rule]] flags: an empty list is never met: name the options, or leave it out",
    ),
    # tool, env, access, path, except, text
    (rule("tool = 'bash'"), f"5: [[rule]] tool: {LIST}"),
    (rule("tool = []"), "5: [[rule]] tool: must not be empty"),
    (rule("tool = ['writefile']"), "5: [[rule]] tool: unknown tool 'writefile'; did you mean write_file?"),
    (
        rule("tool = ['default']"),
        f"5: [[rule]] tool: unknown tool 'default'; known: {', '.join((*SHIPPED_TOOLS, *OPTIONAL_NAMES))}",
    ),
    (
        rule("tool = ['read_file']\nargv = ['x']"),
        "5: [[rule]] tool: argv, text and env are about bash, which is not among the tools",
    ),
    (
        rule("text = 'x'\ntool = ['read_file']"),
        "6: [[rule]] tool: argv, text and env are about bash, which is not among the tools",
    ),
    (rule("env = 'CI'"), f"5: [[rule]] env: {LIST}"),
    (rule("env = []"), "5: [[rule]] env: must not be empty"),
    (rule("argv = ['x']\naccess = ['read']"), "6: [[rule]] access: needs path"),
    (rule("argv = ['x']\nexcept = ['x']"), "6: [[rule]] except: needs path"),
    (rule("path = ['x']\naccess = ['raed']"), "6: [[rule]] access: unknown access 'raed'; did you mean read?"),
    (rule("path = ['x']\naccess = ['either']"), "6: [[rule]] access: unknown access 'either'; known: read, write"),
    (rule("path = ['x']\naccess = []"), "6: [[rule]] access: must not be empty"),
    (rule("path = 'x'"), f"5: [[rule]] path: {LIST}"),
    (rule("path = []"), "5: [[rule]] path: must not be empty"),
    (rule("path = ['a', '']"), "5: [[rule]] path: the pattern '' is empty"),
    (rule("path = ['!a']"), "5: [[rule]] path: the pattern '!a' begins with '!'; exceptions are written in `except`"),
    (
        rule("path = ['x']\nexcept = ['../y']"),
        "6: [[rule]] except: the pattern '../y' contains `..`, `.` or `//`; patterns are matched against resolved paths",
    ),
    (rule("text = ''"), "5: [[rule]] text: must not be empty"),
    (rule("text = ['x']"), "5: [[rule]] text: must be a string, not a list"),
    # what no auto rule can say
    (
        rule("argv = ['x']\ntext = 'y'", "auto"),
        "6: [[rule]] text: an auto rule cannot be about a piece of text: use argv",
    ),
    (rule("env = ['CI']", "auto"), "2: [[rule]]: an auto rule needs argv or path; a whole tool is set under [tools]"),
    (
        rule("tool = ['bash']", "auto"),
        "2: [[rule]]: an auto rule needs argv or path; a whole tool is set under [tools]",
    ),
    # what is said of tools from outside
    (rule("where = ['x']"), f"5: [[rule]] where: {WHERE}"),
    (rule("where = {}"), f"5: [[rule]] where: {WHERE}"),
    (rule("where = {path = 'x'}"), "5: [[rule]] where: path: must be a list, not a string"),
    (rule("where = {path = []}"), "5: [[rule]] where: path: must not be empty"),
    (rule("where = {'' = ['x']}"), "5: [[rule]] where: : must not be empty"),
    (
        rule("where = {path = ['../x']}"),
        "5: [[rule]] where: the pattern '../x' contains `..`, `.` or `//`; patterns are matched against resolved paths",
    ),
    (
        rule("where = {url = {hots = ['x']}}"),
        f'5: [[rule]] where: url: {FORMS}; did you mean host?; an argument in another is written "url.hots"',
    ),
    (
        rule("where = {url = {path = ['x'], host = ['x']}}"),
        f"5: [[rule]] where: url: {FORMS}",
    ),
    (rule("where = {host = ['https://x']}"), f"5: [[rule]] where: host: 'https://x' {HOST}"),
    (rule("where = {host = ['X.org']}"), f"5: [[rule]] where: host: 'X.org' {HOST}"),
    (rule("where = {host = ['*']}"), f"5: [[rule]] where: host: '*' {HOST}"),
    (rule("where = {host = ['x.*']}"), f"5: [[rule]] where: host: 'x.*' {HOST}"),
    (rule("where = {host = ['b\u00fccher.org']}"), f"5: [[rule]] where: host: 'b\u00fccher.org' {HOST}"),
    (
        rule("where = {host = ['x.org:443']}"),
        "5: [[rule]] where: host: 'x.org:443' has the usual port 443: remove it, and write other ports only",
    ),
    (rule("tool = ['bash']\nwhere = {a = ['x']}"), f"6: [[rule]] where: {OUTSIDE}; bash ships: use argv or path"),
    (rule("argv = ['x']\nwhere = {a = ['x']}"), f"6: [[rule]] where: {OUTSIDE}, which have no argv, path, text or env"),
    (
        rule("path = ['x']\nread_only = true", "auto"),
        f"6: [[rule]] read_only: {OUTSIDE}, which have no argv, path, text or env",
    ),
    (
        rule("tool = ['mcp__a__*']\nread_only = true"),
        "6: [[rule]] read_only: is what an auto rule wants of a tool; a stricter rule is about all that it names",
    ),
    (rule("read_only = 'x'"), "5: [[rule]] read_only: must be true or false, not a string"),
    (
        rule("where = {path = ['x']}", "auto"),
        "2: [[rule]] tool: an auto rule names the tools from outside that it is about",
    ),
    (
        rule("where = {path = ['x']}\nmatch = ['x']"),
        '6: [[rule]] match: must be a list of arguments, such as [{path = "src/a.py"}]',
    ),
    (
        rule("where = {path = ['x']}\nmatch = [{path = 'x'}, {path = 'y'}]"),
        "6: [[rule]] match: the rule does not match its example {'path': 'y'}: `where` does not touch the argument 'path'",
    ),
    (
        rule("tool = ['mcp__a__*']\nwhere = {path = ['x']}\nnot_match = [{path = './x'}]", "auto"),
        "7: [[rule]] not_match: the rule matches its counter-example {'path': './x'}",
    ),
    # examples
    (
        rule("argv = ['ls']\nmatch = ['ls', 'rm']"),
        "6: [[rule]] match: the rule does not match its example 'rm': the program is 'rm', not 'ls'",
    ),
    (
        rule("argv = ['ls']\nmatch = ['ls -l']", "auto"),
        "6: [[rule]] match: the rule does not match its example 'ls -l': the option '-l' is not in `flags`",
    ),
    (
        rule("argv = ['ls']\nmatch = ['ls; rm']", "auto"),
        "6: [[rule]] match: the rule does not match its example 'ls; rm': the program is 'rm', not 'ls' (part 'rm')",
    ),
    (
        rule("argv = ['ls', '...']\nmatch = ['ls > f']", "auto"),
        "6: [[rule]] match: the rule does not match its example 'ls > f': `argv` covers commands only (part 'write f')",
    ),
    (
        rule("argv = ['ls']\nnot_match = ['rm', 'sudo ls']"),
        "6: [[rule]] not_match: the rule matches its counter-example 'sudo ls'",
    ),
    (
        rule("argv = ['ls', '...']\nnot_match = ['ls /etc']", "auto"),
        "6: [[rule]] not_match: the rule matches its counter-example 'ls /etc'",
    ),
    (
        rule("path = ['.env']\nmatch = ['env']"),
        "6: [[rule]] match: the rule does not match its example 'env': no pattern of `path` matches 'env'",
    ),
    (
        rule("path = ['migrations/0*.py']\nmatch = ['shop/migrations/0001.py']"),
        (
            "6: [[rule]] match: the rule does not match its example 'shop/migrations/0001.py': no pattern of `path` matches "
            "'shop/migrations/0001.py': one with a slash inside begins at the workspace, so write '**/migrations/0*.py'"
        ),
    ),
    (
        rule("path = ['docs/*.md']\naccess = ['write']\nmatch = ['a/docs/x.md']", "auto"),
        (
            "7: [[rule]] match: the rule does not match its example 'a/docs/x.md': no pattern of `path` covers 'a/docs/x.md': "
            "one with a slash inside begins at the workspace, so write '**/docs/*.md'"
        ),
    ),
    (
        rule("path = ['.env']\nnot_match = ['a/.ENV']"),
        "6: [[rule]] not_match: the rule matches its counter-example 'a/.ENV'",
    ),
    (
        rule("path = ['.env']\nmatch = ['.ENV']", "auto"),
        "6: [[rule]] match: the rule does not match its example '.ENV': no pattern of `path` covers '.ENV'",
    ),
    (
        rule("path = ['*']\nmatch = ['/etc/x']", "auto"),
        "6: [[rule]] match: the rule does not match its example '/etc/x': '/etc/x' does not lie in the workspace",
    ),
    (
        rule("argv = ['kubectl', 'get', '...']\noptions = ['-n']", "auto"),
        '6: [[rule]] options: kubectl takes a value with -n: write "-n=*"',
    ),
    (
        rule("argv = ['git', 'log', '...']\noptions = ['--no-pager=*']\nwalls = 'workspace'", "auto"),
        "6: [[rule]] options: git takes no value with --no-pager",
    ),
    (
        rule("argv = ['kubectl', 'get']\nflags = ['--context=dev-*']", "auto"),
        "6: [[rule]] flags: --context=dev-*: an auto rule takes flags as written; write it in `options`",
    ),
    (rule("argv = ['ls']\nmatch = 'ls'"), f"6: [[rule]] match: {LIST}"),
    (rule("argv = ['ls']\nmatch = []"), "6: [[rule]] match: must not be empty"),
    (
        rule("argv = ['ls']\nmatch = ['']"),
        "6: [[rule]] match: the rule does not match its example '': the rule is not about ''",
    ),
]


MISMATCHES = [
    # auto: every word is covered
    ("auto", "argv = ['pnpm', 'test', '...']", "pnpm --filter web test",
     "word 2 is '--filter', not 'test': list '--filter' in `flags`"),
    ("auto", "argv = ['pnpm', 'test']\nflags = ['--filter']", "pnpm --filter web lint", "word 4 is 'lint', not 'test'"),
    ("auto", "argv = ['kubectl', 'get']", "kubectl --kubeconfig=x get",
     "word 2 is '--kubeconfig=x', not 'get': list it in `options` (\"--kubeconfig\", or \"--kubeconfig=*\" if it takes "),
    ("auto", "argv = ['git', 'log']\nflags = ['-C']", "git -C sub log",
     "word 2 is '-C', not 'log': list it in `options` (\"-C=*\")"),
    ("auto", "argv = ['python', 'analysis/*.py']", "python analysis/clean.py",
     "word 2 is 'analysis/clean.py', not 'analysis/*.py': stars in `argv` need `walls`, and match no slash"),
    ("auto", "argv = ['pytest', '...']", "python -m pytest", "the program is 'python', not 'pytest'"),
    ("auto", "argv = [['npm', 'pnpm'], 'test']", "yarn test", "the program is 'yarn', not 'npm' or 'pnpm'"),
    ("auto", "argv = ['go', 'test', './...']", "go test", "word 3 is missing, and `argv` has './...' there"),
    ("auto", "argv = ['pytest', '...']\nflags = ['-q']", "pytest -q --pdb", "the option '--pdb' is not in `flags`"),
    ("auto", "argv = ['ls', '...']\nflags = ['-l']", "ls -la", "the option '-a' is not in `flags`"),
    ("auto", "argv = ['pytest']", "pytest tests", "'tests' follows the words of `argv`, which do not end in '...'"),
    ("auto", "argv = ['pytest', '...']", "pytest @args", "'@args' may name a file of further options"),
    ("auto", "argv = ['make', 'x', '...']", "make x SHELL=./x", "'SHELL=./x' is more than a plain name"),
    ("auto", "argv = ['pytest']", "A=1 pytest", "the variable 'A' is not in `env`"),
    ("auto", "argv = ['cat', '...']\npath = ['docs/']", "cat src/x", "no pattern of `path` covers 'src/x'"),
    ("auto", "argv = ['pytest']", "pytest | tee x", "the program is 'tee', not 'pytest' (part 'tee x')"),
    ("auto", "argv = ['pytest']", "timeout 5 ls", "the program is 'ls', not 'pytest' (part 'ls')"),
    ("auto", "argv = ['ls']", "(", "'(' is not plainly understood: "),
    ("auto", "path = ['docs/']\nexcept = ['docs/k']", "docs/k", "`except` covers 'docs/k'"),
    # strict: the beginning of a command is touched
    ("confirm", "argv = ['kubectl', 'get', ['secret', 'secrets']]", "kubectl get secretstores",
     "'get' is not followed by 'secret' or 'secrets'"),
    ("confirm", "argv = ['rm', '-rf']", "rm -fr x",
     "'rm' is not followed by '-rf': write options in `flags`, which takes them in any order"),
    ("confirm", "argv = ['git', 'push']\nflags = ['--force']", "git push -v", "no option of `flags` follows"),
    ("confirm", "argv = ['cat']\npath = ['.env']", "cat x", "no operand matches `path`"),
    ("confirm", "text = 'x'", "ls", "the text 'x' does not occur"),
    ("confirm", "env = ['X']", "Y=1 ls", "no variable of `env` is set"),
    ("confirm", "path = ['*.md']\nexcept = ['a.md']", "a.md", "`except` covers 'a.md'"),
]  # fmt: skip


@all_rows(("decision", "body", "example", "words"), MISMATCHES)
def test_failing_example_names_the_word(decision: str, body: str, example: str, words: str) -> None:
    text = rule(f"{body}\nmatch = ['{example}']", decision)
    assert str(problem(text)).partition(": the rule does not match its example ")[2].startswith(f"'{example}': {words}")


@all_rows(("text", "message"), [pytest.param(*row, id=row[1][:100]) for row in BAD])
def test_a_mistake_is_named_with_file_line_and_key(text: str, message: str) -> None:
    assert problem(text) == f"p.toml:{message}"


@all_rows(
    ("text", "beginning"),
    [
        pytest.param("version = ", "p.toml: is not TOML: Invalid value (at ", id="a value is missing"),
        pytest.param("version = 1\nx", "p.toml: is not TOML: Expected '=' after a key", id="an equals sign is missing"),
        pytest.param("version = 1\nversion = 1", "p.toml: is not TOML: Cannot overwrite a value", id="a key twice"),
        pytest.param("version = 1\n[tools]\n[tools]", "p.toml: is not TOML: Cannot declare", id="a table twice"),
        pytest.param("version = 1\n\0", "p.toml: is not TOML: ", id="NUL"),
        pytest.param("x = " + "[" * 3_000, "p.toml: is not TOML: ", id="nested without end"),
        pytest.param("x = " + "9" * 5_000, "p.toml: is not TOML: Exceeds the limit", id="a number without end"),
        pytest.param("x = 1979-13-01", "p.toml: is not TOML: ", id="a date that is none"),
    ],
)
def test_invalid_toml_is_refused(text: str, beginning: str) -> None:
    assert problem(text).startswith(beginning)


def test_invalid_utf_8_is_refused() -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy(b"version = 1 # \xff", "p.toml")
    assert str(caught.value) == "p.toml: is not UTF-8: byte 14"


FIXES_SCRIPT = "runs whatever its operands say; name the script, or -m and the module"
NO_AUTO = [
    *[(f"argv = ['{name}', '...']", name, FIXES_SCRIPT) for name in sorted(INTERPRETERS - {"make"})],
    ("argv = ['make', '...']", "make", "runs whatever its operands say; name the target"),
    ("argv = ['python']\nflags = ['-c']", "python", ""),
    ("argv = ['/usr/bin/python3', '...']", "/usr/bin/python3", FIXES_SCRIPT),
    ("argv = ['python3.11', '...']", "python3.11", FIXES_SCRIPT),
    ("argv = ['perl5.36', '...']", "perl5.36", FIXES_SCRIPT),
    ("argv = ['node-20', '...']", "node-20", FIXES_SCRIPT),
    ("argv = [['pytest', 'python'], '...']", "python", FIXES_SCRIPT),
    ("argv = ['python', '-c', '...']", "python", FIXES_SCRIPT),
    ("argv = ['python', '-m', '...']", "python", FIXES_SCRIPT),
    ("argv = ['python', ['-m', '-c'], 'x', '...']", "python", FIXES_SCRIPT),
    ("argv = ['python', ['x.py', '-c'], '...']", "python", FIXES_SCRIPT),
    ("argv = ['python', '-m', ['pytest', '-x'], '...']", "python", FIXES_SCRIPT),
    ("argv = ['python', '-mpytest', '...']", "python", FIXES_SCRIPT),
    ("argv = ['python', 'x.py', '...']", "python", ""),
    ("argv = ['python', '-m', 'pytest', '...']", "python", ""),
    ("argv = [['python', 'python3'], '-m', ['pytest', 'unittest'], '...']", "python", ""),
    ("argv = ['make', 'test']", "make", ""),
    ("argv = ['awk', '{print $1}', '...']", "awk", ""),
    ("argv = ['git', 'log', \"it's\"]", "git", ""),
    ("argv = ['bash', 'x.sh']", "bash", RUNS_ANOTHER),
    ("argv = ['sudo', 'ls']", "sudo", f"{UNDERSTOOD}: {BY_ITSELF}"),
    ("argv = ['timeout', '5', 'ls']", "timeout", RUNS_ANOTHER),
    ("argv = ['nice', '...']", "nice", UNDERSTOOD),
    ("argv = ['cd', '...']", "cd", UNDERSTOOD),
    ("argv = ['eval', 'x']", "eval", RUNS_ANOTHER),
    ("argv = ['uv', 'run', 'pytest']", "uv", RUNS_ANOTHER),
    ("argv = ['npx', 'x']", "npx", RUNS_ANOTHER),
    ("argv = ['docker', 'ps']", "docker", f"{UNDERSTOOD}: it acts outside the workspace, so let a person decide on it"),
    ("argv = [['ls', 'xargs'], 'x']", "xargs", RUNS_ANOTHER),
    ("argv = ['/usr/bin/env', 'ls']", "/usr/bin/env", RUNS_ANOTHER),
    ("argv = ['if', 'x']", "if", UNDERSTOOD),
    ("argv = ['A=1', 'x']", "A=1", UNDERSTOOD),
    ("argv = ['x>y']", "x>y", UNDERSTOOD),
    ("argv = ['x;y']", "x;y", UNDERSTOOD),
    ("argv = [\"'x'\"]", "'x'", UNDERSTOOD),
    ("argv = ['*']", "*", UNDERSTOOD),
    ("argv = ['find', '.', '-exec', 'ls', ';']", "find", RUNS_ANOTHER),
    ("argv = ['ls', '...']", "ls", ""),
]


@all_rows(("body", "program", "why"), [pytest.param(*row, id=f"{row[0]}: {row[2] or 'accepted'}") for row in NO_AUTO])
def test_auto_rule_is_refused_for_programs_that_run_their_operands(body: str, program: str, why: str) -> None:
    """A stricter rule may name them all."""
    text = rule(body, "auto")
    if why:
        assert problem(text) == f"p.toml:5: [[rule]] argv: {program} {why}"
    else:
        assert parse(text).rules[0].decision is Decision.AUTO
    assert parse(rule(body, "confirm")).rules[0].decision is Decision.CONFIRM


def variables(of: Rule) -> tuple[str, ...]:
    """Return the `env` of a rule."""
    matcher = of.find(CommandMatcher)
    assert matcher is not None
    return matcher.env


@all_rows("name", [*sorted(STEERING), "LD_X", "DYLD_INSERT_LIBRARIES", "GIT_X"])
def test_auto_rule_cannot_list_a_steering_variable(name: str) -> None:
    body = f"argv = ['x']\nenv = ['CI', '{name}']"
    assert problem(rule(body, "auto")) == f"p.toml:6: [[rule]] env: {name} {STEERS}"
    assert variables(parse(rule(body, "confirm")).rules[0]) == ("CI", name)


GOOD_EXAMPLES = [
    pytest.param(
        "argv = ['git', 'push']\nmatch = ['git -C x push', 'sudo git push > f']", "confirm", id="a strict rule"
    ),
    pytest.param(
        "argv = ['./deploy.sh']\nmatch = ['./deploy.sh', '/w/deploy.sh x']", "confirm", id="a program by its path"
    ),
    pytest.param("argv = ['x', '...']\nmatch = ['x a', 'x; x b']\nnot_match = ['x; y']", "auto", id="an auto rule"),
    pytest.param("env = ['CI']\nmatch = ['CI=1 x']\nnot_match = ['x']", "confirm", id="a variable"),
    pytest.param("text = '| sh'\nmatch = ['a | sh']\nnot_match = ['sh']", "confirm", id="a text"),
    pytest.param("path = ['.env']\nmatch = ['.env', 'a/.ENV']\nnot_match = ['env']", "confirm", id="a path"),
    pytest.param(
        "path = ['/docs/']\nmatch = ['docs/a']\nnot_match = ['docs/../a', '/docs/a']", "auto", id="paths for auto"
    ),
    pytest.param("tool = ['bash']\nmatch = ['ls', 'x > y']", "confirm", id="a whole tool for commands"),
    pytest.param("tool = ['write_file']\nmatch = ['a', '/etc/x']", "confirm", id="a whole tool for files"),
    pytest.param(
        "tool = ['write_file']\npath = ['a']\nmatch = ['a']\nnot_match = ['b']", "confirm", id="a tool's files"
    ),
]


@all_rows(("body", "decision"), GOOD_EXAMPLES)
def test_correct_examples_load(body: str, decision: str) -> None:
    assert parse(rule(body, decision)).rules[0].id == "a"


def test_tool_of_another_program_can_be_named_once_declared() -> None:
    text = b'version = 1\n[tools]\nfetch = "deny"\n[[rule]]\nid = "a"\ndecision = "confirm"\ntool = ["fetch"]\n'
    loaded = parse_policy(text, "p.toml", extra_tools=["fetch"])
    assert (loaded.defaults[0].tool, loaded.rules[0].tools) == ("fetch", ("fetch",))
    assert problem(text.decode()).startswith("p.toml:7: [[rule]] tool: unknown tool 'fetch'")


@all_rows(
    "text",
    [
        pytest.param("version = 1\r\n\r\n[tools]\r\nbahs = 'auto'\r\n", id="line ends of Windows"),
        pytest.param("version = 1\nname = '''\nx'''\n[tools] # x\nbahs = 'auto'", id="a long literal string"),
        pytest.param('version = 1\nname = """x"""" # """\n\n[ tools ]\n\n"bahs" = "auto"', id="four quotes"),
        pytest.param("version = 1\nname = 'a # [b'\n[tools]\n'bahs' = 'auto'", id="marks in a string"),
        pytest.param('version = 1\nname = "a\\"["\n[tools]\n\tbahs=\'auto\'', id="an escaped quote"),
    ],
)
def test_line_numbers_are_right_after_any_text(text: str) -> None:
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "bahs" in line)
    assert problem(text) == f"p.toml:{line}: [tools] bahs: unknown key; did you mean bash?"


class Statement(NamedTuple):
    """A piece of TOML: its text, and the key it gives."""

    text: str
    key: str


VALUES = st.sampled_from(
    [
        "1", '"x"', "'#'", '"[["', "[1, 2]", "[\n 1, # ]\n 2\n]", '"""\n[a]\nk = 1\n"""', "'''\n# x\n'''", "{a = 1}",
        "[[1], [\n2]]", '"\\""', "[\n\n]", '"""a\\"""b"""', "[{a = '}'},\n {b = 2}]", "1979-05-27", "true # '",
    ]
)  # fmt: skip
NOISE = st.sampled_from(["", "# x\n", "\n", "  \n", '# """\n', "# [t]\n"])
KEYS = st.integers(min_value=0, max_value=99).map(lambda number: f"k{number}")
BODIES = st.lists(st.tuples(KEYS, VALUES, NOISE), max_size=4, unique_by=lambda entry: entry[0])


@settings(max_examples=examples(300))
@given(BODIES, st.lists(st.tuples(st.sampled_from(["[t]", "[[r]]", "[[ s ]]"]), BODIES, NOISE), max_size=5))
def test_each_key_has_its_own_line_number(
    top: list[tuple[str, str, str]], tables: list[tuple[str, list[tuple[str, str, str]], str]]
) -> None:
    """Whatever values span several lines and whatever comments hold; written and counted here, read there."""
    text = ""
    expected = {("", 0, ""): 1}
    counts: dict[str, int] = {}

    def write(table: str, index: int, entries: list[tuple[str, str, str]]) -> None:
        nonlocal text
        for key, value, noise in entries:
            text += noise
            expected[table, index, key] = text.count("\n") + 1
            text += f"{key} = {value}\n"

    write("", 0, top)
    for header, entries, noise in tables:
        name = header.strip("[] ")
        if header == "[t]" and "t" in counts:
            continue
        counts[name] = counts.get(name, -1) + 1
        text += noise
        expected[name, counts[name], ""] = text.count("\n") + 1
        expected.setdefault(("", 0, name), text.count("\n") + 1)
        text += f"{header}\n"
        write(name, counts[name], entries)
    tomllib.loads(text)
    assert key_lines(text) == expected


@settings(max_examples=examples(200))
@given(st.text(alphabet="[]{}='\"\\#\n ak.1,"))
def test_lines_of_any_text_are_found_without_raising(text: str) -> None:
    assert key_lines(text)["", 0, ""] == 1


JSON = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.text("ab.*/ -", max_size=4), st.sampled_from(sorted(DECISION_WORDS))),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=examples(300))
@given(
    st.dictionaries(st.sampled_from([*RULE_KEYS, "x"]), JSON), st.dictionaries(st.sampled_from(TOP_KEYS[1:-1]), JSON)
)
def test_any_table_loads_or_is_refused_with_its_line(body: dict[str, object], top: dict[str, object]) -> None:
    lines = ["version = 1", *(f"{key} = {json.dumps(value)}" for key, value in top.items()), "[[rule]]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in body.items()]
    try:
        loaded = parse("\n".join(lines))
    except PolicyError as error:
        _, line, text = str(error).split(":", 2)
        assert 1 <= int(line) <= len(lines)
        assert text.strip()
    else:
        assert loaded.rules[0].id == body["id"]


# Loading: the only I/O.


def test_a_loaded_file_is_named_digested_and_guarded(tmp_path: Path) -> None:
    path = tmp_path / "team.toml"
    path.write_bytes(FULL.encode())
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    loaded = load_policy(str(link), layer=Layer.PROJECT)
    (source,) = loaded.sources
    assert (source.layer, source.path, source.content) == (Layer.PROJECT, str(link), FULL.encode())
    assert loaded.guarded == (os.path.realpath(path), os.path.realpath(tmp_path) + "/link.toml")
    assert loaded.rules[0].origin == Origin(file=str(link), line=line_of('id = "tests"') - 1)
    assert loaded.sha256 == parse(FULL).sha256


def folder(path: Path) -> None:
    path.mkdir()


def fifo(path: Path) -> None:
    os.mkfifo(path)


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def large(path: Path) -> None:
    path.write_bytes(b"#" * (MAX_POLICY_BYTES + 1))


def nothing(path: Path) -> None:
    """Leave nothing there."""


UNREADABLE = [
    pytest.param(nothing, "cannot be read: No such file or directory", id="nothing"),
    pytest.param(folder, "cannot be read: Is a directory", id="a folder"),
    pytest.param(fifo, "cannot be read: Not a regular file", id="a FIFO that nobody writes to"),
    pytest.param(dangling, "cannot be read: No such file or directory", id="a link to nothing"),
    pytest.param(loop, "cannot be read: Too many levels of symbolic links", id="a link to itself"),
    pytest.param(large, f"is larger than {MAX_POLICY_BYTES} bytes", id="too large"),
]


@all_rows(("make", "message"), UNREADABLE)
def test_unreadable_policy_file_is_refused_at_once(tmp_path: Path, make: Callable[[Path], None], message: str) -> None:
    path = tmp_path / "p.toml"
    make(path)
    open_before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(PolicyError) as caught:
        load_policy(str(path))
    assert str(caught.value) == f"{path}: {message}"
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_fifo_with_a_silent_writer_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    try:
        with pytest.raises(PolicyError, match=r"cannot be read: Not a regular file$"):
            load_policy(str(path))
    finally:
        os.close(writer)


def test_a_device_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"^/dev/zero: cannot be read: Not a regular file$"):
        load_policy("/dev/zero")


def test_shipped_name_is_loaded_beside_a_file_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "ci").write_text("version = 1")
    load = "from harness import load_policy; print(len(load_policy('ci').rules), load_policy('./ci').rules)"
    done = subprocess.run([sys.executable, "-c", load], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout == f"{len(load_policy(shipped_policy_path('ci')).rules)} ()\n"


def test_unknown_name_is_refused_with_the_nearest_shipped_name() -> None:
    with pytest.raises(
        PolicyError, match=r"^unknown policy 'readonl': neither a file nor a shipped policy; did you mean rea"
    ):
        load_policy("readonl")


@all_rows("path", ["./a\0b", "./a\ud800"])
def test_a_path_that_cannot_name_a_file_is_refused(path: str) -> None:
    with pytest.raises(PolicyError, match="cannot be read: "):
        load_policy(path)


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text("version = 1")
    path.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65_534)  # root may read everything
    try:
        with pytest.raises(PolicyError) as caught:
            load_policy(str(path))
    finally:
        os.seteuid(user)
    assert str(caught.value) == f"{path}: cannot be read: Permission denied"


# Putting files together.


def test_empty_list_of_policies_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"^no policy was given$"):
        combine([])


def test_one_policy_combined_is_itself() -> None:
    loaded = parse(FULL)
    assert combine([loaded]) is loaded


def test_a_combination_has_everything_and_the_strictest_of_each() -> None:
    one = parse_policy(
        b"version = 1\n[limits]\nturns = 5\nseconds = 10\n[unattended]\nconfirm = 'block'\n[tools]\nbash = 'auto'\n"
        b"[[rule]]\nid = 'a'\ndecision = 'confirm'\nargv = ['x']\n",
        "one.toml",
        layer=Layer.USER,
    ).guarding("/one")
    two = parse_policy(
        b"version = 1\n[limits]\nturns = 9\ntokens = 7\n[[rule]]\nid = 'b'\ndecision = 'confirm'\nargv = ['y']\n",
        "two.toml",
        layer=Layer.USER,
    ).guarding("/two", "/one")
    assert combine([one, two]) == Policy(
        name="one+two",
        rules=one.rules + two.rules,
        defaults=one.defaults,
        limits=Limits(max_turns=5, max_seconds=10.0, max_tokens=7),
        unattended=Decision.BLOCK,
        sources=one.sources + two.sources,
        guarded=("/one", "/two"),
    )


def test_combined_digest_depends_on_content_layer_and_trust_but_not_order() -> None:
    one, two = parse("version = 1"), parse("version = 1 # two", layer=Layer.PROJECT)
    digests = {
        combine([one, two]).sha256,
        combine([one, tightening_only(two)]).sha256,
        combine([one, parse("version = 1 # two", layer=Layer.USER)]).sha256,
        combine([one, parse("version = 1 # three", layer=Layer.PROJECT)]).sha256,
        one.sha256,
        two.sha256,
    }
    assert len(digests) == 6
    assert combine([one, two]).sha256 == combine([two, one]).sha256


def test_an_id_is_taken_once_in_a_file() -> None:
    text = b"version = 1\n[[rule]]\nid = 'a'\ndecision = 'confirm'\nargv = ['x']\n"
    one, two = parse_policy(text, "one.toml"), parse_policy(text, "two.toml")
    with pytest.raises(PolicyError) as caught:
        combine([one, parse_policy(text, "one.toml")])
    assert str(caught.value) == "one.toml:2: rule a: the id is taken by the rule at one.toml:2"
    assert [rule.origin.file for rule in combine([one, two]).rules] == ["one.toml", "two.toml"]
    project = parse_policy(text, "two.toml", layer=Layer.PROJECT)
    assert [rule.layer for rule in combine([one, project]).rules] == [Layer.FILE, Layer.PROJECT]


def test_tightening_only_keeps_just_the_stricter_parts() -> None:
    loaded = parse(FULL)
    tight = tightening_only(loaded)
    assert [rule.id for rule in tight.rules] == ["secrets", "raw"]
    assert [default.tool for default in tight.defaults] == [name for name in FULL_TOOLS if name != "read_file"]
    assert (tight.limits, tight.unattended, tight.sources[0].trusted) == (loaded.limits, loaded.unattended, False)
