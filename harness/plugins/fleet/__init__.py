"""Many tasks: `harness batch` on one machine, `harness worker` and `harness queue` on several.

Read batch/ first: it runs tasks, each in its own folder. queue/ distributes the tasks of a batch to many workers.
"""
