"""What a server may ask the person, how an answer is read, and what looks like asking for a secret."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from log_scene import Step, forged
from rows import all_rows

from harness.actions import Action
from harness.gate.approval import Approval
from harness.log.verify import verify
from harness.log.vocabulary import Answer
from harness.plugins.mcp.elicitation import MOST_CHARACTERS, ElicitForm, ask_user, content_of, form_of, looks_secret
from harness.policy.verdict import Verdict

SECRETS = """
Enter your password      PASSWORD                 pass-word               pass phrase
your API key             api_key                  access-key              the secret
an OTP, please           the one-time code        your PIN?               token
client_credentials       private key              seed phrase             p\u00e1ssw\u00f3rd
Passwort                 Kennwort                 contrase\u00f1a              mot de passe
"""
PLAIN = """
Which branch?            How many pages?          your opinion            mapping
Spinning                 key of the map           the city                Go on?
name of the folder       primary keyword          compass                 a passenger
"""


def words(table: str) -> list[str]:
    """Return the cells of a table, two blanks or more between them."""
    return [cell.strip() for line in table.splitlines() for cell in line.split("  ") if cell.strip()]


@all_rows("text", words(SECRETS))
def test_question_for_a_secret_is_recognized(text: str) -> None:
    assert looks_secret(text)


@all_rows("text", words(PLAIN))
def test_harmless_question_is_not_taken_for_a_secret(text: str) -> None:
    assert not looks_secret(text)


def form(**properties: Any) -> ElicitForm:
    """Return a form that is not refused; every field is needed."""
    found = form_of("Go on?", {"type": "object", "properties": properties, "required": list(properties)})
    assert isinstance(found, ElicitForm), found
    return found


@all_rows(
    ("schema", "text", "value"),
    {
        "a text": ({"type": "string"}, "a b: c", "a b: c"),
        "no text": ({"type": "string"}, "", "x needs a value"),
        "a choice": ({"type": "string", "enum": ["a", "b"]}, "b", "b"),
        "no choice": ({"type": "string", "enum": ["a", "b"]}, "c", "x must be one of a, b"),
        "a named choice": ({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, "a", "a"),
        "some": ({"type": "array", "items": {"enum": ["a", "b"]}}, "a, b", ["a", "b"]),
        "not some": ({"type": "array", "items": {"enum": ["a"]}}, "a, c", "x must be some, with commas between, of a"),
        "yes": ({"type": "boolean"}, "Yes", True),
        "no": ({"type": "boolean"}, "false", False),
        "neither": ({"type": "boolean"}, "perhaps", "x must be yes or no"),
        "a whole number": ({"type": "integer"}, "-3", -3),
        "no whole number": ({"type": "integer"}, "3.5", "x must be a whole number"),
        "a number": ({"type": "number"}, "3.5", 3.5),
        "no number": ({"type": "number"}, "1e9", "x must be a number"),
    },
)
def test_form_value_is_parsed_by_the_type_of_its_field(schema: dict[str, Any], text: str, value: object) -> None:
    read = content_of(form(x=schema), f"x: {text}\n")
    assert (read if isinstance(read, str) else read["x"]) == value


def test_line_outside_the_form_is_reported() -> None:
    assert content_of(form(x={"type": "string"}), "y: 1") == "this line is none of the form: y: 1"


@all_rows(
    ("schema", "why"),
    {
        "nested": ({"properties": {"a": {"type": "object"}}}, "its field a is no plain field"),
        "a name that is none": ({"properties": {"a b": {"type": "string"}}}, "its field a b is no plain field"),
        "too many": ({"properties": {f"f{n}": {} for n in range(30)}}, "at most 20"),
        "too long": ({"properties": {"a": {"description": "x" * 20_000}}}, "more than 10000 characters"),
        "choices that are no texts": ({"properties": {"a": {"enum": [1]}}}, "choices that cannot be shown"),
        "what nobody sees": ({"properties": {"a": {"title": "a\u200b"}}}, "not what it seems"),
        "a default of two lines": ({"properties": {"a": {"default": "a\nb"}}}, "a default that cannot be shown"),
    },
)
def test_a_form_that_cannot_be_shown_is_refused(schema: dict[str, Any], why: str) -> None:
    assert why in str(form_of("Go on?", schema))


def test_too_long_value_is_refused() -> None:
    assert f"more than {MOST_CHARACTERS} characters" in str(
        content_of(form(x={"type": "string"}), f"x: {'a' * MOST_CHARACTERS}")
    )


# -- the question


YES = Answer.YES
FILLED = Approval(answer=Answer.EDIT, by="person", arguments=json.dumps({"answers": "x: Rome"}))
ROME = Approval(answer=YES, by="person", words="Rome")


class Answers:
    """Answers one after the other; KeyboardInterrupt where there is none."""

    def __init__(self, answers: Sequence[Approval]) -> None:
        self._answers = iter(answers)
        self.shown: list[str] = []

    def __call__(self, action: Action, verdict: Verdict) -> Approval:
        self.shown.append(action.preview)
        for answer in self._answers:
            return answer
        raise KeyboardInterrupt


@all_rows(
    ("answers", "action", "value", "questions"),
    {
        "an editor cannot fill it in": ([Approval(answer=YES, by="client")], "decline", None, 1),
        "nor can an approver": ([Approval(answer=YES, by="approver", who="phone")], "decline", None, 1),
        "whose words are no value": ([Approval(answer=YES, by="approver", words="Paris")], "decline", None, 1),
        "those of the person are": ([ROME], "accept", "Rome", 1),
        "the person is asked again": ([Approval(answer=YES, by="person"), FILLED, ROME], "accept", "Rome", 3),
        "what they filled in is confirmed": ([FILLED, Approval(answer=YES, by="client")], "accept", "Rome", 2),
        "an interrupt": ([], "cancel", None, 1),
    },
)
def test_unfillable_form_is_asked_once(answers: list[Approval], action: str, value: str | None, questions: int) -> None:
    approver = Answers(answers)
    answer = ask_user("srv", form(x={"type": "string"}), approver)
    assert answer.action == action
    assert (answer.content or {}).get("x") == value
    assert answer.stops is (not answers)
    assert answer.by == (answers[-1].by if answers else "person")
    assert len(approver.shown) == questions
    assert "Not yet: x needs a value" in approver.shown[0]


# -- its record

RUNS: list[Step] = [
    ("call_proposed", {"call": 1}),
    ("decision", {"call": 1, "decision": "auto"}),
    ("intent", {"call": 1}),
]
ASKED: Step = ("server_asked", {"call": 1})
ENDS: Step = ("outcome", {"call": 1, "status": "ok"})


@pytest.mark.forges_logs
@all_rows(
    ("steps", "problem"),
    {
        "while its call runs": ([*RUNS, ASKED, ASKED, ENDS], ""),
        "before it runs": ([*RUNS[:2], ASKED], "asked in call 1, which is not running"),
        "after it ran": ([*RUNS, ENDS, ASKED], "asked in call 1, which is not running"),
        "of no call": ([("server_asked", {"call": 7})], "asked in call 7, which is not running"),
    },
)
def test_a_server_asks_only_while_a_call_runs(tmp_path: Path, steps: list[Step], problem: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(forged([("session_started", {}), *steps])))
    found = verify(str(path)).problem
    assert problem in found
    assert bool(problem) == bool(found)
