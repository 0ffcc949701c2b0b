"""Undoing on real files: what a log's records make of a session, what is put back, and what is left alone."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rows import all_rows
from sizes import examples

from harness.actions import JsonValue
from harness.files.before_images import BeforeImages
from harness.files.undo import (
    CommandStep,
    Ending,
    FileStanding,
    Rehearsal,
    Result,
    Step,
    StepOutcome,
    Undoable,
    Unrestorable,
    changes_to_undo,
    restore,
    standing,
    unwind,
)
from harness.files.workspace import Workspace
from harness.log.order import LogRecord

A, B, C, D = (hashlib.sha256(letter).hexdigest() for letter in (b"A", b"B", b"C", b"D"))
CONTENT = {A: b"A", B: b"B", C: b"C", D: b"D", None: None}
SESSION = "5e55"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# What the records of a log come to.


def record(kind: str, call: JsonValue, **fields: JsonValue) -> LogRecord:
    return {"kind": kind, "session": SESSION, "call": call, **fields}


def change(before: str | None, after: str, path: str = "/w/a", mode: JsonValue = 0o644) -> dict[str, JsonValue]:
    mode = None if before is None else mode
    return {"path": path, "before_sha256": before, "after_sha256": after, "before_mode": mode}


def told(made: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return what the outcome says of a change that was made."""
    return {"changed_path": made["path"], "before_sha256": made["before_sha256"], "after_sha256": made["after_sha256"]}


def written(call: int, before: str | None, after: str, path: str = "/w/a") -> list[LogRecord]:
    made = change(before, after, path)
    return [
        record("intent", call, tool="write_file", change=made),
        record("outcome", call, tool="write_file", status="ok", **told(made)),
    ]


def ran(call: int, effects: JsonValue, command: str = "make gen", confinement: str = "") -> list[LogRecord]:
    return [
        record("decision", call, tool="bash", summary=command, effects=effects),
        record("intent", call, tool="bash", confinement=confinement),
        record("outcome", call, tool="bash", status="ok"),
    ]


def edits(steps: Sequence[Step]) -> list[Undoable | Unrestorable]:
    """Return the steps of edits, and those that cannot be undone."""
    return [step for step in steps if not isinstance(step, CommandStep)]


def undoable(
    call: int,
    before: str | None,
    after: str,
    *earlier: str | None,
    path: str = "/w/a",
    mode: int = 0o644,
    ending: Ending = Ending.DONE,
) -> Undoable:
    return Undoable(
        call=call,
        tool="write_file",
        path=path,
        before_sha256=before,
        after_sha256=after,
        before_mode=None if before is None else mode,
        ending=ending,
        earlier=frozenset((before, *earlier)),
    )


def command(call: int, what: str = "make gen") -> Unrestorable:
    return Unrestorable(
        call=call, tool="bash", subject=what, reason="the changes by a command are not recorded", is_command=True
    )


MADE = change(A, B)

