"""The loop: ask the model, put its calls through the gate, answer them, until a reply holds no calls.

Read these first:
    agent.py        `Agent.run`, the loop itself
    run.py          `Session`, one conversation, and `Run`, all the state of one prompt's work
    reply_calls.py  the calls of one reply: all judged before the first runs, each answered once

Then what goes with them:
    checked_sessions.py  what hooks and schemas say of sessions and answers
    model_requests.py  requests to the model, recorded and counted
    compaction.py      a long conversation made shorter by a summary
    observers.py       whoever watches a run

Not here: what decides on a call (gate/, policy/), how a provider is spoken to (models/), the terminal (terminal/).
"""
