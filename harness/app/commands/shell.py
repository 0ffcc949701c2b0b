"""`!command`: a command that the user runs, through the same gate and into the same log."""

from __future__ import annotations

import json

from harness.actions import Command, JsonValue
from harness.app.commands.conversation import Conversation
from harness.errors import ToolError
from harness.gate.ruling import NO_DETOUR
from harness.messages import ResultStatus, ToolCall, ToolResult
from harness.programs.interactive import asks_for_keys
from harness.redaction.stream import RedactedStream
from harness.session.person_message import RAN_BY_PERSON
from harness.terminal.styles import Tone
from harness.text.visible import visible, without_middle
from harness.tool_kinds import BASH

MOST_LINES = 2_000
"""Maximum number of output lines shown per command."""
WITH_TERMINAL = "tty"
"""Word before a command that gives it the terminal.

A call of tty(1) itself is not affected, since it has no command.
"""
MOST_TOLD = 6_000
"""Maximum number of characters of one command's output for the model. The middle of a longer output is cut."""


def run_as_person(conversation: Conversation, text: str, *, model_hears: bool) -> bool:
    """Run `text` in the workspace and show its output. Return whether it ran and succeeded.

    With `model_hears`, the output is noted for the user's next message. Raises LogError and GateError.
    """
    text, lends = _wish(conversation, text)
    arguments: dict[str, JsonValue] = {BASH.subject: text}
    output = _Shown(conversation)
    try:
        with conversation.showing(output, lends):
            result = conversation.agent.do(conversation.session, BASH.name, arguments)
    finally:
        output.finish()
    if result.status in (ResultStatus.DENIED, ResultStatus.BLOCKED, ResultStatus.INVALID):
        if conversation.answer is not None:
            conversation.say("not run", Tone.QUIET)  # the user refused it a moment ago
        else:
            conversation.say_line(result.content.removesuffix(NO_DETOUR).rstrip(), Tone.BAD)  # for the model
        return False
    if model_hears and conversation.notes.add(_attachment(text, result)):
        conversation.say("the model is told with your next message", Tone.QUIET)
    elif model_hears:
        conversation.say("there is no more room: the model is not told of this one", Tone.WARNING)
    return result.status is ResultStatus.OK


def _wish(conversation: Conversation, text: str) -> tuple[str, bool]:
    """Return the command to run, and whether it gets the user's terminal.

    It does if one of its programs reads keys, or if the user wrote `tty` in front of it.
    """
    word, _, rest = text.partition(" ")
    if word == WITH_TERMINAL and rest.strip():
        return rest.strip(), True
    call = ToolCall(id="", name=BASH.name, arguments=json.dumps({BASH.subject: text}))
    try:
        facets = conversation.agent.registry.prepare(call).facets
    except ToolError:
        return text, False
    return text, any(isinstance(facet, Command) and asks_for_keys(facet.argv, fed=facet.fed) for facet in facets)


def _attachment(text: str, result: ToolResult) -> str:
    content = result.content if result.printed is None else result.printed
    end_text = f"exit code {result.exit_code}" if result.exit_code is not None else result.status.value
    return f"{RAN_BY_PERSON}\n$ {text}\n{without_middle(content, MOST_TOLD).rstrip()}\n[{end_text}]"


class _Shown:
    """Shows the output of a command line by line. Lines beyond the maximum are only counted."""

    def __init__(self, conversation: Conversation) -> None:
        self._say = conversation.say
        self._stream = RedactedStream(conversation.place.redactor)
        self._rest = ""
        self._lines = 0

    def __call__(self, printed: str) -> None:
        *lines, self._rest = (self._rest + self._stream.feed(printed)).split("\n")
        for line in lines:
            self._show(line)

    def finish(self) -> None:
        """Show the rest, and the number of hidden lines."""
        rest = self._rest + self._stream.finish()
        for line in rest.split("\n") if rest else ():
            self._show(line)
        if self._lines > MOST_LINES:
            self._say(f"  | ... {self._lines - MOST_LINES} more lines", Tone.QUIET)

    def _show(self, line: str) -> None:
        self._lines += 1
        if self._lines <= MOST_LINES:
            self._say(f"  | {visible(line.removesuffix(chr(13)))[:2_000]}", Tone.QUIET)
