"""Programs that build by rules of a project (make, cmake, ninja, just, bazel), and tools that check files of one
kind.

Reading the rules may run code (`$(shell ...)`, also with `make -n`), so no builder is classed as `LOOKS`. The effects
of a checker depend on its configuration, which comes with the project. A checker prints parts of a configuration file
that it cannot parse.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import Act
from harness.programs.program import Parsed, Program, Style, Use
from harness.programs.shared import (
    ANYTHING_ELSE,
    all_of,
    arguments_from,
    as_trees,
    definitions,
    either_dash,
    names_only,
    operands_written,
    options_first,
    runs,
)
from harness.record import replace

# --- Builders


def _make(parsed: Parsed, use: Use) -> Use:
    """Accept plain targets only. Make may run the value of `SHELL=x` or any variable; `-f -` reads rules from stdin."""
    if any(name in ("-", "/dev/stdin") for name in parsed.values("-f")):
        return replace(use, gap="it runs what its input says")
    return names_only(parsed, use)


_MAKE = runs(
    """
        -v|--version:info -h|--help:info -B|--always-make -d --debug[=TEXT] -e|--environment-overrides -i|--ignore-errors
        -j|--jobs[=TEXT] -k|--keep-going -l|--load-average|--max-load[=TEXT] -L|--check-symlink-times
        -n|--just-print|--dry-run|--recon -o|--old-file|--assume-old=TEXT -O|--output-sync[=TEXT] -p|--print-data-base
        -q|--question -r|--no-builtin-rules -R|--no-builtin-variables -s|--silent|--quiet --no-silent
        -S|--no-keep-going|--stop -t|--touch --trace -w|--print-directory --no-print-directory
        -W|--what-if|--new-file|--assume-new=TEXT --warn-undefined-variables --shuffle[=TEXT]
        -C|--directory=FOLDER -f|--file|--makefile=SCRIPT -I|--include-dir=CODE -E|--eval=CODE
    """,
    operands="TEXT...",
    refine=_make,
)

# --- cmake

_CMAKE_DEFINITIONS = definitions(
    "-D",
    "CMAKE_BUILD_TYPE CMAKE_CXX_STANDARD CMAKE_C_STANDARD CMAKE_INSTALL_PREFIX CMAKE_CONFIGURATION_TYPES "
    "CMAKE_OSX_ARCHITECTURES CMAKE_OSX_DEPLOYMENT_TARGET CMAKE_CUDA_ARCHITECTURES",
)


def _cmake(parsed: Parsed, use: Use) -> Use:
    """Refine `cmake --build DIR -- WORDS`. The words go to make or ninja, whose options can run code.

    Only numbers are accepted, as values of -j.
    """
    if parsed.has("--build", "--install") and not all(word.isdigit() for word in parsed.operands):
        return replace(use, gap="words for the build tool")
    return _CMAKE_DEFINITIONS(parsed, use)


_CMAKE = runs(
    """
        --version:info --help|-h:info -S=READ -B=WRITE_TREE --build=WRITE_TREE --install=WRITE_TREE --prefix=WRITE_TREE
        --install-prefix=WRITE_TREE -G=TEXT -A=TEXT -U=TEXT -D=TEXT --preset=TEXT --list-presets[=TEXT]
        --fresh -N -L -LA -LH -LAH
        -Wdev -Wno-dev -Wdeprecated -Wno-deprecated --log-level|--loglevel=TEXT --log-context
        --trace --trace-expand --warn-uninitialized --no-warn-unused-cli --debug-output --debug-find
        -t|--target=TEXT --config=TEXT --component=TEXT --clean-first -j|--parallel[=TEXT] -v|--verbose --strip
        --graphviz=WRITE -P=SCRIPT -C=CODE -T=CODE --toolchain=CODE -E:gap --open=READ:gap
    """,
    refine=_cmake,
)
_CTEST = runs(
    """
        --version:info --help|-h:info -V|--verbose -VV|--extra-verbose -Q|--quiet --progress --debug --output-on-failure
        --stop-on-failure -N|--show-only[=TEXT] -R|--tests-regex=TEXT -E|--exclude-regex=TEXT -L|--label-regex=TEXT
        -LE|--label-exclude=TEXT -FA=TEXT -FS=TEXT -FC=TEXT -j|--parallel[=TEXT] -C|--build-config=TEXT --timeout=TEXT
        --rerun-failed --repeat=TEXT --preset=TEXT --no-label-summary --no-tests=TEXT --test-dir=READ --schedule-random
        -O|--output-log=WRITE --output-junit=WRITE -D=CODE -S=CODE -SP=CODE -T=CODE -M=CODE
    """,
    operands="TEXT...",
    refine=names_only,
)
_NINJA = runs(
    """
        --version:info -h|--help:info -v|--verbose --quiet -n -k=TEXT -j=TEXT -l=TEXT -d=TEXT -w=TEXT -C=FOLDER
        -f=SCRIPT -t=CODE
    """,
    operands="TEXT...",
    refine=names_only,
)

# --- meson

_MESON_SETUP = runs(
    """
        -h|--help --buildtype=TEXT --prefix=WRITE_TREE --reconfigure --wipe --default-library=TEXT --warnlevel=TEXT --werror
        -D=TEXT --backend=TEXT --wrap-mode=TEXT --native-file=CODE --cross-file=CODE
    """,
    operands="WRITE_TREE READ",
    refine=definitions(
        "-D", "buildtype prefix default_library warning_level optimization b_sanitize b_coverage c_std cpp_std"
    ),
)
_MESON_BUILD = runs(
    """
        -h|--help -v|--verbose -q|--quiet -j|--jobs=TEXT --clean -C=WRITE_TREE --suite=TEXT --no-suite=TEXT --list --no-rebuild
        --print-errorlogs -t|--timeout-multiplier=TEXT --num-processes=TEXT --repeat=TEXT --destdir=WRITE_TREE --targets --tests
        --buildoptions --wrap|--wrapper=CODE --gdb:gap --ninja-args=CODE --test-args=CODE
    """,
    operands="TEXT...",
)
_MESON = Program(
    options="--version:info --help|-h:info",
    subcommands={
        "setup": _MESON_SETUP,
        **dict.fromkeys(("compile", "test", "install", "introspect", "dist"), _MESON_BUILD),
        "configure": replace(_MESON_SETUP, operands="WRITE_TREE"),
    },
)

# --- just, task, bazel

_RECIPES = all_of(names_only, arguments_from(1))
_JUST = runs(
    """
        -V|--version:info -h|--help:info -l|--list --summary -n|--dry-run -v|--verbose -q|--quiet -s|--show=TEXT --evaluate
        --variables --dump -y|--yes --color=TEXT --unsorted -u --no-deps --timestamp -d|--working-directory=READ
        -f|--justfile=SCRIPT --fmt:changes --unstable --shell=CODE --shell-arg=CODE --command|-c=CODE
        --dotenv-path|-E=CODE --dotenv-filename=CODE --chooser=CODE
    """,
    operands="TEXT...",
    refine=_RECIPES,
)
_TASK = runs(
    """
        --version:info -h|--help:info -l|--list -a|--list-all -s|--silent -v|--verbose -n|--dry -f|--force -p|--parallel
        -C|--concurrency=TEXT -w|--watch --summary --status -x|--exit-code -o|--output=TEXT -j|--json --sort=TEXT
        -d|--dir=READ -t|--taskfile=SCRIPT
    """,
    operands="TEXT...",
    refine=_RECIPES,
)
# The launcher runs tools/bazel of the workspace, and bazelisk the program that .bazeliskrc names, even for
# `bazel --version`.
_BAZEL_BUILD = runs(
    """
        -c|--compilation_mode=TEXT --config=TEXT -k|--keep_going --nokeep_going -j|--jobs=TEXT --test_output=TEXT
        --test_filter=TEXT --test_tag_filters=TEXT --cache_test_results=TEXT --nocache_test_results -t --verbose_failures
        --runs_per_test=TEXT --flaky_test_attempts=TEXT -s|--subcommands --output=TEXT --show_progress --noshow_progress
        --color=TEXT --curses=TEXT --keep_state_after_build --expunge --build_tests_only --nobuild
    """,
    operands="TEXT...",
    refine=arguments_from(1),
)
_BAZEL = runs(
    "--version -h|--help",
    subcommands={
        "": ANYTHING_ELSE,
        **dict.fromkeys(
            "build test run query cquery aquery coverage info clean version fetch mod".split(), _BAZEL_BUILD
        ),
    },
)


# --- Checkers of files

# With -x, or a setting in .shellcheckrc, ShellCheck also reads the files that a script sources. Only -a prints parts of
# them. It does not print invalid lines of .shellcheckrc (tested with ShellCheck 0.11).
_SHELLCHECK = Program(
    options="""
        -V|--version:info --help:info --list-optional:info -x|--external-sources -C|--color[=TEXT] -e|--exclude=TEXT
        -i|--include=TEXT -f|--format=TEXT --norc -o|--enable=TEXT -P|--source-path=TEXT -s|--shell=TEXT -S|--severity=TEXT
        -W|--wiki-link-count=TEXT --extended-analysis=TEXT --rcfile=READ -a|--check-sourced:gap
    """
)


def _shfmt(parsed: Parsed, use: Use) -> Use:
    use = operands_written(parsed, use) if parsed.has("-w") else use
    return as_trees(parsed, use)


# shfmt reads the .editorconfig beside the scripts, and prints no part of it.
_SHFMT = Program(
    style=Style.SINGLE,
    options=f"""
        {either_dash("version:info help:info h:info apply-ignore filename=TEXT tojson to-json detect=TEXT")}
        -l|--list|-list[=TEXT] -d|--diff|-diff -w|--write|-write -s|--simplify|-simplify -mn|--minify -i|--indent=TEXT
        -bn|--binary-next-line -ci|--case-indent -sr|--space-redirects -kp|--keep-padding -fn|--func-next-line
        -ln|--language-dialect=TEXT -p|--posix -f|--find[=TEXT]
    """,
    refine=_shfmt,
)

# The configuration of these linters can include other files, or its errors are printed. So a linter with a
# configuration reads more than its operands.
_LINTER = Program(
    options="""
        -h|--help:info -v|--version:info --verbose --no-color --no-warnings -s|--strict --list-files -f|--format=TEXT
        --failure-threshold|-t=TEXT --ignore=TEXT --no-fail --error=TEXT --warning=TEXT -c|--config|--config-file=READ:changes
        -d|--config-data=TEXT:gap
    """,
    refine=lambda _parsed, use: replace(use, obeys=(".hadolint.yaml", ".hadolint.yml")),
)


def _yamllint(parsed: Parsed, use: Use) -> Use:
    use = as_trees(parsed, use, ("*.yaml", "*.yml"))
    return replace(use, obeys=(".yamllint", ".yamllint.yaml", ".yamllint.yml"))


# actionlint reads a configuration in the same way, and runs other checkers.
_ACTIONLINT = Program(
    act=Act.CHANGES,
    style=Style.SINGLE,
    options=either_dash(
        """
        h:info help:info version:info color no-color oneline verbose ignore=TEXT format=TEXT config-file=READ shellcheck=CODE
        pyflakes=CODE
        """
    ),
)
# buf generate and lint run the plugins that buf.yaml and buf.gen.yaml name.
_BUF = runs(
    "-h|--help:info --version:info",
    subcommands=dict.fromkeys(
        ("lint", "build", "generate", "format", "breaking", "dep update", "mod update"),
        runs("""
                -h|--help:info --path=READ --exclude-path=READ --error-format=TEXT --against=READ -d|--diff --exit-code --debug
                -w|--write:inplace -o|--output=WRITE_TREE --config=CODE --template=CODE
            """),
    ),
)


PROGRAMS: Mapping[str, Program] = {
    **dict.fromkeys(("make", "gmake"), _MAKE),
    "cmake": _CMAKE,
    "ctest": _CTEST,
    "ninja": _NINJA,
    "meson": _MESON,
    "just": _JUST,
    "task": _TASK,
    **dict.fromkeys(("bazel", "bazelisk"), _BAZEL),
    "shellcheck": _SHELLCHECK,
    "shfmt": options_first(_SHFMT),
    "hadolint": _LINTER,
    "yamllint": replace(_LINTER, refine=_yamllint),
    "actionlint": _ACTIONLINT,
    "buf": _BUF,
}
