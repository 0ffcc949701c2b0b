"""awk: its options, and a check that awk programs only print.

Nothing here runs or rewrites a program. A command is not covered if its program may write a file, run a program, or
read a file that no operand names. The same holds if a slash may be either a division or the start of a regular
expression.
"""

from __future__ import annotations

import re

from harness.programs.program import Found, Parsed, Program, Style, Unknown, Use, gap
from harness.record import replace

# Names that may precede a parenthesis: functions of POSIX.1-2024 and gawk(1) that neither write nor run, and keywords.
_CALLS = frozenset(
    "length substr index split sub gsub gensub match sprintf sin cos atan2 exp log sqrt int rand srand tolower toupper asort "
    "asorti and or xor compl lshift rshift strtonum systime strftime mktime typeof isarray patsplit fflush if while for switch "
    "return print printf exit in do else case delete".split()
)
# `system` runs and `extension` loads a program; `getline` reads files that the program names, ARGV adds operands;
# the tables of gawk reach all of these under other names.
_NEVER = frozenset("system getline close extension ARGV ARGC SYMTAB FUNCTAB".split())
_BEFORE_A_REGEX = frozenset("print printf return in else do case".split())
_STANDARD = frozenset(('"/dev/stderr"', '"/dev/stdout"'))

_LEXICON = (
    r'(?P<string>"(?:[^"\\\n]|\\[^\n])*")|(?P<comment>#[^\n]*)|(?P<blank>[ \t]+|\\\n)|(?P<newline>\n)'
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<slash>/)"
    r"|(?P<operator>\+\+|--|&&|\|\||==|<=|>=|!=|!~|\*\*=?|[-+*%^]=|[-+*%^!<>=~?:,;(){}\[\]$])"
)
# Some awks end a regular expression at a slash in brackets, others do not. This pattern matches neither case.
_REGEX = r"/(?:[^/\\\[\n]|\\[^\n]|\[\^?(?:[^\]\[/\\\n]|\\[^\n\]\[]|\[:[a-z]+:\])+\])*/"
_PLAIN = r"[A-Za-z0-9_ \t.$()+*%,-]*"


def program_problem(text: str) -> str:
    """Return the reason why an awk program is not covered, in a few words. Empty if it only prints."""
    # In some character sets, the second byte of a character may be one of these ASCII characters.
    if re.search(r"[^\x00-\x7f][@\[\\\]^_`{|}~]", text):
        return "its program mixes characters in a way that depends on the character set"
    return _Reader(text).problem()


