"""Losses: files and data that a command deletes or overwrites for good, described in sentences for the approval prompt.

The field `loses` of a model (program.py) returns them, from the options of the command. Words are read loosely here: an
option without an entry in the table counts as written, and an abbreviation counts as all options that it may mean. A
false hit only makes the user type a word. Programs without a model, and words that destroy at any position, are listed
below.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from harness.programs.catalog import model_of
from harness.programs.options import Entry, option_table
from harness.programs.program import LooseWords, Loses, Program
from harness.programs.runners import from_subcommand, name_of

# --- Helpers for models


def always(sentence: str) -> Loses:
    """Return the losses of a program that always destroys."""
    return lambda _words: (sentence,)


def with_option(*options: str, sentence: str) -> Loses:
    """Return the losses of a program that destroys with one of these options."""
    return lambda words: (sentence,) if words.has(*options) else ()


def moves_from_nothing(words: LooseWords) -> Iterable[str]:
    """Yield the loss of a cp, mv or install that reads or writes the null device."""
    if "/dev/null" in words.words:
        yield "it writes nothing over something, or moves something to where nothing is kept"


def removes_each(runs: Iterable[str], words: Sequence[str], name: str) -> Iterator[str]:
    """Yield the losses of a search that runs rm or a similar program. `runs` are its options that start a command."""
    for word, after in pairwise(words):
        if word in runs and program_named(after) in ("rm", "unlink", "rmdir"):
            yield f"{name} runs {program_named(after)} on all that it finds"


# --- Programs without a model


def _partitions(words: LooseWords) -> Iterable[str]:
    if not words.has("-l", "-p", "-v", "-h", "-V", "--list") and "print" not in words.words:
        yield "it changes partitions"


def _mercurial(words: LooseWords) -> Iterable[str]:
    verb = next(iter(from_subcommand(("hg", *words.words))), "")
    if verb in ("purge", "strip") or (verb in ("update", "up", "co", "checkout") and words.has("-C", "--clean")):
        yield f"hg {verb} throws away changes that are in no commit"


_WITHOUT_MODEL: dict[str, Loses] = {
    "srm": always("srm overwrites files beyond recovery"),
    "wipe": always("wipe overwrites files beyond recovery"),
    "wipefs": always("wipefs destroys a file system"),
    "mke2fs": always("mke2fs destroys a file system"),
    "mkswap": always("mkswap destroys a file system"),
    "blkdiscard": always("blkdiscard destroys a file system"),
    "badblocks": always("badblocks overwrites a file system"),
    "lvremove": always("lvremove removes a volume"),
    "vgremove": always("vgremove removes volumes"),
    "pvremove": always("pvremove removes a volume"),
    "dropdb": always("dropdb deletes a database"),
    "dropuser": always("dropuser deletes a database's user"),
    "delgroup": always("delgroup removes a group"),
    "rimraf": always("rimraf deletes folders with all that is in them"),
    "fdisk": _partitions,
    "sfdisk": _partitions,
    "sgdisk": _partitions,
    "parted": _partitions,
    "hg": _mercurial,
}
"""Losses of programs without a model. Names that begin with `mkfs` have losses too."""

_DESTROYING_WORDS = {
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
"""Words that destroy, in lower case, by program. They count at any position, so `npm run unpublish` is a false hit.

Each entry has the exact words, then prefixes (written `WORD*`), then endings of options (written `*WORD`).
"""


# --- Commands


def losses(argv: Sequence[str]) -> Iterator[str]:
    """Yield the losses of a command, one sentence each. Its first word is the program."""
    if not argv:
        return
    name, words = program_named(argv[0]), argv[1:]
    if name in _DESTROYING_WORDS:
        yield from _by_word(name, words)
    elif (model := model_of(name)) is not None:
        if model.loses is not None or model.subcommands:
            yield from _by_model(model, words)
    elif name in _WITHOUT_MODEL:
        yield from _WITHOUT_MODEL[name](read_loosely("", words))
    elif name.startswith("mkfs"):
        yield f"{name} destroys a file system"


def program_named(word: str) -> str:
    """Return the name of the program that a word names: git for hub, which passes its words on to git.

    A leading backslash, which bypasses an alias, is dropped.
    """
    name = name_of(word.lstrip("\\"))
    return "git" if name == "hub" else name


def _by_word(name: str, words: Sequence[str]) -> Iterator[str]:
    exact, begins, ends = _DESTROYING_WORDS[name]
    option = next((word for word in words if (low := word.lower()) in exact or low.startswith(begins)), "")
    if not option and ends:
        option = next((word for word in words if word[:1] == "-" and word.lower().endswith(ends)), "")
    if option:
        yield f"{name} {option} removes what it names"


def _by_model(model: Program, words: Sequence[str]) -> Iterator[str]:
    if model.loses is not None:
        yield from model.loses(read_loosely(model.options, words))
    if not model.subcommands:
        return
    if words and words[0].startswith("-"):
        words = read_loosely(model.options, words, stop=True).operands
    inner, rest = _subcommand(model, words)
    if inner is not None and inner.loses is not None:
        yield from inner.loses(read_loosely(inner.options, rest))


def _subcommand(model: Program, words: Sequence[str]) -> tuple[Program | None, Sequence[str]]:
    """Return the model of the longest subcommand at the start of the operands, and the other words.

    Options may be between the words: `git stash -q drop` has the subcommand `stash drop`.
    """
    places = [place for place, word in enumerate(words) if not word.startswith("-")][:3]
    verbs = [words[place] for place in places]
    for count in range(len(verbs), 0, -1):
        inner = model.subcommands.get(" ".join(verbs[:count]))
        if inner is not None:
            return inner, [word for place, word in enumerate(words) if place not in places[:count]]
    return None, ()


def read_loosely(options: str, words: Sequence[str], *, stop: bool = False) -> LooseWords:
    """Parse words by an option table into options and operands. With `stop`, the first operand ends the options."""
    table = option_table(options)
    names: list[str] = []
    operands: list[str] = []
    is_value = False
    for place, word in enumerate(words):
        if is_value:
            is_value = False
        elif word == "--":
            last_words = tuple(words[place + 1 :])
            return LooseWords(
                words=tuple(words), options=tuple(names), operands=(*operands, *last_words), last_words=last_words
            )
        elif not word.startswith("-") or word == "-":
            if stop:
                operands += words[place:]
                break
            operands.append(word)
        else:
            is_value = _read_option(word, table, names)
    return LooseWords(words=tuple(words), options=tuple(names), operands=tuple(operands))


def _read_option(word: str, table: Mapping[str, Entry], names: list[str]) -> bool:
    """Add the options in a word to `names`. Return whether the next word is the value of the last option."""
    if word in table or word.startswith("--"):
        name, equals, _ = word.partition("=")
        entry = table.get(word) or table.get(name)
        if entry is not None:
            names.append(entry.name)
            return entry.takes_next and not equals
        candidates = [each for spelling, each in table.items() if len(name) > 2 and spelling.startswith(name)]
        names += [name, *(each.name for each in candidates)]
        return bool(candidates) and not equals and all(each.takes_next for each in candidates)
    for place, letter in enumerate(word[1:], start=2):
        entry = table.get(f"-{letter}")
        names.append(f"-{letter}" if entry is None else entry.name)
        if entry is not None and entry.role is not None:
            return entry.takes_next and place == len(word)
    return False
