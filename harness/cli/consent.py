"""Consent: a question to the person about something that is no call of the model, put like one; it decides nothing itself."""

from __future__ import annotations

from harness.actions import Action, Effects, ToolUse
from harness.approval import Answer, Approval, Approver
from harness.messages import ToolCall
from harness.policy import FacetVerdict, Source, Verdict
from harness.rules import Decision


def is_wanted(approver: Approver, *, tool: str, summary: str, preview: str, why: str, by: str) -> bool:
    """Ask as `consent` does; True for a yes alone."""
    approval = consent(approver, tool=tool, summary=summary, preview=preview, why=why, by=by)
    return approval.answer is Answer.YES


def consent(approver: Approver, *, tool: str, summary: str, preview: str, why: str, by: str) -> Approval:
    """Ask as about a call: shown first, keys that were pressed before thrown away. Return the answer.

    `tool` is what asks and no tool of the model, `by` the command that led here. A no holds words only where somebody
    hears them (terminal/question.py).
    """
    use = ToolUse(tool=tool)
    action = Action(
        call=ToolCall(id="", name=tool, arguments=""),
        tool=tool,
        arguments={},
        facets=(use,),
        summary=summary,
        preview=preview,
        request=None,
    )
    asked = FacetVerdict(facet=use, decision=Decision.CONFIRM, source=Source.BUILT_IN, reason=why, by=by)
    effects = Effects(read=None, write=None, network=False, unasked=False)
    try:
        return approver(action, Verdict(decision=Decision.CONFIRM, facets=(asked,), effects=effects))
    except KeyboardInterrupt:
        return Approval(answer=Answer.STOP, by="person")
