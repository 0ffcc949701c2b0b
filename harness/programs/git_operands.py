"""Refinements for git: paths in revisions, pathspecs, options among the operands, and words that make git list or
change.

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

# --- Paths in revisions, pathspecs, options among the operands

_FREE_TEXT = "-S -G -e --grep -I --anchored --word-diff-regex --format --pretty --sort --dirty --broken -m".split()
"""Options whose value may begin with a dash. In every version of git it may be the next word."""
_TELLING = tuple("--output --ext-diff --textconv --show-signature --submodule --no-index --open -O --stdin".split())
_FILE_IN_REVISION = regex(r"(?!.*\.\.)(?:[\w./~^-]|@\{\d+\})*:(?![!^/(]).+")
"""Pattern of a file in a revision. Excludes ranges, and braces that may contain a colon (`HEAD^{/a:b}` is a commit)."""
_FORMATS = ("--format", "--pretty", "--sort", "--batch-check")
_PATCH = (
    "-p -U -W --binary --patch-with-raw --patch-with-stat --check --word-diff --word-diff-regex --color-words -c --cc -m -L"
).split()
_NO_PATCH = (
    "--stat --shortstat --numstat --name-only --name-status --summary --raw -s --dirstat --quiet --compact-summary"
).split()


def revisions(parsed: Parsed, use: Use) -> Use:
    """Refine commands that show names or one file: `HEAD:.env`, `:0:.env` and `A:.env..B:.env` read `.env`.

    A path in a revision is relative to the top of the repository, which is unknown here. It is marked as such
    (`at_top`), and need not exist. A range or a branch also counts as a path, which does no harm.
    """
    return _spelled_out(parsed, use, globs=False)


def history(parsed: Parsed, use: Use) -> Use:
    """Refine `git log` and similar commands, which show patches if an option requests them."""
    return patched(parsed, use, patches=parsed.has(*_PATCH))


def patches(parsed: Parsed, use: Use) -> Use:
    """Refine `git diff` and `git show`.

    They show patches unless an option prevents it, and files of given object ids.
    """
    return patched(parsed, use, patches=_has_patches(parsed), objects=object_ids(parsed.operands[: parsed.before]))


def objects(parsed: Parsed, use: Use) -> Use:
    """Refine `git show`. `HEAD:src/a.py` shows only that file, and `HEAD:src` only names. Options may add commits."""
    words = parsed.operands[: parsed.before]
    if words and not parsed.options and all(_FILE_IN_REVISION.fullmatch(word) for word in words):
        return revisions(parsed, use)
    return patches(parsed, use)


def _has_patches(parsed: Parsed) -> bool:
    return parsed.has(*_PATCH) or not parsed.has(*_NO_PATCH)


def patched(parsed: Parsed, use: Use, *, patches: bool, objects: tuple[str, ...] = ()) -> Use:
    """Return the use of a command that shows history. `patches` adds the matches of patterns and the tracked files.

    Files that git no longer tracks, or tracks on another branch, are unknown here, because only the history has their
    names.
    """
    use = _spelled_out(parsed, use, globs=patches)
    words = parsed.operands[parsed.before or 0 :]
    # A file that git follows through renames may have had any name.
    if parsed.has("--full-diff", "--follow", "-L") or any(isinstance(word, Found) for word in words):
        words = ()
    selection = ShownFiles(words=words, behind_dashes=parsed.before is not None, patches=patches, objects=objects)
    return _with_tracked(use, selection)


def _with_tracked(use: Use, selection: ShownFiles) -> Use:
    """Return `use` with the tracked files that git shows."""
    if use.gap or not (selection.patches or selection.objects):
        return use
    return replace(use, paths=(*use.paths, PathUse(word=".", access=Access.READ, tree=True, tracked=selection)))


def ranges(parsed: Parsed, use: Use) -> Use:
    """Refine commands that show patches unless an option prevents it, and whose operands do not select files."""
    use = _spelled_out(parsed, use, globs=True)
    return _with_tracked(use, ShownFiles()) if _has_patches(parsed) else use


def status(parsed: Parsed, use: Use) -> Use:
    """Refine `git status`. With -v it shows staged changes, whatever the operands."""
    use = revisions(parsed, use)
    return _with_tracked(use, ShownFiles()) if parsed.has("-v") else use


def archived(parsed: Parsed, use: Use) -> Use:
    """Refine `git archive`. It outputs whole files. The operands after the tree are pathspecs."""
    return _with_tracked(
        _spelled_out(parsed, use, globs=True), ShownFiles(words=parsed.operands[1:], behind_dashes=True)
    )


def object_content(parsed: Parsed, use: Use) -> Use:
    """Refine `git cat-file`. An object id may be that of an older version of any file."""
    use = revisions(parsed, use)
    printed = parsed.has("-p") or len(parsed.operands) == 2
    return _with_tracked(use, ShownFiles()) if printed and object_ids(parsed.operands) else use


def comparison(parsed: Parsed, use: Use) -> Use:
    """Refine `git diff`. With `--no-index` it compares two operands and everything below them, including `.git`.

    Outside of a repository git does this without the option too (git-diff(1)). One operand from the output
    of another program may be two files.
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
    """Refine `git stash show`. It passes its words on to another command, which may read a value as an option."""
    for option in parsed.options:
        if isinstance(option.value, Unknown | Found):
            return gap(f"{option.value} may be an option")
    return ranges(parsed, use)


