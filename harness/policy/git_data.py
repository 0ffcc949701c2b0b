"""The data of git, Mercurial and Jujutsu in the workspace, and the commands that write it, by their words. Pure tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import dropwhile

from harness.actions import Access, Act, Action, Command, Facet, Opaque, PathAccess
from harness.policy.loose_commands import programs_in
from harness.programs.losses import losses, program_named
from harness.programs.runners import from_subcommand
from harness.regex import regex

_KEEPS_HISTORY = {
    "git": frozenset(
        "add rm mv restore clean apply status log diff show blame grep ls-files ls-tree rev-parse describe check-ignore "
        "cat-file shortlog archive format-patch for-each-ref merge-base rev-list name-rev var help version".split()
    ),
    "hg": frozenset(
        "add addremove forget remove rm copy cp rename move mv revert status st log history diff annotate blame cat files "
        "manifest locate grep heads tip parents root summary sum identify id archive export paths help version".split()
    ),
    "jj": frozenset("status st log diff show interdiff evolog root help version".split()),
}
"""Subcommands that leave commits, branches and settings as they are, by program. Some change files or the index.

From git(1), hg(1) and `jj help`. Each command of Jujutsu also records the files as they are.
"""
_CHANGES_HISTORY = {
    "git": frozenset(
        "commit reset rebase merge stash branch checkout switch tag cherry-pick am revert update-ref gc reflog".split()
    ),
    "hg": frozenset("commit ci amend update merge rebase graft import tag branch bookmark backout strip".split()),
    "jj": frozenset("commit describe new edit squash split abandon rebase bookmark undo restore".split()),
}
"""Subcommands that change commits or branches, by program, for text whose commands are not known."""
_WRITES_GIT = frozenset(
    "git gh glab jj gt sl dvc tig lazygit gitui pre-commit lint-staged husky lefthook cz commitizen semantic-release "
    "standard-version release-it lerna changeset bump2version bumpversion bump-my-version tbump".split()
)
"""Programs that write the data of git in the workspace, directly or by git."""
_WRITES_GIT_BY = frozenset(
    tuple(line.split())
    for line in "npm version;pnpm version;yarn version;cargo init;cargo new;cargo release;uv init".split(";")
)
"""Beginnings of further commands that do."""
_TAKES_IGNORED = regex(r"-[a-zA-Z]*[xX]")
"""Options of `git clean` that also remove ignored files."""
_CONFIGURES = frozenset("branch switch checkout remote rebase".split())
"""Subcommands of git that note a branch or a remote in `.git/config`."""
_UPSTREAM = ("-u", "--set-upstream")


def writes_git(part: Facet) -> bool:
    """Return whether a part of a call writes the data of git in the workspace, by its words."""
    match part:
        case Command():
            lines: Sequence[tuple[str, ...]] = part.run_by if part.act is Act.LOOKS else (part.argv, *part.run_by)
        case Opaque():
            lines = programs_in(part)
            if any(loosely_changed_histories(part)):
                return True
        case PathAccess():
            return writes_into_git(part)
        case _:
            return False
    return any(program_named(words[0]) in _WRITES_GIT or words[:2] in _WRITES_GIT_BY for words in lines if words)


def writes_into_git(path: PathAccess) -> bool:
    """Return whether an access writes a path of a folder `.git`."""
    return path.access is Access.WRITE and any(".git" in name.split("/") for name in path.names)


def beside_code(action: Action, part: Facet) -> str:
    """Return the reason why a part that writes the data of git must not run unasked beside code, which could do more.

    Empty without such code.
    """
    if not writes_git(part):
        return ""
    is_code = (
        isinstance(other, Opaque)
        or (
            isinstance(other, Command)
            and other.act in (Act.CHANGES, Act.RUNS, Act.UNKNOWN)
            and program_named(other.argv[0]) not in _KEEPS_HISTORY
        )
        for other in action.facets
    )
    return "code beside git could destroy its history" if any(is_code) else ""


def runs_hooks_at_most(part: Facet) -> bool:
    """Return whether a part is a command of git that changes commits or branches, and runs no code but hooks."""
    if not isinstance(part, Command) or part.run_by or program_named(part.argv[0]) != "git":
        return False
    return any(verb in _CHANGES_HISTORY["git"] - _CONFIGURES for verb in part.argv[1:2])


def changed_history(words: Sequence[str]) -> str:
    """Return the reason why undo cannot take back a command that changes commits, branches or settings.

    Empty for any other command.
    """
    name = program_named(words[0]) if words else ""
    if name not in _KEEPS_HISTORY:
        return ""
    verb = next(iter(from_subcommand(words)), "help")
    if name != "git" and any(word.startswith("--config") for word in words):  # it may be the alias of another
        return lost_history(name)
    of_paths = verb == "checkout" and any("of paths" in sentence for sentence in losses(words))
    return "" if of_paths or verb in _KEEPS_HISTORY[name] else lost_history(name)


def lost_history(program: str) -> str:
    """Return the reason why undo cannot take back a change of the history that `program` keeps."""
    return f"cannot be undone: {program} history"


def losses_by_git(line: Sequence[str]) -> str:
    """Return the reason why undo cannot take back what git, Mercurial or Jujutsu deletes by a line.

    Empty if they are known to delete nothing else.
    """
    words = tuple(dropwhile(lambda word: program_named(word) not in _KEEPS_HISTORY, line))
    if (reason := changed_history(words)) and any(losses(words)):
        return reason
    takes_ignored = words[1:2] == ("clean",) and any(map(_TAKES_IGNORED.match, words))
    return "cannot be undone: files that git ignores" if takes_ignored else ""


def loosely_changed_histories(text: Opaque) -> Iterator[str]:
    """Yield the reasons why undo cannot take back commands that text which could not be parsed may put together."""
    words = {program_named(word) for command in text.commands for word in command}
    alone = {program_named(command[0]) for command in text.commands if len(command) == 1}
    for name, verbs in _CHANGES_HISTORY.items():
        if name in alone or (name in words and not words.isdisjoint(verbs)):
            yield lost_history(name)


_OTHER_CONFIG = frozenset(
    "--global --system --file -f --blob --get --get-all --get-regexp --get-urlmatch -l --list".split()
)
"""Options of `git config` that name another file, or only read."""
_CONFIG_CHANGES = frozenset("--unset --unset-all --remove-section --edit -e unset remove-section edit".split())
"""Options and subcommands of `git config` that change it without a value."""


def places_of_git(words: Sequence[str]) -> Iterator[str]:
    """Yield the names of protected places that git itself maintains, by its subcommand and the words after it."""
    subcommand, rest = (words[0] if words else ""), words[1:]
    if subcommand in ("init", "clone", "submodule"):
        yield ".git"
    elif subcommand == "worktree":
        yield ".git/worktrees"
    elif subcommand in _CONFIGURES or (subcommand in ("push", "fetch", "pull") and _sets_upstream(rest)):
        yield ".git/config"
        if subcommand == "rebase":
            yield ".git/rebase-merge"


def sets_config(words: Sequence[str]) -> bool:
    """Return whether `git config` with these words changes the configuration of the repository (git-config(1))."""
    if any(word.partition("=")[0] in _OTHER_CONFIG for word in words):
        return False
    operands = [word for word in words if not word.startswith("-")]
    if operands[:1] in (["get"], ["list"]):
        return False
    return len(operands) > 1 or not _CONFIG_CHANGES.isdisjoint(words)


def _sets_upstream(words: Sequence[str]) -> bool:
    return any(word in _UPSTREAM or (word[:1] == "-" and word[:2] != "--" and "u" in word) for word in words)
