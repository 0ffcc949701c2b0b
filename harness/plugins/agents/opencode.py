"""opencode. Tried: 1.18.33.

Before a tool call, opencode does not start a program but calls a plugin. Our plugin starts the hook program and throws
unless that allows the call. So the form of the answers is our own: an empty answer, or `{"args": {...}}` for other
arguments. A refusal is an exit code with the reason on stderr.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import JsonValue
from harness.plugins.agents.event import EventError, HookEvent, When, needed, table
from harness.plugins.agents.foreign_call import ForeignKind, ForeignTool
from harness.plugins.agents.guarded_agent import GuardedAgent, HookAnswer, SettingsFile, as_json, refusal
from harness.plugins.agents.node_plugin import plugin_file

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
    "grep": ForeignTool(kind=ForeignKind.SEARCH, takes={"path": "path"}, ignores=("pattern", "include")),
    **dict.fromkeys(
        ("task", "todowrite", "todoread", "question", "plan_enter", "plan_exit", "invalid"),
        ForeignTool(kind=ForeignKind.INWARD),
    ),
}

_WHEN: Mapping[str, When] = {"before": When.BEFORE, "after": When.AFTER}

_EXPORTED = """\
export const Harness = async ({ directory, worktree }) => ({
  "tool.execute.before": async (input, output) => {
    const said = await heard({ when: "before", ...input, args: output.args, directory, worktree }, directory);
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
        raise EventError("when is neither before nor after")
    return HookEvent(
        when=when,
        session=needed(fields, "sessionID"),
        cwd=needed(fields, "directory"),
        tool=needed(fields, "tool"),
        arguments=table(fields, "args"),
        use_id=needed(fields, "callID"),
        response=fields.get("output"),
    )


def _allow(arguments: Mapping[str, JsonValue] | None) -> HookAnswer:
    return HookAnswer() if arguments is None else as_json({"args": dict(arguments)})


def _plugin_file(command: str) -> Mapping[str, JsonValue]:
    return plugin_file("opencode", "opencode", command, _EXPORTED)


AGENT = GuardedAgent(
    name="opencode",
    title="opencode",
    program="opencode",
    tools=TOOLS,
    event_of=_event_of,
    allow=_allow,
    deny=refusal,
    block=refusal,
    rewrites=lambda event, environment: True,  # noqa: ARG005
    settings=SettingsFile(
        user=".config/opencode/plugin/harness.js",
        project=".opencode/plugin/harness.js",
        home_variable="XDG_CONFIG_HOME",
        is_plugin=True,
    ),
    settings_content=_plugin_file,
    unseen=(
        "`--pure` loads no plugins, and version 2 (`opencode2`) none of version 1",
        "a call that fails has no outcome: opencode tells of none",
        "a subagent has a session of its own: what stops the one does not stop the other",
    ),
)
"""The description of opencode."""
