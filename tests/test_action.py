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
from runner_commands import Step, outputs_in

from harness.cli.flags import parser_for
from harness.models.scripted import Reply, call, replies, say
from harness.policy_file import load_policy

if TYPE_CHECKING:
    from conftest import Program

ROOT = Path(__file__).resolve().parent.parent
HARNESS = Path(sys.executable).parent / "harness"
EXAMPLES = ("github-actions.yml", "gitlab-ci.yml", "ci.sh")
_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}")
POLICY = 'version = 1\nname = "theirs"\n[tools]\nbash = "deny"\ndefault = "auto"\n'


def action() -> dict[str, Any]:
    loaded = yaml.safe_load((ROOT / "action.yml").read_text())
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
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_WORKSPACE": str(program.workspace),
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_TOKEN": "ghs_secret",
        }
        self._outputs: dict[str, dict[str, str]] = {}
        self._inputs: dict[str, str] = {}
        self._failed = False

    def run(self, **inputs: str) -> Job:
        """Run all steps with these inputs (`_` for `-`), the others as their defaults say."""
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        known = action()["inputs"]
        assert given.keys() <= known.keys()
        self._inputs = {name: given.get(name, str(what.get("default", ""))) for name, what in known.items()}
        codes: dict[str, int] = {}
        annotations: list[str] = []
        uploaded: list[dict[str, str]] = []
        printed = ""
        for number, step in enumerate(STEPS):
            if not self._wanted(step.get("if", "success()")):
                continue
            if "uses" in step:
                uploaded.append({key: self._filled(str(value)) for key, value in step["with"].items()})
                continue
            code, out, err, told = self._step(number, step)
            codes[step["name"]] = code
            printed += out + err
            read = Step()
            read.read(out)
            read.read(err)
            annotations += [f"{one.name}: {one.data}" for one in read.obeyed]
            self._outputs[step.get("id", "")] = told
            self._failed = self._failed or code != 0
        outputs = {name: self._filled(what["value"]) for name, what in action()["outputs"].items()}
        return Job(outputs, codes, printed, annotations, uploaded, self.temp)

    def _step(self, number: int, step: Mapping[str, Any]) -> tuple[int, str, str, dict[str, str]]:
        script, output, summary = (self.temp / f"{name}_{number}" for name in ("step.sh", "set_output", "step_summary"))
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
                case _:
                    raise AssertionError(f"the test knows no {found.group()}")

        python = re.sub(r"(?:inputs|steps)\.[\w.-]+", looked_up, expression)
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


def test_no_input_is_written_into_a_script() -> None:
    """Script injection: what stands in ${{ }} is pasted in before bash reads it; so it stands in env and with alone."""
    for step in STEPS:
        assert "${{" not in step.get("run", "") + step.get("shell", "") + step["name"], step["name"]
        assert ("run" in step) != ("uses" in step)
        assert step.get("shell") == ("bash" if "run" in step else None)


def test_what_the_action_uses_is_pinned_and_every_name_in_it_is_declared() -> None:
    text = (ROOT / "action.yml").read_text()
    assert [step["uses"] for step in STEPS if "uses" in step] == ["actions/upload-artifact@v4"]
    declared = action()
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(declared["inputs"])
    assert all(what["description"] for what in (*declared["inputs"].values(), *declared["outputs"].values()))
    assert set(declared["outputs"]) == {"end", "exit-code", "refused", "blocked", "log-path", "log-head"}
    for step in STEPS:
        used = set(re.findall(r"\bINPUT_[A-Z_0-9]+\b", step.get("run", "")))
        assert used == set(step.get("env", {})), step["name"]


