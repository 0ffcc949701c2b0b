"""The user's own editor: for the line at the prompt, and for the command or content of a call.

An edited call is judged anew, like every other. In case of doubt, the edit is rejected and the question stays open: if
the editor fails, or the file is missing, empty, unchanged, too large or not text.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise

from harness.actions import Action, JsonValue
from harness.record import Record
from harness.safe_files import read_small, write_new
from harness.terminal.keys import kept_mode
from harness.text.visible import visible_line
from harness.tool_kinds import Does

MOST_BYTES = 4_000_000
"""Maximum size of a text from an editor, in bytes: more than a model takes, and still quick to show."""
_FALLBACKS = ("vi", "nano")
_LAID_DOWN = "\x1b[?1047l\x1b[r\x1b[m\x1b[?25h\x1b[999;1H\n"
"""Sequences that restore the terminal after a killed editor (xterm, "Control Sequences").

They leave the alternate screen, reset the scroll region and the text style, show the cursor, and move it below the text.
1047 is used because 1049 would move the cursor if there is no alternate screen.
"""


class NotEdited(Exception):
    """The result of the editor is rejected, for the reason in the text."""


def edited(text: str, environment: Mapping[str, str], *, name: str = "prompt.md", repaints: bool = False) -> str:
    """Let the user edit `text` in their editor, on the terminal of this process. Return the result.

    The editor is $VISUAL, else $EDITOR (with options, split like in a shell), else vi or nano. It gets a file `name`
    with mode 0600 in a temporary folder. A final newline that the editor adds is removed. Unread keys are dropped when
    the editor ends, because they were not meant for the next question. `repaints` permits escapes that restore the
    screen after a killed editor. Raises NotEdited.
    """
    words = _editor(environment)
    try:
        folder = tempfile.mkdtemp(prefix="harness-", dir=environment.get("TMPDIR") or None)
    except OSError as error:
        raise NotEdited(f"no private folder can be made: {error.strerror}") from None
    try:
        path = os.path.join(folder, name)
        write_new(path, text.encode("utf-8", "replace"))
        _run([*words, path], repaints=repaints)
        data = read_small(path, MOST_BYTES)
    except OSError as error:
        raise NotEdited(f"the file for the editor cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if data is None:
        raise NotEdited(f"the edited text cannot be read: a regular file of at most {MOST_BYTES} bytes is wanted")
    came = data.decode("utf-8", "replace")
    return came if text.endswith("\n") else came.removesuffix("\n")


def _editor(environment: Mapping[str, str]) -> Sequence[str]:
    """Return the words of the editor's command line. Raises NotEdited if no editor is found."""
    path = environment.get("PATH", os.defpath)
    for variable in ("VISUAL", "EDITOR"):
        command = environment.get(variable, "").strip()
        if not command:
            continue
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise NotEdited(f"{variable} cannot be read: {error}") from None
        if shutil.which(words[0], path=path) is None:
            raise NotEdited(f"{variable} names a missing program: {visible_line(words[0])}")
        return words
    for fallback in _FALLBACKS:
        if shutil.which(fallback, path=path):
            return (fallback,)
    raise NotEdited("no editor was found: set VISUAL or EDITOR")


def _run(words: Sequence[str], *, repaints: bool) -> None:
    """Run an editor to its end, and restore the terminal afterwards. Raises NotEdited."""
    import subprocess

    with kept_mode(sys.stdin.fileno()), _interrupts_left_to_it():
        try:
            code = subprocess.call(words)
        except OSError as error:
            raise NotEdited(f"{visible_line(words[0])} cannot be run: {error.strerror}") from None
        try:
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        except termios.error:
            pass  # the terminal is gone
    if code < 0:
        if repaints:
            sys.stdout.write(_LAID_DOWN)
            sys.stdout.flush()
        raise NotEdited(f"{visible_line(words[0])} was ended by signal {-code}")
    if code:
        raise NotEdited(f"{visible_line(words[0])} ended with exit code {code}")


@contextmanager
def _interrupts_left_to_it() -> Iterator[None]:
    """Ignore SIGINT in this process during the block, because Ctrl-C is meant for the editor only.

    Uses a handler and not SIG_IGN, which the editor would inherit (execve(2)).
    """
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Text(Record):
    """A text for the editor."""

    body: str
    suffix: str


def is_editable(action: Action) -> bool:
    """Return whether the call contains text that can be edited."""
    return _text_of(action) is not None


