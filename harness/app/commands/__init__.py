"""The slash commands of the prompt, and what a typed line means.

Read first: slash_command.py (what a line means, what a command is), conversation.py (what a command acts on).
Each other module is one command or a few of one theme. To add one, write a module here with a tuple `COMMANDS`: it is found
by being there. A command shows what it has to say through the conversation; nothing here reads keys or draws.
"""
