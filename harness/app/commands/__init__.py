"""The slash commands of the prompt, and the interpretation of typed lines.

Read first: slash_command.py (interpretation of a line, fields of a command) and conversation.py (the object that
commands act on). Each other module has one command or a few related ones. To add one, write a module here with a tuple
`COMMANDS`, which is found automatically. A command prints through the conversation and does not read keys.
"""
