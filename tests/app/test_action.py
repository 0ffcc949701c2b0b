"""action.yml and the examples for CI: read as a runner reads them, and their steps run in order with the real program."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import demo_cassette
import pytest
import yaml
from places import ROOT
from program import made_program
from rows import all_rows
from runner_commands import Step, outputs_in

from harness.app.command_line import parser_for
from harness.models.scripted import Reply, call, replies, say
from harness.policy.loader import load_policy
from policies import AUTO

if TYPE_CHECKING:
    from program import Program

HARNESS = Path(sys.executable).parent / "harness"
EXAMPLES = ("github-actions.yml", "gitlab-ci.yml", "ci.sh")
_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}")
POLICY = 'version = 1\nname = "theirs"\n[tools]\nbash = "deny"\ndefault = "auto"\n'


def action() -> dict[str, Any]:
    loaded = yaml.safe_load((Path(ROOT) / "action.yml").read_text())
    assert isinstance(loaded, dict)
    return loaded


STEPS = action()["runs"]["steps"]


class Job(NamedTuple):
    """What came of the action's steps."""

    outputs: dict[str, str]
    codes: dict[str, int]
    """Of the steps that ran, by their name."""
    printed: str
    annotations: list[str]
    uploaded: list[dict[str, str]]
    temp: Path


