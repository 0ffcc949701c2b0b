"""Drawing of the line at the prompt: hidden characters are drawn visibly, but the text to send stays exact."""

from __future__ import annotations

from bisect import bisect_right

from prompt_toolkit.application import get_app
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments

from harness.terminal.paste_folding import Folding
from harness.text.visible import visible

TAB = "    "
MOST_BEFORE = 12
"""Maximum number of preceding characters that decide whether a character can be shown: a base and its marks."""
HIDDEN, FOLDED = "class:hidden-character", "class:folded"


class LineDisplay(Processor):
    """Draws one line of the input with all characters visible. The text to send stays exact."""

    def __init__(self, folding: Folding) -> None:
        """`folding` holds the folded texts."""
        self._folding = folding

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Return the drawn line, with the mapping between positions in the text and in the drawing."""
        fragments = transformation_input.fragments
        if get_app().is_done:  # emphasizes the sent line, so that it is easy to find in the output
            fragments = [(f"{fragment[0]} class:sent", fragment[1]) for fragment in fragments]
        text = fragment_list_to_text(fragments)
        if text.isascii() and text.isprintable():
            return Transformation(fragments)
        drawn: StyleAndTextTuples = []
        places = [0]
        for at, fragment in enumerate(explode_text_fragments(fragments)):
            style, char = fragment[0], fragment[1]
            glyph, added = self._drawn(char, text[max(at - MOST_BEFORE, 0) : at])
            drawn.append((f"{style} {added}" if added else style, glyph))
            places.append(places[-1] + len(glyph))
        places.append(places[-1] + 1)  # for the cursor after the line
        return Transformation(
            drawn,
            source_to_display=lambda place: places[min(place, len(places) - 1)],
            display_to_source=lambda place: max(bisect_right(places, place) - 1, 0),
        )

    def _drawn(self, char: str, before: str) -> tuple[str, str]:
        """Return the drawing of a character after others, and its additional style."""
        if char == "\t":
            return TAB, ""
        if char.isascii() and char.isprintable():
            return char, ""
        label = self._folding.label(char)
        if label:
            return label, FOLDED
        drawn = visible(char)
        if drawn != char and before:  # a combining mark is shown unchanged after a base
            base, joined = visible(before), visible(before + char)
            drawn = joined[len(base) :] if joined.startswith(base) else drawn
        return drawn, HIDDEN if drawn != char else ""
