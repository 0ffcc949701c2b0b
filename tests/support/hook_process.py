"""`harness hook` and `harness exec` as an agent starts them: processes of their own, over one session of Claude Code."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from program import Done, Program

from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.log.verify import verify
from harness.plugins.agents.guarded_agent import REFUSED


class Hooked:
    """A workspace whose agent asks our hook, and runs what it was told to run."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.workspace = program.workspace
        (self.workspace / ".git").mkdir()
        (self.workspace / "f.txt").write_text("alpha\n")
        program.environment |= {"CLAUDE_PROJECT_DIR": str(self.workspace), "CLAUDE_CODE_SESSION_ATTENDED": "1"}

    @property
    def environment(self) -> dict[str, str]:
        """What the agent has."""
        return self.program.environment

    @property
    def session(self) -> Path:
        """The folder of the only session."""
        (folder,) = self.program.state.glob("harness/agents/claude-*")
        return folder

    def event(self, name: str = "PreToolUse", command: str = "ls", use_id: str = "c1", **more: object) -> bytes:
        """Return an event about a shell command, as Claude Code sends it."""
        fields = {
            "session_id": "S",
            "cwd": str(self.workspace),
            "hook_event_name": name,
            "permission_mode": "default",
            "tool_name": "Bash",
            "tool_input": {"command": command},
            "tool_use_id": use_id,
            **more,
        }
        return json.dumps(fields).encode()

    def start(self, *flags: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start the hook; it reads its event from a pipe."""
        return self.program.start("hook", "claude", *flags, **{"stdin": subprocess.PIPE, **options})

    def hook(self, data: bytes, *flags: str, **options: Any) -> Done:
        """Give an event to the hook, and return what it left behind."""
        return finished(self.start(*flags, **options), data)

    def words(self, command: str, use_id: str = "c1", **more: Any) -> list[str]:
        """Have a command judged, and return the words of `harness exec` that run it."""
        done = self.hook(self.event(command=command, use_id=use_id, **more))
        assert done.code == 0, done
        return exec_words(done)

    def exec(self, words: Sequence[str], **options: Any) -> Done:
        """Run `harness exec` with these words, and return what it left behind."""
        return finished(self.program.start(*words, **{"stdin": subprocess.PIPE, **options}))

    def run(self, command: str, use_id: str = "c1", **options: Any) -> Done:
        """Have a command judged, and run it as the agent does."""
        return self.exec(self.words(command, use_id), **options)

    def records(self) -> list[LogRecord]:
        """Return the records of all logs, each of which verifies."""
        found: list[LogRecord] = []
        for path in self.program.logs():
            report = verify(str(path))
            assert report.broken_line is None, report
            found += read_log(str(path))
        return found

    def outcomes(self) -> dict[int, tuple[object, object]]:
        """Return status and exit code of each call that has an outcome."""
        return {
            int(str(record["call"])): (record["status"], record.get("exit_code"))
            for record in self.records()
            if record["kind"] == "outcome"
        }


def finished(process: subprocess.Popen[bytes], data: bytes = b"") -> Done:
    """Wait for the end of a process that is given `data`, and return what it left behind."""
    try:
        out, err = process.communicate(data, timeout=300)
    except BrokenPipeError:  # it wanted none of it
        out, err = process.communicate(timeout=300)
    return Done(process.returncode, (out or b"").decode("utf-8", "replace"), (err or b"").decode("utf-8", "replace"))


def exec_words(done: Done) -> list[str]:
    """Return the words of `harness exec` in an answer that rewrites a command: `exec --ticket NAME -- COMMAND`."""
    said: Mapping[str, Any] = json.loads(done.out)["hookSpecificOutput"]
    words = shlex.split(said["updatedInput"]["command"])
    begin = words.index("exec")
    return words[begin : begin + 5]


def is_refusal(done: Done) -> bool:
    """Say whether an agent takes this for a refusal: all of them obey exactly this (other_agents, rule 2)."""
    return done.code == REFUSED and done.out == "" and done.err.strip() != ""
