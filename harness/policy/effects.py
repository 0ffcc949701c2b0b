"""Effects: the places and hosts that a judged call may use, derived from its facets and the grants of policies."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import assert_never

from harness.actions import (
    Access,
    Act,
    Command,
    Effects,
    Enforcement,
    Facet,
    Opaque,
    Opening,
    PathAccess,
    Place,
    ToolUse,
    Unconfined,
)
from harness.paths import is_within
from harness.policy.built_in import is_protected
from harness.policy.git_data import runs_hooks_at_most, writes_git
from harness.policy.granted_programs import CACHES, owned_caches
from harness.policy.hosts import HostPattern, Reach, is_loopback, meet
from harness.policy.openings import hooks_of, places_of, reach_of, socket_of
from harness.policy.rules import Layer, Origin, Rule
from harness.record import Record, replace
from harness.regex import regex

DEFAULT_WRITE = (".",)
"""Default writable places of a command that a person approved: the workspace."""
DEFAULT_HIDE = (
    "~/.ssh", "~/.aws", "~/.azure", "~/.gnupg", "~/.kube", "~/.docker", "~/.netrc", "~/.git-credentials",
    "~/.config/git/credentials", "~/.cache/git/credential", "~/.pypirc", "~/.pgpass",
    "~/.password-store", "~/.config/gh", "~/.config/gcloud", "~/.config/op", "~/.local/share/keyrings",
    "~/.cargo/credentials.toml", "~/.terraform.d", "~/.mozilla", "~/.config/google-chrome", "~/.config/chromium",
    "~/.config/BraveSoftware", "~/.bash_history", "~/.zsh_history", "~/.python_history", "~/.psql_history",
    "~/.mysql_history", "~/.node_repl_history", "~/.local/share/fish",
)  # fmt: skip
"""Places that commands cannot read unless a policy shows them: keys, browser profiles, shell histories."""

_HOLDS_GIT = frozenset((".", ".git"))
"""Places with the repository. A command that may write one of them may write the repository's data elsewhere too."""
MOST_CHANGES = 50
"""Maximum number of protected places that one approval opens by name."""
_TMP = regex(r"^(?:/var)?/tmp")
_BOUNDED = (Act.LOOKS, Act.WRAPS, Act.WRITES)
_GUESSED = (Act.RUNS, Act.UNKNOWN)
"""Acts that may have any effect on their operands, or none."""


class SandboxTable(Record):
    """The [sandbox] of one file; `None` for a missing key."""

    origin: Origin
    layer: Layer
    required: bool = False
    network: bool | None = None
    hosts: tuple[str, ...] | None = None
    """The hosts, if the key `network` is a list; the field `network` is `None` then."""
    write: tuple[str, ...] | None = None
    hide: tuple[str, ...] = ()
    show: tuple[str, ...] | None = None
    """Entries of DEFAULT_HIDE that are not hidden."""
    trusted: bool = True
    """Whether the file may loosen limits. If not, its lists can only remove permissions and hide more places."""

    def tightening(self) -> SandboxTable:
        """Return the part that counts in an untrusted project."""
        return SandboxTable(
            origin=self.origin,
            layer=self.layer,
            required=self.required,
            network=False if self.network is False else None,
            hosts=self.hosts,
            write=self.write,
            hide=self.hide,
            show=self.show,
            trusted=False,
        )

    def seen_from(self, top: str) -> SandboxTable:
        """Return the table of the folder `top` for a workspace below it: what it hides, without its other places."""
        hide = tuple(place if place.startswith(("/", "~")) else posixpath.join(top, place) for place in self.hide)
        return replace(self, write=None, show=None, hide=hide)

    @property
    def reach(self) -> Reach:
        """The hosts that the table permits."""
        return () if self.network is False else self.hosts


