"""/output: all that a command printed, as its result in the log has it; it reads the log and writes nothing to it."""

from __future__ import annotations

from collections import deque

from harness.cli.commands.conversation import Conversation
from harness.cli.terminal.output import BAR
from harness.cli.trace import Tone, ended_line
from harness.errors import UsageError
from harness.log.order import LogRecord
from harness.text.visible import visible
from harness.tool_kinds import Does, tool_kind

MOST = 999
"""So many commands back."""


def output(conversation: Conversation, rest: str) -> None:
    """Show the result of the last command of this session, or of the one that is the Nth from the end.

    It is what the model was given, without secrets; where that is cut, it names the file that holds all of it. Raises
    UsageError, and LogError for a log that cannot be read.
    """
    from harness.log.reader import read_log

    if rest and not (rest.isascii() and rest.isdigit() and 1 <= int(rest[:9]) <= MOST):
        raise UsageError(f"usage: /output [N], where 1 is the last command and {MOST} the most")
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
