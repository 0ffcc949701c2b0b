"""`!command`: a command that the person runs, through the same gate and into the same log."""

from __future__ import annotations

from harness.actions import JsonValue
from harness.cli.commands.conversation import Conversation
from harness.cli.commands.notes_to_model import RAN_BY_PERSON
from harness.cli.terminal.styles import Tone
from harness.gate.ruling import NO_DETOUR
from harness.messages import ResultStatus, ToolResult
from harness.text.visible import visible
from harness.tool_kinds import BASH

MOST_LINES = 2_000
"""Of a command's output at the prompt."""
MOST_TOLD = 6_000
"""Characters of one command's output that the model is told; of more, beginning and end."""


def run_as_person(conversation: Conversation, text: str, *, model_hears: bool) -> bool:
    """Run `text` in the workspace, show what it prints, and keep it for the person's next message where `model_hears`.

    Returns whether it ran and succeeded.

    Raises LogError and GateError.
    """
    arguments: dict[str, JsonValue] = {BASH.subject: text}
    shown = _Shown(conversation)
    before, conversation.parts.on_output = conversation.parts.on_output, shown
    try:
        result = conversation.agent.do(conversation.session, BASH.name, arguments)
    finally:
        conversation.parts.on_output = before
        shown.finish()
    if result.status in (ResultStatus.DENIED, ResultStatus.BLOCKED, ResultStatus.INVALID):
        if conversation.answer is not None:
            conversation.say("not run", Tone.QUIET)  # they said so themselves a moment ago
        else:
            conversation.say_line(result.content.removesuffix(NO_DETOUR).rstrip(), Tone.BAD)  # that is for the model
        return False
    if model_hears and conversation.notes.add(_attachment(text, result)):
        conversation.say("the model is told with your next message", Tone.QUIET)
    elif model_hears:
        conversation.say("there is no more room: the model is not told of this one", Tone.WARNING)
    return result.status is ResultStatus.OK


def _attachment(text: str, result: ToolResult) -> str:
    content = result.content if result.printed is None else result.printed
    if len(content) > MOST_TOLD:
        half = MOST_TOLD // 2
        content = f"{content[:half]}\n[... {len(content) - 2 * half} characters left out ...]\n{content[-half:]}"
    ended = f"exit code {result.exit_code}" if result.exit_code is not None else result.status.value
    return f"{RAN_BY_PERSON}\n$ {text}\n{content.rstrip()}\n[{ended}]"


class _Shown:
    """Shows what a command prints, line by line as they come; bounded, and what is left out is counted."""

    def __init__(self, conversation: Conversation) -> None:
        from harness.redaction.stream import RedactedStream

        self._say = conversation.say
        self._stream = RedactedStream(conversation.parts.redactor)
        self._rest = ""
        self._lines = 0

    def __call__(self, printed: str) -> None:
        *lines, self._rest = (self._rest + self._stream.feed(printed)).split("\n")
        for line in lines:
            self._show(line)

    def finish(self) -> None:
        """Show what is left, and count what was not shown."""
        rest = self._rest + self._stream.finish()
        for line in rest.split("\n") if rest else ():
            self._show(line)
        if self._lines > MOST_LINES:
            self._say(f"  | ... {self._lines - MOST_LINES} more lines", Tone.QUIET)

    def _show(self, line: str) -> None:
        self._lines += 1
        if self._lines <= MOST_LINES:
            self._say(f"  | {visible(line.removesuffix(chr(13)))[:2_000]}", Tone.QUIET)
