"""Summarizing: the older part of a conversation gives way to a summary of the model's own; the log keeps all of it."""

from __future__ import annotations

from collections.abc import Sequence

from harness.action_log import ActionLog
from harness.asking import Asking
from harness.compaction import characters, plan
from harness.errors import ModelError, ModelFault
from harness.messages import FinishReason, Message
from harness.run import Run

MAX_KEPT_CHARACTERS = 20_000
"""Of the newest messages that stay word for word when the others are summarized."""
MAX_REQUEST_CHARACTERS = 200_000
"""Of a request for a summary: some 50,000 tokens."""


def summarize(
    asking: Asking,
    log: ActionLog,
    run: Run,
    *,
    context_tokens: int | None = None,
    too_long: bool = False,
    keep_nothing: bool = False,
) -> str:
    """Let the model summarize the older part of the conversation, and put the summary in its place.

    What is kept and what is sent is measured by `context_tokens`, how much the model takes; where the provider found
    the conversation `too_long`, by its own length. `keep_nothing`: all of it is summarized.

    Returns an empty text, or what stood in the way; then the conversation is as it was. Raises LogError, ModelError
    where the time that the run had left is over, and KeyboardInterrupt where the person stopped it.
    """
    messages = run.session.messages
    keep, request = _room(messages, context_tokens, too_long=too_long)
    planned = plan(messages, keep_characters=0 if keep_nothing else keep, request_characters=request)
    if planned is None:
        return "there is nothing in the conversation that is worth a summary"
    try:
        response = asking.ask_for_summary(run, planned.request)
    except ModelError as error:
        if error.fault is ModelFault.TIME:
            raise
        asking.log_failure(run, error)
        return str(error)
    if response.finish_reason is not FinishReason.DONE:
        return f"the summary is not whole ({response.finish_reason.value})"
    if not response.text.strip():
        return "the model gave no summary"
    run.session.change(log, "compacted", planned.start, planned.stop, planned.replacement(response.text))
    return ""


def _room(messages: Sequence[Message], context_tokens: int | None, *, too_long: bool) -> tuple[int, int]:
    """Return how many characters of the newest messages are kept, and how many a request for a summary may have.

    A token is some four characters of English and code, two to three of other texts; two is on the safe side.
    """
    most = MAX_REQUEST_CHARACTERS
    if context_tokens is not None:
        most = min(most, context_tokens * 2)
    if too_long:
        most = min(most, characters(messages) // 3)
    return min(MAX_KEPT_CHARACTERS, most // 4), most
