"""The walls around a command: the effects of its verdict as what the kernel lets it touch."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from harness.actions import Access, Effects, Enforcement
from harness.errors import ToolError
from harness.files.workspace import Workspace
from harness.paths import is_within
from harness.policy.policy import Policy
from harness.policy.rules import Rule
from harness.record import Record, replace
from harness.regex import regex
from harness.safe_files import read_small
from harness.sandbox import (
    Confinement,
    Machine,
    Unenforceable,
    Unhidden,
    describe,
    enforces,
    hides_where_it_may_write,
    prepare,
    probe,
)
from harness.sandbox.walls import Walls
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from harness.files.tree_listing import ListedTree, TreeListing
    from harness.policy.grant_offers import WallsHere
    from harness.tools.forbidden_files import ForbiddenFiles


UNBOUND = "none"
"""Beginning of the level of confinement on a machine without walls."""
WORKSPACE = "the workspace"
OPENED = "open as a whole, to make or remove names there"
"""Note on folders, since Landlock knows no single names."""
MAX_TOLD = 5
"""Paths of one kind that are named in a line."""
UNCONFINED = f"{UNBOUND}: it asked to run unconfined"
MOST_LOOKED_AT = 100_000
"""Files and folders of a workspace among which what a rule forbids is looked for."""
MOST_WALLED = 200
"""Places of the workspace that a wall is put around; each takes it a mount."""
MOST_EXPOSED = 200
"""Files that no wall can hold and that a grant still names."""
CLOSED = "cannot be written, for the folder stays closed"
_OF_A_GRANT = Effects(read=None, write=None, granted=(".",), network=False, unasked=True)
_OBEYED_BY_GIT = ("config", "config.worktree", "hooks")
_LEADS_TO_OTHERS = ("commondir", "gitdir")
"""Files in the folder of a worktree that say which repository it belongs to."""
_NO_PLACES = ("/dev", "/proc", "/sys")
"""Places that a policy may not hide, like `/` itself (effects.place_problem): a path into them is a link made since."""
CONTAINER_HINT = (
    "in a container, run it with a seccomp profile that allows the landlock_* calls (Docker 23 and newer do), on Linux 6.2 "
    "or newer, or install bubblewrap and allow user namespaces"
)


class CommandWalls:
    """The walls around the commands of one workspace."""

    def __init__(self, workspace: Workspace, *, hide: Sequence[str] = (), machine: Machine | None = None) -> None:
        """`hide` are absolute paths to hide besides the policy's. `machine` is measured on first use if it is `None`."""
        self._workspace = workspace
        self._hide = tuple(hide)
        self._given_machine = machine
        self._forbidden_cache: tuple[object, tuple[ForbiddenFiles, ForbiddenFiles]] | None = None

    @cached_property
    def _listing(self) -> TreeListing:
        from harness.files.tree_listing import TreeListing

        return TreeListing(self._workspace.root)

    @cached_property
    def _machine(self) -> Machine:
        return self._given_machine or probe()

    @cached_property
    def confines(self) -> bool:
        """Whether this machine can keep commands from writing and from the network."""
        return enforces(self._machine)

    @cached_property
    def level(self) -> str:
        """This machine's level of confinement, in one short line: `Landlock 7, seccomp`, or `none` and the reason."""
        machine = self._machine
        return describe(machine) if self.confines else f"{UNBOUND}: {'; '.join(machine.reasons) or describe(machine)}"

    def in_words(self, effects: Effects) -> str:
        """Return the confinement of a command to `effects`, in the words of `level`, with its inexact parts.

        Landlock knows folders with everything below: to create or remove a name, its whole folder is opened. Other
        parts that cannot be enforced are listed in the result of the call (`Confinement.gaps`).
        """
        if effects.enforcement is Enforcement.OFF:
            return UNCONFINED
        if effects.left_out:
            return f"{self.level}; {left_out_in_words(effects)}"
        if not self.confines or not (effects.named_paths or effects.granted):  # no path is opened, and no socket
            return self.level
        walls = walls_for(effects, self._workspace, hide=self._hide)
        if (
            walls.reader and not effects.named_paths
        ):  # granted, and yet not writable: it is not there, or a link leads to it
            return self.level
        named_paths = set(effects.named_paths)
        trees = {path for entry in effects.granted if (path := _granted(entry, self._workspace)) is not None}
        notes = (
            ("hidden if bubblewrap works", [p for p in walls.hide if _is_in_any(p, walls.write) or _is_socket(p)]),
            (OPENED, [path for path in walls.write if path not in named_paths and path not in trees]),
            (CLOSED, [path for path in effects.named_paths if not _is_in_any(path, walls.write)]),
            ("cannot be moved or removed", [path for path in effects.entries if _is_held(path, walls.write)]),
            ("not protected", [p for p in effects.keep if _is_in_any(p, walls.write) and os.path.lexists(p)]),
        )
        root = self._workspace.root
        parts = (
            f"{words}: {', '.join(WORKSPACE if path == root else path for path in paths[:MAX_TOLD])}"
            for words, paths in notes
            if paths
        )
        return "; ".join((self.level, *parts))

    def walls_here(self, policy: Policy, tool: str) -> WallsHere:
        """Return the possible walls of a granted program, in the present workspace."""
        from harness.files.tree_listing import NOTHING_LISTED
        from harness.policy.grant_offers import WallsHere
        from harness.tools.forbidden_files import excepted_folders, rules_about_files

        root = self._workspace.root
        if not self.confines:
            return WallsHere(root=root, confines=False, missing=self.level)
        hides = not _is_in_any(root, _NO_PLACES)
        rules = rules_about_files(policy, tool)
        tree = self._listing.look(excepted_folders(rules), MOST_LOOKED_AT) if rules else NOTHING_LISTED
        if not tree.is_whole:
            reason = f"more than {MOST_LOOKED_AT:,} files, or a folder that cannot be listed"
            missing = f"what a rule forbids cannot be looked for: there are {reason}"
            return WallsHere(root=root, confines=False, hides=hides, missing=missing, forbidden=None)
        unread, unwritten = self._forbidden(rules, tree)
        if not hides or not hides_where_it_may_write(self._machine):
            exposed = tuple(sorted({*unread.files, *unwritten.files}))
            missing = self._not_hidden()
            if len(exposed) > MOST_EXPOSED:
                more = max(unread, unwritten, key=lambda files: len(files.files))
                text = f"without bubblewrap it could read or change more than {MOST_EXPOSED} files"
                missing = _against(more.rule, text)
            return WallsHere(
                root=root,
                confines=not missing,
                hides=hides,
                missing=missing,
                exposed=exposed,
                forbidden=unwritten.files,
            )
        if len({*unread.places, *unwritten.places}) > MOST_WALLED:
            more = max(unread, unwritten, key=lambda files: len(files.places))
            missing = _against(more.rule, f"walls are put around {MOST_WALLED} places at most, and it could reach more")
            return WallsHere(root=root, confines=False, hides=hides, missing=missing, forbidden=unwritten.files)
        return WallsHere(
            root=root,
            confines=True,
            hides=hides,
            hidden=tuple(f"{root}/{place}" for place in unread.places),
            held_places=tuple(f"{root}/{place}" for place in unwritten.places),
            forbidden=unwritten.files,
        )

    def _forbidden(self, rules: tuple[Rule, ...], tree: ListedTree) -> tuple[ForbiddenFiles, ForbiddenFiles]:
        """Return the files that the rules forbid to read and to write, reused if neither rules nor names have
        changed.
        """
        if self._forbidden_cache is None or self._forbidden_cache[0] != (rules, tree):
            from harness.tools.forbidden_files import forbidden_files, with_any_name

            names = with_any_name(tree.files, tree.folders)
            forbidden = forbidden_files(rules, Access.READ, names), forbidden_files(rules, Access.WRITE, names)
            self._forbidden_cache = ((rules, tree), forbidden)
        return self._forbidden_cache[1]

    def _not_hidden(self) -> str:
        """Return the parts of the workspace that a policy hides and Landlock cannot, in words. Empty if there are
        none.
        """
        hidden = walls_for(_OF_A_GRANT, self._workspace, hide=self._hide).hide
        inside = next((path for path in hidden if is_within(path, self._workspace.root)), "")
        words = "cannot be hidden in a folder that may be written, without bubblewrap"
        return f"{visible_line(inside, 200)} {words}" if inside else ""

    def confinement(
        self,
        effects: Effects,
        temporary: Callable[[], str],
        hold: Sequence[str] = (),
        *,
        terminal: bool = False,
        by_host: bool = False,
    ) -> Confinement | None:
        """Return the walls for one command, to be entered by the thread that starts it; None where it runs without.

        `hold` are further absolute paths that stay as they are, where these walls can do that. `temporary` makes or names
        the folder for temporary files of commands that may write at all. `terminal`: it has one of its own on its standard
        streams. `by_host`: where some hosts may be reached, the caller starts it in a network of its own, from which it reaches
        them; without, it reaches nothing. Folders that a rule grants and that are missing are made.

        Raises ToolError where the walls are required and cannot be put up, NotConfinedError where the system refuses.
        """
        from harness.sandbox.own_network import why_none

        if effects.enforcement is Enforcement.OFF:
            _note_code(None)
            return None
        required = effects.enforcement is Enforcement.REQUIRED
        if not self.confines:
            if required:
                raise ToolError(
                    f"The policy requires that commands are confined, and this machine cannot: {self.level}."
                )
            _note_code(None)
            return None
        try:
            for folder in missing_folders(effects, self._workspace):
                os.makedirs(folder, exist_ok=True)
            walls = walls_for(effects, self._workspace, temporary=temporary, hide=self._hide)
            if walls.hold and hides_where_it_may_write(self._machine):
                walls = replace(walls, keep=(*walls.keep, *walls.hold), hold=())
            walls = self._keeping_code(walls)
            apart = by_host and bool(effects.hosts) and not effects.network and not why_none()
            walls = replace(
                walls, hold=(*walls.hold, *_without_named(hold, effects)), terminal=terminal, own_network=apart
            )
            return prepare(walls, self._machine, unhidden=Unhidden.REFUSE if required else Unhidden.TELL)
        except Unenforceable as error:
            raise ToolError(f"The command cannot be confined, and was not run: {error}.") from None
        except OSError as error:
            from harness.process.start import NotConfinedError

            raise NotConfinedError(error.errno or 0, error.strerror or str(error)) from error

    def _keeping_code(self, walls: Walls) -> Walls:
        """Return walls in which the environment of the program stays as it is, where these can do that; note what cannot."""
        if walls.reader:
            return walls
        from harness.process.own_code import own_code

        code = own_code()
        environment = code.environment_within(walls.write)
        kept_path = environment if environment and hides_where_it_may_write(self._machine) else ""
        outside = any(not is_within(path, self._workspace.root) for path in walls.write)
        _note_code(None if outside and code.has_other_names() else walls.write, kept_path)
        return replace(walls, keep=(*walls.keep, kept_path)) if kept_path else walls


