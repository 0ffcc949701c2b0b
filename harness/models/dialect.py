"""Dialect: one of the APIs, as one server speaks it: what a conversation is in it, and what a reply; sends nothing."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar, Protocol

from harness.messages import Message
from harness.models.assembly import Assembly
from harness.models.endpoint import Endpoint, Quirks
from harness.models.failures import Refusal
from harness.models.lessons import Lesson, learned
from harness.tool import ToolSpec


class Bodies(Protocol):
    """A conversation as the API's request bodies."""

    @property
    def call_ids(self) -> AbstractSet[str]:
        """The ids of all calls in the messages of the last request."""
        ...

    def adapt(self, quirks: Quirks) -> None:
        """Write the next bodies as these quirks want them."""
        ...

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> bytes:
        """Return the body of a request."""
        ...


class Dialect:
    """What the APIs have in common; each says where its requests go, what may be learned, and what a reply is."""

    path: ClassVar[str]
    """Where requests go, below the base URL."""
    lessons: ClassVar[tuple[Lesson, ...]]

    def __init__(self, endpoint: Endpoint, bodies: Bodies) -> None:
        """Take where the server is, and the conversation."""
        self.quirks = endpoint.quirks
        """What the server wants otherwise, with what its refusals taught."""
        self.bounds = endpoint.bounds
        self._bodies = bodies

    @property
    def call_ids(self) -> AbstractSet[str]:
        """The ids of all calls in the messages of the last request."""
        return self._bodies.call_ids

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> bytes:
        """Return the body of a request."""
        return self._bodies.request(messages, tools)

    def assembly(self, secret: str) -> Assembly:
        """Return what puts the next reply together, and repeats the secret in no error text."""
        raise NotImplementedError

    def learn(self, refusal: Refusal, messages: Sequence[Message]) -> bool:  # noqa: ARG002 - for those that look
        """Take what was said instead of a reply to `messages`; say whether their request is another one now.

        INVARIANT: there is an end to what can be learned, so that the request is not sent for ever.
        """
        quirks = learned(self.quirks, refusal, self.lessons)
        if quirks == self.quirks:
            return False
        self.quirks = quirks
        self._bodies.adapt(quirks)
        return True
