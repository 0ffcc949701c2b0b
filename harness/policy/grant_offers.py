"""Grants to offer at an approval prompt, the narrowest first. Pure: `WallsHere` describes the kernel's abilities."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from harness.actions import (
    REACHES_NETWORK,
    Access,
    Action,
    Command,
    Decision,
    Effects,
    Enforcement,
    Facet,
    Opaque,
    PathAccess,
    Place,
    ToolUse,
    describe_facet,
)
from harness.grant_pattern import EVERYTHING, GrantPattern
from harness.paths import is_within
from harness.policy.destruction import destroys
from harness.policy.effects import DEFAULT_WRITE
from harness.policy.granted_programs import MODELLED, granted_words, needs_network
from harness.policy.openings import reach_of
from harness.policy.policy import Policy
from harness.policy.rule_examples import rule_problem
from harness.policy.session_grants import (
    PATTERN_CHARACTERS,
    arguments_digest,
    exact_problem,
    session_grant,
    with_grants,
)
from harness.policy.verdict import FacetVerdict, Source, Verdict, evaluate
from harness.policy.walls_fit import unfit
from harness.policy.walls_here import WallsHere
from harness.record import Record, replace
from harness.tool_kinds import Does, shipped_that

_EXACT = "exactly this"
ANY_COMMAND = "any command, inside walls"
"""Name of the widest choice at the question about a command."""


class GrantChoice(Record):
    """One grant on offer."""

    name: str
    """Short name for a list of choices. Not yet safe to show."""
    patterns: tuple[GrantPattern, ...]
    session_only: bool = False
    """Whether the grant can be given for the session only, and not for the workspace."""
    asked_still: tuple[str, ...] = ()
    """Parts of the call that the grant does not cover, and that need approval next time too."""


class Offer(Record):
    """The grants on offer at a question."""

    choices: tuple[GrantChoice, ...]
    """One or more choices, the narrowest first."""
    no_program: str = ""
    """Reason why the offer for a command has no grant of its program with any words. Empty if it has one."""


def offer_for(policy: Policy, action: Action, verdict: Verdict, walls: WallsHere) -> Offer | str:
    """Return the grants on offer if `verdict` of `policy` asks about `action`, otherwise the reason for no offer.

    INVARIANT: calls covered by a granted choice are AUTO, and have only the effects that the question showed.
    """
    asking = [place for place, part in enumerate(verdict.facets) if part.decision is Decision.CONFIRM]
    if verdict.decision is not Decision.CONFIRM or not asking:
        return "the policy asks about no part of the call"
    if hook := next((part for part in verdict.facets if part.source is Source.HOOK), None):
        return f"{hook.by} asks about such calls each time"
    if action.default_of:
        return "the call would change nothing and is judged by the default for reading"
    if destroying := next(iter(destroys(action)), ""):
        return f"{destroying}: such calls need approval each time"
    question = _Question(policy, action, verdict, walls)
    results = [question.choice(name, level, asking) for name, level in question.levels()]
    choices: list[GrantChoice] = []
    for choice in results:
        if isinstance(choice, GrantChoice) and all(choice.patterns != other.patterns for other in choices):
            choices.append(choice)
    if not choices:
        return next((problem for problem in results if isinstance(problem, str)), "")
    has_program = any(pattern.program for choice in choices for pattern in choice.patterns)
    if has_program or not any(isinstance(verdict.facets[place].facet, Command) for place in asking):
        return Offer(choices=tuple(choices))
    result = question.choice("", question.program, asking)
    return Offer(choices=tuple(choices), no_program=result if isinstance(result, str) else "")


class _Question:
    """The choices of one question. A level is a function that returns the pattern for a part, or a reason for none."""

    def __init__(self, policy: Policy, action: Action, verdict: Verdict, walls: WallsHere) -> None:
        self._policy = policy
        self._action = action
        self._verdict = verdict
        self._walls = walls
        self._exact: dict[Facet, GrantPattern | str] = {}
        self._is_use = any(isinstance(facet, ToolUse) for facet in action.facets)

    def levels(self) -> Sequence[tuple[str, Callable[[Facet], GrantPattern | str]]]:
        """Return the levels of grants, the narrowest first, each with its name."""
        return (
            (_EXACT, self.exact),
            ("this tool, any arguments", self.whole_tool),
            ("this folder", self.folder),
            ("all edits in the workspace", self.all_edits),
            ("this program, any words, inside walls", self.program),
            ("the same, with the network", self.program_with_network),
            (ANY_COMMAND, self.any_command),
        )

    def choice(
        self, name: str, level: Callable[[Facet], GrantPattern | str], asking: Sequence[int]
    ) -> GrantChoice | str:
        """Return the choice of a level, or the reason for none. It covers every part with a pattern at this level."""
        patterns: dict[int, GrantPattern] = {}
        problems: dict[int, str] = {}
        for place in asking:
            part = self._verdict.facets[place]
            result = _rule_problem(part) or level(part.facet)
            if isinstance(result, str):
                problems[place] = result
            else:
                patterns[place] = result
        for place in self._useless(patterns, problems):
            problems[place] = "a part of the call needs approval each time"
            del patterns[place]
        granted = tuple(dict.fromkeys(patterns.values()))
        after = self._judged_with(granted) if granted else next(iter(problems.values()), "")
        if isinstance(after, str):
            return after
        if unsound := self._unsound(after, patterns.keys()):
            return unsound
        if name == _EXACT and any(pattern.path for pattern in granted):  # a file's grant covers any later content
            name = "; ".join(pattern.name for pattern in granted)
        return GrantChoice(
            name=name,
            patterns=granted,
            session_only=any(pattern.path == EVERYTHING or pattern.of_tool for pattern in granted),
            asked_still=tuple(
                describe_facet(self._verdict.facets[place].facet)
                for place in problems
                if after.facets[place].decision is not Decision.AUTO  # walls may decide about it once a grant holds
            ),
        )

    def _useless(self, granted: Collection[int], problems: Collection[int]) -> Sequence[int]:
        """Return the granted parts that need approval anyway, since their wrapper, job or path has no grant."""
        facets = [self._verdict.facets[place].facet for place in problems]
        runners = {facet.argv for facet in facets if isinstance(facet, Command)}
        paths = [facet for facet in facets if isinstance(facet, PathAccess)]
        jobs = {facet.text for facet in facets if isinstance(facet, Opaque)}
        useless = []
        for place in granted:
            facet = self._verdict.facets[place].facet
            if isinstance(facet, Command):
                alone = runners.isdisjoint(facet.run_by) and not any(path in facet.paths for path in paths)
                alone = alone and facet.text not in jobs
            else:
                alone = self._action.cwd != "" or not problems
            if not alone:
                useless.append(place)
        return useless

    def exact(self, facet: Facet) -> GrantPattern | str:
        """Return the pattern for exactly this file, these words of a command, or this call of an external tool."""
        if facet not in self._exact:
            self._exact[facet] = self._exactly(facet)
        return self._exact[facet]

    def _exactly(self, facet: Facet) -> GrantPattern | str:
        if self._is_use:
            return GrantPattern(tools=(self._action.tool,), arguments_sha256=arguments_digest(self._action.arguments))
        match facet:
            case PathAccess():
                return self._file(facet)
            case Command():
                if problem := exact_problem(facet):
                    return problem
                effects = evaluate(self._policy, replace(self._action, facets=(facet,))).effects
                return GrantPattern(
                    tools=(self._action.tool,),
                    argv=facet.argv,
                    write=effects.granted,
                    network=effects.network,
                    hosts=effects.hosts,
                    folder=facet.folder,
                )
            case _:
                return "no pattern describes this part of the call"

    def whole_tool(self, facet: Facet) -> GrantPattern | str:
        """Return the pattern for every call of an external tool. For other parts the same as `exact`."""
        exact = self.exact(facet)
        return replace(exact, arguments_sha256="") if self._is_use and isinstance(exact, GrantPattern) else exact

    def folder(self, facet: Facet) -> GrantPattern | str:
        """Return the pattern for the folder of a file. For other parts the same as `exact`."""
        exact = self.exact(facet)
        if isinstance(exact, str) or not exact.path:
            return exact
        folder = exact.path.rpartition("/")[0]
        return replace(exact, path=f"{folder}/**") if folder else exact

    def all_edits(self, facet: Facet) -> GrantPattern | str:
        """Return the pattern for edits of all files, if the call edits one. For other parts the same as `exact`."""
        exact = self.exact(facet)
        edits = isinstance(exact, GrantPattern) and exact.path and self._action.kind.does is Does.WRITES
        return replace(exact, path=EVERYTHING) if edits and isinstance(exact, GrantPattern) else exact

    def program(self, facet: Facet) -> GrantPattern | str:
        """Return the pattern for a command's program with any words, inside walls. For a file the same as `exact`."""
        command = command_of(facet)
        if command is None:
            return self.exact(facet)
        if not self._walls.confines:
            return f"no walls to confine a program here: {self._walls.missing}"
        pattern = self._program(command)
        if isinstance(pattern, GrantPattern) and (command.network and command.act in MODELLED):
            return REACHES_NETWORK
        if isinstance(pattern, GrantPattern) and needs_network(pattern.argv):
            return f"{' '.join(pattern.argv)} does nothing without the network"
        return pattern

    def program_with_network(self, facet: Facet) -> GrantPattern | str:
        """Return the pattern of `program` with the hosts and folders that the policy gives an approved command."""
        command = command_of(facet)
        if command is None:
            return self.exact(facet)
        sandbox = self._policy.sandbox
        reach = sandbox.reach_for(reach_of(command))
        if reach == () or not self._walls.confines or command.act in MODELLED:
            return "the command does not use the network"
        if self._walls.exposed:
            return f"no network, since the walls cannot protect {self._walls.exposed[0]} here"
        pattern = self._program(command)
        if isinstance(pattern, str):
            return pattern
        write = (*sandbox.write, *sandbox.caches_of((command,)))
        hosts = reach if self._walls.by_host else None
        return replace(pattern, network=hosts is None, hosts=hosts or (), write=write)

    def any_command(self, facet: Facet) -> GrantPattern | str:
        """Return the pattern for every command that fits into the walls, with text that could not be parsed."""
        if self._action.kind.does is not Does.RUNS:
            return self.all_edits(facet)
        if not self._walls.confines:
            return f"no walls to confine a command here: {self._walls.missing}"
        reason = unfit(self._action, facet, self._walls.undo, reaches=False, any_words=True)
        return reason or any_command(self._action.tool, self._walls)

    def _program(self, command: Command) -> GrantPattern | str:
        begins = granted_words(command)
        if isinstance(begins, str):
            return begins
        if not is_within(command.folder, self._walls.root):
            return "the command runs outside the workspace"
        return GrantPattern(
            tools=(self._action.tool,),
            argv=begins,
            write=DEFAULT_WRITE,
            folder=self._walls.root,
            program=True,
            variables=command.variables,
            exposes=self._walls.exposed,
        )

    def _file(self, path: PathAccess) -> GrantPattern | str:
        if path.place is Place.ROOT:
            return "the path is the workspace folder itself"
        if path.place not in (Place.INSIDE, Place.TEMPORARY):
            return "the path is outside the workspace"
        if path.tree or path.shared:
            return "the path is a folder, or a file with several names"
        if PATTERN_CHARACTERS & set(path.names[-1]) or path.names[-1] != path.names[-1].strip():
            return "the name contains pattern characters"
        edits = self._action.kind.does is Does.WRITES  # edits read the file too
        tools = tuple(sorted({self._action.tool, *shipped_that(Does.WRITES)})) if edits else (self._action.tool,)
        access = (Access.READ, Access.WRITE) if edits or path.access is not Access.READ else (Access.READ,)
        return GrantPattern(tools=tools, path=f"/{path.names[-1]}", access=access)

    def _judged_with(self, patterns: Sequence[GrantPattern]) -> Verdict | str:
        """Return the verdict on the call with these grants, or the reason why one of them is no valid rule."""
        grants = [session_grant("grant", pattern) for pattern in patterns]
        for grant in grants:
            if problem := rule_problem(grant.rule):
                return problem[1]
        return evaluate(with_grants(self._policy, grants), self._action)

    def _unsound(self, after: Verdict, places: Collection[int]) -> str:
        """Return the reason why grants do not have the promised effect on these parts, or an empty string.

        `after` is the verdict with the grants.
        """
        for place in places:
            if after.facets[place].decision is not Decision.AUTO:
                return f"{after.facets[place].by} would ask anyway"
        if after.decision is not Decision.AUTO:
            return ""
        more = next(_more(after.effects, self._verdict.effects), "")
        return f"the grant would allow more than the prompt shows: {more}" if more else ""


