"""HTML pages from templates. Every value in a template is escaped, so that data is never markup.

A template is a file `*.html` next to its module. A page is one file without scripts or references to other files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from harness.audit.calls import word
from harness.text.visible import visible

if TYPE_CHECKING:
    from jinja2 import Environment


def page(package: str, name: str, **values: object) -> Iterator[str]:
    """Yield a page in pieces: the template `name` in the folder of `package`, filled with `values`.

    Iterables among the values are read only when the page needs them.
    """
    return templates(package).get_template(name).generate(**values)


def templates(package: str, filters: Mapping[str, Callable[..., object]] | None = None) -> Environment:
    """Return the templates in the folder of a package. Their filters are the functions below and `filters`."""
    import jinja2

    folder = os.path.dirname(str(import_module(package).__file__))
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"line": line, "moment": moment, "number": number, **(filters or {})}
    return environment


def value_text(value: object) -> str:
    """Return any value of a record as text. Not yet safe to display."""
    if not isinstance(value, dict | list):
        return word(value)
    try:
        return json.dumps(value, sort_keys=True)
    except (RecursionError, TypeError, ValueError):
        return "(nested too deeply to be shown)"


def line(value: object, width: int = 300) -> str:
    """Return `value` as one line of at most `width` characters, with the number of omitted characters."""
    text = value_text(value)
    left_out = len(text) - width
    more = f"...(+{left_out:,} characters)" if left_out > 0 else ""
    return visible(text[:width]).replace("\n", "\\n").replace("\t", "\\t") + more


def moment(value: object) -> str:
    """Return a timestamp without fractions of a second: 2026-01-31 12:00:00."""
    text = value_text(value)
    is_usual = len(text) > 19 and text[10] == "T" and text[19] in ".Z"
    return line(f"{text[:10]} {text[11:19]}" if is_usual else text, 40)


def number(value: int) -> str:
    """Return a number with thousands separators."""
    return f"{value:,}"
