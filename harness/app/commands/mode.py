"""/mode: choose the calls that need approval. Shift-Tab selects the next mode.

The modes are: as the policy says, edits without a question, also commands inside walls, or plan mode, which changes
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from harness.app.commands.conversation import Conversation
from harness.app.commands.plan import enter, leave
from harness.errors import UsageError, nearest
from harness.plugin import HelpGroup, SlashCommand
from harness.terminal.completion import Offered
from harness.terminal.styles import Tone
from harness.text.visible import visible_line
from harness.tool_kinds import BASH


class Mode(Enum):
    """The calls that need approval. INVARIANT: no mode runs every call unasked."""

    ASK = "ask"
    EDITS = "edits"
    WALLS = "walls"
    PLAN = "plan"


SAID = {
    Mode.ASK: "you are asked as the policy says",
    Mode.EDITS: "edits run unasked; protected files and commands still ask",
    Mode.WALLS: "calls in the workspace walls run unasked if undo covers them",
    Mode.PLAN: "nothing is changed until a plan is approved",
}
NEXT = "next"
"""Argument that selects the mode after the present one. Shift-Tab sends it while a turn runs."""


def mode_of(conversation: Conversation) -> Mode:
    """Return the present mode."""
    if conversation.plans:
        return Mode.PLAN
    return Mode(conversation.agent.gate.grants.mode or Mode.ASK.value)


def mode(conversation: Conversation, rest: str) -> None:
    """Print the mode, or change it. Raises UsageError, PolicyError and LogError."""
    now = mode_of(conversation)
    if not rest:
        conversation.say_line(f"mode {now.value}: {SAID[now]}")
        if not conversation.open_menu("/mode"):
            conversation.say("/mode NAME takes another; Tab lists them", Tone.QUIET)
        return
    if rest == NEXT:
        next_mode(conversation)
    else:
        words = [each_mode.value for each_mode in Mode]
        if rest.lower() not in words:
            raise UsageError(f"/mode: unknown mode {visible_line(rest, 50)!r}{nearest(rest.lower(), words)}")
        _switch(conversation, Mode(rest.lower()))
    current_mode = mode_of(conversation)
    conversation.say_line(f"mode {current_mode.value}: {SAID[current_mode]}", Tone.QUIET)


def next_mode(conversation: Conversation) -> None:
    """Switch to the next mode without a message. Raises PolicyError and LogError."""
    modes = list(Mode)
    _switch(conversation, modes[(modes.index(mode_of(conversation)) + 1) % len(modes)])


def _switch(conversation: Conversation, new_mode: Mode) -> None:
    if new_mode is mode_of(conversation):
        return
    leave(conversation)
    if new_mode is Mode.PLAN:
        enter(conversation)
        return
    conversation.agent.log.session = conversation.session.identity
    grants = conversation.agent.gate.grants
    grants.set_mode("" if new_mode is Mode.ASK else new_mode.value)
    if new_mode is Mode.WALLS and (gap := grants.walls_here(BASH.name).gap):
        conversation.say(f"commands still ask, since the walls have a gap: {gap}", Tone.WARNING)


def modes_to_choose(conversation: Conversation) -> Sequence[Offered]:
    """Return the modes with descriptions, for the menu."""
    now = mode_of(conversation)
    return [
        Offered(text=mode.value, label=mode.value, description=f"{'now: ' if mode is now else ''}{SAID[mode]}")
        for mode in Mode
    ]


COMMANDS = (
    SlashCommand(
        name="/mode",
        arguments="[ask|edits|walls|plan]",
        summary="calls that ask; Shift-Tab: the next",
        group=HelpGroup.RULES,
        run=mode,
        offers=modes_to_choose,
    ),
)
