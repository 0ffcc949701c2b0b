"""`network` as a list of hosts, in rules and under [sandbox]: what a verdict grants, and what several files leave of it."""

from __future__ import annotations

import pytest
from rows import all_rows

from harness.actions import Action, Decision
from harness.errors import PolicyError
from harness.grant_pattern import GrantPattern, pattern_fields, pattern_from
from harness.messages import ToolCall
from harness.policy.hosts import Reach, meet
from harness.policy.loader import parse_policy
from harness.policy.plain_commands import EXAMPLE_DISK
from harness.policy.policy import Policy, combine, tightening_only
from harness.policy.rules import Layer
from harness.policy.session_grants import (
    narrowed,
    pattern_problem,
    session_grant,
    with_grants,
)
from harness.policy.verdict import Verdict, evaluate
from harness.shell.facets import read_commands

FETCH = '[[rule]]\nid = "fetch"\ndecision = "auto"\nargv = ["pip", "download", "..."]\nwrite = ["wheels"]\n'


def policy(text: str, file: str = "p.toml") -> Policy:
    return parse_policy(b'version = 1\n[tools]\nbash = "confirm"\n' + text.encode(), file)


def judged(held: Policy, command: str) -> Verdict:
    facets = read_commands(command, EXAMPLE_DISK)
    call = ToolCall(id="1", name="bash", arguments="{}")
    action = Action(
        call=call, tool="bash", arguments={}, facets=facets, summary=command, preview=command, request=None, text=command,
        cwd="/workspace",
    )  # fmt: skip
    return evaluate(held, action)


def effects(held: Policy, command: str) -> tuple[bool, tuple[str, ...]]:
    found = judged(held, command).effects
    return found.network, found.hosts


@all_rows(
    "rule, sandbox, network, hosts",
    [
        ('network = ["pypi.org", "*.pythonhosted.org"]', "", False, ("pypi.org", "*.pythonhosted.org")),
        ('network = ["PyPI.org."]', "", False, ("pypi.org",)),
        ("network = true", "", True, ()),
        ("network = false", "", False, ()),
        ("", "", False, ()),
        ('network = ["pypi.org"]', "network = false", False, ()),
        ('network = ["pypi.org"]', "network = true", False, ("pypi.org",)),
        ('network = ["pypi.org", "a.org"]', 'network = ["pypi.org"]', False, ("pypi.org",)),
        ('network = ["*.a.org"]', 'network = ["x.a.org"]', False, ("x.a.org",)),
        ('network = ["x.a.org"]', 'network = ["*.a.org"]', False, ("x.a.org",)),
        ("network = true", 'network = ["pypi.org"]', False, ("pypi.org",)),
    ],
)
def test_a_rule_grants_hosts_and_no_more_than_other_files_let(
    rule: str, sandbox: str, network: bool, hosts: tuple[str, ...]
) -> None:
    other = parse_policy(f"version = 1\n[sandbox]\n{sandbox}".encode(), "other.toml", layer=Layer.USER)
    layers = [policy(FETCH + rule), other]
    for order in (layers, layers[::-1]):
        assert effects(combine(order), "pip download x") == (network, hosts)


def test_approved_command_that_needs_the_network_reaches_the_hosts_of_the_sandbox() -> None:
    held = policy('[sandbox]\nnetwork = ["pypi.org", "a.org:8080"]')
    assert effects(held, "pip install x") == (False, ("pypi.org", "a.org:8080"))
    assert effects(held, "make") == (False, ())
    assert effects(held, "ls") == (False, ())
    both = combine([held, policy('[sandbox]\nnetwork = ["a.org:8080"]', "other.toml")])
    assert effects(both, "ssh h") == (False, ("a.org:8080",))
    untrusted = combine([policy(""), tightening_only(policy('[sandbox]\nnetwork = ["a.org"]', "other.toml"))])
    assert effects(untrusted, "ssh h") == (False, ("a.org",))
    assert effects(combine([held, policy("[sandbox]\nnetwork = []", "other.toml")]), "ssh h") == (False, ())


@all_rows(
    "said, problem",
    [
        ('network = ["*"]', "means every host"),
        ('network = ["https://a.org"]', "'https://a.org' is more than a host"),
        ("network = []", "must not be empty"),
        ("network = [1]", "network"),
        ('network = "a.org"', "network"),
        ('network = ["127.1"]', "ends in a number"),
    ],
)
def test_a_list_that_is_not_plain_does_not_load(said: str, problem: str) -> None:
    with pytest.raises(PolicyError, match=r"p\.toml:") as refused:
        policy(FETCH + said)
    assert problem in str(refused.value)
    with pytest.raises(PolicyError, match="is what an auto rule grants"):
        policy('[[rule]]\nid = "x"\ndecision = "confirm"\nargv = ["make"]\nnetwork = ["a.org"]')


@all_rows(
    "one, other, both",
    [
        (None, None, None),
        (None, (), ()),
        (None, ("a.org",), ("a.org",)),
        (("a.org",), ("b.org",), ()),
        (("a.org:8080",), ("a.org",), ()),
        (("*.a.org",), ("a.org",), ()),
        (("*.a.org",), ("*.b.a.org",), ("*.b.a.org",)),
        (("*.a.org",), ("*.a.org",), ("*.a.org",)),
        (("localhost:1",), ("127.0.0.1:1",), ("127.0.0.1:1",)),
        (("*.org", "x.net"), ("a.org", "x.net", "y.net"), ("x.net", "a.org")),
    ],
)
def test_two_host_lists_allow_their_intersection(one: Reach, other: Reach, both: Reach) -> None:
    assert meet(one, other) == both
    turned = meet(other, one)
    assert (turned and set(turned)) == (both and set(both))


def test_a_grant_keeps_its_hosts() -> None:
    pattern = GrantPattern(
        tools=("bash",), argv=("python3",), write=(".",), hosts=("a.org",), folder="/workspace", program=True
    )
    assert pattern_from(pattern_fields(pattern)) == pattern
    assert "network: a.org" in pattern.text
    assert pattern_problem(GrantPattern(tools=("bash",), argv=("python3",), hosts=("*",), program=True, folder="/w"))
    offline = narrowed(pattern, ["offline"])
    assert isinstance(offline, GrantPattern)
    assert offline.hosts == ()


@all_rows(
    "network, hosts, decision",
    [
        (False, (), Decision.CONFIRM),
        (False, ("a.org",), Decision.AUTO),
        (False, ("b.org",), Decision.CONFIRM),
        (True, (), Decision.AUTO),
    ],
)
def test_granted_program_gets_no_further_host_beside_another_rule(
    network: bool, hosts: tuple[str, ...], decision: Decision
) -> None:
    pattern = GrantPattern(
        tools=("bash",),
        argv=("python3",),
        write=(".",),
        folder="/workspace",
        program=True,
        network=network,
        hosts=hosts,
    )
    rules = '[[rule]]\nid = "b"\ndecision = "auto"\nargv = ["make", "b"]\nnetwork = ["a.org"]\n'
    held = with_grants(policy(rules), [session_grant("grant-1", pattern)])
    assert judged(held, "python3 a && make b").decision is decision
