"""Pictures from the file to the wire: the real program, the real client, a scripted server on loopback."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from picture_files import SECRET, png
from program import made_program

from harness.app.repl.attached_files import mentioned
from harness.log.attachments import KeptAttachments
from harness.models.scripted import Failure, Reply, call, replies
from harness.models.sight import takes_images
from harness.terminal.pasted_path import pasted_mention
from policies import AUTO

if TYPE_CHECKING:
    from program import Program

CLEAN = png()
DIGEST = hashlib.sha256(CLEAN).hexdigest()
ADDRESS = f"data:image/png;base64,{base64.b64encode(CLEAN).decode()}"
PICTURE = {"sha256": DIGEST, "media_type": "image/png", "width": 3, "height": 2, "size": len(CLEAN)}
READ = Reply(calls=(call("read_file", path="shot.png"),))
DONE = Reply(text="A grey box.")

program = pytest.fixture(made_program, name="program")


def configured(program: Program, text: str = "pictures = true") -> None:
    folder = Path(program.environment["XDG_CONFIG_HOME"], "harness")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text)


def asked(program: Program, *replies_: Reply | Failure, prompt: str = "Look", more: tuple[str, ...] = ()) -> list[str]:
    """Run a prompt, and return the bodies of its requests as JSON."""
    (program.workspace / "shot.png").write_bytes(png(metadata=True))
    policy = program.home / "policy.toml"
    policy.write_text(AUTO)
    url = program.serve(replies(*replies_))
    done = program.run("run", prompt, "--base-url", url, "--policy", str(policy), *more)
    assert (done.code, done.out) == (0, "A grey box.\n"), done
    return [json.dumps(one) for one in program.players[-1].requests]


def kept(program: Program) -> list[Path]:
    return sorted(program.state.glob("harness/sessions/**/*.pictures/*"))


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_picture_that_was_read_is_sent_and_kept_beside_the_log(program: Program, api: str) -> None:
    configured(program)
    _, second = asked(program, READ, DONE, more=("--api", api))
    assert second.count(ADDRESS) == 1
    assert base64.b64encode(SECRET).decode()[4:-4] not in second
    (file,) = kept(program)
    assert (file.name, file.read_bytes()) == (DIGEST, CLEAN)
    assert [stat.S_IMODE(one.stat().st_mode) for one in (file, file.parent)] == [0o600, 0o700]
    (outcome,) = [one for one in program.records() if one["kind"] == "outcome"]
    assert outcome["pictures"] == [PICTURE]
    assert "PNG picture, 3 x 2 pixels" in str(outcome["content"])
    program.said("audit", "verify", str(program.logs()[0]))


def test_a_model_that_is_not_known_to_see_gets_text_that_names_the_setting(program: Program) -> None:
    _, second = asked(program, READ, DONE)
    assert "not known to take pictures here; where it does, `pictures = true`" in second
    assert "image_url" not in second
    assert kept(program) == []


def test_in_chat_completions_pictures_follow_the_results_of_a_reply(program: Program) -> None:
    configured(program)
    (program.workspace / "b.txt").write_text("words\n")
    both = Reply(calls=(call("read_file", path="shot.png"), call("read_file", path="b.txt")))
    _, second = asked(program, both, DONE)
    roles = [one["role"] for one in json.loads(second)["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
    last = json.loads(second)["messages"][-1]["content"]
    assert [part["type"] for part in last] == ["text", "image_url"]
    assert last[0]["text"].startswith("[Not from the person")


@pytest.mark.parametrize("gone", [False, True])
def test_resumed_session_has_its_pictures_or_a_notice(program: Program, *, gone: bool) -> None:
    configured(program)
    asked(program, READ, DONE)
    session = program.records()[0]["session"]
    if gone:
        kept(program)[0].write_bytes(b"another")
    (again,) = asked(program, DONE, more=("--resume", str(session)))
    assert (ADDRESS in again) is not gone
    assert ("a picture stood here: image/png, 3 x 2 pixels" in again) is gone


def test_calls_cannot_read_or_write_kept_pictures(program: Program) -> None:
    configured(program)
    (program.workspace / "shot.png").write_bytes(CLEAN)
    policy, log = program.home / "policy.toml", program.home / "run.jsonl"
    policy.write_text(AUTO)
    there = f"{log}.pictures/{DIGEST}"
    url = program.serve(
        replies(
            READ,
            Reply(calls=(call("bash", command=f"cat {shlex.quote(there)} | wc -c"),)),
            Reply(calls=(call("write_file", path=there, content="x"),)),
        )
    )
    done = program.run("run", "go", "--base-url", url, "--policy", str(policy), "--log", str(log))
    records = [json.loads(line) for line in log.read_text().splitlines()]
    outcomes = [one for one in records if one["kind"] == "outcome"]
    assert done.code == 3
    assert outcomes[1]["status"] == "denied"
    assert outcomes[2]["status"] == "blocked"
    assert Path(there).read_bytes() == CLEAN


def test_picture_named_in_the_prompt_is_sent_with_it(program: Program) -> None:
    configured(program)
    (first,) = asked(program, DONE, prompt="What is on @shot.png? And @none.png, or me@shot.png?")
    assert [part["type"] for part in json.loads(first)["messages"][1]["content"]] == ["text", "image_url"]
    (said,) = [one for one in program.records() if one["kind"] == "user_message"]
    assert said["pictures"] == [PICTURE]
    program.said("audit", "verify", str(program.logs()[0]))


def test_a_mentioned_picture_that_a_rule_forbids_is_not_read(program: Program) -> None:
    configured(program)
    (program.workspace / "shot.png").write_bytes(CLEAN)
    policy = program.home / "policy.toml"
    rule = '[[rule]]\nid = "no"\ndecision = "deny"\naccess = ["read"]\npath = ["*.png"]\nreason = "Not this."\n'
    policy.write_text(f"{AUTO}\n{rule}")
    url = program.serve(replies(DONE))
    done = program.run("run", "See @shot.png", "--base-url", url, "--policy", str(policy))
    assert (done.code, "@shot.png is not attached" in done.err, "Not this." in done.err) == (0, True, True)
    assert ADDRESS not in json.dumps(program.players[-1].requests)
    assert kept(program) == []


MENTIONS = {
    "see @a.png": ("a.png",),
    "@a.PNG, (@b/c.jpeg) and @d.webp.": ("a.PNG", "b/c.jpeg", "d.webp"),
    '@"my shot.gif" twice @"my shot.gif"': ("my shot.gif",),
    "me@a.png @a.pngx @a.png/b @readme.md": (),
    '@"broken\\q.png"': (),
    "": (),
}


@pytest.mark.parametrize("words", MENTIONS)
def test_pictures_mentioned_in_a_prompt_are_found(words: str) -> None:
    assert mentioned(words) == MENTIONS[words]


PASTES = {
    "/tmp/a.png": "@/tmp/a.png ",
    "'/tmp/my shot.png'": '@"/tmp/my shot.png" ',
    "/tmp/my shot.png": '@"/tmp/my shot.png" ',
    "/tmp/my\\ shot.jpg\n": '@"/tmp/my shot.jpg" ',
    "file:///tmp/my%20shot.webp": '@"/tmp/my shot.webp" ',
    "'/tmp/it'\\''s.png'": '@"/tmp/it\'s.png" ',
    "/tmp/it's.png": '@"/tmp/it\'s.png" ',
    "/tmp/a.png /tmp/b.png ": "@/tmp/a.png @/tmp/b.png ",
    "'/tmp/my shot.png' '/tmp/b.png'": '@"/tmp/my shot.png" @/tmp/b.png ',
    "/tmp/my\\ shot.png /tmp/b.png": '@"/tmp/my shot.png" @/tmp/b.png ',
    "/tmp/my shot.png\r\n/tmp/b.png\n": '@"/tmp/my shot.png" @/tmp/b.png ',
    "file:///tmp/a.png\nfile:///tmp/b%20b.gif\n": '@/tmp/a.png @"/tmp/b b.gif" ',
    "/tmp/a.png '/tmp/my words.txt'": "@/tmp/a.png '/tmp/my words.txt' ",
    "/tmp/b.txt /tmp/c.txt": "/tmp/b.txt /tmp/c.txt",
    "a.png": "a.png",
    "see /tmp/a.png": "see /tmp/a.png",
    "/tmp/a.png\nis what I see": "/tmp/a.png\nis what I see",
    "/tmp/a.png\n" * 51: "/tmp/a.png\n" * 51,
    "": "",
}


@pytest.mark.parametrize("text", PASTES)
def test_pasted_paths_of_pictures_become_mentions(text: str) -> None:
    assert pasted_mention(text, lambda _: True) == PASTES[text]
    assert pasted_mention(text, lambda _: False) == text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("/w/src/a.py ", "@src/a.py "),
        ("'/w/my notes.txt'", '@"my notes.txt" '),
        ("file:///w/a%20b.md", '@"a b.md" '),
        ("/w/shot.png", "@shot.png "),
        ("/etc/hosts", "/etc/hosts"),
        ("file:///etc/my%20hosts", "'/etc/my hosts' "),
        ("/w/a.py /etc/hosts", "@a.py /etc/hosts "),
        ("/wide/a.py", "/wide/a.py"),
        ("file:///", "file:///"),
    ],
)
def test_dropped_file_of_the_workspace_becomes_a_mention(text: str, line: str) -> None:
    assert pasted_mention(text, lambda path: path != "/", root="/w") == line


def test_all_that_is_pasted_must_be_there() -> None:
    assert pasted_mention("/tmp/a.png /tmp/b.png", "/tmp/a.png".__eq__) == "/tmp/a.png /tmp/b.png"


REFUSED = Failure(
    status=404, body=json.dumps({"error": {"message": "No endpoints found that support image input", "code": 404}})
)


def test_session_continues_without_a_refused_picture_and_so_does_its_copy(
    program: Program,
) -> None:
    configured(program)
    _, refused, again = asked(program, READ, REFUSED, DONE)
    (told,) = [one for one in program.records() if one["kind"] == "error"]
    assert (ADDRESS in refused, ADDRESS in again, "a picture stood here" in again) == (True, False, True)
    assert "takes no pictures" in str(told)
    assert "`pictures = false` says so beforehand" in str(told)
    session = str(program.records()[0]["session"])
    refused, again = asked(program, REFUSED, DONE, more=("--resume", session), prompt="Go on without it")
    assert (ADDRESS in refused, ADDRESS in again) == (True, False)


def test_resumed_session_without_pictures_continues_with_text(program: Program) -> None:
    configured(program)
    asked(program, READ, DONE)
    session = program.records()[0]["session"]
    configured(program, "pictures = false")
    (again,) = asked(program, DONE, more=("--resume", str(session)))
    assert "image_url" not in again
    assert [one["role"] for one in json.loads(again)["messages"]][:4] == ["system", "user", "assistant", "tool"]
    assert "this model is not sent pictures" in again


SIGHT = {
    ("openai", "gpt-5"): True,
    ("openai", "o3-mini"): False,
    ("anthropic", "claude-sonnet-4-5"): True,
    ("openrouter", "deepseek/deepseek-chat"): False,
    ("ollama", "qwen3"): False,
    ("", "gpt-5"): False,
}


@pytest.mark.parametrize(("preset", "model"), SIGHT)
def test_known_models_accept_pictures(preset: str, model: str) -> None:
    assert takes_images(preset, model) is SIGHT[preset, model]


def test_pruning_a_log_removes_its_pictures(tmp_path: Path) -> None:
    pictures = KeptAttachments(str(tmp_path / "a.jsonl"))
    pictures.keep(CLEAN, "image/png", 3, 2)
    (Path(pictures.folder) / "mine.txt").write_text("x")
    pictures.remove()
    assert [one.name for one in Path(pictures.folder).iterdir()] == ["mine.txt"]


def test_link_in_place_of_a_kept_picture_is_not_followed(tmp_path: Path) -> None:
    pictures = KeptAttachments(str(tmp_path / "a.jsonl"))
    pictures.keep(CLEAN, "image/png", 3, 2)
    file = Path(pictures.folder, DIGEST)
    (tmp_path / "elsewhere").write_bytes(CLEAN)
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    assert pictures.bytes_of(DIGEST) is None
    assert pictures.bytes_of("../a.jsonl") is None
