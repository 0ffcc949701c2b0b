"""Model Context Protocol (MCP): the gate before the tools of another program's servers.

Read these first:
    proxy.py        what stands between a client and one server, from its start to its end
    traffic.py      which way each line goes: passed on, judged, refused
    judging.py      each call through the gate, one judged after the other
    server_tools.py the gate's tool for what a server offers: the Action, and its judged bytes sent

Then what goes with them:
    json_rpc.py         a line and what it is; why one is refused
    server_calls.py     a call on its way, and the turn to be judged
    sides.py            where each side is written to, and its open requests
    tool_catalog.py     which tools the server lists, and which of them a person has seen
    tool_description.py what a server says of one tool, whole
    pins.py             what a person has seen, kept for each server
    server_process.py   the server itself, and its end

Not here: who is asked, where logs and pins lie (cli/), what a rule decides (policy/).
"""
