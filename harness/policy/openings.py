"""Openings: the hosts, the sockets and the protected places that a command needs, by its words. Pure tables.

A command with the workspace walls has none of them. A question names those that its command needs, and a yes opens them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.actions import Act, Command, Facet, Opaque, ToolUse
from harness.policy.git_data import places_of_git, sets_config
from harness.policy.granted_programs import fetches
from harness.policy.hosts import USUAL_PORTS, Reach, canonical_host, host_patterns, shown_host, split_port
from harness.programs.runners import from_subcommand, is_one_of, name_of
from harness.regex import regex

_PYTHON = "pypi.org files.pythonhosted.org"
_NODE = "*.npmjs.org *.yarnpkg.com"
_CRATES = "index.crates.io static.crates.io crates.io"
_GO = "proxy.golang.org sum.golang.org"
_GEMS = "rubygems.org index.rubygems.org"
_REGISTRIES: Mapping[str, str] = {
    **dict.fromkeys("pip pip3 pipx uv uvx poetry pdm pipenv hatch flit twine".split(), _PYTHON),
    **dict.fromkeys("npm npx pnpm pnpx yarn bun bunx".split(), _NODE),
    **dict.fromkeys("gem bundle bundler".split(), _GEMS),
    "cargo": _CRATES,
    "go": _GO,
    "rustup": "static.rust-lang.org",
    "composer": "repo.packagist.org packagist.org api.github.com codeload.github.com github.com",
    "dotnet": "api.nuget.org",
    "mix": "repo.hex.pm hex.pm builds.hex.pm",
}
"""Package managers, each with the hosts of its index. They obey the variables of a proxy."""
_FETCHES = frozenset(
    tuple(line.split())
    for line in (
        "uvx;uv tool;uv python;pip wheel;poetry add;poetry lock;pdm add;pdm sync;pdm lock;npm add;npm view;npm create;"
        "cargo vendor;cargo generate-lockfile;go mod download;go mod tidy;go mod vendor;composer require;bundle add;"
        "bundle lock;rustup toolchain;rustup target;rustup component;dotnet restore;mix deps.get"
    ).split(";")
)
"""Further beginnings of commands that fetch packages (see granted_programs.needs_network)."""
_FROM_REGISTRY = frozenset(("npx", "pnpx", "bunx"))
_FRESH = frozenset(("-y", "--yes", "-p", "--package"))
"""Options with which the programs of `_FROM_REGISTRY` fetch a package unasked."""
_UPLOADS = frozenset(("publish", "upload", "push"))
_UPLOAD_HOSTS = {_PYTHON: "upload.pypi.org"}
_BUILDS_ONLINE = frozenset(("mvn", "mvnw", "gradle", "gradlew", "sbt"))
"""Build tools that fetch while they build and do not know a proxy by its variables."""
_OFFLINE = frozenset(("-o", "--offline"))
_DOWNLOADS = frozenset("curl wget http https xh aria2c yt-dlp".split())
"""Programs that reach the hosts of the addresses among their words."""
_ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "github.com": (
        "codeload.github.com",
        "objects.githubusercontent.com",
        "release-assets.githubusercontent.com",
        "raw.githubusercontent.com",
    )
}
"""Hosts that another host sends a download to."""
_GITHUB = ("github.com", "api.github.com", "uploads.github.com")
ONLINE = frozenset(
    "ssh scp sftp ftp telnet nc ncat netcat ping dig nslookup host glab apt apt-get dnf yum apk brew snap flatpak".split()
)
"""Programs of which nearly each command needs a network, whose hosts are unknown."""
_REACHES = ONLINE | frozenset(
    "traceroute mtr whois aws gcloud az kubectl helm terraform tofu pulumi ansible ansible-playbook psql pg_dump mysql "
    "mysqldump redis-cli mongosh aptitude conda mamba micromamba vercel netlify heroku fly flyctl firebase wrangler".split()
)
"""Programs that do little without a network, whose hosts are unknown."""
_DAEMONS: Mapping[str, str] = {
    **dict.fromkeys("docker docker-compose docker-buildx compose".split(), "docker"),
    **dict.fromkeys("podman podman-compose nerdctl buildah".split(), "the container engine"),
    **dict.fromkeys("systemctl loginctl hostnamectl timedatectl".split(), "systemd"),
    **dict.fromkeys(("ssh-add",), "the agent with your keys"),
}
"""Programs that do nothing without a Unix socket of another program, each with its name for people."""
_LOCAL_DAEMON = frozenset(("docker", "docker-compose", "docker-buildx", "compose"))
"""Programs of `_DAEMONS` that leave the network to their daemon."""

_GIT_TALKS = frozenset("push fetch pull clone ls-remote submodule lfs svn send-email fetch-pack send-pack".split())
_INSTALLS = frozenset("pip pip3 uv poetry pdm pipenv".split())
_CHANGES_VENV = frozenset("install uninstall sync add remove lock update upgrade venv".split())
"""Subcommands of the programs in `_INSTALLS` that change the virtual environment."""
_HOOK_WORDS = frozenset(
    (("pre-commit", "install"), ("pre-commit", "uninstall"), ("lefthook", "install"), ("husky",), ("husky", "install"))
)
_GIT_PROGRAMS = ("--receive-pack", "--upload-pack", "--exec")
"""Options of git that name a program to run on the other side of a connection."""
_GIT_PROGRAM_LETTER = frozenset(("clone", "ls-remote", "fetch-pack"))
"""Subcommands of git with `-u` as the short form of `--upload-pack`."""
_BUILDS_FOLDERS = frozenset("pip pip3 pipx uv poetry pdm npm pnpm yarn bun gem cargo".split())
"""Package managers that build a package from a folder among their words."""

_ADDRESS = regex(r"(?:git\+)?(https?|git|ssh|ftps?|file|svn|rsync)(?:\+ssh)?://([^/?#\s]*)")
_LIKE_SCP = regex(r"[\w.-]+@[\w.-]+:")


def reach_of(part: Facet) -> Reach:
    """Return the hosts that a part of a call is known to need. `None`: the network, with unknown hosts."""
    match part:
        case Command():
            return _joined(_reach_of_words(words, part) for words in words_of(part))
        case Opaque():
            return _joined(_reach_of_words(words, None) for words in words_of(part))
        case ToolUse():
            return None
        case _:
            return ()


def socket_of(part: Facet) -> str:
    """Return a description of the Unix socket that a part of a call needs. Empty if it needs none."""
    if isinstance(part, Command) and part.needs and not part.network:
        return part.needs.removeprefix("the socket of ")
    daemons = (_DAEMONS.get(name_of(words[0]), "") for words in words_of(part))
    return next(filter(None, daemons), "")


def places_of(part: Facet) -> Iterator[str]:
    """Yield the names of protected places that the command itself maintains, such as git its configuration."""
    for words in words_of(part):
        name = name_of(words[0])
        if name == "git":
            yield from places_of_git(from_subcommand(words))
        elif (
            (name in _INSTALLS and not _CHANGES_VENV.isdisjoint(words[1:3]))
            or name == "virtualenv"
            or words[1:3] == ("-m", "venv")
        ):
            yield ".venv"
        elif name == "yarn":
            yield ".yarn"


def hooks_of(part: Facet) -> Iterator[str]:
    """Yield the names of places in which the command installs programs, such as hooks. Only a user can open them."""
    for words in words_of(part):
        plain_words = from_subcommand(words)[:2] if name_of(words[0]) == "git" else words[:2]
        if plain_words[:1] == ("config",) and name_of(words[0]) == "git" and sets_config(from_subcommand(words)[1:]):
            yield ".git/config"
        if plain_words[:2] == ("lfs", "install"):
            yield from (".git/hooks", ".git/config")
        elif (name_of(words[0]), *words[1:2]) in _HOOK_WORDS:
            yield from (".git/hooks", ".git/config", ".husky")


def runs_repository_code(command: Command) -> bool:
    """Return whether a command that fetches would also run a program of the repository that its words name.

    That is a package built from a folder, a repository in a folder, or a program for git to run.
    """
    for words in words_of(command):
        name = name_of(words[0])
        if name == "git":
            subcommand, *rest = from_subcommand(words) or ("",)
            names_program = any(_is_git_program(word) for word in rest)
            has_letter = subcommand in _GIT_PROGRAM_LETTER and any(word.startswith("-u") for word in rest)
            if names_program or has_letter or (subcommand in _GIT_TALKS and any(map(_is_folder, rest))):
                return True
        elif name in _BUILDS_FOLDERS and any(map(_is_folder, words[2:])):
            return True
    return False


def _is_git_program(word: str) -> bool:
    """Return whether a word is an option of `_GIT_PROGRAMS`, which git also knows by its beginning."""
    option = word.partition("=")[0]
    return len(option) > 2 and any(name.startswith(option) for name in _GIT_PROGRAMS)


def _is_folder(word: str) -> bool:
    """Return whether a word names a folder, or lets a package manager work on one in place."""
    path = word.partition("[")[0].removeprefix("file:")
    return path in (".", "..") or path.startswith(("./", "../", "/", "~/", "//")) or word in ("-e", "--editable")


def words_of(part: Facet) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command of a part, the outermost first. `python -m pip` counts as `pip`.

    Left out is a command that is known to use files only.
    """
    lines: Sequence[tuple[str, ...]] = ()
    if isinstance(part, Command):
        stays = part.act in (Act.LOOKS, Act.WRAPS, Act.WRITES) and not (part.network or part.needs)
        lines = part.run_by if stays else (*part.run_by, part.argv)
    elif isinstance(part, Opaque) and part.given_to is None:
        lines = part.commands
    for words in lines:
        if words:
            is_module = (
                words[1:2] == ("-m",) and len(words) > 2 and is_one_of(words[0], frozenset(("python", "python3")))
            )
            yield words[2:] if is_module and words[2] in _REGISTRIES else words


