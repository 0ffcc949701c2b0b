"""The plugins that ship. Each is imported on first use. Their modules are listed in harness/shipped.py."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from harness.shipped import HOOK_FORMS, JOB, PERMISSION_PROMPT, READERS, REPORTS, SECTIONS, TOOLS

if TYPE_CHECKING:
    from harness.checks.hook_form import HookForm
    from harness.plugin import Plugin, ReportForm, SessionPart, SettingsSection, ToolOffer
    from harness.tools.file_reader import AttachmentKeeper, FileReader


def plugin_in(module: str) -> Plugin:
    """Import a module and return its constant PLUGIN."""
    plugin: Plugin = import_module(module).PLUGIN
    return plugin


def tool_offers(names: Collection[str]) -> list[ToolOffer]:
    """Return the offers of the tools with these names, in the order of TOOLS."""
    modules = dict.fromkeys(module for name, module in TOOLS.items() if name in names)
    return [offer for module in modules for offer in plugin_in(module).tools if offer.kind.name in names]


def file_readers(keeper: AttachmentKeeper | None = None) -> tuple[FileReader, ...]:
    """Return the readers of files that are not text. `keeper` stores pictures of them for the model."""
    makers = [plugin_in(module).readers for module in READERS]
    return tuple(reader for make in makers if make is not None for reader in make(keeper))


def shown_endings() -> str:
    """Return a regular expression for the extensions (without dot) of files that can be shown to the model."""
    return "|".join(ending for module in READERS for ending in plugin_in(module).shown_endings)


def permission_prompt(*arguments: Any) -> Any:
    """Return the permission prompt: the tool with which a served client asks whether its own calls may run."""
    return import_module(PERMISSION_PROMPT).opened_prompt(*arguments)


def hook_form(name: str) -> HookForm:
    """Import and return the hook form with this name in HOOK_FORMS."""
    form: HookForm = import_module(HOOK_FORMS[name]).FORM
    return form


def section_of(key: str) -> SettingsSection:
    """Import the plugin to which the configuration table `key` belongs, and return its section."""
    section: SettingsSection = import_module(SECTIONS[key]).SECTION
    return section


def part_of(key: str) -> SessionPart:
    """Return the session part for the entries of the configuration table `key`."""
    part: SessionPart = import_module(SECTIONS[key]).PART
    return part


def report_form(name: str) -> ReportForm:
    """Import a form of report and return it."""
    form: ReportForm = import_module(REPORTS[name]).REPORT
    return form


def job_in(environment: Mapping[str, str]) -> Any:
    """Return the CI job that the environment describes (harness.app.run.run_end.Job), or `None` outside of CI."""
    return import_module(JOB).actions_from(environment)
