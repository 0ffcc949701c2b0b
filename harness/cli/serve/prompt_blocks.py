"""The blocks of a prompt as the text that the model reads. Nothing is fetched: a link is its words and its address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from acp.schema import (
    AudioContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from harness.cli.run.run_prompt import MAX_PROMPT_CHARACTERS
from harness.cli.serve.client_wire import RefusedRequest
from harness.mcp.json_rpc import RpcCode
from harness.text.visible import visible_line

MOST_NAME = 2_000
Block: TypeAlias = (
    TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
)


def prompt_text(blocks: Sequence[Block], redact: Callable[[str], str]) -> str:
    """Return what the person says: their words and links in their order, and behind them what they attached.

    What is attached is masked by `redact`, as the results of tools are; the person's own words are theirs. Raises
    RefusedRequest for pictures, sound, other bytes, nothing at all, and more than the log takes.
    """
    said: list[str] = []
    attached: list[str] = []
    for block in blocks:
        match block:
            case TextContentBlock():
                said.append(block.text)
            case ResourceContentBlock():
                said.append(
                    f"[{visible_line(block.title or block.name, MOST_NAME)}]({visible_line(block.uri, MOST_NAME)})"
                )
            case EmbeddedResourceContentBlock(resource=TextResourceContents() as resource):
                uri = visible_line(resource.uri, MOST_NAME)
                said.append(f"[{uri}]" if said else "")
                attached.append(f"Attached by the person, {uri}:\n{fenced(redact(resource.text))}")
            case _:
                what = getattr(block, "type", "")
                raise RefusedRequest(RpcCode.PARAMS, f"a prompt takes text, links and attached text; not {what}")
    text = "\n\n".join(part for part in ("".join(said).strip(), *attached) if part)
    if not text:
        raise RefusedRequest(RpcCode.PARAMS, "the prompt is empty")
    if len(text) > MAX_PROMPT_CHARACTERS:
        raise RefusedRequest(
            RpcCode.PARAMS, f"the prompt has {len(text):,} characters, and the log takes {MAX_PROMPT_CHARACTERS:,}"
        )
    return text


def fenced(text: str) -> str:
    """Return a text as a block of Markdown that nothing in it can end, or be drawn out of."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}\n{text}\n{fence}"


def in_code(text: str) -> str:
    """Return one line as code within a line of Markdown."""
    if not text:
        return ""
    marks = "`" * (_longest_run(text) + 1)
    blank = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{blank}{text}{blank}{marks}"


def _longest_run(text: str) -> int:
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return longest
