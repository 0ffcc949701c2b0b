"""A task's repository that is fetched: one mirror for each address, a worktree for each task, and keys that no command sees."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_scene import POLICY, applied, git, repository, serving, until, write_tasks
from git_server import git_server
from program import Done, Program
from rows import all_rows

from harness.errors import UsageError
from harness.plugins.fleet.batch.sources import refuse_outside, work_folder_of
from harness.plugins.fleet.batch.task import Task, read_tasks, task_of
from harness.sandbox import enforces, probe
from harness.session.work_folders.changes import CHANGES
from harness.session.work_folders.mirror import mirror_of
from harness.session.work_folders.transport import address_problem, local_path
from harness.session.work_folders.work_folder import WorkFolder
from harness.session.work_folders.worktree import remove_work_folder

needs_walls = pytest.mark.skipif(not enforces(probe()), reason="this machine cannot confine commands")
NOWHERE = "1" * 40

GOOD = """\
https://github.com/psf/requests
https://github.com/psf/requests.git
https://host.example:8443/a/b@c
http://127.0.0.1:80/x
http://[::1]:80/x
ssh://git@host.example/a/b.git
ssh://host.example:22/a
git@github.com:psf/requests.git
host:path
file:///srv/a%20b
/srv/repo
/srv/a:b
../repo
repo
""".splitlines()


@all_rows("address", GOOD)
def test_an_address_may_be_one_of_a_few(address: str) -> None:
    assert address_problem(address) == ""


@all_rows(
    ("address", "told"),
    [
        ("https://me:hunter22@host/x", "a password before the host"),
        ("https://ghp_token@host/x", "a password before the host"),
        ("https://me:hunt/er22@host/x", "names no host"),
        ("https://me%3Ahunter22%40host@host/x", "a password before the host"),
        ("http://host/x?private_token=hunter22", "`?` or `#`"),
        ("ssh://git:hunter22@host/x", "a password before the host"),
        ("git:hunter22@host:x", "a password before the host"),
        ("ext::sh -c evil", "a program of its own"),
        ("ext::sh%20-c%20evil", "a program of its own"),
        ("fd::17/foo", "a program of its own"),
        ("git://host/x", "must begin with one of"),
        ("ftp://host/x", "must begin with one of"),
        ("HTTPS://host/x", "must begin with one of"),
        ("ssh://-oProxyCommand=evil/x", "names no host"),
        ("-oProxyCommand=evil:x", "a dash"),
        ("a@-oProxyCommand=evil:x", "names no host"),
        ("--upload-pack=evil", "a dash"),
        ("file://host/x", "an absolute path"),
        ("https://", "names no host"),
        ("https://host/x\n", "one line"),
    ],
)
def test_invalid_address_is_refused_and_not_repeated(address: str, told: str) -> None:
    problem = address_problem(address)
    assert told in problem
    assert "hunter22" not in problem
    with pytest.raises(UsageError) as refused:
        task_of(json.dumps({"id": "a", "prompt": "p", "repo": address, "commit": NOWHERE}).encode(), "tasks.jsonl:1")
    assert "tasks.jsonl:1: repo: " in str(refused.value)
    assert "hunter22" not in str(refused.value)


def test_a_local_repository_is_a_path_with_its_links_followed(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "link").symlink_to("a b")
    real = os.path.realpath(tmp_path / "a b")
    assert local_path(f"file://{tmp_path}/a%20b") == local_path(str(tmp_path / "link")) == real
    assert local_path("git@host:x") is None
    assert local_path("https://host/x") is None


SHA = "a" * 64


@all_rows(
    ("fields", "told"),
    [
        ({"repo": "r"}, "repo: it needs commit"),
        ({"repo": "r", "commit": "abc"}, "commit: must be the full ID"),
        ({"repo": "r", "commit": "A" * 40}, "commit: must be the full ID"),
        ({"repo": "r", "commit": NOWHERE, "revision": "main"}, "revision: it does not go with repo"),
        ({"repo": "r", "commit": NOWHERE, "sha256": SHA}, "sha256: it goes with bundle or archive"),
        ({"repo": "r", "commit": NOWHERE, "cwd": "/x"}, "cwd: with repo it is a folder in it"),
        ({"repo": "r", "commit": NOWHERE, "cwd": "a/../../b"}, "cwd: with repo it is a folder in it"),
        ({"commit": NOWHERE}, "`revision` names a commit"),
        ({"sha256": SHA}, "sha256: it goes with bundle or archive"),
        ({"repo": "r", "commit": NOWHERE, "bundle": "b", "sha256": SHA}, "bundle: repo stands there too"),
        ({"bundle": "b", "commit": NOWHERE}, "bundle: it needs sha256"),
        ({"bundle": "b", "sha256": SHA}, "bundle: it needs commit"),
        ({"archive": "b"}, "archive: it needs sha256"),
        ({"archive": "b", "sha256": SHA, "commit": NOWHERE}, "commit: it goes with repo or bundle"),
        ({"archive": "b", "sha256": "12"}, "sha256: must be a SHA-256"),
        ({"priority": -1}, "priority: must be a whole number from 0"),
        ({"priority": 2**31}, "priority: must be a whole number from 0"),
        ({"group": ""}, "group: must not be empty"),
    ],
)
def test_contradictory_fields_are_named(fields: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        task_of(json.dumps({"id": "a", "prompt": "p", **fields}).encode(), "x")
    assert told in str(refused.value)


@all_rows(
    "fields",
    [
        {"repo": "https://host/x", "commit": NOWHERE, "cwd": "a/b", "priority": 0, "group": "g"},
        {"bundle": "/b", "commit": NOWHERE, "sha256": SHA},
        {"archive": "/b", "sha256": SHA, "priority": 2**31 - 1},
    ],
)
def test_task_text_survives_a_round_trip(fields: dict[str, object]) -> None:
    given = {"id": "a", "prompt": "p", **fields}
    task = task_of(json.dumps(given).encode(), "x")
    assert task.file_fields == given
    assert task_of(task.text.encode(), "y") == task


class _Origin:
    """A repository to fetch from, and folders for the work folders of tasks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.served = folder / "served"
        self.repository = repository(self.served / "repo")
        self.environment = {"HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "state")}
        (folder / "home").mkdir()
        self.told: list[str] = []

    def commit(self, text: str) -> str:
        (self.repository / "a.txt").write_text(text)
        git(self.repository, "commit", "--quiet", "-am", text)
        return self.head()

    def head(self) -> str:
        return git(self.repository, "rev-parse", "HEAD").strip()

    def mirror(self, commit: str, address: str | None = None) -> str:
        return mirror_of(address or str(self.repository), commit, self.environment, self.told.append)

    def work(self, name: str, **fields: object) -> tuple[WorkFolder, str]:
        attempt = self.folder / "out" / name / "attempts" / "1"
        attempt.mkdir(parents=True)
        source = {"repo": str(self.repository), "commit": self.head()} if "repo" not in fields else {}
        task = task_of(json.dumps({"id": name, "prompt": "p", **source, **fields}).encode(), "x")
        out = str(self.folder / "out")
        return work_folder_of(task, str(attempt), "/", out, self.environment, self.told.append), str(attempt)

    def mirrors(self) -> list[str]:
        return sorted(os.listdir(self.folder / "state" / "harness" / "mirrors"))


@pytest.fixture
def origin(tmp_path: Path) -> _Origin:
    return _Origin(tmp_path)


def test_fetched_commit_is_available_offline(origin: _Origin) -> None:
    first = origin.head()
    later = origin.commit("two\n")
    mirror = origin.mirror(later)
    origin.repository.rename(origin.folder / "away")
    (origin.folder / "served" / "repo").mkdir()  # where it was, there is no repository any more
    assert origin.mirror(later) == origin.mirror(first) == mirror  # the first came with the later one
    assert len(origin.told) == 1
    assert stat.S_IMODE(os.stat(mirror).st_mode) == 0o700
    with pytest.raises(UsageError, match="cannot be fetched"):
        origin.mirror(NOWHERE)


def test_missing_commit_is_named(origin: _Origin) -> None:
    with pytest.raises(UsageError, match=f"missing commit {NOWHERE}"):
        origin.mirror(NOWHERE)
    tree = git(origin.repository, "rev-parse", "HEAD^{tree}").strip()
    with pytest.raises(UsageError, match="is a tree, not a commit"):
        origin.mirror(tree)
    with pytest.raises(UsageError, match="no such folder:"):
        origin.mirror(NOWHERE, "/nowhere/at/all")
    assert len(origin.mirror(origin.head())) > 0  # what failed is in nobody's way


def test_a_server_that_gives_no_commit_by_its_name_gives_its_branches(origin: _Origin) -> None:
    first = origin.head()
    origin.commit("two\n")
    with git_server(origin.served, old=True) as server:
        mirror = origin.mirror(first, server.url("repo/.git"))
    assert git(Path(mirror), "--git-dir=.", "log", "-1", "--format=%s", first) == "one\n"


def test_a_repository_of_sha256_names_is_mirrored_too(origin: _Origin, tmp_path: Path) -> None:
    folder = tmp_path / "long"
    folder.mkdir()
    git(folder, "init", "--quiet", "--object-format=sha256")
    (folder / "a").write_text("one\n")
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", "one")
    commit = git(folder, "rev-parse", "HEAD").strip()
    with pytest.raises(UsageError):
        origin.work("x", repo=str(folder), commit=NOWHERE)  # a wrong name is in nobody's way
    work, _ = origin.work("t", repo=str(folder), commit=commit)
    assert (len(commit), Path(work.root, "a").read_text()) == (64, "one\n")


def test_a_task_works_in_a_folder_of_a_worktree_and_is_forgotten(origin: _Origin) -> None:
    one, attempt = origin.work("t1", cwd="sub")
    origin.commit("two\n")
    two, other = origin.work("t2")
    assert (one.repository, one.kind, one.source) == (two.repository, "worktree", str(origin.repository))
    assert one.workspace == os.path.join(one.root, "sub")
    assert (Path(one.root, "a.txt").read_text(), Path(two.root, "a.txt").read_text()) == ("one\n", "two\n")
    assert remove_work_folder(other, origin.environment) == ""
    # What another task began with is not listed: it may hold what this one is to find out.
    assert git(Path(one.root), "log", "--all", "--format=%s") == "one\n"
    assert remove_work_folder(attempt, origin.environment) == ""
    assert not os.path.lexists(os.path.join(one.repository, "worktrees"))


def test_folder_missing_from_the_commit_is_refused(origin: _Origin) -> None:
    (origin.repository / "link").symlink_to("/etc")
    git(origin.repository, "add", "-A")
    git(origin.repository, "commit", "--quiet", "-m", "link")
    for cwd in ("nowhere", "a.txt", "link"):
        with pytest.raises(UsageError, match=r"does not hold the folder|is a link or below one"):
            origin.work(cwd, cwd=cwd)


def test_two_concurrent_fetches_fetch_once(origin: _Origin) -> None:
    commit, found = origin.head(), list[str]()
    with git_server(origin.served) as server:
        server.halts = True
        url = server.url("repo/.git")
        threads = [threading.Thread(target=lambda: found.append(origin.mirror(commit, url))) for _ in range(3)]
        threads[0].start()
        server.halted.wait()
        server.halts = False
        for thread in threads[1:]:
            thread.start()
        server.go_on.set()
        for thread in threads:
            thread.join()
        fetches = server.fetches
    # The first was cut off in the middle, and fetched the branches then; nobody else fetched anything.
    assert (len(set(found)), len(found)) == (1, 3)
    assert fetches <= 2


def test_half_made_mirror_is_made_again(origin: _Origin) -> None:
    mirror = origin.mirror(origin.head())
    left = f"{mirror}.0123.tmp"
    os.rename(mirror, left)
    assert origin.mirror(origin.head()) == mirror
    assert origin.mirrors() == [os.path.basename(mirror), f"{os.path.basename(mirror)}.lock"]
    pack = Path(mirror, "objects", "pack", "tmp_pack_x")
    pack.parent.mkdir(exist_ok=True)
    for age, stays in ((0, True), (100_000, False)):
        pack.touch()
        os.utime(pack, (pack.stat().st_mtime - age,) * 2)
        origin.mirror(origin.commit(f"{age}\n"))
        assert pack.exists() == stays


def test_unfinished_worktree_does_not_block_others(origin: _Origin) -> None:
    work, _ = origin.work("one")
    # So it is for a moment while git adds a worktree, and for good after a kill in that moment.
    Path(work.git_dir, "HEAD").write_text(f"{'0' * 40}\n")
    later = origin.commit("two\n")
    assert git(Path(origin.mirror(later)), "cat-file", "-t", later) == "commit\n"
    other, _ = origin.work("two")
    assert other.base == later


def test_programs_named_by_a_fetched_repository_are_not_run(origin: _Origin, tmp_path: Path) -> None:
    marker, evil = tmp_path / "marker", tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\necho $0 $* >> {shlex.quote(str(marker))}\ncat\n")
    evil.chmod(0o755)
    served = origin.repository
    (served / ".gitattributes").write_text("* filter=evil diff=evil\n")
    (served / ".gitmodules").write_text('[submodule "x"]\n\tpath = x\n\turl = ./x\n\tupdate = none\n')
    git(served, "add", "-A")
    git(served, "commit", "--quiet", "-m", "attributes")
    first, blob = origin.head(), git(served, "rev-parse", "HEAD:a.txt").strip()
    later = origin.commit("two\n")
    for key in (
        "filter.evil.smudge", "filter.evil.clean", "core.fsmonitor", "uploadpack.packObjectsHook", "core.sshCommand",
        "credential.helper", "core.gitProxy", "remote.origin.uploadpack", "core.askPass",
    ):  # fmt: skip
        git(served, "config", key, str(evil) if key in ("core.gitProxy", "core.askPass") else shlex.quote(str(evil)))
    git(served, "config", "remote.origin.url", "ssh://nowhere/x")
    git(served, "config", "remote.origin.promisor", "true")
    git(served, "config", "extensions.partialClone", "origin")
    git(served, "config", "core.hooksPath", str(tmp_path / "hooks"))
    (tmp_path / "hooks").mkdir()
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-receive", "post-update"):
        (tmp_path / "hooks" / hook).write_bytes(evil.read_bytes())
        (tmp_path / "hooks" / hook).chmod(0o755)
    work, _ = origin.work("t", repo=str(served), commit=first)
    assert Path(work.root, "a.txt").read_text() == "one\n"
    assert any("submodules are empty" in note for note in work.notes)
    # A part that is not there is not fetched from where the repository says, by what it says.
    (served / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(UsageError, match="cannot be fetched"):
        mirror_of(str(served), later, {**origin.environment, "XDG_STATE_HOME": str(tmp_path / "s")}, print)
    assert not marker.exists(), marker.read_text()


def test_objects_that_are_not_sound_are_not_taken(origin: _Origin) -> None:
    tree = git(origin.repository, "rev-parse", "HEAD:sub").strip()
    listed = origin.folder / "listed"
    listed.write_bytes(b"40000 .git\0" + bytes.fromhex(tree))
    odd = git(origin.repository, "hash-object", "-t", "tree", "--literally", "-w", str(listed)).strip()
    commit = git(origin.repository, "commit-tree", "-m", "odd", odd).strip()
    git(origin.repository, "branch", "odd", commit)
    with pytest.raises(UsageError, match="cannot be fetched"):
        origin.mirror(commit)
    origin.mirror(origin.head())


def test_an_old_history_with_odd_lines_of_authors_is_taken(origin: _Origin) -> None:
    tree = git(origin.repository, "rev-parse", "HEAD^{tree}").strip()
    told = origin.folder / "told"
    told.write_text(f"tree {tree}\nauthor A <a@b> 1313584730 +051800\ncommitter A <a@b> 1313584730 +051800\n\nodd\n")
    commit = git(origin.repository, "hash-object", "-t", "commit", "--literally", "-w", str(told)).strip()
    git(origin.repository, "branch", "odd", commit)
    work, _ = origin.work("t", repo=str(origin.repository), commit=commit)
    assert Path(work.root, "a.txt").read_text() == "one\n"


def test_messages_never_contain_the_password_of_the_user(origin: _Origin) -> None:
    home = Path(origin.environment["HOME"])
    with git_server(origin.served, login="me:right") as server:
        own = f'[url "http://me:hunter22@127.0.0.1:{server.server_port}/"]\n\tinsteadOf = https://git.example/\n'
        (home / ".gitconfig").write_text(own)
        with pytest.raises(UsageError) as refused:
            origin.mirror(origin.head(), "https://git.example/repo/.git")
    assert "cannot be fetched" in str(refused.value)
    assert "hunter22" not in str(refused.value)


SSH = """\
#!/bin/sh
echo "$SSH_AUTH_SOCK $*" >> {log}
for last; do :; done
exec sh -c "$last"
"""


def test_ssh_uses_the_configuration_and_agent_of_the_user_in_batch_mode(origin: _Origin) -> None:
    log, program = origin.folder / "log", origin.folder / "ssh"
    program.write_text(SSH.format(log=shlex.quote(str(log))))
    program.chmod(0o755)
    environment = {**origin.environment, "SSH_AUTH_SOCK": "/agent"}
    (Path(environment["HOME"]) / ".gitconfig").write_text(
        f"[core]\n\tsshCommand = {shlex.quote(str(program))} -i key\n"
    )
    mirror_of(f"git@host.example:{origin.repository}", origin.head(), environment, origin.told.append)
    told = log.read_text()
    assert told.startswith("/agent -i key -oBatchMode=yes ")


def test_a_worker_refuses_places_of_its_machine(tmp_path: Path) -> None:
    shared, other = tmp_path / "shared", tmp_path / "other"
    for folder in (shared, other):
        folder.mkdir()
    (shared / "out").symlink_to(other)

    def problem(**fields: object) -> str:
        task = Task(id="a", prompt="p", **fields)  # type: ignore[arg-type]
        try:
            refuse_outside(task, [str(shared)])
        except UsageError as error:
            return str(error)
        return ""

    for fine in (str(shared), f"{shared}/x", f"{other}/../shared/x"):
        assert problem(cwd=fine) == problem(bundle=fine) == problem(archive=fine) == problem(repo=fine) == ""
        assert problem(repo=f"file://{fine}") == ""
    for bad in (str(other), f"{shared}/out/x", f"{shared}/../other", f"{shared}-too", "relative"):
        assert "cwd: " in problem(cwd=bad)
        assert "bundle: " in problem(bundle=bad)
        assert "archive: " in problem(archive=bad)
        assert "repo: " in problem(repo=bad)
    assert "repo: " in problem(repo=f"file://{shared}/%6fut/x")
    assert problem(repo="https://host/x", cwd="sub") == problem(repo="git@host:x") == problem() == ""


class Scene:
    """A repository, tasks that fetch it, and the program that does them."""

    def __init__(self, program: Program, folder: Path, url: str) -> None:
        self.program = program
        self.served = folder / "served"
        self.repository = repository(self.served / "repo")
        self.out = folder / "out"
        self.file = folder / "tasks.jsonl"
        self.policy = folder / "policy.toml"
        self.policy.write_text(POLICY)
        self.state = program.state / "harness"
        self._url = url

    def head(self) -> str:
        return git(self.repository, "rev-parse", "HEAD").strip()

    def tasks(self, repo: str, *prompts: str) -> None:
        source: dict[str, object] = {"repo": repo, "commit": self.head()}
        write_tasks(self.file, *[{"id": f"t{n}", "prompt": prompt, **source} for n, prompt in enumerate(prompts)])

    def words(self, *more: str) -> list[str]:
        own = [*more, "--out", str(self.out), "--policy", str(self.policy)]
        return [*own, "--base-url", self._url, "--model", "m"]

    def batch(self) -> Done:
        return self.program.run(*self.words("batch", str(self.file), "-j", "2"))

    def patch(self, name: str) -> str:
        return (self.out / name / CHANGES).read_text()


@pytest.fixture
def scene(program: Program, tmp_path: Path) -> Iterator[Scene]:
    program.environment["OPENAI_API_KEY"] = "sk-none"
    with serving() as (url, _):
        yield Scene(program, tmp_path, url)


def test_batch_fetches_once_for_its_tasks(scene: Scene, tmp_path: Path) -> None:
    with git_server(scene.served) as server:
        scene.tasks(server.url("repo/.git"), "write new.txt hello", "write other.txt there")
        done = scene.batch()
        assert (done.code, server.fetches) == (0, 1), done
    clone = applied(scene.repository, scene.out / "t0" / CHANGES, tmp_path / "clone")
    assert (clone / "new.txt").read_text() == "hello\n"
    assert "+there" in scene.patch("t1")
    work = json.loads((scene.out / "t0" / "work.json").read_text())
    assert (work["kind"], work["base"], work["kept"]) == ("worktree", scene.head(), None)
    assert work["source"].endswith("/repo/.git")
    (mirror,) = (scene.state / "mirrors").glob("*.git")
    assert not (mirror / "worktrees").exists()
    again = scene.batch()  # the server is gone, and nothing is to be done
    assert (again.code, again.out.count("(done earlier)") + again.err.count("(done earlier)")) == (0, 2)


def test_after_a_kill_in_the_middle_of_a_fetch_the_next_start_fetches(scene: Scene) -> None:
    with git_server(scene.served) as server:
        server.halts = True
        scene.tasks(server.url("repo/.git"), "write new.txt hello")
        (task,) = read_tasks(str(scene.file))
        scene.file.write_text(task.text)
        words = scene.words("run", "--task", str(scene.file))
        first = scene.program.start(*words)
        until(server.halted.is_set)
        first.send_signal(signal.SIGKILL)
        first.communicate()
        server.halts = False
        done = scene.program.run(*words)  # the git of the first may be waiting still
        assert done.code == 0, done.err
    assert "+hello" in (scene.out / CHANGES).read_text()


LOOK = """\
import json, os, pathlib, socket
seen = {"names": sorted(os.environ), "read": [], "agent": "closed"}
for path in %r:
    for one in ([path] if os.path.isfile(path) else pathlib.Path(path).rglob("*")):
        try:
            open(one, errors="replace").read()
            seen["read"].append(str(one))
        except OSError:
            pass
try:
    with socket.socket(socket.AF_UNIX) as agent:
        agent.connect(%r)
    seen["agent"] = "open"
except OSError:
    pass
open("seen.json", "w").write(json.dumps(seen))
"""


@needs_walls
def test_a_command_of_a_task_does_not_see_the_keys_that_fetched_it(scene: Scene, tmp_path: Path) -> None:
    from harness.sandbox import bubblewrap

    home = scene.program.home
    (home / ".netrc").write_text("machine 127.0.0.1 login me password hunter2222\n")
    (home / ".git-credentials").write_text("http://me:hunter2222@127.0.0.1\n")
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_ed25519").write_text("hunter2222\n")
    path = str(tmp_path / "agent.socket")
    with socket.socket(socket.AF_UNIX) as agent, git_server(scene.served, login="me:hunter2222") as server:
        agent.bind(path)
        agent.listen()
        scene.program.environment["SSH_AUTH_SOCK"] = path
        # A socket is closed to what may write only where a policy hides it, and bubblewrap works (SECURITY.md).
        scene.policy.write_text(f"{POLICY}[sandbox]\nhide = [{json.dumps(path)}]\n")
        places = [str(home / name) for name in (".netrc", ".git-credentials", ".ssh")]
        (scene.repository / "s.py").write_text(LOOK % ([*places, str(scene.state)], path))
        git(scene.repository, "add", "-A")
        git(scene.repository, "commit", "--quiet", "-m", "look")
        scene.tasks(server.url("repo/.git"), "bash python3 s.py")
        done = scene.batch()
    assert done.code == 0, done
    applied(scene.repository, scene.out / "t0" / CHANGES, tmp_path / "clone")
    seen = json.loads((tmp_path / "clone" / "seen.json").read_text())
    assert [path for path in seen["read"] if not path.startswith(f"{scene.state}/mirrors/")] == []
    assert seen["agent"] == "closed" or not bubblewrap.find()
    assert "SSH_AUTH_SOCK" not in seen["names"]
    # Nor is the password in anything that was written.
    for folder in (scene.out, scene.state):
        for file in filter(Path.is_file, folder.rglob("*")):
            assert b"hunter2222" not in file.read_bytes(), file


GIT = """\
import json, subprocess
words = ["status", "--porcelain"], ["log", "--all", "--format=%s"]
told = [subprocess.run(["git", *one], capture_output=True, text=True) for one in words]
open("seen.json", "w").write(json.dumps([(one.returncode, one.stdout, one.stderr) for one in told]))
"""


def test_commands_of_a_task_have_the_git_of_its_mirror(scene: Scene, tmp_path: Path) -> None:
    (scene.repository / "s.py").write_text(GIT)
    git(scene.repository, "add", "-A")
    git(scene.repository, "commit", "--quiet", "-m", "git")
    scene.tasks(str(scene.repository), "bash python3 s.py")
    assert scene.program.run(*scene.words("run", "--task", str(scene.file))).code == 0
    clone = applied(scene.repository, scene.out / CHANGES, tmp_path / "clone")
    assert json.loads((clone / "seen.json").read_text()) == [[0, "", ""], [0, "git\none\n", ""]]


def test_task_without_a_key_fails_without_a_question(scene: Scene) -> None:
    with git_server(scene.served, login="me:hunter2222") as server:
        scene.tasks(server.url("repo/.git"), "write new.txt hello")
        done = scene.batch()
    assert done.code == 2
    assert "cannot be fetched" in done.out + done.err
