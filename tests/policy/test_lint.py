"""What `harness policy check` warns of: a table on each side, and that a rule called idle can be taken away."""

from __future__ import annotations

import json
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import all_rows
from sizes import examples
from work import assert_linear

from harness.actions import Access, Action, Decision, Facet
from harness.messages import ToolCall
from harness.policy.argv_pattern import ArgvPattern
from harness.policy.command_matchers import CommandMatcher
from harness.policy.hosts import host_patterns
from harness.policy.lint import PolicyWarning, StrictRules, catches, warnings
from harness.policy.loader import SHIPPED, load_policy, parse_policy
from harness.policy.matcher import Matcher
from harness.policy.matchers import FileMatcher, TextMatcher
from harness.policy.patterns import PathPatterns
from harness.policy.plain_commands import EXAMPLE_DISK
from harness.policy.policy import Policy, combine
from harness.policy.rules import Layer, Origin, Rule
from harness.policy.tool_matchers import ArgumentMatcher, ArgumentPatterns, HostMatcher, ToolMatcher
from harness.policy.verdict import evaluate
from harness.record import replace
from harness.shell.facets import read_commands
from harness.tool_kinds import SHIPPED_TOOLS


def rule(name: str, decision: str, **keys: object) -> str:
    """Return a rule as TOML; a list in JSON is one in TOML. `except_` stands for `except`."""
    lines = [f'[[rule]]\nid = "{name}"\ndecision = "{decision}"\nreason = "r"']
    return "\n".join([*lines, *(f"{key.rstrip('_')} = {json.dumps(value)}" for key, value in keys.items()), ""])


def auto(**keys: object) -> str:
    granted = {"write": ["."], "network": True} if "argv" in keys else {}
    return rule("yes", "auto", **{**granted, **keys})


def deny(**keys: object) -> str:
    return rule("no", "deny", **keys)


def policy(text: str, file: str = "p.toml", layer: Layer = Layer.FILE) -> Policy:
    return parse_policy(f"version = 1\n{text}".encode(), file, layer=layer)


DENY_PUSH = deny(argv=["git", "push"], match=["git push"])
DENY_ENV = deny(path=[".env", "*.pem"], match=[".env"])

