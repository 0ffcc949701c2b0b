"""The model of git (2.20 to 2.52): first the subcommands that look, or that look or change depending on their words.
The subcommands that always change something follow.

The rules beyond tables are in git_operands.py; the effects of a repository's configuration are in git_config.py.

It matters whether an option takes the next word as its value: `git log --stat --output=f` writes f, and
`git log -S --output=f` searches for that text. Options that some version lacks, or that run a program, are left out:
`--submodule` (starts git in the submodule, with the external diff configured there), `--remerge-diff` and
`--diff-merges` (merge drivers), `--recurse-submodules`, `--stdin` (reads paths that do not appear in the command).
Also left out are subcommands: `whatchanged`, which an alias may replace (2.51), `archive` as one that looks (its
export-subst starts gpg), `help` with a topic (man), `var`, `difftool`, `bisect view`.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Access, Act
from harness.programs import git_operands
from harness.programs.git_losses import LOSES
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
# --contains and similar options take the next word as a value. It counts as an operand here. That is safe, because git
# rejects an option as such a value.
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
# Options precede the first operand: `git config alias.x --list` sets a value.
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
    "grep": _looks(_GREP, "(TEXT) READ...", git_operands.search),
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
    # --batch and --batch-command print objects that their input names. Harness cannot see that input, so they are gaps.
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
    "help": _looks("-a|--all -g|--guides -c|--config --no-external-commands --no-aliases -v|--verbose", ""),
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


# --- Subcommands that change something: the index, files, references, another repository
#
# None of them counts as a reader. Their models name the files that they read and write, and leave options that run a
# program (`--upload-pack`, `ext::`, `--exec`) uncovered. Any of them may run hooks, editors, merge drivers and filters.

_SIGN = "-S|--gpg-sign[=TEXT] --no-gpg-sign"
_MERGE = f"""
    --strategy|-s=TEXT -X|--strategy-option=TEXT --stat --no-stat --log[=TEXT] --no-log --signoff --no-signoff --squash
    --no-squash --commit --no-commit -e|--edit --no-edit --cleanup=TEXT --ff --no-ff --ff-only --verify --no-verify
    --verify-signatures --no-verify-signatures --allow-unrelated-histories --autostash --no-autostash {_SIGN}
"""
_FETCH = """
    -v|--verbose -q|--quiet --progress --no-progress --all -a|--append -f|--force -t|--tags --no-tags -p|--prune
    -k|--keep --depth=TEXT --deepen=TEXT --shallow-since=TEXT --shallow-exclude=TEXT --unshallow --update-shallow
    --refmap=TEXT -o|--server-option=TEXT -4|--ipv4 -6|--ipv6 --negotiation-tip=TEXT --set-upstream --dry-run
    --recurse-submodules[=TEXT] --no-recurse-submodules --show-forced-updates --no-show-forced-updates --upload-pack=CODE
"""
_SWITCH = """
    -q|--quiet --progress --no-progress -m|--merge --conflict=TEXT -d|--detach -t|--track[=TEXT] --no-track -f|--force
    --orphan=TEXT --guess --no-guess --overwrite-ignore --no-overwrite-ignore --ignore-other-worktrees
    --recurse-submodules[=TEXT] --no-recurse-submodules
"""
_PICK = f"""
    --quit --continue --abort --skip --cleanup=TEXT -n|--no-commit -e|--edit --no-edit -s|--signoff -m|--mainline=TEXT
    --rerere-autoupdate --no-rerere-autoupdate --strategy=TEXT -X|--strategy-option=TEXT {_SIGN}
"""
_PUSH_STASH = """
    -p|--patch -S|--staged -k|--keep-index --no-keep-index -q|--quiet -u|--include-untracked -a|--all -m|--message=TEXT
