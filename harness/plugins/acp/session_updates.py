"""Updates for the client about a session, created from the log's records or from an old conversation.

Secrets in records are already masked. Output and questions are fenced, since a client renders text as Markdown.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from acp import (
    plan_entry,
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
    update_user_message_text,
)
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AvailableCommand,
    AvailableCommandInput,
    AvailableCommandsUpdate,
    ContentToolCallContent,
    CurrentModeUpdate,
    FileEditToolCallContent,
    PlanEntryStatus,
    SessionNotification,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolKind,
    UnstructuredCommandInput,
    UserMessageChunk,
)

from harness.actions import JsonValue
from harness.audit.helper_tree import Helper
from harness.digest import digest_of
from harness.files.before_images import BeforeImages
from harness.log.order import LogRecord
from harness.loop.compaction import split_summary
from harness.messages import Message, Role, ToolCall
from harness.plugin import SlashCommand
from harness.plugins.acp.prompt_blocks import fenced, in_code
from harness.session.person_message import own_words
from harness.terminal.trace import event_line, helper_line
from harness.text.visible import visible, visible_line
from harness.tool_kinds import Does, tool_kind
from harness.tools.todo import DOING, DONE, PENDING, TodoItem, TodoTool, items_in

Shown: TypeAlias = (
    AgentMessageChunk
    | AgentThoughtChunk
    | UserMessageChunk
    | ToolCallStart
    | ToolCallProgress
    | AgentPlanUpdate
    | AvailableCommandsUpdate
    | CurrentModeUpdate
)
MOST_DIFF_BYTES = 500_000
"""Maximum size of the old and the new content in a diff for the client. For larger ones it gets the result's text."""
MOST_TITLE = 300
_AS_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_STATES: Mapping[str, PlanEntryStatus] = {PENDING: "pending", DOING: "in_progress", DONE: "completed"}
_KINDS: dict[Does, ToolKind] = {Does.READS: "read", Does.WRITES: "edit", Does.RUNS: "execute", Does.OTHER: "other"}


def notification(session: str, update: Shown) -> dict[str, JsonValue]:
    """Return the parameters of `session/update`."""
    sent = SessionNotification(session_id=session, update=update)
    fields: dict[str, JsonValue] = sent.model_dump(mode="json", by_alias=True, exclude_none=True)
    return fields


def message_chunk(text: str) -> AgentMessageChunk:
    """Return an update with a piece of the model's text."""
    return update_agent_message_text(encodable_text(text))


def noted(text: str) -> AgentThoughtChunk:
    """Return an update with a line from harness, in a form that the client does not mistake for the model's text."""
    return update_agent_thought_text(encodable_text(f"harness: {text}\n"))


def planned(items: Sequence[TodoItem]) -> AgentPlanUpdate:
    """Return the model's todo list as a plan of the protocol."""
    return update_plan([plan_entry(encodable_text(visible(item.text)), status=_STATES[item.status]) for item in items])


def offered_commands(commands: Sequence[SlashCommand]) -> AvailableCommandsUpdate:
    """Return an update with the commands that may begin a prompt."""
    available = [
        AvailableCommand(
            name=command.name.removeprefix("/"),
            description=encodable_text(command.summary),
            input=AvailableCommandInput(root=UnstructuredCommandInput(hint=encodable_text(command.arguments))),
        )
        for command in commands
    ]
    return AvailableCommandsUpdate(session_update="available_commands_update", available_commands=available)


def encodable_text(text: str) -> str:
    """Return a text that UTF-8 can encode: lone surrogates are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def kind_of(tool: str) -> ToolKind:
    """Return the protocol's kind of a tool."""
    return _KINDS[tool_kind(tool).does]


def title_of(tool: str, summary: str) -> str:
    """Return the title of a call as one line of Markdown."""
    return f"{visible_line(tool, MOST_TITLE)} {in_code(visible_line(summary, MOST_TITLE))}".strip()


def text_content(text: str) -> ContentToolCallContent:
    """Return a text as content that a client displays unchanged, since it is in a Markdown code block."""
    return tool_content(text_block(fenced(visible(text))))


