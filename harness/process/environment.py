"""The environment of a command: a short list of allowed names, so that no secret is passed on by mistake."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import lru_cache

from harness.actions import Effects
from harness.paths import is_within, is_within_any
from harness.programs.variables import PASSED

QUIET = (
    ("core.fsmonitor", "false"),
    ("safe.bareRepository", "explicit"),
)
"""Settings (git-config(1)) for every git: no file system monitor, and only explicitly named bare repositories."""
UNASKED = (
    *QUIET,
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.attributesFile", "/dev/null"),
)
"""Settings of a git command that ran without a question: no hooks, no pager, and no global file of attributes."""
OFFLINE = ("protocol.allow", "never")
"""Setting that forbids every transport, so that git fetches nothing."""
OFFLINE_VARIABLES = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
"""Variables that forbid every transport (git(1)), and the fetching of missing objects."""


def as_variables(settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the variables that apply these settings to every git command (git-config(1), GIT_CONFIG_COUNT)."""
    variables: dict[str, str] = {}
    number = 0
    for number, (key, value) in enumerate(settings, 1):
        variables |= {f"GIT_CONFIG_KEY_{number - 1}": key, f"GIT_CONFIG_VALUE_{number - 1}": value}
    return {"GIT_CONFIG_COUNT": str(number), **variables}


# No prompts, pagers, colours, or programs that a repository's configuration names.
_SET_VARIABLES = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "EDITOR": "true",
    "GIT_OPTIONAL_LOCKS": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    # Python uses stale bytecode if a file was edited within the same second and kept its length.
    "PYTHONDONTWRITEBYTECODE": "1",
    **as_variables(QUIET),
}


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a command: a few passed variables, and settings against prompts and pagers.

    Relative entries of PATH are dropped: with them, the current folder could decide which program `ls` is. TMPDIR is
    not passed on, since a command has its own temporary folder, or none.
    """
    passed = {name: value for name, value in environment.items() if name in PASSED and name != "TMPDIR"}
    folders = [folder for folder in environment.get("PATH", os.defpath).split(":") if folder.startswith("/")]
    return {**read_as_judged(passed), "PATH": ":".join(folders) or os.defpath, **_SET_VARIABLES}


def read_as_judged(variables: Mapping[str, str]) -> dict[str, str]:
    """Return variables under which bash parses a command line and sorts names just as the harness judged them."""
    result = dict(variables)
    if not _reads_bytes_alike(result):
        result["LC_ALL"] = "C.UTF-8"
    if result.get("LC_ALL"):
        result["LANG"] = result["LC_ALL"]
        result = {name: value for name, value in result.items() if not name.startswith("LC_")}
    result["LC_COLLATE"] = "C.UTF-8"  # the order of the words that a pattern expands to
    return result


def program_outside(root: str, name: str, variables: Mapping[str, str]) -> str | None:
    """Return the path of a program outside the folder `root`. `None` if there is none.

    `variables` is the output of `child_environment`, whose PATH is searched. A program inside `root` could be written
    by a command.
    """
    for folder in variables["PATH"].split(":"):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK) and not leads_through(path, root):
            return path
    return None


def leads_through(path: str, root: str) -> bool:
    """Return whether a path is in the folder `root`, leads there through links, or is a link in it."""
    real = os.path.realpath(root)
    link = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    return any(is_within(place, real) for place in (os.path.abspath(path), link, os.path.realpath(path)))


_SCREEN = ("TERM", "NO_COLOR", "PAGER", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "GIT_EDITOR", "EDITOR", "DEBIAN_FRONTEND")
"""Variables that are left out for a command with a terminal, where it may prompt, page and colour."""
_OF_THE_PERSON = ("TERM", "COLORTERM", "NO_COLOR", "PAGER", "GIT_PAGER", "LESS", "EDITOR", "VISUAL", "GIT_EDITOR")


def at_a_terminal(variables: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a command that has the user's terminal.

    `variables` is the environment of commands without a terminal, `environment` that of the user.
    """
    personal = {name: environment[name] for name in _OF_THE_PERSON if name in environment}
    return {**{name: value for name, value in variables.items() if name not in _SCREEN}, **personal}