WARNED = [
    # --- never reached
    pytest.param(
        DENY_PUSH + auto(argv=["git", "push", "origin"]),
        "yes",
        "is never reached: all that it matches is deny by rule no (p.toml:2), and auto does not lift that",
        id="an auto rule behind a deny rule on its first words",
    ),
    pytest.param(auto(argv=["git", "push"]) + DENY_PUSH, "yes", "is never reached", id="whatever their order"),
    pytest.param(
        DENY_PUSH + auto(argv=["git", "-C", "x", "push", "..."]),
        "yes",
        "is never reached",
        id="past options between words",
    ),
    pytest.param(
        DENY_PUSH + auto(argv=["/usr/bin/git", "push"]), "yes", "is never reached", id="past the program's folder"
    ),
    pytest.param(
        deny(argv=["git", ["push", "pull"]], match=["git pull"]) + auto(argv=["git", ["pull", "push"]]),
        "yes",
        "is never reached",
        id="every alternative is caught",
    ),
    pytest.param(
        DENY_PUSH + rule("ask", "confirm", argv=["git", "push", "origin"], match=["git push origin"]),
        "ask",
        "all that it matches is deny by rule no (p.toml:2), and confirm does not lift that",
        id="a confirm rule behind a deny rule",
    ),
    pytest.param(
        deny(argv=["git", "push"], flags=["-f", "--force"], match=["git push -f"])
        + rule("ask", "confirm", argv=["git", "push", "origin"], flags=["-f"], match=["git push origin -f"]),
        "ask",
        "is never reached",
        id="a confirm rule with fewer of the same flags",
    ),
    pytest.param(
        DENY_ENV + auto(path=[".env"], access=["read"]), "yes", "is never reached", id="a pattern that is denied"
    ),
    pytest.param(
        deny(tool=["bash"]) + auto(argv=["ls"]), "yes", "is never reached", id="an exception from a whole tool"
    ),
    # --- passed by another spelling
    pytest.param(
        deny(argv=["git", "push"], flags=["--force"], match=["git push --force"]),
        "no",
        "does not hit `git push -f`, which the program takes for the same",
        id="the letter of a long option",
    ),
    pytest.param(
        deny(argv=["kubectl", "get", "secrets"], match=["kubectl get secrets"]),
        "no",
        "does not hit `kubectl get secret`, which the program takes for the same",
        id="another name of a resource",
    ),
    pytest.param(
        deny(argv=["kubectl"], flags=["--namespace=prod"], match=["kubectl --namespace prod get x"]),
        "no",
        "does not hit `kubectl -n=prod`, which the program takes for the same",
        id="the letter of an option with a value",
    ),
    pytest.param(
        deny(argv=["docker", "rm"], match=["docker rm x"]),
        "no",
        "does not hit `docker container rm`, which the program takes for the same",
        id="a subcommand in two words",
    ),
    # --- says nothing new
    pytest.param(
        auto(argv=[["ls", "cat"], "..."], flags=["-l", "-a"])
        + rule("too", "auto", argv=[["cat", "ls"], "..."], flags=["-a", "-l"], write=["."], network=True, hint="again"),
        "too",
        "says the same as rule yes (p.toml:2)",
        id="a duplicate under another id",
    ),
    pytest.param(
        '[tools]\nread_file = "auto"\ndefault = "deny"\n' + auto(tool=["read_file"], path=["/src/"], access=["read"]),
        "yes",
        "only repeats the default for read_file (p.toml:3): auto",
        id="an auto rule where the tool is auto",
    ),
    pytest.param(
        '[tools]\nbash = "auto"\ndefault = "deny"\n' + auto(argv=["ls"]),
        "yes",
        "only repeats the default for bash",
        id="of bash too",
    ),
    # --- too wide
    pytest.param(auto(argv=["git", "..."]), "yes", 'git with a bare "..." allows each', id="a bare ..."),
    pytest.param(
        auto(argv=[["ls", "npm"], "..."], flags=["-l"]), "yes", "npm with a bare", id="one alternative is enough"
    ),
    pytest.param(auto(argv=["python3"]), "yes", "runs whatever is piped into it", id="an interpreter by itself"),
    pytest.param(auto(argv=["/opt/bin/python3.12"]), "yes", "piped into it", id="with folder and version"),
    pytest.param(
        auto(argv=["make", ["test", "lint"], "..."], flags=["-j"]),
        "yes",
        '"..." behind make allows each of its targets: name those that are meant',
        id="further targets of a build",
    ),
    pytest.param(auto(argv=["./gradlew", "test", "..."]), "yes", "behind ./gradlew allows each", id="with a folder"),
    pytest.param(auto(argv=["mvn", "..."]), "yes", "behind mvn allows each", id="any goal"),
    pytest.param(auto(argv=["tox", "..."]), "yes", "tox with a bare", id="a program that got subcommands"),
    # --- patterns
    pytest.param(auto(path=["/home/ann/project/"]), "yes", "can never match outside the workspace", id="a home folder"),
    pytest.param(
        deny(path=["/etc/passwd"], match=["etc/passwd"]),
        "no",
        "the pattern '/etc/passwd' can never match outside the workspace",
        id="a file of the machine",
    ),
    pytest.param(
        auto(path=["/src/", ".github/workflows/"], access=["write"]),
        "yes",
        "the pattern '.github/workflows/' lets nothing be written unasked: writing .github is asked about",
        id="a protected name",
    ),
    pytest.param(auto(path=["**/.git/config"]), "yes", "writing .git is asked", id="something below .git"),
    pytest.param(
        deny(path=[".env", "*.pem"], except_=[".env"], match=["a.pem"]),
        "no",
        "the pattern '.env' can never match: it stands in `except` too",
        id="excepted by its own rule",
    ),
    pytest.param(
        auto(tool=["read_file"], path=["/src/"], access=["write"]),
        "yes",
        "can never match: read_file never do",
        id="a tool that does not do that",
    ),
    # --- nothing shown
    pytest.param(
        deny(argv=["git", "push"], not_match=["ls"]), "no", "without `match`", id="no example of what is caught"
    ),
    pytest.param(deny(text="x"), "no", "without `match`", id="not even for a piece of text"),
    # --- confined to nothing
    pytest.param(
        rule("yes", "auto", argv=["pytest", "..."]),
        "yes",
        'pytest runs code and may write nothing here: say what, as in write = ["."]',
        id="a test runner that may write nothing",
    ),
    pytest.param(
        rule("yes", "auto", argv=["git", "add", "..."]),
        "yes",
        "git add changes files and may write nothing here",
        id="a command that changes files and may not",
    ),
    pytest.param(
        rule("yes", "auto", argv=["git", "push"], write=["."]),
        "yes",
        "git push may not reach the network here: say network = true if it should",
        id="a command that needs the network",
    ),
]


