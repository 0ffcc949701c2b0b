"""The tool for Claude Code's `--permission-prompt-tool`, offered by `harness mcp serve`.

Instead of asking its user, Claude Code calls this tool and obeys the returned JSON. The call is judged like a call of
the hook: by the same policy, with its own log, and an allowed command is replaced by its ticket.

A model that calls the tool itself gains nothing, since an answer to the model lets no call run. A ticket in the answer
runs only the judged command, behind its walls, once.
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
from harness.safe_files import make_private
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
"""Definition of the tool for MCP clients."""
_ARGUMENTS = frozenset(("tool_name", "input", "tool_use_id"))


class ClaudePrompt:
    """The prompt tool of one server. It has one session in the log."""

    def __init__(self, folder: str, session: str, parts_for: Callable[[Callable[[float], None]], HookParts]) -> None:
        """`folder` is the folder in which Claude Code was started, `session` a name for the session.

        `parts_for` creates the parts of a hook from a function that waits for a user's answer.
        """
        self.spec = TOOL
        self._folder = folder
        self._session = session
        self._parts_for = parts_for
        self._is_used = False

    def answer(self, arguments: str, latch: str, pause: Callable[[float], None]) -> tuple[str, str]:
        """Return the JSON for Claude Code, and the reason to refuse all further calls, or an empty string.

        If `latch` is not empty, it is the reason to refuse this call too. Every error becomes a refusal; only the errors
        of `pause` are raised.
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
        """Return the description of Claude Code for this tool, which only allows or refuses.

        The tool does not know the folder of Claude Code's shell. INVARIANT: no answer changes that folder
        (`keeps_folder`), and a ticket is valid only in the ticket's folder.
        """
        events: list[HookEvent] = []

        def read(fields: Mapping[str, JsonValue]) -> HookEvent:
            events.append(event_of(fields))
            return events[-1]

        def allow(arguments: Mapping[str, JsonValue] | None) -> HookAnswer:
            # Without `updatedInput`, Claude Code treats the answer as invalid.
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
    """Return the prompt tool of a server that works in `folder`, with a new session. Raises OSError."""
    make_private(state.agents)
    environment = {**environment, "CLAUDE_PROJECT_DIR": folder}

    def parts_for(pause: Callable[[float], None]) -> HookParts:
        return hook_parts(environment, policies, pause=pause)

    return ClaudePrompt(folder, f"permission-prompt-{os.urandom(8).hex()}", parts_for)


def _refusal(reason: str, *, interrupt: bool = False) -> HookAnswer:
    return as_json({"behavior": "deny", "message": reason, **({"interrupt": True} if interrupt else {})})


def _no_pause(seconds: float) -> None:
    pass
