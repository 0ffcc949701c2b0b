"""Hooks on the road of a call: what they are told, that the strictest answer holds, and what is recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from check_scene import HANGS, KEEP, CheckScene
from hypothesis import given
from hypothesis import strategies as st
from places import shell_word
from rows import all_rows

from harness.actions import Action, Command, Decision, Effects
from harness.gate.approval import Approval
from harness.gate.call_checks import CheckAnswer, tightened
from harness.gate.options import GateOptions
from harness.gate.ruling import NO_DETOUR
from harness.interrupt import Interrupt
from harness.log.verify import verify
from harness.log.vocabulary import Answer, CheckEvent
from harness.messages import StopReason
from harness.policy.rules import Origin
from harness.policy.verdict import FacetVerdict, Source, Verdict
from harness.terminal.question import Question, Usual, question_rows


def answers(decision: str, reason: str = "says the hook") -> str:
    return f"echo '{json.dumps({'decision': decision, 'reason': reason})}'"


def yes(action: Action, verdict: Verdict) -> Approval:
    return Approval(answer=Answer.YES, by="person")


def no(action: Action, verdict: Verdict) -> Approval:
    return Approval(answer=Answer.NO, by="person")


ECHO = ("bash", {"command": "echo hi"})
"""What the policy lets run."""
LS = ("bash", {"command": "make"})
"""What it asks about."""
DATE = ("bash", {"command": "date"})
"""What it refuses."""


# -- what follows


@all_rows(
    ("call", "bodies", "approver", "decided", "status", "stop"),
    {
        "nothing said": (ECHO, ["true"], no, "auto", "ok", "completed"),
        "an allow of what is asked about": (LS, [answers("allow")], no, "confirm", "denied", "completed"),
        "an allow of what is refused": (DATE, [answers("allow")], yes, "deny", "denied", "completed"),
        "a confirm, and a yes": (ECHO, [answers("confirm")], yes, "confirm", "ok", "completed"),
        "a confirm, and a no": (ECHO, [answers("confirm")], no, "confirm", "denied", "completed"),
        "a deny": (ECHO, [answers("deny")], yes, "deny", "denied", "completed"),
        "a block": (ECHO, [answers("block")], yes, "block", "blocked", "blocked"),
        "a crash": (ECHO, ["exit 1"], yes, "deny", "denied", "completed"),
        "deny of what is asked about": (LS, [answers("deny")], yes, "deny", "denied", "completed"),
        "one allows, one denies": (ECHO, [answers("allow"), answers("deny")], yes, "deny", "denied", "completed"),
        "one denies, one allows": (ECHO, [answers("deny"), answers("allow")], yes, "deny", "denied", "completed"),
        "confirm and deny": (ECHO, [answers("confirm"), answers("deny")], yes, "deny", "denied", "completed"),
        "deny and confirm": (ECHO, [answers("deny"), answers("confirm")], yes, "deny", "denied", "completed"),
        "confirm and block": (ECHO, [answers("confirm"), answers("block")], yes, "block", "blocked", "blocked"),
        "block, and nobody else is asked": (ECHO, [answers("block"), "exit 1"], yes, "block", "blocked", "blocked"),
    },
)
def test_the_strictest_answer_holds(
    tmp_path: Path,
    call: tuple[str, Mapping[str, object]],
    bodies: list[str],
    approver: Callable[..., Approval],
    decided: str,
    status: str,
    stop: str,
) -> None:
    scene = CheckScene(tmp_path)
    for body in bodies:
        scene.hook(body)
    result = scene.run(call, approver=approver)
    (decision,), (outcome,) = scene.records("decision"), scene.records("outcome")
    assert (decision["decision"], outcome["status"], result.stop.value) == (decided, status, stop)
    asked = [record["hook"] for record in scene.records("hook_answered")]
    assert asked == ([] if call is DATE else ["hook-1"] if "nobody else" in str(bodies) else asked)
    assert len(asked) == (0 if call is DATE else 1 if bodies[0] == answers("block") else len(bodies))


def test_deny_is_recorded_and_explained_to_the_model(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    hook = scene.hook(answers("deny", "prod is not touched"), id="no-prod")
    scene.run(ECHO)
    (answered,), (decision,) = scene.records("hook_answered"), scene.records("decision")
    assert {name: answered[name] for name in ("call", "event", "hook", "answer", "reason", "file", "line")} == {
        "call": 1,
        "event": "before-call",
        "hook": "no-prod",
        "answer": "deny",
        "reason": "prod is not touched",
        "file": "config.toml",
        "line": 7,
    }
    from harness.digest import digest_of

    assert answered["program_sha256"] == digest_of(Path(hook.command[0]).read_bytes())
    assert isinstance(answered["duration_ms"], int)
    assert decision["seq"] == int(str(answered["seq"])) + 1
    assert (decision["source"], decision["by"]) == ("hook", "hook no-prod (config.toml:7)")
    assert (decision["file"], decision["line"], decision["layer"]) == ("config.toml", 7, "user")
    assert scene.results == [f"Denied by hook no-prod (config.toml:7): prod is not touched. {NO_DETOUR}"]


def test_allow_has_no_effect_and_is_reported_once_a_session(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    scene.hook(answers("allow"))
    scene.run(ECHO, ECHO, LS)
    assert scene.told == ["hook hook-1 (config.toml:7) says allow, which means nothing here: a hook can only tighten"]
    assert [record["ignored"] for record in scene.records("hook_answered")] == ["allow"] * 3
    assert [record["answer"] for record in scene.records("hook_answered")] == ["nothing"] * 3
    assert [record["status"] for record in scene.records("outcome")] == ["ok", "ok", "denied"]


# -- what it is told


def test_hook_receives_the_judged_call_with_secrets_masked(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    scene.hook(KEEP)
    scene.run(("bash", {"command": "echo hunter2-hunter2"}), secrets=["hunter2-hunter2"])
    told = scene.told_to()
    assert (told["v"], told["event"], told["workspace"]) == (1, "before-call", str(scene.workspace))
    assert told["session"] == scene.records("decision")[0]["session"]
    call = told["call"]
    assert (call["tool"], call["decision"], call["rule"]) == ("bash", "auto", "echo")
    assert "hunter2" not in json.dumps(told)
    assert "[redacted:" in call["arguments"]["command"]
    assert [facet["decision"] for facet in call["facets"]] == ["auto"]
    assert call["effects"]["network"] is False


@all_rows(
    ("call", "name", "given"),
    [
        (ECHO, "Bash", {"command": "echo hi"}),
        (("read_file", {"path": "a.txt", "limit": 3}), "Read", {"file_path": "{work}/a.txt", "limit": 3}),
        (("write_file", {"path": "b/c.txt", "content": "x"}), "Write", {"file_path": "{work}/b/c.txt", "content": "x"}),
        (
            ("edit_file", {"path": "a.txt", "old_string": "eggs", "new_string": "ham"}),
            "Edit",
            {"file_path": "{work}/a.txt", "old_string": "eggs", "new_string": "ham"},
        ),
        (
            ("edit_file", {"path": "a.txt", "edits": [{"old_string": "eggs", "new_string": "a"}]}),
            "Edit",
            {
                "file_path": "{work}/a.txt",
                "edits": [{"old_string": "eggs", "new_string": "a"}],
                "old_string": "eggs",
                "new_string": "a",
            },
        ),
    ],
)
def test_claude_hook_receives_the_call_in_its_format(
    tmp_path: Path, call: tuple[str, Mapping[str, object]], name: str, given: dict[str, object]
) -> None:
    scene = CheckScene(tmp_path)
    (scene.workspace / "a.txt").write_text("eggs\n")
    scene.hook(
        f'{KEEP}; printf "%s\\n" "$CLAUDE_PROJECT_DIR" "$HARNESS_HOOK" "$PWD" >"$(dirname "$0")/env"', form="claude"
    )
    scene.run(("read_file", {"path": "a.txt"}), call)
    told = scene.told_to()
    assert (told["hook_event_name"], told["tool_name"], told["tool_use_id"]) == ("PreToolUse", name, "c1")
    assert told["cwd"] == str(scene.workspace)
    assert told["tool_input"] == json.loads(json.dumps(given).replace("{work}", str(scene.workspace)))
    assert (scene.hooks / "env").read_text().splitlines() == [str(scene.workspace), "hook-1", str(scene.workspace)]


def test_a_hook_gets_the_environment_of_a_command_and_no_key(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    scene.hook('env >"$(dirname "$0")/env"')
    scene.run(ECHO)
    names = {line.partition("=")[0] for line in (scene.hooks / "env").read_text().splitlines()}
    assert "SECRET_TOKEN" not in names
    assert {"PATH", "HOME", "GIT_TERMINAL_PROMPT"} <= names


@all_rows(
    ("matchers", "asked"),
    {
        "none": ({}, [1, 2, 3, 4]),
        "a tool": ({"tool": ["bash"]}, [1, 2]),
        "two": ({"tool": ["bash", "read_file"]}, [1, 2, 3]),
        "a star at the end": ({"tool": ["write*"]}, [4]),
        "every tool": ({"tool": ["*"]}, [1, 2, 3, 4]),
        "words of a command": ({"argv": ["echo", "..."]}, [1, 2]),
        "a word in a line": ({"argv": ["touch"]}, [2]),
        "a path": ({"path": ["docs/"]}, [3, 4]),
        "a path that is written": ({"path": ["docs/"], "access": ["write"]}, [4]),
        "a path in a command": ({"path": ["*.log"]}, [2]),
        "a tool and a path": ({"tool": ["bash"], "path": ["docs/"]}, []),
    },
)
def test_matchers_are_those_of_strict_rules(tmp_path: Path, matchers: dict[str, Any], asked: list[int]) -> None:
    scene = CheckScene(tmp_path)
    (scene.workspace / "docs").mkdir()
    (scene.workspace / "docs" / "a.md").write_text("eggs\n")
    scene.hook("true", **matchers)
    scene.run(
        ECHO,
        ("bash", {"command": "echo hi && touch a.log"}),
        ("read_file", {"path": "docs/a.md"}),
        ("write_file", {"path": "docs/b.md", "content": "x"}),
    )
    assert [record["call"] for record in scene.records("hook_answered")] == asked


# -- grants, edits, dry runs, what the hook changes


def test_grants_never_lift_a_question_of_a_hook(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    scene.hook(answers("confirm", "look at this"))
    offered: list[object] = []
    with scene.agent(LS, LS, approver=yes) as agent:
        scene.at_question = lambda action, verdict: offered.append(agent.gate.grants.offer(action, verdict))
        agent.run("go")
    assert [said for said in offered if not isinstance(said, str)] == []
    assert offered[0] == "hook hook-1 (config.toml:7) asks about such calls each time"
    assert len(scene.asked) == 2
    deciding = [verdict.facets[-1] for _, verdict in scene.asked]
    assert [(one.source, one.reason) for one in deciding] == [(Source.HOOK, "look at this")] * 2


def test_the_question_names_the_hook_and_its_reason(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    scene.hook(answers("confirm", "is there a ticket?\x1b[2J"), id="prod")
    rows: list[str] = []

    def drawn(action: Action, verdict: Verdict) -> None:
        asked = Question(
            usual=Usual(), action=action, verdict=verdict, confinement="kernel", variables=("PATH",), destroys=()
        )
        rows.extend(row.text for row in question_rows(asked, 100))

    scene.at_question = drawn
    scene.run(("bash", {"command": "echo a && make"}), approver=yes)
    assert "  ! hook prod asks: is there a ticket?\\x1b[2J" in rows
    assert [row for row in rows if row.startswith(("  auto", "  ASKS"))] == ["  auto  echo a &&", "  ASKS  make"]


def test_after_an_edit_at_the_question_the_hook_sees_the_new_call(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    scene.hook(f'{KEEP}; grep -q "echo no" "$(dirname "$0")/told.json" && {{ echo not that >&2; exit 2; }}; true')

    def edits(action: Action, verdict: Verdict) -> Approval:
        return Approval(answer=Answer.EDIT, by="person", arguments='{"command": "echo no"}')

    scene.run(LS, approver=edits)
    assert [record["answer"] for record in scene.records("hook_answered")] == ["nothing", "deny"]
    assert [record["call"] for record in scene.records("hook_answered")] == [1, 2]
    assert [record["status"] for record in scene.records("outcome")] == ["denied", "denied"]


def test_a_dry_run_asks_hooks_too(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    scene.hook(answers("deny"), argv=["echo", "b"])
    scene.run(("bash", {"command": "echo a"}), ("bash", {"command": "echo b"}), options=GateOptions(dry_run=True))
    assert [record["status"] for record in scene.records("outcome")] == ["not_run", "denied"]


def test_call_changed_by_a_hook_is_judged_again_before_it_runs(tmp_path: Path) -> None:
    """It puts a link in the place of the file: the call would write elsewhere, and that is what is decided on."""
    scene = CheckScene(tmp_path)
    outside = tmp_path / "outside.txt"
    outside.write_text("eggs\n")
    scene.hook(f"ln -sf {shell_word(outside)} {shell_word(scene.workspace)}/a.txt")
    scene.run(("write_file", {"path": "a.txt", "content": "ham\n"}))
    (decision,) = scene.records("decision")
    assert (decision["decision"], decision["source"]) == ("confirm", "built-in")
    assert outside.read_text() == "eggs\n"


def test_an_edit_of_a_file_that_the_hook_changed_is_not_made(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    (scene.workspace / "a.txt").write_text("eggs\n")
    scene.hook(f"echo spam >{shell_word(scene.workspace)}/a.txt", tool=["edit_file"])
    scene.run(
        ("read_file", {"path": "a.txt"}), ("edit_file", {"path": "a.txt", "old_string": "eggs", "new_string": "ham"})
    )
    assert [record["status"] for record in scene.records("outcome")] == ["ok", "failed"]
    assert (scene.workspace / "a.txt").read_text() == "spam\n"


def test_call_cannot_write_the_program_of_a_hook(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    hook = scene.hook("true")
    result = scene.run(("bash", {"command": f"echo true >{shell_word(hook.command[0])}"}), approver=yes)
    assert result.stop is StopReason.BLOCKED
    assert not scene.records("hook_answered")


def test_user_command_is_asked_about_if_a_hook_asks(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    scene.hook(answers("confirm"), argv=["echo", "prod"])
    scene.hook(answers("deny"), argv=["echo", "never"])
    with scene.agent(approver=no) as agent:
        session = agent.start()
        statuses = [
            agent.do(session, "bash", {"command": f"echo {word}"}).status.value for word in ("a", "prod", "never")
        ]
        agent.end(session)
    assert statuses == ["ok", "denied", "denied"]
    assert len(scene.asked) == 1
    assert verify(str(scene.path)).problem == ""


# -- after a call


@all_rows(
    ("body", "form", "said", "stop"),
    {
        "nothing": ("true", "harness", None, "completed"),
        "a note": ("""echo '{"note": "run ruff too"}'""", "harness", "run ruff too", "completed"),
        "a deny takes nothing back": (answers("deny", "that was wrong"), "harness", "that was wrong", "completed"),
        "a confirm too": (answers("confirm", "look at it"), "harness", "look at it", "completed"),
        "exit 2": ("echo formatted badly >&2; exit 2", "claude", "formatted badly", "completed"),
        "Claude's block": ("""echo '{"decision": "block", "reason": "bad"}'""", "claude", "bad", "completed"),
        "Claude's context": (
            """echo '{"hookSpecificOutput": {"additionalContext": "see CONTRIBUTING"}}'""",
            "claude",
            "see CONTRIBUTING",
            "completed",
        ),
        "a block": (answers("block", "stop here"), "harness", "stop here", "blocked"),
        "a crash": ("exit 1", "harness", "the hook gave no answer: exit code 1", "completed"),
    },
)
def test_note_after_a_call_is_added_to_the_result(
    tmp_path: Path, body: str, form: str, said: str | None, stop: str
) -> None:
    scene = CheckScene(tmp_path)
    scene.hook(body, "after-call", form=form)
    result = scene.run(ECHO, ECHO)
    plain, _, note = scene.results[0].partition("\n\n[The hook hook-1 says of this call: ")
    assert plain.startswith("hi\n")
    assert note == ("" if said is None else f"{said}]")
    assert scene.records("outcome")[0]["status"] == "ok"
    assert result.stop.value == stop
    assert len(scene.results) == (1 if stop == "blocked" else 2)
    first = scene.records("hook_answered")[0]
    assert (first["event"], first["call"]) == ("after-call", 1)
    assert bool(first.get("failed")) == (body == "exit 1")


def test_hook_after_a_call_receives_the_result(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    scene.hook(KEEP, "after-call")
    scene.run(("bash", {"command": "echo hi"}))
    told = scene.told_to()
    assert (told["event"], told["call"]["tool"]) == ("after-call", "bash")
    assert (told["result"]["status"], told["result"]["exit_code"]) == ("ok", 0)
    assert "hi" in told["result"]["content"]


def test_a_note_before_a_call_is_read_with_its_result_and_masked(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    scene.hook("""echo '{"note": "the key is hunter2-hunter2"}'""")
    scene.run(ECHO, DATE, secrets=["hunter2-hunter2"])
    assert "[The hook hook-1 says of this call: the key is [redacted:" in scene.results[0]
    assert "hunter2" not in scene.path.read_text()
    assert "The hook" not in scene.results[1]


def test_the_model_reads_no_secret_of_a_hook(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    scene.hook("""echo '{"note": "note hunter2-hunter2"}'""")
    scene.hook("echo late hunter2-hunter2 >&2; exit 2", "after-call")
    scene.hook(answers("deny", "reason hunter2-hunter2"), tool=["read_file"])
    with scene.agent(ECHO, ("read_file", {"path": "a"}), secrets=["hunter2-hunter2"]) as agent:
        session = agent.start()
        agent.run("go", session)
        agent.end(session)
        read = "".join(message.content for message in session.messages)
    assert [word for word in ("note ", "late ", "reason ") if f"{word}[redacted:" not in read] == []
    assert "hunter2" not in read


# -- the person stops it


@all_rows(
    ("event", "result", "results"),
    {
        "before a call": ("before-call", "Not run: interrupted after none", 1),
        "after a call": ("after-call", "the hook gave no answer: the user interrupted it]", 1),
        "before an answer": ("before-answer", "hi", 1),
        "as the session begins": ("session-start", "", 0),
    },
)
def test_an_interrupt_ends_the_hook_and_the_run(tmp_path: Path, event: str, result: str, results: int) -> None:
    scene = CheckScene(tmp_path)
    interrupt = Interrupt()
    scene.hook(HANGS, event)
    presser = scene.pressing(interrupt)
    ended = scene.run(ECHO, interrupt=interrupt)
    presser.join()
    assert ended.stop is (StopReason.BLOCKED if event == "session-start" else StopReason.INTERRUPTED)
    assert len(scene.results) == results
    assert all(result in text for text in scene.results)


# -- it can only tighten


DECISIONS = st.sampled_from(list(Decision))


def verdict_of(decisions: list[Decision]) -> Verdict:
    facets = tuple(
        FacetVerdict(
            facet=Command(text="x", argv=("x",)), decision=decision, source=Source.RULE, reason="policy", by="rule r"
        )
        for decision in decisions
    )
    effects = Effects(read=(), write=(), network=False, unasked=False)
    return Verdict(decision=max(decisions), facets=facets, effects=effects)


@given(st.lists(DECISIONS, min_size=1, max_size=4), st.lists(DECISIONS, max_size=4), DECISIONS)
def test_a_further_hook_never_loosens(policy: list[Decision], said: list[Decision], further: Decision) -> None:
    def heard(decisions: list[Decision]) -> Verdict:
        answered = [
            CheckAnswer(
                event=CheckEvent.BEFORE_CALL,
                hook=f"h{number}",
                decision=decision,
                reason="r",
                origin=Origin(file="f", line=1),
            )
            for number, decision in enumerate(decisions)
        ]
        return tightened(verdict_of(policy), "bash", answered)

    before, after = heard(said), heard([*said, further])
    assert after.decision >= before.decision >= verdict_of(policy).decision
    assert after.decision == max(*policy, *said, further)
    assert after.effects == verdict_of(policy).effects
    assert after.facets[: len(policy)] == verdict_of(policy).facets
    assert after.deciding.decision is after.decision
