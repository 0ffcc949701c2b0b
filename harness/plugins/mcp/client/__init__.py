"""The side of the MCP SDK: what imports it, and runs in the thread that it has. Loaded only when a server is configured.

servers_at_work.py   the thread's event loop: every server, from its start to its end
connection.py        one server: connected, its list read again when it changes, its calls
standard_streams.py  a process's streams as the SDK's messages: lines bounded, noise counted
http_client.py       the SDK's HTTP client with the token, bounded
"""
