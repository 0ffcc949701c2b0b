"""Processes of a command: start them, follow them, limit them, and end them with all their descendants.

Read `command` first: `run_group` runs one bash and guarantees its end. It starts the bash (`start`, with the limits of
`hardening`), reads its output (`capture`), and ends its remaining processes (`survivors`). `guard` is a small process
that ends them if the harness itself is killed. `piped_process` is one program with a pipe to it and one from it.
`procfs` reads the kernel's facts about processes. `environment` builds a command's variables, `temporary` makes the
private folder that it may write, and `removal` removes folders. `json_rpc` reads and writes the lines of a protocol
between processes. `lifeline` ends the processes of many tasks with their parent.

This code does not judge commands, and does not use policies, tools or logs.
"""
