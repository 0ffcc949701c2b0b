"""The exceptions of the package, the codes of the model's errors, and `did you mean`.

HarnessError
|- PolicyError   the operator's: a policy that cannot be loaded; nothing starts
|- ToolError     the model's: a call that cannot be prepared or done; its text is the tool result
|- ModelError    the provider's: a request that failed for good
|  `- CutReply   a reply that ended without saying that it was finished; nothing of it may run
|- LogError      the action log cannot be written or opened; nothing runs afterwards
|- GateError     something inside the gate went wrong; nothing runs afterwards
|  `- ChangedCodeError  a file of the program itself was changed during the session
|- WorkspaceError  the folder under work is gone; nothing runs afterwards
|- SessionRefusedError  a hook of the person's does not let a session begin; nothing runs
`- UsageError    the command line or the environment does not make sense
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from harness.messages import Usage


class HarnessError(Exception):
    """The root of every exception that this package raises on purpose."""


class PolicyError(HarnessError):
    """A policy that cannot be used; the text names file, line and key, and is written for its author."""


class ErrorCode(Enum):
    """The kind of a file error: for tests, logs and statistics; the model reads the text."""

    ARGUMENTS = "E_ARGS"
    RACE = "E_RACE"
    """A path leads elsewhere than when it was judged."""
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
    """A call that cannot be prepared or done; the text is written for the model and becomes the tool result."""

    def __init__(self, text: str, *, code: ErrorCode | None = None) -> None:
        super().__init__(text)
        self.code = code


class ModelFault(Enum):
    """The kind of a provider error: for the loop, logs and statistics; people read the text."""

    SETTINGS = "settings"
    """Nothing was sent: no key, no address, a broken installation."""
    AUTHENTICATION = "authentication"
    NOT_FOUND = "not_found"
    CONTEXT = "context"
    """The conversation is longer than the model takes; a shorter one may pass."""
    CONTENT = "content"
    """The provider's content policy refused the request."""
    QUOTA = "quota"
    """Out of money or allowance: waiting does not help."""
    REQUEST = "request"
    """Refused for another reason. Sending the same request again would fail too."""
    CONNECTION = "connection"
    SERVER = "server"
    """Server overloaded or broken, after all tries."""
    TIMEOUT = "timeout"
    REPLY = "reply"
    """The reply was not usable."""
    TIME = "time"
    """The time that the run had left is over."""


class ModelError(HarnessError):
    """A request that failed for good; the text says what happened and what a person can do about it."""

    def __init__(self, text: str, *, fault: ModelFault = ModelFault.REPLY, usage: Usage | None = None) -> None:
        super().__init__(text)
        self.fault = fault
        self.usage = usage
        """Usage of the last try, as reported by the provider. `None` if no part of a reply had arrived."""


class CutReply(ModelError):
    """Raised for a reply without a regular end. No part of it may run."""


class LogError(HarnessError):
    """The action log cannot be opened, read or written."""


class GateError(HarnessError):
    """A fault inside the gate (in judging, asking or ruling); the run stops and nothing runs."""


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


def nearest(word: str, known_words: Iterable[str]) -> str:
    """Return `; did you mean X?` for the known word closest to `word`.

    If none is close, return the list of known words.
    """
    from difflib import get_close_matches  # 10 ms, for an error only

    words = list(known_words)
    close = get_close_matches(word, words, n=1)
    return f"; did you mean {close[0]}?" if close else f"; known: {', '.join(words)}"
