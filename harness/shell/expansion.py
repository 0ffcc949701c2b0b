"""Expansion: turns the words of the syntax tree into the words that a program gets, as bash does.

A word of unknown value becomes `Unknown`. The disk is read through `Disk` alone. The reader of the line reads
commands inside a word (`$( )`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import takewhile

from harness.programs.program import FileNames, Listed, Temporary, Unknown
from harness.programs.variables import is_public
from harness.shell.arithmetic import evaluated
from harness.shell.disk import Disk
from harness.shell.shell_state import ShellState, StopReading
from harness.shell.syntax import (
    Arithmetic,
    Glob,
    Literal,
    Modified,
    Number,
    Parameter,
    Piece,
    ProcessFile,
    Script,
    Substitution,
    Tilde,
    Word,
)

MAX_VALUE = 1_000
"""Maximum length of an expanded value, in characters. A longer one counts as unknown, with a known beginning.

`X=$X$X` doubles a value each time.
"""

MAX_CUT = 250
"""Maximum length of a value for `${x#...}` and `${x%...}`, in characters, since each length of the part is tried."""

PIPE_FILE = "/dev/fd/63"
"""Placeholder for the file name that bash substitutes for `<( )`. The command in it is judged separately."""

_SPLITS_OR_MATCHES = frozenset(" \t\n*?[\\")


class Expander:
    """Expands the words of one simple command in one state."""

    def __init__(
        self,
        disk: Disk,
        state: ShellState,
        run: Callable[[Script, ShellState], FileNames | None],
        *,
        sure_of_disk: Callable[[], bool],
        on_foreign: Callable[[str], None],
    ) -> None:
        """Use `disk` and `state`, and `run` to read the commands inside a word.

        `run` returns the names that the commands print, or `None`. While `sure_of_disk` returns false, the
        matches of a file name pattern are unknown. `on_foreign` is called with the name of each expanded variable that is
        from the environment and not public.
        """
        self._disk = disk
        self._state = state
        self._run = run
        self._sure_of_disk = sure_of_disk
        self._on_foreign = on_foreign
        self.folders: list[str] = []
        """Folders that patterns list: `src` for `src/*.py`."""
        self.whole_folders: list[str] = []
        """Folders that a pattern lists completely: `src` for `src/*`, `.` for `*`."""

    def words(self, word: Word) -> list[str]:
        """Return bash's expansion of one word: several words for a pattern, `Unknown` for an unknown value."""
        value = word.constant
        if value is not None:
            return [value]
        if not any(isinstance(piece, Glob) for piece in word.pieces):
            return [self.value(word)]
        return self._matches(word)

    def value(self, word: Word) -> str:
        """Return the value of a word that is not split and not matched against files, as in an assignment."""
        value = word.constant
        if value is not None:
            return value
        first = word.pieces[0] if len(word.pieces) == 1 else None
        if isinstance(first, Substitution) and not first.quoted:
            return self._substituted(first)
        written: list[str] = []
        known_parts: list[str] = []
        unknown = False
        single = True
        for piece in word.pieces:
            text = self._piece(piece, alone=len(word.pieces) == 1)
            written.append(_written(piece) if text is None else text)
            if text is None:
                if isinstance(piece, Number) and not unknown and not any(known_parts):
                    known_parts.append("0")  # a digit, with which no option begins
                unknown = True
                single = single and (self._is_integer(piece) or _is_one_word(piece))
            elif not unknown:
                known_parts.append(text)
        if sum(map(len, known_parts)) > MAX_VALUE:
            return Unknown("".join(written)[:MAX_VALUE], prefix="".join(known_parts)[:MAX_VALUE], single=single)
        if not unknown:
            return "".join(known_parts)
        integer = len(word.pieces) == 1 and self._is_integer(word.pieces[0])
        return Unknown("".join(written), prefix="".join(known_parts), single=single, integer=integer)

    def temporary(self, word: Word) -> Temporary | None:
        """Return a path in the private temporary folder if the word is a quoted variable with one, otherwise `None`."""
        first = word.pieces[0] if word.pieces else None
        value = self._state.values.get(first.name) if isinstance(first, Parameter) and first.quoted else None
        if not isinstance(value, Temporary) or not all(isinstance(each, Literal | Parameter) for each in word.pieces):
            return None
        written = "".join(map(_written, word.pieces))
        texts = [self._piece(each, alone=False) for each in word.pieces[1:]]
        below = "".join(text for text in texts if text is not None)
        if None in texts or len(value) + len(below) > MAX_VALUE:
            return None
        if below and not (value.certain and below[0] == "/" and ".." not in below.split("/")):
            return None
        return Temporary(f"{value}{below}", certain=value.certain, written=written)

    def _substituted(self, piece: Substitution) -> Unknown:
        """Return the value of an unquoted `$( )` that is a whole word. It may become several words."""
        names = self._run(piece.body, self._state)
        if names is not None:
            output = Listed(_written(piece), single=False)
            output.names = names
            return output
        integer = self._is_integer(piece)
        return Unknown(_written(piece), single=integer, integer=integer)

    def _is_integer(self, piece: Piece) -> bool:
        """Return whether the value of an expansion is certainly an integer."""
        match piece:
            case Number() | Arithmetic():
                return True
            case Parameter():
                return self._state.holds_integer(piece.name)
            case Substitution():
                return _is_plainly(piece.body, "nproc")
            case _:
                return False

    def _piece(self, piece: Piece, *, alone: bool) -> str | None:
        """Return the text of a piece, or `None` if it is unknown."""
        match piece:
            case Literal() | Glob():
                return piece.text
            case Tilde():
                return self._disk.home
            case Parameter():
                return _unsplit(self._value_of(piece.name), quoted=piece.quoted)
            case Modified():
                return _unsplit(self._modified(piece), quoted=piece.quoted)
            case Number():
                return None
            case Arithmetic():
                return self._arithmetic(piece)
            case Substitution():
                self._run(piece.body, self._state)
                return None
            case ProcessFile():
                self._run(piece.body, self._state)
                return PIPE_FILE if alone else None

    def _arithmetic(self, piece: Arithmetic) -> str | None:
        try:
            value = evaluated(piece.expression, self._integer_of)
        except ValueError as problem:
            raise StopReading(f"arithmetic with {problem}", piece.text) from None
        return None if value is None else str(value)

    def _integer_of(self, name: str) -> int | None:
        """Return the integer that a variable holds, or `None` if it is an unknown integer.

        Raises ValueError if the variable may hold more than an integer.
        """
        if not self._state.holds_integer(name):
            raise ValueError(f"{name}, which may hold more than a number")
        value = self._state.values.get(name)
        return None if value is None else int(value)

    def _modified(self, piece: Modified) -> str | None:
        value = self._value_of(piece.name)
        if value is None:
            return None
        match piece.operator:
            case ":-":
                return value or piece.operand
            case "-":
                return value
            case ":+":
                return value and piece.operand
            case "+":
                return piece.operand
            case _:
                return _cut(value, piece.operator, piece.operand)

    def _value_of(self, name: str) -> str | None:
        state = self._state
        if name in state.values:
            value = state.values[name]
            return None if isinstance(value, Temporary) else value
        if name == "HOME":
            return self._disk.home
        if name == "PWD" and len(state.folders) == 1:
            return state.folders[0]
        if not is_public(name):
            self._on_foreign(name)
        return None

    def _matches(self, word: Word) -> list[str]:
        """Return the names of the files that match a pattern, or the pattern itself if there are none."""
        texts = [(piece, self._piece(piece, alone=False)) for piece in word.pieces]
        written = "".join(_written(piece) if text is None else text for piece, text in texts)[: 2 * MAX_VALUE]
        beginning = "".join(text or "" for piece, text in takewhile(_is_known, texts))
        if len(written) > MAX_VALUE or any(text is None for _, text in texts):
            return [Unknown(written, prefix=beginning, single=False)]
        pattern = "".join((text or "") if isinstance(piece, Glob) else _escaped(text or "") for piece, text in texts)
        before = beginning.rpartition("/")[0]
        self.folders.append(before or ("/" if written.startswith("/") else "."))
        folder, _, last = written.rpartition("/")
        if not last.strip("*.?"):
            self.whole_folders.append(folder or ("/" if written.startswith("/") else "."))
        expansions = {self._disk.expand(pattern, cwd) for cwd in self._state.folders}
        if len(expansions) != 1 or not self._sure_of_disk():
            return [Unknown(written, prefix=beginning, single=False)]
        names = expansions.pop()
        if names is None:
            return [Unknown(written, prefix=beginning, single=False)]
        self.folders += {name.rstrip("/").rpartition("/")[0] or "." for name in names if "/" in name.strip("/")}
        return list(names) or [written]


