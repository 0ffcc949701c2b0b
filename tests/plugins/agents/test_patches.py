"""What is read of `apply_patch`, and which shell commands hold one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hook_scene import HookScene
from judged_world import OPEN
from rows import all_rows
from text_rows import text_rows
from work import lines_run

from harness.errors import ToolError
from harness.plugins.agents.patches import FilePatch, PatchKind, here_document, read_patch
from harness.policy.built_in import PROTECTED_NAMES

HERE = Path(__file__).parent
BEGIN, END = "*** Begin Patch", "*** End Patch"


def written(text: str) -> str:
    """Return a text of a table as it is meant."""
    return "" if text == "(empty)" else text.replace("\u23ce", "\n").replace("\u240d", "\r")


def patch_of(text: str) -> str:
    return "\n".join(re.sub(r"^(\s*)([BE])(\s*)$", _mark, line) for line in written(text).split("\n"))


def _mark(found: re.Match[str]) -> str:
    return found[1] + {"B": BEGIN, "E": END}[found[2]] + found[3]


def told(one: FilePatch) -> str:
    return f"move {one.path} -> {one.moved_to}" if one.moved_to else f"{one.kind.value} {one.path}"


def content(text: str) -> bytes | None:
    return None if text == "?" else written(text).encode()


@all_rows("row", text_rows(HERE / "patches.txt"), ids=lambda row: f"{row.place} {row.text[:60]!r}")
def test_a_patch_is_read_as_codex_reads_it_or_refused(row: tuple[str, str, list[str]]) -> None:
    _, text, answers = row
    patch = patch_of(text)
    if answers[0].startswith("refused: "):
        with pytest.raises(ToolError) as refused:
            read_patch(patch)
        assert answers[0].removeprefix("refused: ") in str(refused.value)
        return
    patches = read_patch(patch)
    forecasts = [answer.split(" => ") for answer in answers if " => " in answer]
    assert [told(one) for one in patches] == [answer for answer in answers if " => " not in answer]
    assert [patches[0].after(content(before)) for before, _ in forecasts] == [content(after) for _, after in forecasts]
    for one in patches:
        assert one.names == tuple(name for name in (one.path, one.moved_to) if name)
        assert one.removes is (one.kind is PatchKind.DELETE)


@all_rows("row", text_rows(HERE / "here_documents.txt"), ids=lambda row: f"{row.place} {row.text[:60]!r}")
def test_a_command_is_a_patch_only_where_codex_takes_it_for_one(row: tuple[str, str, list[str]]) -> None:
    _, text, answers = row
    found = here_document(written(text))
    if answers == ["plain"]:
        assert found is None
    else:
        folder, _, patch = answers[0].partition(": ")
        assert found == (written(patch), folder)


def test_forecast_cost_depends_on_the_patch_and_not_on_the_file() -> None:
    hunks = "".join("@@\n" + " a\n" * 300 + "-b\n" for _ in range(5))
    [patch] = read_patch(f"{BEGIN}\n*** Update File: f\n{hunks}{END}")
    patch.after(b"a\n" * 1_000)  # what is only done once is done now
    short, long = (lines_run(lambda size=size: patch.after(b"a\n" * size)) for size in (1_000, 200_000))  # type: ignore[misc]
    assert short == long


FORMS = (
    "*** Add File: {}\n+x",
    "*** Update File: {}\n@@\n-one\n+two",
    "*** Delete File: {}",
    "*** Update File: f.txt\n*** Move to: {}\n@@\n-one\n+two",
    "*** Add File: made.txt\n+x\n*** Delete File: {}",
)
"""What a patch can do to a file."""
NAMES = (
    *sorted(PROTECTED_NAMES),
    ".env",
    "secrets/key",
    "x.lock",
    "../outside",
    "/etc/passwd",
    "a/../.git/config",
)


@all_rows("name", NAMES)
def test_patch_is_refused_like_the_same_change_by_a_command(name: str, tmp_path: Path) -> None:
    """As a tool and as a here-document: nothing that is protected, forbidden or outside is written, moved or removed."""
    scene = HookScene(tmp_path, OPEN, agent="codex")
    (scene.workspace / "f.txt").write_text("one\n")
    for number, form in enumerate(FORMS):
        patch = f"*** Begin Patch\n{form.format(name)}\n*** End Patch\n"
        as_tool = scene.event("PreToolUse", "apply_patch", {"command": patch}, f"t{number}")
        as_text = scene.event("PreToolUse", "Bash", {"command": f"apply_patch <<'EOF'\n{patch}EOF\n"}, f"b{number}")
        assert (as_tool.code, as_text.code) == (2, 2), form


def test_patch_of_plain_files_runs_unasked_if_the_policy_allows(tmp_path: Path) -> None:
    """The table above says something only if this runs."""
    scene = HookScene(tmp_path, OPEN, agent="codex")
    (scene.workspace / "f.txt").write_text("one\n")
    patch = "*** Begin Patch\n*** Update File: f.txt\n@@\n-one\n+two\n*** Add File: made.txt\n+x\n*** End Patch\n"
    assert scene.event("PreToolUse", "apply_patch", {"command": patch}).code == 0
    (scene.workspace / "link").symlink_to(".env")
    through = patch.replace("f.txt", "link")  # what it leads to is written
    assert scene.event("PreToolUse", "apply_patch", {"command": through}, "c2").code == 2
