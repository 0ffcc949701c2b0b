"""Attempt: one run of a tool's body. Whatever the body does, there is a result: what it returned, or what went wrong."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from harness.errors import ToolError, WorkspaceError
from harness.gate.tool import ToolOutput, said_by
from harness.messages import ResultStatus, ToolCall, ToolResult

CUT_SHORT = "Interrupted by the person; what it had begun may be done in part."
"""What the model reads of a call that was interrupted."""
_TOOLS_MAY_SAY = (
    ResultStatus.OK,
    ResultStatus.FAILED,
    ResultStatus.TIMEOUT,
    ResultStatus.INTERRUPTED,
    ResultStatus.CRASHED,
)
"""That a call was denied, or did not run, is not for its tool to say."""


class Attempt:
    """A `with` block around a tool's body: it takes the output, and turns what is raised into one."""

    def __init__(self, call: ToolCall, monotonic: Callable[[], float]) -> None:
        """Begin to measure; `monotonic` is a clock in seconds."""
        self._call = call
        self._monotonic = monotonic
        self._started = monotonic()
        self._seconds = 0.0
        self._output: ToolOutput | None = None
        self.begun = False
        """Whether the body was entered; an interrupt before that has done nothing."""

    def take(self, output: object) -> None:
        """Take what the body returned. Raises TypeError for what could not be recorded or sent."""
        if not isinstance(output, ToolOutput):
            raise TypeError(f"it returned {type(output).__name__}, not a ToolOutput")
        if not isinstance(output.content, str):
            raise TypeError(f"its content is {type(output.content).__name__}, not text")
        if output.status not in _TOOLS_MAY_SAY:
            raise TypeError(f"it returned the status {output.status}")
        self._output = output

    def not_begun(self, why: str) -> None:
        """Take that the body was not entered. The intent is on disk, so that the log wants an end."""
        content = f"Error: nothing was done: {why} before it began."
        self._output = ToolOutput(content=content, status=ResultStatus.FAILED, output_bytes=0)

    def __enter__(self) -> Self:
        """Nothing is done yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Note what was raised as an output. GeneratorExit and their like pass through."""
        self._seconds = self._monotonic() - self._started
        match error:
            case None:
                pass
            case ToolError():
                code = error.code.value if error.code else ""
                self._output = ToolOutput(content=f"Error: {error}", status=ResultStatus.FAILED, error_code=code)
            case WorkspaceError():
                self._output = ToolOutput(content=f"Error: {error}; nothing was done.", status=ResultStatus.FAILED)
            case KeyboardInterrupt() if not self.begun:
                self.not_begun("the person interrupted")
            case KeyboardInterrupt():
                self._output = ToolOutput(content=CUT_SHORT, status=ResultStatus.INTERRUPTED)
            case Exception() | SystemExit():  # a bug in a tool is an error result, not the end
                content = f"Error: the tool {self._call.name} crashed: {said_by(error)}"
                self._output = ToolOutput(content=content, status=ResultStatus.CRASHED)
            case _:
                return False
        return True

    def result(self, redact: Callable[[str], str]) -> ToolResult:
        """Return the result as the model and the log may have it: redacted."""
        output = self._output
        if output is None:
            raise RuntimeError("the body of a tool neither returned nor raised")
        return ToolResult(
            call_id=self._call.id,
            status=output.status,
            content=redact(output.content),
            exit_code=output.exit_code,
            duration_ms=round(self._seconds * 1000),
            output_bytes=len(output.content) if output.output_bytes is None else output.output_bytes,
            truncated=output.truncated,
            printed=None if output.printed is None else redact(output.printed),
            changed_path=output.changed_path,
            before_sha256=output.before_sha256,
            after_sha256=output.after_sha256,
            error_code=output.error_code,
        )
