"""The user's templates: one for the prompt of a run, one for tool results."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence

from harness.errors import UsageError
from harness.limits import Limits
from harness.messages import ResultStatus, ToolResult
from harness.session.config.config_file import Setting
from harness.session.config.settings import Settings
from harness.session.system_prompt import template_text
from harness.session.words.template import fill, variables


def session_values(workspace: str, tools: Sequence[str], policy: str, limits: Limits) -> dict[str, str]:
    """Return the variables that every template has. A limit in `limits` that is not set is `no bound`."""
    filled_limits = limits.filled()
    bounds = {
        "max_turns": filled_limits.max_turns,
        "max_seconds": filled_limits.max_seconds,
        "max_tokens": filled_limits.max_tokens,
        "max_cost": filled_limits.max_cost,
        "command_seconds": filled_limits.command_seconds,
        "result_characters": filled_limits.result_characters,
    }
    return {
        "workspace": workspace,
        "date": time.strftime("%Y-%m-%d"),
        "platform": sys.platform,
        "tools": ", ".join(tools),
        "policy": policy,
        **{name: "no bound" if bound is None else f"{bound:g}" for name, bound in bounds.items()},
    }


class Templates:
    """The templates of a session, read and tried at its start. Without a template, texts stay unchanged."""

    def __init__(self, settings: Settings, values: Mapping[str, str], workspace: str) -> None:
        """Read the templates.

        Raises UsageError for one that cannot be read, has an unknown variable, or does not use its own text ({{task}} or
        {{result}}).
        """
        self._values = values
        self._task = _read(settings.task_template, workspace)
        self._result = _read(settings.result_template, workspace)
        self.task("")
        if self._result is not None:
            self.result("", ToolResult(call_id="", status=ResultStatus.OK, content=""))
        _check_has(self._task, "task")
        _check_has(self._result, "result")

    def task(self, prompt: str) -> str:
        """Return the prompt of a run for the model. {{task}} is the user's prompt."""
        return prompt if self._task is None else self._filled(self._task, {"task": prompt})

    @property
    def has_result(self) -> bool:
        """Whether results have a template."""
        return self._result is not None

    def result(self, tool: str, result: ToolResult) -> str:
        """Return the result text of a call for the model. {{result}} is the tool's own text."""
        if self._result is None:
            return result.content
        result_values = {
            "result": result.content,
            "tool": tool,
            "status": result.status.value,
            "exit_code": "" if result.exit_code is None else str(result.exit_code),
            "seconds": f"{(result.duration_ms or 0) / 1000:.1f}",
        }
        return self._filled(self._result, result_values)

    def _filled(self, template: tuple[str, str], call_values: Mapping[str, str]) -> str:
        path, text = template
        return fill(text, {**self._values, **call_values}, name=path)


def _read(setting: Setting[str], workspace: str) -> tuple[str, str] | None:
    return (setting.value, template_text(setting, workspace).rstrip("\n")) if setting.value else None


def _check_has(template: tuple[str, str] | None, name: str) -> None:
    if template is not None and name not in variables(template[1]):
        raise UsageError(f"{template[0]}: missing {{{{{name}}}}}, without which the model does not get the {name}")
