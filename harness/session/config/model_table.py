"""The user's own table of models: prices and context lengths, each with date and source. `models update` writes it."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping

from harness.errors import UsageError
from harness.models.model_facts import LONGEST_NAME, MOST_TOKENS, ModelFacts
from harness.record import Record, field_names, replace
from harness.session.config.config_file import read_own, unknown_key
from harness.session.config.declared import PRICE_CHECKS
from harness.text.fields import Check, check_of
from harness.text.toml_places import read_toml

MOST_BYTES = 1024 * 1024
"""Maximum size of the file, in bytes."""
MOST_KNOWN = 5_000
"""Maximum number of models in the file."""
_ABOUT = ("date", "source")
_CHECKS: Mapping[str, Check] = {
    "context": check_of(f"whole from 1000 to {MOST_TOKENS}"),
    "max_output": check_of(f"whole from 1 to {MOST_TOKENS}"),
    **PRICE_CHECKS,
    "pictures": check_of("flag"),
}
_SOURCE = check_of("line")


class KnownModel(Record):
    """The table's entry for one model."""

    facts: ModelFacts
    date: str
    """Date of the figures at the source, YYYY-MM-DD."""
    source: str
    """The page with the figures."""


class ModelTable(Record):
    """Content of the file. Each value has been checked on its own."""

    path: str = ""
    models: Mapping[str, KnownModel] = {}

    def origin(self, model: str) -> str:
        """Return the origin of the figures about a model: `FILE of DATE`."""
        return f"{self.path} of {self.models[model].date}"


def load_table(path: str, workspace: str | None) -> ModelTable:
    """Return the table in the file at `path`. A missing file is an empty table. Raises UsageError as `load_config` does."""
    if not os.path.lexists(path):
        return ModelTable(path=path)
    return parse_table(read_own(path, workspace), path)


def parse_table(data: bytes, file: str) -> ModelTable:
    """Parse `data`, TOML in UTF-8. `file` is its name in messages. Raises UsageError that names the table and key."""
    if len(data) > MOST_BYTES:
        raise UsageError(f"{file}: has more than {MOST_BYTES:,} bytes")
    try:
        _, table = read_toml(data)
    except ValueError as error:
        raise UsageError(f"{file}: {error}") from None
    for key in table:
        if key not in (*_ABOUT, "models"):
            raise UsageError(f"{file}: {key}: {unknown_key(key, (*_ABOUT, 'models'))}")
    rows = table.get("models")
    if not isinstance(rows, dict) or not rows:
        raise UsageError(f'{file}: names no model: [models."NAME"] with {", ".join(field_names(ModelFacts))}')
    if len(rows) > MOST_KNOWN:
        raise UsageError(f"{file}: names more than {MOST_KNOWN:,} models")
    shared_fields = {key: table[key] for key in _ABOUT if key in table}
    return ModelTable(
        path=file, models={name: _parsed_model(file, name, row, shared_fields) for name, row in rows.items()}
    )


def _parsed_model(file: str, name: str, row: object, above: Mapping[str, object]) -> KnownModel:
    """Parse the table of one model. Its own date and source override those in `above`. Raises UsageError."""
    place = f'{file}: [models."{name[:LONGEST_NAME]}"]'
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise UsageError(f"{place}: invalid model name")
    if not isinstance(row, dict):
        raise UsageError(f"{place}: must be a table")
    figures = {key: value for key, value in row.items() if key not in _ABOUT}
    for key, value in figures.items():
        if key not in _CHECKS:
            raise UsageError(f"{place} {key}: {unknown_key(key, (*_CHECKS, *_ABOUT))}")
        if problem := _CHECKS[key](value):
            raise UsageError(f"{place} {key}: {problem}")
    if not {"input", "output"} <= figures.keys() and not figures.keys().isdisjoint(PRICE_CHECKS):
        raise UsageError(f"{place}: prices are both input and output, in dollars per million tokens")
    fields = {**above, **{key: row[key] for key in _ABOUT if key in row}}
    for key in _ABOUT:
        if key not in fields:
            raise UsageError(f"{place}: has no {key}: write one at the top of the file, or here")
    source = fields["source"]
    if problem := _SOURCE(source):
        raise UsageError(f"{place} source: {problem}")
    prices = {key: float(figures[key]) for key in PRICE_CHECKS if key in figures}
    facts = replace(ModelFacts(), **prices, **{key: value for key, value in figures.items() if key not in prices})
    return KnownModel(facts=facts, date=_date(place, fields["date"]), source=str(source))


def _date(place: str, value: object) -> str:
    """Return a date as YYYY-MM-DD, from a TOML date or from text in that form. Raises UsageError."""
    try:
        if isinstance(value, str) and len(value) == len("YYYY-MM-DD"):
            return dt.date.fromisoformat(value).isoformat()
    except ValueError:
        pass
    if isinstance(value, dt.date):
        return (value.date() if isinstance(value, dt.datetime) else value).isoformat()
    raise UsageError(f"{place} date: must be a day as YYYY-MM-DD")
