"""Questions to action logs: who asked for a call, who allowed it, and its result.

Read `calls` first: it joins the records about a call to one `LoggedCall`, and decides who counts as a person.
`logged_changes` and `call_effects` answer questions from calls. `findings` reports whether a log verifies, compared with
the heads noted outside it; `signed_heads` signs them. Questions, statistics, pages and exports are in
plugins/insight.

The records may have been tampered with: this code never trusts the type of a value in them. `harness.log` decides
whether a log verifies. Only `signed_heads` writes files; only `logged_changes` reads the files of a workspace.
"""
