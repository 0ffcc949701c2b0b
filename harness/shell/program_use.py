"""The effects (`Use`) of a command according to its program's model, and the targets of the paths in it."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate
from posixpath import join

from harness.actions import Access, Act, Command, Facet, PathAccess
from harness.paths import fold, is_within
from harness.programs.catalog import model_of
from harness.programs.git_pathspecs import GitFiles, ShownFiles
from harness.programs.options import read_command
from harness.programs.program import PathUse, Use, gap
from harness.programs.runners import VERSIONED, name_of, unversioned
from harness.record import replace
from harness.shell.command_line import CommandLine
from harness.shell.redirections import Stdin
from harness.shell.shell_state import ShellState

SYSTEM_FOLDERS = frozenset(("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"))
"""Folders that only root can write. A program with a known name in them is the known program."""


def program_of(name: str) -> str:
    """Return the program's name in the models. Empty for a program in a folder outside `SYSTEM_FOLDERS`."""
    folder, slash, base = name.rpartition("/")
    if slash and folder not in SYSTEM_FOLDERS:
        return ""
    return plain if (plain := unversioned(base)) in VERSIONED else base


def use_of(program: str, argv: tuple[str, ...], stdin: Stdin) -> Use:
    """Return the use of a command according to its program's model. Without a model, it is a gap."""
    if stdin.text is not None and program in ("bash", "sh") and len(argv) == 1:
        from harness.programs.shared import read_alike

        if "\n" in stdin.text.rstrip("\n"):
            return gap("a shell hands the lines that it has not read yet to the commands of those before")
        if program == "bash" or read_alike(stdin.text):
            return Use(act=Act.WRAPS, scripts=(stdin.text,))
        return gap("sh may read this text otherwise than bash")
    model = model_of(program) if program else None
    return read_command(model, argv) if model is not None else gap(f"there is no model of {argv[0]}")


def paths_used(line: CommandLine, path: PathUse, use: Use, state: ShellState) -> list[PathAccess]:
    """Return the targets of a path of a model's `Use`, with the files below them if the path includes these too.

    A name that may be moved or removed is a target itself: for a link, in addition to the link's target.
    """
    accesses = _led_to(line, path, use, state)
    if not path.entry and path.access is not Access.EITHER:
        return accesses
    entries = {each.real: each for each in line.resolved(path.word, path.access, state, entry=True)}
    accesses = [replace(each, entry=entries.pop(each.real, None) is not None) for each in accesses]
    return [*accesses, *entries.values()]


def _led_to(line: CommandLine, path: PathUse, use: Use, state: ShellState) -> list[PathAccess]:
    """Return the targets of a path of a model's `Use`, links followed, with the files below them."""
    accesses = line.resolved(path.word, path.access, state)
    if path.tracked is not None:
        return _shown_by_git(line, path, path.tracked, accesses, state)
    if path.exclusion and not line.disk_changed:
        accesses = [each for each in accesses if line.disk.exists(each.real)]
    if path.at_top and use.git_folder is not None:
        tops = tuple(line.disk.git_top(use.git_folder, folder) for folder in state.folders)
        # The model put the folder of -C in front of the word. Remove it to get the path from the top.
        word = path.word.removeprefix(f"{use.git_folder}/")
        accesses += line.resolved(word, path.access, replace(state, folders=tops))
    if path.upwards:
        above = {each for folder in state.folders for each in _with_above(folder) if is_within(each, line.disk.root)}
        words = [join(folder, path.word) for folder in sorted(above)]
        accesses = [each for word in words for each in line.resolved(word, path.access, state)]
    if not path.tree or (path.compared and not _compares(line, use, state)):
        return accesses
    if path.handed is not None:  # files are named one by one: only the finder's exclusions apply
        names = path.handed
        if names.tracked is not None:
            return [line.disk.look_tracked(f, names.tracked, sure=True, follows=True) for f in accesses]
        only = names.only if path.only == names.only or not names.folders else ()
        return [
            line.disk.look_below(
                f, follows=True, only=only, skips=names.skips, excluded=names.excluded, hidden=names.hidden
            )
            for f in accesses
        ]
    skips = () if path.compared and _compares_folders(line, use, state) else path.skips
    ignore_files = _ignore_files(line, path, state)
    return [
        line.disk.look_below(
            f,
            follows=path.follows,
            only=path.only,
            skips=skips,
            excluded=path.excluded,
            hidden=path.hidden,
            ignore_files=ignore_files,
        )
        for f in accesses
    ]


