"""Make hostile text safe to show: control, bidi and zero-width characters become visible escapes; pure."""

from __future__ import annotations

_KEEP = frozenset("\n\t")
# Format characters that reorder or hide text: zero-width, bidi marks, embeddings, overrides and isolates, the
# byte-order mark, interlinear annotation, soft hyphen, Mongolian separator and tags (Unicode 15, category Cf and kin).
_HIDDEN = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x0600, 0x0605), (0x061C, 0x061C), (0x06DD, 0x06DD), (0x070F, 0x070F),
    (0x0890, 0x0891), (0x08E2, 0x08E2), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xD800, 0xDFFF), (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0x110BD, 0x110BD), (0x110CD, 0x110CD),
    (0x13430, 0x1343F), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
# Blanks that are not the blank: they hide where a word ends.
_ODD_BLANKS = (
    (0x00A0, 0x00A0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
)


def _escape(code: int) -> str:
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _table() -> dict[int, str]:
    codes = [code for code in range(0x20) if chr(code) not in _KEEP] + list(range(0x7F, 0xA0))
    for first, last in _HIDDEN + _ODD_BLANKS:
        if last < 0xE0000:  # the tag block is handled below: 4,000 entries would cost start-up for nothing
            codes.extend(range(first, last + 1))
    return {code: _escape(code) for code in codes}


_cache: list[dict[int, str]] = []


def visible(text: str) -> str:
    """Return `text` with every character that could move the cursor, reorder or hide text shown as an escape.

    Newline and tab stay. The result never holds ESC, C0, C1, DEL, bidi, zero-width or surrogate characters.
    """
    if text.isascii() and text.isprintable():
        return text
    if not _cache:
        _cache.append(_table())
    text = text.translate(_cache[0])
    if any("\U000e0000" <= char <= "\U000e0fff" for char in text):
        text = "".join(_escape(ord(c)) if "\U000e0000" <= c <= "\U000e0fff" else c for c in text)
    return text


def visible_line(text: str, width: int = 200) -> str:
    """Return `visible(text)` on one line of at most `width` characters, newlines and tabs shown as escapes.

    A line that is cut ends in `...` and the number of characters that are missing.
    """
    line = visible(text).replace("\n", "\\n").replace("\t", "\\t")
    if len(line) <= width:
        return line
    return f"{line[:width]}...(+{len(line) - width} characters)"
