"""Answer one event of an agent in the agent's own form.

INVARIANT: no answer is sent before the decision is on disk. Every error becomes a refusal: each caller of `answer`
converts all exceptions.
"""

from __future__ import annotations

from harness.digest import digest_of
from harness.messages import StopReason
from harness.plugins.agents.agent_session import AgentSession, session_folder
from harness.plugins.agents.event import When, parse
from harness.plugins.agents.guarded_agent import GuardedAgent, HookAnswer, agent_named
from harness.plugins.agents.told_outcome import ran_before_all, settle
from harness.record import replace
from harness.session.asked_call import HookParts


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
        if event.when is When.BEFORE or ran_before_all(agent, event, session, parts.environment):
            from harness.plugins.agents.judging import NO_CALL, JudgedCall

            if event.when is When.BEFORE:
                call = JudgedCall(agent, event, session, parts)
                first_answer = call.hook.answer()
                return call.reply(digest_of(data)) if first_answer is None else first_answer
            JudgedCall(agent, event, session, parts, NO_CALL).begin()
            parts = replace(parts, stops_unjudged=lambda _: False)  # it may be the call that installed the hook
        match event.when:
            case When.PROMPT:
                from harness.plugins.agents.submitted_prompt import answer_to_prompt

                return answer_to_prompt(agent, event, session, parts, digest_of(data))
            case When.AFTER | When.FAILED:
                settle(agent, event, session, parts)
            case When.SETTINGS:
                from harness.plugins.agents.off_switch import kept_on

                return kept_on(agent, event, session, parts)
            case When.ENDED:
                if session.is_begun:
                    session.end((StopReason.BLOCKED if session.latch else StopReason.COMPLETED).value, session.latch)
                    parts.note_head(session.log, True)
    return HookAnswer()
