"""Processes of a command: started, followed, bounded, and ended with all their descendants.

Read `command` first: `run_group` runs one bash to an end that always comes. It starts it (`start`, with the limits of
`hardening`), reads its output (`capture`), and ends its remaining processes (`survivors`). `guard` is a small process
that does the latter when the harness itself is killed. `piped_process` is one program with a pipe to it and one from
it. `procfs` reads the kernel's facts about processes. `environment` builds a command's variables, `temporary` the
private folder that it may write, and `removal` removes folders. `json_rpc` reads and writes the lines of a protocol
between processes. `lifeline` ends the processes of many tasks with their parent.

Nothing here judges a command, and nothing here knows a policy, a tool or a log.
"""
