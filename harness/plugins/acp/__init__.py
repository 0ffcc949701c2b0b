"""`harness serve --stdio`: a program drives the harness, by the Agent Client Protocol (agentclientprotocol.com).

serve_command.py   the command: what stdin and stdout become, signals, the exit code
acp_agent.py       each request of the client, and which session it goes to
client_wire.py     lines to the client, in order; questions to it, and their answers
served_session.py  one session, with a thread, a log and an agent of its own
session_updates.py what the client is shown, out of the log's records and out of an old conversation
client_approver.py a question of the gate as a request for permission
client_question.py a question of the model likewise
prompt_blocks.py   the blocks of a prompt as text
stored_sessions.py sessions of earlier processes, as the client names them

Only these import the package `acp`. It gives the shapes of the protocol's messages; lines are read by text/json_rpc.py, more
strictly than its own reader does.
"""
