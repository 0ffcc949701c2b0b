"""The single path of every tool call: judge it, ask about it, record its intent, run it, record its outcome.

Read these first:

    gate.py      `Gate.call`, from top to bottom: the whole path; options.py has a gate's optional parts
    tool.py      a tool: its spec, its preparation of a call, its body; an `Attempt` is one run of the body
    ruling.py    a `Permit` to run once, or a `Refusal`: the result of a verdict and an answer

Then their parts:

    registry.py     the tools on offer; turns a call into an `Action`; arguments.py checks the arguments
    pending_call.py  state of a call in the gate, and its end; proposed_calls.py has the calls without an end
    judge.py         the action of a call, and the verdict on it; beside.py runs read-only calls in parallel
    call_checks.py  answers of the user's hooks, which tighten verdicts and never allow; checked_calls.py runs the hooks
    approval.py     approvers and their answers
    grants_in_force.py  the active grants, on top of the policy
    place_watch.py  changes of protected places by a granted program, and the user's decision on them
    records.py      the records that the gate writes into the log

Not here: the decision of a rule (policy/), the work of a tool (tools/), the use of its result (loop/).
"""
