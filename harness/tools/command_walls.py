"""The walls around a command: kernel confinement (the sandbox) that enforces the effects of its verdict."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from harness.actions import Access, Effects, Enforcement
from harness.errors import ToolError
from harness.files.own_temporary import OwnTemporary
from harness.files.repository import changed_files, git_folders, git_top, tracked_from
from harness.files.workspace import Workspace
from harness.paths import is_within, is_within_any
from harness.policy.opened_places import held_places
from harness.policy.policy import Policy
from harness.policy.rules import Rule
from harness.policy.walls_here import WallsHere
from harness.process.environment import real_folder
from harness.process.guard import guard
from harness.process.start import NotConfinedError
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
    known_no_namespaces,
    prepare,
    probe,
    why_no_namespaces,
)
from harness.sandbox.walls import TEMPORARY, Walls, covered_places
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from harness.files.hard_links import HardLinks
    from harness.files.tree_listing import ListedTree, TreeListing
    from harness.process.own_code import OwnCode
    from harness.tools.forbidden_files import ForbiddenFiles


_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""Folder with the package of the harness."""
UNBOUND = "none"
"""Start of the level of confinement on a machine without walls."""
WORKSPACE = "the workspace"
OPENED = "fully writable, so that files can be made and removed there"
"""Note on folders that are fully writable. Landlock cannot permit single names in a folder."""
MAX_TOLD = 5
"""Maximum number of paths of one kind in a note."""
UNCONFINED = f"{UNBOUND}: it asked to run unconfined"
MOST_LOOKED_AT = 100_000
"""Maximum number of files and folders of a workspace that are searched for forbidden files."""
MOST_WALLED = 200
"""Maximum number of places of the workspace with a wall around them. Each of them needs a mount."""
MOST_EXPOSED = 200
"""Maximum number of files without a wall that a grant may list."""
NOT_LOOKED_FOR = (
    f"a hidden file has other names (hard links) that cannot all be found: there are more than {MOST_LOOKED_AT:,} files, or "
    "a folder that cannot be listed"
)
CLOSED = "cannot be made, because its folder stays read-only"
_IN_WORKSPACE = Effects(read=None, write=None, granted=(".",), network=False, unasked=True)
_OBEYED_BY_GIT = ("config", "config.worktree", "hooks")
_LEADS_TO_OTHERS = ("commondir", "gitdir")
"""Files in the git folder of a worktree that name its repository and its working tree."""
_NO_PLACES = ("/dev", "/proc", "/sys")
"""Places that a policy cannot hide, like `/` itself (effects.place_problem).

If a hidden path leads into one of them, a link was created after the policy was checked.
"""
CONTAINER_HINT = (
    "in a container, run it with a seccomp profile that allows the landlock_* calls (Docker 23 and newer do), on Linux 6.2 "
    "or newer, or install bubblewrap and allow user namespaces"
)


