"""The models of git and gh: what they cover, what they must not, and where the real git would do more than they say."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import pytest
from git_scene import run_git

from harness.programs import gh, git
from harness.programs.git_config import OVERRIDDEN, programs_named
from harness.programs.git_looking import LOOKING
from harness.programs.model import Found, PathUse, Unknown, Use
from harness.programs.options import option_table, read_command

PROGRAMS = {**git.PROGRAMS, **gh.PROGRAMS}
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def use_of(line: str) -> Use:
    """Return what the model of its program says of a command line without expansions."""
    words = shlex.split(line)
    return read_command(PROGRAMS[words[0]], words)


def shown(path: PathUse) -> str:
    if path.tracked is not None:
        what = path.tracked
        words = ("--", *what.words) if what.behind_dashes else what.words
        return f"T:{path.word}[{','.join((*words, *what.objects, *([] if what.patches else ['only'])))}]"
    letter = path.access.value[0]
    only = f"[{','.join(path.only)}]" if path.only else ""
    return f"{letter.upper() if path.tree else letter}:{path.word}{only}"


ROWS = [
    # Paths inside revisions and ranges: a rule about `.env` must see them.
    ("git show HEAD:.env", "looks", "r:HEAD:.env r:.env"),
    ("git show :.env", "looks", "r::.env r:.env"),
    ("git show :0:.env", "looks", "r::0:.env r:0:.env r:.env"),
    ("git show ::.env", "looks", "r:::.env r::.env r:.env"),
    ("git show HEAD:./.env", "looks", "r:HEAD:./.env r:./.env"),
    ("git show stash@{0}:.env", "looks", "r:stash@{0}:.env r:.env"),
    ("git show HEAD@{10:30}:.env", "looks", "r:HEAD@{10:30}:.env r:30}:.env r:.env T:.[HEAD@{10:30}:.env]"),
    ("git cat-file -p HEAD:.env", "looks", "r:HEAD:.env r:.env"),
    ("git cat-file blob main:config/.env", "looks", "r:blob r:main:config/.env r:config/.env"),
    ("git diff HEAD~1:.env..HEAD:.env --stat", "looks", "r:HEAD~1:.env..HEAD:.env r:.env..HEAD:.env r:.env"),
    ("git log -p -- .env", "looks", "r:.env T:.[--,.env]"),
    ("git log -p HEAD -- a .env", "looks", "r:HEAD r:a r:.env T:.[--,a,.env]"),
    ("git diff .env", "looks", "r:.env T:.[.env]"),
    ("git blame .env", "looks", "r:.env"),
    ("git blame -L1,5 HEAD -- .env", "looks", "r:HEAD r:.env"),
    ("git log -L1,5:.env", "looks", "r:.env T:.[]"),
    ("git log -L :main:.env", "looks", "r:main:.env r:.env T:.[]"),
    ("git log -L '/a/,/b/:.env'", "looks", "r:.env T:.[]"),
    ("git grep KEY -- .env", "looks", "R:.env"),
    ("git config --file .env --list", "looks", "r:.env"),
    ("git config -f.env -l", "looks", "r:.env"),
    ("git config --blob HEAD:.env --get a.b", "looks", "r:HEAD:.env r:.env"),
    ("git log -O.env", "looks", "r:.env"),
    ("git blame --contents=.env a", "looks", "r:.env r:a"),
    ("git blame -S .env a", "looks", "r:.env r:a"),
    ("git blame --ignore-revs-file .env a", "looks", "r:.env r:a"),
    ("git ls-files -X .env", "looks", "r:.env"),
    ("git ls-files --exclude-per-directory=.env -o", "looks", "r:.env"),
    ("git apply --stat .env", "looks", "r:.env"),
    ("git commit -F .env", "changes", "r:.env"),
    ("git stash show -p -- .env", "looks", "r:.env T:.[]"),
    # Patterns may stand for a secret where contents are shown, and are names where they are not.
    ("git log -p -- '.en[v]'", "looks", "r:.en[v] R:. R:.en[v] T:.[--,.en[v]]"),
    ("git log -p -- '.en\\v'", "looks", "r:.en\\v R:. R:.en\\v T:.[--,.en\\v]"),
    ("git diff -- 'config/*.env'", "looks", "r:config/*.env R:config[*.env] R:config/*.env T:.[--,config/*.env]"),
    ("git diff --stat -- '*.py'", "looks", "r:*.py"),
    ("git log --oneline -- '*.py'", "looks", "r:*.py"),
    ("git show HEAD -- '/*'", "looks", "r:HEAD r:/* R:/ R:/* T:.[--,/*]"),
    ("git ls-files '*.py'", "looks", "r:*.py"),
    (
        "git diff ':!x' ':(exclude)y' ':^z' ':(top,exclude)w'",
        "looks",
        "r::!x r::(exclude)y r::^z r::(top,exclude)w T:.[:!x,:(exclude)y,:^z,:(top,exclude)w]",
    ),
    # What git tracks, where contents are shown: by the words, and by object ids.
    ("git diff", "looks", "T:.[]"),
    ("git diff HEAD -- src ':!src/x'", "looks", "r:HEAD r:src r::!src/x T:.[--,src,:!src/x]"),
    ("git show --stat", "looks", ""),
    ("git show --stat abc1234", "looks", "r:abc1234 T:.[abc1234,abc1234,only]"),
    ("git show main", "looks", "r:main T:.[main]"),
    ("git log --name-only", "looks", ""),
    ("git log -p --full-diff -- a", "looks", "r:a T:.[--]"),
    ("git log -L 1,5:a", "looks", "r:a T:.[]"),
    ("git diff-tree -r HEAD", "looks", "r:HEAD"),
    ("git diff-tree -p HEAD", "looks", "r:HEAD T:.[HEAD]"),
    ("git range-diff a..b c..d", "looks", "r:a..b r:c..d T:.[]"),
    ("git cat-file -p abc1234", "looks", "r:abc1234 T:.[]"),
    ("git cat-file -t abc1234", "looks", "r:abc1234"),
    ("git cat-file -p HEAD", "looks", "r:HEAD"),
    ("git stash list", "looks", ""),
    ("git stash list -p", "looks", "T:.[]"),
    ("git status -v a", "looks", "r:a T:.[]"),
    ("git --literal-pathspecs diff", "gap", ""),
    # git grep reads the current folder unless a path narrows it.
    ("git grep KEY", "looks", "R:."),
    ("git grep KEY HEAD", "looks", "R:HEAD R:."),
    ("git grep KEY HEAD:", "looks", "R:HEAD: R:."),
    ("git grep KEY HEAD:cfg", "looks", "R:HEAD:cfg R:cfg R:."),
    ("git grep -e a --and ( -e b --or -e c )", "looks", "R:( R:) R:."),
    ("git grep KEY -- ':!src'", "looks", "R::!src R:."),
    ("git grep KEY -- src", "looks", "R:src"),
    ("git grep KEY -- '*.py'", "looks", "R:*.py R:.[*.py]"),
    ("git grep --no-index KEY src", "looks", "R:src"),
    ("git grep -f .env src", "looks", "r:.env R:src"),
    # Outside a repository two folders are compared with all that is in them.
    ("git diff a b", "looks", "R:a R:b T:.[a,b]"),
    ("git diff -- a /etc", "looks", "R:a T:.[--,a,/etc]"),
    ("git diff --no-index a b --stat", "looks", "R:a R:b"),
    ("git diff a", "looks", "r:a T:.[a]"),
    # -C stands in front of every path, also of those that are implied.
    ("git -C sub show HEAD:.env", "looks", "r:sub/HEAD:.env r:sub/.env"),
    ("git -C sub grep KEY", "looks", "R:sub/."),
    ("git -C .. -C x grep KEY", "looks", "R:../x/."),
    ("git -C /etc log -- x", "looks", "r:/etc/x"),
    ("git -C sub log -C -p a", "looks", "r:sub/a T:sub/.[a]"),
    ("git --no-pager -C sub config user.name x", "changes", "w:sub/.git/config"),
    ("git -C sub bisect run make test", "changes", ""),
    # What is written.
    ("git diff --output=f", "writes", "w:f T:.[]"),
    ("git diff --output f HEAD", "writes", "w:f r:HEAD T:.[HEAD]"),
    ("git log --stat --output=f", "writes", "w:f"),
    ("git log --max-age --author --output=f", "gap", ""),
    ("git shortlog --format --output=f", "gap", ""),
    ("git rev-list HEAD --output=f", "gap", ""),
    ("git blame a --output=f", "gap", ""),
    ("git range-diff a..b c..d --output=f", "writes", "w:f r:a..b r:c..d T:.[]"),
    ("git format-patch -1 -o out", "changes", "w:out T:.[] w:."),
    ("git format-patch --stdout -1", "looks", "T:.[]"),
    ("git format-patch --stdout -1 --range-diff --output=f", "gap", ""),
    ("git restore -- src/a.py", "changes", "w:src/a.py"),
    ("git checkout HEAD -- '*.py'", "changes", "w:HEAD w:*.py W:.[*.py] W:*.py"),
    ("git rm -r src", "changes", "W:src"),
    ("git mv a b c", "changes", "E:a E:b W:c"),
    ("git clean -fdx", "changes", "W:."),
    ("git clean -f src", "changes", "W:src"),
    ("git clean -nd src", "looks", "r:src"),
    ("git clone https://example.org/a/b.git", "changes+network", "W:b"),
    ("git clone ../x y", "changes+network", "W:y r:../x"),
    ("git push ../x main", "changes+network", "e:../x"),
    ("git bundle create f HEAD", "changes", "w:f"),
    ("git worktree add ../x", "changes", "W:../x"),
    # Words that git takes for options, though they stand where values or operands do.
    ("git stash list -- --output=f", "gap", ""),
    ("git stash list --author -- -S --output=f", "gap", ""),
    ("git stash show -O x -S --output=f", "gap", ""),
    ("git describe --contains -- --x", "gap", ""),
    ("git verify-pack -- -o f", "gap", ""),
    ("git log -S --output=f", "gap", ""),
    ("git log -S --no-verify", "looks", ""),
    ("git log -l --output=f", "gap", ""),
    # Lists or changes.
    ("git branch -v x", "changes", ""),
    ("git branch --sort=refname x", "changes", ""),
    ("git branch --column x", "changes", ""),
    ("git branch --list x", "looks", ""),
    ("git branch --contains abc x", "looks", ""),
    ("git branch --merged -D x", "changes", ""),
    ("git branch -u origin/x", "changes", ""),
    ("git tag --sort=refname x", "changes", ""),
    ("git tag -i x", "changes", ""),
    ("git tag -n x", "looks", ""),
    ("git remote -v update", "changes+network", ""),
    ("git remote show -n origin", "looks", "r:.git/config"),
    ("git remote -v", "looks", "r:.git/config"),
    ("git remote", "looks", ""),
    ("git remote get-url origin", "looks", "r:.git/config"),
    ("git config --get remote.origin.url", "looks", "r:.git/config"),
    ("git config --local --list", "looks", "r:.git/config"),
    ("git remote show origin", "looks+network", "r:.git/config"),
    ("git config get remote.origin.url", "looks", "r:.git/config"),
    ("git config get --local --all --show-origin remote.origin.url", "looks", "r:.git/config"),
    ("git config get --url=https://h http.extraheader", "looks", "r:.git/config"),
    ("git config get --file=.env a.b", "looks", "r:.env"),
    ("git config get --blob HEAD:.env a.b", "looks", "r:HEAD:.env r:.env"),
    ("git config get --global user.email", "looks", ""),
    ("git config get --all --regexp remote", "gap", ""),
    ("git config list", "gap", ""),
    ("git config list --local", "looks", "r:.git/config"),
    ("git ls-remote", "looks+network", "r:.git/config"),
    ("git ls-remote --get-url origin", "looks+network", "r:.git/config"),
    ("git for-each-ref --format='%(upstream:remotename)'", "looks", "r:.git/config"),
    ("git branch --format '%(push:remotename)'", "looks", "r:.git/config"),
    ("git branch --sort=upstream:remotename", "looks", "r:.git/config"),
    ("git tag --format='%(refname)'", "looks", ""),
    *[(f"git {words}", "gap", "") for words in ("var -l", "credential fill", "bugreport", "diagnose", "help --config")],
    ("git reflog expire --all", "changes", ""),
    ("git reflog -n5 expire", "changes", "r:expire"),
    ("git symbolic-ref HEAD refs/heads/x", "changes", ""),
    ("git hash-object -w a", "changes", "r:a"),
    ("git apply --stat --apply p", "changes", "r:p"),
    ("git apply p", "changes", "r:p"),
    ("git config user.name", "looks", "r:.git/config"),
    ("git config user.name x", "changes", "w:.git/config"),
    ("git config --unset user.name", "changes", "w:.git/config"),
    ("git config -f ../x user.name y", "changes", "w:../x"),
    ("git config a.b --list", "gap", ""),
    ("git config edit", "gap", ""),
    ("git config set core.pager x", "gap", ""),
    ("git config --add core.fsmonitor x", "gap", ""),
    ("git config --get --add core.pager x", "gap", ""),
    ("git config Core.Pager x", "gap", ""),
    ("git bisect run ./x", "changes", ""),
    ("git submodule foreach 'rm x'", "runs", ""),
    ("git submodule foreach rm x", "runs", ""),
    ("git submodule foreach 'a;b' x", "gap", ""),
    ("git -C sub rebase -x make main", "gap", ""),
    ("git archive HEAD .env", "runs", "r:HEAD r:.env T:.[--,.env]"),
    # Programs in disguise.
    ("git -Csub status", "gap", ""),
    ("git -c alias.x=!y x", "gap", ""),
    ("git --exec-path=x log", "gap", ""),
    ("git --git-dir x log", "gap", ""),
    ("git --bare log", "gap", ""),
    ("git --paginate log", "gap", ""),
    ("git log --ext-diff", "gap", ""),
    ("git log --format='%<(9)%GK'", "gap", ""),
    ("git log --pretty=%-GS", "gap", ""),
    ("git shortlog --format=%G?", "gap", ""),
    ("git tag --sort signature:key", "gap", ""),
    ("git grep -O x", "gap", ""),
    ("git grep -iOsh x", "gap", ""),
    ("git grep --open=sh x", "gap", ""),
    ("git blame --textconv a", "gap", ""),
    ("git diff --submodule a", "gap", ""),
    ("git log --remerge-diff", "gap", ""),
    ("git log --diff-merges=r", "gap", ""),
    ("git log --end-of-options x", "gap", ""),
    ("git diff-tree --stdin", "gap", ""),
    ("git rev-list --alternate-refs", "gap", ""),
    ("git cat-file --batch-command", "gap", ""),
    ("git ls-remote ext::x", "gap", ""),
    ("git ls-remote --upload-pack x o", "gap", ""),
    ("git fetch --multiple o ext::x", "gap", ""),
    ("git push --repo=ext::x", "gap", ""),
    ("git remote add o ext::x", "gap", ""),
    ("git clone --config a.b=c x", "gap", ""),
    ("git init --template x", "gap", ""),
    ("git pull -s evil", "gap", ""),
    ("git cherry-pick --strategy=evil x", "gap", ""),
    ("git grep KEY :/", "gap", ""),
    ("git grep KEY :", "gap", ""),
    ("git log -- ':(glob)**/.env'", "gap", ""),
    ("git rm -r :/", "gap", ""),
    ("git checkout -- ':(top)x'", "gap", ""),
    ("git reflog --help", "gap", ""),
    # gh always reaches the network, and sends files.
    ("gh api user", "looks+network", ""),
    ("gh api -X DELETE repos/o/n", "changes+network", ""),
    ("gh api -XGET repos/o/n -f a=b", "looks+network", ""),
    ("gh api -X=post x", "changes+network", ""),
    ("gh api x -F body=@.env", "changes+network", "r:.env"),
    ("gh api x --input .env", "changes+network", "r:.env"),
    ("gh pr comment 1 -F .env", "changes+network", "r:.env"),
    ("gh release upload v1 '.env#x'", "changes+network", "r:.env#x r:.env"),
    ("gh gist create .env", "changes+network", "r:.env"),
    ("gh run download -D out", "changes+network", "W:out"),
]


@pytest.mark.parametrize(("line", "act", "paths"), ROWS)
def test_what_a_command_does(line: str, act: str, paths: str) -> None:
    use = use_of(line)
    if act == "gap":
        assert use.gap
        return
    folders = {"sub", "..", "../x", "/etc"}  # -C itself is no more than the folder of the paths
    assert use.gap == ""
    assert use.act.value + ("+network" if use.network else "") == act
    assert " ".join(shown(path) for path in use.paths if path.word not in folders) == " ".join(
        word for word in paths.split() if word[2:] not in folders
    )


@pytest.mark.parametrize(
    ("words", "covered"),
    [
        (["git", "log", "--grep", Unknown("$X")], True),
        (["git", "log", Unknown("--format=$X", prefix="--format=")], False),
        (["git", "log", Unknown("$X")], False),
        (["git", "log", "--", Unknown("$X")], False),
        (["git", "show", Unknown("HEAD:$X", prefix="HEAD:")], False),
        (["git", Unknown("$X")], False),
        (["git", "-C", Unknown("$X"), "status"], False),
        (["git", "-C", Found("{}", starts=("sub",)), "status"], False),
        (["git", "log", Found("{}", starts=("sub",))], True),
        (["git", "stash", "list", "--author", Unknown("$X")], False),
        (["git", "commit", "-m", Unknown("$X")], True),
        (["git", "fetch", Unknown("$X")], False),
        (["git", "fetch", "origin", Unknown("$X", prefix="refs/")], True),
        (["git", "clone", Unknown("https://h/$X", prefix="https://h/")], True),
        (["git", "merge", "-s", Unknown("$X"), "b"], False),
        (["git", "config", Unknown("$X"), "y"], False),
        (["git", "submodule", "foreach", Unknown("$X")], False),
        (["gh", "api", "x", "-F", Unknown("$X")], False),
    ],
)
def test_words_of_unknown_value_are_covered_only_where_they_are_text(words: list[str], covered: bool) -> None:
    assert (not read_command(PROGRAMS[words[0]], words).gap) is covered


def test_the_folder_of_the_repository_is_told() -> None:
    assert use_of("git status").git_folder == "."
    assert use_of("git -C a -C b status").git_folder == "a/b"
    assert use_of("git -C a -C /b status").git_folder == "/b"


def test_what_is_run_for_each_step_is_told() -> None:
    assert use_of("git bisect run make -k").commands[0].argv == ("make", "-k")
    assert use_of("git -C sub bisect run make").commands[0].folder == "sub"
    assert use_of("git rebase -x 'git push' main").scripts == ("git push",)
    assert use_of("git submodule foreach 'git push'").scripts == ("git push",)
    assert use_of("git submodule foreach git push").commands[0].argv == ("git", "push")


# The configuration of a repository.

PLAIN = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
[remote "origin"]
\turl = git@example.org:a/b.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
\tmerge = refs/heads/main
\tvscode-merge-base = origin/main
"""


