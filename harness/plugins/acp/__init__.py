"""`harness serve --stdio`: a program drives the harness, by the Agent Client Protocol (agentclientprotocol.com).

    serve_command.py   the command: stdin and stdout, signals, the exit code
    acp_agent.py       each request of the client, and its session
    client_wire.py     lines to the client, in order; questions to it, and their answers
    served_session.py  one session, with a thread, a log and an agent of its own
    session_updates.py updates for the client, from the log's records and from an old conversation
    client_approver.py a question of the gate as a request for permission
    client_question.py a question of the model as the same
    prompt_blocks.py   the blocks of a prompt as text
    stored_sessions.py sessions of earlier processes, by the client's names

Only these import the package `acp`. It has the shapes of the protocol's messages; process/json_rpc.py reads lines, more
strictly than the package's own reader.
"""
