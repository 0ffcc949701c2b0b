"""The public format of a question and its answer: one line of JSON each.

INVARIANT: only a completely valid answer counts. Any other reply counts as no answer.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping

from harness.actions import Action, JsonValue
from harness.digest import digest_of
from harness.gate.approval import Approval
from harness.gate.judged_json import judged_fields
from harness.grant_pattern import GrantScope
from harness.log.vocabulary import Answer
from harness.policy.grant_offers import GrantChoice, Offer
from harness.policy.verdict import Verdict
from harness.record import Record
from harness.text.fields import Fields
from harness.text.strict_json import NotJsonError, read_line
from harness.text.visible import visible_line

VERSION = 1
OWN = "harness"
"""Name of the asking agent in a question of a session of ours."""
MOST_QUESTION_BYTES = 4_000_000
MOST_ANSWER_BYTES = 20_000
"""Maximum bytes of an answer, with its line end."""
MOST_NAME = 80
MOST_WORDS = 4_000

TOO_LARGE = "the question is too large to be asked outside"
_MOST_WHY = 300

_ANSWER = Fields({
    "id": "text",
    "sha256": "digest",
    "answer": "one of yes no stop",
    "by": "line",
    "words?": f"text of at most {MOST_WORDS} characters",
    "destroys?": "flag",
    "grant?": "count",
})  # fmt: skip


class AnswerError(Exception):
    """Raised for an invalid answer, with the reason for the model and the log."""


class OutsideQuestion(Record):
    """A question as it is sent, and the data to check its answer."""

    id: str
    sha256: str
    """Digest of all other fields, as a JSON object in ASCII with sorted keys and without blanks."""
    line: bytes
    """The JSON, with its line end."""
    choices: tuple[GrantChoice, ...] = ()
    """The grants on offer for this session. A yes may name one by its index."""
    destroys: bool = False
    """Whether the call destroys data. If so, a yes must have `"destroys": true`."""
    shown_whole: bool = True


def question_of(
    action: Action,
    verdict: Verdict,
    *,
    agent: str,
    session: str,
    workspace: str,
    confinement: str,
    offer: Offer | str,
    seconds: float,
    redact: Callable[[str], str],
    clock: Callable[[], float] = time.time,
) -> OutsideQuestion:
    """Return the question about a judged call of a session of `agent`, with secrets masked."""
    call_fields = judged_fields(action, verdict, redact)
    choices = () if isinstance(offer, str) else offer.choices
    now = clock()
    fields: dict[str, JsonValue] = {
        "harness_approver": VERSION,
        "id": os.urandom(16).hex(),
        "agent": agent,
        "session": session,
        "workspace": workspace,
        "asked": _stamp(now),
        "until": _stamp(now + seconds),
        "call": call_fields,
        "confinement": confinement,
        "grants": [
            {
                "grant": place,
                "name": redact(choice.name),
                "allows": [redact(pattern.text) for pattern in choice.patterns],
                "asked_still": [redact(part) for part in choice.asked_still],
            }
            for place, choice in enumerate(choices)
        ],
        **({"no_grants": redact(offer)} if isinstance(offer, str) else {}),
    }
    digest = digest_of(_canonical(fields))
    return OutsideQuestion(
        id=str(fields["id"]),
        sha256=digest,
        line=_line({**fields, "sha256": digest}),
        choices=choices,
        destroys=bool(call_fields["destroys"]),
        shown_whole=action.shown_whole,
    )


def withdrawal_of(question: OutsideQuestion) -> bytes:
    """Return the line that withdraws a question."""
    return _line({"harness_approver": VERSION, "id": question.id, "withdrawn": True})


def approval_from(came: bytes, question: OutsideQuestion) -> Approval:
    """Parse the received bytes as an answer to `question`. Raises AnswerError if they are not a valid one."""
    line, end, rest = came.partition(b"\n")
    if len(came) > MOST_ANSWER_BYTES:
        raise AnswerError(f"the answer is longer than {MOST_ANSWER_BYTES} bytes")
    if not line.strip():
        raise AnswerError("the answer is empty")
    if not end:
        raise AnswerError("the answer does not end with a line end")
    if rest:
        raise AnswerError("the answer has more than one line")
    try:
        fields = read_line(line)
    except NotJsonError as error:
        raise AnswerError(_short_reason(f"the answer is not valid JSON ({error})")) from None
    if problem := _ANSWER.problem(fields):
        raise AnswerError(_short_reason(problem if ": " in problem else f"the answer {problem}"))
    return _approval(fields, question) if isinstance(fields, dict) else _never()


def _approval(fields: Mapping[str, JsonValue], question: OutsideQuestion) -> Approval:
    name, grant = str(fields["by"]), fields.get("grant")
    if (fields["id"], fields["sha256"]) != (question.id, question.sha256):
        raise AnswerError("the answer belongs to another question")
    if len(name) > MOST_NAME:
        raise AnswerError(f"by: must have at most {MOST_NAME} characters")
    answer = Answer(fields["answer"])
    words = str(fields.get("words", ""))
    if answer is not Answer.YES:
        if "grant" in fields or "destroys" in fields:
            raise AnswerError(f"a {answer.value} must have no grant and no destroys")
        return Approval(answer=answer, by="approver", who=name, words=words)
    if not question.shown_whole:
        raise AnswerError("the call cannot be approved, since it cannot be shown in full")
    if fields.get("destroys", False) is not question.destroys:
        raise AnswerError(
            "destroys: must be true, since the call destroys data"
            if question.destroys
            else "destroys: must be false, since the call is not known to destroy data"
        )
    if grant is None:
        return Approval(answer=answer, by="approver", who=name, words=words)
    if not isinstance(grant, int) or grant >= len(question.choices):
        raise AnswerError("grant: must be the number of an offered grant")
    patterns = question.choices[grant].patterns
    return Approval(answer=answer, by="approver", who=name, words=words, scope=GrantScope.SESSION, patterns=patterns)


def _never() -> Approval:
    raise AnswerError("the answer must be an object")


def _canonical(fields: Mapping[str, JsonValue]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _line(fields: Mapping[str, JsonValue]) -> bytes:
    return f"{json.dumps(fields, allow_nan=False)}\n".encode()


def _short_reason(text: str) -> str:
    return visible_line(text, _MOST_WHY)


def _stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
