"""`harness hook check`: play calls through the installed agent, and check which of them really ran.

The settings only show what is installed. Only a call shows whether it works: a hook may be untrusted, a plugin may have
a fault, a version may be too old.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping

from harness.errors import UsageError
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.log.vocabulary import SEEN_BY_US
from harness.plugins.agents.commands.agent_program import agent_program, isolated_command, version_of
from harness.plugins.agents.commands.agent_run import AgentRun, run_agent
from harness.plugins.agents.commands.agent_starts import AGENT_STARTS, PlayedPlace, tried_version
from harness.plugins.agents.commands.codex_trust import AppServer, own_hooks
from harness.plugins.agents.commands.folder_notices import off_notices, tell_other_hooks
from harness.plugins.agents.commands.played_model import PlayedModel, PlayedScene
from harness.plugins.agents.guarded_agent import GuardedAgent, agent_named
from harness.plugins.agents.hook_line import hook_command
from harness.plugins.agents.json_text import without_comments
from harness.plugins.agents.off_switch import OffSwitch, off_switches
from harness.plugins.agents.settings_file import (
    installation,
    installed,
    settings_path,
    user_path,
    write,
)
from harness.plugins.agents.toml_hooks import as_toml, hooks_in
from harness.record import Record
from harness.safe_files import make_private, read_regular, read_small, write_new
from harness.session.exits import Exit
from harness.session.state import State, current_folder, logs_in
from harness.terminal.console import FinishedOutput
from harness.terminal.styles import Tone
from harness.terminal.tables import Column, Table, TableRow
from harness.text.visible import visible_line

FAILED = 1
"""Exit code if a call did not end as the gate decided."""
AGENT_SECONDS = 120.0
"""Maximum seconds that one agent may take for three calls."""
MOST_ERROR_LINES = 12
"""Maximum number of lines shown from the end of an agent's errors."""
MOST_POLICY = 8 * 1024 * 1024
"""Maximum size of the user's policy, in bytes."""
PROMPT = "Play the scene."
_ABOUT_HOOKS = ("version", "hooks", "hooksConfig", "disableAllHooks")
"""Keys of an agent's settings that concern hooks."""
_READ, _MADE, _SECRET = "seen.txt", "made.txt", ".env"


class PlayedCall(Record):
    """One call, and its result."""

    command: str
    decision: str
    """The decision in our log. Empty if our hook got no event."""
    happened: bool
    in_walls: bool
    result_text: str
    """The result that the model received."""

    @property
    def is_right(self) -> bool:
        """Whether the call ran exactly if the decision is `auto`. False without a decision."""
        return bool(self.decision) and self.happened == (self.decision == "auto")


