"""Names of environment variables: those that commands get, those that make programs run code, and harmless ones.

`prints_environment` tells the commands that print the values of all.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.regex import regex

PASSED = frozenset(
    "HOME USER LOGNAME SHELL TZ TMPDIR LANG LC_ALL LC_ADDRESS LC_COLLATE LC_CTYPE LC_IDENTIFICATION LC_MEASUREMENT "
    "LC_MESSAGES LC_MONETARY LC_NAME LC_NUMERIC LC_PAPER LC_TELEPHONE LC_TIME".split()
)
"""Variables that a command gets from the environment of harness, in addition to PATH.

The list is fixed, so that a command never gets a key.
"""

SET = frozenset(
    "TERM NO_COLOR PAGER GIT_PAGER GIT_TERMINAL_PROMPT GIT_EDITOR EDITOR GIT_OPTIONAL_LOCKS DEBIAN_FRONTEND "
    "PYTHONDONTWRITEBYTECODE GIT_CONFIG_COUNT".split()
)
"""Variables that the harness sets for every command (process/environment.py; a test compares the two)."""

HARMLESS = frozenset(
    "CI NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE TERM COLUMNS LINES TZ LANG LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES "
    "LC_NUMERIC LC_TIME".split()
)
"""Variables that cannot make a reading program write or run anything. They select colours, widths, languages, times.

INVARIANT: no program takes a path or a program from one of them. (TZ=:FILE reads a file of time zones, and prints
none.)
"""

STEERING = frozenset(
    "BASH_ENV BROWSER CARGO_BUILD_RUSTC CDPATH EDITOR ENV GCONV_PATH GIT_ASKPASS GIT_CONFIG GIT_CONFIG_COUNT "
    "GIT_DIR GIT_EDITOR GIT_EXTERNAL_DIFF GIT_PAGER GIT_PROXY_COMMAND GIT_SSH GIT_SSH_COMMAND GOFLAGS HOME IFS "
    "JAVA_TOOL_OPTIONS LD_AUDIT LD_LIBRARY_PATH LD_PRELOAD LESSCLOSE LESSOPEN MAKEFLAGS MANPAGER "
    "NODE_EXTRA_CA_CERTS NODE_OPTIONS NODE_PATH PAGER PATH PERL5DB PERL5LIB PERL5OPT PROMPT_COMMAND PS4 "
    "PYTEST_ADDOPTS PYTEST_PLUGINS PYTHONHOME PYTHONPATH PYTHONSTARTUP PYTHONWARNINGS RIPGREP_CONFIG_PATH RUBYLIB "
    "RUBYOPT RUSTC RUSTC_WRAPPER RUSTFLAGS SHELL SHELLOPTS TAR_OPTIONS VISUAL XDG_CONFIG_HOME".split()
)
"""Variables that make a harmless program run something else. No auto rule may list them."""

_STEERING_PREFIXES = ("LD_", "DYLD_", "GIT_", "npm_config_", "BASH_FUNC_")

_THE_SHELL_READS = frozenset(
    "PATH IFS HOME PWD OLDPWD CDPATH ENV BASHOPTS SHELLOPTS GLOBIGNORE POSIXLY_CORRECT PS4 PROMPT_COMMAND OPTIND OPTARG "
    "RANDOM SECONDS SRANDOM UID EUID PPID EXECIGNORE FIGNORE FUNCNEST IGNOREEOF INPUTRC TIMEFORMAT LINENO GROUPS DIRSTACK "
    "FUNCNAME PIPESTATUS REPLY MAPFILE COPROC histchars TMOUT auto_resume LANG _ EPOCHSECONDS EPOCHREALTIME".split()
)


def steers(name: str) -> bool:
    """Return whether a variable may make some program run something else."""
    return name in STEERING or name.startswith(_STEERING_PREFIXES)


def changes_the_shell(name: str) -> bool:
    """Return whether bash itself reads a variable (bash(1)). Setting it may change how bash runs the rest of a line."""
    return name in _THE_SHELL_READS or name.startswith(("BASH", "LC_", "LD_", "HIST", "COMP_", "READLINE_"))


_OF_THE_MACHINE = frozenset("HOSTNAME HOSTTYPE MACHTYPE OSTYPE SHLVL".split())


def is_public(name: str) -> bool:
    """Return whether a variable holds no secret: every command gets it, or bash sets it, or it selects colours and the
    like. A special parameter (`?`) is public too.
    """
    is_listed = name in PASSED or name in SET or name in HARMLESS or name in _OF_THE_MACHINE
    return is_listed or changes_the_shell(name) or not name.isidentifier()


_JQ_ENVIRONMENT = regex(r"\benv\b|\$ENV\b")
_AWKS = ("awk", "gawk", "mawk", "nawk", "original-awk")


def prints_environment(program: str, argv: Sequence[str]) -> bool:
    """Return whether a command that only looks may print environment variables that are not public.

    `argv` runs no other command.
    """
    words = argv[1:]
    if program == "printenv":
        names = [word for word in words if not word.startswith("-")]
        return not names or not all(name.isidentifier() and is_public(name) for name in names)
    if program == "env":
        return list(words) not in (["--version"], ["--help"])
    if program == "jq":
        return any(map(_JQ_ENVIRONMENT.search, words))
    return program in _AWKS and any("ENVIRON" in word for word in words)
