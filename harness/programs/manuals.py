"""Models of programs that print manual pages and calendars; data, pure."""

from __future__ import annotations

from collections.abc import Mapping

from harness.programs.model import Found, Parsed, Program, Style, Unknown, Use, gap


def _man(parsed: Parsed, use: Use) -> Use:
    """Allow names and sections. With a slash in it, a word is a file that is laid out."""
    for word in (*parsed.operands, *(given.value for given in parsed.options if given.value)):
        if isinstance(word, Unknown | Found) or "/" in word:
            return gap(f"{word} is not the plain name of a manual page")
    return use


_CALENDAR = Program(style=Style.TEXT, operands="TEXT...")
"""util-linux and BSD: no word is a file or a program."""

PROGRAMS: Mapping[str, Program] = {
    # man-db 2.11, and that of BSD. What is printed goes into no pager, since it is no terminal.
    "man": Program(
        options="""
            -f|--whatis -k|--apropos -w|--where|--path|--location -a|--all -i|--ignore-case -I|--match-case --regex --wildcard
            --names-only --no-subpages -s|-S|--sections=TEXT -e|--extension=TEXT -7|--ascii --no-hyphenation|--nh
            --no-justification|--nj -V|--version:info -h|--help:info
        """,
        operands="TEXT...",
        refine=_man,
    ),
    "cal": _CALENDAR,
    "ncal": _CALENDAR,
}  # fmt: skip
