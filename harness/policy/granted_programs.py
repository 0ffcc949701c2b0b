"""Grants of a program with any words: their scope, and the programs that never get one. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from harness.actions import Act, Command
from harness.paths import is_within
from harness.programs.runners import INTERPRETERS, WRAPPERS, is_one_of, name_of

MODELLED = (Act.LOOKS, Act.WRITES)
"""Acts with a known network use."""
_SUBCOMMANDS = frozenset(
    "bun bundle cargo composer conda deno dotnet gem gh git go gradle hatch helm just kubectl mix mvn nox npm npx pdm pip pip3 "
    "pipenv pnpm pnpx bunx poetry rake rustup swift task terraform tox uv uvx yarn".split()
)
"""Programs whose first word says what they do: the word belongs to what is granted."""
_SHELLS = frozenset("sh bash dash zsh fish ksh".split())
"""Shells, for which the script is granted instead."""
_NEVER: Mapping[tuple[str, ...], str] = {
    **{
        (name,): "{} moves or removes files: there is no way back from any words of it"
        for name in "rm rmdir unlink mv shred truncate dd ln".split()
    },
    **{
        (name,): "what {} does is done to the machine"
        for name in (
            "kill pkill killall renice systemctl service journalctl loginctl hostname hostnamectl date timedatectl crontab at "
            "batch mount umount chown chgrp sysctl reboot shutdown halt poweroff"
        ).split()
    },
    **{("git", word): "{} sets what git runs later" for word in "config remote submodule worktree".split()},
}
"""Beginnings of commands that ask each time, with the reason."""
_OF_OTHERS = frozenset("terraform tofu helm pulumi ansible ansible-playbook twine".split())
"""Programs that act on other machines, which a grant for the workspace does not mean."""
_NEEDS_NETWORK = frozenset(
    "push pull fetch clone ls-remote install i ci publish login download get update upgrade search outdated audit".split()
)
"""Such words: without the network there is nothing that they could do."""
_FETCHES = frozenset(
    (("uv", "sync"), ("uv", "add"), ("uv", "lock"), ("cargo", "add"), ("bun", "add"), ("pnpm", "add"), ("yarn", "add"))
)
"""Words that fetch, for programs in which the word has that meaning only."""
_FROM_REGISTRIES = frozenset(("bunx", "npx", "pnpx", "uvx"))
"""Wrappers that run a program of a package, which the walls hold like any other."""
_BUILDERS = frozenset("bunx cargo go golangci-lint gradle mvn npx pnpx sbt uvx".split())
"""Owners of a cache that always need it."""
CACHES: Mapping[str, frozenset[str]] = {
    place: frozenset(owners.split())
    for place, owners in (
        ("~/.npm", "npm npx"),
        ("~/.yarn", "yarn"),
        ("~/.cache/yarn", "yarn"),
        ("~/.local/share/pnpm", "pnpm pnpx"),
        ("~/.cache/pnpm", "pnpm pnpx"),
        ("~/.bun/install/cache", "bun bunx"),
        ("~/.cache/pip", "pip pip3"),
        ("~/.cache/uv", "uv uvx"),
        ("~/.cache/pypoetry", "poetry"),
        ("~/.cargo/registry", "cargo"),
        ("~/.cargo/git", "cargo"),
        ("~/go/pkg", "go golangci-lint"),
        ("~/.cache/go-build", "go golangci-lint"),
        ("~/.cache/golangci-lint", "golangci-lint"),
        ("~/.m2/repository", "mvn"),
        ("~/.gradle/caches", "gradle"),
        ("~/.ivy2", "sbt"),
    )
}
"""Caches of package managers and build tools, each with the programs that own it."""
_RUNS_CODE = INTERPRETERS - WRAPPERS - {"psql", "mysql", "sqlite3", "m4"}
"""Programs that run the words which their models do not cover."""


def granted_words(command: Command) -> tuple[str, ...] | str:
    """Return the words that a command begins with, as they are granted with any others behind them; or why they cannot be.

    What runs it is granted, and with it what it runs.
    """
    chain = (*command.run_by, command.argv)
    argv = next((words for words in chain if not program_problem(words[:1], command.folder)), command.argv)
    if reason := _never(argv):
        return reason
    name, begins = name_of(argv[0]), argv[:1]
    if name in _SUBCOMMANDS or name in _SHELLS:
        begins = argv[:2]
        if len(begins) == 1 or begins[1][:1] in ("", "-"):
            return f"what {name} does stands behind its options"
    return program_problem(begins, command.folder) or begins


def needs_network(words: Sequence[str]) -> bool:
    """Return whether commands that begin so can do nothing without the network."""
    return not _NEEDS_NETWORK.isdisjoint(words[1:]) or (name_of(words[0]), *words[1:]) in _FETCHES


def owned_caches(command: Command) -> tuple[str, ...]:
    """Return the caches that a command, or its wrapper, owns: of a package manager while it fetches, of a build tool
    always.

    INVARIANT: a path owns none, nor does a name that is looked up in another PATH: either may be a file of the
    workspace.
    """
    if "PATH" in command.variables:
        return ()
    owners = {words[0] for words in (*command.run_by, command.argv) if words[0] in _BUILDERS or _fetches(words)}
    return tuple(place for place, programs in CACHES.items() if not owners.isdisjoint(programs))


def _fetches(words: Sequence[str]) -> bool:
    return len(words) == 1 or needs_network(words if words[1].startswith("-") else words[:2])


def is_known_work(command: Command, root: str) -> bool:
    """Return whether a command plainly works in the workspace at `root`, and needs no more.

    False if it reaches the network, removes files, acts on the machine or on others, or sets up later runs: such a
    command asks by itself. Also false for an unknown program, unless it is in the workspace.
    """
    words = granted_words(command)
    if isinstance(words, str) or needs_network(words) or any(map(_is_apart, (*command.run_by, command.argv))):
        return False
    program = command.argv[0]
    if command.act is Act.UNKNOWN and not command.run_by and not is_one_of(program, _RUNS_CODE):
        return "/" in program and is_within(posixpath.normpath(posixpath.join(command.folder, program)), root)
    return command.act is Act.RUNS or not command.network or (program == "go" and command.act is Act.CHANGES)


def _is_apart(words: Sequence[str]) -> bool:
    return bool(_never(words)) or name_of(words[0]) in _OF_OTHERS


def _never(words: Sequence[str]) -> str:
    """Return the reason why commands with this beginning are never granted with any words, or an empty string."""
    name = name_of(words[0])
    return next(
        (
            _NEVER[beginning].format(" ".join(beginning))
            for beginning in ((name,), (name, *words[1:2]))
            if beginning in _NEVER
        ),
        "",
    )


def program_problem(argv: Sequence[str], folder: str) -> str:
    """Return the reason why a program with this beginning and any words cannot be granted even inside walls; or an
    empty string.
    """
    name = name_of(argv[0]) if argv else ""
    if not name:
        return "it names no program"
    if name in WRAPPERS - _FROM_REGISTRIES:
        return f"{name} runs other commands; those can be granted"
    if not all(word.isprintable() for word in argv):
        return "its words hold characters that cannot be shown plainly"
    if not folder.startswith("/"):
        return "the folder that it runs in is not known"
    return ""
