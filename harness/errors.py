"""The exceptions of the package; this module holds nothing else and imports nothing.

HarnessError
|- PolicyError   the operator's: a policy that cannot be loaded; nothing starts
|- ToolError     the model's: a call that cannot be prepared or done; its text is the tool result
|- ModelError    the provider's: a request that failed for good
|  `- CutReply   a reply that ended without saying that it was finished; nothing of it may run
|- LogError      the action log cannot be written or opened; nothing runs afterwards
|- GateError     something inside the gate went wrong; nothing runs afterwards
`- UsageError    the command line or the environment does not make sense
"""


class HarnessError(Exception):
    """The root of every exception that this package raises on purpose."""


class PolicyError(HarnessError):
    """A policy that cannot be used; the text names file, line and key, and is written for its author."""


class ToolError(HarnessError):
    """A call that cannot be prepared or done; the text is written for the model and becomes the tool result."""


class ModelError(HarnessError):
    """A request that failed for good; the text says what happened and what a person can do about it."""


class CutReply(ModelError):
    """A reply that ended without saying that it was finished; nothing of it may run."""


class LogError(HarnessError):
    """The action log cannot be opened, read or written."""


class GateError(HarnessError):
    """A fault inside the gate (in judging, asking or ruling); the run stops and nothing runs."""


class UsageError(HarnessError):
    """A command line or an environment that does not make sense; the text says what to write instead."""
