"""The subcommands of git that change something: the index, files, references, another repository.

None of them is ever a reader. They are listed so that what they read and write is known, and that what runs a program
(`--upload-pack`, `ext::`, `--exec`) is not covered. Hooks, editors, merge drivers and filters may run in any of them.
"""

from __future__ import annotations

from harness.actions import Act
from harness.programs import git_operands
from harness.programs.program import Program, Refine, Style

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


CHANGING = {
    "add": _changes(
        """-n|--dry-run -v|--verbose -i|--interactive -p|--patch -e|--edit -f|--force -u|--update --renormalize
        -N|--intent-to-add -A|--all|--no-ignore-removal --ignore-removal|--no-all --refresh --ignore-errors --ignore-missing
        --sparse --chmod=TEXT""",
        "READ...",
        git_operands.working_tree,
    ),
    "commit": _changes(
        f"""-q|--quiet -v|--verbose -F|--file=READ -t|--template=READ --author=TEXT --date=TEXT -m|--message=TEXT
        -c|--reedit-message=TEXT -C|--reuse-message=TEXT --fixup=TEXT --squash=TEXT --reset-author --trailer=TEXT
        -s|--signoff --no-signoff -e|--edit --no-edit --cleanup=TEXT --status --no-status -a|--all -i|--include
        --interactive -p|--patch -o|--only -n|--no-verify --verify --dry-run --short --branch --porcelain --long -z|--null
        --amend --no-post-rewrite -u|--untracked-files[=TEXT] --allow-empty --allow-empty-message {_SIGN}""",
        "READ...",
        git_operands.working_tree,
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
    # A branch or a file: as a path, a branch costs nothing.
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
    "stash": _changes(_PUSH_STASH, "WRITE...", git_operands.working_tree),
    "stash push": _changes(_PUSH_STASH, "WRITE...", git_operands.working_tree),
    "stash save": _changes(_PUSH_STASH),
    "stash pop": _changes("--index -q|--quiet"),
    "stash apply": _changes("--index -q|--quiet"),
    "stash drop": _changes("-q|--quiet"),
    "stash clear": _changes(""),
    "stash branch": _changes(""),
    "stash create": _changes(""),
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
    # --template brings hooks.
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
    # Looking, were it not that a file with the attribute export-subst says formats that start gpg.
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
    ),
    "update-ref": _changes("-d -m=TEXT --no-deref --create-reflog"),
}
