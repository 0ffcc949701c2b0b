"""Programs that run code out of files or operands: perl, ruby, java and their like; pure, and reads no code.

A named file is RUNS, with every word after it that may be a file; code among the words is a gap, and so is code that
comes in by the input.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Act
from harness.programs.code_files import argument_paths, with_arguments
from harness.programs.gathered import never
from harness.programs.model import Parsed, Program, Refine, Style, Unknown, Use, gap
from harness.programs.options import parse_words
from harness.record import replace


def _interprets(
    options: str,
    *,
    looks: tuple[str, ...] = (),
    covered: tuple[str, ...] = (),
    not_covered: tuple[str, ...] = (),
    refine: Refine = with_arguments,
    operands: str = "SCRIPT TEXT...",
) -> Program:
    return Program(
        act=Act.RUNS,
        style=Style.POSIX,
        options=options,
        operands=operands,
        refine=refine,
        looks=looks,
        covered=covered,
        not_covered=not_covered,
    )


def _php(parsed: Parsed, use: Use) -> Use:
    """`-l FILE` checks the syntax and runs nothing."""
    if [given.name for given in parsed.options] == ["-l"]:
        plain = len(parsed.operands) == 1 and parsed.operands[0] != "-"
        return replace(use, act=Act.LOOKS) if plain else gap("php -l of more than one file")
    return with_arguments(parsed, use)


def _never(parsed: Parsed, _use: Use) -> Use:
    return gap(f"{parsed.program} runs what its words or its files say")


_JAVA_OPTIONS = Program(
    style=Style.POSIX,
    options="-cp|-classpath|--class-path=TEXT -ea -server -Xmx256m -Xmx512m -Xmx1g -Xmx2g -Xmx4g -Xmx8g",
    operands="TEXT...",
)


def _java(argv: Sequence[str]) -> Use:
    """Behind `-jar FILE`, or behind the class, all words are the program's. Each start writes figures into /tmp."""
    if len(argv) == 2 and argv[1] in ("-version", "--version", "--help"):
        return Use(act=Act.RUNS)
    place = argv.index("-jar") if "-jar" in argv else len(argv)
    parsed = parse_words(_JAVA_OPTIONS, argv[:place])
    if isinstance(parsed, str):
        return gap(parsed)
    words = parsed.operands or tuple(argv[place + 1 :])
    if not words or any(word.startswith("@") for word in argv):
        return gap("java without a class, or with a file of options")
    parts = [
        part for value in parsed.values("-cp") for part in ([value] if isinstance(value, Unknown) else value.split(":"))
    ]
    paths = argument_paths([*parts, *words, *(argv[place:] if parsed.operands else ())])
    return gap(paths) if isinstance(paths, str) else Use(act=Act.RUNS, paths=paths)


