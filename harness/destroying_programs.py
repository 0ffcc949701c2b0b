"""What single programs delete or overwrite for good, by their names and words; pure, and knows no call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

from harness.destroying_git import git_destroys, has, plain

Words: TypeAlias = Sequence[str]

_NAMED = {
    "shred": "shred overwrites files beyond recovery",
    "dd": "dd overwrites what it writes to, byte for byte",
    "truncate": "truncate cuts files to a size",
    "srm": "srm overwrites files beyond recovery",
    "wipe": "wipe overwrites files beyond recovery",
    "wipefs": "wipefs destroys a file system",
    "mke2fs": "mke2fs destroys a file system",
    "mkswap": "mkswap destroys a file system",
    "blkdiscard": "blkdiscard destroys a file system",
    "badblocks": "badblocks overwrites a file system",
    "lvremove": "lvremove removes a volume",
    "vgremove": "vgremove removes volumes",
    "pvremove": "pvremove removes a volume",
    "dropdb": "dropdb deletes a database",
    "dropuser": "dropuser deletes a database's user",
    "userdel": "userdel removes a user",
    "deluser": "deluser removes a user",
    "groupdel": "groupdel removes a group",
    "delgroup": "delgroup removes a group",
    "rimraf": "rimraf deletes folders with all that is in them",
}
"""Programs that do nothing else; so does what begins with `mkfs`."""

_SUBCOMMANDS = {
    name: (
        frozenset(word for word in words.split() if "*" not in word),
        tuple(word[:-1] for word in words.split() if word.endswith("*")),
        tuple(word[1:] for word in words.split() if word.startswith("*")),
    )
    for names, words in (
        ("docker podman nerdctl docker-compose", "rm rmi prune down kill"),
        ("kubectl oc", "delete drain replace"),
        ("terraform tofu terragrunt pulumi", "destroy -destroy --destroy rm"),
        ("vagrant", "destroy"),
        ("helm", "uninstall delete del"),
        ("gh glab", "delete delete-* -xdelete --method=delete"),
        ("curl wget http https xh", "delete *xdelete --request=delete --method=delete"),
        ("aws", "rm rb --delete delete-* terminate-* purge-*"),
        ("gcloud az doctl flyctl fly gsutil", "delete delete-* destroy rm rb"),
        ("heroku", "apps:destroy pg:reset destroy"),
        ("rclone", "purge delete deletefile sync move rmdirs cleanup"),
        ("s3cmd", "del rm rb --delete-removed"),
        ("mc", "rm rb"),
        ("restic borg", "forget prune delete"),
        ("svn", "revert"),
        ("zfs zpool", "destroy rollback labelclear"),
        ("btrfs", "delete"),
        ("cryptsetup", "erase luksformat lukserase"),
        ("nvme", "format sanitize"),
        ("mdadm", "--zero-superblock"),
        ("virsh", "undefine destroy vol-delete pool-delete"),
        ("redis-cli valkey-cli", "flushall flushdb"),
        ("mysqladmin", "drop"),
        ("rails rake bundle", "db:drop* db:reset* db:purge*"),
        ("prisma", "reset"),
        ("manage.py django-admin", "flush reset_db"),
        ("npm", "unpublish"),
        ("cargo", "yank"),
        ("systemctl", "mask kill"),
    )
    for name in names.split()
}
"""Programs and the words among theirs that destroy, in small letters and wherever they stand: `npm run unpublish` is found
too, which costs a typed word. A `*` stands for any end, or for any beginning of an option."""


def program_destroys(argv: Words) -> Iterator[str]:
    """Yield what a command of these words cannot take back, a sentence each; its first word is the program."""
    if not argv:
        return
    name, words = name_of(argv[0]), argv[1:]
    if name in _NAMED:
        yield _NAMED[name]
    elif name.startswith("mkfs"):
        yield f"{name} destroys a file system"
    elif name in _BY_WORDS:
        yield from _BY_WORDS[name](words)
    elif name in _SUBCOMMANDS:
        exact, begins, ends = _SUBCOMMANDS[name]
        found = next((word for word in words if (low := word.lower()) in exact or low.startswith(begins)), "")
        if not found and ends:
            found = next((word for word in words if word[:1] == "-" and word.lower().endswith(ends)), "")
        if found:
            yield f"{name} {found} removes what it names"


def name_of(word: str) -> str:
    """Return the program that a word names, without its folder."""
    return word.lstrip("\\").rpartition("/")[2]


def _rm(words: Words) -> Iterator[str]:
    if has(words, "rR", "--recursive"):
        yield "rm -r deletes folders with all that is in them"
    operands = plain(words)
    if len(operands) > 1 or any(set("*?[") & set(word) for word in operands):
        yield "rm deletes several files"


def _find(words: Words) -> Iterator[str]:
    if "-delete" in words:
        yield "find -delete deletes all that it finds"
    yield from _of_each(words, ("-exec", "-execdir", "-ok", "-okdir"), "find")


def _fd(words: Words) -> Iterator[str]:
    yield from _of_each(words, ("-x", "-X", "--exec", "--exec-batch"), "fd")


def _of_each(words: Words, runs: Words, name: str) -> Iterator[str]:
    for word, after in pairwise(words):
        if word in runs and name_of(after) in ("rm", "unlink", "rmdir"):
            yield f"{name} runs {name_of(after)} on all that it finds"


def _rsync(words: Words) -> Iterator[str]:
    if any(word.startswith(("--del", "--remove-source-files")) for word in words):
        yield "rsync deletes files"


def _tar(words: Words) -> Iterator[str]:
    if has(words, "", "--remove-files"):
        yield "tar removes the files that it has packed"


def _zip(words: Words) -> Iterator[str]:
    if has(words, "m", "--move"):
        yield "zip removes the files that it has packed"


def _crontab(words: Words) -> Iterator[str]:
    if has(words, "r", ""):
        yield "crontab -r removes the whole table"
    elif not has(words, "leVTh", ""):
        yield "crontab replaces the whole table"


def _partitions(words: Words) -> Iterator[str]:
    if not has(words, "lpvhV", "--list") and "print" not in words:
        yield "it changes partitions"


def _moves(words: Words) -> Iterator[str]:
    if "/dev/null" in words:
        yield "it writes nothing over something, or moves something to where nothing is kept"


def _mercurial(words: Words) -> Iterator[str]:
    verb = next(iter(plain(words)), "")
    if verb in ("purge", "strip") or (verb in ("update", "up", "co", "checkout") and has(words, "C", "--clean")):
        yield f"hg {verb} throws away changes that are in no commit"


_BY_WORDS: dict[str, Callable[[Words], Iterator[str]]] = {
    "rm": _rm,
    "git": git_destroys,
    "find": _find,
    "fd": _fd,
    "fdfind": _fd,
    "rsync": _rsync,
    "tar": _tar,
    "zip": _zip,
    "crontab": _crontab,
    "fdisk": _partitions,
    "sfdisk": _partitions,
    "sgdisk": _partitions,
    "parted": _partitions,
    "cp": _moves,
    "mv": _moves,
    "install": _moves,
    "hg": _mercurial,
}