LOGGED_CHANGES = [
    pytest.param([], (), id="nothing"),
    pytest.param(written(1, A, B), (undoable(1, A, B),), id="one change"),
    pytest.param(
        written(1, None, A) + written(2, A, B) + written(3, B, C),
        (undoable(3, B, C, None, A), undoable(2, A, B, None), undoable(1, None, A)),
        id="a chain, the newest first, each with what the file was earlier",
    ),
    pytest.param(
        written(1, A, B) + written(2, A, C, "/w/b"),
        (undoable(2, A, C, path="/w/b"), undoable(1, A, B)),
        id="two files do not mix",
    ),
    pytest.param(
        [{**one, "session": "other"} for one in written(1, A, B)] + written(2, B, C),
        (undoable(2, B, C),),
        id="another session in the same log",
    ),
    pytest.param(
        [record("intent", 1, tool="write_file", change=MADE)],
        (undoable(1, A, B, ending=Ending.UNKNOWN),),
        id="no outcome: a kill",
    ),
    *(
        pytest.param(
            [record("intent", 1, tool="write_file", change=MADE), record("outcome", 1, status=status)],
            (undoable(1, A, B, ending=Ending.UNKNOWN),),
            id=f"{status} without a word on the file",
        )
        for status in ("timeout", "interrupted", "crashed")
    ),
    pytest.param(
        [record("intent", 1, tool="write_file", change=MADE), record("outcome", 1, status="failed")],
        (),
        id="a call that failed changed nothing",
    ),
    pytest.param([record("call_proposed", 1), record("outcome", 1, status="denied")], (), id="a call that did not run"),
    pytest.param(
        [record("intent", 1, tool="edit_file"), record("outcome", 1, status="ok")],
        (),
        id="a file tool without a change",
    ),
    pytest.param([record("intent", 1, tool="read_file")], (), id="a reader"),
    pytest.param(ran(1, {"write": [], "granted": []}), (), id="a command that could write nothing"),
    pytest.param(ran(1, {"write": []}), (), id="the same in a log from before grants"),
    pytest.param(ran(1, {"write": ["/w/x"], "granted": []}), (command(1),), id="a command that writes what it names"),
    pytest.param(ran(1, {"write": None, "granted": []}), (command(1),), id="a command of unknown effects"),
    pytest.param(ran(1, {"write": [], "granted": ["."]}), (command(1),), id="a command that was granted more"),
    pytest.param(ran(1, None), (command(1),), id="a command without effects"),
    pytest.param(
        ran(1, {"write": [], "granted": [], "enforcement": "off"}), (command(1),), id="a reader that nothing held"
    ),
    pytest.param(
        ran(1, {"write": [], "granted": [], "enforcement": "off"}, confinement="none: it asked to run unconfined"),
        (command(1),),
        id="a reader that a person let run unconfined",
    ),
    pytest.param(
        ran(1, {"write": [], "granted": [], "enforcement": "required"}, confinement="Landlock 7, seccomp"),
        (),
        id="a reader behind walls",
    ),
    pytest.param(
        [*ran(1, {"write": []}), record("intent", 1, tool="bash", effects={"write": None})],
        (command(1),),
        id="the effects in the intent count: they are what it ran with",
    ),
    pytest.param(
        written(1, A, B) + ran(2, {"write": None}, "touch a\nb") + written(3, C, D),
        (undoable(3, C, D, A), command(2, "touch a\nb"), undoable(1, A, B)),
        id="a command in between",
    ),
]


@all_rows(("records", "steps"), LOGGED_CHANGES)
def test_plan_follows_the_records(records: list[LogRecord], steps: tuple[Step, ...]) -> None:
    assert changes_to_undo(records, SESSION, log="") == steps


def test_undone_calls_are_skipped_but_count_as_earlier_states() -> None:
    records = written(1, A, B) + written(2, C, D) + written(3, B, D)
    assert changes_to_undo(records, SESSION, log="", undone={(2, "/w/a")}) == (
        undoable(3, B, D, A, C),
        undoable(1, A, B),
    )


def outcome_saying(**fields: JsonValue) -> list[LogRecord]:
    return [
        record("intent", 1, tool="write_file", change=MADE),
        record("outcome", 1, status="ok", **{**told(MADE), **fields}),
    ]


def intent_with(**fields: JsonValue) -> list[LogRecord]:
    return [record("intent", 1, tool="write_file", change={**MADE, **fields})]


