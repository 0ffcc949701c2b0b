"""Tasks, each in a folder of its own. Read `task_run` first (`harness run --task`), then `batch_command` and `pool`.

`task` is what is asked; `task_folder` is what is kept of it. A task works in a `work_folder`: a `worktree` of a repository, or
a `folder_copy`. `changes` writes what changed there as patches, and `git_runner` runs git for all of them. `outcome` says how a
batch ended. Nothing here decides on a call: each task is a run like any other.
"""
