"""The files of reports: found unfit before the run, written whole or not at all after it, and by the real program."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from places import SUPPORT
from report_scene import SCHEMAS, a_run, hostile_run
from rows import all_rows

from harness.app.run.report_files import Reports
from harness.errors import UsageError
from harness.models.scripted import Reply, call, replies
from harness.session.shipped_plugins import report_form

if TYPE_CHECKING:
    from program import Program

RECORD = json.dumps({"v": 1, "prev": "0" * 64, "kind": "session_started"})


def test_every_form_is_written_whole_and_private(tmp_path: Path) -> None:
    files = {form: tmp_path / f"out.{form}" for form in ("md", "junit", "sarif")}
    given = [f"{form}:{path}" for form, path in files.items()]
    reports = Reports(given)
    assert [*tmp_path.iterdir()] == []
    assert reports.write([a_run(), hostile_run()]) == ""
    for form, path in files.items():
        assert path.read_text() == "".join(report_form(form).write([a_run(), hostile_run()], with_answer=False))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len([*tmp_path.iterdir()]) == 3


def test_missing_flag_writes_no_report() -> None:
    assert Reports([]).write([a_run()]) == ""


def spoil_link(folder: Path) -> list[str]:
    (folder / "link.md").symlink_to(folder / "a.md")
    return [f"md:{folder}/a.md", f"junit:{folder}/link.md"]


def with_record(folder: Path) -> list[str]:
    (folder / "old.jsonl").write_text(f"{RECORD}\n")
    return [f"md:{folder}/old.jsonl"]


def with_garbled_log(folder: Path) -> list[str]:
    (folder / "old.jsonl").write_text("no object\n")
    return [f"md:{folder}/old.jsonl"]


def with_link_to_log(folder: Path) -> list[str]:
    (folder / "kept").mkdir()
    (folder / "innocent.md").symlink_to(folder / "kept" / "log.jsonl")
    return [f"md:{folder}/innocent.md"]


def with_fifo(folder: Path) -> list[str]:
    os.mkfifo(folder / "fifo")
    return [f"md:{folder}/fifo"]


@all_rows(
    ("given", "why"),
    [
        (lambda folder: [f"pdf:{folder}/a"], "FORM one of md, junit, sarif, html"),
        (lambda folder: [f"{folder}/a.md"], "a report is FORM:FILE"),
        (lambda folder: ["md"], "a report is FORM:FILE"),
        (lambda folder: ["md:"], "the file is missing"),
        (lambda folder: [f"md:{folder}/none/a.md"], "No such file or directory"),
        (lambda folder: [f"md:{folder}"], "not a regular file"),
        (lambda folder: [f"md:{folder}/a", f"md:{folder}/./a"], "named twice"),
        (lambda folder: ["md:/proc/harness-report.md"], "cannot be written"),
        (lambda folder: [f"md:{folder}/{'n' * 300}"], "File name too long"),
        (lambda folder: [f"md:{folder}/kept/x"], "the action log, what the run"),
        (spoil_link, "named twice"),
        (with_record, "holds records of an action log"),
        (with_garbled_log, "holds records of an action log"),
        (lambda folder: [f"md:{folder}/a.jsonl.torn"], "belongs to an action log"),
        (lambda folder: [f"md:{folder}/a.jsonl.head"], "belongs to an action log"),
        (lambda folder: [f"md:{folder}/a.jsonl.head.sig"], "belongs to an action log"),
        (with_link_to_log, "the action log, what the run"),
        (with_fifo, "not a regular file"),
    ],
)
def test_unwritable_report_is_refused_before_the_run(
    given: Callable[[Path], list[str]], why: str, tmp_path: Path
) -> None:
    reports = given(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match=why):
        Reports(reports, keep_from=[str(tmp_path / "kept"), ""])
    assert sorted(tmp_path.rglob("*")) == before


def test_report_goes_to_the_original_folder_despite_changes_by_the_run(tmp_path: Path) -> None:
    """The way to it is changed in the meantime: the folder is another, and so is what a name in it leads to."""
    out, other = tmp_path / "out", tmp_path / "other"
    out.mkdir()
    other.mkdir()
    reports = Reports([f"md:{out}/r.md"])
    out.rename(tmp_path / "moved")
    out.symlink_to(other)
    (tmp_path / "moved" / "r.md").symlink_to(other / "victim")
    assert reports.write([a_run()]) == ""
    assert ([*other.iterdir()], (tmp_path / "moved" / "r.md").is_symlink()) == ([], False)
    assert "harness:" in (tmp_path / "moved" / "r.md").read_text()


def test_missing_folder_is_reported_and_the_other_reports_written(tmp_path: Path) -> None:
    gone, kept = tmp_path / "gone", tmp_path / "kept"
    gone.mkdir()
    kept.mkdir()
    reports = Reports([f"md:{gone}/r.md", f"junit:{kept}/r.xml"])
    gone.rmdir()
    problem = reports.write([a_run()])
    assert problem == f"the report md:{gone}/r.md cannot be written: No such file or directory"
    assert (kept / "r.xml").exists()


def test_report_on_a_missing_log_fails_and_keeps_the_old_page(tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    page.write_text("earlier")
    problem = Reports([f"html:{page}"]).write([a_run()])
    assert f"html:{page} cannot be written" in problem
    assert (page.read_text(), [*tmp_path.iterdir()]) == ("earlier", [page])


LIMITED = """
import resource, signal, sys
from report_scene import a_run
from harness.app.run.report_files import Reports
reports = Reports([f"md:{sys.argv[1]}"])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
print(reports.write([a_run()]))
"""


def test_a_full_disk_leaves_no_half_report(tmp_path: Path) -> None:
    """A limit on the size of files fails a write as a full disk does (setrlimit(2))."""
    path = tmp_path / "r.md"
    path.write_text("earlier")
    here = SUPPORT
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": f"{os.path.dirname(here)}{os.pathsep}{here}"},
    )
    assert done.stdout == f"the report md:{path} cannot be written: File too large\n"
    assert (path.read_text(), [*tmp_path.iterdir()]) == ("earlier", [path])


def run_with(program: Program, *flags: str) -> Any:
    calls = (
        call("bash", command="touch x; echo '|<b>@octocat'"),
        call("read_file", path=".env"),
        call("write_file", path="a.txt", content="a\n"),
    )
    script = replies(Reply(text="Zebra", calls=calls), Reply(text="Zebra, done"))
    return program.run("run", "go", "--base-url", program.serve(script), "--policy", "ci", *flags)


def test_the_program_writes_every_form_and_the_code_json_log_and_reports_agree(program: Program) -> None:
    names = {"md": "r.md", "junit": "r.xml", "sarif": "r.sarif", "html": "r.html"}
    flags = [part for form, name in names.items() for part in ("--report", f"{form}:{name}")]
    done = run_with(program, "--output", "json", *flags)
    assert done.code == 7, done.err
    result = json.loads(done.out)
    records = program.records()
    end = records[-1]
    assert (result["exit_code"], end.get("exit_code"), end["kind"]) == (7, 7, "session_ended")
    assert (len(result["refusals"]), [one["path"] for one in result["files_changed"]]) == (
        2,
        [str(program.workspace / "a.txt")],
    )
    pages = {form: (program.workspace / name).read_text() for form, name in names.items()}
    assert [form for form, page in pages.items() if "Zebra" in page] == []
    assert [form for form, page in pages.items() if result["head"] not in page] == []
    assert "completed, 2 denied (exit code 7)" in pages["md"]
    assert len(ET.fromstring(pages["junit"]).findall(".//failure")) == 2
    (sarif,) = json.loads(pages["sarif"])["runs"]
    uris = [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in sarif["results"]]
    assert uris == ["x", ".env"]


def test_the_program_shows_the_answer_only_where_it_is_asked_to(program: Program) -> None:
    assert run_with(program, "--report", "md:r.md", "--report-answer").code == 7
    page = (program.workspace / "r.md").read_text()
    assert "```text\nZebra, done\n```" in page


def test_dry_run_report_lists_no_executed_calls(program: Program) -> None:
    done = run_with(program, "--dry-run", "--report", "md:r.md", "--report", "junit:r.xml")
    page, root = (program.workspace / "r.md").read_text(), ET.parse(program.workspace / "r.xml").getroot()
    assert done.code == 7
    assert "Dry run: calls were judged, and none was run." in page
    assert ("Files changed" in page, (program.workspace / "a.txt").exists()) == (False, False)
    assert [[child.tag for child in case] for case in root.iter("testcase")] == [
        ["failure"],
        ["failure"],
        ["skipped"],
        [],
    ]


def test_a_limit_is_an_error_of_the_run(program: Program) -> None:
    done = run_with(program, "--max-turns", "1", "--report", "junit:r.xml", "--report", "md:r.md")
    (error,) = ET.parse(program.workspace / "r.xml").getroot().findall(".//error")
    assert (done.code, error.attrib["type"], "exit code 4" in error.attrib["message"]) == (4, "limit", True)
    assert "- limit: <code>1 request was made" in (program.workspace / "r.md").read_text()


@all_rows(
    "flags",
    [
        pytest.param(("--report", "pdf:r"), id="an unknown form"),
        pytest.param(("--report", "md:none/r.md"), id="no such folder"),
        pytest.param(("--report", "md:r", "--report", "junit:r"), id="the same file twice"),
    ],
)
def test_the_program_finds_an_unfit_report_before_it_asks_the_model(program: Program, flags: Sequence[str]) -> None:
    done = run_with(program, *flags)
    assert (done.code, "--report" in done.err, program.players[0].requests) == (2, True, [])


def test_the_schemas_are_those_that_their_readme_names() -> None:
    import hashlib

    with open(os.path.join(SCHEMAS, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    for name in ("sarif-2.1.0-rtm.5.json", "junit-10.xsd"):
        with open(os.path.join(SCHEMAS, name), "rb") as schema:
            assert hashlib.sha256(schema.read()).hexdigest() in readme
