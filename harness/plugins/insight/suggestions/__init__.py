"""Rules that a person's repeated approvals speak for (`policy suggest`), and the rule that one refused call would need.

Read `subjects` first: which commands and files a rule may be suggested for at all. `candidates` finds what was approved often,
`proposals` writes the rules and holds each against every call of the logs, `advice` does it for one refused call.

Nothing here allows anything: a suggestion is text for a person to read.
"""
