"""A script as a tool, declared by the user in a table `[[tool]]` of a configuration file.

A placeholder `{name}` in a word is replaced with the argument of that name. `{name...}` must be a separate word; it
becomes one word per text of a list. A word with a missing argument is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.actions import JsonValue
from harness.errors import nearest
from harness.policy.effects import place_problem
from harness.record import Record
from harness.text.fields import Fields
from harness.tool_kinds import SCRIPT_NAME

PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(\.\.\.)?\}")
MAX_WORDS = 200
"""Maximum number of words of a command line, before placeholders are filled."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEERS_THE_START = ("BASH_", "BASHOPTS", "SHELLOPTS", "ENV", "PS4", "LD_")
"""Prefixes of variables that could make another program run."""
_FIELDS = Fields(
    {
        "name": "line",
        "description": "filled",
        "argv": "list of text",
        "reads?": "list of filled",
        "writes?": "list of filled",
        "network?": "flag",
        "seconds?": "number above 0",
        "env?": "list of line",
        "arguments?": "object of argument",
    },
    {
        "argument": {
            "type": "one of string integer number boolean array",
            "description?": "text",
            "required?": "flag",
            "enum?": "list of text",
            "items?": "items",
            "minLength?": "count",
            "maxLength?": "count",
            "minItems?": "count",
            "maxItems?": "count",
            "minimum?": "number",
            "maximum?": "number",
        },
        "items": {
            "type": "one of string",
            "description?": "text",
            "enum?": "list of text",
            "minLength?": "count",
            "maxLength?": "count",
        },
    },
)
_FITS = {
    "string": ("enum", "minLength", "maxLength"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "boolean": (),
    "array": ("items", "minItems", "maxItems"),
}
"""Keys for bounds of a value, by type."""


class ScriptDeclaration(Record):
    """A script, with the declared limits of its effects."""

    name: str
    """Name of the script. Models and policies use `script__NAME`."""
    description: str
    argv: tuple[str, ...]
    """Words of the command line. All but the first may have placeholders."""
    reads: tuple[str, ...] = ()
    """Paths that the script reads. They may have placeholders."""
    writes: tuple[str, ...] = ()
    """Paths that the script may write, enforced by the kernel. They may have placeholders.

    A path is a folder if it ends in a slash or if such a folder exists.
    """
    network: bool = False
    seconds: float | None = None
    """Time limit, in seconds. `None` means the limit for commands."""
    env: tuple[str, ...] = ()
    """Names of additional environment variables that the script gets."""
    schema: Mapping[str, JsonValue]
    """The JSON Schema of its arguments."""


def declared(table: Mapping[str, object]) -> ScriptDeclaration:
    """Parse a table `[[tool]]`. Raises ValueError; its text begins with the invalid key."""
    fields = _FIELDS.read(table)
    arguments: Mapping[str, Mapping[str, Any]] = fields.pop("arguments", {})
    fields["description"] = fields["description"].strip()
    declaration = ScriptDeclaration(**fields, schema=_schema(arguments))
    if problem := next(_problems(declaration, arguments), ""):
        raise ValueError(problem)
    return declaration


def _schema(arguments: Mapping[str, Mapping[str, Any]]) -> dict[str, JsonValue]:
    """Return the JSON Schema of the arguments, for the model and for the validation of calls."""
    properties: dict[str, JsonValue] = {
        name: {key: value for key, value in argument.items() if key != "required"}
        | ({"items": argument.get("items", {"type": "string"})} if argument["type"] == "array" else {})
        for name, argument in arguments.items()
    }
    required: list[JsonValue] = [name for name, argument in arguments.items() if argument.get("required", True)]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _problems(declaration: ScriptDeclaration, arguments: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the problems of values and combinations of fields. Each begins with the key."""
    if not re.fullmatch(SCRIPT_NAME, declaration.name):
        yield "name: must begin with a letter and hold letters, digits and _, 52 at most"
    if not declaration.argv or not declaration.argv[0]:
        yield "argv: must name a program"
    elif "{" in declaration.argv[0]:
        yield "argv: the program must be a fixed word, not a placeholder"
    if len(declaration.argv) > MAX_WORDS:
        yield f"argv: has more than {MAX_WORDS} words"
    for name in declaration.env:
        if not _VARIABLE.fullmatch(name) or name.startswith(_STEERS_THE_START):
            yield f"env: {name[:50]!r} is not a variable that can be passed on"
    yield from _argument_problems(declaration, arguments)


def _argument_problems(declaration: ScriptDeclaration, arguments: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    types = {name: argument["type"] for name, argument in arguments.items()}
    for name, argument in arguments.items():
        if not _VARIABLE.fullmatch(name):
            yield f"arguments: {name[:50]!r} must hold letters, digits and _ alone"
        for key in argument:
            if key not in ("type", "description", "required", *_FITS[types[name]]):
                yield f"arguments: {name}: {key} does not apply to the type {types[name]}"
    for key, words in (("argv", declaration.argv), ("reads", declaration.reads), ("writes", declaration.writes)):
        yield from (f"{key}: {problem}" for word in words for problem in _word_problems(word, types))
    for word in declaration.writes:
        if (problem := place_problem(word.removeprefix("./"))) and not placeholders(word):
            yield f"writes: {word} {problem}"
    used = {
        name for word in (*declaration.argv, *declaration.reads, *declaration.writes) for name in placeholders(word)
    }
    for name in types:
        if name not in used:
            yield f"arguments: no word of argv holds {{{name}}}"


def _word_problems(word: str, types: Mapping[str, str]) -> Iterator[str]:
    if "\0" in word:
        yield "a word cannot hold NUL"
    for match in PLACEHOLDER.finditer(word):
        name, spreads = match[1], bool(match[2])
        if name not in types:
            yield f"{match[0]} names no argument{nearest(name, types)}"
        elif spreads != (types[name] == "array"):
            right = f"{{{name}...}}" if types[name] == "array" else f"{{{name}}}"
            yield f"a value of type {types[name]} is written {right}"
        elif spreads and match[0] != word:
            yield f"{match[0]} must be a word by itself"


def placeholders(word: str) -> Sequence[str]:
    """Return the names of the arguments in a word."""
    return [match[1] for match in PLACEHOLDER.finditer(word)]
