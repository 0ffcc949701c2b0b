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

from harness.actions import Access
from harness.programs.program import Parsed, PathUse, Program, Refine, Use
from harness.programs.rows import Rows
from harness.programs.shared import no_files_of_words, operands_written
from harness.record import replace

_CODEGEN = (
    "(?:opt-level|debuginfo|panic|lto|codegen-units|overflow-checks|strip|debug-assertions|target-cpu)(?:=[a-z0-9-]+)?"
)
_OUTPUT = "(?:asm|llvm-bc|llvm-ir|dep-info|link|metadata|mir|obj)"


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


def _manifests(_parsed: Parsed, use: Use) -> Use:
    """Add the manifests of the package, its workspace and its members."""
    below = PathUse(word=".", access=Access.READ, tree=True, follows=True, only=("Cargo.toml", "Cargo.lock"))
    above = (PathUse(word=name, access=Access.READ, upwards=True) for name in below.only)
    return replace(use, paths=(*use.paths, below, *above))


def _rustc(parsed: Parsed, use: Use) -> Use:
    """Accept only values that name neither a program nor a file, for -C, --emit and --print."""
    for option, pattern in (("-C", _CODEGEN), ("--emit", f"{_OUTPUT}(?:,{_OUTPUT})*"), ("--print", "[a-z-]+")):
        for value in parsed.values(option):
            if type(value) is not str or not re.fullmatch(pattern, value):
                return replace(use, gap=f"the value {value} of {option} is not in its model")
    return use


def _rustfmt(parsed: Parsed, use: Use) -> Use:
    return use if parsed.has("--check") else operands_written(parsed, use)


_ROWS = Rows(
    r"""
steered = rust-toolchain rust-toolchain.toml .cargo/config .cargo/config.toml
common = -h|--help -V|--version -v|--verbose -q|--quiet --color=TEXT --locked --offline --frozen --manifest-path=READ
    --config=CODE -Z=CODE -C=CODE
build = common -p|--package=TEXT --workspace --all --exclude=TEXT --lib --bins --bin=TEXT --examples --example=TEXT --tests
    --test=TEXT --benches --bench=TEXT --all-targets -F|--features=TEXT --all-features --no-default-features -j|--jobs=TEXT
    --keep-going -r|--release --profile=TEXT --target=TEXT --target-dir=WRITE_TREE --message-format=TEXT --timings
    --future-incompat-report --ignore-rust-version
packages = --path=READ --git=TEXT --branch=TEXT --tag=TEXT --rev=TEXT -n|--dry-run --registry=CODE --index=CODE --dev -D
    --build -B --optional --no-optional --rename=TEXT --precise=TEXT --recursive -w --aggressive -f|--force
    --root=WRITE_TREE --list --debug --allow-dirty --no-verify --name=TEXT --edition=TEXT --vcs=TEXT --doc
cargo : looks obeys=steered : READ... : -h|--help -V|--version:info -v|--verbose -q|--quiet --color=TEXT --locked --offline
    --frozen --manifest-path=READ --config=CODE -Z=CODE -C=CODE --list --explain=TEXT
cargo (alone) : runs net
cargo build, b, check, c, rustdoc, doc, fix : runs net : - : build --no-deps --document-private-items --edition
    --edition-idioms --broken-code --allow-dirty --allow-staged --allow-no-vcs
cargo test, t, bench, run, r : runs net arguments=0 : TEXT... : build --no-run --no-fail-fast --doc
cargo clippy : runs net lints : TEXT... : build --no-deps --fix --allow-dirty --allow-staged --allow-no-vcs
cargo fmt : runs net fmt-words cargo-fmt : TEXT... : common --all --check -p|--package=TEXT --message-format=TEXT
cargo tree, metadata, locate-project, pkgid, read-manifest : looks obeys=steered manifests : TEXT... : -v|--verbose
    -q|--quiet --color=TEXT --locked --offline --frozen -p|--package=TEXT --workspace --exclude=TEXT -F|--features=TEXT
    --all-features --no-default-features --target=TEXT -e|--edges=TEXT -i|--invert[=TEXT] -d|--duplicates --depth=TEXT
    --prefix=TEXT --no-dedupe --charset=TEXT -f|--format=TEXT --no-deps --format-version=TEXT --filter-platform=TEXT
    --prune=TEXT --manifest-path=READ
cargo search, info, version, help : runs net : TEXT... : build --limit=TEXT
cargo add, remove, rm : runs net also=Cargo.toml,Cargo.lock : TEXT... : build packages
cargo update, generate-lockfile, fetch, vendor : runs net also=Cargo.lock : TEXT... : build packages
cargo install, uninstall, publish, package, yank, login, new, init, clean : runs net : EITHER... : build packages
cargo nextest run : runs net : TEXT... : build -E|--filterset=TEXT --no-fail-fast --retries=TEXT --no-capture|--nocapture
    --partition=TEXT --config-file=CODE
rustc : runs obeys=steered toolchain rustc : READ... : -V|--version|-vV:info -h|--help -v|--verbose -O -g --test --cfg=TEXT
    --check-cfg=TEXT --crate-type=TEXT --crate-name=TEXT --edition=TEXT --target=TEXT --explain=TEXT --error-format=TEXT
    --color=TEXT --cap-lints=TEXT -A|--allow=TEXT -W|--warn=TEXT -D|--deny=TEXT -F|--forbid=TEXT -l=TEXT -L=READ
    -C|--codegen=TEXT --emit=TEXT --print=TEXT -o=WRITE --out-dir=WRITE_TREE --extern=CODE --sysroot=CODE -Z=CODE
rustfmt : runs obeys=steered toolchain rustfmt : READ... : -h|--help -V|--version:info -v|--verbose -q|--quiet --check
    -l|--files-with-diff --edition=TEXT --style-edition=TEXT --color=TEXT --emit=TEXT --backup --config=TEXT
    --config-path=READ
# `rustup --version` and `rustup show` run the rustc that the project names, to show its version.
rustup : runs net toolchain arguments=3 : TEXT... : -h|--help -V|--version -v|--verbose -q|--quiet --toolchain=TEXT
    --profile=TEXT --no-self-update -y:gap
""",
    {
        "toolchain": _no_toolchain,
        "manifests": _manifests,
        "lints": _words_behind(
            r"-[AWDF]|--(?:allow|warn|deny|forbid)|-?[AWDF]?[a-z_:]+|--(?:deny|warn|allow|forbid)=[a-z_:]+"
        ),
        "fmt-words": _words_behind(r"--check|--quiet|-q|-v|-l|--edition|20[0-9]{2}"),
        "cargo-fmt": _cargo_fmt,
        "rustc": _rustc,
        "rustfmt": _rustfmt,
    },
)

PROGRAMS: Mapping[str, Program] = {**_ROWS, "rustc": no_files_of_words(_ROWS["rustc"])}
