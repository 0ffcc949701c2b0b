"""How an answer about logs is written: lines for people, made safe to show, or one JSON object a line; decides nothing."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Mapping

from harness.actions import JsonValue
from harness.cli.console import Console, wants_colour
from harness.cli.trace import Tone
from harness.visible import visible_line


class Output:
    """Stdout, as text or as JSON; of two forms of the same thing, the one that was asked for is written."""

    def __init__(self, environment: Mapping[str, str], *, as_json: bool) -> None:
        self.as_json = as_json
        self._console = Console(sys.stdout, colour=wants_colour(sys.stdout, environment))

    def row(self, fields: Mapping[str, JsonValue]) -> None:
        """Write one object, where JSON was asked for. Raises BrokenPipeError where nobody reads any more."""
        if self.as_json:
            sys.stdout.write(json_text(fields) + "\n")

    def line(self, text: str, tone: Tone = Tone.PLAIN, *, width: int = 2_000) -> None:
        """Write one line of at most `width` characters, where text was asked for.

        Raises BrokenPipeError where nobody reads any more, OSError where it cannot be written.
        """
        if self.as_json:
            return
        self._console.line(visible_line(text, width), tone)
        if self._console.broken:
            sys.stdout.flush()  # it raises once more what was in the way: a full disk is no broken pipe
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")


def json_text(value: Mapping[str, JsonValue]) -> str:
    """Return an object as one line of JSON in ASCII, keys sorted. Of one that is too deep to be written, it says so."""
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False)
    except RecursionError:
        plain = {name: one for name, one in value.items() if one is None or isinstance(one, str | int | float)}
        return json.dumps({**plain, "left_out": "values that are nested too deep"}, sort_keys=True, allow_nan=False)


def short_digest(digest: str | None) -> str:
    """Return the beginning of a digest, or `none`: the JSON form has the whole."""
    return visible_line(digest[:12], 12) if digest else "none"


def count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: `1 call`, `2 calls`."""
    return f"{number} {one if number == 1 else many or one + 's'}"
