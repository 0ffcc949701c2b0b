"""Tasks, each in its own folder. Read `task_run` first (`harness run --task`), then `batch_command` and `pool`.

`task` describes one task, `task_folder` its folder, and `outcome` its end. `sources` makes the folder that a task works
in, with session/work_folders. `results` is a place for results, and `store` accesses its files, in a folder or at a
URL. `uploads` sends finished attempts to a URL. `swebench` reads a benchmark's tasks and writes the input of its
evaluation. Each task is a normal run: this package makes no decisions on calls.
"""
