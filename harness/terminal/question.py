"""The rows of a question about a call: the call itself, and its unusual features.

The model's words appear only after a gutter, or in quotes with a note that they are the model's. The usual facts are
shown by question_help.py.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from harness.actions import (
    Access,
    Action,
    Effects,
    Enforcement,
    Opening,
    PathAccess,
    Place,
    ToolUse,
    Unconfined,
    WallsLevel,
)
from harness.grant_pattern import WORKSPACE_ONLY
from harness.limits import DEFAULT_COMMAND_SECONDS
from harness.paths import is_within
from harness.policy.destruction import publications, removed
from harness.policy.effects import Sandbox
from harness.policy.policy import Policy
from harness.policy.verdict import FacetVerdict, Source, Verdict
from harness.policy.walls_fit import beyond_undo
from harness.policy.walls_here import Undo
from harness.programs.variables import PASSED, SET
from harness.record import Record, replace
from harness.terminal.call_parts import Part, parts_of, split
from harness.terminal.diff_drawing import diff_rows
from harness.terminal.effects_lines import OWN_TMP
from harness.terminal.highlighting import Highlighter, code_rows
from harness.terminal.row_text import Row, Tint, cells, joined, prose, rows_of, safe_line
from harness.terminal.screen import WIDEST_RULE
from harness.terminal.styles import Tone
from harness.text.visible import one_line, suspicious, visible_line
from harness.tools.command_network import unreached_words
from harness.tools.command_walls import OPENED, WORKSPACE, is_unbound

PLAN_TOOL = "plan"
"""Name of the question whether to leave plan mode; not a tool of the model."""
HEARS_WORDS = frozenset((PLAN_TOOL,))
"""Questions of the harness itself that accept words. For its other questions, words would be lost."""

SHELL = "sh"
"""The language of commands."""
COMMANDS_UNDONE = "yes, files of the workspace; not .git, build folders, large files, or what is outside"
_REACH = {WallsLevel.READER: "reads only, offline", WallsLevel.WORKSPACE: WORKSPACE_ONLY}
"""The reach of a command by the level of its walls, in words."""
SERVERS = "network: this session's background commands"
"""The reach of a command that needs the servers of the session."""
_TERMINALS = ("/dev/pts/", "/dev/tty", "/dev/console")
"""Prefixes of the paths of terminals (pts(4), tty(4))."""

_COMMAND, _FURTHER, _TEXT, _NOTE = "  $ ", "  > ", "    ", "  ! "
_ASKS, _AUTO, _PART_FURTHER, _PART_NOTE = "  ASKS  ", "  auto  ", "      > ", "      ! "
_SESSION = 8
"""Number of characters of a session's name in a title. The facts show the complete name."""
_WORD = slice(2, 6)
"""Columns of `ASKS` in the gutter of a part."""


class Usual(Record):
    """Effects that the policy gives to nearly every command, and that the user knows. Empty if they are unknown."""

    folder: str = ""
    """The workspace."""
    confinement: str = ""
    """Usual confinement of commands. Empty without any, because running unconfined is never usual."""
    write: tuple[str, ...] = ()
    """Places that every permitted command may write, named as in `Effects.granted`."""
    undo: Undo = Undo()
    """The abilities of undo in the workspace."""
    sandbox: Sandbox | None = None
    """The policy's limits for what the user opens at a question. `None` if nothing can be opened."""


def usual_here(folder: str, level: str, policy: Policy, undo: Undo = Undo()) -> Usual:  # noqa: B008 - it never changes
    """Return the usual effects in a workspace, for confinement `level` and `policy`, and the abilities of undo."""
    confinement, sandbox = "" if is_unbound(level) else level, policy.sandbox
    return Usual(folder=folder, confinement=confinement, write=sandbox.write, undo=undo, sandbox=sandbox)


class Asker(Record):
    """Another agent whose call the question is about. The terminal does not belong to it."""

    agent: str
    session: str
    folder: str
    """The workspace."""
    until: str
    """Local time at which the call is refused if there is no answer."""


