"""The program's own code where calls may write: what is loaded later is what it was, or the session ends."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from places import ROOT
from program import made_program
from rows import all_rows
from run_scene import bash, written

from harness.models.scripted import Reply, call, replies, say
from harness.process.environment import leads_through, program_outside
from harness.sandbox import bubblewrap
from harness.session.exits import Exit
from policies import AUTO

if TYPE_CHECKING:
    from program import Program


class Installed(NamedTuple):
    """A virtual environment in the workspace, with the program in it, and its dependencies elsewhere."""

    python: Path
    packages: Path

    @property
    def package(self) -> Path:
        """The folder of the program."""
        return self.packages / "harness"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment to copy."""
    folder = tmp_path_factory.mktemp("environment") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    for name, place in (("harness", "harness"), ("policies", "harness/policies")):
        subprocess.run(["cp", "-r", f"{ROOT}/{name}", str(packages / place)], check=True)
    site = sysconfig.get_path("purelib")
    (packages / "dependencies.pth").write_text(f"import site; site.addsitedir({site!r})\n")
    return folder


def installed_in(folder: Path, source: Path, name: str = "env") -> Installed:
    """Copy the environment into a folder."""
    subprocess.run(["cp", "-r", str(source), str(folder / name)], check=True)
    (packages,) = (folder / name).glob("lib/python3*/site-packages")
    return Installed(folder / name / "bin" / "python", packages)


def mark(ran: Path) -> str:
    """Return code that notes that it ran, and whether it saw the key."""
    return f"\nimport os\nopen({str(ran)!r}, 'a').write(f'{{__name__}} {{\"OPENAI_API_KEY\" in os.environ}}\\n')\n"


def run(program: Program, installed: Installed, url: str, *words: str) -> subprocess.CompletedProcess[str]:
    flags = ("--base-url", url, "--model", "scripted", "--report", f"md:{program.home}/report.md", *words)
    return subprocess.run(
        [str(installed.python), "-m", "harness", "run", "go", *flags],
        cwd=program.workspace, capture_output=True, text=True, check=False, timeout=300,
        env={**program.environment, "OPENAI_API_KEY": "sk-never-seen-by-a-test"},
    )  # fmt: skip


@pytest.mark.parametrize("name", ["env", ".venv"])
def test_a_test_that_rewrites_the_program_is_not_run_by_it(
    program: Program, source: Path, tmp_path: Path, name: str
) -> None:
    """Where the walls can keep the environment as it is, nothing is changed; elsewhere the session ends with 1."""
    installed, ran = installed_in(program.workspace, source, name), tmp_path / "ran"
    written(
        program.workspace / "test_mini.py",
        f"import pathlib\nfor path in pathlib.Path({str(installed.package)!r}).rglob('*.py'):\n"
        f"    path.open('a').write({mark(ran)!r})\n",
    )
    url = program.serve(replies(bash("python3 -m unittest -q test_mini"), bash("rm x"), say("Done.")))
    done = run(program, installed, url, "--policy", "ci")
    assert not ran.exists(), ran.read_text()
    is_changed = "OPENAI_API_KEY' in" in (installed.package / "plugins" / "insight" / "stats.py").read_text()
    assert done.returncode == (Exit.INTERNAL if is_changed else Exit.REFUSED), done.stderr
    assert ("since a call of this session could first write there" in done.stderr) is is_changed
    errors = [record for record in program.records() if record["kind"] == "error"]
    assert [record["where"] for record in errors] == ["gate"] * is_changed


def test_a_module_that_write_file_changed_ends_the_run(program: Program, source: Path, tmp_path: Path) -> None:
    installed, ran = installed_in(program.workspace, source), tmp_path / "ran"
    changed = installed.package / "programs" / "shells.py"
    calls = (
        call("read_file", path=str(changed)),
        call("write_file", path=str(changed), content=mark(ran)),
        call("bash", command="bash -c 'ls'"),
        call("bash", command="touch never"),
    )
    policy = written(program.home / "policy.toml", AUTO)
    done = run(program, installed, program.serve(replies(Reply(calls=calls), say("Done."))), "--policy", policy)
    assert (done.returncode, ran.exists()) == (Exit.INTERNAL, False), done.stderr
    assert f"{changed} was changed" in done.stderr
    assert not (program.workspace / "never").exists()
    last = program.records()[-1]
    assert (last["kind"], last["stop"], last["exit_code"]) == ("session_ended", "gate_error", 1)
    assert str(changed) in json.dumps(program.records())


