"""What is played to each agent to see what it tells a hook."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agent_calls import CODE_MODE, INNER_CODE, SHELL, Deeds, code_deeds, deeds
from agent_rig import AgentRig
from recorded_events import RecordedEvent, Sameness

from harness.messages import ToolCall


class Play(NamedTuple):
    """One session of an agent."""

    agent: str
    session: int
    """Its number among all."""
    code_mode: bool = False
    """Of Codex: whether its model is one of those that write programs."""

    def told(self, folder: Path) -> list[RecordedEvent]:
        """Play it, and return what the hook was told."""
        rig = AgentRig(self.agent, folder)
        steps: Deeds = code_deeds() if self.code_mode else deeds(self.agent, rig.workspace)
        inner: Sequence[Sequence[ToolCall]] = INNER_CODE if self.code_mode else ((SHELL[self.agent]("echo inner"),),)
        played = rig.play(list(steps.values()), inner=inner, more=CODE_MODE if self.code_mode else ())
        assert played.run.code == 0, played.run
        same = Sameness(rig.workspace, rig.home, self.session)
        return [same.of(self.agent, told.event, told.text) for told in played.told]


PLAYS = {
    "claude": Play("claude", 1),
    "codex": Play("codex", 2),
    "codex in code mode": Play("codex", 3, code_mode=True),
    "gemini": Play("gemini", 4),
    "qwen": Play("qwen", 5),
    "copilot": Play("copilot", 6),
    "opencode": Play("opencode", 7),
    "pi": Play("pi", 8),
    "kimi": Play("kimi", 9),
    "droid": Play("droid", 10),
    "cline": Play("cline", 11),
}