class RecordUpdates:
    """Converts the records of a session to updates for the client about its calls."""

    def __init__(self, workspace: str, images: BeforeImages, redact: Callable[[str], str]) -> None:
        """`images` holds the content of files before their changes. `redact` masks secrets in file content."""
        self._workspace = workspace
        self._images = images
        self._redact = redact
        self._lists: dict[str, Sequence[TodoItem]] = {}
        """The todo list of each call that sets one and has not ended."""
        self.asked_call = self.begun_call = ""
        """The client's names of the last call in question and of the last begun call, without calls of helpers."""

    def of(self, record: LogRecord, helper: Helper | None = None) -> Iterator[Shown]:
        """Yield the updates for a record. For a record of `helper`, titles and lines begin with the helper's name."""
        number = f"call-{record.get('call')}"
        call, title_prefix = (number, "") if helper is None else (f"{helper.session}-{number}", f"{helper.title}: ")
        match record["kind"]:
            case "call_proposed":
                yield self._proposed(call, title_prefix, record)
            case "decision" if record.get("summary"):
                title = title_of(str(record.get("tool")), str(record["summary"]))
                yield update_tool_call(call, title=encodable_text(f"{title_prefix}{title}"))
            case "approval_asked":
                self.asked_call = self.asked_call if title_prefix else call
            case "intent":
                self.begun_call = self.begun_call if title_prefix else call
                yield update_tool_call(call, status="in_progress", content=[])
            case "outcome":
                yield self._end_update(call, record)
                if (items := self._lists.pop(call, None)) is not None and record.get("status") == "ok":
                    yield planned(items)
            case "error" if "retry_seconds" not in record:
                pass  # the answer to the prompt reports the error
            case _:
                line = (None if helper is None else helper_line(record, helper)) or event_line(record)
                if line is not None:
                    yield noted(f"{title_prefix}{line.text}")

    def _proposed(self, call: str, title_prefix: str, record: LogRecord) -> ToolCallStart:
        tool, arguments = str(record.get("tool")), str(record.get("arguments"))
        if tool == TodoTool.kind.name and (items := items_in(arguments)) is not None:
            self._lists[call] = items
        return started(call, tool, arguments_of(arguments), self._workspace, title_prefix=title_prefix)

    def _end_update(self, call: str, record: LogRecord) -> ToolCallProgress:
        status = str(record.get("status"))
        difference = self._difference(record)
        content = difference or text_content(str(record.get("content")))
        output: dict[str, JsonValue] = {"status": status}
        if record.get("exit_code") is not None:
            output["exit_code"] = record["exit_code"]
        done = status == "ok"
        return update_tool_call(call, status="completed" if done else "failed", content=[content], raw_output=output)

    def _difference(self, record: LogRecord) -> FileEditToolCallContent | None:
        """Return a call's change of a file as a diff. `None` if the old or new content is missing, too long or not text."""
        path, before, after = (record.get(name) for name in ("changed_path", "before_sha256", "after_sha256"))
        if not isinstance(path, str) or not isinstance(after, str):
            return None
        old = self._images.get(before) if isinstance(before, str) else b""
        try:
            with open(os.open(path, _AS_FILE), "rb") as file:
                new = file.read(MOST_DIFF_BYTES + 1)
        except OSError:
            return None
        if old is None or max(len(old), len(new)) > MOST_DIFF_BYTES or digest_of(new) != after:
            return None
        try:
            texts = [self._redact(side.decode()) for side in (old, new)]
        except UnicodeDecodeError:
            return None
        return tool_diff_content(encodable_text(path), texts[1], texts[0] if isinstance(before, str) else None)


def started(
    call: str, tool: str, arguments: JsonValue, workspace: str, *, result: str | None = None, title_prefix: str = ""
) -> ToolCallStart:
    """Return an update for a new call or, with `result`, for a completed call. Its title begins with `title_prefix`."""
    subject = tool_kind(tool).subject_of(arguments) or ""
    place = os.path.join(workspace, subject) if tool_kind(tool).is_of_files else ""
    return start_tool_call(
        call,
        encodable_text(f"{title_prefix}{title_of(tool, subject)}"),
        kind=kind_of(tool),
        status="pending" if result is None else "completed",
        locations=[ToolCallLocation(path=encodable_text(place))] if place else None,
        raw_input=json.loads(encodable_text(json.dumps(arguments, ensure_ascii=False))),
        content=[text_content(result)] if result else None,
    )


def arguments_of(text: str) -> JsonValue:
    """Parse the arguments of a call; return the text itself if it is invalid JSON."""
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def replayed(messages: Sequence[Message], workspace: str) -> Iterator[Shown]:
    """Yield updates for an old conversation: the user's own text, the model's text, and each call with its result."""
    results = {result.tool_call_id: result.content for result in messages if result.role is Role.TOOL}
    number = 0
    for message in messages:
        match message.role:
            case Role.USER:
                summary, words = split_summary(message.content)
                if summary:
                    yield update_agent_thought_text(encodable_text(summary))
                if words := own_words(words):
                    yield update_user_message_text(encodable_text(words))
            case Role.ASSISTANT:
                if message.content:
                    yield message_chunk(message.content)
                for call in message.tool_calls:
                    number += 1
                    yield _replayed_call(f"past-{number}", call, results.get(call.id, ""), workspace)
            case Role.SYSTEM | Role.TOOL:
                pass


def _replayed_call(name: str, call: ToolCall, result: str, workspace: str) -> ToolCallStart:
    return started(name, call.name, arguments_of(call.arguments), workspace, result=result)