class Question(Record):
    """A question about a call."""

    action: Action
    verdict: Verdict
    confinement: str
    """The confinement of a command, in words."""
    variables: tuple[str, ...] | None = None
    """Names of the user's environment variables that a command gets unchanged. `None` if they are not available."""
    set_variables: int = 0
    """Number of further variables, whose values the harness sets."""
    usual: Usual = Usual()
    destroys: tuple[str, ...]
    """Irreversible effects, one sentence each: the stored result of the function `destroys`."""
    asker: Asker | None = None
    """The agent that made the call, if it is not the harness's own."""
    opens: tuple[Opening, ...] = ()
    """Openings that the user gave to this call so far."""

    @property
    def effects(self) -> Effects:
        """The effects that a yes permits."""
        effects, sandbox = self.verdict.effects, self.usual.sandbox
        return sandbox.opened(effects, self.opens) if sandbox is not None and self.opens else effects

    @property
    def opened_words(self) -> tuple[str, ...]:
        """The openings that the user gave to this call, in words."""
        return tuple(words for words in self.effects.opened if words not in self.verdict.effects.opened)

    @property
    def openings(self) -> tuple[Opening, ...]:
        """Further openings for this call, if it is a command of this conversation's model and inside walls."""
        is_own = self.by_model and self.asker is None and not self.action.asked_by
        is_confined = self.action.cwd and self.effects.enforcement is not Enforcement.OFF and self.usual.confinement
        return self.usual.sandbox.openings(self.effects) if is_own and is_confined and self.usual.sandbox else ()

    @property
    def by_model(self) -> bool:
        """Whether the call is a model's. Otherwise the harness itself asks, for example whether to restore files."""
        return by_model(self.action)

    @property
    def hears_words(self) -> bool:
        """Whether words that come with a no are delivered."""
        return self.by_model or self.action.tool in HEARS_WORDS

    def title(self, width: int) -> str:
        """Return the title above the question: the tool, and the agent, the changed file or the walls if they fit."""
        return f"{self._title(width)}, {self.walls}" if self.has_walls_in_title(width) else self._title(width)

    def has_walls_in_title(self, width: int) -> bool:
        """Return whether a title with the walls fits into a line of `width` cells."""
        return bool(self.walls) and cells(f"{self._title(width)}, {self.walls}") <= min(width, WIDEST_RULE) - 6

    @property
    def walls(self) -> str:
        """The walls of a command that stays in them, or that none hold it. Empty for other calls, and if a wall is missing."""
        effects = self.effects
        is_whole = not (self.leaves or effects.unheld or is_unbound(self.confinement))
        if self.is_unheld:
            return "NO WALLS"
        if not self.action.cwd or not is_whole or effects.enforcement is Enforcement.OFF:
            return ""
        level = WallsLevel.WORKSPACE if effects.opened else effects.level
        reach = _REACH[level].replace("offline", SERVERS) if effects.meets_servers else _REACH[level]
        return f"{reach}{OWN_TMP if effects.own_tmp else ''}"

    @property
    def is_unheld(self) -> bool:
        """Whether no walls hold a command of another agent, because that agent runs it."""
        is_confined = self.effects.enforcement is not Enforcement.OFF
        return bool(self.asker and self.action.cwd) and is_confined and is_unbound(self.confinement)

    @property
    def leaves(self) -> tuple[str, ...]:
        """The uses of a command that leave the workspace walls, without those that the policy opens to every command."""
        usual = {f"writes {place}" for place in self.usual.write}
        return tuple(words for words in self.effects.opened if words not in usual) if self.action.cwd else ()

    def _title(self, width: int) -> str:
        action, asker = self.action, self.asker
        if asker is not None:
            user = f"{asker.agent} in {posixpath.basename(asker.folder)}, session {asker.session[:_SESSION]}"
            return visible_line(f"{action.tool} asks for {user}", 1_000)
        if action.asked_by:
            return visible_line(f"{action.tool} asks for {action.asked_by}", 1_000)
        if action.text or (self.head and not self.has_room(width)):
            return f"{action.tool} asks"
        return self._whole_title

    @property
    def head(self) -> str:
        """The line above a diff: the file and the size of the change. Empty without a diff."""
        if self.action.change is None:
            return ""
        return self.action.preview.partition("\n")[0].removeprefix("edit ")

    def has_room(self, width: int) -> bool:
        """Return whether a title with the action fits into a line of `width` cells."""
        return (
            self.asker is None and not self.action.asked_by and cells(self._whole_title) <= min(width, WIDEST_RULE) - 6
        )

    @property
    def _whole_title(self) -> str:
        return visible_line(f"{self.action.tool} asks: {self.head or self.action.summary}", 1_000)


