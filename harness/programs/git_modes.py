"""What a git command does besides showing: which words make it list or change, and with whom it talks; pure.

Each public function is a refinement (model.py): it returns what the tables said, or something stricter.
"""

from __future__ import annotations

import re

from harness.actions import Access, Act
from harness.programs.git_reading import history, patched, revisions, working_tree
from harness.programs.model import Found, Inner, Parsed, PathUse, Unknown, Use, gap
from harness.programs.options import stricter
from harness.record import replace

_LISTING = ("--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at")
_PLAIN_SETTINGS = frozenset(
    "user.name user.email pull.rebase pull.ff push.default push.autosetupremote fetch.prune init.defaultbranch color.ui "
    "core.autocrlf core.eol core.safecrlf core.filemode core.ignorecase core.quotepath core.abbrev core.longpaths "
    "merge.conflictstyle merge.ff rebase.autostash rebase.autosquash commit.gpgsign diff.algorithm diff.renames "
    "log.date log.abbrevcommit status.short rerere.enabled advice.detachedhead".split()
)
_STRATEGIES = frozenset("ort recursive resolve octopus ours subtree".split())


def _changes(use: Use, *, network: bool = False) -> Use:
    return replace(use, act=stricter(use.act, Act.CHANGES), network=use.network or network)


def branches(parsed: Parsed, use: Use) -> Use:
    """`git branch NAME` makes a branch, also behind -v or --sort; it lists without a name or with a listing option."""
    use = listed_names(parsed, use)
    return use if use.gap or not parsed.operands or parsed.has(*_LISTING, "--show-current") else _changes(use)


def tags(parsed: Parsed, use: Use) -> Use:
    """As `git branch`; -n lists too."""
    use = listed_names(parsed, use)
    return use if use.gap or not parsed.operands or parsed.has(*_LISTING, "-n") else _changes(use)


def reference_logs(parsed: Parsed, use: Use) -> Use:
    """`git reflog -n5 expire`: old versions of git may take this for the subcommand."""
    use = history(parsed, use)
    return _changes(use) if {"expire", "delete", "drop", "write"}.intersection(parsed.operands[:1]) else use


def remotes(parsed: Parsed, use: Use) -> Use:
    """`git remote -v update`: the subcommand may stand behind an option."""
    if parsed.operands:
        return _changes(use, network=True)
    return _shows_settings(use) if parsed.has("-v") else use


def shown_remote(parsed: Parsed, use: Use) -> Use:
    """`git remote show NAME` asks the remote, unless it is told not to; of a name it shows the address."""
    return _shows_settings(replace(use, network=bool(parsed.operands) and not parsed.has("-n")))


def shown_address(parsed: Parsed, use: Use) -> Use:  # noqa: ARG001 - as all refinements
    """`git remote get-url` shows an address, in which there may be a token."""
    return _shows_settings(use)


def _shows_settings(use: Use) -> Use:
    """Return the same, with the file that it prints a part of: a rule about that file holds for it."""
    settings = PathUse(word=".git/config", access=Access.READ, at_top=True)
    return use if use.gap else replace(use, paths=(*use.paths, settings))


def listed_names(parsed: Parsed, use: Use) -> Use:
    """For lists of references: `%(upstream:remotename)` is an address where the branch names no remote."""
    use = revisions(parsed, use)
    names = any("remotename" in format_ for format_ in parsed.values("--format", "--sort"))
    return _shows_settings(use) if names else use


def one_name(parsed: Parsed, use: Use) -> Use:
    """With one operand it is shown, with two it is set: `git symbolic-ref HEAD [REF]`."""
    return use if len(parsed.operands) == 1 else _changes(use)


def settings(parsed: Parsed, use: Use) -> Use:
    """For `git config`: it shows with an option that says so, or with a single key; else it sets.

    Options behind the first operand are values (`git config alias.x --list`). A setting may name a program (core.pager,
    alias.x, filter.x.clean), hence only a few plain ones are vouched for, and only those of this repository.
    """
    use = revisions(parsed, use)
    if use.gap:
        return use
    words = parsed.operands
    shows = parsed.has("--get", "--get-all", "--get-urlmatch")
    if parsed.has("--get-regexp", "--list"):
        return listed_settings(parsed, use)
    if use.act is Act.LOOKS and (shows or (len(words) == 1 and "." in words[0])):
        return _shown_setting(parsed, use)
    sets = len(words) > 1 or (use.act is not Act.LOOKS and words)
    if not sets or not _is_plain_setting(words[0]) or parsed.has("--global", "--system"):
        return gap("a setting may name a program that git runs later")
    files = parsed.values("-f") or (".git/config",)
    return replace(_changes(use), paths=tuple(PathUse(word=file, access=Access.WRITE) for file in files))


