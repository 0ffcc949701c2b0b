"""The tool `plugin__count_words`."""

from harness.actions import Access, Action
from harness.errors import ToolError
from harness.gate.tool import ToolOutput
from harness.model import ToolSpec
from harness_words.plugin import COUNT


class CountWords:
    kind = COUNT
    spec = ToolSpec(
        name=COUNT.name,
        description="Count the words of a text file.",
        parameters={"properties": {"path": {"type": "string"}}, "required": ["path"]},
    )

    def __init__(self, place):
        self.workspace = place.workspace

    def prepare(self, call, arguments):
        path = self.workspace.resolve(arguments["path"], Access.READ)
        return Action(
            call=call,
            tool=COUNT.name,
            described=COUNT,
            arguments=arguments,
            facets=(path,),
            summary=f"words of {path.written}",
            preview=f"count the words of {path.written}",
            request=path.real,
        )

    def run(self, action, effects):
        try:
            with open(action.request, encoding="utf-8") as file:
                return ToolOutput(content=f"{len(file.read().split())} words")
        except (OSError, ValueError) as error:
            raise ToolError(f"The file cannot be read: {error}") from error
