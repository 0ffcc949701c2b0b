"""Tasks, each in a folder of its own. Read `task_run` first (`harness run --task`), then `batch_command` and `pool`.

`task` is what is asked; `task_folder` is what is kept of it; `outcome` says how it ended. What a task works in is a matter of
session/work_folders. `results` is a place of results, `store` the files of it: a folder, or a URL, to which `uploads`
brings what ended. `swebench` reads a benchmark's tasks and writes what its evaluation reads. Nothing here decides on a call:
each task is a run like any other.
"""
