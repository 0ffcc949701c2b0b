"""The parts of a session put together from flags and environment, in the order in which they can fail."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping

from harness.action_log import ActionLog
from harness.cli.policies import assemble
from harness.cli.provider import model_from, secrets_of
from harness.cli.signals import Signals
from harness.cli.state import State
from harness.interrupt import Interrupt
from harness.limits import Limits
from harness.models.openai_chat import OpenAIChat
from harness.policy import Policy
from harness.workspace import Workspace


class Parts:
    """What `run` and the prompt have in common. A policy that is wrong fails here, before any request."""

    def __init__(self, arguments: Namespace, environment: Mapping[str, str], *, fallback: str) -> None:
        """Raises UsageError, PolicyError or LogError."""
        self.environment = environment
        self.workspace = Workspace(arguments.cwd or os.getcwd(), environment.get("HOME"))
        self.state = State.of(environment)
        self.policy: Policy = assemble(self.state, self.workspace.root, named=arguments.policy, fallback=fallback)
        self.model: OpenAIChat = model_from(environment, model=arguments.model, base_url=arguments.base_url)
        self.limits = Limits(
            max_turns=arguments.max_turns, max_seconds=arguments.max_seconds, max_tokens=arguments.max_tokens
        )
        self.interrupt = Interrupt()
        self.signals = Signals(self.interrupt)
        self.log = ActionLog.open(
            arguments.log or self.state.new_log_path(self.workspace.root), secrets=secrets_of(environment)
        )
        if self.log.count:
            self.state.record_head(self.log, closed=False)


def close_log(state: State, log: ActionLog) -> None:
    """Close a log and keep its size and head outside it. Raises LogError if the head cannot be kept."""
    try:
        state.record_head(log)
    finally:
        log.close()
