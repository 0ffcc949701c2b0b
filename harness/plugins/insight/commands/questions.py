"""`harness audit approvals | denied | unknown | files | reads | outside`: put a question to logs."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping

from harness.actions import JsonValue
from harness.app.audit.answer_writer import AnswerWriter
from harness.app.audit.logs import BROKEN, ChosenLogs, chosen_logs
from harness.audit.calls import CALL_KINDS
from harness.session.state import State
from harness.terminal.styles import Tone
from harness.text.amounts import counted

FOUND = 3
"""Exit code of `unknown` where there is a call whose end is not known, an open session, or a torn line."""


def command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Answer the question that `arguments.action` names, and return the exit code. Raises HarnessError."""
    logs = chosen_logs(arguments, environment)
    logs.tell_standing()
    with AnswerWriter(environment, as_json=arguments.json) as output:
        match arguments.action:
            case "approvals":
                _approvals(logs, output)
            case "denied":
                _denied(logs, output, invalid=arguments.invalid)
            case "unknown":
                found = _unknown(logs, output)
                return logs.code if logs.code == BROKEN or not found else FOUND
            case "reads":
                _reads(logs, output)
            case "outside":
                _outside(logs, output)
            case _:
                _files(logs, output, State.of(environment))
    return logs.code


def _approvals(logs: ChosenLogs, output: AnswerWriter) -> None:
    from harness.plugins.insight.commands.question_lines import (
        QUESTIONS,
        question_cells,
        question_counts,
        question_counts_line,
    )
    from harness.plugins.insight.questions import questions
    from harness.plugins.insight.stats import QuestionCount

    counts = QuestionCount()
    for question in questions(logs.calls()):
        counts.take(question.call, in_burst=question.in_burst)
        if output.as_json:
            output.row(question.fields())
        else:
            output.entry(QUESTIONS, *question_cells(question, output))
    output.row({"row": "counts", "sessions": logs.sessions, **question_counts(counts)})
    if counts.asked:
        output.line(question_counts_line(counts))
    else:
        output.line(f"nobody was asked anything in {counted(logs.sessions, 'session')}")


def _denied(logs: ChosenLogs, output: AnswerWriter, *, invalid: bool) -> None:
    from harness.plugins.insight.commands.question_lines import REFUSALS, refusal_cells, refusal_counts_line
    from harness.plugins.insight.questions import RefusalCounts, refusals

    counts = RefusalCounts()
    for refusal in refusals(logs.calls(), counts, invalid=invalid):
        if output.as_json:
            output.row(refusal.fields())
        else:
            output.entry(REFUSALS, *refusal_cells(refusal, output))
    output.row({"row": "counts", "sessions": logs.sessions, **counts.fields()})
    output.line(refusal_counts_line(counts, logs.sessions, listed=invalid))


def _unknown(logs: ChosenLogs, output: AnswerWriter) -> bool:
    """Write what has no end; return whether there is any."""
    from harness.plugins.insight.commands.question_lines import OpenEnds, nothing_open
    from harness.plugins.insight.questions import OpenSession, open_ends

    calls = sessions = torn = 0
    for path in logs.paths:
        ends = OpenEnds(path)
        for one in open_ends(path, logs.counted(logs.records_of(path, CALL_KINDS))):
            if isinstance(one, OpenSession):
                sessions += 1
            else:
                calls += 1
            if output.as_json:
                output.row(ends.fields(one))
            else:
                ends.tell(one, output)
        if ends.torn:
            torn += 1
            output.row(ends.torn_fields())
            output.line(*ends.torn_line(), width=8_000)
    counts: dict[str, JsonValue] = {"unknown_calls": calls, "open_sessions": sessions, "torn_lines": torn}
    output.row({"row": "counts", "sessions": logs.sessions, **counts})
    if calls or sessions or torn:
        lines = f", {counted(torn, 'torn line')}" if torn else ""
        output.line(f"{counted(calls, 'call')} of unknown end, {counted(sessions, 'open session')}{lines}")
    else:
        output.line(nothing_open(logs.sessions))
    return bool(calls or sessions or torn)


def _files(logs: ChosenLogs, output: AnswerWriter, state: State) -> None:
    from harness.audit.logged_changes import changed_files, file_on_disk, found_changes
    from harness.plugins.insight.commands.question_lines import KeptImages, command_line, file_lines, undone_in

    found = found_changes(logs.calls(), is_kept=KeptImages(state.before_images), undone=undone_in(logs, state))
    files, host = 0, os.uname().nodename
    for file in changed_files(found.changes, file_on_disk):
        files += 1
        for row in file.rows(host) if output.as_json else ():
            output.row(row)
        for text, tone in () if output.as_json else file_lines(file, host, output):
            output.line(text, tone, width=8_000)
    changes, commands = len(found.changes), len(found.commands)
    output.line(f"{counted(files, 'file')}, {counted(changes, 'change')} in {counted(logs.sessions, 'session')}")
    if commands:
        said = "what it changed is not recorded, but" if commands == 1 else "what they changed is not recorded, but"
        output.line(f"besides, {counted(commands, 'command')} could write; {said} where it could be:")
    for command in found.commands:
        output.row(command.fields)
        output.line(*command_line(command, output), width=8_000)
    counts: dict[str, JsonValue] = {"files": files, "changes": changes, "commands": commands}
    output.row({"row": "counts", "sessions": logs.sessions, **counts})


def _reads(logs: ChosenLogs, output: AnswerWriter) -> None:
    from harness.audit.call_effects import reads_of
    from harness.plugins.insight.commands.question_lines import call_line, read_lines, reads_line

    found = reads_of(logs.calls())
    for file in found.files:
        for row in file.rows() if output.as_json else ():
            output.row(row)
        for text, tone in () if output.as_json else read_lines(file, output):
            output.line(text, tone, width=8_000)
    output.line(reads_line(len(found.files), logs.sessions))
    if found.unknown:
        output.line(f"not among them: what {counted(len(found.unknown), 'call')} read of which no model tells all")
    for reach in found.unknown:
        output.row(reach.fields("unknown_reads"))
        output.line(call_line(reach, output), Tone.WARNING)
    counts: dict[str, JsonValue] = {"files": len(found.files), "unknown_reads": len(found.unknown)}
    output.row({"row": "counts", "sessions": logs.sessions, **counts})


def _outside(logs: ChosenLogs, output: AnswerWriter) -> None:
    from harness.audit.call_effects import effects_of_calls
    from harness.plugins.insight.commands.question_lines import OUTSIDE, outside_cells

    calls = read = written = network = unknown = 0
    for reach in effects_of_calls(logs.calls()):
        unknown += not reach.reads_known
        if (outside := reach.outside) is None:
            continue
        calls += 1
        read += bool(outside.reads)
        written += bool(outside.writes or outside.may_write)
        network += bool(outside.network or outside.hosts)
        output.row(outside.fields("outside"))
        output.entry(OUTSIDE, *outside_cells(outside, output))
    counts: dict[str, JsonValue] = {"calls": calls, "read": read, "wrote": written, "network": network}
    output.row({"row": "counts", "sessions": logs.sessions, **counts, "unknown_reads": unknown})
    by = f"{read} read there, {written} could write there, {network} could reach the network"
    told = (
        f"{counted(calls, 'call')} outside the workspace: {by}"
        if calls
        else "no call is known to have left the workspace"
    )
    rest = f"; what {counted(unknown, 'call')} read is not known (`harness audit reads`)" if unknown else ""
    output.line(f"{told}, in {counted(logs.sessions, 'session')}{rest}")
