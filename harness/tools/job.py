"""The tool `job`: reads the new output of a command that runs in the background, and stops it."""

from __future__ import annotations

from harness.actions import SUMMARY_CHARACTERS, Action, Effects, ToolBounds, ToolUse
from harness.gate.arguments import text
from harness.gate.tool import Arguments, ToolOutput
from harness.limits import Limits, strictest
from harness.messages import ToolCall
from harness.model import ToolSpec
from harness.process.capture import Capture, result_characters
from harness.process.job import END_SECONDS, BackgroundJob, Jobs, Stopper
from harness.text.visible import visible_line
from harness.tool_kinds import OPTIONAL_TOOLS

READ, STOP = "read", "stop"


class JobTool:
    """Reads and stops the background commands of one session."""

    kind = OPTIONAL_TOOLS["job"]

    def __init__(self, jobs: Jobs, *, limits: Limits = Limits()) -> None:  # noqa: B008 - a Limits never changes
        """Create the tool for `jobs`. `limits` bounds the characters of a result."""
        self._jobs = jobs
        self._limits = limits
        self.spec = ToolSpec(
            name=self.kind.name,
            description=(
                "Read what a command that runs in the background has printed since the last time, or stop it. Returns the "
                "output, and in the last line whether it runs or how it ended."
            ),
            parameters={
                "properties": {
                    "name": {"type": "string", "description": "The name that it was started with.", "minLength": 1},
                    "action": {"type": "string", "enum": [READ, STOP], "description": "read if left out."},
                },
                "required": ["name"],
            },
        )

    def under(self, limits: Limits) -> JobTool:
        """Return a copy of the tool that also respects `limits`."""
        return JobTool(self._jobs, limits=strictest((self._limits, limits)))

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action. Raises ToolError if there is no background command with this name."""
        job = self._jobs.get(text(arguments, "name"))
        verb = text(arguments, "action", READ)
        summary = visible_line(f"{verb} {job.name}", SUMMARY_CHARACTERS)
        return Action(
            call=call,
            tool=self.spec.name,
            arguments=arguments,
            facets=(ToolUse(tool=self.spec.name, bounds=ToolBounds(), stays_here=True),),
            summary=summary,
            preview=f"{summary}: {job.command}",
            request=(job, verb),
            described=self.kind,
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:  # noqa: ARG002 - as every tool has it
        """Stop the command if that is the action, and return its new output and its state."""
        job, verb = action.request if isinstance(action.request, tuple) else (None, "")
        if not isinstance(job, BackgroundJob):
            raise TypeError("the action was not prepared by job")
        if verb == STOP:
            job.stop(Stopper.MODEL)
            job.wait(END_SECONDS)
        is_over = not job.is_running
        capture = Capture(result_characters(self._limits))
        capture.add(job.read().encode())
        printed = capture.readable()
        job.is_end_read = job.is_end_read or is_over
        body = (printed.text or "(no new output)").removesuffix("\n")
        return ToolOutput(
            content=f"{body}\n[{visible_line(job.state)}]",
            output_bytes=capture.total,
            truncated=printed.truncated,
            printed=printed.text,
        )
