"""Tools for clusters and machines: kubectl, helm, terraform, ansible and their like; all of them reach the network; pure."""

from __future__ import annotations

from harness.actions import Access, Act
from harness.programs.containers import changes, looks, plain_values
from harness.programs.model import Parsed, PathUse, Program, Style, Unknown, Use, gap
from harness.record import replace

# kubectl. A kubeconfig may name programs to run, so that --kubeconfig is not here.

_WHERE = "-n|--namespace=TEXT --context=TEXT --request-timeout=TEXT "
_WHICH = _WHERE + "-A|--all-namespaces -l|--selector=TEXT --field-selector=TEXT -o|--output=TEXT --no-headers "
_FILES = (
    _WHERE
    + "-f|--filename=TREE -k|--kustomize=TREE -R|--recursive -l|--selector=TEXT -o|--output=TEXT --dry-run[=TEXT] "
)


def _kubectl(parsed: Parsed, use: Use) -> Use:
    """`-o go-template-file=F` and its like read a file."""
    for value in parsed.values("-o"):
        if isinstance(value, Unknown) or "-file" in value:
            return gap("a template that is not among the words")
    return plain_values(parsed, use)


def _gets(options: str = "") -> Program:
    return replace(looks(_WHICH + options, network=True), refine=_kubectl)


def _sets(options: str = _FILES, *, style: Style = Style.GNU) -> Program:
    return changes(options, style=style, refine=_kubectl)


_KUBECTL = Program(
    options=_WHERE,  # without --help, which asks the server what it offers
    refine=plain_values,
    subcommands={
        "get": _gets("-w|--watch -L|--label-columns=TEXT --show-labels --sort-by=TEXT --ignore-not-found"),
        "logs": _gets(
            "-f|--follow -c|--container=TEXT --tail=TEXT --since=TEXT -p|--previous --timestamps --all-containers --prefix"
        ),
        "version": _gets("--client"),
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

_RELEASE = "-n|--namespace=TEXT --kube-context=TEXT -o|--output=TEXT "
_VALUES = _RELEASE + (
    "-f|--values=READ --set=TEXT --set-string=TEXT --version=TEXT --create-namespace --wait --timeout=TEXT --atomic "
    "-i|--install --dry-run[=TEXT] --reuse-values --debug --repo=TEXT"
)
_HELM = Program(
    options=_RELEASE + "--help:info",
    refine=plain_values,
    subcommands={
        **dict.fromkeys(
            ("list", "ls", "status", "history", "get values", "get manifest", "search repo", "version", "repo list"),
            looks(_RELEASE + "-a|--all -A|--all-namespaces --short -q|--short-names", network=True),
        ),
        **dict.fromkeys(("template", "lint", "show values", "show chart"), changes(_VALUES, "TREE...", act=Act.RUNS)),
        **dict.fromkeys(("install", "upgrade"), changes(_VALUES, "TREE...")),
        **dict.fromkeys(
            ("uninstall", "rollback", "repo add", "repo update"), changes(_RELEASE + "--wait --timeout=TEXT")
        ),
        **dict.fromkeys(("dependency update", "dependency build", "dep update"), changes("", "EITHER_TREE")),
    },
)


# terraform: every command asks for new versions, and those that evaluate anything run providers.


def _fmt(parsed: Parsed, use: Use) -> Use:
    if any(isinstance(word, Unknown) for word in parsed.operands):
        return gap("the files are not known")
    words = parsed.operands or (".",)
    access, act = (Access.READ, Act.LOOKS) if parsed.has("-check") else (Access.EITHER, Act.WRITES)
    paths = tuple(PathUse(word=word, access=access, tree=True) for word in words if word != "-")
    return replace(use, act=act, paths=(*use.paths, *paths))


def _terraform(options: str = "", operands: str = "TEXT...") -> Program:
    common = "-no-color -json -input[=TEXT] -lock[=TEXT] -compact-warnings "
    return Program(act=Act.RUNS, style=Style.SINGLE, options=common + options, operands=operands, network=True)


_PLAN = (
    "-var=TEXT -var-file[=READ] -out[=WRITE] -target[=TEXT] -refresh[=TEXT] -refresh-only -destroy -detailed-exitcode "
    "-parallelism[=TEXT] -auto-approve -replace[=TEXT] -state[=EITHER]"
)
_TERRAFORM = Program(
    style=Style.SINGLE,
    options="-chdir[=FOLDER] -help:info --help:info",
    subcommands={
        "version": Program(style=Style.SINGLE, options="-json", operands="", network=True),
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

_ANSIBLE = Program(
    act=Act.RUNS,
    options="-i|--inventory=SCRIPT -l|--limit=TEXT -t|--tags=TEXT --skip-tags=TEXT -C|--check -D|--diff -v|--verbose "
    "-e|--extra-vars=TEXT -u|--user=TEXT -b|--become -f|--forks=TEXT --list-hosts --list-tasks --syntax-check",
    operands="SCRIPT...",
    network=True,
    refine=lambda parsed, use: (
        gap("a file of variables") if any("@" in value for value in parsed.values("-e")) else plain_values(parsed, use)
    ),
)


def _machines(*names: str) -> Program:
    return Program(options="--help:info", subcommands=dict.fromkeys(names, changes(act=Act.RUNS)))


PROGRAMS = {
    "kubectl": _KUBECTL,
    "helm": _HELM,
    **dict.fromkeys(("terraform", "tofu"), _TERRAFORM),
    "ansible-playbook": _ANSIBLE,
    "vagrant": _machines(*"up halt destroy status reload provision suspend resume global-status".split()),
    "minikube": _machines(*"start stop delete status ip version".split()),
    "kind": _machines("create cluster", "delete cluster", "get clusters", "load docker-image", "version"),
}
