"""A server asks the user for input (elicitation): a flat form, shown as a question with the server's name.

A form that seems to ask for a secret is refused. A form with look-alike characters, with a pattern or with nested
fields is refused too, and so is a request to open a page. The user fills in the form as lines `name: value`, and sees
the filled form before approving it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import TypeAlias

from harness.actions import Action, Decision, Effects, JsonValue, ToolUse
from harness.gate.approval import Approval, Approver
from harness.log.vocabulary import Answer
from harness.messages import ToolCall
from harness.policy.verdict import FacetVerdict, Source, Verdict
from harness.record import Record
from harness.text.visible import suspicious, visible, visible_line
from harness.tool_kinds import ToolKind

MOST_FIELDS, MOST_CHOICES = 20, 100
MOST_CHARACTERS = 10_000
"""Maximum number of characters of a complete form, and of a complete answer."""
MOST_ROUNDS = 20
"""Maximum number of times that the user is shown a form that is not filled in correctly."""
PERSON = "person"
"""Name of the approver at the terminal. Only this approver can fill in a form; words of others are for the model."""
ANSWERS = "answers"
"""Name of the argument that the user edits."""
_ASKS_FOR = (
    r"passw|passphras|passcode|secret|credential|token|apikey|privatekey|accesskey|seedphrase|recoveryphrase|mnemonic"
    r"|onetimecode|verificationcode|securitycode|\botp\b|\bpin\b|\bcvv\b|\bcvc\b|\bssn\b|creditcard|cardnumber|2fa"
    r"|kennwort|contrasen|motdepasse"
)
_TYPES = ("string", "number", "integer", "boolean", "array")
_YES, _NO = ("yes", "true", "y"), ("no", "false", "n")

ElicitValue: TypeAlias = str | int | float | bool | list[str]


class ElicitField(Record):
    """One field of a form."""

    name: str
    kind: str
    """A type of JSON Schema. `array` means a list of choices."""
    description: str = ""
    choices: tuple[str, ...] = ()
    needed: bool = False
    default: str = ""


class ElicitForm(Record):
    """A server's question."""

    message: str
    fields: tuple[ElicitField, ...]


class ElicitAnswer(Record):
    """The answer to a server's question."""

    action: str
    """The answer in the protocol's words: `accept`, `decline` or `cancel`."""
    words: str
    """The answer and its source as text, for the model."""
    by: str = ""
    who: str = ""
    """Name of the client or approver; see `Approval.who`."""
    content: Mapping[str, ElicitValue] | None = None
    stops: bool = False
    """Whether the user wants to stop the run."""


def form_of(message: str, schema: Mapping[str, JsonValue]) -> ElicitForm | str:
    """Return the form of a request, or the reason why it is refused."""
    properties, needed = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(needed, list) or len(properties) > MOST_FIELDS:
        return f"its form cannot be shown: at most {MOST_FIELDS} plain fields can"
    text = json.dumps([message, dict(schema)], ensure_ascii=False)
    if len(text) > MOST_CHARACTERS:
        return f"its form says more than {MOST_CHARACTERS} characters"
    if looks_secret(text):
        return "it looks like asking for a password, a token or another secret: no server is told one so"
    if problem := suspicious(message) or suspicious(text):
        return f"its form is not what it seems: {problem[0]}"
    fields = []
    for name, inner in properties.items():
        field = _field(name, inner, needed=name in needed)
        if isinstance(field, str):
            return f"its field {visible_line(name, 50)} {field}"
        fields.append(field)
    return ElicitForm(message=message, fields=tuple(fields))


