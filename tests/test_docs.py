"""The documents, held against the program: snippets run, shown output is real output, tables are complete."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from rows import all_rows

import harness
from harness.actions import Decision
from harness.app.command_line import actions, first_words, parser_for
from harness.app.commands.mode import SAID
from harness.app.commands.slash_command import slash_commands
from harness.audit.findings import Soundness
from harness.errors import PolicyError
from harness.log.schema import RECORDS
from harness.log.verify import verify
from harness.messages import StopReason
from harness.models.scripted import Reply, call, replies, say
from harness.policy import built_in
from harness.policy import loader as policy_file
from harness.policy.loader import SHIPPED, load_policy, parse_policy
from harness.session.config.config_file import parse_config
from harness.session.config.declared import SETTINGS
from harness.session.config.model_table import parse_table
from harness.session.exits import Exit, exit_code
from harness.session.extensions.extensions import Extensions, extensions_in
from harness.shipped import COMMANDS, DEFAULT_ACTIONS
from harness.tool_kinds import SHIPPED_TOOLS

if TYPE_CHECKING:
    from program import Program

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = tuple(sorted(str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))))
POLICIES, CI, AUDIT, TERMINAL = "docs/policies.md", "docs/ci.md", "docs/audit.md", "docs/terminal.md"
FIRST = "docs/first-policy.md"
"""The page for beginners, held by tests/test_first_policy.py."""


class Block(NamedTuple):
    """A fenced block of a document."""

    document: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.document}:{self.line}"


def read(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def blocks(*languages: str) -> list[Block]:
    found = []
    for document in DOCUMENTS:
        text = read(document)
        for match in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(document, line, match.group(1), match.group(2)))
    return [block for block in found if block.language in languages]


def by_place(*languages: str) -> list[object]:
    return [pytest.param(block, id=block.place) for block in blocks(*languages)]


def section(document: str, title: str) -> str:
    """Return what stands under the heading `title`, up to the next heading of its rank or above."""
    text = read(document)
    start = re.search(rf"^(#+) {re.escape(title)}$", text, re.MULTILINE)
    assert start is not None, f"{document} has no section {title!r}"
    rest = text[start.end() :]
    end = re.search(rf"^#{{1,{len(start.group(1))}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def table(text: str) -> list[list[str]]:
    """Return the cells of the first table of `text`, without its heading."""
    rows = re.search(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    assert rows is not None, "there is no table"
    cells = [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        for row in rows.group().splitlines()
    ]
    return cells[2:]


def code(text: str) -> set[str]:
    """Return everything that stands in backquotes."""
    return set(re.findall(r"`([^`\n]+)`", text))


def first_column(text: str) -> list[str]:
    return [row[0].strip("`") for row in table(text)]


@pytest.fixture
def checkout(program: Program) -> Path:
    """A workspace that looks like a clone as far as documents go: policies/ and examples/."""
    for folder in ("policies", "examples"):
        shutil.copytree(ROOT / folder, program.workspace / folder)
    return program.workspace


def serve(program: Program, *answers: Reply) -> Mapping[str, str]:
    return {
        **program.environment,
        "OPENAI_BASE_URL": program.serve(replies(*answers)),
        "OPENAI_API_KEY": "sk-not-a-key-of-anybody",
    }


# --- what is run ---


@pytest.mark.parametrize("block", by_place("python"))
def test_a_python_snippet_runs(block: Block, program: Program) -> None:
    """In a folder without the files of a clone, as for everybody who has installed the package."""
    (program.workspace / "calc.py").write_text("SUM = 2\n")
    environment = serve(program, Reply(calls=(call("read_file", path="calc.py"),)), say("The test passes."))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block.text],
        cwd=program.workspace,
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    printed = re.findall(r"^print\(.*\)  # (.*)$", block.text, re.MULTILINE)
    assert (done.returncode, done.stderr, done.stdout.splitlines()) == (0, "", printed)
    if "agent.run(" in block.text:
        log = str(program.workspace.parent / "actions.jsonl")
        verification = verify(log)
        assert (program.players[0].finished, verification.problem, verification.open_sessions) == (True, "", ())
        outside, reads = (program.said("audit", question, log) for question in ("outside", "reads"))
        assert ("calc.py" in outside, "calc.py" in reads, "outside" in reads) == (False, True, False)


def test_the_library_example_without_a_key_prints_the_reason(program: Program) -> None:
    (block,) = [block for block in blocks("python") if "agent.run(" in block.text]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block.text],
        cwd=program.workspace,
        check=False,
        env=program.environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("model_error ")
    assert "OPENAI_API_KEY" in done.stdout


@all_rows("block", by_place("toml"))
def test_a_policy_or_a_configuration_in_a_document_loads(block: Block, tmp_path: Path) -> None:
    if "version = 1" in block.text or block.text.startswith("[[rule]]"):
        path = tmp_path / "policy.toml"
        path.write_text(block.text if "version = 1" in block.text else f"version = 1\n{block.text}")
        assert load_policy(str(path)).rules != ()
    elif block.text.startswith("date = "):
        assert parse_table(block.text.encode(), block.place).models != {}
    else:
        file = parse_config(block.text.encode(), block.place)
        assert (file.values, extensions_in(file.extensions)) != ({}, Extensions())


def test_the_example_asks_before_it_writes(program: Program, checkout: Path) -> None:
    """In one run: a y runs the call; an n, Enter, other words and the end of input do not."""
    answers = {"y": "y\n", "n": "n\n", "enter": "\n", "words": "yes please\n", "end": ""}
    asked = [Reply(calls=(call("write_file", path=f"{name}.txt", content="hello\n"),)) for name in answers]
    done = subprocess.run(
        [sys.executable, "-W", "error", "examples/minimal.py", "write a file"],
        cwd=checkout,
        check=False,
        env=serve(program, *asked, say("That is all.")),
        input="".join(answers.values()),
        capture_output=True,
        text=True,
        timeout=60,
    )
    last = done.stdout.splitlines()[-1].removeprefix("run it? y/N ")
    assert (done.returncode, done.stderr, last) == (0, "", "That is all.")
    assert done.stdout.count("run it? y/N ") == len(answers)
    assert [name for name in answers if (checkout / f"{name}.txt").exists()] == ["y"]
    assert verify(str(program.home / "minimal.jsonl")).problem == ""


def test_programs_of_the_library_use_what_it_promises() -> None:
    """Nothing else, and each promised name says what it is."""
    examples = "minimal plain_openai openai_agents pydantic_ai_agent langgraph_agent".split()
    programs = [block.text for block in blocks("python")] + [read(f"examples/{name}.py") for name in examples]
    froms = [
        node
        for program in programs
        for node in ast.walk(ast.parse(program))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("harness")
    ]
    used = {alias.name for node in froms for alias in node.names}
    assert ({node.module for node in froms}, used - set(harness.__all__)) == ({"harness"}, set())
    assert {name for name in harness.__all__ if not getattr(harness, name).__doc__} == set()


def test_the_example_is_short() -> None:
    assert len(read("examples/minimal.py").splitlines()) < 50


# --- what is shown ---


class Shown(NamedTuple):
    """A command line in a document, and the output that is shown under it."""

    place: str
    command: str
    output: str


def shown() -> Iterator[Shown]:
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield Shown(block.place, command, output.rstrip("\n"))


def shown_with_output(*beginnings: str) -> list[object]:
    return [
        pytest.param(example, id=f"{example.place} {example.command}")
        for example in shown()
        if example.command.startswith(beginnings) and example.output and not example.place.startswith(FIRST)
    ]


def _words(command: str) -> list[str]:
    """Return the words of a shown command up to the first pipe or redirection, without variables in front."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|>;&")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if set(word) <= set("|>;&"):
            break
        if words or "=" not in word:
            words.append(word)
    return words


