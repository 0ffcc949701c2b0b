"""Check of a final answer: one JSON value that matches the user's JSON Schema. Nothing is fetched from the network.

The schema is the operator's own. Its time is limited nevertheless, because the answer comes from the model. The size of
the answer is checked before the schema is applied.
"""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from harness.actions import JsonValue
from harness.app.run.unquoted import NOT_JSON, TOO_DEEP, TOO_SLOW, UNCHECKED, UNFIT, with_place
from harness.errors import UsageError
from harness.safe_files import read_regular
from harness.text.strict_json import NotJsonError, is_deeper, read_one
from harness.text.visible import visible_line

MAX_ANSWER_CHARACTERS = 1_000_000
MAX_DEPTH = 64
"""Maximum nesting depth of objects and lists, in the schema and in the answer."""
MAX_PLACES = 10
"""Maximum number of mismatches reported to the model."""
_PLACE_CHARACTERS, _MESSAGE_CHARACTERS = 120, 240
_INSTALL = "pip install 'permission-harness[schema]'"

_DIALECTS = {
    "https://json-schema.org/draft/2020-12/schema": "Draft202012Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
}
"""Validator classes of the dialects, by `$schema`.

The `#` at the end of draft 7's is removed (JSON Schema 2020-12, core, 8.1.1).
"""
_STANDARD = "https://json-schema.org/draft/2020-12/schema"
_INSTANCES: tuple[JsonValue, ...] = (None, True, 0, "", [], {}, [None], {"": None})
CHECK_SECONDS = 10.0
"""Time limit for one answer, in seconds.

With an unfavourable pattern and text, Python's `re` may run forever (its documentation, "re").
"""


class _InapplicableError(Exception):
    """Raised if the library fails on a schema or an answer. The text describes the failure."""

    def __init__(self, text: str, *, is_deep: bool) -> None:
        super().__init__(text)
        self.is_deep = is_deep


