"""Trust in a workspace's own policy: one question to the user, before the policy may loosen anything."""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Iterator, Sequence

from harness.actions import Action, Decision, Effects, ToolUse
from harness.errors import PolicyError
from harness.gate.approval import Approval, Approver
from harness.log.vocabulary import Answer
from harness.messages import ToolCall
from harness.policy.loader import load_policy
from harness.policy.policy import Policy
from harness.policy.rules import Layer
from harness.policy.verdict import FacetVerdict, Source, Verdict
from harness.record import replace
from harness.session.policies import note_on_updates
from harness.session.state import PROJECT_POLICY, State
from harness.text.amounts import count_of
from harness.text.visible import visible_line

TRUST_TOOL = "trust"
"""Name of the question whether to trust a project's policy. The model has no tool of this name."""
CHANGED = "was changed since you saw it: its new content is not trusted"


def trusted_or_not(state: State, workspace: str, ask: Approver) -> str:
    """Ask whether to trust the policy of `workspace` if it would loosen anything and has no answer yet.

    A yes stores the digest of the shown content. The policy may loosen only if its digest is stored (policies.py), so a
    file that changed in between is not trusted. Any other answer is stored as a no for this content: the policy can only
    tighten then, and the question is not repeated. Returns a message for the user, or an empty string.

    `workspace` is the folder, links followed. Called before the policy is assembled, and only with a terminal, since
    `run` asks nothing. Raises PolicyError for an invalid policy, and if the answer cannot be stored.
    """
    path = os.path.join(workspace, PROJECT_POLICY)
    if not os.path.lexists(path):
        return ""

    policy = load_policy(path, layer=Layer.PROJECT)
    if state.is_trusted(policy.sha256) or state.is_declined(policy.sha256):
        return ""

    if not loosening(policy):
        return ""
    if ask_trust(state, path, policy, ask):
        if not is_as_shown(path, policy):
            return f"{visible_line(path, 1_000)} {CHANGED}"
        return f"trusted: {visible_line(path, 1_000)}; any change of its content ends the trust"
    state.decline_content(policy.sha256, os.path.realpath(path))
    return (
        "this folder's own policy is not trusted: only what tightens counts. It is not asked again; `harness policy trust` "
        "trusts it"
    )


def ask_trust(state: State, path: str, policy: Policy, ask: Approver) -> bool:
    """Ask at an approval prompt whether to trust `policy`, read from `path`. Return whether the answer was yes.

    A yes is stored; any other answer counts as no. Raises PolicyError if the yes cannot be stored.
    """

    display_path, lines = visible_line(path, 2_000), loosening(policy)
    origin = "the policy came with the folder"
    if state.was_trusted(os.path.realpath(path)):
        origin = f"the policy changed since you trusted it{note_on_updates(policy)}"
    amount = count_of(len(lines), "thing") if lines else "nothing"
    head = f"{display_path}  sha256 {policy.sha256}", f"would loosen {amount} here{':' if lines else ''}"
    is_trusted = is_wanted(
        ask,
        tool=TRUST_TOOL,
        summary=f"trust this folder's own policy, {display_path}",
        preview="\n".join((*head, *lines)),
        reason=f"{origin}; what it loosens counts only if you trust exactly this content",
        by="once for this content; `harness policy trust` and a changed file come back to it",
    )
    if is_trusted:
        state.trust_content(policy.sha256, os.path.realpath(path))
    return is_trusted


def is_as_shown(path: str, policy: Policy) -> bool:
    """Return whether the content of the file at `path` is still the one that the user was shown."""
    try:
        return load_policy(path, layer=Layer.PROJECT).sha256 == policy.sha256
    except PolicyError:
        return False


LINE = 4_000
"""Maximum characters of one line. A longer line is cut, with a note of the missing length."""


def loosening(policy: Policy) -> tuple[str, ...]:
    """Return lines about the parts of `policy` that loosen, with file and line.

    They are the parts that `tightening_only` (harness/policy/policy.py) drops. Empty for a policy that only tightens.
    The lines can be shown as they are; none contains a line break.
    """
    return tuple(visible_line(line, LINE) for line in (*_defaults(policy), *_sandboxes(policy), *_rules(policy)))


def loosened_by(policy: Policy) -> tuple[str, ...]:
    """Return lines like `loosening` about the parts of a file that loosen what the files that it extends say.

    A confirm rule is one of them if a tool is refused by default. Empty for a file that extends none.
    """
    if len(policy.sources) == 1:
        return ()
    extended = [default for default in policy.defaults if default.origin.root]
    auto_tools = {default.tool for default in extended if default.decision is Decision.AUTO}
    part = replace(
        policy,
        rules=tuple(rule for rule in policy.rules if not rule.origin.root),
        defaults=tuple(each for each in policy.defaults if not each.origin.root and each.tool not in auto_tools),
        readers=() if any(each.origin.root for each in policy.readers) else policy.readers,
        sandbox_tables=tuple(table for table in policy.sandbox_tables if not table.origin.root),
    )
    asking = [rule for rule in part.rules if rule.decision is Decision.CONFIRM]
    if all(default.decision < Decision.DENY for default in extended):
        asking = []
    questions = (f"confirm  {rule.words()}  (rule {rule.label})" for rule in asking)
    return (*loosening(part), *(visible_line(line, LINE) for line in questions))


def _defaults(policy: Policy) -> Iterator[str]:
    for default in policy.defaults:
        if default.decision is Decision.AUTO:
            yield f"default  {default.subject} is auto where no rule says otherwise  ({default.origin})"
    for readers in policy.readers:
        if readers.on:
            yield f"readers  commands that only look are auto  ({readers.origin})"


def _sandboxes(policy: Policy) -> Iterator[str]:
    for table in policy.sandbox_tables:
        beyond = [place for place in table.write or () if _is_outside(place)]
        if beyond:
            yield f"sandbox  commands that you approve may write {_quoted(beyond)}  ({table.origin})"
        if table.show:
            yield f"sandbox  commands can read {_quoted(table.show)}, which is hidden else  ({table.origin})"


def _is_outside(place: str) -> bool:
    """Return whether a place of `write`, as written, is outside the workspace."""
    return posixpath.normpath(place).startswith(("/", "~"))


def _rules(policy: Policy) -> Iterator[str]:
    for rule in policy.rules:
        if rule.decision is Decision.AUTO:
            may = f" (it may {rule.opens.words()})" if rule.opens.words() else ""
            yield f"auto     {rule.words()}{may}  (rule {rule.label})"


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(shlex.quote(word) for word in words)


def is_wanted(approver: Approver, *, tool: str, summary: str, preview: str, reason: str, by: str) -> bool:
    """Ask like `consent`. Return whether the answer was yes."""
    approval = consent(approver, tool=tool, summary=summary, preview=preview, reason=reason, by=by)
    return approval.answer is Answer.YES


def consent(approver: Approver, *, tool: str, summary: str, preview: str, reason: str, by: str) -> Approval:
    """Ask with an approval prompt, as for a call: the question is shown, and keys typed before it are dropped.

    Return the answer. `tool` is a name for the question, not a tool of the model. `by` names the command that asks. A no
    has words only if the prompt reads them (terminal/question.py).
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
    facet_verdict = FacetVerdict(facet=use, decision=Decision.CONFIRM, source=Source.BUILT_IN, reason=reason, by=by)
    effects = Effects(read=None, write=None, network=False, unasked=False)
    try:
        return approver(action, Verdict(decision=Decision.CONFIRM, facets=(facet_verdict,), effects=effects))
    except KeyboardInterrupt:
        return Approval(answer=Answer.STOP, by="person")
