"""The approver in the user's own configuration, for calls of other agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from harness.errors import UsageError
from harness.files.workspace import Workspace
from harness.gate.approval import Approval, nobody
from harness.policy.policy import Policy
from harness.record import replace
from harness.session.approver.configured_approver import (
    ConfiguredApprover,
    FoundApprover,
    found_approver,
    writable_roots,
)
from harness.session.approver.standing_question import StandingQuestion, wait_for
from harness.session.asked_call import AskedCall
from harness.session.config.config_file import load_config
from harness.session.extensions.extensions import extensions_in
from harness.session.state import State
from harness.session.waiting import UNHEARD_SECONDS, WAITS_SECONDS, WaitingList, without_programs


def guarding_approver(policy: Policy, state: State, workspace: str, environment: Mapping[str, str]) -> Policy:
    """Return `policy`, under which no call may write the approver's program or socket.

    An approver that cannot be used is left out: a question says why.
    """
    try:
        approver = _approver(policy, state, workspace, environment)
    except UsageError:
        return policy
    return policy if approver is None else policy.guarding(*approver.paths)


def ask_here(
    call: AskedCall,
    policy: Policy,
    state: State,
    environment: Mapping[str, str],
    *,
    redact: Callable[[str], str],
    clock_stopped: Callable[[], AbstractContextManager[object]],
    sleep: Callable[[float], None],
) -> Approval:
    """Ask at `harness approve` if that listens, or else the configured approver, or else wait for `harness approve`.

    Return the answer, or NOBODY if none comes as long as the agent waits. `redact` masks secrets. `clock_stopped` pauses the
    time limit on our own work during the wait; `sleep` waits between two looks for an answer. Raises OSError.
    """
    seconds = (0.0 if call.has_waited else UNHEARD_SECONDS) if call.is_attended else None
    waiting_list = WaitingList(state.waiting, unheard_seconds=seconds, clock_stopped=clock_stopped, sleep=sleep)
    if waiting_list.is_heard():
        return waiting_list.ask(call)
    try:
        approver = _approver(policy, state, call.workspace, environment)
    except UsageError as error:
        return nobody(f"nobody can be asked, since this cannot be used: {str(error).rstrip('?.')}")
    if approver is None:
        return waiting_list.ask(call)
    question = _question(call, approver, redact)
    if isinstance(question, str):
        return nobody(question)
    with clock_stopped():
        try:
            while (approval := question.look()) is None:
                wait_for(question)
            return approval
        finally:
            question.withdraw()


def _approver(policy: Policy, state: State, workspace: str, environment: Mapping[str, str]) -> FoundApprover | None:
    """Return the approver in the user's own file, or `None`. Raises UsageError for an invalid file or approver."""
    declaration = extensions_in(load_config(state.config_file, workspace).extensions).approver
    if declaration is None:
        return None
    roots = writable_roots(Workspace(workspace, environment.get("HOME")), policy, environment)
    return found_approver(declaration, environment, roots)


def _question(call: AskedCall, approver: FoundApprover, redact: Callable[[str], str]) -> StandingQuestion | str:
    """Ask an approver about a call. Return the open question, or the reason why it cannot be asked."""
    seconds = min(approver.declaration.seconds, WAITS_SECONDS)
    ask = ConfiguredApprover(
        replace(approver, declaration=replace(approver.declaration, seconds=seconds)),
        agent=call.agent,
        session=lambda: call.session,
        redact=redact,
        confinement=lambda _tool, _effects: call.confinement,
        offer=lambda _action, _verdict: without_programs(call.offer()),
    )
    return ask(call.action, call.verdict)
