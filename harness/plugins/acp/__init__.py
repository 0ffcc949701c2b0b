"""`harness serve --stdio`: a program drives harness through the Agent Client Protocol (agentclientprotocol.com).

    serve_command.py   the command: stdin and stdout, signals, the exit code
    acp_agent.py       dispatches each request of the client to its session
    client_wire.py     writes lines to the client in order; matches questions to it with its answers
    served_session.py  one session, with its own thread, log and agent
    session_updates.py updates for the client, from the log's records and from an old conversation
    client_approver.py sends a question of the gate as a request for permission
    client_servers.py  adds the MCP servers that the client declares
    client_question.py sends a question of the model as a request for permission
    prompt_blocks.py   converts the blocks of a prompt to text
    stored_sessions.py finds sessions of earlier processes by the client's names

Only these modules import the package `acp`, for the types of the protocol's messages. process/json_rpc.py parses the
lines, since it is stricter than the package's own parser.
"""
