"""javac, rspec and rubocop. Other tools of Java, Ruby and similar languages are rows of asked.py.

javac runs the annotation processors that it finds on the class path, by default the current folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from harness.actions import Act
from harness.programs.options import read_command
from harness.programs.program import Found, Program, Style, Unknown, Use
from harness.programs.shared import (
    all_of,
    no_files_of_words,
    one_of,
    runs,
    written_by,
)

# --- javac

_WITH_COLON = r"-(?:Xlint|Xdoclint|g|implicit|proc)(?=:[a-zA-Z,-]+\Z)"
_JAVAC_TABLE = Program(
    act=Act.RUNS,
    style=Style.SINGLE,
    options="""
        -version|--version -help|--help -nowarn -verbose -deprecation -parameters -Werror -Xlint -Xdoclint -g
        -implicit -proc --enable-preview -encoding=TEXT -source|--source=TEXT -target|--target=TEXT --release=TEXT
        --add-modules=TEXT --limit-modules=TEXT -Xmaxerrs=TEXT -Xmaxwarns=TEXT -cp|-classpath|--class-path=READ
        -sourcepath|--source-path=READ -p|--module-path=READ -d=WRITE_TREE -h=WRITE_TREE -s=WRITE_TREE
        -processor=CODE -processorpath|--processor-path=CODE --processor-module-path=CODE
    """,
)


def _read_javac(argv: Sequence[str]) -> Use:
    """Read the words of javac. The text after a colon (`-Xlint:all`) never names code or a file, and is dropped."""
    words = (
        word if isinstance(word, Unknown | Found) else match.group() if (match := re.match(_WITH_COLON, word)) else word
        for word in argv
    )
    return read_command(_JAVAC_TABLE, tuple(words))


_JAVAC = Program(read=_read_javac)


# --- Ruby

_RSPEC = runs(
    """
        -h|--help -v|--version -f|--format=TEXT -e|--example=TEXT -E|--example-matches=TEXT -t|--tag=TEXT -b|--backtrace
        -c|--color|--colour --no-color -p|--profile[=TEXT] -w|--warnings --fail-fast[=TEXT] --order=TEXT --seed=TEXT
        --only-failures -n|--next-failure --dry-run --pattern|-P=TEXT --force-color -o|--out=WRITE -r|--require=CODE -I=CODE
        -O|--options=CODE --default-path=READ
    """,
    refine=one_of("-f", "p progress d documentation h html j json f failures"),
)
_RUBOCOP = runs(
    """
        -h|--help -v|--version -V|--verbose-version -a|--autocorrect|--auto-correct -A|--autocorrect-all|--auto-correct-all
        -x|--fix-layout -l|--lint --only=TEXT --except=TEXT -f|--format=TEXT -P|--parallel --no-parallel -D|--display-cop-names
        -S|--display-style-guide --fail-level=TEXT -F|--fail-fast --cache=TEXT --color --no-color -s|--stdin=TEXT
        --force-exclusion --auto-gen-config:changes --show-cops=TEXT -o|--out=WRITE -c|--config=CODE -r|--require=CODE
        --plugin=CODE
    """,
    refine=all_of(
        written_by("-a", "-A", "-x", only=("*.rb", "*.rake", "*.gemspec", "Gemfile", "Rakefile", "*.ru")),
        one_of(
            "-f",
            "p progress s simple c clang e emacs j json h html fi files o offenses w worst g github q quiet junit tap",
        ),
    ),
)

PROGRAMS: Mapping[str, Program] = {
    "javac": no_files_of_words(_JAVAC),
    "rspec": _RSPEC,
    "rubocop": _RUBOCOP,
}
