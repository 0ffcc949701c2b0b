"""What each value of the user's configuration may be, and where a setting comes from; pure, data and checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeAlias, TypeVar

from harness.models.endpoint import Deadlines, ReplyBounds
from harness.models.presets import PRESETS, Api
from harness.policy_file import nearest
from harness.prices import Prices
from harness.record import Record, field_names

Value: TypeAlias = str | int | float | bool
Check: TypeAlias = Callable[[object], str]
"""Returns what is wrong with a value, or nothing."""
ValueT_co = TypeVar("ValueT_co", covariant=True)


class Setting(Record, Generic[ValueT_co]):
    """A value, and who said it."""

    value: ValueT_co
    origin: str
    """`flag --model`, `environment HARNESS_MODEL`, FILE:LINE, `preset groq` or `default`."""


def address_problem(url: str) -> str:
    """Return what is wrong with a base URL, or nothing."""
    if not re.match(r"https?://", url):
        return f"must begin with http:// or https://, not {url[:200]!r}"
    if not _HOST.match(url):
        return "names no host that could be told apart from others: letters, digits, dots and hyphens"
    if not url.isascii() or not url.isprintable() or " " in url:
        return "holds a blank or a special character"
    return "" if _has_port_in_range(url) else "names a port above 65535"


def _has_port_in_range(url: str) -> bool:
    from urllib.parse import urlsplit

    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


def _text(value: object) -> str:
    if not isinstance(value, str):
        return f"must be a string, not {_kind(value)}"
    return "" if value.strip() and value.isprintable() else "must not be empty, and on one line"


def _switch(value: object) -> str:
    return "" if isinstance(value, bool) else f"must be true or false, not {_kind(value)}"


def _whole(least: int, most: int) -> Check:
    def check(value: object) -> str:
        fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        return "" if fits else f"must be a whole number from {least} to {most}"

    return check


def _number(most: float, *, or_zero: bool = False) -> Check:
    def check(value: object) -> str:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and (0 < value <= most or (or_zero and value == 0)):  # type: ignore[operator]  # a number, by the line above
            return ""
        return f"must be a number {'of at least 0' if or_zero else 'above 0'}, at most {most:g}"

    return check


def _one_of(known: Iterable[str]) -> Check:
    words = tuple(known)

    def check(value: object) -> str:
        return _text(value) or ("" if value in words else f"unknown: {value!r}{nearest(str(value), words)}")

    return check


def _address(value: object) -> str:
    problem = _text(value) or address_problem(str(value))
    if not problem and re.match(r"[^/]*//[^/?#]*@|[^?]*\?", str(value)):
        return "must hold no user, password or query: " + _NO_KEYS
    return problem


def _variable(value: object) -> str:
    # What does not fit is not shown: it may be the key itself.
    fits = isinstance(value, str) and re.fullmatch(r"[A-Z][A-Z0-9_]{0,63}", value)
    return (
        "" if fits else "must be the NAME of an environment variable, such as OPENAI_API_KEY, not the key: " + _NO_KEYS
    )


def _kind(value: object) -> str:
    return {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "a table",
    }.get(
        type(value),
        "a date",
    )


# Narrower than RFC 3986: what two programs could read as two hosts is no host.
_HOST = re.compile(
    r"https?://([^/?#@\\]*@)?([a-z0-9._-]*[a-z0-9][a-z0-9._-]*|\[[0-9a-f:.]+\])(:\d{1,5})?([/?]|$)", re.IGNORECASE
)
_NO_KEYS = (
    "keys are never read from files, which end up in backups, repositories and screenshots; export the key in an environment "
    "variable, and give that variable's name as key_variable"
)
_KEY_LIKE = re.compile(r"(^|[_-])(api_?)?(keys?|token|secrets?|passwords?|credentials?)$", re.IGNORECASE)

TOP_CHECKS: Mapping[str, Check] = {
    "provider": _one_of(PRESETS),
    "model": _text,
    "base_url": _address,
    "api": _one_of(api.value for api in Api),
    "azure_api_version": _text,
    "key_variable": _variable,
    "attempts": _whole(1, 100),
    "retry_seconds": _number(1e6),
    "context_tokens": _whole(1_000, 10**9),
    "system": _text,
    "instructions": _switch,
    "sign_key": _text,
}
NOTICES = ("bell", "osc9", "off")
"""How a person is told that a question waits: BEL, a notification of the terminal's (OSC 9), or not at all."""
LEAST_DEAD_SECONDS, MOST_DEAD_SECONDS = 0.15, 10.0
"""Of the time in which keys do nothing after a question appeared: what is typed out of habit comes within it."""


def _dead_seconds(value: object) -> str:
    problem = _number(MOST_DEAD_SECONDS)(value)
    if problem or float(value) < LEAST_DEAD_SECONDS:  # type: ignore[arg-type]  # a number, by the line above
        return f"must be a number from {LEAST_DEAD_SECONDS:g} to {MOST_DEAD_SECONDS:g}"
    return ""


TABLE_CHECKS: Mapping[str, Mapping[str, Check]] = {
    "terminal": {
        "dead_seconds": _dead_seconds,
        "vi": _switch,
        "notify": _one_of(NOTICES),
        "ascii": _switch,
        "screen_reader": _switch,
    },
    "deadlines": dict.fromkeys(field_names(Deadlines), _number(1e6)),
    "bounds": dict.fromkeys(field_names(ReplyBounds), _whole(1, 10**12)),
}
PRICE_CHECKS: Mapping[str, Check] = dict.fromkeys(field_names(Prices), _number(1e6, or_zero=True))
PRICES = "prices"


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return what to say of a key that is none: what was probably meant, or why no secret is read from here."""
    words = tuple(known)
    if _KEY_LIKE.search(key) and not any(word.startswith(key) for word in words):  # context_token is a slip
        return _NO_KEYS
    return f"unknown key{nearest(key, words)}"
