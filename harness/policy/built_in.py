"""Built-in decisions that override every rule: the few effects that are always blocked, denied or asked about."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from fnmatch import translate
from itertools import pairwise

from harness.actions import Access, Command, Facet, Opaque, PathAccess, Place, ToolUse, Unconfined
from harness.paths import fold, is_within
from harness.policy.hosts import LOCALHOST, LOOPBACK, HostPattern, address_problem, is_address
from harness.programs.runners import FIND_RUNS, name_of
from harness.record import Record
from harness.regex import regex
from harness.text.visible import one_line


class Severity(Enum):
    """The strictness of a finding."""

    CONFIRM = "confirm"
    DENY = "deny"
    BLOCK = "block"


class Finding(Record):
    """A reason why no rule can make a call auto."""

    id: str
    severity: Severity
    reason: str


# Names of files and folders whose content other programs execute or obey later, by the place of their documentation.
# Case-folded.
_PROTECTED: Mapping[str, str] = {
    "git-scm.com/docs, mercurial-scm.org, jj-vcs.dev, typicode.github.io/husky, lefthook.dev, pre-commit.com": (
        ".git .gitmodules .gitattributes .gitconfig .hg .svn .jj .husky lefthook.yml .lefthook.yml "
        ".pre-commit-config.yaml"
    ),
    "the documentation of each CI service": (
        ".github .gitlab-ci.yml .gitlab .circleci .buildkite .travis.yml azure-pipelines.yml jenkinsfile .gitea .forgejo "
        "bitbucket-pipelines.yml .drone.yml .woodpecker.yml .woodpecker appveyor.yml .appveyor.yml .cirrus.yml .teamcity"
    ),
    "code.visualstudio.com/docs (tasks), containers.dev, zed.dev/docs, vimhelp.org, emacs manual": (
        ".vscode .idea .devcontainer .zed .vs .exrc .vimrc .nvim.lua .dir-locals.el"
    ),
    "bash(1), zsh(1), readline(3), tmux(1), direnv.net, mise.jdx.dev, asdf-vm.com": (
        ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .inputrc "
        ".tmux.conf .envrc .direnvrc mise.toml .mise.toml mise.local.toml .mise.local.toml .mise mise "
        ".tool-versions"
    ),
    "docs.npmjs.com, yarnpkg.com, pnpm.io, maven.apache.org, doc.rust-lang.org, bazel.build, pip.pypa.io, docs.python.org": (
        ".npmrc .yarnrc .yarnrc.yml .yarn .pnpmfile.cjs .mvn .cargo .bazelrc .pypirc pip.conf .venv sitecustomize.py "
        "usercustomize.py .rprofile .irbrc"
    ),
    "ssh_config(5), netrc(5), gdb(1), rg(1), curl(1), wget(1)": (
        ".ssh .config .netrc .gdbinit .ripgreprc .curlrc .wgetrc"
    ),
    "agents.md, code.claude.com, developers.openai.com/codex, geminicli.com, opencode.ai, pi.dev, modelcontextprotocol.io": (
        "agents.md agents.override.md .agents .mcp.json .harness .claude claude.md claude.local.md .codex .gemini "
        "gemini.md .qwen qwen.md .copilot .opencode opencode.json opencode.jsonc .aider.conf.yml .pi"
    ),
    "the documentation of each agent, and the paths in github.com/dyoshikawa/rulesync": (
        ".cursor .cursorrules .windsurf .windsurfrules .devin .cline .clinerules .roo .roomodes .roorules .kilocode "
        ".amazonq .junie .kiro .crush.json crush.json crushrc .crushrc .crush crush.md .continue .augment .augment-guidelines "
        ".factory .goose .goosehints .vibe .trae warp.md .kimi-code .kimi .codeium"
    ),
}
PROTECTED_NAMES = frozenset(" ".join(_PROTECTED.values()).split())
"""Names of files and folders, at any depth, that other programs execute or obey later."""

_ENTRY_POINTS: Mapping[str, str] = {
    "make(1), just.systems, taskfile.dev, cmake.org, docs.docker.com": (
        "makefile gnumakefile justfile .justfile taskfile.* cmakelists.txt dockerfile docker-compose.* compose.*"
    ),
    "docs.pytest.org, mypy.readthedocs.io (plugins), flake8.pycqa.org (local plugins), pylint.readthedocs.io (init-hook)": (
        "conftest.py pyproject.toml setup.* tox.ini noxfile.py pytest.* .pytest.* unittest.py "
        "tasks.py manage.py mypy.ini .mypy.ini .flake8 pylintrc"
    ),
    "eslint.org, prettier.io, vitest.dev, jestjs.io, babeljs.io, mochajs.org, gulpjs.com, pnpm.io, bun.sh, docs.deno.com": (
        "package.json tsconfig.json *.config.* .*rc .*rc.* vitest.workspace.* gruntfile.* gulpfile.* pnpm-workspace.yaml "
        "bunfig.toml deno.json*"
    ),
    "doc.rust-lang.org/cargo, go.dev, golangci-lint.run, docs.gradle.org, maven.apache.org, bundler.io, getcomposer.org": (
        "build.rs cargo.toml go.mod go.work .golangci.* *.gradle* pom.xml rakefile gemfile composer.json"
    ),
}
ENTRY_POINTS = frozenset(" ".join(_ENTRY_POINTS.values()).split())
"""Names of files that build and test commands run or obey, and patterns of such names (`*`)."""
_ENTRY_PATTERNS = regex("|".join(translate(name) for name in sorted(ENTRY_POINTS) if "*" in name))

# Patterns are compiled when first needed: most sessions need none of them.
_RAW_DEVICE = (
    r"/dev/(?:[shv]d[a-z]|xvd|nvme|mmcblk|mapper/|dm-|md\d|loop|sr\d|mem|kmem|port|r?disk\d|disk/|mtd|nbd|pmem\d)"
)
_TERMINAL = r"/dev/(?:pts/|ptmx|console|tty\d|vcs)"
# Bounded, so that no text takes more than linear time.
_FORK_BOMB = r"(?<![^\s;&|(){}])([^\s;&|(){}]{1,64})\s{0,9}\(\s{0,9}\)\s{0,9}\{[^}]{0,200}?\1\s{0,9}\|\s{0,9}\1\s{0,9}&"
_STOPS_THE_MACHINE = frozenset(("shutdown", "reboot", "halt", "poweroff"))
_DESTROYS_FILE_SYSTEMS = frozenset(("mkfs", "mke2fs", "wipefs", "blkdiscard"))
_HARMLESS_DEVICES = frozenset(("/dev/null",))
_MACHINE_FACTS = frozenset(
    "/etc/os-release /usr/lib/os-release /etc/debian_version /etc/lsb-release /etc/hostname /etc/timezone /etc/shells "
    "/proc/cpuinfo /proc/meminfo /proc/version /proc/uptime /proc/loadavg /proc/filesystems /sys/fs/cgroup/cgroup.controllers "
    "/bin /usr/bin /usr/local/bin /usr/lib /usr/include".split()
)
"""Files, and folders to list, that describe the machine and reveal nothing about a person. Only reading is harmless."""
_WHOLE_TREE = ("/*", "/**", "/.*", "/.")

_FIND_NARROWS = frozenset(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -newer -size -empty -mtime -mmin -ctime "
    "-cmin -atime -amin -user -group -perm -inum -samefile -links".split()
)
"""Tests of find that exclude most files; `-type f` does not."""
# Programs that may have `rm -rf /` as text in their words, or have a subcommand `rm`. Their words count only if the
# line also starts a program that runs text. These lists decide on calls that no person can permit, so they are short.
# They are separate from those in programs/runners.py, which decide on questions and may grow.
_MENTIONS = frozenset("echo printf grep egrep fgrep rg git".split())
_RUNS_TEXT = frozenset(
    "sh bash dash ash zsh ksh fish csh tcsh busybox eval source . exec command env sudo doas su ssh xargs parallel at batch "
    "python python3 perl ruby node".split()
)
_BEFORE_A_COMMAND = frozenset(
    "sudo doas exec command env nohup bash sh eval time timeout nice ! { then else do if while until".split()
)


def inspect_facet(facet: Facet, guarded: Sequence[str], hosts: Sequence[HostPattern] = ()) -> Finding | None:
    """Return the strictest built-in finding on one facet, or `None`.

    `guarded` are absolute paths that no call may write. `hosts` are the host patterns of rules, which can permit
    non-public addresses.
    """
    match facet:
        case Command():
            return _inspect_words(facet.argv, facet.paths, guarded)
        case Opaque():
            return _inspect_opaque(facet, guarded)
        case PathAccess():
            return _inspect_path(facet, guarded)
        case Unconfined():
            return _confirm("unconfined", "it asks to run without confinement, with all that you may do yourself")
        case ToolUse():
            return _inspect_host(facet, hosts) or _inspect_use(facet, guarded)


def _block(finding_id: str, reason: str) -> Finding:
    return Finding(id=finding_id, severity=Severity.BLOCK, reason=reason)


def _confirm(finding_id: str, reason: str) -> Finding:
    return Finding(id=finding_id, severity=Severity.CONFIRM, reason=reason)


def _deny(finding_id: str, reason: str) -> Finding:
    return Finding(id=finding_id, severity=Severity.DENY, reason=reason)


def _inspect_host(use: ToolUse, hosts: Sequence[HostPattern]) -> Finding | None:
    """Return a finding on the host of a call. The tool that resolves a name checks its addresses by the same rules."""
    if not use.host:
        return None

    local = use.host == LOCALHOST or use.host.endswith(f".{LOCALHOST}")
    if not local and not is_address(use.host):
        return None
    problem = address_problem(hosts, LOOPBACK[0] if local else use.host, use.port)
    return _deny("private-address", f"{problem}: a rule with host would have to name it") if problem else None


def _inspect_words(argv: Sequence[str], paths: Sequence[PathAccess], guarded: Sequence[str]) -> Finding | None:
    name = name_of(argv[0])
    if name in _DESTROYS_FILE_SYSTEMS or name.startswith("mkfs."):
        return _block("raw-devices", f"{name} destroys a file system")
    if name in _STOPS_THE_MACHINE:
        return _block("stop-machine", f"{name} stops the machine")
    if _deletes_recursively(name, argv[1:]):
        for path in paths:
            if path.place in (Place.ROOT, Place.ABOVE):
                place = f" ({path.real})" if path.real != path.written else ""
                return _block("delete-tree", f"a recursive delete of {path.written}{place}")
            if any(_is_within(guard, path.real) for guard in guarded):
                return _block("own-files", f"{path.written} holds files of the policy or the action log in use")
    return None


def _deletes_recursively(name: str, words: Sequence[str]) -> bool:
    if name == "find":
        return _find_deletes(words)
    if name != "rm":
        return False
    for word in words:
        if word.startswith("--") and len(word) > 2 and "--recursive".startswith(word):
            return True
        if word.startswith("-") and not word.startswith("--") and ("r" in word or "R" in word):
            return True
    return False


def _find_deletes(words: Sequence[str]) -> bool:
    """Return whether find deletes whole trees: it deletes, and one of its `-o` alternatives has no narrowing test."""
    runs_rm = any(word in FIND_RUNS and name_of(after) == "rm" for word, after in pairwise(words))
    if "-delete" not in words and not (runs_rm and _deletes_recursively("rm", words)):
        return False
    narrowed = False
    before = ""
    for word, after in pairwise((*words, "-o", "")):
        if word in ("-o", "-or", ","):
            if not narrowed:
                return True
            narrowed = False
        elif before in ("!", "-not") and word == "(":
            return True
        elif word in _FIND_NARROWS and before not in ("!", "-not") and after.strip("*/.?"):
            narrowed = True
        before = word
    return False


def _inspect_opaque(facet: Opaque, guarded: Sequence[str]) -> Finding | None:
    """Return a finding on text that was only loosely split into words. A folder may be followed by a pattern (`/*`)."""
    if re.search(_FORK_BOMB, facet.text):
        return _block("fork-bomb", "a fork bomb")
    places = {path.written: path for path in facet.paths}
    text_is_run = any(name_of(words[0]) in _RUNS_TEXT for words in facet.commands)
    for words in facet.commands:
        if name_of(words[0]) in _MENTIONS and not text_is_run:
            continue
        for position in _program_positions(words):
            rest = words[position:]
            operands = [places[form] for word in rest[1:] for form in (word, _tree(word)) if form in places]
            finding = _inspect_words(rest, operands, guarded) or _deletes_a_pattern(rest)
            if finding is not None:
                return finding
    return None


def _program_positions(words: Sequence[str]) -> list[int]:
    """Return the indexes at which a relevant program may begin: `rm` and `find` anywhere, others only after a wrapper.

    Only the first index of each name is returned, since its words include those after later ones.
    """
    first: dict[str, int] = {}
    for position, word in enumerate(words):
        name = name_of(word)
        if name in ("rm", "find") or (
            (name in _STOPS_THE_MACHINE or name in _DESTROYS_FILE_SYSTEMS or name.startswith("mkfs."))
            and (position == 0 or words[0] in _BEFORE_A_COMMAND)
        ):
            first.setdefault(name, position)
    return list(first.values())


def _tree(word: str) -> str:
    """Return the folder whose entire content `word` matches: `~` for `~/*`, `/` for `/*`, `.` for `./*`."""
    for ending in _WHOLE_TREE:
        if word.endswith(ending):
            return word[: -len(ending)] or "/"
    return word.rstrip("/") or word


def _deletes_a_pattern(words: Sequence[str]) -> Finding | None:
    if not _deletes_recursively(name_of(words[0]), words[1:]):
        return None
    for word in words[1:]:
        if _tree(word) in ("/", "~", ".", "*", "..", "~root"):
            return _block("delete-tree", f"a recursive delete of {word}")
    return None


def _inspect_path(path: PathAccess, guarded: Sequence[str]) -> Finding | None:
    writes = path.access is not Access.READ
    if writes and any(_is_within(path.real, guard) for guard in guarded):
        return _block(
            "own-files", f"{path.written} belongs to the policy or the action log in use; no call may write it"
        )
    if path.real in _HARMLESS_DEVICES:
        return None
    if (
        not writes and not path.tree and path.written.rstrip("/") in _MACHINE_FACTS
    ):  # only under this name, not through a link
        return None
    if path.real.startswith("/dev/") and re.match(_RAW_DEVICE, path.real):
        return _block("raw-devices", f"{path.written} is a raw device")
    if writes and re.match(_TERMINAL, path.real):
        return _block("terminals", f"{path.written} is a terminal: what is written there could pass for our own words")
    if writes and path.place is Place.INSIDE and any(_is_within(guard, path.real) for guard in guarded):
        return _confirm("own-files", f"{path.written} holds files of the policy or the action log in use")
    if path.place in (Place.OUTSIDE, Place.ABOVE) or (writes and path.place in (Place.OUTPUT, Place.ADDED)):
        closed = f"permission denied on the way to {path.written}, so that nobody can tell where it leads"
        return _confirm("outside", closed if path.closed else f"{path.written} lies outside the workspace")
    if not path.is_whole:
        return _confirm("large-tree", f"not every file below {path.written} could be looked at")
    return _inspect_write(path) if writes else None


def _inspect_write(path: PathAccess) -> Finding | None:
    for name in (*path.names, *path.below):
        if is_protected(name):
            protected = PROTECTED_NAMES.intersection(fold(name).split("/"))
            return _confirm("protected", f"{min(protected)} is executed or obeyed by other programs later")
    if path.access is Access.WRITE and any(map(_is_odd, path.names)):  # a word that may be a file may also be code
        return _confirm("odd-name", f"'{one_line(path.written)}' misleads: a blank at an end, or hidden characters")
    if path.shared:
        return _confirm("hard-link", f"{path.written} has further names, which a write changes too")
    return None


def _is_odd(name: str) -> bool:
    """Return whether a file name looks like another: a blank at an end, or a character that is only shown as an escape."""
    return one_line(name) != name or any(part != part.strip() for part in name.split("/"))


def names_protected(path: PathAccess) -> bool:
    """Return whether a path itself is protected, and not only a file below it."""
    return any(not PROTECTED_NAMES.isdisjoint(fold(name).split("/")) for name in path.names)


def _inspect_use(use: ToolUse, guarded: Sequence[str]) -> Finding | None:
    """Return a finding on the use of a tool that may write. Any argument may name the written file."""
    if use.unseen:
        return _confirm("unseen-tool", use.unseen)
    if use.writes_nothing:
        return None
    for argument in use.arguments:
        if not argument.name:
            return _confirm("protected", "it has more arguments than are looked at")
        for name in argument.names:
            if any(_may_be(name, guard) for guard in guarded):
                return _confirm("own-files", f"{name} may belong to the policy or the action log in use")
            if protected := PROTECTED_NAMES.intersection(fold(name).split("/")):
                return _confirm("protected", f"{min(protected)} is executed or obeyed by other programs later")
    return None


def _may_be(name: str, guard: str) -> bool:
    """Return whether `name` may be a guarded path or inside one. A relative name is relative to an unknown folder."""
    return _is_within(name, guard) if name.startswith("/") else fold(f"/{guard}").endswith(fold(f"/{name}"))


def _is_within(path: str, folder: str) -> bool:
    return is_within(fold(path), fold(folder))


def is_protected(name: str) -> bool:
    """Return whether other programs execute or obey the file `name` later."""
    return not PROTECTED_NAMES.isdisjoint(fold(name).split("/"))


def is_entry_name(name: str) -> bool:
    """Return whether a case-folded file name matches ENTRY_POINTS. False for PROTECTED_NAMES, which have their own check."""
    return (name in ENTRY_POINTS or _ENTRY_PATTERNS.match(name) is not None) and name not in PROTECTED_NAMES


def is_entry_point(path: str) -> bool:
    """Return whether build and test commands run or obey the file at `path` without naming it."""
    *folders, name = fold(path).split("/")
    # A folder with the name of a module is run by `python -m` instead of the module.
    is_module = name.endswith(".py") and not {"pytest", "unittest"}.isdisjoint(folders[-1:])
    return is_module or is_entry_name(name) or folders[-2:] == ["node_modules", ".bin"]  # programs that npm scripts run