AS_PROGRAM = "import harness\nharness.is_program = True\n"
LATER = """\
import subprocess, sys
from harness.process.own_code import own_code
from harness.errors import ChangedCodeError
own_code().note_before((sys.argv[1],))
subprocess.run([sys.executable, "-I", "-c", sys.argv[2]], check=True)
try:
    import harness.plugins.insight.stats as stats
    print("as it was" if stats.statistics_of else "other")
except ChangedCodeError as error:
    print("refused", error)
"""
ATTACK = """\
import mmap, os, pathlib, py_compile, shutil, struct, sys, time
module = pathlib.Path({module!r}); folder = module.parent; root = folder.parent
mark = {mark!r}; status = module.stat(); cached = folder / "__pycache__" / f"stats.{{sys.implementation.cache_tag}}.pyc"
def as_before(): os.utime(module, ns=(status.st_atime_ns, status.st_mtime_ns))
"""
ATTACKS = {
    "a line more": ("module.open('a').write(mark)", "refused"),
    "another of the same size and time": (
        "text = module.read_text(); module.write_text((mark + '#' * len(text))[:len(text)]); as_before()", "refused",
    ),
    "another in its place": ("(folder / 'x').write_text(mark); os.replace(folder / 'x', module); as_before()", "refused"),
    "a write through a mapping that was read first": (
        ("file = module.open('r+b'); text = mmap.mmap(file.fileno(), 0); text[0]; time.sleep(0.02)\n"
        "text[:len(mark)] = mark.encode(); text.flush(); as_before()"), "refused",
    ),
    "a link in its place": ("module.unlink(); (root / 'x').write_text(mark); module.symlink_to(root / 'x')", "refused"),
    "its folder replaced": (
        ("shutil.copytree(folder, root / 'x'); (root / 'x' / 'stats.py').write_text(mark); folder.rename(root / 'y'); "
        "(root / 'x').rename(folder)"), "refused",
    ),
    "removed": ("module.unlink()", "refused"),
    "a pipe in its place": ("module.unlink(); os.mkfifo(module)", "refused"),
    "bytecode with the right header": (
        ("(root / 'x.py').write_text(mark); py_compile.compile(root / 'x.py', cached); data = cached.read_bytes(); "
        "cached.write_bytes(data[:8] + struct.pack('<II', int(status.st_mtime), status.st_size) + data[16:])"), "as it was",
    ),
    "a package of its name": ("(folder / 'stats').mkdir(); (folder / 'stats' / '__init__.py').write_text(mark)", "as it was"),
    "a compiled module of its name": ("(folder / 'stats.abi3.so').write_text('none')", "as it was"),
    "another module": ("(folder / 'stats2.py').write_text(mark)", "as it was"),
    "nothing": ("pass", "as it was"),
}  # fmt: skip


@all_rows(("code", "end"), list(ATTACKS.values()), ids=list(ATTACKS), anew={"program": made_program})
def test_a_module_is_loaded_as_it_was_noted(
    program: Program, source: Path, tmp_path: Path, code: str, end: str
) -> None:
    installed, ran = installed_in(program.workspace, source), tmp_path / "ran"
    attack = ATTACK.format(module=str(installed.package / "plugins" / "insight" / "stats.py"), mark=mark(ran)) + code
    done = subprocess.run(
        [str(installed.python), "-I", "-c", AS_PROGRAM + LATER, str(program.workspace), attack],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.stdout[: len(end)], ran.exists()) == (end, False), done


