"""`harness audit approvals | denied | unknown | files | reads | outside`, `list`, `show`, on logs real and forged."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from forged_logs import DIGEST, Step, decided, done, ended, intended, lines_of, one_call, proposed, started, write
from hook_scene import HookScene
from playing import Playing
from program import made_program
from rows import all_rows

from harness import ActionLog, Agent, Workspace, builtin_tools
from harness.actions import Action, JsonValue
from harness.errors import GateError
from harness.files.before_images import BeforeImages
from harness.gate.approval import Approval, Approver, ScriptedAnswers, deny_all
from harness.log.vocabulary import Answer
from harness.messages import StopReason, ToolCall
from harness.models.scripted import call
from harness.policy.loader import parse_policy
from harness.policy.verdict import Verdict
from harness.session.session_log import close_log
from harness.session.state import State
from policies import CONFIRM

if TYPE_CHECKING:
    from program import Done, Program

POLICY = b"""
version = 1
name = "shop"
[tools]
read_file = "auto"
write_file = "confirm"
edit_file = "auto"
bash = "confirm"
[[rule]]
id = "listing"
decision = "auto"
argv = ["ls"]
match = ["ls"]
not_match = ["ls -la"]
[[rule]]
id = "secrets"
decision = "deny"
access = ["read", "write"]
path = [".env"]
reason = "Secrets stay out of the conversation."
hint = "Ask for the name, not the value."
"""
PATH = "shop/policy.toml"

# One row a question that was asked; each is a line of text, and an object of JSON.
Row = dict[str, Any]


class Clock:
    """A clock that an approver can move: how long a person took."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def person(clock: Clock, *answers: tuple[str, float] | tuple[str, float, str]) -> Approver:
    """Answer like a person: what, after how many seconds, with which words (or, of an edit, with which arguments)."""
    left = list(answers)

    def approver(action: Action, verdict: Verdict) -> Approval:
        answer, seconds, *words = left.pop(0)
        clock.now += seconds
        if answer == "edit":
            return Approval(answer=Answer.EDIT, by="person", arguments=words[0])
        return Approval(answer=Answer(answer), by="person", words=words[0] if words else "")

    return approver


def work(
    program: Program,
    *calls: ToolCall,
    approver: Approver | None = None,
    clock: Clock | None = None,
    policy: bytes = POLICY,
) -> Path:
    """Make a session of these calls with the real tools through the real gate, and return its log."""
    state = State.of(program.environment)
    workspace = Workspace(str(program.workspace), program.environment["HOME"])
    monotonic = clock or Clock()
    log = ActionLog.open(state.new_log_path(workspace.root), monotonic_ns=lambda: int(monotonic() * 1e9))
    agent = Agent(
        model=Playing(calls),
        tools=builtin_tools(workspace, environment=program.environment, images=BeforeImages(state.before_images)),
        policy=parse_policy(policy, PATH),
        approver=approver or ScriptedAnswers(["y"] * 50),
        log=log,
        facts={"mode": "run", "workspace": workspace.root, "user": "ann", "host": os.uname().nodename},
        monotonic=monotonic,
    )
    assert agent.run("go").stop in (StopReason.COMPLETED, StopReason.BLOCKED, StopReason.GATE_ERROR)
    close_log(state, log)
    return Path(log.path)


def rows(done: Done, kind: str = "") -> list[Row]:
    """Return the objects of an answer that are of one kind; all without."""
    found = [json.loads(line) for line in done.out.splitlines()]
    return [row for row in found if kind in ("", row["row"])]


def only(program: Program, question: str, kind: str, *words: str) -> list[Row]:
    return rows(program.run("audit", question, "--json", *words), kind)


def lines(program: Program, *words: str, code: int = 0) -> list[str]:
    done = program.run("audit", *words)
    assert (done.code, done.err) == (code, "")
    return done.out.splitlines()


def made_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


WRITE = call("write_file", path="a.txt", content="one\n")


def write_of(number: int) -> ToolCall:
    return call("write_file", path="a.txt", content=f"{number}\n")


LS, TOUCH = call("bash", command="ls"), call("bash", command="touch b.txt")


# approvals


def test_questions_are_listed_with_answer_and_approver(program: Program) -> None:
    clock = Clock()
    answers = person(clock, ("yes", 4.0), ("no", 2.5, "not there"), ("yes", 0.4))
    work(program, WRITE, TOUCH, LS, write_of(2), approver=answers, clock=clock)
    found = only(program, "approvals", "question")
    told = [(r["call"], r["tool"], r["answer"], r["answered_by"], r["user"], r["seconds"]) for r in found]
    assert told == [
        (1, "write_file", "yes", "person", "ann", 4.0),
        (2, "bash", "no", "person", "ann", 2.5),
        (4, "write_file", "yes", "person", "ann", 0.4),
    ]
    assert [(r["quick"], r["words"], r["line"], r["source"]) for r in found] == [
        (False, "", 6, "default"),
        (False, "not there", 8, "default"),
        (True, "", 6, "default"),
    ]
    text = lines(program, "approvals")
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ  [0-9a-f]{12}#1  write_file  a\.txt  "
        r"\[default for write_file \(policy\.toml:6\)\]  yes by person \(ann\), 4\.0 s",
        text[0],
    )
    assert text[1].endswith('no by person (ann), 2.5 s "not there"')
    assert text[2].endswith("yes by person (ann), 0.4 s  under 1 s")
    assert text[3] == "3 asked: 2 yes, 1 no, 0 nobody; median wait 2.5 s; 1 under 1 s (1 of them yes)"


def test_a_burst_is_three_times_yes_within_ten_seconds(program: Program) -> None:
    clock = Clock()
    waits = [("yes", 20.0), ("yes", 3.0), ("yes", 3.0), ("no", 1.0), ("yes", 3.0), ("yes", 11.0)]
    work(program, *map(write_of, range(len(waits))), approver=person(clock, *waits), clock=clock)
    found = only(program, "approvals", "question")
    assert [row["in_burst"] for row in found] == [True, True, True, False, True, False]
    assert ["burst" in line for line in lines(program, "approvals")[:-1]] == [row["in_burst"] for row in found]


