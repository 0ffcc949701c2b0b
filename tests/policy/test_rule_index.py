"""The index of rules: it leaves out no rule that could match a part of an action, and most of those that cannot."""

from __future__ import annotations

import pytest
from judged_world import OPEN, World, harmless, hostile, made_with_secrets
from rows import all_rows

from harness.actions import Action, Command, Decision, Opaque
from harness.policy.command_matchers import AnyCommand
from harness.policy.loader import load_policy, parse_policy
from harness.policy.loose_commands import programs_in
from harness.policy.policy import Policy, combine
from harness.policy.rule_index import FEW, RuleIndex
from harness.policy.rules import Layer, Origin, Rule
from harness.policy.verdict import evaluate
from harness.record import replace

MORE = """
version = 1
[tools]
bash = "confirm"
default = "auto"
[[rule]]
id = "walled"
decision = "auto"
argv = ["cat", "..."]
walls = "workspace"
[[rule]]
id = "star"
decision = "auto"
argv = ["./s*", "..."]
walls = "workspace"
[[rule]]
id = "runners"
decision = "auto"
argv = [["uv", "npx"], "run", "..."]
walls = "workspace"
[[rule]]
id = "operands"
decision = "deny"
argv = [["cp", "git"]]
path = ["*.py", "docs/**/a*.md"]
reason = "no"
[[rule]]
id = "variable"
decision = "deny"
env = ["A"]
path = ["*.txt", "src/"]
reason = "no"
[[rule]]
id = "sources"
decision = "auto"
access = ["read"]
path = ["src/**", "*.tx?"]
[[rule]]
id = "links"
decision = "confirm"
path = ["[ls]ink*", "\u017fecrets"]
[[rule]]
id = "words"
decision = "deny"
text = "| sh"
reason = "no"
[[rule]]
id = "of a tool"
decision = "deny"
tool = ["bash"]
argv = ["make"]
reason = "no"
[[rule]]
id = "a whole tool"
decision = "confirm"
tool = ["write_file"]
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return made_with_secrets(tmp_path_factory.mktemp("home").resolve())


def grant(folder: str) -> Rule:
    return Rule(
        id="any",
        decision=Decision.AUTO,
        origin=Origin(file="grants", line=1),
        layer=Layer.SESSION,
        matchers=(AnyCommand(folder=folder),),
    )


def policies() -> dict[str, Policy]:
    own = parse_policy(MORE.encode(), "more.toml")
    stated = [parse_policy(OPEN, "open.toml"), *map(load_policy, ("ci", "workspace", "python", "kubernetes"))]
    return {
        "more": own,
        "granted": replace(own, rules=(*own.rules, grant(""), grant("/elsewhere"))),
        "combined": combine([own, *stated]),
        "default": load_policy("default"),
    }


@all_rows("policy", policies())
def test_a_verdict_is_the_same_without_the_rules_that_are_left_out(policy: Policy, world: World) -> None:
    index = RuleIndex(policy.rules, few=0)
    commands = ("./star a", "npx run x", *(row.command for row in (*hostile(), *harmless())))
    for command in dict.fromkeys(commands):
        action = world.action(command)
        about = index.candidates(action)
        fewer = replace(policy, rules=about)
        assert evaluate(fewer, action) == evaluate(replace(policy), action), command
        assert [rule.label for rule in set(policy.rules).difference(about) if matches(rule, action)] == [], command


def matches(rule: Rule, action: Action) -> bool:
    facets = tuple(action.all_facets())
    if not rule.is_auto:
        return any(rule.may_hit(type(facet)) and rule.hits(action, facet) for facet in facets)
    if any(rule.covers(action, facet) for facet in facets):
        return True
    texts = (facet for facet in facets if isinstance(facet, Opaque))
    return any(rule.covers_words(action, text, words) for text in texts for words in programs_in(text))


def test_only_the_rules_of_its_words_are_tried_on_an_action(world: World) -> None:
    rules = "".join(
        f'[[rule]]\nid = "c{number}"\ndecision = "confirm"\nargv = ["tool{number}"]\n'
        f'[[rule]]\nid = "p{number}"\ndecision = "confirm"\npath = ["/keys/{number}.key", "*.pem{number}"]\n'
        for number in range(FEW)
    )
    policy = parse_policy(f"version = 1\n{rules}".encode(), "many.toml")

    def about(command: str) -> list[str]:
        return [rule.id for rule in policy.narrowed_to(world.action(command)).rules]

    assert about("ls") == []
    assert about("sudo tool7 a.pem3; cat src/x.PEM9 KEYS/1.key") == ["p1", "p3", "c7", "p9"]
    assert about("eval $x tool5 /x/2.key") == ["p2", "c5"]


@pytest.mark.parametrize(
    "facet",
    [
        Command(text="", argv=("/usr/bin/tool5", "x")),
        Command(text="", argv=("x",), run_by=(("env", "x"), ("./tool5", "run", "x"))),
        Opaque(text="", reason="", column=1, commands=(("x", "y"), ("eval", "tool5"))),
        Opaque(text="", reason="", column=1, given_to=Command(text="", argv=("tool5", "-c"))),
    ],
    ids=["the program", "what runs it", "a word of opaque text", "the reader of opaque text"],
)
def test_a_rule_is_found_by_each_word_that_may_be_a_program(facet: Command | Opaque, world: World) -> None:
    """Without the words of operands, in which the programs often are, too."""
    rules = "".join(
        f'[[rule]]\nid = "c{number}"\ndecision = "confirm"\nargv = ["tool{number}"]\n' for number in range(2 * FEW)
    )
    policy = parse_policy(f"version = 1\n{rules}".encode(), "many.toml")
    action = replace(world.action("ls"), facets=(facet,))
    assert [rule.id for rule in policy.narrowed_to(action).rules] == ["c5"]


def test_few_rules_are_all_tried(world: World) -> None:
    policy = load_policy("readonly")
    assert policy.narrowed_to(world.action("ls")) is policy