PATH, DIGESTS, MODE = "a plain absolute path", "the digests of the file", "the permissions of the file"
NONSENSE = [
    *(
        pytest.param(intent_with(path=path), PATH, id=f"the path {path!r}")
        for path in (None, 7, "", "a", "../a", "/w/../etc/passwd", "/w//a", "/w/./a", "/w/a/", "/", "/w/a\0b")
    ),
    pytest.param(intent_with(path="/w/[redacted:known:00000000]/a"), "was masked", id="a masked path"),
    *(
        pytest.param(intent_with(after_sha256=digest), DIGESTS, id=f"the digest {digest!r}")
        for digest in (None, 7, "", A[:-1], A + "0", A.upper(), "../" + A[3:], A[:-1] + "\n")
    ),
    *(
        pytest.param(intent_with(before_sha256=digest), DIGESTS, id=f"the digest {digest!r} before")
        for digest in (7, "", "g" * 64, "/" * 64)
    ),
    *(
        pytest.param(intent_with(before_mode=mode), MODE, id=f"the mode {mode!r}")
        for mode in (None, -1, 0o10000, "644", True, 420.0)
    ),
    pytest.param(intent_with(before_sha256=None), MODE, id="a mode of a file that was not there"),
    pytest.param([record("intent", 1, tool="write_file", change="a")], "is invalid", id="a change that is no object"),
    pytest.param(outcome_saying(changed_path="/w/b"), "different data", id="another path in the outcome"),
    pytest.param(outcome_saying(after_sha256=C), "different data", id="another digest in the outcome"),
    pytest.param(outcome_saying(before_sha256=None), "different data", id="another digest before in the outcome"),
    pytest.param(
        [record("intent", 1, tool="write_file"), record("outcome", 1, status="ok", **told(MADE))],
        "does not say what the file was",
        id="a log from before changes were in it",
    ),
]


@all_rows(("records", "why"), NONSENSE)
def test_a_record_that_makes_no_sense_is_never_acted_on(records: list[LogRecord], why: str) -> None:
    (step,) = changes_to_undo(records, SESSION, log="")
    assert isinstance(step, Unrestorable)
    assert (why in step.reason, step.is_command) == (True, False)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from((A, B, "/w/a", "/w/../a")),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
FIELDS = ("changed_path", "before_sha256", "after_sha256", "status", "tool", "effects", "summary")
RECORDS = st.builds(
    lambda kind, call, made, fields: {"kind": kind, "session": SESSION, "call": call, "change": made, **fields},
    st.sampled_from(("decision", "intent", "outcome")),
    st.integers(0, 2) | JSON,
    st.dictionaries(st.sampled_from(("path", "before_sha256", "after_sha256", "before_mode")), JSON) | JSON,
    st.dictionaries(st.sampled_from(FIELDS), JSON),
)


@given(st.lists(RECORDS, max_size=6))
@settings(max_examples=examples(200), deadline=None)
def test_plan_contains_plain_paths_and_digests_for_any_log(records: list[LogRecord]) -> None:
    for step in changes_to_undo(records, SESSION, log=""):
        if isinstance(step, Undoable):
            assert os.path.normpath(step.path) == step.path
            assert os.path.isabs(step.path)
            assert all(len(digest) == 64 for digest in (step.before_sha256, step.after_sha256) if digest is not None)
            assert step.before_mode is None or 0 <= step.before_mode <= 0o777


@all_rows(
    ("step", "digest", "expected"),
    [
        pytest.param(undoable(1, A, B), B, FileStanding.AS_LEFT, id="as the call left it"),
        pytest.param(undoable(1, A, B), A, FileStanding.UNDONE, id="as it was before"),
        pytest.param(undoable(1, A, B), C, FileStanding.CHANGED, id="something else"),
        pytest.param(undoable(1, A, B), None, FileStanding.CHANGED, id="gone"),
        pytest.param(undoable(1, None, A), None, FileStanding.UNDONE, id="gone, as before"),
        pytest.param(undoable(3, B, C, A), A, FileStanding.UNDONE, id="as it was before an earlier call"),
        pytest.param(
            undoable(3, B, A, A), A, FileStanding.AS_LEFT, id="the same twice: as the call left it comes first"
        ),
    ],
)
def test_file_state_follows_from_its_digest(step: Undoable, digest: str | None, expected: FileStanding) -> None:
    assert standing(step, digest) is expected


# What is put back.


class Place(NamedTuple):
    """A workspace, and a store in which the contents A to D are kept."""

    workspace: Workspace
    images: BeforeImages
    root: Path

    def step(
        self, before: str | None = A, after: str = B, *earlier: str | None, name: str = "a", mode: int = 0o644, call: int = 1
    ) -> Undoable:  # fmt: skip
        return undoable(call, before, after, *earlier, path=f"{self.workspace.root}/{name}", mode=mode)

    def file(self, content: bytes, name: str = "a", mode: int = 0o644) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)
        return path

    def restore(self, step: Undoable) -> StepOutcome:
        return restore(step, self.workspace, self.images)

    def tree(self) -> dict[str, tuple[int, bytes]]:
        """Return mode and content of everything: a link's target, nothing of a folder."""
        return {str(path.relative_to(self.root)): _look(path) for path in sorted(self.root.rglob("*"))}