def _ignore_files(line: CommandLine, path: PathUse, state: ShellState) -> tuple[str, ...]:
    """Return the paths of a build's ignore files. Empty if the line may have changed them, or the folder is unknown."""
    if len(state.folders) != 1 or state.elsewhere or any(map(_may_change_what_is_ignored, line.facets)):
        return ()
    words = path.ignore_files
    return tuple(each.real for word in words for each in line.resolved(word, Access.READ, state, entry=True))


def _shown_by_git(
    line: CommandLine, path: PathUse, selection: ShownFiles, folders: Sequence[PathAccess], state: ShellState
) -> list[PathAccess]:
    """Return the folders that git runs in, with the names of the files that it shows or adds there.

    Environment variables may change what git selects, and earlier commands of the line may have made another repository or
    other ignore files. Then all files below the folder count as new.
    """
    steered = any(name.startswith("GIT_") for name in state.exported)  # GIT_LITERAL_PATHSPECS: `:!x` is a name
    is_new = selection.kind is GitFiles.NEW
    unsure = steered or any(map(_may_change_what_is_ignored, line.facets)) or _makes_another_repository(line, folders)
    if is_new and unsure:
        looked = [line.disk.look_below(each, follows=False, skips=(".git",)) for each in folders]
    else:
        selection = ShownFiles(kind=selection.kind) if steered else selection
        sure = not line.disk_changed
        looked = [line.disk.look_tracked(each, selection, sure=sure, follows=path.follows) for each in folders]
    is_untracked = is_new or selection.kind is GitFiles.IGNORED
    return [replace(each, tracked=not is_untracked, untracked=is_untracked) for each in looked]


_IGNORE_FILES = frozenset((".gitignore", "exclude", ".git"))
_OF_CONTAINERS = (".dockerignore", ".containerignore")
_CHANGES_FILES = frozenset(
    "clone checkout switch restore reset merge pull rebase cherry-pick revert am apply stash clean rm mv worktree "
    "submodule sparse-checkout read-tree checkout-index".split()
)
"""Subcommands of git that may change files in the work tree."""


def _may_change_what_is_ignored(facet: Facet) -> bool:
    """Return whether a facet writes ignore files, or is a git command that may replace them."""
    match facet:
        case Command():
            return _is_git(facet, _CHANGES_FILES) or any(map(_may_change_what_is_ignored, facet.paths))
        case PathAccess():
            lasts = [fold(name.rpartition("/")[2]) for name in facet.names]
            is_ignore_file = any(last in _IGNORE_FILES or last.endswith(_OF_CONTAINERS) for last in lasts)
            return (facet.access is Access.WRITE and facet.tree) or (facet.access is not Access.READ and is_ignore_file)
        case _:
            return False


def _makes_another_repository(line: CommandLine, folders: Sequence[PathAccess]) -> bool:
    """Return whether the line runs `git init`, and one of the folders is in a repository already."""
    if not any(isinstance(facet, Command) and _is_git(facet, {"init"}) for facet in line.facets):
        return False
    tops = (line.disk.git_top(".", folder.real) for folder in folders)
    return any(line.disk.exists(f"{top}/.git") for top in tops)


def _is_git(command: Command, subcommands: AbstractSet[str]) -> bool:
    return name_of(command.argv[0]) == "git" and not subcommands.isdisjoint(command.argv)


def _compares(line: CommandLine, use: Use, state: ShellState) -> bool:
    """Return whether `git diff` may compare its operands as files or folders, instead of taking them as pathspecs.

    Git does so outside of a repository, and in one that it does not trust. There, each operand must exist.
    """
    return line.disk_changed or all(any(map(line.disk.exists, reals)) for reals in _compared(line, use, state))


