"""Wide grants through the agent, with real commands: a program inside its walls, all edits, less of a grant, and their ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from agent_scene import reply
from grant_scene import LANDLOCK, Scene, bash, granting
from rows import all_rows

from harness.actions import Access, Action, Decision
from harness.app.policy.judged_call import action_for
from harness.files.workspace import Workspace
from harness.gate.approval import Approval, Approver
from harness.gate.place_watch import PlacesQuestion
from harness.grant_pattern import GrantPattern, GrantScope
from harness.log.vocabulary import Answer, PlacesAnswer
from harness.loop.agent import Agent
from harness.messages import ModelResponse, StopReason, ToolCall
from harness.policy.grant_offers import Offer
from harness.policy.session_grants import narrowed
from harness.policy.verdict import Verdict
from harness.record import replace
from harness.sandbox import Machine, enforces, hides_where_it_may_write, probe
from harness.session.kept_grants import KeptGrants
from policies import ASKING

INSIDE = "this program, any words, inside walls"
KNOWN = "any command, inside walls"
POLICY = ASKING.encode()
ONLY_READING = POLICY.replace(b'["read", "write"]', b'["read"]')
NO = Approval(answer=Answer.NO, by="script")
needs_walls = pytest.mark.skipif(not enforces(probe()), reason="this machine cannot confine")


def decisions(scene: Scene) -> list[object]:
    return [record["decision"] for record in scene.records("decision")]


def contents(scene: Scene) -> list[str]:
    return [str(record["content"]) for record in scene.records("outcome")]


def python(code: str) -> str:
    return f"python3 -c {json.dumps(code)}"


@needs_walls
def test_a_granted_program_runs_with_other_words_and_is_held_to_its_walls(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    scene = Scene(
        tmp_path,
        bash("python3 -c 1"),
        bash(python("open('made', 'w').write('x')")),
        bash(python(f"open('{outside}', 'w').write('x')")),
        bash(python("import socket; socket.create_connection(('127.0.0.1', 9))")),
        bash(python("import socket; socket.socket(socket.AF_UNIX).connect('/nowhere')")),
        bash("python3 - <<'E'\nprint(6 * 7)\nE"),
        approver=granting(GrantScope.SESSION, INSIDE),
        policy=POLICY,
        machine=LANDLOCK,  # with namespaces, /tmp is its own
    )
    assert scene.agent.run("go").stop is StopReason.COMPLETED
    assert decisions(scene) == ["confirm", "auto", "auto", "auto", "auto", "auto"]
    assert (scene.root / "made").read_text() == "x"
    assert not outside.exists()
    _, _, wrote, reached, socket, given = contents(scene)
    assert given.startswith("42")
    assert "PermissionError" in wrote or "Read-only" in wrote
    assert "it has no network" in reached
    assert "Connection refused" not in reached
    assert "PermissionError" in socket
    effects = [record["effects"] for record in scene.records("intent")][1]
    assert isinstance(effects, dict)
    assert (effects["network"], effects["sockets"], effects["enforcement"]) == (False, False, "required")
    scene.close()


@needs_walls
@all_rows(
    ("bubblewrap", "offered_before", "expected"),
    [
        ("", False, ["confirm", "confirm"]),  # .env came after the grant: nobody was told that it could be read
        ("", True, ["confirm", "auto"]),  # it was there, and the offer named it
        (None, True, ["confirm", "auto"]),
    ],
)
def test_denied_file_is_hidden_or_named_in_the_grant(
    tmp_path: Path, bubblewrap: str | None, offered_before: bool, expected: list[str]
) -> None:
    machine = replace(probe(), bubblewrap=bubblewrap, no_namespaces=None if bubblewrap is None else "off")
    if bubblewrap is None and not hides_where_it_may_write(machine):
        pytest.skip("bubblewrap does not work here")
    code = "import os; print(os.path.exists('.env') and open('.env').read())"
    first = "python3 -c 1" if offered_before else python("open('.en' + 'v', 'w').write('KEY=1')")
    (tmp_path / "w").mkdir()
    if offered_before:
        (tmp_path / "w" / ".env").write_text("KEY=1")
    scene = Scene(
        tmp_path,
        bash(first),
        bash(python(code)),
        approver=granting(GrantScope.SESSION, INSIDE),
        policy=ONLY_READING,
        machine=machine,
    )
    scene.agent.run("go")
    assert decisions(scene) == expected
    assert ("KEY=1" in contents(scene)[-1]) == (bubblewrap == "")
    (grant,) = scene.records("grant")[:1]
    assert grant["exposes"] == ([".env"] if bubblewrap == "" and offered_before else [])
    scene.close()


@needs_walls
def test_denied_file_appearing_during_a_question_does_not_end_the_run(tmp_path: Path) -> None:
    """What was shown is granted, and the walls are looked at again before each call: it was not named, so it is asked about,
    and the call at which it was granted does not run without them."""
    (tmp_path / "w").mkdir()
    env = tmp_path / "w" / ".env"

    def late(agent: Agent) -> Approver:
        def approver(action: Action, verdict: Verdict) -> Approval:
            offer = agent.gate.grants.offer(action, verdict)
            env.write_text("KEY=1")
            assert agent.gate.grants.offer(action, verdict) is offer
            return granting(GrantScope.SESSION, INSIDE)(agent)(action, verdict)

        return approver

    scene = Scene(
        tmp_path, bash("python3 -c 1"), bash("python3 -c 2"), approver=late, policy=POLICY,
        machine=LANDLOCK,
    )  # fmt: skip
    assert scene.agent.run("go").stop is StopReason.COMPLETED
    assert decisions(scene) == ["confirm", "confirm"]
    assert [record["status"] for record in scene.records("outcome")] == ["denied", "ok"]
    assert "cannot hold this call any more" in contents(scene)[0]
    scene.close()


@needs_walls
def test_explanation_agrees_with_the_decision(tmp_path: Path) -> None:
    """Where the walls do not hold a grant any more, an explanation says that it is asked about."""
    scene = Scene(
        tmp_path, bash("python3 -c 1"), approver=granting(GrantScope.SESSION, INSIDE), policy=POLICY,
        machine=LANDLOCK,
    )  # fmt: skip
    session = scene.agent.start()
    scene.agent.run("go", session)
    gate, action = scene.agent.gate, action_for("bash", "python3 -c 2", Workspace(str(scene.root), None))
    assert gate.judge(action).decision is Decision.AUTO
    (scene.root / ".env").write_text("KEY=1")
    assert gate.judge(action).decision is Decision.CONFIRM
    assert len(scene.records("decision")) == 1
    scene.agent.end(session)
    scene.close()


@needs_walls
def test_part_of_a_line_is_granted_only_if_all_its_files_were_named(tmp_path: Path) -> None:
    scene = Scene(
        tmp_path, bash("python3 -c 1"), approver=granting(GrantScope.SESSION, INSIDE), policy=POLICY,
        machine=LANDLOCK,
    )  # fmt: skip
    session = scene.agent.start()
    scene.agent.run("go", session)
    gate, action = scene.agent.gate, action_for("bash", "python3 a.py; make", Workspace(str(scene.root), None))
    before = gate.judge(action)
    (scene.root / ".env").write_text("KEY=1")
    after = gate.judge(action)
    assert before.decision is after.decision is Decision.CONFIRM
    assert [one.facets[0].decision for one in (before, after)] == [Decision.AUTO, Decision.CONFIRM]
    scene.agent.end(session)
    scene.close()


def only_the_first(agent: Agent) -> Approver:
    """Return who grants the program of the first call, and says no to every other."""
    yes = granting(GrantScope.SESSION, INSIDE)(agent)
    return lambda action, verdict: yes(action, verdict) if action.text == "python3 -c 1" else NO


def rule(decision: str, access: str, pattern: str) -> bytes:
    text = (
        f'[[rule]]\nid = "own"\ndecision = "{decision}"\naccess = ["{access}"]\npath = ["{pattern}"]\nreason = "No."\n'
    )
    return b'version = 1\n[tools]\ndefault = "confirm"\n' + text.encode()


WRITES = "open('m/1.sql', 'w').write('NEW')"
ANEW = "open('m/2.sql', 'w').write('NEW')"
MOVES = "import os; os.rename('m', 'n'); open('n/1.sql', 'w').write('NEW')"
REPLACES = "import os; open('x', 'w').write('NEW'); os.replace('x', 'm/1.sql')"


@needs_walls
@all_rows(
    "decision, pattern, code",
    {
        "deny": ("deny", "/m/**", WRITES),
        "confirm": ("confirm", "/m/**", WRITES),
        "block": ("block", "/m/**", WRITES),
        "by its name": ("deny", "*.sql", WRITES),
        "what is made anew in such a folder": ("deny", "/m/**", ANEW),
        "its folder is moved": ("deny", "1.sql", MOVES),
        "another file is put in its place": ("deny", "*.sql", REPLACES),
        "a folder of that name": ("deny", "m/", REPLACES),
        "an entry point": ("deny", "Makefile", "open('Makefile', 'w').write('NEW')"),
    },
)
@all_rows("holds", {"bubblewrap holds it": True, "nothing can hold it, and it is told": False})
def test_write_protected_file_stays_unchanged(
    tmp_path: Path, decision: str, pattern: str, code: str, holds: bool
) -> None:
    machine = replace(probe(), bubblewrap=None if holds else "", no_namespaces=None if holds else "off")
    if holds and not hides_where_it_may_write(machine):
        pytest.skip("bubblewrap does not work here")
    (tmp_path / "w" / "m").mkdir(parents=True)
    for name in ("m/1.sql", "Makefile"):
        (tmp_path / "w" / name).write_text("old")
    told: list[str] = []

    def putting_back(question: PlacesQuestion) -> PlacesAnswer:
        told.extend(one.path for one in question.changed.changes)
        return PlacesAnswer.PUT_BACK

    scene = Scene(
        tmp_path, bash("python3 -c 1"), bash(python(code)), approver=only_the_first,
        policy=rule(decision, "write", pattern), machine=machine, ask_places=putting_back,
    )  # fmt: skip
    scene.agent.run("go")
    assert decisions(scene) == ["confirm", "auto"]
    assert bool(told) is not holds
    assert (scene.root / "m" / "1.sql").read_text() == (scene.root / "Makefile").read_text() == "old"
    assert not (scene.root / "m" / "2.sql").exists()
    scene.close()


@needs_walls
@all_rows(
    "count, said, no_program",
    {
        "one": (1, "workspace only, offline; without protection of 100.lock; in ", ""),
        "several": (7, "100.lock, 101.lock, 102.lock, 103.lock, 104.lock and 2 more; in ", ""),
        "the most": (200, "104.lock and 195 more; in ", ""),
        "too many": (
            201,
            "",
            "without bubblewrap it could read or change more than 200 files, against rule own (p.toml:4)",
        ),
    },
)
def test_offer_names_the_files_that_cannot_be_protected(tmp_path: Path, count: int, said: str, no_program: str) -> None:
    (tmp_path / "w").mkdir()
    for number in range(count):
        (tmp_path / "w" / f"{100 + number}.lock").touch()
    offers: list[Offer] = []

    def asking(agent: Agent) -> Approver:
        def approver(action: Action, verdict: Verdict) -> Approval:
            offer = agent.gate.grants.offer(action, verdict)
            assert isinstance(offer, Offer)
            offers.append(offer)
            return NO

        return approver

    scene = Scene(
        tmp_path, bash("make"), approver=asking, policy=rule("confirm", "write", "*.lock"),
        machine=LANDLOCK,
    )  # fmt: skip
    scene.agent.run("go")
    (offer,) = offers
    assert offer.no_program.endswith(no_program)
    assert [one.name for one in offer.choices] == ["exactly this", *([INSIDE, KNOWN] if said else [])]
    assert all(said in pattern.text for one in offer.choices[1:] for pattern in one.patterns)
    scene.close()


@needs_walls
def test_grant_asks_again_after_an_unprotectable_file_appears(tmp_path: Path) -> None:
    """What is granted then, and names it, answers; the grant before it does not stand in its way."""
    scene = Scene(
        tmp_path, bash("python3 -c 1"), bash(python("open('a.lock', 'w').write('x')")), bash("python3 -c 2"),
        bash("python3 -c 3"), approver=granting(GrantScope.SESSION, INSIDE), policy=rule("deny", "write", "*.lock"),
        machine=LANDLOCK, ask_places=lambda _: PlacesAnswer.KEEP,
    )  # fmt: skip
    scene.agent.run("go")
    assert decisions(scene) == ["confirm", "auto", "confirm", "auto"]
    assert [grant["exposes"] for grant in scene.records("grant")] == [[], ["a.lock"]]
    scene.close()


@needs_walls
@all_rows("path, code", {
    "its folder is moved": ("config/key", "import os; os.rename('config', 'c'); print(open('c/key').read())"),
    "a folder above it is moved": ("a/b/key", "import os; os.rename('a', 'c'); print(open('c/b/key').read())"),
    "in .git": (".git/key", "print(open('.git/key').read())"),
    "in node_modules": ("node_modules/x/key", "print(open('node_modules/x/key').read())"),
    "in site-packages": (".venv/site-packages/key", "print(open('.venv/site-packages/key').read())"),
})  # fmt: skip
def test_read_protected_file_is_unreadable_in_the_entire_workspace(tmp_path: Path, path: str, code: str) -> None:
    if not hides_where_it_may_write(probe()):
        pytest.skip("bubblewrap does not work here")
    secret = tmp_path / "w" / path
    secret.parent.mkdir(parents=True)
    secret.write_text("S3CRET")
    scene = Scene(
        tmp_path, bash("python3 -c 1"), bash(python(code)),
        approver=granting(GrantScope.SESSION, INSIDE), policy=rule("deny", "read", "key"),
    )  # fmt: skip
    scene.agent.run("go")
    assert decisions(scene) == ["confirm", "auto"]
    assert "S3CRET" not in contents(scene)[1]
    assert secret.read_text() == "S3CRET"
    scene.close()


def test_program_is_not_granted_without_walls(tmp_path: Path) -> None:
    scene = Scene(
        tmp_path,
        bash("python3 -c 1"),
        bash("python3 -c 1"),
        approver=granting(GrantScope.SESSION, INSIDE),
        policy=POLICY,
        machine=Machine(landlock=0, seccomp="", bubblewrap="", reasons=("no Landlock",)),
    )
    scene.agent.run("go")
    assert decisions(scene) == ["confirm", "confirm"]
    assert scene.records("grant") == []
    scene.close()


@needs_walls
def test_entry_points_changed_by_a_granted_program_are_reviewed_before_use(tmp_path: Path) -> None:
    """`pytest` runs unasked by a rule, with the network; not after a program inside walls wrote what it loads."""
    rule = b"""