def _parses(words: list[str]) -> bool:
    """Say whether the program's own parser takes these words."""
    if words[:1] == ["help"]:
        return True
    command = words.pop(0) if words and words[0] in first_words() else ""
    if known := actions(command):
        action = words.pop(0) if words else DEFAULT_ACTIONS.get(command, "")
        if action not in known:
            return False
        command = f"{command} {action}"
    if command and not words:
        return True  # a command spoken of, not a line to type
    try:
        parser_for(command).parse_args(words)
    except SystemExit as ended:
        return ended.code == 0
    return True


def commands_in_documents() -> list[object]:
    """Every command line of the program that a document shows: in console blocks and in running text."""
    found = {}
    for document in DOCUMENTS:
        for text in re.findall(r"`(harness [^`\n]*)`", read(document)):
            found[text] = document
        for text in re.findall(r"^(?:    )?\$ (?:\w+=\S+ )*(harness .*)$", read(document), re.MULTILINE):
            found[text] = document
    for block in blocks("sh"):
        for text in re.findall(r"^(harness .*)$", block.text, re.MULTILINE):
            found[text] = block.document
    return [pytest.param(text, id=f"{document}: {text}") for text, document in sorted(found.items())]


@all_rows("text", commands_in_documents())
def test_documented_command_line_is_accepted(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert (_parses(_words(text)[1:]), capsys.readouterr().err) == (True, "")


@pytest.mark.parametrize("example", shown_with_output("harness policy"))
def test_shown_output_of_a_policy_command_is_current(example: Shown, program: Program, checkout: Path) -> None:
    for block in blocks("toml"):
        if block.document != FIRST and (name := re.match(r"# (\S+\.toml)\n", block.text)):
            path = checkout / name.group(1)
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text)
    done = program.run(*_words(example.command)[1:])
    assert (done.out + done.err).rstrip("\n") == example.output