class Sandbox(Record):
    """The [sandbox] of all files together: the limits of an approved command whose effects are not modelled."""

    write: tuple[str, ...]
    caches: tuple[str, ...]
    """Further places that only their own package managers may write."""
    network: bool
    hosts: tuple[str, ...]
    """Hosts that may be reached if `network` is `False`."""
    hide: tuple[str, ...]
    required: Origin | None
    """File and line that forbid unconfined commands. `None` if they are not forbidden."""

    def reach_for(self, needed: Reach) -> Reach:
        """Return the hosts that an approved command may reach which needs the hosts `needed`."""
        return needed if self.network or needed == () else self.hosts

    def opened(self, effects: Effects, openings: Collection[Opening]) -> Effects:
        """Return effects with what the user opened at the approval prompt, as far as the policy permits the network."""
        network, hosts = effects.network, effects.hosts
        if Opening.NETWORK in openings:
            network = network or self.network
            hosts = () if network else tuple(dict.fromkeys((*hosts, *self.hosts)))
        return replace(
            effects,
            network=network,
            hosts=hosts,
            sockets=effects.sockets or Opening.SOCKETS in openings,
            opens_places=effects.opens_places or Opening.PLACES in openings,
        )

    def openings(self, effects: Effects) -> tuple[Opening, ...]:
        """Return the openings that would permit more than `effects`."""
        return tuple(opening for opening in Opening if self.opened(effects, (opening,)) != effects)

    def caches_of(self, parts: Iterable[Facet]) -> tuple[str, ...]:
        """Return those of `caches` that the commands among `parts` own."""
        owned = {place for part in parts if isinstance(part, Command) for place in owned_caches(part)}
        return tuple(place for place in self.caches if place in owned)


@lru_cache(maxsize=64)
def sandbox_of(tables: tuple[SandboxTable, ...]) -> Sandbox:
    """Combine the tables of all files. A permission holds only if every file grants it.

    A place is hidden if any file hides it. Places in DEFAULT_HIDE are hidden too, unless every trusted file with a
    `show` list shows them.
    """
    lists = [table.write for table in tables if table.write is not None]
    if not any(table.write is not None and table.trusted for table in tables):
        lists.append(DEFAULT_WRITE)
    shown_places = [
        {posixpath.normpath(place) for place in table.show}
        for table in tables
        if table.show is not None and table.trusted
    ]
    hidden = [
        place for place in DEFAULT_HIDE if not shown_places or any(place not in places for places in shown_places)
    ]
    hidden += [place for table in tables for place in table.hide]
    reach = _reach_in(None, tables)
    entries = dict.fromkeys(posixpath.normpath(entry) for entries in lists for entry in entries)
    allowed = [entry for entry in entries if _is_in_all(entry, lists)]
    return Sandbox(
        write=tuple(entry for entry in allowed if entry not in CACHES),
        caches=tuple(entry for entry in allowed if entry in CACHES),
        network=reach is None,
        hosts=reach or (),
        hide=tuple(dict.fromkeys(hidden)),
        required=next((table.origin for table in tables if table.required), None),
    )


def _reach_in(reach: Reach, tables: Sequence[SandboxTable]) -> Reach:
    """Return the hosts in `reach` that every file allows."""
    for table in tables:
        reach = meet(reach, table.reach)
    return reach


def _is_in_all(entry: str, lists: Sequence[Sequence[str]]) -> bool:
    """Return whether an entry is within an entry of every list."""
    entry = posixpath.normpath(entry)
    return all(any(_within(entry, place) for place in places) for places in lists)


def _within(entry: str, folder: str) -> bool:
    """Return whether an entry is in a folder, comparing both as written. False if in doubt."""
    folder = posixpath.normpath(folder)
    if folder == ".":
        return not entry.startswith(("/", "~"))
    return entry == folder or entry.startswith(f"{folder}/")


def place_problem(place: str) -> str:
    """Return the reason why a place cannot be granted or hidden (ambiguous or too wide), or an empty string."""
    parts = place.removesuffix("/").split("/")
    if not place or place != place.strip() or any(ord(char) < 32 or ord(char) == 127 for char in place):
        return "is no path"
    if set(place) & set("*?[\\"):
        return "is a pattern; patterns are not understood here; name a folder"
    if place.strip("/") in ("", "~"):
        return "would mean everything that a person has: name folders below it"
    if ".." in parts:
        return "must not hold .."
    if place not in (".", "./") and any(part in ("", ".") for part in parts[1 if place.startswith("/") else 0 :]):
        return "is not in its shortest form"
    if place.startswith("~") and parts[0] != "~":
        return "is another person's home; only ~/ is known"
    if parts[:2] in (["", "dev"], ["", "proc"], ["", "sys"]):
        return "is no folder of the disk"
    return ""