def looks_secret(text: str) -> bool:
    """Return whether a text seems to ask for a secret."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    plain = "".join(char for char in plain if unicodedata.category(char)[0] != "M")
    return bool(re.search(_ASKS_FOR, plain) or re.search(_ASKS_FOR, re.sub(r"[\s_.\-]", "", plain)))


def ask_user(server: str, form: ElicitForm, approver: Approver) -> ElicitAnswer:
    """Ask the user, and return the answer to send to the server."""
    text = "".join(f"{field.name}: {field.default}\n" for field in form.fields)
    approval = Approval(answer=Answer.STOP, by=PERSON)
    for _ in range(MOST_ROUNDS):
        content = content_of(form, text)
        try:
            approval = approver(*_question(server, form, text, content if isinstance(content, str) else ""))
        except KeyboardInterrupt:
            approval = Approval(answer=Answer.STOP, by=PERSON)
        match approval.answer:
            case Answer.YES:
                if approval.by == PERSON and approval.words and len(form.fields) == 1:
                    text = f"{form.fields[0].name}: {approval.words}\n"
                    content = content_of(form, text)
                if not isinstance(content, str):
                    return _answer("accept", f"answered by {approval.by}", approval, content)
                if approval.by != PERSON:
                    break
            case Answer.EDIT:
                text = _edited(approval.arguments)
            case Answer.STOP | Answer.HALT:
                return _answer("cancel", f"stopped by {approval.by}", approval)
            case _:
                return _answer("decline", f"declined by {approval.by}", approval)
    return _answer("decline", f"not filled in by {approval.by}", approval)


def asked_fields(server: str, form: ElicitForm, answer: ElicitAnswer) -> dict[str, JsonValue]:
    """Return the log fields of a form and its answer. The log masks secrets in them."""
    sent = answer.content or {}
    fields: list[JsonValue] = []
    for name in (field.name for field in form.fields):
        value = sent.get(name)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        fields.append({"name": name} if value is None else {"name": name, "value": text})
    user_field = {"who": answer.who} if answer.who else {}
    summary = {"server": server, "message": form.message, "answer": answer.action, "by": answer.by}
    return {**summary, **user_field, "fields": fields}


def content_of(form: ElicitForm, text: str) -> dict[str, ElicitValue] | str:
    """Return the values of a filled form, or a description of the problem."""
    if len(text) > MOST_CHARACTERS:
        return f"it says more than {MOST_CHARACTERS} characters"
    names = {field.name: field for field in form.fields}
    values: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon or name.strip() not in names:
            return f"this line is none of the form: {visible_line(line, 100)}"
        values[name.strip()] = value.strip()
    content: dict[str, ElicitValue] = {}
    for name, field in names.items():
        value = values.get(name, "")
        if not value:
            if field.needed:
                return f"{visible_line(name, 50)} needs a value"
            continue
        read = _value(field, value)
        if read is None:
            return f"{visible_line(name, 50)} must be {_expected_value(field)}"
        content[name] = read
    return content


def _field(name: str, schema: JsonValue, *, needed: bool) -> ElicitField | str:
    if not isinstance(schema, dict) or not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
        return "is no plain field"
    kind = schema.get("type", "string")
    if not isinstance(kind, str) or kind not in _TYPES or "properties" in schema:
        return "is no plain field"
    items = schema.get("items")
    choices = _choices(items if kind == "array" and isinstance(items, dict) else schema)
    if choices is None or (kind == "array" and not choices):
        return "has choices that cannot be shown"
    description = " ".join(str(schema[part]) for part in ("title", "description") if isinstance(schema.get(part), str))
    default = schema.get("default")
    default_text = "" if default is None or isinstance(default, dict | list) else str(default)
    if isinstance(default, bool):
        default_text = "yes" if default else "no"
    if not default_text.isprintable():
        return "has a default that cannot be shown"
    return ElicitField(
        name=name, kind=kind, description=description, choices=choices, needed=needed, default=default_text
    )


def _choices(schema: Mapping[str, JsonValue]) -> tuple[str, ...] | None:
    """Return the allowed values of a field, or an empty tuple if all are allowed. `None` if they cannot be shown."""
    options = schema.get("oneOf", schema.get("anyOf"))
    values = schema.get("enum", [])
    if isinstance(options, list):
        values = [option.get("const") if isinstance(option, dict) else None for option in options]
    if not isinstance(values, list) or len(values) > MOST_CHOICES:
        return None
    texts = tuple(
        option for option in values if isinstance(option, str) and option.strip() == option and option.isprintable()
    )
    return texts if len(texts) == len(values) else None


def _value(field: ElicitField, text: str) -> ElicitValue | None:
    """Parse `text` as the value of a field. Return `None` if it does not fit the field."""
    match field.kind:
        case "boolean":
            word = text.casefold()
            return word in _YES if word in (*_YES, *_NO) else None
        case "integer" | "number":
            if not re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", text) or (field.kind == "integer" and "." in text):
                return None
            return float(text) if "." in text else int(text)
        case "array":
            chosen = [word.strip() for word in text.split(",")]
            return chosen if all(word in field.choices for word in chosen) else None
        case _:
            return text if not field.choices or text in field.choices else None


def _expected_value(field: ElicitField) -> str:
    words = {"boolean": "yes or no", "integer": "a whole number", "number": "a number"}
    prefix = "some, with commas between, of" if field.kind == "array" else "one of"
    return f"{prefix} {', '.join(field.choices)}" if field.choices else words.get(field.kind, "a text")


def _answer(
    action: str, text: str, approval: Approval, content: Mapping[str, ElicitValue] | None = None
) -> ElicitAnswer:
    stops = approval.answer in (Answer.STOP, Answer.HALT)
    return ElicitAnswer(action=action, words=text, by=approval.by, who=approval.who, content=content, stops=stops)


def _edited(arguments: str) -> str:
    try:
        text = json.loads(arguments)[ANSWERS]
    except (ValueError, TypeError, KeyError):
        return ""
    return text if isinstance(text, str) else ""


def _question(server: str, form: ElicitForm, text: str, problem: str) -> tuple[Action, Verdict]:
    name = f"mcp__{server}"
    lines = [f"The MCP server {server} asks you:", "", *(f"  {line}" for line in form.message.split("\n")), ""]
    for field in form.fields:
        needed = "" if field.needed else " (may be left empty)"
        lines.append(
            f"{field.name}: {_expected_value(field)}{needed}{f'; it says: {field.description}' if field.description else ''}"
        )
    if form.fields:
        lines += ["", "This is sent to the server:", *(f"  {line}" for line in text.splitlines())]
    if problem:
        lines += ["", f"Not yet: {problem}. Edit it, or say no."]
    use = ToolUse(tool=name)
    action = Action(
        call=ToolCall(id="", name=name, arguments=json.dumps({ANSWERS: text})),
        tool=name,
        arguments={ANSWERS: text},
        facets=(use,),
        summary=visible_line(f"the MCP server {server} asks you: {form.message}", 200),
        preview=visible("\n".join(lines)),
        request=None,
        described=ToolKind(name=name, edited=ANSWERS),
    )
    reason = "what you answer is sent to the server; never tell one a secret"
    verdict = FacetVerdict(facet=use, decision=Decision.CONFIRM, source=Source.BUILT_IN, reason=reason, by="the server")
    effects = Effects(read=None, write=None, network=False, unasked=False)
    return action, Verdict(decision=Decision.CONFIRM, facets=(verdict,), effects=effects)
