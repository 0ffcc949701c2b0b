"""`harness config`: show the settings in force and their origins, as valid TOML for the file. Keys are never shown."""

from __future__ import annotations

import json
import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping

from harness.actions import JsonValue
from harness.model import Prices
from harness.models.endpoint import shown_address
from harness.models.presets import Api
from harness.record import field_names
from harness.session.config.config_file import Setting
from harness.session.config.declared import SETTINGS
from harness.session.config.model_settings import NOT_SHOWN, shown_value
from harness.session.config.settings import DEFAULT, Settings, config_path, settings_from
from harness.session.exits import Exit
from harness.session.extensions.extensions import extensions_in
from harness.terminal.console import FinishedOutput
from harness.terminal.styles import Tone
from harness.terminal.tables import Column, Table, TableRow
from harness.text.visible import visible, visible_line


def config_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Run `harness config ACTION` and return the exit code. Raises UsageError for an invalid file."""
    if arguments.action == "path":
        sys.stdout.write(visible(config_path(environment)) + "\n")
        return Exit.DONE
    settings = settings_from(arguments, environment, None)
    extensions_in(settings.file.extensions)  # only to validate them, as `run` does
    if arguments.json:
        sys.stdout.write(json.dumps(_fields(settings), indent=2) + "\n")
        return Exit.DONE
    console = FinishedOutput(environment)
    if arguments.origin and console.width:
        for line in _about_file(settings):
            console.line(line)
        console.table(_table(settings))
    else:
        for line in _lines(settings, with_origin=arguments.origin):
            console.line(visible_line(line, 10_000))
    return Exit.DONE


_COLUMNS = Column(name="setting"), Column(name="value", folds=True, toned=True), Column(name="said by", folds=True)


def _table(settings: Settings) -> Table:
    """Return a table of the settings with their origins. Defaults are dimmed."""
    rows = []
    for table, name, setting in _all_settings(settings):
        cells = f"{table}.{name}" if table else name, "-" if setting.value is None else _toml(setting.value)
        tone = Tone.QUIET if setting.origin == DEFAULT else Tone.PLAIN
        rows.append(TableRow(cells=(*cells, setting.origin), tone=tone))
    return Table(columns=_COLUMNS, rows=tuple(rows))


def _all_settings(settings: Settings) -> Iterator[tuple[str, str, Setting[JsonValue]]]:
    """Yield table, key and setting, in the order of the file. Unset values are `None`."""
    yield from _plain(settings, [key for key in SETTINGS if "." not in key])
    yield from _answers("", settings.of_model)
    yield from _plain(settings, [key for key in SETTINGS if "." in key])
    for profile in settings.file.profiles.values():
        table = f"models.{_quoted(profile.name)}"
        for name, setting in profile.values.items():
            yield table, name, Setting(value=_display_value(name, setting.value), origin=setting.origin)
        yield from _answers(table, profile.of_model)
    for model, prices in settings.file.prices.items():
        for name in field_names(Prices):
            yield f"prices.{_quoted(model)}", name, Setting(value=getattr(prices.value, name), origin=prices.origin)


def _plain(settings: Settings, keys: Iterable[str]) -> Iterator[tuple[str, str, Setting[JsonValue]]]:
    for key in keys:
        table, _, name = key.rpartition(".")
        tables = {"": settings, "terminal": settings.terminal}.get(table)
        by_name: Mapping[str, Mapping[str, Setting[object]]] = {
            "agents": settings.agents,
            "bounds": settings.bounds,
            "deadlines": settings.deadlines,
        }
        setting: Setting[object] = by_name[table][name] if tables is None else getattr(tables, name)
        yield table, name, Setting(value=_display_value(name, setting.value), origin=setting.origin)


def _answers(table: str, of_model: Mapping[str, Setting[JsonValue]]) -> Iterator[tuple[str, str, Setting[JsonValue]]]:
    """Yield the settings of a model. Those without a subtable come first."""
    for key, setting in sorted(of_model.items(), key=lambda item: "." in item[0]):
        extra, dot, name = key.partition(".")
        at = ".".join(filter(None, (table, extra if dot else "")))
        displayed = Setting(value=shown_value(key, setting.value), origin=setting.origin)
        yield at, _key(name) if dot else key, displayed


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _display_value(name: str, value: object) -> JsonValue:
    """Return a value that is safe to show. An address loses user, password and query."""
    if isinstance(value, Api):
        return value.value
    if name == "base_url" and isinstance(value, str):
        return shown_address(value) or None
    if isinstance(value, tuple):
        return [*value] or None
    return value if isinstance(value, int | float | str) and value != "" else None


def _about_file(settings: Settings) -> Iterator[str]:
    file = settings.file
    yield f"# {file.path}{'' if file.is_found else ' is not there'}"
    variable = settings.key_variable.value
    yield f"# key: {_key_told(settings)}" if variable else "# key: none is wanted"
    for table in file.extensions:
        yield f"# also in the file: {table.title}  ({table.origin})"


def _lines(settings: Settings, *, with_origin: bool) -> Iterator[str]:
    yield from _about_file(settings)
    at = ""
    for table, name, setting in _all_settings(settings):
        if table != at:
            at = table
            yield ""
            yield f"[{table}]"
        origin = f"  # {setting.origin}" if with_origin else ""
        if setting.value in (None, NOT_SHOWN):  # TOML has no null
            yield f"# {name} {'is not set' if setting.value is None else NOT_SHOWN}{origin}"
        else:
            yield f"{name} = {_toml(setting.value)}{origin}"


def _key_told(settings: Settings) -> str:
    return f"{settings.key_variable.value} is {'set' if settings.key_set else 'NOT set'}"


def _toml(value: JsonValue) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(name)} = {_toml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _quoted(text: str) -> str:
    """Return a text as a TOML string.

    This is JSON's form, but TOML allows neither DEL nor surrogates; they become `?`.
    """
    return re.sub(r"[\x7f\ud800-\udfff]", "?", json.dumps(text, ensure_ascii=False))


def _fields(settings: Settings) -> dict[str, JsonValue]:
    """Return all settings as one object."""
    fields: dict[str, JsonValue] = {
        f"{table}.{name}" if table else name: {"value": setting.value, "origin": setting.origin}
        for table, name, setting in _all_settings(settings)
    }
    return {
        "file": settings.file.path,
        "found": settings.file.is_found,
        "key": {"variable": settings.key_variable.value or None, "set": settings.key_set},
        "settings": fields,
        "extensions": [{"table": table.title, "origin": table.origin} for table in settings.file.extensions],
    }