class Runner:
    """Runs the steps of the action as a GitHub Actions runner does; `uses:` steps are only noted."""

    def __init__(self, program: Program, folder: Path) -> None:
        self.program = program
        self.temp = folder / "temp"
        self.temp.mkdir()
        self.environment = {
            **program.environment,
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(Path(ROOT)),
            "GITHUB_WORKSPACE": str(program.workspace),
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_TOKEN": "ghs_secret",
            "GITHUB_SERVER_URL": f"file://{folder}",
            "GITHUB_REPOSITORY": "server.git",
        }
        self._outputs: dict[str, dict[str, str]] = {}
        self._outcomes: dict[str, str] = {}
        self._inputs: dict[str, str] = {}
        self._failed = False
        self._number = 0

    def run(self, **inputs: str) -> Job:
        """Run all steps with these inputs (`_` for `-`), the others as their defaults say."""
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        known = action()["inputs"]
        assert given.keys() <= known.keys()
        self._inputs = {name: given.get(name, str(what.get("default", ""))) for name, what in known.items()}
        self._outputs, self._outcomes, self._failed = {}, {}, False
        codes: dict[str, int] = {}
        annotations: list[str] = []
        uploaded: list[dict[str, str]] = []
        printed = ""
        for step in STEPS:
            if not self._wanted(step.get("if", "success()")):
                continue
            if "uses" in step:
                uploaded.append({key: self._filled(str(value)) for key, value in step["with"].items()})
                continue
            code, out, err, told = self._step(step)
            codes[step["name"]] = code
            printed += out + err
            read = Step()
            read.read(out)
            read.read(err)
            annotations += [f"{one.name}: {one.data}" for one in read.obeyed]
            self._outputs[step["id"]] = told
            self._outcomes[step["id"]] = "failure" if code else "success"
            self._failed = self._failed or code != 0
        outputs = {name: self._filled(what["value"]) for name, what in action()["outputs"].items()}
        return Job(outputs, codes, printed, annotations, uploaded, self.temp)

    def _step(self, step: Mapping[str, Any]) -> tuple[int, str, str, dict[str, str]]:
        self._number += 1
        names = ("step.sh", "set_output", "step_summary")
        script, output, summary = (self.temp / f"{name}_{self._number}" for name in names)
        script.write_text(step["run"])
        output.touch()
        summary.touch()
        environment = {name: self._filled(value) for name, value in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.program.workspace,
            env={**self.environment, "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary), **environment},
            stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120,
        )  # fmt: skip
        return done.returncode, done.stdout.decode(), done.stderr.decode(), outputs_in(output.read_text())

    def _filled(self, text: str) -> str:
        return _EXPRESSION.sub(lambda found: str(self._value(found.group(1))), text)

    def _wanted(self, condition: str) -> bool:
        """Evaluate an `if:`; without always() a step runs only if none before it failed."""
        return bool(self._value(condition)) and ("always()" in condition or not self._failed)

    def _value(self, expression: str) -> object:
        """Evaluate the little of the expression language that the action uses."""

        def looked_up(found: re.Match[str]) -> str:
            match found.group().split("."):
                case ["inputs", name]:
                    return repr(self._inputs[name])
                case ["steps", step, "outputs", name]:
                    assert step in {one.get("id") for one in STEPS}
                    return repr(self._outputs.get(step, {}).get(name, ""))
                case ["steps", step, "outcome"]:
                    return repr(self._outcomes.get(step, "skipped"))
                case ["github", "token"]:
                    return repr("ghs_secret")
                case _:
                    raise AssertionError(f"the test knows no {found.group()}")

        python = re.sub(r"(?:inputs|steps|github)\.[\w.-]+", looked_up, expression)
        python = re.sub(r"\b(?:always|success)\(\)", "True", python).replace("&&", " and ").replace("||", " or ")
        return eval(python.strip(), {"__builtins__": {}})


@pytest.fixture
def runner(program: Program, tmp_path: Path) -> Runner:
    return Runner(program, tmp_path)


def repository(program: Program, **files: str) -> str:
    """Make the workspace a repository with one commit, and return its name."""
    for name, content in files.items():
        path = program.workspace / name.replace("__", "/").replace("_toml", ".toml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    git = ["git", "-C", str(program.workspace), "-c", "user.name=a", "-c", "user.email=a@b.example"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *words], check=True, env=program.environment)
    done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_action_inputs_are_never_written_into_a_script() -> None:
    """Script injection: what stands in ${{ }} is pasted in before bash reads it; so it stands in env and with alone."""
    for step in STEPS:
        assert "${{" not in step.get("run", "") + step.get("shell", "") + step["name"], step["name"]
        assert ("run" in step) != ("uses" in step)
        assert step.get("shell") == ("bash" if "run" in step else None)


# What the tags of these repositories name: looked up there, never guessed.
PINS = {
    "actions/checkout": "3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1",
    "actions/upload-artifact": "bbbca2ddaa5d8feaa63e36b76fdaad77386f024f # v7.0.0",
    "actions/download-artifact": "3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c # v8.0.1",
    "github/codeql-action/upload-sarif": "8aad20d150bbac5944a9f9d289da16a4b0d87c1e # v4.36.2",
}


def test_used_actions_are_pinned_by_hash_and_version() -> None:
    names = [
        "action.yml",
        "README.md",
        *(f"{folder}/*.{kind}" for folder, kind in (("examples", "yml"), ("docs", "md"))),
    ]
    texts = {path: path.read_text() for name in names for path in Path(ROOT).glob(name)}
    used = {path: re.findall(r"uses: (?!OWNER/)([\w/-]+)@(.*)$", text, re.MULTILINE) for path, text in texts.items()}
    assert len([path for path, found in used.items() if found]) >= 3
    for path, found in used.items():
        assert found == [(action, PINS[action]) for action, _ in found], path


def test_every_name_in_the_action_is_declared() -> None:
    text = (Path(ROOT) / "action.yml").read_text()
    declared = action()
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(declared["inputs"])
    assert all(what["description"] for what in (*declared["inputs"].values(), *declared["outputs"].values()))
    assert set(declared["outputs"]) == {"end", "exit-code", "refused", "blocked", "log-path", "log-head", "patch"}
    for step in STEPS:
        used = set(re.findall(r"\bINPUT_[A-Z_0-9]+\b", step.get("run", "")))
        assert used == set(step.get("env", {})), step["name"]


def test_a_run_of_the_action(program: Program, runner: Runner) -> None:
    """Done but refused: the step fails with 7, the log and its head are kept all the same."""
    base = repository(program, ci__policy_toml=POLICY)
    (program.workspace / "ci" / "policy.toml").write_text(AUTO)
    prompt = '- $(touch pwned) `touch pwned`"; touch pwned; echo "\n::set-output name=end::forged {{x}}'
    url = program.serve(replies(Reply(calls=(call("bash", command="touch made"),)), say("::error::forged")))
    job = runner.run(
        command=str(HARNESS), prompt=prompt, policy="ci/policy.toml", policy_ref=base, base_url=url, api_key="sk-secret-key-1",
        args="--max-turns=5\r\n\n  --report=md:../report of $(touch pwned).md\n",
    )  # fmt: skip
    assert (job.codes["Run harness"], job.codes["Keep the log and its head"]) == (7, 0), job.printed
    assert [(program.workspace / name).exists() for name in ("made", "pwned")] == [False, False]
    assert (program.workspace.parent / "report of $(touch pwned).md").exists()
    request = program.players[0].requests[0]
    messages = request["messages"]
    assert isinstance(messages, list)
    assert any(prompt in str(message["content"]) for message in messages if isinstance(message, dict))
    assert {**job.outputs, "log-path": "", "log-head": ""} == {
        "end": "completed", "exit-code": "7", "refused": "1", "blocked": "0", "log-path": "", "log-head": "", "patch": "",
    }  # fmt: skip
    assert [one.partition(":")[0] for one in job.annotations] == ["warning"]
    (upload,) = job.uploaded
    kept = Path(upload["path"])
    assert (upload["name"], sorted(os.listdir(kept))) == ("harness-log", ["head.txt", "log.jsonl"])
    head = (kept / "head.txt").read_text().strip()
    checked = program.run("audit", "verify", str(kept / "log.jsonl"), "--head", head)
    assert (checked.code, head) == (0, job.outputs["log-head"])
    assert ("sk-secret-key-1" in job.printed, b"sk-secret" in (kept / "log.jsonl").read_bytes()) == (False, False)
    assert "theirs" in (runner.temp / "step_summary_3").read_text()


def test_a_model_that_does_all_that_is_allowed_is_a_success(program: Program, runner: Runner) -> None:
    url = program.serve(replies(say("Done.")))
    job = runner.run(command=str(HARNESS), prompt="go", base_url=url, artifact="")
    assert (set(job.codes.values()), job.outputs["exit-code"], job.uploaded) == ({0}, "0", []), job.printed


BASE = "the base commit"
WRONG = [
    pytest.param({"policy_ref": BASE}, 2, "policy names no file", id="a commit without a file"),
    pytest.param({"policy_ref": BASE, "policy": "none.toml"}, 2, "has no policy file none.toml", id="no such file"),
    pytest.param({"policy_ref": BASE, "policy": "ci/x.toml"}, 2, "has no policy file ci/x.toml", id="no such folder"),
    pytest.param({"policy_ref": "0" * 40, "policy": "a.toml"}, 2, "neither", id="a commit that is not there"),
    pytest.param({"policy_ref": "", "policy": "a.toml"}, 2, "policy-ref is empty", id="an event without a base"),
    pytest.param({"policy_ref": "main", "policy": "a.toml"}, 2, "full id of a commit", id="a branch"),
    pytest.param({"policy_ref": f"{BASE}\nx", "policy": "a.toml"}, 2, "full id of a commit", id="a line too many"),
    pytest.param({"policy_ref": "--output=pwned", "policy": "a.toml"}, 2, "full id", id="a commit that is an option"),
    pytest.param({"policy": "a.toml", "policy_sha256": "0" * 64}, 2, "SHA-256", id="another digest"),
    pytest.param({"allow_refusals": "yes"}, 2, "true or false", id="neither true nor false"),
    pytest.param({"api_key": "k", "key_variable": "LD_PRELOAD"}, 2, "_KEY", id="a variable that is no key's"),
    pytest.param({"working_directory": "nowhere"}, 2, "is no folder", id="no such folder"),
    pytest.param({"working_directory": ".."}, 2, "outside of the checkout", id="a folder above"),
    pytest.param({"working_directory": "away"}, 2, "outside of the checkout", id="a link that leads out"),
    pytest.param({"worktree": "yes"}, 2, "true or false", id="neither a worktree nor none"),
    pytest.param({"worktree": "true", "prompt": ""}, 2, "as prompt", id="a worktree without a prompt"),
    pytest.param({"worktree": "true", "prompt": "a\x1b"}, 2, "not JSON", id="no text of JSON"),
    pytest.param({"worktree": "true", "args": "--log=x"}, 2, "--log", id="a worktree and a log"),
    pytest.param({"args": "--help"}, 2, "nothing was run", id="no run at all"),
    pytest.param({"prompt": ""}, 2, "missing prompt", id="no prompt"),
    pytest.param({"prompt_file": "x"}, 2, "prompt", id="two prompts"),
    pytest.param({"model": "--allow-refusals"}, 0, "", id="a value that looks like a flag is a value"),
]


@pytest.mark.parametrize(("inputs", "code", "message"), WRONG)
def test_inputs_that_make_no_sense_fail_before_any_request(
    program: Program, runner: Runner, inputs: dict[str, str], code: int, message: str
) -> None:
    base = repository(program, a_toml=POLICY)
    (program.workspace / "away").symlink_to(runner.temp)
    url = program.serve(replies(say("Done.")))
    filled = {name: value.replace(BASE, base) for name, value in inputs.items()}
    job = runner.run(**{"command": str(HARNESS), "prompt": "go", "base_url": url, **filled})
    assert (max(job.codes.values()), message in job.printed) == (code, True), job
    assert len(program.players[0].requests) == (1 if code == 0 else 0)
    assert not (program.workspace / "pwned").exists()
    if code == 0:
        assert program.players[0].requests[0]["model"] == "--allow-refusals"


GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example"]


@pytest.mark.parametrize("depth", [1, 2])
def test_a_policy_that_must_be_fetched(program: Program, runner: Runner, tmp_path: Path, depth: int) -> None:
    """A shallow checkout has not the base commit: it is fetched by its name, from the server that the runner names."""
    base = repository(program, deep__er__a_toml=POLICY)
    _commit(program, "two")
    bare = tmp_path / "server.git"
    subprocess.run([*GIT, "clone", "-q", "--bare", str(program.workspace), str(bare)], check=True)
    shutil.rmtree(program.workspace)
    subprocess.run([*GIT, "clone", "-q", f"--depth={depth}", f"file://{bare}", str(program.workspace)], check=True)
    # What the checkout has under "origin", and in which way it fetches, is not asked.
    touch = f"touch {shlex.quote(str(tmp_path))}/pwned"
    with (program.workspace / ".git" / "config").open("a") as file:
        file.write(f'[remote "origin"]\n\turl = /nowhere\n\tuploadpack = "{touch}; false"\n')
    url = program.serve(replies(say("Done.")))
    job = runner.run(command=str(HARNESS), prompt="go", base_url=url, policy="deep/er/a.toml", policy_ref=base)
    assert (set(job.codes.values()), (tmp_path / "pwned").exists()) == ({0}, False), job.printed
    assert _policy_of(job) == "theirs"


def _commit(program: Program, name: str) -> None:
    git = [*GIT, "-C", str(program.workspace)]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", name], check=True)


def _policy_of(job: Job) -> object:
    first: dict[str, object] = json.loads(Path(job.outputs["log-path"]).read_text().splitlines()[0])
    return first["policy"]


def _replaced(git_dir: Path, old: str, new: str, base: str) -> None:
    subprocess.run([*GIT, f"--git-dir={git_dir}", "replace", old, new], check=True)


def _swapped(git_dir: Path, old: str, new: str, base: str) -> None:
    paths = [git_dir / "objects" / name[:2] / name[2:] for name in (new, old)]
    paths[1].unlink()
    shutil.copy(*paths)


def _fetched_by_a_program(git_dir: Path, old: str, new: str, base: str) -> None:
    (git_dir / "objects" / base[:2] / base[2:]).unlink()
    touch = f"touch {shlex.quote(str(git_dir))}/pwned"
    with (git_dir / "config").open("a") as file:
        file.write('[extensions]\n\tpartialClone = origin\n[core]\n\trepositoryformatversion = 1\n[remote "origin"]\n')
        file.write(f'\turl = .\n\tpromisor = true\n\tuploadpack = "{touch}; git-upload-pack"\n')


def _watched_by_a_program(git_dir: Path, old: str, new: str, base: str) -> None:
    touch = f"touch {shlex.quote(str(git_dir))}/pwned"
    with (git_dir / "config").open("a") as file:
        file.write(f'[core]\n\tfsmonitor = "{touch}"\n\tpager = "{touch}"\n')


@pytest.mark.parametrize("spoil", [_replaced, _swapped, _fetched_by_a_program, _watched_by_a_program])
def test_policy_comes_from_the_base_commit_despite_a_spoiled_checkout(
    program: Program, runner: Runner, tmp_path: Path, spoil: Callable[[Path, str, str, str], None]
) -> None:
    """The policy is the base commit's, or nothing runs; and nothing that .git names runs outside of a wall."""
    base = repository(program, ci__a_toml=POLICY)
    git_dir = program.workspace / ".git"
    bare = tmp_path / "server.git"
    subprocess.run([*GIT, "clone", "-q", "--bare", str(program.workspace), str(bare)], check=True)
    asked = [*GIT, f"--git-dir={git_dir}"]
    old = subprocess.run([*asked, "rev-parse", f"{base}:ci/a.toml"], check=True, capture_output=True, text=True)
    evil = 'version = 1\nname = "EVIL"\n[tools]\ndefault = "auto"\n'
    new = subprocess.run(
        [*asked, "hash-object", "-w", "--stdin"], input=evil, check=True, capture_output=True, text=True
    )
    spoil(git_dir, old.stdout.strip(), new.stdout.strip(), base)
    url = program.serve(replies(say("Done.")))
    job = runner.run(command=str(HARNESS), prompt="go", base_url=url, policy="./ci/a.toml", policy_ref=base)
    assert (set(job.codes.values()), (git_dir / "pwned").exists()) == ({0}, False), job.printed
    assert _policy_of(job) == "theirs"


def test_a_run_in_a_worktree(program: Program, runner: Runner) -> None:
    """The checkout stays as it was; what was changed, committed or ignored too, is a patch beside the log."""
    (program.workspace / ".gitignore").write_text("made\n")
    base = repository(program, a_toml=AUTO, src__x="x = 1\n")
    (program.workspace / "a.toml").write_text("changed, and not committed")
    prompt = 'Say "\\n" \\ and\ttab\r\nline & $(touch pwned) & `x`'
    hidden = "echo 2 >> src/x; git add . && git -c user.name=a -c user.email=a@b commit -qm mine"
    commands = f"{hidden}; echo 3 > new; echo 4 > made"
    url = program.serve(replies(Reply(calls=(call("bash", command=commands),)), say("Done.")))
    job = runner.run(
        command=str(HARNESS), prompt=prompt, base_url=url, worktree="true", policy="a.toml", policy_ref=base
    )
    assert (set(job.codes.values()), job.outputs["end"]) == ({0}, "completed"), job.printed
    messages = program.players[0].requests[0]["messages"]
    assert isinstance(messages, list)
    assert any(isinstance(one, dict) and one["content"] == prompt for one in messages)
    (upload,) = job.uploaded
    kept = Path(upload["path"])
    assert set(os.listdir(kept)) == {"log.jsonl", "head.txt", "changes.patch", "ignored.patch"}
    assert job.outputs["patch"] == str(kept / "changes.patch")
    assert (program.workspace / "src" / "x").read_text() == "x = 1\n"
    assert {"new", "made", "pwned"} & set(os.listdir(program.workspace)) == set()
    git = [*GIT, "-C", str(program.workspace)]
    subprocess.run([*git, "apply", str(kept / "changes.patch")], check=True)
    found = [(program.workspace / name).read_text() for name in ("src/x", "new")]
    assert found == ["x = 1\n2\n", "3\n"]
    checked = program.run("audit", "verify", str(kept / "log.jsonl"), "--head", job.outputs["log-head"])
    assert checked.code == 0


def test_a_log_elsewhere_is_kept_too(program: Program, runner: Runner, tmp_path: Path) -> None:
    url = program.serve(replies(say("Done.")))
    job = runner.run(command=str(HARNESS), prompt="go", base_url=url, args=f"--log={tmp_path}/other.jsonl")
    assert (set(job.codes.values()), "there is no log" in job.printed) == ({0}, False), job.printed
    (upload,) = job.uploaded
    assert (Path(upload["path"]) / "log.jsonl").read_bytes() == (tmp_path / "other.jsonl").read_bytes()


def test_the_demo_job_needs_no_key(program: Program, runner: Runner) -> None:
    """As the example has it: a replay in a copy of examples/demo."""
    shutil.copytree(Path(ROOT) / "examples" / "demo", program.workspace / "examples" / "demo")
    repository(program)
    (step,) = [one for one in github()["jobs"]["demo"]["steps"] if one.get("id") == "demo"]
    inputs = {name.replace("-", "_"): value for name, value in step["with"].items()}
    inputs["allow_refusals"] = str(inputs["allow_refusals"]).lower()
    job = runner.run(**{"command": str(HARNESS), **inputs})
    assert (set(job.codes.values()), job.outputs["end"], job.outputs["refused"]) == ({0}, "completed", "1"), job.printed
    assert demo_cassette.NEW in (program.workspace / "examples/demo/slugs.py").read_text()
    assert "diverge" not in job.printed
    assert program.run("audit", "verify", job.outputs["log-path"], "--head", job.outputs["log-head"]).code == 0


def test_bundled_cassette_equals_a_new_recording(tmp_path: Path) -> None:
    """Made anew by tests/support/demo_cassette.py; but for its first line, which names folder and version."""
    made = tmp_path / "cassette.jsonl"
    assert demo_cassette.record(made) == 7
    bundled = (Path(ROOT) / "examples" / "demo" / "cassette.jsonl").read_text().splitlines()
    assert _replies(made.read_text().splitlines()) == _replies(bundled)


def _replies(lines: list[str]) -> list[object]:
    return [json.loads(line)["response"] for line in lines[1:]]


WITH_OUR_PACKAGES = """\
#!/bin/sh
'{python}' "$@" || exit
for made; do :; done
for packages in "$made"/lib/python3.*/site-packages; do
  if [ -d "$packages" ]; then echo "import site; site.addsitedir('{site}')" > "$packages/tests.pth"; fi
done
"""
"""A Python whose venvs have our packages: tests reach no network."""


def test_the_install_step(program: Program, runner: Runner) -> None:
    """The real one: a venv, and pip from this checkout; hostile files of the checkout are not imported."""
    pytest.importorskip("hatchling", reason="the build backend is not installed, and tests reach no network")
    planted = f"open({str(program.workspace / 'pwned')!r}, 'w')\n"
    for name in ("venv.py", "pip.py", "sitecustomize.py", "sys.py", "difflib.py"):
        (program.workspace / name).write_text(planted)
    url = program.serve(replies(say("Done.")))
    runner.environment |= {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    runner.environment["PYTHONPATH"] = str(program.workspace)
    python = program.home / "python"
    python.write_text(WITH_OUR_PACKAGES.format(python=sys.executable, site=sysconfig.get_path("purelib")))
    python.chmod(0o755)
    job = runner.run(prompt="go", base_url=url, python=str(python))
    assert (set(job.codes.values()), (program.workspace / "pwned").exists()) == ({0}, False), job.printed


@pytest.mark.parametrize("inputs", [{"python": "/nowhere/python"}, {"python": "false"}])
def test_a_python_that_is_none_ends_the_job(runner: Runner, inputs: dict[str, str]) -> None:
    job = runner.run(prompt="go", **inputs)
    assert (list(job.codes.values()), job.uploaded) == ([2], []), job.printed
    assert "needs Python 3.11" in job.printed


def github() -> dict[str, Any]:
    loaded = yaml.safe_load((Path(ROOT) / "examples" / "github-actions.yml").read_text())
    assert isinstance(loaded, dict)
    return {**loaded, "on": loaded.get(True)}  # in YAML 1.1 the key `on` is true; not so for the runner


def test_github_example_never_trusts_a_pull_request() -> None:
    workflow = github()
    assert (workflow["on"], workflow["permissions"]) == ("pull_request", {"contents": "read"})
    steps = [(name, step) for name, job in workflow["jobs"].items() for step in job["steps"]]
    for name, step in steps:
        assert "${{" not in step.get("run", ""), step
        if step.get("uses", "").startswith("actions/checkout"):
            assert step["with"].get("persist-credentials", True) is (name == "push")
        if step.get("uses", "").startswith("OWNER/harness"):
            assert step["with"].keys() <= action()["inputs"].keys()
            with_model = "replay" not in step["with"]
            assert step["with"].get("policy-ref") == (
                "${{ github.event.pull_request.base.sha }}" if with_model else None
            )
        assert name == "push" or not re.search(r"\bgit\b", step.get("run", "")), "what .git/config names would be run"
    work, push, scan = (workflow["jobs"][name] for name in ("work", "push", "scan"))
    assert "head.repo.full_name == github.repository" in work["if"]
    assert [job.get("permissions") for job in (work, push, scan)] == [
        None, {"contents": "write"}, {"contents": "read", "security-events": "write"},
    ]  # fmt: skip
    assert (push["needs"], scan["needs"]) == ("work", "work")
    for job in (push, scan):
        assert not re.search(r"secrets|OWNER/harness", json.dumps(job)), (
            "rights, and the model's work, and nothing else"
        )
    used = set(re.findall(r"steps\.harness\.outputs\.([\w-]+)", json.dumps(workflow)))
    assert used
    assert used <= action()["outputs"].keys()


PATCHES = [
    pytest.param({"x.py": "x = 2\n", "new/y": "y"}, True, id="code"),
    pytest.param({".github/workflows/x.yml": "on: push\n"}, False, id="a workflow"),
    pytest.param({"ci/harness.toml": AUTO}, False, id="the policy"),
    pytest.param({"sub/.gitattributes": "* filter=x\n"}, False, id="attributes"),
    pytest.param({".github/\u00fc\n": "x"}, False, id="a name that git quotes"),
    pytest.param({"link": None}, False, id="a link"),
    pytest.param({}, False, id="nothing"),
]


@all_rows(("changes", "is_pushed"), PATCHES, anew={"program": made_program})
def test_the_github_example_pushes_a_patch_that_it_checked(
    program: Program, tmp_path: Path, changes: dict[str, str | None], is_pushed: bool
) -> None:
    """The small job's script, as it stands, with a real repository to push to."""
    base = repository(program, x_py="x = 1\n", ci__harness_toml=POLICY)
    bare = tmp_path / "server.git"
    git = [*GIT, "-C", str(program.workspace)]
    subprocess.run([*GIT, "clone", "-q", "--bare", str(program.workspace), str(bare)], check=True)
    subprocess.run([*git, "remote", "add", "origin", f"file://{bare}"], check=True)
    for name, content in changes.items():
        path = program.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to("/etc/passwd") if content is None else path.write_text(content)
    subprocess.run([*git, "add", "--all"], check=True)
    done = subprocess.run([*git, "diff", "--cached", "--binary"], check=True, capture_output=True)
    (tmp_path / "changes.patch").write_bytes(done.stdout)
    subprocess.run([*git, "reset", "-q", "--hard"], check=True)
    (step,) = [step for step in github()["jobs"]["push"]["steps"] if "run" in step]
    assert step["env"].keys() == {"PATCH", "BRANCH"}
    environment = {"PATCH": str(tmp_path / "changes.patch"), "BRANCH": "feature/a", "RUNNER_TEMP": str(tmp_path)}
    ran = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], cwd=program.workspace,
        env={**program.environment, **environment}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    asked = ["git", f"--git-dir={bare}", "rev-parse", "-q", "--verify", "refs/heads/feature/a~1"]
    pushed = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    assert (ran.returncode, pushed) == ((0 if is_pushed or not changes else 1), base if is_pushed else ""), ran
    if not is_pushed:
        assert "nothing is pushed" in ran.stdout + ran.stderr


def _words_of_runs(text: str) -> list[list[str]]:
    """Return the arguments of each `harness run` in a shell text, with variables as they stand."""
    joined = text.replace("\\\n", " ")
    return [shlex.split(re.split(r"[<>|;&]", found)[0]) for found in re.findall(r'harness(?:\}")? run (.*)', joined)]


@all_rows("name", ["gitlab-ci.yml", "ci.sh"])
def test_the_flags_in_an_example_exist(name: str) -> None:
    text = (Path(ROOT) / "examples" / name).read_text()
    if name.endswith(".yml"):
        text = "\n".join(yaml.safe_load(text)["harness"]["script"])
    runs = [words for words in _words_of_runs(text) if any("policy" in word for word in words)]
    assert runs
    for words in runs:
        shown = [word.replace("$digest", "0" * 64) for word in words if word != "$@"]
        assert parser_for("run").parse_args(shown).policy


def test_the_gitlab_example_takes_the_policy_from_the_target(program: Program, tmp_path: Path) -> None:
    """Its commands, but for the installation, run as they stand (with /tmp/ a folder of the test's own).

    The merge request brings a policy of its own and a link in the way, the model programs that git is to run.
    """
    job = yaml.safe_load((Path(ROOT) / "examples" / "gitlab-ci.yml").read_text())["harness"]
    assert (job["artifacts"]["when"], job["allow_failure"]) == ("always", {"exit_codes": [7]})
    rule = '[[rule]]\nid = "no"\ndecision = "deny"\nargv = ["touch", "..."]\nreason = "No."\n'
    repository(program, ci__harness_toml=f"{AUTO}{rule}")
    bare = tmp_path / "server.git"
    git = [*GIT, "-C", str(program.workspace)]
    subprocess.run([*GIT, "clone", "-q", "--bare", str(program.workspace), str(bare)], check=True)
    subprocess.run([*git, "remote", "add", "origin", f"file://{bare}"], check=True)
    (program.workspace / "ci" / "harness.toml").write_text(AUTO)
    (program.workspace / ".harness-kept").symlink_to(tmp_path)
    subprocess.run([*git, "add", "."], check=True)
    _commit(program, "theirs")
    planted = (
        "rm .git; git init -q; echo '* filter=x' > .gitattributes\n"
        "for key in core.fsmonitor filter.x.clean; do\n"
        f"git config $key {shlex.quote(f'env > {shlex.quote(str(tmp_path))}/ESCAPED')}; done\n"
    )
    calls = (
        call("write_file", path="test.sh", content=planted),
        call("bash", command="sh test.sh"),
        call("bash", command="touch made"),
    )
    url = program.serve(replies(Reply(calls=calls), say("Done.")))
    environment = {
        **program.environment, "CI_PROJECT_DIR": str(program.workspace), "OPENAI_BASE_URL": url,
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "OPENAI_API_KEY": "sk-secret-key-1", "TESTS": str(tmp_path),
    }  # fmt: skip

    def run(commands: list[str]) -> subprocess.CompletedProcess[str]:
        script = "\n".join(one for one in commands if "pip install" not in one)
        script = script.replace('"/tmp/', '"$TESTS/').replace("/tmp/", '"$TESTS"/')
        script = script.replace('"$TESTS"/harness/bin/python', shlex.quote(sys.executable))
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script], cwd=program.workspace, env=environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    done = run(job["script"])
    assert done.returncode == 7, done.stderr
    assert run(job["after_script"]).returncode == 0
    assert not (tmp_path / "ESCAPED").exists()
    kept = program.workspace / ".harness-kept"
    assert {"log.jsonl", "result.json", "harness.xml", "harness.md", "changes.patch"} == set(os.listdir(kept))
    result = json.loads((kept / "result.json").read_text())
    assert (result["exit_code"], [one["rule"] for one in result["refusals"]]) == (7, ["no"])
    patch = (kept / "changes.patch").read_text()
    assert re.findall(r"^diff --git (.*)$", patch, re.MULTILINE) == [
        "a/test.sh b/test.sh"  # the new .gitattributes, a protected place, was put back
    ]
    assert not any("git" in line and "harness" not in line for line in job["after_script"])


def _as_it_is(text: str) -> str:
    return text


@all_rows(
    ("change", "code"), [(_as_it_is, 7), (lambda text: f"{text}\n# changed\n", 2)], anew={"program": made_program}
)
def test_the_shell_example(program: Program, tmp_path: Path, change: Callable[[str], str], code: int) -> None:
    """The policy is pinned by its digest: changed, nothing starts."""
    shutil.copytree(Path(ROOT) / "examples" / "demo", program.workspace, dirs_exist_ok=True)
    policy = program.workspace / "policy.toml"
    digest = hashlib.sha256(policy.read_bytes()).hexdigest()
    policy.write_text(change(policy.read_text()))
    kept = tmp_path / "kept"
    done = _shell_example(program, digest, str(kept))
    assert done.returncode == code, done.stderr
    if code == 7:
        head = (kept / "head.txt").read_text().strip()
        assert head in done.stdout
        assert program.run("audit", "verify", str(kept / "log.jsonl"), "--head", head).code == 0
        assert json.loads((kept / "result.json").read_text())["head"] == head
    else:
        assert "SHA-256" in done.stderr


def _shell_example(program: Program, digest: str, folder: str, *more: str) -> subprocess.CompletedProcess[str]:
    words = [demo_cassette.PROMPT, "policy.toml", digest, folder, "--replay", "cassette.jsonl", *more]
    return subprocess.run(
        ["sh", str(Path(ROOT) / "examples" / "ci.sh"), *words], cwd=program.workspace, stdin=subprocess.DEVNULL,
        env={**program.environment, "HARNESS": str(HARNESS)}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@all_rows(
    ("folder", "more", "code", "told"),
    [
        pytest.param("-there/../../-out", [], 7, "harness ended with 7; head: ", id="a name that looks like a flag"),
        pytest.param("there", [], 2, "there", id="a folder that is there"),
        pytest.param("../out", ["--output", "text"], 7, "names no head", id="another form of output"),
        pytest.param("out", [], 2, "the file is in the workspace", id="a folder in the workspace"),
    ],
    anew={"program": made_program},
)
def test_shell_example_reports_its_failure(
    program: Program, folder: str, more: list[str], code: int, told: str
) -> None:
    shutil.copytree(Path(ROOT) / "examples" / "demo", program.workspace, dirs_exist_ok=True)
    for name in ("there", "-there"):
        (program.workspace / name).mkdir()
    digest = hashlib.sha256((program.workspace / "policy.toml").read_bytes()).hexdigest()
    done = _shell_example(program, digest, folder, *more)
    assert (done.returncode, told in done.stdout + done.stderr) == (code, True), done.stderr
    if folder.startswith("-"):
        head = (program.workspace / folder / "head.txt").read_text()
        assert re.fullmatch(r"[0-9a-f]{64}\n", head)


def test_the_policy_of_the_demo_loads() -> None:
    assert load_policy(str(Path(ROOT) / "examples" / "demo" / "policy.toml")).name == "demo job"


@all_rows("name", EXAMPLES)
def test_an_example_names_no_machine(name: str) -> None:
    text = (Path(ROOT) / "examples" / name).read_text()
    assert re.findall(r"/(?:home|root|work|Users)/", text) == []
