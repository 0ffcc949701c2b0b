"""What a question shows: the whole call, what it may do, and why it is asked about; and how much of that was seen.

Nothing here is the model's word but what stands behind a gutter, or in quotes with a note whose words they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import assert_never

from harness.actions import Access, Action, Command, Enforcement, Facet, Opaque, PathAccess, ToolUse, Unconfined
from harness.cli.policy.explain import effects_lines
from harness.cli.terminal.row_text import Row, diff_tone, joined, prose, rows_of
from harness.cli.terminal.screen import Screen
from harness.cli.terminal.styles import Tone
from harness.limits import DEFAULT_COMMAND_SECONDS
from harness.paths import short_place
from harness.policy.rules import Decision, Layer
from harness.policy.verdict import FacetVerdict, Verdict
from harness.programs.variables import PASSED, SET
from harness.record import Record
from harness.text.visible import one_line, suspicious, visible_line

PLAN_TOOL = "plan"
"""What asks whether plan mode is left; no tool of the model."""
HEARS_WORDS = frozenset((PLAN_TOOL,))
"""What asks, of the program's own, and has somebody to hear the person's words; elsewhere nobody would read them."""
MOST_FACETS = 200
"""In the table of `?`; the question itself names every part."""
MOST_PATHS = 500
"""Of one kind, named at `?`."""

_TERMINALS = ("/dev/pts/", "/dev/tty", "/dev/console")
"""What names a terminal begins like that (pts(4), tty(4))."""

_COMMAND, _FURTHER, _TEXT, _PART = "  $ ", "  > ", "    ", 10


class Usual(Record):
    """What nearly every command has, as the person knows it from the start of the session; nothing where it is not known."""

    folder: str = ""
    """The workspace."""
    confinement: str = ""
    """What holds commands to their effects; empty, too, where nothing does: that is never usual."""


class Question(Record):
    """What is asked."""

    action: Action
    verdict: Verdict
    confinement: str
    """What will hold a command to its effects, in words."""
    variables: tuple[str, ...] | None = None
    """Names of the person's variables that a command is given as they are; None where that is not known here."""
    set_variables: int = 0
    """How many it is given besides, whose values are the harness's own."""
    usual: Usual = Usual()
    destroys: tuple[str, ...]
    """What cannot be taken back, a sentence each: of `destroys`, which is not asked anew at every key."""

    @property
    def by_model(self) -> bool:
        """Whether a model asks; else it is a question of the program's own, such as whether files are put back."""
        return by_model(self.action)

    @property
    def hears_words(self) -> bool:
        """Whether words with a no reach anyone."""
        return self.by_model or self.action.tool in HEARS_WORDS

    @property
    def title(self) -> str:
        """Tool and summary, for the line above the question."""
        return visible_line(f"{self.action.tool} asks: {self.action.summary}", 200)


def by_model(action: Action) -> bool:
    """Say whether a call is a model's; the program's own questions, and the person's calls, have no id."""
    return bool(action.call.id)


def question_rows(question: Question, width: int) -> tuple[Row, ...]:
    """Return all rows of a question at a terminal of `width` columns.

    INVARIANT: nothing of the call, of what it may do and of what it gets is left out or cut; what every command gets stands
    in one row, so that what is unusual is seen.
    """
    action, verdict = question.action, question.verdict
    parts = verdict.shown
    return joined((
        _call(action, width),
        _odd(action, width),
        _destroying(question, width),
        _at_terminals(action, width),
        *(_unconfined(part, width) for part in parts),
        *(_part(part, width) for part in (parts if len(parts) > 1 else ())),
        _facts(question, width),
        prose(f"why: {verdict.deciding.reason}  [{short_place(verdict.deciding.by)}]", width, tone=Tone.WARNING),
        *(_note(note, width) for note in verdict.notes),
    ))  # fmt: skip


def facet_rows(verdict: Verdict, width: int) -> tuple[Row, ...]:
    """Return the table of all facets: what each is, its decision, and whose word that is."""
    rows = [_facet_rows(number, facet, width) for number, facet in enumerate(verdict.facets[:MOST_FACETS], 1)]
    more = len(verdict.facets) - MOST_FACETS
    if more > 0:
        rows.append(prose(f"{more} more parts are not listed here", width, tone=Tone.WARNING))
    return joined(rows)


def _facet_rows(number: int, judged: FacetVerdict, width: int) -> Iterator[Row]:
    tone = Tone.QUIET if judged.decision is Decision.AUTO else Tone.WARNING
    yield from rows_of(f"{kind_of(judged.facet)}: {one_line(text_of(judged.facet))}", width, gutter=f"  {number:3} ")
    shipped = judged.layer is Layer.SHIPPED  # whose folder is the program's own: its name says all
    place = "" if judged.origin is None else f" at {judged.origin}"
    place = f" at {place.rpartition('/')[2]}" if shipped and place else place
    rule = "" if judged.rule is None else f", rule {judged.rule}"
    said = f"{_word(judged)}, by {judged.source.value}{rule}{place}, layer {judged.layer.value}"
    yield from prose(said, width, gutter=" " * 6, tone=tone)
    by = short_place(judged.by) if shipped else judged.by
    why = f"{judged.reason}  [{by}]" if by else judged.reason
    if why:
        yield from prose(why, width, gutter=" " * 6)


