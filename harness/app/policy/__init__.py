"""`harness policy`: check, explain, test, replay, suggest, trust.

Read `policies` first: which layers hold in a workspace, and what plan mode lays over them. `judged_call` makes of a call that
nobody makes the action that would be judged; `explain` says what was decided on an action, `cases` is `policy test`. `replay`
judges the calls of old logs again (`policy replay`, `audit redecide`, `audit verify --redecide`), those of tools from outside
by `logged_use`, and `suggest` proposes rules out of them. `trust` asks about a policy that came with the folder.
`policy_command` does the rest.

Nothing here runs a call, and nothing here decides on one: `harness.policy` does.
"""