class _Reader:
    """A reader of the tokens of a program."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.before = ""
        """The previous token. Newlines count as tokens; blanks and comments do not."""
        self.ends_operand = False
        """Whether the previous token may end an operand. A slash after it is then a division."""
        self.depth = 0
        self.prints = False
        """Whether the current statement has a print. In it, `>` writes a file."""

    def problem(self) -> str:
        functions = frozenset(re.findall(r"\b(?:function|func)[ \t]+([A-Za-z_][A-Za-z0-9_]*)", self.text))
        lexicon = re.compile(_LEXICON)
        while self.at < len(self.text):
            match = lexicon.match(self.text, self.at)
            if match is None:
                return f"{self.text[self.at]} in its program is not in the model"
            problem = self.step(str(match.lastgroup), match[0], functions)
            if problem:
                return problem
        return "a parenthesis of its program has no end" if self.depth else ""

    def step(self, kind: str, piece: str, functions: frozenset[str]) -> str:
        """Step over one token. Return the reason why it is not covered, or an empty string."""
        begin = self.at
        self.at += len(piece)
        problem = ""
        match kind:
            case "blank":
                return ""
            case "comment":
                return "a comment of its program ends in a backslash" if piece.endswith("\\") else ""
            case "newline":
                problem = self.newline()
            case "slash":
                return self.slash(begin)
            case "name":
                problem = self.name(piece, functions)
            case "operator":
                problem = self.operator(piece)
            case _:
                pass
        self.before = piece
        self.ends_operand = (
            kind in ("string", "number")
            or piece in (")", "]", "++", "--")
            or (kind == "name" and piece not in _BEFORE_A_REGEX)
        )
        return problem

    def newline(self) -> str:
        if self.depth and self.ends_operand:
            return "a line of its program ends inside of parentheses"
        if self.ends_operand or self.before in (";", "{", "}", "print"):
            self.prints = False
        return ""

    def name(self, piece: str, functions: frozenset[str]) -> str:
        if piece in _NEVER:
            return f"{piece} in its program may read, write or run something else"
        if self.text[self.at : self.at + 1] == "(" and piece not in _CALLS and piece not in functions:
            return f"the function {piece} of its program is not in the model"
        self.prints = self.prints or piece in ("print", "printf")
        return ""

    def operator(self, piece: str) -> str:
        if piece == "(":
            self.depth += 1
        elif piece == ")":
            self.depth -= 1
            if self.depth < 0:
                return "a parenthesis of its program has no beginning"
        elif piece in (";", "{", "}"):
            self.prints = False
        elif piece == ":" and self.before == ":":
            return ":: in its program is not in the model"
        elif piece == ">" and self.before == ">":
            return ">> in its program writes a file"
        elif piece in (">", ">=") and self.prints and not self.depth:
            match = re.compile(r'[ \t]*("[^"]*")[ \t]*(?=[;}\n]|\Z)').match(self.text, self.at)
            if match is None or match[1] not in _STANDARD or piece == ">=":
                return "> in its program may write a file"
        return ""

    def slash(self, begin: int) -> str:
        """Step over a regular expression or a division. Return the problem, or an empty string."""
        if self.ends_operand:
            return self.division(begin)
        match = re.compile(_REGEX).match(self.text, begin)
        if match is None or self.before == "$":
            return "a regular expression of its program is not in the model"
        self.at = match.end()
        self.before = "/"
        self.ends_operand = True
        return ""

    def division(self, begin: int) -> str:
        """Step over a slash after a possible operand: a division, or in some awks the start of a regular expression.

        Return the problem, or an empty string. INVARIANT: the text up to the next slash of the line is harmless in both
        readings, and changes neither the open parentheses nor the statement. The rest then reads the same in both.
        """
        line_end = self.text.find("\n", begin)
        slash = self.text.find("/", begin + 1, line_end if line_end >= 0 else len(self.text))
        if slash >= 0:
            between = self.text[begin + 1 : slash]
            last = between.rstrip(" \t")[-1:]
            if not (last.isalnum() or last == ")") or re.fullmatch(_PLAIN, between) is None or not _balanced(between):
                return "a slash of its program may divide, or begin a regular expression"
        self.before = "/"
        self.ends_operand = False
        return ""


def _balanced(text: str) -> bool:
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return False
    return depth == 0


def _assigns(word: str) -> bool:
    """Return whether an operand, or the value of -v, sets a variable. False for the names in `_NEVER`."""
    text = word.prefix if isinstance(word, Unknown) else word
    match = re.match(r"([A-Za-z_][A-Za-z0-9_]*)=", text)
    return match is not None and match[1] not in _NEVER


def _read(parsed: Parsed, use: Use) -> Use:
    if not parsed.operands:
        return gap("awk without a program")
    program, *operands = parsed.operands
    if isinstance(program, Unknown | Found):
        return gap("the program of awk is not known")
    odd = next((value for value in parsed.values("-v") if not _assigns(value)), None)
    problem = f"-v {odd} is not in its model" if odd is not None else program_problem(program)
    if problem:
        return gap(problem)
    assigned = {word for word in operands if _assigns(word) and not isinstance(word, Found)}
    return replace(use, paths=tuple(path for path in use.paths if path.tree or path.word not in assigned))


_OTHER_AWK = Program(style=Style.POSIX, options="--version:info -F=TEXT -v=TEXT", operands="TEXT READ...", refine=_read)
_AWK = replace(_OTHER_AWK, facts="few-variables")

PROGRAMS = {"awk": _AWK, "gawk": _AWK, "mawk": _AWK, "original-awk": _OTHER_AWK, "nawk": _OTHER_AWK}
