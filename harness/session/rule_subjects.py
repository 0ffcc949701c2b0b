"""Commands and files that a suggested rule may cover: an allow-list over the models of programs.

Simple on purpose. No rule is suggested for a command that no model covers, that runs code from its words, or that is
irreversible. The user decides on those, and gets the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from posixpath import basename
from typing import TypeAlias, assert_never

from harness.actions import REACHES_NETWORK, Access, Act, Command, PathAccess, Place
from harness.policy.built_in import is_entry_point
from harness.policy.lists import KEYS, as_word
from harness.policy.plain_commands import plain_command
from harness.policy.session_grants import PATTERN_CHARACTERS
from harness.programs.runners import INTERPRETERS, SHELLS, WRAPPERS, is_one_of

Value: TypeAlias = "str | bool | Sequence[str] | Sequence[str | Sequence[str]] | Mapping[str, Sequence[str]]"
"""The value of a rule's key. The items of a nested list are alternatives."""

_MOST_ID = 40
_KEY_WIDTH = 9


def rule_text(keys: Mapping[str, Value]) -> str:
    """Return one `[[rule]]` as TOML, without keys whose value is empty or false. Texts must have no lone surrogates."""
    lines = [f"{key:{_KEY_WIDTH}} = {_value(value, in_lists=key in KEYS)}" for key, value in keys.items() if value]
    return "".join(f"{line}\n" for line in ("[[rule]]", *lines))


def rule_id(words: str, used_ids: Iterable[str]) -> str:
    """Return a name for a rule about these words that is not in `used_ids`."""
    slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in words.lower())
    name = "-".join(part for part in slug.split("-") if part)[:_MOST_ID].rstrip("-") or "rule"
    used, number, candidate = set(used_ids), 1, f"suggested-{name}"
    while candidate in used:
        number += 1
        candidate = f"suggested-{name}-{number}"
    return candidate


def is_text(word: str) -> bool:
    """Return whether a word is valid in a policy file: Unicode without lone surrogates."""
    return not any("\ud800" <= char <= "\udfff" for char in word)


def _value(value: Value, *, in_lists: bool = False) -> str:
    """Return a value as TOML. With `in_lists`, a word of a list could mean a named list."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(as_word(value) if in_lists else value)
        case Mapping():
            return "{" + ", ".join(f"{_text(key)} = {_value(each)}" for key, each in value.items()) + "}"
        case _:
            return f"[{', '.join(_value(each, in_lists=in_lists) for each in value)}]"


def _text(text: str) -> str:
    """Return a basic string of TOML 1.0, in printable ASCII."""
    return '"' + "".join(map(_character, text)) + '"'


def _character(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if " " <= char <= "~":
        return char
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


_SECRET = re.compile(
    r"(?:^|[._-])env(?:$|[._-])|^id_(?:rsa|dsa|ecdsa|ed25519)|secret|credential|passw|\.(?:pem|key|p12|pfx|jks|kdbx)$"
)
"""Names of files that often hold secrets or the environment of programs."""


def is_plain(name: str) -> bool:
    """Return whether a name as a pattern matches only itself."""
    return name.isprintable() and name == name.strip() and is_text(name) and PATTERN_CHARACTERS.isdisjoint(name)


def file_problem(path: PathAccess) -> str:
    """Return the reason why no rule can cover this file, or an empty string."""
    if not all(map(is_plain, path.names)):
        return "its name cannot stand in a rule as it is"
    if path.place is not Place.INSIDE:
        return "it lies outside the workspace"
    return name_problem(path)


def name_problem(path: PathAccess) -> str:
    """Return the reason why a workspace file's names rule out a rule about it, or an empty string."""
    if any(is_entry_point(name) for name in (path.real, *path.names)):
        return "builds and tests run it without naming it"
    parts = [part for name in path.names for part in name.casefold().split("/")]
    if any(part.startswith(".") and part not in (".", "..") for part in parts):
        return "its name, or that of a folder, begins with a dot: programs obey such files"
    if any(_SECRET.search(part) for part in parts):
        return "its name is like those of files that hold secrets"
    return ""


def is_about(path: PathAccess, name: str) -> bool:
    """Return whether a path is the workspace file `name`, or a tree that may contain it."""
    if name in path.names or name in path.below:
        return True
    if not path.tree:
        return False
    return path.place is not Place.INSIDE or any(name.startswith(f"{folder}/") for folder in path.names)


def may_mention(text: str, name: str) -> bool:
    """Return whether a text that could not be parsed may refer to a file."""
    return name in text or basename(name) in text


_TAKES_NOTHING_AWAY = frozenset(("mkdir", "touch"))
"""Programs that write the named paths without losing existing content."""
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
"""Programs that test or build the project in the current folder, and the words that may follow.

None of these words names a script, plugin, configuration or command. Make, npm, tox and similar programs are left out,
since they run command lines from files.
"""
_NEEDS_NO_QUOTES = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-")


def quoted_command(command: Command) -> str:
    """Return the command as a bash command line, with words quoted if necessary."""
    return " ".join(map(_quoted, command.argv))


def command_problem(commands: Iterable[Command]) -> str:
    """Return the first reason why a rule cannot allow one of the commands by its words, or an empty string."""
    return next((problem for command in commands if (problem := _problem(command))), "")


def _problem(command: Command) -> str:
    return _words_problem(command) or _act_problem(command) or _paths_problem(command)


def _words_problem(command: Command) -> str:
    argv = command.argv
    name = basename(argv[0])
    if is_one_of(name, INTERPRETERS | SHELLS | WRAPPERS):
        return f"{name} runs what its operands say"
    if "/" in argv[0]:
        return "the program is named by a file, which may be another one the next time"
    if command.variables:
        return "variables are set in front of it, and a rule cannot say to what"
    if "..." in argv or not all(map(is_text, argv)) or any(not {"$", "`"}.isdisjoint(word) for word in argv):
        return "its words are not all known, or no rule can say them"
    return ""


def _act_problem(command: Command) -> str:
    """Return the reason from the model of the program, or that it has none. Empty if the model permits a rule."""
    name = basename(command.argv[0])
    unknown = f"what it does is not known: {command.gap or 'no model covers it'}"
    if not command.model:
        return unknown
    match command.act:
        case Act.LOOKS | Act.WRITES if command.network:
            return REACHES_NETWORK
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
    """Return the reason why a command is not clearly the project's own tests or build, or an empty string."""
    argv = command.argv
    for count in (1, 2):
        words = _OWN_TESTS.get(" ".join(argv[:count]))
        if words is not None and len(argv) >= count and not any(" " in word for word in argv[:count]):
            other = next((word for word in argv[count:] if word not in words.split()), None)
            return "" if other is None else f"it runs code, and nothing vouches for the word {other} behind it"
    return "it runs code that no rule sees, and is not plainly the project's own tests or build"


def _paths_problem(command: Command) -> str:
    if command.act is Act.RUNS:
        return ""  # `_run_problem` checked its words against a list
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
