"""Secrets out of text: what is shown, logged or sent to the model holds a mark in a secret's place.

    redactor.py        `Redactor(secrets).redact(text)`; read it first
    known_values.py    finds values that are known to be secret, in all their forms
    shapes.py          finds what looks like a credential; secret_checks.py sorts out what only looks like one
    encoded.py         finds the same in base64 and hex
    stream.py          the same for a text that comes in pieces
    marks.py           the form of a mark, for whoever reads redacted text

Not here: where secrets come from (session/environment_secrets.py).
"""
