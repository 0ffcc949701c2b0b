"""A matcher of one's own: everyone who asks a rule's matchers treats it right, although none of them knows it."""

from __future__ import annotations

from typing import ClassVar

from rows import all_rows

from harness.actions import Action, Command, Decision, Facet
from harness.messages import ToolCall
from harness.policy.lint import warnings
from harness.policy.loader import RULE_KEYS, parse_policy
from harness.policy.matcher import Matcher
from harness.policy.matchers import MATCHERS
from harness.policy.plain_commands import EXAMPLE_DISK
from harness.policy.policy import Policy
from harness.policy.rule_examples import rule_problem
from harness.policy.rules import Layer, Origin, Rule
from harness.policy.verdict import evaluate
from harness.record import replace
from harness.session.trust import loosening
from harness.shell.facets import read_commands


class Networking(Matcher):
    """Commands whose model says that they reach the network."""

    keys: ClassVar = ("reaches_network",)

    def hits(self, action: Action, facet: Facet) -> bool:
        return isinstance(facet, Command) and facet.network

    def words(self) -> str:
        return "that reaches the network"


class Lasting(Networking):
    """The same, with what an auto rule needs."""

    keys: ClassVar = ("stays_on_network",)

    def covers(self, action: Action, facet: Facet) -> bool:
        return self.hits(action, facet)


def rule(decision: Decision, *matchers: Matcher, name: str = "net") -> Rule:
    return Rule(id=name, decision=decision, origin=Origin(file="n.toml", line=1), layer=Layer.FILE, matchers=matchers)


AUTO = b"""version = 1
[[rule]]
id = "tests"
decision = "auto"
argv = [["head", "curl"], "..."]
network = true
write = ["."]
"""


def policy(*rules: Rule) -> Policy:
    loaded = parse_policy(AUTO, "p.toml")
    return replace(loaded, rules=(*loaded.rules, *rules))


def decided(judge: Policy, line: str) -> str:
    call = ToolCall(id="1", name="bash", arguments="{}")
    facets = read_commands(line, EXAMPLE_DISK)
    action = Action(
        call=call, tool="bash", arguments={}, facets=facets, summary=line, preview=line, request=None, text=line
    )
    return evaluate(judge, action).decision.word


def test_it_decides() -> None:
    judge = policy(rule(Decision.DENY, Networking()))
    assert decided(judge, "head a.txt") == "auto"
    assert decided(judge, "curl https://example.org") == "deny"


@all_rows(
    ("rules", "said"),
    [
        ([rule(Decision.DENY, Networking())], []),
        ([rule(Decision.CONFIRM, Networking()), rule(Decision.BLOCK, Networking(), name="all")], ["is never reached"]),
        ([rule(Decision.DENY, Networking()), rule(Decision.DENY, Networking(), name="too")], ["says the same"]),
        ([rule(Decision.AUTO, Lasting()), rule(Decision.DENY, Lasting(), name="all")], []),
    ],
)
def test_live_rule_is_not_called_unreachable(rules: list[Rule], said: list[str]) -> None:
    found = [one.problem for one in warnings(policy(*rules)) if "without `match`" not in one.problem]
    assert len(found) == len(said)
    assert all(map(str.startswith, found, said)), found


def test_a_strict_rule_without_an_example_is_warned_of() -> None:
    judge = policy(rule(Decision.DENY, Networking()))
    (source,) = judge.sources
    judge = replace(judge, sources=(replace(source, path="n.toml", without_match=frozenset(("net",))),))
    assert [str(one) for one in warnings(judge)] == [
        "n.toml:1: warning: [[rule]] net: a strict rule without `match`: nothing shows that it catches what it should"
    ]


def test_an_auto_rule_needs_its_covers() -> None:
    assert rule_problem(rule(Decision.AUTO, Networking())) == (
        "reaches_network",
        "no auto rule can have it: it covers nothing",
    )
    assert rule_problem(rule(Decision.AUTO, Lasting())) is None


def test_lasting_matcher_alone_allows_no_call() -> None:
    """It narrows what other matchers answer for, and answers for no part by itself."""
    assert decided(policy(rule(Decision.AUTO, Lasting())), "wget https://example.org") == "confirm"


def test_trust_question_describes_the_matcher() -> None:
    argv = parse_policy(AUTO, "p.toml").rules[0].matchers
    project = policy(rule(Decision.AUTO, *argv, Lasting()))
    assert loosening(project)[1:] == (
        "auto     the command {head,curl} ... that reaches the network  (rule net (n.toml:1))",
    )


@all_rows("kind", MATCHERS)
def test_each_matcher_kind_defines_the_required_members(kind: type[Matcher]) -> None:
    assert set(kind.keys) <= set(RULE_KEYS)
    assert set(kind.needs) | set(kind.needs.values()) <= set(kind.keys)
    for asked in ("read", "hits", "words"):
        assert asked in vars(kind), f"{kind.__name__} does not define {asked}"
