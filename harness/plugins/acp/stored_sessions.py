"""Find sessions of earlier processes by the client's names.

A client continues a session under its old name, but in our logs each continuation is a separate session. So a name
means a chain: the first session, its continuation by a client, and so on. A session that a user continues at the prompt
does not belong to the chain.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from acp.schema import SessionInfo

from harness.app.resume import RESUMED, Carried, carried_from
from harness.app.sessions import LoggedSession, SessionOutline, logged_sessions, outlines
from harness.errors import UsageError
from harness.plugins.acp.session_updates import encodable_text
from harness.session.state import State
from harness.text.visible import visible_line

MODE = "serve"
"""The mode in the first record of a session that a client drives."""
MOST_LISTED = 200
MOST_TITLE = 200


def carried_session(state: State, name: str, folder: str) -> Carried:
    """Return the conversation that a client calls `name` in a workspace. Raises UsageError and LogError."""
    outlines = _outlines(state, folder)
    roots = _roots(outlines)
    chain = [
        outline.session for outline in outlines if name in (outline.session.session, roots[outline.session.session])
    ]
    if not chain:
        raise UsageError(f"no session {visible_line(name, 100)} in {visible_line(folder, 1_000)}")
    return carried_from(state, chain[-1], RESUMED)


def listed_sessions(state: State, folder: str | None) -> list[SessionInfo]:
    """Return the sessions of a folder that a client can continue, newest first. `None` means all folders.

    Raises LogError.
    """
    outlines = _outlines(state, folder)
    roots = _roots(outlines)
    first = {outline.session.session: outline for outline in outlines}
    newest: dict[str, SessionOutline] = {}
    for outline in reversed(outlines):
        newest.setdefault(roots[outline.session.session], outline)
    talks = ((root, first.get(root, outline), outline.session) for root, outline in newest.items() if outline.is_talk)
    return [_info(root, beginning, last) for root, beginning, last in islice(talks, MOST_LISTED)]


def _info(root: str, first: SessionOutline, last: LoggedSession) -> SessionInfo:
    title = encodable_text(visible_line(first.title, MOST_TITLE))
    return SessionInfo(session_id=root, cwd=encodable_text(last.workspace), title=title, updated_at=last.time)


def _outlines(state: State, folder: str | None) -> tuple[SessionOutline, ...]:
    """Return the sessions of a folder, or of all folders for `None`; the newest last."""
    place = None if folder is None else os.path.realpath(folder)
    return outlines(_within(logged_sessions(state.log_paths(place)), place))


def _within(sessions: Iterable[LoggedSession], folder: str | None) -> Iterator[LoggedSession]:
    return (session for session in sessions if folder in (None, session.workspace))


def _roots(outlines: Iterable[SessionOutline]) -> Mapping[str, str]:
    """Return the name of the chain of each session, which is the name of the first session of the chain."""
    roots: dict[str, str] = {}
    for outline in outlines:  # oldest first, so that the origin of a session is already in `roots`
        goes_on = outline.session.mode == MODE and outline.origin
        roots[outline.session.session] = (
            roots.get(outline.origin, outline.origin) if goes_on else outline.session.session
        )
    return roots
