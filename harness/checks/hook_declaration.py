"""One `[[hook]]` of the configuration: its event, its calls, and its program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NoReturn

from harness.actions import Action
from harness.checks.hook_form import HARNESS_FORM, HookForm
from harness.errors import nearest
from harness.log.vocabulary import CheckEvent
from harness.policy.matcher import Matcher, RuleKeys
from harness.policy.matchers import read_matchers
from harness.policy.rules import Layer, Origin
from harness.programs.runners import INTERPRETERS, is_one_of
from harness.record import Record
from harness.regex import regex
from harness.text.fields import Fields
from harness.tool_kinds import SCRIPT_TOOLS, SERVER_TOOLS, SHIPPED_TOOLS, is_from_outside, is_named

MOST_SECONDS = 600
STANDARD_SECONDS = 10.0
_ID = regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_CODE = regex(r"-[A-Za-z]*[cm]")
"""The options `-m` and `-c`, also with letters before them or text after them: `-Im`, `-mcheck`."""
_OF_CALLS = ("tool", "path", "access", "argv")


class HookDeclaration(Record):
    """One hook."""

    id: str
    event: CheckEvent
    command: tuple[str, ...]
    """The program and its arguments. They are not parsed by a shell."""
    matchers: tuple[Matcher, ...] = ()
    """Conditions, as in policies. If empty, the hook checks every call."""
    seconds: float = STANDARD_SECONDS
    form: HookForm = HARNESS_FORM
    origin: Origin | None = None
    """Place of the hook in the configuration. Set by the reader of the file."""
    layer: Layer = Layer.USER
    """Layer of the configuration. PROJECT means a project that the user trusts."""

    def is_about(self, action: Action) -> bool:
        """Return whether the hook checks a call. It does if all matchers hit the same part, as in a strict rule."""
        return any(all(matcher.hits(action, facet) for matcher in self.matchers) for facet in action.all_facets())


def declared(
    table: Mapping[str, object],
    further_forms: Mapping[str, Callable[[], HookForm]] = {},
) -> HookDeclaration:
    """Return the hook that a `[[hook]]` table declares. Raises ValueError; its text begins with the invalid key.

    `further_forms` are functions that return the forms of plugins, by name of the form.
    """
    fields = _fields((HARNESS_FORM.name, *further_forms)).read(table)
    event = CheckEvent(fields["event"])
    if event not in (CheckEvent.BEFORE_CALL, CheckEvent.AFTER_CALL):
        for key in _OF_CALLS:
            if key in table:
                raise ValueError(f"{key}: selects calls, but a hook for {event.value} checks none; remove the key")
    command, tools = fields["command"], fields.get("tool", ())
    wrong = next((tool for tool in tools if not _is_known(tool)), None)
    if wrong is not None:
        tool_names = (*SHIPPED_TOOLS, SCRIPT_TOOLS, SERVER_TOOLS)
        raise ValueError(f"tool: unknown tool {wrong[:50]!r}{nearest(wrong[:50].lower(), tool_names)}")
    matchers = tuple(read_matchers(RuleKeys(table, auto=False, tools=tools, fail=_fail)))
    form = further_forms.get(fields.get("form", ""), lambda: HARNESS_FORM)()
    if form.workspace_variable and (code := _code_in(command)):
        raise ValueError(
            f"command: {code!r} lets the interpreter load files of the workspace, where hooks of the form {form.name} "
            "start; name a script outside of the workspace"
        )
    return HookDeclaration(
        id=fields["id"],
        event=event,
        command=command,
        matchers=matchers,
        seconds=float(fields.get("seconds", STANDARD_SECONDS)),
        form=form,
    )


def _is_known(tool: str) -> bool:
    """Return whether a tool of this name exists or may exist. A hook for a misspelt name would never run."""
    return is_from_outside(tool) or any(is_named(shipped, (tool,)) for shipped in SHIPPED_TOOLS)


def _code_in(command: Sequence[str]) -> str:
    """Return the word that passes code or a module name to an interpreter instead of a file, or an empty string."""
    words = iter(command)
    has_interpreter = any(is_one_of(word, INTERPRETERS) for word in words)
    return next((word for word in words if _CODE.match(word)), "") if has_interpreter else ""


def _fail(key: str, problem: str) -> NoReturn:
    raise ValueError(f"{key}: {problem}")


def _id(value: object) -> str:
    fits = isinstance(value, str) and _ID.fullmatch(value)
    return "" if fits else "must be a name of letters, digits, dots, hyphens and underscores, 64 at most"


def _command(value: object) -> str:
    if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
        return 'must be a list of words, the program first, such as ["/opt/check/check.py"]; no shell reads it'
    if any("\0" in word for word in value):
        return "holds a NUL character"
    return "" if value[0].strip() else "names no program"


def _some_texts(value: object) -> str:
    fits = isinstance(value, list) and value and all(isinstance(word, str) for word in value)
    return "" if fits else 'must be a list of strings, such as ["a", "b"], and not empty'


def _accesses(value: object) -> str:
    fits = _some_texts(value) == "" and isinstance(value, list) and set(value) <= {"read", "write"}
    return "" if fits else 'must be ["read"], ["write"] or both'


@cache
def _fields(forms: tuple[str, ...]) -> Fields:
    return Fields(
        {
            "id": "id",
            "event": f"one of {' '.join(event.value for event in CheckEvent)}",
            "command": "command",
            "tool?": "texts",
            "path?": "texts",
            "access?": "accesses",
            "argv?": "any",
            "seconds?": f"number above 0, at most {MOST_SECONDS}",
            "form?": f"one of {' '.join(forms)}",
        },
        {"id": _id, "command": _command, "texts": _some_texts, "accesses": _accesses, "any": lambda value: ""},  # noqa: ARG005
    )
