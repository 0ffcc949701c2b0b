"""What a question shows, row by row: everything, and nothing that could pass for something else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import SUPPORT
from question_scene import Asked, asked, command, from_outside
from rows import all_rows

from harness.actions import Access, Decision, ToolBounds, Unconfined
from harness.gate.approval import Approval
from harness.grant_pattern import GrantPattern, GrantScope
from harness.log.vocabulary import Answer
from harness.policy.destruction import destroys
from harness.policy.grant_offers import GrantChoice, Offer
from harness.record import replace
from harness.terminal.call_parts import parts_of, split
from harness.terminal.choices import (
    EDIT,
    HALT,
    HELP,
    NEXT,
    NO,
    PROJECT,
    REASON,
    SESSION,
    VIEW,
    WORDS,
    YES,
    Choice,
    key_line,
    permanent_line,
    said_keys,
)
from harness.terminal.editor import _new_texts, _sections, _split, is_editable
from harness.terminal.effects_lines import WORKSPACE_WALLS
from harness.terminal.grant_list import explained_rows, offered_rows
from harness.terminal.question import COMMANDS_UNDONE, Asker, Question, Usual, question_rows
from harness.terminal.question_help import facet_rows, fact_rows
from harness.terminal.row_text import WRAPPED, cells, rows_of
from harness.terminal.styles import Tone
from harness.text.visible import visible
from harness.tools.command_network import why_no_hosts


def question(about: Asked, *, usual: Usual | None = None) -> Question:
    return Question(
        usual=usual or Usual(),
        action=about.action,
        verdict=about.verdict,
        confinement="kernel",
        variables=("PATH",),
        destroys=destroys(about.action),
    )


def lines(about: Asked, width: int = 100) -> list[str]:
    return [row.text for row in question_rows(question(about), width)]


@pytest.fixture
def root(tmp_path: Path) -> str:
    (tmp_path / "a.py").write_text("one\n")
    return str(tmp_path.resolve())


@all_rows(
    ("line", "expected"),
    [
        pytest.param("ls -la && git push", "  auto  ls -la &&", id="part that runs unasked"),
        pytest.param("ls && git push", "  ASKS  git push", id="part that asks"),
        pytest.param("ls && git push", "  ! a yes opens: network: any host", id="what leaves the walls"),
        pytest.param("ls && git push", "      ! others see it  [rule push]", id="why a part asks"),
        pytest.param("ls | cat; touch a", "  auto  cat;", id="what only looks"),
        pytest.param("echo $(touch a) && ls", "  $ echo $(touch a) && ls", id="parts in one another"),
        pytest.param("echo $(touch a) && ls", "  ASKS  touch a", id="a part within another"),
        pytest.param("ls > a; ls", "  ASKS  ls > a;", id="what asks where the output goes asks"),
        pytest.param("{ ls; ls -a; } > a", "  ASKS  writes a", id="a file of a whole group"),
        pytest.param("{ ls; ls -a; } > a 2> b", "  ASKS  writes b", id="each file of a whole group"),
        pytest.param("{ ls; ls -a; } > a", "  auto  ls -a", id="the commands of the group"),
        pytest.param("touch a", "  $ touch a", id="command"),
        pytest.param("touch a\nls # b", "  > ls # b", id="further line"),
        pytest.param("touch 'a\nb' && ls", "      > b' &&", id="further line of a part"),
        pytest.param("git push", "  ! others see it  [rule push]; a yes opens: network: any host; cannot", id="why"),
        pytest.param("pip install x", "  ! a yes opens: network pypi.org, files.pythonhosted.org", id="hosts"),
        pytest.param("git commit -m x", "  ! cannot be undone: git history", id="no undo"),
        pytest.param("ls && git commit", "  ! cannot be undone: git history", id="a part without undo"),
        pytest.param("rm -rf .git", "  ! a yes opens: changes .git; cannot be undone: git history", id="data of git"),
        pytest.param("git reset --hard", "  ! cannot be undone: git history", id="no undo of what is destroyed"),
        pytest.param("hub commit -m x", "  ! cannot be undone: git history", id="no undo of hub"),
        pytest.param("hg commit -m x", "  ! cannot be undone: hg history", id="no undo of Mercurial"),
        pytest.param("ls && jj new", "  ! cannot be undone: jj history", id="no undo of Jujutsu"),
        pytest.param("docker ps", "  ! a yes opens: a Unix socket: docker", id="socket"),
        pytest.param("eval $x", "  ! not plainly understood: eval of $x", id="opaque and why"),
        pytest.param("touch .git/hooks/x", "  ! a yes opens: changes .git/hooks/x", id="protected place"),
        pytest.param("touch /etc/x", "  ! a yes opens: writes /etc/x", id="writes outside"),
        pytest.param("cat /etc/x; make", "      ! reads /etc/x, which lies outside the workspace", id="reads outside"),
        pytest.param("rm -r x", "  ! this destroys: rm -r deletes x with all that is in it", id="destroys"),
        pytest.param("rm a.py", "  ! removes a.py; /undo can put it back", id="removes"),
        pytest.param("ls && rm -f a.py", "  ! removes a.py; /undo can put it back", id="a part that removes"),
        pytest.param("rm /etc/x", "  ! removes /etc/x", id="removes what undo does not keep"),
        pytest.param("npm publish --tag x", "  ! public for good: npm publish", id="publishes"),
        pytest.param("sudo twine upload d/x", "  ! public for good: twine upload", id="publishes behind a wrapper"),
        pytest.param("f() { ls; }; cargo publish", "  ! public for good: cargo publish", id="publishes, not understood"),
        pytest.param("echo x > /dev/pts/3", "  ! it may write to a terminal, /dev/pts/3: ", id="terminal"),
        pytest.param("t\u043euch a", "  ! odd text: ", id="Cyrillic o in a program's name"),
        pytest.param("touch a\u00a0b", "  ! odd text: ", id="odd blank"),
        pytest.param("touch \u202eab", "  $ touch \\u202eab", id="bidi"),
        pytest.param("touch a\x1b[2K\rls", "  $ touch a\\x1b[2K\\x0dls", id="escapes"),
    ],
)  # fmt: skip
def test_a_row_of_the_question(root: str, line: str, expected: str) -> None:
    """Each begins like this."""
    shown = lines(command(root, line))
    assert [row for row in shown if row.startswith(expected)], shown


@all_rows(
    ("told", "expected"),
    [
        ({}, '    {"path": "a.py"}'),
        ({"says_reads": True}, "    its server says that it only reads; nobody made sure"),
        ({"says_destroys": True}, "  ! this destroys: the server of mcp__srv__do says that it may destroy"),
        ({"bounds": ToolBounds(write=("build", "~/x"))}, "    it may write build, ~/x, and does not reach the network"),
        ({"bounds": ToolBounds(network=True)}, "    it writes nothing, and may reach the network"),
        ({"unseen": "nobody has seen it"}, "  ! nobody has seen it"),
        ({"says_reads": True, "bounds": ToolBounds()}, "    it writes nothing, and does not reach the network"),
    ],
)
def test_question_names_the_claims_of_a_server_and_its_walls(root: str, told: dict[str, Any], expected: str) -> None:
    shown = lines(from_outside(root, '{"path": "a.py"}', **told))
    assert expected in shown, shown
    claims = [row for row in shown if "says that it only reads" in row]
    assert len(claims) == (told == {"says_reads": True}), "what can only read need not say so"


FORGED_PARTS = (
    "ls # && git push\ngit push", "cat <<'E'\nls\nE\ngit push", "echo 'ls && ' && git push", "ls; ls; ls && git push",
    "git push; #\nls", "if ls; then git push; fi", "ls $(git push)", "(ls; git push) | cat", "for i in ls; do git push; done",
    "ls && git push # ls", "ls &&\\\n git push", "{ ls; } && ! git push", "ls\n\n\ngit push\n\n", "x=1 ls && y=2 git push",
)  # fmt: skip


@all_rows("line", FORGED_PARTS)
def test_shown_line_is_complete_and_asked_parts_never_called_auto(root: str, line: str) -> None:
    about = command(root, line)
    shown = lines(about, 400)
    pieces = split(line, parts_of(about.action, about.verdict))
    whole = [row[8:] for row in shown if row.startswith(("  ASKS  ", "  auto  ", "      > "))]
    if not pieces:
        whole = [row[4:] for row in shown if row.startswith(("  $ ", "  > "))]
    assert "".join("".join(whole).split()) == "".join(line.split())
    assert "".join(pieces) in (line, "")
    assert [row for row in shown if row.startswith("  auto  ") and "git push" in row] == []
    assert [row for row in shown if "git push" in row and row.startswith(("  ASKS  ", "  $ "))]


def test_everyday_lines_are_shown_whole_and_all_that_asks_in_them(root: str) -> None:
    """Every part that asks is in a row that says so, or is the whole call; and the line itself stands there to the letter."""
    lines_of = [line for name in ("everyday", "that_change", "that_look") for line in _script_lines(name)]
    assert len(lines_of) > 400
    for line in lines_of:
        about = command(root, line)
        parts = parts_of(about.action, about.verdict)
        asking = [one for one in about.verdict.facets if one.decision is Decision.CONFIRM]
        held = {id(one) for part in parts for one in part.verdicts}
        assert [one for one in asking if id(one) not in held] == [], line
        shown = lines(about, 2_000)
        rows = [row for row in shown if row.startswith(("  $ ", "  > ", "  ASKS  ", "  auto  ", "      > "))]
        assert split(line, parts) or "".join(row[4:] for row in rows if row[:4] in ("  $ ", "  > ")) == "".join(
            visible(each).expandtabs(8) for each in line.split("\n")
        )
        if len(parts) > 1:
            calls = sum(part.asks and part.text.strip() != line.strip() for part in parts)
            assert sum(row.startswith("  ASKS  ") for row in rows) == calls, line


def _script_lines(name: str) -> list[str]:
    text = Path(SUPPORT, f"scripts_{name}.txt").read_text()
    return [line.removeprefix("@").replace("\\n", "\n") for line in text.splitlines() if line.strip()]


USUAL = [
    "  effects: reads nothing; writes a",
    "  walls: workspace",
    f"  {WORKSPACE_WALLS}",
    "  folder: {root}", "  time limit: 120 s", "  variables of yours: PATH, and 0 that keep programs from asking and paging",
    "  confinement: kernel", f"  undo: {COMMANDS_UNDONE}",
]  # fmt: skip


@all_rows("width", [40, 80, 120])
def test_plain_command_takes_one_row_and_usual_facts_are_on_demand(root: str, width: int) -> None:
    about = question(command(root, "touch a"), usual=Usual(folder=root, confinement="kernel"))
    assert about.title(width) == "bash asks, workspace only, offline"
    assert [row.text for row in question_rows(about, width)] == ["  $ touch a"]
    wanted = [row.format(root=root) for row in USUAL]
    assert [row.text for row in fact_rows(about, 400)] == wanted


@all_rows("width", [40, 80, 120])
def test_an_edit_is_its_difference_below_its_name(root: str, width: int) -> None:
    about = question(asked(root, "edit_file", {"path": "a.py", "old_string": "one", "new_string": "two"}))
    assert about.title(width) == "edit_file asks: a.py (+1 -1 lines)"
    assert [row.text for row in question_rows(about, width)] == ["  1 - one", "  1 + two"]


def test_name_too_long_for_the_title_is_shown_in_the_diff(root: str) -> None:
    name = "n" * 100 + ".py"
    about = question(asked(root, "write_file", {"path": name, "content": "x\n"}))
    shown = "".join(row.text[4:] for row in question_rows(about, 60) if not row.text.startswith("  1"))
    assert f"new file {name}" in shown
    assert about.title(60) == "write_file asks"


def test_all_writable_places_of_a_command_are_listed(root: str) -> None:
    """At once, where not every command may write there; else on demand."""
    about = command(root, "make")
    places = tuple(f"/srv/{number}" for number in range(9))
    effects = replace(about.verdict.effects, granted=(".", *places))
    about = about._replace(verdict=replace(about.verdict, effects=effects))
    leaves = "; ".join(f"writes {place}" for place in places)
    assert f"  ! a yes opens: {leaves}" in lines(about, 200)
    usual = question(about, usual=Usual(write=places))
    assert usual.title(200) == "bash asks, workspace only, offline"
    assert not [row.text for row in question_rows(usual, 200) if "a yes opens" in row.text]
    assert fact_rows(usual, 200)[0].text == f"  walls: opened ({leaves})"


@all_rows(
    ("confinement", "expected"),
    [
        ("kernel", []),
        ("kernel; fully writable, so that files can be made and removed there: the workspace", []),
        ("kernel; fully writable, so that files can be made and removed there: {root}/src, the workspace", []),
        (
            "kernel; fully writable, so that files can be made and removed there: /srv",
            ["walls: fully writable, so that files can be made and removed there: /srv"],
        ),
        (
            "kernel; fully writable, so that files can be made and removed there: {root}, /srv",
            ["walls: fully writable, so that files can be made and removed there: {root}, /srv"],
        ),
        (
            "kernel; fully writable, so that files can be made and removed there: {root}; not protected: {root}/x",
            ["walls: fully writable, so that files can be made and removed there: {root}; not protected: {root}/x"],
        ),
        ("kernel; cannot be written: {root}/a", ["walls: cannot be written: {root}/a"]),
        ("kernel2", ["confinement: kernel2"]),
        ("none", ["confinement: none"]),
    ],
)
def test_only_unusual_parts_of_the_confinement_are_shown(root: str, confinement: str, expected: list[str]) -> None:
    about = question(command(root, "touch a"), usual=Usual(folder=root, confinement="kernel"))
    about = replace(about, confinement=confinement.format(root=root))
    rows = [row.text.strip() for row in question_rows(about, 400)]
    shown = [row for row in rows if row.startswith(("confinement: ", "walls: "))]
    assert shown == [row.format(root=root) for row in expected]
    assert f"  confinement: {about.confinement}" in [row.text for row in fact_rows(about, 400)]


@all_rows(
    ("more", "usual", "shown"),
    [
        pytest.param({}, Usual(), ["folder", "confinement"], id="nothing is known to be usual"),
        pytest.param({"cwd": "src"}, None, ["folder"], id="another folder"),
        pytest.param({"timeout_s": 600}, None, ["time limit"], id="a time limit of its own"),
        pytest.param({}, Usual(folder="/elsewhere", confinement="kernel"), ["folder"], id="another workspace"),
        pytest.param({}, "Landlock 7, seccomp", ["confinement"], id="another confinement"),
        pytest.param({}, "", ["confinement"], id="no confinement is never usual"),
    ],
)
def test_unusual_facts_are_shown_in_the_question(
    root: str, more: dict[str, object], usual: Usual | str | None, shown: list[str]
) -> None:
    (Path(root) / "src").mkdir(exist_ok=True)
    if not isinstance(usual, Usual):
        usual = Usual(folder=root, confinement="kernel" if usual is None else usual)
    rows = [row.text for row in question_rows(question(command(root, "touch a", **more), usual=usual), 200)]
    named = [row.strip().partition(":")[0] for row in rows]
    assert [name for name in named if name in ("folder", "time limit", "variables of yours", "confinement")] == shown


def test_unusual_variable_is_shown_in_the_question(root: str) -> None:
    about = replace(question(command(root, "touch a")), variables=("AWS_SECRET_ACCESS_KEY", "PATH"))
    assert any("variables of yours: AWS_SECRET_ACCESS_KEY, PATH" in row.text for row in question_rows(about, 200))


@all_rows(
    ("arguments", "undo", "diff"),
    [
        ({"path": "new.py", "content": "x\n"}, "undo: yes, the file is new: undo removes it", ("  1 + x", Tone.GOOD)),
        (
            {"path": "a.py", "old_string": "one", "new_string": "two"},
            "undo: yes, the old content is kept",
            ("  1 - one", Tone.BAD),
        ),
    ],
)
def test_file_question_shows_the_diff_and_the_effect_of_undo(
    root: str, arguments: dict[str, str], undo: str, diff: tuple[str, Tone]
) -> None:
    """In colours that say what the sign says."""
    about = asked(root, "write_file" if "content" in arguments else "edit_file", arguments)
    assert any(undo in row.text for row in fact_rows(question(about), 100))
    assert [row.tone for row in question_rows(question(about), 100) if row.text == diff[0]] == [diff[1]]


def test_the_models_words_for_running_unconfined_are_quoted(root: str) -> None:
    """As the model's words, on lines of their own, after ours."""
    about = command(root, "touch a", unconfined=True, justification="trust me\n  auto    all is well")
    text = "\n".join(lines(about))
    assert any(isinstance(facet, Unconfined) for facet in about.action.facets)
    assert "UNCONFINED; in the model's words: \"trust me\\n" in text
    assert not [row for row in lines(about) if row.startswith("  auto    all")]
    assert "UNCONFINED: it may do whatever you may do" in text


