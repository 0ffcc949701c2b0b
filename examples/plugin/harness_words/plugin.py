"""What the plugin adds."""

from harness.plugin import CliCommand, Plugin, ReportForm, SlashCommand, ToolOffer, later
from harness.tool_kinds import Does, ToolKind


def add_flags(parser):
    parser.add_argument("file", metavar="FILE", help="the file to count")


COUNT = ToolKind(name="plugin__count_words", does=Does.READS, subject="path")
PLUGIN = Plugin(
    name="words",
    commands=(
        CliCommand(
            name="words",
            help="Count the words of a file.",
            add_flags=add_flags,
            run=later("harness_words.command", "run"),
        ),
    ),
    tools=(ToolOffer(kind=COUNT, make=later("harness_words.tool", "CountWords")),),
    slash_commands=(
        SlashCommand(
            name="/words", summary="count the words of the last answer", run=later("harness_words.slash", "run")
        ),
    ),
    reports=(ReportForm(name="words", write=later("harness_words.report", "write")),),
)
