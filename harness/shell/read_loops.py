"""Loops over lines that hold names of files: `find . -name '*.py' | while read -r f; do head "$f"; done`; pure.

They are read where nothing in the loop but `read` can read from the pipe: else a name could be the end of another one.
"""

from __future__ import annotations

from harness.record import Record
from harness.shell.syntax import For, Literal, Modified, Number, Parameter, Pipeline, Script, Simple, While, Word

_READ_NOTHING = frozenset("echo printf true : [ test basename dirname".split())
_READ_OPERANDS = frozenset(
    "cat head tail wc grep egrep fgrep ls stat file du md5sum sha1sum sha256sum nl sed realpath".split()
)
"""Programs that read their input only where no operand names a file, or where one is `-`."""


class Lines(Record):
    """The variable that holds one line in each round."""

    variable: str
    takes: str
    """As in programs.model.Inner: a line end where whole lines are read, else a blank."""

    def is_line(self, word: Word) -> bool:
        """Say whether a word is the line and nothing else, quoted unless no shell would split it."""
        piece = word.pieces[0] if len(word.pieces) == 1 else None
        return isinstance(piece, Parameter) and piece.name == self.variable and (piece.quoted or self.takes == "*")


def lines_of(loop: For | While) -> Lines | None:
    """Return what a loop reads, or is given, in each round, or None for one that is not such a loop."""
    if isinstance(loop, For):
        given = Lines(variable=loop.name, takes="*")
        return given if not loop.redirections and _leaves_the_input(loop.body, given) else None
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
    whole = [(each.name, each.value.constant) for each in read.assignments] == [("IFS", "")] and "-r" in words
    if read.assignments and not whole:
        return None
    lines = Lines(variable=names[0], takes="\n" if whole else " ")
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
    """Say whether a command sets nothing, runs nothing inside its words, and writes at most into nothing."""
    targets = all(each.target.constant == "/dev/null" or each.operator == ">&" for each in node.redirections)
    outputs = all(">" in each.operator and each.descriptor in (None, 1, 2) for each in node.redirections)
    pieces = [piece for word in node.words for piece in word.pieces]
    known = all(isinstance(piece, Literal | Parameter | Modified | Number) for piece in pieces)
    return bool(node.words) and not node.assignments and targets and outputs and known


def _reads_no_input(node: object, lines: Lines) -> bool:
    if not isinstance(node, Simple):
        return False
    program = node.words[0].constant
    if program in _READ_NOTHING:
        return True
    operands = node.words[1:]
    others = [word.constant for word in operands if not lines.is_line(word)]
    return (
        program in _READ_OPERANDS
        and len(others) < len(operands)
        and all(
            word == "--" or (word and word[-1] != "-" and "/dev/" not in word and "/proc/" not in word)
            for word in others
        )
    )
