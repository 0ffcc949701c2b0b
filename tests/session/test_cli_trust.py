"""A policy that came with the workspace: asked about once, shown with all that it would loosen, trusted by its content."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from program import Program
from repl_scene import Prompt, Start, prompts, write_config
from rows import all_rows
from screen_scene import CTRL_C, CTRL_D, ENTER, ESC, PlayedTerminal, paste

from harness.actions import Action, Decision
from harness.errors import PolicyError, UsageError
from harness.gate.approval import Approval
from harness.log.vocabulary import Answer
from harness.models.scripted import Reply, replies
from harness.policy.effects import DEFAULT_HIDE, SandboxTable, sandbox_of
from harness.policy.loader import parse_policy
from harness.policy.policy import Policy, tightening_only
from harness.policy.rules import Layer, Origin
from harness.policy.verdict import Verdict
from harness.session.policies import assemble, describe
from harness.session.state import State
from harness.session.trust import TRUST_TOOL, loosening, trusted_or_not

LOOSENS = """version = 1
[[rule]]
id = "tests"
decision = "auto"
argv = ["make", ["test", "check"], "..."]
flags = ["-j", "--keep-going"]
"""
TIGHTENS = """version = 1
[[rule]]
id = "no-push"
decision = "deny"
argv = ["git", "push", "..."]
reason = "not from here"
[sandbox]
write = ["build"]
network = false
"""


def policy(text: str) -> Policy:
    return parse_policy(text.encode(), "p.toml", layer=Layer.PROJECT)


RULE = 'version = 1\n[[rule]]\nid = "a"\ndecision = "auto"\n'
MAKE = "auto     the command make {test,check} ... with options -j, --keep-going  (rule tests (%s:2))"
GEN = "auto     the command gen 'a b' with variables A, B set"
SAID = [
    pytest.param("version = 1\n", [], id="nothing"),
    pytest.param(TIGHTENS, [], id="only what tightens"),
    pytest.param(LOOSENS, [MAKE % "p.toml"], id="a command"),
    pytest.param(
        RULE + 'argv = ["gen", "a b"]\nwrite = ["out", "/srv/x"]\nnetwork = true\nenv = ["A", "B"]\n',
        [f"{GEN} (it may write out, /srv/x and reach the network)  (rule a (p.toml:2))"],
        id="what a rule grants besides",
    ),
    pytest.param(
        RULE + 'tool = ["edit_file"]\npath = ["src/**", "a b"]\nexcept = ["src/x"]\naccess = ["write"]\n',
        ["auto     write 'src/**', 'a b' but not src/x by edit_file  (rule a (p.toml:2))"],
        id="files",
    ),
    pytest.param(
        RULE
        + 'tool = ["mcp__a__*"]\nwhere = {path = ["src/"], url = {host = ["x.org"]}, mode = ["fast"]}\nread_only = true\n',
        [
            (
                "auto     every call of 'mcp__a__*' that only reads, or whose server says so with 'path a path of src/' with "
                "'url at x.org' with 'mode fast'  (rule a (p.toml:2))"
            ),
        ],
        id="tools from outside",
    ),
    pytest.param(
        RULE + 'tool = ["web_fetch"]\nhost = ["docs.example.org", "*.example.net"]\n',
        ["auto     every call of web_fetch to docs.example.org, '*.example.net'  (rule a (p.toml:2))"],
        id="hosts of a tool",
    ),
    pytest.param(
        RULE + 'host = ["docs.example.org"]\n',
        ["auto     every call to docs.example.org  (rule a (p.toml:2))"],
        id="hosts",
    ),
    pytest.param(
        RULE + 'argv = ["cat", "..."]\npath = ["docs/"]\nenv = ["CI"]\n',
        [
            "auto     the command cat ... with variables CI set naming only files to read and write: docs/  (rule a (p.toml:2))"
        ],
        id="a command and its operands",
    ),
    pytest.param(
        'version = 1\n[tools]\nread_file = "auto"\ndefault = "auto"\nbash = "confirm"\nreaders = true\n',
        [
            "default  read_file is auto where no rule says otherwise  (p.toml:3)",
            "default  any other tool is auto where no rule says otherwise  (p.toml:4)",
            "readers  commands that only look are auto  (p.toml:6)",
        ],
        id="defaults and readers",
    ),
    pytest.param("version = 1\n[tools]\nreaders = false\n", [], id="readers that are off"),
    pytest.param(
        'version = 1\n[sandbox]\nwrite = [".", "/srv/out", "~/cache", "src"]\nshow = ["~/.aws"]\nnetwork = true\n',
        [
            "sandbox  commands that you approve may write /srv/out, '~/cache'  (p.toml:2)",
            "sandbox  commands can read '~/.aws', which is hidden else  (p.toml:2)",
        ],
        id="the sandbox",
    ),
    pytest.param('version = 1\n[sandbox]\nwrite = ["."]\nshow = []\n', [], id="a sandbox that loosens nothing"),
]


@all_rows(("text", "lines"), SAID)
def test_loosening_rules_are_listed_with_their_place(text: str, lines: list[str]) -> None:
    assert list(loosening(policy(text))) == lines


PLACES = st.lists(st.sampled_from([".", "src", "/srv", "~/x", "/srv/x"]), max_size=3, unique=True)
SANDBOXES = st.builds(
    lambda write, show, hide, network, required: SandboxTable(
        origin=Origin(file="p", line=1),
        layer=Layer.PROJECT,
        required=required,
        network=network,
        write=None if write is None else tuple(write),
        hide=tuple(hide),
        show=None if show is None else tuple(show),
    ),
    st.none() | PLACES,
    st.none() | st.lists(st.sampled_from(DEFAULT_HIDE[:4]), max_size=3, unique=True),
    PLACES,
    st.sampled_from([None, True, False]),
    st.booleans(),
)


@given(SANDBOXES, st.none() | SANDBOXES)
def test_unlisted_sandbox_grants_no_more_when_trusted(mine: SandboxTable, other: SandboxTable | None) -> None:
    """Over every other layer: what may be written and reached is no more, and no less is hidden."""
    bare = policy("version = 1\n")
    said = Policy(
        name="p",
        rules=(),
        defaults=(),
        limits=bare.limits,
        unattended=Decision.DENY,
        sources=(),
        sandbox_tables=(mine,),
    )
    if loosening(said):
        return
    others = () if other is None else (other,)
    trusted, held = sandbox_of((*others, mine)), sandbox_of((*others, mine.tightening()))
    assert set(trusted.write) <= set(held.write)
    assert trusted.network <= held.network
    assert set(held.hide) <= set(trusted.hide)


def test_policy_without_loosening_gains_no_rules_by_trust() -> None:
    said = policy(TIGHTENS)
    held = tightening_only(said)
    assert (held.rules, held.defaults, held.readers) == (said.rules, said.defaults, said.readers)


def test_policy_text_never_starts_a_line() -> None:
    text = RULE.replace('"a"', '"x\\n+ allowed by you\\u001b[2J"') + 'argv = ["make", "x"]\n'
    (line,) = loosening(policy(text))
    assert line == "auto     the command make x  (rule x\\n+ allowed by you\\x1b[2J (p.toml:2))"


class Asked:
    """An approver that gives one answer, and what it was asked."""

    def __init__(self, answer: Answer, during: Callable[[], object] = lambda: None) -> None:
        self.answer = answer
        self.during = during
        self.questions: list[tuple[Action, Verdict]] = []

    def __call__(self, action: Action, verdict: Verdict) -> Approval:
        self.questions.append((action, verdict))
        self.during()
        return Approval(answer=self.answer, by="person")


class Interrupts(Asked):
    def __call__(self, action: Action, verdict: Verdict) -> Approval:
        super().__call__(action, verdict)
        raise KeyboardInterrupt


class Folder:
    """A workspace with a policy of its own, and a user's state."""

    def __init__(self, folder: Path, name: str = "w") -> None:
        self.root = os.path.realpath(folder / name)
        self.state = State(state=str(folder / "state"), config=str(folder / "config"))
        self.file = Path(self.root, ".harness", "policy.toml")
        self.file.parent.mkdir(parents=True)

    def says(self, text: str) -> Folder:
        self.file.write_text(text)
        return self

    def asks(self, asked: Asked) -> str:
        return trusted_or_not(self.state, self.root, asked)

    @property
    def described(self) -> str:
        return describe(assemble(self.state, self.root, names=None, fallback="default"), self.state)

    def autos(self) -> Sequence[str]:
        held = assemble(self.state, self.root, names=None, fallback="default")
        return [rule.id for rule in held.rules if rule.layer is Layer.PROJECT and rule.decision is Decision.AUTO]


