"""What is on disk when a write is killed, finds no room or no leave, or goes the slower roads: the old file or the new."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from file_road import Road, sha256
from places import ROOT, SUPPORT
from rows import all_rows
from sizes import proof_size

from harness.files import atomic
from harness.files.before_images import BeforeImages
from harness.files.folders import open_folder
from harness.messages import ResultStatus
from harness.safe_files import write_whole

KILLS = proof_size("FILE_KILLS", 50, full=300)
NOBODY = 65534


@pytest.fixture
def road(tmp_path: Path) -> Iterator[Road]:
    made = Road(tmp_path)
    yield made
    made.log.close()


def child(code: str, *arguments: str, prefix: Sequence[str] = (), stdin: int | None = None) -> subprocess.Popen[bytes]:
    """Start a Python that can import the package, by way of `prefix`, and run `code` in it."""
    command = [*prefix, sys.executable, "-c", code, *arguments]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{SUPPORT}", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


# Killed

WRITER = """
import os, random, signal, sys
from harness.actions import Effects
from harness.files.before_images import BeforeImages
from harness.messages import ToolCall
from harness.files.baselines import Baselines
from harness.tools.edit_file import EditFileTool
from harness.tools.write_file import WriteFileTool
from harness.files.workspace import Workspace

folder = sys.argv[1]
effects = Effects(read=None, write=None, network=False, unasked=False)
baselines, images = Baselines(), BeforeImages(folder + "/images")
workspace = Workspace(folder + "/workspace")
write = WriteFileTool(workspace, baselines=baselines, images=images)
edit = EditFileTool(workspace, baselines=baselines, images=images)

def run(tool, **arguments):
    tool.run(tool.prepare(ToolCall(id="c", name=tool.spec.name, arguments=""), arguments), effects)

while pid := os.fork():  # a fresh process for each kill, without a start of the interpreter
    _, status = os.waitpid(pid, 0)
    os.write(1, b"%d\\n" % os.WTERMSIG(status))
    if sys.stdin.readline() != "again\\n":
        sys.exit()
# After time of its own, which other processes take none of: the kernel ends it then, in the middle of anything.
signal.setitimer(signal.ITIMER_PROF, random.SystemRandom().uniform(0.0001, 0.03))
with open(folder + "/workspace/old.txt", "rb") as file:
    baselines.saw(folder + "/workspace/old.txt", file.read())
number = int.from_bytes(os.urandom(4), "big")
while True:
    number += 1
    run(write, path="old.txt", content=("%010d " % number) * 30_000 + "end")
    run(write, path="new/%d/file.txt" % number, content=("%010d " % number) * 3_000 + "end")
    run(edit, path="old.txt", old_string="end", new_string="END")
    run(edit, path="old.txt", old_string="END", new_string="end")
"""


def is_whole(data: bytes, count: int) -> bool:
    return len(data) == 11 * count + 3 and data[:-3] == data[:11] * count and data[-3:].lower() == b"end"


def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    """A process writes and edits in a loop and is killed again and again, at random moments."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "old.txt").write_bytes(b"0000000000 " * 30_000 + b"end")
    contents, litter = set(), 0
    parent = child(WRITER, str(tmp_path), stdin=subprocess.PIPE)
    assert parent.stdin is not None
    assert parent.stdout is not None
    try:
        for kill in range(KILLS):
            assert int(parent.stdout.readline()) == signal.SIGPROF
            data = (workspace / "old.txt").read_bytes()
            assert is_whole(data, 30_000)
            contents.add(data[:11])
            parent.stdin.write(b"again\n" if kill < KILLS - 1 else b"enough\n")
            parent.stdin.flush()
        assert parent.communicate()[1] == b""
    finally:
        parent.kill()

    for path in workspace.rglob("*"):
        if path.is_file() and path.name.startswith(".harness-"):
            litter += 1  # whole, and named for what it is
            assert is_whole(path.read_bytes(), 30_000)
        elif path.is_file():
            assert is_whole(path.read_bytes(), 30_000 if path.name == "old.txt" else 3_000)
    kept = [path for path in (tmp_path / "images").rglob("*") if path.is_file() and path.suffix != ".tmp"]
    damaged = [path for path in kept if sha256(path.read_bytes()) != path.parent.name + path.name]
    assert damaged == []
    if KILLS >= 300:  # of fewer, chance alone says how many
        assert len(contents) > KILLS / 10, "too few of the kills came in the middle of something"
        assert litter <= KILLS / 10, f"{litter} temporary files were left"


# No room, no leave