@all_rows(
    ("approver", "said", "counts"),
    [
        pytest.param(deny_all, "nobody was there to answer", {"nobody": 1, "yes": 0}, id="nobody"),
        pytest.param(ScriptedAnswers(["y"]), "yes by script, 0.0 s", {"yes": 1, "quick": 0}, id="a script"),
    ],
    fresh=True,
)
def test_only_answers_by_people_are_marked_as_quick(
    program: Program, approver: Approver, said: str, counts: dict[str, int]
) -> None:
    work(program, WRITE, approver=approver)
    assert lines(program, "approvals")[0].endswith(said)
    (total,) = only(program, "approvals", "counts")
    assert counts.items() <= total.items()


def connection(host: str, *, allowed: bool = True) -> JsonValue:
    return {"host": host, "port": 443, "allowed": allowed, "times": 1, "sent": 0, "received": 0}


@pytest.mark.forges_logs
@all_rows(
    ("connections", "shown"),
    [
        pytest.param([], [], id="none"),
        pytest.param(
            [connection("a.example"), connection("a.example"), connection("b\x1b[2J", allowed=False)],
            ["reached a.example:443; was refused b\\x1b[2J:443"],
            id="both",
        ),
        pytest.param(
            [connection(f"{number}.example", allowed=False) for number in range(7)],
            ["was refused 0.example:443, 1.example:443, 2.example:443, 3.example:443, 4.example:443 and 2 more"],
            id="many",
        ),
        pytest.param([{"allowed": 1}, "x"], ["was refused ?:"], id="what no harness writes"),
    ],
    anew={"program": made_program},
)
def test_show_lists_connections_of_a_command(program: Program, connections: list[JsonValue], shown: list[str]) -> None:
    outcome = done(1, connections=connections, connection_count=len(connections))
    steps = (started(), proposed(1), decided(1), intended(1), outcome, ended())
    log = str(write(program.home / "log.jsonl", lines_of(steps)))
    out = program.run("audit", "show", log).out
    assert [line.strip() for line in out.splitlines() if "reached" in line or "was refused" in line] == shown


def answered(call: int, answer: str, by: str, seconds: JsonValue) -> tuple[Step, ...]:
    ran: tuple[Step, ...] = (intended(call), done(call))
    if answer != "yes":
        ran = (done(call, status="denied", exit_code=None),)
    shown: dict[str, JsonValue] = {"call": call, "shown_sha256": DIGEST}
    said: dict[str, JsonValue] = {"call": call, "answer": answer, "by": by, "seconds": seconds, "words": ""}
    return proposed(call), decided(call, "confirm"), ("approval_asked", shown), ("approval_answered", said), *ran


@pytest.mark.forges_logs
@all_rows(
    ("answers", "quick", "quick_yes", "bursts", "median"),
    [
        pytest.param([("yes", "alice", 0.2), ("yes", "person", 0.2), ("no", "person", 0.2)], 3, 2, 0, 0.2, id="a name"),
        pytest.param([("yes", "script", 0.0), ("nobody", "nobody", 0.0)], 0, 0, 0, None, id="no person"),
        pytest.param(
            [("yes", "approver", 0.1), ("yes", "client", 0.1), ("yes", "client", 0.1)], 0, 0, 0, None, id="outside"
        ),
        pytest.param([("no", "nobody", 0.1), ("yes", "", 0.1)], 0, 0, 0, None, id="nobody said no, and one unsaid"),
        pytest.param([("stop", "person", 0.5), ("edit", "person", 9.0)], 1, 0, 0, 0.5, id="the median is one of them"),
        pytest.param([("yes", "person", 1.0)] * 3, 0, 0, 3, 1.0, id="a burst"),
        pytest.param([("yes", "person", "0.2"), ("yes", "person", None)], 0, 0, 0, None, id="no time"),
        pytest.param([("yes", 7, 0.25)], 1, 1, 0, 0.25, id="a number for a name"),
    ],
)
def test_every_answer_counts_alike_in_every_question(
    program: Program,
    answers: list[tuple[str, str, JsonValue]],
    quick: int,
    quick_yes: int,
    bursts: int,
    median: float | None,
) -> None:
    """One log: what is a person, quick, a burst, and the median, as `approvals`, `stats` and `report` say it."""
    steps = [step for call, one in enumerate(answers, start=1) for step in answered(call, *one)]
    log = str(write(program.home / "log.jsonl", lines_of((started(), *steps, ended()))))
    (counts,) = only(program, "approvals", "counts", log)
    assert (counts["quick"], counts["quick_yes"], counts["in_bursts"], counts["wait_median"]) == (
        quick, quick_yes, bursts, median,
    )  # fmt: skip
    for words in ((), ("--sql",)):
        done = program.run("audit", "stats", log, "--json", *words)
        if words and "needs DuckDB" in done.err:
            continue
        (rule,) = [row for row in rows(done) if row.get("row") == "rule" and row["asked"]]
        assert (rule["quick"], rule["quick_yes"], rule["wait_median"]) == (quick, quick_yes, median)
        assert {name: counts[name] for name in ("yes", "no", "stop", "edit", "nobody")} == {
            name: rule[name] for name in ("yes", "no", "stop", "edit", "nobody")
        }
    page = program.run("audit", "report", log, "-o", "-").out
    said = re.search(r"! (\d+) answers?</strong> by a person came in under a second: hardly read; (\d+) of them", page)
    assert (int(said[1]), int(said[2])) == (quick, quick_yes) if said else (quick, quick_yes) == (0, 0)
    burst = re.search(r"! (\d+) approvals?</strong> by a person came in bursts", page)
    assert (int(burst[1]) if burst else 0) == bursts
    waited = re.search(r"median wait ([0-9.]+) s", page)
    assert (float(waited[1]) if waited else None) == median
    assert page.count("! under 1 s</span>") >= quick


def test_an_edited_call_names_the_other_one(program: Program) -> None:
    clock = Clock()
    wanted = json.dumps({"path": "b.txt", "content": "two\n"})
    work(program, WRITE, approver=person(clock, ("edit", 5.0, wanted), ("yes", 2.0)), clock=clock)
    first, second = only(program, "approvals", "question")
    assert (first["answer"], first["edited_to"], second["edited_from"], second["answer"]) == ("edit", 2, 1, "yes")
    text = lines(program, "approvals")
    assert "edit, into call 2, by person (ann), 5.0 s" in text[0]
    assert text[1].endswith("made of call 1")
    (refused,) = only(program, "denied", "refusal")
    assert (refused["refused_by"], refused["call"], refused["edited_to"]) == ("edit", 1, 2)
    shown = "\n".join(lines(program, "show"))
    assert "call 2 was put in its place" in shown
    assert "made of call 1" in shown


