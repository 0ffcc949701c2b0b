"""What is asked about a `/tmp` that is the session's own, with files on the disk, and links in it that lead elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from judged_world import World, level, made_with_secrets, table_lines
from places import shell_word
from rows import all_rows

from harness.actions import Action, Decision, PathAccess
from harness.app.policy.judged_call import action_for
from harness.files.own_temporary import OwnTemporary
from harness.files.workspace import Workspace
from harness.grant_pattern import EVERY_FILE
from harness.policy.grant_offers import all_edits, any_command, offer_for
from harness.policy.loader import load_policy, parse_policy
from harness.policy.policy import Policy
from harness.policy.session_grants import session_grant, with_grants
from harness.policy.verdict import evaluate
from harness.policy.walls_here import Undo, WallsHere
from harness.record import replace
from harness.terminal.effects_lines import effects_lines

ROWS = [line.split(" ", 2) for _, line in table_lines("own_tmp.txt")]
POLICIES = {name: load_policy(name) for name in ("default", "workspace")}


class Place(NamedTuple):
    """A repository, and the folders for temporary files that its commands have."""

    world: World
    own: OwnTemporary

    def action(self, command: str, own: OwnTemporary | None) -> Action:
        names = {"ROOT": self.world.workspace.root, "VARTMP": self.own.places[1], "TMP": self.own.places[0]}
        for name, path in names.items():
            command = command.replace(name, shell_word(path))
        return action_for("bash", command.replace("\u23ce", "\n"), self.world.workspace, temporary=own)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with TemporaryDirectory(prefix="machine-", dir="/tmp") as machine:  # text that is split loosely needs plain names
        yield placed(tmp_path_factory, Path(machine))


def placed(tmp_path_factory: pytest.TempPathFactory, machine: Path) -> Place:
    world = made_with_secrets(tmp_path_factory.mktemp("home").resolve())
    folder = tmp_path_factory.mktemp("own").resolve()
    for name in ("tmp/shown", "tmp/loop", "vartmp"):
        (machine / name).mkdir(parents=True)
    (machine / "tmp/loop/of-the-machine").write_text("x\n")
    for name in ("d/a.c", "tree/a", "hidden/.env"):
        (folder / name).parent.mkdir()
        (folder / name).write_text("x\n")
    outside = machine / "outside"
    outside.write_text("x\n")
    environment = Path(world.workspace.root, ".env")
    links = {"env": environment, "up": outside, "loop": machine / "tmp/d", "tree/out": outside}
    for name, target in links.items():
        (folder / name).symlink_to(target)
    places = tuple(str(machine / name) for name in ("tmp", "vartmp"))
    return Place(world, OwnTemporary(places=places, folder=str(folder), visible_paths=(str(machine / "tmp/shown"),)))


@all_rows(("by_default", "in_walls", "command"), ROWS)
def test_policies_decide_as_listed(by_default: str, in_walls: str, command: str, place: Place) -> None:
    action = place.action(command, place.own)
    verdicts = [evaluate(policy, action) for policy in POLICIES.values()]
    assert [level(verdict) for verdict in verdicts] == [by_default, in_walls], verdicts[1].deciding.reason


@all_rows(("by_default", "in_walls", "command"), ROWS)
def test_mode_decides_like_the_policy(by_default: str, in_walls: str, command: str, place: Place) -> None:
    walls = WallsHere(root=place.world.workspace.root, confines=True)
    mode = with_grants(POLICIES["default"], [session_grant("walls", any_command("bash", walls))])
    said = level(evaluate(mode, place.action(command, place.own)))
    assert said == in_walls or {said, in_walls} == {"confirm", "deny"}, by_default


@all_rows(("by_default", "in_walls", "command"), ROWS)
def test_machine_tmp_is_asked_about_as_ever(by_default: str, in_walls: str, command: str, place: Place) -> None:
    """Without an own one, every row that names it needs a person. So does a command that asks to run without walls."""
    action = place.action(command, None)
    assert all(evaluate(policy, action).decision > Decision.AUTO for policy in POLICIES.values()), (
        by_default,
        in_walls,
    )
    assert not action.own_tmp


def test_command_judged_by_own_files_must_run_with_them(place: Place) -> None:
    """Also where a link in them leads into the workspace: on the machine, the same name may lead anywhere."""
    commands = (
        "cat TMP/x",
        "make > TMP/out",
        "cat TMP/env",
        "cd TMP && ls",
        "[ -f TMP/x ] && cat notes.txt",
        "cat TMP/../x",
    )
    needing = [c for c in commands if evaluate(POLICIES["default"], place.action(c, place.own)).effects.own_tmp]
    assert needing == list(commands[:5])
    assert not place.action("cat TMP/shown/x notes.txt", place.own).own_tmp


def test_question_and_log_name_it(place: Place) -> None:
    verdict = evaluate(POLICIES["default"], place.action("sort notes.txt > TMP/s", place.own))
    assert verdict.effects.opened == ()
    assert "walls: workspace, /tmp is the session's own ($TMPDIR)" in effects_lines(verdict)


def test_program_that_names_it_can_be_granted(place: Place) -> None:
    action, policy = place.action("python3 x.py > TMP/out", place.own), POLICIES["default"]
    walls = WallsHere(root=place.world.workspace.root, confines=True, undo=Undo())
    offer = offer_for(policy, action, evaluate(policy, action), walls)
    assert not isinstance(offer, str)
    granted = with_grants(policy, [session_grant(f"g{n}", p) for n, p in enumerate(offer.choices[-1].patterns)])
    assert evaluate(granted, action).decision is Decision.AUTO


def rule(keys: str) -> Policy:
    text = f'version = 1\n[tools]\nbash = "walls"\nreaders = true\n[[rule]]\nid = "r"\n{keys}\nreason = "no"\n'
    return parse_policy(text.encode(), "p.toml")


def test_strict_rule_about_such_a_path_decides(place: Place) -> None:
    policy = rule('decision = "deny"\naccess = ["read", "write"]\npath = ["kept*"]')
    said = [evaluate(policy, place.action(c, place.own)).decision for c in ("cat TMP/kept1", "make > TMP/kept2")]
    assert said == [Decision.DENY] * 2
    assert evaluate(policy, place.action("cat TMP/x", place.own)).decision is Decision.AUTO


ALL_FILES = replace(all_edits(), path=EVERY_FILE)
FILES = [
    ("read_file", "x", "d/a.c", Decision.AUTO, Decision.AUTO),
    ("read_file", "x", "loop/a.c", Decision.AUTO, Decision.AUTO),
    ("write_file", "new", "d/new", Decision.CONFIRM, Decision.AUTO),
    ("edit_file", "x", "d/a.c", Decision.CONFIRM, Decision.AUTO),
    ("read_file", "a link to a denied file", "env", Decision.DENY, Decision.DENY),
    ("write_file", "a link out", "up", Decision.CONFIRM, Decision.CONFIRM),
    ("read_file", "a link out", "tree/out", Decision.CONFIRM, Decision.CONFIRM),
    ("read_file", "a denied name", "hidden/.env", Decision.DENY, Decision.DENY),
    ("read_file", "of the machine", "shown/x", Decision.CONFIRM, Decision.CONFIRM),
]


@all_rows(("tool", "what", "name", "by_default", "in_walls"), FILES)
def test_file_tools_find_the_files_of_commands(
    tool: str, what: str, name: str, by_default: Decision, in_walls: Decision, place: Place
) -> None:
    action = action_for(tool, f"{place.own.places[0]}/{name}", place.world.workspace, temporary=place.own)
    assert [evaluate(policy, action).decision for policy in POLICIES.values()] == [by_default, in_walls], what
    modes = [
        with_grants(POLICIES["default"], [session_grant("edits", pattern)]) for pattern in (all_edits(), ALL_FILES)
    ]
    is_edit = tool != "read_file"
    assert [evaluate(mode, action).decision for mode in modes] == [in_walls if is_edit else by_default] * 2, what
    real = next(facet.real for facet in action.facets if isinstance(facet, PathAccess))
    assert real == place.own.on_disk(real)


def test_file_tools_see_the_machine_without_an_own_one(place: Place) -> None:
    action = action_for("read_file", f"{place.own.places[0]}/shown", place.world.workspace)
    assert evaluate(POLICIES["default"], action).decision is Decision.CONFIRM


def test_folder_that_is_missing_counts_as_empty(place: Place) -> None:
    own = OwnTemporary(places=place.own.places, folder="/dev/null/none")
    workspace = Workspace(place.world.workspace.root, place.world.workspace.home).seen_with(own)
    name = place.own.places[0]
    assert (workspace.exists(f"{name}/d"), workspace.expand(f"{name}/*", "/"), workspace.needs_temporary) == (
        False,
        (),
        True,
    )
