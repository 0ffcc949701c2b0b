"""Links swapped while a call is judged and done, and several writers of one file: never another file, never half of one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from file_road import EFFECTS, Road, failed
from places import ROOT

from harness.errors import ToolError
from harness.messages import ResultStatus, ToolCall
from harness.tools.edit_file import EditFileTool
from harness.tools.read_file import ReadFileTool
from harness.tools.write_file import WriteFileTool

SECRET = b"the secret\n"
OWN = b"the own file\n"
SWAPS = 5_000
CALLS = 2_000


@pytest.fixture
def road(tmp_path: Path) -> Iterator[Road]:
    made = Road(tmp_path)
    yield made
    made.log.close()


# A process of its own swaps: a thread would share the interpreter's lock, and its swaps would fall between the calls.
SWAPPER = """
import os, sys
place, own, other = sys.argv[1:]
os.symlink(other, place + ".link")
print("ready", flush=True)
swaps = 0
while True:
    for source, target in ((place, own), (place + ".link", place), (place, place + ".link"), (own, place)):
        try:
            os.rename(source, target)
        except OSError:
            pass  # a write came between: the next round goes on from what is there
    if not os.path.lexists(place + ".link"):
        os.symlink(other, place + ".link")
    swaps += 2
    if swaps % 100 == 0:
        os.write(1, b"%d\\n" % swaps)
"""


@contextmanager
def swapping(place: Path, other: Path) -> Iterator[Callable[[], int]]:
    """Swap `place` and a link to `other` as fast as it goes, until the block is left; yield what counts the swaps."""
    process = subprocess.Popen(
        [sys.executable, "-c", SWAPPER, str(place), f"{place}.own", str(other)],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    last = [0]

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            last[0] = int(line)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield lambda: last[0]
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stdout.close()


@pytest.mark.parametrize("what", ["the file", "its folder"])
def test_a_link_swapped_while_reading_never_gives_another_files_bytes(road: Road, tmp_path: Path, what: str) -> None:
    secret = tmp_path / "elsewhere" / "f.txt"
    secret.parent.mkdir()
    secret.write_bytes(SECRET)
    path = road.unread("dir/f.txt", OWN)
    tool = ReadFileTool(road.workspace)
    place, other = (path, secret) if what == "the file" else (path.parent, secret.parent)
    counted: dict[str, int] = {}

    with swapping(place, other) as swaps:
        while swaps() < SWAPS or sum(counted.values()) < CALLS:
            try:
                action = tool.prepare(ToolCall(id="c", name="read_file", arguments=""), {"path": "dir/f.txt"})
                (judged,) = action.facets
                said = tool.run(action, EFFECTS).content
            except ToolError as error:
                said = f"Error: {error}"
            else:
                assert judged.real in (str(path), str(secret))  # type: ignore[union-attr]
                expected = SECRET if judged.real == str(secret) else OWN  # type: ignore[union-attr]
                assert expected.decode().strip() in said, "the bytes of a file that was not judged"
            kind = said.split(":")[0] if said.startswith("Error") else "read"
            counted[kind] = counted.get(kind, 0) + 1

    assert counted.get("read", 0) > CALLS / 40, counted


@pytest.mark.parametrize("what", ["the file", "its folder"])
@pytest.mark.parametrize("tool_name", ["write_file", "edit_file"])
def test_a_link_swapped_while_writing_never_changes_another_file(
    road: Road, tmp_path: Path, what: str, tool_name: str
) -> None:
    secret = tmp_path / "elsewhere" / "f.txt"
    secret.parent.mkdir()
    secret.write_bytes(OWN)  # the very bytes, so that a check of content alone would not notice
    path = road.unread("dir/f.txt", OWN)
    place, other = (path, secret) if what == "the file" else (path.parent, secret.parent)
    done = 0

    with swapping(place, other) as swaps:
        number = 0
        while swaps() < SWAPS or number < CALLS or done < CALLS / 40:
            number += 1
            try:
                road.baselines.saw(str(path), path.read_bytes())
            except OSError:
                continue  # in the middle of a swap
            arguments = (
                {"content": f"mine {number}\n"}
                if tool_name == "write_file"
                else {"old_string": "\n", "new_string": " \n"}
            )
            tool = road.tool(tool_name)
            try:
                action = tool.prepare(
                    ToolCall(id="c", name=tool_name, arguments=""), {"path": "dir/f.txt", **arguments}
                )
                if action.change is None or action.change.path != str(path):
                    continue  # judged as the other file: that would be asked about
                tool.run(action, EFFECTS)
                done += 1
            except (ToolError, OSError):
                pass
    assert secret.read_bytes() == OWN
    assert sorted(each.name for each in secret.parent.iterdir()) == ["f.txt"]


# Several writers

COUNTER = """
import sys
from harness.actions import Effects
from harness.errors import ToolError
from harness.messages import ToolCall
from harness.files.baselines import Baselines
from harness.tools.edit_file import EditFileTool
from harness.files.workspace import Workspace

