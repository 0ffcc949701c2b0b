"""The models of shell builtins, coreutils, text tools, sed and awk: rows of commands, and what hostile words come to."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.actions import Act
from harness.programs import awk, coreutils, sed, shell_builtins, text
from harness.programs.model import Found, PathUse, Program, Unknown, Use
from harness.programs.options import read_command
from harness.programs.python import LIBRARY

PROGRAMS: Mapping[str, Program] = {
    **shell_builtins.PROGRAMS,
    **coreutils.PROGRAMS,
    **text.PROGRAMS,
    **sed.PROGRAMS,
    **awk.PROGRAMS,
}


def _word(word: str) -> str:
    """`€x` is a quoted word not known, `€#x` an integer, `€€x` unquoted; `{}` what find found in `src`, `{+}` in `+`."""
    if word in ("{}", "{+}", "{@}"):
        return Found("{}", starts=(word[1:-1] or "src",))
    known, euro, _ = word.partition("€")
    return Unknown(word, prefix=known, single="€€" not in word, integer="€#" in word) if euro else word


def _use(line: str) -> Use:
    argv = [_word(word) for word in shlex.split(line)]
    return read_command(PROGRAMS[argv[0]], argv)


def _shown(use: Use) -> str:
    """Return a use in a line: its act, `net`, and its paths, those of trees with a capital letter."""
    if use.gap:
        assert use.act is Act.UNKNOWN
        return "gap"
    return " ".join((use.act.value, *(["net"] if use.network else []), *map(_shown_path, use.paths)))


def _shown_path(path: PathUse) -> str:
    letter = path.access.value[0]
    return f"{letter.upper() if path.tree else letter}:{path.word}"


def test_diff_and_cp_say_whether_they_follow_links() -> None:
    lines = ("diff -r a b", "diff --no-dereference a b", "cp -r a b", "cp -rL a b", "cp -L a b", "diff {} a")
    followed = [[path.word for path in _use(line).paths if path.follows] for line in lines]
    assert followed == [["a", "b"], [], [], ["a", "b", "b/a"], [], ["src", "a"]]


ROWS = [
    # shell builtins
    ("echo -e €€x", "looks"),
    ("printf '%s\\n' €€x", "looks"),
    ("printf €x", "gap"),
    ("printf -- €x", "gap"),
    ("printf '-%s'", "gap"),
    ("printf -v€x y", "gap"),
    ("printf '%d%%%s%n' 1 a PATH", "gap"),
    ("printf '%(%n)T'", "looks"),
    ("test -f a", "looks r:a"),
    ("[ a -nt b ]", "looks r:a r:b"),
    ("[ -f a -a ! -e b ]", "looks r:a r:b"),
    ("[ -a a ]", "looks r:a"),
    ("[ €x = -v ]", "looks"),
    ("[ ! €x != y ]", "looks"),
    ("[ -z €x ]", "looks"),
    ("[ €x ]", "looks"),
    ("[ €#x -gt 3 ]", "looks"),
    ("[ 0€x -gt 3 ]", "gap"),
    ("[ €x -eq 3 ]", "gap"),
    ("[ 3 -eq €x ]", "gap"),
    ("[ €€x = y ]", "gap"),
    ("[ -f €x ]", "gap"),
    ("[ €x a ]", "gap"),
    ("[ a €x b ]", "gap"),
    ("[ €x -a -f b ]", "gap"),
    ("[ '(' €x ')' ]", "gap"),
    ("[ -n €x -a -n b ]", "gap"),
    ("[ €x a = b ]", "gap"),
    ("test -f {}", "looks R:src"),
    ("[ x = y", "gap"),
    ("[ a €x", "gap"),
    ("test 1 -eq 1 -o -v x", "gap"),
    ("wait 0€x", "looks"),
    ("wait -n -p €x", "gap"),
    ("exit 0€x", "looks"),
    # what copies, moves, links and removes
    ("cp a b", "writes r:a w:b w:b/a"),
    ("cp a b/", "writes r:a w:b/a"),
    ("cp a .", "writes r:a w:./a"),
    ("cp x/a y/b ..", "writes r:x/a r:y/b w:../a w:../b"),
    ("cp a b c", "writes r:a r:b w:c/a w:c/b"),
    ("cp -r src/ dst", "writes R:src/ W:dst W:dst/src"),
    ("cp -a src/. dst", "writes R:src/. W:dst W:dst"),
    ("cp a -rt .git", "writes R:a W:.git/a"),
    ("cp --target-directory=.git a", "writes r:a w:.git/a"),
    ("cp -T a b/", "writes r:a w:b/"),
    ("cp -s a b", "writes e:a w:b w:b/a"),
    ("cp - b", "writes r:- w:b w:b/-"),
    ("cp {} dst", "writes R:src w:dst W:dst"),
    ("cp -t €x a", "gap"),
    ("cp a €x", "gap"),
    ("cp -- €x b", "gap"),
    ("cp a --target-directory=€x", "gap"),
    ("cp --no-pres=mode a b", "gap"),
    ("mv a b", "writes E:a W:b W:b/a"),
    ("mv a b/ -t c", "writes E:a E:b/ W:c/a W:c/b"),
    ("mv {} dst", "writes E:src W:dst W:dst"),
    ("install -D a b/c", "writes r:a w:b/c w:b/c/a"),
    ("install -d a b", "writes w:a w:b"),
    ("install -m 755 --strip-program=sh -s a b", "gap"),
    ("ln -s a d/b", "writes r:a r:d/a r:d/b/a w:d/b w:d/b/a"),
    ("ln -s /etc/passwd b", "writes r:/etc/passwd w:b w:b/passwd"),
    ("ln -s ../x", "writes r:../x r:./../x w:./x"),
    ("ln a b", "writes e:a w:b w:b/a"),
    ("ln -s etc/x /b", "writes r:etc/x r:/etc/x r:/b/etc/x w:/b w:/b/x"),
    ("ln -- a €x", "gap"),
    ("rm a", "writes w:a"),
    ("rm a -rf", "writes W:a"),
    ("rm -fR -- a -x", "writes W:a W:-x"),
    ("rm {}", "writes E:src"),
    ("rm --recursiv a", "gap"),
    ("rm -- €x", "gap"),
    ("rmdir -p a/b/c", "writes w:a/b/c w:a w:a/b"),
    ("chmod -R 777 a", "writes W:a"),
    ("chmod --reference=a b", "writes r:a w:b"),
    ("chown -R x .git", "writes W:.git"),
    ("link a b", "writes e:a w:b"),
    ("mktemp", "writes w:/tmp/tmp.XXXXXXXXXX"),
    ("mktemp -p .git x.XXXX", "writes w:.git/x.XXXX"),
    ("mktemp .git/x.XXXX", "writes w:./.git/x.XXXX"),
    ("mktemp -- €x", "gap"),
    ("touch -r .env a", "writes r:.env w:a"),
    ("truncate --reference .env a", "writes r:.env w:a"),
    # dd, tee, date, ls
    ("dd if=.env", "looks r:.env"),
    ("dd if=-", "looks r:-"),
    ("dd if=a of=b", "writes r:a w:b"),
    ("dd of=a if=b of=c", "writes w:a r:b w:c"),
    ("dd if=a bs=€x", "looks r:a"),
    ("dd if=€x", "gap"),
    ("dd €x", "gap"),
    ("dd if=a €€x", "gap"),
    ("dd if=a 'o f=b'", "gap"),
    ("dd {}", "gap"),
    ("tee a -a b", "writes w:a w:b"),
    ("tee -", "writes w:-"),
    ("tee -- €x", "gap"),
    ("date -f .env", "looks r:.env"),
    ("date -r.env +%s", "looks r:.env"),
    ("date --date=€x +%s", "looks"),
    ("date +%F 01010101", "changes"),
    ("date -us 12:00", "changes"),
    ("date -- €x", "changes"),
    ("ls", "looks r:."),
    ("ls src -la", "looks r:src"),
    ("ls -", "looks r:-"),
    ("ls -I x .env", "looks r:.env"),
    ("ls €x", "gap"),
    ("du -shX .env", "looks r:.env r:."),
    ("hostname evil", "changes"),
    ("hostname -i", "looks net"),
    # sort, uniq, split, shuf and their like
    ("sort a -o b", "writes w:b r:a"),
    ("sort -unob a", "writes w:b r:a"),
    ("sort -k1 -t: --output=.git/x", "writes w:.git/x"),
    ("sort -ro€x a", "gap"),
    ("sort --compress-program=€x a", "gap"),
    ("sort -S1 --compress-program sh a", "gap"),
    ("sort --files0-from=- a", "gap"),
    ("sort -T /x a", "writes W:/x r:a"),
    ("sort --random-source=.env a", "looks r:.env r:a"),
    ("sort --parallel=€x a", "looks r:a"),
    ("sort €x", "gap"),
    ("uniq a b", "writes r:a w:b"),
    ("uniq a -- b", "writes r:a w:b"),
    ("uniq -c -w3 a .git/x", "writes r:a w:.git/x"),
    ("uniq a -", "writes r:a w:-"),
    ("uniq a €x", "gap"),
    ("head -n €x a", "looks r:a"),
    ("head -€x a", "gap"),
    ("tail -f .env", "looks r:.env"),
    ("wc --files0-from=a", "gap"),
    ("tr €€x €€y", "looks"),
    ("shuf -eo x a", "writes w:x r:a"),
    ("shuf a --random-source .env", "looks r:.env r:a"),
    ("split -n2 a .git/x", "changes r:a w:.git/x"),
    ("split a", "changes r:a w:xaa"),
    ("split -l1 --filter 'sh -c x' a", "gap"),
    ("split --filter=€x a", "gap"),
    ("csplit -f.git/x a 1", "changes w:.git/x r:a"),
    ("iconv -f ./.env -t utf-8 a", "looks r:./.env r:utf-8 r:a"),
    ("iconv a -o b", "writes w:b r:a"),
    ("sha256sum --check a", "gap"),
    ("md5sum -bc a", "gap"),
    ("strings -n 4 -- @a", "gap"),
    ("strings -s @a b", "gap"),
    ("strings {}", "looks R:src"),
    ("strings {@}", "gap"),
    ("less {+}", "gap"),
    ("less {}", "looks R:src"),
    # xxd and the dumps
    ("xxd -r a b", "writes r:a w:b"),
    ("xxd a -r", "writes r:a w:-r"),
    ("xxd -c 16 a -p", "writes r:a w:-p"),
    ("xxd -colsX 1 a b", "gap"),
    ("xxd -r -p - .git/x", "writes r:- w:.git/x"),
    ("xxd -s€x a", "gap"),
    ("hexdump -f .env a", "looks r:.env r:a"),
    ("hexdump -", "looks r:-"),
    ("rev -", "looks r:-"),
    # comparing and patching
    ("diff a b", "looks R:a R:b"),
    ("diff -u a - --label x", "looks R:a R:-"),
    ("diff --from-file=.env a", "looks R:.env R:a"),
    ("diff -rul a b", "gap"),
    ("cmp a .env 1 2", "looks r:a r:.env"),
    ("patch -o b a c", "changes w:b e:a r:c"),
    ("patch -d src -i a.diff", "changes r:src r:src/a.diff"),
    ("patch --ed a b", "gap"),
    # pagers, file, jq
    ("less -N a", "looks r:a"),
    ("less a -o b", "gap"),
    ("less -RoX a", "gap"),
    ("less ++G!x a", "gap"),
    ("less --+!x a", "gap"),
    ("more -", "looks r:-"),
    ("more a -x", "gap"),
    ("file -b -F: a .env", "looks r:a r:.env"),
    ("file -bC -m a", "gap"),
    ("file -Ff a", "looks r:a"),
    ("file -bf a", "gap"),
    ("jq . .env a -r", "looks r:.env r:a"),
    ("jq --rawfile x .env .", "looks r:.env"),
    ("jq --argjson a 1 --slurpfile x .env . b", "looks r:.env r:b"),
    ("jq . .env --args a b", "looks r:.env"),
    ("jq --args . .env -- a", "looks"),
    ("jq -rs€x .", "gap"),
    ("jq --arg x €€y .", "gap"),
    ("jq --slurpfile x €y .", "gap"),
    ("jq €x a", "gap"),
    ("jq . €x", "gap"),
    ("jq . -- €x", "gap"),
    ("jq . {}", "looks R:src"),
    ("jq {} a", "gap"),
    ("jq --arg a . -f x", "gap"),
    ("jq '.a|include \"x\"; .'", "gap"),
    ("jq --seq -cnL /x .", "gap"),
    # sed
    ("sed -n 1,5p .env a", "looks r:.env r:a"),
    ("sed -e p -- a -i", "looks r:a r:-i"),
    ("sed -e p a -ni.b", "writes e:a w:a.b"),
    ("sed '-ibak/*' p d/a", "writes e:d/a w:bak/a"),
    ("sed --in-place=x_* p d/a", "writes e:d/a w:d/x_a"),
    ("sed -ie p a", "writes e:a w:ae"),
    ("sed --in-place=€x p a", "gap"),
    ("sed p {}", "looks R:src"),
    ("sed -i p {}", "writes E:src"),
    ("sed {} a", "gap"),
    ("sed €x a", "gap"),
    ("sed -e p -e €x a", "gap"),
    ("sed p €x", "gap"),
    ("sed -n -e 'a\\' -e 'w f' a", "looks r:a"),
    ("sed -e 'a x' -e 'w f' a", "gap"),
    ("sed -e 's/a/b\\' -e 'w f/' a", "looks r:a"),
    ("sed -s --expression=w\\ f a", "gap"),
    ("sed -nf€x a", "gap"),
    # awk
    ("awk 1 .env a=b", "looks r:.env"),
    ("awk 1 a=b ./a=b", "looks r:./a=b"),
    ("awk 1 -f x", "looks r:-f r:x"),
    ("awk 1 ARGV=x", "looks r:ARGV=x"),
    ("awk {} a", "gap"),
    ("awk 1 {}", "looks R:src"),
    ("awk -F €x 1 a", "looks r:a"),
    ("awk -v x=€y 1 a", "looks r:a"),
    ("awk -v €x 1 a", "gap"),
    ("awk €x a", "gap"),
    ("awk 1 €x", "gap"),
    ("gawk -v x=1 -i inplace 1 a", "gap"),
    ("mawk -We x", "gap"),
]


@pytest.mark.parametrize(("line", "expected"), ROWS, ids=[line for line, _ in ROWS])
def test_what_a_command_does(line: str, expected: str) -> None:
    assert _shown(_use(line)) == expected


@pytest.mark.parametrize(
    "script",
    [
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
    ],
)
def test_scripts_of_sed_that_only_edit(script: str) -> None:
    assert sed.script_problem(script) == ""


@pytest.mark.parametrize(
    "script",
    [
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
    ],
)
def test_scripts_of_sed_that_are_not_vouched_for(script: str) -> None:
    assert sed.script_problem(script)


@pytest.mark.parametrize(
    "program",
    [
        "BEGIN {\n  x = 1 # > f\n}\n$1 > x { print \"a\" \\\n \"b\" }",
        "{ print $1 }\nNR > 2",
        "{ print }\n$1 > 2 { n++ }",
        "{ printf(\"%s\\n\", ($1 > 2) ? \"a\" : \"b\") }",
        "{ a = $1 / 2\n b = \"/\" }",
        "{ print \"é\" }",
        "function f(a,\n b) { return a / b }\n{ print f(1, 2) }",
        "/a\\/b/ || $2 ~ /[^a-z\\/]/ { print; next }",
        "{ print > \"/dev/stderr\"; print }",
    ],
)  # fmt: skip
def test_programs_of_awk_that_only_print(program: str) -> None:
    assert awk.program_problem(program) == ""


@pytest.mark.parametrize(
    "program",
    [
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
    ],
)  # fmt: skip
def test_programs_of_awk_that_are_not_vouched_for(program: str) -> None:
    assert awk.program_problem(program)


_PIECES = st.sampled_from(
    [
        "-",
        "--",
        "--output",
        "=",
        "a",
        "-o",
        "-i",
        "-e",
        "€",
        "€€",
        "{}",
        "+",
        "/",
        "'",
        '"',
        "\\",
        "\n",
        "[",
        "]",
        "w",
        "if",
    ]
)


@given(st.sampled_from(sorted(PROGRAMS)), st.lists(st.lists(_PIECES, max_size=4).map("".join), max_size=5))
def test_no_words_raise(name: str, words: list[str]) -> None:
    use = read_command(PROGRAMS[name], [name, *map(_word, words)])
    assert use.gap or use.act is not Act.UNKNOWN


@given(st.text(alphabet="s/|ab\\\nwe;{}$1,!~[]^#:ty \"'(>)+é", max_size=40))
def test_no_script_raises(script: str) -> None:
    assert isinstance(sed.script_problem(script), str)
    assert isinstance(awk.program_problem(script), str)


@pytest.mark.parametrize(
    "piece", ["[", "/a/", "s/[", "{", "a / b ", "\\\n", "[[:", "((", "a\\\n", " ", "1/", '"', "/[a"]
)
def test_long_scripts_are_read_in_linear_time(piece: str) -> None:
    script = piece * (10_000 // len(piece))
    assert isinstance(sed.script_problem(script), str)
    assert isinstance(awk.program_problem(script), str)


def test_every_module_of_this_python_is_known_as_one_of_its_library() -> None:
    assert {name for name in sys.stdlib_module_names if not name.startswith("_")} <= LIBRARY
