"""`harness mcp`: the gate before MCP servers. mcp_command.py has the actions, proxy_command.py the long one.

The protocol is in harness/plugins/mcp/.
"""
