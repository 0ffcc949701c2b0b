"""harness: a coding harness for tool-using language models, behind a permission gate.

A tool call passes from `Agent.run` (loop/agent.py) through `Gate.call` (gate/gate.py) to `run` of a tool (tools/). Each
folder is a room. Its `__init__` describes the contents, and docs/architecture.md draws the rooms.

The modules next to this one define the nouns that every room uses. Read messages.py and actions.py first. messages.py
has the values exchanged between model, loop and tools; actions.py has the tool call that the policy judges. actions.py
and grant_pattern.py define the words of policies, logs and questions. tool_kinds.py describes tools, model.py the
interface to a provider, history.py the conversation, limits.py the limits of a run, interrupt.py the user's request to
stop, errors.py the exceptions. record.py has the base of value classes, paths.py paths as text, safe_files.py
reads and writes of small files. These modules import no room.

The names in `__all__` are public; docs/library.md promises them. Everything else is private and may change. The public
names are imported on first use, so that `import harness` loads neither openai, rich nor prompt_toolkit.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False
"""A constant instead of the import from `typing`. `harness.__main__` must fix the import path before any import."""

is_program = False
"""Whether this process is the `harness` command. Its imports are guarded only then (own_code.py).

Another program that uses this package may import code that an agent wrote.
"""

if TYPE_CHECKING:
    from harness.actions import Access, Action, Decision, Effects, JsonValue, ToolUse
    from harness.audit.calls import Fate, LoggedCall, Who
    from harness.audit.log_reader import LogReader
    from harness.errors import (
        CutReply,
        GateError,
        HarnessError,
        LogError,
        ModelError,
        PolicyError,
        ToolError,
        UsageError,
        WorkspaceError,
    )
    from harness.files.workspace import Workspace
    from harness.gate.approval import Approval, Approver, ScriptedAnswers, deny_all
    from harness.gate.gated_tools import GatedTools
    from harness.gate.options import GateOptions
    from harness.gate.registry import ToolRegistry
    from harness.gate.tool import Tool, ToolOutput
    from harness.limits import Limits
    from harness.log.action_log import ActionLog
    from harness.log.order import LogRecord
    from harness.log.verify import Verification
    from harness.log.vocabulary import Answer
    from harness.loop.agent import Agent
    from harness.loop.observers import Observer, Observers
    from harness.loop.run import Session
    from harness.messages import (
        FinishReason,
        Message,
        ModelResponse,
        ResultStatus,
        Role,
        RunResult,
        StopReason,
        ToolCall,
        ToolResult,
        Usage,
    )
    from harness.model import Model, Prices, Retry, ToolSpec
    from harness.models.endpoint import Endpoint
    from harness.models.openai_chat import OpenAIChat
    from harness.models.scripted_model import ScriptedModel
    from harness.policy.loader import load_policy, parse_policy
    from harness.policy.policy import Policy, combine
    from harness.policy.verdict import Verdict, evaluate
    from harness.text.visible import visible
    from harness.tool_kinds import Does, ToolKind
    from harness.tools import builtin_tools

_HOMES = {
    "harness.actions": "Access Action Decision Effects JsonValue ToolUse",
    "harness.audit.calls": "Fate LoggedCall Who",
    "harness.audit.log_reader": "LogReader",
    "harness.errors": "CutReply GateError HarnessError LogError ModelError PolicyError ToolError UsageError WorkspaceError",
    "harness.files.workspace": "Workspace",
    "harness.gate.approval": "Approval Approver ScriptedAnswers deny_all",
    "harness.gate.gated_tools": "GatedTools",
    "harness.gate.options": "GateOptions",
    "harness.gate.registry": "ToolRegistry",
    "harness.gate.tool": "Tool ToolOutput",
    "harness.limits": "Limits",
    "harness.log.action_log": "ActionLog",
    "harness.log.order": "LogRecord",
    "harness.log.verify": "Verification",
    "harness.log.vocabulary": "Answer",
    "harness.loop.agent": "Agent",
    "harness.loop.observers": "Observer Observers",
    "harness.loop.run": "Session",
    "harness.messages": "FinishReason Message ModelResponse ResultStatus Role RunResult StopReason ToolCall ToolResult Usage",
    "harness.model": "Model Prices Retry ToolSpec",
    "harness.models.endpoint": "Endpoint",
    "harness.models.openai_chat": "OpenAIChat",
    "harness.models.scripted_model": "ScriptedModel",
    "harness.policy.loader": "load_policy parse_policy",
    "harness.policy.policy": "Policy combine",
    "harness.policy.verdict": "Verdict evaluate",
    "harness.text.visible": "visible",
    "harness.tool_kinds": "Does ToolKind",
    "harness.tools": "builtin_tools",
}
"""The public names of each module, separated by spaces."""
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Access",
    "Action",
    "ActionLog",
    "Agent",
    "Answer",
    "Approval",
    "Approver",
    "CutReply",
    "Decision",
    "Does",
    "Effects",
    "Endpoint",
    "Fate",
    "FinishReason",
    "GateError",
    "GateOptions",
    "GatedTools",
    "HarnessError",
    "JsonValue",
    "Limits",
    "LogError",
    "LogReader",
    "LogRecord",
    "LoggedCall",
    "Message",
    "Model",
    "ModelError",
    "ModelResponse",
    "Observer",
    "Observers",
    "OpenAIChat",
    "Policy",
    "PolicyError",
    "Prices",
    "ResultStatus",
    "Retry",
    "Role",
    "RunResult",
    "ScriptedAnswers",
    "ScriptedModel",
    "Session",
    "StopReason",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolKind",
    "ToolOutput",
    "ToolRegistry",
    "ToolResult",
    "ToolSpec",
    "ToolUse",
    "Usage",
    "UsageError",
    "Verdict",
    "Verification",
    "Who",
    "Workspace",
    "WorkspaceError",
    "builtin_tools",
    "combine",
    "deny_all",
    "evaluate",
    "load_policy",
    "parse_policy",
    "visible",
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
