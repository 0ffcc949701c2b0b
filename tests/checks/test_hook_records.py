"""The records about hooks: an audit notices what no gate writes, and tells what one did."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_scene import forged
from rows import all_rows

from harness.actions import JsonValue
from harness.log.verify import verify

PROPOSED = ("call_proposed", {"call": 1})
AUTO = ("decision", {"call": 1, "decision": "auto"})
CONFIRM = ("decision", {"call": 1, "decision": "confirm"})
DENY = ("decision", {"call": 1, "decision": "deny"})
INTENT = ("intent", {"call": 1})
RAN = ("outcome", {"call": 1, "status": "ok"})
DENIED = ("outcome", {"call": 1, "status": "denied"})


def hook(answer: str, event: str = "before-call", call: int | None = 1) -> tuple[str, dict[str, JsonValue]]:
    of_call: dict[str, JsonValue] = {} if call is None else {"call": call}
    return "hook_answered", {"event": event, "answer": answer, **of_call}


@pytest.mark.forges_logs
@all_rows(
    ("steps", "problem"),
    {
        "as a gate writes it": ([PROPOSED, hook("nothing"), AUTO, INTENT, hook("deny", "after-call"), RAN], ""),
        "a deny": ([PROPOSED, hook("deny"), DENY, DENIED], ""),
        "a policy may be stricter": ([PROPOSED, hook("confirm"), DENY, DENIED], ""),
        "of a session": ([hook("nothing", "session-start", None), hook("deny", "session-end", None)], ""),
        "decided more mildly": ([PROPOSED, hook("deny"), AUTO], "more mildly than a hook that was asked about it"),
        "asked, where it denied": ([PROPOSED, hook("deny"), CONFIRM], "more mildly than a hook"),
        "the milder of two": ([PROPOSED, hook("deny"), hook("nothing"), AUTO], "more mildly than a hook"),
        "after it was decided": ([PROPOSED, AUTO, hook("nothing")], "which is not where hooks are asked (before-call)"),
        "after a call that does not run": ([PROPOSED, AUTO, hook("nothing", "after-call")], "(after-call)"),
        "after its end": ([PROPOSED, AUTO, INTENT, RAN, hook("nothing", "after-call")], "(after-call)"),
        "of a call that is none": ([hook("nothing", call=7)], "answer about call 7"),
        "of no call": ([hook("nothing", call=None)], "answer about call None"),
        "a call of a session": ([PROPOSED, hook("nothing", "session-end")], "answer about call 1 at session-end"),
    },
)
def test_impossible_hook_records_break_the_order(
    tmp_path: Path, steps: list[tuple[str, dict[str, JsonValue]]], problem: str
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(forged([("session_started", {}), *steps])))
    found = verify(str(path)).problem
    assert problem in found
    assert bool(problem) == bool(found)
