"""Tool calls that a server left in the text, because it did not read its model's own format; pure.

They are told and never run: a text that looks like a call is not one that anybody made.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from harness.errors import ModelError, ModelFault
from harness.messages import ModelResponse

_MARKS = (
    "[TOOL_CALLS]",  # Mistral
    "<tool_call>",  # Qwen, Hermes, GLM
    "<function_call>",
    "<|python_tag|>",  # Llama
    "<function=",  # Llama, Qwen coder
    "<|tool_calls_section_begin|>",  # Kimi
    "<\uff5ctool\u2581calls\u2581begin\uff5c>",  # DeepSeek
    "<\uff5ctool\u2581call\u2581begin\uff5c>",
)
_LOOKED_AT = 65_536
"""How many characters of a text are looked at, from its beginning and from its end: calls stand there."""
_WINDOW = 400
"""How many characters after a mark are looked at."""
# What stands between the mark and the tool's name: JSON with a name in it, other marks, or nothing.
_NAMED = re.compile(
    r"(?:\s|<function=|<\|[a-z_]+\|>|<\uff5c[^>\uff5c]{1,30}\uff5c>|\[|\{|function(?=<)|functions\.|"
    r"\"(?:type|id)\"\s*:\s*\"[^\"]{0,80}\"\s*,|\"function\"\s*:|\"name\"\s*:|\")*+(?P<name>[A-Za-z0-9_.-]{1,64})"
    r"(?=\s*[\"\[({<>:,`])"
)


def refuse_unread(reply: ModelResponse, offered: AbstractSet[str]) -> None:
    """Raise ModelError for a reply without calls whose text calls an offered tool."""
    if not reply.tool_calls and (name := unread_call(reply.text, offered)):
        raise ModelError(
            f"The model called {name}, but its server left the call in the text instead of reading it; nothing was "
            "run. Start the server with the parser for this model (vLLM: --enable-auto-tool-choice and "
            "--tool-call-parser; SGLang: --tool-call-parser; llama-server: --jinja), or choose another model.",
            fault=ModelFault.REPLY,
        )


def unread_call(text: str, offered: AbstractSet[str]) -> str:
    """Return the name of an offered tool that `text` calls in some model's own format; empty if it calls none.

    A call begins a line and names its tool right there. Text that only talks about such marks, or quotes them in a
    code block, is none. Of a long text the middle is not looked at.
    """
    parts = [(0, len(text))]
    if len(text) > 2 * _LOOKED_AT:
        parts = [(0, _LOOKED_AT), (len(text) - _LOOKED_AT, len(text))]
    found = sorted(position for mark in _MARKS for part in parts for position in _positions(text, mark, *part))
    fences, seen = 0, 0
    for position in found:
        fences += text.count("```", seen, position)
        seen = position
        if fences % 2 or text[max(0, position - 80) : position].rpartition("\n")[2].strip():
            continue
        start = position if text.startswith("<function=", position) else _after_mark(text, position)
        named = _NAMED.match(text[start : start + _WINDOW])
        name = named["name"].removesuffix(".call") if named is not None else ""
        if name in offered:
            return name
    return ""


def _positions(text: str, mark: str, start: int, end: int) -> list[int]:
    positions, position = [], text.find(mark, start, end)
    while position >= 0:
        positions.append(position)
        position = text.find(mark, position + len(mark), end)
    return positions


def _after_mark(text: str, position: int) -> int:
    return position + next(len(mark) for mark in _MARKS if text.startswith(mark, position))
