"""Reports a run to its GitHub Actions job in the three ways that the runner supports. Contains no text of the model.

The ways are the step summary ($GITHUB_STEP_SUMMARY), the outputs ($GITHUB_OUTPUT) and annotations (commands in the
output): "Workflow commands for GitHub Actions" in GitHub's documentation. They are used without any flag whenever these
variables are set.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from harness.app.run.facts import ReportedCall, RunFacts
from harness.app.run.reported import ReportedRun
from harness.app.run.run_output import RunOutput
from harness.app.run.workflow_commands import CommandFence, Guarded, command, is_file, is_job
from harness.paths import short_place
from harness.plugins.reports.markdown import report
from harness.record import Record, replace
from harness.session.exits import is_soft
from harness.terminal.console import complain
from harness.text.visible import visible_line

MAX_SUMMARY_BYTES = 1024 * 1024
"""Maximum size of a step summary in bytes. The runner rejects longer ones."""
LEAST_ROOM = 4096
"""Minimum free space in bytes of a runner's file for appending to it."""
MAX_ANNOTATIONS = 10
"""Maximum number of annotations by this program, for all levels together. The runner shows ten per level and step."""
MAX_MESSAGE = 500
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Annotation(Record):
    """One line on the job's page, with a place in a file if there is one."""

    level: str
    """`error`, `warning` or `notice`."""
    title: str
    message: str
    file: str = ""
    line: int | None = None


class Appended(Record):
    """A file of the runner, opened before the run, so that no later process can replace it by a link."""

    variable: str
    descriptor: int
    """-1 if the file is not needed (no name, or a device such as /dev/null) or could not be opened."""
    problem: str = ""


def actions_from(environment: Mapping[str, str]) -> Actions | None:
    """Return the job of this run. `None` outside GitHub Actions and compatible services.

    Call it before any call of the model runs, because it opens the files of the environment. If one cannot be opened,
    `tell` reports that.
    """
    if not is_job(environment):
        return None
    summary, outputs = _opened(environment, "GITHUB_STEP_SUMMARY"), _opened(environment, "GITHUB_OUTPUT")
    if min(summary.descriptor, outputs.descriptor) >= 0 and os.path.sameopenfile(
        summary.descriptor, outputs.descriptor
    ):
        os.close(summary.descriptor)
        summary = replace(summary, descriptor=-1, problem="$GITHUB_STEP_SUMMARY and $GITHUB_OUTPUT are the same file")
    return Actions(
        summary=summary,
        outputs=outputs,
        workspace=environment.get("GITHUB_WORKSPACE", ""),
    )


class Actions:
    """The job of a run. Call once either `tell` for one run or `tell_all` for several."""

    def __init__(self, *, summary: Appended, outputs: Appended, workspace: str) -> None:
        """Create it. Callers use `actions_from`."""
        self.fence = CommandFence()
        self._summary = summary
        self._outputs = outputs
        self._workspace = os.path.realpath(workspace) if os.path.isabs(workspace) else ""

    def tell(self, reported: ReportedRun, *, output: RunOutput | None, code: int, with_answer: bool = False) -> str:
        """Report to the job a run with the exit code `code`. Return the problems, or an empty string.

        Annotations go to stdout after the answer, if `output` accepts them, else to stderr.
        """
        facts, result = reported.facts, reported.result
        outputs = {
            "end": _text(result.get("end")) or facts.stop,
            "log-path": _text(result.get("log")),
            "log-head": _text(result.get("head")),
        }
        return self._tell([reported], outputs, output=output, code=code, with_answer=with_answer)

    def tell_all(self, runs: Sequence[ReportedRun], *, code: int, with_answer: bool = False) -> str:
        """Report several runs to the job, as one step with total counts and without a log."""
        return self._tell(runs, {}, output=None, code=code, with_answer=with_answer)

    def _tell(
        self,
        runs: Sequence[ReportedRun],
        outputs: Mapping[str, str],
        *,
        output: RunOutput | None,
        code: int,
        with_answer: bool,
    ) -> str:
        # A full summary is not a failure of the run. Other programs of the step filled it, and the log has all the
        # facts.
        problems = [_append(self._summary, lambda room: _fitting(report(runs, with_answer=with_answer), room), _noted)]
        annotations = Annotations(self._workspace)
        for run in runs:
            annotations.add(run.facts)
        problems.append(_annotate(annotations.chosen(), output))
        problems.append(self._outputs.problem)
        if any(problems) and is_soft(code):
            code = 1
        values = {
            **outputs,
            "exit-code": str(code),
            "refused": str(annotations.refused),
            "blocked": str(annotations.blocked),
        }
        problems[-1] = _append(
            self._outputs, lambda _: "".join(_heredoc(*pair) for pair in values.items()).encode(), str
        )
        return "; ".join(problem for problem in problems if problem)


