"""A report and an export are each one file and one row: here both are added to the program, and asked for."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from audit_runs import Call, own_policy, session

from harness.models.scripted import replies, say

if TYPE_CHECKING:
    from program import Program

EXPORT = """
def exported(export):
    for call in export.logs.calls():
        yield f"{call.tool}: {call.summary}\\n"
"""
REPORT = """
from harness.plugin import ReportForm

def report(runs, *, with_answer):
    for run in runs:
        yield f"{run.end_words}, {len(run.facts.calls)} calls\\n"

REPORT = ReportForm(name="words", write=report)
"""
WITH_ROWS = """
from harness.plugins.insight.export import EXPORTS
from harness.shipped import REPORTS
from harness.app.main import program

EXPORTS["words"] = "words_export"
REPORTS["words"] = "words_report"
raise SystemExit(program())
"""


def with_rows(program: Program, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the program with one more file for each, and one more row."""
    folder = program.home / "modules"
    folder.mkdir(exist_ok=True)
    (folder / "words_export.py").write_text(EXPORT)
    (folder / "words_report.py").write_text(REPORT)
    environment = {**program.environment, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", WITH_ROWS, *words]
    done = subprocess.run(command, cwd=program.workspace, env=environment, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return done


def test_export_of_a_plugin_is_offered_and_written(program: Program) -> None:
    log = program.home / "log.jsonl"
    session(log, program.workspace, own_policy(program.home), [Call("bash", "ls")])
    assert "words" in with_rows(program, "audit", "export", "--help").stdout
    assert with_rows(program, "audit", "export", "--to", "words", str(log)).stdout == "bash: ls\n"


def test_report_of_a_plugin_is_offered_and_written(program: Program) -> None:
    assert "words" in with_rows(program, "run", "--help").stdout
    report = program.home / "report.txt"
    url = program.serve(replies(say("done")))
    with_rows(program, "run", "go", "--base-url", url, "--model", "m", "--policy", "ci", "--report", f"words:{report}")
    assert report.read_text() == "completed, 0 calls\n"