def test_a_question_without_an_answer(program: Program) -> None:
    """The approver failed: the call has an end, and the question no answer. And a log that ends at the question."""

    def failing(action: Action, verdict: Verdict) -> Approval:
        raise GateError("the terminal is gone")

    log = work(program, WRITE, approver=failing)
    (row,) = only(program, "approvals", "question")
    assert (row["answer"], row["status"]) == (None, "not_run")
    assert "asked, no answer recorded: Not run" in lines(program, "approvals")[0]
    text = log.read_text().splitlines(keepends=True)
    place = next(n for n, line in enumerate(text) if '"kind":"approval_asked"' in line)
    cut = program.home / "cut.jsonl"
    cut.write_text("".join(text[: place + 1]))
    os.unlink(State.of(program.environment).heads)
    assert "asked, no answer recorded: the log ends there" in lines(program, "approvals", str(cut))[0]
    assert "asked, no answer recorded; the log ends before it was begun" in "\n".join(lines(program, "show", str(cut)))


def test_open_question_at_another_agent_is_shown(program: Program, tmp_path: Path) -> None:
    """It tells of a yes alone, and its session goes on meanwhile."""
    scene = HookScene(tmp_path, CONFIRM.encode())
    scene.event("PreToolUse", "Bash", {"command": "touch x"})
    (log,) = scene.logs.iterdir()
    shown = "\n".join(lines(program, "show", str(log)))
    assert "touch x  asked at the agent, which told of no answer yet" in shown
    assert "the log ends" not in shown
    text = log.read_text()
    log.write_text(text.replace('"by":"client",', ""))  # as of a question that waits for `harness approve`
    assert "touch x  asked at `harness approve`, no answer yet" in "\n".join(lines(program, "show", str(log)))


# denied


def test_refusals_are_listed_with_refuser_and_reason(program: Program) -> None:
    (program.workspace / ".env").write_text("KEY=1\n")
    bad, unfit = call("read_file", path=".env"), ToolCall(id="x", name="bash", arguments="{")
    clock = Clock()
    one = work(program, bad, TOUCH, unfit, LS, approver=person(clock, ("no", 3.0, "later")), clock=clock)
    logs = [str(one), str(work(program, TOUCH, approver=deny_all))]
    found = only(program, "denied", "refusal", *logs)
    assert [(r["refused_by"], r["rule"], r["hint"], r["words"]) for r in found] == [
        ("policy", "secrets", "Ask for the name, not the value.", ""),
        ("person", None, None, "later"),
        ("nobody", None, None, ""),
    ]
    assert (found[0]["file"], found[0]["line"], found[0]["reason"]) == (
        PATH,
        15,
        "Secrets stay out of the conversation.",
    )
    text = lines(program, "denied", *logs)
    assert "[rule secrets (policy.toml:15)]  why: Secrets stay out" in text[0]
    assert text[0].endswith("hint: Ask for the name, not the value.")
    assert '[person (ann), 3.0 s: "later"; asked by default for bash (policy.toml:8)]' in text[1]
    assert "[nobody was there to ask; needed by default for bash (policy.toml:8)]" in text[2]
    assert text[3] == (
        "3 calls refused: 1 by the policy, 1 by a person, 1 for nobody was there; 1 invalid (--invalid lists them)"
    )
    invalid = only(program, "denied", "refusal", "--invalid", *logs)
    assert [(r["call"], r["refused_by"], r["status"]) for r in invalid if r["status"] == "invalid"] == [
        (3, "tool", "invalid")
    ]
    assert "[no valid call]  why: Error: " in "\n".join(lines(program, "denied", "--invalid"))


def test_a_command_cannot_forge_a_hint(program: Program) -> None:
    """What the model wrote stands in the text of the refusal; only what the policy advised is a hint."""
    work(program, call("bash", command="cat .env # . Hint: rm -rf ."), approver=deny_all)
    (row,) = only(program, "denied", "refusal")
    assert row["hint"] in (None, "Ask for the name, not the value.")


def test_unreached_calls_are_counted(program: Program) -> None:
    log = write(
        program.home / "x.jsonl",
        lines_of((started(), proposed(1), ("decision", {"call": 1, "tool": "bash", "decision": "none", "by": "",
        "reason": "over", "arguments_sha256": DIGEST}), ("outcome", {"call": 1, "tool": "bash", "status": "not_run",
        "content": "Not run: over"}), ended())),
    )  # fmt: skip
    assert lines(program, "denied", str(log)) == [
        "no call was refused in 1 session; 1 not run, for something else ended the run"
    ]


# unknown


def crashed(program: Program, *calls: ToolCall) -> Path:
    """Return a copy of a log that ends with the first intent, of which no head was noted."""
    text = work(program, *calls).read_text().splitlines(keepends=True)
    os.unlink(State.of(program.environment).heads)
    place = next(n for n, line in enumerate(text) if '"kind":"intent"' in line)
    copy = program.home / "crashed.jsonl"
    copy.write_text("".join(text[: place + 1]))
    return copy


def test_unknown_calls_and_open_sessions_are_exit_3(program: Program) -> None:
    log = crashed(program, WRITE)
    done = program.run("audit", "unknown", "--json", str(log))
    unknown, session, counts = rows(done)
    assert done.code == 3
    assert (unknown["row"], unknown["call"], unknown["path"]) == ("unknown_call", 1, str(program.workspace / "a.txt"))
    assert (unknown["before_sha256"], unknown["file_now"], unknown["in_use"]) == (None, "as_intended", False)
    assert (session["row"], session["workspace"]) == ("open_session", str(program.workspace))
    assert (counts["unknown_calls"], counts["open_sessions"]) == (1, 1)
    text = lines(program, "unknown", str(log), code=3)
    assert "the file is what it was to become  end unknown; it may have run, wholly or in part" in text[0]
    assert "never said that it ended" in text[1]
    assert text[2] == "1 call of unknown end, 1 open session"
    (program.workspace / "a.txt").unlink()
    assert "the file is as it was before" in lines(program, "unknown", str(log), code=3)[0]
    (program.workspace / "a.txt").write_text("else")
    assert "the file is neither" in lines(program, "unknown", str(log), code=3)[0]