class Annotations:
    """The most important facts of some runs, collected run by run. It stores no more than it can show.

    Blocks come first, then refusals, limits and errors.
    """

    def __init__(self, workspace: str) -> None:
        """Create it. `workspace` is the job's resolved workspace; annotations name only policy files inside it."""
        self.refused = 0
        self.blocked = 0
        self._workspace = workspace
        self._kept_annotations: tuple[list[Annotation], ...] = ([], [], [])
        self._count = 0

    def add(self, facts: RunFacts) -> None:
        """Add the facts of a run."""
        self.refused += facts.denied_count
        self.blocked += facts.blocked_count
        self._count += facts.refused_left_out
        blocks, refusals, troubles = self._kept_annotations
        for refused in facts.refused:
            entries = blocks if refused.status == "blocked" else refusals
            if self._has_room(entries):
                entries.append(_of_refused(refused, self._workspace))
        for limit in facts.limits:
            if self._has_room(troubles):
                troubles.append(Annotation(level="error", title="limit", message=limit))
        for error in facts.errors:
            if self._has_room(troubles):
                troubles.append(_of_error(error.location, error.message))
        if facts.answer_problem and self._has_room(troubles):
            troubles.append(_of_error("answer", facts.answer_problem))

    def _has_room(self, entries: list[Annotation]) -> bool:
        """Count one more entry. Return whether it should be stored."""
        self._count += 1
        return len(entries) < MAX_ANNOTATIONS

    def chosen(self) -> list[Annotation]:
        """Return at most MAX_ANNOTATIONS annotations. If there are more, the last one has the number of the others."""
        entries = [annotation for group in self._kept_annotations for annotation in group]
        if self._count <= MAX_ANNOTATIONS:
            return entries
        first = entries[: MAX_ANNOTATIONS - 1]
        more = f"{self._count - len(first)} more are in the step summary, or in the log."
        return [*first, Annotation(level="notice", title="harness", message=more)]


def _of_error(place: str, message: str) -> Annotation:
    return Annotation(level="error", title="error", message=f"{place}: {message}")


def _of_refused(refused: ReportedCall, workspace: str) -> Annotation:
    blocked = refused.status == "blocked"
    call_text = f"{refused.tool}: {refused.summary} [{refused.decision}: {short_place(refused.by)}]"
    return Annotation(
        level="error" if blocked else "warning",
        title="blocked" if blocked else "refused",
        message=f"{call_text} {refused.reason}",
        file=_within(refused.file, workspace),
        line=refused.line,
    )


def _within(path: str, workspace: str) -> str:
    """Return `path` relative to the job's workspace. Empty if it is elsewhere."""
    if not workspace or not path or "\0" in path:
        return ""
    real = os.path.realpath(path)
    return real[len(workspace) + 1 :] if real.startswith(f"{workspace.rstrip('/')}/") else ""


