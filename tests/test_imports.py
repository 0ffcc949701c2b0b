"""The layers of the package, held against its source: who may import whom, who may touch the world, who makes permits."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

import pytest

import harness

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# One row per module or package below `harness`: what it may import of the others. A row names only rows above it, so
# that nothing imports upward. DESIGN.md of the project says why the layers are these.
LAYERS = {
    "version": "",
    "exhaustive": "",
    "durable": "",
    "record": "",
    "messages": "record",
    "errors": "messages",
    "look_alikes": "",
    "visible": "look_alikes",
    "paths": "",
    "toml_lines": "",
    "interrupt": "",
    "limits": "record",
    "tree_names": "paths",
    "actions": "exhaustive messages record tree_names",
    "programs": "actions record",
    "joined": "programs",
    "matchers": "joined paths record tree_names",
    "shell": "actions paths programs record visible",
    "built_in": "actions paths programs record",
    "rules": "actions matchers programs record",
    "grants": "actions record rules",
    "policy": "actions built_in exhaustive grants limits programs record rules",
    "rule_examples": "actions messages programs record rules shell",
    "auto_rules": "matchers programs rule_examples rules",
    "policy_file": "actions auto_rules errors grants limits matchers policy record rule_examples rules toml_lines",
    "lint": "actions built_in matchers policy policy_file record rule_examples rules",
    "private_files": "",
    "small_files": "",
    "ignore_files": "small_files",
    "trees": "ignore_files paths",
    "git_index": "",
    "repository": "git_index programs small_files",
    "revision": "repository small_files",
    "instructions": "record repository",
    "template": "errors",
    "workspace": "actions errors paths programs record repository tree_names trees",
    "destroying_git": "",
    "destroying_programs": "destroying_git",
    "destroying": "actions destroying_programs",
    "granting": "actions auto_rules destroying grants matchers policy programs record rules",
    "approval": "actions granting policy record",
    "redaction": "actions record",
    "log_words": "",
    "log_schema": "actions log_words record",
    "log_order": "actions log_words",
    "log_clocks": "actions log_order record",
    "log_lines": "errors log_schema",
    "strict_json": "actions visible",
    "action_log": "actions durable errors log_lines log_order log_schema redaction strict_json",
    "log_check": "action_log actions log_clocks log_lines log_order log_schema log_words record redaction",
    "heads": "errors record",
    "heads_writing": "action_log actions errors heads",
    "signed_heads": "record",
    "log_findings": "heads log_check record signed_heads",
    "advice": "record",
    "gate_records": "action_log actions advice approval granting log_words messages policy record visible",
    "gate": "action_log actions advice approval built_in errors gate_records granting messages policy record rules",
    "tool": "actions errors gate limits messages record strict_json",
    "model": "messages record tool",
    "prices": "messages record",
    "observers": "log_order messages",
    "message_records": "actions log_order messages redaction",
    "history": "messages record",
    "rebuilding": "actions history log_order message_records messages record redaction",
    "compaction": "actions messages record",
    "session": "action_log actions history message_records messages",
    "run": "action_log limits messages prices session",
    "running": "gate interrupt messages record redaction tool",
    "person_calls": "actions approval errors gate interrupt messages policy redaction running tool",
    "answers": "action_log actions errors exhaustive gate gate_records interrupt messages rebuilding rules run running tool",
    "asking": "action_log actions errors interrupt log_order messages model run tool",
    "summarizing": "action_log asking compaction errors messages run",
    "agent": "version action_log actions advice answers approval asking compaction errors gate granting history interrupt "
    "limits log_order messages model observers person_calls policy prices record rules run session summarizing tool",
    "before_images": "durable",
    "procfs": "record",
    "guard": "procfs",
    "sandbox": "paths record",
    "git_settings": "",
    "tools": "actions before_images errors git_settings guard limits matchers messages paths procfs programs record sandbox "
    "shell small_files tool visible workspace",
    "undo": "actions log_order log_words record redaction",
    "restoring": "actions before_images errors record tools undo visible workspace",
    "audit": "actions log_clocks log_findings log_lines log_order log_schema log_words paths record undo version visible",
    "run_reports": "actions audit heads log_findings log_order log_words messages paths record version visible",
    "suggestions": "actions advice built_in errors exhaustive lint matchers policy policy_file programs record rule_examples "
    "rules visible",
    "models": "actions errors messages model record redaction small_files strict_json tool version",
}
# The package itself (its lazy public names), and the entry points, which import everything; nothing imports them.
TOP = ("harness", "cli", "__main__")

# Modules of a package that its other modules share; beside these, nothing imports its neighbours.
SHARED = {
    "tools": frozenset(
        "arguments atomic baselines diffs encoding environment files hardening latch live matching missing near_miss opening "
        "output pages processes reach replacing spill start survivors temporary wall_notes".split()
    ),
    "models": frozenset(
        "addresses answer_body answer_check assembly cassette chat_body chat_calls chat_echo chat_finish chat_reply "
        "connections deadline dialect divergence endpoint events exchange failures forms lessons openai_client openai_wire "
        "presets provider_text reading reply_body request_body "
        "responses_body responses_echo responses_items responses_reply retries scripted scripted_responses unread_calls "
        "wire_ids wire_json".split()
    ),
    # What models are written in, and what several of them say alike; git's tables are four files for their length.
    "programs": frozenset(
        "model options runners readers variables tables gathered pflag refinements code_files git_looking "
        "git_changing git_reading git_modes git_pathspecs".split()
    ),
}
SHELL = (
    "syntax cursor quoting braces arithmetic lexer conditions parser read_loops state expand operands loose "
    "builtins remembered parts names_printed handed simple facets"
).split()
"""The modules of shell in the order in which they are read: each imports only those before it."""

# What a module outside cli/ may use of the world: files, processes, sockets, signals, clocks, chance. A new entry is a
# new power, and should be seen as one in review. The pure core (policy, matchers, shell ...) has no row.
POWERS = {
    "audit.disk": "os stat",
    "audit.export.row": "hmac",
    "audit.report.text": "html",
    "action_log": "fcntl os stat time",
    "heads": "os stat",
    "heads_writing": "fcntl os stat time",
    "log_lines": "fcntl os stat",
    "agent": "platform time",
    "asking": "time",
    "observers": "queue threading time",
    "redaction.redactor": "hmac os",
    "revision": "os",
    "run": "time",
    "gate": "time",
    "granting": "shlex",
    "models.answer_body": "zlib",
    "models.answer_check": "time",
    "models.connections": "socket",
    "models.exchange": "queue signal threading",
    "models.loopback": "socket threading",
    "models.openai_chat": "time",
    "models.openai_responses": "time",
    "models.openai_wire": "random threading",
    "models.recording": "os",
    "models.replaying": "os time",
    "policy_file": "os",
    "programs.catalog": "importlib",
    "tool": "time",
    "guard": "_thread os signal sys time",
    "instructions": "os stat",
    "procfs": "os resource",
    "tools.bash": "fcntl os signal",
    "tools.environment": "os",
    "before_images": "os",
    "durable": "os",
    "tools.atomic": "os",
    "tools.files": "os stat",
    "tools.missing": "os",
    "tools.opening": "ctypes os stat",
    "tools.pages": "os",
    "tools.hardening": "ctypes os resource",
    "tools.latch": "fcntl os",
    "tools.live": "_thread",
    "tools.processes": "_thread fcntl os select signal subprocess time",
    "tools.read_file": "io os",
    "tools.spill": "_thread os",
    "tools.start": "_thread os subprocess time",
    "tools.survivors": "_thread os signal",
    "tools.replacing": "fcntl os time",
    "tools.reach": "os stat",
    "tools.temporary": "_thread os stat tempfile",
    "restoring": "fcntl os",
    "sandbox.bubblewrap": "os stat subprocess",
    "sandbox.confinement": "_thread os",
    "sandbox.kernel": "ctypes os",
    "sandbox.landlock": "os stat",
    "sandbox.machine": "_thread os sys",
    "sandbox.reading": "os",
    "sandbox.rulesets": "_thread os stat time",
    "ignore_files": "os",
    "repository": "os",
    "private_files": "os stat",
    "small_files": "os",
    "trees": "os stat",
    "workspace": "os stat",
}
HARMLESS = frozenset(
    "__future__ abc array base64 binascii bisect collections contextlib difflib email enum errno functools hashlib heapq "
    "itertools json math posixpath re struct tomllib types typing unicodedata weakref".split()
)
PURE = (
    "actions", "approval", "auto_rules", "built_in", "destroying", "destroying_git", "destroying_programs", "errors",
    "git_settings", "grants", "log_words", "interrupt", "limits", "log_clocks", "log_order", "matchers",
    "messages", "lint", "model",
    "models.addresses", "models.assembly", "models.cassette", "models.divergence",
    "models.chat_body", "models.chat_calls", "models.chat_echo", "models.chat_finish",
    "models.chat_reply", "models.deadline", "models.endpoint", "models.events", "models.failures", "models.forms",
    "models.lessons",
    "models.presets", "models.provider_text", "models.reply_body", "models.request_body", "models.responses_body",
    "models.responses_echo", "models.responses_items", "models.responses_reply", "models.retries", "models.scripted",
    "models.scripted_responses",
    "models.unread_calls", "models.wire_ids", "models.wire_json",
    "log_schema", "paths", "policy", "record", "rule_examples", "rules", "strict_json", "toml_lines",
    "compaction", "history", "message_records", "rebuilding", "visible", "look_alikes",
    "redaction.beginnings", "redaction.checks", "redaction.forms", "redaction.keys", "redaction.known", "redaction.marks",
    "redaction.shapes",
    "sandbox.attempts", "sandbox.capabilities", "sandbox.requests", "sandbox.system_calls", "sandbox.walls", "undo",
    *(f"run_reports.{name}" for name in "facts junit markdown refused result rows sarif unquoted words".split()),
    *(f"shell.{name}" for name in SHELL),
)  # fmt: skip

THIRD_PARTY = {
    "duckdb": ("cli.audit.sql", "cli.audit.sql_stats"),
    "jsonschema": ("cli.answer_schema",),
    "jsonschema_specifications": ("cli.answer_schema",),
    "openai": ("models.openai_client",),
    "pathspec": ("cli.terminal.file_names", "matchers"),
    "prompt_toolkit": (
        *(f"cli.terminal.{name}" for name in "completion history input_line line_display line_keys".split()),
    ),
    "referencing": ("cli.answer_schema",),
    "rich": (),
}
# Slow to import (10 to 500 ms): never at the top of a module that is on the way of a light command.
HEAVY = frozenset(
    ("argparse", "difflib", "duckdb", "jsonschema", "openai", "pathspec", "prompt_toolkit", "rich", "subprocess")
)
HEAVY_AT_THE_TOP = {
    **dict.fromkeys(("cli.flag_values", "cli.flags"), "argparse"),
    **dict.fromkeys(("cli.repl", "cli.repl_start"), "argparse"),
    **{
        f"cli.terminal.{name}": "prompt_toolkit"
        for name in "completion history input_line line_display line_keys".split()
    },
    **dict.fromkeys(
        ("cli.audit", "cli.demo", "cli.policy", "cli.prompting", "cli.run", "cli.run_end", "cli.setup", "cli.undo"),
        "argparse",
    ),
    "cli.sessions": "argparse",
    **dict.fromkeys(
        ("cli.audit.filters", "cli.audit.list", "cli.audit.logs", "cli.audit.questions", "cli.audit.show"), "argparse"
    ),
}
NEVER = frozenset(("asyncio", "dataclasses", "httpx", "httpx2", "inspect", "pathlib", "pickle", "requests"))


class Import(NamedTuple):
    """One imported module, by its full name."""

    name: str
    line: int
    at_start: bool
    """Whether importing the module imports this: not inside a function, not for type checkers only."""


class Module(NamedTuple):
    """One file of the package."""

    name: str
    """Without `harness.`; of a package, its name; of the outermost one, `harness`."""
    tree: ast.Module
    imports: tuple[Import, ...]

    @property
    def unit(self) -> str:
        """The row of LAYERS that it falls under."""
        return self.name.partition(".")[0]


def modules() -> dict[str, Module]:
    found = {}
    package = os.path.join(ROOT, "harness")
    for folder, _, files in os.walk(package):
        for file in files:
            if file.endswith(".py"):
                path = os.path.join(folder, file)
                name = os.path.relpath(path, package).removesuffix(".py").replace(os.sep, ".")
                name = "harness" if name == "__init__" else name.removesuffix(".__init__")
                with open(path, encoding="utf-8") as source:
                    tree = ast.parse(source.read(), path)
                found[name] = Module(name, tree, tuple(imports_of(tree, at_start=True)))
    return found


def imports_of(node: ast.AST, *, at_start: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, child.lineno, at_start) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: imports are absolute"
            for alias in child.names:
                yield Import(_imported_module(str(child.module), alias.name), child.lineno, at_start)
        lazy = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or _for_type_checkers(child)
        yield from imports_of(child, at_start=at_start and not lazy)


def _for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _imported_module(module: str, name: str) -> str:
    """Return `a.b` for `from a import b` where b is a module of this package, else `a`."""
    path = os.path.join(ROOT, *module.split("."), name)
    is_module = module.split(".", maxsplit=1)[0] == "harness" and (os.path.isdir(path) or os.path.isfile(f"{path}.py"))
    return f"{module}.{name}" if is_module else module


MODULES = modules()
NAMES = sorted(MODULES)


def _own(name: str) -> str | None:
    """Return an imported module without `harness.`, or None for what is not of this package."""
    if name == "harness":
        return name
    return name.removeprefix("harness.") if name.startswith("harness.") else None


def test_every_module_stands_in_the_table() -> None:
    assert {module.unit for module in MODULES.values()} == {*LAYERS, *TOP}


def test_a_row_of_the_table_names_only_rows_above_it() -> None:
    above: set[str] = set()
    upward = []
    for unit, allowed in LAYERS.items():
        upward += [f"{unit} -> {other}" for other in allowed.split() if other not in above]
        above.add(unit)
    assert upward == []


@pytest.mark.parametrize("name", [n for n in NAMES if MODULES[n].unit in LAYERS])
def test_a_module_imports_only_what_its_layer_allows(name: str) -> None:
    module = MODULES[name]
    allowed = {*LAYERS[module.unit].split(), module.unit}
    wrong = [
        f"{name}:{found.line} imports {found.name}"
        for found in module.imports
        if (own := _own(found.name)) is not None and own.partition(".")[0] not in allowed
    ]
    assert wrong == []


def test_every_permission_in_the_table_is_used() -> None:
    used = {
        (module.unit, own.partition(".")[0])
        for module in MODULES.values()
        for found in module.imports
        if (own := _own(found.name)) is not None
    }
    stated = {(unit, other) for unit, row in LAYERS.items() for other in row.split()}
    assert stated - used == set()


@pytest.mark.parametrize("package", SHARED)
def test_the_modules_of_a_package_do_not_import_their_neighbours(package: str) -> None:
    sideways = [
        f"{module.name}:{found.line} imports {found.name}"
        for module in MODULES.values()
        if module.unit == package and module.name != package
        for found in module.imports
        if (own := _own(found.name)) is not None
        and own.startswith(f"{package}.")
        and own.partition(".")[2] not in SHARED[package]
    ]
    assert sideways == []


# What of the command line the screen, the questions and the input line may know: how things look and are said, and nothing
# of what is done with them (the commands, the prompt, its parts).
TERMINAL = frozenset("console effects look trace words".split())


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("cli.terminal")])
def test_the_terminal_knows_nothing_of_what_is_done_with_it(name: str) -> None:
    own = [o for found in MODULES[name].imports if (o := _own(found.name)) is not None]
    first = {o.split(".")[1] for o in own if o.startswith("cli.")} - {"terminal"}
    assert (first - TERMINAL, {"agent", "gate"} & {o.partition(".")[0] for o in own}) == (set(), set())


def test_the_modules_of_shell_import_only_those_before_them() -> None:
    backward = [
        f"{name} imports {found.name}"
        for place, name in enumerate(SHELL)
        for found in MODULES[f"shell.{name}"].imports
        if (own := _own(found.name)) is not None
        and own.startswith("shell.")
        and own.partition(".")[2] not in SHELL[:place]
    ]
    assert backward == []
    assert {f"shell.{name}" for name in SHELL} == {name for name in NAMES if name.startswith("shell.")}


def _powers(module: Module) -> set[str]:
    """Return the standard modules that reach beyond computation, by their first name."""
    tops = {found.name.partition(".")[0] for found in module.imports} - {"harness", *THIRD_PARTY}
    return tops - HARMLESS


@pytest.mark.parametrize("name", [n for n in NAMES if MODULES[n].unit in LAYERS])
def test_a_module_below_the_command_line_has_only_the_powers_in_its_row(name: str) -> None:
    assert _powers(MODULES[name]) == set(POWERS.get(name, "").split())


def _calls_itself_pure(module: Module) -> bool:
    return re.search(r"\bpure\b", ast.get_docstring(module.tree) or "", re.IGNORECASE) is not None


@pytest.mark.parametrize("name", sorted({*PURE, *(m.name for m in MODULES.values() if _calls_itself_pure(m))}))
def test_the_pure_core_and_what_calls_itself_pure_opens_prints_and_reads_nothing(name: str) -> None:
    module = MODULES[name]
    calls = {
        node.func.id for node in ast.walk(module.tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert (name in POWERS, calls & {"open", "print", "input", "exec", "eval", "compile", "__import__"}) == (
        False,
        set(),
    )


def test_nothing_is_said_on_stderr_by_a_write_of_its_own() -> None:
    """Where stderr is full or gone, what is said there must not become the end of a command that did its work."""
    writes = {name for name, module in MODULES.items() if "stderr.write(" in ast.unparse(module.tree)}
    assert writes == {"cli.main", "cli.streams", "cli.github"}


def _uses_of_os(node: ast.AST, function: str = "") -> Iterator[tuple[str, str]]:
    """Yield (function, attribute) for every use of `os.attribute`; `path` is not told, it is arithmetic on names."""
    for child in ast.iter_child_nodes(node):
        inner = child.name if isinstance(child, ast.FunctionDef) else function
        if isinstance(child, ast.Attribute) and isinstance(child.value, ast.Name) and child.value.id == "os":
            yield inner, child.attr
        yield from _uses_of_os(child, inner)


def test_load_policy_is_the_only_function_of_its_module_that_opens_a_file() -> None:
    opening = {function for function, attribute in _uses_of_os(MODULES["policy_file"].tree) if attribute != "path"}
    assert opening == {"load_policy"}


def test_the_workspace_asks_the_disk_only_about_paths() -> None:
    assert {attribute for _, attribute in _uses_of_os(MODULES["workspace"].tree)} <= {
        "path",
        "readlink",
        "fsencode",
        "lstat",
        "access",
        "X_OK",
    }


def test_the_environment_is_read_in_the_command_line_and_by_one_default_of_the_tools() -> None:
    readers = {
        ("cli", "") if module.unit == "cli" else (module.name, function)
        for module in MODULES.values()
        for function, attribute in _uses_of_os(module.tree)
        if attribute in ("environ", "environb", "getenv")
    }
    assert readers == {("cli", ""), ("tools.bash", "__init__")}


@pytest.mark.parametrize("package", THIRD_PARTY)
def test_a_third_party_package_is_imported_only_where_the_design_allows(package: str) -> None:
    importers = {
        module.name
        for module in MODULES.values()
        if any(found.name.partition(".")[0] == package for found in module.imports)
    }
    assert importers == set(THIRD_PARTY[package])


def test_nothing_else_is_imported_from_outside_the_standard_library() -> None:
    outside = {
        f"{module.name} imports {found.name}"
        for module in MODULES.values()
        for found in module.imports
        if (top := found.name.partition(".")[0]) != "harness"
        and top not in sys.stdlib_module_names
        and top not in THIRD_PARTY
    }
    assert outside == set()


def test_argparse_is_only_known_to_the_command_line() -> None:
    importers = {m.unit for m in MODULES.values() if any(found.name == "argparse" for found in m.imports)}
    assert importers == {"cli"}


def test_what_start_up_cannot_afford_is_never_imported() -> None:
    wrong = [
        f"{module.name}:{found.line} imports {found.name}"
        for module in MODULES.values()
        for found in module.imports
        if found.name.partition(".")[0] in NEVER
    ]
    assert wrong == []


def test_heavy_packages_are_imported_by_the_function_that_first_needs_them() -> None:
    at_the_top = {
        module.name: " ".join(sorted(heavy))
        for module in MODULES.values()
        if (heavy := {found.name.partition(".")[0] for found in module.imports if found.at_start} & HEAVY)
    }
    assert at_the_top == HEAVY_AT_THE_TOP


@pytest.mark.parametrize("name", [n for n in NAMES if n != "__main__"])
def test_nothing_happens_when_a_module_is_imported(name: str) -> None:
    """Only definitions, imports and assignments stand at the top; a text that stands alone is a docstring."""
    quiet = (
        ast.AnnAssign, ast.Assign, ast.ClassDef, ast.FunctionDef, ast.Import, ast.ImportFrom,
    )  # fmt: skip
    loud = [
        f"{name}:{node.lineno}: {type(node).__name__}"
        for node in MODULES[name].tree.body
        if not (
            isinstance(node, quiet)
            or _for_type_checkers(node)
            or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        )
    ]
    assert loud == []


def test_only_the_gate_makes_permits_and_seals() -> None:
    makers = {
        (module.name, node.func.id if isinstance(node.func, ast.Name) else node.func.attr)
        for module in MODULES.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name | ast.Attribute)
        and (node.func.id if isinstance(node.func, ast.Name) else node.func.attr) in ("Permit", "_Seal")
    }
    assert makers == {("gate", "Permit"), ("gate", "_Seal")}


def test_only_the_registry_calls_the_body_of_a_tool() -> None:
    """`redeem` is what stands between a permit and a run; nothing else in the package calls it."""
    redeemers = {
        module.name
        for module in MODULES.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and node.attr == "redeem"
    }
    assert redeemers == {"tool"}


def _loaded(code: str, tmp_path: object) -> set[str]:
    """Return which of the heavy packages are loaded after `code` ran in a process of its own."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_STATE_HOME": f"{tmp_path}/state"}
    script = f"{code}\nimport json, sys\nsys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        cwd=ROOT,
    )
    return set(json.loads(done.stderr.splitlines()[-1])) & {"openai", "rich", "prompt_toolkit", "httpx", "httpx2"}


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("import harness", id="import harness"),
        pytest.param("from harness import Agent, load_policy", id="from harness import Agent, load_policy"),
        pytest.param("from harness import *", id="every public name"),
        pytest.param(
            "from harness.models.openai_chat import OpenAIChat; OpenAIChat('m')", id="an adapter not yet used"
        ),
        pytest.param("from harness.cli.main import main; main(['--version'])", id="harness --version"),
        pytest.param("from harness.cli.main import main; main(['audit', 'list'])", id="harness audit list"),
        pytest.param(
            "from harness.cli.main import main; main(['policy', 'explain', 'ls -la'])", id="harness policy explain"
        ),
        pytest.param("from harness.cli.main import main; main(['policy', 'check', 'ci'])", id="harness policy check"),
    ],
)
def test_light_uses_load_neither_openai_nor_rich_nor_prompt_toolkit(code: str, tmp_path: object) -> None:
    assert _loaded(code, tmp_path) == set()


def test_the_heavy_packages_are_noticed_when_they_are_loaded(tmp_path: object) -> None:
    """The test above would see them: this one loads one on purpose."""
    assert _loaded("import prompt_toolkit", tmp_path) == {"prompt_toolkit"}


def test_the_public_names_are_sorted_and_each_can_be_had() -> None:
    assert (sorted(harness.__all__), [n for n in harness.__all__ if not hasattr(harness, n)]) == (harness.__all__, [])


def test_type_checkers_and_the_interpreter_find_each_public_name_in_the_same_module() -> None:
    for_type_checkers = {
        alias.name: node.module
        for guarded in MODULES["harness"].tree.body
        if _for_type_checkers(guarded)
        for node in ast.walk(guarded)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert for_type_checkers == {name: harness._HOME_OF[name] for name in harness.__all__}
