"""A call that nobody makes: as the action that would be judged, and what was decided on it, part by part."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, assert_never

from harness.actions import (
    Access,
    Act,
    Action,
    Command,
    Enforcement,
    Facet,
    JsonValue,
    Opaque,
    PathAccess,
    Place,
    ToolUse,
    Unconfined,
    describe_facet,
)
from harness.cli.policy.policies import assemble, load_named
from harness.cli.state import State
from harness.errors import ToolError, UsageError
from harness.files.workspace import Workspace
from harness.limits import Limits
from harness.messages import ToolCall
from harness.policy.loader import nearest
from harness.policy.policy import Policy
from harness.policy.rules import Decision, Origin
from harness.policy.verdict import FacetVerdict, Source, Verdict
from harness.record import replace
from harness.shell.facets import read_call
from harness.text.visible import visible_line
from harness.tool_kinds import READ_FILE, SHIPPED_TOOLS, Does, tool_kind

if TYPE_CHECKING:
    from harness.model import ToolSpec


MAX_PATHS = 8
"""Paths that are named; of more the number is told."""
WORKSPACE = "the workspace"


def effects_lines(verdict: Verdict, *, most: int = MAX_PATHS) -> list[str]:
    """Say what a run would do to the world, and what the kernel will hold it to; nothing of a call that does not run.

    Of more than `most` paths of one kind the number of the others is told.
    """
    if verdict.decision not in (Decision.AUTO, Decision.CONFIRM):
        return []
    effects = verdict.effects
    if effects.enforcement is Enforcement.OFF:
        return ["effects: UNCONFINED: it may do whatever you may do yourself, and reach the network"]
    network = "may reach the network" if effects.network else "no network"
    granted = _listed([WORKSPACE if path == "." else path for path in effects.granted], most)
    names = {f.facet.real: f.facet.names[-1] for f in verdict.facets if isinstance(f.facet, PathAccess)}
    if effects.read is None or effects.write is None:
        named = [names.get(path, path) for path in effects.named]
        writes = f"writes {_listed(named, most)}, " if named else ""
        return [f"effects: {writes}may write {granted}; {network}"]
    reads, writes = (
        _listed([names.get(path, path) for path in paths], most) for paths in (effects.read, effects.write)
    )
    besides = f", may write {granted}" if effects.granted else ""
    return [f"effects: reads {reads}; writes {writes}{besides}; {network}"]


def _listed(paths: Sequence[str], most: int) -> str:
    shown = ", ".join(visible_line(path, 100) for path in paths[:most])
    return f"{shown} and {len(paths) - most} more" if len(paths) > most else shown or "nothing"


EXIT_CODES = {Decision.AUTO: 0, Decision.CONFIRM: 10, Decision.DENY: 20, Decision.BLOCK: 30}
"""What `harness policy explain` exits with; 2 is a usage error, as everywhere."""

WIDTH = 120
"""Of the table where stdout is no terminal."""
LEAST_WIDTH = 60
_HEADINGS = ("part", "verdict", "decided by", "at", "why")
_PART, _BY, _AT, _WHY = 0, 2, 3, 4
_SHRINK = ((_AT, 24), (_WHY, 32), (_PART, 32), (_BY, 24), (_AT, 16), (_WHY, 8), (_PART, 12), (_BY, 10), (_AT, 7))
"""Which column gives way first where the table is too wide, and how far; in the end all fit into LEAST_WIDTH."""
_DOES = {Act.WRITES: "it writes files", Act.CHANGES: "it changes more than it names", Act.RUNS: "it runs code"}


def explanation(tool: str, text: str, verdict: Verdict, policy: Policy, width: int = WIDTH) -> list[str]:
    """Return the lines that say what was decided and which rule, with file and line, decided each part.

    No line of the table is longer than `width`.
    """
    deciding = verdict.deciding
    lines = [
        f"{tool}: {visible_line(text)}",
        f"decision: {verdict.decision.word}",
        f"decided by: {visible_line(deciding.by, 1000)}",
        f"reason: {visible_line(deciding.reason, 1000)}",
    ]
    if deciding.hint:
        lines.append(f"hint: {visible_line(deciding.hint, 1000)}")
    table = _table([_row(facet, policy) for facet in verdict.shown], max(width, LEAST_WIDTH))
    return [*lines, *effects_lines(verdict), "", *table]


def terminal_width(descriptor: int) -> int:
    """Return the columns of the terminal at `descriptor`, or WIDTH where it is none."""
    try:
        return os.get_terminal_size(descriptor).columns or WIDTH
    except OSError:
        return WIDTH


def _place(facet: FacetVerdict, policy: Policy) -> Origin | None:
    """Return where the rule or the default stands that decided; None where neither did."""
    if facet.rules:
        return facet.rules[0].origin
    if facet.source not in (Source.DEFAULT, Source.READER):
        return None
    stated = (*(default.origin for default in policy.defaults), *(readers.origin for readers in policy.readers))
    return next((origin for origin in stated if facet.by.endswith(f" ({origin})")), None)


def _decided_by(facet: FacetVerdict, policy: Policy) -> str:
    """Return what decided, without its place: `rule look`, `default for bash`, `built-in outside`."""
    place = _place(facet, policy)
    return facet.by if place is None else facet.by.replace(f" ({place})", "", 1)


def _row(facet: FacetVerdict, policy: Policy) -> tuple[str, ...]:
    reason = facet.reason
    if isinstance(facet.facet, Command) and facet.source is Source.DEFAULT and (more := _no_reader(facet.facet)):
        reason = f"{more}; {reason}"  # the rarer words first: the end may be cut
    place = _place(facet, policy)
    return (
        visible_line(describe_facet(facet.facet), 300),
        facet.decision.word,
        visible_line(_decided_by(facet, policy), 300),
        "" if place is None else visible_line(str(place), 5_000),
        visible_line(reason, 300),
    )


def _no_reader(command: Command) -> str:
    """Say why a command is none that only reads, in a few words; nothing of one that is."""
    if command.gap:
        return command.gap
    does = _DOES.get(command.act, "")
    return (
        f"{does}, over the network"
        if does and command.network
        else "it reaches the network"
        if command.network
        else does
    )


def _table(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    widths = [max(len(row[column]) for row in (_HEADINGS, *rows)) for column in range(len(_HEADINGS))]
    for column, least in _SHRINK:
        excess = sum(widths) + 2 * (len(widths) - 1) - width
        if excess > 0:
            widths[column] = max(min(least, widths[column]), widths[column] - excess)
    return [
        "  ".join(_cell(text, column, widths[column]) for column, text in enumerate(row)).rstrip()
        for row in (_HEADINGS, *rows)
    ]


def _cell(text: str, column: int, width: int) -> str:
    """Return `text` in exactly `width` characters; of a place the end is what matters."""
    if len(text) <= width:
        return text.ljust(width)
    return f"...{text[3 - width :]}" if column == _AT else f"{text[: width - 3]}..."


def as_json(tool: str, text: str, verdict: Verdict, policy: Policy) -> str:
    """Return the same, and every operand, as one JSON object on one line, in ASCII."""
    import json

    deciding = verdict.deciding
    return json.dumps(
        {
            "tool": tool,
            "text": text,
            "decision": verdict.decision.word,
            "by": deciding.by,
            "reason": deciding.reason,
            "hint": deciding.hint,
            "facets": [_facet_json(facet, policy) for facet in verdict.facets],
            "effects": _effects_json(verdict),
        }
    )


def _effects_json(verdict: Verdict) -> dict[str, JsonValue]:
    effects = verdict.effects
    return {
        "read": None if effects.read is None else list(effects.read),
        "write": None if effects.write is None else list(effects.write),
        "named": list(effects.named),
        "granted": list(effects.granted),
        "network": effects.network,
        "hide": list(effects.hide),
        "enforcement": effects.enforcement.value,
        "unasked": effects.unasked,
    }


def _facet_json(verdict: FacetVerdict, policy: Policy) -> dict[str, JsonValue]:
    facet, place = verdict.facet, _place(verdict, policy)
    told: dict[str, JsonValue] = {
        "facet": describe_facet(facet),
        "kind": type(facet).__name__,
        "decision": verdict.decision.word,
        "source": verdict.source.value,
        "by": verdict.by,
        "rule": verdict.rules[0].id if verdict.rules else None,
        "file": None if place is None else place.file,
        "line": None if place is None else place.line,
        "reason": verdict.reason,
        "hint": verdict.hint,
        **dict.fromkeys(("argv", "act", "network", "model", "gap", "access", "place", "column")),
    }
    match facet:
        case Command():
            told |= {"argv": list(facet.argv), "act": facet.act.value, "network": facet.network}
            told |= {"model": facet.model, "gap": facet.gap}
        case PathAccess():
            told |= {"access": facet.access.value, "place": facet.place.value}
        case Opaque():
            told |= {"gap": facet.reason, "column": facet.column}
        case Unconfined() | ToolUse():
            pass
    return told


_ANY_SECONDS = 1e9
"""How long a command may run is no matter of rules: what was a valid call under other limits is one here."""


def action_for(tool: str, text: str, workspace: Workspace, *, cwd: str = "", changes: bool = True) -> Action:
    """Return the action that would be judged if the model called `tool` with this command or path.

    `cwd` is the folder that a command starts in, inside the workspace. A call that would change nothing (`changes` false)
    is judged as a read where the file lies in the workspace, as the tools do it.

    Raises UsageError for an unknown tool, ToolError for a path that cannot name a file or a folder outside.
    """
    call = ToolCall(id="explain", name=tool, arguments="{}")
    facets: tuple[Facet, ...]
    default_of = reads_as = raw = ""
    kind = tool_kind(tool)
    match kind.does:
        case Does.RUNS:
            facets, raw = _commands(text, workspace, cwd), text
        case Does.READS:
            facets = (workspace.resolve(text, Access.READ),)
        case Does.WRITES:
            written, read = (workspace.resolve(text, access) for access in (Access.WRITE, Access.READ))
            new = kind.creates and not os.path.lexists(written.real)
            facets, reads_as = (written, replace(read, new=new)), READ_FILE.name
            if not changes and written.place is Place.INSIDE:
                default_of = reads_as
        case Does.OTHER:
            raise UsageError(f"there is no tool named {tool!r}{nearest(tool, SHIPPED_TOOLS)}")
        case _:
            assert_never(kind.does)
    return Action(
        call=call,
        tool=tool,
        arguments={},
        facets=facets,
        summary=visible_line(text),
        preview=text,
        request=None,
        default_of=default_of,
        reads_as=reads_as,
        text=raw,
    )


def _commands(text: str, workspace: Workspace, cwd: str) -> tuple[Facet, ...]:
    """Return what the tool would judge: the line, and the folder that it starts in. Raises ToolError for one outside."""
    start = workspace.resolve(cwd or ".", Access.READ)
    if start.place not in (Place.INSIDE, Place.ROOT):
        raise ToolError(f"cwd is outside the workspace: {visible_line(cwd)}")
    return read_call(text, workspace, start)


def tool_use(tool: str) -> Action:
    """Return the action of a tool that has nothing finer to judge than its name."""
    call = ToolCall(id="explain", name=tool, arguments="{}")
    return Action(call=call, tool=tool, arguments={}, facets=(), summary=tool, preview=tool, request=None)


class CallReader:
    """Turns raw arguments, as a model sends them, into actions, by the schemas of the real tools.

    Only what is judged must be there: the command or the path. A case needs no content to be about writing a file.
    """

    def __init__(self) -> None:
        from harness.tools import builtin_tools

        limits = Limits(command_seconds=_ANY_SECONDS)
        tools = builtin_tools(Workspace("/", "/"), limits=limits, environment={})
        self._specs = {tool.spec.name: _relaxed(tool.spec) for tool in tools}

    def action(self, tool: str, arguments: str, workspace: Workspace, *, changes: bool = True) -> Action:
        """Return the action that would be judged. Raises ToolError for an unknown tool and for arguments that do not fit."""
        from harness.gate.arguments import parse_arguments

        if tool not in self._specs:
            raise ToolError(f"there is no tool named {tool!r}{nearest(tool, SHIPPED_TOOLS)}")
        parsed = parse_arguments(arguments, self._specs[tool])
        text = tool_kind(tool).subject_of(parsed) or ""
        return action_for(tool, text, workspace, cwd=str(parsed.get("cwd", "")), changes=changes)


def _relaxed(spec: ToolSpec) -> ToolSpec:
    kind = tool_kind(spec.name)
    required: list[JsonValue] = [] if kind.unsaid else [kind.subject]
    return replace(spec, parameters={**spec.parameters, "required": required})


def workspace_at(folder: str, home: str | None) -> Workspace:
    """Return the workspace in `folder`; where there is no such folder, paths are resolved as if it were there, and empty.

    Raises UsageError for what cannot name a folder.
    """
    try:
        root = os.path.realpath(folder)
    except ValueError as error:  # NUL, or a lone surrogate
        raise UsageError(f"the workspace cannot be a folder: {visible_line(folder)}: {error}") from None
    if os.path.isdir(root):
        return Workspace(root, home)
    workspace = Workspace("/", home)
    workspace.root = root
    return workspace


class PolicyInForce:
    """What `--policy FILE` means in each workspace: with the managed policy, and the project's where there is one."""

    def __init__(self, named: str, environment: Mapping[str, str], *guarded: str) -> None:
        """Take the policy's file or shipped name, and further files that no call may write.

        Raises PolicyError for a policy that does not load, also where no call is judged in the end.
        """
        load_named(named)
        self._named = named
        self._state = State.of(environment)
        self._guarded = guarded
        self._known: dict[str, Policy] = {}

    def at(self, workspace: Workspace) -> Policy:
        """Return the policy that holds in `workspace`. Raises PolicyError."""
        policy = self._known.get(workspace.root)
        if policy is None:
            policy = assemble(self._state, workspace.root, named=self._named, fallback="default")
            self._known[workspace.root] = policy = policy.guarding(*self._guarded)
        return policy
