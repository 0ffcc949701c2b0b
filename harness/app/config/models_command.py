"""`harness models`: list the provider's models with prices and limits.

`harness models update` stores a table of them.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping

from harness.actions import JsonValue
from harness.errors import ModelError, UsageError
from harness.model import Prices
from harness.models.endpoint import shown_address
from harness.models.model_facts import ModelFacts
from harness.models.model_list import listed_facts
from harness.record import Record, field_names
from harness.safe_files import replace_file, sync_path
from harness.session.config.model_table import MOST_BYTES, load_table, parse_table
from harness.session.config.provider import endpoint_of_any_model
from harness.session.config.settings import DEFAULT, Settings, settings_from, sight_of
from harness.session.exits import Exit
from harness.session.state import State, current_folder, workspace_folder
from harness.terminal.console import FinishedOutput, complain
from harness.terminal.styles import Tone
from harness.terminal.tables import Column, Table, TableRow
from harness.text.amounts import count_of

_SERVER = "server"
_PRICES = field_names(Prices)
_SHOWN = field_names(ModelFacts)
_NOWHERE = "\0"
"""Workspace path without any file, because only the user writes the stored table."""
_LIST_SECONDS = 15.0
"""Timeout in seconds for the provider's list."""


class _Figure(Record):
    """One figure about a model, and its origin."""

    value: JsonValue
    origin: str
    date: str = ""
    source: str = ""

    @property
    def fields(self) -> dict[str, JsonValue]:
        """The figure as JSON fields."""
        return {"value": self.value, "origin": self.origin, "date": self.date or None, "source": self.source or None}


class _Row(Record):
    """One model. Unknown figures are missing in `figures`."""

    name: str
    figures: Mapping[str, _Figure]


