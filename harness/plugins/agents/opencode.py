"""opencode. Tried: 1.18.33.

Before a tool call, opencode does not start a program but calls a plugin. Our plugin starts the hook program and throws
unless that allows the call. So the form of the answers is our own: an empty answer, or `{"args": {...}}` for other
arguments. A refusal is an exit code with the reason on stderr.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import JsonValue
from harness.plugins.agents.event import EventError, HookEvent, When, needed, table, text
from harness.plugins.agents.foreign_call import ForeignCall, ForeignKind, ForeignTool, named_as_in_policies
from harness.plugins.agents.guarded_agent import GuardedAgent, SettingsFile, refusal
from harness.plugins.agents.node_plugin import allow, plugin_file
from harness.regex import regex

TOOLS: Mapping[str, ForeignTool] = {
    "bash": ForeignTool(
        kind=ForeignKind.SHELL,
        takes={"command": "command", "workdir": "cwd"},
        ignores=("description", "timeout"),
        needs=("command",),
    ),
    "read": ForeignTool(
        kind=ForeignKind.READ, takes={"filePath": "path"}, ignores=("offset", "limit"), needs=("path",)
    ),
    "list": ForeignTool(kind=ForeignKind.LIST, takes={"path": "path"}, ignores=("ignore",)),
    "write": ForeignTool(
        kind=ForeignKind.WRITE, takes={"filePath": "path", "content": "content"}, needs=("path", "content")
    ),
    "edit": ForeignTool(
        kind=ForeignKind.EDIT,
        takes={
            "filePath": "path",
            "oldString": "old_string",
            "newString": "new_string",
            "replaceAll": "replace_all",
        },
        needs=("path", "old_string", "new_string"),
    ),
    "apply_patch": ForeignTool(kind=ForeignKind.PATCH, takes={"patchText": "patch"}, needs=("patch",)),
    "glob": ForeignTool(kind=ForeignKind.LIST, takes={"path": "path", "pattern": "glob"}),
    "grep": ForeignTool(kind=ForeignKind.SEARCH, takes={"path": "path", "include": "glob"}, ignores=("pattern",)),
    "webfetch": ForeignTool(
        kind=ForeignKind.FETCH, takes={"url": "url"}, ignores=("format", "timeout"), needs=("url",)
    ),
    **dict.fromkeys(
        ("task", "todowrite", "todoread", "question", "plan_enter", "plan_exit", "invalid", "skill"),
        ForeignTool(kind=ForeignKind.INWARD),
    ),
}

_REPLACED = regex(r"[^a-zA-Z0-9_-]")
"""Matches what opencode replaces by `_` in the names of servers and tools."""
_WHEN: Mapping[str, When] = {"before": When.BEFORE, "after": When.AFTER, "prompt": When.PROMPT}

_EXPORTED = """\
import { fileURLToPath } from "node:url";

export const Harness = async ({ client, directory, worktree }) => ({
  "chat.message": async ({ sessionID }, { parts }) => {
    const { data } = await client.session.get({ path: { id: sessionID } }).catch(() => ({}));
    if (data?.parentID) return; // a prompt of the model, to a subagent
    const texts = parts.filter(({ type, synthetic }) => type === "text" && !synthetic);
    const sent = parts.filter(({ type, url }) => type === "file" && url.startsWith("file:"));
    const [prompt, files] = [texts.map(({ text }) => text).join("\\n"), sent.map(({ url }) => fileURLToPath(url))];
    await heard({ when: "prompt", sessionID, directory, prompt, files }, directory);
  },
  "tool.execute.before": async (input, output) => {
    const servers = input.tool.includes("_") ? await client.mcp.status().then(({ data }) => Object.keys(data), () => null) : [];
    const said = await heard({ when: "before", ...input, args: output.args, directory, worktree, servers }, directory);
    if (said !== "") put(output.args, JSON.parse(said).args);
  },
  "tool.execute.after": async (input, output) => {
    const { title, output: text, metadata } = output ?? {};
    const told = { when: "after", ...input, output: { title, output: text, metadata }, directory, worktree };
    await heard(told, directory).catch(() => {});
  },
});
"""


def _event_of(fields: Mapping[str, JsonValue]) -> HookEvent:
    when = _WHEN.get(needed(fields, "when"))
    if when is None:
        raise EventError("when is not one that the plugin sends")
    if when is When.PROMPT:
        files = fields.get("files")
        return HookEvent(
            when=when,
            session=needed(fields, "sessionID"),
            cwd=needed(fields, "directory"),
            prompt=text(fields, "prompt"),
            sent_files=tuple(map(str, files)) if isinstance(files, list) else (),
        )
    return HookEvent(
        when=when,
        session=needed(fields, "sessionID"),
        cwd=needed(fields, "directory"),
        tool=needed(fields, "tool"),
        arguments=table(fields, "args"),
        use_id=needed(fields, "callID"),
        servers=_servers(fields.get("servers")),
        response=fields.get("output"),
    )


def _servers(names: JsonValue) -> tuple[str, ...] | None:
    """Return the names of MCP servers as they begin the names of tools. `None` if opencode does not tell them."""
    return tuple(_REPLACED.sub("_", str(name)) for name in names) if isinstance(names, list) else None


def _policy_name(call: ForeignCall, event: HookEvent, environment: Mapping[str, str]) -> ForeignCall:  # noqa: ARG001
    """Return a call with the policy's name of its tool: opencode has `SERVER_TOOL` for that of an MCP server."""
    return named_as_in_policies(call, "_", event.servers or (), are_all=event.servers is not None)


def _plugin_file(command: str) -> Mapping[str, JsonValue]:
    return plugin_file("opencode", "opencode", command, _EXPORTED)


AGENT = GuardedAgent(
    name="opencode",
    title="opencode",
    program="opencode",
    tools=TOOLS,
    event_of=_event_of,
    allow=allow,
    deny=refusal,
    block=refusal,
    rewrites=lambda event, environment: True,  # noqa: ARG005
    policy_name=_policy_name,
    settings=SettingsFile(
        user=".config/opencode/plugin/harness.js",
        project=".opencode/plugin/harness.js",
        home_variable="XDG_CONFIG_HOME",
        is_plugin=True,
    ),
    off_words=("--pure",),
    settings_content=_plugin_file,
    unseen=(
        "it shows a prompt that was stopped as an unknown server error; the log has the reason",
        "`--pure` loads no plugins, and version 2 (`opencode2`) none of version 1",
        "a call that fails has no outcome: opencode tells of none",
        "a subagent has a session of its own: what stops the one does not stop the other",
    ),
)
"""The description of opencode."""
