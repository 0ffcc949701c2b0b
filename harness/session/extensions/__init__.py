"""Extensions of a session by configuration: tools, hooks, entries of plugins, and the approver.

Read these first:

    extensions.py        the declarations of the user and of a trusted project
    extensions_here.py   the same for one workspace
    project_trust.py     the trusted files of a project, and the question about them
    started_words.py     the text of that question about a program
    hooks_here.py        the hooks that check calls of other programs

Not here: the work of a tool, a hook or a plugin (tools/, checks/, plugins/); the tables of the file
(session/config/).
"""
