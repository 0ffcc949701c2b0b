"""The policies in force: the layers of this machine, user and project, read and combined."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence

from harness.actions import Access, Decision
from harness.errors import PolicyError, UsageError
from harness.files.repository import work_top
from harness.files.workspace import Workspace
from harness.policy.loader import SHIPPED, load_policy, shipped_policy_path
from harness.policy.policy import Policy, PolicySource, combine, tightening_only
from harness.policy.rules import Layer, Rule
from harness.record import replace
from harness.session.state import MANAGED_POLICY, PROJECT_POLICY, State
from harness.text.visible import visible_line

_BASES = (Layer.FILE, Layer.USER, Layer.SHIPPED)
"""Layers between the machine's and the project's. Exactly one of them is in force at a time."""


def assemble(
    state: State,
    workspace: str,
    *,
    names: str | Sequence[str] | None,
    fallback: str,
    pinned: str | None = None,
    examples: bool = True,
) -> Policy:
    """Return the policy in force in `workspace`, combined from its layers.

    They are the managed policy; then `names`, or else the user's or the shipped `fallback`; then the project's, which
    only tightens unless the user has trusted exactly its content; then that of the repository's top, if the workspace is
    a folder below, which only tightens.

    `pinned` is the SHA-256 that the policy of `names` must have. `examples` says whether examples are tried, unless an
    earlier run has tried them; those of shipped policies only by our tests and `harness policy check`.

    Raises UsageError for `pinned` without `names`. Raises PolicyError for another digest, and for a layer that cannot
    be read or parsed: an invalid layer is never skipped.
    """
    policy = _in_force(state, workspace, names, fallback, pinned, examples=False)
    has_own_rules = not all(shipped_name(source.path) for source in policy.sources)
    if examples and has_own_rules and not state.has_tried(policy.sha256):
        policy = _in_force(state, workspace, names, fallback, pinned, examples=True)
        state.note_tried(policy.sha256)
    return policy


def _in_force(
    state: State,
    workspace: str,
    names: str | Sequence[str] | None,
    fallback: str,
    pinned: str | None,
    *,
    examples: bool,
) -> Policy:
    """Return the policy of `assemble`, with all examples tried or with none."""
    layers = []
    if os.path.lexists(MANAGED_POLICY):
        layers.append(managed_policy(MANAGED_POLICY, examples=examples))
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
    top_policy = policy_above(workspace, state.home)
    if top_policy:
        layers.append(_policy_of_top(top_policy, workspace, examples))
    # No call may write the policies, the trust file or the logs.
    return combine(layers).guarding(*state.guarded, *filter(None, (top_policy,)))


def policy_above(workspace: str, home: str) -> str:
    """Return the path of the policy at the top of the repository around `workspace`, a folder below it.

    Only its part that tightens is in force in `workspace`, with patterns relative to the top. Empty without one.
    """
    top = work_top(workspace, home)
    path = os.path.join(top, PROJECT_POLICY)
    return path if top != workspace and os.path.lexists(path) else ""


def managed_policy(path: str, *, owner: int = 0, examples: bool = True) -> Policy:
    """Return the managed policy at `path`. `owner` is the user ID that its files must have: root.

    Raises PolicyError for an invalid policy, and if another user could have written one of its files.
    """
    policy = load_policy(path, layer=Layer.MANAGED, examples=examples)
    for source in policy.sources:
        _check_managed(source.path, owner)
    return policy


def load_named(policy_names: str | Sequence[str], *, examples: bool = True) -> Policy:
    """Load the policies that `--policy` names (by file or shipped name) and combine them: the strictest decides.

    `examples` as in `assemble`. Raises PolicyError.
    """
    names = (policy_names,) if isinstance(policy_names, str) else tuple(dict.fromkeys(policy_names))
    return combine([load_policy(name, examples=examples and name not in SHIPPED) for name in names])


class PolicyInForce:
    """The policy that `--policy FILE` puts in force in each workspace, with the managed and the project's policy."""

    def __init__(self, policy_names: str | Sequence[str], environment: Mapping[str, str], *guarded: str) -> None:
        """Keep the policies' files or shipped names, and further files that no call may write.

        Raises PolicyError at once for a policy that does not load.
        """
        load_named(policy_names)
        self._policy_names = policy_names
        self._state = State.of(environment)
        self._guarded = guarded
        self._policies: dict[str, Policy] = {}

    def at(self, workspace: Workspace) -> Policy:
        """Return the policy in force in `workspace`. Raises PolicyError."""
        policy = self._policies.get(workspace.root)
        if policy is None:
            policy = assemble(self._state, workspace.root, names=self._policy_names, fallback="default")
            self._policies[workspace.root] = policy = policy.guarding(*self._guarded)
        return policy


