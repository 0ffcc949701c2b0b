"""`harness policy new`: write a policy file from three answers."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence

from harness.errors import PolicyError, UsageError, nearest
from harness.policy.hosts import host_patterns
from harness.policy.loader import PACKS, load_policy
from harness.session.exits import Exit
from harness.session.front import terminal_is_there
from harness.terminal.console import complain
from harness.text.visible import visible_line

ANYWHERE = "any"
"""Answer for a network that a yes may open."""
NOWHERE = "none"

_TEXT = """\
# Made by `harness policy new`. `harness policy check {file}` checks it; docs/policies.md explains every key.
version = 1
name = "{name}"

# {comment}
extends = [{extends}]

[sandbox]
# Hosts that commands may reach, with a yes or by a rule: true for all, false for none.
network = {network}

# A rule of your own: an example to change. Files that a program writes are not for the model.
[[rule]]
id        = "generated"
decision  = "deny"
access    = ["write"]
path      = ["/generated/"]
reason    = "A program writes these files."
hint      = "Change their source instead."
match     = ["generated/a.txt"]
not_match = ["src/a.txt"]

# A command that may run unasked, in the workspace walls. Take the signs away, and change the words.
# [[rule]]
# id        = "build"
# decision  = "auto"
# argv      = ["make", "build"]
# walls     = "workspace"
# match     = ["make build"]
# not_match = ["make deploy"]
"""


def new_command(arguments: Namespace, environment: Mapping[str, str]) -> int:  # noqa: ARG001 - as all commands
    """Write the file and return the exit code. Raises UsageError for an invalid answer or an existing file."""
    stack = _answer(arguments.stack, f"Which stack? ({' '.join(PACKS)}, several with blanks, or none): ")
    packs = [pack for pack in stack.replace(",", " ").split() if pack != NOWHERE]
    for pack in packs:
        if pack not in PACKS:
            raise UsageError(f"unknown stack {pack!r}{nearest(pack, PACKS)}")
    person = _answer(arguments.person, "Is a person there to answer questions? (yes or no): ")
    if person not in ("yes", "no"):
        raise UsageError(f"answer yes or no, not {person!r}")
    network = _answer(arguments.network, "Which hosts may commands reach? (names with blanks, any, or none): ")
    text = policy_text(arguments.file, packs, attended=person == "yes", network=network)
    _write(arguments.file, text)
    policy = load_policy(arguments.file)
    complain(f"wrote {visible_line(arguments.file, 5_000)}: {len(policy.rules)} rules, with those that it extends")
    return Exit.DONE


def policy_text(file: str, packs: Sequence[str], *, attended: bool, network: str) -> str:
    """Return the text of the policy file. Raises UsageError for an invalid host."""
    hosts = network.replace(",", " ").split()
    try:
        value = {(ANYWHERE,): "true", (NOWHERE,): "false", (): "false"}.get(tuple(hosts)) or _toml_list(
            [pattern.text for pattern in host_patterns(tuple(hosts))]
        )
    except ValueError as error:
        raise UsageError(f"network: {error}") from None
    base = "default" if attended else "ci"
    comment = (
        "The shipped `default` asks you."
        if attended
        else "The shipped `ci` denies what it would ask: no person is there."
    )
    name = "".join(
        char if char.isascii() and (char.isalnum() or char in "-_") else "-" for char in os.path.basename(file)
    )
    return _TEXT.format(
        file=visible_line(file, 500),
        name=name.removesuffix("-toml"),
        comment=comment,
        extends=_toml_list([base, *dict.fromkeys(packs)])[1:-1],
        network=value,
    )


def _toml_list(words: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{word}"' for word in words) + "]"


def _answer(flag: str | None, question: str) -> str:
    """Return the value of a flag, or the answer to a question at the terminal. Raises UsageError without either."""
    if flag is not None:
        return flag.strip()
    if not terminal_is_there():
        raise UsageError("without a terminal, give --stack, --person and --network")
    sys.stderr.write(question)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise UsageError("the answer is missing")
    return line.strip()


def _write(file: str, text: str) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        raise UsageError(f"{visible_line(file, 500)}: exists already") from None
    except OSError as error:
        raise PolicyError(f"{visible_line(file, 500)}: cannot be written: {error.strerror}") from None
    with open(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