def stashes(parsed: Parsed, use: Use) -> Use:
    """Refine `git stash list`. It passes its words on like `git stash show`, and shows patches if an option requests
    them.
    """
    stash_use = stashed(parsed, use)
    return stash_use if stash_use.gap or parsed.has(*_PATCH) else revisions(parsed, use)


def search(parsed: Parsed, use: Use) -> Use:
    """Refine `git grep`. It reads tracked files, and new ones with --untracked. With --no-index or a revision, all
    files.
    """
    first = 0 if parsed.has("-e", "-f") else 1
    candidates = [word for word in parsed.operands[first:] if word not in ("(", ")")]
    before = parsed.before
    parted = before is not None and (before > 0 or first == 0)  # else the `--` precedes the pattern
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
    """Return the use with its operands as folders to search. Add the current folder if every operand is a revision or
    an exclusion.
    """
    trees = (replace(path, tree=True) if path.word in candidates else path for path in use.paths)
    use = _spelled_out(parsed, replace(use, paths=tuple(trees)), globs=True)
    if use.gap or any(not is_exclusion(word) and not _is_revision(word) for word in candidates):
        return use
    return replace(use, paths=(*use.paths, PathUse(word=".", access=Access.READ, tree=True, skips=(".git",))))


def working_tree(parsed: Parsed, use: Use) -> Use:
    """Refine commands that change the files that their operands name."""
    return _spelled_out(parsed, use, globs=True)


def added(parsed: Parsed, use: Use) -> Use:
    """Refine `git add`. It adds changed files, and new ones unless -u is set. -A and -u without operands add the whole
    repository.
    """
    if parsed.has("-n"):
        return _with_files(parsed, use, parsed.operands)
    every = parsed.has("-u", "-A", "--renormalize", "-i", "-p", "-e")
    kinds = [GitFiles.CHANGED] if parsed.operands or every else []
    if kinds and not parsed.has("-u"):
        kinds += [GitFiles.NEW, *([GitFiles.IGNORED] if parsed.has("-f") else [])]
    return _with_files(parsed, use, parsed.operands, *kinds)


def committed(parsed: Parsed, use: Use) -> Use:
    """Refine `git commit`. It adds the changed files of the repository with -a, or those that match its pathspecs."""
    every = parsed.has("-a", "--interactive", "-p")
    if parsed.has("--dry-run") or not (every or parsed.operands):
        return _with_files(parsed, use, parsed.operands)
    return _with_files(parsed, use, () if every else parsed.operands, GitFiles.CHANGED)


def stowed(parsed: Parsed, use: Use) -> Use:
    """Refine `git stash`. It stores changed files, with -u also new ones, with -a also ignored ones."""
    kinds = [] if parsed.has("-S") else [GitFiles.CHANGED]
    if parsed.has("-u", "-a"):
        kinds += [GitFiles.NEW, *([GitFiles.IGNORED] if parsed.has("-a") else [])]
    return _with_files(parsed, use, parsed.operands, *kinds)


def stowed_with_words(parsed: Parsed, use: Use) -> Use:
    """Refine `git stash save` and `git stash create`. Their operands are a message."""
    return stowed(replace(parsed, operands=()), use)


def refreshed(parsed: Parsed, use: Use) -> Use:
    """Refine `git update-index`. With --again it reads changed files."""
    use = _spelled_out(parsed, use, globs=False)
    return _with_files(parsed, use, (), *([GitFiles.CHANGED] if parsed.has("--again") else []))


