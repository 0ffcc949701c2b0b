"""/log and /output: the last lines of the action log, and the output of a command. Both only read the log."""

from __future__ import annotations

import re
from collections import deque

from harness.app.commands.conversation import Conversation
from harness.errors import UsageError
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.plugin import Effect, HelpGroup, SlashCommand
from harness.terminal.activity import BAR
from harness.terminal.styles import Line, Tone
from harness.terminal.trace import Tracer, ended_line
from harness.text.visible import visible
from harness.tool_kinds import Does, tool_kind

LINES, MOST_LINES = 10, 10_000
"""Default and maximum number of lines."""


def log(conversation: Conversation, rest: str) -> None:
    """Show the last lines of the log. Raises UsageError, and LogError for an unreadable log."""
    line_count = LINES
    if rest:
        if not (rest.isascii() and rest.isdigit() and int(rest[:9]) <= MOST_LINES):
            raise UsageError(f"usage: /log [LINES], a whole number up to {MOST_LINES}")
        line_count = int(rest)
    tracer, lines = Tracer(), deque[Line](maxlen=line_count)
    total = 0
    for record in read_log(conversation.agent.log.path):
        line = tracer.line(record)
        if line is not None:
            lines.append(line)
            total += 1
    if total > len(lines):
        conversation.say(f"... {total - len(lines)} earlier lines", Tone.QUIET)
    for line in lines:
        conversation.say(line.text, line.tone)
    conversation.tell_log()
    conversation.say(
        "`harness audit show FILE` shows all of it; `harness audit verify FILE` checks it, once this session has ended",
        Tone.QUIET,
    )


def output(conversation: Conversation, rest: str) -> None:
    """Show the result of the last command of this session, or of the Nth from the end.

    This is the text that the model received, with secrets masked. If the text was cut, it names the file with the
    complete output. Raises UsageError, and LogError for an unreadable log.
    """
    if not re.fullmatch("|[1-9][0-9]{0,8}", rest):
        raise UsageError("usage: /output [N], where 1 is the last command")
    back = int(rest or "1")
    last = deque[tuple[LogRecord, LogRecord]](maxlen=back)
    decisions: dict[object, LogRecord] = {}
    for record in read_log(conversation.agent.log.path):
        if record["session"] != conversation.session.identity:
            continue
        if record["kind"] == "decision":
            decisions[record.get("call")] = record
        elif record["kind"] == "outcome":
            decision = decisions.pop(record.get("call"), {})
            if tool_kind(str(record.get("tool"))).does is Does.RUNS and "output_bytes" in record:
                last.append((record, decision))
    if len(last) < back:
        conversation.say(
            f"this session has {len(last)} commands with an output" if last else "no command ran yet", Tone.QUIET
        )
        return
    outcome, decision = last[0]
    line = ended_line(outcome, decision, {})
    conversation.say(line.text, line.tone)
    for text in str(outcome.get("content")).split("\n"):
        conversation.say(f"{BAR}{visible(text.expandtabs(8))}".rstrip())


COMMANDS = (
    SlashCommand(
        name="/log",
        arguments="[LINES]",
        summary="the action log: where, how long, its last lines",
        group=HelpGroup.WORK,
        run=log,
        effect=Effect.SHOWS,
    ),
    SlashCommand(
        name="/output",
        arguments="[N]",
        summary="all that the last command printed; 2: the one before",
        group=HelpGroup.WORK,
        run=output,
        effect=Effect.SHOWS,
    ),
)
