"""Every wide grant that is ever offered against every hostile command: one by one, in pairs, and all of them together.

A hostile command may run unasked by such a grant only where it gets no more than the grant's walls, whatever its words: the
kernel must hold it (`required`), it writes what the grant says and its temporary folder, reaches no Unix socket, the network
only if the grant says so, reads nothing that the policy hides, and nothing in it is known to destroy. A person who granted
`python3 *` granted as much: code can do whatever the walls let through. And each such command is named, under what it does, in
hostile_inside_walls.txt: somebody has looked at it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import pytest
from judged_world import Row, World, harmless, hostile, made_with_secrets, table_lines
from places import ROOT, SUPPORT
from recorded_tasks import tasks
from rows import all_rows

from harness.actions import (
    Access,
    Action,
    Command,
    Decision,
    Effects,
    Enforcement,
    Opaque,
    PathAccess,
    Place,
    Unconfined,
)
from harness.app.policy.judged_call import action_for
from harness.grant_pattern import GrantPattern, GrantScope
from harness.policy.destruction import destroys
from harness.policy.effects import sandbox_of
from harness.policy.grant_offers import command_of, offer_for
from harness.policy.policy import Policy
from harness.policy.rules import Origin
from harness.policy.session_grants import SESSION_GRANTS, Grant, with_grants
from harness.policy.verdict import FacetVerdict, Source, Verdict, evaluate
from harness.policy.walls_fit import walls_decide
from harness.policy.walls_here import WallsHere
from harness.record import replace

HOSTILE = hostile()
LOOKED_AT = {line.replace("\u23ce", "\n") for _, line in table_lines("hostile_inside_walls.txt")}
"""Hostile commands that run unasked by a wide grant, held by its walls."""


class Offered(NamedTuple):
    """A repository, and what is offered in it at all the questions that anybody may be asked."""

    world: World
    programs: tuple[Grant, ...]
    """With any words, inside walls."""
    exact: tuple[Grant, ...]
    """Word for word, of what is not hostile itself."""

    def covering(self, action: Action) -> list[Grant]:
        """Return the programs that cover a part of an action: no other makes a difference to it."""
        commands = [command for facet in action.facets if (command := command_of(facet)) is not None]
        heads = {words[0] for command in commands for words in (command.argv, *command.run_by)}
        near = [grant for grant in self.programs if grant.pattern.argv[0] in heads]
        return [grant for grant in near if any(grant.rule.covers(action, facet) for facet in action.facets)]


@pytest.fixture(scope="module")
def offered(tmp_path_factory: pytest.TempPathFactory) -> Offered:
    world = made_with_secrets(tmp_path_factory.mktemp("granting-home").resolve())
    everyday = [line.replace("\u23ce", "\n") for _, line in table_lines("granted_commands.txt")]
    everyday += [what for task in tasks() for tool, what in task.calls if tool == "bash"]
    everyday += [row.command for row in harmless()]
    programs: dict[GrantPattern, None] = {}
    exact: dict[GrantPattern, None] = {}
    for command in dict.fromkeys([*everyday, *(row.command for row in HOSTILE)]):
        for pattern in patterns_at(world, command):
            if pattern.program and not pattern.argv:
                continue  # any command, as in walls_rules.txt
            if pattern.program:
                programs[pattern] = None
            elif command in everyday:
                exact[pattern] = None
    return Offered(world, grants_of(programs), grants_of(exact))


def patterns_at(world: World, command: str) -> Iterator[GrantPattern]:
    """Yield what is offered where the default policy asks about a command, here where walls hold."""
    action, policy = world.action(command), world.policies["default"]
    walls = WallsHere(root=world.workspace.root, confines=True)
    offer = offer_for(policy, action, evaluate(policy, action), walls)
    for choice in () if isinstance(offer, str) else offer.choices:
        yield from choice.patterns


def grants_of(patterns: dict[GrantPattern, None]) -> tuple[Grant, ...]:
    origin = Origin(file=SESSION_GRANTS, line=0)
    return tuple(
        Grant(id=f"grant-{number}", scope=GrantScope.SESSION, pattern=pattern, origin=origin)
        for number, pattern in enumerate(patterns)
    )


def beyond_walls(policy: Policy, action: Action, verdict: Verdict) -> str:
    """Return what a call that runs unasked by wide grants may do and their walls do not hold, or nothing."""
    walls = {rule for facet in verdict.facets for rule in facet.rules if rule.walled}
    effects: Effects = verdict.effects
    if effects.write == () and not effects.reaches:
        return ""  # it only reads, and of other places only the system
    paths = [facet for facet in action.all_facets() if isinstance(facet, PathAccess)]
    said = {
        "no grant lets it run": not walls,
        "the kernel need not hold it": effects.enforcement is not Enforcement.REQUIRED,
        "it reaches Unix sockets": effects.sockets,
        "it has the network": effects.network and not all(rule.opens.network for rule in walls),
        "it writes more than is granted": any(not set(effects.granted) <= set(rule.opens.write) for rule in walls),
        "it writes what it names": bool(effects.named_paths or effects.entries),
        "it reads what is hidden": set(effects.hide) != set(sandbox_of(policy.sandbox_tables).hide),
        "it names a place outside": any(
            path.place not in (Place.INSIDE, Place.ROOT, Place.TEMPORARY)
            for path in paths
            if not is_left_to_walls(action, path)
        ),
        "it names what is protected or denied": any(
            facet.decision is not Decision.AUTO or facet.source in (Source.BUILT_IN, Source.OPAQUE)
            for facet in verdict.facets
        ),
        "it destroys": bool(destroys(action)),
    }
    return next((words for words, is_so in said.items() if is_so), "")


def is_left_to_walls(action: Action, path: PathAccess) -> bool:
    """Return whether walls alone decide on a path: a place of the system that is read, or a piece of code."""
    parts = [part for part in action.facets if isinstance(part, Command | Opaque)]
    return any(walls_decide(part, path) for part in parts if any(path is each for each in part.paths))


def by_wide_grants(offered: Offered, row: Row) -> Iterator[tuple[Sequence[Grant], Verdict]]:
    """Yield the verdicts on a row with each grant that bears on it, each two of them, all without the network, and all."""
    action, policy = offered.world.action(row.command), offered.world.policies[row.policy]
    covering = offered.covering(action)
    inside = [grant for grant in covering if not grant.pattern.network]
    for grants in (*([one] for one in covering), *combinations(covering, 2), inside, covering):
        yield grants, evaluate(with_grants(policy, grants), action)


def test_wide_grant_gives_hostile_commands_no_more_than_walls(offered: Offered) -> None:
    """The row of another decision than the default's is never lifted; what runs is held, and is one that was looked at."""
    found: dict[str, str] = {}
    for row in HOSTILE:
        action, policy = offered.world.action(row.command), offered.world.policies[row.policy]
        before = evaluate(policy, action)
        forbids = any(facet.decision > Decision.CONFIRM and not is_hidden_below(facet) for facet in before.facets)
        for grants, verdict in by_wide_grants(offered, row):
            if verdict.decision is Decision.AUTO and row.decision is not Decision.AUTO:
                by = " and ".join(grant.pattern.text for grant in grants)
                too_much = "a rule forbids it" if forbids else beyond_walls(policy, action, verdict)
                found[row.command] = found.get(row.command) or (too_much and f"{too_much}, by {by}")
    assert {command: problem for command, problem in found.items() if problem} == {}
    assert (sorted(found.keys() - LOOKED_AT), sorted(LOOKED_AT - found.keys())) == ([], [])


