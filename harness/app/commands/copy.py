"""/copy: copy the last answer, or its last code block, to the clipboard."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from harness.app.commands.conversation import Conversation
from harness.errors import UsageError
from harness.messages import Message, Role
from harness.plugin import HelpGroup, SlashCommand
from harness.process.environment import child_environment, program_outside
from harness.regex import regex
from harness.terminal.styles import Tone
from harness.text.amounts import count_of, size_of_bytes

MOST_BYTES = 1_000_000
"""Maximum size in bytes of a text for a clipboard program."""
MOST_SENT_BYTES = 50_000
"""Maximum size in bytes of a text sent through the terminal. Several terminals accept no more at once."""
SECONDS = 5.0
"""Time limit of a clipboard program, in seconds."""
_BLANKS = regex("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_FENCE = regex(r"(?P<indent>[ >]*)(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)")


def copy(conversation: Conversation, rest: str) -> None:
    """Copy the last answer, or with `code` its last code block. Raises UsageError."""
    if rest not in ("", "code"):
        raise UsageError("usage: /copy, or /copy code")
    answer = last_answer(conversation.session.messages)
    if not answer:
        raise UsageError("the model has said nothing yet")
    if rest:
        blocks = list(code_blocks(answer))
        if not blocks:
            raise UsageError("the last answer has no block of code")
        answer = blocks[-1]
    text, dropped = pasted_safely(conversation.masked(answer))
    way = _hand_over(conversation, text.encode())
    conversation.say_line(f"copied {count_of(len(text), 'character')} {way}", Tone.GOOD)
    if dropped:
        conversation.say(f"{count_of(dropped, 'hidden or control character')} left out", Tone.WARNING)


def last_answer(messages: Sequence[Message]) -> str:
    """Return the model's last answer. Empty if there is none. Pure."""
    answers = (message.content for message in reversed(messages) if message.role is Role.ASSISTANT)
    return next((text for text in answers if text.strip()), "")


def code_blocks(text: str) -> Iterator[str]:
    """Yield the content of fenced code blocks (CommonMark 0.31, section 4.5) without indentation and quote marks.

    Pure.
    """
    block: list[str] | None = None
    indent = fence = ""
    for line in text.split("\n"):
        if block is None:
            if match := _FENCE.fullmatch(line):
                block, indent, fence = [], match["indent"], match["fence"]
        elif (bare := line.strip(" >")) and not bare.strip(fence[0]) and len(bare) >= len(fence):
            yield "\n".join(block)
            block = None
        else:
            block.append(line.removeprefix(indent) if line.startswith(indent) else line.lstrip(" "))
    if block:
        yield "\n".join(block)


def pasted_safely(text: str) -> tuple[str, int]:
    """Return a form of a text that is safe to paste, and the number of dropped characters. Pure.

    It drops characters that control a terminal, change the reading order or are invisible. An unusual blank becomes a
    space.
    """
    safe_text = "".join(char for char in _BLANKS.sub(" ", text) if char.isprintable() or char in "\n\t")
    return safe_text, len(text) - len(safe_text)


def clipboard_program(environment: Mapping[str, str], root: str) -> Sequence[str]:
    """Return the command that puts a text on the user's clipboard. Empty if there is none.

    Over SSH, only tmux reaches the user's own clipboard. Programs in the workspace `root` are never used.
    """
    ways = (
        ("TMUX", ("tmux", "load-buffer", "-w", "-")),
        ("", ("pbcopy",)),
        ("WAYLAND_DISPLAY", ("wl-copy",)),
        ("DISPLAY", ("xclip", "-selection", "clipboard")),
        ("DISPLAY", ("xsel", "--clipboard", "--input")),
    )
    is_remote = "SSH_CONNECTION" in environment
    program_environment = child_environment(environment)
    for variable, words in ways:
        if (variable and not environment.get(variable)) or (is_remote and variable != "TMUX"):
            continue
        if program := program_outside(root, words[0], program_environment):
            return (program, *words[1:])
    return ()


def _hand_over(conversation: Conversation, data: bytes) -> str:
    """Copy the data, and return a description of the method. Raises UsageError if no method works."""
    environment = conversation.place.environment
    if len(data) > MOST_BYTES:
        raise UsageError(
            f"the text is {size_of_bytes(len(data))} long, too much for a clipboard; /export writes a file"
        )
    words = clipboard_program(environment, conversation.place.workspace.root)
    if words and _is_taken(words, data, environment):
        return f"by {os.path.basename(words[0])}"
    if len(data) > MOST_SENT_BYTES:
        raise UsageError(f"the text is {size_of_bytes(len(data))} long, too much for a terminal; /export writes a file")
    if not conversation.screen.to_clipboard(data):
        raise UsageError("no clipboard can be reached from here; /export writes a file")
    return "by the terminal (OSC 52), if it lets programs copy"


def _is_taken(words: Sequence[str], data: bytes, environment: Mapping[str, str]) -> bool:
    import subprocess

    try:
        done = subprocess.run(
            words, input=data, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=SECONDS, check=False,
            env=dict(environment),
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


COMMANDS = (
    SlashCommand(
        name="/copy",
        arguments="[code]",
        summary="copy the last answer, or its last block of code",
        group=HelpGroup.TALK,
        run=copy,
    ),
)