"""


def _changes(options: str = "", operands: str = "TEXT...", refine: Refine | None = None) -> Program:
    return Program(act=Act.CHANGES, options=options, operands=operands, refine=refine)


def _reaches(options: str = "", operands: str = "TEXT...", refine: Refine = git_operands.exchange) -> Program:
    return Program(act=Act.CHANGES, network=True, options=options, operands=operands, refine=refine)


_CHANGING = {
    "add": _changes(
        """-n|--dry-run -v|--verbose -i|--interactive -p|--patch -e|--edit -f|--force -u|--update --renormalize
        -N|--intent-to-add -A|--all|--no-ignore-removal --ignore-removal|--no-all --refresh --ignore-errors --ignore-missing
        --sparse --chmod=TEXT""",
        "READ...",
        git_operands.added,
    ),
    "commit": _changes(
        f"""-q|--quiet -v|--verbose -F|--file=READ -t|--template=READ --author=TEXT --date=TEXT -m|--message=TEXT
        -c|--reedit-message=TEXT -C|--reuse-message=TEXT --fixup=TEXT --squash=TEXT --reset-author --trailer=TEXT
        -s|--signoff --no-signoff -e|--edit --no-edit --cleanup=TEXT --status --no-status -a|--all -i|--include
        --interactive -p|--patch -o|--only -n|--no-verify --verify --dry-run --short --branch --porcelain --long -z|--null
        --amend --no-post-rewrite -u|--untracked-files[=TEXT] --allow-empty --allow-empty-message {_SIGN}""",
        "READ...",
        git_operands.committed,
    ),
    "rm": _changes(
        "-n|--dry-run -q|--quiet --cached -f|--force -r --ignore-unmatch --sparse",
        "WRITE_TREE...",
        git_operands.working_tree,
    ),
    "mv": _changes("-v|--verbose -n|--dry-run -f|--force -k --sparse", "EITHER_TREE... WRITE_TREE"),
    "restore": _changes(
        """-s|--source=TEXT -S|--staged -W|--worktree --ignore-unmerged --overlay --no-overlay -q|--quiet --progress
        --no-progress -m|--merge --conflict=TEXT -2|--ours -3|--theirs -p|--patch --ignore-skip-worktree-bits""",
        "WRITE...",
        git_operands.working_tree,
    ),
    # An operand is a branch or a file. Treating a branch as a path does no harm.
    "checkout": _changes(
        f"""{_SWITCH} -b=TEXT -B=TEXT -l --overlay --no-overlay -2|--ours -3|--theirs -p|--patch
        --ignore-skip-worktree-bits""",
        "WRITE...",
        git_operands.working_tree,
    ),
    "switch": _changes(f"{_SWITCH} -c|--create=TEXT -C|--force-create=TEXT --discard-changes"),
    "reset": _changes(
        """-q|--quiet --no-quiet --refresh --no-refresh --mixed --soft --hard --merge --keep -p|--patch -N|--intent-to-add"""
    ),
    "stash": _changes(_PUSH_STASH, "WRITE...", git_operands.stowed),
    "stash push": _changes(_PUSH_STASH, "WRITE...", git_operands.stowed),
    "stash save": _changes(_PUSH_STASH, refine=git_operands.stowed_with_words),
    "stash pop": _changes("--index -q|--quiet"),
    "stash apply": _changes("--index -q|--quiet"),
    "stash drop": _changes("-q|--quiet"),
    "stash clear": _changes(""),
    "stash branch": _changes(""),
    "stash create": _changes("", refine=git_operands.stowed_with_words),
    "stash store": _changes("-m|--message=TEXT -q|--quiet"),
    "merge": _changes(
        f"""{_MERGE} -n --summary --rerere-autoupdate --no-rerere-autoupdate -m|--message=TEXT -F|--file=READ
        --into-name=TEXT -v|--verbose -q|--quiet --abort --quit --continue --progress --no-progress --overwrite-ignore""",
        refine=git_operands.strategy,
    ),
    "rebase": _changes(
        f"""--onto=TEXT --keep-base --no-keep-base --no-verify --verify -q|--quiet -v|--verbose -n|--no-stat --stat
        --signoff --committer-date-is-author-date --reset-author-date -C=TEXT --ignore-whitespace --whitespace=TEXT
        -f|--force-rebase --no-ff --continue --skip --abort --quit --edit-todo --show-current-patch --apply -m|--merge
        -i|--interactive --rerere-autoupdate --empty=TEXT --autosquash --no-autosquash --update-refs --no-update-refs
        --autostash --no-autostash -x|--exec=SHELL -r|--rebase-merges[=TEXT] --fork-point --no-fork-point
        --strategy|-s=TEXT -X|--strategy-option=TEXT --root --reschedule-failed-exec --reapply-cherry-picks {_SIGN}""",
        refine=git_operands.strategy,
    ),
    "cherry-pick": _changes(
        f"{_PICK} -x --ff --allow-empty --allow-empty-message --keep-redundant-commits", refine=git_operands.strategy
    ),
    "revert": _changes(f"{_PICK} --reference", refine=git_operands.strategy),
    "am": _changes(
        f"""-i|--interactive -3|--3way --no-3way -q|--quiet -s|--signoff -u|--utf8 -k|--keep --keep-non-patch -m|--message-id
        --keep-cr --no-keep-cr -c|--scissors --no-scissors --whitespace=TEXT --ignore-space-change --ignore-whitespace
        --directory=TEXT --exclude=TEXT --include=TEXT -C=TEXT -p=TEXT --patch-format=TEXT --reject --continue
        -r|--resolved --skip --abort --quit --show-current-patch[=TEXT] --allow-empty --empty=TEXT
        --committer-date-is-author-date --ignore-date {_SIGN}""",
        "TREE...",
    ),
    # --template installs hooks.
    "init": _changes(
        """--bare --shared[=TEXT] -q|--quiet --separate-git-dir=WRITE_TREE -b|--initial-branch=TEXT --object-format=TEXT
        --ref-format=TEXT --template=CODE""",
        "WRITE",
    ),
    "clone": _reaches(
        """-v|--verbose -q|--quiet --progress --no-progress --reject-shallow -n|--no-checkout --bare --mirror -l|--local
        --no-local --no-hardlinks -s|--shared --recurse-submodules|--recursive[=TEXT] -j|--jobs=TEXT --reference=TREE
        --reference-if-able=TREE --dissociate -o|--origin=TEXT -b|--branch=TEXT --depth=TEXT --shallow-since=TEXT
        --shallow-exclude=TEXT --single-branch --no-single-branch --no-tags --tags --shallow-submodules
        --separate-git-dir=WRITE_TREE --server-option=TEXT -4|--ipv4 -6|--ipv6 --filter=TEXT --also-filter-submodules
        --remote-submodules --sparse --bundle-uri=TEXT -u|--upload-pack=CODE -c|--config=CODE --template=CODE""",
        "TEXT WRITE_TREE",
        git_operands.clones,
    ),
    "fetch": _reaches(
        f"""{_FETCH} --atomic -m|--multiple -n -j|--jobs=TEXT --prefetch -P|--prune-tags --write-fetch-head
        --no-write-fetch-head -u|--update-head-ok --refetch --negotiate-only --filter=TEXT --auto-maintenance --auto-gc
        --no-auto-maintenance --no-auto-gc --write-commit-graph"""
    ),
    "pull": _reaches(f"{_FETCH} {_MERGE} -r|--rebase[=TEXT] --no-rebase -n --summary -j|--jobs[=TEXT]"),
    "push": _reaches(
        """-v|--verbose -q|--quiet --repo=TEXT --all --branches --mirror -d|--delete --tags -n|--dry-run --porcelain
        -f|--force --no-force --force-with-lease[=TEXT] --no-force-with-lease --force-if-includes
        --recurse-submodules=TEXT --no-recurse-submodules --thin --no-thin -u|--set-upstream --progress --no-progress
        --prune --no-verify --verify --follow-tags --signed[=TEXT] --atomic -o|--push-option=TEXT -4|--ipv4 -6|--ipv6
        --receive-pack=CODE --exec=CODE""",
        refine=git_operands.publication,
    ),
    "remote add": _reaches("-t=TEXT -m=TEXT -f --tags --no-tags --mirror[=TEXT]", "TEXT TEXT"),
    "remote rename": _changes("--progress --no-progress"),
    "remote remove": _changes(""),
    "remote rm": _changes(""),
    "remote set-head": _reaches("-a|--auto -d|--delete"),
    "remote prune": _reaches("-n|--dry-run"),
    "remote update": _reaches("-p|--prune"),
    "remote set-branches": _changes("--add"),
    "remote set-url": _changes("--push --add --delete", refine=git_operands.exchange),
    "reflog expire": _changes(
        "--expire=TEXT --expire-unreachable=TEXT --all --rewrite --updateref --stale-fix -n --dry-run"
    ),
    "reflog delete": _changes("--rewrite --updateref -n --dry-run"),
    "worktree add": _changes(
        """-f|--force -d|--detach --checkout --no-checkout --lock --reason=TEXT -b=TEXT -B=TEXT -q|--quiet --track
        --no-track --guess-remote --no-guess-remote --orphan""",
        "WRITE_TREE TEXT",
    ),
    "worktree remove": _changes("-f|--force", "WRITE_TREE"),
    "worktree move": _changes("-f|--force", "EITHER_TREE WRITE_TREE"),
    "worktree prune": _changes("-n|--dry-run -v|--verbose --expire=TEXT", ""),
    "worktree lock": _changes("--reason=TEXT", "READ"),
    "worktree unlock": _changes("", "READ"),
    "worktree repair": _changes("", "EITHER..."),
    "submodule add": _reaches(
        "-b|--branch=TEXT -f|--force --name=TEXT --depth=TEXT -q|--quiet --reference=TREE", "TEXT WRITE_TREE"
    ),
    "submodule init": _changes("-q|--quiet", "READ..."),
    "submodule deinit": _changes("-f|--force --all -q|--quiet", "WRITE_TREE..."),
    "submodule update": _reaches(
        """-q|--quiet --init --remote -N|--no-fetch -f|--force --checkout --merge --rebase --recursive --depth=TEXT
        -j|--jobs=TEXT --single-branch --no-single-branch --recommend-shallow --no-recommend-shallow --progress
        --filter=TEXT --reference=TREE""",
        "WRITE_TREE...",
    ),
    "submodule sync": _changes("-q|--quiet --recursive", "READ..."),
    "submodule foreach": Program(
        act=Act.RUNS,
        style=Style.POSIX,
        options="-q|--quiet --recursive",
        operands="TEXT...",
        refine=git_operands.each_submodule,
    ),
    **{f"bisect {name}": _changes() for name in ("good", "bad", "new", "old", "skip", "reset", "terms", "next")},
    "bisect start": _changes(
        "--term-new=TEXT --term-old=TEXT --term-bad=TEXT --term-good=TEXT --no-checkout --first-parent"
    ),
    "bisect replay": _changes("", "READ"),
    "bisect run": Program(act=Act.CHANGES, style=Style.POSIX, operands="COMMAND..."),
    **{
        f"notes {name}": _changes("-f|--force -m|--message=TEXT -F|--file=READ --allow-empty")
        for name in ("add", "append")
    },
    "notes copy": _changes("-f|--force"),
    "notes remove": _changes("--ignore-missing"),
    "notes prune": _changes("-n|--dry-run -v|--verbose"),
    "sparse-checkout set": _changes("--cone --no-cone --sparse-index --no-sparse-index --skip-checks"),
    "sparse-checkout add": _changes("--skip-checks"),
    "sparse-checkout init": _changes("--cone --no-cone --sparse-index --no-sparse-index"),
    "sparse-checkout reapply": _changes("--cone --no-cone"),
    "sparse-checkout disable": _changes(""),
    "bundle create": _changes("-q|--quiet --progress --all --branches --tags --since=TEXT -NUM", "WRITE TEXT..."),
    "bundle unbundle": _changes("--progress", "READ TEXT..."),
    # `archive` would only look, but a file with the attribute export-subst can contain formats that start gpg.
    "archive": Program(
        act=Act.RUNS,
        options="""--format=TEXT --prefix=TEXT --add-file=READ --add-virtual-file=TEXT -o|--output=WRITE
        --worktree-attributes -v|--verbose -NUM -l|--list --mtime=TEXT --remote=TEXT:gap --exec=CODE""",
        refine=git_operands.archived,
    ),
    "gc": _changes(
        "-q|--quiet --prune[=TEXT] --no-prune --cruft --no-cruft --aggressive --auto --force --keep-largest-pack", ""
    ),
    "prune": _changes("-n|--dry-run -v|--verbose --progress --expire=TEXT"),
    "repack": _changes(
        "-a -A -d -f -F -n -q|--quiet -l|--local --cruft -b|--write-bitmap-index -k --window=TEXT --depth=TEXT", ""
    ),
    "maintenance run": _changes("--auto --schedule=TEXT --task=TEXT --quiet --no-quiet", ""),
    **{f"maintenance {name}": _changes("", "") for name in ("start", "stop", "register", "unregister")},
    "update-index": _changes(
        """--add --remove --force-remove --refresh --really-refresh -q --ignore-missing --assume-unchanged
        --no-assume-unchanged --skip-worktree --no-skip-worktree --again --chmod[=TEXT]""",
        "READ...",
        git_operands.refreshed,
    ),
    "update-ref": _changes("-d -m=TEXT --no-deref --create-reflog"),
}


# --- git itself: its options before the subcommand, and `-C`

_BEFORE = """
    -P|--no-pager --no-optional-locks --no-replace-objects --no-lazy-fetch --no-advice --literal-pathspecs:gap
    --glob-pathspecs:gap --noglob-pathspecs:gap -v|--version:info --help:info --html-path:info --man-path:info --info-path:info
    --exec-path:info -p|--paginate:gap --bare:gap
    -c=CODE --config-env=CODE --git-dir=CODE --work-tree=CODE --namespace=CODE --super-prefix=CODE --attr-source=CODE
