"""`harness audit`: what is in action logs, and what is done with whole logs.

Each verb is one module, with `add_flags` and `command`, and one row of VERBS. Read `logs` first: which logs are meant, and what
must be said of them before any answer. Nothing here needs a model or the network; only `prune`, `recover` and `sign` change
anything.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from harness.app.audit.logs import Filled

VERBS: Mapping[str, str] = {
    "list": "harness.app.audit.list",
    "show": "harness.app.audit.show",
    "verify": "harness.app.audit.verify",
    "approvals": "harness.plugins.insight.commands.questions",
    "denied": "harness.plugins.insight.commands.questions",
    "unknown": "harness.plugins.insight.commands.questions",
    "files": "harness.plugins.insight.commands.questions",
    "reads": "harness.plugins.insight.commands.questions",
    "outside": "harness.plugins.insight.commands.questions",
    "stats": "harness.plugins.insight.commands.stats",
    "diff": "harness.plugins.insight.commands.diff",
    "report": "harness.plugins.insight.commands.report",
    "export": "harness.plugins.insight.commands.export",
    "sign": "harness.app.audit.sign",
    "prune": "harness.app.audit.prune",
    "recover": "harness.app.audit.recover",
}
"""What comes after `harness audit`, and the module that does it, which is imported when it is asked for."""


class _Verb(Protocol):
    """What the module of a verb has."""

    add_flags: Callable[[ArgumentParser, str, Filled], None]
    """Gives a parser the flags of a verb."""
    command: Callable[[Namespace, Mapping[str, str]], int]
    """Does it, and returns the exit code. Raises HarnessError."""


def add_audit_flags(parser: ArgumentParser, verb: str, filled: Filled) -> None:
    """Give `parser` the flags of `harness audit VERB`; `filled` refuses an empty value."""
    _module(verb).add_flags(parser, verb, filled)


def audit_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Do what `harness audit VERB` asks and return the exit code. Raises HarnessError."""
    return _module(arguments.action).command(arguments, environment)


def _module(verb: str) -> _Verb:
    return cast("_Verb", import_module(VERBS[verb]))
