"""The action log: one JSON Lines file per session that records each call with its decision before the call runs.

Read these first:

    schema.py       the kinds of records and their fields: one table
    vocabulary.py   the words of records: decisions, answers, events, statuses
    order.py        the permitted order of records
    action_log.py   `ActionLog.append`: after a failed write, it never writes again

Then, to read logs:

    reader.py       opens logs and yields their records
    verify.py       checks a whole file: chain, fields, order, digests
    heads_file.py   heads of logs, recorded outside the logs
    transcript.py   rebuilds a session's conversation
    clocks.py       conversion of times, and clock jumps

Not here: reports and queries about logs (audit/), and the folder of the logs (session/state.py).
"""
