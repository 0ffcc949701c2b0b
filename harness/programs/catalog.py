"""Which file holds the model of a program; loads it when first asked. Knows names only, no I/O of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from harness.programs.model import Program

# A new model goes into the file of its kind (`PROGRAMS` there), and its name into this list.
FILES = {
    "shell_builtins": "",
    "coreutils": "",
    "text": "",
    "search": "",
    "sed": "",
    "awk": "",
    "git": "git",
    "archives": "",
    "network": "",
    "system": "",
    "wrappers": "",
    "interpreters": "",
    "python_tools": "",
    "javascript_tools": "",
    "build_tools": "",
    "containers": "",
}

_file_of: dict[str, str] = {}


def model_of(name: str) -> Program | None:
    """Return the model of the program `name` (without a folder), or None if there is none."""
    if not _file_of:
        _file_of.update((program, file) for file, programs in FILES.items() for program in programs.split())
    file = _file_of.get(name)
    if file is None:
        return None
    programs: Mapping[str, Program] = import_module(f"harness.programs.{file}").PROGRAMS
    return programs[name]


def names() -> Iterator[str]:
    """Yield the name of every program that has a model."""
    for programs in FILES.values():
        yield from programs.split()