@all_rows(("text", "warned", "problem"), WARNED)
def test_likely_mistake_is_warned_of_once(text: str, warned: str, problem: str) -> None:
    found = warnings(policy(text))
    assert [(each.rule, problem in each.problem) for each in found] == [(warned, True)], [str(each) for each in found]


QUIET = [
    pytest.param(
        deny(argv=["kubectl", "get", ["secret*"]], match=["kubectl get secrets"])
        + rule("force", "deny", argv=["git", "push"], flags=["-f"], match=["git push -f"])
        + rule("long", "deny", argv=["git", "push"], flags=["--force"], match=["git push --force"]),
        id="each spelling is hit, by this rule or another",
    ),
    pytest.param(auto(argv=["ls", "..."], flags=["-l"]), id="a program without subcommands"),
    pytest.param(auto(argv=["git", ["status", "log"], "..."]), id="subcommands that are named"),
    pytest.param(auto(argv=["git"]), id="a program with subcommands by itself"),
    pytest.param(auto(argv=["python3", "-m", "pytest", "..."]), id="an interpreter with its module"),
    pytest.param(auto(argv=["make"]), id="make by itself runs its file"),
    pytest.param(auto(argv=["make", ["test", "lint"]], flags=["-s"]), id="targets that are named"),
    pytest.param(auto(argv=["npm", "run", ["test", "lint"], "..."]), id="scripts that are named"),
    pytest.param(DENY_PUSH + auto(argv=["git", "pull"]), id="other words"),
    pytest.param(DENY_PUSH + auto(argv=["git", ["push", "pull"]]), id="only one alternative is denied"),
    pytest.param(
        deny(argv=["git", "push"], flags=["-f", "--force"], match=["git push -f"]) + auto(argv=["git", "push", "..."]),
        id="a deny rule that needs an option",
    ),
    pytest.param(
        deny(argv=["git", "push"], env=["A"], match=["A=1 git push"]) + auto(argv=["git", "push"], env=["A"]),
        id="a deny rule that needs a variable",
    ),
    pytest.param(
        deny(argv=["git", "push"], text="x", match=["git push x"]) + auto(argv=["git", "push", "..."]),
        id="a deny rule that needs a piece of text",
    ),
    pytest.param(
        DENY_PUSH + rule("ask", "confirm", argv=["git", ["push", "pull"]], match=["git pull"]),
        id="a rule that says more",
    ),
    pytest.param(
        DENY_PUSH + rule("too", "deny", argv=["git", "push", "origin"], hint="To a fork.", match=["git push origin"]),
        id="two deny rules, one with a hint of its own",
    ),
    pytest.param(DENY_ENV + auto(path=[".env", "/src/"]), id="only one pattern is denied"),
    pytest.param(
        deny(path=[".env*"], except_=[".env.example"], match=[".env"]) + auto(path=[".env*"]),
        id="an exception that is free",
    ),
    pytest.param(deny(path=["a"], access=["write"], match=["a"]) + auto(path=["a"]), id="another access"),
    pytest.param(DENY_ENV + auto(argv=["cat", "..."], path=[".env"]), id="a command may have no operand"),
    pytest.param(
        '[tools]\nread_file = "auto"\nedit_file = "confirm"\ndefault = "deny"\n'
        + auto(path=["/src/"], access=["read"]),
        id="auto where one tool asks",
    ),
    pytest.param('[tools]\nbash = "deny"\n' + DENY_PUSH, id="a strict rule that repeats a default gives its reason"),
    pytest.param(auto(path=["/etc/", "/usr/", "/home/", "/dev/", "/proc/"]), id="folders that a project may have"),
    pytest.param(auto(path=["/home/index.html", "home/ann/x"]), id="a page of the project"),
    pytest.param(auto(path=[".github/"], access=["read"]), id="a protected name, for reading"),
    pytest.param(auto(path=[".git*/", "*.git"], access=["write"]), id="a pattern that may match other names"),
    pytest.param(deny(path=[".git/"], match=[".git/config"]), id="what is built in, denied"),
    pytest.param(deny(tool=["bash"]), id="a whole tool, without examples"),
    pytest.param(auto(argv=["ls"]), id="an auto rule without examples"),
]


