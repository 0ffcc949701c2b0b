"""Verifying logs that somebody tampered with: what the chain shows, what only a head shows, and what nothing shows."""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from forged_logs import (
    ARGUMENTS,
    DIGEST,
    Step,
    a_session,
    decided,
    done,
    encoded,
    ended,
    head_of,
    intended,
    lines_of,
    one_call,
    proposed,
    rechained,
    started,
    write,
)
from rows import all_rows
from sizes import proof_size

from harness.actions import JsonValue
from harness.errors import LogError
from harness.log.action_log import ActionLog
from harness.log.schema import MAX_RECORD_BYTES
from harness.log.verify import Verification, first_session, verify
from harness.policy.loader import parse_policy
from harness.policy.policy import combine, tightening_only
from harness.policy.rules import Layer

GOOD = lines_of(a_session(3))
"""Fifteen records: the start, a message, four a call, the end."""
OTHER = lines_of(a_session(3), session="ba9876543210")
Lines = list[bytes]

pytestmark = pytest.mark.forges_logs


def edited(line: bytes, /, **changes: object) -> bytes:
    return encoded({**json.loads(line), **changes})


def verified(tmp_path: Path, data: bytes, **options: object) -> Verification:
    path = tmp_path / "log.jsonl"
    path.write_bytes(data)
    return verify(str(path), **options)  # type: ignore[arg-type]


def joined(lines: Lines) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def test_a_whole_log(tmp_path: Path) -> None:
    found = verified(tmp_path, joined(GOOD), head=head_of(GOOD))
    assert (found.broken_line, found.problem, found.records, found.bytes) == (None, "", 15, len(joined(GOOD)))
    assert (found.head, found.passed_head, found.torn) == (head_of(GOOD), True, False)
    assert (found.sessions, found.open_sessions, found.unknown_calls) == (("0123456789ab",), (), ())


