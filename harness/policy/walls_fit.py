"""The fit of a call into the workspace walls: whether a part needs more than they give, or undo cannot take it back.

Read `unfit`. What a part does inside the walls is not judged here: the kernel confines it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.actions import REACHES_NETWORK, Access, Act, Action, Command, Facet, Opaque, PathAccess, Place
from harness.paths import is_within, is_within_any
from harness.policy.destruction import destroys
from harness.policy.git_data import (
    beside_code,
    changed_history,
    loosely_changed_histories,
    losses_by_git,
    lost_history,
    writes_into_git,
)
from harness.policy.granted_programs import acts_elsewhere, fetches_packages, leaves_workspace
from harness.policy.loose_commands import programs_in
from harness.policy.openings import ONLINE
from harness.policy.walls_here import Undo
from harness.programs.runners import name_of
from harness.record import replace
from harness.regex import regex

_SYSTEM = tuple("/usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /opt /nix/store /var/lib /var/cache /var/www".split())
"""Folders of the system, which every command inside the walls can read."""
_SECRETS_OF_SYSTEM = tuple(
    "/etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/sudoers.d /etc/ssh /etc/ssl/private".split()
)
_PLAIN_PATH = regex(r"[\w./~@%+,:=-]+")
"""Words that look like a path. A script of sed or a line of code rarely does."""
_LOOPBACK = regex(r"(?:localhost|127\.0\.0\.1)(?::\d+)?")
_REACHES = ONLINE | frozenset("curl wget rsync socat gh pacman zypper".split())
"""Programs that mostly need the network. In text that could not be parsed, their names count."""


def unfit(action: Action, part: Facet, undo: Undo, *, reaches: bool, any_words: bool) -> str:
    """Return the reason why a part must not run unasked inside the workspace walls, or an empty string.

    `reaches` is set if the rule permits the network in addition to the walls. `any_words` is set if no rule names the
    words of the command: it then must not act on other machines or change git's history either.
    """
    match part:
        case Command():
            reason = _leaves(part, reaches=reaches) or (_beyond_workspace(part) if any_words else "")
        case Opaque():
            reason = next(_loosely_leaves(part, reaches=reaches, any_words=any_words), "")
        case PathAccess():
            is_here = part.place in (Place.INSIDE, Place.TEMPORARY) or part.access is Access.READ
            return ("" if is_here else f"{part.written} is outside") or next(_left_out((part,), undo), "")
        case _:
            return "the walls are for commands"
    return reason or beside_code(action, part) or next(_beyond_undo(action, part, undo, reaches=reaches), "")


def beyond_undo(action: Action, undo: Undo) -> tuple[str, ...]:
    """Return the effects of a command that undo cannot take back, besides those of `destroys`, in words."""
    limits, reasons = replace(undo, missing=""), dict[str, None]()
    for part in action.facets:
        if isinstance(part, Command | Opaque):
            reasons |= dict.fromkeys(_beyond_undo(action, part, limits, reaches=False))
            if any(map(writes_into_git, part.paths)):
                reasons[lost_history("git")] = None
        if isinstance(part, Command) and part.act is not Act.WRITES and (reason := changed_history(part.argv)):
            reasons[reason] = None
    return tuple(reasons)


def _is_of_system(path: PathAccess) -> bool:
    """Return whether a path is in a folder of the system, and neither is nor holds a file that only root may read."""
    is_secret = any(
        is_within(path.real, secret) or (path.tree and is_within(secret, path.real)) for secret in _SECRETS_OF_SYSTEM
    )
    return not is_secret and is_within_any(path.real, _SYSTEM)


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
    return changed_history(command.argv) if command.act is not Act.WRITES else ""


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
        if any_words and (reason := changed_history(words)):
            yield reason
    if any_words:
        yield from loosely_changed_histories(part)


def _beyond_undo(action: Action, part: Command | Opaque, undo: Undo, *, reaches: bool) -> Iterator[str]:
    """Yield the effects of a part that undo cannot take back.

    Inside the walls, a command can destroy only files of the workspace, which undo restores, and history of git.
    """
    if undo.missing or reaches:
        yield from destroys(action)
    yield from _left_out(part.paths, undo)
    lines = (part.argv,) if isinstance(part, Command) else part.commands
    yield from filter(None, map(losses_by_git, lines))


def _left_out(paths: Sequence[PathAccess], undo: Undo) -> Iterator[str]:
    """Yield the reasons why named writes cannot be undone: undo keeps no content of these folders."""
    for path in paths:
        if path.access is Access.WRITE:
            for folder in undo.left_out:
                if is_within(path.real, folder) or (path.tree and is_within(folder, path.real)):
                    yield f"cannot be undone: {path.written}"
