"""The one road of a call: judged, asked about, recorded, run, recorded. Every run takes it.

Read these first:

    gate.py      `Gate.call`, from top to bottom: the whole road; options.py has a gate's optional parts
    tool.py      a tool: its spec, its preparation of a call, its body; an `Attempt` to run it
    ruling.py    a `Permit` to run once, or a `Refusal`: the result of a verdict and an answer

Then their parts:

    registry.py     the tools on offer, and the way from a call to an `Action`; arguments.py checks its arguments
    pending_call.py  a call on its way through the gate, and its end; proposed_calls.py has those without an end
    judge.py         the meaning of a call, and the verdict on it; beside.py runs reading calls side by side
    call_checks.py  answers of the person's own programs: they tighten, and never allow; checked_calls.py asks them
    approval.py     approvers and their answers
    grants_in_force.py  the grants so far, on top of the policy
    place_watch.py  changes of protected places by a granted program, and a person's decision on them
    records.py      the records that the gate writes into the log

Not here: the decision of a rule (policy/), the work of a tool (tools/), the use of its result (loop/).
"""
