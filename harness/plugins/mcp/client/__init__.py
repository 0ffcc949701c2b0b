"""The modules that import the MCP SDK and run in its thread. They are loaded only if a server is configured.

servers_at_work.py   the thread's event loop: every server, from its start to its end
connection.py        one server: its connection, its list of tools after each change, its calls
standard_streams.py  a process's streams as the SDK's messages: bounds lines, counts noise
http_client.py       the SDK's HTTP client with the token and size limits
oauth.py             logins: their tokens in requests, and the login itself
"""
