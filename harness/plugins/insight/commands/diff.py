"""`harness audit diff A B`: the differences between two sessions, one per line."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from harness.actions import JsonValue
from harness.app.audit.logs import ChosenLogs
from harness.app.sessions import LoggedSession, logged_sessions, session_named
from harness.errors import UsageError
from harness.log.heads_file import HeadsFile
from harness.plugins.insight.difference import (
    ACCOUNT_KINDS,
    Account,
    CallAccount,
    Difference,
    DifferenceKind,
    account_of,
    differences,
)
from harness.session.exits import Exit
from harness.session.state import State
from harness.terminal.console import FinishedOutput
from harness.terminal.styles import Tone
from harness.text.visible import visible_line

DIFFERENT = 1
"""Exit code if the sessions differ."""
_SIGNS = {
    DifferenceKind.ONLY_LEFT: "-",
    DifferenceKind.ONLY_RIGHT: "+",
    DifferenceKind.OTHER: "~",
    DifferenceKind.SAME: " ",
}


def command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Compare two sessions, write the differences, and return the exit code. Raises HarnessError."""
    state = State.of(environment)
    left, right = (_account(name, state) for name in (arguments.left, arguments.right))
    rows = differences(left, right)
    count: Counter[DifferenceKind] = Counter()
    console = FinishedOutput(environment)
    for row in _without(rows, count):
        if arguments.json:
            sys.stdout.write(f"{json.dumps(_as_json(row))}\n")
        else:
            console.line(_line(row), _TONES.get(row.change, Tone.PLAIN))
    differs = bool(sum(count.values()) - count[DifferenceKind.SAME])
    if arguments.json:
        summary = {change.value: count[change] for change in DifferenceKind}
        ends = {"a": _account_as_json(left), "b": _account_as_json(right)}
        sys.stdout.write(f"{json.dumps({'row': 'counts', **ends, **summary, 'different': differs})}\n")
    else:
        for line in _summary(left, right, count, differs=differs):
            console.line(line)
    return DIFFERENT if differs else Exit.DONE


_TONES = {DifferenceKind.ONLY_LEFT: Tone.BAD, DifferenceKind.ONLY_RIGHT: Tone.GOOD}


def _without(rows: Iterable[Difference], count: Counter[DifferenceKind]) -> Iterator[Difference]:
    """Count all rows, and yield those that differ."""
    for row in rows:
        count[row.change] += 1
        if row.change is not DifferenceKind.SAME:
            yield row


def _account(name: str, state: State) -> Account:
    """Return the account of the named session. First report any problem of its log."""
    logged_session = _find(name, state)
    chosen = ChosenLogs([logged_session.path], logged_session.session, HeadsFile(state.heads))
    chosen.tell_standing()
    return account_of(
        logged_session.path, logged_session.session, (record for _, record in chosen.records(ACCOUNT_KINDS))
    )


def _find(name: str, state: State) -> LoggedSession:
    """Return the session named `LOG`, `LOG#ID` or `ID`, where `ID` is a prefix of its ID. Raises UsageError."""
    path, _, session = name.rpartition("#") if not os.path.exists(name) and "#" in name else (name, "", "")
    if os.path.exists(path):
        paths = [path]
    elif "/" in path:
        raise UsageError(f"no such file: {path}")
    else:
        paths, session = state.log_paths(), path
    sessions = logged_sessions(paths, undoings=bool(session))
    if session:
        return session_named(sessions, session)
    if len(sessions) != 1:
        names = ", ".join(f"#{visible_line(candidate.session, 20)}" for candidate in sessions[:5])
        raise UsageError(
            f"{path} holds {len(sessions)} sessions; name one behind it: {names}" if names else f"{path}: no session"
        )
    return sessions[0]


def _line(row: Difference) -> str:
    match row.kind:
        case "call":
            text = f"{_calls(row.calls)}{'; '.join(_field(*field) for field in row.fields)}"
        case "prompt":
            text = f"asked: {visible_line(row.left or row.right, 150)}"
        case "file":
            text = f"file {visible_line(row.name, 200)}: {_sides(_short(row.left), _short(row.right))}"
        case "end":
            text = f"ended: {_sides(row.left or 'never', row.right or 'never')}"
        case _:
            text = f"{row.name}: {_sides(row.left, row.right)}"
    return f"{_SIGNS[row.change]} {text}"


def _calls(calls: tuple[CallAccount | None, CallAccount | None]) -> str:
    numbers = "/".join(dict.fromkeys(f"#{visible_line(call.number, 20)}" for call in calls if call is not None))
    call = calls[0] or calls[1]
    if call is None:
        return ""
    call_text = f"{numbers} {visible_line(call.tool, 40)}  {visible_line(call.summary, 100)}"
    if calls[0] is not None and calls[1] is not None:
        return f"{call_text}: "
    results = [
        visible_line(value, 40) for name, value in call.results if value and name in ("decision", "answer", "outcome")
    ]
    return f"{call_text} [{', '.join(results)}]"


def _field(name: str, left: str, right: str) -> str:
    cut = _short if name == "left in the file" else str
    return f"{name} {_sides(cut(left), cut(right))}"


def _sides(left: str, right: str) -> str:
    return f"{visible_line(left, 300) or '(nothing)'} -> {visible_line(right, 300) or '(nothing)'}"


def _short(digest: str) -> str:
    return digest[:12]


def _summary(left: Account, right: Account, count: Counter[DifferenceKind], *, differs: bool) -> Iterator[str]:
    for side, account in (("A", left), ("B", right)):
        summary = f"{account.session} of {account.time[:19]}: {len(account.calls)} calls, {account.log}"
        yield visible_line(f"{side}: session {summary}", 500)
    same = f"{count[DifferenceKind.SAME]} calls are the same"
    if not differs:
        yield f"No difference: {same}."
        return
    yield (
        f"{same}; only in A {count[DifferenceKind.ONLY_LEFT]} things, only in B {count[DifferenceKind.ONLY_RIGHT]}, "
        f"otherwise {count[DifferenceKind.OTHER]}"
    )


def _as_json(row: Difference) -> dict[str, JsonValue]:
    values: dict[str, JsonValue] = {"row": row.kind, "change": row.change.value, "name": row.name or None}
    if row.kind != "call":
        return {**values, "a": row.left or None, "b": row.right or None}
    fields: list[JsonValue] = [name for name, _, _ in row.fields]
    return {**values, "a": _told_call(row.calls[0]), "b": _told_call(row.calls[1]), "fields": fields}


def _told_call(call: CallAccount | None) -> JsonValue:
    if call is None:
        return None
    results: dict[str, JsonValue] = {name.replace(" ", "_"): value or None for name, value in call.results}
    return {"call": call.called, "tool": call.tool, "summary": call.summary, "path": call.path or None, **results}


def _account_as_json(account: Account) -> dict[str, JsonValue]:
    return {"log": account.log, "session": account.session, "time": account.time, "calls": len(account.calls)}