def test_a_log_in_use_may_simply_be_running(program: Program) -> None:
    log = crashed(program, WRITE)
    with log.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        text = lines(program, "unknown", str(log), code=3)
        listed = lines(program, "list", str(log))
    assert "in use: it may simply be running" in text[0]
    assert "its log is in use: it may simply be running" in text[1]
    assert "  in use  " in listed[0]
    assert "open: it never said that it ended" in lines(program, "list", str(log))[0]


@pytest.mark.forges_logs
@all_rows(
    ("whole", "tail", "code", "said"),
    [
        pytest.param((), b"\0" * 4096, 3, "0 calls of unknown end, 0 open sessions, 1 torn line", id="zeros alone"),
        pytest.param(
            (started(), ended()), b'{"torn', 3, "0 calls of unknown end, 0 open sessions, 1 torn line", id="torn"
        ),
        pytest.param((), b"", 0, "there is no session, and so no call", id="empty"),
    ],
)
def test_torn_line_counts_as_a_possible_call(
    program: Program, whole: tuple[Step, ...], tail: bytes, code: int, said: str
) -> None:
    log = write(program.home / "x.jsonl", lines_of(whole), tail)
    done = program.run("audit", "unknown", str(log))
    assert (done.code, done.out.splitlines()[-1]) == (code, said)
    torn = only(program, "unknown", "torn_line", str(log))
    assert [row["log"] for row in torn] == ([str(log)] if tail else [])


@all_rows("question", ["list", "show", "approvals", "unknown", "files", "denied", "reads", "outside"])
def test_a_full_disk_is_not_called_a_broken_pipe(program: Program, question: str) -> None:
    work(program, WRITE, approver=deny_all)
    with open("/dev/full", "wb") as full:
        done = program.run("audit", question, stdout=full)
    assert (done.code, "No space left on device" in done.err, "Broken pipe" in done.err) == (141, True, False)


@all_rows("words", [("report",), ("export", "--to", "csv")], ids=["report", "export"])
def test_full_stderr_does_not_change_the_result(program: Program, words: tuple[str, ...]) -> None:
    work(program, WRITE, approver=deny_all)
    with open("/dev/full", "wb") as full:
        done = program.run("audit", *words, "--output", str(program.home / "view"), stderr=full)
    assert (done.code, (program.home / "view").stat().st_size > 100) == (0, True)


@all_rows("number", ["04", "#4", "x", "0", "-1", "4.0", "\u0664"])
def test_invalid_call_number_is_a_usage_error(program: Program, number: str) -> None:
    log = write(program.home / "x.jsonl", lines_of((started(), *one_call(1), ended())))
    done = program.run("audit", "show", str(log), f"--call={number}")
    assert (done.code, "is not the number of a call" in done.err) == (2, True)


@all_rows(
    ("flags", "fits"),
    [
        ("--since 0300-01-01T00:00:00Z", True),
        ("--until 0300-01-01T00:00:00Z", False),
        ("--since 2016-12-31T23:59:60Z", True),
        ("--until 2016-12-31T23:59:60.5+00:00", False),
    ],
)
def test_a_time_of_any_year_and_a_leap_second_are_times(program: Program, flags: str, fits: bool) -> None:
    """RFC 3339 section 5.7: the second 60."""
    log = write(program.home / "x.jsonl", lines_of((started(), *one_call(1), ended())))
    done = program.run("audit", "show", str(log), *flags.split())
    assert (done.code, "#1 bash" in done.out or "#1 + bash" in done.out) == (0, fits), done.err


def test_unknown_without_findings_exits_0(program: Program) -> None:
    work(program, WRITE)
    assert lines(program, "unknown") == ["every call that was begun in 1 session has an end, and every session"]
    assert [row["unknown_calls"] for row in only(program, "unknown", "")] == [0]


# files


def test_every_changed_file_with_its_changes_in_order(program: Program) -> None:
    edit = call("edit_file", path="a.txt", old_string="one", new_string="two")
    work(program, WRITE, edit, TOUCH)
    work(program, call("write_file", path="b/c.txt", content="x"))
    found = rows(program.run("audit", "files", "--json"))
    assert [row["row"] for row in found] == ["file", "change", "change", "file", "change", "command", "counts"]
    file, first, second = found[:3]
    assert (file["path"], file["changes"], file["on_disk"]) == (str(program.workspace / "a.txt"), 2, "as_left")
    assert (first["created"], first["before_sha256"], first["before_image"]) == (True, None, "none")
    assert (second["created"], second["before_sha256"], second["before_image"]) == (
        False,
        first["after_sha256"],
        "kept",
    )
    assert [(r["tool"], r["permitted_by"], r["undoable"], r["undone"], r["sure"]) for r in (first, second)] == [
        ("write_file", "script", True, False, True),
        ("edit_file", "policy", True, False, True),
    ]
    assert (found[5]["tool"], found[5]["summary"]) == ("bash", "touch b.txt")
    text = lines(program, "files")
    assert text[0] == f"{program.workspace}/a.txt  [as left]"
    assert "#1  write_file  created  none -> 2c8b08da5ce6  [yes by script; asked by default for write_file" in text[1]
    assert "#2  edit_file  changed  2c8b08da5ce6 -> 27dd8ed44a83  [default for edit_file (policy.toml:7)]" in text[2]
    assert text[1].endswith("can be undone")
    assert text[-3:-1] == [
        "2 files, 3 changes in 2 sessions",
        "besides, 1 command could write; what it changed is not recorded, but where it could be:",
    ]


@all_rows(
    ("then", "on_disk"),
    [
        pytest.param(lambda path: None, "as left", id="as left"),
        pytest.param(lambda path: path.write_text("mine"), "changed since", id="changed"),
        pytest.param(lambda path: path.unlink(), "gone", id="gone"),
        pytest.param(lambda path: path.write_text("old\n"), "as before", id="put back by hand"),
        pytest.param(
            lambda path: (path.unlink(), path.mkdir()), "not looked at: not a regular file", id="a folder now"
        ),
        pytest.param(
            lambda path: (path.unlink(), path.symlink_to("/etc/passwd")),
            "not looked at: not a regular file",
            id="link",
        ),
        pytest.param(
            made_pipe,
            "not looked at: not a regular file",
            id="a pipe: not opened",
        ),
        pytest.param(lambda path: os.truncate(path, 64_000_001), "not looked at: larger than 64 MB", id="a huge file"),
    ],
    fresh=True,
)
def test_later_state_of_a_file_is_shown(program: Program, then: Callable[[Path], object], on_disk: str) -> None:
    path = program.workspace / "a.txt"
    path.write_text("old\n")
    work(program, call("read_file", path="a.txt"), WRITE)
    then(path)
    assert lines(program, "files")[0] == f"{path}  [{on_disk}]"


