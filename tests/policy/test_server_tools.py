"""Tools of MCP servers in policies: how they are named, with a star at the end, and what a rule or a default says of them."""

from __future__ import annotations

import pytest
from rows import all_rows

from harness.actions import Action, ToolUse
from harness.errors import PolicyError
from harness.messages import ToolCall
from harness.policy.loader import parse_policy
from harness.policy.policy import Policy, combine
from harness.policy.rules import Layer
from harness.policy.verdict import evaluate
from harness.tool_kinds import is_from_outside, is_named


def policy(text: str, *, layer: Layer = Layer.FILE, file: str = "p.toml") -> Policy:
    return parse_policy(f"version = 1\n{text}".encode(), file, layer=layer)


def use(tool: str, unseen: str = "") -> Action:
    call = ToolCall(id="1", name=tool, arguments="{}")
    facets = (ToolUse(tool=tool, unseen=unseen),)
    return Action(call=call, tool=tool, arguments={}, facets=facets, summary="", preview="", request=None)


def decided(held: Policy, tool: str) -> str:
    return evaluate(held, use(tool)).decision.word


@all_rows(
    ("name", "is_one"),
    [
        ("mcp__srv__x", True),
        ("mcp__srv__read_file", True),
        ("mcp__srv__a__b", True),
        ("mcp__srv__x.y/z-1", True),
        ("mcp__srv__*", True),
        ("mcp__srv__read_*", True),
        ("mcp__*", True),
        ("mcp__a_b__x", True),
        ("mcp__srv__", False),
        ("mcp__srv", False),
        ("mcp__srv*", False),
        ("mcp__*__x", False),
        ("mcp__srv__a*b", False),
        ("mcp__srv__**", False),
        ("mcp___srv__x", False),
        ("mcp____x", False),
        ("mcp__srv__\u0445", False),
        ("mcp__srv__a b", False),
        (f"mcp__{'a' * 32}__x", True),
        (f"mcp__{'a' * 33}__x", False),
        ("script__lint", True),
        ("script__*", True),
        ("script__li*", True),
        ("script__", False),
        ("script__1", False),
        ("script__a b", False),
        ("script_lint", False),
        ("*", False),
        ("bash*", False),
        ("", False),
    ],
)
def test_names_of_tools_from_outside(name: str, is_one: bool) -> None:
    assert is_from_outside(name) is is_one
    for text in (f"[tools]\n'{name}' = 'auto'", f"[[rule]]\nid='r'\ndecision='confirm'\ntool=['{name}']"):
        if is_one:
            policy(text)
        else:
            with pytest.raises(PolicyError, match=r"p\.toml:\d+"):
                policy(text)


@all_rows(
    ("tool", "names", "is_one"),
    [
        ("mcp__srv__x", "mcp__srv__x", True),
        ("mcp__srv__x", "mcp__srv__*", True),
        ("mcp__srv__x", "mcp__*", True),
        ("mcp__srv__x", "mcp__srv__y* mcp__srv__x*", True),
        ("mcp__srv2__x", "mcp__srv__*", False),
        ("mcp__srv__xy", "mcp__srv__x", False),
        ("mcp__srv__X", "mcp__srv__x", False),
        ("bash", "mcp__*", False),
        ("", "mcp__*", False),
    ],
)
def test_star_matches_any_end(tool: str, names: str, is_one: bool) -> None:
    assert is_named(tool, names.split()) is is_one


RULES = """
[tools]
default = "deny"
"mcp__srv__*" = "confirm"
"mcp__srv__read_*" = "auto"
"mcp__srv__read_secret" = "block"
bash = "auto"
[[rule]]
id = "no-mail"
decision = "deny"
tool = ["mcp__srv__send_*", "mcp__mail__*"]
reason = "Mail goes to people."
"""


@all_rows(
    ("tool", "decision"),
    [
        ("mcp__srv__read_it", "auto"),
        ("mcp__srv__read_secret", "block"),
        ("mcp__srv__write", "confirm"),
        ("mcp__srv__send_it", "deny"),
        ("mcp__mail__anything", "deny"),
        ("mcp__other__x", "deny"),
        ("bash", "auto"),
    ],
)
def test_most_specific_tool_name_decides(tool: str, decision: str) -> None:
    assert decided(policy(RULES), tool) == decision
    reversed_lines = "\n".join(
        ["[tools]", *RULES.split("[[rule]]", maxsplit=1)[0].split("\n")[:1:-1], "[[rule]]" + RULES.split("[[rule]]")[1]]
    )
    assert decided(policy(reversed_lines), tool) == decision, "order means nothing"


def test_the_strictest_of_several_files_decides_about_a_tool() -> None:
    mild = policy('[tools]\n"mcp__srv__*" = "auto"', file="a.toml")
    other = policy('name = "b"\n[tools]\ndefault = "confirm"', layer=Layer.PROJECT, file="b.toml")
    assert decided(mild, "mcp__srv__x") == "auto"
    assert decided(combine((mild, other)), "mcp__srv__x") == "confirm"


@all_rows("name", ["mcp__srv__x", "mcp__srv__*", "script__x"])
def test_an_auto_rule_lets_a_whole_tool_from_outside_run_and_none_that_ships(name: str) -> None:
    rule = "[[rule]]\nid='r'\ndecision='auto'\ntool=[{}]"
    assert decided(policy(rule.format(f"'{name}'")), name.replace("*", "x")) == "auto"
    with pytest.raises(PolicyError, match="whole tool is set under"):
        policy(rule.format(f"'{name}', 'bash'"))


@all_rows(("says", "decision"), [("auto", "confirm"), ("confirm", "confirm"), ("deny", "deny"), ("block", "block")])
def test_unseen_tool_is_at_least_asked_about(says: str, decision: str) -> None:
    held = policy(f'[tools]\n"mcp__srv__x" = "{says}"')
    verdict = evaluate(held, use("mcp__srv__x", "nobody has seen it"))
    assert verdict.decision.word == decision
    if decision == "confirm":
        assert (verdict.deciding.by, verdict.deciding.reason) == ("built-in unseen-tool", "nobody has seen it")