def edited_call(action: Action, environment: Mapping[str, str]) -> str:
    """Let the user edit the command or the new content of `action`. Return the arguments of the new call as JSON text.

    Raises NotEdited. See `edited`.
    """
    text = _text_of(action)
    if text is None:
        raise NotEdited("the call has no text to edit")
    if not _is_plain_text(text.body):
        raise NotEdited("the text has characters that a text file cannot hold")
    body = edited(text.body, environment, name=f"edit{text.suffix}")
    # Invalid UTF-8 was replaced when the file was read.
    if not _is_plain_text(body) or body.count("\ufffd") > text.body.count("\ufffd"):
        raise NotEdited("the edited text is not UTF-8, or has NUL bytes")
    if body == text.body:
        raise NotEdited("nothing was changed")
    if not body.strip():
        raise NotEdited("the text is empty; press n to refuse the call")
    return _arguments(action, body)


def _is_plain_text(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _text_of(action: Action) -> _Text | None:
    """Return the editable part of the call's arguments, or `None` if there is none."""
    arguments, kind = action.arguments, action.kind
    if not kind.edited:
        return None
    if kind.edited_each in arguments:
        texts = _new_texts(arguments[kind.edited_each], kind.edited)
        return None if texts is None else _Text(body=_sections(texts), suffix=_suffix(kind.subject_of(arguments)))
    suffix = ".sh" if kind.does is Does.RUNS else _suffix(kind.subject_of(arguments))
    return _plain(arguments.get(kind.edited), suffix)


def _plain(value: JsonValue, suffix: str) -> _Text | None:
    return _Text(body=value, suffix=suffix) if isinstance(value, str) else None


def _suffix(path: JsonValue) -> str:
    """Return the suffix of a file's name, for the editor's syntax colours. `.txt` if it is unusual."""
    ending = os.path.splitext(path)[1] if isinstance(path, str) else ""
    return ending if ending[1:].isascii() and ending[1:].isalnum() and len(ending) <= 10 else ".txt"


def _new_texts(edits: JsonValue, edited: str) -> list[str] | None:
    """Return the field `edited` of each of several edits. `None` if one of them has no such text."""
    if not isinstance(edits, list):
        return None
    texts = [edit.get(edited) if isinstance(edit, dict) else None for edit in edits]
    strings = [text for text in texts if isinstance(text, str)]
    return strings if strings and len(strings) == len(texts) else None


def _marks(texts: list[str]) -> list[str]:
    """Return the separator lines for the new texts of several edits. None of the texts contains such a line."""
    fence = "====="
    while any(line.startswith(fence) for text in texts for line in text.split("\n")):
        fence += "="
    count = len(texts)
    return [
        *(f"{fence} new text {number} of {count} (keep this line)" for number in range(1, count + 1)),
        f"{fence} end",
    ]


def _sections(texts: list[str]) -> str:
    """Return several new texts as one text with separators. `_split` reverses it."""
    marks = _marks(texts)
    return "".join(f"{mark}\n{text}\n" for mark, text in zip(marks, texts, strict=False)) + f"{marks[-1]}\n"


def _split(body: str, before: list[str]) -> list[str] | None:
    """Return the edited new texts from a text that `_sections(before)` made. `None` if the separators were changed."""
    marks = _marks(before)
    lines = body.split("\n")
    places = [index for index, line in enumerate(lines) if line.startswith(marks[-1].removesuffix(" end"))]
    if [lines[index] for index in places] != marks or places[0] != 0 or any(lines[places[-1] + 1 :]):
        return None
    return ["\n".join(lines[start + 1 : end]) for start, end in pairwise(places)]


def _arguments(action: Action, body: str) -> str:
    """Return the call's arguments with the edited text, as JSON text. Raises NotEdited."""
    arguments: dict[str, JsonValue] = dict(action.arguments)
    kind = action.kind
    edits = action.arguments.get(kind.edited_each)
    if isinstance(edits, list):
        texts = _split(body, _new_texts(edits, kind.edited) or [])
        if texts is None:
            raise NotEdited("the lines that part the new texts were changed")
        old = [edit for edit in edits if isinstance(edit, dict)]
        arguments[kind.edited_each] = [{**edit, kind.edited: new} for edit, new in zip(old, texts, strict=True)]
    else:
        arguments[kind.edited] = body
    return json.dumps(arguments)
