"""What policies grant to commands, and what follows for one: tables over pure functions."""

from __future__ import annotations

from rows import all_rows

from harness.actions import (
    Access,
    Act,
    Action,
    Command,
    Decision,
    Effects,
    Enforcement,
    Facet,
    Opaque,
    PathAccess,
    Place,
    Unconfined,
)
from harness.messages import ToolCall
from harness.policy.effects import DEFAULT_HIDE, SandboxTable, effects_of, sandbox_of
from harness.policy.loader import load_policy, parse_policy
from harness.policy.policy import combine, tightening_only
from harness.policy.rules import Layer, Origin
from harness.policy.verdict import Verdict, evaluate
from harness.record import replace

HERE = Origin(file="p.toml", line=3)


def said(
    write: tuple[str, ...] | None = None,
    *,
    network: bool | None = None,
    hide: tuple[str, ...] = (),
    show: tuple[str, ...] | None = None,
    required: bool = False,
    trusted: bool = True,
) -> SandboxTable:
    return SandboxTable(
        origin=HERE,
        layer=Layer.USER,
        write=write,
        network=network,
        hide=hide,
        show=show,
        required=required,
        trusted=trusted,
    )


WRITES: list[tuple[list[SandboxTable], tuple[str, ...]]] = [
    ([], (".",)),
    ([said()], (".",)),
    ([said(("build",))], ("build",)),
    ([said((".", "~/.cache"))], (".", "~/.cache")),
    ([said(())], ()),
    # only what every file lets be written is
    ([said((".", "~/.cache")), said((".",))], (".",)),
    ([said((".",)), said((".", "~/.cache"))], (".",)),
    ([said((".",)), said(("build", "./dist/"))], ("build", "dist")),
    ([said(("~/.cache",)), said(("~/.cache/x",))], ("~/.cache/x",)),
    ([said(("~/.cache",)), said(("~/.cachet",))], ()),
    ([said((".",)), said(("/srv/x", "~/y"))], ()),
    ([said(("/srv",)), said(("/srv/x",)), said(("/srv/x/y", "/srv/z"))], ("/srv/x/y",)),
    ([said((".",)), said(())], ()),
    # who is not trusted takes away only
    ([said((".", "~/.cache"), trusted=False)], (".",)),
    ([said(("~/.cache",), trusted=False)], ()),
    ([said(("build",), trusted=False)], ("build",)),
    ([said((".",)), said((".", "/srv"), trusted=False)], (".",)),
]


@all_rows(("tables", "write"), WRITES)
def test_writable_paths_are_those_of_every_file(tables: list[SandboxTable], write: tuple[str, ...]) -> None:
    assert sandbox_of(tuple(tables)).write == write
    assert set(sandbox_of(tuple(tables[::-1])).write) == set(write)


@all_rows(
    ("tables", "network"),
    [
        ([], True),
        ([said(network=True)], True),
        ([said(network=False)], False),
        ([said(network=True), said(network=False)], False),
        ([said(network=False, trusted=False), said(network=True)], False),
    ],
)
def test_one_denial_of_the_network_is_enough(tables: list[SandboxTable], network: bool) -> None:
    assert sandbox_of(tuple(tables)).network is network


SHOWN = ("~/.ssh", "~/.docker")
LESS = tuple(place for place in DEFAULT_HIDE if place not in SHOWN)


@all_rows(
    ("tables", "hide"),
    [
        ([], DEFAULT_HIDE),
        ([said(hide=("~/x",))], (*DEFAULT_HIDE, "~/x")),
        ([said(hide=("~/y",)), said(hide=("~/x", "~/y"), trusted=False)], (*DEFAULT_HIDE, "~/y", "~/x")),
        ([said(show=SHOWN)], LESS),
        ([said(show=("~/.ssh/", "~/.docker"))], LESS),
        ([said(show=SHOWN), said(hide=("~/.ssh",))], (*LESS, "~/.ssh")),
        ([said(show=SHOWN), said(show=("~/.ssh",))], tuple(p for p in DEFAULT_HIDE if p != "~/.ssh")),
        ([said(show=SHOWN), said(show=())], DEFAULT_HIDE),
        ([said(show=SHOWN, trusted=False)], DEFAULT_HIDE),
    ],
)
def test_paths_hidden_by_any_file_are_hidden(tables: list[SandboxTable], hide: tuple[str, ...]) -> None:
    assert sandbox_of(tuple(tables)).hide == hide


def test_required_confinement_applies_from_any_file() -> None:
    assert sandbox_of((said(), said(required=True, trusted=False))).required == HERE
    assert sandbox_of((said(),)).required is None


