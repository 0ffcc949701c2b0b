"""The commands and plugins that ship, by the names of their modules. A module is imported only when it is needed.

This is the only module outside harness/plugins that names one of them (tests/test_imports.py). Each module of a command
or a plugin has a constant PLUGIN (harness/plugin.py); harness/session/shipped_plugins.py imports them. This module
imports none of them, so that every room may import it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module

TOOLS: Mapping[str, str] = {"web_fetch": "harness.plugins.media.plugin"}
"""The module of each tool that a plugin offers, by the name of the tool."""
READERS = ("harness.plugins.media.plugin",)
"""The modules of the plugins that read non-text files."""
SECTIONS = {"mcp.servers": "harness.plugins.mcp.section"}
"""The module of each table of the configuration that a plugin reads, by the key of the table."""
PROJECT_FILES = {".mcp.json": "mcp.servers"}
"""Project files with entries for such a table, and the key of the table."""
RUN_OTHERWISE: Mapping[str, tuple[str, str]] = dict.fromkeys(
    ("task", "out"), ("harness.plugins.fleet.batch.task_run", "run_task")
)
"""Module and function that replace `harness run`, by the flag that selects them."""
HOOK_FORMS = {"claude": "harness.plugins.agents.claude_hooks"}
"""The module of each additional JSON format of hooks (harness.checks.hook_form), by the value of `form`."""
STATE_FOLDERS = ("mcp",)
"""Names of the plugins' folders in the state folder (harness.session.state)."""
TOOLS_OF_OTHERS = "harness.plugins.agents.explained_call"
"""The module that explains calls of tools which are neither ours nor a server's."""
PERMISSION_PROMPT = "harness.plugins.agents.permission_prompt"
"""The module of the tool with which a served client asks for permission."""
REPORTS: Mapping[str, str] = {
    "md": "harness.plugins.reports.markdown",
    "junit": "harness.plugins.reports.junit",
    "sarif": "harness.plugins.reports.sarif",
    "html": "harness.plugins.insight.run_page",
}
"""The module of each form of report on runs, by the form's name. Such a module holds a constant REPORT."""
JOB = "harness.plugins.reports.github"
"""The module that reports runs to a CI job."""
COMMANDS: Mapping[str, str] = {
    "": "harness.app.repl.plugin",
    "run": "harness.app.run.plugin",
    "batch": "harness.plugins.fleet.plugin",
    "worker": "harness.plugins.fleet.plugin",
    "queue status": "harness.plugins.fleet.plugin",
    "queue cancel": "harness.plugins.fleet.plugin",
    "queue retry": "harness.plugins.fleet.plugin",
    "queue limit": "harness.plugins.fleet.plugin",
    "demo": "harness.app.demo.plugin",
    "sessions list": "harness.app.plugin",
    "sessions resume": "harness.app.repl.plugin",
    "sessions fork": "harness.app.repl.plugin",
    "sessions delete": "harness.app.plugin",
    "serve": "harness.plugins.acp.plugin",
    "undo": "harness.app.plugin",
    "policy check": "harness.app.policy.plugin",
    "policy new": "harness.app.policy.plugin",
    "policy explain": "harness.app.policy.plugin",
    "policy test": "harness.app.policy.plugin",
    "policy replay": "harness.app.policy.plugin",
    "policy suggest": "harness.plugins.insight.plugin",
    "policy fatigue": "harness.plugins.insight.plugin",
    "policy import": "harness.plugins.agents.plugin",
    "policy trust": "harness.app.policy.plugin",
    "policy forget": "harness.app.policy.plugin",
    "hook install": "harness.plugins.agents.plugin",
    "hook check": "harness.plugins.agents.plugin",
    "hook run": "harness.plugins.agents.plugin",
    "hook status": "harness.plugins.agents.plugin",
    "hook uninstall": "harness.plugins.agents.plugin",
    "mcp proxy": "harness.plugins.mcp.plugin",
    "mcp serve": "harness.plugins.mcp.plugin",
    "mcp list": "harness.plugins.mcp.plugin",
    "mcp check": "harness.plugins.mcp.plugin",
    "mcp pin": "harness.plugins.mcp.plugin",
    "mcp login": "harness.plugins.mcp.plugin",
    "mcp logout": "harness.plugins.mcp.plugin",
    "mcp unpin": "harness.plugins.mcp.plugin",
    "approve": "harness.plugins.agents.plugin",
    "audit list": "harness.app.audit.plugin",
    "audit show": "harness.app.audit.plugin",
    "audit verify": "harness.app.audit.plugin",
    "audit approvals": "harness.plugins.insight.plugin",
    "audit denied": "harness.plugins.insight.plugin",
    "audit unknown": "harness.plugins.insight.plugin",
    "audit files": "harness.plugins.insight.plugin",
    "audit reads": "harness.plugins.insight.plugin",
    "audit outside": "harness.plugins.insight.plugin",
    "audit stats": "harness.plugins.insight.plugin",
    "audit diff": "harness.plugins.insight.plugin",
    "audit report": "harness.plugins.insight.plugin",
    "audit export": "harness.plugins.insight.plugin",
    "audit sign": "harness.app.audit.plugin",
    "audit prune": "harness.app.audit.plugin",
    "audit recover": "harness.app.audit.plugin",
    "schema log": "harness.app.plugin",
    "schema result": "harness.app.plugin",
    "config show": "harness.app.config.plugin",
    "config path": "harness.app.config.plugin",
    "models list": "harness.app.config.plugin",
    "models update": "harness.app.config.plugin",
    "doctor": "harness.plugins.doctor.plugin",
    "completion bash": "harness.app.plugin",
    "completion zsh": "harness.app.plugin",
    "completion fish": "harness.app.plugin",
}
"""The module of each command, by the command's full name. The empty name is the prompt."""
DEFAULT_ACTIONS: Mapping[str, str] = {"models": "list"}
"""The default action of a command line without one, by its first word."""
HELP: Mapping[str, Mapping[str, str]] = {
    "work": {
        "run": "run one prompt without a person (CI)",
        "batch": "run many prompts, each in its own folder",
        "worker": "run the tasks of a queue on this machine",
        "queue": "list, cancel, retry and limit the tasks of a queue",
        "demo": "play a scripted model; needs no key and no network",
        "sessions": "list, resume and fork sessions (-c resumes the newest)",
        "serve": "let an editor drive sessions (ACP)",
        "undo": "restore the files that a session changed",
    },
    "decide": {
        "policy": "check, explain, test and replay policies; suggest rules",
        "hook": "put the gate in front of another agent",
        "mcp": "put the gate in front of MCP servers; pin their tools",
        "approve": "answer the questions of other sessions and agents",
    },
    "look back": {
        "audit": "list, show, verify, compare and report action logs",
        "schema": "print the JSON Schema of the log and of results",
    },
    "this machine": {
        "config": "show the settings and their origins",
        "models": "list the models of the provider",
        "doctor": "test what can be enforced here; --model tests a model",
        "completion": "print the script that completes commands in a shell",
    },
}
"""Text of `harness help` for each first word, by heading."""
TOPICS: Mapping[str, tuple[str, str]] = {
    "policies": ("policies.md", "Policies"),
    "walls": ("policies.md", "`[sandbox]`"),
    "grants": ("policies.md", "Grants"),
    "modes": ("terminal.md", "Modes"),
    "questions": ("terminal.md", "Approval prompts"),
    "commands": ("terminal.md", "Commands"),
    "exit-codes": ("ci.md", "Exit codes"),
    "variables": ("getting-started.md", "Environment variables"),
    "man": ("", ""),
}
"""Page of docs and heading of the section that `harness help` shows, by the topic. `man` is the man page."""
STARTED_BY_AGENTS: Mapping[str, str] = {
    **dict.fromkeys(("hook", "exec"), "harness.plugins.agents.commands.each_call"),
    "resident": "harness.plugins.agents.commands.resident",
}
"""The module that handles the command line before anything else is loaded, by the first word.

Agents start such a process for each of their calls.
"""


def start_for_agent(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Handle a command line from an agent (without the program name), and end the process.

    Returns if the command line is from a user.
    """
    if words and words[0] in STARTED_BY_AGENTS:
        import_module(STARTED_BY_AGENTS[words[0]]).start_for_agent(words, environment)
