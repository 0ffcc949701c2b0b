"""What the model is told: the system prompt with the project's instructions, and a run's prompt; sends nothing."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence

from harness.actions import JsonValue
from harness.agent import DEFAULT_SYSTEM
from harness.cli.attached import STANDARD_WAIT, Attached, Wait, read_attached, read_prompt
from harness.cli.config import Settings
from harness.cli.config_file import read_own
from harness.errors import UsageError
from harness.instructions import NAME, Found, Skipped, as_context, find_instructions, instructions_of
from harness.record import Record, replace
from harness.small_files import read_small
from harness.template import fill, variables
from harness.visible import visible_line

MAX_PROMPT_BYTES = 1_000_000
"""Of a prompt, and of a template."""


class SystemPrompt(Record):
    """The first message of a conversation, and which files are in it."""

    text: str
    found: Found

    @property
    def about(self) -> dict[str, JsonValue]:
        """What the log's first record says of it."""
        files: list[JsonValue] = [{"path": file.path, "sha256": file.sha256} for file in self.found.files]
        return {"instructions": files}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know: which files were read, and which were not."""
        read = ", ".join(file.path for file in self.found.files)
        passed = [f"not read: {visible_line(one.path, 500)}: {one.why}" for one in self.found.skipped]
        return (*([f"instructions: {visible_line(read, 1_000)}"] if read else []), *passed)


def system_prompt(
    settings: Settings, *, workspace: str, config: str, tools: Sequence[str], policy: str
) -> SystemPrompt:
    """Return the system prompt: the person's template or the standard one, and the AGENTS.md files.

    A template has these variables: workspace, date, platform, tools, policy and instructions; where it does not place
    the instructions itself they follow it. Raises UsageError for a template that cannot be read or filled.
    """
    found = _instructions(workspace, os.path.join(config, NAME)) if settings.instructions.value else Found()
    context = as_context(found)
    path = settings.system.value
    if not path:
        return SystemPrompt(text="\n\n".join(part for part in (DEFAULT_SYSTEM, context) if part), found=found)
    # What the configuration names is held to what holds for the configuration; a flag is the person's own choice.
    named_by_flag = settings.system.origin.startswith("flag ")
    template = _file(path) if named_by_flag else _text(read_own(path, workspace), path)
    values = {
        "workspace": workspace,
        "date": time.strftime("%Y-%m-%d"),
        "platform": sys.platform,
        "tools": ", ".join(tools),
        "policy": policy,
        "instructions": context,
    }
    text = fill(template, values, name=path)
    if context and "instructions" not in variables(template):
        text = f"{text.rstrip()}\n\n{context}"
    if not text.strip():
        raise UsageError(f"the system prompt is empty: {visible_line(path, 500)}")
    return SystemPrompt(text=text, found=found)


def _instructions(workspace: str, own: str) -> Found:
    """Return what there is; the person's own file only where nobody else could have written it.

    That one may be a link, as the configuration may: it is the person who made it.
    """
    if not os.path.lexists(own):
        return find_instructions(workspace)
    try:
        return find_instructions(workspace, own=instructions_of(own, read_own(own, workspace)))
    except UsageError as error:
        why = str(error).removeprefix(f"{own}: ")
        return find_instructions(workspace, own=Skipped(path=own, why=why))


class Prompt(Record):
    """What a run is asked to do."""

    words: str
    """What the person gave."""
    attached: Attached | None = None

    @property
    def text(self) -> str:
        """All that is sent as the first message."""
        return f"{self.words.rstrip()}\n\n{self.attached.block}" if self.attached else self.words

    @property
    def about(self) -> dict[str, JsonValue]:
        """What the log's first record says of it."""
        return {"attached": self.attached.about} if self.attached else {}

    def masked(self, redact: Callable[[str], str]) -> Prompt:
        """Return the same with what was attached masked, as the results of tools are before the model reads them."""
        if self.attached is None:
            return self
        return replace(self, attached=replace(self.attached, block=redact(self.attached.block)))


def given_prompt(
    arguments: Namespace,
    *,
    stdin: int = 0,
    wait: Wait = STANDARD_WAIT,
    tell: Callable[[str], None] | None = None,
) -> Prompt:
    """Return a run's prompt: the argument, stdin where it is `-`, or a file; filled where --var gives values.

    Beside an argument or a file, what is connected to stdin is attached, unless --no-stdin is given; see read_attached.
    `tell` (else stderr) is told what a person should know while it is read.

    Raises UsageError if there is none or it is empty, if a variable lacks its value or a value its variable, and if stdin
    is a terminal that should be read, or says nothing.
    """
    values = _values(arguments.var)
    from_stdin = arguments.prompt == "-"
    if arguments.prompt_file is not None and arguments.prompt is not None:
        raise UsageError("a prompt and --prompt-file are two prompts; give one of them")
    if from_stdin and arguments.no_stdin:
        raise UsageError("- reads the prompt from stdin, and --no-stdin keeps from it; give one of them")
    if arguments.prompt_file is not None:
        name = arguments.prompt_file
        text = fill(_file(name), values, name=name, all_used=True)
    elif arguments.prompt is None:
        raise UsageError("there is no prompt: give one, or - to read it from stdin, or --prompt-file FILE")
    else:
        text = str(arguments.prompt)
        if from_stdin:
            text = read_prompt(stdin, MAX_PROMPT_BYTES, wait=wait, tell=tell).decode("utf-8", "replace")
        if values:  # plain prompts may hold braces
            text = fill(text, values, name="the prompt", all_used=True)
    if not text.strip():
        raise UsageError("the prompt is empty")
    attached = None if from_stdin or arguments.no_stdin else read_attached(stdin, wait=wait, tell=tell)
    return Prompt(words=text, attached=attached)


def _values(given: Sequence[str]) -> Mapping[str, str]:
    values: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.isidentifier() or not name.isascii():
            raise UsageError(f"--var takes NAME=VALUE, not {visible_line(one)!r}")
        if name in values:
            raise UsageError(f"--var gives {name} twice")
        values[name] = value
    return values


def _file(path: str) -> str:
    data = read_small(path, MAX_PROMPT_BYTES)
    if data is None:
        what = f"at most {MAX_PROMPT_BYTES} bytes" if os.path.exists(path) else "and there is none"
        raise UsageError(f"{visible_line(path, 500)} cannot be read: a regular file is wanted, {what}")
    return _text(data, path)


def _text(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{visible_line(path, 500)} is not UTF-8: byte {error.start}") from None
