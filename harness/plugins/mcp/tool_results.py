"""A server's answer to a call as text: its texts, and a note for each other part. Links are not followed."""

from __future__ import annotations

import json

from harness.actions import JsonValue

_LINK, _EMBEDDED = "resource_link", "resource"
_OF_DATA = ("image", "audio")


def texts_of(result: JsonValue) -> str:
    """Return the texts of a result, followed by its structured content unless a text is equal to that."""
    blocks = result.get("content") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(blocks, list):
        return compact(result)
    texts = [_words_of(block) for block in blocks]
    structured = result.get("structuredContent")
    if structured is not None and not any(_says(text, structured) for text in texts):
        texts.append(f"structured: {compact(structured)}")
    return "\n".join(texts)


def compact(value: JsonValue) -> str:
    """Return a value as JSON text without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _words_of(block: JsonValue) -> str:
    if not isinstance(block, dict):
        return compact(block)
    kind, text = block.get("type"), block.get("text")
    if kind == "text" and isinstance(text, str):
        return text
    if kind in _OF_DATA:
        return f"[{kind}: {_data(block)}; not shown]"
    if kind == _LINK:
        return f"[link: {_block_name(block)}; not followed]"
    inner = block.get("resource")
    if kind == _EMBEDDED and isinstance(inner, dict):
        inner_text = inner.get("text")
        if isinstance(inner_text, str):
            return f"[resource: {_block_name(inner)}]\n{inner_text}"
        return f"[resource: {_block_name(inner)}: {_data(inner)}; not shown]"
    return compact({name: _without_data(name, value) for name, value in block.items()})


def _data(block: dict[str, JsonValue]) -> str:
    """Return size and type of a part with base64 data."""
    data = block.get("data", block.get("blob"))
    size = len(data.rstrip("=")) * 3 // 4 if isinstance(data, str) else 0
    kind = block.get("mimeType")
    return f"{size:,} bytes of {kind[:100] if isinstance(kind, str) and kind else 'an unknown type'}"


def _block_name(block: dict[str, JsonValue]) -> str:
    return (
        " ".join(str(block[name]) for name in ("name", "uri") if isinstance(block.get(name), str)) or "without a name"
    )


def _without_data(name: str, value: JsonValue) -> JsonValue:
    return f"({len(value)} characters)" if name in ("data", "blob") and isinstance(value, str) else value


def _says(text: str, structured: JsonValue) -> bool:
    """Return whether a text is the structured content as JSON, as the protocol recommends."""
    try:
        return bool(json.loads(text) == structured)
    except (ValueError, RecursionError):
        return False
