"""Claude Code's questions, asked of us: the one tool that `--permission-prompt-tool` names, behind `harness mcp serve`.

Where Claude Code would ask its person it calls this tool, and obeys the JSON that it returns. The call is judged as before its
hook: by the same policy, with the same log of its own, and a command that may run is replaced by its ticket.

A model that calls the tool itself gains nothing: an answer lets nothing run. A ticket in it runs the command that was
judged, in its walls, once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence

from harness.actions import JsonValue
from harness.errors import HarnessError
from harness.model import ToolSpec
from harness.plugins.agents.answering import answer
from harness.plugins.agents.claude import AGENT
from harness.plugins.agents.commands.each_call import hook_parts
from harness.plugins.agents.event import EventError, HookEvent, When, needed, table, text
from harness.plugins.agents.guarded_agent import GuardedAgent, HookAnswer, as_json
from harness.record import replace
from harness.session.asked_call import HookParts
from harness.session.state import State

TOOL = ToolSpec(
    name="approve",
    description=(
        "For Claude Code itself (--permission-prompt-tool): says whether one of its calls may run. It runs nothing, and "
        "calling it lets nothing run."
    ),
    parameters={
        "type": "object",
        "properties": {
            "tool_name": {"type": "string", "description": "The tool that Claude Code wants to call."},
            "input": {"type": "object", "description": "Its arguments."},
            "tool_use_id": {"type": "string", "description": "Claude Code's name of the call."},
        },
        "required": ["tool_name", "input"],
        "additionalProperties": False,
    },
)
"""The tool's definition for a client."""
_ARGUMENTS = frozenset(("tool_name", "input", "tool_use_id"))


class ClaudePrompt:
    """The prompt tool of one server: one session, as far as the log is concerned."""

    def __init__(self, folder: str, session: str, parts_for: Callable[[Callable[[float], None]], HookParts]) -> None:
        """Create the prompt from the folder that Claude Code was started in, a name for the session, and the maker of
        a hook's parts.

        `parts_for` receives the function that waits for a person's answer.
        """
        self.spec = TOOL
        self._folder = folder
        self._session = session
        self._parts_for = parts_for
        self._is_used = False

    def answer(self, arguments: str, latch: str, pause: Callable[[float], None]) -> tuple[str, str]:
        """Return the JSON that Claude Code obeys, and the reason to run nothing more, or an empty string.

        With `latch` it is a refusal, for that reason. Every error becomes a refusal; raises only the errors of
        `pause`.
        """
        if latch:
            return _refusal(latch).stdout, ""
        blocked: list[str] = []

        def block(reason: str) -> HookAnswer:
            blocked.append(reason)
            return _refusal(reason, interrupt=True)

        try:
            self._is_used = True
            agent = replace(self._agent(self._event), block=block)
            reply = answer(agent, arguments.encode(), self._parts_for(pause))
        except (HarnessError, EventError, OSError, ValueError) as error:
            return _refusal(f"harness refuses this call, since it cannot be judged: {error}").stdout, ""
        latched = (
            f"an earlier call was a hard block, and nothing runs after it. It was told: {blocked[0]}" if blocked else ""
        )
        return reply.stdout, latched

    def end(self) -> None:
        """End the session in its log. Raises HarnessError and OSError."""
        if self._is_used:
            end_event = HookEvent(when=When.ENDED, session=self._session)
            answer(self._agent(lambda fields: end_event), b"{}", self._parts_for(_no_pause))  # noqa: ARG005

    def _agent(self, event_of: Callable[[Mapping[str, JsonValue]], HookEvent]) -> GuardedAgent:
        """Return Claude Code as it is for this tool, which says yes or no, and is not told in which folder its shell is.

        INVARIANT: no answer brings that shell to another folder (`keeps_folder`), and a ticket is good in its own alone.
        """
        events: list[HookEvent] = []

        def read(fields: Mapping[str, JsonValue]) -> HookEvent:
            events.append(event_of(fields))
            return events[-1]

        def allow(arguments: Mapping[str, JsonValue] | None) -> HookAnswer:
            # Without `updatedInput` Claude Code takes the answer for none.
            return as_json(
                {"behavior": "allow", "updatedInput": dict(events[-1].arguments if arguments is None else arguments)}
            )

        return replace(
            AGENT,
            event_of=read,
            allow=allow,
            deny=_refusal,
            block=_refusal,
            ask=None,
            asks=lambda event, environment: False,  # noqa: ARG005
            keeps_folder=False,
        )

    def _event(self, fields: Mapping[str, JsonValue]) -> HookEvent:
        """Return the event for the tool's arguments. Raises EventError."""
        extra = next((name for name in fields if name not in _ARGUMENTS), None)
        if extra is not None:
            raise EventError(f"unknown argument: {json.dumps(extra[:50])}")
        return HookEvent(
            when=When.BEFORE,
            session=self._session,
            cwd=self._folder,
            tool=needed(fields, "tool_name"),
            arguments=table(fields, "input"),
            use_id=text(fields, "tool_use_id"),
            mode="permission prompt",
        )


def opened_prompt(
    folder: str, state: State, environment: Mapping[str, str], policies: Sequence[str] | None
) -> ClaudePrompt:
    """Return the prompt tool of a server that works in `folder`, with a session of its own. Raises OSError."""
    os.makedirs(state.agents, mode=0o700, exist_ok=True)
    # The workspace is the server's, whatever repository it lies in.
    environment = {**environment, "CLAUDE_PROJECT_DIR": folder}

    def parts_for(pause: Callable[[float], None]) -> HookParts:
        return hook_parts(environment, policies, pause=pause)

    return ClaudePrompt(folder, f"permission-prompt-{os.urandom(8).hex()}", parts_for)


def _refusal(reason: str, *, interrupt: bool = False) -> HookAnswer:
    return as_json({"behavior": "deny", "message": reason, **({"interrupt": True} if interrupt else {})})


def _no_pause(seconds: float) -> None:
    pass
