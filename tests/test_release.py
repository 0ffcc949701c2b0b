"""What is handed out: the workflows, the image and the wheel, as far as that goes without a runner or a container."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml
from rows import all_rows

from harness import __version__

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = [*sorted((ROOT / ".github/workflows").glob("*.yml")), ROOT / "action.yml"]
EXAMPLES = sorted((ROOT / "examples").glob("*.yml"))

Instruction = tuple[str, str]


def instructions() -> list[Instruction]:
    """Return the instructions of the Dockerfile, each with its words on one line."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def copied() -> Iterator[str]:
    """Return the files and folders that the image is made from."""
    for word, rest in instructions():
        if word == "COPY" and not rest.startswith("--from="):
            yield from rest.split()[:-1]


# --- workflows ---


def actions_of(step_text: str) -> list[tuple[str, str]]:
    return re.findall(r"uses: (?!\./)(\S+)(.*)$", step_text, re.MULTILINE)


@all_rows("path", [*WORKFLOWS, *EXAMPLES])
def test_a_workflow_takes_the_actions_of_others_by_a_full_hash_and_names_the_version(path: Path) -> None:
    found = [one for one in actions_of(path.read_text(encoding="utf-8")) if not one[0].startswith("OWNER/")]
    pinned = [name for name, note in found if re.fullmatch(r"\S+@[0-9a-f]{40}", name) and re.match(r" # v\d+\.", note)]
    assert pinned == [name for name, _ in found]


def test_all_workflows_take_an_action_at_one_version() -> None:
    versions: dict[str, set[str]] = {}
    for path in [*WORKFLOWS, *EXAMPLES]:
        for name, note in actions_of(path.read_text(encoding="utf-8")):
            versions.setdefault(name.partition("@")[0], set()).add(name.partition("@")[2] + note)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_zizmor_finds_nothing_in_the_workflows() -> None:
    zizmor = Path(sys.executable).with_name("zizmor")
    program = str(zizmor) if zizmor.exists() else shutil.which("zizmor")
    if program is None:
        pytest.skip("zizmor is not installed")
    words = [program, "--offline", "--no-progress", "--format=json", "--config", str(ROOT / ".github/zizmor.yml")]
    done = subprocess.run(
        [*words, *map(str, WORKFLOWS)], capture_output=True, text=True, check=False, timeout=120, cwd=ROOT
    )
    found = [(finding["ident"], finding["desc"]) for finding in json.loads(done.stdout)]
    assert (found, done.returncode) == ([], 0), done.stderr


def test_actionlint_finds_nothing_in_the_workflows() -> None:
    program = shutil.which("actionlint")
    if program is None:
        pytest.skip("actionlint is not installed")
    workflows = [str(path) for path in WORKFLOWS if path.name != "action.yml"]
    done = subprocess.run([program, *workflows], capture_output=True, text=True, check=False, timeout=120, cwd=ROOT)
    assert (done.stdout, done.returncode) == ("", 0)


def test_only_the_jobs_that_need_it_may_ask_for_an_identity() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))["jobs"]
    assert {name: job["permissions"] for name, job in jobs.items()} == {
        "build": {"contents": "read"},
        "attest": {"attestations": "write", "id-token": "write"},
        "publish": {"id-token": "write"},
    }
    assert [step["uses"].partition("@")[0] for step in jobs["publish"]["steps"]] == [
        "actions/download-artifact",
        "pypa/gh-action-pypi-publish",
    ]


# --- the image ---


def test_the_image_is_copied_from_files_that_are_there_and_not_ignored() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = [line.removeprefix("!") for line in lines if line.startswith("!")]
    assert "*" in lines
    assert sorted(copied()) == sorted(let_in)
    assert [name for name in copied() if not (ROOT / name).exists()] == []


def test_the_image_runs_harness_under_tini_as_an_ordinary_user() -> None:
    last_stage = instructions()[[word for word, _ in instructions()].index("FROM") :]
    last_stage = last_stage[max(at for at, (word, _) in enumerate(last_stage) if word == "FROM") :]
    said = dict(last_stage)
    packages = " ".join(rest for word, rest in last_stage if word == "RUN" and "apt-get" in rest)
    assert json.loads(said["ENTRYPOINT"]) == ["tini", "--", "harness"]
    assert said["USER"] == "harness"
    assert f"useradd --create-home --uid 1000 {said['USER']} " in packages
    assert {"bubblewrap", "git", "tini"} <= set(packages.split())
    assert list(said)[-3:] == ["USER", "WORKDIR", "ENTRYPOINT"]
    known = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT"}
    assert {word for word, _ in instructions()} <= known


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that the image's own step makes of what the image is given, without an index."""
    folder = tmp_path_factory.mktemp("image")
    for name in copied():
        source, target = ROOT / name, folder / "source" / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(exist_ok=True)
            shutil.copy(source, target)
    (step,) = [rest for word, rest in instructions() if word == "RUN" and rest.startswith("pip wheel ")]
    words = step.replace("/wheel", str(folder / "wheel")).split()
    command = [sys.executable, "-m", *words, "--no-index", "--no-build-isolation", "--quiet"]
    subprocess.run(command, cwd=folder / "source", check=True, timeout=300)
    (made,) = (folder / "wheel").iterdir()
    return made


def test_a_build_leaves_nothing_beside_what_is_published(wheel: Path, tmp_path: Path) -> None:
    source = wheel.parent.parent / "source"
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=source, check=True, timeout=300, capture_output=True)
    assert [path.name for path in tmp_path.iterdir()] == [wheel.name]


@pytest.fixture(scope="module")
def about(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_bytes(archive.read(name))


def test_the_wheel_of_the_image_holds_the_program_its_policies_and_its_pages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for wanted in (
        "harness/__main__.py",
        "harness/policies/ci.toml",
        "harness/docs/ci.md",
        "*/share/man/man1/harness.1",
    ):
        assert [name for name in names if fnmatch(name, wanted)] != [], wanted
    assert [name for name in names if name.startswith(("tests/", "docs/"))] == []


def test_the_wheel_of_the_image_starts(wheel: Path, tmp_path: Path) -> None:
    """In a fresh environment; the packages that it needs are those of this one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True, timeout=120)
    (site,) = tmp_path.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (site / "others.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    command = [str(tmp_path / "bin/python"), "-I", "-c", "from harness.__main__ import program; program()", "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == (f"harness {__version__}\n", "", 0)


# --- the page on the index ---


def test_links_and_pictures_of_the_page_on_the_index_are_whole(about: Message) -> None:
    text = str(about.get_payload())
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    targets = re.findall(r"\]\(([^)#][^)]*)\)", text)
    assert [target for target in targets if not target.startswith("https://")] == []
    assert f"{urls['Source']}/raw/v{__version__}/docs/demo.svg" in targets
    assert [line.partition(", ")[0] for line in about.get_all("Project-URL", [])] == list(urls)


def test_the_package_says_what_it_is_tested_on(about: Message) -> None:
    classifiers = about.get_all("Classifier", [])
    assert f"Programming Language :: Python :: {sys.version_info[0]}.{sys.version_info[1]}" in classifiers
    assert [one for one in classifiers if one.startswith("Operating System")] == ["Operating System :: POSIX :: Linux"]