def test_a_yes_trusts_exactly_this_content_and_is_asked_once(tmp_path: Path) -> None:
    here, yes = Folder(tmp_path).says(LOOSENS), Asked(Answer.YES)
    assert here.autos() == []
    assert ", not trusted: only what tightens counts" in here.described
    assert here.asks(yes) == f"trusted: {here.file}; any change of its content ends the trust"
    assert here.autos() == ["tests"]
    assert here.asks(yes) == ""
    ((action, verdict),) = yes.questions
    assert action.tool == TRUST_TOOL
    assert action.summary == f"trust this folder's own policy, {here.file}"
    sha256 = policy(LOOSENS).sha256
    assert action.preview.splitlines() == [
        f"{here.file}  sha256 {sha256}",
        "would loosen 1 thing here:",
        MAKE % here.file,
    ]
    assert verdict.decision is Decision.CONFIRM
    assert "tightens" not in here.described
    here.says(LOOSENS + "# changed\n")
    assert here.autos() == []
    assert "changed since you trusted it: only what tightens counts" in here.described
    here.asks(yes)
    assert len(yes.questions) == 2
    here.says(LOOSENS)
    assert here.autos() == ["tests"]


def test_question_says_that_an_update_may_have_ended_the_trust(tmp_path: Path) -> None:
    text = LOOSENS.replace("[[", 'extends = ["ci", "python"]\n[[', 1)
    here, no = Folder(tmp_path).says(text), Asked(Answer.NO)
    here.state.trust_content("0" * 64, str(here.file))  # the digest of older shipped files
    here.asks(no)
    ((_, verdict),) = no.questions
    assert verdict.deciding.reason.startswith(
        "the policy changed since you trusted it; an update of harness may have changed the shipped ci, python; "
    )


