"""The policies in force: the layers of this machine, user and project, read and combined."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence

from harness.actions import Access, Decision
from harness.errors import PolicyError, UsageError
from harness.files.workspace import Workspace
from harness.policy.loader import SHIPPED, combine, load_policy, shipped_policy_path, tightening_only
from harness.policy.policy import Policy, PolicySource
from harness.policy.rules import Layer, Rule
from harness.record import replace
from harness.session.state import MANAGED_POLICY, PROJECT_POLICY, State
from harness.text.visible import visible_line

_BASES = (Layer.FILE, Layer.USER, Layer.SHIPPED)
"""The layers of which one holds at a time, between the machine's and the project's."""


def assemble(
    state: State,
    workspace: str,
    *,
    names: str | Sequence[str] | None,
    fallback: str,
    pinned: str | None = None,
    examples: bool = True,
) -> Policy:
    """Return the policy that holds in `workspace`: managed, then `names` or the user's or the shipped `fallback`,
    then the project's, which only tightens until the user trusts exactly its content.

    `pinned` is the SHA-256 that the file of the policy `names` must have; `examples` as in `load_policy`, though those of
    shipped policies are tried by our tests and `harness policy check` alone. Raises UsageError if nothing is named to have it,
    and PolicyError for another digest, and for anything that cannot be read and understood: a layer is never left out
    because it is broken.
    """
    layers = []
    if os.path.lexists(MANAGED_POLICY):
        _check_managed(MANAGED_POLICY)
        layers.append(load_policy(MANAGED_POLICY, layer=Layer.MANAGED, examples=examples))
    if names is not None:
        layers.append(with_digest(load_named(names, examples=examples), pinned))
    elif pinned is not None:
        raise UsageError("--policy-sha256 is the digest of the file of --policy, and none is named")
    elif fallback == "default" and os.path.lexists(state.user_policy):
        layers.append(load_policy(state.user_policy, layer=Layer.USER, examples=examples))
    else:
        layers.append(load_policy(shipped_policy_path(fallback), layer=Layer.SHIPPED, examples=False))
    project = os.path.join(workspace, PROJECT_POLICY)
    if os.path.lexists(project):
        layers.append(_project_policy(state, project, examples))
    # No call may write the policies, the trust file or the logs.
    return combine(layers).guarding(*state.guarded)


def load_named(policy_names: str | Sequence[str], *, examples: bool = True) -> Policy:
    """Return the policies that `--policy` names, by file or shipped name, put together: the strictest of them decides.

    `examples` as in `assemble`. Raises PolicyError.
    """
    names = (policy_names,) if isinstance(policy_names, str) else tuple(dict.fromkeys(policy_names))
    return combine([load_policy(name, examples=examples and name not in SHIPPED) for name in names])


class PolicyInForce:
    """The meaning of `--policy FILE` in each workspace: with the managed policy, and the project's if there is one."""

    def __init__(self, policy_names: str | Sequence[str], environment: Mapping[str, str], *guarded: str) -> None:
        """Take the policies' files or shipped names, and further files that no call may write.

        Raises PolicyError for a policy that does not load, also where no call is judged in the end.
        """
        load_named(policy_names)
        self._policy_names = policy_names
        self._state = State.of(environment)
        self._guarded = guarded
        self._policies: dict[str, Policy] = {}

    def at(self, workspace: Workspace) -> Policy:
        """Return the policy that holds in `workspace`. Raises PolicyError."""
        policy = self._policies.get(workspace.root)
        if policy is None:
            policy = assemble(self._state, workspace.root, names=self._policy_names, fallback="default")
            self._policies[workspace.root] = policy = policy.guarding(*self._guarded)
        return policy


def with_digest(policy: Policy, sha256: str | None) -> Policy:
    """Return a policy whose digest is `sha256`, if that is not None: that of its file, or `Policy.sha256` over several.

    Raises PolicyError for another digest.
    """
    if sha256 not in (None, policy.sha256):
        paths = ", ".join(source.path for source in policy.sources)
        raise PolicyError(f"{paths}: its SHA-256 is {policy.sha256}, and --policy-sha256 says {sha256}")
    return policy


def _project_policy(state: State, path: str, examples: bool) -> Policy:
    policy = load_policy(path, layer=Layer.PROJECT, examples=examples)
    return policy if state.is_trusted(policy.sha256) else tightening_only(policy)


