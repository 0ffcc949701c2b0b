"""The fit of a call into the workspace walls: whether a part needs more than they give, or undo cannot take it back.

Read `unfit`. What a part does inside the walls is not judged here: the kernel confines it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.actions import REACHES_NETWORK, Access, Act, Action, Command, Facet, Opaque, PathAccess, Place
from harness.paths import is_within
from harness.policy.destruction import destroys
from harness.policy.granted_programs import LEAVES, acts_elsewhere, fetches_packages, leaves_workspace
from harness.policy.walls_here import Undo
from harness.programs.catalog import only_reads
from harness.programs.losses import losses, program_named
from harness.programs.runners import WRAPPERS, name_of
from harness.record import replace
from harness.regex import regex

GIT_HISTORY = "cannot be undone: git history"
"""Reason for a command that changes a repository's commits, branches or settings."""
_SYSTEM = tuple("/usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /opt /nix/store /var/lib /var/cache /var/www".split())
"""Folders of the system, which every command inside the walls can read."""
_SECRETS_OF_SYSTEM = tuple(
    "/etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/sudoers.d /etc/ssh /etc/ssl/private".split()
)
_KEEPS_HISTORY = frozenset(
    "add rm mv restore clean apply status log diff show blame grep ls-files ls-tree rev-parse describe check-ignore "
    "cat-file shortlog archive format-patch for-each-ref merge-base rev-list name-rev var help version".split()
)
"""Subcommands of git that leave commits, branches and settings as they are. Some change files or the index."""
_CHANGES_HISTORY = frozenset(
    "commit reset rebase merge stash branch checkout switch tag cherry-pick am revert update-ref gc reflog".split()
)
"""Subcommands of git that change commits or branches, for text whose commands are not known."""
_GIT_VALUES = frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"))
"""Global options of git with their value in the next word."""
_TAKES_IGNORED = regex(r"-[a-zA-Z]*[xX]")
"""Options of `git clean` that also remove ignored files."""
_PLAIN_PATH = regex(r"[\w./~@%+,:=-]+")
"""Words that look like a path. A script of sed or a line of code rarely does."""
_LOOPBACK = regex(r"(?:localhost|127\.0\.0\.1)(?::\d+)?")
_REACHES = frozenset(
    "curl wget ssh scp sftp rsync ftp telnet nc ncat netcat socat ping dig nslookup host gh glab apt apt-get dnf yum apk brew "
    "pacman zypper snap flatpak".split()
)
"""Programs that mostly need the network. In text that could not be parsed, their names count."""
_SHELL_WORDS = frozenset(
    "source . cd pushd popd set shopt export unset local declare typeset readonly alias true false : echo printf [ [[ test "
    "wait sleep trap shift return exit if then else elif fi for in do done while until case esac select "
    "function { } ! time".split()
)
"""Words of the shell that start no other program."""


_PLAIN_WRAPPERS = WRAPPERS - LEAVES - {"ssh", "bunx", "npx", "pnpx", "uvx"}


def unfit(action: Action, part: Facet, undo: Undo, *, reaches: bool, any_words: bool) -> str:
    """Return the reason why a part must not run unasked inside the workspace walls, or an empty string.

    `reaches` is set if the rule permits the network in addition to the walls. `any_words` is set if no rule names the
    words of the command: it then must not act on other machines or change git's history either.
    """
    match part:
        case Command():
            reason = _leaves(part, reaches=reaches) or (_beyond_workspace(part) if any_words else "")
            return reason or next(_beyond_undo(action, part, undo, reaches=reaches), "")
        case Opaque():
            reason = next(_loosely_leaves(part, reaches=reaches, any_words=any_words), "")
            return reason or next(_beyond_undo(action, part, undo, reaches=reaches), "")
        case PathAccess():
            is_here = part.place in (Place.INSIDE, Place.TEMPORARY) or part.access is Access.READ
            return ("" if is_here else f"{part.written} is outside") or next(_left_out((part,), undo), "")
        case _:
            return "the walls are for commands"


def beyond_undo(action: Action, undo: Undo) -> tuple[str, ...]:
    """Return the effects of a command that undo cannot take back, besides those of `destroys`, in words."""
    limits, reasons = replace(undo, missing=""), dict[str, None]()
    for part in action.facets:
        if isinstance(part, Command | Opaque):
            reasons |= dict.fromkeys(_beyond_undo(action, part, limits, reaches=False))
        if isinstance(part, Command) and part.act is not Act.WRITES and _changes_history(part.argv):
            reasons[GIT_HISTORY] = None
    return tuple(reasons)


def _is_of_system(path: PathAccess) -> bool:
    """Return whether a path is in a folder of the system, and neither is nor holds a file that only root may read."""
    is_secret = any(
        is_within(path.real, secret) or (path.tree and is_within(secret, path.real)) for secret in _SECRETS_OF_SYSTEM
    )
    return not is_secret and any(is_within(path.real, folder) for folder in _SYSTEM)


def walls_decide(part: Command | Opaque, path: PathAccess) -> bool:
    """Return whether access to a path outside the workspace needs no question inside walls.

    True for reading the system, and for a possible path in a word of code, which may be no path at all.
    """
    if path.access is Access.WRITE:
        return False
    return _is_of_system(path) or (path.access is Access.EITHER and _is_in_code(part, path))