def _is_plainly(script: Script, word: str) -> bool:
    """Return whether a script is exactly the single word `word`."""
    if len(script.items) != 1 or script.items[0].text != word:
        return False
    return not script.items[0].background


def _unsplit(value: str | None, *, quoted: bool) -> str | None:
    """Return a value if it stays exactly one word, otherwise `None`.

    Without quotes, an empty value is no word, and a value with blanks or pattern characters may become several.
    """
    if value is None or quoted or (value and not _SPLITS_OR_MATCHES.intersection(value)):
        return value
    return None


def _cut(value: str, operator: str, pattern: str) -> str | None:
    """Return `value` without the shortest or longest beginning (#) or end (%) that matches `pattern`.

    `None` if the value is longer than MAX_CUT.
    """
    if len(value) > MAX_CUT:
        return None
    matches = re.compile(_expression(pattern), re.DOTALL).fullmatch
    lengths = range(len(value) + 1)
    for length in lengths if len(operator) == 1 else reversed(lengths):
        at = length if operator[0] == "#" else len(value) - length
        begin, end = value[:at], value[at:]
        if matches(begin if operator[0] == "#" else end):
            return end if operator[0] == "#" else begin
    return value


def _expression(pattern: str) -> str:
    """Return a regular expression for a pattern with * and ?. It matches in linear time, since it never backtracks."""
    first, *rest = ("".join("." if char == "?" else re.escape(char) for char in part) for part in pattern.split("*"))
    if not rest:
        return first
    return first + "".join(f"(?>.*?{part})" for part in rest[:-1]) + ".*" + rest[-1]


def _is_one_word(piece: Piece) -> bool:
    """Return whether an expansion gives exactly one word or a part of one. `"$@"` may give any number of words."""
    match piece:
        case Parameter():
            return piece.quoted and piece.name != "@"
        case Modified():
            return piece.quoted
        case Substitution():
            return piece.quoted
        case _:
            return isinstance(piece, Number)


def _is_known(piece_and_text: tuple[Piece, str | None]) -> bool:
    piece, text = piece_and_text
    return text is not None and not isinstance(piece, Glob)


def _escaped(text: str) -> str:
    return "".join(f"\\{char}" if char in "*?[]\\" else char for char in text)


def _written(piece: Piece) -> str:
    """Return the source form of an expansion, for display."""
    match piece:
        case Parameter():
            return f"${piece.name}"
        case Modified():
            return f"${{{piece.name}{piece.operator}{piece.operand}}}"
        case Number() | Arithmetic():
            return piece.text
        case Substitution():
            return "$(...)"
        case ProcessFile():
            return "<(...)"
        case Literal() | Glob() | Tilde():
            return piece.text


def is_pattern(word: Word) -> bool:
    """Return whether a word contains a file name pattern."""
    return word.constant is None and any(isinstance(piece, Glob) for piece in word.pieces)
