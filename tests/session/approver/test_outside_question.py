"""A question in its public form, and every answer to it: what counts, and what is nobody's."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from question_scene import Asked, command
from rows import all_rows

from harness.gate.approval import Approval
from harness.grant_pattern import GrantScope
from harness.log.vocabulary import Answer
from harness.record import replace
from harness.session.approver.approver_declaration import ApproverDeclaration, declared
from harness.session.approver.outside_question import (
    MOST_ANSWER_BYTES,
    AnswerError,
    OutsideQuestion,
    approval_from,
    question_of,
    withdrawal_of,
)

GONE = "(no field)"


def put(about: Asked) -> OutsideQuestion:
    return question_of(
        about.action,
        about.verdict,
        agent="harness",
        session="0123456789ab",
        workspace="/w",
        confinement="kernel",
        offer=about.offer(about.action, about.verdict),
        seconds=300,
        redact=lambda text: text.replace("hunter2", "[masked]"),
        clock=lambda: 1_700_000_000.0,
    )


def line(question: OutsideQuestion, fields: Mapping[str, Any]) -> bytes:
    """Return an answer as it should be, but for `fields`."""
    held = {"id": question.id, "sha256": question.sha256, "answer": "yes", "by": "ann", **fields}
    return json.dumps({name: value for name, value in held.items() if value != GONE}).encode() + b"\n"


YES = Approval(answer=Answer.YES, by="approver", who="ann")
PLAIN, DESTROYS, LARGE = "touch made", "rm -rf src", "(cannot be shown whole)"


@all_rows(
    ("asked", "fields", "expected"),
    [
        (PLAIN, {}, YES),
        (PLAIN, {"answer": "no"}, replace(YES, answer=Answer.NO)),
        (PLAIN, {"answer": "stop", "words": "not now"}, replace(YES, answer=Answer.STOP, words="not now")),
        (PLAIN, {"words": "quickly"}, replace(YES, words="quickly")),
        (PLAIN, {"words": "x" * 4_001}, "words: must be a string of at most 4000 characters"),
        (PLAIN, {"words": None}, "words: must be a string"),
        (PLAIN, {"answer": "YES"}, "answer: unknown"),
        (PLAIN, {"answer": "maybe"}, "answer: unknown 'maybe'; known: yes, no, stop"),
        (PLAIN, {"answer": "edit"}, "answer: unknown"),
        (PLAIN, {"answer": "halt"}, "answer: unknown"),
        (PLAIN, {"answer": True}, "answer: must be a string"),
        (PLAIN, {"answer": GONE}, "the answer lacks the field answer"),
        (PLAIN, {"by": GONE}, "lacks the field by"),
        (PLAIN, {"by": ""}, "by: must not be empty"),
        (PLAIN, {"by": " "}, "by: must not be empty"),
        (PLAIN, {"by": "ann\nbob"}, "by: must not be empty, and on one line"),
        (PLAIN, {"by": "ann\x1b[2K"}, "by: must not be empty, and on one line"),
        (PLAIN, {"by": "ann\u202egod"}, "by: must not be empty, and on one line"),
        (PLAIN, {"by": "a" * 81}, "by: must have at most 80 characters"),
        (PLAIN, {"by": ["ann"]}, "by: must be a string"),
        (PLAIN, {"id": "0"}, "belongs to another question"),
        (PLAIN, {"id": GONE}, "lacks the field id"),
        (PLAIN, {"sha256": "0" * 64}, "belongs to another question"),
        (PLAIN, {"sha256": "0"}, "sha256: must be a SHA-256"),
        (PLAIN, {"sha256": GONE}, "lacks the field sha256"),
        (PLAIN, {"always": True}, "unknown field 'always'"),
        (PLAIN, {"destroys": True}, "destroys: must be false, since the call is not known to destroy data"),
        (PLAIN, {"destroys": False}, YES),
        (PLAIN, {"destroys": "true"}, "destroys: must be true or false"),
        (PLAIN, {"answer": "no", "destroys": True}, "a no must have no grant"),
        (PLAIN, {"answer": "stop", "grant": 0}, "a stop must have no grant"),
        (PLAIN, {"grant": 0}, "granted"),
        (PLAIN, {"grant": 99}, "grant: must be the number of an offered grant"),
        (PLAIN, {"grant": -1}, "grant: must be a whole number"),
        (PLAIN, {"grant": True}, "grant: must be a whole number"),
        (PLAIN, {"grant": "0"}, "grant: must be a whole number"),
        (DESTROYS, {}, "destroys: must be true, since the call destroys data"),
        (DESTROYS, {"destroys": False}, "destroys: must be true, since the call destroys data"),
        (DESTROYS, {"destroys": True}, YES),
        (DESTROYS, {"destroys": True, "grant": 0}, "grant: must be the number of an offered grant"),
        (DESTROYS, {"answer": "no"}, replace(YES, answer=Answer.NO)),
        (LARGE, {}, "cannot be shown in full"),
        (LARGE, {"answer": "no"}, replace(YES, answer=Answer.NO)),
    ],
)  # fmt: skip
def test_only_an_answer_that_is_wholly_as_it_should_be_is_one(
    asked: str, fields: dict[str, Any], expected: Approval | str, tmp_path: Path
) -> None:
    about = command(str(tmp_path), PLAIN if asked == LARGE else asked)
    if asked == LARGE:
        about = about._replace(action=replace(about.action, shown_whole=False))
    question = put(about)
    if expected == "granted":
        choice = question.choices[0]
        expected = replace(YES, scope=GrantScope.SESSION, patterns=choice.patterns)
    if isinstance(expected, Approval):
        assert approval_from(line(question, fields), question) == expected
        return
    with pytest.raises(AnswerError) as error:
        approval_from(line(question, fields), question)
    assert expected in str(error.value)


@all_rows(
    ("before", "after", "expected"),
    [
        (b"", b"\n", "more than one line"),
        (b"", b"{}\n", "more than one line"),
        (b"", b" ", "more than one line"),
        (b"\n", b"", "the answer is empty"),
        (b"noise\n", b"", "not valid JSON"),
        (b"\xff", b"", "not UTF-8"),
        (b"[", b"", "not valid JSON"),
        (b'{"id": 1, "id": 2}\n', b"", "duplicate key"),
        (b"[]\n", b"", "must be an object"),
        (b"null\n", b"", "must be an object"),
        (b'"yes"\n', b"", "must be an object"),
        (b"y\n", b"", "not valid JSON"),
        (b"[" * 9_000 + b"\n", b"", "not valid JSON"),
        (b" " * MOST_ANSWER_BYTES, b"", "longer than"),
    ],
)  # fmt: skip
def test_text_beside_an_answer_invalidates_it(before: bytes, after: bytes, expected: str, tmp_path: Path) -> None:
    question = put(command(str(tmp_path), PLAIN))
    came = before if before.endswith(b"\n") and before != b"\n" else before + line(question, {}) + after
    with pytest.raises(AnswerError) as error:
        approval_from(came, question)
    assert expected in str(error.value)


def test_an_answer_that_is_cut_short_is_none(tmp_path: Path) -> None:
    question = put(command(str(tmp_path), PLAIN))
    whole = line(question, {})
    for size in range(len(whole)):
        with pytest.raises(AnswerError):
            approval_from(whole[:size], question)
    assert approval_from(whole, question) == YES


def test_question_contains_the_judged_call_and_its_digest(tmp_path: Path) -> None:
    question = put(command(str(tmp_path), "touch made && echo hunter2 > out"))
    held = json.loads(question.line)
    assert question.line.count(b"\n") == 1
    assert {
        name: held[name] for name in ("harness_approver", "agent", "session", "workspace", "confinement", "until")
    } == {
        "harness_approver": 1,
        "agent": "harness",
        "session": "0123456789ab",
        "workspace": "/w",
        "confinement": "kernel",
        "until": "2023-11-14T22:18:20Z",
    }
    call = held["call"]
    assert (call["tool"], call["decision"], call["arguments"]) == (
        "bash",
        "confirm",
        {"command": "touch made && echo [masked] > out"},
    )
    assert "hunter2" not in question.line.decode()
    assert {one["facet"] for one in call["facets"]} == {"touch made", "echo [masked] > out", "write out"}
    assert [one["grant"] for one in held["grants"]] == list(range(len(question.choices)))
    digest = held.pop("sha256")
    assert digest == question.sha256
    assert digest == hashlib.sha256(json.dumps(held, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    assert json.loads(withdrawal_of(question)) == {"harness_approver": 1, "id": held["id"], "withdrawn": True}


def test_questions_are_unique(tmp_path: Path) -> None:
    about = command(str(tmp_path), PLAIN)
    first, second = put(about), put(about)
    with pytest.raises(AnswerError):
        approval_from(line(first, {}), second)


@all_rows(
    ("table", "expected"),
    [
        ({"command": ["notify"]}, ApproverDeclaration(command=("notify",))),
        (
            {"command": ["~/bin/notify", "-x"], "seconds": 5},
            ApproverDeclaration(command=("~/bin/notify", "-x"), seconds=5.0),
        ),
        ({"command": ["n"], "env": ["TOKEN"]}, ApproverDeclaration(command=("n",), env=("TOKEN",))),
        ({"socket": "/run/s"}, ApproverDeclaration(socket="/run/s")),
        ({}, "command: give either command or socket"),
        ({"command": ["n"], "socket": "/run/s"}, "command: give either command or socket"),
        ({"command": []}, "command: must name a program"),
        ({"command": [""]}, "command: number 1: must not be empty"),
        ({"command": "notify me"}, "command: must be a list"),
        ({"command": ["./notify"]}, "command: the program is a bare name"),
        ({"command": ["bin/notify"]}, "command: the program is a bare name"),
        ({"socket": "s"}, "socket: must be a path that begins with / or ~/"),
        ({"socket": "/s", "env": ["TOKEN"]}, "env: goes with command alone"),
        ({"socket": "/s", "seconds": 0}, "seconds: must be a number above 0"),
        ({"socket": "/s", "seconds": True}, "seconds: must be a number above 0"),
        ({"socket": "/s", "seconds": 90_000}, "seconds: must be a number above 0, at most 86400"),
        ({"socket": "/s", "answer": "yes"}, "has the unknown field 'answer'"),
    ],
)
def test_a_table_declares_a_command_or_a_socket(table: dict[str, Any], expected: ApproverDeclaration | str) -> None:
    if isinstance(expected, ApproverDeclaration):
        assert declared(table) == expected
        return
    with pytest.raises(ValueError, match=re.escape(expected)):
        declared(table)
