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
from harness.programs.program import Found, Parsed, PathUse, Program, Unknown, Use, gap, joined
from harness.programs.rows import Rows
from harness.programs.shared import plain_values
from harness.record import replace


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


def _prints_dotenv(parsed: Parsed, use: Use) -> Use:
    """Refine `config`. It prints values from the file `.env`."""
    return plain_values(parsed, replace(use, paths=(*use.paths, PathUse(word=".env", access=Access.READ))))


def _kubectl(parsed: Parsed, use: Use) -> Use:
    """Return a gap for `-o go-template-file=F` and similar options, which read a file."""
    for value in parsed.values("-o"):
        if isinstance(value, Unknown) or "-file" in value:
            return gap("a template that is not among the words")
    return plain_values(parsed, use)


def _of_client(parsed: Parsed, use: Use) -> Use:
    """Refine `kubectl version`. With --client it does not use the network."""
    return replace(_kubectl(parsed, use), network=not parsed.has("--client"))


def _fmt(parsed: Parsed, use: Use) -> Use:
    if any(isinstance(word, Unknown) for word in parsed.operands):
        return gap("the files are not known")
    words = parsed.operands or (".",)
    access, act = (Access.READ, Act.LOOKS) if parsed.has("-check") else (Access.EITHER, Act.WRITES)
    paths = tuple(PathUse(word=word, access=access, tree=True) for word in words if word != "-")
    return replace(use, act=act, paths=(*use.paths, *paths))


def _variables(parsed: Parsed, use: Use) -> Use:
    """Refine ansible-playbook. A variable `@FILE` reads a file."""
    has_file = any("@" in value for value in parsed.values("-e"))
    return gap("a file of variables") if has_file else plain_values(parsed, use)