def _annotate(annotations: Sequence[Annotation], output: RunOutput | None) -> str:
    """Write the annotations where the runner reads them, outside any fence. Return the problem, or an empty string."""
    lines = [_line_of(annotation) for annotation in annotations]
    if output is not None and output.takes_commands:
        output.commands("".join(f"{line}\n" for line in lines))
        return ""
    try:
        for line in lines:
            _to_stderr(line)
    except (OSError, ValueError):
        return "the annotations cannot be written"
    return ""


def _line_of(annotation: Annotation) -> str:
    place = {
        "file": annotation.file,
        "line": str(annotation.line) if annotation.file and annotation.line is not None else "",
    }
    properties = {
        **place,
        "title": f"harness: {annotation.title}" if annotation.title != "harness" else annotation.title,
    }
    return command(
        annotation.level, visible_line(annotation.message, MAX_MESSAGE), {k: _sayable(v) for k, v in properties.items()}
    )


def _noted(problem: str) -> str:
    """Print a harmless problem on stderr. Return an empty string, which means no problem."""
    complain(f"{problem}; this run is left out of it")
    return ""


def _to_stderr(line: str) -> None:
    if isinstance(sys.stderr, Guarded):
        sys.stderr.write_command(line)
    else:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _opened(environment: Mapping[str, str], variable: str) -> Appended:
    path = environment.get(variable, "")
    if not path:
        return Appended(variable=variable, descriptor=-1)
    try:
        descriptor = os.open(path, _FLAGS, 0o600)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        linked = isinstance(error, OSError) and error.errno == errno.ELOOP
        reason = "it is a link" if linked else getattr(error, "strerror", None) or str(error)
        return Appended(variable=variable, descriptor=-1, problem=f"${variable} cannot be written: {reason}")
    if is_file(descriptor):
        return Appended(variable=variable, descriptor=descriptor)
    is_device = stat.S_ISCHR(os.fstat(descriptor).st_mode)
    os.close(descriptor)
    problem = "" if is_device else f"${variable} cannot be written: it is no regular file"
    return Appended(variable=variable, descriptor=-1, problem=problem)


def _append(file: Appended, content: Callable[[int], bytes], on_full: Callable[[str], str]) -> str:
    """Append the result of `content` for the free space, on a new line, and close the file.

    Returns the problem, or an empty string. If the file is full, returns the result of `on_full`.
    """
    if file.descriptor < 0:
        return file.problem
    try:
        size = os.fstat(file.descriptor).st_size
        if size > MAX_SUMMARY_BYTES - LEAST_ROOM:
            return on_full(f"${file.variable} is full: {size} bytes stand in it")
        data = (b"\n" if size else b"") + content(MAX_SUMMARY_BYTES - size - 1)
        while data:
            data = data[os.write(file.descriptor, data) :]
    except OSError as error:
        return f"${file.variable} cannot be written: {error.strerror}"
    finally:
        os.close(file.descriptor)
    return ""


def _fitting(blocks: Iterator[str], room: int) -> bytes:
    """Return as many complete blocks as fit into `room` bytes, with a final note if some are omitted."""
    note = "\n\n*{} more {} of this report left out: a step summary holds 1 MiB. The log has all of it.*\n"
    parts: list[bytes] = []
    remaining = room - len(note) - 40
    missing = 0
    for block in blocks:
        data = block.encode("utf-8", "backslashreplace")
        if missing or len(data) > remaining:
            missing += 1
            continue
        parts.append(data)
        remaining -= len(data)
    if missing and room > len(note) + 40:
        parts.append(note.format(missing, "part is" if missing == 1 else "parts are").encode())
    return b"".join(parts)


def _heredoc(name: str, value: str) -> str:
    """Return an output in the format of the runner's file.

    Its delimiters are random, so that no value can contain them.
    """
    delimiter = f"harness_{os.urandom(16).hex()}"
    return f"{name}<<{delimiter}\n{_sayable(value)}\n{delimiter}\n"


def _sayable(text: str) -> str:
    """Return `text` with characters escaped that UTF-8 cannot encode, such as undecodable bytes of a file name."""
    return text.encode("utf-8", "backslashreplace").decode()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
