"""`harness policy fatigue`: the number of questions of old sessions, and of those left with grants. Nothing is run."""

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
from harness.policy.grant_offers import WallsHere
from harness.record import Record
from harness.session.state import State
from harness.terminal.console import Console, FinishedOutput, complain
from harness.terminal.styles import Tone
from harness.terminal.tables import Column, Table, TableRow
from harness.text.amounts import counted
from harness.text.visible import visible_line

UNKNOWN_POLICY = "its questions are not counted"
ASKED_NOW = "Asked now is by the policy alone: no grant that you keep counts."
BEST_CASE = "With grants is the best case: each grant is taken when it is first offered, and walls hold."
LEAST = 2
"""A rule that would save most is one that would have saved so many questions at the least."""
MOST_LINES = 8


class WearySession(Record):
    """A session of a log, and its questions."""

    log: str
    session: str
    calls: int
    """Number of decided calls without the person's own."""
    typed: int
    fatigue: SessionFatigue


def fatigue_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Write the questions of each session, what asks most, and the rule that would save most; return the exit code.

    Raises HarnessError.
    """
    chosen = chosen_logs(arguments, environment)
    policies = RecordedPolicies(State.of(environment), UNKNOWN_POLICY)
    chosen.tell_standing()
    if arguments.policy is None:
        replay = Replay(policies.of, environment, granted=False, findings=chosen.findings)
    else:
        replay = under_policy(arguments.policy, environment, chosen.paths, chosen.findings, granted=False)
    seen = [one for one in seen_calls(chosen, replay) if not _typed(replay, one)]
    for note in (*replay.notes, *policies.notes):
        complain(note)
    sessions = list(_counted(replay, seen, Take(arguments.take)))
    rule = max(suggestions(seen, LEAST).proposals, key=lambda proposal: len(proposal.spares), default=None)
    if arguments.json:
        sys.stdout.writelines(f"{json.dumps(one)}\n" for one in _objects(sessions, rule))
    else:
        _tell(sessions, rule, FinishedOutput(environment))
    return BROKEN if replay.broken else chosen.code


def _typed(replay: Replay, one: SeenCall) -> bool:
    """Return whether the person typed the call, which is its answer."""
    return is_typed(replay.settings[one.log, one.session].proposed.get(one.call, {}))


def _counted(replay: Replay, seen: Sequence[SeenCall], take: Take) -> Iterator[WearySession]:
    """Yield the sessions that decided anything, in the order of the logs; each in its workspace, as if walls held there."""
    calls: dict[tuple[str, str], list[SeenCall]] = {}
    for one in seen:
        calls.setdefault((one.log, one.session), []).append(one)
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
        (one.session, os.path.basename(one.log).removesuffix(".jsonl"), *map(str, _counts(one))) for one in sessions
    ]
    columns = list(zip(*map(_counts, sessions), strict=True))
    if len(sessions) > 1:
        rows.append(("in all", "", *(str(sum(column)) for column in columns)))
        rows.append(("a session", "", *(f"{sum(column) / len(sessions):.1f}" for column in columns)))
    console.table(Table(columns=_SESSIONS, rows=tuple(TableRow(cells=row) for row in rows)))
    console.line(ASKED_NOW, Tone.QUIET)
    console.line(BEST_CASE, Tone.QUIET)
    if typed := sum(one.typed for one in sessions):
        console.line(f"Left out: {counted(typed, 'command')} that you typed yourself (!).", Tone.QUIET)
    fatigues = [one.fatigue for one in sessions]
    spared = [(count, what) for what, count in sparing_most(fatigues)]
    _list("Questions that a grant spares, taken when it is first offered:", spared, console)
    reasons = [
        (one.count, f"{visible_line(short_place(one.by), 60)}{said}, as: {visible_line(one.example, 100)}")
        for one in asking_most(fatigues)
        for said in (", refused then" if one.refused else "",)
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


def _list(heading: str, found: Sequence[tuple[int, str]], console: Console) -> None:
    if not found:
        return
    console.line(f"\n{heading}")
    rows = (TableRow(cells=(f"{count:>4}", visible_line(what, 200))) for count, what in found[:MOST_LINES])
    console.table(Table(columns=_LISTED, rows=tuple(rows), headed=False))
    if len(found) > MOST_LINES:
        console.line(f"      and {len(found) - MOST_LINES} more")


def _counts(one: WearySession) -> tuple[int, int, int, int]:
    return one.calls, one.fatigue.asked, one.fatigue.questions, len(one.fatigue.still)


def _objects(sessions: Sequence[WearySession], rule: RuleProposal | None) -> Iterator[dict[str, JsonValue]]:
    for one in sessions:
        calls, asked, questions, left = _counts(one)
        still: list[JsonValue] = [_still(question) for question in one.fatigue.still]
        yield {
            "type": "session",
            "log": one.log,
            "session": one.session,
            "calls": calls,
            "asked": asked,
            "questions": questions,
            "with_grants": left,
            "unjudged": one.fatigue.unjudged,
            "still": still,
        }
    yield {
        "type": "summary",
        "sessions": len(sessions),
        "questions": sum(one.fatigue.questions for one in sessions),
        "with_grants": sum(len(one.fatigue.still) for one in sessions),
        "spared": [
            {"grant": what, "questions": count} for what, count in sparing_most(one.fatigue for one in sessions)
        ],
        "rule": None if rule is None else {"id": rule.id, "toml": rule.toml, "spares": len(rule.spares)},
    }


def _still(question: StillAsked) -> dict[str, JsonValue]:
    one = question.call
    number: JsonValue = int(one.call) if one.call.isdecimal() and len(one.call) < 20 else one.call
    return {
        "call": number,
        "tool": one.tool,
        "summary": one.summary,
        "by": question.by,
        "granted": list(question.taken),
    }