def by_model(action: Action) -> bool:
    """Return whether a call is a model's. The harness's own questions, server forms and the user's calls have no id."""
    return bool(action.call.id)


def question_rows(question: Question, width: int) -> tuple[Row, ...]:
    """Return all rows of a question at a terminal of `width` columns.

    INVARIANT: the call is shown completely, with everything unusual about its effects and its input.
    """
    action, parts = question.action, parts_of(question.action, question.verdict)
    return joined((
        _call(question, parts, width),
        _odd(action, width),
        *(_loud(f"this destroys: {reason}", width) for reason in question.destroys),
        *(_loud(f"public for good: {words}", width) for words in publications(action)),
        *(_loud(removal, width, Tone.WARNING) for removal in _removals(question)),
        *(_loud(warning, width) for warning in _at_terminals(action)),
        *(_unconfined(part, width) for part in question.verdict.facets),
        *(_by_hook(part, width) for part in question.verdict.facets),
        *(_of_tool(part, width, is_command=bool(action.cwd)) for part in question.verdict.facets),
        _walls_rows(question, parts, width),
        *(_fact(fact, width) for fact in facts_of(question) if not fact.usual),
        *(_note(note, width) for note in question.verdict.notes),
    ))  # fmt: skip


def _call(question: Question, parts: Sequence[Part], width: int) -> Iterator[Row]:
    action = question.action
    if action.change is not None:
        if not question.has_room(width):
            yield from rows_of(question.head, width, gutter=_TEXT)
        yield from diff_rows(action.preview.partition("\n")[2], action.change.path, width)
    elif not action.text:
        for line in action.preview.split("\n"):
            yield from rows_of(line, width, gutter=_TEXT)
    elif len(parts) > 1 and (pieces := split(action.text, parts)):
        highlighter = Highlighter(SHELL)
        for part, piece in zip(parts, pieces, strict=True):
            yield from _part(question, part, piece.rstrip(" \t\n").split("\n"), highlighter, width)
    else:
        lines = action.text.split("\n")
        strong = len(lines) == 1
        yield from code_rows(lines, Highlighter(SHELL), width, gutter=_COMMAND, next_gutter=_FURTHER, strong=strong)
        for part in parts if len(parts) > 1 else ():
            if part.text.strip() == action.text.strip():
                yield from joined(_loud(note, width, Tone.WARNING) for note in _of_part(question, part))
            else:
                yield from _part(question, part, (one_line(part.text),), Highlighter(""), width)


def _part(question: Question, part: Part, lines: Sequence[str], highlighter: Highlighter, width: int) -> Iterator[Row]:
    """Yield the rows of one of several commands: a word shows whether it needs approval, and notes list unusual features."""
    tone = Tone.BAD if part.reaches_network else Tone.WARNING
    if part.asks:
        first, *rest = code_rows(lines, highlighter, width, gutter=_ASKS, next_gutter=_PART_FURTHER, strong=True)
        yield replace(first, tints=(Tint(_WORD.start, _WORD.stop, tone), *first.tints))
        yield from rest
    else:
        for line in lines:
            highlighter.line(safe_line(line))
        yield from rows_of("\n".join(lines), width, gutter=_AUTO, next_gutter=_PART_FURTHER, tone=Tone.QUIET)
    for note in _of_part(question, part):
        yield from prose(note, width, gutter=_PART_NOTE, tone=tone)


def _of_part(question: Question, part: Part) -> Iterator[str]:
    """Yield the unusual features of a part, except for what leaves the walls: that is shown for the whole call."""
    effects, closed = question.effects, "" if question.is_unheld else ", which stays closed"
    if part.asks and part.reaches_network and not (effects.reaches or effects.meets_servers):
        yield f"it needs the network{closed}"
    if part.asks and part.needs and not effects.sockets:
        yield f"it needs {part.needs}{closed}"
    yield from part.reasons(frozenset((*effects.outside, *effects.changes) if question.action.cwd else ()))