OTHERS = {
    "everyday": Path(SUPPORT, "scripts_everyday.txt"),
    "changing": Path(SUPPORT, "scripts_that_change.txt"),
    "writing": Path(ROOT, "tests", "policy", "writing_forms.txt"),
    "second wall": Path(SUPPORT, "second_wall_attempts.txt"),
}


@all_rows("table", OTHERS.values(), ids=OTHERS)
def test_wide_grants_give_other_tables_no_more_than_walls(table: Path, offered: Offered) -> None:
    """Attempts at walls, everything that writes, and scripts as agents write them, in a repository that is not theirs."""
    policy = offered.world.policies["default"]
    inside = [grant for grant in offered.programs if not grant.pattern.network]
    policies = [with_grants(policy, grants) for grants in (inside, offered.programs)]
    held, beyond = 0, []
    for line in table.read_text().splitlines():
        command = line.partition(";;")[0].removeprefix("sh - ").replace("\u23ce", "\n").replace("%", "src/app.py")
        action = offered.world.action(command)
        if not line or line[0] in "#=" or evaluate(policy, action).decision is Decision.AUTO:
            continue
        for verdict in (evaluate(granted, action) for granted in policies):
            problem = verdict.decision is Decision.AUTO and beyond_walls(policy, action, verdict)
            held += verdict.decision is Decision.AUTO
            beyond += [f"{command}: {problem}"] if problem else []
    assert (beyond, held > 10) == ([], True)


def test_other_grants_in_a_line_do_not_widen_the_walls_of_a_program(offered: Offered) -> None:
    """`pytest -x && git push`, where the first was granted inside walls, and the second word for word with the network."""
    policy, beside = offered.world.policies["default"], [grant for grant in offered.exact if grant.pattern.argv]
    programs = [grant for grant in offered.programs if grant.pattern.argv in (("pytest",), ("make",), ("python3",), ())]
    beyond = []
    for program in programs:
        for other in beside:
            line = f"{shlex.join(program.pattern.argv or ('make',))} a && {shlex.join(other.pattern.argv)}"
            action = offered.world.action(line)
            verdict = evaluate(with_grants(policy, (program, other)), action)
            if verdict.decision is Decision.AUTO and (problem := beyond_walls(policy, action, verdict)):
                beyond.append(f"{line}: {problem}")
    assert (beyond, len(programs) * len(beside) > 100) == ([], True)


