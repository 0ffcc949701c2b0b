"""Divergence: the first difference between a conversation and a recorded one. A replay reports it, and continues.

Even two equal runs differ in some output of their tools: durations, clock times, temporary names, the workspace. These
are normalized before texts are compared (`common_form`). The system message is not compared: it names the policy and
the folder, which may differ in a replay.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence

from harness.messages import Message, Role
from harness.record import Record

SHOWN_CHARACTERS = 300
"""Number of characters stored from the beginning of a text, and from its end."""
_KEPT_OF_CUT = 2_000
"""Number of characters compared at each end of an output that was cut. The place of the cut varies with path lengths."""

_CUT = re.compile(r"\[\.\.\. [\d,]+ bytes, (?:about )?[\d,]+ lines omitted")
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
# Each pattern starts at a word boundary, so that the search takes linear time.
_VARYING: tuple[tuple[re.Pattern[str], str], ...] = (
    # Marks of masked secrets. Their digest uses a key that differs for each installation.
    (re.compile(r"\[redacted:([a-z0-9_-]{1,40}):[0-9a-f]{8}\]"), r"[redacted:\1]"),
    # Names of temporary files by harness, mkdtemp and mktemp(1), and of temporary folders by pytest.
    (
        re.compile(
            r"(?<![^\s'\",:;()\[\]=])[^\s'\",:;()\[\]=]*/"
            r"(?:output-[0-9a-f]{12}\.txt|harness-[a-z0-9_]{8}\b|tmp[A-Za-z0-9_]{8}\b|tmp\.[A-Za-z0-9]{6,12}\b"
            r"|pytest-of-\w{1,64}/pytest-\d+)"
        ),
        "<temporary>",
    ),
    (re.compile(r"\b\d+m\d+[.,]\d+s\b"), "<time>"),  # bash's `time`
    (re.compile(r"\b\d+(?:[.,]\d+)?\s?(?:ns|us|µs|ms|s|secs?|seconds?)\b"), "<time>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:T(?=\d\d:))?"), "<date>"),
    (re.compile(rf"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?(?:{_MONTHS}) [ \d]?\d\b"), "<date>"),
    (re.compile(r"(?<![\w:.])\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?\b"), "<clock>"),
    (re.compile(r"(?<=<date>)\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?\b"), "<clock>"),
    (re.compile(r"\b(?i:pid|process)(?: id)?[ =:#]{1,3}\d+\b"), "<process>"),
    (re.compile(r"(?m)^\[\d+\] \d+$"), "<process>"),  # bash's line about a background job
    (re.compile(r"\b0x[0-9a-fA-F]{6,16}\b"), "<address>"),
    # A commit that the run itself makes: its hash depends on its date.
    (re.compile(r"(^|\n)(commit |\[[\w/.-]{1,200} (?:\(root-commit\) )?)[0-9a-f]{7,40}\b"), r"\1\2<commit>"),
    (
        re.compile(r"([=_*.#~-])\1{3,}"),
        r"\1\1\1\1",
    ),  # a row of signs fills a line, so that its length depends on a duration
)


class MessageOutline(Record):
    """The data of a sent message that a cassette stores: enough to recognize the same message."""

    role: str
    tool: str = ""
    """Name of the called tool, for a tool message."""
    sha256: str
    """SHA-256 of the text in its common form, in UTF-8."""
    characters: int
    begins: str
    ends: str = ""
    """The last characters of the text. Empty if `begins` holds the whole text."""


class Divergence(Record):
    """The first difference from the recorded conversation."""

    request: int
    """Number of the request to the model, from 1."""
    message: int
    """Index in the conversation: 0 is the system message, -1 the offered tools."""
    role: str
    """Role of the message; `tools` if other tools are offered."""
    tool: str
    """Name of the called tool, for a tool result."""
    recorded: str
    """Excerpt of the recorded text: its beginning, or its end if the beginnings are equal. Empty if the message is
    missing.
    """
    now: str


Places = Mapping[str, str]
"""Absolute paths with their placeholders in compared texts, such as `<workspace>`."""


class Outlines:
    """Makes outlines of a growing conversation. Each message is processed once."""

    def __init__(self, redact: Callable[[str], str], places: Places) -> None:
        """`redact` masks the secrets of each text before any of it is stored."""
        self._redact = redact
        self._place = _placed(places)
        self._cache: list[tuple[Message, str, MessageOutline]] = []

    def of(self, messages: Sequence[Message]) -> list[MessageOutline]:
        """Return an outline for each message."""
        tools: dict[str, str] = {}
        outlines: list[MessageOutline] = []
        for index, message in enumerate(messages):
            tools.update({call.id: call.name for call in message.tool_calls})
            tool = tools.get(message.tool_call_id or "", "") if message.role is Role.TOOL else ""
            entry = self._cache[index] if index < len(self._cache) else None
            if entry is None or entry[0] is not message or entry[1] != tool:
                entry = (message, tool, self._outline(message, tool))
                self._cache[index : index + 1] = [entry]
            outlines.append(entry[2])
        return outlines

    def _outline(self, message: Message, tool: str) -> MessageOutline:
        calls = "".join(f"\n{call.name} {call.arguments}" for call in message.tool_calls)
        text = self._place(self._redact(message.content + calls))
        return MessageOutline(
            role=message.role.value,
            tool=tool[:SHOWN_CHARACTERS],
            sha256=hashlib.sha256(common_form(text).encode("utf-8", "surrogatepass")).hexdigest(),
            characters=len(text),
            begins=text[:SHOWN_CHARACTERS],
            ends=text[-SHOWN_CHARACTERS:] if len(text) > SHOWN_CHARACTERS else "",
        )


def _placed(places: Places) -> Callable[[str], str]:
    """Return a function that replaces these paths, and the same paths as prefixes, with placeholders."""
    placeholders = {path: name for path, name in places.items() if path.startswith("/") and len(path) > 1}
    placeholders.update(
        {json.dumps(path, ensure_ascii=False)[1:-1]: name for path, name in placeholders.items()}
    )  # the JSON form, in arguments of calls
    if not placeholders:
        return lambda text: text
    paths = sorted(placeholders, key=len, reverse=True)
    pattern = re.compile(f"({'|'.join(re.escape(path) for path in paths)})" + r"(?![\w-]|\.\w)")
    return lambda text: pattern.sub(lambda match: placeholders[match[0]], text)


def common_form(text: str) -> str:
    """Return `text` with placeholders for details that vary between equal runs, and without the middle of cut output."""
    if _CUT.search(text):
        text = f"{text[:_KEPT_OF_CUT]}\n[...]\n{text[-_KEPT_OF_CUT:]}"
    for pattern, name in _VARYING:
        text = pattern.sub(name, text)
    return text


def first_divergence(
    request: int,
    recorded: Sequence[MessageOutline],
    now: Sequence[MessageOutline],
    tools: tuple[Sequence[str], Sequence[str]],
) -> Divergence | None:
    """Return the first difference of a request from the recorded one, or `None`.

    `tools` holds the names of the recorded tools and of the offered ones.
    """
    for index in range(max(len(recorded), len(now))):
        old = recorded[index] if index < len(recorded) else None
        new = now[index] if index < len(now) else None
        if old is not None and new is not None and (old.role, old.tool, old.sha256) == (new.role, new.tool, new.sha256):
            continue
        if old is not None and new is not None and old.role == new.role == Role.SYSTEM.value:
            continue
        outline = new or old
        was, is_now = _apart(old, new)
        return Divergence(
            request=request,
            message=index,
            role=outline.role if outline else "",
            tool=outline.tool if outline else "",
            recorded=was,
            now=is_now,
        )
    if sorted(tools[0]) != sorted(tools[1]):
        was, is_now = (", ".join(names)[:SHOWN_CHARACTERS] for names in tools)
        return Divergence(request=request, message=-1, role="tools", tool="", recorded=was, now=is_now)
    return None


def _apart(old: MessageOutline | None, new: MessageOutline | None) -> tuple[str, str]:
    """Return an excerpt of each message that shows the difference: the beginnings, the ends, or a summary."""
    if old is None or new is None or old.role != new.role:
        return _beginning(old), _beginning(new)
    if common_form(old.begins) != common_form(new.begins):
        return old.begins, new.begins
    if old.ends and new.ends and common_form(old.ends) != common_form(new.ends):
        return old.ends, new.ends
    return _middle(old), _middle(new)


def _beginning(outline: MessageOutline | None) -> str:
    return "" if outline is None else outline.begins


def _middle(outline: MessageOutline) -> str:
    begins = outline.begins[: SHOWN_CHARACTERS // 2]
    return f"{begins} [alike at both ends; {outline.characters:,} characters, {outline.sha256[:12]}]"
