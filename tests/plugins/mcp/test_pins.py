"""The pins of a server: what is kept, by several processes too, and what happens to a file that is not understood."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from mcp_scene import tool
from rows import all_rows

from harness.errors import UsageError
from harness.plugins.mcp.pins import PinFile, ToolPin, servers_in
from harness.plugins.mcp.tool_description import MOST_CHARACTERS, ToolDescription, described

WORDS = ("npx", "server", "--key", "s3cret")


def description(name: str = "echo", text: str = "Does it.", **further: object) -> ToolDescription:
    found = described(tool(name, text, **further), WORDS, "npx server --key [redacted]")
    assert isinstance(found, ToolDescription)
    return found


def test_listed_pinned_and_changed_tools_are_saved(tmp_path: Path) -> None:
    pins = PinFile(str(tmp_path / "mcp"), "srv")
    one, other = description(), description(text="Else.")
    assert (pins.read(), servers_in(str(tmp_path / "mcp"))) == ({}, [])
    pins.note_listed({"echo": one})
    assert pins.read() == {"echo": ToolPin(listed=one)}
    pins.pin(one)
    assert pins.read() == {"echo": ToolPin(pinned=one)}
    pins.note_listed({"echo": other})
    assert PinFile(str(tmp_path / "mcp"), "srv").read() == {"echo": ToolPin(pinned=one, listed=other)}
    pins.note_listed({"echo": one})
    assert pins.read() == {"echo": ToolPin(pinned=one)}
    assert (pins.unpin("echo"), pins.unpin("echo"), pins.unpin("none")) == (True, False, False)
    assert pins.read() == {"echo": ToolPin(listed=one)}
    assert (os.stat(pins.path).st_mode & 0o777, servers_in(str(tmp_path / "mcp"))) == (0o600, ["srv"])


def test_the_file_holds_no_secret_of_the_command_line(tmp_path: Path) -> None:
    pins = PinFile(str(tmp_path), "srv")
    pins.pin(description())
    assert "s3cret" not in Path(pins.path).read_text()


def test_unchanged_description_is_not_written_again(tmp_path: Path) -> None:
    pins = PinFile(str(tmp_path), "srv")
    pins.note_listed({"echo": description()})
    before = os.stat(pins.path).st_ino
    pins.note_listed({"echo": description()})
    assert os.stat(pins.path).st_ino == before


@all_rows(
    ("text", "why"),
    [
        ("", "column"),
        ("[]", "another version"),
        ('{"version":2,"server":"srv","tools":{}}', "another version"),
        ('{"version":1,"server":"other","tools":{}}', "another server"),
        ('{"version":1,"server":"srv","tools":{},"tools":{}}', "duplicate key"),
        ('{"version":1,"server":"srv","tools":[]}', "unknown fields"),
        ('{"version":1,"server":"srv","tools":{},"x":1}', "unknown fields"),
        ('{"version":1,"server":"srv","tools":{"a":{}}}', "a has other fields"),
        ('{"version":1,"server":"srv","tools":{"a":{"pinned":{},"listed":null}}}', "a has other fields"),
        (
            '{"version":1,"server":"srv","tools":{"a":{"pinned":{"sha256":1,"command":"","definition":{}},"listed":null}}}',
            "another type",
        ),
    ],
)
def test_a_file_that_is_not_understood_is_an_error(text: str, why: str, tmp_path: Path) -> None:
    pins = PinFile(str(tmp_path), "srv")
    Path(pins.path).write_text(text)
    Path(pins.path).chmod(0o600)
    for act in (pins.read, lambda: pins.pin(description()), lambda: pins.note_listed({"echo": description()})):
        with pytest.raises(UsageError, match=why):
            act()
    assert Path(pins.path).read_text() == text


def test_pin_file_writable_by_others_is_refused(tmp_path: Path) -> None:
    pins = PinFile(str(tmp_path), "srv")
    pins.pin(description())
    Path(pins.path).chmod(0o666)
    with pytest.raises(UsageError, match="chmod"):
        pins.read()
    Path(pins.path).unlink()
    Path(pins.path).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="link"):
        pins.read()


def test_pins_of_several_writers_are_all_kept(tmp_path: Path) -> None:
    def write(number: int) -> None:
        pins = PinFile(str(tmp_path), "srv")
        for name in range(5):
            pins.pin(description(f"t{number}-{name}"))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(PinFile(str(tmp_path), "srv").read()) == 20


@all_rows(
    ("definition", "why"),
    [
        (1, "without a name"),
        ({}, "without a name"),
        ({"name": 1}, "without a name"),
        ({"name": ""}, "plain letters"),
        ({"name": "a b"}, "plain letters"),
        ({"name": "x" * 129}, "plain letters"),
        ({"name": "\u0435cho"}, "plain letters"),
        (tool("echo", "x" * MOST_CHARACTERS), "characters"),
    ],
)
def test_invalid_tool_definition_is_refused(definition: object, why: str) -> None:
    found = described(definition, WORDS, "npx")  # type: ignore[arg-type]  # whatever JSON holds
    assert isinstance(found, str)
    assert why in found


def test_digest_and_display_cover_the_entire_description() -> None:
    base = description()
    others = [
        description("echo2"),
        description(text="Does it. "),
        description(title="Echo"),
        description(annotations={"readOnlyHint": True}),
        description(outputSchema={"type": "object"}),
        description(further={"\u200b": 1}),
        described(tool("echo"), (*WORDS, "-x"), "npx server"),
    ]
    assert len({base.sha256, *(one.sha256 for one in others if isinstance(one, ToolDescription))}) == len(others) + 1
    shown = description(text="a\ninput schema:\n  x", further="\x1b[2J").text
    assert "\n  input schema:\n" in shown, "a text of the server's cannot look like a heading"
    assert "\\x1b[2J" in shown
    assert json.dumps("further") in shown
