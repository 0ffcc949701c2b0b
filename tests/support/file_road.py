"""The road of a file tool's call in a workspace of its own, for the tests of the file tools; holds no test."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from log_scene import begun, unsynced

from harness import ActionLog, Answer, Approval, Limits, ToolRegistry, Verdict, Workspace
from harness.actions import Action, Effects
from harness.files.baselines import Baselines
from harness.files.before_images import BeforeImages
from harness.gate.gate import Gate
from harness.gate.tool import Tool
from harness.log.order import LogRecord
from harness.messages import ResultStatus, ToolCall, ToolResult
from harness.policy.loader import parse_policy
from harness.record import replace
from harness.tools.edit_file import EditFileTool
from harness.tools.read_file import ReadFileTool
from harness.tools.write_file import WriteFileTool
from policies import AUTO

EFFECTS = Effects(read=None, write=None, network=False, unasked=False)

NO_LIMITS = Limits()
POLICY = AUTO.encode()


def say_yes(action: Action, verdict: Verdict) -> Approval:
    return Approval(answer=Answer.YES, by="script")


def _nothing() -> None:
    pass


class Road:
    """The whole road from a call to its result, in a workspace of its own; every question is answered yes."""

    def __init__(
        self,
        folder: Path,
        policy: bytes = POLICY,
        limits: Limits = NO_LIMITS,
        *,
        root: Path | None = None,
        made: bool = False,
    ) -> None:
        """Make the workspace in `folder`, or at `root`, unless it was `made` before."""
        self.root = root or folder / "workspace"
        if not made:
            self.root.mkdir()
        self.workspace = Workspace(str(self.root), home=str(folder / "home"))
        self.baselines, self.images = Baselines(), BeforeImages(str(folder / "images"))
        self.reader = ReadFileTool(self.workspace, limits=limits, baselines=self.baselines)
        self.tools: tuple[Tool, ...] = (
            self.reader,
            WriteFileTool(self.workspace, baselines=self.baselines, images=self.images),
            EditFileTool(self.workspace, baselines=self.baselines, images=self.images),
        )
        self.registry = ToolRegistry(self.tools)
        parsed = parse_policy(policy, "test.toml")
        self.log = begun(ActionLog.open(str(folder / "log.jsonl"), sync=unsynced), parsed)
        self.gate = Gate(policy=parsed, approver=say_yes, log=self.log, tools=self.registry)

    def tool(self, name: str) -> Tool:
        return next(tool for tool in self.tools if tool.spec.name == name)

    def call(self, tool: str, **arguments: object) -> ToolCall:
        return ToolCall(id="c1", name=tool, arguments=json.dumps(arguments, ensure_ascii=False))

    def prepare(self, tool: str, **arguments: object) -> Action:
        return self.registry.prepare(self.call(tool, **arguments))

    def run(self, tool: str, **arguments: object) -> ToolResult:
        return self.run_while(_nothing, tool, **arguments)

    def run_while(
        self, meanwhile: Callable[[], object], tool: str, after: Callable[[], object] = _nothing, /, **arguments: object
    ) -> ToolResult:
        """Put a call through the gate; `meanwhile` is done between the judgement and the run, and `after` right after it."""

        def at(record: LogRecord) -> None:
            if record["kind"] == "intent":
                meanwhile()
            elif record["kind"] == "outcome":
                after()

        self.log.observers.append(at)
        try:
            result = self.gate.call(self.gate.propose(self.call(tool, **arguments))).result
        finally:
            self.log.observers.remove(at)
        return replace(result, duration_ms=0, error_code="")

    def file(self, name: str, content: bytes) -> Path:
        """Make a file that the model has read."""
        path = self.unread(name, content)
        self.baselines.saw(str(path), content)
        return path

    def unread(self, name: str, content: bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def tree(self) -> dict[str, bytes]:
        """Return every file of the workspace: a temporary file that was left behind would be among them."""
        return {str(path.relative_to(self.root)): path.read_bytes() for path in self.root.rglob("*") if path.is_file()}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def failed(content: str) -> ToolResult:
    return ToolResult(call_id="c1", status=ResultStatus.FAILED, content=content, output_bytes=len(content))
