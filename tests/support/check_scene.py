"""Hooks for tests: programs in a folder beside a workspace, and what they are told and answer."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from playing import Playing

from harness import ActionLog, Agent, Approval, Workspace, builtin_tools
from harness.actions import Action
from harness.checks.checks import Checks
from harness.checks.hook_declaration import HookDeclaration, declared
from harness.gate.approval import Approver, deny_all
from harness.interrupt import Interrupt
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.log.verify import verify
from harness.messages import RunResult, ToolCall
from harness.plugins.agents.claude_hooks import FORM
from harness.policy.loader import parse_policy
from harness.policy.rules import Layer, Origin
from harness.policy.verdict import Verdict
from harness.record import replace
from harness.redaction.redactor import Redactor

POLICY = b"""
version = 1
name = "hooks"
[tools]
default = "confirm"
read_file = "auto"
write_file = "auto"
edit_file = "auto"
[[rule]]
id = "echo"
decision = "auto"
argv = ["echo", "..."]
[[rule]]
id = "no-date"
decision = "deny"
argv = ["date"]
reason = "What time it is does not matter."
"""
HANGS = 'touch "$(dirname "$0")/begun"; exec sleep 600'
"""In a hook: it says that it was started, and does not end; see CheckScene.pressing."""
KEEP = 'cat > "$(dirname "$0")/told.json"'
"""In a hook: it keeps what it is told."""
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "SECRET_TOKEN": "not for hooks"}

FORMS = {FORM.name: lambda: FORM}


class CheckScene:
    """A workspace, a folder of hooks beside it, and a log."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "work"
        self.hooks = folder / "hooks"
        self.path = folder / "log.jsonl"
        for each in (self.workspace, self.hooks):
            each.mkdir()
        self.declared: list[HookDeclaration] = []
        self.told: list[str] = []
        self.asked: list[tuple[Action, Verdict]] = []
        self.at_question: Callable[[Action, Verdict], object] = lambda action, verdict: None

    def program(self, body: str, name: str = "hook", *, interpreter: str = "/bin/sh") -> str:
        """Write an executable script; return its path."""
        path = self.hooks / name
        path.write_text(f"#!{interpreter}\n{body}\n")
        path.chmod(0o755)
        return str(path)

    def hook(self, body: str, event: str = "before-call", **more: Any) -> HookDeclaration:
        """Declare a hook whose program is this script."""
        name = str(more.pop("id", f"hook-{len(self.declared) + 1}"))
        return self.declare(name, event, [self.program(body, name)], **more)

    def declare(self, name: str, event: str, command: Sequence[str], **more: Any) -> HookDeclaration:
        """Declare a hook."""
        layer = more.pop("layer", Layer.USER)
        table = {"id": name, "event": event, "command": list(command), "seconds": 60, **more}
        origin = Origin(file="config.toml", line=10 * len(self.declared) + 7)
        self.declared.append(replace(declared(table, FORMS), origin=origin, layer=layer))
        return self.declared[-1]

    def checks(self, redact: Callable[[str], str] = str, interrupt: Interrupt | None = None) -> Checks:
        """Return all that were declared."""
        return Checks(
            self.declared,
            workspace=str(self.workspace),
            environment=ENVIRONMENT,
            redact=redact,
            interrupt=interrupt,
            tell=self.told.append,
        )

    def run(self, *calls: tuple[str, Mapping[str, object]], **more: Any) -> RunResult:
        """Let a model make these calls, one in a turn, and return the result of the run; the log is whole."""
        with self.agent(*calls, **more) as agent:
            result = agent.run("go")
        found = verify(str(self.path))
        assert found.problem == "", found
        return result

    @contextmanager
    def agent(
        self,
        *calls: tuple[str, Mapping[str, object]],
        approver: Approver = deny_all,
        policy: bytes = POLICY,
        interrupt: Interrupt | None = None,
        secrets: Sequence[str] = (),
        **more: Any,
    ) -> Iterator[Agent]:
        """Give an agent whose model makes these calls, and is done."""

        def asked(action: Action, verdict: Verdict) -> Approval:
            self.asked.append((action, verdict))
            self.at_question(action, verdict)
            return approver(action, verdict)

        redactor = Redactor(secrets)
        with closing(ActionLog.open(str(self.path), redactor=redactor)) as log:
            yield Agent(
                model=Playing([ToolCall(id="", name=name, arguments=json.dumps(given)) for name, given in calls]),
                tools=builtin_tools(Workspace(str(self.workspace)), environment=ENVIRONMENT),
                policy=parse_policy(policy, "hooks.toml"),
                approver=approver if approver is deny_all else asked,
                log=log,
                checks=self.checks(redactor.redact, interrupt),
                interrupt=interrupt,
                **more,
            )

    def pressing(self, interrupt: Interrupt) -> threading.Thread:
        """Start to wait for a hook that makes the file `begun`; then the person presses Ctrl-C."""

        def press() -> None:
            while not (self.hooks / "begun").exists():
                time.sleep(0.005)
            interrupt.request()

        presser = threading.Thread(target=press)
        presser.start()
        return presser

    def records(self, kind: str) -> list[LogRecord]:
        """Return the records of a kind."""
        return [record for record in read_log(str(self.path)) if record["kind"] == kind]

    @property
    def results(self) -> list[str]:
        """What the model read of each call."""
        return [str(record["content"]) for record in self.records("outcome")]

    def told_to(self, name: str = "told.json") -> Any:
        """Return what a hook was told that has `KEEP` in its body."""
        return json.loads((self.hooks / name).read_text())
