"""Policy: rules and defaults in, a verdict out; pure, and the only place that decides.

The strictest matching rule wins; defaults speak only where no rule matches; order means nothing. An auto rule must
cover a facet wholly, a stricter rule needs to touch it. What is built in (built_in.py) stands above every rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import assert_never

from harness.actions import Access, Act, Action, Command, Effects, Facet, Opaque, PathAccess, ToolUse, Unconfined
from harness.limits import Limits
from harness.policy.built_in import Finding, Severity, inspect_facet
from harness.policy.effects import Grants, Sandbox, effects_of, granted_by, is_open_ended
from harness.policy.rules import UNCOVERED, Decision, Layer, Origin, Readers, Rule, ToolDefault
from harness.programs.catalog import harmless_for
from harness.programs.runners import INTERPRETERS
from harness.programs.variables import steers
from harness.record import Record, replace
from harness.tool_kinds import WRITE_FILE


class Source(Enum):
    """What kind of thing decided a facet."""

    RULE = "rule"
    DEFAULT = "default"
    BUILT_IN = "built-in"
    OPAQUE = "opaque"
    SUSPENDED = "suspended"
    """An auto rule whose entry point was changed in this session before a person had seen the change."""
    READER = "reader"
    """The model of a program that only looks, where the policy says `readers = true`."""
    MODEL = "model"
    """The model of a program that does nothing but run another command, which is judged by itself."""
    COVERED = "covered"
    """An operand, or the reading of a new file, with nothing against it: the command, or the write, decides."""


class PolicySource(Record):
    """A file that a policy was made of."""

    layer: Layer
    path: str
    content: bytes
    trusted: bool = True
    """Whether its auto rules count."""

    @property
    def sha256(self) -> str:
        """Digest of the file as it was read."""
        import hashlib

        return hashlib.sha256(self.content).hexdigest()


class Policy(Record):
    """Everything that decides, immutable; made by policy_file.load_policy and `combine`."""

    name: str
    rules: tuple[Rule, ...]
    defaults: tuple[ToolDefault, ...]
    limits: Limits
    unattended: Decision
    """What CONFIRM becomes with nobody to ask: DENY or BLOCK."""
    sources: tuple[PolicySource, ...]
    guarded: tuple[str, ...] = ()
    """Absolute paths that no call may write: the policy files, the trust file and the log in use."""
    readers: tuple[Readers, ...] = ()
    sandboxes: tuple[Sandbox, ...] = ()
    """What the files say under [sandbox], one entry a file that says anything."""

    @property
    def grants(self) -> Grants:
        """What a command gets that no model bounds and a person approved, all files together."""
        return granted_by(self.sandboxes)

    @property
    def sha256(self) -> str:
        """The file's digest; of several files, a digest over theirs, their layers and whether they are trusted."""
        if len(self.sources) == 1:
            return self.sources[0].sha256
        import hashlib

        lines = sorted(f"{source.layer.value} {source.sha256} {source.trusted}" for source in self.sources)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def guarding(self, *paths: str) -> Policy:
        """Return this policy with `paths` (absolute files or folders) added to what no call may write."""
        return replace(self, guarded=tuple(dict.fromkeys((*self.guarded, *paths))))


class FacetVerdict(Record):
    """The decision on one facet, and what made it."""

    facet: Facet
    decision: Decision
    source: Source
    reason: str
    rules: tuple[Rule, ...] = ()
    hint: str = ""
    by: str = ""
    """What decided, for people: a rule's id and place, or a default's place."""
    layer: Layer = Layer.BUILT_IN
    """Whose word it was."""
    origin: Origin | None = None
    """Where that stands; None for what stands in no policy."""

    @property
    def rule(self) -> str | None:
        """The id of the rule that decided, if one did."""
        return self.rules[0].id if self.rules else None


class Verdict(Record):
    """The decision on an action."""

    decision: Decision
    facets: tuple[FacetVerdict, ...]
    effects: Effects
    """What a run would be confined to."""
    notes: tuple[str, ...] = ()
    """What a person should see besides the action: changes of entry points that nobody has looked at."""

    @property
    def deciding(self) -> FacetVerdict:
        """The first facet that is as strict as the whole; one that says more than that another decides, if there is one."""
        strictest = [facet for facet in self.facets if facet.decision is self.decision]
        order = (Source.DEFAULT, Source.MODEL, Source.COVERED)  # of these, the later says the less
        return min(strictest, key=lambda facet: order.index(facet.source) + 1 if facet.source in order else 0)

    @property
    def shown(self) -> tuple[FacetVerdict, ...]:
        """The facets that are worth a line: all but the operands with nothing against them."""
        return tuple(facet for facet in self.facets if facet.source is not Source.COVERED)

    @property
    def from_default(self) -> bool:
        """Whether the decision came from defaults alone, so that a rule for it could be written."""
        return all(f.source is Source.DEFAULT for f in self.facets if f.decision is self.decision)