def _compares_folders(line: CommandLine, use: Use, state: ShellState) -> bool:
    """Return whether all operands that `git diff` may compare may be folders."""
    return line.disk_changed or all(any(map(line.disk.is_folder, reals)) for reals in _compared(line, use, state))


def _compared(line: CommandLine, use: Use, state: ShellState) -> list[list[str]]:
    """Return the paths of the operands that `git diff` may compare.

    Stdin (`-`, maybe with the folder of -C in front) is left out, so it counts as a folder: compared with it, the other
    folder is listed completely.
    """
    words = [path for path in use.paths if path.compared and path.word.rpartition("/")[2] != "-"]
    return [[access.real for access in line.resolved(path.word, path.access, state)] for path in words]


def may_import(line: CommandLine, state: ShellState) -> bool:
    """Return whether a file in the current folder may replace a module of Python's library."""
    if line.disk_changed or state.elsewhere or not state.folders:
        return True
    return any(_holds_a_module(line, folder) for folder in state.folders)


def _holds_a_module(line: CommandLine, folder: str) -> bool:
    names = line.disk.expand("*", folder)
    if names is None:
        return True
    likely = [name for name in names if _is_module(name)]
    # A folder without `__init__` does not replace a library module.
    return any("." in name or line.disk.expand(f"{name}/__init__*", folder) != () for name in likely)


def is_steered(line: CommandLine, names: Sequence[str], state: ShellState) -> bool:
    """Return whether a file of one of these names may be in the current folder or above it.

    The home folder is left out, since files there are the user's own. True if the current folder is unknown.
    """
    if not names:
        return False
    if line.disk_changed or state.elsewhere or not state.folders:
        return True
    reals = (path.real for folder in state.folders for path in line.resolved(folder, Access.READ, state))
    above = {each for folder in (*state.folders, *reals) for each in _with_above(folder)}
    return any(line.disk.exists(join(folder, name)) for folder in above - {line.disk.home} for name in names)


def _with_above(folder: str) -> list[str]:
    """Return an absolute folder and all its parents."""
    return [each or "/" for each in accumulate(folder.split("/"), "{}/{}".format)]


def git_problem(line: CommandLine, git_folder: str, state: ShellState) -> str:
    """Return the reason why git in a folder may run programs that the repository names, or an empty string.

    All folders that the shell may be in are checked.
    """
    if state.elsewhere or not state.folders:
        return "the folder that it runs in is not known"
    problems = (line.disk.git_problem(git_folder, folder) for folder in state.folders)
    return next((problem for problem in problems if problem is not None), "")


def git_places(line: CommandLine, argv: Sequence[str], use: Use, state: ShellState) -> tuple[tuple[str, ...], str]:
    """Return the places outside of the workspace that git writes (`Disk.git_places`).

    Empty for other programs, and if the folder is not certain.
    """
    folder = _git_folder(argv, use, state)
    return ((), "") if folder is None else line.disk.git_places(*folder, worktrees="worktree" in argv)


def git_remotes(line: CommandLine, argv: Sequence[str], use: Use, state: ShellState) -> tuple[str, ...]:
    """Return the addresses of the remotes that a git command may reach (`Disk.git_remotes`).

    Empty for other commands, and if the folder is not certain.
    """
    folder = _git_folder(argv, use, state) if use.network else None
    return () if folder is None else line.disk.git_remotes(*folder)


def _git_folder(argv: Sequence[str], use: Use, state: ShellState) -> tuple[str, str] | None:
    """Return the folder that git works in, relative to the second folder. `None` if it is not certain."""
    is_known = len(state.folders) == 1 and not state.elsewhere and (use.git_folder is not None or "-C" not in argv)
    if argv[0] != "git" or not is_known:
        return None
    return use.git_folder or "", state.folders[0]


def _is_module(name: str) -> bool:
    from harness.programs.python import LIBRARY

    module = name.partition(".")[0]
    return module in LIBRARY or module == "pip" or (module.startswith("_") and module != "__pycache__")