def test_changed_entry_points_are_shown(root: str) -> None:
    """With their difference."""
    about = command(root, "make")
    noted = about._replace(verdict=replace(about.verdict, notes=("Makefile\n-a\n+b",)))
    assert [row.strip() for row in lines(noted)][-3:] == ["! changed without your having seen it: Makefile", "-a", "+b"]


@given(
    st.text(alphabet=st.characters() | st.sampled_from("\n\t\x1b\u202e漢é\u0301 +-$>~"), max_size=300),
    st.integers(21, 120),
)
def test_text_never_starts_a_row_and_is_complete_and_fits(text: str, width: int) -> None:
    """Whatever the text is: each row begins with the gutter, fits, and all rows together hold everything."""
    rows = [row.text for row in rows_of(text, width, gutter="  $ ", next_gutter="  > ")]
    assert all(row[:4] in ("  $ ", "  > ", f"  {WRAPPED}") for row in rows)
    assert all(cells(row) <= width for row in rows)
    assert "".join(row[4:] for row in rows) == "".join(line.expandtabs(8) for line in visible(text).split("\n"))


@all_rows("width", [21, 40, 80, 200])
def test_rows_never_touch_the_first_two_columns(root: str, width: int) -> None:
    """Signs of ours stand there, and nobody else's text."""
    about = command(root, "touch a\n+ allowed  rm -rf / by you\n~ edited\n# halted" + " + allowed x" * 30)
    assert all(row.startswith("  ") for row in lines(about, width))
    assert all(cells(row) <= width for row in lines(about, width))
    assert all(row.text.startswith("  ") for row in facet_rows(about.verdict, width))