def _look(path: Path) -> tuple[int, bytes]:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return status.st_mode, os.fsencode(path.readlink())
    return status.st_mode, path.read_bytes() if stat.S_ISREG(status.st_mode) else b""


def make_place(folder: Path) -> Place:
    root = folder / "workspace"
    root.mkdir()
    images = BeforeImages(str(folder / "images"))
    for content in (b"A", b"B", b"C", b"D"):
        images.keep(content)
    return Place(Workspace(str(root), home=str(folder / "home")), images, root)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path)


def test_bytes_are_restored_in_a_new_file(place: Place) -> None:
    path = place.file(b"B", mode=0o755)
    old = path.stat().st_ino
    assert place.restore(place.step(mode=0o755)) == StepOutcome(step=place.step(mode=0o755), result=Result.RESTORED)
    assert place.tree() == {"a": (0o100755, b"A")}
    assert path.stat().st_ino != old, "it was written in place: a reader could have seen half of it"


@all_rows("mode", [0o644, 0o600, 0o755, 0o640, 0o200, 0o777])
def test_undo_keeps_changed_permissions_and_reports_them(tmp_path: Path, mode: int) -> None:
    """A file that was made private since must not be opened again."""
    if mode == 0o200 and os.geteuid() != 0:
        pytest.skip("only root reads it")
    place = make_place(tmp_path)
    place.file(b"B", mode=mode)
    told = "" if mode == 0o644 else f"its permissions were changed to {mode:04o}, and are kept"
    assert place.restore(place.step(mode=0o644)) == StepOutcome(step=place.step(), result=Result.RESTORED, detail=told)
    assert place.tree() == {"a": (0o100000 | mode, b"A")}


def test_set_id_bits_are_not_restored(place: Place) -> None:
    (step,) = changes_to_undo(intent_with(path=f"{place.workspace.root}/a", before_mode=0o6755), SESSION, log="")
    assert isinstance(step, Undoable)
    assert step.before_mode == 0o755
    place.file(b"B", mode=0o755)  # as the call left it
    assert place.restore(step) == StepOutcome(step=step, result=Result.RESTORED)
    assert place.tree() == {"a": (0o100755, b"A")}


def test_a_file_that_the_call_made_is_removed_and_its_folders_stay(place: Place) -> None:
    place.file(b"B", "new/deep/a")
    step = place.step(None, B, name="new/deep/a")
    assert place.restore(step) == StepOutcome(step=step, result=Result.REMOVED)
    assert list(place.tree()) == ["new", "new/deep"]


def test_replaced_content_is_kept_for_an_undo_by_hand(place: Place) -> None:
    left = b"written by the call"
    place.file(left)
    assert place.images.get(sha256(left)) is None
    assert place.restore(place.step(A, sha256(left))).result is Result.RESTORED
    assert place.images.get(sha256(left)) == left


def test_restore_is_refused_if_the_content_cannot_be_kept(place: Place, tmp_path: Path) -> None:
    class Full(BeforeImages):
        def keep(self, data: bytes) -> str:
            raise OSError(28, "No space left on device")

    place.file(b"B")
    outcome = restore(place.step(), place.workspace, Full(place.images.folder))
    assert (outcome.result, "No space left" in outcome.detail) == (Result.REFUSED, True)
    assert place.tree() == {"a": (0o100644, b"B")}


def link_to(target: str) -> Callable[[Place], object]:
    return lambda place: (place.root / "a").symlink_to(place.root / target)


def linked_parent(place: Place) -> None:
    place.file(b"B", "elsewhere/a")
    (place.root / "folder").symlink_to("elsewhere")


def sparse(place: Place) -> None:
    os.truncate(place.file(b"B"), 1 << 30)


