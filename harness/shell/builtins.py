"""Builtins of bash that change the shell itself, and the state after them. All other builtins count as programs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from posixpath import join, normpath

from harness.actions import Access, Act, Command, PathAccess
from harness.programs.program import Found, Unknown
from harness.programs.runners import PLAIN_WRAPPERS
from harness.programs.variables import changes_the_shell
from harness.record import replace
from harness.shell.command_line import CommandLine
from harness.shell.redirections import Stdin
from harness.shell.shell_state import MAX_FOLDERS, Outcome, ShellState, StopReading, either_folder

FOLDER_BUILTINS = frozenset(("cd", "popd", "pushd"))
"""Builtins that change the folder."""

KNOWN_BUILTINS = FOLDER_BUILTINS | {"export", "read", "set", "unset"}
"""Builtins that change the shell in a known way."""

UNKNOWN_BUILTINS = frozenset(
    ". alias bg bind caller compgen complete compopt coproc declare dirs disown enable fc fg getopts hash history let local "
    "logout mapfile readarray readonly shift shopt source suspend trap typeset ulimit unalias".split()
)
"""Builtins that may change how the rest of a line runs, in a way that is not tracked.

With words for which their program models say that they only look, they are accepted.
"""

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_OPTIONS = frozenset(("errexit", "nounset", "pipefail"))


SPECIAL_BUILTINS = frozenset(
    ": break continue eval exec exit export readonly return set shift times trap unset".split()
)
"""Builtins after which assignments in front of them stay in effect in sh (POSIX.1-2024, XCU 2.15), but not in bash."""


BUILTINS_WITHOUT_PROGRAM = (
    KNOWN_BUILTINS
    | UNKNOWN_BUILTINS
    | SPECIAL_BUILTINS
    | frozenset("builtin command help jobs type umask wait".split())
)
"""Builtins without a program of the same name. `env read` does not run the builtin but some other program."""


def after_builtin(argv: Sequence[str], state: ShellState) -> ShellState | str:
    """Return the state after `export`, `read`, `set` or `unset`, or the reason why it is unknown."""
    match argv[0]:
        case "export":
            return _export(argv[1:], state)
        case "read":
            names = [word for word in argv[1:] if word not in ("-r", "-s")]
            return _forget(names, state, "read with more than names")
        case "unset":
            return _forget(argv[1:], state, "unset with more than names")
        case _:
            return _set(argv[1:], state)


def _set(words: Sequence[str], state: ShellState) -> ShellState | str:
    options_follow = False
    for word in words:
        if options_follow:
            if word not in _OPTIONS:
                return f"set -o {word}, which changes how the rest is run"
            options_follow = False
        elif re.fullmatch("[-+][eu]*o?", word) and len(word) > 1 and not isinstance(word, Unknown | Found):
            options_follow = word[-1] == "o"
        else:
            return f"set {word}, which changes how the rest is run"
    return "set without a word, which prints every variable" if options_follow or not words else state


def _export(words: Sequence[str], state: ShellState) -> ShellState | str:
    for word in words:
        text = word.prefix if isinstance(word, Unknown) else word
        match = re.fullmatch(f"({_NAME})(=.*)?", text, re.DOTALL)
        if match is None or isinstance(word, Found) or (isinstance(word, Unknown) and not match[2]):
            return "export with more than names and values"
        name = match[1]
        if changes_the_shell(name):
            return f"{name} is set, which changes how the rest is run"
        state = state.handing_on(name)
        if match[2]:
            state = state.with_value(name, None if isinstance(word, Unknown) else match[2][1:])
    return state if words else "export without a name, which prints every variable"


def _forget(names: Sequence[str], state: ShellState, otherwise: str) -> ShellState | str:
    for name in names:
        if isinstance(name, Unknown | Found) or not re.fullmatch(_NAME, name):
            return otherwise
        if changes_the_shell(name):
            return f"{name} is set, which changes how the rest is run"
        state = state.touching(name)
    return state.forgetting(frozenset(names)) if names else otherwise


def run_builtin(
    line: CommandLine, argv: tuple[str, ...], text: str, inside: ShellState, after: ShellState, stdin: Stdin
) -> Outcome:
    """Add the facets of a builtin that changes the shell in a known way, and return the state after it."""
    if argv[0] in FOLDER_BUILTINS:
        return _change_folder(line, argv, text, inside, after, stdin)
    changed = after_builtin(argv, after)
    if isinstance(changed, str):
        raise StopReading(changed, text)
    variables = tuple(sorted(inside.exported - {"IFS"} if argv[0] == "read" else inside.exported))
    words = tuple(str(word) for word in argv)
    act = Act.LOOKS if shows_something(argv[0], stdin.paths) else Act.WRAPS
    line.add(Command(text=text, argv=words, variables=variables, paths=stdin.paths, act=act, model=argv[0]))
    return Outcome(ok=changed, failed=changed)


def _change_folder(
    line: CommandLine, argv: tuple[str, ...], text: str, inside: ShellState, after: ShellState, stdin: Stdin
) -> Outcome:
    """Add the facets of `cd`, `pushd` or `popd`, and return the state after it. See `_folders_after_cd`."""
    targets = _targets(line, argv, after)
    if not targets:
        line.add_opaque(f"{argv[0]} to a folder that is not known", text, after)
        unknown = after.in_folders((), after.stack if argv[0] == "cd" else None)
        return Outcome(ok=unknown, failed=after)
    if not after.folders and not all(target.startswith("/") for target in targets):
        line.add_opaque("the folder that it runs in is not known", text, after)
        return Outcome(ok=after, failed=after)
    reached = [_folders_after_cd(line, target, after, physical="-P" in argv) for target in targets]
    paths = tuple(dict.fromkeys((*stdin.paths, *(path for accesses, _ in reached for path in accesses))))
    folders = reached[0][1]
    for _, other_folders in reached[1:]:
        folders = either_folder(folders, other_folders)
    variables = tuple(sorted(inside.exported))
    line.add(Command(text=text, argv=argv, variables=variables, paths=paths, act=Act.WRAPS, model=argv[0]))
    plain = all(".." not in target.strip("/").removeprefix("../").split("/") for target in targets)
    exists = plain and bool(folders) and not line.disk_changed and all(map(line.disk.is_folder, folders))
    return Outcome(ok=after.in_folders(folders, _stack_after(argv[0], after)), failed=None if exists else after)


def _targets(line: CommandLine, argv: tuple[str, ...], state: ShellState) -> tuple[str, ...]:
    """Return the possible target folders of `cd`, `pushd` or `popd`. Empty if they are unknown."""
    if argv == ("cd", "-"):
        return state.before
    if argv[0] == "popd":
        return state.stack[0] if len(argv) == 1 and state.stack else ()
    words = [word for word in argv[1:] if argv[0] == "pushd" or word not in ("--", "-L", "-P")]
    if not words and argv[0] == "cd":
        return (line.disk.home,)
    if len(words) != 1 or isinstance(words[0], Unknown | Found) or words[0][:1] in ("", "-"):
        return ()
    return () if argv[0] == "pushd" and (state.stack is None or words[0][0] == "+") else (words[0],)


def _folders_after_cd(
    line: CommandLine, target: str, state: ShellState, *, physical: bool
) -> tuple[list[PathAccess], tuple[str, ...]]:
    """Return the paths that `cd TARGET` may go to, and the folders that the shell may be in after it.

    bash first resolves `..` in the text of the path. If that folder does not exist, it uses the path as the kernel
    resolves it.
    """
    paths: list[PathAccess] = []
    folders: dict[str, None] = {}
    for folder in state.folders or (line.disk.root,):
        folder_state = replace(state, folders=(folder,))
        written = normpath(join(folder, target))  # tried first by bash: `..` resolved in the text of the path
        ends = line.resolved(target, Access.READ, folder_state)
        first = line.resolved(written, Access.READ, folder_state)
        if [path.real for path in first] == [path.real for path in ends] and not physical:
            folders[written] = None  # both agree; a later `cd ..` also resolves in the text
        else:
            ends += first
            folders.update(dict.fromkeys(path.real for path in ends))
        paths += ends
    return list(dict.fromkeys(paths)), tuple(folders) if len(folders) <= MAX_FOLDERS else ()


def _stack_after(name: str, state: ShellState) -> tuple[tuple[str, ...], ...] | None:
    """Return the stack of folders after `cd`, `pushd` or `popd` in `state`."""
    stack = state.stack
    if name == "cd" or stack is None:
        return stack
    return stack[1:] if name == "popd" else (state.folders, *stack)


def shows_something(program: str, paths: Sequence[PathAccess]) -> bool:
    """Return whether a program that runs another command also reads files itself: `find -exec`, or one with `< file`."""
    return program not in PLAIN_WRAPPERS or (bool(paths) and program not in FOLDER_BUILTINS)
