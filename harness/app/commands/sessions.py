"""/resume, /fork and /quit. The first two begin a session, in the same log, with the content of an older one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

from harness.app.commands.conversation import Conversation
from harness.app.commands.transcript import show_carried
from harness.app.resume import FORKED, RESUMED, Carried, carried_from, first_of, until_turn
from harness.app.session_removal import removal_words, remove
from harness.app.sessions import LoggedSession, SessionOutline, logged_sessions, name_in, session_named, talks
from harness.audit.calls import is_of_person, text
from harness.errors import LogError, UsageError
from harness.grant_pattern import GrantScope
from harness.history import pairing_problem
from harness.log.reader import read_log, records
from harness.log.transcript import rebuilt
from harness.log.vocabulary import SUMMARY
from harness.messages import RunResult, StopReason
from harness.plugin import HelpGroup, SlashCommand
from harness.session.person_message import own_words
from harness.terminal.completion import Offered
from harness.terminal.styles import Tone
from harness.text.amounts import count_of
from harness.text.visible import visible_line

LONGEST_NAME = 100
"""Maximum number of characters of a conversation's name."""
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

    With `in_words`, notes about the continued session are shown, after the last rows of a conversation that is not on
    the screen yet.

    INVARIANT: a session's grants end with it. The mode, which the prompt shows, stays.
    """
    agent = conversation.agent
    header = {**conversation.header, "model": agent.model.name, "policy": conversation.running.policy.name}
    header["policy_sha256"] = conversation.running.policy.sha256
    problem = pairing_problem(carried.messages(header))
    if problem:
        raise UsageError(f"the conversation cannot be gone on with: {visible_line(problem)}")
    conversation.place.redactor.note(" ".join(carried.rebuilt.marks))
    agent.log.session = conversation.session.identity
    grants = agent.gate.grants
    mode = grants.mode
    grants.set_mode("")
    for grant in grants.grants:
        if grant.scope is GrantScope.SESSION:
            grants.revoke(grant)
            conversation.say_line(f"this grant ended with that session: {grant.pattern.text}", Tone.WARNING)
    agent.end(conversation.session, RunResult(stop=StopReason.COMPLETED, text=""), has_successor=True)
    conversation.begin(carried.begin(agent, header))
    grants.set_mode(mode)
    if in_words:
        show_carried(conversation, carried, header, drawn_already=carried.method == FORKED)


def _carried_here(conversation: Conversation, session: LoggedSession, method: str, turn: int | None) -> Carried:
    """Return the content of a session in this process's own log.

    The log is still open, and the process's own records need no verification.
    """
    log = conversation.agent.log
    logged = [record for record in read_log(log.path) if record["session"] == session.session]
    kept_records = logged if turn is None else until_turn(logged, turn)
    try:
        history = rebuilt(kept_records)
    except ValueError as error:
        raise UsageError(f"the conversation cannot be rebuilt: {visible_line(str(error))}") from None
    return Carried(
        session=session,
        method=method,
        rebuilt=history,
        first=first_of(kept_records),
        name=name_in(logged),
        torn=False,
        records=log.count,
        head=log.head,
    )


def other_sessions(conversation: Conversation) -> Iterator[SessionOutline]:
    """Yield the sessions that can be continued: the other ones of this folder, newest first. Raises LogError.

    A session that was resumed is left out, since a newer one goes on with all of it.
    """
    own_log = conversation.agent.log.path
    paths = dict.fromkeys((*conversation.place.state.log_paths(conversation.place.workspace.root), own_log))
    resumed: set[str] = set()
    for outline in talks(paths, conversation.place.workspace.root, own_log):
        if outline.running:
            continue
        if outline.session.session not in (conversation.session.identity, *resumed):
            yield outline
        if outline.session.method == RESUMED:
            resumed.add(outline.origin)


def sessions_to_choose(conversation: Conversation) -> Sequence[Offered]:
    """Return these sessions for the menu, each by the user's first input, with age and length."""
    now = time.time()
    try:
        return [
            Offered(
                text=outline.session.session,
                label=outline.title,
                description=f"{outline.age(now)}, {count_of(outline.carried_turns + outline.turns, 'turn')}",
                searched=outline.prompt,
                preview=partial(_preview, outline),
                delete_line=f"/delete {outline.session.session} ",
            )
            for outline in other_sessions(conversation)
        ]
    except LogError:
        return ()  # the command reports the error


def _preview(outline: SessionOutline) -> Sequence[str]:
    """Return the first and the last message of the user in a session, and the last answer. Empty for an unreadable log."""
    typed, answer = "", ""
    try:
        for record in records(outline.session.path, ("user_message", "model_response")):
            if record["session"] != outline.session.session:
                continue
            if is_of_person(record):
                typed = own_words(text(record, "text")).strip() or typed
            elif record["kind"] == "model_response" and record.get("purpose") != SUMMARY:
                answer = text(record, "text").strip() or answer
    except LogError:
        return ()
    sayings = (("first", outline.prompt), ("last", "" if typed == outline.prompt else typed), ("answer", answer))
    return [f"{title:>6}: {' '.join(words[:500].split())}" for title, words in sayings if words]


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


def name(conversation: Conversation, rest: str) -> None:
    """Name the conversation, or tell its name. Raises LogError."""
    log = conversation.agent.log
    if rest:
        log.session = conversation.session.identity
        log.append("session_named", {"name": rest[:LONGEST_NAME]}, sync=True)
    words = name_in([record for record in read_log(log.path) if record["session"] == conversation.session.identity])
    conversation.say_line(
        f"named: {words}" if words else "usage: /name WORDS; this conversation has no name", Tone.QUIET
    )


FOR_GOOD = "for good"
"""Words after the name of a session that the user types to delete it."""


def delete(conversation: Conversation, rest: str) -> None:
    """Describe a session, or delete it if FOR_GOOD follows its name. Raises UsageError and LogError."""
    state = conversation.place.state
    identity, _, words = rest.partition(" ")
    if not identity:
        raise UsageError(f"usage: /delete ID {FOR_GOOD}; the Delete key in the menu of /resume writes the ID")
    session = session_named(logged_sessions(state.log_paths()), identity, "/delete")
    if words.strip() == FOR_GOOD:
        conversation.say_line(remove(session, state))
        return
    conversation.say(removal_words(session), Tone.WARNING)
    conversation.say(f"type {FOR_GOOD!r} after it, and Enter, to delete it", Tone.QUIET)
    conversation.draft = f"/delete {session.session} "


def leave(conversation: Conversation, rest: str) -> None:  # noqa: ARG001 - the signature of a command
    """Exit the prompt after this command."""
    conversation.leaving = True


COMMANDS = (
    SlashCommand(
        name="/delete",
        arguments=f"ID [{FOR_GOOD}]",
        summary="delete a session and its log",
        group=HelpGroup.TALK,
        run=delete,
        max_arguments=None,
    ),
    SlashCommand(
        name="/name",
        arguments="WORDS",
        summary="name the conversation, as /resume shows it",
        group=HelpGroup.TALK,
        run=name,
        max_arguments=None,
    ),
    SlashCommand(
        name="/resume",
        arguments="[ID]",
        summary="continue another session",
        group=HelpGroup.TALK,
        run=resume,
        offers=sessions_to_choose,
    ),
    SlashCommand(
        name="/fork",
        arguments="[TURN]",
        summary="start a session from this one as it was after a turn",
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
