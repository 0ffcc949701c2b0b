"""The form of report `words`."""


def write(runs, *, with_answer):
    for run in runs:
        yield f"{run.name}: {run.end_words}, {len(run.facts.calls)} calls\n"
