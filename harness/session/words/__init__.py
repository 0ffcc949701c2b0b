"""A team's own words: commands that stand for a prompt, and skills that the model may read. All are text; none permits.

Read these first:
    word_files.py     the files, and what one folder of them says
    own_words.py      what holds in one workspace
    own_commands.py   a command at the prompt or of a run: what its words become
    skills.py         what the model is told of the skills

Not here: whether the files of a workspace are trusted (session/extensions/project_trust.py).
"""