def evaluate(policy: Policy, action: Action, suspended: tuple[str, ...] = ()) -> Verdict:
    """Return the verdict of `policy` on `action`.

    `suspended` names entry points (Makefile, conftest.py ...) that were changed in this session without a person having
    seen it: while there are any, auto rules for commands that may run them ask. Pure; total over every Action.
    """
    verdict = _verdict(policy, action, suspended)
    if not action.default_of or verdict.decision is Decision.AUTO:
        return verdict
    # INVARIANT: no refusal and no question tells whether the call would have changed anything, hence what a file holds.
    plain = _verdict(policy, replace(action, default_of=""), suspended)
    return plain if plain.decision >= verdict.decision else verdict


def asking_about(verdict: Verdict, reasons: tuple[str, ...]) -> Verdict:
    """Return a verdict that asks about what cannot be taken back, where the policy would let it run unasked."""
    if verdict.decision is not Decision.AUTO:
        return verdict
    asked = replace(
        verdict.deciding,
        decision=Decision.CONFIRM,
        source=Source.BUILT_IN,
        rules=(),
        reason="; ".join(reasons),
        by="built-in destroys",
        layer=Layer.BUILT_IN,
        origin=None,
    )
    facets = tuple(asked if facet is verdict.deciding else facet for facet in verdict.facets)
    return replace(verdict, decision=Decision.CONFIRM, facets=facets)


def _verdict(policy: Policy, action: Action, suspended: tuple[str, ...]) -> Verdict:
    concerned = _Concerned(policy.rules, action)
    facets = tuple(_judge(policy, concerned, action, facet, suspended) for facet in action.all_facets())
    decision = max(facet.decision for facet in facets)
    return Verdict(decision=decision, facets=facets, effects=_effects(policy, facets, decision))


def _effects(policy: Policy, facets: Sequence[FacetVerdict], decision: Decision) -> Effects:
    """Return what a run may do: what models tell, and what rules, or the policy for what a person approves, grant."""
    asked = decision is not Decision.AUTO
    by_rules = [facet for facet in facets if facet.source is Source.RULE and facet.decision is Decision.AUTO]
    return effects_of(
        (facet.facet for facet in facets),
        autos=dict.fromkeys(rule for facet in by_rules for rule in facet.rules),
        asked=asked,
        open_ended=any(is_open_ended(f.facet) and (asked or f not in by_rules) for f in facets),
        sandboxes=policy.sandboxes,
        keep=policy.guarded,
    )


class _Concerned:
    """The rules that can say anything about a kind of facet at all: the others need not be asked."""

    def __init__(self, rules: Sequence[Rule], action: Action) -> None:
        self._own = {id(facet) for facet in action.facets}
        self._has_commands = any(isinstance(facet, Command) for facet in action.facets)
        self._on_trees: dict[tuple[object, ...], bool] = {}
        strict = [rule for rule in rules if rule.decision is not Decision.AUTO]
        autos = [rule for rule in rules if rule.decision is Decision.AUTO]
        self._strict_on_paths = [rule for rule in strict if rule.argv is None and not rule.env]
        self._strict_on_others = [rule for rule in strict if rule.argv is not None or rule.env or rule.path is None]
        self._autos_on_paths = [rule for rule in autos if rule.argv is None]
        self._autos_on_others = [rule for rule in autos if rule.argv is not None]

    def is_operand(self, facet: Facet) -> bool:
        """Say whether a path is one of a command's, and not a part of the action by itself."""
        return isinstance(facet, PathAccess) and id(facet) not in self._own

    def reads_for_commands(self, facet: Facet) -> bool:
        """Say whether a facet is a file that commands are given to read."""
        return isinstance(facet, PathAccess) and facet.access is Access.READ and self._has_commands

    def hits(self, rule: Rule, action: Action, facet: Facet) -> bool:
        """Say whether a strict rule touches a facet; of a tree that occurs again, the answer is known."""
        if not isinstance(facet, PathAccess) or not facet.below:
            return rule.hits(action, facet)
        key = (id(rule), facet.names, facet.access, id(facet.below))
        if key not in self._on_trees:
            self._on_trees[key] = rule.hits(action, facet)
        return self._on_trees[key]

    def strict(self, facet: Facet) -> Sequence[Rule]:
        return self._strict_on_paths if isinstance(facet, PathAccess) else self._strict_on_others

    def autos(self, facet: Facet) -> Sequence[Rule]:
        return self._autos_on_paths if isinstance(facet, PathAccess) else self._autos_on_others


