"""Builtins of bash that change the shell itself, and what is known after them; pure. All others are programs to us."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from posixpath import join, normpath
from typing import assert_never

from harness.programs.model import Found, Unknown
from harness.programs.variables import changes_the_shell
from harness.shell.arithmetic import is_integer
from harness.shell.state import State
from harness.shell.syntax import (
    AndOr,
    Arithmetic,
    Case,
    For,
    Group,
    If,
    Literal,
    Node,
    Number,
    Script,
    Simple,
    Test,
    While,
    Word,
)

GO_ELSEWHERE = frozenset(("cd", "popd", "pushd"))
"""Builtins that change the folder."""

SHELL_BUILTINS = GO_ELSEWHERE | {"export", "read", "set", "unset"}
"""Of these it is known what they change."""

STEERS_THE_SHELL = frozenset(
    ". alias bg bind caller compgen complete compopt coproc declare dirs disown enable fc fg getopts hash history let local "
    "logout mapfile readarray readonly shift shopt source suspend trap typeset ulimit unalias".split()
)
"""Of these it is not, or not well enough: they change how the rest of a line is run."""

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_OPTIONS = frozenset(("errexit", "nounset", "pipefail"))


SPECIAL_BUILTINS = frozenset(
    ": break continue eval exec exit export readonly return set shift times trap unset".split()
)
"""In sh, an assignment in front of one of these holds afterwards too (POSIX.1-2024, XCU 2.15); in bash it does not."""


NO_PROGRAMS = (
    SHELL_BUILTINS
    | STEERS_THE_SHELL
    | SPECIAL_BUILTINS
    | frozenset("builtin command help jobs type umask wait".split())
)
"""Builtins of which there is no program: what `env read` runs is something else of that name."""


def after_builtin(argv: Sequence[str], state: State) -> State | str:
    """Return the state after `export`, `read`, `set` or `unset`, or why that is not known."""
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


def _set(words: Sequence[str], state: State) -> State | str:
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


def _export(words: Sequence[str], state: State) -> State | str:
    for word in words:
        known = word.prefix if isinstance(word, Unknown) else word
        match = re.fullmatch(f"({_NAME})(=.*)?", known, re.DOTALL)
        if match is None or isinstance(word, Found) or (isinstance(word, Unknown) and not match[2]):
            return "export with more than names and values"
        name = match[1]
        if changes_the_shell(name):
            return f"{name} is set, which changes how the rest is run"
        state = state.handing_on(name)
        if match[2]:
            state = state.with_value(name, None if isinstance(word, Unknown) else match[2][1:])
    return state if words else "export without a name, which prints every variable"


def _forget(names: Sequence[str], state: State, otherwise: str) -> State | str:
    for name in names:
        if isinstance(name, Unknown | Found) or not re.fullmatch(_NAME, name):
            return otherwise
        if changes_the_shell(name):
            return f"{name} is set, which changes how the rest is run"
        state = state.touching(name)
    return state.forgetting(frozenset(names)) if names else otherwise


def normal_path(folder: str, target: str) -> str:
    """Return where `cd TARGET` goes from `folder` as bash first tries it: `..` taken from the path as it is written."""
    return normpath(join(folder, target))


def assigned_names(part: Node | Script | AndOr) -> frozenset[str]:
    """Return the variables that a part of the tree may set by itself; what `eval` sets is not among them."""
    names: set[str] = set()
    for node in _nodes(part):
        if isinstance(node, For):
            names.add(node.name)
        elif isinstance(node, Simple):
            names |= {each.name for each in node.assignments} | _named_by_words(node)
    return frozenset(names)


def _named_by_words(node: Simple) -> set[str]:
    """Return the variables that `export`, `read` and `unset` are given."""
    if not node.words or node.words[0].constant not in ("export", "read", "unset"):
        return set()
    firsts = [word.pieces[0] for word in node.words[1:] if word.pieces]
    return {piece.text.partition("=")[0] for piece in firsts if isinstance(piece, Literal)}


def counted_names(part: Node | Script | AndOr) -> frozenset[str]:
    """Return the variables that a part of the tree sets to integers alone: `i=0`, `i=$((i + 1))`."""
    assignments = [each for node in _nodes(part) if isinstance(node, Simple) for each in node.assignments]
    otherwise = {each.name for each in assignments if not _is_integer(each.value)}
    plainly = {each.name for each in assignments}
    for node in _nodes(part):
        if isinstance(node, For):
            otherwise.add(node.name)
        elif isinstance(node, Simple):
            otherwise |= _named_by_words(node)
    return frozenset(plainly - otherwise)


def _is_integer(value: Word) -> bool:
    constant = value.constant
    if constant is not None:
        return is_integer(constant)
    return len(value.pieces) == 1 and isinstance(value.pieces[0], Number | Arithmetic)


def first_words(part: Node | Script | AndOr) -> frozenset[str]:
    """Return the first word of each command in a part of the tree; an empty one for a word that expands."""
    commands = (node for node in _nodes(part) if isinstance(node, Simple) and node.words)
    return frozenset(node.words[0].constant or "" for node in commands)


def _nodes(part: Node | Script | AndOr) -> Iterator[Node]:
    """Yield every command of a part of the tree, those inside groups, loops and choices too."""
    match part:
        case Script():
            inner: Sequence[Node | Script | AndOr] = part.items
        case AndOr():
            pipelines = (part.first, *(pipeline for _, pipeline in part.rest))
            inner = [each for pipeline in pipelines for each in pipeline.commands]
        case Simple() | Test():
            yield part
            return
        case Group() | For():
            inner = (part.body,)
        case If():
            inner = [each for branch in part.branches for each in branch]
            inner = [*inner, part.otherwise] if part.otherwise else inner
        case While():
            inner = (part.condition, part.body)
        case Case():
            inner = part.bodies
        case _:
            assert_never(part)
    if not isinstance(part, Script | AndOr):
        yield part
    for each in inner:
        yield from _nodes(each)
