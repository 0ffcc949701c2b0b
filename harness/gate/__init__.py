"""The one road of a call: judged, asked about, written down, run, written down. Nothing runs that did not come this way.

Read these first:
    gate.py      `Gate.call`, from top to bottom: the whole road; options.py has what a gate may be given besides
    tool.py      what a tool is: its spec, how it prepares a call, its body; an `Attempt` to run it
    ruling.py    a `Permit` to run once, or a `Refusal`; what follows from a verdict and an answer

Then what goes with them:
    registry.py     the tools on offer, and how a call becomes an `Action`; arguments.py checks its arguments
    pending_call.py  a call on its way through the gate, and its end; proposed_calls.py has those that have no end yet
    judge.py         what a call means, and the verdict on it; beside.py runs calls side by side that only read
    call_checks.py  what the person's own programs say of a call: they tighten, and never allow; checked_calls.py asks them
    approval.py     who is asked, and what an answer may say
    grants_in_force.py  what was granted so far, on top of the policy
    place_watch.py  what a granted program did to protected places, and what a person says to it
    records.py      the records that the gate writes into the log

Not here: what a rule decides (policy/), what a tool does (tools/), what becomes of its result (loop/).
"""