def _judge(
    policy: Policy, concerned: _Concerned, action: Action, facet: Facet, suspended: tuple[str, ...]
) -> FacetVerdict:
    """Return the strictest of what rules and defaults say and what is built in."""
    candidates = [_by_rules(policy, concerned, action, facet, suspended)]
    finding = inspect_facet(facet, policy.guarded)
    if finding is not None:
        candidates.append(_from_finding(facet, finding))
    if isinstance(facet, Opaque):
        candidates.append(_from_opaque(facet))
    if isinstance(facet, Unconfined) and (origin := policy.grants.required) is not None:
        candidates.append(_from_required(policy, facet, origin))
    # Where they are equally strict, a default says the least about why.
    strictest = max(candidates, key=lambda verdict: (verdict.decision, verdict.source is not Source.DEFAULT))
    if isinstance(facet, Opaque) and strictest.source is Source.DEFAULT:
        opaque = _from_opaque(facet)
        return replace(strictest, reason=f"{strictest.reason}; it was {opaque.reason}", hint=opaque.hint)
    return strictest


def _by_rules(
    policy: Policy, concerned: _Concerned, action: Action, facet: Facet, suspended: tuple[str, ...]
) -> FacetVerdict:
    hits = [rule for rule in concerned.strict(facet) if concerned.hits(rule, action, facet)]
    if hits:
        return _by_strict_rules(policy, action, facet, hits, operand=concerned.is_operand(facet))
    if concerned.is_operand(facet) or (isinstance(facet, PathAccess) and facet.new):
        reason = "an operand of its command" if concerned.is_operand(facet) else "a new file shows nothing"
        return FacetVerdict(facet=facet, decision=Decision.AUTO, source=Source.COVERED, reason=reason)
    autos = () if _runs_its_input(facet) else tuple(r for r in concerned.autos(facet) if r.covers(action, facet))
    tool = _tool_of(action, facet)
    floor = _managed_floor(policy, tool, facet)
    if autos and floor is not None and not any(rule.layer is Layer.MANAGED for rule in autos):
        return _by_default(policy, tool, facet, unlifted=autos)
    if autos and all(rule.layer is Layer.SESSION for rule in autos):  # grants lift a question, no refusal by default
        default = _by_default(policy, tool, facet, unlifted=autos)
        if default.decision > Decision.CONFIRM:
            return default
    if autos:
        return _by_auto_rules(facet, autos, suspended)
    if isinstance(facet, Command) and (verdict := _by_model(policy, facet, floor)) is not None:
        return verdict
    if concerned.reads_for_commands(facet) and (verdict := _by_reading(policy, facet, floor)) is not None:
        return verdict
    verdict = _by_default(policy, tool, facet)
    if isinstance(facet, Command) and facet.gap and not verdict.hint and _readers(policy, floor) is not None:
        return replace(verdict, hint=f"It is not known to only look: {facet.gap}.")
    return verdict


def _runs_its_input(facet: Facet) -> bool:
    """Say whether a command runs what it is fed: an interpreter that no word tells what to run. No rule accounts for that."""
    if not isinstance(facet, Command) or not facet.fed or any(word[:1] != "-" for word in facet.argv[1:]):
        return False
    name = facet.argv[0].rpartition("/")[2]
    return not {name, name.rstrip("0123456789.-")}.isdisjoint(INTERPRETERS - {"make", "env"})


def _by_model(policy: Policy, command: Command, floor: ToolDefault | None) -> FacetVerdict | None:
    """Return AUTO for a command that its model covers and that does no more than look, or run another one; else None.

    What it reads are facets of their own, which are judged like all others.
    """
    if command.network or any(path.access is not Access.READ for path in command.paths):
        return None
    if command.act is Act.WRAPS and not any(steers(name) for name in command.variables):
        return FacetVerdict(
            facet=command,
            decision=Decision.AUTO,
            source=Source.MODEL,
            reason="it only runs another command, or changes the folder",
            by=f"model of {command.model}",
        )
    if command.act not in (Act.LOOKS, Act.WRAPS):
        return None
    if not all(harmless_for(command.model, name) for name in command.variables):
        return None
    readers = _readers(policy, floor)
    if readers is None:
        return None
    return FacetVerdict(
        facet=command,
        decision=Decision.AUTO,
        source=Source.READER,
        reason="it only reads",
        by=f"model of {command.model}, readers ({readers.origin})",
        layer=readers.layer,
        origin=readers.origin,
    )