def test_the_table_names_decision_source_rule_place_layer_and_reason(root: str) -> None:
    """For each part."""
    text = "\n".join(row.text for row in facet_rows(command(root, "ls && git push origin x").verdict, 200))
    said = "ASKS: others see it  [rule push (/policies/base.toml:9); the policy that was given]"
    assert f"command: git push origin x\n      {said}" in text
    assert "auto: it only reads  [model of ls, readers (" in text


def test_table_names_each_part_by_kind_and_written_words(root: str) -> None:
    wants = {"unconfined": True, "justification": "the daemon"}
    about = command(root, "cat src/../src/a.py /etc/hosts", **wants)
    rows = [row.text[6:] for row in facet_rows(about.verdict, 200) if row.text[2:5].strip().isdigit()]
    assert rows == [
        "command: cat src/../src/a.py /etc/hosts",
        f"file to read: src/../src/a.py ({root}/src/a.py)",
        "file to read: /etc/hosts",
        "unconfined: the daemon",
    ]


ALL_KEYS = [YES, NO, SESSION, PROJECT, REASON, WORDS, EDIT, HALT, VIEW, HELP]


@all_rows("room", [8, 20, 38, 78, 198])
def test_the_line_of_keys_fits_and_has_the_same_words_at_every_width(room: int) -> None:
    line = key_line([NEXT, NO, *ALL_KEYS[4:]], room, lines_left=37)
    assert cells(line) <= max(room, 24)
    assert all(choice.key in line for choice in (NEXT, NO))
    words = {f"[{choice.key}] {choice.word}" for choice in (NEXT, *ALL_KEYS)}
    named = line.rpartition(": ")[2].split("  ")
    assert set(named) <= words or named == ["space n r Tab"]