@pytest.mark.parametrize(
    "config",
    [
        "",
        PLAIN,
        PLAIN.replace("\n", "\r\n"),
        "\ufeff" + PLAIN,
        "# a comment\n; another\n[user] name = ann # me\n email = a@b ; mine\n",
        "[alias] st = !touch x\n[pull]\nrebase\n",
        '[submodule "x"]\nurl = u\nactive = true\nupdate = rebase\n',
        '[diff "python"] xfuncname = "^def \\"x\\" ;#"\n',
        "[blame] ignoreRevsFile = .git-blame-ignore-revs",
        "[extensions]\nobjectFormat = sha256\nrefStorage = reftable\n",
        "[pretty] short = format:%h %s\n[format] pretty = oneline\n[tag] sort = -v:refname\n",
        "[remote.origin] url = x\n",
        '[core] fsmonitor = ./x\nhooksPath = h\n[CORE] Pager = "less"\n',
        "[merge]\nconflictStyle = zdiff3\ntool = meld\n[gpg] format = ssh\n",
        "[user]\nname = a\\\n  b\n",
        "[user]name=a[diff]external=x",
    ],
)
def test_a_plain_configuration_names_no_program(config: str) -> None:
    assert programs_named(config) is None


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ("[CoRe]\n\tWorkTree = /", "core.worktree"),
        ("[core] attributesFile = x", "core.attributesfile"),
        ("[core] excludesFile = x", "core.excludesfile"),
        ("[core] gitProxy = x", "core.gitproxy"),
        ("[core] alternateRefsCommand = x", "core.alternaterefscommand"),
        ("[core] futureCommand = x", "core.futurecommand"),
        ("[diff] external = x", "diff.external"),
        ("[user]\nname=a\n[diff]external=x", "diff.external"),
        ('[diff "x"] textconv = x', "diff.x.textconv"),
        ('[diff "x"]\n#\ncommand = x', "diff.x.command"),
        ("[diff.x] textconv = y", "diff.x.textconv"),
        ('[diff "a\\"]b.c"] textconv = x', "textconv"),
        ("[diff] submodule = diff", "diff.submodule"),
        ("[diff] orderFile = x", "diff.orderfile"),
        ('[filter "lfs"] clean = "git-lfs clean -- %f; touch x"', "filter.lfs.clean"),
        ('[filter "lfs"] clean = ./git-lfs clean -- %f', "filter.lfs.clean"),
        ('[filter "lfs"] process', "filter.lfs.process"),
        ('[filter "x"] clean = git-lfs clean -- %f', "filter.x.clean"),
        ('[lfs "extension.x"] clean = y', "lfs.extension.x.clean"),
        ('[lfs "customtransfer.x"] path = y', "lfs.customtransfer.x.path"),
        ("[lfs] standaloneTransferAgent = x", "lfs.standalonetransferagent"),
        ("[lfs] storage = /x", "lfs.storage"),
        ('[filter "x"] process = y', "filter.x.process"),
        ("[include] path = x", "include.path"),
        ('[includeIf "gitdir:/"] path = x', "includeif"),
        ("[extensions] partialClone = origin", "extensions.partialclone"),
        ("[extensions] refStorage = files:///x", "extensions.refstorage"),
        ('[remote "o"] promisor = true', "remote.o.promisor"),
        ("[log] showSignature", "log.showsignature"),
        ("[log] diffMerges = remerge", "log.diffmerges"),
        ("[gpg] program = x", "gpg.program"),
        ('[gpg "ssh"] defaultKeyCommand = x', "gpg.ssh.defaultkeycommand"),
        ('[submodule "x"] update = !y', "submodule.x.update"),
        ("[pretty] x = format:%G?", "pretty.x"),
        ('[format] pretty = "%+"GS', "format.pretty"),
        ("[format] signatureFile = x", "format.signaturefile"),
        ("[branch] sort = signature:key", "branch.sort"),
        ("[alias] status = !x", "alias.status"),
        ("[alias] sparse-checkout = !x", "alias.sparse-checkout"),
        ('[alias "Log"] command = !x', "alias.Log.command"),
        ("[mailmap] file = x", "mailmap.file"),
        ("[blame] ignoreRevsFile = ../x", "blame.ignorerevsfile"),
        ("[status] submoduleSummary = true", "status.submodulesummary"),
        ('[tar "xz"] command = x', "tar.xz.command"),
        ('[trailer "x"] command = y', "trailer.x.command"),
        ("[user]\nname = a\\\n[diff]\n[diff] external = x\n", "diff.external"),
        ("[unheard] of = x", "unheard.of"),
        # What git would refuse, or reads otherwise than it looks.
        ("name = x", "not understood"),
        ("[core", "not understood"),
        ("[core ]\nbare", "not understood"),
        ("[]\nx = y", "not understood"),
        ('[remote "x]\nurl = y', "not understood"),
        ('[remote "x\n"] url = y', "not understood"),
        ('[user] name = "a\nb"', "not understood"),
        ('[user] name = "a', "not understood"),
        ("[user] name = \\x", "not understood"),
        ("[user] name # x", "not understood"),
        ("[user] na_me = x", "not understood"),
        ("[user] name = a\rb", "not understood"),
        ("[user] name = \0", "not understood"),
        ("[user]\x0bname = x", "not understood"),
        ("[üser] name = x", "not understood"),
    ],
)
def test_a_configuration_that_may_name_a_program_is_told_with_its_key(config: str, key: str) -> None:
    problem = programs_named(config)
    assert problem is not None
    assert key in problem


