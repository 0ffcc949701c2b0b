"""Servers that others wrote, on the loopback: two mock servers from npm, the LiteLLM proxy, and both majors of openai.

HARNESS_PEERS names a folder in which they are, or are put: npm and pip fetch what is missing, nothing else does. Where
it is not set all of this is skipped, and says so.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from places import ROOT
from rows import all_rows
from wire_cases import Probe, Stage, check_road, do

from harness.errors import ModelError, ModelFault
from harness.messages import Message, ModelResponse, Role, StopReason, Usage
from harness.models.anthropic_messages import AnthropicMessages
from harness.models.endpoint import Deadlines, Endpoint, Quirks
from harness.models.loopback import ScriptServer
from harness.models.openai_chat import OpenAIChat
from harness.models.openai_responses import OpenAIResponses
from harness.models.openai_wire import OpenAIWire
from harness.models.presets import PRESETS, Api
from harness.models.scripted import Player, Reply, ScriptedAnswer, Turn, call, say
from harness.record import replace

FOLDER = os.environ.get("HARNESS_PEERS", "")
NPM_PEERS = ("@copilotkit/aimock@1.43.0", "openai-mock-api@0.4.0")
PIP_PEERS = {"litellm": ("litellm[proxy]==1.106.2",)}
MAJORS = ("openai==2.0.0", "openai>=3,<4")
START_SECONDS = 600

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(not FOLDER, reason="HARNESS_PEERS names no folder: no third-party peer is tried"),
]


def _npm(program: str) -> str:
    path = os.path.join(FOLDER, "node_modules", ".bin", program)
    if not os.path.exists(path):
        if shutil.which("npm") is None:
            pytest.skip("there is no npm on this machine")
        os.makedirs(FOLDER, exist_ok=True)
        command = ["npm", "install", "--prefix", FOLDER, "--no-fund", "--no-audit", "--ignore-scripts", *NPM_PEERS]
        subprocess.run(command, check=True, timeout=1200, capture_output=True)
    return path


def _venv(name: str, packages: Sequence[str]) -> str:
    """Return the Python of an environment that holds `packages`, made where it is not there."""
    python = os.path.join(FOLDER, name, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", os.path.join(FOLDER, name)], check=True, timeout=600)
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        subprocess.run(command, check=True, timeout=1200, capture_output=True)
    return python


@contextmanager
def _serving(command: Callable[[int], Sequence[str]], health: str, folder: Path) -> Iterator[str]:
    """Start a peer on a free port; yield its base URL when it answers at `health`."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with open(folder / "peer.log", "wb") as log:
        process = subprocess.Popen(
            command(port), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, start_new_session=True
        )
        try:
            _wait_for(f"http://127.0.0.1:{port}{health}", process, folder)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _wait_for(url: str, process: subprocess.Popen[bytes], folder: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=60):
                return
        except urllib.error.HTTPError as error:
            error.close()
            return  # it answers
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"the peer did not start: {(folder / 'peer.log').read_text()[-2000:]}")


def _endpoint(url: str, **more: object) -> Endpoint:
    deadlines = Deadlines(connect=600, first_event=600, idle=600, total=3600)
    return replace(Endpoint(base_url=url, api_key="test-key-0001", attempts=2, deadlines=deadlines), **more)


def _turn(url: str, folder: Path, *, api: Api = Api.CHAT, **more: object) -> Stage:
    """Run `go` through the whole loop: one call that runs, then `ok`."""
    stage = Stage(str(folder), _endpoint(url, **more), api=api)
    result = stage.agent.run("go", stage.session)
    stage.close(result)
    assert (result.stop, result.text, result.detail) == (StopReason.COMPLETED, "ok", "")
    assert [value for _, value in stage.reached] == [{"do": "a"}]
    check_road(stage, ["ok"])
    return stage


whole_and_streamed = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


# --- aimock --------------------------------------------------------------------------------------------------------


AIMOCK = {
    "fixtures": [
        {
            "match": {"userMessage": "go", "hasToolResult": False},
            "response": {"toolCalls": [{"id": "call_a1", "name": "work", "arguments": do("a")}]},
        },
        {"match": {"userMessage": "go", "hasToolResult": True}, "response": {"content": "ok"}},
        {
            "match": {"userMessage": "limited"},
            "response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429},
        },
        {"match": {"userMessage": "cut"}, "response": {"content": "a long text " * 30}, "truncateAfterChunks": 3},
    ]
}


@contextmanager
def _aimock(folder: Path, *more: str) -> Iterator[str]:
    program = _npm("llmock")
    (folder / "fixtures.json").write_text(json.dumps(AIMOCK))
    with _serving(
        lambda port: [program, "-p", str(port), "-f", str(folder / "fixtures.json"), "-c", "3", "--strict", *more],
        "/health",
        folder,
    ) as url:
        yield url


