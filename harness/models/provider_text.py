"""What a provider says in its own words, made fit for one line of ours: short, printable, without the key; pure."""

from __future__ import annotations

import json
import re

EXCERPT_CHARACTERS = 200
"""How much of a provider's own text an error message holds."""
MIN_SECRET_CHARACTERS = 6
"""Shorter keys are the made-up ones of local servers; masking those would blot out ordinary text."""


def excerpt(text: str, secret: str = "") -> str:
    """Return `text` on one line, the secret masked, cut to EXCERPT_CHARACTERS."""
    masked = _masked(text, secret.strip())
    start = masked[: 20 * EXCERPT_CHARACTERS]  # a page may begin with much white space; all of it would be too slow
    line = " ".join("".join(c if c.isprintable() else " " for c in start).split())
    return line if len(line) <= EXCERPT_CHARACTERS else line[:EXCERPT_CHARACTERS] + "..."


def _masked(text: str, secret: str) -> str:
    """Return `text` without the secret: as it is, escaped, or with characters in it that nobody would see."""
    if len(secret) < MIN_SECRET_CHARACTERS:
        return text
    for form in (secret, repr(secret)[1:-1], json.dumps(secret)[1:-1]):
        text = text.replace(form, "[key]")
    hidden = "[^!-~]*".join(re.escape(character) for character in secret)
    start = text[: 20 * EXCERPT_CHARACTERS + 2 * len(secret)]
    return re.sub(hidden, "[key]", start)


def provider_message(value: object, secret: str = "") -> str:
    """Return what a provider's error value says, as an excerpt; empty if it says nothing."""
    while isinstance(value, dict | list) and value:
        if isinstance(value, list):
            value = value[0]
            continue
        inner = next((value[key] for key in ("message", "detail", "error") if value.get(key)), None)
        if inner is None:
            break
        value = inner
    if isinstance(value, str):
        return excerpt(value, secret)
    try:
        return excerpt(json.dumps(value, default=str), secret) if value else ""
    except RecursionError:
        return ""


def join_pairs(text: str, errors: str = "surrogatepass") -> str:
    """Return `text` with surrogate pairs joined that came in two pieces; `errors` says what becomes of lone halves."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", errors)
    return text
