"""A tool of somebody else's own, in one file: nothing in harness knows its name, and it goes the whole way of a call."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from playing import Playing
from rows import all_rows

import harness
from harness import ActionLog, Agent, Answer, Approval, Tool, ToolError, ToolOutput, Verdict, Workspace, builtin_tools
from harness.actions import Access, Action, Decision, Effects, JsonValue
from harness.messages import ResultStatus, StopReason, ToolCall
from harness.model import ToolSpec
from harness.models.scripted import call
from harness.policy.lint import warnings
from harness.policy.loader import parse_policy
from harness.policy.verdict import evaluate
from harness.session.session_log import close_log
from harness.session.state import State
from harness.terminal.editor import is_editable
from harness.terminal.question import Question, question_rows
from harness.tool_kinds import SHIPPED_TOOLS, Does, ToolKind

if TYPE_CHECKING:
    from program import Program

# -- the tool: all that anybody has to write


class NoteTool:
    """Adds a line to a file of notes."""

    kind = ToolKind(name="add_note", does=Does.OTHER, subject="file", edited="note")

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        text: JsonValue = {"type": "string", "minLength": 1}
        self.spec = ToolSpec(
            name=self.kind.name,
            description="Add a line to a file of notes.",
            parameters={"properties": {"file": text, "note": text}, "required": ["file", "note"]},
        )

    def prepare(self, call: ToolCall, arguments: Mapping[str, JsonValue]) -> Action:
        path = self._workspace.resolve(str(arguments["file"]), Access.WRITE)
        return Action(
            call=call,
            tool=self.spec.name,
            arguments=arguments,
            facets=(path,),
            summary=f"a note in {path.written}",
            preview=f"add to {path.written}:\n+{arguments['note']}",
            request=(path.real, arguments["note"]),
            described=self.kind,
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        assert isinstance(action.request, tuple)
        path, note = action.request
        try:
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"{note}\n")
        except OSError as error:
            raise ToolError(f"The note was not written: {error.strerror}.") from error
        return ToolOutput(content=f"Noted in {os.path.basename(path)}.")


# -- and the way of its calls

POLICY = b"""
version = 1
[tools]
add_note = "auto"
default = "deny"
[[rule]]
id = "minutes"
decision = "confirm"
tool = ["add_note"]
access = ["write"]
path = ["minutes.md"]
match = ["minutes.md"]
[[rule]]
id = "keys"
decision = "deny"
access = ["write"]
path = [".env"]
reason = "Secrets stay as they are."
match = [".env"]
"""


def test_fifth_tool_passes_through_every_stage(program: Program) -> None:
    root = program.workspace
    workspace = Workspace(str(root), program.environment["HOME"])
    tool: Tool = NoteTool(workspace)
    policy = parse_policy(POLICY, "notes.toml", extra_tools=[tool.spec.name])
    seen: list[str] = []

    # A person at the terminal, who changes the note at the question, and says yes to what they made of it.
    def person(action: Action, verdict: Verdict) -> Approval:
        question = Question(action=action, verdict=verdict, confinement="in process", destroys=())
        seen.append("\n".join(row.text for row in question_rows(question, 100)))
        if len(seen) > 1:
            return Approval(answer=Answer.YES, by="person")
        assert is_editable(action)
        changed = {**action.arguments, action.kind.edited: "bread"}
        return Approval(answer=Answer.EDIT, by="person", arguments=json.dumps(changed))

    # Policy check: known names only, and nothing to warn of; the same facets as any other call.
    assert list(warnings(policy)) == []
    prepared = tool.prepare(call("add_note", file=".env", note="x"), {"file": ".env", "note": "x"})
    assert evaluate(policy, prepared).decision is Decision.DENY

    state = State.of(program.environment)
    log = ActionLog.open(state.new_log_path(workspace.root))
    wanted = (("notes.md", "eggs"), ("minutes.md", "milk"), (".env", "x"))
    agent = Agent(
        model=Playing([call("add_note", file=file, note=note) for file, note in wanted]),
        tools=[*builtin_tools(workspace, environment=program.environment), tool],
        policy=policy,
        approver=person,
        log=log,
        facts={"mode": "run", "workspace": workspace.root},
    )
    assert agent.run("go").stop is StopReason.COMPLETED
    close_log(state, log)
    (path,) = program.logs()

    # Run, refused, edited; and the question said whose it is, what it does, and that nothing brings it back.
    assert (root / "notes.md").read_text() == "eggs\n"
    assert (root / "minutes.md").read_text() == "bread\n"
    assert not (root / ".env").exists()
    assert len(seen) == 2
    for text in seen:
        assert "+milk" in text or "+bread" in text
        assert "undo: no, what this tool changes is not kept" in text
        assert "minutes" in text

    # Log: the records of any other call.
    records = program.records()
    ends = [(record["tool"], record["status"]) for record in records if record["kind"] == "outcome"]
    done, denied = ("add_note", ResultStatus.OK.value), ("add_note", ResultStatus.DENIED.value)
    assert sorted(ends) == sorted([done, denied, done, denied])

    # Audit, report, undo, export: out of the records alone.
    assert "Proved" in program.said("audit", "verify", str(path))
    assert "a note in notes.md" in program.said("audit", "show", str(path))
    assert "add_note" in program.said("audit", "stats", str(path))
    report = root / "report.html"
    program.said("audit", "report", "-o", str(report), str(path))
    assert "a note in notes.md" in report.read_text()
    undone = program.run("undo", "--to", "1")
    assert "the changes by this tool are not recorded" in undone.out + undone.err
    assert (root / "notes.md").read_text() == "eggs\n"
    assert "add_note" in program.said("audit", "export", "--to", "csv", str(path))
    events = [json.loads(line) for line in program.said("audit", "export", "--to", "ocsf", str(path)).splitlines()]
    assert {event["class_name"] for event in events} == {"API Activity"}


NAMED_IN = {
    "tool_kinds.py": "the one table of the tools that ship",
    "app/demo/scenarios.py": "what the demo's model calls",
    "process/start.py": "the program bash",
    "programs/shells.py": "the program bash",
    "shell/program_use.py": "the program bash",
    "plugins/doctor/doctor_command.py": "the program bash",
    "app/shell_completion.py": "the shell bash",
    "terminal/highlighting.py": "the language of code",
    "plugins/agents/commands/agent_starts.py": "what the played model of another agent calls",
    "plugins/agents/copilot.py": "the tools of that agent",
    "plugins/agents/crush.py": "the tools of that agent",
    "plugins/agents/gemini.py": "the tools of that agent",
    "plugins/agents/kiro.py": "the tools of that agent",
    "plugins/agents/opencode.py": "the tools of that agent",
    "plugins/agents/other_hooks.py": "a key in the settings of Copilot",
    "plugins/agents/pi.py": "the tools of that agent",
    "plugins/agents/qwen.py": "the tools of that agent",
    "plugins/agents/settings_file.py": "a key in the settings of Copilot",
}
"""Where the name of a tool may stand in a text of the program, outside of harness/tools, and what it means there."""


def test_tool_names_appear_in_the_tools_only() -> None:
    folder = Path(harness.__file__).parent
    kinds = r"\b(" + "|".join(name for name in SHIPPED_TOOLS if name != "bash") + r")\b"
    found = set()
    for file in sorted(folder.rglob("*.py")):
        place, source = file.relative_to(folder).as_posix(), file.read_text()
        if place.startswith("tools/") or not re.search(rf"{kinds}|\"bash\"", source):
            continue
        for node in ast.walk(ast.parse(source)):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if text == "bash" or re.search(kinds, text):
                found.add(place)
    assert found == NAMED_IN.keys()


def test_each_shipped_tool_matches_the_table(tmp_path: Path) -> None:
    tools = builtin_tools(Workspace(str(tmp_path)), environment={})
    assert [getattr(tool, "kind", None) for tool in tools] == list(SHIPPED_TOOLS.values())
    for tool in tools:
        kind, properties = SHIPPED_TOOLS[tool.spec.name], tool.spec.parameters["properties"]
        assert isinstance(properties, dict)
        named = {kind.subject, kind.edited, kind.edited_each} - {""}
        assert named <= properties.keys()
        required = tool.spec.parameters["required"]
        assert isinstance(required, list)
        assert (kind.subject in required) != bool(kind.unsaid)


LISTS = ToolKind(name="list", does=Does.READS, subject="path", unsaid=".")


@all_rows(
    ("kind", "arguments", "subject"),
    [
        (SHIPPED_TOOLS["read_file"], {"path": "a"}, "a"),
        (SHIPPED_TOOLS["bash"], {"command": "ls", "path": "a"}, "ls"),
        (SHIPPED_TOOLS["read_file"], {}, None),
        (SHIPPED_TOOLS["read_file"], {"path": 3}, None),
        (LISTS, {"path": "a"}, "a"),
        (LISTS, {}, "."),
        (LISTS, {"path": None}, None),
        (LISTS, ["path"], None),
        (LISTS, None, None),
        (ToolKind(name="other"), {"": "a"}, None),
    ],
)
def test_subject_follows_from_arguments_and_defaults(kind: ToolKind, arguments: object, subject: str | None) -> None:
    assert kind.subject_of(arguments) == subject
