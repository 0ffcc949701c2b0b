"""The lines of the trace: what `run`, the prompt and `audit show` say of a call that ended, and why it did not do more."""

from __future__ import annotations

import pytest
from rows import all_rows

from harness.actions import JsonValue
from harness.grant_pattern import GrantPattern, pattern_fields
from harness.terminal.call_line import ended_line
from harness.terminal.styles import Line, Tone
from harness.terminal.trace import Tracer

Fields = dict[str, JsonValue]

READ = "default for read_file (/long/way/default.toml:7)"
EDIT = "default for edit_file (/long/way/default.toml:9)"
PUSH = "rule force-push (/long/way/default.toml:36)"


def outcome(status: str, content: str, **more: JsonValue) -> Fields:
    return {"status": status, "tool": "edit_file", "content": content, "duration_ms": 20, **more}


def decision(verdict: str, by: str, **more: JsonValue) -> Fields:
    return {"summary": "slugs.py", "decision": verdict, "by": by, "source": "default", "reason": "no rule", **more}


ENDED = [
    pytest.param(
        outcome("failed", "Error: old_string not found in slugs.py. Nearest text:\n    x"),
        decision("auto", READ, default_of="read_file"),
        "! edit_file  slugs.py  [auto as it writes nothing: default for read_file (default.toml:7)]  "
        "failed, 0.0 s: old_string not found in slugs.py. Nearest text:",
        id="an edit that does not apply",
    ),
    pytest.param(
        outcome("failed", "Error: File not found: a.txt.", tool="read_file"),
        decision("auto", READ),
        "! read_file  slugs.py  [auto: default for read_file (default.toml:7)]  failed, 0.0 s: File not found: a.txt.",
        id="a file that is not there",
    ),
    pytest.param(
        outcome("failed", "Error: the disk is full"),
        decision("auto", EDIT),
        "! edit_file  slugs.py  [auto: default for edit_file (default.toml:9)]  failed, 0.0 s: the disk is full",
        id="an edit that applies is its own",
    ),
    pytest.param(
        outcome("failed", "no\n[exit code 1]", exit_code=1, tool="bash"),
        {},
        "! bash  no\\n[exit code 1]  exit 1, 0.0 s",
        id="a command: its exit code says it",
    ),
    pytest.param(outcome("failed", "", duration_ms="x"), {}, "! edit_file    failed", id="nothing is known"),
    pytest.param(
        outcome("denied", "Denied by ..."),
        decision("deny", PUSH, source="rule", reason="Done by a person.\x1b[2J"),
        "x edit_file  slugs.py  [deny: rule force-push (default.toml:36)]  denied: Done by a person.\\x1b[2J",
        id="a rule says why",
    ),
    pytest.param(
        outcome("denied", "Denied by ..."),
        decision("deny", EDIT),
        "x edit_file  slugs.py  [deny: default for edit_file (default.toml:9)]  denied",
        id="a default says so by its name",
    ),
    pytest.param(
        outcome("ok", "", exit_code=0, tool="bash"),
        decision(
            "confirm",
            EDIT,
            summary="ls ...",
            facets=[{"facet": "ls", "decision": "auto"}, {"facet": "touch \x1b[2Jx", "decision": "confirm"}],
        ),
        "+ bash  ls ...  (touch \\x1b[2Jx)  [confirm: default for edit_file (default.toml:9)]  exit 0, 0.0 s",
        id="the part that was asked about stands there, wherever in the text it was",
    ),
    pytest.param(
        outcome("failed", "grep: ./.env: Permission denied", exit_code=2, tool="bash"),
        decision("auto", EDIT, summary="grep -rn tax .", effects={"left_out": [".env", "b\x1b", "c", "d", "e"]}),
        "! bash  grep -rn tax .  [auto: default for edit_file (default.toml:9)]  exit 2, 0.0 s; "
        "left out, since a rule denies reading: .env, b\\x1b, c and 2 more",
        id="files that were hidden from a command",
    ),
    pytest.param(
        outcome("crashed", "Error: \u202eevil"),
        decision("auto", 5, default_of=7, reason=[]),  # type: ignore[arg-type]
        "! edit_file  slugs.py  [auto: 5]  crashed, 0.0 s: \\u202eevil",
        id="hostile",
    ),
]


@all_rows(("ended", "decided", "line"), ENDED)
def test_ended_call_shows_its_reason(ended: Fields, decided: Fields, line: str) -> None:
    assert ended_line(ended, decided, {}).text == line


def test_answer_of_a_person_is_shown_as_the_reason() -> None:
    answered: Fields = {"answer": "no", "by": "person", "seconds": 2.6, "words": "not that"}
    line = ended_line(outcome("denied", "x"), decision("confirm", PUSH, source="rule"), answered).text
    assert line == 'x edit_file  slugs.py  [asked: no by person, 2.6 s: "not that"]  denied'


def said(text: str, calls: int, **more: JsonValue) -> Fields:
    return {"kind": "model_response", "session": "s", "text": text, "calls": calls, **more}


