"""Programs that build by rules of a project (make, cmake, meson), and tools that check files of one kind.

Other builders are rows of asked.py.

Reading the rules may run code (`$(shell ...)`, also with `make -n`), so no builder is classed as `LOOKS`. The effects
of a checker depend on its configuration, which comes with the project. A checker prints parts of a configuration file
that it cannot parse.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import Act
from harness.programs.program import Parsed, Program, Style, Use
from harness.programs.rows import Rows
from harness.programs.shared import (
    as_trees,
    definitions,
    either_dash,
    names_only,
    operands_written,
    options_first,
)
from harness.record import replace

# --- Builders


def _make(parsed: Parsed, use: Use) -> Use:
    """Accept plain targets only. Make may run the value of `SHELL=x` or any variable; `-f -` reads rules from stdin."""
    if any(name in ("-", "/dev/stdin") for name in parsed.values("-f")):
        return replace(use, gap="it runs what its input says")
    return names_only(parsed, use)


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


# --- Checkers of files


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


def _hadolint(_parsed: Parsed, use: Use) -> Use:
    return replace(use, obeys=(".hadolint.yaml", ".hadolint.yml"))


_ROWS = Rows(
    r"""
# The configuration of these linters can include other files, or its errors are printed. So a linter with a configuration reads
# more than its operands.
linter-options = -h|--help:info -v|--version:info --verbose --no-color --no-warnings -s|--strict --list-files
    -f|--format=TEXT --failure-threshold|-t=TEXT --ignore=TEXT --no-fail --error=TEXT --warning=TEXT
    -c|--config|--config-file=READ:changes -d|--config-data=TEXT:gap
make/gmake : runs net make : TEXT... : -v|--version:info -h|--help:info -B|--always-make -d --debug[=TEXT]
    -e|--environment-overrides -i|--ignore-errors -j|--jobs[=TEXT] -k|--keep-going -l|--load-average|--max-load[=TEXT]
    -L|--check-symlink-times -n|--just-print|--dry-run|--recon -o|--old-file|--assume-old=TEXT -O|--output-sync[=TEXT]
    -p|--print-data-base -q|--question -r|--no-builtin-rules -R|--no-builtin-variables -s|--silent|--quiet --no-silent
    -S|--no-keep-going|--stop -t|--touch --trace -w|--print-directory --no-print-directory
    -W|--what-if|--new-file|--assume-new=TEXT --warn-undefined-variables --shuffle[=TEXT] -C|--directory=FOLDER
    -f|--file|--makefile=SCRIPT -I|--include-dir=CODE -E|--eval=CODE
cmake : runs net cmake : READ... : --version:info --help|-h:info -S=READ -B=WRITE_TREE --build=WRITE_TREE
    --install=WRITE_TREE --prefix=WRITE_TREE --install-prefix=WRITE_TREE -G=TEXT -A=TEXT -U=TEXT -D=TEXT --preset=TEXT
    --list-presets[=TEXT] --fresh -N -L -LA -LH -LAH -Wdev -Wno-dev -Wdeprecated -Wno-deprecated --log-level|--loglevel=TEXT
    --log-context --trace --trace-expand --warn-uninitialized --no-warn-unused-cli --debug-output --debug-find
    -t|--target=TEXT --config=TEXT --component=TEXT --clean-first -j|--parallel[=TEXT] -v|--verbose --strip --graphviz=WRITE
    -P=SCRIPT -C=CODE -T=CODE --toolchain=CODE -E:gap --open=READ:gap
meson : looks : READ... : --version:info --help|-h:info
meson setup : runs net meson : WRITE_TREE READ : -h|--help --buildtype=TEXT --prefix=WRITE_TREE --reconfigure --wipe
    --default-library=TEXT --warnlevel=TEXT --werror -D=TEXT --backend=TEXT --wrap-mode=TEXT --native-file=CODE
    --cross-file=CODE
meson compile, test, install, introspect, dist : runs net : TEXT... : -h|--help -v|--verbose -q|--quiet -j|--jobs=TEXT
    --clean -C=WRITE_TREE --suite=TEXT --no-suite=TEXT --list --no-rebuild --print-errorlogs -t|--timeout-multiplier=TEXT
    --num-processes=TEXT --repeat=TEXT --destdir=WRITE_TREE --targets --tests --buildoptions --wrap|--wrapper=CODE --gdb:gap
    --ninja-args=CODE --test-args=CODE
meson configure : runs net meson : WRITE_TREE : -h|--help --buildtype=TEXT --prefix=WRITE_TREE --reconfigure --wipe
    --default-library=TEXT --warnlevel=TEXT --werror -D=TEXT --backend=TEXT --wrap-mode=TEXT --native-file=CODE
    --cross-file=CODE
# With -x, or a setting in .shellcheckrc, ShellCheck also reads the files that a script sources. Only -a prints parts of them.
# It does not print invalid lines of .shellcheckrc (tested with ShellCheck 0.11).
shellcheck : looks : READ... : -V|--version:info --help:info --list-optional:info -x|--external-sources -C|--color[=TEXT]
    -e|--exclude=TEXT -i|--include=TEXT -f|--format=TEXT --norc -o|--enable=TEXT -P|--source-path=TEXT -s|--shell=TEXT
    -S|--severity=TEXT -W|--wiki-link-count=TEXT --extended-analysis=TEXT --rcfile=READ -a|--check-sourced:gap
hadolint : looks hadolint : READ... : linter-options
yamllint : looks yamllint : READ... : linter-options
""",
    {
        "make": _make,
        "cmake": _cmake,
        "meson": definitions(
            "-D", "buildtype prefix default_library warning_level optimization b_sanitize b_coverage c_std cpp_std"
        ),
        "hadolint": _hadolint,
        "yamllint": _yamllint,
    },
)

PROGRAMS: Mapping[str, Program] = {**_ROWS, "shfmt": options_first(_SHFMT), "actionlint": _ACTIONLINT}
