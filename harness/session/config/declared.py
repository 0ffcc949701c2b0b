"""The table of all settings: key in the file, flag, environment variable, default and allowed values of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from harness.model import Prices
from harness.models.endpoint import Deadlines, Endpoint, ReplyBounds
from harness.models.presets import PRESETS, Api
from harness.record import Record, field_names
from harness.regex import regex
from harness.text.fields import Check, check_of

Value: TypeAlias = str | int | float | bool | tuple[str, ...]

THEMES = ("auto", "dark", "light", "none")
"""Values of `terminal.theme`. `none` has the same effect as NO_COLOR."""


class Declared(Record):
    """One setting. Order of precedence: flag, environment variable, file, default."""

    holds: str
    """Type of the value in the file; see text/fields.py. Values of flags and variables are checked in settings.py."""
    default: Value = ""
    """Default. Empty if it may come from the provider's preset, or if the setting is optional."""
    flag: str = ""
    """The flag. Empty without one. A switch sets the opposite of the default."""
    variable: str = ""
    """The environment variable. Empty without one."""


def address_problem(url: str) -> str:
    """Return the problem of a base URL, or an empty string."""
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


def _address(value: object) -> str:
    problem = check_of("line")(value) or address_problem(str(value))
    if not problem and re.match(r"[^/]*//[^/?#]*@|[^?]*\?", str(value)):
        return "must hold no user, password or query: " + NO_KEYS
    return problem


def _variable(value: object) -> str:
    # The message does not show the value, which may be the API key itself.
    fits = isinstance(value, str) and re.fullmatch(r"[A-Z][A-Z0-9_]{0,63}", value)
    return (
        "" if fits else "must be the NAME of an environment variable, such as OPENAI_API_KEY, not the key: " + NO_KEYS
    )


# Stricter than RFC 3986: excludes forms that two programs could read as different hosts.
_HOST = regex(
    r"https?://([^/?#@\\]*@)?([a-z0-9._-]*[a-z0-9][a-z0-9._-]*|\[[0-9a-f:.]+\])(:\d{1,5})?([/?]|$)", re.IGNORECASE
)
NO_KEYS = (
    "keys are never read from files, which end up in backups, repositories and screenshots; export the key in an environment "
    "variable, and give that variable's name as key_variable"
)

# Matches the last word of a name. Words may be separated by `_`, `.`, `-` or by camel case.
_KEY_LIKE = regex(
    r"(^|[_.-]|(?-i:(?<=[a-z0-9])(?=[A-Z])))(api_?)?(keys?|token|secrets?|passwords?|credentials?|o?auth|bearer)$|"
    "authorization|cookie",
    re.IGNORECASE,
)


def is_key_like(name: str) -> bool:
    """Return whether the name of a setting, field or header suggests that its value is an API key or a secret."""
    return bool(_KEY_LIKE.search(name))


CALL_FORMS = ("functions", "text")
"""Forms of a model's calls: function calls, or a fenced block in its text."""
NOTICES = ("bell", "osc9", "osc777", "off")
"""Notifications: BEL, a notification of the terminal (OSC 9 or OSC 777), or none."""
DIFFS = ("full", "short", "none")
"""Forms in which the diff of an edit is shown after it."""
STEERS, QUEUES = "steer", "queue"
"""Effects of Enter during a turn. Tab has the other effect."""
STATUS_PARTS = (
    "mode", "vi", "model", "policy", "walls", "grants", "jobs", "branch", "context", "cost", "turns", "tokens",
)  # fmt: skip
"""Parts of the status line, in their default order. `vi` is the editing mode of vi's keys."""
LEAST_DEAD_SECONDS, MOST_DEAD_SECONDS = 0.15, 10.0
"""Bounds of `terminal.dead_seconds`: the time after a prompt appears during which keys have no effect.

It catches keys that the user was typing already. The minimum is longer than the pause between two keys while typing.
"""

SETTINGS: Mapping[str, Declared] = {
    # The model and its server. These are resolved together (see `settings.resolve`); the preset has their defaults.
    "provider": Declared(holds=f"one of {' '.join(PRESETS)}", flag="--provider", variable="HARNESS_PROVIDER"),
    "model": Declared(holds="line", flag="--model", variable="HARNESS_MODEL"),
    "base_url": Declared(holds="address", flag="--base-url", variable="HARNESS_BASE_URL"),
    "api": Declared(holds=f"one of {' '.join(api.value for api in Api)}", flag="--api", variable="HARNESS_API"),
    "azure_api_version": Declared(holds="line"),
    "calls": Declared(holds=f"one of {' '.join(CALL_FORMS)}", default=CALL_FORMS[0], flag="--calls"),
    "key_variable": Declared(holds="variable"),
    "attempts": Declared(holds="whole from 1 to 100", default=Endpoint().attempts),
    "retry_seconds": Declared(holds="number above 0, at most 1000000", default=Endpoint().retry_seconds),
    "context_tokens": Declared(holds="whole from 1000 to 1000000000"),
    "tools": Declared(holds="list of text", default=(), flag="--tools"),
    "pictures": Declared(holds="flag"),
    "system": Declared(holds="line", flag="--system"),
    "task_template": Declared(holds="line"),
    "result_template": Declared(holds="line"),
    "instructions": Declared(holds="flag", default=True, flag="--no-instructions"),
    "sign_key": Declared(holds="line"),
    "plugins": Declared(holds="list of text", default=()),
    "agents.unjudged": Declared(holds="one of stop warn", default="stop"),
    "terminal.dead_seconds": Declared(
        holds=f"number from {LEAST_DEAD_SECONDS:g} to {MOST_DEAD_SECONDS:g}", default=0.4
    ),
    "terminal.vi": Declared(holds="flag", default=False),
    "terminal.notify": Declared(holds=f"one of {' '.join(NOTICES)}", default="bell"),
    "terminal.enter": Declared(holds=f"one of {STEERS} {QUEUES}", default=STEERS),
    "terminal.status": Declared(holds=f"list of one of {' '.join(STATUS_PARTS)}", default=STATUS_PARTS),
    "terminal.diffs": Declared(holds=f"one of {' '.join(DIFFS)}", default="short"),
    "terminal.theme": Declared(holds=f"one of {' '.join(THEMES)}", default="auto"),
    "terminal.ascii": Declared(holds="flag", default=False, flag="--ascii"),
    "terminal.screen_reader": Declared(holds="flag", default=False, flag="--screen-reader"),
    **{
        f"deadlines.{name}": Declared(holds="number above 0, at most 1000000", default=getattr(Deadlines(), name))
        for name in field_names(Deadlines)
    },
    **{
        f"bounds.{name}": Declared(holds=f"whole from 1 to {10**12}", default=getattr(ReplyBounds(), name))
        for name in field_names(ReplyBounds)
    },
}
"""Settings by their key in the file (`table.key`). Prices are not included, since each model has its own table of them."""
PRICE_CHECKS: Mapping[str, Check] = dict.fromkeys(
    field_names(Prices), check_of("number of at least 0, at most 1000000")
)
_PARTS = {"address": _address, "variable": _variable}


def table_names() -> tuple[str, ...]:
    """Return the names of the tables that contain settings. The empty name is the top level."""
    return tuple(dict.fromkeys(key.rpartition(".")[0] for key in SETTINGS))


def checks_of(table: str) -> dict[str, Check]:
    """Return the checks for a table of the file, by key."""
    split = ((key.rpartition("."), declared.holds) for key, declared in SETTINGS.items())
    return {key: check_of(holds, _PARTS) for (name, _, key), holds in split if name == table}
