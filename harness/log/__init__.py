"""The action log: one JSON Lines file per session that records each call with its decision before the call runs.

Read these first:

    schema.py       the kinds of records and their fields: one table
    vocabulary.py   the words of records: decisions, answers, events, statuses
    order.py        which record may follow which
    action_log.py   `ActionLog.append`: on disk, or never again

Then, to read logs:

    reader.py       opens them and yields their records
    verify.py       checks a whole file: chain, fields, order, digests
    heads_file.py   heads noted outside the log
    transcript.py   rebuilds a session's conversation
    clocks.py       times, written and read

Not here: the report on a log and the questions of an auditor (audit/), and the folder of the logs (session/state.py).
"""