class CommandWalls:
    """The walls around the commands of one workspace."""

    def __init__(self, workspace: Workspace, *, hide: Sequence[str] = (), machine: Machine | None = None) -> None:
        """Store the arguments. `hide` are absolute paths to hide in addition to those of the policy.

        If `machine` is `None`, the features of this machine are tested at the first use.
        """
        self._workspace = workspace
        self._hide = tuple(hide)
        self._given_machine = machine
        self._forbidden_cache: tuple[object, tuple[ForbiddenFiles, ForbiddenFiles]] | None = None

    @cached_property
    def _listing(self) -> TreeListing:
        from harness.files.tree_listing import TreeListing

        return TreeListing(self._workspace.root)

    @cached_property
    def _hard_links(self) -> HardLinks:
        from harness.files.hard_links import HardLinks

        return HardLinks(self._workspace.root, MOST_LOOKED_AT)

    @cached_property
    def _machine(self) -> Machine:
        return self._given_machine or probe()

    @cached_property
    def confines(self) -> bool:
        """Whether this machine can prevent commands from writing and from using the network."""
        return enforces(self._machine)

    @property
    def has_namespaces(self) -> bool:
        """Whether commands get namespaces of their own, as far as that was tested."""
        return known_no_namespaces(self._machine) == ""

    def limits_hosts(self, effects: Effects) -> bool:
        """Return whether a command gets a separate network, since it may reach only some hosts."""
        return bool(effects.hosts) and not effects.network and self._by_host

    @cached_property
    def _by_host(self) -> bool:
        return not why_no_namespaces(self._machine)

    @cached_property
    def level(self) -> str:
        """This machine's level of confinement, in one short line: `Landlock 7, seccomp`, or `none` and the reason."""
        machine = self._machine
        return describe(machine) if self.confines else f"{UNBOUND}: {'; '.join(machine.reasons) or describe(machine)}"

    @cached_property
    def lack(self) -> str:
        """Reason why this machine can neither hide nor protect a file in the workspace. Empty if it can, or has no walls."""
        if not self.confines or hides_where_it_may_write(self._machine):
            return ""
        return f"no namespaces: {visible_line(why_no_namespaces(self._machine), 150)}"

    def in_words(self, effects: Effects) -> str:
        """Return a description of the confinement to `effects`: `level`, and notes on the inexact parts.

        Landlock permits only whole folders with everything below. To let a command create or remove a name, its whole
        folder becomes writable. Other parts that cannot be enforced are listed in the result of the call
        (`Confinement.gaps`).
        """
        if effects.enforcement is Enforcement.OFF:
            return UNCONFINED
        if effects.left_out:
            return f"{self.level}; {left_out_in_words(effects)}"
        if not self.confines or not (effects.named_paths or effects.granted):  # opens no path and no socket
            return self.level
        walls = walls_for(effects, self._workspace, hide=self._hide)
        if (
            walls.reader and not effects.named_paths
        ):  # granted, but not writable: the path does not exist, or is reached by a link
            return self.level
        named_paths = set(effects.named_paths)
        trees = {path for entry in effects.granted if (path := _granted(entry, self._workspace)) is not None}
        hides = hides_where_it_may_write(self._machine)
        notes = (
            ("not hidden", [] if hides else [p for p in walls.hide if is_within_any(p, walls.write)]),
            (OPENED, [path for path in walls.write if path not in named_paths and path not in trees]),
            (CLOSED, [path for path in effects.named_paths if not is_within_any(path, walls.write)]),
            ("cannot be moved or removed", [path for path in effects.entries if _is_held(path, walls.write)]),
            (
                "not protected",
                [] if hides else [p for p in effects.keep if is_within_any(p, walls.write) and os.path.lexists(p)],
            ),
        )
        root = self._workspace.root
        parts = (
            f"{words}: {', '.join(WORKSPACE if path == root else path for path in paths[:MAX_TOLD])}"
            for words, paths in notes
            if paths
        )
        unheld = (f"but {effects.unheld}",) if effects.unheld else ()
        return "; ".join((self.level, *unheld, *parts))

    def walls_here(self, policy: Policy, tool: str) -> WallsHere:
        """Return the walls that this machine can put around a granted program, in the workspace as it is now."""
        from harness.tools.forbidden_files import excepted_folders, is_of_git, rules_about_files

        root = self._workspace.root
        if not self.confines:
            return WallsHere(root=root, confines=False, missing=self.level, by_host=False)
        walls = WallsHere(
            root=root,
            confines=False,
            hides=not is_within_any(root, _NO_PLACES),
            holds=hides_where_it_may_write(self._machine),
            by_host=self._by_host,
        )
        rules = rules_about_files(policy, tool)
        tree = self._listing.look(excepted_folders(rules), MOST_LOOKED_AT) if rules else self._listing.NOTHING
        if not tree.is_whole:
            reason = f"more than {MOST_LOOKED_AT:,} files, or a folder that cannot be listed"
            return replace(
                walls, missing=f"what a rule forbids cannot be looked for: there are {reason}", forbidden=None
            )
        unread, unwritten = self._forbidden(rules, tree)
        walls = replace(walls, forbidden=unwritten.files)
        if not walls.hides or not hides_where_it_may_write(self._machine):
            exposed = tuple(sorted(name for name in {*unread.files, *unwritten.files} if not is_of_git(name)))
            missing = self._not_hidden()
            if len(exposed) > MOST_EXPOSED:
                more = max(unread, unwritten, key=lambda files: len(files.files))
                text = f"without bubblewrap it could read or change more than {MOST_EXPOSED} files"
                missing = _against(more.rule, text)
            return replace(walls, confines=not missing, missing=missing, exposed=exposed, reason=self.lack)
        if len({*unread.places, *unwritten.places}) > MOST_WALLED:
            more = max(unread, unwritten, key=lambda files: len(files.places))
            text = f"walls are put around {MOST_WALLED} places at most, and it could reach more"
            return replace(walls, missing=_against(more.rule, text))
        return replace(
            walls,
            confines=True,
            hidden=tuple(f"{root}/{place}" for place in unread.places),
            held_places=tuple(f"{root}/{place}" for place in unwritten.places),
        )

    def _forbidden(self, rules: tuple[Rule, ...], tree: ListedTree) -> tuple[ForbiddenFiles, ForbiddenFiles]:
        """Return the files that the rules forbid to read, and those that they forbid to write.

        Cached while neither rules nor names change.
        """
        if self._forbidden_cache is None or self._forbidden_cache[0] != (rules, tree):
            from harness.tools.forbidden_files import forbidden_files, with_any_name

            names = with_any_name(tree.files, tree.folders)
            forbidden = forbidden_files(rules, Access.READ, names), forbidden_files(rules, Access.WRITE, names)
            self._forbidden_cache = ((rules, tree), forbidden)
        return self._forbidden_cache[1]

    def _not_hidden(self) -> str:
        """Return a sentence on a part of the workspace that the policy hides but Landlock cannot. Empty if there is
        none.
        """
        hidden = walls_for(_IN_WORKSPACE, self._workspace, hide=self._hide).hide
        inside = next((path for path in hidden if is_within(path, self._workspace.root)), "")
        words = "cannot be hidden in a folder that may be written, without bubblewrap"
        return f"{visible_line(inside, 200)} {words}" if inside else ""

    def confinement(
        self,
        effects: Effects,
        temporary: Callable[[], str],
        hold: Sequence[str] = (),
        *,
        terminal: str = "",
        by_host: bool = False,
        programs: Sequence[str] = (),
    ) -> Confinement | None:
        """Return the walls for one command, or `None` if it runs without.

        The thread that starts the command enters the walls.

        `hold` are the absolute paths of protected places, to keep unchanged as far as these walls can. `temporary`
        returns the folder for temporary files of commands that may write, and may create it. `terminal` is the path of
        the separate terminal that is its standard streams, if any. `by_host` means that a command that may reach only
        some hosts gets a separate network from the caller; otherwise it reaches no host. `programs` are the folders of
        PATH, which stay readable. Missing folders that a rule grants are created.

        Raises ToolError if required walls cannot be enforced, and NotConfinedError if the system refuses them.
        """
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
        if required and effects.unheld:
            raise ToolError(
                f"The policy requires the walls of commands, and they are not whole here: {effects.unheld}."
            )
        try:
            for folder in missing_folders(effects, self._workspace):
                os.makedirs(folder, exist_ok=True)
            walls = walls_for(effects, self._workspace, temporary=temporary, hide=self._hide, hold=hold)
            if walls.hold and hides_where_it_may_write(self._machine):
                walls = replace(walls, keep=(*walls.keep, *walls.hold), hold=())
            walls = self._keeping_code(walls)
            walls, unfound = self.by_every_name(walls, required=required)
            apart = by_host and self.limits_hosts(effects)
            walls = replace(walls, terminal=bool(terminal), console=terminal)
            walls = replace(walls, own_network=apart, readable=self._readable(programs))
            confinement = prepare(walls, self._machine, unhidden=Unhidden.REFUSE if required else Unhidden.TELL)
        except Unenforceable as error:
            raise ToolError(f"The command cannot be confined, and was not run: {error}.") from None
        except OSError as error:
            raise NotConfinedError(error.errno or 0, error.strerror or str(error)) from error
        confinement.gaps += unfound
        return confinement

    def by_every_name(self, walls: Walls, *, required: bool) -> tuple[Walls, tuple[str, ...]]:
        """Return walls that hide files by all their names in the workspace, and a sentence if some may be missing.

        Raises ToolError if the walls are required and some may be missing.
        """
        other_names = self._hard_links.other_names(walls.hide)
        if required and not other_names.is_whole:
            raise ToolError(f"The policy requires the walls of commands, and {NOT_LOOKED_FOR}.")
        return walls.hiding(other_names.paths), () if other_names.is_whole else (NOT_LOOKED_FOR,)

    def own_temporary(self, folder: Callable[[], str], programs: Sequence[str]) -> OwnTemporary | None:
        """Return the `/tmp` of the commands of a session. `None` if they have that of the machine.

        `folder` returns the session's folder for temporary files, and may create it. `programs` are the folders of PATH.
        """
        if not self.confines or why_no_namespaces(self._machine):
            return None
        outputs = self._workspace.outputs
        paths = (*self._readable(programs), *self._workspace.skills, *([] if outputs is None else [outputs]))
        visible = [path for path in paths if is_within_any(path, TEMPORARY) and os.path.lexists(path)]
        try:
            return OwnTemporary(places=covered_places(), folder=folder(), visible_paths=tuple(dict.fromkeys(visible)))
        except OSError:
            return None

    def _readable(self, programs: Sequence[str]) -> tuple[str, ...]:
        """Return the paths that a command may read although it sees nothing else below `/tmp`.

        A workspace below `/tmp` has its neighbours there: the whole folder of `/tmp` in which it is.
        """
        root = self._workspace.root
        top = next(
            ("/".join(root.split("/")[: folder.count("/") + 2]) for folder in TEMPORARY if is_within(root, folder)),
            root,
        )
        paths = (self._workspace.home, *(git_folders(git_top(root)) or ()), sys.prefix, _PACKAGE, *programs)
        return (top, root, *self._workspace.added, *dict.fromkeys(map(real_folder, paths)))

    def own_environment(self, walls: Walls) -> str:
        """Return harness's own Python environment if it is in a writable folder, and these walls can protect it."""
        environment = _own_code().environment_within(walls.write)
        return environment if environment and hides_where_it_may_write(self._machine) else ""

    def _keeping_code(self, walls: Walls) -> Walls:
        """Return walls that also keep harness's own Python environment unchanged, if they can.

        Record the state of harness's code that a command could still change.
        """
        if walls.reader:
            return walls
        kept_path, code = self.own_environment(walls), _own_code()
        outside = any(not is_within(path, self._workspace.root) for path in walls.write)
        _note_code(None if outside and code.has_other_names() else walls.write, kept_path)
        return replace(walls, keep=(*walls.keep, kept_path)) if kept_path else walls