@all_rows("text", QUIET)
def test_plausible_rule_gives_no_warning(text: str) -> None:
    assert [str(each) for each in warnings(policy(text))] == []


@all_rows(
    ("tokens", "problems"),
    [
        ((("uv",), ("run",)), ['uv run runs whatever the words behind it name: "..." allows all of it']),
        ((("npm",), ("test", "exec")), ['npm exec runs whatever the words behind it name: "..." allows all of it']),
        ((("npm",), ("run",)), ['npm run runs whatever the words behind it name: "..." allows all of it']),
        ((("uv",), ("run",), ("pytest",)), []),
        ((("npm",), ("test",)), []),
    ],
)
def test_rule_for_a_program_runner_is_warned_of(tokens: tuple[tuple[str, ...], ...], problems: list[str]) -> None:
    """Where the loader takes such a rule at all: that follows from the models of the programs."""
    whole = policy(auto(argv=["ls", "..."]))
    changed = replace(whole.rules[0], matchers=(CommandMatcher(argv=ArgvPattern(tokens=tokens, rest=True)),))
    assert [each.problem for each in warnings(replace(whole, rules=(changed,)))] == problems


@all_rows("name", SHIPPED)
def test_the_shipped_policies_have_no_warnings(name: str) -> None:
    assert [str(each) for each in warnings(load_policy(name))] == []


def test_a_warning_reads_like_an_error_of_the_loader() -> None:
    found = warnings(policy(auto(argv=["git", "..."])))
    problem = 'git with a bare "..." allows each of its subcommands: name those that are meant'
    assert found == (PolicyWarning(rule="yes", origin=Origin(file="p.toml", line=2), problem=problem),)
    assert str(found[0]) == f"p.toml:2: warning: [[rule]] yes: {problem}"


def missing(*named: str) -> str:
    """Return the warning of a policy that names these tools and no other that ships."""
    others = ", ".join(name for name in SHIPPED_TOOLS if name not in named)
    return f"[tools]: no line names {others}, and there is no `default`: confirm, so refused with nobody to ask"


