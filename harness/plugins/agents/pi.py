"""pi. Tried: 1.6.0.

Before a tool call, pi calls an extension. Ours starts the hook program, and throws unless that allows the call. The answers
are in a form of our own: nothing, `{"args": {...}}` for other arguments, or a `decision` that ends the turn. A refusal is
an exit code with the reason on stderr.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import JsonValue
from harness.plugins.agents.event import EventError, HookEvent, When, needed, table, text
from harness.plugins.agents.foreign_call import ForeignKind, ForeignTool, edits_named
from harness.plugins.agents.guarded_agent import GuardedAgent, HookAnswer, SettingsFile, as_json, refusal
from harness.plugins.agents.node_plugin import allow, plugin_file
from harness.regex import regex

TOOLS: Mapping[str, ForeignTool] = {
    "bash": ForeignTool(kind=ForeignKind.SHELL, takes={"command": "command"}, ignores=("timeout",), needs=("command",)),
    "read": ForeignTool(kind=ForeignKind.READ, takes={"path": "path"}, ignores=("offset", "limit"), needs=("path",)),
    "write": ForeignTool(
        kind=ForeignKind.WRITE, takes={"path": "path", "content": "content"}, needs=("path", "content")
    ),
    "edit": ForeignTool(kind=ForeignKind.EDIT, takes={"path": "path", "edits": "edits"}, needs=("path",)),
    "ls": ForeignTool(kind=ForeignKind.LIST, takes={"path": "path"}, ignores=("limit",)),
    "find": ForeignTool(kind=ForeignKind.LIST, takes={"path": "path", "pattern": "glob"}, ignores=("limit",)),
    "grep": ForeignTool(
        kind=ForeignKind.SEARCH,
        takes={"path": "path", "glob": "glob"},
        ignores=("pattern", "ignoreCase", "literal", "context", "limit"),
    ),
    "codemode": ForeignTool(kind=ForeignKind.INWARD),
}

_WHEN: Mapping[str, When] = {
    "tool_call": When.BEFORE,
    "tool_result": When.AFTER,
    "input": When.PROMPT,
    "session_shutdown": When.ENDED,
}
_SENT = regex(r'<file name="([^"\n]+)">(?s:.*?)</file>\s*')
"""Matches a file that the command line names with `@`: pi puts its content into the prompt."""
_BLANKS = regex("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
"""Characters that pi takes for a blank in a path."""

_EXPORTED = """\
export default (pi) => {
  const told = (event, { cwd, sessionManager }) => ({ ...event, cwd, sessionId: sessionManager.getSessionId() });
  pi.on("tool_call", async (event, context) => {
    const said = await heard(told(event, context), context.cwd);
    if (said === "") return;
    const { args, decision, reason } = JSON.parse(said);
    if (decision === "block") return { block: true, reason, terminate: true };
    put(event.input, args);
  });
  pi.on("input", async ({ type, text, source }, context) => {
    if (source === "extension") return;
    try {
      await heard(told({ type, text }, context), context.cwd);
    } catch (error) {
      if (context.hasUI) context.ui.notify(String(error.message), "error");
      else console.error(String(error.message));
      return { action: "handled" };
    }
  });
  for (const name of ["tool_result", "session_shutdown"])
    pi.on(name, (event, context) => heard(told(event, context), context.cwd).then(() => {}, () => {}));
};
"""


def _event_of(fields: Mapping[str, JsonValue]) -> HookEvent:
    when = _WHEN.get(needed(fields, "type"))
    session, cwd = needed(fields, "sessionId"), needed(fields, "cwd")
    if when is None:
        raise EventError("type is not an event that the extension sends")
    if when is When.ENDED:
        return HookEvent(when=when, session=session, cwd=cwd)
    if when is When.PROMPT:
        prompt = text(fields, "text")
        return HookEvent(
            when=when,
            session=session,
            cwd=cwd,
            prompt=_SENT.sub(r"@\1 ", prompt),
            sent_files=_SENT.findall(prompt),
        )
    return HookEvent(
        when=When.FAILED if fields.get("isError") else when,
        session=session,
        cwd=cwd,
        tool=needed(fields, "toolName"),
        arguments=_arguments(table(fields, "input")),
        use_id=needed(fields, "toolCallId"),
        response=fields.get("content"),
    )


def _arguments(arguments: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return the arguments with the path that pi reads: it takes an `@` away from the front, and knows odd blanks."""
    path = arguments.get("path")
    if isinstance(path, str):
        arguments = {**arguments, "path": _BLANKS.sub(" ", path).removeprefix("@")}
    return edits_named(arguments, old="oldText", new="newText")


def _block(reason: str) -> HookAnswer:
    return as_json({"decision": "block", "reason": reason, "continue": False})


def _extension(command: str) -> Mapping[str, JsonValue]:
    return plugin_file("pi", "pi", command, _EXPORTED)


AGENT = GuardedAgent(
    name="pi",
    title="pi",
    program="pi",
    tools=TOOLS,
    event_of=_event_of,
    allow=allow,
    deny=refusal,
    block=_block,
    rewrites=lambda event, environment: True,  # noqa: ARG005
    settings=SettingsFile(
        user=".pi/agent/extensions/harness.js",
        project=".pi/extensions/harness.js",
        home=".pi/agent",
        home_variable="PI_CODING_AGENT_DIR",
        is_plugin=True,
    ),
    off_words=("--no-extensions",),
    settings_content=_extension,
    unseen=(
        "`--no-extensions` loads no hook, and a trusted project may leave extensions out",
        "an extension that is loaded later may change the arguments after our hook",
        "a command after `!`",
        "a project's extension counts only where its folder is trusted",
    ),
)
"""The description of pi."""
