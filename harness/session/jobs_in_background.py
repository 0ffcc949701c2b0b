"""The background commands of a session, as the loop sees them: a record and a note for each that ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.actions import JsonValue
from harness.loop.run import News
from harness.process.ended import CommandEnding
from harness.process.job import BackgroundJob, Jobs, Stopper


class JobsInBackground:
    """The jobs of a session. See loop.run.Background."""

    def __init__(self, jobs: Jobs) -> None:
        """Report the ends of `jobs`."""
        self._jobs = jobs

    def news(self) -> Sequence[News]:
        """Return a record for each job that ended, and a note unless the model has read the end or caused it."""
        return [
            News(
                kind="job_ended",
                fields=_fields(job),
                note="" if job.is_end_read or job.stopped_by is Stopper.SESSION else _note(job),
            )
            for job in self._jobs.take_ended()
        ]

    def close(self) -> None:
        """End all jobs."""
        self._jobs.close()


def _note(job: BackgroundJob) -> str:
    return f"[In the background, {job.state}. Its last output: job, with name {job.name}.]"


def _fields(job: BackgroundJob) -> Mapping[str, JsonValue]:
    end = job.end
    fields: dict[str, JsonValue] = {
        "of_session": job.session,
        "call": job.call,
        "name": job.name,
        "ending": "not started" if end is None else end.ending.value,
        "by": job.stopped_by.value,
        "exit_code": end.status if end is not None and end.ending is CommandEnding.EXITED else None,
        "seconds": round(job.seconds, 3),
        "output_bytes": job.output.total,
        **job.facts,
    }
    if end is not None and end.surviving:
        fields["surviving"] = list(end.surviving)
    return fields