def _reads_bytes_alike(variables: Mapping[str, str]) -> bool:
    """Return whether bash will parse a command line in UTF-8, the character set in which it was judged.

    In others (GBK, Shift-JIS) a byte may be a quote or a `|` to the harness, but half of a character to bash. In the C
    locale, `?` matches one byte.
    """
    locale = variables.get("LC_ALL") or variables.get("LC_CTYPE") or variables.get("LANG") or ""
    return locale.lower().replace("-", "").partition("@")[0].endswith(".utf8")


_UNASKED_GIT = (
    *UNASKED,
    ("log.showSignature", "false"),
    ("diff.ignoreSubmodules", "all"),
)
_READING_GIT = (("filter.lfs.process", ""), ("filter.lfs.clean", ""), ("filter.lfs.required", "false"))
"""Settings that turn git-lfs off. It copies every changed file that git compares, and fails if it may not write."""
_WITHOUT_NETWORK = {
    **OFFLINE_VARIABLES,
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "GOTOOLCHAIN": "local",
    "npm_config_update_notifier": "false",
}
"""Settings that keep reading programs from asking a server for updates and toolchains."""


def unasked_variables(effects: Effects, path: str, root: str) -> dict[str, str]:
    """Return additional variables for a command that ran without a question: no git hooks, pager or signatures.

    A command that writes, without the network, keeps its hooks, since walls confine them. A command without the network also
    gets a git without transports. A reader gets a git without git-lfs, and a PATH whose folders in the workspace `root`
    come last, so that an `ls` in the workspace is not run instead of the system's.
    """
    reads = effects.write == ()
    # A hook that another command wrote then gets no more permissions than this one.
    is_walled = not (effects.looks_only or effects.sockets or effects.reaches)
    git_settings = [setting for setting in _UNASKED_GIT if not is_walled or setting[0] != "core.hooksPath"]
    settings = (*git_settings, *(() if effects.reaches else (OFFLINE,)), *(_READING_GIT if reads else ()))
    variables = as_variables(settings)
    if not effects.reaches:
        variables |= _WITHOUT_NETWORK
    if reads:
        variables["PATH"] = path_without_surprise(path, root)
    return variables


_CACHE_VARIABLES = {"GOCACHE": "~/.cache/go-build", "UV_CACHE_DIR": "~/.cache/uv"}
"""Variables that set the place of a required cache, each with its default place."""


def cache_variables(effects: Effects, temporary: str) -> dict[str, str]:
    """Return the variables that move those caches that `effects` do not open to the folder `temporary` (absolute)."""
    return {
        name: f"{temporary}/{name.lower()}"
        for name, place in _CACHE_VARIABLES.items()
        if not is_within_any(place, effects.granted)
    }


def walled_variables() -> dict[str, str]:
    """Return additional variables for a command that writes, without the network, so that it does not wait for one."""
    return {
        "UV_OFFLINE": "1",
        "GOPROXY": "off",
        "CARGO_NET_OFFLINE": "true",
        "npm_config_offline": "true",
        "PIP_RETRIES": "0",
    }


def path_without_surprise(path: str, root: str) -> str:
    """Return a PATH whose folders in `root` come last, so that the system's `ls` is found before one in `root`."""
    below = root.rstrip("/") + "/"
    folders = [folder for folder in path.split(":") if folder.startswith("/")] or os.defpath.split(":")
    return ":".join(sorted(folders, key=lambda folder: f"{real_folder(folder)}/".startswith(below)))


def real_folder(path: str) -> str:
    """Return the folder of programs to which `path` (absolute) leads.

    A path without links is not resolved again: a program that can put a link into it can put other programs there too.
    """
    return path if _has_no_links(path) else os.path.realpath(path)


@lru_cache(maxsize=256)
def _has_no_links(path: str) -> bool:
    return os.path.realpath(path) == path
