"""A person's grants: for a session, or permanently for a workspace.

A grant acts as an auto rule of the layer SESSION. It covers exactly the shown words or files, a folder, a program with
any words inside walls, or an external tool. Its matchers cannot be written in a policy file. It lifts only a CONFIRM of
a default. grant_offers.py offers grants, gate/grants_in_force.py stores them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from harness.actions import Access, Act, Action, Command, Decision, Facet, JsonValue, Opaque, PathAccess, ToolUse
from harness.digest import digest_of
from harness.grant_pattern import EVERY_FILE, EVERYTHING, GrantPattern, GrantScope, pattern_fields
from harness.paths import is_within
from harness.policy.argv_pattern import ArgvPattern
from harness.policy.built_in import ENTRY_POINTS
from harness.policy.command_matchers import AnyCommand, CommandMatcher
from harness.policy.effects import DEFAULT_WRITE, place_problem
from harness.policy.granted_programs import MODELLED, granted_words
from harness.policy.hosts import Reach, host_patterns, meet
from harness.policy.matcher import Matcher
from harness.policy.matchers import FileMatcher
from harness.policy.openings import runs_repository_code
from harness.policy.patterns import PathPatterns
from harness.policy.policy import Policy
from harness.policy.rule_examples import rule_problem
from harness.policy.rules import Layer, Opens, Origin, Rule
from harness.policy.tool_matchers import ToolMatcher
from harness.programs.runners import WRAPPERS, name_of
from harness.record import Record, replace

if TYPE_CHECKING:
    from harness.place_changes import PlaceChange

SESSION_GRANTS = "grants of this session"
"""Name shown instead of a file name, for a grant that is not stored in a file."""
_ENTRY_POINTS = PathPatterns(patterns=(*sorted(ENTRY_POINTS), "pytest/*.py", "unittest/*.py", "**/node_modules/.bin/*"))
"""Files that tests and builds obey. Editing them needs approval even with a grant to edit all files."""
PATTERN_CHARACTERS = frozenset("*?[]\\!#")
"""Characters with a special meaning in path patterns. A name with one of them cannot be a pattern for itself."""


class Grant(Record):
    """A pattern that a person granted."""

    id: str
    """ID such as `grant-1`. For stored grants see `kept_id`."""
    scope: GrantScope
    pattern: GrantPattern
    origin: Origin
    """Place of the grant: file and line, or for a session SESSION_GRANTS and the number of the call."""
    until: str = ""
    """End of the grant (UTC, as in `2026-11-30T12:00:00Z`), checked when a session begins. Empty without an end."""
    changed: tuple[PlaceChange, ...] = ()
    """Changes of protected places by a command under this grant. It is suspended until a person has answered them."""

    @property
    def rule(self) -> Rule:
        """The auto rule that represents the grant."""
        pattern = self.pattern
        return Rule(
            id=self.id,
            decision=Decision.AUTO,
            origin=self.origin,
            layer=Layer.SESSION,
            matchers=tuple(_matchers(pattern)),
            opens=Opens(write=pattern.write, network=pattern.network, hosts=pattern.hosts),
            reason=f"a person granted {pattern.name} for this {self.scope.value}",
        )


def _matchers(pattern: GrantPattern) -> Iterator[Matcher]:
    tokens = tuple((word,) for word in pattern.argv)
    files = _files(pattern) if pattern.path else None
    if pattern.program and not tokens:
        yield AnyCommand(folder=pattern.folder)
    elif pattern.program:
        yield GrantedProgram(
            begins=pattern.argv,
            folder=pattern.folder,
            variables=pattern.variables,
            reaches=pattern.network or bool(pattern.hosts),
        )
    elif tokens:
        yield GrantedCommand(argv=ArgvPattern(tokens=tokens, rest=False), folder=pattern.folder)
    elif files is not None:
        yield files
    elif pattern.arguments_sha256:
        yield GrantedCall(arguments_sha256=pattern.arguments_sha256)
    yield ToolMatcher(names=pattern.tools)


def _files(pattern: GrantPattern) -> FileMatcher:
    patterns = PathPatterns(patterns=(pattern.path,))
    if pattern.path == EVERY_FILE:
        return FileMatcher(patterns=patterns, access=pattern.access)
    if pattern.path == EVERYTHING:
        return FileMatcher(patterns=patterns, access=pattern.access, exceptions=_ENTRY_POINTS)
    if pattern.path.endswith("/**"):
        return FileMatcher(patterns=patterns, access=pattern.access)
    return GrantedFile(patterns=patterns, access=pattern.access)


class GrantedCommand(CommandMatcher):
    """Matches exactly these words in one folder, if the command gets no input."""

    folder: str

    def covers(self, action: Action, facet: Facet) -> bool:
        """Return whether the facet is a command with these words in this folder."""
        return super().covers(action, facet) and isinstance(facet, Command) and self._is_here(facet)

    def _is_here(self, command: Command) -> bool:
        return not self.folder or (not command.fed and command.folder == self.folder)


class GrantedFile(FileMatcher):
    """Matches one file by exactly its name, and no file below a folder of that name."""

    can_hit: ClassVar = frozenset((PathAccess,))

    def covers_path(self, path: PathAccess) -> bool:
        """Return whether the granted name covers the path and the path has no other name."""
        return super().covers_path(path) and all(f"/{name}" in self.patterns.patterns for name in path.names)


class GrantedProgram(Matcher):
    """Matches a program with any words, in a folder and below, and the commands that it runs.

    The program runs only inside walls.
    """

    begins: tuple[str, ...]
    """First words of the command."""
    folder: str
    variables: tuple[str, ...]
    """Names of the variables that may be set before the command."""
    reaches: bool
    """Whether the program may reach the network, or some hosts."""

    can_hit: ClassVar = frozenset((Command, Opaque))
    answers_for: ClassVar = frozenset((Command, Opaque))
    walled: ClassVar = True

    def covers(self, action: Action, facet: Facet) -> bool:  # noqa: ARG002 - the facet holds the words
        """Return whether the grant covers a command, or the text given to it."""
        match facet:
            case Command():
                return self._is_granted(facet)
            case Opaque():
                return facet.given_to is not None and self._is_granted(facet.given_to)
            case _:
                return False

    @property
    def names_subject(self) -> bool:
        """True: it names a program."""
        return True

    def _is_granted(self, command: Command) -> bool:
        if not command.folder.startswith("/") or not is_within(command.folder, self.folder):
            return False
        is_program = any(words[: len(self.begins)] == self.begins for words in (command.argv, *command.run_by))
        has_known_variables = all(name in self.variables for name in command.variables)
        fits = not runs_repository_code(command) if self.reaches else not command.network or command.act not in MODELLED
        return is_program and has_known_variables and fits


class GrantedCall(Matcher):
    """Matches a call of an external tool with exactly these arguments."""

    arguments_sha256: str
    """The `arguments_digest` of the call."""

    of_parts: ClassVar = False
    can_hit: ClassVar = frozenset((ToolUse,))

    def covers(self, action: Action, facet: Facet) -> bool:  # noqa: ARG002 - the action holds the arguments
        """Return whether the call has these arguments."""
        return self.arguments_sha256 == arguments_digest(action.arguments)


def arguments_digest(arguments: Mapping[str, JsonValue]) -> str:
    """Return the digest of a call's arguments. The order of fields and blanks do not matter."""
    return digest_of(json.dumps(dict(arguments), sort_keys=True).encode())