def _note_code(write: Sequence[str] | None, kept_path: str = "") -> None:
    """Note the program's own code before a command that may write these places (see `OwnCode.note_before`), and let the guard
    load its own."""
    from harness.process.own_code import own_code

    own_code().note_before(write, kept_path)
    if own_code().is_noted:
        from harness.process.guard import guard

        guard().wait_until_loaded()


def _against(rule: Rule | None, text: str) -> str:
    return visible_line(f"{text}, against rule {rule.label if rule else ''}", 400)


def left_out_in_words(effects: Effects) -> str:
    """Return a note that names the files hidden from a command since a rule denies reading them."""
    names = ", ".join(visible_line(name, 200) for name in effects.left_out[:MAX_TOLD])
    more = f" and {len(effects.left_out) - MAX_TOLD} more" if len(effects.left_out) > MAX_TOLD else ""
    return f"left out, since a rule denies reading: {names}{more}"


def only_looks(effects: Effects) -> bool:
    """Say whether effects permit neither a write nor the network."""
    return effects.write == () and not effects.granted and not effects.reaches


def walls_for(
    effects: Effects, workspace: Workspace, *, temporary: Callable[[], str] | None = None, hide: Sequence[str] = ()
) -> Walls:
    """Return the walls that confine a command to `effects`, by the present disk.

    `temporary` names the folder for the temporary files of a command that may write at all; `hide` is hidden besides
    the policy's places.

    INVARIANT: only places that a policy or a part of the command names are writable, with everything below. A granted
    folder of the workspace must be in the workspace when links are followed; one outside it must not hold a path that
    no call may write (policies, trust, logs).
    """
    hold = _without_named(effects.hold, effects)
    trees = [
        path
        for entry in effects.granted
        if (path := _granted(entry, workspace)) and os.path.lexists(path) and not _is_in_any(path, hold)
    ]
    entries = frozenset(effects.entries)
    named_paths = [
        path
        for name in effects.named_paths
        for path in _writable_places(name, workspace, entry=name in entries)
        if not _is_in_any(path, trees)  # bubblewrap would mount it apart, and it could not be moved
    ]
    write = [path for path in (*trees, *named_paths) if not _holds_any(path, effects.keep, workspace)]
    # What is not there is not asked about: following some thirty names costs more than the walls.
    placed = (_placed(entry, workspace.root, workspace.home) for entry in effects.hide)
    by_policy = [os.path.realpath(path) for path in placed if os.path.lexists(path)]
    hide = (*hide, *(os.path.join(workspace.root, name) for name in effects.left_out))
    hidden = dict.fromkeys((*by_policy, *(os.path.realpath(path) for path in hide if os.path.lexists(path))))
    if effects.left_out and any(path == "/" or _is_in_any(path, _NO_PLACES) for path in hidden):
        raise ToolError("What a rule denies to read leads to a device, and cannot be hidden. Nothing was run.")
    skills = (path for path in workspace.skills if not _is_in_any(path, by_policy))
    repositories = list(_repositories([path for path in write if not is_within(path, workspace.root)], write))
    obeyed = (f"{path}/{name}" for path in repositories for name in _OBEYED_BY_GIT)
    return Walls(
        write=tuple(dict.fromkeys(write)),
        network=effects.network,
        hide=tuple(path for path in hidden if path != "/" and not _is_in_any(path, _NO_PLACES)),
        show=(*([] if workspace.outputs is None else [workspace.outputs]), *skills),
        keep=(
            *(real for path in hold if is_within(real := os.path.realpath(path), workspace.root)),
            *(path for path in obeyed if os.path.lexists(path)),
        ),
        hold=tuple(f"{path}/{name}" for path in repositories for name in _LEADS_TO_OTHERS),
        unix_sockets=effects.sockets,
        needed_socket=effects.needed_socket,
        temporary=None if temporary is None or only_looks(effects) else temporary(),
    )


