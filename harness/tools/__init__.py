"""The four tools, put together for one workspace; nothing here runs anything."""

from __future__ import annotations

from collections.abc import Mapping

from harness.limits import Limits
from harness.tool import Tool
from harness.tools.bash import BashTool
from harness.tools.edit_file import EditFileTool
from harness.tools.read_file import ReadFileTool
from harness.tools.write_file import WriteFileTool
from harness.workspace import Workspace

BUILTIN = ("bash", "read_file", "write_file", "edit_file")
"""The names of the tools that ship; each is a module of this package."""


def builtin_tools(
    workspace: Workspace,
    *,
    limits: Limits = Limits(),  # noqa: B008 - a Limits never changes
    environment: Mapping[str, str] | None = None,
) -> tuple[Tool, ...]:
    """Return the four tools for `workspace`, in the order of `BUILTIN`.

    `limits` bounds the seconds of a command and the characters of a result. `environment` is where commands get their few
    variables from (PATH, HOME, locale; never keys): this process's where it is None.
    """
    return (
        BashTool(workspace, limits=limits, environment=environment),
        ReadFileTool(workspace, limits=limits),
        WriteFileTool(workspace),
        EditFileTool(workspace),
    )
