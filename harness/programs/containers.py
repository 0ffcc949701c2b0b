"""docker, podman and compose; kubectl, terraform, ansible and similar programs.

Commands that only list containers ask a local daemon over its socket. All others change or run something, and the tools
for clusters use the network. A command that runs inside a container is treated as text. Files of this machine that are
mounted or copied into the container are treated as paths.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from harness.actions import Access, Act
from harness.programs.options import read_command
from harness.programs.program import Found, Parsed, PathUse, Program, Refine, Style, Unknown, Use, gap, joined
from harness.programs.shared import plain_values, runs
from harness.record import replace

# --- docker, podman, compose


def looks(options: str = "", operands: str = "TEXT...", *, network: bool = False, needs: str = "") -> Program:
    """Return the model of a subcommand that lists or shows."""
    return Program(options=options, operands=operands, network=network, needs=needs, refine=plain_values)


def changes(
    options: str = "",
    operands: str = "TEXT...",
    *,
    act: Act = Act.CHANGES,
    style: Style = Style.GNU,
    refine: Refine = plain_values,
) -> Program:
    """Return the model of a subcommand that changes more than the files that it names."""
    return Program(act=act, style=style, options=options, operands=operands, network=True, refine=refine)


def _with_mounts(parsed: Parsed, use: Use) -> Use:
    """Add the mounted files and folders of this machine. Commands in the container may read and write them."""
    sources: list[str] = []
    for value in parsed.values("-v", "--mount"):
        if isinstance(value, Unknown | Found) or '"' in value:
            return gap(f"what {value} mounts is not known")
    for value in parsed.values("-v"):
        source, colon, _ = value.partition(":")
        if colon and (source[:1] in "./~" or "/" in source):
            sources.append(source)
    for value in parsed.values("--mount"):
        fields = [field.partition("=") for field in value.split(",")]
        sources += [path for name, _, path in fields if name.strip().lower() in ("source", "src")]
    paths = tuple(PathUse(word=source, access=Access.EITHER, tree=True) for source in sources)
    return plain_values(parsed, replace(use, paths=(*use.paths, *paths)))


def _copied(parsed: Parsed, use: Use) -> Use:
    """Add the files of this machine that a copy reads or writes.

    `NAME:PATH` is in a container. A word without a colon, or starting with `.` or `/`, is on this machine.
    """
    if len(parsed.operands) != 2 or any(isinstance(word, Unknown | Found) for word in parsed.operands):
        return gap("what is copied is not known")
    local_words = [word for word in parsed.operands if ":" not in word or word[:1] in "./"]
    paths = tuple(PathUse(word=word, access=Access.EITHER, tree=True) for word in local_words)
    return plain_values(parsed, replace(use, paths=(*use.paths, *paths)))


def _built(parsed: Parsed, use: Use) -> Use:
    """Refine `build`. It does not send files that the ignore files of its context exclude."""
    files = parsed.values("-f")
    if any(isinstance(file, Unknown | Found) for file in files):
        return plain_values(parsed, use)
    paths = (
        replace(path, ignore_files=_ignore_files(path.word, files)) if path.tree and path.handed is None else path
        for path in use.paths
    )
    return plain_values(parsed, replace(use, paths=tuple(paths)))


def _ignore_files(context: str, files: Sequence[str]) -> tuple[str, ...]:
    """Return the ignore files that Docker or Podman may read.

    -f is relative to the working directory or to the context.
    """
    names = [
        f"{file}.{kind}"
        for file in ("", *(files or ("Dockerfile", "Containerfile")))
        for kind in ("dockerignore", "containerignore")
    ]
    return (*(joined(context, name) for name in names), *(names[2:] if files else ()))


_LIST = "-a|--all -f|--filter=TEXT --format=TEXT -n|--last=TEXT -l|--latest --no-trunc -q|--quiet -s|--size"
_IMAGES = "-a|--all --digests -f|--filter=TEXT --format=TEXT --no-trunc -q|--quiet"
_LOGS = "--details -f|--follow --since=TEXT -n|--tail=TEXT -t|--timestamps --until=TEXT"
_INSPECT = "-f|--format=TEXT -s|--size --type=TEXT"
_NAMES = "-f|--filter=TEXT --format=TEXT --no-trunc -q|--quiet"
_RUN = (
    "-d|--detach -i|--interactive -t|--tty --rm --init --read-only -q|--quiet -P|--publish-all --name=TEXT -e|--env=TEXT "
    "--env-file=READ -p|--publish=TEXT -v|--volume=TEXT --mount=TEXT -w|--workdir=TEXT -u|--user=TEXT --network|--net=TEXT "
    "--platform=TEXT --pull=TEXT --entrypoint=TEXT -m|--memory=TEXT --cpus=TEXT --gpus=TEXT --shm-size=TEXT "
    "-h|--hostname=TEXT -l|--label=TEXT --restart=TEXT --add-host=TEXT --tmpfs=TEXT"
)
_EXEC = "-d|--detach -i|--interactive -t|--tty -e|--env=TEXT --env-file=READ -u|--user=TEXT -w|--workdir=TEXT"
_STOP = "-f|--force -v|--volumes -l|--link -s|--signal=TEXT -t|--time|--timeout=TEXT -a|--attach -i|--interactive"
_BUILD = changes(
    "-f|--file=READ -t|--tag=TEXT --build-arg=TEXT --no-cache --pull -q|--quiet --target=TEXT --platform=TEXT "
    "--progress=TEXT --label=TEXT --network=TEXT --load --push --rm --force-rm --iidfile=WRITE --add-host=TEXT",
    "TREE",
    act=Act.RUNS,
    refine=_built,
)
_RUNS = changes(_RUN, "TEXT REMOTE...", style=Style.POSIX, act=Act.RUNS, refine=_with_mounts)

_DAEMON = "the socket of docker's daemon"
_STORE = "namespaces and a store outside the workspace (it works only unconfined)"


def _asks(options: str = "", operands: str = "TEXT...") -> Program:
    return looks(options, operands, needs=_DAEMON)


_LOOKING: Mapping[str, Program] = {
    **dict.fromkeys(("ps", "container ls", "container ps", "container list"), _asks(_LIST, "")),
    **dict.fromkeys(("images", "image ls", "image list"), _asks(_IMAGES)),
    **dict.fromkeys(("logs", "container logs"), _asks(_LOGS)),
    **dict.fromkeys(
        ("inspect", "container inspect", "image inspect", "network inspect", "volume inspect"), _asks(_INSPECT)
    ),
    **dict.fromkeys(("history", "image history"), _asks("--format=TEXT -H|--human --no-trunc -q|--quiet")),
    **dict.fromkeys(("port", "container port"), _asks()),
    **dict.fromkeys(("network ls", "volume ls", "network list", "volume list"), _asks(_NAMES, "")),
    **dict.fromkeys(("version", "info"), _asks("-f|--format=TEXT", "")),
    **dict.fromkeys(("stats", "container stats"), _asks("-a|--all --format=TEXT --no-stream --no-trunc")),
    **dict.fromkeys(("diff", "container diff", "search", "system df", "context ls"), _asks("-v|--verbose")),
}
_CHANGING: Mapping[str, Program] = {
    **dict.fromkeys(("run", "create", "container run", "container create"), _RUNS),
    **dict.fromkeys(("exec", "container exec"), changes(_EXEC, "TEXT REMOTE...", style=Style.POSIX, act=Act.RUNS)),
    **dict.fromkeys(("build", "image build", "buildx build"), _BUILD),
    **dict.fromkeys(("pull", "push", "image pull", "image push"), changes("-a|--all-tags --platform=TEXT -q|--quiet")),
    **dict.fromkeys(
        tuple(
            f"{group}{verb}"
            for group in ("", "container ")
            for verb in "rm start stop restart kill pause unpause".split()
        ),
        changes(_STOP),
    ),
    **dict.fromkeys(("rename", "tag", "image tag", "wait", "container wait"), changes()),
    **dict.fromkeys(("rmi", "image rm"), changes("-f|--force --no-prune")),
    **dict.fromkeys(
        ("system prune", "image prune", "container prune", "volume prune", "network prune", "builder prune"),
        changes("-a|--all -f|--force --filter=TEXT --volumes"),
    ),
    **dict.fromkeys(("network create", "volume create"), changes("-d|--driver=TEXT --label=TEXT --subnet=TEXT")),
    **dict.fromkeys(("network rm", "volume rm"), changes("-f|--force")),
    **dict.fromkeys(("cp", "container cp"), changes("-a|--archive -L|--follow-link -q|--quiet", refine=_copied)),
    **dict.fromkeys(("save", "image save"), changes("-o|--output=WRITE --platform=TEXT")),
    **dict.fromkeys(("load", "image load"), changes("-i|--input=READ -q|--quiet --platform=TEXT", "")),
}


# compose, both as a subcommand and as a separate program.


def _prints_dotenv(parsed: Parsed, use: Use) -> Use:
    """Refine `config`. It prints values from the file `.env`."""
    return plain_values(parsed, replace(use, paths=(*use.paths, PathUse(word=".env", access=Access.READ))))


def _project(options: str = "", *, style: Style = Style.GNU) -> Program:
    return changes(options, act=Act.RUNS, style=style)


_COMPOSE = Program(
    options="-v|--version:info --help:info -f|--file=READ -p|--project-name=TEXT --profile=TEXT --env-file=READ "
    "--ansi=TEXT --progress=TEXT",
    refine=plain_values,
    subcommands={
        "version": looks("--short -f|--format=TEXT", ""),
        **dict.fromkeys(
            ("ps", "ls", "images", "top", "port"),
            _asks("-a|--all -q|--quiet --format=TEXT --services --status=TEXT --filter=TEXT"),
        ),
        "logs": _asks("-f|--follow --no-color --no-log-prefix --since=TEXT --until=TEXT -n|--tail=TEXT -t"),
        "config": Program(
            options="-q|--quiet --services --images --profiles --volumes --hash=TEXT --format=TEXT",
            operands="TEXT...",
            network=True,
            refine=_prints_dotenv,
        ),
        "up": _project(
            "-d|--detach --build --no-build --force-recreate --no-deps --remove-orphans --wait --pull=TEXT --scale=TEXT "
            "-t|--timeout=TEXT --abort-on-container-exit --exit-code-from=TEXT --quiet-pull -V|--renew-anon-volumes"
        ),
        "down": _project("-v|--volumes --remove-orphans --rmi=TEXT -t|--timeout=TEXT"),
        "build": _project("--no-cache --pull --build-arg=TEXT -q|--quiet --progress=TEXT"),
        "run": _project(
            "--rm -T|--no-TTY -d|--detach -i|--interactive -e|--env=TEXT --no-deps --build --name=TEXT -u|--user=TEXT "
            "-w|--workdir=TEXT --entrypoint=TEXT --service-ports -p|--publish=TEXT",
            style=Style.POSIX,
        ),
        "exec": _project(
            "-T|--no-TTY -d|--detach -e|--env=TEXT -u|--user=TEXT -w|--workdir=TEXT --index=TEXT", style=Style.POSIX
        ),
        **dict.fromkeys(
            ("pull", "push", "start", "stop", "restart", "rm", "kill", "create", "pause", "unpause"),
            _project("-f|--force -s|--stop|--signal=TEXT -v|--volumes -q|--quiet -t|--timeout=TEXT --no-deps"),
        ),
    },
)


def _compose(argv: Sequence[str]) -> Use:
    """Read `docker compose` or `docker-compose`. Its global options also drop the `=` of `-f=x`, which is a gap."""
    if any(re.match("-[A-Za-z]=", word) for word in argv):
        return gap("an option of one letter with = behind it")
    return read_command(_COMPOSE, argv)


_ENGINE = Program(
    # -H, --context and --config are left out: they choose another daemon.
    options="-v|--version:info --help:info -D|--debug",
    refine=plain_values,
    subcommands={
        **_LOOKING,
        **_CHANGING,
        **dict.fromkeys(("top", "container top"), Program(style=Style.POSIX, operands="TEXT...", needs=_DAEMON)),
        "compose": Program(read=_compose),
    },
)


# --- kubectl, terraform, ansible

# kubectl. --kubeconfig is left out, because a kubeconfig may name programs to run.

_WHERE = "-n|--namespace=TEXT --context=TEXT --request-timeout=TEXT "
_WHICH = _WHERE + "-A|--all-namespaces -l|--selector=TEXT --field-selector=TEXT -o|--output=TEXT --no-headers "
_FILES = (
    _WHERE
    + "-f|--filename=TREE -k|--kustomize=TREE -R|--recursive -l|--selector=TEXT -o|--output=TEXT --dry-run[=TEXT] "
)


def _kubectl(parsed: Parsed, use: Use) -> Use:
    """Return a gap for `-o go-template-file=F` and similar options, which read a file."""
    for value in parsed.values("-o"):
        if isinstance(value, Unknown) or "-file" in value:
            return gap("a template that is not among the words")
    return plain_values(parsed, use)


def _gets(options: str = "") -> Program:
    return replace(looks(_WHICH + options, network=True), refine=_kubectl)


def _sets(options: str = _FILES, *, style: Style = Style.GNU) -> Program:
    return changes(options, style=style, refine=_kubectl)


def _of_client(parsed: Parsed, use: Use) -> Use:
    """Refine `kubectl version`. With --client it does not use the network."""
    return replace(_kubectl(parsed, use), network=not parsed.has("--client"))


_KUBECTL = Program(
    options=_WHERE,  # without --help, which asks the server what it offers
    refine=plain_values,
    subcommands={
        "get": _gets("-w|--watch -L|--label-columns=TEXT --show-labels --sort-by=TEXT --ignore-not-found"),
        "logs": _gets(
            "-f|--follow -c|--container=TEXT --tail=TEXT --since=TEXT -p|--previous --timestamps --all-containers --prefix"
        ),
        "version": replace(_gets("--client"), refine=_of_client),
        **dict.fromkeys(("rollout status", "rollout history", "top pod", "top pods", "top node", "top nodes"), _gets()),
        **dict.fromkeys(
            ("describe", "explain", "events", "api-resources", "api-versions", "cluster-info", "auth can-i"), _gets()
        ),
        **dict.fromkeys(("config view", "config current-context", "config get-contexts"), _gets("--minify")),
        **dict.fromkeys(("apply", "create", "replace", "diff"), _sets(_FILES + "--server-side --prune --save-config")),
        "delete": _sets(_FILES + "--all --force --grace-period=TEXT --ignore-not-found --wait[=TEXT] --now"),
        **dict.fromkeys(
            ("rollout restart", "rollout undo", "scale", "label", "annotate", "set image", "patch", "expose", "wait"),
            _sets(
                _FILES + "--replicas=TEXT --overwrite --type=TEXT -p|--patch=TEXT --port=TEXT --for=TEXT --timeout=TEXT"
            ),
        ),
        **dict.fromkeys(("cordon", "uncordon", "drain", "config use-context", "port-forward"), _sets(_WHERE)),
        **dict.fromkeys(
            ("exec", "run"),
            _sets(
                _WHERE
                + "-i|--stdin -t|--tty -c|--container=TEXT --image=TEXT --rm --restart=TEXT --command --env=TEXT",
                style=Style.POSIX,
            ),
        ),
    },
)


# terraform: most commands check for new versions over the network. Those that evaluate anything run providers.


def _fmt(parsed: Parsed, use: Use) -> Use:
    if any(isinstance(word, Unknown) for word in parsed.operands):
        return gap("the files are not known")
    words = parsed.operands or (".",)
    access, act = (Access.READ, Act.LOOKS) if parsed.has("-check") else (Access.EITHER, Act.WRITES)
    paths = tuple(PathUse(word=word, access=access, tree=True) for word in words if word != "-")
    return replace(use, act=act, paths=(*use.paths, *paths))


def _terraform(options: str = "", operands: str = "TEXT...") -> Program:
    common = "-no-color -json -input[=TEXT] -lock[=TEXT] -compact-warnings "
    return runs(common + options, style=Style.SINGLE, operands=operands)


_PLAN = (
    "-var=TEXT -var-file[=READ] -out[=WRITE] -target[=TEXT] -refresh[=TEXT] -refresh-only -destroy -detailed-exitcode "
    "-parallelism[=TEXT] -auto-approve -replace[=TEXT] -state[=EITHER]"
)
_TERRAFORM = Program(
    style=Style.SINGLE,
    options="-chdir[=FOLDER] -help:info --help:info -version:info --version:info -v:info",
    subcommands={
        # `version` also checks for newer versions. Without the network, it omits them.
        "version": Program(style=Style.SINGLE, options="-json", operands=""),
        "fmt": Program(
            style=Style.SINGLE, options="-check -recursive -list[=TEXT]", operands="TEXT...", network=True, refine=_fmt
        ),
        **dict.fromkeys(("plan", "apply", "destroy", "refresh"), _terraform(_PLAN, "READ")),
        "init": _terraform("-upgrade -reconfigure -backend[=TEXT] -get[=TEXT] -lockfile[=TEXT]", ""),
        **dict.fromkeys(("validate", "providers"), _terraform("", "")),
        **dict.fromkeys(
            ("output", "show", "graph", "state list", "state show", "state mv", "state rm", "workspace list", "import"),
            _terraform("-raw", "READ..."),
        ),
        **dict.fromkeys(("workspace select", "workspace new", "workspace show", "workspace delete"), _terraform()),
    },
)


# Others.

_ANSIBLE = runs(
    "-i|--inventory=SCRIPT -l|--limit=TEXT -t|--tags=TEXT --skip-tags=TEXT -C|--check -D|--diff -v|--verbose "
    "-e|--extra-vars=TEXT -u|--user=TEXT -b|--become -f|--forks=TEXT --list-hosts --list-tasks --syntax-check",
    operands="SCRIPT...",
    refine=lambda parsed, use: (
        gap("a file of variables") if any("@" in value for value in parsed.values("-e")) else plain_values(parsed, use)
    ),
)


PROGRAMS = {
    "docker": _ENGINE,
    # podman top runs ps inside the container if it gets options of ps.
    "podman": replace(
        _ENGINE,
        subcommands={**{name: replace(each, needs=_STORE) for name, each in _LOOKING.items()}, **_CHANGING},
    ),
    "docker-compose": Program(read=_compose),
    "kubectl": _KUBECTL,
    **dict.fromkeys(("terraform", "tofu"), _TERRAFORM),
    "ansible-playbook": _ANSIBLE,
}