class AnswerSchema:
    """A schema that checks answers."""

    def __init__(self, path: str, *, seconds: float = CHECK_SECONDS) -> None:
        """Read and check the schema at `path`. Checking an answer takes at most `seconds`.

        Raises UsageError for an unreadable file, an invalid schema, a reference to another document (nothing is
        fetched), and a missing library.
        """
        self._name = visible_line(path, 500)
        self._schema = _schema(path, self._name)
        self._validator = _validator(self._schema, self._name)
        self._seconds = seconds

    @property
    def instructions(self) -> str:
        """Instructions for the model, which are added to the prompt."""
        schema = json.dumps(self._schema, ensure_ascii=False, separators=(",", ":"))
        return (
            "Your final answer (the message without a tool call) must be one JSON value that fits the JSON Schema below, and "
            f"nothing else: no words before or after it, no code fence.\n{schema}"
        )

    def problem(self, text: str, seconds: float | None = None) -> str:
        """Return the problem of an answer, for the model to correct. Empty if the answer matches.

        The time limit is `seconds` (above 0), if that is less than the schema's own limit.
        """
        max_seconds = self._seconds if seconds is None else min(seconds, self._seconds)
        try:
            value = _value(self.bare(text))
        except NotJsonError as error:
            return f"{NOT_JSON}: {error}."
        try:
            with _time_limit(max_seconds), _told_failures():
                places = list(self._places(value))
        except _InapplicableError as error:
            return TOO_DEEP if error.is_deep else f"{UNCHECKED}: {error}."
        except TimeoutError:
            return TOO_SLOW.format(round(max_seconds, 1))
        if not places:
            return ""
        more = f"\n(only the first {MAX_PLACES} places are named)" if len(places) > MAX_PLACES else ""
        return f"{UNFIT}:\n" + "\n".join(f"- {place}" for place in places[:MAX_PLACES]) + more

    def bare(self, text: str) -> str:
        """Return the answer without outer blanks and without a code fence around JSON. Otherwise unchanged."""
        bare = text.strip()
        first, newline, rest = bare.partition("\n")
        if newline and first.strip().lower() in ("```", "```json") and rest.endswith("```"):
            inside = rest.removesuffix("```").strip()
            if "```" not in _without_strings(inside):
                return inside
        return bare

    def _places(self, value: JsonValue) -> Iterator[str]:
        """Yield the mismatches, at most one more than are reported."""
        from jsonschema.exceptions import best_match

        for count, error in enumerate(self._validator.iter_errors(value)):
            if count > MAX_PLACES:
                return
            nearest = best_match(iter([error])) or error  # for `anyOf` and similar, the closest alternative
            place = visible_line(_pointer(nearest.absolute_path), _PLACE_CHARACTERS) or "the top"
            yield with_place(f"at {place}: {_middle_cut(nearest.message)}", _pointer(nearest.absolute_schema_path))


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Limit the time of the block. Raises TimeoutError, but only in the main thread (signal(7), SIGALRM)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - what signal.signal calls
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _told_failures() -> Iterator[None]:
    """Raise _InapplicableError for any failure of the library, since neither a schema nor an answer is a bug here."""
    try:
        yield
    except (UsageError, TimeoutError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - Rust code panics on stack overflow: no Exception (pyo3)
        name = type(error).__name__
        if isinstance(error, RecursionError) or name == "PanicException":
            raise _InapplicableError(
                "the schema refers to itself without end, or is nested too deeply", is_deep=True
            ) from None
        raise _InapplicableError(f"{name}: {visible_line(str(error), 300)}", is_deep=False) from None


def _pointer(parts: Iterable[object]) -> str:
    """Return a JSON Pointer (RFC 6901)."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


def _middle_cut(message: str) -> str:
    """Cut the middle of a long message. A message begins with the value and ends with the problem."""
    if len(message) > _MESSAGE_CHARACTERS:
        third = _MESSAGE_CHARACTERS // 3
        message = f"{message[:third]} ... {message[-2 * third :]}"
    return visible_line(message, 2 * _MESSAGE_CHARACTERS)


def _without_strings(text: str) -> str:
    """Return JSON text without its strings, which may contain any text."""
    return re.sub(r'"(?:[^"\\]|\\.)*"', "", text, flags=re.DOTALL)


def _value(text: str) -> JsonValue:
    """Return the value of a text with exactly one JSON value, parsed strictly. Raises NotJsonError."""
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise NotJsonError(f"the answer has {len(text):,} characters; at most {MAX_ANSWER_CHARACTERS:,} are allowed")
    value = read_one(text)
    if is_deeper(value, MAX_DEPTH):
        raise NotJsonError(f"the answer is nested more than {MAX_DEPTH} levels deep")
    return value


def _schema(path: str, name: str) -> dict[str, JsonValue]:
    try:
        schema = read_one(read_regular(path).decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8: byte {error.start}") from None
    except NotJsonError as error:
        raise UsageError(f"{name}: invalid JSON: {error}") from None
    if not isinstance(schema, dict):
        raise UsageError(f"{name}: expected a schema (a JSON object)")
    if is_deeper(schema, MAX_DEPTH):
        raise UsageError(f"{name}: the schema is nested more than {MAX_DEPTH} levels deep")
    return schema


def _validator(schema: Mapping[str, Any], name: str) -> Any:
    """Return a validator for `schema`, and check the schema itself. Raises UsageError."""
    try:
        import jsonschema
        from referencing import Registry
        from referencing.jsonschema import EMPTY_REGISTRY
    except ImportError:
        raise UsageError(f"--output-schema needs a library that is not installed: {_INSTALL}") from None
    dialect = schema.get("$schema", _STANDARD)
    class_name = _DIALECTS.get(dialect.removesuffix("#")) if isinstance(dialect, str) else None
    if class_name is None:
        raise UsageError(
            f"{name}: $schema: {visible_line(json.dumps(dialect), 200)} is not known; known are {', '.join(_DIALECTS)}"
        )
    base = getattr(jsonschema, class_name)
    linear = jsonschema.validators.extend(base, {"uniqueItems": _unique_items})  # type: ignore[no-untyped-call]
    # An empty registry. The library's standard one would fetch references from the network.
    registry: Registry[Any] = EMPTY_REGISTRY
    validator = linear(dict(schema), registry=registry)
    try:
        with _told_failures():
            _check_schema(base, schema, name)
            _check_references(schema, str(dialect), name)
            _try_out(validator)
    except _InapplicableError as error:
        raise UsageError(f"{name}: unusable schema: {error}") from None
    return validator


def _check_schema(base: Any, schema: Mapping[str, Any], name: str) -> None:
    """Raise UsageError if the schema violates its dialect."""
    from jsonschema import SchemaError

    try:
        base.check_schema(schema)
    except SchemaError as error:
        place = visible_line(_pointer(error.absolute_path), 200) or "the top"
        raise UsageError(f"{name}: invalid schema: at {place}: {_middle_cut(error.message)}") from None


def _check_references(schema: Mapping[str, Any], dialect: str, name: str) -> None:
    """Raise UsageError for a reference to something outside the schema.

    The check comes before the run, not after it.
    """
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
    from referencing import Resource
    from referencing.exceptions import Unresolvable

    resource: Resource[Any] = Resource.from_contents({"$schema": dialect, **schema})
    waiting = [(resource, REGISTRY.with_resource("", resource).resolver_with_root(resource))]
    while waiting:
        subschema, resolver = waiting.pop()
        contents = subschema.contents
        if not isinstance(contents, Mapping):
            continue
        for keyword in ("$ref", "$dynamicRef"):
            reference = contents.get(keyword)
            if not isinstance(reference, str):
                continue
            try:
                resolver.lookup(reference)
            except Unresolvable:
                raise UsageError(
                    f"{name}: {keyword} {visible_line(json.dumps(reference), 300)} is not in the schema, and no schema is "
                    "fetched: put it under $defs"
                ) from None
        waiting += [(inner, resolver.in_subresource(inner)) for inner in subschema.subresources()]


def _try_out(validator: Any) -> None:
    """Apply a schema to a value of each type.

    Some schemas always fail, such as one that refers to itself without end.
    """
    for instance in _INSTANCES:
        for _ in validator.iter_errors(instance):
            pass


def _unique_items(validator: Any, is_required: Any, value: Any, schema: Any) -> Iterator[Exception]:  # noqa: ARG001
    """Check `uniqueItems` in linear time. The library compares all pairs of items."""
    from jsonschema import ValidationError

    if not (is_required and validator.is_type(value, "array")):
        return
    canonical_forms: set[str] = set()
    for index, item in enumerate(value):
        form = json.dumps(_same_numbers(item), sort_keys=True)
        if form in canonical_forms:
            yield ValidationError(f"item {index} stands in the list before it already")
            return
        canonical_forms.add(form)


def _same_numbers(value: Any) -> Any:
    """Return a value with 1.0 replaced by 1. They are the same number in JSON Schema (2020-12, core, 4.2.2)."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_same_numbers(inner) for inner in value]
    if isinstance(value, dict):
        return {name: _same_numbers(inner) for name, inner in value.items()}
    return value
