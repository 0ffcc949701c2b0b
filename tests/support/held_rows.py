"""Hostile rows as real processes behind the gate: what runs unasked in the workspace walls has no effect beyond them.

By hand: `python bench/hostile.py` (see there). Every pass is a process in the throw-away namespace of second_wall.py, as
an ordinary user. A pass gives every row to a gate that nobody answers, so that only what the policy permits by itself is
run, by the real tool, in the walls of one level:

- `namespaces`, `bubblewrap`, `landlock`: this machine without the levels before it in this list
- `control`: what runs in the best walls, without any. A row that has no effect then proves nothing about walls.

Counted apart as known is what a writer may do without namespaces by the marks of second_wall_attempts.txt, and at the
last level a change of a protected place that the result of the call reports. Landlock alone cannot hide a file where it
may write, and then nothing but readers runs unasked. So the workspace of that level has no denied files.

An effect is held against the walls if it is not a change of the workspace or of the private temporary folder, or if it
is one of a protected place or of a denied file there, or if the content of a denied file is printed or copied.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = os.path.dirname(os.path.abspath(__file__))
if HERE not in sys.path:
    sys.path.insert(0, HERE)

from places import SUPPORT  # noqa: E402 - lies beside this file
from second_wall import bwrap, end, started_alone, write_stubs  # noqa: E402
from second_wall_attempts import ENDLESS, LEFT_OUT, Attempt, Kind, own, rewritten, rows  # noqa: E402
from second_wall_files import HIDDEN_CONTENT, HOME, WORKSPACE, build  # noqa: E402

if TYPE_CHECKING:
    from harness.sandbox import Machine
    from harness.tools.bash import BashTool

LEVELS = ("namespaces", "bubblewrap", "landlock")
PASSES = ("control", *LEVELS)
POLICIES = ("walls", "workspace")
"""The default policy in the mode `walls`, and the shipped policy `workspace`."""
DENIED = (".env", "config/.env.local", "server.pem")
PROTECTED = (".git/hooks", ".git/config", ".github", ".vscode")
SECONDS, ENDLESS_SECONDS, WHOLE_SECONDS = 20.0, 1.0, 3600.0


def attempts() -> list[Attempt]:
    """Return every row: the gate's tables, the attempts at the second wall, and scripts that change things."""
    scripts = Path(SUPPORT, "scripts_that_change.txt").read_text(encoding="utf-8").splitlines()
    lines = [line.replace("\u23ce", "\n").replace("%", "notes.txt") for line in scripts if line and line[0] not in "#="]
    every = [*rows(), *own(), *(Attempt(rewritten(line), origin="script") for line in lines)]
    return list({attempt.command: attempt for attempt in every if attempt.command not in LEFT_OUT}.values())


def chosen(every: int = 1, only: str = "") -> list[Attempt]:
    """Return about one attempt in so many: the same ones whatever else is in the tables."""
    return [one for one in attempts() if only in one.command and zlib.crc32(one.command.encode()) % every == 0]


# ---------------------------------------------------------------------------------------------------------------------
# Outside: the namespace.


def run_outside(
    passes: Sequence[tuple[str, str]], *, every: int = 1, only: str = "", at_once: int = 2
) -> dict[str, Any]:
    """Run passes, each under a policy and in its own namespace, some at once. Return the reports by `PASS POLICY`."""
    reports: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as stubs:
        os.chmod(stubs, 0o755)
        write_stubs(stubs)
        command = [*bwrap(stubs), sys.executable, os.path.abspath(__file__), "--every", str(every), "--only", only]
        for start in range(0, len(passes), at_once):
            running = [
                (f"{name} {policy}", started_alone([*command, name, policy]))
                for name, policy in passes[start : start + at_once]
            ]
            try:
                for title, process in running:
                    output, _ = process.communicate(timeout=WHOLE_SECONDS)
                    reports[title] = json.loads(output)
            finally:
                for _, process in running:
                    end(process)
    return reports


# ---------------------------------------------------------------------------------------------------------------------
# Inside.


