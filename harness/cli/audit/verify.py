"""`harness audit verify`: says in words what reading whole logs proved, and what it did not; repairs nothing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from harness.actions import JsonValue
from harness.cli.exits import Exit
from harness.cli.heads import HeadsFile, KnownHead, names_of
from harness.cli.log_findings import Findings, Verdict, judged
from harness.cli.state import State
from harness.errors import LogError, UsageError
from harness.paths import is_within
from harness.visible import visible_line

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from argparse import Namespace

    from harness.cli.signing import Signature

MAX_LISTED = 1_000
"""Of many sessions or calls so many stand in an object of `--json`, beside how many there are."""
_WORST_FIRST = (Verdict.BROKEN, Verdict.UNREADABLE, Verdict.OPEN, Verdict.NO_HEAD)


def verify_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Verify logs and return the exit code, that of the worst. Raises HarnessError."""
    state = State.of(environment)
    _check(arguments)
    heads = HeadsFile(arguments.heads or state.heads)
    named = [state.sessions] if arguments.all else arguments.files or [latest_log(state)]
    verdicts, moved = [], set[str]()
    for path in _logs_of(named, except_for=heads.path):
        if not os.path.lexists(path) and heads.of_path(path) is not None:
            continue  # gone: see below
        try:
            signature = _signature(path, arguments, environment)
            findings = judged(path, heads, given=arguments.head, signature=signature)
        except LogError as error:
            if [path] == named:
                raise
            sys.stdout.write(_unreadable(path, str(error), as_json=arguments.json))
            verdicts.append(Verdict.UNREADABLE)
            continue
        sys.stdout.write(_as_json(findings) if arguments.json else _as_text(findings))
        sys.stdout.write(_redecided(path, state, arguments, environment))
        verdicts.append(findings.verdict)
        if findings.evidence.elsewhere and findings.evidence.known is not None:
            moved.add(findings.evidence.known.file)
    for known in _gone(named, heads, moved):
        sys.stdout.write(_gone_told(known, as_json=arguments.json))
        verdicts.append(Verdict.BROKEN)
    if not verdicts:
        raise UsageError(f"there is no action log (*.jsonl) in {', '.join(named)}")
    return worst(verdicts)


def latest_log(state: State) -> str:
    """Return the path of the newest log. Raises UsageError if there is none."""
    paths = state.log_paths()
    if not paths:
        raise UsageError(f"there is no action log under {state.sessions}")
    return paths[-1]


def worst(verdicts: Iterable[Verdict]) -> int:
    """Return the exit code of several logs: the worst decides."""
    found = set(verdicts)
    return next((verdict.value for verdict in _WORST_FIRST if verdict in found), Exit.DONE)


def _check(arguments: Namespace) -> None:
    """Raise UsageError for flags that make no sense."""
    if arguments.heads and not os.path.isfile(arguments.heads):
        raise UsageError(f"--heads: there is no file {arguments.heads}")
    if arguments.signer and not arguments.signers:
        raise UsageError("--signer needs --signers FILE: who may sign, and with which keys (ssh-keygen(1))")


def _redecided(path: str, state: State, arguments: Namespace, environment: Mapping[str, str]) -> str:
    """Return what judging the calls again came to, where that was asked for; it takes much longer than all the rest."""
    if not arguments.redecide:
        return ""
    from harness.cli.redeciding import redecided

    return redecided(path, state, environment).told(path, as_json=arguments.json)


def _signature(path: str, arguments: Namespace, environment: Mapping[str, str]) -> Signature | None:
    if not arguments.signers:
        return None
    from harness.cli.signing import check_signature

    return check_signature(path, arguments.signers, arguments.signer, environment)


def _as_text(findings: Findings) -> str:
    lines = [
        *findings.lines,
        f"Proved: {findings.proved}.",
        f"Not proved: {findings.not_proved}.",
    ]
    told = "".join(f"{visible_line(line, 1_500)}\n" for line in lines)
    found = findings.found
    return f"{told}{visible_line(findings.path, 5_000)}: {found.records} records, head {found.head}\n"


def _as_json(findings: Findings) -> str:
    found, evidence = findings.found, findings.evidence
    known = evidence.known
    broken: JsonValue = None
    if found.broken_line is not None:
        broken = {"line": found.broken_line, "offset": found.broken_offset, "problem": found.problem}
    told: dict[str, JsonValue] = {
        "file": findings.path,
        "verdict": findings.verdict.name.lower(),
        "exit_code": findings.verdict.value,
        "records": found.records,
        "bytes": found.bytes,
        "head": found.head,
        "sessions": list(found.sessions[:MAX_LISTED]),
        "session_count": len(found.sessions),
        "broken": broken,
        "missed_head_at": found.missed,
        "torn_bytes": found.torn_bytes,
        "unknown_calls": list(found.unknown_calls[:MAX_LISTED]),
        "unknown_call_count": len(found.unknown_calls),
        "open_sessions": list(found.open_sessions[:MAX_LISTED]),
        "open_session_count": len(found.open_sessions),
        "compared_with": evidence.source.value,
        "noted_as": known.file if known is not None else None,
        "signer": evidence.signature.signer or None if evidence.signature is not None else None,
        "findings": list(findings.lines),
        "proved": findings.proved,
        "not_proved": findings.not_proved,
    }
    return json.dumps(told, sort_keys=True) + "\n"


def _unreadable(path: str, why: str, *, as_json: bool) -> str:
    if as_json:
        code = Verdict.UNREADABLE.value
        return json.dumps({"file": path, "verdict": "unreadable", "exit_code": code, "findings": [why]}) + "\n"
    return f"UNREADABLE: {visible_line(why, 5_000)}\n"


def _logs_of(named: Sequence[str], *, except_for: str) -> Iterator[str]:
    """Yield the logs that are named, and all logs in the folders that are; the heads file is none."""
    heads = os.path.realpath(except_for)
    for path in named:
        if not os.path.isdir(path):
            yield path
            continue
        found = [os.path.join(folder, name) for folder, _, files in os.walk(path) for name in files]
        for log in sorted(found, key=lambda one: (os.path.basename(one), one)):
            if log.endswith(".jsonl") and os.path.realpath(log) != heads:
                yield log


def _gone(named: Sequence[str], heads: HeadsFile, moved: Collection[str]) -> Iterator[KnownHead]:
    """Yield what is known of logs that were noted where a folder, or they, are named, and are not there.

    `moved` are those that were found under another name. Raises UsageError where the one that is named was removed on
    purpose, as its tombstone says.
    """
    folders = [name for path in named if not os.path.isfile(path) for name in names_of(path)]
    if not folders:
        return
    for known in heads.every():
        if os.path.lexists(known.file) or not any(is_within(known.file, folder) for folder in folders):
            continue
        if not known.removed and known.file not in moved:
            yield known
        elif known.removed and known.file in folders:
            raise UsageError(
                f"{known.file} was removed on {known.time}, with {known.records} records and the head {known.head}: "
                f"{known.removed}"
            )


def _gone_told(known: KnownHead, *, as_json: bool) -> str:
    why = f"a log that was noted is gone: {known.records} records, head {known.head}, noted last {known.time or 'some time'}"
    if as_json:
        code = Verdict.BROKEN.value
        return json.dumps({"file": known.file, "verdict": "gone", "exit_code": code, "findings": [why]}) + "\n"
    return f"BROKEN: {visible_line(why, 500)}\n{visible_line(known.file, 5_000)}: gone\n"
