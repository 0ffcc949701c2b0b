"""Asks an approver outside about a call: a program of the person's, or one that listens at a Unix socket.

Read approver_declaration.py (what is configured), outside_question.py (the public form of a question and its answer) and
asked_outside.py (who answers first).
"""
