"""The model of find. It reads the expression word by word, and collects the files that it writes and commands it runs.

Sources: find(1) of GNU findutils 4.9, POSIX.1-2024, and find(1) of FreeBSD where it reads a word differently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from harness.actions import Access, Act
from harness.programs.catalog import names_for
from harness.programs.losses import removes_each
from harness.programs.options import stricter
from harness.programs.program import FileNames, Found, Inner, LooseWords, PathUse, Program, Unknown, Use, handed_over
from harness.programs.runners import FIND_RUNS
from harness.regex import regex

_ALONE = frozenset(
    """
    ( ) ! , -a -and -o -or -not -true -false
    -depth -mount -xdev -daystart -noleaf -warn -nowarn -ignore_readdir_race -noignore_readdir_race
    -empty -readable -writable -executable -nouser -nogroup
    -print -print0 -ls -prune -quit
    """.split()
)
"""Parts of an expression without a value. `-d` is left out: GNU find reads it as -depth, others as an option."""

_TEXT = frozenset(
    """
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -lname -ilname
    -type -xtype -maxdepth -mindepth -size -perm -user -group -uid -gid -links -inum -fstype -used -context
    -mtime -atime -ctime -mmin -amin -cmin -printf
    """.split()
)
_READ = frozenset(("-newer", "-anewer", "-cnewer", "-samefile"))
_WRITE = frozenset(("-fprint", "-fprint0", "-fls", "-fprintf"))
_OR = frozenset(("-o", "-or"))
_BRANCHES = _OR | {",", "("}
_PLAIN = regex(r"[A-Za-z0-9_.+-]*\*?[A-Za-z0-9_.+-]*")
_PRUNED = regex(
    r"(?:-type\0d\0)?(?:-(?:name|path)\0[\w.+*/-]+\0|\(\0-(?:name|path)\0[\w.+*/-]+\0"
    r"(?:-o\0-(?:name|path)\0[\w.+*/-]+\0)*\)\0)(?:-type\0d\0)?-prune\0-o\0"
)
"""Pattern of the part `-name NAME -prune -o`. Each word is followed by a NUL."""
_PRUNES_NOTHING = frozenset(("-depth", "-d", "-delete", "-mindepth"))
_NEWER = regex(r"-newer[aBcm][aBcmt]")


def _read(argv: Sequence[str]) -> Use:
    if list(argv[1:]) in (["--version"], ["-version"], ["--help"], ["-help"]):
        return Use(act=Act.LOOKS)
    return _Find(argv).use()


_PRINTS_OTHERWISE = frozenset(("-printf", "-ls", "-delete", *_WRITE, *FIND_RUNS))


def names_found(argv: Sequence[str]) -> FileNames | None:
    """Return the facts about the names that a find prints. `None` if its output may contain anything else."""
    find = _Find(argv)
    is_known = not any(isinstance(word, Unknown | Found) for word in argv)
    if not is_known or find.use().gap or not _PRINTS_OTHERWISE.isdisjoint(argv) or len(find.printed) > 1:
        return None
    if find.pruned and not find.printed:
        return None  # it also prints the pruned names
    return find.printed[0] if find.printed else find.names()


class _Find:
    """A reader of the words of one find. Its methods return a description of the problem, or an empty string."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.words = argv
        self.position = 1
        self.follows = False
        self.starts: list[str] = []
        self.paths: list[PathUse] = []
        self.commands: list[Inner] = []
        self.act = Act.LOOKS
        self.only: list[str] = [""]
        """Pattern of -name in each part between `-o`, ignoring brackets. Empty for a part without -name."""
        self.skips: tuple[str, ...] = ()
        self.excluded: tuple[str, ...] = ()
        self.pruned = False
        self.first = 0
        """Position of the expression after the pruned part."""
        self.hidden = True
        self.folders = True
        self.negated = False
        self.printed: list[FileNames] = []

    def use(self) -> Use:
        problem = self._options() or self._starting_points() or self._expression()
        if not problem and self.follows:
            problem = "links are followed out of the starting points"
        if problem:
            # Keep the commands, so that rules can forbid them.
            return Use(act=Act.UNKNOWN, commands=tuple(self.commands), gap=problem)
        starts = tuple(PathUse(word=start, access=Access.READ) for start in self.starts)
        return Use(act=self.act, paths=(*starts, *self.paths), commands=tuple(self.commands))

    def _options(self) -> str:
        """Read -H, -L, -P, -O and -D, which precede all other words."""
        while self.position < len(self.words):
            word = self.words[self.position]
            if isinstance(word, Unknown | Found) or not re.fullmatch(r"-[HLPD]|-O[0-3]", word):
                return ""
            self.position += 1
            self.follows = word == "-L" or (self.follows and word not in ("-P", "-H"))
            if word == "-D" and (problem := self._text(word)):
                return problem
        return ""

    def _starting_points(self) -> str:
        while self.position < len(self.words):
            word = self.words[self.position]
            if isinstance(word, Unknown):
                return f"{word} may be a starting point or a part of the expression"
            if isinstance(word, Found):
                self.starts += word.starts
            elif (word[:1] == "-" and len(word) > 1) or word in ("(", "!"):
                break
            elif word[:1] in ("(", ")", "!", ",", ""):
                return f"{word}: a file or a part of the expression"
            else:
                self.starts.append(word)
            self.position += 1
        self.starts = self.starts or ["."]
        return ""

    def _expression(self) -> str:
        while not _PRUNES_NOTHING.intersection(self.words) and self._prunes():
            pass
        self.first = self.position
        while self.position < len(self.words):
            word = self.words[self.position]
            self.position += 1
            if word in _OR:
                self.only.append("")
            problem = self._part(word)
            if problem:
                return problem
            self.negated = word in ("!", "-not") and not self.negated
        return ""

    def _prunes(self) -> bool:
        """Step over `-name NAME -prune -o` (also with `-path`, `-type d`, or several names in brackets).

        Return whether these words were next. find does not enter folders of such a name, nor find files of that name.
        """
        words = [word if not isinstance(word, Unknown | Found) else "" for word in self.words[self.position :]]
        match = _PRUNED.match("\0".join((*words, "")))
        if match is None:
            return False
        self.position += match[0].count("\0")
        for test, value in re.findall(r"-(name|path)\0([^\0]*)\0", match[0]):
            name = value if test == "name" else self._name_of_path(value)
            self.skips += (name,) if name else ()
            self.excluded += (name,) if name and "-type" not in match[0] else ()
        self.pruned = True
        return True

    def _name_of_path(self, pattern: str) -> str:
        """Return the name that a pattern of -path matches at any depth. Empty for other patterns.

        A name that it matches only directly in the starting point gets the prefix `./`.
        """
        match = re.fullmatch(r"(\*|\.)/([A-Za-z0-9_.-]+)", pattern)
        if match is None:
            return ""
        return match[2] if match[1] == "*" else f"./{match[2]}" if self.starts == ["."] else ""

    def _part(self, word: str) -> str:
        if isinstance(word, Unknown | Found):
            return f"{word} may be a part of the expression"
        if word in _ALONE:
            self.printed += (
                [self.names(nul=word == "-print0", for_action=True)] if word in ("-print", "-print0") else []
            )
            return ""
        if word == "-name":
            return self._name()
        if word in _TEXT or (_NEWER.fullmatch(word) and word.endswith("t")):
            return self._text(word)
        if word in _READ or _NEWER.fullmatch(word):
            return self._path(word, Access.READ)
        if word in _WRITE:
            return self._path(word, Access.WRITE) or (self._text(word) if word == "-fprintf" else "")
        if word in FIND_RUNS:
            return self._run(word)
        if word == "-follow":
            self.follows = True
            return ""
        if word == "-delete":
            self.act = stricter(self.act, Act.WRITES)
            only = self.names().only if _BRANCHES.isdisjoint(self.words) else ()
            self.paths += [PathUse(word=start, access=Access.WRITE, tree=True, only=only) for start in self.starts]
            return ""
        return f"{word} is not in the model of find"

    def _value(self) -> str | None:
        """Return the next word, of any form. `None` if there is none, or if it may not be exactly one word."""
        if self.position >= len(self.words):
            return None
        word = self.words[self.position]
        self.position += 1
        return None if isinstance(word, Unknown) and not word.single else word

    def _name(self) -> str:
        """Read the pattern of -name. Files found match it or the pattern of another part, unless it is negated."""
        before = self.words[self.position - 2]
        pattern = self._value()
        if pattern is None or isinstance(pattern, Unknown | Found):
            return "" if pattern is not None else "-name has no value that is one word for sure"
        if before not in ("!", "-not"):
            self.only[-1] = pattern
        elif self.negated and _PLAIN.fullmatch(pattern) and _BRANCHES.isdisjoint(self.words[self.first :]):
            self.excluded += (pattern,)
        return ""

    def _narrow(self, test: str, value: str) -> None:
        """Narrow the names by a test, unless the expression contains an `or`.

        After `-not`, `-path '*/NAME/*'` excludes all files in a folder of that name, and `*/.*` all hidden files.
        """
        if isinstance(value, Unknown | Found) or not _BRANCHES.isdisjoint(self.words[self.first :]):
            return
        if test == "-type" and value == "f" and not self.negated:
            self.folders = False
        if test not in ("-path", "-wholename") or not self.negated:
            return
        if value in ("*/.*", "*/\\.*"):
            self.hidden = False
        elif name := self._name_of_path(value):
            self.excluded += (name,)
        elif match := re.fullmatch(r"(\*|\.)/([A-Za-z0-9_.-]+)/\*", value):
            anywhere = match[1] == "*"
            self.skips += (match[2],) if anywhere else (f"./{match[2]}",) if self.starts == ["."] else ()

    def names(self, *, nul: bool = False, for_action: bool = False) -> FileNames:
        """Return the facts about the names found, from the expression up to the current word.

        With `for_action`, only about the names that the action at the current word gets. INVARIANT: without `!` and
        `,`, each file found satisfies all of one part between `-o`, however brackets group the parts. Without
        brackets, a file that an action gets satisfies the current part.
        """
        words = self.words[self.first :]
        plain = _BRANCHES.isdisjoint(words) or {"!", "-not", ","}.isdisjoint(words)
        parts = self.only[-1:] if for_action and "(" not in words else self.only
        is_known = plain and (all(parts) or _OR.isdisjoint(words))
        return FileNames(
            starts=tuple(self.starts),
            only=tuple(filter(None, parts)) if is_known else (),
            skips=self.skips,
            excluded=self.excluded,
            hidden=self.hidden,
            folders=self.folders,
            nul=nul,
        )

    def _text(self, name: str) -> str:
        value = self._value()
        if value is None:
            return f"{name} has no value that is one word for sure"
        self._narrow(name, value)
        return ""

    def _path(self, name: str, access: Access) -> str:
        word = self._value()
        if word is None or isinstance(word, Unknown):
            return f"the value of {name} is not known"
        if access is Access.WRITE:
            self.act = stricter(self.act, Act.WRITES)
        if isinstance(word, Found):
            self.paths += handed_over(word, access)
        else:
            self.paths.append(PathUse(word=word, access=access))
        return ""

    def _run(self, name: str) -> str:
        """Read a command up to its `;`, or to the `+` after a `{}`."""
        words: list[str] = []
        many = False
        while True:
            word = self._value()
            if word is None:
                return f"{name} has no end that is sure"
            if isinstance(word, Unknown) and word.prefix[:1] in ("", ";", "+"):
                return f"{word} may be the end of {name}"
            if word == ";" or (word == ";;" and self.position == len(self.words)):
                break  # a find that does not end the command at `;;` fails, and runs nothing
            if word[:1] == ";":
                return f"{word}: not every find takes it for the same"
            if word[:1] == "+" and words and words[-1] == "{}":
                if word != "+" or name in ("-ok", "-okdir"):
                    return f"{word} behind {{}}: not every find takes it for the same"
                many = True
                break
            words.append(word)
        return self._command(name, words, many=many)

    def _command(self, name: str, words: Sequence[str], *, many: bool) -> str:
        if not words or isinstance(words[0], Unknown | Found) or "{}" in words[0]:
            return f"the command of {name} is not known"
        braces = sum("{}" in word for word in words)
        if many and braces != 1:
            return f"{name} with + and more than one {{}}"
        elsewhere = name.endswith("dir")
        if elsewhere and not any(word == "{}" for word in words):
            return f"{name} without {{}} works on folders that are not named"
        argv = [words[0], *(self._word(word, words[0], elsewhere=elsewhere) for word in words[1:])]
        if many:
            # INVARIANT: `+` inserts any number of files. Add a second one, for models that treat further operands
            # differently (uniq writes its second operand).
            argv.append(argv[-1])
        self.act = stricter(self.act, Act.WRAPS)
        self.commands.append(Inner(argv=tuple(argv), elsewhere=elsewhere))
        return ""

    def _word(self, word: str, program: str, *, elsewhere: bool) -> str:
        """Return an operand of the program that find runs. `elsewhere` means in the folder of each file found."""
        if isinstance(word, Unknown | Found):
            return Unknown(word, prefix="", single=True) if elsewhere else word
        if word == "{}":
            return Found(word, names=names_for(program, self.names(for_action=True)))
        if "{}" in word:
            return Unknown(word, prefix=word.partition("{}")[0], single=True)
        if not elsewhere or word.startswith("/") or re.fullmatch(r"-.?|--[a-z-]*", word):
            return word
        if word.startswith("-") or ".." in word.split("/"):
            return Unknown(word, prefix="", single=True)
        # If the word names a file, it is in the folder of a file found: below a starting point or beside one.
        return Found(word, starts=(*self.starts, *map(_parent, self.starts)))


def _parent(path: str) -> str:
    """Return the folder in which -execdir runs for a starting point: the text before its last slash."""
    before, slash, _ = path.rstrip("/").rpartition("/")
    return before or ("/" if slash or path.startswith("/") else ".")


def _loses(words: LooseWords) -> Iterator[str]:
    if "-delete" in words.words:
        yield "find -delete deletes all that it finds"
    yield from removes_each(FIND_RUNS, words.words, "find")


PROGRAMS: Mapping[str, Program] = {"find": Program(read=_read, facts="few-variables", loses=_loses)}
