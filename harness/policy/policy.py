"""Policy: the rules, defaults and limits of all policy files. verdict.py applies them to a call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from harness.actions import Access, Action, Command, Decision, Opaque, PathAccess
from harness.declared_types import check_arguments
from harness.errors import PolicyError
from harness.limits import Limits, strictest
from harness.policy.effects import Sandbox, SandboxTable, sandbox_of
from harness.policy.hosts import HostPattern
from harness.policy.matchers import FileMatcher
from harness.policy.rule_index import RuleIndex
from harness.policy.rules import Layer, Rule
from harness.policy.tool_defaults import Readers, ToolDefault, stated_defaults
from harness.record import Record, replace
from harness.tool_kinds import Does, is_named, tool_kind


class PolicySource(Record):
    """A file that a policy was loaded from."""

    layer: Layer
    path: str
    content: bytes
    trusted: bool = True
    """Whether its auto rules count."""
    extends: tuple[str, ...] = ()
    """The paths of the files that it extends, in the order of its key `extends`."""
    root: str = ""
    """The named file that extends this one. Empty for a file that was named itself."""
    without_match: frozenset[str] = frozenset()
    """The IDs of its rules without `match` examples."""

    @property
    def sha256(self) -> str:
        """Digest of the file's content when it was loaded."""
        return _digest(self.content)


class Policy(Record):
    """All rules, defaults and limits. Immutable; created by `load_policy` (loader.py) and `combine`."""

    name: str
    rules: tuple[Rule, ...]
    defaults: tuple[ToolDefault, ...]
    limits: Limits
    unattended: Decision
    """Decision that replaces CONFIRM if no person can answer: DENY or BLOCK."""
    sources: tuple[PolicySource, ...]
    guarded: tuple[str, ...] = ()
    """Absolute paths that no call may write: the policy files, the trust file and the log in use."""
    readers: tuple[Readers, ...] = ()
    sandbox_tables: tuple[SandboxTable, ...] = ()
    """The [sandbox] of each file that has one."""

    __slots__ = ("__dict__",)

    @cached_property
    def _index(self) -> RuleIndex:
        return RuleIndex(self.rules)

    def narrowed_to(self, action: Action) -> Policy:
        """Return this policy without rules that cannot match a part of `action`. Its verdict is the same."""
        rules = self._index.candidates(action)
        return self if rules is self.rules else replace(self, rules=rules)

    @cached_property
    def named_hosts(self) -> tuple[HostPattern, ...]:
        """The hosts to which rules permit connections, with or without approval. Untrusted files do not count."""
        untrusted = {source.layer for source in self.sources if not source.trusted}
        may = [rule for rule in self.rules if rule.decision <= Decision.CONFIRM and rule.layer not in untrusted]
        return tuple(dict.fromkeys(pattern for rule in may for pattern in rule.goes_to))

    @property
    def unreadable_files(self) -> list[FileMatcher]:
        """The matchers of the files that a rule denies to read."""
        files = [rule.files for rule in self.rules if rule.decision >= Decision.DENY]
        return [matcher for matcher in files if matcher is not None and Access.READ in matcher.access]

    @property
    def sandbox(self) -> Sandbox:
        """The limits of an approved command whose effects are not modelled, from all files together."""
        return sandbox_of(self.sandbox_tables)

    @cached_property
    def sha256(self) -> str:
        """The digest of the file. For several files, a digest of their digests, layers and trust."""
        if len(self.sources) == 1:
            return self.sources[0].sha256
        lines = sorted(f"{source.layer.value} {source.sha256} {source.trusted}" for source in self.sources)
        return _digest("\n".join(lines).encode())

    def guarding(self, *paths: str) -> Policy:
        """Return this policy with `paths` (absolute files or folders) added to the paths that no call may write."""
        return replace(self, guarded=tuple(dict.fromkeys((*self.guarded, *paths))))


def _digest(content: bytes) -> str:
    from harness.digest import digest_of

    return digest_of(content)


def denies_altogether(policy: Policy, tool: str) -> bool:
    """Return whether no call of `tool` can run: its default refuses, and no rule or `readers` line can lift that.

    False if in doubt, since each call of an offered tool is still judged.
    """
    stated = stated_defaults(policy.defaults, tool)
    does = tool_kind(tool).does
    if (
        does is Does.OTHER
    ):  # `default` and defaults of plan mode do not apply to such tools that only read, or that stay here
        stated = [default for default in stated if default.tool != "default" and not default.spares_reading]
    if all(default.decision < Decision.DENY for default in stated):
        return False
    if does is Does.RUNS and any(readers.on for readers in policy.readers):
        return False
    return not any(_may_lift(rule, tool, does) for rule in policy.rules)


def _may_lift(rule: Rule, tool: str, does: Does) -> bool:
    """Return whether a rule might permit a call of the tool, with or without approval."""
    if rule.decision > Decision.CONFIRM or (rule.tools and not is_named(tool, rule.tools)):
        return False
    match does:
        case Does.READS:
            return rule.argv is None and rule.files is not None and Access.READ in rule.files.access
        case Does.WRITES:
            return rule.argv is None and rule.files is not None and Access.WRITE in rule.files.access
        case Does.RUNS:
            may = rule.may_cover if rule.is_auto else rule.may_hit
            return may(Command) or may(Opaque) or may(PathAccess)
        case Does.OTHER:
            return bool(rule.tools) or not rule.has_parts


def combine(policies: Sequence[Policy]) -> Policy:
    """Return one policy from several layers: all rules, all defaults, the strictest limits.

    The order of `policies` does not matter.
    Raises PolicyError if `policies` is empty, or if two rules of one file have the same ID.
    """
    check_arguments(combine, locals())
    if not policies:
        raise PolicyError("no policy was given")
    if len(policies) == 1:
        return policies[0]
    rules_by_id: dict[tuple[Layer, str, str, str], Rule] = {}
    for rule in (rule for policy in policies for rule in policy.rules):
        other = rules_by_id.setdefault((rule.layer, rule.origin.unit, rule.origin.file, rule.id), rule)
        if other is not rule:
            raise PolicyError(f"{rule.origin}: rule {rule.id}: the id is taken by the rule at {other.origin}")
    return Policy(
        name="+".join(policy.name for policy in policies),
        rules=tuple(rule for policy in policies for rule in policy.rules),
        defaults=tuple(default for policy in policies for default in policy.defaults),
        limits=strictest(policy.limits for policy in policies),
        unattended=max(policy.unattended for policy in policies),
        sources=tuple(source for policy in policies for source in policy.sources),
        guarded=tuple(dict.fromkeys(path for policy in policies for path in policy.guarded)),
        readers=tuple(readers for policy in policies for readers in policy.readers),
        sandbox_tables=tuple(sandbox for policy in policies for sandbox in policy.sandbox_tables),
    )


def tightening_only(policy: Policy) -> Policy:
    """Return the part of `policy` that only tightens. A project's other parts count only once a person trusts it."""
    return replace(
        policy,
        rules=tuple(rule for rule in policy.rules if rule.decision is not Decision.AUTO),
        defaults=tuple(default for default in policy.defaults if default.decision is not Decision.AUTO),
        readers=tuple(readers for readers in policy.readers if not readers.on),
        sandbox_tables=tuple(sandbox.tightening() for sandbox in policy.sandbox_tables),
        sources=tuple(replace(source, trusted=False) for source in policy.sources),
    )
