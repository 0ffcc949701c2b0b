"""A server for several conversations at once: each has a script of its own, found by what was said in it first."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Any

from process_scene import ENOUGH

from harness.models.loopback import ScriptServer
from harness.models.scripted import Player, Reply, ScriptedAnswer, replies


class TaskServer(ScriptServer):
    """Plays a script to each conversation."""

    def __init__(
        self, scripts: Mapping[str, tuple[ScriptedAnswer, ...]], *, together: Collection[str] = (), silent: str = ""
    ) -> None:
        """Take the scripts by task. The first requests of the tasks `together` are answered when all of them are there: so it
        is proved that they are worked on at once. A request of `silent` is never answered, as long as the server goes on.
        """
        self.players = {task: Player(replies(*script)) for task, script in scripts.items()}
        super().__init__(Player(replies()), fragment=7)
        self._together = threading.Barrier(max(1, len(together)))
        self._waiting = set(together)
        self._silent = silent
        self.reached_silence = threading.Event()
        self._over = threading.Event()
        self._turns = threading.Lock()

    def play(self, asked: object) -> ScriptedAnswer:
        """Answer by the conversation that a request is of."""
        messages: list[Any] = asked["messages"] if isinstance(asked, dict) else []
        task = next(str(message["content"]) for message in messages if message["role"] == "user")
        if task == self._silent:
            self.reached_silence.set()
            self._over.wait(ENOUGH)
            return Reply(text="too late")
        with self._turns:
            waits = task in self._waiting
            self._waiting.discard(task)
        if waits:
            self._together.wait(ENOUGH)
        with self._turns:
            return self.players[task].answer(asked)

    def __exit__(self, *about: object) -> None:
        """Let go of whoever waits."""
        self._over.set()
        super().__exit__(None, None, None)
