"""/jobs: the commands that run in the background of the session, their output, and their end."""

from __future__ import annotations

from harness.app.commands.conversation import Conversation
from harness.errors import ToolError, UsageError
from harness.plugin import HelpGroup, SlashCommand
from harness.process.capture import readable
from harness.process.job import END_SECONDS, BackgroundJob, Stopper
from harness.terminal.activity import BAR
from harness.terminal.styles import Tone
from harness.text.visible import visible_line

STOP = "stop"
MOST_LINES = 200
"""Maximum number of lines of output that are shown. The last ones are shown."""


def jobs(conversation: Conversation, rest: str) -> None:
    """List the background commands, show the output of one, or stop one. Raises UsageError and LogError."""
    names = rest.split()
    if not names:
        _list(conversation)
        return
    try:
        job = conversation.tools.jobs.get(names[-1])
    except ToolError as error:
        raise UsageError(str(error)) from None
    if len(names) == 1:
        _show(conversation, job)
    elif names[0] == STOP:
        job.stop(Stopper.PERSON)
        job.wait(END_SECONDS)
        conversation.agent.take_news(conversation.session)
        conversation.say_line(job.state)
    else:
        raise UsageError("usage: /jobs, /jobs NAME or /jobs stop NAME")


def _list(conversation: Conversation) -> None:
    redact = conversation.place.redactor.redact
    for job in conversation.tools.jobs.all:
        conversation.say_line(f"  {job.state}: {redact(job.command)}", max_characters=300)
    if not conversation.tools.jobs.all:
        conversation.say("nothing runs in the background", Tone.QUIET)


def _show(conversation: Conversation, job: BackgroundJob) -> None:
    text = conversation.place.redactor.redact(readable(job.output.latest())).removesuffix("\n")
    lines = text.split("\n") if text else []
    if len(lines) > MOST_LINES:
        conversation.say(f"... {len(lines) - MOST_LINES} earlier lines", Tone.QUIET)
    for line in lines[-MOST_LINES:]:
        conversation.say(f"{BAR}{line.expandtabs(8)}".rstrip())
    conversation.say_line(visible_line(job.state), Tone.QUIET)


COMMANDS = (
    SlashCommand(
        name="/jobs",
        arguments="[[stop] NAME]",
        summary="list background commands; show output, or stop one",
        group=HelpGroup.WORK,
        run=jobs,
        max_arguments=2,
    ),
)