SAID = [
    pytest.param(said("I look\nfirst:\n\n- a\tb", 1), "< I look first: - a b", id="on one line"),
    pytest.param(said("\x1b[2J+ bash  ls", 2), "< \\x1b[2J+ bash  ls".replace("  ", " "), id="hostile"),
    pytest.param(said("All done.", 0), None, id="an answer goes to stdout"),
    pytest.param(said(" \n", 1), None, id="blanks say nothing"),
    pytest.param(said("In short: ...", 1, purpose="summary"), None, id="a summary is no part of the conversation"),
]


@all_rows(("record", "line"), SAID)
def test_text_beside_a_call_is_shown(record: Fields, line: str | None) -> None:
    assert Tracer().line(record) == (None if line is None else Line(tone=Tone.QUIET, text=line))


@all_rows(
    ("arguments", "named"),
    [
        ('{"command": "touch b"}', "touch b"),
        ('{"content": "x", "path": "a.txt"}', "a.txt"),
        ('{"edits": []}', '{"edits": []}'),
        ("{broken\x1b", "{broken\\x1b"),
        ('"text"', '"text"'),
    ],
)
def test_unjudged_call_is_named(arguments: str, named: str) -> None:
    about: Fields = {"session": "s", "call": 2}
    tracer = Tracer()
    assert tracer.line({"kind": "call_proposed", **about, "arguments": arguments}) is None
    assert tracer.line({"kind": "decision", **about, "decision": "none", "by": "", "reason": "why"}) is None
    line = tracer.line({"kind": "outcome", **about, **outcome("not_run", "Not run: another call was blocked")})
    assert line is not None
    assert line.text == f"- edit_file  {named}  not run: another call was blocked"


def test_judged_call_that_did_not_run_shows_its_reason() -> None:
    about: Fields = {"session": "s", "call": 2}
    tracer = Tracer()
    decision: Fields = {"decision": "confirm", "by": "default for bash (p.toml:3)", "summary": "git push"}
    assert tracer.line({"kind": "decision", **about, **decision}) is None
    line = tracer.line(
        {"kind": "outcome", **about, "tool": "bash", "status": "not_run", "content": "Not run: no answer."}
    )
    assert line is not None
    assert line.text == "- bash  git push  [confirm: default for bash (p.toml:3)]  not run: no answer."


@all_rows(
    "grants, said",
    {
        "a program": ([GrantPattern(tools=("bash",), argv=("python3",), folder="/w", program=True)], "python3 *"),
        "two": (
            [
                GrantPattern(tools=("bash",), argv=("mkdir", "a\x1b"), folder="/w"),
                GrantPattern(tools=("bash",), path="/**", program=True),
            ],
            "mkdir 'a\\x1b', granted any command",
        ),
    },
)
def test_grant_of_an_answer_is_shown(grants: list[GrantPattern], said: str) -> None:
    about: Fields = {"session": "s", "call": 1}
    tracer = Tracer()
    answered: Fields = {"answer": "yes", "by": "person", "scope": "session", "seconds": 2.6}
    assert tracer.line({"kind": "decision", **about, **decision("confirm", PUSH, source="default")}) is None
    assert tracer.line({"kind": "approval_answered", **about, **answered}) is None
    for grant in grants:
        assert tracer.line({"kind": "grant", **about, "grant": "grant-1", **pattern_fields(grant)}) is None
    line = tracer.line({"kind": "outcome", **about, **outcome("ok", "")})
    assert line is not None
    assert f"[asked: yes for the session by person, granted {said}, 2.6 s]" in line.text


@all_rows(
    ("content", "ended"),
    [
        ("Edited a.py: 1 replacement (+3 -2)\n@@ -1 +1 @@", "ok, +3/-2, 0.0 s"),
        ("Overwrote (+9 -9 lines).py (+1 -0 lines); kept: the mode", "ok, +1/-0, 0.0 s"),
        ("Created (+9 -9 lines) (1 line, 2 bytes)", "ok, new, 1 line, 0.0 s"),
        ("Created a.py (1,200 lines, 9,999 bytes)", "ok, new, 1,200 lines, 0.0 s"),
    ],
)
def test_size_of_a_file_change_is_shown(content: str, ended: str) -> None:
    line = ended_line(outcome("ok", content), decision("auto", EDIT), {})
    assert line.text.endswith(f"]  {ended}")


@all_rows(
    ("changes", "ended"),
    [
        ({"added": 2, "changed": 1, "removed": 0}, "exit 0, +2 ~1, 0.0 s"),
        ({"added": 2, "history_changed": True}, "exit 0, +2, git history changed, 0.0 s"),
        ({"added": 0, "history_changed": True}, "exit 0, git history changed, 0.0 s"),
        ({"added": 0, "history_changed": "yes"}, "exit 0, 0.0 s"),
    ],
)
def test_changes_of_a_command_are_shown(changes: Fields, ended: str) -> None:
    line = ended_line({**outcome("ok", ""), "exit_code": 0, "changes": changes}, decision("auto", EDIT), {})
    assert line.text.endswith(f"]  {ended}")


