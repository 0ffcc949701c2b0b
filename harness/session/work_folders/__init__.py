"""The folder that a task, or a helper that changes files, works in. Read `work_folder` first.

It is a `worktree` of a repository, or a `folder_copy`. The repository lies on this machine, or is a `mirror` of what an address
or a bundle holds. `transport` says which addresses, and has the one git that may fetch; `packed` makes and unpacks bundles and
archives. `changes` writes what changed as patches, and `git_runner` runs git for them. Of a repository nothing is run: no
hook, no filter, no program that it names.
"""