def _own_code() -> OwnCode:
    from harness.process.own_code import own_code

    return own_code()


def _note_code(write: Sequence[str] | None, kept_path: str = "") -> None:
    """Record the state of harness's own code before a command that may write to `write` (see `OwnCode.note_before`).

    Start the guard process first, since a start from recorded code reads all of it again. Wait until it has loaded its code.
    """
    running = guard()
    _own_code().note_before(write, kept_path)
    if _own_code().is_noted:
        running.wait_until_loaded()


def _against(rule: Rule | None, text: str) -> str:
    return visible_line(f"{text}, against rule {rule.label if rule else ''}", 400)


def left_out_in_words(effects: Effects) -> str:
    """Return a note with the files that are hidden from a command because a rule denies reading them."""
    names = ", ".join(visible_line(name, 200) for name in effects.left_out[:MAX_TOLD])
    more = f" and {len(effects.left_out) - MAX_TOLD} more" if len(effects.left_out) > MAX_TOLD else ""
    return f"left out, since a rule denies reading: {names}{more}"


def left_out_note(effects: Effects) -> str:
    """Return the note about hidden files at the end of a command's output."""
    return f"[{left_out_in_words(effects)}; a program that cannot open them may end with an error, and `&&` behind it stops]"


def walls_for(
    effects: Effects,
    workspace: Workspace,
    *,
    temporary: Callable[[], str] | None = None,
    hide: Sequence[str] = (),
    hold: Sequence[str] = (),
) -> Walls:
    """Return the walls that confine a command to `effects`, from the current state of the disk.

    `temporary` returns the folder for temporary files of a command that may write. `hide` are paths to hide in addition
    to those of the policy, and `hold` the protected places; those that the effects open are left out. Raises ToolError
    if a file that must be hidden leads to a device.

    INVARIANT: only places that a policy or a part of the command names are writable, with everything below. A granted
    folder of the workspace must be in the workspace after links are followed. One outside of it must not contain a path
    that no call may write (policies, trust, logs).
    """
    write_protected = _without_named(effects.hold, effects)
    trees = [
        path
        for entry in effects.granted
        if (path := _granted(entry, workspace)) and os.path.lexists(path) and not is_within_any(path, write_protected)
    ]
    entries = frozenset(effects.entries)
    named_paths = [
        path
        for name in effects.named_paths
        for path in _writable_places(name, workspace, entry=name in entries)
        if not is_within_any(path, trees)  # bubblewrap would mount it separately, and then it could not be moved
    ]
    write = [path for path in (*trees, *named_paths) if not _holds_any(path, effects.keep, workspace)]
    # Skip missing paths: resolving some thirty names takes longer than setting up the walls.
    placed = (_placed(entry, workspace.root, workspace.home) for entry in effects.hide)
    by_policy = [os.path.realpath(path) for path in placed if os.path.lexists(path)]
    hide = (*hide, *(os.path.join(workspace.root, name) for name in effects.left_out))
    hidden = dict.fromkeys((*by_policy, *(os.path.realpath(path) for path in hide if os.path.lexists(path))))
    if effects.left_out and any(path == "/" or is_within_any(path, _NO_PLACES) for path in hidden):
        raise ToolError("What a rule denies to read leads to a device, and cannot be hidden. Nothing was run.")
    if effects.shows_tracked:
        visible_paths = _unchanged_tracked(workspace.root, [path for path in hidden if is_within(path, workspace.root)])
        hidden = {path: None for path in hidden if path not in visible_paths}
    else:
        visible_paths = frozenset()
    skills = (path for path in workspace.skills if not is_within_any(path, by_policy))
    repositories = list(_repositories([path for path in write if not is_within(path, workspace.root)], write))
    obeyed = (f"{path}/{name}" for path in repositories for name in _OBEYED_BY_GIT)
    return Walls(
        write=tuple(dict.fromkeys(write)),
        network=effects.network,
        hide=tuple(path for path in hidden if path != "/" and not is_within_any(path, _NO_PLACES)),
        show=(*([] if workspace.outputs is None else [workspace.outputs]), *skills, *sorted(visible_paths)),
        keep=(
            *(real for path in write_protected if is_within(real := os.path.realpath(path), workspace.root)),
            *(path for path in obeyed if os.path.lexists(path)),
        ),
        hold=(
            *(f"{path}/{name}" for path in repositories for name in _LEADS_TO_OTHERS),
            *held_places(hold, workspace.root, effects.changes, writes_git=effects.writes_git),
        ),
        unix_sockets=effects.sockets,
        needed_socket=effects.sockets,
        temporary=None if temporary is None or (effects.looks_only and not effects.own_tmp) else temporary(),
        own_tmp=effects.own_tmp,
        meets_servers=effects.meets_servers,
    )


