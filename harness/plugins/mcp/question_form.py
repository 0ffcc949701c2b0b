"""A question as a form that an MCP client shows to a person (elicitation), and the answer in the filled form.

INVARIANT: a yes is the word that the form asks for, in a form that was sent off. Nothing is filled in beforehand, and
a field that a client leaves out, closes or makes up is not a yes. A question of more than a few rows ends in a number
that has to be typed: a client that cuts it (Claude Code 2.1.330 shows four rows) cuts the number too, and then a yes
is impossible there.
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
"""Maximum lines and characters of a question in a form: clients cut longer ones, and a question not shown whole is
not answered.
"""
SHORT_ROWS, SHORT_WIDTH = 4, 40
"""Rows and columns that every client shows whole."""
MOST_WORDS = 500
_MARGIN = "    "
"""Prefix of each line of the question: a client that draws Markdown leaves the text behind it unchanged."""
CALL_GONE = "the client cancelled the call, or left, before anybody answered"
TOO_LONG = "the question is too long for a form of the client"


class FormEnd(Enum):
    """The end of a form."""

    SENT = "accept"
    REFUSED = "decline"
    CLOSED = "cancel"
    """The client closed it, perhaps without a person: there is an end, but not an answer."""
    LATE = "late"
    FAILED = "failed"
    """The client could not show it, or answered with something else."""
    CALL_GONE = "call gone"
    """The client does not want the call any more, or is gone, or the server ends."""


class FormAnswer(Record):
    """A client's answer to a form."""

    end: FormEnd
    filled: Mapping[str, object] = {}
    """With SENT: the fields, as the client says."""


class QuestionForm(Record):
    """One question, as a client shows it."""

    tool: str
    message: str
    word: str
    """The word to type for a yes; empty if `yes` is chosen from a list."""

    @property
    def schema(self) -> dict[str, JsonValue]:
        """The form, in the little JSON Schema that clients know."""
        field: dict[str, JsonValue] = {"type": "string", "title": f"May this call of {self.tool} run, once?"}
        if self.word:
            field["description"] = "To let it run, type what the end of the question says. Anything else refuses."
        else:
            field["enum"] = [NO, YES]  # who answers with the first one that is offered says no
        return {"type": "object", "properties": {FIELD: field}, "required": [FIELD]}

    def approval(self, answer: FormAnswer, client: str) -> Approval | None:
        """Return the approval in an answer of `client`; the approver is the client, not the unknown person. `None`
        without an answer.
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
    """Return the form of a question about a call of `tool`; `None` if it is too long to be shown whole.

    `question` is the complete text, safe to show; `word` must be typed to say yes, unless it is empty.
    """
    lines = [f"{_MARGIN}{line}" for line in question.split("\n")]
    if len(lines) > MOST_LINES or len(question) > MOST_CHARACTERS:
        return None
    if sum(-(-len(line) // SHORT_WIDTH) for line in lines) + bool(word) > SHORT_ROWS:
        word = f"{word} {secrets.randbelow(9_000) + 1_000}".lstrip()
    if word:
        lines.append(f"{_MARGIN}To let it run, type: {word}")
    return QuestionForm(tool=tool, message="\n".join(lines), word=word)