@pytest.mark.parametrize("api", [Api.CHAT, Api.MESSAGES], ids=lambda api: api.value)
@whole_and_streamed
def test_a_turn_with_aimock(stream: bool, api: Api, tmp_path: Path) -> None:
    with _aimock(tmp_path) as url:
        _turn(url, tmp_path, api=api, quirks=Quirks(stream=stream))


@whole_and_streamed
def test_a_reply_of_aimock_by_the_responses_api(stream: bool, tmp_path: Path) -> None:
    tools = (Probe("work", []).spec,)
    with _aimock(tmp_path) as url:
        model = OpenAIResponses("m1", _endpoint(url, quirks=Quirks(stream=stream)))
        history = [Message(role=Role.SYSTEM, content="be careful"), Message(role=Role.USER, content="go")]
        first = _ask(model, history, tools)
        assert [(call.name, json.loads(call.arguments)) for call in first.tool_calls] == [("work", {"do": "a"})]
        history.append(Message(role=Role.ASSISTANT, content=first.text, tool_calls=first.tool_calls, echo=first.echo))
        history.append(Message(role=Role.TOOL, content="did a", tool_call_id=first.tool_calls[0].id))
        assert _ask(model, history, tools).text == "ok"
        model.close()


def _ask(model: OpenAIResponses, history: list[Message], tools: Sequence[object]) -> ModelResponse:
    return model.complete(history, tools, on_text=lambda text: None, on_retry=lambda retry: None)  # type: ignore[arg-type]


@all_rows(
    ("prompt", "faults"),
    [
        pytest.param("limited", (ModelFault.SERVER,), id="a rate limit"),
        pytest.param("cut", (ModelFault.REPLY, ModelFault.CONNECTION), id="an answer that breaks off"),
    ],
)
def test_a_fault_of_aimock(prompt: str, faults: tuple[ModelFault, ...], tmp_path: Path) -> None:
    with _aimock(tmp_path) as url:
        stage = Stage(str(tmp_path), _endpoint(url))
        result = stage.agent.run(prompt, stage.session)
        stage.close(result)
    assert result.stop in (StopReason.MODEL_ERROR, StopReason.CUT)
    assert (stage.model.errors[-1].fault in faults, stage.reached) == (True, []), result.detail
    assert len(stage.records("error")) == 2  # tried twice


@all_rows("chaos", ["--chaos-drop", "--chaos-malformed", "--chaos-disconnect"])
def test_chaos_of_aimock(chaos: str, tmp_path: Path) -> None:
    """Every answer is spoilt: an end that is told, and nothing runs."""
    with _aimock(tmp_path, chaos, "1") as url:
        stage = Stage(str(tmp_path), _endpoint(url))
        result = stage.agent.run("go", stage.session)
        stage.close(result)
    assert (result.stop in (StopReason.MODEL_ERROR, StopReason.CUT), stage.reached) == (True, []), result
    assert result.detail


# --- openai-mock-api -----------------------------------------------------------------------------------------------


MOCK_API = """\
apiKey: 'test-key-0001'
port: 3000
responses:
  - id: 'call'
    messages:
      - {role: 'system', matcher: 'any'}
      - {role: 'user', content: 'go'}
      - role: 'assistant'
        tool_calls:
          - {id: 'call_a1', type: 'function', function: {name: 'work', arguments: '{"do": "a"}'}}
  - id: 'text'
    messages:
      - {role: 'system', matcher: 'any'}
      - {role: 'user', content: 'hello'}
      - {role: 'assistant', content: 'ok'}
"""


@whole_and_streamed
def test_replies_of_openai_mock_api(stream: bool, tmp_path: Path) -> None:
    program = _npm("openai-mock-api")
    (tmp_path / "config.yaml").write_text(MOCK_API)
    with _serving(
        lambda port: [program, "-c", str(tmp_path / "config.yaml"), "-p", str(port)], "/health", tmp_path
    ) as url:
        stage = Stage(str(tmp_path), _endpoint(url, quirks=Quirks(stream=stream)))
        history = [Message(role=Role.SYSTEM, content="be careful"), Message(role=Role.USER, content="hello")]
        text = stage.model.complete(history, stage.agent.registry.specs, on_text=stage.shown.append, on_retry=print)
        assert (text.text, "".join(stage.shown)) == ("ok", "ok")
        history[1] = Message(role=Role.USER, content="go")
        call = stage.model.complete(history, stage.agent.registry.specs, on_text=stage.shown.append, on_retry=print)
        assert [(made.name, json.loads(made.arguments)) for made in call.tool_calls] == [("work", {"do": "a"})]
        with pytest.raises(ModelError) as raised:
            _with_key(url, history)
        assert raised.value.fault is ModelFault.AUTHENTICATION


def _with_key(url: str, history: list[Message]) -> None:
    OpenAIChat("m1", _endpoint(url, api_key="wrong-key-0000")).complete(history, (), on_text=print, on_retry=print)


