"""Names of files that one command prints and another reads: `git ls-files | head | xargs grep x`.

`names_printed` says what is known of the names that a command prints, one after the other and nothing else. Its tables name the
options with which that holds; with any other option nothing is known. `HandedNames` puts the names into the next command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from harness.actions import Access, Act, Place
from harness.paths import SHELL_SPLITS, XARGS_SPLITS, is_plain_name
from harness.programs.catalog import is_known, model_of, names_for
from harness.programs.find import names_found
from harness.programs.git_pathspecs import ShownFiles
from harness.programs.options import parse_words, read_command
from harness.programs.program import FileNames, Found, Incoming, Inner, Listed, Parsed, Program, Unknown, Use
from harness.programs.runners import name_of
from harness.programs.variables import steers
from harness.record import replace
from harness.regex import regex
from harness.shell.builtins import BUILTINS_WITHOUT_PROGRAM
from harness.shell.command_line import CommandLine
from harness.shell.loops import Lines
from harness.shell.program_use import program_of, use_of
from harness.shell.redirections import NO_STDIN
from harness.shell.shell_state import ShellState
from harness.shell.syntax import Simple

_FILTERS = {
    "cat": "-u",
    "tac": "",
    "head": "-NUM -n|--lines=TEXT -q|--quiet|--silent -z|--zero-terminated",
    "tail": "-NUM -n|--lines=TEXT -q|--quiet|--silent -z|--zero-terminated",
    "sort": "-b -d -f -g -h -i -k|--key=TEXT -M -n -r|--reverse -R -s|--stable -t|--field-separator=TEXT -u|--unique -V "
    "--version-sort --numeric-sort --ignore-case -z|--zero-terminated",
    "uniq": "-d|--repeated -i|--ignore-case -u|--unique -z|--zero-terminated",
    "shuf": "-n|--head-count=TEXT -z|--zero-terminated",
    "grep": "-E|--extended-regexp -F|--fixed-strings -G -P|--perl-regexp -e|--regexp=TEXT:instead -i|-y|--ignore-case "
    "-v|--invert-match -w|--word-regexp -x|--line-regexp -a|--text -s -m|--max-count=TEXT --line-buffered "
    "--color|--colour[=TEXT] -z|--null-data",
    "sed": "-n|--quiet|--silent -e|--expression=TEXT:instead",
}
"""Programs that only drop lines of what they read, or put them in another order."""
_FILTERS["egrep"] = _FILTERS["fgrep"] = _FILTERS["grep"]
_PATTERN_FIRST = frozenset(("grep", "egrep", "fgrep", "sed"))
_SED_DROPS = regex(r"(?:[0-9]+|\$|/[\w.^$* -]+/)(?:,(?:[0-9]+|\$))?!?[dpq]|[0-9]+q")

_GREP = Program(
    options="-r|--recursive -R|--dereference-recursive -l|--files-with-matches -L|--files-without-match -i|-y|--ignore-case "
    "-w|--word-regexp -x|--line-regexp -E|--extended-regexp -F|--fixed-strings -G -P|--perl-regexp -v|--invert-match -s -I "
    "-a|--text -n -H -h -e|--regexp=TEXT:instead -m|--max-count=TEXT --include=TEXT --exclude=TEXT --exclude-dir=TEXT "
    "-Z|--null --color|--colour[=TEXT]",
    operands="(TEXT) READ...",
)
_RG = Program(
    options="-l|--files-with-matches --files-without-match --files:instead -e|--regexp=TEXT:instead -F|--fixed-strings "
    "-P|--pcre2 -U|--multiline -i|--ignore-case -s|--case-sensitive -S|--smart-case -w|--word-regexp -x|--line-regexp "
    "-v|--invert-match -g|--glob=TEXT -t|--type=TEXT -T|--type-not=TEXT -.|--hidden -u|--unrestricted --no-ignore "
    "--no-ignore-vcs -d|--max-depth|--maxdepth=TEXT --sort=TEXT --sortr=TEXT -j|--threads=TEXT -n -N -a|--text -0|--null "
    "--no-messages --no-config --color=TEXT",
    operands="(TEXT) READ...",
)
_FD = Program(
    options="-H|--hidden -I|--no-ignore --no-ignore-vcs -u|--unrestricted -s|--case-sensitive -i|--ignore-case -g|--glob "
    "-F|--fixed-strings -p|--full-path -0|--print0 -d|--max-depth|--maxdepth=TEXT -E|--exclude=TEXT -t|--type=TEXT "
    "-e|--extension=TEXT -S|--size=TEXT --changed-within=TEXT -c|--color=TEXT -j|--threads=TEXT --max-results=TEXT -1",
    operands="TEXT READ...",
)
_LS_FILES = Program(options="-z -c|--cached --deduplicate -m|--modified -d|--deleted", operands="TEXT...")
_LS = Program(options="-1 -A|--almost-all -r|--reverse -t -S -U -X -v --sort=TEXT -d|--directory --color[=TEXT]")
_NO_COLORS = frozenset(("never", "auto"))
_ONLY_ITS_NAMES = ("*",)
"""As `FileNames.skips`: what lies in folders is not among them."""


def names_printed(program: str, argv: Sequence[str], incoming: FileNames | None, *, fed: bool) -> FileNames | None:
    """Return what is known of the names that a command prints; `incoming` are those that it is fed with, if that is known."""
    if program in _FILTERS and incoming is not None and _only_drops(program, argv, nul=incoming.nul):
        return incoming
    source = _SOURCES.get(program)
    return source(argv) if source is not None and not fed else None  # rg searches what it is fed


def _only_drops(program: str, argv: Sequence[str], *, nul: bool) -> bool:
    parsed = _parsed(Program(options=_FILTERS[program], operands="TEXT..."), argv)
    if parsed is None or nul is not parsed.has("-z"):
        return False
    scripts = parsed.values("-e")
    if program in _PATTERN_FIRST and not scripts:
        scripts = parsed.operands
    if program == "sed":
        return len(scripts) == 1 and len(parsed.operands) < 2 and _SED_DROPS.fullmatch(scripts[0]) is not None
    return len(parsed.operands) == (1 if program in _PATTERN_FIRST and not parsed.values("-e") else 0)


def _parsed(program: Program, argv: Sequence[str]) -> Parsed | None:
    """Return the words of a command whose options are all in the table, and which colours nothing."""
    parsed = parse_words(program, argv)
    if isinstance(parsed, str) or any(isinstance(given.value, Unknown | Found) for given in parsed.options):
        return None
    return parsed if _NO_COLORS.issuperset(g.value for g in parsed.options if g.name in ("--color", "-c")) else None


def _by_grep(argv: Sequence[str]) -> FileNames | None:
    parsed = _parsed(_GREP, argv)
    if parsed is None or not parsed.has("-l", "-L"):
        return None
    files = parsed.operands[0 if parsed.has("-e") else 1 :]
    if not files and not parsed.has("-r", "-R"):
        return None
    return _below(argv, files, nul=parsed.has("-Z"), descends=parsed.has("-r", "-R"))


def _by_rg(argv: Sequence[str]) -> FileNames | None:
    parsed = _parsed(_RG, argv)
    if parsed is None or not parsed.has("-l", "--files-without-match", "--files"):
        return None
    lists = parsed.has("--files")
    files = parsed.operands[0 if lists or parsed.has("-e") else 1 :]
    # What it lists is what it would search.
    searching = [argv[0], "-e", "x", *(word for word in argv[1:] if word != "--files")] if lists else argv
    return _below(searching, files, nul=parsed.has("-0"), descends=True)


def _below(argv: Sequence[str], files: Sequence[str], *, nul: bool, descends: bool) -> FileNames | None:
    """Return what is known of the names of files that a search reads, by its model; `files` are those that it names."""
    found = [word.names for word in files if isinstance(word, Found)]
    if found:
        names = replace(found[0], nul=nul, folders=False)
        if descends and found[0].folders:
            names = replace(names, only=(), skips=(), excluded=(), hidden=True)
        return names if found == found[:1] * len(files) else None
    if "-" in files:
        return None
    model = model_of(name_of(argv[0]))
    use = read_command(model, argv) if model is not None else None
    if use is None or use.gap or not use.paths:
        return None
    one = use.paths[0]
    starts = tuple(path.word for path in use.paths)
    return FileNames(
        starts=starts,
        only=one.only,
        skips=one.skips,
        excluded=one.excluded,
        hidden=one.hidden,
        bare=not files,
        folders=False,
        nul=nul,
    )


def _by_fd(argv: Sequence[str]) -> FileNames | None:
    parsed = _parsed(_FD, argv)
    if parsed is None or any(isinstance(word, Unknown | Found) for word in parsed.operands):
        return None
    endings = parsed.values("-e")
    plain = all(re.fullmatch(r"\w+(?:\.\w+)*", ending, re.ASCII) for ending in endings)  # fd drops a dot in front
    return FileNames(
        starts=parsed.operands[1:] or (".",),
        only=tuple(f"*.{ending}" for ending in endings) if plain else (),
        hidden=parsed.has("-H", "-u"),
        bare=len(parsed.operands) < 2,
        folders=not {"f", "file"}.issuperset(parsed.values("-t")) or not parsed.has("-t"),
        nul=parsed.has("-0"),
    )


def _by_git(argv: Sequence[str]) -> FileNames | None:
    if list(argv[1:2]) != ["ls-files"]:
        return None
    parsed = _parsed(_LS_FILES, argv[1:])
    if parsed is None or any(isinstance(word, Unknown | Found) for word in parsed.operands):
        return None
    tracked = ShownFiles(words=parsed.operands, behind_dashes=True)
    return FileNames(starts=(".",), bare=True, folders=False, nul=parsed.has("-z"), tracked=tracked)


def _by_ls(argv: Sequence[str]) -> FileNames | None:
    parsed = _parsed(_LS, argv)
    if parsed is None or any(isinstance(word, Unknown | Found) for word in parsed.operands):
        return None
    return FileNames(
        starts=parsed.operands or (".",),
        skips=_ONLY_ITS_NAMES,
        hidden=parsed.has("-A"),
        bare=not parsed.operands,
        listed=bool(parsed.operands) and not parsed.has("-d"),
    )


_SOURCES: Mapping[str, Callable[[Sequence[str]], FileNames | None]] = {
    "find": names_found,
    "grep": _by_grep,
    "egrep": _by_grep,
    "fgrep": _by_grep,
    "rg": _by_rg,
    "fd": _by_fd,
    "fdfind": _by_fd,
    "git": _by_git,
    "ls": _by_ls,
}


_BEGINS_A_PATH = regex(r"[\w./]")
"""How a start begins that is not taken for an option: `-odir/f` is one."""
_SPLITS = {" ": XARGS_SPLITS, "*": SHELL_SPLITS}
_LOOKED_AT = (Place.INSIDE, Place.ROOT, Place.ADDED)


class HandedNames:
    """Puts known names of files in the place of words that only come in when the line runs: those that xargs reads, those of
    a `$(git ls-files)`, the variable of a loop over names."""

    def __init__(self, line: CommandLine) -> None:
        self._line = line
        self.pipeline_layer = 0
        """How many commands that run commands are around the pipeline at hand."""
        self.printed: FileNames | None = None
        """What is known of the names that the last command of the pipeline prints."""

    def with_names(self, program: str, argv: tuple[str, ...], use: Use, state: ShellState) -> Use:
        """Return what a command of a pipeline does, with the names that it is fed with; keep what it prints."""
        if self._line.layers != self.pipeline_layer or state.lines is not None:
            return use
        if use.commands and state.names is not None and not use.gap:  # xargs
            inner = use.commands[0]
            runs = self._runs(inner, state.names, state)
            if runs:
                use = replace(use, commands=tuple(replace(inner, argv=words) for words in runs))
        self.printed = self._names_of(program, argv, use, state)
        return use

    def with_listed(self, argv: tuple[str, ...], state: ShellState) -> tuple[tuple[str, ...], ...]:
        """Return the words with which a command is run, and with the names in the place of a `$(git ls-files)` behind them
        all, where it only reads these."""
        last = argv[-1]
        if (
            not isinstance(last, Listed)
            or argv[0] in BUILTINS_WITHOUT_PROGRAM
            or any(isinstance(w, Incoming) for w in argv[:-1])
        ):
            return (argv,)
        return self._runs(Inner(argv=argv, takes="*", empty=True), last.names, state) or (argv,)

    def _runs(self, inner: Inner, names: FileNames, state: ShellState) -> tuple[tuple[str, ...], ...]:
        """Return the words of a command with known names in the place of those that come in, and without them where it reads
        other files then; nothing where it may do more than read these."""
        if not self._can_take(inner, names, state):
            return ()
        found = Found(
            "$(...)" if inner.takes == "*" else "(words of xargs)", names=names_for(program_of(inner.argv[0]), names)
        )
        once: list[str] = []
        more: list[str] = []
        for word in inner.argv:
            once.append(found if isinstance(word, Incoming) else word)
            # A second one shows what a model does with more than one (the second of uniq is written).
            more += [found, found] if isinstance(word, Incoming) and not word.single else once[-1:]
        without = tuple(word for word in once if word is not found)
        tried = (tuple(once), tuple(more), *([without] if inner.empty else []))
        if not all(map(self._only_looks, tried)):
            return ()
        alone = inner.empty and self._use(without).paths  # then it reads other files
        return (tuple(once), without) if alone else (tuple(once),)

    def with_line(self, node: Simple, argv: tuple[str, ...], lines: Lines, state: ShellState) -> tuple[str, ...]:
        """Return the words of a command in a loop over names, the name in the place of the line, where it only reads that."""
        names = state.names
        if names is None or len(argv) != len(node.words):
            return argv
        program = program_of(argv[0])
        found = Found(f"${lines.variable}", names=names_for(program, names))
        tried = tuple(found if lines.is_line(word) else value for word, value in zip(node.words, argv, strict=True))
        inner = Inner(argv=tried, takes=lines.takes)
        if found not in tried or not self._can_take(inner, names, state) or not self._only_looks(tried):
            return argv
        return tried

    def _names_of(self, program: str, argv: tuple[str, ...], use: Use, state: ShellState) -> FileNames | None:
        """Return what is known of the names that a command prints: of xargs, those that its command prints."""
        if use.gap or any(map(steers, state.exported)):
            return None
        if program != "xargs":
            return names_printed(program, argv, state.names, fed=state.fed)
        first, *more = use.commands
        if more or first.together or not any(isinstance(word, Found) for word in first.argv):
            return None
        return names_printed(program_of(first.argv[0]), first.argv, None, fed=False)

    def _can_take(self, inner: Inner, names: FileNames, state: ShellState) -> bool:
        """Say whether the words that xargs makes of a list of names are these very names, and files to what it runs."""
        split = _SPLITS.get(inner.takes, "")
        if not inner.takes or (inner.takes == "\0") is not names.nul or self._line.disk_changed or not state.folders:
            return False
        program = program_of(inner.argv[0])
        if names.bare and not is_known(program, "files") and (names.folders or program != "rg"):
            return False
        if not all(_BEGINS_A_PATH.match(start) and is_plain_name(start, split=split) for start in names.starts):
            return False
        places = [path for start in names.starts for path in self._line.resolved(start, Access.READ, state)]
        known = all(path.place in _LOOKED_AT for path in places)
        if not known or (names.listed and any(self._line.disk.is_folder(path.real) for path in places)):
            return False
        if names.tracked is not None:
            return all(
                self._line.disk.plain_tracked(path.real, names.tracked, split=split, nul=names.nul) for path in places
            )
        return all(
            self._line.disk.plain_below(
                path.real,
                only=names.only,
                skips=names.skips,
                excluded=names.excluded,
                split=split,
                bare=names.bare,
            )
            for path in places
        )

    def _only_looks(self, argv: tuple[str, ...]) -> bool:
        """Say whether a command does nothing but read what its operands name."""
        use = self._use(argv)
        more = use.gap or use.network or use.commands or use.scripts or use.remote
        return not more and use.act is Act.LOOKS and all(path.access is Access.READ for path in use.paths)

    def _use(self, argv: tuple[str, ...]) -> Use:
        return use_of(program_of(argv[0]), argv, NO_STDIN)
