"""`harness audit approvals | denied | unknown | files`: puts a question to logs and writes the answer; changes nothing."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping

from harness.actions import JsonValue
from harness.audit.calls import CALL_KINDS
from harness.cli.audit.answers import Output, count
from harness.cli.audit.logs import BROKEN, ChosenLogs, chosen_logs
from harness.cli.state import State

FOUND = 3
"""Exit code of `unknown` where there is a call whose end is not known, an open session, or a torn line."""


def question_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Answer the question that `arguments.action` names, and return the exit code. Raises HarnessError."""
    logs = chosen_logs(arguments, environment)
    logs.tell_standing()
    output = Output(environment, as_json=arguments.json)
    match arguments.action:
        case "approvals":
            _approvals(logs, output)
        case "denied":
            _denied(logs, output, invalid=arguments.invalid)
        case "unknown":
            found = _unknown(logs, output)
            return logs.code if logs.code == BROKEN or not found else FOUND
        case _:
            _files(logs, output, State.of(environment))
    return logs.code


def _approvals(logs: ChosenLogs, output: Output) -> None:
    from harness.audit.questions import questions
    from harness.cli.audit.approvals import Tally, question_line

    tally = Tally()
    for question in questions(logs.calls()):
        tally.take(question)
        if output.as_json:
            output.row(question.fields())
        else:
            output.line(*question_line(question))
    output.row({"row": "counts", "sessions": logs.sessions, **tally.fields()})
    if tally.asked:
        output.line(tally.line())
    else:
        output.line(f"nobody was asked anything in {count(logs.sessions, 'session')}")


def _denied(logs: ChosenLogs, output: Output, *, invalid: bool) -> None:
    from harness.audit.refusals import Ends, refusals
    from harness.cli.audit.denied import ends_line, refusal_lines

    ends = Ends()
    for refusal in refusals(logs.calls(), ends, invalid=invalid):
        if output.as_json:
            output.row(refusal.fields())
            continue
        for text, tone in refusal_lines(refusal):
            output.line(text, tone)
    output.row({"row": "counts", "sessions": logs.sessions, **ends.fields()})
    output.line(ends_line(ends, logs.sessions, listed=invalid))


def _unknown(logs: ChosenLogs, output: Output) -> bool:
    """Write what has no end; return whether there is any."""
    from harness.audit.endings import OpenSession, open_ends
    from harness.cli.audit.unknown import EndsOf, nothing_open

    calls = sessions = torn = 0
    for path in logs.paths:
        ends = EndsOf(path)
        for one in open_ends(path, logs.counted(logs.records_of(path, CALL_KINDS))):
            if isinstance(one, OpenSession):
                sessions += 1
            else:
                calls += 1
            if output.as_json:
                output.row(ends.fields(one))
            else:
                output.line(*ends.line(one))
        if ends.torn:
            torn += 1
            output.row(ends.torn_fields())
            output.line(*ends.torn_line(), width=8_000)
    counts: dict[str, JsonValue] = {"unknown_calls": calls, "open_sessions": sessions, "torn_lines": torn}
    output.row({"row": "counts", "sessions": logs.sessions, **counts})
    if calls or sessions or torn:
        lines = f", {count(torn, 'torn line')}" if torn else ""
        output.line(f"{count(calls, 'call')} of unknown end, {count(sessions, 'open session')}{lines}")
    else:
        output.line(nothing_open(logs.sessions))
    return bool(calls or sessions or torn)


def _files(logs: ChosenLogs, output: Output, state: State) -> None:
    from harness.audit.changes import changed_files, found_changes
    from harness.audit.disk import look
    from harness.cli.audit.files import Kept, command_line, file_lines, undone_in

    found = found_changes(logs.calls(), is_kept=Kept(state.before_images), undone=undone_in(logs, state))
    files, host = 0, os.uname().nodename
    for file in changed_files(found.changes, look):
        files += 1
        for row in file.rows(host) if output.as_json else ():
            output.row(row)
        for text, tone in () if output.as_json else file_lines(file, host):
            output.line(text, tone, width=8_000)
    changes, commands = len(found.changes), len(found.commands)
    output.line(f"{count(files, 'file')}, {count(changes, 'change')} in {count(logs.sessions, 'session')}")
    if commands:
        output.line(f"not among them: what {count(commands, 'command')} that could write changed; it is not recorded")
    for command in found.commands:
        output.row(command.fields)
        output.line(*command_line(command))
    counts: dict[str, JsonValue] = {"files": files, "changes": changes, "commands": commands}
    output.row({"row": "counts", "sessions": logs.sessions, **counts})
