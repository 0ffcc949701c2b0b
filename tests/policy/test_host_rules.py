"""Rules with `host`: what they cover, what they touch, and which addresses nobody reaches by a rule that does not name them."""

from __future__ import annotations

import pytest
from rows import all_rows

from harness.actions import Action, ToolUse
from harness.errors import PolicyError
from harness.messages import ToolCall
from harness.policy.loader import parse_policy
from harness.policy.policy import tightening_only
from harness.policy.verdict import evaluate


def going_to(host: str, port: int) -> Action:
    use = ToolUse(tool="web_fetch", host=host, port=port)
    call = ToolCall(id="1", name="web_fetch", arguments="{}")
    return Action(call=call, tool="web_fetch", arguments={}, facets=(use,), summary="", preview="", request=None)


def rule(decision: str, *hosts: str, more: str = "") -> str:
    reason = 'reason = "No."\n' if decision in ("deny", "block") else ""
    return f'[[rule]]\nid = "{decision}"\ndecision = "{decision}"\nhost = {list(hosts)}\n{reason}{more}'


@all_rows(
    ("rules", "host", "port", "decision"),
    [
        (rule("auto", "docs.example.org"), "docs.example.org", 443, "auto"),
        (rule("auto", "docs.example.org"), "docs.example.org", 80, "auto"),
        (rule("auto", "docs.example.org"), "docs.example.org", 8080, "confirm"),
        (rule("auto", "docs.example.org:8080"), "docs.example.org", 8080, "auto"),
        (rule("auto", "docs.example.org:8080"), "docs.example.org", 443, "confirm"),
        (rule("auto", "docs.example.org"), "evil.example.org", 443, "confirm"),
        (rule("auto", "docs.example.org"), "docs.example.org.evil.net", 443, "confirm"),
        (rule("auto", "*.example.net"), "a.b.example.net", 443, "auto"),
        (rule("auto", "*.example.net"), "example.net", 443, "confirm"),
        (rule("auto", "*.example.net"), "notexample.net", 443, "confirm"),
        (rule("deny", "evil.example"), "evil.example", 8443, "deny"),
        (rule("deny", "*.evil.example"), "evil.example", 443, "deny"),
        (rule("deny", "evil.example:8080"), "evil.example", 443, "confirm"),
        (rule("auto", "*.example.net") + rule("deny", "x.example.net"), "x.example.net", 443, "deny"),
        (rule("auto", "*.example.net") + rule("deny", "x.example.net"), "y.example.net", 443, "auto"),
        # what is not for everybody is named itself, or refused, whatever else says auto
        ("tools.web_fetch = 'auto'\n", "10.0.0.1", 443, "deny"),
        ("tools.web_fetch = 'auto'\n", "127.0.0.1", 8000, "deny"),
        ("tools.web_fetch = 'auto'\n", "::1", 443, "deny"),
        ("tools.web_fetch = 'auto'\n", "169.254.169.254", 80, "deny"),
        ("tools.web_fetch = 'auto'\n", "64:ff9b::a9fe:a9fe", 80, "deny"),
        ("tools.web_fetch = 'auto'\n", "localhost", 80, "deny"),
        ("tools.web_fetch = 'auto'\n", "a.localhost", 80, "deny"),
        ("tools.web_fetch = 'auto'\n", "0.0.0.0", 80, "deny"),
        ("tools.web_fetch = 'auto'\n", "224.0.0.1", 80, "deny"),
        ("tools.web_fetch = 'auto'\n", "93.184.216.34", 80, "auto"),
        (rule("auto", "10.0.0.1"), "10.0.0.1", 443, "auto"),
        (rule("auto", "10.0.0.1"), "10.0.0.1", 8443, "deny"),
        (rule("auto", "10.0.0.1"), "10.0.0.2", 443, "deny"),
        (rule("confirm", "10.0.0.1"), "10.0.0.1", 443, "confirm"),
        (rule("deny", "10.0.0.1"), "10.0.0.1", 443, "deny"),
        (rule("auto", "localhost:8000"), "127.0.0.1", 8000, "auto"),
        (rule("auto", "localhost:8000"), "::1", 8000, "auto"),
        (rule("auto", "localhost:8000"), "localhost", 8000, "auto"),
        (rule("auto", "localhost:8000"), "localhost", 80, "deny"),
    ],
)
def test_host_rule_decides_by_address_and_port(rules: str, host: str, port: int, decision: str) -> None:
    policy = parse_policy(f"version = 1\n{rules}".encode(), "p.toml")
    assert evaluate(policy, going_to(host, port)).decision.word == decision


def test_untrusted_project_cannot_allow_an_address() -> None:
    policy = parse_policy(b"version = 1\n" + rule("confirm", "10.0.0.1").encode(), "p.toml")
    verdict = evaluate(tightening_only(policy), going_to("10.0.0.1", 443))
    assert (verdict.decision.word, verdict.deciding.by) == ("deny", "built-in private-address")


def test_examples_are_hosts() -> None:
    good = 'match = ["a.example.org", "b.example.org:80"]\nnot_match = ["example.org", "a.example.org:8080"]\n'
    parse_policy(b"version = 1\n" + rule("auto", "*.example.org", more=good).encode(), "p.toml")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('match = ["example.org"]', "does not match its example"),
        ('not_match = ["a.example.org"]', "matches its counter-example"),
        ('match = ["https://a.example.org"]', "more than a host"),
        ('path = ["a"]', "is about tools that go to a host"),
        ('argv = ["curl"]', "is about tools that go to a host"),
    ],
)
def test_invalid_host_rule_is_refused(more: str, said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        parse_policy(b"version = 1\n" + rule("auto", "*.example.org", more=f"{more}\n").encode(), "p.toml")


@pytest.mark.parametrize("host", ["*", "https://a", "a@b", "127.1", "a.example:443"])
def test_bad_patterns_are_not_loaded(host: str) -> None:
    with pytest.raises(PolicyError, match="host"):
        parse_policy(b"version = 1\n" + rule("auto", host).encode(), "p.toml")
