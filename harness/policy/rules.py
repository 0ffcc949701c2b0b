"""Rules, as a policy file writes them, and when a rule covers or touches a part of an action.

An auto rule must cover a facet wholly. A stricter rule needs to touch it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from harness.actions import (
    Access,
    Action,
    Command,
    Facet,
    JsonValue,
    Opaque,
    PathAccess,
    Place,
    ToolArgument,
    ToolUse,
    Unconfined,
    describe_facet,
)
from harness.decisions import Decision
from harness.digest import digest_of
from harness.paths import is_within
from harness.policy.argument_patterns import ArgumentPatterns
from harness.policy.granted_programs import MODELLED, is_known_work
from harness.policy.hosts import Reach
from harness.policy.matchers import ArgvPattern, PathPatterns
from harness.programs.catalog import is_more_than_a_name
from harness.record import Record
from harness.tool_kinds import is_named

if TYPE_CHECKING:
    from harness.policy.hosts import HostPattern


class Layer(Enum):
    """Where a rule or a default comes from."""

    BUILT_IN = "built-in"
    MANAGED = "managed"
    FILE = "file"
    """Given with --policy, or loaded by a program; stands in place of USER and SHIPPED. Of several each decides alone."""
    USER = "user"
    SHIPPED = "shipped"
    PROJECT = "project"
    SESSION = "session"


class Origin(Record):
    """A place in a policy file."""

    file: str
    line: int

    def __str__(self) -> str:
        """Return `file:line`."""
        return f"{self.file}:{self.line}"


_COVERED = (Place.INSIDE, Place.TEMPORARY)
"""Where a path may lie that an auto rule covers by its name."""


class Rule(Record):
    """One `[[rule]]`. Every matcher that is given must match."""

    id: str
    decision: Decision
    origin: Origin
    layer: Layer
    tools: tuple[str, ...] = ()
    """Empty: every tool; see `is_named`."""
    argv: ArgvPattern | None = None
    env: tuple[str, ...] = ()
    access: tuple[Access, ...] = ()
    path: PathPatterns | None = None
    exceptions: PathPatterns | None = None
    text: str = ""
    reason: str = ""
    hint: str = ""
    write: tuple[str, ...] = ()
    """Of an auto rule for commands: what a command that it covers may write, with everything below; named as in
    `Effects.granted`."""
    network: bool = False
    """Of an auto rule for commands: whether they may reach the network."""
    hosts: tuple[str, ...] = ()
    """Where not: the hosts that they may reach all the same (policy/hosts.py)."""
    folder: str = ""
    """Of a grant for a command: the folder that it runs in. INVARIANT: a grant covers no command that is fed."""
    walled: bool = False
    """Of a grant for a program: it covers whatever follows the words of `argv`, in `folder` and below, also what such a
    command runs; without `argv` every command that plainly works there, and what the line writes of `path`. What it lets run
    is held by the kernel, or does not run (verdict._effects)."""
    exact: bool = False
    """Of a grant for one file: its pattern is that very name, and nothing below a folder of the name."""
    goes_to: tuple[HostPattern, ...] = ()
    """Hosts that a tool goes to; a rule that names some is about such tools alone."""
    where: tuple[ArgumentPatterns, ...] = ()
    """What is said of the arguments of a tool from outside; a rule that says something is about such tools alone."""
    read_only: bool = False
    """Of an auto rule: it covers only tools that can do nothing but read, or of which their server says so."""
    arguments_sha256: str = ""
    """Of a grant for one call of a tool: `arguments_digest` of what it was called with."""

    @property
    def reaches(self) -> bool:
        """Whether it grants any way to the network."""
        return self.network or bool(self.hosts)

    @property
    def reach(self) -> Reach:
        """The hosts that it lets be reached."""
        return None if self.network else self.hosts

    @property
    def label(self) -> str:
        """The rule's id and place, as refusals and logs show it."""
        return f"{self.id} ({self.origin})"

    @property
    def of_tools(self) -> bool:
        """Whether it is about whole calls of tools from outside: no command and no file of its own."""
        auto = self.decision is Decision.AUTO and self.argv is None and self.path is None and not self.walled
        return auto or bool(self.where)

    def covers(self, action: Action, facet: Facet) -> bool:
        """Say whether this rule, taken as an auto rule, accounts for the whole facet."""
        if self.tools and not is_named(action.tool, self.tools):
            return False
        match facet:
            case Command():
                return self._covers_command(facet)
            case PathAccess() if self.of_tools:
                return _is_here(facet) and self._covers_uses(action)
            case PathAccess():
                return self.argv is None and self.path is not None and self._covers_path(facet)
            case Opaque():
                return self.walled and facet.given_to is not None and self._covers_inside_walls(facet.given_to)
            case ToolUse():
                return self.of_tools and self._covers_uses(action)
            case Unconfined():
                return False

    def uncovered_words(self, action: Action, facet: Facet) -> str:
        """Return why this rule, taken as an auto rule, does not cover a facet, without a full stop. Empty if it does."""
        if self.covers(action, facet):
            return ""
        if self.tools and not is_named(action.tool, self.tools):
            return f"`tool` does not name {action.tool!r}"
        match facet:
            case Command():
                return self._uncovered_command_words(facet)
            case PathAccess() if self.of_tools or self.argv is not None:
                return "`argv` covers commands only"
            case PathAccess():
                return self._uncovered_path_words(facet)
            case Opaque():
                return f"{facet.text!r} is not plainly understood: {facet.reason}"
            case ToolUse():
                return self._uncovered_use_words(facet)
            case Unconfined():
                return "no rule covers a run without confinement"

    def _uncovered_command_words(self, command: Command) -> str:
        match None if self.walled else self._uncovered_part(command):
            case ("argv", _) if self.argv is not None:
                return self.argv.uncovered_words(command.argv)
            case ("...", word):
                return f"{word!r} is more than a plain name"
            case ("env", name):
                return f"the variable {name!r} is not in `env`"
            case ("path", written):
                return f"no pattern of `path` covers {written!r}"
            case _:
                return f"the rule is not about the command {command.text!r}"

    def _uncovered_path_words(self, path: PathAccess) -> str:
        if path.place not in _COVERED:
            return f"{path.written!r} does not lie in the workspace"
        if not self._accounts_for(path.access):
            return f"`access` does not list {path.access.value}"
        if self.exceptions is not None and _hits_any(self.exceptions, path):
            return f"`except` covers {path.written!r}"
        return f"no pattern of `path` covers {path.written!r}"

    def _uncovered_use_words(self, use: ToolUse) -> str:
        if self.goes_to and not (use.host and any(each.matches(use.host, use.port) for each in self.goes_to)):
            return f"no pattern of `host` covers {use.host!r}"
        if words := next(filter(None, (each.uncovered_words(use.arguments) for each in self.where)), ""):
            return words
        return (
            "the tool may do more than read"
            if self.read_only
            else "the tool may destroy, and a star does not cover that"
        )

    def _covers_uses(self, action: Action) -> bool:
        """Say whether the rule accounts for the use of a tool, of which all that the call reads and writes is a part."""
        if self.arguments_sha256 and self.arguments_sha256 != arguments_digest(action.arguments):
            return False
        uses = [facet for facet in action.facets if isinstance(facet, ToolUse)]
        return bool((self.tools or self.goes_to) and uses) and all(map(self._covers_use, uses))

    def _covers_use(self, use: ToolUse) -> bool:
        if use.says_destroys and use.tool not in self.tools:  # a star means what nobody thought of
            return False
        if self.read_only and not (use.only_reads or (use.says_reads and not use.says_destroys)):
            return False
        if self.goes_to and not (use.host and any(one.matches(use.host, use.port) for one in self.goes_to)):
            return False
        return all(each.covers(use.arguments) for each in self.where)

    def _covers_command(self, command: Command) -> bool:
        if self.walled:
            return self._covers_inside_walls(command)
        return self._uncovered_part(command) is None

    def _uncovered_part(self, command: Command) -> tuple[str, str] | None:
        """Return the key of the rule that a command does not meet, and the word if it is not one of `argv`."""
        if self.argv is None or not self.argv.covers(command.argv):
            return "argv", ""
        for word in command.argv[len(self.argv.tokens) :]:
            if is_more_than_a_name(command.argv[0], word):
                return "...", word
        if self.folder and (command.fed or command.folder != self.folder):
            return "folder", command.folder
        for name in command.variables:
            if name not in self.env:
                return "env", name
        if self.path is not None:
            for path in command.paths:
                if not self._covers_path(path):
                    return "path", path.written
        return None

    def _covers_inside_walls(self, command: Command) -> bool:
        if not command.folder.startswith("/") or not is_within(command.folder, self.folder):
            return False
        if self.argv is None:
            return is_known_work(command, self.folder)
        begins = tuple(token[0] for token in self.argv.tokens)
        is_program = any(words[: len(begins)] == begins for words in (command.argv, *command.run_by))
        known = all(name in self.env for name in command.variables)
        return is_program and known and (self.reaches or not command.network or command.act not in MODELLED)

    def _covers_path(self, path: PathAccess) -> bool:
        if self.path is None or path.place not in _COVERED or not self._accounts_for(path.access):
            return False
        if self.exact and any(f"/{name}" not in self.path.patterns for name in path.names):
            return False
        if not path.whole or (self.exceptions is not None and _hits_any(self.exceptions, path)):
            return False
        return self.path.covers((*path.names, *path.below))  # of a tree, what lies below is meant as well

    def _accounts_for(self, access: Access) -> bool:
        """Say whether the rule is about this access; of an operand that may be read or written, about both."""
        wanted = (Access.READ, Access.WRITE) if access is Access.EITHER else (access,)
        return all(each in self.access for each in wanted)

    def hits(self, action: Action, facet: Facet) -> bool:
        """Say whether this rule, taken as a strict one, touches the facet."""
        if self.tools and not is_named(action.tool, self.tools) and not is_named(action.default_of, self.tools):
            return False
        if self.text and self.text not in action.text:
            return False
        if (self.where or self.goes_to) and not isinstance(facet, ToolUse):
            return False
        match facet:
            case Command():
                return self._hits_command(facet)
            case Opaque():
                return self._hits_opaque(facet)
            case PathAccess():
                return self.argv is None and not self.env and (self.path is None or self._hits_path(facet))
            case ToolUse():
                return self.argv is None and not self.env and not self.text and self._hits_use(facet)
            case Unconfined():
                return self.argv is None and self.path is None and not self.env and not self.text

    def unhit_words(self, action: Action, facet: Facet) -> str:
        """Return why this rule, taken as a strict one, does not touch a facet, without a full stop. Empty if it does."""
        if self.hits(action, facet):
            return ""
        if self.text and self.text not in action.text:
            return f"the text {self.text!r} does not occur"
        match facet:
            case Command() if self.argv is not None and (words := self.argv.unhit_words(facet.argv)):
                return words
            case Command() if self.env and not any(name in self.env for name in facet.variables):
                return "no variable of `env` is set"
            case Command() if self.path is not None and (self.argv is not None or self.env):
                return "no operand matches `path`"
            case PathAccess() if self.path is not None:
                if facet.access not in (Access.EITHER, *self.access):
                    return f"`access` does not list {facet.access.value}"
                is_excepted = self.path.hits(facet.names)
                words = "`except` covers" if is_excepted else "no pattern of `path` matches"
                return f"{words} {facet.written!r}"
            case ToolUse() if self.goes_to:
                return f"no pattern of `host` matches {facet.host!r}"
            case ToolUse() if self.where:
                name = next((each.name for each in self.where if each.hit_in(facet.arguments) is None), "")
                return f"`where` does not touch the argument {name!r}"
            case _:
                return f"the rule is not about {describe_facet(facet)!r}"

    def _hits_use(self, use: ToolUse) -> bool:
        if self.goes_to and not (use.host and any(map(partial(_may_mean, use), self.goes_to))):
            return False
        if self.where:
            return all(each.hit_in(use.arguments) is not None for each in self.where)
        return self.path is None or self.argument_hit(use) is not None

    def argument_hit(self, use: ToolUse) -> ToolArgument | None:
        """Return the argument by which the rule touches the use of a tool; None where it is by none."""
        if self.where:
            return self.where[0].hit_in(use.arguments)
        if self.path is None or (use.writes_nothing and Access.READ not in self.access):
            return None
        # Any text may be a path that the tool reads or writes, as any word of a command that no model covers.
        return next((each for each in use.arguments if not each.name or self._hits_names(each.names)), None)

    def _hits_command(self, command: Command) -> bool:
        if self.argv is not None and not self.argv.hits(command.argv):
            return False
        if self.env and not any(name in self.env for name in command.variables):
            return False
        if self.path is not None:
            # Without argv the operands are facets of their own, so that the verdict names the path.
            return (self.argv is not None or bool(self.env)) and any(self._hits_path(path) for path in command.paths)
        return True

    def _hits_opaque(self, opaque: Opaque) -> bool:
        if self.argv is not None and not any(self.argv.hits_anywhere(words) for words in opaque.commands):
            return False
        if self.env and not any(_sets_variable(self.env, words) for words in opaque.commands):
            return False
        if self.path is not None:
            return (self.argv is not None or bool(self.env)) and any(self._hits_path(path) for path in opaque.paths)
        return True

    def _hits_path(self, path: PathAccess) -> bool:
        if self.path is None or (path.access is not Access.EITHER and path.access not in self.access):
            return False
        if path.tree and next(self.meant_below(path), ""):
            return True  # whatever the folder itself is called: an exception is the name of a file
        return self._hits_names(path.names)

    def hits_only_below(self, path: PathAccess) -> bool:
        """Return whether the rule means files below the path, and not the path itself."""
        return path.tree and not self._hits_names(path.names) and next(self.meant_below(path), "") != ""

    def _hits_names(self, names: Sequence[str]) -> bool:
        if self.path is None or not self.path.hits(names):
            return False
        return self.exceptions is None or not self.exceptions.covers(names)

    def meant_below(self, path: PathAccess) -> Iterator[str]:
        """Yield the files below the path that the rule means, and does not except; some of them twice."""
        meant = self.path.hit_among(path.below) if self.path is not None else ()
        yield from (name for name in meant if self.exceptions is None or not self.exceptions.covers((name,)))


