"""Vocabulary of the action log: the words that its records use for decisions, answers, events and ends.

Writers and readers of a log share these names. Nothing here reads a file, judges a call or asks a person.
"""

from __future__ import annotations

from enum import Enum

from harness.actions import Decision
from harness.messages import ResultStatus


class Answer(Enum):
    """An answer to the question whether a call may run."""

    YES = "yes"
    NO = "no"
    STOP = "stop"
    """No, and the turn ends here: Ctrl-C at the question."""
    HALT = "halt"
    """No, and the run is halted, as by a hard block."""
    EDIT = "edit"
    """Not this call, but another one instead, with `arguments`. It is judged like every call."""
    NOBODY = "nobody"
    """No user is there to ask; the policy's `[unattended]` determines the decision."""


class PlacesAnswer(Enum):
    """An answer to the question about protected places that a command changed."""

    PUT_BACK = "put_back"
    KEEP = "keep"
    REVOKE = "revoke"
    """Put back, and the grant ends."""
    NOBODY = "nobody"
    """No user answered: the changes remain, and the grant sleeps."""


class CheckEvent(Enum):
    """The moment of a hook's check."""

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
"""Answers of a hook, from the mildest to the strictest; `nothing` has nothing against the call, and allows nothing."""
SERVER_ANSWERS = ("accept", "decline", "cancel")
"""Answers to a question that a server asks, in the words of its protocol."""
STATUSES = tuple(status.value for status in ResultStatus)
RAN = ("ok", "failed", "timeout", "interrupted", "crashed")
"""Statuses of calls that were begun."""
DID_NOT_RUN = tuple(status for status in STATUSES if status not in RAN)
"""Statuses of calls that were not begun."""
CUT_SHORT = ("timeout", "interrupted", "crashed")
"""Statuses of begun calls that could not report what they had done; `failed` calls did report it."""
SEEN_BY_US = "harness exec"
"""Reporter of the end of another agent's call that the harness ran; of all other calls the agent reports it."""
SUMMARY = "summary"
"""Value of `purpose` in a model_request and a model_response that are not part of the conversation."""
MOST_FACETS = 50
"""Maximum number of parts of a call that a decision lists; those that decided come first."""
MAX_LOGGED_PATHS = 20
"""Maximum number of paths that a list of effects names."""
