"""What a configuration adds to a session: tools, servers, hooks, and who answers questions.

Read these first:
    extensions.py        what is declared, by the user and by a project that is trusted
    extensions_here.py   the same for one workspace
    project_trust.py     which files of a project a person trusts, and the question about them
    session_servers.py   the servers at work in one session, from its start to its end
    hooks_here.py        the hooks that check calls of others: of another agent, or of an MCP client

Not here: what a tool, a server or a hook does (tools/, mcp/, checks/); the tables of the file (session/config/).
"""
