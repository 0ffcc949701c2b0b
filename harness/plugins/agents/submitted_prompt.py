"""Record a prompt that a person sends to an agent, and judge the files that the agent sends with it, as reads.

An agent sends a file that the prompt names with `@` without a call of a tool.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from harness.gate.records import CallRecords
from harness.gate.ruling import NO_DETOUR
from harness.messages import ResultStatus, ToolResult
from harness.plugins.agents.agent_session import AgentSession
from harness.plugins.agents.event import HookEvent
from harness.plugins.agents.foreign_call import NAMES, ForeignCall, ForeignKind
from harness.plugins.agents.guarded_agent import GuardedAgent, HookAnswer
from harness.plugins.agents.handed_over import HandedOver
from harness.plugins.agents.judging import NO_CALL, JudgedCall
from harness.record import replace
from harness.regex import regex
from harness.session.asked_call import HookParts

MOST_FILES = 30
"""Maximum number of files that one prompt may name."""
_NAMED = regex(r"@(?:\"([^\"\n]+)\"|((?:\\.|[^\s\\])+))")
_AROUND = ".,;:!?)]}>'\"`"
"""Characters of a sentence that may follow a name."""


class SentFile(JudgedCall):
    """A file or folder that an agent sends with a prompt."""

    def __init__(
        self, agent: GuardedAgent, event: HookEvent, session: AgentSession, parts: HookParts, path: str
    ) -> None:
        """`path` is relative to the agent's folder, or absolute."""
        kind = agent.sent_folders if os.path.isdir(os.path.join(event.cwd, path)) else ForeignKind.READ

        def stop(reason: str) -> HookAnswer:
            return agent.stop_prompt(reason.replace(f" {NO_DETOUR}", ""))  # these words are for a model

        super().__init__(
            replace(agent, deny=stop, block=stop, ask=None),
            replace(event, tool=f"@{path}"),
            session,
            parts,
            ForeignCall(kind=kind, tool=NAMES[kind], arguments={"path": path}),
        )

    def _handed_over(self, calls: Sequence[HandedOver]) -> HookAnswer:
        """Record that the agent sends the file, since it tells of no outcome."""
        for call in calls:
            sent = ToolResult(call_id="", status=ResultStatus.OK, content="The agent sends it with the prompt.")
            CallRecords(self._session.log).record_end(call.proposal, sent, ran=True, seen_by=self._agent.name)
        return HookAnswer()


def answer_to_prompt(
    agent: GuardedAgent, event: HookEvent, session: AgentSession, parts: HookParts, event_sha256: str
) -> HookAnswer:
    """Return an empty answer, or one that stops the prompt. Raises HarnessError and OSError."""
    if not event.prompt:
        return HookAnswer()
    call = JudgedCall(agent, event, session, parts, NO_CALL)
    first_answer = call.hook.answer_to_prompt()
    if first_answer is not None:
        return first_answer
    call.begin()
    call.hook.note_prompt()
    session.log.append("user_message", {"text": event.prompt}, sync=True)
    named_files = _named_files(event) if agent.sends_files else ()
    files = [*dict.fromkeys((*named_files, *event.sent_files))]
    if len(files) > MOST_FILES:
        return agent.stop_prompt(f"The prompt names {len(files)} files with @; {MOST_FILES} is the most.")
    for path in files:
        answer = SentFile(agent, event, session, parts, path).reply(event_sha256)
        if answer != HookAnswer():
            return answer
    return HookAnswer()


def _named_files(event: HookEvent) -> Iterator[str]:
    """Yield the files and folders that the prompt names with `@`. A word that names no file is passed over."""
    for match in _NAMED.finditer(event.prompt):
        word = match[1] or match[2].replace("\\ ", " ")
        for name in dict.fromkeys(
            (word, word.partition("#")[0], word.rstrip(_AROUND), word.partition("#")[0].rstrip(_AROUND))
        ):
            path = os.path.expanduser(name)
            if path and os.path.lexists(os.path.join(event.cwd, path)):
                yield path
