"""`harness policy fatigue`: the number of questions of old sessions, and the number left with grants.

It runs no call.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence

from harness.actions import JsonValue
from harness.app.audit.logs import BROKEN, chosen_logs
from harness.app.policy.replay import Replay, under_policy
from harness.audit.calls import is_typed
from harness.paths import short_place
from harness.plugins.insight.commands.seen_calls import RecordedPolicies, seen_calls
from harness.plugins.insight.fatigue import SessionFatigue, StillAsked, Take, asking_most, fatigue_of, sparing_most
from harness.plugins.insight.suggestions.candidates import SeenCall
from harness.plugins.insight.suggestions.proposals import RuleProposal, suggestions
from harness.policy.walls_here import WallsHere
from harness.record import Record
from harness.session.state import State
from harness.terminal.console import Console, FinishedOutput, complain
from harness.terminal.styles import Tone
from harness.terminal.tables import Column, Table, TableRow
from harness.text.amounts import count_of
from harness.text.visible import visible_line

UNKNOWN_POLICY = "its questions are not counted"
ASKED_NOW = "Asked now is by the policy alone: no grant that you keep counts."
BEST_CASE = "With grants is the best case: each grant is taken when it is first offered, and walls hold."
LEAST = 2
"""Minimum number of questions that a proposed rule must save."""
MOST_LINES = 8


class WearySession(Record):
    """A session of a log, and its questions."""

    log: str
    session: str
    calls: int
    """Number of decided calls, without those that the user typed."""
    typed: int
    fatigue: SessionFatigue


def fatigue_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Write the questions of each session, the most frequent sources, and the rule that would save most questions.

    Returns the exit code. Raises HarnessError.
    """
    chosen = chosen_logs(arguments, environment)
    policies = RecordedPolicies(State.of(environment), UNKNOWN_POLICY)
    chosen.tell_standing()
    if arguments.policy is None:
        replay = Replay(policies.of, environment, granted=False, findings=chosen.findings)
    else:
        replay = under_policy(arguments.policy, environment, chosen.paths, chosen.findings, granted=False)
    calls = [call for call in seen_calls(chosen, replay) if not _typed(replay, call)]
    for note in (*replay.notes, *policies.notes):
        complain(note)
    sessions = list(_weary_sessions(replay, calls, Take(arguments.take)))
    rule = max(suggestions(calls, LEAST).proposals, key=lambda proposal: len(proposal.spares), default=None)
    if arguments.json:
        sys.stdout.writelines(f"{json.dumps(row)}\n" for row in _objects(sessions, rule))
    else:
        _tell(sessions, rule, FinishedOutput(environment))
    return BROKEN if replay.broken else chosen.code


def _typed(replay: Replay, call: SeenCall) -> bool:
    """Return whether the user typed the call. Typing it counts as its approval."""
    return is_typed(replay.settings[call.log, call.session].proposed.get(call.call, {}))


def _weary_sessions(replay: Replay, seen_calls: Sequence[SeenCall], take: Take) -> Iterator[WearySession]:
    """Yield the sessions that decided any call, in the order of the logs.

    Each is judged in its own workspace, and as if walls were available.
    """
    calls: dict[tuple[str, str], list[SeenCall]] = {}
    for seen_call in seen_calls:
        calls.setdefault((seen_call.log, seen_call.session), []).append(seen_call)
    for (log, name), setting in replay.settings.items():
        typed = sum(is_typed(setting.proposed.get(call, {})) for call in setting.decided)
        if decided := len(setting.decided) - typed:
            walls = WallsHere(root=setting.workspace.root, confines=True)
            fatigue = fatigue_of(calls.get((log, name), []), walls, take)
            yield WearySession(log=log, session=name, calls=decided, typed=typed, fatigue=fatigue)


