"""Questions to action logs: who asked for what, who allowed it, what became of it.

Read `calls` first: it joins the records about a call to one `LoggedCall`, and says who counts as a person. `logged_changes`
and `call_effects` answer questions from calls. Questions, statistics, pages and exports are in plugins/insight.

All of it works on records that may have been tampered with: no value of theirs is trusted to be of its type, and whether a
log verifies is not said here (`harness.log`). Nothing here writes a file; only `logged_changes` looks at the files of a
workspace.
"""