# What is done to the lines, the line that is named, and the words of it. None of these needs a head to be seen.
SEEN_BY_ITSELF: dict[str, tuple[Callable[[Lines], bytes], int, str]] = {
    "a record is edited": (
        lambda ls: joined([*ls[:5], ls[5].replace(b"total 0", b"total 1"), *ls[6:]]), 7, "does not hold the hash",
    ),
    "one byte of a number": (
        lambda ls: joined([ls[0].replace(b'"mono_ns":1000', b'"mono_ns":1001'), *ls[1:]]), 2, "does not hold the hash",
    ),
    "a record is dropped": (lambda ls: joined([*ls[:4], *ls[5:]]), 5, "has sequence number 5, not 4"),
    "the first is dropped": (lambda ls: joined(ls[1:]), 1, "has sequence number 1, not 0"),
    "a record is inserted": (lambda ls: joined([*ls[:4], ls[1], *ls[4:]]), 5, "has sequence number 1, not 4"),
    "two are swapped": (lambda ls: joined([*ls[:4], ls[5], ls[4], *ls[6:]]), 5, "has sequence number 5, not 4"),
    "one is there twice": (lambda ls: joined([*ls[:4], ls[3], *ls[4:]]), 5, "has sequence number 3, not 4"),
    "another file's record": (lambda ls: joined([*ls[:6], OTHER[6], *ls[7:]]), 7, "does not hold the hash"),
    "another file's rest": (lambda ls: joined([*ls[:6], *OTHER[6:]]), 7, "does not hold the hash"),
    "another session's record": (
        lambda ls: joined(rechained([*ls[:6], OTHER[6], *ls[7:]])), 7, "is a call_proposed of a session that is not open",
    ),
    "a sequence number is edited": (lambda ls: joined([edited(ls[0], seq=1), *ls[1:]]), 1, "has sequence number 1"),
    "a sequence number is true": (lambda ls: joined([ls[0], edited(ls[1], seq=True)]), 2, "True"),
    "another version": (lambda ls: joined([edited(ls[0], v=2), *ls[1:]]), 1, "has version 2, not 1"),
    "encoded with blanks": (lambda ls: joined([json.dumps(json.loads(ls[0])).encode(), *ls[1:]]), 1, "another program"),
    "blanks at the end": (lambda ls: joined([ls[0] + b" ", *ls[1:]]), 1, "another program"),
    "keys in another order": (
        lambda ls: joined([json.dumps(dict(reversed(json.loads(ls[0]).items())), separators=(",", ":")).encode()]),
        1, "another program",
    ),
    "escapes that need not be": (lambda ls: joined([ls[0].replace(b"run", b"\\u0072un"), *ls[1:]]), 1, "another program"),
    "escapes in capitals": (
        lambda ls: joined([ls[0].replace(b'"run"', b'"\\u00E4"'), *ls[1:]]), 1, "another program",
    ),
    "a number in another form": (lambda ls: joined([ls[0].replace(b'"seq":0', b'"seq":-0'), *ls[1:]]), 1, "another program"),
    "UTF-8 as it is": (lambda ls: joined([ls[0].replace(b'"run"', '"ä"'.encode()), *ls[1:]]), 1, "is not a record"),
    "a key twice": (lambda ls: joined([ls[0].replace(b'{"', b'{"harness":"x","', 1), *ls[1:]]), 1, "is not a record"),
    "a key twice inside": (
        lambda ls: joined([ls[0].replace(b'"mode":"run"', b'"mode":{"a":1,"a":2}'), *ls[1:]]), 1, "is not a record",
    ),
    "NaN": (lambda ls: joined([ls[0].replace(b'"mode":"run"', b'"mode":NaN'), *ls[1:]]), 1, "is not a record"),
    "a number beyond all": (lambda ls: joined([ls[0].replace(b'"mode":"run"', b'"mode":1e999'), *ls[1:]]), 1, "another pr"),
    "CRLF": (lambda ls: b"".join(line + b"\r\n" for line in ls), 1, "another program"),
    "a byte order mark": (lambda ls: b"\xef\xbb\xbf" + joined(ls), 1, "is not a record"),
    "an empty line": (lambda ls: joined([*ls[:3], b"", *ls[3:]]), 4, "is not a record"),
    "a line of another kind": (lambda ls: joined([*ls, b"null"]), 16, "is not a record"),
    "a list": (lambda ls: joined([*ls, b"[]"]), 16, "is not a record"),
    "depth without end": (lambda ls: joined([*ls, b"[" * 100_000]), 16, "is not a record"),
    "a NUL in a line": (lambda ls: joined([*ls[:3], ls[3] + b"\0", *ls[4:]]), 4, "is not a record"),
    "NULs, and a newline": (lambda ls: joined(ls) + b"\0\0\0\n", 16, "is not a record"),
    "a field too many": (lambda ls: joined(rechained([*ls[:1], edited(ls[1], more=1)])), 2, "'more'"),
    "a field is missing": (
        lambda ls: joined(rechained([*ls[:1], encoded({k: v for k, v in json.loads(ls[1]).items() if k != "text"})])),
        2, "lacks the field text",
    ),
    "a field of another type": (lambda ls: joined(rechained([*ls[:1], edited(ls[1], text=7)])), 2, "text: must be a string"),
    "a kind that is none": (lambda ls: joined(rechained([*ls[:1], edited(ls[1], kind="grunt")])), 2, "unknown kind 'grunt'"),
    "the clock goes back": (lambda ls: joined(rechained([*ls[:3], edited(ls[3], mono_ns=3)])), 4, "monotonic clock"),
}  # fmt: skip


@all_rows("name", list(SEEN_BY_ITSELF))
def test_spoiled_log_is_reported_with_its_first_bad_line(name: str, tmp_path: Path) -> None:
    """The first bad line is named, by number and by offset, and so is what is wrong with it."""
    spoil, line, words = SEEN_BY_ITSELF[name]
    data = spoil(list(GOOD))
    found = verified(tmp_path, data)
    assert (found.broken_line, words in found.problem) == (line, True), found.problem
    assert found.records == line - 1
    assert data[: found.broken_offset].count(b"\n") == line - 1
    assert found.broken_offset == 0 or data[found.broken_offset - 1 : found.broken_offset] == b"\n"


def changed_from(lines: Lines, place: int, /, **changes: object) -> Lines:
    """Return the lines with one changed, and the chain made right from there on."""
    return rechained([*lines[:place], edited(lines[place], **changes), *lines[place + 1 :]], place)


# Consistent in itself: only what was kept elsewhere shows it.
BLIND: dict[str, Callable[[Lines], Lines]] = {
    "the last record is cut off": lambda ls: ls[:-1],
    "half of it is cut off": lambda ls: ls[:7],
    "all of it": lambda ls: [],
    "the end is rewritten": lambda ls: changed_from(ls, 14, detail="nothing happened"),
    "rewritten from the middle": lambda ls: changed_from(ls, 7, reason="It was asked for."),
    "rewritten wholly": lambda ls: changed_from(ls, 0, workspace="/srv/other"),
    "another log in its place": lambda ls: list(OTHER),
    "something is appended": lambda ls: ls + lines_of(a_session(1), session="ba9876543210", after=ls),
}


