"""The prompt: a person, a model, and the turns of their conversation.

Read first: repl_command.py. It reads a line, finds its meaning (harness/app/commands/slash_command.py), acts on it,
and begins again. repl_terminal.py assembles the terminal (harness/terminal), status_line.py describes the
conversation. The slash commands are not here.
"""
