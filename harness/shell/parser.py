"""Bash text to a syntax tree, for a strict subset; the rest is `Unread` with a reason. It runs, expands and judges nothing.

The grammar is that of POSIX.1-2024, Shell Command Language, 2.10, and of bash(1), SHELL GRAMMAR. Where bash accepts an
odd form (`if(ls)then`, `! ! x`, `{ (ls) }`), this refuses it: a tree is given only where bash reads the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

from harness.shell.conditions import Conditions
from harness.shell.quoting import END, Stop
from harness.shell.syntax import (
    AndOr,
    Assignment,
    Case,
    Connector,
    For,
    Group,
    If,
    Literal,
    Node,
    Pattern,
    Pipeline,
    Redirection,
    Script,
    Simple,
    Test,
    Unread,
    While,
    Word,
)
from harness.text.visible import visible

MAX_CHARACTERS = 10_000
"""A longer text is not read: a person could not follow it either."""

_KEYWORD = re.compile(
    r"(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|\{|\}|\[\[|select|function|coproc|time|!)(?=[ \t\n;&|<>)\0])"
)
_RESERVED = frozenset(
    "if then elif else fi for while until do done case esac in { } [[ ]] select function coproc time !".split()
)
_UNREAD_KEYWORDS = {
    "select": "a select loop",
    "function": "a function definition",
    "coproc": "a coprocess",
}
_IN = re.compile(r"in(?=[ \t\n;])")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TIME_OPTION = re.compile(r"-p(?=[ \t])")
_DESCRIPTOR = re.compile(r"[0-9]+(?=[<>])")
_REDIRECTION = re.compile(r"&>>|&>|<<<|<<-|<<|<&|<>|<|>>|>&|>\||>")
_DUPLICATED = re.compile(r"-|[A-Za-z0-9_./][A-Za-z0-9_./,:=@%+-]*")
_PREFIX = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=)")
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
    """Return the tree of `text`, or why there is none. Never raises; linear in the length of the text.

    Limits: MAX_CHARACTERS, MAX_WORDS (lexer.py) and MAX_DEPTH (cursor.py).
    """
    if len(text) > MAX_CHARACTERS:
        return Unread(reason=f"longer than {MAX_CHARACTERS} characters", column=MAX_CHARACTERS + 1)
    unread = _hidden_character(text)
    if unread is not None:
        return unread
    try:
        return Parser(text).whole()
    except Stop as stopped:
        return Unread(reason=stopped.reason, column=stopped.position + 1)


def _hidden_character(text: str) -> Unread | None:
    """Find what a person would not see, or see as something else."""
    line = text.replace("\n", " ").replace("\t", " ")
    if line.isascii() and line.isprintable():
        return None
    for position, char in enumerate(line):
        if not char.isprintable() or visible(char) != char:
            return Unread(reason=f"a control or invisible character (U+{ord(char):04X})", column=position + 1)
    return None


class Parser(Conditions):
    """Recursive descent over one text. Every method begins at its first character and ends behind its last."""

    def whole(self) -> Script:
        """Read the text to its end; Stop if there is no command in it."""
        script = self._script()
        if self.text[self.position] != END:
            raise self.unexpected()
        self.no_pending_here_document()
        if not script.items:
            raise self.stop("no command", 0)
        return script

    def enclosed(self) -> Script:
        """Read commands, of which there must be one, to the closing parenthesis, and past it."""
        script = self._script()
        if self.text[self.position] != ")":
            raise self.unexpected()
        if not script.items:
            raise self.stop("nothing inside the parentheses")
        self.position += 1
        self.end = self.position
        return script

    # -- lists

    def _script(self, stops: frozenset[str] = _NO_STOPS) -> Script:
        """Read lists up to a keyword of `stops` or to what can begin no list: `)`, `;;` or the end of the text."""
        items = []
        while True:
            char = self.gap()
            if char in (")", END) or (char == ";" and self.text[self.position + 1] in ";&"):
                break
            keyword = self._keyword()
            if keyword in stops:
                break
            items.append(self._and_or(keyword))
        return Script(items=tuple(items))

    def _and_or(self, keyword: str) -> AndOr:
        start = self.position
        first = self._pipeline(keyword)
        rest = []
        while True:
            char = self.skip()
            connector = _CONNECTORS.get(self.text[self.position : self.position + 2])
            if connector is None:
                break
            self.position += 2
            self.gap()
            rest.append((connector, self._pipeline(self._keyword())))
        text = self.text[start : self.end]
        self._separator(char)
        return AndOr(first=first, rest=tuple(rest), background=char == "&", text=text)

    def _separator(self, char: str) -> None:
        """Move past what ends a list; `)`, `;;` and the end of the text are left to the one who waits for them."""
        if char == "\n":
            self.newline()
        elif char == "&" or (char == ";" and self.text[self.position + 1] not in ";&"):
            self.position += 1
        elif char not in (")", ";", END):
            raise self.unexpected()

    def _pipeline(self, keyword: str) -> Pipeline:
        start = self.position
        if keyword == "time":
            keyword = self._timed()
        if keyword == "!":
            self.position += 1
            self.skip()
            keyword = self._keyword()
        commands, errors_too = [self._command(keyword)], False
        while self.skip() == "|" and self.text[self.position + 1] != "|":
            both = self.text[self.position + 1] == "&"
            self.position += 2 if both else 1
            errors_too = errors_too or both
            self.gap()
            commands.append(self._command(self._keyword()))
        return Pipeline(commands=tuple(commands), text=self.text[start : self.end], errors_too=errors_too)

    def _timed(self) -> str:
        if self.inside_substitution:
            raise self.stop("time inside a substitution")  # bash 5.2 does not read `$(time (ls))`
        self.position += len("time")
        self.skip()
        match = _TIME_OPTION.match(self.text, self.position)
        if match:
            self.position = match.end()
            self.skip()
        if self.text[self.position] == "-":
            raise self.stop("time with an odd option")
        return self._keyword()

    # -- commands

    def _keyword(self) -> str:
        match = _KEYWORD.match(self.text, self.position)
        return match.group() if match else ""

    def _command(self, keyword: str) -> Node:
        if self.text[self.position] == "(":
            keyword = "("
        if not keyword:
            return self._simple()
        if keyword not in self._compounds:
            what = _UNREAD_KEYWORDS.get(keyword, f"the reserved word {keyword} where it is not expected")
            raise self.stop(what)
        self.enter()
        start = self.position
        self.position += len(keyword)
        node = self._compounds[keyword](self, start)
        self.depth -= 1
        return node

    def _simple(self) -> Simple:
        start = self.position
        assignments: list[Assignment] = []
        words: list[Word] = []
        redirections: list[Redirection] = []
        while (char := self.skip()) not in _COMMAND_ENDS:
            if char == "(":
                raise self.stop("a function definition" if len(words) == 1 else "a ( where it is not expected")
            if (redirection := self._redirection(char)) is not None:
                redirections.append(redirection)
            elif char == "&":
                break
            elif words:
                words += [self.word()] if words[0].constant == "export" else self.braced_words()
            else:
                self._first_word(assignments, words)
        if not (words or assignments or redirections):
            raise self.unexpected()
        text = self.text[start : self.end]
        return Simple(assignments=tuple(assignments), words=tuple(words), redirections=tuple(redirections), text=text)

    def _first_word(self, assignments: list[Assignment], words: list[Word]) -> None:
        """Read an assignment or the name of the command."""
        word = self.word()
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
            raise self.stop("an assignment that adds (+=)", word.start)
        self._no_element(word)
        if len(word.pieces) == 1 and first.text in _RESERVED:
            raise self.stop(f"the reserved word {first.text} where it is not expected", word.start)
        words.append(word)

    def _no_element(self, word: Word) -> None:
        """Stop where bash reads on from `NAME[` to the `]`, past blanks: where there could be an assignment.

        Among redirections in front of a command it does so for some targets too.
        """
        first = word.pieces[0]
        if not isinstance(first, Literal) or first.quoted:
            return
        name, bracket, _ = first.text.partition("[")
        if not bracket and len(word.pieces) > 1 and isinstance(word.pieces[1], Pattern):
            bracket = word.pieces[1].text[0]
        if bracket == "[" and _NAME.fullmatch(name):
            raise self.stop("an element of an array, or a pattern behind a name", word.start)

    # -- redirections

    def _redirection(self, char: str) -> Redirection | None:
        """Read the redirection that begins here with `char`, or return None if there is none."""
        start = self.position
        descriptor = None
        if char.isdecimal():
            match = _DESCRIPTOR.match(self.text, start)
            if match is None:
                return None
            if len(match.group()) > 2:
                raise self.stop("a redirection of a descriptor above 99")
            descriptor = int(match.group())
            self.position = match.end()
        elif char not in "<>&":
            return None
        if self.text[self.position] in "<>" and self.text[self.position + 1] == "(":
            if descriptor is not None:
                raise self.stop("a process substitution inside a word")
            return None
        match = _REDIRECTION.match(self.text, self.position)
        if match is None:
            return None
        operator = match.group()
        self.position = match.end()
        if operator in ("<<", "<<-"):
            target = self.here_document(strip=operator == "<<-")
            operator = "<<"
        else:
            self.skip()
            target = self.word()
            self._no_element(target)
            # bash 5.2 expands this target twice (`>&'$(id)'` runs id), and takes the dash of `>&-x` for a word of its own.
            if operator in (">&", "<&") and not (target.plain and _DUPLICATED.fullmatch(target.constant or "")):
                raise self.stop(f"a target of {operator} that is more than a plain word", target.start)
        return Redirection(operator=operator, descriptor=descriptor, target=target, start=start, end=self.end)

    def _rest(self, start: int) -> tuple[tuple[Redirection, ...], str]:
        """Read the redirections behind a compound command; return them, and its whole text."""
        self.end = self.position
        redirections = []
        while (redirection := self._redirection(self.skip())) is not None:
            redirections.append(redirection)
        return tuple(redirections), self.text[start : self.end]

    # -- compound commands; each begins behind its first keyword

    def _body(self, stops: frozenset[str]) -> tuple[Script, str]:
        """Read lists and the keyword of `stops` behind them."""
        script = self._script(stops)
        keyword = self._keyword()
        if keyword not in stops:
            expected = " or ".join(sorted(stops))
            raise self.stop(f"a compound command without {expected}")
        if not script.items:
            raise self.stop(f"nothing before {keyword}")
        self.position += len(keyword)
        return script, keyword

    def _subshell(self, start: int) -> Group:
        if self.text[self.position] == "(":
            raise self.stop("arithmetic, or a subshell that looks like it (())", start)
        body = self.enclosed()
        redirections, text = self._rest(start)
        return Group(body=body, subshell=True, redirections=redirections, text=text)

    def _braces(self, start: int) -> Group:
        body, _ = self._body(_BRACE)
        redirections, text = self._rest(start)
        return Group(body=body, subshell=False, redirections=redirections, text=text)

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
        self.skip()
        match = _NAME.match(self.text, self.position)
        if match is None or self.text[match.end()] not in " \t\n;":
            raise self.stop("a loop that is not over words")
        self.position = match.end()
        words = self._for_words()
        self.gap()
        if self._keyword() != "do":
            raise self.stop("a for without do")
        self.position += len("do")
        body, _ = self._body(_DONE)
        redirections, text = self._rest(start)
        return For(name=match.group(), words=words, body=body, redirections=redirections, text=text)

    def _for_words(self) -> tuple[Word, ...] | None:
        if self.skip() == ";":
            self.position += 1
            return None
        self.gap()
        if _IN.match(self.text, self.position) is None:
            return None
        self.position += len("in")
        words = []
        while (char := self.skip()) not in ";\n":
            words += self.braced_words()
        if char == ";":
            self.position += 1
        return tuple(words)

    def _case(self, start: int) -> Case:
        self.skip()
        subject = self.word()
        self.gap()
        if _IN.match(self.text, self.position) is None:
            raise self.stop("a case without in")
        self.position += len("in")
        patterns: list[Word] = []
        bodies: list[Script] = []
        self.gap()
        while self._keyword() != "esac":
            patterns += self._case_patterns()
            bodies.append(self._script(_ESAC))
            if self.text.startswith(";;", self.position) and self.text[self.position + 2] != "&":
                self.position += 2
                self.gap()
            elif self._keyword() != "esac":
                raise self.stop("a case without esac, or a clause that goes on into the next")
        self.position += len("esac")
        redirections, text = self._rest(start)
        return Case(
            subject=subject, patterns=tuple(patterns), bodies=tuple(bodies), redirections=redirections, text=text
        )

    def _case_patterns(self) -> list[Word]:
        if self.text[self.position] == "(":
            self.position += 1
            self.skip()
        patterns = []
        while True:
            word = self.word()
            if word.plain and word.constant in _RESERVED:
                raise self.stop("a reserved word as a pattern", word.start)
            patterns.append(word)
            char = self.skip()
            if char not in "|)":
                raise self.unexpected()
            self.position += 1
            if char == ")":
                return patterns
            self.skip()

    def _test(self, start: int) -> Test:
        words = self.condition()
        redirections, text = self._rest(start)
        return Test(words=words, redirections=redirections, text=text)

    _compounds: ClassVar[dict[str, Callable[[Parser, int], Node]]] = {
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
    """Take the name and the `=` off a word of which `text` is the first piece."""
    rest = text[len(name) + 1 :]
    pieces = word.pieces[1:]
    if rest:
        pieces = (Literal(text=rest, quoted=False), *pieces)
    # A line continued inside the name makes this start too small; it is then still inside the word.
    value = Word(pieces=pieces, start=word.start + len(name) + 1, end=word.end)
    return Assignment(name=name, value=value, start=word.start)
