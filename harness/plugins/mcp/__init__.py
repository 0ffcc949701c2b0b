"""Model Context Protocol (MCP): the gate before the tools of servers, those of another program and those of a configuration.

Before another program's server, read these first:
    proxy.py        what stands between a client and one server, from its start to its end
    traffic.py      which way each line goes: passed on, judged, refused
    judging.py      each call through the gate, one judged after the other
    server_tools.py the gate's tool for what a server offers: the Action, and its judged bytes sent

Then what goes with them:
    server_calls.py     a call on its way, and the turn to be judged
    sides.py            where each side is written to, and its open requests
    tool_catalog.py     which tools the server lists, and which of them a person has seen
    tool_description.py what a server says of one tool, whole
    pins.py             what a person has seen, kept for each server
    tool_action.py      a call as the Action that is judged
    tool_results.py     a result in words

Of the servers of a configuration:
    server_declaration.py  what is declared of one
    mcp_servers.py         all of them, from the start of a session to its end: their tools, calls, notes
    configured_server.py   how one stands, for every thread
    connected_tool.py      the gate's tool for one of its tools
    elicitation.py         a form that a server wants filled in, as a question
    server_walls.py        what one may write and reach, and its start; started_server.py: its end
    client/                what imports the SDK, and runs in a thread of its own

Not here: who is asked, where logs and pins lie (session/), what a rule decides (policy/).
"""
