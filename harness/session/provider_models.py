"""The models of a session: the one in its settings, those chosen with `/model`, and one for each parallel helper."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from harness.errors import UsageError
from harness.interrupt import Interrupt
from harness.model import Model, OwnModel
from harness.policy.policy import Policy, denies_altogether
from harness.session.config.provider import model_from
from harness.session.config.settings import Settings
from harness.session.session_tools import SessionTools
from harness.tool_kinds import BASH

if TYPE_CHECKING:
    from harness.models.anthropic_messages import AnthropicMessages
    from harness.models.openai_chat import OpenAIChat
    from harness.models.openai_responses import OpenAIResponses
    from harness.models.text_calls import TextCalls

_Model = TypeVar("_Model", bound=Model)


class ProviderModels:
    """Makes the models that settings name, for the tools of one session."""

    def __init__(self, tools: SessionTools) -> None:
        self.tools = tools
        self._named_model: OpenAIChat | OpenAIResponses | AnthropicMessages | None = None

    def first_model(self) -> OpenAIChat | OpenAIResponses | AnthropicMessages:
        """Return the model that the settings name at the beginning. Raises UsageError as `model_from` does."""
        if self._named_model is None:
            place = self.tools.place
            self._named_model = self._make(place.settings, place.interrupt, self.tools.front.countdown)
        return self._named_model

    def of(self, settings: Settings, policy: Policy) -> Model:
        """Return the model that `settings` name.

        Raises UsageError as `model_from` does, and if under `policy` the model could not call any tool.
        """
        return self.calling(
            self._make(settings, self.tools.place.interrupt, self.tools.front.countdown), settings, policy
        )

    def another(self, settings: Settings, policy: Policy, interrupt: Interrupt) -> OwnModel:
        """Return another model, stopped by `interrupt`, for a helper that runs beside others."""
        return self.calling(self._make(settings, interrupt, interrupt.sleep), settings, policy)

    def calling(self, model: _Model, settings: Settings, policy: Policy) -> _Model | TextCalls:
        """Return the model, wrapped if `settings` ask for calls as text. Raises UsageError if it could not call any tool."""
        if settings.calls.value != "text":
            return model
        from harness.models.text_calls import TextCalls

        problem = ""
        if all(tool.spec.name != BASH.name for tool in self.tools.tools):
            problem = f"{BASH.name} is not among the tools ({self.tools.chosen.origin})"
        elif denies_altogether(policy, BASH.name):
            problem = f"the policy {policy.name} refuses every call of {BASH.name}"
        if problem:
            raise UsageError(f"{settings.calls.origin}: the calls of such a model are commands, and {problem}")
        return TextCalls(model)

    def warm_up(self) -> None:
        """Load everything that the first request needs. May be called in any thread."""
        if self._named_model is not None:
            self._named_model.warm_up()

    def close(self) -> None:
        """Close the connections of the model that was named at the beginning."""
        if self._named_model is not None:
            self._named_model.close()

    def _make(
        self, settings: Settings, interrupt: Interrupt, sleep: Callable[[float], None]
    ) -> OpenAIChat | OpenAIResponses | AnthropicMessages:
        return model_from(
            settings,
            self.tools.place.environment,
            sleep=sleep,
            stops=lambda: interrupt.stops,
            attachments=self.tools.attachments.bytes_of,
        )
