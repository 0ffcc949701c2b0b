"""Calls as text, for a model without function calling: it writes one fenced `bash` block and then reads the output.

No tools are sent. Inside harness the conversation is the same as with function calling; only the requests differ.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from harness.messages import FinishReason, Message, ModelResponse, Role, ToolCall
from harness.model import Model, Retry, ToolSpec
from harness.models.fenced_reply import FencedBlock, fenced_blocks
from harness.record import replace
from harness.tool_kinds import BASH

HOW = """\
You have one tool: a shell. To run a command, write exactly one fenced block in your reply:

```bash
the command
```

It runs in the workspace, in a fresh shell, and the next message holds what it printed. Plain commands joined by && or | are \
understood best and are asked about least; for another folder begin with `cd FOLDER &&`. Write a file like this, with the \
quotes, so that nothing in it expands; begin and end the block with ```` where a line in it begins with ```:

```bash
cat > FILE <<'EOF'
the whole content
EOF
```

Say what you do before the block, and stop after it. A reply without such a block is your answer, and ends the work."""
"""Instructions for the model about the form of calls, appended to the system prompt."""

_LANGUAGES = (BASH.name, "sh", "shell")
_MEANT_LANGUAGES = frozenset(
    "bash-session console fish ksh sh-session shell-session shellsession shellscript terminal zsh".split()
)
"""Other languages that mark a block of commands. Such a block is a call with a problem, not an answer."""
_OTHER_LANGUAGE = (
    "The reply contains a fenced {language} block, which was not run. To run a command, write it alone, without a prompt sign "
    "and output, in one block that begins with ```bash. If the reply is your answer, begin the block with ```text."
)
_ONE_ONLY = (
    "The reply contains {count} fenced bash blocks, and none of them ran. Write exactly one block a reply; join commands that "
    "belong together in it."
)
_UNCLOSED = (
    "The fenced bash block of the reply has no end, and was not run. Close it with a line of its own: ``` (or a "
    "longer fence, if the command holds such a line)."
)


class TextCalls:
    """A model whose calls are text. It converts the conversation and the replies of another model."""

    def __init__(self, model: Model) -> None:
        """`model` is the underlying model, which gets the requests."""
        self._model = model

    @property
    def name(self) -> str:
        """The name of the underlying model."""
        return self._model.name

    @property
    def client(self) -> str:
        """Name and version of the client."""
        client = getattr(self._model, "client", "")
        return client if isinstance(client, str) else ""

    def close(self) -> None:
        """Close the connections of the underlying model."""
        close = getattr(self._model, "close", None)
        if callable(close):
            close()

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        on_text: Callable[[str], None],
        on_retry: Callable[[Retry], None],
        seconds: float | None = None,
    ) -> ModelResponse:
        """Return the reply, with a call if its text has a block of commands; see Model.complete.

        Without a shell among `tools`, for example for a summary, the reply is only text. Raises as Model.complete does.
        """
        has_shell = any(tool.name == BASH.name for tool in tools)
        request = tuple(_as_text(messages, HOW if has_shell else ""))
        response = self._model.complete(request, (), on_text=on_text, on_retry=on_retry, seconds=seconds)
        if not has_shell or response.finish_reason not in (FinishReason.DONE, FinishReason.REASONING):
            return response
        identity = f"text_{1 + sum(message.role is Role.ASSISTANT for message in messages)}"
        calls = tuple(_calls_in(response.text, identity))  # also in reasoning without a closing tag
        return replace(response, tool_calls=calls, finish_reason=FinishReason.DONE) if calls else response


def _calls_in(text: str, identity: str) -> Iterator[ToolCall]:
    """Yield the call of a reply, nothing else for an answer. If there is not exactly one valid block, the call has a
    `problem`.
    """
    written = fenced_blocks(text)
    blocks = [block for block in written if block.language in _LANGUAGES]
    languages = [block.language for block in written if block.language in _MEANT_LANGUAGES]
    if blocks or languages:
        problem = _problem(blocks) if blocks else _OTHER_LANGUAGE.format(language=languages[0])
        command = {} if problem else {BASH.subject: blocks[0].text}
        arguments = json.dumps(command, ensure_ascii=False)
        yield ToolCall(id=identity, name=BASH.name, arguments=arguments, problem=problem)


def _problem(blocks: Sequence[FencedBlock]) -> str:
    if len(blocks) > 1:
        return _ONE_ONLY.format(count=len(blocks))
    return "" if blocks[0].is_closed else _UNCLOSED


def _as_text(messages: Sequence[Message], instructions: str) -> Iterator[Message]:
    """Yield a conversation without calls and results: a reply becomes its text, a result becomes a user message."""
    is_told = not instructions
    for message in messages:
        match message.role:
            case Role.SYSTEM if not is_told:
                is_told = True
                yield replace(message, content=f"{message.content}\n\n{instructions}")
            case Role.ASSISTANT if message.tool_calls:
                yield Message(role=Role.ASSISTANT, content=message.content or _written(message.tool_calls))
            case Role.TOOL:
                yield Message(role=Role.USER, content=f"What the command came to:\n{message.content}")
            case _:
                yield message


def _written(calls: Sequence[ToolCall]) -> str:
    """Return function calls as text, for a conversation that began with function calling and continues as text."""
    return "\n".join(f"Call of {call.name}: {call.arguments}" for call in calls)