def is_fixed(facet: FacetVerdict) -> bool:
    """Say whether no grant may lift this: all but a default, and text that an interpreter is given, which walls can hold."""
    given = isinstance(facet.facet, Opaque) and facet.facet.given_to is not None and facet.facet.is_whole
    lifts = facet.source is Source.DEFAULT or (facet.source is Source.OPAQUE and given)
    return facet.decision is not Decision.AUTO and not lifts


def of_walls(action: Action, facet: FacetVerdict) -> bool:
    return isinstance(facet.facet, PathAccess) and (is_left_to_walls(action, facet.facet) or is_hidden_below(facet))


def is_hidden_below(facet: FacetVerdict) -> bool:
    """Return whether rules are only about files below a folder, which walls hide and protect."""
    path, files = facet.facet, [rule.files for rule in facet.rules]
    return (
        isinstance(path, PathAccess) and bool(files) and all(f is not None and f.hits_only_below(path) for f in files)
    )


def test_only_a_default_is_lifted_by_all_that_is_ever_offered(offered: Offered) -> None:
    """What a rule asks about, denies or blocks, what is built in, what is opaque, and what destroys, stays as it is."""
    inside = [grant for grant in offered.programs if not grant.pattern.network]
    all_granted = (inside, offered.exact, (*inside, *offered.exact), (*offered.programs, *offered.exact))
    lifted, changed = 0, []
    for granted in all_granted:
        policies = {name: (policy, with_grants(policy, granted)) for name, policy in offered.world.policies.items()}
        for row in HOSTILE:
            action, (policy, wider) = offered.world.action(row.command), policies[row.policy]
            before, after = evaluate(policy, action), evaluate(wider, action)
            if after.decision is Decision.AUTO and before.decision is not Decision.AUTO:
                lifted += 1
                changed += (
                    [row.command]
                    if destroys(action)
                    or any(is_fixed(facet) for facet in before.facets if not of_walls(action, facet))
                    else []
                )
    assert (changed, lifted > 100) == ([], True)


def test_grants_never_allow_a_command_without_walls(offered: Offered) -> None:
    inside = [grant for grant in offered.programs if not grant.pattern.network]
    granted = with_grants(offered.world.policies["default"], inside)
    for command in ("python3 a.py", "make test", "pytest -q"):
        action = offered.world.action(command)
        unconfined = replace(action, facets=(*action.facets, Unconfined(justification="it needs to")))
        assert [evaluate(granted, one).decision for one in (action, unconfined)] == [Decision.AUTO, Decision.CONFIRM]


def test_a_table_proves_something_only_with_many_grants(offered: Offered) -> None:
    assert (len(offered.programs) > 150, len(offered.exact) > 50) == (True, True)


EDITED = ["src/app.py", "README.md", "docs/a file.md", "new.py"]
NEVER_BY_EDITS = [
    ".env", "link-to-env", "secrets/../.env", "../other/file", "links/out/file", ".git/hooks/pre-commit", ".git/config",
    ".github/workflows/ci.yml", ".envrc", ".npmrc", ".vscode/settings.json", ".idea/x.xml", "Makefile", "package.json",
    "pyproject.toml", "conftest.py", "tests/conftest.py", "~/.bashrc", "/etc/hosts", "/tmp/x", ".",
]  # fmt: skip


@all_rows("path", NEVER_BY_EDITS)
@all_rows("tool", ["write_file", "edit_file"])
def test_edit_grants_never_cover_protected_files(tool: str, path: str, offered: Offered) -> None:
    world = offered.world
    policy, walls = world.policies["default"], WallsHere(root=world.workspace.root, confines=True)
    patterns: dict[GrantPattern, None] = {}
    for edited in EDITED:
        action = action_for("edit_file", edited, world.workspace)
        offer = offer_for(policy, action, evaluate(policy, action), walls)
        assert not isinstance(offer, str)
        patterns |= {pattern: None for choice in offer.choices for pattern in choice.patterns}
    assert any(Access.WRITE in pattern.access for pattern in patterns)
    granted = with_grants(policy, (*grants_of(patterns), *offered.programs))
    assert evaluate(granted, action_for(tool, path, world.workspace)).decision is not Decision.AUTO


def test_commands_held_by_walls_are_in_the_hostile_table() -> None:
    assert {row.command for row in HOSTILE} >= LOOKED_AT
