"""The picture on the clipboard: taken by the user's programs, which small scripts stand for, and mentioned in the line."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from picture_files import png
from repl_scene import prompts
from rows import all_rows

from harness.app.repl.clipboard_picture import MOST_BYTES, clipboard_picture
from harness.errors import UsageError
from harness.models.scripted import Reply, replies

if TYPE_CHECKING:
    from program import Program

WAYLAND, X11 = {"WAYLAND_DISPLAY": "wayland-0"}, {"DISPLAY": ":0"}
LISTS = {"wl-paste": "*--list-types*", "xclip": "*TARGETS*"}
CTRL_V = "\x16"


def install(folder: Path, name: str, types: str, data: bytes = b"", *, code: int = 0) -> None:
    """Write a program that prints the types on the clipboard, or the data."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.data").write_bytes(data)
    program = folder / name
    program.write_text(
        f'#!/bin/bash\ncase "$*" in\n{LISTS[name]}) printf "{types}" ;;\n*) cat "{folder}/{name}.data" ;;\nesac\nexit {code}\n'
    )
    program.chmod(0o755)


def environment(folder: Path, display: dict[str, str]) -> dict[str, str]:
    return {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder), **display}


@all_rows(
    ("name", "display", "types", "data", "ending"),
    [
        ("wl-paste", WAYLAND, "text/plain\nimage/png\n", png(), "png"),
        ("xclip", X11, "TARGETS\nimage/jpeg\nimage/gif\n", b"\xff\xd8\xff\xe0", "jpg"),
        ("xclip", {**WAYLAND, **X11}, "image/png\n", png(), "png"),
    ],
)
def test_picture_is_stored_for_its_owner_alone(
    tmp_path: Path, name: str, display: dict[str, str], types: str, data: bytes, ending: str
) -> None:
    install(tmp_path / "bin", name, types.replace("\n", "\\n"), data)
    path = clipboard_picture(
        environment(tmp_path / "bin", display), str(tmp_path / "workspace"), str(tmp_path / "state" / "pictures")
    )
    assert Path(path).read_bytes() == data
    assert path.endswith(f".{ending}")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700


@all_rows(
    ("display", "types", "data", "code", "problem"),
    [
        ({}, "image/png", png(), 0, "no clipboard can be reached: neither WAYLAND_DISPLAY nor DISPLAY is set"),
        (X11, "image/png", png(), 0, "a picture needs xclip, not installed here"),
        (WAYLAND, "text/plain", b"words", 0, "the clipboard has no picture"),
        (WAYLAND, "image/png", png(), 1, "the clipboard has no picture"),
        (WAYLAND, "image/png", b"<html>", 0, "wl-paste printed no png picture"),
        (WAYLAND, "image/png", png() + b"0" * MOST_BYTES, 0, "the picture on the clipboard is larger than 4.2 MB"),
    ],
)
def test_missing_picture_has_a_reason(
    tmp_path: Path, display: dict[str, str], types: str, data: bytes, code: int, problem: str
) -> None:
    install(tmp_path / "bin", "wl-paste", types, data, code=code)
    variables = {**environment(tmp_path / "bin", display), "PATH": f"{tmp_path}/bin:/bin:/usr/bin"}
    with pytest.raises(UsageError) as raised:
        clipboard_picture(variables, str(tmp_path / "workspace"), str(tmp_path / "pictures"))
    assert str(raised.value) == problem
    assert not (tmp_path / "pictures").exists()


def test_program_of_the_workspace_is_not_used(tmp_path: Path) -> None:
    install(tmp_path / "bin", "wl-paste", "image/png", png())
    with pytest.raises(UsageError):
        clipboard_picture(environment(tmp_path / "bin", WAYLAND), str(tmp_path), str(tmp_path / "pictures"))


@pytest.mark.terminal
def test_picture_is_mentioned_and_attached(program: Program, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Without a picture, the status line names the problem until the next key."""
    folder = tmp_path_factory.mktemp("bin")
    install(folder, "wl-paste", "text/plain")
    program.environment.update(PATH=f"{folder}:{program.environment['PATH']}", WAYLAND_DISPLAY="wayland-0")
    with prompts(program) as start:
        prompt = start(replies(Reply(text="A picture.")))
        prompt.write("what is this")
        prompt.send(CTRL_V)
        prompt.wait_for("the clipboard has no picture")
        install(folder, "wl-paste", "image/png", png())
        prompt.send("?")
        prompt.wait_gone("the clipboard has no picture")
        prompt.send(CTRL_V)
        prompt.wait_for("> what is this? @")
        prompt.wait_until(lambda: "clipboard-" in "".join(prompt.text().split()), "the line mentions no picture")
        prompt.send("\r")
        prompt.wait_for("A picture.")
        assert prompt.leave() == 0
    (message,) = [record for record in program.records() if record["kind"] == "user_message"]
    assert str(message["text"]).startswith("what is this? @")
    (call,) = [record for record in program.records() if record["kind"] == "outcome"]
    assert call["status"] == "ok"
