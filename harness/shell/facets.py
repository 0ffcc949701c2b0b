"""A command line to facets: every command that bash would run, every file that a redirection opens, or `Opaque`.

`read_commands` parses the line and walks its tree in the order of bash. It tracks the known folder and variables. A
wrapper and the command it runs (`timeout 5 ls`) are two facets.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import assert_never

from harness.actions import Access, Act, Command, Facet, PathAccess, Place
from harness.programs.program import FileNames, Listed, Unknown
from harness.record import replace
from harness.shell.arithmetic import is_integer
from harness.shell.builtins import FOLDER_BUILTINS
from harness.shell.command_line import CommandLine
from harness.shell.disk import Disk, Witness
from harness.shell.loops import Lines, assigned_names, counted_names, first_words, lines_of
from harness.shell.loose_words import loose_opaque
from harness.shell.parser import parse
from harness.shell.printed_names import HandedNames
from harness.shell.redirections import apply_redirections
from harness.shell.shell_state import Outcome, ShellState, StopReading, check_variable, merged
from harness.shell.simple_commands import SimpleCommands
from harness.shell.syntax import (
    AndOr,
    Case,
    CommandGroup,
    Connector,
    For,
    If,
    Node,
    Pipeline,
    ProcessFile,
    Script,
    Simple,
    Substitution,
    Test,
    Unread,
    While,
)

MAX_STEPS = 5_000
"""Maximum number of commands read per line. Commands in a loop count once per round. A line with more is opaque."""
MAX_ROUNDS = 30
"""Maximum rounds of a `for` loop that are read one by one. In a longer loop, the variable counts as unknown."""


def read_commands(text: str, disk: Disk, cwd: str | None = None) -> tuple[Facet, ...]:
    """Return the facets of a command line that runs in `cwd` (absolute; `None` is the root of the disk).

    Never raises; the result is never empty. If a line cannot be parsed fully, the facets include an `Opaque`, with loose
    words and paths for strict rules, besides those of the parsed parts.
    """
    return _read(text, Witness(disk), cwd or disk.root)


def read_call(
    text: str, disk: Disk, start: PathAccess, *, own_environment: bool = True
) -> tuple[tuple[Facet, ...], Witness]:
    """Return the facets of a command line that starts in `start`, and the record of the disk's answers.

    Unless `start` is the root, a `cd` to it is one of the facets. `own_environment` says that the line
    has the variables of our own commands: TMPDIR is a private folder if it writes anything, and none holds a secret.
    """
    witness = Witness(disk)
    facets = _read(text, witness, start.real, own_environment=own_environment)
    if start.place is not Place.ROOT:
        argv = ("cd", start.written)
        facets += (Command(text=" ".join(argv), argv=argv, paths=(start,), act=Act.WRAPS, model="cd"),)
    return facets, witness


def syntax_complaint(text: str) -> str:
    """Return bash's error message for an invalid text, or an empty string."""
    script = parse(text)
    return script.complaint if isinstance(script, Unread) else ""


def _read(text: str, disk: Witness, folder: str, *, own_environment: bool = True) -> tuple[Facet, ...]:
    script = parse(text)
    if isinstance(script, Unread):
        return (loose_opaque(text, script.reason, script.column, disk, folder),)
    reader = _LineReader(disk, text, own_environment=own_environment)
    facets = reader.line.facets
    try:
        reader.script(script, ShellState(folders=(folder,), values={} if own_environment else {"TMPDIR": None}))
    except StopReading as stop:
        opaque = loose_opaque(text, stop.reason, max(text.find(stop.part), 0) + 1, disk, folder)
        return (*dict.fromkeys(facets), opaque)
    finally:
        reader.close()
    if not facets:  # only assignments
        return (Command(text=text, argv=(":",), act=Act.LOOKS, model=":"),)
    return tuple(dict.fromkeys(facets))


RUNS_ON = (
    "What runs behind & ends with its call. To keep a program running, send it alone, without &, and with background: true "
    "if this tool offers that."
)
"""Advice on a line with a background job."""


