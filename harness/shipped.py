"""The plugins that ship, by the names of their modules. Nothing is imported before it is asked for.

This is the only module outside of harness/plugins that names one of them (tests/test_imports.py).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.plugin import Plugin


def plugin_in(module: str) -> Plugin:
    """Import a module and return its constant PLUGIN."""
    plugin: Plugin = import_module(module).PLUGIN
    return plugin
