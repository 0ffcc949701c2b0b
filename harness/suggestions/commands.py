"""Which commands a rule may be suggested for: an allow-list over what the models of programs say; pure, judges nothing.

Dull on purpose. What a model does not vouch for, what runs code that its words name, and what cannot be taken back is left
to the person, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from posixpath import basename

from harness.actions import Access, Act, Command, PathAccess, Place
from harness.exhaustive import assert_never
from harness.programs.runners import INTERPRETERS, SHELLS, WRAPPERS
from harness.rule_examples import plain_command
from harness.suggestions.files import name_problem
from harness.suggestions.rule_text import is_text

_TAKES_NOTHING_AWAY = frozenset(("mkdir", "touch"))
"""Programs that write what they name, and leave what was in it."""
_GO = "./... . -v -race -short -count=1 -failfast"
_CARGO = (
    "-q -v --quiet --verbose --release --workspace --all --lib --bins --tests --examples --benches --all-targets "
    "--all-features --no-default-features --locked --offline --frozen --no-fail-fast --no-run --keep-going"
)
_OWN_TESTS = {
    "pytest": (
        "-q -qq -v -vv -x -s -l --quiet --verbose --exitfirst --showlocals --lf --last-failed --ff --failed-first --nf "
        "--new-first --sw --stepwise --no-header --no-summary --full-trace --strict --strict-markers --strict-config"
    ),
    "cargo build": _CARGO,
    "cargo check": _CARGO,
    "cargo clippy": _CARGO,
    "cargo test": _CARGO,
    "go build": _GO,
    "go test": _GO,
    "go vet": _GO,
}
"""Programs that run the tests or the build of the project that they are started in, and the words that may follow: none
of these names a script, a plugin, a configuration or a command. Not make, npm, tox and the like: those run command lines
out of files."""
_NEEDS_NO_QUOTES = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-")


def shown(command: Command) -> str:
    """Return the command as bash reads it back, each word quoted where it must be."""
    return " ".join(map(_quoted, command.argv))


def command_problem(commands: Iterable[Command]) -> str:
    """Return why a command, seen so often, cannot be allowed by its words; or nothing."""
    return next((problem for command in commands if (problem := _problem(command))), "")


def _problem(command: Command) -> str:
    return _words_problem(command) or _act_problem(command) or _paths_problem(command)


def _words_problem(command: Command) -> str:
    argv = command.argv
    name = basename(argv[0])
    if not {name, name.rstrip("0123456789.-")}.isdisjoint(INTERPRETERS | SHELLS | WRAPPERS):
        return f"{name} runs what its operands say"
    if "/" in argv[0]:
        return "the program is named by a file, which may be another one the next time"
    if command.variables:
        return "variables are set in front of it, and a rule cannot say to what"
    if "..." in argv or not all(map(is_text, argv)) or any(not {"$", "`"}.isdisjoint(word) for word in argv):
        return "its words are not all known, or no rule can say them"
    return ""


def _act_problem(command: Command) -> str:
    """Return what the model of its program says against it; where there is none, that says it."""
    name = basename(command.argv[0])
    unknown = f"what it does is not known: {command.gap or 'no model covers it'}"
    if not command.model:
        return unknown
    match command.act:
        case Act.LOOKS | Act.WRITES if command.network:
            return "it reaches the network"
        case Act.LOOKS:
            return ""
        case Act.WRITES:
            return "" if name in _TAKES_NOTHING_AWAY else f"what {name} overwrites or takes away does not come back"
        case Act.WRAPS:
            return "it runs another command"
        case Act.CHANGES:
            return "it changes more than its words name"
        case Act.RUNS:
            return _run_problem(command)
        case Act.UNKNOWN:
            return unknown
        case _:
            assert_never(command.act)


def _run_problem(command: Command) -> str:
    """Return why it is not plainly the project's own tests or build; or nothing."""
    argv = command.argv
    for count in (1, 2):
        words = _OWN_TESTS.get(" ".join(argv[:count]))
        if words is not None and len(argv) >= count and not any(" " in word for word in argv[:count]):
            other = next((word for word in argv[count:] if word not in words.split()), None)
            return "" if other is None else f"it runs code, and nothing vouches for the word {other} behind it"
    return "it runs code that no rule sees, and is not plainly the project's own tests or build"


def _paths_problem(command: Command) -> str:
    if command.act is Act.RUNS:
        return ""  # its words are of a list of their own
    for path in command.paths:
        problem = _path_problem(path)
        if problem:
            return f"{problem}: {path.written}"
    return "" if plain_command(command.argv) is not None else "it is never understood well enough for a rule"


def _path_problem(path: PathAccess) -> str:
    writes = path.access is not Access.READ
    if path.place is Place.ROOT:
        return "it may write the whole workspace" if writes else ""
    if path.place is not Place.INSIDE:
        return "it may write outside the workspace" if writes else "it reads outside the workspace"
    if writes and path.tree:
        return "it may write everything below a folder"
    return name_problem(path)


def _quoted(word: str) -> str:
    if word and _NEEDS_NO_QUOTES.issuperset(word):
        return word
    return "'" + word.replace("'", "'\\''") + "'"
