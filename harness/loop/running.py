"""Running: a permitted call, in the window in which a person may stop it; its result as the model and the log may have it."""

from __future__ import annotations

from harness.gate.gate import Permit
from harness.gate.registry import CUT_SHORT, ToolRegistry
from harness.interrupt import Interrupt
from harness.messages import ResultStatus, ToolResult
from harness.record import replace
from harness.redaction.redactor import Redactor


def run_permitted(
    permit: Permit, registry: ToolRegistry, interrupt: Interrupt, redactor: Redactor, *, seconds: float | None = None
) -> ToolResult:
    """Run the permitted action and return its result, redacted; one that was interrupted says so.

    `seconds` is how long a call that can be ended may take at the most; with 0, none is begun. Raises GateError for a
    permit that is not valid.
    """
    if seconds is not None and seconds <= 0:
        return _not_begun(permit, "the time of the run was over")
    begun = False
    try:
        with interrupt:
            begun = True
            result = registry.run(permit, seconds=seconds)
        return _redacted(result, redactor)
    except KeyboardInterrupt:
        if not begun:
            return _not_begun(permit, "the person interrupted")
        return ToolResult(
            call_id=permit.action.call.id,
            status=ResultStatus.INTERRUPTED,
            content=CUT_SHORT,
        )


def _not_begun(permit: Permit, why: str) -> ToolResult:
    """Return the result of a call whose intent is on disk, so that the log wants an end of one that was begun."""
    content = f"Error: nothing was done: {why} before it began."
    return ToolResult(call_id=permit.action.call.id, status=ResultStatus.FAILED, content=content)


def _redacted(result: ToolResult, redactor: Redactor) -> ToolResult:
    printed = None if result.printed is None else redactor.redact(result.printed)
    return replace(result, content=redactor.redact(result.content), printed=printed)
