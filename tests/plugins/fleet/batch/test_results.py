"""Where results go: a folder or a store behind a URL, whole attempts, nothing overwritten, whatever is killed or full."""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from batch_scene import until
from results_scene import (
    TASK,
    Failing,
    attempt_log,
    files_below,
    finished,
    head_in,
    register,
    remembered,
)
from rows import all_rows

from harness.errors import UsageError
from harness.plugins.fleet.batch.results import AttemptTaken, Results
from harness.plugins.fleet.batch.store import READ_BACK_BYTES, FolderStore, ResultsError, is_url

pytestmark = pytest.mark.forges_logs

ATTEMPT = ("changes.patch", "head.json", "log.jsonl", "result.json", "stderr.txt", "work.json")


@pytest.fixture(autouse=True)
def stores() -> Iterator[None]:
    register()
    yield
    register()


@pytest.fixture(params=["folder", "file", "local", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place of each kind: a folder by its path, by file://, by fsspec's own folder; and one in memory."""
    out = tmp_path / "place"
    return {"folder": str(out), "file": f"file://{out}", "local": f"local://{out}", "memory": "memory://run/1"}[
        request.param
    ]


@pytest.fixture
def content(place: str, tmp_path: Path) -> Callable[[], dict[str, bytes]]:
    """Return all that lies in the place."""
    return lambda: remembered("run/1") if place.startswith("memory") else files_below(tmp_path / "place")


def at(out: str) -> Results:
    return Results.at(out, pauses=())


def test_a_published_attempt_has_the_layout_of_a_local_batch(
    place: str, content: Callable[[], dict[str, bytes]], tmp_path: Path
) -> None:
    folder = finished(tmp_path / "local" / "t")
    results = at(place)
    assert (results.tasks(), results.attempts("t"), results.published("t")) == (frozenset(), (), None)
    results.put(str(folder), "t", 1)
    local = files_below(folder)
    assert set(content()) == {"t/task.json", *(f"t/attempts/1/{name}" for name in ATTEMPT)}
    assert (results.tasks(), results.attempts("t"), results.is_complete("t", 1)) == (frozenset(("t",)), (1,), True)
    assert results.published("t") is None
    results.publish("t", 1)
    assert results.published("t") == 1
    there = content()
    for name, data in local.items():
        assert there[f"t/{name}"] == data
    for name in ATTEMPT[:2] + ATTEMPT[3:]:
        assert name == "head.json" or there[f"t/attempts/1/{name}"] == local[name]
    head = results.head("t", 1)
    assert head is not None
    assert (head["head"], head["closed"]) == (json.loads(local["work.json"])["head"], True)
    # Once more changes nothing.
    results.put(str(folder), "t", 1)
    results.publish("t", 1)
    assert content() == there


def test_published_results_are_fetched_on_another_machine(place: str, tmp_path: Path) -> None:
    attempt_log(tmp_path / "a" / "t", 1, whole=False)
    folder = finished(tmp_path / "a" / "t", 2)
    results = at(place)
    results.put_log(str(folder), "t", 1)
    results.put(str(folder), "t", 2)
    assert results.fetch("t", str(tmp_path / "early" / "t")) is None
    assert set(files_below(tmp_path / "early" / "t")) == {
        "task.json",
        *(f"attempts/{number}/{name}" for number in (1, 2) for name in ("log.jsonl", "head.json")),
    }
    results.publish("t", 2)
    for _ in range(2):  # the second time there is nothing to do
        assert at(place).fetch("t", str(tmp_path / "b" / "t")) == 2
        fetched = files_below(tmp_path / "b" / "t")
        assert {name: data for name, data in fetched.items() if not name.endswith("head.json")} == files_below(folder)
    assert results.fetch("t", str(tmp_path / "early" / "t")) == 2
    assert results.fetch("none", str(tmp_path / "b" / "none")) is None


def test_another_attempt_under_the_same_number_is_refused(
    place: str, content: Callable[[], dict[str, bytes]], tmp_path: Path
) -> None:
    results = at(place)
    results.put(str(finished(tmp_path / "a" / "t")), "t", 1)
    there = content()
    others = [
        finished(tmp_path / "b" / "t", answer="another"),
        finished(tmp_path / "c" / "t", patch="another\n"),
        finished(tmp_path / "d" / "t", calls=3),
    ]
    for other in others:
        with pytest.raises(AttemptTaken, match="attempt 1 of t is there already"):
            results.put(str(other), "t", 1)
    with pytest.raises(AttemptTaken, match=r"log.jsonl is there already"):
        results.put_log(str(attempt_log(tmp_path / "e" / "t", calls=4).parents[2]), "t", 1)
    assert content() == there


def test_the_second_of_two_results_is_refused_or_makes_room(
    place: str, content: Callable[[], dict[str, bytes]], tmp_path: Path
) -> None:
    results = at(place)
    folder = finished(tmp_path / "a" / "t")
    results.put(str(folder), "t", 1)
    results.publish("t", 1)
    finished(folder, 2, calls=3, answer="second", patch="")
    results.put(str(folder), "t", 2)
    there = content()
    for instead_of in (None, 2, 7):
        with pytest.raises(AttemptTaken, match="t has another result than that of attempt 2"):
            results.publish("t", 2, instead_of=instead_of)
    assert content() == there
    results.publish("t", 2, instead_of=1)
    assert results.published("t") == 2
    assert content()["t/result.json"] == (folder / "result.json").read_bytes()
    assert content()["t/changes.patch"] == b""
    assert results.is_complete("t", 1)
    with pytest.raises(ResultsError, match="attempt 3 of t is not complete"):
        results.publish("t", 3)


def test_only_written_files_are_uploaded(place: str, content: Callable[[], dict[str, bytes]], tmp_path: Path) -> None:
    def refused(folder: Path, words: str, attempt: int = 1) -> None:
        with pytest.raises(ResultsError, match=words):
            at(place).put(str(folder), "t", attempt)

    refused(tmp_path / "none", "does not hold the result of attempt 1")
    refused(finished(tmp_path / "a" / "t", 2), "does not hold the result of attempt 1")
    folder = finished(tmp_path / "b" / "t")
    (folder / "result.json").write_text("{}")
    refused(folder, "does not hold the result of attempt 1")
    folder = finished(tmp_path / "c" / "t")
    (folder / "changes.patch").write_text("changed")
    refused(folder, r"changes.patch was changed")
    log = finished(tmp_path / "d" / "t") / "attempts" / "1" / "log.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    refused(tmp_path / "d" / "t", "does not end as it did")
    log.unlink()
    refused(tmp_path / "d" / "t", "cannot be read")
    assert content() == {}


def test_unfinished_log_is_uploaded_and_continues(
    place: str, content: Callable[[], dict[str, bytes]], tmp_path: Path
) -> None:
    """What lies there may be a beginning of it; a head never goes back."""
    results = at(place)
    folder = attempt_log(tmp_path / "t", whole=False).parents[2]
    results.put_log(str(folder), "t", 1)
    early = content()["t/attempts/1/head.json"]
    assert not head_in(early)[2]
    finished(folder)
    results.put(str(folder), "t", 1)
    there = content()
    assert there["t/attempts/1/log.jsonl"] == (folder / "attempts" / "1" / "log.jsonl").read_bytes()
    assert head_in(there["t/attempts/1/head.json"])[0] == head_in(early)[0] + 2
    results.put_head("t", 1, early)
    assert content() == there


def test_a_place_with_another_task_of_that_name_is_refused(place: str, tmp_path: Path) -> None:
    results = at(place)
    results.put(str(finished(tmp_path / "a" / "t")), "t", 1)
    folder = finished(tmp_path / "b" / "t", 2)
    (folder / "task.json").write_text(TASK.text.replace("Do it", "Do more"))
    with pytest.raises(AttemptTaken, match=r"task.json is there already"):
        results.put(str(folder), "t", 2)


def test_fetch_never_overwrites_local_results_or_logs(place: str, tmp_path: Path) -> None:
    results = at(place)
    results.put(str(finished(tmp_path / "a" / "t")), "t", 1)
    results.publish("t", 1)
    own = finished(tmp_path / "own" / "t", 2, answer="mine")
    before = files_below(own)
    with pytest.raises(ResultsError, match=r"result.json is another result"):
        results.fetch("t", str(own))
    assert files_below(own).items() >= before.items()
    other = attempt_log(tmp_path / "other" / "t", calls=5)
    data = other.read_bytes()
    with pytest.raises(ResultsError, match=r"log.jsonl is not the log of attempt 1"):
        results.fetch("t", str(other.parents[2]))
    assert other.read_bytes() == data


def test_changed_results_are_not_fetched(tmp_path: Path) -> None:
    results = at(str(tmp_path / "place"))
    results.put(str(finished(tmp_path / "a" / "t")), "t", 1)
    results.publish("t", 1)
    for number, (name, words) in enumerate(
        [("result.json", "is not what was written"), ("changes.patch", "was changed"), ("work.json", "is not what")]
    ):
        path = tmp_path / "place" / "t" / name
        whole = path.read_bytes()
        path.write_bytes(whole[:-3] + b"x")
        into = tmp_path / f"b{number}" / "t"
        with pytest.raises(ResultsError, match=words):
            results.fetch("t", str(into))
        assert not (into / "result.json").exists()
        path.write_bytes(whole)
    assert results.fetch("t", str(tmp_path / "b9" / "t")) == 1


def test_inputs_are_stored_by_digest(place: str, content: Callable[[], dict[str, bytes]], tmp_path: Path) -> None:
    path = tmp_path / "some.bundle"
    path.write_bytes(b"bundle" * 1000)
    name = f"{hashlib.sha256(path.read_bytes()).hexdigest()}.bundle"
    results = at(place)
    results.put_input(str(path), name)
    results.put_input(str(path), name)
    assert content() == {f"inputs/{name}": path.read_bytes()}
    got = results.get_input(name, str(tmp_path / "got"))
    assert Path(got) == tmp_path / "got" / name
    assert Path(got).read_bytes() == path.read_bytes()
    assert results.get_input(name, str(tmp_path / "got")) == got
    with pytest.raises(ResultsError, match="does not have the digest"):
        results.put_input(str(path), f"{'0' * 64}.bundle")
    for bad in ("x.bundle", f"../{name}", f"{'0' * 63}.bundle", f"{'0' * 64}.a/b"):
        with pytest.raises(UsageError, match="called by its digest"):
            results.get_input(bad, str(tmp_path))
    # Another content under that name: an upload that was cut off, or somebody's hand.
    results.write_small(f"inputs/{name}", b"bund")
    with pytest.raises(ResultsError, match="does not have the digest that its name says"):
        results.get_input(name, str(tmp_path / "more"))
    assert files_below(tmp_path / "more") == {}
    results.put_input(str(path), name)
    assert Path(results.get_input(name, str(tmp_path / "more"))).read_bytes() == path.read_bytes()


def test_summaries_are_small_files_that_are_replaced(place: str) -> None:
    results = at(place)
    assert results.read_small("summary.json") is None
    for data in (b"first and long", b"second", b""):
        results.write_small("summary.json", data)
        assert results.read_small("summary.json") == data
    results.write_small("a/b/c.md", b"deep")
    assert results.read_small("a/b/c.md") == b"deep"
    for bad in ("../x", "/x", "a//b", "", "a/..", "a b", "a\nb"):
        with pytest.raises(UsageError, match="no file of results is called"):
            results.write_small(bad, b"")


def test_a_long_file_is_written_and_read_in_pieces(place: str, tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(os.urandom(READ_BACK_BYTES * 20 + 17))
    name = f"{hashlib.sha256(path.read_bytes()).hexdigest()}.tar"
    at(place).put_input(str(path), name)
    assert Path(at(place).get_input(name, str(tmp_path / "got"))).read_bytes() == path.read_bytes()


@all_rows(
    ("url", "words"),
    [
        ("s3://key:secret@bucket/run", "holds a name or a key before '@'"),
        ("s3://key@bucket/run", "holds a name or a key before '@'"),
        ("https://host/run?token=secret", "leave that out"),
        ("memory://run#secret", "leave that out"),
        ("simplecache::s3://bucket/run", "'::' is not taken"),
        ("s3://", "names no place"),
        ("memory:///", "names no place"),
        ("file://host/run", "has an absolute path"),
        ("memory://run/../other", "'..' is not taken"),
        ("nowhere://bucket/run", "nothing that is installed reads nowhere:// URLs"),
        ("dropbox://folder/run", "dropbox"),
    ],
)
def test_a_url_that_makes_no_sense_is_refused_without_its_secrets(url: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        Results.at(url)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


def test_url_and_folder_are_distinguished() -> None:
    assert [is_url(out) for out in ("s3://b/r", "file:///r", "/srv/r", "r", "./s3:/b", "C:/r")] == [
        True,
        True,
        *[False] * 4,
    ]


def test_missing_fsspec_error_names_the_package(tmp_path: Path) -> None:
    """And a folder is used without it."""
    code = """
import sys
sys.modules["fsspec"] = None
from harness.plugins.fleet.batch.results import Results
from harness.errors import UsageError
results = Results.at(sys.argv[1])
results.write_small("summary.json", b"1")
assert results.read_small("summary.json") == b"1"
try:
    Results.at("memory://run")
except UsageError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "out")], capture_output=True, text=True, check=True
    )
    assert "pip install 'permission-harness[fleet]'" in done.stdout


def test_files_in_a_folder_are_their_owners_alone(tmp_path: Path) -> None:
    results = at(str(tmp_path / "place"))
    results.put(str(finished(tmp_path / "a" / "t")), "t", 1)
    for path in (tmp_path / "place").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_a_folder_without_second_names_is_written_exclusively_too(tmp_path: Path) -> None:
    def no_links(_made: str, _path: str) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    store = FolderStore(str(tmp_path), link=no_links)
    assert store.create("a/b", lambda: (b"one",))
    assert not store.create("a/b", lambda: (b"two",))
    assert files_below(tmp_path) == {"a/b": b"one"}


def test_one_of_many_writers_of_an_attempt_wins_completely(tmp_path: Path) -> None:
    """Machines hold another attempt 1 each, and upload at the same time."""
    out = str(tmp_path / "place")
    folders = [finished(tmp_path / f"m{n}" / "t", calls=n + 1, answer=f"answer {n}", patch=f"{n}\n") for n in range(6)]
    barrier, won = threading.Barrier(len(folders)), list[Path]()

    def upload(folder: Path) -> None:
        barrier.wait()
        try:
            at(out).put(str(folder), "t", 1)
        except AttemptTaken:
            return
        won.append(folder)

    threads = [threading.Thread(target=upload, args=(folder,)) for folder in folders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = won
    at(out).publish("t", 1)
    assert at(out).fetch("t", str(tmp_path / "fetched")) == 1
    fetched = files_below(tmp_path / "fetched")
    assert {name: data for name, data in fetched.items() if not name.endswith("head.json")} == files_below(winner)


KILLED = """
import sys, time
from fsspec import register_implementation
from fsspec.implementations.local import LocalFileSystem, LocalFileOpener
from harness.plugins.fleet.batch.results import Results

class Slow(LocalFileSystem):
    protocol = "slow"
    def _open(self, path, mode="rb", **options):
        file = super()._open(path, mode, **options)
        if mode == "rb" or sys.argv[3] not in path:
            return file
        write = file.f.write
        def half(data):
            write(data[: len(data) // 2])
            file.f.flush()
            print("half", flush=True)
            time.sleep(600)
        file.write = half
        return file

register_implementation("slow", Slow)
Results.at("slow://" + sys.argv[1]).put(sys.argv[2], "t", 1)
"""


@all_rows("name", ["log.jsonl", "changes.patch", "work.json", "result.json"])
def test_an_upload_that_was_killed_in_the_middle_is_done_again(name: str, tmp_path: Path) -> None:
    """On a store that keeps a part of what was written, the worst of them."""
    folder, out = finished(tmp_path / "a" / "t"), tmp_path / "place"
    code = KILLED.replace('protocol = "slow"', 'protocol = "slow", "file", "local"')
    with subprocess.Popen(
        [sys.executable, "-c", code, str(out), str(folder), f"attempts/1/{name}"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half\n"
        os.kill(process.pid, signal.SIGKILL)
    until(lambda: process.poll() is not None)
    size = (out / "t" / "attempts" / "1" / name).stat().st_size
    assert 0 < size < max(len(data) for data in files_below(folder).values())
    for _ in range(2):
        at(f"local://{out}").put(str(folder), "t", 1)
    for at_place, data in files_below(out / "t" / "attempts" / "1").items():
        local = folder / "attempts" / "1" / "log.jsonl" if at_place == "log.jsonl" else folder / at_place
        assert at_place == "head.json" or data == local.read_bytes()
    at(f"local://{out}").publish("t", 1)


def test_full_store_is_reported_immediately(tmp_path: Path) -> None:
    folder = finished(tmp_path / "t")
    Failing.failing["changes.patch"] = [OSError(errno.ENOSPC, "No space left on device")]
    results = Results.at("failing://run", pauses=(600.0,))
    with pytest.raises(
        ResultsError, match=r"failing://run/t/attempts/1/changes.patch cannot be written: No space left"
    ):
        results.put(str(folder), "t", 1)
    assert not results.is_complete("t", 1)
    results.put(str(folder), "t", 1)  # there is room again
    assert results.is_complete("t", 1)


@all_rows(
    "error",
    [ConnectionResetError(errno.ECONNRESET, "reset"), RuntimeError("busy"), TimeoutError("too slow")],
    ids=["reset", "busy", "timeout"],
)
def test_temporary_failure_is_tried_again(error: Exception, tmp_path: Path) -> None:
    folder = finished(tmp_path / "t")
    run = type(error).__name__.lower()
    Failing.failing["result.json"] = [error, error]
    Results.at(f"failing://{run}", pauses=(0.0, 0.0)).put(str(folder), "t", 1)
    Failing.failing["result.json"] = [error, error]
    with pytest.raises(ResultsError, match="cannot be written"):
        Results.at(f"failing://{run}-other", pauses=(0.0,)).put(str(folder), "t", 1)


def test_interrupted_write_is_repeated_immediately(tmp_path: Path) -> None:
    folder = finished(tmp_path / "t")
    Failing.torn = {"log.jsonl": 100, "result.json": 5}
    register_after = Results.at("failing://run", pauses=(0.0,))
    register_after.put(str(folder), "t", 1)
    there = remembered("run/t/attempts/1")
    assert there["log.jsonl"] == (folder / "attempts" / "1" / "log.jsonl").read_bytes()
    assert there["result.json"] == (folder / "result.json").read_bytes()


def test_a_store_that_cannot_write_exclusively_is_looked_at_before(tmp_path: Path) -> None:
    folder = finished(tmp_path / "t")
    Failing.failing[" xb"] = [OSError(errno.ENOSYS, "NotImplemented"), NotImplementedError("xb"), ValueError("mode")]
    at("failing://run").put(str(folder), "t", 1)
    assert [mode for _, mode in Failing.opened[:6]] == ["xb", "wb", "xb", "wb", "wb", "xb"]
    with pytest.raises(AttemptTaken):
        at("failing://run").put(str(finished(tmp_path / "o", answer="other")), "t", 1)


def test_an_error_of_a_store_shows_no_signature_and_no_control_character(tmp_path: Path) -> None:
    Failing.failing["summary.json"] = [
        RuntimeError("PUT https://host/run/summary.json?X-Signature=secret \x1b[31m\nred")
    ]
    with pytest.raises(ResultsError) as caught:
        at("failing://run").write_small("summary.json", b"1")
    assert "secret" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unwritable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    for out in (str(tmp_path / "file" / "sub"), f"local://{tmp_path / 'file' / 'sub'}"):
        with pytest.raises(ResultsError, match="cannot be written"):
            at(out).write_small("summary.json", b"1")


ON_S3 = """
import json, logging, sys, threading
logging.disable()
import boto3
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=int(sys.argv[1]), verbose=False)
server.start()
boto3.client("s3").create_bucket(Bucket="bucket")
from harness.plugins.fleet.batch.results import AttemptTaken, Results
from harness.plugins.fleet.batch.store import ResultsError, UrlStore
results = Results.at("s3://bucket/run", pauses=())
folder, into, other = sys.argv[2:5]
told = {}
for _ in range(2):
    results.put(folder, "t", 1)
    results.publish("t", 1)
told["names"] = sorted(results.tasks()), results.attempts("t"), results.published("t")
told["fetched"] = results.fetch("t", into)
try:
    results.put(other, "t", 1)
except AttemptTaken:
    told["other"] = "taken"
# Many write one file at once, each through a client of its own that looked before: the store decides.
stores = [UrlStore("s3://bucket/race", pauses=()) for _ in range(8)]
barrier = threading.Barrier(8)
def pieces(number):
    barrier.wait()
    yield b"%d" % number * 1000
won = []
def write(number):
    if stores[number].create("file", lambda: pieces(number)):
        won.append(number)
threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
told["race"] = len(won), b"".join(stores[0].read("file")) == b"%d" % won[0] * 1000
try:
    Results.at("s3://no-such-bucket/run", pauses=()).write_small("summary.json", b"1")
except ResultsError as error:
    told["bucket"] = str(error)
told["buckets"] = [one["Name"] for one in boto3.client("s3").list_buckets()["Buckets"]]
server.stop()
print(json.dumps(told))
"""


@pytest.mark.skipif(
    not (importlib.util.find_spec("s3fs") and importlib.util.find_spec("moto")),
    reason="s3fs and moto are not installed",
)
def test_an_s3_store_is_written_exclusively(tmp_path: Path) -> None:
    folder, other = finished(tmp_path / "a" / "t"), finished(tmp_path / "b" / "t", answer="another")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(sys.path),
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
    }
    words = [str(port), str(folder), str(tmp_path / "c" / "t"), str(other)]
    done = subprocess.run(
        [sys.executable, "-c", ON_S3, *words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told.pop("bucket").startswith("s3://no-such-bucket/run/summary.json cannot be written: ")
    assert told == {
        "names": [["t"], [1], 1],
        "fetched": 1,
        "other": "taken",
        "race": [1, True],
        "buckets": ["bucket"],
    }
    fetched = files_below(tmp_path / "c" / "t")
    assert {name: data for name, data in fetched.items() if not name.endswith("head.json")} == files_below(folder)
