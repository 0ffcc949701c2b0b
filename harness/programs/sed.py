"""GNU sed: its options, and a check that its scripts only edit the output.

Nothing here runs or rewrites a script. A command is not covered if its script contains more than the commands listed
below. Not listed are `w`, `r`, `e`, flags of `s` that write or run, and forms that versions of sed read differently.
"""

from __future__ import annotations

import re

from harness.actions import Access
from harness.programs.program import Found, Parsed, Program, Unknown, Use, gap
from harness.record import replace


def script_problem(script: str) -> str:
    """Return the reason why a sed script is not covered, in a few words. Empty if it only edits the output.

    Follows `compile_program` of GNU sed 4.9, and POSIX.1-2024, sed, "EXTENDED DESCRIPTION".
    """
    # In some character sets, the second byte of a character may be one of these ASCII characters.
    if re.search(r"[^\x00-\x7f][@\[\\\]^_`{|}~]", script):
        return "its script mixes characters in a way that depends on the character set"
    try:
        _Reader(script).commands()
    except _NotVouchedFor as problem:
        return str(problem)
    return ""


class _NotVouchedFor(Exception):
    """Raised with the reason why a script is not covered."""


_ALONE = frozenset("=dDFgGhHnNpPxz")
_WITH_A_NUMBER = frozenset("lqQ")
_JUMPS = frozenset("btT")
_ADDS_TEXT = frozenset("aic")
_FLAGS_OF_S = "gpiImM0123456789"
_DELIMITERS = frozenset("!\"#$%&'()*+,-./:;<=>?@^_`|~")


