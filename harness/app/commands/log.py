"""/log and /output: the last lines of the action log, and the output of a command. Both only read the log."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from harness.app.commands.conversation import Conversation
from harness.errors import UsageError
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.plugin import Effect, HelpGroup, SlashCommand
from harness.terminal.activity import BAR
from harness.terminal.call_line import ended_line
from harness.terminal.styles import Line, Tone
from harness.terminal.trace import Tracer
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
    """Show the result of the last command of this session, or of the calls with the given numbers (`3`, or `3-6`).

    This is the text that the model received, with secrets masked. If the text was cut, it names the file with the
    complete output. Raises UsageError, and LogError for an unreadable log.
    """
    numbers = re.fullmatch("([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?", rest)
    if rest and numbers is None:
        raise UsageError("usage: /output [CALL], the number of a call, or 3-6 for several")
    calls = range(int(numbers[1]), int(numbers[2] or numbers[1]) + 1) if numbers else None
    chosen = list(_ended_calls(conversation, calls))
    if not chosen:
        conversation.say(f"no call {rest} ended in this session" if rest else "no command ran yet", Tone.QUIET)
    for outcome, decision in chosen if calls else chosen[-1:]:
        line = ended_line(outcome, decision, {}, short=True)
        conversation.say(line.text, line.tone)
        for text in str(outcome.get("content")).split("\n"):
            conversation.say(f"{BAR}{visible(text.expandtabs(8))}".rstrip())


def _ended_calls(conversation: Conversation, calls: range | None) -> Iterator[tuple[LogRecord, LogRecord]]:
    """Yield the outcome and the decision of the calls with these numbers. `None` means commands with an output."""
    decisions: dict[object, LogRecord] = {}
    for record in read_log(conversation.agent.log.path):
        call = record.get("call")
        if record["session"] != conversation.session.identity:
            continue
        if record["kind"] == "decision":
            decisions[call] = record
        elif record["kind"] == "outcome":
            decision = decisions.pop(call, {})
            is_command = tool_kind(str(record.get("tool"))).does is Does.RUNS and "output_bytes" in record
            if is_command if calls is None else call in calls:
                yield record, decision


COMMANDS = (
    SlashCommand(
        name="/log",
        arguments="[LINES]",
        summary="path, length and last lines of the action log",
        group=HelpGroup.WORK,
        run=log,
        effect=Effect.SHOWS,
    ),
    SlashCommand(
        name="/output",
        arguments="[CALL]",
        summary="full output of the last command, or result of a call",
        group=HelpGroup.WORK,
        run=output,
        effect=Effect.SHOWS,
    ),
)
