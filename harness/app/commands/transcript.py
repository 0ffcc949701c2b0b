"""/transcript: the turns of the conversation as the screen showed them, drawn again from the log.

A conversation that goes on after `-c` or /resume begins with the last rows of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby

from harness.actions import JsonValue
from harness.app.commands.conversation import Conversation
from harness.app.commands.turns import carried_messages, records_of_turns
from harness.app.resume import Carried, carried_lines
from harness.audit.calls import is_of_person, text
from harness.log.order import LogRecord
from harness.log.vocabulary import CARRIED, SUMMARY
from harness.loop.compaction import split_summary
from harness.messages import Message, Role
from harness.plugin import Effect, HelpGroup, SlashCommand
from harness.session.person_message import own_words
from harness.terminal.screen import Screen
from harness.terminal.styles import Tone
from harness.text.amounts import count_of
from harness.text.visible import visible_line
from harness.tool_kinds import Does, tool_kind

MOST_ROWS = 250
"""Maximum number of rows that are shown of a conversation that goes on."""
MOST_LINES = 20
"""Maximum number of lines that are shown of one message of the user."""


def transcript(conversation: Conversation, rest: str) -> None:  # noqa: ARG001 - the signature of a command
    """Show every turn of the conversation. Raises LogError."""
    records = _records(conversation)
    if not records:
        conversation.say("the conversation has no turn yet", Tone.QUIET)
        return
    conversation.screen.drawn_rows(rows_of(conversation.screen, records, conversation.session.identity))


def show_carried(
    conversation: Conversation, carried: Carried, header: Mapping[str, JsonValue], *, drawn_already: bool = False
) -> None:
    """Show the last rows of a conversation that goes on, and notes about its last session. Raises LogError.

    `header` is the first record of the session that goes on with it. With `drawn_already`, the screen has the rows.
    """
    if not drawn_already:
        show_last_rows(conversation)
    for line in carried_lines(carried, header):
        conversation.say(line.text, line.tone)


def show_last_rows(conversation: Conversation) -> None:
    """Show the last rows of the conversation. If there are more, the first row counts them. Raises LogError."""
    records = _records(conversation)
    if not records:
        return
    last_records = last_parts(records, MOST_ROWS)
    rows = rows_of(conversation.screen, last_records, conversation.session.identity)
    if len(last_records) < len(records) or len(rows) > MOST_ROWS:
        turns = count_of(sum(map(is_of_person, records)), "message")
        calls = count_of(sum(record["kind"] == "outcome" for record in records), "call")
        conversation.say(f"... the end of {turns} of yours and {calls}; /transcript shows all", Tone.QUIET)
    conversation.screen.drawn_rows(rows[-MOST_ROWS:])


def _records(conversation: Conversation) -> Sequence[LogRecord]:
    return [record for turn in records_of_turns(conversation.turns.parts) for _, record in turn]


def last_parts(records: Sequence[LogRecord], least_rows: int) -> Sequence[LogRecord]:
    """Return the last messages, replies and their calls, enough for at least so many rows if there are enough."""
    rows = 0
    for place in range(len(records) - 1, -1, -1):
        record = records[place]
        begins = is_of_person(record) or record["kind"] == "model_response"
        rows += record["kind"] == "outcome" or begins
        rows += text(record, "text").count("\n") if begins else 0
        if begins and rows >= least_rows:
            return records[place:]
    return records


def rows_of(screen: Screen, records: Sequence[LogRecord], session: str) -> list[str]:
    """Return the rows of records. Only rows of `session` name commands with the number of a call.

    These commands look for a call in the present session, and the numbers of other sessions mean other calls.
    """
    rows: list[str] = []
    for is_present, group in groupby(records, key=lambda record: record["session"] == session):
        rows += screen.drawn(partial(draw, records=tuple(group)), names_calls=is_present)
    return rows


def draw(screen: Screen, records: Sequence[LogRecord]) -> None:
    """Draw messages, replies and calls, as a session does while they are recorded."""
    for record in records:
        match record["kind"]:
            case "user_message" if is_of_person(record):
                _draw_typed(screen, text(record, "text"))
            case "model_response" if record.get("purpose") != SUMMARY:
                screen.text(text(record, "text"))
                screen.record(record)
            case "outcome":
                screen.live(_printed(record))
                screen.record(record)
            case "history_changed" if record.get("why") in CARRIED:
                for message in carried_messages(record):
                    _draw_message(screen, message)
            case "user_message" | "model_request" | "model_response":
                pass
            case _:
                screen.record(record)


def _draw_typed(screen: Screen, message: str) -> None:
    """Draw a message of the user. Of a long one, only the first lines are drawn."""
    lines = own_words(message).strip().split("\n")
    more = [f"[{count_of(len(lines) - MOST_LINES, 'further line')}]"] if len(lines) > MOST_LINES else []
    screen.line("> " + "\n. ".join((*lines[:MOST_LINES], *more)))


def _draw_message(screen: Screen, message: Message) -> None:
    """Draw a message without its records, which were in a log that cannot be read now."""
    if message.role is Role.USER:
        _draw_typed(screen, split_summary(message.content)[1])
    elif message.role is Role.ASSISTANT:
        screen.text(message.content)
        screen.end_text()
        for call in message.tool_calls:
            screen.line(visible_line(f"  {call.name}  {call.arguments}", 200), Tone.QUIET)


def _printed(outcome: LogRecord) -> str:
    """Return the output of a command, which its result contains before a last line. Empty for other calls."""
    is_command = tool_kind(text(outcome, "tool")).does is Does.RUNS
    if not (is_command and outcome.get("output_bytes")):
        return ""
    return text(outcome, "content").rpartition("\n")[0] + "\n"


COMMANDS = (
    SlashCommand(
        name="/transcript",
        summary="show the whole conversation again",
        group=HelpGroup.TALK,
        run=transcript,
        effect=Effect.SHOWS,
    ),
)
