"""What in a call deletes or overwrites for good, in words for the person who is asked.

It forbids nothing: rules do that. It finds too much rather than too little: a hit by mistake costs a typed word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from harness.actions import Access, Act, Action, Command, Facet, Opaque, PathAccess, Place, ToolUse, Unconfined
from harness.programs.runners import name_of
from harness.regex import regex
from harness.text.visible import visible_line

_WITH_VALUE = frozenset(
    "-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env --attr-source --shallow-file".split()
)
"""Options before the subcommand whose value is a word of its own (git(1))."""
_LOOKS_LIKE_FILE = regex(
    r"\.|:/.*|\.{1,2}/.*|.*/|.*\.[A-Za-z][A-Za-z0-9]{0,9}"
    r"|(?:.*/)?(?:GNU)?(?:[Mm]akefile|Dockerfile|Gemfile|Procfile|Rakefile|Jenkinsfile|README|LICENSE|COPYING|CHANGELOG)"
)
"""An operand of checkout that can hardly be a branch. Of others it is not told: `git checkout src`, where src is a folder."""


def _git_destroys(words: Sequence[str]) -> Iterator[str]:
    """Yield what `git WORDS` cannot take back."""
    index = 0
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] in _WITH_VALUE else 1
    if index >= len(words):
        return
    verb, rest = words[index], words[index + 1 :]
    if verb == "push":
        yield from _push(rest)
    elif verb in ("checkout", "switch"):
        yield from _checkout(verb, rest)
    elif verb in _LOSES and _LOSES[verb][0](rest):
        yield _LOSES[verb][1]


def _push(words: Sequence[str]) -> Iterator[str]:
    if _has(words, "f", "--force") or any(word.startswith("--force-") for word in words):
        yield "git push --force overwrites what is on the server"
    if _has(words, "d", "--delete") or _has(words, "", "--mirror") or _has(words, "", "--prune"):
        yield "git push deletes what is on the server"
    for word in _plain(words)[1:]:
        if word.startswith("+"):
            yield "git push of +REF overwrites what is on the server"
        elif word.startswith(":") and len(word) > 1:
            yield "git push of :REF deletes what is on the server"


def _checkout(verb: str, words: Sequence[str]) -> Iterator[str]:
    if _has(words, "f", "--force") or _has(words, "", "--discard-changes") or _has(words, "BC", "--force-create"):
        yield f"git {verb} with force throws away changes that are in no commit"
    elif verb == "checkout" and not _has(words, "bt", "--orphan"):
        operands = _plain(words)
        after = words[words.index("--") + 1 :] if "--" in words else ()
        several = len(operands) > 1 and not _has(words, "", "--track")
        one = len(operands) == 1 and _LOOKS_LIKE_FILE.fullmatch(operands[0])
        chosen = _has(words, "p", "--ours") or _has(words, "", "--theirs") or _has(words, "", "--pathspec-from-file")
        if after or several or one or chosen:
            yield "git checkout of paths throws away changes that are in no commit"


def _deletes_unmerged(words: Sequence[str]) -> bool:
    forced = _has(words, "f", "--force")
    return _has(words, "DMC", "") or (forced and (_has(words, "dm", "--delete") or bool(_plain(words))))


def _first(*verbs: str) -> Callable[[Sequence[str]], bool]:
    return lambda words: next(iter(_plain(words)), "") in verbs


def _submodule(words: Sequence[str]) -> bool:
    return _first("deinit", "update")(words) and _has(words, "f", "--force")


_LOSES: dict[str, tuple[Callable[[Sequence[str]], bool], str]] = {
    "branch": (_deletes_unmerged, "git branch -D forgets commits that are on no other branch"),
    "reset": (
        lambda words: _has(words, "", "--hard") or _has(words, "", "--merge"),
        "git reset --hard throws away changes that are in no commit",
    ),
    "clean": (
        lambda words: not _has(words, "n", "--dry-run", valued=("e", "--exclude")),
        "git clean deletes files that git does not know",
    ),
    "restore": (
        lambda words: _has(words, "W", "--worktree") or not _has(words, "S", "--staged", valued=("s", "--source")),
        "git restore throws away changes that are in no commit",
    ),
    "stash": (_first("drop", "clear"), "git stash drop throws away stashed changes"),
    "reflog": (_first("expire", "delete"), "git reflog expire forgets where lost commits are"),
    "gc": (lambda words: _has(words, "", "--prune"), "git gc --prune deletes commits that nothing points to"),
    "prune": (lambda _: True, "git prune deletes commits that nothing points to"),
    "filter-branch": (lambda _: True, "git filter-branch rewrites the history"),
    "filter-repo": (lambda _: True, "git filter-repo rewrites the history"),
    "rm": (lambda words: _has(words, "rf", "--force"), "git rm deletes files"),
    "update-ref": (lambda words: _has(words, "d", "--stdin"), "git update-ref -d removes a reference"),
    "tag": (lambda words: _has(words, "d", "--delete"), "git tag -d removes a tag"),
    "checkout-index": (
        lambda words: _has(words, "f", "--force"),
        "git checkout-index -f throws away changes that are in no commit",
    ),
    "read-tree": (
        lambda words: _has(words, "", "--reset"),
        "git read-tree --reset throws away changes that are in no commit",
    ),
    "mv": (lambda words: _has(words, "f", "--force"), "git mv -f overwrites a file"),
    "submodule": (_submodule, "git submodule with force throws away changes that are in no commit"),
    "lfs": (_first("prune"), "git lfs prune deletes files of old commits"),
    "worktree": (_first("remove"), "git worktree remove deletes a working folder"),
}
"""Subcommands: when they lose something, and what."""


def _has(words: Sequence[str], letters: str, long: str, *, valued: Sequence[str] = ()) -> bool:
    """Say whether options among `words` are one of these letters, alone or in a cluster, or this long one, shortened or not.

    `valued` are letters and long options that take a value: what stands behind them in a cluster, or in the next word, is
    no option (getopt(3)).
    """
    is_value = False
    for word in words:
        if is_value:
            is_value = False
        elif word == "--":
            return False
        elif word.startswith("--"):
            name, equals, _ = word.partition("=")
            if long and len(name) > 2 and long.startswith(name):
                return True
            is_value = not equals and name in valued
        elif word.startswith("-"):
            takes = next((index for index, letter in enumerate(word[1:], 1) if letter in valued), len(word))
            if set(letters) & set(word[1:takes]):
                return True
            is_value = takes == len(word) - 1
    return False


def _plain(words: Sequence[str]) -> list[str]:
    """Return the words that are no options: all behind `--`, and others that do not begin with `-`."""
    found: list[str] = []
    for index, word in enumerate(words):
        if word == "--":
            return [*found, *words[index + 1 :]]
        if not word.startswith("-") or word == "-":
            found.append(word)
    return found


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


def _program_destroys(argv: Sequence[str]) -> Iterator[str]:
    """Yield what a command of these words cannot take back, a sentence each; its first word is the program."""
    if not argv:
        return
    name, words = _called(argv[0]), argv[1:]
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


def _called(word: str) -> str:
    """Return the program that a word names: behind a backslash, bash takes it for no alias."""
    return name_of(word.lstrip("\\"))


def _rm(words: Sequence[str]) -> Iterator[str]:
    operands = _plain(words)
    if _has(words, "rR", "--recursive"):
        alone = len(operands) == 1 and len(operands[0]) <= _LONGEST_NAME
        what = f"{visible_line(operands[0])} with all that is in it" if alone else "folders with all that is in them"
        yield f"rm -r deletes {what}"
    if len(operands) > 1 or any(set("*?[") & set(word) for word in operands):
        yield "rm deletes several files"


def _find(words: Sequence[str]) -> Iterator[str]:
    if "-delete" in words:
        yield "find -delete deletes all that it finds"
    yield from _of_each(words, ("-exec", "-execdir", "-ok", "-okdir"), "find")


def _fd(words: Sequence[str]) -> Iterator[str]:
    yield from _of_each(words, ("-x", "-X", "--exec", "--exec-batch"), "fd")


def _of_each(words: Sequence[str], runs: Sequence[str], name: str) -> Iterator[str]:
    for word, after in pairwise(words):
        if word in runs and _called(after) in ("rm", "unlink", "rmdir"):
            yield f"{name} runs {_called(after)} on all that it finds"


def _rsync(words: Sequence[str]) -> Iterator[str]:
    if any(word.startswith(("--del", "--remove-source-files")) for word in words):
        yield "rsync deletes files"


def _tar(words: Sequence[str]) -> Iterator[str]:
    if _has(words, "", "--remove-files"):
        yield "tar removes the files that it has packed"


def _zip(words: Sequence[str]) -> Iterator[str]:
    if _has(words, "m", "--move"):
        yield "zip removes the files that it has packed"


def _crontab(words: Sequence[str]) -> Iterator[str]:
    if _has(words, "r", ""):
        yield "crontab -r removes the whole table"
    elif not _has(words, "leVTh", ""):
        yield "crontab replaces the whole table"


def _partitions(words: Sequence[str]) -> Iterator[str]:
    if not _has(words, "lpvhV", "--list") and "print" not in words:
        yield "it changes partitions"


def _moves(words: Sequence[str]) -> Iterator[str]:
    if "/dev/null" in words:
        yield "it writes nothing over something, or moves something to where nothing is kept"


def _mercurial(words: Sequence[str]) -> Iterator[str]:
    verb = next(iter(_plain(words)), "")
    if verb in ("purge", "strip") or (verb in ("update", "up", "co", "checkout") and _has(words, "C", "--clean")):
        yield f"hg {verb} throws away changes that are in no commit"


_BY_WORDS: dict[str, Callable[[Sequence[str]], Iterator[str]]] = {
    "rm": _rm,
    "git": _git_destroys,
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


_CODE = regex(
    r"\b(?:rmtree|os\.remove|fs\.rm(?:Sync|dir)?|rmSync|unlink(?:Sync)?|rm_rf|remove_dir_all|remove_tree|File\.delete|FileUtils\.rm"
    r"|drop\s+(?:table|database|schema|owned|view|index|user|role)|truncate\s+table|delete\s+from"
    r"|dropDatabase|deleteMany|flushall|flushdb)\b",
    re.IGNORECASE,
)
"""In what is given to an interpreter or a database as text."""
_LONGEST_NAME = 60
"""Characters of a name that is said."""
_WINDOW = 200
"""Words behind a name that are taken for its operands, where a text is only looked through."""
_OFTEN = 50
"""Times that a text names a program; from then on a tenth of the window is looked at, since the words would be so many."""
_PIECES = regex(r"[\s;&|()`'\"]+")
_EMPTIES = regex(r"(?<![>&\d])>\|?\s*[^>&\s]")
"""Output that goes over what a file holds (Bash manual, 3.6.2)."""
_PRINT_NOTHING = ((":",), ("true",), ("cat", "/dev/null"), ("echo", "-n"))
_TAKES_TEXT = frozenset("git patch gh glab curl http xh mail tee".split())
"""Programs to which what they are fed is text, and nothing that is run: a diff may say what it likes."""


def destroys(action: Action) -> tuple[str, ...]:
    """Return what in `action` cannot be taken back, one sentence each; empty where nothing is known to.

    Commands are looked at behind wrappers too, and text that was not understood is taken at its worst: where it names a
    program that destroys, it destroys. What file tools write is not counted: it is kept for undo.
    """
    found = [reason for facet in action.all_facets() for reason in _of_facet(action, facet)]
    fed = [facet for facet in action.all_facets() if isinstance(facet, Command) and _obeys_what_it_is_fed(facet)]
    if fed:
        found += _of_fed(frozenset(_called(command.argv[0]) for command in fed), action.text)
    if action.text.lstrip().startswith(">") and _EMPTIES.match(action.text.lstrip()):
        found.append("a file is emptied")
    return tuple(dict.fromkeys(found))


def _of_facet(action: Action, facet: Facet) -> Iterator[str]:
    match facet:
        case Command():
            yield from _of_command(facet)
        case Opaque():
            for words in facet.commands:
                yield from _of_loose(words, known=False)
            yield from _of_code(facet.text)
        case PathAccess():
            outside = facet.place in (Place.ABOVE, Place.OUTSIDE, Place.ADDED)
            if facet.access is Access.WRITE and facet.tree and outside and action.cwd:
                yield "a whole folder outside of the workspace is written"
        case ToolUse():
            if facet.says_destroys:
                yield f"the server of {facet.tool} says that it may destroy"
        case Unconfined():
            # A word that is asked for too often is typed unread: nothing is lost yet by running unconfined.
            return


def _of_command(command: Command) -> Iterator[str]:
    yield from _program_destroys(command.argv)
    if command.argv in _PRINT_NOTHING and _EMPTIES.search(command.text):
        yield "a file is emptied"
    # `grep rm` looks for text; `ssh host 'rm -r x'` does what it says. A commit's message is no command, an alias is.
    if command.act in (Act.WRAPS, Act.RUNS, Act.UNKNOWN) and _called(command.argv[0]) != "git":
        yield from _of_text(" ".join(command.argv[1:]))
    elif _called(command.argv[0]) == "git":
        for word in command.argv[1:]:
            alias = word.partition("!")
            if alias[1] and (not alias[0] or alias[0].endswith("=")):
                yield from _of_text(alias[2])


def _obeys_what_it_is_fed(command: Command) -> bool:
    """Say whether what stands on a command's input may be commands to it: text of the line, or what `echo` prints."""
    return command.fed and command.act not in (Act.LOOKS, Act.WRITES) and _called(command.argv[0]) not in _TAKES_TEXT


