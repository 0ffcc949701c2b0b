"""Convert the blocks of a prompt to text for the model. Links are not fetched: they become their title and address."""

from __future__ import annotations

import base64
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

from harness.app.repl.attached_files import MOST_FILES
from harness.app.run.run_prompt import MAX_PROMPT_CHARACTERS
from harness.messages import Attachment
from harness.plugins.acp.client_wire import RefusedRequest
from harness.plugins.media.picture_page import kept_picture
from harness.plugins.media.pictures import PictureError, clean_picture
from harness.process.json_rpc import RpcCode
from harness.record import Record
from harness.text.visible import visible_line
from harness.tools.file_reader import AttachmentKeeper

MOST_NAME = 2_000
Block: TypeAlias = (
    TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
)


class SaidPrompt(Record):
    """A prompt for the model."""

    text: str
    attachments: tuple[Attachment, ...] = ()


def said_prompt(
    blocks: Sequence[Block],
    redact: Callable[[str], str],
    expanded: Callable[[str], SaidPrompt],
    keeper: AttachmentKeeper,
) -> SaidPrompt:
    """Return the user's message: text and links in their order, then the attachments.

    `redact` masks attached text like the results of tools; the user's own text is not masked. `expanded` replaces a
    command by its text. `keeper` stores pictures. Raises the errors of `expanded`, and RefusedRequest for sound, other
    binary data, an empty prompt, more text than the log accepts, and a picture that is not accepted.
    """
    texts: list[str] = []
    attached: list[str] = []
    for block in blocks:
        match block:
            case TextContentBlock():
                texts.append(block.text)
            case ResourceContentBlock():
                texts.append(
                    f"[{visible_line(block.title or block.name, MOST_NAME)}]({visible_line(block.uri, MOST_NAME)})"
                )
            case EmbeddedResourceContentBlock(resource=TextResourceContents() as resource):
                uri = visible_line(resource.uri, MOST_NAME)
                texts.append(f"[{uri}]" if texts else "")
                attached.append(f"Attached by the person, {uri}:\n{fenced(redact(resource.text))}")
            case ImageContentBlock():
                continue
            case _:
                block_type = getattr(block, "type", "")
                problem = f"a prompt takes text, links, attached text and pictures; not {block_type}"
                raise RefusedRequest(RpcCode.PARAMS, problem)
    first = expanded("".join(texts).rstrip())
    text = "\n\n".join(part for part in (first.text, *attached) if part)
    if not text:
        raise RefusedRequest(RpcCode.PARAMS, "the prompt is empty")
    if len(text) > MAX_PROMPT_CHARACTERS:
        raise RefusedRequest(
            RpcCode.PARAMS, f"the prompt has {len(text):,} characters, and the log takes {MAX_PROMPT_CHARACTERS:,}"
        )
    return SaidPrompt(text=text, attachments=(*first.attachments, *_pictures(blocks, keeper)))


def _pictures(blocks: Sequence[Block], keeper: AttachmentKeeper) -> tuple[Attachment, ...]:
    """Return the distinct pictures of a prompt, stored by `keeper` without their metadata.

    Only their bytes are used: links are not followed, and the client's media type is not trusted. Raises RefusedRequest
    if the model accepts no pictures, for more than MOST_FILES, and for an invalid or too large picture.
    """
    pictures = [block for block in blocks if isinstance(block, ImageContentBlock)]
    if pictures and keeper.why_not:
        raise RefusedRequest(RpcCode.PARAMS, f"the model gets no pictures: {keeper.why_not}")
    if len(pictures) > MOST_FILES:
        raise RefusedRequest(RpcCode.PARAMS, f"a prompt takes at most {MOST_FILES} pictures")
    try:
        clean = [clean_picture(_bytes_of(block)) for block in pictures]
        return tuple(dict.fromkeys(kept_picture(picture, keeper) for picture in clean))
    except PictureError as error:
        raise RefusedRequest(RpcCode.PARAMS, f"a picture cannot be taken; {error}") from None
    except OSError as error:
        raise RefusedRequest(RpcCode.INTERNAL, f"a picture cannot be kept beside the log: {error.strerror}") from None


def _bytes_of(block: ImageContentBlock) -> bytes:
    """Decode the bytes of a picture. Raises PictureError."""
    try:
        return base64.b64decode(block.data, validate=True)
    except ValueError:  # binascii.Error is one
        raise PictureError("its data is not Base64") from None


def fenced(text: str) -> str:
    """Return a text as a Markdown code block. The fence is longer than any in the text, so the text cannot end it."""
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
