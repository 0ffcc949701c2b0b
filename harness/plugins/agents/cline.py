"""Cline, by its CLI. Tried: 3.0.65.

Before a tool call, Cline calls a plugin. Ours starts the hook program, and skips the call unless that allows it. The answers
are in a form of our own: nothing, or `{"args": {...}}` for other arguments. A refusal is an exit code with the reason on
stderr. Cline waits three seconds for a plugin, and ends the turn after that.

A call may have several commands, which Cline runs at once. The plugin makes one command of them, that runs each in a shell
of its own, one after the other: our hook judges the text that runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import JsonValue
from harness.plugins.agents.event import EventError, HookEvent, When, needed, table, text
from harness.plugins.agents.foreign_call import ForeignCall, ForeignKind, ForeignTool, named_as_in_policies
from harness.plugins.agents.guarded_agent import AgentFile, GuardedAgent, SettingsFile, refusal
from harness.plugins.agents.node_plugin import allow, plugin_file

_NEW_FILE = "editor of a new file"
"""Our name of `editor` for a call that creates a file: without an old text, it changes no file that exists."""

TOOLS: Mapping[str, ForeignTool] = {
    "run_commands": ForeignTool(kind=ForeignKind.SHELL, takes={"commands": "command"}, needs=("command",)),
    "read_files": ForeignTool(kind=ForeignKind.READ, takes={"files": "path"}),
    "editor": ForeignTool(
        kind=ForeignKind.EDIT,
        takes={"path": "path", "old_text": "old_string", "new_text": "new_string"},
        ignores=("insert_line",),
        needs=("path", "old_string", "new_string"),
    ),
    _NEW_FILE: ForeignTool(
        kind=ForeignKind.WRITE,
        takes={"path": "path", "new_text": "content"},
        ignores=("old_text", "insert_line"),
        needs=("path", "content"),
    ),
    "apply_patch": ForeignTool(kind=ForeignKind.PATCH, takes={"input": "patch"}, needs=("patch",)),
    "search_codebase": ForeignTool(kind=ForeignKind.SEARCH, ignores=("queries",)),
    "fetch_web_content": ForeignTool(kind=ForeignKind.FETCH, takes={"requests": "url"}, needs=("url",)),
    **dict.fromkeys(
        (
            "ask_question", "skills", "submit_and_exit", "spawn_agent", "team_spawn_teammate", "team_shutdown_teammate",
            "team_status", "team_task", "team_run_task", "team_cancel_run", "team_list_runs", "team_await_runs",
            "team_send_message", "team_broadcast", "team_read_mailbox", "team_mission_log",
        ),
        ForeignTool(kind=ForeignKind.INWARD),
    ),
}  # fmt: skip

_EXPORTED = """\
import { resolve } from "node:path";

let sessionId = "";
const refused = new Set();

const single = (name, input) => {
  const [commands, files] = [[input?.commands].flat(), [input?.files].flat()];
  if (name === "run_commands" && commands.every((each) => typeof each === "string")) {
    const one = commands.length === 1 ? commands[0] : commands.map((each) => `(${each}\\n)`).join("\\n");
    return { ...input, commands: [one] };
  }
  if (name === "read_files" && files.every((file) => typeof file?.path === "string"))
    return { ...input, files: files.map((file) => ({ ...file, path: resolve(file.path) })) };
  return input;
};

const told = (type, { snapshot, toolCall }, input, result) => {
  const subagent = snapshot.parentAgentId ? snapshot.agentId : "";
  const { toolName, toolCallId } = toolCall;
  return { type, sessionId, cwd: process.cwd(), subagent, toolName, toolCallId, input, result };
};

