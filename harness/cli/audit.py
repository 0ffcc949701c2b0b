"""`harness audit`: list, show and verify action logs; needs no model, no network and no heavy library."""

from __future__ import annotations

import errno
import json
import sys
from argparse import Namespace
from collections.abc import Mapping

from harness.action_log import read_log
from harness.cli.console import Console, wants_colour
from harness.cli.exits import Exit
from harness.cli.state import KnownHead, State
from harness.cli.trace import Tone, Tracer
from harness.errors import UsageError
from harness.log_check import Verification, verify
from harness.log_order import LogRecord
from harness.visible import visible_line

BROKEN, OPEN, NO_HEAD = 1, 3, 4
"""Exit codes of `audit verify` besides 0 (whole, and the head is the one that was kept) and 2 (usage)."""


def audit_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Do what `harness audit ACTION` asks and return the exit code. Raises HarnessError."""
    state = State.of(environment)
    if arguments.action == "list":
        return _list(state)
    paths = arguments.files or _latest(state)
    if arguments.action == "verify":
        codes = {_verify(state, path, arguments.head) for path in paths}
        return next((code for code in (BROKEN, OPEN, NO_HEAD) if code in codes), Exit.DONE)  # the worst comes first
    for path in paths:
        _show(path, as_json=arguments.json, environment=environment)
    return Exit.DONE


def _latest(state: State) -> list[str]:
    paths = state.log_paths()
    if not paths:
        raise UsageError(f"there is no action log under {state.sessions}")
    return paths[-1:]


def _list(state: State) -> int:
    for path in state.log_paths():
        first = next(read_log(path), None)
        what = (
            "unreadable"
            if first is None
            else f"{first['time']}  {first.get('mode', '?'):5} {first.get('workspace', '')}"
        )
        sys.stdout.write(f"{visible_line(what, 300)}  {visible_line(path, 5_000)}\n")
    return Exit.DONE


def _show(path: str, *, as_json: bool, environment: Mapping[str, str]) -> None:
    """Write a readable timeline of one log, or its whole records."""
    console = Console(sys.stdout, colour=wants_colour(sys.stdout, environment))
    tracer = Tracer()
    for record in read_log(path):
        if as_json:
            sys.stdout.write(json.dumps(record, sort_keys=True) + "\n")
            continue
        line = tracer.line(record)
        text, tone = (line.text, line.tone) if line is not None else (_plain_line(record), Tone.QUIET)
        if text:
            console.line(f"{str(record['time'])[11:19]}  {text}", tone)
    if console.broken:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


def _plain_line(record: LogRecord) -> str:
    """Return the line for what the trace of a running session leaves out."""
    match record["kind"]:
        case "session_started" if record.get("mode") == "undo":
            text = f"undo {record['session']} in {record.get('workspace')}: harness {record.get('harness')}"
        case "restored":
            of = f"call {record.get('call')} {record.get('tool')} of session {record.get('of_session')}"
            text = f"{record.get('result')}  {record.get('path') or ''}  [{of}]  {record.get('detail')}"
        case "session_started":
            text = f"session {record['session']} in {record.get('workspace')}: harness {record.get('harness')}, model "
            text += f"{record.get('model')}, policy {record.get('policy')} ({str(record.get('policy_sha256'))[:16]})"
        case "user_message":
            text = f"> {record.get('text')}"
        case "history_changed":
            messages, start, stop = record.get("messages"), record.get("start"), record.get("stop")
            count = len(messages) if isinstance(messages, list) else 0
            text = f"~ the conversation was changed ({record.get('why')}): {count} messages for those from {start} to {stop}"
        case "model_response" if record.get("text"):
            text = f"< {record.get('text')}"
        case "session_ended":
            text = f"session ended: {record.get('stop')} {record.get('detail')}"
        case _:
            return ""
    return visible_line(text, 500)


def _verify(state: State, path: str, head: str | None) -> int:
    """Say in words what reading the whole log proved, and what it did not."""
    kept = KnownHead(records=0, head=head) if head else state.known_head(path)
    found = verify(path, kept.head if kept else None)
    lines, code = _findings(found, kept)
    for line in lines:
        sys.stdout.write(f"{visible_line(line, 1000)}\n")
    sys.stdout.write(f"{visible_line(path, 5_000)}: {found.records} records, head {found.head}\n")
    return code


def _findings(found: Verification, kept: KnownHead | None) -> tuple[list[str], int]:
    if found.broken_line is not None:
        return [f"BROKEN at line {found.broken_line}: it {found.problem}"], BROKEN
    if not found.records:
        return ["There is no whole record in this file: nothing was proved."], OPEN
    lines = ["Every record follows from the one before; every run was permitted beforehand."]
    if kept is not None and not found.passed_head:
        lines.append(f"BROKEN: this is not the log that was kept in mind: no record of it has the head {kept.head}")
        return lines, BROKEN
    if found.torn:
        lines.append("OPEN: the last line is torn; something stopped the harness while it was written")
    lines += [f"OPEN: call {call} was begun and its end is not known; it may have run" for call in found.unknown_calls]
    lines += [f"OPEN: session {session} never said that it ended" for session in found.open_sessions]
    if len(lines) > 1:
        return lines, OPEN
    if kept is None or not kept.closed or found.head != kept.head:
        what = "No head to compare with" if kept is None else "The log went on after the head that was kept"
        lines.append(f"{what}: a tail that was cut off, or a rewritten log, could not be seen.")
        return lines, NO_HEAD
    lines.append("The head is the one that was kept when the log was closed: nothing was cut off or rewritten.")
    return lines, Exit.DONE
