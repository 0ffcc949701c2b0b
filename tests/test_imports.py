"""The rooms of the package, held against its source: who may import whom, who may touch the world, who makes permits."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from grant_scene import Scene, bash, granting
from places import ROOT
from rows import all_rows

import harness
from harness.grant_pattern import GrantScope

# A room may import the rooms above it that its row names. docs/architecture.md draws them.
HEART = "nouns text programs shell redaction policy log gate checks loop"
HANDS = "process sandbox files tools models"
CONTRACT = "plugin shipped"
FRONT = f"{CONTRACT} audit session terminal app"
ROOMS = {
    "shipped": "",
    "nouns": "shipped",
    "text": "nouns",
    "programs": "nouns",
    "shell": "nouns text programs",
    "redaction": "nouns text",
    "policy": "nouns text programs shell",
    "log": "nouns text redaction",
    "gate": "nouns text policy redaction log",
    "process": "nouns text programs",
    "checks": "nouns text programs policy redaction log gate process",
    "sandbox": "nouns text process",
    "files": "nouns text programs policy redaction log process",
    "tools": "nouns text shell policy gate process sandbox files",
    "models": "nouns text redaction process",
    "loop": "nouns text policy redaction log gate",
    "plugin": "nouns",
    "audit": "nouns text programs policy redaction log gate files tools",
    "session": f"{HEART} {HANDS} {CONTRACT} audit",
    "terminal": f"{HEART} {HANDS} {CONTRACT} audit session",
    "app": f"{HEART} {HANDS} {CONTRACT} audit session terminal",
    "plugins.acp": f"{HEART} {HANDS} {FRONT}",
    "plugins.agents": f"{HEART} {HANDS} {FRONT}",
    "plugins.doctor": f"{HEART} {HANDS} {FRONT}",
    "plugins.fleet": f"{HEART} {HANDS} {FRONT}",
    "plugins.insight": f"{HEART} {HANDS} {FRONT}",
    "plugins.mcp": f"{HEART} {HANDS} {FRONT}",
    "plugins.media": f"{HEART} {HANDS} {FRONT}",
    "plugins.reports": f"{HEART} {HANDS} {FRONT}",
}
BETWEEN_PLUGINS = {
    ("plugins.agents", "plugins.media"): "the addresses of an agent's web tool are read as those of ours are",
    ("plugins.acp", "plugins.media"): "an editor sends pictures as bytes, which are checked as those in files are",
}
"""Imports of one plugin by another, by the two rooms, each with its reason."""
FEATURE_WORDS = re.compile(
    r"(?<![a-z])(mcp|acp|swe-?bench|junit|sarif|ocsf|otlp|dbos|claude|codex|gemini|opencode|qwen|copilot)(?![a-z])",
    re.IGNORECASE,
)
"""Words of features: protocols, other agents, forms of reports and exports."""
ADDRESS = re.compile(r"[\w.-]+\.(com|org|dev|io)\b[\w./-]*|[\w-]+/[\w-]+#\d+")
"""The address of a page or an issue, which a comment cites."""
KNOW_FEATURES = {
    "harness.shipped": "the table of what ships",
    "harness.tool_kinds": "`mcp__` begins names of tools in policies, logs and requests",
    "harness.policy.built_in": "names of files that other programs run or obey are protected places",
    "harness.session.state": "names of folders in which projects keep commands and skills",
    "harness.session.system_prompt": "the name of a file of instructions",
    "harness.app.commands.own_commands": "names of models in a team's commands",
    "harness.app.demo.first_run": "names of providers",
}
"""Modules outside of plugins that have such a word, each with its reason. `programs` has options of programs, and `models` the
names of models and their providers."""
NAME_COMMANDS = ("harness.app.flags", "harness.app.flag_values", "harness.app.main", "harness.app.policy.plugin")
"""Modules of the command line that may still name commands and files of plugins. This list only gets shorter."""
PURE = ("text", "programs", "shell", "policy", "redaction")
"""Rooms that compute: they open no file, start nothing and ask no clock."""
WORLD = frozenset(
    "asyncio fcntl io os random resource select shutil signal socket subprocess sys tempfile threading time".split()
)
READS_A_FILE = {
    "harness.policy.loader": "os",
    "harness.redaction.redactor": "os",
}
"""What of a pure room touches the disk all the same: a policy, and the key of redaction, are files."""
FOREIGN = {
    "asyncio": "loop plugins.acp plugins.fleet plugins.mcp",
    "openai": "models",
    "pathspec": "policy",
    "prompt_toolkit": "terminal",
    "rich": "terminal plugins.fleet",
    "markdown_it": "models terminal",
    "acp": "plugins.acp",
    "argparse": "session terminal app plugins.acp plugins.agents plugins.doctor plugins.fleet plugins.insight plugins.mcp",
    "duckdb": "plugins.insight",
    "fsspec": "plugins.fleet",
    "jinja2": "app plugins.insight",
    "pypdf": "plugins.media",
    "jsonschema": "app plugins.mcp",
    "jsonschema_specifications": "app",
    "selectolax": "plugins.media",  # in a process of its own
    "referencing": "app",
}
SLOW = frozenset(
    ("asyncio", "difflib", "duckdb", "jinja2", "jsonschema", "openai", "pathspec", "rich", "selectolax", "subprocess")
)
"""Slow to import (10 to 500 ms): only inside of functions, but for START_SLOWLY."""
START_SLOWLY = ("harness.session.", "harness.terminal.", "harness.plugins.agents.commands.", "harness.plugins.fleet.")
NEVER = frozenset(("dataclasses", "httpx", "inspect", "pathlib", "pickle", "requests"))
"""What start-up cannot afford, or what openai alone is for."""
OF_EXTRAS = frozenset(("acp", "anyio", "cryptography", "dbos", "httpx2", "mcp", "mcp_types", "pydantic", "sqlalchemy"))
"""Packages of the extras `acp`, `mcp` and `fleet`, and what goes with them."""
ON_EXTRAS = (
    *(
        f"harness.plugins.acp.{name}"
        for name in ("acp_agent", "client_approver", "client_question", "client_servers", "prompt_blocks")
    ),
    *(f"harness.plugins.acp.{name}" for name in ("served_session", "session_updates", "stored_sessions")),
    "harness.plugins.mcp.client.",
    "harness.plugins.mcp.client_link",
    "harness.plugins.fleet.queue.dbos_queue",
    "harness.plugins.fleet.queue.ledger",
)
"""Modules that stand on them: nobody else imports them but inside of a function."""
LATE_IMPORTS = 230
"""Maximum number of imports in functions, except for slow packages and extras. Each keeps a quick start light: `--version`,
`--help`, an event of a hook, `audit show`, `policy explain`, `mcp list`, or the time to the first prompt or request."""
TYPE_BLOCKS = 93
"""Maximum number of `if TYPE_CHECKING:` blocks."""


class Import(NamedTuple):
    """An import statement: what it names, and whether it runs when its module is imported."""

    name: str
    line: int
    at_start: bool
    names: tuple[str, ...]


def imports_of(node: ast.AST, *, at_start: bool = True) -> Iterator[Import]:
    """Yield the imports below `node`, but for those that are for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) or _is_for_type_checkers(child):
            continue  # no expression holds a statement
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, child.lineno, at_start, ()) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            names = tuple(alias.name for alias in child.names)
            inner = [name for name in names if f"{child.module}.{name}" in PATHS]
            yield from (Import(f"{child.module}.{name}", child.lineno, at_start, ()) for name in inner)
            if rest := tuple(name for name in names if name not in inner):
                yield Import(str(child.module), child.lineno, at_start, rest)
        lazy = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from imports_of(child, at_start=at_start and not lazy)


