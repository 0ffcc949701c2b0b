"""The verdict on a call: the only place that decides. Pure.

Read `evaluate`, then `_Judge`. The strictest matching rule wins. Defaults decide if no rule matches. The order of rules
does not matter. An auto rule must cover a whole facet; a strict rule only needs to hit it. Built-in decisions
(built_in.py) override every rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import cached_property

from harness.actions import (
    Access,
    Act,
    Action,
    Command,
    Decision,
    Effects,
    Enforcement,
    Facet,
    Opaque,
    PathAccess,
    Place,
    ToolUse,
    Unconfined,
)
from harness.declared_types import check_arguments
from harness.policy.built_in import Severity, inspect_facet, names_protected
from harness.policy.destruction import destroys
from harness.policy.effects import DEFAULT_WRITE, effects_of, is_bounded
from harness.policy.loose_commands import expanded_programs_in, only_prepares, programs_in
from harness.policy.policy import Policy
from harness.policy.rules import Layer, Origin, Rule
from harness.policy.tool_defaults import UNCOVERED, Readers, ToolDefault, defaults_for, needs_its_name
from harness.policy.walls_fit import unfit, walls_decide
from harness.policy.walls_here import COMPLETE, WallsHere
from harness.programs.catalog import harmless_for
from harness.programs.runners import INTERPRETERS, WRAPPERS, is_one_of, name_of
from harness.programs.variables import steers
from harness.record import Record, replace
from harness.text.visible import visible_line
from harness.tool_kinds import WRITE_FILE, Does

_DECISIONS = {Severity.CONFIRM: Decision.CONFIRM, Severity.DENY: Decision.DENY, Severity.BLOCK: Decision.BLOCK}
MOST_LEFT_OUT = 200
"""Maximum number of files hidden from one command because rules deny them."""
_SHOWN_NAME = 100
"""Maximum number of characters shown of an argument's name."""


class Source(Enum):
    """The kind of decider of a facet."""

    RULE = "rule"
    DEFAULT = "default"
    BUILT_IN = "built-in"
    OPAQUE = "opaque"
    SUSPENDED = "suspended"
    """An auto rule that is suspended: an entry point changed in this session, and no person has seen the change yet."""
    READER = "reader"
    """The model of a program that only reads, if the policy has `readers = true`."""
    MODEL = "model"
    """The model of a program that only runs another command, which is judged separately."""
    HOOK = "hook"
    """A program of the user that is run after the policy: see gate/call_checks.py."""
    COVERED = "covered"
    """No decider of its own: the command decides on an operand, the write on the reading of a new file."""


class FacetVerdict(Record):
    """The decision on one facet, and its decider."""

    facet: Facet
    decision: Decision
    source: Source
    reason: str
    rules: tuple[Rule, ...] = ()
    in_walls: bool = False
    """Whether the part may run without a question only because the workspace walls confine it."""
    hint: str = ""
    by: str = ""
    """The decider, for people: a rule's ID and place, or a default's place."""
    layer: Layer = Layer.BUILT_IN
    """The layer of the decider."""
    origin: Origin | None = None
    """Place of the decider in a policy file. `None` if it is in none."""

    @property
    def rule(self) -> str | None:
        """The ID of the deciding rule. `None` if no rule decided."""
        return self.rules[0].id if self.rules else None


class Verdict(Record):
    """The decision on an action."""

    decision: Decision
    facets: tuple[FacetVerdict, ...]
    effects: Effects
    """Effects that the verdict permits. A run is confined to them."""
    notes: tuple[str, ...] = ()
    """Lines for people in addition to the action: unseen changes of entry points."""

    @property
    def deciding(self) -> FacetVerdict:
        """The first facet with the decision of the whole.

        A facet that needs the walls comes before others, and one with an informative source before others.
        """
        strictest = [facet for facet in self.facets if facet.decision is self.decision]
        order = (Source.DEFAULT, Source.MODEL, Source.COVERED)  # less and less informative
        place = {source: number for number, source in enumerate(order, 1)}
        return min(strictest, key=lambda facet: (not facet.in_walls, place.get(facet.source, 0)))

    @property
    def shown(self) -> tuple[FacetVerdict, ...]:
        """The facets to show: all except those with the source COVERED."""
        return tuple(facet for facet in self.facets if facet.source is not Source.COVERED)

    @property
    def from_default(self) -> bool:
        """Whether only defaults led to the decision, so that a rule could change it."""
        return all(f.source is Source.DEFAULT for f in self.facets if f.decision is self.decision)

    @property
    def in_walls(self) -> bool:
        """Whether a part may run without a question only because the workspace walls confine it."""
        return any(facet.in_walls for facet in self.facets)

    @property
    def walled(self) -> tuple[Rule, ...]:
        """The rules and grants for commands inside walls that led to the verdict."""
        return tuple(rule for facet in self.facets for rule in facet.rules if rule.walled)

    @property
    def programs(self) -> frozenset[str]:
        """The IDs of the grants in `walled`."""
        return frozenset(rule.id for rule in self.walled if rule.layer is Layer.SESSION)