def test_untrusted_project_keeps_its_restrictions() -> None:
    said_by_it = said((".", "/srv"), network=True, hide=("~/x",), required=True)
    tight = said_by_it.tightening()
    assert tight == replace(said_by_it, network=None, trusted=False)
    assert said((".",), network=False).tightening().network is False


# --- effects -----------------------------------------------------------------------------------------------------------


def path(name: str, access: Access) -> PathAccess:
    return PathAccess(written=name, real=f"/w/{name}", names=(name,), access=access, place=Place.INSIDE)


def command(act: Act, *, network: bool = False) -> Command:
    return Command(text="c", argv=("c",), act=act, network=network)


def with_paths(act: Act, *paths: PathAccess) -> Command:
    return replace(command(act), paths=paths)


OPEN = (said((".", "~/.cache"), network=True),)
A, B, C = path("a", Access.READ), path("b", Access.WRITE), path("c", Access.EITHER)
ONLINE = Command(text="ssh h", argv=("ssh", "h"))
BLIND = Opaque(text="$x", reason="a variable", column=1)

EFFECTS: list[tuple[str, tuple[Facet, ...], bool, bool, tuple[object, ...]]] = [
    # facets, asked, open-ended -> read, write, granted, network
    ("a reader", (command(Act.LOOKS), A), False, False, (("/w/a",), (), (), False)),
    ("an approved reader", (command(Act.LOOKS), A), True, False, (("/w/a",), (), (), False)),
    ("an approved writer", (command(Act.WRITES), A, B), True, False, (("/w/a",), ("/w/b",), (), False)),
    ("an approved download", (command(Act.LOOKS, network=True),), True, False, ((), (), (), True)),
    ("an unasked download", (command(Act.LOOKS, network=True),), False, False, ((), (), (), False)),
    ("a build by rule", (command(Act.RUNS),), False, False, (None, None, (), False)),
    ("an approved build", (command(Act.RUNS),), True, True, (None, None, (".", "~/.cache"), False)),
    ("a build by default", (command(Act.UNKNOWN),), False, True, (None, None, (".", "~/.cache"), False)),
    ("a build and a file that is named", (command(Act.RUNS), B), True, True, (None, None, (".", "~/.cache"), False)),
    ("something opaque", (BLIND, A), True, True, (None, None, (".", "~/.cache"), False)),
    ("an approved program that reaches out", (ONLINE,), True, True, (None, None, (".", "~/.cache"), True)),
    ("a file", (B,), False, False, ((), ("/w/b",), (), False)),
]


@all_rows(("facets", "asked", "open_ended", "expected"), [row[1:] for row in EFFECTS], ids=[r[0] for r in EFFECTS])
def test_effects_follow_from_facets_and_decision(
    facets: tuple[Facet, ...],
    asked: bool,
    open_ended: bool,
    expected: tuple[object, ...],
) -> None:
    effects = effects_of(
        facets, autos=(), asked_parts=facets if asked else (), open_ended=open_ended, tables=OPEN, keep=("/log",)
    )
    assert (effects.read, effects.write, effects.granted, effects.network) == expected
    assert effects.named_paths == (("/w/b",) if B in facets else ())
    assert (effects.hide, effects.keep, effects.unasked) == (DEFAULT_HIDE, ("/log",), not asked)
    assert effects.enforcement is Enforcement.POSSIBLE


NAMED: list[tuple[str, tuple[Facet, ...], tuple[str, ...]]] = [
    ("what a model says is read and written", (with_paths(Act.WRITES, C), C), ("/w/c",)),
    ("a redirection that reads and writes", (command(Act.LOOKS), C), ("/w/c",)),
    ("that of what changes more than it names too", (with_paths(Act.CHANGES, C), C), ("/w/c",)),
    ("no operand of what runs code", (with_paths(Act.RUNS, C), C), ()),
    ("no operand of what is not known", (with_paths(Act.UNKNOWN, C), C), ()),
    ("but what such a part surely writes", (with_paths(Act.RUNS, B), B), ("/w/b",)),
    ("nothing that may stand in what was not understood", (replace(BLIND, paths=(C,)), C), ()),
]


@all_rows(("facets", "named"), [row[1:] for row in NAMED], ids=[row[0] for row in NAMED])
def test_surely_written_is(facets: tuple[Facet, ...], named: tuple[str, ...]) -> None:
    effects = effects_of(facets, autos=(), asked_parts=facets, open_ended=False, tables=OPEN, keep=())
    assert (effects.named_paths, effects.entries) == (named, ())


def test_moved_entries_are_separated_from_named_files() -> None:
    moved = replace(C, entry=True)
    effects = effects_of((B, moved), autos=(), asked_parts=(B, moved), open_ended=False, tables=OPEN, keep=())
    assert (effects.named_paths, effects.entries) == (("/w/b", "/w/c"), ("/w/c",))