@all_rows("name", list(BLIND))
def test_rewritten_log_is_detected_by_a_head_only(name: str, tmp_path: Path) -> None:
    """Without a head all is well; against the head that was kept, and against a note on the way, it is not the same log."""
    data = joined(BLIND[name](list(GOOD)))
    alone = verified(tmp_path, data)
    assert (alone.broken_line, alone.problem) == (None, "")
    against = verified(tmp_path, data, head=head_of(GOOD), noted={15: frozenset({head_of(GOOD)})})
    assert against.broken_line is None
    same_so_far = name == "something is appended"
    assert (against.passed_head, against.missed) == ((True, None) if same_so_far else (False, 15))
    assert against.head != head_of(GOOD)


def test_every_head_that_was_noted_must_be_passed(tmp_path: Path) -> None:
    """A log that was rewritten and then went on passes the newest head, and not the older one."""
    heads = {n: frozenset({head_of(GOOD[:n])}) for n in (1, 8, 15)}
    assert verified(tmp_path, joined(GOOD), noted=heads).missed is None
    rewritten = changed_from(GOOD, 4, summary="ls")
    newest = {**heads, 15: frozenset({head_of(rewritten)})}
    assert verified(tmp_path, joined(rewritten), noted=newest).missed == 8
    two = {15: frozenset({head_of(GOOD), head_of(rewritten)})}
    assert verified(tmp_path, joined(GOOD), noted=two).missed == 15


@all_rows("cut", range(1, len(GOOD[-1]) + 1))
def test_a_last_line_that_is_torn_anywhere_is_open_and_no_more(cut: int, tmp_path: Path) -> None:
    found = verified(tmp_path, joined(GOOD[:-1]) + GOOD[-1][:cut])
    assert (found.broken_line, found.torn, found.torn_bytes, found.records) == (None, True, cut, 14)
    assert found.bytes == len(joined(GOOD[:-1]))
    assert found.open_sessions == ("0123456789ab",)


def test_nuls_after_the_end_are_a_torn_tail(tmp_path: Path) -> None:
    """What a power cut leaves of a file that had grown: no newline, so it was never a record."""
    found = verified(tmp_path, joined(GOOD) + bytes(512))
    assert (found.broken_line, found.torn_bytes, found.head) == (None, 512, head_of(GOOD))


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def policy_file(text: str, digest: str = "") -> dict[str, object]:
    return {"layer": "given", "path": "p.toml", "sha256": digest or sha256(text), "trusted": True, "text": text}


@all_rows(
    ("files", "problem", "good", "masked"),
    [
        ([policy_file("version = 1\n")], "", 1, ()),
        ([policy_file("name = 'ä'\n"), policy_file("x")], "", 2, ()),
        ([policy_file("version = 1\n", DIGEST)], "has another digest than it says", 0, ()),
        ([policy_file("key = [redacted:known:01234567]\n", DIGEST)], "", 0, ("p.toml",)),
        ([{k: v for k, v in policy_file("x").items() if k != "text"}], "", 0, ()),
    ],
)
def test_the_text_of_a_policy_has_the_digest_that_is_claimed(
    files: list[dict[str, object]], problem: str, good: int, masked: tuple[str, ...], tmp_path: Path
) -> None:
    digests = [str(file["sha256"]) for file in files]
    claimed = digests[0] if len(files) == 1 else sha256("\n".join(sorted(f"given {digest} True" for digest in digests)))
    begun = started(policy_files=files, policy_sha256=claimed)  # type: ignore[arg-type]
    found = verified(tmp_path, joined(lines_of((begun, ended()))))
    assert (problem in found.problem, bool(found.problem)) == (True, bool(problem))
    assert (found.policy_texts, found.masked_policies) == (good, masked)


def test_the_policy_of_a_session_is_that_of_its_files(tmp_path: Path) -> None:
    """The digest that every decision names is the one of the policy that the loader made of these texts."""
    texts = ("version = 1\n", "version = 1\nname = 'b'\n")
    layers = [
        parse_policy(text.encode(), "p.toml", layer=layer)
        for text, layer in zip(texts, (Layer.USER, Layer.PROJECT), strict=True)
    ]
    for policy in (layers[0], combine(layers), combine([layers[0], tightening_only(layers[1])])):
        files: list[JsonValue] = [
            {
                "layer": source.layer.value, "path": source.path, "sha256": source.sha256, "trusted": source.trusted,
                "text": source.content.decode(),
            }
            for source in policy.sources
        ]  # fmt: skip
        for digest, problem in ((policy.sha256, ""), (DIGEST, "names a policy that is not the one of the files")):
            steps = (started(policy_files=files, policy_sha256=digest), ended())
            found = verified(tmp_path, joined(lines_of(steps)))
            assert (problem in found.problem, bool(found.problem)) == (True, bool(problem))


