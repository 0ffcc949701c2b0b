"""Secrets out of text: what is shown, logged or sent to the model holds a mark in a secret's place.

Read `redactor` first: `Redactor(secrets).redact(text)`. `known_values` finds values that are known to be secret, `shapes`
what looks like a credential (with `secret_checks`), `stream` does the same for a text that comes in pieces, and `marks` is
the form of a mark, for whoever reads redacted text.
Where secrets come from is not known here: `cli/environment_secrets` collects them.
"""
