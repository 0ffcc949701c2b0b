"""Errors of providers, by their words."""

from __future__ import annotations

from pathlib import Path

from rows import all_rows

from harness.errors import ModelFault
from harness.models.failures import broken_off, refusal_of, refused

OVERFLOWS, OTHERS = (
    [line.partition(" ")[::2] for line in part.splitlines() if line and not line.startswith("#")]
    for part in Path(__file__).with_name("overflow_texts.txt").read_text().split("\n--\n")
)


def fault(status: str, text: str) -> ModelFault:
    if status == "0":
        return broken_off({"message": text}).fault
    refusal = refusal_of({"error": {"message": text}}, status=int(status))
    return refused(refusal, model="m1", address="http://a", key_variable="KEY").fault


@all_rows(("status", "text"), OVERFLOWS, ids=[text for _, text in OVERFLOWS])
def test_a_conversation_that_is_too_long_is_understood(status: str, text: str) -> None:
    assert fault(status, text) is ModelFault.CONTEXT


@all_rows(("status", "text"), OTHERS, ids=[text for _, text in OTHERS])
def test_other_errors_in_such_words_are_not(status: str, text: str) -> None:
    assert fault(status, text) is not ModelFault.CONTEXT