def check(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Play three calls through the agent that `arguments` name, and return the exit code. Raises HarnessError."""
    agent = agent_named(arguments.agent)
    if agent.name not in AGENT_STARTS:
        raise UsageError(
            f"{agent.title} needs an account for its model, so that nothing can be played to it: have it read a `.env`, "
            "and see that the call is refused"
        )
    program = agent_program(agent, environment)
    if program is None:
        raise UsageError(f"`{agent.program}` is not in PATH: there is nothing to check")
    console = FinishedOutput(environment)
    tried = tried_version(agent.name)
    version = version_of(program, environment)
    console.line(f"{agent.title} {version}, played without a key by a scripted model of our own on this machine")
    if version != tried:
        console.line(f"this hook was tried with {tried}", Tone.WARNING)
    with tempfile.TemporaryDirectory(prefix="harness-check-", dir=_place(environment)) as folder:
        fresh = _settings_in(agent, program, folder, environment)
        switches = list(off_notices(agent, environment))
        if fresh:
            console.line("there is no hook of harness in your settings: it is tried as `install` would write it")
        run, calls = _played(agent, program, folder, environment)
    if all(not call.decision for call in calls):
        _tell_end(console, agent, run)
    _tell(console, calls)
    wrong = [call for call in calls if not call.is_right]
    for call in wrong:
        console.line(f"{call.command}: {_fault(call)}", Tone.BAD)
    for words in switches:
        console.line(words, Tone.BAD)
    if not wrong and not switches:
        console.line("each call ended as it was decided", Tone.GOOD)
    tell_other_hooks(agent, environment, console)
    for limitation in agent.unseen:
        console.line(f"not seen: {limitation}", Tone.QUIET)
    return FAILED if wrong or switches else Exit.DONE


def _place(environment: Mapping[str, str]) -> str:
    """Return the parent folder of the trial. Not /tmp, since Codex creates no sandbox of its own there."""
    state = State.of(environment).state
    make_private(state)
    return state


def _settings_in(agent: GuardedAgent, program: str, folder: str, environment: Mapping[str, str]) -> bool:
    """Write the hook from the user's settings to an empty home, and the settings here that turn hooks off.

    If the user has no hook, write a new one, and return True.
    """
    home, workspace = os.path.join(folder, "home"), os.path.join(folder, "work")
    for new_folder in (home, workspace, os.path.join(workspace, ".git")):
        os.mkdir(new_folder)
    for name in (_READ, _SECRET):
        with open(os.path.join(workspace, name), "w", encoding="utf-8") as file:
            file.write(f"{_canary(folder, name)}\n")
    variables = {"HOME": home}
    policy = read_small(State.of(environment).user_policy, MOST_POLICY)
    if policy is not None:
        os.makedirs(State.of(variables).config)
        write_new(State.of(variables).user_policy, policy)
    path = settings_path(agent, variables, None)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    own_settings = _own_settings(agent, environment)
    if own_settings is None:
        write(installation(agent, path, hook_command(isolated_command(), agent.name)), private=True)
    else:
        write_new(path, own_settings)
    for switch in off_switches(agent, environment, current_folder()):
        place = user_path(agent, variables, switch.file.path)
        _add_switch(switch, place if switch.file.is_user else os.path.join(workspace, switch.file.path))
    hook = installed(agent, path)
    if agent.name == "codex" and hook is not None:  # Codex's trust depends on the path of the file
        codex = {**environment, **variables, "CODEX_HOME": os.path.join(home, ".codex")}
        with AppServer(program, codex, workspace) as server:
            server.trust(own_hooks(server.hooks(), path, hook.command))
    return own_settings is None


def _add_switch(switch: OffSwitch, path: str) -> None:
    """Write a setting that turns hooks off to the file at `path`, unless it exists: then it has that setting already."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path):
        write_new(path, switch.minimal_file.encode())


def _own_settings(agent: GuardedAgent, environment: Mapping[str, str]) -> bytes | None:
    """Return only the settings about hooks from the user's settings; `None` if our hook is not among them.

    Addresses and keys in other settings must not reach a trial.
    """
    path = settings_path(agent, environment, None)
    if installed(agent, path) is None:
        return None
    content = read_regular(path)
    if agent.settings.is_plugin:
        return content
    if agent.settings.is_toml:
        return as_toml(hooks_in(content.decode())).encode()
    settings = json.loads(without_comments(content.decode("utf-8-sig")))
    return json.dumps({name: settings[name] for name in _ABOUT_HOOKS if name in settings}).encode()


def _canary(folder: str, name: str) -> str:
    """Return a text that occurs only in one file of this trial."""
    return f"held-by-{name.strip('.').partition('.')[0]}-{os.path.basename(folder)}"


def _played(
    agent: GuardedAgent, program: str, folder: str, environment: Mapping[str, str]
) -> tuple[AgentRun, list[PlayedCall]]:
    start, work = AGENT_STARTS[agent.name], os.path.join(folder, "work")
    happened: dict[str, Callable[[str], bool]] = {
        f"cat {_READ}": lambda output: _canary(folder, _READ) in output,
        f"touch {_MADE}": lambda output: os.path.exists(os.path.join(work, _MADE)),  # noqa: ARG005
        f"cat {_SECRET}": lambda output: _canary(folder, _SECRET) in output,
    }
    state = os.path.join(folder, "state")
    variables = {
        "PATH": environment.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "XDG_STATE_HOME": state,
    }
    scene = PlayedScene(prompt=PROMPT, steps=tuple((start.command(command),) for command in happened))
    with PlayedModel([scene]) as model:
        place = PlayedPlace(home=os.path.join(folder, "home"), workspace=work, origin=model.origin)
        try:
            run = run_agent(start, place, PROMPT, program=program, seconds=AGENT_SECONDS, environment=variables)
        except (OSError, subprocess.SubprocessError) as error:
            raise UsageError(f"{agent.title} cannot be started: {error}") from None
        results = model.results()
    logged = list(_logged(os.path.join(state, "harness")))
    calls = []
    for number, (command, took_place) in enumerate(happened.items()):
        text = next((text for name, text in results.items() if name.endswith(f"-{number}-0")), "")
        decision, walls = _decided(logged, command)
        calls.append(
            PlayedCall(command=command, decision=decision, happened=took_place(text), in_walls=walls, result_text=text)
        )
    return run, calls


def _logged(state: str) -> Iterator[LogRecord]:
    for path in logs_in(os.path.join(state, "sessions")):
        yield from read_log(path)


def _decided(records: list[LogRecord], command: str) -> tuple[str, bool]:
    """Return our log's decision on a command (empty if missing), and whether the command ran behind our walls."""
    decided = next(
        (record for record in records if record["kind"] == "decision" and record.get("summary") == command), None
    )
    if decided is None:
        return "", False
    ends = (record for record in records if record["kind"] == "outcome" and record.get("call") == decided.get("call"))
    return str(decided["decision"]), any(record.get("seen_by") == SEEN_BY_US for record in ends)


def _tell_end(console: FinishedOutput, agent: GuardedAgent, run: AgentRun) -> None:
    """Show the exit code of an agent that asked us about no call, and the end of its errors."""
    end = "was ended, since it took too long" if run.code is None else f"ended with {run.code}"
    console.line(f"{agent.title} {end}, and our hook was asked about no call:", Tone.BAD)
    lines = [line for line in (run.stderr.strip() or run.stdout).splitlines() if line.strip()]
    for line in lines[-MOST_ERROR_LINES:]:
        console.line(f"  {visible_line(line, 300)}")


def _tell(console: FinishedOutput, calls: list[PlayedCall]) -> None:
    columns = (
        Column(name="call"),
        Column(name="decided"),
        Column(name="happened", toned=True),
        Column(name="what the model read", folds=True, spare=1),
    )
    rows = [
        TableRow(
            cells=(call.command, call.decision or "not asked", _happened(call), visible_line(call.result_text, 300)),
            tone=Tone.GOOD if call.is_right else Tone.BAD,
        )
        for call in calls
    ]
    console.table(Table(columns=columns, rows=tuple(rows)))


def _happened(call: PlayedCall) -> str:
    if not call.happened:
        return "it did not run"
    return "it ran in our walls" if call.in_walls else "it ran, without our walls"


def _fault(call: PlayedCall) -> str:
    if not call.decision:
        return "our hook was not asked" + (", and it RAN" if call.happened else "")
    if call.happened:
        return f"the decision was {call.decision}, and it RAN all the same"
    return "it was let run, and did not run"
