"""Fill templates, texts with variables written {{name}}. A value is never read as a template again."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.errors import UsageError
from harness.regex import regex

_MARKS = regex(r"\\\{\{|\{\{(?:[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*\}\})?")


def variables(template: str) -> frozenset[str]:
    """Return the names of the variables in `template`."""
    return frozenset(name for match in _MARKS.finditer(template) if (name := match[1]))


def fill(template: str, values: Mapping[str, str], *, name: str, all_used: bool = False) -> str:
    r"""Return `template` with every {{variable}} replaced by its value. `\{{` writes two braces.

    `name` is the template's name in errors, usually a file. With `all_used`, a value that the template does not use is
    an error too, since the user gave it on purpose.

    Raises UsageError for a variable without a value, a value without a variable, and braces that are neither.
    """

    def value(match: re.Match[str]) -> str:
        if match[0] == r"\{{":
            return "{{"
        if match[1] is None:
            raise UsageError(
                f"{name}:{_line(template, match)}: {{{{ begins a variable, as in {{{{name}}}}; write \\{{{{ for the braces"
            )
        if match[1] not in values:
            import difflib  # 10 ms, for an error only

            near = difflib.get_close_matches(match[1], values, 1)
            choices = f"; did you mean {near[0]}?" if near else f"; known are: {', '.join(values) or 'none'}"
            raise UsageError(f"{name}:{_line(template, match)}: no value for {{{{{match[1]}}}}}{choices}")
        return values[match[1]]

    filled = _MARKS.sub(value, template)
    unused = [variable for variable in values if variable not in variables(template)] if all_used else []
    if unused:
        raise UsageError(f"{name}: {{{{{unused[0]}}}}} does not occur, but was given a value")
    return filled


def _line(template: str, match: re.Match[str]) -> int:
    return template.count("\n", 0, match.start()) + 1
