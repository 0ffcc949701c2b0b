"""PDFs by page, out of a child process behind walls; hostile files are words."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import zlib
from pathlib import Path

import pytest
from file_road import EFFECTS
from pdf_files import pdf

from harness import ToolError, Workspace
from harness.actions import JsonValue
from harness.gate.tool import ToolOutput
from harness.messages import ToolCall
from harness.plugins.media import pdf_child
from harness.session.shipped_plugins import file_readers
from harness.tools.command_runner import CommandRunner
from harness.tools.read_file import ReadFileTool

THREE = pdf(["Hello world", "Second page", "The last one"])


def read(folder: Path, data: bytes, **arguments: int) -> ToolOutput:
    """Return what the tool returns of a file of these bytes."""
    (folder / "a.pdf").write_bytes(data)
    workspace = Workspace(str(folder), home=str(folder))
    commands = CommandRunner(workspace, environment={"PATH": os.environ["PATH"]})
    tool = ReadFileTool(workspace, readers=file_readers(), commands=commands)
    given: dict[str, JsonValue] = {"path": "a.pdf", **arguments}
    return tool.run(tool.prepare(ToolCall(id="c", name="read_file", arguments="{}"), given), EFFECTS)


def test_a_pdf_is_read_by_page(tmp_path: Path) -> None:
    output = read(tmp_path, THREE)
    assert output.content == (
        "--- page 1 ---\nHello world\n--- page 2 ---\nSecond page\n--- page 3 ---\nThe last one\n"
        f"[pages 1-3 of 3; PDF, {len(THREE):,} bytes; text alone]"
    )


def test_offset_and_limit_are_pages(tmp_path: Path) -> None:
    output = read(tmp_path, THREE, offset=2, limit=1)
    assert output.content.startswith("--- page 2 ---\nSecond page\n[pages 2-2 of 3; ")
    assert output.content.endswith("; continue with offset=3]")
    assert output.truncated
    with pytest.raises(ToolError, match=r"offset 4 is past the end \(3 pages\)"):
        read(tmp_path, THREE, offset=4)


def test_a_page_of_more_text_than_a_result_holds_is_cut(tmp_path: Path) -> None:
    output = read(tmp_path, pdf(["x" * 200_000, "y"]))
    assert len(output.content) < 60_000
    assert "this page is cut" in output.content
    assert output.content.endswith("continue with offset=2]")


def _bomb() -> bytes:
    """Return a PDF whose page is some 2 GB when it is unpacked."""
    packer = zlib.compressobj(9)
    block = bytes(1 << 20)
    packed = b"".join(packer.compress(block) for _ in range(2_000)) + packer.flush()
    return re.sub(
        rb"<< /Length \d+ >>\nstream\n.*?\nendstream",
        lambda _: b"<< /Length %d /Filter /FlateDecode >>\nstream\n" % len(packed) + packed + b"\nendstream",
        pdf(["bomb"]),
        flags=re.DOTALL,
    )


HOSTILE = {
    "nothing but the mark": b"%PDF-1.7\n",
    "random bytes": b"%PDF-1.4\n" + bytes(range(256)) * 50,
    "a cut file": THREE[:200],
    "pages that are their own parents": THREE.replace(b"/Kids [4 0 R 6 0 R 8 0 R]", b"/Kids [2 0 R 2 0 R 2 0 R]"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_invalid_pdf_is_an_error_in_words(tmp_path: Path, name: str) -> None:
    with pytest.raises(ToolError, match=r"a\.pdf is a PDF whose text cannot be read: \S"):
        read(tmp_path, HOSTILE[name])


def test_a_bomb_takes_neither_memory_nor_the_harness(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with contextlib.suppress(ToolError):  # one library takes a part of it, another none
        assert len(read(tmp_path, _bomb()).content) < 60_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


def test_child_process_imports_no_harness_module(tmp_path: Path) -> None:
    assert read(tmp_path, THREE, limit=1).content.startswith("--- page 1 ---\nHello world\n")
    text = Path(pdf_child.__file__).read_text()
    assert "import harness" not in text
    assert "from harness" not in text