def evaluate(
    policy: Policy,
    action: Action,
    suspended: tuple[str, ...] = (),
    *,
    hides: bool = False,
    walls: WallsHere = COMPLETE,
) -> Verdict:
    """Return the verdict of `policy` on `action`.

    `suspended` are entry points (Makefile, conftest.py ...) that changed in this session without a person having seen
    the change. If there are any, auto rules for commands that may run them ask. `hides` is set if the walls can hide
    files from a command that only reads. A rule that denies some files below a folder then hides them
    (`Effects.left_out`) instead of refusing the command. `walls` are the workspace walls of this machine; a rule for
    commands inside walls asks where they have a gap. Pure; returns a verdict for every Action.
    """
    check_arguments(evaluate, locals())
    policy = policy.narrowed_to(action)
    verdict = _verdict(policy, action, suspended, hides=hides, walls=walls)
    if not action.default_of or verdict.decision is Decision.AUTO:
        return verdict
    # INVARIANT: a refusal or question does not reveal whether the call would change anything, and so a file's content.
    plain = _verdict(policy, replace(action, default_of=""), suspended, hides=hides, walls=walls)
    return plain if plain.decision >= verdict.decision else verdict


def evaluate_here(
    policy: Policy, action: Action, suspended: tuple[str, ...] = (), *, walls: Callable[[], WallsHere]
) -> Verdict:
    """Return the verdict of `evaluate`. `walls` returns the walls of this workspace.

    `walls` is slow, so it is called only for a command that would otherwise be refused, or that needs walls.
    """
    verdict = evaluate(policy, action, suspended)
    if verdict.decision > Decision.CONFIRM and action.kind.does is Does.RUNS and walls().hides:
        verdict = evaluate(policy, action, suspended, hides=True)
    return evaluate(policy, action, suspended, walls=walls()) if verdict.in_walls else verdict


def asking_about(verdict: Verdict, reasons: tuple[str, ...]) -> Verdict:
    """Return a verdict that asks about irreversible effects, if `verdict` is AUTO. `reasons` describe the effects."""
    if verdict.decision is not Decision.AUTO:
        return verdict
    asked_facet = replace(
        verdict.deciding,
        decision=Decision.CONFIRM,
        source=Source.BUILT_IN,
        rules=(),
        reason="; ".join(reasons),
        by="built-in destroys",
        layer=Layer.BUILT_IN,
        origin=None,
    )
    facets = tuple(asked_facet if facet is verdict.deciding else facet for facet in verdict.facets)
    return replace(verdict, decision=Decision.CONFIRM, facets=facets)


def _verdict(policy: Policy, action: Action, suspended: tuple[str, ...], *, hides: bool, walls: WallsHere) -> Verdict:
    judge = _Judge(policy, action, suspended, hides=hides, walls=walls)
    parts = tuple(action.all_facets())
    facets = tuple(map(judge.facet, parts))
    decision = max(facet.decision for facet in facets)
    is_asked = decision is not Decision.AUTO
    by_rules = [facet for facet in facets if facet.rules and facet.decision is Decision.AUTO]
    in_walls = [facet for facet in by_rules if facet.in_walls]
    effects = effects_of(
        parts,
        autos=dict.fromkeys(rule for facet in by_rules for rule in facet.rules),
        asked_parts=[f.facet for f in facets if f.decision is not Decision.AUTO or not in_walls] if is_asked else (),
        open_ended=any(not is_bounded(f.facet) and (f not in by_rules or (is_asked and not in_walls)) for f in facets),
        tables=policy.sandbox_tables,
        keep=policy.guarded,
        named_hosts=judge.named_hosts,
        own_tmp=action.own_tmp,
        beside_servers=action.beside_servers,
    )
    verdict = Verdict(decision=decision, facets=facets, effects=effects)
    if not _is_held_by_walls(action, verdict):
        return _verdict(_with_fewer_walled(policy, verdict), action, suspended, hides=hides, walls=walls)
    if not judge.left_out or decision > Decision.CONFIRM:
        return verdict
    if not effects.looks_only or effects.enforcement is Enforcement.OFF or len(judge.left_out) > MOST_LEFT_OUT:
        return _verdict(policy, action, suspended, hides=False, walls=walls)
    hiding = replace(effects, left_out=tuple(judge.left_out), enforcement=Enforcement.REQUIRED)
    return replace(verdict, effects=hiding)


