"""Random trees and random command lines on them, undone: plainly, killed and resumed, or beside a second writer.

`python tests/support/undo_world.py --seed 0 --count 2000` tries as many, and prints what became of them.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.files.path_states import UNREADABLE
from harness.files.segments import StoreLimits
from harness.files.tree_undo import UNREAD_BETWEEN, CallChanges, UndoPlan, plan_undo
from harness.files.tree_watch import TreeWatch
from harness.files.undo_run import UndoResult, apply_undo, resume_undo

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
NO_DISK_LIMIT = StoreLimits(free=0, free_percent=0)
NAMES = (
    "a", "b", "c.txt", "d e", "-f", "new\nline", "it's", 'a"b', "*", "$(x)", "é", os.fsdecode(b"\xff\xfe"), ".hidden",
    "A", "app.db", "app.db-wal", "~", "x" * 200, "\\", "build",
)  # fmt: skip
TEXTS = ("", "one\n", "two\nlines\n", "x" * 5_000, "no newline", "\x00\x01binary")
LINKS = ("a", "d e", "gone", "app.db")
"""Targets of links. Commands write through links, so none leads out of its folder."""
LARGE = 10_000_100
Entry = tuple[str, int, bytes]
"""Kind, permission bits and content of a path."""


def snapshot(root: str) -> dict[str, Entry]:
    """Return a folder and all paths below it but those of git."""
    entries: dict[str, Entry] = {".": ("folder", stat.S_IMODE(os.lstat(root).st_mode), b"")}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            mode = stat.S_IMODE(status.st_mode)
            relative = os.path.relpath(path, root)
            if stat.S_ISLNK(status.st_mode):
                entries[relative] = ("link", 0, os.fsencode(os.readlink(path)))
            elif stat.S_ISDIR(status.st_mode):
                entries[relative] = ("folder", mode, b"")
            elif stat.S_ISREG(status.st_mode):
                content = b"%d bytes" % status.st_size if status.st_size > LARGE - 100 else read(path)
                entries[relative] = ("file", mode, content)
            else:
                entries[relative] = ("special", mode, b"")
    return entries


def read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except PermissionError:
        return b"(closed)"


def make_tree(rng: random.Random, root: str) -> None:
    """Make a tree of at most thirty paths, a fifth of the time in a repository that holds most of them."""
    folders = [root]
    for _ in range(rng.randrange(3, 12)):
        folder = os.path.join(rng.choice(folders), rng.choice(NAMES))
        if not os.path.lexists(folder):
            os.mkdir(folder)
            folders.append(folder)
    for _ in range(rng.randrange(4, 18)):
        path = os.path.join(rng.choice(folders), rng.choice(NAMES))
        if not os.path.lexists(path):
            kind = rng.random()
            if kind < 0.15:
                os.symlink(rng.choice(LINKS), path)
            else:
                with open(path, "w") as file:
                    file.write(rng.choice(TEXTS))
                if kind < 0.3:
                    os.chmod(path, rng.choice((0o600, 0o755, 0o444, 0o640)))
    if rng.random() < 0.2:
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0"]
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all", "--allow-empty"]):
            subprocess.run([*git, *words], cwd=root, check=True, env={**ENVIRONMENT, "GIT_CONFIG_NOSYSTEM": "1"})
        time.sleep(0.03)


class World(NamedTuple):
    """A tree, and where its state is kept."""

    root: str
    stores: str
    journal: str


def command_line(rng: random.Random, root: str) -> str:
    """Return a line of one to five commands, on paths that exist or not."""
    return "; ".join(command(rng, root) for _ in range(rng.randrange(1, 6)))


def command(rng: random.Random, root: str) -> str:
    paths = sorted(snapshot(root).keys() - {"."})
    folders = [".", *(path for path in paths if os.path.isdir(os.path.join(root, path)))]

    def old() -> str:
        return rng.choice(paths) if paths else "none"

    def new() -> str:
        return os.path.join(rng.choice(folders), rng.choice(NAMES))

    def word(path: str) -> str:
        return shlex.quote(f"./{path}")

    content = shlex.quote(rng.choice(TEXTS).replace("\x00", "@"))
    one, other, some = word(old()), word(new()), word(rng.choice((old(), new())))
    mode, place = rng.choice(("755", "u+x", "a-w", "700", "1777", "g+s", "600", "444", "000")), word(old())
    # The tests themselves must be able to look into folders, also into one that an earlier command of the line made.
    closes = os.getuid() != 0 and mode in ("600", "444", "000")
    chmod = f"[ -d {place} ] || chmod {mode} {place}" if closes else f"chmod {mode} {place}"
    choices = {
        f"[ -p {other} ] || printf %s {content} > {other}": 8,  # a pipe would wait for a reader
        f"[ -p {some} ] || printf %s {content} >> {some}": 8,
        f"rm -f {one}": 6,
        f"rm -rf {one}": 5,
        f"mkdir -p {other}/{word(rng.choice(NAMES))}": 4,
        f"rmdir {one}": 1,
        f"mv -f {one} {other}": 8,
        f"mv -fT {one} {other}": 3,
        f"cp -a {one} {other}": 4,
        f"cp -r {one} {other}": 1,
        f"ln -sfn {shlex.quote(rng.choice(LINKS))} {some}": 5,
        f"ln -f {one} {other}": 2,
        chmod: 6,
        f"chmod -R {rng.choice(('u+rwX', 'go-rwx', '755'))} {one}": 2,
        f"chmod {rng.choice(('755', '700', '711', '1777'))} .": 1,
        f"touch {some}": 3,
        f"truncate -s {rng.choice((0, 7, 300_000))} {some}": 3,
        f"[ -p {one} ] || sed -i s/o/0/ {one}": 2,
        f"[ -f {one} ] && [ ! -L {one} ] && printf %s {content} | dd of={one} conv=notrunc seek=3 bs=1": 3,
        f"find {one} -type f -name '*a*' -delete": 1,
        f"rm -rf {one}; mkdir {one}; echo x > {one}/inner": 2,
        f"rm -rf {one}; echo file > {one}": 2,
        f"rm -rf {one}; ln -s a {one}": 2,
        f"tar -cf - {one} | (mkdir -p {other}; cd {other} && tar -xf -)": 1,
        f"mkfifo {other}": 0.4,
        "mkdir -p node_modules; echo x > node_modules/a": 0.4,
        f"truncate -s {LARGE} {some}": 0.4,
    }
    return rng.choices(list(choices), list(choices.values()))[0]


def run(line: str, root: str) -> None:
    subprocess.run(
        ["bash", "-c", line], cwd=root, check=False, stdin=subprocess.DEVNULL, capture_output=True, env=ENVIRONMENT
    )


def record(rng: random.Random, world: World, watch: TreeWatch) -> list[CallChanges]:
    """Run one to three command lines, and return the changes of each."""
    calls = []
    for number in range(rng.randrange(1, 4)):
        noted = watch.note(fresh_seconds=rng.choice((0, 1)))
        run(command_line(rng, world.root), world.root)
        calls.append(CallChanges(call=number + 1, changes=noted.compared()))
        assert calls[-1].changes.problem == ""
    return calls


def plan(world: World, watch: TreeWatch, calls: Sequence[CallChanges], chosen: Sequence[int]) -> UndoPlan:
    return plan_undo(world.root, calls, chosen, watch.store.has)


def above(paths: Sequence[str]) -> Iterator[str]:
    """Yield the paths and the folders above them."""
    for path in paths:
        parts = path.split("/")
        yield from ("/".join(parts[:count]) for count in range(1, len(parts) + 1))


def differences(one: dict[str, Entry], other: dict[str, Entry]) -> dict[str, tuple[Entry | None, Entry | None]]:
    return {path: (one.get(path), other.get(path)) for path in {*one, *other} if one.get(path) != other.get(path)}


def without_set_id(entries: dict[str, Entry]) -> dict[str, Entry]:
    """Return the entries without the bits of files that undo never gives."""
    return {
        path: (kind, mode & 0o777, content) if kind == "file" else (kind, mode, content)
        for path, (kind, mode, content) in entries.items()
    }


def apply_killed(rng: random.Random, world: World, watch: TreeWatch, undo_plan: UndoPlan) -> tuple[UndoResult, int]:
    """Carry out a plan in processes that kill themselves at a random action, at most three times, and then resume."""
    kills = 0
    for _ in range(3):
        remaining = [rng.randrange(1, 3 + 8 * len(undo_plan.steps))]

        def pause(action: str, remaining: list[int] = remaining) -> None:
            remaining[0] -= 1
            if remaining[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        child = os.fork()
        if child == 0:
            status = 1
            try:
                if os.path.exists(world.journal):
                    resume_undo(world.journal, watch.store, pause=pause)
                else:
                    apply_undo(world.root, undo_plan, watch.store, world.journal, pause=pause)
                status = 0
            finally:
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        assert os.WIFSIGNALED(ended) or os.WEXITSTATUS(ended) == 0, "the undo raised"
        kills += os.WIFSIGNALED(ended)
        watch.store.refresh()
        if not os.path.exists(world.journal):
            return apply_undo(world.root, UndoPlan(steps=()), watch.store, world.journal), kills
    return resume_undo(world.journal, watch.store), kills


def unrestored(undo_plan: UndoPlan, result: UndoResult) -> list[str]:
    """Return the paths that undo named as not taken back."""
    return [place.path for place in (*undo_plan.cannot, *undo_plan.leaves, *result.untouched)]


def try_plain(rng: random.Random, world: World, *, killed: bool) -> str:
    """Undo all calls, then undo the undo. Return a word for what happened."""
    watch = TreeWatch(world.root, world.stores, environment=ENVIRONMENT, limits=NO_DISK_LIMIT)
    before = snapshot(world.root)
    calls = record(rng, world, watch)
    left = snapshot(world.root)
    undo_plan = plan(world, watch, calls, [call.call for call in calls])
    kills = 0
    if killed and undo_plan.steps:
        result, kills = apply_killed(rng, world, watch, undo_plan)
    else:
        result = apply_undo(world.root, undo_plan, watch.store, world.journal)
    after = snapshot(world.root)
    left_out = {place.path for call in calls for place in call.changes.left_out}
    named = {*above(unrestored(undo_plan, result)), *left_out}
    wrong = {
        path: pair
        for path, pair in differences(before, after).items()
        if path not in named and not any(path.startswith(f"{one}/") for one in named)
    }
    assert wrong == {}, f"{wrong}\n{undo_plan}\n{result.untouched}"
    # An ordinary user cannot read a closed file: its content cannot be compared with what a call left there.
    is_special = any(place.reason in ("special file", "over 10 MB", UNREADABLE) for place in undo_plan.cannot)
    is_special = is_special or any(one.reason == "build folder" for call in calls for one in call.changes.left_out)
    is_special = is_special or any(place.reason.startswith(UNREAD_BETWEEN) for place in undo_plan.leaves)
    assert is_special or (not named and not differences(before, after)), (
        undo_plan.leaves,
        undo_plan.cannot,
        result.untouched,
    )
    assert not os.path.exists(world.journal)
    if not killed and not named:
        again = plan(world, watch, [CallChanges(call=1, changes=result.changes)], [1])
        apply_undo(world.root, again, watch.store, world.journal)
        wrong = differences(without_set_id(left), without_set_id(snapshot(world.root)))
        assert wrong == {}, ("the undo of the undo", wrong)
    return "special" if is_special else f"killed {min(kills, 1)}" if killed else "plain"


def try_second_writer(rng: random.Random, world: World) -> str:
    """Undo beside a second program that writes after the calls, and during the undo. Nothing of it may be touched."""
    watch = TreeWatch(world.root, world.stores, environment=ENVIRONMENT, limits=NO_DISK_LIMIT)
    before = snapshot(world.root)
    calls = record(rng, world, watch)
    changed = sorted({change.path for call in calls for change in call.changes.changes})
    left = snapshot(world.root)
    if rng.random() < 0.5:
        undo_plan = None
        run(command_line(rng, world.root), world.root)
    else:
        undo_plan = plan(world, watch, calls, [call.call for call in calls])
    own: dict[str, str] = {}

    def pause(action: str) -> None:
        """Write at a random action, as a program does that replaces files."""
        path = rng.choice(changed or ["."])
        if path != "." and rng.random() < 0.3:
            place = os.path.join(world.root, path)
            text = f"mine {rng.random()}"
            if os.path.realpath(os.path.dirname(place)) != os.path.dirname(place):
                return  # through a link it would be another path
            try:
                if os.path.isdir(place) and not os.path.islink(place):
                    path, place = f"{path}/mine", f"{place}/mine"
                with open(f"{world.root}.mine", "w") as file:
                    file.write(text)
                os.replace(f"{world.root}.mine", place)
                own[path] = text
            except OSError:
                pass

    others = differences(left, snapshot(world.root))
    undo_plan = undo_plan or plan(world, watch, calls, [call.call for call in calls])
    result = apply_undo(world.root, undo_plan, watch.store, world.journal, pause=pause)
    after = snapshot(world.root)
    texts = {entry[2] for entry in after.values()}
    lost = {path: text for path, text in own.items() if text.encode() not in texts}
    assert lost == {}, f"{lost}\n{undo_plan}\n{result}"
    # What the second program left is as it left it, unless it left what was there before the calls.
    touched = {
        path: (pair[1], after.get(path))
        for path, pair in others.items()
        if after.get(path) != pair[1] and path not in own and after.get(path) != before.get(path)
    }
    touched = {path: pair for path, pair in touched.items() if not any(f"{path}/".startswith(f"{one}/") for one in own)}
    assert touched == {}, f"{touched}\n{undo_plan}\n{result}"
    unchanged = {
        path: pair
        for path, pair in differences(left, after).items()
        if path not in changed and path not in others and path not in own and ".harness-undo-" not in path
    }
    assert unchanged == {}, f"{unchanged}\n{undo_plan}"
    return "second writer"


def try_one(seed: int, folder: str | None = None) -> str:
    """Try one tree, in a new folder below `folder`. Return a word for what was tried."""
    rng = random.Random(seed)
    folder = tempfile.mkdtemp(prefix="undo ", dir=folder)
    try:
        world = World(os.path.join(os.path.realpath(folder), "a tree"), f"{folder}/stores", f"{folder}/journal")
        os.mkdir(world.root)
        make_tree(rng, world.root)
        match seed % 3:
            case 0:
                return try_plain(rng, world, killed=False)
            case 1:
                return try_plain(rng, world, killed=True)
            case _:
                return try_second_writer(rng, world)
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", folder], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=2_000)
    options = parser.parse_args()
    words: Counter[str] = Counter()
    try:
        for seed in range(options.seed, options.seed + options.count):
            try:
                words[try_one(seed)] += 1
            except (AssertionError, OSError, ValueError) as error:
                print(f"seed {seed}: {error!r}"[:3_000], file=sys.stderr)
                words["FAILED"] += 1
    finally:
        print(dict(words), flush=True)
    sys.exit(bool(words["FAILED"]))


if __name__ == "__main__":
    main()
