"""Record the run of a command with a ticket, as harness observes it: its beginning and its end, not its output."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.actions import JsonValue
from harness.errors import LogError
from harness.gate.records import CallRecords
from harness.log.vocabulary import SEEN_BY_US, PlacesAnswer
from harness.messages import ResultStatus, ToolResult
from harness.plugins.agents.agent_session import AgentSession
from harness.plugins.agents.confined_run import CommandEnd
from harness.plugins.agents.tickets import Ticket
from harness.redaction.redactor import Redactor

NOT_KEPT = "What it printed went to the agent, and was not kept."


def record_begin(folder: str, redactor: Redactor, number: int, *, wait_seconds: float) -> None:
    """Record the user's approval at the agent's prompt, and the intent, if the agent asked. On disk when this returns.

    Raises LogError if the call is not open or its session is blocked, or if the log cannot be written. Then the command
    must not run.
    """
    with AgentSession(folder, redactor, wait_seconds=wait_seconds) as session:
        call = session.open_call(number) if session.is_begun else None
        if call is None or session.latch:
            raise LogError(session.latch or "the call of this ticket is not open any more")
        if call.intent is not None:
            session.record_yes(call)


def note_files(
    ticket: Ticket, stores: str, environment: Mapping[str, str]
) -> Callable[[], Mapping[str, JsonValue]] | None:
    """Note the files of the workspace right before a command. `None` for one that only reads.

    `stores` is the folder for contents of files, and `environment` that of the agent's shell.
    """
    if not ticket.looks_at:
        return None
    from harness.tools.command_looks import CommandLooks, matchers_of  # only for commands that may write

    return CommandLooks(ticket.looks_at, stores, environment).note(matchers_of(ticket.denied))


def record_outcome(
    folder: str,
    redactor: Redactor,
    number: int,
    end: CommandEnd,
    changes: Mapping[str, JsonValue] | None,
    *,
    wait_seconds: float,
) -> None:
    """Record the end of a call's command, and its changes of files, in the session of that folder. Raises LogError."""
    with AgentSession(folder, redactor, wait_seconds=wait_seconds) as session:
        call = session.open_call(number) if session.is_begun else None
        if call is None:
            return
        session.open.remove(call)
        records = CallRecords(session.log)
        if end.restored is not None:
            records.places_changed(number, (), end.restored.places, "")
            records.places_answered(number, (), PlacesAnswer.NOBODY.value, 0.0, end.restored.returns)
        notes = "".join(f"\n{note}" for note in (*(f"[not enforced: {gap}]" for gap in end.gaps), *end.notes))
        result = ToolResult(
            call_id=call.id,
            status=ResultStatus.OK if end.code == 0 else ResultStatus.FAILED,
            content=f"[exit code {end.code}, {end.seconds:.1f} s] {NOT_KEPT}{notes}",
            exit_code=end.code,
            duration_ms=round(end.seconds * 1000),
            extra=end.fields,
        )
        records.record_end(call.proposal, result, ran=True, seen_by=SEEN_BY_US, changes=changes)
