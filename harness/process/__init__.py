"""What a command starts: started, followed, bounded, and ended with all that descends from it.

Read `command` first: `run_group` runs one bash to an end that always comes. It starts it (`start`, with the limits of
`hardening`), takes what it prints (`capture`), and ends what it leaves running (`survivors`). `guard` is a small process that
does the last of that when the harness itself is killed. `piped_process` is one program with a pipe to it and one from it.
`procfs` reads what the kernel tells of processes. `environment` is what a command gets of variables, `temporary` the private
folder that it may write. `lifeline` ends the processes of many tasks with whoever started them.

Nothing here judges a command, and nothing here knows a policy, a tool or a log.
"""
