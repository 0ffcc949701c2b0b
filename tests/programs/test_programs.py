"""What the models of programs say of command lines, as the text files here tell it: one file for each of `harness/programs`.

A line is a command, `->` and what it does: `gap` where no model vouches for it, else

- its act, `net` where it reaches the network, `socket` where it needs one; `unless FILE` where the act is another if that file
  is there (of several the first, and how many more);
- its paths: `r:` read, `w:` written, `e:` either; `R:`, `W:`, `E:` with all that lies below. In brackets: names of the only
  files that are meant (`*.py,+3` for that and three more), `!name` for folders and `-name` for files left out, `links` where
  links are followed, `by NAME` for ignore files of containers, `visible` where hidden files are left out. `T:` is what git
  shows of the files that it tracks, `changed:`, `new:` and `ignored:` what it shows or adds of those;
- `> NAME= (FOLDER) COMMAND` for a command that it runs, `$ TEXT` for a text that a shell runs, `@ TEXT` where that is another
  machine.

In a word, `€` stands for text that is not known, `€€` for any number of words, `€#` for a number that is not known; the word
`€{src}` for files found in `src`; `␤` for a line end. Lines with `#` in front are headings and remarks.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

import harness.programs
from harness.actions import Access, Act
from harness.programs import asked
from harness.programs.catalog import FILES, model_of, names
from harness.programs.git_pathspecs import GitFiles
from harness.programs.options import operand_roles, option_table, read_command
from harness.programs.program import TEMPORARY_FOLDER, Found, Inner, PathUse, Program, Unknown, Use

MODELS: dict[str, Program] = {name: model for name in names() if (model := model_of(name)) is not None}
HERE = Path(__file__).parent
NAMES = {**{file: programs.split() for file, programs in FILES.items()}, "asked": list(asked.PROGRAMS)}
"""The programs of each file of models."""


def _rows(file: str) -> Iterator[tuple[int, str, str]]:
    """Yield each row of a file: its number, the command, and what it does."""
    for number, row in enumerate((HERE / f"{file}.txt").read_text("utf-8").splitlines(), start=1):
        if row and not row.startswith("#"):
            line, _, expected = row.rpartition(" -> ")
            yield number, line.strip(), expected.strip()


def _word(text: str) -> str:
    text = text.replace("␤", "\n")
    if text.startswith("€{") and text.endswith("}"):
        return Found("{}", starts=text[2:-1].split(","))
    known, euro, kind = text.partition("€")
    return Unknown(text, prefix=known, single=not kind.startswith("€"), integer=kind.endswith("#")) if euro else text


def _program(line: str) -> str:
    """Return the name of the program, which may stand there with its folder."""
    return shlex.split(line)[0].rpartition("/")[2]


def _use(line: str) -> Use:
    return read_command(MODELS[_program(line)], [_word(word) for word in shlex.split(line)])


def _shown(use: Use) -> str:
    if use.gap:
        return "gap" if use.act is Act.UNKNOWN else "a gap whose act is known"
    parts = [use.act.value, *(["net"] if use.network else []), *(["socket"] if use.needs else [])]
    if use.obeys and use.act is Act.LOOKS:
        parts += ["unless", use.obeys[0] + (f",+{len(use.obeys) - 1}" if use.obeys[1:] else "")]
    parts += map(_shown_path, use.paths)
    parts += [*map(_shown_command, use.commands), *(f"$ {text}" for text in use.scripts)]
    return (
        " ".join([*parts, *([f"@ {use.remote}"] if use.remote else [])])
        .replace("\n", "␤")
        .replace(TEMPORARY_FOLDER, "$TMPDIR")
    )


def _shown_path(path: PathUse) -> str:
    if path.tracked is not None:
        words = ("--", *path.tracked.words) if path.tracked.behind_dashes else path.tracked.words
        kind = "T" if path.tracked.kind is GitFiles.TRACKED else path.tracked.kind.value
        notes = [*words, *path.tracked.objects, *([] if path.tracked.patches else ["only"])]
        return f"{kind}:{path.word}[{','.join(notes)}]"
    only = path.only if len(path.only) < 4 else (path.only[0], f"+{len(path.only) - 1}")
    notes = [*only, *(f"!{name}" for name in path.skips), *(f"-{name}" for name in path.excluded)]
    notes += [f"by {name}" for name in path.ignore_files if name.endswith("dockerignore")]
    if path.tree and path.handed is None:
        notes += [*(["links"] if path.follows else []), *([] if path.hidden else ["visible"])]
    letter = path.access.value[0]
    return f"{letter.upper() if path.tree else letter}:{path.word}" + (f"[{','.join(notes)}]" if notes else "")


def _shown_command(inner: Inner) -> str:
    front = "".join(f"{name}= " for name in inner.variables) + (f"({inner.folder}) " if inner.folder else "")
    return f"> {front}{' '.join(map(_shown_word, inner.argv))}"


def _shown_word(word: str) -> str:
    if isinstance(word, Found):
        return f"€{{{','.join(word.starts)}}}"
    if isinstance(word, Unknown):
        return word.prefix + ("€" if word.single else "€€") + ("#" if word.integer else "")
    return word


def _only_looks(use: Use) -> bool:
    """As `readers` of a policy asks, but for where the paths lie."""
    reads = all(path.access is Access.READ for path in use.paths)
    return not use.gap and use.act in (Act.LOOKS, Act.WRAPS) and not use.network and not use.needs and reads


@pytest.mark.parametrize("file", NAMES)
def test_effects_of_commands_match_the_tables(file: str) -> None:
    wrong, told = [], set()
    for number, line, expected in _rows(file):
        use = _use(line)
        told.add(id(MODELS[_program(line)]))
        if _shown(use) != expected:
            wrong.append(f"{file}.txt:{number}: {line} -> {_shown(use)} {use.gap}, not {expected}")
        written = any(path.access is not Access.READ for path in use.paths)
        if written and use.act in (Act.LOOKS, Act.WRAPS):
            wrong.append(f"{file}.txt:{number}: {line} writes, and is said to look")
    without = [f"{name} has no line in {file}.txt" for name in NAMES[file] if id(MODELS[name]) not in told]
    assert wrong + without == []


def _files_with_programs() -> Iterator[str]:
    for file in os.listdir(os.path.dirname(str(harness.programs.__file__))):
        name, dot, suffix = file.partition(".")
        if (dot, suffix) == (".", "py") and hasattr(import_module(f"harness.programs.{name}"), "PROGRAMS"):
            yield name


def test_the_catalog_names_every_file_and_its_programs() -> None:
    assert sorted(_files_with_programs()) == sorted(NAMES) == sorted(file.stem for file in HERE.glob("*.txt"))
    assert {file: sorted(import_module(f"harness.programs.{file}").PROGRAMS) for file in NAMES} == {
        file: sorted(programs) for file, programs in NAMES.items()
    }
    assert len(MODELS) == len(list(names()))


def _with_subcommands() -> Iterator[tuple[str, Program]]:
    for name, program in MODELS.items():
        yield name, program
        for subcommand, inner in program.subcommands.items():
            yield f"{name} {subcommand}", inner


FACTS = ("files", "only-reads", "few-variables", "no-input", "input-without-files")


def test_the_tables_are_well_formed() -> None:
    wrong = []
    for name, model in _with_subcommands():
        try:
            option_table(model.options)
            operand_roles(model.operands, instead=False)
            operand_roles(model.operands, instead=True)
        except (ValueError, KeyError) as problem:
            wrong.append(f"{name}: {problem}")
        wrong += [f"{name}: {fact} is no fact" for fact in model.facts.split() if fact not in FACTS]
    assert wrong == []


_TAKE_TEXT = frozenset(
    ": arch basename break cal continue dirname echo exit expr factor false groups hostid id logname ncal nproc numfmt "
    "printenv return seq sleep test tr true tty uname whoami yes".split()
)
"""Programs that only look whatever word they are given: none of their words names a file that is read."""


def test_words_that_may_be_anything_are_never_waved_through() -> None:
    waved = {
        name
        for name in MODELS
        for words in (["€"], ["€€"], ["--", "€€"])
        if _only_looks(read_command(MODELS[name], [name, *map(_word, words)]))
    }
    assert waved == _TAKE_TEXT


_WORDS = st.one_of(
    st.sampled_from(
        sorted({word for _, model in _with_subcommands() for name in model.subcommands for word in name.split()})
    ),
    st.sampled_from(sorted({spelling for _, model in _with_subcommands() for spelling in option_table(model.options)})),
    st.sampled_from(
        "-c -e -i -n -m -u -o -S -I{} -C -v -x -- - --help A=1 rm ls x .env run compose up -f=x -D {} 5 = ; -eo pipefail"
        " --split-string=ls -0 get / . a.py @words x=y -= --= +x -x=y ' \" \\ [ ] w if -é".split()
    ),
    st.sampled_from(["", "a b", "\n", "-\n"]),
    st.sampled_from("€ €€ -€ a€ €# €{src,.} €{@src}".split()).map(_word),
    st.text(max_size=6),
)


@settings(max_examples=examples(400))
@given(st.sampled_from(sorted(MODELS)), st.lists(_WORDS, max_size=7))
def test_any_words_are_parsed_and_unknown_ones_never_decide(name: str, words: list[str]) -> None:
    use = read_command(MODELS[name], [name, *words])
    assert (use.act is Act.UNKNOWN) == bool(use.gap)
    assert all(inner.argv and not isinstance(inner.argv[0], Unknown | Found) for inner in use.commands)
    assert not any(isinstance(text, Unknown | Found) for text in use.scripts)
    assert not any(isinstance(path.word, Unknown) for path in use.paths)
