"""`extends` and `[lists]`: real files together decide as one, each mistake is named, and none of them can be written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from rows import all_rows

from harness.errors import PolicyError
from harness.files.workspace import Workspace
from harness.gate.registry import ToolRegistry
from harness.messages import ToolCall
from harness.policy.lint import warnings
from harness.policy.loader import load_policy, parse_policy, shipped_policy_path
from harness.policy.policy import Policy, combine
from harness.policy.rules import Layer
from harness.policy.verdict import evaluate
from harness.session.trust import loosened_by
from harness.tools import builtin_tools

BASE = """\
version = 1
[lists]
deploys = ["/deploy/", "prod.yaml"]
runners = ["just", "task"]
[tools]
default = "deny"
read_file = "auto"
[sandbox]
write = ["build"]
[[rule]]
id = "base"
decision = "deny"
path = ["@deploys"]
reason = "For people."
[[rule]]
id = "tests"
decision = "auto"
argv = ["pytest", "..."]
walls = "workspace"
"""
OWN = """\
version = 1
extends = ["base.toml"]
[lists]
ours = ["@deploys", "b.yaml"]
[tools]
write_file = "auto"
[[rule]]
id = "ours"
decision = "block"
path = ["@ours"]
reason = "Ours."
[[rule]]
id = "runners"
decision = "auto"
argv = [["@runners", "make"], "check"]
write = ["build"]
"""
ONE = (
    BASE.replace("[lists]\n", '[lists]\nours = ["@deploys", "b.yaml"]\n').replace(
        "[tools]\n", '[tools]\nwrite_file = "auto"\n'
    )
    + OWN[OWN.index("[[rule]]") :]
)


def folder_of(tmp_path: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (tmp_path / f"{name}.toml").write_text(text)
    return tmp_path


def decided(policy: Policy, tmp_path: Path, what: str) -> str:
    """Return the decision on a command line, or on writing a file after `>`."""
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    tools = ToolRegistry(builtin_tools(Workspace(str(workspace), str(tmp_path)), environment={"PATH": "/usr/bin:/bin"}))
    name, arguments = (
        ("write_file", {"path": what[1:], "content": "x"}) if what[0] == ">" else ("bash", {"command": what})
    )
    return evaluate(policy, tools.prepare(ToolCall(id="1", name=name, arguments=json.dumps(arguments)))).decision.word


WHATS = [
    ("pytest -q", "auto"),
    ("just check", "auto"),
    ("task check", "auto"),
    ("make check", "auto"),
    ("just other", "deny"),
    ("touch x", "deny"),
    ("cat deploy/x", "block"),
    ("cat b.yaml", "block"),
    (">src/a.py", "auto"),
    (">prod.yaml", "block"),
]


@all_rows(("what", "decision"), WHATS)
def test_a_file_and_those_that_it_extends_decide_as_one(tmp_path: Path, what: str, decision: str) -> None:
    """As they would in one file; the order of the names means nothing."""
    folder = folder_of(
        tmp_path,
        base=BASE,
        own=OWN,
        one=ONE,
        left='version = 1\nextends = ["own.toml", "base.toml"]\n',
        right='version = 1\nextends = ["base.toml", "own.toml"]\n',
    )
    names = ("own", "left", "right", "one")
    assert {
        name: decided(load_policy(str(folder / f"{name}.toml")), tmp_path, what) for name in names
    } == dict.fromkeys(names, decision)


def test_the_strictest_line_counts_and_the_other_is_named(tmp_path: Path) -> None:
    strict = 'version = 1\n[tools]\nbash = "deny"\nwrite_file = "auto"\n'
    lax = 'version = 1\nextends = ["strict.toml"]\n[tools]\nbash = "walls"\nwrite_file = "confirm"\n'
    policy = load_policy(str(folder_of(tmp_path, strict=strict, lax=lax) / "lax.toml"))
    assert [decided(policy, tmp_path, what) for what in ("touch x", ">a")] == ["deny", "confirm"]
    (warning,) = (warning for warning in warnings(policy) if "says nothing" in warning.problem)
    assert (warning.origin.line, warning.problem) == (
        4,
        f"bash says nothing: a stricter line counts ({tmp_path}/strict.toml:3)",
    )


def test_named_files_with_a_common_base_each_decide_alone(tmp_path: Path) -> None:
    one = 'version = 1\nextends = ["base.toml"]\n[[rule]]\nid = "x"\ndecision = "auto"\nargv = ["ls"]\n'
    folder = folder_of(tmp_path, base=BASE, one=one, two=one.replace("ls", "cat"))
    policy = combine([load_policy(str(folder / f"{name}.toml")) for name in ("one", "two")])
    assert [decided(policy, tmp_path, what) for what in ("ls", "cat", "pytest")] == ["deny", "deny", "auto"]


def test_each_rule_and_file_is_told_by_its_own_place(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, base=BASE, own=OWN)
    policy = load_policy(str(folder / "own.toml"), layer=Layer.USER)
    own, base = str(folder / "own.toml"), os.path.realpath(folder / "base.toml")
    assert [(rule.id, str(rule.origin), rule.layer) for rule in policy.rules] == [
        ("ours", f"{own}:7", Layer.USER),
        ("runners", f"{own}:12", Layer.USER),
        ("base", f"{base}:10", Layer.USER),
        ("tests", f"{base}:15", Layer.USER),
    ]
    assert [(source.path, source.extends, source.root) for source in policy.sources] == [
        (own, (base,), ""),
        (base, (), own),
    ]
    assert policy.name == "own"


def test_every_file_counts_for_the_digest_and_is_guarded(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, real=BASE, own=OWN)
    (folder / "base.toml").symlink_to("real.toml")
    before = load_policy(str(folder / "own.toml"))
    assert {os.path.basename(path) for path in before.guarded} == {"own.toml", "base.toml", "real.toml"}
    (folder / "real.toml").write_text(BASE + "# changed\n")
    assert load_policy(str(folder / "own.toml")).sha256 != before.sha256


def test_a_shipped_name_is_never_a_file_beside(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, ci="version = 2\n", own='version = 1\nextends = ["ci"]\n')
    (folder / "ci").write_text("version = 3\n")
    policy = load_policy(str(folder / "own.toml"))
    assert policy.sources[1].path == shipped_policy_path("ci")


def test_a_relative_name_begins_at_the_file_that_says_it(tmp_path: Path) -> None:
    """Behind a link to a folder, too: as the kernel follows it."""
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    folder_of(tmp_path / "a", company="version = 1\n")
    folder_of(inner, own='version = 1\nextends = ["../company.toml"]\n')
    (tmp_path / "link").symlink_to(inner)
    assert load_policy(str(tmp_path / "link" / "own.toml")).sources[1].path == os.path.realpath(
        tmp_path / "a/company.toml"
    )


def test_what_a_file_loosens_is_named(tmp_path: Path) -> None:
    more = OWN + '[[rule]]\nid = "asked"\ndecision = "confirm"\nargv = ["git", "push"]\n'
    policy = load_policy(str(folder_of(tmp_path, base=BASE, own=more) / "own.toml"))
    assert [line.split()[0] for line in loosened_by(policy)] == ["default", "auto", "confirm"]
    assert loosened_by(load_policy("ci")) == ()


BAD = [
    ('extends = "ci"', "2: extends: must be a list of names and files, such as [\"ci\", \"../company.toml\"]"),
    ("extends = []", "2: extends: must not be empty"),
    ('extends = ["ci", "ci"]', "2: extends: names 'ci' twice"),
    ('extends = ["pyton"]', "2: extends: 'pyton' is neither a file (*.toml) nor a shipped policy; did you mean python?"),
    ('extends = ["none.toml"]', "2: extends: 'none.toml' cannot be read: No such file or directory"),
    ('extends = ["./"]', "2: extends: './' cannot be read: Is a directory"),
    ('extends = ["p.toml"]', "2: extends: 'p.toml' extends this file itself: {folder}/p.toml"),
    ('extends = ["again.toml"]', "2: extends: 'p.toml' extends this file itself: {folder}/p.toml"),
    ('extends = ["deep1.toml"]', "2: extends: 'deep8.toml' is too deep: at most 8 files may extend one another in a row"),
    ('extends = ["broken.toml"]', "2: name: unknown key; did you mean name?"),
    ("[tools]\nextends = ['ci']", "3: [tools] extends: unknown key"),
    ("[lists]\na = []", "3: [lists] a: must not be empty"),
    ('[lists]\na = "b"', "3: [lists] a: must be a list of strings, such as"),
    ('[lists]\n"a b" = ["c"]', "3: [lists] a b: a list's name has letters, digits, - and _, and begins with a letter"),
    ('[lists]\na = ["@b"]\nb = ["@a"]', "3: [lists] a: the list 'a' contains itself"),
    ('[lists]\na = ["@c"]', "3: [lists] a: '@c' is an unknown list; known: a (for the word itself write \"@@c\")"),
    (
        '[lists]\nsecrets = ["x"]\n[[rule]]\nid = "r"\ndecision = "confirm"\npath = ["@secret"]',
        "7: [[rule]] path: '@secret' is an unknown list; did you mean secrets? (for the word itself write \"@@secret\")",
    ),
    (
        'extends = ["l1.toml", "l2.toml"]\n[[rule]]\nid = "r"\ndecision = "confirm"\npath = ["@x"]',
        "6: [[rule]] path: the list 'x' differs between the extended files: define one of this name here",
    ),
]  # fmt: skip


@all_rows(("text", "message"), [pytest.param(*row, id=row[0].replace("\n", " ")[:60]) for row in BAD])
def test_a_mistake_is_named_with_file_line_and_key(tmp_path: Path, text: str, message: str) -> None:
    deep = {f"deep{n}": f'version = 1\nextends = ["deep{n + 1}.toml"]\n' for n in range(1, 10)}
    lists = {f"l{n}": f'version = 1\n[lists]\nx = ["{n}"]\n' for n in (1, 2)}
    folder = folder_of(
        tmp_path,
        p=f"version = 1\n{text}\n",
        again='version = 1\nextends = ["p.toml"]\n',
        broken="version = 1\nnmae = 'x'\n",
        **deep,
        **lists,
    )
    with pytest.raises(PolicyError) as caught:
        load_policy(str(folder / "p.toml"))
    place, _, problem = str(caught.value).partition(".toml:")
    assert Path(place).parent == folder
    assert problem.startswith(message.format(folder=os.path.realpath(folder)).replace("2: name", "2: nmae"))


def test_a_text_without_a_folder_extends_what_ships() -> None:
    extended = parse_policy(b'version = 1\nextends = ["ci", "go"]\n', "p.toml")
    assert {"locked", "go-run"} <= {rule.id for rule in extended.rules}
    with pytest.raises(PolicyError, match=r"p.toml:2: extends: 'x.toml' is not shipped, and this policy is a text"):
        parse_policy(b'version = 1\nextends = ["x.toml"]\n', "p.toml")


def test_a_word_that_looks_like_a_list_is_written_with_two_signs() -> None:
    text = 'version = 1\n[[rule]]\nid = "a"\ndecision = "auto"\nargv = ["x", "@@next", ["@types/node", "@@a"]]\n'
    (rule,) = parse_policy(text.encode(), "p.toml").rules
    assert rule.argv is not None
    assert rule.argv.tokens == (("x",), ("@next",), ("@types/node", "@a"))


def test_a_list_hides_one_of_the_same_name_for_its_own_file_alone(tmp_path: Path) -> None:
    own = 'version = 1\nextends = ["base.toml"]\n[lists]\ndeploys = ["x"]\n'
    own += '[[rule]]\nid = "r"\ndecision = "confirm"\npath = ["@deploys"]\n'
    policy = load_policy(str(folder_of(tmp_path, base=BASE, own=own) / "own.toml"))
    patterns = [rule.files.patterns.patterns for rule in policy.rules if rule.files is not None]
    assert patterns == [("x",), ("/deploy/", "prod.yaml")]