def _granted_by_rule(rule: Rule, tables: Sequence[SandboxTable]) -> tuple[tuple[str, ...], Reach]:
    """Return the places and hosts that a rule grants, limited to those that every other file allows.

    A rule overrides the [sandbox] of its own file and of the files together with it, but not that of other files.
    """
    other_tables = [table for table in tables if table.origin.unit != rule.origin.unit]
    lists = [table.write for table in other_tables if table.write is not None]
    write = tuple(entry for entry in rule.opens.write if _is_in_all(entry, lists))
    return write, _reach_in(rule.opens.reach, other_tables)


def effects_of(  # noqa: PLR0913 - the facts of one call, each named where it is passed
    parts: Sequence[Facet],
    *,
    autos: Collection[Rule],
    asked_parts: Sequence[Facet],
    open_ended: bool,
    tables: tuple[SandboxTable, ...],
    keep: Sequence[str],
    named_hosts: Sequence[HostPattern] = (),
    own_tmp: bool = False,
    beside_servers: bool = False,
) -> Effects:
    """Return the effects of an action. `parts` are its facets and the operands of its commands.

    `autos` are the auto rules that permit one of its parts; the action gets their grants. `asked_parts` are the parts
    that need approval: all parts of a call with a question, except those covered by a grant of a program inside walls.
    `open_ended` is set if a person or a default, not a rule, permits a part without a model. Such a command gets the
    policy's general grants. Whoever approves, a fully modelled part gets only its own effects, and a declared tool at
    most the declared ones. `named_hosts` are those of policy.named_hosts, `own_tmp` and `beside_servers` those of the action.

    INVARIANT: an approval opens only what the approved parts are known to need. A granted program gets its grant alone.
    """
    sandbox = sandbox_of(tables)
    bounds = next((part.bounds for part in parts if isinstance(part, ToolUse)), None)
    tool_use = next((part for part in parts if isinstance(part, ToolUse) and (part.host or part.stays_here)), None)
    if tool_use is not None:
        # The network setting of [sandbox] is for commands only: the host of this tool was judged by its name.
        host_names = tuple(pattern.text for pattern in named_hosts) if tool_use.host else ()
        return Effects(
            read=(),
            write=(),
            network=bool(tool_use.host),
            named_hosts=host_names,
            keep=tuple(keep),
            unasked=not asked_parts,
        )
    if bounds is not None:
        lists = [table.write for table in tables if table.write is not None]
        return Effects(
            read=None,
            write=None,
            granted=tuple(entry for entry in bounds.write if _is_in_all(entry, lists)),
            network=bounds.network and sandbox.network,
            hosts=sandbox.hosts if bounds.network else (),
            hide=sandbox.hide,
            keep=tuple(keep),
            enforcement=Enforcement.POSSIBLE if sandbox.required is None else Enforcement.REQUIRED,
            unasked=not asked_parts,
        )
    paths = [part for part in parts if isinstance(part, PathAccess)]
    bounded = all(is_bounded(part) for part in parts)
    walled = len(asked_parts) < len(parts) and any(rule.walled for rule in autos)
    beyond = asked_parts if walled or asked_parts else parts
    """The parts that may get what they need beyond the workspace."""
    written = _surely_written(parts)
    if walled:
        written = [path for path in written if any(path is part for part in asked_parts)]
    granted: list[str] = []
    network, hosts, meets_servers = False, dict[str, None](), False
    for rule in autos:
        write, reach = _granted_by_rule(rule, tables)
        granted += write
        network = network or reach is None
        hosts |= dict.fromkeys(reach or ())
    gives_git = ".git" in granted
    if open_ended:
        granted += (*sandbox.write, *sandbox.caches_of(parts))
    if not _HOLDS_GIT.isdisjoint(granted):
        granted += [place for part in parts if isinstance(part, Command) for place in part.opens]
    if open_ended or asked_parts:
        reaches = [sandbox.reach_for(reach_of(part)) for part in beyond]
        meets_servers = beside_servers and not hosts and any(reaches) and all(map(is_loopback, reaches))
        if meets_servers:
            reaches = []  # the servers are in the network of the walls, which an opening of hosts would leave
        network = network or None in reaches
        hosts |= dict.fromkeys(host for reach in reaches for host in reach or ())
    socket = next(filter(None, map(socket_of, beyond)), "")
    changes = _protected_changes(parts, asked_parts)
    unconfined = any(isinstance(part, Unconfined) for part in parts)
    required = walled or sandbox.required is not None
    enforcement = Enforcement.REQUIRED if required else Enforcement.POSSIBLE
    return Effects(
        read=_places(paths, Access.WRITE) if bounded else None,
        write=_places(paths, Access.READ) if bounded else None,
        named_paths=_places(written, Access.READ),
        entries=_places([path for path in written if path.entry], Access.READ),
        outside=_places([path for path in written if _is_outside(path)], Access.READ),
        granted=tuple(dict.fromkeys(granted)),
        network=network or unconfined,
        hosts=() if network or unconfined else tuple(hosts),
        hide=sandbox.hide,
        shows_tracked=any(isinstance(part, Command) and part.argv[0] == "git" for part in parts),
        keep=tuple(keep),
        changes=changes,
        writes_git=gives_git or any(map(writes_git, parts)) or any(is_within(name, ".git") for name in changes),
        enforcement=Enforcement.OFF if unconfined else enforcement,
        own_tmp=own_tmp,
        meets_servers=meets_servers and not network,
        sockets=bool(socket),
        socket=socket,
        unasked=not asked_parts,
    )