def test_impossible_and_completed_undo_are_shown(program: Program) -> None:
    path = program.workspace / "a.txt"
    path.write_text("old\n")
    work(program, call("read_file", path="a.txt"), WRITE)
    assert lines(program, "files")[1].endswith("can be undone")
    assert program.run("undo").code == 0
    after = lines(program, "files")
    assert after[0].endswith("[as before]")
    assert after[1].endswith("was undone")
    for image in (program.state / "harness" / "before_images").rglob("*"):
        if image.is_file():
            image.unlink()
    work(program, call("read_file", path="a.txt"), WRITE)
    assert [r["undone"] for r in only(program, "files", "change")] == [True, False]
    for image in (program.state / "harness" / "before_images").rglob("*"):
        if image.is_file():
            image.write_text("damaged")
    (change,) = [r for r in only(program, "files", "change") if not r["undone"]]
    assert (change["undoable"], change["before_image"]) == (False, "missing")
    assert lines(program, "files")[2].endswith("cannot be undone: the earlier content is not saved")


def test_change_with_an_unknown_outcome_is_listed_as_possible(program: Program) -> None:
    log = crashed(program, WRITE)
    text = lines(program, "files", str(log))
    assert "MAY HAVE CHANGED" in text[1]
    (row,) = only(program, "files", "change", str(log))
    assert row["sure"] is False


REACH = b"""
version = 1
name = "reach"
[tools]
bash = "auto"
default = "auto"
readers = true
[[rule]]
id = "script"
decision = "auto"
argv = ["python3", "s.py"]
write = [".", "~/.cache/x/"]
network = true
match = ["python3 s.py"]
not_match = ["python3 t.py"]
"""


@pytest.fixture
def reached(program: Program) -> Program:
    """Calls that read and write inside and outside, one of which no model tells what it does, and one that was refused."""
    (program.workspace / "a.txt").write_text("one\n")
    commands = ("cat a.txt /etc/hostname", "cp a.txt b.txt", "python3 s.py", "rm -rf /", "touch /srv/harness-none")
    calls = [call("read_file", path="a.txt"), *(call("bash", command=one) for one in commands[:3])]
    work(program, *calls, call("bash", command=commands[4]), approver=deny_all, policy=REACH)
    return program


def test_read_files_are_listed(reached: Program) -> None:
    a, hostname = str(reached.workspace / "a.txt"), "/etc/hostname"
    found = only(reached, "reads", "")
    assert [(r["row"], r.get("path"), r.get("call"), r.get("outside")) for r in found] == [
        ("read", hostname, 2, True),
        ("read", a, 1, False),
        ("read", a, 2, False),
        ("read", a, 3, False),
        ("unknown_reads", None, 4, None),
        ("counts", None, None, None),
    ]
    text = lines(reached, "reads")
    assert text[0] == f"{hostname}  [outside the workspace]"
    assert text[1].endswith("#2  bash  cat a.txt /etc/hostname  ok  [model of cat, readers (policy.toml:7)]")
    assert text[-3:-1] == [
        "2 files and folders read in 1 session",
        "not among them: what 1 call read of which no model tells all",
    ]
    assert "#4  bash  python3 s.py  failed  [rule script " in text[-1]


def test_calls_outside_the_workspace_and_on_the_network_are_listed(reached: Program) -> None:
    first, second, counts = only(reached, "outside", "")
    assert (first["call"], first["reads"], first["writes"], first["network"]) == (2, ["/etc/hostname"], [], False)
    assert (second["call"], second["may_write"], second["network"]) == (4, ["~/.cache/x/"], True)
    assert {name: counts[name] for name in ("calls", "read", "wrote", "network", "unknown_reads")} == {
        "calls": 2, "read": 1, "wrote": 1, "network": 1, "unknown_reads": 1,
    }  # fmt: skip
    text = lines(reached, "outside")
    assert text[0].endswith("  read /etc/hostname")
    assert text[1].endswith("  could write ~/.cache/x/; could reach the network")
    (last,) = text[2:]
    counted = "2 calls outside the workspace: 1 read there, 1 could write there, 1 could reach the network"
    assert last == f"{counted}, in 1 session; what 1 call read is not known (`harness audit reads`)"


def test_commands_that_could_change_files_are_listed(reached: Program) -> None:
    copy, script = only(reached, "files", "command")
    targets = [f"{reached.workspace}/b.txt", f"{reached.workspace}/b.txt/a.txt"]  # the second where b.txt is a folder
    assert (copy["writes"], copy["writes_known"], copy["may_write"]) == (targets, True, [])
    assert (script["writes"], script["writes_known"], script["may_write"]) == ([], False, [".", "~/.cache/x/"])
    text = lines(reached, "files")
    assert text[-2].endswith(f"cp a.txt b.txt  [could write {', '.join(targets)}]")
    assert text[-1].endswith("python3 s.py  [could write the workspace, ~/.cache/x/; could reach the network]")


def test_a_file_that_was_changed_on_another_machine(program: Program) -> None:
    log = work(program, WRITE)
    copy = program.home / "foreign.jsonl"
    copy.write_text(log.read_text().replace(f'"host":"{os.uname().nodename}"', '"host":"elsewhere"'))
    done = program.run("audit", "files", str(copy))
    assert "changed on elsewhere]" in done.out
    assert (done.code, "is BROKEN at line" in done.err) == (1, True)


# every question


EMPTY = {
    "approvals": "nobody was asked anything in 2 sessions",
    "denied": "no call was refused in 2 sessions",
    "unknown": "every call that was begun in 2 sessions has an end, and every session",
    "files": "0 files, 0 changes in 2 sessions",
    "reads": "0 files and folders read in 2 sessions",
    "outside": "no call is known to have left the workspace, in 2 sessions",
}


@all_rows("question", list(EMPTY), fresh=True)
def test_empty_answer_is_stated(program: Program, question: str) -> None:
    for _ in range(2):
        work(program, call("frob") if question == "reads" else call("read_file", path="none.txt"))
    assert lines(program, question) == [EMPTY[question]]
    assert [row["row"] for row in only(program, question, "")] == ["counts"]


