"""What git commands lose for good: work that is in no commit, and what others have on a server; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

_WITH_VALUE = frozenset(
    "-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env --attr-source --shallow-file".split()
)
"""Options before the subcommand whose value is a word of its own (git(1))."""
_LOOKS_LIKE_FILE = re.compile(
    r"\.|:/.*|\.{1,2}/.*|.*/|.*\.[A-Za-z][A-Za-z0-9]{0,9}"
    r"|(?:.*/)?(?:GNU)?(?:[Mm]akefile|Dockerfile|Gemfile|Procfile|Rakefile|Jenkinsfile|README|LICENSE|COPYING|CHANGELOG)"
)
"""An operand of checkout that can hardly be a branch. Of others it is not told: `git checkout src`, where src is a folder."""


def git_destroys(words: Sequence[str]) -> Iterator[str]:
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
    if has(words, "f", "--force") or any(word.startswith("--force-") for word in words):
        yield "git push --force overwrites what is on the server"
    if has(words, "d", "--delete") or has(words, "", "--mirror") or has(words, "", "--prune"):
        yield "git push deletes what is on the server"
    for word in plain(words)[1:]:
        if word.startswith("+"):
            yield "git push of +REF overwrites what is on the server"
        elif word.startswith(":") and len(word) > 1:
            yield "git push of :REF deletes what is on the server"


def _checkout(verb: str, words: Sequence[str]) -> Iterator[str]:
    if has(words, "f", "--force") or has(words, "", "--discard-changes") or has(words, "BC", "--force-create"):
        yield f"git {verb} with force throws away changes that are in no commit"
    elif verb == "checkout" and not has(words, "bt", "--orphan"):
        operands = plain(words)
        after = words[words.index("--") + 1 :] if "--" in words else ()
        several = len(operands) > 1 and not has(words, "", "--track")
        one = len(operands) == 1 and _LOOKS_LIKE_FILE.fullmatch(operands[0])
        chosen = has(words, "p", "--ours") or has(words, "", "--theirs") or has(words, "", "--pathspec-from-file")
        if after or several or one or chosen:
            yield "git checkout of paths throws away changes that are in no commit"


def _deletes_unmerged(words: Sequence[str]) -> bool:
    forced = has(words, "f", "--force")
    return has(words, "DMC", "") or (forced and (has(words, "dm", "--delete") or bool(plain(words))))


def _first(*verbs: str) -> Callable[[Sequence[str]], bool]:
    return lambda words: next(iter(plain(words)), "") in verbs


def _submodule(words: Sequence[str]) -> bool:
    return _first("deinit", "update")(words) and has(words, "f", "--force")


_LOSES: dict[str, tuple[Callable[[Sequence[str]], bool], str]] = {
    "branch": (_deletes_unmerged, "git branch -D forgets commits that are on no other branch"),
    "reset": (
        lambda words: has(words, "", "--hard") or has(words, "", "--merge"),
        "git reset --hard throws away changes that are in no commit",
    ),
    "clean": (
        lambda words: not has(words, "n", "--dry-run", valued=("e", "--exclude")),
        "git clean deletes files that git does not know",
    ),
    "restore": (
        lambda words: has(words, "W", "--worktree") or not has(words, "S", "--staged", valued=("s", "--source")),
        "git restore throws away changes that are in no commit",
    ),
    "stash": (_first("drop", "clear"), "git stash drop throws away stashed changes"),
    "reflog": (_first("expire", "delete"), "git reflog expire forgets where lost commits are"),
    "gc": (lambda words: has(words, "", "--prune"), "git gc --prune deletes commits that nothing points to"),
    "prune": (lambda _: True, "git prune deletes commits that nothing points to"),
    "filter-branch": (lambda _: True, "git filter-branch rewrites the history"),
    "filter-repo": (lambda _: True, "git filter-repo rewrites the history"),
    "rm": (lambda words: has(words, "rf", "--force"), "git rm deletes files"),
    "update-ref": (lambda words: has(words, "d", "--stdin"), "git update-ref -d removes a reference"),
    "tag": (lambda words: has(words, "d", "--delete"), "git tag -d removes a tag"),
    "checkout-index": (
        lambda words: has(words, "f", "--force"),
        "git checkout-index -f throws away changes that are in no commit",
    ),
    "read-tree": (
        lambda words: has(words, "", "--reset"),
        "git read-tree --reset throws away changes that are in no commit",
    ),
    "mv": (lambda words: has(words, "f", "--force"), "git mv -f overwrites a file"),
    "submodule": (_submodule, "git submodule with force throws away changes that are in no commit"),
    "lfs": (_first("prune"), "git lfs prune deletes files of old commits"),
    "worktree": (_first("remove"), "git worktree remove deletes a working folder"),
}
"""Subcommands: when they lose something, and what."""


def has(words: Sequence[str], letters: str, long: str, *, valued: Sequence[str] = ()) -> bool:
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


def plain(words: Sequence[str]) -> list[str]:
    """Return the words that are no options: all behind `--`, and others that do not begin with `-`."""
    found: list[str] = []
    for index, word in enumerate(words):
        if word == "--":
            return [*found, *words[index + 1 :]]
        if not word.startswith("-") or word == "-":
            found.append(word)
    return found
