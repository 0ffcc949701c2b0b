"""/quit: leave; it only says so, the prompt ends the session."""

from __future__ import annotations

from harness.cli.commands.conversation import Conversation


def leave(conversation: Conversation, rest: str) -> None:  # noqa: ARG001 - the signature of a command
    """Leave after this command."""
    conversation.leaving = True
