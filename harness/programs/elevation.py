"""Wrappers that run a command as another user, in another place, or beyond the control of harness: sudo, su, setsid.

Their act is `CHANGES` for any command. The inner command is still listed, so that strict rules can match it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.actions import Access, Act
from harness.programs.options import parse_words
from harness.programs.program import Found, Inner, Parsed, PathUse, Program, Style, Unknown, Use, gap
from harness.programs.shared import with_command, with_text_for_sh, wraps
from harness.record import replace

_UTIL_LINUX = "-V|--version:info -h|--help:info "

_SUDO = Program(
    style=Style.POSIX,
    options="-u|--user=TEXT -g|--group=TEXT -p|--prompt=TEXT -C|--close-from=TEXT -D|--chdir=TEXT -T|--command-timeout=TEXT "
    "-U|--other-user=TEXT -b|--background -B|--bell -E --preserve-env[=TEXT] -H|--set-home -k|--reset-timestamp "
    "-K|--remove-timestamp -l|--list -n|--non-interactive -N|--no-update -P|--preserve-groups -S|--stdin -v|--validate",
    operands="TEXT...",
)
"""sudo(8) 1.9. Left out: -i and -s (a shell), -e (an editor), -h (another host), -R (another root), -A, -r, -t."""


def _sudo(argv: Sequence[str]) -> Use:
    """Read the words of sudo. `VAR=value` may occur between options, up to `--` (sudo, parse_args.c)."""
    if len(argv) == 2 and argv[1] in ("-V", "--version", "--help"):
        return Use(act=Act.LOOKS)
    words = tuple(argv[1:])
    variables: list[str] = []
    folders: tuple[str, ...] = ()
    while True:
        parsed = parse_words(_SUDO, (argv[0], *words))
        if isinstance(parsed, str):
            return gap(parsed)
        folders += parsed.values("-D")
        rest = parsed.operands
        has_end_mark = words[: len(words) - len(rest)][-1:] == ("--",)
        names = [] if has_end_mark else _assignments(rest)
        variables += names
        words = rest[len(names) :]
        if not has_end_mark and words and _looks_like_assignment(words[0]):
            return gap(f"{words[0]} sets a variable whose name is not plain")
        if not names or not words or not words[0].startswith("-"):
            break
    if not words:
        alone = parsed.has("-l", "-v", "-k", "-K") and not variables
        return Use(act=Act.CHANGES) if alone else gap("sudo without a command")
    if len(folders) > 1 or any(isinstance(folder, Unknown | Found) for folder in folders):
        return gap("the folder that it runs in is not known")
    if isinstance(words[0], Unknown | Found):
        return gap(f"the command {words[0]} is not known")
    inner = Inner(argv=words, variables=tuple(variables), folder="".join(folders))
    paths = tuple(PathUse(word=folder, access=Access.READ) for folder in folders)
    return Use(act=Act.CHANGES, paths=paths, commands=(inner,))


def _looks_like_assignment(word: str) -> bool:
    """Return whether sudo reads the word as an assignment: it has a `=`, and starts with neither `/` nor `-`."""
    return "=" in word and not word.startswith(("/", "-"))


def _assignments(words: Sequence[str]) -> list[str]:
    """Return the names of the variables that the first words set."""
    names: list[str] = []
    for word in words:
        text = word.prefix if isinstance(word, Unknown) else word
        name, equals, _ = text.partition("=")
        if not equals or isinstance(word, Found) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            break
        names.append(name)
    return names


def _runuser(parsed: Parsed, use: Use) -> Use:
    """Refine `runuser`. With -u the operands are the command, else they are those of su."""
    if not parsed.has("-u"):
        return _su(parsed, use)
    words = parsed.operands
    if not words or use.scripts or isinstance(words[0], Unknown | Found):
        return gap("the command that runuser runs is not known")
    return replace(use, commands=(Inner(argv=words),))


def _su(parsed: Parsed, use: Use) -> Use:
    """Refine `su`. The login shell of the target user runs the text.

    A lone `-` starts it in that user's home folder, which is unknown, and is a gap.
    """
    if len(parsed.operands) > 1 or parsed.operands[:1] == ("-",):
        return gap("a login shell, or words for one")
    return with_text_for_sh(parsed, use)


def _chroot(parsed: Parsed, use: Use) -> Use:
    if not use.commands:
        return gap(f"{parsed.program} without a command")
    return replace(use, commands=(replace(use.commands[0], folder=parsed.operands[0]),))


def _unshare(parsed: Parsed, use: Use) -> Use:
    """Refine `unshare`. More than one -w is a gap; unshare uses the last."""
    return with_command(parsed, use) if len(parsed.values("-w")) < 2 else gap("more than one folder to run it in")


def _systemd_run(parsed: Parsed, use: Use) -> Use:
    """Refine `systemd-run`. Only --scope runs the words unchanged in the same folder; a service starts elsewhere."""
    return with_command(parsed, use) if parsed.has("--scope") else gap("systemd-run without --scope")


def _busybox(argv: Sequence[str]) -> Use:
    """Read `busybox APPLET`. Only the name of an applet counts, as its options differ from the program of that name."""
    if len(argv) == 1 or (len(argv) == 2 and argv[1] in ("--help", "--list")):
        return Use(act=Act.LOOKS)
    if isinstance(argv[1], Unknown | Found) or argv[1].startswith("-"):
        return gap(f"the option {argv[1]} is not in its model")
    return Use(act=Act.CHANGES, commands=(Inner(argv=tuple(argv[1:])),))


_SU = (
    _UTIL_LINUX
    + "-c|--command|--session-command=SHELL -m|-p|--preserve-environment -f|--fast -P|--pty -g|--group=TEXT "
    "-G|--supp-group=TEXT -w|--whitelist-environment=TEXT"
)
_BUSYBOX = Program(read=_busybox)

PROGRAMS = {
    "sudo": Program(read=_sudo),
    "doas": wraps("-n -u=TEXT -a=TEXT -L", act=Act.CHANGES),
    "su": Program(act=Act.CHANGES, options=_SU, operands="TEXT...", refine=_su),
    "runuser": Program(act=Act.CHANGES, options=_SU + " -u|--user=TEXT", operands="TEXT...", refine=_runuser),
    "pkexec": wraps(  # without --keep-cwd, it runs in the home folder of the other user
        "--version:info --help:info --user=TEXT --keep-cwd --disable-internal-agent",
        act=Act.CHANGES,
        refine=lambda parsed, use: with_command(parsed, use) if parsed.has("--keep-cwd") else gap("in another folder"),
    ),
    "chroot": wraps(
        "--version:info --help:info --userspec=TEXT --groups=TEXT --skip-chdir",
        "EITHER_TREE COMMAND...",
        act=Act.CHANGES,
        refine=_chroot,
    ),
    "unshare": wraps(
        _UTIL_LINUX + "-m|--mount -u|--uts -i|--ipc -n|--net -p|--pid -U|--user -C|--cgroup -T|--time -f|--fork "
        "-r|--map-root-user -c|--map-current-user --map-auto --mount-proc --kill-child -w|--wd=FOLDER",
        act=Act.CHANGES,
        refine=_unshare,
    ),
    "setsid": wraps(  # starts a new session, which does not end with the process group of the command line
        _UTIL_LINUX + "-c|--ctty -f|--fork -w|--wait", act=Act.CHANGES
    ),
    "systemd-run": wraps(
        "--version:info --help:info -h:info --user --scope -q|--quiet -G|--collect -d|--same-dir -u|--unit=TEXT --slice=TEXT "
        "--description=TEXT -E|--setenv=VARIABLE --nice=TEXT",
        act=Act.CHANGES,
        refine=_systemd_run,
    ),
    "ssh-agent": wraps("-s -c -k -d -D -a=WRITE -t=TEXT -E=TEXT", act=Act.CHANGES, refine=lambda _parsed, use: use),
    "dbus-run-session": wraps("--version:info --help:info", act=Act.CHANGES),
    "xvfb-run": wraps(
        "-h|--help:info -a|--auto-servernum -n|--server-num=TEXT -e|--error-file=WRITE -f|--auth-file=WRITE "
        "-p|--xauth-protocol=TEXT -w|--wait=TEXT",
        act=Act.CHANGES,
    ),
    "fakeroot": wraps(
        "-v|--version:info -h|--help:info -s=WRITE -i=READ -u|--unknown-is-real -b=TEXT", act=Act.CHANGES
    ),
    "busybox": _BUSYBOX,
    "toybox": replace(_BUSYBOX),
}
