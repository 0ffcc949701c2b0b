"""Builtins of bash that change the shell itself, and what is known after them; pure. All others are programs to us."""

from __future__ import annotations

import re
from collections.abc import Sequence
from posixpath import join, normpath

from harness.programs.model import Found, Unknown
from harness.programs.variables import changes_the_shell
from harness.shell.state import State
from harness.shell.syntax import AndOr, Case, For, Group, If, Literal, Node, Script, Simple, Test, While

SHELL_BUILTINS = frozenset(("cd", "export", "read", "set", "unset"))
"""Of these it is known what they change."""

STEERS_THE_SHELL = frozenset(
    ". alias bg bind caller compgen complete compopt coproc declare dirs disown enable fc fg getopts hash history let local "
    "logout mapfile popd pushd readarray readonly shift shopt source suspend trap typeset ulimit unalias".split()
)
"""Of these it is not, or not well enough: they change how the rest of a line is run."""

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_OPTIONS = frozenset(("errexit", "nounset", "pipefail", "xtrace"))


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
        elif re.fullmatch("[-+][eux]*o?", word) and len(word) > 1 and not isinstance(word, Unknown | Found):
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


def assigned_names(node: Node | Script | AndOr) -> frozenset[str]:
    """Return the variables that a part of the tree may set; with `eval` among them if it may set any."""
    match node:
        case Script():
            return _union(node.items)
        case AndOr():
            pipelines = (node.first, *(pipeline for _, pipeline in node.rest))
            return _union([each for pipeline in pipelines for each in pipeline.commands])
        case Simple():
            return _set_by(node)
        case Group():
            return assigned_names(node.body)
        case If():
            parts = [part for branch in node.branches for part in branch]
            return _union([*parts, *((node.otherwise,) if node.otherwise else ())])
        case For():
            return assigned_names(node.body) | {node.name}
        case While():
            return _union((node.condition, node.body))
        case Case():
            return _union(node.bodies)
        case Test():
            return frozenset()


def _union(parts: Sequence[Node | Script | AndOr]) -> frozenset[str]:
    return frozenset().union(*(assigned_names(part) for part in parts))


def _set_by(node: Simple) -> frozenset[str]:
    names = {each.name for each in node.assignments}
    if node.words and node.words[0].constant not in ("export", "read", "unset"):
        # A word that an expansion gives may be `eval` or `read` too; only constants are surely not.
        return frozenset(names | {"eval"} if node.words[0].constant in ("eval", None) else names)
    for word in node.words[1:]:
        first = word.pieces[0] if word.pieces else None
        names.add(first.text.partition("=")[0] if isinstance(first, Literal) else "eval")
    return frozenset(names)
