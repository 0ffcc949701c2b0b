"""The program `harness`: its commands and their table.

Read these first:

    main.py          runs the command that the words name; errors become one line and an exit code
    command_line.py  finds the command, builds its parser, and draws the help
    common_flags.py  the flags that several commands share
    run/             `harness run`: a prompt without a person
    repl/            `harness`: the prompt, with `commands/` for slash commands

harness/shipped.py names the module of each command. That module, `plugin.py` of a folder, has the record and the
flags of the command (harness/plugin.py), and imports the code of the command when it runs.

Then a module or folder for each other command: policy, audit, undo, sessions, config, demo, schema. A module of
`commands/` with the name of a command (undo, policy, sessions) is its twin at the prompt.

Nothing is judged here, and every call runs through harness/gate. A session's parts are in harness/session, drawing is
in harness/terminal, and each feature is a folder of harness/plugins.
"""