def _is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _called(node: ast.Call) -> str:
    """Return the last part of the name of what is called."""
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return str(name)
        case _:
            return ""


def _name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


PATHS = {_name_of(path): path for path in sorted(Path(ROOT, "harness").rglob("*.py"))}


@cache
def sources() -> dict[str, ast.Module]:
    return {name: ast.parse(path.read_text(), str(path)) for name, path in PATHS.items()}


@cache
def imports() -> dict[str, tuple[Import, ...]]:
    return {name: tuple(imports_of(tree)) for name, tree in sources().items()}


ENTRIES = ("harness", "harness.__main__")


def room_of(module: str) -> str:
    """Return the room of a module: a folder of the package, or of `plugins`."""
    parts = module.split(".")[1:]
    if parts[:1] == ["plugins"] and len(parts) > 1:
        return ".".join(parts[:2])
    return parts[0] if parts and parts[0] in ROOMS else "nouns"


def everywhere(wrong: Iterator[str]) -> None:
    assert sorted(wrong) == []


def test_a_room_imports_only_the_rooms_of_its_row() -> None:
    above: set[str] = set()
    for room, row in ROOMS.items():
        assert set(row.split()) <= above, f"{room} may import downward only"
        above.add(room)
    upward = {
        (module.removeprefix("harness."), room): found.line
        for module, found_there in imports().items()
        if module not in ENTRIES
        for found in found_there
        if found.name.startswith("harness.")
        and (room := room_of(found.name)) not in {room_of(module), *ROOMS[room_of(module)].split()}
        and (room_of(module), room) not in BETWEEN_PLUGINS
    }
    everywhere(f"{module}:{line} imports {room}" for (module, room), line in upward.items())


