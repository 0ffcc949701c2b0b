"""What a person can grant at a question: for a session, or from now on in a workspace.

A grant is an auto rule of the layer SESSION for exactly the words, or the files, that were shown. It lifts a CONFIRM that comes
from a default and nothing else. Interpreters and wrappers cannot be granted.
gate/grants_in_force.py keeps them.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

from harness.actions import Access, Act, Action, Command, Effects, Facet, JsonValue, PathAccess, Place
from harness.policy.destruction import destroys
from harness.policy.effects import place_problem
from harness.policy.matchers import ArgvPattern, PathPatterns
from harness.policy.policy import Policy
from harness.policy.rule_examples import rule_problem
from harness.policy.rules import Decision, Layer, Origin, Rule
from harness.policy.verdict import FacetVerdict, Source, Verdict, evaluate
from harness.programs.runners import INTERPRETERS, WRAPPERS
from harness.record import Record, replace
from harness.tool_kinds import Does, shipped_that

SESSION_GRANTS = "grants of this session"
"""What stands in the place of a file's name where a grant decided that is kept in none."""
_RUNS_ANYTHING = ("python", "ipython", "pypy", "ld-linux", "ld.so", "ld-musl", "capsh")
"""Beginnings of the names of interpreters and loaders of which there are many versions."""
PATTERN_CHARACTERS = frozenset("*?[]\\!#")
"""A name that holds one cannot stand in a rule as the pattern of itself."""


class GrantScope(Enum):
    """How long a grant holds."""

    SESSION = "session"
    WORKSPACE = "workspace"
    """From now on in this workspace, until it is revoked: kept in the person's own state folder."""


class GrantPattern(Record):
    """What is granted: a command word for word, or files."""

    tools: tuple[str, ...]
    argv: tuple[str, ...] = ()
    path: str = ""
    """A gitignore pattern that begins with `/`, relative to the workspace; empty for a command."""
    access: tuple[Access, ...] = ()
    write: tuple[str, ...] = ()
    """Of a command: what it may write, named as in `Effects.granted`."""
    network: bool = False
    folder: str = ""
    """Of a command: the folder that it runs in."""

    @property
    def text(self) -> str:
        """The pattern in one line, for people; not yet safe to show."""
        if not self.argv:
            words = " and ".join(access.value for access in self.access)
            return f"{words} {self.path.removeprefix('/')} of the workspace with {' and '.join(self.tools)}"
        may = [f"write {'the workspace' if place == '.' else place}" for place in self.write]
        if self.network:
            may.append("reach the network")
        return f"the command {shlex.join(self.argv)} in {self.folder}" + (
            f" (it may {' and '.join(may)})" if may else ""
        )


def pattern_fields(pattern: GrantPattern) -> dict[str, JsonValue]:
    """Return a pattern as logs and files hold it."""
    return {
        "tools": list(pattern.tools),
        "argv": list(pattern.argv),
        "path": pattern.path,
        "access": [access.value for access in pattern.access],
        "write": list(pattern.write),
        "network": pattern.network,
        "folder": pattern.folder,
    }


def pattern_from(fields: Mapping[str, JsonValue]) -> GrantPattern:
    """Return the pattern that `fields` hold. Raises ValueError for what `pattern_fields` never returned."""
    path, network, folder = (fields.get(name) for name in ("path", "network", "folder"))
    if not isinstance(path, str) or not isinstance(network, bool) or not isinstance(folder, str):
        raise ValueError("a grant has path and folder, which are texts, and network, which is true or false")  # noqa: TRY004
    return GrantPattern(
        tools=_texts(fields.get("tools")),
        argv=_texts(fields.get("argv")),
        path=path,
        access=tuple(Access(word) for word in _texts(fields.get("access"))),
        write=_texts(fields.get("write")),
        network=network,
        folder=folder,
    )


