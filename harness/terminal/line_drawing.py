"""Drawing of the line at the prompt: the sent text stays exact, the drawn one is visible."""

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
"""Characters that decide whether the next one can be shown: a base and the marks on it."""
HIDDEN, FOLDED = "class:hidden-character", "class:folded"


class LineDisplay(Processor):
    """Draws one line of the input: what is sent stays exact, what is shown can be seen."""

    def __init__(self, folding: Folding) -> None:
        """`folding` holds the folded texts."""
        self._folding = folding

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Return the line as it is drawn, and where each of its characters went."""
        fragments = transformation_input.fragments
        if get_app().is_done:  # what was sent is found again among what came of it
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
        places.append(places[-1] + 1)  # the cursor may stand behind the line
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
        if drawn != char and before:  # a combining mark may stand where it has a base
            base, joined = visible(before), visible(before + char)
            drawn = joined[len(base) :] if joined.startswith(base) else drawn
        return drawn, HIDDEN if drawn != char else ""