def test_a_run_of_the_action(program: Program, runner: Runner) -> None:
    """Done but refused: the step fails with 7, the log and its head are kept all the same."""
    base = repository(program, ci__policy_toml=POLICY)
    (program.workspace / "ci" / "policy.toml").write_text('version = 1\n[tools]\ndefault = "auto"\n')
    prompt = '- $(touch pwned) `touch pwned`"; touch pwned; echo "\n::set-output name=end::forged {{x}}'
    url = program.serve(replies(Reply(calls=(call("bash", command="touch made"),)), say("::error::forged")))
    job = runner.run(
        command=str(HARNESS), prompt=prompt, policy="ci/policy.toml", policy_ref=base, base_url=url, api_key="sk-secret-key-1",
        args="--max-turns=5\r\n\n--report=md:../report of $(touch pwned).md\n",
    )  # fmt: skip
    assert (job.codes["Run harness"], job.codes["Keep the log and its head"]) == (7, 0), job.printed
    assert [(program.workspace / name).exists() for name in ("made", "pwned")] == [False, False]
    assert (program.workspace.parent / "report of $(touch pwned).md").exists()
    request = program.players[0].requests[0]
    messages = request["messages"]
    assert isinstance(messages, list)
    assert any(prompt in str(message["content"]) for message in messages if isinstance(message, dict))
    assert {**job.outputs, "log-path": "", "log-head": ""} == {
        "end": "completed", "exit-code": "7", "refused": "1", "blocked": "0", "log-path": "", "log-head": "",
    }  # fmt: skip
    assert [one.partition(":")[0] for one in job.annotations] == ["warning"]
    (upload,) = job.uploaded
    kept = Path(upload["path"])
    assert (upload["name"], sorted(os.listdir(kept))) == ("harness-log", ["head.txt", "log.jsonl"])
    head = (kept / "head.txt").read_text().strip()
    checked = program.run("audit", "verify", str(kept / "log.jsonl"), "--head", head)
    assert (checked.code, head) == (0, job.outputs["log-head"])
    assert ("sk-secret-key-1" in job.printed, b"sk-secret" in (kept / "log.jsonl").read_bytes()) == (False, False)
    assert "theirs" in (runner.temp / "step_summary_2").read_text()


def test_a_model_that_does_all_that_is_allowed_is_a_success(program: Program, runner: Runner) -> None:
    url = program.serve(replies(say("Done.")))
    job = runner.run(command=str(HARNESS), prompt="go", base_url=url, artifact="")
    assert (set(job.codes.values()), job.outputs["exit-code"], job.uploaded) == ({0}, "0", []), job.printed


WRONG = [
    pytest.param({"policy_ref": "HEAD"}, 2, "policy names no file", id="a commit without a file"),
    pytest.param({"policy_ref": "HEAD", "policy": "none.toml"}, 128, "none.toml", id="a file that is not there"),
    pytest.param({"policy_ref": "--output=pwned", "policy": "a.toml"}, 128, "", id="a commit that is an option"),
    pytest.param({"policy": "a.toml", "policy_sha256": "0" * 64}, 2, "SHA-256", id="another digest"),
    pytest.param({"allow_refusals": "yes"}, 2, "true or false", id="neither true nor false"),
    pytest.param({"api_key": "k", "key_variable": "LD_PRELOAD"}, 2, "_KEY", id="a variable that is no key's"),
    pytest.param({"working_directory": "nowhere"}, 1, "nowhere", id="no such folder"),
    pytest.param({"prompt": ""}, 2, "there is no prompt", id="no prompt"),
    pytest.param({"prompt_file": "x"}, 2, "prompt", id="two prompts"),
    pytest.param({"model": "--allow-refusals"}, 0, "", id="a value that looks like a flag is a value"),
]


@pytest.mark.parametrize(("inputs", "code", "message"), WRONG)
def test_inputs_that_make_no_sense_fail_before_any_request(
    program: Program, runner: Runner, inputs: dict[str, str], code: int, message: str
) -> None:
    repository(program, a_toml=POLICY)
    url = program.serve(replies(say("Done.")))
    job = runner.run(**{"command": str(HARNESS), "prompt": "go", "base_url": url, **inputs})
    assert (max(job.codes.values()), message in job.printed) == (code, True), job
    assert len(program.players[0].requests) == (1 if code == 0 else 0)
    assert not (program.workspace / "pwned").exists()
    if code == 0:
        assert program.players[0].requests[0]["model"] == "--allow-refusals"


def test_a_policy_that_must_be_fetched(program: Program, runner: Runner, tmp_path: Path) -> None:
    """A shallow checkout has not the base commit: it is fetched by its name."""
    base = repository(program, a_toml=POLICY)
    bare = tmp_path / "bare.git"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example"]
    subprocess.run([*git, "clone", "-q", "--bare", str(program.workspace), str(bare)], check=True)
    shutil.rmtree(program.workspace)
    subprocess.run([*git, "init", "-q", "-b", "other", str(program.workspace)], check=True)
    subprocess.run([*git, "-C", str(program.workspace), "remote", "add", "origin", f"file://{bare}"], check=True)
    url = program.serve(replies(say("Done.")))
    job = runner.run(command=str(HARNESS), prompt="go", base_url=url, policy="a.toml", policy_ref=base)
    assert set(job.codes.values()) == {0}, job.printed
    assert json.loads(Path(job.outputs["log-path"]).read_text().splitlines()[0])["policy"] == "theirs"


