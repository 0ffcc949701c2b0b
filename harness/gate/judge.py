"""Judging of calls: the action of a call, the policy's verdict on it, and changes that make either out of date."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from harness.actions import Action, written_paths
from harness.declared_types import record_problem
from harness.errors import GateError, ToolError
from harness.gate.grants_in_force import GrantsInForce
from harness.gate.pending_call import PendingCall
from harness.gate.records import CallRecords
from harness.gate.registry import ToolRegistry
from harness.gate.ruling import Permit
from harness.gate.tool import said_by
from harness.interrupt import Interrupt, Interrupted
from harness.log.action_log import ActionLog
from harness.messages import ResultStatus, ToolCall, ToolResult
from harness.policy.built_in import is_entry_point
from harness.policy.destruction import destroys
from harness.policy.verdict import Source, Verdict, asking_about
from harness.record import replace

if TYPE_CHECKING:
    from harness.place_changes import PlaceChange


class Judge:
    """Prepares and judges calls. Repeats that only after a change that may affect the result."""

    def __init__(
        self,
        tools: Callable[[], ToolRegistry],
        grants: GrantsInForce,
        log: ActionLog,
        records: CallRecords,
        interrupt: Interrupt,
        unseen: Iterable[tuple[str, str]],
    ) -> None:
        """Create a judge.

        `tools` returns the tools on offer. `grants` holds the policy in force. `unseen` are changes of entry points
        that the user has not seen (see GateState).
        """
        self._tools = tools
        self._grants = grants
        self._log = log
        self._records = records
        self._interrupt = interrupt
        self._unseen = list(unseen)
        self._changes = 0
        """Number of runs that may have changed the meaning of a prepared call."""

    @property
    def unseen(self) -> tuple[tuple[str, str], ...]:
        """Changes of entry points that the user has not seen."""
        return tuple(self._unseen)

    def judge(self, pending: PendingCall) -> tuple[Action, Verdict]:
        """Return the action of a call and the verdict on it, computed anew only after a relevant change.

        Raises ToolError for an invalid call, GateError for a policy that cannot judge it, WorkspaceError.
        """
        if pending.action is None or pending.prepared_at != self._changes:
            pending.action = pending.verdict = None
            pending.action = self._prepared(pending.proposal.call)
            pending.prepared_at = self._changes
        based_on = (self._grants.policy, len(self._unseen))
        if pending.verdict is None or pending.judged_by != based_on:
            pending.verdict = self.verdict(pending.action, by_person=pending.by_person)
            pending.judged_by = based_on
        return pending.action, pending.verdict

    def _prepared(self, call: ToolCall) -> Action:
        self._tools().check_place()
        try:
            with self._interrupt:  # preparing has no effects, and may take seconds
                action = self._tools().prepare(call, self._grants.policy)
        except KeyboardInterrupt:
            raise Interrupted from None
        # Search the parsed arguments: in the raw text a placeholder could be spelled with escapes.
        raw = call.arguments if "\\u" not in call.arguments else json.dumps(dict(action.arguments), ensure_ascii=False)
        mark = self._log.redactor.issued(raw)
        if mark:
            raise ToolError(
                f"The arguments contain {mark}, a placeholder for a secret that was not shown to you. Writing it would "
                "overwrite the secret. Leave that part of the file as it is and change the lines around it."
            )
        return action

    def verdict(self, action: Action, *, by_person: bool = False) -> Verdict:
        """Return the verdict on an action under the present grants and walls. Raises GateError.

        `by_person`: the user typed the call; one that destroys files then still needs an answer.
        """
        try:
            if problem := record_problem(action):  # the policy's default would apply to a facet of an unknown kind
                raise TypeError(f"Action: {problem}")  # noqa: TRY301
            verdict = self._grants.judge(action, tuple(dict(self._unseen)))
            if by_person and (reasons := destroys(action)):  # typing a command does not confirm its destruction
                verdict = asking_about(verdict, reasons)
        except Exception as error:
            raise GateError(f"the policy could not judge a call of {action.tool}: {said_by(error)}") from error
        if self._unseen and any(facet.source is Source.SUSPENDED for facet in verdict.facets):
            return replace(verdict, notes=tuple(preview for _, preview in self._unseen))
        return verdict

    def mark_changed(self) -> None:
        """Make `judge` prepare every call again, since a program that ran may have changed files, and so their meaning."""
        self._changes += 1
        self._tools().outdate_files()

    def mark_seen(self) -> None:
        """Forget the unseen changes, since the user saw them at an approval prompt and approved."""
        self._unseen.clear()

    def note_changes(self, permit: Permit, result: ToolResult | None, entry_points: Sequence[PlaceChange] = ()) -> None:
        """Note that a call ran, which may change the meaning of other calls and entry points that the user has not seen.

        Without a result, another program carries out the call and may change all files that its parts write.
        `entry_points` are the changed entry points that the place watch found.
        """
        action, effects = permit.action, permit.verdict.effects
        for change in entry_points:
            preview = "\n".join((f"{change.path}  {change.description}", *change.diff))
            self._unseen.append((f"{change.path} ({self._records.brief(action)})", preview))
        if effects.write == () and self._tools().bounds_by_kernel(action.tool):
            return
        self.mark_changed()
        changed = written_paths(action) if result is None else changed_paths(action, result)
        if permit.approval is None and any(is_entry_point(path) for path in changed):
            self._unseen.append((self._records.brief(action), action.preview))


def changed_paths(action: Action, result: ToolResult) -> tuple[str, ...]:
    """Return the files that a call changed, or may have changed if it did not report them.

    Only file tools report the changed file. For other calls, and for calls that were cut short, this is every file that
    the parts of the call write.
    """
    if result.changed_path is not None:
        return (result.changed_path,)
    cut_short = result.status in (ResultStatus.INTERRUPTED, ResultStatus.CRASHED, ResultStatus.TIMEOUT)
    return written_paths(action) if cut_short or not action.kind.is_of_files else ()