def test_a_large_configuration_is_read_in_a_moment() -> None:
    assert programs_named('[remote "a"]\n' * 15_000 + "url = x\\\n" * 2 + "\n") is None
    assert programs_named("[user] name = " + '"\\n"' * 50_000) is None


# The same held against the git of this machine.


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with a secret in `.env`, also in a folder, in the history, in the index and in a stash."""
    folder = tmp_path_factory.mktemp("repository")
    run_git(folder, "init", "-q")
    for number in range(2):
        (folder / "cfg").mkdir(exist_ok=True)
        (folder / ".env").write_text(f"SECRET={number}\n")
        (folder / "cfg" / ".env").write_text(f"SECRET={number}\n")
        (folder / "a").write_text(f"{number}\n")
        run_git(folder, "add", "-A")
        run_git(folder, "commit", "-qm", f"commit {number}")
    (folder / "a").write_text("changed\n")
    run_git(folder, "stash", "-q")
    return folder


WITH_OUTPUT = {
    "log": ["-1"],
    "show": [],
    "diff": ["HEAD~1"],
    "range-diff": ["HEAD~1..HEAD", "HEAD~1..HEAD"],
    "blame": ["a"],
    "rev-list": ["HEAD"],
    "shortlog": ["HEAD"],
    "stash list": [],
    "stash show": [],
    "diff-tree": ["HEAD"],
    "format-patch": ["--stdout", "-1"],
}


@needs_git
@pytest.mark.parametrize("name", WITH_OUTPUT)
def test_the_next_word_is_a_value_exactly_where_the_table_says_so(name: str, repository: Path, tmp_path: Path) -> None:
    """`git log OPTION --output=f` writes f, or the option has taken that for its value; both must be known.

    Options without a value are tried once, for `git log`; a git that does not know an option ends with an error.
    """
    wrong = []
    output = tmp_path / "f"
    for spelling, entry in option_table(LOOKING[name].options).items():
        if spelling == "-NUM" or (entry.role is None and name != "log"):
            continue
        done = run_git(repository, *name.split(), spelling, f"--output={output}", *WITH_OUTPUT[name])
        written = output.exists()
        output.unlink(missing_ok=True)
        takes = entry.role is not None and not entry.joined_only
        if written if takes else not written and done.returncode == 0:
            wrong.append(spelling)
    assert wrong == []


@needs_git
@pytest.mark.parametrize(
    "name", ["grep", "ls-files", "branch", "tag", "for-each-ref", "config", "cat-file", "describe"]
)
def test_an_unknown_option_behind_an_option_is_seen_by_git(name: str, repository: Path) -> None:
    """The same for subcommands without --output: git complains about the next word, unless it is a value."""
    wrong = []
    for spelling, entry in option_table(LOOKING[name].options).items():
        if spelling == "-NUM":
            continue
        complaint = run_git(repository, name, spelling, "--zzz").stderr.partition("\n")[0]
        seen = "zzz" in complaint and "option" in complaint
        known = "unknown" not in complaint or "zzz" in complaint
        takes = entry.role is not None and not entry.joined_only
        # --contains and its like take the next word, but refuse an option as such.
        if known and seen is takes and "malformed object name" not in complaint:
            wrong.append(spelling)
    assert wrong == []


@needs_git
@pytest.mark.parametrize(
    "line",
    [
        "git show HEAD:.env",
        "git show :.env",
        "git show :0:.env",
        "git log -p -1 -- ::.env",
        "git show HEAD@{now}:.env",
        "git show HEAD^{/commit}:.env",
        "git show HEAD^{tree}:cfg/.env",
        "git diff HEAD~1:.env..HEAD:.env",
        "git diff HEAD~1:.env HEAD:.env",
        "git diff HEAD~1 .env",
        "git log -p -- .env",
        "git log -p -1 -- '.en[v]'",
        "git log -p -1 -- '.en\\v'",
        "git log -p -1 -- ':(icase).ENV'",
        "git log -p -1 -- ':/.env'",
        "git log -1 -L1,1:.env",
        "git log -1 -L1,1:./.env",
        "git blame .env",
        "git blame HEAD -- cfg/../.env",
        "git blame --contents .env a",
        "git cat-file -p HEAD:.env",
        "git cat-file blob HEAD:cfg/.env",
        "git grep SECRET",
        "git grep SECRET HEAD",
        "git grep SECRET HEAD:",
        "git grep SECRET HEAD:cfg",
        "git grep -e SECRET --and ( -e 1 --or -e 2 )",
        "git grep SECRET -- ':!a'",
        "git grep SECRET -- '*env'",
        "git grep SECRET -- cfg",
        "git grep SECRET -- :",
        "git grep SECRET :/",
        "git grep --no-index SECRET",
        "git diff --no-index a .env",
        "git diff --no-index /dev/null .env",
        "git -C cfg grep SECRET",
        "git -C cfg show HEAD:./.env",
        "git config -f .env --list",
        "git config --file=cfg/.env -l",
        "git config --blob HEAD:.env --list",
        "git archive HEAD .env",
        "git format-patch --stdout -1 -- .env",
        "git diff-tree -p HEAD -- .env",
        "git diff-index -p HEAD~1 -- .env",
        "git annotate .env",
    ],
)
def test_what_shows_a_secret_by_its_name_is_known_to_read_it(line: str, repository: Path) -> None:
    shows = run_git(repository, *shlex.split(line)[1:]).stdout
    assert "secret" in shows.lower()
    use = use_of(line)
    names = {os.path.normpath(path.word) for path in use.paths}
    trees = {os.path.normpath(path.word) for path in use.paths if path.tree}
    assert use.gap or not names.isdisjoint((".env", "cfg/.env")) or not trees.isdisjoint((".", "cfg", "/"))


@needs_git
def test_words_behind_two_dashes_are_options_to_a_stash_list(repository: Path, tmp_path: Path) -> None:
    """The reason for a gap that looks odd: this git writes a file that stands where operands do."""
    output = tmp_path / "f"
    run_git(repository, "stash", "list", "--", f"--output={output}")
    assert not output.exists() or use_of(f"git stash list -- --output={output}").gap


@needs_git
@pytest.mark.parametrize(
    "config",
    [
        PLAIN,
        '[a "b.c\\"d\\\\e"]\n\tK-1 = x \\\n y ; z\n[a.B] k\n[A]k="p;q" r\t # s\nl=',
        '[user] name = a\\tb\\"c\n\n#x\n[u]\n',
        "[core]x=1\n[core] y = 2 [z]\n",
        "[a] b = c\\\n#d\n",
        '[a "b"] [c] d = e\n',
    ],
)
def test_settings_are_read_as_git_reads_them(config: str, tmp_path: Path) -> None:
    from harness.programs.git_config import _settings

    (tmp_path / "config").write_text(config)
    done = run_git(tmp_path, "config", "-z", "--list", "--file", "config")
    expected = [tuple(entry.split("\n", 1)) for entry in done.stdout.split("\0")[:-1]]
    assert done.returncode == 0
    ours = [(name, value.strip()) if value is not None else (name,) for name, value in _settings(config)]
    assert ours == [(entry[0], entry[1].strip()) if len(entry) == 2 else entry for entry in expected]


@needs_git
@pytest.mark.parametrize(
    "config", ["[core", "[core ]\nx", '[a "b\n"]', '[a] b = "c', "[a] b # c", "[a] b_c = d", "[a] b = \\x"]
)
def test_what_git_refuses_is_refused(config: str, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(config)
    assert run_git(tmp_path, "config", "--list", "--file", "config").returncode != 0
    assert "not understood" in (programs_named(config) or "")


def test_overridden_keys_are_spelled_as_settings_are() -> None:
    assert all(
        key == key.lower() and programs_named(f"[core]\n{key.removeprefix('core.')} = x") is None for key in OVERRIDDEN
    )
