"""The model of git: what a repository's configuration may run, and where the real git would do more than is said of it."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import pytest
from git_scene import run_git
from sizes import spread

from harness.programs import git
from harness.programs.git import LOOKING
from harness.programs.git_config import OVERRIDDEN, programs_named
from harness.programs.options import option_table, read_command
from harness.programs.program import Use

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def use_of(line: str) -> Use:
    """Return what the model of its program says of a command line without expansions."""
    words = shlex.split(line)
    return read_command(git.PROGRAMS[words[0]], words)


def test_repository_folder_is_found() -> None:
    assert use_of("git status").git_folder == "."
    assert use_of("git -C a -C b status").git_folder == "a/b"
    assert use_of("git -C a -C /b status").git_folder == "/b"


def test_commands_run_for_each_step_are_found() -> None:
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


NAMES_NO_PROGRAM = [
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
]


def test_a_plain_configuration_names_no_program() -> None:
    assert [config for config in NAMES_NO_PROGRAM if programs_named(config) is not None] == []


NAMES_A_PROGRAM = [
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
]


def test_configuration_that_may_name_a_program_is_found_with_its_key() -> None:
    assert [config for config, key in NAMES_A_PROGRAM if key not in (programs_named(config) or "")] == []


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
def test_next_word_is_a_value_only_for_listed_options(repository: Path, tmp_path: Path) -> None:
    """`git log OPTION --output=f` writes f, or the option has taken that for its value; both must be known.

    Options without a value are tried once, for `git log`; a git that does not know an option ends with an error.
    """
    wrong = []
    output = tmp_path / "f"
    tried = [
        (name, spelling, entry)
        for name in WITH_OUTPUT
        for spelling, entry in option_table(LOOKING[name].options).items()
        if spelling != "-NUM" and (entry.role is not None or name == "log")
    ]
    for name, spelling, entry in spread("GIT_OPTIONS", tried, 200):
        done = run_git(repository, *name.split(), spelling, f"--output={output}", *WITH_OUTPUT[name])
        written = output.exists()
        output.unlink(missing_ok=True)
        takes = entry.role is not None and not entry.joined_only
        if written if takes else not written and done.returncode == 0:
            wrong.append(f"{name} {spelling}")
    assert wrong == []


@needs_git
def test_unknown_option_after_an_option_reaches_git(repository: Path) -> None:
    """The same for subcommands without --output: git complains about the next word, unless it is a value."""
    wrong = []
    names = ("grep", "ls-files", "branch", "tag", "for-each-ref", "config", "cat-file", "describe")
    tried = [(name, *row) for name in names for row in option_table(LOOKING[name].options).items() if row[0] != "-NUM"]
    for name, spelling, entry in spread("GIT_OPTIONS", tried, 100):
        complaint = run_git(repository, name, spelling, "--zzz").stderr.partition("\n")[0]
        seen = "zzz" in complaint and "option" in complaint
        known = "unknown" not in complaint or "zzz" in complaint
        takes = entry.role is not None and not entry.joined_only
        # --contains and its like take the next word, but refuse an option as such.
        if known and seen is takes and "malformed object name" not in complaint:
            wrong.append(f"{name} {spelling}")
    assert wrong == []


SHOWS_A_SECRET = [
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
]


@needs_git
def test_command_that_shows_a_secret_by_its_name_reads_it(repository: Path) -> None:
    wrong = []
    for line in SHOWS_A_SECRET:
        shows = run_git(repository, *shlex.split(line)[1:]).stdout
        use = use_of(line)
        names = {os.path.normpath(path.word) for path in use.paths}
        trees = {os.path.normpath(path.word) for path in use.paths if path.tree}
        read = not names.isdisjoint((".env", "cfg/.env")) or not trees.isdisjoint((".", "cfg", "/"))
        if "secret" not in shows.lower() or not (use.gap or read):
            wrong.append(line)
    assert wrong == []


@needs_git
def test_words_after_two_dashes_are_options_of_a_stash_list(repository: Path, tmp_path: Path) -> None:
    """The reason for a gap that looks odd: this git writes a file that stands where operands do."""
    output = tmp_path / "f"
    run_git(repository, "stash", "list", "--", f"--output={output}")
    assert not output.exists() or use_of(f"git stash list -- --output={output}").gap


SETTINGS = [
    PLAIN,
    '[a "b.c\\"d\\\\e"]\n\tK-1 = x \\\n y ; z\n[a.B] k\n[A]k="p;q" r\t # s\nl=',
    '[user] name = a\\tb\\"c\n\n#x\n[u]\n',
    "[core]x=1\n[core] y = 2 [z]\n",
    "[a] b = c\\\n#d\n",
    '[a "b"] [c] d = e\n',
]


@needs_git
def test_settings_are_read_as_git_reads_them(tmp_path: Path) -> None:
    from harness.programs.git_config import _settings

    for config in SETTINGS:
        (tmp_path / "config").write_text(config)
        done = run_git(tmp_path, "config", "-z", "--list", "--file", "config")
        expected = [tuple(entry.split("\n", 1)) for entry in done.stdout.split("\0")[:-1]]
        assert done.returncode == 0, config
        ours = [(name, value.strip()) if value is not None else (name,) for name, value in _settings(config)]
        assert ours == [(entry[0], entry[1].strip()) if len(entry) == 2 else entry for entry in expected], config


REFUSED = ["[core", "[core ]\nx", '[a "b\n"]', '[a] b = "c', "[a] b # c", "[a] b_c = d", "[a] b = \\x"]


@needs_git
def test_configuration_refused_by_git_is_refused(tmp_path: Path) -> None:
    for config in REFUSED:
        (tmp_path / "config").write_text(config)
        assert run_git(tmp_path, "config", "--list", "--file", "config").returncode != 0, config
        assert "not understood" in (programs_named(config) or ""), config


def test_overridden_keys_are_spelled_as_settings_are() -> None:
    assert all(
        key == key.lower() and programs_named(f"[core]\n{key.removeprefix('core.')} = x") is None for key in OVERRIDDEN
    )