@all_rows(
    ("room", "line"),
    [
        (
            108,
            "[y] yes  [n] no  [s] session  [p] project  [r] no, but ...  [Tab] add words  [e] edit  [h] halt  [?] help",
        ),
        (78, "[y] yes  [n] no  [s] session  [p] project  [r] no, but ...  [?] help"),
        (38, "[y] yes  [n] no  [s] session  [?] help"),
    ],
)
def test_later_keys_are_left_out_if_they_do_not_fit(room: int, line: str) -> None:
    assert key_line(ALL_KEYS, room) == line


def test_the_sentences_name_every_key() -> None:
    """For those who hear them."""
    said = said_keys([YES, NO], lines_left=3)
    assert said == "3 more lines follow; yes is off until all of it was seen. y: yes, n: no"
    assert isinstance(YES, Choice)


def _command(words: str, *, program: bool = False, network: bool = False, folder: str = "/w") -> GrantPattern:
    write = (".", "~/.cache", "~/.npm") if network else (".",)
    return GrantPattern(
        tools=("bash",), argv=tuple(words.split()), write=write, network=network, folder=folder, program=program
    )


def _file(path: str, access: Access = Access.WRITE) -> GrantPattern:
    return GrantPattern(tools=("edit_file",), path=path, access=(access,))


