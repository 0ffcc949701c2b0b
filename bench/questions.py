"""Count the questions that a person would be asked in recorded tasks of coding agents. Fetches nothing, runs no command.

Usage: python bench/questions.py [FOLDER...] [--way NAME...] [--kinds N] [--json FILE]. FOLDER holds one text file a task
(default: the recorded tasks of the tests). The lines of a file:

    # PROMPT        what the task is
    in FOLDER       absolute path of the workspace in the recorded calls; it is replaced by that of the temporary one
    has PATH...     files that are there at first; if no line says so, see below
    bash COMMAND    a command; U+23CE stands for a line end
    read PATH, edit PATH, write PATH

Each way judges a task from its beginning, in order, by the real gate with the shipped default policy:

    ask     every question is answered with yes, for that call alone
    edits   the same, in the mode `edits`
    grants  each question is answered with the widest grant inside walls that it offers; one with the network only if it
            offers no other
    walls   every question is answered with yes, in the mode `walls`
    opened  in the mode `walls`, and each question is answered as in `grants`

The workspace is a temporary git repository with one commit. Its files are those of `has`, or else every file inside that
a command reads before another writes it, by the harness's own reading of the commands. A permitted command is not run:
the files that it names to write are made, so that later commands find them. Walls are taken to be complete, whatever this
machine has. `trajectories.py` makes such task files from recorded runs of other agents.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from harness.actions import Access, Action, Command, Effects, JsonValue, Opaque, PathAccess, Place
from harness.errors import ToolError
from harness.files.workspace import Workspace
from harness.gate.approval import Approval
from harness.gate.gate import Gate
from harness.gate.registry import ToolRegistry
from harness.gate.tool import Tool, ToolOutput
from harness.grant_pattern import GrantScope
from harness.log.action_log import ActionLog
from harness.log.vocabulary import Answer
from harness.messages import ResultStatus, ToolCall
from harness.model import ToolSpec
from harness.plugins.insight.fatigue import Take
from harness.policy.loader import load_policy
from harness.policy.policy import Policy
from harness.policy.verdict import Verdict
from harness.record import Record
from harness.sandbox import Machine
from harness.tool_kinds import BASH, EDIT_FILE, READ_FILE, WRITE_FILE
from harness.tools import builtin_tools
from harness.tools.bash import BashTool
from harness.tools.command_changes import CommandChanges
from harness.tools.command_runner import CommandRunner
from harness.tools.command_walls import CommandWalls

RECORDED = Path(__file__).parent.parent / "tests" / "support" / "tasks"
WAYS = ("ask", "edits", "grants", "walls", "opened")
GOAL = 3
"""Number of questions that a task should not exceed."""
WHOLE = Machine(landlock=7, seccomp="x86_64", bubblewrap="/usr/bin/bwrap", no_namespaces="")
"""A machine with complete walls."""
CONTENT = "line 1\nline 2\n"
_HOME = "home-of-the-person"
_TOOLS = {"bash": BASH.name, "read": READ_FILE.name, "edit": EDIT_FILE.name, "write": WRITE_FILE.name}
_FILE_NAMES = re.compile(r"[A-Z]\w+|\.\w+|.*\.\w+|\w*rc")
"""Names of files. Other names that commands read are taken for folders."""


class RecordedTask(Record):
    """A recorded task of a coding agent."""

    name: str
    root: str
    """Absolute path of the workspace in the calls. Empty if the calls name none."""
    files: tuple[str, ...]
    calls: tuple[tuple[str, str], ...]
    """The name of a tool, and a command or a path."""


class AskedCall(Record):
    """A call that led to a question."""

    task: str
    text: str
    """The command or the path. Untrusted text."""
    by: str
    """Decider of the question, without its place in a file."""
    about: str
    """Program, path or reason that the question is about."""


class TaskCount(Record):
    """Questions of one task in one way."""

    task: str
    calls: int
    questions: tuple[AskedCall, ...]
    refused: tuple[AskedCall, ...]
    """Calls that the policy denied or blocked."""
    invalid: int
    """Calls that the tools refused to judge, for example because of a syntax error."""


def read_task(path: Path) -> RecordedTask:
    """Return the task of a file. Raises ValueError for a line of no known form."""
    root, files, calls = "", list[str](), list[tuple[str, str]]()
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="surrogateescape").split("\n"), 1):
        word, _, rest = line.partition(" ")
        match word:
            case "" | "#":
                continue
            case "in":
                root = rest
            case "has":
                files += rest.split()
            case _ if word in _TOOLS:
                calls.append((_TOOLS[word], rest.replace("\u23ce", "\n")))
            case _:
                raise ValueError(f"{path}:{number}: unknown word {word!r}")
    return RecordedTask(name=path.stem, root=root, files=tuple(files), calls=tuple(calls))


def tasks_in(folders: Iterable[Path]) -> Iterator[RecordedTask]:
    """Yield the tasks of folders, by name."""
    for folder in folders:
        yield from (read_task(path) for path in sorted(folder.glob("*.txt")))


class _UnrunBash:
    """The tool for commands, which judges and confines them, but only makes the files that they name."""

    kind = BASH

    def __init__(self, tool: BashTool) -> None:
        self._tool = tool
        self.walls = tool.walls
        self.root = tool.root
        self.check_place = tool.check_place

    @property
    def spec(self) -> ToolSpec:
        return self._tool.spec

    def prepare(self, call: ToolCall, arguments: Mapping[str, JsonValue]) -> Action:
        return self._tool.prepare(call, arguments)

    def run(self, action: Action, effects: Effects) -> ToolOutput:  # noqa: ARG002 - the signature of a Tool
        for path in _paths_inside(action):
            if path.access is not Access.READ:
                _make(path.real)
        return ToolOutput(content="[exit code 0, 0.1 s]", exit_code=0, printed="")


def _paths_inside(action: Action) -> Iterator[PathAccess]:
    """Yield the paths of an action that are inside the workspace and may be names of files."""
    for facet in action.all_facets():
        if isinstance(facet, PathAccess) and facet.place is Place.INSIDE and not set(facet.real) & set("*?[]{}$\n"):
            yield facet


def _make(path: str) -> None:
    """Make a file, or a folder if its name is not that of a file, unless something is there."""
    if os.path.lexists(path) or len(os.path.basename(path)) > 100 or f"{os.sep}.git{os.sep}" in path:
        return
    try:
        if _FILE_NAMES.fullmatch(os.path.basename(path)):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            Path(path).write_text(CONTENT, encoding="utf-8")
        else:
            os.makedirs(path, exist_ok=True)
    except OSError:
        return  # a recorded run may take a name for a file that is a folder for another command


class Judging:
    """One task in one temporary workspace, behind a real gate."""

    def __init__(self, task: RecordedTask, folder: Path, policy: Policy) -> None:
        self.task = task
        self.questions: list[AskedCall] = []
        self._takes_grants = False
        root = folder.resolve() / _HOME / "work" / "repository"
        root.mkdir(parents=True)
        self._root = root
        workspace = Workspace(str(root), str(root.parent.parent))
        walls = CommandWalls(workspace, machine=WHOLE)
        environment = {"PATH": os.environ["PATH"]}
        changes = CommandChanges(str(root), str(folder / "trees"), environment)
        commands = CommandRunner(workspace, environment=environment, walls=walls, changes=changes)
        _, *others = builtin_tools(workspace, environment={})
        self._tools: tuple[Tool, ...] = (
            _UnrunBash(BashTool(workspace, commands, temporary=commands.own_temporary)),
            *others,
        )
        self._log = ActionLog.open(str(folder / "log.jsonl"), sync=_unsynced)
        self._log.append("session_started", {"harness": "bench", "policy_sha256": policy.sha256})
        self.gate = Gate(policy=policy, approver=self._answer, log=self._log, tools=ToolRegistry(self._tools))

    def enter(self, way: str) -> None:
        """Answer and judge as in `way`. Raises ValueError for an unknown one."""
        match way:
            case "ask":
                pass
            case "edits" | "walls":
                self.gate.grants.set_mode(way)
            case "grants" | "opened":
                self.gate.grants.set_mode("walls" if way == "opened" else "")
                self._takes_grants = True
            case _:
                raise ValueError(way)

    def make_repository(self, files: Iterable[str]) -> None:
        """Make the files, and a git repository with one commit that holds them."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._root.parent),
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{who}_{key}": "bench@localhost" for who in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")},
        }
        for name in files:
            _make(f"{self._root}/{name}")
        for words in ("init -q -b main .", "add -A", "commit -q --allow-empty -m begun"):
            subprocess.run(["git", *words.split()], cwd=self._root, env=environment, check=True, capture_output=True)

    def files_read(self) -> list[str]:
        """Return the files inside that the task's commands read before another writes them, relative to the workspace."""
        bash, seen, files = self._tools[0], set[str](), list[str]()
        for number, (tool, text) in enumerate(self._calls(), 1):
            if tool != BASH.name:
                paths = [(f"{self._root}/{text}", tool == WRITE_FILE.name)]
            else:
                call = ToolCall(id=str(number), name=tool, arguments="{}")
                try:
                    action = bash.prepare(call, {"command": text})
                except ToolError:
                    continue
                paths = [(path.real, path.access is Access.WRITE) for path in _paths_inside(action)]
            for path, writes in paths:
                if path not in seen and not writes:
                    files.append(os.path.relpath(path, self._root))
                seen.add(path)
        return files

    def count(self) -> TaskCount:
        """Judge all calls, and return the questions."""
        refused, invalid = list[AskedCall](), 0
        for number, (tool, text) in enumerate(self._calls(), 1):
            call = ToolCall(id=f"call_{number}", name=tool, arguments=json.dumps(self._arguments(tool, text, number)))
            pending = self.gate.propose(call, turn=1, step=number)
            end = self.gate.call(pending)
            if end.result.status in (ResultStatus.DENIED, ResultStatus.BLOCKED):
                refused.append(self._refused(call, text))
            invalid += end.result.status is ResultStatus.INVALID
        self._log.close()
        return TaskCount(
            task=self.task.name,
            calls=len(self.task.calls),
            questions=tuple(self.questions),
            refused=tuple(refused),
            invalid=invalid,
        )

    def _calls(self) -> Iterator[tuple[str, str]]:
        """Yield the calls, with the recorded workspace replaced by the temporary one."""
        recorded = re.compile(rf"(?<![\w./-]){re.escape(self.task.root)}(?![\w.-])") if self.task.root else None
        for tool, text in self.task.calls:
            here = text if recorded is None else recorded.sub(lambda _: str(self._root), text)
            yield tool, here if tool == BASH.name else os.path.relpath(os.path.join(self._root, here), self._root)

    def _arguments(self, tool: str, text: str, number: int) -> dict[str, str]:
        if tool == BASH.name:
            return {"command": text}
        if tool == WRITE_FILE.name:
            return {"path": text, "content": f"text {number}\n"}
        if tool == READ_FILE.name:
            return {"path": text}
        path = self._root / text
        _make(str(path))
        first = path.read_text(encoding="utf-8", errors="replace").partition("\n")[0] if path.is_file() else ""
        return {"path": text, "old_string": first, "new_string": f"line 1, changed by call {number}"}

    def _answer(self, action: Action, verdict: Verdict) -> Approval:
        """Answer a question with yes, and with a grant if the way says so."""
        self.questions.append(_asked(self.task.name, action, verdict))
        offer = self.gate.grants.offer(action, verdict) if self._takes_grants else ""
        if isinstance(offer, str):
            return Approval(answer=Answer.YES, by="person")
        patterns = Take.WALLS.of(offer.choices).patterns
        return Approval(answer=Answer.YES, by="person", scope=GrantScope.SESSION, patterns=patterns)

    def _refused(self, call: ToolCall, text: str) -> AskedCall:
        try:
            action = ToolRegistry(self._tools).prepare(call)
        except ToolError:
            return AskedCall(task=self.task.name, text=text, by="invalid", about="")
        return _asked(self.task.name, action, self.gate.judge(action))


