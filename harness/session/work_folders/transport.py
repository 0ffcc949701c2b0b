"""Addresses of repositories, and the only git runner that may fetch from them: with the user's own keys, without prompts."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

from harness.errors import UsageError
from harness.session.work_folders.git_runner import Git

PROTOCOLS = ("file", "http", "https", "ssh")
"""Protocols that may be used to fetch a repository."""
FETCH_SECONDS = 3_600.0
"""Timeout of one fetch, in seconds."""

_HOST = r"(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]*)|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?"
_NAME = r"[A-Za-z0-9_][A-Za-z0-9._+-]*"
_HTTP = rf"{_HOST}(?:/[^?#]*)?"
_SSH = rf"(?:{_NAME}@)?{_HOST}/.+"
_SHORT_SSH = rf"(?:{_NAME}@)?(?:[A-Za-z0-9_][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]):[^:].*"
_KEYS_ELSEWHERE = (
    "leave it out: the keys are those of whoever fetches (an ssh key, a credential helper of their own git, ~/.netrc)"
)


def address_problem(address: str) -> str:
    """Return the reason why a text is not a valid address of a repository, or an empty string.

    An address is a path, `https://HOST/PATH` (`http`, `ssh` and `file` too), or `USER@HOST:PATH`. The text is not
    repeated, since it may hold a password.
    """
    if not address.isprintable() or address.strip() != address:
        return "must be one line, without blanks around it"
    if address.startswith("-"):
        return "must not begin with a dash"
    if re.match(r"[A-Za-z0-9+.-]*::", address):
        return f"names a program of its own for the transport; one of {', '.join(PROTOCOLS)} is possible"
    scheme, mark, rest = address.partition("://")
    if not mark or "/" in scheme:
        return _short_problem(address) if ":" in address.partition("/")[0] else ""
    if scheme not in PROTOCOLS:
        return f"must begin with one of {', '.join(f'{protocol}://' for protocol in PROTOCOLS)}, or be a path"
    if scheme == "file":
        return "" if rest.startswith("/") else "file:// is followed by an absolute path"
    before = rest.partition("/")[0]
    if "@" in before and (scheme != "ssh" or ":" in before.rpartition("@")[0]):
        return f"holds a name or a password before the host; {_KEYS_ELSEWHERE}"
    if scheme != "ssh" and re.search("[?#]", rest):
        return f"holds a `?` or `#`, behind which a key may stand; {_KEYS_ELSEWHERE}"
    return "" if re.fullmatch(_SSH if scheme == "ssh" else _HTTP, rest) else "names no host that can be read"


def _short_problem(address: str) -> str:
    if re.match("[^/@]*:[^/@]*@", address):
        return f"holds a password before the host; {_KEYS_ELSEWHERE}"
    return "" if re.fullmatch(_SHORT_SSH, address) else "names no host that can be read"


def local_path(address: str) -> str | None:
    """Return the path of a repository on this machine (absolute, links followed), or `None` for one elsewhere.

    A relative path is resolved from the current folder. Raises UsageError for an invalid address (see
    `address_problem`).
    """
    if problem := address_problem(address):
        raise UsageError(f"repo: {problem}")
    if address.startswith("file://"):
        return os.path.realpath(os.fsdecode(unquote_to_bytes(address.removeprefix("file://"))))
    return None if ":" in address.partition("/")[0] else os.path.realpath(address)


# git-config(1). Only these protocols. Fetched objects are checked, except for old mistakes in author lines, which occur in
# well-known histories and which GitHub accepts too. Submodules and bundle URIs are not fetched; stalled transfers time out.
_SETTINGS = (
    ("protocol.allow", "never"),
    *((f"protocol.{name}.allow", "always") for name in PROTOCOLS),
    ("protocol.ext.allow", "never"),
    ("transfer.fsckObjects", "true"),
    ("fetch.fsckObjects", "true"),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.writeCommitGraph", "false"),
    ("transfer.bundleURI", "false"),
    ("http.lowSpeedLimit", "100"),
    ("http.lowSpeedTime", "300"),
    ("core.askPass", ""),
    ("credential.interactive", "false"),
)
LET_PASS = (
    "badTimezone", "badDate", "badEmail", "badName", "missingEmail", "missingSpaceBeforeDate", "missingSpaceBeforeEmail",
    "missingNameBeforeEmail", "zeroPaddedDate", "zeroPaddedFilemode",
)  # fmt: skip
"""Harmless mistakes (git-fsck(1)) that occur in old histories."""
_VARIABLES = {
    "GIT_ALLOW_PROTOCOL": ":".join(PROTOCOLS),
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
}
_OF_THE_PERSON = (
    "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "KRB5CCNAME", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH", "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
)  # fmt: skip
"""Environment variables for the user's keys and network. Only FetchingGit gets them, no other git and no command."""
_SSH_OPTIONS = "-oBatchMode=yes -oConnectTimeout=60 -oServerAliveInterval=60"


class FetchingGit(Git):
    """Git that may fetch. It uses the user's own keys, never keys named by a repository or contained in an address."""

    seconds = FETCH_SECONDS

    def __init__(self, environment: Mapping[str, str], *, folder: str) -> None:
        """Prepare git with the program's environment, for commands in `folder`. Raises UsageError without git."""
        super().__init__(environment, folder=folder)
        self._passed |= {name: environment[name] for name in _OF_THE_PERSON if name in environment}
        self._settings += [*_SETTINGS, *((f"fetch.fsck.{name}", "ignore") for name in LET_PASS)]
        # The variable overrides `core.sshCommand`, also in a repository on this machine that we fetch from.
        output = Git(environment, folder="/").run(["config", "--global", "--get", "core.sshCommand"], fine=(0, 1, 128))
        ssh_command = output.decode("utf-8", "surrogateescape").strip() or "ssh"
        self._variables = {**_VARIABLES, "GIT_SSH_COMMAND": f"{ssh_command} {_SSH_OPTIONS}"}