def _by_reading(policy: Policy, path: Facet, floor: ToolDefault | None) -> FacetVerdict | None:
    """Return AUTO for a file that commands in a group or a loop are given to read (`done < list`); else None."""
    readers = _readers(policy, floor)
    if readers is None:
        return None
    return FacetVerdict(
        facet=path,
        decision=Decision.AUTO,
        source=Source.READER,
        reason="it is only read",
        by=f"readers ({readers.origin})",
        layer=readers.layer,
        origin=readers.origin,
    )


def _readers(policy: Policy, floor: ToolDefault | None) -> Readers | None:
    """Return the line that lets readers run, or None: one no is enough, and a managed floor needs a managed yes."""
    if not all(readers.on for readers in policy.readers):
        return None
    counted = (readers for readers in policy.readers if floor is None or readers.layer is Layer.MANAGED)
    return next(counted, None)


def _by_strict_rules(
    policy: Policy, action: Action, facet: Facet, hits: Sequence[Rule], *, operand: bool
) -> FacetVerdict:
    strictest = max(rule.decision for rule in hits)
    rules = tuple(rule for rule in hits if rule.decision is strictest)
    stricter = None if operand else _default_not_lifted(policy, action, facet, rules)
    if stricter is not None:
        return stricter
    return FacetVerdict(
        facet=facet,
        decision=strictest,
        source=Source.RULE,
        reason=(rules[0].reason or f"the policy says {strictest.word}") + _which_below(rules[0], facet),
        hint=rules[0].hint,
        rules=rules,
        by=f"rule {rules[0].label}",
        layer=rules[0].layer,
        origin=rules[0].origin,
    )


def _which_below(rule: Rule, facet: Facet) -> str:
    """Name the file for which a rule forbids a whole tree."""
    if not isinstance(facet, PathAccess) or not facet.tree or rule.path is None or rule.path.hits(facet.names):
        return ""
    name = rule.meant_below(facet)
    if not facet.tracked:
        return f" ({name} lies below {facet.written})"
    return f" (git tracks {name}" + (f"; -- . ':!{name}' leaves it out)" if facet.names == (".",) else ")")


def _by_auto_rules(facet: Facet, autos: tuple[Rule, ...], suspended: tuple[str, ...]) -> FacetVerdict:
    if suspended and isinstance(facet, Command):
        return FacetVerdict(
            facet=facet,
            decision=Decision.CONFIRM,
            source=Source.SUSPENDED,
            reason=f"{', '.join(suspended)} changed in this session and nobody has looked at it yet",
            rules=autos,
            by=f"rule {autos[0].label}, suspended",
            layer=autos[0].layer,
            origin=autos[0].origin,
        )
    return FacetVerdict(
        facet=facet,
        decision=Decision.AUTO,
        source=Source.RULE,
        reason=autos[0].reason,
        rules=autos,
        by=f"rule {autos[0].label}",
        layer=autos[0].layer,
        origin=autos[0].origin,
    )


def _default_not_lifted(policy: Policy, action: Action, facet: Facet, rules: tuple[Rule, ...]) -> FacetVerdict | None:
    """Return the verdict by default where it is stricter than `rules` (of one decision) and they must not lift it.

    A deny rule lifts nothing; a confirm rule lifts neither a managed default, unless it is managed itself, nor, in a
    project that nobody trusts, the default of another layer.
    """
    layers = {rule.layer for rule in rules}
    lifting = layers - {source.layer for source in policy.sources if not source.trusted}
    tool = _tool_of(action, facet)
    kept = tuple(
        default
        for default in _defaults_for(policy.defaults, tool, facet)
        if rules[0].decision is not Decision.CONFIRM
        or (default.layer not in layers and (default.layer is Layer.MANAGED or not lifting))
    )
    if max((default.decision for default in kept), default=Decision.AUTO) <= rules[0].decision:
        return None
    return _by_default(replace(policy, defaults=kept), tool, facet, unlifted=rules)