def _tell(sessions: Sequence[WearySession], rule: RuleProposal | None, console: Console) -> None:
    if not sessions:
        console.line("no call was decided in these logs")
        return
    rows = [
        (session.session, os.path.basename(session.log).removesuffix(".jsonl"), *map(str, _counts(session)))
        for session in sessions
    ]
    columns = list(zip(*map(_counts, sessions), strict=True))
    if len(sessions) > 1:
        rows.append(("in all", "", *(str(sum(column)) for column in columns)))
        rows.append(("a session", "", *(f"{sum(column) / len(sessions):.1f}" for column in columns)))
    console.table(Table(columns=_SESSIONS, rows=tuple(TableRow(cells=row) for row in rows)))
    console.line(ASKED_NOW, Tone.QUIET)
    console.line(BEST_CASE, Tone.QUIET)
    if typed := sum(session.typed for session in sessions):
        console.line(f"Left out: {count_of(typed, 'command')} that you typed yourself (!).", Tone.QUIET)
    fatigues = [session.fatigue for session in sessions]
    spared = [(count, grant) for grant, count in sparing_most(fatigues)]
    _list("Questions that a grant spares, taken when it is first offered:", spared, console)
    reasons = [
        (
            group.count,
            f"{visible_line(short_place(group.by), 60)}{ending}, as: {visible_line(group.example, 100)}",
        )
        for group in asking_most(fatigues)
        for ending in (", refused then" if group.refused else "",)
    ]
    _list("Questions at which nothing is granted, by what asks:", reasons, console)
    if rule is None:
        console.line("\nNo rule that `harness policy suggest` would write saves two questions.")
        return
    console.line(f"\nThe rule that would save most, {len(rule.spares)} of the questions asked then:\n")
    console.line(rule.toml.rstrip("\n"))


_SESSIONS = (
    Column(name="session"),
    Column(name="log", folds=True, spare=1),
    *(Column(name=name, right=True) for name in ("calls", "asked then", "asked now", "with grants")),
)
_LISTED = Column(name="", right=True), Column(name="", folds=True)


def _list(heading: str, entries: Sequence[tuple[int, str]], console: Console) -> None:
    if not entries:
        return
    console.line(f"\n{heading}")
    rows = (TableRow(cells=(f"{count:>4}", visible_line(text, 200))) for count, text in entries[:MOST_LINES])
    console.table(Table(columns=_LISTED, rows=tuple(rows), headed=False))
    if len(entries) > MOST_LINES:
        console.line(f"      and {len(entries) - MOST_LINES} more")


def _counts(session: WearySession) -> tuple[int, int, int, int]:
    return session.calls, session.fatigue.question_count, session.fatigue.questions, len(session.fatigue.still)


def _objects(sessions: Sequence[WearySession], rule: RuleProposal | None) -> Iterator[dict[str, JsonValue]]:
    for session in sessions:
        calls, asked_calls, questions, remaining = _counts(session)
        still: list[JsonValue] = [_still(question) for question in session.fatigue.still]
        yield {
            "type": "session",
            "log": session.log,
            "session": session.session,
            "calls": calls,
            "asked": asked_calls,
            "questions": questions,
            "with_grants": remaining,
            "unjudged": session.fatigue.unjudged,
            "still": still,
        }
    yield {
        "type": "summary",
        "sessions": len(sessions),
        "questions": sum(session.fatigue.questions for session in sessions),
        "with_grants": sum(len(session.fatigue.still) for session in sessions),
        "spared": [
            {"grant": grant, "questions": count}
            for grant, count in sparing_most(session.fatigue for session in sessions)
        ],
        "rule": None if rule is None else {"id": rule.id, "toml": rule.toml, "spares": len(rule.spares)},
    }


def _still(question: StillAsked) -> dict[str, JsonValue]:
    call = question.call
    number: JsonValue = int(call.call) if call.call.isdecimal() and len(call.call) < 20 else call.call
    return {
        "call": number,
        "tool": call.tool,
        "summary": call.summary,
        "by": question.by,
        "granted": list(question.assumed_grants),
    }
