"""Listings: commands that print only names of files, such as `find`, `rg -l` and `git ls-files`.

`names_printed` returns the facts about these names. The tables list the options with which the facts are true, each
by its first spelling in the model of the program. With any other option the names are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from harness.programs.catalog import model_of
from harness.programs.git_pathspecs import ShownFiles
from harness.programs.options import NUMBER, option_table, parse_words, read_command
from harness.programs.program import FileNames, Found, Parsed, Program, Unknown
from harness.programs.runners import name_of
from harness.record import replace
from harness.regex import regex

_FILTERS = {
    "cat": "-u",
    "tac": "",
    "head": "-NUM -n -q -z",
    "tail": "-NUM -n -q -z",
    "sort": "-b -d -f -g -h -i -k -M -n -r -R -s -t -u -V -z",
    "uniq": "-d -i -u -z",
    "shuf": "-n -z",
    "grep": "-E -F -G -P -e -i -v -w -x -a -s -m --line-buffered --color -z",
    "sed": "-n -e",
}
"""Programs that only drop or reorder lines of their input, with the options for which that holds."""
_FILTERS["egrep"] = _FILTERS["fgrep"] = _FILTERS["grep"]
_PATTERN_FIRST = frozenset(("grep", "egrep", "fgrep", "sed"))
_SED_DROPS = regex(r"(?:[0-9]+|\$|/[\w.^$* -]+/)(?:,(?:[0-9]+|\$))?!?[dpq]|[0-9]+q")

_GREP = "-r -R -l -L -i -w -x -E -F -G -P -v -s -I -a -n -H -h -e -m --include --exclude --exclude-dir -Z --color"
_RG = (
    "-l --files-without-match --files -e -F -P -U -i -s -S -w -x -v -g -t -T -. -u --no-ignore --no-ignore-vcs -d --sort "
    "--sortr -j -n -N -a -0 --no-messages --no-config --color"
)
_FD = "-H -I --no-ignore-vcs -u -s -i -g -F -p -0 -d -E -t -e -S --changed-within -c -j --max-results -1"
_LS_FILES = "-z -c --deduplicate -m -d"
_LS = "-1 -A -r -t -S -U -X -v --sort -d --color"
_NUMBER = regex(r"-[0-9]+")
_NO_COLORS = frozenset(("never", "auto"))
_ONLY_ITS_NAMES = ("*",)
"""Value of `FileNames.skips` for a listing that does not enter folders."""


def names_printed(program: str, argv: Sequence[str], incoming: FileNames | None, *, fed: bool) -> FileNames | None:
    """Return the facts about the names that a command prints, `None` if unknown.

    `incoming` are the facts about the names on its input. `fed` means that its input is redirected.
    """
    if program in _FILTERS and incoming is not None and _only_drops(program, argv, nul=incoming.nul):
        return incoming
    source = _SOURCES.get(program)
    return source(argv) if source is not None and not fed else None  # rg searches redirected input


def _only_drops(program: str, argv: Sequence[str], *, nul: bool) -> bool:
    parsed = _parsed(model_of(program), _FILTERS[program], argv)
    if parsed is None or nul is not parsed.has("-z"):
        return False
    scripts = parsed.values("-e")
    if program in _PATTERN_FIRST and not scripts:
        scripts = parsed.operands
    if program == "sed":
        return len(scripts) == 1 and len(parsed.operands) < 2 and _SED_DROPS.fullmatch(scripts[0]) is not None
    return len(parsed.operands) == (1 if program in _PATTERN_FIRST and not parsed.values("-e") else 0)


def _parsed(model: Program | None, options: str, argv: Sequence[str]) -> Parsed | None:
    """Return the parsed words of a command. `None` if it has options outside of `options`, or may print colours."""
    allowed = frozenset(options.split())
    parsed = parse_words(model, argv) if model is not None else ""
    if (
        model is None
        or isinstance(parsed, str)
        or any(isinstance(option.value, Unknown | Found) for option in parsed.options)
    ):
        return None
    if not allowed.issuperset(option.name for option in parsed.options):
        return None
    if NUMBER not in allowed and NUMBER in option_table(model.options) and any(map(_NUMBER.fullmatch, argv)):
        return None
    return parsed if _NO_COLORS.issuperset(g.value for g in parsed.options if g.name in ("--color", "-c")) else None


def _by_grep(argv: Sequence[str]) -> FileNames | None:
    parsed = _parsed(model_of("grep"), _GREP, argv)
    if parsed is None or not parsed.has("-l", "-L"):
        return None
    files = parsed.operands[0 if parsed.has("-e") else 1 :]
    if not files and not parsed.has("-r", "-R"):
        return None
    return _below(argv, files, nul=parsed.has("-Z"), descends=parsed.has("-r", "-R"))


def _by_rg(argv: Sequence[str]) -> FileNames | None:
    parsed = _parsed(model_of("rg"), _RG, argv)
    if parsed is None or not parsed.has("-l", "--files-without-match", "--files"):
        return None
    lists = parsed.has("--files")
    files = parsed.operands[0 if lists or parsed.has("-e") else 1 :]
    # `rg --files` lists the files that a search would read.
    searching = [argv[0], "-e", "x", *(word for word in argv[1:] if word != "--files")] if lists else argv
    return _below(searching, files, nul=parsed.has("-0"), descends=True)


def _below(argv: Sequence[str], files: Sequence[str], *, nul: bool, descends: bool) -> FileNames | None:
    """Return the facts about the names of the files that a search reads, from its model. `files` are its operands."""
    name_lists = [word.names for word in files if isinstance(word, Found)]
    if name_lists:
        names = replace(name_lists[0], nul=nul, folders=False)
        if descends and name_lists[0].folders:
            names = replace(names, only=(), skips=(), excluded=(), hidden=True)
        return names if name_lists == name_lists[:1] * len(files) else None
    if "-" in files:
        return None
    model = model_of(name_of(argv[0]))
    use = read_command(model, argv) if model is not None else None
    if use is None or use.gap or not use.paths:
        return None
    path_use = use.paths[0]
    starts = tuple(path.word for path in use.paths)
    return FileNames(
        starts=starts,
        only=path_use.only,
        skips=path_use.skips,
        excluded=path_use.excluded,
        hidden=path_use.hidden,
        bare=not files,
        folders=False,
        nul=nul,
    )


def _by_fd(argv: Sequence[str]) -> FileNames | None:
    parsed = _parsed(model_of("fd"), _FD, argv)
    if parsed is None or any(isinstance(word, Unknown | Found) for word in parsed.operands):
        return None
    endings = parsed.values("-e")
    plain = all(re.fullmatch(r"\w+(?:\.\w+)*", ending, re.ASCII) for ending in endings)  # fd ignores a leading dot
    return FileNames(
        starts=parsed.operands[1:] or (".",),
        only=tuple(f"*.{ending}" for ending in endings) if plain else (),
        hidden=parsed.has("-H", "-u"),
        bare=len(parsed.operands) < 2,
        folders=not {"f", "file"}.issuperset(parsed.values("-t")) or not parsed.has("-t"),
        nul=parsed.has("-0"),
    )


def _by_git(argv: Sequence[str]) -> FileNames | None:
    git = model_of("git")
    if git is None or list(argv[1:2]) != ["ls-files"]:
        return None
    parsed = _parsed(git.subcommands["ls-files"], _LS_FILES, argv[1:])
    if parsed is None or any(isinstance(word, Unknown | Found) for word in parsed.operands):
        return None
    tracked = ShownFiles(words=parsed.operands, behind_dashes=True)
    return FileNames(starts=(".",), bare=True, folders=False, nul=parsed.has("-z"), tracked=tracked)


def _by_find(argv: Sequence[str]) -> FileNames | None:
    from harness.programs.find import names_found

    return names_found(argv)


def _by_ls(argv: Sequence[str]) -> FileNames | None:
    parsed = _parsed(model_of("ls"), _LS, argv)
    if parsed is None or any(isinstance(word, Unknown | Found) for word in parsed.operands):
        return None
    return FileNames(
        starts=parsed.operands or (".",),
        skips=_ONLY_ITS_NAMES,
        hidden=parsed.has("-A"),
        bare=not parsed.operands,
        lists_names=bool(parsed.operands) and not parsed.has("-d"),
    )


_SOURCES: Mapping[str, Callable[[Sequence[str]], FileNames | None]] = {
    "find": _by_find,
    "grep": _by_grep,
    "egrep": _by_grep,
    "fgrep": _by_grep,
    "rg": _by_rg,
    "fd": _by_fd,
    "fdfind": _by_fd,
    "git": _by_git,
    "ls": _by_ls,
}