def damaged(place: Place) -> None:
    place.file(b"B")
    (Path(place.images.folder) / A[:2] / A[2:]).write_bytes(b"not A")


def missing(place: Place) -> None:
    place.file(b"B")
    shutil.rmtree(place.images.folder)


def bound(place: Place) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(place.root / "a"))


LEFT_ALONE = [
    pytest.param(lambda place: place.file(b"X"), "a", "the file was changed since; not touched", id="changed since"),
    pytest.param(lambda place: None, "a", "the file is gone; not restored", id="gone"),
    pytest.param(lambda place: None, "folder/a", "the file is gone; not restored", id="gone with its folder"),
    pytest.param(
        lambda place: place.file(b"B", "target") and link_to("target")(place),
        "a",
        "a link is in the way now",
        id="a link to what the call left",
    ),
    pytest.param(link_to("nowhere"), "a", "a link is in the way now", id="a dangling link"),
    pytest.param(link_to("a"), "a", "symbolic links", id="a link in a circle"),
    pytest.param(linked_parent, "folder/a", "a link is in the way now", id="its folder is a link to a like one"),
    pytest.param(lambda place: (place.root / "a").mkdir(), "a", "Path is a directory", id="a folder"),
    pytest.param(lambda place: place.file(b"B", "folder"), "folder/a", "Not a directory", id="its folder is a file"),
    pytest.param(lambda place: os.mkfifo(place.root / "a"), "a", "Not a regular file (FIFO)", id="a FIFO"),
    pytest.param(bound, "a", "Not a regular file (socket)", id="a socket"),
    pytest.param(sparse, "a", "too large", id="a gigabyte"),
    pytest.param(
        lambda place: place.file(b"B", mode=0o444), "a", "the file is read-only now; not touched", id="read-only"
    ),
    pytest.param(damaged, "a", "is no longer saved", id="the image is damaged"),
    pytest.param(missing, "a", "is no longer saved", id="the image is missing"),
]


@all_rows(("prepare", "name", "why"), LEFT_ALONE)
def test_unsafe_restores_are_refused_without_changes(
    tmp_path: Path, prepare: Callable[[Place], object], name: str, why: str
) -> None:
    """Nothing is changed, not even a file that the path now leads to."""
    place = make_place(tmp_path)
    prepare(place)
    before = place.tree() if prepare is not sparse else {}
    outcome = place.restore(place.step(name=name))
    assert (outcome.result, why in outcome.detail) == (Result.REFUSED, True), outcome.detail
    if prepare is not sparse:
        assert place.tree() == before


@all_rows(
    ("prepare", "step"),
    [
        pytest.param(lambda place: place.file(b"A"), (A, B), id="put back by hand"),
        pytest.param(lambda place: None, (None, B), id="a new file that was removed by hand"),
        pytest.param(lambda place: place.file(b"C"), (A, B, C), id="put back to before an earlier call"),
    ],
)
def test_already_undone_step_is_recognized(
    tmp_path: Path, prepare: Callable[[Place], object], step: tuple[str | None, str]
) -> None:
    place = make_place(tmp_path)
    prepare(place)
    before = place.tree()
    assert place.restore(place.step(*step)).result is Result.ALREADY
    assert place.tree() == before


def test_restore_of_a_torn_file_names_the_kept_copy(place: Place) -> None:
    """A file that was written in place may be torn; what it was is there to be copied back."""
    place.file(b"half")
    step = undoable(1, A, B, path=f"{place.workspace.root}/a", ending=Ending.UNKNOWN)
    outcome = place.restore(step)
    assert (outcome.result, "which was cut short" in outcome.detail) == (Result.REFUSED, True)
    kept = outcome.detail.rpartition("the earlier content is saved in ")[2]
    assert Path(kept).read_bytes() == b"A"


def test_a_file_that_the_call_may_not_have_made_is_not_removed(place: Place) -> None:
    """The call was cut short: a person may have made the same file since."""
    place.file(b"B")
    outcome = place.restore(undoable(1, None, B, path=f"{place.workspace.root}/a", ending=Ending.UNKNOWN))
    assert (outcome.result, "another program may have created the file" in outcome.detail) == (Result.REFUSED, True)
    assert place.tree() == {"a": (0o100644, b"B")}


