"""Reports of unattended runs (`run --report FORM:FILE`, `batch --report`), generated from log records.

Each form of report is one module with a constant REPORT: `markdown`, `junit`, `sarif`; harness/shipped.py names them.
`github` reports to a GitHub Actions job. The form `html` is a page of the insight plugin. The data about a run is in
app/run: `facts`, `result`, `reported` (descriptions that all reports share) and `unquoted` (texts without the model's
words).

No module here reads or writes files, except for `github`, which appends to files of its job.
"""
