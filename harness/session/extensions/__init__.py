"""What a configuration adds to a session: tools, hooks, entries of plugins, and who answers questions.

Read these first:
    extensions.py        what is declared, by the user and by a project that is trusted
    extensions_here.py   the same for one workspace
    project_trust.py     which files of a project a person trusts, and the question about them
    started_words.py     its words for a program that such a file would start
    hooks_here.py        the hooks that check calls of other programs

Not here: what a tool, a hook or a plugin does (tools/, checks/, plugins/); the tables of the file (session/config/).
"""
