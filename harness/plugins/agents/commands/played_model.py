"""A model that plays scenes for any agent: a local server without a key that speaks the agent's API."""

from __future__ import annotations

import json
from collections.abc import Sequence

from harness.messages import ToolCall
from harness.models.loopback import NO_JSON, HttpRequest, ScriptServer, Then, with_length
from harness.models.scripted import Player, Reply, replies
from harness.plugins.agents.commands.played_wires import WIRES, Answered, Heard, Prompted
from harness.record import Record, replace


class PlayedScene(Record):
    """The model's replies to one prompt: the calls of each step, then a text."""

    prompt: str
    """Text that occurs only in the prompt of this scene. The last user text that contains it begins the scene."""
    steps: tuple[tuple[ToolCall, ...], ...]
    """The calls of each reply. The next reply follows when all of them have results."""
    closing: str = "Done."


class PlayedModel(ScriptServer):
    """Plays scenes under `origin` for as long as its `with` block lasts.

    It keeps no state between requests: each request shows how far its scene has progressed. So an agent may repeat a
    request, and may have subagents with their own scenes. It may also send other requests, such as for a title or a
    summary: these offer no tools, and get the closing text.
    """

    def __init__(self, scenes: Sequence[PlayedScene]) -> None:
        """Create the server; it starts with its `with` block."""
        super().__init__(Player(replies()))
        self._scenes = tuple(scenes)
        self.heard: list[Heard] = []
        """All requests to the model, in order."""

    @property
    def origin(self) -> str:
        """The address without a path, since some agents add `/v1` themselves."""
        return self.base_url.removesuffix("/v1")

    def results(self) -> dict[str, str]:
        """Return the result of each call that the model received, by the ID of the call.

        The default ID has the numbers of the scene, of the step, and of the call in the step.
        """
        return {part.call_id: part.text for heard in self.heard for part in heard.parts if isinstance(part, Answered)}

    def respond(self, request: HttpRequest) -> tuple[bytes, Then]:
        """Answer a request to the model in any API. Any other request gets an empty list."""
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
        """Return the number of the current scene, the scene, and the number of its calls that have results."""
        replies_given = 0
        for part in reversed(heard.parts):
            if isinstance(part, Prompted):
                for number, scene in enumerate(self._scenes):
                    if scene.prompt in part.text:
                        return number, scene, replies_given
            else:
                replies_given += 1
        return 0, PlayedScene(prompt="", steps=()), 0  # there is no scene for the prompt
