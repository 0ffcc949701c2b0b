"""`harness models` by the real program: what a server offers, what a person's own table says, and where it is used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fault_server import Answer, End, FaultServer, Send
from picture_files import png
from program import made_program
from rows import all_rows
from wire_contract import MESSAGES, stream

from harness.errors import UsageError
from harness.messages import Usage
from harness.models.scripted import Reply, call, replies
from harness.session.config.model_table import MOST_BYTES, parse_table

if TYPE_CHECKING:
    from program import Program

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
TABLE = """\
date = 2026-11-01
source = "https://example.org/prices"
[models."big/one"]
context = 200_000
max_output = 64_000
input = 1.5
cached_input = 0.15
cache_write = 2
output = 6
[models.small]
date = "2026-10-02"
source = "the team's own measurement"
context = 8000
"""
ROWS = [
    {
        "id": "wide",
        "context_length": 131_072,
        "top_provider": {"max_completion_tokens": 8192},
        "pricing": {
            "prompt": "0.0000015",
            "completion": "0.000006",
            "input_cache_read": "0.00000015",
            "input_cache_write": "0.000002",
        },
        "architecture": {"input_modalities": ["text", "image"]},
    },
    {"id": "claude", "max_input_tokens": 1000, "max_tokens": 5, "capabilities": {"image_input": {"supported": False}}},
    {"id": "big/one", "max_model_len": 4096},
    {"id": "llama", "meta": {"vocab_type": 2, "n_ctx": 2048, "n_ctx_train": 131_072}},
    {"id": "untold", "meta": {"n_ctx_train": 131_072}},
    {"id": "odd", "context_length": -1, "max_tokens": True, "pricing": {"prompt": "nan", "completion": 3}},
    {"id": "worse", "context_length": "9" * 99, "top_provider": 3, "pricing": {"prompt": "-1", "completion": "1e400"}},
    {"id": "esc\x1b[2J", "context_length": 5},
]


def answered(rows: object) -> Answer:
    body = json.dumps({"data": rows}).encode()
    return Answer(steps=(Send(data=HEAD % len(body) + body), End.CLOSE))


def keep(program: Program, text: str = TABLE) -> str:
    path = program.workspace / "table.toml"
    path.write_text(text)
    return program.said("models", "update", str(path))


def listed(program: Program, *words: str, code: int = 0) -> dict[str, dict[str, object]]:
    """Return by model what is known: figure, and value with origin."""
    done = program.run("models", "--json", *words)
    assert done.code == code, done.err
    return {row["model"]: row for row in json.loads(done.out)["models"]}


def values(row: dict[str, object]) -> dict[str, object]:
    return {name: figure["value"] for name, figure in row.items() if isinstance(figure, dict)}


def test_values_of_the_server_are_shown_with_their_origin(program: Program) -> None:
    with FaultServer([answered(ROWS)]) as server:
        found = listed(program, "--base-url", server.url, "--model", "mine")
    assert values(found["wide"]) == {
        "context": 131_072, "max_output": 8192, "pictures": True, "input": 1.5,
        "cached_input": 0.15, "cache_write": 2.0, "output": 6.0,
    }  # fmt: skip
    assert values(found["claude"]) == {"context": 1000, "max_output": 5, "pictures": False}
    assert values(found["big/one"]) == {"context": 4096}
    assert (values(found["llama"]), values(found["untold"])) == ({"context": 2048}, {})
    assert (values(found["odd"]), values(found["worse"]), values(found["mine"])) == ({}, {}, {})
    assert (found["wide"]["offered"], found["mine"]["offered"]) == (True, False)
    assert all("\x1b" not in name for name in found)


def test_model_table_overrides_the_server_and_configuration_overrides_both(program: Program) -> None:
    assert "knows 2 models now: 2 new, 0 changed, 0 gone" in keep(program)
    config = Path(program.environment["XDG_CONFIG_HOME"]) / "harness" / "config.toml"
    config.write_text("context_tokens = 7000\n[prices.small]\ninput = 9\noutput = 10\n")
    config.chmod(0o600)
    with FaultServer([answered(ROWS)]) as server:
        found = listed(program, "--base-url", server.url, "--model", "small")
    assert found["big/one"]["context"] == {
        "value": 200_000,
        "origin": f"{config.parent}/models.toml of 2026-11-01",
        "date": "2026-11-01",
        "source": "https://example.org/prices",
    }
    assert values(found["small"]) == {"context": 7000, "input": 9.0, "output": 10.0}
    settings = json.loads(program.said("config", "show", "--json", "--model", "big/one"))["settings"]
    assert settings["context_tokens"]["value"] == 7000
    config.write_text('[models.mine]\nmodel = "big/one"\ncontext_tokens = 6000\npictures = true\n')
    found = listed(program, "--model", "mine", code=2)
    assert values(found["big/one"]) == {
        "context": 6000, "max_output": 64_000, "pictures": True, "input": 1.5,
        "cached_input": 0.15, "cache_write": 2.0, "output": 6.0,
    }  # fmt: skip


def test_the_table_is_used_for_the_cost_and_the_length_of_a_conversation(program: Program) -> None:
    keep(program)
    paid = Reply(text="Done.", usage=Usage(input_tokens=1_000_000, output_tokens=1_000_000))
    url = program.serve(replies(paid, paid))
    known = program.run("run", "go", "--base-url", url, "--model", "big/one", "--output", "json", "--max-cost", "100")
    assert json.loads(known.out)["cost"] == 7.5, known.err
    unknown = program.run("run", "go", "--base-url", url, "--model", "small", "--max-cost", "100")
    assert (unknown.code, "needs the prices of 'small'" in unknown.err) == (2, True)
    shown = json.loads(program.said("config", "show", "--json", "--model", "small"))["settings"]["context_tokens"]
    assert (shown["value"], shown["origin"].endswith("models.toml of 2026-10-02")) == (8000, True)


@all_rows(
    "said, sent, sees",
    [
        ("pictures = true\nmax_output = 8192", 8192, "3 x 2 pixels"),
        ("pictures = false\nmax_output = 64_000", 32_000, "pictures = false ("),
        ("context = 9000", 32_000, "not known to take pictures here"),
    ],
    anew={"program": made_program},
)
def test_the_table_is_used_for_sight_and_the_length_of_a_reply(
    program: Program, said: str, sent: int, sees: str
) -> None:
    keep(program, f'date = 2026-11-01\nsource = "x"\n[models.m]\n{said}\n')
    (program.workspace / "shot.png").write_bytes(png())
    url = program.serve(replies(Reply(calls=(call("read_file", path="shot.png"),)), Reply(text="Done.")))
    assert program.run("run", "go", "--base-url", url, "--model", "m").code == 0
    assert sees in json.dumps(program.players[-1].requests[1]["messages"])
    with FaultServer([stream(MESSAGES.start(), MESSAGES.text("Done."), MESSAGES.end())] * 2) as server:
        words = ("run", "go", "--base-url", server.url, "--api", "messages", "--model", "m")
        assert (program.run(*words).code, program.run(*words, "--set", "max_output_tokens=50000").code) == (0, 0)
        assert [request.json["max_tokens"] for request in server.requests] == [sent, 50_000]


def test_known_models_are_shown_without_a_list(program: Program) -> None:
    keep(program)
    with FaultServer(
        [Answer(steps=(Send(data=b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}"), End.CLOSE))]
    ) as it:
        found = listed(program, "--base-url", it.url, "--model", "mine", code=6)
    assert set(found) == {"big/one", "small", "mine"}
    done = program.run("models")  # no key
    assert (done.code, "no list of the provider's models: no model to talk to" in done.err) == (2, True)
    assert "https://example.org/prices 2026-11-01" in done.out


@all_rows("columns", [40, 80, 120], anew={"program": made_program})
def test_the_table_fits_a_terminal(program: Program, columns: int) -> None:
    keep(program)
    code, shown = program.at_terminal("models", columns=columns, NO_COLOR="1")
    assert (code, "200,000" in shown) == (2, True)
    assert max(map(len, shown.split("harness: ")[0].splitlines())) <= columns


@all_rows(
    ("text", "told"),
    [
        ("", "names no model"),
        ("date = 2026-01-01\n[models.a]\ncontext = 2000", "has no source"),
        ('source = "x"\n[models.a]\ncontext = 2000', "has no date"),
        ('date = "soon"\nsource = "x"\n[models.a]', "must be a day as YYYY-MM-DD"),
        ('date = 2026-01-01\nsource = "two\\nlines"\n[models.a]', "source"),
        ('date = 2026-01-01\nsource = "x"\n[models.a]\ncontext = true', "context"),
        ('date = 2026-01-01\nsource = "x"\n[models.a]\ncontext = 12', "context"),
        ('date = 2026-01-01\nsource = "x"\n[models.a]\ninput = 1', "both input and output"),
        ('date = 2026-01-01\nsource = "x"\n[models.a]\ncache_write = 1', "both input and output"),
        ('date = 2026-01-01\nsource = "x"\n[models.a]\ninput = nan\noutput = 1', "input"),
        ('date = 2026-01-01\nsource = "x"\n[models.a]\ninput = -1\noutput = 1', "input"),
        ('date = 2026-01-01\nsource = "x"\n[models.a]\nprice = 1', "unknown key"),
        ('date = 2026-01-01\nsource = "x"\napi_key = "k"\n[models.a]', "keys are never read from files"),
        ('date = 2026-01-01\nsource = "x"\n[models."a\\u001b[2J"]', "invalid model name"),
        ('date = 2026-01-01\nsource = "x"\nmodels = 3', "names no model"),
        ("models = [", "is not TOML"),
        ("#" * (MOST_BYTES + 1), "bytes"),
    ],
)
def test_a_table_that_is_not_understood_is_not_kept(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse_table(text.encode(), "table.toml")


def test_a_refused_table_leaves_the_one_before(program: Program) -> None:
    keep(program)
    kept = Path(program.environment["XDG_CONFIG_HOME"]) / "harness" / "models.toml"
    path = program.workspace / "bad.toml"
    path.write_text("[models.a]\nx = 1")
    done = program.run("models", "update", str(path))
    assert (done.code, kept.read_text(), kept.stat().st_mode & 0o777) == (2, TABLE, 0o600)
    assert program.run("models", "update", str(program.workspace)).code == 2
    assert "1 new, 0 changed, 2 gone" in keep(program, 'date = 2026-11-02\nsource = "x"\n[models.c]\ncontext = 9000\n')


def test_cost_limit_includes_cache_writes(program: Program) -> None:
    """1,000 tokens are written at 12.5 dollars a million, by Anthropic's own API; without that price they cost as others."""
    usage = Usage(input_tokens=1010, output_tokens=10, cache_write_tokens=1000)
    write = "[prices.m]\ninput = 10\noutput = 50\n"
    config = Path(program.environment["XDG_CONFIG_HOME"]) / "harness" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    for more, dollars in (("cache_write = 12.5\n", 0.0131), ("", 0.0106)):
        config.write_text(write + more)
        with FaultServer([stream(MESSAGES.start(), MESSAGES.text("Done."), MESSAGES.end(usage=usage))]) as server:
            words = ("--base-url", server.url, "--api", "messages", "--model", "m", "--max-cost", "1")
            done = program.run("run", "go", *words, "--output", "json")
        assert json.loads(done.out)["cost"] == pytest.approx(dollars), done.err
    records = [json.loads(line) for line in program.logs()[-1].read_text().splitlines()]
    (reply,) = [one for one in records if one["kind"] == "model_response"]
    assert (reply["input_tokens"], reply["cache_write_tokens"], reply["cost"]) == (1010, 1000, 0.0106)


def test_run_ends_with_its_cached_tokens(program: Program) -> None:
    """By the Responses API, whose scripted server counts cached tokens; where none are, there is no such line."""
    keep(program)
    reply = Reply(text="Done.", usage=Usage(input_tokens=1000, output_tokens=10, cached_tokens=900))
    words = (
        "--api",
        "responses",
        "--base-url",
        program.serve(replies(reply, Reply(text="Done."))),
        "--model",
        "big/one",
    )
    cached, plain = program.run("run", "go", *words), program.run("run", "go", *words)
    assert "  1,000 tokens in (900 of them cached, 90%), 10 out, 0.0003 dollars\n" in cached.err
    assert (plain.code, "of them cached" in plain.err) == (0, False)
