"""cargo, and the tools around it.

If rustup installed them, they are proxies that run the toolchain named in `rust-toolchain.toml`. The line `path =
"/proc/self/cwd/x"` there makes `cargo --version` run x/bin/cargo (tested with rustup 1.29). `.cargo/config.toml` names
aliases, compilers and wrappers; `cargo tree` starts the compilers and wrappers to get their version. Without any of
these files, commands that show the version or the packages only look. All others build, which runs code (build.rs,
macros).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.actions import Access, Act
from harness.programs.program import Parsed, PathUse, Program, Refine, Use
from harness.programs.shared import (
    ANYTHING_ELSE,
    all_of,
    also_writes,
    arguments_from,
    no_files_of_words,
    operands_written,
    runs,
)
from harness.record import replace


def _no_toolchain(parsed: Parsed, use: Use) -> Use:
    """Return a gap for `+NAME`, which selects another toolchain to run."""
    return replace(use, gap="a toolchain") if any(word.startswith("+") for word in parsed.operands) else use


def _words_behind(pattern: str) -> Refine:
    """Return a refinement with a gap for operands that do not match.

    After `--` they are options of rustc or rustfmt.
    """

    def refine(parsed: Parsed, use: Use) -> Use:
        strange = next(
            (word for word in parsed.operands if type(word) is not str or not re.fullmatch(pattern, word)), None
        )
        return use if strange is None else replace(use, gap=f"{strange} is not in its model")

    return refine


def _cargo_fmt(parsed: Parsed, use: Use) -> Use:
    """Refine `cargo fmt`. It writes every source file of the package, unless --check occurs before or after `--`."""
    if parsed.has("--check") or "--check" in parsed.operands:
        return use
    return replace(use, paths=(*use.paths, PathUse(word=".", access=Access.EITHER, tree=True, only=("*.rs",))))


_STEERED = "rust-toolchain rust-toolchain.toml .cargo/config .cargo/config.toml"


def _manifests(_parsed: Parsed, use: Use) -> Use:
    """Add the manifests of the package, its workspace and its members."""
    below = PathUse(word=".", access=Access.READ, tree=True, follows=True, only=("Cargo.toml", "Cargo.lock"))
    above = (PathUse(word=name, access=Access.READ, upwards=True) for name in below.only)
    return replace(use, paths=(*use.paths, below, *above))


_LOOKING = Program(
    options="""
        -v|--verbose -q|--quiet --color=TEXT --locked --offline --frozen -p|--package=TEXT --workspace --exclude=TEXT
        -F|--features=TEXT --all-features --no-default-features --target=TEXT -e|--edges=TEXT -i|--invert[=TEXT]
        -d|--duplicates --depth=TEXT --prefix=TEXT --no-dedupe --charset=TEXT -f|--format=TEXT --no-deps
        --format-version=TEXT --filter-platform=TEXT --prune=TEXT --manifest-path=READ
    """,
    operands="TEXT...",
    obeys=_STEERED,
    refine=_manifests,
)
_COMMON = """
    -h|--help -V|--version -v|--verbose -q|--quiet --color=TEXT --locked --offline --frozen --manifest-path=READ --config=CODE
    -Z=CODE -C=CODE
"""
_BUILD = f"""
    {_COMMON} -p|--package=TEXT --workspace --all --exclude=TEXT --lib --bins --bin=TEXT --examples --example=TEXT --tests
    --test=TEXT --benches --bench=TEXT --all-targets -F|--features=TEXT --all-features --no-default-features -j|--jobs=TEXT
    --keep-going -r|--release --profile=TEXT --target=TEXT --target-dir=WRITE_TREE --message-format=TEXT --timings
    --future-incompat-report --ignore-rust-version
"""


def _cargo(options: str = "", *, operands: str = "", refine: Refine | None = None) -> Program:
    """Return the model of a subcommand that builds."""
    return runs(f"{_BUILD} {options}", operands=operands, refine=refine)


_CLIPPY = _cargo(
    "--no-deps --fix --allow-dirty --allow-staged --allow-no-vcs",
    operands="TEXT...",
    refine=_words_behind(
        r"-[AWDF]|--(?:allow|warn|deny|forbid)|-?[AWDF]?[a-z_:]+|--(?:deny|warn|allow|forbid)=[a-z_:]+"
    ),
)
_PACKAGES = """
    --path=READ --git=TEXT --branch=TEXT --tag=TEXT --rev=TEXT -n|--dry-run --registry=CODE --index=CODE
    --dev -D --build -B --optional --no-optional --rename=TEXT --precise=TEXT --recursive -w --aggressive -f|--force
    --root=WRITE_TREE --list --debug --allow-dirty --no-verify --name=TEXT --edition=TEXT --vcs=TEXT --doc