def _with_fewer_walled(policy: Policy, verdict: Verdict) -> Policy:
    """Return `policy` without the rules that open more than the workspace to commands inside walls.

    If the verdict needed none of these, return it without all rules for commands inside walls.
    """
    opening = {rule for rule in verdict.walled if rule.opens.reaches or set(rule.opens.write) - set(DEFAULT_WRITE)}
    if opening:
        return replace(policy, rules=tuple(rule for rule in policy.rules if rule not in opening))
    rules = tuple(rule for rule in policy.rules if not rule.walled)
    return replace(policy, rules=rules, defaults=tuple(replace(each, in_walls=False) for each in policy.defaults))


def _is_held_by_walls(action: Action, verdict: Verdict) -> bool:
    """Return whether walls limit each program granted inside walls to its grant. True without such programs.

    INVARIANT: such a program gets no more than its grant, whatever the rest of the line may do.
    """
    effects = verdict.effects
    walled = [
        rule
        for facet in verdict.facets
        if isinstance(facet.facet, Command | Opaque)
        for rule in facet.rules
        if rule.walled
    ]
    if not walled:
        return True
    if effects.enforcement is Enforcement.OFF:
        return False
    if verdict.decision is not Decision.AUTO:  # a person decides on the rest
        return True
    by_grant = any(f.in_walls and f.rules and all(map(_is_program_grant, f.rules)) for f in verdict.facets)
    if by_grant and destroys(action):
        return False
    parts = tuple(action.all_facets())
    repository = (place for part in parts if isinstance(part, Command) for place in part.opens)
    more = set(effects.granted).difference(repository, *(rule.opens.write for rule in walled))
    outside = any(
        path.place not in (Place.INSIDE, Place.ROOT, Place.TEMPORARY) and path.access is Access.WRITE
        for path in parts
        if isinstance(path, PathAccess)
    )
    network = effects.network and not all(rule.opens.network for rule in walled)
    hosts = not all(rule.opens.network or set(effects.hosts) <= set(rule.opens.hosts) for rule in walled)
    return not (more or outside or network or hosts)


def _is_program_grant(rule: Rule) -> bool:
    """Return whether a rule is the grant of a program, which does not include what destroys."""
    return rule.walled and rule.layer is Layer.SESSION and not rule.any_words


