"""From text of a log to HTML: whatever the log holds becomes characters that are only read. Templates and tables too.

INVARIANT: nothing of a log reaches the page but through `line`, `block` or `number` of this module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from harness.audit.calls import word
from harness.text.visible import visible


def shown(value: object) -> str:
    """Return any value of a record as text, not yet safe to show."""
    if not isinstance(value, dict | list):
        return word(value)
    try:
        return json.dumps(value, sort_keys=True)
    except (RecursionError, TypeError, ValueError):
        return "(nested too deeply to be shown)"


def line(value: object, width: int = 300) -> str:
    """Return HTML of one line that holds at most `width` characters of `value`, and says how many are missing."""
    text = shown(value)
    left_out = len(text) - width
    more = f"...(+{left_out:,} characters)" if left_out > 0 else ""
    return escape(visible(text[:width]).replace("\n", "\\n").replace("\t", "\\t") + more, quote=True)


def block(value: object, limit: int | None) -> str:
    """Return HTML of a text with its line breaks; of more than `limit` characters the beginning, and how many follow."""
    text = shown(value)
    left_out = 0 if limit is None else len(text) - limit
    cut = text if left_out <= 0 else text[:limit]
    # HTML drops the first newline of a <pre>: the one that is put here, never one of the text.
    html = f"<pre>\n{escape(visible(cut), quote=True)}</pre>"
    if left_out > 0:
        html += (
            f'<p class="cut">{left_out:,} more characters are left out here; a page made with --full holds them.</p>'
        )
    return html


def moment(value: object) -> str:
    """Return HTML of a timestamp, to the second: 2026-01-31 12:00:00."""
    text = shown(value)
    is_usual = len(text) > 19 and text[10] == "T" and text[19] in ".Z"
    return line(f"{text[:10]} {text[11:19]}" if is_usual else text, 40)


def number(value: int) -> str:
    """Return a count with its thousands apart."""
    return f"{value:,}"


def digest(value: object) -> str:
    """Return HTML of a digest, which may break anywhere."""
    return f'<code class="digest">{line(value, 80)}</code>' if value else '<span class="quiet">none</span>'


_SLOT = re.compile(r"\$([a-z_]+)")


def filled(template: str, **parts: str | Iterable[str]) -> Iterator[str]:
    """Yield HTML whose slots (`$name`) are filled, piece by piece: a part is HTML, or pieces that are made when they are due.

    Raises KeyError for a slot without a part.
    """
    for place, piece in enumerate(_SLOT.split(template)):
        part = parts[piece] if place % 2 else piece
        if isinstance(part, str):
            yield part
        else:
            yield from part


def html(template: str, **parts: str) -> str:
    """Return HTML whose slots (`$name`) are filled."""
    return "".join(filled(template, **parts))


TABLE = """\
<div class="scroll" tabindex="0" role="region" aria-label="$caption"><table class="list">\
<caption>$caption</caption><thead><tr>$heads</tr></thead><tbody>
$rows</tbody></table></div>
"""


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table of cells (`<td ...>` or `<th ...>`); where there is no room for heads, each cell is named by its own."""
    shown = [line(head) for head in heads]

    def of(cells: Sequence[str]) -> str:
        named = (f'{cell[:3]} data-head="{head}"{cell[3:]}' for cell, head in zip(cells, shown, strict=True))
        return f"<tr>{''.join(named)}</tr>\n"

    columns = "".join(f'<th scope="col">{head}</th>' for head in shown)
    return filled(TABLE, caption=line(caption), heads=columns, rows=map(of, rows))