def _reach_of_words(words: tuple[str, ...], command: Command | None) -> Reach:
    name = name_of(words[0])
    if name == "git":
        return _reach_of_git(from_subcommand(words), command)
    if name in _LOCAL_DAEMON:
        return ()
    if name in _REGISTRIES:
        return _reach_of_registry(name, words, command)
    if name in _DOWNLOADS:
        hosts = _hosts_in(words[1:]) or ()
        return tuple(dict.fromkeys(name for host in hosts for name in (host, *_ELSEWHERE.get(host, ())))) or None
    if name == "gh":
        return _GITHUB
    if name in _BUILDS_ONLINE:
        return () if not _OFFLINE.isdisjoint(words) else None
    if name in _REACHES:
        return None
    is_itself = command is not None and words == command.argv
    return None if is_itself and command is not None and _is_online(command) else ()


def _is_online(command: Command) -> bool:
    """Return whether a command is known to use the network, and does not only run code that may."""
    return command.network and command.act not in (Act.RUNS, Act.UNKNOWN)


def _reach_of_registry(name: str, words: tuple[str, ...], command: Command | None) -> Reach:
    index = _REGISTRIES[name]
    rest = words[2:] if words[:2] == ("uv", "pip") else words[1:]
    if not (
        (fetches((name, *rest)) and (rest or name in ("yarn", "bundle")))
        or (name, *rest[:1]) in _FETCHES
        or (name, *rest[:2]) in _FETCHES
        or (name in _FROM_REGISTRY and not _FRESH.isdisjoint(rest))
        or (command is not None and _is_online(command))
    ):
        return ()
    hosts = index.split()
    if not _UPLOADS.isdisjoint(rest[:1]):
        hosts += _UPLOAD_HOSTS.get(index, "").split()
    named_hosts = _hosts_in(rest)
    return None if named_hosts is None else tuple(dict.fromkeys((*hosts, *named_hosts)))


