"""`harness policy`: check, explain, test and replay policies, and trust a project's policy.

`judged_call` turns a hypothetical call into an action. `explain` describes the decision on it. `cases` is `policy
test`. `replay` judges the calls of old logs again (`policy replay`, `audit verify --redecide`). `logged_use` reads
logged calls of external tools for it. `policy_command` has the other commands.

This package neither runs nor decides calls; `harness.policy` decides.
"""