def _repositories(places: Sequence[str], write: Sequence[str]) -> Iterator[str]:
    """Yield the folders of repositories among `places`, and those of worktrees there whose files no place in `write` holds."""
    for path in places:
        if os.path.isfile(f"{path}/HEAD"):
            yield path
        elif os.path.basename(path) == "worktrees" and os.path.isdir(path):
            for name in os.listdir(path):
                link = (
                    (read_small(f"{path}/{name}/gitdir", 4096) or b"").decode("utf-8", "surrogateescape").rstrip("\n")
                )
                tree = os.path.join(path, name, link)
                if os.path.lexists(tree) and not _is_in_any(tree, write):
                    yield f"{path}/{name}"


def _without_named(places: Sequence[str], effects: Effects) -> tuple[str, ...]:
    """Return the places to hold that no part of the command names to write: a person said yes to those."""
    return tuple(place for place in places if not any(is_within(name, place) for name in effects.named_paths))


def missing_folders(effects: Effects, workspace: Workspace) -> Iterator[str]:
    """Yield the folders of the workspace that are granted by a name that ends in a slash, and are not there yet."""
    for entry in effects.granted:
        if entry.endswith("/") and not entry.startswith(("/", "~")):
            path = _granted(entry, workspace)
            if path is not None and not os.path.lexists(path):
                yield path


