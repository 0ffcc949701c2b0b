"""The exceptions of the package, the error codes for the model, and the suggestion `did you mean`.

HarnessError
|- PolicyError   the operator's: a policy cannot be loaded; the program does not start
|- ToolError     the model's: a call cannot be prepared or run; the text is the tool result
|- ModelError    the provider's: a request failed permanently
|  `- CutReply   a reply without a regular end; no part of it may run
|- LogError      the action log cannot be written or opened; no call runs afterwards
|- GateError     a fault inside the gate; no call runs afterwards
|  `- ChangedCodeError  a file of the program itself was changed during the session
|- WorkspaceError  the workspace folder is missing; no call runs afterwards
|- SessionRefusedError  a hook of the user refused the start of a session; no call runs
`- UsageError    the command line or the environment is invalid
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from harness.messages import Usage


class HarnessError(Exception):
    """The base class of every exception that this package raises on purpose."""


class PolicyError(HarnessError):
    """A policy that cannot be used. The text is for the policy's author, and names file, line and key."""


class ErrorCode(Enum):
    """The kind of a file error, for tests, logs and statistics. The model reads the text instead."""

    ARGUMENTS = "E_ARGS"
    RACE = "E_RACE"
    """A path leads to another place than at the time of the decision."""
    NOT_FOUND = "E_NOT_FOUND"
    IS_FOLDER = "E_IS_DIR"
    NOT_FOLDER = "E_NOT_DIR"
    NOT_REGULAR = "E_NOT_REGULAR"
    BINARY = "E_BINARY"
    ENCODING = "E_ENCODING"
    TOO_LARGE = "E_TOO_LARGE"
    RANGE = "E_RANGE"
    NOT_READ = "E_NOT_READ"
    STALE = "E_STALE"
    NO_MATCH = "E_NO_MATCH"
    NOT_UNIQUE = "E_NOT_UNIQUE"
    NO_CHANGE = "E_NO_CHANGE"
    ACCESS = "E_ACCESS"
    LOOP = "E_LOOP"
    NAME = "E_NAME"
    NO_SPACE = "E_NO_SPACE"
    IO = "E_IO"


class ToolError(HarnessError):
    """A call that cannot be prepared or run. The text is for the model and becomes the tool result."""

    def __init__(self, text: str, *, code: ErrorCode | None = None) -> None:
        super().__init__(text)
        self.code = code


class ModelFault(Enum):
    """The kind of a provider error, for the loop, logs and statistics. Users read the text instead."""

    SETTINGS = "settings"
    """No request was sent: no key, no address, a broken installation."""
    AUTHENTICATION = "authentication"
    NOT_FOUND = "not_found"
    CONTEXT = "context"
    """The conversation is longer than the model accepts. A shorter one may succeed."""
    CONTENT = "content"
    """The provider's content policy refused the request."""
    QUOTA = "quota"
    """The budget or quota is used up. Waiting does not help."""
    REQUEST = "request"
    """Refused for another reason. Sending the same request again would fail too."""
    CONNECTION = "connection"
    SERVER = "server"
    """Server overloaded or broken, after all tries."""
    TIMEOUT = "timeout"
    REPLY = "reply"
    """The reply was not usable."""
    TIME = "time"
    """The remaining time of the run is over."""


class ModelError(HarnessError):
    """A request that failed permanently. The text describes the failure and what the user can do about it."""

    def __init__(self, text: str, *, fault: ModelFault = ModelFault.REPLY, usage: Usage | None = None) -> None:
        super().__init__(text)
        self.fault = fault
        self.usage = usage
        """Usage of the last try, as reported by the provider. `None` if no part of a reply arrived."""


class CutReply(ModelError):
    """Raised for a reply without a regular end. No part of it may run."""


class LogError(HarnessError):
    """The action log cannot be opened, read or written."""


class GateError(HarnessError):
    """A fault inside the gate (while judging, asking or ruling). The run stops, and no further call runs."""


class ChangedCodeError(GateError):
    """A file of the program itself was changed in a place that calls may write.

    It was not loaded, and the run stops.
    """

    first: ClassVar[str] = ""
    """Text of the first such error in this process.

    It keeps the process from ending with success, whatever catches the error.
    """


class WorkspaceError(HarnessError):
    """The workspace folder is missing. The run stops, and the folder is not created again."""


class SessionRefusedError(HarnessError):
    """A hook for the start of sessions refused or gave no answer. The session was ended, and nothing runs."""


class UsageError(HarnessError):
    """An invalid command line or environment. The text says what to write instead."""


class NoModelError(UsageError):
    """No model is chosen, or its key or address is missing."""


def nearest(word: str, known_words: Iterable[str]) -> str:
    """Return `; did you mean X?` for the known word closest to `word`.

    If none is close, return the list of known words.
    """
    words = list(known_words)
    close = closest(word, words)
    return f"; did you mean {close}?" if close else f"; known: {', '.join(words)}"


def closest(word: str, known_words: Sequence[str], cutoff: float = 0.6) -> str:
    """Return the known word that a misspelt word is most similar to. Empty if no similarity reaches `cutoff` (0 to 1)."""
    from difflib import get_close_matches  # 10 ms, for an error only

    return next(iter(get_close_matches(word, known_words, n=1, cutoff=cutoff)), "")
