"""A user's grant, as it appears in questions, logs and files. The rule is in policy/session_grants.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from harness.actions import Access, JsonValue
from harness.paths import is_within
from harness.record import Record

EVERYTHING = "/**"
"""The pattern of all files of the workspace, without those that tests and builds obey."""
EVERY_FILE = "/**/*"
"""The pattern of all files of the workspace."""
WORKSPACE_ONLY = "workspace only, offline"
"""The workspace walls in words."""
_WRITES_WORKSPACE = "writes the workspace; offline"
_MOST_NAMED = 2
_MOST_EXPOSED = 5


class GrantScope(Enum):
    """The duration of a grant."""

    SESSION = "session"
    WORKSPACE = "workspace"
    """The grant applies in this workspace until it is revoked. It is saved in the user's own state folder."""


class GrantPattern(Record):
    """The subject of a grant.

    It is one exact command, a program with any arguments, files, or calls of an external tool.
    """

    tools: tuple[str, ...]
    argv: tuple[str, ...] = ()
    path: str = ""
    """A gitignore pattern that begins with `/`, relative to the workspace. Empty for a command."""
    access: tuple[Access, ...] = ()
    write: tuple[str, ...] = ()
    """Places that a command may write, named as in `Effects.granted`."""
    network: bool = False
    hosts: tuple[str, ...] = ()
    """Hosts that the command may reach even if `network` is false."""
    folder: str = ""
    """Working directory of the command. A granted program may also run in folders below it."""
    program: bool = False
    """Whether `argv` is only the start of a command.

    If `argv` is empty, the grant covers every command that fits into the workspace walls. The command runs in walls: it
    writes `write` and its temporary folder, and cannot reach a Unix socket.
    """
    variables: tuple[str, ...] = ()
    """Names of environment variables that may be set in front of a program."""
    exposes: tuple[str, ...] = ()
    """Files of the workspace that a rule names but the program's walls cannot protect.

    These are the files that the question listed.
    """
    arguments_sha256: str = ""
    """Digest of the arguments, for one call of an external tool."""

    @property
    def text(self) -> str:
        """The pattern in one line, for the user. Not yet safe to display."""
        return ", ".join(filter(None, (self.name, self.walls())))

    @property
    def of_tool(self) -> bool:
        """Whether the grant is for calls of an external tool, without commands and files."""
        return not (self.argv or self.path or self.program)

    @property
    def name(self) -> str:
        """The grant in a few words. Not yet safe to display."""
        if self.of_tool:
            which = "with exactly these arguments" if self.arguments_sha256 else "with any arguments"
            return f"{', '.join(self.tools)} {which}"
        if self.program and not self.argv:
            return "any command"
        if self.argv:
            import shlex

            set_before = (f"{name}=..." for name in self.variables)
            return " ".join((*set_before, shlex.join(self.argv), *("*" for _ in range(self.program))))
        does, path = "edits" if Access.WRITE in self.access else "reads", self.path.removeprefix("/")
        if self.path in (EVERYTHING, EVERY_FILE):
            return f"all {does} in the workspace"
        return f"{does} in {path.removesuffix('**')}" if path.endswith("/**") else f"{does} of {path}"

    def walls(self, working_folder: str = "", caches: Sequence[str] | None = None) -> str:
        """Return the walls of a command, and its folder if that is not `working_folder`. Not yet safe to display.

        Empty for files. Places are listed by name. Without `caches`, more than a few places outside are only counted. A
        command that may write all of `caches` gets the word "caches" for them.
        """
        if not self.argv and not self.program:
            return ""
        inside, outside = (
            [place for place in self.write if place.startswith(("/", "~")) == is_outside]
            for is_outside in (False, True)
        )
        if caches is None:
            outside = outside if len(outside) <= _MOST_NAMED else [f"{len(outside)} folders outside the workspace"]
        elif self.has_caches(caches):
            outside = [*(place for place in outside if place not in caches), "caches"]
        places = ["the workspace"] if not inside or "." in inside else inside
        network = f"network: {'any host' if self.network else ', '.join(self.hosts)}"
        text = f"writes {', '.join((*places, *outside))}; {network if self.network or self.hosts else 'offline'}"
        if text == _WRITES_WORKSPACE:
            text = WORKSPACE_ONLY
        if self.exposes:
            more = f" and {len(self.exposes) - _MOST_EXPOSED} more" if len(self.exposes) > _MOST_EXPOSED else ""
            text = f"{text}; without protection of {', '.join(self.exposes[:_MOST_EXPOSED])}{more}"
        return f"{text}; in {_folder(self.folder, working_folder)}" if self.folder not in (working_folder, "") else text

    def has_caches(self, caches: Sequence[str]) -> bool:
        """Return whether the grant may write all of several caches."""
        return len(caches) > 1 and set(caches) <= set(self.write)


def _folder(folder: str, working_folder: str) -> str:
    return (
        f"{folder[len(working_folder.rstrip('/')) + 1 :]}/"
        if working_folder and is_within(folder, working_folder)
        else folder
    )


def pattern_fields(pattern: GrantPattern) -> dict[str, JsonValue]:
    """Return a pattern in the form of logs and files."""
    fields: dict[str, JsonValue] = {
        "tools": list(pattern.tools),
        "argv": list(pattern.argv),
        "path": pattern.path,
        "access": [access.value for access in pattern.access],
        "write": list(pattern.write),
        "network": pattern.network,
        "folder": pattern.folder,
    }
    if pattern.hosts:
        fields["hosts"] = list(pattern.hosts)
    if pattern.program:
        fields |= {"program": True, "variables": list(pattern.variables), "exposes": list(pattern.exposes)}
    if pattern.arguments_sha256:
        fields["of_arguments"] = pattern.arguments_sha256
    return fields


def pattern_from(fields: Mapping[str, JsonValue]) -> GrantPattern:
    """Return the pattern of `fields`. Raises ValueError for fields that `pattern_fields` cannot have returned."""
    path, network, folder = (fields.get(name) for name in ("path", "network", "folder"))
    digest = fields.get("of_arguments", "")
    if not isinstance(digest, str):
        raise ValueError("of_arguments is a text")  # noqa: TRY004
    if not isinstance(path, str) or not isinstance(network, bool) or not isinstance(folder, str):
        raise ValueError("a grant has path and folder, which are texts, and network, which is true or false")  # noqa: TRY004
    if fields.get("program", True) is not True:
        raise ValueError("program is true, or is not there")
    return GrantPattern(
        tools=_texts(fields.get("tools")),
        argv=_texts(fields.get("argv")),
        path=path,
        access=tuple(Access(word) for word in _texts(fields.get("access"))),
        write=_texts(fields.get("write")),
        network=network,
        hosts=_texts(fields.get("hosts", [])),
        folder=folder,
        program="program" in fields,
        variables=_texts(fields.get("variables", [])),
        exposes=_texts(fields.get("exposes", [])),
        arguments_sha256=digest,
    )


def _texts(value: JsonValue) -> tuple[str, ...]:
    texts = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
    if not isinstance(value, list) or len(texts) != len(value):
        raise ValueError("a list of texts is wanted")
    return tuple(texts)