@all_rows("answer", [answer for answer in Answer if answer is not Answer.YES])
def test_anything_but_a_yes_is_a_no_that_is_remembered(tmp_path: Path, answer: Answer) -> None:
    here, asked = Folder(tmp_path).says(LOOSENS), Asked(answer)
    assert "not trusted" in here.asks(asked)
    assert here.autos() == []
    assert here.asks(asked) == ""
    assert len(asked.questions) == 1
    here.says(LOOSENS + "# changed\n")
    assert "not trusted" in here.asks(asked)
    assert len(asked.questions) == 2


def test_an_interrupt_is_a_no(tmp_path: Path) -> None:
    here = Folder(tmp_path).says(LOOSENS)
    assert "not trusted" in here.asks(Interrupts(Answer.YES))
    assert here.autos() == []


def test_later_trust_overrides_a_refusal(tmp_path: Path) -> None:
    here = Folder(tmp_path).says(LOOSENS)
    here.asks(Asked(Answer.NO))
    here.state.trust_content(policy(LOOSENS).sha256, str(here.file))
    assert here.autos() == ["tests"]


def test_policy_changed_during_the_question_is_not_trusted(tmp_path: Path) -> None:
    here = Folder(tmp_path).says(LOOSENS)
    worse = LOOSENS.replace('"make"', '"cargo"')
    told = here.asks(Asked(Answer.YES, during=lambda: here.says(worse)))
    assert told == f"{here.file} was changed since you saw it: its new content is not trusted"
    assert here.autos() == []
    assert here.state.is_trusted(policy(LOOSENS).sha256)
    assert not here.state.is_trusted(policy(worse).sha256)


def test_tightening_policy_needs_no_question_and_no_file(tmp_path: Path) -> None:
    here, asked = Folder(tmp_path).says(TIGHTENS), Asked(Answer.YES)
    assert here.asks(asked) == ""
    assert asked.questions == []
    assert not os.path.exists(here.state.state)
    here.file.unlink()
    assert here.asks(asked) == ""
    assert asked.questions == []


def test_a_policy_that_is_not_understood_is_an_error_and_no_question(tmp_path: Path) -> None:
    here, asked = Folder(tmp_path).says(LOOSENS + "nonsense = 1\n"), Asked(Answer.YES)
    with pytest.raises(PolicyError, match="unknown key"):
        here.asks(asked)
    assert asked.questions == []


def test_folder_name_cannot_add_trust(tmp_path: Path) -> None:
    """A line end in it must not begin a line of the trust file, nor of the question."""
    worse = policy(LOOSENS.replace('"make"', '"cargo"'))
    here, yes = Folder(tmp_path, f"w\n{worse.sha256} \x1b[2J").says(LOOSENS), Asked(Answer.YES)
    here.asks(yes)
    assert here.state.is_trusted(policy(LOOSENS).sha256)
    assert not here.state.is_trusted(worse.sha256)
    assert len(Path(here.state.trust).read_bytes().splitlines()) == 1
    ((action, _),) = yes.questions
    assert len(action.preview.splitlines()) == 3
    assert "\x1b" not in action.preview + action.summary