def session_grant(identity: str, pattern: GrantPattern, call: int = 0) -> Grant:
    """Return a grant for the session. `call` is the number of the call at whose question it was given; 0 for none."""
    origin = Origin(file=SESSION_GRANTS, line=call)
    return Grant(id=identity, scope=GrantScope.SESSION, pattern=pattern, origin=origin)


def kept_id(pattern: GrantPattern) -> str:
    """Return the ID of a stored grant. It is a digest of the pattern, so that different grants have different IDs."""
    data = json.dumps(pattern_fields(pattern), sort_keys=True).encode()
    return f"kept-{digest_of(data)[:12]}"


def with_grants(policy: Policy, grants: Sequence[Grant]) -> Policy:
    """Return `policy` with the rules of these grants, except suspended ones. The policy's digest does not change."""
    awake = [grant.rule for grant in grants if not grant.changed]
    return replace(policy, rules=(*policy.rules, *awake)) if awake else policy


def pattern_problem(pattern: GrantPattern) -> str:
    """Return the reason why a stored pattern cannot have been on offer, or an empty string."""
    if bool(pattern.argv) == bool(pattern.path) or not pattern.tools:
        return "it is neither a command nor files"
    try:
        host_patterns(pattern.hosts)
    except ValueError as error:
        return f"its host {error}"
    if pattern.argv:
        misplaced = next((place for place in pattern.write if place_problem(place)), "")
        granted = Command(text="", argv=pattern.argv, folder=pattern.folder)
        if misplaced:
            return f"it may write {misplaced}"
        if pattern.program:
            begins = granted_words(granted)
            return begins if isinstance(begins, str) else ""
        unsound = rule_problem(session_grant("kept", pattern).rule)
        return exact_problem(granted) or (unsound[1] if unsound else "")
    if (
        pattern.folder
        or pattern.write
        or pattern.network
        or pattern.hosts
        or not set(pattern.access) <= {Access.READ, Access.WRITE}
    ):
        return "it grants more than files"
    name = pattern.path.removesuffix("/**")
    parts = name.split("/")
    if (
        parts[0]
        or len(parts) < 2
        or any(part in ("", ".", "..") for part in parts[1:])
        or PATTERN_CHARACTERS & set(name)
    ):
        return "it names no file or folder of the workspace plainly"
    return ""