def _without_chance(text: str) -> list[str]:
    """Return the lines of an output of the demo, without what differs from run to run."""
    text = re.sub(r"(exit \d+), \d+\.\d+ s", r"\1", text)  # the time of a slow command alone
    text = re.sub(r"\d+\.\d+ s", "0.1 s", text)
    text = re.sub(r"/\S+/harness-demo-\w+", "SCRATCH", text)
    return re.sub(r"Ran \d tests? in \S+", "Ran tests", text).splitlines()


@pytest.mark.parametrize("example", shown_with_output("harness demo"))
def test_shown_output_of_the_demo_is_current(example: Shown, program: Program) -> None:
    """A line `...` in a document stands for any lines."""
    done = program.run(*_words(example.command)[1:])
    real = _without_chance(done.out)
    for wanted in _without_chance(example.output):
        if wanted == "...":
            continue
        assert wanted in real
        real = real[real.index(wanted) + 1 :]


def test_the_reference_shows_the_keys_of_the_json_that_run_writes(program: Program) -> None:
    (block, *_) = [block for block in blocks("json") if block.document == CI]
    environment = serve(program, say("Hello."))
    done = program.run("run", "say hello", "--output", "json", env=environment)
    documented, real = json.loads(block.text), json.loads(done.out)
    assert (list(documented), list(documented["usage"])) == (list(real), list(real["usage"]))


def _deciders(name: str) -> set[tuple[str, str]]:
    """Return what of a shipped policy can decide, as documents name it, and its line."""
    policy = load_policy(name)
    return {
        *((f"rule {rule.id}", f"{name}.toml:{rule.origin.line}") for rule in policy.rules),
        *((f"default for {default.tool}", f"{name}.toml:{default.origin.line}") for default in policy.defaults),
    }


@all_rows("document", DOCUMENTS)
def test_documented_rule_place_exists(document: str) -> None:
    place = rf"\((?:policies/)?((?:{'|'.join(SHIPPED)})\.toml:\d+)\)"
    named = set(re.findall(rf"(rule [\w-]+|default for \w+) {place}", read(document)))
    assert named - {decider for name in SHIPPED for decider in _deciders(name)} == set()