def with_digest(policy: Policy, sha256: str | None) -> Policy:
    """Return `policy` after checking that its digest is `sha256` (`None`: no check).

    The digest is that of its file, or `Policy.sha256` for several files.

    Raises PolicyError for another digest.
    """
    if sha256 not in (None, policy.sha256):
        paths = ", ".join(source.path for source in policy.sources)
        raise PolicyError(
            f"{paths}: its SHA-256 is {policy.sha256}, and --policy-sha256 says {sha256}{note_on_updates(policy)}"
        )
    return policy


def note_on_updates(policy: Policy) -> str:
    """Return a clause with the shipped files in a policy, which an update can change. Empty if it has none."""
    names = ", ".join(sorted(filter(None, (shipped_name(source.path) for source in policy.sources))))
    return f"; an update of harness may have changed the shipped {names}" if names else ""


def _project_policy(state: State, path: str, examples: bool) -> Policy:
    policy = load_policy(path, layer=Layer.PROJECT, examples=examples)
    return policy if state.is_trusted(policy.sha256) else tightening_only(policy)


def _policy_of_top(path: str, workspace: str, examples: bool) -> Policy:
    """Return the part of the policy at `path` that holds in `workspace`, a folder below that of the policy.

    Its places in `[sandbox]` are left out but for what it hides.
    """
    top = os.path.dirname(os.path.dirname(path))
    policy = tightening_only(load_policy(path, layer=Layer.REPOSITORY, examples=examples))
    return replace(
        policy,
        rules=tuple(
            replace(rule, matchers=tuple(matcher.seen_from(workspace, top) for matcher in rule.matchers))
            for rule in policy.rules
        ),
        sandbox_tables=tuple(table.seen_from(top) for table in policy.sandbox_tables),
    )


def _check_managed(path: str, owner: int) -> None:
    """Raise PolicyError for a file of the managed policy that users other than its owner could have written."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise PolicyError(f"{path}: cannot be read: {error.strerror}") from None
    if status.st_uid != owner or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PolicyError(
            f"{path}: the managed policy, and each file that it extends, must belong to root and be writable by root alone"
        )


def describe(policy: Policy, state: State) -> str:
    """Return a short description of the policy: its layers, the source and digest of each, and ended trust."""
    parts = []
    for source in policy.sources:
        has_changed = not source.trusted and state.was_trusted(os.path.realpath(source.path))
        reason = "changed since you trusted it" if has_changed else "not trusted"
        note = "" if source.trusted else f", {reason}: only what tightens counts"
        parts.append(f"{source_name(source)} ({source.sha256[:12]}{note})")
    return "; ".join(parts)


def source_name(source: PolicySource) -> str:
    """Return a name for a policy's file: `shipped NAME` for one of the program's own, otherwise layer and path."""
    name = shipped_name(source.path)
    return f"shipped {name}" if name else f"{source.layer.value} {visible_line(source.path, 1_000)}"


def shipped_name(path: str) -> str:
    """Return the name of the shipped policy whose file is at `path`; empty for any other file."""
    folder, name = os.path.split(path)
    return name.removesuffix(".toml") if folder in _shipped_folders() else ""


def without_shipped_folder(text: str) -> str:
    """Remove the folder of the shipped policies from a text, since users should not edit files there."""
    for folder in _shipped_folders():
        text = text.replace(f"{folder}/", "")
    return text


def _shipped_folders() -> tuple[str, str]:
    """Return the folders of the policies that users choose, and of those that the program puts over them."""
    return os.path.dirname(shipped_policy_path(SHIPPED[0])), os.path.dirname(_overlay_path(""))


def _overlay_path(name: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.toml")


def home_of_rules(policy: Policy, state: State) -> str:
    """Describe the file for the user's own rules while `policy` is in force. It is never a file of the program."""
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
    """Return `policy` with plan mode's policy over it. Reads only the shipped file. Raises PolicyError.

    INVARIANT: no decision is laxer than that of `policy`, only read-only commands run, and no file is written. Auto
    rules count only for reading files and for read-only tools from outside. Confirm rules refuse, since they would lift
    a refusal by default (see verdict.evaluate). Readers run and files are read only if `policy` permits it. For tools
    from outside that can only read, `policy` decides.
    """
    return put_over(policy, load_policy(_overlay_path("plan"), layer=Layer.SHIPPED))


def held_to_reading(policy: Policy) -> Policy:
    """Return `policy` with the policy of read-only helpers over it. Raises PolicyError.

    The INVARIANT of `with_plan_mode` applies.
    """
    return put_over(policy, load_policy(_overlay_path("helper"), layer=Layer.SHIPPED))


def put_over(policy: Policy, overlay: Policy) -> Policy:
    """Return `policy` with plan mode's `overlay` over it, as `with_plan_mode` says.

    An `auto` default of the overlay counts only for a tool that `policy` itself has a default for, by name or by
    `default`; the stricter of the two then decides. For any other tool it would turn a `confirm` into an `auto`.
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
    """Return whether an auto rule covers reading only: of files, or by tools that its author marked as read-only."""
    only_read = rule.files is not None and rule.files.access == (Access.READ,)
    return rule.argv is None and (rule.only_reads or only_read)
