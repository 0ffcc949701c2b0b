"""Redaction: replaces each secret in a text with a mark before the text is shown, logged or sent to the model.

    redactor.py        `Redactor(secrets).redact(text)`; read it first
    known_values.py    finds known secret values in all their forms
    shapes.py          finds credentials by their shape; secret_checks.py drops the false matches
    encoded.py         finds credentials by their shape in base64 and hex
    stream.py          redacts a text that arrives in pieces
    marks.py           the form of a mark, for readers of redacted text

Elsewhere: the sources of secrets (session/environment_secrets.py).
"""
