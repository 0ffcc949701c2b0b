"""/resume, /fork and /quit. The first two begin a session, in the same log, with the content of an older one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice

from harness.app.commands.conversation import Conversation
from harness.app.resume import FORKED, RESUMED, Carried, carried_from, carried_lines, first_of, until_turn
from harness.app.sessions import LoggedSession, SessionOutline, logged_sessions, session_named, talks
from harness.errors import LogError, UsageError
from harness.grant_pattern import GrantScope
from harness.history import pairing_problem
from harness.log.reader import read_log
from harness.log.transcript import rebuilt
from harness.messages import RunResult, StopReason
from harness.plugin import HelpGroup, SlashCommand
from harness.terminal.completion import Offered
from harness.terminal.styles import Tone
from harness.text.amounts import count_of
from harness.text.visible import visible_line

MOST_LISTED = 20
"""Maximum number of sessions listed, the newest. They fit into a window."""


def resume(conversation: Conversation, rest: str) -> None:
    """Continue another session, or list the sessions of this folder. Raises UsageError and LogError."""
    if not rest:
        if next(other_sessions(conversation), None) is None or not conversation.open_menu("/resume"):
            _list(conversation)
        return
    state, own_log = conversation.place.state, conversation.agent.log.path
    paths = dict.fromkeys((*state.log_paths(), own_log))
    session = session_named(logged_sessions(paths), rest, "/resume")
    if session.session == conversation.session.identity:
        raise UsageError("the session is open already")
    mine = session.path == own_log
    switch(
        conversation,
        _carried_here(conversation, session, RESUMED, None) if mine else carried_from(state, session, RESUMED),
    )


def fork(conversation: Conversation, rest: str) -> None:
    """Begin a session with this session's content after a turn, or at present. Raises UsageError and LogError."""
    if rest and not (rest.isascii() and rest.isdigit() and len(rest) < 7):
        raise UsageError("usage: /fork [TURN], the number of one of your messages; 0 is before the first")
    switch(conversation, held_now(conversation, int(rest) if rest else None))


def held_now(conversation: Conversation, turn: int | None = None) -> Carried:
    """Return this session's content for a fork: after a turn, or at present. Raises UsageError, LogError."""
    own_log, identity = conversation.agent.log.path, conversation.session.identity
    session = next(
        (logged_session for logged_session in logged_sessions((own_log,)) if logged_session.session == identity), None
    )
    if session is None:
        raise UsageError("the log does not tell of this session")
    return _carried_here(conversation, session, FORKED, turn)


def switch(conversation: Conversation, carried: Carried, *, in_words: bool = True) -> None:
    """End this session, and begin one that continues `carried`. Raises UsageError and LogError.

    With `in_words`, notes about the continued session are shown.

    INVARIANT: a session's grants end with it.
    """
    agent = conversation.agent
    header = {**conversation.header, "model": agent.model.name, "policy": conversation.running.policy.name}
    header["policy_sha256"] = conversation.running.policy.sha256
    messages = carried.messages(header)
    problem = pairing_problem(messages)
    if problem:
        raise UsageError(f"the conversation cannot be gone on with: {visible_line(problem)}")
    conversation.place.redactor.note(" ".join(carried.rebuilt.marks))
    agent.log.session = conversation.session.identity
    for grant in agent.gate.grants.grants:
        if grant.scope is GrantScope.SESSION:
            agent.gate.grants.revoke(grant)
            conversation.say_line(f"this grant ended with that session: {grant.pattern.text}", Tone.WARNING)
    agent.end(conversation.session, RunResult(stop=StopReason.COMPLETED, text=""))
    conversation.begin(agent.start(carried=messages, origin=carried.origin))
    for line in carried_lines(carried, header) if in_words else ():
        conversation.say(line.text, line.tone)


def _carried_here(conversation: Conversation, session: LoggedSession, method: str, turn: int | None) -> Carried:
    """Return the content of a session in this process's own log.

    The log is still open, and the process's own records need no verification.
    """
    log = conversation.agent.log
    records = [record for record in read_log(log.path) if record["session"] == session.session]
    kept_records = records if turn is None else until_turn(records, turn)
    try:
        history = rebuilt(kept_records)
    except ValueError as error:
        raise UsageError(f"the conversation cannot be rebuilt: {visible_line(str(error))}") from None
    return Carried(
        session=session,
        method=method,
        rebuilt=history,
        first=first_of(kept_records),
        torn=False,
        records=log.count,
        head=log.head,
    )


def other_sessions(conversation: Conversation) -> Iterator[SessionOutline]:
    """Yield the sessions that can be continued: the other ones of this folder, newest first. Raises LogError."""
    own_log = conversation.agent.log.path
    paths = dict.fromkeys((*conversation.place.state.log_paths(conversation.place.workspace.root), own_log))
    outlines = talks(paths, conversation.place.workspace.root, own_log)
    return (
        outline
        for outline in outlines
        if outline.session.session != conversation.session.identity and not outline.running
    )


def sessions_to_choose(conversation: Conversation) -> Sequence[Offered]:
    """Return these sessions for the menu, each by the user's first input, with age and length."""
    now = time.time()
    try:
        return [
            Offered(
                text=outline.session.session,
                label=outline.title,
                description=f"{outline.age(now)}, {count_of(outline.turns, 'turn')}",
            )
            for outline in other_sessions(conversation)
        ]
    except LogError:
        return ()  # the command reports the error


def _list(conversation: Conversation) -> None:
    other_outlines = tuple(islice(other_sessions(conversation), MOST_LISTED + 1))
    if len(other_outlines) > MOST_LISTED:
        conversation.say("... earlier sessions; `harness sessions list` names all", Tone.QUIET)
    now = time.time()
    for outline in reversed(other_outlines[:MOST_LISTED]):
        conversation.say_line("  ".join(outline.cells(now)).rstrip(), max_characters=300)
    if not other_outlines:
        conversation.say("there is no other session in this folder", Tone.QUIET)
    else:
        conversation.say("/resume ID goes on with one: the beginning of its name is enough", Tone.QUIET)


def leave(conversation: Conversation, rest: str) -> None:  # noqa: ARG001 - the signature of a command
    """Exit the prompt after this command."""
    conversation.leaving = True


COMMANDS = (
    SlashCommand(
        name="/resume",
        arguments="[ID]",
        summary="go on with another session",
        group=HelpGroup.TALK,
        run=resume,
        offers=sessions_to_choose,
    ),
    SlashCommand(
        name="/fork",
        arguments="[TURN]",
        summary="a new session with what this one held after a turn",
        group=HelpGroup.TALK,
        run=fork,
    ),
    SlashCommand(
        name="/quit",
        summary="leave (also /exit, Ctrl-D, or Ctrl-C twice)",
        group=HelpGroup.PROGRAM,
        run=leave,
        aliases=("/exit",),
    ),
)
