"""/why: show the last decision, or that on a call, as recorded in the log, and ways to allow the call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from harness.actions import JsonValue
from harness.app.commands.conversation import Conversation
from harness.app.policy.explain import TONES
from harness.audit.calls import answerer, number, objects_in, word
from harness.errors import UsageError
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.plugin import Effect, HelpGroup, SlashCommand
from harness.policy.verdict import Source
from harness.session.policies import home_of_rules, shipped_name, without_shipped_folder
from harness.terminal.styles import Tone
from harness.terminal.tables import Column, Table, TableRow
from harness.terminal.trace import logged_walls
from harness.text.amounts import count_of
from harness.text.visible import visible_line
from harness.tool_kinds import Does, tool_kind


def show_decision(conversation: Conversation, rest: str) -> None:
    """Show the last decision, or that of the call with the number `rest`. Raises UsageError and LogError."""
    if not re.fullmatch("|[1-9][0-9]{0,8}", rest):
        raise UsageError("usage: /why [CALL], where CALL is the number of a call of this session")
    record, answer = _records_of(conversation, int(rest)) if rest else (conversation.decision, conversation.answer)
    if record is None:
        problem = f"call {rest} of this session was not decided" if rest else "nothing was decided yet in this session"
        conversation.say(problem, Tone.QUIET)
        return
    call = f"{word(record.get('tool'))}  {word(record.get('summary'))}"
    conversation.say_line(f"{call}  [call {word(record.get('call'))}]")
    for name, value in _decided(record, answer):
        conversation.say_line(without_shipped_folder(f"  {name + ':':<11} {value}"), max_characters=1_000)
    facets = objects_in(record.get("facets"))
    if facets:
        conversation.say("parts:", Tone.QUIET)
        conversation.screen.table(Table(columns=_COLUMNS, rows=tuple(map(_row, facets)), headed=False))
    count = record.get("facet_count")
    if isinstance(count, int) and count > len(facets):
        conversation.say(
            f"  {count_of(count - len(facets), 'more part')}: nothing against them, or left out of the log",
            Tone.QUIET,
        )
    way = _way(record, home_of_rules(conversation.running.policy, conversation.place.state))
    conversation.say_line(f"to allow it: {way}", Tone.QUIET, max_characters=3_000)


def _records_of(conversation: Conversation, call: int) -> tuple[LogRecord | None, LogRecord | None]:
    """Return the decision on a call of this session, and the answer of the user. Each is `None` without a record."""
    records: dict[str, LogRecord] = {}
    for record in read_log(conversation.agent.log.path):
        if record["session"] == conversation.session.identity and record.get("call") == call:
            records[str(record["kind"])] = record
    decision = records.get("decision", {})
    return decision if decision.get("decision", "none") != "none" else None, records.get("approval_answered")


def _decided(record: LogRecord, answer: LogRecord | None) -> Iterator[tuple[str, str]]:
    yield "decision", word(record.get("decision"))
    yield "decided by", word(record.get("by"))
    if record.get("file"):
        yield "at", f"{word(record.get('file'))}:{word(record.get('line'))}"
    if record.get("layer"):
        yield "layer", word(record.get("layer"))
    yield "reason", word(record.get("reason"))
    if tool_kind(word(record.get("tool"))).does is Does.RUNS and (walls := logged_walls(record)):
        yield "walls", walls
    if answer is not None:
        words = f': "{word(answer.get("words"))}"' if answer.get("words") else ""
        seconds, scope = number(answer, "seconds"), word(answer.get("scope"))
        took = f", {seconds:.1f} s" if seconds is not None else ""
        extent = f" for the {scope}" if scope else ""
        yield "answered", f"{word(answer.get('answer'))}{extent} by {answerer(answer)}{took}{words}"


_COLUMNS = Column(name="", toned=True), Column(name="", folds=True), Column(name="by", folds=True)


def _row(facet: Mapping[str, JsonValue]) -> TableRow:
    part, by = word(facet.get("facet")) or word(facet.get("kind")), without_shipped_folder(word(facet.get("by")))
    cells = f"  {word(facet.get('decision'))}", visible_line(part, 300), visible_line(by, 300)
    return TableRow(cells=cells, tone=TONES.get(word(facet.get("decision")), Tone.PLAIN))


def _way(record: LogRecord, home: str) -> str:
    """Return advice on how to allow the call, depending on the deciding rule.

    `home` is the file for the user's rules.
    """
    decision, source = record.get("decision"), record.get("source")
    file, rule = word(record.get("file")), f"rule {word(record.get('rule'))}"
    place = home if shipped_name(file) else f"{file}:{word(record.get('line'))}"
    if decision == "auto":
        return "nothing more is needed"
    if decision == "block":
        return "no rule and no yes does; do it yourself, outside, if it must be"
    if source == Source.HOOK.value:
        return (
            f"{'your yes, each time; or ' if decision == 'confirm' else ''}change the hook at {place}, or its program"
        )
    match source:
        case Source.RULE.value if decision == "confirm":
            return f"your yes, each time; or change {rule} in {place}; then /policy reload"
        case Source.RULE.value:
            return f"change {rule} in {place}; then /policy reload"
        case Source.DEFAULT.value if decision == "confirm":
            return f"your yes; s or p at the question, where offered; or an auto rule in {home}; then /policy reload"
        case Source.DEFAULT.value:
            return f"an auto rule in {home}, or another default in {place}; then /policy reload"
        case Source.OPAQUE.value:
            return "your yes, each time; or the same written plainly, as simple commands without expansions"
        case Source.SUSPENDED.value:
            return "your yes, once you have seen what changed in the entry point"
        case _:
            return "your yes, each time; no rule lifts what is built in" if decision == "confirm" else "nothing"


COMMANDS = (
    SlashCommand(
        name="/why",
        arguments="[CALL]",
        summary="reason for a decision, and what would allow the call",
        group=HelpGroup.WORK,
        run=show_decision,
        effect=Effect.SHOWS,
    ),
)