def _unsynced(descriptor: int) -> None:
    """Leave the log to the page cache, since no count depends on the disk."""


def _asked(task: str, action: Action, verdict: Verdict) -> AskedCall:
    deciding = verdict.deciding
    facet = deciding.facet
    match facet:
        case Command():
            about = " ".join(facet.argv[:1] if facet.argv[0] not in _WITH_SUBCOMMANDS else facet.argv[:2])
        case Opaque():
            about = facet.reason
        case PathAccess():
            about = f"{facet.access.value} {_short_place(facet)}"
        case _:
            about = facet.text
    by = deciding.by.partition(" (")[0]
    return AskedCall(task=task, text=action.text or action.summary, by=by, about=about)


_WITH_SUBCOMMANDS = frozenset(("git", "pip", "pip3", "npm", "apt", "apt-get", "docker", "conda", "uv", "cargo", "go"))


def _short_place(path: PathAccess) -> str:
    """Return the place of a path. A path outside is cut to its first two folders, and the home folder is a place too."""
    if path.place is not Place.OUTSIDE:
        return str(path.place.value)
    if f"{os.sep}{_HOME}{os.sep}" in path.real:
        return "~"
    return "/".join(path.real.split("/")[:3])


def count_task(task: RecordedTask, way: str, policy: Policy, files: Sequence[str] | None = None) -> TaskCount:
    """Return the questions of a task in a way. `files` are those at the beginning (default: those of the task)."""
    with tempfile.TemporaryDirectory() as folder:
        judging = Judging(task, Path(folder), policy)
        judging.make_repository(task.files if files is None else files)
        judging.enter(way)
        return judging.count()


