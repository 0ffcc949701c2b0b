"""Builds, tests and packages of Java, Kotlin, Scala, Clojure, Ruby, PHP, Elixir, .NET, Swift and Dart.

Each runs code of the project: build files and plugins are code, and run whatever is asked for. So does `mvn --version`, where
there is a `.mvn` (jvm.config: `-javaagent:`). gradlew and mvnw are themselves files of the project; javac runs the annotation
processors that the class path names, and that is the folder at hand; `dotnet --version` runs the SDK that global.json names,
since .NET 10 from any folder (`sdk.paths`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from harness.actions import Act
from harness.programs.options import read_command
from harness.programs.program import Found, Program, Style, Unknown, Use
from harness.programs.shared import (
    ANYTHING_ELSE,
    all_of,
    also_writes,
    arguments_from,
    names_only,
    no_files_of_words,
    one_of,
    runs,
    written_by,
)
from harness.record import replace

# --- Java, Kotlin, Scala, Clojure

_MAVEN = runs(
    """
        -h|--help -v|--version:info -V|--show-version -q|--quiet -B|--batch-mode -e|--errors -X|--debug -o|--offline
        -U|--update-snapshots -nsu|--no-snapshot-updates -ntp|--no-transfer-progress -N|--non-recursive -am|--also-make
        -amd|--also-make-dependents -pl|--projects=TEXT -rf|--resume-from=TEXT -P|--activate-profiles=TEXT -T|--threads=TEXT
        -fae|--fail-at-end -ff|--fail-fast -fn|--fail-never -C|--strict-checksums --color=TEXT
        -DskipTests[=TEXT] -DskipITs[=TEXT] -Dmaven.test.skip[=TEXT] -Dtest[=TEXT] -Dit.test[=TEXT] -DfailIfNoTests[=TEXT]
        -Dsurefire.failIfNoSpecifiedTests[=TEXT] -Dstyle.color[=TEXT] -Dcheckstyle.skip[=TEXT] -Dspotless.check.skip[=TEXT]
        -l|--log-file=WRITE -f|--file=SCRIPT -s|--settings=CODE -gs|--global-settings=CODE -t|--toolchains=CODE
        -gt|--global-toolchains=CODE -D|--define=CODE -b|--builder=CODE
    """,
    style=Style.SINGLE,
    operands="TEXT...",
    refine=names_only,
)
_GRADLE = runs(
    """
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
_SBT = runs(
    """
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


# --- Ruby

_BUNDLE_OPTIONS = """
    -h|--help -v|--version --quiet --verbose --jobs|-j=TEXT --retry=TEXT --local --full-index --without=TEXT --with=TEXT
    --deployment --frozen --no-cache --all --group=TEXT|-g --conservative --strict --parseable --paths --path=WRITE_TREE
    --gemfile=CODE --source=CODE
""".replace("--group=TEXT|-g", "--group|-g=TEXT")
_BUNDLE = runs(
    _BUNDLE_OPTIONS,
    subcommands={
        "exec": runs("--keep-file-descriptors", style=Style.POSIX, operands="COMMAND..."),
        **dict.fromkeys(
            ("", "install", "update", "add", "remove", "lock"),
            runs(_BUNDLE_OPTIONS, operands="TEXT...", refine=also_writes("Gemfile.lock")),
        ),
        **dict.fromkeys(
            "check list show info outdated config clean init open binstubs".split(),
            runs(_BUNDLE_OPTIONS, operands="TEXT..."),
        ),
    },
)
_GEM = Program(
    options="-v|--version:info -h|--help:info",
    subcommands={
        **dict.fromkeys(
            "install uninstall update build push list search info outdated env cleanup fetch".split(),
            runs(
                """
                    -h|--help -q|--quiet -V|--verbose -v|--version=TEXT -N|--no-document --user-install -f|--force -a|--all
                    -l|--local -r|--remote -x|--executables -I --conservative -i|--install-dir=WRITE_TREE -s|--source=CODE
                    --config-file=CODE
                """,
                operands="TEXT EITHER...",
            ),
        )
    },
)
_RAKE = runs(
    """
        -h|--help -V|--version -T|--tasks[=TEXT] -A|--all -D|--describe[=TEXT] -P|--prereqs -n|--dry-run -q|--quiet -s|--silent
        -t|--trace[=TEXT] -v|--verbose[=TEXT] -j|--jobs[=TEXT] -m|--multitask -f|--rakefile=SCRIPT -e|--execute=CODE
        -E|--execute-continue=CODE -p|--execute-print=CODE -r|--require=CODE -I|--libdir=CODE -R|--rakelibdir=CODE
    """,
    operands="TEXT...",
    refine=names_only,
)
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

# --- PHP, Elixir

_COMPOSER_OPTIONS = """
    -h|--help -q|--quiet -v|--verbose -vv -vvv -V|--version --ansi --no-ansi -n|--no-interaction --no-plugins --no-scripts
    --no-cache --dev --no-dev --dry-run --prefer-dist --prefer-source -o|--optimize-autoloader -W|--with-all-dependencies
    -w|--with-dependencies --no-update --no-progress -l|--latest --outdated -D|--direct -t|--tree -i|--installed
    --ignore-platform-reqs -d|--working-dir=FOLDER --timeout=TEXT
"""
_COMPOSER_RUN = runs(_COMPOSER_OPTIONS, operands="TEXT...", refine=arguments_from(1))
_COMPOSER = runs(
    _COMPOSER_OPTIONS,
    subcommands={
        "": ANYTHING_ELSE,
        **dict.fromkeys(("run", "run-script", "exec", "test", "create-project"), _COMPOSER_RUN),
        **dict.fromkeys(
            ("install", "update", "require", "remove"),
            replace(_COMPOSER_RUN, refine=also_writes("composer.json", "composer.lock")),
        ),
        **dict.fromkeys(
            "show info outdated validate dump-autoload dumpautoload audit why why-not check-platform-reqs diagnose".split(),
            replace(_COMPOSER_RUN, refine=None),
        ),
    },
)
_PHPUNIT = runs("""
        -h|--help --version --filter=TEXT --group=TEXT --exclude-group=TEXT --testsuite=TEXT --stop-on-failure --stop-on-error
        --testdox --colors[=TEXT] --debug -v|--verbose --no-coverage --coverage-text --list-tests --order-by=TEXT
        --coverage-html=WRITE_TREE --coverage-clover=WRITE --log-junit=WRITE -c|--configuration=CODE --bootstrap=CODE
        --extension=CODE --include-path=CODE -d=CODE --printer=CODE
    """)
_MIX = runs(
    """
        -h|--help -v|--version --trace --stale --failed --cover --only=TEXT --exclude=TEXT --include=TEXT --seed=TEXT
        --max-failures=TEXT --warnings-as-errors --force --check-formatted --dry-run --strict --all --slowest=TEXT
        -r|--require=CODE -e|--eval=CODE
    """,
    operands="TEXT...",
    refine=arguments_from(1),
)

# --- .NET, Swift, Dart

_DOTNET = runs(
    "--version --info -h|--help --list-sdks:info --list-runtimes:info",
    subcommands={
        "": ANYTHING_ELSE,
        **dict.fromkeys(
            "build test run restore publish pack clean format new add remove list tool sln watch nuget workload ef".split(),
            runs(
                """
                    -h|--help -c|--configuration=TEXT -f|--framework=TEXT -r|--runtime=TEXT -v|--verbosity=TEXT --no-restore
                    --no-build --no-incremental --nologo --self-contained --filter=TEXT -t|--list-tests --blame
                    --verify-no-changes --include=TEXT --exclude=TEXT --version=TEXT --prerelease
                    --project=SCRIPT -n|--name=TEXT
                    --outdated --vulnerable -g|--global --collect=TEXT -o|--output=WRITE_TREE --results-directory=WRITE_TREE
                    -p|--property=CODE -s|--source|--settings=CODE --logger=CODE --configfile=CODE -a|--test-adapter-path=CODE
                """,
                operands="EITHER...",
            ),
        ),
    },
)
_MSBUILD = runs("-version -help -nologo -m -restore", operands="SCRIPT", style=Style.SINGLE)
_SWIFT = runs(
    subcommands=dict.fromkeys(
        ("build", "test", "run", "package resolve", "package update", "package describe", "package clean"),
        runs(
            """
                -h|--help -v|--verbose -q|--quiet -c|--configuration=TEXT --filter=TEXT --skip=TEXT --parallel
                --product=TEXT --target=TEXT --package-path=FOLDER --scratch-path|--build-path=WRITE_TREE
            """,
            operands="TEXT...",
            refine=arguments_from(0),
        ),
    )
)
_XCODEBUILD = runs(
    """
        -version -list -showsdks -quiet -project=SCRIPT -workspace=SCRIPT -scheme=TEXT -target=TEXT
        -configuration=TEXT -sdk=TEXT -destination=TEXT -derivedDataPath=WRITE_TREE -resultBundlePath=WRITE_TREE
        -json
    """,
    style=Style.SINGLE,
    operands="TEXT...",
    refine=names_only,
)
_DART_OPTIONS = """
    -h|--help -v|--verbose --offline --dry-run --fatal-infos --fatal-warnings --no-fatal-infos --release --debug --profile
    --no-pub --name|-n=TEXT --plain-name|-N=TEXT --coverage --concurrency|-j=TEXT --reporter=TEXT|-r -d|--device-id=TEXT
    --set-exit-if-changed -o|--output=TEXT -l|--line-length=TEXT -t|--tags=TEXT -x|--exclude-tags=TEXT
    --dart-define=CODE --packages=CODE --local-engine=CODE
""".replace("--reporter=TEXT|-r", "--reporter|-r=TEXT")
_DART = runs(
    "--version --disable-analytics -h|--help",
    subcommands=dict.fromkeys(
        (
            *("pub get", "pub add", "pub upgrade", "pub outdated", "pub run", "pub global", "pub deps"),
            *"test analyze format fix run compile create build clean doctor devices gen-l10n config".split(),
        ),
        runs(_DART_OPTIONS, operands="EITHER..."),
    ),
)


PROGRAMS: Mapping[str, Program] = {
    "mvn": replace(_MAVEN, obeys=".mvn"),
    **dict.fromkeys(("mvnw", "mvnd"), replace(_MAVEN, options=_MAVEN.options.replace("--version:info", "--version"))),
    **dict.fromkeys(("gradle", "gradlew"), _GRADLE),
    **dict.fromkeys(("sbt", "ant", "lein"), _SBT),
    "javac": no_files_of_words(_JAVAC),
    **dict.fromkeys(("bundle", "bundler"), _BUNDLE),
    "gem": _GEM,
    "rake": _RAKE,
    "rspec": _RSPEC,
    "rubocop": _RUBOCOP,
    "composer": _COMPOSER,
    "phpunit": _PHPUNIT,
    "mix": _MIX,
    "dotnet": _DOTNET,
    "msbuild": _MSBUILD,
    "swift": _SWIFT,
    "xcodebuild": _XCODEBUILD,
    **dict.fromkeys(("dart", "flutter"), _DART),
}