def test_the_demo_job_needs_no_key(program: Program, runner: Runner) -> None:
    """As the example has it: a replay in a copy of examples/demo."""
    shutil.copytree(ROOT / "examples" / "demo", program.workspace / "examples" / "demo")
    repository(program)
    (step,) = [one for one in github()["jobs"]["demo"]["steps"] if one.get("id") == "demo"]
    inputs = {name.replace("-", "_"): value for name, value in step["with"].items()}
    inputs["allow_refusals"] = str(inputs["allow_refusals"]).lower()
    job = runner.run(**{"command": str(HARNESS), **inputs})
    assert (set(job.codes.values()), job.outputs["end"], job.outputs["refused"]) == ({0}, "completed", "1"), job.printed
    assert demo_cassette.NEW in (program.workspace / "examples/demo/slugs.py").read_text()
    assert "diverge" not in job.printed
    assert program.run("audit", "verify", job.outputs["log-path"], "--head", job.outputs["log-head"]).code == 0


def test_the_cassette_is_what_its_script_records(tmp_path: Path) -> None:
    """Made anew by tests/demo_cassette.py; but for its first line, which names folder and version."""
    made = tmp_path / "cassette.jsonl"
    assert demo_cassette.record(made) == 7
    bundled = (ROOT / "examples" / "demo" / "cassette.jsonl").read_text().splitlines()
    assert _replies(made.read_text().splitlines()) == _replies(bundled)


def _replies(lines: list[str]) -> list[object]:
    return [json.loads(line)["response"] for line in lines[1:]]