def script(program: Program, installed: Installed, text: str, *words: str) -> str:
    """Run Python code in the environment; return what it printed."""
    done = subprocess.run(
        [str(installed.python), "-I", "-c", AS_PROGRAM + text, str(program.workspace), *words],
        capture_output=True, text=True, check=False, timeout=120, env=program.environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


AGAIN = """\
import os, subprocess, sys
from harness.process.own_code import own_code
from harness.errors import ChangedCodeError
from harness.process.guard import guard
own_code().note_before((sys.argv[1],))
guard().wait_until_loaded()
first = guard()._pid
exec(sys.argv[2])
os.kill(first, 9)
os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
try:
    guard().wait_until_loaded()
    print("started", guard()._pid not in (0, first))
except ChangedCodeError as error:
    print("refused", error)
"""
CHANGES: Mapping[str, tuple[str, str]] = {
    "nothing": ("", "started True"),
    "bytecode": ("import harness.plugins.insight.stats", "started True"),
    "its module": (
        "open('{package}/process/guard.py', 'a').write('#')",
        "refused {package}/process/guard.py was changed",
    ),
    "a start file": ("open('{packages}/a.pth', 'w').write('import x')", "refused {packages}/a.pth is new"),
    "a module first": ("open('{packages}/sitecustomize.py', 'w')", "refused {packages}/sitecustomize.py is new"),
    "the interpreter": ("os.unlink('{python}'); os.symlink('/bin/true', '{python}')", "refused {python} was changed"),
    "its configuration": ("open('{environment}/pyvenv.cfg', 'a').write('home=/x')", "refused {environment}/pyvenv.cfg"),
}


@all_rows(("code", "end"), list(CHANGES.values()), ids=list(CHANGES), anew={"program": made_program})
def test_a_python_is_started_again_as_it_was(program: Program, source: Path, code: str, end: str) -> None:
    installed = installed_in(program.workspace, source)
    places = {
        "package": installed.package,
        "packages": installed.packages,
        "python": installed.python,
        "environment": installed.python.parent.parent,
    }
    assert script(program, installed, AGAIN, code.format(**places)).startswith(end.format(**places))


KEEPER = """\
import os, sys
if sys.argv[2] == "checkout":
    sys.path.insert(0, sys.argv[1])
    for name in [name for name in sys.modules if name.partition(".")[0] == "harness"]:
        del sys.modules[name]
    import harness
    harness.is_program = True
from harness.errors import ChangedCodeError
from harness.process.own_code import own_code
from harness.process.procfs import children
from harness.sandbox.keeper import keeper
assert harness.__file__.startswith(sys.argv[1])
own_code().note_before((sys.argv[1],))
if keeper().why_not():
    print("no namespaces")
    sys.exit()
(first,) = children(os.getpid())
exec(sys.argv[3])
os.kill(first, 9)
os.waitpid(first, 0)
try:
    print("started", not keeper().why_not() and children(os.getpid()) != {first})
except ChangedCodeError as error:
    print("refused", error)
"""


@all_rows(
    ("place", "change", "end"),
    [
        ("environment", "", "started True"),
        ("environment", "harness/sandbox/keeper_process.py", "refused {changed} was changed"),
        ("environment", "harness/sandbox/new.py", "refused {changed} is new"),
        ("checkout", "", "started True"),
        ("checkout", "harness/sandbox/keeper_process.py", "refused {changed} was changed"),
        ("checkout", "harness/sandbox/new.py", "refused {changed} is new"),
    ],
    anew={"program": made_program},
)
def test_a_keeper_is_started_again_as_it_was(program: Program, source: Path, place: str, change: str, end: str) -> None:
    installed = installed_in(program.workspace if place == "environment" else program.home, source)
    if place == "checkout":
        subprocess.run(["cp", "-r", f"{ROOT}/harness", str(program.workspace)], check=True)
    changed = (installed.packages if place == "environment" else program.workspace) / change
    code = f"open({str(changed)!r}, 'a').write({mark(program.home / 'ran')!r})" if change else ""
    said = script(program, installed, KEEPER, place, code)
    if said == "no namespaces\n":
        pytest.skip("no namespaces here")
    assert said.startswith(end.format(changed=changed)), said
    assert not (program.home / "ran").exists()


MAPPED = """\
import ctypes, os, shutil, sys
from harness.process.own_code import own_code
path = sys.argv[2] + "/copied.so"
shutil.copy(sys.argv[3], path)
library = ctypes.CDLL(path)
def code():
    lines = [line.split() for line in open("/proc/self/maps") if line.rstrip().endswith(path)]
    spans = [[int(number, 16) for number in fields[0].split("-")] for fields in lines if fields[1][:3] == "r-x"]
    return [ctypes.string_at(start, end - start) for start, end in spans]
before = code()
if sys.argv[4] == "noted":
    own_code().note_before((sys.argv[1],))
with open(path, "r+b") as file:
    size = len(file.read())
    file.seek(0)
    file.write(bytes(size))
print(bool(before), code() == before, flush=True)
os._exit(0)  # the code that ends it is gone
"""


LIBRARY = """\
import subprocess, sys
from harness.process.own_code import own_code
harness.is_program = False
own_code().note_before((sys.argv[1],))
open(sys.argv[2] + "/made.py", "w").write("print('made')")
import made
"""


def test_program_using_the_library_can_import_workspace_modules(program: Program, source: Path) -> None:
    installed = installed_in(program.workspace, source)
    assert script(program, installed, LIBRARY, str(installed.packages)) == "made\n"


NAMESPACE = """\
import os, sys
from harness.process.own_code import own_code
own_code().note_before((sys.argv[1],))
import spaces.deep.module
print(spaces.deep.module.WORD, os.__file__ in own_code()._digests)
"""


def test_a_package_that_holds_folders_alone_is_found(program: Program, source: Path) -> None:
    installed = installed_in(program.workspace, source)
    (installed.packages / "spaces" / "deep").mkdir(parents=True)
    (installed.packages / "spaces" / "deep" / "module.py").write_text("WORD = 'found'\n")
    assert script(program, installed, NAMESPACE, str(installed.packages)) == "found False\n"


EVERYTHING = """import os
from harness.process.own_code import own_code
own_code().note_before(None)
below = os.path.dirname(os.__file__) + "/site-packages/"
print(os.__file__ in own_code()._digests, [path for path in own_code()._digests if path.startswith(below)])
"""


def test_packages_that_the_environment_cannot_import_are_not_recorded(program: Program, source: Path) -> None:
    """The interpreter's own packages, which may be many, lie in the folder of Python's library."""
    assert script(program, installed_in(program.workspace, source), EVERYTHING) == "True []\n"


@pytest.mark.parametrize("is_noted", [True, False])
def test_compiled_code_in_memory_stays_as_it_was_loaded(program: Program, source: Path, *, is_noted: bool) -> None:
    """Without a note a write into the file shows in memory: the proof that the attack works."""
    installed = installed_in(program.workspace, source)
    with open("/proc/self/maps", encoding="utf-8") as file:
        library = next(
            line.rstrip().split(maxsplit=5)[-1] for line in file if line.rstrip().endswith(".so") and " r-xp " in line
        )
    word = "noted" if is_noted else "not noted"
    assert script(program, installed, MAPPED, str(installed.packages), library, word) == f"True {is_noted}\n"


CHECKOUT = """\
import sys
sys.path.insert(0, sys.argv[1])
for name in [name for name in sys.modules if name.partition(".")[0] == "harness"]:
    del sys.modules[name]
import harness
harness.is_program = True
from harness.errors import ChangedCodeError
from harness.process.own_code import own_code
from harness.policy.loader import SHIPPED, shipped_policy_path
own_code().note_before((sys.argv[1],))
for name in SHIPPED:
    own_code().check(shipped_policy_path(name))
open(shipped_policy_path("ci"), "a").write("#")
try:
    own_code().check(shipped_policy_path("ci"))
except ChangedCodeError as error:
    print(error)
"""


def test_shipped_policies_of_a_checkout_are_noted(program: Program, source: Path) -> None:
    installed = installed_in(program.home, source)
    for name in ("harness", "policies"):
        subprocess.run(["cp", "-r", f"{ROOT}/{name}", str(program.workspace / name)], check=True)
    changed = program.workspace / "policies" / "ci.toml"
    assert script(program, installed, CHECKOUT).startswith(f"{changed} was changed")


DOCTOR = """\
import json, os, subprocess, sys
for folder in (sys.argv[1], "/"):
    words = [sys.executable, "-I", "-m", "harness", "doctor", "--json"]
    done = subprocess.run(words, cwd=folder, capture_output=True, check=False)
    found = json.loads(done.stdout)
    inside = set(found["own_code_in_folder"])
    print(inside == set(found["own_code"]) if folder == "/" else inside == {sys.prefix})
"""


def test_doctor_names_the_own_code_that_a_command_could_write(program: Program, source: Path) -> None:
    assert script(program, installed_in(program.workspace, source), DOCTOR) == "True\nTrue\n"


KEPT = """\
import sys
from harness.actions import Effects
from harness.files.workspace import Workspace
from harness.process.own_code import own_code
from harness.record import replace
from harness.sandbox import probe
from harness.tools.command_walls import CommandWalls
for bubblewrap, noted in ((None, False), ("", True)):
    machine = replace(probe(), bubblewrap=bubblewrap, no_namespaces=None if bubblewrap is None else "off")
    walls = CommandWalls(Workspace(sys.argv[1]), machine=machine)
    effects = Effects(read=None, write=None, granted=(".",), network=False, unasked=False)
    with walls.confinement(effects, lambda: sys.argv[2]) as confinement:
        print(confinement.walls.keep == (sys.prefix,) * (not noted), own_code().is_noted == noted)
"""


def test_walls_keep_the_environment_and_its_code_is_noted_where_they_cannot(
    program: Program, source: Path, tmp_path: Path
) -> None:
    if not bubblewrap.find():
        pytest.skip("bubblewrap does not work here")
    assert script(program, installed_in(program.workspace, source), KEPT, str(tmp_path)) == "True True\nTrue True\n"


def test_link_in_the_workspace_is_not_a_program_of_the_user(tmp_path: Path) -> None:
    """A command could lead it elsewhere, wherever it leads now."""
    workspace, elsewhere = tmp_path / "workspace", tmp_path / "elsewhere"
    for folder in (workspace, elsewhere):
        folder.mkdir()
    (elsewhere / "way").symlink_to(workspace)
    for name in ("true", "python3"):
        (workspace / name).symlink_to("/bin/true")
    (elsewhere / "true").symlink_to("/bin/true")
    for path, through in (
        (workspace / "true", True),
        (elsewhere / "way" / "true", True),
        (elsewhere / "true", False),
        (Path("/bin/true"), False),
    ):
        assert leads_through(str(path), str(workspace)) is through, path
        found = program_outside(str(workspace), str(path), {"PATH": "/bin"})
        assert found == (None if through else str(path))
