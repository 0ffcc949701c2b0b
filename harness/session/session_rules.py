"""The second step of a session, its rules: policy, limits, hooks, kept grants, and the approver outside."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from harness.actions import Action
from harness.errors import UsageError
from harness.gate.call_checks import NO_SESSION_CHECKS, SessionChecks
from harness.gate.records import Advice
from harness.limits import STANDARD, Limits, strictest
from harness.policy.policy import Policy
from harness.policy.verdict import Verdict
from harness.record import Record
from harness.session.advice import advice_on
from harness.session.config.settings import Settings
from harness.session.kept_grants import KeptForWorkspace, KeptGrants
from harness.session.policies import assemble, with_plan_mode
from harness.session.session_place import SessionPlace

if TYPE_CHECKING:
    from harness.session.approver.configured_approver import FoundApprover


class Unattended(Record):
    """Options of an unattended run. Its default policy is the shipped `readonly`, and refusals come with advice."""

    dry_run: bool = False
    """Whether calls are judged and recorded only, not run."""
    plan: bool = False
    """Whether plan mode tightens the policy. At the prompt, `/plan` switches it."""


class SessionRules(Record):
    """The rules for the calls of a session, from which SessionTools are made."""

    place: SessionPlace
    policy: Policy
    """The policy when the session begins."""
    limits: Limits
    """Limits from the flags, which tighten those of the policy."""
    checks: SessionChecks
    """The user's own programs (hooks)."""
    kept_grants: KeptGrants | None
    """The file of grants of the workspace. `None` for an unattended run."""
    granted: KeptForWorkspace
    """The grants when the session began."""
    outside: FoundApprover | None
    """The configured approver. `None` if none is configured, or the session asks none."""
    unattended: Unattended | None

    @property
    def advise(self) -> Callable[[Policy, Action, Verdict], Advice] | None:
        """The function that advises on each refused call. `None` if a user attends the session."""
        if self.unattended is None:
            return None
        return _advise_to_leave_plan if self.unattended.plan else advise


def rules_of(
    place: SessionPlace,
    arguments: Namespace,
    tell: Callable[[str], None],
    *,
    unattended: Unattended | None = None,
    guard: Sequence[str] = (),
    asks_outside: bool = True,
) -> SessionRules:
    """Return the rules of a session that a user attends, or of an unattended run.

    No call may write the paths in `guard`. `asks_outside` is whether the configured approver answers questions. `tell` shows
    lines of hooks. Raises UsageError and PolicyError, before anything is opened.
    """
    state, root = place.state, place.workspace.root
    policy = assemble(
        state,
        root,
        names=arguments.policy,
        fallback="default" if unattended is None else "readonly",
        pinned=arguments.policy_sha256,
    )
    if unattended is not None and unattended.plan:
        policy = with_plan_mode(policy)
    outside = outside_of(place, policy) if asks_outside else None
    limits = _limits_of(arguments, place.settings.context_tokens.value)
    check_prices(place.settings, strictest((limits, policy.limits)))
    saved_grants = KeptGrants(state.grants, state.name_of(root), root) if unattended is None else None
    return SessionRules(
        place=place,
        policy=policy.guarding(*guard, *(outside.paths if outside is not None else ())),
        limits=limits,
        checks=checks_of(place, tell),
        kept_grants=saved_grants,
        granted=KeptForWorkspace() if saved_grants is None else saved_grants.read(),
        outside=outside,
        unattended=unattended,
    )


def outside_of(place: SessionPlace, policy: Policy) -> FoundApprover | None:
    """Return the configured approver, or `None`. Raises UsageError if it cannot be used."""
    declaration = place.extensions.approver
    if declaration is None:
        return None
    from harness.session.approver.configured_approver import found_approver, writable_roots

    roots = writable_roots(place.workspace, policy, place.environment)
    return found_approver(declaration, place.environment, roots)


def checks_of(place: SessionPlace, tell: Callable[[str], None]) -> SessionChecks:
    """Return the declared hooks of the session. Raises UsageError for a hook that calls could change."""
    if not place.extensions.hooks:
        return NO_SESSION_CHECKS
    from harness.checks.checks import Checks

    return Checks(
        tuple(place.extensions.hooks.values()),
        workspace=place.workspace.root,
        environment=place.environment,
        redact=place.redactor.redact,
        interrupt=place.interrupt,
        tell=tell,
    )


def _limits_of(arguments: Namespace, context_tokens: int | None) -> Limits:
    """Return the limits from the flags, and a limit on results for a model with a small context.

    A result then has at most as many characters as the context has tokens, and fills a quarter to a third of it.
    """
    standard = STANDARD.result_characters
    is_small = context_tokens is not None and standard is not None and context_tokens < standard
    return Limits(
        result_characters=context_tokens if is_small else None,
        max_turns=arguments.max_turns,
        max_seconds=arguments.max_seconds,
        max_tokens=arguments.max_tokens,
        max_cost=arguments.max_cost,
    )


def check_prices(settings: Settings, limits: Limits) -> None:
    """Raise UsageError if the cost is limited and the model's price is unknown. An unknown price does not count as free."""
    if limits.max_cost is None or settings.prices.value is not None:
        return

    model = json.dumps(settings.model.value, ensure_ascii=False)  # as TOML writes it too
    raise UsageError(
        f"a limit of cost (--max-cost, or cost in a policy) needs the prices of {settings.model.value!r}: write them in "
        f"{settings.file.path} as [prices.{model}] with input = ... and output = ..., in dollars per million tokens"
    )


def advise(policy: Policy, action: Action, verdict: Verdict) -> Advice:
    """Return the rules that would let a refused call run."""
    return advice_on(policy, action, verdict)


def _advise_to_leave_plan(policy: Policy, action: Action, verdict: Verdict) -> Advice:  # noqa: ARG001 - as Gate has it
    return Advice(reason="plan mode lies over the policy (--plan), and no rule lifts that")
