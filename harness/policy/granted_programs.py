"""Grants of a program with any words: their scope, and the programs that cannot be granted. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.actions import Act, Command
from harness.programs.runners import WRAPPERS, name_of

MODELLED = (Act.LOOKS, Act.WRITES)
"""Acts of commands with a known use of the network."""
_SUBCOMMANDS = frozenset(
    "bun bundle cargo composer conda deno dotnet gem gh git go gradle hatch helm just kubectl mix mvn nox npm npx pdm pip pip3 "
    "pipenv pnpm pnpx bunx poetry rake rustup swift task terraform tox uv uvx yarn".split()
)
"""Programs with subcommands. A grant includes the subcommand."""
_SHELLS = frozenset("sh bash dash zsh fish ksh".split())
"""Shells. A grant includes the script."""
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
"""Beginnings of commands that need approval each time, with the reason."""
_ELSEWHERE = frozenset(
    "terraform tofu helm kubectl oc pulumi ansible ansible-playbook twine vagrant aws gcloud gsutil az heroku fly flyctl doctl "
    "psql mysql mongo mongosh redis-cli".split()
)
"""Programs that act on other machines, or on a server of this one."""
LEAVES = frozenset(
    "docker podman nerdctl docker-compose tmux screen open xdg-open sudo doas su su-exec gosu runuser run0 pkexec chroot "
    "unshare nsenter machinectl systemd-run kill pkill killall systemctl service umount reboot shutdown halt poweroff "
    "useradd usermod userdel adduser deluser groupadd groupmod groupdel passwd chpasswd chage gpasswd".split()
)
"""Programs that have no effect inside walls: they need a socket of others, other processes, or the rights of root."""
_CHANGES_MACHINE = frozenset(
    "renice loginctl hostname hostnamectl date timedatectl crontab at batch mount chown chgrp sysctl ip ifconfig dpkg rpm "
    "dmesg pip pip3 conda mamba gem rustup".split()
)
"""Programs that act on this machine as a whole if they change anything."""
_NEEDS_NETWORK = frozenset(
    "push pull fetch clone ls-remote install i ci publish login download get update upgrade search outdated audit".split()
)
"""Subcommands that are useless without the network."""
_FETCHES = frozenset(
    (("uv", "sync"), ("uv", "add"), ("uv", "lock"), ("cargo", "add"), ("bun", "add"), ("pnpm", "add"), ("yarn", "add"))
)
"""Programs and subcommands that fetch packages. Other programs use these words with another meaning."""
_FROM_REGISTRIES = frozenset(("bunx", "npx", "pnpx", "uvx"))
"""Wrappers that run a program of a package. The walls confine it like any other program."""
_BUILDERS = frozenset("bunx cargo go golangci-lint gradle mvn npx pnpx sbt uvx".split())
"""Programs that own a cache and need it for every command."""
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


def granted_words(command: Command) -> tuple[str, ...] | str:
    """Return the first words of a command, for a grant with any words after them, or the reason why none is possible.

    If another command runs this one, the words are those of the other command, which then covers this one.
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
    """Return whether commands with this beginning are useless without the network."""
    return not _NEEDS_NETWORK.isdisjoint(words[1:]) or (name_of(words[0]), *words[1:]) in _FETCHES


def fetches_packages(words: Sequence[str]) -> bool:
    """Return whether a command is a package manager with a subcommand that is useless without the network."""
    words = words[2:] if words[1:2] == ("-m",) else words
    operands = [word for word in words[1:5] if not word.startswith("-")]
    if not operands or name_of(words[0]) not in _SUBCOMMANDS:
        return False
    return needs_network((words[0], operands[0])) or (operands[0] == "pip" and needs_network(operands[:2]))


def owned_caches(command: Command) -> tuple[str, ...]:
    """Return the caches that a command or its wrapper owns.

    A build tool always owns its cache, a package manager only while it fetches packages.

    INVARIANT: a program given as a path owns no cache, and none does if PATH is set: it may be a file in the workspace.
    """
    if "PATH" in command.variables:
        return ()
    owners = {words[0] for words in (*command.run_by, command.argv) if words[0] in _BUILDERS or fetches(words)}
    return tuple(place for place, programs in CACHES.items() if not owners.isdisjoint(programs))


def fetches(words: Sequence[str]) -> bool:
    """Return whether a package manager fetches packages with these words."""
    return len(words) == 1 or needs_network(words if words[1].startswith("-") else words[:2])


def leaves_workspace(command: Command) -> str:
    """Return the reason why a command can have no effect inside walls. Empty if it is not known to."""
    name = name_of(command.argv[0])
    return f"{name} acts outside the workspace" if name in LEAVES else ""


def acts_elsewhere(command: Command) -> str:
    """Return the reason why a command acts on other machines, or on this one as a whole. Empty if it is not known to."""
    name = name_of(command.argv[0])
    changes_machine = name in _CHANGES_MACHINE and command.act in (Act.WRITES, Act.CHANGES)
    return f"{name} acts outside the workspace" if changes_machine or name in _ELSEWHERE else leaves_workspace(command)


def _never(words: Sequence[str]) -> str:
    """Return the reason in _NEVER why commands with this beginning cannot be granted, or an empty string."""
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
    """Return the reason why `argv` followed by any words cannot be granted even inside walls, or an empty string."""
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
