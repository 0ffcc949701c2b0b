"""The question whether a server may start that a client declares: an editor, or a program that drives a session.

A client may have read the declaration from the project, which harness cannot tell from the user's own. So each session
asks before it starts the server or connects to it.
"""

from __future__ import annotations

from harness.actions import Action, Decision, Effects, ToolUse
from harness.gate.approval import Approval
from harness.log.vocabulary import Answer
from harness.messages import ToolCall
from harness.plugins.mcp.elicitation import ElicitAnswer
from harness.plugins.mcp.server_declaration import ServerDeclaration
from harness.policy.verdict import FacetVerdict, Source, Verdict
from harness.text.visible import visible, visible_line
from harness.tool_kinds import ToolKind

REASON = "a client declares this server, and your configuration does not"
MOST_SUMMARY = 200
MESSAGE = "may it start?"


def start_question(declaration: ServerDeclaration, way: str, held_by: str) -> tuple[Action, Verdict]:
    """Return the question as a call that asks. `way` is the command line or URL, with secrets masked."""
    name = f"mcp__{declaration.name}"
    does = "starts" if declaration.command else "is reached at"
    names = ", ".join(key for key, _ in (*declaration.variables, *declaration.headers))
    lines = [
        f"The MCP server {declaration.name} {does}:",
        f"  {way}",
        *([f"It gets values for: {names}"] if names else []),
    ]
    use = ToolUse(tool=name)
    action = Action(
        call=ToolCall(id="", name=name, arguments="{}"),
        tool=name,
        arguments={},
        facets=(use,),
        summary=visible_line(f"start the MCP server {declaration.name}: {way}", MOST_SUMMARY),
        preview=visible("\n".join(lines)),
        request=None,
        described=ToolKind(name=name),
        confinement=held_by,
    )
    verdict = FacetVerdict(facet=use, decision=Decision.CONFIRM, source=Source.BUILT_IN, reason=REASON, by="the server")
    effects = Effects(read=None, write=None, network=False, unasked=False)
    return action, Verdict(decision=Decision.CONFIRM, facets=(verdict,), effects=effects)


def start_answer(approval: Approval) -> ElicitAnswer:
    """Return the answer in the words of the log."""
    words = {Answer.YES: "accept", Answer.STOP: "cancel", Answer.HALT: "cancel"}
    word = words.get(approval.answer, "decline")
    return ElicitAnswer(action=word, words=f"{word} by {approval.by}", by=approval.by, who=approval.who)