def _unchanged_tracked(root: str, places: Sequence[str]) -> frozenset[str]:
    """Return the files at or below `places` that git tracks in the repository around `root`, without changed ones."""
    tracked = tracked_from(root) if places else None
    if tracked is None:
        return frozenset()
    top, files = tracked
    hidden = frozenset(places)
    # Each name is tried with all folders above it, since there may be many tracked files.
    below = [file for file in files if not hidden.isdisjoint(accumulate(f"{top}/{file[0]}".split("/"), "{}/{}".format))]
    changed = frozenset(changed_files(top, below))
    return frozenset(f"{top}/{name}" for name, *_ in below if name not in changed)


def _repositories(places: Sequence[str], write: Sequence[str]) -> Iterator[str]:
    """Yield the git folders among `places`, and those of worktrees there whose working tree is in no place of `write`."""
    for path in places:
        if os.path.isfile(f"{path}/HEAD"):
            yield path
        elif os.path.basename(path) == "worktrees" and os.path.isdir(path):
            for name in os.listdir(path):
                link = (
                    (read_small(f"{path}/{name}/gitdir", 4096) or b"").decode("utf-8", "surrogateescape").rstrip("\n")
                )
                tree = os.path.join(path, name, link)
                if os.path.lexists(tree) and not is_within_any(tree, write):
                    yield f"{path}/{name}"