def kind_of(facet: Facet) -> str:
    """Return what kind of part this is, in a word or two."""
    match facet:
        case Command():
            return "command"
        case PathAccess():
            return f"file to {facet.access.value}" if facet.access.value != "either" else "file to read or write"
        case Opaque():
            return "not understood"
        case Unconfined():
            return "unconfined"
        case ToolUse():
            return "tool"
        case _:
            assert_never(facet)


def text_of(facet: Facet) -> str:
    """Return the whole of what a part is, as the model wrote it: hostile text."""
    match facet:
        case Command() | Opaque():
            return facet.text
        case PathAccess():
            return facet.written if facet.written == facet.names[-1] else f"{facet.written} ({facet.real})"
        case Unconfined():
            return "to run without confinement"
        case ToolUse():
            return facet.tool
        case _:
            assert_never(facet)


def _call(action: Action, width: int) -> Iterator[Row]:
    if action.text:
        yield from rows_of(action.text, width, gutter=_COMMAND, further=_FURTHER)
        return
    for line in action.preview.split("\n"):
        yield from rows_of(line, width, gutter=_TEXT, tone=diff_tone(line))


def _odd(action: Action, width: int) -> Iterator[Row]:
    paths = " ".join(facet.written for facet in action.facets if isinstance(facet, PathAccess))
    for finding in suspicious(action.text or paths):
        yield from prose(f"! odd text: {finding}", width, tone=Tone.BAD)


def _destroying(question: Question, width: int) -> Iterator[Row]:
    for reason in question.destroys:
        yield from prose(f"! this destroys: {reason}", width, tone=Tone.BAD)


def _at_terminals(action: Action, width: int) -> Iterator[Row]:
    """Say where the screen itself is written to: what stands on it afterwards may be no word of the harness."""
    for facet in action.all_facets():
        if not isinstance(facet, PathAccess) or facet.access is Access.READ:
            continue
        if facet.real.startswith(_TERMINALS):
            text = (
                f"! it may write to a terminal, {one_line(facet.real)}: what it writes can imitate the harness's lines"
            )
            yield from prose(text, width, tone=Tone.BAD)


def _unconfined(part: FacetVerdict, width: int) -> Iterator[Row]:
    if isinstance(part.facet, Unconfined):
        words = one_line(part.facet.justification)
        yield from prose(f'! it asks to run UNCONFINED; in the model\'s words: "{words}"', width, tone=Tone.BAD)


def _part(part: FacetVerdict, width: int) -> Iterator[Row]:
    tone = Tone.QUIET if part.decision is Decision.AUTO else Tone.WARNING
    # On one line: a line end inside a quoted word must not draw a part of its own.
    text = one_line(text_of(part.facet))
    by = f"  [{one_line(short_place(part.by))}]" if part.by else ""
    yield from rows_of(text + by, width, gutter=f"  {_word(part):{_PART - 4}}  ", tone=tone)


def _word(part: FacetVerdict) -> str:
    return "ASKS" if part.decision is Decision.CONFIRM else part.decision.word


def _facts(question: Question, width: int) -> Iterator[Row]:
    """Say what a command may do and what it gets: what the person cannot expect in rows of their own, the rest in one.

    Of a change of a file, say what undo would do.
    """
    if not question.action.cwd:
        if undo := _undo(question):
            yield from prose(undo, width, tone=Tone.QUIET)
        return
    off = question.verdict.effects.enforcement is Enforcement.OFF
    for line in effects_lines(question.verdict):
        yield from prose(line, width, tone=Tone.BAD if off else Tone.QUIET)
    facts = tuple(_given(question))
    for fact in facts:
        if not fact.usual:
            yield from _fact_rows(fact, width, tone=Tone.BAD if off else Tone.WARNING)
    usual = [fact.text if fact.name == "folder" else f"{fact.name} {fact.text}" for fact in facts if fact.usual]
    usual += [undo] if (undo := _undo(question)) else []
    if usual:
        yield from prose(f"as usual: {'; '.join(usual)}", width, tone=Tone.QUIET)


def fact_rows(question: Question, width: int) -> tuple[Row, ...]:
    """Return the rows that say all that a command gets, and whether undo reaches what the call does: for `?`."""
    return joined((
        _all_effects(question.verdict, width),
        *(_fact_rows(fact, width) for fact in _given(question)),
        prose(undo, width, tone=Tone.QUIET) if (undo := _undo(question)) else (),
    ))  # fmt: skip


