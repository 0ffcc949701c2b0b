"""harness: a coding harness for tool-using language models, behind a permission gate.

A tool call passes from `Agent.run` (loop/agent.py) through `Gate.call` (gate/gate.py) to `run` of a tool (tools/). Each
folder is a room. Its `__init__` describes the contents, and docs/architecture.md draws the rooms.

The modules next to this one define the nouns that every room uses. Read messages.py and actions.py first. messages.py
has the values exchanged between model, loop and tools; actions.py has the tool call that the policy judges. actions.py
and grant_pattern.py define the words of policies, logs and questions. tool_kinds.py describes tools, model.py the
interface to a provider, history.py the conversation, limits.py the limits of a run, interrupt.py the user's request to
stop, errors.py the exceptions. record.py has the base of value classes, paths.py paths as text, safe_files.py
reads and writes of small files. These modules import no room.

The public names are imported on first use, so that `import harness` loads neither openai, rich nor prompt_toolkit.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False
"""A constant instead of the import from `typing`. `harness.__main__` must fix the import path before any import."""

is_program = False
"""Whether this process is the `harness` command. Its imports are guarded only then (own_code.py).

Another program that uses this package may import code that an agent wrote.
"""

if TYPE_CHECKING:
    from harness.actions import Decision
    from harness.errors import HarnessError, ModelError, PolicyError, ToolError, UsageError
    from harness.files.workspace import Workspace
    from harness.gate.approval import Approval, Approver, ScriptedAnswers, deny_all
    from harness.gate.options import GateOptions
    from harness.gate.registry import ToolRegistry
    from harness.gate.tool import Tool, ToolOutput
    from harness.limits import Limits
    from harness.log.action_log import ActionLog
    from harness.log.vocabulary import Answer
    from harness.loop.agent import Agent
    from harness.loop.observers import Observer, Observers
    from harness.loop.run import Session
    from harness.messages import Message, Role, RunResult, StopReason, ToolCall
    from harness.model import Prices, ToolSpec
    from harness.models.endpoint import Endpoint
    from harness.policy.loader import combine, load_policy
    from harness.policy.policy import Policy
    from harness.policy.verdict import Verdict, evaluate
    from harness.tools import builtin_tools

_HOMES = {
    "harness.log.action_log": ("ActionLog",),
    "harness.loop.agent": ("Agent",),
    "harness.log.vocabulary": ("Answer",),
    "harness.gate.approval": ("Approval", "Approver", "ScriptedAnswers", "deny_all"),
    "harness.errors": ("HarnessError", "ModelError", "PolicyError", "ToolError", "UsageError"),
    "harness.limits": ("Limits",),
    "harness.messages": ("Message", "Role", "RunResult", "StopReason", "ToolCall"),
    "harness.models.endpoint": ("Endpoint",),
    "harness.loop.observers": ("Observer", "Observers"),
    "harness.policy.policy": ("Policy",),
    "harness.policy.verdict": ("Verdict", "evaluate"),
    "harness.policy.loader": ("combine", "load_policy"),
    "harness.model": ("Prices", "ToolSpec"),
    "harness.actions": ("Decision",),
    "harness.loop.run": ("Session",),
    "harness.gate.options": ("GateOptions",),
    "harness.gate.registry": ("ToolRegistry",),
    "harness.gate.tool": ("Tool", "ToolOutput"),
    "harness.tools": ("builtin_tools",),
    "harness.files.workspace": ("Workspace",),
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
    "GateOptions",
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
