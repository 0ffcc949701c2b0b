"""Models of the tools that check and format files of one kind: shell scripts, YAML, Dockerfiles, workflows, protocols; data.

Which of them only looks depends on their configuration: it comes with the project, and what of it is no configuration is shown.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import Act
from harness.programs.model import Parsed, Program, Style, Use
from harness.programs.tables import as_trees, either_dash, operands_written, options_first

# With -x, or where .shellcheckrc says so, the files that a script sources are read too; only -a shows anything of them.
# What is no setting in .shellcheckrc is not shown (seen with ShellCheck 0.11).
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


# Reads .editorconfig beside the scripts, and shows nothing of it.
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

# Their configuration extends other files, or what is wrong with it is shown, or they run other checkers: they read more than
# is named.
_LINTER = Program(
    act=Act.CHANGES,
    options="""
        -h|--help:info -v|--version:info --verbose --no-color --no-warnings -s|--strict --list-files -f|--format=TEXT
        --failure-threshold|-t=TEXT --ignore=TEXT --no-fail --error=TEXT --warning=TEXT -c|--config|--config-file=READ
        -d|--config-data=TEXT:gap
    """,
)
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
_BUF = Program(
    act=Act.RUNS,
    network=True,
    options="-h|--help:info --version:info",
    subcommands=dict.fromkeys(
        ("lint", "build", "generate", "format", "breaking", "dep update", "mod update"),
        Program(
            act=Act.RUNS,
            network=True,
            options="""
                -h|--help:info --path=READ --exclude-path=READ --error-format=TEXT --against=READ -d|--diff --exit-code --debug
                -w|--write:inplace -o|--output=WRITE_TREE --config=CODE --template=CODE
            """,
        ),
    ),
)

PROGRAMS: Mapping[str, Program] = {
    "shellcheck": _SHELLCHECK,
    "shfmt": options_first(_SHFMT),
    **dict.fromkeys(("yamllint", "hadolint"), _LINTER),
    "actionlint": _ACTIONLINT,
    "buf": _BUF,
}
