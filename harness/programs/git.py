"""The model of git (2.20 to 2.52): its options before the subcommand, and how `-C` is read; data, pure.

The subcommands are in git_looking.py and git_changing.py, what tables cannot say in git_reading.py and git_modes.py, and
what the configuration of a repository can add in git_config.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Access
from harness.programs.git_changing import CHANGING
from harness.programs.git_looking import LOOKING
from harness.programs.model import Found, PathUse, Program, Unknown, Use, gap
from harness.programs.options import joined, parse_words, read_command
from harness.record import replace

_BEFORE = """
    -P|--no-pager --no-optional-locks --no-replace-objects --no-lazy-fetch --no-advice --literal-pathspecs:gap
    --glob-pathspecs:gap --noglob-pathspecs:gap -v|--version:info --help:info --html-path:info --man-path:info --info-path:info
    --exec-path:info -p|--paginate:gap --bare:gap
    -c=CODE --config-env=CODE --git-dir=CODE --work-tree=CODE --namespace=CODE --super-prefix=CODE --attr-source=CODE
"""
_FOLDER = "-C=FOLDER"

_GIT = Program(git=True, options=_BEFORE, subcommands=LOOKING | CHANGING)


def _read(argv: Sequence[str]) -> Use:
    """Read `git -C FOLDER ...` as the command without it, and put the folder in front of every path."""
    if "-C" not in argv:
        return read_command(_GIT, argv)
    parsed = parse_words(PROGRAMS["git"], argv, stop=True)
    if isinstance(parsed, str):
        return gap(parsed)
    folder = ""
    words = [argv[0]]
    for given in parsed.options:
        if given.name != "-C":
            words += [given.name] if given.value is None else [given.name, given.value]
        elif isinstance(given.value, Unknown | Found):
            return gap(f"the folder {given.value} is not known")
        else:
            folder = joined(folder, given.value or "")
    use = read_command(_GIT, [*words, *parsed.operands])
    return _behind(folder, use)


def _behind(folder: str, use: Use) -> Use:
    """Return what a command does when git was told to go to `folder` first (`-C`)."""
    if use.gap or not folder:
        return use
    if use.scripts:
        return gap("text for a shell that runs in another folder")
    return replace(
        use,
        paths=(
            PathUse(word=folder, access=Access.READ),
            *(replace(path, word=joined(folder, path.word)) for path in use.paths),
        ),
        commands=tuple(replace(inner, folder=joined(folder, inner.folder)) for inner in use.commands),
        git_folder=folder,
    )


PROGRAMS = {"git": replace(_GIT, options=f"{_FOLDER} {_BEFORE}", read=_read)}