def _with_files(parsed: Parsed, use: Use, pathspecs: Sequence[str], *kinds: GitFiles) -> Use:
    """Return `use` with the files of these kinds that git adds to the index or stores as objects."""
    magic = [word for word in pathspecs if _is_magic(word)]
    words = () if magic or any(isinstance(word, Unknown | Found) for word in pathspecs) else tuple(pathspecs)
    if magic and kinds:  # `:/` and similar pathspecs match anywhere in the repository
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
    """Return `use` with the paths that its operands mean. `globs` adds the matches of patterns. In doubt, a gap."""
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
    # No pathspec matches files in `.git`, and `git grep --no-index` does not enter it either.
    paths = [replace(path, skips=(".git",)) if path.tree and path.handed is None else path for path in paths]
    return replace(use, paths=tuple(dict.fromkeys(paths)))


def _out_of_place(parsed: Parsed) -> str:
    """Return the reason why git may read a word as an option although the tables do not, or an empty string.

    `git stash list` passes the words after `--` to `git log`, which reads them as options. `git stash show` separates
    options from their values in the next word. `git describe --contains` passes its operands to `git name-rev`.
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
    # The second half of a/../b is not the end of a range.
    ends = [piece for piece in re.split(r"\.\.\.?", word) if not piece.startswith("/")] if ".." in word else []
    for piece in (word, *ends):
        for colon in re.finditer(":", piece):
            if rest := piece[colon.end() :]:
                yield rest


def _matched(path: PathUse) -> Iterator[PathUse]:
    """Yield the folders in which a pattern may match (gitglossary(7), pathspec). `*` also matches slashes and dots."""
    first = re.search(r"[*?\[\\]", path.word)
    if first is None:
        return
    folder, slash, _ = path.word[: first.start()].rpartition("/")
    # Text before the last star may match part of a folder's name. Text after it is the end of the file's name.
    ending = path.word.rpartition("*")[2]
    only = (f"*{ending}",) if ending and "*" in path.word and not re.search(r"[\[\\?/]", ending) else ()
    yield replace(path, word=folder or ("/" if slash else "."), tree=True, only=only)
    yield replace(path, tree=True)  # a folder may have exactly this name


def _is_magic(word: str) -> bool:
    return (word == ":" or word.startswith((":(", ":/"))) and not is_exclusion(word)


def _is_revision(word: str) -> bool:
    return re.search(r"^(?:HEAD|@|FETCH_HEAD|ORIG_HEAD)$|[~^@:]|\.\.|^[0-9a-f]{7,64}$", word) is not None


def _starts_gpg(parsed: Parsed) -> str:
    """Return the reason why a format or a sorting key may start gpg, or an empty string.

    Examples are `%G?`, `%+GS` and `%(signature:key)`.
    """
    for text in parsed.values(*_FORMATS):
        if isinstance(text, Unknown | Found):
            return f"the format {text} is not known"
        if re.search(r"%[-+ ]*G|signature", text):
            return f"{text} starts gpg"
    return ""


# --- Words that make git list or change, and other repositories

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
    """Refine `git branch`. With a name it creates a branch, also with -v or --sort.

    It lists without a name or with a listing option.
    """
    use = listed_names(parsed, use)
    return use if use.gap or not parsed.operands or parsed.has(*_LISTING, "--show-current") else _changes(use)


def tags(parsed: Parsed, use: Use) -> Use:
    """Refine `git tag` like `git branch`. -n also lists."""
    use = listed_names(parsed, use)
    return use if use.gap or not parsed.operands or parsed.has(*_LISTING, "-n") else _changes(use)


def reference_logs(parsed: Parsed, use: Use) -> Use:
    """Refine `git reflog`. Old versions of git may run the subcommand in `git reflog -n5 expire`."""
    use = history(parsed, use)
    return _changes(use) if {"expire", "delete", "drop", "write"}.intersection(parsed.operands[:1]) else use


def remotes(parsed: Parsed, use: Use) -> Use:
    """Refine `git remote`. A subcommand may follow an option: `git remote -v update`."""
    if parsed.operands:
        return _changes(use, network=True)
    return _shows_settings(use) if parsed.has("-v") else use


def shown_remote(parsed: Parsed, use: Use) -> Use:
    """Refine `git remote show`. With a name it asks that remote, unless -n is set, and shows its address."""
    return _shows_settings(replace(use, network=bool(parsed.operands) and not parsed.has("-n")))


def shown_address(parsed: Parsed, use: Use) -> Use:  # noqa: ARG001 - as all refinements
    """Refine `git remote get-url`. It shows an address, which may contain a token."""
    return _shows_settings(use)


def _shows_settings(use: Use) -> Use:
    """Return `use` with `.git/config`, of which the command prints a part. Rules about that file then apply."""
    settings = PathUse(word=".git/config", access=Access.READ, at_top=True)
    return use if use.gap else replace(use, paths=(*use.paths, settings))


def listed_names(parsed: Parsed, use: Use) -> Use:
    """Refine lists of references. `%(upstream:remotename)` is an address if the branch has no named remote."""
    use = revisions(parsed, use)
    names = any("remotename" in format_ for format_ in parsed.values("--format", "--sort"))
    return _shows_settings(use) if names else use


def one_name(parsed: Parsed, use: Use) -> Use:
    """Refine `git symbolic-ref HEAD [REF]`. With one operand it shows a reference, with two it sets one."""
    return use if len(parsed.operands) == 1 else _changes(use)


def settings(parsed: Parsed, use: Use) -> Use:
    """Refine `git config`. It shows values with an option such as --get, or with a single key; else it sets a value.

    Options after the first operand are values (`git config alias.x --list`). A setting may name a program (core.pager,
    alias.x, filter.x.clean). So the model covers only a few plain settings, and only of this repository.
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
    """Refine `git config get` (git 2.46). It only shows."""
    return _shown_setting(parsed, revisions(parsed, use))