def _holds_any(tree: str, kept_paths: Sequence[str], workspace: Workspace) -> bool:
    """Return whether a place outside the workspace holds a path that no call may write, or is inside one."""
    if is_within(tree, workspace.root):
        return False
    return any(is_within(path, tree) or is_within(tree, path) for path in kept_paths)


@lru_cache(maxsize=256)
def _placed(entry: str, root: str, home: str) -> str:
    """Return the absolute path that a policy's word for a place means."""
    if entry == "~" or entry.startswith("~/"):
        return os.path.normpath(home + entry[1:])
    return os.path.normpath(os.path.join(root, entry))


def _granted(entry: str, workspace: Workspace) -> str | None:
    """Return the path of a granted place; `None` for one of the workspace that a link leads to.

    INVARIANT: a link in the workspace may be of the repository's or the model's making: it grants nothing.
    """
    placed = _placed(entry, workspace.root, workspace.home)
    if placed == workspace.root:
        return placed
    real = os.path.realpath(placed)
    if entry.startswith(("/", "~")):
        return None if real == "/" else real
    return placed if real == placed and is_within(placed, workspace.root) else None


def _writable_places(path: str, workspace: Workspace, *, entry: bool) -> Iterator[str]:
    """Yield the places that must be writable so that a command can write `path`: itself, and the folder with its
    name.

    An existing file outside the workspace can be written in place, so its folder is left out unless the `entry` is
    moved, removed or replaced. A link can only be that.
    """
    if not path.startswith("/"):
        return  # a word that no file can be named by
    exists, is_folder = os.path.lexists(path), os.path.isdir(path)
    if exists and not (entry and os.path.islink(path)) and not (is_folder and _is_too_much(path, workspace)):
        yield path
    if exists and not is_folder and not entry and not is_within(path, workspace.root):
        return
    folder = os.path.dirname(path)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if os.path.isdir(folder) and not _is_too_much(folder, workspace):
        yield folder


