"""harness: a coding harness for tool-using language models, behind a permission gate.

The road of a call is `Agent.run` (loop/agent.py), `Gate.call` (gate/gate.py), `run` of a tool (tools/). Each folder is a room,
and its `__init__` says what is inside; docs/architecture.md draws them.

The modules beside this one are the nouns that every room uses. Read messages.py and actions.py first: what passes between
model, loop and tools, and what is judged. actions.py and grant_pattern.py have the words of policies, logs and questions,
tool_kinds.py has what a tool is, model.py what the loop asks of a provider,
history.py the conversation, limits.py the bounds of a run, interrupt.py a person's wish to stop, errors.py the exceptions.
record.py, paths.py, safe_files.py and removal.py are tools of the house: values, paths as text, small files, and how a folder
goes. No noun imports a room.

The public names are imported when first used, so that `import harness` loads neither openai, rich nor prompt_toolkit.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False
"""Not from `typing`: `harness.__main__` settles first from where modules may be imported."""

is_program = False
"""Whether this process is the `harness` command. Only then its imports are guarded (own_code.py): another program may well
import what an agent wrote."""

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
