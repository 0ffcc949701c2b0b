"""The tool `delegate`: a helper does a task in a separate conversation, and returns its answer.

A helper has no more rights than its caller: its calls go through the same gate, under the same policy or a stricter
one. So a helper that only reads needs no approval. One that may write is judged like any unknown tool.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from harness.actions import SUMMARY_CHARACTERS, Action, Effects, ToolArgument, ToolBounds, ToolUse
from harness.errors import ToolError
from harness.gate.arguments import text
from harness.gate.tool import Arguments, Neighbour, ToolOutput
from harness.messages import ResultStatus, StopReason, ToolCall
from harness.model import ToolSpec
from harness.text.visible import visible, visible_line, without_middle
from harness.tool_kinds import OPTIONAL_TOOLS
from harness.tools.delegation import DelegatedResult, DelegatedTask, HelperPolicy

MOST_TASK_CHARACTERS = 20_000
MOST_TOOLS = 50
MOST_RESULT_CHARACTERS = 20_000
"""Maximum length of a helper's answer, in characters. The middle of a longer one is cut."""
MOST_PATCH_CHARACTERS = 20_000
NO_HELPERS = "Helpers cannot be had here: do the task yourself."


class Helpers(Protocol):
    """Runs the helpers of a conversation."""

    @property
    def at_once(self) -> bool:
        """Whether several helpers that only read may run in parallel."""
        ...

    def start(self, task: DelegatedTask, neighbour: Neighbour | None = None) -> DelegatedResult:
        """Run a helper to its end. With `neighbour`, it runs on any thread, in parallel with others.

        Raises ToolError if helpers are not available, and LogError.
        """
        ...


class DelegateTool:
    """Hands a task to a helper."""

    kind = OPTIONAL_TOOLS["delegate"]

    def __init__(self, helpers: Callable[[], Helpers | None]) -> None:
        """Store `helpers`, which returns the runner of helpers, or `None` if helpers are not available."""
        self._helpers = helpers
        self.spec = ToolSpec(
            name=self.kind.name,
            description=(
                "Hand a task to a helper: a fresh conversation that knows nothing but the task, with a share of your limits. "
                "It has no more rights than you. By default it only reads and looks, and you get its last answer: good for "
                "finding things out in many files. With policy `same` it works in a copy of the repository's last commit, "
                "and you get its changes as a patch, which is not applied. Say all that it must know, and what it shall "
                "answer. It cannot ask you and has no helpers itself."
            ),
            parameters={
                "properties": {
                    "task": {"type": "string", "minLength": 1, "maxLength": MOST_TASK_CHARACTERS},
                    "tools": {
                        "type": "array",
                        "maxItems": MOST_TOOLS,
                        "items": {"type": "string", "minLength": 1, "maxLength": 200},
                        "description": "Names of the tools that it may use, of those that you have; all by default.",
                    },
                    "policy": {"type": "string", "enum": [policy.value for policy in HelperPolicy]},
                },
                "required": ["task"],
            },
        )

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action with the task, the tools and the policy. Raises ToolError for a blank task."""
        tool_names = arguments.get("tools")
        task = DelegatedTask(
            task=text(arguments, "task"),
            tools=tuple(tool_name for tool_name in tool_names if isinstance(tool_name, str))
            if isinstance(tool_names, list)
            else (),
            policy=HelperPolicy(arguments.get("policy", HelperPolicy.READ_ONLY.value)),
        )
        if not task.task.strip():
            raise ToolError("The task holds nothing but blanks.")
        reads = task.policy is HelperPolicy.READ_ONLY
        pairs = (("policy", task.policy.value), *(("tools", name) for name in task.tools))
        tool_arguments = tuple(ToolArgument(name=name, text=value) for name, value in pairs)
        tools = ", ".join(visible_line(name, 200) for name in task.tools) or "all that helpers can have"
        bounds = ToolBounds() if reads else None
        mode = (
            "only reads" if reads else "works in a copy of its own, by the policy that holds here; nothing is applied"
        )
        return Action(
            call=call,
            tool=self.spec.name,
            arguments=arguments,
            facets=(ToolUse(tool=self.spec.name, arguments=tool_arguments, stays_here=reads, bounds=bounds),),
            summary=visible_line(task.task, SUMMARY_CHARACTERS),
            preview=f"{visible(task.task)}\nhelper: {mode}\ntools: {tools}",
            request=task,
            described=self.kind,
        )

    @property
    def runs_beside(self) -> bool:
        """Whether several helpers may run in parallel."""
        helpers = self._helpers()
        return helpers is not None and helpers.at_once

    def run(self, action: Action, effects: Effects) -> ToolOutput:  # noqa: ARG002 - as every tool has it
        """Run the task, and return its result. Raises ToolError if helpers are not available."""
        return self._done(action, None)

    def run_beside(self, action: Action, effects: Effects, seconds: float | None, neighbour: Neighbour) -> ToolOutput:  # noqa: ARG002
        """Run the task like `run`, in parallel with other helpers.

        `seconds` is not used, as a helper gets a share of the remaining time.
        """
        return self._done(action, neighbour)

    def _done(self, action: Action, neighbour: Neighbour | None) -> ToolOutput:
        if not isinstance(action.request, DelegatedTask):
            raise TypeError(f"the action was not prepared by {self.spec.name}")
        helpers = self._helpers()
        if helpers is None:
            raise ToolError(NO_HELPERS)
        result = helpers.start(action.request, neighbour)
        match result.ended.stop:
            case StopReason.COMPLETED:
                status = ResultStatus.OK
            case StopReason.INTERRUPTED:
                status = ResultStatus.INTERRUPTED
            case _:
                status = ResultStatus.FAILED
        content, cut = _result_text(result)
        return ToolOutput(content=content, status=status, truncated=cut, extra=result.changes.extra)


def _result_text(result: DelegatedResult) -> tuple[str, bool]:
    """Return the text of the tool result, and whether a part of it was cut."""
    end, changes = result.ended, result.changes
    tokens = end.usage.input_tokens + end.usage.output_tokens
    cost = "" if end.cost is None else f", {end.cost:.4f} dollars"
    lines = [f"[helper {result.helper}: {end.stop.value}; turns: {end.turns}, tokens: {tokens}{cost}]"]
    if end.stop is not StopReason.COMPLETED and end.detail:
        lines.append(f"It did not finish: {end.detail}")
    lines.append(without_middle(end.text, MOST_RESULT_CHARACTERS) or "It said nothing.")
    is_patch_cut = len(changes.patch) > MOST_PATCH_CHARACTERS
    if changes.patch_file:
        cut_note = "; what follows is cut in the middle" if is_patch_cut else ""
        lines += [f"[its changes, not applied; the patch is kept in {changes.patch_file}{cut_note}]"]
        lines += [without_middle(changes.patch, MOST_PATCH_CHARACTERS)]
    lines += [f"[{note}]" for note in changes.notes]
    return "\n".join(lines), is_patch_cut or len(end.text) > MOST_RESULT_CHARACTERS