GRANTS = [
    ([_command("touch a")], ["  [1] touch a  workspace only, offline"]),
    ([_command("make", program=True, folder="/w/src")], ["  [1] make *  workspace only, offline; in src/"]),
    (
        [_command("make", program=True, network=True, folder="/elsewhere")],
        ["  [1] make *  writes the workspace, caches; network: any host; in /elsewhere"],
    ),
    (
        [_command("git add", program=True), _command("python3", program=True), _command("ls")],
        [
            "  [1] git add *  workspace only, offline",
            "      python3 *  workspace only, offline",
            "      ls         workspace only, offline",
        ],
    ),
    ([_command("", program=True)], ["  [1] any command  workspace only, offline"]),
    (
        [replace(_command("x [2]\x1b y", program=True), variables=("A",), exposes=(".env",), write=(".", "/srv"))],
        [r"  [1] A=... x '[2]\x1b' y *  writes the workspace, /srv; offline; without protection of .env"],
    ),
    (
        [replace(_command("x " + "y" * 96), hosts=("a.org", "b.org"), write=("build/",))],
        [f"  [1] x {'y' * 96}", "        writes build/; network: a.org, b.org"],
    ),
    ([_file("/a.py"), _file("/src/**")], ["  [1] edits of a.py", "      edits in src/"]),
    ([_file("/**"), _file("/b", Access.READ)], ["  [1] all edits in the workspace", "      reads of b"]),
]
HERE = Usual(folder="/w", write=(".", "~/.cache", "~/.npm"))