def test_a_write_that_meets_the_process_limit_leaves_everything(road: Road) -> None:
    import resource

    road.file("a.txt", b"old\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    results = []
    for path in ("a.txt", "new/b.txt"):
        result = road.run_while(
            lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, limits[1])),
            "write_file",
            lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits),
            path=path,
            content="x" * 200_000,
        )
        results.append(result.content)

    assert results == [
        "Error: File too large for the process limit; a.txt is unchanged.",
        "Error: File too large for the process limit; new/b.txt is unchanged.",
    ]
    assert sorted(os.listdir(road.root)) == ["a.txt"]
    assert road.tree() == {"a.txt": b"old\n"}


def mount_small(folder: Path) -> None:
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"cannot mount a small file system here: {done.stderr.strip()}")


@pytest.fixture
def small_road(tmp_path: Path) -> Iterator[Road]:
    """A workspace on a file system of 256 KiB; the log and the images lie elsewhere."""
    mount_small(tmp_path / "small")
    try:
        made = Road(tmp_path, root=tmp_path / "small" / "workspace")
        yield made
        made.log.close()
    finally:
        subprocess.run(["umount", str(tmp_path / "small")], check=True)


@pytest.mark.parametrize("size", [120_000, 250_000])
def test_a_full_disk_leaves_the_old_file_and_no_litter(small_road: Road, size: int) -> None:
    old = b"o" * 100_000
    small_road.file("a.txt", old)
    (small_road.root / "filler").write_bytes(b"f" * 60_000)

    results = [
        small_road.run("write_file", path="a.txt", content="x" * size).content,
        small_road.run("write_file", path="new/deep/b.txt", content="x" * size).content,
        small_road.run("edit_file", path="a.txt", old_string="o", new_string="x" * 2, replace_all=True).content,
    ]

    assert results == [
        "Error: No space left on device; a.txt is unchanged.",
        "Error: No space left on device; new/deep/b.txt is unchanged.",
        "Error: No space left on device; a.txt is unchanged.",
    ]
    assert sorted(os.listdir(small_road.root)) == ["a.txt", "filler"]
    assert (small_road.root / "a.txt").read_bytes() == old


def test_a_full_disk_leaves_the_old_file_where_it_is_written_in_place(small_road: Road) -> None:
    path = small_road.file("a.txt", b"o" * 100_000)
    (small_road.root / "filler").write_bytes(b"f" * 60_000)
    folder = open_folder(str(small_road.root))
    try:
        with pytest.raises(OSError, match="No space left") as caught:
            atomic.overwrite(folder, "a.txt", b"o" * 100_000, b"x" * 250_000)
    finally:
        os.close(folder)

    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == b"o" * 100_000