class _Reader:
    """A reader of a script.

    Each method moves the position `at` past the text that it read, or raises _NotVouchedFor.
    """

    def __init__(self, script: str) -> None:
        self.script = script
        self.at = 0
        self.depth = 0

    def commands(self) -> None:
        while True:
            self.skip(" \t\n;")
            if self.at == len(self.script):
                break
            addressed = self.addresses()
            self.command(self.take(), addressed=addressed)
        if self.depth:
            raise _NotVouchedFor("a block of its script has no end")

    def peek(self) -> str:
        return self.script[self.at : self.at + 1]

    def take(self) -> str:
        char = self.peek()
        self.at += 1
        return char

    def skip(self, chars: str) -> None:
        script, at = self.script, self.at
        while at < len(script) and script[at] in chars:
            at += 1
        self.at = at

    def match(self, pattern: str) -> str:
        """Step over the text that the pattern matches here, and return it. Empty without a match."""
        match = re.compile(pattern).match(self.script, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match[0]

    def addresses(self) -> bool:
        """Read `ADDR`, `ADDR,ADDR` and `!` before a command. Return whether there was an address."""
        addressed = self.address()
        self.skip(" \t")
        if addressed and self.peek() == ",":
            self.at += 1
            self.skip(" \t")
            if not self.match(r"[+~][0-9]+") and not self.address():
                raise _NotVouchedFor("an address of its script is not in the model")
            self.skip(" \t")
        if self.peek() == "!":
            self.at += 1
            self.skip(" \t")
        return addressed

    def address(self) -> bool:
        char = self.peek()
        if char == "$" or char.isdigit():
            return self.match(r"[0-9]+(?:~[0-9]+)?|\$") != ""
        if char == "\\":
            self.at += 1
        elif char != "/":
            return False
        self.delimited(self.delimiter(), regex=True)
        self.skip("IM \t")
        return True

    def command(self, name: str, *, addressed: bool) -> None:
        if name in _ALONE:
            self.end()
        elif name in _WITH_A_NUMBER:
            self.match(r"[ \t]*[0-9]*")
            self.end()
        elif name == "s":
            self.substitution()
        elif name == "y":
            delimiter = self.delimiter()
            self.delimited(delimiter, regex=False)
            self.delimited(delimiter, regex=False)
            self.end()
        elif name in _ADDS_TEXT:
            self.text()
        elif name in _JUMPS:
            self.match(r"[ \t]*[A-Za-z0-9_]*")
            self.end()
        else:
            self.structure(name, addressed=addressed)

    def structure(self, name: str, *, addressed: bool) -> None:
        """Read the start or end of a block, a label or a comment."""
        if name == "{":
            self.depth += 1
        elif name == "}" and self.depth and not addressed:
            self.depth -= 1
            self.end()
        elif name == "#" and not addressed:
            self.match(r"[^\n]*")
        elif name == ":" and not addressed and self.match(r"[ \t]*[A-Za-z0-9_]+[ \t]*(?=[;\n]|\Z)"):
            pass  # a label that ends at a newline or a semicolon; versions differ on other ends
        elif name in ("w", "W", "r", "R", "e"):
            raise _NotVouchedFor(f"the command {name} of its script names a file or a program")
        else:
            raise _NotVouchedFor(f"the command {name or 'at the end'} of its script is not in the model")

    def end(self) -> None:
        """Read the end of a command. A closing brace or a comment starts the next command, and is not read."""
        self.skip(" \t")
        char = self.peek()
        if char and char in "\n;":
            self.at += 1
        elif char and char not in "}#":
            raise _NotVouchedFor(f"{char} behind a command of its script is not in the model")

    def delimiter(self) -> str:
        char = self.take()
        if not char or char not in _DELIMITERS:
            raise _NotVouchedFor("a delimiter in its script is not in the model")
        return char

    def delimited(self, delimiter: str, *, regex: bool) -> None:
        """Read up to the next delimiter without a backslash before it.

        GNU sed ends the part there, even inside brackets; other seds do not. So brackets that are open there are not
        covered.
        """
        begin = self.at
        while True:
            char = self.take()
            if char == delimiter:
                break
            if char == "\\":
                char = self.take()
            elif char == "\n":
                char = ""
            if not char:
                raise _NotVouchedFor("a part of its script has no end")
        if regex and _open_bracket(self.script[begin : self.at - 1]):
            raise _NotVouchedFor("brackets in its script that hold a delimiter, or have no end")

    def substitution(self) -> None:
        delimiter = self.delimiter()
        self.delimited(delimiter, regex=True)
        self.delimited(delimiter, regex=False)
        self.skip(_FLAGS_OF_S)
        self.skip(" \t")
        if self.peek() in ("w", "e"):
            raise _NotVouchedFor(f"the flag {self.peek()} of s in its script writes a file or runs a program")
        self.end()

    def text(self) -> None:
        r"""Read the text of a, i or c: `a TEXT`, `a\TEXT`, or `a\` and TEXT from the next line on.

        The text continues while lines end in a backslash.
        """
        self.skip(" \t")
        if self.match(r"\\\n"):
            self.match(r"(?:[^\\\n]|\\.|\\\n)*")
        elif not self.match(r"\\(?=[^\\\s])(?:[^\\\n]|\\.|\\\n)*|\\[ \t]+[^\\\s][^\\\n]*|[^\\\n](?:[^\\\n]|\\.|\\\n)*"):
            raise _NotVouchedFor("a text in its script is not in the model")
        if self.peek() not in ("", "\n"):
            raise _NotVouchedFor("a text in its script has no end")


_BRACKETS = r"\[\^?\]?(?:\[:[^\]]*:\]|\[\.[^\]]*\.\]|\[=[^\]]*=\]|\[(?![:.=])|[^\]\[])*\]"


def _open_bracket(regex: str) -> bool:
    """Return whether a regular expression has an unclosed bracket expression (POSIX.1-2024, XBD 9.3.5)."""
    at = 0
    while at < len(regex):
        if regex[at] == "\\":
            at += 2
        elif regex[at] == "[":
            match = re.compile(_BRACKETS).match(regex, at)
            if match is None:
                return True
            at = match.end()
        else:
            at += 1
    return False


def _read(parsed: Parsed, use: Use) -> Use:
    scripts = parsed.values("-e") or parsed.operands[:1]
    if not scripts:
        return gap("sed without a script")
    if any(isinstance(script, Unknown | Found) for script in scripts):
        return gap("the script of sed is not known")
    problem = script_problem("\n".join(scripts))
    if problem:
        return gap(problem)
    suffixes = [suffix for suffix in parsed.values("-i") if suffix]
    files = [path for path in use.paths if path.access is Access.EITHER]
    if any(isinstance(suffix, Unknown) for suffix in suffixes):
        return gap("the suffix of -i is not known")
    copies = [
        replace(file, word=_copy(file.word, suffix), access=Access.WRITE) for file in files for suffix in suffixes
    ]
    return replace(use, paths=(*use.paths, *copies))


def _copy(file: str, suffix: str) -> str:
    """Return the name of the backup that `-iSUFFIX` writes.

    The suffix is appended to the name. If it contains stars, the name replaces each star instead.
    """
    folder, slash, name = file.rpartition("/")
    copy = suffix.replace("*", name) if "*" in suffix else name + suffix
    return copy if "/" in copy else f"{folder}{slash}{copy}"


PROGRAMS = {
    "sed": Program(
        facts="files few-variables input-without-files",
        options="--help:info --version:info -n|--quiet|--silent -e|--expression=TEXT:instead -E|-r|--regexp-extended "
        "-s|--separate -u|--unbuffered -z|--null-data -l|--line-length=TEXT --debug --sandbox -i|--in-place[=TEXT]:inplace "
        "-f|--file=CODE",
        operands="(TEXT) READ...",
        refine=_read,
    )
}