def test_the_install_step(program: Program, runner: Runner) -> None:
    """The real one: a venv, and pip from this checkout; hostile files of the checkout are not imported."""
    pytest.importorskip("hatchling", reason="the build backend is not installed, and tests reach no network")
    for name in ("venv.py", "pip.py", "sitecustomize.py", "sys.py"):
        (program.workspace / name).write_text("open('pwned', 'w')\n")
    url = program.serve(replies(say("Done.")))
    site = sysconfig.get_path("purelib")
    runner.environment |= {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PYTHONPATH": site}
    job = runner.run(prompt="go", base_url=url, python=sys.executable)
    assert (set(job.codes.values()), (program.workspace / "pwned").exists()) == ({0}, False), job.printed


@pytest.mark.parametrize("inputs", [{"python": "/nowhere/python"}, {"python": "false"}])
def test_a_python_that_is_none_ends_the_job(runner: Runner, inputs: dict[str, str]) -> None:
    job = runner.run(prompt="go", **inputs)
    assert (list(job.codes.values()), job.uploaded) == ([2], []), job.printed
    assert "needs Python 3.11" in job.printed


def github() -> dict[str, Any]:
    loaded = yaml.safe_load((ROOT / "examples" / "github-actions.yml").read_text())
    assert isinstance(loaded, dict)
    return {**loaded, "on": loaded.get(True)}  # in YAML 1.1 the key `on` is true; not so for the runner


def test_the_github_example_trusts_nothing_of_a_pull_request() -> None:
    workflow = github()
    assert (workflow["on"], workflow["permissions"]) == ("pull_request", {"contents": "read"})
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    for step in steps:
        assert "${{" not in step.get("run", ""), step
        assert re.fullmatch(r"(actions/[\w-]+|OWNER/harness)@v\d+", step.get("uses", "actions/x@v1"))
        if step.get("uses", "").startswith("actions/checkout"):
            assert step["with"]["persist-credentials"] is False
        if step.get("uses", "").startswith("OWNER/harness"):
            assert step["with"].keys() <= action()["inputs"].keys()
    work = workflow["jobs"]["work"]
    assert "head.repo.full_name == github.repository" in work["if"]
    used = set(re.findall(r"steps\.harness\.outputs\.([\w-]+)", json.dumps(workflow)))
    assert used
    assert used <= action()["outputs"].keys()


def _words_of_runs(text: str) -> list[list[str]]:
    """Return the arguments of each `harness run` in a shell text, with variables as they stand."""
    joined = text.replace("\\\n", " ")
    return [shlex.split(re.split(r"[<>|;&]", found)[0]) for found in re.findall(r'harness(?:\}")? run (.*)', joined)]


@pytest.mark.parametrize("name", ["gitlab-ci.yml", "ci.sh"])
def test_the_flags_in_an_example_exist(name: str) -> None:
    text = (ROOT / "examples" / name).read_text()
    if name.endswith(".yml"):
        text = "\n".join(yaml.safe_load(text)["harness"]["script"])
    runs = [words for words in _words_of_runs(text) if words and not words[0].startswith("...")]
    assert runs
    for words in runs:
        shown = [word.replace("$digest", "0" * 64) for word in words if word != "$@"]
        assert parser_for("run", "").parse_args(shown).policy


def test_the_gitlab_example_takes_the_policy_from_the_target(program: Program, tmp_path: Path) -> None:
    """Its commands, but for the installation, run as they stand (with /tmp/ a folder of the test's own)."""
    job = yaml.safe_load((ROOT / "examples" / "gitlab-ci.yml").read_text())["harness"]
    assert job["artifacts"]["when"] == "always"
    base = repository(program, ci__harness_toml=POLICY)
    (program.workspace / "ci" / "harness.toml").write_text('version = 1\n[tools]\ndefault = "auto"\n')
    url = program.serve(replies(Reply(calls=(call("bash", command="touch made"),)), say("Done.")))
    environment = {
        **program.environment, "CI_PROJECT_DIR": str(program.workspace), "CI_MERGE_REQUEST_DIFF_BASE_SHA": base,
        "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-secret-key-1",
    }  # fmt: skip

    def run(commands: list[str]) -> subprocess.CompletedProcess[str]:
        script = "\n".join(one for one in commands if "pip install" not in one)
        script = script.replace("/tmp/harness/bin/harness", str(HARNESS)).replace("/tmp/", f"{tmp_path}/")
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script], cwd=program.workspace, env=environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    done = run(job["script"])
    assert (done.returncode, (program.workspace / "made").exists()) == (7, False), done.stderr
    assert run(job["after_script"]).returncode == 0
    kept = program.workspace / ".harness-kept"
    assert {"log.jsonl", "result.json", "harness.xml", "harness.md", "changes.patch"} == set(os.listdir(kept))
    result = json.loads((kept / "result.json").read_text())
    assert (result["exit_code"], result["policy"]["name"]) == (7, "theirs")


def _as_it_is(text: str) -> str:
    return text


@pytest.mark.parametrize(("change", "code"), [(_as_it_is, 7), (lambda text: f"{text}\n# changed\n", 2)])
def test_the_shell_example(program: Program, tmp_path: Path, change: Callable[[str], str], code: int) -> None:
    """The policy is pinned by its digest: changed, nothing starts."""
    shutil.copytree(ROOT / "examples" / "demo", program.workspace, dirs_exist_ok=True)
    policy = program.workspace / "policy.toml"
    digest = hashlib.sha256(policy.read_bytes()).hexdigest()
    policy.write_text(change(policy.read_text()))
    kept = tmp_path / "kept"
    words = [demo_cassette.PROMPT, "policy.toml", digest, str(kept), "--replay", "cassette.jsonl"]
    done = subprocess.run(
        ["sh", str(ROOT / "examples" / "ci.sh"), *words], cwd=program.workspace, stdin=subprocess.DEVNULL,
        env={**program.environment, "HARNESS": str(HARNESS)}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    if code == 7:
        head = (kept / "head.txt").read_text().strip()
        assert head in done.stdout
        assert program.run("audit", "verify", str(kept / "log.jsonl"), "--head", head).code == 0
        assert json.loads((kept / "result.json").read_text())["head"] == head
    else:
        assert "SHA-256" in done.stderr


def test_the_policy_of_the_demo_loads() -> None:
    assert load_policy(str(ROOT / "examples" / "demo" / "policy.toml")).name == "demo job"


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_names_no_machine(name: str) -> None:
    text = (ROOT / "examples" / name).read_text()
    assert re.findall(r"/(?:home|root|work|Users)/", text) == []
