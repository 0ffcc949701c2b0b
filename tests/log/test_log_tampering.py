"""A thousand ways to change a log: all found with the head that was kept; without one, what cannot be found is named.

The edits are made of real runs' logs, the same ones at every run. HARNESS_EDITS says how many there are.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from log_auditor import Audit
from log_scene import append_filled, digest, encoded
from log_world import eventful
from rows import all_rows
from sizes import proof_size

from harness.audit.findings import NEVER_PROVED, NO_HEAD, WENT_ON, Findings, Soundness, judge_log
from harness.log.action_log import ActionLog
from harness.log.heads_file import HeadsFile, note_head
from harness.log.verify import is_as_noted
from harness.models.scripted import Reply, call, replies

if TYPE_CHECKING:
    from program import Program

EDITS = proof_size("EDITS", 150, full=1_000)
SEED = 6

pytestmark = pytest.mark.forges_logs

Lines = list[bytes]
"""Of a log, newlines included."""


class Scene(NamedTuple):
    """A log that a run has written, with its head, and another one for whoever wants to put it in its place."""

    path: Path
    heads: Path
    lines: Lines
    other: Lines

    @property
    def head(self) -> str:
        return digest(self.lines[-1][:-1])

    def judged(self, data: bytes, *, given: bool = False, noted: bool = False) -> Findings:
        """Say what is made of these bytes in the place of the log: with the head that was given, or noted, or neither."""
        self.path.write_bytes(data)
        heads = self.heads if noted else self.heads.with_name("none")
        return judge_log(str(self.path), HeadsFile(str(heads)), given_head=self.head if given else None)

    def is_as_noted(self) -> bool:
        """Say whether what lies in the place of the log passes for what was noted, by the chain alone."""
        known = HeadsFile(str(self.heads)).of_path(str(self.path))
        assert known is not None
        return is_as_noted(str(self.path), known.noted)


def play(folder: Path, sessions: int, heads: Path | None = None) -> tuple[str, Lines]:
    """Let real runs write a log of some sessions, each noted at its end; return its path and its lines."""
    folder.mkdir(exist_ok=True)
    path = str(folder / "log.jsonl")
    for _ in range(sessions):
        world = eventful(str(folder))
        world.play()
        if heads is not None:
            note_head(str(heads), world.log, closed=True)
        world.log.close()
        for name in os.listdir(world.work):
            os.unlink(os.path.join(world.work, name))
    return path, Path(path).read_bytes().splitlines(keepends=True)


@pytest.fixture(params=[1, 2], ids=["one session", "two sessions"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    heads = tmp_path / "heads.jsonl"
    path, lines = play(tmp_path / "log", request.param, heads)
    _, other = play(tmp_path / "other", 1)
    return Scene(Path(path), heads, lines, other)


# --- edits -----------------------------------------------------------------------------------------------------------


def rechained(lines: Lines, start: int = 0) -> Lines:
    """Return the lines with numbers and hashes made right from `start` on, as a forger would who has the file."""
    out = lines[:start]
    for line in lines[start:]:
        record = json.loads(line)
        record["seq"], record["prev"] = len(out), digest(out[-1][:-1]) if out else "0" * 64
        out.append(encoded(record) + b"\n")
    return out


def changed(line: bytes, chance: random.Random) -> bytes:
    """Return a record in which one field holds something else, still in the right form."""
    record = json.loads(line)
    name = chance.choice(sorted(record.keys() - {"v", "seq", "prev"}))
    record[name] = another(record[name], chance)
    return encoded(record) + b"\n"


def another(value: Any, chance: random.Random) -> Any:
    """Return a value of the same type that is another one."""
    match value:
        case bool():
            return not value
        case int():
            return value + chance.choice([1, 1000])
        case str() if re.fullmatch("[0-9a-f]{64}", value):
            return digest(value.encode())
        case str():
            swaps = {"auto": "confirm", "confirm": "auto", "deny": "auto", "yes": "no", "no": "yes", "ok": "failed"}
            return swaps.get(value, value + chance.choice(["x", " ", "\u200b"]))
        case list() if value:
            return value[:-1]
        case dict() if value:
            name = chance.choice(sorted(value))
            return {**value, name: another(value[name], chance)}
        case _:
            return [value] if isinstance(value, list) else "changed"


def _inner(lines: Lines, chance: random.Random) -> int:
    """Choose a record that others follow."""
    return chance.randrange(len(lines) - 1)


def _any_or_last(lines: Lines, chance: random.Random) -> int:
    """Choose a record; every other time the last one, of which no other holds the hash."""
    return len(lines) - 1 if chance.random() < 0.5 else chance.randrange(len(lines))


def flip_byte(scene: Scene, chance: random.Random) -> bytes:
    data = bytearray(b"".join(scene.lines))
    data[chance.randrange(len(data) - len(scene.lines[-1]))] ^= chance.randint(1, 255)
    return bytes(data)


def flip_bit(scene: Scene, chance: random.Random) -> bytes:
    data = bytearray(b"".join(scene.lines))
    data[chance.randrange(len(data) - len(scene.lines[-1]))] ^= 1 << chance.randrange(8)
    return bytes(data)


def insert_byte(scene: Scene, chance: random.Random) -> bytes:
    data = b"".join(scene.lines)
    place = chance.randrange(len(data) - len(scene.lines[-1]))
    return data[:place] + bytes((chance.randrange(256),)) + data[place:]


def remove_bytes(scene: Scene, chance: random.Random) -> bytes:
    data = b"".join(scene.lines)
    place = chance.randrange(len(data) - len(scene.lines[-1]) - 20)
    return data[:place] + data[place + chance.randint(1, 20) :]


def zeros(scene: Scene, chance: random.Random) -> bytes:
    data = b"".join(scene.lines)
    place, length = chance.randrange(len(data) - len(scene.lines[-1]) - 600), chance.randint(1, 600)
    return data[:place] + bytes(length) + data[place + length :]


def edit_field(scene: Scene, chance: random.Random) -> bytes:
    lines = list(scene.lines)
    place = _inner(lines, chance)
    lines[place] = changed(lines[place], chance)
    return b"".join(lines)


def add_field(scene: Scene, chance: random.Random) -> bytes:
    lines = list(scene.lines)
    place = _inner(lines, chance)
    lines[place] = encoded({**json.loads(lines[place]), chance.choice(["note", "approved_by"]): "x"}) + b"\n"
    return b"".join(lines)


def remove_field(scene: Scene, chance: random.Random) -> bytes:
    lines = list(scene.lines)
    place = _inner(lines, chance)
    record = json.loads(lines[place])
    del record[chance.choice(sorted(record))]
    lines[place] = encoded(record) + b"\n"
    return b"".join(lines)


def other_form(scene: Scene, chance: random.Random) -> bytes:
    """The same record, written in another way: a reader that only parses would see no difference."""
    lines = list(scene.lines)
    place = _any_or_last(lines, chance)
    record = json.loads(lines[place])
    form = chance.randrange(4)
    if form == 0:
        line = json.dumps(record, sort_keys=True)
    elif form == 1:
        line = json.dumps(dict(reversed(record.items())), separators=(",", ":"))
    elif form == 2:
        line = lines[place].decode().rstrip("\n").replace('"v":1', '"v":1.0')
    else:
        line = lines[place].decode().rstrip("\n") + "\r"
    lines[place] = line.encode() + b"\n"
    return b"".join(lines)


def key_twice(scene: Scene, chance: random.Random) -> bytes:
    lines = list(scene.lines)
    place = _any_or_last(lines, chance)
    lines[place] = lines[place].replace(b'"v":1}', b'"v":1,"v":1}')
    return b"".join(lines)


def drop(scene: Scene, chance: random.Random) -> bytes:
    lines = list(scene.lines)
    del lines[_inner(lines, chance)]
    return b"".join(lines)


def drop_several(scene: Scene, chance: random.Random) -> bytes:
    place = _inner(scene.lines, chance)
    until = chance.randint(place + 1, len(scene.lines) - 1)
    return b"".join(scene.lines[:place] + scene.lines[until:])


def insert(scene: Scene, chance: random.Random) -> bytes:
    lines = list(scene.lines)
    place = chance.randint(1, len(lines) - 1)
    record = {**json.loads(chance.choice(scene.other)), "seq": place, "prev": digest(lines[place - 1][:-1])}
    lines.insert(place, encoded(record) + b"\n")
    return b"".join(lines)


def insert_noise(scene: Scene, chance: random.Random) -> bytes:
    lines = list(scene.lines)
    lines.insert(
        chance.randrange(len(lines) + 1), chance.choice([b"\n", b"{}\n", b"null\n", b"\xef\xbb\xbf\n", b" \n"])
    )
    return b"".join(lines)


def swap(scene: Scene, chance: random.Random) -> bytes:
    lines = list(scene.lines)
    first, second = sorted(chance.sample(range(len(lines)), 2))
    lines[first], lines[second] = lines[second], lines[first]
    return b"".join(lines)


def duplicate(scene: Scene, chance: random.Random) -> bytes:
    lines = list(scene.lines)
    place = chance.randrange(len(lines))
    lines.insert(chance.randint(place, len(lines)), lines[place])
    return b"".join(lines)


def renumber(scene: Scene, chance: random.Random) -> bytes:
    """A record is dropped and the numbers are made right; the hashes are not."""
    lines = list(scene.lines)
    place = chance.randrange(1, len(lines) - 1)
    del lines[place]
    for number in range(place, len(lines)):
        lines[number] = encoded({**json.loads(lines[number]), "seq": number}) + b"\n"
    return b"".join(lines)


def splice(scene: Scene, chance: random.Random) -> bytes:
    """The beginning of one log and the end of another, as they are."""
    place = chance.randrange(1, min(len(scene.lines), len(scene.other)) - 1)
    return b"".join(scene.lines[:place] + scene.other[place:])


def splice_rechained(scene: Scene, chance: random.Random) -> bytes:
    """The same with the chain made right: the end is of a session that never began."""
    place = chance.randrange(1, min(len(scene.lines), len(scene.other)) - 1)
    return b"".join(rechained(scene.lines[:place] + scene.other[place:], place))


def unpermit(scene: Scene, chance: random.Random) -> bytes:
    """Take away what permitted a call, and make the chain right: the order of the records shows it."""
    lines = list(scene.lines)
    ran = {json.loads(line)["call"] for line in lines if b'"kind":"intent"' in line}
    decisions = [
        place for place, line in enumerate(lines) if b'"kind":"decision"' in line and json.loads(line)["call"] in ran
    ]
    place = chance.choice(decisions)
    if chance.random() < 0.5:
        del lines[place]
        return b"".join(rechained(lines, place))
    record = json.loads(lines[place])
    lines[place] = encoded({**record, "decision": "deny"}) + b"\n"
    return b"".join(rechained(lines, place))


def end_twice(scene: Scene, chance: random.Random) -> bytes:
    """A record is added after the end of the session, with the right chain."""
    kind, line = chance.choice([("session_ended", scene.lines[-1]), ("user_message", scene.lines[1])])
    assert json.loads(line)["kind"] == kind
    session = json.loads(scene.lines[-1])["session"]
    line = encoded({**json.loads(line), "session": session}) + b"\n"
    return b"".join(rechained([*scene.lines, line], len(scene.lines)))


FOUND_WITHOUT_A_HEAD: tuple[Callable[[Scene, random.Random], bytes], ...] = (
    flip_byte, flip_bit, insert_byte, remove_bytes, zeros, edit_field, add_field, remove_field, other_form, key_twice, drop,
    drop_several, insert, insert_noise, swap, duplicate, renumber, splice, splice_rechained, unpermit, end_twice,
)  # fmt: skip


def cut_in_a_record(scene: Scene, chance: random.Random) -> bytes:
    data = b"".join(scene.lines)
    ends = {0}
    for line in scene.lines:
        ends.add(max(ends) + len(line))
    return data[: chance.choice([place for place in range(1, len(data)) if place not in ends])]


TORN: tuple[Callable[[Scene, random.Random], bytes], ...] = (cut_in_a_record,)


def cut_at_a_record(scene: Scene, chance: random.Random) -> bytes:
    return b"".join(scene.lines[: chance.randrange(1, len(scene.lines))])


def rewrite_from_a_point(scene: Scene, chance: random.Random) -> bytes:
    """What was said is changed, somewhere, and the chain from there on made right."""
    lines = list(scene.lines)
    texts = [place for place, line in enumerate(lines) if b'"kind":"model_response"' in line or b'"outcome"' in line]
    place = chance.choice(texts)
    record = json.loads(lines[place])
    name = "text" if "text" in record else "content"
    lines[place] = encoded({**record, name: f"{record[name]} rewritten"}) + b"\n"
    return b"".join(rechained(lines, place))


def edit_the_last_record(scene: Scene, chance: random.Random) -> bytes:
    record = json.loads(scene.lines[-1])
    name = chance.choice(["detail", "stop", "input_tokens", "time", "mono_ns"])
    return b"".join([*scene.lines[:-1], encoded({**record, name: another(record[name], chance)}) + b"\n"])


def rewrite_all(scene: Scene, chance: random.Random) -> bytes:
    lines = [line.replace(b'"harness":"', b'"harness":"%d.' % chance.randrange(10**6)) for line in scene.lines]
    return b"".join(rechained(lines))


def replace_by_another(scene: Scene, chance: random.Random) -> bytes:
    return b"".join(scene.other)


def other_session_after_the_beginning(scene: Scene, chance: random.Random) -> bytes:
    """The beginning of one log, and all of another after it: two sessions, of which one has no end, or is all there."""
    return b"".join(rechained(scene.lines[: chance.randrange(1, len(scene.lines))] + scene.other))


def remove_a_call(scene: Scene, chance: random.Random) -> bytes:
    """Every record of one call is taken out, and what counts them and chains them made right."""
    audit = Audit(list(scene.lines))
    name, gone = chance.choice([(name, call) for name, call in audit.calls if call.of["outcome"]])
    lines = [
        line
        for line, record in zip(scene.lines, audit.records, strict=True)
        if (record["session"], record.get("call")) != (name, gone.name)
    ]
    for place, line in enumerate(lines):
        if b'"kind":"session_ended"' in line:
            record = json.loads(line)
            counts = Audit(rechained(lines)).sessions[record["session"]].expected_counts()
            lines[place] = encoded({**record, "counts": counts}) + b"\n"
    return b"".join(rechained(lines))


BLIND: tuple[Callable[[Scene, random.Random], bytes], ...] = (
    cut_at_a_record, rewrite_from_a_point, edit_the_last_record, rewrite_all, replace_by_another,
    other_session_after_the_beginning, remove_a_call,
)  # fmt: skip
"""A tail that was cut off, an end that was rewritten, a log that was wholly rewritten, another log in this one's place."""

