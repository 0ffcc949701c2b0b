"""The same deeds in the words of each agent: what a scripted model has it do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from agent_rig import INNER_PROMPT

from harness.messages import ToolCall
from harness.models.scripted import call
from harness.plugins.agents.commands.agent_starts import AGENT_STARTS

Deeds = Mapping[str, tuple[ToolCall, ...]]
"""Calls by what they do: each is a step."""
SHELL: Mapping[str, Callable[[str], ToolCall]] = {name: start.command for name, start in AGENT_STARTS.items()}
PATCH = """\
*** Begin Patch
*** Update File: f.txt
@@
-beta
+BETA
*** Add File: added.txt
+x
*** End Patch
"""
HERE_DOCUMENT = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: f.txt\n@@\n-gamma\n+GAMMA\n*** End Patch\nEOF"


def _claude(w: Path) -> Deeds:
    return {
        "read": (call("Read", file_path=f"{w}/f.txt"),),
        "edit": (call("Edit", file_path=f"{w}/f.txt", old_string="alpha", new_string="ALPHA"),),
        "write": (call("Write", file_path=f"{w}/new.txt", content="x\n"),),
        "subagent": (
            call(
                "Agent", description="d", prompt=INNER_PROMPT, subagent_type="general-purpose", run_in_background=False
            ),
        ),
        "mcp": (call("mcp__place__echo", text="hi"),),
        "fetch": (call("WebFetch", url="http://127.0.0.1:9/", prompt="p"),),
    }


def _codex(_: Path) -> Deeds:
    return {
        "patch": (call("apply_patch", input=PATCH),),
        "here-document": (SHELL["codex"](HERE_DOCUMENT),),
        "elsewhere": (call("exec_command", cmd="pwd", workdir="/usr"),),
    }


def _in_code(program: str) -> ToolCall:
    return call("exec", input=f"text(await tools.{program})")


def code_deeds() -> Deeds:
    """Return what Codex is played with a model for which its tools are functions of a program."""
    return {
        "shell": (_in_code("exec_command({cmd: 'echo hi > b.txt; pwd'})"),),
        "patch": (_in_code(f"apply_patch({json.dumps(PATCH)})"),),
        "two": (_in_code("exec_command({cmd: 'echo one'})"), _in_code("exec_command({cmd: 'echo two'})")),
        "mcp": (_in_code("mcp__place__echo({text: 'hi'})"),),
        "subagent": (call("spawn_agent", message=INNER_PROMPT, task_name="t", fork_turns="none"),),
        "wait": (call("wait_agent", timeout_ms=10_000),),
    }


CODE_MODE = ("-c", "model=gpt-6.1-sol")
INNER_CODE = ((_in_code("exec_command({cmd: 'echo inner'})"),),)


def _gemini(_: Path) -> Deeds:
    return {
        "read": (call("read_file", file_path="f.txt"),),
        "edit": (call("replace", file_path="f.txt", instruction="i", old_string="alpha", new_string="ALPHA"),),
        "write": (call("write_file", file_path="new.txt", content="x\n"),),
        "list": (call("list_directory", dir_path="."),),
        "search": (call("grep_search", pattern="beta"),),
        "elsewhere": (call("run_shell_command", command="pwd", description="d", dir_path="sub"),),
        "subagent": (call("invoke_agent", agent_name="generalist", prompt=INNER_PROMPT),),
        "mcp": (call("mcp_place_echo", text="hi"),),
    }


def _qwen(w: Path) -> Deeds:
    return {
        "read": (call("read_file", file_path=f"{w}/f.txt"),),
        "edit": (call("edit", file_path=f"{w}/f.txt", old_string="alpha", new_string="ALPHA"),),
        "write": (call("write_file", file_path=f"{w}/new.txt", content="x\n"),),
        "search": (call("grep_search", pattern="beta"),),
        "subagent": (call("agent", description="d", prompt=INNER_PROMPT, subagent_type="general-purpose"),),
        "mcp": (call("mcp__place__echo", text="hi"),),
        "deferred mcp": (call("tool_call", name="mcp__place__echo", arguments={"text": "hi"}),),
    }


def _copilot(w: Path) -> Deeds:
    return {
        "read": (call("view", path=f"{w}/f.txt"),),
        "edit": (call("edit", path=f"{w}/f.txt", old_str="alpha", new_str="ALPHA"),),
        "write": (call("create", path=f"{w}/new.txt", file_text="x\n"),),
        "search": (call("grep", pattern="beta"),),
        "subagent": (
            call("task", description="d", prompt=INNER_PROMPT, agent_type="general-purpose", name="n", mode="sync"),
        ),
        "mcp": (call("place-echo", text="hi"),),
    }


def _opencode(w: Path) -> Deeds:
    return {
        "read": (call("read", filePath=f"{w}/f.txt"),),
        "edit": (call("edit", filePath=f"{w}/f.txt", oldString="alpha", newString="ALPHA"),),
        "write": (call("write", filePath=f"{w}/new.txt", content="x\n"),),
        "search": (call("grep", pattern="beta"),),
        "subagent": (call("task", description="d", prompt=INNER_PROMPT, subagent_type="general"),),
        "mcp": (call("place_echo", text="hi"),),
    }


def _pi(_: Path) -> Deeds:
    return {
        "read": (call("read", path="f.txt"),),
        "edit": (call("edit", path="f.txt", edits=[{"oldText": "alpha", "newText": "ALPHA"}]),),
        "write": (call("write", path="new.txt", content="x\n"),),
        "mcp": (call("mcp__place__echo", text="hi"),),
    }


def _kimi(_: Path) -> Deeds:
    return {
        "read": (call("Read", path="f.txt"),),
        "edit": (call("Edit", path="f.txt", old_string="alpha", new_string="ALPHA"),),
        "write": (call("Write", path="new.txt", content="x\n"),),
        "mcp": (call("mcp__place__echo", text="hi"),),
        "subagent": (call("Agent", description="d", prompt=INNER_PROMPT),),
    }


def _droid(w: Path) -> Deeds:
    return {
        "read": (call("Read", file_path=f"{w}/f.txt"),),
        "edit": (call("Edit", file_path=f"{w}/f.txt", old_str="alpha", new_str="ALPHA"),),
        "write": (call("Create", file_path=f"{w}/new.txt", content="x\n"),),
        "search": (call("Grep", pattern="beta"),),
        "mcp": (call("place___echo", text="hi"),),
    }


def _cline(w: Path) -> Deeds:
    return {
        "read": (call("read_files", files=[{"path": f"{w}/f.txt"}, {"path": f"{w}/b.txt", "start_line": 1}]),),
        "edit": (call("editor", path=f"{w}/f.txt", old_text="alpha", new_text="ALPHA"),),
        "write": (call("editor", path=f"{w}/new.txt", new_text="x\n"),),
        "search": (call("search_codebase", queries=["beta"]),),
        "subagent": (call("spawn_agent", systemPrompt="s", task=INNER_PROMPT),),
        "mcp": (call("place__echo", text="hi"),),
    }


_OWN: Mapping[str, Callable[[Path], Deeds]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "qwen": _qwen,
    "copilot": _copilot,
    "opencode": _opencode,
    "pi": _pi,
    "kimi": _kimi,
    "droid": _droid,
    "cline": _cline,
}


def deeds(agent: str, workspace: Path) -> Deeds:
    """Return what an agent is played: a command, one that fails, and what it has of its own."""
    shell = SHELL[agent]
    return {"shell": (shell("echo hi > b.txt; pwd"),), "failing": (shell("exit 3"),), **_OWN[agent](workspace)}
