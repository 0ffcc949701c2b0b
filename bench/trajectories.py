"""Turn recorded runs of other agents into task files for questions.py. Fetches nothing, and runs no command of a run.

Usage: python bench/trajectories.py OUTPUT FILE... [--root /testbed]. Each FILE is one run; its name without suffixes is
the name of the task. `--root` is the folder in which the agent worked. These forms of files are understood:

- trajectories of mini-swe-agent (`*.traj.json`) and of SWE-agent (`*.traj`), such as those of the SWE-bench leaderboard
- terminal recordings of mini-swe-agent (`agent.log`), such as those of the terminal-bench leaderboard
- conversations of other agents as JSON Lines with `tool_use` blocks (Claude Code's transcripts and its stream-json)

Only commands and file names are kept: no text of a model, no output, no content of an edit.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

Entry: TypeAlias = tuple[str, str]
"""A word of the task format (`bash`, `read`, `edit`, `write`), and a command or a path."""

_BLOCK = re.compile(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n```", re.DOTALL)
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>])")
_STEP = re.compile(r"^mini-swe-agent \(step \d+, \$[\d.]+\):$", re.MULTILINE)
_ANSWER_ENDS = re.compile(r"^(?:User:|\d\d:\d\d:\d\d - |Saved trajectory )", re.MULTILINE)
_RECORDING_COLUMNS = 160
"""Width of the recorded terminals. The recorded program broke longer lines there."""
_FILE_TOOLS = {"Read": "read", "Edit": "edit", "MultiEdit": "edit", "Write": "write"}
_EDITOR = {"view": "read", "create": "write", "str_replace": "edit", "insert": "edit", "undo_edit": "edit"}


def entries_of(path: Path) -> list[Entry]:
    """Return the calls of a recorded run, in order. Empty for a file of no known form."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".log":
        return list(_of_recording(text))
    try:
        run = json.loads(text)
    except ValueError:
        return list(_of_lines(text))
    if isinstance(run, Mapping) and isinstance(run.get("messages"), list):
        return list(_of_messages(run["messages"]))
    if isinstance(run, Mapping) and isinstance(run.get("trajectory"), list):
        return [entry for step in run["trajectory"] for entry in _of_editor(str(step.get("action") or ""))]
    return []


def _of_messages(messages: Sequence[Mapping[str, Any]]) -> Iterator[Entry]:
    """Yield the commands of a mini-swe-agent run. A reply with more than one block was not run, so it is left out."""
    for message in messages:
        if message.get("role") != "assistant":
            continue
        for call in message.get("tool_calls") or ():
            yield "bash", str(json.loads(call["function"]["arguments"]).get("command", ""))
        blocks = _BLOCK.findall(str(message.get("content") or ""))
        if len(blocks) == 1:
            yield "bash", blocks[0].strip()


def _of_recording(text: str) -> Iterator[Entry]:
    """Yield the commands of a recorded terminal of mini-swe-agent, with lines joined that the terminal's width broke."""
    text = _ESCAPE.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    for reply in _STEP.split(text)[1:]:
        blocks = _BLOCK.findall(_ANSWER_ENDS.split(reply, maxsplit=1)[0])
        if len(blocks) == 1:
            yield "bash", _joined(blocks[0]).strip()


def _joined(block: str) -> str:
    """Return a block without the line ends that a terminal of `_RECORDING_COLUMNS` put between words."""
    lines: list[str] = []
    room = _RECORDING_COLUMNS
    for line in block.split("\n"):
        first = line.split(" ", 1)[0]
        if lines and first and room - len(lines[-1].rsplit("\n", 1)[-1]) <= len(first) and len(lines[-1]) > room // 2:
            lines[-1] = f"{lines[-1].rstrip(' ')} {line}"
        else:
            lines.append(line)
    return "\n".join(line.rstrip(" ") for line in lines)


def _of_lines(text: str) -> Iterator[Entry]:
    """Yield the calls of a conversation as JSON Lines, in which a `tool_use` block names a tool and its input."""
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        message = record.get("message") if isinstance(record, Mapping) else None
        content = message.get("content") if isinstance(message, Mapping) else None
        for block in content if isinstance(content, list) else ():
            if not isinstance(block, Mapping) or block.get("type") != "tool_use":
                continue
            name, arguments = block.get("name"), block.get("input") or {}
            if name == "Bash":
                yield "bash", str(arguments.get("command", ""))
            elif name in _FILE_TOOLS and arguments.get("file_path"):
                yield _FILE_TOOLS[name], str(arguments["file_path"])


def _of_editor(action: str) -> Iterator[Entry]:
    """Yield the call of a SWE-agent step: its editor's commands are calls of file tools, all others are commands."""
    words = action.split()
    if len(words) > 2 and words[0] == "str_replace_editor" and words[1] in _EDITOR:
        yield _EDITOR[words[1]], words[2]
    elif action.strip() and words[0] not in ("submit", "exit"):
        yield "bash", action.strip()


def task_text(source: str, root: str, entries: Sequence[Entry]) -> str:
    """Return the text of a task file."""
    lines = [f"# {source}", f"in {root}"]
    lines += [f"{word} {rest}".replace("\n", "\u23ce") for word, rest in entries if rest.strip()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Turn recorded runs of other agents into task files.")
    parser.add_argument("output", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--root", default="/testbed", help="the folder in which the agent worked (default: /testbed)")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    written = 0
    for path in arguments.files:
        entries = entries_of(path)
        if not entries:
            print(f"{path}: no calls", file=sys.stderr)
            continue
        name = path.parent.parent.name if path.name == "agent.log" else path.name.split(".traj")[0].split(".jsonl")[0]
        (arguments.output / f"{name}.txt").write_text(
            task_text(name, arguments.root, entries), encoding="utf-8", errors="surrogateescape"
        )
        written += 1
    print(f"{written} tasks in {arguments.output}")


if __name__ == "__main__":
    main()