[[rule]]
id = "tests"
decision = "auto"
argv = ["pytest"]
match = ["pytest"]
"""
    shown: list[tuple[str, ...]] = []

    def seeing(agent: Agent) -> Approver:
        def approver(action: Action, verdict: Verdict) -> Approval:
            shown.append(verdict.notes)
            return granting(GrantScope.SESSION, INSIDE)(agent)(action, verdict)

        return approver

    scene = Scene(
        tmp_path, bash("pytest"), bash("python3 -c 1"), bash(python("open('conftest.py', 'w').write('import os')")),
        bash("pytest"), bash("pytest"), bash("python3 -c 2"), approver=seeing, policy=POLICY + rule,
    )  # fmt: skip
    scene.agent.run("go")
    assert decisions(scene) == ["auto", "confirm", "auto", "confirm", "auto", "auto"]
    suspended = scene.records("decision")[3]
    assert suspended["source"] == "suspended"
    assert "conftest.py" in str(suspended["reason"])
    assert shown[-1] == ("conftest.py  created\n@@ -0,0 +1 @@\n+import os\n\\ No newline at end of file",)
    scene.close()


def write(path: str, text: str = "x\n") -> ModelResponse:
    return reply(ToolCall(id="w", name="write_file", arguments=json.dumps({"path": path, "content": text})))


def test_all_edits_as_a_mode(tmp_path: Path) -> None:
    """Files of the workspace are written without a question while it is on; what tests and builds obey, and what is
    protected, is asked about."""
    scene = Scene(
        tmp_path, write("a.py"), write("sub/b.py"), write("Makefile"), write(".git/config"), write("../out.txt"),
        approver=granting(GrantScope.SESSION, "no such choice"), policy=POLICY,
    )  # fmt: skip
    session = scene.agent.start()
    scene.agent.gate.grants.set_mode("edits")
    on = scene.agent.gate.grants.mode
    scene.agent.run("go", session)
    assert decisions(scene) == ["auto", "auto", "confirm", "confirm", "confirm"]
    scene.agent.gate.grants.set_mode("")
    assert (on, scene.agent.gate.grants.mode) == ("edits", "")
    changes = [(record["grant"], record["change"], record["path"]) for record in scene.records("grant")]
    assert changes == [("edits", "mode", "/**"), ("edits", "revoked", "/**")]
    scene.agent.end(session)
    scene.close()


@needs_walls
def test_walls_as_a_mode(tmp_path: Path) -> None:
    """Commands run unasked in the workspace walls, lines that cannot be read too; edits of entry points as well. What leaves
    the walls, what is protected and history of git asks."""
    scene = Scene(
        tmp_path, write("Makefile"), bash("f() { echo x > made; }; f"), bash("python3 -c 'open(\"../out\", \"w\")'"),
        bash("git commit -m x"), bash("curl https://example.org"), write(".git/config"), write("../out.txt"),
        approver=granting(GrantScope.SESSION, "no such choice"), policy=POLICY,
    )  # fmt: skip
    session = scene.agent.start()
    scene.agent.gate.grants.set_mode("walls")
    scene.agent.run("go", session)
    assert decisions(scene) == ["auto"] * 3 + ["confirm"] * 4
    assert [(tmp_path / name).exists() for name in ("w/made", "w/Makefile", "out")] == [True, True, False]
    scene.agent.gate.grants.set_mode("")
    assert scene.agent.gate.grants.mode == ""
    scene.agent.end(session)
    scene.close()


@needs_walls
def test_less_of_a_grant(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "mvnw").write_text("#!/bin/sh\n")
    (tmp_path / "w" / "mvnw").chmod(0o755)
    scene = Scene(
        tmp_path, bash("./mvnw a"), bash("./mvnw b"),
        approver=granting(GrantScope.SESSION, "the same, with the network"), policy=POLICY,
    )  # fmt: skip
    session = scene.agent.start()
    scene.agent.run("go", session)
    (held,) = scene.agent.gate.grants.grants
    scene.agent.gate.grants.narrow(held, ["host", "example.org"])
    (held,) = scene.agent.gate.grants.grants
    scene.agent.gate.grants.narrow(held, ["offline"])
    assert [grant.id for grant in scene.agent.gate.grants.grants] == ["grant-1-narrow-narrow"]
    assert scene.agent.do(session, "bash", {"command": "./mvnw c"}).status.value == "ok"
    effects = [record["effects"] for record in scene.records("intent")]
    assert [isinstance(one, dict) and one["network"] for one in effects] == [True, True, False]
    assert [record["change"] for record in scene.records("grant")] == ["added", "narrowed", "narrowed"]
    assert scene.records("grant")[1]["hosts"] == ["example.org"]
    scene.agent.end(session)
    scene.close()


PROGRAM = GrantPattern(
    tools=("bash",), argv=("python3",), folder="/w", write=(".", "~/.cache"), network=True, program=True
)
ANY = replace(PROGRAM, argv=(), path="/**")
AT_HOSTS = replace(PROGRAM, network=False, hosts=("a.org", "*.b.net"))
CURL = GrantPattern(tools=("bash",), argv=("curl", "a.org"), folder="/w", network=True)
FILES = GrantPattern(tools=("edit_file",), path="/src/**", access=(Access.READ, Access.WRITE))


@all_rows(
    ("pattern", "words", "expected"),
    [
        (PROGRAM, "offline", "python3 *, workspace only, offline; in /w"),
        (PROGRAM, "-m pytest", "python3 -m pytest *, writes the workspace, ~/.cache; network: any host; in /w"),
        (PROGRAM, "python3 -m pytest", "python3 -m pytest *, writes the workspace, ~/.cache; network: any host; in /w"),
        (PROGRAM, "python3", "it is for that already"),
        (replace(PROGRAM, network=False), "offline", "it has no network"),
        (PROGRAM, "host a.org *.B.net", "python3 *, writes the workspace, ~/.cache; network: a.org, *.b.net; in"),
        (AT_HOSTS, "host c.b.net a.org", "writes the workspace, ~/.cache; network: c.b.net, a.org"),
        (AT_HOSTS, "host *.b.net a.org c.org", "c.org is not what it may reach"),
        (AT_HOSTS, "host a.org:8080", "a.org:8080 is not what"),
        (AT_HOSTS, "host a.org *.b.net", "it is for that already"),
        (AT_HOSTS, "host *", "the host '*' means every host"),
        (AT_HOSTS, "host", "name the hosts"),
        (AT_HOSTS, "offline", "workspace only, offline"),
        (replace(PROGRAM, network=False), "host a.org", "it has no network"),
        (CURL, "host a.org", "curl a.org, writes the workspace; network: a.org; in /w"),
        (FILES, "host a.org", "does not lie"),
        (ANY, "make", "make *, writes the workspace, "),
        (ANY, "rm -rf", "no way back"),
        (ANY, "kill", "done to the machine"),
        (ANY, "crontab", "done to the machine"),
        (ANY, "git", "stands behind its options"),
        (ANY, "git config", "sets what git runs later"),
        (ANY, "terraform", "stands behind its options"),
        (ANY, "sudo", "runs other commands"),
        (FILES, "src/a.py", "edits of src/a.py"),
        (FILES, "src/deep/", "edits in src/deep/"),
        (FILES, "src/", "does not lie"),
        (FILES, "lib/a.py", "does not lie"),
        (FILES, "src/../x", "plainly"),
        (GrantPattern(tools=("edit_file",), path="/a.py"), "a.py", "exactly this"),
        (GrantPattern(tools=("bash",), argv=("make",), folder="/w"), "test", "exactly this"),
    ],
)  # fmt: skip
def test_grant_is_narrowed_to_fewer_words(pattern: GrantPattern, words: str, expected: str) -> None:
    found = narrowed(pattern, words.split())
    assert expected in (found if isinstance(found, str) else found.text)


def test_a_kept_grant_keeps_the_hosts_that_it_is_narrowed_to(tmp_path: Path) -> None:
    kept = KeptGrants(str(tmp_path), "w", "/w")
    less = narrowed(PROGRAM, ["host", "example.org"])
    assert isinstance(less, GrantPattern)
    kept.keep(less)
    (held,) = kept.read().grants
    assert (held.pattern, held.rule.opens.hosts, held.rule.opens.network) == (less, ("example.org",), False)


def test_a_kept_grant_ends_with_its_time(tmp_path: Path) -> None:
    now = [1_000_000_000.0]
    kept = KeptGrants(str(tmp_path), "w", "/w", now=lambda: now[0])
    grant = kept.keep(PROGRAM, 7)
    assert not isinstance(grant, str)
    assert (grant.until, kept.read().grants) == ("2001-09-16T01:46:40Z", (grant,))
    now[0] += 7 * 86_400 - 1
    assert kept.read().grants == (grant,)
    now[0] += 1
    assert (kept.read().grants, kept.read().problem) == ((), "")
    always = kept.keep(PROGRAM)
    assert kept.read().grants == (always,)
    path = Path(kept.path)
    path.write_text(path.read_text().replace("2001-09-16", "soon"))
    assert "not understood" in kept.read().problem
