"""openai imported sparingly: little of it is there, all of it can be had; an openai of another build is imported whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from places import ROOT

from harness.models.loopback import ScriptServer
from harness.models.scripted import Player, replies, say

PLAIN = "import openai"
SPARING = "from harness.models.sparing_import import import_openai; import_openai(); import openai"

NAMES = """
import importlib, json, os, sys
found = {}
for top in (openai.types, openai.lib):
    for folder, _, files in sorted(os.walk(top.__path__[0])):
        if "__init__.py" in files and folder != "__pycache__":
            below = os.path.relpath(folder, top.__path__[0])
            name = top.__name__ + ("" if below == "." else "." + below.replace(os.sep, "."))
            module = importlib.import_module(name)
            asked = json.loads(sys.stdin.readline()) if SPARING else sorted(vars(module))
            found[name] = {
                one: (getattr(value, "__module__", ""), getattr(value, "__qualname__", repr(value)))
                for one in asked if not one.startswith("__") for value in [getattr(module, one)]
            }
print(json.dumps(found))
"""


REFUSES_TO_BE_SPARED = {
    "__init__.py": "from . import types\nprint('Chat' in vars(types))\nvars(types)['Chat']\n",
    "types/__init__.py": "from .chat import Chat as Chat\n",
    "types/chat.py": "class Chat: ...\n",
}


def _python(program: str, *, given: str = "", path: Path | str = ROOT, arguments: tuple[str, ...] = ()) -> str:
    """Return what a new interpreter prints that runs `program`, with the modules of `path` before all others."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), ROOT])}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _names(begin: str, asked: str = "") -> dict[str, dict[str, Any]]:
    program = f"{begin}\nSPARING = {bool(asked)}\n{NAMES}"
    found: dict[str, dict[str, Any]] = json.loads(_python(program, given=asked))
    return found


def test_sparing_import_gives_the_same_objects_as_a_plain_one() -> None:
    plain = _names(PLAIN)
    sparing = _names(SPARING, "".join(f"{json.dumps(list(names))}\n" for names in plain.values()))
    assert sum(map(len, plain.values())) > 500
    assert sparing == plain


def test_the_data_classes_are_not_there() -> None:
    count = "import sys; print(sum(name.startswith('openai.types.') for name in sys.modules))"
    few, many = (int(_python(f"{begin}\n{count}")) for begin in (SPARING, PLAIN))
    assert few < many / 4
    absent = "import sys; print('openai.types.responses.response' in sys.modules)"
    assert _python(f"{SPARING}\n{absent}") == "False\n"


def test_sparing_import_leaves_no_finder() -> None:
    finders = "import sys; print(any('sparing' in type(finder).__module__ for finder in sys.meta_path))"
    loader = "print(openai.types.__loader__ is openai.types.__spec__.loader, type(openai.types.__loader__).__name__)"
    assert _python(f"{SPARING}\n{finders}; {loader}") == "False\nTrue SourceFileLoader\n"


def test_names_of_a_package_are_listed_and_imported_by_star() -> None:
    told = "print(sorted(name for name in dir(openai.types.chat) if name[0].isupper()))"
    taken = "from openai.types.chat import *; print(ChatCompletion.__name__, ChatCompletionChunk.__name__)"
    assert _python(f"{SPARING}\n{told}\n{taken}") == _python(f"{PLAIN}\nimport openai.types.chat\n{told}\n{taken}")


def test_two_threads_import_it_once_though_it_must_be_imported_as_always(tmp_path: Path) -> None:
    path = _made(tmp_path, REFUSES_TO_BE_SPARED)
    both = """
import sys, threading
from harness.models.sparing_import import import_openai
sys.setswitchinterval(1e-6)
errors = []
threading.excepthook = lambda told: errors.append(told.exc_value)
threads = [threading.Thread(target=import_openai) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(errors, sys.modules["openai"].types.Chat.__name__)
"""
    assert _python(both, path=path).splitlines()[-1] == "[] Chat"


def test_the_typed_calls_of_the_package_work_afterwards() -> None:
    typed = """
import pydantic, sys
client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
asked = [{"role": "user", "content": "go"}]
for chunk in client.chat.completions.create(model="m", stream=True, messages=asked):
    if chunk.choices and chunk.choices[0].delta.content:
        print(type(chunk).__name__, chunk.choices[0].delta.content)
class Asked(pydantic.BaseModel):
    place: str
print(openai.pydantic_function_tool(Asked)["function"]["name"], openai.types.responses.Response.__name__)
"""
    with ScriptServer(Player(replies(say("done")))) as server:
        printed = _python(f"{SPARING}\n{typed}", arguments=(server.base_url,))
    assert printed == "ChatCompletionChunk done\nAsked Response\n"


def _made(folder: Path, files: dict[str, str]) -> Path:
    """Write modules of an openai of our own into a folder, and return it."""
    for name, text in files.items():
        path = folder / "openai" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_package_with_other_code_is_executed_immediately(tmp_path: Path) -> None:
    path = _made(
        tmp_path,
        {
            "__init__.py": "from . import types\n",
            "types/__init__.py": "from .chat import Chat\nprint('run')\n",
            "types/chat.py": "class Chat: ...\n",
        },
    )
    assert _python(f"{SPARING}\nprint('imported')", path=path) == "run\nimported\n"


def test_a_version_that_cannot_be_imported_so_is_imported_as_always(tmp_path: Path) -> None:
    path = _made(tmp_path, REFUSES_TO_BE_SPARED)
    assert _python(f"{SPARING}\nprint(openai.types.Chat.__name__)", path=path) == "False\nTrue\nChat\n"


def test_broken_package_is_reported_with_the_reason(tmp_path: Path) -> None:
    path = _made(
        tmp_path, {"__init__.py": "from . import types\n", "types/__init__.py": "from .gone import Chat\nChat\n"}
    )
    program = f"try:\n    {SPARING}\nexcept ModuleNotFoundError as error:\n    print(error)"
    assert _python(program, path=path) == "No module named 'openai.types.gone'\n"