@all_rows("limit", [150_000, 120_000, 50_000, 1])
def test_file_written_in_place_is_restored_after_a_size_limit(tmp_path: Path, limit: int) -> None:
    import resource

    path = tmp_path / "f"
    path.write_bytes(b"o" * 100_000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    folder = open_folder(str(tmp_path))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            atomic.overwrite(folder, "f", b"o" * 100_000, b"x" * 200_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        os.close(folder)

    assert path.read_bytes() == b"o" * 100_000


def test_a_file_that_is_a_mount_point_is_written_in_place(road: Road, tmp_path: Path) -> None:
    """As /etc/hosts in a container: it cannot be renamed over."""
    path = road.file("a.txt", b"old\n")
    (tmp_path / "source").write_bytes(b"old\n")
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    mount = ["mount", "--bind", str(tmp_path / "source"), str(path)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")
    try:
        result = road.run("write_file", path="a.txt", content="new\n")
        content = path.read_bytes()
    finally:
        subprocess.run(["umount", str(path)], check=True)

    assert result.content == (
        "Overwrote a.txt (+1 -1 lines)\n[note: the file could not be replaced and was written in place]"
    )
    assert (content, (tmp_path / "source").read_bytes()) == (b"new\n", b"new\n")
    assert road.images.get(sha256(b"old\n")) == b"old\n"
    assert set(road.tree()) == {"a.txt"}


# As an ordinary user: what root may do anyway

# The interpreter may lie where that user cannot come to it, so that all is imported before.
AS_USER = """
import difflib, hashlib, json, os, sys, unicodedata
from pathlib import Path
import pathspec
from file_road import Road
from harness.redaction.redactor import Redactor
import harness.files.judged_files
import harness.process.own_code

os.setgroups([])
os.setgid(int(sys.argv[3]))
os.setuid(int(sys.argv[3]))

folder, calls = Path(sys.argv[1]), json.loads(sys.argv[2])
road = Road(folder, root=folder / "workspace", made=True)
for name in os.listdir(road.root):
    path = road.root / name
    if path.is_file() and os.access(path, os.R_OK):
        road.baselines.saw(str(path), path.read_bytes())
print(json.dumps([road.run(tool, **arguments).content for tool, arguments in calls]))
"""


def as_user(folder: Path, *calls: tuple[str, dict[str, str]]) -> list[str]:
    """Return what the calls come to when an ordinary user makes them in `folder`, whose workspace is there already."""
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    process = child(AS_USER, str(folder), json.dumps(calls), str(NOBODY))
    out, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, b"")
    found: list[str] = json.loads(out)
    return found


@pytest.fixture
def users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of an ordinary user, with a workspace in it, where that user can come to it."""
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="harness-user-"))
    (folder / "workspace").mkdir()
    for path in (folder, folder / "workspace"):
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
    yield folder
    for path in (folder / "workspace").iterdir():
        if path.is_dir():
            path.chmod(0o700)
    shutil.rmtree(folder)


def make(
    path: Path, content: bytes, mode: int, *, owner: int = NOBODY, group: int = -1, folder_mode: int = 0o755
) -> None:
    path.write_bytes(content)
    if os.geteuid() == 0:
        os.chown(path, owner, owner if group < 0 else group)
    path.chmod(mode)
    path.parent.chmod(folder_mode)


WRITE, EDIT, READ = "write_file", "edit_file", "read_file"
IN_PLACE = "[note: the file could not be replaced and was written in place]"


@pytest.mark.parametrize(
    ("arrange", "call", "said", "after"),
    [
        pytest.param(
            lambda w: make(w / "f", b"old\n", 0o000),
            (READ, {"path": "f"}),
            "Error: Permission denied: f.",
            (b"old\n", 0o000, NOBODY),
            id="a file without leave to read",
        ),
        pytest.param(
            lambda w: make(w / "f", b"old\n", 0o444),
            (WRITE, {"path": "f", "content": "new\n"}),
            "Error: Permission denied: f is read-only (mode 0444). The file was not changed.",
            (b"old\n", 0o444, NOBODY),
            id="a read-only file in a writable folder",
        ),
        pytest.param(
            lambda w: make(w / "f", b"old\n", 0o644, owner=0),
            (WRITE, {"path": "f", "content": "new\n"}),
            "Error: Permission denied: f is read-only (mode 0644). The file was not changed.",
            (b"old\n", 0o644, 0),
            id="another's file that only its owner may write",
        ),
        pytest.param(
            lambda w: make(w / "f", b"old\n", 0o666, owner=0),
            (WRITE, {"path": "f", "content": "new\n"}),
            f"Overwrote f (+1 -1 lines)\n{IN_PLACE}",
            (b"new\n", 0o666, 0),
            id="another's file that all may write stays another's",
        ),
        pytest.param(
            lambda w: make(w / "f", b"old\n", 0o644, folder_mode=0o555),
            (EDIT, {"path": "f", "old_string": "old", "new_string": "new"}),
            f"Edited f: 1 replacement (+1 -1)\n@@ -1 +1 @@\n-old\n+new\n{IN_PLACE}",
            (b"new\n", 0o644, NOBODY),
            id="a writable file in a read-only folder",
        ),
        pytest.param(
            lambda w: make(w / "f", b"old\n", 0o644, folder_mode=0o555),
            (WRITE, {"path": "g", "content": "new\n"}),
            "Error: Permission denied: g.",
            (b"old\n", 0o644, NOBODY),
            id="a new file in a read-only folder",
        ),
        pytest.param(
            lambda w: make(w / "f", b"old\n", 0o640, group=0),
            (WRITE, {"path": "f", "content": "new\n"}),
            f"Overwrote f (+1 -1 lines)\n{IN_PLACE}",
            (b"new\n", 0o640, NOBODY),
            id="a group that one is not in keeps its rights, and no other gets them",
        ),
        pytest.param(
            lambda w: make(w / "f", b"old\n", 0o644, group=0),
            (WRITE, {"path": "f", "content": "new\n"}),
            "Overwrote f (+1 -1 lines)",
            (b"new\n", 0o644, NOBODY),
            id="a group that may do what all may is lost",
        ),
    ],
)
def test_ordinary_user_gets_results_within_their_rights(
    users: Path,
    arrange: Callable[[Path], None],
    call: tuple[str, dict[str, str]],
    said: str,
    after: tuple[bytes, int, int],
) -> None:
    workspace = users / "workspace"
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    arrange(workspace)

    assert as_user(users, call) == [said]

    status = (workspace / "f").stat()
    assert ((workspace / "f").read_bytes(), stat.S_IMODE(status.st_mode), status.st_uid) == after
    assert os.listdir(workspace) == ["f"]


LOCKED = [
    ((READ, {"path": "locked/f"}), "Error: Permission denied: locked/f."),
    ((WRITE, {"path": "locked/f", "content": "new\n"}), "Error: Permission denied: locked/f."),
    ((EDIT, {"path": "locked/f", "old_string": "old", "new_string": "new"}), "Error: Permission denied: locked/f."),
]


@pytest.mark.parametrize(("call", "said"), LOCKED, ids=[row[0][0] for row in LOCKED])
def test_unsearchable_folder_is_reported_as_such(users: Path, call: tuple[str, dict[str, str]], said: str) -> None:
    locked = users / "workspace" / "locked"
    locked.mkdir()
    make(locked / "f", b"old\n", 0o644, folder_mode=0o000)
    assert as_user(users, call) == [said]


WHERE_LOCKED = """
import json, os, sys
from harness.actions import Access
from harness.policy.built_in import inspect_facet
from harness.tools import bash, read_file
from harness.errors import ToolError
from harness.files.workspace import Workspace
from harness.tools.bash import BashTool
from harness.messages import ToolCall

if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
workspace = Workspace(sys.argv[1], sys.argv[1] + "/..")
call = ToolCall(id="c", name="bash", arguments="{}")
said = []
for arguments in json.loads(sys.argv[3]):
    tool = BashTool(workspace) if "command" in arguments else read_file.ReadFileTool(workspace)
    try:
        facets = tool.prepare(call, arguments).all_facets()
        said.append([found.reason for facet in facets if (found := inspect_facet(facet, ())) is not None])
    except ToolError as error:
        said.append(str(error))
print(json.dumps(said))
"""


def test_path_below_an_unsearchable_folder_is_not_called_outside(users: Path) -> None:
    """A file tool follows no link, and is let in; a command may, and is asked about."""
    locked = users / "workspace" / "locked"
    locked.mkdir()
    make(locked / "f", b"old\n", 0o644, folder_mode=0o000)
    calls = [{"path": "locked/f"}, {"command": "cat locked/f"}, {"command": "ls", "cwd": "locked/deep"}]
    process = child(WHERE_LOCKED, str(users / "workspace"), str(NOBODY), json.dumps(calls))
    out, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, b"")
    assert json.loads(out) == [
        [],
        ["permission denied on the way to locked/f, so that nobody can tell where it leads"],
        "Permission denied on the way to cwd: locked/deep.",
    ]


def access_list(*entries: tuple[int, int, int]) -> bytes:
    """Return entries (tag, permissions, id) as linux/posix_acl_xattr.h has them, version 2."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def test_default_rights_of_the_folder_are_not_applied(road: Road) -> None:
    """A folder's default list is for files made in it anew."""
    path = road.file("a.txt", b"old\n")
    path.chmod(0o660)
    none = 0xFFFFFFFF
    entries = ((0x01, 7, none), (0x02, 7, 1234), (0x04, 7, none), (0x10, 7, none), (0x20, 0, none))
    try:
        os.setxattr(road.root, "system.posix_acl_default", access_list(*entries))
    except OSError as error:
        pytest.skip(f"the file system has no access lists: {error}")

    assert road.run("write_file", path="a.txt", content="new\n").status is ResultStatus.OK

    assert (os.listxattr(path), stat.S_IMODE(path.stat().st_mode)) == ([], 0o660)


IN_USER_NAMESPACE = """
import sys
from pathlib import Path
from file_road import Road
folder = Path(sys.argv[1])
road = Road(folder, root=folder / "workspace", made=True)
road.baselines.saw(str(road.root / "f"), b"old\\n")
sys.stdout.write(road.run("write_file", path="f", content="new\\n").content)
"""


def test_container_root_writes_a_file_of_an_unmapped_owner(users: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("giving files away needs root")
    make(users / "workspace" / "f", b"old\n", 0o666, owner=1234, folder_mode=0o777)
    for path in (users, users / "workspace"):
        os.chown(path, 0, 0)
    prefix = ["unshare", "--user", "--map-root-user"]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces here")

    process = child(IN_USER_NAMESPACE, str(users), prefix=prefix)
    out, errors = process.communicate(timeout=120)

    assert (out.decode(), errors) == (f"Overwrote f (+1 -1 lines)\n{IN_PLACE}", b"")
    status = (users / "workspace" / "f").stat()
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (1234, 0o666)


# The slower roads


@all_rows(
    ("path", "number"),
    [
        ("none", errno.ENOENT),
        ("file", errno.ENOTDIR),
        ("file/x", errno.ENOTDIR),
        ("link", errno.ELOOP),
        ("link/sub", errno.ELOOP),
        ("circle/x", errno.ELOOP),
        ("x" * 300, errno.ENAMETOOLONG),
    ],
)
def test_links_on_the_way_to_a_folder_are_not_followed(tmp_path: Path, path: str, number: int) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "circle").symlink_to("circle")

    with pytest.raises(OSError) as caught:
        open_folder(f"{tmp_path}/{path}")

    assert caught.value.errno == number
    descriptor = open_folder(f"{tmp_path}/real//sub/")
    assert os.fstat(descriptor).st_ino == (tmp_path / "real" / "sub").stat().st_ino
    os.close(descriptor)


def test_magic_links_are_not_followed() -> None:
    with pytest.raises(OSError) as caught:
        open_folder("/proc/self/cwd")

    assert caught.value.errno == errno.ELOOP


@all_rows("road_of_writing", [atomic._Nameless, atomic._Named])
def test_both_kinds_of_temporary_file_do_the_same(tmp_path: Path, road_of_writing: type[atomic._Named]) -> None:
    (tmp_path / "old").write_bytes(b"old")
    folder = open_folder(str(tmp_path))
    try:
        for name, take in (("old", "become"), ("new", "become_new")):
            with road_of_writing(folder, 0o640) as temporary:
                write_whole(temporary.descriptor, b"content")
                getattr(temporary, take)(name)
        with pytest.raises(FileExistsError), road_of_writing(folder, 0o640) as temporary:
            temporary.become_new("old")
        with pytest.raises(ValueError, match="stop"), road_of_writing(folder, 0o640):
            raise ValueError("stop")
    finally:
        os.close(folder)

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"old": b"content", "new": b"content"}


def test_failed_last_check_leaves_the_file_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    folder = open_folder(str(tmp_path))

    def stop() -> None:
        raise KeyboardInterrupt

    try:
        with pytest.raises(KeyboardInterrupt):
            atomic.replace(folder, "f", b"new", present=path.stat(), check=stop)
    finally:
        os.close(folder)

    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("f", b"old")]


