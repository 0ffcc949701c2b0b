"""What each agent says to its hook and hears from it: its events in our words, our answers in its form."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from rows import all_rows
from text_rows import TextRow, text_rows

from harness.plugins.agents.event import EventError, HookEvent, When, parse
from harness.plugins.agents.guarded_agent import AGENTS, GuardedAgent, HookAnswer, agent_named

HERE = Path(__file__).parent
REASON = "Secrets stay \u201cout\u201d (rule secrets)."
ARGUMENTS = {"command": "harness exec --ticket T -- 'ls'", "description": "d"}


def told(agent: GuardedAgent, event: HookEvent) -> str:
    """Return an event and its call as the table has them."""
    words = [event.when.value, event.session, event.cwd]
    if event.tool:
        call = agent.call_of(event, {})
        words += [call.kind.value, call.tool, json.dumps(dict(call.arguments))]
    response = "" if event.response is None else json.dumps(event.response)
    known = {
        "use": event.use_id,
        "mode": event.mode,
        "subagent": event.subagent,
        "response": response,
        "prompt": event.prompt,
        "files": ", ".join(event.sent_files),
    }
    return "; ".join([" ".join(words), *(f"{name} {value}" for name, value in known.items() if value)])


@all_rows("row", text_rows(HERE / "recorded_events.txt"), ids=lambda row: f"{row.place} {row.text[:80]}")
def test_each_recorded_event_is_read_in_our_words(row: TextRow) -> None:
    agent = agent_named(row.text.partition(" ")[0])
    event = agent.event_of(parse(row.text.partition(" ")[2].encode()))
    assert [told(agent, event)] == row.answers


def answer(agent: GuardedAgent, word: str) -> HookAnswer | None:
    match word:
        case "allow":
            return agent.allow(None)
        case "rewritten":
            return agent.allow(ARGUMENTS)
        case "ask":
            return None if agent.ask is None else agent.ask(REASON, None)
        case "deny":
            return agent.deny(REASON)
        case _:
            return agent.block(REASON)


@all_rows("row", text_rows(HERE / "answers.txt"), ids=lambda row: row.text)
def test_each_answer_has_the_form_that_its_agent_obeys(row: TextRow) -> None:
    name, word = row.text.split(" ")
    if row.answers == ["it rewrites nothing"]:
        with pytest.raises(ValueError, match="no other arguments"):
            answer(agent_named(name), word)
        return
    reply = answer(agent_named(name), word)
    said = ["it asks nobody"] if reply is None else [f"exit {reply.code}"]
    if reply is not None:
        said += [
            f"{what}: {text}" for what, text in (("out", reply.stdout), ("err", reply.stderr.rstrip("\n"))) if text
        ]
        assert reply.stderr.endswith("\n") == bool(reply.stderr)
    assert said == row.answers


def test_every_agent_has_a_row_for_each_answer() -> None:
    rows = [row.text for row in text_rows(HERE / "answers.txt")]
    assert rows == [f"{name} {word}" for name in AGENTS for word in ("allow", "rewritten", "ask", "deny", "block")]


@all_rows("name", list(AGENTS))
def test_a_refusal_without_a_reason_is_a_refusal_still(name: str) -> None:
    reply = agent_named(name).deny("  ")
    assert "refused by harness" in (reply.stderr or reply.stdout)
    assert reply.code == 2 or re.search(r'"(permissionDecision|permission|decision)": "deny"', reply.stdout)


@all_rows(
    "name,event",
    [
        ("gemini", "{}"),
        ("gemini", '{"session_id":"S","hook_event_name":"BeforeTool","cwd":"/w","tool_name":"glob"}'),
        ("gemini", '{"session_id":"S","hook_event_name":"BeforeTool","tool_name":"glob","tool_input":{}}'),
        ("gemini", '{"session_id":"","hook_event_name":"BeforeTool","cwd":"/w","tool_name":"glob","tool_input":{}}'),
        (
            "qwen",
            '{"session_id":"S","hook_event_name":"PreToolUse","cwd":"/w","tool_name":"tool_call","tool_input":{}}',
        ),
        (
            "qwen",
            '{"session_id":"S","hook_event_name":"P","cwd":"/","tool_name":"tool_call","tool_input":{"name":"x"}}',
        ),
        ("copilot", '{"sessionId":"S","cwd":"/w"}'),
        ("copilot", '{"sessionId":"S","cwd":"/w","toolName":"bash"}'),
        ("copilot", '{"sessionId":"S","cwd":"/w","toolName":"apply_patch","toolArgs":"*** Begin Patch"}'),
        ("copilot", '{"sessionId":"S","cwd":"/w","toolName":"bash","toolArgs":"{\\"a\\":1,\\"a\\":2}"}'),
        ("copilot", '{"sessionId":"S","cwd":"/w","toolName":"bash","toolArgs":[]}'),
        ("opencode", '{"sessionID":"S","directory":"/w","tool":"bash","callID":"c","args":{}}'),
        ("opencode", '{"when":"later","sessionID":"S","directory":"/w","tool":"bash","callID":"c","args":{}}'),
        ("opencode", '{"when":"before","sessionID":"S","directory":"/w","tool":"bash","args":{}}'),
        ("cursor", '{"hook_event_name":"preToolUse","conversation_id":"S","tool_name":"Shell","tool_input":{}}'),
        ("cursor", '{"hook_event_name":"preToolUse","cwd":"/w","tool_name":"Shell","tool_input":{}}'),
        ("cursor", '{"hook_event_name":"preToolUse","conversation_id":"S","cwd":"/w","tool_name":"Shell"}'),
        ("pi", '{"type":"tool_call","sessionId":"S","cwd":"/w","toolName":"bash","toolCallId":"c"}'),
        ("pi", '{"type":"tool_call","sessionId":"S","cwd":"/w","toolName":"bash","input":{}}'),
        ("cline", '{"type":"setup","sessionId":"S","cwd":"/w","toolName":"x","toolCallId":"c","input":{}}'),
        ("cline", '{"type":"beforeTool","sessionId":"","cwd":"/w","toolName":"x","toolCallId":"c","input":{}}'),
        ("cline", '{"type":"afterTool","sessionId":"S","cwd":"/w","toolName":"x","toolCallId":"c","input":{}}'),
        ("windsurf", '{"agent_action_name":"pre_run_command","tool_info":{}}'),
        ("crush", '{"event":"PostToolUse","session_id":"S","cwd":"/w","tool_name":"bash","tool_input":{}}'),
        ("crush", '{"event":"PreToolUse","session_id":"","cwd":"/w","tool_name":"bash","tool_input":{}}'),
        ("goose", '{"event":"PreToolUse","session_id":"S","tool_name":"shell","tool_input":{}}'),
        ("kiro", '{"hook_event_name":"preToolUse","cwd":"/w","tool_name":"shell","tool_input":{}}'),
        (
            "windsurf",
            '{"agent_action_name":"pre_mcp_tool_use","trajectory_id":"S","tool_info":{"mcp_server_name":"s"}}',
        ),
        ("pi", '{"type":"turn_end","sessionId":"S","cwd":"/w","toolName":"bash","toolCallId":"c","input":{}}'),
    ],
)
def test_incomplete_event_is_rejected(name: str, event: str) -> None:
    with pytest.raises(EventError):
        agent_named(name).event_of(parse(event.encode()))


def test_an_event_of_an_unknown_name_is_judged_as_a_call() -> None:
    fields = {"session_id": "S", "cwd": "/", "tool_name": "x", "tool_input": {}, "hook_event_name": "New"}
    for name in ("claude", "codex", "gemini", "qwen", "kimi", "cursor"):
        assert agent_named(name).event_of(parse(json.dumps(fields).encode())).when is When.BEFORE
