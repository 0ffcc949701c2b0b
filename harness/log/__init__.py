"""The action log: one file of JSON Lines a session, in which each call stands with its decision before it runs.

Read first: `schema` (kinds of records and their fields), `order` (which record may follow which) and `action_log` (writing).
`reader` opens and reads logs. `verify` checks a whole file, and `findings` says what that proves, compared with the heads
that were kept of it (`heads_file`). `clocks` reads and writes times; `rebuilding` makes the conversation of a session again.

Not here: what an auditor asks of logs (audit/), and in which folder they lie (cli/state).
"""
