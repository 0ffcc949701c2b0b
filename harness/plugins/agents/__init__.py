"""hook: the gate before the tools of other agents. Such an agent runs our hook program before each of its tool calls.

Read answering.py first: it parses an event (JSON) and returns an answer in the agent's own form. judging.py takes one
call through the gate. guarded_agent.py defines the description of an agent (claude.py, codex.py, ...). agent_session.py
keeps one session over many short processes.

An agent's call is translated into a call of our tools (foreign_call.py), and the gate judges it like any other
(handed_over.py). The agent carries it out itself, or runs `harness exec` with a ticket (tickets.py). A question that the
agent cannot ask waits for a user at another terminal (waiting.py). Nothing here runs a tool, reads the environment or
draws on a terminal. Imports stay light, since each hook is a separate process.
"""