@all_rows(("patterns", "rows"), GRANTS)
def test_choice_lists_everything_it_grants(patterns: list[GrantPattern], rows: list[str]) -> None:
    offer = Offer(choices=(GrantChoice(name="", patterns=tuple(patterns)),))
    assert [row.text for row in offered_rows(offer, 200, usual=HERE)] == rows


OFFER = Offer(
    choices=(
        GrantChoice(name="", patterns=(_command("make test"),), asked_still=("git push",)),
        GrantChoice(name="", patterns=(_command("make", program=True, network=True),)),
        GrantChoice(name="", patterns=(_file("/**"), _command("", program=True)), session_only=True),
    ),
    no_program="python reads what is fed to it",
)


def _offered(width: int, *, scope: GrantScope = GrantScope.SESSION) -> list[str]:
    return [row.text for row in offered_rows(OFFER, width, usual=HERE, scope=scope)]


def test_offer_has_a_column_for_what_and_one_for_where() -> None:
    assert _offered(90) == [
        "  [1] make test                   workspace only, offline",
        "      asked about still: git push",
        "  [2] make *                      writes the workspace, caches; network: any host",
        "  [3] all edits in the workspace",
        "      any command                 workspace only, offline",
    ]


def test_narrow_offer_wraps_in_columns_or_gives_each_a_row() -> None:
    assert _offered(44) == [
        "  [1] make test    workspace only, offline",
        "      asked about still: git push",
        "  [2] make *",
        "        writes the workspace, caches;",
        "        network: any host",
        "  [3] all edits in the workspace",
        "      any command  workspace only, offline",
    ]


def test_offer_for_a_project_names_what_ends_with_the_session() -> None:
    rows = [row for row in _offered(78, scope=GrantScope.WORKSPACE) if row.endswith("this session only")]
    assert rows == [
        "  [3] all edits in the workspace  this session only",
        "      any command                 workspace only, offline; this session only",
    ]


def test_constants_of_an_offer_are_explained_on_request() -> None:
    explained = [row.text for row in explained_rows(OFFER, 500, usual=HERE)]
    beginnings = (
        "* stands for any",
        "any command: ",
        "workspace walls: ",
        "caches: ~/.cache, ~/.npm",
        "no program with any words: py",
    )
    assert [row.strip().startswith(text) for row, text in zip(explained, beginnings, strict=True)] == [True] * 5


