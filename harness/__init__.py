"""harness: a coding harness for tool-using language models, behind a permission gate.

Names are imported when first used, so that `import harness` costs nothing: neither openai, rich nor prompt_toolkit.
"""

from __future__ import annotations

from harness.version import __version__ as __version__

TYPE_CHECKING = False  # type checkers take it for typing's; importing typing would double the start of --version
if TYPE_CHECKING:
    from harness.action_log import ActionLog
    from harness.agent import Agent
    from harness.approval import Answer, Approval, Approver, ScriptedAnswers, deny_all
    from harness.errors import HarnessError, ModelError, PolicyError, ToolError, UsageError
    from harness.limits import Limits
    from harness.messages import Message, Role, RunResult, StopReason, ToolCall
    from harness.models.endpoint import Endpoint
    from harness.observers import Observer, Observers
    from harness.policy import Policy, Verdict, evaluate
    from harness.policy_file import combine, load_policy
    from harness.prices import Prices
    from harness.rules import Decision
    from harness.session import Session
    from harness.tool import Tool, ToolOutput, ToolRegistry, ToolSpec
    from harness.tools import builtin_tools
    from harness.workspace import Workspace

_HOMES = {
    "harness.action_log": ("ActionLog",),
    "harness.agent": ("Agent",),
    "harness.approval": ("Answer", "Approval", "Approver", "ScriptedAnswers", "deny_all"),
    "harness.errors": ("HarnessError", "ModelError", "PolicyError", "ToolError", "UsageError"),
    "harness.limits": ("Limits",),
    "harness.messages": ("Message", "Role", "RunResult", "StopReason", "ToolCall"),
    "harness.models.endpoint": ("Endpoint",),
    "harness.observers": ("Observer", "Observers"),
    "harness.policy": ("Policy", "Verdict", "evaluate"),
    "harness.policy_file": ("combine", "load_policy"),
    "harness.prices": ("Prices",),
    "harness.rules": ("Decision",),
    "harness.session": ("Session",),
    "harness.tool": ("Tool", "ToolOutput", "ToolRegistry", "ToolSpec"),
    "harness.tools": ("builtin_tools",),
    "harness.workspace": ("Workspace",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ActionLog",
    "Agent",
    "Answer",
    "Approval",
    "Approver",
    "Decision",
    "Endpoint",
    "HarnessError",
    "Limits",
    "Message",
    "ModelError",
    "Observer",
    "Observers",
    "Policy",
    "PolicyError",
    "Prices",
    "Role",
    "RunResult",
    "ScriptedAnswers",
    "Session",
    "StopReason",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolOutput",
    "ToolRegistry",
    "ToolSpec",
    "UsageError",
    "Verdict",
    "Workspace",
    "builtin_tools",
    "combine",
    "deny_all",
    "evaluate",
    "load_policy",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562)."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'harness' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value
