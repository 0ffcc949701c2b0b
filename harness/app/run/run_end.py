"""The end of a run: its messages, reports, summaries and outputs."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from harness.actions import JsonValue
from harness.app.run.facts import RunFacts
from harness.app.run.report_files import Reports
from harness.app.run.reported import ReportedRun
from harness.app.run.result import result_object
from harness.app.run.run_output import RunOutput
from harness.messages import RunResult, StopReason
from harness.record import Record
from harness.session.exits import Exit, is_soft
from harness.session.named_plugins import other_report_forms
from harness.session.own_folders import workspace_folders
from harness.session.running_session import RunningSession
from harness.session.session_log import pinned
from harness.session.shipped_plugins import job_in
from harness.session.state import PROJECT_POLICY, State
from harness.terminal.console import Console
from harness.terminal.styles import Tone
from harness.text.amounts import count_of
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from harness.app.run.workflow_commands import CommandFence
    from harness.log.action_log import ActionLog

RUNNER_FILES = ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
"""Environment variables with the paths of files that a GitHub Actions job interprets."""
MOST_RULES_SHOWN = 5
"""Maximum number of rules on stderr. The reports, the JSON and the log have all rules."""


class RunEnd(Record):
    """The end of a run."""

    code: Exit
    summary: Mapping[str, JsonValue]
    """The JSON object of `--output json`."""


class Job(Protocol):
    """A CI job that receives the results of its runs."""

    fence: CommandFence
    """Prevents text on stdout from being interpreted as commands of the job."""

    def tell(self, reported: ReportedRun, *, output: RunOutput | None, code: int, with_answer: bool = False) -> str:
        """Report the only run to the job. Return the problem, or an empty string."""
        ...

    def tell_all(self, runs: Sequence[ReportedRun], *, code: int, with_answer: bool = False) -> str:
        """Report several runs to the job. Return the problem, or an empty string."""
        ...


class EndReports:
    """The reports at the end of a run. Unwritable files are detected before it begins."""

    def __init__(self, arguments: Namespace, environment: Mapping[str, str]) -> None:
        """Check the report files. Raises UsageError for one that cannot be written."""
        self._arguments = arguments
        self._reports: Reports | None = None
        self._job: Job | None = None
        state = State.of(environment)
        self._heads = state.heads
        if arguments.report:
            self._reports = Reports(
                arguments.report,
                with_answer=arguments.report_answer,
                keep_from=[
                    *state.guarded,
                    *_named_files(arguments),
                    *runner_files(environment),
                ],
                folders=workspace_folders(arguments),
                plugin_forms=other_report_forms(arguments.report, state.config_file),
            )
        if environment.get("GITHUB_ACTIONS"):
            self._job = job_in(environment)

    @property
    def fence(self) -> CommandFence | None:
        """The fence that protects an answer on stdout. `None` if no CI runner reads stdout."""
        return self._job.fence if self._job else None

    def summary(self, session: RunningSession, facts: RunFacts, result: RunResult, code: Exit) -> dict[str, JsonValue]:
        """Return the JSON object of `--output json`."""
        unsaid = result.stop is StopReason.LOG_ERROR or not facts.is_ended
        return result_object(
            facts,
            answer=result.text,
            code=int(code),
            cost=result.cost,
            model=session.agent.model.name,
            policy=session.policy.name,
            policy_sha256=session.policy.sha256,
            log=session.log.path,
            head=session.log.head,
            records=session.log.count,
            end=result.stop.value if unsaid else None,
            detail=result.detail if unsaid else None,
        )

    def tell(self, console: Console, log: ActionLog, facts: RunFacts, result: RunResult, code: Exit) -> None:
        """Print rules that would allow refused calls, the log's head, and the reason for a failure last."""
        failed = result.stop is not StopReason.COMPLETED or code is Exit.LOG
        if result.refusals and not failed:
            calls = "1 call was" if result.refusals == 1 else f"{result.refusals} calls were"
            console.line(f"harness: done, but {calls} refused", Tone.WARNING)
        if not self._arguments.quiet:
            _tell_rules(console, facts)
            _tell_unlifted(console, facts)
        if facts.usage.cached_tokens:
            from harness.app.commands.context import usage_in_words

            console.line(f"  {usage_in_words(facts.usage, result.cost)}", Tone.QUIET)
        console.line("  ".join(pinned(log)), Tone.QUIET)
        if failed:
            end = result.stop.value.replace("_", " ")
            console.line(visible_line(f"harness: {end}: {result.detail}", 2_000), Tone.BAD)

    def report(self, facts: RunFacts, summary: Mapping[str, JsonValue], code: Exit) -> str:
        """Write the reports. Return the problem, or an empty string.

        If one report cannot be written, the others are written again with the resulting exit code.
        """
        if self._reports is None:
            return ""
        problem = self._reports.write([self._reported(facts, summary)])
        if problem and is_soft(int(code)):
            self._reports.write([self._reported(facts, {**summary, "exit_code": int(Exit.INTERNAL)})])
        return problem

    def tell_actions(self, summary: Mapping[str, JsonValue], facts: RunFacts, output: RunOutput, code: Exit) -> str:
        """Report to the GitHub Actions job, if there is one. Return the problem, or an empty string."""
        if self._job is None:
            return ""
        return self._job.tell(
            self._reported(facts, summary), output=output, code=int(code), with_answer=self._arguments.report_answer
        )

    def _reported(self, facts: RunFacts, summary: Mapping[str, JsonValue]) -> ReportedRun:
        return ReportedRun(name="run", facts=facts, result=summary, heads=self._heads)


