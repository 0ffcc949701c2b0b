"""A server's complete description of one of its tools, as text for the user, and its digest."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence

from harness.actions import JsonValue
from harness.record import Record
from harness.text.visible import visible
from harness.tool_kinds import SERVER_TOOL

MOST_CHARACTERS = 200_000
"""Maximum number of characters of a definition as JSON. A longer one cannot be reviewed."""
_TITLES = {
    "title": "title",
    "description": "description",
    "inputSchema": "input schema",
    "outputSchema": "output schema",
    "annotations": "the server says of it (annotations)",
}
"""Titles of the parts of a definition that are shown first. All other parts follow under their names."""


class ToolDescription(Record):
    """One tool as a server lists it, and the command line of that server."""

    name: str
    definition: Mapping[str, JsonValue]
    """The complete JSON object from the server."""
    command: str
    """Command line of the server for people, with secrets masked."""
    sha256: str
    """Digest of the definition and the command line."""

    @staticmethod
    def is_name(name: str) -> bool:
        """Return whether `name` is a valid name of a tool."""
        return bool(re.fullmatch(SERVER_TOOL, name))

    def says(self, hint: str) -> bool:
        """Return whether the server sets this hint for the tool: `readOnlyHint` or `destructiveHint`."""
        annotations = self.definition.get("annotations")
        return isinstance(annotations, dict) and annotations.get(hint) is True

    @property
    def plain_text(self) -> str:
        """The description as text with the server's own characters. Not safe to show."""
        return "".join(f"{line}\n" for line in self._lines())

    @property
    def text(self) -> str:
        """The description as text that is safe to show."""
        return visible(self.plain_text)

    def _lines(self) -> Sequence[str]:
        titled = [name for name in _TITLES if name in self.definition]
        untitled = sorted(name for name in self.definition if name not in _TITLES and name != "name")
        lines = [f"tool: {self.name}"]
        for name in (*titled, *untitled):
            value = self.definition[name]
            text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
            lines.append(f"{_TITLES.get(name) or json.dumps(name)}:")
            lines += [f"  {line}" for line in text.split("\n")]  # indented, so that no line looks like a heading
        return [*lines, "command line of the server:", f"  {self.command}"]


def described(definition: JsonValue, words: Sequence[str], command: str) -> ToolDescription | str:
    """Return the description of a tool from its definition in a list, or the problem if it is invalid.

    `words` are the server's command line, and `command` is the same as text for people.
    """
    name = definition.get("name") if isinstance(definition, dict) else None
    if not isinstance(definition, dict) or not isinstance(name, str):
        return "a tool without a name"
    if not ToolDescription.is_name(name):
        return f"a tool whose name is not of plain letters, or too long: {visible(json.dumps(name[:100]))}"
    canonical = json.dumps({"command": list(words), "tool": definition}, sort_keys=True, separators=(",", ":"))
    if len(canonical) > MOST_CHARACTERS:
        return f"{name}: what is said of it has more than {MOST_CHARACTERS} characters"
    digest = hashlib.sha256(canonical.encode("ascii")).hexdigest()
    return ToolDescription(name=name, definition=definition, command=command, sha256=digest)
