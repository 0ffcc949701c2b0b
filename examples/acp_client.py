"""Drives harness as an editor does, by the Agent Client Protocol: `pip install 'permission-harness[acp]'`.

    python examples/acp_client.py "say what this project is about"

Works in the current folder; flags of `harness serve` may follow the prompt.
"""

import asyncio
import os
import sys
import termios
from typing import Any

from acp import spawn_agent_process, text_block
from acp.schema import AllowedOutcome, PermissionOption, RequestPermissionResponse

from harness.text.visible import visible


class AtTerminal:
    async def session_update(self, update: Any, **_: Any) -> None:
        if update.session_update == "agent_message_chunk":
            print(visible(update.content.text), end="", flush=True)

    async def request_permission(self, tool_call: Any, options: list[PermissionOption], **_: Any) -> Any:
        print(f"\n{tool_call.content[0].content.text}")  # safe to show: harness saw to that
        print("".join(f"  {option.option_id}: {option.name}\n" for option in options), end="")
        if sys.stdin.isatty():
            termios.tcflush(sys.stdin, termios.TCIFLUSH)  # what was typed ahead is no answer
        chosen = await asyncio.to_thread(input, "which? ")
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))


async def main(prompt: str, *flags: str) -> None:
    client: Any = AtTerminal()  # of all that a client may be asked it knows what harness asks
    command = [sys.executable, "-m", "harness", "serve", "--stdio", *flags]
    async with spawn_agent_process(client, *command, env=dict(os.environ), transport_kwargs={"stderr": None}) as (
        agent,
        _,
    ):
        await agent.initialize(protocol_version=1)
        session = await agent.new_session(cwd=os.getcwd(), mcp_servers=[])
        ended = await agent.prompt(session_id=session.session_id, prompt=[text_block(prompt)])
        print(f"\n{ended.stop_reason}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
