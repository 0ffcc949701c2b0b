"""/back: return to the state before one of the user's messages, and put that message on the input line again.

Pressing Esc twice opens its menu.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.app.commands.conversation import Conversation
from harness.app.commands.sessions import held_now, switch
from harness.app.commands.taken_back import TakenBack
from harness.errors import UsageError
from harness.loop.compaction import split_summary, without_turn
from harness.messages import Role
from harness.plugin import HelpGroup, SlashCommand
from harness.record import Record, replace
from harness.session.person_message import typed_words
from harness.terminal.completion import Offered
from harness.terminal.styles import Tone
from harness.text.visible import visible_line


class Said(Record):
    """A message of the user in the present conversation."""

    place: int
    """Index of the message, not counting the system message."""
    words: str


def said_by_person(conversation: Conversation) -> Iterator[Said]:
    """Yield the user's messages that are still in the conversation, oldest first."""
    for place, message in enumerate(conversation.session.messages[1:]):
        words = typed_words(split_summary(message.content)[1]) if message.role is Role.USER else ""
        if words:
            yield Said(place=place, words=words)


def back(conversation: Conversation, rest: str) -> None:
    """Begin a session with the conversation before a message, and put that message on the input line.

    If files were changed since, ask whether to take back the conversation, the files, or both.

    Raises UsageError, LogError.
    """
    messages_of_person = tuple(said_by_person(conversation))
    if not messages_of_person:
        conversation.say("there is no message of yours to go back to", Tone.QUIET)
        return
    if not rest and conversation.open_menu("/back"):
        return
    if not (rest.isascii() and rest.isdigit() and len(rest) < 7 and 0 < int(rest) <= len(messages_of_person)):
        raise UsageError(f"usage: /back N, the number of one of your messages: 1 to {len(messages_of_person)}")
    chosen = messages_of_person[int(rest) - 1]
    carried = held_now(conversation)
    messages = carried.rebuilt.messages
    if len(messages) <= chosen.place or messages[chosen.place].role is not Role.USER:
        raise UsageError("the log holds the conversation otherwise than it is; /fork goes on from what it holds")
    files = TakenBack(conversation, conversation.turns.calls_since(len(messages_of_person) - int(rest) + 1))
    choice = files.ask()
    if choice.takes_conversation:
        kept_messages = (*messages[: chosen.place], *without_turn(messages[chosen.place]))
        rebuilt = replace(carried.rebuilt, messages=kept_messages, unknown_calls=())
        switch(conversation, replace(carried, rebuilt=rebuilt), in_words=False)
        conversation.draft = chosen.words
        stay = "" if choice.takes_files else "; files stay as they are"
        conversation.say(f"back to before your message {rest}{stay}", Tone.QUIET)
    if choice.takes_files:
        files.take_back()


def messages_to_choose(conversation: Conversation) -> Sequence[Offered]:
    """Return the user's messages, newest first, for the menu."""
    numbered = list(enumerate(said_by_person(conversation), 1))
    return [
        Offered(text=str(number), label=f"{number:>2}  {visible_line(' '.join(message.words.split()), 60)}")
        for number, message in reversed(numbered)
    ]


COMMANDS = (
    SlashCommand(
        name="/back",
        arguments="[N]",
        summary="go back to before one of your messages; also Esc Esc",
        group=HelpGroup.TALK,
        run=back,
        offers=messages_to_choose,
    ),
)
