"""Destroying: what in a call deletes or overwrites for good, in words for the person who is asked; pure, decides nothing.

Meant to find too much rather than too little: a hit by mistake costs a typed word. It forbids nothing: rules do that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from harness.actions import Access, Act, Action, Command, Facet, Opaque, PathAccess, Place, ToolUse, Unconfined
from harness.destroying_git import git_destroys, has, plain

Words: TypeAlias = Sequence[str]

_NAMED = {
    "shred": "shred overwrites files beyond recovery",
    "dd": "dd overwrites what it writes to, byte for byte",
    "truncate": "truncate cuts files to a size",
    "rmdir": "rmdir removes folders",
    "srm": "srm overwrites files beyond recovery",
    "wipe": "wipe overwrites files beyond recovery",
    "wipefs": "wipefs destroys a file system",
    "mke2fs": "mke2fs destroys a file system",
    "blkdiscard": "blkdiscard destroys a file system",
    "fdisk": "fdisk changes partitions",
    "parted": "parted changes partitions",
    "sfdisk": "sfdisk changes partitions",
    "lvremove": "lvremove removes a volume",
    "vgremove": "vgremove removes volumes",
    "dropdb": "dropdb deletes a database",
    "dropuser": "dropuser deletes a database's user",
    "userdel": "userdel removes a user",
    "groupdel": "groupdel removes a group",
    "rimraf": "rimraf deletes folders with all that is in them",
}
"""Programs that do nothing else; so does what begins with `mkfs`."""

_SUBCOMMANDS: dict[str, tuple[frozenset[str], ...]] = {
    **dict.fromkeys(("docker", "podman", "nerdctl", "docker-compose"), (frozenset("rm rmi prune down kill".split()),)),
    **dict.fromkeys(("kubectl", "oc"), (frozenset("delete drain replace".split()),)),
    **dict.fromkeys(("terraform", "tofu", "terragrunt", "pulumi"), (frozenset("destroy -destroy --destroy".split()),)),
    "vagrant": (frozenset(("destroy",)),),
    **dict.fromkeys(("helm",), (frozenset("uninstall delete".split()),)),
    **dict.fromkeys(("gh", "glab"), (frozenset("delete".split()),)),
    "aws": (frozenset("rm rb".split()),),
    **dict.fromkeys(("gcloud", "az", "doctl", "flyctl", "fly", "gsutil"), (frozenset("delete destroy rm rb".split()),)),
    "heroku": (frozenset("apps:destroy pg:reset destroy".split()),),
    **dict.fromkeys(("zfs", "zpool"), (frozenset("destroy rollback labelclear".split()),)),
    "btrfs": (frozenset(("delete",)),),
    "redis-cli": (frozenset("flushall flushdb".split()),),
    "npm": (frozenset(("unpublish",)),),
    "cargo": (frozenset(("yank",)),),
    "systemctl": (frozenset("mask kill".split()),),
}
"""Programs and the words among their operands that destroy, wherever they stand."""
_CODE = re.compile(
    r"\b(?:rmtree|os\.remove|os\.unlink|fs\.rm(?:Sync|dir)?|unlinkSync|rm_rf|remove_dir_all"
    r"|drop\s+(?:table|database|schema)|truncate\s+table|delete\s+from)\b",
    re.IGNORECASE,
)
"""In what is given to an interpreter or a database as text."""
WINDOW = 200
"""Words behind a name that are taken for its operands, where a text is only looked through."""
_GLOB = frozenset("*?[")
_PIECES = re.compile(r"[\s;&|()`'\"]+")


def destroys(action: Action) -> tuple[str, ...]:
    """Return what in `action` cannot be taken back, one sentence each; empty where nothing is known to.

    Commands are looked at behind wrappers too, and text that was not understood is taken at its worst: where it names a
    program that destroys, it destroys. What file tools write is not counted: it is kept for undo.
    """
    return tuple(dict.fromkeys(reason for facet in action.all_facets() for reason in _of_facet(action, facet)))


def _of_facet(action: Action, facet: Facet) -> Iterator[str]:
    match facet:
        case Command():
            yield from _of_command(facet)
        case Opaque():
            for words in facet.commands:
                yield from _of_loose(words, known=False)
            yield from _of_code(facet.text)
        case PathAccess():
            outside = facet.place in (Place.ABOVE, Place.OUTSIDE)
            if facet.access is Access.WRITE and facet.tree and outside and action.cwd:
                yield "a whole folder outside of the workspace is written"
        case Unconfined() | ToolUse():
            # A word that is asked for too often is typed unread: nothing is lost yet by running unconfined.
            return


def _of_command(command: Command) -> Iterator[str]:
    yield from _at_start(command.argv)
    # `grep rm` looks for text; `ssh host 'rm -r x'` does what it says. A commit's message is no command.
    if command.act in (Act.WRAPS, Act.RUNS, Act.UNKNOWN) and _name(command.argv[0]) != "git":
        inner = [piece for word in command.argv[1:] for piece in _PIECES.split(word) if piece]
        yield from _of_loose(inner, known=True)
        yield from _of_code(" ".join(command.argv[1:]))


def _of_loose(words: Words, *, known: bool) -> Iterator[str]:
    """Try every word as the start of a command; with `known` False, a name alone is enough."""
    for index, word in enumerate(words):
        rest = words[index : index + WINDOW]
        yield from _at_start(rest)
        name = _name(word)
        if not known and name == "rm":
            yield "it names rm, and was not plainly understood"
        if not known and name == "git" and _GIT_DOUBTS.intersection(rest):
            yield "it names git with a word that destroys, and was not plainly understood"


_GIT_DOUBTS = frozenset("--hard --force -f -D --delete --mirror clean restore stash expire prune".split())


def _at_start(argv: Words) -> Iterator[str]:
    if not argv:
        return
    name, words = _name(argv[0]), argv[1:]
    if name in _NAMED:
        yield _NAMED[name]
    elif name.startswith("mkfs"):
        yield f"{name} destroys a file system"
    elif name in _BY_WORDS:
        yield from _BY_WORDS[name](words)
    elif name in _SUBCOMMANDS:
        found = next((word for word in words if any(word.lower() in group for group in _SUBCOMMANDS[name])), "")
        if found:
            yield f"{name} {found} removes what it names"


def _of_code(text: str) -> Iterator[str]:
    if found := _CODE.search(text[:1_000_000]):
        yield f"the text that it runs says {' '.join(found.group().split())}"


def _rm(words: Words) -> Iterator[str]:
    if has(words, "rR", "--recursive"):
        yield "rm -r deletes folders with all that is in them"
    operands = plain(words)
    if len(operands) > 1 or any(_GLOB & set(word) for word in operands):
        yield "rm deletes several files"


def _find(words: Words) -> Iterator[str]:
    if "-delete" in words:
        yield "find -delete deletes all that it finds"
    for index, word in enumerate(words):
        if word in ("-exec", "-execdir", "-ok", "-okdir") and _name("".join(words[index + 1 : index + 2])) == "rm":
            yield "find runs rm on all that it finds"


def _rsync(words: Words) -> Iterator[str]:
    if any(word.startswith(("--delete", "--del", "--remove-source-files")) for word in words):
        yield "rsync deletes files"


def _tar(words: Words) -> Iterator[str]:
    if has(words, "", "--remove-files"):
        yield "tar removes the files that it has packed"


def _crontab(words: Words) -> Iterator[str]:
    if has(words, "r", ""):
        yield "crontab -r removes the whole table"


_BY_WORDS: dict[str, Callable[[Words], Iterator[str]]] = {
    "rm": _rm,
    "git": git_destroys,
    "find": _find,
    "rsync": _rsync,
    "tar": _tar,
    "crontab": _crontab,
}


def _name(word: str) -> str:
    """Return the program that a word names, without its folder."""
    return word.lstrip("\\").rpartition("/")[2]