def _odd(action: Action, width: int) -> Iterator[Row]:
    paths = " ".join(facet.written for facet in action.facets if isinstance(facet, PathAccess))
    for finding in suspicious(action.text or paths):
        yield from _loud(f"odd text: {finding}", width)


def _loud(text: str, width: int, tone: Tone = Tone.BAD) -> Iterator[Row]:
    yield from prose(text, width, gutter=_NOTE, tone=tone)


def _removals(question: Question) -> Iterator[str]:
    """Yield the files that a command removes by name, and whether undo covers the workspace."""
    can_undo = question.asker is None and not question.usual.undo.missing
    for path in removed(question.action):
        back = "; /undo can put it back" if can_undo and path.place is Place.INSIDE else ""
        yield f"removes {one_line(path.written)}{back}"


def _at_terminals(action: Action) -> Iterator[str]:
    """Yield a warning if the call may write to a terminal, because its text could imitate the harness's."""
    for facet in action.all_facets():
        if not isinstance(facet, PathAccess) or facet.access is Access.READ:
            continue
        if facet.real.startswith(_TERMINALS):
            yield f"it may write to a terminal, {one_line(facet.real)}: what it writes can imitate the harness's lines"


def _unconfined(part: FacetVerdict, width: int) -> Iterator[Row]:
    if isinstance(part.facet, Unconfined):
        words = one_line(part.facet.justification)
        yield from _loud(f'it asks to run UNCONFINED; in the model\'s words: "{words}"', width)


def _of_tool(part: FacetVerdict, width: int, *, is_command: bool) -> Iterator[Row]:
    """Yield the claims of a tool's server, and the tool's confinement. That of a command is shown elsewhere."""
    use = part.facet
    if not isinstance(use, ToolUse):
        return
    if use.says_reads and not use.only_reads:
        yield from prose("its server says that it only reads; nobody made sure", width, gutter=_TEXT, tone=Tone.QUIET)
    if use.bounds is not None and not is_command:
        places = ", ".join(map(one_line, use.bounds.write))
        writes = f"may write {places}" if places else "writes nothing"
        network = "may reach" if use.bounds.network else "does not reach"
        yield from prose(f"it {writes}, and {network} the network", width, gutter=_TEXT, tone=Tone.QUIET)


def _by_hook(part: FacetVerdict, width: int) -> Iterator[Row]:
    if part.source is Source.HOOK:
        reason = " ".join(part.reason.split())
        yield from _loud(f"{part.by.partition(' (')[0]} asks: {one_line(reason)}", width, Tone.WARNING)


def _walls_rows(question: Question, parts: Sequence[Part], width: int) -> Iterator[Row]:
    """Yield the reasons for a question about one command, and what would leave the walls of the whole call."""
    effects, leaves = question.effects, "; ".join(map(one_line, question.leaves))
    tone = Tone.BAD if effects.reaches or effects.sockets else Tone.WARNING
    notes = [*_of_part(question, parts[0])] if len(parts) == 1 else []
    if notes and not question.by_model:  # for a question of the harness, the notes describe the effect of a yes
        yield from prose("; ".join(notes), width, gutter=_TEXT)
        notes = []
    if leaves:
        notes.append(f"{'beyond the workspace' if question.is_unheld else 'a yes opens'}: {leaves}")
    if question.action.cwd:
        notes += beyond_undo(question.action, question.usual.undo)
    if notes:
        yield from _loud("; ".join(notes), width, tone if leaves else Tone.WARNING)
    if question.action.cwd and effects.enforcement is Enforcement.OFF:
        yield from _loud("UNCONFINED: it may do whatever you may do yourself, and reach the network", width)
    elif question.walls and not question.has_walls_in_title(width):
        yield from prose(question.walls, width, gutter=_TEXT, tone=Tone.QUIET)
    if not question.is_unheld and (unreached := unreached_words(effects)):
        yield from _loud(unreached, width, Tone.WARNING)
    if effects.unheld and not is_unbound(question.confinement):
        yield from _loud(f"walls: {effects.level.value}, but {one_line(effects.unheld)}", width, Tone.WARNING)


