"""Rule suggestions from a person's repeated approvals (`policy suggest`).

`candidates` finds commands and files that were approved often. `proposals` writes the rules and checks each against
every call of the logs. session/rule_subjects.py decides which commands and files a rule may cover.

No code here grants a permission: a suggestion is text for a person to read.
"""
