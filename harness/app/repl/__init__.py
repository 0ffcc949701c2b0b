"""The prompt: a person, a model, and the turns of their conversation.

Read first: repl_command.py. It reads a line, finds out what it means (harness/app/commands/slash_command.py), does it, and
begins again. repl_terminal.py puts the parts of the terminal together (harness/terminal), status_line.py says how the
conversation stands. What a slash command does is not here.
"""