class _Judge:
    """Judges the facets of one action separately: `facet` returns the strictest decision of all deciders.

    The rules are grouped by the kinds of facets that they can match, so that the others are not tried.
    """

    def __init__(
        self, policy: Policy, action: Action, suspended: tuple[str, ...], *, hides: bool, walls: WallsHere
    ) -> None:
        self.left_out: dict[str, None] = {}
        """Files to hide from the command, since rules deny them. They are below folders that it reads."""
        self._hideable = frozenset(_hideable(action)) if hides else frozenset()
        self._policy = policy
        self._walls = walls
        self._action = action
        self._suspended = suspended
        self._own_facets = set(map(id, action.facets))
        self._part_of = {
            id(path): part for part in action.facets if isinstance(part, Command | Opaque) for path in part.paths
        }
        """The command or text that a path is an operand of, by the `id` of the path."""
        kinds = set(map(type, action.facets))
        self._has_commands = Command in kinds
        self.named_hosts = policy.named_hosts if ToolUse in kinds else ()
        """The hosts that rules name. Empty for a call without a `ToolUse`, since only such a call contacts a host."""
        self._on_trees: dict[tuple[object, ...], bool] = {}
        self._rules_on: dict[type[Facet], tuple[list[Rule], list[Rule]]] = {}
        """The strict rules and the auto rules that could match, by kind of facet."""
        self._defaults = policy.defaults
        self._files = {source.root or source.path for source in policy.sources if source.layer is Layer.FILE}
        if ToolUse in kinds and _only_reads(action):
            self._defaults = tuple(default for default in policy.defaults if not default.spares_reading)

    def _rules_about(self, facet: Facet) -> tuple[list[Rule], list[Rule]]:
        """Return the strict rules and the auto rules that could match a facet of this kind."""
        kind = type(facet)
        if kind not in self._rules_on:
            strict: list[Rule] = []
            autos: list[Rule] = []
            for rule in self._policy.rules:
                if rule.decision is Decision.AUTO:
                    if rule.may_cover(kind):
                        autos.append(rule)
                elif rule.may_hit(kind):
                    strict.append(rule)
            self._rules_on[kind] = strict, autos
        return self._rules_on[kind]

    def facet(self, facet: Facet) -> FacetVerdict:
        """Return the strictest decision on a facet: by the policy, built-in, for opaque text, or by [sandbox]."""
        by_policy = (  # the first of these that decides
            self._by_strict_rules(facet)
            or self._by_its_command(facet)
            or self._by_rules_or_model(facet)
            or self._by_reading(facet)
            or self._by_default(facet)
        )
        built_in = self._by_built_in(facet)
        if built_in is not None and self._walls_decide(facet, built_in):
            built_in, by_policy = None, replace(by_policy, in_walls=True)
        opaque = _from_opaque(facet) if isinstance(facet, Opaque) and not _may_run_opaque(facet, by_policy) else None
        all_said = (by_policy, built_in, opaque, self._by_sandbox(facet))
        # If they are equally strict, prefer any to a default, whose reason is the least informative.
        strictest = max(
            filter(None, all_said), key=lambda verdict: (verdict.decision, verdict.source is not Source.DEFAULT)
        )
        if opaque is not None and strictest.source is Source.DEFAULT:
            return replace(strictest, reason=f"{strictest.reason}; it was {opaque.reason}", hint=opaque.hint)
        return strictest

    def _by_strict_rules(self, facet: Facet) -> FacetVerdict | None:
        """Return the decision of the strictest rules that hit the facet, or of a default that they do not lift."""
        strict, _ = self._rules_about(facet)
        hits = [rule for rule in strict if self._hits(rule, facet)]
        if isinstance(facet, PathAccess) and id(facet) in self._hideable:
            hits = [rule for rule in hits if not self._leaves_out(rule, facet)]
        if hits and isinstance(facet, PathAccess) and _is_looked_through(facet) and self._runs_in_walls:
            hits = [rule for rule in hits if rule.files is None or not rule.files.hits_only_below(facet)]
        if not hits:
            return None
        strictest = max(rule.decision for rule in hits)
        deciding = tuple(rule for rule in hits if rule.decision is strictest)
        stricter = None if self._is_operand(facet) else self._default_not_lifted(facet, deciding)
        if stricter is not None:
            return stricter
        first = deciding[0]
        return FacetVerdict(
            facet=facet,
            decision=strictest,
            source=Source.RULE,
            reason=(first.reason or f"the policy says {strictest.word}") + _which(first, facet, self._action),
            hint=first.hint,
            rules=deciding,
            by=f"rule {first.label}",
            layer=first.layer,
            origin=first.origin,
        )

    def _leaves_out(self, rule: Rule, path: PathAccess) -> bool:
        """Return whether a rule denies only files below a folder. If so, add them to `left_out`, to be hidden."""
        files = rule.files
        if files is None or rule.decision <= Decision.CONFIRM or not files.hits_only_below(path):
            return False
        self.left_out |= dict.fromkeys(files.meant_below(path))
        return True

    def _hits(self, rule: Rule, facet: Facet) -> bool:
        """Return whether a strict rule hits a facet. The result for a folder is cached."""
        if not isinstance(facet, PathAccess) or not facet.below:
            return rule.hits(self._action, facet)
        key = (id(rule), facet.names, facet.access, id(facet.below))
        if key not in self._on_trees:
            self._on_trees[key] = rule.hits(self._action, facet)
        return self._on_trees[key]

    def _is_operand(self, facet: Facet) -> bool:
        """Return whether a facet is a path that is only an operand of a command, and not a facet of the action."""
        return isinstance(facet, PathAccess) and id(facet) not in self._own_facets

    def _by_its_command(self, facet: Facet) -> FacetVerdict | None:
        """Return AUTO for an operand (its command decides) and for reading a new file (its write decides)."""
        if self._is_operand(facet):
            reason = "an operand of its command"
        elif isinstance(facet, PathAccess) and facet.new:
            reason = "a new file shows nothing"
        else:
            return None
        return FacetVerdict(facet=facet, decision=Decision.AUTO, source=Source.COVERED, reason=reason)

    def _by_rules_or_model(self, facet: Facet) -> FacetVerdict | None:
        """Return the decision of the rules that cover the facet, or else of its model.

        For a reader, the model goes before a grant for any command, since a reader's walls are narrower.
        """
        by_rules = self._by_auto_rules(facet)
        if by_rules is None or all(rule.any_words for rule in by_rules.rules):
            return self._by_model(facet) or by_rules
        return by_rules

    def _by_auto_rules(self, facet: Facet) -> FacetVerdict | None:
        """Return the decision of the rules that cover the facet. `None` without such rules.

        It is AUTO, unless the rules do not lift a default or are suspended.
        """
        covering = self._covering(facet)
        autos = tuple(
            rule for rule in covering if not self._walls.gap or not rule.walled or rule.layer is Layer.SESSION
        )
        if not autos:
            without = f"it runs unasked only inside the workspace walls, and here {self._walls.gap}"
            return self._question(facet, covering, without) if covering else None
        if not all(rule.any_words for rule in autos):  # a rule for these words says what is opened to them
            autos = tuple(rule for rule in autos if not rule.any_words)
        if (forbidden := self._may_forbid(facet, autos)) is not None:
            return self._question(
                facet, autos, f"a word that cannot be read may be what rule {forbidden.label} is about: name it"
            )
        if self._managed_floor(facet) is not None and not any(rule.layer is Layer.MANAGED for rule in autos):
            return self._default(facet, unlifted=autos)
        defaults = self._of_other_files(facet, autos)
        if any(rule.layer is Layer.SESSION for rule in autos):
            defaults = [default for default in defaults if default.decision > Decision.CONFIRM]
        if defaults:
            return self._by_model(facet) or self._default(facet, stated=defaults, unlifted=autos)
        if all(rule.layer is Layer.SESSION for rule in autos):  # grants lift a question, but not a refusal by default
            default = self._default(facet, unlifted=autos)
            if default.decision > Decision.CONFIRM:
                return default
        first = autos[0]
        # Inside walls an entry point can do no more than the program could anyway.
        runs = isinstance(facet, Command) or (isinstance(facet, ToolUse) and facet.bounds is not None)
        suspended = bool(self._suspended) and runs and not any(rule.walled for rule in autos)
        changed = f"{', '.join(self._suspended)} changed in this session and nobody has looked at it yet"
        return FacetVerdict(
            facet=facet,
            decision=Decision.CONFIRM if suspended else Decision.AUTO,
            source=Source.SUSPENDED if suspended else Source.RULE,
            reason=changed if suspended else first.reason,
            rules=autos,
            in_walls=any(rule.walled for rule in autos),
            by=f"rule {first.label}" + (", suspended" if suspended else ""),
            layer=first.layer,
            origin=first.origin,
        )

    def _may_forbid(self, facet: Facet, autos: Sequence[Rule]) -> Rule | None:
        """Return a strict rule that may be about an unreadable word of a command that reaches the network.

        Walls hold what such a word does on this machine, but not what is done elsewhere.
        """
        if not isinstance(facet, Command | Opaque) or not any(rule.walled and rule.opens.reaches for rule in autos):
            return None
        lines = (facet.argv,) if isinstance(facet, Command) else expanded_programs_in(facet)
        strict, _ = self._rules_about(facet)
        return next((rule for rule in strict if rule.argv and any(map(rule.argv.may_hit, lines))), None)

    def _question(self, facet: Facet, autos: tuple[Rule, ...], reason: str) -> FacetVerdict:
        """Return the question about a command that auto rules cover, but that must not run unasked for `reason`."""
        first = autos[0]
        return FacetVerdict(
            facet=facet,
            decision=Decision.CONFIRM,
            source=Source.RULE,
            reason=reason,
            rules=autos,
            by=f"rule {first.label}",
            layer=first.layer,
            origin=first.origin,
        )

    def _covering(self, facet: Facet) -> tuple[Rule, ...]:
        """Return the auto rules that cover a facet."""
        _, rules = self._rules_about(facet)
        if _runs_its_input(facet):
            rules = [rule for rule in rules if rule.walled]
        covering = [rule for rule in rules if rule.covers(self._action, facet)]
        if not covering and isinstance(facet, Opaque) and facet.given_to is None:
            covering = self._covering_each(facet, rules)
        return tuple(rule for rule in covering if not (rule.walled and self._unfit(rule, facet)))

    def _covering_each(self, facet: Opaque, rules: Sequence[Rule]) -> list[Rule]:
        """Return rules that together cover each command of a text that could not be parsed. Empty without such rules.

        A text that only prepares commands, such as `cd $(...)`, is covered with the other parts of the line.
        """
        lines = programs_in(facet)
        rules = [rule for rule in rules if rule.walled and rule.layer is not Layer.SESSION]
        if not lines and only_prepares(facet):
            parts = [part for part in self._action.facets if isinstance(part, Command | Opaque) and part is not facet]
            return [rule for rule in rules if any(rule.covers(self._action, part) for part in parts)]
        covering = [
            next((rule for rule in rules if rule.covers_words(self._action, facet, words)), None) for words in lines
        ]
        return [] if None in covering else list(dict.fromkeys(rule for rule in covering if rule is not None))

    def _unfit(self, rule: Rule, facet: Facet) -> str:
        """Return the reason why a facet that a rule covers must not run inside walls without a question."""
        reaches = rule.opens.reaches
        return unfit(self._action, facet, self._walls.undo, reaches=reaches, any_words=rule.any_words)

    def _by_model(self, facet: Facet) -> FacetVerdict | None:
        """Return AUTO for a command that, by its model, only reads or runs another command. Otherwise `None`.

        The files that it reads are separate facets, which are judged like all others.
        """
        if not isinstance(facet, Command) or facet.network or facet.needs:
            return None
        if any(path.access is not Access.READ for path in facet.paths):
            return None
        if facet.act is Act.WRAPS and not any(steers(name) for name in facet.variables):
            return FacetVerdict(
                facet=facet,
                decision=Decision.AUTO,
                source=Source.MODEL,
                reason="it only runs another command, or changes the folder",
                by=f"model of {facet.model}",
            )
        if facet.act not in (Act.LOOKS, Act.WRAPS):
            return None
        if not all(harmless_for(facet.model, name) for name in facet.variables):
            return None
        return self._by_readers(facet, "it only reads", f"model of {facet.model}, ")

    def _by_reading(self, facet: Facet) -> FacetVerdict | None:
        """Return AUTO for a file that a group or loop of commands gets as input (`done < list`). Otherwise `None`."""
        if not isinstance(facet, PathAccess) or facet.access is not Access.READ:
            return None
        if not self._has_commands:
            return None
        return self._by_readers(facet, "it is only read", "")

    def _by_readers(self, facet: Facet, reason: str, model: str) -> FacetVerdict | None:
        """Return AUTO if the policy's `readers` permits commands that only read. Otherwise `None`."""
        readers = self._readers(facet)
        if readers is None:
            return None
        return FacetVerdict(
            facet=facet,
            decision=Decision.AUTO,
            source=Source.READER,
            reason=reason,
            by=f"{model}readers ({readers.origin})",
            layer=readers.layer,
            origin=readers.origin,
        )

    def _readers(self, facet: Facet) -> Readers | None:
        """Return the `readers` line that applies, or `None`.

        `None` if any line is false, if several files are given and one has no such line, or if only a managed line
        could lift a managed default and there is none.
        """
        reader_lines = self._policy.readers
        if not all(readers.on for readers in reader_lines):
            return None
        if len(self._files) > 1 and not self._files <= {readers.origin.unit for readers in reader_lines}:
            return None
        floor = self._managed_floor(facet)
        return next((readers for readers in reader_lines if floor is None or readers.layer is Layer.MANAGED), None)

    def _walls_decide(self, facet: Facet, built_in: FacetVerdict) -> bool:
        """Return whether the walls of a path's command make a built-in question about the path needless.

        They protect places below a folder that is written, and allow reading the system.
        """
        part = self._part_of.get(id(facet))
        if part is None or not isinstance(facet, PathAccess):
            return False
        if built_in.by == "built-in protected":
            is_held = self._walls.holds and not names_protected(facet)
        else:
            is_held = built_in.by == "built-in outside" and not facet.closed and walls_decide(part, facet)
        return is_held and _is_in_walls(self._by_auto_rules(part) or self._by_default(part))

    @cached_property
    def _runs_in_walls(self) -> bool:
        """Whether a part of the call runs inside walls, which then hide and protect files of rules from all parts."""
        parts = (part for part in self._action.facets if isinstance(part, Command | Opaque))
        return not self._walls.gap and any(
            _is_in_walls(self._by_rules_or_model(part) or self._by_default(part)) for part in parts
        )

    def _by_walls(self, facet: Facet, stated: Sequence[ToolDefault]) -> FacetVerdict | None:
        """Return the decision by default if every file that asks by default permits commands inside walls."""
        asking = [default for default in stated if default.decision is not Decision.AUTO]
        if not asking or not all(default.in_walls for default in asking):
            return None
        first = asking[0]
        rule = first.rule
        if not rule.covers(self._action, facet):
            return None
        problem = self._walls.gap or self._unfit(rule, facet)
        if problem and isinstance(facet, Opaque):
            opaque = _from_opaque(facet)
            return replace(opaque, reason=f"{opaque.reason}; {problem}")
        return FacetVerdict(
            facet=facet,
            decision=Decision.CONFIRM if problem else Decision.AUTO,
            source=Source.DEFAULT,
            reason=f"{first.tool} runs unasked only inside the workspace walls: {problem}" if problem else rule.reason,
            rules=() if problem else (rule,),
            in_walls=not problem,
            by=f"default for {first.subject} ({first.origin})",
            layer=first.layer,
            origin=first.origin,
        )

    def _by_default(self, facet: Facet) -> FacetVerdict:
        """Return the decision by default, with a hint if the command is nearly a reader."""
        stated = defaults_for(self._defaults, self._tool_of(facet), facet)
        if (by_walls := self._by_walls(facet, stated)) is not None:
            return by_walls
        verdict = self._default(facet)
        if not isinstance(facet, Command) or verdict.hint or self._readers(facet) is None:
            return verdict
        if facet.needs:
            return replace(verdict, hint=f"It needs {facet.needs}; no command gets that unasked.")
        return replace(verdict, hint=f"It is not known to only look: {facet.gap}.") if facet.gap else verdict

    def _default(
        self, facet: Facet, *, stated: Sequence[ToolDefault] | None = None, unlifted: tuple[Rule, ...] = ()
    ) -> FacetVerdict:
        """Return the decision of the strictest default. `unlifted` are matching rules that do not lift it."""
        tool = self._tool_of(facet)
        stated = defaults_for(self._defaults, tool, facet) if stated is None else stated
        if isinstance(facet, ToolUse) and facet.stays_here and all(each.tool == "default" for each in stated):
            return FacetVerdict(
                facet=facet,
                decision=Decision.AUTO,
                source=Source.DEFAULT,
                reason=f"{tool} touches nothing outside of the conversation, and no line of a policy names it",
                by="built-in: it stays in the conversation",
            )
        strictest = max(stated, key=lambda default: default.decision, default=None)
        if strictest is not None and strictest.decision is Decision.AUTO and needs_its_name(facet, stated):
            return FacetVerdict(
                facet=facet,
                decision=Decision.CONFIRM,
                source=Source.DEFAULT,
                reason=f"its server says that it may destroy, and no line lets {tool} run by its whole name",
                by=f"default for {strictest.subject} ({strictest.origin})",
                layer=strictest.layer,
                origin=strictest.origin,
            )
        if strictest is None:
            return FacetVerdict(
                facet=facet,
                decision=Decision.CONFIRM,
                source=Source.DEFAULT,
                reason=f"no policy names the tool {tool}",
                by="no rule and no default",
            )
        obstacle = f"rule {unlifted[0].label} does not lift it" if unlifted else "no rule matches"
        uncovered = strictest.tool == UNCOVERED
        gap = facet.gap if uncovered and isinstance(facet, Command) else ""
        return FacetVerdict(
            facet=facet,
            decision=strictest.decision,
            source=Source.DEFAULT,
            reason=f"{obstacle}, and {'what no model covers' if uncovered else tool} is {strictest.decision.word} by default",
            hint=f"It is not known what it does: {gap}." if gap else "",
            by=f"default for {strictest.subject} ({strictest.origin})",
            layer=strictest.layer,
            origin=strictest.origin,
        )

    def _default_not_lifted(self, facet: Facet, rules: tuple[Rule, ...]) -> FacetVerdict | None:
        """Return the verdict by default if it is stricter than `rules` and they must not lift it. Otherwise `None`.

        All `rules` have the same decision. Deny rules lift no default. A confirm rule does not lift a managed default
        unless it is managed itself. In an untrusted project it does not lift the default of another layer.
        """
        layers = {rule.layer for rule in rules}
        other_defaults = self._of_other_files(facet, rules)
        lifting = layers - {source.layer for source in self._policy.sources if not source.trusted}
        stricter_defaults = [
            default
            for default in defaults_for(self._defaults, self._tool_of(facet), facet)
            if rules[0].decision is not Decision.CONFIRM
            or (default.layer not in layers and (default.layer is Layer.MANAGED or not lifting))
            or default in other_defaults
        ]
        if max((default.decision for default in stricter_defaults), default=Decision.AUTO) <= rules[0].decision:
            return None
        return self._default(facet, stated=stricter_defaults, unlifted=rules)

    def _managed_floor(self, facet: Facet) -> ToolDefault | None:
        """Return the managed default for a facet if it is stricter than auto. Only managed rules can lift it."""
        managed = [default for default in self._defaults if default.layer is Layer.MANAGED]
        if not managed:
            return None
        stated = defaults_for(managed, self._tool_of(facet), facet)
        strictest = max(stated, key=lambda default: default.decision, default=None)
        return None if strictest is None or strictest.decision is Decision.AUTO else strictest

    def _of_other_files(self, facet: Facet, rules: Sequence[Rule]) -> list[ToolDefault]:
        """Return the defaults stricter than auto of those named files (`--policy`) that have no matching rule.

        Each named file decides as if it were alone, and the strictest decision counts. Empty if one of `rules` is
        neither in a named file nor a grant, since such a rule lifts these defaults.
        """
        if len(self._files) < 2 or any(rule.layer not in (Layer.FILE, Layer.SESSION) for rule in rules):
            return []
        own_files = {rule.origin.unit for rule in (*rules, *self._covering(facet))}
        return [
            default
            for default in defaults_for(self._defaults, self._tool_of(facet), facet)
            if default.layer is Layer.FILE
            and default.decision is not Decision.AUTO
            and default.origin.unit not in own_files
        ]

    def _tool_of(self, facet: Facet) -> str:
        """Return the tool whose default applies to a facet."""
        reads = isinstance(facet, PathAccess) and facet.access is Access.READ
        return self._action.default_of or (self._action.reads_as if reads else "") or self._action.tool

    def _by_built_in(self, facet: Facet) -> FacetVerdict | None:
        """Return the built-in decision, which overrides every rule. `None` if there is none."""
        finding = inspect_facet(facet, self._policy.guarded, self.named_hosts)
        if finding is None:
            return None
        decision = _DECISIONS[finding.severity]
        return FacetVerdict(
            facet=facet,
            decision=decision,
            source=Source.BUILT_IN,
            reason=finding.reason,
            hint=facet.hint if isinstance(facet, ToolUse) else "",
            by=f"built-in {finding.id}",
        )

    def _by_sandbox(self, facet: Facet) -> FacetVerdict | None:
        """Return DENY for an unconfined command if the policy requires walls. Otherwise `None`."""
        if not isinstance(facet, Unconfined) or (origin := self._policy.sandbox.required) is None:
            return None
        return FacetVerdict(
            facet=facet,
            decision=Decision.DENY,
            source=Source.RULE,
            reason="the policy requires that every command is confined",
            hint="Send the call again without `unconfined`.",
            by=f"[sandbox] required ({origin})",
            layer=next((source.layer for source in self._policy.sources if source.path == origin.file), Layer.FILE),
            origin=origin,
        )