def _is_too_much(folder: str, workspace: Workspace) -> bool:
    """Say whether a folder is far more than a command can mean by a path in it: `/`, devices, the home folder, and what
    holds that or the workspace.

    INVARIANT: such a folder is never opened because of a path that a command names.
    """
    if folder == workspace.root:
        return False
    holds = any(is_within(place, folder) for place in (workspace.root, workspace.home))
    return holds or _is_in_any(folder, _NO_PLACES)


def _is_in_any(path: str, folders: Sequence[str]) -> bool:
    """Return whether an absolute path is one of the folders or below one."""
    return any(is_within(path, folder) for folder in folders)


def _is_held(path: str, folders: Sequence[str]) -> bool:
    """Say whether a file may be written, and its name not moved or removed: its folder is not open."""
    return _is_in_any(path, folders) and not _is_in_any(os.path.dirname(path), folders)


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


MAX_PLACES = 8

_REFUSED = regex(
    r"Permission denied|Operation not permitted|Read-only file system|EACCES|EPERM|EROFS|PermissionError"
    r"|Invalid cross-device link|EXDEV|cannot create temp file for here-document"
)
_UNREACHABLE = regex(
    r"Could not resolve|Temporary failure in name resolution|Name or service not known|Network is unreachable|getaddrinfo"
    r"|ENETUNREACH|EAI_AGAIN|ENOTFOUND|Connection refused|nodename nor servname|unable to (?:access|connect)"
    r"|transport '[a-z]+' not allowed"
    r"|Failed to (?:connect|establish)|only-if-cached|GOPROXY=off|--offline was specified|network was disabled"
)


_TERMINAL = regex(r"out of pty devices|no more ptys|pseudo-?terminal|/dev/ptmx|openpty|forkpty")
_MEMORY = regex(r"Cannot allocate memory|MemoryError|bad_alloc|[Oo]ut of memory|ENOMEM")
_COMPLAINT = regex(
    r"^[\w./+-]+: .*(?:: Permission denied|: Operation not permitted|cannot create temp file for here-document.*)$",
    re.MULTILINE,
)
"""A program's message about a refused path: a whole line that begins with its name."""


class HeldTo(Record):
    """The enforced confinement of a command."""

    walls: Walls
    gaps: tuple[str, ...]
    """Parts that were requested and are not enforced, a sentence each."""


def wall_notes(output: str, held_to: HeldTo, *, failed: bool) -> list[str]:
    """Return notes on the walls around a command: their gaps, and what its output shows of them; mostly none.

    That of a command which did not fail as a whole may be any text (`grep -r`): there only a program's own complaint counts.
    """
    notes = [f"[not enforced: {visible_line(gap, 300)}]" for gap in held_to.gaps[:MAX_PLACES]]
    if not failed and not _COMPLAINT.search(output):
        return notes
    if _REFUSED.search(output):
        notes.append(
            f"[confined: it may write {_places(held_to.walls)}; a refused write or a hidden file may come from that]"
        )
    if not held_to.walls.internet and (_UNREACHABLE.search(output) or ("socket" in output and _REFUSED.search(output))):
        notes.append("[confined: it has no network; that it could not connect may come from that]")
    if failed and _TERMINAL.search(output):
        notes.append(
            "[confined: it opens no pseudo-terminal while one is in use here; that it got none may come from that]"
        )
    if failed and _MEMORY.search(output):
        notes.append("[limited: a process may have 4 GiB of memory of its own; that it got no more may come from that]")
    return notes


def _places(walls: Walls) -> str:
    places = [*walls.write, *([] if walls.temporary is None else [walls.temporary])]
    names = ", ".join(visible_line(place, 100) for place in places[:MAX_PLACES])
    more = f" and {len(places) - MAX_PLACES} more" if len(places) > MAX_PLACES else ""
    return f"{names}{more}" if names else "nothing"


def is_unbound(level: str) -> bool:
    """Say whether the kernel holds commands to nothing, by what `CommandWalls.level` says of it."""
    return level.partition(":")[0].strip() == UNBOUND
