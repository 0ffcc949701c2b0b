"""Checks of what a caller passes to a gate, so that a wrong type is named in a sentence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from harness.gate.registry import ToolRegistry
from harness.log.action_log import ActionLog
from harness.policy.policy import Policy


def check_gate_parts(policy: object, approver: object, log: object) -> None:
    """Raise TypeError if a part of a gate has a wrong type."""
    if not isinstance(policy, Policy):
        raise TypeError(
            f"policy must be a Policy, not {_type_name(policy)}: {_call('load_policy', policy, 'ci')} reads one"
        )
    if not isinstance(log, ActionLog):
        raise TypeError(
            f"log must be an ActionLog, not {_type_name(log)}: {_call('ActionLog.open', log, '../actions.jsonl')} opens one"
        )
    if not callable(approver):
        raise TypeError(
            f"approver must be a function of an action and its verdict, not {_type_name(approver)}: "
            "`deny_all` is the one for runs without a person"
        )


def check_tools(tools: object) -> None:
    """Raise TypeError unless `tools` is a sequence of tools."""
    if isinstance(tools, str | ToolRegistry) or not isinstance(tools, Iterable):
        raise TypeError(
            f"tools must be a sequence of tools, not {_type_name(tools)}: builtin_tools(workspace) returns one"
        )
    for tool in tools:
        missing = [name for name in ("spec", "prepare", "run") if not hasattr(tool, name)]
        if missing or isinstance(tool, type):
            type_name = (
                f"the class {tool.__name__}; pass an object of it" if isinstance(tool, type) else _type_name(tool)
            )
            raise TypeError(f"tools must be objects with `spec`, `prepare` and `run`, not {type_name}")


def check_model(model: object) -> None:
    """Raise TypeError unless `model` can complete a conversation."""
    if not callable(getattr(model, "complete", None)) or isinstance(model, type):
        raise TypeError(
            f"model must be an object with `name` and `complete`, not {_type_name(model)}: "
            f"{_call('OpenAIChat', model, 'model-name')} makes one"
        )


def check_text(name: str, value: object) -> None:
    """Raise TypeError unless the argument `name` is text."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, not {_type_name(value)}")


def arguments_text(arguments: object) -> str:
    """Return the arguments of a call as JSON text. Raises TypeError if they are none."""
    if isinstance(arguments, str):
        return arguments
    if not isinstance(arguments, Mapping):
        raise TypeError(f"arguments must be a mapping or JSON text, not {_type_name(arguments)}")
    return json.dumps(dict(arguments), ensure_ascii=False)


def _type_name(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    return "None" if value is None else f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


def _call(name: str, value: object, example: str) -> str:
    return f"{name}({(value if isinstance(value, str) else example)!r})"
