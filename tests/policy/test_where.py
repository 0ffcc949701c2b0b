"""Rules about what a tool from outside is called with: the table where.txt, and what holds of every such rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows import all_rows
from sizes import examples

from harness.actions import Access, Action, JsonValue, Place, ToolArgument, ToolBounds, ToolUse
from harness.app.policy.judged_call import call_from_outside
from harness.files.workspace import Workspace
from harness.grant_pattern import pattern_fields, pattern_from
from harness.policy.destruction import destroys
from harness.policy.grant_offers import Offer, offer_for
from harness.policy.lint import warnings
from harness.policy.loader import parse_policy
from harness.policy.policy import Policy, combine
from harness.policy.rules import Layer
from harness.policy.session_grants import pattern_problem, session_grant, with_grants
from harness.policy.tool_arguments import MOST_ARGUMENTS, MOST_CHARACTERS, MOST_DEPTH, REST, tool_arguments
from harness.policy.verdict import Source, evaluate
from harness.policy.walls_here import WallsHere
from harness.record import replace
from harness.session.policies import with_plan_mode

TABLE = Path(__file__).with_name("where.txt")
TOOL = "mcp__srv__do"
UNHELD = ToolBounds(is_held=False)


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield where, what an auto rule and a deny rule do, and the arguments as JSON, of each row."""
    where = ""
    for line in TABLE.read_text().splitlines():
        if line.startswith("where "):
            where = line.removeprefix("where ")
        elif line and not line.startswith("#"):
            covers, hits, arguments = line.split(maxsplit=2)
            yield where, covers, hits, arguments


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    root = tmp_path_factory.mktemp("where")
    (root / "src/deep").mkdir(parents=True)
    for name in ("src/a.py", "src/deep/b.py", ".env"):
        (root / name).write_text("x\n")
    (root / "src/out").symlink_to("/etc")
    (root / "in").symlink_to("src")
    return Workspace(str(root), str(root / "home"))


def policy(text: str, *, layer: Layer = Layer.FILE, file: str = "p.toml") -> Policy:
    return parse_policy(f"version = 1\n{text}".encode(), file, layer=layer)


def auto(matchers: str, tool: str = TOOL) -> str:
    return f'[[rule]]\nid = "auto"\ndecision = "auto"\ntool = ["{tool}"]\n{matchers}\n'


def strict(matchers: str, decision: str = "deny") -> str:
    return f'[[rule]]\nid = "{decision}"\ndecision = "{decision}"\nreason = "no"\n{matchers}\n'


def called(workspace: Workspace, arguments: str = "{}", **told: object) -> Action:
    return call_from_outside(replace(ToolUse(tool=TOOL), **told), arguments, workspace)


def decided(held: Policy, action: Action, *suspended: str) -> str:
    return evaluate(held, action, suspended).decision.word


@all_rows(("where", "covers", "hits", "arguments"), rows())
def test_auto_rule_covers_and_deny_rule_hits_as_listed(
    workspace: Workspace, where: str, covers: str, hits: str, arguments: str
) -> None:
    action = called(workspace, arguments.replace("ROOT", workspace.root).replace("LONG/", "./" * 1_000))
    found = [
        decided(policy(auto(f"where = {where}")), action),
        decided(policy(strict(f"where = {where}")), action),
    ]
    assert found == ["auto" if covers == "covers" else "confirm", "deny" if hits == "hits" else "confirm"]


