"""/copy: what of an answer goes to which clipboard, and that nothing else does."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from repl_scene import Start, prompts
from rows import all_rows

from harness.app.commands.copy import clipboard_program, code_blocks, last_answer, pasted_safely
from harness.messages import Message, Role
from harness.models.scripted import Reply, replies

if TYPE_CHECKING:
    from program import Program

ANSWER = "Run this:\n\n```sh\nls\n```\n\nor this:\n\n1. here\n\n   ```python\n   if a:\n       b()\n   ```\n\nDone."


@pytest.fixture
def start(program: Program) -> Iterator[Start]:
    program.environment["PATH"] = f"{program.home}:/usr/bin:/bin"
    for name in ("TMUX", "DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION"):
        assert name not in program.environment
    with prompts(program) as starting:
        yield starting


def sent(raw: bytes) -> list[str]:
    """Return what was handed to the clipboard of the terminal."""
    return [base64.b64decode(found).decode() for found in re.findall(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", raw)]


@pytest.mark.terminal
def test_an_answer_and_its_last_code_go_to_the_terminal(start: Start) -> None:
    prompt = start(replies(Reply(text=ANSWER), Reply(text="Nothing \x1b]52;c;aGk=\x07 to see.")))
    prompt.say("/copy", "the model has said nothing yet")
    prompt.ask("how?", "Done.")
    prompt.say("/copy", "by the terminal (OSC 52), if it lets programs copy")
    prompt.say("/copy code", "copied 13 characters")
    prompt.ask("and then?", "to see.")
    prompt.say("/copy code", "the last answer has no block of code")
    prompt.say("/copy all", "usage: /copy, or /copy code")
    prompt.say("/copy", "2 hidden or control characters left out")
    assert sent(prompt.raw) == [ANSWER, "if a:\n    b()", "Nothing ]52;c;aGk= to see."]
    assert prompt.leave() == 0


@pytest.mark.terminal
def test_clipboard_program_is_preferred_to_the_terminal(program: Program, start: Start) -> None:
    taken = program.home / "taken"
    (program.home / "wl-copy").write_text(f"#!/bin/sh\ncat > {shlex.quote(str(taken))}\n")
    (program.home / "wl-copy").chmod(0o755)
    program.environment["WAYLAND_DISPLAY"] = "wayland-0"
    prompt = start(replies(Reply(text="Good.")))
    prompt.ask("how?", "Good.")
    prompt.say("/copy", "copied 5 characters by wl-copy")
    assert taken.read_text() == "Good."
    assert sent(prompt.raw) == []
    assert prompt.leave() == 0


@pytest.mark.terminal
def test_copy_without_clipboard_or_room_reports_the_reason(program: Program, start: Start) -> None:
    prompt = start(replies(Reply(text="word " * 12_000)))
    prompt.ask("how?", "word")
    prompt.say("/copy", "too much for a terminal; /export writes a file")
    assert prompt.leave() == 0
    program.environment["TERM"] = "dumb"
    prompt = start(replies(Reply(text="Good.")), waits_for="/help")
    prompt.ask("how?", "Good.")
    prompt.say("/copy", "no clipboard can be reached from here")


def said(role: Role, text: str) -> Message:
    return Message(role=role, content=text, tool_call_id="c1" if role is Role.TOOL else None)


@all_rows(
    ("messages", "expected"),
    [
        pytest.param((), "", id="nothing yet"),
        pytest.param((said(Role.ASSISTANT, "one"), said(Role.ASSISTANT, " \n")), "one", id="calls without a word"),
        pytest.param(
            (said(Role.ASSISTANT, "one"), said(Role.TOOL, "two"), said(Role.USER, "three")), "one", id="its own"
        ),
    ],
)
def test_copy_takes_the_last_model_text_only(messages: tuple[Message, ...], expected: str) -> None:
    assert last_answer(messages) == expected


@all_rows(
    ("text", "expected"),
    [
        pytest.param("no `code` here", [], id="none"),
        pytest.param("```\na\n\nb\n```", ["a\n\nb"], id="one"),
        pytest.param("~~~~ sh\n```\n~~~\n~~~~", ["```\n~~~"], id="fences inside"),
        pytest.param("> ```\n> a\n> ```", ["a"], id="quoted"),
        pytest.param("- ```\n  a\n  ```", [], id="behind a bullet it is no fence of ours"),
        pytest.param("```py\na", ["a"], id="cut off"),
        pytest.param("```\n```", [""], id="empty"),
        pytest.param("``` `a` ```", [], id="inline"),
    ],
)
def test_blocks_of_code(text: str, expected: list[str]) -> None:
    assert list(code_blocks(text)) == expected


@all_rows(
    ("text", "expected", "dropped"),
    [
        pytest.param("a\tb\n", "a\tb\n", 0, id="plain"),
        pytest.param("rm\x1b[2K\r\x07ls\x9b", "rm[2Kls", 4, id="controls"),
        pytest.param("a\u202eb\u200bc\U000e0041", "abc", 3, id="what turns or hides"),
        pytest.param("a\u00a0b\u2003c", "a b c", 0, id="blanks"),
        pytest.param("日本 ü", "日本 ü", 0, id="letters of all scripts"),
    ],
)
def test_pasted_text_is_inserted_without_line_ends_or_controls(text: str, expected: str, dropped: int) -> None:
    assert pasted_safely(text) == (expected, dropped)


@all_rows(
    ("environment", "expected"),
    [
        pytest.param({}, [], id="none"),
        pytest.param({"DISPLAY": ":0"}, ["xclip", "-selection", "clipboard"], id="X"),
        pytest.param({"DISPLAY": ":0", "WAYLAND_DISPLAY": "w"}, ["wl-copy"], id="Wayland first"),
        pytest.param({"DISPLAY": ":0", "SSH_CONNECTION": "1 2 3 4"}, [], id="another machine's"),
        pytest.param({"TMUX": "x", "SSH_CONNECTION": "1 2 3 4"}, ["tmux", "load-buffer", "-w", "-"], id="tmux knows"),
    ],
)
def test_clipboard_program_is_chosen_from_environment(
    tmp_path: Path, environment: dict[str, str], expected: list[str]
) -> None:
    for name in ("xclip", "wl-copy", "tmux"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    found = clipboard_program({**environment, "PATH": f".:{tmp_path}"}, "/workspace")
    assert [word.removeprefix(f"{tmp_path}/") for word in found] == expected
    assert not clipboard_program({**environment, "PATH": ".:/nowhere"}, "/workspace")
    assert not clipboard_program({**environment, "PATH": str(tmp_path)}, str(tmp_path.parent))