def _without_named(places: Sequence[str], effects: Effects) -> tuple[str, ...]:
    """Return `places` without those that contain a path which the command names to write and the user approved."""
    return tuple(place for place in places if not any(is_within(name, place) for name in effects.named_paths))


def missing_folders(effects: Effects, workspace: Workspace) -> Iterator[str]:
    """Yield the missing folders of the workspace that are granted by a name with a slash at the end."""
    for entry in effects.granted:
        if entry.endswith("/") and not entry.startswith(("/", "~")):
            path = _granted(entry, workspace)
            if path is not None and not os.path.lexists(path):
                yield path


def _holds_any(tree: str, kept_paths: Sequence[str], workspace: Workspace) -> bool:
    """Return whether a place outside the workspace contains a path of `kept_paths`, which no call may write, or is in
    one.
    """
    if is_within(tree, workspace.root):
        return False
    return any(is_within(path, tree) or is_within(tree, path) for path in kept_paths)


@lru_cache(maxsize=256)
def _placed(entry: str, root: str, home: str) -> str:
    """Return the absolute path of a place as written in a policy."""
    if entry == "~" or entry.startswith("~/"):
        return os.path.normpath(home + entry[1:])
    return os.path.normpath(os.path.join(root, entry))


def _granted(entry: str, workspace: Workspace) -> str | None:
    """Return the path of a granted place. `None` for `/`, and for a place of the workspace that is reached by a link.

    INVARIANT: a link in the workspace grants nothing, as it may come from the repository or the model.
    """
    placed = _placed(entry, workspace.root, workspace.home)
    if placed == workspace.root:
        return placed
    real = os.path.realpath(placed)
    if entry.startswith(("/", "~")):
        return None if real == "/" else real
    return placed if real == placed and is_within(placed, workspace.root) else None


