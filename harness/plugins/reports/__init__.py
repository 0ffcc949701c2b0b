"""Reports of unattended runs (`run --report FORM:FILE`, `batch --report`): records in, text out.

Each form of report is one module with a constant REPORT: `markdown`, `junit`, `sarif`; harness/shipped.py names them.
`github` tells a job of GitHub Actions. The form `html` is the page of insight. The log's data about a run is in
app/run: `facts`, `result`, `reported` (the words that all reports share) and `unquoted` (the text that is safe
without the model's words).

Nothing here reads or writes a file, except `github`, which adds to the files of its job.
"""