def test_only_the_table_of_shipped_plugins_names_a_plugin_in_a_text() -> None:
    """A text may be imported later; a plugin may name its own modules."""
    everywhere(
        f"{module}:{node.lineno} names {node.value}"
        for module, tree in sources().items()
        if module != "harness.shipped"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith("harness.plugins.")
        and room_of(node.value) != room_of(module)
    )


def test_each_folder_is_a_room_with_a_row() -> None:
    folders = {
        room_of(module) for module in PATHS if module.count(".") > 1 and not module.startswith("harness.plugins.")
    }
    plugins = {room_of(module) for module in PATHS if module.startswith("harness.plugins.")}
    assert folders | plugins | {"nouns", *CONTRACT.split()} == set(ROOMS)


WORDS_OF_PLUGINS = ("picture", "pdf", "web_fetch", "junit", "sarif", "swebench")
MEANT_OTHERWISE = {
    "harness.models.model_facts": "the key `pictures` of the configuration",
    "harness.text.visible": "characters of Unicode that are drawn as pictures",
}


def test_heart_and_hands_use_no_words_of_plugins() -> None:
    rooms = {"nouns", *HEART.split(), *HANDS.split()}
    everywhere(
        f"{module}:{getattr(node, 'lineno', 0)}: {name}"
        for module, tree in sources().items()
        if room_of(module) in rooms and module not in {*ENTRIES, *MEANT_OTHERWISE}
        for node in ast.walk(tree)
        for field in ("id", "attr", "arg", "name", "asname")
        if isinstance(name := getattr(node, field, None), str)
        and any(word in name.lower() for word in WORDS_OF_PLUGINS)
    )


def test_modules_import_each_other_without_circles() -> None:
    """Neither at the start nor later, inside of a function."""
    needs = {
        module: {found.name for found in found_there if found.name in PATHS}
        for module, found_there in imports().items()
    }
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        if module in way:
            pytest.fail(" -> ".join((*way[way.index(module) :], module)))
        if module not in done:
            for other in sorted(needs[module] - {module}):
                visit(other, (*way, module))
            done.add(module)

    for module in needs:
        if module not in ENTRIES and not _is_door(module):
            visit(module, ())


def _is_door(module: str) -> bool:
    """Say whether a module is the `__init__` of a room that gives out the names of its modules when they are asked for."""
    return any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in sources()[module].body)


def test_private_names_stay_in_their_module() -> None:
    everywhere(
        f"{module}:{found.line} takes {name} of {found.name}"
        for module, found_there in imports().items()
        for found in found_there
        if found.name.startswith("harness")
        for name in found.names
        if name.startswith("_") and not name.startswith("__")
    )