def _writable_places(path: str, workspace: Workspace, *, entry: bool) -> Iterator[str]:
    """Yield the places that must be writable so that a command can write `path`: the path itself and its folder.

    For an existing file outside the workspace, the folder is left out, as the file can be written in place. With
    `entry`, the file may be moved, removed or replaced, so its folder is needed. A link is then not yielded itself.
    """
    if not path.startswith("/"):
        return  # not the name of a file
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
    """Return whether a folder is too large to make writable because of one path in it.

    Such folders are `/`, folders of devices, the home folder, and folders that contain it or the workspace. INVARIANT:
    such a folder never becomes writable because of a path that a command names.
    """
    if folder == workspace.root:
        return False
    holds = any(is_within(place, folder) for place in (workspace.root, workspace.home))
    return holds or is_within_any(folder, _NO_PLACES)


def _is_held(path: str, folders: Sequence[str]) -> bool:
    """Return whether a file is writable, but cannot be moved or removed, because its folder is not writable."""
    return is_within_any(path, folders) and not is_within_any(os.path.dirname(path), folders)


MAX_PLACES = 8
OPENS_PROTECTED = (
    "to change it, call edit_file or write_file, or use a command that names it as its target; the user is then asked, and "
    "can also open all protected places with [o] at the question of a command"
)
"""Way to a protected place, for the model."""
CLOSED_BY_POLICY = "no command can open it; ask the user if it has to change"

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


_UNCHANGEABLE = regex(
    r"Device or resource busy|resource busy or locked|EBUSY|Read-only file system|EROFS|Invalid cross-device link|EXDEV"
)
"""Errors of a program that replaces a mounted file or folder, writes a read-only one, or moves a file into one."""
_BETWEEN_WORDS = regex(r"[\s'\"`:;,()\[\]]+")
_MISSING_IN_TMP = regex(r"/tmp/.*(?:No such file|ENOENT|[Nn]ot found)|(?:No such file|ENOENT).*/tmp/")  # noqa: S108 - a name
_TERMINAL = regex(r"out of pty devices|no more ptys|pseudo-?terminal|/dev/ptmx|openpty|forkpty")
_MEMORY = regex(r"Cannot allocate memory|MemoryError|bad_alloc|[Oo]ut of memory|ENOMEM")
_COMPLAINT = regex(
    r"^[\w./+-]+: .*(?:: (?:Permission denied|Operation not permitted|Read-only file system|Device or resource busy)"
    r"|cannot create temp file for here-document.*)$",
    re.MULTILINE,
)
"""A program's message about a refused path: a whole line that begins with the name of the program."""


class HeldTo(Record):
    """The enforced confinement of a command."""

    walls: Walls
    gaps: tuple[str, ...]
    """Parts that were requested but are not enforced, one sentence each."""
    has_own_tmp: bool = False
    """Whether its `/tmp` is the session's own."""
    by_rule: tuple[str, ...] = ()
    """Absolute paths of `walls.keep` that a rule of the policy forbids to write, or asks about."""


