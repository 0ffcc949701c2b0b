"""Questions to action logs: who asked for what, who allowed it, what became of it.

Read `calls` first: it joins the records about a call to one `LoggedCall`, and says who counts as a person. `questions`
(what was asked, refused, never ended), `logged_changes` and `call_effects` answer questions from calls, `stats` counts,
`difference` compares two sessions. `report/` is the page of HTML, `export/` writes calls for other programs,
`run_reports/` tells of unattended runs, `suggestions/` proposes rules out of repeated approvals.

All of it works on records that may have been tampered with: no value of theirs is trusted to be of its type, and whether a
log verifies is not said here (`harness.log`). Nothing here writes a file; only `logged_changes` looks at the files of a
workspace.
"""
