"""What `harness policy check` warns of: a table on each side, and that a rule called idle can be taken away."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.actions import Action, Facet
from harness.cli.policies import SHIPPED, load_named
from harness.lint import Warning_, warnings
from harness.messages import ToolCall
from harness.policy import Policy, evaluate
from harness.policy_file import combine, parse_policy
from harness.record import replace
from harness.rule_examples import EXAMPLE_DISK
from harness.rules import Decision, Layer, Origin
from harness.shell.facets import read_commands

DENY_PUSH = '[[rule]]\nid = "no"\ndecision = "deny"\nreason = "r"\nargv = ["git", "push"]\nmatch = ["git push"]\n'
CONFIRM_PUSH = DENY_PUSH.replace('"deny"', '"confirm"').replace('"no"', '"ask"')
DENY_ENV = '[[rule]]\nid = "no"\ndecision = "deny"\nreason = "r"\npath = [".env", "*.pem"]\nmatch = [".env"]\n'


def auto(keys: str) -> str:
    return f'[[rule]]\nid = "yes"\ndecision = "auto"\n{keys}\n'


def policy(text: str) -> Policy:
    return parse_policy(f"version = 1\n{text}".encode(), "p.toml")


WARNED = [
    # --- never reached
    pytest.param(
        DENY_PUSH + auto('argv = ["git", "push", "origin"]'),
        "yes",
        "is never reached: all that it matches is deny by rule no (p.toml:2), and auto does not lift that",
        id="an auto rule behind a deny rule on its first words",
    ),
    pytest.param(
        auto('argv = ["git", "push"]') + DENY_PUSH, "yes", "is never reached", id="whatever their order in the file"
    ),
    pytest.param(
        DENY_PUSH + auto('argv = ["git", "-C", "x", "push", "..."]'),
        "yes",
        "is never reached",
        id="options between the words are skipped by the strict rule",
    ),
    pytest.param(
        DENY_PUSH + auto('argv = ["/usr/bin/git", "push"]'), "yes", "is never reached", id="a folder is skipped too"
    ),
    pytest.param(
        DENY_PUSH.replace('["git", "push"]', '["git", ["push", "pull"]]') + auto('argv = ["git", ["pull", "push"]]'),
        "yes",
        "is never reached",
        id="every alternative is caught",
    ),
    pytest.param(
        DENY_PUSH + CONFIRM_PUSH.replace('"push"]', '"push", "origin"]', 1).replace("git push", "git push origin"),
        "ask",
        "all that it matches is deny by rule no (p.toml:2), and confirm does not lift that",
        id="a confirm rule behind a deny rule",
    ),
    pytest.param(
        DENY_ENV + auto('path = [".env"]\naccess = ["read"]'), "yes", "is never reached", id="a pattern that is denied"
    ),
    pytest.param(
        '[[rule]]\nid = "no"\ndecision = "deny"\nreason = "r"\ntool = ["bash"]\n' + auto('argv = ["ls"]'),
        "yes",
        "is never reached",
        id="an exception from a rule on the whole tool",
    ),
    # --- says nothing new
    pytest.param(
        auto('argv = [["ls", "cat"], "..."]\nflags = ["-l", "-a"]')
        + auto('argv = [["cat", "ls"], "..."]\nflags = ["-a", "-l"]\nreason = "again"').replace('"yes"', '"too"'),
        "too",
        "says the same as rule yes (p.toml:2)",
        id="a duplicate under another id",
    ),
    pytest.param(
        '[tools]\nread_file = "auto"\n' + auto('tool = ["read_file"]\npath = ["/src/"]\naccess = ["read"]'),
        "yes",
        "only repeats the default for read_file (p.toml:3): auto",
        id="an auto rule where the tool is auto",
    ),
    pytest.param(
        '[tools]\nbash = "auto"\n' + auto('argv = ["ls"]'), "yes", "only repeats the default for bash", id="of bash too"
    ),
    # --- too wide
    pytest.param(auto('argv = ["git", "..."]'), "yes", 'git with a bare "..." allows each', id="a bare ..."),
    pytest.param(
        auto('argv = [["ls", "npm"], "..."]\nflags = ["-l"]'), "yes", "npm with a bare", id="one alternative is enough"
    ),
    pytest.param(auto('argv = ["python3"]'), "yes", "runs whatever is piped into it", id="an interpreter by itself"),
    pytest.param(auto('argv = ["/opt/bin/python3.12"]'), "yes", "piped into it", id="with folder and version"),
    pytest.param(
        auto('argv = ["uv", "run", "..."]'),
        "yes",
        "uv run runs whatever the words behind it",
        id="a runner of programs",
    ),
    pytest.param(auto('argv = ["npm", ["test", "exec"], "..."]'), "yes", "npm exec runs", id="among alternatives"),
    # --- patterns
    pytest.param(
        auto('path = ["/home/ann/project/"]'), "yes", "can never match outside the workspace", id="a home folder"
    ),
    pytest.param(
        DENY_ENV.replace(".env", "/etc/passwd").replace('match = ["/etc/passwd"]', 'match = ["etc/passwd"]'),
        "no",
        "the pattern '/etc/passwd' can never match outside the workspace",
        id="a file of the machine",
    ),
    pytest.param(
        auto('path = ["/src/", ".github/workflows/"]\naccess = ["write"]'),
        "yes",
        "the pattern '.github/workflows/' lets nothing be written unasked: writing .github is asked about",
        id="a protected name",
    ),
    pytest.param(auto('path = ["**/.git/config"]'), "yes", "writing .git is asked", id="something below .git"),
    pytest.param(
        DENY_ENV + 'except = [".env"]\n'.replace("match", ""),
        "no",
        "it stands in `except` too",
        id="excepted by itself",
    ),
    pytest.param(
        auto('tool = ["read_file"]\npath = ["/src/"]\naccess = ["write"]'),
        "yes",
        "can never match: read_file never do",
        id="a tool that does not do that",
    ),
    # --- nothing shown
    pytest.param(
        DENY_PUSH.replace("match", "not_match").replace('["git push"]', '["ls"]'),
        "no",
        "without `match`",
        id="no match",
    ),
]


@pytest.mark.parametrize(("text", "rule", "problem"), WARNED)
def test_what_is_surely_not_meant_is_warned_of_once(text: str, rule: str, problem: str) -> None:
    found = warnings(policy(text))
    assert [(each.rule, problem in each.problem) for each in found] == [(rule, True)], [str(each) for each in found]


QUIET = [
    pytest.param(auto('argv = ["ls", "..."]\nflags = ["-l"]'), id="a program without subcommands"),
    pytest.param(auto('argv = ["git", ["status", "log"], "..."]'), id="subcommands that are named"),
    pytest.param(auto('argv = ["git"]'), id="a program with subcommands by itself"),
    pytest.param(auto('argv = ["python3", "-m", "pytest", "..."]'), id="an interpreter with its module"),
    pytest.param(auto('argv = ["make"]'), id="make by itself runs its file"),
    pytest.param(auto('argv = ["uv", "run", "pytest", "..."]'), id="a runner with its program"),
    pytest.param(DENY_PUSH + auto('argv = ["git", "pull"]'), id="other words"),
    pytest.param(DENY_PUSH + auto('argv = ["git", ["push", "pull"]]'), id="only one alternative is denied"),
    pytest.param(
        DENY_PUSH.replace("match", 'flags = ["-f"]\nmatch').replace('git push"', 'git push -f"')
        + auto('argv = ["git", "push", "..."]'),
        id="a deny rule that needs an option",
    ),
    pytest.param(
        DENY_PUSH.replace("match", 'env = ["A"]\nmatch').replace('["git push"]', '["A=1 git push"]')
        + auto('argv = ["git", "push"]\nenv = ["A"]'),
        id="a deny rule that needs a variable",
    ),
    pytest.param(
        DENY_PUSH.replace("match", 'tool = ["bash"]\ntext = "x"\nmatch').replace('"git push"', '"git push x"')
        + auto('argv = ["git", "push", "..."]'),
        id="a deny rule that needs a piece of text",
    ),
    pytest.param(
        DENY_PUSH + CONFIRM_PUSH.replace('argv = ["git", "push"]', 'argv = ["git", ["push", "pull"]]'),
        id="a confirm rule that says more",
    ),
    pytest.param(
        DENY_PUSH
        + DENY_PUSH.replace('"no"', '"too"')
        .replace('"push"]', '"push", "origin"]', 1)
        .replace('git push"]', 'git push origin"]'),
        id="two deny rules, one with a hint of its own",
    ),
    pytest.param(DENY_ENV + auto('path = [".env", "/src/"]'), id="only one pattern is denied"),
    pytest.param(
        DENY_ENV.replace("match", 'except = [".env.example"]\nmatch') + auto('path = [".env"]'),
        id="an exception in the deny rule",
    ),
    pytest.param(DENY_ENV.replace("match", 'access = ["write"]\nmatch') + auto('path = [".env"]'), id="another access"),
    pytest.param(DENY_ENV + auto('argv = ["cat", "..."]\npath = [".env"]'), id="a command may have no operand"),
    pytest.param(
        '[tools]\nread_file = "auto"\nedit_file = "confirm"\n' + auto('path = ["/src/"]\naccess = ["read"]'),
        id="auto where one tool asks",
    ),
    pytest.param('[tools]\nbash = "confirm"\n' + CONFIRM_PUSH, id="a strict rule that repeats a default"),
    pytest.param(auto('path = ["/etc/", "/usr/", "/home/", "/dev/", "/proc/"]'), id="folders that a project may have"),
    pytest.param(auto('path = ["/home/index.html", "home/ann/x"]'), id="a page of the project"),
    pytest.param(auto('path = [".github/"]\naccess = ["read"]'), id="a protected name, for reading"),
    pytest.param(auto('path = [".git*/", "*.git"]\naccess = ["write"]'), id="a pattern that may match other names"),
    pytest.param(
        DENY_ENV.replace('".env", "*.pem"', '".git/"').replace(".env", ".git/x"), id="what is built in, denied"
    ),
    pytest.param(
        '[[rule]]\nid = "no"\ndecision = "deny"\nreason = "r"\ntool = ["bash"]\n', id="a whole tool, without examples"
    ),
    pytest.param(auto('argv = ["ls"]'), id="an auto rule without examples"),
]


@pytest.mark.parametrize("text", QUIET)
def test_what_may_be_meant_is_not_warned_of(text: str) -> None:
    assert [str(each) for each in warnings(policy(text))] == []


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_policies_have_no_warnings(name: str) -> None:
    assert warnings(load_named(name)) == ()


def test_a_warning_reads_like_an_error_of_the_loader() -> None:
    found = warnings(policy(auto('argv = ["git", "..."]')))
    assert found == (
        Warning_(
            rule="yes",
            origin=Origin(file="p.toml", line=2),
            problem='git with a bare "..." allows each of its subcommands: name those that are meant',
        ),
    )
    assert str(found[0]).startswith('p.toml:2: warning: [[rule]] yes: git with a bare "..."')


def test_rules_with_thousands_of_alternatives_are_left_alone() -> None:
    words = ", ".join(f'"a{number}"' for number in range(40))
    many = auto(f'argv = [[{words}], [{words}], "..."]')
    assert warnings(policy(DENY_PUSH + many)) == ()


def test_several_files_are_looked_at_together() -> None:
    """Each rule with its own file's examples; the strict rule of one file catches the auto rule of the other."""
    one = parse_policy(f"version = 1\n{DENY_PUSH}".encode(), "a.toml", layer=Layer.USER)
    other = parse_policy(f"version = 1\n{auto('argv = ["git", "push"]')}".encode(), "b.toml", layer=Layer.FILE)
    (found,) = warnings(combine([one, other]))
    assert (str(found.origin), "rule no (a.toml:2)" in found.problem) == ("b.toml:2", True)


