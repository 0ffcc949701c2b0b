"""/cost, /context, /compact, /clear: usage of the session, length of the conversation, and ways to shorten it."""

from __future__ import annotations

from harness.app.commands.conversation import Conversation
from harness.audit.spending import Spending
from harness.loop.compaction import characters
from harness.messages import Message, Role, Usage
from harness.plugin import Effect, HelpGroup, SlashCommand
from harness.record import field_names
from harness.terminal.styles import Tone
from harness.text.amounts import count_of
from harness.text.visible import visible_line

MOST_TURNS = 50
"""Maximum number of turns listed. The newest are listed."""
MOST_RESULTS = 5
"""Maximum number of results listed. The longest are listed."""
CHARACTERS_A_TOKEN = 4
"""Characters per token, a rough estimate for English and code. Other texts have two to three."""


def cost(conversation: Conversation, rest: str) -> None:  # noqa: ARG001 - the signature of a command
    """Print the usage of each turn, of the session, and of the conversation if it was in earlier sessions."""
    spent, usage = conversation.spent, conversation.session.whole_usage
    if len(spent) > MOST_TURNS:
        conversation.say(f"  ... {len(spent) - MOST_TURNS} earlier turns", Tone.QUIET)
    for number, turn in list(enumerate(spent, 1))[-MOST_TURNS:]:
        conversation.say_line(
            f"  turn {number}: {usage_in_words(turn.usage, turn.cost)}  {count_of(turn.requests, 'request')}  {turn.model}"
        )
    total: Usage = sum((turn.usage for turn in spent), Usage())
    if total != usage:
        remaining_usage = Usage(**{name: getattr(usage, name) - getattr(total, name) for name in field_names(Usage)})
        conversation.say_line(
            f"  other requests, such as summaries: {usage_in_words(remaining_usage, conversation.cost_of(remaining_usage))}"
        )
    for helper in conversation.helpers.of(conversation.session.identity):
        conversation.say_line(f"  of these {helper.name}: {usage_in_words(helper.usage, helper.cost)}")
    conversation.say_line(f"session: {usage_in_words(usage, conversation.cost)}")
    if conversation.earlier != Spending():
        whole_spending = conversation.spending
        conversation.say_line(
            f"conversation, with earlier sessions: {usage_in_words(whole_spending.usage, whole_spending.cost)}"
        )
    if conversation.prices is None:
        name = conversation.agent.model.name
        conversation.say_line(
            f"the price of {name} is not configured: [prices] in the configuration says it", Tone.QUIET
        )


def usage_in_words(usage: Usage, dollars: float | None, *, unknown: str = ", cost unknown") -> str:
    """Return the usage in words. `unknown` is the text for an unknown cost."""
    share = 100 * usage.cached_tokens // max(usage.input_tokens, 1)
    cached = f" ({usage.cached_tokens:,} of them cached, {share}%)" if usage.cached_tokens else ""
    missing = f", {usage.unreported} replies not counted by the provider" if usage.unreported else ""
    price = unknown if dollars is None else f", {dollars:.4f} dollars"
    return f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out{missing}{price}"


def context(conversation: Conversation, rest: str) -> None:  # noqa: ARG001 - the signature of a command
    """Print the length of the conversation, and its largest parts."""
    messages = conversation.session.messages
    long = characters(messages)
    conversation.say_line(
        f"{len(messages)} messages, {long:,} characters, some {long // CHARACTERS_A_TOKEN:,} tokens (estimated)"
    )
    attachments = [attachment for message in messages for attachment in message.attachments]
    if attachments:
        tokens = sum(attachment.tokens for attachment in attachments)
        picture_count = "1 picture" if len(attachments) == 1 else f"{len(attachments)} pictures"
        conversation.say_line(f"  of these {picture_count}: some {tokens:,} tokens, by their pixels (estimated)")
    system = characters(messages[:1])
    conversation.say_line(f"  of these the system prompt and instructions: {system:,} characters")
    last = conversation.session.last_usage
    counted_tokens = last.input_tokens + last.output_tokens
    conversation.say_line(
        f"  as the provider counted the last reply: {counted_tokens:,} tokens"
        if counted_tokens
        else "  the provider has not counted it yet"
    )
    for helper in conversation.helpers.of(conversation.session.identity):
        helper_tokens = helper.last_usage.input_tokens + helper.last_usage.output_tokens
        conversation.say_line(
            f"  {helper.name} had a conversation of its own: {helper_tokens:,} tokens at its last reply"
        )
    max_tokens = conversation.agent.context_tokens
    if max_tokens is None:
        conversation.say("  how much the model takes is not configured (context_tokens)", Tone.QUIET)
    else:
        used = counted_tokens or long // CHARACTERS_A_TOKEN
        prefix = "" if counted_tokens else "about "
        conversation.say_line(
            f"  {prefix}{100 * used / max_tokens:.0f} percent of {max_tokens:,} tokens; from 80 on it is summarized"
        )
    biggest = sorted(_results(messages), key=lambda row: row[0], reverse=True)[:MOST_RESULTS]
    if biggest:
        conversation.say("biggest results:", Tone.QUIET)
    for size, label in biggest:
        conversation.say_line(f"  {size:>9,}  {label}", max_characters=200)


def _results(messages: list[Message]) -> list[tuple[int, str]]:
    """Return the length of each tool result, and a description of its call."""
    calls = {call.id: call for message in messages for call in message.tool_calls}
    rows = []
    for message in messages:
        if message.role is Role.TOOL:
            call = calls.get(message.tool_call_id or "")
            rows.append(
                (len(message.content), visible_line(f"{call.name} {call.arguments}", 120) if call else "a result")
            )
    return rows


def compact(conversation: Conversation, rest: str) -> None:  # noqa: ARG001 - the signature of a command
    """Make the model summarize the conversation. Raises LogError."""
    session = conversation.session
    before = characters(session.messages[1:])
    conversation.say("asking the model for a summary", Tone.QUIET)
    problem = conversation.agent.compact(session)
    if problem:
        conversation.say_line(f"nothing was summarized: {problem}", Tone.WARNING, max_characters=1_000)
        return
    after = characters(session.messages[1:])
    conversation.say(f"summarized: {before} characters before, {after} now; the log keeps all of it", Tone.QUIET)


def clear(conversation: Conversation, rest: str) -> None:  # noqa: ARG001 - the signature of a command
    """Remove all messages from the conversation. Raises LogError."""
    session = conversation.session
    conversation.agent.change_history(session, "cleared", 0, len(session.messages) - 1)
    conversation.turns.forget()
    conversation.forget_notes()
    conversation.say("the conversation is forgotten; the log keeps it", Tone.QUIET)


COMMANDS = (
    SlashCommand(
        name="/cost",
        summary="tokens and cost, turn by turn",
        group=HelpGroup.WORK,
        run=cost,
        effect=Effect.SHOWS,
    ),
    SlashCommand(
        name="/context",
        summary="size of the context, and what fills it",
        group=HelpGroup.WORK,
        run=context,
        effect=Effect.SHOWS,
    ),
    SlashCommand(
        name="/compact",
        summary="let the model summarize the conversation, to make room",
        group=HelpGroup.TALK,
        run=compact,
    ),
    SlashCommand(
        name="/clear",
        summary="forget the conversation (the log keeps it)",
        group=HelpGroup.TALK,
        run=clear,
    ),
)
