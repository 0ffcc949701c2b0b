"""Answer one event of an agent in the agent's own form.

INVARIANT: no answer is sent before the decision is on disk. Every error becomes a refusal: each caller of `answer`
converts all exceptions. This module also records outcomes that an agent reports; that loads no policy and no gate.
"""

from __future__ import annotations

import json

from harness.digest import digest_of
from harness.files.before_images import BeforeImages
from harness.gate.records import CallRecords
from harness.messages import ResultStatus, StopReason, ToolResult
from harness.plugins.agents.agent_session import AgentSession, key_of, session_folder
from harness.plugins.agents.event import HookEvent, When, parse
from harness.plugins.agents.foreign_call import MOST_KEPT_BYTES
from harness.plugins.agents.guarded_agent import GuardedAgent, HookAnswer, agent_named
from harness.record import replace
from harness.safe_files import read_small
from harness.session.asked_call import HookParts

MOST_LOGGED_RESPONSE = 20_000
"""Maximum number of characters of a reported outcome that are logged."""


def answer(agent: GuardedAgent, data: bytes, parts: HookParts) -> HookAnswer:
    """Return the answer to the event in `data`.

    Raises EventError, HarnessError and OSError. Then the caller must refuse the call.
    """
    fields = parse(data)
    if other := agent.called_by(fields):
        agent = agent_named(other)
    event = agent.event_of(fields)
    folder = session_folder(parts.folder, agent.name, event.session)
    with AgentSession(
        folder, parts.redactor, wait_seconds=parts.wait_seconds, clock_stopped=parts.clock_stopped
    ) as session:
        match event.when:
            case When.BEFORE:
                from harness.plugins.agents.judging import JudgedCall

                return JudgedCall(agent, event, session, parts).reply(digest_of(data))
            case When.AFTER | When.FAILED:
                _settle(agent, event, session, parts.images)
            case When.ENDED:
                if session.is_begun:
                    session.end((StopReason.BLOCKED if session.latch else StopReason.COMPLETED).value, session.latch)
                    parts.note_head(session.log, True)
    return HookAnswer()


def _settle(agent: GuardedAgent, event: HookEvent, session: AgentSession, images: BeforeImages) -> None:
    """Record the outcome of a call as the agent reports it. Ignore unknown calls, and calls that run with a ticket."""
    while session.is_begun and (call := session.take(key_of(event))) is not None:
        if call.intent is not None:  # it was carried out, so the user approved it at the agent's prompt
            call = session.record_yes(call)
        records = CallRecords(session.log)
        text = event.response if isinstance(event.response, str) else json.dumps(event.response, ensure_ascii=False)
        content = records.redact(text)
        result = ToolResult(
            call_id=call.id,
            status=ResultStatus.OK if event.when is When.AFTER else ResultStatus.FAILED,
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
        if event.use_id == "":  # calls without a name are matched by order: one outcome for one call
            return
