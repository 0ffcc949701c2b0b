"""Consent: a question to the person about something that is no call of the model, put like one; it decides nothing itself."""

from __future__ import annotations

from harness.actions import Action, Effects, ToolUse
from harness.approval import Answer, Approver
from harness.messages import ToolCall
from harness.policy import FacetVerdict, Source, Verdict
from harness.rules import Decision


def is_wanted(approver: Approver, *, tool: str, summary: str, preview: str, why: str, by: str) -> bool:
    """Ask as about a call: shown first, keys that were pressed before thrown away; True for a yes alone.

    `tool` is what asks and no tool of the model, `by` the command that led here.
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
        approval = approver(action, Verdict(decision=Decision.CONFIRM, facets=(asked,), effects=effects))
    except KeyboardInterrupt:
        return False
    return approval.answer is Answer.YES