KEPT = '{"command": "echo [redacted:known:01234567]"}'
BEGINNING: Step = ("call_proposed", {**proposed(1)[1], "arguments_characters": 90_000})
CLAIMED = {
    "what has its digest is held": (proposed(1), (1, 0, 0)),
    "what was masked is told": (("call_proposed", {**proposed(1, arguments=KEPT)[1], "masked": {"known": 1}}), (0, 1, 0)),
    "what is only the beginning is told": (BEGINNING, (0, 0, 1)),
    "other arguments": (proposed(1, arguments='{"command": "rm -r ."}'), None),
    "a mark that nobody made": (proposed(1, arguments=KEPT), None),
    "a mark of another rule": (
        ("call_proposed", {**proposed(1, arguments=KEPT)[1], "masked": {"aws": 1}}), None,
    ),
    "a beginning that is longer than the whole": (
        ("call_proposed", {**proposed(1, arguments="{}")[1], "arguments_characters": 2}), None,
    ),
}  # fmt: skip


@all_rows(("step", "counted"), CLAIMED.values(), ids=CLAIMED)
def test_arguments_have_the_digest_that_is_claimed(
    step: Step, counted: tuple[int, int, int] | None, tmp_path: Path
) -> None:
    claimed = ("call_proposed", {**step[1], "arguments_sha256": sha256(ARGUMENTS)})
    lines = lines_of((started(), claimed, *one_call(1)[1:], ended()), own_digests=False)
    found = verified(tmp_path, joined(lines))
    if counted is None:
        assert (found.broken_line, "other arguments of call 1" in found.problem) == (2, True), found.problem
    else:
        assert (found.problem, found.held_arguments, found.masked_arguments, found.cut_arguments) == ("", *counted)


CLOCKS = {
    "both go on alike": (("10:00:00", 0), ("10:00:09", 9), []),
    "a little apart": (("10:00:00", 0), ("10:00:01", 0), []),
    "the wall clock goes ahead": (("10:00:00", 0), ("11:00:09", 9), [(2, 3600)]),
    "it goes back": (("10:00:00", 0), ("09:00:09", 9), [(2, -3600)]),
    "it stands still": (("10:00:00", 0), ("10:00:00", 7), [(2, -7)]),
    "no time at all": (("10:00:00", 0), ("noon", 9), []),
}


@all_rows(("first", "second", "jumps"), CLOCKS.values(), ids=CLOCKS)
def test_wall_clock_jump_is_reported(
    first: tuple[str, int], second: tuple[str, int], jumps: list[tuple[int, int]], tmp_path: Path
) -> None:
    """It is no breach: whoever has the machine may set it."""
    lines = lines_of((started(), ended()))
    for place, (time, seconds) in enumerate((first, second)):
        lines[place] = edited(lines[place], time=f"2026-01-01T{time}.000000Z", mono_ns=seconds * 10**9)
    found = verified(tmp_path, joined(rechained(lines)))
    assert (found.problem, [(jump.line, jump.seconds) for jump in found.jumps]) == ("", jumps)


def facets(*decisions: str) -> list[object]:
    return [{"facet": "x", "kind": "Command", "decision": word, "by": "y"} for word in decisions]


@all_rows(
    ("decision", "parts", "count", "good"),
    [
        ("auto", facets("auto", "auto"), 2, True),
        ("auto", facets("auto", "confirm"), 2, False),
        ("auto", facets("block"), 9, False),
        ("confirm", facets("auto", "auto"), 2, False),
        ("confirm", facets("auto"), 2, True),  # a part that is not shown asks
        ("auto", facets("maybe"), 1, False),
        ("auto", [], 1, True),
    ],
)
def test_a_decision_is_the_strictest_of_those_on_its_parts(
    decision: str, parts: list[object], count: int, good: bool, tmp_path: Path
) -> None:
    kind, fields = decided(1, decision)
    step = (kind, {**fields, "facets": parts, "facet_count": count})
    end: Step = done(1) if decision == "auto" else ("outcome", {**done(1)[1], "status": "denied"})
    steps: tuple[Step, ...] = (proposed(1), step, intended(1), end) if decision == "auto" else (proposed(1), step, end)  # type: ignore[assignment]
    found = verified(tmp_path, joined(lines_of((started(), *steps, ended()))))
    assert (found.broken_line, "decide" in found.problem) == ((None, False) if good else (3, True)), found.problem