class Fact(Record):
    """A fact about a command."""

    name: str
    text: str
    usual: bool
    """Whether nearly every command has it, so that it is shown in the help only."""


def facts_of(question: Question) -> Iterator[Fact]:
    """Yield the facts about a command and, for calls that change something, whether undo covers it."""
    action, effects = question.action, question.effects
    if question.asker is not None:
        yield from _of_asker(question.asker)
    yield from _of_command(question) if action.cwd else ()
    if action.change is not None:
        new = action.change.before_sha256 is None
        detail = "the file is new: undo removes it" if new else "the old content is kept before anything is written"
        yield Fact(name="undo", text=f"yes, {detail}", usual=True)
    elif action.cwd and question.asker is None and not effects.looks_only:
        missing = question.usual.undo.missing
        if action.background and not missing:
            yield Fact(name="undo", text="only of what it changes in its first second", usual=False)
        else:
            yield Fact(name="undo", text=f"no, {missing}" if missing else COMMANDS_UNDONE, usual=True)
    elif not action.cwd and effects.write != () and by_model(action) and not action.kind.tells_changes:
        yield Fact(name="undo", text="no, what this tool changes is not kept", usual=False)


def _of_asker(asker: Asker) -> Iterator[Fact]:
    text = f"{asker.agent}, session {asker.session}, in {asker.folder}"
    yield Fact(name="asked by", text=one_line(text), usual=False)
    yield Fact(name="waits", text=f"until {asker.until}, then it is refused", usual=False)


def _of_command(question: Question) -> Iterator[Fact]:
    action, usual = question.action, question.usual
    yield Fact(name="folder", text=one_line(action.cwd), usual=action.cwd == usual.folder)
    if action.background:
        text = f"it keeps running as {action.background} until the session ends"
        yield Fact(name="background", text=text, usual=False)
    elif question.asker is None:  # another agent sets its own time limits
        limit = "none" if action.seconds is None else f"{action.seconds:g} s"
        yield Fact(name="time limit", text=limit, usual=action.seconds == DEFAULT_COMMAND_SECONDS)
    if question.variables is not None:
        odd = [name for name in question.variables if name not in PASSED | SET | {"PATH"}]
        names = ", ".join(question.variables) or "none"
        others_set = f", and {question.set_variables} that keep programs from asking and paging"
        yield Fact(name="variables of yours", text=f"{names}{others_set}", usual=not odd)
    off = question.verdict.effects.enforcement is Enforcement.OFF  # shown as a warning instead
    notes = _notes_on_walls(question)
    yield Fact(name="confinement", text=question.confinement, usual=off or notes is not None)
    if notes and not off:
        yield Fact(name="walls", text=notes, usual=False)


def _notes_on_walls(question: Question) -> str | None:
    """Return the unusual parts of the walls of a command, in words. `None` if another kernel feature confines it.

    Opened folders in the workspace are usual. A missing wall has its own row.
    """
    usual = question.usual
    if not usual.confinement or not f"{question.confinement}; ".startswith(f"{usual.confinement}; "):
        return None
    rest = question.confinement.removeprefix(usual.confinement)
    rest = rest.removeprefix(f"; but {question.effects.unheld}")
    opened = rest.removeprefix(f"; {OPENED}: ")
    if opened != rest and all(place == WORKSPACE or is_within(place, usual.folder) for place in opened.split(", ")):
        return ""
    return rest.removeprefix("; ")


def _fact(fact: Fact, width: int) -> Iterator[Row]:
    yield from fact_row(fact, width, gutter=_TEXT, tone=Tone.WARNING)


def fact_row(fact: Fact, width: int, *, gutter: str = "  ", tone: Tone = Tone.QUIET) -> Iterator[Row]:
    """Yield the rows of one fact."""
    wrap = rows_of if fact.name == "folder" else prose  # blanks in a path must stay exact
    yield from wrap(f"{fact.name}: {fact.text}", width, gutter=gutter, tone=tone)


def _note(note: str, width: int) -> Iterator[Row]:
    head, _, diff = note.partition("\n")
    yield from prose(f"changed without your having seen it: {head}", width, gutter=_NOTE, tone=Tone.WARNING)
    yield from diff_rows(diff, head, width, margin=_TEXT)