@all_rows(
    ("text", "told"),
    [
        ('[tools]\nwrite_file = "auto"\n', [f"p.toml:3: warning: {missing('write_file')}"]),
        (
            '[tools]\nwrite_file = "auto"\nbash = "deny"\n'
            + rule("a", "auto", tool=["read_file"], path=["a"], access=["read"]),
            [f"p.toml:3: warning: {missing('write_file', 'bash', 'read_file')}"],
        ),
        ('[tools]\nwrite_file = "auto"\ndefault = "deny"\n', []),
        ('[tools]\nbash = "deny"\n', []),
        (
            '[tools]\ndefault = "confirm"\nuncovered = "confirm"\n',
            ["p.toml:4: warning: [tools]: uncovered says nothing: any other tool is confirm by default"],
        ),
        ('[tools]\ndefault = "confirm"\nuncovered = "deny"\n', []),
        ('[tools]\ndefault = "auto"\nuncovered = "deny"\n' + auto(argv=["frob"]), []),
    ],
)
def test_tools_that_no_line_names_are_warned_of(text: str, told: list[str]) -> None:
    assert [str(each) for each in warnings(policy(text))] == told


def test_a_rule_with_thousands_of_alternatives_is_left_alone() -> None:
    words = [f"a{number}" for number in range(40)]
    assert warnings(policy(DENY_PUSH + auto(argv=[words, words, "..."]))) == ()


def test_several_files_are_looked_at_together() -> None:
    """Each rule with its own file's examples; the strict rule of one file catches the auto rule of the other."""
    one = policy(DENY_PUSH, "a.toml", Layer.USER)
    other = policy(auto(argv=["git", "push"]), "b.toml", Layer.PROJECT)
    (found,) = warnings(combine([one, other]))
    assert (str(found.origin), "rule no (a.toml:2)" in found.problem) == ("b.toml:2", True)


def test_example_applies_to_the_rule_of_its_file_only() -> None:
    shown = policy(DENY_PUSH, "a.toml", Layer.USER)
    other = policy(deny(argv=["hg", "push"]), "b.toml", Layer.PROJECT)
    assert {each.id for each in shown.rules} == {each.id for each in other.rules}
    (found,) = warnings(combine([shown, other]))
    assert (str(found.origin), "without `match`" in found.problem) == ("b.toml:2", True)


# --- a policy of many rules ---


def many_rules(count: int) -> Policy:
    """Return a policy of rules of every kind; those of commands share their programs, or the words behind them."""
    kinds = (
        lambda n: rule(f"a{n}", "auto", argv=["git", f"a{n}", "..."], flags=["-q"], write=["."]),
        lambda n: rule(f"b{n}", "deny", argv=[f"b{n}", "push"], flags=["-f"], match=[f"b{n} push -f"]),
        lambda n: rule(f"c{n}", "confirm", path=[f"c{n}", "*.pem"], except_=[f"x{n}"], match=[f"c{n}"]),
        lambda n: rule(f"d{n}", "auto", path=[f"/d{n}/"], access=["read"]),
        lambda n: rule(f"e{n}", "deny", tool=[f"mcp__e__t{n}"]),
        lambda n: rule(f"f{n}", "auto", tool=["mcp__f__*"], **{"where.path": [f"f{n}"]}),
        lambda n: rule(f"g{n}", "block", argv=["git", f"g{n}"], env=["A"], match=[f"A=1 git g{n}"]),
    )
    return policy("".join(kinds[n % len(kinds)](n) for n in range(count)))


def test_the_work_grows_with_the_rules() -> None:
    assert_linear(many_rules, warnings, 70)


def words_of(*tokens: tuple[str, ...], flags: tuple[str, ...] | None = None) -> tuple[Matcher, ...]:
    return (CommandMatcher(argv=ArgvPattern(tokens=tokens, rest=True, flags=flags)),)


def paths_of(*patterns: str) -> tuple[Matcher, ...]:
    return (FileMatcher(patterns=PathPatterns(patterns=patterns), access=(Access.READ,)),)


