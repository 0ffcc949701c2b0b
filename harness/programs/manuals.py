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


_CALENDAR = Program(style=Style.TEXT, operands="TEXT...", looks=("cal", "cal 2024", "cal -3", "cal -m 5 2024"))
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
        looks=("man ls", "man 3 printf", "man -k printf", "man -w ls", "man -s 2 open", "man git-log", "man --version"),
        not_covered=(
            "man -P sh ls", "man --pager=sh ls", "man -H ls", "man --html=x ls", "man -Hx ls", "man ./x", "man -l x",
            "man -C x ls", "man -M . ls", "man -p x ls", "man -T x ls", "man -X ls", "man -K x", "man -u", "man --pag=sh ls",
            "man -s 1/../../x ls", "man ../x ls", "man -e /x ls", "man -kP sh ls", "man -r x ls",
        ),
    ),
    "cal": _CALENDAR,
    "ncal": _CALENDAR,
}  # fmt: skip
