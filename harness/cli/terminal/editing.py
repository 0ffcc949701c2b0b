"""Editing what a call would do, in the person's own editor: a private file goes out, and arguments come back, or words why not.

What comes back is a call like every other: it is judged anew. Nothing is taken that was not plainly meant: an editor that
fails, a file that is gone, emptied, unchanged, too large or no text leaves the question as it is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import pairwise

from harness.actions import Action, JsonValue
from harness.cli.terminal import editor_command
from harness.record import Record


class Edited(Record):
    """The call as it is wanted."""

    arguments: str
    """JSON text."""


class NotEdited(Record):
    """The call is as it was."""

    why: str


class _Text(Record):
    """What goes to the editor."""

    body: str
    suffix: str


def is_editable(action: Action) -> bool:
    """Say whether there is something in the call that can be edited."""
    return _text_of(action) is not None


def edited(action: Action, environment: Mapping[str, str]) -> Edited | NotEdited:
    """Let the person edit the command or the new content of `action`, and return what they made of it.

    The editor is $VISUAL, else $EDITOR, else vi or nano; it gets this terminal. A line end that the editor adds at the
    end of a text without one is taken off again.
    """
    text = _text_of(action)
    if text is None:
        return NotEdited(why="there is nothing to edit here")
    if not _is_plain_text(text.body):
        return NotEdited(why="it holds characters that no text file can hold")
    came = editor_command.edited(text.body, environment, name=f"edit{text.suffix}")
    if came.problem:
        return NotEdited(why=came.problem)
    body = came.text
    # What was no UTF-8 was replaced on the way in.
    if not _is_plain_text(body) or body.count("\ufffd") > text.body.count("\ufffd"):
        return NotEdited(why="what came back is no text: it is not UTF-8, or holds NUL bytes")
    if body == text.body:
        return NotEdited(why="nothing was changed")
    if not body.strip():
        return NotEdited(why="the text was emptied: n says no")
    return _arguments(action, body)


def _is_plain_text(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _text_of(action: Action) -> _Text | None:
    """Return what of the call's arguments is edited, or None where there is no such thing."""
    arguments = action.arguments
    match action.tool:
        case "bash":
            return _plain(arguments.get("command"), ".sh")
        case "write_file":
            return _plain(arguments.get("content"), _suffix(arguments.get("path")))
        case "edit_file":
            edits = arguments.get("edits")
            if edits is None:
                return _plain(arguments.get("new_string"), _suffix(arguments.get("path")))
            texts = _new_texts(edits)
            return None if texts is None else _Text(body=_sections(texts), suffix=".txt")
        case _:
            return None


def _plain(value: JsonValue, suffix: str) -> _Text | None:
    return _Text(body=value, suffix=suffix) if isinstance(value, str) else None


def _suffix(path: JsonValue) -> str:
    """Return the ending of a file's name, for the editor's colours, if it is a plain one."""
    ending = os.path.splitext(path)[1] if isinstance(path, str) else ""
    return ending if ending[1:].isascii() and ending[1:].isalnum() and len(ending) <= 10 else ".txt"


def _new_texts(edits: JsonValue) -> list[str] | None:
    if not isinstance(edits, list):
        return None
    texts = [edit.get("new_string") if isinstance(edit, dict) else None for edit in edits]
    found = [text for text in texts if isinstance(text, str)]
    return found if found and len(found) == len(texts) else None


def _marks(texts: list[str]) -> list[str]:
    """Return the lines around the new texts of several edits: such as none of the texts holds."""
    fence = "====="
    while any(line.startswith(fence) for text in texts for line in text.split("\n")):
        fence += "="
    count = len(texts)
    return [
        *(f"{fence} new text {number} of {count} (keep this line)" for number in range(1, count + 1)),
        f"{fence} end",
    ]


def _sections(texts: list[str]) -> str:
    """Return several new texts as one; `_split` is the way back."""
    marks = _marks(texts)
    return "".join(f"{mark}\n{text}\n" for mark, text in zip(marks, texts, strict=False)) + f"{marks[-1]}\n"


def _split(body: str, before: list[str]) -> list[str] | None:
    """Return the new texts out of the sections of `before` as they were edited, or None: the lines around them changed."""
    marks = _marks(before)
    lines = body.split("\n")
    places = [index for index, line in enumerate(lines) if line.startswith(marks[-1].removesuffix(" end"))]
    if [lines[index] for index in places] != marks or places[0] != 0 or any(lines[places[-1] + 1 :]):
        return None
    return ["\n".join(lines[start + 1 : end]) for start, end in pairwise(places)]


def _arguments(action: Action, body: str) -> Edited | NotEdited:
    """Return the call's arguments with the edited text in them."""
    wanted: dict[str, JsonValue] = dict(action.arguments)
    edits = action.arguments.get("edits")
    if action.tool == "edit_file" and isinstance(edits, list):
        texts = _split(body, _new_texts(edits) or [])
        if texts is None:
            return NotEdited(why="the lines that part the new texts were changed")
        old = [edit for edit in edits if isinstance(edit, dict)]
        wanted["edits"] = [{**edit, "new_string": new} for edit, new in zip(old, texts, strict=True)]
    else:
        name = {"bash": "command", "write_file": "content", "edit_file": "new_string"}[action.tool]
        wanted[name] = body
    return Edited(arguments=json.dumps(wanted))