@all_rows("question", [*EMPTY, "show"])
def test_broken_log_exits_1_with_a_message(program: Program, question: str) -> None:
    log = work(program, WRITE)
    log.write_text(log.read_text().replace("a.txt", "b.txt", 1))
    done = program.run("audit", question)
    assert (done.code, "is BROKEN at line" in done.err) == (1, True)


@all_rows("question", [*EMPTY, "list", "show"], fresh=True)
def test_arguments_select_the_logs(program: Program, question: str) -> None:
    """Those of this workspace; all; a folder; one session; and a file that is named twice counts once."""
    first, second = work(program, WRITE), work(program, call("write_file", path="b.txt", content="b"))
    other = program.home / "other"
    other.mkdir()

    def logs(*words: str, **options: object) -> set[str]:
        done = program.run("audit", question, "--json", *words, **options)
        assert done.code == 0, done.err
        return {row["log"] for row in rows(done) if "log" in row} if question != "show" else _sessions(rows_of(done))

    def rows_of(done: Done) -> list[Row]:
        return [json.loads(line) for line in done.out.splitlines()]

    every = _sessions([json.loads(line) for log in (first, second) for line in log.read_text().splitlines()])
    session = json.loads(first.read_text().splitlines()[0])["session"]
    if question in ("approvals", "files", "list"):
        assert logs() == {str(first), str(second)}
        assert logs(str(first.parent)) == {str(first), str(second)}
        assert logs("--all", cwd=other) == {str(first), str(second)}
        assert logs("--session", session[:8], cwd=other) == {str(first)}
        once = program.run("audit", question, "--json", str(first)).out
        assert program.run("audit", question, "--json", str(first), str(first)).out == once
    elif question == "show":
        assert len(logs()) == 1
        assert logs("--all") == every
        assert logs("--session", session) == {session}
    assert program.run("audit", question, "--session", "zz").code == 2
    assert program.run("audit", question, str(other)).code == 2
    assert program.run("audit", question, str(other / "missing")).code == 2


def _sessions(records: Iterable[Row]) -> set[str]:
    return {str(record["session"]) for record in records}


@all_rows("question", [*EMPTY, "list", "show"])
@all_rows("form", [(), ("--json",)])
def test_closed_pipe_exits_141(program: Program, question: str, form: tuple[str, ...]) -> None:
    steps = [step for number in range(1, 300) for step in asked(number)]
    log = write(program.home / "long.jsonl", lines_of((started(), *steps, ended())))
    read, written = os.pipe()
    os.close(read)
    process = program.start("audit", question, *form, str(log), stdout=written)
    os.close(written)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 141
    assert b"Traceback" not in err


def asked(number: int, **more: JsonValue) -> tuple[Step, ...]:
    """A call that a person allowed, and that changed a file."""
    digests: dict[str, JsonValue] = {"before_sha256": DIGEST, "after_sha256": DIGEST}
    return (
        proposed(number, "write_file"),
        decided(number, "confirm", "write_file"),
        ("approval_asked", {"call": number, "shown_sha256": DIGEST}),
        ("approval_answered", {"call": number, "answer": "yes", "by": "person", "words": "", "seconds": 2.0}),
        intended(number, "write_file", change={"path": f"/srv/{number}", "before_mode": 420, **digests}),
        done(number, "Wrote", "write_file", changed_path=f"/srv/{number}", **digests),
    )


# list


def test_list_shows_counts_and_ends(program: Program) -> None:
    log = work(program, WRITE, TOUCH, LS, approver=deny_all)
    (row,) = only(program, "list", "session")
    assert (row["calls"], row["asked"], row["refused"], row["state"], row["stop"]) == (3, 2, 2, "ended", "completed")
    (line,) = lines(program, "list")
    session = row["session"]
    assert re.fullmatch(
        rf"{session}  \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\dZ  run  playing  {re.escape(str(program.workspace))}  "
        rf"3 calls / 2 asked / 2 refused  completed  \d+ (B|kB)  {re.escape(str(log))}",
        line,
    )


@all_rows(
    ("content", "said"),
    [
        pytest.param(b"", "no session  empty  0 B", id="empty"),
        pytest.param(
            b"garbage\n", "no session  BROKEN: line 1 is no record; what follows was not counted", id="garbage"
        ),
        pytest.param(b'{"torn', "no session  open, and its last line is torn", id="torn at once"),
        pytest.param(
            b"".join(line + b"\n" for line in lines_of((started(), *one_call(1)))) + b'{"x', "torn", id="torn"
        ),
        pytest.param(
            b"".join(line + b"\n" for line in lines_of((started(), proposed(1)))) + b"x\n", "line 3", id="broken"
        ),
    ],
)
def test_list_names_problems_of_a_file(program: Program, content: bytes, said: str) -> None:
    log = program.home / "x.jsonl"
    log.write_bytes(content)
    (line,) = lines(program, "list", str(log))
    assert said in line


def test_list_shows_each_session_of_a_file(program: Program) -> None:
    first = lines_of((started(), *one_call(1), ended()), session="a" * 12)
    both = first + lines_of((started(mode="repl"), *one_call(1), *one_call(2)), session="b" * 12, after=first)
    log = write(program.home / "two.jsonl", both)
    found = only(program, "list", "session", str(log))
    assert [(r["session"], r["calls"], r["state"], r["mode"]) for r in found] == [
        ("a" * 12, 1, "ended", "run"),
        ("b" * 12, 2, "open", "repl"),
    ]
    assert only(program, "list", "session", str(log), "--session", "bbb")[0]["session"] == "b" * 12


def test_empty_list_is_one_line(program: Program) -> None:
    assert lines(program, "list") == [f"no action log of {program.workspace}; --all takes the logs of every folder"]
    assert program.run("audit", "approvals").code == 2


# show


@pytest.fixture
def mixed(program: Program) -> Program:
    """A session with a call of every kind."""
    (program.workspace / ".env").write_text("KEY=1\n")
    clock = Clock()
    calls = [WRITE, LS, TOUCH, call("read_file", path=".env"), ToolCall(id="x", name="bash", arguments="{")]
    work(program, *calls, approver=person(clock, ("yes", 3.0), ("no", 2.0, "no")), clock=clock)
    return program


