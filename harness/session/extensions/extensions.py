"""Parsed extension tables of the user's file and of a trusted project's file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from harness.record import Record, replace
from harness.session.config.extension_tables import APPROVER, HOOK, TOOL, ExtensionTable
from harness.session.shipped_plugins import hook_form, section_of
from harness.shipped import HOOK_FORMS, SECTIONS

if TYPE_CHECKING:
    from harness.checks.hook_declaration import HookDeclaration
    from harness.session.approver.approver_declaration import ApproverDeclaration
    from harness.tools.script_declaration import ScriptDeclaration

DeclaredT = TypeVar("DeclaredT")


class Extensions(Record):
    """All declared extensions by name, with the origin of each (FILE:LINE)."""

    tools: Mapping[str, ScriptDeclaration] = {}
    hooks: Mapping[str, HookDeclaration] = {}
    approver: ApproverDeclaration | None = None
    sections: Mapping[str, Mapping[str, Any]] = {}
    """Parsed entries of plugins, by the key of the section and by name. Sections without entries are missing."""
    origins: Mapping[tuple[str, str], str] = {}
    """FILE:LINE, by kind (see session/config/extension_tables.py) and name."""

    def of(self, kind: str, name: str) -> str:
        """Return the origin (FILE:LINE) of a declaration."""
        return self.origins[kind, name]

    def in_section(self, key: str) -> Mapping[str, Any]:
        """Return a plugin's parsed entries of its section, by name."""
        return self.sections.get(key, {})


def extensions_in(tables: Sequence[ExtensionTable]) -> Extensions:
    """Parse the tables of all files. Raises UsageError, whose text names file, line and key."""
    reading = _Reading()
    approver = None
    for table in tables:
        if table.kind == APPROVER:
            from harness.session.approver.approver_declaration import declared as approver_declared

            approver = _declared(table, approver_declared)
    return Extensions(
        tools=reading.tools(_of_kind(tables, TOOL)),
        hooks=reading.hooks(_of_kind(tables, HOOK)),
        approver=approver,
        sections={key: entries for key in SECTIONS if (entries := reading.section(_of_kind(tables, key)))},
        origins=reading.origins,
    )


def _of_kind(tables: Iterable[ExtensionTable], kind: str) -> list[ExtensionTable]:
    return [table for table in tables if table.kind == kind]


class _Reading:
    """Parses tables and collects their origins. Imports the modules of a kind only if there is a table of it."""

    def __init__(self) -> None:
        self.origins: dict[tuple[str, str], str] = {}

    def tools(self, tables: Sequence[ExtensionTable]) -> dict[str, ScriptDeclaration]:
        if not tables:
            return {}
        from harness.tools.script_declaration import declared

        declarations = [(table, _declared(table, declared)) for table in tables]
        return {self._note_origin(table, tool.name): tool for table, tool in declarations}

    def section(self, tables: Sequence[ExtensionTable]) -> dict[str, Any]:
        return {
            self._note_origin(table, table.name): _declared(table, partial(section_of(table.kind).read, table.name))
            for table in tables
        }

    def hooks(self, tables: Sequence[ExtensionTable]) -> dict[str, HookDeclaration]:
        if not tables:
            return {}
        from harness.checks.hook_declaration import declared
        from harness.policy.rules import Layer, Origin

        hooks = {}
        forms = {name: partial(hook_form, name) for name in HOOK_FORMS}
        for table in tables:
            layer = Layer.PROJECT if table.of_project else Layer.USER
            hook = replace(
                _declared(table, partial(declared, further_forms=forms)),
                origin=Origin(file=table.file, line=table.line),
                layer=layer,
            )
            hooks[self._note_origin(table, hook.id)] = hook
        return hooks

    def _note_origin(self, table: ExtensionTable, name: str) -> str:
        """Note the origin of `name`, and return `name`. Raises UsageError for a second declaration of it."""
        other = self.origins.get((table.kind, name))
        if other is not None:
            raise table.problem(f"{name!r} is declared already in {other}")
        self.origins[table.kind, name] = table.origin
        return name


def _declared(table: ExtensionTable, declared: Callable[[Mapping[str, object]], DeclaredT]) -> DeclaredT:
    try:
        return declared(table.fields)
    except ValueError as error:
        raise table.problem(str(error)) from None
