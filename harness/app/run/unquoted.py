"""Texts of the log without their quotes of the model.

For reports, which contain the model's words only on request. The log and the result object have the complete texts. A
text of unknown form counts as a quote, except for a provider's words about itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.actions import JsonValue
from harness.audit.calls import text
from harness.regex import regex
from harness.text.visible import visible_line

LEFT_OUT = "(what the model wrote is left out of this report)"
NOT_JSON = "It is not one JSON value and nothing else"
UNFIT = "It does not fit the schema"
UNCHECKED = "It cannot be held against the schema"
TOO_DEEP = "It is nested too deeply to be held against the schema."
TOO_SLOW = "Holding it against the schema took more than {:g} seconds: a pattern in it finds no end."
_MOST_PLACES = 10
_STILL = "the answer is still not what was asked for"
_TOO_SLOW = regex(re.escape(TOO_SLOW).replace(re.escape("{:g}"), "[0-9.e+-]{1,20}"))
_PLACE = regex(r" \[schema: (/[^\]]*)\]\Z")
# After these words, the text quotes an unreadable reply (harness.models.reply_body). Older logs have `no`.
_QUOTED = regex(
    r"(The provider sent (?:an event that is not valid JSON|an event that is (?:no|not a) JSON object|JSON in which)"
    r"|The answer is (?:neither an event stream nor valid JSON|JSON, but (?:no|not a) reply|(?:no|not an) event stream))"
    r".*",
    re.DOTALL,
)


def with_place(problem: str, keyword: str) -> str:
    """Return a mismatch as one line, followed by the place in the schema. Reports show only that place."""
    place = visible_line(keyword, 200).replace("]", ")")
    return f"{problem} [schema: {place or '/'}]"


def problem_of(problem: str) -> str:
    """Return the reason why an answer does not fit, without its text.

    It names places in the user's schema. One line.
    """
    first, *lines = problem.split("\n")
    if first.startswith(NOT_JSON):
        return "it is not one JSON value and nothing else"
    if first == TOO_DEEP or _TOO_SLOW.fullmatch(first):
        return first
    if first.startswith(UNCHECKED):
        return "it cannot be held against the schema"
    places = [match[1] for line in lines if (match := _PLACE.search(line))]
    if first.startswith(UNFIT) and places:
        place_names = ", ".join(dict.fromkeys(places[:_MOST_PLACES]))
        return f"it does not fit the schema: {visible_line(place_names, 400)}"
    return "it is not what was asked for"


def message_of(message: str) -> str:
    """Return an error message without its quote of a reply."""
    return _QUOTED.sub(r"\1 (what came stands in the log)", message)


def unquoted_detail(stop: str, detail: str) -> str:
    """Return the description of a run's end with this stop reason, without quotes of the model."""
    return _STILL if stop == "unfit" else message_of(detail)


def divergence_of(divergence: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return a divergence without its texts, unless they are from a tool or from the run's own prompt."""
    if divergence.get("role") in ("tool", "tools", "system") or (
        divergence.get("role") == "user" and divergence.get("request") == 1
    ):
        return divergence
    return {name: value for name, value in divergence.items() if name not in ("recorded", "now")}


def record_of(record: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return a log record without the model's words outside its calls. Never raises, whatever the fields contain."""
    match record.get("kind"):
        case "model_response":
            return {**record, **{name: LEFT_OUT for name in ("text", "echo") if record.get(name)}}
        case "history_changed" if record.get("messages"):
            return {**record, "messages": []}
        case "user_message" if record.get("by") == "harness":
            return {**record, "text": LEFT_OUT}
        case "answer_checked" if record.get("problem"):
            return {**record, "problem": problem_of(text(record, "problem"))}
        case "error" if record.get("message"):
            return {**record, "message": message_of(text(record, "message"))}
        case "session_ended" if record.get("detail"):
            return {**record, "detail": unquoted_detail(text(record, "stop"), text(record, "detail"))}
        case "diverged":
            return divergence_of(record)
        case _:
            return record
