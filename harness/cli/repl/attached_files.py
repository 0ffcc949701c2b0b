"""Pictures that a prompt names with `@`: read as the person's own call of the tool that reads, and sent with the prompt.

`@shot.png`, `@"a b.png"`: every mention that ends as a picture does. Any other `@file` stays words, and the model reads it.
The call goes through the gate and the log as everything does: what a rule forbids to read is not attached.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable

from harness.gate.approval import Approver
from harness.loop.agent import Agent
from harness.loop.run import Session
from harness.messages import Picture, ResultStatus
from harness.tool_kinds import READ_FILE

MOST_PICTURES = 10
"""Of one prompt."""
_ENDINGS = r"\.(?:png|jpe?g|webp|gif)"
_MENTION = re.compile(
    rf"""(?:^|(?<=[\s(\[{{<'"`=,;:]))@(?:("(?:[^"\\\n]|\\.)*{_ENDINGS}")|([^\s"]*?{_ENDINGS})(?![\w/]))""",
    re.IGNORECASE,
)
"""As completion writes it (terminal/completion.py)."""


def mentioned(words: str) -> tuple[str, ...]:
    """Return the pictures that `words` mention, each once, as they are written; at most `MOST_PICTURES`."""
    names: dict[str, None] = {}
    for quoted, bare in _MENTION.findall(words):
        try:
            names[str(json.loads(quoted)) if quoted else bare] = None
        except ValueError:
            continue
    return tuple(names)[:MOST_PICTURES]


def attached(
    agent: Agent,
    session: Session,
    words: str,
    *,
    tell: Callable[[str], None],
    home: str = "",
    approver: Approver | None = None,
) -> tuple[Picture, ...]:
    """Return the pictures that go with `words`; `tell` hears why one does not.

    `home` is what `~/` stands for. `approver` answers for calls that the policy would ask about; without it, that the person
    typed it is the yes. Raises what `Agent.do` raises.
    """
    pictures: dict[Picture, None] = {}
    for name in mentioned(words):
        path = os.path.join(home, name[2:]) if home and name.startswith("~/") else name
        result = agent.do(session, READ_FILE.name, {READ_FILE.subject: path}, approver=approver)
        pictures |= dict.fromkeys(result.pictures)
        if not result.pictures:
            said = result.content if result.status is ResultStatus.OK else result.content.removeprefix("Error: ")
            tell(f"@{name} is not attached: {said.splitlines()[0] if said else result.status.value}")
    return tuple(pictures)
