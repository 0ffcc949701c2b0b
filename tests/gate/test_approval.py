"""Approvers that ask nobody: the one of unattended runs, and prepared answers."""

from __future__ import annotations

import pytest
from rows import all_rows

from harness.actions import Action, Decision, Effects, ToolUse
from harness.gate.approval import Approval, ScriptedAnswers, deny_all
from harness.log.vocabulary import Answer
from harness.messages import ToolCall
from harness.policy.verdict import FacetVerdict, Source, Verdict

FACET = FacetVerdict(facet=ToolUse(tool="t"), decision=Decision.CONFIRM, source=Source.DEFAULT, reason="because")
VERDICT = Verdict(
    decision=Decision.CONFIRM, facets=(FACET,), effects=Effects(read=None, write=None, network=False, unasked=False)
)


def action(name: str = "t") -> Action:
    call = ToolCall(id="c1", name=name, arguments="{}")
    return Action(call=call, tool=name, arguments={}, facets=(), summary=name, preview=name, request=None)


YES = Approval(answer=Answer.YES, by="script")
NO = Approval(answer=Answer.NO, by="script")
USED_UP = Approval(answer=Answer.NO, by="script", words="no answer was prepared for this question")


def test_deny_all_names_no_person() -> None:
    """No person is claimed, and nothing is permitted."""
    assert deny_all(action(), VERDICT) == Approval(answer=Answer.NOBODY, by="nobody")


@all_rows(
    ("text", "approval"),
    [
        ("y", YES),
        ("yes", YES),
        (" Y ", YES),
        ("y:", YES),
        ("n", NO),
        ("No", NO),
        ("n:", NO),
        ("n: use make: it is quicker", Approval(answer=Answer.NO, by="script", words="use make: it is quicker")),
    ],
)
def test_answers_that_are_understood(text: str, approval: Approval) -> None:
    assert ScriptedAnswers([text])(action(), VERDICT) == approval


@all_rows("text", ["", " ", "ja", "yep", "y n", "y: but be careful", "yn", ":", ": y", "1", "true", "y\nn"])
def test_answers_that_are_not_plain_are_refused_before_anything_runs(text: str) -> None:
    """Above all a yes with words behind it: it may well be meant as a condition."""
    with pytest.raises(ValueError, match="an answer is y, n, n: and words for the model, h, or e: and arguments; not"):
        ScriptedAnswers([text])


def test_scripted_answers_come_in_order_and_then_deny() -> None:
    """A question too many is never a yes."""
    answers = ScriptedAnswers(["y", "n"])
    assert answers.unused == 2
    asked = [action("a"), action("b"), action("c"), action("d")]
    assert [answers(one, VERDICT) for one in asked] == [YES, NO, USED_UP, USED_UP]
    assert [shown for shown, _ in answers.asked] == asked
    assert answers.unused == 0


def test_missing_answers_mean_no() -> None:
    answers = ScriptedAnswers([])
    assert (answers(action(), VERDICT), answers.unused) == (USED_UP, 0)