def test_call_left_open_by_a_crash_is_unknown(tmp_path: Path) -> None:
    found = verified(tmp_path, joined(lines_of((started(), *one_call(1), *one_call(2)[:3]))))
    assert (found.broken_line, found.unknown_calls) == (None, ("0123456789ab:2",))


def test_sessions_of_one_file_have_clocks_of_their_own(tmp_path: Path) -> None:
    first = lines_of(a_session(1), mono_ns=9_000_000)
    both = first + lines_of(a_session(1), session="ba9876543210", after=first, mono_ns=5)
    found = verified(tmp_path, joined(both))
    assert (found.problem, found.sessions) == ("", ("0123456789ab", "ba9876543210"))


WRONG: tuple[object, ...] = (
    None, True, -1, 1.5, "", "x" * 70_000, "\udce4\u202e\x1b[2J\n", [], [[[1]]], {}, {"a": {"b": None}}, 10**300,
)  # fmt: skip
"""What may stand in any field of a record that somebody else wrote."""
WRONG_STEP = proof_size("WRONG_STEP", 4, full=1)
"""Each field gets one in so many of these values, and all of them have their turn."""


@all_rows("place", range(len(GOOD)))
def test_verify_survives_any_value_in_any_field(place: int, tmp_path: Path) -> None:
    """Whatever is there: a line is named, or the record is right; and what is said of it is short."""
    for number, name in enumerate(json.loads(GOOD[place]), place):
        for value in WRONG[number % WRONG_STEP :: WRONG_STEP]:
            lines = rechained([*GOOD[:place], edited(GOOD[place], **{name: value}), *GOOD[place + 1 :]], place + 1)
            found = verified(tmp_path, joined(lines))
            assert found.broken_line is None or found.broken_line >= place + 1
            assert len(found.problem) < 1_000, name


@all_rows("depth", [150, 900, 5_000])
def test_verify_survives_deep_nesting(depth: int, tmp_path: Path) -> None:
    text = b"[" * depth + b"1" + b"]" * depth
    line = re.sub(rb'"mode":"run"', b'"mode":' + text, GOOD[0])
    found = verified(tmp_path, line + b"\n")
    assert found.broken_line == 1


def test_a_line_that_is_longer_than_any_record_is_never_held(tmp_path: Path) -> None:
    """200 MB without a newline: broken, in a process that may not have as much memory."""
    path = write(tmp_path / "log.jsonl", GOOD)
    with path.open("r+b") as file:
        file.truncate(len(joined(GOOD)) + 200_000_000)
    script = (
        "import sys; from harness.log.verify import verify; f = verify(sys.argv[1]); print(f.broken_line, f.problem)"
    )

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (300_000_000, 300_000_000))

    done_ = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True, preexec_fn=bounded
    )
    assert done_.stdout.strip() == f"16 is longer than {MAX_RECORD_BYTES} bytes"


def test_written_records_have_the_canonical_form(tmp_path: Path) -> None:
    """Lone surrogates, control characters, DEL, large and small numbers: what is written encodes to itself again."""
    path = str(tmp_path / "log.jsonl")
    log = ActionLog.open(path)
    hostile = '\x00\x1f\x7f\x80\u2028\ud800\udc00\udfff\\"/\b\f\n\r\t ä😀'
    log.append("session_started", {"harness": "0", "any": [hostile, 1e22, 1.5e-7, -0.0, 10**40, True, None, {"": {}}]})
    log.append("user_message", {"text": hostile})
    log.append("session_ended", {"stop": "completed", "detail": hostile})
    head, size = log.head, log.size
    log.close()
    found = verify(path, head)
    assert (found.problem, found.passed_head, found.bytes) == ("", True, size)


def test_the_first_session(tmp_path: Path) -> None:
    assert first_session(str(write(tmp_path / "a", GOOD))) == "0123456789ab"
    assert first_session(str(write(tmp_path / "b", [b"{}"]))) == ""
    assert first_session(str(write(tmp_path / "c", [edited(GOOD[0], session=7)]))) == ""
    assert first_session(str(write(tmp_path / "d", []))) == ""


def test_verify_refuses_a_missing_or_special_file_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "missing"):
        with pytest.raises(LogError, match="cannot be read"):
            verify(str(path))
