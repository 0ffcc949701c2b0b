"""The slash commands of the prompt, and the meaning of a typed line.

Read first: slash_command.py (the meaning of a line, the parts of a command), conversation.py (the object of a
command). Each other module is one command or a few of one theme. To add one, write a module here with a tuple
`COMMANDS`, which is found automatically. A command prints through the conversation and reads no keys.
"""
