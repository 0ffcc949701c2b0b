"""Records for the syntax tree of a bash text, after quote removal."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from harness.record import Record


class Unread(Record):
    """The reason why a text is not read, and the 1-based column of the stop."""

    reason: str
    column: int
    complaint: str = ""
    """Message of bash (`bash -n`) about a text that is not valid bash."""


class Literal(Record):
    """Literal characters."""

    text: str
    quoted: bool
    """Whether the characters were quoted in any way: '..', "..", $'..' or a backslash."""


class Glob(Record):
    """Part of an unquoted file name pattern: `*`, `?` or a whole `[...]` class."""

    text: str


class Parameter(Record):
    """`$X`, `${X}`, or a special parameter whose value is not a number. `name` is without the dollar."""

    name: str
    quoted: bool


class Modified(Record):
    """`${X:-y}`, `${X%.md}` and similar expansions whose operand contains no expansion."""

    name: str
    operator: str
    """One of :- - :+ + % %% # ##."""
    operand: str
    """Operand. For the last four operators, a pattern with * and ?."""
    quoted: bool


class Number(Record):
    """An expansion that always gives digits or an empty text: `$?`, `$#`, `${#X}`.

    Never a sign, so the word cannot become an option.
    """

    text: str


class Arithmetic(Record):
    """`$((...))`: an integer, if every name in it has an integer value."""

    text: str
    expression: str


class Substitution(Record):
    """`$(...)` or backquotes."""

    body: Script
    quoted: bool


class ProcessFile(Record):
    """`<(...)` or `>(...)`: the name of a pipe to the commands inside."""

    body: Script


class Tilde(Record):
    """An unquoted `~` at the start of a word, alone or before a slash: the home folder."""

    text: str = "~"


Piece: TypeAlias = Literal | Glob | Parameter | Modified | Number | Arithmetic | Substitution | ProcessFile | Tilde


class Word(Record):
    """One word: pieces after quote removal. INVARIANT: neighbouring Literals differ in `quoted`."""

    pieces: tuple[Piece, ...]
    start: int
    end: int

    @property
    def constant(self) -> str | None:
        """The value of the word if it contains no expansion, otherwise `None`."""
        parts = []
        for piece in self.pieces:
            if not isinstance(piece, Literal):
                return None
            parts.append(piece.text)
        return "".join(parts)

    @property
    def plain(self) -> bool:
        """Whether the word is constant and contains no quoting, as keywords and operators must."""
        return all(isinstance(piece, Literal) and not piece.quoted for piece in self.pieces)


class Assignment(Record):
    """`NAME=value` in front of a command, or alone."""

    name: str
    value: Word
    start: int


class Redirection(Record):
    """One redirection. Its target names a file, unless `copies_descriptor` or the operator (`<<`, `<<<`) says otherwise."""

    operator: str
    """One of > >> >| < <> &> &>> >& <& <<< <<. `<<-` becomes `<<`, with the tabs already removed."""
    descriptor: int | None
    """File descriptor in front of the operator. `None` without one."""
    target: Word
    """Target. For `<<`, the body as one quoted Literal, with the `start` and `end` of the raw body."""
    start: int
    end: int

    @property
    def copies_descriptor(self) -> bool:
        """Whether it copies, moves or closes a file descriptor (`2>&1`, `>&3-`, `>&-`). Any other `>&word` opens a file.

        bash(1), "Duplicating File Descriptors".
        """
        word = self.target.constant or ""
        return self.operator in (">&", "<&") and (word == "-" or word.removesuffix("-").isdecimal())


class Simple(Record):
    """A simple command. May consist of assignments or redirections only."""

    assignments: tuple[Assignment, ...]
    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...]
    text: str


class CommandGroup(Record):
    """`( ... )` or `{ ...; }`."""

    body: Script
    subshell: bool
    redirections: tuple[Redirection, ...]
    text: str


class If(Record):
    """`if` with its `elif`s: pairs of condition and body."""

    branches: tuple[tuple[Script, Script], ...]
    otherwise: Script | None
    redirections: tuple[Redirection, ...]
    text: str


class For(Record):
    """`for NAME in WORDS`. Without `in`, `words` is `None`, and the loop is over `"$@"`."""

    name: str
    words: tuple[Word, ...] | None
    body: Script
    redirections: tuple[Redirection, ...]
    text: str


class While(Record):
    """`while`, or `until`."""

    condition: Script
    body: Script
    redirections: tuple[Redirection, ...]
    text: str


class Case(Record):
    """`case`: the patterns of all clauses, and their bodies. A clause without commands has a Script without items."""

    subject: Word
    patterns: tuple[Word, ...]
    bodies: tuple[Script, ...]
    redirections: tuple[Redirection, ...]
    text: str


class Test(Record):
    """`[[ ... ]]`: the words inside, with operators as unquoted Literals. It evaluates no arithmetic."""

    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...]
    text: str


Node: TypeAlias = Simple | CommandGroup | If | For | While | Case | Test


class Pipeline(Record):
    """Commands joined by `|` or `|&`. `!` and `time` in front are only in `text`."""

    commands: tuple[Node, ...]
    text: str
    errors_too: bool = False
    """Whether `|&` joins any of them, so that the next command reads stderr too."""


class Connector(Enum):
    """The operator between two pipelines of a list."""

    AND = "&&"
    OR = "||"


class AndOr(Record):
    """Pipelines joined by `&&` and `||`."""

    first: Pipeline
    rest: tuple[tuple[Connector, Pipeline], ...]
    background: bool
    """Whether `&` ends it."""
    text: str


class Script(Record):
    """Lists that run one after the other: joined by `;`, `&` or a newline."""

    items: tuple[AndOr, ...]
