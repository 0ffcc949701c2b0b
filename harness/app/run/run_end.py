"""The end of a run: its messages, and the reports, summaries and outputs from its facts."""

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
"""Variables with the files that a job of GitHub Actions obeys."""
MOST_RULES_SHOWN = 5
"""Maximum number of rules on stderr; the reports, the JSON and the log have all of them."""


class RunEnd(Record):
    """The end of a run."""

    code: Exit
    summary: Mapping[str, JsonValue]
    """The object that `--output json` writes."""


class Job(Protocol):
    """A CI job that gets the results of its runs."""

    fence: CommandFence
    """Keeps text on stdout from being read as commands of the job."""

    def tell(self, reported: ReportedRun, *, output: RunOutput | None, code: int, with_answer: bool = False) -> str:
        """Tell the job of its only run; return the problem, or an empty text."""
        ...

    def tell_all(self, runs: Sequence[ReportedRun], *, code: int, with_answer: bool = False) -> str:
        """Tell the job of several runs; return the problem, or an empty text."""
        ...


class EndReports:
    """The files to write at the end of a run; an unwritable one is found before it begins."""

    def __init__(self, arguments: Namespace, environment: Mapping[str, str]) -> None:
        """Raises UsageError for a report that cannot be written."""
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
        """The fence that keeps an answer on stdout from being read as commands, if a runner reads it."""
        return self._job.fence if self._job else None

    def summary(self, session: RunningSession, facts: RunFacts, result: RunResult, code: Exit) -> dict[str, JsonValue]:
        """Return the object that `--output json` writes."""
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
        """Print the rules that would let refused calls run, the log's head, and last the reason why the run was not
        done.
        """
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
        """Write the reports; return the problem, or an empty string.

        If one cannot be written, the others have the resulting exit code.
        """
        if self._reports is None:
            return ""
        problem = self._reports.write([self._reported(facts, summary)])
        if problem and is_soft(int(code)):
            self._reports.write([self._reported(facts, {**summary, "exit_code": int(Exit.INTERNAL)})])
        return problem

    def tell_actions(self, summary: Mapping[str, JsonValue], facts: RunFacts, output: RunOutput, code: Exit) -> str:
        """Report to a GitHub Actions job, if this runs in one; return the problem, or an empty string."""
        if self._job is None:
            return ""
        return self._job.tell(
            self._reported(facts, summary), output=output, code=int(code), with_answer=self._arguments.report_answer
        )

    def _reported(self, facts: RunFacts, summary: Mapping[str, JsonValue]) -> ReportedRun:
        return ReportedRun(name="run", facts=facts, result=summary, heads=self._heads)


def runner_files(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files of a CI runner's that the environment names, links followed: no call and no report may write them."""
    paths = (environment.get(name, "") for name in RUNNER_FILES)
    return tuple(os.path.realpath(path) for path in paths if path.startswith("/"))


def _named_files(arguments: Namespace) -> Iterator[str]:
    """Yield the files that a run reads or keeps by name, and what a project's policy is called."""
    names = ("log", "record", "replay", "prompt_file", "output_schema", "system")
    yield from (path for name in names if (path := getattr(arguments, name)))
    yield from arguments.policy or ()
    yield os.path.join(arguments.cwd or ".", PROJECT_POLICY)


def _tell_rules(console: Console, facts: RunFacts) -> None:
    """Write the rules that would let refused calls run, in the form of a policy; they are never applied."""
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
    """Write of the other refused calls why no rule would let them run."""
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
