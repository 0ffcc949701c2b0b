"""The plugins that ship, by the names of their modules. Nothing is imported before it is asked for.

This is the only module outside of harness/plugins that names one of them (tests/test_imports.py). It imports nothing, so that
every room may read it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.checks.hook_form import HookForm
    from harness.plugin import Plugin, SessionPart, SettingsSection, ToolOffer
    from harness.tools.file_reader import AttachmentKeeper, FileReader

TOOLS: Mapping[str, str] = {"web_fetch": "harness.plugins.media.plugin"}
"""The module of each tool that a plugin offers, by the name of the tool."""
READERS = ("harness.plugins.media.plugin",)
"""The modules of the plugins that read files which are not text."""
SECTIONS = {"mcp.servers": "harness.plugins.mcp.section"}
"""The module of each table of the configuration that a plugin reads, by the key of the table."""
PROJECT_FILES = {".mcp.json": "mcp.servers"}
"""Files of a project whose entries belong to such a table."""
RUN_OTHERWISE: Mapping[str, tuple[str, str]] = dict.fromkeys(
    ("task", "out"), ("harness.plugins.fleet.batch.task_run", "run_task")
)
"""Module and function that do `harness run` in another way, by the flag that asks for it."""
HOOK_FORMS = {"claude": "harness.plugins.agents.claude_hooks"}
"""The module of each further form of a hook's JSON (harness.checks.hook_form), by the value of `form`."""
STATE_FOLDERS = ("mcp",)
"""Folders that plugins have in the state folder (harness.session.state), by name."""
_PERMISSION_PROMPT = ("harness.plugins.agents.permission_prompt", "opened_prompt")


def plugin_in(module: str) -> Plugin:
    """Import a module and return its constant PLUGIN."""
    plugin: Plugin = import_module(module).PLUGIN
    return plugin


def tool_offers(names: Collection[str]) -> list[ToolOffer]:
    """Return the offers of the tools with these names, in the order of TOOLS."""
    modules = dict.fromkeys(module for name, module in TOOLS.items() if name in names)
    return [offer for module in modules for offer in plugin_in(module).tools if offer.kind.name in names]


def file_readers(keeper: AttachmentKeeper | None = None) -> tuple[FileReader, ...]:
    """Return the readers of files that are not text; `keeper` stores what the model sees of them besides text."""
    makers = [plugin_in(module).readers for module in READERS]
    return tuple(reader for make in makers if make is not None for reader in make(keeper))


def shown_endings() -> str:
    """Return a regular expression for the endings of files that the model can be shown, without the dot."""
    return "|".join(ending for module in READERS for ending in plugin_in(module).shown_endings)


def function_in(module: str, name: str) -> Callable[..., Any]:
    """Import a module and return a function of it."""
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def permission_prompt(*given: Any) -> Any:
    """Return the tool by which a served client asks whether calls that it carries out itself may run."""
    return function_in(*_PERMISSION_PROMPT)(*given)


def hook_form(name: str) -> HookForm:
    """Return the form of HOOK_FORMS that has this name."""
    form: HookForm = import_module(HOOK_FORMS[name]).FORM
    return form


def section_of(key: str) -> SettingsSection:
    """Import the plugin that a table of the configuration belongs to, and return its section."""
    section: SettingsSection = import_module(SECTIONS[key]).SECTION
    return section


def part_of(key: str) -> SessionPart:
    """Return the part that a session gets for the entries of a table."""
    part: SessionPart = import_module(SECTIONS[key]).PART
    return part
