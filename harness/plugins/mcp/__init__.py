"""Model Context Protocol (MCP): the gate before the tools of servers, those of another program and those of a
configuration.

Before another program's server, read these first:

    proxy.py        everything between a client and one server, from its start to its end
    traffic.py      the path of each line: passed on, judged, refused
    judging.py      each call through the gate, one judged after the other
    server_tools.py the gate's tool for a server's tool: the Action, and its judged bytes sent

Their helpers:

    server_calls.py     a call in progress, and the turn to be judged
    sides.py            the output to each side, and its open requests
    tool_catalog.py     the tools that the server lists, and those of them that a person has seen
    tool_description.py a server's complete description of one tool
    pins.py             the tools that a person has seen, kept for each server
    tool_action.py      a call as the Action that is judged
    tool_results.py     a result in words

Servers of a configuration:

    server_declaration.py  the declaration of one
    mcp_servers.py         all of them, from the start of a session to its end: their tools, calls, notes
    configured_server.py   the state of one, for every thread
    connected_tool.py      the gate's tool for one of its tools
    elicitation.py         a form that a server wants filled in, as a question
    server_walls.py        the paths and network that one may use, and its start; started_server.py: its end
    client/                the code that imports the SDK, and runs in a thread of its own

Not here: the choice of approver, the location of logs and pins (session/), the rules and their decisions (policy/).
"""