def arguments_digest(arguments: Mapping[str, JsonValue]) -> str:
    """Return the digest of a call's arguments, however they were written."""
    return digest_of(json.dumps(dict(arguments), sort_keys=True).encode())


def _is_here(path: PathAccess) -> bool:
    """Say whether a tool's path lies in the workspace; the workspace itself may be read, with all that is in it."""
    here = path.place is Place.INSIDE or (path.place is Place.ROOT and path.access is Access.READ)
    return here and path.whole


def _hits_any(patterns: PathPatterns, path: PathAccess) -> bool:
    return patterns.hits(path.names) or next(patterns.hit_among(path.below), None) is not None


def _may_mean(use: ToolUse, pattern: HostPattern) -> bool:
    """Say whether a strict rule means a host: at any port where it names none, and with the name below which it means all."""
    if pattern.port not in (None, use.port):
        return False
    return pattern.matches(use.host, pattern.port or 443) or (pattern.below and use.host == pattern.host)


def _sets_variable(names: Sequence[str], words: Sequence[str]) -> bool:
    return any("=" in word and word.partition("=")[0].rstrip("+") in names for word in words)


UNCOVERED = "uncovered"
"""The key under [tools] for what no model covers."""


class ToolDefault(Record):
    """What a tool's calls get when no rule matches."""

    tool: str
    """A tool's name, `default` for those that are not named, or `uncovered` for commands that no model covers."""
    decision: Decision
    origin: Origin
    layer: Layer
    spares_reading: bool = False
    """Of plan mode: it says nothing of tools that can do nothing but read."""

    @property
    def what(self) -> str:
        """What it is the default for, in words."""
        return {"default": "any other tool", UNCOVERED: "commands that no model covers"}.get(self.tool, self.tool)


class Readers(Record):
    """What one file says of commands that only look: `readers` under `[tools]`."""

    on: bool
    origin: Origin
    layer: Layer
