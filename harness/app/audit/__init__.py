"""`harness audit` of the core: list, show, verify, sign, prune and recover action logs.

`plugin` has the commands and their flags, and each command is one module with the function `command`. Read `logs`
first: it selects the logs of a question, and warns about them before any answer. Nothing here needs a model or the
network; only `prune`, `recover` and `sign` change anything.
"""
