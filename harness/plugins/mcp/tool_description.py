"""A server's complete description of one of its tools: shown to a person, and covered by a digest."""

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
"""Maximum number of characters of a definition as JSON: people do not read a longer one."""
_TITLES = {
    "title": "title",
    "description": "description",
    "inputSchema": "input schema",
    "outputSchema": "output schema",
    "annotations": "the server says of it (annotations)",
}
"""Parts of a definition that are shown first, with their titles; all other parts follow under their names."""


class ToolDescription(Record):
    """One tool as a server lists it, and the command line of that server."""

    name: str
    definition: Mapping[str, JsonValue]
    """The whole object: everything that a model may read of it."""
    command: str
    """The server's command line, for people, secrets masked."""
    sha256: str
    """Over the definition and the words of the command line."""

    @staticmethod
    def is_name(name: str) -> bool:
        """Say whether a tool may be named so."""
        return bool(re.fullmatch(SERVER_TOOL, name))

    def says(self, hint: str) -> bool:
        """Say whether the server claims this of the tool, in so many words: `readOnlyHint`, `destructiveHint`."""
        annotations = self.definition.get("annotations")
        return isinstance(annotations, dict) and annotations.get(hint) is True

    @property
    def plain_text(self) -> str:
        """All of it in words, as the server wrote them: not safe to show."""
        return "".join(f"{line}\n" for line in self._lines())

    @property
    def text(self) -> str:
        """All of it in words that are safe to show."""
        return visible(self.plain_text)

    def _lines(self) -> Sequence[str]:
        titled = [name for name in _TITLES if name in self.definition]
        untitled = sorted(name for name in self.definition if name not in _TITLES and name != "name")
        lines = [f"tool: {self.name}"]
        for name in (*titled, *untitled):
            value = self.definition[name]
            text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
            lines.append(f"{_TITLES.get(name) or json.dumps(name)}:")
            lines += [f"  {line}" for line in text.split("\n")]  # none can look like a heading
        return [*lines, "command line of the server:", f"  {self.command}"]


def described(definition: JsonValue, words: Sequence[str], command: str) -> ToolDescription | str:
    """Return the description of a tool that a server lists, or why it is none; `words` are its command line, `command`
    the same for people."""
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
