"""The command line: the only layer that knows the terminal, the environment and the clock.

`main` reads the words and calls one command, `flags` has every parser, `exits` every exit code. `harness X` is the module X, or
X_command in the package X: run, batch, demo, policy, audit, undo, doctor, config, sessions, schema. Without a command it is
`repl`, with `commands` for what begins with a slash and `terminal` for what draws. What they share: `parts` puts a session
together, `state` names the folders, `session_log` opens and closes the log, `console` writes, `signals` listens.

Nothing is judged here, and no call runs but through harness/gate. No other room imports this one.
"""