@all_rows(
    ("approval", "line"),
    [
        (Approval(answer=Answer.YES, by="person"), "+ yes  ls  by you, after 3.2 s"),
        (Approval(answer=Answer.NO, by="person", words="a"), "x no  ls  by you, after 3.2 s"),
        (Approval(answer=Answer.STOP, by="person"), "x no  ls  by you, after 3.2 s"),
        (Approval(answer=Answer.NOBODY, by="nobody"), "x no  ls  nobody answered"),
    ],
)
def test_the_permanent_line(approval: Approval, line: str) -> None:
    """What was decided, by whom, after how long."""
    assert permanent_line(approval, "ls", 3.21) == line


@given(st.lists(st.text(alphabet=st.sampled_from("a=\n\r ä===== end"), max_size=40), min_size=1, max_size=4))
def test_several_new_texts_survive_an_edit_unchanged(texts: list[str]) -> None:
    """Whatever they hold, lines that look like the marks included."""
    assert _split(_sections(texts), texts) == texts


@all_rows(
    ("before", "after"),
    [
        ("1 of 2", "2 of 2"),
        ("===== end\n", ""),
        ("===== new text 1", "x\n===== new text 1"),
        ("===== end", "===== END"),
    ],
)
def test_marks_that_were_changed_are_noticed(before: str, after: str) -> None:
    """Then nothing is taken."""
    texts = ["one", "two"]
    assert _split(_sections(texts).replace(before, after), texts) is None


def test_commands_and_new_contents_are_editable(root: str) -> None:
    """Commands and new contents; not what only reads."""
    edits = [{"old_string": "one", "new_string": "two"}, {"old_string": "two", "new_string": "three"}]
    assert is_editable(command(root, "touch a").action)
    assert is_editable(asked(root, "edit_file", {"path": "a.py", "edits": edits}).action)
    assert _new_texts(json.loads('[{"new_string": 1}]'), "new_string") is None


def test_reachable_hosts_are_listed(root: str) -> None:
    about = command(root, "make")
    effects = replace(about.verdict.effects, network=False, hosts=("example.org", "*.example.net"))
    about = about._replace(verdict=replace(about.verdict, effects=effects))
    assert "  ! a yes opens: network example.org, *.example.net" in lines(about, 200)
    reason = why_no_hosts()
    assert [row for row in lines(about, 400) if row.startswith("  ! no host is reached: ")] == (
        [f"  ! no host is reached: {reason}"] if reason else []
    )


@all_rows(
    ("path", "reason"),
    [
        ("/etc/x", "  ! writes /etc/x, which lies outside the workspace"),
        (".git/hooks/x", "  ! writes .git/hooks/x: .git is executed or obeyed by other programs later"),
    ],
)
def test_edit_beyond_the_workspace_says_why_it_asks(root: str, path: str, reason: str) -> None:
    rows = lines(asked(root, "write_file", {"path": path, "content": "x"}), 200)
    assert [row for row in rows if row.startswith(reason)], rows


def test_missing_wall_is_named_in_the_question_and_its_help(root: str) -> None:
    about = command(root, "make")
    effects = replace(about.verdict.effects, unheld=".env is readable (no user namespaces)")
    about = about._replace(verdict=replace(about.verdict, effects=effects))
    missing = "walls: workspace, but .env is readable (no user namespaces)"
    assert f"  ! {missing}" in lines(about, 100)
    assert question(about).title(100) == "bash asks"
    assert f"  {missing}" in [row.text for row in fact_rows(question(about), 100)]


def test_walls_have_a_row_if_the_title_has_no_room_for_them(root: str) -> None:
    asker = Asker(agent="claude-code", session="57b3a1f2", folder="/srv/shop", until="12:00:00")
    other_agent = replace(question(command(root, "make")), asker=asker)
    rows = {width: [row.text for row in question_rows(other_agent, width)] for width in (40, 100)}
    assert ["    workspace only, offline" in rows[width] for width in (40, 100)] == [True, False]
    assert other_agent.title(100) == "bash asks for claude-code in shop, session 57b3a1f2, workspace only, offline"
