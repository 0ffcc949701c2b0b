"""The model of git (2.20 to 2.52): its options before the subcommand, and how `-C` is read; data, pure.

The subcommands are in git_looking.py and git_changing.py, what tables cannot say in git_reading.py and git_modes.py, and
what the configuration of a repository can add in git_config.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Access
from harness.programs.git_changing import CHANGING
from harness.programs.git_looking import LOOKING
from harness.programs.model import Found, PathUse, Program, Unknown, Use, gap
from harness.programs.options import joined, parse_words, read_command
from harness.record import replace

_BEFORE = """
    -P|--no-pager --no-optional-locks --no-replace-objects --no-lazy-fetch --no-advice --literal-pathspecs:gap
    --glob-pathspecs:gap --noglob-pathspecs:gap -v|--version:info --help:info --html-path:info --man-path:info --info-path:info
    --exec-path:info -p|--paginate:gap --bare:gap
    -c=CODE --config-env=CODE --git-dir=CODE --work-tree=CODE --namespace=CODE --super-prefix=CODE --attr-source=CODE
"""
_FOLDER = "-C=FOLDER"

_GIT = Program(
    git=True,
    options=_BEFORE,
    subcommands=LOOKING | CHANGING,
    looks=tuple(
        """
git status
git status --short --branch
git status -sb --porcelain=v1 -uno
git --no-pager log --oneline -5
git log --oneline --graph --all --decorate -n 20
git log -p -3 -- src/a.py
git log --since='2 weeks ago' --author=ann --format='%h %ad %s' --date=short main..HEAD
git log -S 'def foo' --oneline
git log -L 10,20:src/a.py
git log --follow --stat -M90% -- src/a.py
git diff
git diff --stat
git diff HEAD~1 -- src/a.py
git diff --cached --name-only
git diff main...HEAD --name-status --diff-filter=AM
git diff -U5 -w --word-diff=color a.py
git diff -- . ':(exclude)package-lock.json' ':!*.lock'
git show HEAD
git show HEAD:src/a.py
git show --stat --format=fuller v1.0
git show stash@{0}
git blame -L 10,20 src/a.py
git blame -w -C -C HEAD~3 -- src/a.py
git ls-files
git ls-files '*.py' -o --exclude-standard
git ls-tree -r --name-only HEAD src
git rev-parse --abbrev-ref HEAD
git rev-parse --show-toplevel
git rev-parse --short=8 HEAD
git rev-list --count main..HEAD
git describe --tags --always --dirty
git shortlog -sne --no-merges HEAD
git reflog -10
git branch
git branch -a -vv
git branch --show-current
git branch --list 'feature/*' --sort=-committerdate --format='%(refname:short)'
git branch --contains abc1234
git branch --merged
git tag
git tag -l 'v*' --sort=-v:refname
git tag -n3
git remote -v
git remote get-url origin
git stash list
git stash show -p stash@{0}
git worktree list --porcelain
git config --get user.email
git config user.name
git config --local --list --show-origin
git cat-file -p HEAD
git cat-file -t abc1234
git grep -n 'def foo' -- '*.py'
git grep -il TODO
git grep -e a --and -e b src
git for-each-ref --format='%(refname) %(objectname:short)' refs/heads
git merge-base main HEAD
git check-ignore -v build/x.o
git count-objects -vH
git -C sub status -s
git -C sub log --oneline -3
git --version
git version
git submodule status
git bisect log
git clean -nd
git apply --check fix.patch
git apply --stat fix.patch
git format-patch --stdout -1 HEAD
git diff --no-index a.txt b.txt
git rev-list --objects --all
git cat-file --batch-check='%(objectname) %(objecttype)' --batch-all-objects
git fsck --full
git symbolic-ref --short HEAD
""".strip().splitlines()
    ),
    covered=tuple(
        """
git add -A
git add src/a.py
git commit -m 'a message'
git commit -am x --amend --no-edit
git commit -m '- a list'
git checkout -b feature origin/main
git checkout -- src/a.py
git switch -c feature
git restore --staged a.py
git reset --hard HEAD~1
git rm --cached a.py
git mv a.py b.py
git clean -fdx
git stash
git stash pop
git stash push -m wip -- src
git merge --no-ff feature
git rebase -i HEAD~3
git rebase -x 'make test' main
git cherry-pick -x abc1234
git revert --no-edit HEAD
git am fix.patch
git apply fix.patch
git init
git clone --depth 1 https://example.org/a/b.git
git fetch --all --prune
git pull --rebase origin main
git push -u origin feature
git push --force-with-lease
git branch feature
git branch -v feature
git branch -D feature
git tag v1.0
git tag -a v1.0 -m x
git remote add origin https://example.org/a.git
git remote show origin
git remote -v update
git ls-remote --heads origin
git reflog expire --all
git stash drop
git worktree add ../x main
git submodule update --init --recursive
git submodule foreach 'git status'
git bisect start HEAD v1.0
git bisect run make test
git config user.name ann
git diff --output=f
git log --stat --output=f
git archive -o x.tar HEAD
git archive HEAD
git format-patch -3 -o out
git gc --auto
git notes add -m x
git update-index --assume-unchanged a.py
git sparse-checkout set src
git symbolic-ref HEAD refs/heads/x
git fsck --lost-found
""".strip().splitlines()
    ),
    not_covered=tuple(
        """
git
git -c core.fsmonitor=touch status
git -ccore.pager=sh log
git --exec-path=/tmp status
git --git-dir=/tmp/x status
git --work-tree / status
git -p log
git --config-env=core.pager=X log
git unknown
git log --outp=f
git log --help
git help log
git diff --ext-diff
git show --textconv HEAD:a
git log --show-signature
git log --format=%G?
git log '--pretty=format:%+GS'
git for-each-ref --format='%(signature:key)'
git branch --sort=signature
git grep -Oless x
git grep -nOsh x
git grep --open-files-in-pager=sh x
git log -- ':(icase).ENV'
git diff ':/.env'
git cat-file --batch
git cat-file --filters HEAD:a
git log --stdin
git diff --submodule=diff
git config core.fsmonitor ./x
git config alias.x --list
git config alias.st --get
git config --edit
git config --global user.name x
git ls-remote --upload-pack='touch x' .
git ls-remote --upload-pa=touch origin
git ls-remote 'ext::sh -c touch%20x'
git clone -u 'touch x' a b
git clone -c core.fsmonitor=x a
git clone --template=/tmp/x a
git clone 'ext::sh -c x'
git fetch --upload-pack=x origin
git pull 'ext::x'
git push --receive-pack=x origin
git push --exec x origin
git merge -s evil x
git filter-branch --tree-filter x
git difftool
git mergetool
git bisect view
git whatchanged
git daemon
git help
git verify-commit HEAD
git tag -v v1.0
git archive --remote=x HEAD
git add --pathspec-from-file=x
git var GIT_EDITOR
""".strip().splitlines()
    ),
)


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
