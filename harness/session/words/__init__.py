"""Commands (which expand to a prompt) and skills (texts for the model) of the user or a project. None permits anything.

Read these first:

    word_files.py     the files, and the content of a folder of them
    own_words.py      the words of one workspace
    own_commands.py   a command at the prompt or of a run, and its expansion
    skills.py         the model's text about the skills
    front_matter.py   the fields at the head of a Markdown file
    template.py       texts with {{variables}}

Not here: whether the files of a workspace are trusted (session/extensions/project_trust.py).
"""
