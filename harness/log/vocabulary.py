"""Vocabulary of the action log: the words of its records for decisions, answers, events and statuses.

Writers and readers of a log share these names. This module contains only data.
"""

from __future__ import annotations

from enum import Enum

from harness.actions import Decision
from harness.messages import ResultStatus


class Answer(Enum):
    """An answer to an approval prompt."""

    YES = "yes"
    NO = "no"
    STOP = "stop"
    """No, and the turn stops: Ctrl-C at the prompt."""
    HALT = "halt"
    """No, and the run is halted, as after a hard block."""
    EDIT = "edit"
    """No, but run another call instead, with `arguments`. That call is judged like every other."""
    NOBODY = "nobody"
    """No user is present. The policy's `[unattended]` section decides."""


class PlacesAnswer(Enum):
    """An answer to the question about protected places that a command changed."""

    PUT_BACK = "put_back"
    KEEP = "keep"
    REVOKE = "revoke"
    """Restore the places, and revoke the grant."""
    NOBODY = "nobody"
    """No user answered: the grant is suspended. The changes remain, unless the run is unattended."""


class CheckEvent(Enum):
    """The event for which a hook was called."""

    BEFORE_CALL = "before-call"
    AFTER_CALL = "after-call"
    SESSION_START = "session-start"
    SESSION_END = "session-end"
    BEFORE_ANSWER = "before-answer"


DECISIONS = tuple(decision.word for decision in sorted(Decision))
"""Decisions, from the mildest to the strictest."""
ANSWERS = tuple(answer.value for answer in Answer)
PLACES_ANSWERS = tuple(answer.value for answer in PlacesAnswer)
HOOK_EVENTS = tuple(event.value for event in CheckEvent)
HOOK_ANSWERS = ("nothing", *DECISIONS[1:])
"""Answers of a hook, from the mildest to the strictest. `nothing` means no objection, and permits no call by itself."""
SERVER_ANSWERS = ("accept", "decline", "cancel")
"""Answers to a question that a server asks, in the words of its protocol."""
STATUSES = tuple(status.value for status in ResultStatus)
RAN = ("ok", "failed", "timeout", "interrupted", "crashed")
"""Statuses of calls that were started."""
DID_NOT_RUN = tuple(status for status in STATUSES if status not in RAN)
"""Statuses of calls that were not started."""
CUT_SHORT = ("timeout", "interrupted", "crashed")
"""Statuses of started calls that ended without a report, so that their effects are unknown. `failed` calls reported."""
SEEN_BY_US = "harness exec"
"""Value of `seen_by` for another agent's call that the harness itself ran. For other calls it names the agent."""
UNJUDGED = ("changed", "refused", "unknown")
"""Values of `why` in a ran_unjudged, the record of a call that another agent ran and that was not allowed.

It was allowed with other arguments, refused, or never judged.
"""
MODES = {"edits": "edits", "walls": "walls", "walls-edits": "walls"}
"""Modes of the prompt, by the IDs of their grants."""
CARRIED = ("resumed", "forked")
"""Values of `why` in a history_changed that carries the conversation of another session over."""
SUMMARY = "summary"
"""Value of `purpose` in a model_request and model_response for a summary. They are not part of the conversation."""
MOST_FACETS = 50
"""Maximum number of facets that a decision record lists. The decisive ones come first."""
MAX_LOGGED_PATHS = 20
"""Maximum number of paths in each list of effects."""