PROGRAMS = {
    "perl": _interprets(
        "-v|--version:info -w -W -T -t -c -e=CODE -E=CODE -M=CODE -m=CODE -I=CODE",
        looks=("perl -v", "perl --version"),
        covered=("perl x.pl a b", "perl -w x.pl", "perl -c x.pl"),
        not_covered=(
            "perl",
            "perl -e 1",
            "perl -ne print x",
            "perl -pi -e s/a/b/ x",
            "perl -i.bak x",
            "perl -Mx=y x.pl",
            "perl -I. x.pl",
            "perl -we 1",
            "perl -d x.pl",
            "perl -V",
            "perl -x x.pl",
            "perl -0777 x.pl",
        ),
    ),
    "ruby": _interprets(
        "-v|--version:info -w -W[=TEXT] -c -e=CODE -r=CODE -I=CODE",
        looks=("ruby -v", "ruby --version"),
        covered=("ruby x.rb a", "ruby -w x.rb", "ruby -c x.rb"),
        not_covered=("ruby", "ruby -e 1", "ruby -ne 'print' x", "ruby -rx y.rb", "ruby -C / x.rb", "ruby -Ilib x.rb"),
    ),
    "php": _interprets(
        "-v|--version:info -l -q -r=CODE -B=CODE -R=CODE -E=CODE -F=CODE -z=CODE",
        refine=_php,
        looks=("php -v", "php -l a.php"),
        covered=("php a.php x", "php -q a.php"),
        not_covered=(
            "php",
            "php -r 'echo 1;'",
            "php -d auto_prepend_file=x -l a.php",
            "php -S 0:80",
            "php -c . a.php",
            "php -a",
            "php -l a b",
        ),
    ),
    **dict.fromkeys(
        ("lua", "luajit"),
        _interprets(
            "-v:info -W -E -e=CODE -l=CODE",
            looks=("lua -v",),
            covered=("lua x.lua a",),
            not_covered=("lua", "lua -", "lua -e 1", "lua -l x y.lua", "lua -i x.lua", "lua -ex"),
        ),
    ),
    "Rscript": _interprets(
        "--version:info --vanilla --no-save --no-restore --quiet -e=CODE",
        looks=("Rscript --version",),
        covered=("Rscript --vanilla a.R x",),
        not_covered=("Rscript -e 'q()'", "Rscript", "Rscript --default-packages=x a.R", "Rscript -"),
    ),
    "julia": _interprets(
        "-v|--version:info --project[=READ] -t|--threads=TEXT -q|--quiet --startup-file=TEXT -e|--eval=CODE -E|--print=CODE "
        "-L|--load=CODE",
        looks=("julia --version",),
        covered=("julia --project=. a.jl", "julia -t 4 a.jl x"),
        not_covered=("julia", "julia -e 1", "julia -L x.jl y.jl", "julia -J x.so y.jl"),
    ),
    "java": Program(
        read=_java,
        covered=(
            "java -version",
            "java --version",
            "java -jar app.jar --port=1",
            "java -cp build:lib Main",
            "java -Xmx2g -jar app.jar",
            "java Main.java -x",
        ),
        not_covered=(
            "java -XX:OnOutOfMemoryError=x -jar app.jar",
            "java -javaagent:x.jar -jar app.jar",
            "java @args -jar app.jar",
            "java -agentlib:x Main",
            "java",
            "java -jar",
        ),
    ),
    **dict.fromkeys(
        ("tclsh", "osascript", "expect"),
        _interprets(
            "-e=CODE -c=CODE -l=CODE",
            covered=("tclsh x.tcl a", "osascript x.scpt"),
            not_covered=("tclsh", "osascript -e 1", "expect -c 1", "expect -", "osascript -l JavaScript x"),
        ),
    ),
    "pwsh": _interprets(
        "-v|-Version|--version:info -NoProfile -nop -NonInteractive -File|-f=SCRIPT -Command|-c=CODE",
        looks=("pwsh --version",),
        covered=("pwsh x.ps1 a", "pwsh -NoProfile -File x.ps1"),
        not_covered=("pwsh", "pwsh -c ls", "pwsh -Command ls", "pwsh -e AAAA", "pwsh -EncodedCommand AAAA", "pwsh -"),
        refine=lambda parsed, use: use if parsed.has("-File") else with_arguments(parsed, use),
    ),
    **dict.fromkeys(
        (
            "sqlite3",
            "psql",
            "mysql",
            "ed",
            "ex",
            "vi",
            "vim",
            "nvim",
            "nano",
            "emacs",
            "m4",
            "gdb",
            "lldb",
            "R",
        ),
        Program(
            act=Act.RUNS,
            options="--version:info",
            operands="TEXT...",
            refine=_never,
            looks=("vim --version", "sqlite3 --version", "gdb --version"),
            not_covered=(
                "sqlite3 a.db .tables",
                "sqlite3 a.db '.shell ls'",
                "vim -es x",
                "vim",
                "ed x",
                "m4 x.m4",
                "gdb -batch -ex 'shell ls' x",
                "emacs --batch --eval 1",
                "mysql -e 1",
                "psql -c '\\! ls'",
                "R --no-save",
            ),
        ),
    ),
    # Whatever it is asked, it writes settings into the home folder.
    "jshell": never("it writes into the home folder and runs what it reads", "jshell --version", "jshell x.jsh"),
}
