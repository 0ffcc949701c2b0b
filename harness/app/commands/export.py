"""/export: write the conversation to a new Markdown file that only its owner can read."""

from __future__ import annotations

import os
from collections.abc import Iterator

from harness.app.commands.conversation import Conversation
from harness.errors import UsageError
from harness.files.folders import open_folder
from harness.messages import Message, Role
from harness.paths import is_within_any
from harness.plugin import HelpGroup, SlashCommand
from harness.session.own_folders import output_path
from harness.terminal.styles import Tone
from harness.text.visible import visible, visible_line

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def export(conversation: Conversation, rest: str) -> None:
    """Write the conversation to the named file, or to a new file in the state folder, outside any repository.

    Raises UsageError if the file cannot be written.
    """
    if not rest.isprintable():
        raise UsageError("usage: /export [FILE], a name on one line")
    path = _output_path(conversation, rest) if rest else _new_path(conversation)
    text = conversation.place.redactor.redact("\n".join(_document(conversation)))
    try:
        folder = open_folder(os.path.dirname(path))
        try:
            descriptor = os.open(os.path.basename(path), _FLAGS, 0o600, dir_fd=folder)
        finally:
            os.close(folder)
    except FileExistsError:
        raise UsageError(f"{visible_line(path, 1_000)} is there already; name another file") from None
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{visible_line(path, 1_000)} cannot be written: {problem}") from None
    try:
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{visible_line(path, 1_000)} is not whole: {error.strerror}") from None
    conversation.say_line(
        f"written: {path}  (readable by you alone; secrets that are known are masked)", Tone.GOOD, max_characters=5_000
    )


def _output_path(conversation: Conversation, name: str) -> str:
    workspace = conversation.place.workspace
    path = output_path(os.path.expanduser(name), (workspace.root, *workspace.added))
    if is_within_any(path, conversation.place.state.guarded):
        raise UsageError("sessions cannot be written into the harness's own folders; choose another place")
    return path


def _new_path(conversation: Conversation) -> str:
    try:
        return conversation.place.state.new_export_path(conversation.session.identity)
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be made: {error.strerror}; name a file") from None


def _document(conversation: Conversation) -> Iterator[str]:
    session, log = conversation.session, conversation.agent.log
    yield f"# Session {session.identity}"
    yield ""
    yield f"- model: {_inline(conversation.agent.model.name)}"
    yield f"- workspace: {_inline(conversation.place.workspace.root)}"
    yield f"- policy: {_inline(conversation.agent.gate.policy.name)}"
    yield f"- action log: {_inline(log.path)}, {log.count} records, head {log.head}"
    yield ""
    yield "This is the conversation as it stands; what was undone, cleared or summarized is in the log alone."
    for message in session.messages[1:]:
        yield ""
        yield from _message(message)
    yield ""


def _message(message: Message) -> Iterator[str]:
    match message.role:
        case Role.USER:
            yield "## You"
            yield ""
            yield from _quoted(message.content)
        case Role.ASSISTANT:
            yield "## Model"
            yield ""
            yield from _quoted(message.content)
            for call in message.tool_calls:
                yield ""
                yield f"### Call: {_inline(call.name)}"
                yield ""
                yield from _fenced(call.arguments)
        case Role.TOOL:
            yield "### Result"
            yield ""
            yield from _fenced(message.content)
        case Role.SYSTEM:
            pass


def _quoted(text: str) -> Iterator[str]:
    """Yield a text as a block quote, so that its headings do not look like those of the document."""
    for line in visible(text).split("\n"):
        yield f"> {line}".rstrip()


def _fenced(text: str) -> Iterator[str]:
    """Yield a text in a fence that is longer than any fence in the text (CommonMark 0.31, section 4.5)."""
    text = visible(text)
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}text"
    yield text
    yield fence


def _inline(text: str) -> str:
    return f"`{visible_line(text, 5_000).replace('`', chr(39))}`"


COMMANDS = (
    SlashCommand(
        name="/export",
        arguments="[FILE]",
        summary="write the conversation to a new Markdown file",
        group=HelpGroup.TALK,
        run=export,
        max_arguments=None,
    ),
)
