"""Losses of git (`LOSES`), by subcommand. They include subcommands without a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harness.programs.losses import always, with_option
from harness.programs.program import LooseWords, Loses
from harness.regex import regex

_LOOKS_LIKE_FILE = regex(
    r"\.|:/.*|\.{1,2}/.*|.*/|.*\.[A-Za-z][A-Za-z0-9]{0,9}"
    r"|(?:.*/)?(?:GNU)?(?:[Mm]akefile|Dockerfile|Gemfile|Procfile|Rakefile|Jenkinsfile|README|LICENSE|COPYING|CHANGELOG)"
)
"""Operands of checkout that are probably files, not branches. Misses a folder: `git checkout src`."""


def _push(words: LooseWords) -> Iterable[str]:
    if words.has("-f", "--force-with-lease", "--force-if-includes"):
        yield "git push --force overwrites what is on the server"
    if words.has("-d", "--mirror", "--prune"):
        yield "git push deletes what is on the server"
    for word in words.operands[1:]:
        if word.startswith("+"):
            yield "git push of +REF overwrites what is on the server"
        elif word.startswith(":") and len(word) > 1:
            yield "git push of :REF deletes what is on the server"


def _switch(words: LooseWords) -> Iterable[str]:
    if words.has("-f", "-C", "--discard-changes"):
        yield "git switch with force throws away changes that are in no commit"


def _checkout(words: LooseWords) -> Iterable[str]:
    if words.has("-f", "-B"):
        yield "git checkout with force throws away changes that are in no commit"
    elif not words.has("-b", "-t", "--orphan"):
        is_file = len(words.operands) == 1 and _LOOKS_LIKE_FILE.fullmatch(words.operands[0])
        if (
            words.last_words
            or len(words.operands) > 1
            or is_file
            or words.has("-p", "-2", "-3", "--pathspec-from-file")
        ):
            yield "git checkout of paths throws away changes that are in no commit"


def _branch(words: LooseWords) -> Iterable[str]:
    forced = words.has("-f") and (words.has("-d", "-m") or words.operands)
    if forced or words.has("-D", "-M", "-C"):
        yield "git branch -D forgets commits that are on no other branch"


def _clean(words: LooseWords) -> Iterable[str]:
    if not words.has("-n"):
        yield "git clean deletes files that git does not know"


def _restore(words: LooseWords) -> Iterable[str]:
    if words.has("-W") or not words.has("-S"):
        yield "git restore throws away changes that are in no commit"


_STASH = always("git stash drop throws away stashed changes")
_REFLOG = always("git reflog expire forgets where lost commits are")
_SUBMODULE = with_option("-f", sentence="git submodule with force throws away changes that are in no commit")

LOSES: Mapping[str, Loses] = {
    "push": _push,
    "checkout": _checkout,
    "switch": _switch,
    "branch": _branch,
    "reset": with_option("--hard", "--merge", sentence="git reset --hard throws away changes that are in no commit"),
    "clean": _clean,
    "restore": _restore,
    "stash drop": _STASH,
    "stash clear": _STASH,
    "reflog expire": _REFLOG,
    "reflog delete": _REFLOG,
    "gc": with_option("--prune", sentence="git gc --prune deletes commits that nothing points to"),
    "prune": always("git prune deletes commits that nothing points to"),
    "filter-branch": always("git filter-branch rewrites the history"),
    "filter-repo": always("git filter-repo rewrites the history"),
    "rm": with_option("-r", "-f", sentence="git rm deletes files"),
    "update-ref": with_option("-d", "--stdin", sentence="git update-ref -d removes a reference"),
    "tag": with_option("-d", sentence="git tag -d removes a tag"),
    "checkout-index": with_option(
        "-f", "--force", sentence="git checkout-index -f throws away changes that are in no commit"
    ),
    "read-tree": with_option("--reset", sentence="git read-tree --reset throws away changes that are in no commit"),
    "mv": with_option("-f", sentence="git mv -f overwrites a file"),
    "submodule deinit": _SUBMODULE,
    "submodule update": _SUBMODULE,
    "lfs prune": always("git lfs prune deletes files of old commits"),
    "worktree remove": always("git worktree remove deletes a working folder"),
}
