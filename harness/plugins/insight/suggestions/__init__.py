"""Rules that a person's repeated approvals speak for (`policy suggest`).

`candidates` finds what was approved often, `proposals` writes the rules and holds each against every call of the logs. Which
commands and files a rule may be about says session/rule_subjects.py.

Nothing here allows anything: a suggestion is text for a person to read.
"""
