"""The recipes for many machines, as they stand in examples/: parts, gathered; one is killed, and started again."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from batch_scene import POLICY, SECONDS, ByContent, add_gate, git, repository, serving, until, write_tasks
from places import ROOT, shell_word

from harness.plugins.fleet.batch.task import in_shard
from harness.plugins.fleet.batch.task_folder import FINISHED
from harness.process.procfs import children
from harness.session.exits import Exit

if TYPE_CHECKING:
    from program import Program

HARNESS = Path(sys.executable).parent / "harness"
EXAMPLES = Path(ROOT) / "examples"
PARTS = 4
PROMPTS = {"t0": "write f one", "t1": "write f two", "t3": "bash curl x", "t4": "write f three", "t5": "write f four"}
"""Each of four parts has one of them, and the third has two; of t3 a call is refused."""
DIGEST = hashlib.sha256(POLICY.encode()).hexdigest()


class Fleet:
    """A shared folder with tasks, a policy and a repository; the keys, and the model's server."""

    def __init__(self, program: Program, folder: Path, url: str, player: ByContent) -> None:
        self.program = program
        self.player = player
        self.folder = folder / "shared"
        self.repository = repository(self.folder / "repository")
        self.results = self.folder / "results"
        (self.folder / "policy.toml").write_text(POLICY)
        self.key = folder / "key"
        self.key.write_text("sk-of-the-job\n")
        self._started: list[subprocess.Popen[str]] = []
        own = ("PATH", "HOME", "LANG", "XDG_CONFIG_HOME")
        self.environment = {
            **{name: program.environment[name] for name in own},
            "PATH": f"{HARNESS.parent}:{program.environment['PATH']}",
            "OPENAI_BASE_URL": url,
        }
        self.tasks(PROMPTS)

    def tasks(self, prompts: Mapping[str, str]) -> None:
        """Write the tasks."""
        cwd = str(self.repository)
        write_tasks(
            self.folder / "tasks.jsonl",
            *[dict[str, object](id=name, prompt=prompt, cwd=cwd) for name, prompt in prompts.items()],
        )

    def start(self, words: list[str], **environment: str) -> subprocess.Popen[str]:
        """Start a command, as a machine that has these variables."""
        process = subprocess.Popen(
            words, cwd=self.program.workspace, env={**self.environment, **environment}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._started.append(process)
        return process

    def close(self) -> None:
        """End what a test that failed left running."""
        for process in self._started:
            process.kill()
            process.communicate()

    def audit(self, *words: str, state: Path | None = None) -> tuple[int, str]:
        """Ask about the results, with the gathered heads. Return exit code and answer."""
        environment = {**self.program.environment, "XDG_STATE_HOME": str(state or self.folder / "state")}
        done = self.program.run("audit", *words, env=environment)
        return done.code, done.out


def ended(process: subprocess.Popen[str], *codes: int) -> str:
    """Wait for a process, which must end with one of the codes; return what it printed."""
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode in codes, (process.args, process.returncode, out, err)
    return out


@pytest.fixture
def fleet(program: Program, tmp_path: Path) -> Iterator[Fleet]:
    with serving() as (url, player):
        made = Fleet(program, tmp_path, url, player)
        yield made
        made.close()


def check_gathered(fleet: Fleet, results: Path, state: Path, *, verified: int = 0) -> None:
    """Every task was done once; the summary, the heads and the page tell of all of them."""
    summary = json.loads((results / "summary.json").read_text())
    told = (summary["tasks"], summary["done_earlier"], summary["exit_codes"], summary["shard"])
    assert told == (len(PROMPTS), len(PROMPTS), {"0": 4, "7": 1}, None)
    assert fleet.audit("verify", str(results), state=state)[0] == verified
    code, page = fleet.audit("report", str(results), "-o", "-", state=state)
    assert (code, [name for name in PROMPTS if f">{name}<" not in page]) == (0, [])
    secrets = [path for path in results.rglob("*") if path.is_file() and b"sk-of-the-job" in path.read_bytes()]
    assert secrets == []


def test_each_part_has_a_task() -> None:
    shares = [[name for name in PROMPTS if in_shard(name, (part, PARTS))] for part in range(1, PARTS + 1)]
    assert shares == [["t0"], ["t4"], ["t1", "t3"], ["t5"]]


# --- SLURM ---


def slurm_words(fleet: Fleet, *more: str) -> list[str]:
    """Return the script of the example and its arguments."""
    return [str(EXAMPLES / "slurm.sh"), str(fleet.folder), DIGEST, "--model", "m", *more]


def slurm_element(fleet: Fleet, element: int, *more: str) -> subprocess.Popen[str]:
    """Start the script as SLURM does for an element of an array."""
    return fleet.start(
        ["sh", *slurm_words(fleet, *more)],
        SLURM_ARRAY_TASK_ID=str(element), SLURM_CPUS_PER_TASK="2", KEY_FILE=str(fleet.key),
    )  # fmt: skip


def test_slurm_array_element_continues_after_its_node_died(fleet: Fleet, tmp_path: Path) -> None:
    gate = tmp_path / "go"
    add_gate(fleet.repository, gate)
    fleet.tasks({**PROMPTS, "t4": "bash python3 s.py\nwrite f three"})
    lost, others = slurm_element(fleet, 2), [slurm_element(fleet, part) for part in (1, 3, 4)]
    log = fleet.results / "t4" / "attempts" / "1" / "log.jsonl"
    until(lambda: log.exists() and b'"kind":"intent"' in log.read_bytes())
    os.kill(lost.pid, signal.SIGSTOP)  # a node dies at once: nothing of it sees the end of the rest
    for process in (*children(lost.pid), lost.pid):
        os.kill(process, signal.SIGKILL)
    ended(lost, -signal.SIGKILL)
    gate.touch()
    assert [ended(one, 0, 7) != "" for one in others] == [True] * 3
    ended(slurm_element(fleet, 2), 0)
    report = fleet.folder / "report.md"
    told = ended(slurm_element(fleet, 0, "--report", f"md:{report}"), 7)
    assert "5 tasks: 4 with exit code 0, 1 with exit code 7; 0 run now, 5 done earlier" in told
    assert [name for name in PROMPTS if name not in report.read_text()] == []
    # The log of the attempt that was killed has no end, and every other is whole.
    check_gathered(fleet, fleet.results, fleet.folder / "state", verified=3)
    found = [json.loads(line) for line in fleet.audit("verify", "--json", str(fleet.results))[1].splitlines()]
    verdicts = {one["file"].removeprefix(f"{fleet.results}/"): one["verdict"] for one in found}
    assert {name for name, verdict in verdicts.items() if verdict != "whole"} == {"t4/attempts/1/log.jsonl"}
    assert (verdicts["t4/attempts/1/log.jsonl"], verdicts["t4/attempts/2/log.jsonl"]) == ("open", "whole")


def test_a_policy_that_was_changed_is_not_taken(fleet: Fleet) -> None:
    with (fleet.folder / "policy.toml").open("a") as file:
        file.write("# changed\n")
    ended(slurm_element(fleet, 1), 2)
    assert fleet.player.prompts == []


def slurm_answers() -> bool:
    """Say whether jobs can be handed in here."""
    if shutil.which("sbatch") is None:
        return False
    return subprocess.run(["sinfo", "--noheader"], capture_output=True, check=False, timeout=60).returncode == 0


@pytest.mark.skipif(not slurm_answers(), reason="no SLURM answers here")
def test_slurm_itself_runs_the_array(fleet: Fleet) -> None:
    """The script as it stands; only which variables go with the job is said beside it."""
    environment = {
        **{name: value for name, value in os.environ.items() if name.startswith("SLURM_")},
        "HARNESS": str(HARNESS), "KEY_FILE": str(fleet.key),
    }  # fmt: skip
    exported = ("HARNESS", "KEY_FILE", "OPENAI_BASE_URL", "XDG_CONFIG_HOME", "PATH", "HOME")
    handed_in = ["sbatch", "--wait", f"--export={','.join(exported)}"]
    ended(fleet.start([*handed_in, *slurm_words(fleet)], **environment), 7)
    ended(fleet.start([*handed_in, "--array=0", *slurm_words(fleet)], **environment), 7)
    check_gathered(fleet, fleet.results, fleet.folder / "state")
    said = {path.name.rpartition("-")[2] for path in fleet.program.workspace.glob("harness-*.txt")}
    assert said == {f"{element}.txt" for element in range(PARTS + 1)}


# --- Kubernetes ---


def kubernetes_jobs() -> tuple[Any, Any]:
    """Return the two Jobs of the example: the parts, and the one that gathers."""
    first, second = yaml.safe_load((EXAMPLES / "kubernetes.yaml").read_text())["items"]
    return first, second


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Put in the variables $(NAME) of a container's command, as the kubelet does: what it does not know, it leaves."""
    return re.sub(r"\$(?:\$|\(([^)]*)\))", lambda found: variables.get(found[1] or "", found[0]), text)


def pod(fleet: Fleet, job: Any, **own: str) -> subprocess.Popen[str]:
    """Start the command of a Job's container with its variables; `own` are those that only a pod has."""
    (container,) = job["spec"]["template"]["spec"]["containers"]
    given = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    (secret,) = [one["name"] for one in container["env"] if "valueFrom" in one]
    given |= {secret: "sk-of-the-job", "FOLDER": str(fleet.folder), "POLICY_SHA256": DIGEST, **own}
    words = [expanded(word, given) for word in container["command"]]
    assert words == container["command"]  # nothing in the shell's text is taken for a variable of Kubernetes
    return fleet.start(words, **given)


def test_the_pods_of_the_kubernetes_job_do_all_tasks(fleet: Fleet) -> None:
    job, gathering = kubernetes_jobs()
    count = job["spec"]["completions"]
    pods = [pod(fleet, job, JOB_COMPLETION_INDEX=str(index)) for index in range(count)]
    for index, one in enumerate(pods):
        ended(one, 7 if index == 2 else 0)
    shards = {json.loads(path.read_text())["shard"] for path in fleet.results.glob("summary-*.json")}
    assert shards == {f"{part}/{count}" for part in range(1, count + 1)}
    ended(pod(fleet, gathering), 7)
    check_gathered(fleet, fleet.results, fleet.folder / "state")


def test_the_kubernetes_jobs_are_such_as_the_server_takes() -> None:
    """The rules of batch/v1 that a schema does not hold; the schema was looked at by hand (kubernetes-validate)."""
    job, gathering = kubernetes_jobs()
    assert [one["spec"].get("suspend", False) for one in (job, gathering)] == [False, True]
    assert job["spec"]["template"] == gathering["spec"]["template"]
    assert (job["spec"]["completionMode"], job["spec"]["template"]["spec"]["restartPolicy"]) == ("Indexed", "Never")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    ignored, final = job["spec"]["podFailurePolicy"]["rules"]
    assert (ignored["action"], final["action"]) == ("Ignore", "FailIndex")
    codes = final["onExitCodes"]
    assert (codes["containerName"], codes["operator"]) == (container["name"], "In")
    # With these, and no others but 0, no task of a batch is left: the worst is told, and what is tried again is worse.
    assert codes["values"] == sorted(FINISHED - {Exit.DONE, Exit.BLOCKED})


# --- a CI matrix ---


class Workflow:
    """Runs the jobs of examples/ci-matrix.yml, each on a machine of its own; artifacts are folders."""

    def __init__(self, fleet: Fleet, folder: Path) -> None:
        self._fleet = fleet
        self._file = yaml.safe_load((EXAMPLES / "ci-matrix.yml").read_text())
        self.temp = folder / "temp"
        self._artifacts = folder / "artifacts"
        self.parts: list[int] = self._file["jobs"]["part"]["strategy"]["matrix"]["part"]

    def job(self, name: str, part: int = 0) -> dict[str, int]:
        """Run the steps of a job. Return the exit code of each that is a script, by its name."""
        shutil.rmtree(self.temp, ignore_errors=True)
        self.temp.mkdir()
        codes: dict[str, int] = {}
        for step in self._file["jobs"][name]["steps"]:
            given = {key: self._filled(str(value), part) for key, value in step.get("with", {}).items()}
            if "run" in step:
                if step.get("if") == "always()" or not any(codes.values()):
                    codes[step["name"]] = self._ran(step, part)
            elif "/upload-artifact@" in step["uses"]:
                self._upload(given)
            elif "/download-artifact@" in step["uses"]:
                self._download(given)
        return codes

    def _ran(self, step: Mapping[str, Any], part: int) -> int:
        if step["name"] == "Install":  # it reaches the network
            (self.temp / "harness" / "bin").mkdir(parents=True)
            python = self.temp / "harness" / "bin" / "python"
            python.write_text(f'#!/bin/sh\nexec {shell_word(sys.executable)} "$@"\n')
            python.chmod(0o755)
            return 0
        assert "${{" not in step["run"]
        given = {key: self._filled(str(value), part) for key, value in step.get("env", {}).items()}
        common = {**self._file["env"], "POLICY_SHA256": DIGEST, "RUNNER_TEMP": str(self.temp), "GITHUB_ACTIONS": "true"}
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        process = self._fleet.start(words, **common, **given)
        process.communicate(timeout=SECONDS)
        return process.returncode

    def _filled(self, text: str, part: int) -> str:
        values = {"runner.temp": str(self.temp), "matrix.part": str(part), "secrets.OPENAI_API_KEY": "sk-of-the-job"}
        return re.sub(r"\$\{\{ (\S+) \}\}", lambda found: values[found[1]], text)

    def _upload(self, given: Mapping[str, str]) -> None:
        """Keep what the lines of `path` name, below the folder that they have in common; no modes."""
        kept = self._artifacts / given["name"]
        shutil.rmtree(kept, ignore_errors=True)
        found = [path for line in given["path"].splitlines() for path in Path("/").glob(line.removeprefix("/"))]
        top = os.path.commonpath([path.parent for path in found])
        for path in found:
            for file in [path, *path.rglob("*")]:
                if file.is_file():
                    to = kept / file.relative_to(top)
                    to.parent.mkdir(parents=True, exist_ok=True)
                    to.write_bytes(file.read_bytes())

    def _download(self, given: Mapping[str, str]) -> None:
        """Fetch one artifact by its name, or each that a pattern names into a folder of that name."""
        if "name" in given:
            if (self._artifacts / given["name"]).exists():
                shutil.copytree(self._artifacts / given["name"], given["path"])
            return
        for kept in self._artifacts.glob(given["pattern"]):
            shutil.copytree(kept, Path(given["path"]) / kept.name)


def test_the_parts_of_the_ci_matrix_are_put_together(fleet: Fleet, tmp_path: Path) -> None:
    """Of a part, the key is refused at first: at the second attempt it goes on with its artifact."""
    workspace = fleet.program.workspace
    (workspace / "ci").mkdir()
    (workspace / "ci" / "harness.toml").write_text(POLICY)
    tasks = [dict[str, object](id=name, prompt=prompt) for name, prompt in PROMPTS.items()]
    write_tasks(workspace / "ci" / "tasks.jsonl", *tasks)
    git(workspace, "init", "--quiet")
    git(workspace, "add", "-A")
    git(workspace, "commit", "--quiet", "-m", "one")
    workflow = Workflow(fleet, tmp_path)
    fleet.player.refusing = True
    assert workflow.job("part", 2)["Do a part"] == Exit.MODEL
    fleet.player.refusing = False
    codes = [workflow.job("part", part)["Do a part"] for part in workflow.parts]
    assert (codes, len(fleet.player.prompts)) == ([0, 0, 7, 0], len(PROMPTS))
    assert workflow.job("gather") == {
        "Install": 0, "Put the parts together": 0, "Do what is left": 7, "Verify and report": 0,
    }  # fmt: skip
    assert len(fleet.player.prompts) == len(PROMPTS)
    made = workflow.temp / "tasks"
    assert sorted(path.name for path in (made / "results" / "t4" / "attempts").iterdir()) == ["1", "2"]
    assert {"report.html", "report.xml"} <= set(os.listdir(made))
    check_gathered(fleet, made / "results", made / "state")


def test_a_log_that_was_not_gathered_is_missed(fleet: Fleet) -> None:
    for part in range(1, PARTS + 1):
        ended(slurm_element(fleet, part), 0, 7)
    shutil.rmtree(fleet.results / "t1")
    code, told = fleet.audit("verify", str(fleet.results))
    assert (code, re.findall(r"^(.+): gone$", told, re.MULTILINE)) == (
        1,
        [str(fleet.results / "t1" / "attempts" / "1" / "log.jsonl")],
    )


@pytest.mark.parametrize("name", ["slurm.sh", "kubernetes.yaml", "ci-matrix.yml"])
def test_a_recipe_has_as_many_parts_everywhere(name: str) -> None:
    text = (EXAMPLES / name).read_text()
    counts = {
        "slurm.sh": (r"--array=1-(\d+)$", r"^parts=(\d+) "),
        "kubernetes.yaml": (r"completions: (\d+)$", r"parallelism: (\d+)$", r"\+ 1\)\)/(\d+)\}"),
        "ci-matrix.yml": (r"part: \[.* (\d+)\]", r'--shard "\$PART/(\d+)"'),
    }
    found = [re.findall(pattern, text, re.MULTILINE) for pattern in counts[name]]
    assert found == [[str(PARTS)]] * len(found)