def test_file_below_an_undecodable_name_is_restored(place: Place) -> None:
    """It was edited by way of a link, whose name is text."""
    name = os.fsdecode(b"caf\xe9/a")
    place.file(b"B", name)
    assert place.restore(place.step(name=name)).result is Result.RESTORED
    assert place.tree()[name] == (0o100644, b"A")


ODD_NAMES = [
    "a b",
    "new\nline",
    "\x1b[2Jescape",
    "\u202ebidi",
    "~",
    "~root",
    "-rf",
    "a\\b",
    "\u00e9",
    "e\u0301",
    "x" * 255,
    " ",
]


@all_rows("name", ODD_NAMES)
def test_odd_names_are_names(tmp_path: Path, name: str) -> None:
    place = make_place(tmp_path)
    place.file(b"B", name)
    assert place.restore(place.step(name=name)).result is Result.RESTORED
    assert place.tree() == {name: (0o100644, b"A")}


def test_workspace_with_an_undecodable_name_is_restored(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff\xfe")
    folder.mkdir()
    place = make_place(folder)
    place.file(b"B")
    assert place.restore(place.step()).result is Result.RESTORED
    assert place.tree() == {"a": (0o100644, b"A")}


def test_file_outside_the_workspace_is_restored(place: Place, tmp_path: Path) -> None:
    """A person had allowed to write it; the log says where it is."""
    outside = tmp_path.resolve() / "outside"
    outside.write_bytes(b"B")
    assert place.restore(undoable(1, A, B, path=str(outside))).result is Result.RESTORED
    assert outside.read_bytes() == b"A"


def test_other_hard_link_keeps_its_content(place: Place) -> None:
    path = place.file(b"B")
    os.link(path, place.root / "other")
    outcome = place.restore(place.step())
    assert (outcome.result, "had 2 hard links; only this path was changed" in outcome.detail) == (Result.RESTORED, True)
    assert place.tree() == {"a": (0o100644, b"A"), "other": (0o100644, b"B")}


def test_a_workspace_that_was_moved_and_replaced_by_a_link_is_not_followed(place: Place) -> None:
    path = place.file(b"B")
    place.root.rename(place.root.with_name("moved"))
    place.root.symlink_to("moved")
    workspace = Workspace(str(place.root))
    outcome = restore(undoable(1, A, B, path=str(path)), workspace, place.images)
    assert (outcome.result, "a link is in the way now" in outcome.detail) == (Result.REFUSED, True)
    assert path.read_bytes() == b"B"


def test_a_file_that_changes_while_it_is_being_put_back_is_not_touched(place: Place) -> None:
    """The content is looked at again right before the name changes hands."""

    class Slow(BeforeImages):
        def keep(self, data: bytes) -> str:
            place.file(b"changed meanwhile")
            return super().keep(data)

    for before in (A, None):
        place.file(b"B")
        outcome = restore(place.step(before), place.workspace, Slow(place.images.folder))
        assert (outcome.result, "just now" in outcome.detail) == (Result.REFUSED, True)
        assert place.tree() == {"a": (0o100644, b"changed meanwhile")}


@all_rows("before", [pytest.param(A, id="replaced"), pytest.param(None, id="removed")])
def test_a_folder_in_which_a_tool_is_writing_is_left_alone(tmp_path: Path, before: str | None) -> None:
    place = make_place(tmp_path)
    place.file(b"B")
    folder = os.open(place.root, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        outcome = place.restore(place.step(before))
    finally:
        os.close(folder)
    assert (outcome.result, "nother program" in outcome.detail) == (Result.REFUSED, True)
    assert place.tree() == {"a": (0o100644, b"B")}
    assert place.restore(place.step(before)).result is not Result.REFUSED


NOBODY = 65534


def as_nobody(do: Callable[[], str]) -> str:
    """Return what `do` returns in a process of an ordinary user."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writer, do().encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


OTHERS = [
    pytest.param(0, 0o777, 0o666, A, 0o666, "restored: note: the file could not be replaced and was", b"A",
                 id="another's file that one may write"),
    pytest.param(NOBODY, 0o755, 0o644, A, 0o644, "restored: note: the file could not be replaced and was", b"A",
                 id="a folder that one may not write"),
    pytest.param(0, 0o777, 0o644, A, 0o644, "refused: Permission denied", b"B", id="another's file that one may read"),
    pytest.param(0, 0o777, 0o666, A, 0o600, "its permissions were changed to 0666, and are kept", b"A",
                 id="permissions of another's file"),
    pytest.param(NOBODY, 0o755, 0o644, None, 0, "refused: Permission denied; not touched", b"B",
                 id="a new file in a folder that one may not write"),
    pytest.param(NOBODY, 0o777, 0o200, A, 0o644, "refused: Permission denied", b"B", id="a file that one may not read"),
]  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else in a process of its own")
@pytest.mark.parametrize(("owner", "folder", "mode", "before", "to", "said", "then"), OTHERS)
def test_ordinary_user_can_restore(
    owner: int, folder: int, mode: int, before: str | None, to: int, said: str, then: bytes
) -> None:
    """What one may not change stays; owners stay whose they are."""
    with tempfile.TemporaryDirectory() as made:
        place = make_place(Path(made))
        place.file(b"B")
        place.restore(place.step())  # what is imported when first needed may lie where an ordinary user cannot read
        path = place.file(b"B", mode=mode)
        os.chown(path, owner, owner)
        os.chmod(place.root, folder)
        for one in (Path(made), Path(place.images.folder), *Path(place.images.folder).rglob("*")):
            os.chown(one, NOBODY, NOBODY)
        step = place.step(before, mode=to)

        def put_back() -> str:
            outcome = place.restore(step)
            return f"{outcome.result.value}: {outcome.detail}"

        assert said in as_nobody(put_back)
        assert (path.read_bytes(), path.stat().st_uid) == (then, owner)


# Several steps.


def results(place: Place, steps: list[Step], *, all_of_them: bool = True) -> list[object]:
    undo_one: Callable[[Undoable], StepOutcome] = place.restore
    rehearsed = list(unwind(edits(steps), Rehearsal(place.workspace, place.images), all_of_them=all_of_them))
    done = list(unwind(edits(steps), undo_one, all_of_them=all_of_them))
    assert [_brief(one) for one in rehearsed] == [_brief(one) for one in done], "the rehearsal said something else"
    return [_brief(one) for one in done]


def _brief(ended: StepOutcome | Unrestorable) -> object:
    return ended.subject if isinstance(ended, Unrestorable) else (ended.step.call, ended.result.value)


UNWOUND = [
    pytest.param(b"D", True, [(3, "restored"), (2, "restored"), (1, "removed")], None, id="a whole chain"),
    pytest.param(b"D", False, [(3, "restored")], b"C", id="the newest of a chain"),
    pytest.param(
        b"C", False, [(3, "already undone"), (2, "restored")], b"B", id="the newest is undone: the one before it"
    ),
    pytest.param(
        None, True, [(3, "already undone"), (2, "already undone"), (1, "already undone")], None, id="all is undone"
    ),
    pytest.param(b"X", True, [(3, "refused"), (2, "refused"), (1, "refused")], b"X", id="the newest cannot be"),
    pytest.param(b"X", False, [(3, "refused")], b"X", id="the newest cannot be, and it stops there"),
]


@all_rows(("now", "everything", "expected", "then"), UNWOUND)
def test_a_chain_unwinds(
    tmp_path: Path, now: bytes | None, everything: bool, expected: list[object], then: bytes | None
) -> None:
    place = make_place(tmp_path)
    steps: list[Step] = [
        place.step(C, D, B, None, call=3),
        place.step(B, C, None, call=2),
        place.step(None, B, call=1),
    ]
    if now is not None:
        place.file(now)
    assert results(place, steps, all_of_them=everything) == expected
    assert {name: content for name, (_, content) in place.tree().items()} == ({} if then is None else {"a": then})


def test_a_change_by_someone_else_in_between_ends_the_chain_there(place: Place) -> None:
    """A to B by call 1, to C by nobody knows whom, to D by call 2."""
    place.file(b"D")
    steps: list[Step] = [place.step(C, D, A, call=2), command(9, "sed"), place.step(A, B, call=1)]
    assert results(place, steps) == [(2, "restored"), "sed", (1, "refused")]
    assert place.tree() == {"a": (0o100644, b"C")}


def test_stuck_file_does_not_block_others(place: Place) -> None:
    place.file(b"X", "a")
    place.file(b"B", "b")
    steps: list[Step] = [place.step(call=3), place.step(call=2, name="b"), place.step(D, A, call=1)]
    ended = list(unwind(edits(steps), place.restore, all_of_them=True))
    assert [_brief(one) for one in ended] == [(3, "refused"), (2, "restored"), (1, "refused")]
    assert [one.detail for one in ended if isinstance(one, StepOutcome)][
        2
    ] == "not touched, since call 3 could not be undone"


@all_rows(("everything", "expected"), [(False, [2]), (True, [2, (1, "refused")])])
def test_a_change_that_the_log_does_not_describe_is_the_newest_one_too(
    tmp_path: Path, everything: bool, expected: list[object]
) -> None:
    place = make_place(tmp_path)
    path = place.file(b"B")
    nonsense = Unrestorable(call=2, tool="write_file", subject=str(path), reason="no sense", is_command=False)
    ended = results(place, [nonsense, place.step()], all_of_them=everything)
    assert [2 if one == str(path) else one for one in ended] == expected
    assert path.read_bytes() == b"B"


class Act(NamedTuple):
    """Somebody writes a file, or removes it: a call, or somebody else."""

    name: str
    content: bytes | None
    by_call: bool


ACTS = st.lists(
    st.builds(Act, st.sampled_from("ab"), st.sampled_from((b"A", b"B", b"C", None)), st.booleans()), max_size=8
)


@given(ACTS, ACTS, st.integers(1, 8))
@settings(max_examples=examples(150), deadline=None)
@example([Act("a", b"A", True), Act("a", b"B", True), Act("a", b"A", True)], [], 1)
def test_undo_restores_the_earlier_state_except_for_foreign_changes(acts: list[Act], later: list[Act], to: int) -> None:
    """A model of whole contents: where only calls wrote a file it is as call `to` found it; and whatever others left is
    either still there, or was a content that the calls had found there."""
    with tempfile.TemporaryDirectory() as folder:
        place = make_place(Path(folder))
        now: dict[str, bytes | None] = {"a": None, "b": None}
        found: dict[str, bytes | None] = {}
        seen: dict[str, set[bytes | None]] = {"a": {None}, "b": {None}}
        others: set[str] = set()
        records: list[LogRecord] = []
        for number, act in enumerate((*acts, *(one._replace(by_call=False) for one in later)), start=1):
            if act.content == now[act.name] or (act.by_call and act.content is None):
                continue
            if act.by_call:
                before, after = now[act.name], act.content
                assert after is not None
                records += written(
                    number,
                    None if before is None else sha256(before),
                    sha256(after),
                    f"{place.workspace.root}/{act.name}",
                )
                seen[act.name].add(before)
                if number >= to:
                    found.setdefault(act.name, before)
            elif number >= to:
                others.add(act.name)
            now[act.name] = act.content
            if act.content is None:
                (place.root / act.name).unlink()
            else:
                place.file(act.content, act.name)
        steps = [one for one in changes_to_undo(records, SESSION, log="") if one.call >= to]
        rehearsed = [
            _brief(one) for one in unwind(edits(steps), Rehearsal(place.workspace, place.images), all_of_them=True)
        ]
        assert [_brief(one) for one in unwind(edits(steps), place.restore, all_of_them=True)] == rehearsed
        for name in ("a", "b"):
            path = place.root / name
            then = path.read_bytes() if path.exists() else None
            if name not in others:
                assert then == found.get(name, now[name])
            else:
                assert then in {now[name], *seen[name]}