def _is_in_code(part: Command | Opaque, path: PathAccess) -> bool:
    """Return whether a path is only a piece of a word, part of a script, or of text for an interpreter."""
    if _PLAIN_PATH.fullmatch(path.written) is None:
        return True
    if isinstance(part, Opaque):
        return part.given_to is not None or path.place is Place.ABOVE
    values = (word.partition("=")[2] for word in part.argv if word.startswith("-"))
    return part.act in (Act.RUNS, Act.UNKNOWN) and path.written not in (*part.argv, *values)


def _leaves(command: Command, *, reaches: bool) -> str:
    """Return the effect of a command that the walls prevent, or an empty string."""
    if command.needs:
        return f"it needs {command.needs}"
    if reason := leaves_workspace(command):
        return reason
    if not command.network or reaches or _is_loopback(command):
        return ""
    is_certain = command.act not in (Act.RUNS, Act.UNKNOWN)
    return REACHES_NETWORK if is_certain or any(map(fetches_packages, (command.argv, *command.run_by))) else ""


def _is_loopback(command: Command) -> bool:
    """Return whether all addresses in the words of a command are those of this machine."""
    urls = [word.partition("://")[2] for word in command.argv[1:] if "://" in word]
    hosts = [url.partition("/")[0].partition("?")[0] for url in urls]
    return bool(hosts) and all(_LOOPBACK.fullmatch(host) for host in hosts)


def _beyond_workspace(command: Command) -> str:
    """Return the reason why a command has effects besides files of the workspace. Empty if it has none."""
    if command.act in (Act.LOOKS, Act.WRAPS):
        return ""
    if reason := acts_elsewhere(command):
        return reason
    changes_history = command.act is not Act.WRITES and _changes_history(command.argv)
    return GIT_HISTORY if changes_history else ""


def _changes_history(words: Sequence[str]) -> bool:
    """Return whether words are a git command that changes commits, branches or settings."""
    if not words or program_named(words[0]) != "git":
        return False
    position = 1
    while position < len(words) and words[position].startswith("-"):
        position += 2 if words[position] in _GIT_VALUES else 1
    verb = words[position] if position < len(words) else "help"
    if verb == "checkout":
        return not any("of paths" in sentence for sentence in losses(words))
    return verb not in _KEEPS_HISTORY


def _loosely_leaves(part: Opaque, *, reaches: bool, any_words: bool) -> Iterator[str]:
    """Yield the effects of text that the walls prevent, as far as the text could be split into commands."""
    if part.given_to is not None:
        yield from filter(None, (_leaves(part.given_to, reaches=reaches),))
        return
    for words in programs_in(part):
        command = Command(text="", argv=words)
        needs_network = fetches_packages(words) or (name_of(words[0]) in _REACHES and not _is_loopback(command))
        if needs_network and not reaches:
            yield REACHES_NETWORK
        if reason := leaves_workspace(command) or (acts_elsewhere(command) if any_words else ""):
            yield reason
        if any_words and _changes_history(words):
            yield GIT_HISTORY
    if any_words and _may_be_git(part):
        yield GIT_HISTORY


def _may_be_git(text: Opaque) -> bool:
    """Return whether text that could not be parsed may put together a git command that changes history."""
    words = {program_named(word) for command in text.commands for word in command}
    without_verb = any(program_named(command[0]) == "git" and len(command) == 1 for command in text.commands if command)
    return "git" in words and (without_verb or not words.isdisjoint(_CHANGES_HISTORY))


def programs_in(text: Opaque) -> list[tuple[str, ...]]:
    """Return the commands of text that could not be parsed, loosely split, without those that only read."""
    return [words for words in map(_after_shell_words, text.commands) if words and not only_reads(words)]


def only_prepares(text: Opaque) -> bool:
    """Return whether a text begins with a builtin that changes the folder or the variables of later commands."""
    return text.text.split(maxsplit=1)[:1] in (["cd"], ["source"], ["."], ["export"], ["pushd"], ["popd"])


def _after_shell_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return loosely split words without the words of the shell, wrappers and their options at the beginning.

    Empty if no program follows.
    """
    if not words or words[0] in ("source", ".", "cd", "echo", "printf"):
        return ()
    position = 0
    while position < len(words) and (
        words[position] in _SHELL_WORDS
        or name_of(words[position]) in _PLAIN_WRAPPERS
        or (position > 0 and (words[position].startswith("-") or words[position].isdigit()))
        or "=" in words[position]
    ):
        position += 1
    return tuple(words[position:])


def _beyond_undo(action: Action, part: Command | Opaque, undo: Undo, *, reaches: bool) -> Iterator[str]:
    """Yield the effects of a part that undo cannot take back.

    Inside the walls, a command can destroy only files of the workspace, which undo restores, and history of git.
    """
    if undo.missing or reaches:
        yield from destroys(action)
    yield from _left_out(part.paths, undo)
    for words in (part.argv,) if isinstance(part, Command) else part.commands:
        start = next((place for place, word in enumerate(words) if program_named(word) == "git"), len(words))
        git_words = words[start:]
        if _changes_history(git_words) and any(losses(git_words)):
            yield GIT_HISTORY
        elif git_words[1:2] == ("clean",) and any(map(_TAKES_IGNORED.match, git_words)):
            yield "cannot be undone: files that git ignores"


def _left_out(paths: Sequence[PathAccess], undo: Undo) -> Iterator[str]:
    """Yield the reasons why named writes cannot be undone: undo keeps no content of these folders."""
    for path in paths:
        if path.access is Access.WRITE:
            for folder in undo.left_out:
                if is_within(path.real, folder) or (path.tree and is_within(folder, path.real)):
                    yield f"cannot be undone: {path.written}"