def _tool_of(action: Action, facet: Facet) -> str:
    """Return the tool whose default speaks of a facet."""
    reads = isinstance(facet, PathAccess) and facet.access is Access.READ
    return action.default_of or (action.reads_as if reads else "") or action.tool


def _managed_floor(policy: Policy, tool: str, facet: Facet) -> ToolDefault | None:
    """Return the managed default for a tool, if it is stricter than auto: only managed rules lift that."""
    found = [d for d in _defaults_for(policy.defaults, tool, facet) if d.layer is Layer.MANAGED]
    strictest = max(found, key=lambda default: default.decision, default=None)
    return None if strictest is None or strictest.decision is Decision.AUTO else strictest


def _by_default(policy: Policy, tool: str, facet: Facet, unlifted: tuple[Rule, ...] = ()) -> FacetVerdict:
    """Return what the strictest default says. `unlifted` are rules that match, and do not lift it."""
    stated = _defaults_for(policy.defaults, tool, facet)
    strictest = max(stated, key=lambda default: default.decision, default=None)
    if strictest is None:
        return FacetVerdict(
            facet=facet,
            decision=Decision.CONFIRM,
            source=Source.DEFAULT,
            reason=f"no policy names the tool {tool}",
            by="no rule and no default",
        )
    why = f"rule {unlifted[0].label} does not lift it" if unlifted else "no rule matches"
    uncovered = strictest.tool == UNCOVERED
    gap = facet.gap if uncovered and isinstance(facet, Command) else ""
    return FacetVerdict(
        facet=facet,
        decision=strictest.decision,
        source=Source.DEFAULT,
        reason=f"{why}, and {'what no model covers' if uncovered else tool} is {strictest.decision.word} by default",
        hint=f"It is not known what it does: {gap}." if gap else "",
        by=f"default for {strictest.what} ({strictest.origin})",
        layer=strictest.layer,
        origin=strictest.origin,
    )


def _defaults_for(defaults: Sequence[ToolDefault], tool: str, facet: Facet) -> list[ToolDefault]:
    """Return what each file says of `tool`: by its name, else by the file's `default`; and of what no model covers."""
    by_file: dict[tuple[Layer, str], ToolDefault] = {}
    for default in defaults:
        key = (default.layer, default.origin.file)
        if default.tool == tool or (default.tool == "default" and key not in by_file):
            by_file[key] = default
    uncovered = [default for default in defaults if default.tool == UNCOVERED and _is_uncovered(facet)]
    return [*by_file.values(), *uncovered]


def _is_uncovered(facet: Facet) -> bool:
    """Say whether no model tells what a command does; none does for a program that a variable steers."""
    match facet:
        case Command():
            return facet.act is Act.UNKNOWN or any(map(steers, facet.variables))
        case Opaque():
            return True
        case PathAccess() | Unconfined() | ToolUse():
            return False
        case _:
            assert_never(facet)


def _from_finding(facet: Facet, finding: Finding) -> FacetVerdict:
    decision = Decision.BLOCK if finding.severity is Severity.BLOCK else Decision.CONFIRM
    return FacetVerdict(
        facet=facet,
        decision=decision,
        source=Source.BUILT_IN,
        reason=finding.reason,
        by=f"built-in {finding.id}",
    )


def _from_required(policy: Policy, facet: Unconfined, origin: Origin) -> FacetVerdict:
    return FacetVerdict(
        facet=facet,
        decision=Decision.DENY,
        source=Source.RULE,
        reason="the policy requires that every command is confined",
        hint="Send the call again without `unconfined`.",
        by=f"[sandbox] required ({origin})",
        layer=next((source.layer for source in policy.sources if source.path == origin.file), Layer.FILE),
        origin=origin,
    )


def _from_opaque(facet: Opaque) -> FacetVerdict:
    if not facet.whole:  # a rule may be about any of the words that nobody looked at, so that there is nothing to ask
        return FacetVerdict(
            facet=facet,
            decision=Decision.DENY,
            source=Source.OPAQUE,
            reason=f"not plainly understood: {facet.reason}; and too many of its words may be files",
            hint=f"Write large files with {WRITE_FILE.name}, and send a long command in pieces.",
            by="built-in opaque",
        )
    return FacetVerdict(
        facet=facet,
        decision=Decision.CONFIRM,
        source=Source.OPAQUE,
        reason=f"not plainly understood: {facet.reason} at column {facet.column}",
        hint="Plain commands joined by && or | are understood; the folder is set by the cwd argument.",
        by="built-in opaque",
    )
