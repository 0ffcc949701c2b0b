"""A queue of tasks for many workers. Read `queue` first, which is the interface of a queue, then `worker`.

`dbos_queue` implements the interface on DBOS, with a `ledger` of batches, workers and attempts. `worker` runs tasks,
each in a process like those of `harness batch`. `queued_batch` adds a batch and gathers its results. `queue_command`
shows, cancels and retries. The queue only selects tasks: the worker's own policy decides on permissions.
"""
