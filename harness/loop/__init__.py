"""The loop: ask the model, put its calls through the gate, answer them, until a reply holds no calls.

Read these first:

    agent.py        `Agent.run`, the loop itself
    run.py          `Session`, one conversation, and `Run`, all the state of one prompt's work
    reply_calls.py  the calls of one reply: all judged before the first runs, each answered once

Then their parts:

    checked_sessions.py  hooks and schemas for sessions and answers
    model_requests.py  requests to the model, recorded and counted
    compaction.py      summaries of long conversations
    observers.py       observers of a run

Not here: the decision on a call (gate/, policy/), the wire to a provider (models/), the terminal (terminal/).
"""