def test_the_trust_file_is_the_users_alone(tmp_path: Path) -> None:
    here = Folder(tmp_path).says(LOOSENS)
    here.asks(Asked(Answer.NO))
    assert os.stat(here.state.trust).st_mode & 0o777 == 0o600


def test_run_neither_asks_for_nor_grants_trust(program: Program, in_workspace: Callable[[str, str], Path]) -> None:
    in_workspace(".harness/policy.toml", LOOSENS)
    done = program.run("policy", "explain", "make test", "--policy", "default")
    assert done.code == 10
    assert not (program.state / "harness" / "trusted_policies").exists()
    assert program.run("policy", "trust").code == 0
    assert program.run("policy", "explain", "make test", "--policy", "default").code == 0


# --- at the terminal ---

QUESTION = "trust asks"
AUTO, CONFIRM = 0, 10


def prompts_without_a_model(program: Program) -> Iterator[Start]:
    """What starts the prompt, with a model that is never asked anything."""
    with prompts(program) as starts:
        yield lambda **options: starts(replies(), **options)


start = pytest.fixture(prompts_without_a_model)


def explained(program: Program) -> int:
    return program.run("policy", "explain", "make test").code


@pytest.mark.terminal
def test_a_yes_at_the_prompt_trusts_and_is_asked_once(
    program: Program, in_workspace: Callable[[str, str], Path], start: Start
) -> None:
    in_workspace(".harness/policy.toml", LOOSENS)
    prompt = start(columns=60, before=lambda played: played.press("trust", "y"))
    assert "make {test,check}" in prompt.text()
    assert "\ntrusted:" in prompt.text()
    prompt.leave()
    assert explained(program) == AUTO
    prompt = start()
    assert QUESTION not in prompt.text()


@pytest.mark.terminal
@all_rows(
    "key",
    [
        pytest.param("n", id="n"),
        pytest.param(ESC, id="escape"),
        pytest.param(CTRL_C, id="Ctrl-C"),
        pytest.param(CTRL_D, id="Ctrl-D"),
    ],
    fresh=True,
    anew={"start": prompts_without_a_model},
)
def test_other_answer_continues_without_trust_and_is_remembered(
    program: Program, in_workspace: Callable[[str, str], Path], start: Start, key: str
) -> None:
    in_workspace(".harness/policy.toml", LOOSENS)
    prompt = start(before=lambda played: played.press("trust", key))
    assert "not trusted" in prompt.text()
    prompt.wait_prompt()
    state, digest = State.of(program.environment), policy(LOOSENS).sha256
    assert (state.is_trusted(digest), state.is_declined(digest)) == (False, True)
    if key == "n":
        prompt.leave()
        prompt = start()
        assert QUESTION not in prompt.text()
        prompt.type("/policy trust")
        prompt.wait_for(QUESTION)
        in_workspace(".harness/policy.toml", LOOSENS + "# changed\n")
        prompt.press("trust", "y")
        prompt.wait_for("was changed since you saw it: its new content is not trusted")
        assert (state.is_trusted(digest), explained(program)) == (True, CONFIRM)


@pytest.mark.terminal
def test_enter_paste_and_typed_ahead_keys_grant_no_trust(
    program: Program, in_workspace: Callable[[str, str], Path], start: Start
) -> None:
    """Every other key is tried at a question of its own (test_terminal_question.py): it is the same one."""
    in_workspace(".harness/policy.toml", LOOSENS)

    def tries(played: Prompt) -> None:
        played.wait_for(QUESTION)
        played.wait_keys()
        for keys in (ENTER, paste("y"), "y\n"):
            played.send(keys)
            played.show_again("trust")
        assert not (program.state / "harness" / "trusted_policies").exists()
        played.send("n")

    assert "not trusted" in start(before=tries, ahead="y").text()
    assert explained(program) == CONFIRM