def test_named_temporary_file_is_used_without_nameless_ones(tmp_path: Path) -> None:
    """Without /proc a file without a name cannot be given one."""
    code = """
import os, sys
from harness.files import atomic
from harness.files.folders import open_folder
folder = open_folder(sys.argv[1])
os.chroot(sys.argv[2])
atomic.replace(folder, "new", b"new", present=None)
atomic.replace(folder, "old", b"changed", present=atomic.status_of(folder, "old"))
"""
    if os.geteuid() != 0:
        pytest.skip("a root folder without /proc needs root")
    (tmp_path / "work").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "work" / "old").write_bytes(b"old")
    (tmp_path / "work" / "old").chmod(0o711)

    process = child(code, str(tmp_path / "work"), str(tmp_path / "empty"))
    _, errors = process.communicate(timeout=120)

    assert errors == b""
    found = {
        path.name: (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) for path in (tmp_path / "work").iterdir()
    }
    assert found == {"new": (b"new", 0o666 & ~current_umask()), "old": (b"changed", 0o711)}


def current_umask() -> int:
    umask = os.umask(0o022)
    os.umask(umask)
    return umask


def test_access_lists_and_attributes_are_kept(road: Road) -> None:
    path = road.file("a.txt", b"old\n")
    try:
        os.setxattr(path, "user.one", b"1")
        os.setxattr(path, "user.two", b"2" * 500)
    except OSError as error:
        pytest.skip(f"the file system has no user attributes: {error}")

    assert road.run("write_file", path="a.txt", content="new\n").status is ResultStatus.OK

    assert {name: os.getxattr(path, name) for name in os.listxattr(path)} == {"user.one": b"1", "user.two": b"2" * 500}


def test_images_are_on_disk_before_the_file_changes(tmp_path: Path) -> None:
    """What is kept is the old content, under its own digest, whatever was kept before."""
    images = BeforeImages(str(tmp_path / "images"))
    road = Road(tmp_path)
    for number in range(5):
        road.baselines.saw(str(road.root / "f"), b"%d\n" % (number - 1))
        road.run("write_file", path="f", content=f"{number}\n")
    road.log.close()

    assert [images.get(sha256(b"%d\n" % number)) for number in range(5)] == [b"0\n", b"1\n", b"2\n", b"3\n", None]
