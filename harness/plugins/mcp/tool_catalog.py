"""The tools that a server lists, and the state of each: seen by the user, new, or withheld until the user reviews it.

The catalog is thread-safe.
"""

from __future__ import annotations

import hashlib
import json
from _thread import allocate_lock
from collections.abc import Callable, Mapping, Sequence

from harness.actions import JsonValue
from harness.errors import ToolError, UsageError
from harness.plugins.mcp.pins import PinFile, ToolPin
from harness.plugins.mcp.tool_description import ToolDescription, described
from harness.record import Record
from harness.redaction.marks import masked_value

MOST_TOOLS = 1_000
"""Maximum number of tools per server. The rest of a longer list is left out."""
MOST_NAMED = 5
"""Maximum number of names in a message about left-out tools."""
OTHER = "the server lists something else than its `pinned` in the configuration holds; look with `harness mcp check`"
TWICE = "the server listed two tools of that name"


class ListedTools(Record):
    """A list of tools for the client, after the filter."""

    tools: tuple[JsonValue, ...]
    """The definitions of the remaining tools, unchanged but for masked secrets."""
    left_out: tuple[str, ...]
    """New messages about the left-out tools: their names, and the reasons."""


class ToolCatalog:
    """The tools of one server, and which of them may be used."""

    def __init__(
        self,
        words: Sequence[str],
        command: str,
        pins: PinFile,
        pinned: str = "",
        *,
        redact: Callable[[str], str] = str,
    ) -> None:
        """Create the catalog. `words` are the server's command line, and `command` is the same as text for people.

        `pinned` is the declared digest of the complete list. If it is set, only that list counts as seen. `redact` masks
        secrets in the definitions: the server may send back the token that it got.
        """
        self._redact = redact
        self.server = pins.server
        self._words = tuple(words)
        self._command = command
        self._pins = pins
        self._pinned = pinned
        self._lock = allocate_lock()
        self._descriptions: dict[str, ToolDescription] = {}
        self._first: dict[str, str] = {}
        """Digest of each tool when it was first listed in this session, by name."""
        self._allowed: set[str] = set()
        """Digests of tools that any approver approved in this session."""
        self._twice: set[str] = set()
        """Names that were listed twice, so that the called tool would be ambiguous."""
        self._told_names: set[str] = set()
        self._changes = 0
        """Number of times that the server announced a change of its list."""
        self._read_at: int | None = None
        """Value of `changes` when the last complete reading of the list began."""

    @property
    def changes(self) -> int:
        """Number of times that the server has announced a change of its list."""
        return self._changes

    def changed(self) -> None:
        """Note that the server announced a change of its list. The old list is then out of date."""
        with self._lock:
            self._changes += 1

    def is_unknown(self, name: str) -> bool:
        """Return whether the list has to be read before the state of a tool can be determined."""
        with self._lock:
            return self._is_stale or (self._read_at is None and name not in self._descriptions)

    @property
    def _is_stale(self) -> bool:
        return self._changes != (self._read_at or 0)

    def take(self, definitions: Sequence[JsonValue], is_refused: Callable[[str], bool]) -> ListedTools:
        """Add one page of tools that the server lists. Return the list for the client.

        A tool is left out if it was changed since the user saw it, if it is listed twice, if its definition is invalid,
        or if `is_refused` returns true for its name. Raises UsageError if the file of pins is invalid.
        """
        definitions = [masked_value(definition, self._redact) for definition in definitions]
        results = [described(definition, self._words, self._command) for definition in definitions]
        tools = [result for result in results if isinstance(result, ToolDescription)]
        news: list[str] = []
        with self._lock:
            self._pins.read()
            self._enter(tools)
            descriptions = {tool.name: tool for tool in tools if tool.name in self._descriptions}
        try:
            self._pins.note_listed(descriptions)
        except OSError as error:
            news.append(f"what the server lists could not be kept for `harness mcp pin`: {error}")
        definitions_kept: list[JsonValue] = []
        names: dict[str, list[str]] = {}
        with self._lock:
            pins = self._pins.read()
            for result, definition in zip(results, definitions, strict=True):
                name, reason = ("", result) if isinstance(result, str) else (result.name, self._why_not(result, pins))
                note = f"{name}: {reason}"
                if not reason and not is_refused(name):
                    definitions_kept.append(definition)
                elif reason and note not in self._told_names and len(self._told_names) < MOST_TOOLS:
                    self._told_names.add(note)
                    names.setdefault(reason, []).append(name)
        news += [f"{_name_list(of)}{reason}" for reason, of in names.items()]
        return ListedTools(tools=tuple(definitions_kept), left_out=tuple(news))

    def take_whole(self, definitions: Sequence[JsonValue], began_at: int) -> ListedTools:
        """Replace the list with a complete one, which was requested when `changes` was `began_at`."""
        names = {
            definition["name"]
            for definition in definitions
            if isinstance(definition, dict) and isinstance(definition.get("name"), str)
        }
        with self._lock:
            self._descriptions = {
                name: description for name, description in self._descriptions.items() if name in names
            }
        listed_tools = self.take(definitions, lambda _: False)
        with self._lock:
            self._read_at = began_at
        return listed_tools

    @property
    def digest(self) -> str:
        """Digest of the complete list."""
        with self._lock:
            return self._digest()

    def _digest(self) -> str:
        canonical = json.dumps(
            sorted((description.name, description.sha256) for description in self._descriptions.values()),
            separators=(",", ":"),
        )
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()

    def offered(self) -> tuple[ToolDescription, ...]:
        """Return the tools that may be used: those that the user has seen, and new ones. Raises UsageError."""
        with self._lock:
            pins = self._pins.read()
            return tuple(
                description for description in self._descriptions.values() if not self._why_not(description, pins)
            )

    def forget(self) -> None:
        """Remove all tools, since the server has ended."""
        with self._lock:
            self._descriptions.clear()
            self._twice.clear()

    def usable(self, name: str) -> tuple[ToolDescription, bool]:
        """Return a tool, and whether its present description was seen. Raises ToolError if it may not be used."""
        with self._lock:
            if self._is_stale:
                raise ToolError(
                    f"The server {self.server} said that its tools changed, and they could not be read since. "
                    "List its tools, and try again."
                )
            description = self._descriptions.get(name)
            if description is None and name not in self._twice:
                raise ToolError(f"The server {self.server} has not listed a tool of that name.")
            try:
                pins = self._pins.read()
            except UsageError as error:
                raise ToolError(f"The list of the tools that a person has seen cannot be read: {error}") from None
            reason = TWICE if description is None else self._why_not(description, pins)
            if description is None or reason:
                raise ToolError(f"The tool {name} cannot be used: {reason}")
            is_approved = bool(self._pinned) or _seen_description(description, pins) is not None
            return description, is_approved or description.sha256 in self._allowed

    def note_yes(self, description: ToolDescription) -> None:
        """Note that the present description of a tool was approved. In this session it then counts as seen."""
        with self._lock:
            self._allowed.add(description.sha256)

    def pin(self, description: ToolDescription) -> None:
        """Store that the user has seen the present description of a tool. Raises ToolError if that cannot be stored."""
        try:
            self._pins.pin(description)
        except (OSError, UsageError) as error:
            raise ToolError(f"The list of the tools that a person has seen cannot be written: {error}") from None

    def _enter(self, descriptions: Sequence[ToolDescription]) -> None:
        names: set[str] = set()
        for description in descriptions:
            (self._twice if description.name in names else names).add(description.name)
        for description in descriptions:
            if description.name in self._twice:
                self._descriptions.pop(description.name, None)
            elif description.name in self._descriptions or len(self._descriptions) < MOST_TOOLS:
                self._descriptions[description.name] = description
                if len(self._first) < MOST_TOOLS:
                    self._first.setdefault(description.name, description.sha256)

    def _why_not(self, description: ToolDescription, pins: Mapping[str, ToolPin]) -> str:
        """Return the reason why a listed tool may not be used, or an empty string."""
        if description.name in self._twice:
            return TWICE
        if description.name not in self._descriptions:
            return f"the server lists more than {MOST_TOOLS} tools"
        if self._pinned:
            return "" if self._digest() == self._pinned else OTHER
        seen_before = _seen_description(description, pins)
        if description.sha256 == (self._first.get(description.name, "") if seen_before is None else seen_before.sha256):
            return ""
        last_listed = pins[description.name].listed if description.name in pins else None
        if seen_before is not None and (last_listed is None or last_listed.sha256 != description.sha256):
            return "another version of it was pinned; start the session again"
        event = "it was first listed" if seen_before is None else "a person saw it"
        return f"the server changed this tool after {event}; {self.way_to_pin()}"

    def way_to_pin(self, name: str = "") -> str:
        """Return advice on the command with which the user can review a tool, or all tools without `name`."""
        words = f"harness mcp pin {self.server} {name}".strip()
        return f"a person looks at it with `{words}`, at a terminal"


def _seen_description(description: ToolDescription, pins: Mapping[str, ToolPin]) -> ToolDescription | None:
    """Return the pinned description of a tool. `None` without one, or if it was pinned under another command line."""
    pinned = pins[description.name].pinned if description.name in pins else None
    return (
        pinned
        if pinned is not None and (pinned.sha256 == description.sha256 or pinned.command == description.command)
        else None
    )


def _name_list(names: Sequence[str]) -> str:
    """Return the first names and the number of the others, with a colon. Empty if the tools have no names."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}: " if names[0] else ""
