"""Many tasks: `harness batch` on one machine, `harness worker` and `harness queue` on several.

Read batch/ first: tasks, each in a folder of its own. queue/ shares a batch out over many workers.
"""
