"""hook: the gate before the tools of other agents, which call a program of ours before each of their tool calls.

Read answering.py first: an event of an agent comes in as JSON, an answer in that agent's own form goes out; judging.py takes
one call through the gate. guarded_agent.py says what one agent's file tells (claude.py, codex.py, ...); agent_session.py keeps
one session over many short processes.

An agent's call becomes a call in our words (foreign_call.py), is judged by the gate like any other (handed_over.py), and is
carried out by the agent, or by `harness exec` with a ticket (tickets.py). What the agent cannot ask waits for a person at
another terminal (waiting.py). Nothing here runs a tool, reads the environment or draws on a terminal. Imports stay light: each
hook is a process of its own.
"""
