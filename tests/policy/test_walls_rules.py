"""What runs unasked inside the workspace walls by `bash = "walls"`, and what is asked about or refused all the same.

The shipped policy `workspace`, and the grants of the mode `walls` on the default policy, decide alike where only a default
asks. Each row names the walls of a command that runs: `reader` writes nothing, `workspace` has neither network nor sockets.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from judged_world import World, hostile, level, made_with_secrets, table_lines
from places import shell_word
from rows import all_rows

from harness.actions import Action, Decision
from harness.grant_pattern import EVERY_FILE, GrantPattern, GrantScope
from harness.policy.grant_offers import all_edits, any_command
from harness.policy.loader import load_policy, parse_policy
from harness.policy.policy import Policy
from harness.policy.rules import Origin
from harness.policy.session_grants import SESSION_GRANTS, Grant, with_grants
from harness.policy.verdict import evaluate, evaluate_here
from harness.policy.walls_here import Undo, WallsHere
from harness.record import replace

ROWS = [line.split(" ", 1) for _, line in table_lines("walls_rules.txt")]
RETURN = "\u23ce"


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with TemporaryDirectory(prefix="home-", dir="/tmp") as home:  # a home with a blank in its path looks like code
        yield made_with_secrets(Path(home))


@pytest.fixture(scope="module")
def mode(world: World) -> Policy:
    walls = WallsHere(root=world.workspace.root, confines=True)
    edits = replace(all_edits(), path=EVERY_FILE)
    origin = Origin(file=SESSION_GRANTS, line=1)
    patterns = {"walls": any_command("bash", walls), "walls-edits": edits}
    grants = [Grant(id=id_, scope=GrantScope.SESSION, pattern=each, origin=origin) for id_, each in patterns.items()]
    return with_grants(load_policy("default"), grants)


@pytest.fixture(scope="module")
def workspace_policy() -> Policy:
    return load_policy("workspace")


def action_of(world: World, command: str) -> Action:
    return world.action(command.replace("ROOT", shell_word(world.workspace.root)).replace(RETURN, "\n"))


@all_rows(("word", "command"), ROWS)
def test_workspace_policy_decides_as_listed(word: str, command: str, world: World, workspace_policy: Policy) -> None:
    verdict = evaluate(workspace_policy, action_of(world, command))
    assert (level(verdict), verdict.deciding.reason if level(verdict) != word else "") == (word, "")


@all_rows(("word", "command"), ROWS)
def test_mode_decides_like_the_policy(word: str, command: str, world: World, mode: Policy) -> None:
    verdict = evaluate(mode, action_of(world, command))
    said = level(verdict)
    assert said == word or {said, word} == {"confirm", "deny"}, verdict.deciding.reason


HIDDEN = {"grep -rl one . | xargs cat", "rg -l -uu one . | xargs cat", "tar cf x.tar ."}
"""Lines that read a folder with denied files below it, which the workspace walls hide."""


def test_table_has_its_minimum_size() -> None:
    words = [word for word, _ in ROWS]
    assert (len(ROWS) >= 150, words.count("workspace") >= 60, words.count("confirm") >= 50) == (True, True, True)


def test_hostile_commands_run_at_most_inside_walls(world: World, workspace_policy: Policy) -> None:
    """What a rule refuses stays refused; what runs writes only the workspace, and reaches nothing."""
    runs, beyond = 0, []
    for row in hostile():
        if row.policy == "default":
            said = level(evaluate(workspace_policy, world.action(row.command)))
            runs += said == "workspace"
            refused = row.decision > Decision.CONFIRM and row.command not in HIDDEN
            if said == "opened" or (refused and said in ("reader", "workspace")):
                beyond.append((said, row.command))
    assert (beyond, runs > 100) == ([], True)


def test_command_asks_where_the_walls_have_a_gap(world: World, workspace_policy: Policy) -> None:
    """The reason names the gap. What only reads needs no such walls."""
    none = WallsHere(root=world.workspace.root, confines=False, missing="no Landlock")
    exposed = WallsHere(root=world.workspace.root, confines=True, exposed=(".env", "config/.env.local"))
    rule = parse_policy(
        b'version = 1\n[tools]\nbash = "deny"\n[[rule]]\nid = "t"\ndecision = "auto"\nargv = ["make", "..."]\n'
        b'walls = "workspace"\n',
        "p.toml",
    )
    make = world.action("make test")
    for policy in (workspace_policy, rule):
        for walls, words in ((none, "no Landlock"), (exposed, ".env and 1 more cannot be protected here")):
            verdict = evaluate_here(policy, make, walls=lambda walls=walls: walls)  # type: ignore[misc]
            assert (verdict.decision, words in verdict.deciding.reason) == (Decision.CONFIRM, True)
    assert evaluate(workspace_policy, world.action("ls"), walls=none).decision is Decision.AUTO


REACHING = """version = 1
[tools]
bash = "confirm"
readers = true
[[rule]]
id = "get"
decision = "auto"
argv = ["kubectl", "get", "..."]
walls = "workspace"
NETWORK
[[rule]]
id = "secrets"
decision = "deny"
argv = ["kubectl", "get", "secret*"]
reason = "Secrets."
[[rule]]
id = "admin"
decision = "deny"
argv = ["git", "push"]
reason = "Pushes."
"""


@all_rows(
    ("command", "decision"),
    [
        ("kubectl get pods", "auto"),
        ("kubectl get secrets", "deny"),
        ("kubectl get $X", "confirm"),
        ('kubectl get "$X"', "confirm"),
        ("kubectl get ${X:-pods}", "confirm"),
        ("kubectl get $(cat names)", "confirm"),
        ("kubectl get `cat names`", "confirm"),
        ("kubectl get pods $X", "confirm"),
        ("kubectl get -n $X pods", "confirm"),
        ('kubectl get -n "$X" pods', "auto"),
        ('kubectl get "pod$X"', "auto"),
        ('kubectl get "sec$X"', "deny"),
        ("find . -exec kubectl get {} +", "confirm"),
        ("for x in pods; do kubectl get $x; done", "auto"),
        ("kubectl get pods; echo $X", "auto"),
    ],
)
def test_an_unread_word_that_a_strict_rule_may_be_about_asks_where_the_network_is_open(
    command: str, decision: str, world: World
) -> None:
    """Walls hold what an unread word does on this machine alone."""
    for network in ("network = true", 'network = ["10.0.0.1:6443"]'):
        policy = parse_policy(REACHING.replace("NETWORK", network).encode(), "p.toml")
        verdict = evaluate(policy, world.action(command))
        assert (verdict.decision.word, network) == (decision, network), verdict.deciding.reason
    without = REACHING.replace("NETWORK", "").replace("kubectl", "list-it")
    verdict = evaluate(parse_policy(without.encode(), "p.toml"), world.action(command.replace("kubectl", "list-it")))
    assert verdict.decision.word == ("deny" if decision == "deny" else "auto")


WITHOUT_WALLS = """version = 1
[tools]
bash = "TOOL"
readers = true
[[rule]]
id = "whole"
decision = "auto"
argv = ["./script.sh"]
[[rule]]
id = "open"
decision = "auto"
argv = ["pytest", "..."]
flags = ["-q"]
[[rule]]
id = "walls"
decision = "auto"
argv = ["make", "..."]
walls = "workspace"
"""


@all_rows(
    ("command", "decision"),
    [
        ("cat src/app.py", "auto"),
        ("./script.sh", "auto"),
        ("./script.sh more", "confirm"),
        ("./script.sh; touch new", "confirm"),
        ("pytest -q tests", "auto"),
        ("pytest -p x tests", "confirm"),
        ("X=1 pytest -q", "confirm"),
        ("pytest $(cat names)", "confirm"),
        ("make test", "confirm"),
        ("pytest -q && make test", "confirm"),
        ("python3 x.py", "confirm"),
        ("touch new", "confirm"),
        ("bash -c ./other.sh", "confirm"),
    ],
)
def test_without_walls_only_readers_and_rules_by_words_run(command: str, decision: str, world: World) -> None:
    """What walls would hold asks. A written rule without `walls` stands by its words, as on every machine."""
    none = WallsHere(root=world.workspace.root, confines=False, missing="no Landlock")
    for tool in ("confirm", "walls"):
        policy = parse_policy(WITHOUT_WALLS.replace("TOOL", tool).encode(), "p.toml")
        verdict = evaluate_here(policy, world.action(command), walls=lambda: none)
        assert (verdict.decision.word, tool) == (decision, tool), verdict.deciding.reason
        suspended = evaluate(policy, world.action(command), ("conftest.py",), walls=none)
        assert suspended.decision.word == ("auto" if command.startswith("cat") else "confirm")


@all_rows(
    ("undo", "command", "decision"),
    [
        (Undo(missing="more than 300,000 files"), "rm -rf src/deep", "confirm"),
        (Undo(missing="more than 300,000 files"), "python3 -c 'import shutil; shutil.rmtree(\"src\")'", "confirm"),
        (Undo(missing="more than 300,000 files"), "pytest -q", "auto"),
        (Undo(left_out=("ROOT/src/deep",)), "rm -rf src/deep", "confirm"),
        (Undo(left_out=("ROOT/src/deep",)), "rm -rf src", "confirm"),
        (Undo(left_out=("ROOT/src/deep",)), "echo x > src/deep/mod.py", "confirm"),
        (Undo(left_out=("ROOT/src/deep",)), "rm -rf docs", "auto"),
        (Undo(left_out=("ROOT/src/deep",)), "pytest src/deep", "auto"),
        (Undo(), "rm -rf src", "auto"),
    ],
)
def test_command_asks_where_undo_cannot_take_it_back(
    undo: Undo, command: str, decision: str, world: World, workspace_policy: Policy
) -> None:
    root = world.workspace.root
    here = replace(undo, left_out=tuple(name.replace("ROOT", root) for name in undo.left_out))
    walls = WallsHere(root=root, confines=True, undo=here)
    assert evaluate(workspace_policy, world.action(command), walls=walls).decision.word == decision


RULE = """version = 1
[tools]
bash = "confirm"
readers = true
[[rule]]
id = "a"
decision = "auto"
walls = "workspace"
argv = ARGV
"""


@all_rows(
    ("argv", "command", "word"),
    [
        ('["uv", "run", "..."]', "uv run pytest -q --x=1", "workspace"),
        ('["uv", "run", "..."]', "UV_OFFLINE=1 uv run pytest | tail -3", "workspace"),
        ('["uv", "run", "..."]', "uv run pytest > out.txt", "workspace"),
        ('["uv", "run", "..."]', "pytest -q", "confirm"),
        ('["uv", "run", "..."]', "uv sync", "confirm"),
        ('["uv", "run", "..."]', "uv run pytest && rm -rf src", "confirm"),
        ('["uv", "run", "..."]', "uv run pytest > ../out.txt", "confirm"),
        ('["uv", "run", "..."]', "uv run pytest > .github/x.yml", "confirm"),
        ('["uv", "run", "..."]', "source .venv/bin/activate && uv run pytest", "workspace"),
        ('["uv", "run", "..."]', "source .venv/bin/activate && make", "confirm"),
        ('["uv", "run", "..."]', "uv run server &", "workspace"),
        ('["uv", "run", "..."]', "cd $(git rev-parse --show-toplevel) && uv run pytest", "workspace"),
        ('["uv", "run", "..."]', "cd $(git rev-parse --show-toplevel) && curl x.org && uv run pytest", "confirm"),
        ('["poetry", "run", "pytest", "..."]', "poetry run pytest -k x", "workspace"),
        ('["poetry", "run", "pytest", "..."]', "poetry run sh", "confirm"),
        ('["bundle", "exec", "..."]', "bundle exec rspec --format doc", "workspace"),
        ('["npx", "..."]', "npx --yes jest", "workspace"),
        ('["bash", "scripts/*.sh"]', "bash scripts/x.sh", "workspace"),
        ('["bash", "scripts/*.sh"]', "bash scripts/x.sh more", "confirm"),
        ('["bash", "scripts/*.sh"]', "bash scripts/../x.sh", "confirm"),
        ('["bash", "scripts/*.sh"]', "bash scripts/deep/x.sh", "confirm"),
        ('["bash", "scripts/*.sh"]', "bash -c scripts/x.sh", "confirm"),
        ('["python3", "..."]', 'python3 -c \'print("a/b".split("/"))\'', "workspace"),
        ('["python3", "..."]', "python3 - <<'EOF'\u23ceprint(1)\u23ceEOF", "workspace"),
        ('["python3", "..."]', "cat src/app.py | python3", "workspace"),
        ('["python3", "..."]', "python3 x.py .env", "deny"),
        ('["python3", "..."]', "python3 x.py ~/notes", "confirm"),
        ('["python3", "..."]', "python3 -m pip install x", "confirm"),
        ('[["make", "just"], "..."]', "just test X=1", "workspace"),
        ('[["make", "just"], "..."]', "timeout 60 make -j4 && echo done", "workspace"),
        ('["docker", "..."]', "docker ps", "confirm"),
        ('["docker", "..."]', "docker compose exec web ls", "confirm"),
        ('["git", "..."]', "git push", "confirm"),
        ('["git", "..."]', "git reset --hard HEAD~1", "confirm"),
        ('["git", "..."]', "git commit -m x", "workspace"),
        ('["rm", "..."]', "rm -rf src/deep", "workspace"),
        ('["rm", "..."]', "rm -rf ../other", "confirm"),
        ('["sudo", "..."]', "sudo ls", "confirm"),
        ('["sed", "..."]', "sed -i '/self.add(x)/i \\\\  y' src/app.py", "workspace"),
    ],
)
def test_rule_with_walls_covers_its_commands(argv: str, command: str, word: str, world: World) -> None:
    policy = parse_policy(RULE.replace("ARGV", argv).encode(), "p.toml")
    secrets = [rule for rule in load_policy("default").rules if rule.id == "secrets"]
    verdict = evaluate(replace(policy, rules=(*policy.rules, *secrets)), action_of(world, command))
    assert level(verdict) == word, verdict.deciding.reason


def test_opened_rule_gets_its_network_and_nothing_else_in_the_line_does(world: World) -> None:
    rule = RULE.replace("ARGV", '["pip", "install", "..."]') + 'network = ["pypi.org"]\nwrite = ["~/.cache/pip"]\n'
    other = '[[rule]]\nid = "b"\ndecision = "auto"\nwalls = "workspace"\nargv = ["make", "..."]\n'
    policy = parse_policy((rule + other).encode(), "p.toml")
    alone = evaluate(policy, world.action("pip install x"))
    assert (alone.decision, alone.effects.hosts, level(alone)) == (Decision.AUTO, ("pypi.org",), "opened")
    assert set(alone.effects.granted) == {".", "~/.cache/pip"}
    assert evaluate(policy, world.action("make")).decision is Decision.AUTO
    assert evaluate(policy, world.action("make && pip install x")).decision is Decision.CONFIRM


def test_grant_with_the_network_beside_the_mode_asks_about_nothing_more(world: World, mode: Policy) -> None:
    """A line that runs in the mode still runs once a person granted one of its programs more."""
    action = action_of(world, f"cat > x.py <<E{RETURN}1{RETURN}E{RETURN}python3 x.py && make")
    pattern = GrantPattern(
        tools=("bash",), argv=("python3",), write=(".",), network=True, folder=world.workspace.root, program=True
    )
    origin = Origin(file=SESSION_GRANTS, line=1)
    granted = with_grants(mode, [Grant(id="g", scope=GrantScope.SESSION, pattern=pattern, origin=origin)])
    alone = action_of(world, "python3 x.py")
    verdicts = [evaluate(granted, each) for each in (action, alone)]
    assert [(verdict.decision, verdict.effects.network) for verdict in verdicts] == [
        (Decision.AUTO, False),
        (Decision.AUTO, True),
    ]


def test_protected_places_below_a_folder_ask_where_the_walls_cannot_hold_them(
    world: World, workspace_policy: Policy
) -> None:
    action = world.action("tar xf archive.tar -C .github/..")
    walls = WallsHere(root=world.workspace.root, confines=True)
    decisions = [
        evaluate(workspace_policy, action, walls=each).decision for each in (walls, replace(walls, holds=False))
    ]
    assert decisions == [Decision.AUTO, Decision.CONFIRM]


def test_order_of_rules_changes_nothing_and_a_deny_never_loosens(world: World) -> None:
    """Rules with walls, in any order; then with a rule that denies a beginning of one of the commands."""
    chosen = random.Random(1)
    names = ["make", "npm", "uv", "git", "python3", "rm", "sed", "bash", "pytest", "cp"]
    text = 'version = 1\n[tools]\nbash = "walls"\nreaders = true\n' + "".join(
        f'[[rule]]\nid = "{name}"\ndecision = "auto"\nwalls = "workspace"\nargv = ["{name}", "..."]\n' for name in names
    )
    policy = parse_policy(text.encode(), "p.toml")
    actions = [action_of(world, command) for _, command in ROWS]
    before = [evaluate(policy, action) for action in actions]
    for _ in range(5):
        rules = chosen.sample(policy.rules, len(policy.rules))
        mixed = replace(policy, rules=tuple(rules))
        assert [evaluate(mixed, action).decision for action in actions] == [verdict.decision for verdict in before]
    for name in names:
        deny = parse_policy(
            f'version = 1\n[[rule]]\nid = "no"\ndecision = "deny"\nargv = ["{name}"]\nreason = "no"\n'.encode(),
            "d.toml",
        )
        stricter = replace(policy, rules=(*policy.rules, *deny.rules))
        after = [evaluate(stricter, action).decision for action in actions]
        assert all(now >= verdict.decision for now, verdict in zip(after, before, strict=True)), name
