"""Models of the builds of Java, Kotlin, Scala and Clojure; data.

Each runs code of the project: also `mvn --version`, by `.mvn/jvm.config` (`-javaagent:`), and gradlew and mvnw are themselves
files of the project. javac runs the annotation processors that the class path names, and that is the folder at hand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from harness.actions import Act
from harness.programs.model import Found, Program, Style, Unknown, Use
from harness.programs.options import read_command
from harness.programs.tables import names_only, no_files_of_words

_MAVEN = Program(
    act=Act.RUNS,
    network=True,
    style=Style.SINGLE,
    options="""
        -h|--help -v|--version -V|--show-version -q|--quiet -B|--batch-mode -e|--errors -X|--debug -o|--offline
        -U|--update-snapshots -nsu|--no-snapshot-updates -ntp|--no-transfer-progress -N|--non-recursive -am|--also-make
        -amd|--also-make-dependents -pl|--projects=TEXT -rf|--resume-from=TEXT -P|--activate-profiles=TEXT -T|--threads=TEXT
        -fae|--fail-at-end -ff|--fail-fast -fn|--fail-never -C|--strict-checksums --color=TEXT
        -DskipTests[=TEXT] -DskipITs[=TEXT] -Dmaven.test.skip[=TEXT] -Dtest[=TEXT] -Dit.test[=TEXT] -DfailIfNoTests[=TEXT]
        -Dsurefire.failIfNoSpecifiedTests[=TEXT] -Dstyle.color[=TEXT] -Dcheckstyle.skip[=TEXT] -Dspotless.check.skip[=TEXT]
        -l|--log-file=WRITE -f|--file=SCRIPT -s|--settings=CODE -gs|--global-settings=CODE -t|--toolchains=CODE
        -gt|--global-toolchains=CODE -D|--define=CODE -b|--builder=CODE
    """,
    operands="TEXT...",
    refine=names_only,
)
_GRADLE = Program(
    act=Act.RUNS,
    network=True,
    options="""
        -h|--help -v|--version -q|--quiet -i|--info -d|--debug -s|--stacktrace -S|--full-stacktrace -w|--warn --offline
        --no-daemon --daemon --parallel --no-parallel --continue --no-continue -x|--exclude-task=TEXT --tests=TEXT --rerun-tasks
        --rerun --build-cache --no-build-cache --configuration-cache --no-configuration-cache --scan --no-scan
        --console=TEXT --warning-mode=TEXT --refresh-dependencies --max-workers=TEXT -m|--dry-run -t|--continuous --profile
        --stop --status --configuration=TEXT --all --dependency=TEXT --type=TEXT --project-cache-dir=WRITE_TREE
        -p|--project-dir=FOLDER -b|--build-file=SCRIPT -c|--settings-file=SCRIPT -I|--init-script=CODE --include-build=CODE
        -g|--gradle-user-home=CODE -D|--system-prop=CODE -P|--project-prop=CODE
    """,
    operands="TEXT...",
    refine=names_only,
)
# The words of sbt and lein are commands in a language of their own.
_SBT = Program(
    act=Act.RUNS,
    network=True,
    options="""
        -h|--help -v|--verbose --version -d|--debug -q|--quiet --batch|-batch --client --color=TEXT
        --supershell=TEXT -no-colors
    """,
    operands="TEXT...",
    refine=names_only,
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
    """Read the words of javac; what stands behind a colon (`-Xlint:all`) never names code or a file."""
    words = (
        word if isinstance(word, Unknown | Found) else match.group() if (match := re.match(_WITH_COLON, word)) else word
        for word in argv
    )
    return read_command(_JAVAC_TABLE, tuple(words))


_JAVAC = Program(read=_read_javac)

PROGRAMS: Mapping[str, Program] = {
    **dict.fromkeys(("mvn", "mvnw", "mvnd"), _MAVEN),
    **dict.fromkeys(("gradle", "gradlew"), _GRADLE),
    **dict.fromkeys(("sbt", "ant", "lein"), _SBT),
    "javac": no_files_of_words(_JAVAC),
}
