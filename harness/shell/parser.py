"""Parses bash text into a syntax tree (syntax.py). Only a strict subset is accepted; other text is `Unread`, with a reason.

This module parses commands. words.py parses their words, redirections.py their redirections, conditions.py `[[ ]]`.

The grammar is that of POSIX.1-2024, Shell Command Language, 2.10, and of bash(1), SHELL GRAMMAR. Where bash accepts an
unusual form (`if(ls)then`, `! ! x`, `{ (ls) }`), this parser refuses it: every tree that it returns is what bash reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from harness.regex import regex
from harness.shell.cursor import END, Cursor, Stop
from harness.shell.redirections import read_redirection
from harness.shell.syntax import (
    AndOr,
    Assignment,
    Case,
    CommandGroup,
    Connector,
    For,
    If,
    Literal,
    Node,
    Pipeline,
    Redirection,
    Script,
    Simple,
    Test,
    Unread,
    While,
    Word,
)
from harness.shell.words import WordReader, check_no_array_element
from harness.text.visible import visible

MAX_CHARACTERS = 10_000
"""Maximum length of a text. The user could not review a longer one either."""

_KEYWORD = regex(
    r"(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|\{|\}|\[\[|select|function|coproc|time|!)(?=[ \t\n;&|<>)\0])"
)
RESERVED = frozenset(
    "if then elif else fi for while until do done case esac in { } [[ ]] select function coproc time !".split()
)
"""Words that begin or join a form of the shell, and name no program."""
_UNREAD_KEYWORDS = {
    "select": "a select loop",
    "function": "a function definition",
    "coproc": "a coprocess",
}
_IN = regex(r"in(?=[ \t\n;])")
_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*")
_TIME_OPTION = regex(r"-p(?=[ \t])")
_PREFIX = regex(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=)")
_CONNECTORS = {"&&": Connector.AND, "||": Connector.OR}

_COMMAND_ENDS = frozenset("\n;|)" + END)
_NO_STOPS: frozenset[str] = frozenset()
_THEN = frozenset(("then",))
_AFTER_THEN = frozenset(("elif", "else", "fi"))
_FI = frozenset(("fi",))
_DO = frozenset(("do",))
_DONE = frozenset(("done",))
_ESAC = frozenset(("esac",))
_BRACE = frozenset(("}",))


def parse(text: str) -> Script | Unread:
    """Return the tree of `text`, or an Unread with the reason. Never raises. Takes linear time.

    Limits: MAX_CHARACTERS, and MAX_WORDS and MAX_DEPTH of cursor.py.
    """
    if len(text) > MAX_CHARACTERS:
        return Unread(reason=f"longer than {MAX_CHARACTERS} characters", column=MAX_CHARACTERS + 1)
    unread = _hidden_character(text)
    if unread is not None:
        return unread
    try:
        return _Parser(text).whole_text()
    except Stop as stopped:
        return Unread(reason=stopped.reason, column=stopped.position + 1, complaint=stopped.complaint)


def _hidden_character(text: str) -> Unread | None:
    """Return an Unread for the first character that is invisible or displayed as another, or `None`."""
    line = text.replace("\n", " ").replace("\t", " ")
    if line.isascii() and line.isprintable():
        return None
    for position, char in enumerate(line):
        if not char.isprintable() or visible(char) != char:
            return Unread(reason=f"a control or invisible character (U+{ord(char):04X})", column=position + 1)
    return None


class _Parser:
    """Recursive descent parser. Each method starts at the first character of its construct and ends after its last."""

    def __init__(self, text: str, depth: int = 0, words: int = 0) -> None:
        self.cursor = Cursor(text, depth, words)
        self.words = WordReader(self.cursor, self)

    def whole_text(self) -> Script:
        """Read the whole text. A text with only comments gives an empty script. Raises Stop if it is blank."""
        cursor = self.cursor
        script = self._script()
        if cursor.text[cursor.position] != END:
            raise cursor.unexpected()
        cursor.no_pending_here_document()
        if not script.items and "#" not in cursor.text:
            raise cursor.stop("no command", 0)
        return script

    def in_parentheses(self) -> Script:
        """Read at least one command, up to and including the closing parenthesis."""
        cursor = self.cursor
        script = self._script()
        if cursor.text[cursor.position] != ")":
            raise cursor.unexpected()
        if not script.items:
            raise cursor.stop("nothing inside the parentheses")
        cursor.position += 1
        cursor.end = cursor.position
        return script

    def in_backquotes(self, text: str) -> Script:
        """Read the commands in backquotes, given as a separate text. Its depth and words count in this text's limits."""
        cursor = self.cursor
        inner = _Parser(text, cursor.depth, cursor.words)
        try:
            script = inner.whole_text()
        except Stop as stopped:
            raise cursor.stop(stopped.reason) from None
        if not script.items:
            raise cursor.stop("no command")
        cursor.words = inner.cursor.words
        return script

    # -- lists

    def _script(self, stops: frozenset[str] = _NO_STOPS) -> Script:
        """Read lists up to a keyword in `stops`, `)`, `;;` or the end of the text, none of which is consumed."""
        cursor = self.cursor
        items = []
        while True:
            char = cursor.gap()
            if char in (")", END) or (char == ";" and cursor.text[cursor.position + 1] in ";&"):
                break
            keyword = self._keyword()
            if keyword in stops:
                break
            items.append(self._and_or(keyword))
        return Script(items=tuple(items))

    def _and_or(self, keyword: str) -> AndOr:
        cursor = self.cursor
        start = cursor.position
        first = self._pipeline(keyword)
        rest = []
        while True:
            char = cursor.skip()
            connector = _CONNECTORS.get(cursor.text[cursor.position : cursor.position + 2])
            if connector is None:
                break
            cursor.position += 2
            if cursor.gap() == END:
                raise cursor.ends_early("the end of the text where it is not expected")
            rest.append((connector, self._pipeline(self._keyword())))
        text = cursor.text[start : cursor.end]
        # Consume the end of the list, except for `)`, `;;` and the end of the text, which the caller expects.
        if char == "\n":
            cursor.newline()
        elif char == "&" or (char == ";" and cursor.text[cursor.position + 1] not in ";&"):
            cursor.position += 1
        elif char not in (")", ";", END):
            raise cursor.unexpected()
        return AndOr(first=first, rest=tuple(rest), background=char == "&", text=text)

    def _pipeline(self, keyword: str) -> Pipeline:
        cursor = self.cursor
        start = cursor.position
        if keyword == "time":
            keyword = self._timed()
        if keyword == "!":
            cursor.position += 1
            cursor.skip()
            keyword = self._keyword()
        commands, errors_too = [self._command(keyword)], False
        while cursor.skip() == "|" and cursor.text[cursor.position + 1] != "|":
            both = cursor.text[cursor.position + 1] == "&"
            cursor.position += 2 if both else 1
            errors_too = errors_too or both
            if cursor.gap() == END:
                raise cursor.ends_early("the end of the text where it is not expected")
            commands.append(self._command(self._keyword()))
        return Pipeline(commands=tuple(commands), text=cursor.text[start : cursor.end], errors_too=errors_too)

    def _timed(self) -> str:
        cursor = self.cursor
        if cursor.substitutions:
            raise cursor.stop("time inside a substitution")  # bash 5.2 does not read `$(time (ls))`
        cursor.position += len("time")
        cursor.skip()
        match = _TIME_OPTION.match(cursor.text, cursor.position)
        if match:
            cursor.position = match.end()
            cursor.skip()
        if cursor.text[cursor.position] == "-":
            raise cursor.stop("time with an odd option")
        return self._keyword()

    # -- commands

    def _keyword(self) -> str:
        cursor = self.cursor
        match = _KEYWORD.match(cursor.text, cursor.position)
        return match.group() if match else ""

    def _command(self, keyword: str) -> Node:
        cursor = self.cursor
        if cursor.text[cursor.position] == "(":
            keyword = "("
        if not keyword:
            return self._simple()
        if keyword not in self._compounds:
            construct = _UNREAD_KEYWORDS.get(keyword, f"the reserved word {keyword} where it is not expected")
            raise cursor.stop(construct)
        cursor.enter()
        start = cursor.position
        cursor.position += len(keyword)
        node = self._compounds[keyword](self, start)
        cursor.depth -= 1
        return node

    def _simple(self) -> Simple:
        cursor = self.cursor
        start = cursor.position
        assignments: list[Assignment] = []
        words: list[Word] = []
        redirections: list[Redirection] = []
        while (char := cursor.skip()) not in _COMMAND_ENDS:
            if char == "(":
                raise cursor.stop("a function definition" if len(words) == 1 else "a ( where it is not expected")
            if (redirection := read_redirection(cursor, self.words, char)) is not None:
                redirections.append(redirection)
            elif char == "&":
                break
            elif words:
                words += [self.words.word()] if words[0].constant == "export" else self.words.words()
            else:
                self._first_word(assignments, words)
        if not (words or assignments or redirections):
            raise cursor.unexpected()
        text = cursor.text[start : cursor.end]
        return Simple(assignments=tuple(assignments), words=tuple(words), redirections=tuple(redirections), text=text)

    def _first_word(self, assignments: list[Assignment], words: list[Word]) -> None:
        """Read an assignment or the name of the command."""
        cursor = self.cursor
        word = self.words.word()
        first = word.pieces[0]
        if not isinstance(first, Literal) or first.quoted:
            words.append(word)
            return
        match = _PREFIX.match(first.text)
        operator = match.group(2) if match else None
        if match and operator == "=":
            assignments.append(_assignment(word, first.text, match.group(1)))
            return
        if operator == "+=":
            raise cursor.stop("an assignment that adds (+=)", word.start)
        check_no_array_element(cursor, word)
        if len(word.pieces) == 1 and first.text in RESERVED:
            raise cursor.stop(f"the reserved word {first.text} where it is not expected", word.start)
        words.append(word)

    def _rest(self, start: int) -> tuple[tuple[Redirection, ...], str]:
        """Read the redirections after a compound command. Return them, and the text of the whole command."""
        cursor = self.cursor
        cursor.end = cursor.position
        redirections = []
        while (redirection := read_redirection(cursor, self.words, cursor.skip())) is not None:
            redirections.append(redirection)
        return tuple(redirections), cursor.text[start : cursor.end]

    # -- compound commands; each method starts after the first keyword

    def _body(self, stops: frozenset[str]) -> tuple[Script, str]:
        """Read lists and the keyword after them, which must be in `stops`. Return both."""
        cursor = self.cursor
        script = self._script(stops)
        keyword = self._keyword()
        if keyword not in stops:
            expected = " or ".join(sorted(stops))
            raise cursor.ends_early(f"a compound command without {expected}")
        if not script.items:
            raise cursor.stop(f"nothing before {keyword}")
        cursor.position += len(keyword)
        return script, keyword

    def _subshell(self, start: int) -> CommandGroup:
        cursor = self.cursor
        if cursor.text[cursor.position] == "(":
            raise cursor.stop("arithmetic, or a subshell that looks like it (())", start)
        body = self.in_parentheses()
        redirections, text = self._rest(start)
        return CommandGroup(body=body, subshell=True, redirections=redirections, text=text)

    def _braces(self, start: int) -> CommandGroup:
        body, _ = self._body(_BRACE)
        redirections, text = self._rest(start)
        return CommandGroup(body=body, subshell=False, redirections=redirections, text=text)

    def _if(self, start: int) -> If:
        branches = []
        otherwise = None
        keyword = "elif"
        while keyword == "elif":
            condition, _ = self._body(_THEN)
            body, keyword = self._body(_AFTER_THEN)
            branches.append((condition, body))
        if keyword == "else":
            otherwise, _ = self._body(_FI)
        redirections, text = self._rest(start)
        return If(branches=tuple(branches), otherwise=otherwise, redirections=redirections, text=text)

    def _while(self, start: int) -> While:
        condition, _ = self._body(_DO)
        body, _ = self._body(_DONE)
        redirections, text = self._rest(start)
        return While(condition=condition, body=body, redirections=redirections, text=text)

    def _for(self, start: int) -> For:
        cursor = self.cursor
        cursor.skip()
        match = _NAME.match(cursor.text, cursor.position)
        if match is None or cursor.text[match.end()] not in " \t\n;":
            raise cursor.stop("a loop that is not over words")
        cursor.position = match.end()
        words = self._for_words()
        cursor.gap()
        if self._keyword() != "do":
            raise cursor.stop("a for without do")
        cursor.position += len("do")
        body, _ = self._body(_DONE)
        redirections, text = self._rest(start)
        return For(name=match.group(), words=words, body=body, redirections=redirections, text=text)

    def _for_words(self) -> tuple[Word, ...] | None:
        cursor = self.cursor
        if cursor.skip() == ";":
            cursor.position += 1
            return None
        cursor.gap()
        if _IN.match(cursor.text, cursor.position) is None:
            return None
        cursor.position += len("in")
        words = []
        while (char := cursor.skip()) not in ";\n":
            words += self.words.words()
        if char == ";":
            cursor.position += 1
        return tuple(words)

    def _case(self, start: int) -> Case:
        cursor = self.cursor
        cursor.skip()
        subject = self.words.word()
        cursor.gap()
        if _IN.match(cursor.text, cursor.position) is None:
            raise cursor.stop("a case without in")
        cursor.position += len("in")
        patterns: list[Word] = []
        bodies: list[Script] = []
        cursor.gap()
        while self._keyword() != "esac":
            patterns += self._case_patterns()
            bodies.append(self._script(_ESAC))
            if cursor.text.startswith(";;", cursor.position) and cursor.text[cursor.position + 2] != "&":
                cursor.position += 2
                cursor.gap()
            elif self._keyword() != "esac":
                raise cursor.stop("a case without esac, or a clause that goes on into the next")
        cursor.position += len("esac")
        redirections, text = self._rest(start)
        return Case(
            subject=subject, patterns=tuple(patterns), bodies=tuple(bodies), redirections=redirections, text=text
        )

    def _case_patterns(self) -> list[Word]:
        cursor = self.cursor
        if cursor.text[cursor.position] == "(":
            cursor.position += 1
            cursor.skip()
        patterns = []
        while True:
            word = self.words.word()
            if word.plain and word.constant in RESERVED:
                raise cursor.stop("a reserved word as a pattern", word.start)
            patterns.append(word)
            char = cursor.skip()
            if char not in "|)":
                raise cursor.unexpected()
            cursor.position += 1
            if char == ")":
                return patterns
            cursor.skip()

    def _test(self, start: int) -> Test:
        from harness.shell.conditions import read_condition

        words = read_condition(self.cursor, self.words)
        redirections, text = self._rest(start)
        return Test(words=words, redirections=redirections, text=text)

    _compounds: ClassVar[dict[str, Callable[[_Parser, int], Node]]] = {
        "(": _subshell,
        "{": _braces,
        "if": _if,
        "while": _while,
        "until": _while,
        "for": _for,
        "case": _case,
        "[[": _test,
    }


def _assignment(word: Word, text: str, name: str) -> Assignment:
    """Split a word into an assignment's name and value. `text` is its first piece, which begins with `name=`."""
    rest = text[len(name) + 1 :]
    pieces = word.pieces[1:]
    if rest:
        pieces = (Literal(text=rest, quoted=False), *pieces)
    # If a line is continued inside the name, this start is too small, but still inside the word.
    value = Word(pieces=pieces, start=word.start + len(name) + 1, end=word.end)
    return Assignment(name=name, value=value, start=word.start)
