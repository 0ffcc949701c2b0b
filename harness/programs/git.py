"""git (2.20 to 2.52): the subcommands that look, and those that look or change depending on their words.

The subcommands that only change something are in git_changing.py; what tables cannot say is in git_operands.py; what the
configuration of a repository can add is in git_config.py.

Whether a value may be the next word is not a detail: `git log --stat --output=f` writes f, and `git log -S --output=f`
looks for text. An option that git does not know in some version, or that runs something, is left out: `--submodule`
(starts git in the submodule, with the external diff of that), `--remerge-diff` and `--diff-merges` (merge drivers),
`--recurse-submodules`, `--stdin` (takes paths that nobody sees). So are subcommands: `whatchanged`, which an alias may
shadow (2.51), `archive` that looks (its export-subst starts gpg), `help` (man), `var`, `difftool`, `bisect view`.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Access
from harness.programs import git_operands
from harness.programs.git_changing import CHANGING
from harness.programs.options import parse_words, read_command
from harness.programs.program import Found, PathUse, Program, Refine, Style, Unknown, Use, gap, joined
from harness.record import replace

# --- Subcommands that look

_DIFF = """
    -p|-u|--patch -s|--no-patch -U|--unified[=TEXT] -W|--function-context --no-function-context
    --raw --patch-with-raw --patch-with-stat --numstat --shortstat --stat[=TEXT] --stat-width=TEXT --stat-name-width=TEXT
    --stat-graph-width=TEXT --stat-count=TEXT --compact-summary --summary -X|--dirstat[=TEXT] --cumulative
    --dirstat-by-file[=TEXT] --check --name-only --name-status --binary --full-index --abbrev[=TEXT] --no-abbrev -z
    --color[=TEXT] --no-color --color-moved[=TEXT] --no-color-moved --color-moved-ws=TEXT --ws-error-highlight=TEXT
    --src-prefix=TEXT --dst-prefix=TEXT --line-prefix=TEXT --no-prefix --default-prefix --inter-hunk-context=TEXT
    --output-indicator-new=TEXT --output-indicator-old=TEXT --output-indicator-context=TEXT --output=WRITE
    -B|--break-rewrites[=TEXT] -M|--find-renames[=TEXT] -C|--find-copies[=TEXT] --find-copies-harder --no-renames
    --rename-empty --no-rename-empty -D|--irreversible-delete -l=TEXT
    --minimal --patience --histogram --diff-algorithm=TEXT --anchored=TEXT --indent-heuristic --no-indent-heuristic
    -w|--ignore-all-space -b|--ignore-space-change --ignore-space-at-eol --ignore-cr-at-eol --ignore-blank-lines
    -I|--ignore-matching-lines=TEXT --word-diff[=TEXT] --word-diff-regex=TEXT --color-words[=TEXT]
    --relative[=TEXT] --no-relative -a|--text -R --exit-code --quiet --ignore-submodules[=TEXT]
    --ita-invisible-in-index --ita-visible-in-index -S=TEXT -G=TEXT --pickaxe-all --pickaxe-regex -O=READ
    --rotate-to=TEXT --skip-to=TEXT --find-object=TEXT --diff-filter=TEXT
    --ext-diff:gap --no-ext-diff --textconv:gap --no-textconv
"""
_FORMAT = """
    --pretty[=TEXT] --format[=TEXT] --oneline --abbrev-commit --no-abbrev-commit --encoding=TEXT --expand-tabs[=TEXT]
    --no-expand-tabs --notes[=TEXT] --no-notes --date=TEXT --relative-date --show-signature:gap --no-show-signature
"""
_RANGE = """
    --max-count=TEXT --skip=TEXT --since|--after=TEXT --until|--before=TEXT --since-as-filter=TEXT --max-age=TEXT
    --min-age=TEXT --author=TEXT --grep=TEXT --grep-reflog=TEXT --all-match --invert-grep
    --regexp-ignore-case --basic-regexp --extended-regexp --fixed-strings --perl-regexp
    --merges --no-merges --min-parents[=TEXT] --max-parents[=TEXT] --no-min-parents --no-max-parents --first-parent
    --not --all --branches[=TEXT] --tags[=TEXT] --remotes[=TEXT] --glob=TEXT --exclude=TEXT --reflog --ignore-missing
    --cherry-mark --cherry-pick --left-only --right-only --cherry --walk-reflogs --merge --boundary --left-right
    --simplify-by-decoration --show-pulls --full-history --dense --sparse --simplify-merges --ancestry-path[=TEXT]
    --remove-empty --date-order --author-date-order --topo-order --reverse --no-walk[=TEXT] --do-walk
    --parents --children --graph --no-graph --show-linear-break[=TEXT] --follow --full-diff -NUM
