"""The events that agents were recorded to send: what the table must hold for other tests to rest on it."""

from __future__ import annotations

import re

from recorded_events import RecordedEvent, recorded_events
from rows import all_rows

BEFORE = {"PreToolUse", "BeforeTool", "preToolUse", "tool.execute.before", "tool_call", "beforeTool"}
TOOLS = {
    "claude": "Agent Bash Edit Read WebFetch Write mcp__place__echo",
    "codex": "Bash apply_patch collaborationspawn_agent collaborationwait_agent mcp__place__echo",
    "gemini": "grep_search invoke_agent list_directory mcp_place_echo read_file replace run_shell_command write_file",
    "qwen": "agent edit grep_search mcp__place__echo read_file run_shell_command write_file",
    "copilot": "bash create edit grep place-echo task view",
    "opencode": "bash edit grep place_echo read task write",
    "cline": "editor place__echo read_files run_commands search_codebase spawn_agent",
    "droid": "Create Edit Execute Grep Read place___echo",
    "kimi": "Agent Bash Edit Read Write mcp__place__echo",
    "pi": "bash edit mcp__place__echo read write",
}
"""What was called, by agent."""


@all_rows("agent, tools", list(TOOLS.items()))
def test_the_tools_of_an_agent_were_called(agent: str, tools: str) -> None:
    called = {event.shape[2] for event in recorded_events() if event.agent == agent and event.event in BEFORE}
    assert called == set(tools.split())


@all_rows("event", recorded_events(), ids=lambda event: f"{event.agent} {event.event} {event.shape[2]}")
def test_event_names_its_place_and_session(event: RecordedEvent) -> None:
    fields = event.fields
    where = fields.get("cwd", fields.get("directory"))
    assert where in ("/w", "/usr")  # Codex ran one command elsewhere
    assert fields.get("session_id") or fields.get("sessionId") or fields.get("sessionID")
    assert re.findall(r"/(?:tmp|work|root|var)/(?!w/chats|t)[^\"]*", event.text) == []


def test_subagent_calls_are_marked_by_some_agents() -> None:
    inner = [event for event in recorded_events() if event.event in BEFORE and "echo inner" in event.text]
    marked = {
        event.agent for event in inner if event.fields.keys() & {"agent_id", "agentId"} or event.fields.get("subagent")
    }
    assert {event.agent for event in inner} == set(TOOLS) - {"pi", "droid"}  # whose subagents were not played
    assert marked == {"claude", "codex", "qwen", "copilot", "cline"}
