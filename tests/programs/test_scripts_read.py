"""Scripts that models read: those of sed and awk that only edit and print, and text that sh reads as bash does."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from harness.programs import awk, sed
from harness.programs.python import LIBRARY
from harness.programs.shared import read_alike

SED_ONLY_EDITS = [
    "s/a/b\\\nc/",
    "a\\\nw f",
    "i\\\n  x\\\nw f\np",
    "1i x\\\nw f",
    "# w f\np",
    "/a/{\np\nd\n}",
    "s/é/è/g",
    ":a\nN\nba",
    "$!{a x\n}",
    "y/\\n/ /",
    "\\,x,s/a/b/;n",
    "s#a#\\##;p # x",
]

SED_IS_NOT_VOUCHED_FOR = [
    "p\nw f",
    "# x\\\nw f",
    "a x\nw f",
    "a x\\\\\nw f",
    "a\\\nx\nw f",
    "a\\ \nw f",
    "a\\\\\nw f",
    "a\nw f",
    "a x\\",
    "$!{a x}\nw f",
    "s/a\nw f/b/",
    "s/a/b\nw f/",
    "/a\nw f/p",
    "y/a/\n/",
    "s/a/b/\nw f",
    "s/a/b/;s/c/d/\tw f",
    "s/[a\n]/b/",
    "s/[[:a]/w f/",
    "s\na\nb\nw f",
    "s|x〓\\|w f|",
    "b x;w f",
    "bx w f",
    ": a b\nw f",
    "t\nw f",
    "1,3w f",
    "1~2 w f",
    "0,/x/I!w f",
    "{{p}w f}",
    "}",
    "1}",
    "p;e",
    "M;s/a/b/e;p",
    "s/a/b/w/dev/stdout",
    "\x0bw f",
]

AWK_ONLY_PRINTS = [
        "BEGIN {\n  x = 1 # > f\n}\n$1 > x { print \"a\" \\\n \"b\" }",
        "{ print $1 }\nNR > 2",
        "{ print }\n$1 > 2 { n++ }",
        "{ printf(\"%s\\n\", ($1 > 2) ? \"a\" : \"b\") }",
        "{ a = $1 / 2\n b = \"/\" }",
        "{ print \"é\" }",
        "function f(a,\n b) { return a / b }\n{ print f(1, 2) }",
        "/a\\/b/ || $2 ~ /[^a-z\\/]/ { print; next }",
        "{ print > \"/dev/stderr\"; print }",
    ]  # fmt: skip

AWK_IS_NOT_VOUCHED_FOR = [
        "{ print $1,\n $2 > \"f\" }",
        "{ print $1 ?\n 1 :\n 2 > \"f\" }",
        "{ print $1 &&\n $2 > \"f\" }",
        "{ print \\\n > \"f\" }",
        "{ print \"a\\\nb\" > \"f\" }",
        "{ print (1\n) }",
        "# x\\\n{ print }",
        "\"a\nb\"",
        "/a\nb/",
        "/a\\\nb/",
        "{ x = a / \"b\" / 2 }",
        "{ x = a /b+/ 2 }",
        "{ print a / (b / c; print > \"f\") }",
        "{ x = 08system(\"id\") }",
        "{ x = 1e+system(\"id\") }",
        "{ x = 0x1system(\"id\") }",
        "{ system\n(\"id\") }",
        "{ sys\\\ntem(\"id\") }",
        "{ print \"é\\\" > \"f\" }",
        "{ é(\"id\") }",
        "{ print > (\"f\") }",
        "{ print, > \"f\" }",
        "{ if (1) { print } else print > \"f\" }",
        "{ print > \"/dev/stderr\", x }",
        "{ print > \"/dev/stdout\" x }",
        "{ print > \"/dev/../f\" }",
        "BEGIN { \"id\" | getline }",
        "BEGIN { printf \"x\" | \"sh\" }",
        "BEGIN { getline x < \"f\" }",
        "BEGIN { f = \"system\"; @f(\"id\") }",
        "BEGIN { split(\"/etc/passwd\", ARGV) }",
        "@namespace \"awk\"",
        "{ print ) > \"f\" ( }",
        "\x0b",
    ]  # fmt: skip


def test_scripts_of_sed() -> None:
    assert [script for script in SED_ONLY_EDITS if sed.script_problem(script)] == []
    assert [script for script in SED_IS_NOT_VOUCHED_FOR if not sed.script_problem(script)] == []


def test_programs_of_awk() -> None:
    assert [program for program in AWK_ONLY_PRINTS if awk.program_problem(program)] == []
    assert [program for program in AWK_IS_NOT_VOUCHED_FOR if not awk.program_problem(program)] == []


@given(st.text(alphabet="s/|ab\\\nwe;{}$1,!~[]^#:ty \"'(>)+é", max_size=40))
def test_scripts_of_any_text_are_read_without_an_exception(script: str) -> None:
    assert isinstance(sed.script_problem(script), str)
    assert isinstance(awk.program_problem(script), str)


def test_long_scripts_are_read_in_linear_time() -> None:
    for piece in ["[", "/a/", "s/[", "{", "a / b ", "\\\n", "[[:", "((", "a\\\n", " ", "1/", '"', "/[a"]:
        script = piece * (10_000 // len(piece))
        assert isinstance(sed.script_problem(script), str)
        assert isinstance(awk.program_problem(script), str)


def test_every_module_of_this_python_is_known_as_one_of_its_library() -> None:
    assert {name for name in sys.stdlib_module_names if not name.startswith("_")} <= LIBRARY


READ_ALIKE = (
    ("ls -la | head -5 && echo done 2>&1 >f", True),
    ("if [ -f x ]; then cat x; fi", True),
    ("for f in a b; do echo \"$f\"; done", True),
    ("echo 'a b' > \"out file\"", True),
    ("ls 2>/dev/null *.py", True),
    ("cat <<'EOF'\nx\nEOF", True),
    ("echo $'a'", False),
    ("[[ a < b ]]", False),
    ("cat <(ls)", False),
    ("ls |& cat", False),
    ("ls &>f", False),
    ("ls &>>f", False),
    ("ls >&f", False),
    ("ls '&'>f", False),
    ("ls \\\n&\\\n>f", False),
    ("cat <<< x", False),
    ("echo 10>f", False),
    ("echo 1\\\n0>f", False),
    ("echo >f*", False),
    ("ls [^a]*", False),
    ("time -o f ls", False),
    ("function ls { rm x; }", False),
    ("eval ls", False),
    ("ev''al ls", False),
    ("alias ls=rm", False),
    ("trap 'rm x' EXIT", False),
    ("echo \N{LATIN SMALL LETTER E WITH ACUTE}", False),
)  # fmt: skip


def test_text_that_sh_reads_as_bash_does() -> None:
    assert [text for text, alike in READ_ALIKE if read_alike(text) is not alike] == []
