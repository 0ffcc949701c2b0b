"""go and gofmt.

Options have one dash or two. A boolean option may have a joined value (`-race=false`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.actions import Access, Act
from harness.programs.options import stricter
from harness.programs.program import Found, Parsed, PathUse, Program, Style, Unknown, Use
from harness.programs.shared import (
    also_writes,
    arguments_from,
    as_trees,
    either_dash,
    operands_written,
    options_first,
)
from harness.record import replace

_PLAIN_FLAGS = r"(?:(?:all=)?-(?:s|w|m|N|l|X [A-Za-z0-9_./-]+=[A-Za-z0-9_.+-]*)(?: +|\Z))*"


def _flags_of_tools(parsed: Parsed, use: Use) -> Use:
    """Accept only flags for compiler and linker that cannot name a program (as -extld does) or a file."""
    for flags in parsed.values("-ldflags", "-gcflags"):
        if isinstance(flags, Unknown | Found) or not re.fullmatch(_PLAIN_FLAGS, flags):
            return replace(use, gap=f"the flags {flags} are not in the model of go")
    return use


_BUILD = """
    h[=TEXT] C=FOLDER a[=TEXT] n[=TEXT] v[=TEXT] x[=TEXT] work[=TEXT] race[=TEXT] msan[=TEXT] asan[=TEXT] p=TEXT tags=TEXT
    trimpath[=TEXT] mod=TEXT modcacherw[=TEXT] buildmode=TEXT buildvcs[=TEXT] json[=TEXT] cover[=TEXT] covermode=TEXT
    coverpkg=TEXT installsuffix=TEXT pgo=READ ldflags=TEXT gcflags=TEXT modfile=EITHER asmflags=CODE gccgoflags=CODE
    compiler=CODE toolexec=CODE overlay=CODE pkgdir=CODE
"""
_TEST = """
    run=TEXT bench=TEXT benchmem[=TEXT] benchtime=TEXT count=TEXT timeout=TEXT short[=TEXT] failfast[=TEXT] parallel=TEXT
    cpu=TEXT list=TEXT skip=TEXT shuffle=TEXT vet=TEXT fuzz=TEXT fuzztime=TEXT c[=TEXT] fullpath[=TEXT] coverprofile=WRITE
    cpuprofile=WRITE memprofile=WRITE blockprofile=WRITE mutexprofile=WRITE trace=WRITE outputdir=WRITE_TREE o=WRITE exec=CODE
"""


def _go(options: str = "", *, act: Act = Act.RUNS, operands: str = "READ...") -> Program:
    """Return the model of a subcommand that loads packages. It may fetch modules, and run programs (cgo, git)."""
    return Program(
        act=act,
        style=Style.SINGLE,
        network=True,
        options=either_dash(f"{_BUILD} {options}"),
        operands=operands,
        refine=_flags_of_tools,
    )


def _go_list(_parsed: Parsed, use: Use) -> Use:
    """Add the source files and the git repository. The listing of a package includes the state of its repository."""
    below = PathUse(word=".", access=Access.READ, tree=True, follows=True, only=_SOURCES)
    above = (PathUse(word=name, access=Access.READ, upwards=True) for name in ("go.mod", "go.work"))
    return replace(use, paths=(*use.paths, below, *above), git_folder=".")


_SOURCES = ("*.go", "go.mod", "go.sum", "go.work", "go.work.sum", "modules.txt")


def _go_looks(options: str) -> Program:
    """Return the model of a subcommand that shows facts about packages. Without a network it neither builds nor
    fetches packages.

    It also runs version control systems other than git. hg runs programs that a repository's .hg/hgrc names.
    """
    return Program(
        style=Style.SINGLE,
        options=either_dash(options),
        obeys=".hg .bzr .fslckout _FOSSIL_ .svn",
        refine=_go_list,
    )


def _go_env(parsed: Parsed, use: Use) -> Use:
    """Refine `go env`. -w sets defaults of every later go command. Without names it starts compilers, to query them."""
    sets = parsed.has("-w", "-u") or not parsed.operands
    return replace(use, act=stricter(use.act, Act.CHANGES)) if sets else use


_writes_modules = also_writes("go.mod", "go.sum")


def _writes_named_modules(parsed: Parsed, use: Use) -> Use:
    return _writes_modules(parsed, use) if parsed.operands else use


_GO_CHANGES_MODULES = replace(
    _go(
        "u[=TEXT] t[=TEXT] d[=TEXT] compat=TEXT go=TEXT e[=TEXT] r[=TEXT] sync[=TEXT]",
        act=Act.CHANGES,
        operands="TEXT...",
    ),
    refine=_writes_modules,
)
# `go mod download` adds sums only for modules in its words (golang/go issue 45551, since Go 1.18), and `verify` none.
_GO_FETCHES_MODULES = replace(_GO_CHANGES_MODULES, refine=_writes_named_modules)
# A line in go.mod may require a newer toolchain. Any go command then fetches it (verified by its checksum) and runs it,
# if the network is open and GOTOOLCHAIN is not `local`. Otherwise `go version` and `go env` only look.
_GO = Program(
    style=Style.SINGLE,
    options="-C=FOLDER",
    subcommands={
        "version": Program(style=Style.SINGLE, options="-m -v", operands="TREE..."),
        "env": Program(style=Style.SINGLE, options=either_dash("json changed w u"), operands="TEXT...", refine=_go_env),
        "help": Program(style=Style.SINGLE, operands="TEXT..."),
        "build": _go("o=WRITE"),
        "install": _go(),
        "vet": _go("c=TEXT vettool=CODE fix[=TEXT]"),
        "test": _go(_TEST),
        "run": replace(_go("exec=CODE", operands="SCRIPT TEXT..."), refine=arguments_from(1)),
        "generate": _go("run=TEXT skip=TEXT"),
        "list": _go_looks("m f=TEXT e deps test find json[=TEXT] tags=TEXT mod=TEXT"),
        "doc": _go_looks("all src u short cmd c"),
        "fmt": _go(act=Act.CHANGES, operands="EITHER..."),
        "fix": _go(act=Act.CHANGES, operands="EITHER..."),
        "clean": _go("cache[=TEXT] testcache[=TEXT] modcache[=TEXT] i[=TEXT] r[=TEXT]", act=Act.CHANGES),
        **dict.fromkeys(
            (
                "get",
                *(f"mod {verb}" for verb in "tidy vendor init graph why".split()),
                "work sync",
                "work use",
            ),
            _GO_CHANGES_MODULES,
        ),
        **dict.fromkeys(("mod download", "mod verify"), _GO_FETCHES_MODULES),
        "tool cover": _go("func=READ html=READ mode=TEXT o=WRITE", operands=""),
    },
)


def _gofmt(parsed: Parsed, use: Use) -> Use:
    use = operands_written(parsed, use) if parsed.has("-w") else use
    return as_trees(parsed, use, ("*.go",))


_GOFMT = Program(
    style=Style.SINGLE,
    options=either_dash("l[=TEXT] d[=TEXT] e[=TEXT] s[=TEXT] w[=TEXT] r=TEXT cpuprofile=WRITE h:info help:info"),
    refine=_gofmt,
)

PROGRAMS: Mapping[str, Program] = {
    "go": _GO,
    "gofmt": options_first(_GOFMT),
}