"""
_LETTERS = "--committer=TEXT -n=TEXT -i -E -F -P -g -c --cc -m -t -r"  # shortlog reads -n, -c and --committer otherwise
_LOG = f"""
    {_DIFF} {_FORMAT} {_RANGE} {_LETTERS}
    -q --source --use-mailmap|--mailmap --no-mailmap --no-use-mailmap --decorate[=TEXT] --no-decorate
    --decorate-refs=TEXT --decorate-refs-exclude=TEXT --clear-decorations --log-size -L=TEXT --root
"""
# --contains and the like take the next word, which here counts as an operand; git refuses an option in its place.
_REFS = """
    --format=TEXT --sort=TEXT --color[=TEXT] --no-color --points-at=TEXT --contains[=TEXT] --no-contains[=TEXT]
    --merged[=TEXT] --no-merged[=TEXT] -i|--ignore-case
"""
_BLAME = """
    --incremental -b --root --show-stats --progress --no-progress --score-debug -f|--show-name -n|--show-number
    -p|--porcelain --line-porcelain -c -t -l -s -e|--show-email -w --ignore-rev=TEXT --ignore-revs-file=READ
    --color-lines --color-by-age --minimal -S=READ --contents=READ -C[=TEXT] -M[=TEXT] -L=TEXT --abbrev[=TEXT]
    --date=TEXT --since|--after=TEXT --until|--before=TEXT --first-parent --reverse --encoding=TEXT --diff-algorithm=TEXT
    --textconv:gap --no-textconv
"""
_GREP = """
    --cached --no-index --untracked --exclude-standard --no-exclude-standard -v|--invert-match -i|--ignore-case
    -w|--word-regexp -a|--text -I -r|--recursive --no-recursive --max-depth=TEXT -E|--extended-regexp -G|--basic-regexp
    -F|--fixed-strings -P|--perl-regexp -n|--line-number --column -h -H --full-name
    -l|--files-with-matches|--name-only -L|--files-without-match -z|--null -o|--only-matching -c|--count
    --color[=TEXT] --no-color --break --heading -C|--context=TEXT -B|--before-context=TEXT -A|--after-context=TEXT -NUM
    --threads=TEXT -p|--show-function -W|--function-context -f=READ:instead -e=TEXT:instead --and --or --not
    -q|--quiet --all-match -m|--max-count=TEXT --textconv:gap --no-textconv -O|--open-files-in-pager[=CODE]:gap
"""
_REV_PARSE = """
    --verify -q|--quiet --short[=TEXT] --abbrev-ref[=TEXT] --symbolic --symbolic-full-name --sq --not --all
    --branches[=TEXT] --tags[=TEXT] --remotes[=TEXT] --glob[=TEXT] --exclude[=TEXT] --revs-only --no-revs --flags
    --no-flags --default=TEXT --git-path=TEXT --path-format[=TEXT] --show-object-format[=TEXT] --show-toplevel --git-dir
    --absolute-git-dir --git-common-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository
    --is-shallow-repository --show-prefix --show-cdup --show-superproject-working-tree --local-env-vars
"""
_FILES = """
    -z -t -v -f -c|--cached -d|--deleted -m|--modified -o|--others -i|--ignored -s|--stage -k|--killed --directory --eol
    --empty-directory --no-empty-directory -u|--unmerged --resolve-undo -x|--exclude=TEXT -X|--exclude-from=READ
    --exclude-per-directory=READ --exclude-standard --full-name --error-unmatch --with-tree=TEXT --abbrev[=TEXT] --debug
    --deduplicate --sparse --format=TEXT
"""
# Options stand before the first operand: `git config alias.x --list` sets.
_SETTINGS = """
    --get --get-all --get-regexp --get-urlmatch --list|-l --local --global --system --worktree -f|--file=READ --blob=READ
    -t|--type=TEXT --bool --int --bool-or-int --bool-or-str --path --expiry-date -z|--null --name-only
    --no-includes --show-origin --show-scope --default=TEXT --fixed-value
    --add:changes --replace-all:changes --unset:changes --unset-all:changes --rename-section:gap --remove-section:gap
    -e|--edit:gap