def _texts(value: JsonValue) -> tuple[str, ...]:
    texts = [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
    if not isinstance(value, list) or len(texts) != len(value):
        raise ValueError("a list of texts is wanted")
    return tuple(texts)


class Grant(Record):
    """A pattern that a person granted."""

    id: str
    """`grant-1`; of those that are kept see `kept_id`."""
    scope: GrantScope
    pattern: GrantPattern
    origin: Origin
    """Where it is kept: a file and its line; of this session SESSION_GRANTS and the call's number."""

    @property
    def rule(self) -> Rule:
        """The auto rule that it is."""
        pattern = self.pattern
        argv = ArgvPattern(tokens=tuple((word,) for word in pattern.argv), rest=False) if pattern.argv else None
        return Rule(
            id=self.id,
            decision=Decision.AUTO,
            origin=self.origin,
            layer=Layer.SESSION,
            tools=pattern.tools,
            argv=argv,
            access=pattern.access,
            path=PathPatterns(patterns=(pattern.path,)) if pattern.path else None,
            reason=f"a person granted it for this {self.scope.value}",
            write=pattern.write,
            network=pattern.network,
            folder=pattern.folder,
            exact=bool(pattern.path) and not pattern.path.endswith("/**"),
        )


class Offer(Record):
    """What a person may grant at a question."""

    patterns: tuple[GrantPattern, ...]
    """Exactly what is asked about."""
    wider: tuple[GrantPattern, ...] = ()
    """Of files: everything in their folders; empty where there is no such choice."""


def kept_id(pattern: GrantPattern) -> str:
    """Return the id of a grant that is kept: told by what it is, so that no two that differ share one."""
    data = json.dumps(pattern_fields(pattern), sort_keys=True).encode()
    return f"kept-{hashlib.sha256(data).hexdigest()[:12]}"


def with_grants(policy: Policy, grants: Sequence[Grant]) -> Policy:
    """Return `policy` with the rules of these grants; its digest stays that of its files."""
    return replace(policy, rules=(*policy.rules, *(grant.rule for grant in grants))) if grants else policy


def offer_for(policy: Policy, action: Action, verdict: Verdict) -> Offer | str:
    """Return what can be granted where `verdict` of `policy` asks about `action`; else why nothing can, in words.

    INVARIANT: with the patterns granted the same action is AUTO, and may do nothing that the question did not show.
    """
    asking = [facet for facet in verdict.facets if facet.decision is Decision.CONFIRM]
    if verdict.decision is not Decision.CONFIRM or not asking:
        return "nothing is asked about here"
    if action.default_of:
        return "the call would change nothing; what decides is the default for reading"
    if destroying := next(iter(destroys(action)), ""):
        return f"{destroying}: that is asked about each time"
    for facet in asking:
        if problem := _problem(facet):
            return problem
    patterns = tuple(dict.fromkeys(_pattern(policy, action, facet.facet) for facet in asking))
    if problem := _unsound(policy, action, verdict, patterns):
        return problem
    wider = tuple(dict.fromkeys(_folder_of(pattern) for pattern in patterns))
    if wider == patterns or _unsound(policy, action, verdict, wider):
        return Offer(patterns=patterns)
    return Offer(patterns=patterns, wider=wider)


def pattern_problem(pattern: GrantPattern) -> str:
    """Return why a pattern that was kept cannot be one that was ever offered, or nothing."""
    if bool(pattern.argv) == bool(pattern.path) or not pattern.tools:
        return "it is neither a command nor files"
    if pattern.argv:
        misplaced = next((place for place in pattern.write if place_problem(place)), "")
        granted = Command(text="", argv=pattern.argv, folder=pattern.folder)
        return f"it may write {misplaced}" if misplaced else _command_problem(granted)
    if pattern.folder or pattern.write or pattern.network or not set(pattern.access) <= {Access.READ, Access.WRITE}:
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


def _problem(verdict: FacetVerdict) -> str:
    """Return why a part that is asked about cannot be granted, or nothing."""
    if verdict.source is not Source.DEFAULT:
        return f"{verdict.by} asks about it; a grant lifts only what no rule speaks of"
    match verdict.facet:
        case Command() as command:
            return _command_problem(command)
        case PathAccess() as path:
            return _path_problem(path)
        case _:
            return "it has no pattern that could be granted"


def _command_problem(command: Command) -> str:
    program = command.argv[0] if command.argv else ""
    name = program.rpartition("/")[2]
    if not program or "/" in program:
        return "a program that is named by its path can be another one tomorrow"
    if name in WRAPPERS or command.act is Act.WRAPS:
        return f"{name} runs other commands; those can be granted"
    known = name in INTERPRETERS or name.rstrip("0123456789.-t") in INTERPRETERS
    if known or name.startswith(_RUNS_ANYTHING):
        return f"{name} runs whatever its operands say"
    if not all(word.isprintable() for word in command.argv):
        return "its words hold characters that cannot be shown plainly"
    if command.fed:
        return f"{name} reads what is not in its words: a pipe, a file or a text; a grant is for words alone"
    if not command.folder.startswith("/"):
        return "the folder that it runs in is not known"
    if command.variables:
        return f"variables are set in front of it: {', '.join(command.variables)}"
    return ""


def _path_problem(path: PathAccess) -> str:
    if path.place is Place.ROOT:
        return "it is the workspace folder itself"
    if path.place is not Place.INSIDE:
        return "it lies outside the workspace"
    if path.tree or path.shared:
        return "it is a whole folder, or a file with further names"
    if PATTERN_CHARACTERS & set(path.names[-1]) or path.names[-1] != path.names[-1].strip():
        return "its name holds characters that mean something in a pattern"
    return ""


def _pattern(policy: Policy, action: Action, facet: Facet) -> GrantPattern:
    if isinstance(facet, PathAccess):
        edits = action.kind.does is Does.WRITES  # which read what they change
        tools = tuple(sorted({action.tool, *shipped_that(Does.WRITES)})) if edits else (action.tool,)
        access = (Access.READ, Access.WRITE) if edits or facet.access is not Access.READ else (Access.READ,)
        return GrantPattern(tools=tools, path=f"/{facet.names[-1]}", access=access)
    argv, folder = (facet.argv, facet.folder) if isinstance(facet, Command) else ((), "")
    effects = evaluate(policy, replace(action, facets=(facet,))).effects
    return GrantPattern(tools=(action.tool,), argv=argv, write=effects.granted, network=effects.network, folder=folder)


def _folder_of(pattern: GrantPattern) -> GrantPattern:
    folder = pattern.path.rpartition("/")[0]
    return replace(pattern, path=f"{folder}/**") if folder else pattern


def _unsound(policy: Policy, action: Action, verdict: Verdict, patterns: Sequence[GrantPattern]) -> str:
    """Return why granting these would not do what it says, or nothing."""
    origin = Origin(file=SESSION_GRANTS, line=0)
    grants = [Grant(id="grant", scope=GrantScope.SESSION, pattern=one, origin=origin) for one in patterns]
    for grant in grants:
        if problem := rule_problem(grant.rule):
            return problem[1]
    after = evaluate(with_grants(policy, grants), action)
    if after.decision is not Decision.AUTO:
        return f"{after.deciding.by} would ask all the same"
    more = next(_more(after.effects, verdict.effects), "")
    return f"it would be allowed more than is shown here: {more}" if more else ""


def _more(after: Effects, shown: Effects) -> Iterator[str]:
    """Yield what a run may do with the grant and could not do with the yes."""
    if after.network and not shown.network:
        yield "the network"
    yield from (place for place in after.granted if place not in shown.granted)
    if after.enforcement is not shown.enforcement:
        yield "to run unconfined"
