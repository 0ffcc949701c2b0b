"""The texts among the arguments of a tool, resolved in a workspace: `tool_arguments` of policy/ takes a workspace."""

from harness.policy.tool_arguments import tool_arguments

__all__ = ["tool_arguments"]
