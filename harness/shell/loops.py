"""Loops: the variables that a loop sets, and the input of each round, derived from the syntax tree alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from harness.programs.catalog import is_known
from harness.record import Record
from harness.shell.arithmetic import is_integer
from harness.shell.syntax import (
    AndOr,
    Arithmetic,
    Case,
    CommandGroup,
    For,
    If,
    Literal,
    Modified,
    Node,
    Number,
    Parameter,
    Pipeline,
    Script,
    Simple,
    Test,
    While,
    Word,
)


class Lines(Record):
    """The variable that holds one line in each round."""

    variable: str
    takes: str
    """Same as in programs.program.Inner: a line end if whole lines are read, otherwise a blank."""

    def is_line(self, word: Word) -> bool:
        """Return whether a word is exactly the variable. It must be quoted, unless its values are single words."""
        piece = word.pieces[0] if len(word.pieces) == 1 else None
        return isinstance(piece, Parameter) and piece.name == self.variable and (piece.quoted or self.takes == "*")


def lines_of(loop: For | While) -> Lines | None:
    """Return the loop's variable that holds one line or word per round, or `None` for any other loop.

    `None` too if a command in the body may read the loop's input.
    """
    if isinstance(loop, For):
        parameters = Lines(variable=loop.name, takes="*")
        return parameters if not loop.redirections and _leaves_the_input(loop.body, parameters) else None
    if not loop.text.startswith("while") or len(loop.condition.items) != 1 or loop.redirections:
        return None
    condition = loop.condition.items[0]
    read = condition.first.commands[0]
    if condition.rest or condition.background or condition.text != read.text or not isinstance(read, Simple):
        return None
    words = [word.constant for word in read.words]
    names = [word for word in words if word not in ("read", "-r")]
    if words[:1] != ["read"] or len(names) != 1 or not names[0] or read.redirections:
        return None
    is_whole_line = [(each.name, each.value.constant) for each in read.assignments] == [("IFS", "")] and "-r" in words
    if read.assignments and not is_whole_line:
        return None
    lines = Lines(variable=names[0], takes="\n" if is_whole_line else " ")
    return lines if _leaves_the_input(loop.body, lines) else None


def _leaves_the_input(body: Script, lines: Lines) -> bool:
    pipelines: list[Pipeline] = []
    for item in body.items:
        if item.background:
            return False
        pipelines += [item.first, *(pipeline for _, pipeline in item.rest)]
    plain = all(isinstance(node, Simple) and _is_plain(node) for each in pipelines for node in each.commands)
    return plain and all(_reads_no_input(each.commands[0], lines) for each in pipelines)


def _is_plain(node: Simple) -> bool:
    """Return whether a command sets no variables, runs no commands in its words, and redirects at most to /dev/null."""
    targets = all(each.target.constant == "/dev/null" or each.copies_descriptor for each in node.redirections)
    outputs = all(">" in each.operator and each.descriptor in (None, 1, 2) for each in node.redirections)
    pieces = [piece for word in node.words for piece in word.pieces]
    is_known = all(isinstance(piece, Literal | Parameter | Modified | Number) for piece in pieces)
    return bool(node.words) and not node.assignments and targets and outputs and is_known


def _reads_no_input(node: object, lines: Lines) -> bool:
    if not isinstance(node, Simple):
        return False
    program = node.words[0].constant
    if program is None:
        return False
    if is_known(program, "no-input"):
        return True
    operands = node.words[1:]
    constants = [word.constant for word in operands if not lines.is_line(word)]
    return (
        is_known(program, "input-without-files")
        and len(constants) < len(operands)
        and all(
            word == "--" or (word and word[-1] != "-" and "/dev/" not in word and "/proc/" not in word)
            for word in constants
        )
    )


def assigned_names(part: Node | Script | AndOr) -> frozenset[str]:
    """Return the variables that a part of the tree may set, without those that `eval` sets."""
    names: set[str] = set()
    for node in _nodes(part):
        if isinstance(node, For):
            names.add(node.name)
        elif isinstance(node, Simple):
            names |= {each.name for each in node.assignments} | _named_by_words(node)
    return frozenset(names)


def _named_by_words(node: Simple) -> set[str]:
    """Return the variables named in the arguments of `export`, `read` or `unset`."""
    if not node.words or node.words[0].constant not in ("export", "read", "unset"):
        return set()
    firsts = [word.pieces[0] for word in node.words[1:] if word.pieces]
    return {piece.text.partition("=")[0] for piece in firsts if isinstance(piece, Literal)}


def counted_names(part: Node | Script | AndOr) -> frozenset[str]:
    """Return the variables that a part of the tree sets only to integers: `i=0`, `i=$((i + 1))`."""
    assignments = [each for node in _nodes(part) if isinstance(node, Simple) for each in node.assignments]
    otherwise = {each.name for each in assignments if not _is_integer(each.value)}
    plainly = {each.name for each in assignments}
    for node in _nodes(part):
        if isinstance(node, For):
            otherwise.add(node.name)
        elif isinstance(node, Simple):
            otherwise |= _named_by_words(node)
    return frozenset(plainly - otherwise)


def _is_integer(value: Word) -> bool:
    constant = value.constant
    if constant is not None:
        return is_integer(constant)
    return len(value.pieces) == 1 and isinstance(value.pieces[0], Number | Arithmetic)


def first_words(part: Node | Script | AndOr) -> frozenset[str]:
    """Return the first word of each command in a part of the tree. A word with an expansion gives an empty string."""
    commands = (node for node in _nodes(part) if isinstance(node, Simple) and node.words)
    return frozenset(node.words[0].constant or "" for node in commands)


def _nodes(part: Node | Script | AndOr) -> Iterator[Node]:
    """Yield every command in a part of the tree, including those inside groups, loops and choices."""
    match part:
        case Script():
            inner: Sequence[Node | Script | AndOr] = part.items
        case AndOr():
            pipelines = (part.first, *(pipeline for _, pipeline in part.rest))
            inner = [each for pipeline in pipelines for each in pipeline.commands]
        case Simple() | Test():
            yield part
            return
        case CommandGroup() | For():
            inner = (part.body,)
        case If():
            inner = [each for branch in part.branches for each in branch]
            inner = [*inner, part.otherwise] if part.otherwise else inner
        case While():
            inner = (part.condition, part.body)
        case Case():
            inner = part.bodies
        case _:
            assert_never(part)
    if not isinstance(part, Script | AndOr):
        yield part
    for each in inner:
        yield from _nodes(each)