class Forgetful(Baselines):
    "Of a session that looks at the file anew before each edit."
    def get(self, real):
        return None

tool = EditFileTool(Workspace(sys.argv[1]), baselines=Forgetful())
effects = Effects(read=None, write=None, network=False, unasked=False)
done = 0
while done < int(sys.argv[3]):
    arguments = {"path": "f.txt", "old_string": "end", "new_string": sys.argv[2] + "\\nend"}
    try:
        tool.run(tool.prepare(ToolCall(id="c", name="edit_file", arguments=""), arguments), effects)
        done += 1
    except ToolError as error:
        assert "changed on disk after the call was checked" in str(error), error
"""


def test_processes_that_edit_one_file_lose_no_edit(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("x" * 20_000 + "\nend")
    environment = {**os.environ, "PYTHONPATH": ROOT}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", COUNTER, str(tmp_path), word, "40"], env=environment, stderr=subprocess.PIPE
        )
        for word in ("one", "two", "three")
    ]
    errors = [writer.communicate(timeout=300)[1] for writer in writers]

    lines = (tmp_path / "f.txt").read_text().split("\n")

    assert errors == [b"", b"", b""]
    assert sorted(lines[1:-1]) == sorted(["one"] * 40 + ["two"] * 40 + ["three"] * 40)
    assert (lines[0], lines[-1], os.listdir(tmp_path)) == ("x" * 20_000, "end", ["f.txt"])


def test_threads_that_make_one_new_file_do_not_overwrite_each_other(road: Road) -> None:
    results: list[str] = []
    for attempt in range(30):
        tools = [WriteFileTool(road.workspace) for _ in range(2)]
        actions = [
            tool.prepare(
                ToolCall(id="c", name="write_file", arguments=""), {"path": f"f{attempt}", "content": f"{number}"}
            )
            for number, tool in enumerate(tools)
        ]
        said: dict[int, str] = {}

        def write(number: int) -> None:
            try:
                said[number] = tools[number].run(actions[number], EFFECTS).content  # noqa: B023 - joined below
            except ToolError as error:
                said[number] = str(error)  # noqa: B023

        threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        winner = int((road.root / f"f{attempt}").read_text())
        assert said[winner].startswith("Created")
        results.append(said[1 - winner])

    assert {result.partition(" ")[2] for result in results} == {
        "changed on disk after the call was checked. Nothing was written. Read it again."
    }


def test_a_reader_never_sees_half_a_file(road: Road) -> None:
    path = road.file("f.txt", b"0" * 300_000)
    stop = threading.Event()
    seen: set[bytes] = set()

    def look() -> None:
        while not stop.is_set():
            data = path.read_bytes()
            seen.add(data[:1] if data == data[:1] * 300_000 else b"half")

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(1, 60):
        road.run("write_file", path="f.txt", content=str(number % 10) * 300_000)
    stop.set()
    reader.join()

    assert b"half" not in seen
    assert len(seen) > 1


def test_folder_locked_for_too_long_is_an_error(road: Road, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    from harness.files import file_changes

    monkeypatch.setattr(file_changes, "MAX_LOCK_SECONDS", 0.05)
    road.file("f.txt", b"old\n")
    folder = os.open(road.root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        held = road.run("write_file", path="f.txt", content="new\n")
    finally:
        os.close(folder)

    said = "Another program holds the lock of the folder of f.txt. The file was not changed. Try again."
    assert held == failed(f"Error: {said}")
    assert road.run("write_file", path="f.txt", content="new\n").status is ResultStatus.OK
    assert road.tree() == {"f.txt": b"new\n"}


def test_sessions_never_edit_changes_of_others_they_have_not_read(road: Road) -> None:
    """The one that was judged on the older content is told so."""
    path = road.unread("f.txt", b"one\ntwo\n")
    first, second = EditFileTool(road.workspace), EditFileTool(road.workspace)
    call = ToolCall(id="c", name="edit_file", arguments="")
    actions = [
        tool.prepare(call, {"path": "f.txt", "old_string": old, "new_string": "x"})
        for tool, old in ((first, "one"), (second, "two"))
    ]

    first.run(actions[0], EFFECTS)
    with pytest.raises(ToolError, match="changed on disk after the call was checked"):
        second.run(actions[1], EFFECTS)

    assert path.read_bytes() == b"x\ntwo\n"
