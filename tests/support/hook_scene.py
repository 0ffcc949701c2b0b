"""Another agent at its hook: events as it sends them, answers as it gets them, and the log that comes of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from harness.actions import Action
from harness.files.before_images import BeforeImages
from harness.gate.approval import Approver, deny_all
from harness.gate.call_checks import NO_CHECKS
from harness.gate.records import Advice
from harness.log.action_log import ActionLog
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.log.verify import verify
from harness.plugins.agents.answering import answer
from harness.plugins.agents.guarded_agent import GuardedAgent, HookAnswer, agent_named
from harness.policy.loader import parse_policy
from harness.policy.policy import Policy
from harness.policy.verdict import Verdict
from harness.redaction.redactor import Redactor
from harness.session.asked_call import HookParts

UNBOUND = {"type": "turn_context", "payload": {"sandbox_policy": {"type": "danger-full-access"}}}
"""What Codex writes of a turn whose commands run without its own sandbox."""


def no_advice(policy: Policy, action: Action, verdict: Verdict) -> Advice:
    return Advice(reason="none here")


class HookScene:
    """One agent in a workspace of its own; each event is judged as by a process of its own."""

    def __init__(
        self,
        folder: Path,
        policy: bytes | Policy,
        *,
        agent: str = "claude",
        workspace: Path | None = None,
        home: str | None = None,
        approver: Approver = deny_all,
        advise: Callable[[Policy, Action, Verdict], Advice] = no_advice,
        environment: Mapping[str, str] | None = None,
        runner: str = "harness exec",
    ) -> None:
        self.agent: GuardedAgent = agent_named(agent)
        self.workspace = workspace or folder / "w"
        self.workspace.mkdir(exist_ok=True)
        self.policy = parse_policy(policy, "p.toml") if isinstance(policy, bytes) else policy
        self.transcript = folder / ".claude" / "projects" / "-w" / "S.jsonl"
        self.transcript.parent.mkdir(parents=True)
        self.transcript.write_text(json.dumps(UNBOUND) + "\n")
        self.logs = folder / "logs"
        self.logs.mkdir()
        self.parts = HookParts(
            folder=str(folder / "agents"),
            home=home or str(folder),
            environment={
                "PATH": "/usr/bin:/bin",
                "CLAUDE_PROJECT_DIR": str(self.workspace),
                "CLAUDE_CODE_SESSION_ATTENDED": "1",
                **(environment or {}),
            },
            redactor=Redactor(),
            images=BeforeImages(str(folder / "images")),
            hidden=(),
            policy_at=lambda workspace, known: self.policy,
            new_log=lambda workspace: str(self.logs / f"{len(list(self.logs.iterdir()))}.jsonl"),
            note_head=_no_heads,
            grants_at=lambda workspace: ((), None),
            ask=lambda asked, policy: approver(asked.action, asked.verdict),
            advise=advise,
            runner=runner,
            host_fields=dict,
            wait_seconds=60.0,
            checks=lambda workspace: NO_CHECKS,
        )

    def event(
        self, name: str, tool: str = "", arguments: object = None, use_id: str = "c1", **more: object
    ) -> HookAnswer:
        """Send an event of Claude's form, and return the answer."""
        fields = {
            "session_id": "S",
            "transcript_path": str(self.transcript),
            "cwd": str(self.workspace),
            "hook_event_name": name,
            "permission_mode": "default",
            "tool_name": tool,
            "tool_input": arguments if arguments is not None else {},
            "tool_use_id": use_id,
            **more,
        }
        return self.send(json.dumps(fields).encode())

    def send(self, data: bytes) -> HookAnswer:
        """Send the bytes of an event."""
        return answer(self.agent, data, self.parts)

    def records(self) -> list[LogRecord]:
        """Return the records of all logs, each of which verifies."""
        found: list[LogRecord] = []
        for path in sorted(self.logs.iterdir()):
            report = verify(str(path))
            assert report.broken_line is None, report
            found += read_log(str(path))
        return found


def word_of(reply: HookAnswer) -> str:
    """Return what an answer of Claude's form says in one word."""
    if reply.code == 2:
        return "deny"
    if not reply.stdout:
        return "silence"
    said = json.loads(reply.stdout)
    word = str(said["hookSpecificOutput"]["permissionDecision"])
    return "block" if said.get("continue") is False and "reason" not in said else word  # Qwen says it of each refusal


def _no_heads(log: ActionLog, closed: bool) -> None:
    pass