class _LineReader:
    """Walks the tree of one command line as bash would run it, down to simple commands."""

    def __init__(self, disk: Witness, text: str, *, own_environment: bool) -> None:
        self.line = CommandLine(disk, text, self.names_in, own_environment=own_environment)
        self._names = HandedNames(self.line)
        self._commands = SimpleCommands(self.line, self._names, self.script)
        self._steps = 0

    def close(self) -> None:
        """Let go of the parts, which refer to this reader: else the names of a large tree wait for the garbage collector."""
        del self.line, self._names, self._commands

    def script(self, script: Script, state: ShellState) -> Outcome:
        outcome = Outcome(ok=state, failed=None)
        for item in script.items:
            state = outcome.either() or state  # read commands too that bash would not reach
            outcome = self._and_or(item, state)
        return outcome

    def _and_or(self, item: AndOr, state: ShellState) -> Outcome:
        if item.background:
            self.line.add_opaque("a background job (&)", item.text, state, hint=RUNS_ON)
        outcome = self._pipeline(item.first, state)
        for connector, pipeline in item.rest:
            match connector:
                case Connector.AND:
                    after = self._pipeline(pipeline, outcome.ok or state)
                    outcome = Outcome(ok=after.ok, failed=merged(outcome.failed, after.failed))
                case Connector.OR:
                    after = self._pipeline(pipeline, outcome.failed or state)
                    outcome = Outcome(ok=merged(outcome.ok, after.ok), failed=after.failed)
                case _:
                    assert_never(connector)
        return Outcome(ok=state, failed=None) if item.background else outcome

    def _pipeline(self, pipeline: Pipeline, state: ShellState) -> Outcome:
        if len(pipeline.commands) > 1:
            self._piped(pipeline, state)
            return Outcome(ok=state, failed=state)
        outcome = self._command(pipeline.commands[0], state)
        if pipeline.text.startswith(("!", "time")):  # negated, perhaps
            either = outcome.either()
            return Outcome(ok=either, failed=either)
        return outcome

    def _piped(self, pipeline: Pipeline, state: ShellState) -> None:
        """Read the parts of a pipeline. Each runs in its own shell and does not change the state of this one.

        They run at the same time, so one part may change files that the patterns of another match. Such a part is read a
        second time, with the matches of patterns unknown.
        """
        before, changes = self.line.disk_changed, []
        states = [state] + [replace(state, fed=True)] * (len(pipeline.commands) - 1)
        names: FileNames | None = None
        for node, each in zip(pipeline.commands, states, strict=True):
            self.line.disk_changed, self._names.printed, self._names.pipeline_layer = before, None, self.line.layers
            passes_on = _passes_on(node) and not pipeline.errors_too
            takes = passes_on or (isinstance(node, While) and not pipeline.errors_too)
            self._command(node, replace(each, names=names) if takes and names is not None else each)
            names = self._names.printed if passes_on else None
            changes.append(self.line.disk_changed)
        self.line.disk_changed = any(changes)
        if before or not any(changes):
            return
        for place, (node, each) in enumerate(zip(pipeline.commands, states, strict=True)):
            if any(changes[:place]) or any(changes[place + 1 :]):
                self._command(node, each)

    def names_in(self, script: Script, state: ShellState) -> FileNames | None:
        """Read the script in a `$( )`. Return the facts about the file names that it prints, or `None` if unknown."""
        outer, self._names.pipeline_layer, self._names.printed = self._names.pipeline_layer, self.line.layers, None
        self.script(script, state)
        names, self._names.pipeline_layer, self._names.printed = self._names.printed, outer, None
        if len(script.items) != 1 or script.items[0].rest or script.items[0].background:
            return None
        pipeline = script.items[0].first
        return names if _passes_on(pipeline.commands[-1]) and not pipeline.errors_too else None

    def _command(self, node: Node, state: ShellState) -> Outcome:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise StopReading(f"more than {MAX_STEPS} steps", "")
        outcome = self._of_kind(node, state)
        if any(
            each.operator not in ("<<", "<<<") and each.target.constant != "/dev/null" for each in node.redirections
        ):
            # If a redirection fails, bash does not run the command.
            return Outcome(ok=outcome.ok, failed=merged(outcome.failed, state))
        return outcome

    def _of_kind(self, node: Node, state: ShellState) -> Outcome:
        match node:
            case Simple():
                return self._commands.read(node, state)
            case CommandGroup():
                outcome = _unfed(self.script(node.body, self._within(node, state)), state)
                return Outcome(ok=state, failed=state) if node.subshell else outcome
            case If():
                return _unfed(self._if(node, self._within(node, state)), state)
            case For() | While():
                return _unfed(self._loop(node, self._within(node, state)), state)
            case Case():
                return _unfed(self._case(node, self._within(node, state)), state)
            case Test():
                apply_redirections(self.line, node.redirections, state)
                return self._test(node, state)
            case _:
                assert_never(node)

    def _within(self, node: CommandGroup | If | For | While | Case, state: ShellState) -> ShellState:
        """Add the targets of a compound command's redirections, and return the state inside the command."""
        apply_redirections(self.line, node.redirections, state)
        return state.reading(node.redirections)

    def _if(self, node: If, state: ShellState) -> Outcome:
        ends: ShellState | None = None
        for condition, body in node.branches:
            outcome = self.script(condition, state)
            ends = merged(ends, self.script(body, outcome.ok or state).either())
            state = outcome.failed or state
        ends = merged(ends, self.script(node.otherwise, state).either() if node.otherwise else state)
        return Outcome(ok=ends, failed=ends)

    def _loop(self, node: For | While, state: ShellState) -> Outcome:
        """Read a loop once for each known value. If values are unknown, read it once with its variables unknown."""
        changed = assigned_names(node)
        words = first_words(node)
        lines = lines_of(node) if isinstance(node, While) and state.names is not None else None
        names, state = state.names, replace(state, names=None)
        if "eval" in words or "" in words:
            raise StopReading("eval in a loop", node.text)
        if not words.isdisjoint(FOLDER_BUILTINS) and not words.isdisjoint(("break", "continue")):
            state = replace(state, folders=(), stack=None)  # the folder at the jump is unknown
        if isinstance(node, For):
            check_variable(node.name, node.text)
            state = state.touching(node.name)
            values = self._loop_values(node, state)
            is_known = len(values) <= MAX_ROUNDS and not any(isinstance(value, Unknown) for value in values)
            if node.words is not None and is_known and words.isdisjoint(("break", "continue")):
                return self._rounds(node, values, state)
            if len(values) == 1 and isinstance(values[0], Listed):
                lines, names = lines_of(node), values[0].names
        counters = frozenset(filter(state.holds_integer, counted_names(node)))
        state = replace(state.forgetting(changed).counting(counters), before=())
        after = merged(state, self._round(node, state, lines, names))
        if after is not None and _place(after) != _place(state):
            # The second round starts in another folder: read the loop again with the folder unknown.
            after = merged(state, self._round(node, replace(after, folders=(), stack=None), lines, names))
        return Outcome(ok=after, failed=after)

    def _loop_values(self, node: For, state: ShellState) -> list[str]:
        """Return the values of a `for` loop's variable. Unknown ones are `Unknown`."""
        expander = self.line.expander(state)
        values = self.line.expanded_words(node.words or (), expander)
        for folder in expander.folders:
            for path in self.line.resolved(folder, Access.READ, state):
                if path.place not in (Place.INSIDE, Place.ROOT):
                    self.line.add(path)
        return values

    def _rounds(self, node: For, values: Sequence[str], state: ShellState) -> Outcome:
        now = state
        for value in values:
            now = merged(now, self._round(node, now.with_value(node.name, value))) or now
        return Outcome(ok=now, failed=now)

    def _round(
        self, node: For | While, state: ShellState, lines: Lines | None = None, names: FileNames | None = None
    ) -> ShellState | None:
        if isinstance(node, For):
            if lines is None:
                return self.script(node.body, state).either()
            outcome = Outcome(ok=state, failed=state)
        else:
            outcome = self.script(node.condition, state)
        begin = outcome.either() or state
        if lines is not None:
            self.script(node.body, replace(begin, lines=lines, names=names))  # the body sets no variables
            return begin
        return merged(outcome.either(), self.script(node.body, begin).either())

    def _case(self, node: Case, state: ShellState) -> Outcome:
        expander = self.line.expander(state)
        for word in (node.subject, *node.patterns):
            expander.value(word)
        ends: ShellState | None = state
        for body in node.bodies:
            ends = merged(ends, self.script(body, state).either())
        return Outcome(ok=ends, failed=ends)

    def _test(self, node: Test, state: ShellState) -> Outcome:
        """Read a `[[ ]]`. It reads at most the state of the files that it names, since the parser accepts no other tests."""
        from harness.shell.conditions import NUMBER_TESTS

        expander = self.line.expander(state)
        values = [expander.value(word) for word in node.words]
        for place, word in enumerate(node.words):
            if (
                word.plain
                and word.constant in NUMBER_TESTS
                and not all(map(_holds_integer, values[place - 1 : place + 2 : 2]))
            ):
                raise StopReading("a test that evaluates arithmetic", node.text)
        paths = [
            path
            for operator, value in pairwise(values)
            if len(operator) == 2
            and operator[0] == "-"
            and operator not in ("-n", "-z")
            and not isinstance(value, Unknown)
            for path in self.line.resolved(value, Access.READ, state)
        ]
        self.line.add(Command(text=node.text, argv=("[[", *values), paths=tuple(paths), act=Act.LOOKS, model="[["))
        return Outcome(ok=state, failed=state)


def _place(state: ShellState) -> tuple[object, ...]:
    return state.folders, state.stack, state.exported


def _holds_integer(value: str) -> bool:
    return value.integer if isinstance(value, Unknown) else is_integer(value)


def _passes_on(node: Node) -> bool:
    """Return whether a command certainly reads the pipe before it, and writes exactly its output into the next one."""
    if not isinstance(node, Simple) or not node.words:
        return False
    words = list(node.words)
    for redirection in node.redirections:
        if redirection.operator not in (">", ">>") or redirection.descriptor != 2:
            return False
        words.append(redirection.target)
    for assignment in node.assignments:
        if assignment.name not in ("LC_ALL", "LANG"):
            return False
        words.append(assignment.value)
    # A command inside a word may read from the pipe.
    return not any(isinstance(piece, Substitution | ProcessFile) for word in words for piece in word.pieces)


def _unfed(outcome: Outcome, before: ShellState) -> Outcome:
    """Return the state after a compound command, whose redirections no longer apply."""
    ok, failed = (None if state is None else replace(state, fed=before.fed) for state in (outcome.ok, outcome.failed))
    return Outcome(ok=ok, failed=failed)
