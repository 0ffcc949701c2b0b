"""The questions of `harness audit`: approvals, denied, unknown, files, reads, outside. Each is a row of QUESTIONS."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

from harness.app.audit.question import EXIT_CODES, AuditQuestion
from harness.plugin import later
from harness.terminal.tables import Column

_WHICH = (Column(name="when"), Column(name="call", spare=2))
_WHAT = (Column(name="tool", spare=1), Column(name="what", folds=True))
_CALL = (*_WHICH, *_WHAT)


def _invalid_flag(parser: ArgumentParser) -> None:
    parser.add_argument("--invalid", action="store_true", help="include the calls that could not be prepared")


QUESTIONS: Mapping[str, AuditQuestion] = {
    question.name: question
    for question in (
        AuditQuestion(
            name="approvals",
            help="List the questions that were asked: the rule, the answer, who gave it, and how long it took.",
            notes=f"Answers by people are marked `under 1 s` or `burst` (3 approvals within 10 s).\n{EXIT_CODES}",
            columns=(
                *_CALL,
                Column(name="asked by", folds=True, in_line="[{}]"),
                Column(name="answer", folds=True, toned=True),
                Column(name="", toned=True, folds=True, leaves=True),
            ),
            answers=later("harness.plugins.insight.commands.answered_questions", "Approvals"),
        ),
        AuditQuestion(
            name="denied",
            help="List the calls that were refused, by whom and why.",
            columns=(
                *_WHICH,
                Column(name="refused", toned=True),
                *_WHAT,
                Column(name="by", folds=True, in_line="[{}]"),
                Column(name="why", folds=True, leaves=True, in_line="why: {}"),
                Column(name="hint", folds=True, leaves=True, in_line="hint: {}"),
            ),
            answers=later("harness.plugins.insight.commands.answered_questions", "Refusals"),
            flags=_invalid_flag,
        ),
        AuditQuestion(
            name="unknown",
            help="List the calls that began and have no known end (they may have run), open sessions and torn lines.",
            notes="Exit code: 0 none was found, 1 a log does not verify, 2 usage, 3 one was found.",
            columns=(
                *_CALL,
                Column(name="allowed by", folds=True, in_line="[{}]"),
                Column(name="change", folds=True),
                Column(name="end", folds=True, toned=True),
            ),
            answers=later("harness.plugins.insight.commands.open_questions", "OpenEnds"),
        ),
        AuditQuestion(
            name="files",
            help="List every file that a call changed, before and after, and whether the change can be undone.",
            notes=(
                "The files on this machine are compared with what the last call left.\n"
                "Changes by commands are not recorded; commands that could write are listed with the places.\n"
                f"{EXIT_CODES}"
            ),
            columns=(
                Column(name="file", folds=True),
                Column(name="on disk", folds=True),
                *_WHICH,
                Column(name="tool"),
                Column(name="did", folds=True),
                Column(name="before and after"),
                Column(name="allowed by", folds=True),
                Column(name="undo", folds=True),
            ),
            answers=later("harness.plugins.insight.commands.effect_questions", "Files"),
        ),
        AuditQuestion(
            name="reads",
            help="List every file or folder that calls read, by path, and the calls whose reads are not all known.",
            notes=f"A folder may stand for every file in it.\n{EXIT_CODES}",
            columns=(
                Column(name="file or folder", folds=True),
                Column(name="where"),
                *_CALL,
                Column(name="ended"),
                Column(name="decided by", folds=True),
            ),
            answers=later("harness.plugins.insight.commands.effect_questions", "FilesRead"),
        ),
        AuditQuestion(
            name="outside",
            help="List the calls that read or could write outside the workspace, or could reach the network.",
            notes=f"Lists the effects that each verdict permitted, not those that occurred.\n{EXIT_CODES}",
            columns=(
                *_CALL,
                Column(name="ended", spare=3),
                Column(name="decided by", folds=True, in_line="[{}]"),
                Column(name="outside", folds=True, toned=True),
            ),
            answers=later("harness.plugins.insight.commands.effect_questions", "Outside"),
        ),
    )
}


def command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Answer the question that `arguments.action` names, and return the exit code. Raises HarnessError."""
    from harness.app.audit.asking import ask

    return ask(QUESTIONS[arguments.action], arguments, environment)
