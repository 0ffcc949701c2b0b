"""Make Codex trust our hooks, since it runs only trusted ones. Its own app server does it, and computes the hashes."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from harness import __version__
from harness.actions import JsonValue
from harness.errors import UsageError
from harness.record import Record
from harness.text.visible import visible_line

SECONDS = 20.0
"""Maximum seconds for one answer of the app server. It usually takes one second."""
END_SECONDS = 1.0
"""Maximum seconds for the app server to exit after its stdin is closed."""
MOST_BYTES = 8 * 1024 * 1024
BY_HAND = (
    "start codex, type /hooks, and trust the hooks of harness there: until then Codex runs none of them, without a word"
)


class CodexHook(Record):
    """One hook that Codex has found."""

    key: str
    command: str
    path: str
    """Path of the settings file that has the hook."""
    hash: str
    trust: str
    """`trusted`, `untrusted`, `modified`, `managed`."""

    @property
    def is_trusted(self) -> bool:
        """Whether Codex runs it."""
        return self.trust in ("trusted", "managed")


class AppServer:
    """`codex app-server` on stdio, as a `with` block. Raises UsageError for any unexpected behaviour."""

    def __init__(self, program: str, environment: Mapping[str, str], folder: str, *, seconds: float = SECONDS) -> None:
        """`folder` is the folder whose hooks are listed; `seconds` limits the wait for one answer."""
        self._command = [program, "app-server"]
        self._environment = dict(environment)
        self._folder = folder
        self._seconds = seconds
        self._unread = b""
        self._number = 0

    def __enter__(self) -> Self:
        """Start the app server."""
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._environment,
                cwd=self._folder,
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(f"codex cannot be started: {error.strerror}") from None
        try:
            client: JsonValue = {"name": "harness", "title": "harness", "version": __version__}
            self._ask("initialize", {"clientInfo": client})
            self._send({"method": "initialized"})
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the app server."""
        self._end()

    def hooks(self) -> Sequence[CodexHook]:
        """Return the hooks that Codex finds for the folder."""
        answer = self._ask("hooks/list", {"cwds": [self._folder]})
        hooks = [hook for item in _objects(answer.get("data")) for hook in _objects(item.get("hooks"))]
        return [
            CodexHook(
                key=str(item.get("key")),
                command=str(item.get("command")),
                path=str(item.get("sourcePath")),
                hash=str(item.get("currentHash")),
                trust=str(item.get("trustStatus")),
            )
            for item in hooks
        ]

    def trust(self, hooks: Sequence[CodexHook]) -> None:
        """Make Codex trust these hooks with their current content."""
        state: JsonValue = {hook.key: {"enabled": True, "trusted_hash": hook.hash} for hook in hooks}
        edit: JsonValue = {"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
        self._ask("config/batchWrite", {"edits": [edit]})

    def _ask(self, method: str, parameters: JsonValue) -> Mapping[str, JsonValue]:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": parameters})
        end = time.monotonic() + self._seconds
        while True:
            answer = self._line(method, end)
            if answer.get("id") != self._number or "method" in answer:
                continue
            result = answer.get("result")
            if isinstance(result, dict):
                return result
            raise UsageError(f"codex app-server refuses {method}: {visible_line(json.dumps(answer.get('error')), 500)}")

    def _send(self, message: JsonValue) -> None:
        stdin = self._process.stdin
        try:
            if stdin is not None:
                os.write(stdin.fileno(), json.dumps(message).encode() + b"\n")
        except OSError:
            raise UsageError("codex app-server ended before it was asked") from None

    def _line(self, method: str, end: float) -> Mapping[str, JsonValue]:
        """Return the next message that is a JSON object. Raises UsageError if none arrives before `end`."""
        stdout = self._process.stdout
        if stdout is None:
            raise TypeError("the process has no stdout")
        while True:
            line, newline, rest = self._unread.partition(b"\n")
            if newline:
                self._unread = rest
                try:
                    message = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(message, dict):
                    return message
                continue
            ready, _, _ = select.select([stdout], [], [], max(0.0, end - time.monotonic()))
            data = os.read(stdout.fileno(), 1 << 16) if ready else b""
            if not data or len(self._unread) > MOST_BYTES:
                raise UsageError(f"codex app-server does not answer {method}")
            self._unread += data

    def _end(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    pass
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)  # codex is a script that starts the server in this group
            self._process.wait()


def own_hooks(hooks: Sequence[CodexHook], path: str, command: str) -> Sequence[CodexHook]:
    """Return the hooks from the settings file at `path` whose command line is `command`."""
    real = os.path.realpath(path)
    return [hook for hook in hooks if hook.command == command and os.path.realpath(hook.path) == real]


def _objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
