"""Action: a tool call, validated and resolved; the one object that is judged, shown, logged and run. No I/O here.

An action is made of facets, the parts that a policy has an opinion on: commands, paths, and what could not be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TypeAlias, assert_never

from harness.messages import ToolCall
from harness.record import Record

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"


class Access(Enum):
    """What is done to a path."""

    READ = "read"
    WRITE = "write"
    EITHER = "either"
    """An operand of a program that is not known: strict rules for reading and for writing both apply."""


class Place(Enum):
    """Where a resolved path lies. Everything but INSIDE is at least asked about."""

    INSIDE = "inside"
    ROOT = "root"
    """The workspace folder itself."""
    ABOVE = "above"
    """A folder that contains the workspace or the home folder, or is the home folder: `/`, `/home`, `/home/ann`."""
    OUTSIDE = "outside"


class PathAccess(Record):
    """One path that a call reads or writes, resolved once."""

    written: str
    """As the model wrote it."""
    real: str
    """Absolute, links followed, `..` taken physically."""
    names: tuple[str, ...]
    """What patterns are matched against: relative to the workspace where it lies inside, else absolute;
    the path as written (normalised) and as resolved, where these differ."""
    access: Access
    place: Place


class Command(Record):
    """One simple command, dequoted: what bash would run, word for word."""

    text: str
    """As it stands in the command line, for showing."""
    argv: tuple[str, ...]
    variables: tuple[str, ...] = ()
    """Names of variables that are set in front of it."""
    paths: tuple[PathAccess, ...] = ()
    """Every operand, taken as a path: whether it is one is for the program to say."""


class Opaque(Record):
    """Text that was not plainly understood. It is at least asked about, whatever rules say auto."""

    text: str
    reason: str
    column: int
    """Where reading stopped: 1 is the first character."""
    commands: tuple[tuple[str, ...], ...] = ()
    """A loose tokenisation, which always exists: strict rules are tried on it at every position."""
    paths: tuple[PathAccess, ...] = ()


class ToolUse(Record):
    """The use of a tool that has nothing finer to judge."""

    tool: str


Facet: TypeAlias = Command | PathAccess | Opaque | ToolUse


class Action(Record):
    """A call that can be judged and, with a permit, run.

    INVARIANT: an action that runs was made by `Tool.prepare` and never changed; what the tool runs is `request`, out of
    this very object.
    """

    call: ToolCall
    tool: str
    arguments: Mapping[str, JsonValue]
    """The parsed arguments."""
    facets: tuple[Facet, ...]
    summary: str
    """One line, for the trace."""
    preview: str
    """What a person must see before saying yes: the whole command, or a diff."""
    shown_whole: bool = True
    """Whether `preview` holds everything; what it does not hold cannot be approved at a terminal."""
    request: object
    """The tool's own frozen arguments: resolved paths, time limits, digests."""
    default_of: str = ""
    """The tool whose default holds where no rule matches, if that is not the action's own: an edit that does not apply
    only reads. Strict rules about either tool hold."""
    text: str = ""
    """The raw command, for rules with `text`; empty for tools that have none."""

    def all_facets(self) -> Iterator[Facet]:
        """Yield every facet, operands of commands included; at least one, so that nothing is judged by its absence."""
        if not self.facets:
            yield ToolUse(tool=self.tool)
        for facet in self.facets:
            yield facet
            if isinstance(facet, Command | Opaque):
                yield from facet.paths


def describe_facet(facet: Facet) -> str:
    """Return a facet in a few words, for refusals, the log and explanations."""
    match facet:
        case Command():
            return _clip(facet.text)
        case PathAccess():
            return f"{facet.access.value} {_clip(facet.written)}"
        case Opaque():
            return _clip(facet.text)
        case ToolUse():
            return f"the tool {facet.tool}"
        case _:
            assert_never(facet)


def _clip(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"