def test_pure_rooms_import_only_pure_code() -> None:
    everywhere(
        f"{module}:{found.line} imports {found.name}"
        for module, found_there in imports().items()
        if room_of(module) in PURE
        for found in found_there
        if (top := found.name.partition(".")[0]) in WORLD
        and found.name != "os.path"
        and top not in READS_A_FILE.get(module, "").split()
    )
    everywhere(
        f"{module}:{node.lineno} calls {node.func.id}"
        for module, tree in sources().items()
        if room_of(module) in PURE and module not in READS_A_FILE
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("open", "print", "input", "exec", "eval", "__import__")
    )


def test_foreign_packages_are_imported_in_their_designed_places() -> None:
    everywhere(
        f"{module}:{found.line} imports {found.name}"
        for module, found_there in imports().items()
        for found in found_there
        if (top := found.name.partition(".")[0]) != "harness"
        and (
            top in NEVER
            or (top in OF_EXTRAS and not module.startswith(ON_EXTRAS))
            or (top in FOREIGN and room_of(module) not in FOREIGN[top].split())
            or (top not in FOREIGN and top not in OF_EXTRAS and top not in sys.stdlib_module_names)
            or (top in SLOW and found.at_start and not module.startswith((*START_SLOWLY, *ON_EXTRAS)))
        )
    )


def test_modules_of_extras_are_imported_on_demand() -> None:
    everywhere(
        f"{module}:{found.line} imports {found.name}"
        for module, found_there in imports().items()
        if not module.startswith(ON_EXTRAS)
        for found in found_there
        if found.name.startswith(ON_EXTRAS) and found.at_start
    )


def test_imports_in_functions_and_for_type_checkers_only_get_fewer() -> None:
    """Commands and plugins are loaded from the static tables by their names, without an import statement."""
    late = sorted(
        f"{module}:{found.line} imports {found.name}"
        for module, found_there in imports().items()
        if module not in ENTRIES
        for found in found_there
        if not found.at_start
        and not found.name.startswith(ON_EXTRAS)
        and found.name.partition(".")[0] not in SLOW | FOREIGN.keys() | OF_EXTRAS
    )
    blocks = [module for module, tree in sources().items() for node in ast.walk(tree) if _is_for_type_checkers(node)]
    assert len(late) <= LATE_IMPORTS, f"import at the top, unless a quick start pays for it: {late}"
    assert len(blocks) <= TYPE_BLOCKS, f"import the types that the module could import anyway: {blocks}"
    assert (len(late), len(blocks)) == (LATE_IMPORTS, TYPE_BLOCKS), "lower the stored totals"


def test_environment_is_read_in_its_allowed_places_only() -> None:
    readers = {
        room if (room := room_of(module)) in ("app", "session") else module
        for module, tree in sources().items()
        if module not in ENTRIES
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv")
    }
    assert readers == {"app", "session", "harness.tools.command_runner"}


def test_modules_define_without_acting_on_import() -> None:
    """Only definitions, imports and assignments stand at the top; a text that stands alone is a docstring."""
    quiet = (
        ast.AnnAssign, ast.Assign, ast.AsyncFunctionDef, ast.ClassDef, ast.FunctionDef, ast.Import, ast.ImportFrom,
    )  # fmt: skip
    everywhere(
        f"{module}:{node.lineno}: {type(node).__name__}"
        for module, tree in sources().items()
        if module != "harness.__main__"
        for node in tree.body
        if not isinstance(node, quiet)
        and not _is_for_type_checkers(node)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    )


def test_only_the_gate_makes_permits_and_redeems_them() -> None:
    makers = {
        (module, name)
        for module, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (name := _called(node)) in ("Permit", "_Seal", "redeem")
    }
    assert makers == {
        ("harness.gate.gate", "redeem"),
        ("harness.gate.ruling", "Permit"),
        ("harness.gate.ruling", "_Seal"),
    }


def test_no_search_for_a_first_match_can_end_a_judgement() -> None:
    """`next` without a default raises StopIteration, which a surrounding `all(map(...))` takes for its own end: true."""
    everywhere(
        f"{module}:{node.lineno}: next() without a default"
        for module, tree in sources().items()
        if room_of(module) in ("text", "programs", "shell", "policy", "gate")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _called(node) == "next" and len(node.args) == 1
    )