@all_rows(
    ("words", "calls"),
    [
        pytest.param("--tool bash", {2, 3, 5}, id="tool"),
        pytest.param("--decision auto", {2}, id="auto"),
        pytest.param("--decision confirm", {1, 3}, id="confirm"),
        pytest.param("--decision deny", {4}, id="deny"),
        pytest.param("--decision block", set(), id="block"),
        pytest.param("--decision none", {5}, id="never judged"),
        pytest.param("--answer yes", {1}, id="yes"),
        pytest.param("--answer no", {3}, id="no"),
        pytest.param("--answer unanswered", set(), id="no answer"),
        pytest.param("--rule secrets", {4}, id="rule"),
        pytest.param("--rule listing", {2}, id="another rule"),
        pytest.param("--rule default", {1, 3}, id="a part of what decided"),
        pytest.param("--path .env", {4}, id="a path that was named"),
        pytest.param("--path a.txt", {1}, id="a path that was changed"),
        pytest.param("--path b.txt", {3}, id="a path that a command names"),
        pytest.param("--since 1h", {1, 2, 3, 4, 5}, id="since an hour"),
        pytest.param("--since 2000-01-01 --until 2001-01-01", set(), id="long ago"),
        pytest.param("--until 2000-01-01T00:00:00+01:00", set(), id="until"),
        pytest.param("--call 3", {3}, id="number"),
        pytest.param("--tool bash --answer no", {3}, id="two filters"),
        pytest.param("--tool bash --decision deny", set(), id="two that exclude each other"),
    ],
)
def test_show_takes_the_calls_that_fit(mixed: Program, words: str, calls: set[int]) -> None:
    text = lines(mixed, "show", *words.split())
    assert {int(found[1]) for line in text if (found := re.search(r"^\d\d:\d\d:\d\d  #(\d+) ", line))} == calls
    assert ("no call fits in 1 session" in text) == (not calls)
    assert not any("> go" in line for line in text)
    records = [json.loads(line) for line in mixed.run("audit", "show", "--json", *words.split()).out.splitlines()]
    assert {record["call"] for record in records} == calls


def test_show_describes_a_call(mixed: Program) -> None:
    text = "\n".join(line[10:] for line in lines(mixed, "show"))
    assert "#1 + write_file  a.txt  [asked: yes by person, 3.0 s]  ok" in text
    assert "confirm  write a.txt  [default for write_file (policy.toml:6)]" in text
    assert f"made {mixed.workspace}/a.txt  none -> 2c8b08da5ce6" in text
    assert '#3 x bash  touch b.txt  [asked: no by person, 2.0 s: "no"]  denied' in text
    assert "#4 x read_file  .env  [deny: rule secrets (policy.toml:15)]  denied" in text
    assert "#5 ! bash" in text


def test_full_show_omits_no_text(mixed: Program) -> None:
    brief, full = lines(mixed, "show"), lines(mixed, "show", "--full")
    assert '          | {"path": "a.txt", "content": "one\\\\n"}' in [line.replace("\\n", "\\\\n") for line in full]
    assert any(line.startswith("          system prompt:") for line in full)
    assert any("| Denied by the person" in line for line in full)
    assert not any(line[10:].startswith(("|", "system prompt", "arguments")) for line in brief)


def test_show_marks_the_unknown_in_red_on_a_terminal(program: Program) -> None:
    log = crashed(program, WRITE)
    assert "#1 ? write_file  a.txt  [asked: yes by script, 0.0 s]  UNKNOWN: it was begun" in "\n".join(
        lines(program, "show", str(log))
    )
    assert "\x1b[1;31m" in _on_terminal(program, "audit", "show", str(log))


def _on_terminal(program: Program, *words: str) -> str:
    master, slave = os.openpty()
    process = program.start(*words, stdout=slave, stderr=None)
    os.close(slave)
    pieces = []
    while True:
        try:
            piece = os.read(master, 65_536)
        except OSError:  # the other end was closed
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(master)
    assert process.wait(timeout=120) == 0
    return b"".join(pieces).decode()


def test_show_heads_each_session_and_each_new_date(program: Program) -> None:
    first = lines_of((started(), *one_call(1), ended()), session="a" * 12)
    late: Step = ("user_message", {"text": "on", "time": "2024-05-02T00:00:01.000000Z"})
    second = (started(time="2024-05-01T23:59:59.000000Z"), late)
    log = write(program.home / "two.jsonl", first + lines_of(second, session="b" * 12, after=first))
    text = lines(program, "show", str(log))
    assert [line for line in text if line.endswith("(UTC)")] == ["2024-05-01 (UTC)", "2024-05-02 (UTC)"]
    assert [line[10:30] for line in text if line[10:].startswith("session ") and " in /srv" in line] == [
        "session aaaaaaaaaaaa",
        "session bbbbbbbbbbbb",
    ]
    both = [*first, *lines_of((started(),), session="b" * 12, after=first)]
    interleaved = [both[0], *lines_of((started(),), session="b" * 12, after=both[:1])]
    interleaved += lines_of(one_call(1), session="a" * 12, after=interleaved)
    text = lines(program, "show", str(write(program.home / "mixed.jsonl", interleaved)))
    assert "          session aaaaaaaaaaaa goes on" in text


@all_rows("word", ["soon", "2024-13-01", "2024-05-01T10:00:00", "3y", "99999999d", "", "\u0661d"])
def test_show_refuses_an_invalid_time(program: Program, word: str) -> None:
    done = program.run("audit", "show", "--since", word)
    assert done.code == 2
    assert "Traceback" not in done.err


# hostile logs


ESCAPES = "\x1b[2J\x9b31m\u202e\u200b\r\n\t\x00\x7f\u2028\ud800 =1+1 <b>&\U000e0041"
DEEP: JsonValue = json.loads("[" * 300 + "]" * 300)
HOSTILE: tuple[JsonValue, ...] = (
    ESCAPES,
    "x" * 500,
    None,
    True,
    -1,
    10**400,
    1.5e300,
    float("inf"),
    float("nan"),
    [],
    {},
    [ESCAPES, {"a": 1}],
    {"path": ESCAPES, "call": ESCAPES, "by": [], "facet": 3},
    DEEP,
)
FIELDS = (
    "call tool arguments summary decision by reason rule file line layer source facets facet_count effects answer words "
    "seconds edited_to edited_from change changed_path before_sha256 after_sha256 status content duration_ms exit_code "
    "shown_sha256 confinement cwd user host mode model workspace stop detail text why messages result path of_session "
    "mono_ns limit where message retry_seconds system policy_files torn_bytes kept_in purpose arguments_characters argv"
).split()
KINDS = (
    "session_started", "user_message", "model_response", "call_proposed", "decision", "approval_asked",
    "approval_answered", "intent", "outcome", "history_changed", "restored", "recovered", "limit", "error", "session_ended",
)  # fmt: skip