def test_closed_network_applies_to_approved_calls() -> None:
    closed = (said(network=False),)
    for facets in ((ONLINE,), (command(Act.LOOKS, network=True),), (BLIND,)):
        assert not effects_of(facets, autos=(), asked_parts=facets, open_ended=True, tables=closed, keep=()).network


# --- through a policy --------------------------------------------------------------------------------------------------

POLICY = """\
version = 1
[tools]
bash = "confirm"
default = "deny"
readers = true
[sandbox]
network = true
write = [".", "~/.cache"]
[[rule]]
id = "tests"
decision = "auto"
argv = ["pytest", "..."]
write = [".pytest_cache"]
[[rule]]
id = "fetch"
decision = "auto"
argv = ["frob", "..."]
network = true
"""


def verdict_of(facets: tuple[Facet, ...], policy: str = POLICY) -> Verdict:
    call = ToolCall(id="1", name="bash", arguments="{}")
    action = Action(call=call, tool="bash", arguments={}, facets=facets, summary="", preview="", request=None)
    return evaluate(parse_policy(policy.encode(), "p.toml"), action)


def run(*argv: str, act: Act = Act.UNKNOWN) -> Command:
    return Command(text=" ".join(argv), argv=argv, act=act, model="m" if act is not Act.UNKNOWN else "")


def granted(effects: Effects) -> tuple[tuple[str, ...], bool, bool]:
    return effects.granted, effects.network, effects.unasked


VERDICTS: list[tuple[tuple[Facet, ...], Decision, tuple[tuple[str, ...], bool, bool]]] = [
    ((run("ls", act=Act.LOOKS),), Decision.AUTO, ((), False, True)),
    ((run("pytest", act=Act.RUNS),), Decision.AUTO, ((".pytest_cache",), False, True)),
    ((run("frob"),), Decision.AUTO, ((), True, True)),
    ((run("pytest", act=Act.RUNS), run("frob")), Decision.AUTO, ((".pytest_cache",), True, True)),
    ((run("pytest", act=Act.RUNS), run("ls", act=Act.LOOKS)), Decision.AUTO, ((".pytest_cache",), False, True)),
    ((run("make", act=Act.RUNS),), Decision.CONFIRM, ((".", "~/.cache"), False, False)),
    ((run("pytest", act=Act.RUNS), run("make")), Decision.CONFIRM, ((".pytest_cache", ".", "~/.cache"), False, False)),
    (
        (run("pytest", act=Act.RUNS), run("ssh", "h")),
        Decision.CONFIRM,
        ((".pytest_cache", ".", "~/.cache"), True, False),
    ),
]


@all_rows(("facets", "decision", "expected"), VERDICTS)
def test_verdict_grants_by_rules_and_a_person_by_the_policy(
    facets: tuple[Facet, ...], decision: Decision, expected: tuple[tuple[str, ...], bool, bool]
) -> None:
    verdict = verdict_of(facets)
    assert (verdict.decision, granted(verdict.effects)) == (decision, expected)


CACHE_OF: list[tuple[Command, tuple[str, ...]]] = [
    (run("python3", "-c", "x"), ()),
    (run("make"), ()),
    (run("pre-commit", "run"), ()),
    (run("npm", "ci"), ("~/.npm",)),
    (run("npm", "--prefix", "web", "install"), ("~/.npm",)),
    (run("npm", "test"), ()),
    (run("npm", "run", "build"), ()),
    (replace(run("tsc"), run_by=(("npx", "tsc"),)), ("~/.npm",)),
    (run("yarn"), ("~/.yarn", "~/.cache/yarn")),
    (run("pip", "install", "-r", "requirements.txt"), ("~/.cache/pip",)),
    (run("pip", "--version"), ()),
    (run("uv", "sync", "--frozen"), ("~/.cache/uv",)),
    (run("uv", "run", "x.py"), ()),
    (run("cargo", "build"), ("~/.cargo/registry", "~/.cargo/git")),
    (run("go", "test", "./..."), ("~/go/pkg", "~/.cache/go-build")),
    # a file of the workspace is no owner, whatever its name
    (run("./npm", "ci"), ()),
    (run("node_modules/.bin/npm", "ci"), ()),
    (run(".venv/bin/pip", "install", "x"), ()),
    (replace(run("npm", "ci"), variables=("PATH",)), ()),
    (replace(run("npm", "ci"), variables=("CI",)), ("~/.npm",)),
]


