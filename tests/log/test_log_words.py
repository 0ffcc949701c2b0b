"""The words that readers of a log share are those that the gate and the tools write."""

from __future__ import annotations

from harness.gate.approval import Answer
from harness.log import order as log_words
from harness.messages import ResultStatus
from harness.policy.rules import Decision


def test_the_words_are_those_of_the_enums() -> None:
    assert [*log_words.DECISIONS] == [decision.word for decision in sorted(Decision)]
    assert set(log_words.ANSWERS) == {answer.value for answer in Answer}
    assert set(log_words.STATUSES) == {status.value for status in ResultStatus}
