"""Every model of a program, held to its own examples, to its name in the catalog, and to the language of its tables.

What single programs do, row by row, is in the other tests/test_programs_*.py.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from importlib import import_module

import pytest

import harness.programs
from harness.actions import Access, Act
from harness.programs.catalog import FILES, model_of, names
from harness.programs.model import Program, Use
from harness.programs.options import operand_roles, option_table, read_command

MODELS: dict[str, Program] = {name: model for name in names() if (model := model_of(name)) is not None}


def _with_subcommands(program: Program) -> tuple[Program, ...]:
    return (program, *program.subcommands.values())


def _examples(kind: str) -> list[str]:
    models = (each for program in MODELS.values() for each in _with_subcommands(program))
    return sorted({line for model in models for line in getattr(model, kind)})


def _use_of(line: str) -> Use:
    argv = shlex.split(line)
    return read_command(MODELS[argv[0]], argv)


def _only_looks(use: Use) -> bool:
    """As `readers` of a policy asks, but for where the paths lie."""
    reads = all(path.access is Access.READ for path in use.paths)
    return not use.gap and use.act in (Act.LOOKS, Act.WRAPS) and not use.network and reads


def _files_with_programs() -> Iterator[str]:
    for file in os.listdir(os.path.dirname(str(harness.programs.__file__))):
        name, dot, suffix = file.partition(".")
        if (dot, suffix) == (".", "py") and hasattr(import_module(f"harness.programs.{name}"), "PROGRAMS"):
            yield name


def test_every_file_with_programs_stands_in_the_catalog() -> None:
    assert sorted(_files_with_programs()) == sorted(FILES)


@pytest.mark.parametrize("file", FILES)
def test_the_catalog_names_the_programs_of_a_file(file: str) -> None:
    assert sorted(import_module(f"harness.programs.{file}").PROGRAMS) == sorted(FILES[file].split())


def test_no_program_stands_in_two_files() -> None:
    assert len(MODELS) == len(list(names()))


@pytest.mark.parametrize("name", MODELS)
def test_a_model_has_examples_and_tables_that_are_well_formed(name: str) -> None:
    models = _with_subcommands(MODELS[name])
    assert any(model.looks or model.covered or model.not_covered for model in models)
    for model in models:
        option_table(model.options)
        operand_roles(model.operands, instead=False)
        operand_roles(model.operands, instead=True)


@pytest.mark.parametrize("line", _examples("looks"))
def test_an_example_that_looks_only_looks(line: str) -> None:
    use = _use_of(line)
    assert _only_looks(use), use


@pytest.mark.parametrize("line", _examples("covered"))
def test_an_example_that_does_more_is_covered(line: str) -> None:
    use = _use_of(line)
    assert not use.gap
    assert use.network or use.act not in (Act.LOOKS, Act.WRAPS), use


@pytest.mark.parametrize("line", _examples("not_covered"))
def test_an_example_that_is_not_covered_is_a_gap(line: str) -> None:
    use = _use_of(line)
    assert use.gap
    assert use.act is Act.UNKNOWN