_ROWS = Rows(
    r"""
docker = the socket of docker's daemon
# -H, --context and --config are left out: they choose another daemon.
docker : looks go : READ... : -v|--version:info --help:info -D|--debug
docker ps, container ls, container ps, container list : looks needs=docker go : - : -a|--all -f|--filter=TEXT --format=TEXT
    -n|--last=TEXT -l|--latest --no-trunc -q|--quiet -s|--size
docker images, image ls, image list : looks needs=docker go : TEXT... : -a|--all --digests -f|--filter=TEXT --format=TEXT
    --no-trunc -q|--quiet
docker logs, container logs : looks needs=docker go : TEXT... : --details -f|--follow --since=TEXT -n|--tail=TEXT
    -t|--timestamps --until=TEXT
docker inspect, container inspect, image inspect, network inspect, volume inspect : looks needs=docker go : TEXT... :
    -f|--format=TEXT -s|--size --type=TEXT
docker history, image history : looks needs=docker go : TEXT... : --format=TEXT -H|--human --no-trunc -q|--quiet
docker port, container port : looks needs=docker go : TEXT...
docker network ls, volume ls, network list, volume list : looks needs=docker go : - : -f|--filter=TEXT --format=TEXT
    --no-trunc -q|--quiet
docker version, info : looks needs=docker go : - : -f|--format=TEXT
docker stats, container stats : looks needs=docker go : TEXT... : -a|--all --format=TEXT --no-stream --no-trunc
docker diff, container diff, search, system df, context ls : looks needs=docker go : TEXT... : -v|--verbose
docker run, create, container run, container create : runs net posix mounts : TEXT REMOTE... : -d|--detach -i|--interactive
    -t|--tty --rm --init --read-only -q|--quiet -P|--publish-all --name=TEXT -e|--env=TEXT --env-file=READ -p|--publish=TEXT
    -v|--volume=TEXT --mount=TEXT -w|--workdir=TEXT -u|--user=TEXT --network|--net=TEXT --platform=TEXT --pull=TEXT
    --entrypoint=TEXT -m|--memory=TEXT --cpus=TEXT --gpus=TEXT --shm-size=TEXT -h|--hostname=TEXT -l|--label=TEXT
    --restart=TEXT --add-host=TEXT --tmpfs=TEXT
docker exec, container exec : runs net posix go : TEXT REMOTE... : -d|--detach -i|--interactive -t|--tty -e|--env=TEXT
    --env-file=READ -u|--user=TEXT -w|--workdir=TEXT
docker build, image build, buildx build : runs net built : TREE : -f|--file=READ -t|--tag=TEXT --build-arg=TEXT --no-cache
    --pull -q|--quiet --target=TEXT --platform=TEXT --progress=TEXT --label=TEXT --network=TEXT --load --push --rm
    --force-rm --iidfile=WRITE --add-host=TEXT
docker pull, push, image pull, image push : changes net go : TEXT... : -a|--all-tags --platform=TEXT -q|--quiet
docker rm, start, stop, restart, kill, pause, unpause, container rm, container start, container stop, container restart,
    container kill, container pause, container unpause : changes net go : TEXT... : -f|--force -v|--volumes -l|--link
    -s|--signal=TEXT -t|--time|--timeout=TEXT -a|--attach -i|--interactive
docker rename, tag, image tag, wait, container wait : changes net go : TEXT...
docker rmi, image rm : changes net go : TEXT... : -f|--force --no-prune
docker system prune, image prune, container prune, volume prune, network prune, builder prune : changes net go : TEXT... :
    -a|--all -f|--force --filter=TEXT --volumes
docker network create, volume create : changes net go : TEXT... : -d|--driver=TEXT --label=TEXT --subnet=TEXT
docker network rm, volume rm : changes net go : TEXT... : -f|--force
docker cp, container cp : changes net copied : TEXT... : -a|--archive -L|--follow-link -q|--quiet
docker save, image save : changes net go : TEXT... : -o|--output=WRITE --platform=TEXT
docker load, image load : changes net go : - : -i|--input=READ -q|--quiet --platform=TEXT
docker top, container top : looks needs=docker posix : TEXT...

# compose, both as a subcommand and as a separate program
compose : looks go : READ... : -v|--version:info --help:info -f|--file=READ -p|--project-name=TEXT --profile=TEXT
    --env-file=READ --ansi=TEXT --progress=TEXT
compose version : looks go : - : --short -f|--format=TEXT
compose ps, ls, images, top, port : looks needs=docker go : TEXT... : -a|--all -q|--quiet --format=TEXT --services
    --status=TEXT --filter=TEXT
compose logs : looks needs=docker go : TEXT... : -f|--follow --no-color --no-log-prefix --since=TEXT --until=TEXT
    -n|--tail=TEXT -t
compose config : looks net dotenv : TEXT... : -q|--quiet --services --images --profiles --volumes --hash=TEXT --format=TEXT
compose up : runs net go : TEXT... : -d|--detach --build --no-build --force-recreate --no-deps --remove-orphans --wait
    --pull=TEXT --scale=TEXT -t|--timeout=TEXT --abort-on-container-exit --exit-code-from=TEXT --quiet-pull
    -V|--renew-anon-volumes
compose down : runs net go : TEXT... : -v|--volumes --remove-orphans --rmi=TEXT -t|--timeout=TEXT
compose build : runs net go : TEXT... : --no-cache --pull --build-arg=TEXT -q|--quiet --progress=TEXT
compose run : runs net posix go : TEXT... : --rm -T|--no-TTY -d|--detach -i|--interactive -e|--env=TEXT --no-deps --build
    --name=TEXT -u|--user=TEXT -w|--workdir=TEXT --entrypoint=TEXT --service-ports -p|--publish=TEXT
compose exec : runs net posix go : TEXT... : -T|--no-TTY -d|--detach -e|--env=TEXT -u|--user=TEXT -w|--workdir=TEXT
    --index=TEXT
compose pull, push, start, stop, restart, rm, kill, create, pause, unpause : runs net go : TEXT... : -f|--force
    -s|--stop|--signal=TEXT -v|--volumes -q|--quiet -t|--timeout=TEXT --no-deps

# --kubeconfig is left out, because a kubeconfig may name programs to run. `--help` asks the server what it offers.
where = -n|--namespace=TEXT --context=TEXT --request-timeout=TEXT
which = where -A|--all-namespaces -l|--selector=TEXT --field-selector=TEXT -o|--output=TEXT --no-headers
files = where -f|--filename=TREE -k|--kustomize=TREE -R|--recursive -l|--selector=TEXT -o|--output=TEXT --dry-run[=TEXT]
kubectl : looks go : READ... : where
kubectl get : looks net kubectl : TEXT... : which -w|--watch -L|--label-columns=TEXT --show-labels --sort-by=TEXT
    --ignore-not-found
kubectl logs : looks net kubectl : TEXT... : which -f|--follow -c|--container=TEXT --tail=TEXT --since=TEXT -p|--previous
    --timestamps --all-containers --prefix
kubectl version : looks net client : TEXT... : which --client
kubectl rollout status, rollout history, top pod, top pods, top node, top nodes : looks net kubectl : TEXT... : which
kubectl describe, explain, events, api-resources, api-versions, cluster-info, auth can-i : looks net kubectl : TEXT... :
    which
kubectl config view, config current-context, config get-contexts : looks net kubectl : TEXT... : which --minify
kubectl apply, create, replace, diff : changes net kubectl : TEXT... : files --server-side --prune --save-config
kubectl delete : changes net kubectl : TEXT... : files --all --force --grace-period=TEXT --ignore-not-found --wait[=TEXT]
    --now
kubectl rollout restart, rollout undo, scale, label, annotate, set image, patch, expose, wait : changes net kubectl :
    TEXT... : files --replicas=TEXT --overwrite --type=TEXT -p|--patch=TEXT --port=TEXT --for=TEXT --timeout=TEXT
kubectl cordon, uncordon, drain, config use-context, port-forward : changes net kubectl : TEXT... : where
kubectl exec, run : changes net posix kubectl : TEXT... : where -i|--stdin -t|--tty -c|--container=TEXT --image=TEXT --rm
    --restart=TEXT --command --env=TEXT

# Most commands check for new versions over the network (`version` leaves them out without it). Those that evaluate anything
# run providers.
common = -no-color -json -input[=TEXT] -lock[=TEXT] -compact-warnings
terraform/tofu : looks single : READ... : -chdir[=FOLDER] -help:info --help:info -version:info --version:info -v:info
terraform/tofu version : looks single : - : -json
terraform/tofu fmt : looks net single fmt : TEXT... : -check -recursive -list[=TEXT]
terraform/tofu plan, apply, destroy, refresh : runs net single : READ : common -var=TEXT -var-file[=READ] -out[=WRITE]
    -target[=TEXT] -refresh[=TEXT] -refresh-only -destroy -detailed-exitcode -parallelism[=TEXT] -auto-approve
    -replace[=TEXT] -state[=EITHER]
terraform/tofu init : runs net single : - : common -upgrade -reconfigure -backend[=TEXT] -get[=TEXT] -lockfile[=TEXT]
terraform/tofu validate, providers : runs net single : - : common
terraform/tofu output, show, graph, state list, state show, state mv, state rm, workspace list, import : runs net single :
    READ... : common -raw
terraform/tofu workspace select, workspace new, workspace show, workspace delete : runs net single : TEXT... : common
ansible-playbook : runs net variables : SCRIPT... : -i|--inventory=SCRIPT -l|--limit=TEXT -t|--tags=TEXT --skip-tags=TEXT
    -C|--check -D|--diff -v|--verbose -e|--extra-vars=TEXT -u|--user=TEXT -b|--become -f|--forks=TEXT --list-hosts
    --list-tasks --syntax-check
""",
    {
        "mounts": _with_mounts,
        "copied": _copied,
        "built": _built,
        "dotenv": _prints_dotenv,
        "kubectl": _kubectl,
        "client": _of_client,
        "fmt": _fmt,
        "variables": _variables,
    },
)


def _compose(argv: Sequence[str]) -> Use:
    """Read `docker compose` or `docker-compose`. Its global options also drop the `=` of `-f=x`, which is a gap."""
    if any(re.match("-[A-Za-z]=", word) for word in argv):
        return gap("an option of one letter with = behind it")
    return read_command(_ROWS["compose"], argv)


_STORE = "namespaces and a store outside the workspace (it works only unconfined)"
_ENGINE = _ROWS["docker"]
_COMPOSE = Program(read=_compose)
_OF_PODMAN = {
    name: replace(each, needs=_STORE) if each.needs else each
    for name, each in _ENGINE.subcommands.items()
    if name not in ("top", "container top")  # podman top runs ps inside the container if it gets options of ps
}

PROGRAMS: Mapping[str, Program] = {
    "docker": replace(_ENGINE, subcommands={**_ENGINE.subcommands, "compose": _COMPOSE}),
    "podman": replace(_ENGINE, subcommands=_OF_PODMAN),
    "docker-compose": _COMPOSE,
    **{name: _ROWS[name] for name in ("kubectl", "terraform", "tofu", "ansible-playbook")},
}
