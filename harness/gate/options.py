"""Optional parts of a gate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.actions import Action
from harness.declared_types import CheckedRecord
from harness.gate.grants_in_force import GrantStore
from harness.gate.place_watch import AskPlaces, nobody_to_ask
from harness.gate.records import Advice, GateState
from harness.messages import ToolResult
from harness.policy.policy import Policy
from harness.policy.session_grants import Grant
from harness.policy.verdict import Verdict


class GateOptions(CheckedRecord):
    """Options of a gate. They cannot make a call run that the policy or the approver refuses."""

    grants: Sequence[Grant] = ()
    """Grants in force from the beginning."""
    kept: GrantStore | None = None
    """Store for grants of the workspace. Without one, every grant ends with the session."""
    ask_places: AskPlaces = nobody_to_ask
    """Asks the user about protected places that a granted program changed."""
    dry_run: bool = False
    """Whether calls are only judged and recorded, and not run."""
    advise: Callable[[Policy, Action, Verdict], Advice] | None = None
    """Returns the rules that would let a refused call run, for the log."""
    phrase: Callable[[str, ToolResult], str] | None = None
    """Returns the content of a result for the model and the log, from the tool's name and its result."""
    begun: GateState = GateState()
    """State of the session from an earlier process."""
