"""One queue of tasks over many workers. Read `queue` first: what a queue is to the rest; then `worker`.

`dbos_queue` is that queue on DBOS, with a `ledger` of batches, workers and attempts beside it. `worker` does tasks, each in a
process as `harness batch` starts them. `queued_batch` puts a batch in and gathers its results; `queue_command` shows, cancels
and retries. The queue chooses what is worked on. What may be done is the worker's own policy, as ever.
"""