def _hideable(action: Action) -> Iterator[int]:
    """Yield the `id` of each folder whose files a command opens and reads. Not for git, which reads its own copies."""
    for facet in action.facets:
        if isinstance(facet, Command) and name_of(facet.argv[0]) != "git":
            yield from (id(path) for path in facet.paths if _is_read_here(path))


def _is_read_here(path: PathAccess) -> bool:
    """Return whether a path is a folder of the workspace that is read with everything below, all of it known."""
    inside = path.place in (Place.INSIDE, Place.ROOT)
    return (
        inside and path.access is Access.READ and path.tree and path.is_whole and not (path.tracked or path.untracked)
    )


def _is_in_walls(verdict: FacetVerdict) -> bool:
    return verdict.in_walls and verdict.decision is Decision.AUTO


def _is_looked_through(path: PathAccess) -> bool:
    """Return whether a command works on the files below a folder, all of them known, and leaves the folder itself."""
    return path.tree and path.is_whole and not (path.entry or path.tracked or path.untracked)


def _only_reads(action: Action) -> bool:
    """Return whether a call is the use of a tool that can only read."""
    uses = [facet for facet in action.facets if isinstance(facet, ToolUse)]
    other_facets = [facet for facet in action.facets if not isinstance(facet, ToolUse)]
    reads = all(isinstance(facet, PathAccess) and facet.access is Access.READ for facet in other_facets)
    return bool(uses) and all(use.only_reads for use in uses) and reads