# --- LiteLLM -------------------------------------------------------------------------------------------------------


LITELLM = """\
model_list:
  - model_name: says
    litellm_params: {model: openai/mock, api_key: none, mock_response: "ok"}
  - model_name: m1
    litellm_params: {model: hosted_vllm/scripted, api_key: none, api_base: "ADDRESS"}
  - model_name: limited
    litellm_params: {model: openai/mock, api_key: none, mock_response: "litellm.RateLimitError"}
  - model_name: long
    litellm_params: {model: openai/mock, api_key: none, mock_response: "litellm.ContextWindowExceededError"}
general_settings: {master_key: test-key-0001}
litellm_settings: {num_retries: 0, telemetry: false}
"""


def _work_then_ok() -> Generator[ScriptedAnswer, Turn, None]:
    """Ask for one call, and say `ok` to its result, as often as a session begins."""
    while True:
        yield Reply(calls=(call("work", do="a"),))
        yield say("ok")


@pytest.fixture(scope="module")
def litellm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("litellm")
    program = os.path.join(os.path.dirname(_venv("litellm", PIP_PEERS["litellm"])), "litellm")
    with ScriptServer(Player(_work_then_ok)) as behind:
        (folder / "config.yaml").write_text(LITELLM.replace("ADDRESS", behind.base_url))
        with _serving(
            lambda port: [program, "--config", str(folder / "config.yaml"), "--port", str(port), "--host", "127.0.0.1"],
            "/health/liveliness",
            folder,
        ) as url:
            yield url


def _litellm(
    url: str, model: str, *, stream: bool = True, key: str = "test-key-0001", adapter: type[OpenAIWire] = OpenAIChat
) -> ModelResponse:
    endpoint = _endpoint(url, api_key=key, quirks=replace(PRESETS["litellm"].quirks, stream=stream))
    asked = adapter(model, endpoint, sleep=lambda seconds: None, jitter=lambda: 0.0)
    history = [Message(role=Role.SYSTEM, content="be careful"), Message(role=Role.USER, content="go")]
    try:
        return asked.complete(
            history, (Probe("work", []).spec,), on_text=lambda text: None, on_retry=lambda retry: None
        )
    finally:
        asked.close()


by_both = pytest.mark.parametrize("adapter", [OpenAIChat, AnthropicMessages], ids=["chat", "messages"])


@by_both
@whole_and_streamed
def test_a_text_of_the_litellm_proxy(litellm: str, stream: bool, adapter: type[OpenAIWire]) -> None:
    response = _litellm(litellm, "says", stream=stream, adapter=adapter)
    assert (response.text, response.tool_calls) == ("ok", ())
    assert response.usage != Usage()


@pytest.mark.parametrize("api", [Api.CHAT, Api.MESSAGES], ids=lambda api: api.value)
@whole_and_streamed
def test_a_turn_through_the_litellm_proxy(litellm: str, stream: bool, api: Api, tmp_path: Path) -> None:
    """A model of chat completions plays behind it: the proxy puts blocks, calls and results into the other form, and back."""
    _turn(litellm, tmp_path, api=api, quirks=replace(PRESETS["litellm"].quirks, stream=stream))


@by_both
@pytest.mark.parametrize(
    ("model", "key", "faults"),
    [
        pytest.param("limited", "test-key-0001", (ModelFault.SERVER,), id="a rate limit"),
        pytest.param("long", "test-key-0001", (ModelFault.CONTEXT,), id="too long a context"),
        pytest.param("says", "wrong-key-0000", (ModelFault.AUTHENTICATION, ModelFault.REQUEST), id="a wrong key"),
        pytest.param("nowhere", "test-key-0001", (ModelFault.NOT_FOUND, ModelFault.REQUEST), id="no such model"),
    ],
)
def test_an_error_of_the_litellm_proxy(
    litellm: str, model: str, key: str, faults: tuple[ModelFault, ...], adapter: type[OpenAIWire]
) -> None:
    with pytest.raises(ModelError) as raised:
        _litellm(litellm, model, key=key, adapter=adapter)
    assert raised.value.fault in faults, (raised.value.fault, str(raised.value))


# --- both majors of openai -----------------------------------------------------------------------------------------


MAJOR_TESTS = [
    f"tests/models/test_{name}.py"
    for name in ("openai_chat", "openai_responses", "openai_wire", "azure", "wire_contract", "wire_cases")
]
"""As `.ci/run` plays them on the oldest version that is supported."""


@all_rows("major", MAJORS)
def test_the_wire_cases_on_a_major_of_openai(major: str) -> None:
    name = "openai-" + "".join(c for c in major if c.isdigit())
    needs = ("pytest>=8.3", "pytest-timeout>=2.3", "pytest-xdist>=3.6", "hypothesis>=6.100")
    python = _venv(name, (ROOT, major, *needs))
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *MAJOR_TESTS],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": ROOT},
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
