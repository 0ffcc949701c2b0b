"""What stands above every rule, under a policy that permits everything: a table of calls, and the false alarms."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import shell_word
from rows import all_rows
from sizes import examples, spread
from work import assert_linear

from harness.actions import Action
from harness.app.policy.judged_call import action_for
from harness.files.workspace import Workspace
from harness.plugins.agents.guarded_agent import AGENTS, agent_named
from harness.policy.built_in import ENTRY_POINTS, PROTECTED_NAMES, is_entry_point
from harness.policy.loader import parse_policy
from harness.policy.policy import Policy
from harness.policy.verdict import evaluate
from harness.tool_kinds import SHIPPED_TOOLS


class World(NamedTuple):
    """A workspace in a home folder, and a policy that permits everything and guards its own files."""

    workspace: Workspace
    policy: Policy

    def judge(self, tool: str, what: str) -> tuple[str, str]:
        """Return the decision on a call and what made it; a rule or a default is shown as nothing."""
        for name, path in (("{home}", self.workspace.home), ("{root}", self.workspace.root)):
            word = shell_word(path) if tool == "bash" else path
            what = what.replace(f"'{name}'", f"'{path}'").replace(name, word)
        verdict = evaluate(self.policy, self.action(tool, what))
        by = verdict.deciding.by
        return verdict.decision.word, by.removeprefix("built-in ") if by.startswith("built-in ") else ""

    def action(self, tool: str, what: str) -> Action:
        return action_for(tool, what, self.workspace)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    base: Path = tmp_path_factory.mktemp("base").resolve()
    home, root = base / "home", base / "home/repo"
    for folder in ("src", "build", "policies", ".harness", ".git/hooks", ".github/workflows", "~"):
        (root / folder).mkdir(parents=True)
    for file in ("src/a.py", "policies/own.toml", ".harness/policy.toml", "notes.txt"):
        (root / file).touch()
    (home / "state").mkdir()
    for link, target in (
        ("to-git", ".git"),
        ("to-policy", "policies/own.toml"),
        ("to-root", "/"),
        ("to-null", "/dev/null"),
        ("to-disk", "/dev/sda"),
        ("to-bashrc", "../.bashrc"),
        ("src/up", ".."),
    ):
        (root / link).symlink_to(target)
    tools = "\n".join(f'{tool} = "auto"' for tool in (*SHIPPED_TOOLS, "default"))
    everything = parse_policy(f"version = 1\n[tools]\n{tools}\n".encode(), "everything.toml")
    guarded = everything.guarding(
        str(root / "policies/own.toml"), str(root / ".harness/policy.toml"), str(home / "state")
    )
    return World(Workspace(str(root), str(home)), guarded)


BLOCKED = [
    # recursive deletes of the root, the home folder, the workspace and what holds them
    ("bash", "rm -rf /", "delete-tree"),
    ("bash", "rm -fr //", "delete-tree"),
    ("bash", "rm -r /.", "delete-tree"),
    ("bash", "rm -R /", "delete-tree"),
    ("bash", "rm -rf -- /", "delete-tree"),
    ("bash", "rm / -rf", "delete-tree"),
    ("bash", "rm --recursive --force /", "delete-tree"),
    ("bash", "rm --recu /", "delete-tree"),
    ("bash", "rm --r /", "delete-tree"),
    ("bash", "rm -rf --no-preserve-root /", "delete-tree"),
    ("bash", "rm -rf build /", "delete-tree"),
    ("bash", "rm -rf .", "delete-tree"),
    ("bash", "rm -rf ./", "delete-tree"),
    ("bash", "rm -rf ..", "delete-tree"),
    ("bash", "rm -rf ../..//", "delete-tree"),
    ("bash", "rm -rf src/..", "delete-tree"),
    ("bash", "rm -rf src/up", "delete-tree"),
    ("bash", "rm -rf {root}", "delete-tree"),
    ("bash", "rm -rf '{root}'", "delete-tree"),
    ("bash", "rm -rf {home}", "delete-tree"),
    ("bash", "rm -rf {home}/..", "delete-tree"),
    ("bash", "rm -rf to-root", "delete-tree"),
    ("bash", "rm -rf ~", "delete-tree"),
    ("bash", "rm -rf ~/", "delete-tree"),
    ("bash", 'rm -rf "$HOME"', "delete-tree"),
    ("bash", "rm -rf ${HOME}/", "delete-tree"),
    ("bash", "rm -rf $PWD", "delete-tree"),
    ("bash", "rm -rf *", "delete-tree"),
    ("bash", "rm -rf ./*", "delete-tree"),
    ("bash", "rm -rf ./.*", "delete-tree"),
    ("bash", "rm -rf /*", "delete-tree"),
    ("bash", "rm -rf ~/*", "delete-tree"),
    ("bash", "rm -rf ../*", "delete-tree"),
    ("bash", "rm -rf {root}/*", "delete-tree"),
    ("bash", "rm -rf {home}/*", "delete-tree"),
    ("bash", "rm -rf {home}/../*", "delete-tree"),
    ("bash", "rm -rf $HOME/*", "delete-tree"),
    ("bash", 'rm -rf "$PWD"/*', "delete-tree"),
    ("bash", "rm -rf ${X:-/}", "delete-tree"),
    ("bash", "/bin/rm -rf /", "delete-tree"),
    ("bash", "\\rm -rf /", "delete-tree"),
    ("bash", "r''m -rf /", "delete-tree"),
    ("bash", "'rm' '-rf' '/'", "delete-tree"),
    ("bash", "$'rm' -rf /", "delete-tree"),
    ("bash", "rm$IFS-rf$IFS/", "delete-tree"),
    ("bash", "{rm,-rf,/}", "delete-tree"),
    ("bash", "A=1 rm -rf /", "delete-tree"),
    ("bash", "ls; rm -rf /", "delete-tree"),
    ("bash", "ls && rm -rf / &", "delete-tree"),
    ("bash", "ls | rm -rf /", "delete-tree"),
    ("bash", "rm -rf / > /dev/null 2>&1", "delete-tree"),
    ("bash", "rm 2>/dev/null -rf /", "delete-tree"),
    ("bash", "(rm -rf /)", "delete-tree"),
    ("bash", "if true; then rm -rf /; fi", "delete-tree"),
    ("bash", "f() { rm -rf /; }; f", "delete-tree"),
    ("bash", "echo $(rm -rf /)", "delete-tree"),
    ("bash", "echo `rm -rf /`", "delete-tree"),
    ("bash", 'echo "$(rm -rf /)"', "delete-tree"),
    ("bash", "sudo rm -rf /", "delete-tree"),
    ("bash", "sudo -u root -- rm -rf /", "delete-tree"),
    ("bash", "env A=1 rm -rf /", "delete-tree"),
    ("bash", "timeout 5 nice rm -rf /", "delete-tree"),
    ("bash", "command rm -rf /", "delete-tree"),
    ("bash", "xargs rm -rf /", "delete-tree"),
    ("bash", "busybox rm -rf /", "delete-tree"),
    ("bash", "bash -c 'rm -rf /'", "delete-tree"),
    ("bash", 'bash -c "cd x; rm -rf ~"', "delete-tree"),
    ("bash", "eval 'rm -rf /'", "delete-tree"),
    ("bash", "ssh host 'rm -rf /'", "delete-tree"),
    ("bash", "echo 'rm -rf /' | sh", "delete-tree"),
    ("bash", "sh <<EOF\nrm -rf /\nEOF", "delete-tree"),
    ("bash", "python3 <<< 'rm -rf /'", "delete-tree"),
    ("bash", "find . -delete", "delete-tree"),
    ("bash", "find / -delete", "delete-tree"),
    ("bash", "find ~ -delete", "delete-tree"),
    ("bash", "find . -type f -delete", "delete-tree"),
    ("bash", "find . -name '*' -delete", "delete-tree"),
    ("bash", "find . -path './*' -delete", "delete-tree"),
    ("bash", "find . -not -name keep -delete", "delete-tree"),
    ("bash", "find . ! -name keep -delete", "delete-tree"),
    ("bash", "find . -not '(' -name keep ')' -delete", "delete-tree"),
    ("bash", "find . -name x -o -delete", "delete-tree"),
    ("bash", "find . -delete -o -name x", "delete-tree"),
    ("bash", "find / -exec rm -rf {} +", "delete-tree"),
    ("bash", "find . -exec /bin/rm -r {} \\;", "delete-tree"),
    # raw devices
    ("bash", "echo x > /dev/pts/3", "terminals"),
    ("bash", "tee /dev/console", "terminals"),
    ("bash", "cp x /dev/tty1", "terminals"),
    ("write_file", "/dev/pts/0", "terminals"),
    ("bash", "dd if=/dev/zero of=/dev/sda", "raw-devices"),
    ("bash", "dd of=/dev/nvme0n1p1", "raw-devices"),
    ("bash", "cp x /dev/vda", "raw-devices"),
    ("bash", "echo x > /dev/sda", "raw-devices"),
    ("bash", "cat x>/dev/sdb1", "raw-devices"),
    ("bash", "tee /dev/mem", "raw-devices"),
    ("bash", "cat /dev/sda", "raw-devices"),
    ("bash", "dd of=/dev/rdisk2", "raw-devices"),
    ("bash", "dd of=to-disk", "raw-devices"),
    ("bash", "mkfs.ext4 x", "raw-devices"),
    ("bash", "/sbin/mkfs -t ext4 x", "raw-devices"),
    ("bash", "sudo mkfs.xfs x", "raw-devices"),
    ("bash", "wipefs -a x", "raw-devices"),
    ("bash", "blkdiscard x", "raw-devices"),
    ("write_file", "/dev/sda", "raw-devices"),
    ("read_file", "/dev/mapper/root", "raw-devices"),
    ("write_file", "to-disk", "raw-devices"),
    # fork bombs
    ("bash", ":(){ :|:& };:", "fork-bomb"),
    ("bash", ":() { : | : & } ; :", "fork-bomb"),
    ("bash", "bomb() { bomb | bomb & }; bomb", "fork-bomb"),
    ("bash", "x()\n{\n echo; x|x &\n}\nx", "fork-bomb"),
    ("bash", "ls; f(){ f|f& };f", "fork-bomb"),
    # stopping the machine
    ("bash", "reboot", "stop-machine"),
    ("bash", "/sbin/shutdown -h now", "stop-machine"),
    ("bash", "sudo poweroff", "stop-machine"),
    ("bash", "ls; halt", "stop-machine"),
    ("bash", "if true; then reboot; fi", "stop-machine"),
    ("bash", "bash -c reboot", "stop-machine"),
    # the harness's own files
    ("write_file", "policies/own.toml", "own-files"),
    ("edit_file", "policies/../policies/own.toml", "own-files"),
    ("write_file", "POLICIES/Own.toml", "own-files"),
    ("write_file", "to-policy", "own-files"),
    ("write_file", ".harness/policy.toml", "own-files"),
    ("write_file", "{home}/state/sessions/x.jsonl", "own-files"),
    ("write_file", "~/state/trust.json", "own-files"),
    ("bash", "cp x policies/own.toml", "own-files"),
    ("bash", "cp x src/up/policies/own.toml", "own-files"),
    ("bash", "rm policies/own.toml", "own-files"),
    ("bash", "tee -a policies/own.toml", "own-files"),
    ("bash", "sort -opolicies/own.toml x", "own-files"),
    ("bash", "sort --output=policies/own.toml x", "own-files"),
    ("bash", "dd of=policies/own.toml", "own-files"),
    ("bash", "echo x > policies/own.toml", "own-files"),
    ("bash", "echo x >> ~/state/x", "own-files"),
    ("bash", "bash -c 'echo > policies/own.toml'", "own-files"),
    ("bash", "truncate -s0 ~/state/sessions/x.jsonl", "own-files"),
    ("bash", "rm -r policies", "own-files"),
    ("bash", "rm -rf .harness/", "own-files"),
    ("bash", "sudo rm -rf policies/*", "own-files"),
    ("bash", "rm -rf ~/state", "own-files"),
]

ASKED = [
    # what is executed or obeyed later
    # names that look like others
    ("write_file", "src/a.py ", "odd-name"),
    ("edit_file", "src/ a.py", "odd-name"),
    ("write_file", "src /a.py", "odd-name"),
    ("write_file", "a\x1b[2K.py", "odd-name"),
    ("write_file", "a\nb", "odd-name"),
    ("write_file", "a\u200b.py", "odd-name"),
    ("bash", "echo x > 'a.py '", "odd-name"),
    ("bash", "touch $'a\\nb'", "odd-name"),
    ("write_file", ".git/hooks/pre-commit", "protected"),
    ("write_file", ".git/config", "protected"),
    ("write_file", ".git", "protected"),
    ("write_file", "sub/.git/config", "protected"),
    ("write_file", ".GIT/Config", "protected"),
    ("write_file", "to-git/config", "protected"),
    ("edit_file", ".github/workflows/ci.yml", "protected"),
    ("write_file", ".gitlab-ci.yml", "protected"),
    ("write_file", ".vscode/tasks.json", "protected"),
    ("write_file", ".idea/workspace.xml", "protected"),
    ("write_file", ".husky/pre-commit", "protected"),
    ("write_file", ".devcontainer/devcontainer.json", "protected"),
    ("write_file", ".envrc", "protected"),
    ("write_file", "sub/.npmrc", "protected"),
    ("write_file", ".bashrc", "protected"),
    ("write_file", ".pre-commit-config.yaml", "protected"),
    ("write_file", ".mcp.json", "protected"),
    ("write_file", ".windsurf/rules/a.md", "protected"),
    ("write_file", ".clinerules", "protected"),
    ("write_file", ".clinerules/hooks/PreToolUse", "protected"),
    ("write_file", ".roo/rules/a.md", "protected"),
    ("write_file", ".roomodes", "protected"),
    ("write_file", ".amazonq/rules/a.md", "protected"),
    ("write_file", ".junie/guidelines.md", "protected"),
    ("write_file", ".crush.json", "protected"),
    ("write_file", "crushrc", "protected"),
    ("write_file", ".crushrc", "protected"),
    ("write_file", ".crush/crush.json", "protected"),
    ("write_file", ".goose/recipes/a.yaml", "protected"),
    ("write_file", ".mise/config.toml", "protected"),
    ("write_file", "mise/config.toml", "protected"),
    ("write_file", ".mise.local.toml", "protected"),
    ("write_file", "sub/AGENTS.override.md", "protected"),
    ("write_file", ".kiro/steering/a.md", "protected"),
    ("bash", "cp x .windsurf/rules/a.md", "protected"),
    ("write_file", ".harness/other.toml", "protected"),
    ("write_file", "src/sitecustomize.py", "protected"),
    ("bash", "cp x .git/hooks/post-merge", "protected"),
    ("bash", "rm -rf .git", "protected"),
    ("bash", "mv .git x", "protected"),
    ("bash", "tee .envrc", "protected"),
    ("bash", "find .git -delete", "protected"),
    ("bash", "find . -type d -empty -delete", "protected"),
    ("bash", "find . -name '*.pyc' -o -name '*.pyo' -delete", "protected"),
    ("bash", "find . '(' -name a -o -name b ')' -delete", "protected"),
    ("bash", "chmod -R u+w .", "protected"),
    ("bash", "git rm -r --cached .", "protected"),
    # everything outside the workspace
    ("read_file", "/etc/passwd", "outside"),
    ("read_file", "~/.ssh/id_rsa", "outside"),
    ("read_file", "..", "outside"),
    ("write_file", "/tmp/x", "outside"),
    ("write_file", "../repo-evil/x", "outside"),
    ("write_file", "to-bashrc", "outside"),
    ("bash", "cat /etc/passwd", "outside"),
    ("bash", "ls /", "outside"),
    ("bash", "ls ..", "outside"),
    ("bash", "cat src/up/../x", "outside"),
    ("bash", "tar -C/ -xf a.tar", "outside"),
    ("bash", "git --work-tree=/ status", "outside"),
    ("bash", "rm -rf /tmp/x", "outside"),
    ("bash", "find /var/log -name '*.gz' -delete", "outside"),
    ("bash", "find / -name '*.pyc' -delete", "outside"),
    # a folder that holds the harness's own files
    ("bash", "mv policies x", "own-files"),
    ("write_file", "policies", "own-files"),
    # not plainly understood
    ("bash", "sleep 1 &", "opaque"),
    ("bash", "rm -rf $X", "opaque"),
    ("bash", 'rm -rf "$X"/*', "opaque"),
    ("bash", "rm -rf ${X}/*", "opaque"),
    ("bash", 'rm -rf "${X:?}"/*', "opaque"),
    ("bash", "rm -rf ${X}/", "opaque"),
    ("bash", "rm -rf $(ls)", "opaque"),
    # links below lead to places that nobody looked at
    ("bash", "find . -type f -exec rm {} +", "large-tree"),
    ("bash", "f() { f; }; f", "opaque"),
    ("bash", "a(){ b|b& };a", "opaque"),
]

LEFT_ALONE = [
    ("bash", "ls"),
    ("bash", "ls ."),
    ("bash", "rm -r build"),
    ("bash", "rm -rf node_modules dist"),
    ("bash", "rm -rf ./build"),
    ("bash", "rm ."),
    ("bash", "rm -f src/a.py"),
    ("bash", "git commit -m 'rm -rf /'"),
    ("bash", 'git commit -m "rm -rf / && reboot"'),
    ("bash", "echo 'rm -rf /'"),
    ("bash", "echo rm -rf /"),
    ("bash", "printf '%s\\n' /etc/passwd .git"),
    ("bash", 'grep -r "rm -rf /" .'),
    ("bash", "git grep 'mkfs.ext4'"),
    ("bash", "npm install halt"),
    ("bash", "man reboot"),
    ("bash", "ls /dev/null"),
    ("bash", "cp x /dev/null"),
    ("bash", "cat to-null"),
    ("bash", "find . -name '*.pyc' -delete"),
    ("bash", "find . -not -path './.git/*' -name '*.py'"),
    ("bash", "find build -delete"),
    ("bash", "ls -la .git"),
    ("bash", "cat .git/config"),
    ("bash", "cat policies/own.toml"),
    ("bash", "grep -rn deny policies"),
    ("bash", "ls > /dev/null"),
    ("bash", "ls 2>&1"),
    ("bash", "echo $(ls)"),
    ("bash", "sudo ls"),
    ("bash", "rm -rf build/*"),
    ("bash", 'git commit -m "no rm -rf /" 2>&1'),
    ("bash", "grep -rn 'rm -rf /' . 2>/dev/null"),
    ("bash", "echo 'rm -rf /' >> notes.txt"),
    ("bash", "echo reboot > notes.txt"),
    ("bash", "find . -name '*.pyc' -exec rm {} +"),
    ("bash", "git rm -r --cached src"),
    ("bash", "git status"),
    ("bash", "pytest -q"),
    ("bash", "python3 -c 'print(1)'"),
    ("read_file", ".git/config"),
    ("read_file", ".github/workflows/ci.yml"),
    ("read_file", "policies/own.toml"),
    ("read_file", "to-null"),
    ("write_file", "src/new.py"),
    ("write_file", ".gitignore"),
    ("write_file", "git/config"),
    ("write_file", "src/.github.md"),
    ("write_file", "Makefile"),
    ("write_file", "policies/other.toml"),
    ("write_file", "notes.txt"),
]


@all_rows(("tool", "what", "by"), [pytest.param(*row, id=f"{row[0]} {row[1]!a}: {row[2]}") for row in BLOCKED])
def test_forbidden_call_is_blocked(world: World, tool: str, what: str, by: str) -> None:
    assert world.judge(tool, what) == ("block", by)


@all_rows(("tool", "what", "by"), [pytest.param(*row, id=f"{row[0]} {row[1]!a}: {row[2]}") for row in ASKED])
def test_dangerous_call_is_asked_about_and_not_blocked(world: World, tool: str, what: str, by: str) -> None:
    assert world.judge(tool, what) == ("confirm", by)


@all_rows(("tool", "what"), [pytest.param(*row, id=f"{row[0]} {row[1]!a}") for row in LEFT_ALONE])
def test_harmless_lookalike_is_left_to_the_policy(world: World, tool: str, what: str) -> None:
    assert world.judge(tool, what) == ("auto", "")


@all_rows(
    ("tool", "what", "by"),
    [pytest.param(*row, id=f"{row[0]} {row[1]!a}") for row in BLOCKED if row[0] == "bash" and "{" not in row[1]],
)
def test_block_applies_anywhere_in_a_line(world: World, tool: str, what: str, by: str) -> None:
    if "<<EOF" not in what:
        assert world.judge(tool, f"ls -l; {what}\nls") == ("block", by)
    assert world.judge(tool, f"ls > x\n{what}") == ("block", by)


HUGE = [
    pytest.param("", "rm ", ">", "confirm", id="rm again and again"),
    pytest.param("", "rm -r x ", ">", "confirm", id="deletes again and again"),
    pytest.param("", "find -name x -o ", ">", "confirm", id="find again and again"),
    pytest.param("", "x", ">", "confirm", id="one word"),
    pytest.param("", "f(){", "", "confirm", id="functions that do not end"),
    pytest.param("f()", " ", "{", "confirm", id="blanks"),
    pytest.param("f(){", "f|", "", "confirm", id="a pipeline of itself"),
    pytest.param("", ":(){ :|: ", "", "confirm", id="almost fork bombs"),
    pytest.param("", "mkfs ", "$x", "block", id="file systems"),
]


@all_rows(("begin", "part", "end", "decision"), HUGE)
def test_a_hostile_line_is_judged_by_work_that_is_linear(
    world: World, begin: str, part: str, end: str, decision: str
) -> None:
    """What the regular expressions take is timed by bench/growth.py."""

    def line(size: int) -> str:
        return begin + part * (size // len(part)) + end

    for size in spread("SIZES", (600, 1_200, 12_000), 1):  # 10,000 characters are understood
        assert_linear(lambda size: world.action("bash", line(size)), lambda one: evaluate(world.policy, one), size)
    assert world.judge("bash", line(100_000))[0] == decision


@settings(max_examples=examples(300), deadline=None)
@given(st.text(alphabet="rmfind -/.~*:(){}|&;'\"$ \nxdelte>"))
def test_judging_never_raises(line: str) -> None:
    """On a workspace that has nothing in it: what matters here is the text."""
    world = World(Workspace("/"), parse_policy(b"version = 1\n", "empty.toml"))
    assert evaluate(world.policy, world.action("bash", line)).facets


@all_rows(
    ("path", "found"),
    [
        pytest.param("Makefile", True, id="a name"),
        pytest.param("/w/sub/conftest.py", True, id="in a folder"),
        pytest.param("PACKAGE.JSON", True, id="in capitals"),
        pytest.param("conftest.py.bak", False, id="a longer name"),
        pytest.param("Makefile/x", False, id="a folder of that name"),
        pytest.param("src/a.py", False, id="any other file"),
        pytest.param("mypy.ini", True, id="mypy"),
        pytest.param("sub/.flake8", True, id="flake8"),
        pytest.param(".eslintrc", True, id="eslint, old"),
        pytest.param(".eslintrc.json", True, id="eslint, old, with an ending"),
        pytest.param("eslint.config.mjs", True, id="eslint"),
        pytest.param("vitest.config.ts", True, id="vitest"),
        pytest.param("web/jest.config.cjs", True, id="jest"),
        pytest.param(".prettierrc.yaml", True, id="prettier"),
        pytest.param(".golangci.yml", True, id="golangci-lint"),
        pytest.param("Taskfile.yml", True, id="task"),
        pytest.param("justfile", True, id="just"),
        pytest.param("go.work", True, id="a workspace of Go"),
        pytest.param("pnpm-workspace.yaml", True, id="a workspace of pnpm"),
        pytest.param("bunfig.toml", True, id="bun"),
        pytest.param("deno.json", True, id="deno"),
        pytest.param("docker-compose.yml", True, id="compose"),
        pytest.param("node_modules/.bin/tsc", True, id="a program of npm"),
        pytest.param("web/node_modules/.bin/tsc", True, id="a program of npm in a folder"),
        pytest.param("node_modules/x/.bin/tsc", False, id="another folder of that name"),
        pytest.param("src/config.py", False, id="a module that is called config"),
        pytest.param("arc", False, id="a word that ends in rc"),
        pytest.param(".npmrc", False, id="a protected name asks by itself"),
    ],
)
def test_entry_points_are_known_by_their_names(path: str, found: bool) -> None:
    assert is_entry_point(path) is found
    assert all(is_entry_point(name.replace("*", "x").upper()) for name in ENTRY_POINTS)


def test_project_settings_of_each_guarded_agent_are_protected() -> None:
    files = [agent_named(name).settings.project or agent_named(name).settings.user for name in AGENTS]
    paths = [file.lower().split("/") for file in files]
    assert [path for path in paths if PROTECTED_NAMES.isdisjoint(path)] == []
