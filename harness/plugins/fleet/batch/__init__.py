"""Tasks, each in a folder of its own. Read `task_run` first (`harness run --task`), then `batch_command` and `pool`.

`task` is one task; `task_folder` its folder; `outcome` its end. `sources` makes the folder that it works in, out of
session/work_folders. `results` is a place of results, `store` its files: a folder, or a URL, to which `uploads` sends finished
attempts. `swebench` reads a benchmark's tasks and writes the input of its evaluation. Nothing here decides on a call:
each task is a run like any other.
"""