"""
_CARGO = runs(
    f"{_COMMON.replace('--version', '--version:info')} --list --explain=TEXT",
    subcommands={
        "": ANYTHING_ELSE,
        **dict.fromkeys(
            ("build", "b", "check", "c", "rustdoc", "doc", "fix"),
            _cargo(
                "--no-deps --document-private-items "
                "--edition --edition-idioms --broken-code --allow-dirty --allow-staged --allow-no-vcs"
            ),
        ),
        **dict.fromkeys(
            ("test", "t", "bench", "run", "r"),
            _cargo("--no-run --no-fail-fast --doc", operands="TEXT...", refine=arguments_from(0)),
        ),
        "clippy": _CLIPPY,
        "fmt": Program(
            act=Act.RUNS,
            network=True,
            options=f"{_COMMON} --all --check -p|--package=TEXT --message-format=TEXT",
            operands="TEXT...",
            refine=all_of(_words_behind(r"--check|--quiet|-q|-v|-l|--edition|20[0-9]{2}"), _cargo_fmt),
        ),
        **dict.fromkeys(("tree", "metadata", "locate-project", "pkgid", "read-manifest"), _LOOKING),
        **dict.fromkeys(("search", "info", "version", "help"), _cargo("--limit=TEXT", operands="TEXT...")),
        **dict.fromkeys(
            ("add", "remove", "rm"),
            _cargo(_PACKAGES, operands="TEXT...", refine=also_writes("Cargo.toml", "Cargo.lock")),
        ),
        **dict.fromkeys(
            ("update", "generate-lockfile", "fetch", "vendor"),
            _cargo(_PACKAGES, operands="TEXT...", refine=also_writes("Cargo.lock")),
        ),
        **dict.fromkeys(
            ("install", "uninstall", "publish", "package", "yank", "login", "new", "init", "clean"),
            _cargo(_PACKAGES, operands="EITHER..."),
        ),
        "nextest run": _cargo(
            "-E|--filterset=TEXT --no-fail-fast --retries=TEXT --no-capture|--nocapture --partition=TEXT --config-file=CODE",
            operands="TEXT...",
        ),
    },
)

# --- rustc, rustfmt, rustup

_CODEGEN = (
    "(?:opt-level|debuginfo|panic|lto|codegen-units|overflow-checks|strip|debug-assertions|target-cpu)(?:=[a-z0-9-]+)?"
)
_OUTPUT = "(?:asm|llvm-bc|llvm-ir|dep-info|link|metadata|mir|obj)"


def _rustc(parsed: Parsed, use: Use) -> Use:
    """Accept only values that name neither a program nor a file, for -C, --emit and --print."""
    for option, pattern in (("-C", _CODEGEN), ("--emit", f"{_OUTPUT}(?:,{_OUTPUT})*"), ("--print", "[a-z-]+")):
        for value in parsed.values(option):
            if type(value) is not str or not re.fullmatch(pattern, value):
                return replace(use, gap=f"the value {value} of {option} is not in its model")
    return use


_RUSTC = Program(
    act=Act.RUNS,
    obeys=_STEERED,
    options="""
        -V|--version|-vV:info -h|--help -v|--verbose -O -g --test --cfg=TEXT --check-cfg=TEXT
        --crate-type=TEXT --crate-name=TEXT --edition=TEXT --target=TEXT --explain=TEXT --error-format=TEXT
        --color=TEXT --cap-lints=TEXT -A|--allow=TEXT
        -W|--warn=TEXT -D|--deny=TEXT -F|--forbid=TEXT -l=TEXT -L=READ -C|--codegen=TEXT --emit=TEXT --print=TEXT
        -o=WRITE --out-dir=WRITE_TREE --extern=CODE --sysroot=CODE -Z=CODE
    """,
    refine=all_of(_no_toolchain, _rustc),
)


def _rustfmt(parsed: Parsed, use: Use) -> Use:
    return use if parsed.has("--check") else operands_written(parsed, use)


_RUSTFMT = Program(
    act=Act.RUNS,
    obeys=_STEERED,
    options="""
        -h|--help -V|--version:info -v|--verbose -q|--quiet --check -l|--files-with-diff --edition=TEXT
        --style-edition=TEXT --color=TEXT --emit=TEXT --backup --config=TEXT --config-path=READ
    """,
    refine=all_of(_no_toolchain, _rustfmt),
)
# `rustup --version` and `rustup show` run the rustc that the project names, to show its version.
_RUSTUP = runs(
    "-h|--help -V|--version -v|--verbose -q|--quiet --toolchain=TEXT --profile=TEXT --no-self-update -y:gap",
    operands="TEXT...",
    refine=all_of(_no_toolchain, arguments_from(3)),
)

PROGRAMS: Mapping[str, Program] = {
    "cargo": replace(_CARGO, act=Act.LOOKS, network=False, obeys=_STEERED),
    "rustc": no_files_of_words(_RUSTC),
    "rustfmt": _RUSTFMT,
    "rustup": _RUSTUP,
}