WHERE = tuple(ArgumentMatcher(argument=ArgumentPatterns(name=name, words=("w",))) for name in ("m", "n"))
MATCHERS: tuple[tuple[Matcher, ...], ...] = (
    (),
    words_of(("git",)),
    words_of(("/usr/bin/git", "hg")),
    words_of(("git",), ("push", "pull")),
    words_of(("git",), ("push",), flags=("-f",)),
    words_of(("git",), ("-C",), ("x",), ("push",)),
    paths_of(".env"),
    paths_of(".env", "*.pem"),
    (CommandMatcher(argv=None, env=("A",)),),
    (CommandMatcher(argv=None, env=("A", "B")),),
    (TextMatcher(text="xy"),),
    (TextMatcher(text="x"),),
    (HostMatcher(patterns=host_patterns(("example.org", "*.example.net"))),),
    (HostMatcher(patterns=host_patterns(("example.org",))),),
    WHERE,
    WHERE[:1],
    WHERE[1:],
)
NAMES = (("bash",), ("bash", "mcp__a__b"), ("mcp__a__*",), ("mcp__*",))
TOOLS = ((), *((ToolMatcher(names=names),) for names in NAMES))


def test_every_rule_that_catches_another_is_tried() -> None:
    """Each rule alone with each, and among all."""
    origin = Origin(file="p.toml", line=2)
    every = [
        Rule(id="r", decision=decision, origin=origin, layer=Layer.FILE, matchers=(*matchers, *tools))
        for decision, tools, matchers in product((Decision.AUTO, Decision.CONFIRM, Decision.DENY), TOOLS, MATCHERS)
    ]
    alone = [(other, StrictRules((other,))) for other in every]
    among = StrictRules(every)
    count = 0
    for one in every:
        stricter = [other for other in every if other.decision > one.decision and catches(other, one)]
        found = [other for other, by_itself in alone if by_itself.catching(one) is not None]
        assert found == stricter, str(one)
        assert among.catching(one) is max(stricter, key=lambda other: other.decision, default=None)
        count += len(stricter)
    assert count > 1_000, "hardly any rule catches another: that proves nothing"


# --- a rule that is called idle decides nothing ---

WORDS = ("git", "push", "origin", "ls")
COMMANDS = (
    "git push", "git push origin", "git -C x push", "/usr/bin/git push origin -f", "git push -f", "git origin push",
    "ls", "ls -f", "ls git push", "A=1 git push", "A=1 ls", "git", "git push && ls", "push origin", "eval git push",
)  # fmt: skip


@st.composite
def rules(draw: st.DrawFn, name: str) -> str:
    tokens = draw(
        st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=2, unique=True), min_size=1, max_size=3)
    )
    more: dict[str, object] = {
        key: value
        for key, value in (("flags", ["-f"]), ("flags", ["-f", "-C"]), ("env", ["A"]), ("tool", ["bash"]))
        if draw(st.integers(0, 3)) == 0
    }
    rest = ["..."] if draw(st.booleans()) else []
    return rule(name, draw(st.sampled_from(["auto", "confirm", "deny", "block"])), argv=[*tokens, *rest], **more)


@given(st.data())
@settings(max_examples=examples(200), deadline=None)
def test_a_rule_that_is_called_idle_can_be_taken_away(data: st.DataObject) -> None:
    default = data.draw(st.sampled_from(["auto", "confirm", "deny"]))
    text = "".join(data.draw(rules(f"r{number}")) for number in range(data.draw(st.integers(2, 4))))
    whole = policy(f'[tools]\nbash = "{default}"\n{text}')
    for warning in warnings(whole):
        if warning.problem.startswith(("is never reached", "says the same", "only repeats")):
            without = replace(whole, rules=tuple(each for each in whole.rules if each.id != warning.rule))
            assert decisions(whole) == decisions(without), str(warning)


def decisions(judge: Policy) -> list[Decision]:
    return [evaluate(judge, action(command)).decision for command in COMMANDS]


def action(command: str) -> Action:
    facets: tuple[Facet, ...] = read_commands(command, EXAMPLE_DISK)
    call = ToolCall(id="1", name="bash", arguments="{}")
    return Action(
        call=call, tool="bash", arguments={}, facets=facets, summary="", preview="", request=None, text=command
    )
