"""Files that a prompt mentions with `@`. They are read as the user's own call of the reading tool, and attached.

In typed text, only files that can be shown to the model are attached: `@shot.png`, `@"a b.png"`. Any other `@file`
stays text, and the model reads the file itself. In the text of a command (session/words/), every mentioned file is
attached, since the author of the command intended that. The call goes through the gate and the log like every call. A
file that a rule forbids is not attached.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from functools import cache

from harness.digest import digest_of
from harness.gate.approval import Approver
from harness.loop.agent import Agent
from harness.loop.run import Session
from harness.messages import Attachment, ResultStatus
from harness.record import Record
from harness.session.person_message import FILES_READ
from harness.session.shipped_plugins import shown_endings
from harness.session.system_prompt import between_marks
from harness.text.visible import visible_line
from harness.tool_kinds import READ_FILE

MOST_FILES = 10
"""Maximum number of files of one prompt."""
_BEFORE = r"""(?:^|(?<=[\s(\[{<'"`=,;:]))@"""
_FILE = re.compile(rf"""{_BEFORE}(?:("(?:[^"\\\n]|\\.)+")|([^\s"]+))""")
_NOT_OF_A_NAME = ".,;:!?)]}>'`"
"""Characters that may follow an unquoted name in a sentence."""


class AttachedFiles(Record):
    """Files attached to a prompt."""

    attachments: tuple[Attachment, ...] = ()
    texts: str = ""
    """Texts of the files, each between marks."""

    def with_texts(self, words: str) -> str:
        """Return `words`, followed by the texts of the files."""
        return f"{words.rstrip()}\n\n{self.texts}" if self.texts else words


def mentioned(words: str) -> tuple[str, ...]:
    """Return the mentioned files that can be shown to the model, each once, as written."""
    return tuple(dict.fromkeys(_written(_shown_mention(), words)))


@cache
def _shown_mention() -> re.Pattern[str]:
    """Return the pattern of such a mention, as completion writes it (terminal/completion.py)."""
    ending = rf"\.(?:{shown_endings()})"
    return re.compile(rf"""{_BEFORE}(?:("(?:[^"\\\n]|\\.)*{ending}")|([^\s"]*?{ending})(?![\w/]))""", re.IGNORECASE)


def files_in(words: str, is_file: Callable[[str], bool]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the mentions in `words` that are files by `is_file`, and other mentions that look like a path, each once.

    Punctuation after an unquoted name is not part of the name.
    """
    files, missing = dict[str, None](), dict[str, None]()
    for name in _written(_FILE, words):
        bare = name.rstrip(_NOT_OF_A_NAME)
        if path := next((candidate for candidate in (name, bare) if is_file(candidate)), ""):
            files[path] = None
        elif "/" in name:
            missing[bare] = None
    return tuple(files), tuple(missing)


def _written(mention: re.Pattern[str], words: str) -> Iterator[str]:
    """Yield the names after `@`, without quotes."""
    for quoted, bare in mention.findall(words):
        try:
            yield str(json.loads(quoted)) if quoted else bare
        except ValueError:
            continue


def attached(
    agent: Agent,
    session: Session,
    words: str,
    *,
    tell: Callable[[str], None],
    home: str = "",
    root: str = "",
    approver: Approver | None = None,
) -> AttachedFiles:
    """Return the files to attach to `words`. `tell` is called with the reason for each file that is not attached.

    `root` is the workspace if `words` is the text of a command, else empty. `home` replaces `~/`. `approver` answers
    for calls that the policy would ask about. Without it, the user's typing counts as approval. Raises the errors of
    `Agent.do`.

    INVARIANT: the text of a command permits nothing. With `root`, there must be an `approver`.
    """

    def placed(name: str) -> str:
        return os.path.join(home, name[2:]) if home and name.startswith("~/") else name

    def is_file(name: str) -> bool:
        return os.path.isfile(os.path.join(root, placed(name)))

    attachments: dict[Attachment, None] = {}
    texts: list[str] = []
    names, missing = files_in(words, is_file) if root else (mentioned(words), ())
    for name in missing:
        tell(f"@{name} is not attached: there is no such file")
    for name in names[MOST_FILES:]:
        tell(f"@{name} is not attached: {MOST_FILES} files go with a prompt at the most")
    for name in names[:MOST_FILES]:
        result = agent.do(session, READ_FILE.name, {READ_FILE.subject: placed(name)}, approver=approver)
        attachments |= dict.fromkeys(result.attachments)
        if root and not result.attachments and result.status is ResultStatus.OK:
            texts.append(between_marks(visible_line(name, 500), result.content, digest_of(result.content.encode())))
        elif not result.attachments:
            is_text = result.status is ResultStatus.OK and not result.content.startswith("[")
            problem = "it is no picture" if is_text else result.content.removeprefix("Error: ")
            tell(f"@{name} is not attached: {problem.splitlines()[0] if problem else result.status.value}")
    return AttachedFiles(attachments=tuple(attachments), texts="\n\n".join((FILES_READ, *texts)) if texts else "")
