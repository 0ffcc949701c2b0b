"""Regular expressions that are compiled late are those that would be compiled early."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import harness
from harness.regex import regex

HOME = Path(harness.__file__).parent


def test_each_expression_of_the_program_can_be_compiled() -> None:
    files = [path for path in HOME.rglob("*.py") if "import regex" in path.read_text()]
    modules = [import_module(".".join(("harness", *path.relative_to(HOME).with_suffix("").parts))) for path in files]
    made = [value for module in modules for value in vars(module).values() if type(value).__name__ == "_Regex"]
    assert len(made) > len(files) > 20
    assert all(isinstance(one.pattern, str | bytes) for one in made)


def test_a_faulty_one_is_an_error_when_it_is_used() -> None:
    late = regex("(")
    with pytest.raises(re.error):
        late.match("(")


def test_flags_and_methods_are_those_of_the_expression() -> None:
    late, early = regex(r"(a)|b", re.IGNORECASE), re.compile(r"(a)|b", re.IGNORECASE)
    assert [found.span() for found in late.finditer("xAb")] == [found.span() for found in early.finditer("xAb")]
    assert (late.sub("-", "xAb"), late.groups, late.flags) == (early.sub("-", "xAb"), early.groups, early.flags)
