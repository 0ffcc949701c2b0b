"""The prompt: the loop in which a user and a model converse.

Read first: repl_command.py. It reads a line, finds the meaning (harness/app/commands/slash_command.py), acts on it, and
repeats. repl_terminal.py assembles the terminal (harness/terminal), status_line.py describes the conversation. The
slash commands are in harness/app/commands.
"""