def files_of(task: RecordedTask, policy: Policy) -> Sequence[str]:
    """Return the files of a task at its beginning."""
    if task.files:
        return task.files
    with tempfile.TemporaryDirectory() as folder:
        return Judging(task, Path(folder), policy).files_read()


def kinds(counts: Iterable[TaskCount], *, refused: bool = False) -> list[tuple[AskedCall, int, int]]:
    """Return the kinds of questions, most frequent first: an example, the questions and the tasks of each."""
    examples: dict[tuple[str, str], AskedCall] = {}
    number, tasks = Counter[tuple[str, str]](), dict[tuple[str, str], set[str]]()
    for count in counts:
        for call in count.refused if refused else count.questions:
            kind = call.by, call.about
            examples.setdefault(kind, call)
            number[kind] += 1
            tasks.setdefault(kind, set()).add(call.task)
    return [(examples[kind], count, len(tasks[kind])) for kind, count in number.most_common()]


def summary(way: str, counts: Sequence[TaskCount]) -> str:
    """Return the numbers of a way in one line."""
    numbers = sorted(len(count.questions) for count in counts)
    p90 = numbers[min(len(numbers) - 1, round(0.9 * len(numbers)))]
    few = sum(number <= GOAL for number in numbers)
    calls, refused = sum(count.calls for count in counts), sum(len(count.refused) for count in counts)
    return (
        f"{way:7} median {statistics.median(numbers):g}, p90 {p90}, at most {GOAL}: {few} of {len(numbers)} tasks "
        f"({100 * few / len(numbers):.0f} %); {sum(numbers)} questions in {calls} calls, {refused} refused, "
        f"{sum(count.invalid for count in counts)} invalid"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Count the questions of recorded tasks.")
    parser.add_argument("folders", type=Path, nargs="*", default=[RECORDED])
    parser.add_argument("--way", action="append", choices=WAYS, help="count only in this way; may be repeated")
    parser.add_argument("--kinds", type=int, default=25, help="number of kinds of questions to list (default: 25)")
    parser.add_argument("--every", type=int, default=1, help="take only one task of so many (default: 1)")
    parser.add_argument("--json", type=Path, help="write the questions of each task to this file, as JSON Lines")
    arguments = parser.parse_args()
    policy = load_policy("default")
    tasks = list(tasks_in(arguments.folders))[:: arguments.every]
    files = {task.name: files_of(task, policy) for task in tasks}
    rows: list[dict[str, JsonValue]] = []
    for way in arguments.way or WAYS:
        counts = [count_task(task, way, policy, files[task.name]) for task in tasks]
        print(summary(way, counts), flush=True)
        for heading, refused in (("asked", False), ("refused", True)):
            for call, number, count in kinds(counts, refused=refused)[: arguments.kinds]:
                example = call.text.replace("\n", "\u23ce")[:110]
                print(f"  {heading} {number:5} in {count:3} tasks  {call.by}: {call.about[:60]!r}, as {example!r}")
        rows += [_row(way, count) for count in counts]
    if arguments.json is not None:
        arguments.json.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def _row(way: str, count: TaskCount) -> dict[str, JsonValue]:
    """Return the count of a task as an object of JSON."""
    asked: list[JsonValue] = [{"by": call.by, "about": call.about, "text": call.text} for call in count.questions]
    return {"way": way, "task": count.task, "calls": count.calls, "refused": len(count.refused), "asked": asked}


if __name__ == "__main__":
    main()
