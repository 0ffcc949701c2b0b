"""The action log: one file of JSON Lines a session, in which each call stands with its decision before it runs.

Read these first:
    schema.py       the kinds of records and their fields: one table
    vocabulary.py   the words of records: decisions, answers, events, statuses
    order.py        which record may follow which
    action_log.py   `ActionLog.append`: on disk, or never again

Then, to read logs:
    reader.py       opens them and yields their records
    verify.py       checks a whole file: chain, fields, order, digests
    findings.py     says what that proves, compared with what was kept of the log outside (heads_file.py)
    transcript.py   makes a session's conversation again
    growing_log.py  the head of a log that is being written
    clocks.py       times, written and read

Not here: what an auditor asks of logs (audit/), and in which folder they lie (session/state.py).
"""
