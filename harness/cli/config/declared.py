"""Every setting in one table: its key in the file, its flag, its environment variable, its default, and what it may be."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from harness.errors import nearest
from harness.model import Prices
from harness.models.endpoint import Deadlines, Endpoint, ReplyBounds
from harness.models.presets import PRESETS, Api
from harness.record import Record, field_names

Value: TypeAlias = str | int | float | bool
Check: TypeAlias = Callable[[object], str]
"""Returns what is wrong with a value, or nothing."""


class Declared(Record):
    """One setting. Who says it: the flag above the variable above the file above the default."""

    check: Check
    """Of what the file says. A flag and a variable hold text, and are looked at where the setting is resolved."""
    default: Value = ""
    """Where nobody says it; empty for what the provider's preset may say, or nobody need."""
    flag: str = ""
    """As it is typed; empty where there is none."""
    flag_means: Value | None = None
    """Of a switch, which has no value of its own: what giving it says."""
    variable: str = ""
    """Of the environment; empty where there is none."""


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
        return "must hold no user, password or query: " + NO_KEYS
    return problem


def _variable(value: object) -> str:
    # What does not fit is not shown: it may be the key itself.
    fits = isinstance(value, str) and re.fullmatch(r"[A-Z][A-Z0-9_]{0,63}", value)
    return (
        "" if fits else "must be the NAME of an environment variable, such as OPENAI_API_KEY, not the key: " + NO_KEYS
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
NO_KEYS = (
    "keys are never read from files, which end up in backups, repositories and screenshots; export the key in an environment "
    "variable, and give that variable's name as key_variable"
)

NOTICES = ("bell", "osc9", "off")
"""How a person is told that a question waits: BEL, a notification of the terminal's (OSC 9), or not at all."""
LEAST_DEAD_SECONDS, MOST_DEAD_SECONDS = 0.15, 10.0
"""Of the time in which keys do nothing after a question appeared: what is typed out of habit comes within it, and who types
does not rest for the least of it from one key to the next."""


def _dead_seconds(value: object) -> str:
    problem = _number(MOST_DEAD_SECONDS)(value)
    if problem or float(value) < LEAST_DEAD_SECONDS:  # type: ignore[arg-type]  # a number, by the line above
        return f"must be a number from {LEAST_DEAD_SECONDS:g} to {MOST_DEAD_SECONDS:g}"
    return ""


SETTINGS: Mapping[str, Declared] = {
    # Who is asked. These belong together, see `settings.resolve`; where nobody says them, the preset does.
    "provider": Declared(check=_one_of(PRESETS), flag="--provider", variable="HARNESS_PROVIDER"),
    "model": Declared(check=_text, flag="--model", variable="HARNESS_MODEL"),
    "base_url": Declared(check=_address, flag="--base-url", variable="HARNESS_BASE_URL"),
    "api": Declared(check=_one_of(api.value for api in Api), flag="--api", variable="HARNESS_API"),
    "azure_api_version": Declared(check=_text),
    "key_variable": Declared(check=_variable),
    "attempts": Declared(check=_whole(1, 100), default=Endpoint().attempts),
    "retry_seconds": Declared(check=_number(1e6), default=Endpoint().retry_seconds),
    "context_tokens": Declared(check=_whole(1_000, 10**9)),
    "system": Declared(check=_text, flag="--system"),
    "instructions": Declared(check=_switch, default=True, flag="--no-instructions", flag_means=False),
    "sign_key": Declared(check=_text),
    "terminal.dead_seconds": Declared(check=_dead_seconds, default=0.4),
    "terminal.vi": Declared(check=_switch, default=False),
    "terminal.notify": Declared(check=_one_of(NOTICES), default="bell"),
    "terminal.ascii": Declared(check=_switch, default=False, flag="--ascii", flag_means=True),
    "terminal.screen_reader": Declared(check=_switch, default=False, flag="--screen-reader", flag_means=True),
    **{
        f"deadlines.{name}": Declared(check=_number(1e6), default=getattr(Deadlines(), name))
        for name in field_names(Deadlines)
    },
    **{
        f"bounds.{name}": Declared(check=_whole(1, 10**12), default=getattr(ReplyBounds(), name))
        for name in field_names(ReplyBounds)
    },
}
"""By the key in the file, with its table in front. Prices have a table for each model, and are no setting of this kind."""
PRICE_CHECKS: Mapping[str, Check] = dict.fromkeys(field_names(Prices), _number(1e6, or_zero=True))


def table_names() -> tuple[str, ...]:
    """Return the tables of the file that hold settings; the empty name is that of what stands in none."""
    return tuple(dict.fromkeys(key.rpartition(".")[0] for key in SETTINGS))


def checks_of(table: str) -> dict[str, Check]:
    """Return what may stand in a table of the file, by the key in it."""
    split = ((key.rpartition("."), declared.check) for key, declared in SETTINGS.items())
    return {key: check for (name, _, key), check in split if name == table}