def narrowed(pattern: GrantPattern, words: Sequence[str]) -> GrantPattern | str:
    """Return a narrower pattern, or the reason why it would not be narrower.

    `words` say how to narrow it:

    - `offline` takes the network away from a program.
    - Further words for a program, with or without the granted first words, become part of its beginning.
    - `host` and hosts, written as in a policy, limit a command to these hosts.
    - A path in the workspace narrows files to that file, or with a slash at the end to that folder.
    """
    if words[:1] == ["host"] and (pattern.program or pattern.argv):
        return _at_hosts(pattern, words[1:])
    if pattern.program:
        if list(words) == ["offline"]:
            has_network = pattern.network or pattern.hosts
            offline = replace(pattern, network=False, hosts=(), write=DEFAULT_WRITE)
            return offline if has_network else "it has no network"
        more_words = words[len(pattern.argv) :] if pattern.argv == tuple(words[: len(pattern.argv)]) else words
        longer = replace(pattern, argv=(*pattern.argv, *more_words), path="", access=())
        return pattern_problem(longer) or (longer if more_words else "it is for that already")
    if not pattern.path.endswith("/**"):
        return "it is for exactly this: revoke it"
    name = " ".join(words)
    narrower = replace(pattern, path=f"/{name}**" if name.endswith("/") else f"/{name}")
    if not narrower.path.startswith(pattern.path.removesuffix("**")) or narrower == pattern:
        return f"{name} does not lie in what is granted"
    return pattern_problem(narrower) or narrower


def _at_hosts(pattern: GrantPattern, hosts: Sequence[str]) -> GrantPattern | str:
    """Return the pattern limited to these hosts, or the reason why that would not be narrower."""
    try:
        narrower_hosts = tuple(each.text for each in host_patterns(tuple(hosts)))
    except ValueError as error:
        return f"the host {error}"
    reach: Reach = None if pattern.network else pattern.hosts
    if reach == ():
        return "it has no network"
    both = meet(reach, narrower_hosts)
    if beyond := next((host for host in narrower_hosts if host not in (both or ())), ""):
        return f"{beyond} is not what it may reach"
    narrower = replace(pattern, network=False, hosts=narrower_hosts)
    if not narrower_hosts:
        return "name the hosts, as in: host example.org *.example.net"
    return pattern_problem(narrower) or ("it is for that already" if narrower == pattern else narrower)


def exact_problem(command: Command) -> str:
    """Return the reason why these exact words cannot be granted, or an empty string."""
    program = command.argv[0] if command.argv else ""
    name = name_of(program)
    if not program or "/" in program:
        return "a program that is named by its path can be another one tomorrow"
    if name in WRAPPERS or command.act is Act.WRAPS:
        return f"{name} runs other commands; those can be granted"
    if not all(word.isprintable() for word in command.argv):
        return "its words hold characters that cannot be shown plainly"
    if command.fed:
        return f"{name} reads what is not in its words: a pipe, a file or a text; a grant is for words alone"
    if not command.folder.startswith("/"):
        return "the folder that it runs in is not known"
    if command.variables:
        return f"variables are set in front of it: {', '.join(command.variables)}"
    return ""
