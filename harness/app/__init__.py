"""The program `harness`: its commands and their table.

Read these first:

    main.py          runs the command of a command line; errors become one line and an exit code
    command_line.py  finds the command, builds its parser, and draws the help
    common_flags.py  the flags that several commands share
    run/             `harness run`: a prompt without a user
    repl/            `harness`: the interactive prompt; `commands/` has its slash commands

harness/shipped.py names the module of each command. That module, `plugin.py` of a folder, has the record and the flags
of the command (harness/plugin.py), and imports the code of the command when it runs.

The other commands each have a module or folder: policy, audit, undo, sessions, config, demo, schema. A module of
`commands/` with the name of a command (undo, policy, sessions) is the slash command of that name.

This package judges no calls; every call runs through harness/gate. The parts of a session are in harness/session,
drawing is in harness/terminal, and each feature is a folder of harness/plugins.
"""