def test_the_digests_that_a_document_shows_are_those_of_the_files() -> None:
    text = "".join(map(read, DOCUMENTS))
    named = {
        *re.findall(r"(\w+)\.toml \(([0-9a-f]{12})\)", text),
        *((name, digest[:12]) for name, digest in re.findall(r'"name": "(\w+)", "sha256": "([0-9a-f]{64})"', text)),
        *((name, digest[:12]) for name, digest in re.findall(r"policy (\w+) \(([0-9a-f]{16})\)", text)),
    }
    assert named == {(name, load_policy(name).sha256[:12]) for name in ("ci", "demo")}


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param('id = "a"\ndesision = "auto"\nargv = ["ls"]\n', id="an unknown key"),
        pytest.param(
            'id = "a"\ndecision = "auto"\nargv = ["ls", "..."]\nmatch = ["ls -l"]\n', id="an example that fails"
        ),
    ],
)
def test_the_messages_that_the_policy_reference_shows_are_real(rule: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy(f"version = 1\n[[rule]]\n{rule}".encode(), "p.toml")
    assert f"    {caught.value}\n" in read(POLICIES)


# --- what must be complete ---


def test_every_key_of_a_policy_is_in_its_table_and_no_other() -> None:
    documented = {
        title: re.findall(r"^(?:- |\| )`(\w+)`(?:: | \|)", section(POLICIES, title), re.MULTILINE)
        for title in ("Keys at the top", "`[tools]`", "`[unattended]`", "`[limits]`", "`[[rule]]`")
    }
    assert {title: sorted(keys) for title, keys in documented.items()} == {
        "Keys at the top": sorted(policy_file.TOP_KEYS),
        "`[tools]`": sorted((*SHIPPED_TOOLS, *policy_file.TOOLS_KEYS)),
        "`[unattended]`": sorted(policy_file.UNATTENDED_KEYS),
        "`[limits]`": sorted(policy_file.LIMIT_KEYS),
        "`[[rule]]`": sorted(policy_file.RULE_KEYS),
    }


def test_every_decision_is_in_the_policy_reference() -> None:
    rows = table(read(POLICIES))
    assert [row[0].strip("`") for row in rows] == [decision.word for decision in Decision]


def test_every_shipped_policy_is_in_the_policy_reference() -> None:
    text = read(POLICIES)
    start = text.index("| name | meant for |")
    assert sorted(first_column(text[start:])) == sorted(SHIPPED)
    for name in SHIPPED:
        assert load_policy(name).name == name


def test_standard_limits_are_documented() -> None:
    rows = table(section(POLICIES, "`[limits]`"))
    stated = {row[0].strip("`"): row[2] for row in rows}
    standard = load_policy(str(ROOT / "policies/demo.toml")).limits.filled()
    assert stated == {
        "turns": str(standard.max_turns),
        "seconds": "no bound" if standard.max_seconds is None else "",
        "tokens": "no bound" if standard.max_tokens is None else "",
        "cost": "no bound" if standard.max_cost is None else "",
        "refusals": str(standard.max_refusals),
        "bad_calls": str(standard.max_bad_calls),
        "command_seconds": f"{standard.command_seconds:g}",
        "result_characters": str(standard.result_characters),
    }


def _finding_ids() -> dict[str, str]:
    """Return the ids of built-in findings and their decisions, out of the source."""
    tree = ast.parse((ROOT / "harness/policy/built_in.py").read_text())
    return {
        str(node.args[0].value): node.func.id.strip("_")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("_block", "_confirm", "_deny")
        and isinstance(node.args[0], ast.Constant)
    }


def test_everything_that_is_built_in_is_in_the_policy_reference() -> None:
    documented = {row[0].strip("`"): row[1] for row in table(section(POLICIES, "Built in"))}
    # `own-files` is both: a block, and a question for the folder around such a file.
    assert documented == {**_finding_ids(), "own-files": "block", "opaque": "confirm"}


@pytest.mark.parametrize(
    ("names", "title"),
    [
        pytest.param("PROTECTED_NAMES", "Built in", id="protected names"),
        pytest.param("ENTRY_POINTS", "Entry points", id="entry points"),
    ],
)
def test_the_policy_reference_lists_the_built_in_names(names: str, title: str) -> None:
    real = vars(built_in)[names]
    text = section(POLICIES, title).partition("at any depth" if title == "Built in" else "The names:")[2]
    assert code(text.partition("\n\n")[0].partition("###")[0]) == set(real)


def _codes_and_stops() -> dict[int, set[str]]:
    """Return every exit code, and the ends of a run that lead to it."""
    found: dict[int, set[str]] = {int(one): set() for one in Exit}
    for stop in StopReason:
        for refusals in (0, 1):
            for terminated in (False, True):
                ended = exit_code(stop, refusals=refusals, allow_refusals=False, terminated=terminated)
                found[int(ended)].add(stop.value)
    return found


def test_the_table_of_exit_codes_is_the_one_of_the_program() -> None:
    rows = table(section(CI, "Exit codes"))
    assert {int(row[0]): code(row[1]) for row in rows} == _codes_and_stops()


def test_the_help_names_every_exit_code() -> None:
    text = parser_for("").format_help()
    numbers = set(re.findall(r"\b\d+\b", text[text.index("exit codes:") :]))
    assert numbers == {str(int(one)) for one in Exit}


def test_the_exit_codes_of_audit_verify_are_documented() -> None:
    rows = table(section(AUDIT, "Verifying"))
    assert [int(row[0]) for row in rows] == sorted({*(one.value for one in Soundness), int(Exit.USAGE)})


def test_every_kind_of_record_is_documented() -> None:
    assert re.findall(r"^- `(\w+)`: ", section(AUDIT, "The records"), re.MULTILINE) == list(RECORDS)


@all_rows("command", [pytest.param(name, id=name or "prompt") for name in COMMANDS])
def test_every_flag_is_in_a_document(command: str) -> None:
    flags = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", parser_for(command).format_help())) - {"--help"}
    documented = "".join(map(read, DOCUMENTS))
    assert flags - set(re.findall(r"--[a-z][a-z-]*", documented)) == set()


def test_every_command_of_the_prompt_is_in_its_table() -> None:
    documented = {word for text in code(section(TERMINAL, "Commands")) for word in re.findall(r"^/\w+$", text)}
    assert documented == {name for command in slash_commands() for name in (command.name, *command.aliases)}


def test_modes_are_documented_in_the_words_of_the_prompt() -> None:
    documented = re.findall(r"^- (.*)$", section(TERMINAL, "Modes"), re.MULTILINE)
    assert documented == [f"`{mode.value}`: {text}." for mode, text in SAID.items()]


def test_every_variable_that_the_command_line_reads_is_documented() -> None:
    of_settings = {declared.variable for declared in SETTINGS.values()} - {""}
    read_there = {*of_settings, "OPENAI_BASE_URL", "OPENAI_API_KEY"}
    rooms = ("process", "session", "terminal", "app", "plugins")
    paths = [path for room in rooms for path in (ROOT / "harness" / room).rglob("*.py")]
    for path in (*paths, ROOT / "harness" / "user_folders.py"):
        read_there |= set(re.findall(r"environ(?:ment)?\.get\(\s*b?\"([A-Z_]+)\"", path.read_text()))
        read_there |= set(
            re.findall(
                r"(?:_(?:folder|opened)\(environment, |^VARIABLE = )\"([A-Z_]+)\"", path.read_text(), re.MULTILINE
            )
        )
    documented = code(section("docs/getting-started.md", "Environment variables"))
    of_others = {"CI", "HOME", "PATH", "TERM", "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_TMPDIR", "COPILOT_HOME"}
    of_others |= {"QWEN_PROJECT_DIR", "PWD"}
    assert read_there - of_others == {name for name in documented if name.isupper()}


def test_readme_contains_its_two_commands() -> None:
    (first, second) = [block.text.strip() for block in blocks("sh") if block.document == "README.md"][:2]
    assert (first, second) == (
        "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/harness demo",
        ".venv/bin/pip install --quiet -e '.[dev]' && .venv/bin/python -m pytest -n auto",
    )


def test_the_documents_are_short() -> None:
    readme = read("README.md")
    # Those of the agents are written by a program, which bounds each of them (tests/plugins/agents/test_agent_pages.py).
    own = (document for document in DOCUMENTS if not document.startswith("docs/agents/"))
    words = sum(len(read(document).split()) for document in own)
    assert (len(readme.split()) <= 2_000, len(readme.splitlines()) <= 200, words <= 20_000) == (True, True, True)


# --- what must not be there ---


@all_rows("document", DOCUMENTS)
def test_a_document_names_no_folder_of_the_machine_that_it_was_written_on(document: str) -> None:
    text = read(document)
    assert (str(ROOT) in text, re.findall(r"/(?:home|Users|root)/\S*", text)) == (False, [])


@all_rows("document", DOCUMENTS)
def test_the_links_of_a_document_lead_somewhere(document: str) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", read(document))
    folder = (ROOT / document).parent
    assert [target for target in targets if not (folder / target).exists()] == []


@all_rows("document", DOCUMENTS)
def test_the_files_that_a_document_names_are_there(document: str) -> None:
    named = re.findall(r"`((?:tests|harness|policies|examples|bench|\.ci)/[\w./-]*\w)/?`", read(document))
    # In the wheel the policies lie in `harness/policies`.
    assert [name for name in named if not (ROOT / name).exists() and name != "harness/policies"] == []


@all_rows("document", DOCUMENTS)
def test_document_avoids_belittling_words(document: str) -> None:
    assert re.findall(r"\b(?:simply|just|easily|obviously)\b", read(document), re.IGNORECASE) == []


def test_license_is_that_of_the_package() -> None:
    lines = [line.strip() for line in read("LICENSE").splitlines() if line.strip()]
    assert (lines[:2], 'license = "Apache-2.0"' in read("pyproject.toml")) == (
        ["Apache License", "Version 2.0, January 2004"],
        True,
    )
    assert os.path.getsize(ROOT / "LICENSE") > 11_000