def _of_fed(names: frozenset[str], text: str) -> Iterator[str]:
    yield from _of_text(text)
    words = [piece for piece in _PIECES.split(text) if piece]
    for name in sorted(names):
        yield from _program_destroys((name, *words))


def _of_text(text: str) -> Iterator[str]:
    """Look through text that is run, by whatever."""
    yield from _of_loose([piece for piece in _PIECES.split(text) if piece], known=True)
    yield from _of_code(text)


def _of_loose(words: Sequence[str], *, known: bool) -> Iterator[str]:
    """Try every word as the start of a command; with `known` False, a name alone is enough.

    A program that was found to destroy is not tried again: a text may name one ten thousand times.
    """
    found: set[str] = set()
    tried: dict[str, int] = {}
    for index, word in enumerate(words):
        name = _called(word)
        if name in found:
            continue
        tried[name] = tried.get(name, 0) + 1
        rest = words[index : index + (_WINDOW if tried[name] < _OFTEN else _WINDOW // 10)]
        reasons = list(_program_destroys(rest))
        if not known and name == "rm":
            reasons.append("it names rm, and was not plainly understood")
        if not known and name == "git" and _GIT_DOUBTS.intersection(rest):
            reasons.append("it names git with a word that destroys, and was not plainly understood")
        if reasons:
            found.add(name)
        yield from reasons


_GIT_DOUBTS = frozenset("--hard --force -f -D --delete --mirror clean restore stash expire prune".split())


def _of_code(text: str) -> Iterator[str]:
    if found := _CODE.search(text[:1_000_000]):
        yield f"the text that it runs says {' '.join(found.group().split())}"