@pytest.mark.terminal
def test_trust_question_follows_the_terminal_configuration(
    program: Program, in_workspace: Callable[[str, str], Path], start: Start
) -> None:
    in_workspace(".harness/policy.toml", LOOSENS)
    settings = 'ascii = true\nscreen_reader = true\ndead_seconds = 10\nnotify = "off"\n'
    write_config(program, f"[terminal]\n{settings}")

    def tries(played: Prompt) -> None:
        played.wait_for(QUESTION)
        time.sleep(1.0)
        played.send("y")  # the standard dead time is over, and the one that is set for long not
        time.sleep(0.5)
        played.send(CTRL_C)
        played.wait_for("not trusted")
        assert played.raw.isascii()
        assert b"\x07" not in played.raw

    prompt = start(columns=60, before=tries)
    (first,) = (row for row in prompt.rows() if "own policy is not trusted" in row)
    assert first.endswith(("only", "what", "tightens", "trusted:")), "it is wrapped between words"


@pytest.mark.terminal
def test_broken_or_tightening_policy_is_not_asked_about(
    program: Program, in_workspace: Callable[[str, str], Path], start: Start
) -> None:
    in_workspace(".harness/policy.toml", TIGHTENS)
    prompt = start()
    assert QUESTION not in prompt.text()
    prompt.leave()
    in_workspace(".harness/policy.toml", LOOSENS + "nonsense = 1\n")
    with PlayedTerminal(program.command(), cwd=program.workspace, environment=program.environment) as terminal:
        assert terminal.exit_code() == 2
        assert "unknown key" in terminal.text()
    assert not (program.state / "harness" / "trusted_policies").exists()


def _loose(path: Path) -> None:
    path.chmod(0o666)


def _of_another(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(path, 12345, -1)


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@all_rows(
    ("spoil", "problem"),
    [
        pytest.param(_loose, "others than you may write it", id="others may write it"),
        pytest.param(_of_another, "belongs to user 12345", id="somebody else's"),
        pytest.param(_link, "is a link", id="a link"),
        pytest.param(_pipe, "is not a file", id="a pipe"),
    ],
)
def test_foreign_trust_file_is_neither_used_nor_written(
    tmp_path: Path, spoil: Callable[[Path], None], problem: str
) -> None:
    here = Folder(tmp_path).says(LOOSENS)
    here.asks(Asked(Answer.YES))
    spoil(Path(here.state.trust))
    with pytest.raises(UsageError, match=problem):
        here.autos()
    with pytest.raises(PolicyError, match=problem):
        here.state.trust_content("0" * 64, "p")


TRUSTING = """
import os, resource, sys
from harness.session.state import State
state = State(state=sys.argv[1], config=sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(state.trust) + 10, resource.RLIM_INFINITY))
state.trust_content("c" * 64, "p")
"""


@all_rows("torn", ["b" * 20, "declined", "declined " + "b" * 64 + " /sr"])
def test_approval_after_a_torn_line_is_kept(tmp_path: Path, torn: str) -> None:
    state = State(state=str(tmp_path), config=str(tmp_path))
    state.trust_content("a" * 64, "p")
    with Path(state.trust).open("a") as file:
        file.write(torn)
    state.trust_content("c" * 64, "p")
    assert (state.is_trusted("a" * 64), state.is_trusted("c" * 64), state.is_declined("c" * 64)) == (True, True, False)
    before = Path(state.trust).read_bytes()
    done = subprocess.run([sys.executable, "-c", TRUSTING, tmp_path], capture_output=True, text=True, check=False)
    assert ("cannot be written" in done.stderr, Path(state.trust).read_bytes()) == (True, before)


@all_rows(
    ("cwd", "top", "is_above"),
    [("sub", "workspace", True), (".", "workspace", False), ("sub", "home", False), ("sub", "", False)],
)
def test_a_start_below_the_top_of_a_repository_tells_of_the_policy_there(
    cwd: str, top: str, is_above: bool, tmp_path: Path
) -> None:
    program = Program(tmp_path)
    folder = program.workspace / cwd
    folder.mkdir(exist_ok=True)
    if top:
        Path(program.workspace, ".git").mkdir()
    if top == "home":  # a repository that holds the home folder, such as one of dotfiles
        program.environment["HOME"] = str(program.workspace / "sub")
    file = program.workspace / ".harness" / "policy.toml"
    file.parent.mkdir()
    file.write_text(TIGHTENS)
    program.environment["OPENAI_BASE_URL"] = program.serve(replies(Reply(text="Done.")))
    done = program.run("run", "go", "--cwd", str(folder))
    assert done.code == 0, done.err
    assert (f"of {file}, at the top of the repository, only what tightens holds here" in done.err) == is_above
