"""Policy: everything that decides, put together from files. What follows from it for a call is in verdict.py."""

from __future__ import annotations

from harness.actions import Access, Command, Decision, Opaque, PathAccess
from harness.limits import Limits
from harness.policy.effects import Sandbox, SandboxTable, sandbox_of
from harness.policy.hosts import HostPattern
from harness.policy.rules import Layer, Rule
from harness.policy.tool_defaults import Readers, ToolDefault, stated_defaults
from harness.record import Record, replace
from harness.tool_kinds import Does, is_named, tool_kind


class PolicySource(Record):
    """A file that a policy was made of."""

    layer: Layer
    path: str
    content: bytes
    trusted: bool = True
    """Whether its auto rules count."""
    without_match: frozenset[str] = frozenset()
    """The ids of its rules that give no example of what they match."""

    @property
    def sha256(self) -> str:
        """Digest of the file as it was read."""
        return _digest(self.content)


class Policy(Record):
    """Everything that decides, immutable; made by `load_policy` and `combine` (loader.py)."""

    name: str
    rules: tuple[Rule, ...]
    defaults: tuple[ToolDefault, ...]
    limits: Limits
    unattended: Decision
    """Decision in place of CONFIRM without a person: DENY or BLOCK."""
    sources: tuple[PolicySource, ...]
    guarded: tuple[str, ...] = ()
    """Absolute paths that no call may write: the policy files, the trust file and the log in use."""
    readers: tuple[Readers, ...] = ()
    sandbox_tables: tuple[SandboxTable, ...] = ()
    """The [sandbox] of each file that has one."""

    @property
    def named_hosts(self) -> tuple[HostPattern, ...]:
        """The hosts that rules name for connections, at least with a person's yes, without those of an untrusted
        project.
        """
        untrusted = {source.layer for source in self.sources if not source.trusted}
        may = [rule for rule in self.rules if rule.decision <= Decision.CONFIRM and rule.layer not in untrusted]
        return tuple(dict.fromkeys(pattern for rule in may for pattern in rule.goes_to))

    @property
    def sandbox(self) -> Sandbox:
        """The bounds of an approved command without a model, from all files together."""
        return sandbox_of(self.sandbox_tables)

    @property
    def sha256(self) -> str:
        """The file's digest; of several files, a digest over theirs, their layers and whether they are trusted."""
        if len(self.sources) == 1:
            return self.sources[0].sha256
        lines = sorted(f"{source.layer.value} {source.sha256} {source.trusted}" for source in self.sources)
        return _digest("\n".join(lines).encode())

    def guarding(self, *paths: str) -> Policy:
        """Return this policy with `paths` (absolute files or folders) added to what no call may write."""
        return replace(self, guarded=tuple(dict.fromkeys((*self.guarded, *paths))))


def _digest(content: bytes) -> str:
    from harness.digest import digest_of

    return digest_of(content)


def denies_altogether(policy: Policy, tool: str) -> bool:
    """Return whether no call of `tool` can run: its default refuses, and no rule or reader could lift that.

    It errs towards False: a tool that is on offer is still judged call by call.
    """
    stated = stated_defaults(policy.defaults, tool)
    does = tool_kind(tool).does
    if (
        does is Does.OTHER
    ):  # of tools that can do nothing but read, and of those that stay here, no other default speaks
        stated = [default for default in stated if default.tool != "default" and not default.spares_reading]
    if all(default.decision < Decision.DENY for default in stated):
        return False
    if does is Does.RUNS and any(readers.on for readers in policy.readers):
        return False
    return not any(_may_lift(rule, tool, does) for rule in policy.rules)


def _may_lift(rule: Rule, tool: str, does: Does) -> bool:
    """Return whether a rule might let a call of the tool run, or have it asked about."""
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
