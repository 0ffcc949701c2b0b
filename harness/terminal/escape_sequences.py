"""Escape sequences of a terminal: keys, reports, pastes. No side effects.

All readers of keys use this module, so that no sequence is treated as text, whatever mode an earlier program left on.
Sources: ECMA-48 (5.4 and 5.6), xterm's control sequences, the keyboard protocol of kitty ("CSI u").
"""

from __future__ import annotations

from harness.regex import regex

ESC = "\x1b"
PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"
SHIFT_TAB = "\x1b[Z"
"""CBT (ECMA-48 8.3.7)."""

_WHOLE = regex(
    r"\x1b(?:"
    r"\[(?:M[^\0-\x1f]{3}|\[[A-Z]|[0-9]+\$|(?![M\[])[0-?]*[ -/]*[@-~])"  # CSI; X10's mouse, Linux' and rxvt's keys
    r"|O[0-9;]*[@-~]"  # SS3
    r"|[PX^_\]][^\0-\x1f]*(?:\x07|\x1b\\)"  # DCS, SOS, PM, APC, OSC
    r"|[^\[OPX^_\]\x1b])"  # Alt and a key
)
_BEGUN = regex(r"\x1b(?:\[(?:\[|M[^\0-\x1f]{0,2}|[0-?]{0,63}[ -/]{0,4})|O[0-9;]{0,8}|[PX^_\]][^\0-\x1f]{0,4096}\x1b?)?")
"""Unfinished sequences. Longer ones are dropped without effect."""
_MAYBE_ALT = frozenset(f"{ESC}{key}" for key in "PX^_]")
"""Alt with one of these keys, or the start of a control string. Only in a string, more bytes follow at once."""
_KEY_CODE = regex(
    r"\x1b\[(?:27;([0-9]{1,3});([0-9]{1,7})~|([0-9]{1,7})(?::([0-9]{0,7}))?[:0-9]*(?:;([0-9:]*)[0-9:;]*)?u)"
)
_WITH_EVENT = regex(r"\x1b\[([0-9]{0,5});([0-9]{1,3}):([1-3])([A-HPQS~])")
_SHIFT, _ALT, _CTRL, _OTHERS = 1, 2, 4, 56
"""Bits of the modifier number minus one. `_OTHERS` are Super, Hyper and Meta. Caps Lock and Num Lock are ignored."""
_RELEASED = "3"


class EscapeSequences:
    """Splits the input of a terminal into units: characters, complete sequences, complete pastes.

    INVARIANT: a control character ends an unfinished sequence, so that such a sequence cannot swallow Ctrl-C or Enter.
    """

    def __init__(self) -> None:
        self._sequence_start = ""
        self._paste: str | None = None

    @property
    def in_escape(self) -> bool:
        """Whether the last character was an Esc, which may be a key or begin a sequence."""
        return self._sequence_start == ESC

    @property
    def in_key(self) -> bool:
        """Whether a sequence has begun and not ended."""
        return bool(self._sequence_start)

    @property
    def pasted(self) -> str | None:
        """The text of a paste that has begun and not ended. `None` if there is none."""
        return self._paste

    def feed(self, text: str) -> list[str]:
        """Return the units that end with `text`, in order. A paste has its marks around it."""
        units: list[str] = []
        while text:
            if self._paste is not None:
                text = self._take_pasted(text, units)
                continue
            for index, char in enumerate(text):
                self._take(char, units)
                if units and units[-1] == PASTE_BEGINS:
                    units.pop()
                    self._paste = ""
                    text = text[index + 1 :]
                    break
            else:
                break
        return units

    def pause(self) -> str:
        """Return Esc, or Alt with a key, if the input ends there: no bytes followed, so no sequence began.

        Otherwise return an empty string; an unfinished sequence or paste is kept.
        """
        sequence = self._sequence_start
        if sequence != ESC and sequence not in _MAYBE_ALT:
            return ""
        self._sequence_start = ""
        return sequence

    def end(self) -> str:
        """Drop unfinished sequences and pastes. Return the text of the unfinished paste."""
        text, self._paste, self._sequence_start = self._paste or "", None, ""
        return text

    def _take(self, char: str, units: list[str]) -> None:
        before, self._sequence_start = self._sequence_start, ""
        sequence = before + char
        if sequence[0] != ESC or _WHOLE.fullmatch(sequence):
            units.append(sequence)
        elif _BEGUN.fullmatch(sequence):
            self._sequence_start = sequence
        elif before == ESC:  # Esc twice
            units.append(ESC)
            self._sequence_start = ESC
        elif before.endswith(ESC):  # a string that another sequence interrupts
            self._sequence_start = ESC
            self._take(char, units)
        else:
            self._take(char, units)

    def _take_pasted(self, text: str, units: list[str]) -> str:
        """Add text to a paste. Return the text after its end."""
        earlier = self._paste or ""
        pasted = earlier + text
        end = pasted.find(PASTE_ENDS, max(len(earlier) - len(PASTE_ENDS), 0))
        self._paste = pasted if end < 0 else None
        if end < 0:
            return ""
        units.append(f"{PASTE_BEGINS}{pasted[:end]}{PASTE_ENDS}")
        return pasted[end + len(PASTE_ENDS) :]