def test_too_many_texts_never_loosen_and_always_tighten(
    workspace: Workspace,
) -> None:
    many: JsonValue = ["src/a.py"] * (MOST_ARGUMENTS + 1)
    deep: JsonValue = "src/a.py"
    for _ in range(MOST_DEPTH + 1):
        deep = [deep]
    long: JsonValue = ["src/" * 1_000] * (MOST_CHARACTERS // 4_000 + 1)
    for told in ({"path": many}, {"path": "src/a.py", "x": deep}, {"path": "src/a.py", "x": long}):
        action = called(workspace, json.dumps(told))
        assert evaluate(policy(auto('where = {path = ["src/"]}')), action).decision.word == "confirm"
        assert decided(policy(auto("")), action) == "confirm", "nobody knows whether one of them is protected"
        for held in ('where = {path = [".env"]}', 'where = {host = ["x.y"]}', 'where = {z = ["x"]}', 'path = [".env"]'):
            verdict = evaluate(policy(strict(held)), action)
            assert verdict.decision.word == "deny"
            assert verdict.deciding.reason == "no (it has more arguments than are looked at)"
    enough = called(workspace, json.dumps({"path": ["src/a.py"] * MOST_ARGUMENTS}))
    assert decided(policy(auto('where = {path = ["src/"]}')), enough) == "auto"


def test_each_text_is_named_and_resolved(workspace: Workspace) -> None:
    told: dict[str, JsonValue] = {"a": {"b": [1, True, None], "c.d": "x", "": "y"}, "url": "https://example.org/"}
    found = tool_arguments(told, workspace)
    assert [(one.name, one.text, one.place, one.host) for one in found] == [
        ("a.b", "1", Place.INSIDE, ""),
        ("a.b", "true", Place.INSIDE, "true"),
        ("a.b", "null", Place.INSIDE, "null"),
        ('a."c.d"', "x", Place.INSIDE, "x"),
        ('a.""', "y", Place.INSIDE, "y"),
        ("url", "https://example.org/", Place.INSIDE, "example.org"),
    ]
    assert tool_arguments({"a": []}, workspace) == ()
    long = tool_arguments({"a": "x" * 5_000}, workspace)
    assert long == (ToolArgument(name="a", text="x" * 5_000),)
    assert REST.name == ""


@all_rows(
    ("matchers", "told", "decision"),
    [
        ("", {}, "auto"),
        ("", {"says_destroys": True}, "auto"),
        ("", {"unseen": "nobody looked"}, "confirm"),
        ("read_only = true", {}, "confirm"),
        ("read_only = true", {"says_reads": True}, "auto"),
        ("read_only = true", {"says_reads": True, "says_destroys": True}, "confirm"),
        ("read_only = true", {"says_reads": True, "unseen": "nobody looked"}, "confirm"),
        ("read_only = true", {"bounds": ToolBounds()}, "auto"),
        ("read_only = true", {"bounds": ToolBounds(write=("build/",))}, "confirm"),
        ("read_only = true", {"bounds": ToolBounds(network=True)}, "confirm"),
        ("read_only = true", {"bounds": ToolBounds(network=True), "says_reads": True}, "auto"),
        ('read_only = true\nwhere = {path = ["src/"]}', {"says_reads": True}, "auto"),
        ('read_only = true\nwhere = {path = ["docs/"]}', {"says_reads": True}, "confirm"),
    ],
)
def test_claims_of_a_server_loosen_only_by_rule(
    workspace: Workspace, matchers: str, told: dict[str, object], decision: str
) -> None:
    assert decided(policy(auto(matchers)), called(workspace, '{"path": "src/a.py"}', **told)) == decision


@all_rows(
    ("text", "destroying", "other"),
    [
        (auto("", "mcp__*"), "confirm", "auto"),
        (auto("", "mcp__srv__d*"), "confirm", "auto"),
        (auto("", TOOL), "auto", "auto"),
        (f'[tools]\n"{TOOL}" = "auto"', "auto", "auto"),
        ('[tools]\n"mcp__srv__*" = "auto"', "confirm", "auto"),
        ('[tools]\ndefault = "auto"', "confirm", "auto"),
        ('[tools]\ndefault = "deny"', "deny", "deny"),
        (f'[tools]\ndefault = "auto"\n{auto("", "mcp__*")}', "confirm", "auto"),
    ],
)
def test_star_never_matches_a_destructive_tool(workspace: Workspace, text: str, destroying: str, other: str) -> None:
    held, calls = policy(text), (called(workspace, says_destroys=True), called(workspace))
    assert [decided(held, call) for call in calls] == [destroying, other]
    assert [bool(destroys(call)) for call in calls] == [True, False]


@all_rows(
    ("text", "arguments", "decision", "by"),
    [
        # Path rules hold for every argument that may be a path, whatever the tool is: nobody knows which is one.
        (strict('path = [".env"]'), '{"file": ".env"}', "deny", "rule deny"),
        (strict('path = [".env"]'), '{"a": [{"b": "x/.ENV"}]}', "deny", "rule deny"),
        (strict('path = [".env"]\naccess = ["write"]'), '{"file": ".env"}', "deny", "rule deny"),
        (strict('path = [".env*"]\nexcept = [".env.example"]'), '{"file": ".env.example"}', "confirm", "no rule"),
        (strict('path = [".env"]\ntool = ["mcp__other__*"]'), '{"file": ".env"}', "confirm", "no rule"),
        (strict('path = [".env"]'), '{"file": "read the .env"}', "confirm", "no rule"),
        (strict('argv = ["cat"]\npath = [".env"]'), '{"file": ".env"}', "confirm", "no rule"),
        (strict('text = ".env"'), '{"file": ".env"}', "confirm", "no rule"),
        # What is built in stands above what lets the tool run.
        (auto(""), '{"path": ".git/hooks/x"}', "confirm", "built-in protected"),
        (auto(""), '{"path": ["a", "b/.GitHub/x"]}', "confirm", "built-in protected"),
        (auto(""), '{"path": "file:.vscode/x"}', "confirm", "built-in protected"),
        (auto(""), '{"path": "src/a.py"}', "auto", "rule auto"),
        (f'[tools]\n"{TOOL}" = "auto"', '{"path": "~/.bashrc"}', "confirm", "built-in protected"),
        (auto(""), '{"path": "policy.toml"}', "confirm", "built-in own-files"),
        (auto(""), '{"path": "/guarded/log/x"}', "confirm", "built-in own-files"),
        (auto(""), '{"path": "/elsewhere/x"}', "auto", "rule auto"),
    ],
)
def test_every_argument_may_be_a_path(workspace: Workspace, text: str, arguments: str, decision: str, by: str) -> None:
    held = policy(text).guarding("/somewhere/policy.toml", "/guarded/log")
    verdict = evaluate(held, called(workspace, arguments))
    assert (verdict.decision.word, verdict.deciding.by[: len(by)]) == (decision, by)


def test_tool_without_write_access_may_be_given_protected_paths(workspace: Workspace) -> None:
    held = policy(auto("") + strict('path = ["*.lock"]\naccess = ["write"]') + strict('path = [".env"]', "block"))
    for path, decision in ((".git/config", "auto"), ("x.lock", "auto"), (".env", "block")):
        assert decided(held, called(workspace, json.dumps({"path": path}), bounds=ToolBounds(network=True))) == decision


def test_unconfined_tool_may_write_anything_despite_its_declaration(workspace: Workspace) -> None:
    held = policy(auto("") + strict('path = ["*.lock"]\naccess = ["write"]'))
    for path, decision in ((".git/config", "confirm"), ("x.lock", "deny"), ("src/a.py", "auto")):
        assert decided(held, called(workspace, json.dumps({"path": path}), bounds=UNHELD)) == decision


def test_a_refusal_names_the_argument(workspace: Workspace) -> None:
    verdict = evaluate(
        policy(strict('where = {url = {host = ["x.org"]}}')), called(workspace, '{"url": "http://x.org/"}')
    )
    assert verdict.deciding.reason == "no (the argument url)"


@all_rows(
    ("path", "access", "decision"),
    [
        ("src/a.py", Access.READ, "auto"),
        ("src/a.py", Access.WRITE, "auto"),
        (".", Access.READ, "auto"),
        (".", Access.WRITE, "confirm"),
        ("..", Access.READ, "confirm"),
        ("src/out/passwd", Access.READ, "confirm"),
        (".git/x", Access.READ, "auto"),
        (".git/x", Access.WRITE, "confirm"),
    ],
)
def test_tool_rule_covers_its_workspace_files(workspace: Workspace, path: str, access: Access, decision: str) -> None:
    held = policy(auto("", "script__lint"))
    use = ToolUse(tool="script__lint", bounds=ToolBounds())
    action = call_from_outside(use, "{}", workspace)
    beside = replace(action, facets=(*action.facets, workspace.resolve(path, access)))
    assert decided(held, beside) == decision
    alone = replace(action, facets=(workspace.resolve(path, access),))
    assert decided(held, alone) == "confirm", "it is about the use of a tool, which is not here"


def test_script_is_asked_about_after_an_unseen_change_of_an_entry_point(workspace: Workspace) -> None:
    held = policy(auto(""))
    script, remote = called(workspace, bounds=ToolBounds()), called(workspace)
    assert [decided(held, one, "Makefile") for one in (script, remote)] == ["confirm", "auto"]


@all_rows(
    ("text", "told", "decision"),
    [
        # Nothing from outside runs, but what can only read, as the policy below has it ...
        (auto(""), {}, "deny"),
        (auto(""), {"says_reads": True}, "deny"),
        (auto(""), {"bounds": ToolBounds(write=(".",))}, "deny"),
        (auto(""), {"bounds": ToolBounds(network=True)}, "deny"),
        (f'[tools]\n"{TOOL}" = "auto"', {}, "deny"),
        (f'[tools]\n"{TOOL}" = "auto"', {"bounds": ToolBounds(network=True)}, "deny"),
        (f'[tools]\n"{TOOL}" = "auto"', {"says_reads": True}, "deny"),
        (f'[tools]\n"{TOOL}" = "auto"', {"bounds": ToolBounds()}, "auto"),
        (f'[tools]\n"{TOOL}" = "auto"', {"bounds": UNHELD}, "deny"),
        (f'[tools]\n"{TOOL}" = "confirm"', {"bounds": ToolBounds()}, "confirm"),
        (f'[tools]\n"{TOOL}" = "deny"', {"bounds": ToolBounds()}, "deny"),
        ("", {"bounds": ToolBounds()}, "confirm"),
        # ... and what a rule takes to only read.
        (auto("read_only = true"), {"says_reads": True}, "auto"),
        (auto("read_only = true"), {"says_reads": True, "says_destroys": True}, "deny"),
        (auto("read_only = true"), {"bounds": ToolBounds()}, "auto"),
        (auto("read_only = true"), {"bounds": UNHELD}, "deny"),
        (auto("read_only = true"), {}, "deny"),
        (auto("read_only = true") + strict("where = {path = ['src/']}", "confirm"), {"says_reads": True}, "deny"),
    ],
)
def test_plan_mode_runs_reading_tools_only(
    workspace: Workspace, text: str, told: dict[str, object], decision: str
) -> None:
    held = policy(text)
    action = called(workspace, '{"path": "src/a.py"}', **told)
    assert decided(with_plan_mode(held), action) == decision
    assert evaluate(with_plan_mode(held), action).decision >= evaluate(held, action).decision


# --- grants ---


WALLS = WallsHere(root="", confines=False, missing="nothing confines it")


def offered(held: Policy, action: Action) -> Offer | str:
    return offer_for(held, action, evaluate(held, action), WALLS)


def test_a_call_and_a_tool_can_be_granted_for_a_session(workspace: Workspace) -> None:
    held = policy('[tools]\ndefault = "confirm"')
    action = called(workspace, '{"path": "src/a.py", "n": 1}')
    offer = offered(held, action)
    assert isinstance(offer, Offer)
    assert [(one.name, one.session_only, one.patterns[0].text) for one in offer.choices] == [
        ("exactly this", True, f"{TOOL} with exactly these arguments"),
        ("this tool, any arguments", True, f"{TOOL} with any arguments"),
    ]
    same, other = called(workspace, '{"n": 1, "path":  "src/a.py"}'), called(workspace, '{"path": "src/a.py", "n": 2}')
    elsewhere = replace(action, tool="mcp__srv__other", facets=(ToolUse(tool="mcp__srv__other"),))
    protected = called(workspace, '{"path": ".git/x"}')
    found = []
    for choice in offer.choices:
        granted = with_grants(held, [session_grant("grant-1", one) for one in choice.patterns])
        found.append([decided(granted, one) for one in (action, same, other, elsewhere, protected)])
        (pattern,) = choice.patterns
        assert pattern_from(json.loads(json.dumps(pattern_fields(pattern)))) == pattern
        assert pattern_problem(pattern), "it is for a session, and nothing that is kept"
    assert found == [
        ["auto", "auto", "confirm", "confirm", "confirm"],
        ["auto", "auto", "auto", "confirm", "confirm"],
    ]


@all_rows(
    ("text", "told", "why"),
    [
        (
            "",
            {"unseen": "nobody looked"},
            "built-in unseen-tool asks about this call; a grant cannot override that",
        ),
        (
            "",
            {"says_destroys": True},
            f"the server of {TOOL} says that it may destroy: such calls need approval each time",
        ),
        (strict("where = {path = ['src/']}", "confirm"), {}, "a grant cannot override that"),
    ],
)
def test_call_asked_about_each_time_is_not_granted(
    workspace: Workspace, text: str, told: dict[str, object], why: str
) -> None:
    held = policy(text)
    offer = offered(held, called(workspace, '{"path": "src/a.py"}', **told))
    assert isinstance(offer, str)
    assert offer.endswith(why)


def test_files_read_by_a_script_are_granted_with_it(workspace: Workspace) -> None:
    held = policy('[tools]\ndefault = "confirm"')
    action = call_from_outside(ToolUse(tool="script__lint", bounds=ToolBounds()), '{"path": "src/a.py"}', workspace)
    reading = replace(action, facets=(*action.facets, workspace.resolve("src/a.py", Access.READ)), reads_as="")
    offer = offered(held, reading)
    assert isinstance(offer, Offer)
    granted = with_grants(held, [session_grant("grant-1", one) for one in offer.choices[0].patterns])
    assert (len(offer.choices[0].patterns), decided(granted, reading)) == (1, "auto")


# --- properties ---


_TEXTS = st.sampled_from(
    ["src/a.py", "docs/x", ".env", "/etc/passwd", "https://a.example.org/", "https://x.net/", "fast", "", "src/../.env"]
)
_VALUES = st.recursive(_TEXTS | st.booleans() | st.integers(), lambda inner: st.lists(inner, max_size=3), max_leaves=4)
_NAMES = st.sampled_from(["path", "PATH", "host", "mode", "edits.path"])
_CALLS = st.dictionaries(_NAMES, _VALUES | st.dictionaries(_NAMES, _VALUES, max_size=2), max_size=4)
_WHERES = st.dictionaries(
    _NAMES,
    st.fixed_dictionaries({"path": st.sampled_from([["src/"], ["*"], [".env", "docs/"]])})
    | st.fixed_dictionaries({"host": st.sampled_from([["*.example.org"], ["x.net", "a.example.org"]])})
    | st.just(["fast"])
    | st.just(["true", "src"]),
    min_size=1,
    max_size=3,
).map(lambda said: {name: value for name, value in said.items() if isinstance(value, dict) or name in ("mode", "PATH")})
_TOLD = st.fixed_dictionaries(
    {
        "says_reads": st.booleans(),
        "says_destroys": st.booleans(),
        "bounds": st.sampled_from([None, ToolBounds(), ToolBounds(write=(".",), network=True)]),
    }
)
PROPERTY = settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def _toml(where: dict[str, object]) -> str:
    said = ", ".join(
        f"{json.dumps(name)} = " + (json.dumps(value) if isinstance(value, list) else _form(value))
        for name, value in where.items()
    )
    return f"where = {{{said}}}" if where else ""


def _form(value: object) -> str:
    assert isinstance(value, dict)
    return ", ".join(f"{{{name} = {json.dumps(patterns)}}}" for name, patterns in value.items())


@PROPERTY
@given(arguments=_CALLS, where=_WHERES, more=_WHERES, told=_TOLD, read_only=st.booleans())
def test_location_and_read_only_never_widen_an_auto_rule(
    workspace: Workspace,
    arguments: dict[str, JsonValue],
    where: dict[str, object],
    more: dict[str, object],
    told: dict[str, object],
    read_only: bool,
) -> None:
    action = called(workspace, json.dumps(arguments), **told)
    reads = "read_only = true" if read_only else ""
    whole = evaluate(policy(auto("")), action).decision
    one = evaluate(policy(auto(_toml(where))), action).decision
    both = evaluate(policy(auto(f"{_toml({**more, **where})}\n{reads}")), action).decision
    assert whole <= one <= both


@PROPERTY
@given(arguments=_CALLS, where=_WHERES, told=_TOLD, held=st.sampled_from(["auto", "confirm", "deny"]))
def test_call_covered_by_an_auto_rule_is_hit_by_a_strict_one(
    workspace: Workspace, arguments: dict[str, JsonValue], where: dict[str, object], told: dict[str, object], held: str
) -> None:
    action = called(workspace, json.dumps(arguments), **told)
    loosened = evaluate(policy(auto(_toml(where))), action)
    default = policy(f'[tools]\n"{TOOL}" = "{held}"', file="d.toml")
    tightened = evaluate(combine([default, policy(strict(_toml(where) or f'tool = ["{TOOL}"]'))]), action)
    if any(part.source is Source.RULE for part in loosened.facets):
        assert tightened.decision.word == "deny"
    assert tightened.decision >= evaluate(default, action).decision


# --- lint ---


@all_rows(
    ("text", "said"),
    [
        (
            auto('where = {path = ["src/"]}') + strict('where = {path = ["src/"]}\nmatch = [{path = "src/a"}]'),
            "never reached",
        ),
        (auto('where = {path = ["src/"]}') + strict('tool = ["mcp__srv__*"]'), "never reached"),
        (
            auto('where = {path = ["src/"], mode = ["x"]}') + strict('where = {mode = ["x"]}\nmatch = [{mode = "x"}]'),
            "never",
        ),
        (auto('where = {path = ["src/"]}') + strict('where = {path = [".env"]}\nmatch = [{path = ".env"}]'), ""),
        (auto("") + strict('where = {path = ["src/"]}\nmatch = [{path = "src/a"}]'), ""),
        (strict('where = {path = ["src/"]}'), "a strict rule without `match`"),
        (f'[tools]\n"{TOOL}" = "auto"\n' + auto('where = {path = ["src/"]}'), "only repeats the default"),
    ],
)
def test_likely_mistake_is_reported(text: str, said: str) -> None:
    found = [warning.problem for warning in warnings(policy(text))]
    assert any(said in problem for problem in found) if said else found == []
