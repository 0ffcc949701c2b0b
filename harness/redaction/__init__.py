"""Secrets out of text: replaces each secret with a mark before the text is shown, logged or sent to the model.

    redactor.py        `Redactor(secrets).redact(text)`; read it first
    known_values.py    finds values that are known to be secret, in all their forms
    shapes.py          finds credentials by their shape; secret_checks.py drops the false matches
    encoded.py         finds the same in base64 and hex
    stream.py          redacts a text that comes in pieces
    marks.py           the form of a mark, for readers of redacted text

Not here: the sources of secrets (session/environment_secrets.py).
"""
