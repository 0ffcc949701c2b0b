"""Outside approvers: the user's own program, or one that listens at a Unix socket, approves or refuses calls.

Read approver_declaration.py (the configuration), outside_question.py (the public format of questions and answers) and
asked_outside.py (terminal or outside approver, whichever answers first).
"""
