"""Model Context Protocol (MCP): puts the gate in front of the tools of MCP servers.

For the server of another program (`harness mcp proxy`), read these first:

    proxy.py        the proxy between a client and one server, from its start to its end
    traffic.py      the path of each line: passed on, judged or refused
    judging.py      takes each call through the gate, one after the other
    server_tools.py the gate's tool for a server's tool: prepares the Action, and sends the judged bytes

Their helpers:

    server_calls.py     a call in progress, and the turn in which calls are judged
    sides.py            the output to each side, and its open requests
    tool_catalog.py     the tools that the server lists, and which of them the user has seen
    tool_description.py a server's complete description of one tool
    pins.py             the tools that the user has seen, stored for each server
    tool_action.py      a call as the Action that is judged
    tool_results.py     a result as text

Servers of a configuration:

    server_declaration.py  the declaration of one server
    mcp_servers.py         all servers, from the start of a session to its end: their tools, calls, notes
    configured_server.py   the state of one server, shared by the threads
    connected_tool.py      the gate's tool for a tool of such a server
    start_question.py      asks before a server starts that a client declares
    elicitation.py         a form from a server, as a question to the user
    logins.py              the tokens of logins at servers at a URL; login_answer.py: the answer of the browser
    server_walls.py        the paths and network that a server may use, and its start; started_server.py: its end
    client/                the code that imports the SDK, and runs in its own thread

Not here: the choice of approver, the location of logs and pins (session/), the rules and their decisions (policy/).
"""