def _runs_its_input(facet: Facet) -> bool:
    """Return whether a command is an interpreter that runs its input. Only a grant inside walls can cover that."""
    if not isinstance(facet, Command) or not facet.fed or any(word[:1] != "-" for word in facet.argv[1:]):
        return False
    return is_one_of(facet.argv[0], INTERPRETERS - {"make", "env"})


def _which(rule: Rule, facet: Facet, action: Action) -> str:
    """Return the reason why a rule forbids a folder or the use of a tool, in brackets. Empty for other facets.

    For a folder it names the files below and a form of the command that leaves them out, for a tool the argument.
    """
    if isinstance(facet, ToolUse) and (hit := rule.argument_hit(facet)):
        argument_text = f"the argument {visible_line(hit.name, _SHOWN_NAME)}"
        return f" ({argument_text if hit.name else 'it has more arguments than are looked at'})"
    files = rule.files
    if not isinstance(facet, PathAccess) or not facet.tree or files is None or files.patterns.hits(facet.names):
        return ""
    from harness.programs.excluding import excluding_words

    names = tuple(dict.fromkeys(files.meant_below(facet)))
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    form = excluding_words(names, facet, action)
    leaves_out = f"; {form} leaves {'them' if more else 'it'} out" if form else ""
    if facet.tracked or facet.untracked:
        state = "git tracks" if facet.tracked else "new to git, or ignored:"
        return f" ({state} {names[0]}{more}{leaves_out})"
    return f" ({names[0]}{more} {'lie' if more else 'lies'} below {facet.written}{leaves_out})"


def _may_run_opaque(facet: Opaque, by_policy: FacetVerdict) -> bool:
    """Return whether an opaque part may run without a question.

    It may if a granted program runs it inside walls. It may too if it is text for an interpreter and the default would
    permit the same text in a file. Wrappers do not count, since they run their words and not the text.
    """
    if not facet.is_whole or by_policy.decision is not Decision.AUTO:
        return False
    reads_text = facet.given_to is not None and not is_one_of(facet.given_to.argv[0], WRAPPERS)
    return (reads_text and by_policy.source is Source.DEFAULT) or by_policy.in_walls


def _from_opaque(facet: Opaque) -> FacetVerdict:
    """Return CONFIRM or DENY for text that could not be parsed, regardless of the rules."""
    if not facet.is_whole:  # a rule may deny one of the words that were not examined, so a person cannot decide either
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
        hint=facet.hint or "Plain commands joined by && or | are understood, also behind `cd FOLDER &&`.",
        by="built-in opaque",
    )
