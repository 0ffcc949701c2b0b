"""The plugin insight: questions about logs, statistics, reports, exports, and suggestions for a policy."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from harness.app.audit.question import question_flags
from harness.app.common_flags import filled, json_flag, log_flags, policy_flag, positive_integer
from harness.plugin import CliCommand, Plugin, later
from harness.plugins.insight.commands.questions import QUESTIONS
from harness.plugins.insight.export import EXPORTS

if TYPE_CHECKING:
    from argparse import ArgumentParser


def _stats_flags(parser: ArgumentParser) -> None:
    log_flags(parser)
    parser.add_argument(
        "--sql",
        nargs="?",
        const="",
        metavar="QUERY",
        help="a SELECT over the view `records`, answered by DuckDB (the extra `sql`); write it after LOG",
    )


def _diff_flags(parser: ArgumentParser) -> None:
    parser.add_argument("left", type=filled, metavar="A", help="first log file or session ID prefix")
    parser.add_argument("right", type=filled, metavar="B", help="second log file or session ID prefix")
    json_flag(parser)


def _report_flags(parser: ArgumentParser) -> None:
    log_flags(parser, as_json=False)
    parser.add_argument(
        "-o", "--output", type=filled, metavar="FILE", required=True, help="the file to write; - is stdout"
    )
    parser.add_argument("--title", default="", metavar="TEXT", help="the heading of the page")
    parser.add_argument("--full", action="store_true", help="cut nothing: every call and every text whole")


def _export_flags(parser: ArgumentParser) -> None:
    log_flags(parser, as_json=False)
    parser.add_argument("--to", choices=tuple(EXPORTS), required=True, help="the form")
    parser.add_argument("--content", action="store_true", help="include arguments and results, as far as logged")
    parser.add_argument(
        "-o", "--output", type=filled, metavar="FILE", default="-", help="the file to write (default: stdout)"
    )


def _suggest_flags(parser: ArgumentParser) -> None:
    log_flags(parser)
    parser.add_argument(
        "--least",
        type=positive_integer,
        default=2,
        metavar="N",
        help="minimum of approvals in different calls (default: 2)",
    )


def _fatigue_flags(parser: ArgumentParser) -> None:
    log_flags(parser)
    policy_flag(parser, "a policy file or the name of a shipped policy (default: each session's own)")
    parser.add_argument(
        "--take",
        choices=("exact", "program", "walls", "widest"),
        default="walls",
        help="grant to assume at its first offer: the exact words; all edits, and programs inside walls; every known "
        "command as well; the widest (default: walls)",
    )


_QUESTIONS = later("harness.plugins.insight.commands.questions", "command")
PLUGIN = Plugin(
    name="insight",
    commands=(
        *(
            CliCommand(
                name=f"audit {question.name}",
                help=question.help,
                add_flags=partial(question_flags, question),
                run=_QUESTIONS,
                is_light=True,
            )
            for question in QUESTIONS.values()
        ),
        CliCommand(
            name="audit stats",
            help="Count calls, questions and refusals by rule: the basis for a better policy.",
            add_flags=_stats_flags,
            run=later("harness.plugins.insight.commands.stats", "command"),
            is_light=True,
        ),
        CliCommand(
            name="audit diff",
            help="Compare two sessions: what was asked, decided, done and changed.",
            add_flags=_diff_flags,
            run=later("harness.plugins.insight.commands.diff", "command"),
            is_light=True,
        ),
        CliCommand(
            name="audit report",
            help="Write one page of HTML, without scripts, about what happened. The log remains the record.",
            add_flags=_report_flags,
            run=later("harness.plugins.insight.commands.report", "command"),
            is_light=True,
        ),
        CliCommand(
            name="audit export",
            help="Write the calls in another form. The log remains the record, and nothing is sent.",
            add_flags=_export_flags,
            run=later("harness.plugins.insight.commands.export", "command"),
            is_light=True,
        ),
        CliCommand(
            name="policy suggest",
            help="Propose rules that would have saved repeated approvals. Writes no policy.",
            add_flags=_suggest_flags,
            run=later("harness.plugins.insight.commands.suggest", "suggest_command"),
            is_light=True,
        ),
        CliCommand(
            name="policy fatigue",
            help="Count the questions of sessions, and those that remain when grants are taken.",
            add_flags=_fatigue_flags,
            run=later("harness.plugins.insight.commands.fatigue", "fatigue_command"),
            is_light=True,
        ),
    ),
)
