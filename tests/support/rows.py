"""A table as one test: it runs every row, and lists each that fails. `ROW=text pytest ...` runs the rows of that name alone."""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import shutil
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import pytest

SHOWN_LINES = 12
"""Of each failure: its last lines."""


Fixture = Callable[..., Iterator[Any]]


def all_rows(
    names: str | Sequence[str],
    rows: Iterable[Any] | Mapping[Any, Any],
    *,
    ids: Iterable[object] | Callable[[Any], object] | None = None,
    fresh: bool = False,
    anew: Mapping[str, Fixture] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make of a test one that runs all `rows`, as `pytest.mark.parametrize` takes them, or a mapping of names to rows.

    Each row has its own `tmp_path` and its own `monkeypatch`; every other fixture is shared. With `fresh` the test's folder,
    in which `program` lives, is for each row what the fixtures made of it. What is `anew` is made for each row: generators
    as pytest takes for fixtures, by their names, which may ask for fixtures. The test is skipped if every row of it is.
    """
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = _table(wanted, rows, ids)
    if not table:
        raise ValueError(f"a table of {', '.join(wanted)} without a row proves nothing")

    made = dict(anew or {})

    def of(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(*positional: Any, **fixtures: Any) -> None:
            request = fixtures.get("request") if "request" in signature.parameters else fixtures.pop("request", None)
            with _Folder(request.getfixturevalue("tmp_path") if fresh and request else None) as folder:
                _run(row, table, positional, fixtures, folder)

        @functools.wraps(test)
        def row(*positional: Any, **own: Any) -> None:
            with ExitStack() as ending:
                for name, make in made.items():
                    given = {one: own[one] for one in inspect.signature(make).parameters}
                    own[name] = ending.enter_context(contextmanager(make)(**given))
                test(*positional, **{name: value for name, value in own.items() if name not in unasked})

        rest = [one for name, one in signature.parameters.items() if name not in wanted and name not in made]
        asked = {name for make in made.values() for name in inspect.signature(make).parameters}
        unasked = asked - set(signature.parameters)
        rest += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in sorted(unasked)]
        if fresh and "request" not in signature.parameters:
            rest.append(inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY))
        run.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return run

    return of


_NUMBERS = itertools.count(1)


class _Folder:
    """The folder of a test, put back for each row; what the rows before left in it comes back at the end, to be looked at."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._used: list[Path] = []

    def __enter__(self) -> Self:
        if self._folder is not None:
            shutil.copytree(self._folder, self._beside("kept"), symlinks=True)
        return self

    def begin_anew(self) -> None:
        if self._folder is not None:
            self._used.append(self._beside(f"used-{next(_NUMBERS)}"))
            self._folder.rename(self._used[-1])
            shutil.copytree(self._beside("kept"), self._folder, symlinks=True)

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            for used in self._used:
                used.rename(self._folder / used.name)
            shutil.rmtree(self._beside("kept"))

    def _beside(self, name: str) -> Path:
        assert self._folder is not None
        return self._folder.with_name(f"{self._folder.name}-{name}")


def _table(
    names: Sequence[str], rows: Iterable[Any], ids: Iterable[object] | Callable[[Any], object] | None
) -> dict[str, dict[str, Any]]:
    """Return the rows by their names: the values of each, by the names of the test's parameters."""
    if isinstance(rows, Mapping):
        ids = list(rows)
        rows = rows.values()
    rows = list(rows)
    told = None if ids is None else [str(one) for one in (map(ids, rows) if callable(ids) else ids)]
    table: dict[str, dict[str, Any]] = {}
    for number, row in enumerate(rows, 1):
        name = told[number - 1] if told is not None else ""
        values = row
        if isinstance(row, type(pytest.param())):
            if row.marks:
                raise ValueError(f"row {number} has marks, which only pytest.mark.parametrize knows")
            name, values = str(row.id or name), row.values
            values = values[0] if len(names) == 1 else values
        values = (values,) if len(names) == 1 else tuple(values)
        shown = f"row {number}: {name or ', '.join(repr(value)[:80] for value in values)}"
        table[shown] = dict(zip(names, values, strict=True))
    return table


def _run(
    test: Callable[..., None],
    table: Mapping[str, Mapping[str, Any]],
    positional: Sequence[Any],
    fixtures: Mapping[str, Any],
    folder: _Folder,
) -> None:
    wanted = os.environ.get("ROW", "")
    failures: list[str] = []
    skips: list[str] = []
    ran = 0
    for number, (name, values) in enumerate(table.items(), 1):
        if wanted not in name:
            continue
        if ran:
            folder.begin_anew()
        ran += 1
        own = dict(fixtures)
        if "tmp_path" in own:
            own["tmp_path"] = own["tmp_path"] / f"row-{number}"
            own["tmp_path"].mkdir()
        try:
            if "monkeypatch" in own:
                with fixtures["monkeypatch"].context() as own["monkeypatch"]:
                    test(*positional, **own, **values)
            else:
                test(*positional, **own, **values)
        except pytest.skip.Exception as skip:
            skips.append(f"{name}: {skip.msg}")
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - every row is told of
            failures.append(f"{name}\n{_shown(error)}")
    if failures:
        pytest.fail(f"{len(failures)} of {ran} rows failed\n\n" + "\n\n".join(failures), pytrace=False)
    if skips and len(skips) == ran:
        pytest.skip(skips[0])


def _shown(error: BaseException) -> str:
    lines = "".join(traceback.format_exception(error)).rstrip().splitlines()
    return "\n".join(f"    {line}" for line in lines[-SHOWN_LINES:])