def _is_outside(path: PathAccess) -> bool:
    return path.place in (Place.OUTSIDE, Place.ABOVE, Place.ADDED) and not path.real.startswith("/dev/")


def _protected_changes(parts: Sequence[Facet], asked_parts: Sequence[Facet]) -> tuple[str, ...]:
    """Return the names of the protected places that the parts maintain, or that the approved parts certainly write.

    INVARIANT: without a question, no place is opened to code that does not maintain it itself.
    """
    maintained = [(part, tuple(places_of(part))) for part in parts]
    is_alone = all(names or is_bounded(part) or runs_hooks_at_most(part) for part, names in maintained)
    names = [name for _, each in maintained for name in each] if asked_parts or is_alone else []
    names += [name for part in asked_parts for name in hooks_of(part)]
    for path in _surely_written(asked_parts):
        if path.access is not Access.READ and path.place in (Place.INSIDE, Place.ROOT):
            names += filter(is_protected, (*path.names, *path.below) if path.tree or path.entry else path.names)
    fewest = (name for name in dict.fromkeys(names) if not any(is_within(name, each) for each in names if each != name))
    return tuple(fewest)[:MOST_CHANGES]


def _surely_written(parts: Sequence[Facet]) -> list[PathAccess]:
    """Return the paths that the parts certainly access.

    Left out are words of a program that runs code, or is unknown, if they are only possibly files. Paths in the private
    temporary folder are left out too, since every command may write there.
    """
    guessed: set[int] = set()
    for part in parts:
        if isinstance(part, Opaque) or (isinstance(part, Command) and part.act in _GUESSED):
            guessed.update(id(path) for path in part.paths if path.access is Access.EITHER)
    paths = [part for part in parts if isinstance(part, PathAccess) and id(part) not in guessed]
    return [path for path in paths if path.place is not Place.TEMPORARY]


def _places(paths: Sequence[PathAccess], other: Access) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_place(path) for path in paths if path.access is not other))


def _place(path: PathAccess) -> str:
    return _TMP.sub("$TMPDIR", path.real, 1) if path.place is Place.TEMPORARY else path.real


def is_bounded(facet: Facet) -> bool:
    """Return whether a part has known maximum effects."""
    match facet:
        case PathAccess() | Unconfined():
            return True
        case Command():
            return facet.act in _BOUNDED
        case Opaque() | ToolUse():
            return False
        case _:
            assert_never(facet)
