"""Protected places around a granted program, through the agent with real commands: told, answered, and what sleeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from grant_scene import LANDLOCK, Scene, bash, granting, held
from log_auditor import audited
from log_scene import forged
from rows import all_rows

from harness.actions import JsonValue
from harness.app.policy.judged_call import action_for
from harness.app.policy.replay import Replay
from harness.files.workspace import Workspace
from harness.gate.approval import Approval
from harness.gate.place_watch import PlacesQuestion
from harness.grant_pattern import GrantPattern, GrantScope
from harness.log.reader import read_log
from harness.log.verify import verify
from harness.log.vocabulary import Answer, PlacesAnswer
from harness.messages import ResultStatus
from harness.place_changes import PlaceChange
from harness.policy.grant_offers import Offer
from harness.policy.session_grants import Grant
from harness.record import replace
from harness.sandbox import Machine, enforces, hides_where_it_may_write, probe
from harness.session.kept_grants import KeptGrants
from harness.terminal.trace import event_line
from policies import ASKING

INSIDE = "this program, any words, inside walls"
POLICY = ASKING.encode()
HOSTILE = "open('.npmrc', 'a').write('b=2'); open('.envrc', 'w').write('x')"
"""Landlock alone, which cannot hold a protected place in a folder that may be written."""
pytestmark = pytest.mark.skipif(not enforces(probe()), reason="this machine cannot confine")


def python(code: str) -> str:
    return f"python3 -c {json.dumps(code)}"


class Asking:
    """Who is asked about protected places: what they were shown, and what they answer, one after another."""

    def __init__(self, *answers: PlacesAnswer) -> None:
        self.answers = list(answers)
        self.shown: list[str] = []

    def __call__(self, question: PlacesQuestion) -> PlacesAnswer:
        self.shown.append(", ".join(f"{one.description} {one.path}" for one in question.changed.changes))
        return self.answers.pop(0)


def scene(
    folder: Path,
    *commands: str,
    asking: Asking,
    scope: GrantScope = GrantScope.SESSION,
    kept: bool = False,
    machine: Machine = LANDLOCK,
) -> Scene:
    (folder / "w").mkdir(exist_ok=True)
    (folder / "w" / ".npmrc").write_text("a=1\n")
    return Scene(
        folder,
        *(bash(command) for command in commands),
        approver=granting(scope, INSIDE),
        policy=POLICY,
        ask_places=asking,
        kept=kept,
        machine=machine,
    )


def decisions(scene: Scene) -> list[object]:
    return [record["decision"] for record in scene.records("decision")]


@all_rows(
    "answer, npmrc, then, said, line",
    {
        "put back": (
            PlacesAnswer.PUT_BACK,
            "a=1\n",
            "auto",
            "The person put them back; do not change them again.",
            "~ put back: .npmrc, .envrc; grant-1 is awake again",
        ),
        "kept": (
            PlacesAnswer.KEEP,
            "a=1\nb=2",
            "auto",
            "The person keeps the changes.",
            "~ kept as they are; grant-1 is awake again",
        ),
        "revoked": (
            PlacesAnswer.REVOKE,
            "a=1\n",
            "confirm",
            "The person put them back; do not change them again.",
            "~ put back: .npmrc, .envrc; grant-1 is revoked",
        ),
        "nobody": (
            PlacesAnswer.NOBODY,
            "a=1\nb=2",
            "confirm",
            "Nobody has answered: such commands need approval again from now on.",
            "~ nobody answered: all stays as it is, and grant-1 sleeps; /grants answer grant-1",
        ),
    },
)
def test_changes_by_a_granted_program_are_reported_and_answered(
    tmp_path: Path, answer: PlacesAnswer, npmrc: str, then: str, said: str, line: str
) -> None:
    asking = Asking(answer)
    run = scene(tmp_path, "python3 -c 1", python(HOSTILE), "python3 -c 2", asking=asking)
    run.agent.run("go")
    assert decisions(run) == ["confirm", "auto", then]
    assert asking.shown == ["changed .npmrc, created .envrc"]
    assert (run.root / ".npmrc").read_text() == npmrc
    assert (run.root / ".envrc").exists() == (npmrc != "a=1\n")
    told = f"[protected places changed: .npmrc changed, .envrc created; other programs run or obey them. {said}]"
    assert str(run.records("outcome")[1]["content"]).endswith(told)
    (changed,), (answered,) = run.records("places_changed"), run.records("places_answered")
    assert (changed["call"], changed["grants"], changed["place_count"]) == (2, ["grant-1"], 2)
    assert (answered["answer"], answered["grants"]) == (answer.value, ["grant-1"])
    shown = event_line(changed)
    assert shown is not None
    assert shown.text == "! protected places changed: .npmrc changed, .envrc created; until you answer, grant-1 sleeps"
    ended = event_line(answered)
    assert ended is not None
    assert ended.text == line
    confinement = str(run.records("intent")[1]["confinement"])
    assert confinement.endswith("; 1 protected place compared when it ends")
    run.close()


PLANTED = (".git/hooks/post-merge", ".github/workflows/a.yml", ".harness/policy.toml")
PLANTING = "; ".join(
    f"os.makedirs(os.path.dirname('{place}'), exist_ok=True); open('{place}', 'w').write('x')" for place in PLANTED
)


@all_rows("bubblewrap", {"bubblewrap stands": None, "Landlock alone": ""})
@all_rows("rest", {"the program alone": "", "beside a part that is asked about still": " && echo x > ../there/made"})
def test_the_call_at_which_a_program_is_granted_is_watched(tmp_path: Path, bubblewrap: str | None, rest: str) -> None:
    asking = Asking(PlacesAnswer.PUT_BACK)
    machine = replace(probe(), bubblewrap=bubblewrap, no_namespaces=None if bubblewrap is None else "off")
    if bubblewrap is None and not hides_where_it_may_write(machine):
        pytest.skip("bubblewrap does not work here")
    (tmp_path / "there").mkdir()
    run = scene(tmp_path, f"{python(f'import os; {PLANTING}')}{rest}", asking=asking, machine=machine)
    run.agent.run("go")
    assert asking.shown == [", ".join(f"created {place}" for place in PLANTED)]
    assert not any((run.root / place).exists() for place in PLANTED)
    assert (tmp_path / "there/made").exists() == bool(rest)
    (intent,) = run.records("intent")
    effects = intent["effects"]
    assert isinstance(effects, dict)
    assert (effects["network"], effects["sockets"], effects["enforcement"]) == (False, False, "required")
    run.close()


def test_changes_by_a_plain_approval_are_put_back_where_nobody_is_asked(tmp_path: Path) -> None:
    """The call may change what its question named, and nothing else that other programs obey."""
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / ".npmrc").write_text("a=1\n")
    run = Scene(
        tmp_path,
        bash(python(HOSTILE)),
        bash(f"{python('open(chr(109), chr(119))')} && echo c=3 >> .npmrc"),
        approver=lambda _: lambda action, verdict: Approval(answer=Answer.YES, by="script"),
        policy=POLICY,
        machine=LANDLOCK,
    )
    run.agent.run("go")
    assert decisions(run) == ["confirm", "confirm"]
    assert (run.root / ".npmrc").read_text() == "a=1\nc=3\n"
    assert (run.root / "m").exists()
    assert not (run.root / ".envrc").exists()
    (changed,), (answered,) = run.records("places_changed"), run.records("places_answered")
    assert (changed["call"], changed["grants"], changed["place_count"]) == (1, [], 2)
    assert (answered["answer"], answered["by"], answered["put_back"]) == ("nobody", "nobody", [".npmrc", ".envrc"])
    assert "They were put back; do not change them again." in str(run.records("outcome")[0]["content"])
    run.close()


@all_rows("bubblewrap", {"bubblewrap stands": None, "Landlock alone": ""})
@all_rows(
    "code, shown, left",
    {
        "a name that a rule means": ("open('.env', 'w').write('A=1')", "created .env", []),
        "in a new folder": ("import os; os.mkdir('a'); open('a/.env', 'w').write('A=1')", "created a/.env", ["a"]),
        "other names": ("open('env', 'w').write('A=1')", "", ["env"]),
    },
)
def test_forbidden_file_made_by_a_granted_program_is_reported(
    tmp_path: Path, bubblewrap: str | None, code: str, shown: str, left: list[str]
) -> None:
    asking = Asking(PlacesAnswer.PUT_BACK)
    machine = replace(probe(), bubblewrap=bubblewrap, no_namespaces=None if bubblewrap is None else "off")
    run = scene(tmp_path, "python3 -c 1", python(code), asking=asking, machine=machine)
    run.agent.run("go")
    assert decisions(run) == ["confirm", "auto"]
    assert asking.shown == ([shown] if shown else [])
    assert sorted(path.name for path in run.root.iterdir()) == sorted([".npmrc", *left])
    run.close()


@all_rows(
    "code, shown",
    {
        "appended to": ("open('.env', 'a').write('B=2')", "changed .env"),
        "emptied": ("open('.env', 'w').close()", "changed .env"),
        "moved away": ("import os; os.rename('.env', 'env')", "removed .env"),
        "another put in its place": (
            "import os; open('x', 'w').write('A=1'); os.chmod('x', 0o777); os.replace('x', '.env')",
            "changed .env",
        ),
        "a link put in its place": (
            "import os; os.symlink('a', 'x'); os.replace('x', '.env')",
            "replaced by a link .env",
        ),
        "by another name of it": ("import os; os.link('.env', 'x'); open('x', 'a').write('B=2')", "changed .env"),
        "in the time stamps of before": (
            "import os; s = os.stat('.env'); open('.env', 'w').write('A=2\\n'); os.utime('.env', ns=(0, s.st_mtime_ns))",
            "changed .env",
        ),
        "by a child of it": (
            "import subprocess; subprocess.run(['sh', '-c', 'echo B=2 >> .env'])",
            "changed .env",
        ),
        "beside a new one": (
            "import os; open('.env', 'a').write('B=2'); os.mkdir('a'); open('a/.env', 'w').write('A=1')",
            "changed .env, created a/.env",
        ),
    },
)
def test_write_past_the_walls_is_reported_and_suspends_the_grant(tmp_path: Path, code: str, shown: str) -> None:
    """A rule denies it, Landlock cannot take it out of the workspace, and the offer named it."""
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / ".env").write_text("A=1\n")
    asking = Asking(PlacesAnswer.NOBODY, PlacesAnswer.PUT_BACK)
    commands = "python3 -c 1", "python3 -c 2", python(code), "python3 -c 3"
    run = scene(tmp_path, *commands, asking=asking, machine=LANDLOCK)
    session = run.agent.start()
    run.agent.run("go", session)
    (grant,) = run.agent.gate.grants.grants
    assert grant.pattern.exposes == (".env",)
    assert decisions(run) == ["confirm", "auto", "auto", "confirm"]
    assert asking.shown == [shown]
    run.agent.gate.places.ask_again(grant)
    assert (run.root / ".env").read_text() == "A=1\n"
    run.agent.end(session)
    run.close()


def test_suspended_kept_grant_waits_for_an_answer_in_any_session(tmp_path: Path) -> None:
    first = scene(
        tmp_path,
        "python3 -c 1",
        python(HOSTILE),
        asking=Asking(PlacesAnswer.NOBODY),
        scope=GrantScope.WORKSPACE,
        kept=True,
    )
    first.agent.run("go")
    first.close()

    def later(*answers: PlacesAnswer) -> Scene:
        return Scene(
            tmp_path,
            bash("python3 -c 2"),
            approver=granting(GrantScope.SESSION, "none of them"),
            policy=POLICY,
            ask_places=Asking(*answers),
            kept=True,
            machine=LANDLOCK,
        )

    second = later(PlacesAnswer.NOBODY, PlacesAnswer.PUT_BACK)
    session = second.agent.start()
    (grant,) = second.agent.gate.grants.grants
    assert [one.path for one in grant.changed] == [".npmrc", ".envrc"]
    second.agent.run("go", session)
    assert decisions(second)[-1] == "confirm"
    second.agent.gate.places.ask_again(grant)
    assert [one.changed != () for one in second.agent.gate.grants.grants] == [True]
    second.agent.gate.places.ask_again(grant)
    assert (tmp_path / "w" / ".npmrc").read_text() == "a=1\n"
    assert [one.changed for one in second.agent.gate.grants.grants] == [()]
    second.close()

    third = later()
    third.agent.run("go")
    assert decisions(third)[-1] == "auto"
    third.close()


@all_rows("scope", {"session": GrantScope.SESSION, "workspace": GrantScope.WORKSPACE})
def test_suspended_grant_prevents_new_program_grants_and_can_be_ended(tmp_path: Path, scope: GrantScope) -> None:
    """Granted anew it would be awake, and nobody would have answered for what it changed."""
    asking = Asking(PlacesAnswer.NOBODY, PlacesAnswer.KEEP, PlacesAnswer.REVOKE)
    first = "python3 -c 1", python(HOSTILE), "python3 -c 2", "node -e 1"
    run = scene(tmp_path, *first, asking=asking, scope=scope, kept=True)
    session = run.agent.start()
    run.agent.run("go", session)
    assert decisions(run) == ["confirm", "auto", "confirm", "confirm"]
    (grant,) = run.agent.gate.grants.grants
    assert [len(one.changed) for one in run.kept.read().grants] == [2] * (scope is GrantScope.WORKSPACE)
    assert run.agent.gate.grants.narrow(grant, ["-c"]) == f"{grant.id} sleeps: /grants answer {grant.id} comes first"
    action = action_for("bash", "python3 a.py", Workspace(str(run.root), None))
    offer = run.agent.gate.grants.offer(action, run.agent.gate.judge(action))
    assert isinstance(offer, Offer)
    assert [one.name for one in offer.choices] == ["exactly this"]
    assert offer.no_program == f"{grant.id} sleeps: /grants answer {grant.id} comes first"
    run.agent.gate.places.ask_again(grant)
    assert run.agent.do(session, "bash", {"command": "python3 -c 4"}).status is ResultStatus.OK
    assert (
        run.agent.do(session, "bash", {"command": python("open('.envrc', 'w').write('y')")}).status is ResultStatus.OK
    )
    assert decisions(run)[-2:] == ["auto", "auto"]
    assert not run.agent.gate.grants.grants
    assert run.kept.read().grants == ()
    run.agent.end(session)
    run.close()


def test_grant_kept_again_elsewhere_stays_suspended(tmp_path: Path) -> None:
    kept = KeptGrants(str(tmp_path), "w", "/w")
    pattern = GrantPattern(tools=("bash",), argv=("make",), folder="/w", write=(".",), program=True)
    narrower = replace(pattern, argv=("make", "x"))
    first = kept.keep(pattern)
    assert isinstance(first, Grant)
    change = PlaceChange(path=".envrc", before=None, after=None, is_kept=True)
    assert kept.sleep(first.id, (change,)) == ""
    again = kept.keep(pattern, 7)
    assert isinstance(again, Grant)
    assert (again.changed, kept.read().grants) == ((change,), (again,))
    assert kept.sleep(first.id, ()) == kept.revoke(first.id) == ""
    anew = kept.keep(pattern)
    assert isinstance(anew, Grant)
    assert anew.changed == ()
    assert isinstance(kept.keep(narrower), Grant)


def test_grant_end_that_cannot_be_saved_applies_to_the_session_with_a_notice(tmp_path: Path) -> None:
    def revoking(_: PlacesQuestion) -> PlacesAnswer:
        path = Path(run.kept.path)
        path.rename(f"{path}.before")
        path.mkdir()
        return PlacesAnswer.REVOKE

    commands = [bash(one) for one in ("python3 -c 1", python(HOSTILE), "python3 -c 2")]
    run = Scene(
        tmp_path,
        *commands,
        approver=granting(GrantScope.WORKSPACE, INSIDE),
        policy=POLICY,
        ask_places=revoking,
        kept=True,
    )
    run.agent.run("go")
    assert decisions(run) == ["confirm", "auto", "confirm"]
    name = str(run.records("grant")[0]["grant"])
    ended = run.records("grant")[1]
    assert (ended["grant"], ended["change"]) == (name, "revoked")
    line = event_line(ended)
    assert line is not None
    assert line.text.startswith(f"~ {name} is revoked for this session only; it is kept on: {run.kept.path}: ")
    run.close()


def test_grant_is_not_narrowed_to_an_existing_one(tmp_path: Path) -> None:
    """That one may sleep: what is narrowed would wake it."""
    pattern = GrantPattern(
        tools=("bash",), argv=("python3", "-c"), write=(".",), folder=str(tmp_path / "w"), program=True
    )
    held = KeptGrants(str(tmp_path / "state" / "grants"), "w", str(tmp_path / "w")).keep(pattern)
    assert isinstance(held, Grant)
    run = scene(tmp_path, "python3 x.py", asking=Asking(), scope=GrantScope.WORKSPACE, kept=True)
    session = run.agent.start()
    run.agent.run("go", session)
    _, wide = run.agent.gate.grants.grants
    assert run.agent.gate.grants.narrow(wide, ["-c"]) == f"{held.id} is that already: revoke {wide.id}"
    less = run.agent.gate.grants.narrow(wide, ["-m"])
    assert isinstance(less, Grant)
    assert run.agent.gate.grants.grants == run.kept.read().grants == (held, less)
    run.agent.end(session)
    run.close()


def test_grant_file_with_invalid_places_is_rejected(tmp_path: Path) -> None:
    kept = KeptGrants(str(tmp_path), "w", "/w")
    place = {"after": None, "before": None, "how": "created", "is_kept": True, "path": ".envrc"}

    odd: list[object] = ["x", [1], [{}], [{**place, "path": "../x"}], [{**place, "path": "/x"}], [{**place, "more": 1}]]

    def problem(places: object) -> str:
        line = json.dumps({"workspace": "/w", "asleep": "kept-1", "places": places})
        Path(kept.path).write_text(f"{line}\n")
        Path(kept.path).chmod(0o600)
        return kept.read().problem

    assert problem([place]) == ""
    for wrong in odd:
        assert "not understood" in problem(wrong), wrong


def test_change_hidden_among_many_new_files_is_asked_about(tmp_path: Path) -> None:
    flood = "import os; os.makedirs('.buildkite'); [open(f'.buildkite/{n}', 'w').close() for n in range(8100)]"
    hidden = f"{flood}; os.makedirs('.git/hooks'); open('.git/hooks/post-commit', 'w').write('x')"
    asking = Asking(PlacesAnswer.PUT_BACK, PlacesAnswer.PUT_BACK)
    run = scene(tmp_path, "python3 -c 1", python(hidden), asking=asking)
    run.agent.run("go")
    assert asking.shown[0].count("created .buildkite/") > 7_900
    assert asking.shown[1].endswith("created .git/hooks/post-commit")
    assert sorted(path.name for path in run.root.iterdir()) == [".npmrc"]
    run.close()


@pytest.mark.forges_logs
@all_rows(
    "at, changes, problem",
    {
        "what sleeps decides": ("places_answered", {"answer": "nobody"}, "run by grant-1, which sleeps"),
        "an answer for what is awake": ("places_answered", {"grants": ["grant-7"]}, "grant-7, which does not sleep"),
        "the sleep of what is not granted": (
            "places_changed",
            {"grants": ["grant-7"]},
            "grant-7 sleep, which is not in force",
        ),
        "a change by what does not run": ("places_changed", {"call": 1}, "call 1 changed, which is not running"),
    },
)
def test_log_with_a_decision_by_a_suspended_grant_is_broken(
    tmp_path: Path, at: str, changes: dict[str, JsonValue], problem: str
) -> None:
    run = scene(tmp_path, "python3 -c 1", python(HOSTILE), "python3 -c 2", asking=Asking(PlacesAnswer.KEEP))
    run.agent.run("go")
    run.close()
    chained = ("seq", "prev", "kind", "v")
    steps = [
        (
            str(one["kind"]),
            {name: value for name, value in one.items() if name not in chained}
            | (changes if one["kind"] == at else {}),
        )
        for one in read_log(run.path)
    ]
    path = tmp_path / "forged.jsonl"
    path.write_bytes(b"".join(forged(steps)))
    assert problem in str(verify(str(path)).problem)
    assert bool(audited(str(path)).breaches) == (at == "places_answered")


@all_rows("answer, then", {"awake again": (PlacesAnswer.KEEP, "auto"), "asleep": (PlacesAnswer.NOBODY, "confirm")})
def test_suspended_grant_stays_suspended_in_a_replay(tmp_path: Path, answer: PlacesAnswer, then: str) -> None:
    run = scene(tmp_path, "python3 -c 1", python(HOSTILE), "python3 -c 2", asking=Asking(answer))
    run.agent.run("go")
    run.close()
    replay = Replay(lambda _log, _session: held(POLICY), {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "s")})
    again = [one.new.word for one in replay.calls(run.path) if one.new is not None]
    assert again == ["confirm", "auto", then]


@all_rows("holds", {"bubblewrap stands": True, "Landlock alone": False})
def test_bubblewrap_protects_the_places_from_the_start(tmp_path: Path, holds: bool) -> None:
    machine = replace(probe(), bubblewrap=None if holds else "", no_namespaces=None if holds else "off")
    if holds and not hides_where_it_may_write(machine):
        pytest.skip("bubblewrap does not work here")
    (tmp_path / "w").mkdir()
    if holds:  # what has to be hidden is what bubblewrap is taken for
        (tmp_path / "w" / ".env").write_text("KEY=1")
    code = "import os; os.rename('.npmrc', 'x')"
    asking = Asking(PlacesAnswer.PUT_BACK)
    run = scene(
        tmp_path, "python3 -c 1", python(code), python("open('made', 'w').write('x')"), asking=asking, machine=machine
    )
    run.agent.run("go")
    assert decisions(run) == ["confirm", "auto", "auto"]
    assert asking.shown == ([] if holds else ["removed .npmrc"])
    assert ("Device or resource busy" in str(run.records("outcome")[1]["content"])) == holds
    assert (run.root / ".npmrc").read_text() == "a=1\n"
    assert (run.root / "made").read_text() == "x"
    run.close()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"put_back": ["AGENTS.md"]}, "~ nobody is there to ask; put back: AGENTS.md"),
        ({}, "~ nobody answered: all stays as it is"),
        (
            {"grants": ["grant-1"]},
            "~ nobody answered: all stays as it is, and grant-1 sleeps; /grants answer grant-1",
        ),
    ],
)
def test_line_for_places_that_nobody_was_asked_about(fields: dict[str, JsonValue], text: str) -> None:
    shown = event_line({"kind": "places_answered", "answer": "nobody", **fields})
    assert shown is not None
    assert shown.text == text
