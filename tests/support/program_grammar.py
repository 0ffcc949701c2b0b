"""Made-up scripts of programs that are really run: readers, writers, and options that make the one the other."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from random import Random

from script_grammar import FILES, Grammar, Made, lines_of, mutated_once

REAL_PROGRAMS = """
cat ls grep sed sort uniq head tail wc find awk tr cut xargs env timeout nice tee cp mv rm touch ln dd split xxd tar
diff git bash comm paste nl od fold expand rev tac shuf seq basename dirname realpath readlink stat file du df cmp
join csplit mkdir mktemp sha256sum md5sum base64 gzip nohup stdbuf sh install chmod truncate fmt pr column strings
hexdump tsort numfmt date id uname which egrep fgrep zcat sleep expr
""".split()
LOOKING = lines_of("scripts_that_look.txt")
CHANGING = lines_of("scripts_that_change.txt")
GIT_COMMANDS = sorted({" ".join(shape.split()[:2]) for shape in (*LOOKING, *CHANGING) if re.match("git [a-z]", shape)})
_OPTION_POOL = (
    "-i", "-o", "-w", "-f", "-r", "-n", "-a", "-c", "-e", "-u", "-z", "-s", "-p", "-x", "-d", "-l", "-C", "-O", "-v",
    "-I", "--output=out1", "--output", "out1", "-oout1", "--in-place", "--help", "--version", "-fout1", "--outp=out1",
    "--", "-", "-ni", "--log-file=out1", "-D", "-m", "--file=out1", "--append", "-R", "-L", "-t", "-q", "--debug",
    "-T", "-P", "--target-directory=sub", "-b", "-S.bak", "--backup",
)  # fmt: skip


def options_in_help(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the options of each program, and of each subcommand of git, that its own help names."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        words = name.split()
        try:
            done = subprocess.run(
                [*words, "-h" if len(words) > 1 else "--help"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        text = (done.stdout + done.stderr).decode(errors="replace")
        options = re.findall(r"(?<![\w-])--?[A-Za-z0-9][\w-]*=?", text)
        found[name] = sorted(set(options)) or ["-h"]
    return found


_OPERANDS = ("a.txt", "sub/e.txt", "sub", "HEAD", "x", ".", "1p", "{print}", "k.pem", "deep", "way", "sub/in", "*")
_SECRET_FILES = (
    "k.pem", "deep/.env", "hidden/x", "hidden", "way", "way/secret", "sub/out", "sub/in", "../canary/secret",
    "link/out", "deep/deeper/../.env", "sublink/../.env", "link/../k.pem", "./k.pem", "hidden/.", "HIDDEN/x",
)  # fmt: skip
_SECRET_WORDS = (
    "*.pem", "k.p*", "*", "deep/.*", "deep/*", ".", "-r", "-R", "-L", "sub", "deep", "sub/*", "s*/in", "-h",
    "--dereference", "hidden/*", "way/*", "@k.pem", "--file=k.pem", "-fk.pem", "-f", "k.pem", "HEAD", ":k.pem",
    "HEAD:k.pem", "--no-index", "-C", "..", "../canary", "{}", "..",
)  # fmt: skip


class RealGrammar(Grammar):
    """The same scripts about programs that are really run: readers, writers, and options that make the one the other."""

    def __init__(self, random: Random, wild: float, options: dict[str, list[str]]) -> None:
        """Take the options of programs besides what a Grammar takes."""
        super().__init__(random, wild)
        self._options = options

    def simple(self, depth: int) -> str:
        words = self._from_help(depth) if self._options and self.chance(0.35) else self._from_shape(depth)
        if self.chance(0.06):
            words = f"{self.assignment(depth)} {words}"
        if self.chance(0.06):
            words += f" {self.redirection(depth)}"
        return words

    def _from_shape(self, depth: int) -> str:
        shape = self.pick(LOOKING if self.chance(0.7) else CHANGING)
        parts = re.split(r"(?<![\w%])([@%])(?=\s|$)", shape)
        words = "".join(self.word(depth) if part == "@" else self._file() if part == "%" else part for part in parts)
        if self.chance(0.1):
            words += f" {self.pick(_SECRET_WORDS)}"
        if self.chance(0.25):
            name, _, rest = words.partition(" ")
            option = self.pick(_OPTION_POOL)
            words = f"{name} {option} {rest}" if self.chance(0.5) else f"{words} {option}"
        return words

    def _file(self) -> str:
        return self.quoted(self.pick(_SECRET_FILES if self.chance(0.1) else FILES))

    def _from_help(self, depth: int) -> str:
        name = self.pick(tuple(self._options))
        words = [name]
        for _ in range(1 + self.random.randrange(2)):
            option = self.pick(self._options[name])
            value = self.pick(
                ("out1", "1", "a.txt", "x", "HEAD", "out1", "p", "now", ",", "/dev/null", "sub", "100", "touch out1")
            )
            match self.random.randrange(4):
                case 0 if option.startswith("--"):
                    words.append(f"{option.rstrip('=')}={self.quoted(value)}")
                case 1:
                    words += [option.rstrip("="), self.quoted(value)]
                case 2 if not option.startswith("--"):
                    words.append(option + self.quoted(value))
                case _:
                    words.append(option.rstrip("="))
        for _ in range(self.random.randrange(3)):
            words.insert(
                1 + self.random.randrange(len(words)),
                self.pick(_OPERANDS),
            )
        return " ".join(words)

    def command(self, depth: int) -> str:
        if self.chance(0.15):
            return self._handed()
        return self.simple(depth) if self.chance(0.7) else super().command(depth)

    def _handed(self) -> str:
        """Return a pipeline whose last part is handed the names of files."""
        parts = [self.pick(_FINDERS)]
        while self.chance(0.5):
            parts.append(self.pick(_DROPPERS))
        if self.chance(0.4):
            return self._substituted(" | ".join(parts))
        parts.append(f"{self.pick(_HANDERS)} {self.pick(_HANDED)}")
        text = " | ".join(parts)
        return f"cd {self.pick(('sub', 'odd', 'deep', 'odd/more'))} && {text}" if self.chance(0.3) else text

    def _substituted(self, finds: str) -> str:
        """Return a command whose last words, or a loop whose rounds, are the names that a `$( )` prints."""
        text = f"{self.pick(_HANDED)} {self.pick(_SUBSTITUTED).replace('@', finds)}"
        if self.chance(0.3):
            value = self.pick(("$A", '"$A"', "x$A"))
            loop = f"for A in $({finds}); do {self.pick(_HANDED)} {value}; done"
            text = loop if self.chance(0.7) else f"{loop}; cat $A"
        return f"cd {self.pick(('sub', 'odd', 'deep', 'odd/more'))} && {text}" if self.chance(0.3) else text


_SUBSTITUTED = (
    "$(@)", "$(@)", "$(@)", "$(@)", "a.txt $(@)", "$(@) a.txt", "$(@)x", "$(@) $(@)", '"$(@)"', "$(@; echo k.pem)", "`@`",
    "< $(@)", "$(@) < a.txt", "$(cd sub && @)", "$(@) $(echo k.pem)", "$(@ 2>&1)", "$(! @)", "$(@)''", "-- $(@)", "-f $(@)",
)  # fmt: skip
_FINDERS = (
    "find . -type f", "find sub", "find sub odd -type f", "find . -name '*.txt'", "find sub -name '*.txt' -print0",
    "find . -type f -not -path '*/deep/*' -not -path './hidden/*' -not -name '*.pem'", "find . -type f -not -path '*/.*'",
    "find odd/more -print0", "find sub deep ! -path '*/deep/*'", "find . -maxdepth 1 -name '[a-e]*'", "find odd -name '*.txt'",
    "find deep -type f -print -not -path '*/.*'", "find deep -type d -not -path '*/deeper/*'", "find sub/in sub/out",
    "grep -rl . sub", "grep -rl . sub --include='*.txt'", "grep -l . a.txt sub/e.txt", "grep -rlZ .", "grep -Rl . deep",
    "grep -rL nothing . --exclude-dir=deep --exclude-dir=hidden", "rg -l .", "rg -l . sub", "rg --files", "rg --files -uu deep",
    "rg -l0 . sub odd", "rg -l -g '*.txt' .", "ls", "ls -A", "ls sub/*.txt", "ls sub", "ls -d sub/*", "ls -1t", "ls -a",
    "git ls-files", "git ls-files sub", "git ls-files -z", "git ls-files -o", "echo sub/e.txt", "printf '%s\\n' a.txt k.pem",
)  # fmt: skip
_DROPPERS = (
    "head", "head -n 3", "head -z -n 5", "head -c 20", "tail -n +2", "sort", "sort -ru", "sort -z", "uniq", "uniq -c", "cat",
    "cat -n", "cat - a.txt", "tac", "grep -v e", "grep e", "grep -n e", "grep -o .", "grep -zv x", "sed -n 1,3p", "sed 1d",
    "sed s/e/k/", "sed '/x/d'", "tr e k", "tr '\\n' '\\0'", "cut -c 2-", "xargs ls", "xargs grep -l .", "xargs -n1 echo",
    "xargs rg -l .", "xargs dirname", "LC_ALL=C sort", "tee out1", "sort 2>&1", "awk 1",
)  # fmt: skip
_HANDERS = (
    "xargs", "xargs", "xargs", "xargs -0", "xargs -0", "xargs -n 1", "xargs -r", "xargs -P 2", "xargs -I{}", "xargs -d '\\n'",
    "xargs -L 1", "xargs -0 -n1", "xargs -t", "xargs -a a.txt", "xargs -E x", "xargs -i", "xargs -I % -0",
)  # fmt: skip
_HANDED = (
    "cat", "cat --", "head -3", "head -3 {}", "cat {}", "cat %", "cat sub/{}", "grep .", "grep -r .", "grep -l .", "rg .",
    "rg -uu .", "wc -l", "sed -n 1,9p", "sed -i s/x/y/", "awk 1", "sort", "uniq", "tac", "tail", "nl", "od -c", "xxd", "jq .",
    "git show", "git log -p", "git diff --no-index a.txt", "diff a.txt", "file", "stat", "ls", "find", "sh", "sh -c 'cat $0'",
    "rm", "touch", "grep -f", "cut -c1-99", "comm a.txt", "tee", "cp -t out1", "env cat", "timeout 1 cat", "base64", "strings",
)  # fmt: skip


def real_scripts(random: Random, count: int, options: dict[str, list[str]]) -> Iterator[Made]:
    """Yield scripts for the second property: of these programs alone, and with no path that leads far away."""
    for number in range(count):
        grammar = RealGrammar(random, (0.0, 0.0, 0.05)[random.randrange(3)], options)
        text = grammar.lists(1, 1 + random.randrange(2))
        if number % 3 == 0:
            text = mutated_once(grammar, grammar.simple(1), grammar.simple(1))
        if _stays_near(text):
            yield Made(text, "mutation" if number % 3 == 0 else "grammar")


_BETWEEN = {
    "sed": "p", "grep": "x", "awk": "1", "tr": "a b", "find": ".", "cut": "-f1", "env": "cat", "timeout": "1 cat",
    "nice": "cat", "nohup": "cat", "stdbuf": "-oL cat", "xargs": "echo",
}  # fmt: skip
_PLACES = (
    "@ # = a.txt", "@ # out1 = a.txt", "@ #out1 = a.txt", "@ = a.txt # out1", "@ # =", "@ = #", "@ # 1 = a.txt", "@ = a.txt #",
    "@ #1 = a.txt", "@ #=out1 = a.txt", "@ #=1 = a.txt", "@ #='touch out1' = a.txt",
)  # fmt: skip


def option_scripts(options: dict[str, list[str]], part: int, parts: int) -> Iterator[Made]:
    """Yield each option of each program in all ways of writing it, a `parts`-th of them."""
    number = 0
    for name, names in options.items():
        for option in names:
            for place in _PLACES:
                number += 1
                if number % parts == part:
                    text = re.sub("(?<= )=(?= |$)", _BETWEEN.get(name, ""), place)
                    yield Made(text.replace("@", name, 1).replace("#", option.rstrip("="), 1), "options")


def _stays_near(text: str) -> bool:
    """Say whether no word can lead out of the scratch folder: nothing absolute but /dev/null, and few steps up."""
    plain = re.sub(r"['\"\\\n]", "", text.replace("/dev/null", ""))
    return (
        re.search(r"(?<![\w.*?\]])/", plain) is None
        and plain.count("..") <= 3
        and "\\x2" not in text
        and "\\05" not in text
    )