"""
_SHOWN_SETTINGS = """
    --local --global --system --worktree -f|--file=READ --blob=READ -t|--type=TEXT --bool --int --bool-or-int
    --bool-or-str --path --expiry-date -z|--null --name-only --show-names --no-includes --show-origin
    --show-scope --default=TEXT --fixed-value --all --regexp:gap --value=TEXT --url=TEXT
"""


def _looks(options: str = "", operands: str = "READ...", refine: Refine = git_operands.revisions) -> Program:
    return Program(options=options, operands=operands, refine=refine)


def _settings(options: str, operands: str, refine: Refine = git_operands.revisions) -> Program:
    return Program(style=Style.POSIX, options=options, operands=operands, refine=refine)


LOOKING = {
    "status": _looks(
        """
        -v|--verbose -s|--short -b|--branch --show-stash --ahead-behind --no-ahead-behind --porcelain[=TEXT] --long
        -z|--null -u|--untracked-files[=TEXT] --ignored[=TEXT] --ignore-submodules[=TEXT] --column[=TEXT] --no-column
        --renames --no-renames -M|--find-renames[=TEXT]""",
        refine=git_operands.status,
    ),
    "log": _looks(_LOG, refine=git_operands.history),
    "show": _looks(_LOG, refine=git_operands.objects),
    "diff": _looks(
        f"{_DIFF} --cached|--staged --merge-base --no-index --base --ours --theirs -c --cc -m -t -r -q",
        refine=git_operands.comparison,
    ),
    "diff-tree": _looks(
        f"{_DIFF} {_FORMAT} -r -t -m -c --cc --root --no-commit-id -v --always", refine=git_operands.history
    ),
    "diff-index": _looks(f"{_DIFF} --cached --merge-base -m -r", refine=git_operands.history),
    "diff-files": _looks(f"{_DIFF} --base --ours --theirs -c --cc -q -r", refine=git_operands.history),
    "range-diff": _looks(
        f"{_DIFF} --creation-factor=TEXT --no-dual-color --left-only --right-only --notes[=TEXT] --no-notes",
        refine=git_operands.ranges,
    ),
    "blame": _looks(_BLAME),
    "annotate": _looks(_BLAME),
    "grep": _looks(_GREP, "(TEXT) TREE...", git_operands.search),
    "ls-files": _looks(_FILES),
    "ls-tree": _looks("""
        -d -r -t -z -l|--long --name-only|--name-status --object-only --full-name --full-tree --format=TEXT --abbrev[=TEXT]"""),
    "rev-parse": _looks(_REV_PARSE),
    "rev-list": _looks(
        f"""{_FORMAT} {_RANGE} {_LETTERS} --objects --objects-edge --count --header --timestamp --quiet --unpacked
        --disk-usage[=TEXT] --use-bitmap-index --in-commit-order --no-commit-header --commit-header --no-object-names
        --object-names --missing[=TEXT] --filter[=TEXT] --filter-print-omitted --abbrev[=TEXT] --no-abbrev"""
    ),
    "describe": _looks("""
        --contains --debug --all --tags --long --first-parent --abbrev[=TEXT] --exact-match --candidates=TEXT --match=TEXT
        --exclude=TEXT --always --dirty[=TEXT] --broken[=TEXT]"""),
    "shortlog": _looks(f"-n|--numbered -s|--summary -e|--email -c -w[=TEXT] --group=TEXT --format[=TEXT] {_RANGE}"),
    "reflog": _looks(_LOG, refine=git_operands.reference_logs),
    "reflog show": _looks(_LOG, refine=git_operands.history),
    "reflog exists": _looks(""),
    "stash list": _looks(_LOG, refine=git_operands.stashes),
    "stash show": _looks(f"{_DIFF} --include-untracked --only-untracked", refine=git_operands.stashed),
    "branch": _looks(
        f"""{_REFS} -v|--verbose -q|--quiet -r|--remotes -a|--all --list|-l --abbrev[=TEXT] --no-abbrev --column[=TEXT]
        --no-column --show-current -d|--delete:changes -D:changes -m|--move:changes -M:changes -c|--copy:changes
        -C:changes -f|--force:changes -t|--track[=TEXT]:changes --no-track:changes -u|--set-upstream-to=TEXT:changes
        --unset-upstream:changes --create-reflog:changes --edit-description:gap""",
        "TEXT...",
        git_operands.branches,
    ),
    "tag": _looks(
        f"""{_REFS} --list|-l -n[=TEXT] --column[=TEXT] --no-column -d|--delete:changes -a|--annotate:changes
        -m|--message=TEXT:changes -F|--file=READ:changes -s|--sign:changes -u|--local-user=TEXT:changes -f|--force:changes
        --cleanup=TEXT:changes --create-reflog:changes --no-sign:changes -v|--verify:gap -e|--edit:gap""",
        "TEXT...",
        git_operands.tags,
    ),
    "for-each-ref": _looks(
        f"{_REFS} -s|--shell -p|--perl --python --tcl --count=TEXT", "TEXT...", git_operands.listed_names
    ),
    "show-ref": _looks(
        "--tags --heads --branches --verify --head -d|--dereference -s|--hash[=TEXT] --abbrev[=TEXT] -q|--quiet",
        "TEXT...",
    ),
    "show-branch": _looks("""
        -a|--all -r|--remotes --color[=TEXT] --no-color --more[=TEXT] --list --no-name --current --sha1-name --merge-base
        --independent --topo-order --topics --sparse --date-order -g|--reflog[=TEXT]"""),
    "symbolic-ref": _looks(
        "-q|--quiet --short --recurse --no-recurse -d|--delete:changes -m=TEXT:changes",
        "TEXT...",
        git_operands.one_name,
    ),
    "name-rev": _looks("""
        --name-only --tags --refs=TEXT --exclude=TEXT --all --stdin --annotate-stdin --undefined --no-undefined --always"""),
    "merge-base": _looks("-a|--all --octopus --independent --is-ancestor --fork-point"),
    "cherry": _looks("-v|--verbose --abbrev[=TEXT]"),
    # --batch and --batch-command print what their input names, which nobody sees; so do not these.
    "cat-file": _looks(
        """
        -e -p -t -s --allow-unknown-type --use-mailmap|--mailmap --batch-check[=TEXT] --batch-all-objects --buffer
        --follow-symlinks --unordered -z -Z --batch[=TEXT]:gap --batch-command[=TEXT]:gap --textconv:gap --filters:gap""",
        refine=git_operands.object_content,
    ),
    "check-ignore": _looks("-q|--quiet -v|--verbose --stdin -z -n|--non-matching --no-index"),
    "check-attr": _looks("-a|--all --cached --stdin -z --source=TEXT"),
    "count-objects": _looks("-v|--verbose -H|--human-readable", ""),
    "hash-object": _looks("-t=TEXT -w:changes --stdin --no-filters --literally --path=TEXT"),
    "verify-pack": _looks("-v|--verbose -s|--stat-only"),
    "patch-id": _looks("--stable --unstable --verbatim", ""),
    "stripspace": _looks("-s|--strip-comments -c|--comment-lines", ""),
    "fsck": _looks("""
        -v|--verbose --unreachable --dangling --no-dangling --tags --root --cache --reflogs --no-reflogs --full --no-full
        --connectivity-only --strict --progress --no-progress --name-objects --no-name-objects --lost-found:changes"""),
    "version": _looks("--build-options", ""),
    "remote": _looks("-v|--verbose", "TEXT...", git_operands.remotes),
    "remote get-url": _looks("--push --all", "TEXT", git_operands.shown_address),
    "remote show": _looks("-n", "TEXT...", git_operands.shown_remote),
    "ls-remote": Program(
        network=True,
        options="""-q|--quiet -t|--tags -h|--heads -b|--branches --refs --get-url --sort=TEXT --exit-code --symref
        -o|--server-option=TEXT --upload-pack=CODE --exec=CODE""",
        operands="TEXT...",
        refine=git_operands.listed_remote,
    ),
    "worktree list": _looks("-v|--verbose --porcelain -z --expire=TEXT", ""),
    "submodule": _looks("-q|--quiet --cached", ""),
    "submodule status": _looks("-q|--quiet --cached --recursive"),
    "sparse-checkout list": _looks("", ""),
    "bisect log": _looks("", ""),
    "notes": _looks("--ref=TEXT", ""),
    "notes list": _looks(""),
    "notes show": _looks(""),
    "bundle verify": _looks("-q|--quiet", "READ"),
    "bundle list-heads": _looks("", "READ TEXT..."),
    "config": _settings(_SETTINGS, "TEXT...", git_operands.settings),
    "config list": _settings(_SHOWN_SETTINGS, "", git_operands.listed_settings),
    "config get": _settings(_SHOWN_SETTINGS, "TEXT", git_operands.got_setting),
    "apply": Program(
        options="""--stat --numstat --summary --check --apply:changes --index --cached -p=TEXT -C=TEXT -R|--reverse -z
        --exclude=TEXT --include=TEXT --no-add --whitespace=TEXT --ignore-space-change --ignore-whitespace
        --unidiff-zero --allow-overlap -v|--verbose -q|--quiet --inaccurate-eof --recount --directory=TEXT --allow-empty
        -N|--intent-to-add:changes -3|--3way:changes --reject:changes --build-fake-ancestor=WRITE""",
        refine=git_operands.dry,
    ),
    "clean": Program(
        options="-q|--quiet -n|--dry-run -f|--force -d -e|--exclude=TEXT -x -X -i|--interactive:changes",
        refine=git_operands.cleaning,
    ),
    "format-patch": Program(
        options="""--stdout -o|--output-directory=WRITE --output=WRITE -n|--numbered -N|--no-numbered -s|--signoff -k -NUM
        --cover-letter --numbered-files --suffix=TEXT --start-number=TEXT -v|--reroll-count=TEXT --rfc --zero-commit
        --subject-prefix=TEXT --ignore-if-in-upstream -p|--no-stat --root --to=TEXT --cc=TEXT --from[=TEXT]
        --in-reply-to=TEXT --attach[=TEXT] --inline[=TEXT] --thread[=TEXT] --no-thread --signature=TEXT --no-signature
        --signature-file=READ --base=TEXT -q|--quiet --stat[=TEXT] -U|--unified[=TEXT] -M|--find-renames[=TEXT] --binary
        --no-binary --full-index --minimal --patience --histogram -D --no-renames""",
        refine=git_operands.patch_files,
    ),
}


# --- git itself: its options before the subcommand, and how `-C` is read

_BEFORE = """
    -P|--no-pager --no-optional-locks --no-replace-objects --no-lazy-fetch --no-advice --literal-pathspecs:gap
    --glob-pathspecs:gap --noglob-pathspecs:gap -v|--version:info --help:info --html-path:info --man-path:info --info-path:info
    --exec-path:info -p|--paginate:gap --bare:gap
    -c=CODE --config-env=CODE --git-dir=CODE --work-tree=CODE --namespace=CODE --super-prefix=CODE --attr-source=CODE