def runner_files(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the real paths of the CI runner's files in the environment. No call and no report may write them."""
    paths = (environment.get(name, "") for name in RUNNER_FILES)
    return tuple(os.path.realpath(path) for path in paths if path.startswith("/"))


def _named_files(arguments: Namespace) -> Iterator[str]:
    """Yield the files that the flags name, and the path of the project's policy."""
    names = ("log", "record", "replay", "prompt_file", "output_schema", "system")
    yield from (path for name in names if (path := getattr(arguments, name)))
    yield from arguments.policy or ()
    yield os.path.join(arguments.cwd or ".", PROJECT_POLICY)


def _tell_rules(console: Console, facts: RunFacts) -> None:
    """Print rules that would allow refused calls, in the form of a policy. They are never applied."""
    rules = list(dict.fromkeys(call.advice_toml for call in facts.refused if call.advice_toml))
    if not rules:
        return
    console.line("rules that would allow what was refused; think, then put into the policy what you want:", Tone.QUIET)
    for rule in rules[:MOST_RULES_SHOWN]:
        console.line("", Tone.QUIET)
        for row in rule.rstrip("\n").split("\n"):
            console.line(f"  {visible_line(row, 1_000)}", Tone.QUIET)
    _tell_more(console, len(rules), "more rule")


def _tell_unlifted(console: Console, facts: RunFacts) -> None:
    """Print the other refused calls, with the reasons why no rule would allow them."""
    calls = list(
        dict.fromkeys((call.tool, call.summary, call.why_no_rule) for call in facts.refused if call.advice_why)
    )
    if not calls:
        return
    console.line("no further rule would allow:", Tone.QUIET)
    for tool, summary, reason in calls[:MOST_RULES_SHOWN]:
        console.line(f"  {tool}  {visible_line(summary, 100)}: {reason}", Tone.QUIET)
    _tell_more(console, len(calls), "more call")


def _tell_more(console: Console, count: int, of_what: str) -> None:
    if count > MOST_RULES_SHOWN:
        console.line(f"  {count_of(count - MOST_RULES_SHOWN, of_what)}: see the log", Tone.QUIET)