def any_command(tool: str, walls: WallsHere) -> GrantPattern:
    """Return the pattern for every command of `tool` that fits into the workspace walls."""
    return GrantPattern(
        tools=(tool,),
        path=EVERYTHING,
        access=(Access.READ, Access.WRITE),
        write=DEFAULT_WRITE,
        folder=walls.root,
        program=True,
        exposes=walls.exposed,
    )


def all_edits() -> GrantPattern:
    """Return the pattern for all edits in the workspace."""
    return GrantPattern(
        tools=tuple(sorted(shipped_that(Does.WRITES))), path=EVERYTHING, access=(Access.READ, Access.WRITE)
    )


def command_of(facet: Facet) -> Command | None:
    """Return the command of a part. For a text it is the interpreter that runs it. `None` for other parts."""
    match facet:
        case Command():
            return facet
        case Opaque():
            return facet.given_to
        case _:
            return None


def _rule_problem(verdict: FacetVerdict) -> str:
    """Return the reason why a part that needs approval can never be granted, or an empty string."""
    is_text = isinstance(verdict.facet, Opaque) and verdict.source is Source.OPAQUE
    if verdict.source is not Source.DEFAULT and not is_text:
        return f"{verdict.by} asks about this call; a grant cannot override that"
    return ""


def _more(after: Effects, shown_effects: Effects) -> Iterator[str]:
    """Yield the effects that a run has with the grant, but not with a plain yes."""
    if after.network and not shown_effects.network:
        yield "the network"
    if not shown_effects.network:
        yield from (host for host in after.hosts if host not in shown_effects.hosts)
    # The workspace is left out: a program inside walls may write it, and the choice says so.
    yield from (place for place in after.granted if place not in (*shown_effects.granted, *DEFAULT_WRITE))
    if after.enforcement is Enforcement.OFF and shown_effects.enforcement is not Enforcement.OFF:
        yield "to run unconfined"
