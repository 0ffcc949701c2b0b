"""The meaning of git's words: paths inside revisions, pathspecs, options among operands, and words that make it list
or change.

Each public function is a refinement (program.py): it returns the use from the tables, a stricter one, or a gap.
git.py assigns the functions to subcommands.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence

from harness.actions import Access, Act
from harness.programs.git_pathspecs import GitFiles, ShownFiles, is_exclusion, object_ids
from harness.programs.options import stricter
from harness.programs.program import Found, Inner, Parsed, PathUse, Unknown, Use, gap
from harness.record import replace
from harness.regex import regex

# --- Paths inside revisions, pathspecs, words that are options after all

_FREE_TEXT = "-S -G -e --grep -I --anchored --word-diff-regex --format --pretty --sort --dirty --broken -m".split()
"""Options whose value may well begin with a dash, and has been allowed to be the next word in every version."""
_TELLING = tuple("--output --ext-diff --textconv --show-signature --submodule --no-index --open -O --stdin".split())
_FILE_IN_REVISION = regex(r"(?!.*\.\.)(?:[\w./~^-]|@\{\d+\})*:(?![!^/(]).+")
"""No range, and without braces that may hold a colon themselves (`HEAD^{/a:b}` is a commit)."""
_FORMATS = ("--format", "--pretty", "--sort", "--batch-check")
_PATCH = (
    "-p -U -W --binary --patch-with-raw --patch-with-stat --check --word-diff --word-diff-regex --color-words -c --cc -m -L"
).split()
_NO_PATCH = (
    "--stat --shortstat --numstat --name-only --name-status --summary --raw -s --dirstat --quiet --compact-summary"
).split()


def revisions(parsed: Parsed, use: Use) -> Use:
    """For commands that show names, or one file: `HEAD:.env`, `:0:.env` and `A:.env..B:.env` read `.env`.

    Behind a revision a path begins at the top of the repository, which is not known here: it is given as if the command
    ran there, and is not bound to exist. A range or a branch counts as a path too; that costs nothing.
    """
    return _spelled_out(parsed, use, globs=False)


def history(parsed: Parsed, use: Use) -> Use:
    """Refine `git log` and similar commands, which show patches if an option requests them."""
    return patched(parsed, use, patches=parsed.has(*_PATCH))


def patches(parsed: Parsed, use: Use) -> Use:
    """For `git diff` and `git show`, which show patches unless an option says otherwise, and files by their object ids."""
    return patched(parsed, use, patches=_has_patches(parsed), objects=object_ids(parsed.operands[: parsed.before]))


def objects(parsed: Parsed, use: Use) -> Use:
    """For `git show`: of `HEAD:src/a.py` it shows that file alone, and of a folder the names; options may add commits."""
    words = parsed.operands[: parsed.before]
    if words and not parsed.options and all(_FILE_IN_REVISION.fullmatch(word) for word in words):
        return revisions(parsed, use)
    return patches(parsed, use)


def _has_patches(parsed: Parsed) -> bool:
    return parsed.has(*_PATCH) or not parsed.has(*_NO_PATCH)


def patched(parsed: Parsed, use: Use, *, patches: bool, objects: tuple[str, ...] = ()) -> Use:
    """Return the use of a command that shows history. For patches it adds the matches of patterns and git's tracked
    files.

    Files that git no longer tracks, or that it tracks on another branch, are unknown here: only the history has their
    names.
    """
    use = _spelled_out(parsed, use, globs=patches)
    words = parsed.operands[parsed.before or 0 :]
    # What is followed may have had any name before.
    if parsed.has("--full-diff", "--follow", "-L") or any(isinstance(word, Found) for word in words):
        words = ()
    selection = ShownFiles(words=words, behind_dashes=parsed.before is not None, patches=patches, objects=objects)
    return _with_tracked(use, selection)


def _with_tracked(use: Use, selection: ShownFiles) -> Use:
    """Return the same, with what git shows of the files that it tracks."""
    if use.gap or not (selection.patches or selection.objects):
        return use
    return replace(use, paths=(*use.paths, PathUse(word=".", access=Access.READ, tree=True, tracked=selection)))


def ranges(parsed: Parsed, use: Use) -> Use:
    """For commands that show patches unless an option says otherwise, and whose words do not say of which files."""
    use = _spelled_out(parsed, use, globs=True)
    return _with_tracked(use, ShownFiles()) if _has_patches(parsed) else use


def status(parsed: Parsed, use: Use) -> Use:
    """Refine: `git status -v` shows staged changes, for any operands."""
    use = revisions(parsed, use)
    return _with_tracked(use, ShownFiles()) if parsed.has("-v") else use


def archived(parsed: Parsed, use: Use) -> Use:
    """`git archive` holds the files themselves; behind the tree its operands are pathspecs."""
    return _with_tracked(
        _spelled_out(parsed, use, globs=True), ShownFiles(words=parsed.operands[1:], behind_dashes=True)
    )


def object_content(parsed: Parsed, use: Use) -> Use:
    """Refine: `git cat-file` shows the object of an id, which may be an older version of any file."""
    use = revisions(parsed, use)
    printed = parsed.has("-p") or len(parsed.operands) == 2
    return _with_tracked(use, ShownFiles()) if printed and object_ids(parsed.operands) else use


def comparison(parsed: Parsed, use: Use) -> Use:
    """For `git diff`: with `--no-index` two operands are compared with all that is below them, `.git` among it.

    So they are without it where git sees no repository (git-diff(1)). Files that another program finds may be two as well.
    """
    no_index = parsed.has("--no-index")
    use = _spelled_out(parsed, use, globs=_has_patches(parsed)) if no_index else patches(parsed, use)
    if not no_index and len(parsed.operands) != 2 and not any(isinstance(word, Found) for word in parsed.operands):
        return use
    words = {start for word in parsed.operands for start in (word.starts if isinstance(word, Found) else (word,))}
    return replace(use, paths=tuple(_compared(path, words, no_index=no_index) for path in use.paths))


def _compared(path: PathUse, words: Container[str], *, no_index: bool) -> PathUse:
    if path.word not in words or path.at_top or path.tracked is not None:
        return path
    is_handed = path.handed is not None
    skips = () if no_index or is_handed else (".git",)
    return replace(path, tree=True, only=(), skips=skips, compared=not no_index, handed=None)


def stashed(parsed: Parsed, use: Use) -> Use:
    """For `git stash show`, which hands words on and may take a value for an option on the way."""
    for option in parsed.options:
        if isinstance(option.value, Unknown | Found):
            return gap(f"{option.value} may be an option")
    return ranges(parsed, use)


def stashes(parsed: Parsed, use: Use) -> Use:
    """For `git stash list`, which does so too, and shows patches where an option says so."""
    stash_use = stashed(parsed, use)
    return stash_use if stash_use.gap or parsed.has(*_PATCH) else revisions(parsed, use)


def search(parsed: Parsed, use: Use) -> Use:
    """For `git grep`: the tracked files, and new ones with --untracked. With --no-index, and beside a revision, all files."""
    first = 0 if parsed.has("-e", "-f") else 1
    candidates = [word for word in parsed.operands[first:] if word not in ("(", ")")]
    before = parsed.before
    parted = before is not None and (before > 0 or first == 0)  # else it stands in front of the pattern
    words = parsed.operands[max(before or 0, first) :] if parted else tuple(candidates)
    if (before is not None and not parted) or any(isinstance(word, Unknown | Found) for word in words):
        words, parted = (), False
    likely = [word for word in candidates if _is_revision(word) and not is_exclusion(word)]
    reaches_back = (before or 0) > first or (not parted and bool(likely))
    everything = parsed.has("--no-index") or reaches_back or (before is not None and not parted)
    use = _searched(parsed, use, candidates) if everything else _spelled_out(parsed, use, globs=False)
    if use.gap or parsed.has("--no-index"):
        return use
    kinds = [GitFiles.TRACKED]
    if parsed.has("--untracked"):
        kinds += [GitFiles.NEW, *([GitFiles.IGNORED] if parsed.has("--no-exclude-standard") else [])]
    folder = PathUse(word=".", access=Access.READ, tree=True, follows=True)
    selections = (ShownFiles(kind=kind, words=words, behind_dashes=parted) for kind in kinds)
    return replace(use, paths=(*use.paths, *(replace(folder, tracked=selection) for selection in selections)))


def _searched(parsed: Parsed, use: Use, candidates: Sequence[str]) -> Use:
    """Return a search of trees, or of the current folder where every operand is a revision, or only narrows."""
    trees = (replace(path, tree=True) if path.word in candidates else path for path in use.paths)
    use = _spelled_out(parsed, replace(use, paths=tuple(trees)), globs=True)
    if use.gap or any(not is_exclusion(word) and not _is_revision(word) for word in candidates):
        return use
    return replace(use, paths=(*use.paths, PathUse(word=".", access=Access.READ, tree=True, skips=(".git",))))


def working_tree(parsed: Parsed, use: Use) -> Use:
    """For commands that change the files that their operands name."""
    return _spelled_out(parsed, use, globs=True)


def added(parsed: Parsed, use: Use) -> Use:
    """For `git add`: changed files, and new ones unless -u is given. Without operands -A and -u mean the whole repository."""
    if parsed.has("-n"):
        return _with_files(parsed, use, parsed.operands)
    every = parsed.has("-u", "-A", "--renormalize", "-i", "-p", "-e")
    kinds = [GitFiles.CHANGED] if parsed.operands or every else []
    if kinds and not parsed.has("-u"):
        kinds += [GitFiles.NEW, *([GitFiles.IGNORED] if parsed.has("-f") else [])]
    return _with_files(parsed, use, parsed.operands, *kinds)


def committed(parsed: Parsed, use: Use) -> Use:
    """For `git commit`: with -a the changed files of the repository, with pathspecs those that they mean."""
    every = parsed.has("-a", "--interactive", "-p")
    if parsed.has("--dry-run") or not (every or parsed.operands):
        return _with_files(parsed, use, parsed.operands)
    return _with_files(parsed, use, () if every else parsed.operands, GitFiles.CHANGED)


def stowed(parsed: Parsed, use: Use) -> Use:
    """For `git stash`, which keeps changed files, with -u new ones, and with -a ignored ones."""
    kinds = [] if parsed.has("-S") else [GitFiles.CHANGED]
    if parsed.has("-u", "-a"):
        kinds += [GitFiles.NEW, *([GitFiles.IGNORED] if parsed.has("-a") else [])]
    return _with_files(parsed, use, parsed.operands, *kinds)


def stowed_with_words(parsed: Parsed, use: Use) -> Use:
    """For `git stash save`, whose operands are its message."""
    return stowed(replace(parsed, operands=()), use)


def refreshed(parsed: Parsed, use: Use) -> Use:
    """For `git update-index`: --again takes changed files."""
    use = _spelled_out(parsed, use, globs=False)
    return _with_files(parsed, use, (), *([GitFiles.CHANGED] if parsed.has("--again") else []))


def _with_files(parsed: Parsed, use: Use, pathspecs: Sequence[str], *kinds: GitFiles) -> Use:
    """Return the same, with the files of these kinds that git takes into the index or into an object."""
    magic = [word for word in pathspecs if _is_magic(word)]
    words = () if magic or any(isinstance(word, Unknown | Found) for word in pathspecs) else tuple(pathspecs)
    if magic and kinds:  # `:/` and its like: anywhere in the repository
        plain = tuple(word for word in parsed.operands if word not in magic)
        parsed = replace(parsed, operands=plain)
        use = replace(use, paths=tuple(path for path in use.paths if path.word not in magic))
    use = _spelled_out(parsed, use, globs=True)
    if use.gap:
        return use
    selections = (ShownFiles(kind=kind, words=words, behind_dashes=True) for kind in kinds)
    folder = PathUse(word=".", access=Access.READ, tree=True)
    return replace(use, paths=(*use.paths, *(replace(folder, tracked=selection) for selection in selections)))


def _spelled_out(parsed: Parsed, use: Use, *, globs: bool) -> Use:
    """Return `use` with the meaning of the operands among its paths; with `globs`, also the matches of patterns. A
    gap in doubt.
    """
    if reason := _out_of_place(parsed) or _starts_gpg(parsed):
        return gap(reason)
    paths: list[PathUse] = []
    for path in use.paths:
        if path.word not in parsed.operands:
            paths.append(path)
        elif _is_magic(path.word):
            return gap(f"{path.word} may stand for paths anywhere in the repository")
        elif is_exclusion(path.word):
            paths.append(replace(path, exclusion=True))
            if "/../" in path.word:
                paths.append(replace(path, word=path.word.partition("/../")[2], at_top=True))
        else:
            paths.append(path)
            paths += [replace(path, word=inner, at_top=True) for inner in _inside(path.word)]
            if globs:
                paths += _matched(path)
    for text in parsed.values("-L", "--blob"):  # `start,end:file` and `:function:file`; `REV:file`
        paths += [PathUse(word=inner, access=Access.READ, at_top=True) for inner in _inside(text)]
    # No pathspec reaches what lies below `.git`, and `git grep --no-index` does not go there either.
    paths = [replace(path, skips=(".git",)) if path.tree and path.handed is None else path for path in paths]
    return replace(use, paths=tuple(dict.fromkeys(paths)))


def _out_of_place(parsed: Parsed) -> str:
    """Return the reason why git may read a word as an option although the tables do not, or an empty string.

    `git stash list` passes the words after `--` to `git log`, which takes them for options; `git stash show`
    separates options from values that are words of their own; `git describe --contains` passes its operands to `git
    name-rev`.
    """
    for word in parsed.operands:
        if word.startswith("-") and word != "-":
            return f"{word} may be an option"
    for option in parsed.options:
        value = option.value or ""
        free = option.name in _FREE_TEXT and value != "--" and not value.startswith(_TELLING)
        if value.startswith("-") and value != "-" and not free:
            return f"{value} behind {option.name} may be an option"
    return ""


def _inside(word: str) -> Iterator[str]:
    """Yield possible paths in a revision or a range: all text after a colon (gitrevisions(7)).

    A colon may also be in braces (`HEAD@{10:30}:f`, `HEAD^{/a:b}:f`); the result is then one path too many.
    """
    # The second half of a/../b is no end of a range.
    ends = [piece for piece in re.split(r"\.\.\.?", word) if not piece.startswith("/")] if ".." in word else []
    for piece in (word, *ends):
        for colon in re.finditer(":", piece):
            if rest := piece[colon.end() :]:
                yield rest


def _matched(path: PathUse) -> Iterator[PathUse]:
    """Yield the tree in which a pattern may match (gitglossary(7), pathspec): `*` matches slashes and dots too."""
    first = re.search(r"[*?\[\\]", path.word)
    if first is None:
        return
    folder, slash, _ = path.word[: first.start()].rpartition("/")
    # What stands before the last star may lie in the name of a folder; what follows it ends the name of the file.
    ending = path.word.rpartition("*")[2]
    only = (f"*{ending}",) if ending and "*" in path.word and not re.search(r"[\[\\?/]", ending) else ()
    yield replace(path, word=folder or ("/" if slash else "."), tree=True, only=only)
    yield replace(path, tree=True)  # a folder may have this very name


def _is_magic(word: str) -> bool:
    return (word == ":" or word.startswith((":(", ":/"))) and not is_exclusion(word)


def _is_revision(word: str) -> bool:
    return re.search(r"^(?:HEAD|@|FETCH_HEAD|ORIG_HEAD)$|[~^@:]|\.\.|^[0-9a-f]{7,64}$", word) is not None


def _starts_gpg(parsed: Parsed) -> str:
    """Return the reason why a format or a sorting key may start gpg, or an empty string.

    Such are `%G?`, `%+GS` and `%(signature:key)`.
    """
    for text in parsed.values(*_FORMATS):
        if isinstance(text, Unknown | Found):
            return f"the format {text} is not known"
        if re.search(r"%[-+ ]*G|signature", text):
            return f"{text} starts gpg"
    return ""


# --- What makes it list or change, and with whom it talks

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
    """Refine `git remote -v update`: the subcommand may follow an option."""
    if parsed.operands:
        return _changes(use, network=True)
    return _shows_settings(use) if parsed.has("-v") else use


def shown_remote(parsed: Parsed, use: Use) -> Use:
    """Refine: `git remote show NAME` asks the remote, unless an option forbids it; for a name it shows the address."""
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
    """Refine lists of settings: without a named file they show the user's own settings, which may contain tokens."""
    if use.gap or parsed.has("-f", "--blob"):
        return use
    if parsed.has("--local", "--worktree", "--name-only"):
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
    """Refine commands that talk to a repository, their first operand: `ext::sh -c x` runs a program, `../x` is a
    folder.

    The repository's configuration determines the folder of a mere name; such a command is never a reader.
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