def key_of(unit: str) -> str:
    """Return the characters that a terminal without keyboard protocols sends for a key. Empty for the release of a key.

    Enter with Shift, Ctrl or Alt is a line feed. Other units stay as they are.
    """
    if match := _KEY_CODE.fullmatch(unit):
        if match[1]:
            return _typed(int(match[2]), int(match[1]))
        modifiers, _, event = (match[5] or "").partition(":")
        return "" if event == _RELEASED else _typed(int(match[3]), int(modifiers or 1), int(match[4] or 0))
    if match := _WITH_EVENT.fullmatch(unit):
        number, modifiers, event, final = match.groups()
        bits = (int(modifiers) - 1) & 63
        plain = f"{ESC}[{number if final == '~' else ''}{final}"
        return "" if event == _RELEASED else f"{ESC}[{number or 1};{bits + 1}{final}" if bits else plain
    return unit


def is_control(unit: str) -> bool:
    """Return whether a unit is a control sequence or a control string, not a character or Alt with one."""
    return unit.startswith(ESC) and len(unit) > len("\x1bO") and unit[1] in "[OPX^_]"


def pasted_text(unit: str) -> str | None:
    """Return the text of a paste. `None` for other units."""
    return unit[len(PASTE_BEGINS) : -len(PASTE_ENDS)] if unit.startswith(PASTE_BEGINS) else None


def typed_text(text: str) -> str:
    """Return `text` without escape sequences. Characters and line breaks that were sent as sequences are kept."""
    sequences = EscapeSequences()
    units = sequences.feed(text)
    while pasted := sequences.end().replace(PASTE_BEGINS, ""):
        units += sequences.feed(pasted)
    return "".join(map(_text_of, units))


def _text_of(unit: str) -> str:
    if (pasted := pasted_text(unit)) is not None:
        return typed_text(pasted)
    key = key_of(unit)
    return key if key in (unit[0], "\n") or key.isprintable() else ""


def _typed(code: int, modifiers: int, shifted: int = 0) -> str:
    """Return the characters for a key by its Unicode code point."""
    bits = (modifiers - 1) & 63
    if code == ord("\r"):
        return "\n" if bits else "\r"
    if code == ord("\t"):
        return {0: "\t", _SHIFT: SHIFT_TAB}.get(bits, "")
    if code in (8, 127):
        return {_ALT: f"{ESC}\x7f", _CTRL: "\x17"}.get(bits, "\x7f")
    if code == ord(ESC):
        return "" if bits else ESC
    # Keys without a character have codes for private use.
    if bits & _OTHERS or code > 0x10FFFF or not chr(code).isprintable():
        return ""
    char = chr(code)
    if bits & _CTRL:
        if bits & _SHIFT or not ("@" <= char.upper() <= "_" or char == " "):
            return ""
        char = chr(ord(char.upper()) & 0x1F)
    elif bits & _SHIFT:
        char = chr(shifted) if 0 < shifted <= 0x10FFFF else char.upper()
    return f"{ESC}{char}" if bits & _ALT else char
