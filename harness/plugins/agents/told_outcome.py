"""Record the outcome of a call as its agent tells of it, and notice a call that ran and was not allowed.

INVARIANT: this loads no policy and no gate, since an agent waits for it after each call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from harness.digest import digest_of
from harness.files.before_images import BeforeImages
from harness.gate.records import CallRecords
from harness.messages import ResultStatus, ToolResult
from harness.plugins.agents.agent_session import STOPPED, AgentSession
from harness.plugins.agents.event import HookEvent, When
from harness.plugins.agents.foreign_call import MOST_KEPT_BYTES, ForeignCall, ForeignKind
from harness.plugins.agents.guarded_agent import GuardedAgent
from harness.plugins.agents.open_call import OpenCall
from harness.record import replace
from harness.safe_files import read_small
from harness.session.asked_call import HookParts

MOST_LOGGED_RESPONSE = 20_000
"""Maximum number of characters of a reported outcome that are logged."""
MOST_LOGGED_ARGUMENTS = 4_000
"""Maximum number of characters of the arguments of a call that was not allowed."""


def ran_before_all(
    agent: GuardedAgent, event: HookEvent, session: AgentSession, environment: Mapping[str, str]
) -> bool:
    """Return whether an agent tells of a call that it never asked about, before any other call of its session.

    Then the session must begin, so that its log has that call. It goes on after it.
    """
    is_refusal = agent.tells_refusals and event.when is When.FAILED
    if session.is_begun or is_refusal or event.when not in (When.AFTER, When.FAILED):
        return False
    is_inward = agent.call_of(event, environment).kind is ForeignKind.INWARD
    return not is_inward and (event.use_id or agent.substance_of(event)) not in session.answers


def settle(agent: GuardedAgent, event: HookEvent, session: AgentSession, parts: HookParts) -> None:
    """Record the outcome of a call, unless it ran with a ticket. A call that was not allowed stops the session.

    Raises LogError.
    """
    if not session.is_begun:
        return
    substance = agent.substance_of(event)
    key = event.use_id or substance
    answer = session.answers.get(key)
    session.hooks.answers.pop(event.use_id, None)
    if agent.tells_refusals and event.when is When.FAILED and answer is not None and not answer.allowed:
        return
    # A model may give a name again. The earlier call of that name stays open.
    first = answer.number if event.use_id and answer is not None else 0
    calls = [call for call in session.open if call.key == key and call.number >= first]
    foreign_call = agent.call_of(event, parts.environment)
    is_inward = foreign_call.kind is ForeignKind.INWARD
    is_edited = event.edited and any(call.intent is not None for call in calls)
    if is_inward or is_edited or (answer is not None and answer.allowed == substance):
        # Calls without a name are matched by order: one outcome for one call.
        for call in calls if event.use_id else calls[:1]:
            if not call.ticket:
                _record_outcome(agent, event, session, call, parts.images)
        return
    if answer is None:
        calls = _in_its_place(foreign_call, event, session)
    number = calls[0].number if calls else None if answer is None else answer.number or None
    reason = (
        "changed" if calls or (answer is not None and answer.allowed) else "unknown" if answer is None else "refused"
    )
    # Nobody has seen the events of an agent that was not tried.
    stops = not agent.documents and parts.stops_unjudged(session.workspace)
    _record_unjudged(agent, event, session, number, reason, stops=stops)
    if event.use_id:  # a second hook of ours tells of the same call
        session.note_answer(key, number or 0, substance)
    # Without a name, only an unused ticket shows that a call was replaced.
    for call in [call for call in calls if event.use_id or call.ticket]:
        session.replaced(call)
    if stops:
        session.latch = session.latch or STOPPED
    parts.note_head(session.log, False)


def _in_its_place(foreign_call: ForeignCall, event: HookEvent, session: AgentSession) -> list[OpenCall]:
    """Return the open call of the same tool, if there is exactly one. For an agent that gives its calls no names."""
    tools = (foreign_call.tool, *foreign_call.or_tools)
    alike = [call for call in session.open if call.tool in tools]
    return alike if len(alike) == 1 and not event.use_id else []


def _record_unjudged(
    agent: GuardedAgent, event: HookEvent, session: AgentSession, number: int | None, reason: str, *, stops: bool
) -> None:
    redact = CallRecords(session.log).redact
    arguments = json.dumps(dict(event.arguments), ensure_ascii=False)
    session.log.append(
        "ran_unjudged",
        {
            **({} if number is None else {"call": number}),
            "why": reason,
            "tool": event.tool,
            "arguments": redact(arguments)[:MOST_LOGGED_ARGUMENTS],
            **({"arguments_characters": len(arguments)} if len(arguments) > MOST_LOGGED_ARGUMENTS else {}),
            "id": event.use_id,
            "seen_by": agent.name,
            "status": _status(event).value,
            "content": redact(_response(event))[:MOST_LOGGED_RESPONSE],
            "stops": stops,
        },
        sync=True,
    )


def _record_outcome(
    agent: GuardedAgent, event: HookEvent, session: AgentSession, call: OpenCall, images: BeforeImages
) -> None:
    session.open.remove(call)
    if call.intent is not None:  # it was carried out, so it was approved at the agent's prompt
        call = session.record_yes(call)
    records = CallRecords(session.log)
    text = _response(event)
    content = records.redact(text)
    result = ToolResult(
        call_id=call.id,
        status=_status(event),
        content=content[:MOST_LOGGED_RESPONSE],
        output_bytes=len(text),
        truncated=len(content) > MOST_LOGGED_RESPONSE,
    )
    content_now = read_small(call.path, MOST_KEPT_BYTES) if call.path else None
    after = None if content_now is None else digest_of(content_now)
    if content_now is not None and after is not None and after != call.before_sha256:
        if session.begins_at(call.path, after):
            images.keep(content_now)
        result = replace(result, changed_path=call.path, before_sha256=call.before_sha256, after_sha256=after)
    records.record_end(call.proposal, result, ran=True, seen_by=agent.name)


def _status(event: HookEvent) -> ResultStatus:
    return ResultStatus.OK if event.when is When.AFTER else ResultStatus.FAILED


def _response(event: HookEvent) -> str:
    return event.response if isinstance(event.response, str) else json.dumps(event.response, ensure_ascii=False)