"""
_FOLDER = "-C=FOLDER"

_MODELLED = LOOKING | _CHANGING
_UNREAD = Program(read=lambda argv: gap(f"{' '.join(argv[0].split()[:2])} has no model"))
"""A subcommand without a model. It may have losses."""
_GIT = Program(
    git=True,
    options=_BEFORE,
    subcommands={
        name: replace(_MODELLED.get(name, _UNREAD), loses=LOSES.get(name))
        for name in (*_MODELLED, *LOSES.keys() - _MODELLED)
    },
)


def _read(argv: Sequence[str]) -> Use:
    """Read `git -C FOLDER ...` as the command without -C, with every path relative to FOLDER."""
    if "-C" not in argv:
        return read_command(_GIT, argv)
    parsed = parse_words(PROGRAMS["git"], argv, stop=True)
    if isinstance(parsed, str):
        return gap(parsed)
    folder = ""
    words = [argv[0]]
    for option in parsed.options:
        if option.name != "-C":
            words += [option.name] if option.value is None else [option.name, option.value]
        elif isinstance(option.value, Unknown | Found):
            return gap(f"the folder {option.value} is not known")
        else:
            folder = joined(folder, option.value or "")
    use = read_command(_GIT, [*words, *parsed.operands])
    return _in_folder(folder, use)


def _in_folder(folder: str, use: Use) -> Use:
    """Return the use of a command if git changes to `folder` first (`-C`)."""
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
