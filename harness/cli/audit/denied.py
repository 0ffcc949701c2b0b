"""The lines of `harness audit denied`: a refused call with who, why and what was advised; writes nothing itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from harness.audit.calls import text
from harness.audit.refusals import Ends, Refusal, Refuser
from harness.audit.rows import edited_to
from harness.cli.audit.answers import count
from harness.cli.audit.words import moment, name, quoted, seconds, what, who, why
from harness.cli.trace import Tone
from harness.visible import visible_line

_BY = {
    Refuser.POLICY: "by the policy",
    Refuser.PERSON: "by a person",
    Refuser.SCRIPT: "by a script",
    Refuser.NOBODY: "for nobody was there",
    Refuser.EDIT: "for another call in their place",
    Refuser.UNSAID: "by whom the log does not say",
}


def refusal_lines(refusal: Refusal) -> Iterator[tuple[str, Tone]]:
    """Yield the line for a refused call: when, which, how, what, by whom, why, hint."""
    call = refusal.call
    status = visible_line(text(call.outcome, "status"), 20)
    parts = [moment(call.outcome), name(call), status, what(call), _by(refusal)]
    if refusal.reason:
        parts.append(f"why: {visible_line(refusal.reason, 500)}")
    if refusal.hint:
        parts.append(f"hint: {visible_line(refusal.hint, 300)}")
    yield "  ".join(parts), Tone.WARNING if refusal.refuser in (Refuser.EDIT, Refuser.TOOL) else Tone.BAD


def _by(refusal: Refusal) -> str:
    call = refusal.call
    match refusal.refuser:
        case Refuser.POLICY:
            return f"[{why(call)}]"
        case Refuser.PERSON | Refuser.SCRIPT:
            words = quoted(refusal.words) or "without a word"
            return f"[{who(call)}, {seconds(call)}: {words}; asked by {why(call)}]"
        case Refuser.NOBODY:
            return f"[nobody was there to ask; needed by {why(call)}]"
        case Refuser.EDIT:
            return f"[{who(call)} put {visible_line(f'call {edited_to(call)}', 60)} in its place]"
        case Refuser.TOOL:
            return "[no valid call]"
        case Refuser.UNSAID:
            return "[by whom the log does not say]"
        case _:
            assert_never(refusal.refuser)


def ends_line(ends: Ends, sessions: int, *, listed: bool) -> str:
    """Return the counts in words."""
    total = sum(ends.refused.values())
    by = ", ".join(f"{ends.refused[one]} {_BY[one]}" for one in _BY if one in ends.refused)
    line = f"{count(total, 'call')} refused: {by}" if total else f"no call was refused in {count(sessions, 'session')}"
    if ends.invalid:
        line += f"; {ends.invalid} invalid{'' if listed else ' (--invalid lists them)'}"
    if ends.never_came:
        line += f"; {ends.never_came} not run, for something else ended the run"
    return line
