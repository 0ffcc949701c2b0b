"""The names of programs that run programs, each in one place. What they do, their models say."""

from __future__ import annotations

from collections.abc import Container

SHELLS = frozenset(
    "ash bash busybox csh dash elvish fish ksh ksh93 mksh nu posh rbash rksh sh tcsh toybox xonsh yash zsh".split()
)
"""Programs that read command lines from their operands, a file or their input: what they are not plainly told is opaque."""

WRAPPERS = frozenset(
    # Builtins of shells.
    "! . builtin command coproc eval exec source time "
    # Of whom, how, where and for how long.
    "cgexec chpst chronic chroot chrt cpulimit daemonize doas eatmydata env faketime fakechroot fakeroot gosu i386 ifne "
    "ionice linux32 linux64 machinectl nice nohup nsenter numactl pkexec prlimit proot run0 runcon runuser schroot setarch "
    "setpriv setsid setuidgid sg softlimit start-stop-daemon stdbuf su su-exec sudo sudoedit systemd-inhibit "
    "systemd-nspawn systemd-run taskset timeout unshare x86_64 "
    # Under observation, on a terminal, in a display.
    "dbus-run-session expect gdb hyperfine lldb ltrace perf rlwrap rr screen script strace tmux unbuffer valgrind xvfb-run "
    # For many words, on a change, later.
    "at batch entr flock parallel pexec watch watchexec xargs "
    # Confined, or in a container.
    "bwrap docker dumb-init firejail podman tini "
    # With other networks or keys, or elsewhere.
    "proxychains proxychains4 rsh ssh ssh-agent sshpass torify torsocks tsocks "
    # From a registry of packages.
    "bunx npx pnpx uvx".split()
)
"""Programs (and builtins) that run the command, or the text of one, among their operands: a strict rule looks behind them."""

INTERPRETERS = SHELLS | frozenset(
    "ash awk bash bun busybox cmd csh dash deno doas ed emacs env ex expect fish gawk gdb java jshell julia ksh lua luajit "
    "m4 make mawk mksh mysql nawk node nodejs nvim osascript perl php psql pwsh pypy pypy3 python python2 python3 R rbash "
    "Rscript ruby sed sh sqlite3 ssh su sudo tclsh tcsh toybox ts-node tsx vi vim xargs yash zsh".split()
)
"""Programs that run what their operands say: an auto rule for one must fix the word after it."""

SUBCOMMAND_PROGRAMS = frozenset(
    "git hg svn jj gh glab npm pnpm yarn bun deno nerdctl kubectl helm terraform tofu pulumi vagrant ansible tox "
    "cargo rustup go dotnet pip pip3 pipx uv poetry pdm hatch conda mamba composer bundle gem apt apt-get dnf yum brew snap "
    "flatpak systemctl aws gcloud az nix".split()
)
"""Programs whose next word says what they do: some of those words install, publish or run things."""

READS_CODE = frozenset(
    "deno ed julia lua m4 mysql node nodejs osascript perl php psql pypy python ruby sqlite3 tclsh ts-node tsx".split()
)
"""Interpreters that, without a script, run what comes on standard input; shells are never understood that far."""

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
"""Beginnings of commands that precede the name of a program or a script."""

BUILDERS = frozenset("make gmake just task rake mvn mvnw gradle gradlew ninja ant sbt nox".split())
"""Programs of which each further word is one more target, task or goal: some of those publish or install."""

VERSIONED = frozenset(
    "clang clang++ clang-format clang-tidy cpp emacs expect g++ gcc gfortran java julia ksh lua luac luajit node nodejs perl "
    "php pip pypy pytest python ruby tclsh wish".split()
)
"""Programs that are installed under names with a version behind them (`python3.11`, `gcc-12`), and are the same."""

PLAIN_WRAPPERS = frozenset(
    "cd set export unset env timeout nice ionice nohup stdbuf time command builtin exec eval bash sh dash".split()
)
"""Wrappers, and builtins, that show nothing themselves while they run the command or change the shell."""

FIND_RUNS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
"""The words of find (POSIX.1-2024, GNU findutils 4.10) that begin a command."""


def name_of(word: str) -> str:
    """Return a program without its folder."""
    return word.rpartition("/")[2]


def unversioned(name: str) -> str:
    """Return a name without the version behind it: `python3.11` is python."""
    return name.rstrip("0123456789.-")


def is_one_of(word: str, programs: Container[str]) -> bool:
    """Return whether a word names one of these programs, in any folder and version: `/usr/bin/python3.11` is python."""
    name = name_of(word)
    return name in programs or unversioned(name) in programs
