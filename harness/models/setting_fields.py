"""Settings of a model as fields of a request. Each API supports some settings and has its own field names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from harness.actions import JsonValue
from harness.model import ModelSettings
from harness.models.presets import Api
from harness.models.request_body import encoded

# developers.openai.com/api/reference: chat/create and responses/create; platform.claude.com/docs/en/api/messages/create.
_FIELDS: Mapping[Api, Mapping[str, str]] = {
    Api.CHAT: {
        "max_output_tokens": "max_tokens",
        "effort": "reasoning_effort",
        "temperature": "temperature",
        "top_p": "top_p",
        "seed": "seed",
        "stop": "stop",
        "verbosity": "verbosity",
        "service_tier": "service_tier",
    },
    Api.RESPONSES: {
        "max_output_tokens": "max_output_tokens",
        "effort": "reasoning.effort",
        "temperature": "temperature",
        "top_p": "top_p",
        "verbosity": "text.verbosity",
        "service_tier": "service_tier",
    },
    Api.MESSAGES: {
        "max_output_tokens": "max_tokens",
        "effort": "output_config.effort",
        "temperature": "temperature",
        "top_p": "top_p",
        "stop": "stop_sequences",
        "service_tier": "service_tier",
    },
}
"""Field of each supported setting, by API. A dot separates the name of an object from the name of its field."""
_TITLES = {
    Api.CHAT: "Chat completions have",
    Api.RESPONSES: "the Responses API has",
    Api.MESSAGES: "the Messages API has",
}

OWN_FIELDS = frozenset(
    "model messages input instructions system tools functions stream stream_options store include n "
    "previous_response_id conversation background".split()
)
"""Fields that hold the conversation or change the form of a reply. Only harness writes them."""

# Values that the documentation allows. Other servers accept other values, and report the values that they refuse.
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_OPENAI: Mapping[str, Sequence[str]] = {
    "effort": _EFFORTS,
    "verbosity": ("low", "medium", "high"),
    "service_tier": ("auto", "default", "flex", "scale", "priority", "fast"),
}
_WORDS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "openai": _OPENAI,
    "azure": _OPENAI,
    # platform.claude.com/docs/en/build-with-claude/effort and /api/service-tiers
    "anthropic-messages": {
        "effort": ("low", "medium", "high", "xhigh", "max"),
        "service_tier": ("auto", "standard_only"),
    },
}
_MOST_TEMPERATURE = {"openai": 2.0, "azure": 2.0, "anthropic-messages": 1.0}
_MOST_STOPS = {"openai": 4, "azure": 4}


def setting_problem(name: str, value: JsonValue, api: Api, preset: str) -> str:
    """Return the reason why this API cannot send a setting to the server of this preset, or an empty string.

    The name of a setting may be an extra field such as `extra_body.top_k`.
    """
    table, _, field = name.partition(".")
    if field:
        return body_problem(field, value, api) if table == "extra_body" else ""
    if name not in _FIELDS[api]:
        return f"{_TITLES[api]} no such setting"
    words = _WORDS.get(preset, {}).get(name)
    if words is not None and value not in words:
        return f"{preset} takes {', '.join(words)}, not {str(value)[:50]!r}"
    maximum = _MOST_TEMPERATURE.get(preset)
    if name == "temperature" and maximum is not None and isinstance(value, int | float) and value > maximum:
        return f"{preset} takes at most {maximum:g}"
    stops = _MOST_STOPS.get(preset)
    if name == "stop" and stops is not None and isinstance(value, list | tuple) and len(value) > stops:
        return f"{preset} takes at most {stops} of them"
    return ""


def body_problem(field: str, value: JsonValue, api: Api) -> str:
    """Return the reason why an extra field is not allowed in a request by this API, or an empty string.

    An extra field must not replace a field that harness writes.
    """
    if field in OWN_FIELDS:
        return "is a field that the program writes itself"
    for name, field_name in _FIELDS[api].items():
        outer, _, inner = field_name.partition(".")
        names = (outer, "max_completion_tokens") if (api, outer) == (Api.CHAT, "max_tokens") else (outer,)
        if field in names and not (inner and isinstance(value, Mapping) and inner not in value):
            return f"is a setting of its own: {name} = ..."
    return ""


class SettingFields:
    """The settings of one endpoint as fields of one API."""

    def __init__(self, settings: ModelSettings, api: Api) -> None:
        """Select the settings that `api` supports. Raises ValueError for an extra field that is not allowed."""
        for name, value in settings.extra_body.items():
            if problem := body_problem(name, value, api):
                raise ValueError(f"extra_body.{name}: {problem}")
        values = {name: value for name, value in settings.stated_settings().items() if name in _FIELDS[api]}
        self._fields = {name: (_FIELDS[api][name], value) for name, value in values.items()}
        self._extra = settings.extra_body
        self._headers = tuple(settings.extra_headers)

    def encoded(self, names: Mapping[str, str] | None = None) -> bytes:
        """Return the fields of all stated settings, each after a comma. `names` maps field names to those of this server."""
        value = self._value(names or {})
        return b"".join(b"," + encoded(name) + b":" + encoded(field) for name, field in value.items())

    def named_in(self, words: str, names: Mapping[str, str] | None = None) -> Iterator[str]:
        """Yield the settings that a refusal mentions by their own names or by their field names.

        `words` is the refusal in lower case; `names` maps field names to those of this server.
        """
        other = names or {}
        for name, (field, _) in self._fields.items():
            if _names(words, (name, other.get(field, field), field.rpartition(".")[2])):
                yield name
        for table, fields in (("extra_body", self._extra), ("extra_headers", self._headers)):
            yield from (f"{table}.{name}" for name in fields if _names(words, (name,)))

    def _value(self, names: Mapping[str, str]) -> dict[str, JsonValue]:
        value: dict[str, JsonValue] = {}
        for field, stated in self._fields.values():
            outer, _, inner = names.get(field, field).partition(".")
            value[outer] = {inner: stated} if inner else stated
        for name, more in self._extra.items():
            field_value = value.get(name)
            value[name] = {**more, **field_value} if isinstance(field_value, dict) and isinstance(more, dict) else more
        return value


_TELLS = "(?:parameter|param|field|argument|option|property|key|header|setting|value)s?"
# Forms in which refusals write a field name that is also an ordinary word.
_NAMED = "|".join(
    (
        r"""(["'`])(?:[\w.\[\]-]+[.\]])?NAME(?:[.\[][\w.\[\]-]*)?\1""",  # 'stop', "body.stop"
        r"(?<![\w-])NAME[.\[]\w|[\w\]]\.NAME(?![\w-])",  # stop[0], body.stop
        rf"\b(?:{_TELLS}:?|invalid|unsupported|unknown|unrecognized) NAME(?![\w-])",  # parameter stop
        rf"(?<![\w-])NAME (?:{_TELLS}|must|should|cannot|may not|may only|is not supported|is not allowed)\b",
        r"""(?:^|["'`])NAME ?[:=]|: NAME\W*$""",  # stop: too many; ... not supported: stop
    )
)


def _names(words: str, names: Sequence[str]) -> bool:
    """Return whether a refusal mentions one of the names as the name of a field.

    A name of letters only may be an ordinary word, so it counts only in certain forms. Other names always count.
    """
    patterns = (_NAMED if name.isalpha() else r"(?<![\w-])NAME(?![\w-])" for name in names)
    return any(
        re.search(pattern.replace("NAME", re.escape(name.lower())), words)
        for name, pattern in zip(names, patterns, strict=True)
    )