def models_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Run `harness models [ACTION]` and return the exit code. Raises UsageError."""
    if arguments.action == "update":
        return _update(arguments.file, environment)
    settings = settings_from(arguments, environment, workspace_folder(arguments.cwd))
    offered: Mapping[str, ModelFacts] | None = None
    problem, code = "", Exit.DONE
    try:
        # The model setting is not required here: users look at the list in order to choose a model.
        offered = listed_facts(endpoint_of_any_model(settings, environment), seconds=_LIST_SECONDS)
    except UsageError as error:
        problem, code = str(error), Exit.USAGE
    except ModelError as error:
        problem, code = str(error), Exit.MODEL
    names = (*settings.file.prices, *settings.table.models) if offered is None else tuple(offered)
    facts = offered or {}
    model_names = dict.fromkeys(sorted({*names, *filter(None, (settings.model.value,))}))
    rows = tuple(_Row(name=name, figures=dict(_figures_of(settings, name, facts.get(name)))) for name in model_names)
    if arguments.json:
        sys.stdout.write(json.dumps(_fields(settings, rows, facts, problem), indent=2) + "\n")
    else:
        _show(settings, rows, environment)
    if problem:
        complain(f"no list of the provider's models: {problem.splitlines()[0]}")
    return code


def _figures_of(settings: Settings, name: str, offered: ModelFacts | None) -> Iterator[tuple[str, _Figure]]:
    """Yield the figures of a model, by name. Sources in order: configuration, table, server."""
    written, table_model = settings.file.prices.get(name), settings.table.models.get(name)
    origin = settings.table.origin(name) if table_model is not None else DEFAULT
    chosen = {"context": settings.context_tokens, "pictures": settings.pictures} if _is_chosen(settings, name) else {}
    for figure in _SHOWN:
        chosen_value = chosen.get(figure)
        theirs = getattr(table_model.facts, figure) if table_model is not None else None
        served = getattr(offered, figure) if offered is not None else None
        if chosen_value is not None and not chosen_value.origin.startswith((DEFAULT, "preset ", origin)):
            yield figure, _Figure(value=chosen_value.value, origin=chosen_value.origin)
        elif written is not None and figure in _PRICES:
            # Prices from different sources are not mixed. A price that the configuration omits has that configuration's
            # default.
            if (mine := getattr(written.value, figure)) is not None:
                yield figure, _Figure(value=mine, origin=written.origin)
        elif theirs is not None and table_model is not None:
            yield figure, _Figure(value=theirs, origin=origin, date=table_model.date, source=table_model.source)
        elif served is not None:
            yield figure, _Figure(value=served, origin=_SERVER)
        elif figure == "pictures" and (sight := sight_of(settings.preset, name)).value:
            yield figure, _Figure(value=True, origin=sight.origin)


def _is_chosen(settings: Settings, name: str) -> bool:
    return name == settings.model.value


_COLUMNS = (
    Column(name="model", folds=True, toned=True),
    Column(name="context", right=True, leaves=True),
    Column(name="output cap", right=True, leaves=True, spare=2),
    Column(name="$ in", right=True, leaves=True),
    Column(name="cached", right=True, leaves=True, spare=3),
    Column(name="written", right=True, leaves=True, spare=5),
    Column(name="out", right=True, leaves=True),
    Column(name="pictures", leaves=True, spare=4),
    Column(name="said by", folds=True, spare=1),
)


def _show(settings: Settings, rows: Iterable[_Row], environment: Mapping[str, str]) -> None:
    console = FinishedOutput(environment)
    table_rows = tuple(_table_row(row, is_chosen=_is_chosen(settings, row.name)) for row in rows)
    console.line(f"# {shown_address(settings.base_url.value) or 'no address'}; prices in dollars per million tokens")
    if table_rows:
        console.table(Table(columns=_COLUMNS, rows=table_rows))
    else:
        console.line("nothing is known of any model")


def _table_row(row: _Row, *, is_chosen: bool) -> TableRow:
    cells = [_cell(row.figures.get(name)) for name in _SHOWN]
    origins = dict.fromkeys(_source_text(figure) for figure in row.figures.values())
    tone = Tone.PLAIN if is_chosen or origins else Tone.QUIET
    return TableRow(cells=(row.name, *cells, ", ".join(origins) or "-"), tone=tone)


def _source_text(figure: _Figure) -> str:
    return f"{figure.source} {figure.date}" if figure.source else figure.origin


def _cell(figure: _Figure | None) -> str:
    match figure.value if figure is not None else None:
        case bool() as said:
            return "yes" if said else "no"
        case int() as tokens:
            return f"{tokens:,}"
        case float() as dollars:
            return f"{dollars:.6f}".rstrip("0").rstrip(".")
        case _:
            return "-"


def _fields(
    settings: Settings, rows: Iterable[_Row], offered: Mapping[str, ModelFacts], problem: str
) -> dict[str, JsonValue]:
    """Return the whole result as one object. Unknown values are null."""
    model_rows: list[JsonValue] = []
    for row in rows:
        figures: dict[str, JsonValue] = {
            name: row.figures[name].fields if name in row.figures else None for name in _SHOWN
        }
        model_rows.append({"model": row.name, "offered": row.name in offered, **figures})
    return {
        "address": shown_address(settings.base_url.value) or None,
        "table": settings.table.path,
        "problem": problem or None,
        "models": model_rows,
    }


def _update(file: str, environment: Mapping[str, str]) -> int:
    """Check a table and replace the stored one. Raises UsageError; then the stored table stays."""
    state = State.of(environment)
    data = _content(file)
    new_table = parse_table(data, file)
    try:
        before = load_table(state.models, _NOWHERE).models
    except UsageError as error:
        complain(f"the table before cannot be read, and is replaced: {error}")
        before = {}
    try:
        os.makedirs(state.config, mode=0o700, exist_ok=True)
        replace_file(state.models, [data])
        sync_path(state.config)
    except OSError as error:
        raise UsageError(f"{state.models} cannot be written: {error.strerror}") from None
    new = len(new_table.models.keys() - before.keys())
    removed = len(before.keys() - new_table.models.keys())
    changed = sum(before.get(name) not in (None, model) for name, model in new_table.models.items())
    FinishedOutput(environment).line(
        f"{state.models} knows {count_of(len(new_table.models), 'model')} now: {new} new, {changed} changed, {removed} gone"
    )
    return Exit.DONE


def _content(file: str) -> bytes:
    """Return the content of a file, up to the maximum size of a table plus one byte. Raises UsageError."""
    path = os.path.join(current_folder(), file)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # opening a FIFO must not block
        with open(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UsageError(f"{file}: not a regular file")
            return stream.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror if isinstance(error, OSError) else error}") from None
