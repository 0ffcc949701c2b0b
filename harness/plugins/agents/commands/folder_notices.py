"""Notices on an agent that starts in the current folder: settings that turn our hook off, and hooks of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.plugins.agents.guarded_agent import GuardedAgent
from harness.plugins.agents.off_switch import off_switches
from harness.plugins.agents.other_hooks import MEANING, hooks_of_ours, other_hooks
from harness.session.state import current_folder
from harness.terminal.console import Console
from harness.terminal.styles import Tone
from harness.text.visible import visible_line


def tell_other_hooks(agent: GuardedAgent, environment: Mapping[str, str], console: Console) -> None:
    """Print the hooks of others that an agent in the current folder runs before a call."""
    hooks = other_hooks(agent, environment, current_folder())
    if hooks:
        subject = "another hook runs" if len(hooks) == 1 else f"{len(hooks)} other hooks run"
        console.line(f"{agent.name}: {subject} before a call; {MEANING}:", Tone.WARNING)
    for hook in hooks:
        console.line(f"  {hook.words}")


def two_hooks(agent: GuardedAgent, environment: Mapping[str, str]) -> tuple[str, bool]:
    """Return a sentence on several hooks of ours in the current folder, and whether their policies differ.

    The sentence is empty for one hook.
    """
    policies = hooks_of_ours(agent, environment, current_folder())
    if len(policies) < 2:
        return "", False
    places = ", ".join(f"{path} ({policy or 'as for the prompt'})" for path, policy in policies.items())
    differ = len({*policies.values()}) > 1
    meaning = "different policies, so each call is refused; remove one" if differ else "one policy"
    return visible_line(f"{len(policies)} hooks of harness with {meaning}: {places}", 1_000), differ


def off_notices(agent: GuardedAgent, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each setting that turns the agent's hooks off in the current folder.

    Raises UsageError for a file that cannot be read.
    """
    override = f" (`harness hook run {agent.name}` overrides it)" if agent.held_start else ""
    for switch in off_switches(agent, environment, current_folder()):
        yield f"its hooks are off here: {switch.words}{override}"
