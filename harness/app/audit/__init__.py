"""`harness audit` of the core: list, show, verify, sign, prune and recover action logs.

`plugin` has the commands and their flags. Each command is one module with the function `command`. Read `logs` first: it
selects the logs of a question, and prints warnings about them before any answer. This package needs neither a model nor
the network. Only `prune`, `recover` and `sign` change anything.
"""