def _all_effects(verdict: Verdict, width: int) -> Iterator[Row]:
    """Name all paths, where the question names the first of them and counts the others."""
    lines = effects_lines(verdict, most=MOST_PATHS)
    if lines != effects_lines(verdict):
        for line in lines:
            yield from prose(line, width, tone=Tone.QUIET)


class _Fact(Record):
    """What a command gets."""

    name: str
    text: str
    usual: bool
    """Whether it is so of nearly every command, and said to the person elsewhere."""


def _fact_rows(fact: _Fact, width: int, *, tone: Tone = Tone.QUIET) -> Iterator[Row]:
    wrap = rows_of if fact.name == "folder" else prose  # of a path every blank counts
    yield from wrap(f"{fact.name}: {fact.text}", width, tone=tone)


def _given(question: Question) -> Iterator[_Fact]:
    action, usual = question.action, question.usual
    if not action.cwd:
        return
    yield _Fact(name="folder", text=one_line(action.cwd), usual=action.cwd == usual.folder)
    limit = "none" if action.seconds is None else f"{action.seconds:g} s"
    yield _Fact(name="time limit", text=limit, usual=action.seconds == DEFAULT_COMMAND_SECONDS)
    if question.variables is not None:
        odd = [name for name in question.variables if name not in PASSED | SET | {"PATH"}]
        names = ", ".join(question.variables) or "none"
        besides = f", and {question.set_variables} that keep programs from asking and paging"
        yield _Fact(name="variables of yours", text=f"{names}{besides}", usual=not odd)
    yield _Fact(name="confinement", text=question.confinement, usual=question.confinement == usual.confinement != "")


def _undo(question: Question) -> str:
    """Return whether undo reaches what the call does; nothing for one that changes nothing."""
    action, effects = question.action, question.verdict.effects
    if action.change is not None:
        new = action.change.before_sha256 is None
        kept = "the file is new: undo removes it" if new else "the old content is kept before anything is written"
        return f"undo: yes, {kept}"
    if effects.write == () and not effects.granted:
        return ""
    if action.cwd:
        return "undo: no, what a command changes is not kept"
    return "undo: no, what this tool changes is not kept" if by_model(action) and not action.kind.is_of_files else ""


def _note(note: str, width: int) -> Iterator[Row]:
    yield from prose("changed without your having seen it:", width, tone=Tone.WARNING)
    for line in note.split("\n"):
        yield from rows_of(line, width, gutter=_TEXT, tone=diff_tone(line))


LEAST_WIDTH, LEAST_HEIGHT = 21, 5
"""A terminal that is smaller shows no question that could be answered with a yes."""
BESIDE = 2
"""Lines of the terminal that stay free for the line of keys."""


class Pages:
    """Rows and how far they were shown at the terminal's size.

    INVARIANT: `seen` is true only if every row was written at the size that the terminal has.
    """

    def __init__(self, screen: Screen, title: str, rows_at: Callable[[int], Sequence[Row]]) -> None:
        """Take what gives the rows for a number of columns."""
        self._screen = screen
        self._title = title
        self._rows_at = rows_at
        self._rows: Sequence[Row] = ()
        self._next = 0
        self._size = (0, 0)
        self._drawn = False
        self._seen = False

    @property
    def _size_now(self) -> tuple[int, int]:
        return self._screen.width, self._screen.height

    @property
    def is_current(self) -> bool:
        """Whether the terminal still has the size that was drawn for."""
        return self._drawn and self._size_now == self._size

    @property
    def is_tiny(self) -> bool:
        """Whether the terminal is too small for a question."""
        width, height = self._size
        return width < LEAST_WIDTH or height < LEAST_HEIGHT

    @property
    def left(self) -> int:
        """How many rows were not shown yet, since the last beginning."""
        return len(self._rows) - self._next

    @property
    def seen(self) -> bool:
        """Whether all of it was shown at this size."""
        return self._seen and self.is_current and not self.is_tiny

    def begin(self) -> None:
        """Show the first page, at the size that the terminal has now."""
        if not self.is_current:
            self._seen = False
        self._size = self._size_now
        self._drawn = True
        # One column stays free: some terminals go to the next line when the last one is written.
        self._rows = self._rows_at(max(self._size[0], LEAST_WIDTH) - 1)
        self._next = 0
        self._show(self._page - 1, title=self._title)

    def go_on(self, *, to_end: bool = False) -> None:
        """Show the next page, or all that is left: it stands in the terminal's scrollback then."""
        self._show(self.left if to_end else self._page)

    @property
    def _page(self) -> int:
        return max(self._size[1] - BESIDE, 1)

    def _show(self, count: int, *, title: str | None = None) -> None:
        self._screen.passing(self._rows[self._next : self._next + max(count, 1)], title=title)
        self._next = min(self._next + max(count, 1), len(self._rows))
        self._seen = self._seen or self._next >= len(self._rows)
