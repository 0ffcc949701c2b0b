"""`harness mcp`: the gate before MCP servers. proxy_command.py is the longest.

The protocol is in harness/plugins/mcp/.
"""