def wall_notes(output: str, held_to: HeldTo, *, failed: bool) -> list[str]:
    """Return notes on the walls around a command: their gaps, and errors in its output that they may have caused.

    The output of a command that did not fail may be any text (`grep -r`), so only error messages of programs count in
    it.
    """
    notes = [f"[not enforced: {visible_line(gap, 300)}]" for gap in held_to.gaps[:MAX_PLACES]]
    if not failed and not _COMPLAINT.search(output):
        return notes
    if _REFUSED.search(output):
        notes.append(
            f"[confined: it may write {_places(held_to.walls)}; a refused write or a hidden file may come from that]"
        )
    notes += _notes_on_places(output, held_to)
    if held_to.has_own_tmp and _MISSING_IN_TMP.search(output):
        notes.append("[confined: /tmp is the session's own: only files that calls of this session left are there]")
    if not held_to.walls.internet and (_UNREACHABLE.search(output) or ("socket" in output and _REFUSED.search(output))):
        notes.append("[confined: it has no network; that it could not connect may come from that]")
    if failed and _TERMINAL.search(output):
        notes.append(
            "[confined: it opens no pseudo-terminal while one is in use here; that it got none may come from that]"
        )
    if failed and _MEMORY.search(output):
        notes.append("[limited: a process may have 4 GiB of memory of its own; that it got no more may come from that]")
    return notes


def _notes_on_places(output: str, held_to: HeldTo) -> Iterator[str]:
    """Yield notes on the write-protected and hidden paths that error messages name, each with what would open them."""
    lines = [line for line in output.splitlines() if _UNCHANGEABLE.search(line)][-MAX_PLACES:]
    walls = held_to.walls
    closed_paths = [path for path in (*walls.keep, *walls.hide) if lines and is_within_any(path, walls.write)]
    named_paths = {path for line in lines for path in _named_in(line, closed_paths, walls.write)}
    protected = named_paths.difference(held_to.by_rule, walls.hide)
    for paths, state, way in (
        (protected, "protected", OPENS_PROTECTED),
        (named_paths.intersection(held_to.by_rule), "write-protected by a rule of the policy", CLOSED_BY_POLICY),
        (named_paths.intersection(walls.hide), "hidden by the policy", CLOSED_BY_POLICY),
    ):
        if paths:
            names = ", ".join(visible_line(path, 200) for path in sorted(paths)[:MAX_TOLD])
            more = f" and {len(paths) - MAX_TOLD} more" if len(paths) > MAX_TOLD else ""
            error = 'a program that writes or replaces it gets "read-only", "busy" or "cross-device"'
            yield f"[confined: {names}{more}: {state}; {error}; {way}]"


def _named_in(line: str, paths: Sequence[str], write: Sequence[str]) -> Sequence[str]:
    """Return those of `paths` that a line names by its longest matching word.

    A word names a path too if it names a folder above it or a file below it.
    """
    lengths: dict[str, int] = {}
    for word in filter(None, (word.removeprefix("./").rstrip("/.") for word in _BETWEEN_WORDS.split(line))):
        for path in paths:
            word_paths = (os.path.join(folder, word) for folder in write)
            below = [place for place in word_paths if is_within_any(place, write) and place not in write]
            is_around = any(is_within(path, place) or is_within(place, path) for place in below)
            if is_around or path.endswith(f"/{word}"):
                lengths[path] = max(len(word), lengths.get(path, 0))
    longest = max(lengths.values(), default=0)
    return [path for path, length in lengths.items() if length == longest]


def _places(walls: Walls) -> str:
    places = [*walls.write, *([] if walls.temporary is None else [walls.temporary])]
    names = ", ".join(visible_line(place, 100) for place in places[:MAX_PLACES])
    more = f" and {len(places) - MAX_PLACES} more" if len(places) > MAX_PLACES else ""
    return f"{names}{more}" if names else "nothing"


def is_unbound(level: str) -> bool:
    """Return whether commands run without walls, by a `level` of `CommandWalls`."""
    return level.partition(":")[0].strip() == UNBOUND


def confinement_words(level: str) -> str:
    """Return a line for users about the confinement of commands, by a `level` of `CommandWalls`."""
    if not is_unbound(level):
        return f"walls: the kernel confines each command ({level})"
    reason = level.partition(":")[2].strip()
    return f"walls: NONE, a command can do all that you can{f' ({reason})' if reason else ''}"