def test_only_the_gate_calls_the_body_of_a_tool() -> None:
    """Whatever the tool's origin: one that ships, a script, a server's. That `run` is `run_for` without a time is its own."""
    callers = {
        (module, ast.unparse(node.func))
        for module, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith((".run_for", ".run_beside", "tool.run"))
    }
    assert {one for one in callers if one[1] not in ("self.run_for", "self.run_beside")} == {
        ("harness.gate.beside", "tool.run_beside"),
        ("harness.gate.gate", "tool.run"),
        ("harness.gate.gate", "tool.run_for"),
    }


def test_files_outside_plugins_use_no_feature_words() -> None:
    with_word: set[str] = set()
    wrong = []
    for module, path in PATHS.items():
        if module.startswith(("harness.plugins.", *NAME_COMMANDS)) or room_of(module) in ("programs", "models"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            if found := FEATURE_WORDS.search(ADDRESS.sub("", line)):
                with_word.add(module)
                wrong += [] if module in KNOW_FEATURES else [f"{module}:{number} says {found.group()}"]
    everywhere(iter(wrong))
    assert with_word == KNOW_FEATURES.keys(), "a module has lost the word: take it out of the list"


def test_public_classes_have_unique_names() -> None:
    places: dict[str, list[str]] = {}
    for module, tree in sources().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(module)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def _modules_after(code: str, folder: Path) -> set[str]:
    """Return the modules that are loaded after `code` ran in a process of its own."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    script = f"{code}\nimport json, sys\nsys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))"
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=ROOT)
    return set(json.loads(done.stderr.splitlines()[-1]))


@all_rows(
    ("code", "expected"),
    [
        ("import harness", set()),
        ("from harness import *", set()),
        ("from harness.models.openai_chat import OpenAIChat; OpenAIChat('m')", set()),
        ("from harness.app.main import main; main(['--version'])", set()),
        ("from harness.app.main import main; main(['audit', 'list'])", set()),
        ("from harness.app.main import main; main(['policy', 'explain', 'ls -la'])", set()),
        ("from harness.app.main import main; main(['policy', 'check', 'ci'])", set()),
        ("from harness.app.main import main; main(['config', 'show', '--origin'])", set()),
        ("from harness.app.main import main; main(['help'])", set()),
        ("from harness.app.main import main; main(['mcp', 'list'])", set()),
        ("import harness.plugins.mcp.commands.proxy_command", set()),
        ("import prompt_toolkit", {"prompt_toolkit"}),  # the rows above would notice
    ],
)
def test_light_uses_load_neither_openai_nor_rich_nor_prompt_toolkit(
    code: str, expected: set[str], tmp_path: Path
) -> None:
    assert _modules_after(code, tmp_path) & {"openai", "rich", "prompt_toolkit", "httpx", "httpx2"} == expected


@all_rows("command", ["show", "list", "verify"])
def test_reading_a_log_loads_no_gate_no_loop_and_no_policy(command: str, tmp_path: Path) -> None:
    """Also where it holds questions, answers and grants: the log's words are in `harness.log.vocabulary`."""
    scene = Scene(tmp_path, bash("mkdir a", "mkdir b"), approver=granting(GrantScope.SESSION))
    scene.agent.run("go")
    assert scene.records("grant")
    scene.close()
    log = {"list": "--all"}.get(command, scene.path)
    code = f"from harness.app.main import main; main(['audit', {command!r}, {log!r}])"
    modules = _modules_after(code, tmp_path)
    assert f"harness.app.audit.{command}" in modules
    assert [one for one in sorted(modules) if one.startswith(("harness.gate", "harness.loop", "harness.policy"))] == []


def test_public_names_are_sorted_and_importable() -> None:
    assert (sorted(harness.__all__), [n for n in harness.__all__ if not hasattr(harness, n)]) == (harness.__all__, [])


def test_public_names_have_the_same_module_for_type_checkers() -> None:
    for_type_checkers = {
        alias.name: node.module
        for guarded in sources()["harness"].body
        if isinstance(guarded, ast.If)
        for node in ast.walk(guarded)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert for_type_checkers == {name: harness._HOME_OF[name] for name in harness.__all__}
