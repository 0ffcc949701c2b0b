"""A model that says what a scene has it say, to any agent: on the loopback, without a key, over the agent's own wire."""

from __future__ import annotations

import json
from collections.abc import Sequence

from harness.messages import ToolCall
from harness.models.loopback import NO_JSON, HttpRequest, ScriptServer, Then, with_length
from harness.models.scripted import Player, Reply, replies
from harness.plugins.agents.commands.played_wires import WIRES, Answered, Heard, Prompted
from harness.record import Record, replace


class PlayedScene(Record):
    """The model's replies to one prompt: calls, step by step, then a text."""

    prompt: str
    """Words that no other text of the conversation has; the last of the person's texts that has them begins the scene."""
    steps: tuple[tuple[ToolCall, ...], ...]
    """The calls of each reply; the next reply follows when all of them were answered."""
    closing: str = "Done."


class PlayedModel(ScriptServer):
    """Plays scenes under `origin` for as long as its `with` block lasts.

    It keeps no state between requests: what an agent sends says how far its scene has come. So an agent may ask anew, ask
    beside (a title, a summary; no tools are offered there, and the closing text is the answer), and have subagents with
    scenes of their own.
    """

    def __init__(self, scenes: Sequence[PlayedScene]) -> None:
        """Take the scenes."""
        super().__init__(Player(replies()))
        self._scenes = tuple(scenes)
        self.heard: list[Heard] = []
        """Each request that was understood, in its order."""

    @property
    def origin(self) -> str:
        """The address without a path: some agents add `/v1` themselves."""
        return self.base_url.removesuffix("/v1")

    def results(self) -> dict[str, str]:
        """Return the result of each call as the model read it, by the call's id: the number of its scene, its step
        and its place.
        """
        return {part.call_id: part.text for heard in self.heard for part in heard.parts if isinstance(part, Answered)}

    def respond(self, request: HttpRequest) -> tuple[bytes, Then]:
        """Answer on every wire; a request that is not a question to the model gets an empty object."""
        wire = next((wire for ending, wire in WIRES.items() if request.path.endswith(ending)), None)
        if request.method != "POST" or wire is None:
            body = b"" if request.method == "HEAD" else b'{"object": "list", "data": [], "models": []}'
            return with_length(200, body), Then.KEEP
        try:
            request_body = json.loads(request.body)
        except (ValueError, RecursionError):
            return self.sent(NO_JSON, {})
        heard = wire.hear(request_body if isinstance(request_body, dict) else {})
        self.heard.append(heard)
        return wire.say(self._reply(heard), heard), Then.KEEP

    def _reply(self, heard: Heard) -> Reply:
        number, scene, replies_given = self._played(heard)
        for step, calls in enumerate(scene.steps if heard.offered else ()):
            if replies_given < len(calls):
                calls_named = (
                    replace(call, id=call.id or f"call_{number}-{step}-{place}") for place, call in enumerate(calls)
                )
                return Reply(calls=tuple(calls_named))
            replies_given -= len(calls)
        return Reply(text=scene.closing)

    def _played(self, heard: Heard) -> tuple[int, PlayedScene, int]:
        """Return the scene that is played, its number, and how many of its calls were answered."""
        replies_given = 0
        for part in reversed(heard.parts):
            if isinstance(part, Prompted):
                for number, scene in enumerate(self._scenes):
                    if scene.prompt in part.text:
                        return number, scene, replies_given
            else:
                replies_given += 1
        return 0, PlayedScene(prompt="", steps=()), 0  # what nobody wrote a scene for
