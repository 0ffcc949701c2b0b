"""The commands `harness mcp`, one module each.

The protocol is in harness/plugins/mcp/.
"""
