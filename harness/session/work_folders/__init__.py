"""The folder that a task, or a helper that changes files, works in. Read `work_folder` first.

It is a `worktree` of a repository, or a `folder_copy`. The repository is on this machine, or is a `mirror` of an
address or a bundle. `transport` defines the addresses, and has the only git runner that may fetch. `packed` makes and
unpacks bundles and archives. `changes` writes the changes as patches, and `git_runner` runs git for all of them. Programs
of a repository are never run: no hook, no filter, no configured command.
"""
