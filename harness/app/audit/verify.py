"""`harness audit verify`: report what the verification of whole logs proved and did not prove."""

from __future__ import annotations

import json
import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from harness.actions import JsonValue
from harness.app.audit.logs import missing_logs, named_logs, size_of, worst
from harness.audit.findings import NEVER_PROVED, Findings, Soundness, judge_log
from harness.errors import LogError, UsageError
from harness.log.heads_file import HeadsFile, KnownHead, Signature
from harness.record import Record
from harness.session.state import State, logs_in
from harness.terminal.console import FinishedOutput, Look, look_here
from harness.terminal.long_work import counted_off
from harness.terminal.styles import Tone
from harness.terminal.tables import Column, Table, TableRow
from harness.text.amounts import count_of
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from harness.app.policy.replay import JudgedAgain, LoggedSetting
    from harness.policy.policy import Policy

MAX_LISTED = 1_000
"""Maximum number of sessions or calls listed in a JSON object. The object also has their total number."""


def command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Verify logs and return the exit code, which is that of the worst log. Raises HarnessError."""
    state = State.of(environment)
    expected = _checked(arguments)
    heads = HeadsFile(arguments.heads or state.heads)
    named_paths = [state.sessions] if arguments.all else named_logs(arguments, state)
    logs = [
        path
        for path in _logs_of(named_paths, except_for=heads.path)
        if os.path.lexists(path) or not heads.of_path(path)
    ]
    answer = _Answer(state, arguments, environment, several=len(logs) > 1)
    moved = set[str]()
    for path in counted_off(logs, len(logs), "logs verified", answer.look, size_of):
        try:
            signature = _signature(path, arguments, environment)
            findings = judge_log(path, heads, given_head=expected, signature=signature)
        except LogError as error:
            if [path] == named_paths:
                raise
            answer.unreadable(path, str(error))
            continue
        answer.report_findings(findings)
        noted = findings.evidence.noted
        if noted is not None and noted.elsewhere:
            moved.add(noted.known_head.file)
    for noted_head in missing_logs(["/"] if arguments.all else named_paths, heads, moved):
        answer.report_missing(noted_head)
    if not answer.came_to:
        raise UsageError(f"no action log (*.jsonl) in {', '.join(named_paths)}")
    return answer.end()


MAX_WHOLE = 20
"""Maximum number of whole logs in a table. If there are more, the table lists only the other logs."""
_COLUMNS = (
    Column(name="log", folds=True),
    Column(name="standing", toned=True),
    Column(name="records", right=True),
    Column(name="what is wrong, open or odd", folds=True, leaves=True),
)
_TONES = {
    Soundness.WHOLE: Tone.GOOD,
    Soundness.OPEN: Tone.WARNING,
    Soundness.NO_HEAD: Tone.WARNING,
    Soundness.BROKEN: Tone.BAD,
    Soundness.UNREADABLE: Tone.BAD,
}


class _Answer:
    """The report on the logs: one text or JSON object per log, or one table for several logs at a terminal."""

    def __init__(self, state: State, arguments: Namespace, environment: Mapping[str, str], *, several: bool) -> None:
        self.came_to: list[Soundness] = []
        self._state = state
        self._arguments = arguments
        self._environment = environment
        self._as_json: bool = arguments.json
        self._console = FinishedOutput(environment)
        self._in_table = several and self._console.width > 0 and not arguments.json and not arguments.redecide
        self._rows: list[TableRow] = []
        at_work = self._in_table or not self._console.width
        self.look = look_here(sys.stderr, environment) if at_work else Look()
        """Progress display. Hidden if each log is reported at the terminal as soon as it is verified."""

    def report_findings(self, findings: Findings) -> None:
        """Report the result for one log, and the result of judging its calls again if that was requested."""
        text = _as_json(findings) if self._as_json else _as_text(findings)
        again = _judged_again(findings.path, self._state, self._arguments, self._environment)
        self._tell(
            text + again, findings.path, findings.soundness, findings.verification.records, "; ".join(findings.lines)
        )

    def unreadable(self, path: str, reason: str) -> None:
        """Report that a log cannot be read."""
        text = _unreadable(path, reason, as_json=self._as_json)
        self._tell(text, path, Soundness.UNREADABLE, 0, reason)

    def report_missing(self, noted_head: KnownHead) -> None:
        """Report that a noted log is missing."""
        reason = f"a log that was noted is gone: {noted_head.words}"
        self._tell(
            _gone_line(noted_head, as_json=self._as_json), noted_head.file, Soundness.BROKEN, noted_head.records, reason
        )

    def _tell(self, text: str, path: str, soundness: Soundness, records: int, reason: str) -> None:
        self.came_to.append(soundness)
        if self._in_table:
            log = path.removeprefix(f"{self._state.sessions}/")
            word = soundness.name.replace("_", " ")
            cells = log, word if soundness is Soundness.BROKEN else word.lower(), str(records), reason
            self._rows.append(TableRow(cells=cells, tone=_TONES[soundness]))
        elif self._console.width and not self._as_json:
            self._console.line(text.rstrip("\n"))
        else:
            sys.stdout.write(text)

    def end(self) -> int:
        """Write the table, if there is one. Return the exit code, which is that of the worst log."""
        if self._rows:
            whole_count = sum(soundness is Soundness.WHOLE for soundness in self.came_to)
            rows = self._rows if whole_count <= MAX_WHOLE else [row for row in self._rows if row.tone is not Tone.GOOD]
            if rows:
                self._console.table(Table(columns=_COLUMNS, rows=tuple(rows)))
            self._console.line(f"{whole_count:,} of {count_of(len(self.came_to), 'log')} whole")
            self._console.line(
                f"Not proved: {NEVER_PROVED}. `harness audit verify FILE` says of one log what is.", Tone.QUIET
            )
        return worst(self.came_to)


def _checked(arguments: Namespace) -> str | None:
    """Check the flags, and return the value of `--head` in lower case. `None` without `--head`. Raises UsageError."""
    if arguments.heads and not os.path.isfile(arguments.heads):
        raise UsageError(f"--heads: no such file: {arguments.heads}")
    if arguments.signer and not arguments.signers:
        raise UsageError("--signer needs --signers FILE: who may sign, and with which keys (ssh-keygen(1))")
    if arguments.head is None:
        return None
    head = str(arguments.head).lower()
    if not re.fullmatch(r"[0-9a-f]{64}", head):
        raise UsageError(
            f"--head: {visible_line(arguments.head, 200)!r} is not a head: 64 hexadecimal digits, not fewer"
        )
    return head


def _judged_again(path: str, state: State, arguments: Namespace, environment: Mapping[str, str]) -> str:
    """Return the result of judging the calls again.

    Empty if it was not requested, since it takes much longer than the rest.
    """
    if not arguments.redecide:
        return ""
    return redecided(path, state, environment).text(path, as_json=arguments.json)


def _signature(path: str, arguments: Namespace, environment: Mapping[str, str]) -> Signature | None:
    if not arguments.signers:
        return None
    from harness.audit.signed_heads import check_signature

    return check_signature(path, arguments.signers, arguments.signer, environment)


def _as_text(findings: Findings) -> str:
    lines = [
        *findings.lines,
        f"Proved: {findings.proved}.",
        f"Not proved: {findings.not_proved}.",
    ]
    lines_text = "".join(f"{visible_line(line, 1_500)}\n" for line in lines)
    verification = findings.verification
    return (
        f"{lines_text}{visible_line(findings.path, 5_000)}: {verification.records} records, head {verification.head}\n"
    )


def _as_json(findings: Findings) -> str:
    verification, evidence = findings.verification, findings.evidence
    noted_head = evidence.known_head
    broken: JsonValue = None
    if verification.broken_line is not None:
        broken = {
            "line": verification.broken_line,
            "offset": verification.broken_offset,
            "problem": verification.problem,
        }
    fields: dict[str, JsonValue] = {
        "file": findings.path,
        "verdict": findings.soundness.name.lower(),
        "exit_code": findings.soundness.value,
        "records": verification.records,
        "bytes": verification.bytes,
        "head": verification.head,
        "sessions": list(verification.sessions[:MAX_LISTED]),
        "session_count": len(verification.sessions),
        "broken": broken,
        "missed_head_at": verification.missed,
        "torn_bytes": verification.torn_bytes,
        "unknown_calls": list(verification.unknown_calls[:MAX_LISTED]),
        "unknown_call_count": len(verification.unknown_calls),
        "unjudged_calls": list(verification.unjudged[:MAX_LISTED]),
        "open_sessions": list(verification.open_sessions[:MAX_LISTED]),
        "open_session_count": len(verification.open_sessions),
        "compared_with": evidence.source,
        "noted_as": noted_head.file if noted_head is not None else None,
        "signer": evidence.signature.signer or None if evidence.signature is not None else None,
        "findings": list(findings.lines),
        "proved": findings.proved,
        "not_proved": findings.not_proved,
    }
    return json.dumps(fields, sort_keys=True) + "\n"


def _unreadable(path: str, reason: str, *, as_json: bool) -> str:
    if as_json:
        code = Soundness.UNREADABLE.value
        return json.dumps({"file": path, "verdict": "unreadable", "exit_code": code, "findings": [reason]}) + "\n"
    return f"UNREADABLE: {visible_line(reason, 5_000)}\n"


def _logs_of(paths: Sequence[str], *, except_for: str) -> Iterator[str]:
    """Yield the named logs, and the logs in the named folders, except for the heads file."""
    heads = os.path.realpath(except_for)
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        yield from (log for log in logs_in(path) if os.path.realpath(log) != heads)


def _gone_line(noted_head: KnownHead, *, as_json: bool) -> str:
    reason = f"a log that was noted is gone: {noted_head.words}"
    if as_json:
        code = Soundness.BROKEN.value
        return json.dumps({"file": noted_head.file, "verdict": "gone", "exit_code": code, "findings": [reason]}) + "\n"
    return f"BROKEN: {visible_line(reason, 500)}\n{visible_line(noted_head.file, 5_000)}: gone\n"


MAX_TOLD = 20
"""Maximum number of listed calls with a different decision, and of listed problems. Further calls are counted."""


class Redecided(Record):
    """Result of judging the calls of one log again."""

    same: int
    otherwise: int
    unjudged: int
    """Number of calls that could not be judged again, because the log lacks their arguments or policies."""
    lines: tuple[str, ...]
    """The first calls with a different decision, and the reasons why other calls could not be judged."""

    def text(self, path: str, *, as_json: bool) -> str:
        """Return the result as text, or as one line of JSON."""
        if as_json:
            counts: dict[str, JsonValue] = {"same": self.same, "otherwise": self.otherwise, "unjudged": self.unjudged}
            return json.dumps({"file": path, "redecided": counts, "findings": list(self.lines)}, sort_keys=True) + "\n"
        summary = (
            f"Judged again, by the policies in the log: {self.same} calls come out the same, {self.otherwise} otherwise"
        )
        lines_text = "".join(f"{visible_line(line, 500)}\n" for line in self.lines)
        return f"{lines_text}{summary}, {self.unjudged} cannot be judged.\n"


def redecided(path: str, state: State, environment: Mapping[str, str]) -> Redecided:
    """Judge every decided call of a log again.

    Raises LogError if the log cannot be read, UsageError if the heads file cannot be read.
    """
    from harness.app.policy.replay import Replay, recorded_policy

    policies: dict[tuple[str, str], Policy | str] = {}

    def policy_of(_log: str, session: LoggedSetting) -> Policy | str:
        key = (session.name, str(session.started.get("policy_sha256")))  # the policy may change within a session
        if key not in policies:
            policies[key] = recorded_policy(session.started, state)
        return policies[key]

    same = otherwise = unjudged = 0
    lines: list[str] = []
    problems: dict[str, None] = {}
    replay = Replay(policy_of, environment)
    for again in replay.calls(path):
        if again.verdict is None:
            unjudged += 1
            if len(problems) < MAX_TOLD:
                problems[f"NOT JUDGED: {again.problem}"] = None
        elif again.verdict.decision.word == again.decision.get("decision"):
            same += 1
        else:
            otherwise += 1
            if otherwise <= MAX_TOLD:
                lines.append(_otherwise_line(again, again.verdict.decision.word))
    remaining = [f"OTHERWISE: and {otherwise - MAX_TOLD} more like it"] if otherwise > MAX_TOLD else []
    return Redecided(
        same=same, otherwise=otherwise, unjudged=unjudged, lines=(*lines, *remaining, *problems, *replay.notes)
    )


def _otherwise_line(again: JudgedAgain, word: str) -> str:
    was, summary = again.decision.get("decision"), visible_line(str(again.decision.get("summary")), 100)
    return f"OTHERWISE: call {again.call} of session {again.session} was {was}, and would be {word}: {summary}"
