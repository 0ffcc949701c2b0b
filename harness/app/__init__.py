"""The program `harness`: its commands, and the table that they stand in.

Read these first:
    main.py        reads the first words, finds the command and runs it
    flags.py       the parsers
    run/           `harness run`: a prompt with nobody to ask
    repl/          `harness`: the prompt, with `commands/` for what begins with a slash

Then a module or folder for each other command: policy, audit, undo, sessions, config, demo, schema. A module of `commands/`
with the name of a command (undo, policy, sessions) is its twin at the prompt.

Nothing is judged here, and no call runs but through harness/gate. What a session is made of is in harness/session, what draws
is in harness/terminal, and each feature is a folder of harness/plugins.
"""