# --- a rule that is called idle decides nothing ---

WORDS = ("git", "push", "origin", "ls")
COMMANDS = (
    "git push", "git push origin", "git -C x push", "/usr/bin/git push origin -f", "git push -f", "git origin push",
    "ls", "ls -f", "ls git push", "A=1 git push", "git", "git push && ls", "push origin", "eval git push",
)  # fmt: skip

argvs = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=2, unique=True), min_size=1, max_size=3)


@st.composite
def rule_texts(draw: st.DrawFn, number: int) -> str:
    decision = draw(st.sampled_from(["auto", "confirm", "deny", "block"]))
    rest = ', "..."' if draw(st.booleans()) else ""
    flags = draw(st.sampled_from(["", 'flags = ["-f"]\n', 'flags = ["-f", "-C"]\n']))
    env = draw(st.sampled_from(["", 'env = ["A"]\n']))
    tool = draw(st.sampled_from(["", 'tool = ["bash"]\n']))
    tokens = ", ".join(str(token).replace("'", '"') for token in draw(argvs))
    return f'[[rule]]\nid = "r{number}"\ndecision = "{decision}"\nreason = "r"\nargv = [{tokens}{rest}]\n{flags}{env}{tool}'


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_rule_that_is_called_idle_can_be_taken_away(data: st.DataObject) -> None:
    default = data.draw(st.sampled_from(["auto", "confirm", "deny"]))
    rules = "".join(data.draw(rule_texts(number)) for number in range(data.draw(st.integers(2, 4))))
    whole = policy(f'[tools]\nbash = "{default}"\n{rules}')
    idle = [w for w in warnings(whole) if w.problem.startswith(("is never reached", "says the same", "only repeats"))]
    for warning in idle:
        without = replace(whole, rules=tuple(rule for rule in whole.rules if rule.id != warning.rule))
        assert decisions(whole) == decisions(without), str(warning)


def decisions(judge: Policy) -> list[Decision]:
    return [evaluate(judge, action(command)).decision for command in COMMANDS]


def action(command: str) -> Action:
    facets: tuple[Facet, ...] = read_commands(command, EXAMPLE_DISK)
    call = ToolCall(id="1", name="bash", arguments="{}")
    return Action(
        call=call, tool="bash", arguments={}, facets=facets, summary="", preview="", request=None, text=command
    )
