"""Outside approvers: a call's approval is asked of the user's own program, or of one that listens at a Unix socket.

Read approver_declaration.py (the configuration), outside_question.py (the public format of questions and answers) and
asked_outside.py (terminal or outside approver, whichever answers first).
"""