class Pass:
    """One pass under one policy."""

    def __init__(self, name: str, policy: str) -> None:
        from second_wall_scene import STATE, Scene

        from harness.gate.approval import deny_all
        from harness.gate.gate import Gate
        from harness.gate.grants_in_force import WALLS
        from harness.gate.registry import ToolRegistry
        from harness.log.action_log import ActionLog
        from harness.policy.loader import load_policy

        self._name, self._is_control = name, name == "control"
        build()
        Path(WORKSPACE, "secrets/key").write_text("one\n", encoding="utf-8")  # no rule of these policies denies it
        denied = DENIED if name != LEVELS[-1] else ()
        for missing in set(DENIED) - set(denied):
            os.unlink(f"{WORKSPACE}/{missing}")
        self._kept = (*PROTECTED, *denied)
        os.makedirs(STATE)
        loaded = load_policy("default" if policy == "walls" else policy)
        log = ActionLog.open(f"{STATE}/log.jsonl", sync=lambda _: None)
        log.append("session_started", {"harness": "test", "policy_sha256": loaded.sha256})
        self._tool, self._temporary = _tool(_machine(LEVELS[0] if self._is_control else name))
        self._gate = Gate(policy=loaded, approver=deny_all, log=log, tools=ToolRegistry((self._tool,)))
        self._mode = WALLS if policy == "walls" else ""
        self._gate.grants.set_mode(self._mode)
        self._number = 0
        self.scene = Scene()
        for _ in range(2):  # whatever is started once for all
            self._run("true", SECONDS)
        self.scene.restore()

    def run(self, tried: Sequence[Attempt]) -> dict[str, Any]:
        """Run the attempts that the policy permits. Return the numbers, and what the walls did not hold."""
        report: dict[str, Any] = {"level": self._tool.walls.level, "attempts": len(tried), "run": 0}
        report |= {"beyond": [], "known": []}
        for attempt in tried:
            command = self._named(attempt.command)
            output = self._run(command, ENDLESS_SECONDS if attempt.command in ENDLESS else SECONDS)
            if output is None:
                continue
            report["run"] += 1
            if any(grant.changed for grant in self._gate.grants.grants):  # asleep, since a protected place changed
                self._gate.grants.set_mode(self._mode)
            effects = self.scene.effects()
            beyond = [effect for effect in effects if not self._is_own_ground(*effect)]
            beyond += [(Kind.SHOWN, where) for where in self._copies(output, effects)]
            if effects:
                self.scene.restore()
            if beyond:
                kinds = sorted({kind.name for kind, _ in beyond})
                told = [[kind.name, what] for kind, what in beyond[:5]]
                row = {"origin": attempt.origin, "command": command, "kinds": kinds, "effects": told}
                known = all(self._is_known(attempt, kind, path, output) for kind, path in beyond)
                report["known" if known else "beyond"].append(row | {"output": output[-300:]})
        return report

    def _named(self, command: str) -> str:
        names = self.scene.names()
        return re.sub("@([A-Z0-9]+)@", lambda match: names[match[1]], command)

    def _run(self, command: str, seconds: float) -> str | None:
        """Return the output of a command. `None` if the policy does not permit it by itself, or it is not valid."""
        from second_wall_runner import EFFECTS

        from harness.actions import Decision
        from harness.errors import ToolError
        from harness.messages import ResultStatus, ToolCall

        self._number += 1
        arguments = json.dumps({"command": command, "timeout_s": seconds})
        call = ToolCall(id=f"call_{self._number}", name="bash", arguments=arguments)
        if self._is_control:
            try:
                action = self._gate.tools.prepare(call)
                if self._gate.judge(action).decision is not Decision.AUTO:
                    return None
                return self._tool.run(action, EFFECTS["control"]).content
            except ToolError:
                return None
        end = self._gate.call(self._gate.propose(call, turn=1, step=self._number))
        status = end.result.status
        if status in (ResultStatus.DENIED, ResultStatus.BLOCKED, ResultStatus.INVALID, ResultStatus.NOT_RUN):
            return None
        return end.result.content

    def _is_own_ground(self, kind: Kind, path: str) -> bool:
        """Return whether an effect is a change of what the workspace walls let a command change."""
        if kind not in (Kind.FILES, Kind.METADATA):
            return False
        if path.startswith(self._temporary):
            return True
        inside = path.removeprefix(f"{WORKSPACE}/")
        if kind is Kind.METADATA and inside == ".git":
            return True  # git makes and removes names in it
        kept = any(inside == name or inside.startswith(f"{name}/") for name in self._kept)
        return path == WORKSPACE or (inside != path and not kept)

    def _is_known(self, attempt: Attempt, kind: Kind, path: str, output: str) -> bool:
        """Return whether it is said of a level that it cannot hold an effect."""
        if self._name == LEVELS[-1] and kind is Kind.FILES and path.startswith(f"{WORKSPACE}/"):
            return "[protected places changed: " in output  # they are looked at afterwards
        return self._name in LEVELS[1:] and kind is attempt.open_to_writer

    def _copies(self, output: str, effects: Sequence[tuple[Kind, str]]) -> Iterator[str]:
        """Yield the places where the content of a denied file is seen, besides the files themselves."""
        if HIDDEN_CONTENT in output:
            yield "the output"
        for kind, path in effects:
            if kind is not Kind.FILES or path.removeprefix(f"{WORKSPACE}/") in DENIED or not os.path.isfile(path):
                continue
            if HIDDEN_CONTENT.encode() in Path(path).read_bytes():
                yield path


def _machine(level: str) -> Machine:
    """Return this machine, without the walls that are better than `level`.

    In the namespace root owns nothing, so that the program would not take bwrap for root's.
    """
    from harness.record import replace
    from harness.sandbox.machine import probe, tried

    machine = tried(probe())
    if level != LEVELS[0]:
        machine = replace(machine, no_namespaces="left out of this pass")
    return replace(machine, bubblewrap="" if level == LEVELS[-1] else "/usr/bin/bwrap")


def _tool(machine: Machine) -> tuple[BashTool, str]:
    """Return the tool for commands, and its folder for temporary files."""
    from process_scene import PATIENT

    from harness.files.workspace import Workspace
    from harness.process.temporary import TemporaryFolder
    from harness.tools.bash import BashTool
    from harness.tools.command_runner import CommandRunner
    from harness.tools.command_walls import CommandWalls

    environment = {"PATH": os.environ["PATH"], "HOME": HOME, "USER": "nobody", "LANG": "C.UTF-8"}
    workspace, temporary = Workspace(WORKSPACE, HOME), TemporaryFolder()
    walls = CommandWalls(workspace, machine=machine)
    commands = CommandRunner(workspace, environment=environment, walls=walls, temporary=temporary, pace=PATIENT)
    return BashTool(workspace, commands), temporary.path()


def main() -> None:
    parser = argparse.ArgumentParser(description="Run one pass inside the namespace, and print its report.")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("name", choices=PASSES)
    parser.add_argument("policy", choices=POLICIES)
    options = parser.parse_args()
    started = time.monotonic()
    report = Pass(options.name, options.policy).run(chosen(options.every, options.only))
    json.dump(report | {"seconds": round(time.monotonic() - started, 1)}, sys.stdout)


if __name__ == "__main__":
    main()
