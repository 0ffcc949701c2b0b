"""Runs to report on: facts gathered of records that are made here, and records that hold anything anywhere."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from typing import Any

from forged_logs import DIGEST, decided, done, ended, intended, one_call, proposed, started

from harness.actions import JsonValue
from harness.app.run.facts import RunFacts
from harness.app.run.reported import ReportedRun
from harness.app.run.result import result_object
from harness.log.order import LogRecord
from harness.log.schema import RECORDS
from harness.session.shipped_plugins import report_form

Step = tuple[str, Mapping[str, JsonValue]]


OTHER, THIRD = "e" * 64, "f" * 64


def gathered(*steps: Step, session: str = "s") -> RunFacts:
    facts = RunFacts()
    for seq, (kind, fields) in enumerate(steps):
        facts.record(
            {"kind": kind, "session": session, "time": "2024-05-01T10:00:00Z", "mono_ns": seq * 10**9, **fields}
        )
    return facts


def told(facts: RunFacts, **more: Any) -> dict[str, JsonValue]:
    given: dict[str, Any] = {
        "answer": "a", "code": 0, "cost": None, "model": "m", "policy": "ci", "policy_sha256": DIGEST, "log": "/l.jsonl",
        "head": DIGEST, "records": 3,
    }  # fmt: skip
    return result_object(facts, **{**given, **more})


def outcome(number: int, status: str, content: str = "", **more: JsonValue) -> Step:
    fields: dict[str, JsonValue] = {"call": number, "tool": "bash", "status": status, "content": content}
    return "outcome", {**fields, **more}


def refused_call(number: int, status: str = "denied", decision: str = "deny") -> tuple[Step, ...]:
    return proposed(number), decided(number, decision), outcome(number, status)


def written(number: int, path: str, before: str | None, after: str) -> tuple[Step, ...]:
    tool = "write_file"
    kind, fields = done(number, tool=tool)
    change: dict[str, JsonValue] = {"changed_path": path, "before_sha256": before, "after_sha256": after}
    return proposed(number, tool), decided(number, tool=tool), intended(number, tool), (kind, {**fields, **change})


ODD: Sequence[Any] = (
    None, True, -1, 2**70, 1.5, "", "\ud800\x1b[2J\u202e\n", "x" * 9_000, [], [1, [2]], {}, {"a": {"b": []}}, ["\ud800"],
    {"path": 7, "sha256": []}, "denied", "blocked", "nobody", "2024-05-01T10:00:00Z", "`|<b>@[a](b)",
)  # fmt: skip


KINDS = (*RECORDS, "advice", "answer_checked", "diverged", "unheard_of")


MORE_FIELDS = (
    "dry_run plan replay attached toml why call fits problem request message role recorded now exit_code".split()
)


def odd_records(seed: int, count: int) -> list[LogRecord]:
    """Return records of every kind with anything in any field, most of them of one session and of few calls."""
    chance = random.Random(seed)
    records: list[LogRecord] = [{"kind": "session_started", "session": "s", "time": chance.choice(ODD)}]
    for _ in range(count):
        kind = chance.choice(KINDS)
        names = [name.removesuffix("?") for name in RECORDS.get(kind, {})] + MORE_FIELDS
        record: dict[str, Any] = {name: chance.choice(ODD) for name in names if chance.random() < 0.8}
        record |= {"kind": kind, "session": "s", "time": chance.choice(ODD), "mono_ns": chance.choice(ODD)}
        if "call" in record and chance.random() < 0.8:
            record["call"] = chance.randrange(6)
        if kind == "outcome" and chance.random() < 0.6:
            record["status"] = chance.choice(("denied", "blocked", "ok", "invalid", "not_run"))
        records.append(record)
    return records


SCHEMAS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "schemas")


HOSTILE = (
    "@octocat #1 GH-1 owner/repo#2 https://evil.example www.evil.example mailto:a@b.example [x](https://evil.example)"
    " ![i](http://e) <img src=x> <script> --> ]]> | \\| `code` ``` ~~~ **b** __u__ _i_ :+1: $x$ &lt; &#60; \\"
    " {0} \x1b[2J\u202e\u200b\x00\ud800\ufffe\u2028 end\n\n# heading\n\n```\n</details>\n| a | b |\n"
)


def text_of(form: str, runs: Sequence[ReportedRun], *, with_answer: bool = False) -> str:
    return "".join(report_form(form).write(runs, with_answer=with_answer))


def run_of(facts: RunFacts, *, name: str = "", answer: str = "", **more: Any) -> ReportedRun:
    return ReportedRun(name=name, facts=facts, result=told(facts, answer=answer, **more))


def hostile_facts() -> RunFacts:
    """Facts in which every text that a log can hold is hostile."""
    kind, fields = decided(1, "deny", HOSTILE)
    spoiled: Mapping[str, JsonValue] = {
        "summary": HOSTILE, "by": HOSTILE, "rule": HOSTILE, "file": HOSTILE, "layer": HOSTILE, "reason": HOSTILE,
        "source": HOSTILE, "facets": [{"facet": HOSTILE, "kind": "Command", "decision": "deny", "by": HOSTILE}],
    }  # fmt: skip
    asked: Step = ("approval_answered", {"call": 1, "answer": "nobody", "by": HOSTILE, "words": HOSTILE, "seconds": 0})
    names = "model policy policy_sha256 harness mode confinement user git_head time".split()
    return gathered(
        started(**dict.fromkeys(names, HOSTILE), dry_run=True, replay={"path": HOSTILE, "sha256": HOSTILE}),
        proposed(1, HOSTILE, HOSTILE), (kind, {**fields, **spoiled}), asked, outcome(1, "denied", HOSTILE),
        ("advice", {"call": 1, "toml": HOSTILE, "why": HOSTILE}),
        proposed(2, HOSTILE, HOSTILE), outcome(2, "invalid", HOSTILE), proposed(3, HOSTILE), outcome(3, HOSTILE, HOSTILE),
        proposed(4, HOSTILE), outcome(4, "not_run", HOSTILE), *written(5, f"/srv/shop/{HOSTILE}", None, OTHER),
        ("limit", {"limit": HOSTILE, "last_action": HOSTILE}),
        ("error", {"where": HOSTILE, "message": HOSTILE, "fault": HOSTILE}),
        ("answer_checked", {"fits": False, "problem": HOSTILE}),
        ("diverged", {"request": 1, "message": HOSTILE, "role": HOSTILE, "recorded": HOSTILE, "now": HOSTILE}),
        ended(stop=HOSTILE, detail=HOSTILE),
    )  # fmt: skip


def hostile_run() -> ReportedRun:
    more = {"end": HOSTILE, "detail": HOSTILE, "model": HOSTILE, "log": HOSTILE, "head": HOSTILE, "code": 6}
    return run_of(hostile_facts(), name=HOSTILE, answer=HOSTILE, **more)


def a_run(name: str = "task-1", *, code_: int = 7) -> ReportedRun:
    steps: list[Step] = [
        started(model="gpt", policy="ci"),
        *one_call(1),
        *refused_call(2),
        ("advice", {"call": 2, "toml": "[[rule]]\nid = 'x'"}),
        *refused_call(3, "blocked", "block"),
        ("advice", {"call": 3, "why": "rule push denies it"}),
        proposed(4),
        outcome(4, "not_run", "Not run: the run was halted"),
        *written(5, "/srv/shop/a.py", None, OTHER),
        ("limit", {"limit": "2 requests were made", "last_action": "bash"}),
        ended(stop="limit", detail="a limit"),
    ]
    facts = gathered(*steps)
    return run_of(facts, name=name, answer="The answer.", code=code_, log="/state/l.jsonl", cost=0.5)
