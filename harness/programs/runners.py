"""Lists of programs that run other programs. Their effects are described in their models."""

from __future__ import annotations

from collections.abc import Container, Sequence

SHELLS = frozenset(
    "ash bash busybox csh dash elvish fish ksh ksh93 mksh nu posh rbash rksh sh tcsh toybox xonsh yash zsh".split()
)
"""Programs that read command lines from their operands, a file or their input.

Text not given in an operand is opaque.
"""

WRAPPERS = frozenset(
    # Builtins of shells.
    "! . builtin command coproc eval exec source time "
    # Programs that set the user, the priority, the machine type, the folder or a time limit.
    "cgexec chpst chronic chroot chrt cpulimit daemonize doas eatmydata env faketime fakechroot fakeroot gosu i386 ifne "
    "ionice linux32 linux64 machinectl nice nohup nsenter numactl pkexec prlimit proot run0 runcon runuser schroot setarch "
    "setpriv setsid setuidgid sg softlimit start-stop-daemon stdbuf su su-exec sudo sudoedit systemd-inhibit "
    "systemd-nspawn systemd-run taskset timeout unshare x86_64 "
    # Tracers and debuggers, and programs that provide a terminal, a bus or a display.
    "dbus-run-session expect gdb hyperfine lldb ltrace perf rlwrap rr screen script strace tmux unbuffer valgrind xvfb-run "
    # Programs that run a command for many words, on a change, under a lock, or later.
    "at batch entr flock parallel pexec watch watchexec xargs "
    # Sandboxes and containers.
    "bwrap docker dumb-init firejail podman tini "
    # Programs that set a proxy or keys, or run the command on another machine.
    "proxychains proxychains4 rsh ssh ssh-agent sshpass torify torsocks tsocks "
    # Programs that fetch the command from a registry of packages.
    "bunx npx pnpx uvx".split()
)
"""Programs and builtins that run a command, or the text of one, in their operands.

Strict rules also match that command.
"""

INTERPRETERS = SHELLS | frozenset(
    "ash awk bash bun busybox cmd csh dash deno doas ed emacs env ex expect fish gawk gdb java jshell julia ksh lua luajit "
    "m4 make mawk mksh mysql nawk node nodejs nvim osascript perl php psql pwsh pypy pypy3 python python2 python3 R rbash "
    "Rscript ruby sed sh sqlite3 ssh su sudo tclsh tcsh toybox ts-node tsx vi vim xargs yash zsh".split()
)
"""Programs that run code or commands in their operands. An auto rule for one must also name the next word."""

SUBCOMMAND_PROGRAMS = frozenset(
    "git hg svn jj gh glab npm pnpm yarn bun deno nerdctl kubectl helm terraform tofu pulumi vagrant ansible tox "
    "cargo rustup go dotnet pip pip3 pipx uv poetry pdm hatch conda mamba composer bundle gem apt apt-get dnf yum brew snap "
    "flatpak systemctl aws gcloud az nix".split()
)
"""Programs whose next word is a subcommand. Some subcommands install, publish or run something."""

READS_CODE = frozenset(
    "deno ed julia lua m4 mysql node nodejs osascript perl php psql pypy python ruby sqlite3 tclsh ts-node tsx".split()
)
"""Interpreters that run code from stdin if they get no script. Does not include shells."""

RUNNING_WORDS = frozenset(
    tuple(words.split())
    for words in (
        "pipx run", "uv run", "uv tool run", "poetry run", "pdm run", "hatch run", "conda run",
        "npm run", "npm run-script", "pnpm run", "yarn run", "tox exec",
        "npm exec", "npm x", "pnpm exec", "pnpm dlx", "yarn exec", "yarn dlx", "bun run", "bun x", "deno run", "deno eval",
        "bundle exec", "go run", "nerdctl run", "nerdctl exec", "kubectl exec", "nix run",
        "mise exec", "direnv exec", "git bisect run", "git submodule foreach",
    )
)  # fmt: skip
"""First words of commands that run the program or script in the next word."""

BUILDERS = frozenset("make gmake just task rake mvn mvnw gradle gradlew ninja ant sbt nox".split())
"""Programs that take any number of targets, tasks or goals as words. Some of those publish or install something."""

VERSIONED = frozenset(
    "clang clang++ clang-format clang-tidy cpp emacs expect g++ gcc gfortran java julia ksh lua luac luajit node nodejs perl "
    "php pip pypy pytest python ruby tclsh wish".split()
)
"""Programs that are also installed under names with a version (`python3.11`, `gcc-12`)."""

PLAIN_WRAPPERS = frozenset(
    "cd set export unset env timeout nice ionice nohup stdbuf time command builtin exec eval bash sh dash".split()
)
"""Wrappers and builtins without output of their own. They run a command or change the shell."""

_VALUED = frozenset(
    "-C -c --git-dir --work-tree --namespace --config-env --exec-path --attr-source --shallow-file --super-prefix -R "
    "--repository --repo --cwd --config --config-file --config-toml --at-op --at-operation --color --pager --encoding "
    "--encodingmode".split()
)
"""Global options of git, hg and jj with their value in the next word."""

FIND_RUNS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
"""Words of find that start a command (POSIX.1-2024, GNU findutils 4.10)."""


def name_of(word: str) -> str:
    """Return the name of a program without its folder."""
    return word.rpartition("/")[2]


def unversioned(name: str) -> str:
    """Return a name without the version at its end: `python` for `python3.11`."""
    return name.rstrip("0123456789.-")


def is_one_of(word: str, programs: Container[str]) -> bool:
    """Return whether a word names one of these programs. Folder and version are ignored (`/usr/bin/python3.11`)."""
    name = name_of(word)
    return name in programs or unversioned(name) in programs


def from_subcommand(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command of git, hg or jj from its subcommand on, without the global options."""
    place = 1
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] in _VALUED else 1
    return tuple(words[place:])