def _check_managed(path: str) -> None:
    """Refuse a managed policy that others than root could have written."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise PolicyError(f"{path}: cannot be read: {error.strerror}") from None
    if status.st_uid != 0 or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PolicyError(f"{path}: the managed policy must belong to root and be writable by root alone")


def describe(policy: Policy) -> str:
    """Return the policy in a few words: its layers and where they come from."""
    parts = []
    for source in policy.sources:
        note = "" if source.trusted else ", not trusted: only what tightens counts"
        parts.append(f"{source_name(source)} ({source.sha256[:12]}{note})")
    return "; ".join(parts)


def source_name(source: PolicySource) -> str:
    """Return the name of a policy's file: `shipped default` for one of the program's own, else layer and path."""
    name = shipped_name(source.path)
    return f"shipped {name}" if name else f"{source.layer.value} {visible_line(source.path, 1_000)}"


def shipped_name(path: str) -> str:
    """Return the name of the shipped policy whose file is at `path`; empty for any other file."""
    folder, name = os.path.split(path)
    return name.removesuffix(".toml") if folder == _shipped_folder() else ""


def without_shipped_folder(text: str) -> str:
    """Return a text without the folder of the shipped policies, which is the program's own and no place to edit."""
    return text.replace(f"{_shipped_folder()}/", "")


def _shipped_folder() -> str:
    return os.path.dirname(shipped_policy_path(SHIPPED[0]))


def home_of_rules(policy: Policy, state: State) -> str:
    """Return the place for a person's own rules while `policy` is in force, in words: never a file of the program."""
    base_path = next(
        (source.path for source in policy.sources if source.layer in _BASES), shipped_policy_path("default")
    )
    if not shipped_name(base_path):
        return visible_line(base_path, 1_000)
    is_named = any(source.layer is Layer.FILE for source in policy.sources)
    user_file = "a file of yours for --policy" if is_named else visible_line(state.user_policy, 1_000)
    begin = f"begin with a copy of {visible_line(base_path, 1_000)}"
    return f"{user_file}, which takes the place of the shipped {shipped_name(base_path)} ({begin})"


def with_plan_mode(policy: Policy) -> Policy:
    """Return `policy` with plan mode's policy over it. Pure but for the shipped file. Raises PolicyError.

    INVARIANT: nothing is decided more laxly than by `policy`, no command but one that only reads runs, and no file is
    written: an auto rule counts for reading files, and for tools from outside that only read, a confirm rule refuses (it
    would lift a refusal by default, see verdict.evaluate), and readers run, and files are read, only where `policy` lets
    them. Of tools from outside that can do nothing but read, `policy` decides.
    """
    return put_over(policy, load_policy(shipped_policy_path("plan"), layer=Layer.SHIPPED))


def held_to_reading(policy: Policy) -> Policy:
    """Return `policy` with the policy of helpers that only read over it; what holds of plan mode holds of it. Raises
    PolicyError.
    """
    return put_over(policy, load_policy(shipped_policy_path("helper"), layer=Layer.SHIPPED))


def put_over(policy: Policy, overlay: Policy) -> Policy:
    """Return `policy` with plan mode's `overlay` over it, as `with_plan_mode` says.

    An `auto` of the overlay counts for a tool of which `policy` says something itself, by name or by `default`: the
    stricter of the two then decides. Of a tool that `policy` is silent on, it would make an `auto` out of a `confirm`.
    """
    if not any(readers.on for readers in policy.readers):
        overlay = replace(overlay, readers=())
    stated = {default.tool for default in policy.defaults}
    counting = tuple(
        replace(default, spares_reading=default.tool == "default")
        for default in overlay.defaults
        if default.decision is not Decision.AUTO or not stated.isdisjoint((default.tool, "default"))
    )
    overlay = replace(overlay, defaults=counting)
    rules = tuple(_tightened(rule) for rule in policy.rules if rule.decision is not Decision.AUTO or _reads(rule))
    below = replace(
        policy, rules=rules, sandbox_tables=tuple(sandbox.tightening() for sandbox in policy.sandbox_tables)
    )
    return combine((below, overlay))


def _tightened(rule: Rule) -> Rule:
    return replace(rule, decision=Decision.DENY) if rule.decision is Decision.CONFIRM else rule


def _reads(rule: Rule) -> bool:
    """Say whether an auto rule is about reading, and nothing else: of files, or by tools that its author takes to only read."""
    only_read = rule.files is not None and rule.files.access == (Access.READ,)
    return rule.argv is None and (rule.only_reads or only_read)
