"""Version that a worker needs for a task.

The queue only compares this text to select tasks, never to permit actions.
"""

from __future__ import annotations

import json
from argparse import Namespace

from harness import __version__
from harness.actions import JsonValue
from harness.digest import digest_of
from harness.errors import UsageError
from harness.plugins.fleet.batch.task import DEFAULT_POLICY
from harness.session.policies import load_named, with_digest

_SETTINGS = (
    "provider", "calls", "effort", "set", "no_instructions", "add_dir", "tools", "allow_refusals", "dry_run", "plan",
)  # fmt: skip
"""Flags that must be equal for a batch and its workers. Models and limits are fields of each task instead."""


def policy_digest(arguments: Namespace) -> str:
    """Return the SHA-256 of the policy's file, or the combined one of several files.

    Raises PolicyError, also if --policy-sha256 differs.
    """
    return with_digest(load_named(arguments.policy or DEFAULT_POLICY), arguments.policy_sha256).sha256


def version_of(arguments: Namespace, policy: str | None = None) -> str:
    """Return the version text: version of the harness, digest of the policy and digest of the settings in the flags.

    `policy` is the policy's digest if the caller knows it. Raises PolicyError, and UsageError for an unreadable file.
    """
    values: dict[str, JsonValue] = {name: getattr(arguments, name) for name in _SETTINGS}
    settings: dict[str, JsonValue] = {name: value for name, value in values.items() if value not in (None, False, [])}
    if arguments.system is not None:
        try:
            with open(arguments.system, "rb") as file:
                settings["system"] = digest_of(file.read())
        except OSError as error:
            raise UsageError(f"--system: {arguments.system} cannot be read: {error.strerror}") from None
    digest = digest_of(json.dumps(settings, sort_keys=True).encode())
    return f"harness {__version__} policy {(policy or policy_digest(arguments))[:12]} settings {digest[:12]}"
