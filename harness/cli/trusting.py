"""Trusting: a policy that came with the workspace is asked about once, before it loosens anything; runs no call."""

from __future__ import annotations

import os

from harness.cli.state import PROJECT_POLICY, State
from harness.cli.words import counted
from harness.rules import Layer
from harness.visible import visible_line

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from harness.approval import Approver
    from harness.policy import Policy

TRUST_TOOL = "trust"
"""What asks, in the question whether a project's policy is trusted; no tool of the model."""
CHANGED = "was changed since you saw it: its new content is not trusted"


def trusted_or_not(state: State, workspace: str, ask: Approver) -> str:
    """Ask whether to trust the policy of `workspace`, if it would loosen anything and the user never said; keep the answer.

    A yes trusts exactly the content that was shown: it is kept as its digest, and whoever assembles the policy afterwards
    looks the digest of what they read up (harness/cli/policies.py), so that a file that changed meanwhile is not trusted.
    Anything else is kept as a no, of this content: only what tightens counts, and it is not asked again. Returns what the
    person should be told, or nothing.

    `workspace` is the folder, links followed. Called before the policy is assembled, and only where there is a terminal:
    `run` asks nothing. Raises PolicyError for a policy that is not understood, and where the answer cannot be kept.
    """
    path = os.path.join(workspace, PROJECT_POLICY)
    if not os.path.lexists(path):
        return ""
    from harness.policy_file import load_policy

    policy = load_policy(path, layer=Layer.PROJECT)
    if state.is_trusted(policy.sha256) or state.is_declined(policy.sha256):
        return ""
    from harness.cli.loosening import loosening

    if not loosening(policy):
        return ""
    if ask_trust(state, path, policy, ask):
        if not is_as_shown(path, policy):
            return f"{visible_line(path, 1_000)} {CHANGED}"
        return f"trusted: {visible_line(path, 1_000)}; any change of its content ends the trust"
    state.decline_policy(policy.sha256, os.path.realpath(path))
    return (
        "this folder's own policy is not trusted: only what tightens counts. It is not asked again; `harness policy trust` "
        "trusts it"
    )


def ask_trust(state: State, path: str, policy: Policy, ask: Approver) -> bool:
    """Ask, as about a call, whether `policy`, read from `path`, is trusted; keep a yes, and say whether it was one.

    Nothing but a yes is taken for one. Raises PolicyError where it cannot be kept.
    """
    from harness.cli.consent import is_wanted
    from harness.cli.loosening import loosening

    shown, lines = visible_line(path, 2_000), loosening(policy)
    things = counted(len(lines), "thing") if lines else "nothing"
    head = f"{shown}  sha256 {policy.sha256}", f"would loosen {things} here{':' if lines else ''}"
    wanted = is_wanted(
        ask,
        tool=TRUST_TOOL,
        summary=f"trust this folder's own policy, {shown}",
        preview="\n".join((*head, *lines)),
        why="the policy came with the folder; what it loosens counts only if you trust exactly this content",
        by="once for this content; `harness policy trust` and a changed file come back to it",
    )
    if wanted:
        state.trust_policy(policy.sha256, os.path.realpath(path))
    return wanted


def is_as_shown(path: str, policy: Policy) -> bool:
    """Say whether the file at `path` still holds what the person was shown."""
    from harness.errors import PolicyError
    from harness.policy_file import load_policy

    try:
        return load_policy(path, layer=Layer.PROJECT).sha256 == policy.sha256
    except PolicyError:
        return False
