"""/log: where the action log is, what pins it, and its last lines; it reads the log and writes nothing to it."""

from __future__ import annotations

from collections import deque

from harness.cli.commands.conversation import Conversation
from harness.cli.parts import pinned
from harness.cli.trace import Line, Tone, Tracer
from harness.errors import UsageError

LINES, MOST_LINES = 10, 10_000
"""Lines that are shown where nobody says how many, and the most that can be asked for."""


def log(conversation: Conversation, rest: str) -> None:
    """Show it. Raises UsageError, and LogError for a log that cannot be read."""
    from harness.log.reader import read_log

    wanted = LINES
    if rest:
        if not (rest.isascii() and rest.isdigit() and int(rest[:9]) <= MOST_LINES):
            raise UsageError(f"usage: /log [LINES], a whole number up to {MOST_LINES}")
        wanted = int(rest)
    tracer, lines = Tracer(), deque[Line](maxlen=wanted)
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
    conversation.say(pinned(conversation.agent.log))
    conversation.say(
        "`harness audit show FILE` shows all of it; `harness audit verify FILE` checks it, once this session has ended",
        Tone.QUIET,
    )