@all_rows(("by", "more"), [({}, ""), ({"by": "person"}, "  [typed by the person]")])
def test_command_of_the_user_is_not_shown_as_a_call_of_the_model(by: Fields, more: str) -> None:
    about: Fields = {"session": "s", "call": 1}
    tracer = Tracer()
    assert tracer.line({"kind": "call_proposed", **about, **by}) is None
    assert tracer.line({"kind": "decision", **about, **decision("auto", READ)}) is None
    line = tracer.line({"kind": "outcome", **about, **outcome("ok", "")})
    assert line is not None
    assert line.text == f"+ edit_file  slugs.py{more}  [auto: default for read_file (default.toml:7)]  ok, 0.0 s"


@all_rows(
    ("jobs", "words"),
    {
        "one": (1, "]  1 background process ended with the call; exit 0, 0.0 s"),
        "two": (2, "]  2 background processes ended with the call; exit 0, 0.0 s"),
        "none": (0, "]  exit 0, 0.0 s"),
    },
)
def test_background_processes_that_ended_with_their_call_are_shown(jobs: int, words: str) -> None:
    ended: Fields = {**outcome("ok", ""), "exit_code": 0, "extra": {"jobs_ended": jobs}}
    assert ended_line(ended, decision("auto", EDIT), {}).text.endswith(words)


def answered(answer: str = "yes", **more: JsonValue) -> Fields:
    return {"answer": answer, "by": "person", "seconds": 2.6, **more}


GRANTED: Fields = {"layer": "session", "source": "rule", "reason": "a person granted any command for this session"}
SHORT = [
    pytest.param(outcome("ok", "x"), decision("auto", READ), {}, "+ edit_file  slugs.py  ok", id="by default"),
    pytest.param(
        outcome("ok", "x"),
        decision("auto", "model of ls, readers (readonly.toml:3)", source="reader"),
        {},
        "+ edit_file  slugs.py  ok",
        id="a reader",
    ),
    pytest.param(
        outcome("ok", "x"),
        decision("auto", PUSH, source="rule", rule="tests"),
        {},
        "+ edit_file  slugs.py  ok  [tests]",
        id="a rule",
    ),
    pytest.param(
        outcome("ok", "x"),
        decision("auto", PUSH, **{**GRANTED, "rule": "walls-edits"}),
        {},
        "+ edit_file  slugs.py  ok  [walls]",
        id="a mode",
    ),
    pytest.param(
        outcome("ok", "x"),
        decision("auto", PUSH, **{**GRANTED, "rule": "grant-1"}),
        {},
        "+ edit_file  slugs.py  ok  [grant-1]",
        id="a grant",
    ),
    pytest.param(outcome("ok", "x"), decision("confirm", EDIT), answered(), "+ edit_file  slugs.py  ok  [you]", id="yes"),
    pytest.param(
        outcome("denied", "x"),
        decision("confirm", EDIT),
        answered("no", words="not\x1b that"),
        'x edit_file  slugs.py  denied  [you: "not\\x1b that"]',
        id="no",
    ),
    pytest.param(
        outcome("denied", "x"),
        decision("confirm", EDIT),
        answered("edit", edited_to=5),
        "- edit_file  slugs.py  replaced by call 5, as you edited it  [you]",
        id="an edited call",
    ),
    pytest.param(
        outcome("ok", "x"),
        decision("confirm", EDIT),
        answered(scope="session", granted=", granted python3 *", opens=["network"]),
        "+ edit_file  slugs.py  ok  [you, opened network, for the session, granted python3 *]",
        id="a yes with more",
    ),
    pytest.param(
        outcome("denied", "x"),
        decision("confirm", EDIT),
        answered("nobody", by="nobody"),
        "x edit_file  slugs.py  denied  [nobody to ask]",
        id="nobody",
    ),
    pytest.param(
        outcome("denied", "x"), decision("deny", EDIT), {}, "x edit_file  slugs.py  denied  [default for edit_file]",
        id="denied by default",
    ),
    pytest.param(
        outcome("ok", "", tool="bash", exit_code=0, duration_ms=1_200, extra={"jobs_ended": 1}),
        decision("auto", READ),
        {},
        "+ bash  slugs.py  1 background process ended with the call; exit 0, 1.2 s",
        id="a background process",
    ),
]  # fmt: skip


@all_rows(("ended", "decided", "approval", "line"), SHORT)
def test_short_form_names_the_work_first(ended: Fields, decided: Fields, approval: Fields, line: str) -> None:
    shown = ended_line(ended, decided, approval, short=True)
    assert shown.text == line
    assert shown.text.endswith(shown.quiet)


@all_rows(("seconds", "words"), [(0.424, "0.4"), (1.96, "2.0"), (7.51, "8"), ("x", "0.0")])
def test_wait_before_another_try_is_rounded(seconds: JsonValue, words: str) -> None:
    tried: Fields = {"kind": "error", "session": "s", "attempt": 1, "attempts": 3, "retry_seconds": seconds}
    line = Tracer().line({**tried, "message": "busy"})
    assert line is not None
    assert line.text == f"~ try 1 of 3 failed, again in {words} s: busy"