def _shown_setting(parsed: Parsed, use: Use) -> Use:
    return use if parsed.has("-f", "--blob", "--global", "--system") else _shows_settings(use)


def listed_settings(parsed: Parsed, use: Use) -> Use:
    """Refine lists of settings. Without a file or scope they show the user's own settings, which may contain tokens."""
    if use.gap or parsed.has("-f", "--blob"):
        return use
    if parsed.has("--local", "--worktree", "--name-only"):
        return _shows_settings(use)
    return gap("the person's own settings are listed too")


def _is_plain_setting(word: str) -> bool:
    return not isinstance(word, Unknown | Found) and word.lower() in _PLAIN_SETTINGS


def cleaning(parsed: Parsed, use: Use) -> Use:
    """Refine `git clean`. It removes files, except in a dry run."""
    use = working_tree(parsed, use)
    if use.gap or parsed.has("-n"):
        return use
    paths = use.paths or (PathUse(word=".", access=Access.WRITE),)
    trees = (replace(path, access=Access.WRITE, tree=True, skips=(".git",)) for path in paths)
    return _changes(replace(use, paths=tuple(trees)))


def dry(parsed: Parsed, use: Use) -> Use:
    """Refine `git apply`. With --stat, --check or similar options it only reads the patch."""
    looks = parsed.has("--stat", "--numstat", "--summary", "--check") and not parsed.has("--apply")
    return use if looks else _changes(use)


def patch_files(parsed: Parsed, use: Use) -> Use:
    """Refine `git format-patch`. It writes files to a folder, unless --stdout makes it print."""
    use = patched(parsed, use, patches=True)
    if use.gap or parsed.has("--stdout"):
        return use
    return _changes(replace(use, paths=(*use.paths, PathUse(word=".", access=Access.WRITE))))


def strategy(parsed: Parsed, use: Use) -> Use:
    """Return a gap for an unknown merge strategy. Git runs it as the program `git-merge-NAME`."""
    if any(isinstance(name, Unknown) or name not in _STRATEGIES for name in parsed.values("--strategy")):
        return gap("a merge strategy may be a program")
    return use


def exchange(parsed: Parsed, use: Use) -> Use:
    """Refine commands that reach another repository, named by their first operand.

    `ext::sh -c x` runs a program; `../x` is a folder. A plain name refers to an address in the configuration, so such
    a command is never a reader.
    """
    return _exchange(parsed, use, Access.READ)


def listed_remote(parsed: Parsed, use: Use) -> Use:
    """Refine `git ls-remote`. It prints the address of the remote; with `--get-url` only that."""
    return _shows_settings(exchange(parsed, use))


def publication(parsed: Parsed, use: Use) -> Use:
    """Refine `git push`. It writes to the other repository."""
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
    """Refine `git clone`. Without a folder it creates one with the name of the repository."""
    use = exchange(parsed, use)
    if use.gap or len(parsed.operands) != 1:
        return use
    name = re.split(r"[/:]", parsed.operands[0].rstrip("/"))[-1].removesuffix(".git")
    return replace(use, paths=(*use.paths, PathUse(word=name or ".", access=Access.WRITE, tree=True)))


def each_submodule(parsed: Parsed, use: Use) -> Use:
    """Refine `git submodule foreach`. One word is text for a shell; several are a command.

    A gap if the first of several words needs a shell.
    """
    words = parsed.operands
    if not words or any(isinstance(word, Unknown | Found) for word in words):
        return gap("what is run in each submodule is not known")
    if len(words) == 1:
        return replace(use, scripts=words)
    if re.fullmatch(r"[\w./+-]+", words[0]) is None:
        return gap(f"{words[0]} is text for a shell, with arguments")
    return replace(use, commands=(Inner(argv=words),))
