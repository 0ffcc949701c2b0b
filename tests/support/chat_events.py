"""Chat events as servers write them: pieces of a reply, and the bytes of a stream."""

from __future__ import annotations

import json

DONE = "[DONE]"


def chunk(delta: object = None, finish: object = None, **more: object) -> dict[str, object]:
    """Return one completion chunk."""
    return {"choices": [{"index": 0, "delta": delta if delta is not None else {}, "finish_reason": finish}], **more}


def said(content: object, finish: object = None, **more: object) -> dict[str, object]:
    return chunk({"content": content}, finish, **more)


def fragment(
    arguments: object = None, *, index: object = 0, call_id: object = None, name: object = None
) -> dict[str, object]:
    """Return one tool-call delta; what is None is absent, what is `...` is null."""
    function = {"name": name, "arguments": arguments}
    function = {key: None if value is ... else value for key, value in function.items() if value is not None}
    fields = {"index": index, "id": call_id, "type": "function", "function": function or None}
    return {key: None if value is ... else value for key, value in fields.items() if value is not None}


def calls(*fragments: object, finish: object = None) -> dict[str, object]:
    return chunk({"tool_calls": list(fragments)}, finish)


def sse(*events: object) -> bytes:
    """Return events as a stream; texts are data as they are."""
    return b"".join(
        b"data: " + (event if isinstance(event, str) else json.dumps(event)).encode() + b"\n\n" for event in events
    )


STOP, CALLED = chunk(finish="stop"), chunk(finish="tool_calls")