"""
_FOLDER = "-C=FOLDER"

_GIT = Program(git=True, options=_BEFORE, subcommands=LOOKING | CHANGING)


def _read(argv: Sequence[str]) -> Use:
    """Read `git -C FOLDER ...` as the command without it, and put the folder in front of every path."""
    if "-C" not in argv:
        return read_command(_GIT, argv)
    parsed = parse_words(PROGRAMS["git"], argv, stop=True)
    if isinstance(parsed, str):
        return gap(parsed)
    folder = ""
    words = [argv[0]]
    for given in parsed.options:
        if given.name != "-C":
            words += [given.name] if given.value is None else [given.name, given.value]
        elif isinstance(given.value, Unknown | Found):
            return gap(f"the folder {given.value} is not known")
        else:
            folder = joined(folder, given.value or "")
    use = read_command(_GIT, [*words, *parsed.operands])
    return _behind(folder, use)


def _behind(folder: str, use: Use) -> Use:
    """Return what a command does when git was told to go to `folder` first (`-C`)."""
    if use.gap or not folder:
        return use
    if use.scripts:
        return gap("text for a shell that runs in another folder")
    return replace(
        use,
        paths=(
            PathUse(word=folder, access=Access.READ),
            *(replace(path, word=joined(folder, path.word)) for path in use.paths),
        ),
        commands=tuple(replace(inner, folder=joined(folder, inner.folder)) for inner in use.commands),
        git_folder=folder,
    )


PROGRAMS = {"git": replace(_GIT, options=f"{_FOLDER} {_BEFORE}", read=_read)}