ALL = (*FOUND_WITHOUT_A_HEAD, *TORN, *BLIND)


def edits(scene: Scene) -> Iterator[tuple[str, Callable[[Scene, random.Random], bytes], bytes]]:
    """Yield as many edits as are asked for, every kind as often as every other."""
    chance = random.Random(SEED)
    whole = b"".join(scene.lines)
    for number in range(EDITS // 2):  # for each of the two logs
        kind = ALL[number % len(ALL)]
        data = whole
        while data == whole:
            data = kind(scene, chance)
        yield f"{kind.__name__}, number {number}", kind, data


# --- the tests -------------------------------------------------------------------------------------------------------


def test_the_untouched_log_is_whole(scene: Scene) -> None:
    """Else it would prove nothing that the others are not."""
    data = b"".join(scene.lines)
    assert scene.judged(data, given=True).soundness is Soundness.WHOLE
    assert scene.judged(data, noted=True).soundness is Soundness.WHOLE
    assert scene.is_as_noted()
    found = scene.judged(data)
    assert (found.soundness, found.lines) == (Soundness.NO_HEAD, ())
    assert found.not_proved == f"{NO_HEAD.format(kind='')}; {NEVER_PROVED}"


def test_every_edit_is_found_with_the_head(scene: Scene) -> None:
    """With the hash that a person kept, and with the heads file alike: broken, whatever was done."""
    missed, kinds = [], Counter[str]()
    for name, kind, data in edits(scene):
        kinds[kind.__name__] += 1
        for how in ("given", "noted"):
            found = scene.judged(data, **{how: True})
            if found.soundness is not Soundness.BROKEN:
                missed.append(f"{name}, {how}: {found.soundness} {found.lines}")
            if scene.is_as_noted():
                missed.append(f"{name} passes for what was noted")
            read = found.verification  # what the words rest on
            if how == "given" and not read.problem and read.passed_head and read.head == scene.head:
                missed.append(f"{name}: verify itself finds that it holds together and passes the head as its end")
    assert missed == []
    assert kinds.total() == EDITS // 2
    assert 10 * len(ALL) > EDITS or min(kinds.values()) >= 10


def test_blind_spots_without_a_head_are_named(scene: Scene) -> None:
    """A cut tail, a rewritten end or whole, another log: that these could not be seen stands in the findings."""
    wrong, missed = [], Counter[str]()
    for name, kind, data in edits(scene):
        found = scene.judged(data)
        if kind in FOUND_WITHOUT_A_HEAD:
            if found.soundness is not Soundness.BROKEN:
                wrong.append(f"{name} was not found: {found.soundness}")
        elif kind in TORN and (
            found.soundness is not Soundness.OPEN or "the last line is torn" not in str(found.lines)
        ):
            wrong.append(f"{name} does not show as torn: {found.soundness} {found.lines}")
        if found.soundness is not Soundness.BROKEN:
            missed[kind.__name__] += 1
            if NO_HEAD.format(kind="") not in found.not_proved:
                wrong.append(f"{name} is not named as what could not be seen: {found.not_proved}")
        if found.soundness is Soundness.WHOLE:
            wrong.append(f"{name} passes for whole without a head")
    assert wrong == []
    assert set(missed) == {kind.__name__ for kind in (*BLIND, *TORN)}, "a kind that is called blind is not"


def test_records_added_after_the_end_are_not_proved(scene: Scene) -> None:
    """A whole session more, rightly chained: up to the head nothing was changed, and of the rest nothing is claimed."""
    added = b"".join(rechained(scene.lines + scene.other))
    scene.path.write_bytes(added)
    assert not scene.is_as_noted()
    for how in ("given", "noted"):
        found = scene.judged(added, **{how: True})
        assert found.soundness is Soundness.NO_HEAD
        assert WENT_ON in found.not_proved
        assert "nothing was cut off or rewritten" in found.proved
        assert "Up to " in found.proved


def _heads_edits(line: bytes, chance: random.Random) -> Iterator[tuple[str, bytes]]:
    note: Mapping[str, Any] = json.loads(line)
    for _ in range(20):
        place = chance.randrange(64)
        other = chance.choice([digit for digit in "0123456789abcdef" if digit != note["head"][place]])
        head = note["head"][:place] + other + note["head"][place + 1 :]
        yield "another head", encoded({**note, "head": head}) + b"\n"
        records = chance.choice([number for number in range(1, 2 * note["records"]) if number != note["records"]])
        yield "another count", encoded({**note, "records": records}) + b"\n"
    yield "no head", b""
    yield "a torn line", line[:-20]
    yield "no JSON", b"x" + line
    yield "not closed", encoded({**note, "closed": False}) + b"\n"
    yield "another file", encoded({**note, "file": f"{note['file']}.old", "session": "0" * 12}) + b"\n"


def test_a_changed_heads_file_never_makes_a_changed_log_whole(scene: Scene) -> None:
    """With another head or count in it, the log itself is broken; without the note, the head is said to be missing."""
    chance = random.Random(SEED)
    *before, line = scene.heads.read_bytes().splitlines(keepends=True)
    whole = b"".join(scene.lines)
    cut = b"".join(scene.lines[:-1])
    for name, heads in _heads_edits(line, chance):
        scene.heads.write_bytes(b"".join([*before, heads]))
        found = scene.judged(whole, noted=True)
        broken = name.startswith("another") and name != "another file"
        assert found.soundness is (Soundness.BROKEN if broken else Soundness.NO_HEAD), name
        assert scene.judged(cut, noted=True).soundness is not Soundness.WHOLE, name


def test_a_log_under_another_name_is_known_by_its_session(scene: Scene) -> None:
    """Moved and cut: the note is found by the first session of the log, and the tail is missed."""
    moved = scene.path.with_name("moved.jsonl")
    scene.path.rename(moved)
    assert judge_log(str(moved), HeadsFile(str(scene.heads))).soundness is Soundness.WHOLE
    moved.write_bytes(b"".join(scene.lines[:-1]))
    found = judge_log(str(moved), HeadsFile(str(scene.heads)))
    assert found.soundness is Soundness.BROKEN
    assert "a tail is missing" in found.lines[0]


# --- the program -----------------------------------------------------------------------------------------------------


@pytest.fixture
def ran(program: Program) -> Program:
    """A real run whose log and head lie in the state folder."""
    script = replies(
        Reply(text="look", calls=(call("bash", command="ls"), call("bash", command="touch x"))), Reply(text="done")
    )
    assert program.run("run", "go", "--base-url", program.serve(script)).code == 7
    return program


def spoiled(folder: Path, program: Program) -> dict[str, tuple[Callable[[Scene, random.Random], bytes], Path]]:
    """Put a log of each kind of edit into a folder, and a heads file beside it that knows what each of them was."""
    (path,) = program.logs()
    scene = Scene(path, folder, path.read_bytes().splitlines(keepends=True), play(folder, 1)[1])
    (folder / "logs").mkdir()
    note = {"records": len(scene.lines), "head": scene.head, "closed": True, "session": "", "time": "", "size": 0}
    found = {}
    for kind in ALL:
        copy = folder / "logs" / f"{kind.__name__}.jsonl"
        copy.write_bytes(kind(scene, random.Random(SEED)))
        found[kind.__name__] = (kind, copy)
        with (folder / "heads.jsonl").open("ab") as heads:
            heads.write(encoded({**note, "file": str(copy)}) + b"\n")
    (folder / "none.jsonl").touch()
    return found


def test_verify_finds_tampering_or_names_its_blind_spots(ran: Program, tmp_path: Path) -> None:
    """Exit 1 with the kept head; without it 1, 3 where something is torn or open, or 4 with the blind kinds named."""
    logs = spoiled(tmp_path, ran)
    with_heads = ran.run("audit", "verify", str(tmp_path / "logs"), "--heads", str(tmp_path / "heads.jsonl"), "--json")
    without = ran.run("audit", "verify", str(tmp_path / "logs"), "--heads", str(tmp_path / "none.jsonl"), "--json")
    assert (with_heads.code, without.code) == (1, 1)
    told = {json.loads(line)["file"]: json.loads(line) for line in with_heads.out.splitlines()}
    blind = {json.loads(line)["file"]: json.loads(line) for line in without.out.splitlines()}
    for name, (kind, path) in logs.items():
        assert told[str(path)]["exit_code"] == 1, name
        found = blind[str(path)]
        if kind in FOUND_WITHOUT_A_HEAD:
            assert (found["exit_code"], found["broken"] is None) == (1, False), name
            continue
        assert found["exit_code"] in ((3,) if kind in TORN else (3, 4)), name
        assert NO_HEAD.format(kind="") in found["not_proved"], name


@all_rows("kind", [flip_byte, cut_in_a_record, cut_at_a_record, rewrite_all])
def test_tampering_is_reported_in_words(
    ran: Program, tmp_path: Path, kind: Callable[[Scene, random.Random], bytes]
) -> None:
    """One log, as a person asks: the exit code and what is printed."""
    _, path = spoiled(tmp_path, ran)[kind.__name__]
    (kept,) = ran.logs()
    before = kept.read_bytes()
    kept.write_bytes(path.read_bytes())
    with_head = ran.run("audit", "verify")  # the head that the run itself noted
    kept.write_bytes(before)
    without = ran.run("audit", "verify", str(path), "--heads", str(tmp_path / "none.jsonl"))
    assert (with_head.code, with_head.out.startswith("BROKEN")) == (1, True), with_head.out
    expected = {"flip_byte": 1, "cut_in_a_record": 3, "cut_at_a_record": 3, "rewrite_all": 4}
    assert without.code == expected[kind.__name__], without.out
    assert (NO_HEAD.format(kind="") in without.out) == (kind is not flip_byte)


def test_missing_log_is_noticed(ran: Program) -> None:
    """Deleted, with its note still there: exit 1 for the folder as a whole."""
    (path,) = ran.logs()
    path.unlink()
    done = ran.run("audit", "verify", "--all")
    assert (done.code, "a log that was noted is gone" in done.out, str(path) in done.out) == (1, True, True)


def test_filled_records_make_a_log_that_is_whole(tmp_path: Path) -> None:
    """The forger's tools make whole logs: what the tests above find is what was forged, and not how."""
    log = ActionLog.open(str(tmp_path / "log.jsonl"))
    append_filled(log, [("session_started", {}), ("session_ended", {})])
    log.close()
    lines = Path(log.path).read_bytes().splitlines(keepends=True)
    assert rechained(lines) == lines
