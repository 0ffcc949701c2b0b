"""The command line: the only layer that knows the terminal, the environment and the clock.

`main` reads the words and calls one command, `flags` has every parser, `exits` every exit code. `harness X` is the module X, or
X_command in the package X: run, batch, demo, policy, audit, undo, doctor, config, sessions, schema; `fleet` has worker and
queue. Without a command it is `repl`, with `commands` for what begins with a slash and `terminal` for what draws. Where two
modules have one name (audit/diff and commands/diff), one is a command and the other its twin at the prompt.

What commands share: `parts` puts a session together, of the `system_prompt`, the `kept_grants` and what `resume` finds.
`state` names the folders, `own_folders` keeps them out of reach, `environment_secrets` says what to mask. `session_log`
opens and closes the log. `trace` makes a line of a record, `tables` draws, `console` writes, `signals` listens.
`work_folders` are what tasks and helpers work in; a `lifeline` ends their processes with whoever started them.

Nothing is judged here, and no call runs but through harness/gate. No other room imports this one.
"""
