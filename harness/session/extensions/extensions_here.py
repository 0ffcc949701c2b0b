"""The extensions of one workspace: declared in the user's own file, and in the workspace's trusted files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.record import Record, replace
from harness.session.config.extension_tables import ExtensionTable, project_tables
from harness.session.extensions.extensions import Extensions, extensions_in
from harness.session.extensions.project_trust import ProjectFile, trusted_files
from harness.session.shipped_plugins import section_of
from harness.session.state import State
from harness.shipped import PROJECT_FILES
from harness.text.visible import visible_line


class ExtensionsHere(Record):
    """Declarations, and notes for the user about those left out."""

    extensions: Extensions
    notes: tuple[str, ...] = ()


def extensions_here(
    user_tables: Sequence[ExtensionTable], state: State, workspace: str, environment: Mapping[str, str]
) -> ExtensionsHere:
    """Return the declarations in `user_tables` (of the user's file) and in the trusted files of `workspace`.

    The user gets no question about trust. An entry of a plugin's file (PROJECT_FILES) that is invalid, or whose name is
    taken, is left out with a note. Raises UsageError with file, line and key for invalid tables.
    """
    trusted = trusted_files(state, workspace)
    tables, notes = list(user_tables), list(trusted.notes)
    for file in trusted.files:
        if file.name not in PROJECT_FILES:
            tables += project_tables(file.data, file.name)
    extensions = extensions_in(tables)
    for file in trusted.files:
        if file.name in PROJECT_FILES:
            extensions, left_out = _with_entries(extensions, file, environment)
            notes += left_out
    return ExtensionsHere(extensions=extensions, notes=tuple(notes))


def _with_entries(
    extensions: Extensions, file: ProjectFile, environment: Mapping[str, str]
) -> tuple[Extensions, list[str]]:
    """Return `extensions` with the entries of a plugin's file added, and notes about entries that are left out."""
    key = PROJECT_FILES[file.name]
    section = section_of(key)
    form = section.project_file
    if form is None:
        return extensions, []
    entries, origins, notes = dict(extensions.in_section(key)), dict(extensions.origins), []
    for name, fields in form.entries(file.data).items():
        origin, display_name = f"{file.name}:{form.line_of(name, file.data)}", visible_line(name, 100)
        if name in entries:
            other = origins[key, name]
            notes.append(f"{origin}: the {section.noun} {display_name} is left out: {other} declares one of that name")
            continue
        try:
            entries[name] = form.read(name, fields, environment)
        except ValueError as error:
            notes.append(f"{origin}: the {section.noun} {display_name} is left out: {error}")
            continue
        origins[key, name] = origin
    sections = {**extensions.sections, key: entries} if entries else extensions.sections
    return replace(extensions, sections=sections, origins=origins), notes