def _reach_of_git(words: Sequence[str], command: Command | None) -> Reach:
    """Return the hosts of a git command. Those of a remote that it names only by its name come from the command."""
    talks = words[:1] and (words[0] in _GIT_TALKS or any(word.startswith("--remote=") for word in words))
    if words[:1] == ("remote",):
        talks = not {"-f", "--fetch", "update", "prune", "show", "set-head"}.isdisjoint(words[1:])
    if not talks:
        return ()
    operands = words[1:]
    if any(_LIKE_SCP.match(word) for word in operands):
        return None
    hosts = _hosts_in(operands)
    if hosts is None or hosts:
        return hosts
    if any(map(_is_folder, operands)):
        return ()
    remotes = () if command is None else command.remotes
    return _hosts_in(remotes) if remotes and all(map(_ADDRESS.match, remotes)) else None


def _hosts_in(words: Sequence[str]) -> Reach:
    """Return the hosts of the web addresses among words. `None` if one is not plain, or of another protocol."""
    hosts: dict[str, None] = {}
    for word in words:
        for protocol, authority in _ADDRESS.findall(word):
            if protocol == "file":
                continue
            host = host_of_address(authority, protocol)
            if not host:
                return None
            hosts[host] = None
    return tuple(hosts)


def host_of_address(authority: str, protocol: str) -> str:
    """Return the host of a web address as policies write it. Empty if it is not plain, or no proxy can reach it."""
    if protocol not in ("http", "https"):
        return ""
    try:
        name, port = split_port(authority.rpartition("@")[2])
        host = shown_host(canonical_host(name))
        text = host if port is None or port in USUAL_PORTS else f"{host}:{port}"
        host_patterns((text,))
    except ValueError:
        return ""
    return text


def _joined(reaches: Iterator[Reach]) -> Reach:
    hosts: dict[str, None] = {}
    for reach in reaches:
        if reach is None:
            return None
        hosts |= dict.fromkeys(reach)
    return tuple(hosts)