FULL = bool(os.environ.get("HARNESS_FULL"))


def hostile_log(path: Path) -> Path:
    """Write a log in which each field of each kind is of each wrong make, beside calls that are as they should be.

    Each field has every second make; with HARNESS_FULL all of them.
    """
    with path.open("w") as file:

        def put(record: dict[str, JsonValue]) -> None:
            file.write(json.dumps(record, sort_keys=True, separators=(",", ":")) + "\n")

        common: dict[str, JsonValue] = {"v": 1, "seq": 0, "time": ESCAPES, "prev": "", "mono_ns": 1}
        sound = [record for step in [(started(user=ESCAPES), *asked(1))] for record in step]
        for number, value in enumerate(HOSTILE):
            session = f"{ESCAPES}{number}"
            for kind, fields in sound:
                put({**common, "session": session, "kind": kind, **fields})
            for kind in KINDS:
                put({**common, "session": session, "kind": kind, **dict.fromkeys(FIELDS, value)})
            for call, name in enumerate(FIELDS, start=2):
                if name in ("call", "status") or not (FULL or (number + call) % 2):
                    continue
                for kind, fields in asked(call):
                    put({**common, "session": session, "kind": kind, **fields, name: value})
                more = {"session": session, "tool": "bash", name: value}
                put({**common, "kind": "intent", "call": call + 1_000, **more})
                put({**common, "kind": "decision", "call": call + 2_000, "decision": "deny", **more})
                put({**common, "kind": "outcome", "call": call + 2_000, "status": "denied", **more})
        for kind, fields in asked(9_999):
            put(
                {
                    **common,
                    "session": "huge",
                    "kind": kind,
                    **fields,
                    **({"arguments": "y" * 1_000_000} if "step" in fields else {}),
                }
            )
        for kind, fields in (started(mode=ESCAPES), proposed(1), ("approval_asked", {"call": 1}), intended(2)):
            put({**common, "session": "open", "kind": kind, **fields})
    return path


UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\U000e0000-\U000e007f]")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_log(tmp_path_factory.mktemp("hostile") / "hostile.jsonl")


@all_rows("form", [(), ("--json",)], ids=["text", "json"])
@all_rows(
    "question",
    ["list", "show", "show --full", "show --tool bash", "show --rule x --path y", "approvals", "denied --invalid",
     "unknown", "files", "reads", "outside"],
)  # fmt: skip
def test_a_hostile_log_is_answered_safely(
    program: Program, hostile: Path, question: str, form: tuple[str, ...]
) -> None:
    done = program.run("audit", *question.split(), *form, str(hostile))
    assert "internal error" not in done.err
    assert "Traceback" not in done.err
    assert done.code == (0 if question == "list" else 1)
    assert (UNSAFE.findall(done.out), UNSAFE.findall(done.err)) == ([], [])
    assert done.out or "--path" in question
    if form:
        for line in done.out.splitlines():
            assert isinstance(json.loads(line, parse_constant=_no_constant), dict)


def _no_constant(name: str) -> float:
    raise AssertionError(f"{name} is not JSON")


def test_log_text_never_starts_a_line(program: Program, hostile: Path) -> None:
    """One line an item: as many lines of text as objects, but for the counts."""
    for question in ("approvals", "denied", "unknown", "outside"):
        objects = [row for row in only(program, question, "", str(hostile)) if row["row"] != "counts"]
        text = program.run("audit", question, str(hostile)).out.splitlines()
        assert len(text) == len(objects) + 1, question


def test_reading_stops_at_an_invalid_line_with_a_message(program: Program) -> None:
    """Of many logs that are not verified, a line that is none is said, and what follows is not left out silently."""
    big = write(program.home / "big.jsonl", lines_of((started(), *asked(1))))
    with big.open("a") as file:
        file.write('{"kind":"intent","call"\n')
        file.write("".join(f'{{"kind":"x","y":"{"z" * 1_000}"}}\n' for _ in range(33_000)))
    done = program.run("audit", "approvals", str(big))
    assert "were not verified" in done.err
    assert "line 8 is no whole record; what follows in that log is left out" in done.err
    assert (done.code, "1 asked: 1 yes" in done.out) == (1, True)


@pytest.mark.forges_logs
def test_show_handles_missing_workspaces_and_carried_conversations(program: Program) -> None:
    kind, fields = started()
    begun: Step = kind, {name: value for name, value in fields.items() if name != "workspace"}
    changed: Step = "history_changed", {"why": "forked", "start": 0, "stop": 0, "messages": [{}, {}]}
    log = write(program.home / "log.jsonl", lines_of((begun, changed, ended())))
    shown = program.run("audit", "show", str(log)).out
    assert ("session 0123456789ab: harness " in shown, " in :" in shown) == (True, False), shown
    assert "(forked): 2 messages in place of 0, from number 0 on" in shown, shown


@all_rows("model,said", [("m-1", "harness 0.1.0, model m-1, policy p"), (None, "harness 0.1.0, policy p")])
def test_a_session_without_a_model_names_none(model: str | None, said: str, program: Program) -> None:
    step = started(policy="p", **({} if model is None else {"model": model}))
    log = write(program.home / "log.jsonl", lines_of((step, ended())))
    assert said in "\n".join(lines(program, "show", str(log)))


def test_model_settings_are_shown_below_the_model_name(program: Program) -> None:
    said: dict[str, JsonValue] = {"effort": "low\x1b[2J", "stop": ["END"], "extra_headers": ["x-team"]}
    changed: Step = (
        "model_changed",
        {"model": "small", "profile": "fast", "call_form": "text", "model_settings": {"seed": 7}},
    )
    plain: Step = "model_changed", {"model": "other"}
    steps = (started(model="m-1", policy="p", model_settings=said), changed, plain, ended())
    shown = program.run("audit", "show", str(write(program.home / "log.jsonl", lines_of(steps)))).out
    assert 'model settings: {"effort": "low\\u001b[2J", "extra_headers": ["x-team"], "stop": ["END"]}\n' in shown, shown
    assert '~ model small is asked from here on: profile fast, calls by text, {"seed": 7}\n' in shown, shown
    assert "~ model other is asked from here on\n" in shown, shown