def got_setting(parsed: Parsed, use: Use) -> Use:
    """For `git config get` (git 2.46), which only shows."""
    return _shown_setting(parsed, revisions(parsed, use))


def _shown_setting(parsed: Parsed, use: Use) -> Use:
    return use if parsed.has("-f", "--blob", "--global", "--system") else _shows_settings(use)


def listed_settings(parsed: Parsed, use: Use) -> Use:
    """For lists of settings: without the file that is meant they show the person's own, which may hold tokens."""
    if use.gap or parsed.has("-f", "--blob"):
        return use
    if parsed.has("--local", "--worktree"):
        return _shows_settings(use)
    return gap("the person's own settings are listed too")


def _is_plain_setting(word: str) -> bool:
    return not isinstance(word, Unknown | Found) and word.lower() in _PLAIN_SETTINGS


def cleaning(parsed: Parsed, use: Use) -> Use:
    """`git clean` removes, unless it only says what it would."""
    use = working_tree(parsed, use)
    if use.gap or parsed.has("-n"):
        return use
    paths = use.paths or (PathUse(word=".", access=Access.WRITE),)
    trees = (replace(path, access=Access.WRITE, tree=True, skips=(".git",)) for path in paths)
    return _changes(replace(use, paths=tuple(trees)))


def dry(parsed: Parsed, use: Use) -> Use:
    """For `git apply`: it only looks at the patch when asked for its statistics or whether it applies."""
    looks = parsed.has("--stat", "--numstat", "--summary", "--check") and not parsed.has("--apply")
    return use if looks else _changes(use)


def patch_files(parsed: Parsed, use: Use) -> Use:
    """`git format-patch` writes files into a folder, unless it prints."""
    use = patched(parsed, use, patches=True)
    if use.gap or parsed.has("--stdout"):
        return use
    return _changes(replace(use, paths=(*use.paths, PathUse(word=".", access=Access.WRITE))))


def strategy(parsed: Parsed, use: Use) -> Use:
    """A merge strategy that git does not know is the program `git-merge-NAME`."""
    if any(isinstance(name, Unknown) or name not in _STRATEGIES for name in parsed.values("--strategy")):
        return gap("a merge strategy may be a program")
    return use


def exchange(parsed: Parsed, use: Use) -> Use:
    """For commands that talk to a repository, their first operand: `ext::sh -c x` runs a program, `../x` is a folder.

    Which folder a mere name stands for, the configuration of the repository says; such a command is never a reader.
    """
    return _exchange(parsed, use, Access.READ)


def listed_remote(parsed: Parsed, use: Use) -> Use:
    """For `git ls-remote`, which says which address it asks, and with `--get-url` nothing else."""
    return _shows_settings(exchange(parsed, use))


def publication(parsed: Parsed, use: Use) -> Use:
    """For `git push`, which writes the other repository."""
    return _exchange(parsed, use, Access.EITHER)


def _exchange(parsed: Parsed, use: Use, access: Access) -> Use:
    places = parsed.operands if parsed.has("--multiple") else parsed.operands[:1]
    places = (*places, *parsed.values("--repo", "--bundle-uri"))
    if any("::" in word for word in parsed.operands + places):
        return gap("a transport of the shape NAME:: is a program")
    for word in places:
        if isinstance(word, Found) or (isinstance(word, Unknown) and "://" not in word.prefix):
            return gap(f"{word} may name a transport, which is a program")
    folders = tuple(PathUse(word=word, access=access) for word in places if word.startswith(("/", ".")))
    return strategy(parsed, replace(use, paths=(*use.paths, *folders)))


def clones(parsed: Parsed, use: Use) -> Use:
    """`git clone URL` without a folder makes one by the name of the repository."""
    use = exchange(parsed, use)
    if use.gap or len(parsed.operands) != 1:
        return use
    name = re.split(r"[/:]", parsed.operands[0].rstrip("/"))[-1].removesuffix(".git")
    return replace(use, paths=(*use.paths, PathUse(word=name or ".", access=Access.WRITE, tree=True)))


def each_submodule(parsed: Parsed, use: Use) -> Use:
    """`git submodule foreach`: one word is text for a shell, several are a command, unless the first needs a shell."""
    words = parsed.operands
    if not words or any(isinstance(word, Unknown | Found) for word in words):
        return gap("what is run in each submodule is not known")
    if len(words) == 1:
        return replace(use, scripts=words)
    if re.fullmatch(r"[\w./+-]+", words[0]) is None:
        return gap(f"{words[0]} is text for a shell, with arguments")
    return replace(use, commands=(Inner(argv=words),))
