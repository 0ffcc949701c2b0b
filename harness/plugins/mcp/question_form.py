"""An approval prompt as a form that an MCP client shows to its user (elicitation), and the answer in the filled form.

INVARIANT: only a submitted form with the requested word is an approval. The form has no default, and a closed form, a
missing field or any other text is not an approval. A question of more than a few rows ends with a number that the user
must type. A client that cuts the question (Claude Code 2.1.330 shows four rows) also cuts the number, so that its user
cannot approve a question without seeing all of it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from enum import Enum

from harness.actions import JsonValue
from harness.gate.approval import Approval, nobody
from harness.log.vocabulary import Answer
from harness.record import Record
from harness.text.visible import visible_line

FIELD = "answer"
YES, NO = "yes", "no"
MOST_LINES, MOST_CHARACTERS = 80, 6_000
"""Maximum number of lines and characters of a question in a form. Clients cut longer questions."""
SHORT_ROWS, SHORT_WIDTH = 4, 40
"""Number of rows and columns that every client shows without a cut."""
MOST_WORDS = 500
_MARGIN = "    "
"""Prefix of each line of the question, so that clients that render Markdown show the text unchanged."""
CALL_GONE = "the client cancelled the call, or left, before anybody answered"
TOO_LONG = "the question is too long for a form of the client"


class FormEnd(Enum):
    """The end of a form."""

    SENT = "accept"
    REFUSED = "decline"
    CLOSED = "cancel"
    """The client closed the form, perhaps without a user. This is not an answer."""
    LATE = "late"
    FAILED = "failed"
    """The client could not show the form, or sent an invalid answer."""
    CALL_GONE = "call gone"
    """The client cancelled the call, the client left, or the server ends."""


class FormAnswer(Record):
    """A client's answer to a form."""

    end: FormEnd
    filled: Mapping[str, object] = {}
    """With SENT: the fields as the client sent them."""


class QuestionForm(Record):
    """The form for one approval prompt."""

    tool: str
    message: str
    word: str
    """The text to type for an approval. Empty if the user chooses `yes` from a list."""

    @property
    def schema(self) -> dict[str, JsonValue]:
        """The form in the subset of JSON Schema that clients support."""
        field: dict[str, JsonValue] = {"type": "string", "title": f"May this call of {self.tool} run, once?"}
        if self.word:
            field["description"] = "To let it run, type what the end of the question says. Anything else refuses."
        else:
            field["enum"] = [NO, YES]  # a client that picks the first choice by default refuses
        return {"type": "object", "properties": {FIELD: field}, "required": [FIELD]}

    def approval(self, answer: FormAnswer, client: str) -> Approval | None:
        """Return the approval in an answer of `client`. `None` if the form was closed, late or failed.

        The approver is the client, since its user is unknown.
        """
        match answer.end:
            case FormEnd.SENT:
                answer_text = answer.filled.get(FIELD)
                if isinstance(answer_text, str) and answer_text.strip() == (self.word or YES):
                    return Approval(answer=Answer.YES, by="client", who=client)
                typed = visible_line(answer_text, MOST_WORDS) if isinstance(answer_text, str) else ""
                return Approval(answer=Answer.NO, by="client", who=client, words=typed if self.word else "")
            case FormEnd.REFUSED:
                return Approval(answer=Answer.NO, by="client", who=client)
            case FormEnd.CALL_GONE:
                return nobody(CALL_GONE)
            case _:
                return None


def question_form(tool: str, question: str, word: str) -> QuestionForm | None:
    """Return the form of a question about a call of `tool`. `None` if the question is too long for a form.

    `question` is the complete text, safe to show. The user must type `word` to approve, unless it is empty.
    """
    lines = [f"{_MARGIN}{line}" for line in question.split("\n")]
    if len(lines) > MOST_LINES or len(question) > MOST_CHARACTERS:
        return None
    if sum(-(-len(line) // SHORT_WIDTH) for line in lines) + bool(word) > SHORT_ROWS:
        word = f"{word} {secrets.randbelow(9_000) + 1_000}".lstrip()
    if word:
        lines.append(f"{_MARGIN}To let it run, type: {word}")
    return QuestionForm(tool=tool, message="\n".join(lines), word=word)