@all_rows(("command", "caches"), CACHE_OF)
def test_cache_is_open_to_its_owner_alone(command: Command, caches: tuple[str, ...]) -> None:
    call = ToolCall(id="1", name="bash", arguments="{}")
    action = Action(call=call, tool="bash", arguments={}, facets=(command,), summary="", preview="", request=None)
    verdict = evaluate(load_policy("default"), action)
    assert (verdict.decision, verdict.effects.granted) == (Decision.CONFIRM, (".", *caches))


def test_auto_default_grants_the_effects_of_an_approval() -> None:
    free = POLICY.replace('bash = "confirm"', 'bash = "auto"')
    assert granted(verdict_of((run("make"),), free).effects) == ((".", "~/.cache"), False, True)
    assert granted(verdict_of((run("ssh", "h"),), free).effects) == ((".", "~/.cache"), True, True)
    assert granted(verdict_of((run("ls", act=Act.LOOKS),), free).effects) == ((), False, True)


@all_rows(
    ("bash", "required", "decision"),
    [
        ("auto", False, Decision.CONFIRM),
        ("confirm", False, Decision.CONFIRM),
        ("deny", False, Decision.DENY),
        ("auto", True, Decision.DENY),
        ("confirm", True, Decision.DENY),
    ],
)
def test_unconfined_run_is_at_least_asked_about_and_refused_if_forbidden(
    bash: str,
    required: bool,
    decision: Decision,
) -> None:
    policy = POLICY.replace('bash = "confirm"', f'bash = "{bash}"').replace(
        "[sandbox]", f"[sandbox]\nrequired = {str(required).lower()}"
    )
    facets = (run("ls", act=Act.LOOKS), Unconfined(justification="it needs the bus"))
    verdict = verdict_of(facets, policy)
    assert verdict.decision is decision
    assert verdict.effects.enforcement is Enforcement.OFF
    if decision is Decision.DENY and required:
        assert verdict.deciding.by == "[sandbox] required (p.toml:7)"
    if decision is Decision.CONFIRM:
        assert "without confinement" in verdict.deciding.reason


def test_layers_together_grant_the_least() -> None:
    user = parse_policy(POLICY.encode(), "user.toml", layer=Layer.USER)
    project = parse_policy(
        b'version = 1\n[sandbox]\nnetwork = false\nwrite = ["src", "/srv"]', "x.toml", layer=Layer.PROJECT
    )
    for layers in ((user, project), (user, tightening_only(project))):
        assert combine(layers).sandbox.write == ("src",)
        assert combine(layers).sandbox.network is False


def layered(user_rule: str, other: str, layer: Layer) -> Effects:
    """Return the effects of a command that a user's rule lets run, where another file speaks of [sandbox] too."""
    user = f"""version = 1
[tools]
bash = "confirm"
[sandbox]
network = false
write = ["."]
[[rule]]
id = "tests"
decision = "auto"
argv = ["pytest"]
{user_rule}
"""
    layers = [parse_policy(user.encode(), "user.toml", layer=Layer.USER)]
    found = parse_policy(f"version = 1\n{other}".encode(), "other.toml", layer=layer)
    layers.append(tightening_only(found) if layer is Layer.PROJECT else found)
    call = ToolCall(id="1", name="bash", arguments="{}")
    facets = (run("pytest", act=Act.RUNS),)
    action = Action(call=call, tool="bash", arguments={}, facets=facets, summary="", preview="", request=None)
    return evaluate(combine(layers), action).effects


RULES_OVER_FILES: list[tuple[str, str, Layer, tuple[str, ...], bool]] = [
    ('write = ["/srv", "~/x", "build"]\nnetwork = true', "", Layer.MANAGED, ("/srv", "~/x", "build"), True),
    (
        'write = ["/srv", "build"]\nnetwork = true',
        "[sandbox]\nnetwork = false",
        Layer.MANAGED,
        ("/srv", "build"),
        False,
    ),
    ('write = ["/srv", "~/x", "build"]\nnetwork = true', '[sandbox]\nwrite = ["."]', Layer.MANAGED, ("build",), True),
    ('write = ["/srv/a/"]\nnetwork = true', '[sandbox]\nwrite = ["/srv"]', Layer.MANAGED, ("/srv/a/",), True),
    ('write = ["."]', '[sandbox]\nwrite = ["src"]', Layer.PROJECT, (), False),
    (
        'write = ["src/gen"]\nnetwork = true',
        '[sandbox]\nwrite = ["src"]\nnetwork = false',
        Layer.PROJECT,
        ("src/gen",),
        False,
    ),
]


@all_rows(("rule", "other", "layer", "write", "network"), RULES_OVER_FILES)
def test_a_rule_grants_no_more_than_other_files_let_be_granted(
    rule: str, other: str, layer: Layer, write: tuple[str, ...], network: bool
) -> None:
    effects = layered(rule, other, layer)
    assert (effects.granted, effects.network) == (write, network)
