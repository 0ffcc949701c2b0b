"""`harness policy replay`, `audit redecide`: calls of old logs, judged again under another policy; nothing here runs one."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence

from harness.actions import JsonValue
from harness.cli.console import complain
from harness.cli.exits import Exit
from harness.cli.policy.calls import PolicyInForce
from harness.cli.policy.rejudging import Rejudging
from harness.errors import LogError, UsageError
from harness.paths import short_place
from harness.policy.loader import DECISION_WORDS
from harness.policy.rules import Decision
from harness.record import Record
from harness.text.visible import visible_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from harness.log.findings import Findings

CHANGED = 1
"""Exit code where `--fail-on` names a change that was found."""
BROKEN = 1
"""Exit code where a log is not what was written."""


class Replayed(Record):
    """A call of a log, judged again."""

    log: str
    session: str
    call: str
    """Its number."""
    tool: str
    summary: str
    old: Decision | None
    """None where the log's word is not one of ours."""
    old_by: str
    new: Decision | None = None
    """None where the call cannot be judged again."""
    new_by: str = ""
    problem: str = ""

    @property
    def change(self) -> str:
        """`laxer`, `stricter`, `same`, or `unknown` where it could not be judged again."""
        if self.old is None or self.new is None:
            return "unknown"
        return "same" if self.new is self.old else "laxer" if self.new < self.old else "stricter"


class Replay:
    """Goes through logs, and holds what was decided on each call against what a new policy would decide."""

    def __init__(
        self, policy: str, environment: Mapping[str, str], logs: Sequence[str], findings: Sequence[Findings] = ()
    ) -> None:
        """Take the new policy's file or shipped name, all logs, and what judging them showed, where that was said already.

        Raises PolicyError.
        """
        policies = PolicyInForce(policy, environment, *(os.path.realpath(log) for log in logs))
        self.rejudging = Rejudging(lambda _log, session: policies.at(session.workspace), environment, findings=findings)

    def calls(self, log: str, only: str = "") -> Iterator[Replayed]:
        """Yield every decided call of a log, judged again, as `Rejudging.calls` does; its errors are raised here too."""
        for judged in self.rejudging.calls(log, only):
            decision, verdict = judged.decision, judged.verdict
            yield Replayed(
                log=log,
                session=judged.session,
                call=judged.call,
                tool=str(decision.get("tool")),
                summary=str(decision.get("summary")),
                old=DECISION_WORDS.get(str(decision.get("decision"))),
                old_by=str(decision.get("by")),
                new=None if verdict is None else verdict.decision,
                new_by="" if verdict is None else verdict.deciding.by,
                problem=judged.problem,
            )


def replay_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Judge the calls of every log again, list what would change, and return the exit code.

    Of a log that is broken nobody can say that it holds no such change: with `--fail-on`, the code is BROKEN.

    Raises UsageError or PolicyError.
    """
    replay = Replay(arguments.policy, environment, arguments.logs)
    try:
        code = _list_changes(replay, arguments.logs, "", as_json=arguments.json, fail_on=arguments.fail_on)
    except LogError as error:
        raise UsageError(str(error)) from None  # its logs are named one by one, like a policy
    return BROKEN if replay.rejudging.broken and arguments.fail_on else code


def redecide_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Do the same for the logs that an audit is about; the exit code is BROKEN too where one of them is.

    Raises HarnessError.
    """
    from harness.cli.audit.logs import chosen_logs

    chosen = chosen_logs(arguments, environment)
    chosen.verify_all()
    replay = Replay(arguments.policy, environment, chosen.paths, chosen.findings)
    code = _list_changes(replay, chosen.paths, chosen.session, as_json=arguments.json, fail_on=arguments.fail_on)
    return chosen.code or code


def _list_changes(replay: Replay, logs: Sequence[str], only: str, *, as_json: bool, fail_on: str | None) -> int:
    """Write what would change, as it is found, and how many calls there were; return the exit code."""
    count = dict.fromkeys(("calls", "changes", "laxer", "stricter", "unknown", "undecided"), 0)
    told = 0
    for log in logs:
        for call in replay.calls(log, only):
            count["calls"] += 1
            if call.change != "same":
                count[call.change] += 1
                sys.stdout.write(f"{json.dumps(_told(call)) if as_json else _line(call)}\n")
        for note in replay.rejudging.notes[told:]:
            complain(note)
        told = len(replay.rejudging.notes)
    count |= {"changes": count["laxer"] + count["stricter"], "undecided": replay.rejudging.undecided}
    sys.stdout.write(f"{json.dumps({'summary': count}) if as_json else _summary(count)}\n")
    found = {"laxer": count["laxer"], "any": count["changes"]}
    return CHANGED if fail_on and found[fail_on] else Exit.DONE


def _line(call: Replayed) -> str:
    about = visible_line(f"{call.session} #{call.call} {call.tool}  {visible_line(call.summary, 100)}", 300)
    if call.old is None or call.new is None:
        return f"{about}: cannot be judged: {visible_line(call.problem or 'its decision is not known', 300)}"
    old = f"{call.old.word} by {visible_line(short_place(call.old_by), 200)}"
    return f"{about}: {old} -> {call.new.word} by {visible_line(short_place(call.new_by), 200)}: {call.change}"


def _summary(count: Mapping[str, int]) -> str:
    text = f"{count['calls']} calls, {count['changes']} changes: {count['laxer']} laxer, {count['stricter']} stricter"
    if count["unknown"]:
        text += f"; {count['unknown']} cannot be judged"
    return f"{text}; {count['undecided']} never decided" if count["undecided"] else text


def _told(call: Replayed) -> dict[str, JsonValue]:
    return {
        "log": call.log,
        "session": call.session,
        "call": int(call.call) if call.call.isdecimal() and len(call.call) < 20 else call.call,
        "tool": call.tool,
        "summary": call.summary,
        "change": call.change,
        "old": None if call.old is None else call.old.word,
        "old_by": call.old_by,
        "new": None if call.new is None else call.new.word,
        "new_by": call.new_by or None,
        "error": call.problem or None,
    }
