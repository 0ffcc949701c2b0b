"""`harness policy`: check, explain, test and replay; trust a project's policy.

`judged_call` turns a hypothetical call into the action to be judged; `explain` describes the decision, `cases` is
`policy test`. `replay` judges the calls of old logs again (`policy replay`, `audit verify --redecide`); `logged_use`
reads the calls of tools from outside for it. `policy_command` has the rest.

Nothing here runs a call or decides on one: `harness.policy` decides.
"""
