"""Third-party plugins: installed packages with an entry point in the group `harness.plugins`.

A plugin is loaded only if the user's own configuration names it (`plugins = ["name"]`); a project's file cannot. A plugin
adds commands, slash commands, tools and forms of reports. It replaces nothing that ships.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from harness.errors import UsageError, nearest
from harness.plugin import Plugin, ReportForm
from harness.session.config.config_file import ConfigFile, load_config
from harness.shipped import COMMANDS, REPORTS, STARTED_BY_AGENTS
from harness.text.visible import visible_line
from harness.tool_kinds import PLUGIN_TOOLS, is_from_outside

GROUP = "harness.plugins"
"""Entry point group in which installed packages declare their plugins."""
_WORDS = re.compile(r"[a-z][a-z0-9-]{0,31}( [a-z][a-z0-9-]{0,31})?", re.ASCII)
_SLASH = re.compile(r"/[a-z][a-z0-9-]{0,31}", re.ASCII)
_FORM = re.compile(r"[a-z][a-z0-9-]{0,31}", re.ASCII)


def named_plugins(file: ConfigFile) -> tuple[Plugin, ...]:
    """Load the plugins that the user's configuration names. Raises UsageError for one that cannot be used."""
    setting = file.values.get("plugins")
    if setting is None or not isinstance(setting.value, tuple):
        return ()
    loaded = tuple(_loaded(name, setting.origin) for name in dict.fromkeys(setting.value))
    owners: dict[str, str] = {}
    for plugin, name in zip(loaded, dict.fromkeys(setting.value), strict=True):
        for thing, fault in _additions(plugin):
            problem = f"the plugin {_quoted(owners[thing])} has it already" if thing in owners else fault
            if problem:
                raise UsageError(f"{setting.origin}: the plugin {_quoted(name)} cannot be used: {thing}: {problem}")
            owners[thing] = name
    return loaded


def plugins_in(path: str) -> tuple[Plugin, ...]:
    """Load the plugins that the configuration file at `path` names. Raises UsageError, also for an invalid file."""
    return named_plugins(load_config(path, None))


def other_report_forms(options: Iterable[str], path: str) -> tuple[ReportForm, ...]:
    """Return the report forms of third-party plugins. Empty, without loading any, if all forms in `options` ship.

    An option is FORM:FILE. `path` is the configuration file. Raises UsageError as `plugins_in` does.
    """
    if all(option.partition(":")[0] in REPORTS for option in options):
        return ()
    return tuple(form for plugin in plugins_in(path) for form in plugin.reports)


@cache
def _installed() -> dict[str, Any]:
    """Return the entry points of installed plugins, by name. Searched once: the prompt and its tools both load them."""
    from importlib.metadata import entry_points  # takes 20 ms to load, only if plugins are named

    return {point.name: point for point in entry_points(group=GROUP)}


def _loaded(name: str, origin: str) -> Plugin:
    points = _installed()
    if name not in points:
        raise UsageError(f"{origin}: the plugin {_quoted(name)} is not installed{nearest(name, points)}")
    try:
        plugin = points[name].load()
    except Exception as error:
        problem = visible_line(f"{type(error).__name__}: {error}", 500)
        raise UsageError(f"{origin}: the plugin {_quoted(name)} cannot be loaded: {problem}") from error
    if not isinstance(plugin, Plugin):
        raise UsageError(f"{origin}: the plugin {_quoted(name)} is not a harness.plugin.Plugin: {points[name].value}")
    return plugin


def _additions(plugin: Plugin) -> Iterator[tuple[str, str]]:
    """Yield a description of each addition of a plugin, and the reason why it is not allowed, or an empty string."""
    shipped = {*(name.partition(" ")[0] for name in COMMANDS), *STARTED_BY_AGENTS, "help"}
    for command in plugin.commands:
        first = command.name.partition(" ")[0]
        problem = "" if _WORDS.fullmatch(command.name) else "a command is one word or two, of a-z, 0-9 and -"
        yield f"command {_quoted(command.name)}", f"{first} is a command that ships" if first in shipped else problem
    for offer in plugin.tools:
        name = offer.kind.name
        good = name.startswith(PLUGIN_TOOLS) and is_from_outside(name) and not name.endswith("*")
        yield f"tool {_quoted(name)}", "" if good else f"the name must begin with {PLUGIN_TOOLS}"
    for report in plugin.reports:
        problem = "" if _FORM.fullmatch(report.name) else "a form is one word, of a-z, 0-9 and -"
        yield f"report {_quoted(report.name)}", "it ships already" if report.name in REPORTS else problem
    for slash_command in plugin.slash_commands:
        for name in slash_command.names:
            problem = "" if _SLASH.fullmatch(name) else "a slash command is / and one word, of a-z, 0-9 and -"
            yield f"slash command {_quoted(name)}", problem
    for field in ("readers", "shown_endings"):
        if getattr(plugin, field):
            yield field, "a plugin adds commands, slash commands, tools and reports alone"


def _quoted(name: str) -> str:
    return visible_line(repr(name), 100)