export default {
  name: "harness",
  manifest: { capabilities: ["hooks"] },
  setup: (_, { session }) => {
    sessionId = session?.sessionId ?? "";
  },
  hooks: {
    beforeTool: async (call) => {
      try {
        const input = single(call.toolCall.toolName, call.input);
        const said = await heard(told("beforeTool", call, input), process.cwd());
        return { input: said === "" ? input : single(call.toolCall.toolName, JSON.parse(said).args) };
      } catch (error) {
        refused.add(call.toolCall.toolCallId);
        return { skip: true, reason: String(error.message) };
      }
    },
    afterTool: async (call) => {
      if (refused.has(call.toolCall.toolCallId) && call.result?.isError) return;
      await heard(told("afterTool", call, call.input, call.result), process.cwd()).catch(() => {});
    },
  },
};
"""


def _event_of(fields: Mapping[str, JsonValue]) -> HookEvent:
    kind, tool = needed(fields, "type"), needed(fields, "toolName")
    if kind not in ("beforeTool", "afterTool"):
        raise EventError("type is not an event that the plugin sends")
    arguments = _arguments(tool, table(fields, "input"))
    creates = tool == "editor" and arguments.get("old_text") == "" and arguments.get("insert_line") is None
    result = table(fields, "result") if kind == "afterTool" else {}
    output = result.get("output")
    is_failed = bool(result.get("isError")) or any(
        isinstance(part, dict) and part.get("success") is False
        for part in (output if isinstance(output, list) else [output])
    )
    return HookEvent(
        when=When.BEFORE if kind == "beforeTool" else When.FAILED if is_failed else When.AFTER,
        session=needed(fields, "sessionId"),
        cwd=needed(fields, "cwd"),
        tool=_NEW_FILE if creates else tool,
        arguments=arguments,
        use_id=needed(fields, "toolCallId"),
        subagent=text(fields, "subagent"),
        response=output,
    )


def _arguments(tool: str, arguments: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return the arguments with a text where Cline has a list of one, and the paths alone of the files to read.

    A list of another form stays as it is, and its call is unknown, or refused.
    """
    match tool, arguments:
        case "run_commands", {"commands": [str() as command]}:
            return {**arguments, "commands": command}
        case "fetch_web_content", {"requests": [{"url": str() as url}]}:
            return {**arguments, "requests": url}
        case "read_files", {"files": list() as files} if files and all(map(_is_read, files)):
            return {**arguments, "files": [file["path"] for file in files if isinstance(file, dict)]}
        case "editor", _:
            return {**arguments, "old_text": arguments.get("old_text") or ""}
        case _:
            return arguments


def _is_read(file: JsonValue) -> bool:
    """Return whether an entry of `files` is a path with, at most, its first and last line."""
    return (
        isinstance(file, dict)
        and isinstance(file.get("path"), str)
        and file.keys() <= {"path", "start_line", "end_line"}
    )


def _policy_name(call: ForeignCall, event: HookEvent, environment: Mapping[str, str]) -> ForeignCall:  # noqa: ARG001
    """Return a call with the policy's name of its tool: Cline has `SERVER__TOOL` for that of an MCP server."""
    return named_as_in_policies(call, "__", (), are_all=False)


def _plugin(command: str) -> Mapping[str, JsonValue]:
    return plugin_file("cline", "Cline", command, _EXPORTED, milliseconds=2_500)


AGENT = GuardedAgent(
    name="cline",
    title="Cline",
    program="cline",
    tools=TOOLS,
    event_of=_event_of,
    policy_name=_policy_name,
    allow=allow,
    deny=refusal,
    block=refusal,
    # It can be told to ask, but with its auto-approval, which is on by default, it does not.
    waits=False,
    rewrites=lambda event, environment: True,  # noqa: ARG005
    settings=SettingsFile(
        user=".cline/plugins/harness.js",
        project=".cline/plugins/harness.js",
        home_variable="CLINE_DIR",
        is_plugin=True,
    ),
    off_words=("--config",),
    hook_files=(
        AgentFile(path="Documents/Cline/*s/*", is_user=True),  # Plugins, Hooks
        AgentFile(path=".cline/hooks/*", is_user=True),
        AgentFile(path=".cline/hooks/*"),
        AgentFile(path=".clinerules/hooks/*"),
    ),
    settings_content=_plugin,
    unseen=(
        "several commands of a call run as one, one after the other",
        "three refusals in a row end its turn",
        "`--config`, and `disabledPlugins` in its own settings, load no hook",
        "plugins and hooks of a project run unasked, plugins in the process of ours",
        "a plugin of `~/Documents/Cline` runs after ours, and may change a call",
        "a file that the prompt names with @",
        "reading a missing file, it tries names with other blanks, quotation marks or accents",
    ),
)
"""The description of Cline."""
