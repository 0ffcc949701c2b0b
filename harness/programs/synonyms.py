"""Synonyms: the other spellings of a command that a program takes, for `policy check`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.programs.catalog import model_of
from harness.programs.options import option_table
from harness.programs.program import Program
from harness.programs.runners import name_of

_GROUPS = {
    "kubectl": """
        pods pod po | secrets secret | configmaps configmap cm | deployments deployment deploy | services service svc
        namespaces namespace ns | nodes node no | serviceaccounts serviceaccount sa | statefulsets statefulset sts
        daemonsets daemonset ds | ingresses ingress ing | persistentvolumeclaims persistentvolumeclaim pvc
        persistentvolumes persistentvolume pv | jobs job | cronjobs cronjob cj | replicasets replicaset rs
    """,
    "npm": "install i add | run run-script | test t | uninstall remove rm un | exec x | update up upgrade",
    "pnpm": "install i | run run-script | test t | remove rm uninstall un | update up upgrade",
    "cargo": "build b | test t | run r | check c",
    "git": "add stage",
    "docker": """
        ps container-ps container-ls container-list | rm container-rm | run container-run | exec container-exec
        stop container-stop | kill container-kill | start container-start | restart container-restart | cp container-cp
        logs container-logs | images image-ls image-list | rmi image-rm | pull image-pull | push image-push
        build image-build | load image-load | save image-save | tag image-tag
    """,
}
"""Groups of equal words by program, one in a line or between bars. A minus joins two words of a subcommand."""


def synonyms(program: str, word: str) -> Iterator[tuple[str, ...]]:
    """Yield the words that a program takes in place of `word`, the word after it or an operand."""
    for line in _GROUPS.get(name_of(program), "").splitlines():
        for group in line.split("|"):
            names = group.split()
            if word in names:
                yield from (
                    tuple(name.split("-", 1)) if "container-" in name or "image-" in name else (name,)
                    for name in names
                    if name != word
                )


def option_synonyms(program: str, subcommand: Sequence[str], option: str) -> Iterator[str]:
    """Yield the letter of a long option, or the long form of a letter, by the table of the program's model."""
    for model in _models(program, subcommand):
        table = option_table(model.options)
        entry = table.get(option)
        if entry is None:
            continue
        same = [name for name, other in table.items() if other is entry and name != option]
        yield from (name for name in same if (len(name) == 2) != (len(option) == 2))


def _models(program: str, subcommand: Sequence[str]) -> Iterator[Program]:
    model = model_of(name_of(program))
    if model is not None:
        yield model
        inner = (model.subcommands.get(" ".join(subcommand[:count])) for count in (3, 2, 1))
        yield from (each for each in inner if each is not None)
